/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The port of a device; see rmem_cm_port_priv.h.
 *
 * Threads that call the library need not be registered with EAL, so they may not post. Invariant:
 * only the thread of the port uses QP 1. Other threads add their MADs to the outbox, under the
 * lock, and the first one wakes the thread.
 *
 * Lock order: ports_lock, then cm_port::lock. The thread takes cm_port::lock only.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include <rte_common.h>
#include <rte_lcore.h>

#include <rmem_dev.h>
#include <rmem_thread.h>

#include "rmem_cm_port_priv.h"
#include "rmem_cm_trace_priv.h"

#define MAX_IDS       4096
#define MAX_HALF_OPEN 64
#define MAX_OUTBOX    256
/* Polling interval of a device without completion channels, and pause in a flood of MADs. */
#define POLL_MS 1
/* Limit of the last user's wait for DREPs. */
#define LINGER_MS 2000

struct out_mad {
	struct ibcm_path path;
	uint8_t mad[IBCM_MAD_LEN];
};

/*
 * Record of all ports that devices of this name have had. There is one for each name; it is never
 * freed.
 */
struct cm_log {
	LIST_ENTRY(cm_log) next;
	char dev[RMEM_NAME_SIZE];
	struct cm_port *port; /* NULL: none now */
	struct ibcm_log log;  /* under the lock of the port, if there is one */
};

struct cm_port {
	LIST_ENTRY(cm_port) next; /* under ports_lock */
	uint32_t nb_users;        /* under ports_lock */
	uint32_t nb_lingering;    /* users in rmem_cm_port_put(), under ports_lock */
	struct rmem_dev *dev;
	struct cm_log *log;
	struct rmem_gsi *gsi; /* used by the thread */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct ibcm *cm;
	int wake_fd;
	struct rmem_thread thread;
	bool is_thread; /* the thread holds the lock */
	bool is_started;
	bool is_stopping;
	int start_ret;
	uint32_t nb_out;
	struct out_mad out[MAX_OUTBOX];
};

static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(cm_ports, cm_port) ports = LIST_HEAD_INITIALIZER(ports);
static LIST_HEAD(cm_logs, cm_log) logs = LIST_HEAD_INITIALIZER(logs); /* under ports_lock */

uint64_t
rmem_cm_port_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct rmem_dev *
rmem_cm_port_dev(const struct cm_port *port)
{
	return port->dev;
}

static void
wake(const struct cm_port *port)
{
	const uint64_t one = 1;

	(void)!write(port->wake_fd, &one, sizeof(one));
}

/* Callback of the engine. A MAD is dropped if the outbox is full; the engine's timer repeats it. */
static void
send_mad(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	struct cm_port *port = arg;

	if (port->is_thread) {
		rmem_gsi_send(port->gsi, path, mad);
		return;
	}
	if (port->nb_out == MAX_OUTBOX)
		return;
	port->out[port->nb_out].path = *path;
	memcpy(port->out[port->nb_out].mad, mad, IBCM_MAD_LEN);
	if (port->nb_out++ == 0)
		wake(port);
}

static void
received_mad(void *arg, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	struct cm_port *port = arg;

	ibcm_input(port->cm, rmem_cm_port_now(), path, mad);
}

static void
keep_data(struct cm_link *link, const struct ibcm_event *event)
{
	link->length = RTE_MIN(event->data_len, (uint32_t)sizeof(link->data));
	if (link->length != 0)
		memcpy(link->data, event->data, link->length);
}

/* Add a request to the queue of its listener. */
static void
requested(const struct ibcm_event *event)
{
	struct cm_links *queue = event->listener_arg;
	struct cm_link *link = calloc(1, sizeof(*link));

	if (link == NULL) {
		(void)ibcm_reject(event->id, rmem_cm_port_now(), IBCM_REJ_NO_RESOURCES, NULL);
		ibcm_release(event->id, rmem_cm_port_now());
		return;
	}
	link->id = event->id;
	link->queue = queue;
	keep_data(link, event);
	ibcm_arg_set(event->id, link);
	TAILQ_INSERT_TAIL(queue, link, next);
}

static void
ended(struct cm_link *link, int error)
{
	/* The request was not accepted yet: drop it. */
	if (link->queue != NULL) {
		TAILQ_REMOVE(link->queue, link, next);
		ibcm_release(link->id, rmem_cm_port_now());
		free(link);
		return;
	}
	link->is_ended = true;
	link->error = error;
}

static void
rejected(struct cm_link *link, uint16_t reason)
{
	if (link->queue == NULL && !link->is_established)
		CM_LOG(ERR, "peer: rejected the connection, reason %u (IBTA 12.6.7.2)", reason);
	ended(link, -ECONNREFUSED);
}

static void
on_event(void *arg, const struct ibcm_event *event)
{
	struct cm_link *link = ibcm_arg(event->id);

	RTE_SET_USED(arg);
	switch (event->type) {
	case IBCM_EVENT_REQ:
		requested(event);
		break;
	case IBCM_EVENT_REP:
		keep_data(link, event);
		link->has_reply = true;
		break;
	case IBCM_EVENT_ESTABLISHED:
		link->is_established = true;
		break;
	case IBCM_EVENT_REJECTED:
		rejected(link, event->reason);
		break;
	case IBCM_EVENT_UNREACHABLE:
		ended(link, -ETIMEDOUT);
		break;
	case IBCM_EVENT_DISCONNECTED:
		ended(link, -ECONNREFUSED);
		break;
	default:
		break;
	}
}

static void
on_state(void *arg, const struct ibcm_info *info, enum ibcm_state from)
{
	const struct cm_port *port = arg;

	rmem_cm_trace_state(port->log->dev, info->local_id, info->remote_id, info->qpn,
			info->peer_qpn, ibcm_state_name(from), ibcm_state_name(info->state),
			ibcm_end_name(info->end), info->reason);
}

/* Timeout of poll(), ms: until the next timer of the engine; -1: none. */
static int
sleep_ms(const struct cm_port *port)
{
	uint64_t next = ibcm_next(port->cm), now = rmem_cm_port_now();
	int ms = -1;

	if (next != IBCM_NEVER)
		ms = next <= now ? 0 : (int)RTE_MIN((next - now) / 1000000 + 1, UINT64_C(60000));
	if (rmem_gsi_fd(port->gsi) < 0 && (ms < 0 || ms > POLL_MS))
		ms = POLL_MS;
	return ms;
}

/* Send the MADs queued by other threads. */
static void
flush(struct cm_port *port)
{
	uint32_t i;

	for (i = 0; i < port->nb_out; i++)
		rmem_gsi_send(port->gsi, &port->out[i].path, port->out[i].mad);
	port->nb_out = 0;
}

static void
serve_once(struct cm_port *port)
{
	struct pollfd fds[2] = {{.fd = port->wake_fd, .events = POLLIN},
			{.fd = rmem_gsi_fd(port->gsi), .events = POLLIN}};
	bool has_more = rmem_gsi_poll(port->gsi);
	uint64_t n;
	int ms;

	if (ibcm_next(port->cm) <= rmem_cm_port_now())
		ibcm_timeout(port->cm, rmem_cm_port_now());
	flush(port);
	pthread_cond_broadcast(&port->changed);
	/* A flood of MADs must not keep the lock from other threads. */
	ms = has_more ? POLL_MS : sleep_ms(port);
	port->is_thread = false;
	pthread_mutex_unlock(&port->lock);
	poll(fds, has_more ? 1 : RTE_DIM(fds), ms);
	if (fds[0].revents & POLLIN)
		(void)!read(port->wake_fd, &n, sizeof(n));
	pthread_mutex_lock(&port->lock);
	port->is_thread = true;
}

static int
open_port(struct cm_port *port)
{
	const struct ibcm_conf conf = {.ca_guid = rmem_gsi_random(NULL),
			.max_ids = MAX_IDS,
			.max_half_open = MAX_HALF_OPEN,
			.arg = port,
			.send = send_mad,
			.event = on_event,
			.random = rmem_gsi_random,
			.trace = on_state,
			.log = &port->log->log};
	int ret = ibcm_create(&conf, &port->cm);

	return ret == 0 ? rmem_gsi_open(port->dev, received_mad, port, &port->gsi) : ret;
}

static void
serve(void *arg)
{
	struct cm_port *port = arg;
	bool is_registered = rte_thread_register() == 0;

	pthread_mutex_lock(&port->lock);
	port->is_thread = true;
	port->start_ret = is_registered ? open_port(port) : -ENOMEM;
	port->is_started = true;
	pthread_cond_broadcast(&port->changed);
	if (!is_registered)
		CM_LOG(ERR, "thread: not registered with EAL: all RTE_MAX_LCORE lcore ids are in use, or there are secondary processes");
	while (port->start_ret == 0 && !port->is_stopping)
		serve_once(port);
	if (port->gsi != NULL) {
		flush(port);
		rmem_gsi_close(port->gsi);
	}
	port->gsi = NULL;
	pthread_mutex_unlock(&port->lock);
	if (is_registered)
		rte_thread_unregister();
}

static void
free_port(struct cm_port *port)
{
	if (port->cm != NULL)
		ibcm_destroy(port->cm);
	if (port->wake_fd >= 0)
		close(port->wake_fd);
	pthread_cond_destroy(&port->changed);
	pthread_mutex_destroy(&port->lock);
	free(port);
}

/* Find or add the record of a device. Under ports_lock. */
static struct cm_log *
log_of(const char *dev)
{
	struct cm_log *log;

	LIST_FOREACH(log, &logs, next) {
		if (strcmp(log->dev, dev) == 0)
			return log;
	}
	log = calloc(1, sizeof(*log));
	if (log == NULL)
		return NULL;
	snprintf(log->dev, sizeof(log->dev), "%s", dev);
	LIST_INSERT_HEAD(&logs, log, next);
	return log;
}

static struct cm_port *
alloc_port(struct rmem_dev *dev)
{
	struct cm_port *port = calloc(1, sizeof(*port));
	pthread_condattr_t attr;

	if (port != NULL)
		port->log = log_of(dev->name);
	if (port == NULL || port->log == NULL) {
		free(port);
		return NULL;
	}
	port->dev = dev;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&port->changed, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&port->lock, NULL);
	port->wake_fd = eventfd(0, EFD_CLOEXEC);
	return port;
}

static int
start_port(struct rmem_dev *dev, struct cm_port **out)
{
	struct cm_port *port = alloc_port(dev);
	int ret;

	if (port == NULL)
		return -ENOMEM;
	port->thread.run = serve;
	port->thread.arg = port;
	if (port->wake_fd < 0 || rmem_thread_start(&port->thread, "rmem-cm") != 0) {
		free_port(port);
		return CM_FAIL(ENOMEM, "thread: no descriptor or thread left");
	}
	pthread_mutex_lock(&port->lock);
	while (!port->is_started)
		pthread_cond_wait(&port->changed, &port->lock);
	ret = port->start_ret;
	pthread_mutex_unlock(&port->lock);
	if (ret != 0) {
		pthread_join(port->thread.id, NULL);
		free_port(port);
		return ret == -ENOMEM || ret == -ENODEV
				? ret
				: CM_FAIL(EIO, "%s: QP 1: not created: %s", dev->name,
						  strerror(-ret));
	}
	*out = port;
	return 0;
}

int
rmem_cm_port_get(struct rmem_dev *dev, struct cm_port **out)
{
	struct cm_port *port;
	int ret = 0;

	pthread_mutex_lock(&ports_lock);
	LIST_FOREACH(port, &ports, next) {
		if (port->dev == dev)
			break;
	}
	if (port == NULL) {
		ret = start_port(dev, &port);
		if (ret == 0) {
			LIST_INSERT_HEAD(&ports, port, next);
			port->log->port = port;
		}
	}
	if (ret == 0) {
		port->nb_users++;
		*out = port;
	}
	pthread_mutex_unlock(&ports_lock);
	return ret;
}

/* Wait until all disconnected peers have answered; the thread repeats the DREQs. */
static void
linger(struct cm_port *port)
{
	uint64_t end_ms = rmem_cm_now_ms() + LINGER_MS;

	pthread_mutex_lock(&port->lock);
	while (ibcm_nb_in(port->cm, IBCM_DREQ_SENT) != 0 && rmem_cm_port_wait(port, end_ms))
		;
	pthread_mutex_unlock(&port->lock);
}

static void
stop_port(struct cm_port *port)
{
	LIST_REMOVE(port, next);
	port->log->port = NULL;
	pthread_mutex_lock(&port->lock);
	port->is_stopping = true;
	pthread_mutex_unlock(&port->lock);
	wake(port);
	pthread_join(port->thread.id, NULL);
	free_port(port);
}

/* A lingering user still counts in nb_users: others can get and use the port concurrently. */
void
rmem_cm_port_put(struct cm_port *port)
{
	pthread_mutex_lock(&ports_lock);
	if (++port->nb_lingering == port->nb_users) {
		pthread_mutex_unlock(&ports_lock);
		linger(port);
		pthread_mutex_lock(&ports_lock);
	}
	port->nb_lingering--;
	if (--port->nb_users == 0)
		stop_port(port);
	pthread_mutex_unlock(&ports_lock);
}

struct ibcm *
rmem_cm_port_lock(struct cm_port *port)
{
	pthread_mutex_lock(&port->lock);
	return port->cm;
}

void
rmem_cm_port_unlock(struct cm_port *port)
{
	pthread_mutex_unlock(&port->lock);
}

bool
rmem_cm_port_wait(struct cm_port *port, uint64_t end_ms)
{
	const struct timespec end = {.tv_sec = (time_t)(end_ms / 1000),
			.tv_nsec = (long)(end_ms % 1000) * 1000000};

	return pthread_cond_timedwait(&port->changed, &port->lock, &end) == 0;
}

void
rmem_cm_ports_visit(void (*visit)(void *arg, const struct rmem_cm_port_view *view), void *arg)
{
	struct cm_log *log;

	pthread_mutex_lock(&ports_lock);
	LIST_FOREACH(log, &logs, next) {
		struct rmem_cm_port_view view = {.dev = log->dev, .log = &log->log};

		if (log->port != NULL) {
			pthread_mutex_lock(&log->port->lock);
			view.cm = log->port->cm;
			view.gsi = rmem_gsi_stats(log->port->gsi);
		}
		visit(arg, &view);
		if (log->port != NULL)
			pthread_mutex_unlock(&log->port->lock);
	}
	pthread_mutex_unlock(&ports_lock);
}
