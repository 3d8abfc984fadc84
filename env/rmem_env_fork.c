/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The devices of the parent, in a child of fork(). */

#include <unistd.h>

#include "../drivers/soft/base/rsoft.h"
#include "../drivers/soft/base/rsoft_fork.h"
#include "../drivers/soft/wire/rwire.h"
#include "../drivers/soft/wire/rwire_xrc.h"
#include "../drivers/soft/wire/rwire_xrc_qp.h"
#include "rmem_env.h"

void
rmem_env_fork_prepare(void)
{
	rsoft_fork_lock();
}

void
rmem_env_fork_parent(void)
{
	rsoft_fork_unlock();
}

void
rmem_env_forked(void)
{
	const struct rsoft_dev *dev;
	unsigned int i;

	rsoft_fork_unlock_child();
	for (i = 0; rsoft_domain != NULL && i < RMEM_MAX_DEVS; i++) {
		dev = rsoft_domain->dev[i];
		if (dev == NULL || dev->wire == NULL)
			continue;
		dev->wire->port->ops->close(dev->wire->port);
		rwire_xrc_forked(dev);
		rwire_xrc_qp_forked(dev);
		rwire_netif_close(dev->wire);
		rwire_control_close(dev->wire);
		if (dev->args.progress == RSOFT_PROGRESS_THREAD)
			close(dev->wire->wake_fd);
	}
}
