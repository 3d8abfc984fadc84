/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Devices with ip=host exchange packets with processes of all users, each with its own address and
 * a share of the channels.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_log.h>

#include <rmem_cq.h>

#include "soft/wire/rwire.h"
#include "soft/wire/port/rwire_shm.h"

#include "../test.h"
#include "host.h"

#define OTHER_USER 65534
#define THIRD_USER 65533

/* Wait for a reply, or until the device has read the ring. */
static bool
is_accepted(int fd, const struct rwire_ring *ring)
{
	struct shm_hello hello;
	ssize_t n;

	/* Not a socket that blocks. */
	do
		n = recv(fd, &hello, sizeof(hello), MSG_DONTWAIT);
	while (n < 0 && errno == EAGAIN &&
			__atomic_load_n(&ring->is_asleep, __ATOMIC_RELAXED) == 0);
	return n < 0 && errno == EAGAIN;
}

static void
need_root(void)
{
	TEST_SKIP_IF(geteuid() != 0, "only root has processes of another user");
}

static pid_t
fork_as(uid_t user)
{
	pid_t pid = fork();

	if (pid == 0 && setresuid(user, user, user) != 0)
		_exit(2);
	return pid;
}

/*
 * A process of another user sends from an address, at which it listens or not. It exits with 0 if
 * the device accepts that, with 1 if not, with another status if it can't be tried.
 */
static pid_t
start_sender_of(uid_t user, const struct rwire_addr *from, bool is_owner)
{
	struct rwire_ring *ring;
	pid_t pid = fork_as(user);
	uint32_t uid;
	int fd;

	if (pid != 0)
		return pid;
	if (is_owner && rwire_shm_listen(SHM_HOST, from) < 0)
		_exit(3);
	if (rwire_shm_connect(SHM_HOST, from, &host_address, &fd, &ring, &uid, NULL) != 0)
		_exit(4);
	_exit(is_accepted(fd, ring) ? 0 : 1);
}

static pid_t
start_sender(const struct rwire_addr *from, bool is_owner)
{
	return start_sender_of(OTHER_USER, from, is_owner);
}

/* Receive until the sender has ended; sleep as the control thread does. */
static int
serve(pid_t pid)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(host_dev)->priv)->wire;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0)
		wire->port->ops->rx_sleep(wire->port);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(wire_host, other_user_sends_only_from_its_own_address)
{
	struct rwire_addr from;

	need_root();
	rwire_addr_of_lid(host_other_lid(1000), &from);
	TEST_EQ(serve(start_sender(&from, true)), 0);
	TEST_EQ(serve(start_sender(&from, false)), 1);
	TEST_EQ(serve(start_sender(&host_address, false)), 1);
}

/* Send until a connection waits at a listener: 0 with its ring. */
static int
send_to(const struct rwire_addr *to, int listener, int *fd, struct rwire_ring **ring)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(host_dev)->priv)->wire;
	struct rwire_addr from;
	uint32_t version, uid;

	do {
		if (wire->port->ops->tx_get(wire->port, to) == NULL)
			return -ENOSPC;
		*fd = rwire_shm_accept(SHM_HOST, listener, &uid);
	} while (*fd == -EAGAIN);
	return *fd < 0 ? *fd : rwire_shm_receive(*fd, &from, ring, &version);
}

/* A process of another user uses an address: it exits with 0 if it gets a ring, with 1 if not. */
static pid_t
start_taker(const struct rwire_addr *addr)
{
	struct rwire_ring *ring;
	struct rwire_addr from;
	uint32_t version, uid;
	pid_t pid = fork_as(OTHER_USER);
	int fd, listener, rc;

	if (pid != 0)
		return pid;
	listener = rwire_shm_listen(SHM_HOST, addr);
	if (listener < 0)
		_exit(3);
	do
		fd = rwire_shm_accept(SHM_HOST, listener, &uid);
	while (fd == -EAGAIN);
	do
		rc = rwire_shm_receive(fd, &from, &ring, &version);
	while (rc == -EAGAIN);
	_exit(rc == SHM_OK ? 0 : 1);
}

/* The device sends to addr, which this process serves. */
static void
serve_once(const struct rwire_addr *addr)
{
	struct rwire_ring *ring = NULL;
	int listener = rwire_shm_listen(SHM_HOST, addr);
	int fd = -1;

	TEST_ASSERT(listener >= 0);
	TEST_OK(send_to(addr, listener, &fd, &ring));
	rwire_shm_unmap(ring);
	close(fd);
	close(listener);
}

TEST(wire_host, address_stays_with_its_first_user_while_a_qp_has_it)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(host_dev)->priv)->wire;
	struct rwire_addr peer;
	struct host_path path;
	int status = 0;
	pid_t pid;

	need_root();
	rwire_addr_of_lid(host_other_lid(1001), &peer);
	host_open_path(&path, &peer);
	serve_once(&peer);
	pid = start_taker(&peer);
	while (waitpid(pid, &status, WNOHANG) == 0)
		TEST_ASSERT(wire->port->ops->tx_get(wire->port, &peer) != NULL);
	TEST_EQ(WEXITSTATUS(status), 1);
	TEST_EQ(serve(start_sender(&peer, true)), 1);
	/* The first user may restart. */
	serve_once(&peer);
	host_close_path(&path);
	/* One that sends first is the first user as well. */
	rwire_addr_of_lid(host_other_lid(1002), &peer);
	host_open_path(&path, &peer);
	TEST_EQ(serve(start_sender(&peer, true)), 0);
	TEST_EQ(serve(start_sender(&peer, true)), 0);
	TEST_EQ(serve(start_sender_of(THIRD_USER, &peer, true)), 1);
	host_close_path(&path);
	TEST_EQ(serve(start_sender_of(THIRD_USER, &peer, true)), 0);
}

static uint32_t
nb_channels(void)
{
	struct shm_users users;

	rwire_shm_users_open(&users);
	return users.nb_free;
}

/* A process of another user opens as many channels as the device has; it waits for a signal. */
static pid_t
start_crowd(int ready)
{
	struct rwire_ring *ring;
	struct rwire_addr from;
	pid_t pid = fork_as(OTHER_USER);
	uint32_t i, uid;
	int fd;

	if (pid != 0)
		return pid;
	for (i = 0; i < nb_channels(); i++) {
		rwire_addr_of_lid(host_other_lid((uint16_t)(2000 + i)), &from);
		if (rwire_shm_listen(SHM_HOST, &from) < 0)
			_exit(3);
		while (rwire_shm_connect(SHM_HOST, &from, &host_address, &fd, &ring, &uid, NULL) ==
				-EAGAIN)
			;
		(void)is_accepted(fd, ring);
		rwire_shm_unmap(ring);
	}
	(void)!write(ready, "", 1);
	pause();
	_exit(0);
}

TEST(wire_host, other_user_gets_half_of_the_channels)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(host_dev)->priv)->wire;
	struct rwire_ring *ring;
	struct rwire_addr peer;
	int fd, fds[2], listener;
	uint32_t uid, told = 0;
	char byte;
	pid_t pid;

	need_root();
	TEST_OK(pipe2(fds, O_CLOEXEC | O_NONBLOCK));
	pid = start_crowd(fds[1]);
	while (read(fds[0], &byte, 1) != 1)
		wire->port->ops->rx_sleep(wire->port);
	listener = rwire_shm_listen_host(&peer);
	TEST_ASSERT(listener >= 0);
	TEST_OK(rwire_shm_connect(SHM_HOST, &peer, &host_address, &fd, &ring, &uid, NULL));
	while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno != ECONNRESET &&
			(told = __atomic_load_n(&ring->is_asleep, __ATOMIC_RELAXED)) == 0)
		wire->port->ops->rx_sleep(wire->port);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	rwire_shm_unmap(ring);
	close(fd);
	close(listener);
	close(fds[0]);
	close(fds[1]);
	TEST_EQ(told, 1);
}

/* A process of another user listens at as many addresses as the device has channels. */
static pid_t
start_listeners(int ready)
{
	struct rwire_addr addr;
	pid_t pid = fork_as(OTHER_USER);
	uint32_t i;

	if (pid != 0)
		return pid;
	for (i = 0; i < nb_channels(); i++) {
		rwire_addr_of_lid(host_other_lid((uint16_t)(3000 + i)), &addr);
		if (rwire_shm_listen(SHM_HOST, &addr) < 0)
			_exit(3);
	}
	(void)!write(ready, "", 1);
	pause();
	_exit(0);
}

/* Whether the device has a channel to an address after it sent a packet there. */
static bool
is_reached(const struct rwire_addr *to)
{
	struct rwire_port *port =
			((const struct rsoft_dev *)rmem_dev_drv(host_dev)->priv)->wire->port;
	uint32_t sent, taken;

	return port->ops->tx_get(port, to) != NULL && port->ops->tx_count(port, to, &sent, &taken);
}

TEST(wire_host, device_opens_half_of_its_channels_to_another_user)
{
	unsigned int i, nb_reached = 0;
	struct rwire_addr peer;
	int fds[2], listener;
	bool is_own_reached;
	char byte;
	pid_t pid;

	need_root();
	TEST_OK(pipe2(fds, O_CLOEXEC));
	pid = start_listeners(fds[1]);
	close(fds[1]);
	TEST_EQ(read(fds[0], &byte, 1), 1);
	for (i = 0; i < nb_channels(); i++) {
		rwire_addr_of_lid(host_other_lid((uint16_t)(3000 + i)), &peer);
		nb_reached += is_reached(&peer);
	}
	listener = rwire_shm_listen_host(&peer);
	is_own_reached = is_reached(&peer);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(listener);
	close(fds[0]);
	TEST_ASSERT(listener >= 0);
	TEST_ASSERT(nb_reached >= 1 && nb_reached <= nb_channels() / 2);
	TEST_ASSERT(is_own_reached);
}

/* A connection to the device. */
static int
open_connection(void)
{
	int len, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char text[RWIRE_ADDR_TEXT];

	len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "rmem-shm/%s/%s", SHM_HOST,
			rwire_addr_text(&host_address, text));
	len += (int)offsetof(struct sockaddr_un, sun_path) + 1;
	if (connect(fd, (const struct sockaddr *)&un, (socklen_t)len) == 0)
		return fd;
	close(fd);
	return -1;
}

TEST(wire_host, dropped_privileges_change_the_user_of_a_device)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(host_dev)->priv)->wire;
	socklen_t size = sizeof(struct ucred);
	struct ucred owner = {0};
	int fd, ret;

	TEST_SKIP_IF(geteuid() != 0, "only root drops privileges");
	TEST_OK(seteuid(OTHER_USER));
	wire->port->ops->rx_sleep(wire->port);
	fd = open_connection();
	ret = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size);
	TEST_OK(seteuid(0));
	wire->port->ops->rx_sleep(wire->port);
	TEST_OK(ret);
	TEST_EQ(owner.uid, OTHER_USER);
	TEST_RUN(close(fd));
}

TEST(wire_host, refusal_by_a_peer_is_logged_with_its_reason)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(host_dev)->priv)->wire;
	int fd, listener, is_logged = 0, level = rte_log_get_level((uint32_t)rsoft_logtype);
	struct rwire_ring *ring = NULL;
	struct rwire_addr peer;
	char *text = NULL;
	size_t size;
	FILE *log;

	listener = rwire_shm_listen_host(&peer);
	TEST_ASSERT(listener >= 0);
	TEST_OK(send_to(&peer, listener, &fd, &ring));
	rwire_shm_refuse(fd, SHM_BAD_USER, &peer);
	close(fd);
	log = open_memstream(&text, &size);
	rte_openlog_stream(log);
	TEST_OK(rte_log_set_level((uint32_t)rsoft_logtype, RTE_LOG_ERR));
	while (!is_logged) {
		TEST_ASSERT(wire->port->ops->tx_get(wire->port, &peer) != NULL);
		fflush(log);
		is_logged = strstr(text, "peer 127.76.") != NULL;
	}
	rte_openlog_stream(NULL);
	TEST_OK(rte_log_set_level((uint32_t)rsoft_logtype, (uint32_t)level));
	fclose(log);
	is_logged = strstr(text, " refused: an address is of another user") != NULL;
	free(text);
	rwire_shm_unmap(ring);
	close(listener);
	TEST_ASSERT(is_logged);
}

TEST(wire_host, channel_to_an_ended_peer_is_closed_while_idle)
{
	struct rwire_ring *ring = NULL;
	int expected, listener, fd = -1;
	struct rwire_addr peer;
	struct host_path path;
	struct rmem_wc wc;

	listener = rwire_shm_listen_host(&peer);
	TEST_ASSERT(listener >= 0);
	host_open_path(&path, &peer);
	expected = test_free_fd();
	TEST_OK(send_to(&peer, listener, &fd, &ring));
	rwire_shm_unmap(ring);
	close(fd);
	/* The channel has the descriptor that was free. */
	TEST_ASSERT(test_free_fd() > expected);
	while (test_free_fd() != expected)
		TEST_EQ(rmem_poll_cq(path.cq, &wc, 1), 0);
	close(listener);
	host_close_path(&path);
}

TEST(wire_host, silent_connection_is_closed)
{
	struct rwire *wire = ((const struct rsoft_dev *)rmem_dev_drv(host_dev)->priv)->wire;
	int fd = open_connection();
	char byte;

	TEST_ASSERT(fd >= 0);
	while (recv(fd, &byte, 1, MSG_DONTWAIT) != 0)
		wire->port->ops->rx_sleep(wire->port);
	TEST_RUN(close(fd));
}
