/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* usage: asan-faults EAL-options -- fault: one invalid access to memory of rte_malloc(). */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_malloc.h>

int
main(int argc, char **argv)
{
	int nb_eal = rte_eal_init(argc, argv);
	const char *fault = nb_eal >= 0 && nb_eal + 1 < argc ? argv[nb_eal + 1] : "";
	volatile uint8_t *bytes;

	if (nb_eal < 0)
		return 2;
	bytes = rte_zmalloc("faults", 100, 0);
	if (bytes == NULL)
		return 2;
	if (strcmp(fault, "overflow") == 0)
		bytes[100] = 1;
	else if (strcmp(fault, "underflow") == 0)
		bytes[-1] = 1;
	bytes = rte_realloc((void *)(uintptr_t)bytes, 200, 0);
	bytes[199] = 1;
	rte_free((void *)(uintptr_t)bytes);
	if (strcmp(fault, "use-after-free") == 0)
		bytes[0] = 1;
	else if (strcmp(fault, "double-free") == 0)
		rte_free((void *)(uintptr_t)bytes);
	else if (strcmp(fault, "leak") == 0)
		bytes = rte_zmalloc("faults", 100, 0);
	bytes = NULL;
	rte_eal_cleanup();
	printf("done\n");
	return 0;
}
