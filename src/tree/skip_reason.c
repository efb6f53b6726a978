/* SPDX-License-Identifier: MIT
 * Why calls run eagerly: names, counters, the log line, and the error in a strict tree.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "tree/function.h"
#include "tree/skip_reason.h"
#include "tree/tree_internal.h"

static const char *const names[] = {
    [RONDO_SKIP_NONE] = "NONE",
    [RONDO_SKIP_WARM_UP] = "WARM_UP",
    [RONDO_SKIP_AFTER_WARM_UP] = "AFTER_WARM_UP",
    [RONDO_SKIP_MUTATED_INPUT] = "MUTATED_INPUT",
    [RONDO_SKIP_HOST_WORK] = "HOST_WORK",
    [RONDO_SKIP_SEVERAL_DEVICES] = "SEVERAL_DEVICES",
    [RONDO_SKIP_UNKNOWN_SHAPE] = "UNKNOWN_SHAPE",
    [RONDO_SKIP_UNSAFE] = "UNSAFE",
    [RONDO_SKIP_UNSAFE_DETERMINISTIC] = "UNSAFE_DETERMINISTIC",
    [RONDO_SKIP_CHANGING_SHAPES] = "CHANGING_SHAPES",
    [RONDO_SKIP_SHAPE_LIMIT] = "SHAPE_LIMIT",
    [RONDO_SKIP_RECORDING_LIMIT] = "RECORDING_LIMIT",
    [RONDO_SKIP_MEMORY_LIMIT] = "MEMORY_LIMIT",
    [RONDO_SKIP_TOO_SMALL] = "TOO_SMALL",
    [RONDO_SKIP_DISABLED] = "DISABLED",
    [RONDO_SKIP_REFUSED] = "REFUSED",
    [RONDO_SKIP_CAPTURING] = "CAPTURING",
    [RONDO_SKIP_NESTED] = "NESTED",
    [RONDO_SKIP_OTHER_WORK] = "OTHER_WORK",
    [RONDO_SKIP_KEPT_MEMORY] = "KEPT_MEMORY",
    [RONDO_SKIP_CHANGED] = "CHANGED",
    [RONDO_SKIP_DEPARTED] = "DEPARTED",
    [RONDO_SKIP_MOVING_OUTPUT] = "MOVING_OUTPUT",
    [RONDO_SKIP_NO_GAIN] = "NO_GAIN",
    [RONDO_SKIP_CAPTURE_DIED] = "CAPTURE_DIED",
};
_Static_assert(sizeof names / sizeof names[0] <= RONDO_SKIP_ROOM, "the array of counters by reason is too short");

const char *rondo_skip_name(rondo_skip skip) {
  const size_t number = (size_t)skip;
  return number < sizeof names / sizeof names[0] && names[number] != NULL ? names[number] : "UNKNOWN";
}

/* Keeps the last message of each reason. Without memory for it, the explanation omits a line. */
static void keep_message(rondo_function *function, rondo_skip skip, const char *message) {
  const rondo_allocator *allocator = &function->tree->allocator;
  char **place = &function->messages[skip], *kept;
  if (message[0] == '\0' || (*place != NULL && strcmp(*place, message) == 0)) return;
  if (rondo_allocate_text(allocator, message, &kept) != RONDO_OK) return;
  rondo_release_text(allocator, *place);
  *place = kept;
}

void rondo_skip_forget(rondo_function *function) {
  for (size_t i = 0; i < RONDO_SKIP_ROOM; i++) rondo_release_text(&function->tree->allocator, function->messages[i]);
}

void rondo_skip_note(rondo_function *function, rondo_skip skip, const char *message) {
  rondo_tree *tree = function->tree;
  function->info.skipped[skip]++;
  tree->info.skipped[skip]++;
  function->info.last_skip = skip;
  (void)snprintf(function->message, sizeof function->message, "%s", message);
  keep_message(function, skip, message);
  const bool is_usual = !rondo_skip_is_strict(skip);
  rondo_log(is_usual || function->info.skipped[skip] > 1 ? RONDO_LOG_DEBUG : RONDO_LOG_INFO, "tree",
            "'%s' runs eagerly: %s%s%s", function->origin->name, rondo_skip_name(skip), message[0] == '\0' ? "" : ": ",
            message);
}

bool rondo_skip_is_strict(rondo_skip skip) {
  switch (skip) {
    case RONDO_SKIP_NONE:
    case RONDO_SKIP_WARM_UP:
    case RONDO_SKIP_AFTER_WARM_UP:
    case RONDO_SKIP_DISABLED:
    case RONDO_SKIP_CAPTURING:
    case RONDO_SKIP_NESTED:
    case RONDO_SKIP_DEPARTED:
    case RONDO_SKIP_CAPTURE_DIED:
      return false;
    default:
      return true;
  }
}

rondo_status rondo_skip_refuse(const rondo_function *function, rondo_skip skip, const char *message) {
  return rondo_fail(
      RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED,
      "%s: '%s' is not recorded: %s: %s. The tree is strict (rondo_tree_options.strict); otherwise it would run "
      "eagerly",
      rondo_function_call_name(function), function->origin->name, rondo_skip_name(skip), message);
}
