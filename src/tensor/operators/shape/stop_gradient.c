/* SPDX-License-Identifier: MIT
 * stop_gradient: the value itself, of which gradients do not pass on to what it was computed from. A view: nothing
 * runs.
 */
#include "tensor/operators/common/operator_tools.h"

static rondo_status infer_stop_gradient(const rondo_program *program, const rondo_operation *operation,
                                        rondo_shape *results) {
  results[0] = *rondo_operation_input(program, operation, 0);
  return RONDO_OK;
}

RONDO_OPERATOR(stop_gradient, .types = RONDO_NUMBERS, .inputs = {"value"}, .required = 1, .result_count = 1,
               .is_view = true, .stops_gradients = true, .infer = infer_stop_gradient);

rondo_status rondo_op_stop_gradient(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_stop_gradient, &value, 1, NULL, out_value);
}
