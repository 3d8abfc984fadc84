/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Requesters copy by mappings of the target's files: only what is granted, until it is revoked, and
 * not after the end of the target. The target is this process, or a child.
 */

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../drivers/soft/mem/rsoft_gate.h"
#include "../../drivers/soft/mem/rsoft_grace.h"
#include "../../drivers/soft/mem/rsoft_grant.h"
#include "../../drivers/soft/mem/rsoft_grant_file.h"
#include "../../drivers/soft/mem/rsoft_guard.h"
#include "../../drivers/soft/wire/port/rwire_copy.h"

#include "../perf/perf_row.h"
#include "../test.h"

#define SIZE   (1u << 20)
#define LARGE  (128u << 20)
#define ROUNDS 30
#define RKEY   0x100u

/* Of x86-64, and of glibc. */
#ifndef SYS_rseq
#define SYS_rseq 334
#endif
#define RSEQ_SIZE       32
#define RSEQ_UNREGISTER 1
#define RSEQ_SIGNATURE  0x53053053

static struct perf_pair pair;
static struct rmem_mr *target; /* of memory, a mapping of file */
static uint8_t *memory;
static int file;
static struct rsoft_grants *shared; /* with children too */
static struct rsoft_grant_peer *peer;
static struct rwire_copy_peer requester;
static int connection[2];
static uint8_t local[SIZE];

static void
reg(uint32_t access)
{
	TEST_OK(rmem_mr_reg(pair.pd_b, memory, SIZE, (uintptr_t)memory, access, &target));
}

static void
grant(void)
{
	unsigned int lcore = rsoft_grace_enter();

	rsoft_grant_add(peer, (struct rsoft_qp *)pair.b, target->rkey);
	rsoft_grace_leave(lcore);
}

static struct rwire_copy
copy_of(uint32_t right, uint64_t offset, uint64_t length)
{
	return (struct rwire_copy){.qp_num = pair.b->qp_num,
			.right = right,
			.nb = 1,
			.range[0] = {.rkey = target->rkey,
					.addr = target->iova + offset,
					.length = length},
			.nb_local = 2,
			.local[1] = {local, length}};
}

static enum rwire_copy_result
run(struct rwire_copy *copy)
{
	struct rwire_copy_link link;
	enum rwire_copy_result result = rwire_copy_begin(&requester, shared, &link);

	if (result != RWIRE_COPY_DONE)
		return result;
	result = rwire_copy_run(&link, copy);
	rwire_copy_end(&link);
	return result;
}

/* Copy twice, after which the file is mapped; skip the case where that is not possible. */
static void
run_mapped(uint32_t right)
{
	struct rwire_copy copy = copy_of(right, 0, 64);
	struct rsoft_gate gate;
	uint64_t offset;
	const struct rsoft_grant_file *of = rsoft_grant_file_get(memory, SIZE, false, &offset);
	unsigned int i;

	if (of == NULL || !rsoft_gate_begin(&gate))
		test_stop(TEST_SKIPPED);
	rsoft_grant_file_put(of->id);
	rsoft_gate_end(&gate);
	for (i = 0; i < 2; i++) {
		if (run(&copy) != RWIRE_COPY_DONE)
			test_stop(TEST_SKIPPED); /* the kernel does not permit it */
		TEST_EQ(copy.copied, 64);
	}
	TEST_ASSERT(copy.is_mapped);
}

static struct rwire_map *
map_of_target(void)
{
	unsigned int i;

	for (i = 0; i < RSOFT_GRANT_FILES; i++) {
		if (requester.maps.map[i].id != 0)
			return &requester.maps.map[i];
	}
	return NULL;
}

TEST(wire_map, writes_and_reads_of_all_sizes)
{
	struct rwire_copy copy;
	uint32_t n;

	grant();
	run_mapped(RMEM_ACCESS_REMOTE_READ);
	run_mapped(RMEM_ACCESS_REMOTE_WRITE);
	for (n = 1; n <= SIZE - 8; n += n < 300 ? 1 : n / 3) {
		memset(memory, 0, SIZE);
		memset(local, (int)(n % 255) + 1, n);
		copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 3, n);
		TEST_EQ(run(&copy), RWIRE_COPY_DONE);
		TEST_ASSERT(copy.is_mapped);
		TEST_MEM(memory + 3, local, n);
		TEST_EQ(memory[2] | memory[3 + n], 0);
		memset(local, 0, SIZE);
		copy = copy_of(RMEM_ACCESS_REMOTE_READ, 3, n);
		TEST_EQ(run(&copy), RWIRE_COPY_DONE);
		TEST_ASSERT(copy.is_mapped);
		TEST_MEM(memory + 3, local, n);
		TEST_EQ(local[n], 0);
	}
}

TEST(wire_map, several_requests_and_sges)
{
	struct rwire_copy copy;

	grant();
	run_mapped(RMEM_ACCESS_REMOTE_WRITE);
	memset(local, 1, 100);
	memset(local + 100, 2, 100);
	memset(local + 200, 3, 100);
	copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, 150);
	copy.nb = 2;
	copy.range[1] = copy.range[0];
	copy.range[1].addr += 1000;
	copy.nb_local = 4;
	copy.local[1] = (struct iovec){local, 100};
	copy.local[2] = (struct iovec){local + 100, 100};
	copy.local[3] = (struct iovec){local + 200, 100};
	TEST_EQ(run(&copy), RWIRE_COPY_DONE);
	TEST_ASSERT(copy.is_mapped);
	TEST_EQ(copy.copied, 300);
	TEST_MEM(memory, local, 150);
	TEST_MEM(memory + 1000, local + 150, 150);
}

TEST(wire_map, range_beyond_the_key_is_not_copied)
{
	struct rwire_copy copy;

	grant();
	run_mapped(RMEM_ACCESS_REMOTE_WRITE);
	copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, SIZE - 63, 64);
	TEST_EQ(run(&copy), RWIRE_COPY_ASK);
	TEST_EQ(copy.copied, 0);
	copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, (uint64_t)-1, 64);
	TEST_EQ(run(&copy), RWIRE_COPY_ASK);
	/* A packet may have arrived before its QP failed. */
	copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, 64);
	TEST_OK(rmem_qp_set_error(pair.b));
	grant();
	TEST_EQ(run(&copy), RWIRE_COPY_ASK);
}

/* The target writes all fields of a grant. */
TEST(wire_map, range_beyond_the_file_is_not_copied)
{
	static const uint64_t offsets[] = {SIZE, SIZE - 63, UINT64_MAX, UINT64_MAX - 63};
	struct rwire_map_range range = {.length = 64};
	unsigned int i;

	grant();
	run_mapped(RMEM_ACCESS_REMOTE_WRITE);
	range.id = map_of_target()->id;
	TEST_ASSERT(rwire_maps_find(&requester.maps, &range, true) != NULL);
	for (i = 0; i < RTE_DIM(offsets); i++) {
		range.offset = offsets[i];
		TEST_ASSERT(rwire_maps_find(&requester.maps, &range, true) == NULL);
	}
	range.offset = 0;
	range.length = UINT64_MAX;
	TEST_ASSERT(rwire_maps_find(&requester.maps, &range, true) == NULL);
	range.length = 64;
	range.id += RSOFT_GRANT_FILES;
	TEST_ASSERT(rwire_maps_find(&requester.maps, &range, true) == NULL);
}

TEST(wire_map, key_without_write_is_mapped_read_only)
{
	struct rwire_copy copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, 64);
	struct rsoft_gate gate = {0};
	struct rwire_map *map;

	TEST_OK(rmem_mr_dereg(target));
	reg(RMEM_ACCESS_REMOTE_READ);
	grant();
	run_mapped(RMEM_ACCESS_REMOTE_READ);
	copy.range[0].rkey = target->rkey;
	TEST_EQ(run(&copy), RWIRE_COPY_ASK);
	map = map_of_target();
	TEST_ASSERT(map->base[0] != NULL && map->base[1] == NULL);
	TEST_ASSERT(rwire_maps_gate(&requester.maps, &shared->sentinel, &gate));
	TEST_ASSERT(rsoft_gate_begin(&gate));
	gate.open_value = shared->sentinel;
	TEST_EQ(rsoft_gate_copy(&gate, map->base[0], local, 64), 0);
	rsoft_gate_end(&gate);
}

TEST(wire_map, truncated_file_is_not_copied)
{
	struct rwire_copy copy;

	grant();
	run_mapped(RMEM_ACCESS_REMOTE_WRITE);
	TEST_EQ(ftruncate(file, 4096), 0);
	copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, SIZE);
	TEST_EQ(run(&copy), RWIRE_COPY_NO);
	TEST_ASSERT(copy.is_mapped && copy.copied < SIZE);
	copy = copy_of(RMEM_ACCESS_REMOTE_READ, 8192, 64);
	TEST_EQ(run(&copy), RWIRE_COPY_NO);
	TEST_EQ(ftruncate(file, SIZE), 0);
	copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, SIZE);
	TEST_EQ(run(&copy), RWIRE_COPY_DONE);
}

TEST(wire_map, file_is_unmapped_after_the_last_grant)
{
	grant();
	run_mapped(RMEM_ACCESS_REMOTE_WRITE);
	TEST_ASSERT(map_of_target() != NULL);
	TEST_OK(rmem_mr_dereg(target));
	rwire_copy_check(&requester, shared);
	TEST_ASSERT(map_of_target() == NULL);
	reg(PERF_ACCESS);
	grant();
	run_mapped(RMEM_ACCESS_REMOTE_WRITE);
}

static uint64_t
own_time_ns(void)
{
	struct timespec time;

	TEST_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Other threads wait for the lock of the check. */
TEST(wire_map, large_file_is_unmapped_by_several_checks)
{
	uint8_t *large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	struct rsoft_gate gate = {0};
	unsigned int nb = 0;
	struct rwire_map *map;
	uint64_t start;

	TEST_ASSERT(large != MAP_FAILED && ftruncate(file, LARGE) == 0);
	grant();
	run_mapped(RMEM_ACCESS_REMOTE_WRITE);
	map = map_of_target();
	TEST_EQ(map->size, LARGE);
	TEST_ASSERT(rwire_maps_gate(&requester.maps, &shared->sentinel, &gate) &&
			rsoft_gate_begin(&gate));
	gate.open_value = shared->sentinel;
	TEST_EQ(rsoft_gate_copy(&gate, map->base[1], large, LARGE), LARGE);
	rsoft_gate_end(&gate);
	TEST_OK(rmem_mr_dereg(target));
	start = own_time_ns();
	rwire_copy_check(&requester, shared);
	start = own_time_ns() - start;
	TEST_ASSERT(map_of_target() != NULL || start < 3000000);
	for (; map_of_target() != NULL && nb < 10000; nb++)
		rwire_copy_check(&requester, shared);
	TEST_ASSERT(map_of_target() == NULL);
	munmap(large, LARGE);
	reg(PERF_ACCESS);
}

/* A file with a name may have locks, which end when any descriptor of it is closed. */
TEST(wire_map, other_files_are_not_mapped)
{
	struct rwire_copy copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, 64);
	unsigned int i;

	grant();
	for (i = 0; i < RSOFT_GRANT_FILES; i++)
		shared->file[i].ino++;
	for (i = 0; i < 3; i++) {
		if (run(&copy) != RWIRE_COPY_DONE)
			test_stop(TEST_SKIPPED);
	}
	TEST_ASSERT(!copy.is_mapped);
}

/* Whether another process could lock a file. */
static bool
is_unlocked(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK ? 1 : 0);
	TEST_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status != 0;
}

/* The target has closed its descriptor, and its number has a file that this process has locked. */
TEST(wire_map, number_of_another_file_ends_no_locks)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct rwire_copy copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, 64);
	int other = memfd_create("other", MFD_CLOEXEC), kept = dup(file);
	bool is_lost;

	grant();
	TEST_ASSERT(other >= 0 && kept >= 0 && dup2(other, file) == file);
	TEST_EQ(fcntl(other, F_SETLK, &lock), 0);
	(void)run(&copy);
	(void)run(&copy);
	is_lost = is_unlocked(other);
	TEST_EQ(dup2(kept, file), file);
	close(kept);
	close(other);
	TEST_ASSERT(!copy.is_mapped);
	TEST_ASSERT(!is_lost);
}

TEST(wire_map, private_memory_is_not_mapped)
{
	uint64_t offset;
	void *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);

	TEST_ASSERT(map != MAP_FAILED);
	TEST_ASSERT(rsoft_grant_file_get(map, SIZE, false, &offset) == NULL);
	munmap(map, SIZE);
	TEST_ASSERT(rsoft_grant_file_get(local, SIZE, false, &offset) == NULL);
}

/* Offsets of the parts must be consecutive. */
TEST(wire_map, memory_of_two_mappings_is_one_range_of_the_file)
{
	const struct rsoft_grant_file *of;
	const size_t half = SIZE / 2;
	uint64_t offset = 0;
	uint8_t *map = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT(map != MAP_FAILED);
	TEST_ASSERT(mmap(map, half, PROT_READ, MAP_SHARED | MAP_FIXED, file, half) == map);
	TEST_ASSERT(mmap(map + half, half, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) ==
			map + half);
	TEST_ASSERT(rsoft_grant_file_get(map, SIZE, false, &offset) == NULL);
	TEST_ASSERT(rsoft_grant_file_get(map, half, true, &offset) == NULL);
	of = rsoft_grant_file_get(map, half, false, &offset);
	if (of != NULL) {
		TEST_EQ(offset, half);
		rsoft_grant_file_put(of->id);
	}
	munmap(map, SIZE);
}

TEST(wire_map, child_of_fork_has_no_mapping)
{
	struct rwire_copy copy;
	int status = -1;
	pid_t pid;

	grant();
	run_mapped(RMEM_ACCESS_REMOTE_WRITE);
	pid = fork();
	if (pid == 0) {
		copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, 64);
		(void)run(&copy);
		rwire_maps_close(&requester.maps);
		_exit(copy.is_mapped ? 1 : 0);
	}
	TEST_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid);
	TEST_EQ(status, 0);
	copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, 64);
	TEST_EQ(run(&copy), RWIRE_COPY_DONE);
	TEST_ASSERT(copy.is_mapped);
}

/* A child that ends with this process. */
static pid_t
start_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* Wait for a byte of a child; false: it has ended. */
static bool
await(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) == 1;
}

/* The requester in a child: copy until a copy is not complete. */
static void
child_writes(int fd)
{
	struct rwire_copy copy;
	bool is_reported = false;
	int i = 0;

	rwire_copy_connect(&requester, getppid(), geteuid());
	do {
		memset(local, 1 + i++ % 2, SIZE);
		copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, SIZE);
		if (run(&copy) != RWIRE_COPY_DONE)
			break;
		if (i >= 2 && !copy.is_mapped)
			_exit(TEST_SKIPPED);
		if (i >= 2 && !is_reported)
			is_reported = send(fd, "", 1, 0) == 1;
	} while (true);
	_exit(copy.is_mapped || copy.copied == 0 ? 0 : 1);
}

/* Start a child that is connected by a socket of its own, as the kernel reports it. */
static int
start_requester(pid_t *pid)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(name);
	int end = -1, fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	TEST_EQ(bind(fd, (struct sockaddr *)&name, sizeof(name.sun_family)), 0);
	TEST_ASSERT(getsockname(fd, (struct sockaddr *)&name, &size) == 0 && listen(fd, 1) == 0);
	*pid = start_child();
	if (*pid == 0) {
		close(fd);
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (connect(fd, (struct sockaddr *)&name, size) != 0 || !await(fd))
			_exit(2);
		child_writes(fd);
	}
	if (*pid > 0)
		end = accept(fd, NULL, NULL);
	close(fd);
	return end;
}

/* One round of the next case; false: a skipped round. */
static bool
stop_in_a_copy(void)
{
	int status = 0, fd;
	bool is_skipped;
	pid_t pid = 0;

	fd = start_requester(&pid);
	TEST_ASSERT(fd >= 0);
	rsoft_grant_close(peer);
	memset(shared, 0, sizeof(*shared));
	peer = rsoft_grant_open(rsoft_dev_of(&pair.b->obj), shared, fd);
	TEST_ASSERT(peer != NULL);
	grant();
	TEST_EQ(send(fd, "", 1, 0), 1);
	is_skipped = !await(fd);
	if (!is_skipped) {
		/* Until a copy is in progress. */
		while (__atomic_load_n(&memory[0], __ATOMIC_RELAXED) ==
				__atomic_load_n(&memory[SIZE - 1], __ATOMIC_RELAXED))
			sched_yield();
		kill(pid, SIGSTOP);
		TEST_EQ(waitpid(pid, &status, WUNTRACED), pid);
		TEST_OK(rmem_mr_dereg(target));
		memset(memory, 0x77, SIZE);
		kill(pid, SIGCONT);
	}
	TEST_EQ(waitpid(pid, &status, 0), pid);
	close(fd);
	if (is_skipped)
		return false;
	TEST_EQ(status, 0);
	memset(local, 0x77, SIZE);
	TEST_MEM(memory, local, SIZE);
	reg(PERF_ACCESS);
	return true;
}

TEST(wire_map, requester_stopped_in_a_copy_stores_nothing_after_the_revocation)
{
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		if (!stop_in_a_copy())
			test_stop(TEST_SKIPPED);
	}
}

/* Grant the memory by hand, in a child. */
static void
child_publish(const struct rsoft_grant_file *alive)
{
	struct rsoft_grant *set = rsoft_grant_set(shared, pair.b->qp_num, RKEY);
	const struct rsoft_grant_file *of;
	uint64_t offset;

	of = rsoft_grant_file_get(memory, SIZE, true, &offset);
	if (of == NULL || alive == NULL)
		_exit(TEST_SKIPPED);
	/* The parent has the same sentinel, which the child has inherited. */
	shared->alive = *alive;
	shared->file[of->id % RSOFT_GRANT_FILES] = *of;
	*set = (struct rsoft_grant){.version = 2,
			.rights = RMEM_ACCESS_REMOTE_WRITE,
			.qp_num = pair.b->qp_num,
			.rkey = RKEY,
			.iova = (uintptr_t)memory,
			.length = SIZE,
			.base = (uintptr_t)memory,
			.file_id = of->id};
}

/* The target in a child, which is killed. */
static void
child_grants(int fd)
{
	child_publish(rsoft_grant_file_alive());
	(void)send(fd, "", 1, 0);
	pause();
}

/* The same; it calls exec() after a byte. */
static void
child_grants_and_execs(int fd)
{
	child_publish(rsoft_grant_file_alive());
	(void)send(fd, "", 1, 0);
	(void)await(fd);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	execlp("sleep", "sleep", "1000", NULL);
	_exit(3);
}

/* Without restartable sequences nothing is mapped. */
static void
need_rseq(void)
{
	struct rsoft_gate gate;

	if (!rsoft_gate_begin(&gate))
		test_stop(TEST_SKIPPED);
}

/* Threads without restartable sequences, as with glibc.pthread.rseq=0. */
static void *
run_without_rseq(void *copy)
{
	struct rsoft_gate gate;

	if (!rsoft_gate_begin(&gate) ||
			syscall(SYS_rseq, gate.rseq, RSEQ_SIZE, RSEQ_UNREGISTER, RSEQ_SIGNATURE) !=
					0)
		return NULL;
	(void)run(copy);
	(void)run(copy);
	return copy;
}

TEST(wire_map, thread_without_rseq_maps_nothing)
{
	struct rwire_copy copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, 64);
	void *result = NULL;
	pthread_t thread;

	need_rseq();
	grant();
	TEST_EQ(pthread_create(&thread, NULL, run_without_rseq, &copy), 0);
	TEST_EQ(pthread_join(thread, &result), 0);
	if (result == NULL || copy.copied != 64)
		test_stop(TEST_SKIPPED);
	TEST_ASSERT(!copy.is_mapped);
	TEST_ASSERT(map_of_target() == NULL);
	run_mapped(RMEM_ACCESS_REMOTE_WRITE);
}

/* Start the target in a child, and connect to it after it has granted; fd is a socket to it. */
static pid_t
start_target(void (*target_main)(int fd), int *fd, struct rwire_copy *copy)
{
	int fds[2];
	pid_t pid;

	need_rseq();
	TEST_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	pid = start_child();
	if (pid == 0) {
		close(fds[0]);
		target_main(fds[1]);
		_exit(4);
	}
	close(fds[1]);
	TEST_ASSERT(pid > 0);
	if (!await(fds[0])) {
		waitpid(pid, NULL, 0);
		test_stop(TEST_SKIPPED);
	}
	rwire_copy_connect(&requester, pid, geteuid());
	*copy = copy_of(RMEM_ACCESS_REMOTE_WRITE, 0, 64);
	copy->range[0].rkey = RKEY;
	*fd = fds[0];
	return pid;
}

static void
kill_target(pid_t pid, int fd)
{
	kill(pid, SIGKILL);
	TEST_EQ(waitpid(pid, NULL, 0), pid);
	close(fd);
}

static void
end_target(bool is_exec)
{
	struct rwire_copy copy;
	int fd;
	pid_t pid = start_target(is_exec ? child_grants_and_execs : child_grants, &fd, &copy);

	memset(local, 1, 64);
	(void)run(&copy);
	(void)run(&copy);
	TEST_ASSERT(copy.is_mapped);
	TEST_MEM(memory, local, 64);
	if (is_exec) {
		TEST_EQ(send(fd, "", 1, 0), 1);
		TEST_ASSERT(!await(fd)); /* exec() closes it */
	} else {
		kill_target(pid, fd);
	}
	memset(local, 2, 64);
	(void)run(&copy);
	TEST_ASSERT(!copy.is_mapped);
	TEST_EQ(memory[0], 1);
	if (is_exec)
		kill_target(pid, fd);
}

TEST_CALL(wire_map, nothing_is_copied_after_the_target_was_killed, end_target(false));
TEST_CALL(wire_map, nothing_is_copied_after_exec, end_target(true));

static void *
hold_main(void *of)
{
	*(const struct rsoft_grant_file **)of = rsoft_grant_file_alive();
	return NULL;
}

/* The target in a child: the thread that granted ends; after a byte, another one grants. */
static void
child_changes_threads(int fd)
{
	const struct rsoft_grant_file *alive = NULL;
	pthread_t thread;

	if (pthread_create(&thread, NULL, hold_main, &alive) != 0 ||
			pthread_join(thread, NULL) != 0)
		_exit(2);
	child_publish(alive);
	(void)send(fd, "", 1, 0);
	(void)await(fd);
	(void)rsoft_grant_file_alive();
	(void)send(fd, "", 1, 0);
	pause();
}

TEST(wire_map, grant_is_requested_again_after_the_granting_thread_has_ended)
{
	struct rwire_copy copy;
	int fd;
	pid_t pid = start_target(child_changes_threads, &fd, &copy);

	if (run(&copy) != RWIRE_COPY_DONE)
		test_stop(TEST_SKIPPED); /* the kernel does not permit it */
	TEST_EQ(run(&copy), RWIRE_COPY_ASK);
	TEST_EQ(copy.copied, 0);
	TEST_EQ(send(fd, "", 1, 0), 1);
	TEST_ASSERT(await(fd));
	TEST_EQ(run(&copy), RWIRE_COPY_DONE);
	TEST_ASSERT(copy.is_mapped);
	kill_target(pid, fd);
}

/* In a child, no thread of which holds it yet. */
static int
hold_by_two_threads(void)
{
	const struct rsoft_grant_file *of = NULL;
	const uint32_t *word;
	pthread_t thread;

	if (pthread_create(&thread, NULL, hold_main, &of) != 0 || pthread_join(thread, NULL) != 0)
		return 1;
	if (of == NULL)
		return TEST_SKIPPED;
	word = mmap(NULL, of->size, PROT_READ, MAP_SHARED, (int)of->fd, 0);
	/* The kernel has noted the end of the thread. */
	if (word == MAP_FAILED || __atomic_load_n(word, __ATOMIC_RELAXED) >> 30 != 1)
		return 2;
	if (rsoft_grant_file_alive() != of)
		return 3;
	if (__atomic_load_n(word, __ATOMIC_RELAXED) != (uint32_t)gettid())
		return 4;
	/* Peers can't write to it. */
	return mmap(NULL, of->size, PROT_WRITE, MAP_SHARED, (int)of->fd, 0) == MAP_FAILED ? 0 : 5;
}

/* The thread that granted first may end before the process. */
TEST(wire_map, another_thread_continues_to_hold_the_futex)
{
	int status = -1;
	pid_t pid = start_child();

	if (pid == 0)
		_exit(hold_by_two_threads());
	TEST_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == TEST_SKIPPED)
		test_stop(TEST_SKIPPED);
	TEST_EQ(WEXITSTATUS(status), 0);
}

static void
setup(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			0);
	file = memfd_create("target", MFD_CLOEXEC);
	TEST_ASSERT(shared != MAP_FAILED && file >= 0 && ftruncate(file, SIZE) == 0);
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	TEST_ASSERT(memory != MAP_FAILED);
	TEST_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, connection), 0);
	perf_pair_open_two(&pair, "max_qp=8", "max_qp=8");
	reg(PERF_ACCESS);
	peer = rsoft_grant_open(rsoft_dev_of(&pair.b->obj), shared, connection[0]);
	TEST_ASSERT(peer != NULL);
	rwire_copy_connect(&requester, getpid(), geteuid());
}

static void
teardown(void)
{
	rwire_maps_close(&requester.maps);
	rsoft_grant_close(peer);
	close(connection[0]);
	close(connection[1]);
	TEST_OK(rmem_mr_dereg(target));
	perf_pair_close(&pair);
	munmap(memory, SIZE);
	close(file);
	munmap(shared, sizeof(*shared));
}

TEST_SUITE(wire_map, setup, teardown);
