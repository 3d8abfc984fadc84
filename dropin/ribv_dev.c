/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Devices and contexts. The device of rmem follows the real ones; all contexts
 * share it. */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ribv.h"

struct rmem_dev *ribv_dev;

static struct ibv_device device = {
		.node_type = IBV_NODE_CA,
		.transport_type = IBV_TRANSPORT_IB,
};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread bool is_creating; /* the driver of the device may list the real ones */

static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list *lists;

/* A list of devices given to the program, with the real one that it begins
 * with. */
struct list {
	struct list *next;
	struct ibv_device **real;
	struct ibv_device *devices[];
};

/* Create the device that RMEM_IBV names, "soft0" or "soft0,key=value"; return why not, or NULL. */
static const char *
dev_create(const char *env)
{
	const char *args = strchr(env, ',');
	size_t len = args != NULL ? (size_t)(args - env) : strlen(env);
	char name[sizeof(device.name)];
	const char *reason;
	int ret;

	if (len >= sizeof(name))
		return "the name is too long (63)";
	ret = ribv_env_start();
	if (ret != 0)
		return "EAL does not start (see RMEM_IBV_LOG=err)";
	memcpy(name, env, len);
	name[len] = '\0';
	ribv_env_log_keep();
	ret = rmem_dev_create(name, args != NULL ? args + 1 : NULL, &ribv_dev);
	reason = ribv_env_log_kept();
	if (ret != 0)
		return reason[0] != '\0' ? reason : strerror(-ret);
	memcpy(device.name, name, len + 1);
	memcpy(device.dev_name, name, len + 1);
	return NULL;
}

static void
dev_start(void)
{
	const char *env = getenv("RMEM_IBV");
	const char *reason;
	sigset_t old;

	if (env == NULL || env[0] == '\0')
		env = "soft0";
	ribv_env_block(&old);
	is_creating = true;
	reason = dev_create(env);
	is_creating = false;
	ribv_env_unblock(&old);
	if (reason != NULL)
		fprintf(stderr, "rmem_ibv: no device %s: %s\n", env, reason);
}

static bool
has_dev(void)
{
	if (is_creating)
		return false;
	pthread_once(&once, dev_start);
	return ribv_dev != NULL && ribv_env_start() == 0;
}

struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	struct ibv_device **real;
	struct list *list;
	int n = 0;

	real = RIBV_NEXT(ibv_get_device_list)(&n);
	if (real == NULL)
		n = 0;
	list = calloc(1, sizeof(*list) + ((size_t)n + 2) * sizeof(void *));
	if (list == NULL)
		return ribv_fail(ENOMEM);
	list->real = real;
	if (real != NULL)
		memcpy(list->devices, real, (size_t)n * sizeof(void *));
	if (n > 0)
		__atomic_store_n(&ribv_has_real, true, __ATOMIC_RELAXED);
	if (has_dev())
		list->devices[n++] = &device;
	if (num_devices != NULL)
		*num_devices = n;
	pthread_mutex_lock(&lists_lock);
	list->next = lists;
	lists = list;
	pthread_mutex_unlock(&lists_lock);
	return list->devices;
}

void
ibv_free_device_list(struct ibv_device **devices)
{
	struct list **at, *list;

	pthread_mutex_lock(&lists_lock);
	for (at = &lists; *at != NULL && (*at)->devices != devices; at = &(*at)->next)
		;
	list = *at;
	if (list != NULL)
		*at = list->next;
	pthread_mutex_unlock(&lists_lock);
	if (list != NULL && list->real != NULL)
		RIBV_NEXT(ibv_free_device_list)(list->real);
	free(list);
}

static __be64
dev_guid(void)
{
	static const uint8_t guid[8] = {0x02, 'r', 'm', 0xff, 0xfe, 'e', 'm', 1};
	__be64 value;

	memcpy(&value, guid, sizeof(value));
	return value;
}

void
ribv_gid(union ibv_gid *gid)
{
	static const union ibv_gid none;
	struct rmem_dev_info info;

	if (rmem_dev_info_get(ribv_dev, &info) == 0)
		memcpy(gid->raw, info.gid, sizeof(gid->raw));
	if (memcmp(gid, &none, sizeof(none)) != 0)
		return;
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = 0xfe;
	gid->raw[1] = 0x80;
	gid->global.interface_id = dev_guid();
}

__be64
ibv_get_device_guid(struct ibv_device *dev)
{
	if (dev != &device && ribv_is_real(dev))
		return RIBV_NEXT(ibv_get_device_guid)(dev);
	return dev == &device ? dev_guid() : 0;
}

int
ibv_get_device_index(struct ibv_device *dev)
{
	return dev != &device && ribv_is_real(dev) ? RIBV_NEXT(ibv_get_device_index)(dev) : -1;
}

static void
fill_attr(struct ibv_device_attr *attr)
{
	struct rmem_dev_info info;

	memset(attr, 0, sizeof(*attr));
	if (rmem_dev_info_get(ribv_dev, &info) != 0)
		return;
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", RMEM_IBV_VERSION);
	attr->node_guid = attr->sys_image_guid = dev_guid();
	attr->vendor_id = 0xffffff; /* of no vendor */
	attr->vendor_part_id = 1;
	attr->hw_ver = 1;
	attr->max_mr_size = info.max_mr_size;
	attr->page_size_cap = 0xfffff000;
	attr->max_qp = (int)info.max_qp;
	attr->max_qp_wr = (int)RTE_MIN(info.max_send_wr, info.max_recv_wr);
	attr->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID;
	if (info.capa & RMEM_DEV_CAPA_MW_TYPE_1)
		attr->device_cap_flags |= IBV_DEVICE_MEM_WINDOW;
	if (info.capa & RMEM_DEV_CAPA_MW_TYPE_2B)
		attr->device_cap_flags |= IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	if (info.capa & RMEM_DEV_CAPA_LOCAL_INV)
		attr->device_cap_flags |= IBV_DEVICE_MEM_MGT_EXTENSIONS;
	attr->max_sge = (int)RTE_MIN(info.max_send_sge, info.max_recv_sge);
	attr->max_sge_rd = attr->max_sge;
	attr->max_cq = (int)info.max_cq;
	attr->max_cqe = (int)info.max_cqe;
	attr->max_mr = (int)info.max_mr;
	attr->max_mw = (int)info.max_mw;
	attr->max_pd = (int)info.max_pd;
	attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = RIBV_RD_ATOMIC;
	attr->max_res_rd_atom = RIBV_RD_ATOMIC * attr->max_qp;
	attr->atomic_cap = info.capa & RMEM_DEV_CAPA_ATOMIC ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
	attr->max_pkeys = 1;
	attr->phys_port_cnt = 1;
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_device)(context, attr);
	if (!ribv_is_context(context))
		return ENOENT;
	if (attr == NULL)
		return EINVAL;
	fill_attr(attr);
	return 0;
}

static int
query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct rmem_dev_info info;

	if (!ribv_is_context(context))
		return ENOENT;
	if (attr == NULL || attr_size < sizeof(attr->orig_attr))
		return EINVAL;
	if (input != NULL && input->comp_mask != 0)
		return EINVAL;
	memset(attr, 0, attr_size);
	fill_attr(&attr->orig_attr);
	if (attr_size >= offsetof(struct ibv_device_attr_ex, completion_timestamp_mask) &&
			rmem_dev_info_get(ribv_dev, &info) == 0) {
		attr->odp_caps.general_caps = info.odp.general;
		attr->odp_caps.per_transport_caps.rc_odp_caps = info.odp.rc;
	}
	if (attr_size >= offsetof(struct ibv_device_attr_ex, phys_port_cnt_ex) +
					sizeof(attr->phys_port_cnt_ex))
		attr->phys_port_cnt_ex = 1;
	return 0;
}

static int
query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t len)
{
	struct ibv_port_attr full;
	struct rmem_dev_info info;

	if (!ribv_is_context(context))
		return ENOENT;
	if (attr == NULL || port_num != RIBV_PORT)
		return EINVAL;
	memset(&full, 0, sizeof(full));
	if (rmem_dev_info_get(ribv_dev, &info) != 0)
		return EIO;
	full.state = IBV_PORT_ACTIVE;
	full.phys_state = 5; /* LinkUp */
	full.max_mtu = full.active_mtu = IBV_MTU_4096;
	full.gid_tbl_len = 1;
	full.max_msg_sz = (uint32_t)RTE_MIN(info.max_msg_size, UINT64_C(1) << 31);
	full.pkey_tbl_len = 1;
	full.active_width = 2; /* 4x */
	full.active_speed = 32;
	full.link_layer = IBV_LINK_LAYER_INFINIBAND;
	full.lid = full.sm_lid = RIBV_LID;
	full.max_vl_num = 1;
	full.port_cap_flags = 0;
	memcpy(attr, &full, RTE_MIN(len, sizeof(full)));
	return 0;
}

int
ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_port)(context, port_num, attr);
	return query_port(context, port_num, (struct ibv_port_attr *)attr,
			offsetof(struct ibv_port_attr, flags));
}

static int
minus_one(int err)
{
	errno = err;
	return -1;
}

int
ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_gid)(context, port_num, index, gid);
	if (!ribv_is_context(context) || port_num != RIBV_PORT || index != 0 || gid == NULL)
		return minus_one(EINVAL);
	ribv_gid(gid);
	return 0;
}

int
ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		unsigned int *type)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_gid_type)(context, port_num, index, type);
	if (!ribv_is_context(context) || port_num != RIBV_PORT || index != 0 || type == NULL)
		return minus_one(EINVAL);
	*type = 0;
	return 0;
}

int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t index,
		struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(_ibv_query_gid_ex)(
				context, port_num, index, entry, flags, entry_size);
	if (!ribv_is_context(context))
		return ENOENT;
	if (entry == NULL || flags != 0 || port_num != RIBV_PORT || entry_size < sizeof(*entry))
		return EINVAL;
	if (index != 0)
		return ENODATA;
	memset(entry, 0, entry_size);
	ribv_gid(&entry->gid);
	entry->port_num = port_num;
	entry->gid_type = IBV_GID_TYPE_IB;
	return 0;
}

ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
		uint32_t flags, size_t entry_size)
{
	int ret;

	if (ribv_is_real(context))
		return RIBV_NEXT(_ibv_query_gid_table)(
				context, entries, max_entries, flags, entry_size);
	if (max_entries == 0)
		return -EINVAL;
	ret = _ibv_query_gid_ex(context, RIBV_PORT, 0, entries, flags, entry_size);
	return ret != 0 ? -ret : 1;
}

int
ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_query_pkey)(context, port_num, index, pkey);
	if (!ribv_is_context(context) || port_num != RIBV_PORT || index != 0 || pkey == NULL)
		return minus_one(EINVAL);
	*pkey = RIBV_PKEY;
	return 0;
}

int
ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_get_pkey_index)(context, port_num, pkey);
	return ribv_is_context(context) && port_num == RIBV_PORT && pkey == RIBV_PKEY ? 0 : -1;
}

static const struct ibv_context_ops ops = {
		.alloc_mw = ribv_alloc_mw,
		.bind_mw = ribv_bind_mw,
		.dealloc_mw = ribv_dealloc_mw,
		.poll_cq = ribv_poll_cq,
		.req_notify_cq = ribv_req_notify_cq,
		.post_send = ribv_post_send,
		.post_recv = ribv_post_recv,
};

static struct ibv_context *
open_real(struct ibv_device *dev)
{
	if (!ribv_is_real(dev))
		return ribv_fail(ENODEV);
	return RIBV_NEXT(ibv_open_device)(dev);
}

struct ibv_context *
ibv_open_device(struct ibv_device *dev)
{
	struct verbs_context *context;

	if (dev != &device)
		return open_real(dev);
	if (!has_dev())
		return ribv_fail(ENODEV);
	context = ribv_new();
	if (context == NULL)
		return NULL;
	context->sz = sizeof(*context);
	context->query_device_ex = query_device_ex;
	context->query_port = query_port;
	context->advise_mr = ribv_advise_mr;
	context->alloc_td = ribv_alloc_td;
	context->dealloc_td = ribv_dealloc_td;
	context->alloc_parent_domain = ribv_alloc_parent_domain;
	context->create_cq_ex = ribv_create_cq_ex;
	context->create_qp_ex = ribv_create_qp_ex;
	context->context.device = dev;
	context->context.ops = ops;
	context->context.num_comp_vectors = 1;
	context->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->context.async_fd = eventfd(0, EFD_CLOEXEC); /* no event is supported yet */
	if (context->context.async_fd < 0) {
		ribv_leave(context);
		return NULL;
	}
	/* Open, so that a program can duplicate it; there are no commands. */
	context->context.cmd_fd = context->context.async_fd;
	pthread_mutex_init(&context->context.mutex, NULL);
	ribv_enter(context, RIBV_CONTEXT);
	return &context->context;
}

struct ibv_context *
ibv_import_device(int cmd_fd)
{
	struct stat st;

	/* That of a real device is a character device. */
	if (fstat(cmd_fd, &st) == 0 && S_ISCHR(st.st_mode)) {
		__atomic_store_n(&ribv_has_real, true, __ATOMIC_RELAXED);
		return RIBV_NEXT(ibv_import_device)(cmd_fd);
	}
	return ribv_fail(EOPNOTSUPP);
}

int
ibv_close_device(struct ibv_context *context)
{
	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_close_device)(context);
	if (!ribv_is_context(context))
		return ENOENT;
	close(context->async_fd);
	pthread_mutex_destroy(&context->mutex);
	ribv_leave((char *)context - offsetof(struct verbs_context, context));
	return 0;
}

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	uint64_t n;

	if (ribv_is_real(context))
		return RIBV_NEXT(ibv_get_async_event)(context, event);
	if (!ribv_is_context(context))
		return minus_one(ENOENT);
	/* Blocks, or fails with EAGAIN: no event is supported yet. */
	if (read(context->async_fd, &n, sizeof(n)) >= 0)
		errno = EIO;
	return -1;
}
