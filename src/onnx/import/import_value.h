/* SPDX-License-Identifier: MIT
 * The values of a model while it is imported. A value has a result in the program, or is a constant, or is both: an
 * input of the model whose value the caller gave can be either, and so can what is computed from it.
 *
 * A constant is held, with its elements in memory, or deferred: operators of a folding program (folding.h) compute it,
 * which run when its elements are first needed. Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_IMPORT_VALUE_H
#define RONDO_ONNX_IMPORT_IMPORT_VALUE_H

#include <rondo/program.h>

#include "onnx/format/tensor_data.h"

/* Constants may have more dimensions than values of programs. */
#define RONDO_ONNX_MOST_DIMENSIONS 16

typedef struct rondo_onnx_shape {
  rondo_onnx_type type;
  size_t rank;
  size_t dims[RONDO_ONNX_MOST_DIMENSIONS]; /* 0 is a size, too */
} rondo_onnx_shape;

typedef struct rondo_onnx_folding rondo_onnx_folding;

typedef struct rondo_onnx_constant {
  rondo_onnx_shape shape;
  size_t count, bytes;                /* of elements */
  const void *elements;               /* perhaps not aligned; NULL if deferred or without elements */
  const ProtobufCBinaryData *strings; /* of a constant of strings, instead */
  const void *narrowed;               /* of doubles: the elements as F32; NULL: not needed yet */
  const char *name;                   /* of an initializer of the main graph, else NULL */
  uint64_t given;                     /* bit i: it depends on the value of the i-th input that the caller gave */
  rondo_onnx_folding *folding;        /* deferred: the program of `result`; NULL: held */
  rondo_value result;
  rondo_value state;                      /* in the model's program; zero: it has none yet */
  const rondo_onnx_folding *last_folding; /* the last folding program that it became a state of, */
  rondo_value folding_state;              /* and this state */
} rondo_onnx_constant;

/* An input of the model. It becomes an input of the program when it is first read there. */
typedef struct rondo_onnx_import_input {
  const char *name;
  rondo_onnx_shape shape;
  rondo_value result; /* zero: not yet */
  bool is_frozen;     /* the caller gave its value, and the program depends on it */
  int given;          /* which of the given values it is; -1: none */
} rondo_onnx_import_input;

typedef enum rondo_onnx_value_kind {
  RONDO_ONNX_UNKNOWN = 0, /* of a node that cannot be imported */
  RONDO_ONNX_TENSOR_VALUE = 1,
  RONDO_ONNX_SEQUENCE = 2,
  RONDO_ONNX_NOTHING = 3 /* an optional without a value */
} rondo_onnx_value_kind;

typedef struct rondo_onnx_import_value {
  rondo_onnx_value_kind kind;
  rondo_onnx_shape shape;
  rondo_value result;             /* in the model's program */
  rondo_onnx_import_input *input; /* instead of a result */
  rondo_onnx_constant *constant;
  struct rondo_onnx_import_value *items; /* of a sequence */
  size_t item_count;
} rondo_onnx_import_value;

/* Whether the program computes it, or gets it as an input. */
static inline bool rondo_onnx_has_result(const rondo_onnx_import_value *value) {
  return value->result.id != 0 || value->input != NULL;
}

#endif
