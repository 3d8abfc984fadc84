/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Sealed descriptors are unsealed with the same key and associated data only. */

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmem_lease_desc.h>

#include "lease.h"

#define SIZE RMEM_LEASE_SEALED_SIZE

static const uint8_t key[RMEM_LEASE_SEAL_KEY_SIZE] = {1, 2, 3};
static const char with[] = "qp 17 to qp 18";
static struct rmem_lease_sealer *here;
static struct rmem_lease_sealer *there;

static const struct rmem_lease_desc example = {
		.lease_id = 1,
		.remote_addr = 0x7f0012345678,
		.length = 4096,
		.rkey = 0x00abcdef,
		.access = RMEM_ACCESS_REMOTE_READ,
};

/* Both sides have the key. */
static void
setup_seal(void)
{
	int ret;

	here = there = NULL;
	fx_setup_none();
	ret = rmem_lease_sealer_create(key, &here);
	TEST_SKIP_IF(ret == -EOPNOTSUPP, "built without libcrypto");
	TEST_OK(ret);
	TEST_OK(rmem_lease_sealer_create(key, &there));
}

static void
teardown_seal(void)
{
	rmem_lease_sealer_destroy(here);
	rmem_lease_sealer_destroy(there);
	fx_teardown();
}

static int
seal(uint8_t *buf)
{
	return rmem_lease_seal(here, &example, with, sizeof(with), buf, SIZE);
}

TEST(lease_seal, sealed_descriptor_is_unsealed_at_the_peer)
{
	struct rmem_lease_seal_info info;
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE + 1];
	uint32_t part = 77;

	buf[SIZE] = 0xa5;
	TEST_EQ(seal(buf), SIZE);
	TEST_EQ(buf[SIZE], 0xa5);
	TEST_EQ(rmem_lease_unseal(there, buf, SIZE, with, sizeof(with), &desc, &info, &part), SIZE);
	TEST_EQ(part, RMEM_LEASE_DESC_PART_NONE);
	TEST_EQ(desc.lease_id, example.lease_id);
	TEST_EQ(desc.remote_addr, example.remote_addr);
	TEST_EQ(desc.length, example.length);
	TEST_EQ(desc.left_ns, example.left_ns);
	TEST_EQ(desc.rkey, example.rkey);
	TEST_EQ(desc.access, example.access);
	TEST_EQ(info.sequence, 0);
}

TEST(lease_seal, sealed_descriptor_hides_the_rkey)
{
	uint8_t packed[RMEM_LEASE_DESC_SIZE], buf[SIZE];
	uint32_t i;

	TEST_EQ(rmem_lease_desc_pack(&example, packed, sizeof(packed)), sizeof(packed));
	TEST_EQ(seal(buf), SIZE);
	for (i = 0; i + 4 <= SIZE; i++)
		TEST_ASSERT(memcmp(buf + i, packed + 40, 4) != 0);
}

/* Each bit, that of the nonce and of the tag too. */
TEST(lease_seal, each_changed_bit_is_refused)
{
	struct rmem_lease_desc desc = {.lease_id = 99};
	uint32_t bit, part;
	uint8_t buf[SIZE];
	int ret;

	TEST_EQ(seal(buf), SIZE);
	for (bit = 0; bit < SIZE * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ret = rmem_lease_unseal(there, buf, SIZE, with, sizeof(with), &desc, NULL, &part);
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (bit >= 64) {
			TEST_EQ(ret, -EPERM);
			TEST_EQ(part, RMEM_LEASE_DESC_PART_SEAL);
		}
		TEST_ASSERT(ret < 0 && desc.lease_id == 99);
	}
	TEST_EQ(rmem_lease_unseal(there, buf, SIZE, with, sizeof(with), &desc, NULL, NULL), SIZE);
}

static void
expect_bad(const uint8_t *from, uint32_t at, int error, uint32_t want)
{
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE];
	uint32_t part;

	memcpy(buf, from, SIZE);
	buf[at] ^= 0x80;
	TEST_ERR(rmem_lease_unseal(there, buf, SIZE, with, sizeof(with), &desc, NULL, &part),
			error);
	TEST_EQ(part, want);
}

TEST(lease_seal, each_bad_part_of_the_head_is_reported)
{
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE];
	uint32_t part;

	TEST_EQ(seal(buf), SIZE);
	expect_bad(buf, 0, EINVAL, RMEM_LEASE_DESC_PART_MAGIC);
	expect_bad(buf, 4, EOPNOTSUPP, RMEM_LEASE_DESC_PART_VERSION);
	expect_bad(buf, 5, EINVAL, RMEM_LEASE_DESC_PART_RESERVED);
	expect_bad(buf, 6, EINVAL, RMEM_LEASE_DESC_PART_SIZE);
	expect_bad(buf, 8, EPERM, RMEM_LEASE_DESC_PART_SEAL);
	TEST_ERR(rmem_lease_unseal(there, buf, SIZE - 1, with, sizeof(with), &desc, NULL, &part),
			ENOSPC);
	TEST_EQ(part, RMEM_LEASE_DESC_PART_ROOM);
}

TEST(lease_seal, another_key_is_refused)
{
	static const uint8_t other_key[RMEM_LEASE_SEAL_KEY_SIZE] = {1, 2, 4};
	struct rmem_lease_sealer *other;
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE];

	TEST_EQ(seal(buf), SIZE);
	TEST_OK(rmem_lease_sealer_create(other_key, &other));
	TEST_ERR(rmem_lease_unseal(other, buf, SIZE, with, sizeof(with), &desc, NULL, NULL), EPERM);
	rmem_lease_sealer_destroy(other);
}

/* As of another connection. */
TEST(lease_seal, other_associated_data_is_refused)
{
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE];

	TEST_EQ(seal(buf), SIZE);
	TEST_ERR(rmem_lease_unseal(there, buf, SIZE, "qp 17 to qp 19", sizeof(with), &desc, NULL,
				 NULL),
			EPERM);
	TEST_ERR(rmem_lease_unseal(there, buf, SIZE, NULL, 0, &desc, NULL, NULL), EPERM);
	TEST_EQ(rmem_lease_seal(here, &example, NULL, 0, buf, SIZE), SIZE);
	TEST_EQ(rmem_lease_unseal(there, buf, SIZE, NULL, 0, &desc, NULL, NULL), SIZE);
}

TEST(lease_seal, no_nonce_is_repeated)
{
	struct rmem_lease_seal_info info, other;
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE];
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		TEST_EQ(seal(buf), SIZE);
		TEST_EQ(rmem_lease_unseal(there, buf, SIZE, with, sizeof(with), &desc, &info, NULL),
				SIZE);
		TEST_EQ(info.sequence, i);
	}
	TEST_EQ(rmem_lease_seal(there, &example, NULL, 0, buf, SIZE), SIZE);
	TEST_EQ(rmem_lease_unseal(here, buf, SIZE, NULL, 0, &desc, &other, NULL), SIZE);
	/* Of one key, but each with a number of its own. */
	TEST_ASSERT(other.sender != info.sender);
}

/* A replay is unsealed, and can be detected by its sequence. */
#define NB_FORKED 4u /* descriptors that each process seals after a fork */

static bool
seal_into(int fd)
{
	uint8_t buf[SIZE];
	unsigned int i;

	for (i = 0; i < NB_FORKED; i++) {
		if (seal(buf) != SIZE || write(fd, buf, SIZE) != SIZE)
			return false;
	}
	return true;
}

/* Fork a process that seals, and then one of it; whether both could. */
static bool
seal_in_children(int fd)
{
	int status = 1;
	pid_t grandchild, child = fork();

	if (child == 0) {
		if (!seal_into(fd))
			_exit(1);
		grandchild = fork();
		if (grandchild == 0)
			_exit(seal_into(fd) ? 0 : 1);
		_exit(waitpid(grandchild, &status, 0) == grandchild && status == 0 ? 0 : 1);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* Parent, child and grandchild have copies of one sealer, and go on with it. */
TEST(lease_seal, processes_after_a_fork_share_no_nonce)
{
	uint8_t buf[4 * NB_FORKED][SIZE];
	struct rmem_lease_seal_info info;
	struct rmem_lease_desc desc;
	unsigned int i, j;
	int fd[2];

	TEST_OK(pipe(fd));
	for (i = 0; i < NB_FORKED; i++)
		TEST_EQ(seal(buf[i]), SIZE);
	TEST_ASSERT(seal_in_children(fd[1]));
	for (; i < 2 * NB_FORKED; i++)
		TEST_EQ(seal(buf[i]), SIZE);
	for (; i < RTE_DIM(buf); i++)
		TEST_EQ(read(fd[0], buf[i], SIZE), SIZE);
	close(fd[0]);
	close(fd[1]);
	for (i = 0; i < RTE_DIM(buf); i++) {
		for (j = 0; j < i; j++)
			TEST_ASSERT(memcmp(buf[i] + 8, buf[j] + 8, 12) != 0);
		TEST_EQ(rmem_lease_unseal(there, buf[i], SIZE, with, sizeof(with), &desc, &info,
					NULL),
				SIZE);
		/* The parent continues, each child counts from 0. */
		TEST_EQ(info.sequence, i < 2 * NB_FORKED ? i : i % NB_FORKED);
	}
}

TEST(lease_seal, replay_has_the_same_sequence)
{
	struct rmem_lease_seal_info first, again;
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE];

	TEST_EQ(seal(buf), SIZE);
	TEST_EQ(rmem_lease_unseal(there, buf, SIZE, with, sizeof(with), &desc, &first, NULL), SIZE);
	TEST_EQ(rmem_lease_unseal(there, buf, SIZE, with, sizeof(with), &desc, &again, NULL), SIZE);
	TEST_EQ(first.sender, again.sender);
	TEST_EQ(first.sequence, again.sequence);
}

TEST(lease_seal, bad_arguments_are_refused)
{
	struct rmem_lease_desc desc = example;
	struct rmem_lease_sealer *sealer;
	uint8_t buf[SIZE];

	TEST_ERR(rmem_lease_sealer_create(NULL, &sealer), EINVAL);
	TEST_ERR(rmem_lease_sealer_create(key, NULL), EINVAL);
	rmem_lease_sealer_destroy(NULL);
	TEST_ERR(rmem_lease_seal(NULL, &desc, NULL, 0, buf, SIZE), EINVAL);
	TEST_ERR(rmem_lease_seal(here, NULL, NULL, 0, buf, SIZE), EINVAL);
	TEST_ERR(rmem_lease_seal(here, &desc, NULL, 1, buf, SIZE), EINVAL);
	TEST_ERR(rmem_lease_seal(here, &desc, with, 65537, buf, SIZE), EINVAL);
	TEST_ERR(rmem_lease_seal(here, &desc, NULL, 0, NULL, SIZE), EINVAL);
	TEST_ERR(rmem_lease_seal(here, &desc, NULL, 0, buf, SIZE - 1), ENOSPC);
	desc.length = 0;
	TEST_ERR(rmem_lease_seal(here, &desc, NULL, 0, buf, SIZE), EINVAL);
	TEST_EQ(seal(buf), SIZE);
	TEST_ERR(rmem_lease_unseal(NULL, buf, SIZE, NULL, 0, &desc, NULL, NULL), EINVAL);
	TEST_ERR(rmem_lease_unseal(there, NULL, SIZE, NULL, 0, &desc, NULL, NULL), EINVAL);
	TEST_ERR(rmem_lease_unseal(there, buf, SIZE, NULL, 1, &desc, NULL, NULL), EINVAL);
	TEST_ERR(rmem_lease_unseal(there, buf, SIZE, NULL, 0, NULL, NULL, NULL), EINVAL);
}

TEST_SUITE(lease_seal, setup_seal, teardown_seal);

/* The calls of a library built without libcrypto. */
TEST(lease_no_seal, seal_calls_without_libcrypto_are_eopnotsupp)
{
	struct rmem_lease_sealer *sealer = NULL;
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE] = {0};
	int ret = rmem_lease_sealer_create(key, &sealer);

	if (ret == 0) {
		rmem_lease_sealer_destroy(sealer);
		return;
	}
	TEST_EQ(ret, -EOPNOTSUPP);
	TEST_ERR(rmem_lease_seal(NULL, &example, NULL, 0, buf, SIZE), EOPNOTSUPP);
	TEST_ERR(rmem_lease_unseal(NULL, buf, SIZE, NULL, 0, &desc, NULL, NULL), EOPNOTSUPP);
}

TEST_SUITE(lease_no_seal, fx_setup_none, fx_teardown);
