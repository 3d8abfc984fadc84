/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * libibverbs' functions as fakes: one device, "fake0", whose QPs reach each other and run
 * their requests inside the post. Calls are counted, and fail on request.
 *
 * Objects lie on the heap, so that a sanitizer sees those that are forgotten. Posts and polls
 * are for one thread at a time.
 */

#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define FAKE_NB_GIDS 4

#define FAKE_NB_SEEN 64

/* A request as the device got it: key is the rkey that it is about. */
struct fake_seen {
	enum ibv_wr_opcode opcode;
	uint32_t key;
	uint32_t old_key; /* of the window that is bound */
	struct ibv_mw_bind_info info;
};

/* The mkeys of fake_mlx5.c: a status; -1: no such mkey, 0: refused, 1: done. */
struct fake_umr;
struct fake_mkeys {
	int (*run)(const struct fake_umr *umr, struct ibv_wc *wc);
	int (*invalidate)(uint32_t key, bool is_remote);
	/* Between an mkey and straight bytes; a right of 0 reads. */
	int (*copy)(uint32_t key, uint64_t addr, uint8_t *bytes, uint64_t length,
			unsigned int right);
};

/* Configuration and state of the device. fake_reset() sets a correct one. */
struct fake {
	/* The device. */
	unsigned int nb_devices; /* 0 to 2 */
	int list_errno;          /* of ibv_get_device_list() */
	int access_errno;        /* of access(2) to files of /dev/infiniband; 0: they open */
	int port_state;
	uint8_t link_layer; /* IBV_LINK_LAYER_* */
	unsigned int nb_gids;
	unsigned int nb_other_gids; /* of a second port, listed first; 0: there is one port */
	bool has_no_ex;             /* no extended QPs */
	bool has_srq;               /* shared receive queues */
	bool has_no_mcast;          /* no multicast */
	uint16_t mcast_lid;         /* of the last attachment or detachment */
	bool has_no_uc;             /* no QPs of UC */
	bool has_no_ud;             /* no QPs of UD */
	bool has_xrc;               /* XRC */
	bool has_no_open_qp;        /* ibv_open_qp() is not supported */
	uint64_t other_inode;       /* file of an XRC domain of another process; 0: none */
	bool has_ignore_overrun;    /* CQs that ignore an overrun */
	uint16_t max_cq_period;     /* of moderation; 0: there is none */
	uint32_t max_rate;          /* of QPs of RC, kbit/s; 0: there are no limits */
	struct ibv_moderate_cq moderation; /* of the last ibv_modify_cq() */
	uint64_t timestamp_mask;           /* 0: no timestamps; see FAKE_TIME */
	bool has_no_resize;                /* ibv_resize_cq() is not supported */
	bool has_no_atomic;                /* no rights for atomics */
	bool is_atomic_bad;                /* the returned value is not the previous one */
	bool has_no_relaxed;               /* no optional rights */
	bool is_quick;                     /* completes at once, and moves nothing */
	bool is_poll_bad;                  /* ibv_poll_cq() fails */
	unsigned int rereg_flags;          /* IBV_REREG_MR_* that ibv_rereg_mr() does */
	int rereg_result;     /* enum ibv_rereg_mr_err_code, with fail_errno; 0: it does */
	bool has_new_keys;    /* ibv_rereg_mr() makes new ones */
	bool has_no_mw[3];    /* no windows of type 1, of type 2 */
	bool has_no_mw_ex;    /* no extended QPs that post windows */
	bool is_list_bad;     /* extended QPs take each SGE of a list to be as long as the first */
	bool is_bind_bad;     /* bindings fail */
	bool is_inv_bad;      /* an invalidated window remains valid */
	bool has_kernel_inv;  /* reports an invalidation by the kernel's flag, as rdma_rxe does */
	bool has_rxe_windows; /* without bounds and states, as those of rdma_rxe */
	uint32_t vendor_id;
	bool is_held;       /* requests wait for fake_run_held() */
	bool is_flush_run;  /* what waits when its QP fails is executed, and flushed all the same */
	bool is_run_at_end; /* what waits when its QP is destroyed is executed before that */
	bool is_told_flushed;        /* so is a request that fails by itself */
	int failure_status;          /* of a request that fails; 0: its own */
	unsigned int nb_late_errors; /* resets that a late error undoes */
	uint64_t odp_general;        /* enum ibv_odp_general_caps */
	uint32_t odp_rc;             /* enum ibv_odp_transport_cap_bits */
	bool is_odp_misplaced;    /* data is placed at the start of the page, as by rdma_rxe 7.3 */
	bool is_odp_refused;      /* requests on on-demand MRs fail */
	bool is_implicit_refused; /* so does the registration of implicit ones */
	bool is_implicit_bad;     /* requests on those fail */
	bool is_odp_atomic_bad;   /* atomics on on-demand MRs fail */
	bool has_no_advice;
	bool has_null_mr;
	bool is_device_mapping; /* memory can't be pinned: ibv_reg_mr() is EFAULT */
	bool has_dmabuf;        /* ibv_reg_dmabuf_mr(), whose memory is not modelled */
	uint64_t max_dm_size;   /* 0: no device memory */
	uint32_t dm_log_align;  /* of the last ibv_alloc_dm() */
	int advise_result;      /* of ibv_advise_mr(), with fail_errno */
	uint32_t max_inline;
	int max_objects;                /* of most types */
	const struct fake_mkeys *mkeys; /* NULL: none */
	unsigned int nb_withdrawn; /* events that the kernel withdraws between poll() and read() */
	/* Failures. */
	unsigned int fail_at;  /* the call, counted from 1; 0 for none */
	const char *fail_name; /* every call of that function */
	int fail_errno;
	bool is_failed;         /* one did */
	bool is_release_failed; /* that one released something */
	unsigned int post_take; /* requests that a post accepts before it fails */
	int post_errno;         /* with this; 0: it accepts all */
	/* Recorded calls. */
	unsigned int nb_calls;
	int nb_live;             /* objects */
	unsigned int access;     /* of the last registration */
	unsigned int nb_classic; /* ibv_post_send() */
	unsigned int nb_ex;      /* ibv_wr_complete() */
	unsigned int nb_aborts;
	unsigned int nb_advice; /* SGEs of the last ibv_advise_mr(), and its advice */
	int advice;
	uint32_t advice_flags;
	struct fake_seen seen[FAKE_NB_SEEN]; /* requests that were posted, the last ones */
	unsigned int nb_seen;
	unsigned int nb_crashes; /* where rdma_rxe crashes, or its provider, or blocks */
	int nb_unacked;          /* events read and not acknowledged */
	void (*on_cq_event)(
			void); /* called by ibv_get_cq_event() with an event, before it returns */
};

extern struct fake fake;

void fake_reset(void);

/* Raise an event; cq and qp (or an SRQ) may be NULL. */
void fake_event(enum ibv_event_type type, struct ibv_cq *cq, struct ibv_qp *qp, int port);
/* The CQ made last, and the SRQ. */
struct ibv_cq *fake_last_cq(void);
struct ibv_srq *fake_last_srq(void);
/* Execute requests that wait, at most so many. */
void fake_run_held(uint32_t qp_num, unsigned int nb);

/* Shared by fake.c and fake_data.c. */
struct fake_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct ibv_wc now; /* of ex: returned by the last poll */
	struct ibv_wc *ring;
	uint32_t prod;
	uint32_t cons;
	bool is_overrun;
	bool is_overrun_ignored;
	int armed;            /* 1: for solicited completions, 2: for all */
	uint32_t nb_reported; /* events that ibv_get_cq_event() returned; atomic */
	uint32_t nb_acked;    /* of them, atomic */
};

/* The time of the first completion of a CQ; those of the next ones are 1, 2 and so on later. */
#define FAKE_TIME UINT64_C(1000)

/* Of each failed completion of a send queue. */
#define FAKE_VENDOR_ERR 0x89u

#define FAKE_QUEUE  256
#define FAKE_GROUPS 4 /* multicast groups of a QP */

struct fake_wqe {
	struct ibv_send_wr wr;
	struct ibv_sge sge[32];
	uint8_t data[1024]; /* inline */
	uint32_t data_len;
	uint32_t mw_rkey; /* of a window when its binding was posted */
	const struct fake_umr *umr;
};

struct fake_qp {
	struct ibv_qp_ex ex;
	struct ibv_qp_init_attr_ex init;
	uint32_t dest;
	uint32_t qkey;
	union ibv_gid group[FAKE_GROUPS];
	unsigned int nb_groups;
	int mask; /* of the last ibv_modify_qp() */
	struct ibv_qp_attr attr;
	struct ibv_qp_attr path; /* of the last one with IBV_QP_AV */
	unsigned int access;     /* of the last one with IBV_QP_ACCESS_FLAGS; 0 in RESET */
	/* Of ibv_open_qp(). */
	struct fake_qp *opened; /* a handle: its QP; else NULL */
	struct fake_qp *opener; /* a QP: its last handle */
	unsigned int nb_openers;
	bool is_left; /* only openers have it */
	struct fake_wqe batch[FAKE_QUEUE];
	uint32_t nb_batch;
	int ex_err;                /* of ibv_wr_complete(), by a request of the batch */
	struct fake_mlx5_qp *mlx5; /* NULL: not of mlx5dv */
	struct fake_wqe recv[FAKE_QUEUE];
	uint32_t recv_prod;
	uint32_t recv_cons;
	struct fake_wqe held[FAKE_QUEUE];
	uint32_t held_prod;
	uint32_t held_cons;
	bool is_run_flushed; /* while what waits is flushed */
	struct fake_qp *next;
};

struct fake_mr {
	struct ibv_mr ibv;
	uint64_t iova;
	unsigned int access;
	unsigned int nb_mw; /* bound to it */
	struct fake_mr *next;
};

struct fake_mw {
	struct ibv_mw ibv;
	uint32_t key;       /* the true one */
	struct fake_mr *mr; /* NULL: not bound */
	struct fake_qp *qp;
	uint64_t addr;
	uint64_t length;
	unsigned int access;
	struct fake_mw *next;
};

/* Whether the device registers that on demand. */
bool fake_odp_takes(const void *addr, size_t length, unsigned int access);
/* Where a request's bytes are in an on-demand MR, or NULL. */
void *fake_odp_place(const struct fake_mr *mr, uint8_t *at, unsigned int right);
/* Count a call; true when it is to fail, errno being set. */
bool fake_fails(const char *name);
/* A request that crashes rdma_rxe was made. */
void fake_crash(const char *what);
/* An object, counted; NULL where the call is to fail. */
void *fake_new(const char *name, size_t size);
/* Its end; 0. */
int fake_delete(void *object);
/* True when a release is to fail: the object stays, and is the device's. */
bool fake_keeps(const char *name, void *object);
uint32_t fake_new_key(void);
struct fake_qp *fake_qp_find(uint32_t qp_num);
struct fake_mr *fake_mr_find(uint32_t key);
void fake_qp_error(struct fake_qp *qp);
void fake_qp_drop(struct fake_qp *qp);
/* The memory of a window's key, addressed by a request to that QP, or NULL. */
void *fake_mw_access(const struct fake_qp *qp, uint32_t key, uint64_t addr, uint64_t length,
		unsigned int right);
int fake_run_bind(struct fake_qp *qp, const struct fake_wqe *wqe, struct ibv_wc *wc);
/* Execute a request: its status; one that needs no peer: its status, or -1. */
int fake_run(struct fake_qp *qp, struct fake_wqe *wqe, struct ibv_wc *wc);
int fake_run_local(struct fake_qp *qp, struct fake_wqe *wqe, struct ibv_wc *wc);
/* The memory of an lkey, or NULL. */
void *fake_local(uint32_t lkey, uint64_t addr, uint64_t length, unsigned int right);
/* Write a request that binds an mkey to an extended QP. */
void fake_ex_umr(struct ibv_qp_ex *ex, const struct fake_umr *umr, uint32_t key);
/* By a request on that QP. */
bool fake_invalidate(const struct fake_qp *qp, uint32_t key);
unsigned int fake_nb_bound_on(const struct fake_qp *qp);
/* The wr and SGEs of a receive. */
void fake_fill_recv(struct fake_wqe *wqe, const struct ibv_recv_wr *wr);
/* A request to an XRC_RECV QP names an SRQ; false: the domain of the QP has no such SRQ. */
bool fake_srq_select(struct fake_qp *qp, uint32_t number);
void fake_xrc_ops(struct verbs_context *context);
/* The QP of a handle, which may be its own. */
static inline struct fake_qp *
fake_qp_of_ibv(struct ibv_qp *ibv)
{
	struct fake_qp *qp = (struct fake_qp *)ibv;

	return qp->opened != NULL ? qp->opened : qp;
}
/* A message needs a receive: one of the SRQ, if the QP has one. */
void fake_srq_take(struct fake_qp *qp);
/* A completion of a CQ, which may be armed. */
void fake_notify(struct ibv_cq *cq, bool is_solicited);
/* The CQ is destroyed: withdraw its events, and wait until those read are acknowledged. */
void fake_withdraw(struct fake_cq *cq);
void fake_channel_ops(struct ibv_context *context);
/* A message of UD; its status. */
int fake_run_ud(struct fake_qp *qp, struct fake_wqe *wqe, struct ibv_wc *wc);
/* Between the SGEs and straight bytes, those that are there. */
bool fake_copy(struct fake_wqe *wqe, uint8_t *bytes, uint64_t room, bool is_to_sges,
		uint32_t *length);
uint64_t fake_total(const struct fake_wqe *wqe);
void fake_complete_recv(struct fake_qp *qp, struct ibv_wc wc, bool is_solicited);
void fake_srq_ops(struct ibv_context *context);
void fake_mw_ops(struct ibv_context *context);
void fake_cq_ops(struct verbs_context *context);
void fake_dm_ops(struct verbs_context *context);
void fake_odp_ops(struct verbs_context *context);
void fake_data_ops(struct ibv_context *context);
void fake_ex_ops(struct ibv_qp_ex *ex);

#endif /* FAKE_H */
