/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* Memory regions: registered by call, or bound by REG_MR and UMR requests. */

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "rsoft_dm.h"
#include "rsoft_grace.h"
#include "rsoft_key_table.h"
#include "rsoft_list.h"
#include "rsoft_mr.h"
#include "rsoft_odp.h"
#include "rsoft_pin.h"
#include "../base/rsoft_profile.h"

/*
 * Populate all pages of a range for the access, as pinning does. If the kernel can't populate them,
 * check at least that the range is mapped.
 */
static int
mr_check_range(const struct iovec *range, bool is_write, bool is_fd)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char resident;
	uintptr_t at, end;
	int error = 0;

	if (range->iov_len == 0)
		return 0;
	rmem_pages_of(range, &at, &end);
	if (rmem_pages_can_populate()) {
		error = rmem_pages_populate(at, end, is_write);
		/*
		 * Memory mapped from a device has no pages to populate; the class mapped it as
		 * requested.
		 */
		if (error == -EINVAL && is_fd)
			error = 0;
	} else {
		for (; at < end && error == 0; at += page)
			error = mincore((void *)at, page, &resident);
	}
	if (error != 0) {
		RSOFT_LOG(ERR, "MR: range not mapped%s: [%p, +%zu)",
				is_write ? " and writable" : "", range->iov_base, range->iov_len);
		return -EFAULT;
	}
	return 0;
}

/* The same for all memory of an MR. */
static int
mr_check_mapped(const struct rmem_mr *base, uint32_t access)
{
	bool is_write = (access & RMEM_ACCESS_LOCAL_WRITE) != 0;
	bool is_fd = (rmem_mr_drv(base)->flags & RMEM_MR_FD) != 0;
	const struct iovec *iov;
	struct iovec one;
	uint32_t i, nb_iov = rmem_mr_ranges(base, &one, &iov);
	int ret = 0;

	for (i = 0; i < nb_iov && ret == 0; i++)
		ret = mr_check_range(&iov[i], is_write, is_fd);
	return ret;
}

/* Pin all memory of an MR, as device and access require; 0 or -ENOMEM. */
static int
mr_pin(struct rmem_mr *base)
{
	const struct iovec *iov;
	struct iovec one;
	uint32_t nb_iov = rmem_mr_ranges(base, &one, &iov);

	return rsoft_pin(rsoft_dev_of(&base->obj), base->access, iov, nb_iov,
			&rsoft_mr_of(base)->pin);
}

/* Unpin the memory; base must have the same memory as in mr_pin(). */
static int
mr_unpin(struct rmem_mr *base, uint8_t pin)
{
	const struct iovec *iov;
	struct iovec one;
	uint32_t nb_iov = rmem_mr_ranges(base, &one, &iov);

	return rsoft_unpin(pin, iov, nb_iov);
}

/* Log that accesses to unmapped memory raise a signal. */
static void
log_unguarded(struct rsoft_dev *dev)
{
	const char *reason = "no guard on this processor";

	if (dev->args.sanitize == 0 ||
			__atomic_exchange_n(&dev->is_guard_logged, 1, __ATOMIC_RELAXED) != 0)
		return;
	if (dev->args.odp_guard == 0)
		reason = "odp_guard=0";
	else if (rsoft_guard_has_fast())
		reason = "a handler of SIGSEGV or SIGBUS was installed after rmem's handler";
	RSOFT_LOG(WARNING,
			"sanitize: memory that is unmapped before rmem_mr_dereg() raises a signal: %s",
			reason);
}

/*
 * Take a reference to the signal handler with the first MR of a device, until the device is closed.
 * If another handler was installed later, it decides whether ours is called.
 */
static void
mr_guard(struct rsoft_dev *dev)
{
	if (__atomic_load_n(&dev->has_guard, __ATOMIC_RELAXED))
		return;
	if (dev->args.odp_guard == 0 || !rsoft_guard_get()) {
		log_unguarded(dev);
		return;
	}
	if (__atomic_exchange_n(&dev->has_guard, 1, __ATOMIC_RELAXED))
		rsoft_guard_put(); /* another thread took it concurrently */
}

/* Allocate any key, or the key that the attributes request; attr may be NULL. */
static int
mr_take_key(struct rsoft_mr *mr, const struct rmem_mr_attr *attr)
{
	struct rsoft_dev *dev = rsoft_dev_of(&mr->mr.obj);
	int ret;

	if (attr != NULL && (attr->flags & RMEM_MR_REQUESTED_KEY)) {
		ret = rsoft_key_request(dev, mr, attr->requested_key, &mr->key);
		if (ret != 0)
			return ret;
	} else {
		mr->key = rsoft_key_alloc(dev, mr);
	}
	if (mr->key == NULL) {
		RSOFT_LOG(ERR, "MR: all entries are in use (max_mr=%" PRIu64 ")", dev->args.max_mr);
		return -ENOSPC;
	}
	rsoft_history_name(dev, &mr->mr, mr->key);
	mr_guard(dev);
	mr->key->pd = mr->mr.pd->handle;
	mr->mr.rkey = rsoft_word_rkey(mr->key->word);
	mr->mr.lkey = mr->mr.rkey ^ dev->lkey_xor;
	return 0;
}

/*
 * Acquire the resources of a new MR: pin, page table or list of ranges. An MR of length 0 has none.
 */
static int
mr_take_memory(struct rsoft_mr *mr)
{
	struct rsoft_dev *dev = rsoft_dev_of(&mr->mr.obj);
	int ret;

	if (mr->mr.length == 0)
		return 0;
	if (mr->mr.access & RMEM_ACCESS_ON_DEMAND)
		return rsoft_odp_alloc(dev, mr->mr.addr, mr->mr.length, mr->mr.access, &mr->odp);
	ret = mr_check_mapped(&mr->mr, mr->mr.access);
	if (ret == 0)
		ret = mr_pin(&mr->mr);
	if (ret != 0 || mr->drv.iov == NULL)
		return ret;
	mr->list = rsoft_list_of_iov(dev, mr->drv.iov, mr->drv.iov_count);
	return mr->list == NULL ? -ENOMEM : 0;
}

/* Set one contiguous range; the key is not valid. */
static void
mr_set_stretch(struct rsoft_mr *mr, void *addr, size_t length)
{
	struct rsoft_key *key = mr->key;

	key->kind = mr->odp != NULL ? RSOFT_KIND_ODP : RSOFT_KIND_BASE;
	key->length = mr->odp != NULL ? RTE_MIN(length, RSOFT_ODP_SPACE) : length;
	key->base = addr;
	key->odp = mr->odp;
}

static void
mr_set_list(struct rsoft_mr *mr, size_t length)
{
	struct rsoft_key *key = mr->key;

	key->kind = RSOFT_KIND_LIST;
	key->length = length;
	key->map_offset = 0;
	key->list = mr->list;
}

/* Check alignment: the page tables of the device can't shift a range relative to its pages. */
static int
mr_check_iova(const struct rmem_mr *base)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!rsoft_profile_of(rsoft_dev_of(&base->obj))->is_iova_aligned ||
			((base->iova ^ (uintptr_t)base->addr) & (page - 1)) == 0)
		return 0;
	RSOFT_LOG(ERR,
			"MR: iova not at the offset of addr in its page: 0x%" PRIx64
			" for %p (profile=%s)",
			base->iova, base->addr,
			rsoft_profile_words[rsoft_dev_of(&base->obj)->args.profile]);
	return -EINVAL;
}

/* Cancel the advice first: a prefetch in progress watches the pages that it has populated. */
static void
mr_free_odp(struct rsoft_odp *odp)
{
	rsoft_advise_cancel(odp);
	rsoft_odp_free(odp);
}

static int
mr_reg_null(struct rsoft_mr *mr)
{
	struct rsoft_dev *dev = rsoft_dev_of(&mr->mr.obj);
	int ret;

	mr->list = rsoft_list_of_zeros(dev);
	if (mr->list == NULL)
		return -ENOMEM;
	ret = mr_take_key(mr, NULL);
	if (ret != 0) {
		rsoft_list_free(mr->list);
		return ret;
	}
	mr->key->iova = 0;
	mr_set_list(mr, mr->mr.length);
	rsoft_key_note(dev, mr->key, mr->mr.rkey, RSOFT_HISTORY_REG, NULL, NULL);
	return rsoft_mr_enable(&mr->mr);
}

/* Device memory is already populated. */
static int
mr_reg_dm(struct rsoft_mr *mr, const struct rmem_mr_attr *attr)
{
	int ret = mr_take_key(mr, attr);

	if (ret != 0)
		return ret;
	mr->key->iova = 0;
	mr_set_stretch(mr, rsoft_dm_of(attr->ext->dm)->bytes + attr->ext->dm_offset, mr->mr.length);
	rsoft_key_note(rsoft_dev_of(&mr->mr.obj), mr->key, mr->mr.rkey, RSOFT_HISTORY_REG, NULL,
			NULL);
	return rsoft_mr_enable(&mr->mr);
}

static int
mr_reg_memory(struct rsoft_mr *mr, const struct rmem_mr_attr *attr)
{
	struct rmem_mr *base = &mr->mr;
	int ret = mr_check_iova(base);

	if (ret == 0)
		ret = mr_take_memory(mr);
	if (ret == 0)
		ret = mr_take_key(mr, attr);
	if (ret != 0) {
		mr_free_odp(mr->odp);
		rsoft_list_free(mr->list);
		mr_unpin(base, mr->pin);
		return ret;
	}
	mr->key->iova = base->iova;
	rsoft_key_note(rsoft_dev_of(&base->obj), mr->key,
			rsoft_word_rkey(__atomic_load_n(&mr->key->word, __ATOMIC_RELAXED)),
			RSOFT_HISTORY_REG, NULL, NULL);
	if (mr->list != NULL)
		mr_set_list(mr, base->length);
	else
		mr_set_stretch(mr, base->addr, base->length);
	if ((attr->flags & RMEM_MR_DISABLED) == 0)
		return rsoft_mr_enable(base);
	return 0;
}

int
rsoft_mr_reg(struct rmem_mr *base, const struct rmem_mr_attr *attr)
{
	struct rsoft_mr *mr = rsoft_mr_of(base);

	if (base->type == RMEM_MR_TYPE_NULL)
		return mr_reg_null(mr);
	if (base->type == RMEM_MR_TYPE_DM)
		return mr_reg_dm(mr, attr);
	return mr_reg_memory(mr, attr);
}

/*
 * An MR with a counter gets RSOFT_SLOW, so that other MRs keep the fast path. The counter is stored
 * before the bit, and read only between rsoft_grace_enter() and rsoft_grace_leave().
 */
int
rsoft_mr_bind_counter(struct rmem_mr *base, struct rmem_counter *counter)
{
	struct rsoft_mr *mr = rsoft_mr_of(base);

	if ((rsoft_profile_of(rsoft_dev_of(&base->obj))->capa & RMEM_DEV_CAPA_MR_COUNTER) == 0)
		return -EOPNOTSUPP;
	__atomic_store_n(&mr->counter, counter, __ATOMIC_SEQ_CST);
	if (counter != NULL)
		__atomic_fetch_or(&mr->key->word, rsoft_key_word(0, RSOFT_SLOW), __ATOMIC_SEQ_CST);
	else if (mr->key->kind == RSOFT_KIND_BASE)
		__atomic_fetch_and(
				&mr->key->word, ~rsoft_key_word(0, RSOFT_SLOW), __ATOMIC_SEQ_CST);
	rsoft_grace_wait();
	return 0;
}

int
rsoft_mr_enable(struct rmem_mr *base)
{
	struct rsoft_key *key = rsoft_mr_of(base)->key;
	uint32_t rights = RSOFT_NEED_READ | (base->access & RSOFT_ACCESS);

	if (key->kind == RSOFT_KIND_LIST || key->kind == RSOFT_KIND_ODP)
		rights |= RSOFT_SLOW;
	__atomic_fetch_or(&key->word, rsoft_key_word(0, rights), __ATOMIC_RELEASE);
	return 0;
}

int
rsoft_mr_share(struct rmem_mr *base, struct rmem_mr *from)
{
	const struct rmem_mr_attr attr = {.addr = from->addr, .length = from->length};

	return mr_reg_memory(rsoft_mr_of(base), &attr);
}

/* New resources of a changed MR. */
struct rsoft_mr_change {
	bool is_other; /* other memory, or switched from or to on-demand */
	uint8_t pin;
	struct rsoft_odp *odp;
};

/* Check a change of an MR, and acquire its new pin and table. */
static int
mr_rereg_take(struct rsoft_mr *mr, void *addr, size_t length, uint32_t access,
		struct rsoft_mr_change *change)
{
	struct rsoft_dev *dev = rsoft_dev_of(&mr->mr.obj);
	const struct iovec range = {addr, length};
	int ret;

	if (change->is_other && length == 0)
		return 0;
	if (change->is_other && (access & RMEM_ACCESS_ON_DEMAND))
		return rsoft_odp_alloc(dev, addr, length, access, &change->odp);
	if (change->is_other) {
		ret = mr_check_range(&range, (access & RMEM_ACCESS_LOCAL_WRITE) != 0,
				(mr->drv.flags & RMEM_MR_FD) != 0);
		return ret != 0 ? ret : rsoft_pin(dev, access, &range, 1, &change->pin);
	}
	change->odp = mr->odp;
	if (mr->odp != NULL)
		return rsoft_odp_check_access(mr->odp, access);
	if (access & ~mr->mr.access & RMEM_ACCESS_LOCAL_WRITE)
		return mr_check_mapped(&mr->mr, access);
	return 0;
}

/* Set the new memory, when the old memory is no longer in use and the key is not valid. */
static int
mr_rereg_give(struct rsoft_mr *mr, void *addr, size_t length, const struct rsoft_mr_change *change,
		enum rmem_rereg_result *result)
{
	int ret = mr_unpin(&mr->mr, mr->pin);

	mr_free_odp(mr->odp);
	rsoft_list_free(mr->list);
	mr->list = NULL;
	mr->pin = change->pin;
	mr->odp = change->odp;
	mr_set_stretch(mr, addr, length);
	if (ret != 0) {
		RSOFT_LOG(ERR, "MR of rkey 0x%08x: old memory no longer mapped", mr->mr.rkey);
		*result = RMEM_REREG_ERR_DO_FORK_OLD;
	}
	return ret;
}

/* Whether rereg keeps the keys: not on a device without REREG, or for on-demand MRs with a profile,
 * which are registered again. */
static bool
mr_keeps_keys(const struct rsoft_mr *mr, uint32_t access)
{
	const struct rsoft_dev *dev = rsoft_dev_of(&mr->mr.obj);

	if ((rsoft_profile_of(dev)->capa & RMEM_DEV_CAPA_REREG) == 0)
		return false;
	return !rsoft_has_profile(dev) || ((access | mr->mr.access) & RMEM_ACCESS_ON_DEMAND) == 0;
}

/*
 * The class serialises changes and release of an MR, so the key's word has one writer. The full
 * fence of the exchange precedes the check for lcores inside, as in rsoft_mr_dereg().
 */
int
rsoft_mr_rereg(struct rmem_mr *base, uint32_t flags, struct rmem_pd *pd, void *addr, size_t length,
		uint32_t access, enum rmem_rereg_result *result)
{
	struct rsoft_mr *mr = rsoft_mr_of(base);
	struct rsoft_key *key = mr->key;
	uint32_t rights = rsoft_word_rights(__atomic_load_n(&key->word, __ATOMIC_RELAXED));
	uint32_t new_rights = (rights & ~RSOFT_ACCESS) | (access & RSOFT_ACCESS);
	struct rsoft_mr_change change = {.is_other = (flags & RMEM_REREG_CHANGE_TRANSLATION) ||
					((access ^ base->access) & RMEM_ACCESS_ON_DEMAND)};
	uint64_t new_word;
	int ret;

	if (!mr_keeps_keys(mr, access))
		return -EOPNOTSUPP;
	ret = mr_rereg_take(mr, addr, length, access, &change);
	if (ret != 0) {
		*result = RMEM_REREG_ERR_DONT_FORK_NEW;
		return ret;
	}
	if (change.is_other)
		new_rights &= ~RSOFT_SLOW;
	if (change.odp != NULL)
		new_rights |= RSOFT_SLOW;
	if ((rights & RSOFT_VALID) == 0)
		new_rights = 0; /* rsoft_mr_enable() sets them */
	new_word = rsoft_key_word(base->rkey, new_rights);
	if (flags == RMEM_REREG_CHANGE_ACCESS && !change.is_other) {
		__atomic_exchange_n(&key->word, new_word, __ATOMIC_SEQ_CST);
		rsoft_grace_wait();
		return 0;
	}
	__atomic_exchange_n(&key->word, rsoft_key_word(base->rkey, rights & ~RSOFT_VALID),
			__ATOMIC_SEQ_CST);
	rsoft_grace_wait();
	if (change.is_other)
		ret = mr_rereg_give(mr, addr, length, &change, result);
	if (flags & RMEM_REREG_CHANGE_TRANSLATION)
		key->iova = (access & RMEM_ACCESS_ZERO_BASED) ? 0 : (uintptr_t)addr;
	key->pd = pd->handle;
	__atomic_store_n(&key->word, new_word, __ATOMIC_RELEASE);
	return ret;
}

int
rsoft_mr_dereg(struct rmem_mr *base)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_mr *mr = rsoft_mr_of(base);
	uint64_t word = __atomic_load_n(&mr->key->word, __ATOMIC_RELAXED);

	do {
		if (rsoft_word_rights(word) & RSOFT_BUSY) {
			RSOFT_LOG(ERR, "MR of rkey 0x%08x: in use: a request that binds or invalidates it has not completed",
					rsoft_word_rkey(word));
			return -EBUSY;
		}
	} while (!__atomic_compare_exchange_n(&mr->key->word, &word,
			rsoft_key_word(rsoft_word_rkey(word), 0), false, __ATOMIC_SEQ_CST,
			__ATOMIC_RELAXED));
	rsoft_grace_wait();
	rsoft_key_free(dev, mr->key);
	/* A failure means that memory was unmapped, and so unlocked. */
	mr_unpin(base, mr->pin);
	rte_free(mr->pages);
	rsoft_list_free(mr->list);
	mr_free_odp(mr->odp);
	return 0;
}

int
rsoft_mr_stats_get(struct rmem_mr *base, struct rmem_mr_stats *stats)
{
	rmem_uffd_settle();
	if (rsoft_mr_of(base)->odp != NULL)
		rsoft_odp_stats_get(rsoft_mr_of(base)->odp, stats);
	return 0;
}

/* The fields of a VALID key, which requests may bind again concurrently. */
static void
mr_query_bound(struct rsoft_mr *mr, struct rmem_mr_info *info)
{
	const struct rsoft_key *key = mr->key;
	uint8_t kind = __atomic_load_n(&key->kind, __ATOMIC_RELAXED);
	uint64_t nb;

	info->iova = __atomic_load_n(&key->iova, __ATOMIC_RELAXED);
	info->length = __atomic_load_n(&key->length, __ATOMIC_RELAXED);
	if (mr->mr.type == RMEM_MR_TYPE_INDIRECT) {
		info->nb_extents = rsoft_list_nb_pieces(mr->list, info->length);
		return;
	}
	info->page_size = UINT64_C(1) << __atomic_load_n(&key->log2_page_size, __ATOMIC_RELAXED);
	nb = __atomic_load_n(&key->map_offset, __ATOMIC_RELAXED);
	nb = kind == RSOFT_KIND_PAGES ? nb : nb % info->page_size;
	info->nb_pages = (nb + info->length - 1) / info->page_size + 1;
	info->nb_extents = kind == RSOFT_KIND_PAGES ? (uint32_t)info->nb_pages : 1;
	for (nb = info->nb_pages; nb > 1; nb = 1 + (nb - 1) / 512)
		info->nb_levels++;
}

/* A key that is bound again during the call was FREE in between, and is reported as such. */
int
rsoft_mr_query(struct rmem_mr *base, struct rmem_mr_info *info)
{
	struct rsoft_mr *mr = rsoft_mr_of(base);
	struct rmem_mr_info bound = *info;
	uint64_t word, nb_binds;

	if (base->type == RMEM_MR_TYPE_USER)
		info->is_pinned = mr->pin != 0;
	if (base->type == RMEM_MR_TYPE_USER || base->type == RMEM_MR_TYPE_NULL ||
			base->type == RMEM_MR_TYPE_DM)
		return 0;
	nb_binds = __atomic_load_n(&mr->nb_binds, __ATOMIC_ACQUIRE);
	word = __atomic_load_n(&mr->key->word, __ATOMIC_ACQUIRE);
	info->rkey = rsoft_word_rkey(word);
	info->lkey = info->rkey ^ rsoft_dev_of(&base->obj)->lkey_xor;
	info->state = RMEM_MR_STATE_FREE;
	if ((rsoft_word_rights(word) & RSOFT_VALID) == 0)
		return 0;
	mr_query_bound(mr, &bound);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&mr->nb_binds, __ATOMIC_RELAXED) != nb_binds)
		return 0;
	bound.rkey = info->rkey;
	bound.lkey = info->lkey;
	bound.state = RMEM_MR_STATE_VALID;
	bound.access = rsoft_word_rights(word) & RSOFT_ACCESS;
	*info = bound;
	return 0;
}

int
rsoft_fast_reg_mr_alloc(struct rmem_mr *base)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_mr *mr = rsoft_mr_of(base);
	int ret;

	mr->pages = rte_malloc_socket("rsoft_pages",
			rmem_mr_drv(base)->max_size * sizeof(*mr->pages), 0,
			(int)(int64_t)dev->args.socket);
	if (mr->pages == NULL) {
		RSOFT_LOG(ERR, "page list: no memory: %u pages", rmem_mr_drv(base)->max_size);
		return -ENOMEM;
	}
	ret = mr_take_key(mr, NULL);
	if (ret != 0)
		rte_free(mr->pages);
	return ret;
}

int
rsoft_mkey_alloc(struct rmem_mr *base)
{
	struct rsoft_dev *dev = rsoft_dev_of(&base->obj);
	struct rsoft_mr *mr = rsoft_mr_of(base);
	int ret;

	mr->list = rsoft_list_alloc(dev, rmem_mr_drv(base)->max_size);
	if (mr->list == NULL)
		return -ENOMEM;
	ret = mr_take_key(mr, NULL);
	if (ret != 0)
		rsoft_list_free(mr->list);
	return ret;
}

int
rsoft_page_list_alloc(struct rmem_fast_reg_page_list *page_list)
{
	struct rsoft_page_list *list = (struct rsoft_page_list *)page_list;
	struct rsoft_dev *dev = rsoft_dev_of(&page_list->obj);

	if (page_list->max_page_list_len <= RTE_DIM(list->few)) {
		page_list->page_list = list->few;
		return 0;
	}
	page_list->page_list = rte_zmalloc_socket("rsoft_page_list",
			page_list->max_page_list_len * sizeof(*page_list->page_list),
			RTE_CACHE_LINE_SIZE, (int)(int64_t)dev->args.socket);
	if (page_list->page_list == NULL) {
		RSOFT_LOG(ERR, "page list: no memory: %u pages", page_list->max_page_list_len);
		return -ENOMEM;
	}
	return 0;
}

int
rsoft_page_list_free(struct rmem_fast_reg_page_list *page_list)
{
	if (page_list->page_list != ((struct rsoft_page_list *)page_list)->few)
		rte_free(page_list->page_list);
	return 0;
}
