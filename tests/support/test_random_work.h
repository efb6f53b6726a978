/* SPDX-License-Identifier: MIT
 * Work that draws random numbers, for the tests of generators: the expected numbers, a kernel, and a step of several
 * draws that runs eagerly or is recorded and launched.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_RANDOM_WORK_H
#define RONDO_TESTS_SUPPORT_TEST_RANDOM_WORK_H

#include <math.h>

#include "support/rondo_test.h"

rondo_generator *test_generator(test_fixture *fixture, const char *name, uint64_t seed);

uint64_t test_generator_offset(const rondo_generator *generator);
/* The generator's state; the query must succeed. */
#define assert_state(generator, seed, offset) test_assert_state((generator), (seed), (offset), __FILE__, __LINE__)
void test_assert_state(const rondo_generator *generator, uint64_t seed, uint64_t offset, const char *file, int line);

#define assert_increment(graph, generator, increment) \
  test_assert_increment((graph), (generator), (increment), __FILE__, __LINE__)
void test_assert_increment(const rondo_graph *graph, const rondo_generator *generator, uint64_t increment,
                           const char *file, int line);

/* Zeroed host memory, and zeroed floats of the device. */
void *test_host(size_t count, size_t bytes);
void test_host_free(void *memory);
float *test_floats(test_fixture *fixture, size_t count);
void test_floats_free(test_fixture *fixture, float *values);

/* Compares the bits after the work that was enqueued on the fixture's stream. */
#define assert_floats(fixture, values, expected, count) \
  test_assert_floats((fixture), (values), (expected), (count), __FILE__, __LINE__)
void test_assert_floats(test_fixture *fixture, const float *values, const float *expected, size_t count,
                        const char *file, int line);

/* The expected result of rondo_random_uniform. Writes `count` floats. */
void test_expect_uniform(float *expected, size_t count, uint64_t seed, uint64_t offset, float low, float high);

/* Records one fill from 0 to 1. */
rondo_exec *test_fill_exec(test_fixture *fixture, rondo_generator *generator, float *values, size_t count);

/* A kernel (random, writes out): out[b] = the first word of subsequence b. */
rondo_kernel *test_draw_kernel(test_fixture *fixture);
/* The same kernel with all random settings in one scalar parameter: (rondo_random, writes out). */
rondo_kernel *test_packed_draw_kernel(test_fixture *fixture);
void test_draw(test_fixture *fixture, rondo_kernel *kernel, rondo_generator *generator, rondo_stream *stream,
               uint32_t *words, size_t count, uint64_t increment);

/* Draws three times into a small buffer, and then copies that to one of `steps` slots. */
typedef struct random_step {
  rondo_generator *generator;
  rondo_kernel *kernel;
  rondo_exec *exec; /* of the last recording; NULL before the first */
  uint32_t *now, *kept;
} random_step;
random_step test_step_make(test_fixture *fixture, rondo_generator *generator, size_t steps);
void test_step_free(test_fixture *fixture, random_step *step);
void test_step_run(test_fixture *fixture, random_step *step, size_t place);
/* Records the step, unless it is already recorded and `again` is false. */
void test_step_record(test_fixture *fixture, random_step *step, bool again);
void test_step_launch(test_fixture *fixture, random_step *step, size_t place);
#define assert_same_steps(fixture, a, b, steps) test_assert_same_steps((fixture), (a), (b), (steps), __FILE__, __LINE__)
void test_assert_same_steps(test_fixture *fixture, const random_step *a, const random_step *b, size_t steps,
                            const char *file, int line);

#endif
