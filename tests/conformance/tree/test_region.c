/* SPDX-License-Identifier: MIT
 * Regions (AD-5): code between two calls is run eagerly, captured, and replayed, by key and inputs; or captured each
 * time, with execs that are updated. The number of recordings is bounded. Captures that die are no errors. Misuse has
 * typed reasons and leaves nothing.
 */
#include <setjmp.h>
#include <string.h>

#include "support/foreign_library.h"
#include "support/test_tree.h"

enum { WORDS = 16, BYTES = WORDS * sizeof(uint32_t) };

typedef struct region_case {
  test_fixture *t;
  rondo_tree *tree;
  rondo_region *region;
  uint32_t runs; /* of the code */
} region_case;

static rondo_region *make_region(rondo_tree *tree, rondo_region_options options) {
  rondo_region *region = NULL;
  options.struct_size = sizeof options;
  if (options.name == NULL) options.name = "r";
  assert_ok(rondo_region_create(tree, &options, &region));
  return region;
}

static region_case make_case(test_fixture *t, rondo_region_options options) {
  region_case c = {.t = t, .tree = test_tree(t, NULL)};
  c.region = make_region(c.tree, options);
  return c;
}

static rondo_region_info info_of(const rondo_region *region) {
  rondo_region_info info = {.struct_size = sizeof info};
  assert_ok(rondo_region_get_info(region, &info));
  return info;
}

static const uint32_t one_moving[] = {RONDO_INPUT_MOVING};

/* The code: output 0 = input 0 * factor + 1. */
static rondo_status multiply(region_case *c, rondo_call *call, uint32_t factor) {
  void *out;
  c->runs++;
  TRY(rondo_call_output(call, 0, BYTES, NULL, &out));
  TRY(rondo_copy_async(rondo_call_stream(call), out, rondo_call_input(call, 0), BYTES));
  test_affine(c->t, rondo_call_stream(call), out, WORDS, factor, 1);
  return RONDO_OK;
}

/* A call with a factor as its key, whose result is right. The caller releases it. */
static rondo_buffer *hold_with_factor(region_case *c, const uint32_t *words, uint32_t first, uint32_t factor) {
  const rondo_input input = {.address = (void *)(uintptr_t)words, .bytes = BYTES};
  rondo_buffer *out = NULL;
  const rondo_region_arguments arguments = {.key = &factor,
                                            .key_bytes = sizeof factor,
                                            .inputs = &input,
                                            .input_count = 1,
                                            .outputs = &out,
                                            .output_count = 1};
  rondo_call *call;
  assert_ok(rondo_region_begin(c->region, c->t->stream, &arguments, &call));
  while (call != NULL) {
    const rondo_status done = multiply(c, call, factor);
    assert_ok(rondo_region_end(c->region, c->t->stream, done, &call));
  }
  test_assert_buffer(c->t, out, first * factor + 1, factor);
  return out;
}

/* Returns whether the code ran. */
static bool call_with_factor(region_case *c, const uint32_t *words, uint32_t first, uint32_t factor) {
  const uint32_t before = c->runs;
  rondo_buffer_release(hold_with_factor(c, words, first, factor));
  return c->runs > before;
}

static const rondo_region_options keyed = {.inputs = one_moving, .input_count = 1, .key_bytes = 8};

/* Replays --------------------------------------------------------------------------------------------------------- */

TREE_TEST(test_ad5_eager_then_captured_then_replayed) {
  region_case c = make_case(t, keyed);
  uint32_t *words[3];
  for (uint32_t i = 0; i < 3; i++) words[i] = test_counting_words(t, WORDS, 10 * i);
  for (uint32_t i = 0; i < 9; i++) assert_int_equal(call_with_factor(&c, words[i % 3], 10 * (i % 3), 3), i < 2);
  const rondo_region_info info = info_of(c.region);
  assert_int_equal(info.calls, 9);
  assert_int_equal(info.skipped[RONDO_SKIP_WARM_UP], 1);
  assert_int_equal(info.captured, 1);
  assert_int_equal(info.replayed, 7);
  assert_int_equal(info.bodies, 2);
}

/* The key is compared by content, also its length, and each key has its own recording. */
TREE_TEST(test_ad5_keys) {
  region_case c = make_case(t, keyed);
  const uint32_t *words = test_counting_words(t, WORDS, 0);
  for (uint32_t i = 0; i < 12; i++) assert_int_equal(call_with_factor(&c, words, 0, 2 + i % 3), i < 6);
  assert_int_equal(info_of(c.region).recordings, 3);
  assert_int_equal(info_of(c.region).keys, 3);
  const rondo_region_arguments zeros[] = {{.key = "\0\0\0\0\0\0\0", .key_bytes = 4}, {.key_bytes = 0}};
  rondo_region *plain = make_region(c.tree, (rondo_region_options){.name = "plain", .key_bytes = 8});
  for (uint32_t i = 0; i < 2; i++) {
    rondo_call *call;
    assert_ok(rondo_region_begin(plain, t->stream, &zeros[i], &call));
    assert_non_null(call);
    assert_ok(rondo_region_end(plain, t->stream, RONDO_OK, &call));
  }
  assert_int_equal(info_of(plain).keys, 2);
  assert_int_equal(info_of(plain).skipped[RONDO_SKIP_WARM_UP], 2);
}

/* The least recently used recording goes first, and so does the least recently used key that is not recorded. */
TREE_TEST(test_ad5_bounds) {
  rondo_region_options options = keyed;
  options.max_recordings = 2;
  region_case c = make_case(t, options);
  const uint32_t *words = test_counting_words(t, WORDS, 0);
  for (uint32_t key = 2; key < 4; key++)
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(call_with_factor(&c, words, 0, key), i < 2);
  assert_false(call_with_factor(&c, words, 0, 2));
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(call_with_factor(&c, words, 0, 4), i < 2); /* evicts 3 */
  assert_false(call_with_factor(&c, words, 0, 2));
  assert_true(call_with_factor(&c, words, 0, 3));
  for (uint32_t key = 5; key < 300; key++) assert_true(call_with_factor(&c, words, 0, key));
  const rondo_region_info info = info_of(c.region);
  assert_int_equal(info.recordings, 1);
  assert_int_equal(info.keys, 2);
  assert_int_equal(info.evicted, 2);
  assert_false(call_with_factor(&c, words, 0, 2));
}

/* A bound in bytes keeps the recordings that were used last, and at least one. */
TREE_TEST(test_ad5_bound_in_bytes) {
  rondo_region_options options = keyed;
  const uint32_t *words = test_counting_words(t, WORDS, 0);
  region_case c = make_case(t, options);
  for (uint32_t i = 0; i < 2; i++) assert_true(call_with_factor(&c, words, 0, 2));
  const uint64_t one = info_of(c.region).exec_bytes;
  assert_true(one > 0);
  test_tree_destroy(c.tree);
  for (uint32_t most = 1; most < 3; most++) {
    options.max_exec_bytes = most * one + one / 2;
    c = make_case(t, options);
    for (uint32_t key = 2; key < 6; key++)
      for (uint32_t i = 0; i < 3; i++) assert_int_equal(call_with_factor(&c, words, 0, key), i < 2);
    const rondo_region_info info = info_of(c.region);
    assert_int_equal(info.recordings, most);
    assert_int_equal(info.evicted, 4 - most);
    assert_true(info.exec_bytes <= options.max_exec_bytes);
    assert_false(call_with_factor(&c, words, 0, 6 - most));
    test_tree_destroy(c.tree);
  }
  options.max_exec_bytes = 1;
  c = make_case(t, options);
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(call_with_factor(&c, words, 0, 2), i < 2);
}

/* Recordings that others follow are evicted too, with those. */
TREE_TEST(test_ad5_bounds_of_regions_in_steps) {
  rondo_region_options options = keyed;
  options.max_recordings = 2;
  region_case c = make_case(t, options);
  test_work work = {.fixture = t, .factor = 3, .term = 1};
  rondo_function *function = test_tree_function(c.tree, "f", RONDO_INPUT_STATIC, &work);
  const uint32_t *words = test_counting_words(t, WORDS, 0);
  for (uint32_t key = 2; key < 8; key++)
    for (uint32_t i = 0; i < 5; i++) {
      assert_ok(rondo_tree_step_begin(c.tree));
      rondo_buffer *held = hold_with_factor(&c, words, 0, key), *out = test_call_words(t, function, words, WORDS);
      test_assert_buffer(t, out, 1, 3);
      rondo_buffer_release(held);
      rondo_buffer_release(out);
      assert_ok(rondo_tree_step_end(c.tree));
    }
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  assert_int_equal(info_of(c.region).recordings, 2);
  assert_int_equal(info_of(c.region).evicted, 4);
  assert_int_equal(test_tree_info(c.tree).recordings, 4);
  assert_int_equal(test_tree_info(c.tree).evicted, 8);
}

/* Keys are explained: text as text, bytes as digits, long keys by their beginning. */
TREE_TEST(test_ad5_keys_are_explained) {
  static const char longest[40] = "\x01\xff";
  region_case c = make_case(t, (rondo_region_options){.name = "keyed", .key_bytes = sizeof longest});
  const rondo_region_arguments keys[] = {
      {.key = "prefill", .key_bytes = 7}, {.key = longest, .key_bytes = sizeof longest}, {.key_bytes = 0}};
  for (uint32_t i = 0; i < 6; i++) {
    rondo_call *call;
    assert_ok(rondo_region_begin(c.region, t->stream, &keys[i % 3], &call));
    assert_ok(rondo_region_end(c.region, t->stream, RONDO_OK, &call));
  }
  const char *const texts[] = {"region 'keyed'", "  key          70726566696c6c, 'prefill' (7 B)", "01ff0000",
                               "00... (40 B)", "none"};
  const char *const fields[] = {"\"key\":\"70726566696c6c\"", "\"key_bytes\":40", "\"key\":\"\",",
                                "\"max_exec_bytes\":0"};
  char *text;
  assert_ok(rondo_tree_explain(c.tree, RONDO_EXPLAIN_TEXT, &text));
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (strstr(text, texts[i]) == NULL) fail_msg("'%s' is not in:\n%s", texts[i], text);
  rondo_text_free(text);
  assert_ok(rondo_tree_explain(c.tree, RONDO_EXPLAIN_JSON, &text));
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
    if (strstr(text, fields[i]) == NULL) fail_msg("'%s' is not in:\n%s", fields[i], text);
  rondo_text_free(text);
}

/* The caller's address of a moving input would be frozen, whatever part of the work has it. */
typedef struct own_address {
  uint32_t *words, *out;
  rondo_kernel *kernel;
  foreign_library *library;
} own_address;
typedef rondo_status (*own_work)(rondo_call *call, const own_address *own);

static rondo_status copy_own(rondo_call *call, const own_address *own) {
  return rondo_copy_async(rondo_call_stream(call), own->out, own->words, BYTES);
}

static rondo_status copy_own_rows(rondo_call *call, const own_address *own) {
  const rondo_copy rows = {.dst = own->out, .src = own->words, .width = 8, .height = 2, .src_pitch = 32};
  return rondo_copy_box_async(rondo_call_stream(call), &rows);
}

static rondo_status fill_own_rows(rondo_call *call, const own_address *own) {
  const rondo_fill rows = {.dst = own->words + 1, .element_bytes = 4, .width = 2, .height = 2, .pitch = 32};
  return rondo_fill_async(rondo_call_stream(call), &rows);
}

static rondo_status pass_own_to_host(rondo_call *call, const own_address *own) {
  return rondo_host_async(rondo_call_stream(call), test_host_nothing, own->words);
}

static rondo_status pass_own_to_host_step(rondo_call *call, const own_address *own) {
  return rondo_call_host_step(call, test_host_nothing, own->words + 1);
}

/* The kernel declares its parameter as a scalar. */
static rondo_status launch_with_own(rondo_call *call, const own_address *own) {
  void *const at = own->words + 1;
  return rondo_launch(rondo_call_stream(call), own->kernel, (rondo_grid){.x = 1}, RONDO_ARGS(&at, &own->out));
}

static void do_nothing(void *user) { (void)user; }

static rondo_status let_library_call_host(rondo_call *call, const own_address *own) {
  void *const native = rondo_stream_native(rondo_call_stream(call));
  return foreign_host(own->library, native, do_nothing, own->words) == 0 ? RONDO_OK : RONDO_IO_ERROR;
}

/* The first word is 0. */
static rondo_status let_library_wait(rondo_call *call, const own_address *own) {
  void *const native = rondo_stream_native(rondo_call_stream(call));
  return foreign_wait_value(own->library, native, own->words, 0) == 0 ? RONDO_OK : RONDO_IO_ERROR;
}

static void peek_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(uint32_t **)args[1] = **(const uint32_t **)args[0];
}
static const char peek_cuda[] =
    "extern \"C\" __global__ void peek(const unsigned *in, unsigned *out) { *out = *in; }\n";

/* Three calls with the words as input 0 of kind `first`, and as input 1 of kind `second`, or 0. The second call runs
 * twice. */
static void use_own_address(test_fixture *t, const own_address *own, own_work work, uint32_t first, uint32_t second) {
  const uint32_t kinds[] = {first, second};
  const size_t count = second == 0 ? 1 : 2;
  region_case c = make_case(t, (rondo_region_options){.inputs = kinds, .input_count = count});
  const rondo_input input = {.address = own->words, .bytes = BYTES}, inputs[] = {input, input};
  const rondo_region_arguments arguments = {.inputs = inputs, .input_count = count};
  for (uint32_t i = 0; i < 3; i++) {
    rondo_call *call;
    assert_ok(rondo_region_begin(c.region, t->stream, &arguments, &call));
    for (; call != NULL; c.runs++) {
      const rondo_status done = work(call, own);
      assert_ok(rondo_region_end(c.region, t->stream, done, &call));
    }
  }
  assert_int_equal(c.runs, 4);
  assert_skip(c.tree, OTHER_WORK);
  assert_int_equal(info_of(c.region).skipped[RONDO_SKIP_OTHER_WORK], 2);
  test_assert_said(c.tree, "moving input 0");
  test_assert_said(c.tree, "the address that the caller passed");
  test_tree_destroy(c.tree);
}

TREE_TEST(test_ad5_own_address_of_a_moving_input) {
  static const rondo_kernel_options peek = {RONDO_KERNEL_OPTIONS_INIT, .name = "peek",
                                            .cpu = peek_cpu,           .cuda_source = peek_cuda,
                                            .block_threads = 1,        .params = {RONDO_SCALAR(void *), RONDO_WRITES}};
  static const own_work works[] = {copy_own, copy_own_rows, pass_own_to_host, pass_own_to_host_step, launch_with_own};
  own_address own = {.words = test_counting_words(t, WORDS, 0), .out = test_words(t, WORDS)};
  assert_ok(rondo_kernel_create(t->device, &peek, &own.kernel));
  for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) use_own_address(t, &own, works[i], RONDO_INPUT_MOVING, 0);
  use_own_address(t, &own, fill_own_rows, RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED, 0);
  rondo_kernel_destroy(own.kernel);
}

/* Another input with the same bytes does not excuse it. */
TREE_TEST(test_ad5_own_address_of_two_inputs) {
  const own_address own = {.words = test_counting_words(t, WORDS, 0), .out = test_words(t, WORDS)};
  use_own_address(t, &own, copy_own, RONDO_INPUT_MOVING, RONDO_INPUT_MOVING);
  use_own_address(t, &own, copy_own, RONDO_INPUT_MOVING, RONDO_INPUT_STATIC);
}

TREE_TEST(test_ad5_own_address_in_work_of_a_library) {
  if (!test_device_is("cuda")) skip();
  const own_address own = {.words = test_counting_words(t, WORDS, 0), .library = foreign_open()};
  assert_non_null(own.library);
  use_own_address(t, &own, let_library_call_host, RONDO_INPUT_MOVING, 0);
  use_own_address(t, &own, let_library_wait, RONDO_INPUT_MOVING, 0);
  foreign_close(own.library);
}

/* Captured always ------------------------------------------------------------------------------------------------- */

/* One call, which changes the word `length` times; the length is in no key. */
static void grow(region_case *c, uint32_t *word, uint32_t length, uint32_t term) {
  rondo_call *call;
  assert_ok(rondo_region_begin(c->region, c->t->stream, NULL, &call));
  assert_non_null(call);
  while (call != NULL) {
    c->runs++;
    for (uint32_t i = 0; i < length; i++) test_affine(c->t, c->t->stream, word, 1, 1, term);
    assert_ok(rondo_region_end(c->region, c->t->stream, RONDO_OK, &call));
  }
}

TREE_TEST(test_ad5_a_thousand_topologies_alternate) {
  region_case c = make_case(t, (rondo_region_options){.mode = RONDO_REGION_CAPTURE_ALWAYS, .max_recordings = 3});
  uint32_t *words[2] = {test_words(t, 1), test_words(t, 1)}, expected[2] = {0};
  for (uint32_t i = 0; i < 1000; i++) {
    const uint32_t length = 1 + i % 3;
    grow(&c, words[i & 1], length, i);
    expected[i & 1] += length * i;
  }
  for (uint32_t i = 0; i < 2; i++) assert_int_equal(test_word(t, words[i]), expected[i]);
  const rondo_region_info info = info_of(c.region);
  assert_int_equal(info.bodies, 1000);
  assert_int_equal(info.captured, 999);
  assert_int_equal(info.updated, 996);
  assert_int_equal(info.recordings, 3);
  assert_int_equal(info.replayed, 0);
}

TREE_TEST(test_ad5_topologies_are_bounded) {
  region_case c = make_case(t, (rondo_region_options){.mode = RONDO_REGION_CAPTURE_ALWAYS, .max_recordings = 2});
  uint32_t *word = test_words(t, 1), expected = 0;
  for (uint32_t i = 0; i < 60; i++) {
    grow(&c, word, 1 + i % 7, 1);
    expected += 1 + i % 7;
  }
  assert_int_equal(test_word(t, word), expected);
  assert_int_equal(info_of(c.region).recordings, 2);
  assert_true(info_of(c.region).evicted > 0);
}

/* Captures that die ----------------------------------------------------------------------------------------------- */

static rondo_status waited; /* by another thread, before its join */
static void wait_for_device(void *user) { waited = rondo_device_synchronize(user); }

TREE_TEST(test_ad5_another_thread_ends_the_capture) {
  region_case c = make_case(t, (rondo_region_options){0});
  uint32_t *word = test_words(t, 1);
  for (uint32_t i = 0; i < 4; i++) {
    rondo_call *call;
    assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
    for (; call != NULL; c.runs++) {
      test_affine(t, t->stream, word, 1, 1, 1);
      if (c.runs == 1) test_on_thread(wait_for_device, t->device);
      test_note_error();
      assert_ok(rondo_region_end(c.region, t->stream, RONDO_OK, &call));
    }
  }
  assert_int_equal(waited, RONDO_CAPTURE_REFUSED);
  assert_int_equal(test_word(t, word), 4);
  assert_int_equal(c.runs, 4); /* eager, captured and eager, captured */
  const rondo_region_info info = info_of(c.region);
  assert_int_equal(info.died, 1);
  assert_int_equal(info.skipped[RONDO_SKIP_CAPTURE_DIED], 1);
  assert_int_equal(info.replayed, 1);
  assert_non_null(strstr(info.died_message, "rondo_device_synchronize"));
  assert_non_null(strstr(info.died_message, "called by thread "));
}

/* The calls of a program fail too once the capture has died, so its code returns a failure of its own. */
TREE_TEST(test_ad5_code_fails_after_another_thread_ended_the_capture) {
  region_case c = make_case(t, (rondo_region_options){0});
  uint32_t *word = test_words(t, 1);
  for (uint32_t i = 0; i < 4; i++) {
    rondo_call *call;
    assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
    for (; call != NULL; c.runs++) {
      test_affine(t, t->stream, word, 1, 1, 1);
      if (c.runs == 1) test_on_thread(wait_for_device, t->device);
      test_note_error();
      assert_ok(rondo_region_end(c.region, t->stream, c.runs == 1 ? RONDO_EXECUTION_FAILED : RONDO_OK, &call));
    }
  }
  assert_int_equal(test_word(t, word), 4);
  assert_int_equal(c.runs, 4); /* eager, captured and eager, captured */
  const rondo_region_info info = info_of(c.region);
  assert_int_equal(info.died, 1);
  assert_int_equal(info.skipped[RONDO_SKIP_CAPTURE_DIED], 1);
  assert_int_equal(info.replayed, 1);
}

/* Code that waits cannot be captured. It sees the refusal, and runs again. */
TREE_TEST(test_ad5_code_that_waits_runs_eagerly) {
  region_case c = make_case(t, (rondo_region_options){0});
  uint32_t *word = test_words(t, 1);
  for (uint32_t i = 0; i < 3; i++) {
    rondo_call *call;
    assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
    for (; call != NULL; c.runs++) {
      test_affine(t, t->stream, word, 1, 1, 1);
      const rondo_status done = rondo_stream_synchronize(t->stream);
      test_note_error();
      assert_ok(rondo_region_end(c.region, t->stream, done, &call));
    }
  }
  assert_int_equal(test_word(t, word), 3);
  assert_int_equal(c.runs, 4);
  assert_skip(c.tree, HOST_WORK);
  assert_int_equal(info_of(c.region).died, 1);
}

/* A library waits for the stream on the driver's own handle. */
TREE_TEST(test_ad5_a_library_ends_the_capture) {
  void *native = rondo_stream_native(t->stream);
  if (!test_device_is("cuda")) skip();
  region_case c = make_case(t, (rondo_region_options){0});
  foreign_library *library = foreign_open();
  assert_non_null(library);
  uint32_t *word = test_words(t, 1);
  for (uint32_t i = 0; i < 4; i++) {
    rondo_call *call;
    assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
    for (; call != NULL; c.runs++) {
      test_affine(t, t->stream, word, 1, 1, 1);
      if (c.runs == 1) assert_int_not_equal(foreign_synchronize(library, native), 0);
      assert_ok(rondo_region_end(c.region, t->stream, RONDO_OK, &call));
    }
  }
  foreign_close(library);
  assert_int_equal(test_word(t, word), 4);
  const rondo_region_info info = info_of(c.region);
  assert_int_equal(c.runs, 4); /* eager, captured and eager, captured */
  assert_int_equal(info.died, 1);
  assert_int_equal(info.skipped[RONDO_SKIP_CAPTURE_DIED], 1);
  assert_int_equal(info.replayed, 1);
  assert_non_null(strstr(info.died_message, "a call of a library, or on the driver itself, between"));
  assert_non_null(strstr(info.died_message, "thread "));
}

/* Code that fails by itself fails the region, which is closed. */
TREE_TEST(test_ad5_code_that_fails) {
  region_case c = make_case(t, (rondo_region_options){0});
  rondo_call *call;
  assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
  assert_fails(rondo_region_end(c.region, t->stream, RONDO_IO_ERROR, &call), RONDO_IO_ERROR);
  assert_null(call);
  assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
  assert_ok(rondo_region_end(c.region, t->stream, RONDO_OK, &call));
  assert_null(call);
}

/* Misuse ---------------------------------------------------------------------------------------------------------- */

#define assert_misuse(call, which) assert_error(call, RONDO_INVALID_STATE, RONDO_REASON_##which)

/* Returns between begin and end, in run `at` of the code: eager or captured. */
static void leave(region_case *c, uint32_t *word, uint32_t at) {
  rondo_call *call;
  assert_ok(rondo_region_begin(c->region, c->t->stream, NULL, &call));
  for (uint32_t run = 0; call != NULL; run++) {
    test_affine(c->t, c->t->stream, word, 1, 1, 1);
    if (at == run) return;
    assert_ok(rondo_region_end(c->region, c->t->stream, RONDO_OK, &call));
  }
}

TREE_TEST(test_ad5_a_region_that_was_left) {
  for (uint32_t warm = 0; warm < 2; warm++) {
    region_case c = make_case(t, (rondo_region_options){.name = "left"});
    uint32_t *word = test_words(t, 1);
    for (uint32_t i = 0; i < warm; i++) leave(&c, word, UINT32_MAX);
    leave(&c, word, 0);
    rondo_call *call;
    assert_misuse(rondo_region_begin(c.region, t->stream, NULL, &call), REGION_LEFT);
    assert_message("region 'left', begun at ");
    assert_message("test_region.c:");
    assert_null(call);
    for (uint32_t i = 0; i < 4; i++) leave(&c, word, UINT32_MAX);
    assert_int_equal(info_of(c.region).left, 1);
    assert_int_equal(test_word(t, word), 5); /* what was captured and abandoned did not run; what was eager did */
  }
}

static jmp_buf out_of_here;

TREE_TEST(test_ad5_a_longjmp_out_of_a_capture) {
  region_case c = make_case(t, (rondo_region_options){0});
  uint32_t *volatile word = test_words(t, 1);
  leave(&c, word, UINT32_MAX);
  if (setjmp(out_of_here) == 0) {
    leave(&c, word, 0);
    longjmp(out_of_here, 1);
  }
  rondo_region_abandon(c.region);
  assert_int_equal(test_capture_state(t->stream), RONDO_CAPTURE_NONE);
  for (uint32_t i = 0; i < 3; i++) leave(&c, word, UINT32_MAX);
  assert_int_equal(test_word(t, word), 4);
  assert_int_equal(info_of(c.region).left, 0);
}

/* Destroying is closing, in any state. */
TREE_TEST(test_ad5_an_open_region_is_destroyed) {
  for (uint32_t warm = 0; warm < 3; warm++) {
    region_case c = make_case(t, (rondo_region_options){0});
    uint32_t *word = test_words(t, 1);
    for (uint32_t i = 0; i < warm; i++) leave(&c, word, UINT32_MAX);
    leave(&c, word, 0);
    assert_ok(rondo_region_destroy(c.region));
    assert_ok(rondo_tree_destroy(c.tree));
  }
  assert_ok(rondo_region_destroy(NULL));
}

TREE_TEST(test_ad5_nested_regions) {
  region_case c = make_case(t, (rondo_region_options){.name = "outer"});
  rondo_region *inner = make_region(c.tree, (rondo_region_options){.name = "inner"});
  rondo_call *call, *none;
  for (uint32_t i = 0; i < 2; i++) { /* eager, captured */
    assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
    assert_misuse(rondo_region_begin(inner, t->stream, NULL, &none), REGION_NESTED);
    assert_message("inside region 'outer', which was begun at ");
    assert_misuse(rondo_region_end(inner, t->stream, RONDO_OK, &none), REGION_NOT_OPEN);
    assert_ok(rondo_region_end(c.region, t->stream, RONDO_OK, &call));
    assert_null(call);
  }
}

TREE_TEST(test_ad5_two_streams) {
  region_case c = make_case(t, (rondo_region_options){0});
  rondo_stream *other = test_stream(t, "other");
  rondo_call *call, *none;
  for (uint32_t i = 0; i < 2; i++) {
    assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
    assert_misuse(rondo_region_begin(c.region, other, NULL, &none), REGION_STREAM);
    assert_message("'other'");
    assert_misuse(rondo_region_end(c.region, other, RONDO_OK, &none), REGION_STREAM);
    assert_ok(rondo_region_end(c.region, t->stream, RONDO_OK, &call));
    assert_null(call);
    assert_misuse(rondo_region_end(c.region, t->stream, RONDO_OK, &none), REGION_NOT_OPEN);
  }
  assert_ok(rondo_region_begin(c.region, other, NULL, &call));
  assert_null(call);
  assert_ok(rondo_region_end(c.region, other, RONDO_OK, &call));
  assert_misuse(rondo_region_end(c.region, other, RONDO_OK, &call), REGION_NOT_OPEN);
}

typedef struct other_thread {
  region_case *c;
  rondo_stream *stream;
  rondo_status begun;
  rondo_reason reason;
} other_thread;

static void begin_elsewhere(void *user) {
  other_thread *other = user;
  rondo_call *call;
  other->begun = rondo_region_begin(other->c->region, other->stream, NULL, &call);
  other->reason = rondo_last_error()->reason;
}

TREE_TEST(test_ad5_two_threads) {
  region_case c = make_case(t, (rondo_region_options){0});
  other_thread other = {.c = &c, .stream = test_stream(t, "other")};
  rondo_call *call;
  for (uint32_t i = 0; i < 2; i++) {
    assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
    test_on_thread(begin_elsewhere, &other);
    assert_int_equal(other.begun, RONDO_INVALID_STATE);
    assert_int_equal(other.reason, RONDO_REASON_CONCURRENT_USE);
    assert_ok(rondo_region_end(c.region, t->stream, RONDO_OK, &call));
  }
}

/* Called by code of the region: in a host step, whose tree is in use, or in a host node. */
static rondo_status meddle(void *user) {
  const region_case *c = user;
  rondo_call *call;
  rondo_region_abandon(c->region);
  assert_int_not_equal(rondo_region_begin(c->region, c->t->stream, NULL, &call), RONDO_OK);
  assert_int_not_equal(rondo_region_end(c->region, c->t->stream, RONDO_OK, &call), RONDO_OK);
  assert_int_not_equal(rondo_region_destroy(c->region), RONDO_OK);
  assert_int_not_equal(rondo_tree_destroy(c->tree), RONDO_OK);
  test_note_error();
  return RONDO_OK;
}

/* Runs eagerly, is captured, and is replayed, with the step in each. */
TREE_TEST(test_ad5_a_host_step_does_not_close_the_region) {
  region_case c = make_case(t, (rondo_region_options){.name = "stepping"});
  uint32_t *word = test_words(t, 1);
  for (uint32_t i = 0; i < 4; i++) {
    rondo_call *call;
    assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
    for (; call != NULL; c.runs++) {
      test_affine(t, t->stream, word, 1, 1, 1);
      rondo_status done = rondo_call_host_step(call, meddle, &c);
      test_affine(t, t->stream, word, 1, 1, 1);
      assert_ok(rondo_region_end(c.region, t->stream, done, &call));
    }
    assert_int_equal(test_word(t, word), 2 * (i + 1));
  }
  assert_int_equal(c.runs, 2);
  assert_int_equal(info_of(c.region).replayed, 2);
  assert_int_equal(info_of(c.region).left, 0);
}

/* A thread that waits runs host functions. */
TREE_TEST(test_ad5_a_host_node_does_not_close_the_region) {
  region_case c = make_case(t, (rondo_region_options){0});
  rondo_call *call;
  assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
  assert_ok(rondo_host_async(t->stream, meddle, &c));
  const rondo_status done = rondo_stream_synchronize(t->stream);
  test_note_error(); /* the function's errors, if it ran on this thread */
  assert_int_equal(done, RONDO_OK);
  assert_ok(rondo_region_end(c.region, t->stream, RONDO_OK, &call));
  assert_null(call);
}

typedef struct leaving_step {
  rondo_region *other;
  rondo_stream *stream;
} leaving_step;

static rondo_status begin_and_leave(void *user) {
  const leaving_step *step = user;
  rondo_call *call;
  return rondo_region_begin(step->other, step->stream, NULL, &call);
}

/* A host step begins a region of another tree and returns. */
TREE_TEST(test_ad5_a_host_step_leaves_a_region) {
  region_case c = make_case(t, (rondo_region_options){.name = "stepping"});
  rondo_tree *tree = test_tree(t, NULL);
  leaving_step step = {.other = make_region(tree, (rondo_region_options){.name = "left"}),
                       .stream = test_stream(t, "other")};
  rondo_call *call;
  assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
  const rondo_status done = rondo_call_host_step(call, begin_and_leave, &step);
  assert_misuse(done, REGION_LEFT);
  assert_message("region 'left', begun at ");
  assert_message("by a host step of 'stepping'");
  assert_misuse(rondo_region_end(c.region, t->stream, done, &call), REGION_LEFT);
  assert_null(call);
  assert_int_equal(info_of(step.other).left, 1);
}

static rondo_status begin_and_return(rondo_call *outer, void *user) {
  rondo_call *call;
  return rondo_region_begin(user, rondo_call_stream(outer), NULL, &call);
}

/* A body begins a region of another tree and returns. */
TREE_TEST(test_ad5_a_body_leaves_a_region) {
  region_case c = make_case(t, (rondo_region_options){.name = "left"});
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = NULL;
  assert_ok(rondo_function_create(
      tree, TEST_FUNCTION_OPTIONS(.name = "careless", .body = begin_and_return, .user = c.region), &function));
  assert_misuse(rondo_function_call(function, t->stream, NULL, 0, NULL, 0), REGION_LEFT);
  assert_message("'left'");
  assert_message("by the body of 'careless'");
  rondo_call *call;
  assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
  assert_ok(rondo_region_end(c.region, t->stream, RONDO_OK, &call));
  assert_ok(rondo_function_create(
      c.tree, TEST_FUNCTION_OPTIONS(.name = "same", .body = begin_and_return, .user = c.region), &function));
  assert_misuse(rondo_function_call(function, t->stream, NULL, 0, NULL, 0), REGION_NESTED);
  assert_message("inside the body of 'same'");
}

/* A function that the code calls becomes part of the region. */
TREE_TEST(test_ad5_functions_in_the_code) {
  region_case c = make_case(t, (rondo_region_options){0});
  test_work work = {.fixture = t, .factor = 3, .term = 1};
  rondo_function *function = test_tree_function(c.tree, "f", RONDO_INPUT_STATIC, &work);
  uint32_t *words = test_counting_words(t, WORDS, 0), *result = test_words(t, WORDS);
  const rondo_input input = {.address = words, .bytes = BYTES};
  for (uint32_t i = 0; i < 4; i++) {
    rondo_call *call;
    assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
    while (call != NULL) {
      rondo_buffer *out;
      assert_ok(rondo_function_call(function, rondo_call_stream(call), &input, 1, &out, 1));
      assert_ok(rondo_buffer_copy(out, rondo_call_stream(call), 0, result, BYTES));
      rondo_buffer_release(out);
      assert_ok(rondo_region_end(c.region, t->stream, RONDO_OK, &call));
    }
    assert_int_equal(test_word(t, result + 5), 16);
  }
  assert_int_equal(work.runs, 2);
  assert_int_equal(info_of(c.region).replayed, 2);
}

/* A stream that captures takes the code's work. */
TREE_TEST(test_ad5_inside_a_capture) {
  region_case c = make_case(t, (rondo_region_options){0});
  uint32_t *word = test_words(t, 1);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  leave(&c, word, UINT32_MAX);
  rondo_exec *exec = test_exec_of(test_capture_end(t->stream));
  for (uint32_t i = 0; i < 3; i++) test_launch(t, exec);
  assert_int_equal(test_word(t, word), 3);
  assert_int_equal(info_of(c.region).skipped[RONDO_SKIP_CAPTURING], 1);
}

/* Messages name the calls that a program with regions makes. */
TREE_TEST(test_ad5_messages_name_calls_of_regions) {
  region_case c = make_case(t, (rondo_region_options){.name = "named"});
  rondo_region *other = make_region(c.tree, (rondo_region_options){.name = "other"});
  rondo_buffer *outputs[2];
  const rondo_region_arguments two = {.outputs = outputs, .output_count = 2};
  rondo_call *call;
  void *address;
  for (uint32_t i = 0; i < 2; i++) {
    assert_ok(rondo_region_begin(c.region, t->stream, &two, &call));
    assert_misuse(rondo_region_destroy(other), CONCURRENT_USE);
    assert_message("rondo_region_destroy: ");
    assert_ok(rondo_call_output(call, 1, BYTES, NULL, &address));
    assert_misuse(rondo_region_end(c.region, t->stream, RONDO_OK, &call), NO_OUTPUT);
    assert_message("rondo_region_end: the code of 'named' did not create output 0");
    assert_ok(rondo_region_begin(c.region, t->stream, NULL, &call));
    assert_fails(rondo_region_end(c.region, t->stream, RONDO_IO_ERROR, &call), RONDO_IO_ERROR);
    assert_message("rondo_region_end: the code of 'named' returned IO_ERROR");
    assert_ok(rondo_region_begin(c.region, t->stream, &two, &call));
    assert_invalid(rondo_region_end(c.region, t->stream, RONDO_OK, &call), RONDO_REASON_ARGUMENT_COUNT);
    assert_message("rondo_region_begin: the call requests 2 outputs of 'named'");
  }
}

TREE_TEST(test_ad5_bad_arguments) {
  region_case c = make_case(t, keyed);
  rondo_region *region = c.region;
  rondo_call *call;
  const rondo_input given = {.give = true};
  rondo_region_options options = {RONDO_REGION_OPTIONS_INIT, .name = "r"};
  assert_invalid(rondo_region_create(c.tree, NULL, &region), RONDO_REASON_NULL_ARGUMENT);
  assert_null(region);
  assert_invalid(rondo_region_create(NULL, &options, &region), RONDO_REASON_NULL_ARGUMENT);
  options.mode = (rondo_region_mode)2;
  assert_invalid(rondo_region_create(c.tree, &options, &region), RONDO_REASON_BAD_OPTIONS);
  options = (rondo_region_options){RONDO_REGION_OPTIONS_INIT, .name = "r", .key_bytes = RONDO_REGION_MAX_KEY + 1};
  assert_invalid(rondo_region_create(c.tree, &options, &region), RONDO_REASON_OUT_OF_RANGE);
  options = (rondo_region_options){RONDO_REGION_OPTIONS_INIT};
  assert_invalid(rondo_region_create(c.tree, &options, &region), RONDO_REASON_NULL_ARGUMENT);
  const rondo_region_arguments bad[] = {{.key = "", .key_bytes = 9, .inputs = &given, .input_count = 1},
                                        {.key = NULL, .key_bytes = 8, .inputs = &given, .input_count = 1},
                                        {.inputs = &given, .input_count = 1},
                                        {.inputs = &given, .input_count = 0}};
  const rondo_reason reasons[] = {RONDO_REASON_OUT_OF_RANGE, RONDO_REASON_NULL_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                                  RONDO_REASON_ARGUMENT_COUNT};
  for (size_t i = 0; i < 4; i++) assert_invalid(rondo_region_begin(c.region, t->stream, &bad[i], &call), reasons[i]);
  assert_invalid(rondo_region_begin(c.region, NULL, NULL, &call), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_region_begin(NULL, t->stream, NULL, &call), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_region_end(NULL, t->stream, RONDO_OK, &call), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_region_end(c.region, NULL, RONDO_OK, &call), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_region_get_info(c.region, NULL), RONDO_REASON_NULL_ARGUMENT);
  rondo_region_abandon(NULL);
  assert_int_equal(info_of(c.region).calls, 0);
}
