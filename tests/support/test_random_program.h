/* SPDX-License-Identifier: MIT
 * Training steps of random operators on small matrices, for tests that run a step in several modes and compare the
 * bits. Inputs "x" and, optionally, "z"; states "w0" to "w2"; outputs "loss" and "y"; Adam with the cell "rate".
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_RANDOM_PROGRAM_H
#define RONDO_TESTS_SUPPORT_TEST_RANDOM_PROGRAM_H

#include "support/rondo_test.h"

enum { TEST_RANDOM_EDGE = 6, TEST_RANDOM_CELLS = TEST_RANDOM_EDGE * TEST_RANDOM_EDGE, TEST_RANDOM_STATES = 3 };

typedef struct test_random_shape {
  bool has_z, adds;        /* has_z: there is an input "z"; adds: sums are among the operators */
  uint32_t most_operators; /* there are 4 operators plus a random number below this */
} test_random_shape;

/* The caller destroys it. */
rondo_program *test_random_program(const test_random_shape *shape, uint64_t *seed);

/* Writes the initial states, and reads all states, row by row. */
void test_random_program_write_states(rondo_compiled *compiled);
void test_random_program_read_states(rondo_compiled *compiled, float out[TEST_RANDOM_STATES][TEST_RANDOM_CELLS]);

#endif
