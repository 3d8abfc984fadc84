/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * A fuzzer of what is read as text, or received as bytes outside of a QP: arguments of devices with
 * their rules and addresses, parameters of telemetry commands, descriptors of leases, commands of
 * rmem-ctl, and messages of secondary processes. An input is a list of steps: the number of a
 * target, a length, and as many bytes.
 *
 * A device whose arguments were accepted is closed again, and leaves no descriptor open. A command
 * has one answer, and a descriptor that it passes is closed. A message, passed to the function that
 * the library registers with EAL, has the id of the parent process, and one answer. A descriptor of
 * a lease that is accepted is packed to the same bytes, and a sealed one is accepted only as it was
 * sealed.
 */

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_telemetry.h>

#include <rmem.h>
#include <rmem_lease_desc.h>

#include "soft/chaos/rsoft_chaos.h"
#include "soft/rsoft_dev.h"
#include "soft/wire/codec/rwire_addr.h"
#include "soft/wire/rwire.h"
#include "soft/wire/rwire_allow.h"

#include "../../lib/rmem/rmem_mp_priv.h"
#include "../send_fds.h"
#include "../wire/fuzz_eal.h"
#include "../wire/xorshift.h"

#define MAX_TEXT    2048u
#define MAX_CMDS    16u
#define MAX_MRS     4u
#define MAX_REPLIES 64u /* with their containers */
#define MAX_ANSWER  128u
#define FUZZ_QP     "fuzz-qp"

enum target {
	TARGET_ARGS,
	TARGET_OPEN,
	TARGET_CHAOS,
	TARGET_ALLOW,
	TARGET_TELEMETRY,
	TARGET_DESC,
	TARGET_SEAL,
	TARGET_CONTROL,
	TARGET_MP,
	TARGET_NB,
};

static struct {
	const char *cmd[MAX_CMDS];
	telemetry_cb get[MAX_CMDS];
	unsigned int nb_cmds;
	struct rte_tel_data *reply[MAX_REPLIES];
	unsigned int nb_replies;
	struct rmem_dev *dev;
	struct rmem_pd *pd;
	struct rmem_mr *mr[MAX_MRS];
	uint8_t mem[MAX_MRS][64];
	struct rmem_lease_sealer *sealer;
	struct rmem_dev *controlled; /* with control=1 */
	int control_fd;              /* of its rmem-ctl */
	rte_mp_t receive;            /* of messages */
	struct mp_rep answer;        /* to the last one */
	uint32_t nb_answers;
	struct rmem_cq *cq;
	struct rmem_qp *qp;
	uint64_t nb_runs[TARGET_NB], nb_accepted[TARGET_NB];
} fz;

/*
 * A byte below the number of words is a word, another one a character. Without letters, so that no
 * path of a log or a file but these is written or read.
 */
static const char *const words[] = {"ip=", "127.0.13.5", "::1", "host", "fe80::", "port=", "udp",
		"eth:", "mtu=", "chaos=", "any:", "send:", "recv:", "read:", "write:", "bind_mw:",
		"cq:", "port:", "pkt:", "reg_mr:", "cm_connect:", "post_send:", "qp_modify:",
		"LOC_PROT_ERR", "RETRY_EXC_ERR", "REM_ACCESS_ERR", "RNR_NAK", "LATE", "REORDER",
		"DOWN", "FREEZE", "GID_CHANGE", "QP_FATAL", "REJECT", "ENOMEM", "loss:", "dup:",
		"reorder:", "corrupt:", "trunc:", "@n:", "@every:", "@p:", "@ms:", "@qp:", "@cq:",
		"@naks:", "@polls:", "@thread:", "@times:", "@reason:", "seed:", "log:/dev/null",
		"replay:/dev/null", "file:/dev/null", "fault=", "allow=", "gids=", "pkeys=",
		"neigh=", "loop=", "engine=", "progress=", "poll", "thread",
		"sanitize=", "share=", "control=", "profile=", "verbs", "mlx5", "keys=", "same",
		"pin=", "off", "max_mr=", "max_qp=", "max_wr=", "socket=", "0xffff", "soft0",
		"soft9", "port ", "1 ", "up", "down", "freeze", "thaw", "show", "gid ", "pkey ",
		"add ", "del ", "mtu ", "kill-qp ", "fatal", "/1", "mr", "pd", "qp",
		"18446744073709551616"};
static const char chars[] = "0123456789.:;,=@+-*/_ \"'%[]()";

static void
text_of(const uint8_t *data, size_t size, char text[MAX_TEXT])
{
	size_t i, len = 0, word;

	for (i = 0; i < size; i++) {
		if (data[i] >= RTE_DIM(words)) {
			if (len + 1 == MAX_TEXT)
				break;
			text[len++] = chars[data[i] % (sizeof(chars) - 1)];
			continue;
		}
		word = strlen(words[data[i]]);
		if (len + word + 1 > MAX_TEXT)
			break;
		memcpy(text + len, words[data[i]], word);
		len += word;
	}
	text[len] = '\0';
}

/* Instead of DPDK's, whose libraries register theirs. */
int
rte_telemetry_register_cmd(const char *cmd, telemetry_cb fn, const char *help)
{
	if (strncmp(cmd, "/rmem", 5) != 0)
		return 0;
	CHECK(fz.nb_cmds < MAX_CMDS && help != NULL);
	fz.cmd[fz.nb_cmds] = cmd;
	fz.get[fz.nb_cmds++] = fn;
	return 0;
}

/* Instead of DPDK's. */
int
rte_mp_action_register(const char *name, rte_mp_t action)
{
	if (strcmp(name, MP_ACTION) == 0)
		fz.receive = action;
	return 0;
}

int
rte_mp_reply(struct rte_mp_msg *msg, const char *peer)
{
	CHECK(msg->len_param == sizeof(fz.answer) && msg->num_fds == 0 && peer != NULL);
	memcpy(&fz.answer, msg->param, sizeof(fz.answer));
	fz.nb_answers++;
	return 0;
}

/*
 * DPDK releases the containers of a reply when it sends the reply: they are kept here, and released
 * with it.
 */
struct rte_tel_data *
rte_tel_data_alloc(void)
{
	struct rte_tel_data *(*next)(void);

	*(void **)&next = dlsym(RTLD_NEXT, "rte_tel_data_alloc");
	CHECK(fz.nb_replies < MAX_REPLIES);
	fz.reply[fz.nb_replies] = next();
	return fz.reply[fz.nb_replies++];
}

void
rte_tel_data_free(struct rte_tel_data *data)
{
	void (*next)(struct rte_tel_data *);
	unsigned int i;

	for (i = 0; fz.reply[i] != data; i++)
		CHECK(i < fz.nb_replies);
	fz.reply[i] = fz.reply[--fz.nb_replies];
	*(void **)&next = dlsym(RTLD_NEXT, "rte_tel_data_free");
	next(data);
}

static bool
is_refusal(int ret)
{
	return ret == -EINVAL || ret == -ENOMEM || ret == -ENODEV || ret == -EADDRINUSE ||
			ret == -EADDRNOTAVAIL || ret == -EOPNOTSUPP || ret == -ENOENT ||
			ret == -EIO || ret == -EEXIST || ret == -EBADMSG;
}

static bool
run_args(const char *text)
{
	struct rsoft_args args;
	int ret = rsoft_args_parse(text, &args);

	CHECK(ret == 0 || is_refusal(ret));
	return ret == 0;
}

static bool
run_open(const char *text)
{
	int before = dup(STDIN_FILENO), after;
	struct rmem_dev *dev;
	int ret;

	close(before);
	ret = rmem_dev_create("soft9", text, &dev);
	CHECK(ret == 0 || is_refusal(ret));
	if (ret == 0)
		CHECK(rmem_dev_close(dev) == 0);
	after = dup(STDIN_FILENO);
	close(after);
	CHECK(after <= before);
	return ret == 0;
}

static bool
run_chaos(const char *text)
{
	struct rsoft_chaos *chaos;
	int ret = rsoft_chaos_open(text, strlen(text) % 2 != 0, &chaos);

	CHECK(ret == 0 || is_refusal(ret));
	if (ret == 0)
		rsoft_chaos_close(chaos);
	return ret == 0;
}

static bool
run_allow(const char *text)
{
	struct rwire_allow allow = {.nb = 0};
	int ret = rwire_allow_parse(&allow, text);
	struct rwire_addr addr;
	uint32_t i;

	CHECK(ret == 0 || ret == -EINVAL);
	CHECK(allow.nb <= RWIRE_MAX_ALLOW);
	for (i = 0; ret == 0 && i < allow.nb; i++) {
		CHECK(allow.prefix[i].len <= 128);
		CHECK(rwire_allow_has(&allow, &allow.prefix[i].addr));
	}
	return rwire_addr_parse(text, &addr) || ret == 0;
}

static bool
run_telemetry(unsigned int which, const char *text)
{
	struct rte_tel_data *d = rte_tel_data_alloc();
	int ret;

	CHECK(d != NULL);
	ret = fz.get[which % fz.nb_cmds](fz.cmd[which % fz.nb_cmds], text, d);
	while (fz.nb_replies != 0)
		rte_tel_data_free(fz.reply[0]);
	CHECK(ret <= 0);
	return ret == 0;
}

static bool
run_desc(const uint8_t *data, size_t size)
{
	uint8_t packed[RMEM_LEASE_DESC_SIZE];
	struct rmem_lease_desc desc;
	uint32_t part = UINT32_MAX;
	int ret = rmem_lease_desc_unpack(data, size, &desc, &part);

	CHECK(ret == RMEM_LEASE_DESC_SIZE || part != RMEM_LEASE_DESC_PART_NONE);
	if (ret != RMEM_LEASE_DESC_SIZE)
		return false;
	CHECK(rmem_lease_desc_pack(&desc, packed, sizeof(packed)) == RMEM_LEASE_DESC_SIZE);
	CHECK(memcmp(packed, data, sizeof(packed)) == 0);
	return true;
}

/* Pack and seal a descriptor of the first bytes, change it by the next bytes, and read it. */
static bool
run_seal(const uint8_t *data, size_t size)
{
	struct rmem_lease_desc desc = {0}, got;
	uint8_t sealed[RMEM_LEASE_SEALED_SIZE], packed[RMEM_LEASE_DESC_SIZE];
	struct rmem_lease_seal_info info;
	uint8_t change = 0;
	size_t i;
	int ret;

	memcpy(&desc, data, RTE_MIN(size, sizeof(desc)));
	ret = rmem_lease_seal(fz.sealer, &desc, "", 0, sealed, sizeof(sealed));
	CHECK((ret == RMEM_LEASE_SEALED_SIZE) ==
			(rmem_lease_desc_pack(&desc, packed, sizeof(packed)) ==
					RMEM_LEASE_DESC_SIZE));
	if (ret != RMEM_LEASE_SEALED_SIZE)
		return false;
	CHECK(run_desc(packed, sizeof(packed)));
	for (i = sizeof(desc); i < size && i - sizeof(desc) < sizeof(sealed); i++) {
		sealed[i - sizeof(desc)] ^= data[i];
		change |= data[i];
	}
	ret = rmem_lease_unseal(fz.sealer, sealed, sizeof(sealed), "", 0, &got, &info, NULL);
	CHECK((ret == RMEM_LEASE_SEALED_SIZE) == (change == 0));
	CHECK(change != 0 || memcmp(&got, &desc, sizeof(desc)) == 0);
	return change == 0;
}

static struct rwire *
controlled_wire(void)
{
	return ((struct rsoft_dev *)rmem_dev_drv(fz.controlled)->priv)->wire;
}

static void
open_controlled(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char args[96];
	int len;

	/* Without the thread that control=1 needs: the commands are executed by this one. */
	snprintf(args, sizeof(args),
			"ip=127.0.13.6,port=shm:text-fuzz-%d,fault=loss:0,progress=poll",
			(int)getpid());
	CHECK(rmem_dev_create("soft8", args, &fz.controlled) == 0);
	controlled_wire()->dev->args.control = 1;
	CHECK(rwire_control_open(controlled_wire()) == 0);
	fz.control_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(fz.control_fd >= 0);
	/* The kernel chooses a name, to which the answer is sent. */
	CHECK(bind(fz.control_fd, (const struct sockaddr *)&un, sizeof(sa_family_t)) == 0);
	len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "rmem-ctl/%d/soft8",
			(int)getpid());
	CHECK(connect(fz.control_fd, (const struct sockaddr *)&un,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					      (size_t)len)) == 0);
}

static struct mp_req
request_of(uint32_t op)
{
	struct mp_req req = {.version = RMEM_VERSION,
			.op = op,
			.id = {.pid = getppid()},
			.type = RMEM_OBJ_QP,
			.dev_id = fz.dev->obj.dev_id,
			.obj = fz.qp};

	req.id.start = rmem_mp_start_time(req.id.pid);
	snprintf(req.name, sizeof(req.name), "%s", op == MP_ATTACH ? "soft0" : FUZZ_QP);
	return req;
}

static int
answer_of(const struct mp_req *req, uint32_t size)
{
	struct rte_mp_msg msg = {.name = MP_ACTION, .len_param = (int)size};

	memcpy(msg.param, req, sizeof(*req));
	fz.nb_answers = 0;
	CHECK(fz.receive(&msg, "peer") == 0 && fz.nb_answers == 1);
	CHECK((fz.answer.ret == 0) == (fz.answer.reason[0] == '\0'));
	CHECK(memchr(fz.answer.reason, '\0', sizeof(fz.answer.reason)) != NULL);
	CHECK(fz.answer.ret <= 0 && fz.answer.obj == (fz.answer.obj == NULL ? NULL : fz.qp));
	return fz.answer.ret;
}

static void
close_controlled(void)
{
	struct mp_req detach;

	if (fz.controlled == NULL)
		return;
	/* A message may have attached its process to the device. */
	detach = request_of(MP_DETACH);
	detach.dev_id = fz.controlled->obj.dev_id;
	(void)answer_of(&detach, sizeof(detach));
	close(fz.control_fd);
	CHECK(rmem_dev_close(fz.controlled) == 0);
	fz.controlled = NULL;
}

static bool
run_control(const void *bytes, size_t size)
{
	int before = dup(STDIN_FILENO), after;
	char answer[MAX_ANSWER + 1];
	bool is_ok;
	ssize_t n;

	close(before);
	CHECK(send_fds(fz.control_fd, bytes, size, 0, STDERR_FILENO, 1) == (ssize_t)size);
	rwire_control_serve(controlled_wire());
	n = recv(fz.control_fd, answer, sizeof(answer), 0);
	CHECK(n >= 2 && n < (ssize_t)MAX_ANSWER);
	answer[n] = '\0';
	is_ok = strncmp(answer, "ok", 2) == 0;
	CHECK(is_ok || strncmp(answer, "error: ", 7) == 0);
	CHECK(recv(fz.control_fd, answer, sizeof(answer), 0) < 0);
	after = dup(STDIN_FILENO);
	close(after);
	CHECK(after <= before);
	if (controlled_wire()->has_failed) {
		close_controlled();
		open_controlled();
	}
	return is_ok;
}

/* A request by the first byte; the next ones are an offset and what changes there. */
static bool
run_mp(const uint8_t *data, size_t size)
{
	struct mp_req req = request_of(size != 0 ? data[0] % 8 : 0);
	uint8_t *bytes = (uint8_t *)&req;
	size_t i;

	for (i = 2; i < size; i++)
		bytes[(data[1] * 2u + i - 2) % sizeof(req)] ^= data[i];
	return answer_of(&req, size > 1 && data[0] == UINT8_MAX ? data[1] : sizeof(req)) == 0;
}

static void
open_qp(void)
{
	const struct rmem_cq_conf cq_conf = {.nb_cqe = 8};
	struct rmem_qp_conf conf = {
			.type = RMEM_QPT_RC, .name = FUZZ_QP, .max_send_wr = 4, .max_send_sge = 1};

	CHECK(rmem_cq_create(fz.dev, &cq_conf, &fz.cq) == 0);
	conf.send_cq = conf.recv_cq = fz.cq;
	CHECK(rmem_qp_create(fz.pd, &conf, &fz.qp) == 0);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const uint8_t key[RMEM_LEASE_SEAL_KEY_SIZE] = {1};
	unsigned int i;

	RTE_SET_USED(argc);
	fuzz_eal_init((*argv)[0]);
	CHECK(rmem_dev_create("soft0", NULL, &fz.dev) == 0);
	CHECK(rmem_pd_alloc(fz.dev, &fz.pd) == 0);
	for (i = 0; i < MAX_MRS; i++)
		CHECK(rmem_mr_reg(fz.pd, fz.mem[i], sizeof(fz.mem[i]), 0, RMEM_ACCESS_LOCAL_WRITE,
				      &fz.mr[i]) == 0);
	CHECK(rmem_lease_sealer_create(key, &fz.sealer) == 0);
	open_controlled();
	/* libFuzzer calls no fuzz_close(), and LeakSanitizer does not find the device in DPDK. */
	CHECK(atexit(close_controlled) == 0);
	open_qp();
	CHECK(fz.receive != NULL);
	CHECK(fz.nb_cmds != 0);
	return 0;
}

static void
run_step(uint8_t which, const uint8_t *data, size_t size)
{
	uint8_t target = which % TARGET_NB;
	char text[MAX_TEXT];
	bool is_accepted;

	text_of(data, size, text);
	switch (target) {
	case TARGET_ARGS:
		is_accepted = run_args(text);
		break;
	case TARGET_OPEN:
		is_accepted = run_open(text);
		break;
	case TARGET_CHAOS:
		is_accepted = run_chaos(text);
		break;
	case TARGET_ALLOW:
		is_accepted = run_allow(text);
		break;
	case TARGET_TELEMETRY:
		is_accepted = run_telemetry(which / TARGET_NB, text);
		break;
	case TARGET_DESC:
		is_accepted = run_desc(data, size);
		break;
	case TARGET_SEAL:
		is_accepted = run_seal(data, size);
		break;
	case TARGET_MP:
		is_accepted = run_mp(data, size);
		break;
	default:
		is_accepted = which / TARGET_NB % 2 ? run_control(data, size)
						    : run_control(text, strlen(text));
	}
	fz.nb_runs[target]++;
	fz.nb_accepted[target] += is_accepted;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 0, len;

	while (size - at >= 2) {
		len = RTE_MIN((size_t)data[at + 1], size - at - 2);
		run_step(data[at], data + at + 2, len);
		at += 2 + len;
	}
	return 0;
}

/* The bytes of a text, as text_of() reads them. */
static size_t
bytes_of(const char *text, uint8_t *to)
{
	size_t nb = 0, len, best;
	unsigned int i;

	for (; *text != '\0'; text += best) {
		best = 0;
		for (i = 0; i < RTE_DIM(words); i++) {
			len = strlen(words[i]);
			if (len > best && strncmp(text, words[i], len) == 0) {
				to[nb] = (uint8_t)i;
				best = len;
			}
		}
		for (i = RTE_DIM(words); best == 0; i++) {
			CHECK(i <= UINT8_MAX);
			if (chars[i % (sizeof(chars) - 1)] == *text) {
				to[nb] = (uint8_t)i;
				best = 1;
			}
		}
		nb++;
	}
	return nb;
}

/* A legal descriptor, or one of which any field may be illegal. */
static size_t
draw_desc(uint8_t *to, uint64_t *state)
{
	struct rmem_lease_desc desc = {.lease_id = xorshift32(state),
			.remote_addr = xorshift32(state),
			.length = 1 + xorshift32(state) % 4096,
			.rkey = xorshift32(state),
			.access = RMEM_ACCESS_REMOTE_READ};
	size_t size = sizeof(desc);

	if (xorshift32(state) % 4 == 0)
		desc.access = xorshift32(state);
	memcpy(to, &desc, sizeof(desc));
	if (xorshift32(state) % 2 == 0)
		return size;
	memset(to + size, 0, RMEM_LEASE_SEALED_SIZE);
	to[size + xorshift32(state) % RMEM_LEASE_SEALED_SIZE] = (uint8_t)xorshift32(state);
	return size + RMEM_LEASE_SEALED_SIZE;
}

/* Most inputs are ones that their target accepts. */
size_t
fuzz_step(uint8_t *to, uint64_t *state)
{
	static const char *const texts[][4] = {
			[TARGET_ARGS] = {"ip=127.0.13.5,mtu=4096", "profile=verbs,max_wr=16",
					"chaos=seed:1;any:QP_FATAL@p:0.1", "sanitize=1,pin=off"},
			[TARGET_OPEN] = {"ip=127.0.13.5,mtu=1024,fault=loss:0.1;dup:1",
					"ip=127.0.13.5,gids=127.0.13.6;127.0.13.7,pkeys=0xffff;1",
					"chaos=seed:7;cq:LATE@polls:3,sanitize=1",
					"max_mr=7,max_qp=2"},
			[TARGET_CHAOS] = {"any:LOC_PROT_ERR@p:0.5;seed:3", "qp_modify:ENOMEM@n:2",
					"recv:RNR_NAK@naks:3@every:2", "port:FREEZE@ms:2;loss:0.1"},
			[TARGET_ALLOW] = {"127.0.13.0/24", "::/0;0.0.0.0/0", "fe80::1/64", "::1"},
			[TARGET_TELEMETRY] = {"soft0", "", "soft0,mr0", "soft9"},
			[TARGET_CONTROL] = {"port 1 down", "show", "pkey add 0xffff", "mtu 1024"},
	};
	uint8_t target = (uint8_t)(xorshift32(state) % TARGET_NB);
	struct rmem_lease_desc desc;
	size_t nb;

	to[0] = (uint8_t)(target + TARGET_NB * (xorshift32(state) % MAX_CMDS));
	if (target < RTE_DIM(texts) && texts[target][0] != NULL) {
		nb = bytes_of(texts[target][xorshift32(state) % 4], to + 2);
	} else if (target == TARGET_MP) {
		to[2] = (uint8_t)xorshift32(state);
		to[3] = (uint8_t)xorshift32(state);
		to[4] = xorshift32(state) % 2 == 0 ? (uint8_t)xorshift32(state) : 0;
		nb = 3;
	} else {
		nb = draw_desc(to + 2, state);
		if (target == TARGET_DESC) {
			memcpy(&desc, to + 2, sizeof(desc));
			nb = RMEM_LEASE_DESC_SIZE;
			if (rmem_lease_desc_pack(&desc, to + 2, nb) < 0)
				memset(to + 2, 0, nb);
		}
	}
	if (nb != 0 && target != TARGET_MP && xorshift32(state) % 2 == 0)
		to[2 + xorshift32(state) % nb] = (uint8_t)xorshift32(state);
	to[1] = (uint8_t)nb;
	return 2 + nb;
}

/* Each target accepted and refused some of its inputs. */
int
fuzz_report(void)
{
	static const char *const names[TARGET_NB] = {"arguments", "devices", "rules", "addresses",
			"telemetry", "descriptors", "sealed descriptors", "commands", "messages"};
	unsigned int i;
	int ret = 0;

	for (i = 0; i < TARGET_NB; i++) {
		printf("%s: %" PRIu64 " of %" PRIu64 " inputs were accepted\n", names[i],
				fz.nb_accepted[i], fz.nb_runs[i]);
		ret |= fz.nb_accepted[i] == 0 || fz.nb_accepted[i] == fz.nb_runs[i];
	}
	return ret;
}

void
fuzz_close(void)
{
	struct mp_req req;
	unsigned int i;

	rmem_lease_sealer_destroy(fz.sealer);
	close_controlled();
	req = request_of(MP_DETACH);
	(void)answer_of(&req, sizeof(req));
	CHECK(rmem_qp_destroy(fz.qp) == 0);
	CHECK(rmem_cq_destroy(fz.cq) == 0);
	for (i = 0; i < MAX_MRS; i++)
		CHECK(rmem_mr_dereg(fz.mr[i]) == 0);
	CHECK(rmem_pd_dealloc(fz.pd) == 0);
	CHECK(rmem_dev_close(fz.dev) == 0);
	rte_eal_cleanup();
}
