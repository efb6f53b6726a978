/* SPDX-License-Identifier: MIT
 * Cells of wrong indices, on the host's side.
 */
#include "tensor/run/index_check.h"

#include <assert.h>
#include <string.h>

#include <rondo/memory.h>
#include "base/error.h"

rondo_status rondo_index_checks_init(rondo_index_checks *checks, const rondo_allocator *allocator, rondo_device *device,
                                     size_t capacity) {
  void *cells;
  *checks = (rondo_index_checks){.allocator = *allocator, .device = device};
  if (capacity == 0) return RONDO_OK;
  RONDO_TRY(rondo_host_malloc(device, capacity * sizeof *checks->cells, &cells));
  checks->cells = cells;
  checks->capacity = capacity;
  rondo_index_checks_clear(checks);
  return RONDO_OK;
}

rondo_status rondo_index_checks_deinit(rondo_index_checks *checks) {
  uint64_t *const cells = checks->cells;
  rondo_array_free(&checks->allocator, &checks->items);
  checks->cells = NULL;
  checks->capacity = 0;
  return cells == NULL ? RONDO_OK : rondo_host_free(checks->device, cells);
}

rondo_status rondo_index_checks_add(rondo_index_checks *checks, const rondo_index_check *check, void **out_cell) {
  assert(checks->items.count < checks->capacity);
  RONDO_TRY(rondo_array_push(&checks->allocator, &checks->items, check));
  *out_cell = checks->cells + checks->items.count - 1;
  return RONDO_OK;
}

void rondo_index_checks_clear(rondo_index_checks *checks) {
  if (checks->capacity > 0) memset(checks->cells, 0, checks->capacity * sizeof *checks->cells);
}

static rondo_status tell(const rondo_index_check *check, uint64_t found) {
  assert(found != 0);
  const int32_t index = (int32_t)(uint32_t)found;
  const uint32_t position = (uint32_t)(found >> 32) - 1;
  const size_t bound = check->bounds[position % check->columns];
  if (bound == 0)
    return rondo_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE,
                      "a run failed on rank %d, which found an index out of range, so it changed no state on any rank",
                      index);
  if (check->repeat_rule != NULL && index >= 0 && (size_t)index < bound)
    return rondo_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE,
                      "%s (operator %u): %s has %d at position %u: %s", check->operator_name, check->operation,
                      check->input, index, position, check->repeat_rule);
  const char *nearest = !check->is_wide ? "" : index == INT32_MAX ? " or more" : index == INT32_MIN ? " or less" : "";
  return rondo_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE,
                    "%s (operator %u): %s has %d%s at position %u, which is not in 0 .. %zu; %s", check->operator_name,
                    check->operation, check->input, index, nearest, position, bound - 1, check->rule);
}

rondo_status rondo_index_checks_judge(rondo_index_checks *checks) {
  for (size_t i = 0; i < checks->items.count; i++) {
    const uint64_t found = checks->cells[i];
    if (found == 0) continue;
    rondo_index_checks_clear(checks);
    return tell(&checks->items.items[i], found);
  }
  return RONDO_OK;
}
