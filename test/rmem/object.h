/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/**
 * @file
 * Create an object with any valid arguments, of a device or of a PD; the result of the call.
 */

#ifndef OBJECT_H
#define OBJECT_H

int object_make_pd(void *dev, void **pd);
int object_make_cq(void *dev, void **cq);
int object_make_mr(void *pd, void **mr);
int object_make_fast_mr(void *pd, void **mr);
int object_make_mkey(void *pd, void **mr);
int object_make_mw(void *pd, void **mw);
int object_make_srq(void *pd, void **srq);
int object_make_qp(void *pd, void **qp);

#endif /* OBJECT_H */
