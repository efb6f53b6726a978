/* SPDX-License-Identifier: MIT
 * The shapes, strides and CPU loops of operators that broadcast their inputs. Threads: any.
 */
#include "tensor/operators/elementwise/broadcast.h"

#include <assert.h>

#include "tensor/operators/reduction/reduction.h"
#include "tensor/program/operation.h"
#include "tensor/program/program.h"

/* Shapes ----------------------------------------------------------------------------------------------------------- */

/* Whether dimension d of the result can be merged with the last dimension of `shape`: it is contiguous in all terms. */
static bool joins(const rondo_broadcast *shape, size_t strides[RONDO_MAX_TERMS][RONDO_MAX_DIMENSIONS], uint32_t terms,
                  size_t d, size_t dim) {
  if (shape->rank == 0) return false;
  for (uint32_t t = 0; t < terms; t++) {
    if (shape->strides[t][shape->rank - 1] != strides[t][d] * dim) return false;
  }
  return true;
}

static rondo_broadcast lay_out(const rondo_shape *const *inputs, uint32_t terms, const rondo_shape *result) {
  size_t strides[RONDO_MAX_TERMS][RONDO_MAX_DIMENSIONS] = {{0}};
  rondo_broadcast shape = {.count = rondo_shape_elements(result)};
  for (uint32_t t = 0; t < terms; t++) rondo_broadcast_strides(inputs[t], result, strides[t]);
  for (uint32_t d = 0; d < result->rank; d++) {
    const size_t dim = result->dims[d];
    if (dim == 1) continue;
    if (!joins(&shape, strides, terms, d, dim)) shape.dims[shape.rank++] = 1;
    shape.dims[shape.rank - 1] *= dim;
    for (uint32_t t = 0; t < terms; t++) shape.strides[t][shape.rank - 1] = strides[t][d];
  }
  if (shape.rank == 0) shape.dims[shape.rank++] = 1;
  assert(terms <= RONDO_MAX_TERMS && shape.rank <= RONDO_MAX_DIMENSIONS);
  return shape;
}

/* Kernel ----------------------------------------------------------------------------------------------------------- */

/* A position in the result and, for one input, the element there. */
typedef struct cursor {
  const rondo_layout *layout;
  size_t at[RONDO_MAX_DIMENSIONS], offset;
} cursor;

static cursor cursor_at(const rondo_layout *layout, size_t position) {
  cursor c = {.layout = layout};
  for (size_t d = layout->rank; d > 0; d--) {
    c.at[d - 1] = position % layout->dims[d - 1];
    c.offset += c.at[d - 1] * layout->strides[d - 1];
    position /= layout->dims[d - 1];
  }
  return c;
}

/* Advances along dimension d, at most to its end. */
static void advance(cursor *c, size_t d, size_t count) {
  const rondo_layout *layout = c->layout;
  c->at[d] += count;
  c->offset += count * layout->strides[d];
  for (; d > 0 && c->at[d] == layout->dims[d]; d--) {
    c->at[d] = 0;
    c->at[d - 1]++;
    c->offset += layout->strides[d - 1] - layout->dims[d] * layout->strides[d];
  }
}

const void *rondo_load_numbers(rondo_type type, const void *memory, size_t first, size_t count,
                               rondo_chunk_buffer *buffer) {
  return rondo_is_integer(type) ? (const void *)rondo_load_integers(type, memory, first, count, buffer->integers)
                                : (const void *)rondo_load_chunk(type, memory, first, count, buffer->floats);
}

/* Defines `name`, which gathers a run of contiguous elements, or one that is repeated, into `buffer`. */
#define GATHER(name, number, load)                                                                                 \
  static void name(rondo_type type, const void *memory, size_t offset, bool repeats, size_t run, number *buffer) { \
    const number *from = load(type, memory, offset, repeats ? 1 : run, buffer);                                    \
    const number first = from[0];                                                                                  \
    if (repeats) {                                                                                                 \
      for (size_t i = 0; i < run; i++) buffer[i] = first;                                                          \
    } else if (from != buffer) {                                                                                   \
      memcpy(buffer, from, run * sizeof *buffer);                                                                  \
    }                                                                                                              \
  }

GATHER(gather_floats, float, rondo_load_chunk)
GATHER(gather_integers, int64_t, rondo_load_integers)

/* Whether the rows of the last dimension repeat along the one before. */
static bool repeats_rows(const rondo_layout *layout) {
  return layout->rank > 1 && layout->strides[layout->rank - 2] == 0;
}

/* Repeats the first `bytes` of a buffer until `all` are filled, a multiple. */
static void repeat(void *buffer, size_t bytes, size_t all) {
  unsigned char *to = buffer;
  for (size_t done = bytes; done < all;) {
    const size_t more = rondo_smaller(done, all - done);
    memcpy(to + done, to, more);
    done += more;
  }
}

/* After a whole row at `done` of a buffer: repeats it as long as the next dimension does, up to `count`. Returns how
 * many elements that added. */
static size_t repeat_row(cursor *c, bool is_integer, rondo_chunk_buffer *buffer, size_t done, size_t count) {
  const rondo_layout *layout = c->layout;
  const size_t d = layout->rank - 2, run = layout->dims[d + 1], bytes = is_integer ? sizeof(int64_t) : sizeof(float);
  const size_t times = rondo_smaller(layout->dims[d] - c->at[d], (count - done) / run);
  if (times < 2) return 0;
  repeat(is_integer ? (void *)(buffer->integers + done) : (void *)(buffer->floats + done), run * bytes,
         times * run * bytes);
  advance(c, d, times - 1);
  return (times - 1) * run;
}

/* The row that repeats at the end of a layout: its elements, and how many elements of the result repeat it; 0: none
 * does. */
typedef struct repetition {
  size_t row, all;
} repetition;

static repetition repetition_of(const rondo_layout *layout) {
  const size_t last = layout->rank - 1, run = layout->dims[last];
  if (layout->strides[last] == 0) return (repetition){1, run};
  return repeats_rows(layout) ? (repetition){run, run * layout->dims[last - 1]} : (repetition){0};
}

/* Shorter repetitions cost less than shorter chunks. */
#define MIN_REPETITION 64

size_t rondo_layout_chunk(const rondo_layout *layout, size_t first, size_t count) {
  const repetition r = repetition_of(layout);
  if (r.row == 0 || r.row > RONDO_CHUNK || r.all < MIN_REPETITION) return count;
  const size_t most = rondo_smaller(count, r.all - first % r.all), begun = first % r.row;
  return rondo_smaller(most, begun > 0 ? r.row - begun : RONDO_CHUNK / r.row * r.row);
}

/* The elements of the last dimensions, which are contiguous in the input. */
static size_t contiguous_end(const rondo_layout *layout) {
  size_t d = layout->rank - 1, all = layout->strides[d] == 0 ? 1 : layout->dims[d];
  for (; all > 1 && d > 0 && layout->strides[d - 1] == all; d--) all *= layout->dims[d - 1];
  return all;
}

/* Whether the chunk at a position is one row again and again, from its beginning. */
static bool is_one_row(const rondo_layout *layout, size_t first, size_t count) {
  const repetition r = repetition_of(layout);
  return r.row > 0 && r.row < count && first % r.row == 0 && count <= r.all - first % r.all;
}

const void *rondo_load_layout(const rondo_layout *layout, rondo_type type, const void *memory, size_t first,
                              size_t count, rondo_chunk_buffer *buffer, rondo_repeated_row *held) {
  assert(layout->rank > 0 && layout->rank <= RONDO_MAX_DIMENSIONS && count <= RONDO_CHUNK);
  const size_t last = layout->rank - 1;
  const bool repeats = layout->strides[last] == 0, is_row_held = is_one_row(layout, first, count);
  const size_t contiguous = contiguous_end(layout);
  cursor c = cursor_at(layout, first);
  if (contiguous - first % contiguous >= count) return rondo_load_numbers(type, memory, c.offset, count, buffer);
  if (is_row_held && held->offset == c.offset && held->count >= count) return buffer;
  *held = (rondo_repeated_row){c.offset, is_row_held ? count : 0};
  for (size_t done = 0, run = 0; done < count; done += run) {
    run = rondo_smaller(layout->dims[last] - c.at[last], count - done);
    if (rondo_is_integer(type)) {
      gather_integers(type, memory, c.offset, repeats, run, buffer->integers + done);
    } else {
      gather_floats(type, memory, c.offset, repeats, run, buffer->floats + done);
    }
    const bool is_row = run == layout->dims[last];
    if (is_row && repeats_rows(layout)) done += repeat_row(&c, rondo_is_integer(type), buffer, done, count);
    advance(&c, last, run);
  }
  return buffer;
}

void rondo_store_numbers(rondo_type type, void *memory, size_t first, size_t count, const void *numbers) {
  if (rondo_is_integer(type)) {
    rondo_store_integers(type, memory, first, count, numbers);
  } else {
    rondo_store_chunk(type, memory, first, count, numbers);
  }
}

void *rondo_numbers_of(rondo_type type, void *memory, size_t first, rondo_chunk_buffer *buffer) {
  return rondo_is_integer(type) ? (void *)buffer->integers
                                : (void *)rondo_chunk_of(type, memory, first, buffer->floats);
}

static rondo_term_chunk chunk_of(const rondo_operator *row, rondo_type type) {
  const rondo_broadcast_row *family = row->family;
  return rondo_is_integer(type) ? family->integers : family->floats;
}

static rondo_layout layout_of(const rondo_broadcast *shape, uint32_t term) {
  return (rondo_layout){shape->rank, shape->dims, shape->strides[term]};
}

static size_t chunk_at(const rondo_broadcast *shape, uint32_t terms, size_t at, size_t last) {
  size_t length = rondo_chunk_length(at, last);
  for (uint32_t t = 0; t < terms; t++) {
    const rondo_layout layout = layout_of(shape, t);
    length = rondo_layout_chunk(&layout, at, length);
  }
  return length;
}

void rondo_broadcast_cpu(const rondo_operator *row, rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_broadcast_row *family = row->family;
  const rondo_broadcast *shape = args[0];
  const rondo_type result = family->gives_flags ? RONDO_BOOL : type;
  void *y = RONDO_ARG(void *, row->required + 1);
  const void *terms[RONDO_MAX_TERMS];
  rondo_chunk_buffer buffers[RONDO_MAX_TERMS + 1];
  rondo_repeated_row held[RONDO_MAX_TERMS] = {{0}};
  assert(row->required > 0 && row->required <= RONDO_MAX_TERMS && shape->rank > 0);
  const rondo_span span = rondo_blocks_span(blocks, shape->count, RONDO_LANES);
  for (size_t at = span.first, length; at < span.last; at += length) {
    length = chunk_at(shape, row->required, at, span.last);
    for (uint32_t t = 0; t < RONDO_MAX_TERMS; t++) {
      const rondo_type term_type = t == 0 && family->has_condition ? RONDO_BOOL : type;
      const rondo_layout layout = layout_of(shape, t);
      terms[t] = t >= row->required ? terms[0]
                                    : rondo_load_layout(&layout, term_type, RONDO_ARG(const void *, t + 1), at, length,
                                                        &buffers[t], &held[t]);
    }
    void *to = rondo_numbers_of(result, y, at, &buffers[RONDO_MAX_TERMS]);
    chunk_of(row, type)(terms, to, length);
    rondo_store_numbers(result, y, at, length, to);
  }
}

/* The last input determines the type. Missing inputs get the chunk of the first one. */
void rondo_compute_broadcast(const rondo_chunk_call *call) {
  const uint32_t count = call->row->required;
  const void *terms[RONDO_MAX_TERMS];
  for (uint32_t t = 0; t < RONDO_MAX_TERMS; t++) terms[t] = call->terms[t < count ? t : 0];
  chunk_of(call->row, call->types[count - 1])(terms, call->result, call->count);
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static rondo_status check_type(const rondo_program *program, const rondo_operation *operation, uint32_t input) {
  const rondo_broadcast_row *family = operation->row->family;
  const rondo_shape *shape = rondo_operation_input(program, operation, input);
  const uint32_t first = family->has_condition ? 1 : 0;
  if (input < first) return rondo_require_input(program, operation, input, RONDO_BOOL, RONDO_ANY_RANK);
  if (family->integers == NULL) RONDO_TRY(rondo_require_float(program, operation, input, RONDO_ANY_RANK));
  const rondo_shape *other = rondo_operation_input(program, operation, first);
  if (shape->type == other->type) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_TYPE,
                              "%s is %s and %s is %s: they must have one type (cast converts one to the other)",
                              operation->row->inputs[first], rondo_type_name(other->type),
                              operation->row->inputs[input], rondo_type_name(shape->type));
}

/* Broadcasts `result` together with an input. */
static rondo_status widen(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                          rondo_shape *result) {
  const rondo_shape *shape = rondo_operation_input(program, operation, input);
  rondo_shape wide = shape->rank > result->rank ? *shape : *result;
  const rondo_shape *narrow = shape->rank > result->rank ? result : shape;
  for (uint32_t d = 1; d <= narrow->rank; d++) {
    size_t *dim = &wide.dims[wide.rank - d];
    const size_t other = narrow->dims[narrow->rank - d];
    if (*dim != other && *dim != 1 && other != 1) {
      return rondo_fail_operation(
          program, operation, RONDO_REASON_SHAPE,
          "shapes do not broadcast: in dimension -%u (the last is -1), %s has %zu elements and other inputs have %zu; "
          "they must be equal, or one of them 1",
          d, operation->row->inputs[input], shape == narrow ? other : *dim, shape == narrow ? *dim : other);
    }
    if (*dim == 1) *dim = other;
  }
  *result = wide;
  return RONDO_OK;
}

rondo_status rondo_infer_broadcast(const rondo_program *program, const rondo_operation *operation,
                                   rondo_shape *results) {
  const rondo_broadcast_row *family = operation->row->family;
  const uint32_t terms = operation->row->required;
  for (uint32_t i = 0; i < terms; i++) RONDO_TRY(check_type(program, operation, i));
  results[0] = *rondo_operation_input(program, operation, 0);
  for (uint32_t i = 1; i < terms; i++) RONDO_TRY(widen(program, operation, i, &results[0]));
  results[0].type = family->gives_flags ? RONDO_BOOL : rondo_operation_input(program, operation, terms - 1)->type;
  return RONDO_OK;
}

rondo_status rondo_emit_broadcast(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_broadcast_row *family = operation->row->family;
  const uint32_t terms = operation->row->required;
  const rondo_shape *shapes[RONDO_MAX_TERMS];
  void *addresses[RONDO_MAX_TERMS + 1];
  const void *args[RONDO_MAX_TERMS + 2];
  for (uint32_t t = 0; t < terms; t++) {
    shapes[t] = rondo_emit_shape(emitter, operation->inputs[t]);
    addresses[t] = rondo_emit_address(emitter, operation->inputs[t]);
    args[t + 1] = &addresses[t];
  }
  addresses[terms] = rondo_emit_address(emitter, operation->results[0]);
  args[terms + 1] = &addresses[terms];
  assert(family->code[shapes[terms - 1]->type].name != NULL);
  const rondo_broadcast shape = lay_out(shapes, terms, rondo_emit_shape(emitter, operation->results[0]));
  args[0] = &shape;
  return rondo_emit_kernel(emitter, &family->code[shapes[terms - 1]->type],
                           rondo_emit_grid(emitter, shape.count, RONDO_PACKED_GRAIN), args, terms + 2);
}

/* Gradients of broadcast inputs ------------------------------------------------------------------------------------ */

rondo_status rondo_add_sum_to(rondo_program *program, uint32_t value, uint32_t like, uint32_t *out_value) {
  const rondo_shape from = *rondo_program_shape(program, value);
  const rondo_shape to = *rondo_program_shape(program, like);
  *out_value = value;
  if (rondo_shape_same(&from, &to)) return RONDO_OK;
  if (rondo_shape_elements(&from) == rondo_shape_elements(&to))
    return rondo_program_add_shaped(program, &rondo_operator_reshape, value, to, out_value);
  assert(from.rank >= to.rank);
  const uint32_t added = from.rank - to.rank;
  rondo_attributes attributes = {.size_count = 0};
  for (uint32_t d = 0; d < from.rank; d++) {
    const bool is_repeated = d >= added && to.dims[d - added] != from.dims[d];
    if (d < added || is_repeated) attributes.sizes[attributes.size_count++] = d;
    if (is_repeated) attributes.flags[RONDO_REDUCE_KEEPS] = true;
  }
  RONDO_TRY(rondo_program_add(program, &rondo_operator_sum, &value, 1, &attributes, out_value));
  if (!attributes.flags[RONDO_REDUCE_KEEPS] || added == 0) return RONDO_OK;
  const uint32_t wide = *out_value;
  return rondo_program_add_shaped(program, &rondo_operator_reshape, wide, to, out_value);
}
