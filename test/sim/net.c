/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Hosts, links, a switch, and a binary heap of events; see net.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../wire/xorshift.h"
#include "net.h"

#define FIRST_EVENTS 1024

/* Times from which on the link of a host is free. */
struct net_link {
	uint64_t to_switch;
	uint64_t to_host;
};

struct net_event {
	uint64_t at;
	uint64_t number;
	struct net_packet *packet; /* NULL: a timer */
	uint32_t id;
};

static void
net_fail(const char *what)
{
	fprintf(stderr, "sim: no memory for %s\n", what);
	abort();
}

static bool
event_is_before(const struct net_event *a, const struct net_event *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

static void
event_push(struct net *net, struct net_event event)
{
	size_t i = net->nb_events;

	if (i == net->max_events) {
		struct net_event *heap;

		net->max_events = i == 0 ? FIRST_EVENTS : 2 * i;
		heap = realloc(net->heap, net->max_events * sizeof(*heap));
		if (heap == NULL)
			net_fail("events");
		net->heap = heap;
	}
	event.number = net->nb_pushed++;
	net->nb_events++;
	for (; i != 0 && event_is_before(&event, &net->heap[(i - 1) / 2]); i = (i - 1) / 2)
		net->heap[i] = net->heap[(i - 1) / 2];
	net->heap[i] = event;
}

static struct net_event
event_pop(struct net *net)
{
	struct net_event first = net->heap[0], last = net->heap[--net->nb_events];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < net->nb_events) {
		if (child + 1 < net->nb_events &&
				event_is_before(&net->heap[child + 1], &net->heap[child]))
			child++;
		if (!event_is_before(&net->heap[child], &last))
			break;
		net->heap[i] = net->heap[child];
		i = child;
	}
	net->heap[i] = last;
	return first;
}

bool
net_open(struct net *net, const struct net_conf *conf)
{
	memset(net, 0, sizeof(*net));
	net->conf = *conf;
	net->state = xorshift_state(conf->seed);
	net->links = calloc(conf->nb_hosts, sizeof(*net->links));
	return net->links != NULL;
}

void
net_close(struct net *net)
{
	struct net_packet *packet;

	while ((packet = net->free) != NULL) {
		net->free = packet->next;
		free(packet);
	}
	free(net->heap);
	free(net->links);
}

struct net_packet *
net_get(struct net *net)
{
	struct net_packet *packet = net->free;

	if (packet != NULL) {
		net->free = packet->next;
	} else {
		packet = malloc(sizeof(*packet) + net->conf.body_size);
		if (packet == NULL)
			net_fail("packets");
		net->nb_allocated++;
	}
	memset(packet, 0, sizeof(*packet));
	net->nb_packets++;
	return packet;
}

void
net_put(struct net *net, struct net_packet *packet)
{
	packet->next = net->free;
	net->free = packet;
	net->nb_packets--;
}

uint32_t
net_random(struct net *net, uint32_t below)
{
	return (uint32_t)((uint64_t)xorshift32(&net->state) * below >> 32);
}

static bool
net_hits(struct net *net, double share)
{
	return share > 0 && xorshift32(&net->state) < share * (double)UINT32_MAX;
}

static bool
net_is_down(const struct net *net, uint32_t host, uint64_t at)
{
	return host == net->conf.flap_host && at >= net->conf.down_ns && at < net->conf.up_ns;
}

static void
net_drop(struct net *net, struct net_packet *packet, uint64_t *counter)
{
	++*counter;
	net_put(net, packet);
}

/* Time that a link needs for so many bytes, rounded up. */
static uint64_t
net_ns(const struct net *net, uint64_t bytes)
{
	return (bytes * 8000 + net->conf.mbps - 1) / net->conf.mbps;
}

void
net_send(struct net *net, struct net_packet *packet)
{
	uint64_t *link = &net->links[packet->src].to_switch;
	uint64_t start = *link > net->now ? *link : net->now;

	net->counts.sent++;
	*link = start + net_ns(net, packet->len);
	if (net_is_down(net, packet->src, *link)) {
		net_drop(net, packet, &net->counts.down);
		return;
	}
	packet->is_at_host = false;
	event_push(net, (struct net_event){.at = *link + net->conf.latency_ns, .packet = packet});
}

void
net_timer(struct net *net, uint64_t at, uint32_t id)
{
	event_push(net, (struct net_event){.at = at, .id = id});
}

static void
net_switch(struct net *net, struct net_packet *packet)
{
	uint64_t *link = &net->links[packet->dst].to_host;
	uint64_t start = *link > net->now ? *link : net->now, delay = net->conf.latency_ns;

	if (net_hits(net, net->conf.loss) ||
			(net->conf.is_chosen != NULL && net->conf.is_chosen(packet))) {
		net_drop(net, packet, &net->counts.lost);
		return;
	}
	if (net_is_down(net, packet->dst, net->now)) {
		net_drop(net, packet, &net->counts.down);
		return;
	}
	if (start - net->now > net_ns(net, net->conf.queue_bytes)) {
		net_drop(net, packet, &net->counts.queue);
		return;
	}
	*link = start + net_ns(net, packet->len);
	if (net_hits(net, net->conf.reorder))
		delay += net_random(net, net->conf.reorder_ns);
	packet->is_at_host = true;
	event_push(net, (struct net_event){.at = *link + delay, .packet = packet});
}

static void
net_event(struct net *net, const struct net_event *event)
{
	struct net_packet *packet = event->packet;

	net->counts.events++;
	if (packet == NULL) {
		net->conf.timer(net->conf.user, event->id);
	} else if (!packet->is_at_host) {
		net_switch(net, packet);
	} else if (net_is_down(net, packet->dst, net->now)) {
		net_drop(net, packet, &net->counts.down);
	} else {
		net->counts.delivered++;
		net->conf.deliver(net->conf.user, packet);
	}
}

bool
net_run(struct net *net, uint64_t until)
{
	while (net->nb_events != 0 && net->heap[0].at < until) {
		struct net_event event = event_pop(net);

		net->now = event.at;
		net_event(net, &event);
	}
	if (net->nb_events == 0)
		return false;
	net->now = until;
	return true;
}
