/* SPDX-License-Identifier: MIT
 * An operator of your own: softplus, log(1 + exp(x)) without overflow, with its gradient. It is checked, and used in a
 * program.
 *
 *   user_operator [DEVICE]
 * Prints: the gradient agrees with differences, and softplus(1) is 1.313262
 */
#include <math.h>
#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>

static void softplus_cpu(const float *const *inputs, float *y, size_t count, const float *numbers) {
  (void)numbers;
  for (size_t i = 0; i < count; i++) y[i] = fmaxf(inputs[0][i], 0) + log1pf(expf(-fabsf(inputs[0][i])));
}

static const rondo_operator_element softplus = {
    .cpu = softplus_cpu,
    .cuda_source = "__device__ float my_softplus(float x) { return fmaxf(x, 0) + log1pf(expf(-fabsf(x))); }"};

static rondo_status softplus_gradient(rondo_program *program, const rondo_operator_call *call,
                                      const rondo_operator_values *values, rondo_value *gradients) {
  (void)call;
  const rondo_status status = rondo_op_sigmoid(program, values->inputs[0], &gradients[0]);
  return status ? status : rondo_op_mul(program, values->result_gradients[0], gradients[0], &gradients[0]);
}

static void check(rondo_status status) {
  if (status != RONDO_OK) fprintf(stderr, "%s\n", rondo_last_error()->message);
  if (status != RONDO_OK) exit(1);
}

int main(int argc, char **argv) {
  const rondo_operator_definition definition = {RONDO_OPERATOR_DEFINITION_INIT, .name = "my_softplus", .inputs = {"x"},
                                                .element = &softplus, .gradient = softplus_gradient};
  const rondo_operator_check_options options = {RONDO_OPERATOR_CHECK_OPTIONS_INIT,
                                                .inputs = &(const rondo_shape){RONDO_F32, 1, {64}}, .input_count = 1};
  rondo_device *device;
  rondo_operator *operation;
  rondo_program *program;
  rondo_compiled *compiled;
  rondo_value x, y;
  float number;
  check(rondo_device_open(argc > 1 ? argv[1] : "cpu", NULL, &device));
  check(rondo_operator_define(&definition, &operation));
  check(rondo_operator_check(operation, device, &options, NULL));
  check(rondo_program_create(NULL, &program));
  check(rondo_op_full(program, RONDO_F32, NULL, 0, 1, &x));
  check(rondo_op_apply(program, operation, &x, 1, NULL, &y));
  check(rondo_program_output(program, "y", y));
  check(rondo_compile(program, device, NULL, &compiled));
  check(rondo_compiled_run(compiled));
  check(rondo_compiled_read(compiled, "y", &number, sizeof number));
  printf("the gradient agrees with differences, and softplus(1) is %f\n", (double)number);
  check(rondo_compiled_destroy(compiled));
  rondo_program_destroy(program);
  rondo_operator_destroy(operation);
  check(rondo_device_close(device));
}
