/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The commands that librdmacm writes to /dev/infiniband/rdma_cm, executed in the process.
 *
 * Inside: the commands of rdma_cm: IDs, events, ports, connections, and the agent that owns all
 *   sockets.
 * Callers: preload, through struct rcm_ops (../rcm_ops.h).
 * Not known here: the preloaded functions, files of the view, and drivers.
 *
 * The descriptor of an event channel is an epoll descriptor that contains an eventfd. One thread of
 * the library, the agent, waits for the sockets, QP 1 and the timers of all channels. The agent,
 * and each thread that gets an event, reads the sockets, passes the MADs to the engine (ibcm.h),
 * and runs the timers that have expired. When a peer dies, its socket reports end of file.
 *
 * Invariant: all objects, including the engine and its IDs, are read and changed under rcm_lock().
 * Callbacks of the engine run inside calls to it, so they hold the lock too. A thread that waits
 * for events releases the lock; afterwards it looks up the channel again by its descriptor.
 * Invariant: the timerfd is set to the earliest deadline of the engine and of the IDs, or earlier.
 * Invariant: a socket carries the messages of one ID. The number of the engine's link is the handle
 * of that ID plus 1. Closing the socket drops the engine's ID. All packets are read before the end
 * of file of their socket is handled, and events are queued in the order of the packets.
 * Invariant: while the lock is free, the descriptor of a channel is readable if and only if an
 * event is queued.
 * Invariant: a descriptor that the program has closed, for example with closefrom(), is not used,
 * because its number may refer to another file. Each command checks its channel (is_of()); the
 * agent checks its own descriptors before each use; sockets are checked by their cookies before
 * they are closed.
 */

#ifndef RCM_H
#define RCM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <rdma/rdma_user_cm.h>

#include <rmem_driver.h>

#include "ibcm.h"

#include "../rcm_ops.h"

#define RCM_MAX_IDS     65536 /* also the limit of librdmacm */
#define RCM_MAX_NAME    100   /* of a port name, with the terminating zero */
#define RCM_MAX_BACKLOG 1024
#define RCM_MAX_PRIVATE 196 /* the REP has the most (IBTA 12.6) */
#define RCM_UDP_QKEY    0x01234567
#define RCM_HOP_LIMIT   64
#define RCM_ACK_TIMEOUT 16 /* 268 ms: a killed peer fails within 10 s with 7 retries */

/* Reasons of a REJ (IBTA 12.6.7.2), and statuses of a SIDR REP. */
#define RCM_REJ_TIMEOUT            4
#define RCM_REJ_INVALID_SERVICE_ID 8
#define RCM_REJ_CONSUMER           28
#define RCM_REJ_VENDOR_OPTION      35
#define RCM_SIDR_UNSUPPORTED       1
#define RCM_SIDR_REJECT            2

/* Entries of the agent that are not handles: QP 1 of each device, and connections that have not
 * sent a request yet (rcm_link.c). */
#define RCM_MAX_DEVS 8 /* RIBV_MAX_DEVS */
#define RCM_GSI      RCM_MAX_IDS
#define RCM_PENDING  (RCM_GSI + RCM_MAX_DEVS)
#define RCM_REPORT   (UINT32_MAX - 1)

/* Event types, numbered as in librdmacm. */
enum rcm_event_type {
	RCM_ADDR_RESOLVED_EVENT,
	RCM_ADDR_ERROR_EVENT,
	RCM_ROUTE_RESOLVED_EVENT,
	RCM_ROUTE_ERROR_EVENT,
	RCM_CONNECT_REQUEST_EVENT,
	RCM_CONNECT_RESPONSE_EVENT,
	RCM_CONNECT_ERROR_EVENT,
	RCM_UNREACHABLE_EVENT,
	RCM_REJECTED_EVENT,
	RCM_ESTABLISHED_EVENT,
	RCM_DISCONNECTED_EVENT,
	RCM_DEVICE_REMOVAL_EVENT,
	RCM_MULTICAST_JOIN_EVENT = 12,
	RCM_TIMEWAIT_EXIT_EVENT = 15,
};

enum rcm_state {
	RCM_IDLE,
	RCM_BOUND,
	RCM_ADDR_RESOLVED,
	RCM_ROUTE_RESOLVED,
	RCM_LISTEN,
	RCM_CONNECT,      /* a REQ was sent, or will be once a process listens */
	RCM_REQ_RECEIVED, /* the program must accept or reject */
	RCM_REP_SENT,
	RCM_REP_RECEIVED, /* the program must accept */
	RCM_ESTABLISHED,
	RCM_ENDED,
};

enum rcm_type {
	RCM_REQ = 1,
	RCM_REP,
	RCM_RTU,
	RCM_REJ,
};

/* An IP address and port; IPv4 addresses are IPv4-mapped IPv6. */
struct rcm_addr {
	uint16_t family; /* AF_INET, AF_INET6, or 0: none */
	uint16_t port;
	uint32_t scope_id;
	uint8_t ip[16];
};

/* Parameters of one side, from its last message. */
struct rcm_side {
	enum rcm_type type; /* 0: no message yet */
	uint8_t reason;     /* of the REJ */
	uint32_t qpn;
	uint32_t psn; /* of the first packet that this side receives */
	uint32_t qkey;
	uint16_t lid;
	uint8_t mtu;
	uint8_t gid[16];
	bool has_srq;
	bool has_flow_control;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t ece_vendor[3];
	uint32_t ece_options;
	uint8_t private_len;
	uint8_t private_data[RCM_MAX_PRIVATE];
};

/* A packet on a socket: a MAD with the sender's GID and LID, which a network would have in its
 * headers. */
struct rcm_packet {
	uint8_t gid[16];
	uint16_t lid; /* big-endian */
	uint8_t mtu;
	uint8_t reserved;
	uint8_t mad[IBCM_MAD_LEN];
};

struct rcm_mcast;

struct rcm_event {
	TAILQ_ENTRY(rcm_event) queued; /* link in the queue of the channel */
	TAILQ_ENTRY(rcm_event) own;    /* link in the list of the ID or of rcm_events_take() */
	struct rcm_id *id;             /* the ID it is reported for; the listener for a request */
	struct rcm_id *child;          /* the new ID of a request; else NULL */
	struct rcm_mcast *mcast;       /* the group that was joined; else NULL */
	struct rdma_ucm_event_resp resp;
};

TAILQ_HEAD(rcm_events, rcm_event);

struct rcm_channel {
	int fd;       /* the program's descriptor */
	int event_fd; /* readable while events are queued */
	uint32_t nb_fds;
	uint64_t checked; /* rcm_nb_locked() when checked_fd was last verified */
	int checked_fd;
	bool is_readable;
	bool is_changed; /* its queue changed; in the list of rcm_channels_signal() */
	TAILQ_ENTRY(rcm_channel) changed;
	struct rcm_events events;
	TAILQ_HEAD(rcm_ids, rcm_id) ids; /* also IDs of requests */
};

/* A socket bound to a port name. */
struct rcm_name {
	uint64_t cookie; /* identifies the socket; 0: none */
	int fd;
};

enum {
	RCM_NAME_PORT, /* held by the first ID of the port */
	RCM_NAME_ID,   /* rcm_id::port_name */
	RCM_NB_NAMES,
};

/* Addresses at which a listening ID is reachable. */
enum rcm_scope {
	RCM_SCOPE_ADDR,
	RCM_SCOPE_FAMILY, /* all addresses of its family */
	RCM_SCOPE_DUAL,   /* all addresses */
	RCM_NB_SCOPES,
};

struct rcm_id {
	struct rcm_channel *channel;
	TAILQ_ENTRY(rcm_id) of_channel;
	LIST_ENTRY(rcm_id) of_port; /* in the list of rcm_id_by_port(), if has_port */
	struct rcm_events events;   /* of this ID, queued in the channel */
	uint64_t uid;               /* set by the program; 0 until it accepts the request */
	uint32_t handle;
	uint16_t ps;
	uint8_t qp_type;
	uint8_t ack_timeout;
	uint8_t tos;
	bool has_dev;           /* bound to a device */
	bool has_port;          /* bound to src.port, now or earlier */
	bool is_child;          /* created for a request */
	bool is_queued;         /* its request is queued; the program does not know it yet */
	bool is_disconnecting;  /* a DREQ is sent, and not answered yet */
	bool has_left_timewait; /* the engine left time-wait while DISCONNECTED was delayed */
	bool is_afonly;
	bool has_afonly; /* the program has set is_afonly */
	bool is_reuse;
	bool is_removed; /* its device was removed; state is RCM_ENDED */
	enum rcm_state state;
	uint32_t dev; /* device number, if has_dev */
	struct rcm_addr src, dst;
	struct rcm_name names[RCM_NB_NAMES];
	char port_name[RCM_MAX_NAME]; /* name of an explicit bind; else "" */
	int fd;             /* listening or connected socket, or holder of the port; or -1 */
	uint64_t cookie;    /* identifies the socket of fd */
	struct ibcm_id *cm; /* the engine's ID; with --ip until the ID is destroyed */
	struct ibcm_listener *cm_listener;
	struct ibcm_timer timer; /* retry, delayed DISCONNECTED or fault: rcm_conn_time() */
	uint64_t retry_until_ns; /* stop retrying a refused connection after this time */
	uint64_t lock_limit_ns;  /* stop waiting for a port lock; 0: not waiting */
	uint32_t backlog;        /* of a listening ID */
	uint32_t nb_requests;    /* queued connection requests */
	uint32_t nb_reported;    /* events returned to the program */
	uint32_t nb_holds;       /* times that DISCONNECTED was delayed */
	uint32_t qkey;
	struct rmem_rdma_cm_fault fault; /* injected and pending; type 0: none */
	enum rmem_rdma_cm_step fault_step;
	struct rcm_side own, peer;
};

/* A command: a copy of its input, and the length of the program's response buffer. */
struct rcm_cmd {
	struct rcm_channel *channel;
	size_t in_len;
	uint16_t out_len;
	int cancel_state; /* cancel state of the program's thread */
	union {
		struct rdma_ucm_create_id create_id;
		struct rdma_ucm_destroy_id destroy_id;
		struct rdma_ucm_bind_ip bind_ip;
		struct rdma_ucm_bind bind;
		struct rdma_ucm_resolve_ip resolve_ip;
		struct rdma_ucm_resolve_addr resolve_addr;
		struct rdma_ucm_resolve_route resolve_route;
		struct rdma_ucm_query query;
		struct rdma_ucm_connect connect;
		struct rdma_ucm_listen listen;
		struct rdma_ucm_accept accept;
		struct rdma_ucm_reject reject;
		struct rdma_ucm_disconnect disconnect;
		struct rdma_ucm_init_qp_attr init_qp_attr;
		struct rdma_ucm_notify notify;
		struct rdma_ucm_get_event get_event;
		struct rdma_ucm_set_option set_option;
		struct rdma_ucm_migrate_id migrate_id;
		struct rdma_ucm_join_ip_mcast join_ip_mcast;
		struct rdma_ucm_join_mcast join_mcast;
	} in;
};

/* Return 0 or a negative errno. -ERESTART: nothing has changed; release the lock and run the
 * command again. */
typedef int (*rcm_run_t)(const struct rcm_cmd *cmd);

/* close() of libc, which no preloaded library replaces. */
int __close(int fd);
#define rcm_close __close

/*
 * The functions, file by file, lowest first. A file calls only files listed before it; calls in the
 * other direction use the handlers that a higher file registers.
 */

/* rcm_user.c: the program's memory. */
/* Number of bytes that were copied; fewer than size if the rest is not mapped. */
size_t rcm_user_read(void *to, uint64_t from, size_t size);
/* 0 or -EFAULT; bytes at the front may be written then. */
int rcm_user_write(uint64_t to, const void *from, size_t size);

/* rcm_addr.c: addresses. */
bool rcm_is_ud(const struct rcm_id *id);
bool rcm_is_any(const struct rcm_addr *addr);
/* Convert an address of the program; 0 or a negative errno. */
int rcm_addr_of(const void *sockaddr, size_t size, struct rcm_addr *addr);
socklen_t rcm_sockaddr(const struct rcm_addr *addr, void *sockaddr);

/* rcm_dev.c: devices. */
struct rcm_dev {
	uint64_t node_guid; /* big-endian */
	uint8_t gid[16];
	uint8_t port_num;   /* port of gid */
	uint8_t sgid_index; /* of gid in the port's GID table */
	uint16_t lid;
	uint8_t mtu;
	bool is_host; /* peers are processes of this host */
};

/* Query a device by number, with its first GID; false if the query fails. */
bool rcm_dev_get(uint32_t number, struct rcm_dev *dev);
/* Query a port of a device by number; false if there is none. */
bool rcm_dev_port(uint32_t number, uint32_t port_num, struct rmem_port_attr *port);
/* The same with the GID at an index of the port; false if there is none. */
bool rcm_dev_gid(uint32_t number, uint32_t port_num, uint32_t index, struct rcm_dev *dev);
/* Query the device of an ID, with the GID that is the ID's address, or the first GID if the ID has
 * no address. */
bool rcm_dev_of(const struct rcm_id *id, struct rcm_dev *dev);
/* Find the first device with peers on this host; all links use it. */
bool rcm_dev_host(uint32_t *number, struct rcm_dev *dev);
/* Find the device with that address, or else the first device with peers on this host, which serves
 * all addresses. */
bool rcm_dev_find(const uint8_t ip[16], uint32_t *number, struct rcm_dev *dev);
/* Remove a device: later lookups do not find it. */
void rcm_dev_remove(uint32_t number);
/* Whether the ID is reachable by links: its device has peers on this host, or it has no device and
 * any device has. */
bool rcm_has_links(const struct rcm_id *id);

/* rcm_event.c: events, and the queue of a channel. */
/* A channel is being freed: do not signal it. */
void rcm_events_forget(struct rcm_channel *channel);
/* Update the readiness of all channels whose queues have changed. */
void rcm_channels_signal(void);
/* Allocate an event to fill and queue; NULL: no memory. */
struct rcm_event *rcm_event_new(struct rcm_id *id, enum rcm_event_type type, int status);
void rcm_event_queue(struct rcm_channel *channel, struct rcm_event *event);
/* Allocate and queue an event without parameters. Without memory the event is lost. */
void rcm_event_post(struct rcm_id *id, enum rcm_event_type type, int status);
/* Move the events of an ID from the queue of its channel to *taken, in order. */
void rcm_events_take(struct rcm_id *id, struct rcm_events *taken);
/* Remove the first event of a non-empty queue; the caller frees the event. */
struct rcm_event *rcm_event_pop(struct rcm_channel *channel);
/* Free the queued events of a multicast group that the ID leaves. */
void rcm_events_drop_mcast(struct rcm_id *id, const struct rcm_mcast *mcast);

/* rcm_lock.c */
void rcm_lock(void);
/* Return false if another thread, or this one, holds the lock. */
bool rcm_trylock(void);
void rcm_unlock(void);
/* Release the lock until the condition (of CLOCK_MONOTONIC) is signalled, or for ns at most. */
void rcm_wait(pthread_cond_t *cond, uint64_t ns);
/* Number of times the lock was taken. A fact verified under the lock holds while this number is the
 * same. */
uint64_t rcm_nb_locked(void);
uint64_t rcm_now(void);

/* rcm_agent.c: the agent's thread, descriptors and timers. */
struct rcm_agent_handlers {
	/* The timer of an ID has expired. */
	void (*id_time)(struct rcm_id *id);
	/* The agent has opened new descriptors, because the program has closed the previous
	 * ones. */
	void (*lost)(void);
	/* Time at which time() must be called, or IBCM_NEVER. */
	uint64_t (*next)(void);
	/* The descriptor watched with that entry is ready. */
	void (*ready)(uint32_t entry);
	void (*time)(uint64_t now);
	/* rcm_agent_wake() was called. */
	void (*woken)(void);
};

void rcm_agent_handle(const struct rcm_agent_handlers *handlers);
/* Start the agent, unless it runs; 0 or a negative errno. */
int rcm_agent_start(void);
/* Record the file of a descriptor that is not watched for events; 0 or a negative errno. */
int rcm_agent_record(int fd);
/* Whether a recorded or watched descriptor still refers to the same file. */
bool rcm_agent_is_same_file(int fd);
/* Watch a descriptor for events, or change its events; 0 or a negative errno. */
int rcm_agent_watch(int fd, uint32_t entry, uint32_t events);
void rcm_agent_unwatch(int fd);
/* Whether a descriptor watched with that entry still refers to the same file. */
bool rcm_agent_has(int fd, uint32_t entry);
/* Set the timerfd to an earlier time if the engine or an ID needs that. */
void rcm_timer_set(void);
/* Allocate memory for the timers of nb IDs; false: no memory. */
bool rcm_timer_reserve(uint32_t nb);
/* Set the timer of an ID; IBCM_NEVER stops it. */
void rcm_id_timer(struct rcm_id *id, uint64_t at_ns);
/* Handle the descriptors that are ready; false if none was. */
bool rcm_agent_run(void);
/*
 * Let a thread that waits for an event poll the agent's descriptors itself; the agent then stands
 * by. Return a non-zero number for rcm_agent_unlead() and the descriptor to poll, or 0 if another
 * thread leads.
 */
uintptr_t rcm_agent_lead(int *fd);
/* End the lead. number: the result of rcm_agent_lead(), or 0. */
void rcm_agent_unlead(uintptr_t number);
/* Make the agent, if it runs, call woken() soon. Callable from any thread, without the lock. */
void rcm_agent_wake(void);
/* Let the agent pause before it waits again, because a ready descriptor can't be handled now. */
void rcm_agent_pause(void);
/* In a child of fork(), close the inherited descriptors. The other *_forked() functions do so for
 * their own. */
void rcm_agent_forked(void);

/* rcm_id.c: IDs. */
struct rcm_id *rcm_id_get(uint32_t handle);
/* Find an ID of the command's channel; NULL, with *ret set to a negative errno, if there is
 * none. */
struct rcm_id *rcm_id_find(const struct rcm_cmd *cmd, uint32_t handle, int *ret);
/* The same, but -ENXIO if the device of the ID is removed. */
struct rcm_id *rcm_id_of(const struct rcm_cmd *cmd, uint32_t handle, int *ret);
struct rcm_id *rcm_id_new(struct rcm_channel *channel, uint16_t ps, uint8_t qp_type);
/* Move an ID to another channel. */
void rcm_id_move(struct rcm_id *id, struct rcm_channel *to);
/* Add an ID, which was not bound before, to the list of its port, src.port, until it is freed. */
void rcm_id_add_port(struct rcm_id *id);
/* First entry of the list (of_port) that has all IDs of the port, and possibly IDs of others. */
struct rcm_id *rcm_id_by_port(uint16_t port);
/* Free an ID that has no connection, port, group or event; rcm_destroy() releases these first. */
void rcm_id_free(struct rcm_id *id);
/* First ID with a handle >= *handle; NULL if there is none. */
struct rcm_id *rcm_id_next(uint32_t *handle);
/* Copy a response to the program's memory. */
int rcm_respond(const struct rcm_cmd *cmd, uint64_t to, const void *resp, size_t size);
int rcm_create_id(const struct rcm_cmd *cmd);
int rcm_get_option(const struct rcm_cmd *cmd);
int rcm_set_option(const struct rcm_cmd *cmd);

/* rcm_sock.c: sockets. */
/* Open a socket of the type that links and names use; -1 with errno set. */
int rcm_sock_open(void);
/* Return a number that identifies the socket of a descriptor; 0 if the descriptor is not a
 * socket. */
uint64_t rcm_sock_cookie(int fd);
/* Unwatch, shut down and close a socket, unless the program has closed it. */
void rcm_sock_close(int fd, uint64_t cookie);
/* Close without shutdown: another process also has the socket, or it has no peer. */
void rcm_sock_leave(int fd, uint64_t cookie);
/* Make a socket the socket of the ID. */
void rcm_sock_take(struct rcm_id *id, int fd);
/* Close the socket of the ID. */
void rcm_sock_drop(struct rcm_id *id);
/* Forget the socket of an ID if the program has closed it. */
void rcm_sock_check(struct rcm_id *id);
/* Bind a socket to a name of the abstract namespace; -1 with errno set. */
int rcm_name_bind(int fd, const char *name);
/* Connect a socket to one that listens at a name; 0 or a negative errno. */
int rcm_name_connect(int fd, const char *name);
/* User of the process that listens at the other end of a socket, or at a name; 0 or a negative
 * errno. */
int rcm_sock_user(int fd, uid_t *user);
int rcm_name_user(const char *name, uid_t *user);
void rcm_name_keep(struct rcm_name *name, int fd);
/* Close the socket of a name, unless the program has closed it. */
void rcm_name_close(struct rcm_name *name);

/* rcm_port.c: ports. doc/dropin.md describes their names. */
/*
 * Bind the ID to the port of its address, or to a free port. Return 0, -EADDRINUSE, -EACCES, or
 * -EADDRNOTAVAIL (no port is free, or one of two conflicting addresses is unspecified).
 * is_implicit: a connection binds the ID, not the program.
 */
int rcm_port_claim(struct rcm_id *id, bool is_implicit);
/* Ensure that a listening ID shares its address with no other ID; errors as of rcm_port_claim(). */
int rcm_port_unshare(struct rcm_id *id);
/* Close the socket of a connection, and claim its port again; errors as of rcm_port_claim(). */
int rcm_port_reopen(struct rcm_id *id);
/* Close the socket and release the port. */
void rcm_port_close(struct rcm_id *id);
/* Write the name of a port in the ID's port space, which the first ID of the port holds. */
void rcm_port_owner_name(const struct rcm_id *id, uint16_t port, char *name);
/* Write the name of the listening socket in the ID's port space, for the address and its port. */
void rcm_listener_name(const struct rcm_id *id, const struct rcm_addr *addr, enum rcm_scope scope,
		char *name);

/* rcm_link.c: links. doc/dropin.md lists their limits. */
/* Listen at the name of the ID's address; 0 or a negative errno. */
int rcm_link_listen(struct rcm_id *id);
/* Connect the socket of the ID, unless its peers are on other hosts; 0 or a negative errno. */
int rcm_link_connect(struct rcm_id *id);
/* The number of the ID's link. */
uint64_t rcm_link_of(const struct rcm_id *id);
/* Move the link of a request to a new ID; 0 or a negative errno. */
int rcm_link_take(struct rcm_id *id, uint64_t link);
/* Send a MAD on a link; 0 or a negative errno. */
int rcm_link_send(uint64_t link, const uint8_t mad[IBCM_MAD_LEN]);
/* Read a packet; 1, 0 if there is none, or a negative errno if the connection has ended. */
int rcm_link_receive(uint64_t link, struct rcm_packet *packet);
/* Accept a connection, which is pending until an ID takes it; its link, or 0 if there is none. */
uint64_t rcm_link_accept(int listening);
/* The link of the pending connection that is watched with that entry; 0 if there is none. */
uint64_t rcm_link_pending(uint32_t entry);
/* Watch, or end, a connection that is still pending. */
void rcm_link_watch(uint64_t link);
void rcm_link_end(uint64_t link);
/* The agent has new descriptors: watch the sockets again. */
void rcm_links_check(void);
void rcm_links_forked(void);

/* rcm_report.c */
/* Return the connections and counters as text of *len bytes, which the caller frees; NULL: no
 * memory. */
char *rcm_report(const struct ibcm *cm, const struct ibcm_log *log, size_t *len);
/* Open the socket to which rmem-top connects; -1 on failure. */
int rcm_report_listen(void);
/* Accept a connection of rmem-top and send the report. */
void rcm_report_send(int listening, const struct ibcm *cm, const struct ibcm_log *log);

/* rcm_mad.c: the engine. */
struct rcm_mad_handlers {
	/* The connection has ended: the peer sent a DREQ (err is 0), or there was no message. */
	void (*ended)(struct rcm_id *id, int err);
	/* A message of the peer has arrived. */
	void (*received)(struct rcm_id *id, const struct rcm_side *peer);
	/* A request for a listening ID has arrived, from src to dst of a device; false if no ID can
	 * be created for it. */
	bool (*request)(struct rcm_id *listener, const struct rcm_side *peer,
			const struct rcm_addr *src, const struct rcm_addr *dst, uint32_t dev,
			struct ibcm_id *of_cm);
	/* The QP of the connection may be reused. */
	void (*timewait_exit)(struct rcm_id *id);
};

void rcm_mad_handle(const struct rcm_mad_handlers *handlers);
int rcm_mad_listen(struct rcm_id *id);
/* Send id->own as a message of that type; 0 or a negative errno. */
int rcm_mad_send(struct rcm_id *id, enum rcm_type type);
/* Disconnect an established connection; 0 or -EBUSY. */
int rcm_mad_disconnect(struct rcm_id *id);
/* The peer's QP has sent a packet. */
void rcm_mad_notify(struct rcm_id *id);
/* Make the engine's ID of a request belong to the ID. */
void rcm_mad_take(struct rcm_id *id, struct ibcm_id *of_cm);
/* Handle a packet of a link; 0, or -EPROTO if it has no valid CM MAD. */
int rcm_mad_packet(uint64_t link, const struct rcm_packet *packet);
/* The link of the ID has ended. */
void rcm_mad_drop(struct rcm_id *id);
/* Release the engine's IDs of an ID that is destroyed. */
void rcm_mad_close(struct rcm_id *id);
/* Answer a connection of rmem-top. */
void rcm_mad_report(void);
/* QP 1 of a device is ready. */
void rcm_mad_ready(uint32_t number);
/* Time at which rcm_mad_time() must be called, or IBCM_NEVER. */
uint64_t rcm_mad_next(void);
void rcm_mad_time(uint64_t now);
/* The agent has new descriptors: watch QP 1 again. */
void rcm_mad_check(void);
void rcm_mad_forked(void);

/* rcm_query.c */
int rcm_query(const struct rcm_cmd *cmd);
int rcm_query_route(const struct rcm_cmd *cmd);
int rcm_init_qp_attr(const struct rcm_cmd *cmd);
/* Path to the peer, as reported in events of UD. */
void rcm_ah_attr(const struct rcm_id *id, struct ib_uverbs_ah_attr *attr);

/* rcm_mcast.c */
int rcm_join_ip_mcast(const struct rcm_cmd *cmd);
int rcm_join_mcast(const struct rcm_cmd *cmd);
int rcm_leave_mcast(const struct rcm_cmd *cmd);
/* An event of the group was returned to the program. */
void rcm_mcast_reported(struct rcm_mcast *mcast);
/* Leave the groups of an ID that is destroyed. */
void rcm_mcast_drop(const struct rcm_id *id);

/* rcm_watch.c: failures of devices. */
/* Report the failure of a device to its IDs from now on; 0 or a negative errno. */
int rcm_watch_dev(uint32_t number);
/* Return and clear the bitmap of devices that have failed. */
uint32_t rcm_watch_take(void);

/* rcm_chaos.c: injected faults. */
/* Whether a rule of the ID's device applies at a step; sets id->fault and the ID's timer. */
bool rcm_chaos_hit(struct rcm_id *id, enum rmem_rdma_cm_step step);
/* Log that the fault of the ID is now injected, with its rule. */
void rcm_chaos_happens(struct rcm_id *id);

/* rcm_bind.c: addresses of IDs. */
int rcm_bind_ip(const struct rcm_cmd *cmd);
int rcm_bind(const struct rcm_cmd *cmd);
int rcm_resolve_ip(const struct rcm_cmd *cmd);
int rcm_resolve_addr(const struct rcm_cmd *cmd);
int rcm_resolve_route(const struct rcm_cmd *cmd);
/* Bind to the unspecified address and a free port, unless bound. */
int rcm_bind_any(struct rcm_id *id, uint16_t family);

/* rcm_conn.c: connections. */
int rcm_listen(const struct rcm_cmd *cmd);
int rcm_connect(const struct rcm_cmd *cmd);
int rcm_accept(const struct rcm_cmd *cmd);
int rcm_reject(const struct rcm_cmd *cmd);
int rcm_disconnect(const struct rcm_cmd *cmd);
int rcm_notify(const struct rcm_cmd *cmd);
int rcm_destroy_id(const struct rcm_cmd *cmd);
/* End the connection of an ID, as when it is destroyed, and release its port. */
void rcm_conn_close(struct rcm_id *id);
/* Destroy an ID with its connection, groups, events, and the IDs of requests to it. */
void rcm_destroy(struct rcm_id *id);
/* The socket of the ID is ready. */
void rcm_conn_ready(struct rcm_id *id);
/* The timer of the ID has expired. */
void rcm_conn_time(struct rcm_id *id);

/* rcm_channel.c: channels. */
/* Bitmap of the descriptors of channels; atomic. */
extern uint64_t rcm_channel_fds[RCM_MAX_FDS / 64];

struct rcm_channel *rcm_channel_of(int fd);
/* Whether this process owns the channels; false in a child of vfork(). */
bool rcm_is_owner(void);
/* Whether this is a child of fork() and the descriptor refers to a channel of the parent. */
bool rcm_is_inherited(int fd);
/* Reset the channels in a child of fork(). */
void rcm_channels_forked(void);
/* Free channels whose descriptors the program has closed without close(). */
void rcm_channels_check(void);
/* Get an event; releases the lock while it waits. */
int rcm_get_event(int fd, const struct rcm_cmd *cmd);
int rcm_migrate_id(const struct rcm_cmd *cmd);
/* The operations in struct rcm_ops. */
int rcm_channel_open(int flags);
int rcm_channel_close(int fd, rcm_close_t next);
/* Called for each write() that fails with EINVAL, also in signal handlers. */
int rcm_channel_adopt(int fd);
int rcm_is_channel(int fd);

/* rcm_handler.c: handlers for the agent. */
void rcm_forked(void);

#endif /* RCM_H */
