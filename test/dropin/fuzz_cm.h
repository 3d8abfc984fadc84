/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fuzzer of rdma_cm: its input, and the program whose steps it makes. */

#ifndef FUZZ_CM_H
#define FUZZ_CM_H

#include <stdint.h>

#include <rdma/rdma_user_cm.h>

#include "cm/rcm.h"
#include "../wire/fuzz.h"

/* Of an input; len bytes follow. */
struct step {
	uint8_t kind;    /* enum step_kind, modulo STEP_NB */
	uint8_t channel; /* of the command, modulo MAX_CHANNELS; bit 7 of the first: use MADs */
	uint8_t which;   /* ID of the channel */
	uint8_t what;
	uint16_t value;
	uint8_t bad; /* enum step_bad */
	uint8_t len;
};

enum step_kind {
	/* Commands, by number; then: */
	STEP_DUE = RDMA_USER_CM_CMD_JOIN_MCAST + 1, /* the command for which the ID waits */
	STEP_RAW,                                   /* any command, of the bytes that follow */
	STEP_OPEN,
	STEP_CLOSE,
	STEP_LOST,  /* close the descriptor without the library */
	STEP_COPY,  /* dup() */
	STEP_RUN,   /* the agent */
	STEP_DROP,  /* MADs on the network */
	STEP_FAULT, /* of the next connection that reaches its step */
	STEP_TIME,
	STEP_NB,
};

enum step_bad {
	BAD_NONE,
	/* The response, or the value of an option: */
	BAD_RESP_NULL,
	BAD_RESP_UNMAPPED,
	BAD_RESP_CONSTANT,
	BAD_RESP_END, /* all but the first byte are not mapped */
	BAD_RESP_WILD,
	BAD_OUT_SHORT,
	BAD_OUT_LARGE,
	/* The command: */
	BAD_IN_SHORT,
	BAD_IN_LARGE, /* bytes follow the command */
	BAD_IN_LIE,   /* the header has a larger size */
	BAD_NO_HEADER,
	BAD_DATA_NULL,
	BAD_DATA_UNMAPPED,
	BAD_DATA_END, /* all but the header is not mapped */
	BAD_NUMBER,
	/* The ID: */
	BAD_ID_OTHER, /* of another channel */
	BAD_ID_NONE,
	BAD_NB,
};

#define MAX_CHANNELS 3u
#define MAX_IDS      4096u /* an input has fewer steps */

struct channel {
	int fds[2]; /* -1: none */
};

/* An ID that the program knows, by its handle. */
struct known {
	bool is_used;
	bool is_uncertain; /* its events are not counted: the uid of another ID is equal */
	uint8_t channel;
	uint32_t nb_events;
	uint64_t uid;
};

struct group {
	uint32_t handle, id, nb_events;
	uint64_t uid;
};

struct fuzz_cm {
	struct channel channels[MAX_CHANNELS];
	struct known ids[MAX_IDS];
	struct group groups[MAX_IDS];
	uint32_t nb_ids, nb_groups, nb_fds;
	uint32_t end_id; /* all known handles are less */
	uint64_t last_uid;
	uint64_t nb_steps;
	uint64_t nb_done[STEP_DUE], nb_refused[STEP_DUE];
	uint64_t nb_events[RCM_TIMEWAIT_EXIT_EVENT + 1];
};

extern struct fuzz_cm fz;

struct command {
	uint32_t number;
	uint16_t in_len;
	uint16_t out_len;
	union {
		uint8_t bytes[sizeof(((struct rcm_cmd *)NULL)->in) + 64];
		__typeof__(((struct rcm_cmd *)NULL)->in) in;
	};
	/* Set by fuzz_cm_write(): */
	bool has_answer;       /* a response would be written, or an option read */
	bool is_unmapped;      /* the response, the option or the command can't be accessed */
	const uint8_t *answer; /* the response; NULL: a bad one */
};

/* fuzz_cm.c */
/* A descriptor of the channel; -1: it is closed. */
int fuzz_cm_fd(uint32_t channel);

/* fuzz_cm_fill.c */
/* Handle of the n-th known ID of the channel, or of the others; n if there is none. */
uint32_t fuzz_cm_pick(uint32_t channel, bool is_other, uint32_t n);
/* Fill a command for an ID. */
void fuzz_cm_fill(struct command *command, const struct step *step, uint32_t handle);
/* The command that brings an ID to its next state. */
uint32_t fuzz_cm_due(uint32_t handle, uint32_t value);

/* fuzz_cm_write.c */
/* Length of the input and of the response of a command, 0 if there is none. */
uint16_t fuzz_cm_in_len(uint32_t number);
uint16_t fuzz_cm_out_len(uint32_t number);

void fuzz_cm_memory(void);

/*
 * Write a command with the defect of a step to a channel: 0 or an errno. The bytes of the step
 * change the command by exclusive or, but not its pointers. Checks the result, and that no byte
 * next to the response is changed. Afterwards command->in is the command as it was written.
 */
int fuzz_cm_write(int fd, struct command *command, const struct step *step, const uint8_t *bytes,
		uint32_t n);

/* fuzz_cm_wrap.c */
extern struct ibcm *fuzz_cm; /* the engine; NULL: none yet */
extern uint64_t fuzz_cm_now; /* ns */
void fuzz_cm_drop(uint32_t n);
/* Inject a fault of a connection, after a delay. */
void fuzz_cm_fault(uint32_t which, uint32_t ms);
/* A new input begins, with no MAD on the network. */
void fuzz_cm_wrap_reset(void);

#endif /* FUZZ_CM_H */
