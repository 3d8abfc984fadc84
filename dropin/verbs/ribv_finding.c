/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Reports of findings: on stderr and, as selected by the items of RMEM_IBV_SANITIZE, as lines of
 * JSON, filtered by suppressions, or ending the process.
 *
 * Invariant: the items are read before the first device is created, and are constant afterwards.
 */

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "ribv_finding.h"

#define MAX_RULES 256
#define ANY       RIBV_NB_KINDS

static const char *const kinds[] = {
		[RIBV_FOUND_CHANGED] = "changed",
		[RIBV_FOUND_DEAD] = "dead",
		[RIBV_FOUND_DEREG] = "dereg",
		[RIBV_FOUND_EVENT] = "event",
		[RIBV_FOUND_FREED] = "freed",
		[RIBV_FOUND_FULL] = "full",
		[RIBV_FOUND_KEY] = "key",
		[RIBV_FOUND_LEAK] = "leak",
		[RIBV_FOUND_POISON] = "poison",
		[RIBV_FOUND_RECV_OVERLAP] = "recv_overlap",
		[RIBV_FOUND_RECV_WRITTEN] = "recv_written",
		[RIBV_FOUND_THREADS] = "threads",
		[RIBV_FOUND_UNMAPPED] = "unmapped",
		[RIBV_FOUND_UNPOLLED] = "unpolled",
		[RIBV_FOUND_WRITE_OVERLAP] = "write_overlap",
		[ANY] = "any",
};

static struct {
	uint32_t kind;
	char *pattern; /* for fnmatch() */
} rules[MAX_RULES];
static uint32_t nb_rules;
static char *json; /* path, or NULL */
static bool is_aborting, has_items, has_poison;
static char reason[1024];

static const char *
wrong(const char *item, const char *what)
{
	snprintf(reason, sizeof(reason), "%s: %s", item, what);
	return reason;
}

/* Parse a line of suppressions, KIND:PATTERN; return an error text, or NULL. */
static const char *
add_rule(const char *item, unsigned int number, char *line)
{
	char *pattern = strchr(line, ':');
	size_t len;
	uint32_t i;

	if (pattern == NULL || pattern[1] == '\0') {
		snprintf(reason, sizeof(reason), "%s: line %u, \"%s\", is not KIND:PATTERN", item,
				number, line);
		return reason;
	}
	*pattern++ = '\0';
	for (i = 0; i < RTE_DIM(kinds) && strcmp(kinds[i], line) != 0; i++)
		;
	if (i == RTE_DIM(kinds)) {
		len = (size_t)snprintf(reason, sizeof(reason),
				"%s: line %u: unknown kind %s; allowed are", item, number, line);
		for (i = 0; i < RTE_DIM(kinds) && len < sizeof(reason); i++)
			len += (size_t)snprintf(reason + len, sizeof(reason) - len, "%s %s",
					i == 0 ? "" : ",", kinds[i]);
		return reason;
	}
	if (nb_rules == MAX_RULES)
		return wrong(item, "more than 256 lines");
	rules[nb_rules].kind = i;
	if (asprintf(&rules[nb_rules].pattern, "*%s*", pattern) < 0)
		return wrong(item, strerror(ENOMEM));
	nb_rules++;
	return NULL;
}

static const char *
read_rules(const char *item, const char *path)
{
	FILE *file = fopen(path, "re");
	const char *what = NULL;
	unsigned int number = 0;
	char *line = NULL;
	size_t size = 0;

	if (file == NULL)
		return wrong(item, strerror(errno));
	while (what == NULL && getline(&line, &size, file) >= 0) {
		number++;
		line[strcspn(line, "#\r\n")] = '\0';
		while (line[0] != '\0' && strchr(" \t", line[strlen(line) - 1]) != NULL)
			line[strlen(line) - 1] = '\0';
		if (line[0] != '\0')
			what = add_rule(item, number, line);
	}
	if (what == NULL && ferror(file))
		what = wrong(item, strerror(errno));
	free(line);
	fclose(file);
	return what;
}

/* Append a line with one write(), because processes share the file; false with errno set. */
static bool
json_append(const char *text, size_t len)
{
	int fd = open(json, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	bool is_written = fd >= 0 && write(fd, text, len) == (ssize_t)len;

	if (fd >= 0)
		close(fd);
	return is_written;
}

static const char *
read_item(char *item)
{
	if (strcmp(item, "abort") == 0) {
		is_aborting = true;
	} else if (strcmp(item, "poison") == 0) {
		has_poison = true;
	} else if (strncmp(item, "json:", 5) == 0 && item[5] != '\0') {
		free(json);
		json = strdup(item + 5);
		if (json == NULL || !json_append("", 0))
			return wrong(item, strerror(errno));
	} else if (strncmp(item, "suppress:", 9) == 0 && item[9] != '\0') {
		return read_rules(item, item + 9);
	} else {
		return wrong(item,
				"unknown item; allowed are abort, poison, json:FILE, suppress:FILE");
	}
	return NULL;
}

const char *
ribv_finding_start(void)
{
	const char *env = getenv("RMEM_IBV_SANITIZE"), *what = NULL;
	char *list, *item, *rest;

	if (env == NULL || env[0] == '\0')
		return NULL;
	has_items = true;
	list = strdup(env);
	if (list == NULL)
		return strerror(ENOMEM);
	for (item = strtok_r(list, "+", &rest); item != NULL && what == NULL;
			item = strtok_r(NULL, "+", &rest))
		what = read_item(item);
	free(list);
	return what;
}

bool
ribv_finding_has_poison(void)
{
	return has_poison;
}

static bool
matches(const char *pattern, const char *text)
{
	return text != NULL && fnmatch(pattern, text, 0) == 0;
}

/* Whether a rule matches a report: its text, or function, file or module of a call. */
static bool
covers(const char *pattern, const char *what, const struct ribv_calls *calls)
{
	const struct ribv_call *call;

	for (call = calls->calls; call < calls->calls + calls->n; call++) {
		if (matches(pattern, call->function) || matches(pattern, call->source) ||
				matches(pattern, call->module))
			return true;
	}
	return matches(pattern, what);
}

static bool
is_suppressed(const struct ribv_finding *finding, const struct ribv_calls *calls)
{
	uint32_t i;

	for (i = 0; i < nb_rules; i++) {
		if ((rules[i].kind == ANY || rules[i].kind == finding->kind) &&
				covers(rules[i].pattern, finding->what, calls))
			return true;
	}
	return false;
}

static void
json_string(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(to, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(to, "\\u%04x", (unsigned int)*text);
		else
			fputc(*text, to);
	}
	fputc('"', to);
}

static void
json_calls(FILE *to, const char *key, const struct ribv_calls *calls)
{
	const struct ribv_call *call;

	fprintf(to, ",\"%s\":[", key);
	for (call = calls->calls; call < calls->calls + calls->n; call++) {
		fprintf(to, "%s{\"address\":\"%#lx\"", call != calls->calls ? "," : "",
				(unsigned long)call->at);
		if (call->module != NULL) {
			fprintf(to, ",\"module\":");
			json_string(to, call->module);
		}
		if (call->function != NULL) {
			fprintf(to, ",\"function\":");
			json_string(to, call->function);
		}
		if (call->source != NULL) {
			fprintf(to, ",\"file\":");
			json_string(to, call->source);
			fprintf(to, ",\"line\":%lu", call->line);
		}
		fputc('}', to);
	}
	fputc(']', to);
}

/* Age of an event in microseconds; 0 if there is none. */
static double
us_ago(const struct ribv_event *event)
{
	return event == NULL ? 0
			     : (double)(rte_rdtsc() - event->tsc) * 1e6 / (double)rte_get_tsc_hz();
}

static void
print_event(FILE *to, const char *how, const struct ribv_event *event, double ago)
{
	const char *unit = "us";

	if (ago >= 1e6) {
		ago /= 1e6;
		unit = "s";
	} else if (ago >= 1e3) {
		ago /= 1e3;
		unit = "ms";
	}
	fprintf(to, "; %s %.1f %s ago by thread %d", how, ago, unit, (int)event->thread);
}

static void
report_json(const struct ribv_finding *finding, const struct ribv_calls *calls,
		const struct ribv_calls *finder, double ago)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (to == NULL)
		return;
	fprintf(to, "{\"kind\":\"%s\",\"process\":%d,\"program\":", kinds[finding->kind],
			(int)getpid());
	json_string(to, program_invocation_short_name);
	fprintf(to, ",\"what\":");
	json_string(to, finding->what);
	if (finding->event != NULL) {
		fprintf(to, ",\"how\":\"%s\",\"us_ago\":%.1f,\"thread\":%d", finding->how, ago,
				(int)finding->event->thread);
		json_calls(to, "calls", calls);
	}
	if (finding->has_finder) {
		fprintf(to, ",\"found_by_thread\":%d", (int)ribv_thread());
		json_calls(to, "found_by", finder);
	}
	fprintf(to, "}\n");
	if (fclose(to) == 0 && !json_append(text, len))
		fprintf(stderr, "rmem_ibv: sanitize: json:%s: %s\n", json, strerror(errno));
	free(text);
}

/* Print with one write(), so that the report is in one piece. */
static void
report_text(const struct ribv_finding *finding, const struct ribv_calls *calls,
		const struct ribv_calls *finder, double ago)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (to == NULL)
		return;
	fprintf(to, "rmem_ibv: sanitize: process %d: %s", (int)getpid(), finding->what);
	if (finding->event != NULL)
		print_event(to, finding->how, finding->event, ago);
	fputc('\n', to);
	ribv_calls_print(to, calls);
	if (finding->has_finder) {
		fprintf(to, "  found by thread %d\n", (int)ribv_thread());
		ribv_calls_print(to, finder);
	}
	if (fclose(to) == 0)
		fwrite(text, 1, len, stderr);
	free(text);
}

static void
end(void)
{
	if (!is_aborting)
		return;
	fflush(stderr);
	abort();
}

static void
report(const struct ribv_finding *finding, struct ribv_calls calls[2], const char *line)
{
	const double ago = us_ago(finding->event); /* before the slow lookup of calls */
	struct ribv_event now;

	calls[0].n = calls[1].n = 0;
	if (finding->event != NULL)
		ribv_calls_find(&calls[0], &finding->event->stack);
	if (finding->has_finder) {
		ribv_event_now(&now);
		ribv_calls_find(&calls[1], &now.stack);
	}
	if (!is_suppressed(finding, &calls[0]) && !is_suppressed(finding, &calls[1])) {
		if (line != NULL)
			fprintf(stderr, "%s\n", line);
		else
			report_text(finding, &calls[0], &calls[1], ago);
		if (json != NULL)
			report_json(finding, &calls[0], &calls[1], ago);
		end();
	}
	ribv_calls_free(&calls[0]);
	ribv_calls_free(&calls[1]);
}

void
ribv_find(const struct ribv_finding *finding)
{
	struct ribv_calls *calls = malloc(2 * sizeof(*calls));
	int state;

	/* Posts and polls, which report under locks, are not cancellation points. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (calls != NULL)
		report(finding, calls, NULL);
	pthread_setcancelstate(state, NULL);
	free(calls);
}

/* Report a log line of the device; print it only, if it is not a finding. */
static void
log_line(const char *line)
{
	const char *what = strstr(line, "sanitize: ");
	struct ribv_finding finding = {.kind = RIBV_NB_KINDS, .what = what, .has_finder = true};
	struct ribv_calls *calls = NULL;

	if (what != NULL && strstr(what, " failed: key 0x") != NULL)
		finding.kind = RIBV_FOUND_KEY;
	else if (what != NULL && strstr(what, "(found ") != NULL)
		finding.kind = RIBV_FOUND_THREADS;
	if (finding.kind != RIBV_NB_KINDS)
		calls = malloc(2 * sizeof(*calls));
	if (calls == NULL) {
		fprintf(stderr, "%s\n", line);
		return;
	}
	finding.what += strlen("sanitize: ");
	report(&finding, calls, line);
	free(calls);
}

static ssize_t
log_write(void *cookie, const char *text, size_t size)
{
	const char *at = text, *end_of, *next;
	char *line;
	int state;

	RTE_SET_USED(cookie);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); /* as in ribv_find() */
	for (; at < text + size; at = next) {
		end_of = memchr(at, '\n', (size_t)(text + size - at));
		next = end_of != NULL ? end_of + 1 : text + size;
		line = strndup(at, (size_t)((end_of != NULL ? end_of : next) - at));
		if (line != NULL)
			log_line(line);
		free(line);
	}
	pthread_setcancelstate(state, NULL);
	return (ssize_t)size;
}

FILE *
ribv_finding_log(void)
{
	const cookie_io_functions_t functions = {.write = log_write};

	return has_items ? fopencookie(NULL, "w", functions) : NULL;
}
