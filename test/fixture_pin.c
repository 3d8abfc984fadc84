/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory whose locks are checked; see fixture_pin.h. */

#include <string.h>
#include <sys/mman.h>

#include "fixture_pin.h"
#include "test.h"

uint8_t *pin_pages;
struct rmem_pd *pin_pds[3];

bool
pin_is_locked(size_t page)
{
	return msync(pin_pages + page * FX_PAGE, FX_PAGE, MS_ASYNC | MS_INVALIDATE) != 0 &&
			errno == EBUSY;
}

uint64_t
pin_locked(void)
{
	uint64_t digits = 1;
	size_t i;

	for (i = 0; i < PIN_NB_PAGES; i++)
		digits = digits * 10 + pin_is_locked(i);
	return digits;
}

int
pin_setup(void)
{
	static const char *const args[] = {"pin=auto", "pin=require", "pin=off"};
	char name[] = "soft10";
	unsigned int i;

	TEST_RUN(fx_setup());
	for (i = 0; i < RTE_DIM(args); i++) {
		name[5] = (char)('0' + i);
		pin_pds[i] = fx_pd(fx_dev(name, args[i]));
		TEST_ASSERT(pin_pds[i] != NULL);
	}
	pin_pages = mmap(NULL, PIN_SIZE + FX_PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(pin_pages != MAP_FAILED);
	TEST_OK(mprotect(pin_pages + PIN_SIZE, FX_PAGE, PROT_NONE));
	/* Sanitizers have their own mlock(), which does nothing. */
	if (mlock(pin_pages, FX_PAGE) != 0 || !pin_is_locked(0))
		return test_skip("mlock() locks nothing here");
	TEST_OK(munlock(pin_pages, FX_PAGE));
	return TEST_SUCCESS;
}

int
pin_teardown(void)
{
	int ret = fx_teardown();

	munmap(pin_pages, PIN_SIZE + FX_PAGE);
	return ret;
}

struct rmem_mr *
pin_reg(unsigned int how, size_t first, size_t length)
{
	return fx_mr(pin_pds[how], pin_pages + first, length, FX_ACCESS);
}
