/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Attributes of the device and its only port; the operations of the driver. */

#ifndef RSOFT_ATTR_H
#define RSOFT_ATTR_H

#include "base/rsoft.h"

int rsoft_dev_attr_get(struct rmem_dev *dev, struct rmem_dev_attr *attr);
int rsoft_dev_gid_query(struct rmem_dev *dev, struct rmem_gid_entry *entry);
int rsoft_dev_pkey_query(struct rmem_dev *dev, uint32_t port_num, uint32_t index, uint16_t *pkey);
int rsoft_dev_port_query(struct rmem_dev *dev, uint32_t port_num, struct rmem_port_attr *attr);

#endif /* RSOFT_ATTR_H */
