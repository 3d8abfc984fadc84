/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * With RMEM_IBV_CM: report current and ended connections at exit, and to rmem-top, which connects
 * to the name rmem-cm/PID and receives the descriptor of a file with the text.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include "ibcm_report.h"
#include "rcm.h"

static void
print_text(void *arg, const char *name, const char *text)
{
	fprintf(arg, "  %s: %s\n", name, text);
}

static void
print_number(void *arg, const char *name, uint64_t number)
{
	fprintf(arg, "  %s: %" PRIu64 "\n", name, number);
}

static void
print_conn(void *arg, const struct ibcm_info *info)
{
	const struct ibcm_sink sink = {arg, print_text, print_number};

	fprintf(arg, "connection 0x%" PRIx32 ":\n", info->local_id);
	ibcm_report_info(&sink, info);
}

char *
rcm_report(const struct ibcm *cm, const struct ibcm_log *log, size_t *len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, len);
	const struct ibcm_sink sink = {f, print_text, print_number};

	if (f == NULL)
		return NULL;
	fprintf(f, "CM of %s, process %d:\n", program_invocation_short_name, (int)getpid());
	print_number(f, "conns", ibcm_nb_ids(cm));
	print_number(f, "ended", log->nb_ended);
	ibcm_report_stats(&sink, &log->stats);
	ibcm_log_visit(log, print_conn, f);
	ibcm_visit(cm, print_conn, f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

int
rcm_report_listen(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int len = snprintf(
			name.sun_path + 1, sizeof(name.sun_path) - 1, "rmem-cm/%d", (int)getpid());

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&name,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
					    (socklen_t)len) == 0 &&
			listen(fd, 4) == 0)
		return fd;
	rcm_close(fd);
	return -1;
}

/* Create a memfd with the text; -1 on failure. */
static int
file_of(const char *text, size_t len)
{
	int fd = memfd_create("rmem-cm", MFD_CLOEXEC);
	size_t done = 0;
	ssize_t n;

	while (fd >= 0 && done < len) {
		n = pwrite(fd, text + done, len - done, (off_t)done);
		if (n <= 0) {
			rcm_close(fd);
			return -1;
		}
		done += (size_t)n;
	}
	return fd;
}

static void
send_fd(int to, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.head = {.cmsg_level = SOL_SOCKET,
				     .cmsg_type = SCM_RIGHTS,
				     .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec byte = {.iov_base = (char[]){0}, .iov_len = 1};
	const struct msghdr msg = {.msg_iov = &byte,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = sizeof(control.bytes)};

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	(void)sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The report has addresses of other hosts: only this user and root may read it. */
static bool
may_read(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
			(peer.uid == 0 || peer.uid == geteuid());
}

void
rcm_report_send(int listening, const struct ibcm *cm, const struct ibcm_log *log)
{
	/* cppcheck-suppress nullPointer */
	int to = accept4(listening, NULL, NULL, SOCK_CLOEXEC), fd = -1;
	char *text = NULL;
	size_t len = 0;

	if (to < 0)
		return;
	if (may_read(to))
		text = rcm_report(cm, log, &len);
	if (text != NULL)
		fd = file_of(text, len);
	if (fd >= 0) {
		send_fd(to, fd);
		rcm_close(fd);
	}
	free(text);
	rcm_close(to);
}
