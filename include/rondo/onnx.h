/* SPDX-License-Identifier: MIT
 * Models in ONNX files (onnx.ai, "Open Neural Network Exchange"): they are read and validated here, and become programs
 * (<rondo/program.h>).
 *
 *   TRY(rondo_onnx_load("model.onnx", NULL, &model));
 *   const rondo_onnx_dimension_size batch = {"batch", 8};
 *   const rondo_onnx_build_options options = {
 *       RONDO_ONNX_BUILD_OPTIONS_INIT, .dimensions = &batch, .dimension_count = 1};
 *   TRY(rondo_onnx_build_program(model, &options, program, &build));
 *   TRY(rondo_compile(program, device, NULL, &compiled));
 *   TRY(rondo_weights_apply(rondo_onnx_build_weights(build), compiled, NULL, NULL));
 *   rondo_onnx_build_destroy(build);
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
 * A model is immutable and thread-safe, except for its destruction, and so is what was built from it.
 *
 * Component: rondo-onnx.
 */
#ifndef RONDO_ONNX_H
#define RONDO_ONNX_H

#include <stdbool.h>

#include <rondo/program.h>
#include <rondo/weights.h>

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

/* Building programs ------------------------------------------------------------------------------------------------
 *
 * A model becomes operators of a program (<rondo/operators.h>). All shapes are numbers then: a program is built for the
 * sizes of its inputs, and again for other sizes. Programs of one model share their weights, because states have the
 * same names (rondo_compile_options.share).
 *
 * What depends on constants alone is computed during the call, on the CPU, such as the arithmetic of shapes. Some
 * operators must know an input when they are added: the shape of Reshape, the starts of Slice, the k of TopK. Where
 * such a value depends on an input of the model, the caller gives the value of this input for the call. The program is
 * then made for this value, and the input is reported as frozen: build another program for another value. Values that
 * are given and not needed change nothing.
 *
 * Programs have no F64: values of the type double are F32 in the program, also inputs and outputs. Constants that no
 * operator computes with keep their precision. */

/* The size of the dynamic dimensions of a name. */
typedef struct rondo_onnx_dimension_size {
  const char *name;
  size_t size;
} rondo_onnx_dimension_size;

/* What is known of an input. */
typedef struct rondo_onnx_given_input {
  const char *name;
  const size_t *shape; /* `rank` sizes, 0 or more; NULL: that of the model */
  size_t rank;
  const void *data; /* its value in host memory, of the model's type; read during the call. NULL: not known */
  size_t bytes;     /* of it */
} rondo_onnx_given_input;

typedef struct rondo_onnx_build_options {
  uint32_t struct_size;
  bool refuse_double; /* values of the type double are not supported, instead of being F32 */
  const rondo_onnx_dimension_size *dimensions;
  size_t dimension_count;
  const rondo_onnx_given_input *inputs; /* in any order, each once; at most 64 with a value */
  size_t input_count;
  uint64_t most_folded_bytes;       /* of constants that are computed during the call; 0: 1 GiB */
  const rondo_allocator *allocator; /* copied; NULL = the C library's */
} rondo_onnx_build_options;
#define RONDO_ONNX_BUILD_OPTIONS_INIT .struct_size = sizeof(rondo_onnx_build_options)

typedef struct rondo_onnx_build rondo_onnx_build;

/* Adds a model to a program: inputs and outputs by their names in the model, initializers as frozen states by theirs,
 * and constants that were computed as frozen states "constant.<hash of their content>". Initializers of equal content
 * share a state, named after the first. An output that has the name of an input or state of the program is called
 * "<name>.output". options may be NULL. The caller destroys *out_build, before the model. Thread-safe for different
 * programs. Errors, after which the program is unchanged:
 *   UNSUPPORTED: nodes that cannot be imported. The message names the first ones. *out_build is then not NULL: it lists
 *     all of them (rondo_onnx_build_get_unsupported), and the caller destroys it. With other errors it is NULL.
 *   INVALID_ARGUMENT with UNKNOWN_NAME, DUPLICATE_NAME (of options, or in the program), SHAPE (dynamic dimensions
 *     without a size; sizes that do not fit the model's), BAD_SIZE (a value's bytes), NULL_ARGUMENT, BAD_OPTIONS;
 *   LIMIT_EXCEEDED (most_folded_bytes; more than 2^18 nodes, with those of loops each time); OUT_OF_MEMORY;
 *   INVALID_DATA. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_build_program(const rondo_onnx_model *model,
                                                               const rondo_onnx_build_options *options,
                                                               rondo_program *program, rondo_onnx_build **out_build);

/* NULL is fine. */
RONDO_API void rondo_onnx_build_destroy(rondo_onnx_build *build);

/* The values of the program's states, for rondo_weights_apply. They refer to the files of the model, which are not
 * copied. The set belongs to the build. NULL for NULL. */
RONDO_API const rondo_weights *rondo_onnx_build_weights(const rondo_onnx_build *build);

/* An input or output of a model, and what it is in the program. Texts and data are the build's. */
typedef struct rondo_onnx_built_value {
  uint32_t struct_size;
  bool is_frozen;           /* an input whose given value the program depends on */
  bool is_double;           /* it is F32 in the program, and double in the model */
  const char *name;         /* in the model */
  const char *program_name; /* in the program; NULL: it is not there, because nothing depends on an input, or the
                               program can not hold an output */
  const char *type_name;    /* as in rondo_onnx_value */
  rondo_type type;          /* in the program, if it is there */
  size_t rank;
  const size_t *shape;
  const void *data; /* of an output that is the same in each run: its elements, of the type type_name; else NULL */
  size_t bytes;
} rondo_onnx_built_value;

/* Return an input or output by its index, in the order of rondo_onnx_get_input and _output. Thread-safe. Errors:
 * NOT_FOUND past the last; INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_build_get_input(const rondo_onnx_build *build, size_t index,
                                                                 rondo_onnx_built_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_build_get_output(const rondo_onnx_build *build, size_t index,
                                                                  rondo_onnx_built_value *out_value);

/* A node that cannot be imported. Nodes that only lack its results are not listed. */
typedef struct rondo_onnx_unsupported {
  uint32_t struct_size;
  uint32_t reserved;
  const char *node;      /* "node 'conv1' (Conv)", or "input 'x'" */
  const char *domain;    /* of its operator, "" for ONNX's own */
  const char *op;        /* its operator; "" of an input or output */
  const char *attribute; /* which is not supported; "" if that is not the reason */
  const char *reason;
  int64_t opset; /* the version of the domain */
} rondo_onnx_unsupported;

/* Returns what is not supported by its index, in the order of the model. Thread-safe. Errors: NOT_FOUND past the last;
 * INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_build_get_unsupported(const rondo_onnx_build *build, size_t index,
                                                                       rondo_onnx_unsupported *out_unsupported);

typedef struct rondo_onnx_build_info {
  uint32_t struct_size;
  uint32_t reserved;
  size_t inputs, outputs, unsupported; /* how many there are */
  size_t nodes;                        /* that were imported: those of loops and functions each time */
  size_t states;                       /* that were added to the program, */
  uint64_t state_bytes;                /* and their bytes */
  uint64_t folded_bytes;               /* of constants that were computed */
  size_t foldings;                     /* how often programs were compiled to compute constants */
} rondo_onnx_build_info;

/* Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_build_get_info(const rondo_onnx_build *build,
                                                                rondo_onnx_build_info *out_info);

/* Tensors in files --------------------------------------------------------------------------------------------------
 * A file with one tensor in ONNX's format, such as the inputs and expected outputs beside a model ("input_0.pb"). */
typedef struct rondo_onnx_tensor_file rondo_onnx_tensor_file;

typedef struct rondo_onnx_tensor_info {
  uint32_t struct_size;
  bool has_type;         /* `type` is valid: programs have it, or it is F64 */
  rondo_type type;       /* of an element */
  const char *name;      /* "" if it has none */
  const char *type_name; /* as in rondo_onnx_value */
  size_t rank;
  const size_t *shape;
  size_t count;     /* of elements */
  const void *data; /* aligned; NULL for strings and without elements */
  size_t bytes;
} rondo_onnx_tensor_info;

/* Reads a file; options as of rondo_onnx_load. The caller destroys it. Errors: as rondo_onnx_load. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_tensor_load(const char *path, const rondo_onnx_options *options,
                                                             rondo_onnx_tensor_file **out_tensor);
/* NULL is fine. */
RONDO_API void rondo_onnx_tensor_destroy(rondo_onnx_tensor_file *tensor);
/* Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_tensor_get_info(const rondo_onnx_tensor_file *tensor,
                                                                 rondo_onnx_tensor_info *out_info);

RONDO_EXTERN_C_END

#endif
