/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The fakes of mlx5dv; see fake_mlx5.h. The program is linked with --wrap for dlopen(3). */

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "fake_mlx5.h"

#define FAKE_UMRS 512u

struct fake_mkey {
	struct mlx5dv_mkey dv; /* the handle */
	uint32_t key;          /* the true one */
	struct ibv_pd *pd;
	uint32_t max_entries;
	bool is_bound;
	struct fake_umr umr;
	struct fake_mkey *next;
};

struct fake_mlx5 fake_mlx5;

static struct fake_mkey *fake_mkey_list;
static struct fake_umr fake_umrs[FAKE_UMRS]; /* of posted requests */
static unsigned int fake_next_umr;
static char fake_lib;

static bool
fake_is_supported(struct ibv_device *device)
{
	return device != NULL && fake_mlx5.is_device;
}

static struct fake_qp *
fake_qp_of(struct mlx5dv_qp_ex *mlx5)
{
	return ((struct fake_mlx5_qp *)mlx5)->qp;
}

static void
fake_mkey_configure(struct mlx5dv_qp_ex *mlx5, struct mlx5dv_mkey *mkey, uint8_t num_setters,
		struct mlx5dv_mkey_conf_attr *attr)
{
	struct fake_qp *qp = fake_qp_of(mlx5);
	struct fake_umr *umr = &fake_umrs[fake_next_umr++ % FAKE_UMRS];

	memset(umr, 0, sizeof(*umr));
	fake_mlx5.nb_umrs++;
	if ((qp->ex.wr_flags & IBV_SEND_INLINE) == 0 || attr->conf_flags != 0 ||
			attr->comp_mask != 0 || num_setters != 2) {
		qp->ex_err = EOPNOTSUPP;
		return;
	}
	umr->key = mkey->lkey;
	qp->mlx5->umr = umr;
	qp->mlx5->mkey = (struct fake_mkey *)mkey;
	fake_ex_umr(&qp->ex, umr, umr->key);
}

/* The request that is written, or NULL and its error. */
static struct fake_umr *
fake_setter(struct mlx5dv_qp_ex *mlx5, char call)
{
	struct fake_qp *qp = fake_qp_of(mlx5);
	struct fake_umr *umr = qp->mlx5->umr;

	if (qp->ex_err != 0)
		return NULL;
	if (umr == NULL || strlen(umr->calls) == 2 || strchr(umr->calls, call) != NULL) {
		qp->ex_err = EINVAL;
		return NULL;
	}
	umr->calls[strlen(umr->calls)] = call;
	return umr;
}

static void
fake_set_access(struct mlx5dv_qp_ex *mlx5, uint32_t access)
{
	const uint32_t known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct fake_umr *umr = fake_setter(mlx5, 'a');

	if (umr != NULL && (access & ~known) != 0)
		fake_qp_of(mlx5)->ex_err = EINVAL;
	else if (umr != NULL)
		umr->access = access;
}

/* As libmlx5: in the inline data of the request, and in the mkey. */
static bool
fake_fits(struct mlx5dv_qp_ex *mlx5, uint32_t nb, uint32_t header)
{
	struct fake_qp *qp = fake_qp_of(mlx5);
	uint32_t max = (qp->init.cap.max_inline_data + 4) / 16 - header;

	if (nb != 0 && nb <= RTE_MIN(max, qp->mlx5->mkey->max_entries - header))
		return true;
	qp->ex_err = ENOMEM;
	return false;
}

static void
fake_set_list(struct mlx5dv_qp_ex *mlx5, uint16_t nb, const struct ibv_sge *sges)
{
	struct fake_umr *umr = fake_setter(mlx5, 'l');
	uint32_t i;

	if (umr == NULL || !fake_fits(mlx5, nb, 0))
		return;
	umr->nb = nb;
	for (i = 0; i < nb; i++) {
		const struct ibv_sge *sge = &sges[fake_mlx5.is_list_misplaced ? 0 : i];

		umr->entry[i].addr = sge->addr;
		umr->entry[i].bytes_count = sge->length;
		umr->entry[i].lkey = sge->lkey;
	}
	fake_mlx5.umr = *umr;
}

static void
fake_set_interleaved(struct mlx5dv_qp_ex *mlx5, uint32_t repeat_count, uint16_t nb,
		const struct mlx5dv_mr_interleaved *data)
{
	struct fake_umr *umr = fake_setter(mlx5, 'i');
	uint32_t i;

	if (umr == NULL || !fake_fits(mlx5, nb, 1))
		return;
	umr->nb = nb;
	umr->repeat_count = repeat_count;
	for (i = 0; i < nb; i++) {
		umr->entry[i] = data[i];
		/* The format has 16 bits. */
		umr->entry[i].bytes_count = (uint16_t)data[i].bytes_count;
		umr->entry[i].bytes_skip = (uint16_t)(data[i].bytes_count + data[i].bytes_skip) -
				umr->entry[i].bytes_count;
		if (fake_mlx5.is_blocks_straight)
			umr->entry[i].bytes_skip = 0;
	}
	fake_mlx5.umr = *umr;
}

static struct ibv_qp *
fake_mlx5_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
		struct mlx5dv_qp_init_attr *mlx5_attr)
{
	struct fake_mlx5_qp *mlx5 = calloc(1, sizeof(*mlx5));
	struct ibv_qp *qp = NULL;

	fake_mlx5.qp_attr = *mlx5_attr;
	fake_mlx5.qp_max_inline = attr->cap.max_inline_data;
	if (fake_mlx5.has_no_qp ||
			(fake_mlx5.max_wr != 0 && attr->cap.max_send_wr > fake_mlx5.max_wr)) {
		errno = EINVAL;
	} else if (mlx5 != NULL) {
		qp = verbs_get_ctx(context)->create_qp_ex(context, attr);
	}
	if (qp == NULL) {
		free(mlx5);
		return NULL;
	}
	mlx5->qp = (struct fake_qp *)qp;
	mlx5->qp->mlx5 = mlx5;
	mlx5->dv.wr_mkey_configure = fake_mkey_configure;
	mlx5->dv.wr_set_mkey_access_flags = fake_set_access;
	mlx5->dv.wr_set_mkey_layout_list = fake_set_list;
	mlx5->dv.wr_set_mkey_layout_interleaved = fake_set_interleaved;
	return qp;
}

static struct mlx5dv_qp_ex *
fake_from_ex(struct ibv_qp_ex *ex)
{
	static struct mlx5dv_qp_ex none; /* of a QP of ibv_create_qp_ex() */
	struct fake_mlx5_qp *mlx5 = ((struct fake_qp *)ex)->mlx5;

	return mlx5 != NULL ? &mlx5->dv : &none;
}

static struct mlx5dv_mkey *
fake_create_mkey(struct mlx5dv_mkey_init_attr *attr)
{
	struct fake_mkey *mkey;

	fake_mlx5.mkey_attr = *attr;
	if (fake_mlx5.has_no_mkey) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mkey = fake_new("create_mkey", sizeof(*mkey));
	if (mkey == NULL)
		return NULL;
	mkey->dv.lkey = mkey->dv.rkey = mkey->key = fake_new_key();
	mkey->pd = attr->pd;
	mkey->max_entries = attr->max_entries = RTE_ALIGN_CEIL(attr->max_entries, 4);
	mkey->next = fake_mkey_list;
	fake_mkey_list = mkey;
	return &mkey->dv;
}

static int
fake_destroy_mkey(struct mlx5dv_mkey *dv)
{
	struct fake_mkey **at = &fake_mkey_list, *mkey = (struct fake_mkey *)dv;

	if (fake_keeps("destroy_mkey", mkey))
		return errno;
	while (*at != mkey)
		at = &(*at)->next;
	*at = mkey->next;
	return fake_delete(mkey);
}

static struct fake_mkey *
fake_mkey_find(uint32_t key)
{
	struct fake_mkey *mkey = fake_mkey_list;

	while (mkey != NULL && mkey->key >> 8 != key >> 8)
		mkey = mkey->next;
	return mkey;
}

static bool
fake_is_valid(const struct fake_mkey *mkey, uint32_t key)
{
	return mkey->is_bound && (mkey->key == key || fake_mlx5.is_tag_ignored);
}

/* As libmlx5: a bound mkey is bound again. */
static int
fake_run_umr(const struct fake_umr *umr, struct ibv_wc *wc)
{
	struct fake_mkey *mkey = fake_mkey_find(umr->key);

	wc->opcode = IBV_WC_DRIVER1;
	if (mkey == NULL || strlen(umr->calls) != 2)
		return IBV_WC_LOC_QP_OP_ERR;
	mkey->umr = *umr;
	mkey->key = umr->key;
	mkey->is_bound = true;
	return IBV_WC_SUCCESS;
}

static int
fake_mkey_invalidate(uint32_t key, bool is_remote)
{
	struct fake_mkey *mkey = fake_mkey_find(key);

	if (mkey == NULL)
		return -1;
	if (!fake_is_valid(mkey, key) || (is_remote && fake_mlx5.is_send_inv_refused))
		return 0;
	if (!fake_mlx5.is_inv_kept) {
		mkey->is_bound = false;
		mkey->key &= ~0xffu;
	}
	return 1;
}

/* The memory of an offset in an mkey and the bytes that follow in its piece; NULL: none. */
static uint8_t *
fake_mkey_at(const struct fake_umr *umr, uint64_t offset, unsigned int right, uint64_t *left)
{
	uint32_t i, round, nb_rounds = umr->repeat_count == 0 ? 1 : umr->repeat_count;

	for (round = 0; round < nb_rounds; round++) {
		for (i = 0; i < umr->nb; i++) {
			const struct mlx5dv_mr_interleaved *entry = &umr->entry[i];
			uint64_t step = (uint64_t)entry->bytes_count + entry->bytes_skip;

			if (offset < entry->bytes_count) {
				*left = entry->bytes_count - offset;
				return fake_local(entry->lkey, entry->addr + round * step + offset,
						1, right & IBV_ACCESS_LOCAL_WRITE);
			}
			offset -= entry->bytes_count;
		}
	}
	return NULL;
}

static int
fake_mkey_copy(uint32_t key, uint64_t addr, uint8_t *bytes, uint64_t length, unsigned int right)
{
	const struct fake_mkey *mkey = fake_mkey_find(key);
	bool is_read = right == IBV_ACCESS_REMOTE_READ || right == 0;
	uint64_t left, n;
	uint8_t *at;

	if (mkey == NULL)
		return -1;
	if (!fake_is_valid(mkey, key) || (mkey->umr.access & right) != right)
		return 0;
	for (; length != 0; length -= n, addr += n, bytes += n) {
		at = fake_mkey_at(&mkey->umr, addr, is_read ? 0 : IBV_ACCESS_LOCAL_WRITE, &left);
		if (at == NULL)
			return 0;
		n = RTE_MIN(left, length);
		memcpy(is_read ? bytes : at, is_read ? at : bytes, n);
	}
	return 1;
}

void
fake_mlx5_reset(void)
{
	static const struct fake_mkeys mkeys = {.run = fake_run_umr,
			.invalidate = fake_mkey_invalidate,
			.copy = fake_mkey_copy};

	memset(&fake_mlx5, 0, sizeof(fake_mlx5));
	fake_mlx5.is_loaded = fake_mlx5.is_device = true;
	fake.max_inline = 1024;
	fake.mkeys = &mkeys;
}

/* The symbols of the library. */
static const struct {
	const char *name;
	void (*function)(void);
} fake_symbols[] = {
		{"mlx5dv_create_mkey", (void (*)(void))fake_create_mkey},
		{"mlx5dv_create_qp", (void (*)(void))fake_mlx5_create_qp},
		{"mlx5dv_destroy_mkey", (void (*)(void))fake_destroy_mkey},
		{"mlx5dv_is_supported", (void (*)(void))fake_is_supported},
		{"mlx5dv_qp_ex_from_ibv_qp_ex", (void (*)(void))fake_from_ex},
};

/* Names of the linker, for --wrap. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void *__real_dlopen(const char *name, int flags);
void *__real_dlsym(void *lib, const char *name);
int __real_dlclose(void *lib);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *lib, const char *name);
int __wrap_dlclose(void *lib);

void *
__wrap_dlopen(const char *name, int flags)
{
	if (name == NULL || strcmp(name, "libmlx5.so.1") != 0)
		return __real_dlopen(name, flags);
	fake_mlx5.nb_opens++;
	fake_mlx5.open_flags = flags;
	if (!fake_mlx5.is_loaded)
		return NULL;
	fake.nb_live++;
	return &fake_lib;
}

void *
__wrap_dlsym(void *lib, const char *name)
{
	void *symbol = NULL;
	size_t i;

	if (lib != &fake_lib)
		return __real_dlsym(lib, name);
	if (fake_mlx5.no_symbol != NULL && strcmp(name, fake_mlx5.no_symbol) == 0)
		return NULL;
	for (i = 0; i < RTE_DIM(fake_symbols); i++) {
		if (strcmp(name, fake_symbols[i].name) == 0)
			memcpy(&symbol, &fake_symbols[i].function, sizeof(symbol));
	}
	return symbol;
}

int
__wrap_dlclose(void *lib)
{
	if (lib != &fake_lib)
		return __real_dlclose(lib);
	fake.nb_live--;
	return 0;
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
