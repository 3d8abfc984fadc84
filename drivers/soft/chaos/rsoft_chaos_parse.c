/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The grammar of chaos=:
 *
 *	ITEM{+ITEM}, ITEM: seed:N | log:FILE | file:FILE | replay:FILE | PACKETS | RULE
 *	PACKETS: an item of fault=, such as loss:0.01
 *	RULE: SITE:WHAT{@FILTER:VALUE}
 *
 * A file has one item in a line; a # and all after it are ignored.
 */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/rsoft_number.h"
#include "rsoft_chaos_rule.h"

#define PARSE_MAX_RULES 65536

static bool
parse_number(const char *value, uint64_t min, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)value[0]))
		return false;
	errno = 0;
	*number = strtoull(value, &end, value[0] == '0' && value[1] == 'x' ? 16 : 10);
	return *end == '\0' && errno == 0 && *number >= min;
}

static bool
parse_share(const char *value, uint64_t *share)
{
	double number;
	char *end;

	if (!isdigit((unsigned char)value[0]) && value[0] != '.')
		return false;
	number = rsoft_strtod(value, &end);
	if (*end != '\0' || !(number > 0 && number <= 1))
		return false;
	*share = RTE_MAX((uint64_t)(number * (double)RSOFT_CHAOS_ALWAYS), UINT64_C(1));
	return true;
}

/* The name of the filter by object, or by delay, that rules of a kind have; or none. */
static const char *
object_of(const struct rsoft_chaos_rule *rule)
{
	return rule->kind == RSOFT_CHAOS_LATE ? "cq" : rsoft_chaos_is_of_qp(rule) ? "qp" : "";
}

static const char *
delay_of(const struct rsoft_chaos_rule *rule)
{
	return rule->kind == RSOFT_CHAOS_LATE           ? "polls"
			: rule->kind == RSOFT_CHAOS_RNR ? "naks"
							: "";
}

/* Set a field of the rule from a filter, "name:value". */
static bool
set_filter(struct rsoft_chaos_rule *rule, const char *name, const char *value)
{
	uint64_t number;

	if (strcmp(name, "p") == 0)
		return parse_share(value, &rule->share);
	if (!parse_number(value, 1, &number))
		return false;
	if (strcmp(name, "nth") == 0)
		rule->nth = number;
	else if (strcmp(name, "every") == 0)
		rule->every = number;
	else if (strcmp(name, "times") == 0)
		rule->times = number;
	else if (number > UINT32_MAX)
		return false;
	else if (strcmp(name, object_of(rule)) == 0)
		rule->object = (uint32_t)number;
	else if (strcmp(name, delay_of(rule)) == 0)
		rule->delay = (uint32_t)number;
	else
		return false;
	return true;
}

/* One filter of a rule. */
static bool
parse_filter(struct rsoft_chaos_rule *rule, const char *rule_text, const char *filter)
{
	const char *value = strchr(filter, ':'), *object = object_of(rule), *delay = delay_of(rule);
	char name[8] = "";

	if (value != NULL && value != filter && (size_t)(value - filter) < sizeof(name)) {
		memcpy(name, filter, (size_t)(value - filter));
		if (set_filter(rule, name, value + 1))
			return true;
	}
	RSOFT_LOG(ERR, "chaos=: '%s': '%s' is not %s%s%s%snth:N, every:N, times:N with N from 1 on, or p:P with P over 0, up to 1",
			rule_text, filter, object, *object != '\0' ? ":N, " : "", delay,
			*delay != '\0' ? ":N, " : "");
	return false;
}

/* A rule; the text is changed. */
static bool
parse_rule(struct rsoft_chaos_rule *rule, const char *item, char *copy, bool has_wire)
{
	char *filters = copy, *site = strsep(&filters, "@"), *what = site, *filter;

	(void)strsep(&what, ":");
	if (what == NULL || *what == '\0' || *site == '\0') {
		RSOFT_LOG(ERR, "chaos=: '%s' is not SITE:WHAT with filters (@nth:N), seed:N, log:FILE, file:FILE or replay:FILE; see doc/chaos.md",
				item);
		return false;
	}
	*rule = (struct rsoft_chaos_rule){
			.times = UINT64_MAX, .share = RSOFT_CHAOS_ALWAYS, .delay = 1};
	snprintf(rule->text, sizeof(rule->text), "%s:%s", site, what);
	if (!rsoft_chaos_legal(rule, site, what, has_wire))
		return false;
	while ((filter = strsep(&filters, "@")) != NULL) {
		if (!parse_filter(rule, item, filter))
			return false;
	}
	/* As a log has it. */
	if (*delay_of(rule) != '\0')
		snprintf(rule->text, sizeof(rule->text), "%s:%s@%s:%u", site, what, delay_of(rule),
				rule->delay);
	if ((rule->nth != 0) + (rule->every != 0) + (rule->share != RSOFT_CHAOS_ALWAYS) <= 1)
		return true;
	RSOFT_LOG(ERR, "chaos=: '%s': one of nth:, every: and p:", item);
	return false;
}

static int
add_rule(struct rsoft_chaos *chaos, const char *item)
{
	uint32_t n = chaos->nb_rules;
	struct rsoft_chaos_rule *rules = chaos->rules;
	char *copy;
	bool is_ok;

	if (n == PARSE_MAX_RULES) {
		RSOFT_LOG(ERR, "chaos=: '%s': more than %u rules", item, PARSE_MAX_RULES);
		return -EINVAL;
	}
	if ((n & (n - 1)) == 0) {
		rules = realloc(rules, (n == 0 ? 1 : 2 * (size_t)n) * sizeof(*rules));
		if (rules == NULL)
			return -ENOMEM;
		chaos->rules = rules;
	}
	copy = strdup(item);
	if (copy == NULL)
		return -ENOMEM;
	is_ok = parse_rule(&rules[n], item, copy, chaos->has_wire);
	free(copy);
	if (!is_ok)
		return -EINVAL;
	chaos->nb_rules++;
	return 0;
}

/* The value of "name:value", or NULL. */
static const char *
value_of(const char *item, const char *name)
{
	size_t length = strlen(name);

	return strncmp(item, name, length) == 0 && item[length] == ':' ? item + length + 1 : NULL;
}

static int
set_seed(struct rsoft_chaos *chaos, const char *value)
{
	if (parse_number(value, 0, &chaos->seed))
		return 0;
	RSOFT_LOG(ERR, "chaos=: 'seed:%s': not a number (0 to 2^64 - 1)", value);
	return -EINVAL;
}

static int
set_log(struct rsoft_chaos *chaos, const char *value)
{
	size_t length = strlen(value);

	if (length != 0 && length < sizeof(chaos->log) && chaos->log[0] == '\0') {
		memcpy(chaos->log, value, length + 1);
		return 0;
	}
	RSOFT_LOG(ERR, "chaos=: 'log:%s': not one path of 1 to %zu characters", value,
			sizeof(chaos->log) - 1);
	return -EINVAL;
}

static bool
is_of_packets(const char *item)
{
	static const char *const names[] = {"loss", "dup", "corrupt", "trunc", "reorder", "fatal"};
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++) {
		if (value_of(item, names[i]) != NULL)
			return true;
	}
	return false;
}

/* An item of fault=, which the wire checks. */
static int
add_packets(struct rsoft_chaos *chaos, const char *item)
{
	size_t used = strlen(chaos->packets), size = sizeof(chaos->packets) - used;

	if (!chaos->has_wire) {
		RSOFT_LOG(ERR, "chaos=: '%s': no packets without ip=", item);
		return -EINVAL;
	}
	/* The seed follows. */
	if ((size_t)snprintf(chaos->packets + used, size, "%s;", item) < size - 16)
		return 0;
	RSOFT_LOG(ERR, "chaos=: '%s': the items on packets have more than %zu characters", item,
			sizeof(chaos->packets) - 17);
	return -EINVAL;
}

/* An item that may be in a file, too. */
static int
parse_item(struct rsoft_chaos *chaos, const char *item)
{
	const char *value;

	if ((value = value_of(item, "seed")) != NULL)
		return set_seed(chaos, value);
	if ((value = value_of(item, "log")) != NULL)
		return set_log(chaos, value);
	return is_of_packets(item) ? add_packets(chaos, item) : add_rule(chaos, item);
}

/* Cut a comment, and spaces at both ends. */
static char *
trim(char *line)
{
	char *end;

	line[strcspn(line, "#\n")] = '\0';
	while (isspace((unsigned char)*line))
		line++;
	end = line + strlen(line);
	while (end != line && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return line;
}

/* A line of a log: time, then the rule that injects this fault alone. */
static char *
rule_of_log(char *line)
{
	char *rule = strchr(line, ' ');

	return rule == NULL ? line : rule + 1;
}

static int
file_failed(const char *path, bool is_log)
{
	RSOFT_LOG(ERR, "chaos=: '%s:%s': %s", is_log ? "replay" : "file", path, strerror(errno));
	return -EINVAL;
}

static int
parse_lines(struct rsoft_chaos *chaos, FILE *f, const char *path, bool is_log)
{
	char *line = NULL, *item;
	size_t size = 0;
	int ret = 0;

	while (ret == 0 && getline(&line, &size, f) >= 0) {
		item = trim(line);
		if (*item != '\0')
			ret = parse_item(chaos, is_log ? rule_of_log(item) : item);
	}
	free(line);
	if (ret != 0 || feof(f))
		return ret;
	return file_failed(path, is_log);
}

/* Whether the first line of a file is that of a log of this version. */
static int
check_log(FILE *f, const char *path)
{
	char line[80] = "";

	if (fgets(line, sizeof(line), f) != NULL && strcmp(line, RSOFT_CHAOS_LOG_HEAD "\n") == 0)
		return 0;
	line[strcspn(line, "\n")] = '\0';
	RSOFT_LOG(ERR, "chaos=: 'replay:%s': not a log of this version: '%s' (%s)", path, line,
			RSOFT_CHAOS_LOG_HEAD);
	return -EINVAL;
}

static int
parse_file(struct rsoft_chaos *chaos, const char *path, bool is_log)
{
	FILE *f = fopen(path, "re");
	int ret = 0;

	if (f == NULL)
		return file_failed(path, is_log);
	if (is_log)
		ret = check_log(f, path);
	if (ret == 0)
		ret = parse_lines(chaos, f, path, is_log);
	fclose(f);
	return ret;
}

int
rsoft_chaos_parse(struct rsoft_chaos *chaos, const char *text)
{
	char *copy = strdup(text), *item, *rest = copy;
	int ret = copy == NULL ? -ENOMEM : 0;
	const char *path;

	while (ret == 0 && (item = strsep(&rest, "+")) != NULL) {
		if ((path = value_of(item, "file")) != NULL)
			ret = parse_file(chaos, path, false);
		else if ((path = value_of(item, "replay")) != NULL)
			ret = parse_file(chaos, path, true);
		else
			ret = parse_item(chaos, item);
	}
	free(copy);
	return ret;
}
