/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Telemetry and dump of the CMs of this library: their connections, existing and ended, and their
 * counters, with the names of ibcm_report.h.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_common.h>

#include <rmem_telemetry.h>

#include "ibcm_report.h"
#include "rmem_cm_port_priv.h"

#define MAX_NAME (RMEM_NAME_SIZE + 16)

/* Which connections are visited, and the function called for each. */
struct walk {
	const char *dev;     /* the device that is visited */
	const char *wanted;  /* name of a connection or a device; NULL: all */
	ibcm_visit_t action; /* its arg is the walk */
	void *arg;
	uint32_t nb; /* found */
};

static void
conn_name(const struct walk *walk, const struct ibcm_info *info, char name[MAX_NAME])
{
	snprintf(name, MAX_NAME, "%s,0x%" PRIx32, walk->dev, info->local_id);
}

static void
visit_conn(void *arg, const struct ibcm_info *info)
{
	struct walk *walk = arg;
	char name[MAX_NAME];

	conn_name(walk, info, name);
	if (walk->wanted != NULL && strcmp(name, walk->wanted) != 0)
		return;
	walk->nb++;
	walk->action(walk, info);
}

/* Visit all connections of a device: the ended ones, oldest first, then the existing ones. */
static void
visit_dev(void *arg, const struct rmem_cm_port_view *view)
{
	struct walk *walk = arg;

	walk->dev = view->dev;
	ibcm_log_visit(view->log, visit_conn, walk);
	if (view->cm != NULL)
		ibcm_visit(view->cm, visit_conn, walk);
}

static void
sink_text(void *arg, const char *name, const char *text)
{
	rmem_report_text(arg, name, text);
}

static void
sink_number(void *arg, const char *name, uint64_t number)
{
	rmem_report_uint(arg, name, number);
}

static void
report_conn(const struct walk *walk, const struct ibcm_info *info, struct rmem_report *out)
{
	const struct ibcm_sink sink = {out, sink_text, sink_number};

	rmem_report_text(out, "device", walk->dev);
	ibcm_report_info(&sink, info);
}

static void
add_name(void *arg, const struct ibcm_info *info)
{
	const struct walk *walk = arg;
	char name[MAX_NAME];

	conn_name(walk, info, name);
	rmem_tel_names_add(walk->arg, name);
}

static int
list_conns(struct rte_tel_data *d)
{
	struct rmem_tel_names names;
	struct walk walk = {.action = add_name, .arg = &names};

	if (rmem_tel_names_begin(&names) != 0)
		return -ENOMEM;
	rmem_cm_ports_visit(visit_dev, &walk);
	return rmem_tel_names_end(&names, "conns", d);
}

/* Report the first connection of that name: a comm ID may be used again. */
static void
fill_conn(void *arg, const struct ibcm_info *info)
{
	const struct walk *walk = arg;
	struct rmem_report out = {.d = walk->arg};

	if (walk->nb != 1)
		return;
	rte_tel_data_start_dict(out.d);
	report_conn(walk, info, &out);
}

static int
get_conn(const char *name, struct rte_tel_data *d)
{
	struct walk walk = {.wanted = name, .action = fill_conn, .arg = d};

	rmem_cm_ports_visit(visit_dev, &walk);
	return walk.nb != 0 ? 0 : -ENOENT;
}

static void
report_port(struct rmem_report *out, const struct rmem_cm_port_view *view)
{
	const struct rmem_gsi_stats *gsi = view->gsi;
	struct rmem_report group;
	const struct ibcm_sink sink = {&group, sink_text, sink_number};

	rmem_report_uint(out, "conns", view->cm != NULL ? ibcm_nb_ids(view->cm) : 0);
	rmem_report_uint(out, "ended", view->log->nb_ended);
	rmem_report_begin(out, &group, "stats");
	ibcm_report_stats(&sink, &view->log->stats);
	if (gsi != NULL) {
		rmem_report_uint(&group, "qp1_rx", gsi->rx);
		rmem_report_uint(&group, "qp1_tx", gsi->tx);
		rmem_report_uint(&group, "qp1_foreign", gsi->foreign);
		rmem_report_uint(&group, "qp1_lost", gsi->lost);
	}
	rmem_report_end(out, &group, "stats");
}

static void
add_dev(void *arg, const struct rmem_cm_port_view *view)
{
	rmem_tel_names_add(arg, view->dev);
}

static int
list_ports(struct rte_tel_data *d)
{
	struct rmem_tel_names names;

	if (rmem_tel_names_begin(&names) != 0)
		return -ENOMEM;
	rmem_cm_ports_visit(add_dev, &names);
	return rmem_tel_names_end(&names, "ports", d);
}

static void
fill_port(void *arg, const struct rmem_cm_port_view *view)
{
	struct walk *walk = arg;
	struct rmem_report out = {.d = walk->arg};

	if (strcmp(view->dev, walk->wanted) != 0)
		return;
	walk->nb++;
	rte_tel_data_start_dict(out.d);
	rmem_report_text(&out, "device", view->dev);
	report_port(&out, view);
}

static int
get_port(const char *name, struct rte_tel_data *d)
{
	struct walk walk = {.wanted = name, .arg = d};

	rmem_cm_ports_visit(fill_port, &walk);
	return walk.nb != 0 ? 0 : -ENOENT;
}

static void
dump_conn(void *arg, const struct ibcm_info *info)
{
	const struct walk *walk = arg;
	struct rmem_report top = {.f = walk->arg}, out;
	char title[MAX_NAME + 16], name[MAX_NAME];

	conn_name(walk, info, name);
	snprintf(title, sizeof(title), "connection %s", name);
	rmem_report_begin(&top, &out, title);
	report_conn(walk, info, &out);
	rmem_report_end(&top, &out, title);
}

static void
dump_port(void *arg, const struct rmem_cm_port_view *view)
{
	struct walk walk = {.action = dump_conn, .arg = arg};
	struct rmem_report top = {.f = arg}, out;
	char title[MAX_NAME + 8];

	snprintf(title, sizeof(title), "CM of %s", view->dev);
	rmem_report_begin(&top, &out, title);
	report_port(&out, view);
	rmem_report_end(&top, &out, title);
	visit_dev(&walk, view);
}

int
rmem_cm_dump(FILE *f)
{
	RMEM_CALL(NULL);
	struct rmem_dump dump;
	int ret;

	if (f == NULL)
		return CM_FAIL(EINVAL, "file: NULL");
	ret = rmem_dump_begin(&dump);
	if (ret != 0)
		return ret;
	rmem_cm_ports_visit(dump_port, dump.f);
	return rmem_dump_end(&dump, f);
}

void
rmem_cm_telemetry_init(void)
{
	static const struct rmem_tel_cmd cmds[] = {
			{.cmd = "/rmem/cm",
					.help = "Connections. Parameter: device,comm ID of one of them",
					.list = list_conns,
					.get = get_conn},
			{.cmd = "/rmem/cm_port",
					.help = "Connection managers. Parameter: device, for its counters",
					.list = list_ports,
					.get = get_port},
	};
	size_t i;

	for (i = 0; i < RTE_DIM(cmds); i++)
		(void)rmem_telemetry_add(&cmds[i]);
}
