/* SPDX-License-Identifier: MIT
 * tile: a value repeated along its dimensions, by expand. A repeated dimension becomes two, [repeats, size], and the
 * dimensions between repeated ones are merged. If there are too many dimensions for one expand, several follow each
 * other, from the last dimension on. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>

#include "tensor/operators/common/composition.h"

/* The dimensions before and after an expand; the first of both is last here. */
typedef struct tiling {
  rondo_shape from, to;
} tiling;

static void push(tiling *t, size_t from, size_t to) {
  assert(t->from.rank < RONDO_MAX_DIMENSIONS);
  t->from.dims[t->from.rank++] = from;
  t->to.dims[t->to.rank++] = to;
}

static void reverse(rondo_shape *shape) {
  for (uint32_t d = 0; d < shape->rank / 2; d++) {
    const size_t dim = shape->dims[d];
    shape->dims[d] = shape->dims[shape->rank - 1 - d];
    shape->dims[shape->rank - 1 - d] = dim;
  }
}

/* Lays out one expand for the dimensions from *inout_end - 1 down, as many as fit; `inner` elements come after them,
 * and *inout_inner is that of the next expand. */
static tiling lay_out(const rondo_shape *shape, const size_t *repeats, uint32_t *inout_end, size_t *inout_inner) {
  tiling t = {.from = {.rank = 0}};
  size_t run = *inout_inner, all = *inout_inner;
  uint32_t d = *inout_end;
  for (; d > 0; d--) {
    if (repeats[d - 1] > 1 && t.from.rank + 3 > RONDO_MAX_DIMENSIONS) break;
    run *= shape->dims[d - 1];
    all *= shape->dims[d - 1] * repeats[d - 1];
    if (repeats[d - 1] == 1) continue;
    push(&t, run, run);
    push(&t, 1, repeats[d - 1]);
    run = 1;
  }
  for (uint32_t left = d; left > 0; left--) run *= shape->dims[left - 1];
  push(&t, run, run);
  reverse(&t.from);
  reverse(&t.to);
  *inout_end = d;
  *inout_inner = all;
  return t;
}

static rondo_status add_tile(rondo_program *program, const size_t *repeats, rondo_value *inout_value) {
  const rondo_shape shape = rondo_shape_at(program, *inout_value);
  rondo_shape result = shape;
  size_t inner = 1;
  for (uint32_t end = shape.rank; end > 0;) {
    const tiling t = lay_out(&shape, repeats, &end, &inner);
    RONDO_TRY(rondo_compose_reshape(program, *inout_value, &t.from, inout_value));
    if (t.from.rank > 1) RONDO_TRY(rondo_op_expand(program, *inout_value, t.to.dims, t.to.rank, inout_value));
  }
  for (uint32_t d = 0; d < shape.rank; d++) result.dims[d] *= repeats[d];
  return rondo_compose_reshape(program, *inout_value, &result, inout_value);
}

rondo_status rondo_op_tile(rondo_program *program, rondo_value value, const size_t *repeats, rondo_value *out_value) {
  rondo_shape shape, result;
  rondo_value tiled;
  RONDO_TRY(rondo_program_begin(program, "tile", out_value));
  RONDO_TRY(rondo_given_shape(program, value, "tile", "value", &shape));
  if (shape.rank > 0) RONDO_TRY(rondo_require("tile", "repeats", repeats));
  result = shape;
  for (uint32_t d = 0; d < shape.rank; d++) {
    if (repeats[d] == 0 || !rondo_checked_multiply(shape.dims[d], repeats[d], &result.dims[d]))
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                        "tile: dimension %u, which has %zu elements, cannot be repeated %zu times", d, shape.dims[d],
                        repeats[d]);
  }
  RONDO_TRY(rondo_shape_make("tile", shape.type, result.dims, result.rank, &result));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  rondo_status status = rondo_compose_reshape(program, value, &shape, &tiled);
  if (status == RONDO_OK) status = add_tile(program, repeats, &tiled);
  return rondo_compose_end(program, "tile", mark, status, tiled, out_value);
}
