/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "copy_file.h"
#include "testrmem.h"

#define SUM_BLOCK (UINT64_C(256) * 1024)

/* Report that a system call failed on a file. Returns -errno. */
static int
failed(struct copy_file *file, const char *what, const char *path)
{
	int error = errno;

	testrmem_fail(file->session, "cannot %s '%s': %s", what, path, strerror(error));
	return -error;
}

/* Add a file, which must have file->length bytes, to a digest. */
static int
digest_fd(struct copy_file *file, int fd, const char *path, EVP_MD_CTX *ctx)
{
	/* One more byte detects a longer file; a device may have no end. */
	uint64_t max = file->length + 1;
	uint8_t *block = malloc(SUM_BLOCK);
	uint64_t offset = 0;
	ssize_t got = 0;
	int ret = 0;

	if (block == NULL) {
		testrmem_fail(file->session, "no memory to read '%s'", path);
		return -ENOMEM;
	}
	while (ret == 0 && offset < max) {
		if (testrmem_is_interrupted()) {
			testrmem_fail(file->session, "interrupted while reading '%s'", path);
			ret = -EINTR;
			break;
		}
		got = pread(fd, block, RTE_MIN(max - offset, SUM_BLOCK), (off_t)offset);
		if (got == 0)
			break;
		if (got > 0 && EVP_DigestUpdate(ctx, block, (size_t)got) != 1) {
			testrmem_fail(file->session, "cannot compute the SHA-256 of '%s'", path);
			ret = -EIO;
		} else if (got > 0) {
			offset += (uint64_t)got;
		} else if (errno != EINTR) {
			ret = failed(file, "read", path);
		}
	}
	free(block);
	if (ret == 0 && offset != file->length) {
		testrmem_fail(file->session, "'%s' has %" PRIu64 "%s bytes, not %" PRIu64, path,
				offset, offset == max ? " or more" : "", file->length);
		ret = -EIO;
	}
	return ret;
}

/* The SHA-256 of a file. */
static int
sum_fd(struct copy_file *file, int fd, const char *path, uint8_t *sum)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	int ret = 0;

	if (ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1) {
		testrmem_fail(file->session, "libcrypto has no SHA-256");
		ret = -EIO;
	}
	if (ret == 0)
		ret = digest_fd(file, fd, path, ctx);
	if (ret == 0 && EVP_DigestFinal_ex(ctx, sum, NULL) != 1) {
		testrmem_fail(file->session, "cannot compute the SHA-256 of '%s'", path);
		ret = -EIO;
	}
	EVP_MD_CTX_free(ctx);
	return ret;
}

static int
open_input(struct copy_file *file)
{
	/* Not to wait for the writer of a FIFO. */
	file->in_fd = open(file->input, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file->in_fd < 0)
		return failed(file, "read", file->input);
	if (fstat(file->in_fd, &file->in_stat) != 0)
		return failed(file, "read", file->input);
	if (!S_ISREG(file->in_stat.st_mode)) {
		testrmem_fail(file->session, "cannot read '%s': not a regular file", file->input);
		return -EINVAL;
	}
	file->length = (uint64_t)file->in_stat.st_size;
	return 0;
}

/* A new file in the directory of the output, with its permissions. */
static int
open_temp(struct copy_file *file, bool has_mode, mode_t mode)
{
	int n = snprintf(file->temp_path, sizeof(file->temp_path), "%s.part.%d", file->final_path,
			(int)getpid());

	if (n >= (int)sizeof(file->temp_path)) {
		file->temp_path[0] = '\0';
		errno = ENAMETOOLONG;
		return failed(file, "write", file->output);
	}
	file->out_fd = open(file->temp_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (file->out_fd < 0) {
		/* A temporary file of another process, if it exists. */
		int error = errno;

		file->temp_path[0] = '\0';
		errno = error;
		return failed(file, "write", file->output);
	}
	if (has_mode && fchmod(file->out_fd, mode & 07777) != 0)
		return failed(file, "set the rights of", file->output);
	return 0;
}

/* Check an existing output, and resolve links. */
static int
check_old_output(struct copy_file *file, const struct stat *old)
{
	if (old->st_dev == file->in_stat.st_dev && old->st_ino == file->in_stat.st_ino) {
		testrmem_fail(file->session, "output '%s' is the same file as input '%s'",
				file->output, file->input);
		return -EINVAL;
	}
	if (S_ISDIR(old->st_mode))
		errno = EISDIR;
	else if (access(file->output, W_OK) == 0 &&
			realpath(file->output, file->final_path) != NULL)
		return 0;
	return failed(file, "write", file->output);
}

static int
open_output(struct copy_file *file)
{
	struct stat old;
	int ret;

	if (stat(file->output, &old) == 0) {
		ret = check_old_output(file, &old);
		if (ret != 0)
			return ret;
		if (S_ISREG(old.st_mode))
			return open_temp(file, true, old.st_mode);
		/* A device cannot be replaced by a file: write to it. */
		file->out_fd = open(file->output, O_RDWR | O_CLOEXEC | O_NONBLOCK);
		return file->out_fd < 0 ? failed(file, "write", file->output) : 0;
	}
	if (errno != ENOENT)
		return failed(file, "write", file->output);
	snprintf(file->final_path, sizeof(file->final_path), "%s", file->output);
	return open_temp(file, false, 0);
}

int
copy_file_open(struct copy_file *file, const char *input, const char *output)
{
	int ret;

	file->input = input;
	file->output = output;
	file->in_fd = -1;
	file->out_fd = -1;
	ret = open_input(file);
	if (ret == 0)
		ret = open_output(file);
	if (ret == 0)
		ret = sum_fd(file, file->in_fd, input, file->in_sum);
	return ret;
}

int
copy_file_read(struct copy_file *file, void *data, size_t length, uint64_t offset)
{
	uint8_t *next = data;
	ssize_t got;

	while (length > 0) {
		got = pread(file->in_fd, next, length, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return failed(file, "read", file->input);
		if (got == 0) {
			testrmem_fail(file->session,
					"input '%s' shrank while it was copied: it ends at %" PRIu64
					" of %" PRIu64 " bytes",
					file->input, offset, file->length);
			return -EIO;
		}
		next += got;
		offset += (uint64_t)got;
		length -= (size_t)got;
	}
	return 0;
}

int
copy_file_write(struct copy_file *file, const void *data, size_t length, uint64_t offset)
{
	const uint8_t *next = data;
	ssize_t done;

	while (length > 0) {
		done = pwrite(file->out_fd, next, length, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done == 0)
			errno = ENOSPC;
		if (done <= 0)
			return failed(file, "write", file->output);
		next += done;
		offset += (uint64_t)done;
		length -= (size_t)done;
	}
	return 0;
}

/* Check that the input still exists with its initial length. */
static int
check_input(struct copy_file *file)
{
	struct stat now;

	if (fstat(file->in_fd, &now) != 0)
		return failed(file, "read", file->input);
	if (now.st_size != file->in_stat.st_size) {
		testrmem_fail(file->session,
				"input '%s' changed while it was copied: from %" PRIu64
				" to %" PRIu64 " bytes",
				file->input, file->length, (uint64_t)now.st_size);
		return -EIO;
	}
	if (stat(file->input, &now) == 0 && now.st_dev == file->in_stat.st_dev &&
			now.st_ino == file->in_stat.st_ino)
		return 0;
	testrmem_fail(file->session, "input '%s' vanished while it was copied", file->input);
	return -EIO;
}

int
copy_file_sync(struct copy_file *file)
{
	int ret = check_input(file);

	if (ret != 0)
		return ret;
	/* Devices have nothing to sync. */
	if (fsync(file->out_fd) != 0 && !(file->temp_path[0] == '\0' && errno == EINVAL))
		return failed(file, "write", file->output);
	return sum_fd(file, file->out_fd, file->output, file->out_sum);
}

int
copy_file_commit(struct copy_file *file)
{
	int fd = file->out_fd;

	file->out_fd = -1;
	if (close(fd) != 0)
		return failed(file, "write", file->output);
	if (file->temp_path[0] == '\0')
		return 0;
	if (rename(file->temp_path, file->final_path) != 0)
		return failed(file, "write", file->output);
	file->temp_path[0] = '\0';
	return 0;
}

void
copy_file_close(struct copy_file *file)
{
	if (file->in_fd >= 0)
		close(file->in_fd);
	if (file->out_fd >= 0)
		close(file->out_fd);
	if (file->temp_path[0] != '\0' && unlink(file->temp_path) != 0)
		testrmem_err("cannot remove '%s': %s", file->temp_path, strerror(errno));
	file->in_fd = -1;
	file->out_fd = -1;
	file->temp_path[0] = '\0';
}
