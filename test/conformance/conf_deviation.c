/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Known deviations of devices from the rules. Each was seen in a run; a case that meets one prints
 * it and is counted separately. A profile is selected by --known, or by the device's arguments.
 */

#include <stdio.h>
#include <string.h>

#include "conf.h"

#define BIT(status) (UINT32_C(1) << (status))

struct deviation {
	const char *profile;
	const char *name; /* name for conf_deviates(), or NULL */
	enum conf_refusal why;
	uint32_t statuses; /* without a name: these are given for that refusal */
	const char *text;
};

static const struct deviation deviations[] = {
		{"rxe", NULL, CONF_LOCAL_KEY, BIT(RMEM_WC_LOC_QP_OP_ERR),
				"an unknown lkey is LOC_QP_OP_ERR, not LOC_PROT_ERR"},
		{"rxe", NULL, CONF_LOCAL_KEY, BIT(RMEM_WC_WR_FLUSH_ERR),
				"the request that fails on an lkey is reported as flushed by newer kernels"},
		{"rxe", NULL, CONF_TOO_LONG, BIT(RMEM_WC_REM_OP_ERR),
				"a message too long is REM_OP_ERR to its sender"},
		{"rxe", NULL, CONF_RECV_LENGTH, BIT(RMEM_WC_LOC_QP_OP_ERR),
				"a receive too short is LOC_QP_OP_ERR, not LOC_LEN_ERR"},
		{"rxe", NULL, CONF_RECV_KEY, BIT(RMEM_WC_LOC_QP_OP_ERR),
				"a receive with an invalid lkey is LOC_QP_OP_ERR, not LOC_PROT_ERR"},
		{"rxe", NULL, CONF_UNALIGNED, BIT(RMEM_WC_REM_ACCESS_ERR),
				"an unaligned atomic is REM_ACCESS_ERR with older kernels"},
		{"rxe", "window_bounds", 0, 0,
				"the bounds of a window are not checked, only those of its MR"},
		{"rxe", "imm_recv", 0, 0,
				"WRITE_WITH_IMM with an invalid rkey ends the receive with REM_ACCESS_ERR, "
				"not LOC_ACCESS_ERR"},
		{"rxe", "recv_in_err", 0, 0, "a receive posted to a QP in ERR is not flushed"},
		{"rxe", "event_access", 0, 0, "QP_ACCESS_ERR is not reported by older kernels"},
		{"rxe", "event_comm_est", 0, 0, "COMM_EST is not reported"},
		{"rxe", "event_drained", 0, 0, "SQ_DRAINED is reported also if not requested"},
		{"rxe", "event_fatal", 0, 0, "the overrun of a CQ has no QP_FATAL"},
		{"rxe", "event_last_wqe_again", 0, 0,
				"QP_LAST_WQE_REACHED is reported again if a QP in ERR is set to ERR"},
		{"rxe", "event_last_wqe", 0, 0,
				"QP_LAST_WQE_REACHED is not reported by older kernels, by others not if the "
				"QP is reset soon"},
		{"rxe", "event_req", 0, 0, "QP_REQ_ERR is not reported"},
		{"rxe", "flush_solicited", 0, 0,
				"a flushed receive is not solicited, with newer kernels"},
		{"rxe", "inv_late", 0, 0,
				"bytes of a packet whose key was checked may arrive after the "
				"invalidation has completed"},
		{"rxe", "uc_long", 0, 0,
				"a message of UC or UD that is longer than the receive ends it with "
				"LOC_QP_OP_ERR"},
		{"rxe", "uc_sqe", 0, 0,
				"a QP of UC or UD with a failed request is in ERR, not in SQE"},
		{"rxe", "ud_mtu", 0, 0,
				"a message of UD that is longer than the path MTU is dropped, and its "
				"request succeeds"},
		{"rxe", "ud_qkey", 0, 0,
				"the high bit of the Q_Key of a request does not select that of the QP"},
		{"rxe", "mcast_join", 0, 0, "the host must join a multicast group"},
		{"rxe", "srq_pd", 0, 0,
				"the keys of an SRQ's receives are of the PD of the QP, not of the SRQ"},
};

/* For each: the number of cases that met it, and whether the current case did. */
static unsigned int nb_cases[RTE_DIM(deviations)];
static bool is_met[RTE_DIM(deviations)];

bool
conf_has_profile(const char *profile)
{
	size_t i;

	for (i = 0; i < RTE_DIM(deviations); i++) {
		if (strcmp(deviations[i].profile, profile) == 0)
			return true;
	}
	return false;
}

static bool
meet(size_t i)
{
	if (!is_met[i]) {
		is_met[i] = true;
		nb_cases[i]++;
		test_note("known deviation, kernel %s: %s", deviations[i].profile,
				deviations[i].text);
	}
	return true;
}

static bool
is_known(const struct deviation *deviation)
{
	return conf.profile != NULL && strcmp(deviation->profile, conf.profile) == 0;
}

static size_t
find_named(const char *name)
{
	size_t i;

	for (i = 0; i < RTE_DIM(deviations); i++) {
		if (is_known(&deviations[i]) && deviations[i].name != NULL &&
				strcmp(deviations[i].name, name) == 0)
			break;
	}
	return i;
}

bool
conf_is_known_deviation(const char *name)
{
	return find_named(name) < RTE_DIM(deviations);
}

bool
conf_deviates(const char *name)
{
	size_t i = find_named(name);

	if (i < RTE_DIM(deviations))
		return meet(i);
	test_note("this is no known deviation of the device");
	return false;
}

bool
conf_deviates_status(enum conf_refusal why, int status)
{
	size_t i;

	for (i = 0; status >= 0 && i < RTE_DIM(deviations); i++) {
		const struct deviation *deviation = &deviations[i];

		if (is_known(deviation) && deviation->name == NULL && deviation->why == why &&
				(deviation->statuses & BIT(status)) != 0)
			return meet(i);
	}
	return false;
}

unsigned int
conf_deviations_taken(void)
{
	unsigned int nb = 0;
	size_t i;

	for (i = 0; i < RTE_DIM(deviations); i++) {
		nb += is_met[i];
		is_met[i] = false;
	}
	return nb;
}

void
conf_print_deviations(void)
{
	size_t i;

	if (conf.profile == NULL)
		return;
	printf("known deviations, kernel %s, and the cases that met them:\n", conf.profile);
	for (i = 0; i < RTE_DIM(deviations); i++) {
		if (is_known(&deviations[i]))
			printf("  %3u  %s\n", nb_cases[i], deviations[i].text);
	}
}
