/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Opening a device by its name. */

#ifndef OPEN_DEVICE_H
#define OPEN_DEVICE_H

#include <string.h>

#include <infiniband/verbs.h>

#include "../holds.h"

static inline struct ibv_context *
open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	HOLDS(list != NULL);
	for (i = 0; list[i] != NULL && context == NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	HOLDS(context != NULL);
	return context;
}

#endif
