/* SPDX-License-Identifier: MIT
 * Constants and the states that they become.
 */
#include "onnx/import/constant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rondo/operators.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/numbers/half_float.h"
#include "onnx/format/widened_elements.h"
#include "onnx/import/build_result.h"
#include "tensor/files/weights_internal.h"
#include "tensor/program/program.h"

#define DEFAULT_MOST_BYTES (UINT64_C(1) << 30)

/* How often programs may compute or copy as many bytes as may be kept, so that a loop in a bad file ends. The sizes of
 * values are rounded up, so smaller limits count as 1 MiB here. */
#define WORK_OF_LIMIT 64u
#define LEAST_LIMIT (UINT64_C(1) << 20)
#define NAME_BYTES 32
#define ALIGNMENT 64
#define LEAST_FILLED 65536 /* bytes; smaller constants are held */

/* Shapes ----------------------------------------------------------------------------------------------------------- */

size_t rondo_onnx_shape_count(const rondo_onnx_shape *shape) {
  size_t count = 1;
  for (size_t i = 0; i < shape->rank; i++)
    if (shape->dims[i] == 0) return 0; /* also if the product of the others does not fit */
  for (size_t i = 0; i < shape->rank; i++)
    if (!rondo_checked_multiply(count, shape->dims[i], &count)) return SIZE_MAX;
  return count;
}

rondo_onnx_shape rondo_onnx_program_shape(const rondo_onnx_shape *shape) {
  rondo_onnx_shape out = *shape;
  if (shape->rank <= RONDO_MAX_DIMENSIONS) return out;
  const size_t more = shape->rank - RONDO_MAX_DIMENSIONS;
  out.rank = RONDO_MAX_DIMENSIONS;
  for (size_t i = 0; i < more; i++) out.dims[1] *= shape->dims[2 + i];
  for (size_t i = 2; i < out.rank; i++) out.dims[i] = shape->dims[i + more];
  return out;
}

const char *rondo_onnx_shape_text(char buffer[RONDO_ONNX_SHAPE_TEXT], const rondo_onnx_shape *shape) {
  int at = snprintf(buffer, RONDO_ONNX_SHAPE_TEXT, "%s [", rondo_onnx_type_name((int32_t)shape->type));
  for (size_t i = 0; i < shape->rank && at < RONDO_ONNX_SHAPE_TEXT - 24; i++)
    at += snprintf(buffer + at, RONDO_ONNX_SHAPE_TEXT - (size_t)at, "%s%zu", i > 0 ? ", " : "", shape->dims[i]);
  (void)snprintf(buffer + at, RONDO_ONNX_SHAPE_TEXT - (size_t)at, "]");
  return buffer;
}

size_t rondo_onnx_type_bytes(rondo_onnx_type type) { return rondo_onnx_type_bits((int32_t)type) / 8; }

size_t rondo_onnx_shape_bytes(const rondo_onnx_shape *shape) {
  const unsigned bits = rondo_onnx_type_bits((int32_t)shape->type);
  const size_t count = rondo_onnx_shape_count(shape), in_a_byte = bits > 0 && bits < 8 ? 8 / bits : 1;
  size_t bytes;
  if (in_a_byte > 1) return count / in_a_byte + (count % in_a_byte != 0);
  return rondo_checked_multiply(count, bits / 8, &bytes) ? bytes : SIZE_MAX;
}

rondo_status rondo_onnx_program_type(const rondo_onnx_importer *importer, rondo_onnx_type type, rondo_type *out) {
  if (type == RONDO_ONNX_DOUBLE && !importer->options->refuse_double) {
    *out = RONDO_F32;
    return RONDO_OK;
  }
  if (rondo_onnx_find_type((int32_t)type, out) && *out != RONDO_F64) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "programs have no values of the type '%s'",
                    rondo_onnx_type_name((int32_t)type));
}

rondo_status rondo_onnx_held_type(const rondo_onnx_importer *importer, rondo_onnx_type type, rondo_type *out) {
  *out = rondo_onnx_widened_type(type);
  return *out != 0 && type != RONDO_ONNX_DOUBLE ? RONDO_OK : rondo_onnx_program_type(importer, type, out);
}

rondo_status rondo_onnx_tensor_shape(const rondo_onnx_tensor *tensor, rondo_onnx_shape *out) {
  *out = (rondo_onnx_shape){.type = tensor->type, .rank = tensor->rank};
  if (tensor->rank > RONDO_ONNX_MOST_DIMENSIONS)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_SHAPE, "the tensor '%s' has %zu dimensions, and %d are supported",
                      tensor->name, tensor->rank, RONDO_ONNX_MOST_DIMENSIONS);
  for (size_t i = 0; i < tensor->rank; i++) out->dims[i] = (size_t)tensor->dims[i];
  return RONDO_OK;
}

/* Making ----------------------------------------------------------------------------------------------------------- */

rondo_status rondo_onnx_constant_of(rondo_onnx_importer *importer, const rondo_onnx_tensor *tensor,
                                    rondo_onnx_constant **out) {
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof **out, out));
  RONDO_TRY(rondo_onnx_tensor_shape(tensor, &(*out)->shape));
  (*out)->count = tensor->count;
  (*out)->bytes = tensor->bytes;
  (*out)->elements = tensor->elements;
  (*out)->strings = tensor->strings;
  return RONDO_OK;
}

static uint64_t limit_of(const rondo_onnx_importer *importer) {
  const uint64_t most = importer->options->most_folded_bytes;
  return most != 0 ? most : DEFAULT_MOST_BYTES;
}

static rondo_status fail_limit(const rondo_onnx_importer *importer) {
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "constants that are computed at import take more than %s: raise most_folded_bytes",
                    RONDO_SIZE(limit_of(importer)));
}

bool rondo_onnx_constant_fits(const rondo_onnx_importer *importer, size_t bytes) {
  return bytes <= limit_of(importer) - importer->kept_bytes;
}

/* Programs round up the bytes of each value, so what a small one needs does not count. */
rondo_status rondo_onnx_check_folding(const rondo_onnx_importer *importer, uint64_t bytes, uint64_t more) {
  enum { SMALL = 1 << 20 };
  if (!rondo_onnx_constant_fits(importer, bytes)) return fail_limit(importer);
  if (more <= SMALL || more <= limit_of(importer)) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "constants of %s that are computed at import need %s more meanwhile, more than %s: raise "
                    "most_folded_bytes",
                    RONDO_SIZE(bytes), RONDO_SIZE(more), RONDO_SIZE(limit_of(importer)));
}

rondo_status rondo_onnx_count_folded_work(rondo_onnx_importer *importer, uint64_t bytes) {
  const uint64_t limit = limit_of(importer) > LEAST_LIMIT ? limit_of(importer) : LEAST_LIMIT;
  const uint64_t most = limit > UINT64_MAX / WORK_OF_LIMIT ? UINT64_MAX : limit * WORK_OF_LIMIT;
  if (bytes <= most - importer->folded_work) {
    importer->folded_work += bytes;
    return RONDO_OK;
  }
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "constants that are computed at import, with intermediate values and those of loops each time, "
                    "take more than %s, %u times most_folded_bytes: raise most_folded_bytes",
                    RONDO_SIZE(most), WORK_OF_LIMIT);
}

static rondo_status count_bytes(rondo_onnx_importer *importer, size_t bytes) {
  if (!rondo_onnx_constant_fits(importer, bytes)) return fail_limit(importer);
  importer->kept_bytes += bytes;
  return RONDO_OK;
}

/* Gives a constant memory of its own for its elements, which the caller writes. */
static rondo_status make_elements(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  rondo_onnx_elements *made;
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof *made, &made));
  RONDO_TRY(rondo_allocate_untouched(&importer->allocator, constant->bytes, ALIGNMENT, &made->memory));
  made->bytes = constant->bytes;
  made->previous = importer->elements;
  importer->elements = constant->owner = made;
  constant->elements = made->memory;
  return RONDO_OK;
}

void rondo_onnx_constants_end(rondo_onnx_importer *importer) {
  for (const rondo_onnx_elements *at = importer->elements; at != NULL; at = at->previous)
    if (!at->is_taken) rondo_release(&importer->allocator, at->memory, at->bytes, 1);
  importer->elements = NULL;
}

rondo_status rondo_onnx_constant_make(rondo_onnx_importer *importer, const rondo_onnx_shape *shape,
                                      rondo_onnx_constant **out, void **out_elements) {
  *out_elements = NULL;
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof **out, out));
  **out = (rondo_onnx_constant){
      .shape = *shape, .count = rondo_onnx_shape_count(shape), .bytes = rondo_onnx_shape_bytes(shape)};
  RONDO_TRY(rondo_onnx_constant_make_elements(importer, *out, out_elements));
  if ((*out)->bytes > 0) memset(*out_elements, 0, (*out)->bytes);
  return RONDO_OK;
}

rondo_status rondo_onnx_constant_make_elements(rondo_onnx_importer *importer, rondo_onnx_constant *constant,
                                               void **out_elements) {
  RONDO_TRY(count_bytes(importer, constant->bytes));
  RONDO_TRY(make_elements(importer, constant));
  *out_elements = constant->owner->memory;
  return RONDO_OK;
}

rondo_status rondo_onnx_constant_fill(rondo_onnx_importer *importer, const rondo_onnx_shape *shape, const void *element,
                                      rondo_onnx_constant **out) {
  const size_t count = rondo_onnx_shape_count(shape), bytes = rondo_onnx_shape_bytes(shape);
  const size_t bytes_each = rondo_onnx_type_bytes(shape->type);
  void *filling;
  assert(bytes_each > 0);
  RONDO_TRY(count_bytes(importer, bytes));
  RONDO_TRY(rondo_scratch_take(&importer->build->elements, 1, bytes_each, &filling));
  memcpy(filling, element, bytes_each);
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof **out, out));
  **out = (rondo_onnx_constant){.shape = *shape, .count = count, .bytes = bytes, .filling = filling};
  const bool stays = bytes > LEAST_FILLED && rondo_onnx_widened_type(shape->type) == 0;
  return stays ? RONDO_OK : rondo_onnx_constant_hold(importer, *out);
}

rondo_status rondo_onnx_constant_hold(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  const size_t bytes_each = rondo_onnx_type_bytes(constant->shape.type);
  if (constant->filling == NULL) return RONDO_OK;
  RONDO_TRY(make_elements(importer, constant));
  unsigned char *const elements = constant->owner->memory;
  for (size_t i = 0; i < constant->count; i++) memcpy(elements + i * bytes_each, constant->filling, bytes_each);
  constant->filling = NULL;
  return RONDO_OK;
}

rondo_status rondo_onnx_constant_reshaped(rondo_onnx_importer *importer, const rondo_onnx_constant *constant,
                                          const rondo_onnx_shape *shape, rondo_onnx_constant **out) {
  assert(constant->folding == NULL && rondo_onnx_shape_count(shape) == constant->count);
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof **out, out));
  **out = (rondo_onnx_constant){.shape = *shape,
                                .count = constant->count,
                                .bytes = constant->bytes,
                                .elements = constant->elements,
                                .owner = constant->owner,
                                .filling = constant->filling,
                                .strings = constant->strings,
                                .widened = constant->widened,
                                .given = constant->given};
  (*out)->shape.type = constant->shape.type;
  return RONDO_OK;
}

/* Sparse tensors --------------------------------------------------------------------------------------------------- */

/* The place of value `row`: an index of the flattened tensor, or one index for each dimension. */
static rondo_status find_place(const rondo_onnx_shape *shape, const rondo_onnx_tensor *indices, size_t row,
                               size_t *out) {
  const size_t columns = indices->rank == 2 ? (size_t)indices->dims[1] : 1;
  const bool is_flat = indices->rank == 1;
  *out = 0;
  for (size_t i = 0; i < columns; i++) {
    int64_t index;
    const size_t size = is_flat ? rondo_onnx_shape_count(shape) : shape->dims[i];
    memcpy(&index, (const unsigned char *)indices->elements + (row * columns + i) * sizeof index, sizeof index);
    if (index < 0 || (uint64_t)index >= size)
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_OUT_OF_RANGE, "a sparse tensor has the index %lld of %zu",
                        (long long)index, size);
    *out = *out * size + (size_t)index;
  }
  return RONDO_OK;
}

static rondo_status scatter(const rondo_onnx_tensor *values, const rondo_onnx_tensor *indices,
                            const rondo_onnx_shape *shape, unsigned char *elements) {
  const size_t bytes_each = rondo_onnx_type_bytes(shape->type);
  if (indices->rank == 2 && (size_t)indices->dims[1] != shape->rank)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_SHAPE, "a sparse tensor of %zu dimensions has %lld indices each",
                      shape->rank, (long long)indices->dims[1]);
  for (size_t row = 0; row < values->count; row++) {
    size_t place;
    RONDO_TRY(find_place(shape, indices, row, &place));
    memcpy(elements + place * bytes_each, (const unsigned char *)values->elements + row * bytes_each, bytes_each);
  }
  return RONDO_OK;
}

rondo_status rondo_onnx_constant_of_sparse(rondo_onnx_importer *importer, const RondoOnnx__SparseTensor *sparse,
                                           rondo_onnx_constant **out) {
  rondo_onnx_tensor values, indices;
  rondo_onnx_shape shape;
  void *elements;
  RONDO_TRY(rondo_onnx_read_tensor(&importer->source, sparse->values, &values));
  RONDO_TRY(rondo_onnx_read_tensor(&importer->source, sparse->indices, &indices));
  rondo_onnx_tensor dense = {.name = values.name, .type = values.type, .rank = sparse->n_dims, .dims = sparse->dims};
  RONDO_TRY(rondo_onnx_tensor_shape(&dense, &shape));
  for (size_t i = 0; i < sparse->n_dims; i++)
    if (sparse->dims[i] < 0)
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_SHAPE, "a sparse tensor has a negative size");
  if (rondo_onnx_type_bytes(values.type) == 0)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "a sparse tensor has elements of the type '%s'",
                      rondo_onnx_type_name((int32_t)values.type));
  RONDO_TRY(rondo_onnx_constant_make(importer, &shape, out, &elements));
  return scatter(&values, &indices, &shape, elements);
}

/* Elements --------------------------------------------------------------------------------------------------------- */

static rondo_status widen(rondo_onnx_importer *importer, rondo_onnx_constant *constant, rondo_type type) {
  void *widened;
  const size_t bytes = constant->count * rondo_type_bytes(type);
  RONDO_TRY(count_bytes(importer, bytes));
  RONDO_TRY(rondo_scratch_take(&importer->build->elements, bytes, 1, &widened));
  rondo_onnx_widen(constant->shape.type, constant->elements, constant->count, widened);
  constant->widened = widened;
  return RONDO_OK;
}

rondo_status rondo_onnx_constant_align(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  unsigned char *copy;
  assert(constant->folding == NULL);
  const size_t bytes_each = rondo_onnx_type_bytes(constant->shape.type);
  if (bytes_each < 2 || constant->bytes == 0 || (uintptr_t)constant->elements % bytes_each == 0) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(&importer->build->elements, constant->bytes, 1, &copy));
  memcpy(copy, constant->elements, constant->bytes);
  constant->elements = copy;
  return RONDO_OK;
}

rondo_status rondo_onnx_constant_elements(rondo_onnx_importer *importer, rondo_onnx_constant *constant,
                                          const void **out) {
  assert(constant->folding == NULL && constant->filling == NULL);
  const rondo_type type = rondo_onnx_widened_type(constant->shape.type);
  if (type != 0 && constant->widened == NULL && constant->count > 0) RONDO_TRY(widen(importer, constant, type));
  *out = constant->widened != NULL ? constant->widened : constant->elements;
  return RONDO_OK;
}

/* States ----------------------------------------------------------------------------------------------------------- */

/* Whether all elements of a held constant are equal to this one: the first is, and each to the next. */
static bool repeats(const rondo_onnx_constant *held, const void *element) {
  const unsigned char *elements = held->elements;
  const size_t bytes_each = rondo_onnx_type_bytes(held->shape.type);
  return memcmp(elements, element, bytes_each) == 0 &&
         memcmp(elements, elements + bytes_each, held->bytes - bytes_each) == 0;
}

static bool has_equal_content(const rondo_onnx_constant *a, const rondo_onnx_constant *b) {
  const size_t bytes_each = rondo_onnx_type_bytes(a->shape.type);
  if (a->shape.type != b->shape.type || a->shape.rank != b->shape.rank || a->bytes != b->bytes) return false;
  if (memcmp(a->shape.dims, b->shape.dims, sizeof a->shape.dims) != 0) return false;
  if (a->filling == NULL && b->filling == NULL)
    return a->elements == b->elements || memcmp(a->elements, b->elements, a->bytes) == 0;
  if (a->filling != NULL && b->filling != NULL) return memcmp(a->filling, b->filling, bytes_each) == 0;
  return a->filling != NULL ? repeats(b, a->filling) : repeats(a, b->filling);
}

static rondo_onnx_constant *find_equal(const rondo_onnx_importer *importer, const rondo_onnx_constant *constant) {
  for (size_t i = 0; i < importer->states.count; i++)
    if (has_equal_content(importer->states.items[i], constant)) return importer->states.items[i];
  return NULL;
}

/* Named by its content, so that programs of several sizes share it. */
static rondo_status name_by_content(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  char *name;
  uint64_t hash = rondo_hash_u64(RONDO_HASH_START, (uint64_t)constant->shape.type);
  for (size_t i = 0; i < constant->shape.rank; i++) hash = rondo_hash_u64(hash, constant->shape.dims[i]);
  if (constant->filling != NULL)
    hash = rondo_hash_bytes(hash, constant->filling, rondo_onnx_type_bytes(constant->shape.type));
  else
    hash = rondo_hash_bytes(hash, constant->elements, constant->bytes);
  RONDO_TRY(rondo_scratch_take(importer->kept, NAME_BYTES, 1, &name));
  (void)snprintf(name, NAME_BYTES, "constant.%016" PRIx64, hash);
  constant->name = name;
  return RONDO_OK;
}

static bool may_be_state(const rondo_onnx_importer *importer, const rondo_onnx_constant *constant) {
  const rondo_weights *states = importer->sharing != NULL ? importer->sharing->states : NULL;
  return states == NULL || rondo_weights_look_up(states, constant->name) != NULL;
}

/* A constant of the program, with its elements: one that the programs which share states do not have in common. */
static rondo_status add_to_program(rondo_onnx_importer *importer, rondo_onnx_constant *constant,
                                   const rondo_onnx_shape *held, rondo_type type) {
  const void *elements;
  RONDO_TRY(rondo_onnx_constant_hold(importer, constant));
  RONDO_TRY(rondo_onnx_constant_elements(importer, constant, &elements));
  return rondo_program_add_tensor(importer->program, type, held->dims, held->rank, elements, &constant->state);
}

/* Where elements of the model's files are, so that they can stay there. */
static void expect_file(const rondo_onnx_importer *importer, const rondo_onnx_constant *constant) {
  const rondo_onnx_external_files *external = importer->source.external;
  const uintptr_t at = (uintptr_t)constant->elements;
  if (constant->filling != NULL || constant->owner != NULL || rondo_onnx_widened_type(constant->shape.type) != 0)
    return;
  for (size_t i = 0; i < external->files.count; i++) {
    const rondo_file_mapping *mapping = &external->files.items[i].mapping;
    const uintptr_t begin = (uintptr_t)mapping->bytes;
    if (at >= begin && at - begin < mapping->count)
      rondo_program_expect_file(importer->program, constant->state, at - begin);
  }
}

static rondo_status add_state(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  static const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  rondo_type type;
  RONDO_TRY(rondo_onnx_held_type(importer, constant->shape.type, &type));
  RONDO_TRY(rondo_array_reserve(&importer->allocator, &importer->states, importer->states.count + 1));
  if (constant->name == NULL) RONDO_TRY(name_by_content(importer, constant));
  const rondo_onnx_shape held = rondo_onnx_program_shape(&constant->shape);
  if (!may_be_state(importer, constant)) return add_to_program(importer, constant, &held, type);
  RONDO_TRY(rondo_program_state_with(importer->program, constant->name, type, held.dims, held.rank, &frozen,
                                     &constant->state));
  expect_file(importer, constant);
  RONDO_TRY(rondo_array_push(&importer->allocator, &importer->states, &constant));
  importer->build->info.states++;
  return RONDO_OK;
}

static rondo_status find_state(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  const rondo_onnx_constant *equal = find_equal(importer, constant);
  if (equal == NULL) return add_state(importer, constant);
  constant->state = equal->state;
  return RONDO_OK;
}

/* Whether the elements are the same at each index of a dimension. */
static bool repeats_along(const rondo_onnx_constant *constant, size_t dimension) {
  const unsigned char *elements = constant->elements;
  size_t inner = rondo_onnx_type_bytes(constant->shape.type);
  if (constant->filling != NULL) return true;
  for (size_t i = dimension + 1; i < constant->shape.rank; i++) inner *= constant->shape.dims[i];
  const size_t outer = inner * constant->shape.dims[dimension];
  for (size_t at = 0; at < constant->bytes; at += inner)
    if (at % outer != 0 && memcmp(elements + at, elements + at / outer * outer, inner) != 0) return false;
  return true;
}

/* The elements of a constant at those indices that exist in a smaller shape. */
static void take_first(const rondo_onnx_constant *constant, const rondo_onnx_shape *shape, unsigned char *out) {
  const size_t bytes = rondo_onnx_type_bytes(shape->type), count = rondo_onnx_shape_count(shape);
  if (constant->filling != NULL) {
    assert(count == 1);
    memcpy(out, constant->filling, bytes);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    size_t from = 0, step = 1, rest = i;
    for (size_t d = shape->rank; d-- > 0; step *= constant->shape.dims[d]) {
      from += rest % shape->dims[d] * step;
      rest /= shape->dims[d];
    }
    memcpy(out + i * bytes, (const unsigned char *)constant->elements + from * bytes, bytes);
  }
}

/* A constant that depends on sizes, such as zeros or positions for each row of a batch, often repeats its elements. The
 * state has them once, and is then the same for all sizes, which programs of several sizes need to share it. */
static rondo_status find_repeated_state(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  rondo_onnx_shape once = constant->shape;
  rondo_onnx_constant *smaller;
  rondo_value once_value;
  void *elements;
  const bool has_bytes = rondo_onnx_type_bytes(once.type) > 0; /* and does not share them */
  for (size_t i = 0; i < once.rank && has_bytes; i++)
    if (once.dims[i] > 1 && repeats_along(constant, i)) once.dims[i] = 1;
  if (rondo_onnx_shape_count(&once) == constant->count) return find_state(importer, constant);
  RONDO_TRY(rondo_onnx_constant_make(importer, &once, &smaller, &elements));
  take_first(constant, &once, elements);
  RONDO_TRY(rondo_onnx_constant_value(importer, smaller, &once_value)); /* a single float: a number for all sizes */
  return rondo_op_expand(importer->program, once_value, constant->shape.dims, constant->shape.rank, &constant->state);
}

static rondo_status state_of(rondo_onnx_importer *importer, rondo_onnx_constant *constant, rondo_value *out) {
  if (constant->state.id == 0)
    RONDO_TRY((constant->given & RONDO_ONNX_OF_SIZES) != 0 && constant->shape.rank <= RONDO_MAX_DIMENSIONS
                  ? find_repeated_state(importer, constant)
                  : find_state(importer, constant));
  *out = constant->state;
  return RONDO_OK;
}

/* Numbers ---------------------------------------------------------------------------------------------------------- */

static bool is_float(rondo_type type) { return type == RONDO_F32 || type == RONDO_F16 || type == RONDO_BF16; }

static float number_of(rondo_type type, const void *elements) {
  uint16_t half;
  float number;
  if (type == RONDO_F32) {
    memcpy(&number, elements, sizeof number);
    return number;
  }
  memcpy(&half, elements, sizeof half);
  return type == RONDO_F16 ? rondo_from_f16(half) : rondo_from_bf16(half);
}

bool rondo_onnx_constant_is_number(const rondo_onnx_constant *constant, rondo_type *out_type, float *out) {
  if (constant->filling == NULL || !rondo_onnx_find_type((int32_t)constant->shape.type, out_type)) return false;
  if (!is_float(*out_type)) return false;
  *out = number_of(*out_type, constant->filling);
  return true;
}

static rondo_status add_number(rondo_onnx_importer *importer, rondo_onnx_constant *constant, rondo_type type) {
  const void *elements;
  rondo_value *number = &constant->number;
  RONDO_TRY(rondo_onnx_constant_elements(importer, constant, &elements));
  RONDO_TRY(rondo_program_add_number(importer->program, number_of(type, elements), number));
  const rondo_onnx_shape held = rondo_onnx_program_shape(&constant->shape);
  if (held.rank > 0) RONDO_TRY(rondo_op_reshape(importer->program, *number, held.dims, held.rank, number));
  return type == RONDO_F32 ? RONDO_OK : rondo_op_cast(importer->program, *number, type, number);
}

rondo_status rondo_onnx_constant_value(rondo_onnx_importer *importer, rondo_onnx_constant *constant, rondo_value *out) {
  rondo_type type;
  assert(constant->folding == NULL && constant->count > 0);
  RONDO_TRY(rondo_onnx_held_type(importer, constant->shape.type, &type));
  if (constant->count != 1 || !is_float(type)) return state_of(importer, constant, out);
  if (constant->number.id == 0) RONDO_TRY(add_number(importer, constant, type));
  *out = constant->number;
  return RONDO_OK;
}

/* Weights ---------------------------------------------------------------------------------------------------------- */

/* Adds elements that were computed at import to the weights, which take them, or a copy if another weight has. */
static rondo_status append_computed(rondo_onnx_constant *constant, const rondo_shape *shape, rondo_weights *weights) {
  void *copy;
  if (constant->owner->is_taken) {
    RONDO_TRY(rondo_weights_append(weights, constant->name, shape, &copy));
    memcpy(copy, constant->elements, constant->bytes);
    return RONDO_OK;
  }
  constant->owner->is_taken = true;
  return rondo_weights_append_owned(weights, constant->name, shape, constant->owner->memory);
}

static rondo_status append(rondo_onnx_importer *importer, rondo_onnx_constant *constant, const rondo_shape *shape,
                           rondo_weights *weights) {
  const void *elements = constant->filling;
  void *data;
  if (elements == NULL) RONDO_TRY(rondo_onnx_constant_elements(importer, constant, &elements));
  if (constant->owner != NULL && elements == constant->owner->memory) return append_computed(constant, shape, weights);
  memcpy(&data, &elements, sizeof data); /* the set does not write to views */
  return constant->filling != NULL ? rondo_weights_append_repeated(weights, constant->name, shape, data)
                                   : rondo_weights_append_view(weights, constant->name, shape, data);
}

static rondo_status collect(rondo_onnx_importer *importer, rondo_onnx_constant *constant, rondo_weights *weights) {
  rondo_type type;
  rondo_shape shape;
  RONDO_TRY(rondo_onnx_held_type(importer, constant->shape.type, &type));
  const rondo_onnx_shape held = rondo_onnx_program_shape(&constant->shape);
  RONDO_TRY(rondo_shape_make(constant->name, type, held.dims, held.rank, &shape));
  importer->build->info.state_bytes += rondo_shape_bytes(&shape);
  return append(importer, constant, &shape, weights);
}

/* The files stay mapped as long as the model, which the caller destroys after the set. */
static rondo_status lend_files(const rondo_onnx_importer *importer, rondo_weights *weights) {
  const rondo_onnx_external_files *external = importer->source.external;
  RONDO_TRY(rondo_weights_lend(weights, &importer->model->mapping));
  for (size_t i = 0; i < external->files.count; i++)
    RONDO_TRY(rondo_weights_lend(weights, &external->files.items[i].mapping));
  return RONDO_OK;
}

rondo_status rondo_onnx_collect_weights(rondo_onnx_importer *importer, rondo_weights *weights) {
  for (size_t i = 0; i < importer->states.count; i++) RONDO_TRY(collect(importer, importer->states.items[i], weights));
  rondo_weights_sort(weights);
  RONDO_TRY(lend_files(importer, weights));
  rondo_weights_drop_all(weights); /* what was read to compute constants */
  return RONDO_OK;
}
