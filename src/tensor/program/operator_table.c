/* SPDX-License-Identifier: MIT
 * The table of operators.
 */
#include "tensor/program/operators.h"

#include "base/error.h"
#include "base/versioned_struct.h"
#include "tensor/program/operator_registry.h"

#define RONDO_OPERATOR_ROW(name) &rondo_operator_##name,
static const rondo_operator *const table[] = {RONDO_OPERATORS(RONDO_OPERATOR_ROW)};

const rondo_operator *const *rondo_operator_table(size_t *out_count) {
  *out_count = sizeof table / sizeof table[0];
  return table;
}

uint32_t rondo_operator_input_count(const rondo_operator *row) {
  uint32_t count = 0;
  while (count < RONDO_MAX_OPERANDS && row->inputs[count] != NULL) count++;
  return count;
}

/* False: there are no more. */
static bool find_info(size_t index, rondo_operator_info *out) {
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    const rondo_operator *row = table[i];
    if (row->types == 0 || index-- > 0) continue;
    *out = (rondo_operator_info){
        .name = row->name, .types = row->types, .has_gradient = row->differentiate != NULL && row->required > 0};
    return true;
  }
  return rondo_user_operator_info(index, out);
}

rondo_status rondo_operator_enumerate(size_t index, rondo_operator_info *out_info) {
  RONDO_TRY(rondo_require("rondo_operator_enumerate", "out_info", out_info));
  rondo_operator_info info;
  if (!find_info(index, &info))
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "there are no more operators");
  return rondo_versioned_write("rondo_operator_info", &info, out_info, sizeof info);
}
