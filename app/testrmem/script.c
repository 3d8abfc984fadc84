/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A file of commands of the prompt. Before the first is executed, the names of all and all settings
 * are checked. Then the file is the input of the prompt.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app.h"

#define BLANKS " \t\r\n"

static bool
is_command(const char *word)
{
	const char *name;
	int i;

	for (i = 0; (name = prompt_command(i)) != NULL; i++) {
		if (strcmp(name, word) == 0)
			return true;
	}
	return false;
}

/* set NAME VALUE: apply it to a copy of the settings. */
static int
check_set(char **state, struct testrmem_conf *conf)
{
	const char *name = strtok_r(NULL, BLANKS, state);
	const char *value = strtok_r(NULL, BLANKS, state);
	const struct param *param = name != NULL ? param_find(name) : NULL;

	if (value == NULL)
		testrmem_err("set needs a parameter and a value");
	else if (param == NULL)
		testrmem_err("unknown parameter '%s'", name);
	else if (param->is_fixed)
		testrmem_err("%s can be given on the command line only", name);
	else
		return param_set(conf, param, value);
	return -EINVAL;
}

static int
check_line(char *line, struct testrmem_conf *conf)
{
	char *state, *word;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, BLANKS, &state);
	if (word == NULL)
		return 0;
	if (strcmp(word, "set") == 0)
		return check_set(&state, conf);
	if (is_command(word))
		return 0;
	testrmem_err("unknown command '%s'", word);
	return -EINVAL;
}

static int
check_file(FILE *file, const char *path, const struct testrmem_conf *conf)
{
	struct testrmem_conf *scratch = malloc(sizeof(*scratch));
	unsigned int number = 0;
	char *line = NULL;
	size_t size = 0;
	int ret = 0;

	if (scratch == NULL)
		return -ENOMEM;
	*scratch = *conf;
	errno = 0;
	while (ret == 0 && getline(&line, &size, file) >= 0) {
		number++;
		ret = check_line(line, scratch);
		errno = 0;
	}
	if (ret != 0) {
		testrmem_err("script '%s' refused: line %u", path, number);
	} else if (errno != 0) {
		ret = -errno;
		testrmem_err("cannot read '%s': %s", path, strerror(-ret));
	}
	free(line);
	free(scratch);
	return ret;
}

/* It is read twice; anything but a regular file, such as a device, may be endless. */
static FILE *
open_regular(const char *path)
{
	struct stat st;
	/* A FIFO without a writer would wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *file = fd >= 0 && fstat(fd, &st) == 0 ? fdopen(fd, "r") : NULL;

	if (file == NULL) {
		testrmem_err("cannot read '%s': %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return file;
	testrmem_err("cannot read '%s': not a regular file", path);
	fclose(file);
	return NULL;
}

int
script_open(struct testrmem_conf *conf)
{
	FILE *file;
	int ret;

	if (conf->script[0] == '\0')
		return 0;
	file = open_regular(conf->script);
	if (file == NULL)
		return -EINVAL;
	ret = check_file(file, conf->script, conf);
	/* The descriptor, which has read ahead, is not used any more. */
	if (ret == 0 &&
			(lseek(fileno(file), 0, SEEK_SET) != 0 ||
					dup2(fileno(file), STDIN_FILENO) != STDIN_FILENO)) {
		ret = -errno;
		testrmem_err("cannot read '%s' again: %s", conf->script, strerror(-ret));
	}
	fclose(file);
	return ret;
}
