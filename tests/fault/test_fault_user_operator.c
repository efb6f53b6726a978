/* SPDX-License-Identifier: MIT
 * Operators of the user (PR-2) are defined, applied, differentiated by a function and by an operator, compiled, run and
 * checked with each host allocation failing. Nothing is left, and the names are free again.
 */
#include <string.h>

#include "fault/fault_allocations.h"

enum { COUNT = 8 };

static struct {
  rondo_operator *doubled, *summed, *scaled, *of_scaled;
  rondo_program *program;
  rondo_compiled *compiled;
} work;

static void doubled_cpu(const float *const *in, float *y, size_t count, const float *numbers) {
  for (size_t i = 0; i < count; i++) y[i] = numbers[0] * in[0][i];
}

static rondo_status doubled_gradient(rondo_program *program, const rondo_operator_call *call,
                                     const rondo_operator_values *values, rondo_value *gradients) {
  return rondo_op_scale(program, values->result_gradients[0], call->attributes.numbers[0], &gradients[0]);
}

static void summed_cpu(rondo_blocks blocks, void *const *args) {
  const float *x = *(float **)args[0];
  float *y = *(float **)args[1];
  const size_t count = *(const size_t *)args[2];
  if (blocks.first > 0) return;
  for (size_t i = 0; i < count; i++) y[i] = x[i] + 1;
}

static rondo_status define(fault_rig *rig) {
  static const rondo_operator_element element = {.cpu = doubled_cpu, .numbers = 1};
  static const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = "summed", .cpu = summed_cpu,
                                              .params = {RONDO_READS, RONDO_WRITES, RONDO_SCALAR(size_t)}};
  const rondo_operator_definition doubled = {RONDO_OPERATOR_DEFINITION_INIT,
                                             .name = "doubled",
                                             .inputs = {"x"},
                                             .element = &element,
                                             .gradient = doubled_gradient,
                                             .allocator = &rig->allocator.table};
  const rondo_operator_definition summed = {
      RONDO_OPERATOR_DEFINITION_INIT,    .name = "summed", .inputs = {"x"}, .kernels = &kernel, .kernel_count = 1,
      .allocator = &rig->allocator.table};
  TRY(rondo_operator_define(&doubled, &work.doubled));
  return rondo_operator_define(&summed, &work.summed);
}

static void of_scaled_cpu(const float *const *in, float *dx, size_t count, const float *numbers) {
  for (size_t i = 0; i < count; i++) dx[i] = numbers[0] * in[2][i];
}

/* An operator whose gradient is one too. */
static rondo_status define_pair(fault_rig *rig) {
  static const rondo_operator_element element = {.cpu = doubled_cpu, .numbers = 1};
  static const rondo_operator_element gradient_element = {.cpu = of_scaled_cpu, .numbers = 1};
  const rondo_operator_definition gradient = {RONDO_OPERATOR_DEFINITION_INIT, .name = "of_scaled",
                                              .inputs = {"x", "y", "dy"}, .element = &gradient_element,
                                              .allocator = &rig->allocator.table};
  TRY(rondo_operator_define(&gradient, &work.of_scaled));
  const rondo_operator_definition scaled = {RONDO_OPERATOR_DEFINITION_INIT,
                                            .name = "scaled",
                                            .inputs = {"x"},
                                            .element = &element,
                                            .gradient_operator = work.of_scaled,
                                            .allocator = &rig->allocator.table};
  return rondo_operator_define(&scaled, &work.scaled);
}

static rondo_status check(fault_rig *rig) {
  const rondo_shape shape = {RONDO_F32, 1, {COUNT}};
  const rondo_operator_check_options options = {RONDO_OPERATOR_CHECK_OPTIONS_INIT, .inputs = &shape, .input_count = 1,
                                                .attributes = {.numbers = {2}}};
  TRY(define_pair(rig));
  return rondo_operator_check(work.scaled, rig->device, &options, NULL);
}

static rondo_status build(fault_rig *rig) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &rig->allocator.table};
  const rondo_operator_attributes two = {.numbers = {2}};
  rondo_value x, y, z, loss, gradient;
  TRY(rondo_program_create(&options, &work.program));
  TRY(rondo_program_input(work.program, "x", RONDO_F32, (size_t[]){COUNT}, 1, &x));
  TRY(rondo_op_apply(work.program, work.doubled, &x, 1, &two, &y));
  TRY(rondo_op_apply(work.program, work.summed, &y, 1, NULL, &z));
  TRY(rondo_op_sum(work.program, y, NULL, 0, false, &loss));
  TRY(rondo_program_gradients(work.program, loss, &x, 1, &gradient));
  TRY(rondo_program_output(work.program, "gradient", gradient));
  return rondo_program_output(work.program, "z", z);
}

static rondo_status run(fault_rig *rig) {
  float x[COUNT] = {1, 2, 3}, z[COUNT];
  TRY(define(rig));
  TRY(build(rig));
  TRY(rondo_compile(work.program, rig->device, NULL, &work.compiled));
  TRY(rondo_compiled_write(work.compiled, "x", x, sizeof x));
  TRY(rondo_compiled_run(work.compiled));
  TRY(rondo_compiled_read(work.compiled, "z", z, sizeof z));
  for (int i = 0; i < COUNT; i++) assert_float_equal(z[i], 2 * x[i] + 1, 0);
  return RONDO_OK;
}

static void destroy(void) {
  rondo_operator_destroy(work.doubled);
  rondo_operator_destroy(work.summed);
  rondo_operator_destroy(work.of_scaled);
  rondo_operator_destroy(work.scaled);
  rondo_program_destroy(work.program);
  assert_ok(rondo_compiled_destroy(work.compiled));
  memset(&work, 0, sizeof work);
}

static const fault_work whole = {.run = run, .destroy = destroy};
static const fault_work checked = {.run = check, .destroy = destroy};

UNIT_TEST(test_pr2_one_allocation_fails) { fault_allocations(&whole, false, 1); }
UNIT_TEST(test_pr2_all_later_allocations_fail) { fault_allocations(&whole, true, 3); }
UNIT_TEST(test_pr2_one_allocation_of_a_check_fails) { fault_allocations(&checked, false, 1); }
