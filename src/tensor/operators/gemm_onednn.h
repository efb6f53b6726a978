/* SPDX-License-Identifier: MIT
 * Matrix products by oneDNN's dnnl_sgemm, whose signature is the same in all its releases from 1.0 on, on the calling
 * thread alone: OpenMP's number of threads belongs to the thread that sets it, and is put back after each product.
 */
#ifndef RONDO_TENSOR_OPERATORS_GEMM_ONEDNN_H
#define RONDO_TENSOR_OPERATORS_GEMM_ONEDNN_H

#include "tensor/operators/gemm.h"

/* Looks for the library named by RONDO_ONEDNN_LIBRARY ("none": for none), then for libdnnl.so.3 and libdnnl.so.2; on
 * x86-64 alone, since elsewhere its products are plain loops. False when there is none that can be told to use one
 * thread. Once a process, by one thread. */
bool rondo_onednn_open(void);

/* Its path; "" before rondo_onednn_open, and where that found none. */
const char *rondo_onednn_library(void);

/* Copies the address of a function into *function, a pointer to one; false when the library has none. What follows
 * needs that rondo_onednn_open gave true. */
bool rondo_onednn_find(const char *name, void *function);

/* The number of its major release. */
int rondo_onednn_major(void);

/* Before and behind calls of it: begin gives what end puts back. Any thread. */
int rondo_onednn_begin(void);
void rondo_onednn_end(int threads);

/* After rondo_onednn_open gave true; any thread. False when it could not be made, for want of memory: c is then as it
 * was. */
bool rondo_onednn_run(const rondo_gemm *gemm);

#endif
