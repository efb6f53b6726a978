/* SPDX-License-Identifier: MIT
 * Trees: creation, destruction, steps and queries.
 */
#include <assert.h>
#include <string.h>

#include "base/thread.h"
#include "base/versioned_struct.h"
#include "device/retired_objects.h"
#include "exec/api_check.h"
#include "exec/capture/capture_internal.h"
#include "tree/eager_call.h"
#include "tree/function.h"
#include "tree/path/owned_buffer.h"
#include "tree/path/path.h"
#include "tree/path/path_plan.h"
#include "tree/path/path_warm_up.h"
#include "tree/recorded_calls.h"
#include "tree/region.h"
#include "tree/tree.h"
#include "tree/tree_check.h"

static const rondo_device_use tree_use = {.rank = 2, .name = "tree"};

enum { DEFAULT_RECORDINGS = 4096, DEFAULT_RECORDINGS_PER_PLACE = 128, DEFAULT_PLAN_MS = 5 };

/* Ownership -------------------------------------------------------------------------------------------------------- */

bool rondo_tree_is_owner(const rondo_tree *tree) {
  /* Only the owner may read `active`. */
  return atomic_load_explicit(&tree->owner, memory_order_relaxed) == rondo_thread_id() && tree->active != NULL;
}

rondo_status rondo_tree_enter(rondo_tree *tree, const char *call) {
  uint64_t nobody = 0;
  if (atomic_compare_exchange_strong_explicit(&tree->owner, &nobody, rondo_thread_id(), memory_order_acquire,
                                              memory_order_relaxed))
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_CONCURRENT_USE, "%s: %s%s%s is in use by %s", call,
                    tree->options.name[0] == '\0' ? "the tree" : "tree '", tree->options.name,
                    tree->options.name[0] == '\0' ? "" : "'",
                    nobody == rondo_thread_id() ? "the call that this call is part of: a body may call only functions "
                                                  "of the tree, and a host step must not use the tree"
                                                : "another thread: use a tree for each thread, or lock the tree");
}

rondo_status rondo_tree_begin_call(rondo_tree *tree, const char *call) {
  RONDO_TRY(rondo_check_call(call, "the tree", tree));
  return rondo_tree_enter(tree, call);
}

/* Life ------------------------------------------------------------------------------------------------------------- */

static rondo_status read_options(const rondo_tree_options *given, rondo_tree_options *out) {
  RONDO_TRY(rondo_versioned_read("rondo_tree_options", given, out, sizeof *out));
  if ((unsigned)out->outputs > RONDO_OUTPUTS_CLONE)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "rondo_tree_create: %u is not an output policy: use RONDO_OUTPUTS_EXPIRE or RONDO_OUTPUTS_CLONE",
                      (unsigned)out->outputs);
  if (out->max_recordings == 0) out->max_recordings = DEFAULT_RECORDINGS;
  if (out->max_recordings_per_parent == 0) out->max_recordings_per_parent = DEFAULT_RECORDINGS_PER_PLACE;
  if (out->plan_ms == 0) out->plan_ms = DEFAULT_PLAN_MS;
  return RONDO_OK;
}

static rondo_status make_memory(rondo_tree *tree) {
  const char *const call = "rondo_tree_create";
  RONDO_TRY(rondo_device_memory_of(tree->device, &tree->memory));
  RONDO_TRY(rondo_device_memory_require_pools(tree->memory, call));
  RONDO_TRY(rondo_device_memory_require_nodes(tree->memory, call));
  const rondo_pool_options pool = {RONDO_POOL_OPTIONS_INIT, .name = tree->options.name};
  RONDO_TRY(rondo_pool_create(tree->device, &pool, &tree->pool));
  const rondo_arena_options arena = {.name = tree->options.name};
  RONDO_TRY(rondo_arena_create(tree->memory, &arena, &tree->arena));
  return tree->options.initial_bytes == 0 ? RONDO_OK : rondo_arena_back(tree->arena, tree->options.initial_bytes);
}

/* Settles all released buffers. Buffers that are released later are freed at once. */
static void seal(rondo_tree *tree) {
  rondo_path_settle(tree, NULL);
  rondo_owned_free_all(tree);
  for (rondo_buffer *buffer = rondo_commons_seal(tree->commons), *next; buffer != NULL; buffer = next) {
    next = buffer->next;
    rondo_buffer_push(buffer);
  }
}

static void free_tree(rondo_tree *tree) {
  assert(tree->functions == NULL && tree->info.recordings == 0);
  assert(tree->execs == NULL);
  const rondo_allocator allocator = tree->allocator;
  rondo_device *device = tree->device;
  if (tree->commons != NULL) seal(tree);
  rondo_path_warm_up_forget_all(tree);
  rondo_arena_destroy(tree->arena);
  if (tree->pool != NULL) rondo_status_ignore(rondo_pool_destroy(tree->pool), "it is the tree's own and empty");
  rondo_event_destroy(tree->order);
  rondo_stream_tie_release(tree->last_stream);
  rondo_release(&allocator, tree->table, tree->table_size, sizeof *tree->table);
  rondo_release(&allocator, tree->live, tree->bit_capacity / 64, sizeof *tree->live);
  rondo_release(&allocator, tree->holders, tree->bit_capacity, sizeof(rondo_buffer *));
  rondo_release(&allocator, tree->inputs, tree->input_capacity, sizeof *tree->inputs);
  rondo_release(&allocator, tree->moves, tree->input_capacity, sizeof *tree->moves);
  rondo_release(&allocator, tree->words, tree->word_capacity, sizeof *tree->words);
  rondo_release(&allocator, tree->made_outputs, tree->made_capacity, sizeof(rondo_buffer *));
  rondo_release_text(&allocator, (char *)(uintptr_t)tree->options.name);
  if (tree->commons != NULL) rondo_commons_release(tree->commons);
  rondo_release(&allocator, tree, 1, sizeof *tree);
  rondo_device_end_use(device, &tree_use);
}

static bool has_copy_kernel(const rondo_device *device) {
  uint32_t blocks;
  return device->ops->copy_kernel != NULL && device->ops->copy_kernel(device, 1, &blocks) != NULL;
}

static rondo_status fill(rondo_tree *tree, rondo_device *device, const rondo_tree_options *options) {
  char *name;
  tree->device = device;
  rondo_device_begin_use(device, &tree_use);
  tree->is_watched = device->ops->guard != NULL;
  tree->has_copy_kernel = has_copy_kernel(device);
  tree->options = *options;
  tree->options.name = NULL;
  rondo_path_plan_begin_waiting(tree);
  tree->last_call.function = "";
  RONDO_TRY(rondo_allocate_text(&tree->allocator, options->name, &name));
  tree->options.name = name;
  RONDO_TRY(rondo_commons_create(&tree->allocator, &tree->commons));
  tree->commons->tree = tree;
  return make_memory(tree);
}

rondo_status rondo_tree_create(rondo_device *device, const rondo_tree_options *options, rondo_tree **out_tree) {
  const char *const call = "rondo_tree_create";
  rondo_tree_options known;
  rondo_tree *tree;
  RONDO_TRY(rondo_check_call(call, "out_tree", out_tree));
  *out_tree = NULL;
  RONDO_TRY(rondo_require(call, "the device", device));
  RONDO_TRY(rondo_device_require_own(call, device));
  RONDO_TRY(read_options(options, &known));
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *tree, &tree));
  tree->allocator = device->allocator;
  const rondo_status status = fill(tree, device, &known);
  if (status != RONDO_OK) {
    free_tree(tree);
    return status;
  }
  *out_tree = tree;
  return RONDO_OK;
}

/* Waits for the stream of the last call, which is ordered after all earlier work. CAPTURE_REFUSED: memory cannot be
 * freed now, and nothing was changed. */
static rondo_status wait_for_work(const char *call, const rondo_tree *tree) {
  rondo_stream *stream = rondo_tree_last_stream(tree);
  RONDO_TRY(rondo_capture_refuse_unsafe(call));
  return stream == NULL ? RONDO_OK : rondo_stream_synchronize(stream);
}

static void free_functions(rondo_tree *tree) {
  while (tree->functions != NULL) {
    rondo_function *function = tree->functions;
    rondo_function_forget_recordings(function);
    tree->functions = function->next;
    rondo_function_free(function);
  }
}

rondo_status rondo_tree_destroy(rondo_tree *tree) {
  const char *const call = "rondo_tree_destroy";
  if (tree == NULL || tree->device->is_inherited) return RONDO_OK;
  rondo_region_abandon_in(tree);
  RONDO_TRY(rondo_tree_begin_call(tree, call));
  const rondo_status status = wait_for_work(call, tree);
  if (status == RONDO_CAPTURE_REFUSED) {
    rondo_tree_leave(tree);
    return status;
  }
  rondo_tree_check(tree);
  rondo_stream_tie_release(tree->last_stream); /* from now on, lifetimes end at once */
  tree->last_stream = NULL;
  free_functions(tree);
  rondo_retired_objects_look(tree->device, RONDO_QUEUE_NONE);
  free_tree(tree);
  return status;
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

static void begin_next_step(rondo_tree *tree) {
  tree->is_backward_pending = false;
  tree->step++;
}

rondo_status rondo_tree_mark_step(rondo_tree *tree) {
  const char *const call = "rondo_tree_mark_step";
  RONDO_TRY(rondo_tree_begin_call(tree, call));
  const bool is_in_scope = tree->scopes > 0;
  if (!is_in_scope) {
    tree->is_marking = true;
    begin_next_step(tree);
  }
  rondo_tree_leave(tree);
  if (!is_in_scope) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_SCOPE,
                    "%s: inside rondo_tree_step_begin, which is one step: end the scope first", call);
}

rondo_status rondo_tree_step_begin(rondo_tree *tree) {
  const char *const call = "rondo_tree_step_begin";
  RONDO_TRY(rondo_tree_begin_call(tree, call));
  if (tree->scopes++ == 0) begin_next_step(tree);
  rondo_tree_leave(tree);
  return RONDO_OK;
}

rondo_status rondo_tree_step_end(rondo_tree *tree) {
  const char *const call = "rondo_tree_step_end";
  RONDO_TRY(rondo_tree_begin_call(tree, call));
  const bool is_open = tree->scopes > 0;
  if (is_open && --tree->scopes == 0) begin_next_step(tree);
  rondo_tree_leave(tree);
  if (is_open) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_SCOPE,
                    "%s: no step has been begun: call rondo_tree_step_begin first", call);
}

/* Switching and resetting ------------------------------------------------------------------------------------------ */

rondo_status rondo_tree_set_recording(rondo_tree *tree, bool on) {
  const char *const call = "rondo_tree_set_recording";
  RONDO_TRY(rondo_tree_begin_call(tree, call));
  tree->is_off = !on;
  rondo_tree_leave(tree);
  return RONDO_OK;
}

/* If the stream of the last call is gone, clones are made on a new one. */
static rondo_status finish_path(rondo_tree *tree) {
  rondo_stream *stream = rondo_tree_last_stream(tree);
  if (stream != NULL || tree->options.outputs != RONDO_OUTPUTS_CLONE || rondo_path_is_dead(tree))
    return rondo_path_finish(tree, stream, 0);
  RONDO_TRY(rondo_stream_create(tree->device, NULL, &stream));
  rondo_status status = rondo_path_finish(tree, stream, 0);
  RONDO_THEN(status, rondo_stream_synchronize(stream));
  RONDO_THEN(status, rondo_stream_destroy(stream));
  return status;
}

/* Ends the path, and with it all buffers of the arena. Then nothing in the arena is needed, and no work runs. */
static rondo_status end_path(const char *call, rondo_tree *tree) {
  RONDO_TRY(wait_for_work(call, tree));
  rondo_path_settle(tree, rondo_tree_last_stream(tree));
  if (rondo_tree_last_stream(tree) == NULL) rondo_owned_free_late(tree, NULL);
  RONDO_TRY(finish_path(tree));
  begin_next_step(tree);
  RONDO_TRY(wait_for_work(call, tree));
  rondo_path_sweep(tree, rondo_tree_last_stream(tree));
  return RONDO_OK;
}

/* Ends the path, then calls `then`. */
static rondo_status end_path_and(const char *call, rondo_tree *tree, rondo_status (*then)(rondo_tree *tree)) {
  RONDO_TRY(rondo_tree_begin_call(tree, call));
  rondo_status status = end_path(call, tree);
  if (status == RONDO_OK) status = then(tree);
  rondo_tree_check(tree);
  rondo_tree_leave(tree);
  return status;
}

static rondo_status forget_all(rondo_tree *tree) {
  for (rondo_function *function = tree->functions; function != NULL; function = function->next)
    rondo_function_forget_recordings(function);
  return rondo_arena_trim(tree->arena, 0);
}

rondo_status rondo_tree_reset(rondo_tree *tree) { return end_path_and("rondo_tree_reset", tree, forget_all); }

rondo_status rondo_tree_plan_again(rondo_tree *tree) {
  return end_path_and("rondo_tree_plan_again", tree, rondo_path_plan_all);
}

/* Queries ---------------------------------------------------------------------------------------------------------- */

static uint32_t count_roots(const rondo_tree *tree) {
  uint32_t count = 0;
  for (const rondo_recorded_call *call = tree->roots; call != NULL; call = call->sibling) count++;
  return count;
}

static uint32_t count_live(const rondo_tree *tree) {
  uint32_t count = 0;
  for (size_t i = 0; i < rondo_bit_words(tree->path_bits); i++) count += (uint32_t)__builtin_popcountll(tree->live[i]);
  return count;
}

void rondo_tree_read_info(rondo_tree *tree, rondo_tree_info *out) {
  rondo_arena_info arena;
  rondo_path_settle(tree, NULL);
  rondo_tree_check(tree);
  rondo_arena_get_info(tree->arena, &arena);
  *out = tree->info;
  out->roots = count_roots(tree);
  out->live_outputs = count_live(tree);
  out->path_length = tree->current == NULL ? 0 : tree->current->depth;
  out->arena_bytes = arena.backed;
  out->arena_used = arena.high;
  out->arena_minimum = rondo_recorded_arena_minimum(tree);
  out->exec_host_bytes = tree->exec_bytes[0];
  out->exec_device_bytes = tree->exec_bytes[1];
}

rondo_status rondo_tree_get_info(rondo_tree *tree, rondo_tree_info *out_info) {
  const char *const call = "rondo_tree_get_info";
  rondo_tree_info info;
  RONDO_TRY(rondo_check_call(call, "the tree", tree));
  RONDO_TRY(rondo_require(call, "out_info", out_info));
  RONDO_TRY(rondo_tree_enter(tree, call));
  rondo_tree_read_info(tree, &info);
  rondo_tree_leave(tree);
  return rondo_versioned_write("rondo_tree_info", &info, out_info, sizeof info);
}

rondo_status rondo_tree_get_last_call(rondo_tree *tree, rondo_call_info *out_info) {
  const char *const call = "rondo_tree_get_last_call";
  RONDO_TRY(rondo_check_call(call, "the tree", tree));
  RONDO_TRY(rondo_require(call, "out_info", out_info));
  RONDO_TRY(rondo_tree_enter(tree, call));
  rondo_call_info info = tree->last_call;
  info.message = info.skip == RONDO_SKIP_NONE ? "" : tree->message;
  rondo_tree_leave(tree);
  return rondo_versioned_write("rondo_call_info", &info, out_info, sizeof info);
}
