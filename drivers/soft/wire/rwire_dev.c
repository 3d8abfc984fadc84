/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The wire of a device: its port, and the thread that makes progress.
 *
 * Each poll of a CQ of the device makes progress. With progress=thread a control thread also does;
 * it sleeps on the file descriptor of the port, so a target responds without calls of the
 * application. While lcores poll often, the thread neither receives nor waits for packets, so
 * lcores need not wake it; if an lcore polls only now and again, the thread receives.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_lcore.h>

#include "../chaos/rsoft_chaos.h"
#include "../mem/rsoft_grace.h"
#include "../queue/rsoft_addr.h"
#include "rwire.h"
#include "rwire_xrc.h"
#include "rwire_xrc_qp.h"

/* Longest sleep of the thread, for timers; and its sleep while lcores receive; in ms. */
#define WIRE_TICK_MS 10
#define WIRE_AWAY_MS 1
/* Interval between executions of rmem-ctl commands. */
#define WIRE_CONTROL_MS 5
/* Number of polls by lcores in WIRE_AWAY_MS from which on they receive instead of the thread. */
#define WIRE_OFTEN 32
/* Time that the thread polls after the last packets before it sleeps. */
#define WIRE_SPIN_US 20
/* Interval of the housekeeping of an idle port. */
#define WIRE_IDLE_MS 100
/* Delay of acknowledgements that were not requested. */
#define WIRE_LATE_US 10
/* A poll that finds that only peers can go on leaves the send queues to polls after this time. */
#define WIRE_QUIET_US 2
/* Half of the interval at which a port checks its connections. */
#define WIRE_RARE_US 500
/* Longest wait of exit() for the answers that a device has not sent. */
#define WIRE_EXIT_MS 500

/* The wires with a thread, for wires_end(). The lock protects the list. */
static rte_ticketlock_t wires_lock = RTE_TICKETLOCK_INITIALIZER;
static LIST_HEAD(wires_with_thread, rwire) wires = LIST_HEAD_INITIALIZER(wires);

static void
wire_add_stats(const struct rwire_port_stats *port, struct rmem_dev_stats *stats)
{
	stats->wire_tx_packets += __atomic_load_n(&port->tx_packets, __ATOMIC_RELAXED);
	stats->wire_tx_bytes += __atomic_load_n(&port->tx_bytes, __ATOMIC_RELAXED);
	stats->wire_tx_drops += __atomic_load_n(&port->tx_dropped, __ATOMIC_RELAXED);
	stats->wire_rx_packets += __atomic_load_n(&port->rx_packets, __ATOMIC_RELAXED);
	stats->wire_rx_bytes += __atomic_load_n(&port->rx_bytes, __ATOMIC_RELAXED);
}

void
rwire_stats_get(const struct rwire *wire, struct rmem_dev_stats *stats)
{
	const struct rwire_stats *own = &wire->stats;
	uint32_t i;

	stats->wire_tx_packets = stats->wire_tx_bytes = stats->wire_tx_drops = 0;
	stats->wire_rx_packets = stats->wire_rx_bytes = 0;
	wire_add_stats(&wire->inner->stats, stats);
	for (i = 0; i < wire->inner->nb_parts; i++)
		wire_add_stats(&wire->inner->parts[i]->stats, stats);
	stats->wire_retransmits = __atomic_load_n(&own->retransmits, __ATOMIC_RELAXED);
	stats->wire_timeouts = __atomic_load_n(&own->timeouts, __ATOMIC_RELAXED);
	stats->wire_duplicates = __atomic_load_n(&own->duplicates, __ATOMIC_RELAXED);
	stats->wire_gaps = __atomic_load_n(&own->gaps, __ATOMIC_RELAXED);
	stats->wire_naks_sent = __atomic_load_n(&own->naks_sent, __ATOMIC_RELAXED);
	stats->wire_naks_received = __atomic_load_n(&own->naks_received, __ATOMIC_RELAXED);
	stats->wire_rnr_naks_sent = __atomic_load_n(&own->rnr_sent, __ATOMIC_RELAXED);
	stats->wire_malformed = __atomic_load_n(&own->malformed, __ATOMIC_RELAXED);
	stats->wire_icrc_errors = __atomic_load_n(&own->icrc_errors, __ATOMIC_RELAXED);
	stats->wire_unknown_qps = __atomic_load_n(&own->no_qp, __ATOMIC_RELAXED);
	stats->wire_wrong_peers = __atomic_load_n(&own->wrong_peer, __ATOMIC_RELAXED);
	stats->wire_busy_drops = __atomic_load_n(&own->busy_drops, __ATOMIC_RELAXED);
	stats->wire_ecn_marked = __atomic_load_n(&own->ecn_marked, __ATOMIC_RELAXED);
	stats->wire_cnps_sent = __atomic_load_n(&own->cnps_sent, __ATOMIC_RELAXED);
	stats->wire_cnps_received = __atomic_load_n(&own->cnps_received, __ATOMIC_RELAXED);
	stats->drop_no_recv += __atomic_load_n(&own->drop_no_recv, __ATOMIC_RELAXED);
	stats->drop_length += __atomic_load_n(&own->drop_length, __ATOMIC_RELAXED);
	stats->drop_access += __atomic_load_n(&own->drop_access, __ATOMIC_RELAXED);
	stats->drop_qkey += __atomic_load_n(&own->drop_qkey, __ATOMIC_RELAXED);
	stats->recv_wrs += __atomic_load_n(&own->link_recvs, __ATOMIC_RELAXED);
	stats->bad_rkeys += __atomic_load_n(&own->link_bad_rkeys, __ATOMIC_RELAXED);
	stats->mem_faults += __atomic_load_n(&own->link_faults, __ATOMIC_RELAXED);
}

/* Prepare for a sleep of the thread; false if packets wait, or late acknowledgements. */
static bool
wire_may_sleep(struct rwire *wire)
{
	bool is_empty;

	/* Otherwise the holder receives. */
	if (!rte_ticketlock_trylock(&wire->rx_lock))
		return false;
	is_empty = TAILQ_EMPTY(&wire->late_list) && wire->port->ops->rx_sleep(wire->port);
	rte_ticketlock_unlock(&wire->rx_lock);
	return is_empty;
}

/* Polls by lcores, as counted by the thread. */
struct wire_watch {
	uint64_t seen;    /* rwire::nb_polls at `since`, plus own polls since then */
	uint64_t since;   /* TSC */
	uint64_t busy_at; /* time of the last packets, TSC */
};

/* Whether lcores poll so often that they receive instead of the thread. */
static bool
wire_is_polled(const struct rwire *wire, struct wire_watch *watch)
{
	uint64_t nb_polls = __atomic_load_n(&wire->nb_polls, __ATOMIC_RELAXED);
	uint64_t now = rte_rdtsc(), away = rte_get_tsc_hz() / 1000 * WIRE_AWAY_MS;
	uint64_t nb = nb_polls - watch->seen, elapsed = now - watch->since;

	if (nb < WIRE_OFTEN && elapsed < away)
		return false;
	watch->seen = nb_polls;
	watch->since = now;
	return nb * away >= WIRE_OFTEN * elapsed;
}

/* One step of the thread; return whether more packets are expected soon. */
static bool
wire_step(struct rwire *wire, struct wire_watch *watch)
{
	uint64_t before = __atomic_load_n(&wire->nb_polls, __ATOMIC_RELAXED);
	bool is_busy = wire->progress(wire->dev);
	uint64_t now = rte_rdtsc();

	watch->seen += __atomic_load_n(&wire->nb_polls, __ATOMIC_RELAXED) - before;
	if (is_busy)
		watch->busy_at = now;
	return now - watch->busy_at < rte_get_tsc_hz() / US_PER_S * WIRE_SPIN_US;
}

static void
wire_sleep(struct rwire *wire, struct pollfd *fds, nfds_t nb, int ms)
{
	uint64_t n;

	poll(fds, nb, ms);
	if (fds[0].revents & POLLIN)
		(void)!read(wire->wake_fd, &n, sizeof(n));
}

/* Time that the thread sleeps without packets, ms. */
static int
wire_tick(struct rwire *wire)
{
	return __atomic_exchange_n(&wire->has_waiting, false, __ATOMIC_RELAXED) ? WIRE_AWAY_MS
										: WIRE_TICK_MS;
}

/* Execute commands of rmem-ctl, at intervals. */
static void
wire_control(struct rwire *wire, uint64_t *last)
{
	uint64_t now;

	if (wire->control_fd < 0)
		return;
	now = rte_rdtsc();
	if (now - *last < rte_get_tsc_hz() / 1000 * WIRE_CONTROL_MS)
		return;
	rwire_control_serve(wire);
	*last = now;
}

/* Make progress until is_stopping, except while lcores do. */
static void
wire_serve(struct rwire *wire)
{
	struct wire_watch watch = {0};
	struct pollfd fds[3] = {{.fd = wire->wake_fd, .events = POLLIN},
			{.fd = wire->port->fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	const struct rwire_xrc *xrc;
	uint64_t control_at = 0;

	while (!__atomic_load_n(&wire->is_stopping, __ATOMIC_ACQUIRE)) {
		wire_control(wire, &control_at);
		xrc = __atomic_load_n(&wire->xrc, __ATOMIC_ACQUIRE);
		fds[2].fd = xrc != NULL ? xrc->epoll : -1;
		if (wire_is_polled(wire, &watch))
			wire_sleep(wire, fds, 1, WIRE_AWAY_MS);
		else if (!wire_step(wire, &watch) && wire_may_sleep(wire))
			wire_sleep(wire, fds, RTE_DIM(fds), wire_tick(wire));
	}
}

static void
wire_thread(void *arg)
{
	struct rwire *wire = arg;

	wire->start_rc = rte_thread_register();
	sem_post(&wire->started);
	if (wire->start_rc != 0)
		return;
	wire_serve(wire);
	rte_thread_unregister();
}

static int
wire_start_thread(struct rwire *wire)
{
	wire->thread.run = wire_thread;
	wire->thread.arg = wire;
	if (rmem_thread_start(&wire->thread, "rmem-wire") != 0) {
		RSOFT_LOG(ERR, "ip=: control thread not created: no thread or address space left (ulimit -u, -v)");
		return -ENOMEM;
	}
	while (sem_wait(&wire->started) != 0)
		; /* a signal */
	if (wire->start_rc == 0)
		return 0;
	pthread_join(wire->thread.id, NULL);
	RSOFT_LOG(ERR, "ip=: control thread not registered with EAL: all RTE_MAX_LCORE lcore ids are in use, or there are secondary processes");
	return -ENOSPC;
}

/* Whether the thread has sent all answers. */
static bool
wire_has_answered(struct rwire *wire)
{
	bool has_answered;

	/* The holder may have completed a receive, and not answered yet. */
	if (!rte_ticketlock_trylock(&wire->rx_lock))
		return false;
	has_answered = TAILQ_EMPTY(&wire->reply_list) && TAILQ_EMPTY(&wire->late_list);
	rte_ticketlock_unlock(&wire->rx_lock);
	return has_answered;
}

/*
 * At exit, while the threads still run: wait until the requests are acknowledged whose completions
 * the program may have seen. Otherwise they fail at their peers. Locks are only tried: a signal
 * handler that interrupted their holder may call exit().
 */
static __attribute__((destructor)) void
wires_end(void)
{
	const uint64_t wait = rte_get_tsc_hz() / 1000 * WIRE_EXIT_MS, start = rte_rdtsc();
	struct rwire *wire;

	if (!rte_ticketlock_trylock(&wires_lock))
		return;
	LIST_FOREACH(wire, &wires, entry) {
		while (wire->process == getpid() && !wire_has_answered(wire) &&
				rte_rdtsc() - start < wait)
			sched_yield();
	}
	rte_ticketlock_unlock(&wires_lock);
}

/* The thread runs from now on, or is about to end. */
static void
wire_list(struct rwire *wire, bool is_running)
{
	rsoft_lock(&wires_lock);
	if (is_running)
		LIST_INSERT_HEAD(&wires, wire, entry);
	else
		LIST_REMOVE(wire, entry);
	rte_ticketlock_unlock(&wires_lock);
}

static int
wire_start(struct rwire *wire)
{
	int rc;

	wire->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (wire->wake_fd < 0) {
		RSOFT_LOG(ERR, "ip=: eventfd(): %s", strerror(errno));
		return -ENOMEM;
	}
	sem_init(&wire->started, 0, 0);
	rc = wire_start_thread(wire);
	sem_destroy(&wire->started);
	wire->process = getpid();
	if (rc == 0)
		wire_list(wire, true);
	else
		close(wire->wake_fd);
	return rc;
}

/* Whether packets are lost, altered or held by rwire_port_fault.c. */
static bool
wire_has_fault(const struct rsoft_args *args)
{
	return args->fault[0] != '\0' || args->control != 0;
}

/* Packets in memory need an ICRC only if faults can alter them, or for all fields in a pcap
 * file. */
static bool
wire_has_icrc(const struct rsoft_args *args)
{
	return wire_has_fault(args) || args->pcap[0] != '\0';
}

/* Open the port that port= selects. */
static int
wire_open_inner(const struct rsoft_args *args, const struct rwire_addr *addr,
		struct rwire_port **port)
{
	static const char shm[] = "shm:", eth[] = "eth:";
	if (args->neigh[0] != '\0' && strncmp(args->port, eth, sizeof(eth) - 1) != 0) {
		RSOFT_LOG(ERR, "neigh=%s: only ports of port=eth have neighbours", args->neigh);
		return -EINVAL;
	}
	if (args->share != 0 && strncmp(args->port, shm, sizeof(shm) - 1) != 0) {
		RSOFT_LOG(ERR, "share=1: only peers of port=shm map memory");
		return -EINVAL;
	}
	if (args->port[0] == '\0' || strcmp(args->port, "udp") == 0)
		return rwire_port_udp_open(addr, port);
	if (strncmp(args->port, shm, sizeof(shm) - 1) == 0)
		return rwire_port_shm_open(addr, args->port + sizeof(shm) - 1, wire_has_icrc(args),
				args->share != 0, port);
	if (strncmp(args->port, eth, sizeof(eth) - 1) == 0)
		return rwire_port_eth_open(addr, args->port + sizeof(eth) - 1, args->neigh,
				(uint32_t)args->mtu, port);
	RSOFT_LOG(ERR, "port=%s: not udp, shm:NAME or eth:NUMBER", args->port);
	return -EINVAL;
}

/* Open the port for ip=host; get its address, and the link layer of such devices. */
static int
wire_open_host(const struct rsoft_args *args, struct rwire *wire, struct rwire_port **port)
{
	const char *extra = args->port[0] != '\0' ? "port"
			: args->neigh[0] != '\0'  ? "neigh"
			: args->share != 0        ? "share"
						  : NULL;

	if (extra != NULL) {
		RSOFT_LOG(ERR, "%s=: not supported with ip=host, which is shared memory of all users",
				extra);
		return -EINVAL;
	}
	return rwire_port_shm_open_host(wire_has_icrc(args), args->direct != 0,
			args->odp_guard != 0, &wire->owners, port);
}

static int
wire_open_addr(const struct rsoft_args *args, struct rwire_port **port)
{
	char ip[sizeof(args->ip)];
	const struct rsoft_dev *other;
	struct rwire_addr addr;

	memcpy(ip, args->ip, sizeof(ip));
	/* The address of port 1. */
	ip[strcspn(ip, ";")] = '\0';
	if (!rwire_addr_parse(ip, &addr)) {
		RSOFT_LOG(ERR, "ip=%s: not an IPv4 or IPv6 address, and not host", args->ip);
		return -EINVAL;
	}
	rsoft_lock(&rsoft_domain->lock);
	other = rsoft_addr_wire_dev(addr.gid);
	rte_ticketlock_unlock(&rsoft_domain->lock);
	if (other != NULL) {
		RSOFT_LOG(ERR, "ip=%s: device %u of this process has this address", args->ip,
				other->dev_id);
		return -EEXIST;
	}
	return wire_open_inner(args, &addr, port);
}

/* Whether ip= is `host`, or starts with it. */
static bool
wire_is_host(const char *ip)
{
	static const char host[] = "host";
	const size_t len = sizeof(host) - 1;

	return strncmp(ip, host, len) == 0 && (ip[len] == '\0' || ip[len] == ';');
}

/*
 * Select the ethdev port of the next address: *rest has the numbers, or is NULL. False after a log
 * line.
 */
static bool
wire_next_eth(const struct rsoft_args *args, char **rest, bool is_last, struct rsoft_args *one)
{
	const char *number;

	if (*rest == NULL)
		return true;
	number = strsep(rest, ";");
	if ((*rest == NULL) == is_last) {
		snprintf(one->port, sizeof(one->port), "eth:%s", number);
		return true;
	}
	RSOFT_LOG(ERR, "port=%s: not an ethdev port for each address of ip=%s", args->port,
			args->ip);
	return false;
}

/* Open the port of one of several addresses; `one` has its arguments. Return its error, logged. */
static int
wire_open_part(const struct rsoft_args *args, struct rwire *wire, const struct rsoft_args *one,
		struct rwire_port **port)
{
	const bool is_host = wire_is_host(args->ip);

	if (is_host != (strcmp(one->ip, "host") == 0)) {
		RSOFT_LOG(ERR, "ip=%s: an address, and host: a device has one of the two",
				args->ip);
		return -EINVAL;
	}
	return is_host ? wire_open_host(one, wire, port) : wire_open_addr(one, port);
}

/* Open a port for each address of ip=; *nb is the number of open ports, also after an error. */
static int
wire_open_parts(const struct rsoft_args *args, struct rwire *wire, struct rwire_port *parts[],
		uint32_t *nb)
{
	static const char eth[] = "eth:";
	const bool is_eth = strncmp(args->port, eth, sizeof(eth) - 1) == 0;
	struct rsoft_args one = *args;
	char ips[sizeof(args->ip)], numbers[sizeof(args->port)];
	char *ip, *rest = ips, *eths = is_eth ? numbers + sizeof(eth) - 1 : NULL;
	int rc;

	memcpy(ips, args->ip, sizeof(ips));
	memcpy(numbers, args->port, sizeof(numbers));
	for (*nb = 0; (ip = strsep(&rest, ";")) != NULL; ++*nb) {
		if (*nb == RSOFT_MAX_PORTS) {
			RSOFT_LOG(ERR, "ip=: '%s': more than %u ports", ip, RSOFT_MAX_PORTS);
			return -EINVAL;
		}
		if (!wire_next_eth(args, &eths, rest == NULL, &one))
			return -EINVAL;
		snprintf(one.ip, sizeof(one.ip), "%s", ip);
		rc = wire_open_part(args, wire, &one, &parts[*nb]);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Open a device with several ports that each have a link: shared memory, or an ethdev port. */
static int
wire_open_links(const struct rsoft_args *args, struct rwire *wire)
{
	struct rwire_port *parts[RSOFT_MAX_PORTS];
	uint32_t i, nb;
	int rc = wire_open_parts(args, wire, parts, &nb);

	if (rc == 0)
		rc = rwire_port_links_open(parts, nb, &wire->port);
	for (i = 0; i < nb && rc != 0; i++)
		parts[i]->ops->close(parts[i]);
	return rc;
}

/* Open the port that wraps no other, except those of wire_open_links(). */
static int
wire_open_innermost(const struct rsoft_args *args, struct rwire *wire)
{
	const bool is_udp = args->port[0] == '\0' || strcmp(args->port, "udp") == 0;
	const bool is_host = wire_is_host(args->ip);

	if (strchr(args->ip, ';') != NULL && (is_host || !is_udp))
		return wire_open_links(args, wire);
	return is_host ? wire_open_host(args, wire, &wire->port)
		       : wire_open_addr(args, &wire->port);
}

static void
wire_shut_by_rule(struct rwire *wire, uint32_t port_num, bool is_down)
{
	rwire_netif_shut(wire, port_num, RWIRE_NETIF_BY_RULE, is_down);
}

static int
wire_open_fault(struct rwire *wire, const char *faults)
{
	struct rsoft_chaos *chaos = wire->dev->chaos;
	const struct rwire_fault_conf conf = {.faults = faults,
			.chaos = chaos != NULL && rsoft_chaos_has_port(chaos) ? chaos : NULL,
			.fail = rwire_fail_dev,
			.shut = wire_shut_by_rule,
			.change_gid = rwire_gid_change,
			.wire = wire};

	return rwire_port_fault_open(&conf, &wire->port);
}

/* Open the port, and the ports that wrap it. */
static int
wire_open_port(struct rwire *wire, const struct rsoft_args *args, struct rsoft_address *address)
{
	int rc;

	if ((args->mtu & (args->mtu - 1)) != 0) {
		RSOFT_LOG(ERR, "mtu=%" PRIu64 ": not a path MTU (256, 512, 1024, 2048 or 4096)",
				args->mtu);
		return -EINVAL;
	}
	rc = rwire_allow_parse(&wire->allow, args->allow);
	if (rc != 0)
		return rc;
	rc = wire_open_innermost(args, wire);
	if (rc != 0)
		return rc;
	memcpy(address->gid, wire->port->addr.gid, sizeof(address->gid));
	address->lid = wire_is_host(args->ip) ? rwire_addr_lid(&wire->port->addr) : 0;
	wire->inner = wire->port;
	rc = rwire_ports_open(wire, args->ip);
	/* Wrapped by the fault port, so the file has only packets that were sent. */
	if (rc == 0 && args->pcap[0] != '\0')
		rc = rwire_port_pcap_open(args->pcap, &wire->port);
	if (rc == 0 && wire_has_fault(args))
		rc = wire_open_fault(wire, args->fault);
	if (rc != 0) {
		wire->port->ops->close(wire->port);
		return rc;
	}
	address->mtu = args->mtu != 0 ? (uint32_t)args->mtu : wire->port->max_mtu;
	if (address->mtu <= wire->port->max_mtu)
		return 0;
	RSOFT_LOG(ERR, "mtu=%u: above the MTU of the interface of ip=%s (%u)", address->mtu,
			args->ip, wire->port->max_mtu);
	wire->port->ops->close(wire->port);
	return -EINVAL;
}

int
rwire_open(struct rsoft_dev *dev, struct rmem_dev *base, bool (*progress)(struct rsoft_dev *))
{
	struct rwire *wire;
	uint32_t i;
	int rc;

	wire = calloc(1, sizeof(*wire));
	if (wire == NULL)
		return -ENOMEM;
	wire->dev = dev;
	wire->base_dev = base;
	wire->progress = progress;
	wire->control_fd = -1;
	rte_ticketlock_init(&wire->tx_lock);
	rte_ticketlock_init(&wire->rx_lock);
	rte_ticketlock_init(&wire->owners.lock);
	rwire_netif_init(wire);
	wire->idle_cycles = rte_get_tsc_hz() / 1000 * WIRE_IDLE_MS;
	wire->rare_cycles = rte_get_tsc_hz() / US_PER_S * WIRE_RARE_US;
	wire->quiet_cycles = rte_get_tsc_hz() / US_PER_S * WIRE_QUIET_US;
	wire->late_cycles = rte_get_tsc_hz() / US_PER_S * WIRE_LATE_US;
	TAILQ_INIT(&wire->reply_list);
	TAILQ_INIT(&wire->late_list);
	rc = wire_open_port(wire, &dev->args, &dev->address);
	if (rc != 0)
		goto free;
	for (i = 1; i <= dev->tables.nb_ports; i++)
		rwire_netif_open(wire, i);
	rc = rwire_gids_open(wire, &dev->args);
	if (rc == 0)
		rc = rwire_control_open(wire);
	dev->wire = wire;
	__atomic_store_n(&dev->nb_pending, rwire_nb_pending(dev), __ATOMIC_RELAXED);
	if (rc == 0 && dev->args.progress == RSOFT_PROGRESS_THREAD)
		rc = wire_start(wire);
	if (rc != 0)
		goto close;
	return 0;
close:
	dev->wire = NULL;
	__atomic_store_n(&dev->nb_pending, 0, __ATOMIC_RELAXED);
	rwire_control_close(wire);
	rwire_netif_close(wire);
	wire->port->ops->close(wire->port);
free:
	free(wire);
	return rc;
}

void
rwire_close(struct rsoft_dev *dev)
{
	struct rwire *wire = dev->wire;

	if (wire == NULL)
		return;
	if (dev->args.progress == RSOFT_PROGRESS_THREAD) {
		wire_list(wire, false);
		__atomic_store_n(&wire->is_stopping, true, __ATOMIC_RELEASE);
		rwire_wake(wire);
		pthread_join(wire->thread.id, NULL);
		close(wire->wake_fd);
	}
	rsoft_grant_close_all(dev);
	rwire_control_close(wire);
	rwire_netif_close(wire);
	rwire_xrc_qp_end(wire);
	rwire_xrc_close(wire);
	wire->port->ops->close(wire->port);
	rwire_owners_end(&wire->owners);
	dev->wire = NULL;
	__atomic_store_n(&dev->nb_pending, 0, __ATOMIC_RELAXED);
	free(wire);
}
