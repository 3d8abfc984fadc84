/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * librmem_ibv.so, the preloaded library: each function passes its call on. It is small, so a
 * program without verbs pays nothing. librmem_ibv_core.so, which has class and driver, is loaded
 * when a program first lists or opens devices; before that no object can be of rmem, and libibverbs
 * gets the calls. Afterwards the core gets them.
 *
 * Invariant: a thread never waits for one that needs the lock of the dynamic loader. It may hold
 * that lock itself: the constructor of a library may open a file of the view. So several threads
 * may load the core at a time, which only that lock orders; after it is loaded, no call needs it.
 */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "rcm_preload.h"
#include "ribv_file.h"
#include "../ribv_verbs.h"

#define LIBIBVERBS "libibverbs.so.1"
#define CORE       "librmem_ibv_core.so"

typedef ribv_function_t function_t;

/* A function of libibverbs, and that of the core, or NULL until it is loaded; atomic. */
struct pass {
	const char *name;
	function_t to;
};

/* All that PASS() defines. */
extern struct pass __start_ribv_pass[] RIBV_HIDDEN;
extern struct pass __stop_ribv_pass[] RIBV_HIDDEN;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_loaded; /* atomic; all below is set, and the core is started */
static bool is_failed; /* atomic; it can't be loaded */

static pthread_key_t main_key; /* set in the main thread */
static bool is_main_ended;     /* atomic */

/* Of the core; atomic, set before it is started. */
static function_t core_init;
static function_t core_view;
static function_t core_main_ended;
static const struct rcm_ops *core_cm;

static function_t
symbol(void *library, const char *name)
{
	union {
		void *object;
		function_t function;
	} found = {.object = dlsym(library, name)};

	return found.function;
}

static function_t
next(const char *name)
{
	function_t function = symbol(RTLD_NEXT, name);
	void *library;

	if (function != NULL)
		return function;
	/* Loaded by a plugin, and so not in the global scope. */
	library = dlopen(LIBIBVERBS, RTLD_LAZY);
	return library != NULL ? symbol(library, name) : NULL;
}

/* The core is in the directory of this library. */
static void *
open_core(void)
{
	char path[4096];
	const char *slash;
	Dl_info info;

	if (dladdr(&once, &info) == 0 || info.dli_fname == NULL)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	snprintf(path, sizeof(path), "%.*s" CORE,
			slash != NULL ? (int)(slash + 1 - info.dli_fname) : 0, info.dli_fname);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The functions called here need no lock of the loader. */
static void
start(void)
{
	((__typeof__(&ribv_core_init))__atomic_load_n(&core_init, __ATOMIC_RELAXED))(next);
	rcm_preload_init(__atomic_load_n(&core_cm, __ATOMIC_RELAXED));
}

/* Threads of the core do not keep the process. */
static void
main_ended_check(void)
{
	if (__atomic_load_n(&is_main_ended, __ATOMIC_SEQ_CST) &&
			__atomic_load_n(&is_loaded, __ATOMIC_SEQ_CST))
		((__typeof__(&ribv_core_main_ended))__atomic_load_n(
				&core_main_ended, __ATOMIC_RELAXED))();
}

/* Return whether the core is there, which is loaded if needed. Threads that do so at a time store
 * the same values. */
static bool
load(void)
{
	struct pass *pass;
	void *library;

	if (__atomic_load_n(&is_loaded, __ATOMIC_ACQUIRE))
		return true;
	if (!ribv_is_owner() || __atomic_load_n(&is_failed, __ATOMIC_RELAXED))
		return false;
	library = open_core();
	if (library == NULL || symbol(library, "ribv_core_init") == NULL) {
		if (!__atomic_exchange_n(&is_failed, true, __ATOMIC_RELAXED))
			fprintf(stderr, "rmem_ibv: no device of rmem: %s\n", dlerror());
		return false;
	}
	__atomic_store_n(&core_view, symbol(library, "ribv_view_find"), __ATOMIC_RELAXED);
	__atomic_store_n(&core_main_ended, symbol(library, "ribv_core_main_ended"),
			__ATOMIC_RELAXED);
	__atomic_store_n(&core_cm, dlsym(library, "rcm_core_ops"), __ATOMIC_RELAXED);
	__atomic_store_n(&core_init, symbol(library, "ribv_core_init"), __ATOMIC_RELAXED);
	pthread_once(&once, start);
	for (pass = __start_ribv_pass; pass != __stop_ribv_pass; pass++)
		__atomic_store_n(&pass->to, symbol(library, pass->name), __ATOMIC_RELAXED);
	__atomic_store_n(&is_loaded, true, __ATOMIC_SEQ_CST);
	main_ended_check();
	return true;
}

/* It ends by pthread_exit(); the destructor of its data is called. */
static void
main_ends(void *key)
{
	__atomic_store_n(&is_main_ended, key == &main_key, __ATOMIC_SEQ_CST);
	main_ended_check();
}

/* The thread of a child of fork() is its main thread. */
static void
main_set(void)
{
	is_main_ended = false;
	pthread_setspecific(main_key, &main_key);
}

__attribute__((constructor)) static void
main_find(void)
{
	if (pthread_key_create(&main_key, main_ends) != 0)
		return;
	main_set();
	pthread_atfork(NULL, NULL, main_set);
}

ribv_view_t
ribv_core_view(void)
{
	return load() ? (ribv_view_t)__atomic_load_n(&core_view, __ATOMIC_RELAXED) : NULL;
}

/* Return the function to call. */
static function_t
route(const struct pass *pass)
{
	function_t function = __atomic_load_n(&pass->to, __ATOMIC_RELAXED);

	return function != NULL ? function : next(pass->name);
}

#define LIST(...) __VA_ARGS__
#define PASS_ENTRY(name)                                                                           \
	struct pass pass __attribute__((section("ribv_pass"), used)) = {#name, NULL}

/* Define a function that waits: a thread in it can be cancelled. */
#define PASS_WAIT(type, name, params, args)                                                        \
	type name(params)                                                                          \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
                                                                                                   \
		return ((__typeof__(&name))route(&pass))(args);                                    \
	}

/*
 * Define a function that returns what the routed one does. A thread that is cancelled in it ends
 * later, so it holds no lock of the class.
 */
#define PASS(type, name, params, args)                                                             \
	type name(params)                                                                          \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
		type ret;                                                                          \
		int state;                                                                         \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);                            \
		ret = ((__typeof__(&name))route(&pass))(args);                                     \
		pthread_setcancelstate(state, NULL);                                               \
		return ret;                                                                        \
	}

/* Define one that returns an errno, which is also in errno, as after a call of the kernel. */
#define PASS_ERR(name, params, args)                                                               \
	int name(params)                                                                           \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
		int ret, state;                                                                    \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);                            \
		ret = ((__typeof__(&name))route(&pass))(args);                                     \
		pthread_setcancelstate(state, NULL);                                               \
		if (ret > 0)                                                                       \
			errno = ret;                                                               \
		return ret;                                                                        \
	}

/* Define one without result. */
#define PASS_VOID(name, params, args)                                                              \
	void name(params)                                                                          \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
                                                                                                   \
		((__typeof__(&name))route(&pass))(args);                                           \
	}

/*
 * Define one that loads the core first. The loader of libraries holds locks, too. Libibverbs and
 * the core find the files of the kernel.
 */
#define PASS_LOAD(type, name, params, args)                                                        \
	type name(params)                                                                          \
	{                                                                                          \
		static PASS_ENTRY(name);                                                           \
		type ret;                                                                          \
		int state;                                                                         \
                                                                                                   \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);                            \
		ribv_nb_inside++;                                                                  \
		(void)load();                                                                      \
		ret = ((__typeof__(&name))route(&pass))(args);                                     \
		ribv_nb_inside--;                                                                  \
		pthread_setcancelstate(state, NULL);                                               \
		return ret;                                                                        \
	}

/* clang-format off */
PASS_LOAD(struct ibv_device **, ibv_get_device_list, LIST(int *n), LIST(n))
PASS_LOAD(struct ibv_context *, ibv_open_device, LIST(struct ibv_device *device), LIST(device))
PASS_LOAD(struct ibv_context *, ibv_import_device, LIST(int cmd_fd), LIST(cmd_fd))

PASS_VOID(ibv_free_device_list, LIST(struct ibv_device **list), LIST(list))
PASS(__be64, ibv_get_device_guid, LIST(struct ibv_device *device), LIST(device))
PASS(int, ibv_get_device_index, LIST(struct ibv_device *device), LIST(device))
PASS_ERR(ibv_close_device, LIST(struct ibv_context *context), LIST(context))
PASS_WAIT(int, ibv_get_async_event, LIST(struct ibv_context *context,
		struct ibv_async_event *event), LIST(context, event))
PASS_ERR(ibv_query_device, LIST(struct ibv_context *context, struct ibv_device_attr *attr),
		LIST(context, attr))
PASS_ERR(ibv_query_port, LIST(struct ibv_context *context, uint8_t port_num,
		struct _compat_ibv_port_attr *attr), LIST(context, port_num, attr))
PASS(int, ibv_query_gid, LIST(struct ibv_context *context, uint8_t port_num, int index,
		union ibv_gid *gid), LIST(context, port_num, index, gid))
PASS(int, ibv_query_gid_type, LIST(struct ibv_context *context, uint8_t port_num,
		unsigned int index, unsigned int *type), LIST(context, port_num, index, type))
PASS_ERR(_ibv_query_gid_ex, LIST(struct ibv_context *context, uint32_t port_num, uint32_t index,
		struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size),
		LIST(context, port_num, index, entry, flags, entry_size))
PASS(ssize_t, _ibv_query_gid_table, LIST(struct ibv_context *context,
		struct ibv_gid_entry *entries, size_t max_entries, uint32_t flags,
		size_t entry_size), LIST(context, entries, max_entries, flags, entry_size))
PASS(int, ibv_query_pkey, LIST(struct ibv_context *context, uint8_t port_num, int index,
		__be16 *pkey), LIST(context, port_num, index, pkey))
PASS(int, ibv_get_pkey_index, LIST(struct ibv_context *context, uint8_t port_num, __be16 pkey),
		LIST(context, port_num, pkey))

PASS(struct ibv_pd *, ibv_alloc_pd, LIST(struct ibv_context *context), LIST(context))
PASS_ERR(ibv_dealloc_pd, LIST(struct ibv_pd *pd), LIST(pd))
PASS(struct ibv_pd *, ibv_import_pd, LIST(struct ibv_context *context, uint32_t handle),
		LIST(context, handle))
PASS_VOID(ibv_unimport_pd, LIST(struct ibv_pd *pd), LIST(pd))
PASS(struct ibv_mr *, ibv_reg_mr, LIST(struct ibv_pd *pd, void *addr, size_t length, int access),
		LIST(pd, addr, length, access))
PASS(struct ibv_mr *, ibv_reg_mr_iova, LIST(struct ibv_pd *pd, void *addr, size_t length,
		uint64_t iova, int access), LIST(pd, addr, length, iova, access))
PASS(struct ibv_mr *, ibv_reg_mr_iova2, LIST(struct ibv_pd *pd, void *addr, size_t length,
		uint64_t iova, unsigned int access), LIST(pd, addr, length, iova, access))
PASS(struct ibv_mr *, ibv_reg_dmabuf_mr, LIST(struct ibv_pd *pd, uint64_t offset, size_t length,
		uint64_t iova, int fd, int access), LIST(pd, offset, length, iova, fd, access))
PASS(int, ibv_rereg_mr, LIST(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		size_t length, int access), LIST(mr, flags, pd, addr, length, access))
PASS_ERR(ibv_dereg_mr, LIST(struct ibv_mr *mr), LIST(mr))
PASS(struct ibv_mr *, ibv_import_mr, LIST(struct ibv_pd *pd, uint32_t handle), LIST(pd, handle))
PASS_VOID(ibv_unimport_mr, LIST(struct ibv_mr *mr), LIST(mr))
PASS(struct ibv_dm *, ibv_import_dm, LIST(struct ibv_context *context, uint32_t handle),
		LIST(context, handle))

PASS(struct ibv_comp_channel *, ibv_create_comp_channel, LIST(struct ibv_context *context),
		LIST(context))
PASS_ERR(ibv_destroy_comp_channel, LIST(struct ibv_comp_channel *channel), LIST(channel))
PASS_WAIT(int, ibv_get_cq_event, LIST(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		void **cq_context), LIST(channel, cq, cq_context))
PASS(struct ibv_cq *, ibv_create_cq, LIST(struct ibv_context *context, int cqe, void *cq_context,
		struct ibv_comp_channel *channel, int comp_vector),
		LIST(context, cqe, cq_context, channel, comp_vector))
PASS_ERR(ibv_resize_cq, LIST(struct ibv_cq *cq, int cqe), LIST(cq, cqe))
PASS_ERR(ibv_destroy_cq, LIST(struct ibv_cq *cq), LIST(cq))
PASS_VOID(ibv_ack_async_event, LIST(struct ibv_async_event *event), LIST(event))
PASS_VOID(ibv_ack_cq_events, LIST(struct ibv_cq *cq, unsigned int n), LIST(cq, n))
PASS(struct ibv_srq *, ibv_create_srq, LIST(struct ibv_pd *pd, struct ibv_srq_init_attr *attr),
		LIST(pd, attr))
PASS_ERR(ibv_modify_srq, LIST(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask),
		LIST(srq, attr, mask))
PASS_ERR(ibv_query_srq, LIST(struct ibv_srq *srq, struct ibv_srq_attr *attr), LIST(srq, attr))
PASS_ERR(ibv_destroy_srq, LIST(struct ibv_srq *srq), LIST(srq))

PASS(struct ibv_qp *, ibv_create_qp, LIST(struct ibv_pd *pd, struct ibv_qp_init_attr *attr),
		LIST(pd, attr))
PASS(struct ibv_qp_ex *, ibv_qp_to_qp_ex, LIST(struct ibv_qp *qp), LIST(qp))
PASS_ERR(ibv_modify_qp, LIST(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask),
		LIST(qp, attr, mask))
PASS_ERR(ibv_query_qp, LIST(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		struct ibv_qp_init_attr *init), LIST(qp, attr, mask, init))
PASS(int, ibv_query_qp_data_in_order, LIST(struct ibv_qp *qp, enum ibv_wr_opcode op,
		uint32_t flags), LIST(qp, op, flags))
PASS_ERR(ibv_destroy_qp, LIST(struct ibv_qp *qp), LIST(qp))
PASS_ERR(ibv_query_ece, LIST(struct ibv_qp *qp, struct ibv_ece *ece), LIST(qp, ece))
PASS_ERR(ibv_set_ece, LIST(struct ibv_qp *qp, struct ibv_ece *ece), LIST(qp, ece))
PASS_ERR(ibv_attach_mcast, LIST(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),
		LIST(qp, gid, lid))
PASS_ERR(ibv_detach_mcast, LIST(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),
		LIST(qp, gid, lid))

PASS(struct ibv_ah *, ibv_create_ah, LIST(struct ibv_pd *pd, struct ibv_ah_attr *attr),
		LIST(pd, attr))
PASS(struct ibv_ah *, ibv_create_ah_from_wc, LIST(struct ibv_pd *pd, struct ibv_wc *wc,
		struct ibv_grh *grh, uint8_t port_num), LIST(pd, wc, grh, port_num))
PASS(int, ibv_init_ah_from_wc, LIST(struct ibv_context *context, uint8_t port_num,
		struct ibv_wc *wc, struct ibv_grh *grh, struct ibv_ah_attr *attr),
		LIST(context, port_num, wc, grh, attr))
PASS_ERR(ibv_destroy_ah, LIST(struct ibv_ah *ah), LIST(ah))
PASS_ERR(ibv_resolve_eth_l2_from_gid, LIST(struct ibv_context *context,
		struct ibv_ah_attr *attr, uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid),
		LIST(context, attr, mac, vid))
/* clang-format on */
