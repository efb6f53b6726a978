/* SPDX-License-Identifier: MIT
 * Arenas: the memory of recordings that follow each other. Memory that is live when a recording begins is never
 * overwritten (TR-4). Recordings that never run at once use the same bytes (TR-3). A launch is only the driver's
 * launch. An address of an arena is recognized in every call that takes an address.
 */
#include "exec/capture/arena_capture.h"
#include "exec/launch/exec_internal.h"
#include "graph/graph.h"
#include "memory/arena/arena_guard.h"
#include "memory/arena/arena_internal.h"
#include "memory/arena/arena_recording.h"
#include "memory/arena/arena_recording_plan.h"
#include "support/test_assertion.h"
#include "support/test_effort.h"
#include "unit/memory/arena_test.h"

#define KIB ((size_t)1024)
#define WORDS 1024
#define BYTES (WORDS * sizeof(uint32_t))

/* Memory ---------------------------------------------------------------------------------------------------------- */

/* Whole pages are backed from the base on, and counted; trimming releases whole pieces from the end. */
TEST(test_backing) {
  rondo_arena *arena = test_leave_arena(t, 0);
  const size_t page = test_whole_pages(t, 1);
  const rondo_memory_statistics before = test_memory_statistics(t);
  rondo_arena_info info = test_arena_info(arena);
  assert_non_null(info.base);
  assert_true(info.reserved >= (size_t)1 << 30);
  assert_true(info.backed == 0 && info.high == 0 && info.recordings == 0);
  assert_ok(rondo_arena_back(arena, 1));
  assert_ok(rondo_arena_back(arena, 3 * page));
  assert_ok(rondo_arena_back(arena, page));
  rondo_arena_get_info(arena, &info);
  assert_int_equal(info.backed, 3 * page);
  rondo_memory_statistics now = test_memory_statistics(t);
  assert_int_equal(now.arena_backed - before.arena_backed, 3 * page);
  assert_int_equal(now.graph_used - before.graph_used, 3 * page);
  assert_int_equal(now.graph_reserved - before.graph_reserved, 3 * page);
  assert_ok(rondo_arena_trim(arena, page + 1));
  rondo_arena_get_info(arena, &info);
  assert_int_equal(info.backed, 3 * page);
  assert_ok(rondo_arena_trim(arena, page));
  rondo_arena_get_info(arena, &info);
  assert_int_equal(info.backed, page);
  assert_ok(rondo_arena_trim(arena, 0));
  now = test_memory_statistics(t);
  assert_int_equal(now.arena_backed, before.arena_backed);
  assert_int_equal(now.arena_backed_high - before.arena_backed, 3 * page);
  assert_ok(rondo_memory_reset_highs(t->device));
  assert_int_equal(test_memory_statistics(t).arena_backed_high, before.arena_backed);
}

/* More than the arena reserved, or than the device has, is refused, and the backed bytes stay. */
TEST(test_backing_is_refused) {
  const size_t page = test_whole_pages(t, 1);
  rondo_arena *arena = test_leave_arena(t, 4 * page);
  rondo_arena_info info;
  assert_ok(rondo_arena_back(arena, page));
  assert_error(rondo_arena_back(arena, 4 * page + 1), RONDO_LIMIT_EXCEEDED, RONDO_REASON_ADDRESS_SPACE);
  assert_message("arena 'tree'");
  assert_error(rondo_arena_back(arena, SIZE_MAX), RONDO_LIMIT_EXCEEDED, RONDO_REASON_ADDRESS_SPACE);
  rondo_arena_get_info(arena, &info);
  assert_int_equal(info.backed, page);
  assert_int_equal(info.reserved, 4 * page);
}

/* Recordings ------------------------------------------------------------------------------------------------------- */

/* A recording makes an output; the next one reads it and does not change it, with its own scratch memory. */
TEST(test_tr4_outputs_are_not_overwritten) {
  rondo_arena *arena = test_leave_arena(t, 0);
  uint32_t *output = NULL, *scratch = NULL, *sum = NULL;
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
  scratch = test_arena_malloc(t, BYTES, "scratch");
  test_arena_set(t, scratch, WORDS, 5);
  output = test_arena_malloc(t, BYTES, "output");
  test_arena_combine(t, scratch, scratch, output, WORDS);
  assert_ok(rondo_free_async(t->stream, scratch));
  recorded_graph first = test_arena_end(t, arena);
  assert_int_equal(first.read.output_count, 1);
  assert_ptr_equal(first.read.outputs[0].address, output);
  assert_int_equal(first.read.outputs[0].bytes, BYTES);
  assert_string_equal(first.read.outputs[0].name, "output");
  assert_int_equal(first.read.outputs[0].allocation, 1);
  assert_false(first.read.planned);

  rondo_arena_block block = {.address = output, .bytes = BYTES, .name = "output"};
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena, .blocks = &block, .block_count = 1});
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t *other = test_arena_malloc(t, BYTES, "other");
    assert_true((char *)other + BYTES <= (char *)output || (char *)other >= (char *)output + BYTES);
    test_arena_set(t, other, WORDS, 77 + i);
    if (i == 3) {
      sum = test_arena_malloc(t, BYTES, "sum");
      test_arena_combine(t, output, other, sum, WORDS);
    }
    assert_ok(rondo_free_async(t->stream, other));
  }
  recorded_graph second = test_arena_end(t, arena);
  for (int times = 0; times < 3; times++) {
    assert_ok(rondo_exec_launch(first.exec, t->stream));
    assert_ok(rondo_exec_launch(second.exec, t->stream));
    test_arena_assert(t, output, WORDS, 5 * 32);
    test_arena_assert(t, sum, WORDS, 5 * 32 * 31 + 80);
  }
  assert_false(first.exec->has_extras || second.exec->has_extras);
  rondo_arena_info info = test_arena_info(arena);
  assert_int_equal(info.recordings, 2);
  assert_int_equal(info.high, second.read.need > first.read.need ? second.read.need : first.read.need);
  test_recording_free(&second);
  test_recording_free(&first);
  rondo_arena_get_info(arena, &info);
  assert_int_equal(info.recordings, 0);
}

/* Later allocations of the recording that frees a block use its bytes, and no other recording's do. */
TEST(test_a_freed_block_is_used_again) {
  rondo_arena *arena = test_leave_arena(t, 0);
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
  uint32_t *input = test_arena_malloc(t, BYTES, "input");
  test_arena_set(t, input, WORDS, 3);
  recorded_graph first = test_arena_end(t, arena);
  rondo_arena_block blocks[] = {{.address = input, .bytes = BYTES, .name = "input", .key = 7}};
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena, .blocks = blocks, .block_count = 1});
  uint32_t *before = test_arena_malloc(t, BYTES, "before");
  test_arena_combine(t, input, input, before, WORDS);
  assert_ok(rondo_free_async(t->stream, input));
  uint32_t *after = test_arena_malloc(t, BYTES, "after");
  assert_true(before != input);
  if (!test_is_guarded(t)) assert_ptr_equal(after, input);
  test_arena_combine(t, before, before, after, WORDS);
  recorded_graph second = test_arena_end(t, arena);
  assert_int_equal(second.read.ended_count, 1);
  assert_int_equal(second.read.ended[0], 0);
  assert_int_equal(second.read.output_count, 2);
  for (int times = 0; times < 2; times++) {
    assert_ok(rondo_exec_launch(first.exec, t->stream));
    assert_ok(rondo_exec_launch(second.exec, t->stream));
    test_arena_assert(t, after, WORDS, 3 * 32 * 32);
  }
  rondo_noted_lifetimes *noted = NULL;
  assert_ok(rondo_noted_lifetimes_of_graph(second.graph, &noted));
  assert_int_equal(noted->lifetimes.count, 2);
  assert_non_null(rondo_noted_find_end(noted, 7));
  assert_null(rondo_noted_find_end(noted, 8));
  rondo_noted_lifetimes_release(noted);
  test_recording_free(&second);
  test_recording_free(&first);
}

/* Slots belong to the recording until it ends, and to nothing else. */
TEST(test_slots) {
  rondo_arena *arena = test_leave_arena(t, 0);
  rondo_arena_slot slots[] = {{.bytes = BYTES, .name = "x"}, {.bytes = 10, .name = "y"}};
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena, .slots = slots, .slot_count = 2});
  assert_non_null(slots[0].address);
  assert_true((uintptr_t)slots[0].address % 256 == 0 && (uintptr_t)slots[1].address % 256 == 0);
  assert_true(slots[0].address != slots[1].address);
  uint32_t *output = test_arena_malloc(t, BYTES, "output");
  assert_true(output != slots[0].address);
  test_arena_combine(t, slots[0].address, slots[0].address, output, WORDS);
  recorded_graph recording = test_arena_end(t, arena);
  assert_true(recording.read.need >= 2 * BYTES + 256);
  for (uint32_t value = 1; value < 4; value++) {
    uint32_t words[WORDS];
    for (size_t i = 0; i < WORDS; i++) words[i] = value;
    test_write(t, slots[0].address, words, sizeof words);
    assert_ok(rondo_exec_launch(recording.exec, t->stream));
    test_arena_assert(t, output, WORDS, value * 32);
  }
  test_recording_free(&recording);
}

/* Order ----------------------------------------------------------------------------------------------------------- */

/* Forked streams allocate in the arena too. Allocations without an order share no bytes, with and without a plan. */
TEST(test_gm11_forked_streams) {
  rondo_arena *arena = test_leave_arena(t, 0);
  rondo_stream *side = test_stream(t, "side");
  rondo_noted_lifetimes *noted = NULL;
  for (int planned = 0; planned < 2; planned++) {
    rondo_arena_slot slot = {.bytes = BYTES, .name = "x"};
    void *left = NULL;
    rondo_arena_setting setting = {.arena = arena, .slots = &slot, .slot_count = 1, .lifetimes = noted};
    test_arena_begin(t, &setting);
    void *first = test_arena_malloc(t, BYTES, "first");
    test_arena_combine(t, slot.address, slot.address, first, WORDS);
    test_order(t, t->stream, side);
    void *right = test_allocate_async(side, BYTES);
    const void *args[] = {first, first, right};
    assert_ok(rondo_launch(side, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){.x = WORDS},
                           RONDO_ARGS(&args[0], &args[1], &args[2])));
    left = test_arena_malloc(t, BYTES, "left");
    test_arena_combine(t, first, first, left, WORDS);
    assert_true(left != right);
    test_order(t, side, t->stream);
    assert_ok(rondo_free_async(t->stream, first));
    void *last = test_arena_malloc(t, BYTES, "last");
    if (planned == 0 && !test_is_guarded(t)) assert_ptr_equal(last, first);
    test_arena_combine(t, left, right, last, WORDS);
    assert_ok(rondo_free_async(t->stream, left));
    assert_ok(rondo_free_async(t->stream, right));
    recorded_graph recording = test_arena_end(t, arena);
    assert_int_equal(recording.read.planned, planned == 1 && !test_is_guarded(t));
    assert_false(recording.read.departed);
    if (!test_is_guarded(t)) assert_int_equal(recording.read.need, 4 * BYTES);
    assert_int_equal(recording.read.least, 4 * BYTES);
    uint32_t words[WORDS];
    for (size_t i = 0; i < WORDS; i++) words[i] = 2;
    test_write(t, slot.address, words, sizeof words);
    assert_ok(rondo_exec_launch(recording.exec, t->stream));
    test_arena_assert(t, last, WORDS, 2 * 32 * 32 * 32);
    rondo_noted_lifetimes_release(noted);
    noted = NULL;
    assert_ok(rondo_noted_lifetimes_of_graph(recording.graph, &noted));
    test_recording_free(&recording);
  }
  rondo_noted_lifetimes_release(noted);
}

/* A recording reports that it departed from its plan; its own lifetimes are a plan for the next one. */
TEST(test_departures) {
  if (test_is_guarded(t)) skip(); /* where no plan is followed */
  rondo_arena *arena = test_leave_arena(t, 0);
  rondo_noted_lifetimes *noted = NULL;
  for (uint32_t i = 0; i < 4; i++) {
    const size_t bytes = i == 0 ? BYTES : i == 1 ? 2 * BYTES : 3 * BYTES;
    test_arena_begin(t, &(rondo_arena_setting){.arena = arena, .lifetimes = noted});
    void *first = test_arena_malloc(t, bytes, "first");
    test_arena_set(t, first, WORDS, 1);
    assert_ok(rondo_free_async(t->stream, first));
    if (i != 3) (void)test_arena_malloc(t, bytes, "second");
    recorded_graph recording = test_arena_end(t, arena);
    assert_int_equal(recording.read.departed, i > 0);
    assert_int_equal(recording.read.planned, i > 0);
    assert_ok(rondo_exec_launch(recording.exec, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
    rondo_noted_lifetimes_release(noted);
    assert_ok(rondo_noted_lifetimes_of_graph(recording.graph, &noted));
    test_recording_free(&recording);
  }
  rondo_noted_lifetimes_release(noted);
}

/* A path is planned after existing recordings. Impossible ends are refused, with the part and the allocation. */
TEST(test_paths_after_blocks) {
  rondo_arena *arena = test_leave_arena(t, 0);
  rondo_arena_info info = test_arena_info(arena);
  rondo_noted_lifetimes *noted[2] = {NULL, NULL};
  rondo_arena_block block = {.address = info.base, .bytes = BYTES, .name = "before", .key = 5};
  for (uint32_t i = 0; i < 2; i++) {
    assert_ok(rondo_profile_begin(t->stream));
    void *output = test_allocate_async(t->stream, 2 * BYTES);
    if (i == 0) rondo_profile_note_end(t->stream, 5);
    if (i == 1) rondo_profile_note_end(t->stream, 6);
    void *scratch = test_arena_malloc(t, BYTES, "scratch");
    assert_ok(rondo_free_async(t->stream, scratch));
    assert_ok(rondo_profile_end_noted(t->stream, &noted[i]));
    assert_ok(rondo_free_async(t->stream, output));
    assert_int_equal(noted[i]->lifetimes.count, 2);
  }
  const rondo_path_end good = {.allocation = 0, .part = 1, .key = 6};
  rondo_path_part parts[] = {{.lifetimes = noted[0], .ends = &good, .end_count = 1}, {.lifetimes = noted[1]}};
  rondo_plan_info plan = {.struct_size = sizeof plan};
  assert_ok(rondo_arena_plan_path(arena, &block, 1, parts, 2, NULL, &plan));
  assert_true(plan.peak == 4 * BYTES && plan.lower_bound == 4 * BYTES); /* two outputs; the block's bytes for scratch */
  for (uint32_t i = 0; i < 2; i++) {
    rondo_arena_setting setting = {.arena = arena, .blocks = &block, .block_count = 1, .profile = parts[i].profile};
    test_arena_begin(t, &setting);
    void *output = test_arena_malloc(t, 2 * BYTES, "output");
    assert_ok(rondo_free_async(t->stream, block.address));
    void *scratch = test_arena_malloc(t, BYTES, "scratch");
    if (i == 0 && !test_is_guarded(t)) assert_ptr_equal(scratch, info.base);
    assert_ok(rondo_free_async(t->stream, scratch));
    recorded_graph recording = test_arena_end(t, arena);
    assert_false(recording.read.departed);
    test_recording_free(&recording);
    rondo_profile_destroy(parts[i].profile);
    block = (rondo_arena_block){.address = output, .bytes = 2 * BYTES, .name = "output", .key = 6};
  }
  const rondo_path_end bad[] = {{.allocation = 7, .part = 1},           {.allocation = 0, .part = 0},
                                {.allocation = 0, .part = 3},           {.allocation = 1, .part = 1},
                                {.allocation = 0, .part = 1, .key = 9}, {.allocation = 0, .part = 2, .key = 6}};
  static const char *const said[] = {"names no allocation of the part",
                                     "does not come after the part",
                                     "does not come after the part",
                                     "is not its first end",
                                     "has a key that the part's lifetimes do not contain",
                                     "does not come after the part"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    parts[0].ends = &bad[i];
    assert_error(rondo_arena_plan_path(arena, NULL, 0, parts, 2, NULL, NULL), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_OUT_OF_RANGE);
    assert_message("part 0 of a path: the end of allocation");
    assert_message(said[i]);
    assert_null(parts[0].profile);
  }
  block.address = noted;
  parts[0].end_count = 0;
  assert_error(rondo_arena_plan_path(arena, &block, 1, parts, 2, NULL, NULL), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_FOREIGN_ADDRESS);
  assert_message("block 'output' (8.0 KiB) at");
  assert_message("is not memory of arena 'tree'");
  for (uint32_t i = 0; i < 2; i++) rondo_noted_lifetimes_release(noted[i]);
}

/* An edge that orders a reuse of a block's bytes after the block's free cannot be removed. */
TEST(test_removal_keeps_blocks) {
  if (test_is_guarded(t)) skip(); /* where no bytes are given out twice */
  rondo_arena *arena = test_leave_arena(t, 0);
  rondo_arena_info info = test_arena_info(arena);
  const rondo_arena_block block = {.address = info.base, .bytes = BYTES, .name = "input"};
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena, .blocks = &block, .block_count = 1});
  assert_ok(rondo_free_async(t->stream, info.base));
  assert_ptr_equal(test_arena_malloc(t, BYTES, "after"), info.base);
  rondo_graph *graph = test_capture_end(t->stream);
  const rondo_node from = rondo_graph_id(graph, 0), to = rondo_graph_id(graph, 1);
  assert_error(rondo_graph_remove_edges(graph, &from, &to, 1), RONDO_INVALID_STATE, RONDO_REASON_EDGE_IN_USE);
  assert_message("'input'");
  assert_error(rondo_graph_remove(graph, from), RONDO_INVALID_STATE, RONDO_REASON_EDGE_IN_USE);
  assert_ok(rondo_graph_remove(graph, to));
  assert_ok(rondo_graph_remove(graph, from));
}

/* Verification ----------------------------------------------------------------------------------------------------- */

/* Found: a use of a freed block, by name; an access to bytes where nothing is live; a freed slot; a duplicate block. */
TEST(test_mistakes_are_found) {
  rondo_arena *arena = test_leave_arena(t, 0);
  rondo_exec *exec = NULL;
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
  char *input = test_arena_malloc(t, BYTES, "input");
  (void)test_arena_malloc(t, BYTES, "where the slot is");
  char *stale = test_arena_malloc(t, BYTES, "stale");
  recorded_graph first = test_arena_end(t, arena);

  rondo_arena_slot slot = {.bytes = BYTES, .name = "x"};
  const rondo_arena_block block = {.address = input, .bytes = BYTES, .name = "the input"};
  rondo_arena_setting setting = {.arena = arena, .blocks = &block, .block_count = 1, .slots = &slot, .slot_count = 1};
  test_arena_begin(t, &setting);
  assert_error(rondo_free_async(t->stream, slot.address), RONDO_INVALID_ARGUMENT, RONDO_REASON_FOREIGN_ADDRESS);
  assert_message("slot 'x'");
  assert_error(rondo_free_async(t->stream, stale), RONDO_INVALID_ARGUMENT, RONDO_REASON_FOREIGN_ADDRESS);
  assert_message("arena 'tree'");
  assert_ok(rondo_free_async(t->stream, input));
  assert_error(rondo_free_async(t->stream, input), RONDO_INVALID_ARGUMENT, RONDO_REASON_DOUBLE_FREE);
  assert_message("'the input'");
  test_arena_combine(t, input, input, slot.address, WORDS);
  rondo_graph *graph = test_capture_end(t->stream);
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  assert_message("'the input'");
  test_graph_destroy(graph);

  test_arena_begin(t, &setting);
  test_arena_combine(t, input, stale, slot.address, WORDS);
  graph = test_capture_end(t->stream);
  assert_error(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  assert_message("arena 'tree'");
  test_graph_destroy(graph);
  test_recording_free(&first);
}

/* Parameters that are set in an exec are checked against the recording too. */
TEST(test_set_params_is_verified) {
  rondo_arena *arena = test_leave_arena(t, 0);
  rondo_arena_slot slots[] = {{.bytes = BYTES, .name = "x"}, {.bytes = BYTES, .name = "y"}};
  rondo_arena_setting setting = {.arena = arena, .slots = slots, .slot_count = 2};
  test_arena_begin(t, &setting);
  test_arena_combine(t, slots[0].address, slots[0].address, slots[1].address, WORDS);
  recorded_graph recording = test_arena_end(t, arena);
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                              .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_COMBINE), .grid = {.x = WORDS}}};
  const void *stale = (char *)slots[0].address + 32 * 1024 * KIB;
  const void *values[] = {slots[1].address, slots[1].address, slots[0].address};
  const void *args[] = {&values[0], &values[1], &values[2]};
  params.as.kernel.args = args;
  params.as.kernel.arg_count = 3;
  assert_ok(rondo_exec_set_params(recording.exec, rondo_graph_id(recording.graph, 0), &params));
  values[0] = stale;
  assert_error(rondo_exec_set_params(recording.exec, rondo_graph_id(recording.graph, 0), &params),
               RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  test_recording_free(&recording);
}

/* Addresses outside of recordings ---------------------------------------------------------------------------------- */

TEST(test_gm18_frees_outside_are_refused) {
  rondo_arena *arena = test_leave_arena(t, 0);
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
  uint32_t *output = test_arena_malloc(t, BYTES, "output");
  test_arena_set(t, output, WORDS, 9);
  recorded_graph recording = test_arena_end(t, arena);
  assert_ok(rondo_exec_launch(recording.exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_error(rondo_free(t->device, output), RONDO_INVALID_LIFETIME, RONDO_REASON_FOREIGN_ADDRESS);
  assert_message("arena 'tree'");
  assert_error(rondo_free_async(t->stream, output + 8), RONDO_INVALID_LIFETIME, RONDO_REASON_FOREIGN_ADDRESS);
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_error(rondo_graph_add_free(graph, NULL, 0, output, &node), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_FOREIGN_ADDRESS);
  assert_message("arena 'tree'");
  test_graph_destroy(graph);

  rondo_arena_info info = test_arena_info(arena);
  char *base = info.base;
  uint32_t word = 0;
  assert_error(rondo_host_free(t->device, output), RONDO_INVALID_LIFETIME, RONDO_REASON_WRONG_MEMORY);
  assert_message("arena 'tree'");
  assert_error(rondo_host_free(t->device, base + info.backed), RONDO_INVALID_LIFETIME,
               RONDO_REASON_WRONG_MEMORY); /* not backed by memory */
  test_arena_assert(t, output, WORDS, 9);
  assert_error(rondo_copy_async(t->stream, &word, base + info.backed, sizeof word), RONDO_INVALID_LIFETIME,
               RONDO_REASON_NOT_ALLOCATED);
  assert_message("arena 'tree'");
  assert_error(rondo_copy_async(t->stream, &word, base + info.backed - 2, sizeof word), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_OUT_OF_RANGE);
  test_recording_free(&recording);
}

/* A graph that is not a recording of the arena reads a live output. */
TEST(test_others_read_outputs) {
  rondo_arena *arena = test_leave_arena(t, 0);
  uint32_t *words = test_words(t, WORDS);
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
  uint32_t *output = test_arena_malloc(t, BYTES, "output");
  test_arena_set(t, output, WORDS, 9);
  recorded_graph recording = test_arena_end(t, arena);
  assert_ok(rondo_exec_launch(recording.exec, t->stream));
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_arena_combine(t, output, output, words, WORDS);
  rondo_graph *graph = test_capture_end(t->stream);
  test_run_once(t, graph);
  test_arena_assert(t, words, WORDS, 9 * 32);
  test_recording_free(&recording);
}

/* Graphs and execs ------------------------------------------------------------------------------------------------- */

/* Recordings of the same shape share an exec by updating it, also with other blocks. */
TEST(test_gx5_update_to_another_recording) {
  rondo_arena *arena = test_leave_arena(t, 0);
  recorded_graph recordings[2];
  uint32_t *outputs[2] = {NULL, NULL};
  for (uint32_t i = 0; i < 2; i++) {
    const rondo_arena_block block = {.address = outputs[0], .bytes = BYTES, .name = "first"};
    test_arena_begin(t, &(rondo_arena_setting){.arena = arena, .blocks = &block, .block_count = i});
    void *scratch = test_arena_malloc(t, BYTES, "scratch");
    test_arena_set(t, scratch, WORDS, i + 1);
    outputs[i] = test_arena_malloc(t, BYTES, "output");
    test_arena_combine(t, scratch, scratch, outputs[i], WORDS);
    assert_ok(rondo_free_async(t->stream, scratch));
    recordings[i] = test_arena_end(t, arena);
  }
  rondo_exec *shared = test_instantiate(recordings[0].graph);
  for (uint32_t times = 0; times < 4; times++) {
    const uint32_t i = times % 2;
    assert_ok(rondo_exec_update(shared, recordings[i].graph, NULL));
    assert_false(shared->has_extras);
    assert_ok(rondo_exec_launch(shared, t->stream));
    test_arena_assert(t, outputs[i], WORDS, (i + 1) * 32);
  }
  test_recording_free(&recordings[1]);
  test_recording_free(&recordings[0]);
}

/* Clones launch like their originals; relocating is refused; graphs and execs keep the arena after its owner released
 * it. */
TEST(test_gm20_clones_and_relocation) {
  rondo_arena *arena = test_arena(t, 0);
  rondo_graph *clone = NULL;
  rondo_exec *exec = NULL;
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
  uint32_t *output = test_arena_malloc(t, BYTES, "output");
  void *scratch = test_arena_malloc(t, BYTES, "scratch");
  test_arena_set(t, scratch, WORDS, 3);
  test_arena_combine(t, scratch, scratch, output, WORDS);
  assert_ok(rondo_free_async(t->stream, scratch));
  recorded_graph recording = test_arena_end(t, arena);
  const rondo_instantiate_options relocate = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = true};
  assert_error(rondo_instantiate(recording.graph, &relocate, &exec), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RELOCATABLE);
  assert_ok(rondo_graph_clone(recording.graph, &clone));
  assert_ptr_equal(rondo_arena_of(clone), arena);
  test_recording_free(&recording);
  rondo_arena_destroy(arena);
  exec = test_instantiate(clone);
  test_graph_destroy(clone);
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_arena_assert(t, output, WORDS, 3 * 32);
  assert_true(test_memory_statistics(t).arena_backed > 0);
  rondo_exec_destroy(exec);
  assert_int_equal(test_memory_statistics(t).arena_backed, 0);
}

/* Recordings as children of a graph, one after the other: the first one's output is the second one's block, and the
 * second frees it. A graph with its own memory inside a recording is mapped as usual. */
TEST(test_children) {
  rondo_arena *arena = test_leave_arena(t, 0);
  uint32_t *words = test_words(t, WORDS);
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
  uint32_t *output = test_arena_malloc(t, BYTES, "output");
  test_arena_set(t, output, WORDS, 4);
  recorded_graph first = test_arena_end(t, arena);
  const rondo_arena_block block = {.address = output, .bytes = BYTES, .name = "block", .key = 1};
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena, .blocks = &block, .block_count = 1});
  void *between = test_arena_malloc(t, BYTES, "between");
  test_arena_combine(t, output, output, between, WORDS);
  assert_ok(rondo_free_async(t->stream, output));
  void *after = test_arena_malloc(t, BYTES, "after");
  test_arena_combine(t, between, between, after, WORDS);
  test_arena_combine(t, after, after, words, WORDS);
  assert_ok(rondo_free_async(t->stream, between));
  assert_ok(rondo_free_async(t->stream, after));
  recorded_graph second = test_arena_end(t, arena);

  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_exec_launch(first.exec, t->stream));
  assert_ok(rondo_exec_launch(second.exec, t->stream));
  rondo_graph *both = test_capture_end(t->stream);
  test_run_once(t, both);
  test_arena_assert(t, words, WORDS, 4u * 32 * 32 * 32);
  test_graph_destroy(both);

  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  void *own = test_arena_malloc(t, BYTES, "own");
  test_arena_set(t, own, WORDS, 6);
  test_arena_combine(t, own, own, words, WORDS);
  assert_ok(rondo_free_async(t->stream, own));
  rondo_graph *plain = test_capture_end(t->stream);
  rondo_exec *inner = test_instantiate(plain);
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
  assert_ok(rondo_exec_launch(inner, t->stream));
  void *result = test_arena_malloc(t, BYTES, "result");
  test_arena_combine(t, words, words, result, WORDS);
  recorded_graph outer = test_arena_end(t, arena);
  assert_true(outer.exec->has_extras);
  assert_ok(rondo_exec_launch(outer.exec, t->stream));
  test_arena_assert(t, result, WORDS, 6 * 32 * 32);
  test_recording_free(&outer);
  test_recording_free(&second);
  test_recording_free(&first);
}

/* Bad settings, and captures that fail, leave no trace. */
TEST(test_bad_settings) {
  rondo_arena *arena = test_leave_arena(t, 0);
  rondo_arena_info info = test_arena_info(arena);
  char *base = info.base;
  rondo_arena_block blocks[] = {{.address = base, .bytes = BYTES, .name = "a"},
                                {.address = base + BYTES - 256, .bytes = BYTES, .name = "b"}};
  rondo_arena_setting setting = {.arena = arena, .blocks = blocks, .block_count = 2};
  assert_error(rondo_capture_begin_in_arena(t->stream, RONDO_CAPTURE_THREAD_LOCAL, &setting), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_FOREIGN_ADDRESS);
  assert_message("of a recording overlap, so one of them is not live");
  blocks[1].address = blocks;
  assert_error(rondo_capture_begin_in_arena(t->stream, RONDO_CAPTURE_THREAD_LOCAL, &setting), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_FOREIGN_ADDRESS);
  assert_message("block 'b' (");
  assert_message("is not memory of arena 'tree'");
  rondo_arena_slot slot = {.bytes = 0};
  setting = (rondo_arena_setting){.arena = arena, .slots = &slot, .slot_count = 1};
  assert_error(rondo_capture_begin_in_arena(t->stream, RONDO_CAPTURE_THREAD_LOCAL, &setting), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_BAD_SIZE);
  assert_message("slot 0 of a recording has 0 bytes");
  slot.bytes = info.reserved + 1;
  assert_fails(rondo_capture_begin_in_arena(t->stream, RONDO_CAPTURE_THREAD_LOCAL, &setting), RONDO_OUT_OF_MEMORY);
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
  (void)test_arena_malloc(t, BYTES, "output");
  rondo_graph *graph = NULL;
  assert_fails(rondo_stream_synchronize(t->stream), RONDO_CAPTURE_REFUSED);
  assert_fails(rondo_capture_end(t->stream, &graph), RONDO_CAPTURE_INVALID);
  rondo_arena_get_info(arena, &info);
  assert_true(info.recordings == 0 && info.high == 0);
  graph = test_graph(t);
  rondo_arena_recording read;
  assert_error(rondo_arena_recording_read(graph, &read), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  test_graph_destroy(graph);
}

/* Other devices may access the arena once a malloc is captured whose pool allows it (GM-17). */
TEST(test_gm17_peers) {
  if (!test_device_is("cpu")) skip();
  rondo_arena *arena = test_arena(t, 0);
  rondo_device *other = NULL;
  rondo_stream *stream = NULL;
  rondo_kernel *kernel = NULL;
  rondo_pool *pool = NULL;
  void *out = NULL;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &t->allocator.table};
  assert_ok(rondo_device_open(test_is_guarded(t) ? "cpu:check:1" : "cpu:1", &options, &other));
  assert_ok(rondo_stream_create(other, NULL, &stream));
  assert_ok(rondo_kernel_create(other, test_kernel_options(TEST_KERNEL_COMBINE), &kernel));
  assert_ok(rondo_malloc(other, BYTES, "out", &out));
  assert_ok(rondo_device_get_default_pool(t->device, &pool));
  for (int shared = 0; shared < 2; shared++) {
    assert_ok(rondo_pool_set_access(pool, other, shared == 1));
    test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
    void *output = test_arena_malloc(t, BYTES, "output");
    test_arena_set(t, output, WORDS, 5);
    recorded_graph recording = test_arena_end(t, arena);
    assert_ok(rondo_exec_launch(recording.exec, t->stream));
    assert_ok(rondo_stream_synchronize(t->stream));
    const rondo_grid grid = {.x = WORDS};
    if (shared == 1)
      assert_ok(rondo_launch(stream, kernel, grid, RONDO_ARGS(&output, &output, &out)));
    else
      assert_error(rondo_launch(stream, kernel, grid, RONDO_ARGS(&output, &output, &out)), RONDO_INVALID_ARGUMENT,
                   RONDO_REASON_NO_ACCESS);
    uint32_t word = 0;
    assert_ok(rondo_copy_async(stream, &word, out, sizeof word));
    assert_ok(rondo_stream_synchronize(stream));
    if (shared == 1) assert_int_equal(word, 5 * 32);
    test_recording_free(&recording);
  }
  assert_ok(rondo_free(other, out));
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_stream_destroy(stream));
  rondo_arena_destroy(arena);
  assert_ok(rondo_device_close(other));
}

/* A limit on the device's memory applies to the arena too; idle memory of pools is reclaimed first. */
DEVICE_TEST(test_limited_memory) {
  if (!test_device_is("cpu")) skip();
  test_allocator allocator;
  test_allocator_init(&allocator);
  test_fixture limited = {.device = NULL};
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table,
                                        .memory_limit_bytes = 8192 * KIB};
  assert_ok(rondo_device_open("cpu:2", &options, &limited.device));
  assert_ok(rondo_stream_create(limited.device, NULL, &limited.stream));
  rondo_arena *arena = test_arena(&limited, 0);
  void *idle = test_allocate_async(limited.stream, 3072 * KIB);
  assert_ok(rondo_free_async(limited.stream, idle));
  assert_ok(rondo_arena_back(arena, 1024 * KIB));
  assert_error(rondo_arena_back(arena, 16384 * KIB), RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED);
  assert_message("arena 'tree'");
  assert_message("1.0 MiB by arenas");
  rondo_arena_info info = test_arena_info(arena);
  assert_int_equal(info.backed, 1024 * KIB);
  assert_int_equal(test_memory_statistics(&limited).arena_backed, 1024 * KIB);
  assert_ok(rondo_arena_back(arena, 7168 * KIB));
  rondo_arena_destroy(arena);
  assert_ok(rondo_stream_destroy(limited.stream));
  assert_ok(rondo_device_close(limited.device));
  assert_int_equal(allocator.live, 0);
}

/* Each thread has its own arena and stream, and makes, launches and destroys recordings while other threads read. */
typedef struct trunk {
  test_fixture *fixture;
  rondo_stream *stream;
  rondo_arena *arena;
  rondo_kernel *kernel;
  uint32_t number;
  rondo_status status;
} trunk;

static rondo_status grow_trunk(trunk *self, uint32_t value) {
  void *output = NULL, *scratch = NULL;
  const rondo_grid grid = {.x = 64};
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  uint32_t word = 0;
  rondo_arena_setting setting = {.arena = self->arena};
  RONDO_TRY(rondo_capture_begin_in_arena(self->stream, RONDO_CAPTURE_RELAXED, &setting));
  RONDO_TRY(rondo_malloc_async(self->stream, BYTES * (1 + value % 7), NULL, &scratch));
  RONDO_TRY(rondo_malloc_async(self->stream, BYTES, NULL, &output));
  RONDO_TRY(rondo_launch(self->stream, self->kernel, grid, RONDO_ARGS(&value, &output)));
  RONDO_TRY(rondo_free_async(self->stream, scratch));
  RONDO_TRY(rondo_capture_end(self->stream, &graph));
  rondo_arena_recording read;
  rondo_status status = rondo_arena_recording_read(graph, &read);
  if (status == RONDO_OK) status = rondo_arena_back(self->arena, read.need);
  if (status == RONDO_OK) status = rondo_instantiate(graph, NULL, &exec);
  if (status == RONDO_OK) status = rondo_exec_launch(exec, self->stream);
  if (status == RONDO_OK) status = rondo_copy_async(self->stream, &word, output, sizeof word);
  if (status == RONDO_OK) status = rondo_stream_synchronize(self->stream);
  if (status == RONDO_OK && word != value) status = RONDO_EXECUTION_FAILED;
  rondo_exec_destroy(exec);
  rondo_arena_recording_free(&read);
  const rondo_status destroyed = rondo_graph_destroy(graph);
  if (status == RONDO_OK && value % 16 == 0) status = rondo_arena_trim(self->arena, 0);
  return status == RONDO_OK ? destroyed : status;
}

static void grow_trunks(void *user) {
  trunk *self = user;
  for (uint32_t i = 0; i < test_effort(200) && self->status == RONDO_OK; i++)
    self->status = grow_trunk(self, self->number * 1000 + i);
}

static void look_on(void *user) {
  trunk *self = user;
  for (uint32_t i = 0; i < test_effort(400) && self->status == RONDO_OK; i++) {
    rondo_memory_statistics now = {.struct_size = sizeof now};
    rondo_arena_info info;
    void *address = NULL;
    self->status = rondo_memory_get_statistics(self->fixture->device, &now);
    rondo_arena_get_info(self->arena, &info);
    if (self->status == RONDO_OK && rondo_free(self->fixture->device, info.base) == RONDO_OK)
      self->status = RONDO_EXECUTION_FAILED;
    if (self->status == RONDO_OK) self->status = rondo_malloc(self->fixture->device, BYTES, "other", &address);
    if (self->status == RONDO_OK) self->status = rondo_free(self->fixture->device, address);
  }
}

TEST(test_threads_with_an_arena_each) {
  trunk trunks[3] = {{.number = 1}, {.number = 2}, {.number = 3}};
  test_thread threads[3];
  for (uint32_t i = 0; i < 3; i++) {
    trunks[i].fixture = t;
    trunks[i].arena = test_arena(t, 0);
    trunks[i].stream = test_stream(t, NULL);
    trunks[i].kernel = test_kernel(t, TEST_KERNEL_SET);
    threads[i] = (test_thread){.function = i == 2 ? look_on : grow_trunks, .user = &trunks[i]};
  }
  test_on_threads(threads, 3);
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(trunks[i].status, RONDO_OK);
    test_stream_destroy(trunks[i].stream);
    rondo_arena_destroy(trunks[i].arena);
  }
}

/* Lifetimes that are watched -------------------------------------------------------------------------------------- */

/* One block of a kernel each, because threads that fault at one address at the same time look like a race. A stale read
 * is found on the device; launching again begins the life again. A write to an input is found, whatever the kernel
 * declares. */
TEST(test_lifetimes_are_watched) {
  if (!test_is_guarded(t)) skip();
  rondo_arena *arena = test_leave_arena(t, 0);
  rondo_device_memory *memory = NULL;
  assert_ok(rondo_device_memory_of(t->device, &memory));
  rondo_queue *queue = t->stream->queue;
  uint32_t *words = test_words(t, WORDS);
  rondo_arena_slot slot = {.bytes = BYTES, .name = "x"};
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena, .slots = &slot, .slot_count = 1});
  uint32_t *output = test_arena_malloc(t, BYTES, "output");
  test_arena_set(t, output, WORDS, 2);
  test_affine(t, t->stream, slot.address, 1, 1, 1);
  recorded_graph recording = test_arena_end(t, arena);
  test_arena_set(t, slot.address, WORDS, 1);
  assert_ok(rondo_exec_launch(recording.exec, t->stream));
  test_arena_assert(t, output, WORDS, 2);
  rondo_arena_end_life(arena, queue, output);
  test_arena_combine(t, output, output, words, 1);
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_USE_AFTER_FREE);
  assert_message("'output'");
  assert_ok(rondo_exec_launch(recording.exec, t->stream));
  test_arena_assert(t, output, WORDS, 2);

  rondo_memory_set_read_only(memory, queue, slot.address, true);
  assert_ok(rondo_exec_launch(recording.exec, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_NO_ACCESS);
  assert_message("'x'");
  rondo_memory_set_read_only(memory, queue, slot.address, true);
  rondo_memory_set_read_only(memory, queue, slot.address, false);
  assert_ok(rondo_exec_launch(recording.exec, t->stream));
  rondo_memory_set_read_only(memory, queue, words, true);
  test_arena_combine(t, words, words, output, WORDS);
  assert_ok(rondo_stream_synchronize(t->stream));
  test_arena_set(t, words, 1, 1);
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_NO_ACCESS);
  test_arena_assert(t, words, 1, 1);
  rondo_arena_end_life(arena, NULL, output);
  test_recording_free(&recording);
  test_arena_set(t, slot.address, 1, 1);
  assert_fails(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED);
}

/* Creating and destroying recordings repeatedly takes no more memory than a few of them. */
TEST(test_pages_are_given_out_again) {
  rondo_arena *arena = test_leave_arena(t, 0);
  rondo_arena_info info;
  for (uint32_t i = 0; i < 200; i++) {
    test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
    uint32_t *output = test_arena_malloc(t, 1024 * KIB, "output");
    test_arena_set(t, output, 1, i);
    recorded_graph recording = test_arena_end(t, arena);
    assert_ok(rondo_exec_launch(recording.exec, t->stream));
    test_arena_assert(t, output, 1, i);
    test_recording_free(&recording);
  }
  rondo_arena_get_info(arena, &info);
  assert_true(info.backed <= 32 * 1024 * KIB);
}

static void check_wrong_backing(void *arena) {
  ((rondo_arena *)arena)->backed++;
  rondo_arena_check(arena);
}

static void check_a_lost_space(void *arena) {
  ((rondo_arena *)arena)->spaces = NULL;
  rondo_arena_check(arena);
}

TEST(test_the_check_finds_faults) {
  rondo_arena *arena = test_leave_arena(t, 0);
  test_arena_begin(t, &(rondo_arena_setting){.arena = arena});
  (void)test_arena_malloc(t, BYTES, "output");
  recorded_graph recording = test_arena_end(t, arena);
  test_assertion_fails(check_wrong_backing, arena, "arena->backed == backed");
  test_assertion_fails(check_a_lost_space, arena, "arena->space_count == spaces");
  test_recording_free(&recording);
  rondo_arena_check(arena);
}
