/* SPDX-License-Identifier: MIT
 * A small model with sequences, the adder: each sequence has the sum of all values that were appended to it. Also its
 * requests, and their expected results.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_SEQUENCES_H
#define RONDO_TESTS_SUPPORT_TEST_SEQUENCES_H

#include <rondo/session.h>

enum { TEST_MOST_POSITIONS = 64, TEST_ADDER_IDS = 8 };

/* A rondo_model_build_sized callback. Inputs: x [rows, length], id [rows]. Outputs: total [rows, 1], the sum of the
 * sequence plus `id`, whose values are 0 to TEST_ADDER_IDS - 1; echo [rows, length], 2 x; places [rows, length], the
 * positions; final [rows], the last valid value. */
rondo_status test_build_adder(void *user, const rondo_model_size *size, rondo_program *program);

/* Adds the adder with these slots and lengths. Options that are set stay. */
void test_adder_add(rondo_session *session, const char *name, size_t slots, const size_t *lengths, size_t count,
                    rondo_model_options options);
/* Records graphs of these rows for each length in capture mode. */
void test_adder_capture(rondo_session *session, const char *name, const size_t *rows, size_t row_count,
                        const size_t *lengths, size_t length_count);

/* A sequence, what it should have, and a request for it. `values` is how many are appended by the next step. */
typedef struct test_sequence {
  rondo_sequence sequence;
  float sum;
  size_t positions;
  float x[TEST_MOST_POSITIONS], total, echo[TEST_MOST_POSITIONS], places[TEST_MOST_POSITIONS], final;
  int32_t id;
  const void *inputs[2];
  void *outputs[4];
  rondo_request request;
  uint64_t seed;
  size_t steps_left, wrong; /* for test_sequence_next */
} test_sequence;

void test_sequence_open(rondo_session *session, const char *name, test_sequence *s);
/* Fills in a request that appends random values. */
void test_sequence_fill(test_sequence *s, size_t positions, uint64_t seed);
/* After the request succeeded: whether its outputs are right. Adds its values to what the sequence should have. */
bool test_sequence_is_right(test_sequence *s);
/* Runs a request, whose outputs must be right. */
rondo_answer test_sequence_run(rondo_session *session, const char *name, test_sequence *s, size_t positions);
/* A rondo_request_next callback; `user` is the test_sequence. Checks the step; goes on while steps_left is not 0. */
size_t test_sequence_next(void *user, const rondo_answer *answer);

#endif
