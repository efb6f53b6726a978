/* SPDX-License-Identifier: MIT
 * A compiled program's inside: two blocks of device memory, the steps of a run with their arguments, the recorded graph
 * and exec, and what runs share: the stream, the staging memory, the cells of index checks. Nothing of the program it
 * came from is used once it is compiled. Addresses never change.
 */
#ifndef RONDO_TENSOR_COMPILED_H
#define RONDO_TENSOR_COMPILED_H

#include <rondo/capture.h>

#include "tensor/emit.h"
#include "tensor/held.h"
#include "tensor/index_check.h"
#include "tensor/staging.h"

/* One kernel or call of a run. */
typedef struct rondo_step {
  const char *operator_name; /* static */
  uint32_t operation;        /* its number in the program */
  rondo_kernel *kernel;      /* NULL: a call */
  rondo_grid grid;
  const void **args;
  size_t *arg_bytes; /* that the kernel accesses behind each argument, for verification */
  size_t arg_count;
  rondo_step_call call;
  void *memory; /* holds args, their bytes and what they point to, or what the call is given */
  size_t memory_bytes;
  uint32_t nodes_end; /* nodes of the recorded graph up to and with this step's */
} rondo_step;

typedef struct rondo_named_value {
  char kind; /* see rondo_compiled_value */
  char *name;
  rondo_shape shape;
  void *address;
} rondo_named_value;

struct rondo_compiled {
  rondo_allocator allocator;
  rondo_device *device;
  bool is_cuda; /* the device runs kernels from their CUDA source */
  char *name;   /* the program's */
  rondo_stream *stream;
  rondo_graph *graph; /* NULL: not recorded */
  rondo_exec *exec;
  unsigned char *persistent; /* states, cells, constants, cells of index checks */
  unsigned char *arena;      /* inputs and results; NULL when there are none */
  rondo_resources resources;
  RONDO_ARRAY(rondo_step) steps;
  RONDO_ARRAY(rondo_named_value) values; /* states, cells, inputs, outputs */
  RONDO_ARRAY(rondo_held_value) held;    /* of the arena */
  rondo_index_checks checks;
  rondo_staging staging;
  rondo_compiled_info info;
};

/* Plays one step on the compiled program's stream; a failure names the operator. */
RONDO_MUST_USE rondo_status rondo_compiled_play(rondo_compiled *compiled, const rondo_step *step);

#endif
