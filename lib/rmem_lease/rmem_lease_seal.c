/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Sealed descriptors: AES-256-GCM of libcrypto. The nonce is a random number of 64 bits that the
 * sealer draws, and a count of 32 bits: no nonce is used twice with a key (NIST SP 800-38D, 8.2.1).
 * The header, the nonce and the associated data are authenticated, not encrypted.
 *
 * Invariant: no two sealers share a random number, including a sealer and its copy in a child of
 * fork(). The number and the count are in a page that the kernel clears in any child
 * (MADV_WIPEONFORK); a sealer whose page is clear draws a number before it seals. If the kernel
 * does not support this, the process ID detects the child.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <rte_byteorder.h>

#include <rmem_lease_desc.h>

#include "rmem_lease_priv.h"

#define SEAL_MAGIC    UINT32_C(0x726d4c53) /* "rmLS" */
#define SEAL_VERSION  1
#define SEAL_MAX_WITH 65536
#define SEAL_TAG_SIZE 16

/* Wire format; the fields before the data are authenticated, not encrypted. */
struct sealed_desc {
	rte_be32_t magic;
	uint8_t version;
	uint8_t reserved;
	rte_be16_t size;
	uint8_t nonce[12];
	uint8_t data[RMEM_LEASE_DESC_SIZE];
	uint8_t tag[SEAL_TAG_SIZE];
};

static_assert(sizeof(struct sealed_desc) == RMEM_LEASE_SEALED_SIZE, "no holes");

/* Parts of a nonce. */
struct nonces {
	bool is_drawn;
	uint64_t sender;
	uint64_t nb_sealed; /* by this sealer */
};

struct rmem_lease_sealer {
	EVP_CIPHER_CTX *seal;
	EVP_CIPHER_CTX *open;
	struct nonces *nonces; /* a page of its own, clear in a child */
	size_t page_size;
	pid_t pid; /* process of the nonces, if the kernel does not clear them; else 0 */
};

static int
draw_sender(struct rmem_lease_sealer *sealer)
{
	uint64_t sender;

	if (getrandom(&sender, sizeof(sender), 0) != sizeof(sender))
		return LEASE_FAIL(EIO, "random numbers: not available: error %d", errno);
	sealer->nonces->sender = sender;
	sealer->nonces->nb_sealed = 0;
	sealer->nonces->is_drawn = true;
	if (sealer->pid != 0)
		sealer->pid = getpid();
	return 0;
}

/* Whether the parent may use the next nonce, too, or the counter is exhausted. */
static inline bool
needs_sender(const struct rmem_lease_sealer *sealer)
{
	return !sealer->nonces->is_drawn || sealer->nonces->nb_sealed > UINT32_MAX ||
			(sealer->pid != 0 && sealer->pid != getpid());
}

static int
map_nonces(struct rmem_lease_sealer *sealer)
{
	void *page;

	sealer->page_size = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, sealer->page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	if (page == MAP_FAILED)
		return -ENOMEM;
	sealer->nonces = page;
	if (madvise(page, sealer->page_size, MADV_WIPEONFORK) != 0)
		sealer->pid = getpid(); /* Linux before 4.14 */
	return 0;
}

int
rmem_lease_sealer_create(const uint8_t *key, struct rmem_lease_sealer **sealer)
{
	struct rmem_lease_sealer *new_sealer;
	int ret = -ENOMEM;

	if (key == NULL || sealer == NULL)
		return LEASE_FAIL(EINVAL, "key or result: NULL");
	new_sealer = calloc(1, sizeof(*new_sealer));
	if (new_sealer == NULL)
		goto fail;
	new_sealer->seal = EVP_CIPHER_CTX_new();
	new_sealer->open = EVP_CIPHER_CTX_new();
	if (new_sealer->seal == NULL || new_sealer->open == NULL)
		goto fail;
	ret = map_nonces(new_sealer);
	if (ret != 0)
		goto fail;
	ret = -EIO;
	if (EVP_EncryptInit_ex(new_sealer->seal, EVP_aes_256_gcm(), NULL, key, NULL) != 1 ||
			EVP_DecryptInit_ex(new_sealer->open, EVP_aes_256_gcm(), NULL, key, NULL) !=
					1)
		goto fail;
	ret = draw_sender(new_sealer);
	if (ret != 0)
		goto fail;
	*sealer = new_sealer;
	return 0;

fail:
	rmem_lease_sealer_destroy(new_sealer);
	return LEASE_FAIL(-ret, "sealer: not created: error %d", -ret);
}

void
rmem_lease_sealer_destroy(struct rmem_lease_sealer *sealer)
{
	if (sealer == NULL)
		return;
	/* These clear the key. */
	EVP_CIPHER_CTX_free(sealer->seal);
	EVP_CIPHER_CTX_free(sealer->open);
	if (sealer->nonces != NULL)
		munmap(sealer->nonces, sealer->page_size);
	free(sealer);
}

/* Set the nonce, and the authenticated data: associated data, then the header. */
static bool
feed(EVP_CIPHER_CTX *cipher, const struct sealed_desc *sealed, const void *with, size_t with_size)
{
	int len;

	if (EVP_CipherInit_ex(cipher, NULL, NULL, NULL, sealed->nonce, -1) != 1)
		return false;
	if (with_size != 0 && EVP_CipherUpdate(cipher, NULL, &len, with, (int)with_size) != 1)
		return false;
	return EVP_CipherUpdate(cipher, NULL, &len, (const uint8_t *)sealed,
			       offsetof(struct sealed_desc, data)) == 1;
}

static bool
is_with(const void *with, size_t with_size)
{
	return (with != NULL || with_size == 0) && with_size <= SEAL_MAX_WITH;
}

int
rmem_lease_seal(struct rmem_lease_sealer *sealer, const struct rmem_lease_desc *desc,
		const void *with, size_t with_size, void *buf, size_t size)
{
	uint8_t packed[RMEM_LEASE_DESC_SIZE];
	struct sealed_desc sealed;
	rte_be32_t count;
	int ret, len;

	if (sealer == NULL || buf == NULL || !is_with(with, with_size))
		return -EINVAL;
	ret = rmem_lease_desc_pack(desc, packed, sizeof(packed));
	if (ret < 0)
		return ret;
	if (size < sizeof(sealed))
		return -ENOSPC;
	if (unlikely(needs_sender(sealer))) {
		ret = draw_sender(sealer);
		if (ret != 0)
			return ret;
	}
	sealed.magic = rte_cpu_to_be_32(SEAL_MAGIC);
	sealed.version = SEAL_VERSION;
	sealed.reserved = 0;
	sealed.size = rte_cpu_to_be_16(sizeof(sealed));
	count = rte_cpu_to_be_32((uint32_t)sealer->nonces->nb_sealed++);
	memcpy(sealed.nonce, &sealer->nonces->sender, sizeof(uint64_t));
	memcpy(sealed.nonce + sizeof(uint64_t), &count, sizeof(count));
	if (!feed(sealer->seal, &sealed, with, with_size) ||
			EVP_EncryptUpdate(sealer->seal, sealed.data, &len, packed,
					sizeof(packed)) != 1 ||
			EVP_EncryptFinal_ex(sealer->seal, sealed.data + len, &len) != 1 ||
			EVP_CIPHER_CTX_ctrl(sealer->seal, EVP_CTRL_GCM_GET_TAG, SEAL_TAG_SIZE,
					sealed.tag) != 1)
		return -EIO;
	memcpy(buf, &sealed, sizeof(sealed));
	return sizeof(sealed);
}

static int
check_head(const struct sealed_desc *sealed, uint32_t *part)
{
	if (sealed->magic != rte_cpu_to_be_32(SEAL_MAGIC)) {
		*part = RMEM_LEASE_DESC_PART_MAGIC;
		return -EINVAL;
	}
	if (sealed->version != SEAL_VERSION) {
		*part = RMEM_LEASE_DESC_PART_VERSION;
		return -EOPNOTSUPP;
	}
	if (sealed->size != rte_cpu_to_be_16(sizeof(*sealed))) {
		*part = RMEM_LEASE_DESC_PART_SIZE;
		return -EINVAL;
	}
	if (sealed->reserved != 0) {
		*part = RMEM_LEASE_DESC_PART_RESERVED;
		return -EINVAL;
	}
	return 0;
}

static int
unseal(struct rmem_lease_sealer *sealer, struct sealed_desc *sealed, const void *with,
		size_t with_size, struct rmem_lease_desc *desc, uint32_t *part)
{
	uint8_t packed[RMEM_LEASE_DESC_SIZE];
	int len, ret = check_head(sealed, part);

	if (ret != 0)
		return ret;
	if (!feed(sealer->open, sealed, with, with_size) ||
			EVP_DecryptUpdate(sealer->open, packed, &len, sealed->data,
					sizeof(packed)) != 1 ||
			EVP_CIPHER_CTX_ctrl(sealer->open, EVP_CTRL_GCM_SET_TAG, SEAL_TAG_SIZE,
					sealed->tag) != 1) {
		ret = -EIO;
	} else if (EVP_DecryptFinal_ex(sealer->open, packed + len, &len) != 1) {
		*part = RMEM_LEASE_DESC_PART_SEAL;
		ret = -EPERM;
	} else {
		ret = rmem_lease_desc_unpack(packed, sizeof(packed), desc, part);
	}
	OPENSSL_cleanse(packed, sizeof(packed));
	return ret < 0 ? ret : (int)sizeof(*sealed);
}

int
rmem_lease_unseal(struct rmem_lease_sealer *sealer, const void *buf, size_t size, const void *with,
		size_t with_size, struct rmem_lease_desc *desc, struct rmem_lease_seal_info *info,
		uint32_t *part)
{
	uint32_t bad = RMEM_LEASE_DESC_PART_NONE;
	struct sealed_desc sealed;
	rte_be32_t count;
	int ret = -EINVAL;

	if (sealer == NULL || buf == NULL || desc == NULL || !is_with(with, with_size)) {
		ret = -EINVAL;
	} else if (size < sizeof(sealed)) {
		bad = RMEM_LEASE_DESC_PART_ROOM;
		ret = -ENOSPC;
	} else {
		memcpy(&sealed, buf, sizeof(sealed));
		ret = unseal(sealer, &sealed, with, with_size, desc, &bad);
	}
	if (part != NULL)
		*part = bad;
	if (ret > 0 && info != NULL) {
		memcpy(&info->sender, sealed.nonce, sizeof(info->sender));
		memcpy(&count, sealed.nonce + sizeof(info->sender), sizeof(count));
		info->sequence = rte_be_to_cpu_32(count);
		info->reserved = 0;
	}
	return ret;
}
