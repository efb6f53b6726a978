/* SPDX-License-Identifier: MIT
 * Packed states: states whose elements are stored in the order that a library or kernel wants, so that no run copies
 * them. Elements have four bytes or one.
 * The order is a table for each of three dimensions, [rows, columns, taps] of the plain rows, whose entries add up to
 * the index of an element.
 *
 * A state is packed when the first program with it is compiled (tensor/compile/state_packing.h). It stays so for all
 * programs that share it. Once one of them needs the plain rows, the state has both forms. Whatever changes the state
 * then changes the rows first and packs them again: rondo_values_write, rondo_compiled_broadcast, and a step after each
 * operator that updates it.
 *
 * CPU devices alone have packed states, so their memory can be read by the host. Threads: as tensor/run/sharing.h says.
 */
#ifndef RONDO_TENSOR_RUN_PACKED_STATE_H
#define RONDO_TENSOR_RUN_PACKED_STATE_H

#include <rondo/kernel.h>
#include <rondo/memory.h>

#include "base/allocation.h"

typedef struct rondo_packed_state {
  rondo_allocator allocator;
  uint32_t users;
  size_t bytes; /* of an element */
  size_t rows, columns, taps;
  size_t stored;              /* elements in memory: those of the rows, and any padding between them, which is 0 */
  size_t *row, *column, *tap; /* element [r][c][t] of the plain rows is at row[r] + column[c] + tap[t] */
  rondo_device *device;       /* set with `address` */
  unsigned char *address;     /* the packed elements, in memory of the states; NULL: not placed yet */
  unsigned char *plain;       /* the plain rows; NULL: no program has needed them */
} rondo_packed_state;

/* With one user, no padding, and tables of zeros for the caller to fill. */
RONDO_MUST_USE rondo_status rondo_packed_state_create(const rondo_allocator *allocator, size_t bytes, size_t rows,
                                                      size_t columns, size_t taps, rondo_packed_state **out);
rondo_packed_state *rondo_packed_state_retain(rondo_packed_state *state);
/* Frees the rows and the state with its last user. NULL is fine. */
RONDO_MUST_USE rondo_status rondo_packed_state_release(rondo_packed_state *state);

static inline size_t rondo_packed_state_elements(const rondo_packed_state *state) {
  return state->rows * state->columns * state->taps;
}

/* Bytes of the packed elements in memory. */
static inline size_t rondo_packed_state_bytes(const rondo_packed_state *state) { return state->stored * state->bytes; }

/* Whether both have the same order. */
bool rondo_packed_state_is_alike(const rondo_packed_state *a, const rondo_packed_state *b);

/* Makes sure that the state has its plain rows. Nothing changes it at the moment. */
RONDO_MUST_USE rondo_status rondo_packed_state_need_rows(rondo_packed_state *state);

/* Copies the packed elements into plain rows in host memory. Nothing changes the state at the moment. */
void rondo_packed_state_unpack(const rondo_packed_state *state, void *out_rows);

/* The kernel that packs elements, and its arguments: `count` elements of the plain rows, from element `first` on, of
 * which the first is at `from`, to the beginning `to` of all packed elements. */
extern const rondo_kernel_options rondo_pack_code;
typedef struct rondo_pack_call {
  const rondo_packed_state *state;
  size_t first, count;
  const void *from;
  void *to;
} rondo_pack_call;
#define RONDO_PACK_ARGUMENTS(call) RONDO_ARGS(&(call).state, &(call).first, &(call).count, &(call).from, &(call).to)
rondo_grid rondo_pack_grid(const rondo_pack_call *call);

/* A call that packs all rows again. */
rondo_pack_call rondo_pack_all(const rondo_packed_state *state);

#endif
