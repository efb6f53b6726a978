/* SPDX-License-Identifier: MIT
 * What public operators that are made of others share. Threads: as tensor/program/operator.h says.
 */
#include "tensor/operators/common/composition.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* Whether the message of the last error begins with the name of the call, and not with a longer name. */
static bool is_named(const char *call) {
  const char *message = rondo_last_error()->message;
  const size_t length = strlen(call);
  return strncmp(message, call, length) == 0 && message[length] != '_' && !isalnum((unsigned char)message[length]);
}

rondo_status rondo_compose_end(rondo_program *program, const char *call, rondo_program_mark mark, rondo_status status,
                               rondo_value made, rondo_value *out_value) {
  if (status == RONDO_OK)
    *out_value = made;
  else
    rondo_program_roll_back(program, mark);
  return status == RONDO_OK || is_named(call) ? status : rondo_fail_context(status, "%s", call);
}

rondo_shape rondo_shape_at(const rondo_program *program, rondo_value value) {
  uint32_t index = 0;
  rondo_status_ignore(rondo_program_resolve(program, value, "shape", "value", &index), "the program has this value");
  return *rondo_program_shape(program, index);
}

rondo_status rondo_given_shape(const rondo_program *program, rondo_value value, const char *call, const char *what,
                               rondo_shape *out) {
  uint32_t index;
  RONDO_TRY(rondo_program_resolve(program, value, call, what, &index));
  *out = *rondo_program_shape(program, index);
  return RONDO_OK;
}

rondo_status rondo_compose_number(rondo_program *program, rondo_type type, double number, rondo_value *out_value) {
  return rondo_op_full(program, type, NULL, 0, number, out_value);
}

rondo_status rondo_compose_positions(rondo_program *program, size_t count, double first, size_t dimension, size_t rank,
                                     rondo_value *out_value) {
  rondo_shape shape = {.type = RONDO_I64, .rank = (uint32_t)(rank - dimension)};
  assert(dimension < rank && rank <= RONDO_MAX_DIMENSIONS);
  for (uint32_t d = 0; d < shape.rank; d++) shape.dims[d] = d == 0 ? count : 1;
  RONDO_TRY(rondo_op_arange(program, RONDO_I64, count, first, 1, out_value));
  return rondo_compose_reshape(program, *out_value, &shape, out_value);
}

rondo_status rondo_compose_reshape(rondo_program *program, rondo_value value, const rondo_shape *shape,
                                   rondo_value *out_value) {
  return rondo_op_reshape(program, value, shape->dims, shape->rank, out_value);
}
