/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Packing of descriptors. */

#include <assert.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_hash_crc.h>

#include <rmem_lease_desc.h>

#include "rmem_lease_priv.h"

#define DESC_MAGIC UINT32_C(0x726d4c44) /* "rmLD" */

/* Wire format. */
struct packed_desc {
	rte_be32_t magic;
	uint8_t version;
	uint8_t reserved8;
	rte_be16_t size;
	rte_be64_t lease_id;
	rte_be64_t remote_addr;
	rte_be64_t length;
	rte_be64_t left_ns;
	rte_be32_t rkey;
	rte_be32_t access;
	rte_be32_t reserved32;
	rte_be32_t crc; /* CRC of all preceding bytes */
};

static_assert(sizeof(struct packed_desc) == RMEM_LEASE_DESC_SIZE, "no holes");

static uint32_t
checksum(const struct packed_desc *packed)
{
	return rte_hash_crc(packed, offsetof(struct packed_desc, crc), UINT32_MAX) ^ UINT32_MAX;
}

/* Find the invalid number of a descriptor. */
static uint32_t
check_desc(const struct rmem_lease_desc *desc)
{
	if (desc->length == 0 || desc->length - 1 > UINT64_MAX - desc->remote_addr)
		return RMEM_LEASE_DESC_PART_RANGE;
	if (desc->access == 0 || (desc->access & ~RMEM_ACCESS_REMOTE) != 0)
		return RMEM_LEASE_DESC_PART_ACCESS;
	if (desc->reserved[0] != 0 || desc->reserved[1] != 0)
		return RMEM_LEASE_DESC_PART_RESERVED;
	return RMEM_LEASE_DESC_PART_NONE;
}

int
rmem_lease_desc_get(const struct rmem_lease *lease, struct rmem_lease_desc *desc)
{
	uint64_t now, left_ns = 0;

	if (lease == NULL || desc == NULL)
		return -EINVAL;
	if (lease->state < RMEM_LEASE_PREPARED || lease->state > RMEM_LEASE_GRANTED)
		return -EBUSY;
	if (lease->deadline != 0) {
		now = rte_rdtsc();
		if (now >= lease->deadline)
			return -EBUSY;
		left_ns = (uint64_t)((double)(lease->deadline - now) * 1e9 /
				(double)rte_get_tsc_hz());
		left_ns = RTE_MAX(left_ns, UINT64_C(1));
	}
	desc->lease_id = lease->id;
	desc->remote_addr = lease->remote_addr;
	desc->length = lease->length;
	desc->left_ns = left_ns;
	desc->rkey = lease->rkey;
	desc->access = lease->access;
	memset(desc->reserved, 0, sizeof(desc->reserved));
	return 0;
}

int
rmem_lease_desc_pack(const struct rmem_lease_desc *desc, void *buf, size_t size)
{
	struct packed_desc packed;

	if (desc == NULL || buf == NULL || check_desc(desc) != RMEM_LEASE_DESC_PART_NONE)
		return -EINVAL;
	if (size < sizeof(packed))
		return -ENOSPC;
	packed.magic = rte_cpu_to_be_32(DESC_MAGIC);
	packed.version = RMEM_LEASE_DESC_VERSION;
	packed.reserved8 = 0;
	packed.size = rte_cpu_to_be_16(sizeof(packed));
	packed.lease_id = rte_cpu_to_be_64(desc->lease_id);
	packed.remote_addr = rte_cpu_to_be_64(desc->remote_addr);
	packed.length = rte_cpu_to_be_64(desc->length);
	packed.left_ns = rte_cpu_to_be_64(desc->left_ns);
	packed.rkey = rte_cpu_to_be_32(desc->rkey);
	packed.access = rte_cpu_to_be_32(desc->access);
	packed.reserved32 = 0;
	packed.crc = rte_cpu_to_be_32(checksum(&packed));
	memcpy(buf, &packed, sizeof(packed));
	return sizeof(packed);
}

/* Find the invalid part of the frame, and its errno. */
static int
check_frame(const struct packed_desc *packed, uint32_t *part)
{
	if (packed->magic != rte_cpu_to_be_32(DESC_MAGIC)) {
		*part = RMEM_LEASE_DESC_PART_MAGIC;
		return -EINVAL;
	}
	if (packed->version != RMEM_LEASE_DESC_VERSION) {
		*part = RMEM_LEASE_DESC_PART_VERSION;
		return -EOPNOTSUPP;
	}
	if (packed->size != rte_cpu_to_be_16(sizeof(*packed))) {
		*part = RMEM_LEASE_DESC_PART_SIZE;
		return -EINVAL;
	}
	if (packed->crc != rte_cpu_to_be_32(checksum(packed))) {
		*part = RMEM_LEASE_DESC_PART_CHECKSUM;
		return -EIO;
	}
	if (packed->reserved8 != 0 || packed->reserved32 != 0) {
		*part = RMEM_LEASE_DESC_PART_RESERVED;
		return -EINVAL;
	}
	return 0;
}

static int
unpack(const void *buf, size_t size, struct rmem_lease_desc *desc, uint32_t *part)
{
	struct rmem_lease_desc found;
	struct packed_desc packed;
	int ret;

	if (size < sizeof(packed)) {
		*part = RMEM_LEASE_DESC_PART_ROOM;
		return -ENOSPC;
	}
	memcpy(&packed, buf, sizeof(packed));
	ret = check_frame(&packed, part);
	if (ret != 0)
		return ret;
	found.lease_id = rte_be_to_cpu_64(packed.lease_id);
	found.remote_addr = rte_be_to_cpu_64(packed.remote_addr);
	found.length = rte_be_to_cpu_64(packed.length);
	found.left_ns = rte_be_to_cpu_64(packed.left_ns);
	found.rkey = rte_be_to_cpu_32(packed.rkey);
	found.access = rte_be_to_cpu_32(packed.access);
	memset(found.reserved, 0, sizeof(found.reserved));
	*part = check_desc(&found);
	if (*part != RMEM_LEASE_DESC_PART_NONE)
		return -EINVAL;
	*desc = found;
	return sizeof(packed);
}

int
rmem_lease_desc_unpack(const void *buf, size_t size, struct rmem_lease_desc *desc, uint32_t *part)
{
	uint32_t bad = RMEM_LEASE_DESC_PART_NONE;
	int ret;

	ret = buf == NULL || desc == NULL ? -EINVAL : unpack(buf, size, desc, &bad);
	if (part != NULL)
		*part = bad;
	return ret;
}
