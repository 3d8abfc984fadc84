/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The lcore of a client: it stores its values, checks that a lease is valid for its value and not
 * after its end, and then GETs values at full speed.
 */

#include <string.h>

#include <rte_cycles.h>
#include <rte_random.h>

#include "client.h"

/* Maximum number of attempts: on a slow machine leases may expire before they are used. */
#define MAX_TRIES    100
#define EXPIRY_TRIES 4
/* Of the values that the run reads; the key of the checks has others. */
#define VERSION 0

/* After a failed call: 0 to repeat it, with a new connection if one is lost; or the reason. */
static int
recover(struct kv_client *client, int ret)
{
	if (ret == -EBUSY || ret == -ENOSPC)
		return 0; /* no lease now */
	if (ret < 0 && ret != -ECONNRESET)
		return ret;
	client->nb_lost++;
	return client_reconnect(client);
}

static int
put(struct kv_client *client, uint64_t key, uint32_t version, uint32_t *nb_revoked)
{
	int again, ret, tries = 0;

	do {
		ret = client_put(client, key, version, nb_revoked);
		again = ret != 0 ? recover(client, ret) : 0;
		if (again != 0)
			return again;
	} while (ret != 0 && ++tries < MAX_TRIES);
	return ret;
}

/*
 * Get leases of n values and READ them. A READ that was refused after the time of a lease had
 * passed since the GET was too late: -ETIME if that ended the last attempt.
 */
static int
fetch(struct kv_client *client, const uint64_t *keys, uint32_t n)
{
	uint64_t start, lease = client->conf->lease_ms * rte_get_tsc_hz() / 1000;
	int again, ret, tries = 0;

	do {
		start = rte_rdtsc();
		ret = client_get(client, keys, n);
		if (ret == 0)
			ret = client_read(client, n);
		again = ret != 0 ? recover(client, ret) : 0;
		if (again != 0)
			return again;
		if (ret == RMEM_WC_REM_ACCESS_ERR && rte_rdtsc() - start >= lease)
			ret = -ETIME;
	} while (ret != 0 && ++tries < MAX_TRIES);
	return ret;
}

/* A release that is too late ends only the connection. */
static int
release(struct kv_client *client, uint32_t n)
{
	int ret = client_release(client, n);

	return ret == 0 ? 0 : recover(client, ret);
}

/* The key of this client's checks: all the others are shared. */
static uint64_t
check_key(const struct kv_client *client)
{
	return client->conf->keys + client->conn->number;
}

/*
 * READ through a lease that ended: it must be refused with REM_ACCESS_ERR, and fetch nothing.
 * *is_read: it was not refused. -EAGAIN if the server did not answer: no result.
 */
static int
check_refusal(struct kv_client *client, bool *is_read, bool *is_ok)
{
	size_t size = client->conf->value_size, i;
	int again, ret;

	memset(client->values, 0, size);
	ret = client_read(client, 1);
	*is_read = ret == 0;
	*is_ok = ret == RMEM_WC_REM_ACCESS_ERR;
	for (i = 0; i < size; i++)
		*is_ok = *is_ok && client->values[i] == 0;
	again = ret == 0 ? 0 : recover(client, ret);
	return again == 0 && ret == RMEM_WC_RETRY_EXC_ERR ? -EAGAIN : again;
}

/*
 * The checks. They set the result, and return 0, or the reason without a result: -errno or a
 * status. -EAGAIN, and -ENOENT from a server that was restarted: to be repeated.
 */

static int
lease_opens_its_value(struct kv_client *client, bool *is_ok)
{
	uint64_t key = check_key(client);
	uint32_t nb_revoked;
	int ret;

	ret = put(client, key, 1, &nb_revoked);
	if (ret == 0)
		ret = fetch(client, &key, 1);
	*is_ok = ret == 0 && client_has(client, 0, key, 1);
	return ret;
}

static int
changed_descriptor_is_refused(struct kv_client *client, bool *is_ok)
{
	struct kv_answer *answer = &client->answers[0];
	uint64_t key = check_key(client);
	struct rmem_lease_desc desc;
	uint32_t bit;
	int ret;

	ret = fetch(client, &key, 1);
	*is_ok = ret == 0;
	for (bit = 0; *is_ok && bit < 8 * rte_be_to_cpu_32(answer->desc_size); bit++) {
		answer->desc[bit / 8] ^= (uint8_t)(1 << bit % 8);
		*is_ok = client_open_desc(client, answer, &desc) != 0;
		answer->desc[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	return ret;
}

static int
unsealed_descriptor_is_refused(struct kv_client *client, bool *is_ok)
{
	struct kv_answer answer = {.desc_size = RTE_BE32(RMEM_LEASE_DESC_SIZE)};
	uint64_t key = check_key(client);
	struct rmem_lease_desc desc;
	int ret;

	ret = fetch(client, &key, 1);
	if (ret != 0)
		return ret;
	ret = rmem_lease_desc_pack(&client->desc[0], answer.desc, sizeof(answer.desc));
	*is_ok = client_open_desc(client, &answer, &desc) != 0;
	return RTE_MIN(ret, 0);
}

/* A PUT is answered when the leases of the previous value have ended. */
static int
revoked_lease_is_refused(struct kv_client *client, bool *is_ok)
{
	uint32_t nb_revoked = 0, tries = 0;
	uint64_t key = check_key(client);
	bool is_refused = false, is_read;
	int ret;

	do { /* until it was revoked, and had not expired before */
		ret = fetch(client, &key, 1);
		if (ret == 0)
			ret = put(client, key, 2, &nb_revoked);
	} while (ret == 0 && nb_revoked == 0 && ++tries < MAX_TRIES);
	if (ret == 0)
		ret = nb_revoked == 0 ? -ETIME : check_refusal(client, &is_read, &is_refused);
	if (ret == 0)
		ret = fetch(client, &key, 1);
	*is_ok = ret == 0 && is_refused && client_has(client, 0, key, 2);
	return ret;
}

/* Sleep until the server has expired the lease, by the clock of this process. */
static int
wait_for_expiry(const struct kv_client *client, const struct rmem_lease_desc *desc)
{
	uint64_t ticks = (uint64_t)((double)desc->left_ns * 1e-9 * (double)rte_get_tsc_hz()) + 1;
	uint64_t begin = rte_rdtsc();

	while (rte_rdtsc() - begin < ticks && !kv_is_interrupted(client->conf))
		rte_delay_us_sleep(1000);
	return kv_is_interrupted(client->conf) ? -EINTR : 0;
}

/*
 * Overdue leases are revoked before the next request is answered. The clock of the server may be
 * slower: where EAL has to measure the frequency of the TSC, an error of some percent is common on
 * a loaded machine. So a lease that is still valid is given its time again.
 */
static int
expired_lease_is_refused(struct kv_client *client, bool *is_ok)
{
	uint64_t key = check_key(client), no_key = UINT64_MAX;
	uint32_t tries = 0;
	struct rmem_lease_desc old;
	bool is_read = false;
	int ret;

	ret = fetch(client, &key, 1);
	if (ret != 0)
		return ret;
	old = client->desc[0];
	*is_ok = false;
	do {
		ret = wait_for_expiry(client, &old);
		if (ret != 0)
			return ret;
		ret = client_get(client, &no_key, 1);
		client->desc[0] = old;
		if (ret != -ENOENT) {
			ret = recover(client, ret);
			return ret == 0 ? -EAGAIN : ret;
		}
		ret = check_refusal(client, &is_read, is_ok);
	} while (ret == 0 && is_read && ++tries < EXPIRY_TRIES);
	return ret;
}

static const struct check {
	const char *what;
	int (*run)(struct kv_client *client, bool *is_ok);
	bool is_for_seals;
} checks[] = {
		{"value read through its lease", lease_opens_its_value, false},
		{"changed descriptor refused", changed_descriptor_is_refused, false},
		{"unsealed descriptor refused", unsealed_descriptor_is_refused, true},
		{"revoked lease refused", revoked_lease_is_refused, false},
		{"expired lease refused", expired_lease_is_refused, false},
};

static const char *
reason(int ret)
{
	if (ret == -ETIME)
		return "leases expire before they are used: --lease-ms is too short here";
	return ret < 0 ? rte_strerror(-ret) : rmem_wc_status_str(ret);
}

/* Run a check to its result. */
static int
run_check(struct kv_client *client, const struct check *check, bool *is_ok)
{
	uint32_t nb_revoked, tries = 0;
	int ret;

	do {
		ret = kv_is_interrupted(client->conf) ? -EINTR : check->run(client, is_ok);
		if (ret == -ENOENT && put(client, check_key(client), VERSION + 1, &nb_revoked) == 0)
			ret = -EAGAIN;
	} while (ret == -EAGAIN && ++tries < MAX_TRIES);
	return ret;
}

static int
run_checks(struct kv_client *client)
{
	bool is_ok = false;
	uint32_t i;
	int ret;

	for (i = 0; i < RTE_DIM(checks); i++) {
		if (checks[i].is_for_seals && client->conf->seal == NULL)
			continue;
		ret = run_check(client, &checks[i], &is_ok);
		if (ret != 0) {
			KV_ERR("client %" PRIu32 ": not checked, %s: %s", client->number,
					checks[i].what, reason(ret));
			return -EIO;
		}
		printf("client %" PRIu32 ": %s: %s\n", client->number, checks[i].what,
				is_ok ? "yes" : "NO");
		if (!is_ok)
			return -EIO;
	}
	return 0;
}

static int
store(struct kv_client *client)
{
	uint32_t nb_revoked;
	uint64_t key;
	int ret = 0;

	for (key = 0; key < client->conf->keys && ret == 0; key++)
		ret = kv_is_interrupted(client->conf) ? -EINTR
						      : put(client, key, VERSION, &nb_revoked);
	return ret;
}

static int
store_first(struct kv_client *client)
{
	int ret = store(client);

	if (ret != 0)
		KV_ERR("client %" PRIu32 ": values not stored: %s", client->number, reason(ret));
	return ret;
}

/* GET values by random keys, and compare each. -ENOENT: the server was restarted. */
static int
get_burst(struct kv_client *client, uint32_t n)
{
	uint64_t keys[KV_BURST];
	uint32_t i;
	int ret;

	for (i = 0; i < n; i++)
		keys[i] = rte_rand_max(client->conf->keys);
	ret = fetch(client, keys, n);
	for (i = 0; i < n && ret == 0; i++) {
		if (!client_has(client, i, keys[i], VERSION))
			ret = -EBADMSG;
	}
	if (ret == 0)
		ret = release(client, n);
	client->nb_gets += ret == 0 ? n : 0;
	return ret;
}

/* The server was restarted, without the values. */
static int
store_again(struct kv_client *client)
{
	int ret;

	client->nb_stored++;
	ret = store(client);
	if (ret == 0)
		ret = get_burst(client, 1);
	if (ret == 0)
		printf("client %" PRIu32 ": values stored again after %" PRIu64 " GETs\n",
				client->number, client->nb_gets);
	return ret;
}

static int
get_values(struct kv_client *client)
{
	uint64_t limit = client->conf->gets != 0 ? client->conf->gets : UINT64_MAX;
	uint64_t start = rte_rdtsc();
	int ret = 0;

	while (client->nb_gets < limit && ret == 0 && !kv_is_interrupted(client->conf)) {
		ret = get_burst(client,
				(uint32_t)RTE_MIN(limit - client->nb_gets, (uint64_t)KV_BURST));
		while (ret == -ENOENT)
			ret = store_again(client);
	}
	client->cycles = rte_rdtsc() - start;
	if (ret == -EINTR) /* Ctrl-C ends the run */
		ret = 0;
	if (ret != 0)
		KV_ERR("client %" PRIu32 ": after %" PRIu64 " GETs: %s", client->number,
				client->nb_gets, reason(ret));
	return ret != 0 ? -EIO : 0;
}

int
kv_client_run(void *arg)
{
	struct kv_client *client = arg;
	int ret, code = KV_EXIT_CHECK;
	double seconds, rate;

	ret = client_connect(client);
	if (ret != 0)
		code = KV_EXIT_START;
	else if (client->conf->connect != NULL)
		printf("client %" PRIu32 ": connected to %s port %d\n", client->number,
				client->conf->connect, KV_PORT);
	if (ret == 0)
		ret = store_first(client);
	if (ret == 0)
		ret = run_checks(client);
	if (ret == 0)
		ret = get_values(client);
	kv_conn_close(client->conf, client->conn);
	seconds = (double)client->cycles / (double)rte_get_tsc_hz();
	rate = client->nb_gets == 0 ? 0 : (double)client->nb_gets / seconds / 1e6;
	printf("client %" PRIu32 ": %" PRIu64 " GETs in %.3f s: %.3f M/s, %.1f MB/s; %" PRIu64
	       " leases released, %" PRIu64 " left to expire; %" PRIu64
	       " connections lost; values stored again: %" PRIu64 "\n",
			client->number, client->nb_gets, seconds, rate,
			rate * (double)client->conf->value_size, client->nb_released,
			client->nb_left, client->nb_lost, client->nb_stored);
	return ret == 0 ? 0 : code;
}
