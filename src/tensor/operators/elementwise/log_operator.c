/* SPDX-License-Identifier: MIT
 * log, the natural one, elementwise, and its gradient dx = dy / x, which needs the input.
 */
#include "tensor/operators/elementwise/unary.h"

#include "tensor/program/operation.h"

RONDO_UNARY_CHUNK(forward, rondo_log(x))
RONDO_SLOPE_CHUNK(slope, dy / kept)

static void log_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_unary_cpu(type, forward, blocks, args);
}

static void log_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  rondo_slope_cpu(type, slope, blocks, args);
}

RONDO_TYPED_KERNEL(log, log, RONDO_UNARY_PARAMETERS);
RONDO_TYPED_KERNEL(log_gradient, log, RONDO_SLOPE_PARAMETERS);

static const rondo_unary forward_family = {
    .code = log_code, .chunk = forward, .gradient = &rondo_operator_log_gradient};
static const rondo_unary slope_family = {.code = log_gradient_code, .slope = slope};

const rondo_operator rondo_operator_log = {.name = "log", .family = &forward_family, RONDO_UNARY_ROW(log)};
const rondo_operator rondo_operator_log_gradient = {
    .name = "log_gradient", .family = &slope_family, RONDO_SLOPE_ROW(log)};

rondo_status rondo_op_log(rondo_program *program, rondo_value value, rondo_value *out_value) {
  return rondo_program_apply(program, &rondo_operator_log, &value, 1, NULL, out_value);
}
