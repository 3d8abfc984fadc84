/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Telemetry of PDs, MRs, windows, CQs, SRQs, device memory and QPs: lists of the objects, and the
 * properties of one; and the command for trace points.
 */

#include <errno.h>
#include <string.h>

#include <rte_trace.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"
#include "rmem_report_priv.h"

/* A command, for the objects of a type. */
static const struct kind {
	const char *cmd;
	const char *list; /* name of the list */
	const char *help;
	uint32_t type;
} kinds[] = {
		{"/rmem/pd", "pds", "PDs. Parameter: a device; device,number for one of them",
				RMEM_OBJ_PD},
		{"/rmem/mr", "mrs", "MRs. Parameter: a device; device,rkey for one of them",
				RMEM_OBJ_MR},
		{"/rmem/mw", "mws", "Windows. Parameter: a device; device,rkey for one of them",
				RMEM_OBJ_MW},
		{"/rmem/cq", "cqs", "CQs. Parameter: a device; device,number for one of them",
				RMEM_OBJ_CQ},
		{"/rmem/srq", "srqs", "SRQs. Parameter: a device; device,number for one of them",
				RMEM_OBJ_SRQ},
		{"/rmem/dm", "dms",
				"Device memory. Parameter: a device; device,number for one of them",
				RMEM_OBJ_DM},
		{"/rmem/qp", "qps", "QPs. Parameter: a device; device,QP number for one of them",
				RMEM_OBJ_QP},
};

/* A search, and its reply. */
struct search {
	const char *wanted; /* name of a device or object; NULL: all */
	struct rmem_report out;
	struct rmem_tel_names names;
	uint64_t oldest_ms;
	char oldest[RMEM_NAME_SIZE + 24];
};

/* The number of a QP; with a serial number for each of the handles that were opened. */
static void
qp_id(const struct rmem_qp *qp, const char *dev, char *id, size_t size)
{
	if (((const struct rmem_qp_drv *)qp)->is_opened == 0)
		snprintf(id, size, "%s,%u", dev, qp->qp_num);
	else
		snprintf(id, size, "%s,%u,%u", dev, qp->qp_num, rmem_obj_head(&qp->obj)->number);
}

/* Write an ID: the device, and a QP number, the rkey of an MR or window, or the serial number. */
static void
obj_id(const struct rmem_obj *obj, char *id, size_t size)
{
	const char *dev = rmem_obj_dev(obj)->name;

	switch (obj->type) {
	case RMEM_OBJ_QP:
		qp_id((const struct rmem_qp *)obj, dev, id, size);
		break;
	case RMEM_OBJ_MR:
		snprintf(id, size, "%s,0x%x", dev, ((const struct rmem_mr *)obj)->rkey);
		break;
	case RMEM_OBJ_MW:
		snprintf(id, size, "%s,0x%x", dev, ((const struct rmem_mw *)obj)->rkey);
		break;
	default:
		snprintf(id, size, "%s,%u", dev, rmem_obj_head(obj)->number);
		break;
	}
}

static int
list_obj(struct rmem_obj *obj, void *arg)
{
	char id[RMEM_NAME_SIZE + 24];
	struct search *search = arg;
	uint64_t age_ms;

	if (search->wanted != NULL && strcmp(rmem_obj_dev(obj)->name, search->wanted) != 0)
		return 0;
	obj_id(obj, id, sizeof(id));
	rmem_tel_names_add(&search->names, id);
	age_ms = rmem_obj_age_ms(obj);
	if (search->names.nb == 1 || age_ms >= search->oldest_ms) {
		search->oldest_ms = age_ms;
		memcpy(search->oldest, id, sizeof(id));
	}
	return 0;
}

/* Find an object by its ID, or by the device and its name. */
static int
get_obj(struct rmem_obj *obj, void *arg)
{
	char id[2 * RMEM_NAME_SIZE + 24];
	struct search *search = arg;

	obj_id(obj, id, sizeof(id));
	if (strcmp(id, search->wanted) != 0) {
		if (rmem_obj_head(obj)->name[0] == '\0')
			return 0;
		snprintf(id, sizeof(id), "%s,%s", rmem_obj_dev(obj)->name,
				rmem_obj_head(obj)->name);
		if (strcmp(id, search->wanted) != 0)
			return 0;
	}
	rte_tel_data_start_dict(search->out.d);
	rmem_report_obj(&search->out, obj);
	return 1;
}

static int
list_objs(const struct kind *kind, const char *dev_name, struct rte_tel_data *d)
{
	struct search search = {.wanted = dev_name};
	int ret;

	if (rmem_tel_names_begin(&search.names) != 0)
		return -ENOMEM;
	rmem_obj_visit(kind->type, list_obj, &search);
	ret = rmem_tel_names_end(&search.names, kind->list, d);
	if (ret == 0 && search.names.nb != 0) {
		rte_tel_data_add_dict_string(d, "oldest", search.oldest);
		rmem_tel_uint(d, "oldest_age_ms", search.oldest_ms);
	}
	return ret;
}

static int
handle(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct search search = {.wanted = params, .out = {.d = d}};
	const struct kind *kind = kinds;

	while (strcmp(kind->cmd, cmd) != 0)
		kind++;
	if (params == NULL || *params == '\0')
		return list_objs(kind, NULL, d);
	if (strchr(params, ',') == NULL)
		return list_objs(kind, params, d);
	return rmem_obj_visit(kind->type, get_obj, &search) == 0 ? -ENOENT : 0;
}

/* Enable the trace points of "pattern", disable them ("-pattern"), or write the trace ("save"). */
static int
handle_trace(const char *cmd, const char *params, struct rte_tel_data *d)
{
	bool is_on = params != NULL && params[0] != '-';
	int ret;

	RTE_SET_USED(cmd);
	rte_tel_data_start_dict(d);
	rmem_tel_uint(d, "enabled", rte_trace_is_enabled());
	if (params == NULL || params[0] == '\0')
		return 0;
	if (strcmp(params, "save") == 0) {
		rte_trace_save();
		return 0;
	}
	ret = rte_trace_pattern(params + !is_on, is_on);
	if (ret < 0)
		return ret;
	rmem_tel_uint(d, "points", (uint64_t)ret);
	return 0;
}

void
rmem_telemetry_obj_init(void)
{
	size_t i;

	for (i = 0; i < RTE_DIM(kinds); i++)
		rte_telemetry_register_cmd(kinds[i].cmd, handle, kinds[i].help);
	rte_telemetry_register_cmd("/rmem/trace", handle_trace,
			"Trace points. Parameter: a pattern to enable, -pattern to disable, or save");
}
