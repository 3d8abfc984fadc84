/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Fixture of cases, and common steps.
 *
 * fx_setup() creates a device with two connected sides, a and b. Each has a CQ, a QP and an MR with
 * all rights over its buffer. fx_teardown() releases all objects created by fx_*(), and fails if
 * the device still counts one.
 */

#ifndef FIXTURE_H
#define FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmem.h>

#include "test.h"

/* Whether tear-down audits the devices. */
#ifdef RMEM_DEBUG
#define FX_IS_AUDITED true
#else
#define FX_IS_AUDITED false
#endif

#define FX_BUF_SIZE   65536u
#define FX_DEPTH      64u
#define FX_PAGE       4096u
#define FX_FAST_PAGES 8u
#define FX_ACCESS     (RMEM_ACCESS_LOCAL_WRITE | RMEM_ACCESS_REMOTE)
/* Timeout of waits in seconds; of the conformance suite, short after an injected fault. */
#ifdef CONF_DEADLINE
double conf_deadline_s(void);
#define FX_DEADLINE_S conf_deadline_s()
#endif
#ifndef FX_DEADLINE_S
#define FX_DEADLINE_S 300u
#endif
/* The same, for poll(): what has not come then counts as lost. */
#define FX_EVENT_MS ((int)FX_DEADLINE_S * 1000)

struct fx_side {
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	struct rmem_mr *mr; /* all of buf, with FX_ACCESS */
	uint8_t *buf;       /* FX_BUF_SIZE bytes, page aligned */
};

/* A fast-register MR of side a in the state FREE, and a page list for it. */
struct fx_fast {
	struct rmem_mr *mr;
	struct rmem_fast_reg_page_list *list; /* names the pages in order */
	uint8_t *pages;                       /* FX_FAST_PAGES of FX_PAGE bytes */
};

/* Unbound windows of side a, one of each type, and an MR over its buffer with MW_BIND. */
struct fx_mws {
	struct rmem_mr *mr;
	struct rmem_mw *one;
	struct rmem_mw *two;
};

struct fixture {
	struct fx_side a;
	struct fx_side b;
	struct fx_fast fast; /* by fx_setup_fast() */
	struct fx_mws mw;    /* by fx_setup_mw() */
	struct rmem_wc wc;   /* of the last fx_wait() or fx_send() */
};

extern struct fixture fx;

/* Set-up and tear-down of a case. */
void fx_setup(void);
void fx_setup_fast(void);
void fx_setup_mw(void);
void fx_setup_dev(void);
void fx_setup_none(void);
void fx_teardown(void);
/* Set for the tear-down of a case that failed: it releases the objects in any order. */
extern bool fx_is_cut_short;
/* The same; soft delivers short messages to all lcores inline. */
void fx_setup_inline(void);
void fx_teardown_inline(void);

/* Create an object; the case ends if that fails. */
struct rmem_dev *fx_dev(const char *name, const char *args);
struct rmem_pd *fx_pd(struct rmem_dev *dev);
struct rmem_mr *fx_mr(struct rmem_pd *pd, void *addr, size_t length, uint32_t access);
/* Over a page that is not mapped any more. */
struct rmem_mr *fx_mr_unmapped(struct rmem_pd *pd);
/* As rmem_mr_reg_attr(). */
int fx_reg_attr(struct rmem_pd *pd, const struct rmem_mr_attr *attr, struct rmem_mr **mr);
struct rmem_mr *fx_fast_mr(struct rmem_pd *pd, uint32_t nb_pages);
struct rmem_mw *fx_mw(struct rmem_pd *pd, enum rmem_mw_type type);
struct rmem_mr *fx_mkey(struct rmem_pd *pd, uint32_t nb_entries);
struct rmem_fast_reg_page_list *fx_page_list(struct rmem_dev *dev, uint32_t nb_pages);
struct rmem_counter *fx_counter(struct rmem_dev *dev);
struct rmem_eq *fx_eq(struct rmem_dev *dev, uint32_t nb_events);
struct rmem_cq *fx_cq(struct rmem_dev *dev, uint32_t nb_cqe);
struct rmem_cq *fx_cq_by(struct rmem_dev *dev, const struct rmem_cq_conf *conf);
struct rmem_comp_channel *fx_channel(struct rmem_dev *dev);
struct rmem_async_channel *fx_async_channel(struct rmem_dev *dev);
/* Whether the descriptor of a channel becomes readable in that time. */
bool fx_is_readable(int fd, int timeout_ms);
/* The next event has that type and object; acknowledge it. */
void fx_expect_async(struct rmem_async_channel *channel, uint32_t type, const void *obj);
/* The same, of one that may occur later. */
void fx_await_async(struct rmem_async_channel *channel, uint32_t type, const void *obj);
struct rmem_qp_conf fx_qp_conf(struct rmem_cq *cq, uint32_t depth);
struct rmem_qp *fx_qp_by(struct rmem_pd *pd, const struct rmem_qp_conf *conf);
struct rmem_qp *fx_qp(struct rmem_pd *pd, struct rmem_cq *cq, uint32_t depth);
/* Fill a side. */
void fx_side_open(struct fx_side *side, struct rmem_dev *dev, struct rmem_pd *pd);
/* Fill both sides, on one device and with one PD, and connect their QPs. */
void fx_sides_open(struct rmem_dev *dev);
struct rmem_dev_info fx_dev_info(struct rmem_dev *dev);
struct rmem_dev_stats fx_dev_stats(struct rmem_dev *dev);
/* Zeroed memory, freed at the end of the case. */
void *fx_mem(size_t align, size_t size);
/* Read-only memory: a private mapping that is never written. */
void *fx_map(size_t size);
/* Release any of these objects; the result of the call that releases it. */
int fx_release(void *object);
/* Add an object that the case created itself to the list, or remove it. */
void fx_track(void *object);
void fx_untrack(const void *object);

/* Connections. */
int fx_connect_by(struct rmem_qp *qp, struct rmem_qp *peer, const struct rmem_qp_conn *conn);
int fx_connect(struct rmem_qp *qp, struct rmem_qp *peer);
int fx_connect_pair(struct rmem_qp *qp, struct rmem_qp *peer);
void fx_reconnect(void); /* a and b: reset, empty CQs, connected */
int fx_state(struct rmem_qp *qp);
/* A QP of UD: from RESET to RTS. */
int fx_ud_ready(struct rmem_qp *qp, uint32_t qkey);
/* A path to the address of a QP, with a GRH. */
struct rmem_ah_attr fx_path_to(struct rmem_qp *qp);
/* An address handle of it. */
struct rmem_ah *fx_ah_to(struct rmem_pd *pd, struct rmem_qp *qp);
struct rmem_qp_conn fx_conn(void);

/* Keys of MRs. */
struct rmem_mr_info fx_query(struct rmem_mr *mr);
int fx_mr_state(struct rmem_mr *mr);

/* The next event of the EQ; the status is -ETIMEDOUT if there is none. */
struct rmem_event fx_event(struct rmem_eq *eq);

/* Requests. */
/* Discard the completions in the CQ. */
void fx_drain(struct rmem_cq *cq);
struct rmem_sge fx_sge(const struct rmem_mr *mr, size_t offset, uint32_t length);
struct rmem_send_wr fx_wr(uint8_t opcode, const struct rmem_sge *sge, uint16_t num_sge);
struct rmem_send_wr fx_rdma(
		uint8_t opcode, const struct rmem_sge *sge, uint64_t remote_addr, uint32_t rkey);
/* The same at the start of the buffer of a side. */
struct rmem_send_wr fx_rdma_to(
		uint8_t opcode, const struct rmem_sge *sge, const struct fx_side *side);
struct rmem_send_wr fx_atomic(uint8_t opcode, const struct rmem_sge *sge, uint64_t remote_addr,
		uint32_t rkey, uint64_t compare_add);
struct rmem_send_wr fx_inv(uint32_t rkey);
/* REG_MR of 4 KiB pages; the page offset of iova is that of the first byte. */
struct rmem_send_wr fx_reg(struct rmem_mr *mr, struct rmem_fast_reg_page_list *list,
		uint16_t nb_pages, uint64_t iova, uint32_t length);
/* An entry of length bytes at offset of an MR. */
struct rmem_mkey_entry fx_entry(const struct rmem_mr *mr, size_t offset, uint64_t length);
/* UMR without repetition, with FX_ACCESS. */
struct rmem_send_wr fx_umr(struct rmem_mr *mr, const struct rmem_mkey_entry *entries,
		uint32_t nb_entries, uint64_t iova);
/* Bind fx.fast to all of its pages with the address as iova, or invalidate its key; a status. */
int fx_bind(void);
int fx_unbind(void);
void fx_list_pages(struct rmem_fast_reg_page_list *list, const void *first, uint32_t nb_pages);

/*
 * Binding to [offset, offset + length) of fx.mw.mr: the request, the argument of rmem_mw_bind(),
 * and both executed, on fx.mw.two and fx.mw.one; a status.
 */
struct rmem_send_wr fx_mw_wr(struct rmem_mw *mw, size_t offset, uint64_t length, uint32_t access);
struct rmem_mw_bind fx_mw_bind(size_t offset, uint64_t length, uint32_t access);
int fx_mw_bind_2(size_t offset, uint64_t length, uint32_t access);
int fx_mw_bind_1(size_t offset, uint64_t length, uint32_t access);
/* Check that a WRITE by b changes only at in the buffer of a, or is refused with a vendor error. */
void fx_mw_expect_write(uint64_t addr, uint32_t length, uint32_t rkey, const uint8_t *at);
void fx_mw_expect_refusal(uint64_t addr, uint32_t length, uint32_t rkey, uint32_t why);

/*
 * Post and poll. Where a status is returned, a failure to get one is -errno: what the post
 * returned, -ETIMEDOUT without a completion, -EBADMSG if it is of another request.
 */
int fx_post(struct rmem_qp *qp, const struct rmem_send_wr *wr);
/* n zero-length signaled WRITEs, numbered from first on. */
void fx_post_writes(struct rmem_qp *qp, uint64_t first, uint32_t n);
int fx_post_recv(struct rmem_qp *qp, uint64_t wr_id, const struct rmem_sge *sge, uint32_t num_sge);
int fx_poll(struct rmem_cq *cq, struct rmem_wc *wc, uint32_t nb_wc);
int fx_wait(struct rmem_cq *cq);
int fx_send(struct rmem_qp *qp, const struct rmem_send_wr *wr);
/* LOCAL_INV by a; a status. */
int fx_invalidate(uint32_t rkey);
/* Check that no completion arrives; an unexpected one is in fx.wc. */
bool fx_is_idle(struct rmem_cq *cq);
/* Check that nb requests succeed, or are flushed, in the order of wr_id. */
void fx_expect_done(struct rmem_cq *cq, uint64_t wr_id, uint32_t nb);
void fx_expect_flush(struct rmem_cq *cq, uint64_t wr_id, uint32_t nb);
/* A message of a side to the other one, whose receive is posted; both succeed. */
void fx_deliver(const struct fx_side *from, const struct fx_side *to,
		const struct rmem_send_wr *wr);
/* The peer b writes length bytes of its buffer to addr; a status. */
int fx_peer_write(uint64_t addr, uint32_t length, uint32_t rkey);
/* Check the status of a request of a, and then the states of both QPs. */
void fx_expect(const struct rmem_send_wr *wr, int status, int state_a, int state_b);
/* The same; then connect the sides again. */
void fx_expect_refusal(const struct rmem_send_wr *wr, int status, int state_b);

/* Run func on nb worker lcores, each with its element of args; fx_join() has the worst result. */
unsigned int fx_nb_workers(void);
/* Skip a case that takes so many, or that is about the software device. */
void fx_need_workers(unsigned int nb);
void fx_need_soft(void);
void fx_launch(void (*func)(void *arg), void *args, size_t arg_size, unsigned int nb);
void fx_join(unsigned int nb);
/* Pause while polling the state of another thread; yields, since CPUs may be fewer than lcores. */
void fx_relax(unsigned int *spins);
/* Wait until a condition holds, by the work of other threads. */
#define FX_AWAIT(condition)                                                                        \
	do {                                                                                       \
		uint64_t deadline_ = fx_deadline();                                                \
		unsigned int spins_ = 0;                                                           \
                                                                                                   \
		while (!(condition)) {                                                             \
			TEST_STOP_UNLESS(test_check(                                               \
					__FILE__, __LINE__, !fx_is_late(deadline_), #condition));  \
			fx_relax(&spins_);                                                         \
		}                                                                                  \
	} while (0)
/* Wait until another lcore has set *value to want or more. */
void fx_wait_until(const uint32_t *value, uint32_t want);

/*
 * For each row, set one field of a valid configuration to a bad value: call, which creates an
 * object, must return the errno of the row. It fails a check if it created one.
 */
struct fx_bad_field {
	const char *text;
	size_t offset;
	size_t size;
	uint64_t value;
	int error;
};

#define FX_BAD(type, field, bad, errnum)                                                           \
	{                                                                                          \
#field " = " #bad, offsetof(struct type, field),                                   \
				sizeof(((struct type *)NULL)->field), (uint64_t)(uintptr_t)(bad),  \
				errnum                                                             \
	}

void fx_expect_bad_fields(const void *good, size_t size, const struct fx_bad_field *rows,
		unsigned int nb_rows, int (*call)(const void *conf));

uint64_t fx_deadline(void);
bool fx_is_late(uint64_t deadline);
/*
 * Until each of nb counters of threads, stride bytes apart, has counted two more: the later one
 * began after the call.
 */
void fx_await_counts(const uint64_t *first, size_t stride, unsigned int nb);
bool fx_has_capa(struct rmem_dev *dev, uint64_t capa);
/* Whether the device is the software device, or rdma_rxe (by RMEM_TEST_DEV). */
bool fx_is_soft(void);
bool fx_is_rxe(void);
uint64_t fx_addr(const void *addr);
void fx_fill(void *buf, size_t length, uint32_t seed);
bool fx_is_zero(const void *buf, size_t length);

/* Run check on an empty file in memory. */
void fx_with_memfd(void (*check)(int fd));

/* Capture the log lines of rmem, at any log level; the text remains until the next begin. */
void fx_log_begin(void);
const char *fx_log_end(void);
/* A call that fails with -error, and its log has a text. */
#define FX_ERR_LOG(call, error, text)                                                              \
	do {                                                                                       \
		int ret_of_call_;                                                                  \
                                                                                                   \
		fx_log_begin();                                                                    \
		ret_of_call_ = (call);                                                             \
		TEST_TEXT(fx_log_end(), text);                                                     \
		TEST_STOP_UNLESS(test_check_errno(                                                 \
				__FILE__, __LINE__, #call, ret_of_call_, -(error)));               \
	} while (0)

/* Allocate all EAL memory except size bytes; free it. */
void fx_leave_memory(size_t size);
void fx_free_memory(void);
/*
 * Check that the call fails with -ENOMEM and leaks nothing while memory is too small, and then
 * succeeds.
 */
void fx_expect_enomem(int (*make)(void **object));

#endif /* FIXTURE_H */
