/* SPDX-License-Identifier: MIT
 * The table of operators.
 */
#include "tensor/operators.h"

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
