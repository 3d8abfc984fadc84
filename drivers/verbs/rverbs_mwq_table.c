/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Windows of a device, by the index of their key; see rverbs_mwq.h. Indices have 24 bits and any
 * value, so pages of the table are allocated on demand. The locks are never freed, because a
 * request also reads the windows of its peer's device.
 */

#include <errno.h>
#include <stdlib.h>

#include "rverbs_mwq_table.h"

struct rverbs_mwq_table rverbs_mwq_tables[RMEM_MAX_DEVS];

int
rverbs_mwq_table_open(uint16_t dev_id)
{
	struct rverbs_mw ***pages = calloc(RVERBS_MWQ_PAGES, sizeof(*pages));

	if (pages == NULL) {
		RVERBS_LOG(ERR, "MW: no memory for the table");
		return -ENOMEM;
	}
	rverbs_mwq_lock(dev_id);
	TAILQ_INIT(&rverbs_mwq_tables[dev_id].list);
	rverbs_mwq_tables[dev_id].pages = pages;
	rverbs_mwq_unlock(dev_id);
	return 0;
}

void
rverbs_mwq_table_close(uint16_t dev_id)
{
	struct rverbs_mw ***pages;
	uint32_t i;

	rverbs_mwq_lock(dev_id);
	pages = rverbs_mwq_tables[dev_id].pages;
	rverbs_mwq_tables[dev_id].pages = NULL;
	rverbs_mwq_unlock(dev_id);
	for (i = 0; pages != NULL && i < RVERBS_MWQ_PAGES; i++)
		free(pages[i]);
	free(pages);
}

/* The entry of a key in the table, or NULL. */
static struct rverbs_mw **
mwq_place(uint16_t dev_id, uint32_t key, bool is_adding)
{
	struct rverbs_mw ***page = rverbs_mwq_tables[dev_id].pages;
	uint32_t index = key >> 8;

	if (page == NULL)
		return NULL;
	page += index / RVERBS_MWQ_SLOTS;
	if (*page == NULL && is_adding)
		*page = calloc(RVERBS_MWQ_SLOTS, sizeof(void *));
	return *page != NULL ? &(*page)[index % RVERBS_MWQ_SLOTS] : NULL;
}

int
rverbs_mwq_insert(struct rverbs_mw *mw)
{
	uint16_t dev_id = mw->mw.obj.dev_id;
	struct rverbs_mw **place;

	/* Requests identify type 2 windows by key, and type 1 windows only by handle. */
	if (mw->mw.type == RMEM_MW_TYPE_2) {
		place = mwq_place(dev_id, mw->ibv->rkey, true);
		if (place == NULL)
			return -ENOMEM;
		*place = mw;
	}
	TAILQ_INSERT_TAIL(&rverbs_mwq_tables[dev_id].list, mw, next);
	return 0;
}

void
rverbs_mwq_remove(struct rverbs_mw *mw)
{
	uint16_t dev_id = mw->mw.obj.dev_id;

	if (mw->mw.type == RMEM_MW_TYPE_2)
		*mwq_place(dev_id, mw->ibv->rkey, false) = NULL;
	TAILQ_REMOVE(&rverbs_mwq_tables[dev_id].list, mw, next);
}

struct rverbs_mw *
rverbs_mwq_first(uint16_t dev_id)
{
	return TAILQ_FIRST(&rverbs_mwq_tables[dev_id].list);
}
