/* SPDX-License-Identifier: MIT
 * Reads tensors. The table of types says where a message has the elements that are not raw, and as what.
 */
#include "onnx/format/tensor_data.h"

#include <string.h>

#include "base/error.h"

/* The fields of a message that hold elements. Those of INTS hold all types of 32 bits and less but floats; what is
 * smaller is the lowest bits of an int32. */
typedef enum field { IN_FLOATS, IN_INTS, IN_LONGS, IN_DOUBLES, IN_UNSIGNED, IN_STRINGS } field;

typedef struct type_row {
  const char *name;
  rondo_type type; /* 0: programs have none */
  unsigned char bits;
  field in;
} type_row;

static const type_row types[] = {
    [RONDO_ONNX_FLOAT] = {"float", RONDO_F32, 32, IN_FLOATS},
    [RONDO_ONNX_UINT8] = {"uint8", RONDO_U8, 8, IN_INTS},
    [RONDO_ONNX_INT8] = {"int8", RONDO_I8, 8, IN_INTS},
    [RONDO_ONNX_UINT16] = {"uint16", 0, 16, IN_INTS},
    [RONDO_ONNX_INT16] = {"int16", 0, 16, IN_INTS},
    [RONDO_ONNX_INT32] = {"int32", RONDO_I32, 32, IN_INTS},
    [RONDO_ONNX_INT64] = {"int64", RONDO_I64, 64, IN_LONGS},
    [RONDO_ONNX_STRING] = {"string", 0, 0, IN_STRINGS},
    [RONDO_ONNX_BOOL] = {"bool", RONDO_BOOL, 8, IN_INTS},
    [RONDO_ONNX_FLOAT16] = {"float16", RONDO_F16, 16, IN_INTS},
    [RONDO_ONNX_DOUBLE] = {"double", RONDO_F64, 64, IN_DOUBLES},
    [RONDO_ONNX_UINT32] = {"uint32", 0, 32, IN_UNSIGNED},
    [RONDO_ONNX_UINT64] = {"uint64", 0, 64, IN_UNSIGNED},
    [RONDO_ONNX_COMPLEX64] = {"complex64", 0, 64, IN_FLOATS},
    [RONDO_ONNX_COMPLEX128] = {"complex128", 0, 128, IN_DOUBLES},
    [RONDO_ONNX_BFLOAT16] = {"bfloat16", RONDO_BF16, 16, IN_INTS},
    [RONDO_ONNX_FLOAT8E4M3FN] = {"float8e4m3fn", RONDO_F8_E4M3, 8, IN_INTS},
    [RONDO_ONNX_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", 0, 8, IN_INTS},
    [RONDO_ONNX_FLOAT8E5M2] = {"float8e5m2", RONDO_F8_E5M2, 8, IN_INTS},
    [RONDO_ONNX_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", 0, 8, IN_INTS},
    [RONDO_ONNX_UINT4] = {"uint4", 0, 4, IN_INTS},
    [RONDO_ONNX_INT4] = {"int4", 0, 4, IN_INTS},
    [RONDO_ONNX_FLOAT4E2M1] = {"float4e2m1", 0, 4, IN_INTS},
    [RONDO_ONNX_FLOAT8E8M0] = {"float8e8m0", 0, 8, IN_INTS},
    [RONDO_ONNX_UINT2] = {"uint2", 0, 2, IN_INTS},
    [RONDO_ONNX_INT2] = {"int2", 0, 2, IN_INTS},
};

static const type_row *row_of(int32_t onnx_type) {
  const bool is_known = onnx_type >= RONDO_ONNX_FLOAT && (size_t)onnx_type < sizeof types / sizeof *types;
  return is_known ? &types[onnx_type] : NULL;
}

const char *rondo_onnx_type_name(int32_t onnx_type) {
  const type_row *row = row_of(onnx_type);
  return row != NULL ? row->name : "unknown";
}

unsigned rondo_onnx_type_bits(int32_t onnx_type) {
  const type_row *row = row_of(onnx_type);
  return row != NULL ? row->bits : 0;
}

bool rondo_onnx_find_type(int32_t onnx_type, rondo_type *out_type) {
  const type_row *row = row_of(onnx_type);
  if (row == NULL || row->type == 0) return false;
  *out_type = row->type;
  return true;
}

rondo_onnx_type rondo_onnx_type_of(rondo_type type) {
  size_t row = RONDO_ONNX_FLOAT;
  while (row + 1 < sizeof types / sizeof *types && types[row].type != type) row++;
  return (rondo_onnx_type)row;
}

/* Shapes --------------------------------------------------------------------------------------------------------- */

static rondo_status count_elements(const RondoOnnx__Tensor *message, rondo_onnx_tensor *out) {
  out->rank = message->n_dims;
  out->dims = message->dims;
  out->count = 1;
  for (size_t i = 0; i < out->rank; i++)
    if (out->dims[i] < 0)
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_SHAPE, "its dimension %zu is %lld", i,
                        (long long)out->dims[i]);
  for (size_t i = 0; i < out->rank; i++)
    if (out->dims[i] == 0) out->count = 0; /* also if the product of the others does not fit */
  for (size_t i = 0; i < out->rank; i++)
    if (!rondo_checked_multiply(out->count, (size_t)out->dims[i], &out->count))
      return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_SHAPE,
                        "its shape has more elements than the address space holds");
  return RONDO_OK;
}

/* Elements of less than 8 bits share bytes; the last byte may be partly used. */
static rondo_status count_bytes(const type_row *row, rondo_onnx_tensor *out) {
  const size_t in_a_byte = row->bits > 0 && row->bits < 8 ? 8u / row->bits : 1;
  if (in_a_byte > 1)
    out->bytes = out->count / in_a_byte + (out->count % in_a_byte != 0);
  else if (!rondo_checked_multiply(out->count, row->bits / 8u, &out->bytes))
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_SHAPE, "its elements do not fit into the address space");
  return RONDO_OK;
}

/* Elements ------------------------------------------------------------------------------------------------------- */

static rondo_status require_bytes(const rondo_onnx_tensor *tensor, size_t bytes) {
  if (bytes == tensor->bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_BAD_SIZE, "it has %zu bytes of elements, its type and shape %zu",
                    bytes, tensor->bytes);
}

static rondo_status require_numbers(const rondo_onnx_tensor *tensor, size_t wanted, size_t count) {
  if (wanted == count) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_BAD_SIZE,
                    "it lists %zu elements, its type '%s' and shape need %zu", count,
                    rondo_onnx_type_name((int32_t)tensor->type), wanted);
}

static rondo_status use_numbers(rondo_onnx_tensor *tensor, const void *numbers, size_t count, size_t bytes_each) {
  RONDO_TRY(require_numbers(tensor, tensor->bytes / bytes_each, count));
  tensor->elements = numbers;
  return RONDO_OK;
}

/* Copies the lowest bytes of each number. A number has one element, or as many as share a byte. */
static rondo_status narrow(const rondo_onnx_data_source *source, rondo_onnx_tensor *tensor, const void *numbers,
                           size_t count, size_t bytes_each, size_t bytes_kept) {
  unsigned char *kept;
  if (bytes_kept == bytes_each) return use_numbers(tensor, numbers, count, bytes_each);
  RONDO_TRY(require_numbers(tensor, tensor->bytes / bytes_kept, count));
  if (source->scratch == NULL) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(source->scratch, tensor->bytes, 1, &kept));
  for (size_t i = 0; i < count; i++)
    memcpy(kept + i * bytes_kept, (const unsigned char *)numbers + i * bytes_each, bytes_kept);
  tensor->elements = kept;
  return RONDO_OK;
}

static rondo_status read_listed(const rondo_onnx_data_source *source, const RondoOnnx__Tensor *message,
                                const type_row *row, rondo_onnx_tensor *out) {
  const size_t kept = row->bits < 8 ? 1 : row->bits / 8u;
  switch (row->in) {
    case IN_FLOATS:
      return use_numbers(out, message->float_data, message->n_float_data, sizeof(float));
    case IN_DOUBLES:
      return use_numbers(out, message->double_data, message->n_double_data, sizeof(double));
    case IN_LONGS:
      return use_numbers(out, message->int64_data, message->n_int64_data, sizeof(int64_t));
    case IN_INTS:
      return narrow(source, out, message->int32_data, message->n_int32_data, sizeof(int32_t), kept);
    case IN_UNSIGNED:
      return narrow(source, out, message->uint64_data, message->n_uint64_data, sizeof(uint64_t), kept);
    case IN_STRINGS:
      break;
  }
  out->strings = message->string_data;
  return require_numbers(out, out->count, message->n_string_data);
}

static rondo_status read_raw(const rondo_onnx_data_source *source, const RondoOnnx__Tensor *message,
                             rondo_onnx_tensor *out) {
  rondo_onnx_place place;
  memcpy(&place, message->raw_data.data, sizeof place);
  out->elements = source->file + place.offset;
  return require_bytes(out, (size_t)place.bytes);
}

static rondo_status read_external(const rondo_onnx_data_source *source, const RondoOnnx__Tensor *message,
                                  rondo_onnx_tensor *out) {
  size_t bytes;
  RONDO_TRY(rondo_onnx_find_external(source->external, message->external_data, message->n_external_data, &out->elements,
                                     &bytes));
  return require_bytes(out, bytes);
}

static rondo_status read_elements(const rondo_onnx_data_source *source, const RondoOnnx__Tensor *message,
                                  const type_row *row, rondo_onnx_tensor *out) {
  enum { DEFAULT_LOCATION, EXTERNAL_LOCATION };
  const bool is_external = message->has_data_location && message->data_location == EXTERNAL_LOCATION;
  if (message->segment != NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE, "it is one of several segments, which no exporter writes");
  if (row->in == IN_STRINGS && (is_external || message->has_raw_data))
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "its strings are not a list of strings");
  if (is_external) return read_external(source, message, out);
  return message->has_raw_data ? read_raw(source, message, out) : read_listed(source, message, row, out);
}

static rondo_status read_tensor(const rondo_onnx_data_source *source, const RondoOnnx__Tensor *message,
                                rondo_onnx_tensor *out) {
  const type_row *row = row_of(message->data_type);
  if (row == NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_TYPE, "its type has the number %d, which Rondo does not know",
                      message->data_type);
  out->type = (rondo_onnx_type)message->data_type;
  RONDO_TRY(count_elements(message, out));
  RONDO_TRY(count_bytes(row, out));
  return read_elements(source, message, row, out);
}

rondo_status rondo_onnx_read_tensor(const rondo_onnx_data_source *source, const RondoOnnx__Tensor *message,
                                    rondo_onnx_tensor *out) {
  *out = (rondo_onnx_tensor){.name = rondo_onnx_text(message->name)};
  const rondo_status status = read_tensor(source, message, out);
  if (out->name[0] == '\0') return rondo_fail_context(status, "a tensor without a name");
  return rondo_fail_context(status, "the tensor '%s'", out->name);
}
