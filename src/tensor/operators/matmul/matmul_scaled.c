/* SPDX-License-Identifier: MIT
 * matmul_scaled: y = (a · bᵀ) times the scales of a and b (+ bias), of 8-bit floats. b is stored by the columns of the
 * result, as libraries need it. A scale belongs to a whole factor, or to each of its rows.
 *
 * On CUDA a library multiplies the 8-bit floats if it and the GPU can (cublaslt.h), else a kernel, whose panels become
 * F32 when they are read. On a CPU, panels become F32 on the stack, and gemm.h multiplies them. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/matmul/gemm.h"
#include "tensor/operators/matmul/matmul_problem.h"

enum { A, B, A_SCALE, B_SCALE, BIAS }; /* inputs */
enum { TYPE };                         /* sizes */

#define FLOAT8 (RONDO_TYPE_BIT(RONDO_F8_E4M3) | RONDO_TYPE_BIT(RONDO_F8_E5M2))
#define EDGE RONDO_MATMUL_CONVERTED_EDGE
#define DEPTH 128 /* of a panel */

/* A scalar argument of the kernels; without padding. */
typedef struct scaled_factors {
  uint64_t a_is_e5m2, b_is_e5m2;
  uint64_t scales_a_rows, scales_b_rows; /* otherwise there is one scale */
} scaled_factors;

/* CPU -------------------------------------------------------------------------------------------------------------- */

typedef struct scaled_memory {
  const void *a, *b;
  const float *a_scales, *b_scales;
  const void *bias;
  void *y;
} scaled_memory;

typedef struct tile {
  size_t row, column, rows, columns;
} tile;

/* `rows` rows of `depth` elements as floats; the rows are `stride` apart in memory. */
RONDO_VECTORISED(load_panel,
                 (bool is_e5m2, const void *memory, size_t first, size_t stride, size_t rows, size_t depth,
                  float *panel),
                 (is_e5m2, memory, first, stride, rows, depth, panel)) {
  const rondo_type type = is_e5m2 ? RONDO_F8_E5M2 : RONDO_F8_E4M3;
  for (size_t i = 0; i < rows; i++) (void)rondo_load_chunk(type, memory, first + i * stride, depth, panel + i * depth);
}

static void add_panels(const rondo_matmul_problem *p, const scaled_factors *f, const scaled_memory *memory,
                       const tile *t, size_t from, float *sums) {
  float left[EDGE * DEPTH], right[EDGE * DEPTH];
  const size_t depth = rondo_smaller(DEPTH, p->k - from);
  load_panel(f->a_is_e5m2 != 0, memory->a, t->row * p->k + from, p->k, t->rows, depth, left);
  load_panel(f->b_is_e5m2 != 0, memory->b, t->column * p->k + from, p->k, t->columns, depth, right);
  rondo_gemm_run(&(rondo_gemm){t->rows, t->columns, depth, .a = {left, depth, false}, .b = {right, depth, true},
                               .c = {sums, t->columns, from > 0}});
}

static void store_row(rondo_type type, const rondo_matmul_problem *p, const scaled_factors *f,
                      const scaled_memory *memory, const tile *t, size_t i, float *row) {
  const float of_a = memory->a_scales[f->scales_a_rows ? t->row + i : 0];
  for (size_t j = 0; j < t->columns; j++) {
    row[j] *= of_a * memory->b_scales[f->scales_b_rows ? t->column + j : 0];
    if (memory->bias != NULL) row[j] += rondo_load_one(type, memory->bias, t->column + j);
  }
  rondo_store_floats(type, memory->y, (t->row + i) * p->n + t->column, t->columns, row);
}

static void matmul_scaled_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_matmul_problem *p = args[0];
  const scaled_factors *f = args[1];
  const scaled_memory memory = {.a = RONDO_ARG(const void *, 2),
                                .b = RONDO_ARG(const void *, 3),
                                .a_scales = RONDO_ARG(const float *, 4),
                                .b_scales = RONDO_ARG(const float *, 5),
                                .bias = RONDO_ARG(const void *, 6),
                                .y = RONDO_ARG(void *, 7)};
  float sums[EDGE * EDGE];
  RONDO_EACH_TILE(number, blocks, p->tiles.down * p->tiles.across) {
    tile t = {.row = number / p->tiles.across * p->tiles.rows, .column = number % p->tiles.across * p->tiles.columns};
    t.rows = rondo_smaller(p->m - t.row, p->tiles.rows);
    t.columns = rondo_smaller(p->n - t.column, p->tiles.columns);
    assert(t.rows <= EDGE && t.columns <= EDGE);
    for (size_t from = 0; from < p->k; from += DEPTH) add_panels(p, f, &memory, &t, from, sums);
    for (size_t i = 0; i < t.rows; i++) store_row(type, p, f, &memory, &t, i, sums + i * t.columns);
  }
}

RONDO_TYPED_KERNEL(matmul_scaled, matmul_scaled, RONDO_SCALAR(rondo_matmul_problem), RONDO_SCALAR(scaled_factors),
                   RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES);

/* Shapes ----------------------------------------------------------------------------------------------------------- */

static rondo_status require_scale(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                  size_t rows) {
  RONDO_TRY(rondo_require_input(program, operation, input, RONDO_F32, RONDO_ANY_RANK));
  const rondo_shape *scale = rondo_operation_input(program, operation, input);
  const size_t count = rondo_shape_elements(scale);
  if (count == 1 || (scale->rank == 1 && count == rows)) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "%s must have 1 element, or be [%zu]",
                              operation->row->inputs[input], rows);
}

static rondo_status require_bias(const rondo_program *program, const rondo_operation *operation, rondo_type type,
                                 size_t columns) {
  const rondo_shape *bias = rondo_operation_input(program, operation, BIAS);
  RONDO_TRY(rondo_require_input(program, operation, BIAS, type, 1));
  if (bias == NULL || bias->dims[0] == columns) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "the bias has %zu elements; it needs one for each of the %zu rows of b", bias->dims[0],
                              columns);
}

static rondo_status infer_scaled(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *a = rondo_operation_input(program, operation, A);
  const rondo_shape *b = rondo_operation_input(program, operation, B);
  const rondo_type type = (rondo_type)operation->attributes.sizes[TYPE];
  if ((FLOAT8 & RONDO_TYPE_BIT(b->type)) == 0)
    return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "b must be f8_e4m3 or f8_e5m2");
  if (a->rank == 0 || b->rank != 2 || rondo_shape_last(a) != b->dims[1])
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "a must be [.., k], and b [n, k]");
  RONDO_TRY(require_scale(program, operation, A_SCALE, rondo_shape_elements_of(a, 0, a->rank - 1)));
  RONDO_TRY(require_scale(program, operation, B_SCALE, b->dims[0]));
  RONDO_TRY(require_bias(program, operation, type, b->dims[0]));
  results[0] = *a;
  results[0].type = type;
  results[0].dims[a->rank - 1] = b->dims[0];
  return RONDO_OK;
}

/* Work ------------------------------------------------------------------------------------------------------------- */

static rondo_matmul_problem problem_of(const rondo_shape *a, const rondo_shape *b) {
  const rondo_shape rows =
      rondo_shape_matrix(RONDO_F32, rondo_shape_elements_of(a, 0, a->rank - 1), rondo_shape_last(a));
  return rondo_matmul_problem_of(&rows, b, false, true);
}

static scaled_factors factors_of(const rondo_shape *const *inputs) {
  return (scaled_factors){.a_is_e5m2 = inputs[A]->type == RONDO_F8_E5M2,
                          .b_is_e5m2 = inputs[B]->type == RONDO_F8_E5M2,
                          .scales_a_rows = rondo_shape_elements(inputs[A_SCALE]) > 1,
                          .scales_b_rows = rondo_shape_elements(inputs[B_SCALE]) > 1};
}

/* What a library can take: a scale for both factors, or for each row of both. */
static bool is_for_library(const rondo_product_shape *shape, const scaled_factors *f) {
  return shape->n % RONDO_FLOAT8_PRODUCT_UNIT == 0 && shape->k % RONDO_FLOAT8_PRODUCT_UNIT == 0 &&
         !(f->a_is_e5m2 && f->b_is_e5m2) && f->scales_a_rows == f->scales_b_rows &&
         !(shape->has_bias && shape->type_c == RONDO_F32);
}

static rondo_status prepare_scaled(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                   size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  rondo_device_info info = {.struct_size = sizeof info};
  const rondo_shape *inputs[BIAS];
  RONDO_TRY(rondo_device_get_info(resources->device, &info));
  for (uint32_t i = 0; i < BIAS; i++) inputs[i] = rondo_operation_input(program, operation, i);
  const rondo_matmul_problem problem = problem_of(inputs[A], inputs[B]);
  const scaled_factors factors = factors_of(inputs);
  const rondo_product_shape shape = {.type = inputs[A]->type,
                                     .type_b = inputs[B]->type,
                                     .type_c = (rondo_type)operation->attributes.sizes[TYPE],
                                     .scales_rows = factors.scales_a_rows != 0,
                                     .m = problem.m,
                                     .n = problem.n,
                                     .k = problem.k,
                                     .batches = 1,
                                     .transpose_b = true,
                                     .has_bias = operation->inputs[BIAS] != RONDO_NO_VALUE};
  *out_workspace_bytes = 0;
  if (!info.cuda || !is_for_library(&shape, &factors)) return RONDO_OK;
  return rondo_resources_add_product(resources, number, &shape, out_workspace_bytes);
}

static rondo_status emit_product(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_product_memory memory = {.a = rondo_emit_address(emitter, operation->inputs[A]),
                                       .b = rondo_emit_address(emitter, operation->inputs[B]),
                                       .a_scales = rondo_emit_address(emitter, operation->inputs[A_SCALE]),
                                       .b_scales = rondo_emit_address(emitter, operation->inputs[B_SCALE]),
                                       .bias = rondo_emit_address(emitter, operation->inputs[BIAS]),
                                       .c = rondo_emit_address(emitter, operation->results[0]),
                                       .workspace = rondo_emit_workspace(emitter)};
  return rondo_emit_product_call(emitter, &memory);
}

static rondo_status emit_scaled(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *inputs[BIAS];
  if (rondo_emit_product(emitter) != NULL) return emit_product(emitter, operation);
  for (uint32_t i = 0; i < BIAS; i++) inputs[i] = rondo_emit_shape(emitter, operation->inputs[i]);
  const rondo_type type = (rondo_type)operation->attributes.sizes[TYPE];
  rondo_matmul_problem problem = problem_of(inputs[A], inputs[B]);
  const scaled_factors factors = factors_of(inputs);
  rondo_gemm_prepare();
  const rondo_grid grid = rondo_emit_is_cuda(emitter)
                              ? rondo_tile_grid(rondo_matmul_cut_squares(&problem))
                              : (rondo_grid){.x = rondo_matmul_cut(&problem, RONDO_BF16, false).blocks};
  return rondo_emit_operands(
      emitter, operation, &matmul_scaled_code[type], grid,
      RONDO_OPERANDS(RONDO_OBJECT(problem), RONDO_OBJECT(factors), RONDO_INPUT(A), RONDO_INPUT(B), RONDO_INPUT(A_SCALE),
                     RONDO_INPUT(B_SCALE), RONDO_INPUT(BIAS), RONDO_RESULT(0)));
}

RONDO_OPERATOR(matmul_scaled, .types = FLOAT8, .inputs = {"a", "b", "a_scale", "b_scale", "bias"}, .required = 4,
               .result_count = 1, .infer = infer_scaled, .prepare = prepare_scaled, .emit = emit_scaled);

rondo_status rondo_op_matmul_scaled(rondo_program *program, rondo_value a, rondo_value b, rondo_value a_scale,
                                    rondo_value b_scale, const rondo_matmul_scaled_options *options,
                                    rondo_value *out_value) {
  const rondo_operator *row = &rondo_operator_matmul_scaled;
  rondo_matmul_scaled_options given = {RONDO_MATMUL_SCALED_OPTIONS_INIT};
  RONDO_TRY(rondo_program_begin(program, row->name, out_value));
  if (options != NULL) RONDO_TRY(rondo_versioned_read("rondo_matmul_scaled_options", options, &given, sizeof given));
  if (given.type == 0) given.type = RONDO_F32;
  const rondo_shape scalar = rondo_shape_scalar(given.type);
  if (!rondo_shape_is_float(&scalar))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: the type of the result is not f32, f16 or bf16", row->name);
  const rondo_attributes attributes = {.sizes = {[TYPE] = given.type}, .size_count = TYPE + 1};
  const rondo_value inputs[] = {a, b, a_scale, b_scale, given.bias};
  return rondo_program_apply(program, row, inputs, 5, &attributes, out_value);
}
