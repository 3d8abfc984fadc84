/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Descriptors of leases for peers, in a machine-independent format.
 *
 * An rkey is a capability: a peer that reads it can use it, on the QP of the lease or, except for
 * windows, on any QP of the PD. If others can read or modify the connection, send the sealed form.
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
/** Bytes of a sealed descriptor: header (8), nonce (12), packed descriptor, tag (16). */
#define RMEM_LEASE_SEALED_SIZE (8 + 12 + RMEM_LEASE_DESC_SIZE + 16)

/** Description of a lease for a peer. */
struct rmem_lease_desc {
	uint64_t lease_id;    /**< rmem_lease::id, for answers of the peer. */
	uint64_t remote_addr; /**< First byte, in requests of the peer. */
	uint64_t length;      /**< Bytes, at least 1; remote_addr + length does not overflow. */
	/**
	 * Nanoseconds left when the descriptor was created, 0 for no deadline.
	 *
	 * Not a time of day, since clocks of two machines may differ by more than the duration of
	 * a lease. Count from the arrival, and subtract the transmission time.
	 */
	uint64_t left_ns;
	uint32_t rkey;        /**< Key for the requests of the peer. */
	uint32_t access;      /**< Bitwise OR of rights in RMEM_ACCESS_REMOTE, at least one. */
	uint64_t reserved[2]; /**< Zero. */
};

/** Invalid part of a packed or sealed descriptor. */
enum rmem_lease_desc_part {
	RMEM_LEASE_DESC_PART_NONE = 0,     /**< None. */
	RMEM_LEASE_DESC_PART_ROOM = 1,     /**< Fewer bytes than a descriptor. */
	RMEM_LEASE_DESC_PART_MAGIC = 2,    /**< Not the first bytes of a descriptor. */
	RMEM_LEASE_DESC_PART_VERSION = 3,  /**< Another version. */
	RMEM_LEASE_DESC_PART_SIZE = 4,     /**< The size field does not match the version. */
	RMEM_LEASE_DESC_PART_CHECKSUM = 5, /**< The checksum does not match. */
	RMEM_LEASE_DESC_PART_RESERVED = 6, /**< A reserved field is not zero. */
	RMEM_LEASE_DESC_PART_RANGE = 7,    /**< length is 0, or the address overflows. */
	RMEM_LEASE_DESC_PART_ACCESS = 8,   /**< No right, or an unknown one. */
	RMEM_LEASE_DESC_PART_SEAL = 9,     /**< Another key, other associated data, or modified. */
};

/** Origin of a sealed descriptor. */
struct rmem_lease_seal_info {
	uint64_t sender;   /**< Random number of the sealer. */
	uint32_t sequence; /**< Number of the descriptor, from 0. */
	uint32_t reserved; /**< Zero. */
};

/**
 * Describe a lease.
 *
 * Fast path, for the thread that uses the context of the lease.
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
 * Pack a descriptor: all numbers in network byte order, followed by a CRC-32C.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param desc
 *   Descriptor to pack.
 * @param[out] buf
 *   Buffer of at least RMEM_LEASE_DESC_SIZE bytes.
 * @param size
 *   Size of buf.
 *
 * @return
 *   RMEM_LEASE_DESC_SIZE, otherwise:
 *   - -EINVAL: NULL desc or buf, a number in desc that is out of range, or a reserved field
 *     that is not zero.
 *   - -ENOSPC: buf is too small.
 */
int rmem_lease_desc_pack(const struct rmem_lease_desc *desc, void *buf, size_t size);

/**
 * Unpack a descriptor.
 *
 * The checksum detects accidental corruption, not attacks. Bytes after the descriptor are ignored.
 *
 * Fast path. Safe to call from any thread.
 *
 * @param buf
 *   Bytes received.
 * @param size
 *   Number of bytes.
 * @param[out] desc
 *   Filled on success.
 * @param[out] part
 *   Invalid part, one of enum rmem_lease_desc_part; NULL is allowed.
 *
 * @return
 *   RMEM_LEASE_DESC_SIZE, otherwise:
 *   - -EINVAL: NULL buf or desc, or an invalid part without another errno.
 *   - -ENOSPC: fewer bytes than a descriptor.
 *   - -EOPNOTSUPP: another version.
 *   - -EIO: the checksum does not match.
 */
int rmem_lease_desc_unpack(
		const void *buf, size_t size, struct rmem_lease_desc *desc, uint32_t *part);

/**
 * Create a sealer, which seals and unseals descriptors with AES-256-GCM.
 *
 * The key must be known only to the two sides, from a key exchange such as TLS or IKE. A sealer is
 * used by one thread at a time; several sealers may have the same key, in any process. Each sealer
 * draws a 64-bit random number, and builds its nonces from this number and a counter, so that
 * nonces are unique for the key; after 2^32 descriptors it draws another number. After fork() the
 * child may use its copy of a sealer, which draws its own number.
 *
 * A snapshot of a virtual machine or a checkpoint of a process is not detected: a sealer that is
 * restored twice, or restored while the original runs, repeats nonces, which discloses the sealed
 * data and permits forgery. After a restore, destroy the sealer and create another with a new key.
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
 *   Sealer to release. NULL is allowed and has no effect.
 */
void rmem_lease_sealer_destroy(struct rmem_lease_sealer *sealer);

/**
 * Seal a descriptor: encrypt and authenticate it.
 *
 * Fast path, for the thread that uses the sealer.
 *
 * @param sealer
 *   Sealer with the key.
 * @param desc
 *   Descriptor to seal.
 * @param with
 *   Associated data; not sent, and must be equal in rmem_lease_unseal(). If it has the numbers of
 *   the two QPs, a descriptor for one connection cannot be used on another. May be NULL if
 *   with_size is 0.
 * @param with_size
 *   Bytes of associated data, up to 65536.
 * @param[out] buf
 *   Buffer of at least RMEM_LEASE_SEALED_SIZE bytes.
 * @param size
 *   Size of buf.
 *
 * @return
 *   RMEM_LEASE_SEALED_SIZE, otherwise:
 *   - -EINVAL: NULL sealer or with, a descriptor that rmem_lease_desc_pack() refuses, or with_size
 *     above 65536.
 *   - -ENOSPC: buf is too small.
 *   - -EOPNOTSUPP: the library was built without libcrypto.
 *   - -EIO: libcrypto failed, or the system has no random numbers.
 */
int rmem_lease_seal(struct rmem_lease_sealer *sealer, const struct rmem_lease_desc *desc,
		const void *with, size_t with_size, void *buf, size_t size);

/**
 * Unseal a descriptor: verify and decrypt it.
 *
 * A recorded descriptor can be unsealed again. Its lease has ended by then, or will end, so a peer
 * that uses its rkey is refused and its QP fails. To detect replays keep the last sequence of each
 * sender, and drop descriptors that are not above it.
 *
 * Fast path, for the thread that uses the sealer.
 *
 * @param sealer
 *   Sealer with the same key.
 * @param buf
 *   Bytes received.
 * @param size
 *   Number of bytes.
 * @param with
 *   Associated data of rmem_lease_seal(). May be NULL if with_size is 0.
 * @param with_size
 *   Bytes of associated data, up to 65536.
 * @param[out] desc
 *   Filled on success.
 * @param[out] info
 *   Filled on success; NULL is allowed.
 * @param[out] part
 *   Invalid part, one of enum rmem_lease_desc_part; NULL is allowed.
 *
 * @return
 *   RMEM_LEASE_SEALED_SIZE, otherwise:
 *   - -EINVAL: NULL sealer, buf, with or desc, with_size above 65536, or an invalid part without
 *     another errno.
 *   - -ENOSPC: fewer bytes than a sealed descriptor.
 *   - -EPERM: another key, other associated data, or a modified descriptor.
 *   - -EOPNOTSUPP: another version, or the library was built without libcrypto.
 *   - -EIO: libcrypto failed, or the sealed checksum does not match.
 */
int rmem_lease_unseal(struct rmem_lease_sealer *sealer, const void *buf, size_t size,
		const void *with, size_t with_size, struct rmem_lease_desc *desc,
		struct rmem_lease_seal_info *info, uint32_t *part);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_LEASE_DESC_H */
