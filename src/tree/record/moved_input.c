/* SPDX-License-Identifier: MIT
 * Finding which static input moved. A pointer that moves is the usual reason for a function to be recorded again and
 * again, and a replay would read what is there no more; so the recording is made anew, and this says why.
 */
#include "tree/record/moved_input.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "tree/recording_key.h"

/* In the same place; the one that was made last. */
static const rondo_recorded_call *find_latest(const rondo_tree *tree, const rondo_form *form) {
  const rondo_recorded_call *call = tree->current == NULL ? tree->roots : tree->current->children;
  const rondo_recorded_call *latest = NULL;
  for (; call != NULL; call = call->sibling)
    if (call->form == form && (latest == NULL || call->number > latest->number)) latest = call;
  return latest;
}

static void note(rondo_function *function, bool is_full, size_t input, const char *before, const char *now) {
  function->moved_count++;
  (void)snprintf(
      function->moved, sizeof function->moved,
      "input %zu, which is static, was at 0x%" PRIxPTR " when it was recorded and is at 0x%" PRIxPTR
      " now; each address makes another recording%s: keep it in one place (rondo_buffer_create), or declare it "
      "RONDO_INPUT_MOVING, and it is copied or patched",
      input, (uintptr_t)before, (uintptr_t)now,
      is_full ? ", and there are as many as may be (rondo_tree_options.max_recordings_per_place)" : "");
  rondo_log(function->moved_count == 1 ? RONDO_LOG_INFO : RONDO_LOG_DEBUG, "tree", "'%s': %s", function->origin->name,
            function->moved);
}

bool rondo_moved_look(rondo_function *function, const rondo_form *form, bool is_full) {
  const rondo_tree *tree = function->tree;
  const rondo_recorded_call *latest = find_latest(tree, form);
  if (latest == NULL) return false;
  const uint64_t *then = rondo_key_inputs(latest->key), *now = rondo_key_inputs(tree->words);
  for (size_t i = 0; i < function->options.input_count; i++) {
    rondo_keyed_input recorded, asked;
    then = rondo_key_read_input(then, false, &recorded);
    now = rondo_key_read_input(now, false, &asked);
    if (recorded.way != RONDO_WAY_STATIC || asked.way != RONDO_WAY_STATIC) continue;
    if (recorded.address == asked.address) continue;
    note(function, is_full, i, recorded.address, asked.address);
    return true;
  }
  return false;
}
