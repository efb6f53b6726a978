/* SPDX-License-Identifier: MIT
 * Inputs of calls (TR-6): static, moving and managed ones; mutated inputs of each kind; inputs that are dropped, parts
 * of buffers, inputs of other shapes (TR-7), and outputs of a step with which the next one begins.
 */
#include <stdatomic.h>
#include <string.h>

#include "support/foreign_library.h"
#include "support/test_tree.h"

enum { WORDS = 64, BYTES = WORDS * sizeof(uint32_t) };

static rondo_function *make_function(rondo_tree *tree, const char *name, rondo_function_body body, void *user,
                                     const uint32_t *inputs, size_t count, rondo_binding binding) {
  rondo_function *function = NULL;
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = name,      .body = body, .user = user, .inputs = inputs,
      .input_count = count,        .binding = binding};
  assert_ok(rondo_function_create(tree, &options, &function));
  return function;
}

/* in = in * 2 + 1, in place; no outputs. */
static rondo_status mutate(rondo_call *call, void *user) {
  test_work *work = user;
  work->runs++;
  test_affine(work->fixture, rondo_call_stream(call), rondo_call_input(call, 0), WORDS, 2, 1);
  return RONDO_OK;
}

/* A mutated moving input is written back, however it was bound. */
TREE_TEST(test_tr6_mutated_moving_inputs) {
  static const uint32_t kind = RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED;
  for (int binding = RONDO_BINDING_AUTOMATIC; binding <= RONDO_BINDING_PATCH; binding++) {
    test_work work = {.fixture = t};
    rondo_tree *tree = test_tree(t, NULL);
    rondo_function *function = make_function(tree, "mutate", mutate, &work, &kind, 1, (rondo_binding)binding);
    for (uint32_t i = 0; i < 5; i++) {
      uint32_t expected[WORDS], *words = test_counting_words(t, WORDS, 100 * i);
      const rondo_input input = {.address = words, .bytes = BYTES};
      assert_ok(rondo_function_call(function, t->stream, &input, 1, NULL, 0));
      for (uint32_t j = 0; j < WORDS; j++) expected[j] = (100 * i + j) * 2 + 1;
      assert_words(t, words, expected, WORDS);
      test_words_free(t, words);
    }
    assert_int_equal(work.runs, 2);
    assert_outcome(tree, RONDO_CALL_REPLAYED);
    const rondo_tree_info info = test_tree_info(tree);
    if (binding == RONDO_BINDING_COPY) assert_true(info.copied_inputs >= 3 && info.patched_inputs == 0);
    if (binding == RONDO_BINDING_PATCH) assert_true(info.patched_inputs >= 3 && info.copied_inputs == 0);
    test_tree_destroy(tree);
  }
}

/* Static inputs and outputs of the tree are written in place; a static input at another address makes another
 * recording. */
TREE_TEST(test_tr6_mutated_static_and_managed_inputs) {
  static const uint32_t kind = RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED;
  test_work work = {.fixture = t}, make = {.fixture = t, .factor = 1, .term = 3};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = make_function(tree, "mutate", mutate, &work, &kind, 1, RONDO_BINDING_AUTOMATIC);
  rondo_function *maker = test_tree_function(tree, "make", RONDO_INPUT_MOVING, &make);
  uint32_t *places[2] = {test_counting_words(t, WORDS, 0), test_counting_words(t, WORDS, 1000)};
  uint32_t rounds[2] = {0};
  for (size_t i = 0; i < 8; i++) {
    const size_t place = i / 4;
    const rondo_input input = {.address = places[place], .bytes = BYTES};
    assert_ok(rondo_function_call(function, t->stream, &input, 1, NULL, 0));
    rounds[place]++;
  }
  assert_int_equal(test_tree_info(tree).recordings, 2);
  for (size_t place = 0; place < 2; place++) {
    uint32_t expected[WORDS];
    for (uint32_t j = 0; j < WORDS; j++) {
      expected[j] = (uint32_t)place * 1000 + j;
      for (uint32_t i = 0; i < rounds[place]; i++) expected[j] = expected[j] * 2 + 1;
    }
    assert_words(t, places[place], expected, WORDS);
  }
  for (size_t i = 0; i < 4; i++) {
    assert_ok(rondo_tree_step_begin(tree));
    uint32_t *words = test_counting_words(t, WORDS, 7);
    rondo_buffer *out = test_call_words(t, maker, words, WORDS);
    const rondo_input input = {.buffer = out};
    assert_ok(rondo_function_call(function, t->stream, &input, 1, NULL, 0));
    test_assert_buffer(t, out, 21, 2);
    rondo_buffer_release(out);
    test_words_free(t, words);
    assert_ok(rondo_tree_step_end(tree));
  }
  assert_outcome(tree, RONDO_CALL_REPLAYED);
}

/* out = a * 31 + b. */
static rondo_status combine(rondo_call *call, void *user) {
  test_work *work = user;
  void *a = rondo_call_input(call, 0), *b = rondo_call_input(call, 1), *out;
  work->runs++;
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  assert_ok(rondo_launch(rondo_call_stream(call), test_kernel(work->fixture, TEST_KERNEL_COMBINE),
                         (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&a, &b, &out)));
  return RONDO_OK;
}

typedef struct read_work {
  test_fixture *fixture;
  uint32_t readers;
} read_work;

/* So many kernels read the first words of its input. */
static rondo_status read_often(rondo_call *call, void *user) {
  const read_work *work = user;
  const void *in = rondo_call_input(call, 0);
  void *out;
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  for (uint32_t i = 0; i < work->readers; i++)
    assert_ok(rondo_launch(rondo_call_stream(call), test_kernel(work->fixture, TEST_KERNEL_COMBINE),
                           (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&in, &in, &out)));
  return RONDO_OK;
}

static void do_nothing(void *user) { (void)user; }

/* A library's host function gets the input. */
static rondo_status let_library_read(rondo_call *call, void *library) {
  void *const native = rondo_stream_native(rondo_call_stream(call)), *const in = rondo_call_input(call, 0), *out;
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, in, BYTES));
  assert_int_equal(foreign_host(library, native, do_nothing, in), 0);
  return RONDO_OK;
}

/* The library must find the input where it was recorded, so it is copied there. */
TREE_TEST(test_tr6_a_library_gets_an_input) {
  static const uint32_t kind = RONDO_INPUT_MOVING;
  if (!test_device_is("cuda")) skip();
  foreign_library *library = foreign_open();
  assert_non_null(library);
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *f = make_function(tree, "library", let_library_read, library, &kind, 1, RONDO_BINDING_PATCH);
  for (int i = 0; i < 4; i++) {
    rondo_buffer *out = test_call_words(t, f, test_counting_words(t, WORDS, 7), WORDS);
    test_assert_buffer(t, out, 7, 1);
    rondo_buffer_release(out);
  }
  assert_outcome(tree, RONDO_CALL_REPLAYED);
  assert_int_equal(test_tree_info(tree).patched_inputs, 0);
  assert_true(test_tree_info(tree).copied_inputs >= 2);
  foreign_close(library);
}

static void assert_binding(test_fixture *t, uint32_t readers, size_t count, bool is_patched) {
  static const uint32_t kind = RONDO_INPUT_MOVING;
  read_work work = {.fixture = t, .readers = readers};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = make_function(tree, "read", read_often, &work, &kind, 1, RONDO_BINDING_AUTOMATIC);
  uint32_t *words = test_words(t, count);
  for (int i = 0; i < 3; i++) rondo_buffer_release(test_call_words(t, function, words, count));
  assert_int_equal(test_tree_info(tree).patched_inputs > 0, is_patched);
  assert_int_equal(test_tree_info(tree).copied_inputs > 0, !is_patched);
  test_tree_destroy(tree);
  test_words_free(t, words);
}

/* By default, an input is patched while that costs less: on a GPU, as measured, for one reader above 2 MiB, for eleven
 * above 9. */
TREE_TEST(test_tr6_the_cheaper_binding_is_taken) {
  const size_t large = 65536 / sizeof(uint32_t), mib = (1 << 20) / sizeof(uint32_t);
  if (test_device_is("cuda")) {
    assert_binding(t, 1, large, false);
    assert_binding(t, 1, 2 * mib, false);
    assert_binding(t, 1, 3 * mib, true);
    assert_binding(t, 11, 8 * mib, false);
    assert_binding(t, 11, 10 * mib, true);
  } else {
    assert_binding(t, 14, WORDS, true);
    assert_binding(t, 15, WORDS, false);
    assert_binding(t, 100, large, true);
  }
}

/* By costs that are given (<rondo/gain.h>), and by the library's own again. */
TREE_TEST(test_tr6_the_binding_follows_the_costs) {
  const bool is_own_patched = !test_device_is("cuda");
  const rondo_costs dear_patches = {RONDO_COSTS_INIT, .input_patched_node = 1e6};
  const rondo_costs dear_copies = {RONDO_COSTS_INIT, .input_copied_kib = 1e6};
  assert_binding(t, 1, WORDS, is_own_patched);
  assert_ok(rondo_device_set_costs(t->device, &dear_patches));
  assert_binding(t, 1, WORDS, false);
  assert_ok(rondo_device_set_costs(t->device, &dear_copies));
  assert_binding(t, 100, WORDS, true);
  assert_ok(rondo_device_set_costs(t->device, NULL));
  assert_binding(t, 1, WORDS, is_own_patched);
}

/* The same memory twice, and places that keep no alignment. */
TREE_TEST(test_tr6_inputs_anywhere) {
  static const uint32_t kinds[] = {RONDO_INPUT_MOVING, RONDO_INPUT_MOVING};
  for (int binding = RONDO_BINDING_AUTOMATIC; binding <= RONDO_BINDING_PATCH; binding++) {
    test_work work = {.fixture = t};
    rondo_tree *tree = test_tree(t, NULL);
    rondo_function *function = make_function(tree, "combine", combine, &work, kinds, 2, (rondo_binding)binding);
    uint32_t values[4 * WORDS], *words = test_words(t, 4 * WORDS);
    for (uint32_t i = 0; i < 4 * WORDS; i++) values[i] = i;
    test_write(t, words, values, sizeof values);
    static const uint32_t places[][2] = {{0, 64}, {64, 64}, {3, 128}, {128, 7}, {9, 10}, {64, 0}, {5, 5}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
      const uint32_t a = places[i][0], b = places[i][1];
      const rondo_input inputs[] = {{.address = words + a, .bytes = BYTES}, {.address = words + b, .bytes = BYTES}};
      rondo_buffer *out;
      assert_ok(rondo_function_call(function, t->stream, inputs, 2, &out, 1));
      test_assert_buffer(t, out, a * 31 + b, 32);
      rondo_buffer_release(out);
    }
    assert_int_equal(work.runs, 2);
    test_tree_destroy(tree);
    test_words_free(t, words);
  }
}

/* A step's output is the next step's input, without a common step: recorded, replayed, passed on each time. */
TREE_TEST(test_tr4_outputs_feed_the_next_step) {
  for (int clone = 0; clone < 2; clone++) {
    test_work work = {.fixture = t, .factor = 3, .term = 1};
    const rondo_tree_options options = {RONDO_TREE_OPTIONS_INIT,
                                        .outputs = clone != 0 ? RONDO_OUTPUTS_CLONE : RONDO_OUTPUTS_EXPIRE};
    rondo_tree *tree = test_tree(t, &options);
    rondo_function *function = test_tree_function(tree, "next", RONDO_INPUT_MOVING, &work);
    uint32_t *words = test_counting_words(t, WORDS, 0), first = 0, step = 1;
    rondo_buffer *state_buffer = test_call_words(t, function, words, WORDS);
    for (size_t i = 0; i < 8; i++) {
      first = first * 3 + 1;
      step *= 3;
      test_assert_buffer(t, state_buffer, first, step);
      rondo_buffer *next = test_call_buffer(t, function, state_buffer);
      rondo_buffer_release(state_buffer);
      state_buffer = next;
    }
    rondo_buffer_release(state_buffer);
    assert_int_equal(work.runs, 2);
    assert_outcome(tree, RONDO_CALL_REPLAYED);
    test_tree_destroy(tree);
    test_words_free(t, words);
  }
}

/* out = in + 1 through memory that may be the input's, which is dropped in between. */
static rondo_status consume(rondo_call *call, void *user) {
  test_work *work = user;
  rondo_stream *stream = rondo_call_stream(call);
  void *out;
  work->runs++;
  void *scratch = test_allocate_async(stream, BYTES);
  assert_ok(rondo_copy_async(stream, scratch, rondo_call_input(call, 0), BYTES));
  assert_ok(rondo_call_drop_input(call, 0));
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  assert_ok(rondo_copy_async(stream, out, scratch, BYTES));
  test_affine(work->fixture, stream, out, WORDS, 1, 1);
  return rondo_free_async(stream, scratch);
}

/* A chain of calls that each give their input away holds two buffers, however long it is. */
TREE_TEST(test_tr4_given_inputs_are_used_again) {
  enum { LENGTH = 12 };
  static const uint32_t kind = RONDO_INPUT_MOVING;
  test_work works[LENGTH];
  rondo_function *functions[LENGTH];
  rondo_tree *tree = test_tree(t, NULL);
  uint32_t *words = test_counting_words(t, WORDS, 5);
  for (size_t i = 0; i < LENGTH; i++) {
    works[i] = (test_work){.fixture = t};
    functions[i] = make_function(tree, "consume", consume, &works[i], &kind, 1, RONDO_BINDING_AUTOMATIC);
  }
  for (size_t round = 0; round < 4; round++) {
    rondo_buffer *buffer = NULL;
    assert_ok(rondo_tree_step_begin(tree));
    for (size_t i = 0; i < LENGTH; i++) {
      const rondo_input input = {
          .buffer = buffer, .address = buffer == NULL ? words : NULL, .bytes = BYTES, .give = buffer != NULL};
      rondo_buffer *out;
      assert_ok(rondo_function_call(functions[i], t->stream, &input, 1, &out, 1));
      buffer = out;
    }
    test_assert_buffer(t, buffer, 5 + LENGTH, 1);
    rondo_buffer_release(buffer);
    assert_ok(rondo_tree_step_end(tree));
  }
  assert_outcome(tree, RONDO_CALL_REPLAYED);
  const rondo_tree_info info = test_tree_info(tree);
  assert_int_equal(info.recordings, LENGTH);
  if (!test_is_guarded(t)) assert_true(info.arena_used <= 4 * BYTES);
}

/* Scalars are keyed by value; opaque pointers are ignored. */
static rondo_status set_words(rondo_call *call, void *user) {
  test_work *work = user;
  rondo_input scalar, opaque;
  void *out;
  work->runs++;
  assert_ok(rondo_call_get_input(call, 0, &scalar));
  assert_ok(rondo_call_get_input(call, 1, &opaque));
  const uint32_t value = (uint32_t)scalar.scalar;
  assert_non_null(opaque.address);
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  return rondo_launch(rondo_call_stream(call), test_kernel(work->fixture, TEST_KERNEL_SET), (rondo_grid){WORDS, 0, 0},
                      RONDO_ARGS(&value, &out));
}

TREE_TEST(test_tr7_scalars_make_recordings) {
  static const uint32_t kinds[] = {RONDO_INPUT_SCALAR, RONDO_INPUT_OPAQUE};
  test_work work = {.fixture = t};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = make_function(tree, "set", set_words, &work, kinds, 2, RONDO_BINDING_AUTOMATIC);
  for (uint32_t round = 0; round < 3; round++)
    for (uint32_t value = 2; value <= 3; value++) {
      const rondo_input inputs[] = {{.scalar = value}, {.address = &round}};
      rondo_buffer *out;
      assert_ok(rondo_function_call(function, t->stream, inputs, 2, &out, 1));
      test_assert_buffer(t, out, value, 0);
      rondo_buffer_release(out);
    }
  assert_int_equal(work.runs, 4);
  assert_int_equal(test_tree_info(tree).recordings, 2);
}

/* Outputs that are inputs, or parts of outputs. */
static rondo_status make_parts(rondo_call *call, void *user) {
  test_work *work = user;
  void *out;
  work->runs++;
  assert_ok(rondo_call_output_of_input(call, 0, 0, 4, 8, NULL));
  assert_ok(rondo_call_output(call, 1, BYTES, NULL, &out));
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, rondo_call_input(call, 0), BYTES));
  assert_ok(rondo_call_output_of_output(call, 2, 1, 16, 32, NULL));
  return rondo_call_output_of_output(call, 3, 2, 4, 4, NULL);
}

TREE_TEST(test_outputs_of_memory_that_there_is) {
  static const uint32_t kind = RONDO_INPUT_MOVING;
  test_work work = {.fixture = t};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = make_function(tree, "parts", make_parts, &work, &kind, 1, RONDO_BINDING_AUTOMATIC);
  for (uint32_t i = 0; i < 5; i++) {
    uint32_t *words = test_counting_words(t, WORDS, 10 * i);
    const rondo_input input = {.address = words, .bytes = BYTES};
    rondo_buffer *outs[4];
    assert_ok(rondo_function_call(function, t->stream, &input, 1, outs, 4));
    test_assert_buffer(t, outs[0], 10 * i + 1, 1);
    test_assert_buffer(t, outs[2], 10 * i + 4, 1);
    rondo_buffer_release(outs[1]);
    rondo_buffer_release(outs[2]);
    assert_int_equal(test_tree_info(tree).live_outputs, i == 0 ? 0 : 1);
    test_assert_buffer(t, outs[3], 10 * i + 5, 1);
    rondo_buffer_release(outs[0]);
    rondo_buffer_release(outs[3]);
    assert_int_equal(test_tree_info(tree).live_outputs, 0);
    test_words_free(t, words);
  }
  assert_int_equal(work.runs, 2);
}

/* Calls on another stream run after earlier calls; destroying a stream has no effect on them. */
TREE_TEST(test_calls_on_several_streams) {
  test_work work = {.fixture = t, .factor = 3, .term = 1};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = test_tree_function(tree, "next", RONDO_INPUT_MOVING, &work);
  uint32_t *words = test_counting_words(t, WORDS, 0), first = 0, step = 1;
  rondo_buffer *buffer = NULL;
  for (size_t i = 0; i < 9; i++) {
    rondo_stream *stream = test_stream(t, "another");
    const rondo_input input = {
        .buffer = buffer, .address = buffer == NULL ? words : NULL, .bytes = BYTES, .give = true};
    rondo_buffer *next;
    assert_ok(rondo_function_call(function, stream, &input, 1, &next, 1));
    buffer = next;
    first = first * 3 + 1;
    step *= 3;
    if (i % 3 == 2) {
      test_order(t, stream, t->stream);
      test_assert_buffer(t, buffer, first, step);
    }
    test_stream_destroy(stream);
  }
  rondo_buffer_release(buffer);
}

/* Addresses that no parameter declares ---------------------------------------------------------------------------- */

/* out[b] = at[b] + plus, where the kernel says of neither that it is an address. */
static void hidden_cpu(rondo_blocks blocks, void *const *args) {
  const uint32_t *in = *(const uint32_t **)args[0];
  for (size_t b = blocks.first; b < blocks.last; b++) (*(uint32_t **)args[2])[b] = in[b] + *(const uint32_t *)args[1];
}
static const char hidden_cuda[] =
    "extern \"C\" __global__ void hidden(const unsigned *in, unsigned plus, unsigned *out) {\n"
    "  out[blockIdx.x] = in[blockIdx.x] + plus;\n"
    "}\n";

typedef struct hidden_work {
  rondo_kernel *kernel;
  uint32_t plus, runs;
  bool counts; /* `plus` is another one in each run */
  test_fixture *fixture;
} hidden_work;

static rondo_status launch_hidden(rondo_call *call, void *user) {
  hidden_work *work = user;
  void *in = rondo_call_input(call, 0), *out;
  work->runs++;
  if (work->counts) work->plus++;
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  return rondo_launch(rondo_call_stream(call), work->kernel, (rondo_grid){WORDS, 0, 0},
                      RONDO_ARGS(&in, &work->plus, &out));
}

/* The same of input 0; output 1 = input 1, which is dropped before output 0 is allocated, which may use its memory. */
static rondo_status launch_hidden_dropping(rondo_call *call, void *user) {
  rondo_stream *stream = rondo_call_stream(call);
  void *out;
  void *scratch = test_allocate_async(stream, BYTES);
  assert_ok(rondo_copy_async(stream, scratch, rondo_call_input(call, 1), BYTES));
  assert_ok(rondo_call_drop_input(call, 1));
  assert_ok(launch_hidden(call, user));
  assert_ok(rondo_call_output(call, 1, BYTES, NULL, &out));
  assert_ok(rondo_copy_async(stream, out, scratch, BYTES));
  return rondo_free_async(stream, scratch);
}

/* ... or input 1 * 2, which then uses its memory. */
static rondo_status launch_hidden_writing(rondo_call *call, void *user) {
  const hidden_work *work = user;
  assert_ok(launch_hidden(call, user));
  test_affine(work->fixture, rondo_call_stream(call), rondo_call_input(call, 1), WORDS, 2, 0);
  return rondo_call_output_of_input(call, 1, 1, 0, BYTES, NULL);
}

static void make_hidden_kernel(test_fixture *t, hidden_work *work) {
  static const rondo_kernel_options kernel = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "hidden",
      .cpu = hidden_cpu,         .cuda_source = hidden_cuda,
      .block_threads = 1,        .params = {RONDO_SCALAR(void *), RONDO_SCALAR(uint32_t), RONDO_WRITES}};
  assert_ok(rondo_kernel_create(t->device, &kernel, &work->kernel));
}

static rondo_function *make_hidden(test_fixture *t, rondo_tree *tree, hidden_work *work, bool find) {
  static const uint32_t moving = RONDO_INPUT_MOVING;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                          .name = "hidden",
                                          .body = launch_hidden,
                                          .user = work,
                                          .inputs = &moving,
                                          .input_count = 1,
                                          .find_inputs = find,
                                          .binding = RONDO_BINDING_PATCH,
                                          .freezes_values = work->counts};
  rondo_function *function = NULL;
  make_hidden_kernel(t, work);
  assert_ok(rondo_function_create(tree, &options, &function));
  return function;
}

/* Copied when nothing says where they are; patched when the recordings were compared. */
TREE_TEST(test_tr6_undeclared_addresses_are_found) {
  for (int find = 0; find < 2; find++) {
    hidden_work work = {.plus = 7};
    rondo_tree *tree = test_tree(t, NULL);
    rondo_function *function = make_hidden(t, tree, &work, find != 0);
    for (uint32_t i = 0; i < 6; i++) {
      uint32_t *words = test_counting_words(t, WORDS, 10 * i);
      rondo_buffer *out = test_call_words(t, function, words, WORDS);
      test_assert_buffer(t, out, 10 * i + 7, 1);
      rondo_buffer_release(out);
      test_words_free(t, words);
    }
    const rondo_tree_info info = test_tree_info(tree);
    assert_int_equal(info.replayed, 4);
    assert_int_equal(work.runs, find == 0 ? 2 : test_is_guarded(t) ? 3 : 4);
    assert_true(find != 0 ? info.patched_inputs >= 4 : info.patched_inputs == 0);
    assert_int_equal(info.checked, find);
    assert_int_equal(info.untrusted, 0);
    test_tree_destroy(tree);
    rondo_kernel_destroy(work.kernel);
  }
}

/* Steps of which the second call finds input 0 and has input 1 from the first; output 1 is that times `factor`. */
static rondo_tree_info find_after_another(test_fixture *t, rondo_function_body body, bool gives, uint32_t factor) {
  static const uint32_t kinds[] = {RONDO_INPUT_MOVING, RONDO_INPUT_MOVING};
  hidden_work work = {.plus = 7, .fixture = t};
  test_work made = {.fixture = t, .factor = 3, .term = 1};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *make = test_tree_function(tree, "make", RONDO_INPUT_MOVING, &made), *function;
  make_hidden_kernel(t, &work);
  assert_ok(rondo_function_create(
      tree,
      &(rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .name = "hidden", .body = body, .user = &work,
                                .inputs = kinds, .input_count = 2, .binding = RONDO_BINDING_PATCH, .find_inputs = true},
      &function));
  for (uint32_t i = 0; i < 6; i++) {
    uint32_t *words = test_counting_words(t, WORDS, 10 * i);
    rondo_buffer *outs[2];
    assert_ok(rondo_tree_step_begin(tree));
    rondo_buffer *const y = test_call_words(t, make, words, WORDS);
    const rondo_input inputs[] = {{.address = words, .bytes = BYTES}, {.buffer = y, .give = gives}};
    assert_ok(rondo_function_call(function, t->stream, inputs, 2, outs, 2));
    test_assert_buffer(t, outs[0], 10 * i + 7, 1);
    test_assert_buffer(t, outs[1], factor * (30 * i + 1), factor * 3);
    for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
    if (!gives) rondo_buffer_release(y);
    assert_ok(rondo_tree_step_end(tree));
    test_words_free(t, words);
  }
  assert_int_equal(work.runs, test_is_guarded(t) ? 3 : 4);
  const rondo_tree_info info = test_tree_info(tree);
  assert_int_equal(info.replayed, 8);
  test_tree_destroy(tree);
  rondo_kernel_destroy(work.kernel);
  return info;
}

/* All recordings that are compared drop the same inputs, and trying them does not lose these inputs. Where lifetimes
 * are checked, freed memory does not come back. */
TREE_TEST(test_tr6_addresses_are_found_next_to_dropped_inputs) {
  const rondo_tree_info info = find_after_another(t, launch_hidden_dropping, true, 1);
  assert_int_equal(info.checked, !test_is_guarded(t));
  assert_int_equal(info.untrusted, test_is_guarded(t));
  if (!test_is_guarded(t)) assert_true(info.patched_inputs >= 4);
}

/* An output of the path may be written undeclared, and is written once in each call. */
TREE_TEST(test_tr6_addresses_are_found_next_to_outputs_that_are_written) {
  const rondo_tree_info info = find_after_another(t, launch_hidden_writing, false, 2);
  assert_int_equal(info.checked, 1);
  assert_int_equal(info.untrusted, 0);
  assert_true(info.patched_inputs >= 4);
}

/* out[b] = seen[b] + 1000 * at[b], where `at` is passed in two halves, which no comparison takes for an address. */
static void pieces_cpu(rondo_blocks blocks, void *const *args) {
  const uint64_t low = *(const uint32_t *)args[0], high = *(const uint32_t *)args[1];
  const uint32_t *at = (const uint32_t *)(uintptr_t)(high << 32 | (low ^ 0xffffffff));
  const uint32_t *seen = *(const uint32_t **)args[2];
  for (size_t b = blocks.first; b < blocks.last; b++) (*(uint32_t **)args[3])[b] = seen[b] + 1000 * at[b];
}
static const char pieces_cuda[] =
    "extern \"C\" __global__ void pieces(unsigned low, unsigned high, const unsigned *seen, unsigned *out) {\n"
    "  const unsigned *at = (const unsigned *)((unsigned long long)high << 32 | (low ^ 0xffffffffu));\n"
    "  out[blockIdx.x] = seen[blockIdx.x] + 1000 * at[blockIdx.x];\n"
    "}\n";
static const rondo_kernel_options pieces = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "pieces",
    .cpu = pieces_cpu,         .cuda_source = pieces_cuda,
    .block_threads = 1,        .params = {RONDO_SCALAR(uint32_t), RONDO_SCALAR(uint32_t), RONDO_READS, RONDO_WRITES}};

static rondo_status launch_pieces(rondo_call *call, void *user) {
  const hidden_work *work = user;
  const void *in = rondo_call_input(call, 0);
  const uint32_t low = (uint32_t)(uintptr_t)in ^ 0xffffffff, high = (uint32_t)((uint64_t)(uintptr_t)in >> 32);
  void *out;
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  return rondo_launch(rondo_call_stream(call), work->kernel, (rondo_grid){WORDS, 0, 0},
                      RONDO_ARGS(&low, &high, &in, &out));
}

/* An address that is found in one place and hidden in another: the work is tried, and its input copied. */
TREE_TEST(test_tr6_work_with_hidden_addresses_is_not_patched) {
  static const uint32_t moving = RONDO_INPUT_MOVING;
  hidden_work work = {0};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = NULL;
  assert_ok(rondo_kernel_create(t->device, &pieces, &work.kernel));
  assert_ok(rondo_function_create(
      tree,
      &(rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .name = "pieces", .body = launch_pieces, .user = &work,
                                .freezes_values = true, .inputs = &moving, .input_count = 1,
                                .binding = RONDO_BINDING_PATCH, .find_inputs = true},
      &function));
  for (uint32_t i = 0; i < 6; i++) {
    uint32_t *words = test_counting_words(t, WORDS, 10 * i);
    rondo_buffer *out = test_call_words(t, function, words, WORDS);
    test_assert_buffer(t, out, 10 * i * 1001, 1001);
    rondo_buffer_release(out);
    test_words_free(t, words);
  }
  const rondo_tree_info info = test_tree_info(tree);
  assert_int_equal(info.replayed, 4);
  assert_int_equal(info.checked, 1);
  assert_int_equal(info.untrusted, 1);
  assert_int_equal(info.patched_inputs, 0);
  assert_int_equal(info.copied_inputs, 5);
  rondo_kernel_destroy(work.kernel);
}

static rondo_status count_up(rondo_call *call, void *user) {
  const test_work *work = user;
  for (size_t i = 0; i < 2; i++)
    test_affine(work->fixture, rondo_call_stream(call), rondo_call_input(call, i), WORDS, 2, 1);
  (void)test_body_copy(call, 1, 0);
  return RONDO_OK;
}

/* Trying leaves nothing: what is written, moving or not, declared or not, is written once in each call. */
static void assert_written_once(test_fixture *t, uint32_t counter_kind) {
  const uint32_t kinds[] = {counter_kind, RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED};
  test_work work = {.fixture = t};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = NULL;
  uint32_t *counter = test_counting_words(t, WORDS, 1), expected[WORDS];
  assert_ok(rondo_function_create(
      tree,
      &(rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .name = "count", .body = count_up, .user = &work,
                                .inputs = kinds, .input_count = 2, .find_inputs = true, .binding = RONDO_BINDING_PATCH},
      &function));
  for (uint32_t k = 0; k < WORDS; k++) expected[k] = 1 + k;
  for (uint32_t i = 0; i < 5; i++) {
    uint32_t *words = test_counting_words(t, WORDS, i);
    const rondo_input inputs[] = {{.address = counter, .bytes = BYTES}, {.address = words, .bytes = BYTES}};
    rondo_buffer *out;
    assert_ok(rondo_function_call(function, t->stream, inputs, 2, &out, 1));
    test_assert_buffer(t, out, 2 * i + 1, 2);
    for (uint32_t k = 0; k < WORDS; k++) expected[k] = expected[k] * 2 + 1;
    assert_words(t, counter, expected, WORDS);
    for (uint32_t k = 0; k < WORDS; k++) assert_int_equal(test_word(t, words + k), 2 * (i + k) + 1);
    rondo_buffer_release(out);
    test_words_free(t, words);
  }
  assert_int_equal(test_tree_info(tree).checked, 1);
  assert_int_equal(test_tree_info(tree).untrusted, 0);
  assert_int_equal(test_tree_info(tree).replayed, 3);
  test_tree_destroy(tree);
  test_words_free(t, counter);
}
TREE_TEST(test_tr6_trying_has_no_side_effects) {
  assert_written_once(t, RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED);
  assert_written_once(t, RONDO_INPUT_STATIC);
}

/* A value that the body computes again each time is fixed in the recording, and found. */
static void note_frozen(void *user, rondo_log_level level, const char *area, const char *message) {
  if (level == RONDO_LOG_WARNING && strcmp(area, "tree") == 0 && strstr(message, "'hidden'") != NULL &&
      strstr(message, "in another recording") != NULL)
    atomic_fetch_add((atomic_int *)user, 1);
}

TREE_TEST(test_tr6_frozen_values_are_found) {
  atomic_int found = 0;
  hidden_work work = {.counts = true};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = make_hidden(t, tree, &work, true);
  uint32_t *words = test_counting_words(t, WORDS, 0);
  rondo_log_set_sink(note_frozen, &found, RONDO_LOG_WARNING);
  for (uint32_t i = 0; i < 4; i++) {
    rondo_buffer *out = test_call_words(t, function, words, WORDS);
    test_assert_buffer(t, out, i == 0 ? 1 : 2, 1);
    rondo_buffer_release(out);
  }
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_WARNING);
  assert_int_equal(found, 1);
  rondo_kernel_destroy(work.kernel);
}

/* Sharing execs --------------------------------------------------------------------------------------------------- */

/* One function with its static input at three addresses, in alternation, and a moving input: one exec for all or,
 * beyond the bound of bytes, as few as fit. */
static void call_in_places(test_fixture *t, rondo_tree *tree, size_t rounds) {
  static const uint32_t kinds[] = {RONDO_INPUT_STATIC, RONDO_INPUT_MOVING};
  test_work work = {.fixture = t};
  rondo_function *function = make_function(tree, "combine", combine, &work, kinds, 2, RONDO_BINDING_AUTOMATIC);
  uint32_t *places[3] = {test_counting_words(t, WORDS, 0), test_counting_words(t, WORDS, 100),
                         test_counting_words(t, WORDS, 200)};
  for (uint32_t i = 0; i < 3 * rounds; i++) {
    uint32_t *moving = test_counting_words(t, WORDS, i);
    const rondo_input inputs[] = {{.address = places[i % 3], .bytes = BYTES}, {.address = moving, .bytes = BYTES}};
    rondo_buffer *out;
    assert_ok(rondo_function_call(function, t->stream, inputs, 2, &out, 1));
    test_assert_buffer(t, out, 100 * (i % 3) * 31 + i, 32);
    rondo_buffer_release(out);
    test_words_free(t, moving);
  }
  assert_int_equal(test_tree_info(tree).recordings, 3);
  assert_outcome(tree, RONDO_CALL_REPLAYED);
  for (size_t i = 0; i < 3; i++) test_words_free(t, places[i]);
}

TREE_TEST(test_tr10_execs_are_shared) {
  rondo_tree *tree = test_tree(t, NULL);
  call_in_places(t, tree, 4);
  const rondo_tree_info alone = test_tree_info(tree);
  assert_int_equal(alone.shared_execs + alone.exec_switches, 0);
  test_tree_destroy(tree);
  static const rondo_tree_options options[] = {{RONDO_TREE_OPTIONS_INIT, .share_execs = true},
                                               {RONDO_TREE_OPTIONS_INIT, .max_exec_bytes = 1}};
  for (size_t i = 0; i < 2; i++) {
    tree = test_tree(t, &options[i]);
    call_in_places(t, tree, 4);
    const rondo_tree_info info = test_tree_info(tree);
    assert_int_equal(info.shared_execs, 2);
    assert_true(info.exec_switches >= 8);
    assert_int_equal(info.evicted, 0);
    assert_true(info.exec_host_bytes + info.exec_device_bytes < alone.exec_host_bytes + alone.exec_device_bytes);
    test_tree_destroy(tree);
  }
}

/* Trying a recording waits for the stream. A failure of earlier work is no finding about the recording, and is not lost
 * either: the call that is recorded returns it. */
TREE_TEST(test_tr6_trying_loses_no_failure) {
  hidden_work work = {.plus = 7};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = make_hidden(t, tree, &work, true);
  uint32_t *words = test_counting_words(t, WORDS, 10);
  const rondo_input input = {.address = words, .bytes = BYTES};
  int told = 0;
  for (int i = 0; i < 6; i++) {
    rondo_buffer *out = NULL;
    assert_ok(rondo_host_async(t->stream, test_host_fails, NULL));
    const rondo_status called = rondo_function_call(function, t->stream, &input, 1, &out, 1);
    told += called == RONDO_EXECUTION_FAILED;
    if (called == RONDO_OK) told += rondo_stream_synchronize(t->stream) == RONDO_EXECUTION_FAILED;
    rondo_buffer_release(out);
  }
  assert_int_equal(told, 6);
  for (int i = 0; i < 3; i++) {
    rondo_buffer *out = test_call_words(t, function, words, WORDS);
    test_assert_buffer(t, out, 17, 1);
    rondo_buffer_release(out);
  }
  const rondo_tree_info info = test_tree_info(tree);
  assert_true(info.replayed > 0);
  assert_int_equal(info.untrusted, 0);
  rondo_kernel_destroy(work.kernel);
}
