/* SPDX-License-Identifier: MIT
 * Attention and its gradients by cuDNN (cudnn_plan.h), for values of 16 bits. Scores and softmax are F32; weights are
 * rounded to the type before they are multiplied with v. Attention does not store scores. Gradients that have the same
 * bits each time do, in a workspace; so they are computed in parts of the batch and the heads, and the workspace takes
 * about as much memory as q, k, v, y and their gradients. The result of a row all of whose columns a bias of -INFINITY
 * hides is undefined; its gradients are 0 if its sum is set to INFINITY. Threads: an attention belongs to one thread at
 * a time, but bound ones may run concurrently.
 */
#ifndef RONDO_TENSOR_VENDOR_CUDNN_ATTENTION_H
#define RONDO_TENSOR_VENDOR_CUDNN_ATTENTION_H

#include "tensor/vendor/cudnn_plan.h"

/* Elements from one batch, one head and one row to the next. A row is contiguous. */
typedef struct rondo_attention_strides {
  size_t batch, head, row;
} rondo_attention_strides;

/* q [batches, heads, rows, size], k and v [batches, groups, columns, size], heads a multiple of groups. The sums are
 * [batches, heads, rows]: the logarithms of the sums of exponentials. */
typedef struct rondo_fused_attention_shape {
  rondo_type type;  /* F16 or BF16 */
  bool is_gradient; /* computes dq, dk and dv instead of y */
  bool keeps_sums;  /* also writes the sums; not for gradients, which read them */
  bool causal;      /* row i sees columns 0 to i; only if there are as many columns as rows */
  bool has_bias;    /* numbers of the type are added to the scaled scores, [batches, heads, rows, columns] */
  size_t window; /* row i sees columns less than this far from i; 0: any. Only if there are as many columns as rows */
  size_t batches, heads, groups, rows, columns, size;
  rondo_attention_strides q, k, y; /* k: of v too; also of their gradients */
  rondo_attention_strides bias;    /* a batch or head of 0: all have the same; multiples of 16 bytes */
  float scale;
} rondo_fused_attention_shape;

typedef struct rondo_fused_attention rondo_fused_attention;

/* In device memory, aligned to 16 bytes. */
typedef struct rondo_fused_attention_memory {
  const void *q, *k, *v;
  const void *bias; /* NULL without has_bias */
  void *y, *sums;   /* written, or read by gradients; sums NULL without keeps_sums */
  const void *dy;   /* these four are for gradients only */
  void *dq, *dk, *dv;
  void *workspace; /* rondo_fused_attention_workspace bytes */
} rondo_fused_attention_memory;

/* Prepares attention. *out is NULL, with status OK, if own kernels are to compute it: the device does not run
 * libraries, there is little to multiply (RONDO_CUDNN_LEAST), cuDNN is not available, its version is known to compute
 * this wrongly, or it has no engine for this shape that gives the same bits each time. Errors: as
 * rondo_cudnn_plan_make. */
RONDO_MUST_USE rondo_status rondo_fused_attention_create(rondo_cudnn_maker *maker,
                                                         const rondo_fused_attention_shape *shape,
                                                         rondo_fused_attention **out);
void rondo_fused_attention_destroy(rondo_fused_attention *attention); /* NULL is allowed */

size_t rondo_fused_attention_workspace(const rondo_fused_attention *attention);

/* Sets the memory, once, before the first run. Errors: as rondo_fused_attention_create. */
RONDO_MUST_USE rondo_status rondo_fused_attention_bind(rondo_fused_attention *attention,
                                                       const rondo_fused_attention_memory *memory);

/* Enqueues it on the stream, or captures it. Errors: DEVICE_LOST, EXECUTION_FAILED with the library's code and message.
 */
RONDO_MUST_USE rondo_status rondo_fused_attention_run(const rondo_fused_attention *attention, rondo_stream *stream);

#endif
