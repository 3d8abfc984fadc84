/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Shared by the files of dpdk-testrmem.
 *
 * Inside: dpdk-testrmem: options, prompt, sessions, one engine per mode, the two hosts.
 * Callers: no other folder: a program.
 * Not known here: drivers, and private headers of the libraries.
 *
 * The objects: a configuration (param.c) and the devices it names (dev.c) live as long as the
 * program. A session (session.c) is one run of one engine: a PD, a pool and target MRs on each
 * device, and for each lcore a worker with its pairs of QPs (pair.c). The main lcore sets all of
 * it up and takes it down; in between each pair belongs to its worker's lcore.
 */

#ifndef TESTRMEM_H
#define TESTRMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_mbuf_core.h>

#include <rmem.h>

/** A number that the run chooses itself. */
#define TESTRMEM_AUTO     UINT64_MAX
#define TESTRMEM_MAX_DEVS 8
#define TESTRMEM_STR_SIZE 1024
/** Bytes that an mbuf holds. */
#define TESTRMEM_DATA_ROOM RTE_MBUF_DEFAULT_DATAROOM

/** Exit codes; 0 on success. */
#define TESTRMEM_EXIT_USAGE 1 /**< Bad options, or the run could not start. */
#define TESTRMEM_EXIT_RUN   2 /**< The run failed. */

struct latency;
struct rmem_cm_listener;
struct rmem_mempool;
struct rmem_pool;
struct sockaddr_storage;
struct testrmem_engine;
struct testrmem_grant_kind;
struct testrmem_remote;
struct testrmem_session;
struct testrmem_worker;

/** Settings; TESTRMEM_AUTO if not given. */
struct testrmem_conf {
	char devs[TESTRMEM_MAX_DEVS][TESTRMEM_STR_SIZE]; /**< Name, or name,args. */
	uint32_t nb_devs;
	const struct testrmem_engine *engine; /**< The mode. */
	uint64_t size;                        /**< Bytes of an operation. */
	uint64_t burst;                       /**< Requests posted in one call. */
	uint64_t depth;                       /**< Requests in flight on a pair. */
	uint64_t qps;                         /**< Pairs of an lcore. */
	uint64_t mrs;                         /**< Target MRs of a device. */
	uint64_t ops;                         /**< Operations of an lcore, 0 for no limit. */
	uint64_t run_ms;                      /**< Milliseconds to run, 0 for no limit. */
	uint64_t warm_up_ms;                  /**< Milliseconds before them, not counted. */
	uint64_t period_ms;                   /**< Milliseconds between lines, 0 for none. */
	char input[TESTRMEM_STR_SIZE];
	char output[TESTRMEM_STR_SIZE];
	char json[TESTRMEM_STR_SIZE];
	char csv[TESTRMEM_STR_SIZE];
	char listen[TESTRMEM_STR_SIZE];  /**< Address to listen at, or empty. */
	char connect[TESTRMEM_STR_SIZE]; /**< Address of the listening host, or empty. */
	char sweep[TESTRMEM_STR_SIZE];   /**< PARAMETER=FROM..TO, or empty. */
	char script[TESTRMEM_STR_SIZE];  /**< File of commands, or empty. */
	bool is_latency;                 /**< Measure the duration of each burst. */
	bool is_histogram;               /**< Print the distribution of durations. */
	bool is_bidirectional;           /**< Pairs have a twin. */
	bool is_interactive;
	bool is_help;
};

/** Range that one operation of a peer accesses. */
struct testrmem_target {
	uint64_t addr;
	uint32_t rkey;
};

/** A device, and the objects of a session on it. */
struct testrmem_dev {
	const char *spec;
	struct rmem_dev *dev;
	struct rmem_dev_info info;
	struct rmem_pd *pd;
	struct rmem_pool *pool;     /**< Of buffers, or NULL. */
	struct rmem_mempool *mbufs; /**< Of mbufs, or NULL. */
	uint8_t *area;              /**< Memory of the target MRs. */
	size_t area_length;         /**< Bytes of it. */
	struct rmem_mr **mrs;
	uint32_t nb_mrs;
	uint32_t nb_pairs;
};

/** Counters of a worker: written by its lcore alone, read by the main lcore. */
struct testrmem_counters {
	uint64_t ops;
	uint64_t bytes;
	uint64_t errors;
	uint64_t binds;
	uint64_t invs;
};

/**
 * A requester QP (a) and its peer (b), both of one thread. A request in flight has a slot of
 * the ring: its WR and its buffer.
 */
struct testrmem_pair {
	struct testrmem_worker *worker;
	struct testrmem_dev *dev;
	struct rmem_qp *qp_a;
	struct rmem_qp *qp_b;
	struct rmem_cq *cq_a;
	struct rmem_cq *cq_b;
	uint32_t id;        /**< Over all lcores. */
	uint32_t dev_index; /**< Among the pairs of its device. */
	uint32_t size;
	uint32_t burst;
	uint32_t depth;
	uint32_t slot;      /**< Of the next request. */
	bool is_done;       /**< No more requests to post. */
	bool is_in_flight;  /**< After the last burst. */
	uint64_t posted;    /**< Operations. */
	uint64_t completed; /**< Of them. */
	uint64_t ops_limit;
	uint64_t seed;
	uint64_t burst_tsc;      /**< Begin of the burst in flight, to measure its duration. */
	struct rmem_send_wr *wr; /**< Ring of depth. */
	struct rmem_sge *sge;    /**< Ring of depth: buffers of the pool. */
	struct testrmem_target *targets;
	uint32_t nb_targets;
	struct testrmem_remote *remote; /**< Of two hosts: the other one. */
	struct testrmem_pair *twin;     /**< The same QPs in the other direction, or NULL. */
	bool is_reverse;                /**< The QPs belong to the twin. */
	void *priv;                     /**< The engine's. */
};

/** Work of one lcore. */
struct testrmem_worker {
	struct testrmem_session *session;
	struct testrmem_pair *pairs;
	uint32_t nb_pairs;
	unsigned int lcore_id;
	int result;
	struct latency *latency; /**< Durations of bursts, or NULL. */
	uint64_t peer_us;        /**< Time that the other host worked, where it alone counts. */
	uint64_t start_tsc;      /**< Written by the lcore; 0 before. */
	uint64_t end_tsc;        /**< Written by the lcore; 0 before. */
	struct testrmem_counters cnt __rte_cache_aligned;
} __rte_cache_aligned;

/** Properties of a mode: testrmem_engine::flags. */
#define ENGINE_RECV         (1u << 0) /**< A receive for each request in flight. */
#define ENGINE_ON_DEMAND    (1u << 1) /**< Targets are on demand, without pages at first. */
#define ENGINE_INLINE       (1u << 2) /**< Inline data, delivered in the completion if possible. */
#define ENGINE_MBUF         (1u << 3) /**< Of mbufs; both QPs send and receive. */
#define ENGINE_GRANTED      (1u << 4) /**< The other host grants, with a message for each burst. */
#define ENGINE_PEER_COUNTED (1u << 5) /**< Only the other host counts operations. */

/**
 * A mode. All but burst is called by the main lcore. A failure is reported once, with
 * testrmem_fail() or testrmem_err(), and returns -errno.
 */
struct testrmem_engine {
	const char *name;
	const char *help;
	const char *verified; /**< Text of the fact that verify proves. */
	const char *unit;     /**< Of operations; NULL for "ops". */
	uint64_t capa;        /**< RMEM_DEV_CAPA_* that it needs, in addition to its grants. */
	uint32_t default_size;
	uint32_t max_size;
	uint32_t bufs_per_op;   /**< Buffers of the pool for a request in flight. */
	uint32_t target_access; /**< Remote rights that targets have; 0 for no targets. */
	const struct testrmem_grant_kind *grant; /**< One for each request in flight, or NULL. */
	uint32_t flags;                          /**< Bitwise OR of ENGINE_*. */
	const struct testrmem_engine *listener;  /**< Of two hosts, the one of --listen, or NULL. */
	const struct testrmem_engine *connector; /**< The one of --connect. */
	/** Before memory is taken; NULL for nothing. */
	int (*open)(struct testrmem_session *session);
	/** Fill the targets of a pair, before the other host can read them; NULL for nothing. */
	int (*fill)(struct testrmem_pair *pair);
	/** Prepare a pair: its QPs are connected, its ring has buffers. */
	int (*setup)(struct testrmem_pair *pair);
	/**
	 * Post what fits unless is_draining, and poll: the requests in flight, or -errno.
	 * By the pair's worker.
	 */
	int (*burst)(struct testrmem_pair *pair, bool is_draining);
	/** After a run without an error: prove that the data arrived; NULL for nothing. */
	int (*verify)(struct testrmem_pair *pair);
	/** Bytes that are done of all; NULL for a mode without an end. */
	void (*progress)(const struct testrmem_session *session, uint64_t *done, uint64_t *all);
	/** After all pairs: print results; NULL for none. */
	int (*finish)(struct testrmem_session *session);
	/** Release references to the QPs, after any setup; NULL for nothing. */
	void (*disconnect)(struct testrmem_pair *pair);
	/** Undo setup, even a failed one, after the QPs were destroyed. */
	void (*teardown)(struct testrmem_pair *pair);
	/** Undo open. */
	void (*close)(struct testrmem_session *session);
};

/** One run. */
struct testrmem_session {
	struct testrmem_conf conf; /**< No number in it is TESTRMEM_AUTO. */
	const struct testrmem_engine *engine;
	struct testrmem_dev *devs;
	struct testrmem_worker *workers;
	uint32_t nb_devs;
	uint32_t nb_workers;
	uint32_t nb_pairs;                 /**< Of all workers. */
	int stop;                          /**< Atomic: end the run. */
	int is_warm;                       /**< Atomic: the warm-up has ended. */
	int has_failed;                    /**< Atomic: the first error was reported. */
	void *priv;                        /**< The engine's. */
	struct rmem_cm_listener *listener; /**< Of --listen. */
};

/** Whether the session is of one of two hosts. */
static inline bool
testrmem_is_remote(const struct testrmem_session *session)
{
	return session->conf.listen[0] != '\0' || session->conf.connect[0] != '\0';
}

/* engine.c */
extern const struct testrmem_engine *const testrmem_engines[];
extern const struct testrmem_engine testrmem_engine_atomic;
extern const struct testrmem_engine testrmem_engine_copy;
extern const struct testrmem_engine testrmem_engine_fastreg;
extern const struct testrmem_engine testrmem_engine_inline;
extern const struct testrmem_engine testrmem_engine_lease;
extern const struct testrmem_engine testrmem_engine_mbuf;
extern const struct testrmem_engine testrmem_engine_mw;
extern const struct testrmem_engine testrmem_engine_odp;
extern const struct testrmem_engine testrmem_engine_read;
extern const struct testrmem_engine testrmem_engine_send;
extern const struct testrmem_engine testrmem_engine_umr;
extern const struct testrmem_engine testrmem_engine_write;

/* common.c */
/** Print an error to stderr. */
void testrmem_err(const char *format, ...) __rte_format_printf(1, 2);
/** Print that EAL has no memory for something, and how to give it more. */
void testrmem_err_memory(const char *what, uint64_t bytes);
/** Print the first error of a session, and stop it. From any lcore. */
void testrmem_fail(struct testrmem_session *session, const char *format, ...)
		__rte_format_printf(2, 3);
/** The same, of a request that failed. Returns -EIO. */
int testrmem_pair_failed(struct testrmem_pair *pair, const char *what, const struct rmem_wc *wc);
/** The same, of a post or poll that failed. Returns ret, or -EIO for a count. */
int testrmem_pair_refused(struct testrmem_pair *pair, const char *what, int ret);
/** Zeroed memory of EAL, for rte_free(); prints an error when there is none. */
void *testrmem_alloc(size_t n, size_t size);
void testrmem_catch_signals(void);
/** Whether SIGINT or SIGTERM was received. */
bool testrmem_is_interrupted(void);
/** Fill bytes with a pattern that differs by seed. */
void testrmem_fill(void *addr, size_t length, uint64_t seed);

/* dev.c */
int testrmem_devs_open(const struct testrmem_conf *conf, struct testrmem_dev *devs);
/** -EBUSY with a message if an object of a run was not released. */
int testrmem_devs_close(struct testrmem_dev *devs, uint32_t nb_devs);
/**
 * Increase of a counter of struct rmem_dev_stats, by its offset, in a session, over all of its
 * devices: for an engine that has nothing else in session->priv.
 */
int testrmem_stat_open(struct testrmem_session *session, size_t offset);
uint64_t testrmem_stat_get(const struct testrmem_session *session);
void testrmem_stat_close(struct testrmem_session *session);
/** Check that the device supports the session. */
int testrmem_dev_check(struct testrmem_dev *dev, const struct testrmem_session *session);
/** Create PD, pool and target MRs. */
int testrmem_dev_setup(struct testrmem_dev *dev, const struct testrmem_session *session);
void testrmem_dev_teardown(struct testrmem_dev *dev);
/** Assign a pair its share of the device's targets. */
int testrmem_dev_targets(const struct testrmem_dev *dev, struct testrmem_pair *pair);

/* pair.c */
/** Connect two new QPs of a session. On failure close releases the created objects. */
int testrmem_pair_open(struct testrmem_pair *pair, const struct testrmem_session *session);
void testrmem_pair_close(struct testrmem_pair *pair);
/** Get the ring: WRs with an SGE each of the session's size, filled with a pattern. */
int testrmem_pair_ring_alloc(struct testrmem_pair *pair);
void testrmem_pair_ring_free(struct testrmem_pair *pair);
/** Get n buffers of the pool as SGEs of the session's size; reports errors. */
int testrmem_pair_bufs_get(struct testrmem_pair *pair, struct rmem_sge *sge, uint32_t n);
void testrmem_pair_bufs_put(struct testrmem_pair *pair, struct rmem_sge *sge, uint32_t n);
/** Post n requests from the slot on, the last one signaled. */
int testrmem_pair_post(struct testrmem_pair *pair, uint32_t n);
/** Poll the requester's CQ and count: requests in flight, or -errno. */
int testrmem_pair_poll(struct testrmem_pair *pair);
/** Compare the buffer of a slot with the target of its request. */
int testrmem_pair_compare(struct testrmem_pair *pair, uint32_t slot);
/** Poll with burst() until nothing is in flight; -ETIMEDOUT when that takes too long. */
int testrmem_pair_drain(struct testrmem_pair *pair);
/** Setup and burst of WRITE and READ. */
int testrmem_pair_rdma_setup(struct testrmem_pair *pair, uint8_t opcode);
int testrmem_pair_rdma_burst(struct testrmem_pair *pair, bool is_draining);

/** Mbufs that a packet of that size takes. */
static inline uint32_t
testrmem_nb_segs(uint64_t size)
{
	return (uint32_t)((size + TESTRMEM_DATA_ROOM - 1) / TESTRMEM_DATA_ROOM);
}

/** The memory at the address of a request; iovas of this program are addresses. */
static inline void *
testrmem_ptr(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

/** Add to a counter that another lcore reads. */
static inline void
testrmem_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/** Number of requests that can be posted from the slot on, at most a burst. */
static inline uint32_t
testrmem_pair_nb_free(const struct testrmem_pair *pair)
{
	uint64_t room = pair->depth - (pair->posted - pair->completed);

	room = RTE_MIN(room, (uint64_t)pair->burst);
	room = RTE_MIN(room, (uint64_t)(pair->depth - pair->slot));
	return (uint32_t)RTE_MIN(room, pair->ops_limit - pair->posted);
}

/** One of the targets, pseudo-randomly (xorshift64). */
static inline const struct testrmem_target *
testrmem_pair_target(struct testrmem_pair *pair)
{
	pair->seed ^= pair->seed << 13;
	pair->seed ^= pair->seed >> 7;
	pair->seed ^= pair->seed << 17;
	return &pair->targets[((pair->seed >> 32) * pair->nb_targets) >> 32];
}

/* session.c */
/** Set up a run. On failure all its objects are released. */
int testrmem_session_open(const struct testrmem_conf *conf, struct testrmem_dev *devs,
		struct testrmem_session **session);
void testrmem_session_close(struct testrmem_session *session);
/** Verify that the data arrived, and print the results of the engine. */
int testrmem_session_verify(struct testrmem_session *session);

static inline bool
testrmem_session_is_stopped(const struct testrmem_session *session)
{
	return __atomic_load_n(&session->stop, __ATOMIC_RELAXED) != 0;
}

/** Directions of a pair. */
static inline uint32_t
testrmem_nb_directions(const struct testrmem_conf *conf)
{
	return conf->is_bidirectional ? 2 : 1;
}

static inline void
testrmem_session_stop(struct testrmem_session *session)
{
	__atomic_store_n(&session->stop, 1, __ATOMIC_RELAXED);
}

/* option.c */
/** Parse an address, with the port of two hosts; reports errors. */
int testrmem_addr_parse(const char *text, struct sockaddr_storage *addr);

/* run.c */
/** Work of the main lcore every few milliseconds of a run. */
typedef void (*testrmem_tick_t)(void *arg, int wait_ms);
/** Run the workers to their end. 0, or -errno when one failed. */
int testrmem_run(struct testrmem_session *session, testrmem_tick_t tick, void *arg);

#endif /* TESTRMEM_H */
