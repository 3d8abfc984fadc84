/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Descriptors are the same on every machine, and each invalid part is reported. */

#include <string.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_hash_crc.h>

#include <rmem_lease_desc.h>

#include "lease.h"

#define WRITE RMEM_ACCESS_REMOTE_WRITE
#define SIZE  RMEM_LEASE_DESC_SIZE

static const struct rmem_lease_desc example = {
		.lease_id = UINT64_C(0x0102030405060708),
		.remote_addr = UINT64_C(0x1112131415161718),
		.length = UINT64_C(0x2122232425262728),
		.left_ns = UINT64_C(0x3132333435363738),
		.rkey = UINT32_C(0x41424344),
		.access = RMEM_ACCESS_REMOTE_READ | RMEM_ACCESS_REMOTE_WRITE,
};

/* As written in doc/lease.md; the checksum by another program. */
static const uint8_t example_bytes[SIZE] = {0x72, 0x6d, 0x4c, 0x44, 1, 0, 0, 56, 0x01, 0x02, 0x03,
		0x04, 0x05, 0x06, 0x07, 0x08, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21,
		0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37,
		0x38, 0x41, 0x42, 0x43, 0x44, 0, 0, 0, 6, 0, 0, 0, 0, 0x83, 0xcf, 0x60, 0x0c};

static bool
is_same(const struct rmem_lease_desc *a, const struct rmem_lease_desc *b)
{
	return a->lease_id == b->lease_id && a->remote_addr == b->remote_addr &&
			a->length == b->length && a->left_ns == b->left_ns && a->rkey == b->rkey &&
			a->access == b->access;
}

TEST(lease_desc, descriptor_has_a_fixed_layout)
{
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE + 1];
	uint32_t part = 77;

	buf[SIZE] = 0xa5;
	TEST_EQ(rmem_lease_desc_pack(&example, buf, SIZE), SIZE);
	TEST_MEM(buf, example_bytes, SIZE);
	TEST_EQ(buf[SIZE], 0xa5);
	TEST_EQ(rmem_lease_desc_unpack(example_bytes, SIZE, &desc, &part), SIZE);
	TEST_ASSERT(is_same(&desc, &example));
	TEST_EQ(part, RMEM_LEASE_DESC_PART_NONE);
	TEST_EQ(rmem_lease_desc_unpack(buf, sizeof(buf), &desc, NULL), SIZE);
}

/* Bytes are changed, and the checksum with them; what is found, and nothing was written. */
static void
expect_bad(uint32_t at, uint8_t value, int error, uint32_t want)
{
	struct rmem_lease_desc desc = {.lease_id = 99};
	uint8_t buf[SIZE];
	uint32_t crc, part = 0;

	memcpy(buf, example_bytes, SIZE);
	buf[at] = value;
	crc = rte_cpu_to_be_32(rte_hash_crc(buf, SIZE - 4, UINT32_MAX) ^ UINT32_MAX);
	memcpy(buf + SIZE - 4, &crc, sizeof(crc));
	TEST_ERR(rmem_lease_desc_unpack(buf, SIZE, &desc, &part), error);
	TEST_EQ(part, want);
	TEST_EQ(desc.lease_id, 99);
}

TEST(lease_desc, each_bad_part_is_reported)
{
	struct rmem_lease_desc desc;
	uint32_t part;

	expect_bad(0, 0, EINVAL, RMEM_LEASE_DESC_PART_MAGIC);
	expect_bad(3, 0, EINVAL, RMEM_LEASE_DESC_PART_MAGIC);
	expect_bad(4, 0, EOPNOTSUPP, RMEM_LEASE_DESC_PART_VERSION);
	expect_bad(4, 2, EOPNOTSUPP, RMEM_LEASE_DESC_PART_VERSION);
	expect_bad(5, 1, EINVAL, RMEM_LEASE_DESC_PART_RESERVED);
	expect_bad(7, 55, EINVAL, RMEM_LEASE_DESC_PART_SIZE);
	expect_bad(6, 1, EINVAL, RMEM_LEASE_DESC_PART_SIZE);
	expect_bad(24, 0xff, EINVAL, RMEM_LEASE_DESC_PART_RANGE);
	expect_bad(47, 0, EINVAL, RMEM_LEASE_DESC_PART_ACCESS);
	expect_bad(47, 7, EINVAL, RMEM_LEASE_DESC_PART_ACCESS);
	expect_bad(44, 1, EINVAL, RMEM_LEASE_DESC_PART_ACCESS);
	expect_bad(51, 1, EINVAL, RMEM_LEASE_DESC_PART_RESERVED);
	TEST_ERR(rmem_lease_desc_unpack(example_bytes, SIZE - 1, &desc, &part), ENOSPC);
	TEST_EQ(part, RMEM_LEASE_DESC_PART_ROOM);
	TEST_ERR(rmem_lease_desc_unpack(NULL, SIZE, &desc, NULL), EINVAL);
	TEST_ERR(rmem_lease_desc_unpack(example_bytes, SIZE, NULL, NULL), EINVAL);
}

/* Every bit counts: one that flips is always found. */
TEST(lease_desc, each_flipped_bit_is_detected)
{
	struct rmem_lease_desc desc;
	uint8_t buf[SIZE];
	uint32_t bit, part;
	int ret;

	memcpy(buf, example_bytes, SIZE);
	for (bit = 0; bit < SIZE * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ret = rmem_lease_desc_unpack(buf, SIZE, &desc, &part);
		TEST_ASSERT(ret < 0);
		if (bit >= 64)
			TEST_EQ(ret, -EIO);
		buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

TEST(lease_desc, bad_values_are_not_packed)
{
	struct rmem_lease_desc desc = example;
	uint8_t buf[SIZE];

	TEST_ERR(rmem_lease_desc_pack(NULL, buf, SIZE), EINVAL);
	TEST_ERR(rmem_lease_desc_pack(&desc, NULL, SIZE), EINVAL);
	TEST_ERR(rmem_lease_desc_pack(&desc, buf, SIZE - 1), ENOSPC);
	desc.length = 0;
	TEST_ERR(rmem_lease_desc_pack(&desc, buf, SIZE), EINVAL);
	desc.length = UINT64_MAX - desc.remote_addr + 2;
	TEST_ERR(rmem_lease_desc_pack(&desc, buf, SIZE), EINVAL);
	desc.length--;
	TEST_EQ(rmem_lease_desc_pack(&desc, buf, SIZE), SIZE);
	desc.access = 0;
	TEST_ERR(rmem_lease_desc_pack(&desc, buf, SIZE), EINVAL);
	desc.access = RMEM_ACCESS_LOCAL_WRITE;
	TEST_ERR(rmem_lease_desc_pack(&desc, buf, SIZE), EINVAL);
	desc = example;
	desc.reserved[1] = 1;
	TEST_ERR(rmem_lease_desc_pack(&desc, buf, SIZE), EINVAL);
}

TEST(lease_desc, lease_is_described)
{
	struct rmem_lease_req req = lx_req(100, 200, WRITE);
	struct rmem_lease_desc desc;

	req.deadline = rte_rdtsc() + 3600 * rte_get_tsc_hz();
	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, lx.lease), 1);
	TEST_OK(rmem_lease_desc_get(lx.lease[0], &desc));
	TEST_EQ(desc.lease_id, lx.lease[0]->id);
	TEST_EQ(desc.remote_addr, lx.lease[0]->remote_addr);
	TEST_EQ(desc.length, 200);
	TEST_EQ(desc.rkey, lx.lease[0]->rkey);
	TEST_EQ(desc.access, WRITE);
	/* An hour, less what passed since. */
	TEST_ASSERT(desc.left_ns <= UINT64_C(3600000000000) + 1000);
	TEST_ASSERT(desc.left_ns > UINT64_C(3600000000000) / 2);
	lx_wait_granted(lx.lease[0]);
	TEST_STATUS(fx_peer_write(desc.remote_addr, (uint32_t)desc.length, desc.rkey),
			RMEM_WC_SUCCESS);
	lx_grant(1, WRITE);
	TEST_OK(rmem_lease_desc_get(lx.lease[0], &desc));
	TEST_EQ(desc.left_ns, 0);
}

TEST(lease_desc, ended_lease_is_not_described)
{
	struct rmem_lease_req req = lx_req(0, 8, WRITE);
	struct rmem_lease_desc desc;

	req.deadline = 1;
	TEST_EQ(rmem_lease_grant(lx.ctx, &req, 1, lx.lease), 1);
	TEST_ERR(rmem_lease_desc_get(lx.lease[0], &desc), EBUSY);
	lx_grant(1, WRITE);
	TEST_ERR(rmem_lease_desc_get(NULL, &desc), EINVAL);
	TEST_ERR(rmem_lease_desc_get(lx.lease[0], NULL), EINVAL);
	TEST_OK(rmem_lease_desc_get(lx.lease[0], &desc));
	TEST_OK(rmem_lease_revoke(lx.ctx, lx.lease, 1));
	TEST_ERR(rmem_lease_desc_get(lx.lease[0], &desc), EBUSY);
}

TEST_SUITE(lease_desc, lx_setup_auto, lx_teardown);
