/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * IDs: the table of handles, creation and options; finding the ID of a command and sending the
 * response.
 *
 * Invariant: all handles in use are less than nb_used.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../verbs/ribv.h"
#include "rcm.h"

#define NB_PORT_LISTS 4096

#define WORDS(n) (((n) + 63) / 64)
#define LEVELS   3

static struct rcm_id **ids; /* by handle */
static uint32_t nb_used, nb_ids;

/* Bitmaps of the handles in use: a bit of level n + 1 is set if its word of level n has no zero
 * bit. */
static uint64_t used0[WORDS(RCM_MAX_IDS)], used1[WORDS(WORDS(RCM_MAX_IDS))], used2[1];
static uint64_t *const used[LEVELS] = {used0, used1, used2};

static_assert(WORDS(WORDS(WORDS(RCM_MAX_IDS))) == 1, "the last level is one word");

/* Bound IDs, hashed by port. */
static LIST_HEAD(rcm_port_ids, rcm_id) ports[NB_PORT_LISTS];

struct rcm_id *
rcm_id_get(uint32_t handle)
{
	return ids != NULL && handle < RCM_MAX_IDS ? ids[handle] : NULL;
}

struct rcm_id *
rcm_id_next(uint32_t *handle)
{
	for (; *handle < nb_used; ++*handle) {
		if (ids[*handle] != NULL)
			return ids[*handle];
	}
	return NULL;
}

struct rcm_id *
rcm_id_find(const struct rcm_cmd *cmd, uint32_t handle, int *ret)
{
	struct rcm_id *id = rcm_id_get(handle);

	*ret = id == NULL || id->is_queued ? -ENOENT : id->channel != cmd->channel ? -EINVAL : 0;
	return *ret == 0 ? id : NULL;
}

/* As ucma_get_ctx() in the kernel. */
struct rcm_id *
rcm_id_of(const struct rcm_cmd *cmd, uint32_t handle, int *ret)
{
	struct rcm_id *id = rcm_id_find(cmd, handle, ret);

	if (id == NULL || !id->is_removed)
		return id;
	*ret = -ENXIO;
	return NULL;
}

/* Return the first free handle, if any. */
static uint32_t
handle_free(void)
{
	uint32_t level, at = 0;

	for (level = LEVELS; level-- != 0;)
		at = at * 64 + (uint32_t)__builtin_ctzll(~used[level][at]);
	return at;
}

static void
handle_use(uint32_t handle)
{
	uint32_t level, at = handle;

	for (level = 0; level < LEVELS; level++, at /= 64) {
		used[level][at / 64] |= UINT64_C(1) << (at % 64);
		if (~used[level][at / 64] != 0)
			break;
	}
}

static void
handle_unuse(uint32_t handle)
{
	uint32_t level, at = handle;

	for (level = 0; level < LEVELS; level++, at /= 64)
		used[level][at / 64] &= ~(UINT64_C(1) << (at % 64));
}

struct rcm_id *
rcm_id_new(struct rcm_channel *channel, uint16_t ps, uint8_t qp_type)
{
	struct rcm_id *id = calloc(1, sizeof(*id));
	uint32_t handle;

	if (ids == NULL)
		ids = calloc(RCM_MAX_IDS, sizeof(struct rcm_id *));
	if (id == NULL || ids == NULL || nb_ids == RCM_MAX_IDS || !rcm_timer_reserve(nb_ids + 1)) {
		free(id);
		return NULL;
	}
	handle = handle_free();
	handle_use(handle);
	ids[handle] = id;
	nb_used = RTE_MAX(nb_used, handle + 1);
	nb_ids++;
	id->handle = handle;
	TAILQ_INIT(&id->events);
	id->channel = channel;
	TAILQ_INSERT_TAIL(&channel->ids, id, of_channel);
	id->ps = ps;
	id->qp_type = qp_type;
	id->qkey = RCM_UDP_QKEY;
	id->ack_timeout = RCM_ACK_TIMEOUT;
	id->fd = -1;
	return id;
}

void
rcm_id_move(struct rcm_id *id, struct rcm_channel *to)
{
	TAILQ_REMOVE(&id->channel->ids, id, of_channel);
	id->channel = to;
	TAILQ_INSERT_TAIL(&to->ids, id, of_channel);
}

struct rcm_id *
rcm_id_by_port(uint16_t port)
{
	return LIST_FIRST(&ports[port % NB_PORT_LISTS]);
}

void
rcm_id_add_port(struct rcm_id *id)
{
	LIST_INSERT_HEAD(&ports[id->src.port % NB_PORT_LISTS], id, of_port);
	id->has_port = true;
}

void
rcm_id_free(struct rcm_id *id)
{
	rcm_id_timer(id, IBCM_NEVER);
	TAILQ_REMOVE(&id->channel->ids, id, of_channel);
	if (id->has_port)
		LIST_REMOVE(id, of_port);
	ids[id->handle] = NULL;
	nb_ids--;
	handle_unuse(id->handle);
	while (nb_used > 0 && ids[nb_used - 1] == NULL)
		nb_used--;
	free(id);
}

int
rcm_respond(const struct rcm_cmd *cmd, uint64_t to, const void *resp, size_t size)
{
	return cmd->out_len < size ? -ENOSPC : rcm_user_write(to, resp, size);
}

int
rcm_create_id(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_create_id *in = &cmd->in.create_id;
	struct rdma_ucm_create_id_resp resp;
	uint8_t qp_type = in->qp_type;
	struct rcm_id *id;
	int ret;

	/* An older ABI has no qp_type: derive it from the port space. */
	if (in->ps == RDMA_PS_TCP)
		qp_type = IBV_QPT_RC;
	else if (in->ps == RDMA_PS_UDP || in->ps == RDMA_PS_IPOIB)
		qp_type = IBV_QPT_UD;
	else if (in->ps != RDMA_PS_IB)
		return -EINVAL;
	if (in->uid == 0)
		return -EINVAL;
	id = rcm_id_new(cmd->channel, in->ps, qp_type);
	if (id == NULL)
		return -ENOMEM;
	id->uid = in->uid;
	resp.id = id->handle;
	ret = rcm_respond(cmd, in->response, &resp, sizeof(resp));
	if (ret != 0)
		rcm_id_free(id);
	return ret;
}

/* The kernel does not have this command either. */
int
rcm_get_option(const struct rcm_cmd *cmd)
{
	RTE_SET_USED(cmd);
	return -ENOSYS;
}

static int
set_id_option(struct rcm_id *id, uint32_t name, const void *value, uint32_t len)
{
	uint8_t byte;
	int number;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (len != sizeof(byte))
			return -EINVAL;
		memcpy(&id->tos, value, sizeof(id->tos));
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		if (len != sizeof(number))
			return -EINVAL;
		memcpy(&number, value, sizeof(number));
		if (id->state != RCM_IDLE && (number == 0 || id->state == RCM_LISTEN))
			return -EINVAL;
		id->is_reuse = number != 0;
		return 0;
	case RDMA_OPTION_ID_AFONLY:
		if (len != sizeof(number) || (id->state != RCM_IDLE && id->state != RCM_BOUND))
			return -EINVAL;
		memcpy(&number, value, sizeof(number));
		id->is_afonly = number != 0;
		id->has_afonly = true;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		memcpy(&byte, value, sizeof(byte));
		if (len != sizeof(byte) || byte > 31)
			return -EINVAL;
		id->ack_timeout = byte != 0 ? byte : RCM_ACK_TIMEOUT;
		return 0;
	default:
		return -ENOSYS;
	}
}

int
rcm_set_option(const struct rcm_cmd *cmd)
{
	const struct rdma_ucm_set_option *in = &cmd->in.set_option;
	uint8_t value[sizeof(int)] = {0};
	size_t len = RTE_MIN((size_t)in->optlen, sizeof(value));
	struct rcm_id *id;
	int ret;

	id = rcm_id_of(cmd, in->id, &ret);
	if (id == NULL)
		return ret;
	if (in->optval == 0 || rcm_user_read(value, in->optval, len) != len)
		return -EFAULT;
	/* The option sets a path of a subnet manager, and there is none. */
	if (in->level != RDMA_OPTION_ID || in->optlen == 0)
		return in->level == RDMA_OPTION_IB ? -EOPNOTSUPP : -ENOSYS;
	return set_id_option(id, in->optname, value, in->optlen);
}
