/* SPDX-License-Identifier: MIT
 * What the server and Rondo call the inputs and outputs of a model: names, types, and the shape of one row. A value
 * with one number a row has the shape [1], because the server has no shapes without dimensions. In models with lengths,
 * the first dimension of a row may be the length, which is -1 here.
 */
#ifndef RONDO_TRITON_TENSOR_DESCRIPTION_H
#define RONDO_TRITON_TENSOR_DESCRIPTION_H

#include <rondo/session.h>

#include "base/allocation.h"
#include "triton/server_abi.h"

typedef struct rondo_triton_tensor {
  const char *name;
  triton_data_type type;
  size_t rank; /* of a row, 1 or more */
  int64_t dims[RONDO_MAX_DIMENSIONS + 1];
  bool has_length;   /* dims[0] is the length */
  bool is_of_source; /* an input of the network that reads sources, which not every request has */
  size_t row_bytes;  /* for one position, if it has the length */
} rondo_triton_tensor;

/* The inputs or outputs of a model, in the session's order. Memory of a scratch. */
typedef struct rondo_triton_tensors {
  rondo_triton_tensor *items;
  size_t count;
} rondo_triton_tensors;

/* Describes the inputs and outputs of a session's model: those of the program for one row, or of a function as they are
 * declared. Inputs that the session writes (rondo_row_inputs) are left out. The inputs of the network that reads
 * sources come last. *out_changes_states says whether a program without lengths changes states. Errors: those of
 * `build`; UNSUPPORTED with TYPE (the server has no such type); INVALID_ARGUMENT with DUPLICATE_NAME (an input of both
 * networks), OUT_OF_RANGE (more than RONDO_SESSION_MAX_VALUES inputs). */
RONDO_MUST_USE rondo_status rondo_triton_describe(rondo_scratch *scratch, const rondo_model_options *model,
                                                  rondo_triton_tensors *out_inputs, rondo_triton_tensors *out_outputs,
                                                  bool *out_changes_states);

/* Bytes of so many rows. Errors: LIMIT_EXCEEDED/BAD_SIZE. */
RONDO_MUST_USE rondo_status rondo_triton_tensor_bytes(const rondo_triton_tensor *tensor, size_t rows, size_t length,
                                                      size_t *out);

/* NULL if no tensor has the name. */
const rondo_triton_tensor *rondo_triton_find_tensor(const rondo_triton_tensors *tensors, const char *name);

/* "TYPE_FP32", as configurations call it. */
const char *rondo_triton_type_name(triton_data_type type);

/* "[4, 8]" into `buffer`, for messages; returns buffer. */
#define RONDO_TRITON_SHAPE_TEXT 160
const char *rondo_triton_shape_text(char buffer[RONDO_TRITON_SHAPE_TEXT], const int64_t *dims, size_t rank);

#endif
