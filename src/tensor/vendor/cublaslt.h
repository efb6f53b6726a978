/* SPDX-License-Identifier: MIT
 * Matrix products by cuBLASLt (vendor/libraries.h: RONDO_CUBLASLT_LIBRARY, else libcublasLt.so.13 or .12). How a
 * product is made is chosen once, for its shape, among the ways that give the same bits each time: no way that adds
 * parts as they come. The scratch memory that the way needs is the caller's.
 *
 * Threads: a product and a maker belong to one thread at a time.
 */
#ifndef RONDO_TENSOR_VENDOR_CUBLASLT_H
#define RONDO_TENSOR_VENDOR_CUBLASLT_H

#include <rondo/operators.h>

#include "base/allocation.h"
#include "vendor/cublaslt_abi.h"

/* c [m, n] = activation of a' b' (+ bias [n]) of matrices stored row by row, as in operators/gemm.h; `batches` of them,
 * whose a and b lie so many elements apart, and c one behind another. All are of one type of float; sums are made in
 * F32, of factors as they are, unless their maker allows TF32. */
typedef struct rondo_product_shape {
  rondo_type type;
  size_t m, n, k;
  size_t batches, a_stride, b_stride;
  bool transpose_a, transpose_b, has_bias;
  rondo_activation activation; /* see rondo_product_takes */
  bool keeps_unactivated;      /* what gelu is applied to is written, too */
} rondo_product_shape;

/* Whether the library can apply this activation to a result of `columns`. Its gelu is the form by tanh. */
bool rondo_product_takes(rondo_activation activation, bool keeps_unactivated, size_t columns);

/* What products of a device are made with. */
typedef struct rondo_product_maker {
  rondo_device *device;
  rondo_allocator allocator;
  cublaslt_handle handle; /* NULL before the first product */
  bool allow_tf32;        /* for the factors of F32 products made from now on */
} rondo_product_maker;

typedef struct rondo_product rondo_product;

/* Where a product's matrices lie, in memory of the device, aligned to 256. */
typedef struct rondo_product_memory {
  const void *a, *b, *bias;
  void *c, *unactivated;
  void *workspace; /* rondo_product_workspace bytes */
} rondo_product_memory;

/* Makes one ready. *out becomes NULL, with status OK, where products are to be made otherwise: the device takes no work
 * of libraries, the product is so small that own kernels are quicker (RONDO_CUBLASLT_LEAST; from 1 on, all are the
 * library's), there is no cuBLASLt, or it has no way for this shape that keeps the device busy. Errors: OUT_OF_MEMORY,
 * DEVICE_LOST, EXECUTION_FAILED with the library's code.
 */
RONDO_MUST_USE rondo_status rondo_product_create(rondo_product_maker *maker, const rondo_product_shape *shape,
                                                 rondo_product **out);
void rondo_product_destroy(rondo_product *product); /* NULL is fine */

size_t rondo_product_workspace(const rondo_product *product);
bool rondo_product_activates(const rondo_product *product); /* its shape has an activation */

/* Fixes the memory, before the first run. Errors: EXECUTION_FAILED with the library's code. */
RONDO_MUST_USE rondo_status rondo_product_bind(rondo_product *product, const rondo_product_memory *memory);

/* Queues the product on the stream, or captures it. Errors: DEVICE_LOST, EXECUTION_FAILED with the library's code. */
RONDO_MUST_USE rondo_status rondo_product_run(const rondo_product *product, rondo_stream *stream);

/* After its products are destroyed. */
void rondo_product_maker_deinit(rondo_product_maker *maker);

#endif
