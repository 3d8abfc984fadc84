/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by the files of the lease library. Not installed.
 *
 * Inside: leases (keys of one buffer), their deadlines, descriptors and backends.
 * Callers: applications and app/, by rmem_lease.h and rmem_lease_desc.h.
 * Not known here: drivers, where buffers come from (pools), and connections.
 *
 * A context is used by one thread: nothing in it is locked. Each slot has one owner at a time:
 *
 *   FREE      the context: in `free` with an invalid key, in `quarantined` with a key that has no
 *             tags left, in `empty` without a key, or in no list with a key that is stuck
 *   PREPARED  the application, and `staged`
 *   GRANTING  the application, and the send queue: `ops` holds its REG_MR until that completes
 *   GRANTED   the application
 *   REVOKING  the peer may still access the buffer: in `revokes` until the LOCAL_INV is accepted,
 *             then in `ops` until that completes
 *   LOST      no owner: the state of the key is unknown until rmem_lease_recover() has released it
 *   ENDED     the application may reuse the buffer: in `ended` until it is reclaimed
 *
 * The requests of a send queue complete in order. So a completion covers all preceding entries of
 * `ops`, and a lease ends only when its LOCAL_INV, or a later request, completed with success;
 * when the peer's invalidation was received; or when its key was released.
 *
 * Invariant: the MR of each slot that is not FREE is held, so that its memory can't be deregistered
 * or exchanged by re-registration while a key of the context may grant access to it. Leases of one
 * MR share a reference (rmem_lease_hold.c).
 */

#ifndef RMEM_LEASE_PRIV_H
#define RMEM_LEASE_PRIV_H

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include <rmem.h>
#include <rmem_lease.h>
#include <rmem_log.h>
#include <rmem_obj_ref.h>

extern int rmem_lease_logtype;

/** Log a line: LEASE_LOG(ERR, "format", ...). */
#define LEASE_LOG(level, ...) RMEM_LOG_LINE(level, rmem_lease_logtype, "rmem_lease", __VA_ARGS__)

/** Refuse a call: return LEASE_FAIL(EINVAL, "format", ...). */
#define LEASE_FAIL(error, ...) RMEM_FAIL_AS(rmem_lease_logtype, "rmem_lease", error, __VA_ARGS__)

/** Tag of a context, in addition to those of enum rmem_obj_type. */
#define LEASE_TAG UINT32_C(0x726d0101)
/** Maximum number of requests per post, without those of the application. */
#define LEASE_BURST RMEM_LEASE_MAX_PREPARED
/** Rights of a peer that need LOCAL_WRITE. */
#define LEASE_MODIFY (RMEM_ACCESS_REMOTE_WRITE | RMEM_ACCESS_REMOTE_ATOMIC)
/** Tags of a key. */
#define LEASE_TAGS 256
/** Leases of a key between two quarantines. The last tag is left for bind_again(). */
#define LEASE_USES (LEASE_TAGS - 1)
/** Tags that are copied to the slot of a key at a time. */
#define LEASE_NEXT 16
/** Words of random numbers per fill: whole groups of blocks. */
#define LEASE_RANDOM 1024u
/** Words for the tags of a key. */
#define LEASE_SHUFFLE ((LEASE_TAGS - 1) / 3)
/** Not in the heap. */
#define LEASE_NOWHERE UINT32_MAX
/** Low bits of an id: the slot, below a bit that is 0. The others are a counter. */
#define LEASE_ID_BITS 21
/** That bit in an op: the request is a LOCAL_INV. */
#define LEASE_OP_INV (UINT32_C(1) << (LEASE_ID_BITS - 1))
/** Entries of `recent`. */
#define LEASE_RECENT 8
/** Samples of a context: of its creation, and the latest. */
#define LEASE_SAMPLES 16
/** Maximum number of pages of a buffer if the device has larger pages. */
#define LEASE_PAGES 9

/** Count: read by any thread, written only by the owner of the context. */
#define LEASE_COUNT(counter, n) __atomic_store_n(&(counter), (counter) + (n), __ATOMIC_RELAXED)
#define LEASE_SET(gauge, value) __atomic_store_n(&(gauge), (value), __ATOMIC_RELAXED)

/** Change the state of a lease, after what it must be consistent with. */
#define LEASE_SET_STATE(lease, to) __atomic_store_n(&(lease)->state, (to), __ATOMIC_RELEASE)

/**
 * A lease and its key.
 *
 * Telemetry reads leases while the owner of the context reuses the slot. Invariant: the owner
 * stores FREE, then the id of the next lease, then its fields, then its state, each with release.
 * So a reader that finds a state other than FREE between two loads of the same id has read the
 * fields of that lease.
 */
struct lease_slot {
	struct rmem_lease lease; /* FREE: the previous lease, with the rkey of the key */
	union {
		struct rmem_mr *mr; /* fast-register or indirect */
		struct rmem_mw *mw;
	};
	union {
		struct rmem_fast_reg_page_list *list; /* for a fast-register MR */
		struct rmem_mkey_entry *entry;        /* for an indirect MR, in `entries` */
	};
	uint64_t quarantined_at; /* TSC, while quarantined */
	struct lease_hold *hold; /* of lease.mr, unless FREE */
	uint64_t serial;         /* number of leases granted or staged before */
	uint32_t heap_at;        /* index in the heap of deadlines, or LEASE_NOWHERE */
	uint16_t nb_tags;        /* tags used since the last quarantine */
	bool has_key : 1;
	bool is_peer_inv : 1;     /* REVOKING: the peer has also invalidated the key */
	bool has_bind_failed : 1; /* the bind of the key failed after its lease had ended */
	bool is_stuck : 1;        /* the key could not be released: the slot is in no list */
	uint8_t next[LEASE_NEXT]; /* tags, from the last multiple of LEASE_NEXT on */
} __rte_cache_aligned;

static_assert(sizeof(struct lease_slot) == 128, "a lease and its key are two cache lines");

/** FIFO of slot numbers, with an entry for each slot. */
struct lease_fifo {
	uint32_t *ring;
	uint32_t mask;
	uint32_t head; /* next to remove */
	uint32_t tail; /* next to add */
};

/** A deadline. */
struct lease_due {
	uint64_t deadline;
	uint32_t slot;
};

/** A reference to an MR, which leases of the MR share. */
struct lease_hold {
	struct rmem_mr *mr; /* NULL while no lease uses it */
	uint32_t nb;        /* Number of leases. */
	uint32_t next;      /* number of the next free hold */
	uint32_t access;    /* rights that leases of the MR may have; 0: check_req() decides */
	uint32_t rkey;      /* rkey of the MR, for telemetry; atomic */
	uint64_t to_iova;   /* iova of a byte minus its address; wraps around */
};

/** Number of leases granted until a point in time, to estimate the age of a lease. */
struct lease_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t granted;
};

/** Operations of a backend. */
struct lease_ops {
	const char *name;
	uint64_t capa;
	uint8_t opcode; /* of the request that binds a key */
	/* Allocate the key of a slot; -errno of the class. */
	int (*make)(struct rmem_lease_ctx *ctx, struct lease_slot *slot);
	/* Release the key, valid or not. */
	int (*release)(struct lease_slot *slot);
	/*
	 * Fill the unsignaled requests that bind the keys of nb slots with their tags, and their
	 * entries of `ops`, from ops_tail on. Fields that do not change are those of
	 * rmem_lease_ctx::wr.
	 */
	void (*fill)(struct rmem_lease_ctx *ctx, const uint32_t *number, uint32_t nb,
			struct rmem_send_wr *wr);
};

struct rmem_lease_ctx {
	struct rmem_obj obj;
	uint32_t wr_tag; /* upper half of a wr_id; the lower half is the index in `ops` */
	struct rmem_qp *qp;
	struct rmem_dev *dev;
	const struct lease_ops *backend;
	struct lease_slot *slots;
	uint8_t (*tags)[LEASE_TAGS]; /* by slot: all 256, of which the first nb_tags are used */

	/* Requests in the send queue; see lease_op(). */
	uint32_t *ops;
	uint32_t ops_mask;
	uint32_t ops_head;      /* oldest not completed */
	uint32_t ops_tail;      /* next to post */
	uint32_t nb_unsignaled; /* requests after the last signaled one */
	uint32_t signal_every;  /* nb_unsignaled is always below it */

	uint32_t nb_free;
	uint32_t low_free; /* lowest nb_free since rmem_lease_trim() */
	uint32_t *free;    /* stack: the key used last is granted first */
	uint32_t *empty;   /* stack */
	uint32_t nb_empty;
	uint32_t nb_slots;
	struct lease_fifo quarantined;
	struct lease_fifo revokes;
	struct lease_fifo ended;

	struct lease_due *heap; /* the next deadline first */
	uint32_t nb_due;
	uint32_t access;   /* rights of the QP's peer */
	uint32_t mr_needs; /* right that the backend needs of an MR */
	uint32_t max_length;
	uint32_t logged_refusals;   /* a bit for each logged reason */
	bool is_zero_based;         /* the remote_addr of leases is 0 */
	bool has_iova;              /* otherwise it is an address in the iova of their MR */
	uint32_t log2_page_size;    /* page size of page lists */
	uint32_t max_page_list_len; /* pages of a buffer */
	uint64_t quarantine;        /* TSC cycles */
	uintptr_t min_addr;         /* lowest address of a buffer: no page list has the page at 0 */
	uint32_t mr_flags_bad; /* rmem_mr_drv::flags of MRs that the backend does not support */

	uint32_t free_hold;            /* number of the first free hold */
	uint32_t recent[LEASE_RECENT]; /* hashed by MR: a hold that may be of this MR */
	struct lease_hold *holds;      /* one for each slot, and one for the burst */

	uint32_t *map; /* slot + 1 by the index of its key; see rmem_lease_map_find() */
	uint32_t map_mask;
	uint32_t map_used;
	uint32_t nb_random; /* words left of random */
	uint32_t nb_staged;
	uint32_t staged[LEASE_BURST];
	struct rmem_mkey_entry *entries; /* entries of indirect keys */
	struct rmem_lease_stats stats;   /* gauges as of the last burst */
	uint32_t random[LEASE_RANDOM];
	TAILQ_ENTRY(rmem_lease_ctx) next; /* list of all contexts */
	char name[RMEM_NAME_SIZE];
	struct lease_sample samples[LEASE_SAMPLES]; /* under the lock of the list */
	uint32_t nb_samples;
	char refusal[128]; /* last refusal, or empty; under the lock of rmem_lease_refuse.c */
	uint64_t refused_ns;

	/* Of staged leases, up to the middle, then of the application. */
	struct rmem_send_wr wr[2 * LEASE_BURST];
	struct rmem_send_wr inv[LEASE_BURST];
};

/**
 * LEASE_TAG once this process has created a context. 0 before that, and in a child of fork() that
 * shares the memory of its parent: no context in shared memory belongs to the process then.
 */
extern uint32_t rmem_lease_ctx_tag;

/** Set rmem_lease_ctx_tag, because a context was created. */
void rmem_lease_set_tag(void);

/** Return 0, or -EINVAL with a log line; -EOPNOTSUPP in a secondary process. */
int rmem_lease_check_ctx(const struct rmem_lease_ctx *ctx);

/** Check a context on the fast path, without a log line. */
static inline bool
lease_is_ctx(const struct rmem_lease_ctx *ctx)
{
	return likely(ctx != NULL && ctx->obj.type == rmem_lease_ctx_tag);
}

static inline uint32_t
lease_number(const struct rmem_lease_ctx *ctx, const struct lease_slot *slot)
{
	return (uint32_t)(slot - ctx->slots);
}

/*
 * A request in the send queue: the low half of the id of its lease, and LEASE_OP_INV. So it has low
 * bits of the count of leases, which distinguish a REG_MR of the current lease from a REG_MR of an
 * earlier lease, which the peer has ended.
 */
static inline uint32_t
lease_op(const struct lease_slot *slot, bool is_inv)
{
	return (uint32_t)slot->lease.id | (is_inv ? LEASE_OP_INV : 0);
}

/* The slot of a request. */
static inline uint32_t
lease_op_number(uint32_t op)
{
	return op & (LEASE_OP_INV - 1);
}

static inline struct lease_slot *
lease_op_slot(const struct rmem_lease_ctx *ctx, uint32_t op)
{
	return &ctx->slots[lease_op_number(op)];
}

/*
 * Signal the last of nb unsignaled requests that are posted next. Only completions free entries of
 * the queue. So enough others are signaled to keep the queue from being full of unsignaled ones.
 */
static inline void
lease_signal(const struct rmem_lease_ctx *ctx, struct rmem_send_wr *wr, uint32_t nb)
{
	uint32_t i;

	for (i = ctx->signal_every - 1 - ctx->nb_unsignaled; unlikely(i < nb);
			i += ctx->signal_every)
		wr[i].flags = RMEM_SEND_SIGNALED;
	if (likely(nb != 0))
		wr[nb - 1].flags = RMEM_SEND_SIGNALED;
}

/*
 * Update nb_unsignaled: the first `posted` of n requests with flags of lease_signal() were posted.
 */
static inline void
lease_posted(struct rmem_lease_ctx *ctx, uint32_t posted, uint32_t n)
{
	if (likely(posted == n && n != 0))
		ctx->nb_unsignaled = 0;
	else
		ctx->nb_unsignaled = (ctx->nb_unsignaled + posted) % ctx->signal_every;
}

/* Publish the counts, after a burst. */
static inline void
lease_gauge(struct rmem_lease_ctx *ctx)
{
	LEASE_SET(ctx->stats.nb_free, ctx->nb_free);
	LEASE_SET(ctx->stats.nb_quarantined, ctx->quarantined.tail - ctx->quarantined.head);
}

static inline void
lease_fifo_put(struct lease_fifo *fifo, uint32_t slot)
{
	fifo->ring[fifo->tail++ & fifo->mask] = slot;
}

static inline bool
lease_fifo_is_empty(const struct lease_fifo *fifo)
{
	return fifo->head == fifo->tail;
}

static inline uint32_t
lease_fifo_get(struct lease_fifo *fifo)
{
	return fifo->ring[fifo->head++ & fifo->mask];
}

/* References to MRs (rmem_lease_hold.c). */

/** Initialize nb holds, all free. */
void rmem_lease_hold_init(struct rmem_lease_ctx *ctx, uint32_t nb);
/** As lease_hold(), with a new reference; *recent is set to its hold. */
struct lease_hold *rmem_lease_hold_new(
		struct rmem_lease_ctx *ctx, struct rmem_mr *mr, uint32_t *recent);
/** Release the reference of a hold that no lease shares any more. */
void rmem_lease_hold_end(struct rmem_lease_ctx *ctx, struct lease_hold *hold);

/** Hold an MR for one more lease; NULL when it is being deregistered or re-registered. */
static inline struct lease_hold *
lease_hold(struct rmem_lease_ctx *ctx, const struct rmem_mr *mr)
{
	uint32_t *recent = &ctx->recent[(uintptr_t)mr / RTE_CACHE_LINE_SIZE % LEASE_RECENT];
	struct lease_hold *hold = &ctx->holds[*recent];

	if (unlikely(hold->mr != mr))
		return rmem_lease_hold_new(ctx, (struct rmem_mr *)(uintptr_t)mr, recent);
	LEASE_COUNT(hold->nb, 1);
	return hold;
}

/** Change the number of leases that share a hold. */
static inline void
lease_share(struct rmem_lease_ctx *ctx, struct lease_hold *hold, int32_t change)
{
	LEASE_COUNT(hold->nb, (uint32_t)change);
	if (unlikely(hold->nb == 0))
		rmem_lease_hold_end(ctx, hold);
}

/* Refusals (rmem_lease_refuse.c). */

/** Count and trace a buffer that was refused by an -errno, and log the first for each reason. */
void rmem_lease_refuse(struct rmem_lease_ctx *ctx, const struct rmem_lease_req *req, int error);

/** Get the last refusal, or an empty text; return its CLOCK_REALTIME in ns. */
uint64_t rmem_lease_last_refusal(struct rmem_lease_ctx *ctx, char *text, size_t size);

/* Deadlines (rmem_lease_heap.c). */
void rmem_lease_heap_add(struct rmem_lease_ctx *ctx, struct lease_slot *slot);
void rmem_lease_heap_del(struct rmem_lease_ctx *ctx, struct lease_slot *slot);

/* Keys (rmem_lease_key.c). */

/** Select the backend of a configuration; NULL: the device does not support it. */
const struct lease_ops *rmem_lease_ops_find(uint32_t backend, uint64_t capa);
/** Backend of enum rmem_lease_backend, or NULL beyond the last. */
const struct lease_ops *rmem_lease_ops_of(uint32_t backend);
/** Number of a backend: enum rmem_lease_backend. */
uint32_t rmem_lease_ops_number(const struct lease_ops *ops);
/** Allocate keys for nb empty slots, which become free; -errno if one failed. */
int rmem_lease_make(struct rmem_lease_ctx *ctx, uint32_t nb);
/** Ensure that `free` has a key: end a quarantine, or allocate keys; -errno if none is
 * available. */
int rmem_lease_refill(struct rmem_lease_ctx *ctx);
/**
 * Release the key of a slot. Return 0, -EBUSY (a request that uses the key has not completed), or
 * -EIO with a log line (the slot is stuck; a later release may succeed). Call
 * rmem_lease_prune_lists() afterwards.
 */
int rmem_lease_release(struct rmem_lease_ctx *ctx, struct lease_slot *slot);
/** Remove slots that have no key, or are stuck, from `free` and the quarantine. */
void rmem_lease_prune_lists(struct rmem_lease_ctx *ctx);
/** As rmem_lease_release(), then allocate another key. If that fails, the slot has no key. */
int rmem_lease_replace(struct rmem_lease_ctx *ctx, struct lease_slot *slot);
/** Find the slot whose key currently has this rkey, or NULL. */
struct lease_slot *rmem_lease_map_find(const struct rmem_lease_ctx *ctx, uint32_t rkey);
/** Return a slot to the context: free, quarantined or empty. */
void rmem_lease_put(struct rmem_lease_ctx *ctx, struct lease_slot *slot);

/** Whether the key of a slot can be granted again before a quarantine. */
static inline bool
lease_is_reusable(const struct lease_slot *slot)
{
	return slot->has_key && !slot->is_stuck && slot->nb_tags < LEASE_USES;
}

/* Tags (rmem_lease_random.c). */

/** Fill an array with random numbers, which can't be computed from earlier ones. */
void rmem_lease_random_fill(uint32_t random[LEASE_RANDOM]);
/** Copy the next of the tags of a key to its slot, after a shuffle if it has used none. */
void rmem_lease_next_tags(
		struct rmem_lease_ctx *ctx, struct lease_slot *slot, uint8_t tags[LEASE_TAGS]);

/* Take the next tag of a key. Previous tags reveal only that it differs from them. */
static inline uint8_t
lease_take_tag(struct rmem_lease_ctx *ctx, struct lease_slot *slot)
{
	uint32_t i = slot->nb_tags % LEASE_NEXT;

	if (unlikely(i == 0))
		rmem_lease_next_tags(ctx, slot, ctx->tags[lease_number(ctx, slot)]);
	slot->nb_tags++;
	return slot->next[i];
}

/* Return the last tag, which no peer has received. */
static inline void
lease_return_tag(struct lease_slot *slot)
{
	slot->nb_tags--;
}

/* Ends (rmem_lease_revoke.c). */

/** End a lease: the peer can no longer access the buffer. */
void rmem_lease_slot_end(struct rmem_lease_ctx *ctx, struct lease_slot *slot, uint8_t why);

/* All contexts (rmem_lease_telemetry.c). */
/** Check the invariants of a context of the device. Return 0, or -EIO with a log line. */
int rmem_lease_audit_ctx(const struct rmem_lease_ctx *ctx, const struct rmem_dev *dev);

void rmem_lease_list_add(struct rmem_lease_ctx *ctx);
void rmem_lease_list_del(struct rmem_lease_ctx *ctx);

#endif /* RMEM_LEASE_PRIV_H */
