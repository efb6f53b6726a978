/* SPDX-License-Identifier: MIT
 * oneDNN as two libraries: its matrix products (dnnl_sgemm, the same in all releases from 1.0 on), and what
 * convolutions need, which release 2 alone has. Calls run on the calling thread alone: OpenMP's number of threads
 * belongs to the thread that sets it, and is put back after each call. On x86-64 the library is used by default;
 * elsewhere only if RONDO_ONEDNN_LIBRARY names it; never where RONDO_CBLAS_LIBRARY is set.
 *
 * Before 3.11.2 the library's products on x86-64 (its "gemm" kernels, with and without AVX-512) use the stack pointer
 * as a pointer into the heap for large sizes, and so do convolutions that are made of such products. The frame of a
 * signal handler would be written there. So signals are blocked during each call of such a release. Faults are not: a
 * checking device takes them on an alternate stack (device/check/check_fault.c).
 *
 * Threads: any; everything is constant once rondo_library_find has found the library.
 */
#ifndef RONDO_VENDOR_ONEDNN_H
#define RONDO_VENDOR_ONEDNN_H

#include "vendor/libraries.h"
#include "vendor/onednn_abi.h"

typedef struct onednn_products_api {
  ONEDNN_PRODUCT_FUNCTIONS(RONDO_LIBRARY_MEMBER)
} onednn_products_api;

typedef struct onednn_api {
  ONEDNN_FUNCTIONS(RONDO_LIBRARY_MEMBER)
  onednn_engine engine; /* never destroyed, as the library is never closed */
} onednn_api;

extern onednn_products_api rondo_onednn_product_api; /* of rondo_onednn_products */
extern onednn_api rondo_onednn;                      /* of rondo_onednn_convolutions */

/* What a thread puts back after its calls of the library. */
typedef struct rondo_onednn_use {
  int threads;      /* of OpenMP */
  uint64_t signals; /* the mask */
} rondo_onednn_use;

/* Before and after calls of the library, on the same thread: the library uses one thread, and no signal handler runs
 * if this release moves the stack pointer away from the stack. */
rondo_onednn_use rondo_onednn_begin(void);
void rondo_onednn_end(rondo_onednn_use use);

/* Logs, for debugging, that the library cannot make a pass of a convolution. Kernels cannot call rondo_log themselves:
 * there it is the name of the logarithm. */
void rondo_onednn_log_no_pass(int pass, int code);

#endif
