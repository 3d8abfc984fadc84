/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include <rte_common.h>
#include <rte_memory.h>

#include <rmem_pages.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

void
rmem_pages_of(const struct iovec *range, uintptr_t *first, uintptr_t *end)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	*first = (uintptr_t)range->iov_base & ~(page - 1);
	*end = RTE_ALIGN_CEIL((uintptr_t)range->iov_base + range->iov_len, page);
}

bool
rmem_pages_can_populate(void)
{
	/* A length of 0: the kernel only checks the advice. */
	return madvise(NULL, 0, MADV_POPULATE_WRITE) == 0;
}

int
rmem_pages_populate(uintptr_t first, uintptr_t end, bool is_write)
{
	int advice = is_write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	int error;

	if (madvise((void *)first, end - first, advice) == 0)
		return 0;
	error = errno;
	if (!rmem_pages_can_populate())
		return 0;
	return error == EINVAL ? -EINVAL : -EFAULT;
}

uint64_t
rmem_pages_lock_limit(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY ||
			(syscall(SYS_capget, &head, data) == 0 &&
					(data[0].effective & UINT32_C(1) << CAP_IPC_LOCK) != 0))
		return UINT64_MAX;
	return limit.rlim_cur;
}

uint64_t
rmem_pages_eal_size(const struct iovec *range)
{
	const struct rte_memseg_list *msl = rte_mem_virt2memseg_list(range->iov_base);
	const uint8_t *last = (const uint8_t *)range->iov_base + range->iov_len - 1;

	if (msl == NULL || msl->external || rte_mem_virt2memseg_list(last) != msl)
		return 0;
	return msl->page_sz;
}

bool
rmem_pages_parse(const char *line, uintptr_t *first, uintptr_t *end)
{
	char *at;

	*first = strtoull(line, &at, 16);
	if (at == line || *at != '-')
		return false;
	line = at + 1;
	*end = strtoull(line, &at, 16);
	return at != line && *at == ' ';
}
