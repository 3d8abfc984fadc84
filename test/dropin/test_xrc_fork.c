/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A process with an XRC domain, or with channels of shared memory, calls fork() when another thread
 * has just created a descriptor: this program has the system calls that create them, which start
 * that thread. The process is killed, and its child lives on: no connection and no name is left.
 * fork() may wait until the descriptor is listed.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "xrc_process.h"

static int forked[2]; /* a pipe: a byte for each fork() */
static int armed;     /* system call after which fork() is called, or 0; atomic */
static pid_t forker;  /* thread that calls fork(); atomic */
static bool is_done;  /* it has returned; atomic */
static uint32_t kind; /* of sockets: index of prefixes */

static const char *const prefixes[] = {"rmem-xrc/", "rmem-shm/"};

static void *
run_forker(void *pipe_fd)
{
	__atomic_store_n(&forker, gettid(), __ATOMIC_RELEASE);
	fork_waiting(*(const int *)pipe_fd);
	__atomic_store_n(&is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Call fork() in another thread, until it returns or waits. */
static void
fork_after(int number)
{
	pthread_t thread;
	pid_t tid;

	if (!__atomic_compare_exchange_n(
			    &armed, &number, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	HOLDS(pthread_create(&thread, NULL, run_forker, &forked[1]) == 0);
	HOLDS(pthread_detach(thread) == 0);
	do {
		sched_yield();
		tid = __atomic_load_n(&forker, __ATOMIC_ACQUIRE);
	} while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE) && (tid == 0 || !is_asleep(tid)));
}

/* Whether a socket, or its other end, has a name of the kind. */
static bool
is_wanted(int (*get_name)(int fd, struct sockaddr *name, socklen_t *len), int fd)
{
	struct sockaddr_un name = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof(name);

	return get_name(fd, (struct sockaddr *)&name, &len) == 0 && name.sun_family == AF_UNIX &&
			strncmp(name.sun_path + 1, prefixes[kind], strlen(prefixes[kind])) == 0;
}

int
socket(int domain, int type, int protocol)
{
	int fd = (int)syscall(SYS_socket, domain, type, protocol);

	if (fd >= 0 && domain == AF_UNIX)
		fork_after(SYS_socket);
	return fd;
}

int
listen(int fd, int backlog)
{
	int ret = (int)syscall(SYS_listen, fd, backlog);

	if (ret == 0 && is_wanted(getsockname, fd))
		fork_after(SYS_listen);
	return ret;
}

int
connect(int fd, __CONST_SOCKADDR_ARG name, socklen_t len)
{
	int ret = (int)syscall(SYS_connect, fd, name.__sockaddr__, len);

	if (ret == 0 && is_wanted(getpeername, fd))
		fork_after(SYS_connect);
	return ret;
}

int
accept4(int listener, __SOCKADDR_ARG name, socklen_t *len, int flags)
{
	int fd = (int)syscall(SYS_accept4, listener, name.__sockaddr__, len, flags);

	if (fd >= 0 && is_wanted(getsockname, fd))
		fork_after(SYS_accept4);
	return fd;
}

static int
open_qp(uint32_t slot, uint32_t number)
{
	struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
					IBV_QP_OPEN_ATTR_TYPE,
			.qp_num = number,
			.xrcd = own.xrcd,
			.qp_type = IBV_QPT_XRC_RECV};

	own.qp[slot] = ibv_open_qp(own.context, &attr);
	return own.qp[slot] != NULL ? 0 : errno;
}

/* To an SRQ, by the first QP of this process or the peer; the QPs remain. */
static void
send_to(const struct command *command, struct reply *reply)
{
	struct ibv_sge sge = {(uintptr_t)own.mem, 1, own.mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};

	if (command->b != 0) {
		connect_to(own.qp[1], command->b, &command->gid, command->lid, 7);
	} else {
		connect_to(own.qp[0], own.qp[1]->qp_num, &own.gid, own.lid, 7);
		connect_to(own.qp[1], own.qp[0]->qp_num, &own.gid, own.lid, 7);
	}
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.qp_type.xrc.remote_srqn = command->a;
	HOLDS(ibv_post_send(own.qp[1], &wr, &bad) == 0);
	reply->wc = wait_wc(own.cq);
}

static void
execute(const struct command *command, struct reply *reply)
{
	switch (command->op) {
	case ARM:
		kind = command->b;
		__atomic_store_n(&armed, (int)command->a, __ATOMIC_RELEASE);
		break;
	case OPEN:
		reply->err = open_qp(command->a, command->b);
		break;
	case PREPARE:
		own.qp[1] = create_send_qp();
		reply->a = own.qp[1]->qp_num;
		break;
	case SEND:
		send_to(command, reply);
		break;
	default:
		HOLDS(command->op == DESTROY);
		reply->err = ibv_destroy_qp(own.qp[command->a]);
		own.qp[command->a] = NULL;
	}
}

#define OK(child, op, a, b) HOLDS(call(child, op, a, b).err == 0)

static struct child a, b;
static char ids[64]; /* of the file, in names */

/*
 * Sockets of a kind whose names contain a text; not connections that are never accepted, whose
 * inode is 0.
 */
static unsigned int
nb_sockets(const char *prefix, const char *text)
{
	FILE *f = fopen("/proc/net/unix", "r");
	unsigned int nb = 0;
	char line[256];

	HOLDS(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		nb += strstr(line, prefix) != NULL && strstr(line, text) != NULL &&
				strstr(line, " 0 @") == NULL;
	fclose(f);
	return nb;
}

static unsigned int
nb_xrc(void)
{
	return nb_sockets(" @rmem-xrc/", ids);
}

/* Kill a process that has called fork(). */
static void
kill_forked(struct child *child)
{
	char byte;

	HOLDS(read(forked[0], &byte, 1) == 1);
	kill_child(child);
}

/* The same; its descriptors of XRC are closed some time later. */
static void
kill_xrc(struct child *child, unsigned int nb)
{
	kill_forked(child);
	while (nb_xrc() != nb)
		sched_yield();
}

static struct child
start_with_domain(void)
{
	static unsigned int n = 4;
	struct child child = start(n++, 0);

	OK(&child, OPEN_DOMAIN, 0, 0);
	return child;
}

static void
opening_the_domain(int number)
{
	const unsigned int nb = nb_xrc();
	struct child child = start(3, 0);

	call(&child, ARM, (uint32_t)number, 0);
	OK(&child, OPEN_DOMAIN, 0, 0);
	kill_xrc(&child, nb);
}

static void
creating_a_qp_or_srq(enum op op)
{
	const unsigned int nb = nb_xrc();
	struct child child = start_with_domain();

	call(&child, ARM, SYS_listen, 0);
	call(&child, op, 0, 0);
	kill_xrc(&child, nb);
}

static void
opening_a_qp(int number, uint32_t qp_num)
{
	const unsigned int nb = nb_xrc();
	struct child child = start_with_domain();

	call(&child, ARM, (uint32_t)number, 0);
	OK(&child, OPEN, 2, qp_num);
	kill_xrc(&child, nb);
}

static void
accepting_an_opener(void)
{
	const unsigned int nb = nb_xrc();
	struct child child = start_with_domain();
	const struct reply owner = call(&child, CREATE_QP, 0, 0);

	call(&child, ARM, SYS_accept4, 0);
	OK(&b, OPEN, 2, owner.a);
	kill_xrc(&child, nb);
	OK(&b, DESTROY, 2, 0);
}

static void
sending_to_another_process(int number, uint32_t srqn)
{
	const unsigned int nb = nb_xrc();
	struct child child = start_with_domain();

	call(&a, POST, 0, 1);
	call(&child, CREATE_QP, 0, 0);
	call(&child, PREPARE, 0, 0);
	call(&child, ARM, (uint32_t)number, 0);
	HOLDS(call(&child, SEND, srqn, 0).wc.status == IBV_WC_SUCCESS);
	HOLDS(call(&a, WAIT, 0, 0).wc.status == IBV_WC_SUCCESS);
	kill_xrc(&child, nb);
}

static void
accepting_a_sender(void)
{
	const unsigned int nb = nb_xrc();
	struct child child = start_with_domain();
	const struct reply srq = call(&child, CREATE_SRQ, 0, 0);

	call(&child, POST, 0, 1);
	call(&child, ARM, SYS_accept4, 0);
	HOLDS(call(&b, SEND, srq.a, 0).wc.status == IBV_WC_SUCCESS);
	kill_xrc(&child, nb);
}

/* The end of the names of a LID. */
static void
get_name(char name[32], uint16_t lid)
{
	snprintf(name, 32, "/127.76.%d.%d\n", lid >> 8, lid & 0xff);
}

/* A process opens a channel to A with the first message, and A opens one for the answer. */
static void
opening_a_channel(int number, const struct reply *peer, uint32_t srqn)
{
	struct child child = start(3, 0);
	const struct reply opener = call(&child, PREPARE, 0, 0);
	struct command command = {
			.op = CONNECT, .a = opener.a, .gid = opener.gid, .lid = opener.lid};
	char name[32], own_name[32];
	unsigned int nb;

	get_name(name, peer->lid);
	get_name(own_name, opener.lid);
	nb = nb_sockets(" @rmem-shm/", name);
	call(&a, POST, 0, 1);
	order(&a, command);
	result(&a);
	call(&child, ARM, (uint32_t)number, 1);
	command = (struct command){
			.op = SEND, .a = srqn, .b = peer->a, .gid = peer->gid, .lid = peer->lid};
	order(&child, command);
	HOLDS(result(&child).wc.status == IBV_WC_SUCCESS);
	HOLDS(call(&a, WAIT, 0, 0).wc.status == IBV_WC_SUCCESS);
	kill_forked(&child);
	while (nb_sockets(" @rmem-shm/", name) != nb || nb_sockets(" @rmem-shm/", own_name) != 0)
		sched_yield();
}

int
main(void)
{
	struct stat st;
	struct reply owner;
	uint32_t srqn;

	execute_more = execute;
	file[0] = memfd_create("xrcd", MFD_CLOEXEC);
	HOLDS(file[0] >= 0 && fstat(file[0], &st) == 0 && pipe(life) == 0 && pipe(forked) == 0);
	snprintf(ids, sizeof(ids), "/%lx:%lx/", (unsigned long)st.st_dev, (unsigned long)st.st_ino);
	a = start(1, 0);
	b = start(2, 0);
	OK(&a, OPEN_DOMAIN, O_CREAT, 0);
	OK(&b, OPEN_DOMAIN, 0, 0);
	srqn = call(&a, CREATE_SRQ, 0, 0).a;
	owner = call(&a, CREATE_QP, 0, 0);
	call(&b, CREATE_QP, 0, 0);
	call(&b, PREPARE, 0, 0);
	opening_the_domain(SYS_socket);
	opening_the_domain(SYS_connect);
	opening_the_domain(SYS_listen);
	creating_a_qp_or_srq(CREATE_QP);
	creating_a_qp_or_srq(CREATE_SRQ);
	opening_a_qp(SYS_socket, owner.a);
	opening_a_qp(SYS_connect, owner.a);
	accepting_an_opener();
	sending_to_another_process(SYS_socket, srqn);
	sending_to_another_process(SYS_connect, srqn);
	accepting_a_sender();
	opening_a_channel(SYS_connect, &owner, srqn);
	opening_a_channel(SYS_accept4, &owner, srqn);
	end_child(&b);
	end_child(&a);
	return 0;
}
