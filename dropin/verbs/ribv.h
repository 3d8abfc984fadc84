/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * librmem_ibv_core.so: the ibv_* functions of libibverbs for objects of rmem's devices.
 * librmem_ibv.so (ribv_preload.c) passes calls to it.
 *
 * Inside: the functions of libibverbs for objects of soft0.
 * Callers: preload, by a table of functions, and cm.
 * Not known here: rdma_cm, sockets, the preloaded functions of libc, and drivers.
 *
 * Each function passes objects of other devices to libibverbs. For its own objects it calls the
 * class (rmem_*), never a driver.
 */

#ifndef RIBV_H
#define RIBV_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <rte_pause.h>

#include <rmem.h>
#include <rmem_fp.h>

#include "../ribv_verbs.h"
#include "rmem_env.h" /* RMEM_ENV_KEPT, of this folder and of cm/ */

#define RIBV_PORT 1u

/* Maximum number of devices of a process. */
#define RIBV_MAX_DEVS 8u

/* Number of the first verbs device, uverbs256; the kernel uses lower numbers. */
#define RIBV_VERBS_NUMBER 256u

/* The definition of a function in libibverbs. */
#define RIBV_NEXT(name) ((__typeof__(&name))ribv_next(#name))

/*
 * Objects are in slots of one array, so a pointer can be checked before it is dereferenced.
 *
 * Invariant: a program may overwrite the public part of an object. Calls read there only fields
 * that a program may set; everything else is in the private part. Control calls refuse an object
 * whose public part differs from the private part.
 */
#define RIBV_MAX_OBJS 65536
/* Limit of address handles, so that other objects have slots too. */
#define RIBV_MAX_AHS 32768
#define RIBV_SLOT    1088

/* Name of the memfd that is a context's command file. */
#define RIBV_FILE_NAME "rmem_ibv_cmd"

enum ribv_type {
	RIBV_FREE,
	RIBV_UNIMPORTED, /* an unimported PD; ribv_handle.c */
	RIBV_NEW,
	RIBV_CONTEXT,
	RIBV_PD,
	RIBV_MR,
	RIBV_MW,
	RIBV_CQ,
	RIBV_QP,
	RIBV_SRQ,
	RIBV_TD,
	RIBV_CHANNEL,
	RIBV_AH,
	RIBV_DM,
	RIBV_XRCD,
	RIBV_BUF,
	RIBV_CNTR,
};

struct ribv_context {
	struct verbs_context verbs;
	struct rmem_async_channel *async;
	uint32_t dev;   /* device number */
	int cmd_fd;     /* command file; contexts with the same one share objects */
	dev_t file_dev; /* identifies the command file */
	ino_t file_ino;
	struct ribv_table *table; /* mapping of the command file, or NULL; atomic */
	uint32_t owner;           /* PID of the command file's owner; 0: this process */
	int locks;                /* with owner: description of the file that holds the locks */
	void (*release)(struct ibv_context *context); /* called when it is closed; or NULL */
};

struct ribv_channel {
	struct ibv_comp_channel ibv;
	struct ibv_context *context;
	struct rmem_comp_channel *channel;
};

struct ribv_td {
	struct ibv_td ibv;
	struct ibv_context *context;
	uint32_t refs; /* parent domains that use it; atomic */
};

struct ribv_pd {
	struct ibv_pd ibv;
	struct ibv_context *context;
	struct rmem_pd *pd; /* NULL: destroyed by another handle; ribv_handle.c */
	uint32_t handle;    /* slot of the first handle */
	bool is_imported;
	bool is_foreign;        /* imported from another process; ribv_import.c */
	struct ribv_pd *parent; /* of a parent domain: its PD; else NULL */
	struct ribv_td *td;     /* of a parent domain: its thread domain, or NULL */
	uint32_t refs;          /* parent domains of this PD; atomic */
};

struct ribv_dm {
	struct ibv_dm ibv;
	struct ibv_context *context;
	struct rmem_dm *dm; /* NULL: freed by another handle; ribv_handle.c */
	uint32_t handle;    /* slot of the first handle */
	bool is_imported;
	const struct ribv_context *foreign; /* imported from another process: its context */
};

struct ribv_mr {
	struct ibv_mr ibv;
	struct ribv_pd *pd;
	struct rmem_mr *mr; /* NULL: deregistered by another handle; ribv_handle.c */
	uint32_t handle;    /* slot of the first handle */
	bool is_on_demand;  /* the program may unmap its memory */
	bool is_plain;      /* by ibv_reg_mr() or a variant: ibv_rereg_mr() accepts it */
	bool is_imported;
	/* Imported from another process (ribv_import.c): its context; NULL: it is not. */
	const struct ribv_context *foreign;
	void *map; /* of its memory */
	size_t map_size;
	struct rmem_dm *memory; /* or its device memory */
	/* An MR of device memory, in its owner: handle of the memory, else 0. */
	uint32_t dm;
	uint64_t dm_offset;
};

struct ribv_mw {
	struct ibv_mw ibv;
	struct ribv_pd *pd;
	struct rmem_mw *mw;
};

struct ribv_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct rmem_cq *cq;
	struct ibv_context *context;
	struct ribv_channel *channel;   /* or NULL */
	uint32_t refs;                  /* QP queues that use it; atomic */
	struct rmem_wc *kept;           /* completions kept when those of a QP were removed */
	uint32_t max_kept;              /* entries of kept, as many as of the CQ */
	uint32_t first_kept, last_kept; /* range in kept; the program polls it first */
	uint64_t *kept_times;           /* timestamps, in memory after kept; NULL: none */
	struct rmem_wc now;             /* current completion of ibv_start_poll() */
	uint64_t now_time;              /* its timestamp */
	uint8_t roce_header;            /* ribv_sl() */
	uint32_t nb_empty;              /* polls without a completion since the last yield */
	uint32_t nb_events;             /* events returned to the program, of both kinds; atomic */
	uint32_t nb_lost;               /* completions removed with their QP, except flushed ones */
	bool is_polled;                 /* a completion was returned; for sanitize=1 */
	uint32_t lock;                  /* held by polls */
};

struct ribv_ah {
	struct ibv_ah ibv;
	struct ribv_pd *pd;
	struct rmem_ah *ah;
};

struct ribv_xrcd {
	struct ibv_xrcd ibv;
	struct ibv_context *context;
	struct rmem_xrcd *xrcd;
};

/* A buffer of ibv_alloc_buf(). */
struct ribv_buf {
	void *addr;
	size_t size;
	struct ibv_pd *pd;
};

#ifdef RIBV_HAS_COMP_CNTR
struct ribv_cntr {
	struct ibv_comp_cntr ibv;
	struct ibv_context *context;
	struct rmem_counter *counter;
};
#endif

struct ribv_srq {
	struct ibv_srq ibv;
	struct ribv_pd *pd;
	struct rmem_srq *srq;
	struct ribv_cq *cq; /* of XRC: CQ of its receives; else NULL */
	uint32_t refs;      /* QPs; atomic */
	uint32_t nb_events; /* events returned to the program; atomic */
};

struct ribv_batch;
struct ribv_watch;

struct ribv_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	struct ribv_batch *batch; /* for ibv_wr_*, or NULL */
	struct ribv_watch *watch; /* with sanitize=1, or NULL */
	struct rmem_qp *qp;
	struct ibv_context *context;
	struct ribv_pd *pd; /* NULL for XRC_RECV, as are the CQs */
	bool is_ud;
	bool is_xrc;                       /* XRC_SEND */
	bool is_opened;                    /* XRC_RECV of another process */
	struct ribv_cq *send_cq, *recv_cq; /* equal for XRC_SEND */
	LIST_ENTRY(ribv_qp) next;          /* in the lists of ribv_qp.c */
	struct ibv_qp_init_attr init;
	struct ibv_ah_attr ah; /* as set by the program */
	unsigned int access;   /* as set by the program */
	uint32_t nb_events;    /* events returned to the program; atomic */
	uint32_t send_lock;    /* held by posts of send requests */
	uint32_t recv_lock;    /* held by posts of receives */
};

/* ribv_obj.c: how to find the functions of libibverbs. */
void ribv_obj_init(ribv_next_t next);

/* ribv_env.c: the environment of the class. */
/*
 * Called when the library is loaded: a child of fork() starts with the data of that time. The
 * handlers are called before fork(), after it in the parent, and in the child before its data is
 * reset.
 */
void ribv_env_init(void (*prepare)(void), void (*parent)(void), void (*child)(void));
/* Give the calling thread an EAL slot for posts and polls; false: no slot is free. */
bool ribv_env_attach(void);
/* Whether RMEM_IBV_LOG selects at least this level of DPDK's logs (RTE_LOG_*). */
bool ribv_env_logs(uint32_t level);
/* Store the first line that is logged from now on, unless RMEM_IBV_LOG is set. */
void ribv_env_log_keep(void);
/*
 * Stop storing, and return the stored line or "". From now on, if is_checked and RMEM_IBV_LOG is
 * not set, warnings of the devices are reported as findings (ribv_finding.h). If it is set, all
 * lines of its level are on stderr.
 */
const char *ribv_env_log_kept(bool is_checked);

/* ribv_report.c */
/* With RMEM_IBV_STATS, or RMEM_IBV_LOG at level info, report the devices' counters at exit. */
void ribv_report_start(void);
/* Append to the file named by an environment variable, if it is set. */
void ribv_report_append(const char *variable, const char *text, size_t len);

/* ribv_sanitize.c: incorrect use of objects, reported on stderr with the calls that led to it. */
/* Start recording; at exit report the objects that are not destroyed. */
void ribv_sanitize_start(void);
/* Wait until the events of an object that is being destroyed are acknowledged; type is its name. */
void ribv_sanitize_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, const char *type);
/* Called before a CQ is freed. */
void ribv_sanitize_cq_end(struct ribv_cq *cq);
/* Called before an MR is deregistered. */
void ribv_sanitize_mr_end(const struct ribv_mr *mr);

/* ribv_watch.c: requests in flight, with sanitize=1. */
/* Use checksums of send buffers (sanitize=2). */
void ribv_watch_sums(uint32_t dev);
/* Called when a QP of a device that may have sanitize=1 is created, changes its state, or is
 * destroyed. */
void ribv_watch_begin(struct ribv_qp *qp);
void ribv_watch_state(struct ribv_watch *watch, enum ibv_qp_state state);
void ribv_watch_end(struct ribv_watch *watch);
/* Called when the process exits. */
void ribv_watch_exit(void);
/* Place of the program's post; set before the functions below. */
extern __thread const void *ribv_caller;
/* ribv_watch_send() is called before a post, and returns how many of the n requests are recorded;
 * ribv_watch_sent() is called after it, with the number of accepted requests. */
unsigned int ribv_watch_send(
		struct ribv_watch *watch, const struct rmem_send_wr *wr, unsigned int n);
void ribv_watch_sent(struct ribv_watch *watch, unsigned int kept, unsigned int done, int err);
/* ribv_watch_recv() is called before the post of a receive, and returns whether it is recorded;
 * ribv_watch_unrecv() is called if a recorded receive was refused. */
bool ribv_watch_recv(struct ribv_watch *watch, const struct rmem_recv_wr *wr);
void ribv_watch_unrecv(struct ribv_watch *watch);
void ribv_watch_polled(struct ribv_cq *cq, const struct rmem_wc *wc, int n);
void ribv_watch_dereg(uint32_t dev, uint32_t lkey);

/* ribv_sum.c */
uint64_t ribv_sum(const struct rmem_sge *sges, uint32_t n);
bool ribv_is_mapped(const struct rmem_sge *sge);
bool ribv_are_readable(const struct rmem_sge *sges, uint32_t n);

/* ribv_poison.c: a pattern in receive buffers. */
/* Number of first bytes of a message that are compared with the pattern. */
#define RIBV_POISON 16
/*
 * Shorten the buffer of a UD receive to GRH and datagram: UCX posts a few bytes more than its
 * buffer has.
 */
void ribv_ud_clip(struct rmem_sge *sges, uint32_t n);
/* Write the pattern; false if not all of the buffer could be written. */
bool ribv_poison_set(const struct rmem_sge *sges, uint32_t n);
/* Address of the first changed byte after the received ones; 0: none. */
uint64_t ribv_poison_written(const struct rmem_sge *sges, uint32_t n, uint64_t nb_received);
/* Whether the received data equals the pattern. */
bool ribv_poison_received(const struct rmem_sge *sges, uint32_t n, uint64_t nb_received);

/* ribv_obj.c */
extern ribv_next_t ribv_next;
/* Convert the result of a class call to the errno of verbs. */
int ribv_errno(int ret);
/* Set errno and return NULL. */
void *ribv_fail(int err);
/* Set errno and return -1. */
int ribv_minus_one(int err);
/* Allocate a zeroed slot; NULL with errno set. */
void *ribv_new(void);
/* Make a complete object visible in its slot; return its handle. */
uint32_t ribv_enter(void *obj, enum ribv_type type);
/* Called before an object is entered; NULL: not used. */
extern void (*ribv_entered)(uint32_t slot);
/* Free the slot of an object. */
void ribv_leave(void *obj);
/* In a child of fork(), before its data is reset: save the types of the objects. */
void ribv_obj_forked(void);
/* By slot: types of the objects that a child of fork() has inherited and not released; NULL: none;
 * atomic. */
extern uint8_t *ribv_inherited;
extern uintptr_t ribv_objs;
extern uint8_t ribv_types[RIBV_MAX_OBJS]; /* by slot; atomic */
extern bool ribv_has_real;                /* the program may have a real device; atomic */
/* The devices by number, ending with NULL; set by ribv_dev.c. */
extern struct rmem_dev *ribv_devs[RIBV_MAX_DEVS + 1];

/* Locks of posts and polls; 0: free; atomic. Inline, because libc's locks cost two function
 * calls. */
static inline bool
ribv_trylock(uint32_t *lock)
{
	return __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void
ribv_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/*
 * Take a lock that threads of the program share. Its holder may have no CPU: a poll that finds no
 * packets yields, so waiters yield too.
 */
static inline void
ribv_lock(uint32_t *lock)
{
	unsigned int spins = 0;

	while (!ribv_trylock(lock)) {
		if (++spins % 64 == 0)
			sched_yield();
		rte_pause();
	}
}

/* Slot of an object of that type in an array of types; 0 if there is no such object. */
static inline uint32_t
ribv_slot_in(const uint8_t *types, const void *obj, enum ribv_type type)
{
	uintptr_t offset = (uintptr_t)obj - ribv_objs;
	uint32_t i = (uint32_t)(offset / RIBV_SLOT);

	if (offset >= (uintptr_t)RIBV_MAX_OBJS * RIBV_SLOT || offset % RIBV_SLOT != 0)
		return 0;
	return __atomic_load_n(&types[i], __ATOMIC_ACQUIRE) == type ? i : 0;
}

/* The same among the objects of this process. */
static inline uint32_t
ribv_slot(const void *obj, enum ribv_type type)
{
	return ribv_slot_in(ribv_types, obj, type);
}

/* Object of that type in a slot; NULL if there is none. */
static inline void *
ribv_at(uint32_t slot, enum ribv_type type)
{
	if (slot >= RIBV_MAX_OBJS || __atomic_load_n(&ribv_types[slot], __ATOMIC_ACQUIRE) != type)
		return NULL;
	return (void *)(ribv_objs + (uintptr_t)slot * RIBV_SLOT);
}

/* Whether this child of fork() has inherited the object and not released it. */
static inline bool
ribv_is_inherited(const void *obj, enum ribv_type type)
{
	return ribv_inherited != NULL && ribv_slot_in(ribv_inherited, obj, type) != 0;
}

/*
 * Release an object that is not an object of this process. Return 0, once, for an inherited object,
 * which the parent keeps; otherwise ENOENT.
 */
static inline int
ribv_leave_inherited(const void *obj, enum ribv_type type)
{
	if (!ribv_is_inherited(obj, type))
		return ENOENT;
	__atomic_store_n(&ribv_inherited[ribv_slot_in(ribv_inherited, obj, type)], RIBV_FREE,
			__ATOMIC_RELEASE);
	return 0;
}

/* Whether a pointer is in the array of objects. Calls for real devices refuse it. */
static inline bool
ribv_is_own(const void *obj)
{
	return obj != NULL && (uintptr_t)obj - ribv_objs < (uintptr_t)RIBV_MAX_OBJS * RIBV_SLOT;
}

/* Whether the object may belong to a real device, so that libibverbs gets the call. */
static inline bool
ribv_is_real(const void *obj)
{
	return obj != NULL && __atomic_load_n(&ribv_has_real, __ATOMIC_RELAXED) &&
			!ribv_is_own(obj);
}

/* Whether the object is one of rmem, is not freed, and has an unchanged public part. */
static inline bool
ribv_is_pd(const struct ibv_pd *pd)
{
	const struct ribv_pd *own = (const struct ribv_pd *)pd;

	return ribv_slot(pd, RIBV_PD) != 0 && own->pd != NULL && pd->handle == own->handle &&
			pd->context == own->context;
}

static inline bool
ribv_is_mr(const struct ibv_mr *mr)
{
	const struct ribv_mr *own = (const struct ribv_mr *)mr;

	return ribv_slot(mr, RIBV_MR) != 0 && own->mr != NULL && mr->handle == own->handle &&
			mr->pd == &own->pd->ibv && mr->context == own->pd->context &&
			mr->lkey == own->mr->lkey && mr->rkey == own->mr->rkey;
}

/* The rkey of a window is not compared: the program may set it. */
static inline bool
ribv_is_mw(const struct ibv_mw *mw)
{
	const struct ribv_mw *own = (const struct ribv_mw *)mw;
	uint32_t slot = ribv_slot(mw, RIBV_MW);

	return slot != 0 && mw->handle == slot && mw->pd == &own->pd->ibv &&
			mw->context == own->pd->context && mw->type == own->mw->type;
}

static inline bool
ribv_is_cq(const struct ibv_cq *cq)
{
	const struct ribv_cq *own = (const struct ribv_cq *)cq;
	uint32_t slot = ribv_slot(cq, RIBV_CQ);

	return slot != 0 && cq->handle == slot && cq->context == own->context &&
			cq->channel == (struct ibv_comp_channel *)own->channel;
}

static inline bool
ribv_is_qp(const struct ibv_qp *qp)
{
	const struct ribv_qp *own = (const struct ribv_qp *)qp;
	uint32_t slot = ribv_slot(qp, RIBV_QP);

	return slot != 0 && qp->handle == slot && qp->pd == (const struct ibv_pd *)own->pd &&
			qp->context == own->context && qp->qp_num == own->qp->qp_num &&
			qp->send_cq == own->init.send_cq && qp->recv_cq == own->init.recv_cq &&
			qp->srq == own->init.srq && qp->qp_type == own->init.qp_type;
}

static inline bool
ribv_is_srq(const struct ibv_srq *srq)
{
	const struct ribv_srq *own = (const struct ribv_srq *)srq;
	uint32_t slot = ribv_slot(srq, RIBV_SRQ);

	return slot != 0 && srq->handle == slot && srq->pd == &own->pd->ibv &&
			srq->context == own->pd->context;
}

static inline bool
ribv_is_xrcd(const struct ibv_xrcd *xrcd)
{
	return ribv_slot(xrcd, RIBV_XRCD) != 0 &&
			xrcd->context == ((const struct ribv_xrcd *)xrcd)->context;
}

static inline bool
ribv_is_ah(const struct ibv_ah *ah)
{
	const struct ribv_ah *own = (const struct ribv_ah *)ah;
	uint32_t slot = ribv_slot(ah, RIBV_AH);

	return slot != 0 && ah->handle == slot && ah->pd == &own->pd->ibv &&
			ah->context == own->pd->context;
}

/*
 * For posts and polls: check only the address. As with NICs, nothing is read from the public part,
 * which the program may have overwritten.
 */
static inline bool
ribv_may_post(const struct ibv_qp *qp)
{
	return ribv_slot(qp, RIBV_QP) != 0;
}

static inline bool
ribv_may_post_srq(const struct ibv_srq *srq)
{
	return ribv_slot(srq, RIBV_SRQ) != 0;
}

static inline bool
ribv_may_poll(const struct ibv_cq *cq)
{
	return ribv_slot(cq, RIBV_CQ) != 0;
}

static inline bool
ribv_may_send_to(const struct ibv_ah *ah)
{
	return ribv_slot(ah, RIBV_AH) != 0;
}

/* Check that the window and the MR, if any, of a bind belong to the context; 0 or an errno. */
static inline int
ribv_check_bind(const struct ibv_context *context, const struct ibv_mw *mw, const struct ibv_mr *mr)
{
	if (ribv_slot(mw, RIBV_MW) == 0 ||
			(mr != NULL &&
					(ribv_slot(mr, RIBV_MR) == 0 ||
							((const struct ribv_mr *)mr)->mr == NULL)))
		return ENOENT;
	if (((const struct ribv_mw *)mw)->pd->context != context ||
			(mr != NULL && ((const struct ribv_mr *)mr)->pd->context != context))
		return EINVAL;
	return 0;
}

/* The private context of a public one. */
static inline struct ribv_context *
ribv_context_of(const struct ibv_context *context)
{
	return (struct ribv_context *)((uintptr_t)context -
			offsetof(struct verbs_context, context));
}

static inline bool
ribv_is_context(const struct ibv_context *context)
{
	return ribv_slot(ribv_context_of(context), RIBV_CONTEXT) != 0;
}

/* Channel of a context's asynchronous events. */
static inline struct rmem_async_channel *
ribv_async_of(struct ibv_context *context)
{
	return ribv_context_of(context)->async;
}

/* ribv_dev.c */
__be64 ribv_node_guid(const struct rmem_dev *dev);
bool ribv_is_device(const struct ibv_device *device);
/* Number of a device of rmem. */
uint32_t ribv_dev_number(const struct ibv_device *device);
/* Type of the IP header of RoCE v2 as mlx5 reports it, for a device by number; 0 on InfiniBand. See
 * ribv_sl(). */
uint8_t ribv_roce_header(uint32_t number);

/* The device of a context. */
static inline struct rmem_dev *
ribv_dev_of(const struct ibv_context *context)
{
	return ribv_devs[ribv_context_of(context)->dev];
}

/*
 * Whether the context is valid for calls that only need the device (queries, device memory). In a
 * child of fork() an inherited context is valid too, with the child's device.
 */
bool ribv_has_device(const struct ibv_context *context);

/* Device by number, NULL if there is none. The first call creates all devices. */
struct ibv_device *ribv_device(uint32_t number);

/* ribv_query.c */
int ribv_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		struct ibv_device_attr_ex *attr, size_t attr_size);
int ribv_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
int ribv_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		size_t len);

/*
 * ribv_context.c: create a context of a device; NULL with errno. from: the context it is imported
 * from, whose command file cmd_fd refers to; or NULL: create a command file.
 */
struct ibv_context *ribv_context_new(uint32_t dev, const struct ribv_context *from, int cmd_fd);

/* ribv_handle.c */
/* An object now has more than one handle. */
void ribv_handle_imported(void);
/*
 * Enter an object of this process into the table of its context's command file. Withdraw it before
 * it is destroyed or changed: 0, or EBUSY if another process has imported it.
 */
void ribv_handle_publish_pd(const struct ribv_pd *pd);
void ribv_handle_publish_mr(const struct ribv_mr *mr);
void ribv_handle_publish_dm(const struct ribv_dm *dm);
int ribv_handle_withdraw(const struct ibv_context *context, uint32_t handle);
/* Open a command file for a new context; 0 or an errno. */
int ribv_handle_file_open(struct ribv_context *context);
/* Whether a handle of this PD has parent domains. */
bool ribv_handle_pd_has_parents(const struct ribv_pd *pd);
/* The object was destroyed through this handle: invalidate its other handles. */
void ribv_handle_pd_ended(const struct ribv_pd *ended);
void ribv_handle_mr_ended(const struct ribv_mr *ended);
void ribv_handle_dm_ended(const struct ribv_dm *ended);
/* Called when a context is closed: unmap its table, and free the slots of its unimported PDs. */
void ribv_handle_free(struct ibv_context *context);

/*
 * ribv_dm.c: create a handle of device memory; handle is 0 for the first one, foreign the context
 * that it is imported by from another process, or NULL. NULL with errno.
 */
struct ibv_dm *ribv_dm_handle(struct ibv_context *context, struct rmem_dm *memory, uint32_t handle,
		const struct ribv_context *foreign);

/* ribv_channel.c: whether the channel belongs to rmem. */
bool ribv_is_channel(const struct ibv_comp_channel *channel);

/* ribv_ah.c */
/* Convert an address vector to the class's format. */
void ribv_ah_attr(const struct ibv_ah_attr *ibv, struct rmem_ah_attr *attr);
void ribv_ah_attr_back(const struct rmem_ah_attr *attr, struct ibv_ah_attr *ibv);
/* Set the destination of a UD request; 0 or an errno. */
int ribv_ud_wr(const struct ribv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn,
		uint32_t remote_qkey, struct rmem_send_wr *wr);

/* ribv_cq.c */
/* Whether the completion is of a UD message, and reports its source. */
static inline bool
ribv_has_src_qp(const struct rmem_wc *wc)
{
	return wc->status == RMEM_WC_SUCCESS && (wc->flags & RMEM_WC_GRH) != 0;
}

/*
 * SL of a UD message. On RoCE v2 it is the type of the IP header in the GRH, as mlx5 reports it,
 * and 0 on InfiniBand. Verbs has no field for it (IBTA A17.4.5.1), so UCX reads it here.
 */
static inline uint8_t
ribv_sl(const struct ribv_cq *cq, const struct rmem_wc *wc)
{
	return ribv_has_src_qp(wc) ? cq->roce_header : 0;
}

/* ibv_create_cq() for a context of rmem; flags are RMEM_CQ_*. */
struct ibv_cq *ribv_cq_create(struct ibv_context *context, uint32_t cqe, void *cq_context,
		struct ibv_comp_channel *channel, int comp_vector, uint32_t flags);
/* IBV_WC_FLUSH, which is not in headers before rdma-core 46. */
#define RIBV_WC_FLUSH 8

/* Convert an opcode: values are those of verbs, except FLUSH, and BIND_MW for all WCs of
 * windows. */
static inline enum ibv_wc_opcode
ribv_wc_opcode(const struct rmem_wc *wc)
{
	return (enum ibv_wc_opcode)(wc->opcode == RMEM_WC_FLUSH ? RIBV_WC_FLUSH : wc->opcode);
}

/* Poll; the caller holds the lock of the CQ. */
int ribv_poll_locked(struct ribv_cq *cq, struct rmem_wc *wc, int n);
/* Remove the completions of a QP that is reset or destroyed. */
void ribv_cq_forget(struct ribv_cq *cq, uint32_t qp_num);

/* ribv_cq_peek.c */
/* Process arrived packets, and return whether the CQ has, or may have, completions that the program
 * has not polled. Does not wait for locks of the program's threads. */
bool ribv_cq_has_wc(struct ribv_cq *cq);

/* ribv_post.c */
/* Post n requests under the send lock. Return how many were accepted, and in *err why not all. */
unsigned int ribv_post_burst(
		struct ribv_qp *qp, const struct rmem_send_wr *wr, unsigned int n, int *err);
/* Convert a receive to the class's format; 0 or -EINVAL. */
int ribv_recv_wr(const struct ibv_recv_wr *ibv, struct rmem_recv_wr *wr);
/* Errno of a post that accepted fewer requests than given. */
int ribv_post_errno(int ret);
/* Result of a post; an error is also stored in errno. */
static inline int
ribv_post_fail(int err)
{
	if (err != 0)
		errno = err;
	return err;
}
/* The same for receives; *bad_wr is written only if a receive was refused. */
static inline int
ribv_recv_result(struct ibv_recv_wr **bad_wr, struct ibv_recv_wr *wr, int err)
{
	if (err != 0)
		*bad_wr = wr;
	return ribv_post_fail(err);
}
/* Set the bind part of a request; 0 or an errno. */
int ribv_bind_wr(const struct ribv_qp *qp, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info, struct rmem_send_wr *wr);
/*
 * Set the window's rkey before the bind is posted: its index, with the lowest 8 bits of rkey, as
 * irdma's provider does. Return the previous rkey, for a bind that is refused. Not after the post,
 * when another thread may have freed the window.
 */
uint32_t ribv_bind_begin(struct ibv_mw *mw, uint32_t rkey);

/* ribv_qp.c: ribv_cq_has_wc() for the CQs of a QP; false if the device has no such QP. */
bool ribv_qp_has_wc(const struct rmem_dev *dev, uint32_t qp_num);
/* Access flags for FLUSH that QPs of a device can have: IBV_ACCESS_FLUSH_*. */
uint32_t ribv_flush_rights(const struct rmem_dev *dev);

/* Largest rate limit in kbit/s: the nominal rate of the link. */
#define RIBV_MAX_RATE UINT32_C(100000000)
/* ribv_qp.c */
/*
 * The oldest handle of an XRC_RECV QP, of a context if that has one, which gets an event of the QP;
 * NULL: this process has none.
 */
struct ribv_qp *ribv_qp_take_event(const struct ibv_context *context, const struct rmem_qp *own);
int ribv_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);

/* ribv_qp_ex.c: create the batch of a QP for ibv_wr_*; 0 or an errno. */
int ribv_batch_create(struct ribv_qp *qp, uint64_t send_ops);

/* ribv_td.c: free a parent domain. */
void ribv_parent_domain_free(struct ribv_pd *pd);

/* ribv_ops.c: set the operations of a context. */
void ribv_ops_set(struct verbs_context *context);

/* Operations that programs call through the context. */
/*
 * Register an MR with a PD of rmem; without attributes, a null MR. Its public addr and length are
 * not set yet.
 */
struct ibv_mr *ribv_mr_reg(
		struct ibv_pd *pd, const struct rmem_mr_attr *attr, const struct ribv_dm *dm);
struct ibv_mr *ribv_alloc_null_mr(struct ibv_pd *pd);
struct ibv_dm *ribv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int ribv_free_dm(struct ibv_dm *dm);
struct ibv_mr *ribv_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
		unsigned int access);
int ribv_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_mw *ribv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int ribv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int ribv_dealloc_mw(struct ibv_mw *mw);
int ribv_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int ribv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int ribv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int ribv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int ribv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int ribv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_srq *ribv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init);
struct ibv_td *ribv_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int ribv_dealloc_td(struct ibv_td *td);
struct ibv_pd *ribv_alloc_parent_domain(
		struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
struct ibv_cq_ex *ribv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init);
struct ibv_qp *ribv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);
struct ibv_qp *ribv_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_xrcd *ribv_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int ribv_close_xrcd(struct ibv_xrcd *xrcd);
int ribv_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);

#endif /* RIBV_H */
