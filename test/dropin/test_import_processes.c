/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Objects imported by another process, which gets the command file by SCM_RIGHTS: QPs of the
 * imported PD use the keys and the addresses of the owner, which can't destroy the objects before
 * the other process has released them.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../send_fds.h"
#include "own_qp.h"

#define PAGE ((size_t)4096)
#define SIZE (4 * PAGE)
#define PART 64u

/* Entry of a handle in the command file. */
#define ENTRY_SIZE   ((size_t)56)
#define ENTRY_AT(at) ((off_t)(4096 + (at)*ENTRY_SIZE))

enum kind {
	FILE_OF_FD,
	FILE_OF_PATH,
	TWO_FILES,
	PRIVATE,
	NULL_MR,
	NB_KINDS
};

/* Objects of the owner. */
struct exports {
	uint32_t pd, dm;
	struct {
		uint32_t handle, lkey, rkey;
		uint64_t addr;
	} mr[NB_KINDS];
};

static void
export_mr(struct exports *exports, int kind, const struct ibv_mr *mr, const void *mem)
{
	exports->mr[kind].handle = mr->handle;
	exports->mr[kind].lkey = mr->lkey;
	exports->mr[kind].rkey = mr->rkey;
	exports->mr[kind].addr = (uintptr_t)mem;
}

/* Address of a QP. */
struct place {
	uint32_t qp_num;
	uint16_t lid;
};

static int
receive_exports(int fd, struct exports *exports)
{
	struct iovec iov = {exports, sizeof(*exports)};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control)};
	int file;

	HOLDS(recvmsg(fd, &msg, 0) == (ssize_t)sizeof(*exports));
	HOLDS(msg.msg_controllen != 0 && control.head.cmsg_type == SCM_RIGHTS);
	memcpy(&file, CMSG_DATA(&control.head), sizeof(file));
	return file;
}

/* A child that ends with this process. */
static pid_t
start_child(void)
{
	pid_t pid = fork();

	HOLDS(pid >= 0);
	HOLDS(pid != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
	return pid;
}

static void
signal_peer(int fd)
{
	HOLDS(write(fd, "", 1) == 1);
}

static void
wait_peer(int fd)
{
	char byte;

	HOLDS(read(fd, &byte, 1) == 1);
}

static const struct ibv_qp_attr defaults = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1};

static uint16_t
lid_of(struct ibv_context *context)
{
	struct ibv_port_attr port;

	HOLDS(ibv_query_port(context, 1, &port) == 0);
	return port.lid;
}

/* The importer. */

/* A WRITE of the importer's QP, of both keys and addresses of the owner. */
static void
write_by_owner_keys(struct ibv_pd *pd, struct ibv_cq *cq, const struct exports *exports, int kind)
{
	const uint64_t addr = exports->mr[kind].addr;
	struct ibv_qp *qp = create_rc(pd, cq, 4);

	HOLDS(qp != NULL);
	connect_own(qp);
	HOLDS(write_to(qp, (struct ibv_sge){addr, PART, exports->mr[kind].lkey}, addr + SIZE - PART,
			      exports->mr[kind].rkey) == IBV_WC_SUCCESS);
	HOLDS(ibv_destroy_qp(qp) == 0);
}

static void
importer_is_refused(struct ibv_context *context, struct ibv_pd *pd, const struct exports *exports)
{
	struct ibv_pd *own = ibv_alloc_pd(context);

	HOLDS(own != NULL);
	errno = 0;
	HOLDS(ibv_import_mr(pd, exports->mr[PRIVATE].handle) == NULL && errno == EOPNOTSUPP);
	errno = 0;
	HOLDS(ibv_import_mr(pd, exports->mr[NULL_MR].handle) == NULL && errno == EOPNOTSUPP);
	errno = 0;
	HOLDS(ibv_import_dm(context, exports->dm) == NULL && errno == EOPNOTSUPP);
	errno = 0;
	HOLDS(ibv_import_dm(context, exports->pd) == NULL && errno == ENOENT);
	errno = 0;
	HOLDS(ibv_import_pd(context, exports->mr[0].handle) == NULL && errno == ENOENT);
	errno = 0;
	HOLDS(ibv_import_mr(pd, UINT32_MAX) == NULL && errno == ENOENT);
	/* A PD of this process. */
	errno = 0;
	HOLDS(ibv_import_mr(own, exports->mr[0].handle) == NULL && errno == ENOENT);
	HOLDS(ibv_dealloc_pd(own) == 0);
}

/* Import an MR and use it; the owner alone may deregister it. */
static struct ibv_mr *
import_mr(struct ibv_pd *pd, struct ibv_cq *cq, const struct exports *exports, int kind)
{
	struct ibv_mr *mr = ibv_import_mr(pd, exports->mr[kind].handle);

	HOLDS(mr != NULL && mr->length == SIZE && mr->addr == NULL);
	HOLDS(mr->lkey == exports->mr[kind].lkey && mr->rkey == exports->mr[kind].rkey);
	write_by_owner_keys(pd, cq, exports, kind);
	HOLDS(ibv_dereg_mr(mr) == EBUSY);
	return mr;
}

static void
importer(int fd)
{
	struct ibv_mr *mr[TWO_FILES + 1], *again;
	struct ibv_context *context;
	struct place place, peer;
	struct ibv_qp_attr attr = defaults;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	struct exports exports;
	int i;

	context = ibv_import_device(receive_exports(fd, &exports));
	HOLDS(context != NULL);
	pd = ibv_import_pd(context, exports.pd);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	HOLDS(pd != NULL && pd->handle == exports.pd && cq != NULL);
	importer_is_refused(context, pd, &exports);
	for (i = 0; i <= TWO_FILES; i++)
		mr[i] = import_mr(pd, cq, &exports, i);
	HOLDS(ibv_dealloc_pd(pd) == EBUSY);
	/* A second handle of an object. */
	again = ibv_import_mr(pd, exports.mr[0].handle);
	HOLDS(again != NULL && again->rkey == mr[0]->rkey);
	ibv_unimport_mr(again);
	write_by_owner_keys(pd, cq, &exports, 0);

	/* A QP of the imported PD, for the owner's requests. */
	qp = create_rc(pd, cq, 4);
	HOLDS(qp != NULL);
	place = (struct place){qp->qp_num, lid_of(context)};
	HOLDS(write(fd, &place, sizeof(place)) == sizeof(place));
	HOLDS(read(fd, &peer, sizeof(peer)) == sizeof(peer));
	attr.dest_qp_num = peer.qp_num;
	connect_qp_at(qp, attr, peer.lid);
	signal_peer(fd);

	wait_peer(fd);
	ibv_unimport_mr(mr[0]);
	HOLDS(ibv_dereg_mr(mr[0]) == ENOENT);
	signal_peer(fd);

	wait_peer(fd);
	errno = 0;
	HOLDS(ibv_import_mr(pd, exports.mr[0].handle) == NULL && errno == ENOENT);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
	/* The other objects end with the context. */
	HOLDS(ibv_close_device(context) == 0);
	signal_peer(fd);
	exit(EXIT_SUCCESS);
}

/* The owner. */

static void *
map_file(void *at, int fd, size_t size)
{
	void *mem = mmap(at, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | (at != NULL ? MAP_FIXED : 0), fd, 0);

	HOLDS(mem != MAP_FAILED);
	return mem;
}

static int
open_memory(size_t size)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);

	HOLDS(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	return fd;
}

static uint8_t *
memory_of(enum kind kind, char *path)
{
	uint8_t *mem = NULL;
	int fd;

	switch (kind) {
	case FILE_OF_FD:
		return map_file(NULL, open_memory(SIZE), SIZE);
	case FILE_OF_PATH:
		fd = mkstemp(path);
		HOLDS(fd >= 0 && ftruncate(fd, SIZE) == 0);
		mem = map_file(NULL, fd, SIZE);
		close(fd);
		return mem;
	case TWO_FILES:
		mem = map_file(NULL, open_memory(SIZE), SIZE);
		map_file(mem + SIZE / 2, open_memory(SIZE), SIZE / 2);
		return mem;
	default:
		mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		HOLDS(mem != MAP_FAILED);
		return mem;
	}
}

static pid_t
start_importer(int *fd)
{
	char number[16];
	int pair[2];
	pid_t pid;

	HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	pid = start_child();
	if (pid == 0) {
		close(pair[0]);
		snprintf(number, sizeof(number), "%d", pair[1]);
		execl("/proc/self/exe", "importer", number, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	*fd = pair[0];
	return pid;
}

static enum ibv_wc_status
owner_write_status(struct ibv_qp *qp, const struct ibv_mr *mr, const uint8_t *mem)
{
	return write_to(qp, (struct ibv_sge){(uintptr_t)mem, PART, mr->lkey}, (uintptr_t)mem + PAGE,
			mr->rkey);
}

/* The peer of the owner's QP is a QP of the importer: its PD has the owner's MR. */
static void
owner_writes(int fd, struct ibv_qp *qp, const struct ibv_mr *mr, uint8_t *mem)
{
	struct ibv_qp_attr attr = defaults;
	struct place place;
	int i;

	HOLDS(read(fd, &place, sizeof(place)) == sizeof(place));
	attr.dest_qp_num = place.qp_num;
	reset_qp(qp);
	connect_qp_at(qp, attr, place.lid);
	place = (struct place){qp->qp_num, lid_of(qp->context)};
	HOLDS(write(fd, &place, sizeof(place)) == sizeof(place));
	wait_peer(fd);
	/* The first one is a packet, and later ones are direct copies. */
	for (i = 0; i < 4; i++) {
		memset(mem, 0x33 + i, PART);
		HOLDS(owner_write_status(qp, mr, mem) == IBV_WC_SUCCESS);
		HOLDS(memcmp(mem, mem + PAGE, PART) == 0);
	}
}

static void
owner(void)
{
	static uint8_t own_mem[2 * PART];
	char path[] = "/dev/shm/rmem-import-XXXXXX";
	struct objects own = open_objects(own_mem, sizeof(own_mem), 4);
	struct ibv_dm *dm = ibv_alloc_dm(own.context, &(struct ibv_alloc_dm_attr){.length = PAGE});
	struct exports exports = {.pd = own.pd->handle, .dm = dm->handle};
	struct ibv_mr *mr[NB_KINDS];
	uint8_t *mem[NB_KINDS];
	pid_t pid;
	int fd, i;

	for (i = 0; i < NB_KINDS; i++) {
		mem[i] = memory_of((enum kind)i, path);
		mr[i] = i == NULL_MR ? ibv_alloc_null_mr(own.pd)
				     : ibv_reg_mr(own.pd, mem[i], SIZE, WRITABLE);
		HOLDS(mr[i] != NULL);
		export_mr(&exports, i, mr[i], mem[i]);
		memset(mem[i], i + 1, PART);
	}
	pid = start_importer(&fd);
	HOLDS(send_fds(fd, &exports, sizeof(exports), 0, own.context->cmd_fd, 1) ==
			sizeof(exports));
	owner_writes(fd, own.qp, mr[0], mem[0]);
	for (i = 1; i <= TWO_FILES; i++)
		HOLDS(memcmp(mem[i], mem[i] + SIZE - PART, PART) == 0);
	HOLDS(ibv_dereg_mr(mr[0]) == EBUSY && ibv_dealloc_pd(own.pd) == EBUSY);
	HOLDS(ibv_rereg_mr(mr[0], IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			      IBV_ACCESS_LOCAL_WRITE) == IBV_REREG_MR_ERR_CMD);
	HOLDS(errno == EBUSY);
	HOLDS(ibv_dereg_mr(mr[PRIVATE]) == 0 && ibv_dereg_mr(mr[NULL_MR]) == 0);

	signal_peer(fd);
	wait_peer(fd);
	/* The importer has released the MR, which ends the access by its QP. */
	memset(mem[0], 0x55, PART);
	HOLDS(owner_write_status(own.qp, mr[0], mem[0]) == IBV_WC_REM_ACCESS_ERR);
	HOLDS(mem[0][PAGE] != 0x55);
	HOLDS(ibv_dereg_mr(mr[0]) == 0);
	signal_peer(fd);
	wait_peer(fd);
	HOLDS(ibv_dereg_mr(mr[1]) == 0 && ibv_dereg_mr(mr[2]) == 0 && ibv_free_dm(dm) == 0);
	wait_child(pid);
	close(fd);
	HOLDS(unlink(path) == 0);
	close_objects(&own);
}

/* An importer that is killed keeps nothing. Its memory is anonymous, and inherited. */
static void
locks_end_with_their_process(void)
{
	uint8_t *mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct objects own = open_objects(mem, SIZE, 4);
	int ready[2], status;
	pid_t pid;

	HOLDS(pipe(ready) == 0);
	memset(mem, 9, PART);
	pid = start_child();
	if (pid == 0) {
		struct ibv_context *context = ibv_import_device(dup(own.context->cmd_fd));
		struct ibv_pd *pd = ibv_import_pd(context, own.pd->handle);
		struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
		struct exports exports = {0};

		HOLDS(context != NULL && pd != NULL && cq != NULL);
		HOLDS(ibv_import_mr(pd, own.mr->handle) != NULL);
		export_mr(&exports, 0, own.mr, mem);
		write_by_owner_keys(pd, cq, &exports, 0);
		signal_peer(ready[1]);
		pause();
	}
	close(ready[1]);
	wait_peer(ready[0]);
	HOLDS(memcmp(mem, mem + SIZE - PART, PART) == 0);
	HOLDS(ibv_dereg_mr(own.mr) == EBUSY);
	HOLDS(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	close_objects(&own);
	close(ready[0]);
	munmap(mem, SIZE);
}

/* An owner that is killed: imported objects stay valid, and further ones can't be imported. */
static void
objects_outlive_their_owner(void)
{
	uint8_t *mem = map_file(NULL, open_memory(SIZE), SIZE);
	struct exports exports = {0};
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	int pair[2], status;
	pid_t pid;

	HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	pid = start_child();
	if (pid == 0) {
		struct objects own = open_objects(mem, SIZE, 4);
		struct ibv_mr *other = ibv_reg_mr(own.pd, mem, SIZE, WRITABLE);

		HOLDS(other != NULL);
		exports.pd = own.pd->handle;
		export_mr(&exports, 0, own.mr, mem);
		export_mr(&exports, 1, other, mem);
		HOLDS(send_fds(pair[1], &exports, sizeof(exports), 0, own.context->cmd_fd, 1) ==
				sizeof(exports));
		pause();
	}
	close(pair[1]);
	context = ibv_import_device(receive_exports(pair[0], &exports));
	HOLDS(context != NULL);
	pd = ibv_import_pd(context, exports.pd);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	HOLDS(pd != NULL && cq != NULL && ibv_import_mr(pd, exports.mr[0].handle) != NULL);
	HOLDS(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	memset(mem, 7, PART);
	write_by_owner_keys(pd, cq, &exports, 0);
	HOLDS(memcmp(mem, mem + SIZE - PART, PART) == 0);
	errno = 0;
	HOLDS(ibv_import_mr(pd, exports.mr[1].handle) == NULL && errno == EINVAL);
	HOLDS(ibv_destroy_cq(cq) == 0 && ibv_close_device(context) == 0);
	close(pair[0]);
	munmap(mem, SIZE);
}

/* The owner has two handles of each object, of which the other process knows neither. */
static void
handles_of_the_owner_are_of_one_object(void)
{
	uint8_t *mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct objects own = open_objects(mem, SIZE, 4);
	struct ibv_context *other = ibv_import_device(dup(own.context->cmd_fd));
	struct ibv_pd *pd = ibv_import_pd(other, own.pd->handle);
	struct ibv_mr *twin = ibv_import_mr(pd, own.mr->handle);
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, SIZE, WRITABLE);
	int ready[2], status;
	pid_t pid;

	HOLDS(twin != NULL && mr != NULL && pipe(ready) == 0);
	pid = start_child();
	if (pid == 0) {
		struct ibv_context *context = ibv_import_device(dup(own.context->cmd_fd));
		struct ibv_pd *imported = ibv_import_pd(context, own.pd->handle);

		HOLDS(context != NULL && imported != NULL);
		HOLDS(ibv_import_mr(imported, own.mr->handle) != NULL);
		HOLDS(ibv_import_mr(imported, mr->handle) != NULL);
		signal_peer(ready[1]);
		pause();
	}
	close(ready[1]);
	wait_peer(ready[0]);
	HOLDS(ibv_dereg_mr(twin) == EBUSY && ibv_dereg_mr(own.mr) == EBUSY);
	HOLDS(ibv_dereg_mr(mr) == EBUSY && ibv_dealloc_pd(pd) == EBUSY);
	HOLDS(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	HOLDS(ibv_dereg_mr(mr) == 0);
	ibv_unimport_mr(twin);
	ibv_unimport_pd(pd);
	HOLDS(ibv_close_device(other) == 0);
	close_objects(&own);
	close(ready[0]);
	munmap(mem, SIZE);
}

/* The import of the MR of the parent, in a child, fails with the errno, or succeeds with 0. */
static void
expect_mr(const struct objects *own, int err)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct ibv_context *context = ibv_import_device(dup(own->context->cmd_fd));
		struct ibv_pd *pd = ibv_import_pd(context, own->pd->handle);

		HOLDS(context != NULL && pd != NULL);
		errno = 0;
		if (err == 0)
			HOLDS(ibv_import_mr(pd, own->mr->handle) != NULL);
		else
			HOLDS(ibv_import_mr(pd, own->mr->handle) == NULL && errno == err);
		_exit(0);
	}
	wait_child(pid);
}

/* The name of an unlinked file may be that of another one, with an effect when it is opened. */
static void
file_with_the_name_of_an_unlinked_one_is_not_opened(void)
{
	char path[] = "/dev/shm/rmem-import-XXXXXX", name[sizeof(path) + sizeof(" (deleted)")];
	uint8_t *mem = memory_of(FILE_OF_PATH, path);
	struct objects own = open_objects(mem, SIZE, 4);
	int fifo;

	snprintf(name, sizeof(name), "%s (deleted)", path);
	HOLDS(unlink(path) == 0 && mkfifo(name, 0600) == 0);
	fifo = open(name, O_RDONLY | O_NONBLOCK);
	HOLDS(fifo >= 0);
	expect_mr(&own, 0);
	/* It had no writer: poll() reports none that has ended. */
	HOLDS(!is_readable(fifo));
	HOLDS(close(fifo) == 0 && unlink(name) == 0);
	close_objects(&own);
	munmap(mem, SIZE);
}

/* The owner gives no right that it does not have, by any entry of its table. */
static void
memory_that_the_owner_can_not_write_is_refused(void)
{
	uint8_t *mem = memory_of(FILE_OF_FD, NULL);
	struct objects own = open_objects(mem, SIZE, 4);

	HOLDS(mprotect(mem, SIZE, PROT_READ) == 0);
	expect_mr(&own, EOPNOTSUPP);
	HOLDS(mprotect(mem, SIZE, PROT_READ | PROT_WRITE) == 0);
	expect_mr(&own, 0);
	close_objects(&own);
	munmap(mem, SIZE);
}

/* Copy bytes of a command file, which any process that has it can write. */
static void
copy_in_file(int file, off_t to, off_t from, size_t size)
{
	char bytes[64];

	HOLDS(size <= sizeof(bytes) && pread(file, bytes, size, from) == (ssize_t)size);
	HOLDS(pwrite(file, bytes, size, to) == (ssize_t)size);
}

/* The owner changes the entry of an imported MR into one of a PD. */
static void
handle_of_an_object_of_another_type_is_refused(void)
{
	uint8_t *mem = memory_of(FILE_OF_FD, NULL);
	struct objects own = open_objects(mem, SIZE, 4);
	const off_t of_pd = ENTRY_AT(own.pd->handle), of_mr = ENTRY_AT(own.mr->handle);
	pid_t pid = fork();

	if (pid == 0) {
		struct ibv_context *context = ibv_import_device(dup(own.context->cmd_fd));
		struct ibv_pd *pd = ibv_import_pd(context, own.pd->handle);
		struct ibv_mr *mr = ibv_import_mr(pd, own.mr->handle);

		HOLDS(context != NULL && pd != NULL && mr != NULL);
		copy_in_file(context->cmd_fd, of_mr, of_pd, ENTRY_SIZE);
		errno = 0;
		HOLDS(ibv_import_pd(context, own.mr->handle) == NULL && errno == ENOENT);
		ibv_unimport_mr(mr);
		HOLDS(ibv_import_pd(context, own.mr->handle) != NULL);
		_exit(0);
	}
	wait_child(pid);
	close_objects(&own);
	munmap(mem, SIZE);
}

/* The file names its owner, which has closed it. */
static void
closed_context_is_refused(void)
{
	struct ibv_context *context = open_device("soft0");
	int file = dup(context->cmd_fd), ready[2];
	pid_t pid;

	HOLDS(pipe(ready) == 0);
	pid = start_child();
	if (pid == 0) {
		wait_peer(ready[0]);
		errno = 0;
		HOLDS(ibv_import_device(file) == NULL && errno == EINVAL);
		_exit(0);
	}
	HOLDS(ibv_close_device(context) == 0);
	/* Its owner has a descriptor of the file, but no context. */
	errno = 0;
	HOLDS(ibv_import_device(file) == NULL && errno == EINVAL);
	close(file);
	signal_peer(ready[1]);
	wait_child(pid);
}

/* The import of a context of the parent, in a child that has called prepare(), fails. */
static void
expect_refused(int err, void (*prepare)(void))
{
	struct ibv_context *context = open_device("soft0");
	int file = dup(context->cmd_fd);
	pid_t pid;

	pid = start_child();
	if (pid == 0) {
		if (prepare != NULL)
			prepare();
		errno = 0;
		HOLDS(ibv_import_device(file) == NULL && errno == err);
		_exit(0);
	}
	wait_child(pid);
	close(file);
	HOLDS(ibv_close_device(context) == 0);
}

/* A user namespace may not have that user. */
static void
become_nobody(void)
{
	if (setgid(65534) != 0 || setuid(65534) != 0)
		_exit(0);
}

static void
context_of_another_user_is_refused(void)
{
	if (geteuid() == 0)
		expect_refused(EPERM, become_nobody);
}

/* Its command file would be larger than its files may be. */
static void
context_with_a_small_file_is_refused(void)
{
	struct rlimit old, small;

	HOLDS(getrlimit(RLIMIT_FSIZE, &old) == 0);
	small = old;
	small.rlim_cur = 1 << 20;
	HOLDS(setrlimit(RLIMIT_FSIZE, &small) == 0);
	expect_refused(EOPNOTSUPP, NULL);
	HOLDS(setrlimit(RLIMIT_FSIZE, &old) == 0);
}

int
main(int argc, char **argv)
{
	if (argc == 2)
		importer((int)strtol(argv[1], NULL, 10));
	owner();
	locks_end_with_their_process();
	objects_outlive_their_owner();
	handles_of_the_owner_are_of_one_object();
	file_with_the_name_of_an_unlinked_one_is_not_opened();
	memory_that_the_owner_can_not_write_is_refused();
	handle_of_an_object_of_another_type_is_refused();
	closed_context_is_refused();
	context_of_another_user_is_refused();
	context_with_a_small_file_is_refused();
	return 0;
}
