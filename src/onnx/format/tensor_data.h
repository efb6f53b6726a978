/* SPDX-License-Identifier: MIT
 * The elements of a file's tensors: in the mapped file, in a file beside it, or in the message. They are validated
 * against type and shape when they are read, and stay where they are as far as possible.
 *
 * Threads: any; a scratch belongs to one at a time.
 */
#ifndef RONDO_ONNX_FORMAT_TENSOR_DATA_H
#define RONDO_ONNX_FORMAT_TENSOR_DATA_H

#include <rondo/type.h>

#include "base/files/file_mapping.h"
#include "onnx/format/external_data.h"
#include "onnx/format/wire_reader.h"

/* The numbers of TensorProto.DataType in the format. */
typedef enum rondo_onnx_type {
  RONDO_ONNX_FLOAT = 1,
  RONDO_ONNX_UINT8 = 2,
  RONDO_ONNX_INT8 = 3,
  RONDO_ONNX_UINT16 = 4,
  RONDO_ONNX_INT16 = 5,
  RONDO_ONNX_INT32 = 6,
  RONDO_ONNX_INT64 = 7,
  RONDO_ONNX_STRING = 8,
  RONDO_ONNX_BOOL = 9,
  RONDO_ONNX_FLOAT16 = 10,
  RONDO_ONNX_DOUBLE = 11,
  RONDO_ONNX_UINT32 = 12,
  RONDO_ONNX_UINT64 = 13,
  RONDO_ONNX_COMPLEX64 = 14,
  RONDO_ONNX_COMPLEX128 = 15,
  RONDO_ONNX_BFLOAT16 = 16,
  RONDO_ONNX_FLOAT8E4M3FN = 17,
  RONDO_ONNX_FLOAT8E4M3FNUZ = 18,
  RONDO_ONNX_FLOAT8E5M2 = 19,
  RONDO_ONNX_FLOAT8E5M2FNUZ = 20,
  RONDO_ONNX_UINT4 = 21,
  RONDO_ONNX_INT4 = 22,
  RONDO_ONNX_FLOAT4E2M1 = 23,
  RONDO_ONNX_FLOAT8E8M0 = 24,
  RONDO_ONNX_UINT2 = 25,
  RONDO_ONNX_INT2 = 26
} rondo_onnx_type;

/* The name in the format, in lower case: "float", "int64"; "unknown" for another number. */
const char *rondo_onnx_type_name(int32_t onnx_type);

/* Bits of an element; 0 of strings and for another number. */
unsigned rondo_onnx_type_bits(int32_t onnx_type);

/* Finds the type that programs have for such elements; false if they have none. */
bool rondo_onnx_find_type(int32_t onnx_type, rondo_type *out_type);

/* The other way round. */
rondo_onnx_type rondo_onnx_type_of(rondo_type type);

typedef struct rondo_onnx_tensor {
  const char *name; /* may be "" */
  rondo_onnx_type type;
  size_t rank;
  const int64_t *dims; /* at least 0 each; of the message */
  size_t count;        /* of elements */
  size_t bytes;
  const void *elements;               /* perhaps not aligned. Types of less than 8 bits have several in a byte. */
  const ProtobufCBinaryData *strings; /* of a tensor of strings, instead */
} rondo_onnx_tensor;

/* Where tensors are read from. */
typedef struct rondo_onnx_data_source {
  rondo_scratch *scratch; /* NULL: tensors are checked, and elements that would be copied are left out */
  const uint8_t *file;    /* of the model */
  rondo_onnx_external_files *external;
} rondo_onnx_data_source;

/* Reads a tensor. Elements are those of the mapped file or message, or, where the message has another type for them, a
 * copy in the scratch. Errors: INVALID_DATA with MALFORMED, SHAPE (a negative dimension), BAD_SIZE (not as many
 * elements as the shape has); UNSUPPORTED/TYPE (an unknown type, segments); LIMIT_EXCEEDED; those of external files;
 * OUT_OF_MEMORY. They name the tensor. */
RONDO_MUST_USE rondo_status rondo_onnx_read_tensor(const rondo_onnx_data_source *source,
                                                   const RondoOnnx__Tensor *message, rondo_onnx_tensor *out);

#endif
