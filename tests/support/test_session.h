/* SPDX-License-Identifier: MIT
 * A small model to serve: y [rows, 3] = x [rows, 4] w + table [ids [rows]], and what it must give, from plain C.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_SESSION_H
#define RONDO_TESTS_SUPPORT_TEST_SESSION_H

#include <rondo/session.h>

enum { TEST_FEATURES = 4, TEST_SCORES = 3, TEST_IDS = 10, TEST_MOST_ROWS = 256 };

/* Inputs and room for outputs of a request, and the request itself. */
typedef struct test_request {
  float x[TEST_MOST_ROWS * TEST_FEATURES];
  int32_t ids[TEST_MOST_ROWS];
  float y[TEST_MOST_ROWS * TEST_SCORES];
  const void *inputs[2];
  void *outputs[1];
  rondo_request request;
} test_request;

/* A rondo_model_build; `user`, when not NULL, counts its calls: an atomic_uint. */
rondo_status test_build_scorer(void *user, size_t rows, rondo_program *program);

/* Its states; the caller destroys them. */
rondo_weights *test_scorer_weights(void);

/* Inputs drawn from the seed. */
void test_request_fill(test_request *r, size_t rows, uint64_t seed);
/* Whether the outputs of a row, or of all, are right, within 1e-5. */
bool test_request_row_is_right(const test_request *r, size_t row);
bool test_request_is_right(const test_request *r);

#endif
