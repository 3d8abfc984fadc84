/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Secondary processes that are killed; see mp.h.
 *
 * At each instruction of a call where the processor can step (RMEM_KILL_STRIDE: at every n-th), and
 * RMEM_KILLS times in the middle of traffic.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_mempool.h>

#include "mp.h"
#include "test.h"

static unsigned int
number_of(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? (unsigned int)strtoul(text, NULL, 10) : otherwise;
}

/* Kill a process at one instruction of a call. *is_over: the call has fewer. */
static void
kill_at(struct mp_shared *sh, const char *what, unsigned int at, bool *is_over)
{
	int pid, status, ret;

	mp_spawn(sh, what, at, &pid);
	while ((ret = waitpid(pid, &status, WNOHANG)) == 0)
		mp_serve(sh);
	TEST_EQ(ret, pid);
	*is_over = WIFEXITED(status);
	if (*is_over)
		TEST_EQ(WEXITSTATUS(status), EXIT_SUCCESS);
	else
		TEST_EQ(WTERMSIG(status), SIGKILL);
	mp_check_reaped(sh, true);
}

static void
kill_at_each(struct mp_shared *sh, const char *what)
{
	unsigned int at = 1, stride = number_of("RMEM_KILL_STRIDE", 61);
	bool is_over = false;

	for (; !is_over; at += stride)
		kill_at(sh, what, at, &is_over);
	printf("%s: killed at every %u. of %u instructions\n", what, stride,
			__atomic_load_n(&sh->nb_steps, __ATOMIC_ACQUIRE));
}

static void
kill_any_time(struct mp_shared *sh)
{
	unsigned int i, nb = number_of("RMEM_KILLS", 10);
	int pid, status;

	for (i = 0; i < nb; i++) {
		mp_spawn(sh, "loop", 0, &pid);
		mp_wait_for(sh, pid, i % 8, true);
		TEST_OK(kill(pid, SIGKILL));
		TEST_EQ(waitpid(pid, &status, 0), pid);
		/* The first may not have attached yet. */
		mp_check_reaped(sh, i % 8 != 0);
	}
	printf("killed %u times in traffic\n", nb);
}

void
mp_kill_run(struct mp_shared *sh)
{
	kill_at_each(sh, "send");
	kill_at_each(sh, "reg");
	kill_at_each(sh, "recv");
	kill_at_each(sh, "poll");
	kill_at_each(sh, "get");
	kill_at_each(sh, "put");
	kill_any_time(sh);
}

void
mp_kill_with_buffers(struct mp_shared *sh)
{
	int pids[2], status;
	unsigned int i;
	void *buf;

	mp_spawn(sh, "flight", 0, &pids[0]);
	mp_wait_for(sh, pids[0], 1, false);
	TEST_EQ(rte_mempool_avail_count(sh->pool->mp), MP_BUFS - MP_BURST);
	mp_spawn(sh, "drain", 0, &pids[1]);
	mp_wait_for(sh, pids[1], 1, false);
	TEST_ERR(rte_mempool_get(sh->pool->mp, &buf), ENOBUFS);
	TEST_ERR(rmem_pool_destroy(sh->pool), EBUSY);
	for (i = 0; i < 2; i++)
		TEST_OK(kill(pids[i], SIGKILL));
	for (i = 0; i < 2; i++)
		TEST_EQ(waitpid(pids[i], &status, 0), pids[i]);
	mp_check_reaped(sh, true);
	TEST_OK(rte_mempool_get(sh->pool->mp, &buf));
	rte_mempool_put(sh->pool->mp, buf);
}
