/* SPDX-License-Identifier: MIT
 * Dense tensors in host memory.
 */
#include "common/host_tensor.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/random_numbers.h"
#include "common/tool.h"

const char *shape_write(const size_t *shape, size_t rank, char out[SHAPE_TEXT]) {
  size_t at = 1;
  strcpy(out, "[");
  for (size_t i = 0; i < rank && at < SHAPE_TEXT - 32; i++)
    at += (size_t)snprintf(out + at, SHAPE_TEXT - at, "%s%zu", i > 0 ? ", " : "", shape[i]);
  snprintf(out + at, SHAPE_TEXT - at, "]");
  return out;
}

/* Making ----------------------------------------------------------------------------------------------------------- */

int host_tensor_create(const char *name, rondo_type type, const size_t *shape, size_t rank, host_tensor *out) {
  *out = (host_tensor){.type = type, .rank = rank, .count = 1};
  const size_t bytes = rondo_type_bytes(type);
  char text[SHAPE_TEXT];
  if (rank > RONDO_MAX_DIMENSIONS)
    return tool_fail("%s: it has %zu dimensions; the most are %d", name, rank, RONDO_MAX_DIMENSIONS);
  for (size_t i = 0; i < rank; i++) {
    out->shape[i] = shape[i];
    if (shape[i] > 0 && out->count > SIZE_MAX / bytes / shape[i])
      return tool_fail("%s: its shape %s is too large", name, shape_write(shape, rank, text));
    out->count *= shape[i];
  }
  out->bytes = out->count * bytes;
  out->data = calloc(out->bytes > 0 ? out->bytes : 1, 1);
  return out->data ? TOOL_OK : tool_fail_memory("%s, %s", name, shape_write(shape, rank, text));
}

void host_tensor_destroy(host_tensor *tensor) {
  free(tensor->data);
  *tensor = (host_tensor){0};
}

/* Elements --------------------------------------------------------------------------------------------------------- */

/* A float of so many bits of exponent and mantissa. `infinity`: the largest exponent is that of infinity and NaN;
 * otherwise all ones are NaN. */
static double from_bits(unsigned bits, int exponent_bits, int mantissa_bits, bool infinity) {
  const int most = (1 << exponent_bits) - 1, bias = most >> 1;
  const int exponent = (int)(bits >> mantissa_bits) & most, mantissa = (int)bits & ((1 << mantissa_bits) - 1);
  const bool is_negative = (bits >> (exponent_bits + mantissa_bits) & 1) != 0;
  double size = exponent == 0 ? ldexp(mantissa, 1 - bias - mantissa_bits)
                              : ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  if (infinity && exponent == most) size = mantissa != 0 ? (double)NAN : (double)INFINITY;
  if (!infinity && exponent == most && mantissa == (1 << mantissa_bits) - 1) size = (double)NAN;
  return is_negative ? -size : size;
}

double host_tensor_at(const host_tensor *tensor, size_t index) {
  const void *data = tensor->data;
  switch (tensor->type) {
    case RONDO_F32:
      return (double)((const float *)data)[index];
    case RONDO_F64:
      return ((const double *)data)[index];
    case RONDO_I32:
      return ((const int32_t *)data)[index];
    case RONDO_I64:
      return (double)((const int64_t *)data)[index];
    case RONDO_I8:
      return ((const int8_t *)data)[index];
    case RONDO_U8:
    case RONDO_BOOL:
      return ((const uint8_t *)data)[index];
    case RONDO_F16:
      return from_bits(((const uint16_t *)data)[index], 5, 10, true);
    case RONDO_BF16:
      return from_bits(((const uint16_t *)data)[index], 8, 7, true);
    case RONDO_F8_E4M3:
      return from_bits(((const uint8_t *)data)[index], 4, 3, false);
    case RONDO_F8_E5M2:
      return from_bits(((const uint8_t *)data)[index], 5, 2, true);
  }
  return 0;
}

/* The upper half, rounded to the nearest, ties to even. */
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void set_at(host_tensor *to, size_t index, double value) {
  if (to->type == RONDO_F64)
    ((double *)to->data)[index] = value;
  else if (to->type == RONDO_F32)
    ((float *)to->data)[index] = (float)value;
  else
    ((uint16_t *)to->data)[index] = to_bf16((float)value);
}

static bool is_integer(rondo_type type) {
  return type == RONDO_I8 || type == RONDO_U8 || type == RONDO_I32 || type == RONDO_I64;
}

static int64_t integer_at(const host_tensor *tensor, size_t index) {
  return tensor->type == RONDO_I64 ? ((const int64_t *)tensor->data)[index] : (int64_t)host_tensor_at(tensor, index);
}

/* Returns whether the type holds the number. */
static bool set_integer(host_tensor *to, size_t index, int64_t value) {
  switch (to->type) {
    case RONDO_I8:
      ((int8_t *)to->data)[index] = (int8_t)value;
      return value >= INT8_MIN && value <= INT8_MAX;
    case RONDO_U8:
      ((uint8_t *)to->data)[index] = (uint8_t)value;
      return value >= 0 && value <= UINT8_MAX;
    case RONDO_I32:
      ((int32_t *)to->data)[index] = (int32_t)value;
      return value >= INT32_MIN && value <= INT32_MAX;
    default:
      ((int64_t *)to->data)[index] = value;
      return true;
  }
}

static int convert_elements(const char *name, const host_tensor *from, host_tensor *to) {
  for (size_t i = 0; i < to->count; i++) {
    if (!is_integer(to->type)) {
      set_at(to, i, host_tensor_at(from, i));
    } else if (!set_integer(to, i, integer_at(from, i))) {
      return tool_fail("%s: element %zu is %" PRId64 "; the model needs %s", name, i, integer_at(from, i),
                       rondo_type_name(to->type));
    }
  }
  return TOOL_OK;
}

int host_tensor_convert(const char *name, rondo_type type, host_tensor *inout) {
  const bool is_source = inout->type == RONDO_F32 || inout->type == RONDO_F64;
  const bool is_target = type == RONDO_F32 || type == RONDO_F64 || type == RONDO_BF16;
  host_tensor made;
  if (inout->type == type) return TOOL_OK;
  if (!(is_source && is_target) && !(is_integer(inout->type) && is_integer(type)))
    return tool_fail("%s: it has the type %s; the model needs %s", name, rondo_type_name(inout->type),
                     rondo_type_name(type));
  if (host_tensor_create(name, type, inout->shape, inout->rank, &made) != TOOL_OK) return TOOL_FAILURE;
  const int result = convert_elements(name, inout, &made);
  host_tensor_destroy(result == TOOL_OK ? inout : &made);
  if (result == TOOL_OK) *inout = made;
  return result;
}

rondo_type foreign_integer_type(foreign_integer kind) {
  return kind == FOREIGN_I16 || kind == FOREIGN_U16 ? RONDO_I32 : RONDO_I64;
}

size_t foreign_integer_bytes(foreign_integer kind) {
  static const size_t bytes[] = {
      [FOREIGN_NONE] = 0, [FOREIGN_I16] = 2, [FOREIGN_U16] = 2, [FOREIGN_U32] = 4, [FOREIGN_U64] = 8};
  return bytes[kind];
}

/* The elements may be anywhere in a file. */
static uint64_t foreign_at(foreign_integer kind, const void *elements, size_t index) {
  uint64_t value = 0;
  const size_t bytes = foreign_integer_bytes(kind);
  memcpy(&value, (const char *)elements + index * bytes, bytes); /* little-endian, as the files are */
  return value;
}

int host_tensor_take_foreign(const char *name, foreign_integer kind, const void *elements, host_tensor *inout) {
  for (size_t i = 0; i < inout->count; i++) {
    const uint64_t value = foreign_at(kind, elements, i);
    if (value > INT64_MAX) return tool_fail("%s: element %zu is %" PRIu64 ", which I64 does not hold", name, i, value);
    (void)set_integer(inout, i, kind == FOREIGN_I16 ? (int16_t)value : (int64_t)value);
  }
  return TOOL_OK;
}

/* Random floats of 16 and 8 bits have a size from 0.25 or 0.5 up to 1: random bits under a fixed upper part. */
static void draw_one(host_tensor *to, size_t index, draw_source *source) {
  const uint64_t drawn = draw_next(&source->state);
  const double unit = 2 * (double)(drawn >> 11) * 0x1p-53 - 1;
  const unsigned sign = (unsigned)(drawn >> 63), bit = (unsigned)(drawn >> 62 & 1), low = (unsigned)(drawn >> 20);
  switch (to->type) {
    case RONDO_F32:
    case RONDO_F64:
    case RONDO_BF16:
      set_at(to, index, unit);
      return;
    case RONDO_F16:
      ((uint16_t *)to->data)[index] = (uint16_t)(sign << 15 | (13 + bit) << 10 | (low & 1023));
      return;
    case RONDO_F8_E4M3:
      ((uint8_t *)to->data)[index] = (uint8_t)(sign << 7 | 6 << 3 | (low & 7));
      return;
    case RONDO_F8_E5M2:
      ((uint8_t *)to->data)[index] = (uint8_t)(sign << 7 | 14 << 2 | (low & 3));
      return;
    case RONDO_I32:
      ((int32_t *)to->data)[index] = (int32_t)bit;
      return;
    case RONDO_I64:
      ((int64_t *)to->data)[index] = bit;
      return;
    case RONDO_I8:
    case RONDO_U8:
    case RONDO_BOOL:
      ((uint8_t *)to->data)[index] = (uint8_t)bit;
  }
}

void host_tensor_cut(host_tensor *inout, size_t dimension, size_t size) {
  const size_t before = inout->shape[dimension];
  size_t part = rondo_type_bytes(inout->type), parts = 1;
  if (size >= before) return;
  for (size_t d = 0; d < dimension; d++) parts *= inout->shape[d];
  for (size_t d = dimension + 1; d < inout->rank; d++) part *= inout->shape[d];
  for (size_t i = 1; i < parts; i++)
    memmove((char *)inout->data + i * size * part, (char *)inout->data + i * before * part, size * part);
  inout->shape[dimension] = size;
  inout->count = inout->count / before * size;
  inout->bytes = parts * size * part;
}

void host_tensor_draw(host_tensor *inout, uint64_t seed) {
  draw_source source = draw_create(seed, DRAW_BATCHES);
  for (size_t i = 0; i < inout->count; i++) draw_one(inout, i, &source);
}

/* Comparing -------------------------------------------------------------------------------------------------------- */

static bool is_float(rondo_type type) {
  return type == RONDO_F32 || type == RONDO_F64 || type == RONDO_F16 || type == RONDO_BF16 || type == RONDO_F8_E4M3 ||
         type == RONDO_F8_E5M2;
}

bool host_tensor_is_like(const host_tensor *a, const host_tensor *b) {
  if (a->type != b->type && !(is_float(a->type) && is_float(b->type))) return false;
  if (a->rank != b->rank) return false;
  return a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static bool is_near(double actual, double expected, double relative, double absolute) {
  if (isnan(actual) || isnan(expected)) return isnan(actual) && isnan(expected);
  if (isinf(actual) || isinf(expected)) return signbit(actual) == signbit(expected) && isinf(actual) && isinf(expected);
  return fabs(actual - expected) <= absolute + relative * fabs(expected);
}

tensor_difference host_tensor_compare(const host_tensor *actual, const host_tensor *expected, double relative,
                                      double absolute) {
  tensor_difference found = {0};
  const bool is_exact = !is_float(actual->type);
  const size_t bytes = rondo_type_bytes(actual->type);
  for (size_t i = 0; i < actual->count; i++) {
    const double is = host_tensor_at(actual, i), should = host_tensor_at(expected, i), far = fabs(is - should);
    const bool is_right =
        is_exact ? memcmp((const char *)actual->data + i * bytes, (const char *)expected->data + i * bytes, bytes) == 0
                 : is_near(is, should, relative, absolute);
    if (far > found.largest) found.largest = far;
    if (is_right) continue;
    if (found.wrong++ == 0) found.first_wrong = i;
  }
  return found;
}
