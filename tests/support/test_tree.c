/* SPDX-License-Identifier: MIT */
#include "support/test_tree.h"

#include <string.h>

#include "support/test_cleanup.h"

/* Whether the device's memory is as it was after it was opened. */
static bool is_empty(const test_fixture *fixture) {
  if (rondo_stream_synchronize(fixture->stream) != RONDO_OK || rondo_memory_trim(fixture->device) != RONDO_OK) {
    print_error("teardown: %s\n", rondo_last_error()->message);
    return false;
  }
  const rondo_memory_statistics left = test_memory_statistics(fixture);
  const bool is_left = left.live_allocations != 0 || left.pool_reserved != 0 || left.graph_reserved != 0 ||
                       left.pool_used != 0 || left.graph_used != 0 || left.arena_backed != 0;
  if (is_left)
    print_error("teardown: left on the device: %u allocations, pools %llu of %llu, graphs %llu of %llu, arenas %llu\n",
                left.live_allocations, (unsigned long long)left.pool_used, (unsigned long long)left.pool_reserved,
                (unsigned long long)left.graph_used, (unsigned long long)left.graph_reserved,
                (unsigned long long)left.arena_backed);
  return !is_left;
}

int test_tree_teardown(void **state) {
  const bool is_destroyed = test_destroy_left(), clean = is_empty(*state) && is_destroyed;
  return test_teardown(state) == 0 && clean ? 0 : -1;
}

rondo_tree *test_tree(test_fixture *fixture, const rondo_tree_options *options) {
  rondo_tree *tree = NULL;
  assert_ok(rondo_tree_create(fixture->device, options, &tree));
  test_leave_kind(TEST_LEFT_TREE, tree, NULL);
  return tree;
}

void test_tree_destroy(rondo_tree *tree) { assert_ok(rondo_tree_destroy(tree)); }

rondo_function *test_tree_function(rondo_tree *tree, const char *name, uint32_t input, test_work *work) {
  rondo_function *function = NULL;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                          .name = name,
                                          .body = test_body_affine,
                                          .user = work,
                                          .inputs = &input,
                                          .input_count = 1};
  assert_ok(rondo_function_create(tree, &options, &function));
  return function;
}

uint32_t *test_body_copy(rondo_call *call, size_t index, size_t output) {
  rondo_input input;
  void *out;
  assert_ok(rondo_call_get_input(call, index, &input));
  assert_ok(rondo_call_output(call, output, input.bytes, NULL, &out));
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, input.address, input.bytes));
  return out;
}

rondo_status test_body_affine(rondo_call *call, void *user) {
  test_work *work = user;
  rondo_stream *stream = rondo_call_stream(call);
  rondo_input input;
  void *scratch;
  work->runs++;
  assert_ok(rondo_call_get_input(call, 0, &input));
  assert_ok(rondo_malloc_async(stream, input.bytes, NULL, &scratch));
  assert_ok(rondo_copy_async(stream, scratch, input.address, input.bytes));
  test_affine(work->fixture, stream, scratch, input.bytes / sizeof(uint32_t), work->factor, work->term);
  void *out;
  assert_ok(rondo_call_output(call, 0, input.bytes, NULL, &out));
  assert_ok(rondo_copy_async(stream, out, scratch, input.bytes));
  return rondo_free_async(stream, scratch);
}

uint32_t *test_counting_words(test_fixture *fixture, size_t count, uint32_t first) {
  uint32_t values[256], *words = test_words(fixture, count);
  assert_true(count <= sizeof values / sizeof values[0]);
  for (uint32_t i = 0; i < count; i++) values[i] = first + i;
  test_write(fixture, words, values, count * sizeof values[0]);
  return words;
}

static rondo_status case_body(rondo_call *call, void *user) {
  test_tree_case *c = user;
  const rondo_status status = test_body_affine(call, &c->work);
  return status != RONDO_OK || c->more == NULL || c->work.runs < c->from_run ? status : c->more(call, c);
}

void test_tree_case_make(test_tree_case *c, test_fixture *fixture, const rondo_tree_options *tree,
                         const rondo_function_options *function, test_case_more more) {
  static const uint32_t moving = RONDO_INPUT_MOVING;
  rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT};
  *c = (test_tree_case){.t = fixture, .more = more, .from_run = 1};
  c->words = test_counting_words(fixture, TEST_CASE_WORDS, 0);
  c->work = (test_work){.fixture = fixture, .factor = 3, .term = 1};
  c->tree = test_tree(fixture, tree);
  if (function != NULL) options = *function;
  options.name = "f";
  if (options.body == NULL) options.body = case_body;
  options.user = c;
  if (options.inputs == NULL) options.inputs = &moving;
  options.input_count = 1;
  assert_ok(rondo_function_create(c->tree, &options, &c->function));
}

rondo_status test_tree_case_try(const test_tree_case *c, rondo_buffer **out) {
  const rondo_input input = {.address = c->words, .bytes = TEST_CASE_WORDS * sizeof *c->words};
  return rondo_function_call(c->function, c->t->stream, &input, 1, out, 1);
}

void test_tree_case_call(const test_tree_case *c) {
  rondo_buffer *out = test_call_words(c->t, c->function, c->words, TEST_CASE_WORDS);
  test_assert_buffer(c->t, out, 1, 3);
  rondo_buffer_release(out);
}

void test_assert_said(rondo_tree *tree, const char *text) {
  const rondo_call_info info = test_last_call(tree);
  if (strstr(info.message, text) == NULL) fail_msg("no '%s' in: %s", text, info.message);
}

static rondo_buffer *call_with(test_fixture *fixture, rondo_function *function, const rondo_input *input) {
  rondo_buffer *out = NULL;
  assert_ok(rondo_function_call(function, fixture->stream, input, 1, &out, 1));
  assert_non_null(out);
  return out;
}

rondo_buffer *test_call_words(test_fixture *fixture, rondo_function *function, const uint32_t *words, size_t count) {
  const rondo_input input = {.address = (void *)(uintptr_t)words, .bytes = count * sizeof *words};
  return call_with(fixture, function, &input);
}

rondo_buffer *test_call_buffer(test_fixture *fixture, rondo_function *function, rondo_buffer *buffer) {
  const rondo_input input = {.buffer = buffer};
  return call_with(fixture, function, &input);
}

void test_assert_buffer(test_fixture *fixture, const rondo_buffer *buffer, uint32_t first, uint32_t step) {
  const size_t bytes = test_buffer_info(buffer).bytes;
  uint32_t words[256];
  assert_true(bytes <= sizeof words);
  assert_ok(rondo_buffer_copy(buffer, fixture->stream, 0, words, bytes));
  assert_ok(rondo_stream_synchronize(fixture->stream));
  for (uint32_t i = 0; i < bytes / sizeof words[0]; i++) assert_int_equal(words[i], first + i * step);
}

TEST_GETTER(rondo_tree_info, test_tree_info, rondo_tree, rondo_tree_get_info)
TEST_GETTER(rondo_function_info, test_function_info, const rondo_function, rondo_function_get_info)
TEST_GETTER(rondo_call_info, test_last_call, rondo_tree, rondo_tree_get_last_call)
