/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Shared by the files of the class. Not installed.
 *
 * Inside: the class: devices, PDs, MRs, windows, CQs, QPs and SRQs; their checks, references
 *   and lists.
 * Callers: applications (rmem_*.h), the libraries above (also rmem_obj_ref.h), drivers
 *   (rmem_driver*.h).
 * Not known here: how a driver executes a request, pools, leases, caches and connections.
 */

#ifndef RMEM_PRIV_H
#define RMEM_PRIV_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include <rmem_driver.h>

struct rte_memzone;

extern int rmem_logtype;

/** Log a line: RMEM_LOG(ERR, "format", ...). */
#define RMEM_LOG(level, ...) RMEM_LOG_LINE(level, rmem_logtype, "rmem", __VA_ARGS__)

/** Refuse a call: return RMEM_FAIL(EINVAL, "format", ...). */
#define RMEM_FAIL(error, ...) RMEM_FAIL_AS(rmem_logtype, "rmem", error, __VA_ARGS__)

/** Call an operation of an object's driver; an error, which the driver has logged, is traced. */
#define RMEM_OP(object, op, ...) rmem_traced(rmem_obj_driver(&(object)->obj)->ops.op(__VA_ARGS__))

/** Trace ret if it is an -errno, for the current public call of the thread. Return ret. */
int rmem_traced(int ret);

/** Kinds of objects: the low byte of enum rmem_obj_type. */
#define RMEM_OBJ_NB_KINDS   17
#define RMEM_OBJ_KIND(type) ((type)&0xff)

/** A device, with the private data of the class. */
struct rmem_dev_slot {
	struct rmem_dev_drv drv;        /**< Part that applications and drivers use. */
	struct rmem_dev_info info;      /**< Capabilities and limits at creation; nb_* are 0. */
	uint32_t nb[RMEM_OBJ_NB_KINDS]; /**< Objects in use, by kind; atomic. */
	LIST_HEAD(rmem_async_channels, channel) async_channels; /**< rmem_async_channel.c. */
	bool has_failed; /**< DEVICE_FATAL was reported; atomic. */
};

/** Devices of this process, by rmem_obj::dev_id. */
extern struct rmem_dev_slot rmem_devs[RMEM_MAX_DEVS];

/** Locked while devices are created, closed and visited. */
void rmem_devs_lock(void);
void rmem_devs_unlock(void);

/** Find a device by name, or a slot without a device; NULL: none. Under rmem_devs_lock(). */
struct rmem_dev *rmem_devs_find(const char *name);
struct rmem_dev_slot *rmem_devs_find_free(void);

/** Fast-path functions of a number without a device. */
extern const struct rmem_fp_ops rmem_fp_none;

/** Refuse posts, and the creation and changes of objects, because the device has failed. */
void rmem_dev_fail(struct rmem_dev *dev);

/**
 * Forget all devices in a child of fork(). They are in memory that it shares with the parent, and
 * threads that the child does not have may hold their locks.
 */
void rmem_dev_forget_all(void);

/** Whether this process is a child of fork(); and mark it as one. */
bool rmem_process_is_child(void);
void rmem_process_set_child(void);

/** -EIO and a log line if the device of an object has failed, else 0. */
int rmem_check_live(const struct rmem_obj *obj);

/** Set each missing operation to a function that returns -EOPNOTSUPP. */
void rmem_ops_none_fill(struct rmem_driver *driver);

/** Driver whose name is the first len bytes of name, or NULL. */
const struct rmem_driver *rmem_driver_find(const char *name, size_t len);

/** Get the capabilities and limits of dev, and the objects in use. */
void rmem_dev_info_fill(const struct rmem_dev *dev, struct rmem_dev_info *info);

/** Register the commands, at the start of the program. */
void rmem_telemetry_init(void);

/** Call func for each device until it returns not 0; excludes creating and closing devices. */
int rmem_dev_visit(int (*func)(struct rmem_dev *dev, void *arg), void *arg);

/** A counter of struct rmem_dev_stats. */
struct rmem_dev_stat_name {
	const char *name;
	size_t offset;
};

extern const struct rmem_dev_stat_name rmem_dev_stats_names[];
extern const size_t rmem_nb_dev_stats;

static inline uint64_t
rmem_dev_stat(const struct rmem_dev_stats *stats, const struct rmem_dev_stat_name *which)
{
	return *(const uint64_t *)(const void *)((const char *)stats + which->offset);
}

/** Driver of the device of an object. */
static inline const struct rmem_driver *
rmem_obj_driver(const struct rmem_obj *obj)
{
	return rmem_devs[obj->dev_id].drv.driver;
}

/** Limits and capabilities of the device of an object. */
static inline const struct rmem_dev_info *
rmem_obj_info(const struct rmem_obj *obj)
{
	return &rmem_devs[obj->dev_id].info;
}

/**
 * Return 0 if handle is an object of the type; else -EINVAL, or -EOPNOTSUPP in a secondary process.
 */
int rmem_obj_check(const void *handle, uint32_t type);

/** As rmem_obj_check(); the object must also be of the device of other. */
int rmem_obj_check_of(const void *handle, uint32_t type, const struct rmem_obj *other);

/** Return 0 if arg is not NULL; otherwise -EINVAL, with a log line that names it (what). */
int rmem_check_arg(const void *arg, const char *what);

/**
 * Create a zeroed object of the type. It is counted, and holds a reference to its parent, a device
 * or a PD. Return NULL with *ret on failure: -ENOSPC, -ENOMEM, or -ENODEV or -EINVAL if the parent
 * is being released.
 */
void *rmem_obj_create(struct rmem_obj *parent, uint32_t type, size_t size, int *ret);

/** Free an object of rmem_obj_create(); its handle is refused from now on. */
void rmem_obj_drop(struct rmem_obj *obj, struct rmem_obj *parent);

/** Take a reference to obj; -ENODEV or -EINVAL if it is being released. */
int rmem_obj_get(struct rmem_obj *obj);

/** Return whether a request posted by a secondary process names an object. */
typedef bool (*rmem_obj_posted_t)(const struct rmem_obj *obj);

/** Set the function that rmem_obj_kill() calls. For a constructor. */
void rmem_obj_set_posted(rmem_obj_posted_t is_posted);

/** Begin the release of obj: allow no new references; -EBUSY if there are any. */
int rmem_obj_kill(struct rmem_obj *obj);

/** As rmem_obj_kill(), without a log line. Return the number of references. */
uint32_t rmem_obj_kill_quietly(struct rmem_obj *obj);

/** Undo a successful rmem_obj_kill(). */
void rmem_obj_revive(struct rmem_obj *obj);

/**
 * End the release of obj: drop it if ret, the result of its driver, is 0, else revive it. Return
 * ret.
 */
int rmem_obj_end(struct rmem_obj *obj, struct rmem_obj *parent, int ret);

/** Fill nb_* of info. */
void rmem_obj_counts_get(const struct rmem_dev *dev, struct rmem_dev_info *info);

/** Return 0, or -EIO if a device has more objects than its limits allow. */
int rmem_obj_counts_check(const struct rmem_dev *dev);

/** Set the state of an MR, with release: preceding writes are visible to readers of the state. */
static inline void
rmem_mr_set_state(struct rmem_mr *mr, uint16_t state)
{
	__atomic_store_n(&rmem_mr_drv(mr)->state, state, __ATOMIC_RELEASE);
}

/**
 * Whether a user MR is registered, enabled or not. If not, its registration failed or is in
 * progress.
 */
static inline bool
rmem_mr_is_registered(const struct rmem_mr *mr)
{
	uint16_t state = rmem_mr_state(mr);

	return state == RMEM_MR_STATE_VALID || state == RMEM_MR_STATE_DISABLED;
}

/** Reserve an entry for the event of a new MR; -ENOSPC if there is none. */
int rmem_eq_reserve(struct rmem_eq *eq, struct rmem_mr *mr);

/** Put an event into its reserved entry. Neither EQ nor MR may be accessed afterwards. */
void rmem_eq_put(struct rmem_eq *eq, struct rmem_event *event);

/** Events of an object that is bound to a channel; under the lock of struct rmem_eventfd. */
struct rmem_eventfd_obj {
	struct rmem_obj *obj;                /**< Object that each event holds, or NULL. */
	uint32_t pending;                    /**< Events that were not returned; 0: none. */
	bool is_listed;                      /**< In the list. */
	TAILQ_ENTRY(rmem_eventfd_obj) entry; /**< In the list, if is_listed. */
};

/** Objects with events, and a file descriptor that is readable while there are any. */
struct rmem_eventfd {
	int fd;                                          /**< -1 until rmem_eventfd_open(). */
	pthread_mutex_t lock;                            /**< Protects the events and all below. */
	pthread_cond_t has_left;                         /**< nb_waiters became 0. */
	uint32_t nb_waiters;                             /**< Threads that may read fd. */
	bool is_closing;                                 /**< Waiters return. */
	TAILQ_HEAD(eventfd_list, rmem_eventfd_obj) list; /**< Objects with events. */
};

/** Remove an event from events->pending. */
typedef void (*rmem_eventfd_take_t)(struct rmem_eventfd_obj *events, void *arg);

void rmem_eventfd_init(struct rmem_eventfd *efd);

/** Open the file descriptor of the channel obj. Return 0 or -ENOMEM. */
int rmem_eventfd_open(struct rmem_eventfd *efd, const struct rmem_obj *obj);

/** List an object that has events and is not listed; under the lock. */
void rmem_eventfd_list(struct rmem_eventfd *efd, struct rmem_eventfd_obj *events);

/** Unlist an object that generates no more events. */
void rmem_eventfd_remove(struct rmem_eventfd *efd, struct rmem_eventfd_obj *events);

/**
 * Wait for an event, and take the oldest one, with a reference to its object. Return 0, -EAGAIN (no
 * event, and O_NONBLOCK), -EINTR, -EIO, or -ENODEV (efd is being closed). Nothing is logged.
 */
int rmem_eventfd_get(struct rmem_eventfd *efd, rmem_eventfd_take_t take, void *arg);

/** Close the file descriptor, after all waiters have returned. */
void rmem_eventfd_close(struct rmem_eventfd *efd);

/** Asynchronous events of an object. */
struct rmem_async_events {
	struct rmem_eventfd_obj base;       /**< A bit for each type of event. */
	struct rmem_async_channel *channel; /**< Channel that the object is bound to. */
	void *context;                      /**< Context of the object's configuration. */
	uint32_t port_num;                  /**< Port of the last port event; under the lock. */
	uint32_t nb_unacked;                /**< Returned and not acknowledged; atomic. */
	bool is_port_active;                /**< From the last port event; under the lock. */
};

/** Return 0 if channel is NULL or a channel of dev, else -EINVAL. */
int rmem_async_channel_check(struct rmem_async_channel *channel, const struct rmem_dev *dev);

/** Bind a new object to a channel; -ENOMEM. *events is NULL without a channel. */
int rmem_async_channel_bind(struct rmem_async_channel *channel, struct rmem_obj *obj, void *context,
		struct rmem_async_events **events);

/**
 * rmem_obj_revive() for an object with asynchronous events, which are returned again. NULL events:
 * the object has no channel.
 */
void rmem_async_channel_revive(struct rmem_async_events *events, struct rmem_obj *obj);

/** Drop the events of an object that generates no more, and free them; NULL has no effect. */
void rmem_async_channel_unbind(struct rmem_async_events *events);

/**
 * Drop the events of a QP without references, which may generate more, free them, and set *events
 * to NULL.
 */
void rmem_async_channel_detach(struct rmem_async_events **events);

/** Events of a CQ with a channel. */
struct rmem_cq_events {
	struct rmem_eventfd_obj base;    /**< For the channel; pending counts events. */
	uint32_t armed;                  /**< ARMED_* of rmem_cq_notify.c; atomic. */
	uint32_t nb_unacked;             /**< Returned and not acknowledged; atomic. */
	struct rmem_async_events *async; /**< Asynchronous events of the CQ, or NULL. */
	struct rmem_cq_moder *moder;     /**< NULL until rmem_cq_modify(); atomic. */
};

/**
 * Count a completion of a kind in need (rmem_cq_events::armed), and generate the event if it is
 * due. Return false, without an effect, if the CQ is not moderated.
 */
bool rmem_cq_moder_notify(struct rmem_cq *cq, struct rmem_cq_moder *moder, uint32_t need);

/**
 * Free the moderation of a CQ that generates no more events, or NULL. Must precede
 * rmem_cq_events_free().
 */
void rmem_cq_moder_free(struct rmem_cq_moder *moder);

/** Set channel, context and events of a new CQ. Return 0 or -ENOMEM. */
int rmem_cq_events_create(struct rmem_cq *cq, const struct rmem_cq_conf *conf);

/** Free the events of a CQ. */
void rmem_cq_events_free(struct rmem_cq *cq);

/** Channel operations of the class, for drivers that have none. */
int rmem_own_comp_channel_create(struct rmem_comp_channel *channel);
int rmem_own_comp_channel_destroy(struct rmem_comp_channel *channel);
int rmem_own_comp_channel_get_event(struct rmem_comp_channel *channel, struct rmem_cq **cq);
int rmem_own_cq_modify(struct rmem_cq *cq, const struct rmem_cq_attr *attr);
int rmem_own_cq_req_notify(struct rmem_cq *cq, bool is_solicited_only);

/** Add an event of a CQ to a channel of the class. */
void rmem_comp_channel_put(struct rmem_comp_channel *channel, struct rmem_cq_events *events);

/** rmem_obj_revive() for a CQ with a channel: its events are returned again. */
void rmem_comp_channel_revive(struct rmem_comp_channel *channel, struct rmem_cq_events *events);

/** Remove the events of a CQ that generates no more. */
void rmem_comp_channel_remove(struct rmem_comp_channel *channel, struct rmem_cq_events *events);

/** Return 0 if dev has XRC and xrcd is a domain of it; else -EINVAL or -EOPNOTSUPP. */
int rmem_xrcd_check(const struct rmem_xrcd *xrcd, const struct rmem_dev *dev);

/**
 * Release the caller's reference to a QP without handles of this process: unhold(qp, qp), of
 * rmem_obj_visit(), returns 1 if other processes hold it. Then the QP counts as one that only they
 * hold, from the same moment on. Return this.
 */
bool rmem_xrcd_leave(struct rmem_xrcd *xrcd, struct rmem_qp *qp,
		int (*unhold)(struct rmem_obj *qp, void *arg));

/** This process has opened such a QP again. */
void rmem_xrcd_reopen_qp(struct rmem_xrcd *xrcd);

/**
 * rmem_obj_drop() of a QP; is_left: only other processes held it. Also frees a handle that was
 * closed before its last QP.
 */
void rmem_xrcd_drop_qp(struct rmem_xrcd *xrcd, struct rmem_obj *qp, bool is_left);

/**
 * Begin the release of a device to which only closed handles refer, whose QPs only other processes
 * hold: allow no new references. Return false, without an effect, if it has other references.
 */
bool rmem_xrcd_kill_left(struct rmem_dev *dev);

/** Return 0 if [offset, offset + length) is within device memory, else -EINVAL. */
int rmem_dm_check_range(const struct rmem_dm *dm, uint64_t offset, size_t length);

/** Whether an SRQ is one of XRC. */
bool rmem_srq_is_xrc(const struct rmem_srq *srq);

/** Return 0 if all n bytes at mem are zero, else -EINVAL. */
int rmem_check_reserved(const void *mem, size_t n);

/** rmem_chunk_reserve() without the checks of arguments other than length. */
int rmem_chunk_alloc(const char *name, size_t length, int socket_id, const struct rte_memzone **mz);
/**
 * As rmem_chunk_alloc(), but up to half of a hugepage is rounded up to system pages only, and
 * shares its hugepage.
 */
int rmem_chunk_alloc_part(
		const char *name, size_t length, int socket_id, const struct rte_memzone **mz);

#endif /* RMEM_PRIV_H */
