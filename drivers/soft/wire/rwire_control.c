/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Commands of rmem-ctl, with control=1: set the port down, up or frozen, change GIDs, P_Keys or the
 * MTU, fail a QP or the device. Commands are text datagrams to a socket with the abstract name
 * CONTROL_NAME; those about a port have its number, 1 by default. Each is answered by a datagram,
 * "ok", "ok TEXT" or "error: TEXT". Commands of users other than this one and root are refused, by
 * the credentials that the kernel adds.
 */

#define _GNU_SOURCE /* struct ucred */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../mem/rsoft_grace.h"
#include "../queue/rsoft_rq.h"
#include "rwire.h"

#define CONTROL_NAME "rmem-ctl/%d/%s" /* process, device */
#define MAX_TEXT     128
#define MAX_BURST    16
#define MAX_WORDS    4

struct command {
	struct sockaddr_un from;
	socklen_t from_len;
	struct ucred sender;
	char text[MAX_TEXT];
	char answer[MAX_TEXT];
};

int
rwire_control_open(struct rwire *wire)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const int on = 1;
	socklen_t len;
	int err;

	if (wire->dev->args.control == 0)
		return 0;
	len = (socklen_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, CONTROL_NAME,
			(int)getpid(), wire->base_dev->name);
	len += (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1;
	wire->control_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (wire->control_fd >= 0 &&
			setsockopt(wire->control_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ==
					0 &&
			bind(wire->control_fd, (struct sockaddr *)&name, len) == 0)
		return 0;
	err = errno;
	RSOFT_LOG(ERR, "control=1: socket @%s: %s", name.sun_path + 1, strerror(err));
	rwire_control_close(wire);
	return err == EADDRINUSE ? -EADDRINUSE : -ENOMEM;
}

void
rwire_control_close(struct rwire *wire)
{
	if (wire->control_fd >= 0)
		close(wire->control_fd);
	wire->control_fd = -1;
}

static void
show(struct rwire *wire, struct command *command)
{
	size_t used;
	uint32_t i;

	if (wire->has_failed) {
		snprintf(command->answer, sizeof(command->answer), "ok failed");
		return;
	}
	used = (size_t)snprintf(command->answer, sizeof(command->answer), "ok");
	for (i = 1; i <= wire->dev->tables.nb_ports; i++)
		used += (size_t)snprintf(command->answer + used, sizeof(command->answer) - used,
				"%s port %u %s%s", i == 1 ? "" : ";", i,
				rwire_netif_get(wire, i, NULL) & RWIRE_NETIF_UP ? "ACTIVE" : "DOWN",
				wire->is_frozen[i - 1] ? ", frozen" : "");
}

/* Also end a failure of the port by a rule. */
static void
end_rule(struct rwire *wire, uint32_t port_num, bool is_down)
{
	rsoft_lock(&wire->rx_lock);
	rwire_port_fault_end(wire->port, port_num, is_down);
	rte_ticketlock_unlock(&wire->rx_lock);
}

/* The port of a number, or port 1 for NULL; 0 after an error. */
static uint32_t
port_of(const struct rwire *wire, struct command *command, const char *number)
{
	const uint32_t nb = wire->dev->tables.nb_ports;

	if (number == NULL)
		return 1;
	if (number[0] >= '1' && number[0] <= '9' && number[1] == '\0' &&
			(uint32_t)(number[0] - '0') <= nb)
		return (uint32_t)(number[0] - '0');
	if (nb == 1)
		snprintf(command->answer, sizeof(command->answer),
				"error: no port %.20s: port 1 only", number);
	else
		snprintf(command->answer, sizeof(command->answer),
				"error: no port %.20s: ports 1 to %u", number, nb);
	return 0;
}

/* Set the state of a port; all its packets are dropped while it is down or frozen. */
static void
set_port(struct rwire *wire, struct command *command, uint32_t port_num, const char *state)
{
	bool *is_frozen = &wire->is_frozen[port_num - 1];
	bool is_down = (wire->netif[port_num - 1].shut & RWIRE_NETIF_BY_CONTROL) != 0;

	if (strcmp(state, "down") == 0 || strcmp(state, "up") == 0)
		is_down = state[0] == 'd';
	else if (strcmp(state, "freeze") == 0 || strcmp(state, "thaw") == 0)
		*is_frozen = state[0] == 'f';
	else {
		snprintf(command->answer, sizeof(command->answer),
				"error: no state %.20s: down, up, freeze or thaw", state);
		return;
	}
	rwire_port_fault_shut(wire->port, port_num, is_down || *is_frozen);
	rwire_netif_shut(wire, port_num, RWIRE_NETIF_BY_CONTROL, is_down);
	if (state[0] == 'u' || state[0] == 't')
		end_rule(wire, port_num, state[0] == 'u');
	show(wire, command);
}

static void
answer_error(struct command *command, const char *what, const char *value, const char *reason)
{
	snprintf(command->answer, sizeof(command->answer), "error: %s %.46s: %s", what, value,
			reason);
}

static void
change_gid(struct rwire *wire, struct command *command, uint32_t port_num, const char *how,
		const char *gid)
{
	int rc = strcmp(how, "add") == 0          ? rwire_gid_add(wire, port_num, gid)
			: strcmp(how, "del") == 0 ? rwire_gid_del(wire, port_num, gid)
						  : -ENOSYS;

	if (rc == -ENOSYS)
		answer_error(command, "gid", how, "not add or del");
	else if (rc == -EINVAL)
		answer_error(command, "gid", gid, "not an IPv4 or IPv6 address");
	else if (rc == -EEXIST)
		answer_error(command, "gid", gid, "a device has the address, or its UDP port");
	else if (rc == -ENOSPC)
		answer_error(command, "gid", gid, "all 16 entries are in use");
	else if (rc == -ENOENT)
		answer_error(command, "gid", gid, "not in the table");
	else if (rc == -EBUSY)
		answer_error(command, "gid", gid, "the first one, of ip=, stays");
	else if (rc == -EOPNOTSUPP)
		answer_error(command, "gid", gid, "only devices with ip=ADDRESS and port=udp");
	else if (rc == -ENODEV)
		answer_error(command, "gid", gid, "not an address of this host");
	else if (rc != 0)
		answer_error(command, "gid", gid, strerror(-rc));
}

static void
change_pkey(struct rwire *wire, struct command *command, uint32_t port_num, const char *how,
		const char *number)
{
	bool is_add = strcmp(how, "add") == 0;
	unsigned long pkey;
	char *end;
	int rc = -EINVAL;

	if (!is_add && strcmp(how, "del") != 0) {
		answer_error(command, "pkey", how, "not add or del");
		return;
	}
	pkey = strtoul(number, &end, 0);
	if (*end == '\0' && pkey <= UINT16_MAX)
		rc = is_add ? rwire_pkey_add(wire, port_num, (uint16_t)pkey)
			    : rwire_pkey_del(wire, port_num, (uint16_t)pkey);
	if (rc == -EINVAL)
		answer_error(command, "pkey", number, "not 1 to 0xffff, but 0x8000");
	else if (rc == -EEXIST)
		answer_error(command, "pkey", number, "in the table already");
	else if (rc == -ENOSPC)
		answer_error(command, "pkey", number, "all 16 entries are in use");
	else if (rc == -ENOENT)
		answer_error(command, "pkey", number, "not in the table");
}

/* Set the path MTU of QPs that are connected later, and of datagrams. */
static void
change_mtu(struct rwire *wire, struct command *command, const char *number)
{
	char *end;
	unsigned long mtu = strtoul(number, &end, 0);

	if (*end != '\0' || mtu < 256 || mtu > wire->port->max_mtu || (mtu & (mtu - 1)) != 0)
		snprintf(command->answer, sizeof(command->answer),
				"error: mtu %.20s: not a path MTU of 256 to %u", number,
				wire->port->max_mtu);
	else
		__atomic_store_n(&wire->dev->address.mtu, (uint32_t)mtu, __ATOMIC_RELAXED);
}

/* Move the QP to ERR, and report QP_FATAL. */
static void
kill_qp(struct rwire *wire, struct command *command, const char *number)
{
	struct rsoft_dev *dev = wire->dev;
	struct rsoft_qp *qp;
	char *end;
	unsigned long qp_num = strtoul(number, &end, 0);
	unsigned int lcore = rsoft_grace_enter();

	/* The QP is valid until the grace period of its release. */
	qp = __atomic_load_n(&dev->qps[qp_num & dev->qp_mask], __ATOMIC_ACQUIRE);
	if (*end != '\0' || qp == NULL || qp->qp.qp_num != qp_num)
		snprintf(command->answer, sizeof(command->answer), "error: no QP %.20s", number);
	else if (rsoft_rq_fail_event(qp, RMEM_ASYNC_QP_FATAL))
		rwire_fail_qp(qp, lcore);
	else
		snprintf(command->answer, sizeof(command->answer),
				"error: QP %.20s is in RESET or ERR", number);
	rsoft_grace_leave(lcore);
}

/* Let the device fail at the next burst of the receiving thread. */
static void
fail_dev(struct rwire *wire)
{
	wire->has_failed = true;
	rwire_port_fault_fail(wire->port);
}

/* Execute a command about a port; false if it is none. */
static bool
execute_of_port(struct rwire *wire, struct command *command, char *const words[], int n)
{
	bool is_port = n == 3 && strcmp(words[0], "port") == 0;
	bool is_gid = n >= 3 && strcmp(words[0], "gid") == 0;
	bool is_pkey = n >= 3 && strcmp(words[0], "pkey") == 0;
	uint32_t port_num;

	if (!is_port && !is_gid && !is_pkey)
		return false;
	port_num = port_of(wire, command, is_port ? words[1] : n == 4 ? words[3] : NULL);
	if (port_num == 0)
		return true;
	if (is_port)
		set_port(wire, command, port_num, words[2]);
	else if (is_gid)
		change_gid(wire, command, port_num, words[1], words[2]);
	else
		change_pkey(wire, command, port_num, words[1], words[2]);
	return true;
}

static void
execute(struct rwire *wire, struct command *command)
{
	char *words[MAX_WORDS] = {NULL}, *rest = command->text;
	int n = 0;

	while (n < MAX_WORDS && (words[n] = strsep(&rest, " ")) != NULL)
		n++;
	memcpy(command->answer, "ok", sizeof("ok"));
	if (n == 1 && strcmp(words[0], "show") == 0)
		show(wire, command);
	else if (wire->has_failed)
		snprintf(command->answer, sizeof(command->answer), "error: the device has failed");
	else if (execute_of_port(wire, command, words, n))
		return;
	else if (n == 2 && strcmp(words[0], "mtu") == 0)
		change_mtu(wire, command, words[1]);
	else if (n == 2 && strcmp(words[0], "kill-qp") == 0)
		kill_qp(wire, command, words[1]);
	else if (n == 1 && strcmp(words[0], "fatal") == 0)
		fail_dev(wire);
	else
		snprintf(command->answer, sizeof(command->answer), "error: unknown command: %.40s",
				words[0]);
}

/* Receive a command; false if none waits. */
static bool
receive(int fd, struct command *command)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {command->text, sizeof(command->text) - 1};
	struct msghdr msg = {.msg_name = &command->from,
			.msg_namelen = sizeof(command->from),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control)};
	struct cmsghdr *header;
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);

	if (n < 0)
		return false;
	command->text[n] = '\0';
	command->from_len = msg.msg_namelen;
	command->sender.uid = (uid_t)-1;
	header = CMSG_FIRSTHDR(&msg);
	if (header != NULL && header->cmsg_level == SOL_SOCKET &&
			header->cmsg_type == SCM_CREDENTIALS)
		memcpy(&command->sender, CMSG_DATA(header), sizeof(command->sender));
	return true;
}

void
rwire_control_serve(struct rwire *wire)
{
	struct command command;
	int i;

	for (i = 0; i < MAX_BURST && receive(wire->control_fd, &command); i++) {
		if (command.sender.uid == geteuid() || command.sender.uid == 0)
			execute(wire, &command);
		else
			snprintf(command.answer, sizeof(command.answer),
					"error: the process belongs to user %u",
					(unsigned int)geteuid());
		sendto(wire->control_fd, command.answer, strlen(command.answer), MSG_DONTWAIT,
				(struct sockaddr *)&command.from, command.from_len);
	}
}
