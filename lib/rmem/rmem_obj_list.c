/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Names and ages of objects, and the lists of objects for telemetry.
 *
 * An object of rmem_obj_create() is preceded by a head of the class. It is in the list of its kind
 * from rmem_obj_list(), when it is usable, to rmem_obj_kill(). Invariant: a visitor holds the lock
 * of the lists, and an object is released after it has left the list, so visited objects exist.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "rmem_obj_priv.h"
#include "rmem_priv.h"

LIST_HEAD(obj_list, rmem_obj_head);

static struct obj_list lists[RMEM_OBJ_NB_KINDS]; /* zero: empty */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t
rmem_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t
rmem_obj_age_ms(const struct rmem_obj *obj)
{
	return (rmem_now_ns(CLOCK_MONOTONIC) - rmem_obj_head(obj)->created_ns) / 1000000;
}

int
rmem_name_check(const char *name)
{
	size_t i;

	if (name == NULL)
		return 0;
	for (i = 0; i < RMEM_NAME_SIZE && name[i] != '\0'; i++) {
		/* Not isprint(), which depends on the locale: names are printed as JSON. */
		if (name[i] < ' ' || name[i] > '~')
			return RMEM_FAIL(EINVAL, "name: character %zu is not printable: 0x%02x", i,
					(unsigned char)name[i]);
	}
	if (i == RMEM_NAME_SIZE)
		return RMEM_FAIL(EINVAL, "name: too long: \"%.*s...\" (up to %d bytes)",
				RMEM_NAME_SIZE, name, RMEM_NAME_SIZE - 1);
	return 0;
}

void
rmem_obj_set_name(struct rmem_obj *obj, const char *name)
{
	if (name != NULL)
		snprintf(rmem_obj_head(obj)->name, RMEM_NAME_SIZE, "%s", name);
}

const char *
rmem_obj_name(const struct rmem_obj *obj, uint32_t type)
{
	return obj != NULL && obj->type == type ? rmem_obj_head(obj)->name : "";
}

const char *
rmem_name_text(const char *name, struct rmem_name_text *text)
{
	text->text[0] = '\0';
	if (name[0] != '\0')
		snprintf(text->text, sizeof(text->text), " \"%s\"", name);
	return text->text;
}

void
rmem_obj_list(struct rmem_obj *obj)
{
	struct rmem_obj_head *head = rmem_obj_head(obj);

	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&lists[RMEM_OBJ_KIND(obj->type)], head, entry);
	head->state = RMEM_OBJ_LISTED;
	pthread_mutex_unlock(&lock);
}

void
rmem_obj_unlist(struct rmem_obj *obj)
{
	struct rmem_obj_head *head = rmem_obj_head(obj);

	if (head->state != RMEM_OBJ_LISTED)
		return;
	pthread_mutex_lock(&lock);
	LIST_REMOVE(head, entry);
	head->state = RMEM_OBJ_UNLISTED;
	pthread_mutex_unlock(&lock);
}

void
rmem_obj_relist(struct rmem_obj *obj)
{
	if (rmem_obj_head(obj)->state == RMEM_OBJ_UNLISTED)
		rmem_obj_list(obj);
}

int
rmem_obj_visit(uint32_t type, int (*func)(struct rmem_obj *obj, void *arg), void *arg)
{
	struct rmem_obj_head *head;
	int ret = 0;

	pthread_mutex_lock(&lock);
	LIST_FOREACH(head, &lists[RMEM_OBJ_KIND(type)], entry) {
		ret = func((struct rmem_obj *)(head + 1), arg);
		if (ret != 0)
			break;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}
