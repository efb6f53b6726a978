/* SPDX-License-Identifier: MIT
 * matmul: y = activation(a' · b' + bias) for each pair of matrices of the leading dimensions, where a' is a or its
 * transpose, and b' likewise. There are two operators: one for activations whose gradient can be computed from the
 * result, and one for the others, which has a second result for the gradient: what the activation is applied to.
 *
 * On CUDA a library computes the product if it is faster (cublaslt.h), else a kernel. The gradients are products too.
 * Threads: as tensor/program/operator.h says.
 */
#include <assert.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/operators/elementwise/cast.h"
#include "tensor/operators/elementwise/unary_operators.h"
#include "tensor/operators/matmul/gemm.h"
#include "tensor/operators/matmul/matmul_problem.h"

enum { TRANSPOSE_A = RONDO_MATMUL_TRANSPOSE_A, TRANSPOSE_B = RONDO_MATMUL_TRANSPOSE_B };
enum { ACTIVATION = RONDO_MATMUL_ACTIVATION };
enum { A, B, BIAS };     /* inputs */
enum { Y, UNACTIVATED }; /* results */

#define ROOM_ALIGNMENT 256 /* of the parts of the workspace */

static rondo_activation activation_of(const rondo_operation *operation) {
  return (rondo_activation)operation->attributes.sizes[ACTIVATION];
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

#define MATMUL_KERNEL(kernel)                                                                              \
  RONDO_TYPED_KERNEL_OF(kernel, rondo_matmul_cpu, kernel, RONDO_SCALAR(rondo_matmul_problem), RONDO_READS, \
                        RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_WRITES)

MATMUL_KERNEL(matmul);
MATMUL_KERNEL(matmul_small);
MATMUL_KERNEL(matmul_thin);

static const rondo_kernel_options *const form_code[RONDO_MATMUL_FORMS] = {[RONDO_MATMUL_TILES] = matmul_code,
                                                                          [RONDO_MATMUL_SMALL] = matmul_small_code,
                                                                          [RONDO_MATMUL_THIN] = matmul_thin_code};

/* Shapes ----------------------------------------------------------------------------------------------------------- */

static rondo_status check_inputs(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *a = rondo_operation_input(program, operation, A);
  const rondo_shape *b = rondo_operation_input(program, operation, B);
  const rondo_shape *bias = rondo_operation_input(program, operation, BIAS);
  RONDO_TRY(rondo_require_float(program, operation, A, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_input(program, operation, B, a->type, RONDO_ANY_RANK));
  if (a->rank < 2 || b->rank < 2) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "a and b must have at least 2 dimensions; reshape a vector to [1, k] or [k, 1]");
  }
  const bool *flags = operation->attributes.flags;
  const size_t left = a->dims[a->rank - (flags[TRANSPOSE_A] ? 2 : 1)];
  const size_t right = b->dims[b->rank - (flags[TRANSPOSE_B] ? 1 : 2)];
  if (left != right) {
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "the inner dimensions %zu and %zu differ", left,
                                right);
  }
  if (bias == NULL) return RONDO_OK;
  const size_t columns = b->dims[b->rank - (flags[TRANSPOSE_B] ? 2 : 1)];
  RONDO_TRY(rondo_require_input(program, operation, BIAS, a->type, 1));
  if (bias->dims[0] == columns) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "the bias has %zu elements; it needs one for each of the %zu columns", bias->dims[0],
                              columns);
}

/* Broadcasts the leading dimensions of a and b, aligned at the last. */
static rondo_status join_batch(const rondo_program *program, const rondo_operation *operation, rondo_shape *result) {
  const rondo_shape *a = rondo_operation_input(program, operation, A);
  const rondo_shape *b = rondo_operation_input(program, operation, B);
  result->rank = a->rank > b->rank ? a->rank : b->rank;
  for (uint32_t back = 3; back <= result->rank; back++) {
    const size_t in_a = back <= a->rank ? a->dims[a->rank - back] : 1;
    const size_t in_b = back <= b->rank ? b->dims[b->rank - back] : 1;
    if (in_a != in_b && in_a != 1 && in_b != 1) {
      return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                  "the leading dimensions %zu and %zu are neither equal nor 1", in_a, in_b);
    }
    result->dims[result->rank - back] = in_a > in_b ? in_a : in_b;
  }
  return RONDO_OK;
}

static rondo_status infer_matmul(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  RONDO_TRY(check_inputs(program, operation));
  const rondo_shape *a = rondo_operation_input(program, operation, A);
  const rondo_shape *b = rondo_operation_input(program, operation, B);
  rondo_shape result = {.type = a->type};
  RONDO_TRY(join_batch(program, operation, &result));
  result.dims[result.rank - 2] = a->dims[a->rank - (operation->attributes.flags[TRANSPOSE_A] ? 1 : 2)];
  result.dims[result.rank - 1] = b->dims[b->rank - (operation->attributes.flags[TRANSPOSE_B] ? 2 : 1)];
  for (uint32_t i = 0; i < operation->row->result_count; i++) results[i] = result;
  return RONDO_OK;
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

static rondo_status add_product(rondo_program *program, uint32_t a, uint32_t b, bool transpose_a, bool transpose_b,
                                uint32_t *out_value) {
  const uint32_t inputs[] = {a, b};
  const rondo_attributes attributes = {.flags = {transpose_a, transpose_b}};
  return rondo_program_add(program, &rondo_operator_matmul, inputs, 2, &attributes, out_value);
}

/* Adds a view of the value as a matrix whose rows are the last dimension. */
static rondo_status add_matrix(rondo_program *program, uint32_t value, uint32_t *out_value) {
  const rondo_shape *shape = rondo_program_shape(program, value);
  const size_t columns = rondo_shape_last(shape);
  const rondo_shape matrix = {.rank = 2, .dims = {rondo_shape_elements(shape) / columns, columns}};
  return rondo_program_add_shaped(program, &rondo_operator_reshape, value, matrix, out_value);
}

static bool is_batch_of_one(const rondo_shape *shape) {
  return rondo_shape_elements(shape) == shape->dims[shape->rank - 1] * shape->dims[shape->rank - 2];
}

/* With y = a' b', da' = dy b'ᵀ; transposed again if a is stored transposed, and summed over broadcast dimensions. */
static rondo_status add_a_gradient(rondo_program *program, const rondo_operation *operation, uint32_t dy,
                                   uint32_t *out_value) {
  const uint32_t a = operation->inputs[A], b = operation->inputs[B];
  const bool transpose_b = operation->attributes.flags[TRANSPOSE_B];
  uint32_t full = 0;
  RONDO_TRY(operation->attributes.flags[TRANSPOSE_A] ? add_product(program, b, dy, transpose_b, true, &full)
                                                     : add_product(program, dy, b, false, !transpose_b, &full));
  return rondo_add_sum_to(program, full, a, out_value);
}

/* db' = a'ᵀ dy, the same way. If one b is multiplied with several a, the gradient is one product over all their rows.
 */
static rondo_status add_b_gradient(rondo_program *program, const rondo_operation *operation, uint32_t dy,
                                   uint32_t *out_value) {
  uint32_t a = operation->inputs[A], full = 0;
  const uint32_t b = operation->inputs[B];
  const bool transpose_a = operation->attributes.flags[TRANSPOSE_A];
  if (!transpose_a && is_batch_of_one(rondo_program_shape(program, b))) {
    RONDO_TRY(add_matrix(program, a, &a));
    RONDO_TRY(add_matrix(program, dy, &dy));
  }
  RONDO_TRY(operation->attributes.flags[TRANSPOSE_B] ? add_product(program, dy, a, true, transpose_a, &full)
                                                     : add_product(program, a, dy, !transpose_a, false, &full));
  return rondo_add_sum_to(program, full, b, out_value);
}

static rondo_status add_slope(rondo_program *program, const rondo_operation *operation, uint32_t *dy) {
  const rondo_unary *family = rondo_activation_family(activation_of(operation));
  if (family == NULL) return RONDO_OK;
  const uint32_t inputs[] = {operation->results[family->keeps_result ? Y : UNACTIVATED], *dy};
  return rondo_program_add(program, family->gradient, inputs, 2, NULL, dy);
}

static rondo_status differentiate_matmul(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  uint32_t dy = result_gradients[Y];
  if (dy == RONDO_NO_VALUE) return RONDO_OK;
  RONDO_TRY(add_slope(program, operation, &dy));
  RONDO_TRY(add_a_gradient(program, operation, dy, &input_gradients[A]));
  RONDO_TRY(add_b_gradient(program, operation, dy, &input_gradients[B]));
  if (operation->inputs[BIAS] == RONDO_NO_VALUE) return RONDO_OK;
  return rondo_add_sum_to(program, dy, operation->inputs[BIAS], &input_gradients[BIAS]);
}

/* Factors as F32 --------------------------------------------------------------------------------------------------- */

/* On a CPU, a factor of another type that several tiles read is converted once, in the workspace. Larger ones are
 * converted by each tile, a panel at a time, so that they take no more memory. */
#define MOST_SINGLES ((size_t)32 << 20)

typedef struct matmul_plan {
  rondo_matmul_problem problem;
  rondo_matmul_work work;
  size_t a_bytes, b_bytes; /* of the factors as F32; 0: as they are. b comes after a */
} matmul_plan;

static size_t singles_of(const rondo_shape *shape) {
  size_t bytes = 0;
  if (shape->type == RONDO_F32 || rondo_shape_bytes(shape) > MOST_SINGLES) return 0;
  const bool fits = rondo_checked_align(rondo_shape_elements(shape) * sizeof(float), ROOM_ALIGNMENT, &bytes);
  return fits && bytes <= MOST_SINGLES ? bytes : 0;
}

static bool needs_library(const rondo_matmul_problem *p, rondo_type type) {
  const bool across_a = p->transpose_a != 0, across_b = p->transpose_b != 0;
  const rondo_gemm whole = {p->m, p->n, p->k, .a = {NULL, across_a ? p->m : p->k, across_a},
                            .b = {NULL, across_b ? p->k : p->n, across_b}};
  return type != RONDO_F32 || !rondo_gemm_is_own(&whole);
}

static matmul_plan plan_matmul(const rondo_operation *operation, const rondo_shape *a, const rondo_shape *b,
                               bool is_cuda) {
  const bool *flags = operation->attributes.flags;
  matmul_plan plan = {.problem = rondo_matmul_problem_of(a, b, flags[TRANSPOSE_A], flags[TRANSPOSE_B])};
  if (needs_library(&plan.problem, a->type)) rondo_gemm_prepare();
  plan.problem.activation = activation_of(operation);
  plan.problem.is_for_bf16 =
      !is_cuda && a->type == RONDO_BF16 && rondo_gemm_is_for_bf16(plan.problem.m, plan.problem.n, plan.problem.k);
  plan.work = rondo_matmul_cut(&plan.problem, a->type, is_cuda);
  if (is_cuda || plan.problem.is_for_bf16 != 0) return plan;
  if (plan.problem.tiles.across > 1) plan.a_bytes = singles_of(a);
  if (plan.problem.tiles.down > 1) plan.b_bytes = singles_of(b);
  plan.problem.single_a = plan.a_bytes > 0;
  plan.problem.single_b = plan.b_bytes > 0;
  return plan;
}

/* Emits the conversion of an input if it has `bytes` as F32, and returns where it then is. */
static rondo_status emit_singles(rondo_emitter *emitter, const rondo_operation *operation, uint32_t input, size_t bytes,
                                 size_t offset, const void **out) {
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[input]);
  const void *from = *out = rondo_emit_address(emitter, operation->inputs[input]);
  if (bytes == 0) return RONDO_OK;
  void *to = (char *)rondo_emit_workspace(emitter) + offset;
  *out = to;
  return rondo_emit_cast(emitter, shape->type, RONDO_F32, from, to, rondo_shape_elements(shape));
}

/* Products of a library -------------------------------------------------------------------------------------------- */

static bool keeps_unactivated(const rondo_program *program, const rondo_operation *operation) {
  return operation->row->result_count > UNACTIVATED && rondo_program_reads(program, operation->results[UNACTIVATED]);
}

static rondo_product_shape product_shape_of(const rondo_matmul_problem *problem, rondo_type type, bool has_bias) {
  const size_t last = RONDO_BATCH_DIMENSIONS - 1;
  return (rondo_product_shape){.type = type,
                               .m = problem->m,
                               .n = problem->n,
                               .k = problem->k,
                               .batches = problem->batches,
                               .a_stride = problem->a_strides[last],
                               .b_stride = problem->b_strides[last],
                               .transpose_a = problem->transpose_a != 0,
                               .transpose_b = problem->transpose_b != 0,
                               .has_bias = has_bias};
}

/* Without the activation, which is then a separate step. Unless the input of the activation is kept anyway, it is in
 * the workspace, after the product's own. */
static rondo_status prepare_unactivated(rondo_resources *resources, uint32_t number, rondo_product_shape shape,
                                        const rondo_shape *result, size_t *out_workspace_bytes) {
  const bool wants_room = shape.activation != RONDO_ACTIVATION_NONE && !shape.keeps_unactivated;
  shape.activation = RONDO_ACTIVATION_NONE;
  shape.keeps_unactivated = false;
  RONDO_TRY(rondo_resources_add_product(resources, number, &shape, out_workspace_bytes));
  if (!wants_room || rondo_resources_product(resources, number) == NULL) return RONDO_OK;
  if (rondo_checked_align(*out_workspace_bytes, ROOM_ALIGNMENT, out_workspace_bytes) &&
      rondo_checked_add(*out_workspace_bytes, rondo_shape_bytes(result), out_workspace_bytes))
    return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "matmul: the size of the workspace does not fit in %zu bits: make the operands smaller",
                    8 * sizeof(size_t));
}

/* With the activation if the library can apply it. */
static rondo_status prepare_product(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                    size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const rondo_shape *a = rondo_operation_input(program, operation, A);
  const bool *flags = operation->attributes.flags;
  const rondo_matmul_problem problem =
      rondo_matmul_problem_of(a, rondo_operation_input(program, operation, B), flags[TRANSPOSE_A], flags[TRANSPOSE_B]);
  if (!rondo_matmul_is_strided(&problem)) return RONDO_OK;
  rondo_product_shape shape = product_shape_of(&problem, a->type, operation->inputs[BIAS] != RONDO_NO_VALUE);
  shape.keeps_unactivated = keeps_unactivated(program, operation);
  shape.activation = activation_of(operation);
  if (rondo_product_takes(shape.activation, shape.keeps_unactivated, shape.n)) {
    RONDO_TRY(rondo_resources_add_product(resources, number, &shape, out_workspace_bytes));
    if (shape.activation == RONDO_ACTIVATION_NONE || rondo_resources_product(resources, number) != NULL)
      return RONDO_OK;
  }
  return prepare_unactivated(resources, number, shape, rondo_program_shape(program, operation->results[Y]),
                             out_workspace_bytes);
}

static rondo_status prepare_matmul(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                   size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  if (resources->is_cuda) return prepare_product(resources, program, number, out_workspace_bytes);
  const matmul_plan plan = plan_matmul(operation, rondo_operation_input(program, operation, A),
                                       rondo_operation_input(program, operation, B), false);
  *out_workspace_bytes = plan.a_bytes + plan.b_bytes;
  return RONDO_OK;
}

/* The address of the product before a separate step applies the activation. */
static void *room_of(rondo_emitter *emitter, const rondo_product *product, const rondo_operation *operation) {
  void *unactivated = rondo_emit_address(emitter, operation->results[UNACTIVATED]);
  size_t offset = 0;
  if (unactivated != NULL) return unactivated;
  const bool fits = rondo_checked_align(rondo_product_workspace(product), ROOM_ALIGNMENT, &offset);
  assert(fits);
  (void)fits;
  return (char *)rondo_emit_workspace(emitter) + offset;
}

static rondo_status emit_product(rondo_emitter *emitter, rondo_product *product, const rondo_operation *operation) {
  const rondo_activation activation = activation_of(operation);
  const bool is_done = activation == RONDO_ACTIVATION_NONE || rondo_product_activates(product);
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->results[Y]);
  void *y = rondo_emit_address(emitter, operation->results[Y]);
  const rondo_product_memory memory = {.a = rondo_emit_address(emitter, operation->inputs[A]),
                                       .b = rondo_emit_address(emitter, operation->inputs[B]),
                                       .bias = rondo_emit_address(emitter, operation->inputs[BIAS]),
                                       .c = is_done ? y : room_of(emitter, product, operation),
                                       .unactivated = rondo_emit_address(emitter, operation->results[UNACTIVATED]),
                                       .workspace = rondo_emit_workspace(emitter)};
  RONDO_TRY(rondo_emit_product_call(emitter, &memory));
  if (is_done) return RONDO_OK;
  return rondo_emit_activation(emitter, activation, shape->type, memory.c, y, rondo_shape_elements(shape));
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static rondo_status emit_matmul(rondo_emitter *emitter, const rondo_operation *operation) {
  rondo_product *product = rondo_emit_product(emitter);
  if (product != NULL) return emit_product(emitter, product, operation);
  const rondo_shape *shape = rondo_emit_shape(emitter, operation->inputs[A]);
  const matmul_plan plan =
      plan_matmul(operation, shape, rondo_emit_shape(emitter, operation->inputs[B]), rondo_emit_is_cuda(emitter));
  const void *a, *b;
  assert(plan.problem.k > 0 && plan.problem.activation <= RONDO_ACTIVATION_SILU);
  RONDO_TRY(emit_singles(emitter, operation, A, plan.a_bytes, 0, &a));
  RONDO_TRY(emit_singles(emitter, operation, B, plan.b_bytes, plan.a_bytes, &b));
  return rondo_emit_operands(emitter, operation, &form_code[plan.work.form][shape->type],
                             (rondo_grid){.x = plan.work.blocks},
                             RONDO_OPERANDS(RONDO_OBJECT(plan.problem), RONDO_OBJECT(a), RONDO_OBJECT(b),
                                            RONDO_INPUT(BIAS), RONDO_RESULT(Y), RONDO_RESULT(UNACTIVATED)));
}

#define MATMUL_ROW                                                                           \
  .types = RONDO_FLOATS, .inputs = {"a", "b", "bias"}, .required = 2, .infer = infer_matmul, \
  .differentiate = differentiate_matmul, .prepare = prepare_matmul, .emit = emit_matmul

RONDO_OPERATOR(matmul, .result_count = 1, MATMUL_ROW);
RONDO_OPERATOR(matmul_activated, .result_count = 2, .spare_results = 1u << UNACTIVATED, MATMUL_ROW);

rondo_status rondo_op_matmul_with(rondo_program *program, rondo_value a, rondo_value b,
                                  const rondo_matmul_options *options, rondo_value *out_value) {
  rondo_matmul_options given;
  if (out_value != NULL) *out_value = (rondo_value){0};
  RONDO_TRY(rondo_versioned_read("rondo_matmul_options", options, &given, sizeof given));
  if ((unsigned)given.activation > RONDO_ACTIVATION_SILU) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "matmul: activation %d does not exist: use a RONDO_ACTIVATION_ name", (int)given.activation);
  }
  const rondo_unary *family = rondo_activation_family(given.activation);
  const bool keeps = family != NULL && !family->keeps_result;
  const rondo_attributes attributes = {
      .sizes = {(size_t)given.activation}, .size_count = 1, .flags = {given.transpose_a, given.transpose_b}};
  const rondo_value inputs[] = {a, b, given.bias};
  return rondo_program_apply(program, keeps ? &rondo_operator_matmul_activated : &rondo_operator_matmul, inputs, 3,
                             &attributes, out_value);
}

rondo_status rondo_op_matmul(rondo_program *program, rondo_value a, rondo_value b, rondo_value bias,
                             rondo_value *out_value) {
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .bias = bias};
  return rondo_op_matmul_with(program, a, b, &options, out_value);
}
