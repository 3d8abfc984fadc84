/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The conformance suite: what a device must do whatever its driver, case by case.
 *
 * It uses what applications use, and nothing of a driver. Side a of the fixture owns the
 * memory that a case is about, b is the peer that reaches for it. A request that must fail
 * ends with a status that the standard names for it (conf_refusal.c); what a known device does
 * instead is in the table of conf_deviation.c and is printed, never passed over.
 */

#ifndef CONF_H
#define CONF_H

#include "../fixture.h"
#include "../test.h"

/* A case: what of a device it takes, and where its rule is written. */
#define CONF_TEST(subject, function, capabilities, rights, where)                                  \
	TEST_ADD(subject, function, conf, .capa = capabilities, .access = rights, .rule = where)

/* The device that is tried. */
struct conf_dev {
	struct rmem_dev *dev;
	struct rmem_dev_info info;
	const char *profile; /* whose deviations are known, or NULL */
};

extern struct conf_dev conf;

/* Why a request is refused; conf_refusal.c has the statuses for each. */
enum conf_refusal {
	CONF_LOCAL_KEY,   /* an lkey does not open the range for this */
	CONF_REMOTE_KEY,  /* an rkey does not open the range for this */
	CONF_QP_RIGHT,    /* the peer's QP does not allow the opcode */
	CONF_UNALIGNED,   /* an atomic at no multiple of 8 */
	CONF_TOO_LONG,    /* a message longer than the peer's receive */
	CONF_RECV_LENGTH, /* that receive */
	CONF_PEER_MEMORY, /* the peer's receive names memory that it may not */
	CONF_RECV_KEY,    /* that receive */
	CONF_BIND,        /* a REG_MR, BIND_MW or UMR that may not be */
	CONF_INVALIDATE,  /* a key that a local request may not invalidate */
	CONF_RECV_INV,    /* a key that the peer may not invalidate: the receive */
	CONF_NO_RECV,     /* the peer has no receive posted */
	CONF_NO_PEER,     /* the peer does not answer */
	CONF_FLUSHED,     /* the QP is in ERR */
};

/* Sides a and b on conf.dev, connected; each MR has all rights that the device has. */
int conf_setup(void);
/* The same with windows in fx.mw, or with a fast-register MR in fx.fast. */
int conf_setup_mw(void);
int conf_setup_fast(void);
int conf_teardown(void);

/* Rights of an MR that the device has; MW_BIND where it has windows. */
uint32_t conf_access(void);
/* A QP of this PD with the sizes of fx_qp_conf(), up to the limits of the device; or NULL. */
struct rmem_qp *conf_qp(struct rmem_pd *pd, struct rmem_cq *cq, uint32_t access);
/* The same of a type. */
struct rmem_qp *conf_qp_of(struct rmem_pd *pd, struct rmem_cq *cq, uint32_t access, uint16_t type);
/* Patience is that of a loaded machine: what is lost ends the case, not what is late. */
int conf_connect(struct rmem_qp *qp, struct rmem_qp *peer);
/* A second pair of connected QPs of a's PD. */
int conf_pair(struct rmem_qp **mine, struct rmem_qp **peer);
int conf_reconnect_pair(struct rmem_qp *qp, struct rmem_qp *peer);
int conf_reconnect(void);
/*
 * The QP of a failed request is in ERR, or moves there: some devices report the failure first.
 */
int conf_expect_err(struct rmem_qp *qp);

/* Requests of b on memory of a's, by opcode; the SGE is in b's buffer. */
struct rmem_send_wr conf_request(
		uint8_t opcode, const struct rmem_sge *sge, uint64_t remote_addr, uint32_t rkey);
int conf_do(uint8_t opcode, uint64_t remote_addr, uint32_t length, uint32_t rkey);

/* Whether the status is one for this refusal; notes a deviation that is known. */
int conf_status(enum conf_refusal why, int status);
/*
 * The request of that side is refused, at the post or by its completion, which leaves its QP in
 * ERR; then both are connected again.
 */
int conf_refused(enum conf_refusal why, struct rmem_qp *qp, const struct rmem_send_wr *wr);
/* b's WRITE, READ or atomic is refused for the rkey, and a's buffer stays as it was. */
int conf_closed(uint64_t addr, uint32_t length, uint32_t rkey);
/* So are 8 bytes there to each opcode that names an rkey. */
int conf_closed_to_all(uint64_t addr, uint32_t rkey);
/* 8 bytes there are no source of a's WRITE, and no target of its READ. */
int conf_closed_locally(uint64_t addr, uint32_t lkey);
/* As conf_closed() for what lies outside a window, though inside its MR. */
int conf_closed_beside(uint64_t addr, uint32_t length, uint32_t rkey);
/* b writes through the key, at this place of a's buffer and nowhere else. */
int conf_open(uint64_t addr, uint32_t length, uint32_t rkey, const uint8_t *at);

/*
 * The device did what the rule forbids. Whether that is a known deviation of it: then the case
 * continues, and is counted and printed separately.
 */
bool conf_deviates(const char *name);
/* Whether it is known to, so that there is no use in waiting for long. */
bool conf_knows(const char *name);
/* A status that is no such refusal's; the same. */
bool conf_deviates_status(enum conf_refusal why, int status);
/* How many different ones were noted since the last call. */
unsigned int conf_deviations_taken(void);
bool conf_has_profile(const char *profile);
void conf_print_deviations(void);

/* Whether a device of the profile ends a request, or a receive, so where the first is due. */
bool conf_deviates_from(int status, int other, bool is_recv);

/*
 * The same random program on the reference and on conf.dev, which must do alike; a result as a
 * case's.
 */
int conf_diff(struct rmem_dev *reference, uint64_t seed, uint32_t nb_ops);

/* The suite notices a device that is wrong: main() of --self-test. */
int conf_self_test(void);

/* Runs what matches one of the patterns (or all); counts and prints. */
struct conf_counts {
	unsigned int passed;
	unsigned int failed;
	unsigned int skipped;
	unsigned int deviated;
};

int conf_open_dev(const char *name, const char *args);
int conf_close_dev(void);
void conf_run(char *const *patterns, int nb_patterns, struct conf_counts *counts);
void conf_list(char *const *patterns, int nb_patterns);

#endif /* CONF_H */
