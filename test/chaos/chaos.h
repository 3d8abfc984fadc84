/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * dpdk-test-rmem-chaos: all objects and all kinds of request at once, from several lcores and
 * control threads, with allocations that fail.
 *
 * A slot is two pages of one thread, between guards. A grant is a key for some of its bytes. The
 * owner fills these bytes with the fill pattern of the grant and publishes it; every lcore reads
 * it, or writes the stamp pattern of the grant. The owner revokes the grant, after which nothing
 * but the fill and the stamp of this grant may be in these bytes, and nothing but the quiet
 * pattern in the others; it makes all of the slot quiet, and looks again before the next grant.
 *
 * Invariant: a byte of a slot changes only within a grant, between its publication and its end.
 */

#ifndef CHAOS_H
#define CHAOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmem.h>
#include <rmem_lease.h>

#define CH_PAGE         4096u
#define CH_DATA         (2u * CH_PAGE)
#define CH_GRAIN        8u
#define CH_NB_GRAINS    (CH_DATA / CH_GRAIN)
#define CH_NB_SLOTS     16u /* of each thread */
#define CH_MAX_LCORES   3u
#define CH_NB_CONTROLS  2u
#define CH_MAX_THREADS  (CH_MAX_LCORES + CH_NB_CONTROLS)
#define CH_NB_QPS       4u /* of each lcore; an even number in all */
#define CH_MAX_QPS      (CH_MAX_LCORES * CH_NB_QPS)
#define CH_NB_PDS       2u
#define CH_NB_ENTRIES   (CH_MAX_THREADS * CH_NB_SLOTS * 2u)
#define CH_DEPTH        32u
#define CH_NB_PENDING   256u
#define CH_NB_RECVS     8u
#define CH_RECV_SIZE    256u
#define CH_SCRATCH_SIZE 1024u
#define CH_NB_LAST      16u
#define CH_DEADLINE_S   600u
/* Fewer than the tags of an index: an earlier reuse of a key is a defect. */
#define CH_MAX_AGE 200u
#define CH_NO_QP   UINT32_MAX
/* In the wr_id of a receive. */
#define CH_RECV_BIT (UINT64_C(1) << 47)
#define CH_ACCESS   (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE)

enum ch_state {
	CH_NONE = 0,
	CH_LIVE = 1,     /* what fits it must succeed */
	CH_UNSURE = 2,   /* what fits it may succeed or not */
	CH_ENDED = 3,    /* nothing may succeed */
	CH_CHANGING = 4, /* rights and PD may be others already; as CH_UNSURE otherwise */
};

/* Description of a key for a peer. */
struct ch_grant {
	uint64_t id; /* 0: none */
	uint64_t addr;
	uint32_t length;
	uint32_t rkey;
	uint32_t access;
	uint32_t pd;
	uint32_t only_qp; /* the QP that it is valid for, or CH_NO_QP */
	uint32_t inv_qp;  /* QP that a SEND_WITH_INV of it may arrive at, or CH_NO_QP */
	uint32_t state;   /* enum ch_state */
	uint32_t version; /* of the entry */
	const char *kind; /* for the report */
};

struct ch_slot {
	uint8_t *mem;                  /* CH_DATA bytes, a guard page on either side */
	uint8_t is_open[CH_NB_GRAINS]; /* granules that the grant covers */
	uint64_t id;                   /* of the grant, 0: quiet */
	unsigned int entry;            /* of the table, for the present grant */
	unsigned int index;            /* among all slots */
	int fd;                        /* its memfd */
};

/* A request that was posted and has not completed. */
struct ch_pending {
	uint64_t seq;
	uint32_t epoch;
	uint8_t opcode;
	bool is_signaled;
	bool is_refused;
	bool is_bad_lkey;
	bool is_sum; /* adds to chaos::sum */
	unsigned int entry;
	struct ch_grant grant;
	uint32_t offset; /* in the grant */
	uint32_t length;
	int bind; /* of the lcore's bindings, or -1 */
};

struct ch_queue {
	struct ch_pending pending[CH_NB_PENDING];
	uint64_t head, tail; /* sequence numbers */
};

struct ch_thread;

/* A QP; all but addr and the lock is for its lcore. */
struct ch_qp {
	uint32_t lock; /* of qp and addr */
	struct rmem_qp *qp;
	struct rmem_qp_addr addr;
	unsigned int index; /* among all */
	unsigned int pd;
	struct ch_thread *owner;
	uint32_t epoch;
	struct ch_queue sends;
	struct ch_queue recvs;
	uint32_t nb_messages;            /* sent in this epoch */
	uint32_t peer_epoch, peer_count; /* the message expected next */
	bool is_fresh;                   /* messages may have been lost by a reset of ours */
	uint8_t *scratch;                /* CH_NB_PENDING areas */
	uint8_t *recv_bufs;              /* CH_NB_RECVS buffers and their guards */
	bool is_posted[CH_NB_RECVS];
	uint32_t vendor_err; /* of the last completion */
	bool is_connected;
	bool has_failed; /* a completion has shown that it is in ERR */
};

struct ch_binds;
struct ch_leases;

struct ch_thread {
	unsigned int index;
	char name[16];
	bool is_lcore;
	uint64_t random;
	uint64_t nb_ops;
	uint64_t nb_succeeded;
	uint64_t nb_refused;
	uint64_t nb_grants;
	uint64_t nb_failed_allocs;
	char last[CH_NB_LAST][112];
	struct ch_slot slots[CH_NB_SLOTS];
	struct rmem_cq *cq;
	struct rmem_mr *local; /* over scratch and receives of all QPs */
	uint8_t *local_mem;
	size_t local_size;
	struct ch_qp *qps[CH_NB_QPS];
	struct ch_binds *binds;
	struct ch_leases *leases;
};

struct chaos {
	struct rmem_dev *dev;
	struct rmem_pd *pds[CH_NB_PDS];
	struct ch_thread threads[CH_MAX_THREADS];
	unsigned int nb_lcores;
	unsigned int nb_threads;
	struct ch_qp qps[CH_MAX_QPS];
	unsigned int nb_qps;
	uint64_t ids;           /* grants so far; atomic */
	struct rmem_mr *sum_mr; /* eight bytes that all lcores add to */
	uint64_t *sum;          /* its bytes */
	uint64_t nb_added;      /* additions that succeeded; atomic */
	uint64_t nb_lost;       /* additions that a reset dropped; atomic */
	uint32_t is_stopped;    /* atomic */
	uint32_t is_failed;     /* atomic */
	uint64_t seed;
};

extern struct chaos ch;

/* chaos.c */
uint32_t ch_below(struct ch_thread *t, uint32_t limit);
bool ch_one_in(struct ch_thread *t, uint32_t n);
bool ch_is_stopped(void);
void ch_lock(uint32_t *lock);
void ch_unlock(uint32_t *lock);
/* The operation that is about to be done, for the report. */
void ch_note(struct ch_thread *t, const char *format, ...) __rte_format_printf(2, 3);
/* The first failure is reported and ends the run. Always false. */
bool ch_fail(struct ch_thread *t, const char *file, int line, const char *format, ...)
		__rte_format_printf(4, 5);
uint64_t ch_deadline(void);
bool ch_is_late(uint64_t deadline);

#define CH_FAIL(t, ...)             ch_fail(t, __FILE__, __LINE__, __VA_ARGS__)
#define CH_CHECK(t, condition, ...) ((condition) || ch_fail(t, __FILE__, __LINE__, __VA_ARGS__))
/* A call that ended with 0 or one of these errnos, up to six of them. */
#define CH_ALLOWED(t, ret, ...)                                                                    \
	ch_allowed(t, __FILE__, __LINE__, ret, (const int[]){__VA_ARGS__, 0})
bool ch_allowed(struct ch_thread *t, const char *file, int line, int ret, const int *errnos);

/* chaos_grant.c */
uint8_t ch_fill_byte(uint64_t id, size_t pos);
uint8_t ch_stamp_byte(uint64_t id, size_t pos);
uint64_t ch_fill_word(uint64_t id);
uint64_t ch_stamp_word(uint64_t id);
/* Whether the bytes, the first of which is at pos modulo 8, are of the grant. */
bool ch_is_of(uint64_t id, size_t pos, const uint8_t *bytes, size_t length);
bool ch_slots_open(struct ch_thread *t);
void ch_slots_close(struct ch_thread *t);
/* A slot of the thread without a grant, or NULL. */
struct ch_slot *ch_slot_find(struct ch_thread *t);
/* Begin a grant, after checking that no byte of the slot is modified. */
bool ch_slot_begin(struct ch_thread *t, struct ch_slot *slot);
/* Fill bytes that the grant will cover; multiples of CH_GRAIN. */
void ch_slot_open(struct ch_slot *slot, size_t offset, size_t length);
/* The grant has ended; check all bytes and reset them. */
bool ch_slot_end(struct ch_thread *t, struct ch_slot *slot);
/* A random part of a slot. */
void ch_part(struct ch_thread *t, size_t *offset, size_t *length);

/* The grant of a slot in the table. */
void ch_publish(struct ch_thread *t, struct ch_slot *slot, const struct ch_grant *grant);
void ch_set_state(const struct ch_slot *slot, uint32_t state);
/* From LIVE to UNSURE, by one of several that try. */
bool ch_claim(unsigned int entry, uint64_t id);
void ch_read(unsigned int entry, struct ch_grant *grant);
unsigned int ch_pick(struct ch_thread *t, struct ch_grant *grant);

/* chaos_qp.c */
bool ch_qp_open(struct ch_thread *t, struct ch_qp *q);
bool ch_qp_tick(struct ch_thread *t, struct ch_qp *q);
bool ch_qp_reset(struct ch_thread *t, struct ch_qp *q);
bool ch_qp_drain(struct ch_thread *t, struct ch_qp *q);
bool ch_qp_close(struct ch_thread *t, struct ch_qp *q);
/* Completions in the CQ of the thread. */
bool ch_poll(struct ch_thread *t);
int ch_state_of(const struct ch_qp *q);
/* Whether it is connected according to the program: a query takes the lock of all QPs. */
bool ch_is_connected(const struct ch_qp *q);
struct ch_qp *ch_peer(const struct ch_qp *q);
/* Post one request of the kind of p; false: it was not accepted. */
bool ch_post(struct ch_thread *t, struct ch_qp *q, struct rmem_send_wr *wr,
		const struct ch_pending *p, bool *is_ok);
uint8_t *ch_scratch(const struct ch_qp *q, uint64_t seq);

/* chaos_request.c */
bool ch_request(struct ch_thread *t, struct ch_qp *q);
bool ch_done(struct ch_thread *t, struct ch_qp *q, const struct ch_pending *p, int status);
bool ch_received(struct ch_thread *t, struct ch_qp *q, const struct ch_pending *p,
		const struct rmem_wc *wc);
bool ch_post_recvs(struct ch_thread *t, struct ch_qp *q);
bool ch_recvs_drop(struct ch_thread *t, struct ch_qp *q);

/* chaos_bind.c */
bool ch_binds_open(struct ch_thread *t);
bool ch_binds_tick(struct ch_thread *t);
bool ch_binds_close(struct ch_thread *t);
/* A request of a binding completed. */
bool ch_bind_done(struct ch_thread *t, int bind, int status);
/* A peer invalidated an rkey. */
bool ch_bind_invalidated(struct ch_thread *t, uint32_t rkey);
/* A QP was reset, or is about to be destroyed. */
void ch_bind_lost(struct ch_thread *t, const struct ch_qp *q, bool is_destroyed);

/* chaos_lease.c */
bool ch_leases_open(struct ch_thread *t);
bool ch_leases_tick(struct ch_thread *t);
bool ch_leases_close(struct ch_thread *t);
bool ch_leases_recover(struct ch_thread *t, const struct ch_qp *q);
/* Remove the completions of leases; the number of others, or negative. */
int ch_leases_take(struct ch_thread *t, struct rmem_wc *wc, unsigned int nb);

/* chaos_control.c, chaos_objects.c */
void *ch_control(void *arg);
bool ch_objects_tick(struct ch_thread *t);

/* chaos_fail.c: allocations that fail for the calling thread, one in n; 0: none. */
void ch_fail_allocs(uint32_t one_in, uint64_t seed);
uint64_t ch_failed_allocs(void);

#endif /* CHAOS_H */
