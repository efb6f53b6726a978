/* SPDX-License-Identifier: MIT
 * Operators of the user in programs: the functions of their rows, which call those of the definition. A row is made by
 * user_operator_define.c. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/user/user_operator.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"
#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/operators/elementwise/elementwise_chain.h"
#include "tensor/operators/user/isolated_values.h"

/* Elements of a block, if the definition does not say otherwise. */
#define GRAIN ((rondo_grain){4096, RONDO_CUDA_THREADS})

/* Attributes: the sizes and numbers of the caller's. */
static rondo_operator_attributes attributes_of(const rondo_attributes *attributes) {
  rondo_operator_attributes out;
  memcpy(out.sizes, attributes->sizes, sizeof out.sizes);
  memcpy(out.numbers, attributes->numbers, sizeof out.numbers);
  return out;
}

/* What the functions of a definition get. The shapes of results are added by the caller. */
static rondo_operator_call call_of(const rondo_program *program, const rondo_operation *operation) {
  const rondo_user_operator *user = rondo_user_operator_of(operation->row);
  rondo_operator_call call = {.name = operation->row->name,
                              .user = user->definition.user,
                              .input_count = rondo_operator_input_count(operation->row),
                              .result_count = operation->row->result_count,
                              .attributes = attributes_of(&operation->attributes)};
  for (uint32_t i = 0; i < call.input_count; i++) call.inputs[i] = rondo_operation_input(program, operation, i);
  return call;
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

/* Without a rule, all inputs have the type and shape of the first. */
static rondo_status require_same(const rondo_program *program, const rondo_operation *operation) {
  const rondo_shape *first = rondo_operation_input(program, operation, 0);
  RONDO_EACH_INPUT(i, operation) {
    const rondo_shape *shape = rondo_operation_input(program, operation, i);
    if (rondo_shape_same(shape, first)) continue;
    return rondo_fail_operation(program, operation, shape->type == first->type ? RONDO_REASON_SHAPE : RONDO_REASON_TYPE,
                                "%s must have the type and shape of %s, because the operator has no shape_rule",
                                operation->row->inputs[i], operation->row->inputs[0]);
  }
  return RONDO_OK;
}

rondo_status rondo_infer_user_operator(const rondo_program *program, const rondo_operation *operation,
                                       rondo_shape *results) {
  const rondo_user_operator *user = rondo_user_operator_of(operation->row);
  const rondo_operator_call call = call_of(program, operation);
  for (uint32_t r = 0; r < call.result_count; r++) results[r] = *call.inputs[0];
  if (user->definition.shape_rule == NULL) return require_same(program, operation);
  const char *problem = user->definition.shape_rule(&call, results);
  return problem == NULL ? RONDO_OK : rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "%s", problem);
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

/* The values of an operation as the public functions know them. */
typedef struct operation_values {
  rondo_value inputs[RONDO_MAX_OPERANDS], results[RONDO_MAX_RESULTS], result_gradients[RONDO_MAX_RESULTS];
} operation_values;

static rondo_value value_of(const rondo_program *program, uint32_t index) {
  return index == RONDO_NO_VALUE ? (rondo_value){0} : rondo_program_tag(program, index);
}

static operation_values values_of(const rondo_program *program, const rondo_operation *operation,
                                  const uint32_t *result_gradients) {
  operation_values values = {.inputs = {{0}}};
  for (uint32_t i = 0; i < RONDO_MAX_OPERANDS; i++) values.inputs[i] = value_of(program, operation->inputs[i]);
  for (uint32_t r = 0; r < operation->row->result_count; r++) {
    values.results[r] = value_of(program, operation->results[r]);
    values.result_gradients[r] = value_of(program, result_gradients[r]);
  }
  return values;
}

static rondo_status add_zeros(rondo_program *program, uint32_t like, rondo_value *out) {
  const rondo_shape shape = *rondo_program_shape(program, like);
  uint32_t zeros;
  RONDO_TRY(rondo_program_add_zeros(program, &shape, &zeros));
  *out = rondo_program_tag(program, zeros);
  return RONDO_OK;
}

/* By the operator for gradients: inputs, results, gradients of results. */
static rondo_status apply_gradient_operator(rondo_program *program, const rondo_operation *operation,
                                            const operation_values *values, rondo_value *gradients) {
  const rondo_operator *row = rondo_user_operator_of(operation->row)->definition.gradient_operator;
  const uint32_t inputs = rondo_operator_input_count(operation->row), results = operation->row->result_count;
  const rondo_operator_attributes attributes = attributes_of(&operation->attributes);
  rondo_value operands[RONDO_MAX_OPERANDS] = {{0}};
  memcpy(operands, values->inputs, inputs * sizeof *operands);
  memcpy(operands + inputs, values->results, results * sizeof *operands);
  memcpy(operands + inputs + results, values->result_gradients, results * sizeof *operands);
  for (uint32_t r = 0; r < results; r++) {
    rondo_value *gradient = &operands[inputs + results + r];
    if (gradient->id == 0) RONDO_TRY(add_zeros(program, operation->results[r], gradient));
  }
  return rondo_op_apply(program, row, operands, inputs + 2 * results, &attributes, gradients);
}

static rondo_status fail_gradient(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                  rondo_reason reason, const char *problem) {
  return rondo_fail_operation(program, operation, reason, "its gradient of %s %s", operation->row->inputs[input],
                              problem);
}

/* Checks a gradient of the user, and sums it over repeated elements. */
static rondo_status take_gradient(rondo_program *program, const rondo_operation *operation, uint32_t input,
                                  rondo_value gradient, uint32_t *out) {
  const uint32_t value = operation->inputs[input];
  const rondo_user_operator *user = rondo_user_operator_of(operation->row);
  if (gradient.id == 0) return RONDO_OK;
  if (value == RONDO_NO_VALUE)
    return fail_gradient(program, operation, input, RONDO_REASON_BAD_OPTIONS, "is given, but the input was left out");
  RONDO_TRY(rondo_program_resolve(program, gradient, operation->row->name, "a gradient", out));
  const rondo_shape to = *rondo_program_shape(program, value), from = *rondo_program_shape(program, *out);
  if (!rondo_shape_is_float(&to) || from.type != to.type)
    return fail_gradient(program, operation, input, RONDO_REASON_TYPE, "does not have the float type of the input");
  const bool is_wide =
      user->definition.element != NULL && rondo_shape_same(&from, rondo_program_shape(program, operation->results[0]));
  if (is_wide) return rondo_add_sum_to(program, *out, value, out);
  if (!rondo_shape_same(&from, &to))
    return fail_gradient(program, operation, input, RONDO_REASON_SHAPE, "does not have the shape of the input");
  return RONDO_OK;
}

static rondo_status call_gradient(rondo_program *program, const rondo_operator_call *call,
                                  const rondo_user_operator *user, const operation_values *values,
                                  rondo_value *gradients) {
  const rondo_operator_values public_values = {values->inputs, values->results, values->result_gradients};
  const uint64_t before = rondo_error_number();
  const rondo_status status = user->definition.gradient(program, call, &public_values, gradients);
  return rondo_fail_context(rondo_fail_callback(status, before, "the function"), "the gradient of operator %s",
                            call->name);
}

rondo_status rondo_differentiate_user_operator(rondo_program *program, const rondo_operation *operation,
                                               const uint32_t *result_gradients, uint32_t *input_gradients) {
  const rondo_user_operator *user = rondo_user_operator_of(operation->row);
  const operation_values values = values_of(program, operation, result_gradients);
  rondo_operator_call call = call_of(program, operation);
  rondo_shape inputs[RONDO_MAX_OPERANDS]; /* the program's own move when operators are added */
  rondo_value gradients[RONDO_MAX_OPERANDS] = {{0}};
  for (uint32_t i = 0; i < call.input_count; i++) {
    if (call.inputs[i] == NULL) continue;
    inputs[i] = *call.inputs[i];
    call.inputs[i] = &inputs[i];
  }
  for (uint32_t r = 0; r < call.result_count; r++)
    call.results[r] = *rondo_program_shape(program, operation->results[r]);
  RONDO_TRY(user->definition.gradient_operator != NULL ? apply_gradient_operator(program, operation, &values, gradients)
                                                       : call_gradient(program, &call, user, &values, gradients));
  for (uint32_t i = 0; i < call.input_count; i++)
    RONDO_TRY(take_gradient(program, operation, i, gradients[i], &input_gradients[i]));
  return RONDO_OK;
}

/* Preparing -------------------------------------------------------------------------------------------------------- */

static bool has_code(const rondo_user_operator *user, bool is_cuda) {
  const rondo_operator_element *element = user->definition.element;
  if (element != NULL) return is_cuda ? element->cuda_source != NULL : element->cpu != NULL;
  return true; /* creating or launching the kernel says it */
}

static rondo_status require_code(const rondo_user_operator *user, rondo_device *device) {
  rondo_device_info info = {0};
  RONDO_TRY(rondo_device_get_info(device, &info));
  if (has_code(user, info.cuda)) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION, "operator %s has no code for %s: define %s",
                    user->name, info.name, info.cuda ? "element.cuda_source" : "element.cpu");
}

rondo_status rondo_prepare_user_operator(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                                         size_t *out_workspace_bytes) {
  const rondo_operator *row = program->operations.items[operation].row;
  bool is_new;
  *out_workspace_bytes = 0;
  RONDO_TRY(rondo_resources_keep_operator(resources, row, &is_new));
  if (is_new) RONDO_TRY(require_code(rondo_user_operator_of(row), resources->device));
  return resources->is_guarded ? rondo_isolate_values(resources, program, operation) : RONDO_OK;
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

static void *input_address(const rondo_emitter *emitter, const rondo_operation *operation, uint32_t input) {
  const rondo_isolated_values *values = rondo_emit_object(emitter);
  return values != NULL ? values->inputs[input] : rondo_emit_address(emitter, operation->inputs[input]);
}

static void *result_address(const rondo_emitter *emitter, const rondo_operation *operation, uint32_t result) {
  const rondo_isolated_values *values = rondo_emit_object(emitter);
  return values != NULL ? values->results[result] : rondo_emit_address(emitter, operation->results[result]);
}

void rondo_compute_user_element(const rondo_chunk_call *call) {
  const rondo_user_operator *user = rondo_user_operator_of(call->row);
  const float *inputs[RONDO_MAX_TERMS];
  for (uint32_t t = 0; t < call->row->required; t++) inputs[t] = call->terms[t];
  user->element.cpu(inputs, call->result, call->count, call->numbers);
}

/* A chain whose values are F32, as isolated values are. */
static void widen_chain(rondo_chain_form *form) {
  for (uint32_t c = 0; c < form->input_count; c++) form->inputs[c].type = RONDO_F32;
  form->steps[0].type = RONDO_F32;
  form->result_type = RONDO_F32;
}

/* The inputs of a chain are those of its operation, each once. */
static rondo_status emit_element(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_isolated_values *values = rondo_emit_object(emitter);
  rondo_chain chain = rondo_emit_chain_of_one(emitter);
  if (values != NULL && values->is_wide) widen_chain(&chain.form);
  void *addresses[RONDO_CHAIN_INPUTS + 1];
  for (uint32_t c = 0; c < chain.form.input_count; c++) {
    uint32_t i = 0;
    while (operation->inputs[i] != chain.operation.inputs[c]) i++;
    addresses[c] = input_address(emitter, operation, i);
  }
  addresses[chain.form.input_count] = result_address(emitter, operation, 0);
  return rondo_emit_chain_at(emitter, &chain, addresses);
}

/* A kernel with its arguments. */
typedef struct user_launch {
  rondo_operator_launch public;
  void *scalar_addresses[RONDO_OPERATOR_SCALARS];
  _Alignas(64) unsigned char scalars[RONDO_OPERATOR_SCALARS][RONDO_OPERATOR_SCALAR_BYTES];
  void *addresses[RONDO_MAX_OPERANDS + RONDO_MAX_RESULTS];
  const void *args[RONDO_MAX_OPERANDS + RONDO_MAX_RESULTS + RONDO_OPERATOR_SCALARS];
} user_launch;

/* Whether the first scalar of kernel 0 can hold the number of elements. */
static bool takes_count(const rondo_operation *operation) {
  const rondo_kernel_options *first = &rondo_user_operator_of(operation->row)->kernels[0];
  const uint32_t pointers = rondo_operator_input_count(operation->row) + operation->row->result_count;
  return first->param_count > pointers && first->param_list[pointers].bytes == sizeof(uint64_t);
}

static void begin_launch(const rondo_emitter *emitter, const rondo_operation *operation, user_launch *launch) {
  const uint64_t elements = rondo_shape_elements(rondo_emit_shape(emitter, operation->results[0]));
  memset(launch, 0, sizeof *launch);
  launch->public.grid = rondo_emit_grid(emitter, elements, GRAIN);
  for (uint32_t s = 0; s < RONDO_OPERATOR_SCALARS; s++) launch->scalar_addresses[s] = launch->scalars[s];
  launch->public.scalars = launch->scalar_addresses;
  if (takes_count(operation)) memcpy(launch->scalars[0], &elements, sizeof elements);
}

static rondo_status run_launch_rule(const rondo_emitter *emitter, const rondo_operation *operation,
                                    rondo_operator_launch *launch) {
  const rondo_user_operator *user = rondo_user_operator_of(operation->row);
  rondo_operator_call call = call_of(rondo_emit_program(emitter), operation);
  call.is_cuda = rondo_emit_is_cuda(emitter);
  for (uint32_t r = 0; r < call.result_count; r++) call.results[r] = *rondo_emit_shape(emitter, operation->results[r]);
  const char *problem = user->definition.launch_rule == NULL ? NULL : user->definition.launch_rule(&call, launch);
  if (problem != NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION, "operator %s: %s", call.name, problem);
  if (launch->kernel < user->definition.kernel_count) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "operator %s: its launch rule chose kernel %u, but there are %u", call.name, launch->kernel,
                    user->definition.kernel_count);
}

static rondo_status emit_kernel(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_user_operator *user = rondo_user_operator_of(operation->row);
  const uint32_t inputs = rondo_operator_input_count(operation->row), results = operation->row->result_count;
  user_launch launch;
  char key[64];
  begin_launch(emitter, operation, &launch);
  RONDO_TRY(run_launch_rule(emitter, operation, &launch.public));
  const rondo_kernel_options *code = &user->kernels[launch.public.kernel];
  for (uint32_t i = 0; i < inputs; i++) launch.addresses[i] = input_address(emitter, operation, i);
  for (uint32_t r = 0; r < results; r++) launch.addresses[inputs + r] = result_address(emitter, operation, r);
  for (uint32_t a = 0; a < code->param_count; a++) {
    const bool is_address = a < inputs + results;
    launch.args[a] = is_address ? (const void *)&launch.addresses[a] : launch.scalars[a - inputs - results];
  }
  (void)snprintf(key, sizeof key, "operator %llu, kernel %u", (unsigned long long)user->serial, launch.public.kernel);
  return rondo_emit_made_kernel(emitter, code, key, user->name, launch.public.grid, launch.args, code->param_count);
}

rondo_status rondo_emit_user_operator(rondo_emitter *emitter, const rondo_operation *operation) {
  const bool is_element = rondo_user_operator_of(operation->row)->definition.element != NULL;
  RONDO_TRY(rondo_emit_isolating(emitter, operation));
  RONDO_TRY((is_element ? emit_element : emit_kernel)(emitter, operation));
  return rondo_emit_returning(emitter, operation);
}

/* Applying --------------------------------------------------------------------------------------------------------- */

static rondo_status apply(rondo_program *program, const rondo_operator *operation, const rondo_value *inputs,
                          uint32_t count, const rondo_attributes *attributes, rondo_value *out_results) {
  uint32_t indices[RONDO_MAX_OPERANDS], results[RONDO_MAX_RESULTS];
  RONDO_TRY(rondo_program_resolve_inputs(program, operation, inputs, count, indices));
  RONDO_TRY(rondo_program_add(program, operation, indices, count, attributes, results));
  for (uint32_t r = 0; r < operation->result_count; r++) out_results[r] = rondo_program_tag(program, results[r]);
  return RONDO_OK;
}

rondo_status rondo_op_apply(rondo_program *program, const rondo_operator *operation, const rondo_value *inputs,
                            size_t input_count, const rondo_operator_attributes *attributes, rondo_value *out_results) {
  static const char call[] = "rondo_op_apply";
  rondo_attributes known = {.size_count = RONDO_OPERATOR_SIZES};
  rondo_value given[RONDO_MAX_OPERANDS]; /* out_results may be the same memory */
  RONDO_TRY(rondo_require(call, "operation", operation));
  RONDO_TRY(rondo_require(operation->name, "out_results", out_results));
  const uint32_t most = rondo_operator_input_count(operation);
  const bool is_count = input_count >= operation->required && input_count <= most;
  if (inputs != NULL && is_count) memcpy(given, inputs, input_count * sizeof *given);
  memset(out_results, 0, operation->result_count * sizeof *out_results);
  RONDO_TRY(rondo_require(operation->name, "program", program));
  RONDO_TRY(rondo_require(operation->name, "inputs", inputs));
  if (!is_count) {
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s takes %u to %u inputs, not %zu",
                      operation->name, operation->required, most, input_count);
  }
  if (attributes != NULL) {
    memcpy(known.sizes, attributes->sizes, sizeof attributes->sizes);
    memcpy(known.numbers, attributes->numbers, sizeof attributes->numbers);
  }
  return apply(program, operation, given, (uint32_t)input_count, &known, out_results);
}
