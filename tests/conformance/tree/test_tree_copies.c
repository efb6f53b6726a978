/* SPDX-License-Identifier: MIT
 * Inputs that are copied to their recorded addresses (TR-6), however a device does that: any number of bytes from any
 * address, many inputs at once, inputs that overlap, inputs that are written and copied back, and inputs next to
 * patched ones.
 */
#include <stdlib.h>
#include <string.h>

#include "support/test_tree.h"

enum { MOST = 20, MARGIN = 64 };

/* A function of `count` inputs: output i is a copy of input i, or empty with it. */
typedef struct copying {
  test_fixture *fixture;
  size_t count;
  size_t bytes[MOST];
  uint32_t kinds[MOST];
  rondo_tree *tree;
  rondo_function *function;
} copying;

static rondo_status copy_all(rondo_call *call, void *user) {
  const copying *of = user;
  for (size_t i = 0; i < of->count; i++) {
    void *out = NULL;
    assert_ok(rondo_call_output(call, i, of->bytes[i], NULL, &out));
    if (of->bytes[i] > 0)
      assert_ok(rondo_copy_async(rondo_call_stream(call), out, rondo_call_input(call, i), of->bytes[i]));
  }
  return RONDO_OK;
}

static void make(copying *of, test_fixture *t, size_t count, rondo_binding binding) {
  of->fixture = t;
  of->count = count;
  for (size_t i = 0; i < count; i++) of->kinds[i] = RONDO_INPUT_MOVING;
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = "copy_all",   .body = copy_all,  .user = of,
      .inputs = of->kinds,         .input_count = count, .binding = binding};
  of->tree = test_tree(t, NULL);
  assert_ok(rondo_function_create(of->tree, &options, &of->function));
}

/* Calls it with inputs at these addresses, and compares each output; `expected` has their bytes, one input after the
 * other. */
static void call_and_compare(const copying *of, unsigned char *const *places, const unsigned char *expected) {
  rondo_input inputs[MOST];
  rondo_buffer *outputs[MOST];
  memset(inputs, 0, sizeof inputs);
  for (size_t i = 0; i < of->count; i++) {
    inputs[i].address = of->bytes[i] > 0 ? places[i] : NULL;
    inputs[i].bytes = of->bytes[i];
  }
  assert_ok(rondo_function_call(of->function, of->fixture->stream, inputs, of->count, outputs, of->count));
  for (size_t i = 0; i < of->count; i++) {
    unsigned char *found = malloc(of->bytes[i] + 1);
    assert_non_null(found);
    if (of->bytes[i] > 0) assert_ok(rondo_buffer_copy(outputs[i], of->fixture->stream, 0, found, of->bytes[i]));
    assert_ok(rondo_stream_synchronize(of->fixture->stream));
    assert_memory_equal(found, expected, of->bytes[i]);
    free(found);
    expected += of->bytes[i];
    rondo_buffer_release(outputs[i]);
  }
}

/* Bytes of the device with values of the generator; *out is the host's copy. */
static unsigned char *make_bytes(test_fixture *t, uint64_t *state, size_t bytes, unsigned char **out) {
  *out = malloc(bytes);
  assert_non_null(*out);
  for (size_t i = 0; i < bytes; i++) (*out)[i] = (unsigned char)test_random(state);
  void *memory = test_allocate(t, bytes, "bytes");
  test_write(t, memory, *out, bytes);
  return memory;
}

static void free_bytes(const test_fixture *t, unsigned char *memory, unsigned char *host) {
  assert_ok(rondo_free(t->device, memory));
  free(host);
}

static const size_t sizes[] = {1,  2,  3,   4,   5,    7,    8,    15,    16,    17,     31,     32,      33,
                               63, 65, 255, 257, 1000, 4095, 4096, 12289, 65535, 131072, 262147, 1048575, 1 << 20};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Offsets of inputs: all remainders modulo 16. */
TREE_TEST(test_tr6_any_size_from_any_address) {
  static const size_t offsets[] = {0, 1, 2, 3, 4, 6, 8, 11, 12, 15, 16, 33};
  const size_t count = test_is_guarded(t) ? 10 : SIZES;
  uint64_t random = 7;
  for (size_t s = 0; s < count; s++) {
    copying of = {.bytes = {sizes[s]}};
    unsigned char *host, *memory = make_bytes(t, &random, sizes[s] + MARGIN, &host);
    make(&of, t, 1, RONDO_BINDING_COPY);
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
      unsigned char *const place = memory + offsets[i];
      call_and_compare(&of, &place, host + offsets[i]);
    }
    assert_outcome(of.tree, RONDO_CALL_REPLAYED);
    assert_true(test_tree_info(of.tree).copied_inputs > 0);
    assert_int_equal(test_tree_info(of.tree).patched_inputs, 0);
    test_tree_destroy(of.tree);
    free_bytes(t, memory, host);
  }
}

/* 1 to 20 inputs, some without bytes, each anywhere in the same memory, so that they may overlap, also during
 * recording. */
TREE_TEST(test_tr6_many_inputs_that_overlap) {
  enum { BYTES = 40000, CALLS = 12 };
  static unsigned char expected[MOST * BYTES];
  uint64_t random = 11;
  for (size_t count = 1; count <= MOST; count += count < 4 ? 1 : 4) {
    unsigned char *host, *memory = make_bytes(t, &random, BYTES, &host);
    copying of = {0};
    for (size_t i = 0; i < count; i++)
      of.bytes[i] = test_random_below(&random, 6) == 0 ? 0 : test_random_below(&random, BYTES / 2);
    make(&of, t, count, RONDO_BINDING_COPY);
    for (int call = 0; call < CALLS; call++) {
      unsigned char *places[MOST], *at = expected;
      for (size_t i = 0; i < count; i++) {
        const size_t offset = test_random_below(&random, (uint32_t)(BYTES - of.bytes[i]));
        places[i] = memory + offset;
        memcpy(at, host + offset, of.bytes[i]);
        at += of.bytes[i];
      }
      call_and_compare(&of, places, expected);
    }
    assert_outcome(of.tree, RONDO_CALL_REPLAYED);
    test_tree_destroy(of.tree);
    free_bytes(t, memory, host);
  }
}

/* Large inputs are copied differently from small ones next to them. */
TREE_TEST(test_tr6_large_inputs_next_to_small_ones) {
  copying of = {.bytes = {9 << 20, 100, 4 << 20, (4 << 20) + 1}};
  size_t sum = 0;
  uint64_t random = 13;
  for (size_t i = 0; i < 4; i++) sum += of.bytes[i];
  unsigned char *host[2], *memory[2];
  for (int m = 0; m < 2; m++) memory[m] = make_bytes(t, &random, sum, &host[m]);
  make(&of, t, 4, RONDO_BINDING_COPY);
  for (int call = 0; call < 5; call++) {
    unsigned char *places[4], *at = memory[call % 2];
    for (size_t i = 0; i < 4; i++, at += of.bytes[i - 1]) places[i] = at;
    call_and_compare(&of, places, host[call % 2]);
  }
  assert_outcome(of.tree, RONDO_CALL_REPLAYED);
  test_tree_destroy(of.tree);
  for (int m = 0; m < 2; m++) free_bytes(t, memory[m], host[m]);
}

/* Written inputs -------------------------------------------------------------------------------------------------- */

enum { WRITTEN = 18, WORDS = 50 };

/* in = in * (i + 2) + 1, in place. */
static rondo_status mutate_all(rondo_call *call, void *user) {
  const copying *of = user;
  for (uint32_t i = 0; i < WRITTEN; i++)
    test_affine(of->fixture, rondo_call_stream(call), rondo_call_input(call, i), WORDS, i + 2, 1);
  return RONDO_OK;
}

static void write_numbers(test_fixture *t, uint32_t *words, uint32_t first) {
  uint32_t values[WORDS];
  for (uint32_t j = 0; j < WORDS; j++) values[j] = first + j;
  test_write(t, words, values, sizeof values);
}

TREE_TEST(test_tr6_written_inputs_are_copied_back) {
  copying of = {.fixture = t};
  uint32_t *places[2][WRITTEN];
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = "mutate_all",   .body = mutate_all,           .user = &of,
      .inputs = of.kinds,          .input_count = WRITTEN, .binding = RONDO_BINDING_COPY};
  for (uint32_t i = 0; i < WRITTEN; i++) {
    of.kinds[i] = RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED;
    for (int p = 0; p < 2; p++) places[p][i] = test_words(t, WORDS);
  }
  of.tree = test_tree(t, NULL);
  assert_ok(rondo_function_create(of.tree, &options, &of.function));
  for (uint32_t call = 0; call < 6; call++) {
    rondo_input inputs[WRITTEN] = {{0}};
    for (uint32_t i = 0; i < WRITTEN; i++) {
      /* Some stay, others move, each for a different reason. */
      inputs[i].address = places[(call >> i % 3) % 2][i];
      inputs[i].bytes = WORDS * sizeof(uint32_t);
      write_numbers(t, inputs[i].address, 1000 * call + i);
    }
    assert_ok(rondo_function_call(of.function, t->stream, inputs, WRITTEN, NULL, 0));
    for (uint32_t i = 0; i < WRITTEN; i++) {
      uint32_t expected[WORDS];
      for (uint32_t j = 0; j < WORDS; j++) expected[j] = (1000 * call + i + j) * (i + 2) + 1;
      assert_words(t, inputs[i].address, expected, WORDS);
    }
  }
  assert_outcome(of.tree, RONDO_CALL_REPLAYED);
  test_tree_destroy(of.tree);
  for (int p = 0; p < 2; p++)
    for (int i = 0; i < WRITTEN; i++) test_words_free(t, places[p][i]);
}

/* With recordings compared, where the copies must not be taken for the work's own. */
TREE_TEST(test_tr6_copied_inputs_of_work_that_is_looked_through) {
  copying of = {.bytes = {4096, 512, 256}};
  uint64_t random = 17;
  unsigned char *host[2], *memory[2];
  for (int m = 0; m < 2; m++) memory[m] = make_bytes(t, &random, 8192, &host[m]);
  for (int binding = RONDO_BINDING_AUTOMATIC; binding <= RONDO_BINDING_PATCH; binding++) {
    make(&of, t, 3, (rondo_binding)binding);
    rondo_function_options options = {
        RONDO_FUNCTION_OPTIONS_INIT, .name = "looked_through", .body = copy_all,    .user = &of,
        .inputs = of.kinds,          .input_count = 3,         .find_inputs = true, .binding = (rondo_binding)binding};
    assert_ok(rondo_function_create(of.tree, &options, &of.function));
    for (int call = 0; call < 6; call++) {
      unsigned char expected[4096 + 512 + 256];
      const unsigned char *from = host[call % 2];
      unsigned char *const places[3] = {memory[call % 2], memory[call % 2] + 4096, memory[call % 2] + 5120};
      memcpy(expected, from, 4096);
      memcpy(expected + 4096, from + 4096, 512);
      memcpy(expected + 4608, from + 5120, 256);
      call_and_compare(&of, places, expected);
    }
    assert_outcome(of.tree, RONDO_CALL_REPLAYED);
    test_tree_destroy(of.tree);
  }
  for (int m = 0; m < 2; m++) free_bytes(t, memory[m], host[m]);
}
