/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The search for the file of granted memory is short with any number of descriptors. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "../../drivers/soft/mem/rsoft_grant_file.h"

#include "../test.h"

#define SIZE (1u << 20)

/* A memory file with a descriptor, and a mapping of it. */
static uint8_t *
map_memfd(int *fd)
{
	uint8_t *map;

	*fd = memfd_create("other", MFD_CLOEXEC);
	TEST_ASSERT(*fd >= 0 && ftruncate(*fd, SIZE) == 0);
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	TEST_ASSERT(map != MAP_FAILED);
	return map;
}

static bool
has_file(const uint8_t *map)
{
	uint64_t offset;
	const struct rsoft_grant_file *of = rsoft_grant_file_get(map, SIZE, true, &offset);

	if (of != NULL)
		rsoft_grant_file_put(of->id);
	return of != NULL;
}

/* Whether a file is found by a descriptor above many others; -1: too few can be open. */
static int
is_found_above(int fd, const uint8_t *map)
{
	static int many[1100]; /* more than are searched */
	unsigned int nb = 0;
	int high, is_found;

	while (nb < RTE_DIM(many) && (many[nb] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		nb++;
	high = nb == RTE_DIM(many) ? fcntl(fd, F_DUPFD_CLOEXEC, many[nb - 1]) : -1;
	close(fd);
	is_found = high >= 0 ? has_file(map) : -1;
	if (high >= 0)
		close(high);
	while (nb > 0)
		close(many[--nb]);
	return is_found;
}

/* A program may have a million descriptors, and a grant is made between two packets. */
TEST(wire_grant_file, few_descriptors_are_searched)
{
	struct rlimit before, limit;
	bool is_found;
	uint8_t *map;
	int fd, ret;

	TEST_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = RTE_MIN(limit.rlim_max, (rlim_t)2048);
	TEST_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	map = map_memfd(&fd);
	is_found = has_file(map);
	ret = is_found_above(fd, map);
	munmap(map, SIZE);
	TEST_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	if (!is_found || ret < 0)
		test_stop(TEST_SKIPPED);
	TEST_EQ(ret, 0);
}

/* Close the descriptor of a file, but for one that can't be mapped; return that. */
static int
keep_path(int fd, struct stat *st)
{
	char path[32];
	int kept;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	kept = open(path, O_PATH | O_CLOEXEC);
	TEST_ASSERT(kept >= 0 && fstat(kept, st) == 0);
	close(fd);
	return kept;
}

TEST(wire_grant_file, each_file_without_a_descriptor_is_searched_once_a_second)
{
	uint64_t start = rte_rdtsc();
	int fd, kept[2], again;
	struct stat st[2];
	uint8_t *map[2];
	unsigned int i;
	char path[32];
	bool is_found = true, is_again;

	for (i = 0; i < 2; i++) {
		map[i] = map_memfd(&fd);
		is_found &= has_file(map[i]);
		kept[i] = keep_path(fd, &st[i]);
		TEST_ASSERT(!has_file(map[i]));
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", kept[0]);
	again = open(path, O_RDWR | O_CLOEXEC);
	TEST_ASSERT(again >= 0);
	/* Two files whose numbers differ by a multiple of the entries have one entry. */
	is_found &= (st[0].st_ino - st[1].st_ino) % RSOFT_GRANT_FILES != 0;
	is_again = has_file(map[0]);
	start = rte_rdtsc() - start;
	close(again);
	for (fd = 0; fd < 2; fd++) {
		munmap(map[fd], SIZE);
		close(kept[fd]);
	}
	if (!is_found || start >= rte_get_tsc_hz())
		test_stop(TEST_SKIPPED);
	TEST_ASSERT(!is_again);
}

/* Peers have mapped the size that the file had. */
TEST(wire_grant_file, grown_file_is_another_one)
{
	int fd;
	uint64_t offset = 0;
	uint8_t *map = map_memfd(&fd), *added;
	const struct rsoft_grant_file *file, *grown;

	file = rsoft_grant_file_get(map, SIZE, true, &offset);
	if (file == NULL)
		test_stop(TEST_SKIPPED);
	TEST_EQ(ftruncate(fd, 2 * SIZE), 0);
	added = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, SIZE);
	TEST_ASSERT(added != MAP_FAILED);
	TEST_ASSERT(rsoft_grant_file_get(map, SIZE, true, &offset) == file);
	grown = rsoft_grant_file_get(added, SIZE, true, &offset);
	TEST_ASSERT(grown != NULL && grown->id != file->id);
	TEST_EQ(grown->size, 2 * SIZE);
	TEST_EQ(offset, SIZE);
	rsoft_grant_file_put(grown->id);
	rsoft_grant_file_put(file->id);
	rsoft_grant_file_put(file->id);
	munmap(added, SIZE);
	munmap(map, SIZE);
	close(fd);
}

static void
setup(void)
{
}

TEST_SUITE(wire_grant_file, setup, setup);
