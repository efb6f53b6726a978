/* SPDX-License-Identifier: MIT
 * matmul_integer: products of matrices of 8-bit integers, in tiles (integer_product.h), or on CUDA by a library if b is
 * one matrix (integer_library.h). On a CPU, a state b is packed into panels, if nothing else reads it
 * (integer_panels.h). Otherwise a transposed b is multiplied as it is, row by row, with rows of a that a kernel before
 * has copied in the order of the products (integer_lanes.h). Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/integer/integer_lanes.h"
#include "tensor/operators/integer/integer_library.h"
#include "tensor/operators/integer/integer_panels.h"

enum { A, B };
#define LEADING (RONDO_MAX_DIMENSIONS - 2)

/* A scalar argument of the kernels; without padding. The leading dimensions are those of the result, and the distances
 * of the matrices in a and b; 0 where one is repeated. */
typedef struct matmul_shape {
  size_t dims[LEADING], a_steps[LEADING], b_steps[LEADING];
  size_t matrices, m, k, n;
  rondo_integer_ending ending;
  size_t rows; /* of all matrices a */
} matmul_shape;

/* The first elements of the matrices of product `number`. */
static void find_matrices(const matmul_shape *s, size_t number, size_t *out_a, size_t *out_b) {
  *out_a = *out_b = 0;
  for (size_t i = LEADING; i > 0; i--) {
    const size_t at = number % s->dims[i - 1];
    *out_a += at * s->a_steps[i - 1];
    *out_b += at * s->b_steps[i - 1];
    number /= s->dims[i - 1];
  }
}

/* Copies a panel of each factor: `depth` columns of a from its element `a`, and rows of b from its element `b`. */
static void gather(const matmul_shape *s, const void *from_a, const uint8_t *from_b, size_t a, size_t b, size_t depth,
                   int32_t a_zero, rondo_integer_tile *tile) {
  for (size_t i = 0; i < tile->rows; i++) {
    int16_t *to = &tile->a[i * RONDO_INTEGER_DEPTH];
    for (size_t k = 0; k < depth; k++)
      to[k] = (int16_t)(rondo_byte_at(from_a, s->ending.a_unsigned, a + i * s->k + k) - a_zero);
    if (depth % 2 != 0) to[depth] = 0;
  }
  for (size_t k = 0; k < depth; k++) memcpy(&tile->b[k * RONDO_INTEGER_COLUMNS], from_b + b + k * s->n, tile->columns);
}

static void find_zeros(const matmul_shape *s, const void *zeros, size_t column, size_t count, int32_t *out) {
  for (size_t j = 0; j < count; j++)
    out[j] = zeros == NULL ? 0 : rondo_byte_at(zeros, s->ending.b_unsigned, s->ending.zeros_b == 1 ? 0 : column + j);
}

/* shape, a, b, a_zero, b_zero, bias, scale, result_zero, workspace, result */
static rondo_integer_arrays arrays_of(void *const *args) {
  return (rondo_integer_arrays){.a_zero = RONDO_ARG(const void *, 3),
                                .b_zero = RONDO_ARG(const void *, 4),
                                .bias = RONDO_ARG(const void *, 5),
                                .scale = RONDO_ARG(const float *, 6),
                                .result_zero = RONDO_ARG(const void *, 7),
                                .result = RONDO_ARG(void *, 9)};
}

static size_t across(const matmul_shape *s) { return rondo_divide_up(s->n, RONDO_INTEGER_COLUMNS); }
static size_t down(const matmul_shape *s) { return rondo_divide_up(s->m, RONDO_INTEGER_ROWS); }

static void multiply_tile(const matmul_shape *s, void *const *args, size_t number, rondo_integer_tile *tile) {
  const rondo_integer_arrays arrays = arrays_of(args);
  const size_t product = number / across(s) / down(s), row = number / across(s) % down(s) * RONDO_INTEGER_ROWS;
  const size_t column = number % across(s) * RONDO_INTEGER_COLUMNS;
  const int32_t a_zero = arrays.a_zero == NULL ? 0 : rondo_byte_at(arrays.a_zero, s->ending.a_unsigned, 0);
  int32_t zeros[RONDO_INTEGER_COLUMNS];
  rondo_integer_channels channels;
  size_t a, b;
  tile->rows = rondo_smaller(s->m - row, RONDO_INTEGER_ROWS);
  tile->columns = rondo_smaller(s->n - column, RONDO_INTEGER_COLUMNS);
  memset(tile->sums, 0, sizeof tile->sums);
  find_matrices(s, product, &a, &b);
  find_zeros(s, arrays.b_zero, column, tile->columns, zeros);
  for (size_t from = 0; from < s->k; from += RONDO_INTEGER_DEPTH) {
    const size_t depth = rondo_smaller(s->k - from, RONDO_INTEGER_DEPTH);
    gather(s, RONDO_ARG(const void *, 1), RONDO_ARG(const uint8_t *, 2), a + row * s->k + from,
           b + from * s->n + column, depth, a_zero, tile);
    rondo_integer_multiply(tile, depth, s->ending.b_unsigned != 0);
    if (arrays.b_zero != NULL) rondo_integer_subtract(tile, depth, zeros);
  }
  rondo_integer_find_channels(&s->ending, &arrays, column, tile->columns, &channels);
  rondo_integer_store_columns(&s->ending, &channels, tile->sums, tile->rows, tile->columns, arrays.result,
                              (product * s->m + row) * s->n + column, s->n);
}

/* Transposed factors ----------------------------------------------------------------------------------------------- */

static size_t totals_at(const matmul_shape *s) { return s->rows * rondo_integer_dot_bytes(s->k); }

/* args: shape, a; workspace: the rows of a, in the order of products (integer_lanes.h), and their sums. */
static void matmul_integer_rows(rondo_blocks blocks, void *const *args) {
  const matmul_shape *s = args[0];
  unsigned char *workspace = RONDO_ARG(unsigned char *, 2);
  const uint8_t turned = rondo_to_unsigned(s->ending.a_unsigned);
  int32_t *totals = (int32_t *)(void *)(workspace + totals_at(s));
  const bool has_zeros = s->ending.zeros_b != 0 || s->ending.b_unsigned != 0; /* as signed numbers */
  RONDO_EACH_ITEM(row, blocks, s->rows) {
    const uint8_t *from = RONDO_ARG(const uint8_t *, 1) + row * s->k;
    rondo_integer_copy_dot_row(from, s->k, turned, workspace + row * rondo_integer_dot_bytes(s->k));
    totals[row] = has_zeros ? rondo_unsigned_total(from, s->k, turned) : 0;
  }
}

static const rondo_kernel_options rows_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "matmul_integer_rows",
                                               .cpu = matmul_integer_rows,
                                               .params = {RONDO_SCALAR(matmul_shape), RONDO_READS, RONDO_WRITES}};

/* The zeros of some rows of b, as they are multiplied, and what they and the zero of a add to the sums of each:
 * (a - zero) (b - own) is a b - zero b - own a + zero own. */
typedef struct row_zeros {
  uint32_t own[RONDO_INTEGER_COLUMNS], added[RONDO_INTEGER_COLUMNS];
} row_zeros;

static void find_row_zeros(const matmul_shape *s, void *const *args, size_t column, size_t columns, size_t b,
                           row_zeros *out) {
  const rondo_integer_arrays arrays = arrays_of(args);
  const uint8_t turned = rondo_to_signed(s->ending.b_unsigned), *zeros = arrays.b_zero;
  const uint8_t *rows = RONDO_ARG(const uint8_t *, 2) + b;
  const uint32_t zero = arrays.a_zero == NULL
                            ? rondo_to_unsigned(s->ending.a_unsigned)
                            : *(const uint8_t *)arrays.a_zero ^ rondo_to_unsigned(s->ending.a_unsigned);
  for (size_t j = 0; j < columns; j++) {
    const uint8_t own = zeros == NULL ? 0 : zeros[s->ending.zeros_b == 1 ? 0 : column + j];
    out->own[j] = (uint32_t)rondo_signed_byte(own, turned);
    out->added[j] = zero * out->own[j] * (uint32_t)s->k;
    if (zero != 0) out->added[j] -= zero * (uint32_t)rondo_integer_total(rows + j * s->k, s->k, turned);
  }
}

RONDO_VECTORISED(add_zeros, (const row_zeros *zeros, uint32_t total, int32_t *restrict sums, size_t count),
                 (zeros, total, sums, count)) {
  RONDO_EACH_LANE(j, lane, count, sums[j] = (int32_t)((uint32_t)sums[j] + zeros->added[j] - total * zeros->own[j]));
}

/* Some rows of a, from `row` of all on, with some of b, from its element `b` on. The results begin at `at`. */
static void multiply_rows(const matmul_shape *s, void *const *args, const rondo_integer_channels *channels,
                          const row_zeros *zeros, size_t columns, size_t row, size_t rows, size_t b, size_t at) {
  const unsigned char *workspace = RONDO_ARG(const unsigned char *, 8);
  const int32_t *totals = (const int32_t *)(const void *)(workspace + totals_at(s)) + row;
  int32_t sums[RONDO_DOT_ROWS * RONDO_INTEGER_COLUMNS];
  rondo_integer_find_dots(workspace + row * rondo_integer_dot_bytes(s->k), rows, RONDO_ARG(const uint8_t *, 2) + b,
                          columns, rondo_to_signed(s->ending.b_unsigned), s->k, sums, RONDO_INTEGER_COLUMNS);
  for (size_t i = 0; i < rows; i++) add_zeros(zeros, (uint32_t)totals[i], sums + i * RONDO_INTEGER_COLUMNS, columns);
  rondo_integer_store_columns(&s->ending, channels, sums, rows, columns, RONDO_ARG(void *, 9), at, s->n);
}

/* A block has some columns of a product. */
static void multiply_transposed(const matmul_shape *s, void *const *args, size_t number) {
  const rondo_integer_arrays arrays = arrays_of(args);
  const size_t product = number / across(s), column = number % across(s) * RONDO_INTEGER_COLUMNS;
  const size_t columns = rondo_smaller(s->n - column, RONDO_INTEGER_COLUMNS);
  rondo_integer_channels channels;
  row_zeros zeros;
  size_t a, b;
  find_matrices(s, product, &a, &b);
  find_row_zeros(s, args, column, columns, b + column * s->k, &zeros);
  rondo_integer_find_channels(&s->ending, &arrays, column, columns, &channels);
  for (size_t row = 0; row < s->m; row += RONDO_DOT_ROWS)
    multiply_rows(s, args, &channels, &zeros, columns, a / s->k + row, rondo_smaller(s->m - row, RONDO_DOT_ROWS),
                  b + column * s->k, (product * s->m + row) * s->n + column);
}

/* Packed factors --------------------------------------------------------------------------------------------------- */

/* A scalar argument of the kernels; without padding. */
typedef struct panel_shape {
  size_t rows, k, n, is_wide; /* rows: of all matrices a */
  rondo_integer_ending ending;
} panel_shape;

/* args: shape, a, a_zero; workspace: wide rows of a. */
static void matmul_integer_wide_rows(rondo_blocks blocks, void *const *args) {
  const panel_shape *s = args[0];
  const void *a_zero = RONDO_ARG(const void *, 2);
  const int32_t zero = a_zero == NULL ? 0 : rondo_byte_at(a_zero, s->ending.a_unsigned, 0);
  RONDO_EACH_ITEM(row, blocks, s->rows)
    rondo_panel_copy(RONDO_ARG(const uint8_t *, 1) + row * s->k, s->k, s->ending.a_unsigned != 0, zero, true,
                     RONDO_ARG(int16_t *, 3) + row * s->k);
}

static const rondo_kernel_options wide_rows_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "matmul_integer_wide_rows", .cpu = matmul_integer_wide_rows,
    .params = {RONDO_SCALAR(panel_shape), RONDO_READS, RONDO_READS, RONDO_WRITES}};

static rondo_panel_tiling tiling_of(const panel_shape *s) {
  return rondo_panel_tiles(s->rows, s->n / rondo_panel_packed_width(s->n), s->k * rondo_panel_element(s->is_wide != 0));
}

/* The arguments of matmul_integer; the workspace has wide rows of a. */
static void matmul_integer_panels(rondo_blocks blocks, void *const *args) {
  const panel_shape *s = args[0];
  const rondo_panel_tiling t = tiling_of(s);
  const rondo_panel_product product = {.rows = {.first = RONDO_ARG(const unsigned char *, s->is_wide != 0 ? 8 : 1),
                                                .width = s->rows,
                                                .height = 1,
                                                .step = s->k * rondo_panel_element(s->is_wide != 0),
                                                .across = 1,
                                                .down = 1,
                                                .quads = s->k / RONDO_QUAD,
                                                .are_wide = s->is_wide != 0},
                                       .panels = RONDO_ARG(const int8_t *, 2),
                                       .channels = s->n,
                                       .width = rondo_panel_packed_width(s->n),
                                       .ending = &s->ending,
                                       .arrays = arrays_of(args)};
  RONDO_EACH_TILE(number, blocks, t.down * t.across) {
    const size_t first = number / t.across * t.rows;
    rondo_panel_multiply(&product, number % t.across, first, rondo_smaller(s->rows - first, t.rows));
  }
}

static const rondo_kernel_options panels_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "matmul_integer_panels", .cpu = matmul_integer_panels,
    .params = {RONDO_SCALAR(panel_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS,
               RONDO_READS, RONDO_READS, RONDO_WRITES}};

/* The kernel ------------------------------------------------------------------------------------------------------- */

static size_t tiles_of(const matmul_shape *s) {
  return s->matrices * across(s) * (s->ending.b_transposed != 0 ? 1 : down(s));
}

/* Without wide rows: a driver of CUDA that runs kernels on the host calls the function of a CPU. */
static void multiply_plainly(const matmul_shape *s, rondo_blocks blocks, void *const *args) {
  const rondo_integer_arrays arrays = arrays_of(args);
  const rondo_integer_ending *e = &s->ending;
  const int32_t zero = arrays.a_zero == NULL ? 0 : rondo_byte_at(arrays.a_zero, e->a_unsigned, 0);
  RONDO_EACH_ITEM(i, blocks, s->matrices * s->m * s->n) {
    const size_t column = i % s->n;
    rondo_integer_channels channels;
    int32_t own;
    uint32_t sum = 0;
    size_t a, b;
    find_matrices(s, i / s->n / s->m, &a, &b);
    find_zeros(s, arrays.b_zero, column, 1, &own);
    for (size_t k = 0; k < s->k; k++)
      sum +=
          (uint32_t)((rondo_byte_at(RONDO_ARG(const void *, 1), e->a_unsigned, a + i / s->n % s->m * s->k + k) - zero) *
                     (rondo_byte_at(RONDO_ARG(const void *, 2), e->b_unsigned, b + column * s->k + k) - own));
    rondo_integer_find_channels(e, &arrays, column, 1, &channels);
    rondo_integer_store_columns(e, &channels, &(int32_t){(int32_t)sum}, 1, 1, arrays.result, i, 0);
  }
}

static void matmul_integer_cpu(rondo_blocks blocks, void *const *args) {
  const matmul_shape *s = args[0];
  rondo_integer_tile tile;
  if (s->ending.b_transposed != 0 && RONDO_ARG(const void *, 8) == NULL) {
    multiply_plainly(s, blocks, args);
    return;
  }
  if (s->ending.b_transposed != 0) {
    RONDO_EACH_TILE(number, blocks, tiles_of(s)) multiply_transposed(s, args, number);
    return;
  }
  memset(tile.b, 0, sizeof tile.b); /* bytes after the columns are read */
  RONDO_EACH_TILE(number, blocks, tiles_of(s)) multiply_tile(s, args, number, &tile);
}

RONDO_UNTYPED_KERNEL(matmul_integer, integer_product, RONDO_SCALAR(matmul_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES);

/* Row -------------------------------------------------------------------------------------------------------------- */

/* The size of a leading dimension of a factor of this rank, aligned at the last; 1 if it has none. */
static size_t leading_size(const rondo_shape *shape, size_t rank, size_t dimension) {
  const size_t missing = rank - shape->rank;
  return dimension < missing ? 1 : shape->dims[dimension - missing];
}

/* The dimensions of b that are k and n. */
static uint32_t depth_of_b(const rondo_operation *operation, const rondo_shape *b) {
  return b->rank - (operation->attributes.flags[RONDO_INTEGER_TRANSPOSE_B] ? 1 : 2);
}
static uint32_t columns_of_b(const rondo_operation *operation, const rondo_shape *b) {
  return b->rank - (operation->attributes.flags[RONDO_INTEGER_TRANSPOSE_B] ? 2 : 1);
}

static rondo_status infer_matmul_integer(const rondo_program *program, const rondo_operation *operation,
                                         rondo_shape *results) {
  const rondo_shape *a = rondo_operation_input(program, operation, A),
                    *b = rondo_operation_input(program, operation, B);
  const rondo_shape *larger = a->rank > b->rank ? a : b;
  rondo_type type;
  bool fits = a->rank >= 2 && b->rank >= 2 && a->dims[a->rank - 1] == b->dims[depth_of_b(operation, b)];
  size_t dims[RONDO_MAX_DIMENSIONS];
  for (uint32_t i = 0; fits && i + 2 < larger->rank; i++) {
    const size_t of_a = leading_size(a, larger->rank, i), of_b = leading_size(b, larger->rank, i);
    fits = of_a == of_b || of_a == 1 || of_b == 1;
    dims[i] = of_a == 1 ? of_b : of_a;
  }
  if (!fits)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "a must be [.., m, k] and b [.., k, n], or transposed [.., n, k], with leading "
                                "dimensions that can be broadcast");
  dims[larger->rank - 2] = a->dims[a->rank - 2];
  dims[larger->rank - 1] = b->dims[columns_of_b(operation, b)];
  RONDO_TRY(rondo_integer_require(program, operation, dims[larger->rank - 1], &type));
  return rondo_shape_make("matmul_integer", type, dims, larger->rank, &results[0]);
}

static matmul_shape shape_of(const rondo_shape *a, const rondo_shape *b, const rondo_shape *result) {
  matmul_shape s = {.matrices = 1, .m = result->dims[result->rank - 2], .n = result->dims[result->rank - 1]};
  s.k = a->dims[a->rank - 1];
  s.rows = rondo_shape_elements(a) / s.k;
  size_t step_a = s.m * s.k, step_b = s.k * s.n;
  for (size_t i = LEADING; i > 0; i--) {
    const bool exists = i + result->rank > RONDO_MAX_DIMENSIONS;
    const size_t d = exists ? i + result->rank - RONDO_MAX_DIMENSIONS - 1 : 0;
    const size_t of_a = exists ? leading_size(a, result->rank, d) : 1;
    const size_t of_b = exists ? leading_size(b, result->rank, d) : 1;
    s.dims[i - 1] = exists ? result->dims[d] : 1;
    s.a_steps[i - 1] = of_a == 1 ? 0 : step_a;
    s.b_steps[i - 1] = of_b == 1 ? 0 : step_b;
    s.matrices *= s.dims[i - 1];
    step_a *= of_a;
    step_b *= of_b;
  }
  return s;
}

static matmul_shape shape_in(const rondo_program *program, const rondo_operation *operation) {
  return shape_of(rondo_operation_input(program, operation, A), rondo_operation_input(program, operation, B),
                  rondo_program_shape(program, operation->results[0]));
}

static rondo_status fail_rows(const matmul_shape *s) {
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "the workspace of %zu rows of %zu integers is too large: make the factors smaller", s->rows, s->k);
}

static rondo_status prepare_panels(const matmul_shape *s, size_t *out_workspace_bytes) {
  if (!rondo_panel_rows_are_wide()) return RONDO_OK;
  const bool fits = rondo_checked_multiply(s->rows, s->k * sizeof(int16_t), out_workspace_bytes);
  return fits ? RONDO_OK : fail_rows(s);
}

static rondo_status prepare_rows(const matmul_shape *s, size_t *out_workspace_bytes) {
  size_t bytes, totals;
  if (rondo_checked_multiply(s->rows, rondo_integer_dot_bytes(s->k), &bytes) &&
      rondo_checked_multiply(s->rows, sizeof(int32_t), &totals) &&
      rondo_checked_add(bytes, totals, out_workspace_bytes))
    return RONDO_OK;
  return fail_rows(s);
}

static rondo_status pack_matmul_integer(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                        rondo_packed_state **out_packed) {
  const rondo_operation *operation = &program->operations.items[number];
  const matmul_shape s = shape_in(program, operation);
  const rondo_shape *b = rondo_operation_input(program, operation, B);
  *out_packed = NULL;
  if (resources->is_cuda || b->rank != 2 || b->type != RONDO_I8 || s.k % RONDO_QUAD != 0 ||
      rondo_panel_packed_width(s.n) == 0)
    return RONDO_OK;
  RONDO_TRY(rondo_panel_order(&program->allocator, s.n, s.k, 1, operation->attributes.flags[RONDO_INTEGER_TRANSPOSE_B],
                              out_packed));
  return rondo_integer_keep_order(resources, number, out_packed);
}

/* A library computes products with one matrix b on CUDA: the matrices a are one with more rows. */
static rondo_status prepare_matmul_integer(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                           size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const matmul_shape s = shape_in(program, operation);
  rondo_device_info info = {.struct_size = sizeof info};
  *out_workspace_bytes = 0;
  RONDO_TRY(rondo_device_get_info(resources->device, &info));
  if (rondo_resources_object(resources, number) != NULL) return prepare_panels(&s, out_workspace_bytes);
  if (!info.cuda)
    return operation->attributes.flags[RONDO_INTEGER_TRANSPOSE_B] ? prepare_rows(&s, out_workspace_bytes) : RONDO_OK;
  if (rondo_shape_elements(rondo_operation_input(program, operation, B)) != s.k * s.n) return RONDO_OK;
  return rondo_integer_library_prepare(resources, number, s.matrices * s.m, s.n, s.k, out_workspace_bytes);
}

static rondo_status emit_rows(rondo_emitter *emitter, const rondo_operation *operation, const matmul_shape *shape) {
  return rondo_emit_operands(emitter, operation, &rows_code,
                             rondo_emit_grid(emitter, shape->rows, rondo_row_grain(shape->k)),
                             RONDO_OPERANDS(RONDO_OBJECT(*shape), RONDO_INPUT(A), RONDO_WORKSPACE));
}

/* Emits a kernel with the inputs of the product. */
static rondo_status emit_kernel(rondo_emitter *emitter, const rondo_operation *operation,
                                const rondo_kernel_options *code, rondo_operand shape, rondo_grid grid,
                                const void *workspace) {
  return rondo_emit_operands(emitter, operation, code, grid,
                             RONDO_OPERANDS(shape, RONDO_INPUT(A), RONDO_INPUT(B), RONDO_INPUT(RONDO_INTEGER_A_ZERO),
                                            RONDO_INPUT(RONDO_INTEGER_B_ZERO), RONDO_INPUT(RONDO_INTEGER_BIAS),
                                            RONDO_INPUT(RONDO_INTEGER_SCALE), RONDO_INPUT(RONDO_INTEGER_RESULT_ZERO),
                                            RONDO_OBJECT(workspace), RONDO_RESULT(0)));
}

static rondo_status emit_panels(rondo_emitter *emitter, const rondo_operation *operation, const matmul_shape *matmul) {
  const panel_shape shape = {matmul->rows, matmul->k, matmul->n, rondo_panel_rows_are_wide(), matmul->ending};
  const rondo_panel_tiling t = tiling_of(&shape);
  if (shape.is_wide != 0)
    RONDO_TRY(rondo_emit_operands(
        emitter, operation, &wide_rows_code, rondo_emit_grid(emitter, shape.rows, rondo_row_grain(shape.k)),
        RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(A), RONDO_INPUT(RONDO_INTEGER_A_ZERO), RONDO_WORKSPACE)));
  return emit_kernel(emitter, operation, &panels_code, (rondo_operand)RONDO_OBJECT(shape),
                     rondo_tile_grid(t.down * t.across), shape.is_wide != 0 ? rondo_emit_workspace(emitter) : NULL);
}

static rondo_status emit_matmul_integer(rondo_emitter *emitter, const rondo_operation *operation) {
  matmul_shape shape = shape_in(rondo_emit_program(emitter), operation);
  shape.ending = rondo_integer_ending_of(emitter, operation, false);
  if (rondo_emit_product(emitter) != NULL)
    return rondo_emit_integer_library(emitter, operation, &shape.ending, shape.matrices * shape.m, shape.n, shape.k);
  if (rondo_emit_object(emitter) != NULL) return emit_panels(emitter, operation, &shape);
  const size_t elements = shape.matrices * shape.m * shape.n;
  const rondo_grain grain = {1, RONDO_CUDA_THREADS};
  const bool is_cuda = rondo_emit_is_cuda(emitter);
  const rondo_grid grid = is_cuda ? rondo_emit_grid(emitter, elements, grain) : rondo_tile_grid(tiles_of(&shape));
  if (!is_cuda && shape.ending.b_transposed != 0) RONDO_TRY(emit_rows(emitter, operation, &shape));
  const void *workspace = rondo_emit_is_cuda(emitter) ? NULL : rondo_emit_workspace(emitter);
  return emit_kernel(emitter, operation, &matmul_integer_code, (rondo_operand)RONDO_OBJECT(shape), grid, workspace);
}

RONDO_OPERATOR(matmul_integer, .types = RONDO_TYPE_BIT(RONDO_I8) | RONDO_TYPE_BIT(RONDO_U8),
               .inputs = {"a", "b", "a_zero", "b_zero", "bias", "scale", "result_zero"}, .required = 2,
               .result_count = 1, .infer = infer_matmul_integer, .prepare = prepare_matmul_integer, .packed_input = B,
               .pack = pack_matmul_integer, .emit = emit_matmul_integer);

rondo_status rondo_op_matmul_integer(rondo_program *program, rondo_value a, rondo_value b,
                                     const rondo_integer_product_options *products, rondo_value *out_value) {
  rondo_value inputs[RONDO_INTEGER_INPUTS] = {a, b};
  rondo_attributes attributes = {0};
  RONDO_TRY(rondo_program_begin(program, "matmul_integer", out_value));
  RONDO_TRY(rondo_integer_read("matmul_integer", products, inputs, &attributes));
  return rondo_program_apply(program, &rondo_operator_matmul_integer, inputs, RONDO_INTEGER_INPUTS, &attributes,
                             out_value);
}
