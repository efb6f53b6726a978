/* SPDX-License-Identifier: MIT
 * Operators that make constants.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

static rondo_status set_tensor(rondo_onnx_node *node, const RondoOnnx__Tensor *message) {
  rondo_onnx_tensor tensor;
  rondo_onnx_constant *constant;
  RONDO_TRY(rondo_onnx_read_tensor(&node->importer->source, message, &tensor));
  RONDO_TRY(rondo_onnx_constant_of(node->importer, &tensor, &constant));
  rondo_onnx_set_constant(node, 0, constant);
  return RONDO_OK;
}

static rondo_status set_numbers(rondo_onnx_node *node, rondo_onnx_type type, const void *numbers, size_t count,
                                size_t rank) {
  const rondo_onnx_tensor tensor = {.name = "",
                                    .type = type,
                                    .rank = rank,
                                    .dims = (const int64_t[]){(int64_t)count},
                                    .count = count,
                                    .bytes = count * rondo_onnx_type_bytes(type),
                                    .elements = numbers};
  rondo_onnx_constant *constant;
  RONDO_TRY(rondo_onnx_constant_of(node->importer, &tensor, &constant));
  rondo_onnx_set_constant(node, 0, constant);
  return RONDO_OK;
}

static rondo_status set_strings(rondo_onnx_node *node, const ProtobufCBinaryData *strings, size_t count, size_t rank) {
  const rondo_onnx_tensor tensor = {.name = "",
                                    .type = RONDO_ONNX_STRING,
                                    .rank = rank,
                                    .dims = (const int64_t[]){(int64_t)count},
                                    .count = count,
                                    .strings = strings};
  rondo_onnx_constant *constant;
  RONDO_TRY(rondo_onnx_constant_of(node->importer, &tensor, &constant));
  rondo_onnx_set_constant(node, 0, constant);
  return RONDO_OK;
}

static rondo_status set_attribute(rondo_onnx_node *node, const RondoOnnx__Attribute *attribute) {
  rondo_onnx_constant *constant;
  switch ((rondo_onnx_attribute_type)attribute->type) {
    case RONDO_ONNX_ATTRIBUTE_TENSOR:
      return set_tensor(node, attribute->t);
    case RONDO_ONNX_ATTRIBUTE_SPARSE_TENSOR:
      RONDO_TRY(rondo_onnx_constant_of_sparse(node->importer, attribute->sparse_tensor, &constant));
      rondo_onnx_set_constant(node, 0, constant);
      return RONDO_OK;
    case RONDO_ONNX_ATTRIBUTE_FLOAT:
      return set_numbers(node, RONDO_ONNX_FLOAT, &attribute->f, 1, 0);
    case RONDO_ONNX_ATTRIBUTE_FLOATS:
      return set_numbers(node, RONDO_ONNX_FLOAT, attribute->floats, attribute->n_floats, 1);
    case RONDO_ONNX_ATTRIBUTE_INT:
      return set_numbers(node, RONDO_ONNX_INT64, &attribute->i, 1, 0);
    case RONDO_ONNX_ATTRIBUTE_INTS:
      return set_numbers(node, RONDO_ONNX_INT64, attribute->ints, attribute->n_ints, 1);
    case RONDO_ONNX_ATTRIBUTE_STRING:
      return set_strings(node, &attribute->s, 1, 0);
    case RONDO_ONNX_ATTRIBUTE_STRINGS:
      return set_strings(node, attribute->strings, attribute->n_strings, 1);
    default:
      return rondo_onnx_refuse(node, "its value has a type with the number %d", attribute->type);
  }
}

static rondo_status add_constant(rondo_onnx_node *node, const void *data) {
  static const char *const names[] = {"value",      "value_float",  "value_floats",  "value_int",
                                      "value_ints", "value_string", "value_strings", "sparse_value"};
  (void)data;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const RondoOnnx__Attribute *attribute = rondo_onnx_attribute_of(node, names[i]);
    if (attribute != NULL) return set_attribute(node, attribute);
  }
  return rondo_onnx_refuse(node, "it has no value");
}

/* The value of an element: an attribute, or the float 0. */
static rondo_status find_fill(rondo_onnx_node *node, rondo_onnx_tensor *out) {
  static const float zero = 0;
  const RondoOnnx__Attribute *attribute = rondo_onnx_attribute_of(node, "value");
  *out = (rondo_onnx_tensor){.type = RONDO_ONNX_FLOAT, .count = 1, .bytes = sizeof zero, .elements = &zero};
  if (attribute == NULL) return RONDO_OK;
  if (attribute->t == NULL) return rondo_onnx_refuse_attribute(node, "value", "it is no tensor");
  RONDO_TRY(rondo_onnx_read_tensor(&node->importer->source, attribute->t, out));
  if (out->count == 1 && rondo_onnx_type_bytes(out->type) > 0) return RONDO_OK;
  return rondo_onnx_refuse_attribute(node, "value", "it has %zu elements of the type '%s', and one is needed",
                                     out->count, rondo_onnx_type_name((int32_t)out->type));
}

static rondo_status add_constant_of_shape(rondo_onnx_node *node, const void *data) {
  rondo_onnx_tensor fill;
  rondo_onnx_shape shape = {0};
  rondo_onnx_constant *constant;
  const int64_t *sizes;
  (void)data;
  RONDO_TRY(rondo_onnx_known_integers(node, 0, &sizes, &shape.rank));
  RONDO_TRY(find_fill(node, &fill));
  if (shape.rank > RONDO_ONNX_MOST_DIMENSIONS) return rondo_onnx_refuse(node, "it has %zu dimensions", shape.rank);
  for (size_t i = 0; i < shape.rank; i++) {
    if (sizes[i] < 0) return rondo_onnx_refuse(node, "size %lld of dimension %zu", (long long)sizes[i], i);
    shape.dims[i] = (size_t)sizes[i];
  }
  shape.type = fill.type;
  RONDO_TRY(rondo_onnx_constant_fill(node->importer, &shape, fill.elements, &constant));
  rondo_onnx_set_constant(node, 0, constant);
  return RONDO_OK;
}

/* Range ------------------------------------------------------------------------------------------------------------ */

/* Numbers as the model has them: integers are exact up to 2^53. */
static rondo_status read_scalar(rondo_onnx_node *node, size_t index, double *out) {
  const double *numbers;
  size_t count;
  RONDO_TRY(rondo_onnx_known_numbers(node, index, &numbers, &count));
  if (count != 1) return rondo_onnx_refuse(node, "input %zu has %zu elements, not one", index, count);
  *out = numbers[0];
  return RONDO_OK;
}

static rondo_status add_range(rondo_onnx_node *node, const void *data) {
  rondo_onnx_shape shape = {.type = rondo_onnx_input_shape(node, 0)->type, .rank = 1};
  double start, limit, step;
  rondo_program *program;
  rondo_type type;
  rondo_value y;
  (void)data;
  RONDO_TRY(read_scalar(node, 0, &start));
  RONDO_TRY(read_scalar(node, 1, &limit));
  RONDO_TRY(read_scalar(node, 2, &step));
  const double count = ceil((limit - start) / step);
  if (!(fabs(count) < 1e15)) return rondo_onnx_refuse(node, "from %g to %g by steps of %g", start, limit, step);
  if (count <= 0) return rondo_onnx_set_empty(node, 0, &shape);
  RONDO_TRY(rondo_onnx_program_type(node->importer, shape.type, &type));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_arange(program, type, (size_t)count, start, step, &y));
  return rondo_onnx_set_typed(node, 0, y, shape.type);
}

/* EyeLike: of the input, the shape alone is used. */
static rondo_status add_eye_like(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  int64_t to, diagonal;
  rondo_program *program;
  rondo_type type;
  rondo_value y;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "dtype", (int64_t)have->type, &to));
  RONDO_TRY(rondo_onnx_attribute_int(node, "k", 0, &diagonal));
  if (have->rank != 2 || rondo_onnx_shape_count(have) == 0) return rondo_onnx_refuse(node, "its input is no matrix");
  RONDO_TRY(rondo_onnx_program_type(node->importer, (rondo_onnx_type)to, &type));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_eye(program, type, have->dims[0], have->dims[1], diagonal, &y));
  return rondo_onnx_set_typed(node, 0, y, (rondo_onnx_type)to);
}

static const rondo_onnx_row rows[] = {
    {"Constant", 1, 0, 0, 0, 0, add_constant, NULL},
    {"ConstantOfShape", 9, 0, 1, 1, 0, add_constant_of_shape, NULL},
    {"EyeLike", 9, 0, 1, 1, 0, add_eye_like, NULL},
    {"Range", 11, 0, 3, 3, 0, add_range, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_constants, rows);
