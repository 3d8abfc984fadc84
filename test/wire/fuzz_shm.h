/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The devices that fuzz_shm.c attacks; their ports are wrapped, so that bytes are written into
 * rings between two reads of the device.
 */

#ifndef FUZZ_SHM_H
#define FUZZ_SHM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "soft/wire/rwire.h"
#include "soft/wire/port/rwire_shm.h"

#include <rmem_ah.h>
#include <rmem_cq.h>
#include <rmem_mr.h>
#include <rmem_pd.h>
#include <rmem_qp.h>

#define TARGET     (16u * 1024) /* bytes that the peers may access */
#define GUARD      8192u        /* bytes on both sides of it, not registered */
#define QKEY       0x1234567u
#define MAX_PEERS  4u
#define MAX_NAMES  4u
#define MAX_COPIES 4u
#define MAX_BYTES  256u

/* Of an input; up to len bytes of the step follow. */
struct step {
	uint8_t kind; /* enum step_kind, modulo STEP_NB */
	uint8_t peer; /* bits 0 and 1; bits 4 to 7: enum step_flag */
	uint8_t what;
	uint8_t len;
	uint16_t value;
	int8_t psn; /* from the expected one */
	uint8_t sel;
};

enum step_kind {
	STEP_OPEN,   /* connect, and pass a ring that is accepted */
	STEP_SOCKET, /* connect only, or end the connection */
	STEP_HELLO,  /* a first message; the bytes change it by exclusive or */
	STEP_REGION, /* pass memory */
	STEP_CUT,    /* truncate the memory that was passed last, or punch a hole */
	STEP_BELL,   /* the bytes are a message */
	STEP_PACKET, /* a packet that the engine accepts, with flags of its slot */
	STEP_WRITE,  /* the bytes are written into a ring */
	STEP_LATER,  /* as they are, but when the device uses it next */
	STEP_RACE,   /* as they are, by a thread while the device polls */
	STEP_SEND,   /* the device posts a request */
	STEP_RECV,   /* the device posts a receive */
	STEP_TAKE,   /* accept the connection of the device, or take its packets */
	STEP_ANSWER, /* send the bytes to the device as a refusal, or end the connection */
	STEP_NAME,   /* claim to be a member of the group, or no more */
	STEP_TIME,
	STEP_CHILD, /* a child has copies of the next descriptors, or it ends */
	STEP_USER,  /* the users that the kernel reports */
	STEP_NB,
};

enum step_flag {
	STEP_TO_DEVICE = 0x10, /* the ring is the one in which the device sends */
	STEP_BAD_KEY = 0x20,
	STEP_SHARED = 0x40,
	STEP_RESPONSE = 0x80,
};

/* A hostile process that sends to the device. */
struct peer {
	int fd; /* -1: none */
	struct rwire_ring_end end;
};

struct fuzz_dev {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *rc, *ud;
	struct rmem_ah *ahs[2]; /* of the peer, and of the group */
	struct rmem_mr *mr;
};

struct fuzz_shm {
	uint32_t dev; /* index in devs[] and in the arrays below */
	char name[SHM_MAX_NAME + 1];
	uint8_t *memory; /* a guard, the target, a guard */
	struct rwire_port ports[2], *inner[2];
	struct rwire_addr addrs[2], group; /* addrs: of the peers */
	int listeners[2];
	uint32_t nb_open; /* descriptors without peers */
	struct peer peers[MAX_PEERS];
	struct peer taken; /* ring of the device's packets */
	int memory_fd;     /* passed last; -1: none */
	int names[MAX_NAMES];
	int copies[MAX_COPIES];
	uint32_t nb_children, nb_copies; /* copies to make, and copies */
	uint32_t users[2], nb_users;     /* 0: the own one; number of calls that asked */
	struct step later;
	uint8_t later_bytes[MAX_BYTES];
	bool has_later;
	bool is_racing; /* written while no other thread runs */
	uint32_t stop;  /* atomic */
	uint64_t now;
	uint64_t nb_done[2], nb_rings, nb_taken, nb_shared, nb_later, nb_regions;
};

extern struct fuzz_dev devs[2]; /* of port=shm and ip=host */
extern struct fuzz_shm fz;

/* accept4() of libc; the library calls __wrap_accept4(). */
int __real_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

/* Open both devices, without peers. */
void fuzz_shm_open(void);
void fuzz_shm_close(void);

const char *fuzz_shm_name(void);

/* Poll the device after a time, and so receive; it handles connections each millisecond. */
void fuzz_shm_poll(uint32_t us);

/* The QPs are in states of verbs. */
void fuzz_shm_check(void);

/* Reset the QPs of the device, and connect them as to a peer that chose PSN 100. */
void fuzz_shm_reset(void);
void fuzz_shm_connect(void);

/* Write bytes into the ring that a step selects. */
void fuzz_shm_write(const struct step *step, const uint8_t *bytes, uint32_t n);

#endif /* FUZZ_SHM_H */
