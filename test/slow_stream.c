/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <pthread.h>

#include "slow_stream.h"
#include "test.h"

struct slow {
	int (*dump)(const void *obj, FILE *f);
	const void *obj;
	int ret; /* of the dump of the other thread */
	bool is_written;
};

static void *
dump_to_none(void *arg)
{
	struct slow *slow = arg;
	FILE *f = fopen("/dev/null", "w");

	if (f == NULL)
		return NULL;
	slow->ret = slow->dump(slow->obj, f);
	fclose(f);
	return NULL;
}

static ssize_t
write_slowly(void *cookie, const char *text, size_t size)
{
	struct slow *slow = cookie;
	pthread_t thread;

	RTE_SET_USED(text);
	if (pthread_create(&thread, NULL, dump_to_none, slow) == 0)
		pthread_join(thread, NULL);
	slow->is_written = true;
	return (ssize_t)size;
}

void
test_dump_slowly(int (*dump)(const void *obj, FILE *f), const void *obj)
{
	struct slow slow = {.dump = dump, .obj = obj, .ret = -1};
	FILE *f = fopencookie(&slow, "w", (cookie_io_functions_t){.write = write_slowly});
	int ret;

	TEST_ASSERT(f != NULL);
	/* The first write() of a stream with a buffer might be that of fclose(). */
	setvbuf(f, NULL, _IONBF, 0);
	ret = dump(obj, f);
	fclose(f);
	TEST_OK(ret);
	TEST_ASSERT(slow.is_written);
	TEST_OK(slow.ret);
}
