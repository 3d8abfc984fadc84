/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The next library, errnos, and the table of handles. */

#include <errno.h>

#include "ribv.h"

#define MAX_OBJS 65536

/* By handle: written under the lock, read without; atomic. Handle 0 is of no object. */
static struct {
	void *obj;
	uint32_t type;
} objs[MAX_OBJS];
static uint32_t last;
static pthread_mutex_t objs_lock = PTHREAD_MUTEX_INITIALIZER;

ribv_next_t ribv_next;

void
ribv_core_init(ribv_next_t next)
{
	ribv_next = next;
}

int
ribv_errno(int ret)
{
	return ret == -EBUSY ? EINVAL : -ret;
}

void *
ribv_fail(int err)
{
	errno = err;
	return NULL;
}

bool
ribv_enter(void *obj, enum ribv_type type, uint32_t *handle)
{
	uint32_t i, n = 0;

	pthread_mutex_lock(&objs_lock);
	for (i = last + 1; n < MAX_OBJS; i++, n++) {
		i %= MAX_OBJS;
		if (i != 0 && objs[i].obj == NULL)
			break;
	}
	if (n < MAX_OBJS) {
		last = *handle = i;
		objs[i].type = type;
		__atomic_store_n(&objs[i].obj, obj, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&objs_lock);
	if (n == MAX_OBJS)
		errno = ENOMEM;
	return n < MAX_OBJS;
}

void
ribv_leave(uint32_t handle)
{
	__atomic_store_n(&objs[handle].obj, NULL, __ATOMIC_RELEASE);
}

bool
ribv_is(const void *obj, enum ribv_type type, uint32_t handle)
{
	return handle < MAX_OBJS && __atomic_load_n(&objs[handle].obj, __ATOMIC_ACQUIRE) == obj &&
			objs[handle].type == type;
}
