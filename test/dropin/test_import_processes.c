/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Objects imported by another process, which gets the command file by SCM_RIGHTS: QPs of the
 * imported PD use the keys and the addresses of the owner, which can't destroy the objects before
 * the other process has released them.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../send_fds.h"
#include "import_peer.h"

enum kind {
	FILE_OF_FD,
	FILE_OF_PATH,
	TWO_FILES,
	OF_DM, /* from PAGE on */
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

/* Copies and MRs of imported device memory; the owner alone may free it. */
static struct ibv_dm *
import_dm(struct ibv_context *context, struct ibv_cq *cq, const struct exports *exports)
{
	const int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_dm *dm = ibv_import_dm(context, exports->dm), *again;
	struct ibv_pd *own = ibv_alloc_pd(context);
	struct ibv_qp *qp = create_rc(own, cq, 4);
	uint32_t word = 0;
	struct ibv_mr *mr;

	HOLDS(dm != NULL && dm->handle == exports->dm && qp != NULL);
	HOLDS(ibv_memcpy_from_dm(&word, dm, 0, 4) == 0 && word == DM_WORD);
	HOLDS(ibv_memcpy_from_dm(&word, dm, PAGE + SIZE, 4) == EFAULT);
	mr = ibv_reg_dm_mr(own, dm, 0, PAGE, access);
	HOLDS(mr != NULL);
	connect_own(qp);
	HOLDS(write_to(qp, (struct ibv_sge){0, 4, mr->lkey}, 8, mr->rkey) == IBV_WC_SUCCESS);
	HOLDS(ibv_free_dm(dm) == EBUSY);
	ibv_unimport_dm(dm); /* not while it has an MR */
	HOLDS(ibv_memcpy_from_dm(&word, dm, 8, 4) == 0 && word == DM_WORD);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(own) == 0);
	again = ibv_import_dm(context, exports->dm);
	HOLDS(again != NULL);
	ibv_unimport_dm(dm);
	HOLDS(ibv_free_dm(dm) == ENOENT);
	return again;
}

static void
unimport_dm(void *dm)
{
	ibv_unimport_dm(dm);
}

/* After each step the owner destroys what was released. */
/* As many can be made as the device has. */
static void
check_no_pd_is_left(void)
{
	struct ibv_context *context = open_device("soft0");
	struct ibv_device_attr attr;
	int i;

	HOLDS(context != NULL && ibv_query_device(context, &attr) == 0);
	for (i = 0; i < attr.max_pd; i++)
		HOLDS(ibv_alloc_pd(context) != NULL);
	errno = 0;
	HOLDS(ibv_alloc_pd(context) == NULL && errno == ENOMEM);
}

static void
importer_releases(int fd, struct ibv_mr **mr, struct ibv_dm *dm)
{
	wait_peer(fd);
	ibv_unimport_mr(mr[0]);
	HOLDS(ibv_dereg_mr(mr[0]) == ENOENT);
	ibv_unimport_mr(mr[OF_DM]);
	signal_peer(fd);

	wait_peer(fd);
	HOLDS(returns_cancelled(unimport_dm, dm));
	signal_peer(fd);
}

static void
importer(int fd)
{
	struct ibv_mr *mr[OF_DM + 1], *again;
	struct ibv_context *context;
	struct place place, peer;
	struct ibv_qp_attr attr = defaults;
	struct ibv_dm *dm;
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
	dm = import_dm(context, cq, &exports);
	for (i = 0; i <= OF_DM; i++)
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

	importer_releases(fd, mr, dm);
	wait_peer(fd);
	errno = 0;
	HOLDS(ibv_import_mr(pd, exports.mr[0].handle) == NULL && errno == ENOENT);
	HOLDS(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
	/* The other objects end with the context. */
	HOLDS(ibv_close_device(context) == 0);
	check_no_pd_is_left();
	signal_peer(fd);
	exit(EXIT_SUCCESS);
}

/* The owner. */

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

static struct ibv_mr *
register_memory(enum kind kind, struct ibv_pd *pd, struct ibv_dm *dm, uint8_t *mem)
{
	struct ibv_mr *mr;

	if (kind == NULL_MR)
		mr = ibv_alloc_null_mr(pd);
	else if (kind == OF_DM)
		mr = ibv_reg_dm_mr(pd, dm, PAGE, SIZE, WRITABLE | IBV_ACCESS_ZERO_BASED);
	else
		mr = ibv_reg_mr(pd, mem, SIZE, WRITABLE);
	HOLDS(mr != NULL);
	return mr;
}

/* By the importer: by the keys of the MR, and through the imported device memory. */
static void
dm_is_written(struct ibv_dm *dm)
{
	uint32_t first[PART / 4], last[PART / 4];

	HOLDS(ibv_memcpy_from_dm(first, dm, PAGE, PART) == 0 && first[0] == DM_WORD);
	HOLDS(ibv_memcpy_from_dm(last, dm, PAGE + SIZE - PART, PART) == 0);
	HOLDS(memcmp(first, last, PART) == 0);
	HOLDS(ibv_memcpy_from_dm(first, dm, 8, 4) == 0 && first[0] == DM_WORD);
}

static void
owner(void)
{
	static uint8_t own_mem[2 * PART];
	char path[] = "/dev/shm/rmem-import-XXXXXX";
	struct objects own = open_objects(own_mem, sizeof(own_mem), 4);
	struct ibv_dm *dm = alloc_dm(own.context);
	struct exports exports = {.pd = own.pd->handle, .dm = dm->handle};
	struct ibv_mr *mr[NB_KINDS];
	uint8_t *mem[NB_KINDS];
	pid_t pid;
	int fd, i;

	for (i = 0; i < NB_KINDS; i++) {
		mem[i] = memory_of((enum kind)i, path);
		mr[i] = register_memory((enum kind)i, own.pd, dm, mem[i]);
		export_mr(&exports, i, mr[i], mr[i]->addr);
		memset(mem[i], i + 1, PART);
	}
	pid = start_importer(&fd);
	HOLDS(send_fds(fd, &exports, sizeof(exports), 0, own.context->cmd_fd, 1) ==
			sizeof(exports));
	owner_writes(fd, own.qp, mr[0], mem[0]);
	for (i = 1; i <= TWO_FILES; i++)
		HOLDS(memcmp(mem[i], mem[i] + SIZE - PART, PART) == 0);
	dm_is_written(dm);
	HOLDS(ibv_dereg_mr(mr[OF_DM]) == EBUSY && ibv_free_dm(dm) == EBUSY);
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
	HOLDS(ibv_dereg_mr(mr[0]) == 0 && ibv_dereg_mr(mr[OF_DM]) == 0);
	HOLDS(ibv_free_dm(dm) == EBUSY);
	signal_peer(fd);
	wait_peer(fd);
	HOLDS(ibv_free_dm(dm) == 0);
	signal_peer(fd);
	wait_peer(fd);
	HOLDS(ibv_dereg_mr(mr[1]) == 0 && ibv_dereg_mr(mr[2]) == 0);
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
	struct ibv_dm *dm;
	uint32_t word = 0;
	int pair[2], status;
	pid_t pid;

	HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	pid = start_child();
	if (pid == 0) {
		struct objects own = open_objects(mem, SIZE, 4);
		struct ibv_mr *other = ibv_reg_mr(own.pd, mem, SIZE, WRITABLE);

		HOLDS(other != NULL);
		exports.pd = own.pd->handle;
		exports.dm = alloc_dm(own.context)->handle;
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
	dm = ibv_import_dm(context, exports.dm);
	HOLDS(dm != NULL);
	HOLDS(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	memset(mem, 7, PART);
	write_by_owner_keys(pd, cq, &exports, 0);
	HOLDS(memcmp(mem, mem + SIZE - PART, PART) == 0);
	errno = 0;
	HOLDS(ibv_import_mr(pd, exports.mr[1].handle) == NULL && errno == EINVAL);
	HOLDS(ibv_memcpy_from_dm(&word, dm, 0, 4) == 0 && word == DM_WORD);
	errno = 0;
	HOLDS(ibv_import_dm(context, exports.dm) == NULL && errno == EINVAL);
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
	return 0;
}
