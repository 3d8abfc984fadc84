/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Fixture of lease cases: a context on the QP of a, with leases of its buffer. The cases run with
 * each backend.
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
	struct rmem_mr *mr;               /* over the buffer of a, with MW_BIND */
	struct rmem_lease_conf conf;      /* of ctx */
	struct rmem_lease *lease[LX_MAX]; /* of the last lx_grant() */
	struct rmem_lease *ended[LX_MAX]; /* of the last lx_take() */
};

extern struct lease_fixture lx;

/*
 * Set-up of a case with each backend; skips on a device without it. RMEM_TEST_DEV selects the
 * device, as in fixture.h.
 */
void lx_setup_fast_reg(void);
void lx_setup_mw(void);
void lx_setup_umr(void);
void lx_setup_auto(void);
void lx_teardown(void);

/* A suite for each backend, with the same cases. */
#define LEASE_SUITES(object)                                                                       \
	struct test_case *test_cases_##object;                                                     \
	TEST_SUITE_OF(object##_fast_reg, lx_setup_fast_reg, lx_teardown, object);                  \
	TEST_SUITE_OF(object##_mw, lx_setup_mw, lx_teardown, object);                              \
	TEST_SUITE_OF(object##_umr, lx_setup_umr, lx_teardown, object)

void lx_destroy(void);
/* Destroy the context, and create it with lx.conf. */
void lx_remake(void);
/* A lease request for length bytes at offset of the buffer of a. */
struct rmem_lease_req lx_req(size_t offset, uint32_t length, uint32_t access);
/* Grant nb leases of 4 KiB each, from the first page, into lx.lease. */
void lx_grant(uint16_t nb, uint32_t access);
/* The same to write, and poll until they are granted. */
void lx_granted(uint16_t nb);
/* Poll until nb leases have ended, and reclaim them into lx.ended. */
void lx_take(uint16_t nb, uint8_t how);
/* Revoke the first nb of lx.lease, and reclaim them. */
void lx_revoke(uint16_t nb);
/* Poll until a lease is in a state. */
void lx_wait_state(const struct rmem_lease *lease, uint8_t state);
/*
 * Wait for a grant before the peer uses the lease without a message on the QP: its request may
 * arrive before the grant is executed. The software device without engines executes it at the post.
 */
void lx_wait_granted(const struct rmem_lease *lease);
/* WRITE by b to the lease; a status. */
int lx_write(const struct rmem_lease *lease, uint32_t offset, uint32_t length);
/* Check that b can write to the lease. */
void lx_expect_granted(const struct rmem_lease *lease);
/* The same for a lease in any state. */
void lx_expect_write(const struct rmem_lease *lease);
/* Check that b can't write to the range; then connect the QPs again. */
void lx_expect_denied(uint64_t remote_addr, uint32_t length, uint32_t rkey);
/*
 * The same for bytes outside the lease. A device may not check the bounds of windows: cases that
 * depend on them are skipped there.
 */
bool lx_has_bounds(void);
void lx_need_bounds(void);
void lx_expect_outside(uint64_t remote_addr, uint32_t length, uint32_t rkey);
/* Reset both QPs, call rmem_lease_recover(), and connect them. */
void lx_recover(void);
struct rmem_lease_stats lx_stats(void);

#endif /* LEASE_H */
