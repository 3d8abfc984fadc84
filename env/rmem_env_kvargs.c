/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Arguments "key=value,key=value"; a comma within [] is part of a value. */

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_kvargs.h>

/* The end of a pair. */
static char *
pair_end(char *at)
{
	int depth = 0;

	for (; *at != '\0' && (*at != ',' || depth > 0); at++) {
		if (*at == '[')
			depth++;
		else if (*at == ']')
			depth--;
	}
	return at;
}

/* Split the copy of the arguments; -1: not of that form. */
static int
split(struct rte_kvargs *list)
{
	struct rte_kvargs_pair *pair;
	char *at = list->str, *end, *equal;

	for (; *at != '\0'; at = end) {
		end = pair_end(at);
		if (*end != '\0')
			*end++ = '\0';
		if (*at == '\0')
			continue;
		if (*at == '=' || list->count == RTE_DIM(list->pairs))
			return -1;
		pair = &list->pairs[list->count++];
		pair->key = at;
		equal = strchr(at, '=');
		pair->value = equal != NULL ? equal + 1 : NULL;
		if (equal != NULL)
			*equal = '\0';
	}
	return 0;
}

void
rte_kvargs_free(struct rte_kvargs *kvlist)
{
	if (kvlist != NULL)
		free(kvlist->str);
	free(kvlist);
}

struct rte_kvargs *
rte_kvargs_parse(const char *args, const char *const valid_keys[])
{
	struct rte_kvargs *list = calloc(1, sizeof(*list));

	RTE_SET_USED(valid_keys); /* the class has tables of its own */
	if (list == NULL)
		return NULL;
	list->str = strdup(args);
	if (list->str != NULL && split(list) == 0)
		return list;
	rte_kvargs_free(list);
	return NULL;
}

unsigned int
rte_kvargs_count(const struct rte_kvargs *kvlist, const char *key_match)
{
	unsigned int i, nb = 0;

	for (i = 0; i < kvlist->count; i++)
		nb += key_match == NULL || strcmp(kvlist->pairs[i].key, key_match) == 0;
	return nb;
}
