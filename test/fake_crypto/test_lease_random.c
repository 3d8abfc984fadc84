/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The random numbers of tags are the ChaCha20 key stream that libcrypto computes. */

#include <string.h>

#include "../../lib/rmem_lease/rmem_lease_random.c" /* NOLINT(bugprone-suspicious-include) */
#include "../test.h"
#include "fake.h"

#define SIZE (LEASE_RANDOM * sizeof(uint32_t))

static void
setup(void)
{
	memset(&fake, 0, sizeof(fake));
}

static void
teardown(void)
{
}

TEST(lease_random, numbers_are_the_chacha20_stream_of_a_drawn_key)
{
	static uint32_t random[LEASE_RANDOM];
	static uint8_t zeros[SIZE], stream[SIZE];
	uint8_t key[32], nonce[16] = {0};
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	int round, length = 0;

	for (round = 0; round < 4; round++) {
		rmem_lease_random_fill(random);
		memcpy(key, fake.drawn, sizeof(key));
		TEST_EQ(EVP_EncryptInit_ex(cipher, EVP_chacha20(), NULL, key, nonce), 1);
		TEST_EQ(__real_EVP_EncryptUpdate(cipher, stream, &length, zeros, sizeof(zeros)), 1);
		TEST_EQ(length, (int)SIZE);
		TEST_EQ(memcmp(random, stream, SIZE), 0);
	}
	EVP_CIPHER_CTX_free(cipher);
}

/* A system without getrandom(): numbers all the same, and others each time. */
TEST(lease_random, numbers_come_without_getrandom)
{
	static uint32_t first[LEASE_RANDOM], second[LEASE_RANDOM];

	fake_fail_at(1);
	rmem_lease_random_fill(first);
	TEST_ASSERT(fake.failed != NULL);
	fake_fail_at(1);
	rmem_lease_random_fill(second);
	TEST_ASSERT(memcmp(first, second, SIZE) != 0);
}

TEST_SUITE(lease_random, setup, teardown);
