/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * The registry of drivers: built-in drivers and drivers registered by the program.
 *
 * Entries are never removed, so a pointer to an entry is valid without a lock.
 */

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "rmem_drivers.h"
#include "rmem_priv.h"
#include "rmem_trace_priv.h"

#define DRIVERS_MAX     16
#define DRIVER_NAME_MAX 15

static struct rmem_driver drivers[DRIVERS_MAX];
static unsigned int nb_drivers;
static bool is_loaded; /* The drivers of the library are in the table. */
static pthread_mutex_t drivers_lock = PTHREAD_MUTEX_INITIALIZER;

static int
check_name(const char *name)
{
	size_t i;

	if (name == NULL)
		return RMEM_FAIL(EINVAL, "driver: NULL name");
	for (i = 0; isalpha((unsigned char)name[i]); i++)
		;
	if (i == 0 || i > DRIVER_NAME_MAX || name[i] != '\0')
		return RMEM_FAIL(EINVAL,
				"driver: name is not letters, or too long: \"%s\" (1 to %d)", name,
				DRIVER_NAME_MAX);
	return 0;
}

static int
check_sizes(const struct rmem_driver *driver)
{
	const struct {
		const char *what;
		size_t size;
		size_t min;
	} objs[] = {
			{"PD", driver->pd_size, sizeof(struct rmem_pd)},
			{"MR", driver->mr_size, sizeof(struct rmem_mr_drv)},
			{"MW", driver->mw_size,
					driver->ops.mw_alloc == NULL ? 0 : sizeof(struct rmem_mw)},
			{"page list", driver->page_list_size,
					sizeof(struct rmem_fast_reg_page_list)},
			{"CQ", driver->cq_size, sizeof(struct rmem_cq)},
			{"QP", driver->qp_size, sizeof(struct rmem_qp_drv)},
			{"SRQ", driver->srq_size,
					driver->ops.srq_create == NULL ? 0
								       : sizeof(struct rmem_srq)},
			{"AH", driver->ah_size,
					driver->ops.ah_create == NULL ? 0 : sizeof(struct rmem_ah)},
	};
	size_t i;

	for (i = 0; i < RTE_DIM(objs); i++) {
		if (objs[i].size < objs[i].min)
			return RMEM_FAIL(EINVAL, "driver %s: %s too small: %zu bytes (minimum %zu)",
					driver->name, objs[i].what, objs[i].size, objs[i].min);
	}
	return 0;
}

static bool
has_share(const struct rmem_qp_share_ops *share)
{
	const bool has_calls = share->qp_call != NULL;

	return share->qp_open != NULL && share->qp_leave != NULL &&
			(share->qp_close != NULL) == has_calls &&
			(share->qp_event != NULL) == has_calls;
}

static bool
has_xrc(const struct rmem_xrc_ops *xrc)
{
	if (xrc->share != NULL && !has_share(xrc->share))
		return false;
	return xrc->srq_num_get != NULL && xrc->xrcd_dealloc != NULL && xrc->xrcd_alloc != NULL &&
			xrc->xrcd_size >= sizeof(struct rmem_xrcd);
}

static bool
has_dm(const struct rmem_dm_ops *dm)
{
	return dm->dm_alloc != NULL && dm->dm_free != NULL && dm->dm_copy_to != NULL &&
			dm->dm_copy_from != NULL && dm->dm_export_fd != NULL &&
			dm->dm_size >= sizeof(struct rmem_dm);
}

static int
check_driver(const struct rmem_driver *driver)
{
	int ret = rmem_check_arg(driver, "driver");

	if (ret == 0 && driver->version != RMEM_DRIVER_VERSION)
		ret = RMEM_FAIL(EINVAL,
				"driver: wrong version of the driver interface: %u (expected %u)",
				driver->version, RMEM_DRIVER_VERSION);
	if (ret == 0)
		ret = rmem_check_reserved(driver->reserved, sizeof(driver->reserved));
	if (ret == 0)
		ret = rmem_check_reserved(driver->ops.reserved, sizeof(driver->ops.reserved));
	if (ret == 0)
		ret = rmem_check_reserved(driver->fp.reserved, sizeof(driver->fp.reserved));
	if (ret == 0)
		ret = check_name(driver->name);
	if (ret != 0)
		return ret;
	if (driver->ops.dev_create == NULL || driver->ops.dev_close == NULL ||
			driver->ops.dev_info_get == NULL || driver->fp.post_send == NULL ||
			driver->fp.post_recv == NULL || driver->fp.poll_cq == NULL)
		return RMEM_FAIL(EINVAL, "driver %s: lacks a required function", driver->name);
	if (driver->ops.xrc != NULL && !has_xrc(driver->ops.xrc))
		return RMEM_FAIL(EINVAL,
				"driver %s: XRC: lacks a function, or its domain is too small: %u bytes (minimum %zu)",
				driver->name, driver->ops.xrc->xrcd_size, sizeof(struct rmem_xrcd));
	if (driver->ops.dm != NULL && !has_dm(driver->ops.dm))
		return RMEM_FAIL(EINVAL,
				"driver %s: device memory: lacks a function, or its object is too small: %u bytes (minimum %zu)",
				driver->name, driver->ops.dm->dm_size, sizeof(struct rmem_dm));
	return check_sizes(driver);
}

static const struct rmem_driver *
find(const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < nb_drivers; i++) {
		if (strlen(drivers[i].name) == len && memcmp(drivers[i].name, name, len) == 0)
			return &drivers[i];
	}
	return NULL;
}

static int
add(const struct rmem_driver *driver)
{
	if (find(driver->name, strlen(driver->name)) != NULL)
		return RMEM_FAIL(EEXIST, "driver: name in use: %s", driver->name);
	if (nb_drivers == DRIVERS_MAX)
		return RMEM_FAIL(ENOSPC, "driver %s: table full (%d drivers)", driver->name,
				DRIVERS_MAX);
	drivers[nb_drivers] = *driver;
	rmem_ops_none_fill(&drivers[nb_drivers]);
	nb_drivers++;
	return 0;
}

/* Add the drivers of the library to the table, once; call with the lock held. */
static void
load_builtin(void)
{
	unsigned int i;

	if (is_loaded)
		return;
	is_loaded = true;
	for (i = 0; rmem_builtin_drivers[i] != NULL; i++) {
		if (check_driver(rmem_builtin_drivers[i]) == 0)
			add(rmem_builtin_drivers[i]);
	}
}

const struct rmem_driver *
rmem_driver_find(const char *name, size_t len)
{
	const struct rmem_driver *driver;

	pthread_mutex_lock(&drivers_lock);
	load_builtin();
	driver = find(name, len);
	pthread_mutex_unlock(&drivers_lock);
	return driver;
}

int
rmem_driver_register(const struct rmem_driver *driver)
{
	RMEM_CALL(driver);
	int ret;

	ret = check_driver(driver);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&drivers_lock);
	load_builtin();
	ret = add(driver);
	pthread_mutex_unlock(&drivers_lock);
	return ret;
}

void
rmem_wc_trace_error(uint16_t dev_id, uint32_t qp_num, uint64_t wr_id, uint8_t status,
		uint32_t vendor_err)
{
	rmem_trace_error_wc(rmem_devs[dev_id].drv.dev.name, qp_num, wr_id, status, vendor_err);
}
