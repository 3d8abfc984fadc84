/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Programs that find libibverbs and librdmacm with dlopen(), and their functions with dlsym() or
 * dlvsym(). This one is not linked with them. Each case is a process that has not loaded them yet.
 * Argument: a device to find, of the kernel (test/guest/dropin.sh); by default all cases, by soft0.
 */

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "own_qp.h"

#define VERBS   "libibverbs.so.1"
#define CM      "librdmacm.so.1"
#define THREADS 8
#define SIZE    4096

/* The functions that NCCL, RCCL, MSCCL++, NVSHMEM, rocSHMEM and MVAPICH look for, each with the
 * version that NCCL requires, or that of libibverbs. */
static const struct {
	const char *name, *version;
} wanted[] = {
		{"ibv_ack_async_event", "IBVERBS_1.1"},
		{"ibv_ack_cq_events", "IBVERBS_1.1"},
		{"ibv_alloc_pd", "IBVERBS_1.1"},
		{"ibv_attach_mcast", "IBVERBS_1.1"},
		{"ibv_close_device", "IBVERBS_1.1"},
		{"ibv_create_ah", "IBVERBS_1.1"},
		{"ibv_create_comp_channel", "IBVERBS_1.0"},
		{"ibv_create_cq", "IBVERBS_1.1"},
		{"ibv_create_qp", "IBVERBS_1.1"},
		{"ibv_create_srq", "IBVERBS_1.1"},
		{"ibv_dealloc_pd", "IBVERBS_1.1"},
		{"ibv_dereg_mr", "IBVERBS_1.1"},
		{"ibv_destroy_ah", "IBVERBS_1.1"},
		{"ibv_destroy_comp_channel", "IBVERBS_1.0"},
		{"ibv_destroy_cq", "IBVERBS_1.1"},
		{"ibv_destroy_qp", "IBVERBS_1.1"},
		{"ibv_destroy_srq", "IBVERBS_1.1"},
		{"ibv_detach_mcast", "IBVERBS_1.1"},
		{"ibv_event_type_str", "IBVERBS_1.1"},
		{"ibv_fork_init", "IBVERBS_1.1"},
		{"ibv_free_device_list", "IBVERBS_1.1"},
		{"ibv_get_async_event", "IBVERBS_1.1"},
		{"ibv_get_cq_event", "IBVERBS_1.0"},
		{"ibv_get_device_guid", "IBVERBS_1.1"},
		{"ibv_get_device_list", "IBVERBS_1.1"},
		{"ibv_get_device_name", "IBVERBS_1.1"},
		{"ibv_modify_qp", "IBVERBS_1.1"},
		{"ibv_modify_srq", "IBVERBS_1.1"},
		{"ibv_node_type_str", "IBVERBS_1.1"},
		{"ibv_open_device", "IBVERBS_1.1"},
		{"ibv_port_state_str", "IBVERBS_1.1"},
		{"ibv_qp_to_qp_ex", "IBVERBS_1.6"},
		{"ibv_query_device", "IBVERBS_1.1"},
		{"ibv_query_ece", "IBVERBS_1.10"},
		{"ibv_query_gid", "IBVERBS_1.1"},
		{"ibv_query_pkey", "IBVERBS_1.1"},
		{"ibv_query_port", "IBVERBS_1.1"},
		{"ibv_query_qp", "IBVERBS_1.1"},
		{"ibv_query_srq", "IBVERBS_1.1"},
		{"ibv_reg_dmabuf_mr", "IBVERBS_1.12"},
		{"ibv_reg_mr", "IBVERBS_1.1"},
		{"ibv_reg_mr_iova", "IBVERBS_1.7"},
		{"ibv_reg_mr_iova2", "IBVERBS_1.8"},
		{"ibv_rereg_mr", "IBVERBS_1.1"},
		{"ibv_resize_cq", "IBVERBS_1.1"},
		{"ibv_set_ece", "IBVERBS_1.10"},
		{"ibv_wc_status_str", "IBVERBS_1.1"},
};

static const char *const wanted_cm[] = {"rdma_accept", "rdma_ack_cm_event", "rdma_bind_addr",
		"rdma_connect", "rdma_create_event_channel", "rdma_create_id", "rdma_create_qp",
		"rdma_destroy_event_channel", "rdma_destroy_id", "rdma_destroy_qp",
		"rdma_disconnect", "rdma_freeaddrinfo", "rdma_get_cm_event", "rdma_getaddrinfo",
		"rdma_get_devices", "rdma_free_devices", "rdma_listen", "rdma_reject",
		"rdma_resolve_addr", "rdma_resolve_route"};

static const char *program, *device = "soft0";

static void *
open_library(const char *name, int flags)
{
	void *library = dlopen(name, flags);

	if (library == NULL)
		fprintf(stderr, "%s\n", dlerror());
	HOLDS(library != NULL);
	return library;
}

/* Find a function of the library, of a version if one is given. */
static void *
get(void *library, const char *version, const char *name)
{
	void *found = version != NULL ? dlvsym(library, name, version) : dlsym(library, name);

	HOLDS(found != NULL);
	return found;
}

#define GET(library, version, name)                                                                \
	__typeof__(&name) get_##name;                                                              \
	*(void **)&get_##name = get(library, version, #name)

/* Open the device; it must be one of the devices. */
static struct ibv_context *
open_by(void *library, const char *version)
{
	GET(library, version, ibv_get_device_list);
	GET(library, version, ibv_free_device_list);
	GET(library, version, ibv_get_device_name);
	GET(library, version, ibv_open_device);
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	int i, n = 0;

	list = get_ibv_get_device_list(&n);
	HOLDS(list != NULL && n > 0 && list[n] == NULL);
	for (i = 0; i < n; i++) {
		if (strcmp(get_ibv_get_device_name(list[i]), device) == 0)
			context = get_ibv_open_device(list[i]);
	}
	HOLDS(context != NULL);
	get_ibv_free_device_list(list);
	return context;
}

static void
find_device(void *library, const char *version)
{
	GET(library, version, ibv_close_device);
	struct ibv_context *context = open_by(library, version);

	HOLDS(get_ibv_close_device(context) == 0);
}

static void
all_functions_are_found(void)
{
	void *library = open_library(VERBS, RTLD_NOW | RTLD_LOCAL);
	size_t i;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (dlsym(library, wanted[i].name) == NULL ||
				dlvsym(library, wanted[i].name, wanted[i].version) == NULL) {
			fprintf(stderr, "%s: not found\n", wanted[i].name);
			exit(EXIT_FAILURE);
		}
	}
	HOLDS(dlsym(library, "ibv_none") == NULL);
}

static void
any_version_finds_the_device(void)
{
	static const char *const versions[] = {
			NULL, "IBVERBS_1.0", "IBVERBS_1.1", "IBVERBS_1.14", "IBVERBS_1.99"};
	void *library = open_library(VERBS, RTLD_NOW | RTLD_LOCAL);
	size_t i;

	/* This one is that of libibverbs, which has no later version of it. */
	HOLDS(dlvsym(library, "ibv_fork_init", "IBVERBS_1.99") == NULL);
	for (i = 0; i < 3; i++)
		find_device(library, versions[i]);
	for (i = 3; i < sizeof(versions) / sizeof(versions[0]); i++)
		HOLDS(dlvsym(library, "ibv_get_device_list", versions[i]) != NULL);
}

typedef int (*modify_t)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

/* Connect two QPs of the port, with all rights, by their numbers. */
static void
connect_by(modify_t modify, struct ibv_qp *qp, uint32_t to, uint16_t lid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
			.port_num = 1,
			.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	HOLDS(modify(qp, &attr, INIT_MASK) == 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = to,
			.max_dest_rd_atomic = 1,
			.min_rnr_timer = 12,
			.ah_attr = {.dlid = lid, .port_num = 1}};
	HOLDS(modify(qp, &attr, RTR_MASK) == 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.max_rd_atomic = 1};
	HOLDS(modify(qp, &attr, RTS_MASK) == 0);
}

/* WRITE half of the buffer to the other half. */
static void
write_half(struct ibv_qp *qp, struct ibv_cq *cq, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, SIZE / 2, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {(uintptr_t)mr->addr + SIZE / 2, mr->rkey}},
			   *bad;

	HOLDS(ibv_post_send(qp, &wr, &bad) == 0);
	HOLDS(wait_wc(cq).status == IBV_WC_SUCCESS);
}

#undef ibv_reg_mr
#undef ibv_query_port

static void
write_with_functions_of_a_version(void)
{
	static const char version[] = "IBVERBS_1.1";
	void *library = open_library(VERBS, RTLD_NOW | RTLD_LOCAL);
	static uint8_t buf[SIZE], expected[SIZE / 2];
	GET(library, version, ibv_alloc_pd);
	GET(library, version, ibv_reg_mr);
	GET(library, version, ibv_create_cq);
	GET(library, version, ibv_create_qp);
	GET(library, version, ibv_modify_qp);
	GET(library, version, ibv_query_port);
	struct ibv_context *context = open_by(library, version);
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_pd *pd = get_ibv_alloc_pd(context);
	struct ibv_port_attr port = {0};
	struct ibv_qp *qps[2];
	struct ibv_mr *mr;

	HOLDS(pd != NULL && get_ibv_query_port(context, 1, (void *)&port) == 0);
	init.send_cq = init.recv_cq = get_ibv_create_cq(context, 16, NULL, NULL, 0);
	mr = get_ibv_reg_mr(pd, buf, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	qps[0] = get_ibv_create_qp(pd, &init);
	qps[1] = get_ibv_create_qp(pd, &init);
	HOLDS(init.send_cq != NULL && mr != NULL && qps[0] != NULL && qps[1] != NULL);
	connect_by(get_ibv_modify_qp, qps[0], qps[1]->qp_num, port.lid);
	connect_by(get_ibv_modify_qp, qps[1], qps[0]->qp_num, port.lid);
	memset(buf, 0x5a, SIZE / 2);
	memset(expected, 0x5a, SIZE / 2);
	write_half(qps[0], init.send_cq, mr);
	HOLDS(memcmp(buf + SIZE / 2, expected, SIZE / 2) == 0);
}

static void
flags_have_their_effect(void)
{
	void *library;

	HOLDS(dlopen(VERBS, RTLD_NOW | RTLD_NOLOAD) == NULL);
	library = open_library(VERBS, RTLD_NOW | RTLD_LOCAL);
	HOLDS(dlsym(RTLD_DEFAULT, "ibv_fork_init") == NULL);
	HOLDS(dlopen(VERBS, RTLD_NOW | RTLD_NOLOAD) == library);
	HOLDS(dlopen(VERBS, RTLD_NOW | RTLD_GLOBAL) == library);
	HOLDS(dlsym(RTLD_DEFAULT, "ibv_fork_init") != NULL);
	find_device(RTLD_DEFAULT, NULL);
	find_device(library, "IBVERBS_1.1");
}

static void
deepbind_is_refused_with_one_line(void)
{
	int fd = memfd_create("stderr", 0), kept = dup(STDERR_FILENO);
	char line[256] = "";
	void *library;
	ssize_t n;
	int i;

	HOLDS(fd >= 0 && kept >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	for (i = 0; i < 3; i++) {
		library = dlopen(VERBS, RTLD_NOW | RTLD_DEEPBIND);
		if (library != NULL)
			break;
		HOLDS(strstr(dlerror(), "RTLD_DEEPBIND") != NULL);
	}
	HOLDS(dup2(kept, STDERR_FILENO) >= 0 && library == NULL);
	n = pread(fd, line, sizeof(line) - 1, 0);
	HOLDS(n > 0 && line[n - 1] == '\n' && strchr(line, '\n') == line + n - 1);
	HOLDS(strstr(line, VERBS) != NULL && strstr(line, "RTLD_DEEPBIND") != NULL);
	/* Others are opened with it. */
	HOLDS(dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND) != NULL);
	find_device(open_library(VERBS, RTLD_NOW), NULL);
}

/* Functions remain after dlclose(), as those of a library that another one needs. */
static void
handles_are_one_and_are_closed(void)
{
	void *library = open_library(VERBS, RTLD_NOW);
	struct ibv_context *context;
	char path[4096];
	GET(library, NULL, ibv_close_device);
	struct link_map *map;
	Dl_info info;

	HOLDS(open_library("libibverbs.so", RTLD_LAZY) == library);
	HOLDS(dladdr1(dlsym(library, "ibv_fork_init"), &info, (void **)&map, RTLD_DL_LINKMAP) != 0);
	snprintf(path, sizeof(path), "%s", map->l_name);
	HOLDS(path[0] == '/' && open_library(path, RTLD_NOW) == library);
	context = open_by(library, NULL);
	HOLDS(dlclose(library) == 0 && dlclose(library) == 0 && dlclose(library) == 0);
	HOLDS(get_ibv_close_device(context) == 0);
	find_device(open_library(VERBS, RTLD_NOW), "IBVERBS_1.1");
}

static void *
open_and_find(void *arg)
{
	int i;

	for (i = 0; i < 20; i++) {
		void *library = open_library(VERBS, RTLD_NOW | RTLD_LOCAL);

		find_device(library, i % 2 == 0 ? NULL : "IBVERBS_1.1");
		HOLDS(dlclose(library) == 0);
	}
	return arg;
}

static void
threads_open_at_a_time(void)
{
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		HOLDS(pthread_create(&threads[i], NULL, open_and_find, NULL) == 0);
	for (i = 0; i < THREADS; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
}

/* By librdmacm, libibverbs is found too. */
static void
functions_of_rdma_cm_are_found(void)
{
	void *(*create)(void), (*destroy)(void *), *channel;
	void *library;
	size_t i;

	library = dlopen(CM, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) /* not installed */
		return;
	for (i = 0; i < sizeof(wanted_cm) / sizeof(wanted_cm[0]); i++)
		HOLDS(dlsym(library, wanted_cm[i]) != NULL);
	*(void **)&create = dlvsym(library, "rdma_create_event_channel", "RDMACM_1.0");
	*(void **)&destroy = dlsym(library, "rdma_destroy_event_channel");
	HOLDS(create != NULL && destroy != NULL);
	channel = create();
	HOLDS(channel != NULL);
	destroy(channel);
	find_device(library, NULL);
	find_device(library, "IBVERBS_1.1");
	find_device(open_library(VERBS, RTLD_NOW), "IBVERBS_1.1");
}

/* Whether a library has been loaded from the directory runpath. */
static int
is_from_runpath(struct dl_phdr_info *info, size_t size, void *arg)
{
	return size > 0 && arg == NULL && strstr(info->dlpi_name, "/runpath/" VERBS) != NULL;
}

/* This program has $ORIGIN/runpath as RUNPATH. */
static void
library_is_looked_for_in_the_runpath_of_the_caller(void)
{
	find_device(open_library(VERBS, RTLD_NOW), "IBVERBS_1.1");
	HOLDS(dl_iterate_phdr(is_from_runpath, NULL) != 0);
}

/* Libc finds out when a program starts whether the directory is there. */
static void
start_in_runpath(void)
{
	execl(program, program, "runpath", NULL);
	HOLDS(false);
}

/* Link libibverbs there; a child finds its path. */
static void
make_runpath(void)
{
	char path[4096], real[4096] = "";
	const char *slash = strrchr(program, '/');
	int fds[2];
	pid_t pid;

	HOLDS(pipe(fds) == 0);
	pid = fork();
	if (pid == 0) {
		struct link_map *map;
		Dl_info info;
		void *function = dlsym(open_library(VERBS, RTLD_NOW), "ibv_fork_init");

		HOLDS(dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP) != 0);
		HOLDS(write(fds[1], map->l_name, strlen(map->l_name)) > 0);
		_exit(0);
	}
	HOLDS(waitpid(pid, NULL, 0) == pid && read(fds[0], real, sizeof(real) - 1) > 0);
	HOLDS(slash != NULL);
	snprintf(path, sizeof(path), "%.*s/runpath", (int)(slash - program), program);
	(void)mkdir(path, 0755);
	snprintf(path, sizeof(path), "%.*s/runpath/" VERBS, (int)(slash - program), program);
	if (symlink(real, path) != 0 && errno != EEXIST) {
		printf("the directory of the program is read-only: without RUNPATH\n");
		return;
	}
	/* It remains, for runs of this program at the same time. */
	run_in_child(start_in_runpath);
}

int
main(int argc, char **argv)
{
	if (argc < 1)
		return 2;
	program = argv[0];
	if (argc > 1 && strcmp(argv[1], "runpath") == 0) {
		library_is_looked_for_in_the_runpath_of_the_caller();
		return 0;
	}
	if (argc > 1) {
		device = argv[1];
		run_in_child(any_version_finds_the_device);
		return 0;
	}
	make_runpath();
	run_in_child(all_functions_are_found);
	run_in_child(any_version_finds_the_device);
	run_in_child(write_with_functions_of_a_version);
	run_in_child(flags_have_their_effect);
	run_in_child(deepbind_is_refused_with_one_line);
	run_in_child(handles_are_one_and_are_closed);
	run_in_child(threads_open_at_a_time);
	run_in_child(functions_of_rdma_cm_are_found);
	return 0;
}
