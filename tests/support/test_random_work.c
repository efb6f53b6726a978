/* SPDX-License-Identifier: MIT
 * See test_random_work.h.
 */
#include "support/test_random_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_cleanup.h"

/* Generators and memory ------------------------------------------------------------------------------------------- */

rondo_generator *test_generator(test_fixture *fixture, const char *name, uint64_t seed) {
  const rondo_generator_options options = {RONDO_GENERATOR_OPTIONS_INIT, .name = name, .seed = seed};
  rondo_generator *generator;
  assert_ok(rondo_generator_create(fixture->device, &options, &generator));
  test_leave_kind(TEST_LEFT_GENERATOR, generator, NULL);
  return generator;
}

uint64_t test_generator_offset(const rondo_generator *generator) {
  rondo_generator_state state = {RONDO_GENERATOR_STATE_INIT};
  assert_ok(rondo_generator_get_state(generator, &state));
  return state.offset;
}

void test_assert_state(const rondo_generator *generator, uint64_t seed, uint64_t offset, const char *file, int line) {
  rondo_generator_state state = {RONDO_GENERATOR_STATE_INIT};
  test_assert_status(rondo_generator_get_state(generator, &state), RONDO_OK, "rondo_generator_get_state", file, line);
  _assert_int_equal(state.seed, seed, file, line);
  _assert_int_equal(state.offset, offset, file, line);
}

void test_assert_increment(const rondo_graph *graph, const rondo_generator *generator, uint64_t increment,
                           const char *file, int line) {
  uint64_t actual;
  test_assert_status(rondo_graph_get_random_increment(graph, generator, &actual), RONDO_OK,
                     "rondo_graph_get_random_increment", file, line);
  _assert_int_equal(actual, increment, file, line);
}

void *test_host(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  assert_non_null(memory);
  return memory;
}

void test_host_free(void *memory) { free(memory); }

float *test_floats(test_fixture *fixture, size_t count) { return (float *)(void *)test_words(fixture, count); }

void test_floats_free(test_fixture *fixture, float *values) { test_words_free(fixture, (uint32_t *)(void *)values); }

void test_assert_floats(test_fixture *fixture, const float *values, const float *expected, size_t count,
                        const char *file, int line) {
  float *actual = test_host(count, sizeof *actual);
  test_read(fixture, actual, values, count * sizeof *actual);
  size_t differs = 0;
  while (differs < count && memcmp(&actual[differs], &expected[differs], sizeof *actual) == 0) differs++;
  if (differs < count)
    print_error("float %zu of %zu is %a, not %a\n", differs, count, (double)actual[differs], (double)expected[differs]);
  free(actual);
  if (differs < count) _fail(file, line);
}

/* Drawing --------------------------------------------------------------------------------------------------------- */

/* Each step is stored in memory, so that the compiler does not fuse it with the next. */
void test_expect_uniform(float *expected, size_t count, uint64_t seed, uint64_t offset, float low, float high) {
  for (size_t i = 0; i < count; i++) {
    const uint32_t word = rondo_philox(seed, i / 4, offset).x[i % 4];
    const volatile float range = high - low;
    const volatile float scaled = (float)(word >> 8) * 0x1p-24f * range;
    const volatile float value = scaled + low;
    expected[i] = value < high ? value : low;
  }
}

rondo_exec *test_fill_exec(test_fixture *fixture, rondo_generator *generator, float *values, size_t count) {
  assert_ok(rondo_capture_begin(fixture->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_random_uniform(generator, fixture->stream, values, count, 0, 1));
  rondo_graph *graph = test_capture_end(fixture->stream);
  return test_exec_of(graph);
}

static void draw_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_random random = rondo_random_begin(args);
  uint32_t *out = *(uint32_t *const *)args[3];
  for (size_t b = blocks.first; b < blocks.last; b++) out[b] = rondo_philox(random.seed, b, random.offset).x[0];
}

static void packed_draw_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_random random = *(const rondo_random *)args[0];
  const void *const parts[3] = {RONDO_RANDOM_ARGS(random)};
  const void *parameters[4] = {parts[0], parts[1], parts[2], args[1]};
  draw_cpu(blocks, (void *const *)parameters);
}

/* `code` follows the library's functions. */
static rondo_kernel *make_kernel(test_fixture *fixture, const rondo_kernel_options *options, const char *code) {
  const size_t bytes = strlen(rondo_random_cuda_source()) + strlen(code) + 1;
  char *source = test_host(bytes, 1);
  (void)snprintf(source, bytes, "%s%s", rondo_random_cuda_source(), code);
  rondo_kernel_options with_source = *options;
  with_source.cuda_source = source;
  rondo_kernel *kernel = test_kernel_make(fixture, &with_source);
  free(source);
  return kernel;
}

rondo_kernel *test_draw_kernel(test_fixture *fixture) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "test_draw", .block_threads = 1,
                                        .cpu = draw_cpu, .params = {RONDO_RANDOM_PARAMETERS, RONDO_WRITES}};
  return make_kernel(
      fixture, &options,
      "extern \"C\" __global__ void test_draw(const unsigned long long *cells, unsigned long long seed,\n"
      "                                       unsigned long long offset, unsigned *out) {\n"
      "  const rondo_random random = rondo_random_begin(cells, seed, offset);\n"
      "  out[blockIdx.x] = rondo_philox(random.seed, blockIdx.x, random.offset).x[0];\n"
      "}\n");
}

rondo_kernel *test_packed_draw_kernel(test_fixture *fixture) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "test_packed_draw", .block_threads = 1,
                                        .cpu = packed_draw_cpu, .params = {RONDO_SCALAR(rondo_random), RONDO_WRITES}};
  return make_kernel(fixture, &options,
                     "extern \"C\" __global__ void test_packed_draw(rondo_random packed, unsigned *out) {\n"
                     "  const rondo_random random = rondo_random_begin(packed.cells, packed.seed, packed.offset);\n"
                     "  out[blockIdx.x] = rondo_philox(random.seed, blockIdx.x, random.offset).x[0];\n"
                     "}\n");
}

void test_draw(test_fixture *fixture, rondo_kernel *kernel, rondo_generator *generator, rondo_stream *stream,
               uint32_t *words, size_t count, uint64_t increment) {
  (void)fixture;
  rondo_random random;
  assert_ok(rondo_generator_reserve(generator, stream, increment, &random));
  assert_ok(
      rondo_launch(stream, kernel, (rondo_grid){(uint32_t)count, 0, 0}, RONDO_ARGS(RONDO_RANDOM_ARGS(random), &words)));
}

/* Steps ----------------------------------------------------------------------------------------------------------- */

enum { FLOATS = 37, WORDS = 11, STEP_WORDS = FLOATS + 2 * WORDS };

random_step test_step_make(test_fixture *fixture, rondo_generator *generator, size_t steps) {
  return (random_step){.generator = generator,
                       .kernel = test_draw_kernel(fixture),
                       .now = test_words(fixture, STEP_WORDS),
                       .kept = test_words(fixture, steps * STEP_WORDS)};
}

void test_step_free(test_fixture *fixture, random_step *step) {
  rondo_exec_destroy(step->exec);
  rondo_kernel_destroy(step->kernel);
  test_words_free(fixture, step->now);
  test_words_free(fixture, step->kept);
}

static void draw_step(test_fixture *t, const random_step *step) {
  test_draw(t, step->kernel, step->generator, t->stream, step->now + FLOATS, WORDS, 7);
  assert_ok(rondo_random_uniform(step->generator, t->stream, (float *)(void *)step->now, FLOATS, -1, 1));
  test_draw(t, step->kernel, step->generator, t->stream, step->now + FLOATS + WORDS, WORDS, 1);
}

static void keep_step(test_fixture *t, const random_step *step, size_t place) {
  assert_ok(rondo_copy_async(t->stream, step->kept + place * STEP_WORDS, step->now, STEP_WORDS * sizeof *step->now));
}

void test_step_run(test_fixture *fixture, random_step *step, size_t place) {
  draw_step(fixture, step);
  keep_step(fixture, step, place);
}

void test_step_record(test_fixture *fixture, random_step *step, bool again) {
  if (step->exec != NULL && !again) return;
  assert_ok(rondo_capture_begin(fixture->stream, RONDO_CAPTURE_THREAD_LOCAL));
  draw_step(fixture, step);
  rondo_graph *graph = test_capture_end(fixture->stream);
  rondo_exec_destroy(step->exec);
  step->exec = test_exec_of(graph);
}

void test_step_launch(test_fixture *fixture, random_step *step, size_t place) {
  assert_ok(rondo_exec_launch(step->exec, fixture->stream));
  keep_step(fixture, step, place);
}

void test_assert_same_steps(test_fixture *fixture, const random_step *a, const random_step *b, size_t steps,
                            const char *file, int line) {
  uint32_t *expected = test_host(steps * STEP_WORDS, sizeof *expected);
  test_read(fixture, expected, a->kept, steps * STEP_WORDS * sizeof *expected);
  test_assert_words(fixture, b->kept, expected, steps * STEP_WORDS, file, line);
  free(expected);
}
