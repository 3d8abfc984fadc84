/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Refused buffers. Each is counted and traced. Each context logs only the first one for each
 * reason, with the values, so that bursts do not fill the log.
 */

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "rmem_lease_priv.h"
#include "rmem_lease_trace_priv.h"

/* Protects the last refusals of all contexts; held only to copy one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define DESCRIBE(...) snprintf(text, size, __VA_ARGS__)

static enum rmem_lease_refusal
check_mr(const struct rmem_lease_ctx *ctx, const struct rmem_mr *mr, char *text, size_t size)
{
	if (mr == NULL || mr->obj.type != RMEM_OBJ_MR) {
		DESCRIBE("it is not an MR (tag 0x%x)", mr == NULL ? 0 : mr->obj.type);
		return RMEM_LEASE_REFUSAL_NO_MR;
	}
	if (mr->type != RMEM_MR_TYPE_USER) {
		DESCRIBE("its type is %u: not an MR of rmem_mr_reg() or a similar call", mr->type);
		return RMEM_LEASE_REFUSAL_MR_TYPE;
	}
	if (rmem_mr_state(mr) != RMEM_MR_STATE_VALID) {
		DESCRIBE("it is not valid (state %u)", rmem_mr_state(mr));
		return RMEM_LEASE_REFUSAL_MR_STATE;
	}
	if (mr->pd != ctx->qp->pd) {
		DESCRIBE("its PD is %p, the QP's PD is %p", (void *)mr->pd, (void *)ctx->qp->pd);
		return RMEM_LEASE_REFUSAL_PD;
	}
	if (mr->addr == NULL) {
		DESCRIBE("it has several ranges, or is implicit");
		return RMEM_LEASE_REFUSAL_RANGES;
	}
	return RMEM_LEASE_REFUSAL_NONE;
}

static enum rmem_lease_refusal
check_range(const struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, char *text,
		size_t size)
{
	uint64_t offset = (uintptr_t)req->addr - (uintptr_t)req->mr->addr;

	if (req->length == 0 || req->length > ctx->max_length) {
		DESCRIBE("length %u is not 1 to %u (max_length)", req->length, ctx->max_length);
		return RMEM_LEASE_REFUSAL_LENGTH;
	}
	if (offset >= req->mr->length || req->length > req->mr->length - offset) {
		DESCRIBE("they are not in its %zu bytes at %p", req->mr->length, req->mr->addr);
		return RMEM_LEASE_REFUSAL_OUTSIDE;
	}
	if ((uintptr_t)req->addr < ctx->min_addr) {
		DESCRIBE("they are in the page at 0 of a page list, below 0x%" PRIxPTR,
				ctx->min_addr);
		return RMEM_LEASE_REFUSAL_PAGE;
	}
	if (req->access == 0 || (req->access & ~RMEM_ACCESS_REMOTE) != 0) {
		DESCRIBE("access 0x%x has no right, or one beyond 0x%x", req->access,
				RMEM_ACCESS_REMOTE);
		return RMEM_LEASE_REFUSAL_ACCESS;
	}
	if (req->reserved != 0) {
		DESCRIBE("a reserved field is not zero");
		return RMEM_LEASE_REFUSAL_RESERVED;
	}
	return RMEM_LEASE_REFUSAL_NONE;
}

static enum rmem_lease_refusal
check_right(const struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, char *text,
		size_t size)
{
	if ((rmem_mr_drv(req->mr)->flags & ctx->mr_flags_bad) != 0) {
		DESCRIBE("it is of RMEM_MR_FD, to which no window can be bound");
		return RMEM_LEASE_REFUSAL_FD;
	}
	if ((req->access & ~ctx->access) != 0) {
		DESCRIBE("access 0x%x, the QP grants its peer 0x%x", req->access, ctx->access);
		return RMEM_LEASE_REFUSAL_QP_RIGHT;
	}
	if ((ctx->mr_needs & ~req->mr->access) != 0) {
		DESCRIBE("its access 0x%x lacks RMEM_ACCESS_MW_BIND, which windows need",
				req->mr->access);
		return RMEM_LEASE_REFUSAL_MW_BIND;
	}
	if ((req->access & (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)) != 0 &&
			(req->mr->access & RMEM_ACCESS_LOCAL_WRITE) == 0) {
		DESCRIBE("access 0x%x needs LOCAL_WRITE, its access is 0x%x", req->access,
				req->mr->access);
		return RMEM_LEASE_REFUSAL_LOCAL_WRITE;
	}
	DESCRIBE("it is being deregistered or re-registered");
	return RMEM_LEASE_REFUSAL_RELEASED;
}

static enum rmem_lease_refusal
find_reason(const struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, char *text,
		size_t size)
{
	enum rmem_lease_refusal reason = check_mr(ctx, req->mr, text, size);

	if (reason == RMEM_LEASE_REFUSAL_NONE)
		reason = check_range(ctx, req, text, size);
	if (reason == RMEM_LEASE_REFUSAL_NONE)
		reason = check_right(ctx, req, text, size);
	return reason;
}

const char *
rmem_lease_refusal_str(uint32_t refusal)
{
	static const char *const names[] = {
			[RMEM_LEASE_REFUSAL_NONE] = "NONE",
			[RMEM_LEASE_REFUSAL_NO_MR] = "NO_MR",
			[RMEM_LEASE_REFUSAL_MR_TYPE] = "MR_TYPE",
			[RMEM_LEASE_REFUSAL_MR_STATE] = "MR_STATE",
			[RMEM_LEASE_REFUSAL_PD] = "PD",
			[RMEM_LEASE_REFUSAL_RANGES] = "RANGES",
			[RMEM_LEASE_REFUSAL_LENGTH] = "LENGTH",
			[RMEM_LEASE_REFUSAL_OUTSIDE] = "OUTSIDE",
			[RMEM_LEASE_REFUSAL_PAGE] = "PAGE",
			[RMEM_LEASE_REFUSAL_ACCESS] = "ACCESS",
			[RMEM_LEASE_REFUSAL_RESERVED] = "RESERVED",
			[RMEM_LEASE_REFUSAL_FD] = "FD",
			[RMEM_LEASE_REFUSAL_QP_RIGHT] = "QP_RIGHT",
			[RMEM_LEASE_REFUSAL_MW_BIND] = "MW_BIND",
			[RMEM_LEASE_REFUSAL_LOCAL_WRITE] = "LOCAL_WRITE",
			[RMEM_LEASE_REFUSAL_RELEASED] = "RELEASED",
	};

	static_assert(RTE_DIM(names) == RMEM_LEASE_REFUSAL_NB, "a name for each");
	return refusal < RTE_DIM(names) ? names[refusal] : "unknown";
}

/* Store the refusal for telemetry. */
static void
store_last(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, const char *text)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	pthread_mutex_lock(&lock);
	snprintf(ctx->refusal, sizeof(ctx->refusal), "%u bytes at %p: %s", req->length, req->addr,
			text);
	ctx->refused_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	pthread_mutex_unlock(&lock);
}

uint64_t
rmem_lease_last_refusal(struct rmem_lease_ctx *ctx, char *text, size_t size)
{
	uint64_t refused_ns;

	pthread_mutex_lock(&lock);
	snprintf(text, size, "%s", ctx->refusal);
	refused_ns = ctx->refused_ns;
	pthread_mutex_unlock(&lock);
	return refused_ns;
}

void
rmem_lease_refuse(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, int error)
{
	enum rmem_lease_refusal reason;
	struct rmem_name_text name;
	char text[128];

	LEASE_COUNT(ctx->stats.refused, 1);
	rmem_lease_trace_refuse(ctx, req->mr, req->addr, req->length, req->access, -error);
	reason = find_reason(ctx, req, text, sizeof(text));
	LEASE_SET(ctx->stats.last_refusal, reason);
	store_last(ctx, req, text);
	if ((ctx->logged_refusals & UINT32_C(1) << reason) != 0)
		return;
	ctx->logged_refusals |= UINT32_C(1) << reason;
	LEASE_LOG(WARNING,
			"QP 0x%06x%s: no lease of %u bytes at %p of MR %p: %s (later refusals for this reason are only counted)",
			ctx->qp->qp_num, rmem_name_text(ctx->name, &name), req->length, req->addr,
			(const void *)req->mr, text);
}
