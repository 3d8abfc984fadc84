/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The functions of libibverbs that librmem_ibv.so defines. A file defines PASS() and the other
 * macros, and then includes this list (ribv_preload.c, ribv_names.c).
 */

#ifndef RIBV_PASS_H
#define RIBV_PASS_H

/* clang-format off */
PASS_LOAD(struct ibv_device **, ibv_get_device_list, LIST(int *n), LIST(n))
PASS_LOAD(struct ibv_context *, ibv_open_device, LIST(struct ibv_device *device), LIST(device))
PASS_LOAD(struct ibv_context *, ibv_import_device, LIST(int cmd_fd), LIST(cmd_fd))

PASS_VOID(ibv_free_device_list, LIST(struct ibv_device **list), LIST(list))
PASS(__be64, ibv_get_device_guid, LIST(struct ibv_device *device), LIST(device))
PASS(int, ibv_get_device_index, LIST(struct ibv_device *device), LIST(device))
PASS_ERR(ibv_close_device, LIST(struct ibv_context *context), LIST(context))
PASS_WAIT(int, ibv_get_async_event, LIST(struct ibv_context *context,
		struct ibv_async_event *event), LIST(context, event))
PASS_ERR(ibv_query_device, LIST(struct ibv_context *context, struct ibv_device_attr *attr),
		LIST(context, attr))
PASS_ERR(ibv_query_port, LIST(struct ibv_context *context, uint8_t port_num,
		struct _compat_ibv_port_attr *attr), LIST(context, port_num, attr))
PASS(int, ibv_query_gid, LIST(struct ibv_context *context, uint8_t port_num, int index,
		union ibv_gid *gid), LIST(context, port_num, index, gid))
PASS(int, ibv_query_gid_type, LIST(struct ibv_context *context, uint8_t port_num,
		unsigned int index, unsigned int *type), LIST(context, port_num, index, type))
PASS_ERR(_ibv_query_gid_ex, LIST(struct ibv_context *context, uint32_t port_num, uint32_t index,
		struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size),
		LIST(context, port_num, index, entry, flags, entry_size))
PASS(ssize_t, _ibv_query_gid_table, LIST(struct ibv_context *context,
		struct ibv_gid_entry *entries, size_t max_entries, uint32_t flags,
		size_t entry_size), LIST(context, entries, max_entries, flags, entry_size))
PASS(int, ibv_query_pkey, LIST(struct ibv_context *context, uint8_t port_num, int index,
		__be16 *pkey), LIST(context, port_num, index, pkey))
PASS(int, ibv_get_pkey_index, LIST(struct ibv_context *context, uint8_t port_num, __be16 pkey),
		LIST(context, port_num, pkey))

PASS(struct ibv_pd *, ibv_alloc_pd, LIST(struct ibv_context *context), LIST(context))
PASS_ERR(ibv_dealloc_pd, LIST(struct ibv_pd *pd), LIST(pd))
PASS(struct ibv_pd *, ibv_import_pd, LIST(struct ibv_context *context, uint32_t handle),
		LIST(context, handle))
PASS_VOID(ibv_unimport_pd, LIST(struct ibv_pd *pd), LIST(pd))
PASS(struct ibv_mr *, ibv_reg_mr, LIST(struct ibv_pd *pd, void *addr, size_t length, int access),
		LIST(pd, addr, length, access))
PASS(struct ibv_mr *, ibv_reg_mr_iova, LIST(struct ibv_pd *pd, void *addr, size_t length,
		uint64_t iova, int access), LIST(pd, addr, length, iova, access))
PASS(struct ibv_mr *, ibv_reg_mr_iova2, LIST(struct ibv_pd *pd, void *addr, size_t length,
		uint64_t iova, unsigned int access), LIST(pd, addr, length, iova, access))
PASS(struct ibv_mr *, ibv_reg_dmabuf_mr, LIST(struct ibv_pd *pd, uint64_t offset, size_t length,
		uint64_t iova, int fd, int access), LIST(pd, offset, length, iova, fd, access))
PASS(int, ibv_rereg_mr, LIST(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		size_t length, int access), LIST(mr, flags, pd, addr, length, access))
PASS_ERR(ibv_dereg_mr, LIST(struct ibv_mr *mr), LIST(mr))
PASS(struct ibv_mr *, ibv_import_mr, LIST(struct ibv_pd *pd, uint32_t handle), LIST(pd, handle))
PASS_VOID(ibv_unimport_mr, LIST(struct ibv_mr *mr), LIST(mr))
PASS(struct ibv_dm *, ibv_import_dm, LIST(struct ibv_context *context, uint32_t handle),
		LIST(context, handle))
PASS_VOID(ibv_unimport_dm, LIST(struct ibv_dm *dm), LIST(dm))

PASS(struct ibv_comp_channel *, ibv_create_comp_channel, LIST(struct ibv_context *context),
		LIST(context))
PASS_ERR(ibv_destroy_comp_channel, LIST(struct ibv_comp_channel *channel), LIST(channel))
PASS_WAIT(int, ibv_get_cq_event, LIST(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		void **cq_context), LIST(channel, cq, cq_context))
PASS(struct ibv_cq *, ibv_create_cq, LIST(struct ibv_context *context, int cqe, void *cq_context,
		struct ibv_comp_channel *channel, int comp_vector),
		LIST(context, cqe, cq_context, channel, comp_vector))
PASS_ERR(ibv_resize_cq, LIST(struct ibv_cq *cq, int cqe), LIST(cq, cqe))
PASS_ERR(ibv_destroy_cq, LIST(struct ibv_cq *cq), LIST(cq))
PASS_VOID(ibv_ack_async_event, LIST(struct ibv_async_event *event), LIST(event))
PASS_VOID(ibv_ack_cq_events, LIST(struct ibv_cq *cq, unsigned int n), LIST(cq, n))
PASS(struct ibv_srq *, ibv_create_srq, LIST(struct ibv_pd *pd, struct ibv_srq_init_attr *attr),
		LIST(pd, attr))
PASS_ERR(ibv_modify_srq, LIST(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask),
		LIST(srq, attr, mask))
PASS_ERR(ibv_query_srq, LIST(struct ibv_srq *srq, struct ibv_srq_attr *attr), LIST(srq, attr))
PASS_ERR(ibv_destroy_srq, LIST(struct ibv_srq *srq), LIST(srq))

PASS(struct ibv_qp *, ibv_create_qp, LIST(struct ibv_pd *pd, struct ibv_qp_init_attr *attr),
		LIST(pd, attr))
PASS(struct ibv_qp_ex *, ibv_qp_to_qp_ex, LIST(struct ibv_qp *qp), LIST(qp))
PASS_ERR(ibv_modify_qp, LIST(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask),
		LIST(qp, attr, mask))
PASS_ERR(ibv_query_qp, LIST(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		struct ibv_qp_init_attr *init), LIST(qp, attr, mask, init))
PASS(int, ibv_query_qp_data_in_order, LIST(struct ibv_qp *qp, enum ibv_wr_opcode op,
		uint32_t flags), LIST(qp, op, flags))
PASS_ERR(ibv_destroy_qp, LIST(struct ibv_qp *qp), LIST(qp))
PASS_ERR(ibv_query_ece, LIST(struct ibv_qp *qp, struct ibv_ece *ece), LIST(qp, ece))
PASS_ERR(ibv_set_ece, LIST(struct ibv_qp *qp, struct ibv_ece *ece), LIST(qp, ece))
PASS_ERR(ibv_attach_mcast, LIST(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),
		LIST(qp, gid, lid))
PASS_ERR(ibv_detach_mcast, LIST(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),
		LIST(qp, gid, lid))

PASS(struct ibv_ah *, ibv_create_ah, LIST(struct ibv_pd *pd, struct ibv_ah_attr *attr),
		LIST(pd, attr))
PASS(struct ibv_ah *, ibv_create_ah_from_wc, LIST(struct ibv_pd *pd, struct ibv_wc *wc,
		struct ibv_grh *grh, uint8_t port_num), LIST(pd, wc, grh, port_num))
PASS(int, ibv_init_ah_from_wc, LIST(struct ibv_context *context, uint8_t port_num,
		struct ibv_wc *wc, struct ibv_grh *grh, struct ibv_ah_attr *attr),
		LIST(context, port_num, wc, grh, attr))
PASS_ERR(ibv_destroy_ah, LIST(struct ibv_ah *ah), LIST(ah))
PASS_ERR(ibv_resolve_eth_l2_from_gid, LIST(struct ibv_context *context,
		struct ibv_ah_attr *attr, uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid),
		LIST(context, attr, mac, vid))

/* In headers after rdma-core 56. */
#ifdef RIBV_HAS_REG_MR_EX
PASS(struct ibv_mr *, ibv_reg_mr_ex, LIST(struct ibv_pd *pd, struct ibv_mr_init_attr *attr),
		LIST(pd, attr))
PASS(struct ibv_dmah *, ibv_alloc_dmah, LIST(struct ibv_context *context,
		struct ibv_dmah_init_attr *attr), LIST(context, attr))
PASS_ERR(ibv_dealloc_dmah, LIST(struct ibv_dmah *dmah), LIST(dmah))
#endif
#ifdef RIBV_HAS_DM_EXPORT
PASS(int, ibv_dm_export_dmabuf_fd, LIST(struct ibv_dm *dm), LIST(dm))
#endif
#ifdef RIBV_HAS_PORT_SPEED
PASS_ERR(ibv_query_port_speed, LIST(struct ibv_context *context, uint32_t port_num,
		uint64_t *port_speed), LIST(context, port_num, port_speed))
#endif
#ifdef RIBV_HAS_ALLOC_BUF
PASS(void *, ibv_alloc_buf, LIST(struct ibv_pd *pd, size_t size, struct ibv_buf **buf),
		LIST(pd, size, buf))
PASS_VOID(ibv_free_buf, LIST(struct ibv_buf *buf), LIST(buf))
PASS(struct ibv_mr *, ibv_reg_buf_mr, LIST(struct ibv_pd *pd, struct ibv_buf *buf, void *addr,
		size_t length, int access), LIST(pd, buf, addr, length, access))
#endif
#ifdef RIBV_HAS_COMP_CNTR
PASS(int, ibv_export_buf_dmabuf_fd, LIST(struct ibv_buf *buf), LIST(buf))
PASS_ERR(_ibv_query_comp_cntr_caps, LIST(struct ibv_context *context,
		struct ibv_comp_cntr_caps *caps, size_t caps_size), LIST(context, caps, caps_size))
PASS(struct ibv_comp_cntr *, ibv_create_comp_cntr, LIST(struct ibv_context *context,
		struct ibv_comp_cntr_init_attr *cc_attr), LIST(context, cc_attr))
PASS_ERR(ibv_destroy_comp_cntr, LIST(struct ibv_comp_cntr *comp_cntr), LIST(comp_cntr))
PASS_ERR(ibv_set_comp_cntr, LIST(struct ibv_comp_cntr *comp_cntr, uint64_t value),
		LIST(comp_cntr, value))
PASS_ERR(ibv_set_err_comp_cntr, LIST(struct ibv_comp_cntr *comp_cntr, uint64_t value),
		LIST(comp_cntr, value))
PASS_ERR(ibv_inc_comp_cntr, LIST(struct ibv_comp_cntr *comp_cntr, uint64_t amount),
		LIST(comp_cntr, amount))
PASS_ERR(ibv_inc_err_comp_cntr, LIST(struct ibv_comp_cntr *comp_cntr, uint64_t amount),
		LIST(comp_cntr, amount))
PASS_ERR(ibv_read_comp_cntr, LIST(struct ibv_comp_cntr *comp_cntr, uint64_t *value),
		LIST(comp_cntr, value))
PASS_ERR(ibv_read_err_comp_cntr, LIST(struct ibv_comp_cntr *comp_cntr, uint64_t *value),
		LIST(comp_cntr, value))
PASS_ERR(ibv_qp_attach_comp_cntr, LIST(struct ibv_qp *qp, struct ibv_comp_cntr *comp_cntr,
		struct ibv_qp_attach_comp_cntr_attr *attr), LIST(qp, comp_cntr, attr))
#endif
/* clang-format on */

#endif /* RIBV_PASS_H */
