/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Environment of the cases: the log, and lack of memory. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_log.h>

#include "fixture.h"

static char log_text[16384];
static FILE *log_stream;
static uint32_t log_level;

static const char *const log_types[] = {
		"lib.rmem", "lib.rmem.lease", "lib.rmem.pool", "pmd.rmem.soft"};
static int log_type_levels[RTE_DIM(log_types)];

void
fx_log_begin(void)
{
	unsigned int i;

	log_text[0] = '\0';
	log_stream = fmemopen(log_text, sizeof(log_text), "w");
	if (log_stream == NULL)
		return;
	log_level = rte_log_get_global_level();
	rte_log_set_global_level(RTE_LOG_DEBUG);
	for (i = 0; i < RTE_DIM(log_types); i++) {
		/* The number of a type that is there already. */
		int type = rte_log_register(log_types[i]);

		log_type_levels[i] = rte_log_get_level((uint32_t)type);
		rte_log_set_level((uint32_t)type, RTE_LOG_INFO);
	}
	rte_openlog_stream(log_stream);
}

const char *
fx_log_end(void)
{
	unsigned int i;

	if (log_stream == NULL)
		return log_text;
	rte_openlog_stream(NULL);
	for (i = 0; i < RTE_DIM(log_types); i++)
		rte_log_set_level((uint32_t)rte_log_register(log_types[i]),
				(uint32_t)log_type_levels[i]);
	rte_log_set_global_level(log_level);
	fclose(log_stream);
	log_stream = NULL;
	return log_text;
}

/* A list through the blocks themselves, the largest first. */
static void *eaten;

static void
eat(size_t size)
{
	void **block;

	while (size >= sizeof(void *)) {
		block = rte_malloc("eaten", size, 0);
		if (block == NULL) {
			size /= 2;
			continue;
		}
		*block = eaten;
		eaten = block;
	}
}

void
fx_leave_memory(size_t size)
{
	void *left = size != 0 ? rte_malloc("left", size, 0) : NULL;

	/* EAL takes as many hugepages as it finds for a block before it fails, and leaves
	 * them back: blocks of more than a few make that slow, in an emulated guest minutes.
	 */
	eat((size_t)1 << 24);
	rte_free(left);
}

void
fx_free_memory(void)
{
	while (eaten != NULL) {
		void **block = eaten;

		eaten = *block;
		rte_free(block);
	}
}

void
fx_expect_enomem(int (*make)(void **object))
{
	uint32_t before = test_heap().alloc_count;
	void *object = NULL;
	size_t size = 0;
	int ret;

	for (;; size = size * 3 / 2 + 64) {
		fx_leave_memory(size);
		ret = make(&object);
		fx_free_memory();
		if (ret == 0)
			break;
		TEST_EQ(ret, -ENOMEM);
		TEST_ASSERT(object == NULL);
		TEST_EQ(test_heap().alloc_count, before);
		TEST_ASSERT(size < (size_t)1 << 32);
	}
	fx_track(object);
	TEST_ASSERT(size > 0);
	TEST_OK(fx_release(object));
	TEST_EQ(test_heap().alloc_count, before);
}

void
fx_with_memfd(void (*check)(int fd))
{
	int fd = memfd_create("rmem_test", MFD_CLOEXEC);
	int result;

	TEST_ASSERT(fd >= 0);
	result = TEST_TRY(check(fd));
	close(fd);
	TEST_RUN(result);
}
