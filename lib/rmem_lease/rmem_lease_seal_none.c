/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Sealed descriptors without libcrypto. */

#include <rmem_lease_desc.h>

#include "rmem_lease_priv.h"

int
rmem_lease_sealer_create(const uint8_t *key, struct rmem_lease_sealer **sealer)
{
	if (key == NULL || sealer == NULL)
		return -EINVAL;
	return LEASE_FAIL(EOPNOTSUPP, "sealer: not supported (built without libcrypto)");
}

void
rmem_lease_sealer_destroy(struct rmem_lease_sealer *sealer)
{
	RTE_SET_USED(sealer);
}

int
rmem_lease_seal(struct rmem_lease_sealer *sealer, const struct rmem_lease_desc *desc,
		const void *with, size_t with_size, void *buf, size_t size)
{
	RTE_SET_USED(sealer);
	RTE_SET_USED(desc);
	RTE_SET_USED(with);
	RTE_SET_USED(with_size);
	RTE_SET_USED(buf);
	RTE_SET_USED(size);
	return -EOPNOTSUPP;
}

int
rmem_lease_unseal(struct rmem_lease_sealer *sealer, const void *buf, size_t size, const void *with,
		size_t with_size, struct rmem_lease_desc *desc, struct rmem_lease_seal_info *info,
		uint32_t *part)
{
	RTE_SET_USED(sealer);
	RTE_SET_USED(buf);
	RTE_SET_USED(size);
	RTE_SET_USED(with);
	RTE_SET_USED(with_size);
	RTE_SET_USED(desc);
	RTE_SET_USED(info);
	if (part != NULL)
		*part = RMEM_LEASE_DESC_PART_NONE;
	return -EOPNOTSUPP;
}
