/* SPDX-License-Identifier: MIT
 * Checks whether comparing recordings found all uses of the inputs' addresses. The work runs twice on the same
 * contents. In the first run, the inputs are at their recorded addresses. In the second run, the patched inputs are
 * elsewhere, and their recorded addresses contain zeros. If the work also keeps an address in memory, or in pieces, it
 * reads the zeros. If the runs leave different bits, all inputs are copied instead.
 *
 * Both runs are undone: everything that they write, except outputs, is saved before and restored after, and random
 * numbers are drawn again. Inputs that are all zeros fail the check, because it would show nothing. So does work that
 * is not deterministic.
 */
#include <string.h>

#include "base/log.h"
#include "tree/path/owned_buffer.h"
#include "tree/record/check_inputs.h"
#include "tree/record/record_call.h"
#include "tree/record/save_inputs.h"
#include "tree/replay.h"

enum { CHUNK_BYTES = 65536 };

/* A result of the work: its address in the first run and in the second run. */
typedef struct rondo_left {
  char *first, *second;
  void *copy; /* the contents after the first run */
  size_t bytes;
} rondo_left;

typedef struct rondo_check {
  rondo_recorder *recorder;
  void **elsewhere;            /* copies of the bound inputs */
  rondo_resolved_input *saved; /* the call's inputs; is_mutated is also set for outputs of the path, and for static
                                  inputs that the work writes without a declaration */
  RONDO_ARRAY(rondo_left) left;
  char *chunks; /* two chunks of host memory */
  bool is_same;
} rondo_check;

static bool is_patched(const rondo_recorded_call *made) {
  for (size_t i = 0; i < made->bound_count; i++)
    if (made->bound[i].method == RONDO_BOUND_PATCHED) return true;
  return false;
}

/* Preparing -------------------------------------------------------------------------------------------------------- */

static rondo_status allocate(const rondo_check *check, size_t bytes, void **out) {
  return rondo_owned_allocate(check->recorder->tree, check->recorder->stream, bytes, "a check of patched inputs", out);
}

static rondo_status copy_inputs(rondo_check *check) {
  const rondo_recorder *recorder = check->recorder;
  const size_t count = recorder->made->bound_count;
  RONDO_TRY(rondo_allocate_items(&recorder->tree->allocator, count, sizeof(void *), &check->elsewhere));
  for (size_t i = 0; i < count; i++) {
    const rondo_bound_input *bound = &recorder->made->bound[i];
    RONDO_TRY(allocate(check, bound->bytes, &check->elsewhere[i]));
    RONDO_TRY(
        rondo_copy_async(recorder->stream, check->elsewhere[i], recorder->given[bound->input].address, bound->bytes));
  }
  return RONDO_OK;
}

static rondo_status add_left(rondo_check *check, void *first, void *second, size_t bytes) {
  rondo_left left = {.first = first, .second = second, .bytes = bytes};
  RONDO_TRY(rondo_array_reserve(&check->recorder->tree->allocator, &check->left, check->left.count + 1));
  RONDO_TRY(allocate(check, bytes, &left.copy));
  check->left.items[check->left.count++] = left;
  return RONDO_OK;
}

/* Whether the work may write the input. True also if its nodes do not show that. */
static rondo_status writes(const rondo_recorder *recorder, const rondo_resolved_input *input, bool *out) {
  rondo_patch_use look;
  *out = input->is_mutated || input->role == RONDO_ROLE_MANAGED;
  if (*out || input->role != RONDO_ROLE_STATIC || input->bytes == 0) return RONDO_OK;
  RONDO_TRY(rondo_patch_find_use("rondo_function_call", recorder->segments.items[0].exec, input->address, input->bytes,
                                 &look));
  *out = look.is_written;
  return RONDO_OK;
}

static rondo_status list_saved(rondo_check *check) {
  const rondo_recorder *recorder = check->recorder;
  const size_t count = recorder->function->options.input_count;
  RONDO_TRY(rondo_allocate_items(&recorder->tree->allocator, count, sizeof *check->saved, &check->saved));
  for (size_t i = 0; i < count; i++) {
    check->saved[i] = recorder->given[i];
    RONDO_TRY(writes(recorder, &recorder->given[i], &check->saved[i].is_mutated));
  }
  return RONDO_OK;
}

/* Lists the outputs, and the inputs that the work writes. */
static rondo_status list_left(rondo_check *check) {
  const rondo_recorder *recorder = check->recorder;
  const rondo_recorded_call *made = recorder->made;
  for (size_t i = 0; i < made->output_count; i++)
    if (made->outputs[i].kind == RONDO_OUTPUT_FRESH)
      RONDO_TRY(add_left(check, made->outputs[i].address, made->outputs[i].address, made->outputs[i].extent.bytes));
  for (size_t i = 0; i < made->bound_count; i++) {
    const rondo_bound_input *bound = &made->bound[i];
    void *second = bound->method == RONDO_BOUND_PATCHED ? check->elsewhere[i] : bound->slot;
    if (bound->is_mutated) RONDO_TRY(add_left(check, bound->slot, second, bound->bytes));
  }
  for (size_t i = 0; i < recorder->function->options.input_count; i++) {
    const rondo_resolved_input *input = &recorder->given[i];
    const bool is_written = input->role == RONDO_ROLE_STATIC ? check->saved[i].is_mutated : input->is_mutated;
    const bool stays = input->role == RONDO_ROLE_STATIC || input->role == RONDO_ROLE_MANAGED;
    if (stays && is_written && input->bytes > 0)
      RONDO_TRY(add_left(check, input->address, input->address, input->bytes));
  }
  return RONDO_OK;
}

/* Comparing -------------------------------------------------------------------------------------------------------- */

static rondo_status read_chunk(const rondo_check *check, int which, const void *from, size_t bytes) {
  RONDO_TRY(rondo_copy_async(check->recorder->stream, check->chunks + (size_t)which * CHUNK_BYTES, from, bytes));
  return rondo_stream_drain(check->recorder->stream, "rondo_function_call");
}

/* Compares two ranges of device memory. If the second is NULL, compares with zeros. */
static rondo_status compare(const rondo_check *check, const char *a, const char *b, size_t bytes, bool *out_same) {
  memset(check->chunks + CHUNK_BYTES, 0, CHUNK_BYTES);
  *out_same = true;
  for (size_t at = 0; at < bytes && *out_same; at += CHUNK_BYTES) {
    const size_t part = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
    RONDO_TRY(read_chunk(check, 0, a + at, part));
    if (b != NULL) RONDO_TRY(read_chunk(check, 1, b + at, part));
    *out_same = memcmp(check->chunks, check->chunks + CHUNK_BYTES, part) == 0;
  }
  return RONDO_OK;
}

static rondo_status find_zeros(rondo_check *check) {
  const rondo_recorded_call *made = check->recorder->made;
  for (size_t i = 0; i < made->bound_count && check->is_same; i++) {
    bool is_zero;
    if (made->bound[i].method != RONDO_BOUND_PATCHED) continue;
    RONDO_TRY(compare(check, check->elsewhere[i], NULL, made->bound[i].bytes, &is_zero));
    check->is_same = !is_zero;
  }
  return RONDO_OK;
}

static rondo_status keep_left(const rondo_check *check) {
  for (size_t i = 0; i < check->left.count; i++) {
    const rondo_left *left = &check->left.items[i];
    RONDO_TRY(rondo_copy_async(check->recorder->stream, left->copy, left->first, left->bytes));
  }
  return RONDO_OK;
}

static rondo_status compare_left(rondo_check *check) {
  for (size_t i = 0; i < check->left.count && check->is_same; i++) {
    const rondo_left *left = &check->left.items[i];
    RONDO_TRY(compare(check, left->copy, left->second, left->bytes, &check->is_same));
  }
  return RONDO_OK;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static rondo_status set_inputs(const rondo_check *check, bool is_elsewhere) {
  const rondo_recorded_call *made = check->recorder->made;
  for (size_t i = 0; i < made->bound_count; i++) {
    const rondo_bound_input *bound = &made->bound[i];
    const bool moves = is_elsewhere && bound->method == RONDO_BOUND_PATCHED;
    const rondo_fill zeros = {.dst = bound->slot, .element_bytes = 1, .width = bound->bytes};
    RONDO_TRY(moves ? rondo_fill_async(check->recorder->stream, &zeros)
                    : rondo_copy_async(check->recorder->stream, bound->slot, check->elsewhere[i], bound->bytes));
    made->addresses[i] = moves ? check->elsewhere[i] : bound->slot;
  }
  return RONDO_OK;
}

static rondo_status run(rondo_check *check, bool is_elsewhere) {
  const rondo_recorder *recorder = check->recorder;
  RONDO_TRY(set_inputs(check, is_elsewhere));
  RONDO_TRY(rondo_replay_segment(recorder->made, &recorder->segments.items[0], recorder->stream));
  return is_elsewhere ? compare_left(check) : keep_left(check);
}

static rondo_status run_and_undo(rondo_check *check, bool is_elsewhere) {
  const rondo_recorder *recorder = check->recorder;
  rondo_saved saved;
  RONDO_TRY(rondo_save(recorder->tree, recorder->stream, recorder->function, check->saved, &saved));
  rondo_status status = run(check, is_elsewhere);
  RONDO_THEN(status, rondo_save_end(recorder->tree, recorder->stream, &saved, false));
  return status;
}

/* Restores inputs that are outputs of the ended path. The work may have overwritten them in the arena. */
static rondo_status restore_ended(const rondo_check *check) {
  const rondo_recorder *recorder = check->recorder;
  if (recorder->tree->device->ops->guard != NULL) return RONDO_OK; /* such a device never reuses addresses */
  for (size_t i = 0; i < recorder->made->bound_count; i++) {
    const rondo_bound_input *bound = &recorder->made->bound[i];
    const rondo_resolved_input *input = &recorder->given[bound->input];
    if (input->is_of_ending && !bound->is_mutated)
      RONDO_TRY(rondo_copy_async(recorder->stream, input->address, check->elsewhere[i], bound->bytes));
  }
  return RONDO_OK;
}

static rondo_status run_both(rondo_check *check) {
  RONDO_TRY(rondo_allocate_items(&check->recorder->tree->allocator, 2 * CHUNK_BYTES, 1, &check->chunks));
  RONDO_TRY(copy_inputs(check));
  RONDO_TRY(list_saved(check));
  RONDO_TRY(list_left(check));
  RONDO_TRY(find_zeros(check));
  if (!check->is_same) return RONDO_OK;
  RONDO_TRY(run_and_undo(check, false));
  RONDO_TRY(run_and_undo(check, true));
  return restore_ended(check);
}

static void release(const rondo_check *check, void *memory) {
  rondo_owned_free_address(check->recorder->tree, check->recorder->stream, memory);
}

static void finish(rondo_check *check) {
  const rondo_allocator *allocator = &check->recorder->tree->allocator;
  const size_t count = check->recorder->made->bound_count;
  for (size_t i = 0; i < check->left.count; i++) release(check, check->left.items[i].copy);
  for (size_t i = 0; check->elsewhere != NULL && i < count; i++) release(check, check->elsewhere[i]);
  rondo_release(allocator, check->elsewhere, count, sizeof(void *));
  rondo_release(allocator, check->saved, check->recorder->function->options.input_count, sizeof *check->saved);
  if (check->chunks != NULL) rondo_release(allocator, check->chunks, 2 * CHUNK_BYTES, 1);
  rondo_array_free(allocator, &check->left);
}

/* Result ----------------------------------------------------------------------------------------------------------- */

static void copy_all(const rondo_recorder *recorder, const char *why) {
  for (size_t i = 0; i < recorder->made->bound_count; i++)
    if (recorder->made->bound[i].method == RONDO_BOUND_PATCHED)
      recorder->made->bound[i].method = RONDO_BOUND_COPIED_BEFORE;
  recorder->tree->info.untrusted++;
  rondo_log(RONDO_LOG_WARNING, "tree", "the inputs of '%s' are copied, although their addresses were found: %s",
            recorder->function->origin->name, why);
}

static bool gives_up(const rondo_recorder *recorder) {
  for (size_t i = 0; i < recorder->function->options.input_count; i++)
    if (recorder->inputs[i].is_dropped) return true;
  return false;
}

/* Why the check cannot run; NULL if it can. */
static const char *find_obstacle(const rondo_recorder *recorder) {
  if (recorder->tree->has_unknown_outputs)
    return "it is prepared while outputs of the previous step are retained, so it cannot be tested";
  if (recorder->tree->is_watched && gives_up(recorder))
    return "it drops inputs, and on this device their lifetime ends with the first test run";
  return NULL;
}

rondo_status rondo_recorder_check(rondo_recorder *recorder) {
  rondo_check check = {.recorder = recorder, .is_same = true};
  if (!is_patched(recorder->made)) return RONDO_OK;
  const char *const obstacle = find_obstacle(recorder);
  if (obstacle != NULL) {
    copy_all(recorder, obstacle);
    return RONDO_OK;
  }
  /* A failure of earlier work on the stream must not count as a failed check. */
  RONDO_TRY(rondo_stream_drain(recorder->stream, "rondo_function_call"));
  recorder->tree->info.checked++;
  const rondo_status status = run_both(&check);
  finish(&check);
  if (status == RONDO_DEVICE_LOST) return status;
  if (status != RONDO_OK)
    copy_all(recorder, rondo_last_error()->message);
  else if (!check.is_same)
    copy_all(recorder,
             "it gives different results with inputs at other addresses, or all inputs are zero, which tests nothing");
  return RONDO_OK;
}
