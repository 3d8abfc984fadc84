/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Shared by the files of the verbs driver.
 *
 * Inside: the driver of devices of libibverbs: objects, posts, probes, windows, events.
 * Callers: lib/rmem, by the operations of rverbs_driver (rverbs_dev.c).
 * Not known here: other drivers, applications, and the libraries above the class.
 *
 * Objects of libibverbs belong to the process that created them: only this process can use the
 * device and its objects, although the structs are in shared memory.
 *
 * A request is posted to the device with a wr_id of the driver: the entry in the ring of its queue,
 * the slot of the QP in the device's table, and the generation of the slot. So a completion
 * identifies the entry of the ring, which has the wr_id of the application. Invariant: the posting
 * thread writes ring entries and prod; the holder of the lock of the CQ writes cons and the
 * counters of completions. An entry is written before its prod is published, and read only after.
 */

#ifndef RVERBS_H
#define RVERBS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_log.h>
#include <rte_rwlock.h>
#include <rte_ticketlock.h>

#include <rmem_driver.h>

extern int rverbs_logtype;

/** Log a line: RVERBS_LOG(ERR, "format", ...). */
#define RVERBS_LOG(level, ...) RMEM_LOG_LINE(level, rverbs_logtype, "rmem_verbs", __VA_ARGS__)

#define RVERBS_MAX_QP     4096u  /* slots of a device's table */
#define RVERBS_MAX_DEPTH  32768u /* requests per queue; half of the 16-bit entry numbers */
#define RVERBS_MAX_SGE    32u
#define RVERBS_MAX_SRQ    256u
#define RVERBS_MAX_INLINE 1024u
#define RVERBS_NAME_SIZE  64

/* Page sizes of REG_MR: 4 KiB to 2 GiB. */
#define RVERBS_PAGE_SIZE_CAP ((UINT64_C(1) << 32) - (UINT64_C(1) << 12))

/* A wr_id of the driver: generation (32), receive (1), QP (15), entry of the ring (16). */
#define RVERBS_ID_RECV (UINT64_C(1) << 31)
/* The wr_id of a shared receive: this bit, which no QP has, SRQ (14), entry (16). */
#define RVERBS_ID_SRQ (UINT64_C(1) << 30)

/* Whether a QP accepts requests; see rverbs_post.c. */
enum rverbs_gate {
	RVERBS_GATE_RESET = 0,   /* -EBUSY */
	RVERBS_GATE_REMOVED = 1, /* -ENODEV: the device failed or was removed */
	RVERBS_GATE_INIT = 2,    /* takes receives; INIT and RTR */
	RVERBS_GATE_OPEN = 3,
};

/* An option whose default is determined by a probe. */
enum rverbs_choice {
	RVERBS_AUTO = 0,
	RVERBS_ON,
	RVERBS_OFF,
};

/* Arguments as requested; missing values are determined when the device is opened. */
struct rverbs_args {
	char ibdev[RVERBS_NAME_SIZE]; /* empty: the only device */
	char gid[RVERBS_NAME_SIZE];   /* an index, an address, or empty: the best one */
	uint8_t port;
	uint8_t mtu;          /* enum ibv_mtu, or 0: what the port has */
	uint8_t mw_quirk;     /* enum rverbs_choice */
	uint8_t mkey_entries; /* 0: no REG_MR and UMR */
};

/* Functions of libmlx5; see rverbs_mlx5.h. */
struct mlx5dv_mkey;
struct mlx5dv_mkey_init_attr;
struct mlx5dv_qp_ex;
struct mlx5dv_qp_init_attr;
struct rverbs_mlx5 {
	struct mlx5dv_mkey *(*create_mkey)(struct mlx5dv_mkey_init_attr *attr);
	struct ibv_qp *(*create_qp)(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			struct mlx5dv_qp_init_attr *mlx5_attr);
	int (*destroy_mkey)(struct mlx5dv_mkey *mkey);
	bool (*is_supported)(struct ibv_device *device);
	struct mlx5dv_qp_ex *(*qp_ex_from_ibv_qp_ex)(struct ibv_qp_ex *qp);
};

/* The port in use. */
struct rverbs_port {
	uint8_t num;
	uint8_t gid_index;
	uint8_t link_layer;
	uint8_t mtu; /* enum ibv_mtu */
	uint16_t lid;
	uint32_t max_msg_size;
	union ibv_gid gid;
};

/* Counters of the queues of a QP, and of the destroyed QPs of a device. */
struct rverbs_send_stats {
	uint64_t bytes_posted; /* by the posting thread */
};
struct rverbs_done_stats {
	uint64_t bytes_failed;
	uint64_t errors;
	uint64_t flushed;
	uint64_t invalidates;
	uint64_t local_prot_errors;
	uint64_t mw_binds;
	uint64_t reg_mrs;
	uint64_t rem_access_errors;
	uint64_t recv_wrs;
	uint64_t recv_bytes;
	uint64_t send_wrs;
	uint64_t umrs;
};

struct rverbs_qp;
struct rverbs_mr;
struct rverbs_path;
struct rverbs_srq;

/*
 * A slot in a device's table of QPs. The generation is even while the slot is empty.
 *
 * Invariant: both fields are written under dev->lock. qp changes only while gen is even, that is,
 * between two generations of requests. A poll reads them without the lock: qp belongs to a
 * generation if gen has its value before and after qp was read.
 */
struct rverbs_slot {
	struct rverbs_qp *qp;
	uint32_t gen;
};

/* Put a QP into an empty slot. Under dev->lock. */
static inline void
rverbs_slot_fill(struct rverbs_slot *slot, struct rverbs_qp *qp)
{
	__atomic_store_n(&slot->qp, qp, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->gen, slot->gen + 1, __ATOMIC_RELEASE);
}

/* Empty a slot. Under dev->lock. */
static inline void
rverbs_slot_empty(struct rverbs_slot *slot)
{
	__atomic_store_n(&slot->gen, slot->gen + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->qp, NULL, __ATOMIC_RELEASE);
}

/* The QP of a generation; NULL if it was destroyed or reset since. */
static inline struct rverbs_qp *
rverbs_slot_qp(const struct rverbs_slot *slot, uint32_t gen)
{
	struct rverbs_qp *qp;

	if (__atomic_load_n(&slot->gen, __ATOMIC_ACQUIRE) != gen)
		return NULL;
	/* Acquire: a thread that loads a later QP also sees the end of the generation. */
	qp = __atomic_load_n(&slot->qp, __ATOMIC_ACQUIRE);
	if (unlikely(__atomic_load_n(&slot->gen, __ATOMIC_RELAXED) != gen))
		return NULL;
	return qp;
}

struct rverbs_dev {
	struct rverbs_args args;
	struct ibv_context *context;
	struct ibv_device_attr_ex attr;
	struct rverbs_port port;
	uint64_t capa;             /* RMEM_DEV_CAPA_*, as probed */
	uint32_t access;           /* RMEM_ACCESS_*, as probed */
	uint32_t rereg;            /* RMEM_REREG_* supported by ibv_rereg_mr(), as probed */
	struct rmem_odp_caps odp;  /* as probed */
	uint32_t max_inline;       /* as probed */
	uint32_t max_wr;           /* as probed */
	uint64_t send_ops;         /* IBV_QP_EX_WITH_* of an extended QP, or 0 */
	bool is_list_bad;          /* ibv_wr_set_sge_list() writes wrong bytes */
	bool has_mw_quirk;         /* see rverbs_mwq.h; false without windows */
	const char *mw_sign;       /* sign of the quirk found by the probe, or NULL */
	uint32_t max_mkey_entries; /* as probed; 0: no REG_MR, UMR */
	struct rverbs_mlx5 mlx5;
	uint32_t inv_flag;     /* flag of completions for an invalidated key */
	rte_ticketlock_t lock; /* protects the table and the sums */
	struct rverbs_slot *slots;
	struct rverbs_srq *srqs[RVERBS_MAX_SRQ]; /* see rverbs_srq.c */
	TAILQ_HEAD(rverbs_mrs, rverbs_mr) mrs;   /* see rverbs_odp.c */
	struct rverbs_done_stats destroyed;
	uint64_t destroyed_bytes;
	struct rmem_dev_stats base; /* values at the last reset */
	struct rmem_dev *base_dev;
	/* Asynchronous events, read by a thread of the driver. */
	pthread_t event_thread;
	int stop_fd;
	uint32_t is_removed; /* the device failed or was removed; atomic */
	uint32_t port_down;  /* atomic */
	uint64_t nb_events;  /* atomic */
};

/* Memory of the MRs of a PD; see rverbs_range.h. */
struct rverbs_range;
struct rverbs_ranges {
	rte_rwlock_t lock; /* protects the fields below */
	struct rverbs_range *array;
	uint32_t nb;
	uint32_t max;
	uint64_t max_length; /* longest range so far */
};

struct rverbs_pd {
	struct rmem_pd pd;
	struct ibv_pd *ibv;
	struct ibv_mr *park; /* a page for unbound type 1 windows; NULL until needed */
	struct rverbs_ranges ranges;
};

struct rverbs_mr {
	union {
		struct rmem_mr mr;
		struct rmem_mr_drv drv;
	};
	struct ibv_mr *ibv;
	uint32_t key;   /* lkey, for the lookup */
	bool is_dmabuf; /* registered as a dma-buf; can't be re-registered */
	bool is_on_demand;
	TAILQ_ENTRY(rverbs_mr) next;
	/* Only for fast-register and indirect MRs; see rverbs_mlx5.h. */
	struct mlx5dv_mkey *mkey;
	uint32_t nb_bound;     /* posted requests that bind it */
	uint32_t bound_access; /* access of the last such request */
	uint64_t bound_length;
};

struct rverbs_dm {
	struct rmem_dm dm;
	struct ibv_dm *ibv;
};

struct rverbs_xrcd {
	struct rmem_xrcd xrcd;
	struct ibv_xrcd *ibv;
};

struct rverbs_cq {
	struct rmem_cq cq;
	struct ibv_cq *ibv;
	struct ibv_cq_ex *ex;    /* with timestamps: the same CQ; else NULL */
	bool is_overrun_ignored; /* RMEM_CQ_IGNORE_OVERRUN */
	struct rverbs_dev *dev;
	rte_ticketlock_t lock; /* held by ibv_poll_cq(); protects the fields below */
	uint32_t has_overrun;  /* the device reported an overrun; atomic */
	/* Completions removed before their QP was destroyed or reset. */
	struct rmem_wc *saved;
	uint64_t *times; /* with ex: rmem_cq::timestamps, nb_cqe entries, then times of saved */
	uint32_t nb_saved;
	uint32_t first_saved;
};

/*
 * Note of a request: its bytes (32), and the numbers of invalidations (16) and binds (16) posted up
 * to it. The difference of two notes is exact, even if one number carries into the next. A bind has
 * no bytes; without the quirk these bits have the previous key of its window. REG_MR and UMR also
 * count as binds, with a second note in mw_ops.
 */
#define RVERBS_NOTE_INV        (UINT64_C(1) << 32)
#define RVERBS_NOTE_BIND       (UINT64_C(1) << 48)
#define RVERBS_NOTE_LOW(n)     ((uint32_t)(n))
#define RVERBS_NOTE_WINDOWS(n) ((n) & ~(uint64_t)UINT32_MAX)
#define RVERBS_WINDOWS_NONE    UINT64_MAX /* not a value of a note */

/* Record of a posted request. */
struct rverbs_wqe {
	uint64_t wr_id;
	uint64_t note;
};

struct rverbs_ring {
	struct rverbs_wqe *wqe;
	uint32_t mask;
	uint32_t depth;
	uint32_t prod; /* written by posts */
	uint32_t cons; /* written by polls */
} __rte_cache_aligned;

/* Posted requests that refer to windows or mkeys; see rverbs_mw.h. */
struct rverbs_mw_op;
struct rverbs_mw_ops {
	struct rverbs_mw_op *ops; /* NULL: neither on this device */
	uint32_t mask;
	uint32_t prod;
	uint32_t cons;
};

/* See rverbs_srq.c. */
#define RVERBS_SRQ_ENTRIES 65536u

struct rverbs_srq {
	struct rmem_srq srq;
	struct ibv_srq *ibv;
	struct rverbs_dev *dev;
	struct rverbs_cq *cq; /* XRC: CQ of its receives; else NULL */
	uint32_t wc_flags;    /* wc_flags of QPs that take its receives; atomic */
	uint32_t index;       /* in rverbs_dev::srqs */
	uint32_t max_sge;
	rte_ticketlock_t lock; /* protects the fields below */
	uint64_t *wr_ids;      /* wr_ids of the application, by entry */
	uint16_t *free;        /* unused entries */
	uint32_t nb;
	uint32_t nb_free;
	uint64_t recv_wrs; /* counter */
};

struct rverbs_qp {
	union {
		struct rmem_qp qp;
		struct rmem_qp_drv drv;
	};
	uint32_t gate;       /* enum rverbs_gate; atomic */
	uint32_t has_failed; /* it flushes posted requests; atomic */
	int peer_dev_id;     /* quirk of windows: device of the peer in this process, or -1 */
	struct rmem_wr_limits limits;
	uint32_t max_recv_sge;
	uint32_t wc_flags; /* of completions that need more than cq_fill() */
	uint64_t id;       /* upper part of its wr_ids of the driver */
	struct ibv_qp *ibv;
	struct ibv_qp_ex *ex; /* NULL: use ibv_post_send() */
	bool has_mw_quirk;    /* as of the device */
	bool is_list_bad;     /* as of the device */
	struct rverbs_dev *dev;
	uint32_t slot;
	uint32_t psn;
	struct rmem_qp_conf conf;
	uint32_t access; /* current rights of the peer */
	uint32_t rate_limit;
	struct rmem_qp_addr remote;
	struct rverbs_ring sq;
	struct rverbs_send_stats posted;
	struct rverbs_ring rq;
	struct rverbs_mw_ops mw_ops;
	struct rverbs_path **ahs; /* UD: by entry of sq, see rverbs_ud.c; else NULL */
	uint64_t windows;         /* windows part of the next note */
	/*
	 * windows at the last completed request; under the lock of the send CQ. Not a valid value
	 * for UD.
	 */
	uint64_t windows_done;
	struct rverbs_done_stats send_done; /* under the lock of the send CQ */
	struct rverbs_done_stats recv_done; /* under the lock of the receive CQ */
	struct mlx5dv_qp_ex *mlx5;          /* NULL: no REG_MR and UMR */
};

static inline bool
rverbs_has_windows(uint64_t capa)
{
	return (capa & (RMEM_DEV_CAPA_MW_TYPE_1 | RMEM_DEV_CAPA_MW_TYPE_2B)) != 0;
}

/* Whether the device has requests that are noted in mw_ops. */
static inline bool
rverbs_has_mw_ops(uint64_t capa)
{
	return rverbs_has_windows(capa) || (capa & RMEM_DEV_CAPA_UMR) != 0;
}

static inline struct rverbs_pd *
rverbs_pd_of(struct rmem_pd *pd)
{
	return (struct rverbs_pd *)pd;
}

static inline struct rverbs_mr *
rverbs_mr_of(struct rmem_mr *mr)
{
	return (struct rverbs_mr *)mr;
}

static inline struct rverbs_dm *
rverbs_dm_of(struct rmem_dm *dm)
{
	return (struct rverbs_dm *)dm;
}

static inline struct rverbs_xrcd *
rverbs_xrcd_of(struct rmem_xrcd *xrcd)
{
	return (struct rverbs_xrcd *)xrcd;
}

static inline struct rverbs_cq *
rverbs_cq_of(struct rmem_cq *cq)
{
	return (struct rverbs_cq *)cq;
}

static inline struct rverbs_srq *
rverbs_srq_of(struct rmem_srq *srq)
{
	return (struct rverbs_srq *)srq;
}

static inline struct rverbs_qp *
rverbs_qp_of(struct rmem_qp *qp)
{
	return (struct rverbs_qp *)qp;
}

static inline bool
rverbs_qp_has_failed(const struct rverbs_qp *qp)
{
	return __atomic_load_n(&qp->has_failed, __ATOMIC_RELAXED) != 0;
}

/*
 * rverbs_err.c: the errno with which a QP whose gate is not open refuses a request; 0 if the device
 * has moved the QP to ERR, where requests are flushed.
 */
int rverbs_err_gate(struct rverbs_qp *qp, uint32_t gate);

/* 0, or the errno with which the QP refuses requests. */
static inline int
rverbs_qp_check_gate(struct rverbs_qp *qp)
{
	uint32_t gate = __atomic_load_n(&qp->gate, __ATOMIC_RELAXED);

	return gate == RVERBS_GATE_OPEN ? 0 : rverbs_err_gate(qp, gate);
}

/* Free entries of a ring, up to the requested number; for posts. */
static inline uint32_t
rverbs_nb_free(struct rverbs_ring *ring, uint32_t wanted)
{
	uint32_t room;

	room = ring->depth - (ring->prod - __atomic_load_n(&ring->cons, __ATOMIC_ACQUIRE));
	return RTE_MIN(room, wanted);
}

/* rverbs_devs.c: device of an object. */
struct rverbs_dev *rverbs_dev_of(const struct rmem_obj *obj);
/* Set the device of a number; NULL when it is closed. */
void rverbs_devs_set(uint16_t dev_id, struct rverbs_dev *dev);
/* Number of the device with the quirk of windows that has the QP at this address, or -1. */
int rverbs_devs_find(const struct rmem_qp_addr *addr);

/* rverbs_port.c: select the port and the GID; -ENODEV with a log line if they are not usable. */
int rverbs_port_open(struct rverbs_dev *dev);

/* rverbs_probe.c: determine the capabilities of the device by tests. */
int rverbs_probe(struct rverbs_dev *dev);

/* rverbs_event.c */
int rverbs_events_start(struct rverbs_dev *dev);
void rverbs_events_stop(struct rverbs_dev *dev);

/* Kinds of calls, which determine the errnos they may return. */
enum rverbs_err_kind {
	RVERBS_ERR_OPEN,    /* opens a device */
	RVERBS_ERR_MAKE,    /* creates an object */
	RVERBS_ERR_SHARE,   /* opens a QP of another process */
	RVERBS_ERR_REG,     /* registers memory */
	RVERBS_ERR_CHANGE,  /* changes a state, or queries one */
	RVERBS_ERR_RELEASE, /* releases an object */
	RVERBS_ERR_ADVISE,
	RVERBS_ERR_RESIZE, /* resizes an SRQ or a CQ */
	RVERBS_ERR_POST,
};

/*
 * rverbs_err.c: the three error conventions of verbs. Each function returns 0 or a -errno of its
 * kind, and logs the call that failed. The conventions are: NULL with errno, for calls that create
 * an object; errno as result; and -1 with errno, or -errno as result, for some calls that create an
 * object.
 */
int rverbs_err_null(const void *object, const char *what);
int rverbs_err_code(int ret, enum rverbs_err_kind kind, const char *what);
int rverbs_err_minus(int ret, const char *what);
/* Map an errno of the kernel to -errno of the API; never 0. */
int rverbs_err_fold(int err, enum rverbs_err_kind kind);
/* Map the errno of a refused post; logs nothing. */
int rverbs_err_post(int err);

/* rverbs_map.c: values of the API; an unknown value of verbs maps to an error. */
uint8_t rverbs_map_status(enum ibv_wc_status status);
uint8_t rverbs_map_wc_opcode(enum ibv_wc_opcode opcode);
int rverbs_map_wr_opcode(uint8_t opcode); /* -1 where verbs has none */
uint32_t rverbs_map_state(enum ibv_qp_state state);

int rverbs_attr_clock(struct rmem_dev *dev, uint64_t *ticks);
int rverbs_attr_get(struct rmem_dev *dev, struct rmem_dev_attr *attr);
int rverbs_attr_gid(struct rmem_dev *dev, struct rmem_gid_entry *entry);
int rverbs_attr_pkey(struct rmem_dev *dev, uint32_t port_num, uint32_t index, uint16_t *pkey);
int rverbs_attr_port(struct rmem_dev *dev, uint32_t port_num, struct rmem_port_attr *attr);

int rverbs_pd_alloc(struct rmem_pd *pd);
int rverbs_pd_dealloc(struct rmem_pd *pd);
/* Ensure that pd->park is allocated. */
int rverbs_pd_park(struct rmem_pd *pd);

int rverbs_mr_reg(struct rmem_mr *mr, const struct rmem_mr_attr *attr);
/* Map an errno of a registration, and log the remedy. */
int rverbs_mr_refused(int err, const char *what, void *addr, size_t length, uint64_t iova,
		uint32_t access);
int rverbs_mr_dereg(struct rmem_mr *mr);
int rverbs_mr_rereg(struct rmem_mr *mr, uint32_t flags, struct rmem_pd *pd, void *addr,
		size_t length, uint32_t access, enum rmem_rereg_result *result);
int rverbs_mr_query(struct rmem_mr *mr, struct rmem_mr_info *info);

/* rverbs_xrc.c */
extern const struct rmem_xrc_ops rverbs_xrc_ops;
/* Create an SRQ of XRC; NULL with errno. */
struct ibv_srq *rverbs_xrc_srq(struct ibv_pd *pd, const struct rmem_srq_ext *ext,
		const struct ibv_srq_init_attr *init);
/* Determine whether the device has XRC; false if an object could not be released. */
bool rverbs_xrc_probe(struct rverbs_dev *dev, struct ibv_pd *pd, struct ibv_cq *cq);

/* rverbs_dm.c */
extern const struct rmem_dm_ops rverbs_dm_ops;
/* Register an MR of device memory. */
int rverbs_dm_reg(struct rmem_mr *mr, const struct rmem_mr_ext *ext);
/* Probe whether the device has device memory; false if an object of the probe can't be released. */
bool rverbs_dm_probe(struct rverbs_dev *dev, struct ibv_pd *pd);

/* rverbs_odp.c: 0, or the errno with which the driver refuses this MR. */
int rverbs_odp_check(const struct rmem_mr *mr);
/* Add an MR to the list, or remove it. */
void rverbs_odp_add(struct rverbs_dev *dev, struct rverbs_mr *mr);
void rverbs_odp_remove(struct rverbs_dev *dev, struct rverbs_mr *mr);
int rverbs_mr_advise(struct rmem_pd *pd, int advice, uint32_t flags, const struct rmem_sge *sg_list,
		uint32_t num_sge);

int rverbs_channel_create(struct rmem_comp_channel *channel);
int rverbs_channel_destroy(struct rmem_comp_channel *channel);
int rverbs_channel_get_event(struct rmem_comp_channel *channel, struct rmem_cq **cq);
int rverbs_cq_modify(struct rmem_cq *cq, const struct rmem_cq_attr *attr);
int rverbs_cq_req_notify(struct rmem_cq *cq, bool is_solicited_only);

/* Probe whether the device creates a CQ with timestamps and reports its clock; *is_held: the CQ
 * can't be released. */
bool rverbs_cq_probe_times(struct rverbs_dev *dev, bool *is_held);
int rverbs_cq_create(struct rmem_cq *cq, const struct rmem_cq_conf *conf);
int rverbs_cq_destroy(struct rmem_cq *cq);
int rverbs_cq_resize(struct rmem_cq *cq, uint32_t nb_cqe);
int rverbs_poll_cq(struct rmem_cq *cq, struct rmem_wc *wc, uint16_t nb_wc);
/* Save the device's completions before the requests of a QP are dropped. */
void rverbs_cq_save(struct rverbs_cq *cq);

int rverbs_qp_create(struct rmem_qp *qp, const struct rmem_qp_conf *conf);
/* As rmem_qp_open_t: a QP of another process, or of this one. */
int rverbs_qp_open(struct rmem_qp *qp, struct rmem_xrcd *xrcd);
int rverbs_qp_connect(struct rmem_qp *qp, const struct rmem_qp_conn *conn);
int rverbs_qp_modify(struct rmem_qp *base, const struct rmem_qp_attr *attr, uint32_t mask);
int rverbs_qp_query(struct rmem_qp *qp, struct rmem_qp_attr *attr);
int rverbs_qp_set_error(struct rmem_qp *qp);
int rverbs_qp_reset(struct rmem_qp *qp);
int rverbs_qp_destroy(struct rmem_qp *qp);
/* Create a QP of libibverbs, extended if dev->send_ops is set; for rverbs_qp.c and the probe. */
struct ibv_qp *rverbs_ibv_qp(struct rverbs_dev *dev, struct ibv_pd *pd, struct ibv_cq *send_cq,
		struct ibv_cq *recv_cq, const struct rmem_qp_conf *conf);
/* Move a QP from RESET to RTS. Return 0, or an errno and the step that failed; then the QP is in
 * RESET. */
int rverbs_ibv_connect(struct rverbs_dev *dev, struct ibv_qp *qp, uint32_t access, uint32_t psn,
		const struct rmem_qp_conn *conn, const char **what);

int rverbs_srq_create(struct rmem_srq *srq, const struct rmem_srq_conf *conf);
int rverbs_srq_destroy(struct rmem_srq *srq);
int rverbs_srq_modify(struct rmem_srq *srq, const struct rmem_srq_attr *attr, uint32_t mask);
int rverbs_srq_query(struct rmem_srq *srq, struct rmem_srq_attr *attr);
int rverbs_srq_post_recv(struct rmem_srq *srq, const struct rmem_recv_wr *wr, uint16_t nb_wr);
/* Set the SRQ capabilities of the device. */
void rverbs_srq_probe(struct rverbs_dev *dev, struct ibv_pd *pd);

int rverbs_post_send(struct rmem_qp *qp, const struct rmem_send_wr *wr, uint16_t nb_wr);
int rverbs_post_recv(struct rmem_qp *qp, const struct rmem_recv_wr *wr, uint16_t nb_wr);

int rverbs_qp_stats_get(struct rmem_qp *qp, struct rmem_dev_stats *stats);
int rverbs_stats_get(struct rmem_dev *dev, struct rmem_dev_stats *stats);
int rverbs_stats_reset(struct rmem_dev *dev);
/* Add the counters of a QP to those of destroyed ones. Under dev->lock. */
void rverbs_stats_keep(struct rverbs_dev *dev, const struct rverbs_qp *qp);

#endif /* RVERBS_H */
