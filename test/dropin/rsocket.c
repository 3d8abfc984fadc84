/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A program of plain sockets, for librspreload (rsocket.sh). The server returns a million bytes to
 * the client, which compares them. Arguments: port; of the server also a word.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../holds.h"

#define MESSAGES 200
#define SIZE     5000

static uint8_t buf[1 << 16];

static void
serve(int fd, const struct sockaddr_in *addr)
{
	struct pollfd poll_fd = {.events = POLLIN};
	int one = 1, err;
	ssize_t n;

	HOLDS(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0);
	HOLDS(bind(fd, (const void *)addr, sizeof(*addr)) == 0 && listen(fd, 4) == 0);
	HOLDS(puts("listens") >= 0 && fflush(stdout) == 0);
	poll_fd.fd = accept(fd, NULL, NULL);
	HOLDS(poll_fd.fd >= 0);
	do {
		HOLDS(poll(&poll_fd, 1, -1) == 1);
		n = read(poll_fd.fd, buf, sizeof(buf));
		err = errno;
		HOLDS(n <= 0 || write(poll_fd.fd, buf, (size_t)n) == n);
		/* The client may have disconnected. */
		HOLDS(n >= 0 || err == ECONNRESET);
	} while (n > 0);
	HOLDS(close(poll_fd.fd) == 0);
}

static void
call(int fd, const struct sockaddr_in *addr)
{
	ssize_t n, size;
	int i, j;

	HOLDS(connect(fd, (const void *)addr, sizeof(*addr)) == 0);
	for (i = 0; i < MESSAGES; i++) {
		memset(buf, i, SIZE);
		HOLDS(write(fd, buf, SIZE) == SIZE);
		memset(buf, ~i, SIZE);
		for (size = 0; size < SIZE; size += n) {
			n = read(fd, buf + size, (size_t)(SIZE - size));
			HOLDS(n > 0);
		}
		for (j = 0; j < SIZE; j++)
			HOLDS(buf[j] == (uint8_t)i);
	}
	HOLDS(shutdown(fd, SHUT_RDWR) == 0 && close(fd) == 0);
}

int
main(int argc, char **argv)
{
	struct sockaddr_in addr = {
			.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd;

	if (argc < 2)
		return 2;
	addr.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	HOLDS(fd >= 0);
	if (argc > 2)
		serve(fd, &addr);
	else
		call(fd, &addr);
	return 0;
}
