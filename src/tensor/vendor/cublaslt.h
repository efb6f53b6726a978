/* SPDX-License-Identifier: MIT
 * Matrix products by cuBLASLt (compute_libraries.h: RONDO_CUBLASLT_LIBRARY, else libcublasLt.so.13 or
 * .12). The algorithm of a product is chosen once, for its shape. Only algorithms that give the same bits each time are
 * used, so none that adds partial results in order of completion. The caller provides the workspace.
 *
 * Threads: a product and a maker belong to one thread at a time.
 */
#ifndef RONDO_TENSOR_VENDOR_CUBLASLT_H
#define RONDO_TENSOR_VENDOR_CUBLASLT_H

#include <rondo/operators.h>

#include "base/allocation.h"
#include "tensor/vendor/cublaslt_abi.h"

/* c [m, n] = activation of a' b' (+ bias [n]), for matrices stored by rows, as in operators/gemm.h. A batch has
 * `batches` products; strides give the distance between its matrices a and b in elements, and its matrices c are
 * contiguous. All have one floating-point type. Sums are accumulated in F32. Factors are not rounded unless the maker
 * allows TF32.
 *
 * Or a and b are I8, and c is I32: exact sums, of a and the transpose of b, with neither bias nor activation. n and k
 * are multiples of RONDO_INTEGER_PRODUCT_UNIT, and k is at most RONDO_INTEGER_PRODUCT_DEPTH, so that no sum overflows.
 *
 * Or a and b are 8-bit floats, not both E5M2, and c is a float: of a and the transpose of b, each times its scales,
 * without an activation. n and k are multiples of RONDO_FLOAT8_PRODUCT_UNIT. A bias has c's type, which is not F32.
 * GPUs of compute capability 8.9 have such products; the library refuses them on others.
 */
#define RONDO_INTEGER_PRODUCT_UNIT 16
#define RONDO_INTEGER_PRODUCT_DEPTH 131056
#define RONDO_FLOAT8_PRODUCT_UNIT 16
typedef struct rondo_product_shape {
  rondo_type type;
  rondo_type type_b, type_c; /* of 8-bit floats, whose a has `type` */
  bool scales_rows;          /* there is a scale for each row of a and of b as it is stored, not one for each of both */
  size_t m, n, k;
  size_t batches, a_stride, b_stride;
  bool transpose_a, transpose_b, has_bias;
  rondo_activation activation; /* see rondo_product_takes */
  bool keeps_unactivated;      /* also writes the input of gelu */
} rondo_product_shape;

/* Whether the library can apply this activation to a result of `columns` columns. Its gelu is the tanh approximation.
 * */
bool rondo_product_takes(rondo_activation activation, bool keeps_unactivated, size_t columns);

/* The state that products of a device share. */
typedef struct rondo_product_maker {
  rondo_device *device;
  rondo_allocator allocator;
  cublaslt_handle handle; /* NULL before the first product */
  bool allow_tf32;        /* for the factors of F32 products that are created from now on */
} rondo_product_maker;

typedef struct rondo_product rondo_product;

/* The matrices of a product, in device memory, aligned to 256 bytes. */
typedef struct rondo_product_memory {
  const void *a, *b, *bias;
  const float *a_scales, *b_scales; /* of 8-bit floats */
  void *c, *unactivated;
  void *workspace; /* rondo_product_workspace bytes */
} rondo_product_memory;

/* Prepares a product. *out is NULL, with status OK, if own kernels are to compute it: the device does not run
 * libraries, own kernels are faster for a product of this size (RONDO_CUBLASLT_LEAST; at 1 or less,
 * the library computes all), cuBLASLt is not available, or it has no algorithm for this shape that keeps the device
 * busy. Errors: OUT_OF_MEMORY, DEVICE_LOST, EXECUTION_FAILED with the library's code. */
RONDO_MUST_USE rondo_status rondo_product_create(rondo_product_maker *maker, const rondo_product_shape *shape,
                                                 rondo_product **out);
void rondo_product_destroy(rondo_product *product); /* NULL is allowed */

size_t rondo_product_workspace(const rondo_product *product);

/* Whether the products have one shape, so that the same kernels compute them. */
bool rondo_product_is_alike(const rondo_product *a, const rondo_product *b);
bool rondo_product_activates(const rondo_product *product);  /* its shape has an activation */
bool rondo_product_is_integer(const rondo_product *product); /* its factors are I8 */

/* Sets the memory, before the first run. Errors: EXECUTION_FAILED with the library's code. */
RONDO_MUST_USE rondo_status rondo_product_bind(rondo_product *product, const rondo_product_memory *memory);

/* Enqueues the product on the stream, or captures it. Errors: DEVICE_LOST, EXECUTION_FAILED with the library's code. */
RONDO_MUST_USE rondo_status rondo_product_run(const rondo_product *product, rondo_stream *stream);

/* Call it after all products of the maker are destroyed. */
void rondo_product_maker_deinit(rondo_product_maker *maker);

#endif
