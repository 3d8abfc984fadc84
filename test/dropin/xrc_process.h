/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Processes that share the XRC domain of a file: each has a device, and executes commands. */

#ifndef XRC_PROCESS_H
#define XRC_PROCESS_H

#include <stdbool.h>

#include "own_qp.h"

#define SIZE    (1u << 20)
#define SMALL   64u
#define LARGE   (200u * 1024 + 3) /* packets of all kinds, with answers in between */
#define NB_SRQS 2u
#define NB_QPS  4u
#define DEPTH   16u
#define RIGHTS  (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

enum op {
	OPEN_DOMAIN, /* a: flags, b: file -> err */
	CREATE_SRQ,  /* a: index -> a: number */
	DESTROY_SRQ, /* a: index */
	POST,        /* a: index, b: length */
	WAIT,        /* -> wc, and whether the bytes are those of a message */
	FILL,        /* a: seed, b: length: the memory has the bytes of a message */
	REGISTER,    /* the memory again, with other keys */
	CREATE_QP,   /* a: slot -> a: number */
	CONNECT,     /* a: number of the peer; of the first QP, which is reset first */
	SEND_OWN,    /* a: number of an SRQ: to it by QPs of this process -> wc */
	FORK,        /* a child of fork(), which ends after the requester */
	END,

	/* By execute_more(). */
	CLOSE_DOMAIN, /* -> err */
	OPEN,         /* a: slot, b: number -> err */
	OPEN_FORKING, /* the same; another thread calls fork() when it waits for the creator */
	DESTROY,      /* a: slot -> err */
	TO_INIT,      /* a: slot -> err */
	TO_RTR,       /* a: slot, b: number of the peer -> err */
	TO_RTS,       /* a: slot -> err */
	TO_RESET,     /* a: slot -> err */
	QUERY,        /* a: slot -> err, state, a: number of the peer */
	GET_EVENT,    /* -> a: type, b: slot */
	ARM,          /* a: system call, after which another thread calls fork(); b: its sockets */
	PREPARE,      /* -> a: number of the QP of SEND */
	SEND,         /* a: number of an SRQ, b: of the peer, or 0: by the first QP -> wc */
};

struct command {
	enum op op;
	uint32_t a, b;
	union ibv_gid gid;
	uint16_t lid;
};

struct reply {
	int err;
	uint32_t a, b;
	enum ibv_qp_state state;
	bool is_sound;
	uint64_t addr;
	uint32_t rkey;
	struct ibv_wc wc;
	union ibv_gid gid;
	uint16_t lid;
};

struct child {
	pid_t pid;
	int fd;
};

/* This process: the requester, or a child. */
struct xrc_process {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq[NB_SRQS];
	struct ibv_qp *qp[NB_QPS];
	uint8_t *mem;
	union ibv_gid gid;
	uint16_t lid;
	uint64_t nb_posted;
};

extern struct xrc_process own;
extern int file[2];         /* of domains */
extern int life[2];         /* a pipe that is open until the requester ends */
extern const char *network; /* NULL: ip=host */
extern bool has_retries;    /* of QPs that are connected */
/* Execute the other commands. */
extern void (*execute_more)(const struct command *command, struct reply *reply);

/* Byte i of a message, after the first one, which is the seed. */
uint8_t byte_of(uint32_t seed, uint32_t i);
/* Store the bytes of a message in the memory of this process. */
void fill(uint8_t seed, uint32_t length);
/* The n-th process has the n-th address of the network. */
void open_own(unsigned int n);
void connect_to(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid, uint16_t lid,
		uint8_t rnr_retry);
struct ibv_qp *create_send_qp(void);
/* Close everything, and end the process. */
void close_all(void);

/* Make a child of fork(), which ends after the requester; it writes a byte to a pipe, or none. */
void fork_waiting(int pipe_fd);
/* Start a child, as a user if not 0. */
struct child start(unsigned int n, uid_t user);
/* Send a command, and receive the reply. */
void order(const struct child *child, struct command command);
struct reply result(const struct child *child);
struct reply call(const struct child *child, enum op op, uint32_t a, uint32_t b);
void end_child(const struct child *child);
void kill_child(const struct child *child);

#endif /* XRC_PROCESS_H */
