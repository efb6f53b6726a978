/* SPDX-License-Identifier: MIT
 * The values of a model while it is imported. A value has a result in the program, or is a constant, or is both: an
 * input of the model whose value the caller gave can be either, and so can what is computed from it.
 *
 * A constant is held, with its elements in memory; or filled: all elements are equal to one, and are written when they
 * are first needed; or deferred: operators of a folding program (folding.h) compute it, which run then. Threads: one at
 * a time.
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

/* The shape in a program, where values have at most RONDO_MAX_DIMENSIONS dimensions: of more, those between the first
 * and the last ones are one, so that rows stay rows. */
rondo_onnx_shape rondo_onnx_program_shape(const rondo_onnx_shape *shape);

typedef struct rondo_onnx_folding rondo_onnx_folding;

/* Memory of elements that were computed at import. What no weight has taken is freed when the import ends. */
typedef struct rondo_onnx_elements {
  struct rondo_onnx_elements *previous;
  void *memory;
  size_t bytes;
  bool is_taken;
} rondo_onnx_elements;

/* A bit of rondo_onnx_constant.given: it depends on the sizes of inputs. */
#define RONDO_ONNX_OF_SIZES (UINT64_C(1) << 63)

typedef struct rondo_onnx_constant {
  rondo_onnx_shape shape;
  size_t count, bytes;                /* of elements */
  const void *elements;               /* perhaps not aligned; NULL if filled, deferred or without elements */
  rondo_onnx_elements *owner;         /* of the elements; NULL: they are in the file or in memory of the result */
  const void *filling;                /* filled: the element; NULL: it is not */
  const ProtobufCBinaryData *strings; /* of a constant of strings, instead */
  const void *widened;         /* of types that programs lack: as those of the wider type; NULL: not needed yet */
  const char *name;            /* of an initializer of the main graph, else NULL */
  uint64_t given;              /* bit i: it depends on the value of the i-th input that the caller gave; or
                                  RONDO_ONNX_OF_SIZES */
  rondo_onnx_folding *folding; /* deferred: the program of `result`; NULL: held */
  rondo_value result;
  rondo_value state;                      /* in the model's program; zero: it has none yet */
  rondo_value number;                     /* likewise, of a single number: a constant of the program */
  const rondo_onnx_folding *last_folding; /* the last folding program that it became a state of, */
  rondo_value folding_state;              /* and this state */
} rondo_onnx_constant;

/* Models that are divided, and what later parts may read (model_part.h). */
typedef struct rondo_onnx_model_part rondo_onnx_model_part;
typedef struct rondo_onnx_handed rondo_onnx_handed;

/* An input of the model. It becomes an input of the program when it is first read there. */
typedef struct rondo_onnx_import_input {
  const char *name;
  rondo_onnx_shape shape;
  rondo_value result;              /* zero: not yet */
  bool is_frozen;                  /* the caller gave its value, and the program depends on it */
  int given;                       /* which of the given values it is; -1: none */
  const rondo_onnx_handed *handed; /* it is a value of an earlier part; NULL: it is one of the model */
} rondo_onnx_import_input;

/* An image that is added to the program when it is first read (scaled_image.h). */
typedef struct rondo_onnx_scaled_image rondo_onnx_scaled_image;

typedef enum rondo_onnx_value_kind {
  RONDO_ONNX_UNKNOWN = 0, /* of a node that cannot be imported */
  RONDO_ONNX_TENSOR_VALUE = 1,
  RONDO_ONNX_SEQUENCE = 2,
  RONDO_ONNX_NOTHING = 3 /* an optional without a value */
} rondo_onnx_value_kind;

/* Items that sequences share: each has the first ones. Insertion at the end adds one, unless another sequence has done
 * so, so that a loop that builds a sequence does not copy it each time. */
typedef struct rondo_onnx_item_list {
  struct rondo_onnx_import_value *items;
  size_t count, capacity;
} rondo_onnx_item_list;

/* What DequantizeLinear computes of 8-bit integers that are constant: products read these (quantized_operand.h). */
typedef struct rondo_onnx_quantized {
  rondo_onnx_constant *x, *scale, *zero; /* zero NULL: 0 */
  size_t dimension;                      /* of a scale with more than one element */
} rondo_onnx_quantized;

typedef struct rondo_onnx_import_value {
  rondo_onnx_value_kind kind;
  rondo_onnx_shape shape;
  rondo_value result;              /* in the model's program */
  rondo_onnx_import_input *input;  /* instead of a result, */
  rondo_onnx_scaled_image *scaled; /* and likewise */
  rondo_onnx_constant *constant;
  const rondo_onnx_quantized *quantized; /* of a constant: what it is computed from; or NULL */
  rondo_onnx_constant *transposed;       /* of a constant matrix: the one whose transpose it is; or NULL */
  rondo_value count;   /* of a result whose size depends on data: an integer of the program, how many indices of */
  size_t counted_axis; /* ... this dimension are used, from the first on; zero: all */
  rondo_onnx_handed *handed;  /* of a result in a divided model: what later parts know it by; else NULL */
  rondo_onnx_item_list *list; /* of a sequence: the first item_count items of it */
  size_t item_count;
} rondo_onnx_import_value;

/* Whether the program computes it, or gets it as an input. */
static inline bool rondo_onnx_has_result(const rondo_onnx_import_value *value) {
  return value->result.id != 0 || value->input != NULL || value->scaled != NULL;
}

#endif
