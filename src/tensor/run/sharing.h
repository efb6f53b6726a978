/* SPDX-License-Identifier: MIT
 * What compiled programs that share (rondo_compile_options.share) have in common: the stream, states and cells by name,
 * arenas, kernels. A program that shares nothing has its own. Reference counted.
 *
 * States keep their addresses. An arena is freed when no compiled program uses it any more. Its bytes belong to its
 * holder, the program that ran or was written to last; the values of other programs in it are lost.
 * Thread-compatible, with all programs that share it.
 */
#ifndef RONDO_TENSOR_RUN_SHARING_H
#define RONDO_TENSOR_RUN_SHARING_H

#include <rondo/memory.h>

#include "tensor/compile/earlier_plans.h"
#include "tensor/compile/resources.h"
#include "tensor/program/program_internal.h"
#include "tensor/run/packed_state.h"

/* A state or cell. */
typedef struct rondo_shared_value {
  char kind; /* see rondo_compiled_value */
  char *name;
  rondo_shape shape;
  void *address;              /* NULL: the state is packed */
  rondo_packed_state *packed; /* NULL: it is not */
} rondo_shared_value;

typedef struct rondo_arena {
  unsigned char *memory;
  size_t bytes;
  uint32_t users;
  const rondo_compiled *holder; /* compared only; NULL: none */
} rondo_arena;

typedef struct rondo_sharing {
  struct rondo_sharing *lender; /* whose values are among these; NULL: none */
  rondo_allocator allocator;
  rondo_device *device;
  rondo_stream *stream;
  bool is_lent; /* the stream is the caller's */
  uint32_t users;
  uint32_t round_runs; /* of a data-parallel program: runs since the last update (tensor/run/ranks.h), */
  bool is_round_known; /* unless they must be read */
  RONDO_ARRAY(rondo_shared_value) values;
  RONDO_ARRAY(void *) blocks; /* that hold the values */
  RONDO_ARRAY(rondo_arena *) arenas;
  rondo_kernel_set kernels;
  rondo_product_maker maker;
  rondo_cudnn_maker cudnn_maker;
  rondo_earlier_plans plans;
} rondo_sharing;

/* Refuses a stream of the caller's that the program `who` cannot run on: of another device, other than the stream of
 * the programs that it joins (NULL: none), or capturing. NULL is fine. */
RONDO_MUST_USE rondo_status rondo_sharing_check_stream(const char *call, const char *who, const rondo_device *device,
                                                       const rondo_sharing *joined, rondo_stream *stream);

/* With one user, on the caller's stream or (NULL) on a new one of this name. */
RONDO_MUST_USE rondo_status rondo_sharing_create(const rondo_allocator *allocator, rondo_device *device,
                                                 rondo_stream *stream, const char *name, rondo_sharing **out);
/* The same with the values of another, which stays as long as this one. */
RONDO_MUST_USE rondo_status rondo_sharing_borrow(rondo_sharing *lender, rondo_stream *stream, const char *name,
                                                 rondo_sharing **out);
/* Releases one use; the last user's work is done. NULL is allowed. */
RONDO_MUST_USE rondo_status rondo_sharing_release(rondo_sharing *sharing);

/* Its index, or RONDO_NO_VALUE. sharing may be NULL. */
uint32_t rondo_sharing_find(const rondo_sharing *sharing, const char *name);

/* Adds states and cells, whose names are copied and whose packed states are retained, and the block that holds them,
 * which it then owns.
 * Everything is as before on failure. */
RONDO_MUST_USE rondo_status rondo_sharing_adopt(rondo_sharing *sharing, void *block, const rondo_shared_value *values,
                                                size_t count);

/* Takes back the last adoption: `count` values remain, and the block is the caller's again. */
void *rondo_sharing_give_back(rondo_sharing *sharing, size_t count);

/* Takes the largest arena if it has at least `bytes` bytes, else a new one, and counts one more user. */
RONDO_MUST_USE rondo_status rondo_sharing_take_arena(rondo_sharing *sharing, size_t bytes, rondo_arena **out);
/* Counts one user less. The work of that user is done. NULL is allowed. */
RONDO_MUST_USE rondo_status rondo_sharing_leave_arena(rondo_sharing *sharing, rondo_arena *arena,
                                                      const rondo_compiled *user);

#endif
