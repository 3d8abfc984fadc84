/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Prints which IDs of rdma_cm may have one port. A line has the address and the option of the
 * first ID, and the address of the second one; then, for each option of the second one, the errno
 * of its bind, or of rdma_listen() by both. The same lines on soft0 and on a device of the kernel.
 *
 * usage: cm_ports IPV4 OTHER_IPV4 IPV6 [processes]
 *   the addresses are of the device; with "processes" the second ID is of another process, and none
 *   listens
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "../holds.h"

#define PORT 7399

enum {
	AFONLY = 1,
	REUSE = 2,
	DUAL = 4, /* AFONLY is set to 0 */
};

static struct rdma_event_channel *channel;

/* Addresses by name. */
static struct {
	const char *name;
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} addr;
} addrs[] = {{.name = "0.0.0.0"}, {.name = "ipv4"}, {.name = "other"}, {.name = "::"},
		{.name = "ipv6"}};

#define NB_ADDRS (sizeof(addrs) / sizeof(addrs[0]))

static const struct {
	const char *name;
	int bits;
} options[] = {{"-", 0}, {"afonly", AFONLY}, {"dual", DUAL}, {"reuse", REUSE},
		{"afonly,reuse", AFONLY | REUSE}};

#define NB_OPTIONS (sizeof(options) / sizeof(options[0]))

static void
set_addr(unsigned int i, const char *text)
{
	if (strchr(text, ':') != NULL) {
		addrs[i].addr.in6.sin6_family = AF_INET6;
		HOLDS(inet_pton(AF_INET6, text, &addrs[i].addr.in6.sin6_addr) == 1);
	} else {
		addrs[i].addr.in.sin_family = AF_INET;
		HOLDS(inet_pton(AF_INET, text, &addrs[i].addr.in.sin_addr) == 1);
	}
}

static void
set_port(unsigned int i, uint16_t port)
{
	if (addrs[i].addr.sa.sa_family == AF_INET)
		addrs[i].addr.in.sin_port = htons(port);
	else
		addrs[i].addr.in6.sin6_port = htons(port);
}

static struct rdma_cm_id *
create(enum rdma_port_space ps, int bits)
{
	struct rdma_cm_id *id;
	int on = 1, off = 0;

	HOLDS(rdma_create_id(channel, &id, NULL, ps) == 0);
	if ((bits & (AFONLY | DUAL)) != 0)
		HOLDS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,
				      (bits & AFONLY) != 0 ? &on : &off, sizeof(on)) == 0);
	if ((bits & REUSE) != 0)
		HOLDS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on,
				      sizeof(on)) == 0);
	return id;
}

/* The errno, 0 on success. */
static int
bind_to(struct rdma_cm_id *id, unsigned int addr)
{
	return rdma_bind_addr(id, &addrs[addr].addr.sa) == 0 ? 0 : errno;
}

static const char *
name_of(int err)
{
	switch (err) {
	case 0:
		return "ok";
	case EADDRINUSE:
		return "in-use";
	case EADDRNOTAVAIL:
		return "not-available";
	case EACCES:
		return "access";
	case EINVAL:
		return "invalid";
	default:
		return strerror(err);
	}
}

static int
listen_at(struct rdma_cm_id *id)
{
	return rdma_listen(id, 1) == 0 ? 0 : errno;
}

/* The bind of another program, since librdmacm has the devices of a process: its exit status. */
static int
bind_elsewhere(char **argv, unsigned int addr, int bits)
{
	char addr_text[16], bits_text[16];
	char *args[] = {argv[0], argv[1], argv[2], argv[3], addr_text, bits_text, NULL};
	pid_t pid = fork();
	int status;

	HOLDS(pid >= 0);
	if (pid == 0) {
		snprintf(addr_text, sizeof(addr_text), "%u", addr);
		snprintf(bits_text, sizeof(bits_text), "%d", bits);
		execv("/proc/self/exe", args);
		_exit(EXIT_FAILURE);
	}
	HOLDS(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
pair(unsigned int a, int a_bits, unsigned int b, int b_bits, char **argv)
{
	struct rdma_cm_id *first = create(RDMA_PS_TCP, a_bits), *second = NULL;
	int err, first_err, second_err;

	HOLDS(bind_to(first, a) == 0);
	if (argv != NULL) {
		err = bind_elsewhere(argv, b, b_bits);
	} else {
		second = create(RDMA_PS_TCP, b_bits);
		err = bind_to(second, b);
	}
	if (err != 0 || argv != NULL) {
		printf(" %s", name_of(err));
	} else {
		first_err = listen_at(first);
		second_err = listen_at(second);
		if (first_err == 0 && second_err == 0)
			printf(" ok");
		else
			printf(" listen:%s,%s", name_of(first_err), name_of(second_err));
	}
	HOLDS((second == NULL || rdma_destroy_id(second) == 0) && rdma_destroy_id(first) == 0);
}

static void
others(void)
{
	struct rdma_cm_id *tcp = create(RDMA_PS_TCP, 0), *udp = create(RDMA_PS_UDP, 0);
	struct rdma_cm_id *any = create(RDMA_PS_TCP, 0), *again;
	int on = 1;

	printf("other port space | bind %s", name_of(bind_to(tcp, 0)));
	printf(" %s\n", name_of(bind_to(udp, 0)));
	printf("bind again | bind %s\n", name_of(bind_to(tcp, 0)));
	HOLDS(rdma_listen(tcp, 1) == 0);
	printf("reuse of a listening ID | option %s\n",
			name_of(rdma_set_option(tcp, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on,
						sizeof(on)) == 0
							? 0
							: errno));
	printf("afonly of a listening ID | option %s\n",
			name_of(rdma_set_option(tcp, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on,
						sizeof(on)) == 0
							? 0
							: errno));
	HOLDS(rdma_destroy_id(tcp) == 0 && rdma_destroy_id(udp) == 0);
	/* The port of a destroyed ID is free. */
	again = create(RDMA_PS_TCP, 0);
	printf("after a destroyed ID | bind %s\n", name_of(bind_to(again, 0)));
	HOLDS(rdma_destroy_id(again) == 0);
	if (geteuid() != 0) {
		set_port(0, 1);
		again = create(RDMA_PS_TCP, 0);
		printf("port 1, not root | bind %s\n", name_of(bind_to(again, 0)));
		HOLDS(rdma_destroy_id(again) == 0);
	}
	set_port(0, 0);
	printf("port 0 | bind %s", name_of(bind_to(any, 0)));
	again = create(RDMA_PS_TCP, 0);
	set_port(0, ntohs(rdma_get_src_port(any)));
	printf(", that port again | bind %s\n", name_of(bind_to(again, 0)));
	HOLDS(rdma_destroy_id(again) == 0 && rdma_destroy_id(any) == 0);
}

int
main(int argc, char **argv)
{
	unsigned int a, b, i;

	HOLDS(argc >= 4 && argc <= 6);
	set_addr(0, "0.0.0.0");
	set_addr(1, argv[1]);
	set_addr(2, argv[2]);
	set_addr(3, "::");
	set_addr(4, argv[3]);
	for (a = 0; a < NB_ADDRS; a++)
		set_port(a, PORT);
	channel = rdma_create_event_channel();
	HOLDS(channel != NULL);
	if (argc == 6)
		return bind_to(create(RDMA_PS_TCP, (int)strtol(argv[5], NULL, 10)),
				(unsigned int)strtoul(argv[4], NULL, 10));
	for (a = 0; a < NB_ADDRS * NB_OPTIONS; a++) {
		for (b = 0; b < NB_ADDRS; b++) {
			printf("%s %s | %s |", addrs[a / NB_OPTIONS].name,
					options[a % NB_OPTIONS].name, addrs[b].name);
			for (i = 0; i < NB_OPTIONS; i++)
				pair(a / NB_OPTIONS, options[a % NB_OPTIONS].bits, b,
						options[i].bits, argc == 5 ? argv : NULL);
			printf("\n");
		}
	}
	if (argc == 4)
		others();
	rdma_destroy_event_channel(channel);
	return 0;
}
