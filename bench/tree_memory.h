/* SPDX-License-Identifier: MIT
 * The memory that trees hold, for the benchmark of trees. A failure ends the program.
 */
#ifndef RONDO_BENCH_TREE_MEMORY_H
#define RONDO_BENCH_TREE_MEMORY_H

#include "bench/memory_work.h"

typedef struct tree_memory {
  uint32_t recordings;
  uint64_t used, backed; /* of the arena: what recordings need, and what is backed */
  uint64_t
      least; /* the maximum number of bytes that are alive at once in any recording: a lower bound for every arena */
  uint64_t exec_host, exec_device;
  double record_us, replay_us; /* of a path: the steps that recorded and replayed it, until they completed */
} tree_memory;

/* A path in three states: first recorded, planned from its warm-up; with each part recorded separately, as after a
 * reset; and planned again after that. */
typedef struct tree_path_memory {
  tree_memory first, singly, planned;
} tree_path_memory;

/* A path of `parts` functions that together allocate and free in the order of the work. A buffer that outlives a part
 * is one of its outputs. It is held until the part that frees it gets it as an input and gives it up. */
void tree_memory_of_path(rondo_device *device, const memory_work *work, size_t parts, tree_path_memory *out);

/* One function, recorded for this many shapes of its input; the largest has TREE_LARGEST_SHAPE bytes. */
enum { TREE_LARGEST_SHAPE = 4 << 20, TREE_SHAPE_LAYERS = 8 };
void tree_memory_of_shapes(rondo_device *device, uint32_t shapes, tree_memory *out);

#endif
