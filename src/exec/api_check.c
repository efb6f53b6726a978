/* SPDX-License-Identifier: MIT
 * The refusals that every front door of this layer begins with.
 */
#include "exec/api_check.h"

rondo_status rondo_front(const char *call, const char *what, const void *pointer) {
  RONDO_TRY(rondo_refuse_in_callback(call));
  return rondo_require(call, what, pointer);
}

rondo_status rondo_require_device(const char *call, const char *what, const rondo_device *expected,
                                  const rondo_device *actual) {
  if (expected == actual) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE, "%s: %s belongs to device '%s', not to '%s'",
                    call, what, actual == NULL ? "(none)" : actual->name, expected == NULL ? "(none)" : expected->name);
}
