/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * A stream that is read late: no call of another thread waits for it.
 */

#ifndef SLOW_STREAM_H
#define SLOW_STREAM_H

#include <stdio.h>

/*
 * Call a dump with a stream whose writes return only when another thread has called the dump
 * too, with a stream that does not wait. A dump that writes while it holds a lock does not return.
 */
void test_dump_slowly(int (*dump)(const void *obj, FILE *f), const void *obj);

#endif /* SLOW_STREAM_H */
