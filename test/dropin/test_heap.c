/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Threads of the device do not use the heap when they begin: each would get an arena of malloc(),
 * with mmap() and munmap(), while the program may be replacing these functions, as libfabric does.
 */

#include <malloc.h>
#include <stdlib.h>

#include "own_qp.h"

static unsigned int
nb_arenas(void)
{
	unsigned int nb = 0;
	char *text, *at;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	HOLDS(file != NULL && malloc_info(0, file) == 0 && fclose(file) == 0);
	for (at = text; (at = strstr(at, "<heap nr=")) != NULL; at++)
		nb++;
	free(text);
	return nb;
}

int
main(void)
{
	const unsigned int nb = nb_arenas();
	struct ibv_context *context;
	struct ibv_pd *pd;

	HOLDS(nb == 1);
	context = open_device("soft0");
	HOLDS(context != NULL);
	pd = ibv_alloc_pd(context);
	HOLDS(pd != NULL && ibv_dealloc_pd(pd) == 0);
	HOLDS(ibv_close_device(context) == 0);
	HOLDS(nb_arenas() == 1);
}
