/* SPDX-License-Identifier: MIT
 * Matrix products by oneDNN's dnnl_sgemm, whose signature is the same in all its releases from 1.0 on, on the calling
 * thread alone: OpenMP's number of threads belongs to the thread that sets it, and is put back after each product.
 */
#ifndef RONDO_TENSOR_OPERATORS_GEMM_ONEDNN_H
#define RONDO_TENSOR_OPERATORS_GEMM_ONEDNN_H

#include "tensor/operators/gemm.h"

/* The library is rondo_onednn_library (tensor/libraries.h): one that can be told to use one thread; but on x86-64 only
 * where RONDO_ONEDNN_LIBRARY names it, and none where RONDO_CBLAS_LIBRARY is set. What follows needs that it was found.
 */

/* The number of its major release. */
int rondo_onednn_major(void);

/* Before and behind calls of it: begin gives what end puts back. Any thread. */
int rondo_onednn_begin(void);
void rondo_onednn_end(int threads);

/* Any thread. False when it could not be made, for want of memory: c is then as it was. */
bool rondo_onednn_run(const rondo_gemm *gemm);

#endif
