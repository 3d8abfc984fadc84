/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The grammar of chaos=:
 *
 * ITEM{+ITEM}, ITEM: seed:N | log:FILE | file:FILE | replay:FILE | PACKETS | RULE
 * PACKETS: an item of fault=, such as loss:0.01
 * RULE: SITE:WHAT{@FILTER:VALUE}
 *
 * A file has one item per line; a # starts a comment.
 */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/rsoft_fault.h"
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

/* Value of "name:value", or NULL if the name differs. */
static const char *
value_of(const char *item, const char *name)
{
	size_t length = strlen(name);

	return strncmp(item, name, length) == 0 && item[length] == ':' ? item + length + 1 : NULL;
}

/* Filters; those that a rule accepts depend on its kind. */
enum filter {
	FILTER_NTH,
	FILTER_EVERY,
	FILTER_P,
	FILTER_AT,
	FILTER_TIMES,
	FILTER_QP,
	FILTER_CQ,
	FILTER_PORT,
	FILTER_THREAD,
	FILTER_NAKS,
	FILTER_POLLS,
	FILTER_MS,
	FILTER_REASON,
	FILTER_NB,
};

#define BIT(filter) (UINT32_C(1) << FILTER_##filter)

/* Filters that choose which events are hit: a rule has one of CHOICE at most. */
#define CHOICE (BIT(NTH) | BIT(EVERY) | BIT(P) | BIT(AT))
#define COMMON (BIT(NTH) | BIT(EVERY) | BIT(P) | BIT(TIMES))

static const char *const filter_names[FILTER_NB] = {"nth", "every", "p", "at", "times", "qp", "cq",
		"port", "thread", "naks", "polls", "ms", "reason"};

/* Filters of a rule of rdma_cm. The DREQ of cm_accept arrives as the next message, so it has no
 * MS. */
static uint32_t
filters_of_cm(const struct rsoft_chaos_rule *rule)
{
	if (rule->what == RSOFT_CHAOS_CM_WHAT(RMEM_RDMA_CM_ACCEPT, RMEM_RDMA_CM_DISCONNECTED))
		return COMMON;
	return COMMON | BIT(MS) | ((rule->what & 0xff) == RMEM_RDMA_CM_REJECT ? BIT(REASON) : 0);
}

/* Filters of a kind of rule. */
static uint32_t
filters_of(const struct rsoft_chaos_rule *rule)
{
	switch (rule->kind) {
	case RSOFT_CHAOS_CALL:
		return COMMON | BIT(THREAD);
	case RSOFT_CHAOS_LATE:
	case RSOFT_CHAOS_REORDER:
	case RSOFT_CHAOS_LATE_RECV:
		return COMMON | BIT(CQ) | BIT(POLLS);
	case RSOFT_CHAOS_RNR:
		return COMMON | BIT(QP) | BIT(NAKS);
	case RSOFT_CHAOS_RECV:
		return COMMON | BIT(QP);
	case RSOFT_CHAOS_PORT:
		return COMMON | BIT(AT) | (rule->what == RSOFT_CHAOS_FATAL ? 0 : BIT(MS)) |
				(rule->what == RSOFT_CHAOS_DOWN || rule->what == RSOFT_CHAOS_FREEZE
								? BIT(PORT)
								: 0);
	case RSOFT_CHAOS_CM:
		return filters_of_cm(rule);
	default:
		return COMMON | BIT(QP) | BIT(THREAD);
	}
}

/* Set the field of a filter. */
static bool
set_filter(struct rsoft_chaos_rule *rule, enum filter filter, const char *value)
{
	uint64_t number;

	if (filter == FILTER_P)
		return parse_share(value, &rule->share);
	if (!parse_number(value, 1, &number))
		return false;
	if (filter == FILTER_NTH)
		rule->nth = number;
	else if (filter == FILTER_EVERY)
		rule->every = number;
	else if (filter == FILTER_TIMES)
		rule->times = number;
	else if (number > UINT32_MAX)
		return false;
	else if (filter == FILTER_QP || filter == FILTER_CQ || filter == FILTER_PORT)
		rule->object = (uint32_t)number;
	else if (filter == FILTER_THREAD)
		rule->thread = (uint32_t)number;
	else if (filter == FILTER_AT)
		rule->at_ms = (uint32_t)number;
	else if (filter == FILTER_REASON)
		rule->reason = (uint32_t)number;
	else
		rule->delay = (uint32_t)number;
	return true;
}

/* Parse "name:value": the filter and its value, or FILTER_NB. */
static enum filter
find_filter(const char *text, const char **value)
{
	unsigned int i;

	for (i = 0; i < FILTER_NB && (*value = value_of(text, filter_names[i])) == NULL; i++)
		;
	return (enum filter)i;
}

static void
log_filter(const struct rsoft_chaos_rule *rule, const char *rule_text, const char *filter)
{
	uint32_t i, permitted = filters_of(rule);
	char list[96] = "";
	size_t used = 0;

	for (i = 0; i < FILTER_NB; i++) {
		if (i != FILTER_P && (permitted & UINT32_C(1) << i) != 0)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s:N, ",
					filter_names[i]);
	}
	RSOFT_LOG(ERR, "chaos=: '%s': '%s' is not %sN from 1 on, or p:P with P over 0, up to 1, each once",
			rule_text, filter, list);
}

/* Parse one filter of a rule; seen has the bits of previous filters. */
static bool
parse_filter(struct rsoft_chaos_rule *rule, const char *rule_text, const char *text, uint32_t *seen)
{
	const char *value;
	enum filter filter = find_filter(text, &value);
	uint32_t bit = UINT32_C(1) << filter;

	if (filter == FILTER_NB || (filters_of(rule) & bit & ~*seen) == 0 ||
			!set_filter(rule, filter, value)) {
		log_filter(rule, rule_text, text);
		return false;
	}
	*seen |= bit;
	if (filter == FILTER_REASON && !rsoft_chaos_is_reason(rule, value, rule->reason))
		return false;
	if (__builtin_popcount(*seen & CHOICE) <= 1)
		return true;
	RSOFT_LOG(ERR, "chaos=: '%s': one of nth:, every:, p: and at:", rule_text);
	return false;
}

/* Set the text that the log prints: all but the object and the number of the event. */
static void
set_text(struct rsoft_chaos_rule *rule, const char *site, const char *what)
{
	uint32_t filters = filters_of(rule);
	size_t used;
	unsigned int i;

	used = (size_t)snprintf(rule->text, sizeof(rule->text), "%s:%s", site, what);
	for (i = FILTER_NAKS; i <= FILTER_MS; i++) {
		if ((filters & UINT32_C(1) << i) != 0 && used < sizeof(rule->text))
			used += (size_t)snprintf(rule->text + used, sizeof(rule->text) - used,
					"@%s:%u", filter_names[i], rule->delay);
	}
	if (rule->kind == RSOFT_CHAOS_PORT && rule->object > 1 && used < sizeof(rule->text))
		used += (size_t)snprintf(rule->text + used, sizeof(rule->text) - used, "@port:%u",
				rule->object);
	if ((filters & BIT(REASON)) != 0 && used < sizeof(rule->text))
		used += (size_t)snprintf(rule->text + used, sizeof(rule->text) - used, "@reason:%u",
				rule->reason);
	if (rule->thread != 0 && used < sizeof(rule->text))
		snprintf(rule->text + used, sizeof(rule->text) - used, "@thread:%u", rule->thread);
}

/* Set the defaults of missing filters. */
static void
set_defaults(struct rsoft_chaos_rule *rule)
{
	uint32_t type = rule->what & 0xff;

	if (rule->kind == RSOFT_CHAOS_PORT) {
		rule->delay = RSOFT_CHAOS_PORT_MS;
		rule->object = rule->what != RSOFT_CHAOS_FATAL;
	}
	if (rule->kind != RSOFT_CHAOS_CM)
		return;
	if (type == RMEM_RDMA_CM_TIMEOUT)
		rule->delay = RSOFT_CHAOS_PORT_MS;
	else if ((filters_of_cm(rule) & BIT(MS)) == 0)
		rule->delay = 0;
	if (type == RMEM_RDMA_CM_REJECT)
		rule->reason = 28; /* consumer reject */
}

/* Parse a rule; changes the text in `copy`. */
static bool
parse_rule(struct rsoft_chaos_rule *rule, const char *item, char *copy, bool has_wire)
{
	char *filters = copy, *site = strsep(&filters, "@"), *what = site, *filter;
	uint32_t seen = 0;

	(void)strsep(&what, ":");
	if (what == NULL || *what == '\0' || *site == '\0') {
		RSOFT_LOG(ERR, "chaos=: '%s' is not SITE:WHAT with filters (@nth:N), seed:N, log:FILE, file:FILE or replay:FILE; see doc/chaos.md",
				item);
		return false;
	}
	*rule = (struct rsoft_chaos_rule){
			.times = UINT64_MAX, .share = RSOFT_CHAOS_ALWAYS, .delay = 1};
	if (!rsoft_chaos_find(rule, site, what, has_wire))
		return false;
	set_defaults(rule);
	while ((filter = strsep(&filters, "@")) != NULL) {
		if (!parse_filter(rule, item, filter, &seen))
			return false;
	}
	set_text(rule, site, what);
	return true;
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

static int
set_seed(struct rsoft_chaos *chaos, const char *value)
{
	bool is_first = !chaos->has_seed;

	chaos->has_seed = true;
	if (is_first && parse_number(value, 0, &chaos->seed))
		return 0;
	RSOFT_LOG(ERR, "chaos=: 'seed:%s': %s (0 to 2^64 - 1)", value,
			is_first ? "not a number" : "a second seed; one number");
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

/* Append an item of fault=; the wire checks it. */
static int
add_packets(struct rsoft_chaos *chaos, const char *item)
{
	size_t used = strlen(chaos->packets), size = sizeof(chaos->packets) - used;

	if (!chaos->has_wire) {
		RSOFT_LOG(ERR, "chaos=: '%s': no packets without ip=", item);
		return -EINVAL;
	}
	/* Leave space for the seed. */
	if ((size_t)snprintf(chaos->packets + used, size, "%s;", item) < size - 16)
		return 0;
	RSOFT_LOG(ERR, "chaos=: '%s': the items on packets have more than %zu characters", item,
			sizeof(chaos->packets) - 17);
	return -EINVAL;
}

/* Parse an item of the argument or of a file. */
static int
parse_item(struct rsoft_chaos *chaos, const char *item)
{
	const char *value;

	if ((value = value_of(item, "seed")) != NULL)
		return set_seed(chaos, value);
	if ((value = value_of(item, "log")) != NULL)
		return set_log(chaos, value);
	return rsoft_fault_of(item, &value) != RSOFT_FAULT_NB ? add_packets(chaos, item)
							      : add_rule(chaos, item);
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

/* Rule in a line of a log, after the time. */
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

/* Check that a file begins with the first line of a log of this version. */
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
