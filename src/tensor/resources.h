/* SPDX-License-Identifier: MIT
 * What a compiled program makes ready once and uses at every run: kernels today, library handles later. Something that
 * is first asked for while the program is being captured was missed by the warm-up; it is made, and noted by name, so
 * that the compilation can refuse (FW-2).
 */
#ifndef RONDO_TENSOR_RESOURCES_H
#define RONDO_TENSOR_RESOURCES_H

#include <rondo/program.h>

#include "base/array.h"

#define RONDO_LATE_TEXT 256

typedef struct rondo_ready_kernel {
  const rondo_kernel_options *code;
  rondo_kernel *kernel;
} rondo_ready_kernel;

typedef struct rondo_resources {
  rondo_allocator allocator;
  rondo_device *device;
  bool capturing;
  char late[RONDO_LATE_TEXT]; /* what was made while capturing, by name; "" when nothing */
  RONDO_ARRAY(rondo_ready_kernel) kernels;
} rondo_resources;

void rondo_resources_init(rondo_resources *resources, const rondo_allocator *allocator, rondo_device *device);
void rondo_resources_deinit(rondo_resources *resources);

/* The kernel of this code, made when first asked for. It belongs to the resources. */
RONDO_MUST_USE rondo_status rondo_resources_kernel(rondo_resources *resources, const rondo_kernel_options *code,
                                                   rondo_kernel **out_kernel);

#endif
