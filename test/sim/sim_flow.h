/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Flows between the hosts of a modelled network, and their figures.
 *
 * A flow is a queue pair of one host that writes to, or reads from, the memory of another one, as
 * fast as its window permits. The transport of the flows is the engine of drivers/soft/wire
 * (sim_wire.c), or a model of selective repeat with the same window and timeout (sim_model.c).
 *
 * Hosts have a link, QPs and memory of their own, but all QPs belong to one device: locks, CQ and
 * counters are shared, and cost nothing in virtual time. A host processes a packet in no time.
 */

#ifndef SIM_FLOW_H
#define SIM_FLOW_H

#include "net.h"

#define SIM_FIRST_PSN 0xffff80 /* of flow 0 of the engine; wraps soon */
#define SIM_WINDOW    64       /* packets; of the model, and of the engine up to an MTU of 2048 */

enum sim_pattern {
	SIM_INCAST, /* all hosts send to host 0 */
	SIM_PAIRS,  /* host 2 i sends to host 2 i + 1 */
	SIM_RING,   /* each host sends to the next one; acknowledgements wait after its data */
};

struct sim_conf {
	enum sim_pattern pattern;
	uint32_t nb_hosts;
	bool is_model; /* selective repeat */
	bool is_read;
	uint32_t mtu;
	uint32_t msg_size;
	uint32_t depth;   /* messages in flight */
	uint64_t nb_msgs; /* of each flow; 0: no limit */
	uint8_t timeout;  /* 4.096 us * 2^timeout */
	uint8_t retry_cnt;
	uint64_t duration_ns; /* then no flow begins a message */
	struct net_conf net;
};

struct sim_flow {
	uint32_t src, dst; /* of the data */
	uint64_t acked;    /* packets */
	uint64_t sent;     /* data packets */
	uint64_t resent;   /* those of them that were sent before */
	uint64_t done_at;  /* last progress */
	uint64_t up_at;    /* first progress after the link was up again; 0: none */
	bool has_failed;
};

struct sim_result {
	struct net_counts counts;
	uint64_t ns;        /* at which the figures to jain were taken */
	uint64_t sent;      /* data packets */
	uint64_t resent;    /* those of them that were sent before */
	uint64_t acked;     /* packets */
	double goodput;     /* Gbit/s of payload, all flows */
	double share;       /* of what the links that limit the flows can carry */
	double jain;        /* index of fairness: 1 is equal, 1/n is one flow only */
	uint64_t timeouts;  /* in all */
	uint64_t rewinds;   /* in all */
	uint32_t nb_failed; /* flows that ended with RETRY_EXC_ERR */
	uint32_t nb_flows;
	uint64_t up_first_ns, up_last_ns; /* from link up to progress of a flow, and of all */
	uint32_t nb_not_up;               /* flows without progress since */
	uint64_t nb_checked;              /* messages whose bytes were compared */
	uint64_t nb_wrong;                /* and that differed */
	uint64_t nb_allocated;            /* largest number of packets at a time */
	uint64_t done_ns;                 /* last progress of a flow */
	uint64_t end_ns;                  /* when the last event was processed */
};

struct sim {
	struct sim_conf conf;
	struct net net;
	struct sim_flow *flows;
	uint32_t nb_flows;
	bool is_stopping;
	uint64_t timeouts, rewinds, nb_checked, nb_wrong;
	void *transport;
};

/* A transport; start() is called for each flow, at its start time. */
struct sim_transport {
	void (*open)(struct sim *sim);
	void (*start)(struct sim *sim, uint32_t flow);
	void (*deliver)(struct sim *sim, struct net_packet *packet);
	void (*timer)(struct sim *sim, uint32_t flow);
	void (*close)(struct sim *sim);
};

extern const struct sim_transport sim_wire, sim_model;

/* Defaults: 10 Gbit/s, 1 us for each link, 256 KiB for each output, 100 ms. */
struct sim_conf sim_conf(enum sim_pattern pattern, uint32_t nb_hosts);
/* Run until all flows have ended; a run that breaks an invariant ends the process. */
void sim_run(const struct sim_conf *conf, struct sim_result *result);
/* Count a data packet with a PSN of a flow; highest: the next PSN that was not sent. */
void sim_count_sent(struct sim *sim, uint32_t flow, uint32_t psn, uint32_t *highest);
/* So many packets more of a flow are acknowledged. */
void sim_count_acked(struct sim *sim, uint32_t flow, uint32_t nb);
/* Local ACK timeout, ns. */
uint64_t sim_timeout_ns(const struct sim *sim);

#endif /* SIM_FLOW_H */
