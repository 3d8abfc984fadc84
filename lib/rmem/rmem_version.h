/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Version of the headers and of the library.
 */

#ifndef RMEM_VERSION_H
#define RMEM_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/** A version as a number, to compare with RMEM_VERSION. */
#define RMEM_VERSION_NUM(major, minor, patch) ((major) << 16 | (minor) << 8 | (patch))
/** Version of the headers. */
#define RMEM_VERSION RMEM_VERSION_NUM(0, 2, 0)

/**
 * Get the version of the library that the program runs with.
 *
 * Safe to call from any thread.
 *
 * @return
 *   Its RMEM_VERSION.
 */
unsigned int rmem_version(void);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_VERSION_H */
