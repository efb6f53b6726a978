/* SPDX-License-Identifier: MIT
 * Operators of your own (PR-2). An operator is defined once: a name, a rule for the shapes of its results, code for CPU
 * and CUDA devices, and a gradient. Programs then use it like the operators of <rondo/operators.h>: it is ordered,
 * fused, differentiated, divided between devices, recorded, explained and listed like them.
 *
 *   static void leaky_cpu(const float *const *x, float *y, size_t count, const float *numbers) {
 *     for (size_t i = 0; i < count; i++) y[i] = x[0][i] > 0 ? x[0][i] : numbers[0] * x[0][i];
 *   }
 *   static const rondo_operator_element element = {
 *       .cpu = leaky_cpu,
 *       .cuda_source = "__device__ float leaky(float x, float slope) { return x > 0 ? x : slope * x; }",
 *       .numbers = 1};
 *   const rondo_operator_definition definition = {
 *       RONDO_OPERATOR_DEFINITION_INIT, .name = "leaky", .inputs = {"x"}, .element = &element};
 *   TRY(rondo_operator_define(&definition, &leaky));
 *   ...
 *   const rondo_operator_attributes slope = {.numbers = {0.1f}};
 *   TRY(rondo_op_apply(program, leaky, &x, 1, &slope, &y));
 *
 * An operator is a pure function: its results depend on its inputs and attributes alone, and it changes nothing else.
 * So one whose results nothing reads does not run, and of several that compute the same, one runs.
 *
 * Values are contiguous and row-major, the last dimension varies fastest, and each begins at a multiple of 256 bytes.
 * No result shares memory with another value of the call.
 *
 * Operators are immutable and thread-safe. Functions of a definition may be called by several threads at once. They
 * must not call Rondo, except that a gradient adds operators to the program that it gets.
 *
 * Component: rondo-tensor.
 */
#ifndef RONDO_USER_OPERATOR_H
#define RONDO_USER_OPERATOR_H

#include <rondo/operators.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_operator rondo_operator;

#define RONDO_OPERATOR_INPUTS 8
#define RONDO_OPERATOR_RESULTS 8
#define RONDO_OPERATOR_SIZES 8
#define RONDO_OPERATOR_NUMBERS 4
#define RONDO_OPERATOR_SCALARS 8
#define RONDO_OPERATOR_SCALAR_BYTES 256 /* each, aligned to 64 */
#define RONDO_OPERATOR_KERNELS 16
#define RONDO_OPERATOR_ELEMENTS 3 /* inputs of an element-wise operator */

/* Type and shape of a value. Dimensions past the rank are 0. */
typedef struct rondo_shape {
  rondo_type type;
  uint32_t rank;
  size_t dims[RONDO_MAX_DIMENSIONS];
} rondo_shape;

/* Parameters of an operator, next to its inputs. Their meaning is up to the operator. */
typedef struct rondo_operator_attributes {
  size_t sizes[RONDO_OPERATOR_SIZES];
  float numbers[RONDO_OPERATOR_NUMBERS];
} rondo_operator_attributes;

/* An operator applied to inputs, as the functions of its definition see it. Valid during the call of the function. */
typedef struct rondo_operator_call {
  const char *name;
  void *user; /* of the definition */
  uint32_t input_count, result_count;
  const rondo_shape *inputs[RONDO_OPERATOR_INPUTS]; /* NULL: an optional input that was left out */
  rondo_shape results[RONDO_OPERATOR_RESULTS];      /* all zeros in a shape rule */
  rondo_operator_attributes attributes;
  bool is_cuda; /* for a launch rule: a CUDA device will run it */
} rondo_operator_call;

/* The rule for the shapes of results: fills results[0] to results[call->result_count - 1], which begin as copies of the
 * first input's. It runs in rondo_op_apply, and again wherever the operator is added to another program: in
 * rondo_compile_divided for the program of each device. Returns NULL, or what is wrong with the inputs or attributes as
 * a sentence, which becomes an error INVALID_ARGUMENT/SHAPE with the names and shapes of all inputs before it. The
 * sentence must be valid until the next call of the rule by this thread. */
typedef const char *(*rondo_operator_shape_rule)(const rondo_operator_call *call, rondo_shape *results);

/* An element-wise operator of 1 to RONDO_OPERATOR_ELEMENTS inputs of one float type. Their shapes are broadcast as in
 * NumPy, and the result has this type. It may be fused with its neighbours (rondo_fusion_policy). Arithmetic is in F32;
 * elements of F16 and BF16 are converted before and after. */
typedef struct rondo_operator_element {
  /* result[i] of inputs[0][i], inputs[1][i], ... for each i < count. It gets the elements in pieces of any size,
   * several threads at once, each piece in memory of its own or in that of the value; so an element depends on those at
   * its index only. result overlaps no input. numbers are those of the attributes. NULL: there is no code for CPU
   * devices. */
  void (*cpu)(const float *const *inputs, float *result, size_t count, const float *numbers);
  /* CUDA C with a function `__device__ float NAME(float input, ..., float number, ...)`, whose name is that of the
   * operator. It becomes part of larger sources, in a namespace of its own, so its other names do not collide with
   * those of other operators. Therefore it may not include files, and should define no macros: those are seen by all
   * code after it. The math functions of CUDA are there. Copied. NULL: there is no code for CUDA. */
  const char *cuda_source;
  uint32_t numbers; /* how many numbers of the attributes are arguments: at most 2 */
} rondo_operator_element;

/* How a kernel is launched. Before the rule, `kernel` is 0, the scalars are zeros except that the first scalar of
 * kernel 0, if it has 8 bytes, is the number of elements of the first result, and the grid has enough blocks for a few
 * thousand elements of it each, on CUDA for an element a thread (of 256 a block); in both cases at most 4,096 blocks.
 * Kernels therefore divide the elements between the blocks that there are. A rule chooses no block size and no dynamic
 * shared memory: blocks have the kernel's block_threads. A grid of 0 blocks in x makes compiling fail
 * (INVALID_ARGUMENT/BAD_SIZE). */
typedef struct rondo_operator_launch {
  uint32_t kernel; /* index in the definition's kernels */
  rondo_grid grid;
  void *const *scalars; /* RONDO_OPERATOR_SCALARS addresses, each of RONDO_OPERATOR_SCALAR_BYTES for the value of a
                           scalar parameter */
} rondo_operator_launch;

/* Chooses kernel, grid and scalars from the shapes and attributes. It is called when a program is compiled. Returns
 * NULL, or why the operator cannot run, as a sentence: UNSUPPORTED/NO_FUNCTION. */
typedef const char *(*rondo_operator_launch_rule)(const rondo_operator_call *call, rondo_operator_launch *launch);

/* The values of an application, for its gradient. */
typedef struct rondo_operator_values {
  const rondo_value *inputs;           /* input_count; no value: left out */
  const rondo_value *results;          /* result_count */
  const rondo_value *result_gradients; /* result_count, with types and shapes of the results; no value: zeros */
} rondo_operator_values;

/* Adds the operators that compute the gradients of the inputs to the program. input_gradients: input_count entries that
 * begin as no value, which means zeros. A gradient has the type and shape of its input; that of an element-wise
 * operator may also have the shape of the result, and is then summed over repeated elements. Inputs of other types than
 * floats have none, and results of other types have no result_gradients. A status other than OK is what
 * rondo_program_gradients and the optimizers return, with the error of the call of Rondo that failed. */
typedef rondo_status (*rondo_operator_gradient)(rondo_program *program, const rondo_operator_call *call,
                                                const rondo_operator_values *values, rondo_value *input_gradients);

typedef struct rondo_operator_definition {
  uint32_t struct_size;
  uint32_t types;   /* of the first input: bit 1 << t for type t; 0: F32, for an element-wise operator all floats */
  const char *name; /* required: an identifier of C of at most 48 characters, which a function in CUDA C++ can have too
                       (no keyword and no name of CUDA's); no other operator of the program's has it, but one of
                       Rondo's may: they are different operators, so a later release that adds an operator of this name
                       changes nothing. Messages, the list and placement rules know operators by their names alone */
  const char *inputs[RONDO_OPERATOR_INPUTS]; /* names in messages, up to the first NULL; at least one */
  uint32_t optional_inputs;                  /* how many inputs, the last ones, may be left out */
  uint32_t result_count;                     /* 0: 1; at most RONDO_OPERATOR_RESULTS */
  rondo_operator_shape_rule shape_rule;      /* NULL: all inputs and results have type and shape of the first input.
                                                With a rule, it checks types and shapes of inputs 1 to 7 itself */

  const rondo_operator_element *element; /* an element-wise operator, without shape_rule and kernels; or NULL */

  /* Kernels (<rondo/kernel.h>), of which each application launches one. Their first parameters are the inputs, each
   * RONDO_READS, then the results, each RONDO_WRITES, then up to RONDO_OPERATOR_SCALARS scalars. An input that was left
   * out is a NULL pointer. A kernel without code for a device cannot run there. Their struct_size is 0 or that of this
   * version. Copied, except that cuda_image and cuda_function must stay valid as long as the operator. */
  const rondo_kernel_options *kernels;
  uint32_t kernel_count;
  uint32_t reserved;
  rondo_operator_launch_rule launch_rule; /* NULL: as it begins */

  /* At most one of the two. Neither: the operator has no gradient. gradient_operator: an operator that computes the
   * gradients, with the attributes of this one. Its inputs are those of this operator, then its results, then their
   * gradients (of results that nothing reads, and of those that are no floats, zeros of the result's type); its result
   * i is the gradient of input i, and inputs past its results have none. So this operator has no optional inputs, and
   * an element-wise gradient_operator, of at most 3 inputs and one result, fits an operator of one input and one
   * result. */
  rondo_operator_gradient gradient;
  const rondo_operator *gradient_operator;

  void *user;                       /* for the functions; must stay valid as long as the operator */
  const rondo_allocator *allocator; /* NULL = the C library's; must outlive everything that uses the operator */
} rondo_operator_definition;
#define RONDO_OPERATOR_DEFINITION_INIT .struct_size = sizeof(rondo_operator_definition)

/* Defines an operator. The caller destroys it. Thread-safe. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS
 * (naming what does not fit), BAD_SIZE (a parameter of a kernel), TYPE (a type that values cannot have, or no float for
 * an element-wise operator), OUT_OF_RANGE (a number of inputs, results, kernels or parameters), DUPLICATE_NAME;
 * LIMIT_EXCEEDED/NONE (1,024 operators exist: destroy some, and what uses them); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_define(const rondo_operator_definition *definition,
                                                            rondo_operator **out_operator);

/* Releases the caller's reference. Programs and compiled programs keep the operators that they use, and its code and
 * `user` must stay valid as long as they exist. NULL is fine. Thread-safe. */
RONDO_API void rondo_operator_destroy(rondo_operator *operation);

/* Adds an operator to a program. inputs: input_count values; those from input_count on, and no value, are left out.
 * attributes may be NULL: zeros. out_results receives as many values as the operator has results, and no values on
 * failure; it may be the array of inputs. Errors: as those of <rondo/operators.h>; SHAPE (what the shape rule says),
 * SHAPE and TYPE (inputs that differ, without a rule); OUT_OF_RANGE (the number of inputs). */
RONDO_API RONDO_MUST_USE rondo_status rondo_op_apply(rondo_program *program, const rondo_operator *operation,
                                                     const rondo_value *inputs, size_t input_count,
                                                     const rondo_operator_attributes *attributes,
                                                     rondo_value *out_results);

/* Checking --------------------------------------------------------------------------------------------------------- */

/* What rondo_operator_check applies the operator to. */
typedef struct rondo_operator_check_options {
  uint32_t struct_size;
  uint32_t input_count;
  const rondo_shape *inputs; /* input_count types and shapes; all zeros: left out */
  const void *const *values; /* input_count arrays of elements, or NULL; a NULL array: random numbers for floats, zeros
                                for other types */
  rondo_operator_attributes attributes;
  float low, high; /* of random numbers; both 0: -1 and 1 */
  float step;      /* by which an element is changed in both directions; 0: by the input's type, 0.01 for F32, 1/16
                      for F16, 1/8 for BF16. Refused if it changes nothing */
  float tolerance; /* of a gradient's error, relative to the larger of 1 and its size; 0: by the least exact type
                      of float inputs and results, 0.01 for F32, 0.1 for F16, 0.25 for BF16 */
  uint32_t max_elements; /* of each input that are changed, evenly spaced; 0: 256 */
  uint32_t reserved;
  uint64_t seed;
} rondo_operator_check_options;
#define RONDO_OPERATOR_CHECK_OPTIONS_INIT .struct_size = sizeof(rondo_operator_check_options)

typedef struct rondo_operator_check_result {
  uint32_t struct_size;
  uint32_t input;    /* where the error of the gradient is largest: the input, */
  size_t element;    /* and its element */
  float gradient;    /* that of the operator, */
  float difference;  /* and that by differences */
  float error;       /* relative, as in the tolerance; 0: nothing was compared */
  uint32_t compared; /* elements */
} rondo_operator_check_result;
#define RONDO_OPERATOR_CHECK_RESULT_INIT .struct_size = sizeof(rondo_operator_check_result)

/* Checks an operator on a device. It is compiled and run eagerly and recorded, alone, between two other operators, with
 * which an element-wise one is fused, and with its gradients: all must give the same bits. The gradients of its float
 * inputs, of a sum of all float results with random weights, are compared with central differences; nothing is compared
 * for an operator without a gradient, or without float inputs or results.
 * On `cpu:check` each input and result has memory of its own, which messages call by the names of operator and value,
 * and nothing is fused. An access outside of it fails there (of an element-wise operator: outside of the whole value,
 * not of a piece). So does an operator that writes an input, or does not write all of a result: results are filled with
 * NaNs before it, with others in eager runs than in recorded ones. Elements of F16 and BF16 are converted outside of
 * the function. Memory comes from the operator's allocator. Waits. out_result may be NULL; after CONTRADICTED it is
 * filled too, if gradients were compared. Thread-safe, if the device is not used for a capture. Errors:
 * INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS, OUT_OF_RANGE (a number of inputs; bounds, step or tolerance that
 * are no numbers or do not fit; a step that changes nothing), and as rondo_op_apply; INVALID_DATA with CONTRADICTED (a
 * gradient is wrong, naming input, element and both numbers; results differ; an input was written); those of
 * rondo_program_gradients, rondo_compile and rondo_compiled_read. */
RONDO_API RONDO_MUST_USE rondo_status rondo_operator_check(const rondo_operator *operation, rondo_device *device,
                                                           const rondo_operator_check_options *options,
                                                           rondo_operator_check_result *out_result);

RONDO_EXTERN_C_END

#endif
