/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The calls of rmem_lease_seal.c, each of which can fail on demand; see fake.h. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <rte_common.h>

#include "fake.h"

#define MAX_UPDATE 256

struct fake fake;

void
fake_fail_at(uint32_t n)
{
	fake.fail_at = n;
	fake.nb_calls = 0;
	fake.failed = NULL;
}

static bool
fails(const char *name)
{
	if (++fake.nb_calls != fake.fail_at)
		return false;
	fake.failed = name;
	return true;
}

/* A call that returns 1, or 0 when it fails. */
#define WRAP(name, params, args)                                                                   \
	int __real_##name params;                                                                  \
	int __wrap_##name params;                                                                  \
	int __wrap_##name params                                                                   \
	{                                                                                          \
		return fails(#name) ? 0 : __real_##name args;                                      \
	}

WRAP(EVP_CIPHER_CTX_ctrl, (EVP_CIPHER_CTX * ctx, int type, int arg, void *ptr),
		(ctx, type, arg, ptr))
WRAP(EVP_CipherInit_ex,
		(EVP_CIPHER_CTX * ctx, const EVP_CIPHER *cipher, ENGINE *engine,
				const unsigned char *key, const unsigned char *iv, int enc),
		(ctx, cipher, engine, key, iv, enc))
WRAP(EVP_CipherUpdate,
		(EVP_CIPHER_CTX * ctx, unsigned char *out, int *out_len, const unsigned char *in,
				int in_len),
		(ctx, out, out_len, in, in_len))
WRAP(EVP_DecryptFinal_ex, (EVP_CIPHER_CTX * ctx, unsigned char *out, int *out_len),
		(ctx, out, out_len))
WRAP(EVP_DecryptInit_ex,
		(EVP_CIPHER_CTX * ctx, const EVP_CIPHER *cipher, ENGINE *engine,
				const unsigned char *key, const unsigned char *iv),
		(ctx, cipher, engine, key, iv))
WRAP(EVP_DecryptUpdate,
		(EVP_CIPHER_CTX * ctx, unsigned char *out, int *out_len, const unsigned char *in,
				int in_len),
		(ctx, out, out_len, in, in_len))
WRAP(EVP_EncryptFinal_ex, (EVP_CIPHER_CTX * ctx, unsigned char *out, int *out_len),
		(ctx, out, out_len))
WRAP(EVP_EncryptInit_ex,
		(EVP_CIPHER_CTX * ctx, const EVP_CIPHER *cipher, ENGINE *engine,
				const unsigned char *key, const unsigned char *iv),
		(ctx, cipher, engine, key, iv))

int __wrap_EVP_EncryptUpdate(EVP_CIPHER_CTX *ctx, unsigned char *out, int *out_len,
		const unsigned char *in, int in_len);
EVP_CIPHER_CTX *__real_EVP_CIPHER_CTX_new(void);
EVP_CIPHER_CTX *__wrap_EVP_CIPHER_CTX_new(void);
void __real_EVP_CIPHER_CTX_free(EVP_CIPHER_CTX *ctx);
void __wrap_EVP_CIPHER_CTX_free(EVP_CIPHER_CTX *ctx);
void *__real_calloc(size_t nb, size_t size);
void *__wrap_calloc(size_t nb, size_t size);
ssize_t __real_getrandom(void *buf, size_t size, unsigned int flags);
ssize_t __wrap_getrandom(void *buf, size_t size, unsigned int flags);
int __real_madvise(void *addr, size_t length, int advice);
int __wrap_madvise(void *addr, size_t length, int advice);
void *__real_mmap64(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *addr, size_t length, int prot, int flags, int fd, off_t offset);

int
__wrap_EVP_EncryptUpdate(EVP_CIPHER_CTX *ctx, unsigned char *out, int *out_len,
		const unsigned char *in, int in_len)
{
	unsigned char changed[MAX_UPDATE];

	if (fails("EVP_EncryptUpdate") || in_len < 1 || in_len > MAX_UPDATE)
		return 0;
	memcpy(changed, in, (size_t)in_len);
	if (fake.is_corrupting)
		changed[in_len - 1] ^= 1;
	return __real_EVP_EncryptUpdate(ctx, out, out_len, changed, in_len);
}

EVP_CIPHER_CTX *
__wrap_EVP_CIPHER_CTX_new(void)
{
	EVP_CIPHER_CTX *ctx = fails("EVP_CIPHER_CTX_new") ? NULL : __real_EVP_CIPHER_CTX_new();

	fake.nb_ciphers += ctx != NULL;
	return ctx;
}

void
__wrap_EVP_CIPHER_CTX_free(EVP_CIPHER_CTX *ctx)
{
	fake.nb_ciphers -= ctx != NULL;
	__real_EVP_CIPHER_CTX_free(ctx);
}

void *
__wrap_calloc(size_t nb, size_t size)
{
	return fails("calloc") ? NULL : __real_calloc(nb, size);
}

ssize_t
__wrap_getrandom(void *buf, size_t size, unsigned int flags)
{
	ssize_t n;

	if (fails("getrandom")) {
		errno = ENOSYS;
		return -1;
	}
	n = __real_getrandom(buf, size, flags);
	if (n > 0)
		memcpy(fake.drawn, buf, RTE_MIN((size_t)n, sizeof(fake.drawn)));
	return n;
}

int
__wrap_madvise(void *addr, size_t length, int advice)
{
	if (fake.has_no_wipe) {
		errno = EINVAL;
		return -1;
	}
	return __real_madvise(addr, length, advice);
}

void *
__wrap_mmap64(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	if (fails("mmap")) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap64(addr, length, prot, flags, fd, offset);
}
