/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* A rank of gloo: sums vectors over all ranks by its transport ibverbs, and checks the sums.
 * gloo_allreduce RANK RANKS DIRECTORY; the ranks meet in the directory. devtools/gallery.sh compiles
 * and runs it. */

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include "../holds.h"

static const int sizes[] = {1, 1000, 1 << 18};

/*
 * Add up a vector by an algorithm, twice. The algorithm is not destroyed: gloo's destructors end the
 * process if a send has not completed, and run() does not wait for its last ones.
 */
template <typename Algorithm>
static void
sum(const std::shared_ptr<gloo::rendezvous::Context> &context, int size)
{
	auto *values = new std::vector<float>(size);
	auto *algorithm = new Algorithm(context, {values->data()}, size);
	int ranks = context->size, round, i;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < size; i++)
			(*values)[i] = static_cast<float>(context->rank + i % 1000 + round);
		algorithm->run();
		for (i = 0; i < size; i++)
			HOLDS((*values)[i] == static_cast<float>(ranks * (i % 1000 + round) +
							      ranks * (ranks - 1) / 2));
	}
}

/* Returns when all ranks are here: requests of one that exits are lost. */
static void
meet(gloo::rendezvous::FileStore &store, int rank, int ranks)
{
	std::vector<std::string> keys;
	int i;

	store.set("done" + std::to_string(rank), {'1'});
	for (i = 0; i < ranks; i++)
		keys.push_back("done" + std::to_string(i));
	store.wait(keys);
}

int
main(int argc, char **argv)
{
	gloo::transport::ibverbs::attr attr = {"soft0", 1, 0};

	HOLDS(argc == 4);
	int rank = atoi(argv[1]), ranks = atoi(argv[2]);
	/* Neither is destroyed; see sum(). */
	auto *device = new auto(gloo::transport::ibverbs::CreateDevice(attr));
	auto *context = new auto(std::make_shared<gloo::rendezvous::Context>(rank, ranks));
	gloo::rendezvous::FileStore store(argv[3]);

	(*context)->connectFullMesh(store, *device);
	for (int size : sizes) {
		sum<gloo::AllreduceRing<float>>(*context, size);
		sum<gloo::AllreduceRingChunked<float>>(*context, size);
		sum<gloo::AllreduceHalvingDoubling<float>>(*context, size);
	}
	meet(store, rank, ranks);
	std::printf("rank %d of %d: all sums are right\n", rank, ranks);
	return 0;
}
