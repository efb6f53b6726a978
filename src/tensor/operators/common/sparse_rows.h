/* SPDX-License-Identifier: MIT
 * Sparse gradients of tables (PR-7): the sums of the gradients of the rows that look-ups read. A gradient has a slot
 * for each index. Its keys, I64, are row << 32 | position of the index, sorted; its values, F32, are [slots, columns].
 * The first slot of a row has the sum of all indices of that row, in their order; the other slots have zeros. The keys
 * of wrong indices have the number of rows for a row. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_SPARSE_ROWS_H
#define RONDO_TENSOR_OPERATORS_COMMON_SPARSE_ROWS_H

#include "tensor/operators/common/operator_tools.h"

/* A scalar argument of kernels; without padding. */
typedef struct rondo_slots {
  size_t count, rows, columns;
} rondo_slots;

/* The row of a slot if it is the first of its row; otherwise `rows`. */
RONDO_INLINE size_t rondo_slot_row(const int64_t *keys, size_t rows, size_t slot) {
  const int64_t row = keys[slot] >> 32;
  return slot > 0 && keys[slot - 1] >> 32 == row ? rows : (size_t)row;
}

/* The loop over the rows that the slots of all `blocks` are the first of. */
#define RONDO_EACH_ROW(slot, row, blocks, slots, keys) \
  RONDO_EACH_ITEM(slot, blocks, (slots)->count)        \
    for (size_t row = rondo_slot_row(keys, (slots)->rows, slot); row < (slots)->rows; row = (slots)->rows)

/* Asks for the row of a table that is used some slots later. */
RONDO_INLINE void rondo_prefetch_row(const rondo_slots *slots, const int64_t *keys, size_t slot, const float *table) {
  const size_t later = slot + RONDO_ROWS_AHEAD < slots->count ? slot + RONDO_ROWS_AHEAD : slot;
  const size_t row = (size_t)(keys[later] >> 32);
  if (row < slots->rows) rondo_prefetch(table + row * slots->columns);
}

/* The input of updates that has the keys. */
#define RONDO_ROWS_KEYS 7

/* TYPE or SHAPE unless input 0 is an F32 table, input 1 and the keys a sparse gradient of it, inputs 2 and 3 a rate and
 * a control, and inputs first_companion .. last_companion like the table. */
RONDO_MUST_USE rondo_status rondo_require_rows(const rondo_program *program, const rondo_operation *operation,
                                               uint32_t first_companion, uint32_t last_companion);

/* Of an update whose input 0 is the table. */
rondo_slots rondo_slots_of(const rondo_emitter *emitter, const rondo_operation *operation);

/* The slots of a block, and the blocks of a kernel over so many slots. */
rondo_grain rondo_slot_grain(size_t columns);
rondo_grid rondo_slot_grid(const rondo_emitter *emitter, size_t count, size_t columns);

#endif
