/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Names and contents of the files of the devices: the files that sysfs has for a device of the
 * kernel, filled by queries of the class. A search visits the files of a device only if its path is
 * below or above them, and reads the counters, which are sums over all QPs, only for their own
 * files.
 *
 * Invariant: a search has no state but its node, so threads need no lock.
 */

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "rcm_ops.h"
#include "ribv_view.h"
#include "verbs/ribv.h"

/* Device numbers of the kernel's verbs devices: minor numbers from 192 on for the first 32. */
#define VERBS_MAJOR 231
#define VERBS_MINOR 192

struct search {
	struct ribv_node *node;
	struct rmem_dev *dev;
	bool is_found;
};

/* Add a name to a directory, unless it is there. */
static void
add_name(struct ribv_node *node, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < node->size; i += strlen(node->text + i) + 1) {
		if (strlen(node->text + i) == len && memcmp(node->text + i, name, len) == 0)
			return;
	}
	if (node->size + len >= sizeof(node->text))
		return;
	memcpy(node->text + node->size, name, len);
	node->text[node->size + len] = '\0';
	node->size += (uint32_t)len + 1;
}

/* Visit a file; true if it is the file searched for. If it is below the path searched for, that
 * path is a directory, and gets its next component as a name. */
static bool
visit(struct search *search, uint32_t mode, const char *path)
{
	struct ribv_node *node = search->node;
	size_t len = strlen(node->path);

	if (strncmp(path, node->path, len) != 0 || (path[len] != '\0' && path[len] != '/'))
		return false;
	search->is_found = true;
	node->mode = path[len] == '\0' ? mode : S_IFDIR | 0555;
	if (path[len] == '/')
		add_name(node, path + len + 1, strcspn(path + len + 1, "/"));
	return path[len] == '\0';
}

/* Whether the path searched for may be below or above a directory. */
static bool
is_near(const struct search *search, const char *dir)
{
	const char *path = search->node->path;

	return strncmp(path, dir, RTE_MIN(strlen(path), strlen(dir))) == 0;
}

/* Visit a regular file with one line of text. */
static void
file(struct search *search, const char *dir, const char *name, const char *format, ...)
{
	struct ribv_node *node = search->node;
	char path[RIBV_PATH];
	va_list args;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!visit(search, S_IFREG | 0444, path))
		return;
	va_start(args, format);
	vsnprintf(node->text, sizeof(node->text) - 1, format, args);
	va_end(args);
	node->size = (uint32_t)strlen(node->text);
	node->text[node->size++] = '\n';
}

/* Visit a regular file whose name ends in a number. */
static void
numbered(struct search *search, const char *dir, const char *name, uint32_t i, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%u", name, i);
	file(search, dir, path, "%s", text);
}

static const char *
words(char text[40], const uint8_t bytes[], uint32_t n)
{
	size_t len = 0;
	uint32_t i;

	text[0] = '\0';
	for (i = 0; i < n; i += 2)
		len += (size_t)snprintf(text + len, 40 - len, "%s%02x%02x", i != 0 ? ":" : "",
				bytes[i], bytes[i + 1]);
	return text;
}

static void
gid_files(struct search *search, const char *dir, uint32_t port_num,
		const struct rmem_port_attr *port)
{
	struct rmem_gid_entry gid;
	char text[40], name[IF_NAMESIZE];
	uint16_t pkey;
	uint32_t i;

	for (i = 0; i < port->gid_tbl_len; i++) {
		if (rmem_dev_gid_query(search->dev, port_num, i, &gid) != 0) {
			memset(&gid, 0, sizeof(gid));
			numbered(search, dir, "gids", i, words(text, gid.gid, 16));
			continue;
		}
		numbered(search, dir, "gids", i, words(text, gid.gid, 16));
		numbered(search, dir, "gid_attrs/types", i,
				gid.type == RMEM_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
		if (gid.ifindex != 0 && if_indextoname(gid.ifindex, name) != NULL)
			numbered(search, dir, "gid_attrs/ndevs", i, name);
	}
	for (i = 0; i < port->pkey_tbl_len; i++) {
		if (rmem_dev_pkey_query(search->dev, port_num, i, &pkey) != 0)
			continue;
		snprintf(text, sizeof(text), "0x%04x", pkey);
		numbered(search, dir, "pkeys", i, text);
	}
}

/* Read the counters, or zeros if the search is not for one of their files; false on failure. */
static bool
counters(const struct search *search, struct rmem_dev_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	return strstr(search->node->path, "counters/") == NULL ||
			rmem_dev_stats_get(search->dev, stats) == 0;
}

/* Counters in the kernel's units: data in words of 4 bytes. */
static void
counter_files(struct search *search, const char *dir)
{
	struct rmem_dev_stats stats;

	if (!counters(search, &stats))
		return;
	file(search, dir, "counters/port_xmit_data", "%" PRIu64, stats.wire_tx_bytes / 4);
	file(search, dir, "counters/port_xmit_packets", "%" PRIu64, stats.wire_tx_packets);
	file(search, dir, "counters/port_xmit_discards", "%" PRIu64, stats.wire_tx_drops);
	file(search, dir, "counters/port_rcv_data", "%" PRIu64, stats.wire_rx_bytes / 4);
	file(search, dir, "counters/port_rcv_packets", "%" PRIu64, stats.wire_rx_packets);
	file(search, dir, "counters/port_rcv_errors", "%" PRIu64,
			stats.wire_malformed + stats.wire_icrc_errors);
}

/*
 * Counters that have the same meaning in drivers of the kernel, with their names: of rdma_rxe, then
 * of mlx5. A counter with a name in both appears twice.
 */
static void
hw_counter_files(struct search *search, const char *dir)
{
#define COUNTER(name, field)                                                                       \
	{                                                                                          \
		name, offsetof(struct rmem_dev_stats, field)                                       \
	}
	static const struct {
		const char *name;
		size_t offset;
	} rows[] = {
			COUNTER("sent_pkts", wire_tx_packets),
			COUNTER("rcvd_pkts", wire_rx_packets),
			COUNTER("duplicate_request", wire_duplicates),
			COUNTER("out_of_seq_request", wire_gaps),
			COUNTER("send_rnr_err", wire_rnr_naks_sent),
			COUNTER("completer_retry_err", wire_retransmits),
			COUNTER("local_ack_timeout_err", wire_timeouts),
			COUNTER("out_of_buffer", drop_no_recv),
			COUNTER("out_of_sequence", wire_gaps),
			COUNTER("req_cqe_error", errors),
			COUNTER("req_cqe_flush_error", flushed),
			COUNTER("req_remote_access_errors", rem_access_errors),
			COUNTER("resp_remote_access_errors", bad_rkeys),
			COUNTER("rx_icrc_encapsulated", wire_icrc_errors),
	};
#undef COUNTER
	struct rmem_dev_stats stats;
	char name[64];
	uint64_t value;
	uint32_t i;

	if (!counters(search, &stats))
		return;
	for (i = 0; i < RTE_DIM(rows); i++) {
		memcpy(&value, (const char *)&stats + rows[i].offset, sizeof(value));
		snprintf(name, sizeof(name), "hw_counters/%s", rows[i].name);
		file(search, dir, name, "%" PRIu64, value);
	}
}

/* Rate of the link, from lane speeds in units of 0.1 Gb/s, by the bits of the speed. */
static void
rate_file(struct search *search, const char *dir, const struct rmem_port_attr *port)
{
	static const struct {
		uint32_t bit, rate;
		const char *name;
	} speeds[] = {{1, 25, " SDR"}, {2, 50, " DDR"}, {4, 100, " QDR"}, {8, 100, " FDR10"},
			{16, 140, " FDR"}, {32, 250, " EDR"}, {64, 500, " HDR"},
			{128, 1000, " NDR"}};
	static const uint32_t lanes_of[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
	const uint32_t lanes =
			port->active_width < RTE_DIM(lanes_of) ? lanes_of[port->active_width] : 0;
	uint32_t i;

	for (i = 0; i < RTE_DIM(speeds); i++) {
		if (port->active_speed == speeds[i].bit)
			file(search, dir, "rate", "%u%s Gb/sec (%uX%s)",
					speeds[i].rate * lanes / 10,
					speeds[i].rate * lanes % 10 != 0 ? ".5" : "", lanes,
					speeds[i].name);
	}
}

static void
port_files(struct search *search, const char *dir, uint32_t port_num)
{
	static const char *const states[] = {
			"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
	static const char *const phys_states[] = {"", "Sleep", "Polling", "Disabled",
			"PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "Phy Test"};
	struct rmem_port_attr port;

	if (rmem_dev_port_query(search->dev, port_num, &port) != 0)
		return;
	file(search, dir, "state", "%u: %s", port.state,
			port.state < RTE_DIM(states) ? states[port.state] : "");
	file(search, dir, "phys_state", "%u: %s", port.phys_state,
			port.phys_state < RTE_DIM(phys_states) ? phys_states[port.phys_state] : "");
	file(search, dir, "lid", "0x%x", port.lid);
	file(search, dir, "lid_mask_count", "%u", port.lmc);
	file(search, dir, "sm_lid", "0x%x", port.sm_lid);
	file(search, dir, "sm_sl", "%u", port.sm_sl);
	file(search, dir, "cap_mask", "0x%08x", port.cap_flags);
	file(search, dir, "link_layer", "%s",
			port.link_layer == RMEM_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
	rate_file(search, dir, &port);
	gid_files(search, dir, port_num, &port);
	counter_files(search, dir);
	hw_counter_files(search, dir);
}

/* The network interfaces of the host, to whose addresses rdma_cm connects. */
static void
net_files(struct search *search, const struct ibv_device *device)
{
	struct if_nameindex *all = if_nameindex(), *at;
	char path[RIBV_PATH];

	for (at = all; at != NULL && at->if_index != 0; at++) {
		snprintf(path, sizeof(path), "%s/device/net/%s", device->ibdev_path, at->if_name);
		visit(search, S_IFDIR | 0555, path);
	}
	if (all != NULL)
		if_freenameindex(all);
}

static void
device_files(struct search *search, const struct ibv_device *device)
{
	struct rmem_dev_attr attr;
	char dir[RIBV_PATH], text[40];
	uint32_t i;

	if (!is_near(search, device->ibdev_path) || rmem_dev_attr_get(search->dev, &attr) != 0)
		return;
	file(search, device->ibdev_path, "node_type", "1: CA");
	file(search, device->ibdev_path, "node_desc", "%s", device->name);
	file(search, device->ibdev_path, "node_guid", "%s", words(text, attr.node_guid, 8));
	file(search, device->ibdev_path, "sys_image_guid", "%s",
			words(text, attr.sys_image_guid, 8));
	file(search, device->ibdev_path, "fw_ver", "%s", attr.fw_ver);
	file(search, device->ibdev_path, "hw_rev", "0x%x", attr.hw_ver);
	for (i = 1; i <= attr.nb_ports; i++) {
		snprintf(dir, sizeof(dir), "%s/ports/%u", device->ibdev_path, i);
		port_files(search, dir, i);
	}
	net_files(search, device);
}

/* The command file of a verbs device can't be opened: only the kernel executes its commands. */
static int
open_verbs(int flags)
{
	RTE_SET_USED(flags);
	errno = ENXIO;
	return -1;
}

static void
verbs_files(struct search *search, const struct ibv_device *device)
{
	const uint32_t minor_number = VERBS_MINOR + RIBV_VERBS_NUMBER + ribv_dev_number(device);
	char path[RIBV_PATH];

	file(search, RIBV_SYSFS_VERBS, "abi_version", "6");
	file(search, device->dev_path, "ibdev", "%s", device->name);
	file(search, device->dev_path, "abi_version", "1");
	file(search, device->dev_path, "dev", "%u:%u", VERBS_MAJOR, minor_number);
	snprintf(path, sizeof(path), RIBV_DEV "/%s", device->dev_name);
	if (visit(search, S_IFCHR | 0666, path)) {
		search->node->rdev = (uint32_t)makedev(VERBS_MAJOR, minor_number);
		search->node->open = open_verbs;
	}
}

/* The command file of rdma_cm, whose commands the core executes. */
static void
cm_file(struct search *search)
{
	if (visit(search, S_IFCHR | 0666, RCM_DEVICE)) {
		search->node->rdev = (uint32_t)makedev(RCM_MAJOR, RCM_MINOR);
		search->node->open = rcm_core_ops.open;
	}
}

bool
ribv_view_find(struct ribv_node *node, bool is_starting)
{
	const struct ibv_device *device;
	struct search search = {.node = node};
	uint32_t i;

	if (!is_starting && ribv_devs[0] == NULL)
		return false;
	node->size = 0;
	node->rdev = 0;
	node->open = NULL;
	node->ino = ribv_ino(RIBV_INO, node->path);
	for (i = 0; (device = ribv_device(i)) != NULL; i++) {
		search.dev = ribv_devs[i];
		device_files(&search, device);
		verbs_files(&search, device);
	}
	if (i != 0)
		cm_file(&search);
	return search.is_found;
}
