/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The devices of the fuzzer of the port over shared memory; see fuzz_shm.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred */
#endif
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_memzone.h>

#include "soft/base/rsoft.h"
#include "fuzz_port.h"
#include "fuzz_shm.h"

#include <rmem_driver.h>

#define DEPTH 8u

struct fuzz_dev devs[2];
struct fuzz_shm fz;

/* Called by the library instead of getsockopt() and accept4(). */
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

int
__wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int ret = __real_getsockopt(fd, level, name, value, len);
	uint32_t user;

	if (ret != 0 || level != SOL_SOCKET || name != SO_PEERCRED)
		return ret;
	user = fz.users[fz.nb_users++ % 2];
	if (user != 0)
		((struct ucred *)value)->uid = user;
	return 0;
}

int
__wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int ret = __real_accept4(fd, addr, len, flags);

	if (ret >= 0 && fz.nb_children != 0 && fz.nb_copies < MAX_COPIES) {
		fz.nb_children--;
		fz.copies[fz.nb_copies++] = fcntl(ret, F_DUPFD_CLOEXEC, 0);
	}
	return ret;
}

static uint64_t
fuzz_clock(void)
{
	return fz.now;
}

/* The bytes of a ring that a step selects, and their number. */
static uint8_t *
ring_bytes(struct peer *peer, const struct step *step, uint32_t *size)
{
	struct rwire_ring *ring = peer->end.ring;
	struct rwire_slot *slot =
			&ring->slot[(peer->end.pos + (step->value >> 8) - 1) % RWIRE_RING_SLOTS];

	*size = sizeof(uint32_t);
	switch (step->what % 8) {
	case 0:
		*size = sizeof(*slot);
		return (uint8_t *)slot;
	case 1:
		*size = sizeof(slot->data) - step->value % sizeof(slot->data);
		return slot->data + step->value % sizeof(slot->data);
	case 2:
		return (uint8_t *)&ring->head;
	case 3:
		return (uint8_t *)&ring->is_asleep;
	case 4:
		*size = sizeof(ring->mapped);
		return (uint8_t *)&ring->mapped;
	case 5:
		return (uint8_t *)&ring->accepts;
	case 6:
		*size = sizeof(ring->direct);
		return (uint8_t *)&ring->direct;
	default:
		*size = sizeof(*slot) * (RWIRE_RING_SLOTS - step->value % RWIRE_RING_SLOTS);
		return (uint8_t *)&ring->slot[step->value % RWIRE_RING_SLOTS];
	}
}

static struct peer *
peer_of(const struct step *step)
{
	return step->peer & STEP_TO_DEVICE ? &fz.taken : &fz.peers[step->peer % MAX_PEERS];
}

void
fuzz_shm_write(const struct step *step, const uint8_t *bytes, uint32_t n)
{
	struct peer *peer = peer_of(step);
	volatile uint8_t *to;
	uint32_t i, size;

	if (peer->end.ring == NULL)
		return;
	to = ring_bytes(peer, step, &size);
	for (i = 0; i < RTE_MIN(n, size); i++)
		to[i] = step->sel & 1 ? to[i] ^ bytes[i] : bytes[i];
}

/* The device is about to use what it has checked. */
static void
write_later(void)
{
	if (!fz.has_later)
		return;
	fz.has_later = false;
	fz.nb_later++;
	fuzz_shm_write(&fz.later, fz.later_bytes, fz.later.len);
}

static uint32_t
port_rx_burst(struct rwire_port *port, struct rwire_frame *frames[], uint32_t n)
{
	uint32_t i, nb = fz.inner[fz.dev]->ops->rx_burst(fz.inner[fz.dev], frames, n);

	RTE_SET_USED(port);
	CHECK(nb <= n);
	for (i = 0; i < nb; i++) {
		CHECK(frames[i]->len <= RWIRE_MAX_PKT);
		fz.nb_shared += frames[i]->shared != NULL;
	}
	if (nb != 0)
		write_later();
	return nb;
}

static bool
port_rx_sleep(struct rwire_port *port)
{
	RTE_SET_USED(port);
	return fz.inner[fz.dev]->ops->rx_sleep(fz.inner[fz.dev]);
}

static bool
port_tx_count(const struct rwire_port *port, const struct rwire_addr *dst, uint32_t *sent,
		uint32_t *taken)
{
	RTE_SET_USED(port);
	return fz.inner[fz.dev]->ops->tx_count(fz.inner[fz.dev], dst, sent, taken);
}

static void
port_tx_flush(struct rwire_port *port)
{
	RTE_SET_USED(port);
	fz.inner[fz.dev]->ops->tx_flush(fz.inner[fz.dev]);
}

static struct rwire_frame *
port_tx_get(struct rwire_port *port, const struct rwire_addr *dst)
{
	RTE_SET_USED(port);
	return fz.inner[fz.dev]->ops->tx_get(fz.inner[fz.dev], dst);
}

static bool
port_tx_is_late(struct rwire_port *port, uint64_t now, uint64_t wait, uint64_t deadline)
{
	RTE_SET_USED(port);
	return fz.inner[fz.dev]->ops->tx_is_late(fz.inner[fz.dev], now, wait, deadline);
}

static void
port_tx_idle(struct rwire_port *port)
{
	RTE_SET_USED(port);
	fz.inner[fz.dev]->ops->tx_idle(fz.inner[fz.dev]);
}

static bool
port_tx_share(struct rwire_port *port, const uint8_t *data, uint32_t len)
{
	RTE_SET_USED(port);
	return fz.inner[fz.dev]->ops->tx_share(fz.inner[fz.dev], data, len);
}

/* No byte of the guards is sent, unless another thread writes there. */
static void
check_secrets(const struct rwire_frame *frame)
{
	CHECK(frame->len <= RWIRE_MAX_PKT);
	if (!fz.is_racing)
		fuzz_check_secrets(frame->bth, frame->len);
}

/* A packet and the fields that follow it are within their slot. */
static void
port_tx_put(struct rwire_port *port, struct rwire_frame *frame)
{
	struct rwire_ring *ring = fz.taken.end.ring;
	struct rwire_slot *slot = NULL;
	uint32_t sent = 0, taken, len;
	uint8_t next[8] = {0};

	check_secrets(frame);
	write_later();
	if (ring != NULL && !fz.is_racing && !frame->is_mcast &&
			port_tx_count(port, &frame->flow.dst, &sent, &taken)) {
		slot = &ring->slot[sent % RWIRE_RING_SLOTS];
		memcpy(next, &ring->slot[(sent + 1) % RWIRE_RING_SLOTS], sizeof(next));
	}
	fz.inner[fz.dev]->ops->tx_put(fz.inner[fz.dev], frame);
	if (slot == NULL || slot->number != sent + 1)
		return;
	len = slot->len + (slot->kind & RWIRE_SLOT_HAS_GRH ? sizeof(struct rsoft_grh) : 0u) +
			(slot->kind & RWIRE_SLOT_HAS_GROUP ? 16u : 0u);
	CHECK(len <= sizeof(slot->data));
	CHECK(memcmp(next, &ring->slot[(sent + 1) % RWIRE_RING_SLOTS], sizeof(next)) == 0);
}

static void
port_close(struct rwire_port *port)
{
	struct rwire_port *inner = fz.inner[port - fz.ports];

	inner->ops->close(inner);
}

static const struct rwire_port_ops port_ops = {
		.close = port_close,
		.link_is_up = rwire_port_link_is_up,
		.mcast_join = NULL, /* those of the innermost port are called */
		.mcast_leave = NULL,
		.mcast_members = NULL,
		.rx_burst = port_rx_burst,
		.rx_grant = rwire_port_rx_grant,
		.rx_release = rwire_port_rx_release,
		.rx_sleep = port_rx_sleep,
		.tx_count = port_tx_count,
		.tx_direct = rwire_port_tx_direct,
		.tx_flush = port_tx_flush,
		.tx_get = port_tx_get,
		.tx_idle = port_tx_idle,
		.tx_is_late = port_tx_is_late,
		.tx_put = port_tx_put,
		.tx_share = port_tx_share,
};

static void
open_qps(uint32_t no)
{
	struct rmem_ah_attr path = {
			.is_global = 1, .hop_limit = 3, .traffic_class = 4, .port_num = 1};
	struct rmem_qp_conf conf = {.type = RMEM_QPT_RC,
			.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.access = RMEM_ACCESS_REMOTE,
			.send_cq = devs[no].cq,
			.recv_cq = devs[no].cq};

	CHECK(rmem_qp_create(devs[no].pd, &conf, &devs[no].rc) == 0);
	conf.type = RMEM_QPT_UD;
	CHECK(rmem_qp_create(devs[no].pd, &conf, &devs[no].ud) == 0);
	memcpy(path.dgid, fz.addrs[no].gid, sizeof(path.dgid));
	CHECK(rmem_ah_create(devs[no].pd, &path, &devs[no].ahs[0]) == 0);
	memcpy(path.dgid, fz.group.gid, sizeof(path.dgid));
	CHECK(rmem_ah_create(devs[no].pd, &path, &devs[no].ahs[1]) == 0);
}

static void
open_dev(uint32_t no, const char *name, const char *args)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 4 * DEPTH};
	struct rwire *wire;

	CHECK(rmem_dev_create(name, args, &devs[no].dev) == 0);
	wire = ((struct rsoft_dev *)rmem_dev_drv(devs[no].dev)->priv)->wire;
	fz.inner[no] = wire->port;
	fz.ports[no] = *wire->port;
	fz.ports[no].ops = &port_ops;
	wire->port = &fz.ports[no];
	CHECK(rmem_pd_alloc(devs[no].dev, &devs[no].pd) == 0);
	CHECK(rmem_cq_create(devs[no].dev, &cq_conf, &devs[no].cq) == 0);
	CHECK(rmem_mr_reg(devs[no].pd, fz.memory + GUARD, TARGET, 0,
			      RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE, &devs[no].mr) == 0);
	open_qps(no);
}

void
fuzz_shm_open(void)
{
	const struct rte_memzone *mz;
	char args[96];
	uint32_t i;

	rwire_clock = fuzz_clock;
	fz.now = rte_get_tsc_hz();
	fz.memory_fd = fz.taken.fd = -1;
	for (i = 0; i < MAX_PEERS; i++)
		fz.peers[i].fd = -1;
	for (i = 0; i < MAX_NAMES; i++)
		fz.names[i] = -1;
	mz = rte_memzone_reserve("fuzz", TARGET + 2 * GUARD, SOCKET_ID_ANY, 0);
	CHECK(mz != NULL);
	fz.memory = mz->addr;
	memset(fz.memory, SECRET, TARGET + 2 * GUARD);
	snprintf(fz.name, sizeof(fz.name), "fuzz-%d", (int)getpid());
	CHECK(rwire_addr_from_text("239.7.0.1", &fz.group));
	CHECK(rwire_addr_parse("127.0.13.2", &fz.addrs[0]));
	fz.listeners[0] = rwire_shm_listen(fz.name, &fz.addrs[0]);
	fz.listeners[1] = rwire_shm_listen_host(&fz.addrs[1]);
	CHECK(fz.listeners[0] >= 0 && fz.listeners[1] >= 0);
	snprintf(args, sizeof(args), "ip=127.0.13.1,port=shm:%s,share=1,progress=poll", fz.name);
	open_dev(0, "soft0", args);
	open_dev(1, "soft1", "ip=host,direct=0,progress=poll");
	fz.nb_open = fuzz_nb_open();
}

const char *
fuzz_shm_name(void)
{
	return fz.dev == 0 ? fz.name : SHM_HOST;
}

static void
poll_dev(void)
{
	struct rmem_wc wc[DEPTH];
	int i, n = rmem_poll_cq(devs[fz.dev].cq, wc, DEPTH);

	CHECK(n >= 0);
	for (i = 0; i < n; i++) {
		CHECK(wc[i].status <= RMEM_WC_GENERAL_ERR);
		fz.nb_done[(wc[i].opcode & RMEM_WC_RECV) != 0] += wc[i].status == RMEM_WC_SUCCESS;
	}
}

static void
check_qp(struct rmem_qp *qp)
{
	struct rmem_qp_attr attr;

	CHECK(rmem_qp_query(qp, &attr) == 0);
	CHECK(attr.state == RMEM_QPS_RTS || attr.state == RMEM_QPS_ERR ||
			(attr.state == RMEM_QPS_SQE && qp->type == RMEM_QPT_UD));
}

static void
start_ud(struct rmem_qp *qp)
{
	struct rmem_qp_attr attr = {.state = RMEM_QPS_INIT, .port_num = 1, .qkey = QKEY};

	CHECK(rmem_qp_modify(qp, &attr,
			      RMEM_QP_STATE | RMEM_QP_PKEY_INDEX | RMEM_QP_PORT | RMEM_QP_QKEY) ==
			0);
	attr.state = RMEM_QPS_RTR;
	CHECK(rmem_qp_modify(qp, &attr, RMEM_QP_STATE) == 0);
	attr.state = RMEM_QPS_RTS;
	CHECK(rmem_qp_modify(qp, &attr, RMEM_QP_STATE | RMEM_QP_SQ_PSN) == 0);
}

void
fuzz_shm_reset(void)
{
	CHECK(rmem_qp_reset(devs[fz.dev].rc) == 0 && rmem_qp_reset(devs[fz.dev].ud) == 0);
}

void
fuzz_shm_connect(void)
{
	struct rmem_qp_conn conn = {.timeout = 8,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.min_rnr_timer = 1,
			.traffic_class = 4};
	struct rmem_qp_attr attr;

	fuzz_shm_reset();
	poll_dev();
	memset(fz.memory + GUARD, 0, TARGET);
	start_ud(devs[fz.dev].ud);
	CHECK(rmem_qp_query(devs[fz.dev].rc, &attr) == 0);
	conn.remote = attr.addr; /* the port's part of it */
	conn.remote.qp_num = 0x123456;
	conn.remote.psn = 100;
	memcpy(conn.remote.gid, fz.addrs[fz.dev].gid, sizeof(conn.remote.gid));
	CHECK(rmem_qp_connect(devs[fz.dev].rc, &conn) == 0);
}

void
fuzz_shm_poll(uint32_t us)
{
	fz.now += us * (rte_get_tsc_hz() / 1000000);
	poll_dev();
}

void
fuzz_shm_check(void)
{
	check_qp(devs[fz.dev].rc);
	check_qp(devs[fz.dev].ud);
}

void
fuzz_shm_close(void)
{
	uint32_t i;

	for (i = 0; i < RTE_DIM(devs); i++) {
		CHECK(rmem_qp_destroy(devs[i].rc) == 0 && rmem_qp_destroy(devs[i].ud) == 0);
		CHECK(rmem_ah_destroy(devs[i].ahs[0]) == 0 && rmem_ah_destroy(devs[i].ahs[1]) == 0);
		CHECK(rmem_cq_destroy(devs[i].cq) == 0);
		CHECK(rmem_mr_dereg(devs[i].mr) == 0);
		CHECK(rmem_pd_dealloc(devs[i].pd) == 0);
		CHECK(rmem_dev_close(devs[i].dev) == 0);
		close(fz.listeners[i]);
	}
}
