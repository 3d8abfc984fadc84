/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A libcrypto and a getrandom() that fail on demand. */

#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include <openssl/evp.h>

struct fake {
	uint32_t fail_at;   /* the how manyth call fails, from 1; 0 for none */
	uint32_t nb_calls;  /* that could fail */
	const char *failed; /* name of the one that did, or NULL */
	int32_t nb_ciphers; /* not freed */
	bool is_corrupting; /* what is encrypted is changed before */
	uint8_t drawn[32];  /* what getrandom() returned last, its first bytes */
	bool has_no_wipe;   /* madvise() fails, as before Linux 4.14 */
};

extern struct fake fake;

/* Call number n fails, counted from this call. */
void fake_fail_at(uint32_t n);

/* libcrypto's own, which does not fail. */
int __real_EVP_EncryptUpdate(EVP_CIPHER_CTX *ctx, unsigned char *out, int *out_len,
		const unsigned char *in, int in_len);

#endif /* FAKE_H */
