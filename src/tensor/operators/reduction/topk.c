/* SPDX-License-Identifier: MIT
 * topk: the k largest or smallest elements along a dimension, the best first, and their indices, as torch.topk. Of
 * equal elements, the first ones come first; NaN is larger than all numbers. The gradient goes to the elements.
 *
 * On a CPU, a heap of the best so far, the worst of them on top, is in the results' indices. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"

enum { DIMENSION, COUNT }; /* sizes */
enum { SMALLEST };         /* flags */
enum { VALUES, INDICES };  /* results */

/* A scalar argument of the kernel; without padding. The value is [outer, size, inner], results [outer, k, inner]. */
typedef struct topk_shape {
  size_t outer, size, inner, k, smallest;
} topk_shape;

/* Kernel ----------------------------------------------------------------------------------------------------------- */

/* A number that is larger for better elements. */
static int64_t rank_of_float(float x, bool smallest) {
  const uint32_t bits = rondo_float_bits(x), magnitude = bits & 0x7fffffffu;
  const int64_t ordered = (bits >> 31) != 0 ? -(int64_t)magnitude : (int64_t)magnitude;
  const int64_t rank = magnitude > 0x7f800000u ? INT32_MAX : ordered;
  return smallest ? -rank : rank;
}

static int64_t rank_of_integer(int64_t x, bool smallest) { return smallest ? ~x : x; }

/* The ranks of `count` (at most RONDO_CHUNK) neighbouring elements. */
static void load_ranks(rondo_type type, const void *x, size_t first, size_t count, bool smallest, int64_t *ranks) {
  float floats[RONDO_CHUNK];
  int64_t integers[RONDO_CHUNK];
  if (rondo_is_integer(type)) {
    const int64_t *chunk = rondo_load_integers(type, x, first, count, integers);
    for (size_t i = 0; i < count; i++) ranks[i] = rank_of_integer(chunk[i], smallest);
  } else {
    const float *chunk = rondo_load_chunk(type, x, first, count, floats);
    for (size_t i = 0; i < count; i++) ranks[i] = rank_of_float(chunk[i], smallest);
  }
}

/* One column of the value, and that of the indices. Elements are `inner` apart. */
typedef struct column {
  const topk_shape *shape;
  rondo_type type;
  const void *x;
  size_t first; /* in x */
  int32_t *indices;
} column;

static int64_t rank_at(const column *c, int32_t index) {
  int64_t rank;
  load_ranks(c->type, c->x, c->first + (size_t)index * c->shape->inner, 1, c->shape->smallest != 0, &rank);
  return rank;
}

static int32_t *entry(const column *c, size_t place) { return &c->indices[place * c->shape->inner]; }

/* Whether entry a is worse than b: of equal elements, the later one is. */
static bool is_worse(const column *c, int32_t a, int32_t b) {
  const int64_t of_a = rank_at(c, a), of_b = rank_at(c, b);
  return of_a != of_b ? of_a < of_b : a > b;
}

/* Moves the entry at `place` down to where it belongs in the heap of `count` entries. */
static void sink(const column *c, size_t place, size_t count) {
  const int32_t moved = *entry(c, place);
  for (size_t child = 2 * place + 1; child < count; child = 2 * place + 1) {
    if (child + 1 < count && is_worse(c, *entry(c, child + 1), *entry(c, child))) child++;
    if (!is_worse(c, *entry(c, child), moved)) break;
    *entry(c, place) = *entry(c, child);
    place = child;
  }
  *entry(c, place) = moved;
}

/* Puts the elements from k on that are better than the worst of the heap into it. */
static void search(const column *c) {
  const topk_shape *s = c->shape;
  const size_t together = s->inner == 1 ? RONDO_CHUNK : 1;
  int64_t ranks[RONDO_CHUNK], worst = rank_at(c, *entry(c, 0));
  for (size_t at = s->k, length; at < s->size; at += length) {
    length = rondo_smaller(together, s->size - at);
    load_ranks(c->type, c->x, c->first + at * s->inner, length, s->smallest != 0, ranks);
    for (size_t i = 0; i < length; i++) {
      if (ranks[i] <= worst) continue;
      *entry(c, 0) = (int32_t)(at + i);
      sink(c, 0, s->k);
      worst = rank_at(c, *entry(c, 0));
    }
  }
}

static void sort_best(const column *c) {
  const size_t k = c->shape->k;
  for (size_t i = 0; i < k; i++) *entry(c, i) = (int32_t)i;
  for (size_t i = k / 2; i > 0; i--) sink(c, i - 1, k);
  search(c);
  for (size_t left = k - 1; left > 0; left--) { /* the worst goes to the end */
    const int32_t worst = *entry(c, 0);
    *entry(c, 0) = *entry(c, left);
    *entry(c, left) = worst;
    sink(c, 0, left);
  }
}

static void topk_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const topk_shape *s = args[0];
  const unsigned char *x = RONDO_ARG(const unsigned char *, 1);
  unsigned char *values = RONDO_ARG(unsigned char *, 2);
  int32_t *indices = RONDO_ARG(int32_t *, 3);
  const size_t bytes = rondo_type_bytes(type);
  RONDO_EACH_ITEM(i, blocks, s->outer * s->inner) {
    const size_t outer = i / s->inner, inside = i % s->inner, to = outer * s->k * s->inner + inside;
    const column c = {s, type, x, outer * s->size * s->inner + inside, indices + to};
    sort_best(&c);
    for (size_t k = 0; values != NULL && k < s->k; k++)
      memcpy(values + (to + k * s->inner) * bytes, x + (c.first + (size_t)*entry(&c, k) * s->inner) * bytes, bytes);
  }
}

RONDO_NUMBER_KERNEL(topk, topk, RONDO_SCALAR(topk_shape), RONDO_READS, RONDO_WRITES, RONDO_WRITES, RONDO_WRITES);

/* Row -------------------------------------------------------------------------------------------------------------- */

static rondo_status infer_topk(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, 0);
  const size_t dimension = operation->attributes.sizes[DIMENSION], k = operation->attributes.sizes[COUNT];
  RONDO_TRY(rondo_require_dimension(program, operation, 0, dimension));
  if (k == 0 || k > value->dims[dimension] || value->dims[dimension] > INT32_MAX) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "%zu elements of %zu: choose 1 to all of them, of at most 2^31 - 1", k,
                                value->dims[dimension]);
  }
  results[VALUES] = *value;
  results[VALUES].dims[dimension] = k;
  results[INDICES] = results[VALUES];
  results[INDICES].type = RONDO_I32;
  return RONDO_OK;
}

static rondo_status differentiate_topk(rondo_program *program, const rondo_operation *operation,
                                       const uint32_t *result_gradients, uint32_t *input_gradients) {
  const size_t dimension = operation->attributes.sizes[DIMENSION];
  const size_t size = rondo_operation_input(program, operation, 0)->dims[dimension];
  return rondo_program_add_gather_gradient(program, result_gradients[VALUES], operation->results[INDICES], dimension,
                                           size, &input_gradients[0]);
}

static topk_shape shape_of(const rondo_shape *value, const rondo_attributes *attributes) {
  const size_t dimension = attributes->sizes[DIMENSION];
  return (topk_shape){.outer = rondo_shape_elements_of(value, 0, dimension),
                      .size = value->dims[dimension],
                      .inner = rondo_shape_elements_of(value, dimension + 1, value->rank),
                      .k = attributes->sizes[COUNT],
                      .smallest = attributes->flags[SMALLEST]};
}

/* On CUDA, the indices before they are sorted. */
static rondo_status prepare_topk(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                 size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  *out_workspace_bytes =
      resources->is_cuda ? rondo_shape_bytes(rondo_program_shape(program, operation->results[INDICES])) : 0;
  return RONDO_OK;
}

static rondo_status emit_topk(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[0]);
  const topk_shape shape = shape_of(value, &operation->attributes);
  const rondo_grain grain = {4096 / shape.size + 1, 1};
  return rondo_emit_operands(emitter, operation, &topk_code[value->type],
                             rondo_emit_grid(emitter, shape.outer * shape.inner, grain),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(0), RONDO_RESULT(VALUES),
                                            RONDO_RESULT(INDICES), RONDO_WORKSPACE));
}

RONDO_OPERATOR(topk, .types = RONDO_NUMBERS, .inputs = {"value"}, .required = 1, .result_count = 2,
               .spare_results = 1u << VALUES, .infer = infer_topk, .differentiate = differentiate_topk,
               .prepare = prepare_topk, .emit = emit_topk);

rondo_status rondo_op_topk(rondo_program *program, rondo_value value, size_t k, size_t dimension, bool smallest,
                           rondo_value *out_values, rondo_value *out_indices) {
  const rondo_attributes attributes = {.sizes = {dimension, k}, .size_count = 2, .flags = {[SMALLEST] = smallest}};
  if (out_values != NULL) *out_values = (rondo_value){0};
  RONDO_TRY(rondo_require("topk", "out_indices", out_indices));
  *out_indices = (rondo_value){0};
  RONDO_TRY(rondo_program_apply(program, &rondo_operator_topk, &value, 1, &attributes, out_values));
  const rondo_operation *added = &program->operations.items[program->operations.count - 1];
  *out_indices = rondo_program_tag(program, added->results[INDICES]);
  return RONDO_OK;
}
