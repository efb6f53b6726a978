/* SPDX-License-Identifier: MIT
 * Working in the device's context, and turning the driver's codes into statuses.
 */
#ifndef RONDO_DEVICE_CUDA_CUDA_CONTEXT_H
#define RONDO_DEVICE_CUDA_CUDA_CONTEXT_H

#include "device/cuda/cuda.h"

/* For work on streams, which a capture sees. Errors: DEVICE_LOST; what making the context current says. Nothing is to
 * be left then. */
RONDO_MUST_USE rondo_status cuda_enter_for_work(cuda_device *device, cuda_scope *out);

/* The same for calls that act at once, under the relaxed mode. */
RONDO_MUST_USE rondo_status cuda_enter(cuda_device *device, cuda_scope *out);

/* The relaxed mode, too, for what was entered for work. */
void cuda_relax(cuda_scope *scope);

/* For calls that free, on a device that may be lost. Where the context cannot be made current they are made without:
 * the driver knows it from what is freed. */
void cuda_enter_to_free(cuda_device *device, cuda_scope *out);
void cuda_leave(const cuda_scope *scope);

/* Leaves, and returns what cuda_check makes of the code of the call that was made inside. */
rondo_status cuda_leave_with(const cuda_scope *scope, cu_result code, const char *format, ...) RONDO_PRINTF(3, 4);

/* OK for CU_OK. Else the status that the code stands for, with its number and name, behind a message that says what was
 * tried; NOT_READY keeps none. A sticky code makes the device lost. */
rondo_status cuda_check(cuda_device *device, cu_result code, const char *format, ...) RONDO_PRINTF(3, 4);
/* The same for an error about one node. `doing` is a word such as "patching ". The message names the node and, unless
 * it is NULL, the graph by its label. */
rondo_status cuda_check_node(cuda_device *device, cu_result code, const cuda_node *node, const char *doing,
                             const char *graph);
RONDO_MUST_USE rondo_status cuda_call_library(rondo_device *device, rondo_library_use use, rondo_library_call call,
                                              void *user);

#endif
