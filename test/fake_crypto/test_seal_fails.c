/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Whichever call of libcrypto or the system fails, sealing and unsealing report it, return nothing
 * and go on to work.
 */

#include <string.h>
#include <sys/wait.h>

/* The source itself: a case sets the count of a sealer, which 2^32 calls would take to reach. */
#include "../../lib/rmem_lease/rmem_lease_seal.c" /* NOLINT(bugprone-suspicious-include) */
#include "../test.h"
#include "fake.h"

#define SIZE RMEM_LEASE_SEALED_SIZE

RTE_LOG_REGISTER(rmem_lease_logtype, lib.rmem.lease, NOTICE)

static const uint8_t key[RMEM_LEASE_SEAL_KEY_SIZE] = {1, 2, 3};
static const char with[] = "qp 17 to qp 18";
static struct rmem_lease_sealer *sealer;

static const struct rmem_lease_desc example = {
		.lease_id = 1,
		.remote_addr = 0x7f0012345678,
		.length = 4096,
		.rkey = 0x00abcdef,
		.access = RMEM_ACCESS_REMOTE_READ,
};

static void
setup(void)
{
	memset(&fake, 0, sizeof(fake));
	sealer = NULL;
	TEST_OK(rmem_lease_sealer_create(key, &sealer));
}

static void
teardown(void)
{
	rmem_lease_sealer_destroy(sealer);
	TEST_EQ(fake.nb_ciphers, 0);
}

static int
seal_example(uint8_t *buf)
{
	return rmem_lease_seal(sealer, &example, with, sizeof(with), buf, SIZE);
}

static int
open_sealed(const uint8_t *buf, struct rmem_lease_desc *desc, struct rmem_lease_seal_info *info,
		uint32_t *part)
{
	return rmem_lease_unseal(sealer, buf, SIZE, with, sizeof(with), desc, info, part);
}

/* Not a byte of a buffer was written: all are 0xa5. */
static bool
is_untouched(const void *buf, size_t size)
{
	const uint8_t *bytes = buf;
	size_t i;

	for (i = 0; i < size && bytes[i] == 0xa5; i++)
		;
	return i == size;
}

/* Each call of a successful run fails in turn. */

TEST(seal_fails, create_fails_with_each_call)
{
	struct rmem_lease_sealer *other = NULL;
	uint32_t n, nb_calls;
	int32_t nb_ciphers = fake.nb_ciphers;
	bool is_memory;
	int ret;

	fake_fail_at(0);
	TEST_OK(rmem_lease_sealer_create(key, &other));
	rmem_lease_sealer_destroy(other);
	nb_calls = fake.nb_calls;
	TEST_EQ(nb_calls, 7);
	for (n = 1; n <= nb_calls; n++) {
		other = NULL;
		fake_fail_at(n);
		ret = rmem_lease_sealer_create(key, &other);
		TEST_ASSERT(fake.failed != NULL && other == NULL);
		is_memory = strcmp(fake.failed, "calloc") == 0 ||
				strcmp(fake.failed, "mmap") == 0 ||
				strcmp(fake.failed, "EVP_CIPHER_CTX_new") == 0;
		TEST_EQ(ret, is_memory ? -ENOMEM : -EIO);
		TEST_EQ(fake.nb_ciphers, nb_ciphers);
	}
}

TEST(seal_fails, seal_fails_with_each_call)
{
	struct rmem_lease_seal_info info = {0};
	struct rmem_lease_desc desc;
	uint32_t n, nb_calls;
	uint8_t buf[SIZE];

	fake_fail_at(0);
	TEST_EQ(seal_example(buf), SIZE);
	nb_calls = fake.nb_calls;
	TEST_EQ(nb_calls, 6);
	for (n = 1; n <= nb_calls; n++) {
		memset(buf, 0xa5, sizeof(buf));
		fake_fail_at(n);
		TEST_ERR(seal_example(buf), EIO);
		TEST_ASSERT(fake.failed != NULL && is_untouched(buf, sizeof(buf)));
		/* The next one succeeds, with another nonce than the failed one. */
		fake_fail_at(0);
		TEST_EQ(seal_example(buf), SIZE);
		TEST_EQ(open_sealed(buf, &desc, &info, NULL), SIZE);
		TEST_MEM(&desc, &example, sizeof(desc));
		TEST_EQ(info.sequence, 2 * n);
	}
}

TEST(seal_fails, unseal_fails_with_each_call)
{
	struct rmem_lease_seal_info info = {0};
	struct rmem_lease_desc desc;
	uint32_t n, nb_calls, part;
	uint8_t buf[SIZE];
	bool is_verdict;
	int ret;

	TEST_EQ(seal_example(buf), SIZE);
	fake_fail_at(0);
	TEST_EQ(open_sealed(buf, &desc, &info, &part), SIZE);
	nb_calls = fake.nb_calls;
	TEST_EQ(nb_calls, 6);
	for (n = 1; n <= nb_calls; n++) {
		memset(&desc, 0xa5, sizeof(desc));
		memset(&info, 0xa5, sizeof(info));
		fake_fail_at(n);
		ret = open_sealed(buf, &desc, &info, &part);
		TEST_ASSERT(fake.failed != NULL);
		/* The last call is libcrypto's verdict: it is not genuine. */
		is_verdict = strcmp(fake.failed, "EVP_DecryptFinal_ex") == 0;
		TEST_EQ(is_verdict, n == nb_calls);
		TEST_EQ(ret, is_verdict ? -EPERM : -EIO);
		TEST_EQ(part, is_verdict ? RMEM_LEASE_DESC_PART_SEAL : RMEM_LEASE_DESC_PART_NONE);
		TEST_ASSERT(is_untouched(&desc, sizeof(desc)) && is_untouched(&info, sizeof(info)));
		fake_fail_at(0);
		TEST_EQ(open_sealed(buf, &desc, &info, &part), SIZE);
		TEST_MEM(&desc, &example, sizeof(desc));
	}
}

/* A descriptor with a wrong checksum was sealed with the right key. */
TEST(seal_fails, genuine_descriptor_with_a_wrong_checksum_is_eio)
{
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE];
	uint32_t part;

	fake.is_corrupting = true;
	TEST_EQ(seal_example(buf), SIZE);
	fake.is_corrupting = false;
	memset(&desc, 0xa5, sizeof(desc));
	TEST_ERR(open_sealed(buf, &desc, NULL, &part), EIO);
	TEST_EQ(part, RMEM_LEASE_DESC_PART_CHECKSUM);
	TEST_ASSERT(is_untouched(&desc, sizeof(desc)));
}

/* After 2^32 descriptors another sender is drawn; none is sealed when that fails. */
TEST(seal_fails, sender_is_drawn_again_or_seal_fails)
{
	struct rmem_lease_seal_info last = {0}, info = {0};
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE];

	sealer->nonces->nb_sealed = UINT32_MAX;
	TEST_EQ(seal_example(buf), SIZE);
	TEST_EQ(open_sealed(buf, &desc, &last, NULL), SIZE);
	TEST_EQ(last.sequence, UINT32_MAX);
	memset(buf, 0xa5, sizeof(buf));
	fake_fail_at(1);
	TEST_ERR(seal_example(buf), EIO);
	TEST_ASSERT(fake.failed != NULL && strcmp(fake.failed, "getrandom") == 0);
	TEST_ASSERT(is_untouched(buf, sizeof(buf)));
	TEST_EQ(seal_example(buf), SIZE);
	TEST_EQ(open_sealed(buf, &desc, &info, NULL), SIZE);
	TEST_EQ(info.sequence, 0);
	TEST_ASSERT(info.sender != last.sender);
}

/* Where the kernel does not clear the page of a child, or random numbers fail in the child. */
TEST(seal_fails, child_draws_a_sender_or_seals_nothing)
{
	struct rmem_lease_seal_info info[2] = {{0}};
	struct rmem_lease_desc desc;
	uint8_t round, buf[SIZE];
	int fd[2], status;
	pid_t pid;

	TEST_OK(pipe(fd));
	for (round = 0; round < 2; round++) {
		rmem_lease_sealer_destroy(sealer);
		sealer = NULL;
		fake.has_no_wipe = round == 0;
		TEST_OK(rmem_lease_sealer_create(key, &sealer));
		pid = fork();
		if (pid == 0) {
			fake_fail_at(1);
			if (seal_example(buf) != -EIO || seal_example(buf) != SIZE)
				_exit(1);
			_exit(write(fd[1], buf, SIZE) == SIZE ? 0 : 1);
		}
		TEST_EQ(waitpid(pid, &status, 0), pid);
		TEST_EQ(status, 0);
		TEST_EQ(read(fd[0], buf, SIZE), SIZE);
		TEST_EQ(open_sealed(buf, &desc, &info[0], NULL), SIZE);
		TEST_EQ(seal_example(buf), SIZE);
		TEST_EQ(open_sealed(buf, &desc, &info[1], NULL), SIZE);
		TEST_ASSERT(info[0].sender != info[1].sender);
		TEST_EQ(info[0].sequence + info[1].sequence, 0);
	}
	close(fd[0]);
	close(fd[1]);
}

TEST_SUITE(seal_fails, setup, teardown);
