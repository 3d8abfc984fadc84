/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * Processes that all exchange SENDs, WRITEs and READs with all others, check each byte, and fork
 * children, while one in ten is killed with SIGKILL and started again, and as many are stopped for
 * a while. Which and when is random; RMEM_SEED repeats it. all_to_all.sh runs it.
 *
 * A pair of QPs is connected in epochs: each side offers one, on the board that all map, and the
 * higher of the two counts. After an error a side offers the next one. It posts when its peer is
 * connected in the same epoch.
 *
 * usage: all_to_all PROCESSES ROUNDS SECONDS [udp]
 */

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "own_qp.h"

#define MAX_PROCESSES 128
#define SIZE          512u
#define NB_RECV       2u
#define PARTS         (3 + NB_RECV) /* of the memory of a process, one for each peer in each part */
#define DEPTH         4u
#define FORK_ROUNDS   8u   /* a process forks once in so many of its rounds */
#define MAX_STOP_MS   200u /* less than the peers wait for an answer */
#define BOARD_FD      "ALL_TO_ALL_BOARD"

/* The side of a process in its connection with a peer; epoch is written last, and 0 before. */
struct offer {
	uint32_t epoch;     /* atomic */
	uint32_t connected; /* the last epoch in which it was; atomic */
	uint32_t qp_num;
	uint32_t rkey;
	uint64_t addr; /* of the peer's part */
	union ibv_gid gid;
	uint16_t lid;
};

struct board {
	uint32_t nb;
	uint32_t nb_rounds;              /* of each process with each peer */
	uint32_t is_over;                /* atomic */
	uint64_t rounds;                 /* so far, of all; atomic */
	uint64_t errors;                 /* requests that failed; atomic */
	uint32_t is_done[MAX_PROCESSES]; /* it has exchanged all of its rounds; atomic */
	struct offer offers[MAX_PROCESSES][MAX_PROCESSES];
};

enum part {
	TARGET, /* the peer writes it */
	SOURCE,
	RESULT, /* read back */
	RECEIVED,
};

enum {
	SEND = NB_RECV,
	WRITE,
	READ,
};

struct peer {
	struct ibv_qp *qp;
	uint32_t epoch;
	bool is_connected;
	bool is_busy; /* its requests have not completed */
	uint32_t nb_rounds;
};

static struct board *board;
static uint32_t self;
static struct peer peers[MAX_PROCESSES];
static uint8_t memory[PARTS][MAX_PROCESSES][SIZE];
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static union ibv_gid gid;
static struct ibv_port_attr port;

#define LOAD(field)         __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define STORE(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELEASE)

/* Bytes of a message, which depend on all of its numbers and end with their sum. */
static uint8_t
sum_fill(uint8_t *bytes, uint32_t from, uint32_t to, uint32_t round)
{
	uint32_t i, word = from * 2654435761u ^ to * 40503u ^ round * 97u;
	uint8_t sum = 0;

	for (i = 0; i + 1 < SIZE; i++) {
		word = word * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(word >> 24);
		sum = (uint8_t)(sum * 31u + bytes[i]);
	}
	bytes[i] = sum;
	return sum;
}

static bool
sum_is_valid(const uint8_t *bytes)
{
	uint8_t sum = 0;
	uint32_t i;

	for (i = 0; i + 1 < SIZE; i++)
		sum = (uint8_t)(sum * 31u + bytes[i]);
	return sum == bytes[i];
}

static struct ibv_sge
sge_of(uint32_t part, uint32_t peer)
{
	return (struct ibv_sge){(uintptr_t)memory[part][peer], SIZE, mr->lkey};
}

/* The ID of a request: its kind, the peer, and the epoch, by which an older one is recognised. */
static uint64_t
wr_id_of(uint32_t peer, uint32_t kind)
{
	return (uint64_t)peers[peer].epoch << 32 | peer << 8 | kind;
}

static void
post_recv(uint32_t to, uint32_t i)
{
	struct ibv_sge sge = sge_of(RECEIVED + i, to);
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id_of(to, i), .sg_list = &sge, .num_sge = 1};

	HOLDS(ibv_post_recv(peers[to].qp, &wr, &bad) == 0);
}

/* Offer an epoch; the fields of the former one may be read concurrently. */
static void
offer(uint32_t to, uint32_t epoch)
{
	struct offer *own = &board->offers[self][to];

	peers[to].is_connected = peers[to].is_busy = false;
	peers[to].epoch = epoch;
	STORE(own->epoch, 0);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	own->qp_num = peers[to].qp->qp_num;
	own->rkey = mr->rkey;
	own->addr = (uintptr_t)memory[TARGET][to];
	own->gid = gid;
	own->lid = port.lid;
	STORE(own->epoch, epoch);
}

/* Copy the offer of a peer; false: it changes, or there is none. */
static bool
offer_get(uint32_t of, struct offer *copy)
{
	const struct offer *shared = &board->offers[of][self];

	copy->epoch = LOAD(shared->epoch);
	if (copy->epoch == 0)
		return false;
	copy->qp_num = shared->qp_num;
	copy->rkey = shared->rkey;
	copy->addr = shared->addr;
	copy->gid = shared->gid;
	copy->lid = shared->lid;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return LOAD(shared->epoch) == copy->epoch;
}

static void
connect_peer(uint32_t to, const struct offer *other)
{
	const struct ibv_qp_attr attr = {.qp_access_flags = WRITABLE | IBV_ACCESS_REMOTE_READ,
			.path_mtu = port.active_mtu,
			.dest_qp_num = other->qp_num,
			.rq_psn = other->epoch & 0xffffff,
			.sq_psn = other->epoch & 0xffffff,
			.max_rd_atomic = 1,
			.max_dest_rd_atomic = 1,
			.min_rnr_timer = 1,
			.timeout = 17,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.ah_attr = {.is_global = 1, .grh = {.dgid = other->gid, .hop_limit = 64}}};
	uint32_t i;

	reset_qp(peers[to].qp);
	connect_qp_at(peers[to].qp, attr, other->lid);
	for (i = 0; i < NB_RECV; i++)
		post_recv(to, i);
	peers[to].is_connected = true;
	STORE(board->offers[self][to].connected, other->epoch);
}

/* A SEND, a WRITE to the part that the peer has for this process, and a READ of it. */
static void
post_round(uint32_t to, const struct offer *other)
{
	struct ibv_sge source = sge_of(SOURCE, to), result = sge_of(RESULT, to);
	struct ibv_send_wr *bad,
			wr[3] = {{.wr_id = wr_id_of(to, SEND),
						 .next = &wr[1],
						 .opcode = IBV_WR_SEND,
						 .sg_list = &source,
						 .num_sge = 1},
					{.wr_id = wr_id_of(to, WRITE),
							.next = &wr[2],
							.opcode = IBV_WR_RDMA_WRITE,
							.sg_list = &source,
							.num_sge = 1,
							.wr.rdma = {other->addr, other->rkey}},
					{.wr_id = wr_id_of(to, READ),
							.opcode = IBV_WR_RDMA_READ,
							.sg_list = &result,
							.num_sge = 1,
							.send_flags = IBV_SEND_SIGNALED,
							.wr.rdma = {other->addr, other->rkey}}};

	(void)sum_fill(memory[SOURCE][to], self, to, peers[to].nb_rounds);
	memset(memory[RESULT][to], 0, SIZE);
	peers[to].is_busy = true;
	HOLDS(ibv_post_send(peers[to].qp, wr, &bad) == 0);
}

/* Go on with a peer: offer, connect, or post. */
static void
serve(uint32_t to)
{
	struct peer *peer = &peers[to];
	struct offer other;

	if (!offer_get(to, &other))
		return;
	if (other.epoch > peer->epoch)
		offer(to, other.epoch);
	if (other.epoch != peer->epoch)
		return;
	if (!peer->is_connected)
		connect_peer(to, &other);
	else if (!peer->is_busy && peer->nb_rounds < board->nb_rounds &&
			LOAD(board->offers[to][self].connected) == peer->epoch)
		post_round(to, &other);
}

/* Fork a child that writes to the memory of the MR, of which it has a copy, and ends. */
static void
fork_child(void)
{
	pid_t pid = fork();

	HOLDS(pid >= 0);
	if (pid == 0) {
		memset(memory, 0, sizeof(memory));
		_exit(0);
	}
	wait_child(pid);
}

static void
completed(const struct ibv_wc *wc)
{
	uint32_t to = (uint32_t)wc->wr_id >> 8, kind = (uint32_t)wc->wr_id & 0xff;
	struct peer *peer = &peers[to];

	if (!peer->is_connected || (uint32_t)(wc->wr_id >> 32) != peer->epoch)
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		__atomic_add_fetch(&board->errors, 1, __ATOMIC_RELAXED);
		offer(to, peer->epoch + 1);
		return;
	}
	if (kind < NB_RECV) {
		HOLDS(wc->byte_len == SIZE && sum_is_valid(memory[RECEIVED + kind][to]));
		post_recv(to, kind);
		return;
	}
	HOLDS(memcmp(memory[RESULT][to], memory[SOURCE][to], SIZE) == 0);
	peer->is_busy = false;
	peer->nb_rounds++;
	if (__atomic_add_fetch(&board->rounds, 1, __ATOMIC_RELAXED) % FORK_ROUNDS == 0)
		fork_child();
}

/* The objects, and an offer to each peer that is above those of a process that was killed. */
static void
start(void)
{
	uint32_t to, own, other;

	context = open_device("soft0");
	HOLDS(ibv_query_port(context, 1, &port) == 0 && ibv_query_gid(context, 1, 0, &gid) == 0);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, (int)(board->nb * 2 * (NB_RECV + DEPTH)), NULL, NULL, 0);
	HOLDS(pd != NULL && cq != NULL);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), WRITABLE | IBV_ACCESS_REMOTE_READ);
	HOLDS(mr != NULL);
	for (to = 0; to < board->nb; to++) {
		if (to == self)
			continue;
		peers[to].qp = create_rc(pd, cq, DEPTH);
		HOLDS(peers[to].qp != NULL);
		own = LOAD(board->offers[self][to].epoch);
		if (own == 0)
			own = LOAD(board->offers[self][to].connected);
		other = LOAD(board->offers[to][self].epoch);
		offer(to, (own > other ? own : other) + 1);
	}
}

static void
stop(void)
{
	uint32_t to;

	for (to = 0; to < board->nb; to++) {
		if (to != self)
			HOLDS(ibv_destroy_qp(peers[to].qp) == 0);
	}
	HOLDS(ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
	HOLDS(ibv_close_device(context) == 0);
}

static bool
is_done(void)
{
	uint32_t to;

	for (to = 0; to < board->nb; to++) {
		if (to != self && peers[to].nb_rounds < board->nb_rounds)
			return false;
	}
	return true;
}

/* A process: exchange until all have. */
static void
exchange(void)
{
	struct ibv_wc wc[16];
	uint32_t to;
	int i, n;

	start();
	while (!LOAD(board->is_over)) {
		for (to = 0; to < board->nb; to++) {
			if (to != self)
				serve(to);
		}
		n = ibv_poll_cq(cq, 16, wc);
		HOLDS(n >= 0);
		for (i = 0; i < n; i++)
			completed(&wc[i]);
		if (n == 0)
			poll(NULL, 0, 1);
		if (!LOAD(board->is_done[self]) && is_done())
			STORE(board->is_done[self], 1);
	}
	stop();
}

static pid_t
spawn(char *program, uint32_t rank, bool is_udp)
{
	char text[16], device[64];
	char *args[] = {program, text, NULL};
	pid_t pid = fork();

	HOLDS(pid >= 0);
	if (pid != 0)
		return pid;
	/* Else it would go on if the time of the parent is over. */
	HOLDS(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	snprintf(text, sizeof(text), "%u", rank);
	snprintf(device, sizeof(device), "soft0,ip=127.0.77.%u", rank + 1);
	if (is_udp)
		HOLDS(setenv("RMEM_IBV", device, 1) == 0);
	execv("/proc/self/exe", args);
	_exit(EXIT_FAILURE);
}

static bool
all_are_done(void)
{
	uint32_t i;

	for (i = 0; i < board->nb && LOAD(board->is_done[i]); i++)
		;
	return i == board->nb;
}

/* None has ended by itself. */
static void
check_alive(const pid_t *pids)
{
	uint32_t i;

	for (i = 0; i < board->nb; i++)
		HOLDS(waitpid(pids[i], NULL, WNOHANG) == 0);
}

/* Kill a process, and start it again. */
static void
disturb_kill(char *program, pid_t *pids, uint32_t victim, bool is_udp)
{
	HOLDS(kill(pids[victim], SIGKILL) == 0);
	HOLDS(waitpid(pids[victim], NULL, 0) == pids[victim]);
	STORE(board->is_done[victim], 0);
	pids[victim] = spawn(program, victim, is_udp);
}

/* Stop a process, which may copy to or from others at that time, and continue it. */
static void
disturb_stop(pid_t pid, uint32_t ms)
{
	int status;

	HOLDS(kill(pid, SIGSTOP) == 0);
	HOLDS(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	poll(NULL, 0, (int)ms);
	HOLDS(kill(pid, SIGCONT) == 0);
}

/*
 * Kill one process in ten, and stop as many, in turn, each at its part of the rounds of all, and
 * wait for all to be done. Return the number of those killed.
 */
static uint32_t
disturb(char *program, pid_t *pids, bool is_udp, unsigned int *seed)
{
	uint64_t all = (uint64_t)board->nb * (board->nb - 1) * board->nb_rounds;
	uint32_t nb = 2 * (board->nb < 10 ? 1 : board->nb / 10), done = 0, victim;

	while (done < nb || !all_are_done()) {
		check_alive(pids);
		poll(NULL, 0, 1);
		if (done == nb || LOAD(board->rounds) < all * (done + 1) / (nb + 2))
			continue;
		victim = (uint32_t)rand_r(seed) % board->nb;
		if (done % 2 == 0)
			disturb_kill(program, pids, victim, is_udp);
		else
			disturb_stop(pids[victim], (uint32_t)rand_r(seed) % MAX_STOP_MS);
		done++;
	}
	return nb / 2;
}

static void
run(char *program, bool is_udp)
{
	const char *text = getenv("RMEM_SEED");
	unsigned int seed = text != NULL ? (unsigned int)strtoul(text, NULL, 0)
					 : (unsigned int)getpid();
	static pid_t pids[MAX_PROCESSES];
	uint32_t i, killed;

	printf("seed %u\n", seed);
	fflush(stdout);
	for (i = 0; i < board->nb; i++)
		pids[i] = spawn(program, i, is_udp);
	killed = disturb(program, pids, is_udp, &seed);
	STORE(board->is_over, 1);
	for (i = 0; i < board->nb; i++)
		wait_child(pids[i]);
	printf("%u processes, %u killed, %u stopped, %llu rounds, %llu requests failed\n",
			board->nb, killed, killed, (unsigned long long)board->rounds,
			(unsigned long long)board->errors);
}

static uint32_t
number(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

int
main(int argc, char **argv)
{
	const char *inherited = getenv(BOARD_FD);
	char text[16];
	int fd = inherited != NULL ? (int)number(inherited) : memfd_create("board", 0);

	HOLDS(fd >= 0 && (inherited != NULL || ftruncate(fd, sizeof(*board)) == 0));
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	HOLDS(board != MAP_FAILED && argc > 1);
	if (inherited != NULL) {
		self = number(argv[1]);
		exchange();
		return 0;
	}
	HOLDS(argc > 3);
	board->nb = number(argv[1]);
	board->nb_rounds = number(argv[2]);
	HOLDS(board->nb > 1 && board->nb <= MAX_PROCESSES);
	alarm(number(argv[3]));
	snprintf(text, sizeof(text), "%d", fd);
	HOLDS(setenv(BOARD_FD, text, 1) == 0);
	run(argv[0], argc > 4 && strcmp(argv[4], "udp") == 0);
	return 0;
}
