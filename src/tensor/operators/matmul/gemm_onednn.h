/* SPDX-License-Identifier: MIT
 * Matrix products by oneDNN's dnnl_sgemm, whose signature is the same in all its releases from 1.0 on, on the calling
 * thread alone: OpenMP's number of threads belongs to the thread that sets it, and is put back after each product.
 *
 * Before 3.11.2 the library's products on x86-64 (its "gemm" kernels, with and without AVX-512) use the stack pointer
 * as a pointer into the heap for large sizes, and so do convolutions that are made of such products. The frame of a
 * signal handler would be written there. So signals are blocked during each call of such a release. Faults are not: a
 * checking device takes them on an alternate stack (device/check/check_fault.c).
 */
#ifndef RONDO_TENSOR_OPERATORS_MATMUL_GEMM_ONEDNN_H
#define RONDO_TENSOR_OPERATORS_MATMUL_GEMM_ONEDNN_H

#include <stdint.h>

#include "tensor/operators/matmul/gemm.h"

/* The library is rondo_onednn_library (tensor/vendor/libraries.h): one that can be told to use one thread; but on
 * x86-64 only where RONDO_ONEDNN_LIBRARY names it, and none where RONDO_CBLAS_LIBRARY is set. What follows needs that
 * it was found.
 */

/* The number of its major release. */
int rondo_onednn_major(void);

/* What a thread puts back after its calls of the library. */
typedef struct rondo_onednn_use {
  int threads;      /* of OpenMP */
  uint64_t signals; /* the mask */
} rondo_onednn_use;

/* Before and after calls of the library, on the same thread: the library uses one thread, and, where it moves the stack
 * pointer away from the stack, no signal handler runs. Any thread. */
rondo_onednn_use rondo_onednn_begin(void);
void rondo_onednn_end(rondo_onednn_use use);

/* Any thread. False when it could not be made, for want of memory: c is then as it was. */
bool rondo_onednn_run(const rondo_gemm *gemm);

#endif
