/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The software device: its objects, and their synchronization.
 *
 * Inside: structs of the software device, its locks, lists of numbers and profiles.
 * Callers: all other folders of drivers/soft.
 * Not known here: keys in use, queues, packets and peers of other processes.
 *
 * All objects are in DPDK shared memory and contain no function pointers.
 *
 * Writers, readers, and their ordering:
 * - A key (struct rsoft_key) is read by any lcore that executes requests, between
 *   rsoft_grace_enter() and rsoft_grace_leave(). Its fields change only while its word lacks
 *   RSOFT_VALID and no lcore that loaded it as valid is still inside: the word is stored with
 *   release when it becomes valid, loaded with acquire by each reader, and invalidated at least one
 *   grace period before a field changes (rsoft_grace.h).
 * - The send queue of a QP is executed by one thread at a time: the holder of sq.lock (a thread
 *   that posts, or polls any CQ of the device), or the service lcore of its engine.
 * - The receive queue has one producer, the thread that posts to the QP, and one consumer at a
 *   time, the holder of rq.lock: an lcore that executes requests of the peer, or a thread that
 *   flushes. No thread holds two rq.locks, and none takes an sq.lock while it holds one. With an
 *   SRQ the consumer is also the producer (rsoft_srq.h).
 * - QP state: any thread may move it to ERR by compare-and-swap, except from RESET; all other
 *   transitions are made by control calls, one at a time (rsoft_qp::ctl_lock; rsoft_qp.c). The
 *   thread that moves the QP to ERR then loads rq.prod and flushes; the thread that posts receives
 *   stores rq.prod, then loads the state, and flushes if it is ERR. All four accesses are SEQ_CST,
 *   so at least one of the two loads sees the store of the other thread, and no receive stays in a
 *   QP in ERR.
 * - A CQ has many producers and one consumer (rsoft_cq.h).
 * - rsoft_domain::lock protects connections and the tables of QPs; rsoft_dev::lock protects the
 *   free list of the key table. No thread waits for a grace period while it holds either. ctl_lock
 *   of a QP is taken before all other locks, then ctl_lock of a CQ: only control calls take them,
 *   and hold them during their grace period. The lock of a CQ is taken last, before only the lock
 *   of its channel.
 */

#ifndef RSOFT_H
#define RSOFT_H

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_ticketlock.h>

#include <rmem_driver.h>

#include "rsoft_lock.h"

struct rsoft_chaos;
struct rsoft_chaos_cq;
struct rsoft_chaos_qp;
struct rsoft_group;
struct rsoft_srq;
struct rsoft_xrcd;
struct rwire_xrc_qp_listener;
struct rwire_xrc_qp_out;
struct rwire;
struct rwire_qp;

extern int rsoft_logtype;

/* Log a line; not a cancellation point, because the caller may hold locks. */
#define RSOFT_LOG(level, ...)                                                                      \
	do {                                                                                       \
		int log_state_ = rsoft_cancel_disable();                                           \
		RMEM_LOG_LINE(level, rsoft_logtype, "rmem_soft", __VA_ARGS__);                     \
		rsoft_cancel_restore(log_state_);                                                  \
	} while (0)

/* The text that follows the number of a QP in log lines: its name. */
#define RSOFT_QP_NAME(qp) rmem_name_text(rmem_qp_name(qp), &(struct rmem_name_text){.text = ""})

/* Add to a counter that has one writer; n may be negative. */
#define RSOFT_COUNT(counter, n) __atomic_store_n(&(counter), (counter) + (n), __ATOMIC_RELAXED)

#define RSOFT_MAX_ENGINES     8
#define RSOFT_GSI_QP          1 /* QP number of the general services QP */
#define RSOFT_FIRST_QP        2 /* first entry for other QPs */
#define RSOFT_MAX_RD_ATOMIC   16
#define RSOFT_MTU_NONE        5 /* 4096, as enum of verbs; for devices without packets */
#define RSOFT_LID             1 /* LID of devices without a wire */
#define RSOFT_MAX_SGE         16
#define RSOFT_MAX_DEPTH       16 /* of indirect keys */
#define RSOFT_MAX_INLINE_RECV 64
#define RSOFT_MAX_MSG_SIZE    (UINT64_C(1) << 31)  /* IBTA: 2^31 bytes per message */
#define RSOFT_PAGE_SIZE_CAP   UINT64_C(0x7ffff000) /* 4 KiB to 1 GiB */
#define RSOFT_ACCESS          (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE | RMEM_ACCESS_FLUSH)

/*
 * Unless keys=same, an lkey is the rkey with all bits of its tag inverted, so that neither is valid
 * in place of the other (rsoft_dev::lkey_xor).
 */
#define RSOFT_LKEY_XOR UINT32_C(0xff)

/*
 * Upper half of the word of a key: RMEM_ACCESS_* in the low bits, then other permissions and the
 * state: VALID, BUSY, or neither of them for FREE.
 */
#define RSOFT_VALID (UINT32_C(1) << 31)
#define RSOFT_SLOW  (UINT32_C(1) << 30) /* needs more than base + offset; see rsoft_access_slow() */
#define RSOFT_BUSY  (UINT32_C(1) << 29) /* being bound or invalidated */
#define RSOFT_LOCAL (UINT32_C(1) << 28) /* also valid as lkey */
#define RSOFT_INV   (UINT32_C(1) << 27) /* may be invalidated by requests */

/* An option of an access, not a right: fail instead of faulting in pages. */
#define RSOFT_PEEK (UINT32_C(1) << 26)

/* Rights needed to read, and to write, with an lkey. */
#define RSOFT_NEED_READ  (RSOFT_VALID | RSOFT_LOCAL)
#define RSOFT_NEED_WRITE (RSOFT_VALID | RSOFT_LOCAL | RMEM_ACCESS_LOCAL_WRITE)

/* Limits and options of a device; each has a row in rsoft_args.c. */
struct rsoft_args {
	uint64_t max_pd;
	uint64_t max_mr;
	uint64_t max_mw;
	uint64_t max_cq;
	uint64_t max_qp;
	uint64_t max_srq;
	uint64_t max_dm;
	uint64_t max_dm_size;
	uint64_t max_cqe;
	uint64_t max_wr;
	uint64_t max_sge;
	uint64_t max_inline;
	uint64_t max_mr_size;
	uint64_t max_page_list_len;
	uint64_t max_mkey_entries;
	uint64_t max_mkey_depth;
	uint64_t max_iov;
	uint64_t profile; /* enum rsoft_profile_arg */
	uint64_t pin;     /* enum rsoft_pin_arg */
	uint64_t keys;    /* enum rsoft_keys_arg */
	uint64_t engine;
	uint64_t odp_guard;
	uint64_t odp_uffd;
	uint64_t socket;   /* UINT64_MAX: any */
	uint64_t loop;     /* use packets also between QPs of this process */
	uint64_t share;    /* port=shm: peers map DPDK memory */
	uint64_t control;  /* accept rmem-ctl */
	uint64_t direct;   /* ip=host: peers may copy memory directly */
	uint64_t progress; /* RSOFT_PROGRESS_* */
	uint64_t sanitize; /* record the history of keys, and check threads */
	uint64_t mtu;      /* of the wire; 0: largest of the port */
	char ip[192];      /* of the wire, one for each port; empty: none */
	char port[64];     /* of the wire; empty: udp */
	char chaos[1024];  /* faults to inject, as rules; empty: none */
	char fault[128];   /* faults of packets; empty: none */
	char pcap[256];    /* file that records packets; empty: none */
	char allow[512];   /* peer addresses that are accepted; empty: all */
	char neigh[512];   /* static neighbours of an ethdev port; empty: none */
	char gids[1024];   /* GIDs of port 1 from index 1 on; empty: none */
	char pkeys[128];   /* P_Key table; empty: default P_Key only */
};

/* Values of progress=. */
enum rsoft_progress {
	RSOFT_PROGRESS_THREAD = 0,
	RSOFT_PROGRESS_POLL,
	RSOFT_PROGRESS_ENGINE,
	RSOFT_PROGRESS_NB,
};

/* Values of pin=. */
enum rsoft_pin_arg {
	RSOFT_PIN_ARG_AUTO = 0,
	RSOFT_PIN_ARG_REQUIRE,
	RSOFT_PIN_ARG_OFF,
	RSOFT_PIN_ARG_LOCK,
	RSOFT_PIN_ARG_NB,
};

/* Values of keys=. */
enum rsoft_keys_arg {
	RSOFT_KEYS_DIFFERENT = 0,
	RSOFT_KEYS_SAME,
	RSOFT_KEYS_NB,
};

/* Values of profile=, and their names. */
enum rsoft_profile_arg {
	RSOFT_PROFILE_NONE = 0,
	RSOFT_PROFILE_RXE,
	RSOFT_PROFILE_MLX5,
	RSOFT_PROFILE_VERBS,
	RSOFT_PROFILE_NB,
};

extern const char *const rsoft_profile_words[RSOFT_PROFILE_NB];

/* How a key maps offsets to memory. */
enum rsoft_kind {
	RSOFT_KIND_BASE = 0,  /* contiguous memory at base */
	RSOFT_KIND_PAGES = 1, /* page list, all pages of one size */
	RSOFT_KIND_LIST = 2,  /* list of memory ranges or of other keys (rsoft_list.h) */
	RSOFT_KIND_ODP = 3,   /* contiguous memory, on demand (rsoft_odp.h) */
};

struct rsoft_list;
struct rsoft_odp;
struct rsoft_key_hash;

/* An entry of the key table. An access with a KIND_BASE key reads only this cache line. */
struct rsoft_key {
	uint64_t word; /* rkey | rights << 32; atomic */
	uint64_t iova;
	uint64_t length;
	union {
		uint8_t *base;       /* KIND_BASE, KIND_ODP: first byte */
		uint64_t map_offset; /* others: offset of the first byte in the map */
	};
	union {                          /* the map, by kind */
		const uint64_t *pages;   /* KIND_PAGES */
		struct rsoft_list *list; /* KIND_LIST */
		struct rsoft_odp *odp;   /* KIND_ODP: table of pages */
	};
	struct rsoft_mr *mr; /* its MR; for a window, the MR it is bound to */
	uint64_t qp_serial;  /* type 2 window: rsoft_qp::serial of its QP; else 0 */
	uint32_t pd;
	uint8_t kind; /* enum rsoft_kind */
	uint8_t log2_page_size;
	uint8_t is_window; /* slot for windows */
	uint8_t is_taken;  /* owned by an MR or a window; under rsoft_dev::lock */
} __rte_aligned(RTE_CACHE_LINE_MIN_SIZE);

static_assert(sizeof(struct rsoft_key) == RTE_CACHE_LINE_MIN_SIZE, "a key is one cache line");

/* Allocator of ids in random order (rsoft_ids.c). */
struct rsoft_ids {
	uint32_t *free;
	uint32_t *at; /* by id - 1: its entry of free, if it is there; NULL before the first take */
	uint32_t nb_free;
	uint32_t max;
};

/* Slots for MRs, or for windows: id n is slot first + n - 1. */
struct rsoft_key_pool {
	struct rsoft_ids ids;
	struct rsoft_ids quarantined; /* quarantined slots, oldest first */
	uint32_t quarantine_head;
	uint32_t first;
};

struct rsoft_mw {
	struct rmem_mw mw;
	struct rsoft_key *key;
};

struct rsoft_mr {
	union {
		struct rmem_mr mr;
		struct rmem_mr_drv drv;
	};
	struct rsoft_key *key;
	/* On-demand MR: its page table. Fast-register MR: rsoft_odp_raw or NULL. */
	struct rsoft_odp *odp;        /* in the cache line of key */
	uint64_t nb_binds;            /* REG_MRs and UMRs that began; atomic; in that line */
	uint64_t *pages;              /* fast-register MR: copy of a scattered page list */
	struct rmem_counter *counter; /* counts requests that modify it; or NULL; atomic */
	struct rsoft_list *list;      /* of an indirect MR, or an MR of several ranges */
	uint8_t pin;                  /* result of rsoft_pin(); 0: not pinned */
};

/* Counters of on-demand paging; atomic, written by any thread. */
struct rsoft_odp_stats {
	uint64_t page_faults;
	uint64_t invalidations;
	uint64_t prefetches;
	uint64_t failed_faults;
	int64_t pages; /* pages with a bit set in a table */
};

/*
 * A completion in a ring: struct rmem_wc as words of 8 bytes, which are written and read as such. A
 * wide load stalls on preceding narrower stores, and a cache line that another core polls should be
 * written with few stores.
 */
struct rsoft_cqe {
	uint64_t wr_id;
	uint64_t info; /* status, opcode, flags, qp_num */
	uint64_t data; /* byte_len, imm_data or rkey */
	uint32_t vendor_err;
	uint32_t number; /* position + 1; atomic */
};

static_assert(sizeof(struct rsoft_cqe) == sizeof(struct rmem_wc) &&
				offsetof(struct rsoft_cqe, info) ==
						offsetof(struct rmem_wc, status) &&
				offsetof(struct rsoft_cqe, data) ==
						offsetof(struct rmem_wc, byte_len) &&
				offsetof(struct rsoft_cqe, number) ==
						offsetof(struct rmem_wc, reserved),
		"a completion in a ring has the layout of struct rmem_wc");

/* Which messages are delivered inline (rsoft_inline_put()). */
enum rsoft_inline_recv {
	RSOFT_INLINE_NONE,
	RSOFT_INLINE_OWN, /* messages sent by the lcore that polls */
	RSOFT_INLINE_ALL,
};

/* A message stored with its completion, and where a poll copies it (rsoft_inline.h). */
struct rsoft_inline {
	uint8_t data[RSOFT_MAX_INLINE_RECV];
	uint64_t addr;
	uint32_t lkey;
	uint32_t length;
	struct rsoft_qp *qp; /* NULL unless the message is pending; atomic */
	uint32_t vendor_err; /* not 0: the message was refused (RMEM_VENDOR_ERR_*) */
	uint32_t is_flushed; /* the QP was reset before the poll */
} __rte_aligned(2 * RTE_CACHE_LINE_MIN_SIZE);

/* The thread inside a call of a queue, with sanitize=1 (rsoft_thread_check.c). Atomic. */
struct rsoft_thread_check {
	uint64_t entry;           /* thread that entered last; 0: it has left */
	uint32_t nb_overlaps;     /* counter: calls at the same time */
	uint32_t nb_unregistered; /* counter: calls of threads not registered with EAL */
} __rte_cache_aligned;

struct rsoft_cq {
	struct rmem_cq cq;
	uint32_t mask;
	uint32_t nb_fast;      /* entries usable by rsoft_cq_write(); atomic */
	uint32_t overrun;      /* a completion was lost; atomic; in a line that each poll reads */
	uint32_t nb_producers; /* queues that complete to it; atomic */
	struct rsoft_cqe *ring;
	uint64_t *times;               /* timestamps of entries, then of a poll; NULL: none */
	struct rsoft_inline *messages; /* NULL until a QP needs them; atomic */
	uint32_t nb_messages;          /* a power of two; set before messages */
	uint32_t inline_lcore;         /* lcore of the last message; LCORE_ID_ANY: none; atomic */

	uint32_t prod __rte_cache_aligned; /* next entry to reserve; atomic */
	uint32_t cons_cached;              /* copy of cons; atomic */

	uint32_t cons __rte_cache_aligned; /* next entry to poll; atomic */
	uint32_t nb_found;                 /* non-empty polls since the last progress */
	uint64_t quiet_at;                 /* rwire::now when no QP could go on; 0: one could */

	uint32_t is_resizing;      /* rsoft_cq_write() must take lock; atomic */
	uint32_t nb_claims;        /* claims by a process; under ctl_lock, atomic */
	uint32_t process;          /* its number; under ctl_lock */
	uint64_t nb_lost;          /* counter: completions lost; atomic */
	rte_ticketlock_t lock;     /* protects ring and mask while they change */
	rte_ticketlock_t ctl_lock; /* serialises control calls */

	struct rsoft_chaos_cq *chaos; /* NULL unless rules of chaos= apply to it */
	struct rsoft_thread_check pollers;
};

/*
 * Result of a request: an enum rmem_wc_status once it has ended, or one of these values while it
 * waits at the head of its send queue.
 */
enum rsoft_wait {
	RSOFT_WAIT_NONE = 0,
	RSOFT_WAIT_GRACE = -1, /* executed, except for the grace period of an invalidation */
	RSOFT_WAIT_PEER = -2,  /* the peer is not ready */
	RSOFT_WAIT_RNR = -3,   /* the peer has no receive posted */
	/* Only of the wire; never in rsoft_sq::wait. */
	RSOFT_WAIT_WIRE = -4,  /* window or port is full, or an earlier request waits */
	RSOFT_WAIT_LOCAL = -5, /* sends no packet: execute locally */
	RSOFT_WAIT_AWAY = -6,  /* the process of the SRQ executes the packet (rwire_xrc.h) */
};

/* A completion written to the CQ, and the number of requests that it retires. */
struct rsoft_sig {
	uint32_t cq_pos;
	uint32_t sq_pos;
};

struct rsoft_sq {
	rte_ticketlock_t lock;
	uint32_t prod; /* requests queued so far; atomic */
	uint32_t cons; /* requests taken from the queue; atomic */
	uint32_t mask;
	uint32_t depth;
	uint32_t stride; /* bytes of a slot: request, SGEs, inline data */
	uint8_t *ring;
	uint32_t posted;   /* requests accepted so far */
	uint32_t done;     /* requests executed so far */
	uint32_t retired;  /* requests that no longer occupy the queue */
	uint32_t sig_head; /* position of the poster in sig[] */
	uint32_t sig_tail; /* position of the executor in sig[]; atomic */
	uint32_t sig_mask;
	struct rsoft_sig *sig;
	uint8_t is_pending; /* in rsoft_dev::pending; under pending_lock */

	int8_t wait;               /* enum rsoft_wait */
	bool has_to_report;        /* SQD: generate an event at the end of draining */
	uint8_t rnr_left;          /* attempts left */
	uint32_t nb_inv;           /* WAIT_GRACE: number of waiting requests at the head */
	uint64_t token;            /* WAIT_GRACE: token of the grace period; 0: not started */
	uint64_t deadline;         /* WAIT_PEER, WAIT_RNR: TSC; 0 for never */
	struct rsoft_key *inv_key; /* WAIT_GRACE of a *_WITH_INV: key to free */
	uint32_t rq_pos;           /* WAIT_GRACE of SEND_WITH_INV: receive to complete */
};

/* Slot of the receive queue; SGEs follow. */
struct rsoft_rqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t pad;
	struct rmem_sge sge[];
};

/*
 * The thread that posts, and the lcore that executes requests of the peer, each have a line that
 * the other does not access. The line of cons moves between them only if the queue seems full, and
 * that of prod if it seems empty. Lines of 128 bytes hold two of these parts, since QPs are many.
 */
struct rsoft_rq {
	uint32_t prod __rte_cache_aligned; /* receives posted so far; atomic */
	uint32_t cons_cached;              /* producer's view of cons */

	/* Constant, as the next four. */
	uint32_t mask __rte_aligned(RTE_CACHE_LINE_MIN_SIZE);
	uint32_t depth;
	uint32_t stride;
	uint8_t *ring;
	struct rsoft_srq *srq; /* SRQ of the QP (rsoft_srq.h), or NULL */

	rte_ticketlock_t lock __rte_cache_aligned;
	uint32_t prod_cached; /* consumer's view of prod; under lock */
	uint64_t consumed;    /* counter: receives consumed by messages */
	uint64_t inlined;     /* counter: messages delivered inline */
	uint64_t faults;      /* counter: receives whose memory was not mapped */
	uint32_t nb_inline;   /* inline messages not polled; written under lock, atomic */
	uint32_t inline_first;
	uint32_t inline_last;
	bool is_established; /* a request arrived in RTR; by the responder */

	/* Consumed so far; written under lock, atomic. */
	uint32_t cons __rte_aligned(RTE_CACHE_LINE_MIN_SIZE);
};

/*
 * Bit of rsoft_qp::access, written by the executor of the peer's send queue (rsoft_inline.h).
 * rmem_qp_modify() writes the other bits, so each update is an atomic read-modify-write.
 */
#define RSOFT_QP_INLINE (UINT32_C(1) << 31)

/* In rsoft_qp::access: READs or WRITEs of the peer are counted; rsoft_count.h. Never cleared. */
#define RSOFT_QP_COUNTED (UINT32_C(1) << 30)

/* Bits of rsoft_qp::access that are not rights. */
#define RSOFT_QP_NO_RIGHTS (RSOFT_QP_INLINE | RSOFT_QP_COUNTED)

struct rsoft_qp {
	union {
		struct rmem_qp qp;
		struct rmem_qp_drv drv;
	};
	uint32_t state;  /* enum rmem_qp_state; atomic */
	uint32_t access; /* of RMEM_ACCESS_REMOTE and _FLUSH; RSOFT_QP_NO_RIGHTS; atomic */
	struct rsoft_dev *dev;
	struct rsoft_qp *peer;          /* NULL until resolved; atomic, valid until grace_leave */
	uint32_t pd;                    /* XRC_RECV: PD of the last request's SRQ (rsoft_xrc.h) */
	uint32_t xrcd;                  /* XRC_RECV: number of its domain; else 0 */
	const struct rmem_xrcd *domain; /* XRC_RECV: the handle that it was created with */
	uint64_t serial; /* unique within the device; its low 24 bits are the QP number */
	uint16_t sig_all;
	uint16_t max_recv_sge;
	uint8_t inline_recv; /* enum rsoft_inline_recv */
	uint8_t engine;
	uint8_t is_queued;     /* an engine or the wire executes its requests */
	uint8_t is_claimed;    /* a secondary process posts to it (rsoft_mp.c); atomic */
	uint8_t has_late_recv; /* rules of chaos= apply to its receives */
	uint8_t counts;        /* of enum rmem_qp_count, that have a counter; see rsoft_count.h */
	uint8_t has_bound;     /* type 2 windows were bound on it; by the executor of sq; atomic */
	struct rmem_wr_limits limits;
	uint64_t max_msg_size;        /* limit of the device; UD: the path MTU */
	struct rwire_qp *wire;        /* NULL unless connected by the wire; atomic */
	struct rsoft_chaos_qp *chaos; /* NULL unless rules of chaos= apply to it */
	uint32_t psn;                 /* initial PSN */
	uint8_t gid_slot;             /* GID of packets that it sends (struct rsoft_tables) */
	uint8_t pkey_slot;
	struct rmem_qp_conn conn;
	TAILQ_ENTRY(rsoft_qp) next; /* in rsoft_dev::pending or the engine's list */
	rte_ticketlock_t ctl_lock;  /* serialises transitions by calls; taken first */

	struct rsoft_sq sq __rte_cache_aligned;
	struct rmem_dev_stats stats __rte_cache_aligned; /* written by the executor of sq */
	struct rsoft_rq rq;
	uint64_t bad_rkeys;         /* counter: bad rkeys in requests of peers; atomic */
	struct rmem_qp_attr set;    /* attributes as set, for queries; under rsoft_domain::lock */
	uint32_t conf_access;       /* access at creation */
	uint32_t qkey;              /* of UD; atomic */
	uint32_t nb_groups;         /* multicast groups of the QP; under rsoft_domain::lock */
	LIST_ENTRY(rsoft_qp) dying; /* in rsoft_dev::dying_qps */
	void (*revoke)(void);       /* revokes direct access (rsoft_grant.h) or NULL; atomic */
	struct rmem_counter *counters[RMEM_QP_NB_COUNTS]; /* by the bits of counts; else NULL */

	/* XRC_RECV (wire/rwire_xrc_qp.h). */
	struct rwire_xrc_qp_listener *listener; /* for processes that open it, or NULL */
	struct rwire_xrc_qp_out *out;           /* QP of another process: connection to it */

	struct rsoft_thread_check senders;
	struct rsoft_thread_check receivers;
};

TAILQ_HEAD(rsoft_qp_list, rsoft_qp);

/* A service that executes the QPs in its list. */
struct rsoft_engine {
	rte_ticketlock_t lock; /* held while it runs, and while the list changes */
	struct rwire *wire;    /* of the device; NULL without ip= */
	struct rsoft_qp_list qps;
	uint32_t nb_qps;
	uint32_t service_id;
	uint32_t lcore_id;
};

/* Address of a device with a wire; constant while rsoft_dev::wire is not NULL. */
struct rsoft_address {
	uint8_t gid[16];
	uint32_t mtu; /* path MTU in bytes */
	uint16_t lid; /* ip=host: LID on the host's InfiniBand subnet; else 0 */
};

/*
 * Tables of the ports: of GIDs (the first one of port 1 is the address), and of P_Keys. Ports share
 * one wire; each has a range of entries, of which only the first nb_gids or nb_pkeys are used. An
 * entry's position in these arrays is its slot, by which QPs, address handles and packets refer to
 * it. Written under the domain's lock, when the device is created and by rmem-ctl.
 */
#define RSOFT_MAX_PORTS 4
#define RSOFT_MAX_GIDS  16 /* of a port */
#define RSOFT_MAX_PKEYS 16 /* of a port */
#define RSOFT_GID_SLOTS (RSOFT_MAX_PORTS * RSOFT_MAX_GIDS)
struct rsoft_tables {
	uint32_t nb_ports;                    /* at least 1 */
	uint32_t nb_gids;                     /* of a port; some entries may be empty */
	uint32_t nb_slots;                    /* slots of gid[] that may have a GID */
	uint32_t nb_pkeys;                    /* of a port */
	uint8_t gid[RSOFT_GID_SLOTS][16];     /* from slot 1 on; zeros: none */
	uint8_t removed[RSOFT_GID_SLOTS][16]; /* GID that a slot without one had; zeros: none */
	uint32_t ifindex[RSOFT_GID_SLOTS];
	uint32_t nb_ahs[RSOFT_GID_SLOTS];                 /* AHs with that GID, from slot 1 on */
	uint16_t pkey[RSOFT_MAX_PORTS * RSOFT_MAX_PKEYS]; /* 0: none; atomic */
};

/* Slot of an entry of a port. */
static inline uint8_t
rsoft_gid_slot(uint32_t port_num, uint32_t index)
{
	return (uint8_t)((port_num - 1) * RSOFT_MAX_GIDS + index);
}

static inline uint8_t
rsoft_pkey_slot(uint32_t port_num, uint32_t index)
{
	return (uint8_t)((port_num - 1) * RSOFT_MAX_PKEYS + index);
}

/* Port of the GID in a slot. */
static inline uint32_t
rsoft_gid_port(uint32_t slot)
{
	return slot / RSOFT_MAX_GIDS + 1;
}

struct rsoft_dev {
	struct rsoft_key *keys; /* by slot */
	uint32_t nb_keys;
	uint32_t slot_mask;              /* bits of an index that are its slot */
	uint32_t lkey_xor;               /* lkey ^ rkey: RSOFT_LKEY_XOR or 0 */
	uint32_t prefetch_keys;          /* the table exceeds the cache of a core */
	struct rsoft_key_hash *key_hash; /* NULL before the first requested key; atomic */
	struct rsoft_history *history;   /* by slot; NULL without sanitize=1 */
	struct rsoft_chaos *chaos;       /* NULL without chaos= */
	uint16_t dev_id;
	uint16_t nb_engines;
	uint32_t cookie;          /* part of the GID; differs between devices of the same name */
	uint32_t is_pin_logged;   /* the failure to pin was logged; atomic */
	uint32_t is_guard_logged; /* the missing guard was logged (sanitize=1); atomic */
	uint64_t nb_bad_rkeys;    /* of all QPs; limits what is logged; atomic */
	struct rsoft_args args;

	uint32_t nb_pending __rte_cache_aligned; /* QPs in pending, plus the wire; atomic */
	rte_ticketlock_t pending_lock;
	uint32_t nb_unvisited;        /* of the pending QPs, until each was retried once more */
	struct rsoft_qp_list pending; /* QPs whose requests wait */

	rte_ticketlock_t umr_lock; /* held while walking the lists below a key; taken last */
	uint64_t umr_walks;        /* number of walks; under umr_lock */

	rte_ticketlock_t lock __rte_cache_aligned; /* protects the fields below */
	struct rsoft_key_pool mr_keys;
	struct rsoft_key_pool mw_keys;
	uint32_t *nb_owners;    /* by slot: owners since its last quarantine */
	uint32_t log2_slots;    /* bits of an index that are its slot */
	uint64_t key_secret[2]; /* determines the order of the indexes of a slot */
	uint32_t next_pd;
	uint32_t nb_mr; /* also read by posts; atomic */
	uint32_t nb_mw;
	uint32_t nb_qp;
	struct rsoft_ids qp_ids;
	struct rsoft_qp **qps; /* by number & qp_mask; under rsoft_domain::lock */
	LIST_HEAD(rsoft_dying, rsoft_qp) dying_qps;  /* being destroyed; under rsoft_domain::lock */
	LIST_HEAD(rsoft_srqs, rsoft_srq) srqs;       /* under rsoft_domain::lock */
	LIST_HEAD(rsoft_xrcds, rsoft_xrcd) xrcds;    /* XRC domains; under rsoft_domain::lock */
	LIST_HEAD(rsoft_groups, rsoft_group) groups; /* multicast; under rsoft_domain::lock */
	rte_ticketlock_t group_lock; /* held by calls that change groups; taken first */
	uint32_t qp_mask;
	uint64_t qp_generation;
	struct rsoft_srq **xrc_srqs; /* by number & xrc_mask; atomic; written as qps */
	uint32_t xrc_mask;
	uint32_t xrc_generation;
	LIST_HEAD(rsoft_dms, rsoft_dm) dms;    /* device memory; rsoft_dm.h */
	uint64_t dm_bytes;                     /* bytes in dms */
	struct rmem_dev_stats stats_destroyed; /* of destroyed QPs */
	struct rmem_dev_stats stats_base;      /* at the last reset */
	struct rsoft_odp_stats odp_stats;      /* of all MRs, including released ones */
	uint8_t is_odp_supported;
	struct rwire *wire;           /* NULL without ip= */
	struct rsoft_address address; /* with wire */
	struct rsoft_tables tables;   /* with wire */
	uint8_t has_guard;            /* has a reference to the handler of rsoft_guard.h; atomic */

	struct rsoft_engine engine[RSOFT_MAX_ENGINES];
};

/* Maximum number of lcores, of EAL or of an environment without EAL (env/rmem_env.h). */
#define RSOFT_MAX_LCORES 4096

static_assert(RTE_MAX_LCORE <= RSOFT_MAX_LCORES, "each lcore has an entry");

/* State of an lcore that uses keys. */
struct rsoft_grace_lcore {
	uint64_t token; /* token loaded on entry; 0: outside; atomic */
} __rte_cache_aligned;

/* Grace periods; see rsoft_grace.h. */
struct rsoft_grace {
	struct rsoft_grace_lcore lcore[RSOFT_MAX_LCORES];
	uint64_t token; /* of the last grace period, from 1 on; atomic */
	/* Number of registered lcores and of peers that count as lcores; atomic. */
	uint32_t nb_lcores __rte_cache_aligned;
	uint32_t nb_peers;                      /* peers of rsoft_grant.h; atomic */
	uint32_t nb_words;                      /* words of lcores[] in use; atomic */
	uint64_t lcores[RSOFT_MAX_LCORES / 64]; /* bitmap of registered lcores; atomic */
};

/* Shared by all software devices: the lcores to wait for, and the table of devices. */
struct rsoft_domain {
	rte_ticketlock_t lock; /* protects dev[], each device's qps[], and connections */
	uint32_t next_cookie;
	struct rsoft_dev *dev[RMEM_MAX_DEVS];
	struct rsoft_grace grace;
};

extern struct rsoft_domain *rsoft_domain;

static inline struct rsoft_dev *
rsoft_dev_of(const struct rmem_obj *obj)
{
	return rsoft_domain->dev[obj->dev_id];
}

/* Whether a QP in that state executes requests of its peer. */
static inline bool
rsoft_state_is_responding(uint32_t state)
{
	return state - RMEM_QPS_RTR <= RMEM_QPS_SQE - RMEM_QPS_RTR;
}

/*
 * Whether a secondary process posts to the QP. Engines read this while a claim begins, and drain
 * the queue only after the claim has read it.
 */
static inline bool
rsoft_qp_is_claimed(const struct rsoft_qp *qp)
{
	return __atomic_load_n(&qp->is_claimed, __ATOMIC_ACQUIRE) != 0;
}

/* Whether the requests of a QP are acknowledged: RC and XRC. */
static inline bool
rsoft_qp_is_reliable(const struct rsoft_qp *qp)
{
	return qp->qp.type != RMEM_QPT_UC && qp->qp.type != RMEM_QPT_UD;
}

static inline bool
rsoft_qp_is_xrc(const struct rsoft_qp *qp)
{
	return qp->qp.type == RMEM_QPT_XRC_SEND || qp->qp.type == RMEM_QPT_XRC_RECV;
}

/* Move a QP to ERR, unless it is in RESET; true if the caller made the transition. */
static inline bool
rsoft_qp_to_err(struct rsoft_qp *qp)
{
	uint32_t state = __atomic_load_n(&qp->state, __ATOMIC_RELAXED);
	void (*revoke)(void);

	do {
		if (state == RMEM_QPS_RESET || state == RMEM_QPS_ERR)
			return false;
	} while (!__atomic_compare_exchange_n(&qp->state, &state, RMEM_QPS_ERR, false,
			__ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	revoke = __atomic_load_n(&qp->revoke, __ATOMIC_SEQ_CST);
	if (revoke != NULL)
		revoke();
	return true;
}

#endif /* RSOFT_H */
