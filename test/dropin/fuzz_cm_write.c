/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Write commands to a channel of rdma_cm, with defects; check the results. */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_cm.h"

#define PAGE   4096u
#define AREA   PAGE
#define ANSWER 1024u /* more than any response */
#define CANARY 0xa5
#define NONE   UINT8_MAX

/* The pages on both sides are not mapped. */
static uint8_t *written, *answers, *constant;

#define COMMAND(type)       .in_len = sizeof(struct rdma_ucm_##type)
#define RESPONSE(type, out) .out_len = sizeof(out), .at = offsetof(struct rdma_ucm_##type, response)

static const struct {
	uint16_t in_len, out_len;
	uint8_t at; /* of the pointer in the command; NONE: it has none */
} kinds[] = {
		[RDMA_USER_CM_CMD_CREATE_ID] = {COMMAND(create_id),
				RESPONSE(create_id, struct rdma_ucm_create_id_resp)},
		[RDMA_USER_CM_CMD_DESTROY_ID] = {COMMAND(destroy_id),
				RESPONSE(destroy_id, struct rdma_ucm_destroy_id_resp)},
		[RDMA_USER_CM_CMD_BIND_IP] = {COMMAND(bind_ip), .at = NONE},
		[RDMA_USER_CM_CMD_CONNECT] = {COMMAND(connect), .at = NONE},
		[RDMA_USER_CM_CMD_LISTEN] = {COMMAND(listen), .at = NONE},
		[RDMA_USER_CM_CMD_ACCEPT] = {COMMAND(accept), .at = NONE},
		[RDMA_USER_CM_CMD_REJECT] = {COMMAND(reject), .at = NONE},
		[RDMA_USER_CM_CMD_DISCONNECT] = {COMMAND(disconnect), .at = NONE},
		[RDMA_USER_CM_CMD_RESOLVE_IP] = {COMMAND(resolve_ip), .at = NONE},
		[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {COMMAND(resolve_route), .at = NONE},
		[RDMA_USER_CM_CMD_QUERY_ROUTE] = {COMMAND(query),
				RESPONSE(query, struct rdma_ucm_query_route_resp)},
		[RDMA_USER_CM_CMD_INIT_QP_ATTR] = {COMMAND(init_qp_attr),
				RESPONSE(init_qp_attr, struct ib_uverbs_qp_attr)},
		[RDMA_USER_CM_CMD_GET_EVENT] = {COMMAND(get_event),
				RESPONSE(get_event, struct rdma_ucm_event_resp)},
		[RDMA_USER_CM_CMD_GET_OPTION] = {.in_len = 8, .at = NONE},
		[RDMA_USER_CM_CMD_SET_OPTION] = {COMMAND(set_option),
				.at = offsetof(struct rdma_ucm_set_option, optval)},
		[RDMA_USER_CM_CMD_NOTIFY] = {COMMAND(notify), .at = NONE},
		[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {COMMAND(join_ip_mcast),
				RESPONSE(join_ip_mcast, struct rdma_ucm_create_id_resp)},
		[RDMA_USER_CM_CMD_LEAVE_MCAST] = {COMMAND(destroy_id),
				RESPONSE(destroy_id, struct rdma_ucm_destroy_id_resp)},
		[RDMA_USER_CM_CMD_MIGRATE_ID] = {COMMAND(migrate_id),
				RESPONSE(migrate_id, struct rdma_ucm_migrate_resp)},
		[RDMA_USER_CM_CMD_QUERY] = {COMMAND(query),
				RESPONSE(query, struct rdma_ucm_query_addr_resp)},
		[RDMA_USER_CM_CMD_BIND] = {COMMAND(bind), .at = NONE},
		[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {COMMAND(resolve_addr), .at = NONE},
		[RDMA_USER_CM_CMD_JOIN_MCAST] = {COMMAND(join_mcast),
				RESPONSE(join_mcast, struct rdma_ucm_create_id_resp)},
};

uint16_t
fuzz_cm_in_len(uint32_t number)
{
	return kinds[number].in_len;
}

uint16_t
fuzz_cm_out_len(uint32_t number)
{
	return kinds[number].out_len;
}

static uint8_t *
area(int access)
{
	uint8_t *at = mmap(NULL, AREA + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED && mprotect(at + PAGE, AREA, access) == 0);
	return at + PAGE;
}

void
fuzz_cm_memory(void)
{
	written = area(PROT_READ | PROT_WRITE);
	answers = area(PROT_READ | PROT_WRITE);
	constant = area(PROT_READ);
	memset(answers, CANARY, AREA);
}

/* Address of the response, or of the value of an option. */
static uint64_t
answer_at(const struct command *command, const struct step *step)
{
	size_t size = RTE_MIN(command->out_len, ANSWER);

	if (command->number == RDMA_USER_CM_CMD_SET_OPTION)
		size = RTE_MIN(command->in.set_option.optlen, ANSWER);
	switch (step->bad) {
	case BAD_RESP_NULL:
		return 0;
	case BAD_RESP_UNMAPPED:
		return (uintptr_t)answers + AREA;
	case BAD_RESP_CONSTANT:
		return (uintptr_t)constant;
	case BAD_RESP_END:
		return (uintptr_t)answers + AREA - 1;
	case BAD_RESP_WILD:
		return UINT64_MAX - 0xffff + step->value;
	default:
		return (uintptr_t)answers + AREA - size;
	}
}

/* Set the pointer of the command after its bytes were changed. */
static void
set_answer(struct command *command, const struct step *step)
{
	const bool is_option = command->number == RDMA_USER_CM_CMD_SET_OPTION;
	uint64_t at;

	command->has_answer = false;
	command->answer = NULL;
	if (command->number >= RTE_DIM(kinds) || kinds[command->number].at == NONE ||
			command->in_len < kinds[command->number].at + sizeof(at))
		return;
	command->has_answer = true;
	at = answer_at(command, step);
	memcpy(command->bytes + kinds[command->number].at, &at, sizeof(at));
	command->is_unmapped |= step->bad >= BAD_RESP_NULL && step->bad <= BAD_RESP_WILD &&
			!(is_option && step->bad == BAD_RESP_CONSTANT) &&
			!(is_option && step->bad == BAD_RESP_END &&
					command->in.set_option.optlen <= 1);
	if (!command->is_unmapped)
		command->answer = (const uint8_t *)(uintptr_t)at;
	if (is_option && (step->bad == BAD_NONE || step->bad > BAD_RESP_WILD))
		memset(answers + AREA - sizeof(at), step->value & 0x1f, sizeof(at));
}

static void
set_lengths(struct command *command, const struct step *step)
{
	switch (step->bad) {
	case BAD_OUT_SHORT:
		command->out_len = (uint16_t)(step->value % (command->out_len + 1u));
		break;
	case BAD_OUT_LARGE:
		command->out_len = (uint16_t)(UINT16_MAX - step->value % 4096);
		break;
	case BAD_IN_SHORT:
		command->in_len = (uint16_t)(step->value % (command->in_len + 1u));
		break;
	case BAD_IN_LARGE:
		command->in_len = (uint16_t)(command->in_len + step->value % 64);
		break;
	case BAD_NUMBER:
		command->number = step->value % 64;
		break;
	default:
		break;
	}
}

/* Place header and command at the end of the area; return what to write. */
static const void *
place(const struct command *command, const struct step *step, size_t *size)
{
	struct rdma_ucm_cmd_hdr hdr = {command->number, command->in_len, command->out_len};
	uint8_t *at;

	*size = sizeof(hdr) + command->in_len;
	if (step->bad == BAD_IN_LIE)
		hdr.in = (uint16_t)RTE_MIN(hdr.in + 1u + step->value, (unsigned int)UINT16_MAX);
	if (step->bad == BAD_NO_HEADER)
		*size = step->value % sizeof(hdr);
	at = written + AREA - (step->bad == BAD_DATA_END ? sizeof(hdr) : *size);
	memcpy(at, &hdr, RTE_MIN(*size, sizeof(hdr)));
	if (step->bad != BAD_DATA_END && step->bad != BAD_NO_HEADER)
		memcpy(at + sizeof(hdr), command->bytes, command->in_len);
	if (step->bad == BAD_DATA_NULL)
		return NULL;
	return step->bad == BAD_DATA_UNMAPPED ? written - PAGE : at;
}

static bool
is_known(int err)
{
	static const int known[] = {EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN,
			ECONNRESET, EFAULT, EINVAL, ENODEV, ENOENT, ENOSPC, ENOSYS, ENXIO,
			EOPNOTSUPP};
	size_t i;

	for (i = 0; i < RTE_DIM(known) && known[i] != err; i++)
		;
	return i < RTE_DIM(known);
}

static void
check_canaries(const uint8_t *from, const uint8_t *end)
{
	if (from < end)
		CHECK(*from == CANARY && memcmp(from, from + 1, (size_t)(end - from) - 1) == 0);
}

/* No byte is changed but those of the response. */
static void
check_answer(const struct command *command, int err)
{
	const bool is_option = command->number == RDMA_USER_CM_CMD_SET_OPTION;
	const uint8_t *end = answers + AREA;

	/* Of memory that ends in the response, the front may be written. */
	if (err == EFAULT)
		end--;
	if (is_option)
		end -= sizeof(uint64_t);
	if (err != 0 || is_option || command->answer == NULL) {
		check_canaries(answers, end);
		return;
	}
	check_canaries(answers, command->answer);
	check_canaries(command->answer + kinds[command->number].out_len, end);
}

int
fuzz_cm_write(int fd, struct command *command, const struct step *step, const uint8_t *bytes,
		uint32_t n)
{
	const void *data;
	size_t size, i;
	ssize_t ret;
	int err;

	for (i = 0; i < RTE_MIN(n, command->in_len); i++)
		command->bytes[(step->what + i) % command->in_len] ^= bytes[i];
	set_lengths(command, step);
	command->is_unmapped = step->bad == BAD_DATA_NULL || step->bad == BAD_DATA_UNMAPPED ||
			(step->bad == BAD_DATA_END && command->in_len != 0);
	memset(answers, CANARY, AREA);
	set_answer(command, step);
	data = place(command, step, &size);
	errno = 0;
	ret = rcm_core_ops.write(fd, data, size, write);
	err = ret < 0 ? errno : 0;
	CHECK(ret == (ssize_t)size || (ret == -1 && is_known(err)));
	CHECK(err != EFAULT || command->is_unmapped);
	CHECK(err != 0 || !command->is_unmapped);
	CHECK(err != 0 || (step->bad != BAD_IN_LIE && step->bad != BAD_NO_HEADER));
	check_answer(command, err);
	return err;
}
