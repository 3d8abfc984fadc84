/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A WRITE or READ between two processes of a host needs no CPU of the target, which still decides
 * which of them are permitted, and until when.
 */

#include <signal.h>
#include <stddef.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "own_qp.h"

#define SIZE   (3u << 20)
#define LONG   (SIZE / 2 + 3)
#define PIECE  (1u << 20) /* bytes that one access of a peer copies */
#define ROUNDS 20
#define DEPTH  4
#define ACCESS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Requests to the other process. */
enum command {
	CONNECT,   /* a new QP with the peer's, and a new MR */
	CHECK,     /* whether all bytes have a value */
	DEREG,     /* then write the last bytes of a piece that a peer copies, and of LONG */
	CHECK_END, /* whether these have a value */
	REREG,     /* without the right to write */
	READ_ONLY, /* the memory, not the MR */
	UNMAP,
	FAIL, /* move the QP to ERR */
	FORK, /* and write in the child */
	WINDOW,
	UNWINDOW,
	QUIT,
};

struct message {
	enum command command;
	uint16_t lid;
	uint32_t qp_num;
	uint32_t rkey;
	uint64_t addr;
	uint8_t value;
};

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint8_t *buf;
	struct message peer; /* its answer to CONNECT */
	pid_t pid;
	int fd;
	int file; /* of buf, if it is shared */
};

static void
send_message(const struct side *side, const struct message *message)
{
	HOLDS(write(side->fd, message, sizeof(*message)) == (ssize_t)sizeof(*message));
}

static bool
receive(const struct side *side, struct message *message)
{
	return read(side->fd, message, sizeof(*message)) == (ssize_t)sizeof(*message);
}

/* Whether the memory is that of a file, which the other process maps. */
static bool is_shared;

static void
map(struct side *side)
{
	int flags = is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;
	char name[32];

	snprintf(name, sizeof(name), "of-%d", (int)getpid());
	if (is_shared) {
		fd = side->file = memfd_create(name, MFD_CLOEXEC);
		HOLDS(fd >= 0 && ftruncate(fd, SIZE) == 0);
	}
	side->buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);
	HOLDS(side->buf != MAP_FAILED);
	memset(side->buf, 0, SIZE);
}

static void
open_side(struct side *side)
{
	side->context = open_device("soft0");
	side->pd = ibv_alloc_pd(side->context);
	side->cq = ibv_create_cq(side->context, 64, NULL, NULL, 0);
	HOLDS(side->pd != NULL && side->cq != NULL);
}

/* A QP and an MR, and what the peer needs to know of them. */
static void
create(struct side *side, struct message *own)
{
	struct ibv_port_attr port;

	if (side->buf == NULL)
		map(side);
	side->mr = ibv_reg_mr(side->pd, side->buf, SIZE,
			ACCESS | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	side->qp = create_qp_of(IBV_QPT_RC, side->pd, side->cq, NULL,
			(struct ibv_qp_cap){DEPTH, DEPTH, 2, 1, 64});
	HOLDS(side->mr != NULL && side->qp != NULL);
	HOLDS(ibv_query_port(side->context, 1, &port) == 0);
	own->lid = port.lid;
	own->qp_num = side->qp->qp_num;
	own->rkey = side->mr->rkey;
	own->addr = (uintptr_t)side->buf;
}

/* timeout is that of verbs; 0: requests never fail for lack of an answer. */
static void
join(struct side *side, const struct message *peer, uint8_t timeout)
{
	const struct ibv_qp_attr attr = {.qp_access_flags = ACCESS,
			.path_mtu = IBV_MTU_4096,
			.dest_qp_num = peer->qp_num,
			.max_rd_atomic = 1,
			.timeout = timeout,
			.retry_cnt = 1,
			.max_dest_rd_atomic = 1};

	connect_qp_at(side->qp, attr, peer->lid);
}

static void
destroy(struct side *side)
{
	if (side->qp != NULL)
		HOLDS(ibv_destroy_qp(side->qp) == 0);
	if (side->mr != NULL)
		HOLDS(ibv_dereg_mr(side->mr) == 0);
	if (side->buf != NULL)
		munmap(side->buf, SIZE);
	if (side->buf != NULL && is_shared)
		close(side->file);
	side->qp = NULL;
	side->mr = NULL;
	side->buf = NULL;
}

/* The target. */

static bool
has_value(const struct side *side, uint8_t value)
{
	uint32_t i;

	for (i = 0; i < SIZE && side->buf[i] == value; i++)
		;
	return i == SIZE;
}

static void
fork_writer(void *arg)
{
	struct side *side = arg;

	side->pid = fork();
	if (side->pid == 0) {
		memset(side->buf, 0xff, SIZE);
		_exit(0);
	}
}

/* Forked by a thread that is cancelled, which a child must not notice in fork(). */
static void
write_in_child(struct side *side)
{
	HOLDS(returns_cancelled(fork_writer, side));
	wait_child(side->pid);
}

static void
bind_window(struct side *side, struct message *message)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
			.bind_info = {side->mr, (uintptr_t)side->buf, SIZE, ACCESS}};
	struct ibv_wc wc;

	side->mw = ibv_alloc_mw(side->pd, IBV_MW_TYPE_1);
	HOLDS(side->mw != NULL && ibv_bind_mw(side->qp, side->mw, &bind) == 0);
	while (ibv_poll_cq(side->cq, 1, &wc) == 0)
		;
	HOLDS(wc.status == IBV_WC_SUCCESS);
	message->rkey = side->mw->rkey;
}

static void
execute(struct side *side, struct message *message)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct message peer = *message;

	switch (message->command) {
	case CONNECT:
		destroy(side);
		create(side, message);
		join(side, &peer, 0);
		break;
	case CHECK:
		message->value = has_value(side, message->value);
		break;
	case DEREG:
		HOLDS(ibv_dereg_mr(side->mr) == 0);
		side->mr = NULL;
		side->buf[PIECE - 1] = side->buf[LONG - 1] = message->value;
		break;
	case CHECK_END:
		message->value = side->buf[PIECE - 1] == message->value &&
				side->buf[LONG - 1] == message->value;
		break;
	case REREG:
		HOLDS(ibv_rereg_mr(side->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_REMOTE_READ) == 0);
		break;
	case READ_ONLY:
		HOLDS(mprotect(side->buf, SIZE, PROT_READ) == 0);
		break;
	case UNMAP:
		HOLDS(munmap(side->buf, SIZE) == 0);
		side->buf = NULL;
		break;
	case FAIL:
		HOLDS(ibv_modify_qp(side->qp, &err, IBV_QP_STATE) == 0);
		break;
	case FORK:
		write_in_child(side);
		break;
	case WINDOW:
		bind_window(side, message);
		break;
	case UNWINDOW:
		HOLDS(ibv_dealloc_mw(side->mw) == 0);
		break;
	case QUIT:
		break;
	}
}

static void
target_main(int fd)
{
	struct side side = {.fd = fd};
	struct message message;

	open_side(&side);
	while (receive(&side, &message) && message.command != QUIT) {
		execute(&side, &message);
		send_message(&side, &message);
	}
	destroy(&side);
}

/* The requester. */

static struct message
ask(const struct side *side, enum command command, uint8_t value)
{
	struct message message = {.command = command, .value = value};

	send_message(side, &message);
	HOLDS(receive(side, &message));
	return message;
}

static void
connect_sides(struct side *side, uint8_t timeout)
{
	struct message own = {.command = CONNECT};

	destroy(side);
	create(side, &own);
	send_message(side, &own);
	HOLDS(receive(side, &side->peer));
	join(side, &side->peer, timeout);
}

static void
post(struct side *side, enum ibv_wr_opcode opcode, uint64_t offset, uint32_t length)
{
	struct ibv_sge sge[2] = {{(uintptr_t)side->buf, length / 2, side->mr->lkey},
			{(uintptr_t)side->buf + length / 2, length - length / 2, side->mr->lkey}};
	struct ibv_send_wr *bad,
			wr = {.sg_list = sge,
					.num_sge = 2,
					.opcode = opcode,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = {side->peer.addr + offset, side->peer.rkey}};

	HOLDS(ibv_post_send(side->qp, &wr, &bad) == 0);
}

static enum ibv_wc_status
wait_for(struct side *side)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(side->cq, 1, &wc);
	while (n == 0);
	HOLDS(n == 1);
	return wc.status;
}

static enum ibv_wc_status
transfer(struct side *side, enum ibv_wr_opcode opcode, uint64_t offset, uint32_t length)
{
	post(side, opcode, offset, length);
	return wait_for(side);
}

static void
stop(const struct side *side)
{
	int status;

	HOLDS(kill(side->pid, SIGSTOP) == 0);
	HOLDS(waitpid(side->pid, &status, WUNTRACED) == side->pid && WIFSTOPPED(status));
}

static void
write_long(void *side)
{
	post(side, IBV_WR_RDMA_WRITE, 0, LONG);
}

/* The first request asks the target; afterwards the target may be stopped. */
static void
target_does_nothing(struct side *side)
{
	connect_sides(side, 0);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, 8) == IBV_WC_SUCCESS);
	stop(side);
	memset(side->buf, 5, SIZE);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, LONG, SIZE - LONG) == IBV_WC_SUCCESS);
	/* The post wakes a thread, which copies the rest. */
	HOLDS(returns_cancelled(write_long, side) && wait_for(side) == IBV_WC_SUCCESS);
	memset(side->buf, 0, SIZE);
	HOLDS(transfer(side, IBV_WR_RDMA_READ, 0, SIZE) == IBV_WC_SUCCESS);
	HOLDS(has_value(side, 5));
	HOLDS(kill(side->pid, SIGCONT) == 0);
	HOLDS(ask(side, CHECK, 5).value);
	if (is_shared)
		return;
	/* A copy on write of the target's child is not that of the target. */
	ask(side, FORK, 0);
	HOLDS(ask(side, CHECK, 5).value);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, SIZE) == IBV_WC_SUCCESS);
	HOLDS(ask(side, CHECK, 5).value);
}

/* A WRITE completes only when a stopped target continues. */
static void
write_needs_target(struct side *side)
{
	struct ibv_wc wc;
	int i;

	stop(side);
	post(side, IBV_WR_RDMA_WRITE, 0, LONG);
	for (i = 0; i < 1000; i++)
		HOLDS(ibv_poll_cq(side->cq, 1, &wc) == 0);
	HOLDS(kill(side->pid, SIGCONT) == 0);
	HOLDS(wait_for(side) == IBV_WC_SUCCESS);
}

/* With a rate limit, a stopped target answers no WRITE; when the limit ends, none is needed. */
static void
limited_requests_are_packets(struct side *side)
{
	struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1000000};

	connect_sides(side, 0);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	HOLDS(ibv_modify_qp_rate_limit(side->qp, &limit) == 0);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	write_needs_target(side);
	limit.rate_limit = 0;
	HOLDS(ibv_modify_qp_rate_limit(side->qp, &limit) == 0);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	stop(side);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	HOLDS(kill(side->pid, SIGCONT) == 0);
}

static void
request_past_end_is_refused(struct side *side)
{
	connect_sides(side, 0);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, 8) == IBV_WC_SUCCESS);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, SIZE - 8, 8) == IBV_WC_SUCCESS);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, SIZE - 8, 9) == IBV_WC_REM_ACCESS_ERR);
}

/* Requests that were permitted are refused when the target has revoked the access. */
static void
revoked_access_is_refused(struct side *side, enum command command, enum ibv_wc_status status)
{
	connect_sides(side, status == IBV_WC_RETRY_EXC_ERR ? 8 : 0);
	if (command == UNWINDOW)
		side->peer.rkey = ask(side, WINDOW, 0).rkey;
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	ask(side, command, 0);
	if (command == REREG)
		HOLDS(transfer(side, IBV_WR_RDMA_READ, 0, LONG) == IBV_WC_SUCCESS);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == status);
}

/* Each of these ends the access to private and to shared memory. */
static void
revocations_end_access(struct side *side)
{
	request_past_end_is_refused(side);
	revoked_access_is_refused(side, DEREG, IBV_WC_REM_ACCESS_ERR);
	revoked_access_is_refused(side, REREG, IBV_WC_REM_ACCESS_ERR);
	revoked_access_is_refused(side, UNWINDOW, IBV_WC_REM_ACCESS_ERR);
	revoked_access_is_refused(side, FAIL, IBV_WC_RETRY_EXC_ERR);
}

/* No byte is written after ibv_dereg_mr(), while requests are executed one after another. */
static void
dereg_ends_access(struct side *side)
{
	struct message message = {.command = DEREG, .value = 9};
	int round;

	for (round = 0; round < ROUNDS; round++) {
		connect_sides(side, 0);
		HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, 8) == IBV_WC_SUCCESS);
		send_message(side, &message);
		while (transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS)
			;
		HOLDS(receive(side, &message));
		HOLDS(ask(side, CHECK_END, 9).value);
	}
}

/* The kernel permits no direct access, as in some containers. */
static void
forbid(void)
{
	struct sock_filter filter[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1 /* EPERM */),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	HOLDS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	HOLDS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void
forbidden_access_uses_packets(struct side *side)
{
	connect_sides(side, 0);
	forbid();
	memset(side->buf, 3, SIZE);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, SIZE) == IBV_WC_SUCCESS);
	HOLDS(transfer(side, IBV_WR_RDMA_READ, 0, SIZE) == IBV_WC_SUCCESS);
	HOLDS(ask(side, CHECK, 3).value);
	write_needs_target(side);
}

/* Start a process that executes requests of the other one. */
static void
start(struct side *side)
{
	int fds[2];

	HOLDS(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
	side->pid = fork();
	HOLDS(side->pid >= 0);
	if (side->pid == 0) {
		/* Also if it is stopped. */
		HOLDS(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0);
		close(fds[0]);
		target_main(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	side->fd = fds[0];
}

static int nb_rounds;

/* Requests until it is killed. */
static void
flood(int fd)
{
	struct side side = {.fd = fd};
	struct message first;

	open_side(&side);
	HOLDS(receive(&side, &first));
	connect_sides(&side, 0);
	HOLDS(transfer(&side, IBV_WR_RDMA_WRITE, 0, 8) == IBV_WC_SUCCESS);
	/* A child by a system call keeps all sockets open, until the target closes its own. */
	if (first.value != 0 && syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0)
		_exit(read(fd, &first, sizeof(first)) == 0 ? 0 : 1);
	send_message(&side, &first);
	for (;;)
		transfer(&side, IBV_WR_RDMA_WRITE, 0, LONG);
}

/* The target frees its MR when a requester was killed, at any time. */
static void
killed_requester_is_not_waited_for(void)
{
	struct side side = {0};
	struct message message = {.command = CHECK, .value = nb_rounds % 2};
	int fds[2], status;

	HOLDS(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
	side.pid = fork();
	HOLDS(side.pid >= 0);
	if (side.pid == 0) {
		close(fds[0]);
		flood(fds[1]);
	}
	side.fd = fds[0];
	open_side(&side);
	send_message(&side, &message);
	HOLDS(receive(&side, &message) && message.command == CONNECT);
	execute(&side, &message);
	send_message(&side, &message);
	HOLDS(receive(&side, &message) && message.command == CHECK);
	HOLDS(kill(side.pid, SIGKILL) == 0);
	destroy(&side);
	HOLDS(waitpid(side.pid, &status, 0) == side.pid && WIFSIGNALED(status));
}

/* It has an address of its own from the begin of exec() on: the program is not relocated. */
static uint8_t fixed[SIZE];

/* The program that exec() starts: no request reaches it. */
static int
exec_main(int fd)
{
	const struct side side = {.buf = fixed, .fd = fd};
	struct message message = {0};
	bool is_zero = has_value(&side, 0);

	send_message(&side, &message);
	return receive(&side, &message) && is_zero && has_value(&side, 0) ? 0 : 1;
}

static void
target_exec(int fd)
{
	struct side side = {.buf = fixed, .fd = fd};
	struct message own, peer;
	char text[16];

	open_side(&side);
	HOLDS(receive(&side, &peer));
	create(&side, &own);
	join(&side, &peer, 0);
	send_message(&side, &own);
	HOLDS(receive(&side, &peer));
	snprintf(text, sizeof(text), "%d", fd);
	execl("/proc/self/exe", "test-direct", text, NULL);
	_exit(2);
}

/* Requests until the program that exec() starts runs. */
static void
exec_of_target_ends_access(void)
{
	struct message message = {0};
	struct side side = {0};
	struct ibv_wc wc;
	int fds[2];

	HOLDS(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0);
	side.pid = fork();
	if (side.pid == 0)
		target_exec(fds[1]);
	side.fd = fds[0];
	open_side(&side);
	connect_sides(&side, 0);
	memset(side.buf, 7, SIZE);
	HOLDS(transfer(&side, IBV_WR_RDMA_WRITE, 0, 8) == IBV_WC_SUCCESS);
	send_message(&side, &message);
	post(&side, IBV_WR_RDMA_WRITE, 0, PIECE);
	while (recv(side.fd, &message, sizeof(message), MSG_DONTWAIT) < 0) {
		if (ibv_poll_cq(side.cq, 1, &wc) == 1)
			post(&side, IBV_WR_RDMA_WRITE, 0, 4096);
	}
	send_message(&side, &message);
	wait_child(side.pid);
}

/* Whether the process has mapped a file of the target. */
static bool
maps_target(const struct side *side)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], name[32];
	bool is_found = false;

	snprintf(name, sizeof(name), "/memfd:of-%d ", (int)side->pid);
	while (maps != NULL && !is_found && fgets(line, sizeof(line), maps) != NULL)
		is_found = strstr(line, name) != NULL;
	if (maps != NULL)
		fclose(maps);
	return is_found;
}

/* The last access is revoked, so the file must be unmapped, soon. */
static void
file_is_unmapped(struct side *side)
{
	struct ibv_wc wc;

	connect_sides(side, 0);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	printf("the file of the target is %smapped\n", maps_target(side) ? "" : "not ");
	ask(side, DEREG, 0);
	while (maps_target(side))
		HOLDS(ibv_poll_cq(side->cq, 1, &wc) == 0);
}

/* With other arguments of the devices of a side; nothing is mapped then. */
static void
access_unmapped(struct side *side, const char *target, const char *own)
{
	HOLDS(setenv("RMEM_IBV", target, 1) == 0);
	start(side);
	HOLDS(setenv("RMEM_IBV", own, 1) == 0);
	open_side(side);
	connect_sides(side, 0);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	HOLDS(transfer(side, IBV_WR_RDMA_READ, 0, LONG) == IBV_WC_SUCCESS);
	HOLDS(transfer(side, IBV_WR_RDMA_WRITE, 0, LONG) == IBV_WC_SUCCESS);
	HOLDS(!maps_target(side));
}

static void
requester_without_guard_maps_nothing(void)
{
	struct side side = {0};
	struct sigaction action;

	access_unmapped(&side, "soft0", "soft0,odp_guard=0");
	HOLDS(sigaction(SIGBUS, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
	kill(side.pid, SIGKILL);
}

static void
target_without_guard_is_not_mapped(void)
{
	struct side side = {0};

	access_unmapped(&side, "soft0,odp_guard=0", "soft0");
	kill(side.pid, SIGKILL);
}

static void
memory_that_was_unmapped_is_detected_with_sanitize(void)
{
	struct side side = {0};

	access_unmapped(&side, "soft0,sanitize=1", "soft0");
	revoked_access_is_refused(&side, READ_ONLY, IBV_WC_REM_ACCESS_ERR);
	revoked_access_is_refused(&side, UNMAP, IBV_WC_REM_ACCESS_ERR);
	kill(side.pid, SIGKILL);
}

static void
run_shared(void)
{
	struct side side = {0};

	for (; nb_rounds < ROUNDS; nb_rounds++)
		run_in_child(killed_requester_is_not_waited_for);
	run_in_child(requester_without_guard_maps_nothing);
	run_in_child(target_without_guard_is_not_mapped);
	run_in_child(memory_that_was_unmapped_is_detected_with_sanitize);
	start(&side);
	open_side(&side);
	target_does_nothing(&side);
	file_is_unmapped(&side);
	revocations_end_access(&side);
	limited_requests_are_packets(&side);
	dereg_ends_access(&side);
	kill(side.pid, SIGKILL);
	printf("access by mapping is that which the target permits\n");
}

int
main(int argc, char **argv)
{
	struct side side = {0};

	is_shared = argc == 2 && strcmp(argv[1], "shared") == 0;
	if (is_shared) {
		run_shared();
		return 0;
	}
	if (argc == 2)
		return exec_main((int)strtol(argv[1], NULL, 10));
	for (; nb_rounds < ROUNDS; nb_rounds++) {
		run_in_child(killed_requester_is_not_waited_for);
		run_in_child(exec_of_target_ends_access);
	}
	start(&side);
	open_side(&side);
	target_does_nothing(&side);
	revocations_end_access(&side);
	revoked_access_is_refused(&side, READ_ONLY, IBV_WC_REM_ACCESS_ERR);
	revoked_access_is_refused(&side, UNMAP, IBV_WC_REM_ACCESS_ERR);
	limited_requests_are_packets(&side);
	dereg_ends_access(&side);
	forbidden_access_uses_packets(&side);
	kill(side.pid, SIGKILL);
	printf("direct access is that which the target permits\n");
	return 0;
}
