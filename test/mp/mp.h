/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory that the primary and the secondary processes of dpdk-test-mp share. */

#ifndef MP_H
#define MP_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include <rmem.h>
#include <rmem_driver.h>
#include <rmem_pool.h>

#define MP_DEV  "soft0"
#define MP_DEV2 "soft1" /* closed while a process attaches */
/* The longest name of a device. */
#define MP_DEV3  "soft000000000000000000000000002"
#define MP_QP    "mp-qp"
#define MP_MR    "mp-mr"
#define MP_DEPTH 16u
#define MP_PART  256u /* bytes of each part of the buffer */
#define MP_FROM  0u   /* parts: what the secondary process writes from, and to; the peer's */
#define MP_TO    1u
#define MP_PEER  2u
#define MP_PARTS 16u
#define MP_LCORE 8u
#define MP_BUFS  61u
#define MP_BURST 8u

/* Of MP_DEV2, whose objects have the names of those of MP_DEV. */
struct mp_two {
	struct rmem_qp *qp; /* claimed by secondary processes */
	struct rmem_qp *peer;
	struct rmem_cq *peer_cq; /* NULL: there is no MP_DEV2 */
	struct rmem_mr *mr;
	uint8_t buf[2 * MP_PART]; /* MP_FROM and MP_TO */
};

/* In memory of DPDK. */
struct mp_shared {
	struct rmem_qp *qp; /* claimed by secondary processes; CQs of its own */
	struct rmem_qp *peer;
	struct rmem_qp *other[2]; /* of the primary, connected to each other */
	struct rmem_cq *peer_cq;
	struct rmem_cq *other_cq;
	struct rmem_srq *srq;
	struct rmem_mr *mr;
	struct rmem_mr *fast;
	struct rmem_mr *odp; /* on-demand memory of the primary */
	struct rmem_mr *mkey;
	struct rmem_fast_reg_page_list *list;
	struct rmem_mw *mw;
	struct rmem_pool *pool;
	void *kept;        /* a buffer of the pool that the primary has */
	uint32_t nb_sends; /* that the primary is to send to the QP; atomic */
	uint32_t progress; /* of the secondary process; atomic */
	uint32_t is_going; /* the primary lets it go on; atomic */
	struct mp_two two;
	int child;         /* of the secondary process, by fork() */
	uint32_t nb_steps; /* instructions of the call that was stepped; atomic */
	uint8_t buf[MP_PARTS * MP_PART] __rte_aligned(8);
};

/* In a secondary process: run a role, by name. */
void mp_role_run(struct mp_shared *sh, char **args);
/* Send requests to the primary that are refused; attached. */
void mp_send_wrong(const struct mp_shared *sh);
/* Lose the answers to an attach and a detach. */
void mp_lose_answers(const struct mp_shared *sh);
/* Attach to MP_DEV2 twice, as if the first answer were lost. */
void mp_attach_again(struct mp_shared *sh);

/* In a secondary process: attach to MP_DEV, and claim the QP. */
void mp_attach(struct mp_shared *sh);
/* A WRITE from MP_FROM to MP_TO. */
struct rmem_send_wr mp_write_wr(const struct mp_shared *sh, struct rmem_sge *sge, uint32_t length);
void mp_post_and_poll(const struct mp_shared *sh, const struct rmem_send_wr *wr, int status);

/* Roles that call fork() (mp_fork.c): while they go on, and such that the child outlives them. */
void mp_fork_role(struct mp_shared *sh);
void mp_fork_orphan(struct mp_shared *sh);

/* Roles that use both devices (mp_two.c): while MP_DEV2 is closed, and until they are killed. */
void mp_two_role(struct mp_shared *sh);
void mp_two_loop(struct mp_shared *sh);
/* A role that claims the QP of MP_DEV2, which is refused. */
void mp_refused_role(struct mp_shared *sh);

/* Roles that poll completions of a QP of the primary, and that leave completions (mp_cq.c). */
void mp_cq_role(struct mp_shared *sh);
void mp_cq_leave(struct mp_shared *sh);
void mp_cq_other(struct mp_shared *sh);

/* Roles that write what no library writes (mp_bad.c). */
void mp_bad_messages(struct mp_shared *sh);
void mp_bad_queues(struct mp_shared *sh, unsigned int number);

/* In the primary. */

/* Run a role to its end, while the primary executes its requests. */
void mp_run_role(struct mp_shared *sh, const char *role);
/* Execute requests, and send what the secondary process is to receive. */
void mp_serve(struct mp_shared *sh);
/* Connect QP and peer. */
void mp_connect(struct mp_shared *sh);
void mp_connect_two(struct rmem_qp *a, struct rmem_qp *b);
void mp_make_qp(struct rmem_pd *pd, const char *name, struct rmem_cq *cq, uint32_t flags,
		struct rmem_qp **qp);
/* Start a role; its pid. */
void mp_spawn(struct mp_shared *sh, const char *role, unsigned int number, int *pid);
/* Wait until a process has got so far; is_serving: with mp_serve(). Fails if it has ended. */
void mp_wait_for(struct mp_shared *sh, int pid, uint32_t progress, bool is_serving);
/* Wait until the primary has released what a process had, and check that. */
void mp_check_reaped(struct mp_shared *sh, bool has_claimed);
/* Kill processes at each instruction of each call, and at any time. */
void mp_kill_run(struct mp_shared *sh);
/* Kill two processes that have all buffers, some of them in requests. */
void mp_kill_with_buffers(struct mp_shared *sh);
/* Garbled messages and queues. */
void mp_bad_run(struct mp_shared *sh);
/* Children of fork(), of the secondary process and of the primary. */
void mp_fork_run(struct mp_shared *sh);
/* Leave a child of fork(), which ends after the process of that pid. */
void mp_fork_leave(int pid);
/* Two devices. */
void mp_two_run(struct mp_shared *sh);
/* A QP of the primary that completes to the CQ of a claimed QP; completions of a killed process. */
void mp_cq_run(struct mp_shared *sh);
/* QPs of MP_DEV2 that no process can claim. */
void mp_refused_run(struct mp_shared *sh);

#endif /* MP_H */
