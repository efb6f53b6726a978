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
 *   TRY(rondo_onnx_build_move_weights(build, compiled));
 *   rondo_onnx_build_destroy(build);
 *   rondo_onnx_destroy(model);
 *
 * Files of IR versions 3 to 14 are read. A file is mapped, and so are the files of external data beside it: the
 * elements of tensors take memory only while they are used. The files must not be changed in place while the model
 * exists, nor while a program exists that maps its weights (rondo_onnx_build_move_weights), or a session's model; they
 * may be replaced or deleted. External data must be in the folder of the model or below it. Symbolic links are
 * followed.
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
#include <rondo/tree.h>
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
 *   LIMIT_EXCEEDED (messages nested more than 96 deep, calls of functions more than 64, a node with
 *     more than 64 attributes, 2 GiB without tensors);
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
  rondo_type program_type; /* of its elements in programs: `type`, or the wider type that holds it; 0: they have none */
  const struct rondo_onnx_value *element; /* of a sequence or an optional: what it holds, with the same name; or NULL */
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
 * The size of a result of NonZero, Compress and NonMaxSuppression depends on data. If what they read is known, it has
 * that size. If not, it has memory for all that can be selected, or for data_dependent_bound, and the program counts
 * what is used. Such a result may be cast and transposed, and be an output of the model: the output has the larger
 * shape, and count_name of rondo_onnx_built_value says how much of it is used. Other nodes that read it are not
 * supported in one program: rondo_onnx_unsupported.needs_data marks them. A runner runs such a model in parts (see
 * Models in trees). Sessions do not, because a request cannot wait between two parts.
 *
 * Inputs and outputs of a program are tensors. A sequence "x" is a tensor for each of its elements, "x[0]", "x[1]" and
 * so on, with shapes of their own. How many elements an input has is known at import: as many as the options give, up
 * to the last one, or the size of the dimension "x[]"; at most 65,536. A name that an input of the model itself has
 * says nothing of a sequence. An optional is what it holds, and an input of an optional is
 * empty if the options do not give it or an element of it. An output that is an empty sequence or optional is no
 * tensor. Sequences of sequences are not supported.
 *
 * Values of programs have at most RONDO_MAX_DIMENSIONS dimensions. An input or output of the model with more has the
 * first and the last four in the program, and those between as one.
 *
 * Programs have no F64: values of the type double are F32 in the program, also inputs and outputs. Constants that no
 * operator computes with keep their precision. Other types that programs lack are held in wider ones likewise, except
 * outputs that are the same in each run, and results are numbers of the type: int2 and int4 as I8, uint2 and uint4 as
 * U8, int16 and uint16 as I32, uint32 and uint64 as I64 (with the bits of the largest uint64), float4e2m1,
 * float8e4m3fnuz, float8e5m2fnuz and float8e8m0 as F32. rondo_onnx_tensor_to_program converts the tensors of files.
 * Element-wise operators, casts, quantisation and those that only move elements take such types. */

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
  const void *data; /* its value in host memory, of the model's type; read during the call. NULL: not known. Elements
                       of less than 8 bits share bytes, the first in the lowest bits */
  size_t bytes;     /* of it */
} rondo_onnx_given_input;

typedef struct rondo_onnx_build_options {
  uint32_t struct_size;
  bool refuse_double; /* values of the type double are not supported, instead of being F32 */
  bool keeps_scaling; /* weights of convolutions stay as the model has them, and batch norms stay operators */
  bool for_cuda; /* the program is for a CUDA device; it is right on others, too. Weights that DequantizeLinear makes
                    of constants of 8 bits are computed during the call, while they fit into most_folded_bytes.
                    Otherwise products and convolutions have the constants as states, a quarter of the bytes, of
                    which a CPU makes integer products, while CUDA would compute the floats in each run. Runners
                    set it themselves */
  const rondo_onnx_dimension_size *dimensions;
  size_t dimension_count;
  const rondo_onnx_given_input *inputs; /* in any order, each once; at most 63 with a value */
  size_t input_count;
  uint64_t most_folded_bytes;       /* of constants that are computed during the call, and of what computing any of
                                       them needs for a while; 0: 1 GiB. Computing all of them, in loops each time,
                                       may write and copy 64 times as many bytes, counted as 64 MiB if fewer */
  const rondo_allocator *allocator; /* copied; NULL = the C library's */
  size_t data_dependent_bound;      /* most indices of a result whose size depends on data; 0: all that there can be */
  size_t most_nodes;                /* that are imported, with those of loops in each iteration; 0: 2^18 */
} rondo_onnx_build_options;
#define RONDO_ONNX_BUILD_OPTIONS_INIT .struct_size = sizeof(rondo_onnx_build_options)

typedef struct rondo_onnx_build rondo_onnx_build;

/* Adds a model to a program: inputs and outputs by their names in the model, initializers as frozen states by theirs,
 * and constants that were computed as frozen states "constant.<hash of their content>". Initializers of equal content
 * share a state, named after the first. Single floats that operators read are constants of the program instead, so that
 * compiling knows them (rondo_compile_options.without_patterns). An output that has the name of an input or state of
 * the program is called "<name>.output", or with more of this suffix if a value of the model has that name. options may
 * be NULL. The caller destroys *out_build, before the model. Thread-safe for different programs. Errors, after which
 * the program is unchanged: UNSUPPORTED: nodes that cannot be imported. The message names the first ones. *out_build is
 * then not NULL: it lists all of them (rondo_onnx_build_get_unsupported), and the caller destroys it. With other errors
 * it is NULL. INVALID_ARGUMENT with UNKNOWN_NAME, DUPLICATE_NAME (of options, or in the program), SHAPE (dynamic
 * dimensions without a size; a sequence without a number of elements; sizes that do not fit the model's), BAD_SIZE (a
 * value's bytes), NULL_ARGUMENT, BAD_OPTIONS; LIMIT_EXCEEDED (most_folded_bytes; most_nodes; more than 2^21 values of
 * nodes, with those of loops each time; constants that are computed in more than 8,192 programs, of which a
 * loop whose condition is computed takes one in each iteration; a sequence with more than 65,536
 * elements); OUT_OF_MEMORY; INVALID_DATA. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_build_program(const rondo_onnx_model *model,
                                                               const rondo_onnx_build_options *options,
                                                               rondo_program *program, rondo_onnx_build **out_build);

/* NULL is fine. */
RONDO_API void rondo_onnx_build_destroy(rondo_onnx_build *build);

/* The values of the program's states, for rondo_weights_apply, which frees the memory of each tensor of a file after it
 * is written. They refer to the files of the model. Only tensors that a message lists as numbers of another size are
 * copied. The set belongs to the build. NULL for NULL, and after they were freed or moved. */
RONDO_API const rondo_weights *rondo_onnx_build_weights(const rondo_onnx_build *build);

/* Frees the values of the states, with all copies and all constants that were computed, once they were applied. What
 * describes inputs and outputs stays, with the data of outputs. NULL is fine. Thread-compatible. */
RONDO_API void rondo_onnx_build_free_weights(rondo_onnx_build *build);

/* Writes the values of the states to a program that was compiled from the build's, as rondo_weights_apply, and frees
 * each of them as soon as it is written, so that both together take little more memory than one of them. Then frees the
 * rest as rondo_onnx_build_free_weights. On the device `cpu`, states of 1 MiB and more whose elements are in a file of
 * external data, at a multiple of 256 bytes, are not copied: the program maps their pages. Memory is then used for what
 * is read, and processes share it. The model can be destroyed and the file be replaced or deleted, but not be changed
 * in place or truncated as long as the program exists; writing to the state changes the program alone. After a failure,
 * all are freed too, unless the program does not fit them: then nothing has changed. Thread-compatible. Errors: those
 * of rondo_weights_apply; INVALID_STATE (they were freed or moved before). */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_build_move_weights(rondo_onnx_build *build, rondo_compiled *compiled);

/* An input or output of a model, and what it is in the program. Texts and data are the build's. */
typedef struct rondo_onnx_built_value {
  uint32_t struct_size;
  bool is_frozen;           /* an input whose given value the program depends on */
  bool is_double;           /* it is F32 in the program, and double in the model; the type of other values that are
                               held in a wider type follows from type_name */
  const char *name;         /* in the model */
  const char *program_name; /* in the program; NULL: it is not there, because nothing depends on an input, or the
                               program can not hold an output */
  const char *type_name;    /* as in rondo_onnx_value */
  rondo_type type;          /* in the program, or of `data`; 0: programs have no such type */
  size_t rank;              /* in the model */
  const size_t *shape;
  const void *data; /* of an output that is the same in each run: its elements, of the type type_name; else NULL */
  size_t bytes;
  const char *count_name; /* of an output whose size depends on data: an output of the program, an I64 scalar, says how
                             many indices of dimension counted_dimension were found. The first of them are used; above
                             data_dependent_bound, some were left out. NULL: all are used */
  size_t counted_dimension;
  size_t value_index;   /* of the input or output of the model which it is, or to which it belongs, */
  size_t element_index; /* ... as this element; 0 of a tensor */
} rondo_onnx_built_value;

/* Return an input or output by its index, in the order of rondo_onnx_get_input and _output, where each element of a
 * sequence is one. Thread-safe. Errors: NOT_FOUND past the last; INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_build_get_input(const rondo_onnx_build *build, size_t index,
                                                                 rondo_onnx_built_value *out_value);
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_build_get_output(const rondo_onnx_build *build, size_t index,
                                                                  rondo_onnx_built_value *out_value);

/* A node that cannot be imported. Nodes that lack its results are not listed, unless there is no such operator. */
typedef struct rondo_onnx_unsupported {
  uint32_t struct_size;
  bool needs_data; /* it must know a value or a size that depends on data: a runner waits for it */
  bool reserved[3];
  const char *node;      /* "node 'conv1' (Conv)", "input 'x'", "initializer 'w'" */
  const char *domain;    /* of its operator, "" for ONNX's own */
  const char *op;        /* its operator; "" if it is no node */
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

/* Models in sessions ------------------------------------------------------------------------------------------------
 *
 * A *builder* makes the programs of a model for numbers of rows, as a session asks for them (<rondo/session.h>). All of
 * them have the same weights:
 *
 *   rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .history = rows_of_requests, .history_count = n};
 *   TRY(rondo_onnx_load("model.onnx", NULL, &model));
 *   TRY(rondo_onnx_builder_create(model, NULL, &builder));
 *   TRY(rondo_onnx_builder_fill_model(builder, &options));
 *   TRY(rondo_session_add_model(session, "ranker", &options));
 *
 * The inputs and outputs of the session's model are those of the ONNX model, in its order and by their names. Each must
 * have the rows, which come first: where they are another dimension of the ONNX model, such as that of the states of a
 * recurrent network, [layers, rows, width], an input of the session's model is [rows, layers, width]. Which dimension
 * of an output is the rows is found by comparing programs of one row and of two. Outputs that are the same in each run
 * are left out. Constants that are others for other numbers of rows, such as the numbers of the rows, are constants of
 * each program (rondo_compiled_info.constant_bytes); all else is shared.
 *
 * Lengths. A second dynamic dimension may vary from request to request, such as the tokens of a text: it is the length
 * of the session's model (<rondo/session.h>, Lengths), and comes second in the inputs and outputs that have it. What
 * padding does to a model, its file does not say. So by default, a model is not padded (rondo_model_options
 * .exact_lengths): the session has graphs of a few lengths, and requests of others run eagerly. A model is padded to
 * the next length of the session's model if the options say that this is safe: `mask` or is_causal. The padding is
 * zeros in all inputs, and outputs are cut to the length of the request.
 *
 *   const rondo_onnx_builder_options bert = {RONDO_ONNX_BUILDER_OPTIONS_INIT, .mask = "attention_mask"};
 *   TRY(rondo_onnx_builder_create(model, &bert, &builder));
 *   options.history_lengths = lengths_of_requests;
 *
 * A builder is immutable and thread-safe, except for its destruction. */
typedef struct rondo_onnx_builder rondo_onnx_builder;
struct rondo_model_options; /* of <rondo/session.h>, as is the next */
struct rondo_model_size;

typedef struct rondo_onnx_builder_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char *rows; /* the name of the dynamic dimension that is the number of rows; NULL: the first dimension of each
                       input where that is dynamic, and others of its name */
  const rondo_onnx_build_options *build; /* for all programs: sizes of other dimensions, values of inputs; copied with
                                            what it refers to. NULL: none */
  const rondo_allocator *allocator;      /* copied; NULL = the C library's */
  const char *length; /* the name of the dynamic dimension that is the length; NULL: if the inputs have exactly one more
                         dynamic dimension, by its name, whose size `build` does not give, that one; else there is none.
                         A size that `build` gives for the name is an example, for which the first program is made; by
                         default 8. Every other length that is used must be possible, too */
  const char *mask;   /* an input [rows, length] that is 0 (or false) at padded positions and else not, such as BERT's
                         attention mask, by which the model ignores them: results at valid positions, and outputs without
                         the length, are the same with any padding. The session pads it with zeros, as all inputs */
  bool is_causal; /* a position's results depend only on positions before it, as in GPT; each output has the length */
} rondo_onnx_builder_options;
#define RONDO_ONNX_BUILDER_OPTIONS_INIT .struct_size = sizeof(rondo_onnx_builder_options)

/* Creates a builder, and builds programs for one row, whose weights it keeps, for two rows, and for another length.
 * options may be NULL. The caller destroys the builder after the session's model, and before the model. Errors: those
 * of rondo_onnx_build_program; INVALID_ARGUMENT with UNKNOWN_NAME (no input has the dimension `rows` or `length`, or is
 * `mask`), BAD_OPTIONS (mask or is_causal without a length) or SHAPE (`rows` is NULL and no input has a dynamic first
 * dimension; more dynamic dimensions without a size, whose names are in the message; a size of 0 for the length; a mask
 * that is not [rows, length]; an output without rows, or whose rows or length are not exactly one dimension; with
 * is_causal, one without the length). */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_builder_create(const rondo_onnx_model *model,
                                                                const rondo_onnx_builder_options *options,
                                                                rondo_onnx_builder **out_builder);
/* NULL is fine. */
RONDO_API void rondo_onnx_builder_destroy(rondo_onnx_builder *builder);

/* Sets what the builder says of a session's model: build or build_sized, user, weights, and exact_lengths. The caller
 * sets the rest. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS (struct_size). */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_builder_fill_model(rondo_onnx_builder *builder,
                                                                    struct rondo_model_options *inout_options);

/* Adds the network for so many rows to a program: a rondo_model_build callback, whose `user` is the builder. Errors: as
 * rondo_onnx_build_program; INVALID_ARGUMENT with NULL_ARGUMENT, SHAPE (no rows), BAD_OPTIONS (the model has a length).
 */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_builder_build(void *builder, size_t rows, rondo_program *program);

/* The same for a model with a length: a rondo_model_build_sized callback. Errors: as rondo_onnx_build_program;
 * INVALID_ARGUMENT with NULL_ARGUMENT, SHAPE (no rows or no length), BAD_OPTIONS (the model has no length; slots). */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_builder_build_sized(void *builder, const struct rondo_model_size *size,
                                                                     rondo_program *program);

/* The name of the dimension that is the length, which belongs to the builder; NULL if the model has none, and for NULL.
 */
RONDO_API const char *rondo_onnx_builder_length(const rondo_onnx_builder *builder);

/* The values of the states of all its programs. They refer to the files of the model, and belong to the builder. On the
 * device `cpu`, a session does not copy large ones that are in a file of external data, but maps their pages, which all
 * its graphs and streams read (as rondo_onnx_build_move_weights). NULL for NULL. */
RONDO_API const rondo_weights *rondo_onnx_builder_weights(const rondo_onnx_builder *builder);

/* Models in trees ---------------------------------------------------------------------------------------------------
 *
 * A *runner* runs a model with inputs of any shapes, as a function of a tree (<rondo/tree.h>). The tree records it for
 * each form of inputs, and takes inputs at any address:
 *
 *   TRY(rondo_onnx_runner_create(model, stream, NULL, &runner));
 *   const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "encoder", .body = rondo_onnx_run,
 *                                           .user = runner, RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING)};
 *   TRY(rondo_function_create(tree, &options, &function));
 *   const rondo_input inputs[] = {{.address = ids, .bytes = 96, .type = RONDO_I64, .rank = 2, .shape = {3, 4}}, ...};
 *   TRY(rondo_function_call(function, stream, inputs, 2, &output, 1));
 *
 * The first call with a form of inputs builds and compiles a program for it; later eager calls use it again. The
 * programs share their weights. They also share an arena if the first shapes are the largest: call with those first. A
 * call copies its inputs into the arena, runs the program, and copies the results to the outputs of the call.
 *
 * Indices of a model that are out of range, such as ids of words, are not found during a call.
 * rondo_onnx_runner_synchronize reports them.
 *
 * Parts. Some nodes must know a value before their results have a shape: the sizes of Reshape, the ends of Slice, the
 * trip count of Loop. The sizes of some results depend on data: those of NonZero, Compress and NonMaxSuppression. Where
 * another node needs such a value or size, and it depends on data, the runner cuts the model: it runs what comes before
 * in one part, waits, reads the value or the count on the host, and goes on with a part that is made for it. Large
 * values stay on the device: they are handed on, cut to the count. Outputs have the size that is used. A loop whose
 * condition the body computes is cut in each iteration; a call has at most 4096 parts.
 *
 * Each part is a program, which is kept for the values that were read before it, and counts for max_programs. Its first
 * run is eager; later runs replay a recording of the part. The tree does not record the call (HOST_WORK), and a strict
 * tree refuses it. If values change often, such as the number of objects in an image, parts are compiled again and
 * again beyond max_programs: data_dependent_bound, or a model that selects a fixed number, keeps it fast.
 *
 * A runner is thread-compatible, together with its stream. Several functions may use one runner. */
typedef struct rondo_onnx_runner rondo_onnx_runner;

typedef struct rondo_onnx_runner_options {
  uint32_t struct_size;
  uint32_t max_programs; /* programs that are kept, for forms of inputs and for parts; 0: 64. A call that needs another
                            one compiles it for this call alone, and is not recorded (UNKNOWN_SHAPE) */
  const rondo_onnx_build_options *build; /* for all programs: sizes of dimensions that inputs do not have, values of
                                            inputs; copied with what it refers to. NULL: none */
  const rondo_compile_options *compile;  /* likewise, read during the call; record, share, staged and stream are the
                                            runner's. An executor must outlive the runner. NULL: none */
  const rondo_allocator *allocator;      /* copied; NULL = the C library's */
} rondo_onnx_runner_options;
#define RONDO_ONNX_RUNNER_OPTIONS_INIT .struct_size = sizeof(rondo_onnx_runner_options)

/* Creates a runner without programs. All of its calls are on this stream. The caller destroys it after the functions
 * that use it, and before the stream and the model. options may be NULL. Errors: INVALID_ARGUMENT with NULL_ARGUMENT,
 * BAD_OPTIONS; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_runner_create(const rondo_onnx_model *model, rondo_stream *stream,
                                                               const rondo_onnx_runner_options *options,
                                                               rondo_onnx_runner **out_runner);

/* Waits for the runs, and frees the programs. NULL is fine. Errors: those of rondo_onnx_runner_synchronize; it is freed
 * nevertheless. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_runner_destroy(rondo_onnx_runner *runner);

/* The body of a function, whose `user` is the runner. Inputs are those of the model in its order, without those whose
 * values the options give. Each has device memory with elements of the program's type (F32 for double), and a shape;
 * without a shape (rank 0), it has the one that the model says. A type that is not 0 must be the program's. Outputs are
 * those of the model. They have types and shapes; those that are the same in each run are copied from host memory.
 * Errors, besides those of rondo_onnx_build_program and rondo_compile: INVALID_ARGUMENT with NULL_ARGUMENT,
 * ARGUMENT_COUNT, TYPE, BAD_SIZE (of an input, named), OTHER_DEVICE (the call is on another stream), BAD_OPTIONS (a
 * given value that the program does not need: pass the input to calls instead); UNSUPPORTED with TYPE (an output that
 * has no elements of a size, such as texts) or SHAPE (an output with more than RONDO_TREE_MAX_RANK dimensions). Of a
 * model in parts: LIMIT_EXCEEDED (more parts than a call may have); INVALID_STATE/NOT_RECORDED (the stream captures);
 * EXECUTION_FAILED/OUT_OF_RANGE (a part before the last one found an index out of range), and other failures of the
 * runs before. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_run(rondo_call *call, void *runner);

/* Waits for all calls. Errors: asynchronous failures; EXECUTION_FAILED/OUT_OF_RANGE, naming the operator and the index,
 * if a call since the last time found an index out of range. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_runner_synchronize(rondo_onnx_runner *runner);

typedef struct rondo_onnx_runner_info {
  uint32_t struct_size;
  uint32_t programs;        /* that are kept */
  uint64_t temporary;       /* programs that were compiled for one call, because of max_programs */
  uint64_t state_bytes;     /* of weights, once for all programs */
  uint64_t arena_bytes;     /* of all arenas */
  uint64_t planned_bytes;   /* of the largest program's plan */
  uint64_t unplanned_bytes; /* what the values of this program would take without sharing memory */
  uint64_t handed_bytes;    /* of values that parts of the model hand on to later ones, besides the arenas */
  uint64_t waits;           /* of all calls, for values between two parts */
  uint32_t parts;           /* programs that are kept, and are those of a part */
  uint32_t reserved;
} rondo_onnx_runner_info;

/* Errors: INVALID_ARGUMENT. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_runner_get_info(const rondo_onnx_runner *runner,
                                                                 rondo_onnx_runner_info *out_info);

/* Tensors in files --------------------------------------------------------------------------------------------------
 * A tensor of a file in ONNX's format, such as the inputs and expected outputs beside a model ("input_0.pb"). */
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
  rondo_type program_type; /* in programs: the same type, or the wider one that holds it; 0: they have none */
} rondo_onnx_tensor_info;

/* Reads a file; options as of rondo_onnx_load. The caller destroys it. Errors: as rondo_onnx_load. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_tensor_load(const char *path, const rondo_onnx_options *options,
                                                             rondo_onnx_tensor_file **out_tensor);
/* Reads an element of a file of an input or output `value` of a model. Such a file does not say what it holds, so the
 * value does: a tensor, which is element 0, a sequence or an optional. Each call reads the file. The caller destroys
 * the tensor. Errors: as rondo_onnx_load; NOT_FOUND/OUT_OF_RANGE past the last element, and of an optional without a
 * value; UNSUPPORTED/TYPE (elements that are no tensors). */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_tensor_load_element(const char *path, const rondo_onnx_value *value,
                                                                     size_t index, const rondo_onnx_options *options,
                                                                     rondo_onnx_tensor_file **out_tensor);
/* NULL is fine. */
RONDO_API void rondo_onnx_tensor_destroy(rondo_onnx_tensor_file *tensor);
/* Thread-safe. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_tensor_get_info(const rondo_onnx_tensor_file *tensor,
                                                                 rondo_onnx_tensor_info *out_info);

/* Writes the elements, as those of program_type, to host memory. Thread-safe. Errors: INVALID_ARGUMENT with BAD_SIZE
 * (`bytes` is not the size of all of them); UNSUPPORTED/TYPE (programs have no such type). */
RONDO_API RONDO_MUST_USE rondo_status rondo_onnx_tensor_to_program(const rondo_onnx_tensor_file *tensor,
                                                                   void *out_elements, size_t bytes);

RONDO_EXTERN_C_END

#endif
