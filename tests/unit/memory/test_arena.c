/* SPDX-License-Identifier: MIT
 * Arenas: the memory of recordings that follow each other. What lives when a recording begins is never overwritten
 * (TR-4), recordings that never run at once use the same bytes (TR-3), launches are the driver's alone, and addresses
 * of an arena are known for what they are wherever one can be given.
 */
#include "exec/exec_internal.h"
#include "unit/memory/arena_test.h"

#define KIB ((size_t)1024)
#define WORDS 1024
#define BYTES (WORDS * sizeof(uint32_t))

/* Memory ---------------------------------------------------------------------------------------------------------- */

/* What is backed is whole pages from the base on; the figures say so; trimming takes whole pieces from the end. */
static void test_backing(void **state) {
  test_fixture *fixture = *state;
  rondo_arena *arena = test_arena(fixture, 0);
  const size_t page = test_whole_pages(fixture, 1);
  const rondo_memory_statistics before = test_memory_statistics(fixture);
  rondo_arena_info info;
  rondo_arena_get_info(arena, &info);
  assert_non_null(info.base);
  assert_true(info.reserved >= (size_t)1 << 30);
  assert_true(info.backed == 0 && info.high == 0 && info.recordings == 0);
  assert_ok(rondo_arena_back(arena, 1));
  assert_ok(rondo_arena_back(arena, 3 * page));
  assert_ok(rondo_arena_back(arena, page));
  rondo_arena_get_info(arena, &info);
  assert_int_equal(info.backed, 3 * page);
  rondo_memory_statistics now = test_memory_statistics(fixture);
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
  now = test_memory_statistics(fixture);
  assert_int_equal(now.arena_backed, before.arena_backed);
  assert_int_equal(now.arena_backed_high - before.arena_backed, 3 * page);
  assert_ok(rondo_memory_reset_highs(fixture->device));
  assert_int_equal(test_memory_statistics(fixture).arena_backed_high, before.arena_backed);
  rondo_arena_destroy(arena);
}

/* More than is reserved, or than the device has, is refused, and what is backed stays. */
static void test_backing_is_refused(void **state) {
  test_fixture *fixture = *state;
  const size_t page = test_whole_pages(fixture, 1);
  rondo_arena *arena = test_arena(fixture, 4 * page);
  rondo_arena_info info;
  assert_ok(rondo_arena_back(arena, page));
  assert_error(rondo_arena_back(arena, 4 * page + 1), RONDO_LIMIT_EXCEEDED, RONDO_REASON_ADDRESS_SPACE);
  assert_message("arena 'tree'");
  assert_error(rondo_arena_back(arena, SIZE_MAX), RONDO_LIMIT_EXCEEDED, RONDO_REASON_ADDRESS_SPACE);
  rondo_arena_get_info(arena, &info);
  assert_int_equal(info.backed, page);
  assert_int_equal(info.reserved, 4 * page);
  rondo_arena_destroy(arena);
}

/* Recordings ------------------------------------------------------------------------------------------------------- */

/* A recording makes an output; the next reads it and leaves it as it is, with scratch of its own. */
static void test_tr4_outputs_are_not_overwritten(void **state) {
  test_fixture *fixture = *state;
  rondo_arena *arena = test_arena(fixture, 0);
  uint32_t *output = NULL, *scratch = NULL, *sum = NULL;
  test_arena_begin(fixture, &(rondo_arena_setting){.arena = arena});
  scratch = test_arena_malloc(fixture, BYTES, "scratch");
  test_arena_set(fixture, scratch, WORDS, 5);
  output = test_arena_malloc(fixture, BYTES, "output");
  test_arena_combine(fixture, scratch, scratch, output, WORDS);
  assert_ok(rondo_free_async(fixture->stream, scratch));
  test_recording first = test_arena_end(fixture, arena);
  assert_int_equal(first.read.output_count, 1);
  assert_ptr_equal(first.read.outputs[0].address, output);
  assert_int_equal(first.read.outputs[0].bytes, BYTES);
  assert_string_equal(first.read.outputs[0].name, "output");
  assert_int_equal(first.read.outputs[0].allocation, 1);
  assert_false(first.read.planned);

  rondo_arena_block block = {.address = output, .bytes = BYTES, .name = "output"};
  test_arena_begin(fixture, &(rondo_arena_setting){.arena = arena, .blocks = &block, .block_count = 1});
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t *other = test_arena_malloc(fixture, BYTES, "other");
    assert_true((char *)other + BYTES <= (char *)output || (char *)other >= (char *)output + BYTES);
    test_arena_set(fixture, other, WORDS, 77 + i);
    if (i == 3) {
      sum = test_arena_malloc(fixture, BYTES, "sum");
      test_arena_combine(fixture, output, other, sum, WORDS);
    }
    assert_ok(rondo_free_async(fixture->stream, other));
  }
  test_recording second = test_arena_end(fixture, arena);
  for (int times = 0; times < 3; times++) {
    assert_ok(rondo_exec_launch(first.exec, fixture->stream));
    assert_ok(rondo_exec_launch(second.exec, fixture->stream));
    test_arena_assert(fixture, output, WORDS, 5 * 32);
    test_arena_assert(fixture, sum, WORDS, 5 * 32 * 31 + 80);
  }
  assert_false(first.exec->has_extras || second.exec->has_extras);
  rondo_arena_info info;
  rondo_arena_get_info(arena, &info);
  assert_int_equal(info.recordings, 2);
  assert_int_equal(info.high, second.read.need > first.read.need ? second.read.need : first.read.need);
  test_recording_free(&second);
  test_recording_free(&first);
  rondo_arena_get_info(arena, &info);
  assert_int_equal(info.recordings, 0);
  rondo_arena_destroy(arena);
}

/* A block that the recording gives up serves its later allocations, and theirs alone. */
static void test_blocks_are_given_up(void **state) {
  test_fixture *fixture = *state;
  rondo_arena *arena = test_arena(fixture, 0);
  test_arena_begin(fixture, &(rondo_arena_setting){.arena = arena});
  uint32_t *input = test_arena_malloc(fixture, BYTES, "input");
  test_arena_set(fixture, input, WORDS, 3);
  test_recording first = test_arena_end(fixture, arena);
  rondo_arena_block blocks[] = {{.address = input, .bytes = BYTES, .name = "input", .key = 7}};
  test_arena_begin(fixture, &(rondo_arena_setting){.arena = arena, .blocks = blocks, .block_count = 1});
  uint32_t *before = test_arena_malloc(fixture, BYTES, "before");
  test_arena_combine(fixture, input, input, before, WORDS);
  assert_ok(rondo_free_async(fixture->stream, input));
  uint32_t *after = test_arena_malloc(fixture, BYTES, "after");
  assert_true(before != input);
  if (!test_is_guarded(fixture)) assert_ptr_equal(after, input);
  test_arena_combine(fixture, before, before, after, WORDS);
  test_recording second = test_arena_end(fixture, arena);
  assert_int_equal(second.read.ended_count, 1);
  assert_int_equal(second.read.ended[0], 0);
  assert_int_equal(second.read.output_count, 2);
  for (int times = 0; times < 2; times++) {
    assert_ok(rondo_exec_launch(first.exec, fixture->stream));
    assert_ok(rondo_exec_launch(second.exec, fixture->stream));
    test_arena_assert(fixture, after, WORDS, 3 * 32 * 32);
  }
  rondo_noted_lifetimes *noted = NULL;
  assert_ok(rondo_noted_lifetimes_of_graph(second.graph, &noted));
  assert_int_equal(noted->lifetimes.count, 2);
  assert_non_null(rondo_noted_find_end(noted, 7));
  assert_null(rondo_noted_find_end(noted, 8));
  rondo_noted_lifetimes_release(noted);
  test_recording_free(&second);
  test_recording_free(&first);
  rondo_arena_destroy(arena);
}

/* Slots are the recording's for its whole length, and nothing else's. */
static void test_slots(void **state) {
  test_fixture *fixture = *state;
  rondo_arena *arena = test_arena(fixture, 0);
  rondo_arena_slot slots[] = {{.bytes = BYTES, .name = "x"}, {.bytes = 10, .name = "y"}};
  test_arena_begin(fixture, &(rondo_arena_setting){.arena = arena, .slots = slots, .slot_count = 2});
  assert_non_null(slots[0].address);
  assert_true((uintptr_t)slots[0].address % 256 == 0 && (uintptr_t)slots[1].address % 256 == 0);
  assert_true(slots[0].address != slots[1].address);
  uint32_t *output = test_arena_malloc(fixture, BYTES, "output");
  assert_true(output != slots[0].address);
  test_arena_combine(fixture, slots[0].address, slots[0].address, output, WORDS);
  test_recording recording = test_arena_end(fixture, arena);
  assert_true(recording.read.need >= 2 * BYTES + 256);
  for (uint32_t value = 1; value < 4; value++) {
    uint32_t words[WORDS];
    for (size_t i = 0; i < WORDS; i++) words[i] = value;
    test_write(fixture, slots[0].address, words, sizeof words);
    assert_ok(rondo_exec_launch(recording.exec, fixture->stream));
    test_arena_assert(fixture, output, WORDS, value * 32);
  }
  test_recording_free(&recording);
  rondo_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      test_case(test_backing),
      test_case(test_backing_is_refused),
      test_case(test_tr4_outputs_are_not_overwritten),
      test_case(test_blocks_are_given_up),
      test_case(test_slots),
  };
  return test_main(tests);
}
