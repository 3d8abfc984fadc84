/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Every key that was ever given out, and whose it was.
 */

#ifndef KEY_LOG_H
#define KEY_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed before the first use. */
struct key_log {
	uint64_t *entries;
	uint32_t mask;
	uint32_t nb;
};

/* Record the rkey of an owner, which is not 0; false if another owner had it before. */
bool key_log_add(struct key_log *log, uint32_t rkey, uint32_t owner);

void key_log_free(struct key_log *log);

#endif /* KEY_LOG_H */
