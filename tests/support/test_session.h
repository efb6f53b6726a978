/* SPDX-License-Identifier: MIT
 * A small model to serve, the scorer: y [rows, 3] = x [rows, 4] w + table [ids [rows]]. Its expected results in plain
 * C, sessions with it, and requests for it.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_SESSION_H
#define RONDO_TESTS_SUPPORT_TEST_SESSION_H

#include <rondo/session.h>

enum { TEST_FEATURES = 4, TEST_SCORES = 3, TEST_IDS = 10, TEST_MOST_ROWS = 256 };

/* Inputs of a request, space for its outputs, and the request itself. */
typedef struct test_request {
  float x[TEST_MOST_ROWS * TEST_FEATURES];
  int32_t ids[TEST_MOST_ROWS];
  float y[TEST_MOST_ROWS * TEST_SCORES];
  const void *inputs[2];
  void *outputs[1];
  rondo_request request;
} test_request;

/* A rondo_model_build callback. `user` is NULL or an atomic_uint that counts its calls. */
rondo_status test_build_scorer(void *user, size_t rows, rondo_program *program);

/* Its states; the caller destroys them. */
rondo_weights *test_scorer_weights(void);

/* Makes the teardown destroy a session. */
void test_leave_session(rondo_session *session);

/* Creates a session of the device; the caller destroys it. With RONDO_TEST_ADOPTED, it runs on adopted streams. */
rondo_session *test_session_open(rondo_device *device, rondo_session_options options);
/* Adds the scorer with its states, unless `options` has another build or other states. */
void test_scorer_add(rondo_session *session, const char *name, rondo_model_options options);
/* Records graphs of these sizes in capture mode. */
void test_scorer_capture(rondo_session *session, const char *name, const size_t *sizes, size_t count);
rondo_model_info test_model_info(rondo_session *session, const char *name);
rondo_model_graph test_model_graph(rondo_session *session, const char *name, size_t index);

/* Draws the inputs from the seed. */
void test_request_fill(test_request *r, size_t rows, uint64_t seed);
/* Whether the outputs of a row, or of all rows, are right within 1e-5. */
bool test_request_row_is_right(const test_request *r, size_t row);
bool test_request_is_right(const test_request *r);
/* Moves an input into host memory of the device, of `bytes` bytes, which the caller frees. */
void test_request_move_input(rondo_device *device, test_request *r, size_t input, size_t bytes);
/* Runs a request of `rows` rows in `r`; the outputs must be right. */
rondo_answer test_request_run(rondo_session *session, const char *name, test_request *r, size_t rows,
                              rondo_run_mode mode);

/* What a session does for a request, by its public calls on stream `number`: copies the inputs, launches graph `index`
 * `launches` times in a row, and reads the result, which must be right. The caller has acquired the stream. */
void test_run_by_hand(rondo_session *session, rondo_stream *stream, size_t index, size_t number, size_t rows,
                      size_t launches);

/* A thread that runs requests one after another, or submits each and waits for it. Every fourth request runs eagerly.
 * */
typedef struct test_client {
  rondo_session *session;
  uint64_t seed;
  uint32_t rounds, wrong, failed;
  bool submits;
  test_request request;
} test_client;
void test_client_serve(void *client);
/* Runs `count` clients at the same time; all answers must arrive and be right. */
void test_clients_run(rondo_session *session, test_client *clients, size_t count, uint32_t rounds);

#endif
