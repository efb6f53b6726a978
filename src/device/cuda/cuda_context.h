/* SPDX-License-Identifier: MIT
 * Working in the device's context, and turning the driver's codes into statuses. Threads: any.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_CONTEXT_H
#define RONDO_DEVICE_CUDA_CUDA_CONTEXT_H

#include "device/cuda/cuda.h"

/* The calling thread works in the device's context from enter to leave. */
typedef struct cuda_scope {
  cuda_device *device; /* NULL: not entered */
  cu_context before;
  bool has_mode; /* the capture mode was changed, to relaxed */
  cu_capture_mode mode;
} cuda_scope;

/* For work on streams, which a capture sees. Errors: DEVICE_LOST; what making the context current says. Then
 * nothing was entered. */
RONDO_MUST_USE rondo_status cuda_enter_for_work(cuda_device *device, cuda_scope *out);

/* The same for calls that act at once, in the relaxed capture mode. */
RONDO_MUST_USE rondo_status cuda_enter(cuda_device *device, cuda_scope *out);

/* Changes to the relaxed mode in a scope that was entered for work. */
void cuda_relax(cuda_scope *scope);

/* For calls that free, also on a lost device. If the context cannot be made current, they are made without it: the
 * driver knows it from what is freed. */
void cuda_enter_to_free(cuda_device *device, cuda_scope *out);

/* Leaves what was entered. Nothing happens if nothing was. */
void cuda_leave(cuda_scope *scope);

/* Declares a scope that ends with its block, also by return. */
#define CUDA_SCOPE(name) __attribute__((cleanup(cuda_leave))) cuda_scope name = {0}

/* OK for CU_OK. Else the status of the code, and an error with the code's number and name and a message that says what
 * was tried. NOT_READY has no error. A code that destroys the context makes the device lost. */
rondo_status cuda_check(cuda_device *device, cu_result code, const char *format, ...) RONDO_PRINTF(3, 4);
/* cuda_check, and the end of the calling function unless the code is CU_OK: for calls that are made once for each node,
 * where passing the format costs too much. */
#define CUDA_TRY(device, code, ...)                                                                         \
  do {                                                                                                      \
    const cu_result cuda_try_code = (code);                                                                 \
    if (__builtin_expect(cuda_try_code != CU_OK, 0)) return cuda_check(device, cuda_try_code, __VA_ARGS__); \
  } while (0)
/* The same for an error about one node. `doing` is a word such as "patching ". The message names the node and, unless
 * it is NULL, the graph by its label. */
rondo_status cuda_check_node(cuda_device *device, cu_result code, const cuda_node *node, const char *doing,
                             const char *graph);
RONDO_MUST_USE rondo_status cuda_call_library(rondo_device *device, rondo_library_use use, rondo_library_call call,
                                              void *user);

#endif
