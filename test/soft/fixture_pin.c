/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory whose pins are checked; see fixture_pin.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "fixture_pin.h"

uint8_t *pin_pages;
struct rmem_pd *pin_pds[PIN_NB];

int
pin_set_may_lock(bool is_allowed)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];
	const uint32_t bit = UINT32_C(1) << CAP_IPC_LOCK;

	if (syscall(SYS_capget, &head, data) != 0)
		return -errno;
	if (is_allowed)
		data[0].effective |= data[0].permitted & bit;
	else
		data[0].effective &= ~bit;
	return syscall(SYS_capset, &head, data) != 0 ? -errno : 0;
}

/* The number after a word in the dump of the device. */
static uint64_t
dumped(const char *word, uint64_t missing)
{
	uint64_t number = missing;
	const char *at = NULL;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL)
		return missing;
	rmem_dev_dump(fx.a.dev, f);
	if (fclose(f) == 0)
		at = strstr(text, word);
	if (at != NULL)
		number = strtoull(at + strlen(word), NULL, 10);
	free(text);
	return number;
}

uint64_t
pin_counted(void)
{
	return dumped("of all soft devices: ", UINT64_MAX);
}

uint64_t
pin_nb_ranges(void)
{
	return dumped(" bytes locked in ", 0);
}

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

void
pin_setup(void)
{
	static const char *const args[] = {"pin=auto", "pin=require", "pin=off", "pin=lock"};
	char name[] = "soft10";
	unsigned int i;

	fx_setup();
	for (i = 0; i < RTE_DIM(args); i++) {
		name[5] = (char)('0' + i);
		pin_pds[i] = fx_pd(fx_dev(name, args[i]));
	}
	pin_pages = mmap(NULL, PIN_SIZE + FX_PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(pin_pages != MAP_FAILED);
	TEST_OK(mprotect(pin_pages + PIN_SIZE, FX_PAGE, PROT_NONE));
}

/* Sanitizers have their own mlock(), which does nothing. */
void
pin_need_lock(void)
{
	if (mlock(pin_pages, FX_PAGE) != 0 || !pin_is_locked(0) || munlock(pin_pages, FX_PAGE) != 0)
		test_skip("mlock() locks nothing here");
}

void
pin_setup_lock(void)
{
	pin_setup();
	pin_need_lock();
}

void
pin_teardown(void)
{
	int ret = TEST_TRY(fx_teardown());

	munmap(pin_pages, PIN_SIZE + FX_PAGE);
	TEST_RUN(ret);
}

struct rmem_mr *
pin_reg(unsigned int how, size_t first, size_t length)
{
	return fx_mr(pin_pds[how], pin_pages + first, length, FX_ACCESS);
}

void
pin_race(uint64_t *seed, unsigned int how, unsigned int nb, void (*expect)(size_t page))
{
	uint64_t random = *seed;
	struct rmem_mr *mr;
	unsigned int i;

	for (i = 0; i < 2000; i++) {
		size_t first, length;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		first = (random >> 8) % PIN_SIZE;
		length = 1 + (random >> 32) % (PIN_SIZE - first);
		TEST_OK(rmem_mr_reg(pin_pds[how + i % nb], pin_pages + first, length, 0, FX_ACCESS,
				&mr));
		if (expect != NULL)
			expect(first / FX_PAGE);
		TEST_OK(rmem_mr_dereg(mr));
	}
}

void
pin_on_lcores(void (*run)(void *seed))
{
	uint64_t seeds[] = {UINT64_C(88172645463325252), UINT64_C(9123718237123)};
	unsigned int nb = RTE_MIN(fx_nb_workers(), (unsigned int)RTE_DIM(seeds));

	fx_need_workers(1);
	fx_launch(run, seeds, sizeof(seeds[0]), nb);
	fx_join(nb);
}
