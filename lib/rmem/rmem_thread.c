/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Control threads, started with the call of this DPDK version.
 */

#include <errno.h>

#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_thread.h>
#include <rte_version.h>

#include <rmem_thread.h>

#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
static uint32_t
thread_main(void *arg)
{
	const struct rmem_thread *thread = arg;

	thread->run(thread->arg);
	return 0;
}

int
rmem_thread_start(struct rmem_thread *thread, const char *name)
{
	rte_thread_t id;
	int ret = rte_thread_create_control(&id, name, thread_main, thread);

	if (ret != 0)
		return -EAGAIN;
	thread->id = (pthread_t)id.opaque_id;
	return 0;
}
#else
static void *
thread_main(void *arg)
{
	const struct rmem_thread *thread = arg;

	thread->run(thread->arg);
	return NULL;
}

int
rmem_thread_start(struct rmem_thread *thread, const char *name)
{
	int ret = rte_ctrl_thread_create(&thread->id, name, NULL, thread_main, thread);

	return ret == 0 ? 0 : -EAGAIN;
}
#endif
