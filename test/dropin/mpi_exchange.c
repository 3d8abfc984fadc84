/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* An MPI program: each rank exchanges messages of all sizes with its neighbours, sums up, and adds
 * to a counter of rank 0 by atomics. devtools/ecosystem.sh compiles and runs it. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <mpi.h>

#include "../holds.h"

#define MAX  (1 << 20)
#define ADDS 10

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
	for (size = 1; size <= MAX; size *= 4)
		exchange(size);
	sum();
	count();
	if (rank == 0)
		printf("%d ranks\n", nb_ranks);
	MPI_Finalize();
	return 0;
}
