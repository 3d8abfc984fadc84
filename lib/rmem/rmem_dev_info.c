/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Queries of a device: capabilities, limits, objects in use, and counters.
 */

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "rmem_mp_priv.h"
#include "rmem_priv.h"

/* Check the device and the pointer for the result. */
static int
check_get(const struct rmem_dev *dev, const void *out)
{
	int ret = rmem_obj_check(dev, RMEM_OBJ_DEV);

	return ret != 0 ? ret : rmem_check_arg(out, "result");
}

void
rmem_dev_info_fill(const struct rmem_dev *dev, struct rmem_dev_info *info)
{
	*info = *rmem_obj_info(&dev->obj);
	rmem_obj_counts_get(dev, info);
}

int
rmem_dev_info_get(const struct rmem_dev *dev, struct rmem_dev_info *info)
{
	RMEM_CALL(dev);
	int ret = rmem_mp_is_attached(dev) ? rmem_check_arg(info, "result") : check_get(dev, info);

	if (ret == 0)
		rmem_dev_info_fill(dev, info);
	return ret;
}

int
rmem_dev_stats_get(const struct rmem_dev *dev, struct rmem_dev_stats *stats)
{
	RMEM_CALL(dev);
	struct rmem_dev_stats tmp;
	int ret;

	ret = check_get(dev, stats);
	if (ret != 0)
		return ret;
	memset(&tmp, 0, sizeof(tmp));
	ret = RMEM_OP(dev, dev_stats_get, rmem_obj_dev(&dev->obj), &tmp);
	if (ret == 0)
		*stats = tmp;
	return ret;
}

int
rmem_dev_stats_reset(struct rmem_dev *dev)
{
	RMEM_CALL(dev);
	int ret = rmem_obj_check(dev, RMEM_OBJ_DEV);

	return ret != 0 ? ret : RMEM_OP(dev, dev_stats_reset, dev);
}

#define STAT(name)                                                                                 \
	{                                                                                          \
#name, offsetof(struct rmem_dev_stats, name)                                       \
	}

const struct rmem_dev_stat_name rmem_dev_stats_names[] = {
		STAT(send_wrs),
		STAT(recv_wrs),
		STAT(bytes),
		STAT(reg_mrs),
		STAT(invalidates),
		STAT(errors),
		STAT(flushed),
		STAT(local_prot_errors),
		STAT(rem_access_errors),
		STAT(rnr_retries),
		STAT(queued),
		STAT(grace_waits),
		STAT(inline_recvs),
		STAT(mw_binds),
		STAT(umrs),
		STAT(odp_page_faults),
		STAT(odp_invalidations),
		STAT(odp_prefetches),
		STAT(odp_pages),
		STAT(odp_failed_faults),
		STAT(bad_rkeys),
		STAT(mem_faults),
		STAT(wire_tx_packets),
		STAT(wire_tx_bytes),
		STAT(wire_tx_drops),
		STAT(wire_rx_packets),
		STAT(wire_rx_bytes),
		STAT(wire_retransmits),
		STAT(wire_timeouts),
		STAT(wire_duplicates),
		STAT(wire_gaps),
		STAT(wire_naks_sent),
		STAT(wire_naks_received),
		STAT(wire_rnr_naks_sent),
		STAT(wire_malformed),
		STAT(wire_icrc_errors),
		STAT(wire_unknown_qps),
		STAT(wire_wrong_peers),
		STAT(wire_busy_drops),
		STAT(drop_no_recv),
		STAT(drop_length),
		STAT(drop_access),
		STAT(drop_no_peer),
		STAT(drop_qkey),
		STAT(wire_ecn_marked),
		STAT(wire_cnps_sent),
		STAT(wire_cnps_received),
};
const size_t rmem_nb_dev_stats = RTE_DIM(rmem_dev_stats_names);

static_assert(offsetof(struct rmem_dev_stats, reserved) ==
				sizeof(uint64_t) * RTE_DIM(rmem_dev_stats_names),
		"each counter has its name");

static void
dump_stats(const struct rmem_dev_stats *stats, FILE *f)
{
	size_t i;

	for (i = 0; i < rmem_nb_dev_stats; i++)
		fprintf(f, "  %s: %" PRIu64 "\n", rmem_dev_stats_names[i].name,
				rmem_dev_stat(stats, &rmem_dev_stats_names[i]));
}

int
rmem_dev_dump(const struct rmem_dev *dev, FILE *f)
{
	RMEM_CALL(dev);
	struct rmem_dev_stats stats;
	struct rmem_dev_info info;
	int ret;

	ret = check_get(dev, f);
	if (ret != 0)
		return ret;
	rmem_dev_info_fill(dev, &info);
	fprintf(f, "device %s: driver %s, socket %d, capabilities 0x%" PRIx64 "\n", dev->name,
			info.driver_name, dev->socket_id, info.capa);
	fprintf(f, "  PDs: %u of %u\n", info.nb_pd, info.max_pd);
	fprintf(f, "  MRs: %u of %u, up to %" PRIu64 " bytes, up to %u pages, access 0x%x\n",
			info.nb_mr, info.max_mr, info.max_mr_size, info.max_page_list_len,
			info.access);
	fprintf(f, "  MWs: %u of %u\n", info.nb_mw, info.max_mw);
	fprintf(f, "  CQs: %u of %u, up to %u completions\n", info.nb_cq, info.max_cq,
			info.max_cqe);
	fprintf(f, "  SRQs: %u of %u, up to %u receives of %u SGEs\n", info.nb_srq, info.max_srq,
			info.max_srq_wr, info.max_srq_sge);
	fprintf(f, "  device memory: %u of %u, up to %" PRIu64 " bytes\n", info.nb_dm, info.max_dm,
			info.max_dm_size);
	fprintf(f, "  QPs: %u of %u, up to %u sends of %u SGEs and %u receives of %u SGEs\n",
			info.nb_qp, info.max_qp, info.max_send_wr, info.max_send_sge,
			info.max_recv_wr, info.max_recv_sge);
	fprintf(f, "  messages: up to %" PRIu64 " bytes, %u inline\n", info.max_msg_size,
			info.max_inline_data);
	memset(&stats, 0, sizeof(stats));
	if (rmem_obj_driver(&dev->obj)->ops.dev_stats_get(rmem_obj_dev(&dev->obj), &stats) == 0)
		dump_stats(&stats, f);
	return RMEM_OP(dev, dev_dump, rmem_obj_dev(&dev->obj), f);
}
