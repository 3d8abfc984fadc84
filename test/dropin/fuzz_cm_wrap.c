/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Functions that the core calls, wrapped so that an input is repeatable: the agent has no thread,
 * the time, the random numbers and the faults of chaos= are the fuzzer's, and QP 1 of the device
 * with an address sends to itself.
 */

#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rmem_thread.h>

#include "rmem_gsi.h"

#include "fuzz_cm.h"
#include "../wire/xorshift.h"

#define MAX_MADS       256u
#define TIMER_INTERVAL 0x726d6372 /* of the agent's timer */

int __wrap_ibcm_create(const struct ibcm_conf *conf, struct ibcm **cm);
int __real_ibcm_create(const struct ibcm_conf *conf, struct ibcm **cm);
uint64_t __wrap_rcm_now(void);
int __wrap_rmem_gsi_open(
		struct rmem_dev *dev, rmem_gsi_recv_t recv, void *arg, struct rmem_gsi **gsi);
int __wrap_rmem_gsi_fd(const struct rmem_gsi *gsi);
bool __wrap_rmem_gsi_poll(struct rmem_gsi *gsi);
void __wrap_rmem_gsi_send(struct rmem_gsi *gsi, const struct ibcm_path *path,
		const uint8_t mad[IBCM_MAD_LEN]);
uint64_t __wrap_rmem_gsi_random(void *arg);
int __wrap_rsoft_chaos_rdma_cm_fault(struct rmem_dev *dev, enum rmem_rdma_cm_step step,
		uint32_t number, struct rmem_rdma_cm_fault *fault);
int __wrap_rmem_thread_start(struct rmem_thread *thread, const char *name);
int __real_rmem_thread_start(struct rmem_thread *thread, const char *name);
int __wrap_timerfd_settime(
		int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
int __real_timerfd_settime(
		int fd, int flags, const struct itimerspec *at, struct itimerspec *before);

struct ibcm *fuzz_cm;
uint64_t fuzz_cm_now = 1000000000;

static struct rmem_gsi {
	rmem_gsi_recv_t recv;
	void *arg;
	int fd;
	uint32_t first, nb; /* of mads, a ring */
	uint64_t nb_sent;
	struct {
		struct ibcm_path path; /* of the answer */
		uint8_t mad[IBCM_MAD_LEN];
	} mads[MAX_MADS];
} net = {.fd = -1};

static uint64_t random_state = 1;

/* The faults that chaos= has. */
static const struct {
	enum rmem_rdma_cm_step step;
	enum rmem_rdma_cm_fault_type type;
} faults[] = {
		{RMEM_RDMA_CM_RESOLVE_ADDR, RMEM_RDMA_CM_TIMEOUT},
		{RMEM_RDMA_CM_RESOLVE_ROUTE, RMEM_RDMA_CM_TIMEOUT},
		{RMEM_RDMA_CM_RESOLVE_ROUTE, RMEM_RDMA_CM_DEVICE_REMOVAL},
		{RMEM_RDMA_CM_CONNECT, RMEM_RDMA_CM_REJECT},
		{RMEM_RDMA_CM_CONNECT, RMEM_RDMA_CM_UNREACHABLE},
		{RMEM_RDMA_CM_CONNECT, RMEM_RDMA_CM_TIMEOUT},
		{RMEM_RDMA_CM_CONNECT, RMEM_RDMA_CM_DEVICE_REMOVAL},
		{RMEM_RDMA_CM_ACCEPT, RMEM_RDMA_CM_REJECT},
		{RMEM_RDMA_CM_ACCEPT, RMEM_RDMA_CM_TIMEOUT},
		{RMEM_RDMA_CM_ACCEPT, RMEM_RDMA_CM_DISCONNECTED},
		{RMEM_RDMA_CM_ACCEPT, RMEM_RDMA_CM_DEVICE_REMOVAL},
		{RMEM_RDMA_CM_ESTABLISHED, RMEM_RDMA_CM_DISCONNECTED},
		{RMEM_RDMA_CM_ESTABLISHED, RMEM_RDMA_CM_DEVICE_REMOVAL},
};

/* The next fault; RTE_DIM(faults): none. */
static uint32_t next_fault, fault_ms;

int
__wrap_ibcm_create(const struct ibcm_conf *conf, struct ibcm **cm)
{
	int ret = __real_ibcm_create(conf, cm);

	fuzz_cm = ret == 0 ? *cm : NULL;
	return ret;
}

uint64_t
__wrap_rcm_now(void)
{
	return fuzz_cm_now;
}

static void
end_at_once(void *arg)
{
	RTE_SET_USED(arg);
}

int
__wrap_rmem_thread_start(struct rmem_thread *thread, const char *name)
{
	if (strcmp(name, "rmem-cm") == 0)
		thread->run = end_at_once;
	return __real_rmem_thread_start(thread, name);
}

/* The agent's timer expires at once; the agent then finds the time of the fuzzer. */
int
__wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before)
{
	struct itimerspec soon = *at;

	if (soon.it_interval.tv_sec == TIMER_INTERVAL &&
			(soon.it_value.tv_sec != 0 || soon.it_value.tv_nsec != 0))
		soon.it_value = (struct timespec){.tv_nsec = 1};
	return __real_timerfd_settime(fd, flags, &soon, before);
}

/* A reply that is followed by a DREQ has no delay. */
int
__wrap_rsoft_chaos_rdma_cm_fault(struct rmem_dev *dev, enum rmem_rdma_cm_step step, uint32_t number,
		struct rmem_rdma_cm_fault *fault)
{
	const uint32_t i = next_fault;

	RTE_SET_USED(dev);
	RTE_SET_USED(number);
	if (i == RTE_DIM(faults) || faults[i].step != step)
		return 0;
	*fault = (struct rmem_rdma_cm_fault){.type = faults[i].type, .delay_ms = fault_ms};
	if (step == RMEM_RDMA_CM_ACCEPT && faults[i].type == RMEM_RDMA_CM_DISCONNECTED)
		fault->delay_ms = 0;
	if (faults[i].type == RMEM_RDMA_CM_REJECT)
		fault->reason = RCM_REJ_CONSUMER;
	next_fault = RTE_DIM(faults);
	return 1;
}

void
fuzz_cm_fault(uint32_t which, uint32_t ms)
{
	next_fault = which % RTE_DIM(faults);
	fault_ms = 1 + ms % 200;
}

uint64_t
__wrap_rmem_gsi_random(void *arg)
{
	uint64_t high = xorshift32(&random_state);

	RTE_SET_USED(arg);
	return high << 32 | xorshift32(&random_state);
}

int
__wrap_rmem_gsi_open(struct rmem_dev *dev, rmem_gsi_recv_t recv, void *arg, struct rmem_gsi **gsi)
{
	RTE_SET_USED(dev);
	CHECK(net.fd < 0);
	net.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(net.fd >= 0);
	net.recv = recv;
	net.arg = arg;
	*gsi = &net;
	return 0;
}

int
__wrap_rmem_gsi_fd(const struct rmem_gsi *gsi)
{
	return gsi->fd;
}

/* MADs that are sent now arrive later. */
bool
__wrap_rmem_gsi_poll(struct rmem_gsi *gsi)
{
	uint32_t n = gsi->nb, at;
	eventfd_t count;

	(void)eventfd_read(gsi->fd, &count);
	for (; n != 0; n--) {
		at = gsi->first;
		gsi->first = (gsi->first + 1) % MAX_MADS;
		gsi->nb--;
		gsi->recv(gsi->arg, &gsi->mads[at].path, gsi->mads[at].mad);
	}
	return false;
}

void
__wrap_rmem_gsi_send(
		struct rmem_gsi *gsi, const struct ibcm_path *path, const uint8_t mad[IBCM_MAD_LEN])
{
	uint32_t at = (gsi->first + gsi->nb) % MAX_MADS;

	/* No other host has an answer, and the queue is short. */
	if (memcmp(path->remote_gid, path->local_gid, sizeof(path->local_gid)) != 0 ||
			gsi->nb == MAX_MADS)
		return;
	gsi->mads[at].path = *path;
	memcpy(gsi->mads[at].mad, mad, IBCM_MAD_LEN);
	gsi->nb++;
	gsi->nb_sent++;
	CHECK(eventfd_write(gsi->fd, 1) == 0);
}

void
fuzz_cm_drop(uint32_t n)
{
	for (n %= MAX_MADS; n != 0 && net.nb != 0; n--, net.nb--)
		net.first = (net.first + 1) % MAX_MADS;
}

void
fuzz_cm_wrap_reset(void)
{
	net.first = net.nb = 0;
	next_fault = RTE_DIM(faults);
	random_state = 1;
}
