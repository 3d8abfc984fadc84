/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Names of reported values, as in telemetry (doc/telemetry.md). */

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ibcm_report.h"

/* Port spaces of rdma_cm; the service ID is the sum of one of these and a port. */
static const struct {
	uint64_t id;
	const char *name;
} spaces[] = {
		{0x0002, "IPOIB"},
		{0x0106, "TCP"},
		{0x0111, "UDP"},
		{0x013f, "IB"},
};

static void
report_gid(const struct ibcm_sink *sink, const char *name, const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	char text[INET6_ADDRSTRLEN] = "";

	if (memcmp(gid, mapped, sizeof(mapped)) == 0)
		(void)inet_ntop(AF_INET, gid + 12, text, sizeof(text));
	else
		(void)inet_ntop(AF_INET6, gid, text, sizeof(text));
	sink->text(sink->arg, name, text);
}

static void
report_hex(const struct ibcm_sink *sink, const char *name, uint64_t bits)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, bits);
	sink->text(sink->arg, name, text);
}

static void
report_service(const struct ibcm_sink *sink, uint64_t service_id)
{
	size_t i;

	report_hex(sink, "service_id", service_id);
	for (i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
		if (service_id >> 16 != spaces[i].id)
			continue;
		sink->text(sink->arg, "port_space", spaces[i].name);
		sink->number(sink->arg, "port", service_id & 0xffff);
	}
}

void
ibcm_report_info(const struct ibcm_sink *sink, const struct ibcm_info *info)
{
	sink->text(sink->arg, "state", ibcm_state_name(info->state));
	sink->text(sink->arg, "side", info->is_passive ? "passive" : "active");
	report_hex(sink, "local_id", info->local_id);
	report_hex(sink, "remote_id", info->remote_id);
	report_gid(sink, "local", info->local_gid);
	report_gid(sink, "peer", info->remote_gid);
	report_service(sink, info->service_id);
	sink->number(sink->arg, "qp_num", info->qpn);
	sink->number(sink->arg, "remote_qp_num", info->peer_qpn);
	sink->number(sink->arg, "retries", info->retries);
	sink->text(sink->arg, "end", ibcm_end_name(info->end));
	sink->number(sink->arg, "reason", info->reason);
}

static uint64_t
sum(const uint64_t *counters)
{
	uint64_t all = 0;
	size_t i;

	for (i = 0; i < IBCM_NB_TYPES; i++)
		all += counters[i];
	return all;
}

#define BIT(type) (UINT32_C(1) << (IBCM_##type - IBCM_REQ))
#define ALL       (UINT32_C(0x1ff))
/* Messages that are repeated, and messages that are recognised as duplicates. */
#define REPEATED  (BIT(REQ) | BIT(REP) | BIT(DREQ) | BIT(SIDR_REQ))
#define DUPLICATE (REPEATED | BIT(MRA) | BIT(REJ) | BIT(RTU))

/* Report the counters of the types in a mask, as "rx_req" for the prefix "rx". */
static void
report_types(const struct ibcm_sink *sink, const char *prefix, const uint64_t *counters,
		uint32_t types)
{
	char name[32];
	uint32_t i, at;

	for (i = 0; i < IBCM_NB_TYPES; i++) {
		if ((types >> i & 1) == 0)
			continue;
		snprintf(name, sizeof(name), "%s_%s", prefix, ibcm_type_name(IBCM_REQ + i));
		for (at = 0; name[at] != '\0'; at++)
			name[at] = (char)tolower(name[at]);
		sink->number(sink->arg, name, counters[i]);
	}
}

static void
report_reasons(const struct ibcm_sink *sink, const char *prefix, const uint64_t *counters)
{
	char name[32];
	uint32_t i;

	for (i = 0; i < IBCM_NB_REASONS; i++) {
		if (counters[i] == 0)
			continue;
		snprintf(name, sizeof(name), "%s_reason_%" PRIu32, prefix, i);
		sink->number(sink->arg, name, counters[i]);
	}
}

void
ibcm_report_stats(const struct ibcm_sink *sink, const struct ibcm_stats *stats)
{
	sink->number(sink->arg, "retries", sum(stats->retries));
	sink->number(sink->arg, "timeouts", sum(stats->timeouts));
	sink->number(sink->arg, "duplicates", sum(stats->duplicates));
	sink->number(sink->arg, "refused", stats->refused);
	sink->number(sink->arg, "malformed", stats->malformed);
	sink->number(sink->arg, "unknown_id", stats->unknown_id);
	sink->number(sink->arg, "wrong_state", stats->wrong_state);
	report_types(sink, "rx", stats->rx, ALL);
	report_types(sink, "tx", stats->tx, ALL);
	report_types(sink, "retries", stats->retries, REPEATED);
	report_types(sink, "timeouts", stats->timeouts, REPEATED);
	report_types(sink, "duplicates", stats->duplicates, DUPLICATE);
	report_reasons(sink, "rx_rej", stats->rej_rx);
	report_reasons(sink, "tx_rej", stats->rej_tx);
}
