/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Leases of the cases: a context of one backend on a's QP, over a's buffer. The cases are the
 * same for each backend.
 */

#ifndef LEASE_H
#define LEASE_H

#include <rte_memory.h>

#include <rmem_lease.h>

#include "fixture.h"
#include "test.h"

#define LX_MAX 16u /* leases of the context */

struct lease_fixture {
	struct rmem_lease_ctx *ctx;
	struct rmem_mr *mr;               /* over a's buffer; windows may be bound to it */
	struct rmem_lease_conf conf;      /* of ctx */
	struct rmem_lease *lease[LX_MAX]; /* of the last lx_grant() */
	struct rmem_lease *ended[LX_MAX]; /* of the last lx_take() */
};

extern struct lease_fixture lx;

/*
 * Around each case, by backend. Skipped where the device lacks it. The device is the fixture's:
 * RMEM_TEST_DEV may name another than soft0.
 */
int lx_setup_fast_reg(void);
int lx_setup_mw(void);
int lx_setup_umr(void);
int lx_setup_auto(void);
int lx_teardown(void);

/* The same cases for all backends. */
#define LEASE_SUITES(object)                                                                       \
	struct test_case *test_cases_##object;                                                     \
	TEST_SUITE_OF(object##_fast_reg, lx_setup_fast_reg, lx_teardown, object);                  \
	TEST_SUITE_OF(object##_mw, lx_setup_mw, lx_teardown, object);                              \
	TEST_SUITE_OF(object##_umr, lx_setup_umr, lx_teardown, object)

/* The context again, with lx.conf as it is now. */
int lx_remake(void);
/* length bytes of a's buffer from offset on. */
struct rmem_lease_req lx_req(size_t offset, uint32_t length, uint32_t access);
/* nb leases of 4 KiB each, from the first page on, to lx.lease; checked. */
int lx_grant(uint16_t nb, uint32_t access);
/* Poll until nb leases have ended, and take them to lx.ended; checked. */
int lx_take(uint16_t nb, uint8_t how);
/* Poll until a lease is in a state. */
int lx_wait_state(const struct rmem_lease *lease, uint8_t state);
/*
 * Before the peer uses a lease without a notification on the QP: the peer's may arrive
 * before that one is executed, but for the software device without engines, which executes it when
 * it is posted.
 */
int lx_wait_open(const struct rmem_lease *lease);
/* b writes to the lease: a status. */
int lx_write(const struct rmem_lease *lease, uint32_t offset, uint32_t length);
/* The bytes arrive, or the request is refused and the QPs are connected again. */
int lx_expect_open(const struct rmem_lease *lease);
/* The first of these for a lease that is known to be open, whatever its state. */
int lx_expect_told(const struct rmem_lease *lease);
int lx_expect_closed(uint64_t remote_addr, uint32_t length, uint32_t rkey);
/*
 * The same for bytes outside the lease. Skipped with windows on a device that does not check
 * their bounds: cases that need them are skipped, with the reason.
 */
bool lx_has_bounds(void);
int lx_skip_bounds(void);
int lx_expect_outside(uint64_t remote_addr, uint32_t length, uint32_t rkey);
/* Reset both QPs, recover, and connect them. */
int lx_recover(void);
struct rmem_lease_stats lx_stats(void);

#endif /* LEASE_H */
