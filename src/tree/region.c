/* SPDX-License-Identifier: MIT
 * Regions. A region is a function whose run of the body is kept here from its begin to its end. The function has the
 * region's key, its inputs and its recordings; call.c treats both alike.
 *
 * Invariants: while a region is open, its tree is entered by the thread that began it, and a run of its code is in
 * progress. A thread has at most one open region, so runs end in the reverse order of their begins.
 */
#include <rondo/region.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "tree/call.h"
#include "tree/call_inputs.h"
#include "tree/function.h"
#include "tree/recorded_calls.h"
#include "tree/region.h"
#include "tree/tree.h"

struct rondo_region {
  rondo_function *function;
  const char *where; /* it was begun */
  bool may_end;      /* the last begin replayed, so an end may follow */
  uint64_t left;
  rondo_call_request asked;
  rondo_body_run run;
  char died[RONDO_TREE_MESSAGE]; /* why the last capture died that did */
};

static _Thread_local rondo_region *open_region;

static const char *name_of(const rondo_region *region) { return region->function->origin->name; }

/* Life ------------------------------------------------------------------------------------------------------------- */

/* The code takes the place of a callback. */
static rondo_status run_nothing(rondo_call *call, void *user) {
  (void)call;
  (void)user;
  return RONDO_OK;
}

static rondo_status read_options(const char *call, const rondo_region_options *given, rondo_region_options *out) {
  RONDO_TRY(rondo_require(call, "options", given));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_region_options", given, out));
  if ((unsigned)out->mode > RONDO_REGION_CAPTURE_ALWAYS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: %u is not a mode: use a RONDO_REGION_ name", call, (unsigned)out->mode);
  if (out->key_bytes > RONDO_REGION_MAX_KEY)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: key_bytes is %zu, above the maximum of %d (RONDO_REGION_MAX_KEY): use a hash of the key",
                      call, out->key_bytes, RONDO_REGION_MAX_KEY);
  for (size_t i = 0; out->inputs != NULL && i < out->input_count; i++)
    if ((out->inputs[i] & (RONDO_INPUT_ROWS | RONDO_INPUT_LENGTH)) != 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                        "%s: input %zu is %s, but regions do not pad: pad it before the region", call, i,
                        (out->inputs[i] & RONDO_INPUT_ROWS) != 0 ? "RONDO_INPUT_ROWS" : "RONDO_INPUT_LENGTH");
  return RONDO_OK;
}

/* The length of the key, then the key. */
static size_t words_of_key(size_t key_bytes) { return key_bytes == 0 ? 0 : 1 + (key_bytes + 7) / 8; }

rondo_status rondo_region_create(rondo_tree *tree, const rondo_region_options *options, rondo_region **out_region) {
  const char *const call = "rondo_region_create";
  rondo_region_options known;
  rondo_region *region;
  RONDO_TRY(rondo_check_call(call, "out_region", out_region));
  *out_region = NULL;
  RONDO_TRY(rondo_require(call, "the tree", tree));
  RONDO_TRY(read_options(call, options, &known));
  const bool always = known.mode == RONDO_REGION_CAPTURE_ALWAYS;
  const rondo_function_options function = {RONDO_FUNCTION_OPTIONS_INIT,
                                           .name = known.name,
                                           .body = run_nothing,
                                           .inputs = known.inputs,
                                           .input_count = known.input_count,
                                           .binding = known.binding,
                                           .warm_ups = known.warm_ups,
                                           .max_shapes = known.max_recordings,
                                           .min_nodes = known.min_nodes,
                                           .freezes_values = known.freezes_values || always};
  RONDO_TRY(rondo_allocate_items(&tree->allocator, 1, sizeof *region, &region));
  const rondo_status status =
      rondo_function_make(call, tree, &function, words_of_key(known.key_bytes), &region->function);
  if (status != RONDO_OK) {
    rondo_region_free(tree, region);
    return status;
  }
  region->function->region = region;
  region->function->always_captures = always;
  region->function->max_exec_bytes = known.max_exec_bytes;
  *out_region = region;
  return RONDO_OK;
}

void rondo_region_free(const rondo_tree *tree, rondo_region *region) {
  if (region != NULL) rondo_release(&tree->allocator, region, 1, sizeof *region);
}

rondo_status rondo_region_destroy(rondo_region *region) {
  if (region == NULL) return RONDO_OK;
  rondo_region_abandon(region);
  return rondo_function_remove("rondo_region_destroy", region->function);
}

/* Closing ---------------------------------------------------------------------------------------------------------- */

rondo_region *rondo_region_swap_open(rondo_region *region) {
  rondo_region *const before = open_region;
  open_region = region;
  return before;
}

static void close_region(rondo_region *region) {
  assert(open_region == region && region->run.kind == RONDO_RUN_NONE);
  open_region = NULL;
  rondo_tree_leave(region->function->tree);
}

static void abandon(rondo_region *region) {
  rondo_saved_error before;
  rondo_error_save(&before);
  region->run.is_abandoned = true;
  const rondo_status left = rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_REGION_LEFT, "the region was abandoned");
  rondo_status_ignore(rondo_call_end(&region->asked, &region->run, left), "nobody waits for the result");
  close_region(region);
  rondo_error_restore(&before);
}

/* A host function runs inside the code's call that waits for it, so it does not close the region. */
void rondo_region_abandon(rondo_region *region) {
  if (region != NULL && region == open_region && !rondo_in_callback()) abandon(region);
}

void rondo_region_abandon_in(const rondo_tree *tree) {
  if (open_region != NULL && open_region->function->tree == tree) rondo_region_abandon(open_region);
}

/* `by` says who left it. */
static rondo_status fail_left(const char *call, const rondo_region *region, const char *by) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_REGION_LEFT,
                    "%s: region '%s', begun at %s, was left without rondo_region_end%s, by return or longjmp; it is "
                    "abandoned now, and can be begun again: end it on each way out, or call rondo_region_abandon",
                    call, name_of(region), region->where, by);
}

rondo_status rondo_region_close_left(const char *callback, const rondo_function *function) {
  rondo_region *const region = open_region;
  char by[RONDO_TREE_MESSAGE];
  if (region == NULL) return RONDO_OK;
  region->left++;
  abandon(region);
  (void)snprintf(by, sizeof by, " by %s of '%.200s'", callback, function->origin->name);
  return fail_left("rondo_function_call", region, by);
}

/* Beginning -------------------------------------------------------------------------------------------------------- */

static rondo_status refuse_stream(const char *call, const rondo_region *region, const rondo_stream *stream) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_REGION_STREAM,
                    "%s: region '%s' is open on %s since %s, and this is %s: use a region for each stream, or call "
                    "rondo_region_abandon if it was left",
                    call, name_of(region), region->asked.stream->label, region->where, stream->label);
}

/* The thread has an open region. */
static __attribute__((noinline)) rondo_status refuse_open(const char *call, rondo_region *region,
                                                          const rondo_stream *stream) {
  rondo_region *const outer = open_region;
  if (outer != region)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_REGION_NESTED,
                      "%s: region '%s' is begun inside region '%s', which was begun at %s: end that first, or call "
                      "rondo_region_abandon if it was left",
                      call, name_of(region), name_of(outer), outer->where);
  if (stream != region->asked.stream) return refuse_stream(call, region, stream);
  region->left++;
  abandon(region);
  return fail_left(call, region, "");
}

static __attribute__((noinline)) rondo_status refuse_in_body(const char *call, const rondo_region *region) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_REGION_NESTED,
                    "%s: region '%s' is begun inside the body of '%s', a function of the same tree: make it a function "
                    "too, or begin it outside of the body",
                    call, name_of(region), region->function->tree->active->function->origin->name);
}

static size_t room_for_key(const rondo_function *function) {
  return function->caller_words == 0 ? 0 : (function->caller_words - 1) * 8;
}

static inline bool gives_input(const rondo_region_arguments *given) {
  bool gives = false;
  for (size_t i = 0; i < given->input_count; i++) gives |= given->inputs[i].give;
  return gives;
}

static __attribute__((noinline)) rondo_status refuse_arguments(const char *call, const rondo_region *region,
                                                               const rondo_region_arguments *given) {
  const size_t room = room_for_key(region->function);
  if (given->key_bytes > room)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: the key of region '%s' has %zu bytes, above the maximum of %zu "
                      "(rondo_region_options.key_bytes)",
                      call, name_of(region), given->key_bytes, room);
  if (given->key_bytes > 0) RONDO_TRY(rondo_require(call, "the key", given->key));
  if (given->output_count > 0) RONDO_TRY(rondo_require(call, "outputs", (const void *)given->outputs));
  for (size_t i = 0; i < given->input_count; i++)
    if (given->inputs[i].give)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                        "%s: input %zu of region '%s' is given (rondo_input.give): a region's code may run twice, so "
                        "release the buffer after its end",
                        call, i, name_of(region));
  return RONDO_OK;
}

/* Raw inputs give no buffer. */
static inline rondo_status check_arguments(const char *call, const rondo_region *region, const rondo_stream *stream,
                                           const rondo_region_arguments *given, const rondo_input **out_raw) {
  RONDO_TRY(rondo_call_check(call, region->function, stream, given->inputs, given->input_count));
  *out_raw = rondo_inputs_find_raw(region->function, given->inputs);
  const bool fine = given->key_bytes <= room_for_key(region->function) &&
                    (given->key != NULL || given->key_bytes == 0) &&
                    (given->outputs != NULL || given->output_count == 0) && (*out_raw != NULL || !gives_input(given));
  if (__builtin_expect(!fine, 0)) return refuse_arguments(call, region, given);
  rondo_call_clear_outputs(given->outputs, given->output_count);
  return RONDO_OK;
}

static void set_key(const rondo_function *function, const rondo_region_arguments *given) {
  uint64_t *words = function->caller_key;
  if (function->caller_words == 0) return;
  words[0] = given->key_bytes;
  words[function->caller_words - 1] = 0;
  if (given->key_bytes == (function->caller_words - 1) * 8) {
    memcpy(words + 1, given->key, given->key_bytes);
    return;
  }
  memset(words + 1, 0, (function->caller_words - 1) * 8);
  if (given->key_bytes > 0) memcpy(words + 1, given->key, given->key_bytes);
}

rondo_status rondo_region_begin_at(rondo_region *region, rondo_stream *stream, const rondo_region_arguments *arguments,
                                   const char *where, rondo_call **out_call) {
  static const rondo_region_arguments none = {0};
  const char *const call = "rondo_region_begin";
  const rondo_region_arguments *given = arguments == NULL ? &none : arguments;
  if (__builtin_expect(out_call == NULL, 0)) return rondo_refuse_null(call, "out_call");
  *out_call = NULL;
  if (__builtin_expect(region == NULL, 0)) return rondo_check_call(call, "the region", region);
  const rondo_input *raw;
  RONDO_TRY(check_arguments(call, region, stream, given, &raw));
  if (__builtin_expect(open_region != NULL, 0)) return refuse_open(call, region, stream);
  rondo_tree *tree = region->function->tree;
  if (__builtin_expect(rondo_tree_is_mine(tree), 0)) return refuse_in_body(call, region);
  RONDO_TRY(rondo_tree_enter(tree, call));
  set_key(region->function, given);
  region->where = where == NULL ? "an unnamed place" : where;
  region->may_end = false;
  region->asked = (rondo_call_request){.name = call,
                                       .function = region->function,
                                       .stream = stream,
                                       .outputs = given->outputs,
                                       .output_count = given->output_count,
                                       .raw = raw};
  const rondo_status status = rondo_call_begin(&region->asked, given->inputs, &region->run);
  region->may_end = status == RONDO_OK && region->run.kind == RONDO_RUN_NONE;
  if (__builtin_expect(region->run.kind == RONDO_RUN_NONE, 1)) {
    rondo_tree_leave(tree);
    return status;
  }
  open_region = region;
  *out_call = &region->run.call;
  return RONDO_OK;
}

/* Ending ----------------------------------------------------------------------------------------------------------- */

/* A success leaves the thread's last error as it was here, not as it was at the begin. */
static rondo_status end_open(rondo_region *region, rondo_status done, rondo_call **out_call) {
  rondo_saved_error before;
  rondo_error_save(&before);
  const rondo_status status = rondo_call_end(&region->asked, &region->run, done);
  if (status == RONDO_OK) rondo_error_restore(&before);
  if (region->run.has_died && region->run.kind != RONDO_RUN_NONE)
    (void)snprintf(region->died, sizeof region->died, "%s", region->function->message);
  if (region->run.kind == RONDO_RUN_NONE) {
    close_region(region);
    return status;
  }
  *out_call = &region->run.call;
  return RONDO_OK;
}

rondo_status rondo_region_end(rondo_region *region, rondo_stream *stream, rondo_status done, rondo_call **out_call) {
  const char *const call = "rondo_region_end";
  if (__builtin_expect(out_call == NULL, 0)) return rondo_refuse_null(call, "out_call");
  *out_call = NULL;
  if (__builtin_expect(region == NULL || stream == NULL || rondo_in_callback(), 0)) {
    RONDO_TRY(rondo_check_call(call, "the region", region));
    return rondo_refuse_null(call, "the stream");
  }
  const bool is_open = !region->may_end && open_region == region;
  if (!is_open && !region->may_end)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_REGION_NOT_OPEN,
                      "%s: region '%s' is not open in this thread: call rondo_region_begin first, and end it in the "
                      "same thread, once",
                      call, name_of(region));
  if (stream != region->asked.stream) return refuse_stream(call, region, stream);
  if (is_open) return end_open(region, done, out_call);
  region->may_end = false;
  return done;
}

/* Queries ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_region_get_info(const rondo_region *region, rondo_region_info *out_info) {
  const char *const call = "rondo_region_get_info";
  RONDO_TRY(rondo_check_call(call, "the region", region));
  RONDO_TRY(rondo_require(call, "out_info", out_info));
  const rondo_function *function = region->function;
  RONDO_TRY(rondo_tree_enter(function->tree, call));
  rondo_region_info info = {.recordings = function->info.recordings,
                            .keys = function->info.shapes,
                            .last_skip = function->info.last_skip,
                            .calls = function->info.calls,
                            .replayed = function->info.replayed,
                            .captured = function->info.recorded,
                            .updated = function->updates,
                            .bodies = function->info.bodies,
                            .evicted = function->evicted,
                            .died = function->died,
                            .left = region->left,
                            .last_message = function->message,
                            .died_message = region->died,
                            .exec_bytes = rondo_recorded_exec_bytes(function)};
  memcpy(info.skipped, function->info.skipped, sizeof info.skipped);
  rondo_tree_leave(function->tree);
  return rondo_versioned_write("rondo_region_info", &info, out_info, sizeof info);
}
