/* SPDX-License-Identifier: MIT
 * Buffers: reference-counted handles of memory. A buffer is valid in one generation. Its memory is in the arena (then
 * its bit of the path is set while it is retained), is owned by the buffer, belongs to the caller, or is a part of
 * another buffer, which it retains.
 *
 * Threads: any thread may retain and release. The last release pushes the buffer onto a lock-free list, which the tree
 * empties at its next call (rondo_path_settle). Everything else belongs to the tree's thread. The commons outlive the
 * tree until the last buffer is gone.
 */
#ifndef RONDO_TREE_PATH_BUFFER_H
#define RONDO_TREE_PATH_BUFFER_H

#include <stdatomic.h>

#include <rondo/tree.h>

#include "base/allocation.h"

#define RONDO_NO_GENERATION 0                       /* buffers that belong to no step; generations are counted from 1 */
#define RONDO_NESTED_GENERATION (UINT64_C(1) << 63) /* generations of NESTED buffers are counted from here */

/* The size of a buffer, with its type and shape. */
typedef struct rondo_buffer_layout {
  size_t bytes;
  uint32_t type, rank;
  bool has_rows; /* RONDO_OUTPUT_ROWS */
  size_t shape[RONDO_TREE_MAX_RANK];
} rondo_buffer_layout;

/* The name of a function. It exists as long as buffers refer to it. */
typedef struct rondo_origin {
  struct rondo_origin *next;
  char *name;
  size_t buffers; /* that refer to it */
  bool is_retired;
} rondo_origin;

/* What buffers share with their tree. */
typedef struct rondo_tree_commons {
  rondo_allocator allocator;
  rondo_tree *tree;
  atomic_size_t references; /* after the tree is destroyed: one for each buffer that is not spare */
  size_t buffers_out;       /* before that: the number of these buffers; only the tree's thread counts them */
  _Atomic bool is_gone;     /* the tree was destroyed */
  uint64_t generation;
  uint64_t nested_generation; /* of NESTED buffers, during their capture; otherwise RONDO_NO_GENERATION */
  uint64_t nested_captures;
  _Atomic(rondo_buffer *) released; /* by `next`; `sealed` once the tree is destroyed */
  rondo_origin *origins;            /* all that exist */
  rondo_buffer *spare;              /* by `next` */
} rondo_tree_commons;

typedef enum rondo_buffer_kind {
  RONDO_BUFFER_ARENA = 1, /* a fresh output of a recording */
  RONDO_BUFFER_OWNED,     /* memory of the tree's pool */
  RONDO_BUFFER_BORROWED,  /* memory of the caller or of the caller's capture; or no memory */
  RONDO_BUFFER_PART,      /* of `base` */
  RONDO_BUFFER_NESTED     /* of a call inside a body that is recorded or captured: freed there */
} rondo_buffer_kind;

struct rondo_buffer {
  atomic_uint references;
  rondo_buffer_kind kind;
  rondo_tree_commons *commons;
  rondo_origin *origin;      /* NULL: rondo_buffer_create */
  uint64_t generation, step; /* generation: a PART's is its base's */
  char *address;             /* NULL: 0 bytes, a PART, or an OWNED one that expired and was freed */
  size_t offset;             /* PART: in its base */
  rondo_buffer_layout extent;
  uint32_t output;              /* of the function */
  uint32_t bit;                 /* ARENA: on the path. OWNED: in the path warm-up */
  size_t capacity;              /* ARENA: bytes in the arena; the extent may be only the first rows */
  bool is_recorded;             /* an output of a recorded or replayed call; a PART's is its base's */
  bool is_of_warm_up;           /* OWNED: an output of a call in a path warm-up */
  rondo_buffer *base;           /* PART: a reference to the whole, which is no PART */
  rondo_buffer *next;           /* released, or spare */
  rondo_buffer *before, *after; /* OWNED: in one of the tree's lists */
};

RONDO_MUST_USE rondo_status rondo_commons_create(const rondo_allocator *allocator, rondo_tree_commons **out);
/* Called when the tree is destroyed. From now on, releasing a buffer frees it at once, and the last one frees the
 * commons. Returns the buffers that were released before. */
rondo_buffer *rondo_commons_seal(rondo_tree_commons *commons);
/* Releases the tree's reference, after sealing. */
void rondo_commons_release(rondo_tree_commons *commons);

/* NESTED buffers are valid during their capture. */
static inline void rondo_commons_begin_nested(rondo_tree_commons *commons) {
  commons->nested_generation = RONDO_NESTED_GENERATION + ++commons->nested_captures;
}
static inline void rondo_commons_end_nested(rondo_tree_commons *commons) {
  commons->nested_generation = RONDO_NO_GENERATION;
}

RONDO_MUST_USE rondo_status rondo_origin_create(rondo_tree_commons *commons, const char *name, rondo_origin **out);
/* Called when the function is destroyed. The last buffer frees the name. */
void rondo_origin_retire(rondo_tree_commons *commons, rondo_origin *origin);

/* Returns a spare or new buffer, zeroed, with one reference. Counts a new one in *inout_allocations. */
RONDO_MUST_USE rondo_status rondo_buffer_acquire(rondo_tree_commons *commons, rondo_origin *origin,
                                                 uint64_t *inout_allocations, rondo_buffer **out);
/* Makes a settled buffer spare. It must be in no list and retain nothing. */
void rondo_buffer_put_back(rondo_buffer *buffer);

/* Pushes a buffer without references onto the list that the tree empties. Frees it if the tree is gone. */
void rondo_buffer_push(rondo_buffer *buffer);

/* Whether its tree was destroyed; for a part, the tree of its base. */
static inline bool rondo_buffer_is_gone(const rondo_buffer *buffer) {
  return atomic_load_explicit(&buffer->commons->is_gone, memory_order_relaxed) ||
         (buffer->base != NULL && atomic_load_explicit(&buffer->base->commons->is_gone, memory_order_relaxed));
}

/* Whether the buffer is valid now; and the error of `call` if it is not. */
static inline bool rondo_buffer_is_current(const rondo_buffer *buffer) {
  const rondo_buffer *memory = buffer->base != NULL ? buffer->base : buffer;
  const rondo_tree_commons *commons = memory->commons;
  return (memory->generation == RONDO_NO_GENERATION || memory->generation == commons->generation ||
          memory->generation == commons->nested_generation) &&
         !rondo_buffer_is_gone(buffer);
}
rondo_status rondo_buffer_refuse_stale(const char *call, const rondo_buffer *buffer);

/* Whether it is an output of a call in the current path warm-up, or a part of one. */
static inline bool rondo_buffer_is_of_warm_up(const rondo_buffer *buffer, const rondo_tree_commons *commons) {
  const rondo_buffer *memory = buffer->base != NULL ? buffer->base : buffer;
  return memory->is_of_warm_up && memory->kind == RONDO_BUFFER_OWNED && memory->commons == commons &&
         memory->generation == commons->generation;
}

/* Its address, even if the buffer is not valid. */
static inline char *rondo_buffer_memory(const rondo_buffer *buffer) {
  if (buffer->base == NULL) return buffer->address;
  return buffer->base->address == NULL ? NULL : buffer->base->address + buffer->offset;
}

/* Reads type, shape and name from the options, which may be NULL. Without a name, *out_name is "". */
RONDO_MUST_USE rondo_status rondo_layout_read(const char *call, size_t bytes, const rondo_output_options *options,
                                              rondo_buffer_layout *out, const char **out_name);

#endif
