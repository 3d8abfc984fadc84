/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The conformance suite: the rules for a device with any driver, case by case.
 *
 * It uses only the public API. Side a of the fixture owns the memory of a case, b is the peer that
 * accesses it. A request that must fail completes with a status of the standard (conf_refusal.c).
 * Other statuses of a known device are in the table of conf_deviation.c; each is printed.
 */

#ifndef CONF_H
#define CONF_H

#include "../fixture.h"
#include "../test.h"

/* A case: the capabilities and rights it requires, and the source of its rule. */
#define CONF_TEST(subject, function, capabilities, rights, where)                                  \
	TEST_ADD(subject, function, conf, .capa = capabilities, .access = rights, .rule = where)

/* The device under test. */
struct conf_dev {
	struct rmem_dev *dev;
	struct rmem_dev_info info;
	const char *profile; /* selects known deviations, or NULL */
	const char *faults;  /* log of the faults that the device injects, or NULL */
	bool is_excused;     /* each case counts as one with a fault */
	bool is_wrong;       /* a device of --self-test, which may lose completions */
};

extern struct conf_dev conf;

/* Why a request is refused; conf_refusal.c has the statuses for each. */
enum conf_refusal {
	CONF_LOCAL_KEY,   /* an lkey does not permit the access */
	CONF_REMOTE_KEY,  /* an rkey does not permit the access */
	CONF_QP_RIGHT,    /* the peer's QP does not allow the opcode */
	CONF_UNALIGNED,   /* an atomic at an address that is not a multiple of 8 */
	CONF_TOO_LONG,    /* a message longer than the peer's receive */
	CONF_RECV_LENGTH, /* the receive of CONF_TOO_LONG */
	CONF_PEER_MEMORY, /* the memory of the peer's receive can't be accessed */
	CONF_RECV_KEY,    /* the receive of CONF_PEER_MEMORY */
	CONF_BIND,        /* a REG_MR, BIND_MW or UMR */
	CONF_INVALIDATE,  /* a key that a local request may not invalidate */
	CONF_RECV_INV,    /* a key that the peer may not invalidate: the receive */
	CONF_NO_RECV,     /* the peer has no receive posted */
	CONF_NO_PEER,     /* the peer does not answer */
	CONF_FLUSHED,     /* the QP is in ERR */
};

/* Connected sides a and b on conf.dev; each MR has all rights that the device supports. */
void conf_setup(void);
/* The same with windows in fx.mw, or with a fast-register MR in fx.fast. */
void conf_setup_mw(void);
void conf_setup_fast(void);
void conf_teardown(void);

/* All rights of an MR that the device supports. */
uint32_t conf_access(void);
/* A QP with the sizes of fx_qp_conf(), reduced to the limits of the device. */
struct rmem_qp *conf_qp(struct rmem_pd *pd, struct rmem_cq *cq, uint32_t access);
/* The same with a type. */
struct rmem_qp *conf_qp_of(struct rmem_pd *pd, struct rmem_cq *cq, uint32_t access, uint16_t type);
/* Timeouts are long enough for a loaded machine, so that only a lost message ends a case. */
int conf_connect(struct rmem_qp *qp, struct rmem_qp *peer);
/* A second pair of connected QPs, of the PD of a. */
void conf_pair(struct rmem_qp **mine, struct rmem_qp **peer);
void conf_reconnect_pair(struct rmem_qp *qp, struct rmem_qp *peer);
void conf_reconnect(void);
/*
 * The QP of a failed request is in ERR, or moves there: some devices report the failure first.
 */
void conf_expect_err(struct rmem_qp *qp);

/*
 * Send until a receive in that CQ completes, which is in fx.wc then; a status. A message that is
 * late is not sent again too soon: it would arrive while its memory is compared.
 */
int conf_deliver(struct rmem_qp *qp, const struct rmem_send_wr *wr, struct rmem_cq *cq);
/*
 * Post WRITEs of b to all of an MR of a, and end its memory by a call: later bytes do not change.
 * The completions are in wcs.
 */
void conf_end_writes(struct rmem_mr *mr, void (*end)(struct rmem_mr *mr), struct rmem_wc wcs[16]);

/* The index of the GID of the QPs, on port 1. */
uint8_t conf_gid_index(const uint8_t gid[16]);

/* Requests of b to memory of a, by opcode; the SGE is in the buffer of b. */
struct rmem_send_wr conf_request(
		uint8_t opcode, const struct rmem_sge *sge, uint64_t remote_addr, uint32_t rkey);
int conf_do(uint8_t opcode, uint64_t remote_addr, uint32_t length, uint32_t rkey);

/* Check that the status is one for this refusal, or a known deviation, which is recorded. */
void conf_status(enum conf_refusal why, int status);
/*
 * Check that a request is refused, at the post or by its completion, and its QP moves to ERR; then
 * connect both sides again.
 */
void conf_refused(enum conf_refusal why, struct rmem_qp *qp, const struct rmem_send_wr *wr);
/* Check that a WRITE, READ or atomic of b is refused for the rkey, and a's buffer is unchanged. */
void conf_denied(uint64_t addr, uint32_t length, uint32_t rkey);
/* The same of 8 bytes with each opcode that has an rkey. */
void conf_denied_to_all(uint64_t addr, uint32_t rkey);
/* Check that 8 bytes can't be the source of a WRITE by a, nor the target of a READ. */
void conf_denied_locally(uint64_t addr, uint32_t lkey);
/* As conf_denied(), for a range outside of a window but inside its MR. */
void conf_denied_outside(uint64_t addr, uint32_t length, uint32_t rkey);
/* Check that a WRITE of b with the key succeeds, and changes only `at` in the buffer of a. */
void conf_granted(uint64_t addr, uint32_t length, uint32_t rkey, const uint8_t *at);

/*
 * Whether a violation of a rule is a known deviation of the device. Then the case continues, and is
 * counted and printed separately.
 */
bool conf_deviates(const char *name);
/* Whether the deviation is known, so that a case need not wait long for conforming behaviour. */
bool conf_is_known_deviation(const char *name);
/* The same for a status that is not one of the refusal. */
bool conf_deviates_status(enum conf_refusal why, int status);
/* Number of different deviations recorded since the last call. */
unsigned int conf_deviations_taken(void);
bool conf_has_profile(const char *profile);
void conf_print_deviations(void);

/* Whether other is a known deviation from status, of a request or a receive. */
bool conf_deviates_from(int status, int other, bool is_recv);

/*
 * Run the same random program on the reference and on conf.dev, and compare the results; returns as
 * a case does.
 */
void conf_diff(struct rmem_dev *reference, uint64_t seed, uint32_t nb_ops);

/* Check that the suite detects devices with injected faults: main() of --self-test. */
int conf_self_test(void);

/*
 * Rules of posts and completions with any fault; for runs with --faults. begin() and end() enclose
 * each case: end() returns whether they held, and empties all queues.
 */
void conf_oracle_open(void);
void conf_oracle_begin(void);
bool conf_oracle_end(void);
/* Check a rule in a case, which no fault excuses. */
void conf_must(bool is_held, const char *what);

/* Run the cases that match one of the patterns, or all. */
struct conf_counts {
	unsigned int passed;
	unsigned int failed;
	unsigned int skipped;
	unsigned int deviated;
	unsigned int faulted; /* failed, with an injected fault */
};

int conf_open_dev(const char *name, const char *args);
int conf_close_dev(void);
void conf_run(char *const *patterns, int nb_patterns, struct conf_counts *counts);
void conf_list(char *const *patterns, int nb_patterns);

#endif /* CONF_H */
