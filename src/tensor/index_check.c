/* SPDX-License-Identifier: MIT
 * Cells of wrong indices, on the host's side.
 */
#include "tensor/index_check.h"

#include <assert.h>

#include "base/error.h"

rondo_status rondo_index_checks_init(rondo_index_checks *checks, const rondo_allocator *allocator, void *cells,
                                     size_t room) {
  *checks = (rondo_index_checks){.allocator = *allocator, .cells = cells};
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *checks->copies, &checks->copies));
  checks->room = room;
  return RONDO_OK;
}

void rondo_index_checks_deinit(rondo_index_checks *checks) {
  rondo_release(&checks->allocator, checks->copies, checks->room, sizeof *checks->copies);
  rondo_array_free(&checks->allocator, &checks->items);
}

rondo_status rondo_index_checks_add(rondo_index_checks *checks, const rondo_index_check *check, void **out_cell) {
  assert(checks->items.count < checks->room);
  RONDO_TRY(rondo_array_push(&checks->allocator, &checks->items, check));
  *out_cell = (uint64_t *)checks->cells + checks->items.count - 1;
  return RONDO_OK;
}

rondo_status rondo_index_checks_queue(rondo_index_checks *checks, rondo_stream *stream) {
  if (checks->room == 0) return RONDO_OK;
  return rondo_copy_async(stream, checks->copies, checks->cells, checks->room * sizeof *checks->copies);
}

rondo_status rondo_index_checks_judge(rondo_index_checks *checks, rondo_stream *stream) {
  const rondo_fill clear = {.dst = checks->cells, .element_bytes = 4, .width = checks->room * 2};
  for (size_t i = 0; i < checks->items.count; i++) {
    const uint64_t found = checks->copies[i];
    if (found == 0) continue;
    const rondo_index_check *check = &checks->items.items[i];
    RONDO_TRY(rondo_fill_async(stream, &clear));
    const int32_t index = (int32_t)(uint32_t)found;
    const char *nearest = !check->is_wide ? "" : index == INT32_MAX ? " or more" : index == INT32_MIN ? " or less" : "";
    return rondo_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE,
                      "%s (operator %u): %s has %d%s at position %u, which is not in 0 .. %zu; %s",
                      check->operator_name, check->operation, check->input, index, nearest, (uint32_t)(found >> 32) - 1,
                      check->bound - 1, check->rule);
  }
  return RONDO_OK;
}
