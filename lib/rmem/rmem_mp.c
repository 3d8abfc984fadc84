/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Secondary processes: the part of the primary, with the table of processes.
 *
 * EAL's message thread answers requests. A control thread, the reaper, waits for processes to end;
 * it runs while the table has entries. Invariant: an entry is written under the lock of the table.
 * It exists from ATTACH until the reaper, or the last DETACH, has released the resources of the
 * process. Its pidfd is opened before the process gets any resource, so no end is missed.
 *
 * Lock order: lock of the table, lock of the lists of objects, locks of the driver.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "rmem_mp_priv.h"
#include "rmem_obj_priv.h"

#define MP_MAX_ENDS 4

struct mp_process {
	struct mp_id id; /* pid 0: the entry is free */
	int pidfd;
	uint64_t devs; /* a bit for each device that it is attached to */
	uint64_t lcores[MP_LCORE_WORDS];
};

static_assert(RMEM_MAX_DEVS <= 64, "a bit for each device");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mp_process processes[RMEM_PROCESS_MAX + 1]; /* by number */
static struct mp_dev *devs[RMEM_MAX_DEVS];
static uint16_t last = RMEM_PROCESS_MAX; /* number assigned last */
static uint32_t nb_processes;            /* written under the lock, atomic */
static bool is_started;
static bool has_channel; /* secondary processes can attach */
static bool is_reaping;  /* the reaper runs */
static int wake_fd = -1;
static struct rmem_thread reaper;
static rmem_mp_end_t ends[MP_MAX_ENDS];
static uint16_t nb_ends;

int
rmem_mp_end_add(rmem_mp_end_t end)
{
	RMEM_CALL(NULL);
	int ret = rmem_check_arg((const void *)(uintptr_t)end, "function");

	if (ret != 0)
		return ret;
	if (nb_ends == MP_MAX_ENDS)
		return RMEM_FAIL(ENOSPC, "functions for ends of processes: table full (%d)",
				MP_MAX_ENDS);
	ends[nb_ends++] = end;
	return 0;
}

/* Refuse a request: return -error, with a line in the logs of both processes. */
static int __rte_format_printf(3, 4) refuse(struct mp_rep *rep, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(rep->reason, sizeof(rep->reason), format, args);
	va_end(args);
	RMEM_LOG(ERR, "secondary process: %s", rep->reason);
	return -error;
}

static uint16_t
find(const struct mp_id *id)
{
	uint16_t i;

	if (id->pid <= 0)
		return 0;
	for (i = RMEM_PROCESS_PRIMARY + 1; i <= RMEM_PROCESS_MAX; i++) {
		if (processes[i].id.pid == id->pid && processes[i].id.start == id->start)
			return i;
	}
	return 0;
}

struct claims {
	uint16_t process;
	uint16_t dev_id;
	unsigned int nb_qps;
	unsigned int nb_keys;
};

static int
reset_qp(struct rmem_obj *obj, void *arg)
{
	struct claims *claims = arg;

	if (obj->process != claims->process || obj->dev_id != claims->dev_id)
		return 0;
	rmem_obj_driver(obj)->ops.mp->claim((struct rmem_qp *)obj, 0);
	__atomic_store_n(&obj->process, 0, __ATOMIC_RELEASE);
	rmem_obj_unhold(obj);
	claims->nb_qps++;
	return 0;
}

static int
revoke_key(struct rmem_obj *obj, void *arg)
{
	struct claims *claims = arg;

	if (__atomic_load_n(&obj->process, __ATOMIC_RELAXED) != claims->process ||
			obj->dev_id != claims->dev_id)
		return 0;
	claims->nb_keys += rmem_obj_driver(obj)->ops.mp->revoke(obj);
	__atomic_store_n(&obj->process, 0, __ATOMIC_RELAXED);
	return 0;
}

/* Release the resources of a process on a device. QPs first: a queued request may bind a key. */
static void
detach(uint16_t process, uint16_t dev_id)
{
	struct claims claims = {.process = process, .dev_id = dev_id};
	struct rmem_dev *dev = &rmem_devs[dev_id].drv.dev;

	rmem_obj_visit(RMEM_OBJ_QP, reset_qp, &claims);
	rmem_obj_visit(RMEM_OBJ_MR, revoke_key, &claims);
	rmem_obj_visit(RMEM_OBJ_MW, revoke_key, &claims);
	processes[process].devs &= ~(UINT64_C(1) << dev_id);
	RMEM_LOG(INFO, "%s: process %d detached: %u QPs reset, %u keys invalidated", dev->name,
			(int)processes[process].id.pid, claims.nb_qps, claims.nb_keys);
	rmem_obj_unhold(&dev->obj);
}

/* Release all resources of a process, and its entry. */
static void
end(uint16_t process)
{
	struct mp_process *entry = &processes[process];
	uint16_t i;

	for (i = 0; i < RMEM_MAX_DEVS; i++) {
		if (entry->devs & UINT64_C(1) << i)
			detach(process, i);
	}
	for (i = 0; i < nb_ends; i++)
		ends[i](process);
	close(entry->pidfd);
	memset(entry, 0, sizeof(*entry));
	__atomic_store_n(&nb_processes, nb_processes - 1, __ATOMIC_RELEASE);
}

static bool
has_dev(int process, uint16_t dev_id)
{
	return (processes[process].devs & UINT64_C(1) << dev_id) != 0;
}

/* Detach a process from a device; if it was the last one, release all resources of the process. */
static void
leave(uint16_t process, uint16_t dev_id)
{
	if (processes[process].devs == UINT64_C(1) << dev_id)
		end(process);
	else
		detach(process, dev_id);
}

/*
 * Fill the pidfds to poll. Return false if there is no process: the reaper must end. Under the
 * lock.
 */
static bool
fill_fds(struct pollfd *fds, uint16_t *numbers, nfds_t *nb_fds)
{
	uint16_t i;

	*nb_fds = 1;
	fds[0] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
	for (i = RMEM_PROCESS_PRIMARY + 1; i <= RMEM_PROCESS_MAX; i++) {
		if (processes[i].id.pid == 0)
			continue;
		numbers[*nb_fds] = i;
		fds[(*nb_fds)++] = (struct pollfd){.fd = processes[i].pidfd, .events = POLLIN};
	}
	is_reaping = *nb_fds > 1;
	return is_reaping;
}

/*
 * Release processes that have ended. Each pidfd is polled again, because its entry may have been
 * assigned to another process since the poll.
 */
static void
reap(const struct pollfd *fds, const uint16_t *numbers, nfds_t nb_fds)
{
	struct pollfd now;
	uint64_t count;
	nfds_t i;

	if (fds[0].revents != 0 && read(wake_fd, &count, sizeof(count)) < 0)
		RMEM_LOG(DEBUG, "reaper: woken: no event");
	for (i = 1; i < nb_fds; i++) {
		const struct mp_process *entry = &processes[numbers[i]];

		if (fds[i].revents == 0 || entry->id.pid == 0)
			continue;
		now = (struct pollfd){.fd = entry->pidfd, .events = POLLIN};
		if (poll(&now, 1, 0) != 1)
			continue;
		RMEM_LOG(NOTICE, "secondary process %d: has ended", (int)entry->id.pid);
		end(numbers[i]);
	}
}

static void
run_reaper(void *arg)
{
	struct pollfd fds[RMEM_PROCESS_MAX + 1];
	uint16_t numbers[RMEM_PROCESS_MAX + 1];
	nfds_t nb_fds;

	RTE_SET_USED(arg);
	pthread_detach(pthread_self());
	pthread_mutex_lock(&lock);
	while (fill_fds(fds, numbers, &nb_fds)) {
		pthread_mutex_unlock(&lock);
		poll(fds, nb_fds, -1);
		pthread_mutex_lock(&lock);
		reap(fds, numbers, nb_fds);
	}
	pthread_mutex_unlock(&lock);
}

/* Make the reaper also wait for a new process. Under the lock. */
static int
wake_reaper(void)
{
	const uint64_t one = 1;

	if (wake_fd < 0)
		wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0)
		return -ENOMEM;
	if (is_reaping)
		return write(wake_fd, &one, sizeof(one)) == sizeof(one) ? 0 : -ENOMEM;
	reaper.run = run_reaper;
	if (rmem_thread_start(&reaper, "rmem-reaper") != 0)
		return -ENOMEM;
	is_reaping = true;
	return 0;
}

/* Check that no lcore id of the new process is used by this process or an attached one. */
static int
check_lcores(const struct mp_req *req, struct mp_rep *rep)
{
	unsigned int lcore;
	uint16_t i;

	for (lcore = 0; lcore < RTE_MAX_LCORE; lcore++) {
		const uint64_t bit = UINT64_C(1) << lcore % 64;

		if (!(req->lcores[lcore / 64] & bit))
			continue;
		if (rte_eal_lcore_role(lcore) != ROLE_OFF)
			return refuse(rep, EEXIST,
					"process %d: lcore %u belongs to the primary process (EAL option -l)",
					(int)req->id.pid, lcore);
		for (i = RMEM_PROCESS_PRIMARY + 1; i <= RMEM_PROCESS_MAX; i++) {
			if (processes[i].lcores[lcore / 64] & bit)
				return refuse(rep, EEXIST,
						"process %d: lcore %u belongs to process %d (EAL option -l)",
						(int)req->id.pid, lcore, (int)processes[i].id.pid);
		}
	}
	return 0;
}

/* Find the free number that was used least recently; 0 if there is none. */
static uint16_t
find_free(void)
{
	const uint16_t first = RMEM_PROCESS_PRIMARY + 1, nb = RMEM_PROCESS_MAX - first + 1;
	uint16_t i, number;

	for (i = 0; i < nb; i++) {
		number = (uint16_t)(first + (last - first + 1 + i) % nb);
		if (processes[number].id.pid == 0) {
			last = number;
			return number;
		}
	}
	return 0;
}

/* Assign an entry to a process; return its number, or -errno. */
static int
enter(const struct mp_req *req, struct mp_rep *rep)
{
	struct mp_process *entry;
	int pidfd, ret;
	uint16_t i;

	i = find_free();
	if (i == 0)
		return refuse(rep, ENOSPC, "process %d: table full (%d processes)",
				(int)req->id.pid, RMEM_PROCESS_MAX);
	ret = check_lcores(req, rep);
	if (ret != 0)
		return ret;
	pidfd = rmem_mp_pidfd(&req->id);
	if (pidfd < 0)
		return refuse(rep, -pidfd, "process %d: no pidfd: %s", (int)req->id.pid,
				strerror(-pidfd));
	entry = &processes[i];
	entry->id = req->id;
	entry->pidfd = pidfd;
	memcpy(entry->lcores, req->lcores, sizeof(entry->lcores));
	ret = wake_reaper();
	if (ret != 0) {
		memset(entry, 0, sizeof(*entry));
		close(pidfd);
		return refuse(rep, -ret, "process %d: no thread or descriptor to wait for it",
				(int)req->id.pid);
	}
	__atomic_store_n(&nb_processes, nb_processes + 1, __ATOMIC_RELEASE);
	return i;
}

/* Get the description of a device for processes; it is created for the first process. */
static int
share(struct rmem_dev *dev, struct mp_rep *rep)
{
	const struct rmem_dev_slot *slot = &rmem_devs[dev->obj.dev_id];
	struct mp_dev **shared = &devs[dev->obj.dev_id];

	if (*shared == NULL) {
		*shared = rte_zmalloc("rmem_mp", sizeof(**shared), 0);
		if (*shared == NULL)
			return refuse(rep, ENOMEM, "%s: no memory to describe it", dev->name);
		(*shared)->info = slot->info;
		(*shared)->info.driver_name = NULL;
		(*shared)->priv = slot->drv.priv;
		(*shared)->socket_id = dev->socket_id;
		snprintf((*shared)->driver, sizeof((*shared)->driver), "%s",
				slot->drv.driver->name);
	}
	rep->dev = *shared;
	rep->dev_id = dev->obj.dev_id;
	return 0;
}

/* Attach a process. On success the caller's reference to dev belongs to the process. */
static int
attach(const struct mp_req *req, struct mp_rep *rep, struct rmem_dev *dev)
{
	int number = find(&req->id);
	int ret;

	if (rmem_obj_driver(&dev->obj)->ops.mp == NULL)
		return refuse(rep, EOPNOTSUPP,
				"%s: its driver does not support secondary processes", dev->name);
	ret = share(dev, rep);
	/* An answer was lost, so the process is attached without knowing it. */
	if (ret == 0 && number != 0 && has_dev(number, dev->obj.dev_id)) {
		leave((uint16_t)number, dev->obj.dev_id);
		number = find(&req->id);
	}
	if (ret == 0 && number == 0)
		ret = number = enter(req, rep);
	if (ret < 0)
		return ret;
	processes[number].devs |= UINT64_C(1) << dev->obj.dev_id;
	rep->number = (uint16_t)number;
	RMEM_LOG(INFO, "%s: process %d attached", dev->name, (int)req->id.pid);
	return 0;
}

struct search {
	uint32_t type;
	uint16_t dev_id;
	const void *obj;  /* the handle, or NULL */
	const char *name; /* name, if obj is NULL */
	uint16_t process; /* process that claims the QP */
	void *found;
	uint32_t qp_num; /* number of the QP, which may be destroyed after the visit */
	uint16_t owner;  /* rmem_obj::process, limited, since any process can write it */
	int ret;
};

static int
match(struct rmem_obj *obj, void *arg)
{
	struct search *search = arg;

	if (obj->dev_id != search->dev_id)
		return 0;
	if (search->obj != NULL ? obj != search->obj
				: strcmp(rmem_obj_head(obj)->name, search->name) != 0)
		return 0;
	search->found = obj;
	search->qp_num = obj->type == RMEM_OBJ_QP ? ((struct rmem_qp *)obj)->qp_num : 0;
	search->owner = RTE_MIN(obj->process, RMEM_PROCESS_MAX);
	return 1;
}

static int
claim_found(struct rmem_obj *obj, void *arg)
{
	struct search *search = arg;

	if (match(obj, arg) == 0)
		return 0;
	/* The answer to a claim was lost, and the process repeats it. */
	if (obj->process == search->process)
		return 1;
	if (obj->process != 0 || !rmem_obj_hold(obj)) {
		search->ret = -EBUSY;
		return 1;
	}
	search->ret = rmem_obj_driver(obj)->ops.mp->claim((struct rmem_qp *)obj, search->process);
	if (search->ret == 0)
		__atomic_store_n(&obj->process, search->process, __ATOMIC_RELEASE);
	else
		rmem_obj_unhold(obj);
	return 1;
}

static int
unclaim_found(struct rmem_obj *obj, void *arg)
{
	struct claims claims = {.dev_id = obj->dev_id};
	struct search *search = arg;

	if (match(obj, arg) == 0)
		return 0;
	claims.process = search->process;
	reset_qp(obj, &claims);
	search->ret = claims.nb_qps == 1 ? 0 : -EINVAL;
	return 1;
}

static int
refuse_claim(const struct mp_req *req, struct mp_rep *rep, const struct search *search)
{
	const char *verb = req->op == MP_CLAIM ? "claimed" : "released";

	if (search->owner == 0)
		return refuse(rep, -search->ret, "process %d: QP 0x%06x not %s: %s",
				(int)req->id.pid, search->qp_num, verb,
				req->op == MP_CLAIM ? "the log of the primary has the reason"
						    : "no process has claimed it");
	return refuse(rep, -search->ret, "process %d: QP 0x%06x not %s: process %d has claimed it",
			(int)req->id.pid, search->qp_num, verb,
			(int)processes[search->owner].id.pid);
}

static int
claim(const struct mp_req *req, struct mp_rep *rep, uint16_t number)
{
	struct search search = {
			.dev_id = (uint16_t)req->dev_id, .obj = req->obj, .process = number};

	if (req->obj != NULL)
		rmem_obj_visit(RMEM_OBJ_QP, req->op == MP_CLAIM ? claim_found : unclaim_found,
				&search);
	if (search.found == NULL)
		return refuse(rep, EINVAL, "%p: not a QP of %s", req->obj,
				rmem_devs[req->dev_id].drv.dev.name);
	if (search.ret == 0)
		return 0;
	return refuse_claim(req, rep, &search);
}

static int
lookup(const struct mp_req *req, struct mp_rep *rep)
{
	struct search search = {.dev_id = (uint16_t)req->dev_id, .name = req->name};

	if (req->type != RMEM_OBJ_QP && req->type != RMEM_OBJ_MR)
		return refuse(rep, EINVAL, "process %d: type of object unknown: 0x%x",
				(int)req->id.pid, req->type);
	rmem_obj_visit(req->type, match, &search);
	if (search.found == NULL)
		return refuse(rep, ENOENT, "%s: no %s \"%s\"", rmem_devs[req->dev_id].drv.dev.name,
				req->type == RMEM_OBJ_QP ? "QP" : "MR", req->name);
	rep->obj = search.found;
	return 0;
}

/* Execute a request of an attached process. */
static int
serve(const struct mp_req *req, struct mp_rep *rep)
{
	uint16_t number = find(&req->id);

	if (number == 0 || req->dev_id >= RMEM_MAX_DEVS ||
			!(processes[number].devs & UINT64_C(1) << req->dev_id))
		return refuse(rep, EINVAL, "process %d: not attached to the device",
				(int)req->id.pid);
	switch (req->op) {
	case MP_DETACH:
		leave(number, (uint16_t)req->dev_id);
		return 0;
	case MP_CLAIM:
	case MP_UNCLAIM:
		return claim(req, rep, number);
	case MP_LOOKUP:
		return lookup(req, rep);
	default:
		return refuse(rep, EINVAL, "unknown request: %u", req->op);
	}
}

static int
answer(const struct mp_req *req, struct mp_rep *rep)
{
	struct rmem_dev *dev = NULL;
	int ret;

	/* The reaper must not wait for the end of the primary itself. */
	if (req->id.pid == getpid())
		return refuse(rep, EINVAL, "process %d: is the primary", (int)req->id.pid);
	if (req->op == MP_ATTACH) {
		/* Hold the device before taking the lock: rmem_dev_close() takes the lock with the
		 * lock of the devices held. */
		dev = rmem_dev_hold_by_name(req->name);
		if (dev == NULL)
			return refuse(rep, ENODEV, "no device \"%s\"", req->name);
	}
	pthread_mutex_lock(&lock);
	ret = dev != NULL ? attach(req, rep, dev) : serve(req, rep);
	pthread_mutex_unlock(&lock);
	if (dev != NULL && ret != 0)
		rmem_obj_unhold(&dev->obj);
	return ret;
}

static int
receive(const struct rte_mp_msg *msg, const void *peer)
{
	struct rte_mp_msg out = {.len_param = sizeof(struct mp_rep)};
	struct mp_rep rep = {.id = {.pid = getpid(), .start = rmem_mp_start_time(getpid())}};
	struct mp_req req;

	if (msg->len_param != sizeof(req)) {
		rep.ret = refuse(&rep, EPROTO, "request of %d bytes, not %zu: another version",
				msg->len_param, sizeof(req));
	} else {
		memcpy(&req, msg->param, sizeof(req));
		req.name[sizeof(req.name) - 1] = '\0';
		if (req.version != RMEM_VERSION)
			rep.ret = refuse(&rep, EPROTO, "process %d: version 0x%x, not 0x%x",
					(int)req.id.pid, req.version, RMEM_VERSION);
		else
			rep.ret = answer(&req, &rep);
	}
	snprintf(out.name, sizeof(out.name), "%s", MP_ACTION);
	memcpy(out.param, &rep, sizeof(rep));
	return rte_mp_reply(&out, peer);
}

static int
has_posted(struct rmem_obj *qp, void *arg)
{
	return qp->process != 0 &&
			rmem_obj_driver(qp)->ops.mp->has_posted((struct rmem_qp *)qp, arg);
}

/* Whether a request that a secondary process has posted names an object. */
static bool
is_posted(const struct rmem_obj *obj)
{
	if (__atomic_load_n(&nb_processes, __ATOMIC_ACQUIRE) == 0)
		return false;
	return rmem_obj_visit(RMEM_OBJ_QP, has_posted, (void *)(uintptr_t)obj) != 0;
}

static void
forked(void)
{
	if (has_channel || rte_eal_process_type() == RTE_PROC_SECONDARY)
		rmem_dev_forget_all();
}

RTE_INIT(rmem_mp_init)
{
	/* Registered at the start: a child of a process that is attached, or that others can attach
	 * to, must not use the devices. */
	pthread_atfork(NULL, NULL, forked);
	rmem_obj_set_posted(is_posted);
}

void
rmem_mp_start(void)
{
	pthread_mutex_lock(&lock);
	/* Without a channel between processes, no process can attach. */
	if (!is_started) {
		has_channel = rte_mp_action_register(MP_ACTION, receive) == 0;
		if (!has_channel)
			RMEM_LOG(DEBUG, "secondary processes: no channel: %s",
					rte_strerror(rte_errno));
	}
	is_started = true;
	pthread_mutex_unlock(&lock);
}

void
rmem_mp_forget(const struct rmem_dev *dev)
{
	pthread_mutex_lock(&lock);
	rte_free(devs[dev->obj.dev_id]);
	devs[dev->obj.dev_id] = NULL;
	pthread_mutex_unlock(&lock);
}
