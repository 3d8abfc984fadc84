/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* An MPI program: each rank exchanges messages of all sizes with its neighbours, and blocks with
 * all ranks; it writes to and reads from windows of all ranks, adds to them, sums up, and adds to a
 * counter of rank 0 by atomics. With an argument it uses no windows. devtools/gallery.sh compiles
 * and runs it. */

#include <string.h>

#include <mpi.h>

#include "../holds.h"

#define MAX   (1 << 20)
#define ADDS  10
#define RANKS 128
/* Of each rank for another: as large for up to 8 ranks, so that the sums of bytes are known. */
#define BLOCK (MAX / (nb_ranks > 8 ? RANKS : 8))

static uint8_t sent[MAX], received[MAX];
static int rank, nb_ranks;

static void
exchange(int size)
{
	int next = (rank + 1) % nb_ranks, previous = (rank + nb_ranks - 1) % nb_ranks, i;

	memset(sent, rank + 1, (size_t)size);
	memset(received, 0, (size_t)size);
	MPI_Sendrecv(sent, size, MPI_BYTE, next, size, received, size, MPI_BYTE, previous, size,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (i = 0; i < size; i++)
		HOLDS(received[i] == previous + 1);
}

/* The byte at an offset of the block that one rank has for another. */
static uint8_t
block_byte(int from, int to, int i)
{
	return (uint8_t)(31 * from + 7 * to + i + (i >> 8));
}

static void
blocks_write(int size)
{
	int to, i;

	for (to = 0; to < nb_ranks; to++) {
		for (i = 0; i < size; i++)
			sent[to * size + i] = block_byte(rank, to, i);
	}
}

/* The blocks for a rank, in the order of the ranks that had them. */
static void
blocks_check(const uint8_t *blocks, int size, int to)
{
	int from, i;

	for (from = 0; from < nb_ranks; from++) {
		for (i = 0; i < size; i++)
			HOLDS(blocks[from * size + i] == block_byte(from, to, i));
	}
}

static void
alltoall(int size)
{
	blocks_write(size);
	memset(received, 0, sizeof(received));
	MPI_Alltoall(sent, size, MPI_BYTE, received, size, MPI_BYTE, MPI_COMM_WORLD);
	blocks_check(received, size, rank);
}

/* Each rank writes its blocks to the windows of all, and then reads the window of the next one. */
static void
put_and_get(int size)
{
	int next = (rank + 1) % nb_ranks, to;
	MPI_Win win;

	blocks_write(size);
	memset(received, 0, sizeof(received));
	MPI_Win_create(received, sizeof(received), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	for (to = 0; to < nb_ranks; to++) {
		MPI_Put(sent + to * size, size, MPI_BYTE, to, (MPI_Aint)rank * size, size, MPI_BYTE,
				win);
	}
	MPI_Win_fence(0, win);
	blocks_check(received, size, rank);
	memset(sent, 0, sizeof(sent));
	MPI_Get(sent, size * nb_ranks, MPI_BYTE, next, 0, size * nb_ranks, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	blocks_check(sent, size, next);
	MPI_Win_free(&win);
}

/* Each rank adds to all elements of all windows, at the same time. */
static void
accumulate(void)
{
	static int64_t window[1024], one[1024];
	MPI_Win win;
	int to, i;

	for (i = 0; i < 1024; i++)
		one[i] = rank + i;
	MPI_Win_create(window, sizeof(window), sizeof(window[0]), MPI_INFO_NULL, MPI_COMM_WORLD,
			&win);
	for (to = 0; to < nb_ranks; to++) {
		MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win);
		MPI_Accumulate(one, 1024, MPI_INT64_T, to, 0, 1024, MPI_INT64_T, MPI_SUM, win);
		MPI_Win_unlock(to, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	for (i = 0; i < 1024; i++)
		HOLDS(window[i] == (int64_t)nb_ranks * i + nb_ranks * (nb_ranks - 1) / 2);
	MPI_Win_unlock(rank, win);
	MPI_Win_free(&win);
}

static void
sum(void)
{
	int all = 0;

	MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	HOLDS(all == nb_ranks * (nb_ranks - 1) / 2);
}

static void
count(void)
{
	int64_t one = 1, old, total = -1, *counter;
	MPI_Win win;
	int i;

	MPI_Win_allocate(sizeof(*counter), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &win);
	*counter = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (i = 0; i < ADDS; i++)
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win);
	MPI_Win_flush_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Get(&total, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
	MPI_Win_flush(0, win);
	HOLDS(total == (int64_t)ADDS * nb_ranks);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

int
main(int argc, char **argv)
{
	int size;

	HOLDS(MPI_Init(&argc, &argv) == MPI_SUCCESS);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nb_ranks);
	HOLDS(nb_ranks <= RANKS);
	for (size = 1; size <= MAX; size *= 4)
		exchange(size);
	for (size = 8; size <= BLOCK; size *= 128) {
		alltoall(size);
		if (argc == 1)
			put_and_get(size);
	}
	sum();
	if (argc == 1) {
		accumulate();
		count();
	}
	if (rank == 0)
		printf("%d ranks\n", nb_ranks);
	MPI_Finalize();
	return 0;
}
