/* SPDX-License-Identifier: MIT
 * dropout: each element becomes 0 with the probability p in a scalar value, else it is divided by 1 - p. The gradient
 * draws the same random numbers again, so no mask is stored: they are a function of the index of the element and of a
 * state of the program, "random": {seed, offset} (rondo_philox). One update in each run, dropout_advance, increments
 * the offset after all dropouts. The dropouts of a program use consecutive ranges of numbers. Threads: as
 * tensor/program/operator.h says.
 */
#include <assert.h>

#include <rondo/random.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/elementwise/unary_operators.h"

enum { VALUE, PROBABILITY, STATE }; /* inputs */
enum { FIRST_GROUP };               /* sizes: the first group of numbers; other dropouts use those before */

#define GROUP 4 /* numbers of one draw */

/* Dropping --------------------------------------------------------------------------------------------------------- */

/* An element is dropped if 24 bits of its number are below this bound: never for 0, always for 1. NaN drops none. */
static uint32_t bound_of(float probability) {
  if (!(probability > 0)) return 0;
  return probability < 1 ? (uint32_t)(probability * 0x1p24f + 0.5f) : UINT32_C(1) << 24;
}

/* Chunks begin at multiples of GROUP. */
static void drop_chunk(const float *x, size_t at, size_t count, const uint64_t *state, size_t first_group,
                       uint32_t bound, float scale, float *y) {
  assert(at % GROUP == 0);
  for (size_t i = 0; i < count; i += GROUP) {
    const rondo_random4 drawn = rondo_philox(state[0], first_group + (at + i) / GROUP, state[1]);
    for (size_t k = 0; k < GROUP && i + k < count; k++) y[i + k] = drawn.x[k] >> 8 < bound ? 0 : x[i + k] * scale;
  }
}

static float scale_of(float probability, uint32_t bound) {
  return bound == 0 ? 1.0f : 1.0f / (1.0f - probability); /* for 1, all elements are dropped */
}

static void compute_dropout(const rondo_chunk_call *call) {
  const float probability = *(const float *)call->terms[PROBABILITY];
  const uint32_t bound = bound_of(probability);
  drop_chunk(call->terms[VALUE], call->first, call->count, call->terms[STATE], call->size, bound,
             scale_of(probability, bound), call->result);
}

static void dropout_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_elementwise_cpu(&rondo_operator_dropout, type, blocks, args);
}

RONDO_TYPED_KERNEL(dropout, dropout, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t),
                   RONDO_SCALAR(size_t));

static rondo_status infer_dropout(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  RONDO_TRY(rondo_require_float(program, operation, VALUE, RONDO_ANY_RANK));
  RONDO_TRY(rondo_require_input(program, operation, PROBABILITY, RONDO_F32, 0));
  results[0] = *rondo_operation_input(program, operation, VALUE);
  return RONDO_OK;
}

/* The gradient is the same operator on dy: it drops the same elements. */
static rondo_status differentiate_dropout(rondo_program *program, const rondo_operation *operation,
                                          const uint32_t *result_gradients, uint32_t *input_gradients) {
  const uint32_t inputs[] = {result_gradients[0], operation->inputs[PROBABILITY], operation->inputs[STATE]};
  return rondo_program_add(program, &rondo_operator_dropout_gradient, inputs, 3, &operation->attributes,
                           &input_gradients[VALUE]);
}

static rondo_status emit_dropout(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[VALUE]);
  const size_t count = rondo_shape_elements(value);
  return rondo_emit_operands(
      emitter, operation, &dropout_code[value->type],
      rondo_emit_grid(emitter, count, (rondo_grain){2048, GROUP * RONDO_CUDA_THREADS}),
      RONDO_OPERANDS(RONDO_INPUT(VALUE), RONDO_INPUT(PROBABILITY), RONDO_INPUT(STATE), RONDO_RESULT(0),
                     RONDO_OBJECT(count), RONDO_OBJECT(operation->attributes.sizes[FIRST_GROUP])));
}

#define DROPOUT_ROW                                                                                      \
  .inputs = {"value", "probability", "state"}, .required = 3, .result_count = 1, .infer = infer_dropout, \
  .emit = emit_dropout,                                                                                  \
  .element = {                                                                                           \
      .compute = compute_dropout, .function = "dropout_of", .source = rondo_cuda_dropout_functions, .others = 2}

RONDO_OPERATOR(dropout, .types = RONDO_FLOATS, .differentiate = differentiate_dropout, DROPOUT_ROW);
RONDO_OPERATOR(dropout_gradient, DROPOUT_ROW);

/* The offset ------------------------------------------------------------------------------------------------------- */

static void dropout_advance_cpu(rondo_blocks blocks, void *const *args) {
  uint64_t *state = RONDO_ARG(uint64_t *, 3);
  if (rondo_may_update(blocks, args)) state[1] += GROUP;
}

RONDO_UNTYPED_KERNEL(dropout_advance, dropout_advance, RONDO_GATE_PARAMETERS, RONDO_UPDATES);

static rondo_status infer_advance(const rondo_program *program, const rondo_operation *operation,
                                  rondo_shape *results) {
  (void)results;
  return rondo_require_input(program, operation, 0, RONDO_I64, 1);
}

static rondo_status emit_advance(rondo_emitter *emitter, const rondo_operation *operation) {
  return rondo_emit_operands(emitter, operation, &dropout_advance_code, (rondo_grid){.x = 1},
                             RONDO_OPERANDS(RONDO_GATE, RONDO_INPUT(0)));
}

RONDO_OPERATOR(dropout_advance, .inputs = {"state"}, .required = 1, .updates = 1, .infer = infer_advance,
               .emit = emit_advance);

/* Public ----------------------------------------------------------------------------------------------------------- */

/* The program's state; adds it and its update if there is none yet. */
static rondo_status find_state(rondo_program *program, uint32_t *out_state) {
  for (uint32_t i = 0; i < program->operations.count; i++) {
    const rondo_operation *operation = &program->operations.items[i];
    *out_state = operation->inputs[0];
    if (operation->row == &rondo_operator_dropout_advance) return RONDO_OK;
  }
  const rondo_shape shape = rondo_shape_vector(RONDO_I64, 2);
  RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_STATE, "random", &shape, 0, out_state));
  return rondo_program_add(program, &rondo_operator_dropout_advance, out_state, 1, NULL, NULL);
}

/* The groups of numbers that the program's dropouts use. */
static size_t count_groups(const rondo_program *program) {
  size_t groups = 0;
  for (uint32_t i = 0; i < program->operations.count; i++) {
    const rondo_operation *operation = &program->operations.items[i];
    if (operation->row != &rondo_operator_dropout) continue;
    groups += rondo_divide_up(rondo_shape_elements(rondo_operation_input(program, operation, VALUE)), GROUP);
  }
  return groups;
}

static rondo_status add_dropout(rondo_program *program, uint32_t *inputs, uint32_t *out_result) {
  const rondo_attributes attributes = {.sizes = {count_groups(program)}, .size_count = 1};
  RONDO_TRY(find_state(program, &inputs[STATE]));
  return rondo_program_add(program, &rondo_operator_dropout, inputs, 3, &attributes, out_result);
}

rondo_status rondo_op_dropout(rondo_program *program, rondo_value value, rondo_value probability,
                              rondo_value *out_value) {
  const rondo_value given[] = {value, probability};
  uint32_t inputs[3], result = 0;
  RONDO_TRY(rondo_program_begin(program, "dropout", out_value));
  RONDO_TRY(rondo_program_resolve_inputs(program, &rondo_operator_dropout, given, 2, inputs));
  const rondo_program_mark mark = rondo_program_get_mark(program);
  const rondo_status status = add_dropout(program, inputs, &result);
  return rondo_program_finish(program, mark, status, result, out_value);
}
