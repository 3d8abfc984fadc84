/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A port of a fuzzer: it delivers one packet at a time, and checks that none has secret bytes. */

#ifndef FUZZ_PORT_H
#define FUZZ_PORT_H

#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "stub_port.h"

#define SECRET   0xa5 /* each byte of memory that is not registered */
#define SECRETS  16u  /* so many in a row are not there by chance */
#define MAX_OPEN 128

struct fuzz_port {
	struct rwire_port port; /* first */
	struct rwire_port *inner;
	struct stub_frame tx, rx;
	bool has_rx;
	uint64_t nb_sent[256]; /* by service and opcode */
};

static inline void
fuzz_check_secrets(const uint8_t *bytes, size_t len)
{
	uint8_t secret[SECRETS];
	size_t i;

	memset(secret, SECRET, sizeof(secret));
	for (i = 0; i + SECRETS <= len; i++)
		CHECK(memcmp(bytes + i, secret, SECRETS) != 0);
}

/* Number of open descriptors, except pipes: AddressSanitizer opens two at any time. */
static inline uint32_t
fuzz_nb_open(void)
{
	struct stat st;
	uint32_t nb = 0;
	int fd;

	for (fd = 0; fd < MAX_OPEN; fd++)
		nb += fstat(fd, &st) == 0 && !S_ISFIFO(st.st_mode);
	return nb;
}

static inline struct rwire_frame *
fuzz_port_tx_get(struct rwire_port *port, const struct rwire_addr *dst)
{
	return stub_tx_get(port, &((struct fuzz_port *)port)->tx, dst);
}

static inline void
fuzz_port_tx_put(struct rwire_port *port, struct rwire_frame *frame)
{
	CHECK(frame->len <= RWIRE_MAX_PKT);
	((struct fuzz_port *)port)->nb_sent[frame->bth[0]]++;
	fuzz_check_secrets(frame->bth, frame->len);
}

static inline uint32_t
fuzz_port_rx_burst(struct rwire_port *base, struct rwire_frame *frames[], uint32_t n)
{
	struct fuzz_port *port = (struct fuzz_port *)base;

	if (!port->has_rx || n == 0)
		return 0;
	port->has_rx = false;
	frames[0] = &port->rx.frame;
	return 1;
}

static inline void
fuzz_port_close(struct rwire_port *port)
{
	struct rwire_port *inner = ((struct fuzz_port *)port)->inner;

	inner->ops->close(inner);
}

static inline void
fuzz_port_attach(struct fuzz_port *port, struct rsoft_dev *dev)
{
	static const struct rwire_port_ops ops = {
			.close = fuzz_port_close,
			.link_is_up = rwire_port_link_is_up,
			.mcast_join = NULL, /* those of the innermost port are called */
			.mcast_leave = NULL,
			.mcast_members = NULL,
			.rx_burst = fuzz_port_rx_burst,
			.rx_grant = rwire_port_rx_grant,
			.rx_release = rwire_port_rx_release,
			.rx_sleep = rwire_port_rx_sleep,
			.tx_count = rwire_port_tx_count,
			.tx_direct = rwire_port_tx_direct,
			.tx_flush = stub_tx_flush,
			.tx_get = fuzz_port_tx_get,
			.tx_idle = rwire_port_tx_idle,
			.tx_is_late = rwire_port_tx_is_late,
			.tx_put = fuzz_port_tx_put,
			.tx_share = rwire_port_tx_share,
	};

	port->inner = stub_attach(dev, &port->port, &ops);
}

#endif /* FUZZ_PORT_H */
