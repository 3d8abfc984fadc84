/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The files of mode copy. The output is written to a temporary file and renamed only on
 * success: a failed copy leaves an existing output unchanged.
 */

#ifndef COPY_FILE_H
#define COPY_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/** Bytes of a SHA-256. */
#define COPY_SUM_SIZE 32

struct testrmem_session;

/** An input and an output of a copy. */
struct copy_file {
	struct testrmem_session *session; /**< Used in error messages. */
	const char *input;
	const char *output;
	int in_fd;
	int out_fd;
	char final_path[PATH_MAX]; /**< Of the output, symbolic links resolved. */
	char temp_path[PATH_MAX];  /**< Temporary path; "" if the output is written directly. */
	struct stat in_stat;
	uint64_t length; /**< Of the input. */
	uint8_t in_sum[COPY_SUM_SIZE];
	uint8_t out_sum[COPY_SUM_SIZE];
};

/** Open both, and compute the sum of the input; reports errors. Close is always needed. */
int copy_file_open(struct copy_file *file, const char *input, const char *output);
/** Read exactly length bytes of the input. */
int copy_file_read(struct copy_file *file, void *data, size_t length, uint64_t offset);
/** Write exactly length bytes of the output. */
int copy_file_write(struct copy_file *file, const void *data, size_t length, uint64_t offset);
/** Sync the output to disk and compute its sum; check that the input has not changed. */
int copy_file_sync(struct copy_file *file);
/** Rename the output to its final path. */
int copy_file_commit(struct copy_file *file);
/** Close both; an output that was not committed is removed. */
void copy_file_close(struct copy_file *file);

#endif /* COPY_FILE_H */
