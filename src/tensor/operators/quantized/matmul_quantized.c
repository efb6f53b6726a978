/* SPDX-License-Identifier: MIT
 * matmul_quantized: y = x weightᵀ (+ bias), where the weight is quantised.
 *
 * A product with few rows is limited by how fast the weight is read. On a CPU, it consists of dot products that unpack
 * the weight in registers (quantized_dot.h), and so do all products with integers; on CUDA, a warp computes a column of
 * the result. A product with more rows is limited by arithmetic. It is computed from panels of the weight as floats; on
 * CUDA, of up to 64 rows of F32 in parts of the depth (quantized_parts.h), and otherwise, if it is large, by a library:
 * from the integers where both factors are some of 8 bits with one scale in each row, else from all of the weight as
 * floats, in the workspace. The shape alone decides.
 *
 * Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/quantized/matmul_quantized.h"

#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/operators/matmul/gemm.h"
#include "tensor/operators/quantized/dequantize.h"
#include "tensor/operators/quantized/quantized_parts.h"
#include "tensor/operators/quantized/scale_product.h"

enum { X, VALUES, SCALES, ZEROS, BIAS };     /* inputs */
enum { ACTIVATIONS = RONDO_QUANTIZED_FREE }; /* sizes */

/* With at most this many rows, dot products of floats are about as fast as panels, or faster. Those of integers always
 * are. */
#define DOTS_ROWS 8
/* The same in matmul_quantized_thin.cu. */
#define THIN_ROWS 8

/* Multiplications of a block of dot products, and columns that are computed for the same rows one after another, while
 * these are in the first cache. */
#define DOTS_GRAIN 131072
#define DOTS_COLUMNS 8

/* Kernels ---------------------------------------------------------------------------------------------------------- */

/* A scalar argument of the dot products; without padding. */
typedef struct dots_shape {
  size_t m, n;
  rondo_quantized_rows rows;
} dots_shape;

/* What a block of dot products reads and writes. */
typedef struct dots_memory {
  const char *x, *x_starts; /* prepared rows; x_starts NULL: none */
  const float *x_scales;    /* NULL: floats */
  rondo_quantized_matrix matrix;
  const void *bias;
  void *y;
} dots_memory;

static void put_dots(rondo_type type, const dots_shape *shape, const dots_memory *memory, size_t first, size_t j,
                     size_t count, const float *dots) {
  const float bias = memory->bias == NULL ? 0 : rondo_load_one(type, memory->bias, j);
  for (size_t i = 0; i < count; i++) {
    const float dot = memory->x_scales == NULL ? dots[i] : dots[i] * memory->x_scales[first + i];
    rondo_store_one(type, memory->y, (first + i) * shape->n + j, dot + bias);
  }
}

/* Some columns of up to RONDO_DOT_FACTORS rows of the result. */
static void multiply_rows(rondo_type type, const dots_shape *shape, const rondo_quantized_scheme *scheme,
                          const dots_memory *memory, size_t first, rondo_span columns) {
  const size_t row_bytes = shape->rows.padded * (shape->rows.is_int8 ? 1 : sizeof(float));
  const size_t row_starts = shape->rows.groups * RONDO_DOT_LANES * sizeof(float);
  const size_t count = rondo_smaller(shape->m - first, RONDO_DOT_FACTORS);
  const rondo_quantized_dots multiply = rondo_quantized_dots_for(scheme->bits, shape->rows.is_int8 != 0);
  const rondo_quantized_matrix *matrix = &memory->matrix;
  rondo_dot_factor factors[RONDO_DOT_FACTORS];
  float dots[RONDO_DOT_FACTORS];
  for (size_t i = 0; i < count; i++)
    factors[i] = (rondo_dot_factor){memory->x + (first + i) * row_bytes,
                                    memory->x_starts == NULL ? NULL : memory->x_starts + (first + i) * row_starts};
  for (size_t j = columns.first; j < columns.last; j++) {
    const rondo_dot_row row = {matrix->values + j * scheme->row_bytes, matrix->scales + j * scheme->groups,
                               matrix->zeros == NULL ? NULL : matrix->zeros + j * scheme->groups, scheme->columns,
                               scheme->group};
    multiply(&row, factors, count, dots);
    put_dots(type, shape, memory, first, j, count, dots);
  }
}

/* Arguments: shape, scheme; the prepared rows; the matrix; bias; y. */
static void matmul_dots_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const dots_shape *shape = args[0];
  const rondo_quantized_scheme *scheme = args[1];
  const dots_memory memory = {
      .x = RONDO_ARG(const char *, 2),
      .x_starts = RONDO_ARG(const char *, 3),
      .x_scales = RONDO_ARG(const float *, 4),
      .matrix = {RONDO_ARG(const uint8_t *, 5), RONDO_ARG(const float *, 6), RONDO_ARG(const uint8_t *, 7)},
      .bias = RONDO_ARG(const void *, 8),
      .y = RONDO_ARG(void *, 9)};
  const rondo_span all = rondo_blocks_span(blocks, shape->n, 1);
  for (size_t j = all.first; j < all.last; j += DOTS_COLUMNS) {
    const rondo_span columns = {j, rondo_smaller(j + DOTS_COLUMNS, all.last)};
    for (size_t i = 0; i < shape->m; i += RONDO_DOT_FACTORS) multiply_rows(type, shape, scheme, &memory, i, columns);
  }
}

/* Only for CPUs. */
#define DOTS_FUNCTION(suffix, type, kernel) \
  static void kernel##suffix(rondo_blocks blocks, void *const *args) { kernel##_cpu(type, blocks, args); }
#define DOTS_CODE(suffix, type, kernel)                                                                                \
  [type] = {RONDO_KERNEL_OPTIONS_INIT, .name = #kernel #suffix, .cpu = kernel##suffix,                                 \
            RONDO_PARAMETERS(RONDO_SCALAR(dots_shape), RONDO_SCALAR(rondo_quantized_scheme), RONDO_READS, RONDO_READS, \
                             RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES)},
RONDO_EACH_FLOAT(DOTS_FUNCTION, matmul_dots)
static const rondo_kernel_options matmul_dots_code[] = {RONDO_EACH_FLOAT(DOTS_CODE, matmul_dots)};

RONDO_TYPED_KERNEL_OF(matmul_quantized, rondo_matmul_quantized_cpu, matmul_quantized,
                      RONDO_MATMUL_QUANTIZED_PARAMETERS);
RONDO_TYPED_KERNEL_OF(matmul_quantized_thin, rondo_matmul_quantized_cpu, matmul_quantized_thin,
                      RONDO_MATMUL_QUANTIZED_PARAMETERS);

/* Shapes ----------------------------------------------------------------------------------------------------------- */

static bool is_int8(const rondo_operation *operation) {
  return operation->attributes.sizes[ACTIVATIONS] == RONDO_QUANTIZED_INT8;
}

static rondo_status check_columns(const rondo_program *program, const rondo_operation *operation) {
  const size_t columns = operation->attributes.sizes[RONDO_QUANTIZED_COLUMNS];
  if (!is_int8(operation) || columns <= RONDO_INT8_COLUMNS) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "rows of x have %zu columns, and with activations of 8 bits they can have %zu: use "
                              "RONDO_QUANTIZED_FLOAT",
                              columns, RONDO_INT8_COLUMNS);
}

static rondo_status infer_matmul(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *x = rondo_operation_input(program, operation, X);
  const rondo_shape *bias = rondo_operation_input(program, operation, BIAS);
  RONDO_TRY(rondo_require_float(program, operation, X, RONDO_ANY_RANK));
  if (x->rank == 0)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "x is a scalar: reshape it to [1]");
  RONDO_TRY(rondo_quantized_require(program, operation, VALUES));
  RONDO_TRY(check_columns(program, operation));
  const size_t rows = rondo_operation_input(program, operation, VALUES)->dims[0];
  results[0] = *x;
  results[0].dims[x->rank - 1] = rows;
  RONDO_TRY(rondo_require_input(program, operation, BIAS, x->type, 1));
  if (bias == NULL || bias->dims[0] == rows) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                              "the bias has %zu elements; it needs one for each of the %zu rows of the weight",
                              bias->dims[0], rows);
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

/* dx = dy weight. */
static rondo_status differentiate_matmul(rondo_program *program, const rondo_operation *operation,
                                         const uint32_t *result_gradients, uint32_t *input_gradients) {
  const size_t *sizes = operation->attributes.sizes;
  const rondo_quantized_options options = {.bits = (uint32_t)sizes[RONDO_QUANTIZED_BITS],
                                           .group = sizes[RONDO_QUANTIZED_GROUP],
                                           .type = rondo_program_shape(program, operation->inputs[X])->type};
  const rondo_attributes attributes = rondo_dequantize_attributes(&options, sizes[RONDO_QUANTIZED_COLUMNS]);
  uint32_t weight = 0, dx = 0, dy = result_gradients[0];
  if (dy == RONDO_NO_VALUE) return RONDO_OK;
  RONDO_TRY(
      rondo_program_add(program, &rondo_operator_dequantize, &operation->inputs[VALUES], 3, &attributes, &weight));
  const rondo_shape x = *rondo_program_shape(program, operation->inputs[X]);
  const rondo_shape matrix = {
      .rank = 2,
      .dims = {rondo_shape_elements_of(&x, 0, x.rank - 1), rondo_shape_last(rondo_program_shape(program, dy))}};
  uint32_t rows = dy;
  if (x.rank != 2) RONDO_TRY(rondo_program_add_shaped(program, &rondo_operator_reshape, dy, matrix, &rows));
  RONDO_TRY(rondo_program_add(program, &rondo_operator_matmul, (uint32_t[]){rows, weight}, 2, NULL, &dx));
  if (x.rank != 2) RONDO_TRY(rondo_program_add_shaped(program, &rondo_operator_reshape, dx, x, &dx));
  input_gradients[X] = dx;
  if (operation->inputs[BIAS] == RONDO_NO_VALUE) return RONDO_OK;
  return rondo_add_sum_to(program, dy, operation->inputs[BIAS], &input_gradients[BIAS]);
}

/* Work ------------------------------------------------------------------------------------------------------------- */

typedef enum matmul_form { BY_DOTS, BY_TILES, BY_THIN_ROWS, BY_PARTS, BY_LIBRARY, BY_INTEGER_LIBRARY } matmul_form;

/* How a product is computed, and where its parts are in the workspace. */
typedef struct matmul_work {
  rondo_type type;
  size_t m;
  rondo_quantized_scheme scheme;
  matmul_form form;
  bool has_rows; /* x is prepared */
  rondo_quantized_rows rows;
  rondo_quantized_rows_layout layout;
  size_t x, weight; /* BY_LIBRARY: both as floats of the type, unless x is used as it is; after the library's part */
  size_t sums;      /* BY_INTEGER_LIBRARY, BY_PARTS */
  rondo_quantized_parts parts;
  size_t bytes;
} matmul_work;

static bool place_parts(matmul_work *work, size_t library_bytes) {
  size_t end = 0;
  if (!rondo_checked_align(library_bytes, RONDO_PART_ALIGNMENT, &end)) return false;
  if (work->has_rows && !rondo_quantized_rows_place(&work->rows, end, &work->layout)) return false;
  if (work->has_rows) end = work->layout.end;
  work->bytes = end;
  if (work->form == BY_INTEGER_LIBRARY)
    return rondo_place_part(&work->bytes, work->m, work->scheme.rows, sizeof(int32_t), &work->sums);
  if (work->form == BY_PARTS)
    return rondo_place_part(&work->bytes, work->m * work->parts.parts, work->scheme.rows, sizeof(float), &work->sums);
  if (work->form != BY_LIBRARY) return true;
  const size_t bytes = rondo_type_bytes(work->type);
  return (!work->has_rows || rondo_place_part(&work->bytes, work->m, work->scheme.columns, bytes, &work->x)) &&
         rondo_place_part(&work->bytes, work->scheme.rows, work->scheme.columns, bytes, &work->weight);
}

/* Whether rows of x, without padding, and the weight are factors of a library's product of integers. */
static bool are_integers(const rondo_operation *operation, const matmul_work *work) {
  const rondo_quantized_scheme *scheme = &work->scheme;
  return is_int8(operation) && scheme->bits == 8 && scheme->groups == 1 && scheme->has_zeros == 0 &&
         scheme->columns % RONDO_QUANTIZED_STEP == 0 && scheme->columns % RONDO_INTEGER_PRODUCT_UNIT == 0 &&
         scheme->columns <= RONDO_INTEGER_PRODUCT_DEPTH && scheme->rows % RONDO_INTEGER_PRODUCT_UNIT == 0;
}

/* Without a library, on CUDA. */
static matmul_form cuda_form(const rondo_operation *operation, const matmul_work *work) {
  if (work->m <= THIN_ROWS) return BY_THIN_ROWS;
  const bool in_parts =
      work->type == RONDO_F32 && work->m <= RONDO_QUANTIZED_PARTS_ROWS && !are_integers(operation, work);
  return in_parts ? BY_PARTS : BY_TILES;
}

/* `product`: that of a library, or NULL. */
static rondo_status plan_work(const rondo_program *program, const rondo_operation *operation, bool is_cuda,
                              const rondo_product *product, matmul_work *out) {
  const rondo_shape *x = rondo_program_shape(program, operation->inputs[X]);
  *out = (matmul_work){.type = x->type,
                       .m = rondo_shape_elements_of(x, 0, x->rank - 1),
                       .scheme = rondo_quantized_scheme_at(program, operation, VALUES)};
  if (product != NULL)
    out->form = rondo_product_is_integer(product) ? BY_INTEGER_LIBRARY : BY_LIBRARY;
  else if (is_cuda)
    out->form = cuda_form(operation, out);
  else
    out->form = is_int8(operation) || out->m <= DOTS_ROWS ? BY_DOTS : BY_TILES;
  out->has_rows = out->form == BY_DOTS || is_int8(operation);
  out->rows = rondo_quantized_rows_of(&out->scheme, out->m, is_int8(operation), out->form == BY_DOTS);
  if (out->form == BY_PARTS) out->parts = rondo_quantized_parts_of(&out->scheme, out->m);
  if (place_parts(out, product == NULL ? 0 : rondo_product_workspace(product))) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "matmul_quantized: the size of the workspace does not fit in %zu bits: make the operands smaller",
                    8 * sizeof(size_t));
}

/* One of integers, if that is possible and the library has one, else one of floats. */
static rondo_status add_product(rondo_resources *resources, uint32_t number, const rondo_operation *operation,
                                const matmul_work *work, size_t *out_workspace_bytes) {
  rondo_product_shape shape = {.type = RONDO_I8,
                               .m = work->m,
                               .n = work->scheme.rows,
                               .k = work->scheme.columns,
                               .batches = 1,
                               .transpose_b = true};
  if (are_integers(operation, work))
    RONDO_TRY(rondo_resources_add_product(resources, number, &shape, out_workspace_bytes));
  if (rondo_resources_product(resources, number) != NULL) return RONDO_OK;
  shape.type = work->type;
  shape.has_bias = operation->inputs[BIAS] != RONDO_NO_VALUE;
  return rondo_resources_add_product(resources, number, &shape, out_workspace_bytes);
}

/* A library computes products with many rows on CUDA, if it is faster. */
static rondo_status prepare_matmul(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                   size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  matmul_work work;
  RONDO_TRY(plan_work(program, operation, resources->is_cuda, NULL, &work));
  if (work.form == BY_TILES && resources->is_cuda) {
    RONDO_TRY(add_product(resources, number, operation, &work, out_workspace_bytes));
    RONDO_TRY(plan_work(program, operation, resources->is_cuda, rondo_resources_product(resources, number), &work));
  }
  *out_workspace_bytes = work.bytes;
  return RONDO_OK;
}

/* Emit ------------------------------------------------------------------------------------------------------------- */

/* No rows: all NULL. */
static rondo_quantized_rows_memory rows_memory(const rondo_emitter *emitter, const matmul_work *work) {
  if (!work->has_rows) return (rondo_quantized_rows_memory){NULL, NULL, NULL};
  const bool has_starts = work->rows.start_factor != 0;
  return (rondo_quantized_rows_memory){
      .values = rondo_emit_part(emitter, work->layout.values),
      .starts = has_starts ? rondo_emit_part(emitter, work->layout.starts) : NULL,
      .scales = work->rows.is_int8 ? rondo_emit_part(emitter, work->layout.scales) : NULL};
}

static rondo_status emit_dots(rondo_emitter *emitter, const rondo_operation *operation, const matmul_work *work) {
  const dots_shape shape = {work->m, work->scheme.rows, work->rows};
  const rondo_quantized_rows_memory rows = rows_memory(emitter, work);
  const rondo_grain grain = {rondo_larger(DOTS_GRAIN / work->scheme.columns / work->m, DOTS_COLUMNS), 1};
  return rondo_emit_operands(
      emitter, operation, &matmul_dots_code[work->type], rondo_emit_grid(emitter, shape.n, grain),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_OBJECT(work->scheme), RONDO_OBJECT(rows.values),
                     RONDO_OBJECT(rows.starts), RONDO_OBJECT(rows.scales), RONDO_INPUT(VALUES), RONDO_INPUT(SCALES),
                     RONDO_INPUT(ZEROS), RONDO_INPUT(BIAS), RONDO_RESULT(0)));
}

static rondo_grid grid_of(const rondo_emitter *emitter, const matmul_work *work, rondo_matmul_problem *problem) {
  const rondo_shape x = rondo_shape_matrix(work->type, work->m, work->scheme.columns);
  const rondo_shape weight = rondo_shape_matrix(work->type, work->scheme.rows, work->scheme.columns);
  *problem = rondo_matmul_problem_of(&x, &weight, false, true);
  rondo_gemm_prepare();
  if (rondo_emit_is_cuda(emitter)) {
    const size_t tiles = rondo_matmul_cut_squares(problem); /* the CPU function has tiles in each form */
    if (work->form != BY_THIN_ROWS) return rondo_tile_grid(tiles);
    return rondo_emit_grid(emitter, work->scheme.rows, (rondo_grain){1, RONDO_CUDA_THREADS / 32});
  }
  return (rondo_grid){.x = rondo_matmul_cut(problem, RONDO_BF16, false).blocks};
}

static rondo_status emit_tiles(rondo_emitter *emitter, const rondo_operation *operation, const matmul_work *work) {
  rondo_matmul_problem problem;
  const rondo_grid grid = grid_of(emitter, work, &problem);
  const rondo_quantized_rows_memory rows = rows_memory(emitter, work);
  const rondo_kernel_options *code = work->form == BY_THIN_ROWS ? matmul_quantized_thin_code : matmul_quantized_code;
  return rondo_emit_operands(
      emitter, operation, &code[work->type], grid,
      RONDO_OPERANDS(RONDO_OBJECT(problem), RONDO_OBJECT(work->scheme), RONDO_INPUT(X), RONDO_OBJECT(rows.values),
                     RONDO_OBJECT(rows.scales), RONDO_INPUT(VALUES), RONDO_INPUT(SCALES), RONDO_INPUT(ZEROS),
                     RONDO_INPUT(BIAS), RONDO_RESULT(0)));
}

static rondo_status emit_library(rondo_emitter *emitter, const rondo_operation *operation, const matmul_work *work) {
  const rondo_quantized_matrix weight = rondo_emit_quantized(emitter, operation, VALUES);
  const rondo_product_memory memory = {
      .a = work->has_rows ? rondo_emit_part(emitter, work->x) : rondo_emit_address(emitter, operation->inputs[X]),
      .b = rondo_emit_part(emitter, work->weight),
      .bias = rondo_emit_address(emitter, operation->inputs[BIAS]),
      .c = rondo_emit_address(emitter, operation->results[0]),
      .workspace = rondo_emit_workspace(emitter)};
  if (work->has_rows) {
    const rondo_quantized_rows_memory rows = rows_memory(emitter, work);
    const rondo_quantized_scheme scheme = rondo_quantized_rows_scheme(work->m, work->scheme.columns);
    const rondo_quantized_matrix x = {rows.values, rows.scales, NULL};
    RONDO_TRY(rondo_emit_dequantize(emitter, work->type, &scheme, &x, memory.a));
  }
  RONDO_TRY(rondo_emit_dequantize(emitter, work->type, &work->scheme, &weight, memory.b));
  return rondo_emit_product_call(emitter, &memory);
}

static rondo_status emit_integer_library(rondo_emitter *emitter, const rondo_operation *operation,
                                         const matmul_work *work) {
  const rondo_quantized_rows_memory rows = rows_memory(emitter, work);
  const rondo_quantized_matrix weight = rondo_emit_quantized(emitter, operation, VALUES);
  void *const sums = rondo_emit_part(emitter, work->sums);
  const rondo_scale_product_memory end = {sums, rows.scales, weight.scales,
                                          rondo_emit_address(emitter, operation->inputs[BIAS]),
                                          rondo_emit_address(emitter, operation->results[0])};
  RONDO_TRY(rondo_emit_product_call(
      emitter, &(rondo_product_memory){
                   .a = rows.values, .b = weight.values, .c = sums, .workspace = rondo_emit_workspace(emitter)}));
  return rondo_emit_scale_product(emitter, work->type, work->m, work->scheme.rows, &end);
}

static rondo_status emit_parts(rondo_emitter *emitter, const rondo_operation *operation, const matmul_work *work) {
  const rondo_quantized_parts_memory memory = {.x = rondo_emit_address(emitter, operation->inputs[X]),
                                               .rows = rows_memory(emitter, work),
                                               .matrix = rondo_emit_quantized(emitter, operation, VALUES),
                                               .bias = rondo_emit_address(emitter, operation->inputs[BIAS]),
                                               .sums = rondo_emit_part(emitter, work->sums),
                                               .y = rondo_emit_address(emitter, operation->results[0])};
  return rondo_emit_quantized_parts(emitter, &work->parts, &work->scheme, &memory);
}

static rondo_status emit_matmul(rondo_emitter *emitter, const rondo_operation *operation) {
  matmul_work work;
  RONDO_TRY(plan_work(rondo_emit_program(emitter), operation, rondo_emit_is_cuda(emitter), rondo_emit_product(emitter),
                      &work));
  if (work.has_rows) {
    const rondo_quantized_rows_memory rows = rows_memory(emitter, &work);
    RONDO_TRY(rondo_emit_quantized_rows(emitter, work.type, &work.rows,
                                        rondo_emit_address(emitter, operation->inputs[X]), &rows));
  }
  if (work.form == BY_PARTS) return emit_parts(emitter, operation, &work);
  if (work.form == BY_LIBRARY) return emit_library(emitter, operation, &work);
  if (work.form == BY_INTEGER_LIBRARY) return emit_integer_library(emitter, operation, &work);
  return (work.form == BY_DOTS ? emit_dots : emit_tiles)(emitter, operation, &work);
}

RONDO_OPERATOR(matmul_quantized, .types = RONDO_FLOATS, .inputs = {"x", "values", "scales", "zeros", "bias"},
               .required = 3, .result_count = 1, .constants = 1u << SCALES, .infer = infer_matmul,
               .differentiate = differentiate_matmul, .prepare = prepare_matmul, .emit = emit_matmul);

rondo_status rondo_op_matmul_quantized(rondo_program *program, rondo_value x, rondo_value values, rondo_value scales,
                                       rondo_value zeros, const rondo_quantized_options *options,
                                       rondo_value *out_value) {
  const rondo_operator *row = &rondo_operator_matmul_quantized;
  rondo_quantized_options given;
  uint32_t index = 0;
  RONDO_TRY(rondo_program_begin_of(program, row->name, x, "x", out_value, &index));
  RONDO_TRY(rondo_quantized_read(row->name, options, &given));
  rondo_attributes attributes =
      rondo_quantized_attributes(&given, rondo_shape_last(rondo_program_shape(program, index)));
  attributes.sizes[ACTIVATIONS] = given.activations;
  attributes.size_count = ACTIVATIONS + 1;
  const rondo_value inputs[] = {x, values, scales, zeros, given.bias};
  return rondo_program_apply(program, row, inputs, 5, &attributes, out_value);
}
