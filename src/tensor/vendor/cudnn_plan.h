/* SPDX-License-Identifier: MIT
 * Plans of cuDNN (compute_libraries.h: RONDO_CUDNN_LIBRARY, else libcudnn.so.9): a graph of operations, the engine that
 * computes it, and its memory. The library's heuristics list the engines, the fastest first, and the first that is
 * acceptable is used: it gives the same bits each time, and sums in F32, so no partial results are added in order of
 * completion. F32 may be computed by Winograd's or Fourier's transform, as in PyTorch. Engines say these things of
 * themselves in notes; some that transform have no note of it (gradients of weights by "winograd_nonfused", seen with
 * cuDNN 9). The caller provides the workspace.
 *
 * Threads: a plan and a maker belong to one thread at a time, but bound plans may run concurrently.
 */
#ifndef RONDO_TENSOR_VENDOR_CUDNN_PLAN_H
#define RONDO_TENSOR_VENDOR_CUDNN_PLAN_H

#include <pthread.h>
#include <rondo/stream.h>
#include <rondo/type.h>

#include "base/array.h"
#include "tensor/vendor/cudnn_abi.h"

/* The state that plans of a device share. */
typedef struct rondo_cudnn_maker {
  rondo_device *device;
  rondo_allocator allocator;
  cudnn_handle handle; /* NULL before the first plan */
  bool allow_tf32;     /* for the factors of F32 products and convolutions of plans that are created from now on */
  pthread_mutex_t use; /* guards the handle, which has one stream, while work is enqueued */
} rondo_cudnn_maker;

void rondo_cudnn_maker_init(rondo_cudnn_maker *maker, rondo_device *device, const rondo_allocator *allocator);

/* Call it after all plans of the maker are destroyed. */
void rondo_cudnn_maker_deinit(rondo_cudnn_maker *maker);

/* The descriptors that a plan is built from are kept as long as it. A plan with a maker only is empty. */
typedef struct rondo_cudnn_plan {
  rondo_cudnn_maker *maker;
  RONDO_ARRAY(cudnn_descriptor) descriptors; /* in order of creation */
  const char *what;                          /* it computes, for messages: "a convolution"; static */
  cudnn_descriptor plan;                     /* NULL: no engine was found */
  RONDO_ARRAY(cudnn_descriptor) packs;       /* the memory of each run of the engine, in their order */
  bool is_lacking;                           /* the library does not support something of it */
  size_t workspace_bytes;
} rondo_cudnn_plan;

/* An attribute of a descriptor. */
typedef struct rondo_cudnn_setting {
  cudnn_attribute attribute;
  cudnn_element_type type;
  int64_t count;
  const void *elements;
} rondo_cudnn_setting;

#define RONDO_CUDNN_SETTINGS(...)             \
  (const rondo_cudnn_setting[]){__VA_ARGS__}, \
      sizeof((const rondo_cudnn_setting[]){__VA_ARGS__}) / sizeof(rondo_cudnn_setting)

/* CUDNN_F32, CUDNN_F16 or CUDNN_BF16. */
int rondo_cudnn_type(rondo_type type);

/* Fills an empty plan with descriptors and operations: describes, and chooses the engine of the operations. */
typedef rondo_status (*rondo_cudnn_describe)(rondo_cudnn_plan *plan, void *user);

/* Calls `describe` where the library may be called, once the handle exists. Afterwards plan->plan is NULL, with status
 * OK, if the library does not support it. Errors: OUT_OF_MEMORY, DEVICE_LOST, EXECUTION_FAILED with the library's code
 * and message. */
RONDO_MUST_USE rondo_status rondo_cudnn_plan_make(rondo_cudnn_plan *plan, rondo_cudnn_describe describe, void *user);

/* Within `describe`: creates a descriptor with these attributes, which the plan keeps. If the library does not support
 * it, or something before it, sets is_lacking, and *out is NULL. */
RONDO_MUST_USE rondo_status rondo_cudnn_add(rondo_cudnn_plan *plan, cudnn_kind kind,
                                            const rondo_cudnn_setting *settings, size_t count, cudnn_descriptor *out);

/* Within `describe`, at the end: chooses the engine. type: of the operands. most_workspace_bytes: an engine that needs
 * more is not used. */
RONDO_MUST_USE rondo_status rondo_cudnn_choose(rondo_cudnn_plan *plan, const cudnn_descriptor *operations,
                                               int64_t count, rondo_type type, double most_workspace_bytes);

/* Frees the descriptors; the plan is empty again. */
void rondo_cudnn_plan_free(rondo_cudnn_plan *plan);

/* Adds the memory of a run of the engine, before the first rondo_cudnn_plan_run: the addresses of the tensors with
 * these numbers, in device memory aligned to 16 bytes, or in host memory for a tensor by value, whose contents must
 * stay. Errors: as rondo_cudnn_plan_make. */
RONDO_MUST_USE rondo_status rondo_cudnn_plan_bind(rondo_cudnn_plan *plan, const int64_t *numbers,
                                                  const void *const *addresses, int64_t count, const void *workspace);

/* Enqueues the engine on the stream, or captures it, for each memory in the order of binding. Errors: DEVICE_LOST,
 * EXECUTION_FAILED with the library's code and message. */
RONDO_MUST_USE rondo_status rondo_cudnn_plan_run(const rondo_cudnn_plan *plan, rondo_stream *stream);

#endif
