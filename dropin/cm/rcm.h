/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The commands of the kernel's rdma_cm, answered in the process: what librdmacm writes to
 * /dev/infiniband/rdma_cm.
 *
 * Inside: the commands of rdma_cm: IDs, events, ports, connections, and the agent that has all
 *   sockets.
 * Callers: preload, by struct rcm_ops (../rcm_ops.h).
 * Not known here: the preloaded functions, files of the view, and drivers.
 *
 * The descriptor of an event channel is one of epoll, in which is an eventfd. A thread of the
 * library, the agent, waits for the sockets, for QP 1 and for the time, of all channels; it and
 * each thread that gets an event read the sockets, give their MADs to the engine (ibcm.h), and run
 * the timers that have expired. The death of a peer is the end of its socket.
 *
 * Invariant: all objects are read and changed under rcm_lock(), the engine and its IDs among them.
 * Its callbacks run inside of calls of it, so under the lock, too. A thread that waits for events
 * does not hold the lock, and looks the channel up again by its descriptor afterwards.
 * Invariant: one timer of the kernel is set to the earliest time of the engine's timers and the
 * IDs', or earlier.
 * Invariant: a socket carries the messages of one ID, whose handle plus 1 is the number of the
 * engine's link. The engine's ID is dropped when the socket is closed. Packets are read before the
 * end of their socket, and events are queued as they are read.
 * Invariant: while the lock is free, the descriptor of a channel is readable if and only if an
 * event is queued.
 * Invariant: a descriptor that the program has closed, as by closefrom(), is not used: its number
 * may be in use by another file. Channels are checked by each command (is_of()), descriptors of
 * the agent when a descriptor is added, and sockets, by their cookies, before they are closed.
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

#define RCM_MAX_IDS     65536 /* of librdmacm, too */
#define RCM_MAX_NAME    100   /* of a port, with its end */
#define RCM_MAX_BACKLOG 1024
#define RCM_MAX_PRIVATE 196 /* largest of all messages: a reply (IBTA 12.6) */
#define RCM_UDP_QKEY    0x01234567
#define RCM_HOP_LIMIT   64
#define RCM_ACK_TIMEOUT 16 /* 268 ms: a killed peer fails within 10 s with 7 retries */

/* Reasons of a REJ (IBTA 12.6.7.2), statuses of a SIDR REP. */
#define RCM_REJ_TIMEOUT            4
#define RCM_REJ_INVALID_SERVICE_ID 8
#define RCM_REJ_CONSUMER           28
#define RCM_REJ_VENDOR_OPTION      35
#define RCM_SIDR_UNSUPPORTED       1
#define RCM_SIDR_REJECT            2

/* Entries of the agent that are not handles: QP 1 of the first device, and the first of
 * connections without a request. */
#define RCM_MAX_DEVS 8 /* RIBV_MAX_DEVS */
#define RCM_GSI      RCM_MAX_IDS
#define RCM_PENDING  (RCM_GSI + RCM_MAX_DEVS)
#define RCM_REPORT   (UINT32_MAX - 1)

/* As librdmacm numbers them. */
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
	RCM_CONNECT,      /* a request is sent, or will be when a process listens */
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

/* An address; IPv4 is mapped into IPv6. */
struct rcm_addr {
	uint16_t family; /* AF_INET, AF_INET6, or 0: none */
	uint16_t port;
	uint32_t scope_id;
	uint8_t ip[16];
};

/* The parameters of one side, of its last message. */
struct rcm_side {
	enum rcm_type type; /* 0: no message yet */
	uint8_t reason;     /* of a REJ */
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

/* A packet on a socket: a MAD, and the sender's port, which the headers of a network have. */
struct rcm_packet {
	uint8_t gid[16];
	uint16_t lid; /* big-endian */
	uint8_t mtu;
	uint8_t reserved;
	uint8_t mad[IBCM_MAD_LEN];
};

struct rcm_mcast;

struct rcm_event {
	TAILQ_ENTRY(rcm_event) queued; /* in its channel */
	TAILQ_ENTRY(rcm_event) own;    /* in its ID; also when it was taken from the queue */
	struct rcm_id *id;             /* whose it is: the listening one for a request */
	struct rcm_id *child;          /* of a request: the new one; else NULL */
	struct rcm_mcast *mcast;       /* of a group that was joined; else NULL */
	struct rdma_ucm_event_resp resp;
};

TAILQ_HEAD(rcm_events, rcm_event);

struct rcm_channel {
	int fd;       /* of the program */
	int event_fd; /* readable while events are queued */
	uint32_t nb_fds;
	uint64_t checked; /* rcm_nb_locked() when checked_fd was found to be of the channel */
	int checked_fd;
	bool is_readable;
	bool is_changed; /* in the list of rcm_channels_signal() */
	TAILQ_ENTRY(rcm_channel) changed;
	struct rcm_events events;
	TAILQ_HEAD(rcm_ids, rcm_id) ids; /* its IDs, also those of requests */
};

/* A socket that holds a name of a port. */
struct rcm_name {
	uint64_t cookie; /* of the socket; 0: none */
	int fd;
};

enum {
	RCM_NAME_PORT, /* the first one of the port */
	RCM_NAME_ID,   /* rcm_id::port_name */
	RCM_NB_NAMES,
};

/* Addresses that a listening ID is reached at. */
enum rcm_scope {
	RCM_SCOPE_ADDR,
	RCM_SCOPE_FAMILY, /* all of its family */
	RCM_SCOPE_DUAL,   /* all */
	RCM_NB_SCOPES,
};

struct rcm_id {
	struct rcm_channel *channel;
	TAILQ_ENTRY(rcm_id) of_channel;
	LIST_ENTRY(rcm_id) of_port; /* in the list of rcm_id_by_port(), with has_port */
	struct rcm_events events;   /* queued in the channel */
	uint64_t uid;               /* of the program; 0 until it has accepted the request */
	uint32_t handle;
	uint16_t ps;
	uint8_t qp_type;
	uint8_t ack_timeout;
	uint8_t tos;
	bool has_dev;           /* bound to a device */
	bool has_port;          /* it is, or was, bound to src.port */
	bool is_child;          /* of a request */
	bool is_queued;         /* the event of the request is: the program does not know the ID */
	bool is_disconnecting;  /* by the program, which waits for the end */
	bool has_left_timewait; /* while the end of the connection is held back */
	bool is_afonly;
	bool has_afonly; /* set by the program */
	bool is_reuse;
	bool is_removed; /* its device is, and all that it had; in RCM_ENDED */
	enum rcm_state state;
	uint32_t dev; /* its number; with has_dev */
	struct rcm_addr src, dst;
	struct rcm_name names[RCM_NB_NAMES];
	char port_name[RCM_MAX_NAME]; /* of an ID that the program has bound; or "" */
	int fd;             /* that listens, is connected, or has the port of a connection; or -1 */
	uint64_t cookie;    /* of that socket */
	struct ibcm_id *cm; /* of a connection; with --ip until the ID is destroyed */
	struct ibcm_listener *cm_listener;
	struct ibcm_timer timer; /* connect again; report an end that is held back; or a fault */
	uint64_t retry_until_ns; /* a refused connection is attempted again until then */
	uint64_t lock_limit_ns;  /* of the wait for the lock of a port; 0: it does not wait */
	uint32_t backlog;        /* of a listening one */
	uint32_t nb_requests;    /* events queued of new connections */
	uint32_t nb_reported;    /* events that the program has got */
	uint32_t nb_holds;       /* times that the end of the connection was held back */
	uint32_t qkey;
	struct rmem_rdma_cm_fault fault; /* injected, and not executed yet; type 0: none */
	enum rmem_rdma_cm_step fault_step;
	struct rcm_side own, peer;
};

/* A command: its input, which is a copy, and the length of the response that fits. */
struct rcm_cmd {
	struct rcm_channel *channel;
	size_t in_len;
	uint16_t out_len;
	int cancel_state; /* of the program's thread */
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

/* Commands return 0 or a negative errno. -ERESTART: nothing has changed, and the command runs again
 * after other threads had the lock. */
typedef int (*rcm_run_t)(const struct rcm_cmd *cmd);

/* Of the C library: close() is defined by librmem_ibv.so, or by another preloaded library. */
int __close(int fd);
#define rcm_close __close

/*
 * Functions, file by file from the lowest: each calls those that precede it alone, and a handler
 * is registered by a file above.
 */

/* rcm_addr.c: addresses. */
bool rcm_is_ud(const struct rcm_id *id);
bool rcm_is_any(const struct rcm_addr *addr);
/* The address of a program; 0 or a negative errno. */
int rcm_addr_of(const void *sockaddr, size_t size, struct rcm_addr *addr);
socklen_t rcm_sockaddr(const struct rcm_addr *addr, void *sockaddr);

/* rcm_dev.c: devices. */
struct rcm_dev {
	uint64_t node_guid; /* big-endian */
	uint8_t gid[16];
	uint8_t sgid_index; /* of the GID */
	uint16_t lid;
	uint8_t mtu;
	bool is_host; /* peers are the processes of this host */
};

/* A device, by number, with its first GID; false if it can't be queried. */
bool rcm_dev_get(uint32_t number, struct rcm_dev *dev);
/* The same with the GID of an index; false: there is none. */
bool rcm_dev_gid(uint32_t number, uint32_t index, struct rcm_dev *dev);
/* That of an ID, with the GID that is its address; the first one, if the ID has none. */
bool rcm_dev_of(const struct rcm_id *id, struct rcm_dev *dev);
/* The first device with peers on this host, which all links use. */
bool rcm_dev_host(uint32_t *number, struct rcm_dev *dev);
/* The device with that address, else the first one with peers on this host, which has all. */
bool rcm_dev_find(const uint8_t ip[16], uint32_t *number, struct rcm_dev *dev);
/* The device is removed: it is not found from now on. */
void rcm_dev_remove(uint32_t number);
/* Whether the ID is reached by links: its device is, or without one any device. */
bool rcm_has_links(const struct rcm_id *id);

/* rcm_event.c: events, and the queue of a channel. */
/* The channel is freed: do not signal it. */
void rcm_events_forget(struct rcm_channel *channel);
/* Make channels readable that have events now, and those not that have none. */
void rcm_channels_signal(void);
/* The event to fill and queue; NULL: no memory. */
struct rcm_event *rcm_event_new(struct rcm_id *id, enum rcm_event_type type, int status);
void rcm_event_queue(struct rcm_channel *channel, struct rcm_event *event);
/* Both, for an event without parameters. If there is no memory, the program never gets it. */
void rcm_event_post(struct rcm_id *id, enum rcm_event_type type, int status);
/* Remove the events of an ID from the queue of its channel; *taken has them, in order. */
void rcm_events_take(struct rcm_id *id, struct rcm_events *taken);
/* Remove the first event of a channel, which has one, from its queue; the caller frees it. */
struct rcm_event *rcm_event_pop(struct rcm_channel *channel);
/* Free the queued events of a group that is left. */
void rcm_events_drop_mcast(struct rcm_id *id, const struct rcm_mcast *mcast);

/* rcm_lock.c */
void rcm_lock(void);
/* False if another thread, or this one, has the lock. */
bool rcm_trylock(void);
void rcm_unlock(void);
/* Release the lock for that time, or until the condition, of CLOCK_MONOTONIC, is signalled. */
void rcm_wait(pthread_cond_t *cond, uint64_t ns);
/* How often the lock was taken: what is true once remains so until it is released. */
uint64_t rcm_nb_locked(void);
uint64_t rcm_now(void);

/* rcm_agent.c: the thread, descriptors and timers. */
struct rcm_agent_handlers {
	/* The timer of an ID has expired. */
	void (*id_time)(struct rcm_id *id);
	/* The agent has new descriptors: the program has closed the former ones. */
	void (*lost)(void);
	/* When time() must be called, or IBCM_NEVER. */
	uint64_t (*next)(void);
	/* The descriptor that is watched with that entry is ready. */
	void (*ready)(uint32_t entry);
	void (*time)(uint64_t now);
	/* rcm_agent_wake() was called. */
	void (*woken)(void);
};

void rcm_agent_handle(const struct rcm_agent_handlers *handlers);
/* Start it, unless it is running; 0 or a negative errno. */
int rcm_agent_start(void);
/* Record the file of a descriptor that is not watched; 0 or a negative errno. */
int rcm_agent_record(int fd);
/* Whether a descriptor that was recorded or watched still refers to the same file. */
bool rcm_agent_is_same_file(int fd);
/* Watch a descriptor for events, or change its events; 0 or a negative errno. */
int rcm_agent_watch(int fd, uint32_t entry, uint32_t events);
void rcm_agent_unwatch(int fd);
/* Whether that descriptor, which was watched, is the same file. */
bool rcm_agent_has(int fd, uint32_t entry);
/* Wake the agent when the engine or an ID needs it. */
void rcm_timer_set(void);
/* Have memory for the timers of that many IDs; false: there is none. */
bool rcm_timer_reserve(uint32_t nb);
/* Set the timer of an ID, or, with IBCM_NEVER, do not. */
void rcm_id_timer(struct rcm_id *id, uint64_t at_ns);
/* Serve the descriptors that are ready; false: none was. */
bool rcm_agent_run(void);
/*
 * A thread that waits for events may lead: it waits for the agent's descriptors as well, and the
 * agent stands by. Returns a number that is not 0, and the descriptor; or 0: another thread leads.
 */
uintptr_t rcm_agent_lead(int *fd);
/* The number is that of rcm_agent_lead(), or 0. */
void rcm_agent_unlead(uintptr_t number);
/* Have woken() called, soon, if the agent runs. By any thread, without the lock. */
void rcm_agent_wake(void);
/* A ready descriptor can't be served now: the agent pauses before it waits again. */
void rcm_agent_pause(void);
/* Close what a child of fork() has inherited; so do the functions of that name below. */
void rcm_agent_forked(void);

/* rcm_id.c: IDs. */
struct rcm_id *rcm_id_get(uint32_t handle);
/* That ID of the channel; NULL, with *ret set to a negative errno. */
struct rcm_id *rcm_id_find(const struct rcm_cmd *cmd, uint32_t handle, int *ret);
/* The same, unless its device is removed: -ENXIO. */
struct rcm_id *rcm_id_of(const struct rcm_cmd *cmd, uint32_t handle, int *ret);
struct rcm_id *rcm_id_new(struct rcm_channel *channel, uint16_t ps, uint8_t qp_type);
/* To another channel. */
void rcm_id_move(struct rcm_id *id, struct rcm_channel *to);
/* The ID is bound to src.port, until it is freed. */
void rcm_id_has_port(struct rcm_id *id);
/* The first of a list, by of_port, that has all IDs of the port, and others. */
struct rcm_id *rcm_id_by_port(uint16_t port);
/* Free an ID that has no connection, port, group or event: rcm_destroy() ends them first. */
void rcm_id_free(struct rcm_id *id);
/* The first ID from *handle on; NULL if there is none. */
struct rcm_id *rcm_id_next(uint32_t *handle);
/* Store a response in the program's memory. */
int rcm_respond(const struct rcm_cmd *cmd, uint64_t to, const void *resp, size_t size);
int rcm_create_id(const struct rcm_cmd *cmd);
int rcm_get_option(const struct rcm_cmd *cmd);
int rcm_set_option(const struct rcm_cmd *cmd);

/* rcm_sock.c: sockets. */
/* A socket of the type of all links and names; -1 with errno set. */
int rcm_sock_open(void);
/* Identifies the socket of a descriptor; 0: it is of none. */
uint64_t rcm_sock_cookie(int fd);
/* Unwatch, shut down and close a socket, unless the program has closed it. */
void rcm_sock_close(int fd, uint64_t cookie);
/* Close alone: another process has the socket, too; or it has no peer. */
void rcm_sock_leave(int fd, uint64_t cookie);
/* The ID has that socket from now on. */
void rcm_sock_take(struct rcm_id *id, int fd);
/* Close the socket of the ID. */
void rcm_sock_drop(struct rcm_id *id);
/* Forget the socket of an ID if the program has closed it. */
void rcm_sock_check(struct rcm_id *id);
/* Bind a socket to a name of the abstract namespace; -1 with errno set. */
int rcm_name_bind(int fd, const char *name);
/* Connect a socket to one that listens at a name; 0 or a negative errno. */
int rcm_name_connect(int fd, const char *name);
/* The user of the process that listens at the other end of a socket, or at a name; 0 or a negative
 * errno. */
int rcm_sock_user(int fd, uid_t *user);
int rcm_name_user(const char *name, uid_t *user);
void rcm_name_keep(struct rcm_name *name, int fd);
/* Close its socket, unless the program has closed it. */
void rcm_name_close(struct rcm_name *name);

/* rcm_port.c: ports. Names are in doc/dropin.md. */
/*
 * Bind the ID to the port of its address, or to a free one: 0, -EADDRINUSE, -EADDRNOTAVAIL (one
 * of two addresses in conflict is unspecified; or no port is free), -EACCES. is_implicit: by a
 * connection, not by the program.
 */
int rcm_port_claim(struct rcm_id *id, bool is_implicit);
/* A listening ID shares its address with no other one; errors of rcm_port_claim(). */
int rcm_port_unshare(struct rcm_id *id);
/* Close the socket, and claim the port of a connection again, which it had; the same errors. */
int rcm_port_reopen(struct rcm_id *id);
/* Close the socket and release the port. */
void rcm_port_close(struct rcm_id *id);
/* The name of a port of the ID's port space, which its first ID holds. */
void rcm_port_owner_name(const struct rcm_id *id, uint16_t port, char *name);
/* The name of a socket that listens for the ID's port space, at the port of the address. */
void rcm_listener_name(const struct rcm_id *id, const struct rcm_addr *addr, enum rcm_scope scope,
		char *name);

/* rcm_link.c: links. Limits are in doc/dropin.md. */
/* Listen at the name of the ID's address; 0 or a negative errno. */
int rcm_link_listen(struct rcm_id *id);
/* Connect the socket, unless peers are other hosts; 0 or a negative errno. */
int rcm_link_connect(struct rcm_id *id);
/* The number of the ID's link. */
uint64_t rcm_link_of(const struct rcm_id *id);
/* The link of a request is that of a new ID from now on; 0 or a negative errno. */
int rcm_link_take(struct rcm_id *id, uint64_t link);
/* Send a MAD by the link; 0 or a negative errno. */
int rcm_link_send(uint64_t link, const uint8_t mad[IBCM_MAD_LEN]);
/* Read a packet: 1, 0 if there is none, or a negative errno: the connection has ended. */
int rcm_link_receive(uint64_t link, struct rcm_packet *packet);
/* Accept a connection, which is pending until an ID takes it: its link, or 0: there is none. */
uint64_t rcm_link_accept(int listening);
/* The link of a pending connection that is watched with the entry; 0: the entry has none. */
uint64_t rcm_link_pending(uint32_t entry);
/* Watch a connection, or end it, if it is pending still. */
void rcm_link_watch(uint64_t link);
void rcm_link_end(uint64_t link);
/* The agent has new descriptors: watch the sockets again. */
void rcm_links_check(void);
void rcm_links_forked(void);

/* rcm_report.c */
/* The connections and the counters as text, to be freed, of *len bytes; NULL: no memory. */
char *rcm_report(const struct ibcm *cm, const struct ibcm_log *log, size_t *len);
/* A socket to which rmem-top connects; -1: none. */
int rcm_report_listen(void);
/* Accept a connection, and answer it with the report. */
void rcm_report_send(int listening, const struct ibcm *cm, const struct ibcm_log *log);

/* rcm_mad.c: the engine. */
struct rcm_mad_handlers {
	/* The connection has ended, by a message of the peer (0: a DREQ) or without one. */
	void (*ended)(struct rcm_id *id, int err);
	/* A message of the peer. */
	void (*received)(struct rcm_id *id, const struct rcm_side *peer);
	/* A request to a listening ID, from src to dst of a device; false: it can't have an ID. */
	bool (*request)(struct rcm_id *listener, const struct rcm_side *peer,
			const struct rcm_addr *src, const struct rcm_addr *dst, uint32_t dev,
			struct ibcm_id *of_cm);
	/* The QP of the connection may be used again. */
	void (*timewait_exit)(struct rcm_id *id);
};

void rcm_mad_handle(const struct rcm_mad_handlers *handlers);
int rcm_mad_listen(struct rcm_id *id);
/* Send id->own, of that type; 0 or a negative errno. */
int rcm_mad_send(struct rcm_id *id, enum rcm_type type);
/* An established one: 0, or -EBUSY. */
int rcm_mad_disconnect(struct rcm_id *id);
/* The peer's QP has sent. */
void rcm_mad_notify(struct rcm_id *id);
/* A request is that of the ID. */
void rcm_mad_take(struct rcm_id *id, struct ibcm_id *of_cm);
/* A packet has arrived by the link; 0, or -EPROTO: it has no MAD of the CM. */
int rcm_mad_packet(uint64_t link, const struct rcm_packet *packet);
/* The link of the ID ends. */
void rcm_mad_drop(struct rcm_id *id);
/* The ID is destroyed: end what it has. */
void rcm_mad_close(struct rcm_id *id);
/* rmem-top has connected. */
void rcm_mad_report(void);
/* QP 1 of a device is ready. */
void rcm_mad_ready(uint32_t number);
/* When rcm_mad_time() must be called, or IBCM_NEVER. */
uint64_t rcm_mad_next(void);
void rcm_mad_time(uint64_t now);
/* The agent has new descriptors: watch QP 1 again. */
void rcm_mad_check(void);
void rcm_mad_forked(void);

/* rcm_query.c */
int rcm_query(const struct rcm_cmd *cmd);
int rcm_query_route(const struct rcm_cmd *cmd);
int rcm_init_qp_attr(const struct rcm_cmd *cmd);
/* The path to the peer, as in events of UD. */
void rcm_ah_attr(const struct rcm_id *id, struct ib_uverbs_ah_attr *attr);

/* rcm_mcast.c */
int rcm_join_ip_mcast(const struct rcm_cmd *cmd);
int rcm_join_mcast(const struct rcm_cmd *cmd);
int rcm_leave_mcast(const struct rcm_cmd *cmd);
/* The program got an event of the group. */
void rcm_mcast_reported(struct rcm_mcast *mcast);
/* Leave the groups of an ID that is destroyed. */
void rcm_mcast_drop(const struct rcm_id *id);

/* rcm_watch.c: failures of devices. */
/* IDs of the device have the event if it fails, from now on; 0 or a negative errno. */
int rcm_watch_dev(uint32_t number);
/* Bits of the devices that have failed since the last call. */
uint32_t rcm_watch_take(void);

/* rcm_chaos.c: injected faults. */
/* Whether a rule of the ID's device hits it at a step: id->fault, at the time of its timer. */
bool rcm_chaos_hit(struct rcm_id *id, enum rmem_rdma_cm_step step);
/* The fault of the ID happens now: its rule logs it. */
void rcm_chaos_happens(struct rcm_id *id);

/* rcm_bind.c: addresses of IDs. */
int rcm_bind_ip(const struct rcm_cmd *cmd);
int rcm_bind(const struct rcm_cmd *cmd);
int rcm_resolve_ip(const struct rcm_cmd *cmd);
int rcm_resolve_addr(const struct rcm_cmd *cmd);
int rcm_resolve_route(const struct rcm_cmd *cmd);
/* Bind to the unspecified address and any port, unless bound. */
int rcm_bind_any(struct rcm_id *id, uint16_t family);

/* rcm_conn.c: connections. */
int rcm_listen(const struct rcm_cmd *cmd);
int rcm_connect(const struct rcm_cmd *cmd);
int rcm_accept(const struct rcm_cmd *cmd);
int rcm_reject(const struct rcm_cmd *cmd);
int rcm_disconnect(const struct rcm_cmd *cmd);
int rcm_notify(const struct rcm_cmd *cmd);
int rcm_destroy_id(const struct rcm_cmd *cmd);
/* End its connection, as its destruction does, and release its port. */
void rcm_conn_close(struct rcm_id *id);
/* Destroy an ID, with its connection, groups, events, and the IDs of requests to it. */
void rcm_destroy(struct rcm_id *id);
/* The socket of the ID is ready. */
void rcm_conn_ready(struct rcm_id *id);
/* Its timer has expired. */
void rcm_conn_time(struct rcm_id *id);

/* rcm_channel.c: channels. */
/* Bitmap of their descriptors; atomic. */
extern uint64_t rcm_channel_fds[RCM_MAX_FDS / 64];

struct rcm_channel *rcm_channel_of(int fd);
/* Whether this process has the channels, not its child of vfork(). */
bool rcm_is_owner(void);
/* Whether it is a child of fork() and the descriptor is that of a channel of its parent. */
bool rcm_is_inherited(int fd);
/* In a child of fork(). */
void rcm_channels_forked(void);
/* Free channels whose descriptors the program has closed by others than close(). */
void rcm_channels_check(void);
/* Releases the lock while it waits. */
int rcm_get_event(int fd, const struct rcm_cmd *cmd);
int rcm_migrate_id(const struct rcm_cmd *cmd);
/* Of struct rcm_ops. */
int rcm_channel_open(int flags);
int rcm_channel_close(int fd, rcm_close_t next);
/* Called for each write() that fails with EINVAL, also by handlers of signals. */
int rcm_channel_adopt(int fd);
int rcm_is_channel(int fd);

/* rcm_handler.c: handlers of the agent. */
void rcm_forked(void);

#endif /* RCM_H */
