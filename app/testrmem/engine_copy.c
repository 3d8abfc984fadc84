/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Mode copy: a file, block by block: read into a buffer of the pool, written by the peer into
 * another one that is fast-registered for just that (cycle.h), and from there into the output.
 * The lcores claim runs of blocks in turn.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_malloc.h>

#include "copy_file.h"
#include "cycle.h"

struct copy {
	struct copy_file file;
	uint64_t next;   /* Atomic: first byte not claimed yet. */
	uint64_t copied; /* Atomic: bytes in the output. */
};

static int
copy_open(struct testrmem_session *session)
{
	struct copy *copy = testrmem_alloc(1, sizeof(*copy));

	if (copy == NULL)
		return -ENOMEM;
	session->priv = copy;
	copy->file.session = session;
	return copy_file_open(&copy->file, session->conf.input, session->conf.output);
}

static void
copy_close(struct testrmem_session *session)
{
	struct copy *copy = session->priv;

	if (copy == NULL)
		return;
	copy_file_close(&copy->file);
	rte_free(copy);
	session->priv = NULL;
}

static int
copy_fill(struct testrmem_pair *pair, struct cycle_train *train, uint32_t nb)
{
	struct copy *copy = pair->worker->session->priv;
	uint64_t offset, left;
	uint32_t i;
	int ret;

	offset = __atomic_fetch_add(&copy->next, (uint64_t)nb * pair->size, __ATOMIC_RELAXED);
	train->offset = offset;
	for (i = 0; i < nb && offset < copy->file.length; i++) {
		left = copy->file.length - offset;
		train->src[i].length = (uint32_t)RTE_MIN(left, (uint64_t)pair->size);
		ret = copy_file_read(&copy->file, testrmem_ptr(train->src[i].addr),
				train->src[i].length, offset);
		if (ret != 0)
			return ret;
		offset += train->src[i].length;
	}
	return (int)i;
}

static int
copy_arrived(struct testrmem_pair *pair, struct cycle_train *train)
{
	struct copy *copy = pair->worker->session->priv;
	uint64_t offset = train->offset;
	uint32_t i;
	int ret;

	for (i = 0; i < train->nb; i++) {
		ret = copy_file_write(&copy->file, testrmem_ptr(train->dst[i].addr),
				train->dst[i].length, offset);
		if (ret != 0)
			return ret;
		offset += train->dst[i].length;
	}
	__atomic_fetch_add(&copy->copied, offset - train->offset, __ATOMIC_RELAXED);
	return 0;
}

static const struct cycle_ops copy_cycle_ops = {
		.announce = NULL,
		.arrived = copy_arrived,
		.fill = copy_fill,
		.is_held = NULL,
		.received = NULL,
};

static int
copy_setup(struct testrmem_pair *pair)
{
	return cycle_setup(pair, &copy_cycle_ops);
}

static void
print_sum(const char *what, const uint8_t *sum, const char *path)
{
	int i;

	printf("%-6s SHA-256 ", what);
	for (i = 0; i < COPY_SUM_SIZE; i++)
		printf("%02x", sum[i]);
	printf("  %s\n", path);
}

static void
copy_progress(const struct testrmem_session *session, uint64_t *done, uint64_t *all)
{
	const struct copy *copy = session->priv;

	*done = __atomic_load_n(&copy->copied, __ATOMIC_RELAXED);
	*all = copy->file.length;
}

static int
copy_finish(struct testrmem_session *session)
{
	struct copy *copy = session->priv;
	struct copy_file *file = &copy->file;
	int ret;

	if (copy->copied != file->length) {
		testrmem_fail(session, "copy of '%s' ended at %" PRIu64 " of %" PRIu64 " bytes",
				file->input, copy->copied, file->length);
		return -EINTR;
	}
	ret = copy_file_sync(file);
	if (ret != 0)
		return ret;
	if (file->length == 0)
		printf("input is empty\n");
	print_sum("input", file->in_sum, file->input);
	print_sum("output", file->out_sum, file->output);
	if (memcmp(file->in_sum, file->out_sum, COPY_SUM_SIZE) != 0) {
		testrmem_fail(session, "the SHA-256 sums of '%s' and '%s' differ", file->input,
				file->output);
		return -EIO;
	}
	printf("sums are equal\n");
	return copy_file_commit(file);
}

const struct testrmem_engine testrmem_engine_copy = {
		.name = "copy",
		.help = "copy a file: REG_MR, WRITE and LOCAL_INV for each block",
		.verified = "the SHA-256 sums are equal",
		.default_size = 64 * 1024,
		.max_size = UINT32_MAX,
		.bufs_per_op = 2,
		.grant = &testrmem_grant_fast_reg,
		.open = copy_open,
		.setup = copy_setup,
		.burst = cycle_burst,
		.progress = copy_progress,
		.finish = copy_finish,
		.disconnect = cycle_disconnect,
		.teardown = cycle_teardown,
		.close = copy_close,
};
