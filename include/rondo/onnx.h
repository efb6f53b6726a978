/* SPDX-License-Identifier: MIT
 * Models in ONNX files (onnx.ai, "Open Neural Network Exchange"): they are read and validated here, and become programs
 * (<rondo/program.h>).
 *
 *   TRY(rondo_onnx_load("model.onnx", NULL, &model));
 *   for (size_t i = 0; rondo_onnx_get_input(model, i, &value) == RONDO_OK; i++) printf("%s\n", value.name);
 *   rondo_onnx_destroy(model);
 *
 * Files of IR versions 3 to 13 are read. A file is mapped, and so are the files of external data beside it: the
 * elements of tensors take memory only while they are used. The files must not be changed in place while the model
 * exists; they may be replaced or deleted. External data must be in the folder of the model or below it. Symbolic links
 * are followed.
 *
 * A model is validated when it is loaded: nesting, texts, sizes, types, names, and that each node comes after those
 * whose results it uses. Files from elsewhere are safe to load.
 *
 * A model is immutable and thread-safe, except for its destruction.
 *
 * Component: rondo-onnx.
 */
#ifndef RONDO_ONNX_H
#define RONDO_ONNX_H

#include <stdbool.h>

#include <rondo/allocator.h>
#include <rondo/status.h>
#include <rondo/type.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_onnx_model rondo_onnx_model;

typedef struct rondo_onnx_options {
  uint32_t struct_size;
  uint32_t reserved;
  const rondo_allocator *allocator; /* copied; NULL = the C library's */
  const char *folder;               /* rondo_onnx_parse: where external data are; NULL: a model with such is refused.
                                       rondo_onnx_load ignores it: it is the folder of the file. */
} rondo_onnx_options;
#define RONDO_ONNX_OPTIONS_INIT .struct_size = sizeof(rondo_onnx_options)

/* Reads a model from a file, or from bytes in memory, which are copied. options may be NULL. The caller destroys the
 * model. Errors, naming the graph, the node and the tensor, or the byte of the file:
 *   INVALID_DATA with TRUNCATED, MALFORMED (not a model, texts with control characters, external data outside of the
 *     folder), SHAPE (negative dimensions), BAD_SIZE (elements that do not fit the shape), UNKNOWN_NAME (a value that
 *     nothing computes), DUPLICATE_NAME, CYCLE (nodes that are not in order, functions that call themselves);
 *   UNSUPPORTED (other IR versions, types that are not known, tensors in segments);
 *   LIMIT_EXCEEDED (messages nested more than 96 deep, calls of functions more than 64, 2 GiB without tensors);
 *   NOT_FOUND, IO_ERROR with errno (the file, or one of external data); OUT_OF_MEMORY; INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_load(const char *path, const rondo_onnx_options *options,
                                                      rondo_onnx_model **out_model);
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_parse(const void *bytes, size_t count,
                                                       const rondo_onnx_options *options, rondo_onnx_model **out_model);

/* Frees a model with its texts and tensors. NULL is fine. */
RONDO_API void rondo_onnx_destroy(rondo_onnx_model *model);

/* A dimension has a size, or is dynamic: then the size is 0, and it may have a name. Dimensions of one name have the
 * same size. */
typedef struct rondo_onnx_dimension {
  bool is_dynamic;
  size_t size;
  const char *name; /* "" if it has none */
} rondo_onnx_dimension;

/* An input or output of a model. Texts and dimensions are the model's own. */
typedef struct rondo_onnx_value {
  uint32_t struct_size;
  bool has_type;   /* `type` is valid: it is a tensor, of a type that programs have */
  bool has_shape;  /* it is a tensor, and `dimensions` are known */
  rondo_type type; /* of an element */
  const char *name;
  const char *type_name; /* as the format calls it: "float", "string"; "sequence", "optional", "map" and "sparse" if it
                            is not a tensor; "unknown" */
  size_t rank;
  const rondo_onnx_dimension *dimensions;
} rondo_onnx_value;

/* Return an input or output by its index, in the order of the graph. Initializers that are listed as inputs, as IR
 * version 3 requires, are not inputs. Thread-safe. Errors: NOT_FOUND past the last; INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_get_input(const rondo_onnx_model *model, size_t index,
                                                           rondo_onnx_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_get_output(const rondo_onnx_model *model, size_t index,
                                                            rondo_onnx_value *out_value);

/* What a model is. Texts are its own, "" where the file has none. */
typedef struct rondo_onnx_info {
  uint32_t struct_size;
  uint32_t ir_version;
  int64_t opset; /* of ONNX's own operators; 0: the model uses none */
  const char *graph_name, *producer_name, *producer_version;
  size_t inputs, outputs;
  size_t nodes;        /* also those of graphs in attributes; bodies of functions count once */
  size_t initializers; /* dense ones, of the main graph */
  uint64_t parameters; /* their elements, and their bytes */
  uint64_t weight_bytes;
} rondo_onnx_info;

/* Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_get_info(const rondo_onnx_model *model, rondo_onnx_info *out_info);

/* An operator of a model, and how many nodes use it. */
typedef struct rondo_onnx_operator {
  uint32_t struct_size;
  uint32_t reserved;
  const char *domain; /* "" for ONNX's own */
  const char *name;
  size_t nodes;
} rondo_onnx_operator;

/* Returns an operator by its index: sorted by domain and name, without the model's own functions. Thread-safe. Errors:
 * NOT_FOUND past the last; INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_get_operator(const rondo_onnx_model *model, size_t index,
                                                              rondo_onnx_operator *out_operator);

RONDO_EXTERN_C_END

#endif
