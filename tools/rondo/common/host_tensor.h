/* SPDX-License-Identifier: MIT
 * Dense tensors in host memory, in row-major order: the inputs and outputs of models. They are read from files
 * (onnx/tensor_read.h), made of random numbers, and compared.
 *
 * Functions that return int return TOOL_OK, or TOOL_FAILURE after a message. One thread at a time.
 */
#ifndef RONDO_TOOL_HOST_TENSOR_H
#define RONDO_TOOL_HOST_TENSOR_H

#include <rondo/rondo.h>

typedef struct host_tensor {
  rondo_type type;
  size_t rank, shape[RONDO_MAX_DIMENSIONS];
  size_t count, bytes; /* of all elements */
  void *data;          /* owned; never NULL, also without elements */
} host_tensor;

/* Allocates zeros. Messages call the tensor `name`. */
int host_tensor_create(const char *name, rondo_type type, const size_t *shape, size_t rank, host_tensor *out);
void host_tensor_destroy(host_tensor *tensor); /* may be zeroed */

/* Integers of types that programs do not have. Files may have them. */
typedef enum foreign_integer { FOREIGN_NONE, FOREIGN_I16, FOREIGN_U16, FOREIGN_U32, FOREIGN_U64 } foreign_integer;

/* The type that holds them: I32, or I64. And the bytes of one. */
rondo_type foreign_integer_type(foreign_integer kind);
size_t foreign_integer_bytes(foreign_integer kind);

/* Fills a tensor of the type that holds them. A number above 2^63 - 1 is refused. */
int host_tensor_take_foreign(const char *name, foreign_integer kind, const void *elements, host_tensor *inout);

/* Changes the elements to a type, as far as models need it: from F64 or F32 to F32, F64 or BF16, and between integers
 * if the type holds all of them. Does nothing if it is the type already. Other types are refused. */
int host_tensor_convert(const char *name, rondo_type type, host_tensor *inout);

/* Keeps the first `size` indices of a dimension, if it has more. */
void host_tensor_cut(host_tensor *inout, size_t dimension, size_t size);

/* Fills it with random numbers: floats between -1 and 1, integers and truth values 0 or 1, which are valid as indices
 * and as masks. */
void host_tensor_draw(host_tensor *inout, uint64_t seed);

/* An element as a number. Exact, except for I64 beyond 2^53. */
double host_tensor_at(const host_tensor *tensor, size_t index);

/* Whether the tensors have one type, apart from the widths of floats, and one shape. */
bool host_tensor_is_like(const host_tensor *a, const host_tensor *b);

/* Tensors that are alike: the largest absolute difference, and how many elements of `actual` differ from `expected` by
 * more than absolute + relative * |expected|. NaN equals NaN; integers must be equal. */
typedef struct tensor_difference {
  double largest;
  size_t wrong;       /* elements */
  size_t first_wrong; /* its index */
} tensor_difference;
tensor_difference host_tensor_compare(const host_tensor *actual, const host_tensor *expected, double relative,
                                      double absolute);

/* "[2, 3]", or shorter if it does not fit. */
#define SHAPE_TEXT 128
const char *shape_write(const size_t *shape, size_t rank, char out[SHAPE_TEXT]);

#endif
