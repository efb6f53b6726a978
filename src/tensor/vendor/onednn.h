/* SPDX-License-Identifier: MIT
 * oneDNN as two libraries: its matrix products (dnnl_sgemm, the same in all releases from 1.0 on), and its
 * convolutions, which need release 2. Calls run on the calling thread only: OpenMP's number of threads belongs to the
 * thread that sets it, and is restored after each call. On x86-64 the library is used by default; on other processors
 * only if RONDO_ONEDNN_LIBRARY names it; never if RONDO_CBLAS_LIBRARY is set.
 *
 * Before 3.11.2 the library's products on x86-64 (its "gemm" kernels, with and without AVX-512) use the stack pointer
 * as a pointer into the heap for large sizes, and so do convolutions that use such products. A signal handler would
 * write its frame there. So signals are blocked during each call of such a release. Faults are not blocked: a checking
 * device handles them on an alternate stack (device/check/check_fault.c).
 *
 * Threads: any; everything is constant once rondo_library_find has found the library.
 */
#ifndef RONDO_TENSOR_VENDOR_ONEDNN_H
#define RONDO_TENSOR_VENDOR_ONEDNN_H

#include "tensor/vendor/compute_libraries.h"
#include "tensor/vendor/onednn_abi.h"

typedef struct onednn_products_api {
  ONEDNN_PRODUCT_FUNCTIONS(RONDO_LIBRARY_MEMBER)
} onednn_products_api;

typedef struct onednn_api {
  ONEDNN_FUNCTIONS(RONDO_LIBRARY_MEMBER)
  onednn_engine engine; /* never destroyed, because the library is never closed */
} onednn_api;

extern onednn_products_api rondo_onednn_product_api; /* of rondo_onednn_products */
extern onednn_api rondo_onednn;                      /* of rondo_onednn_convolutions */

/* The state that a thread restores after its calls of the library. */
typedef struct rondo_onednn_use {
  int threads;      /* of OpenMP */
  uint64_t signals; /* the mask */
} rondo_onednn_use;

/* Call them before and after calls of the library, on the same thread. In between the library uses one thread. Signals
 * are blocked if this release moves the stack pointer away from the stack. */
rondo_onednn_use rondo_onednn_begin(void);
void rondo_onednn_end(rondo_onednn_use use);

/* Logs, for debugging, that the library cannot run a pass of a convolution. Kernels cannot call rondo_log: in them that
 * name is the logarithm. */
void rondo_onednn_log_no_pass(int pass, int code);

#endif
