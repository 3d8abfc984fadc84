/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Segments in a treap; see rsoft_segs.h. */

#include <stdlib.h>

#include "../base/rsoft_ids.h"
#include "rsoft_segs.h"

struct rsoft_seg *
rsoft_segs_find(struct rsoft_seg *root, uintptr_t at)
{
	struct rsoft_seg *found = NULL;

	while (root != NULL) {
		if (root->end > at) {
			found = root;
			root = root->left;
		} else {
			root = root->right;
		}
	}
	return found;
}

/* Split a tree at an address. */
static void
segs_part(struct rsoft_seg *root, uintptr_t at, struct rsoft_seg **below, struct rsoft_seg **others)
{
	while (root != NULL) {
		if (root->first < at) {
			*below = root;
			below = &root->right;
			root = root->right;
		} else {
			*others = root;
			others = &root->left;
			root = root->left;
		}
	}
	*below = NULL;
	*others = NULL;
}

/* Join two trees into one at *to; all of the first are below the second's. */
static void
segs_join(struct rsoft_seg **to, struct rsoft_seg *first, struct rsoft_seg *second)
{
	while (first != NULL && second != NULL) {
		if (first->priority > second->priority) {
			*to = first;
			to = &first->right;
			first = first->right;
		} else {
			*to = second;
			to = &second->left;
			second = second->left;
		}
	}
	*to = first != NULL ? first : second;
}

struct rsoft_seg *
rsoft_segs_add(struct rsoft_seg **root, uintptr_t first, uintptr_t end)
{
	struct rsoft_seg *seg = calloc(1, sizeof(*seg));

	if (seg == NULL)
		return NULL;
	seg->first = first;
	seg->end = end;
	seg->priority = rsoft_random();
	while (*root != NULL && (*root)->priority >= seg->priority)
		root = (*root)->first < first ? &(*root)->right : &(*root)->left;
	segs_part(*root, first, &seg->left, &seg->right);
	*root = seg;
	return seg;
}

void
rsoft_segs_remove(struct rsoft_seg **root, struct rsoft_seg *seg)
{
	while (*root != seg)
		root = (*root)->first < seg->first ? &(*root)->right : &(*root)->left;
	segs_join(root, seg->left, seg->right);
	free(seg);
}
