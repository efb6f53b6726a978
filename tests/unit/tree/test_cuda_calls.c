/* SPDX-License-Identifier: MIT
 * The driver calls of a replayed call of a function, counted by the fake driver (TR-1, TR-6): one launch, and one call
 * for each node in which a moved input is patched, or one for all inputs that are copied. If the device's context is
 * current already, only the query of the current context is added.
 */
#include "fake_cuda/fake_fixture.h"
#include "support/foreign_library.h"
#include "support/test_tree.h"
#include "vendor/cuda_driver.h"

enum { INPUTS = 4, WORDS = 8, BYTES = WORDS * sizeof(uint32_t) };

/* A function of a tree, and how many nodes read each input. */
typedef struct reading {
  test_fixture *fixture;
  uint32_t readers[INPUTS];
  uint32_t *places[INPUTS][2];
  uint32_t moved; /* bit i: input i is at its second address */
  rondo_tree *tree;
  rondo_function *function;
} reading;

static const rondo_grid grid = {WORDS, 1, 1};

/* Output 0 = ((0 * 31 + in) * 31 + in) ... Each input occurs as often as it is read. */
static rondo_status combine(rondo_call *call, void *user) {
  const reading *of = user;
  rondo_stream *stream = rondo_call_stream(call);
  rondo_kernel *set = test_kernel(of->fixture, TEST_KERNEL_SET);
  rondo_kernel *add = test_kernel(of->fixture, TEST_KERNEL_COMBINE);
  const uint32_t zero = 0;
  void *out = NULL;
  assert_ok(rondo_call_output(call, 0, BYTES, NULL, &out));
  assert_ok(rondo_launch(stream, set, grid, RONDO_ARGS(&zero, &out)));
  for (size_t i = 0; i < INPUTS; i++) {
    const void *in = rondo_call_input(call, i);
    for (uint32_t k = 0; k < of->readers[i]; k++)
      assert_ok(rondo_launch(stream, add, grid, RONDO_ARGS(&out, &in, &out)));
  }
  return RONDO_OK;
}

/* Word 0 of the output. The word of input i at its address number p is 10 * i + p + 1. */
static uint32_t expected_word(const reading *of) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < INPUTS; i++)
    for (uint32_t k = 0; k < of->readers[i]; k++) value = value * 31 + 10 * i + (of->moved >> i & 1) + 1;
  return value;
}

static rondo_buffer *call(const reading *of) {
  rondo_input inputs[INPUTS] = {{0}};
  rondo_buffer *out = NULL;
  for (size_t i = 0; i < INPUTS; i++)
    inputs[i] = (rondo_input){.address = of->places[i][of->moved >> i & 1], .bytes = BYTES};
  assert_ok(rondo_function_call(of->function, of->fixture->stream, inputs, INPUTS, &out, 1));
  return out;
}

static void call_and_look(const reading *of) {
  rondo_buffer *out = call(of);
  uint32_t word = 0;
  assert_ok(rondo_buffer_copy(out, of->fixture->stream, 0, &word, sizeof word));
  assert_ok(rondo_stream_synchronize(of->fixture->stream));
  assert_int_equal(word, expected_word(of));
  rondo_buffer_release(out);
}

static void make(reading *of, rondo_binding binding, bool finds) {
  static const uint32_t kinds[INPUTS] = {RONDO_INPUT_MOVING, RONDO_INPUT_MOVING, RONDO_INPUT_MOVING,
                                         RONDO_INPUT_MOVING};
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = "combine",  .body = combine,     .user = of, .inputs = kinds,
      .input_count = INPUTS,       .binding = binding, .find_inputs = finds};
  for (uint32_t i = 0; i < INPUTS; i++)
    for (uint32_t p = 0; p < 2; p++) {
      uint32_t words[WORDS];
      for (int w = 0; w < WORDS; w++) words[w] = 10 * i + p + 1;
      of->places[i][p] = test_words(of->fixture, WORDS);
      test_write(of->fixture, of->places[i][p], words, sizeof words);
    }
  of->tree = test_tree(of->fixture, NULL);
  assert_ok(rondo_function_create(of->tree, &options, &of->function));
  for (int i = 0; i < 3; i++) call_and_look(of);
  assert_outcome(of->tree, RONDO_CALL_REPLAYED);
}

static void unmake(reading *of) {
  test_tree_destroy(of->tree);
  for (size_t i = 0; i < INPUTS; i++)
    for (size_t p = 0; p < 2; p++) test_words_free(of->fixture, of->places[i][p]);
}

/* The driver calls that one call of the function makes. */
typedef struct asked {
  uint64_t launches, sets, current, copies, attributes, all;
} asked;

static asked count(void) {
  return (asked){.launches = fake->calls("cuGraphLaunch"),
                 .sets = fake->calls("cuGraphExecKernelNodeSetParams"),
                 .current = fake->calls("cuCtxGetCurrent"),
                 .copies = fake->calls("cuMemcpyAsync"),
                 .attributes = fake->calls("cuPointerGetAttribute") + fake->calls("cuPointerGetAttributes"),
                 .all = fake->calls(NULL)};
}

static asked count_call(const reading *of) {
  const asked before = count();
  rondo_buffer *out = call(of);
  const asked after = count();
  rondo_buffer_release(out);
  return (asked){.launches = after.launches - before.launches,
                 .sets = after.sets - before.sets,
                 .current = after.current - before.current,
                 .copies = after.copies - before.copies,
                 .attributes = after.attributes - before.attributes,
                 .all = after.all - before.all};
}

static uint32_t readers_of(const reading *of, uint32_t moves) {
  uint32_t sum = 0;
  for (size_t i = 0; i < INPUTS; i++)
    if ((moves >> i & 1) != 0) sum += of->readers[i];
  return sum;
}

/* Makes the context of the device current, as a program does that also calls the driver itself. */
static const cuda_api *enter(void) {
  const cuda_api *api;
  cu_context context;
  assert_ok(cuda_library_get(&api));
  assert_int_equal(api->primary_retain(&context, 0), CU_OK);
  assert_int_equal(api->context_set_current(context), CU_OK);
  return api;
}

static void leave(const cuda_api *api) {
  assert_int_equal(api->context_set_current(NULL), CU_OK);
  assert_int_equal(api->primary_release(0), CU_OK);
}

/* Checks that nothing of the tree is left, in the library or in the driver. */
static int tear_down(void **state) {
  const int code = test_tree_teardown(state);
  return fake_check() == 0 ? code : -1;
}

/* Uses a driver that does not compile the copy kernel. */
static int set_up_without_kernel(void **state) {
  fake = fake_cuda_get();
  fake->reset();
  fake->fail_call("cuModuleLoadDataEx", 2, CU_INVALID_PTX, false); /* after the fill */
  return test_setup(state);
}

#define CALLS_TEST(name) TEST_DEFINE(name, test_fixture *t, fake_setup, tear_down)

/* For any set of moved inputs: the launch, an update of each node that reads them, and one query of the context. */
CALLS_TEST(patched_calls_ask_the_driver_for_nothing_else) {
  reading of = {.fixture = t, .readers = {1, 4, 2, 1}};
  make(&of, RONDO_BINDING_PATCH, false);
  const cuda_api *api = enter();
  for (uint32_t moves = 0; moves < 1 << INPUTS; moves++) {
    of.moved ^= moves;
    const asked calls = count_call(&of);
    assert_int_equal(calls.launches, 1);
    assert_int_equal(calls.sets, readers_of(&of, moves));
    assert_int_equal(calls.current, moves != 0);
    assert_int_equal(calls.all, calls.launches + calls.sets + calls.current);
    call_and_look(&of);
  }
  leave(api);
  unmake(&of);
}

/* Any number of moved inputs takes one update of the copy kernel, also if recordings were compared. */
CALLS_TEST(copied_inputs_take_the_driver_one_call) {
  for (int finds = 0; finds < 2; finds++) {
    reading of = {.fixture = t, .readers = {1, 4, 2, 1}};
    make(&of, RONDO_BINDING_COPY, finds);
    const cuda_api *api = enter();
    const rondo_tree_info before = test_tree_info(of.tree);
    for (uint32_t moves = 0; moves < 1 << INPUTS; moves++) {
      of.moved ^= moves;
      const asked calls = count_call(&of);
      assert_int_equal(calls.launches, 1);
      assert_int_equal(calls.sets, moves != 0);
      assert_int_equal(calls.current, moves != 0);
      assert_int_equal(calls.all, calls.launches + calls.sets + calls.current);
      call_and_look(&of);
    }
    const rondo_tree_info after = test_tree_info(of.tree);
    assert_int_equal(after.copied_inputs - before.copied_inputs, 2 * INPUTS << INPUTS);
    assert_int_equal(after.copied_bytes - before.copied_bytes, (uint64_t)(2 * INPUTS << INPUTS) * BYTES);
    assert_int_equal(after.patched_inputs, 0);
    leave(api);
    unmake(&of);
  }
}

/* Without the copy kernel, copies are enqueued. */
TEST_DEFINE(without_the_kernel_copies_are_queued, test_fixture *t, set_up_without_kernel, tear_down) {
  reading of = {.fixture = t, .readers = {1, 1, 2, 1}};
  fake->fail_call(NULL, 0, CU_OK, false);
  make(&of, RONDO_BINDING_COPY, false);
  for (uint32_t moves = 0; moves < 1 << INPUTS; moves++) {
    of.moved ^= moves;
    const asked calls = count_call(&of);
    assert_true(calls.launches == 1 && calls.sets == 0 && calls.copies == INPUTS);
    call_and_look(&of);
  }
  unmake(&of);
}

/* The copy kernel cannot read memory of another device or of the host, so it is copied by enqueued copies. */
CALLS_TEST(memory_from_elsewhere_is_copied_by_copies) {
  reading of = {.fixture = t, .readers = {1, 1, 1, 1}};
  uint32_t host[WORDS];
  make(&of, RONDO_BINDING_COPY, false);
  uint32_t *const kept = of.places[1][1];
  for (int w = 0; w < WORDS; w++) host[w] = 10 + 1 + 1;
  of.places[1][1] = host;
  of.moved = 1 << 1;
  const asked calls = count_call(&of);
  assert_true(calls.launches == 1 && calls.copies == 1);
  call_and_look(&of);
  of.moved = 0;
  call_and_look(&of);
  of.places[1][1] = kept;
  of.moved = 1 << 1;
  call_and_look(&of);
  unmake(&of);
}

/* The copy kernel also reads memory of the device that others have allocated. Finding its owner takes one driver call
 * when the address changes, and none otherwise. */
CALLS_TEST(foreign_memory_takes_one_call_more) {
  reading of = {.fixture = t, .readers = {1, 4, 2, 1}};
  make(&of, RONDO_BINDING_COPY, false);
  const cuda_api *api = enter();
  uint32_t *const kept = of.places[1][1];
  foreign_library *library = foreign_open();
  void *const stream = rondo_stream_native(of.fixture->stream);
  uint32_t words[WORDS];
  void *foreign = NULL;
  for (int w = 0; w < WORDS; w++) words[w] = 10 + 1 + 1;
  assert_non_null(library);
  assert_int_equal(foreign_allocate(library, stream, BYTES, &foreign), CU_OK);
  of.places[1][1] = foreign;
  test_write(of.fixture, of.places[1][1], words, sizeof words);
  for (int round = 0; round < 2; round++) {
    of.moved = 1 << 1;
    const asked moved = count_call(&of), still = count_call(&of);
    assert_int_equal(moved.sets, 1);
    assert_int_equal(moved.attributes, 1);
    assert_int_equal(moved.copies, 0);
    assert_int_equal(moved.all, moved.launches + moved.sets + moved.current + moved.attributes);
    assert_int_equal(still.all, still.launches);
    call_and_look(&of);
    of.moved = 0;
    call_and_look(&of);
  }
  assert_int_equal(foreign_free(library, stream, foreign), CU_OK);
  foreign_close(library);
  of.places[1][1] = kept;
  leave(api);
  unmake(&of);
}
