/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Descriptors: what a peer is told of a lease, in bytes that are the same on every machine.
 *
 * An rkey is a capability: who reads it can use it, from the QP that the lease is for or, but for
 * windows, from any of the PD. Over a wire that others can read or write, send the sealed form.
 */

#ifndef RMEM_LEASE_DESC_H
#define RMEM_LEASE_DESC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rmem_lease;
struct rmem_lease_sealer;

/** Version of the format. */
#define RMEM_LEASE_DESC_VERSION 1
/** Bytes of a packed descriptor. */
#define RMEM_LEASE_DESC_SIZE 56
/** Bytes of the key of a sealer. */
#define RMEM_LEASE_SEAL_KEY_SIZE 32
/** Bytes of a sealed descriptor: a head of 8, a nonce of 12, the packed one and a tag of 16. */
#define RMEM_LEASE_SEALED_SIZE (8 + 12 + RMEM_LEASE_DESC_SIZE + 16)

/** What a peer is told. */
struct rmem_lease_desc {
	uint64_t lease_id;    /**< rmem_lease::id, to name it in answers. */
	uint64_t remote_addr; /**< First byte, for the requests of the peer. */
	uint64_t length;      /**< Bytes, at least 1; remote_addr + length does not overflow. */
	/**
	 * Nanoseconds that were left when it was made, 0 for no end. Not a time of day: clocks of
	 * two machines differ by more than leases last. Count from the arrival, and be done
	 * early enough for the way.
	 */
	uint64_t left_ns;
	uint32_t rkey;   /**< Key for the requests of the peer. */
	uint32_t access; /**< Bitwise OR of rights in RMEM_ACCESS_REMOTE, at least one. */
};

/** Which part of a packed or sealed descriptor is bad. */
enum rmem_lease_desc_part {
	RMEM_LEASE_DESC_PART_NONE = 0,     /**< None. */
	RMEM_LEASE_DESC_PART_ROOM = 1,     /**< There are fewer bytes than it has. */
	RMEM_LEASE_DESC_PART_MAGIC = 2,    /**< It does not begin as one. */
	RMEM_LEASE_DESC_PART_VERSION = 3,  /**< Another version. */
	RMEM_LEASE_DESC_PART_SIZE = 4,     /**< The size in it is not that of the version. */
	RMEM_LEASE_DESC_PART_CHECKSUM = 5, /**< Its bytes were changed on the way. */
	RMEM_LEASE_DESC_PART_RESERVED = 6, /**< A reserved field is not zero. */
	RMEM_LEASE_DESC_PART_RANGE = 7,    /**< length is 0, or the address overflows. */
	RMEM_LEASE_DESC_PART_ACCESS = 8,   /**< No right, or an unknown one. */
	RMEM_LEASE_DESC_PART_SEAL = 9,     /**< Another key, other data with it, or not genuine. */
};

/** Who sealed a descriptor, and the how manyth it was. */
struct rmem_lease_seal_info {
	uint64_t sender;   /**< Random number of the sealer. */
	uint32_t sequence; /**< Counts from 0 with each descriptor it seals. */
	uint32_t reserved; /**< Zero. */
};

/**
 * Describe a lease.
 *
 * Fast path, for the thread that owns the context of the lease.
 *
 * @param lease
 *   Lease that is prepared or granted.
 * @param[out] desc
 *   Filled on success.
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL lease or desc.
 *   - -EBUSY: the lease is being revoked, has ended, or is overdue.
 */
int rmem_lease_desc_get(const struct rmem_lease *lease, struct rmem_lease_desc *desc);

/**
 * Pack a descriptor: all numbers in network byte order, and a CRC-32C behind.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param desc
 *   What to pack.
 * @param[out] buf
 *   Room for RMEM_LEASE_DESC_SIZE bytes.
 * @param size
 *   Bytes of room.
 *
 * @return
 *   RMEM_LEASE_DESC_SIZE, otherwise:
 *   - -EINVAL: NULL desc or buf, or a number in desc that is out of range.
 *   - -ENOSPC: too little room.
 */
int rmem_lease_desc_pack(const struct rmem_lease_desc *desc, void *buf, size_t size);

/**
 * Unpack a descriptor.
 *
 * The checksum finds accidents, not attacks. What lies behind the descriptor is not looked at.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param buf
 *   What arrived.
 * @param size
 *   Bytes that arrived.
 * @param[out] desc
 *   Filled on success.
 * @param[out] part
 *   Which part is bad, one of enum rmem_lease_desc_part; NULL is allowed.
 *
 * @return
 *   RMEM_LEASE_DESC_SIZE, otherwise:
 *   - -EINVAL: NULL buf or desc, or a bad part that no other errno names.
 *   - -ENOSPC: fewer bytes than a descriptor has.
 *   - -EOPNOTSUPP: another version.
 *   - -EIO: the checksum does not fit.
 */
int rmem_lease_desc_unpack(
		const void *buf, size_t size, struct rmem_lease_desc *desc, uint32_t *part);

/**
 * Make a sealer: it seals and opens descriptors by AES-256-GCM under a key of the application.
 *
 * The key is one that both sides have and nobody else, from a key exchange such as TLS or IKE.
 * A sealer belongs to one thread at a time; several may have the same key, in any process. Each
 * draws a random number of 64 bits, and makes its nonces of that and of a count, so that none
 * comes twice under a key; after 2^32 descriptors it draws another. After fork() the child may
 * use its copy of a sealer, which draws a number of its own.
 *
 * A snapshot of a virtual machine or a checkpoint of a process is not detected: a sealer that is
 * restored twice, or restored while the original runs, repeats nonces, which discloses what was
 * sealed and lets others seal. After a restore, destroy it and create one with a new key.
 *
 * Control path: allocates memory.
 *
 * @param key
 *   RMEM_LEASE_SEAL_KEY_SIZE bytes; not needed after the call.
 * @param[out] sealer
 *   The new sealer. Written only on success. Release it with rmem_lease_sealer_destroy().
 *
 * @return
 *   0 on success, otherwise:
 *   - -EINVAL: NULL key or sealer.
 *   - -EOPNOTSUPP: the library was built without libcrypto.
 *   - -ENOMEM: no memory.
 *   - -EIO: libcrypto has no AES-256-GCM, or the system has no random numbers.
 */
int rmem_lease_sealer_create(const uint8_t *key, struct rmem_lease_sealer **sealer);

/**
 * Destroy a sealer, and wipe its key.
 *
 * Control path. Once for each sealer.
 *
 * @param sealer
 *   Sealer to release. NULL is allowed and does nothing.
 */
void rmem_lease_sealer_destroy(struct rmem_lease_sealer *sealer);

/**
 * Seal a descriptor: nobody without the key can read it, change it, or make one.
 *
 * Fast path, for the thread that owns the sealer.
 *
 * @param sealer
 *   Sealer with the key.
 * @param desc
 *   What to seal.
 * @param with
 *   Bytes that must be the same when it is opened, and are not sent, such as the numbers of the
 *   two QPs: a descriptor for one connection then can't be used at another. NULL with 0 bytes.
 * @param with_size
 *   How many, up to 65536.
 * @param[out] buf
 *   Room for RMEM_LEASE_SEALED_SIZE bytes.
 * @param size
 *   Bytes of room.
 *
 * @return
 *   RMEM_LEASE_SEALED_SIZE, otherwise:
 *   - -EINVAL: NULL sealer or with, what rmem_lease_desc_pack() refuses, or with_size above
 *     65536.
 *   - -ENOSPC: too little room.
 *   - -EOPNOTSUPP: the library was built without libcrypto.
 *   - -EIO: libcrypto failed, or the system has no random numbers.
 */
int rmem_lease_seal(struct rmem_lease_sealer *sealer, const struct rmem_lease_desc *desc,
		const void *with, size_t with_size, void *buf, size_t size);

/**
 * Open a sealed descriptor.
 *
 * Who records it can send it again: it opens each time. Its lease has ended by then, or will, and
 * its rkey with it, so that a peer who believes it is refused and loses the QP. Who minds keeps the
 * last sequence of each sender, and drops what is not above it.
 *
 * Fast path, for the thread that owns the sealer.
 *
 * @param sealer
 *   Sealer with the same key, not needed to be the one that sealed it.
 * @param buf
 *   What arrived.
 * @param size
 *   Bytes that arrived.
 * @param with
 *   The bytes that it was sealed with. NULL with 0 bytes.
 * @param with_size
 *   How many, up to 65536.
 * @param[out] desc
 *   Filled on success.
 * @param[out] info
 *   Filled on success; NULL is allowed.
 * @param[out] part
 *   Which part is bad, one of enum rmem_lease_desc_part; NULL is allowed.
 *
 * @return
 *   RMEM_LEASE_SEALED_SIZE, otherwise:
 *   - -EINVAL: NULL sealer, buf, with or desc, with_size above 65536, or a bad part that no
 *     other errno names.
 *   - -ENOSPC: fewer bytes than a sealed descriptor has.
 *   - -EPERM: it was sealed under another key, with other bytes, or was changed.
 *   - -EOPNOTSUPP: another version, or the library was built without libcrypto.
 *   - -EIO: libcrypto failed, or who has the key sealed a wrong checksum.
 */
int rmem_lease_unseal(struct rmem_lease_sealer *sealer, const void *buf, size_t size,
		const void *with, size_t with_size, struct rmem_lease_desc *desc,
		struct rmem_lease_seal_info *info, uint32_t *part);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_LEASE_DESC_H */
