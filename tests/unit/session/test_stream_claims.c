/* SPDX-License-Identifier: MIT
 * Claims of streams (SE-6). While a model is being captured, the capture claims all streams one after the other. A call
 * that needs all streams at that time gets them before the capture's next recording, and requests run between the two.
 *
 * The test stops the capture in the model's builder, with a stream claimed, until the other calls have been made.
 */
#include <stdatomic.h>

#include "session/session_internal.h"
#include "support/rondo_test.h"
#include "support/test_session.h"

enum { SIZES = 3, STREAMS = 2 };

typedef struct scene {
  rondo_session *session;
  rondo_weights *weights;
  atomic_bool is_capturing, may_write, has_written, may_ask, has_asked;
  atomic_uint builds, wrong;
  test_request request;
} scene;

static scene s;

static void await(atomic_bool *what) {
  while (!atomic_load(what)) test_sleep_ms(1);
}

/* Whether a call waits for its turn. */
static bool is_someone_waiting(void) {
  pthread_mutex_lock(&s.session->lock);
  bool waits = s.session->current_turn != s.session->next_turn;
  for (uint32_t i = 0; i < STREAMS; i++) waits = waits || s.session->workers[i].claims_waiting > 0;
  pthread_mutex_unlock(&s.session->lock);
  return waits;
}

/* During the first recording, the write starts to wait for its turn. Before the second recording, it must have run:
 * after that it could not claim all workers, because the capture has claimed one. */
static rondo_status build(void *user, size_t rows, rondo_program *program) {
  const uint32_t number = atomic_load(&s.is_capturing) ? atomic_fetch_add(&s.builds, 1) : STREAMS * SIZES;
  if (number == 0) {
    atomic_store(&s.may_write, true);
    while (!is_someone_waiting()) test_sleep_ms(1);
  }
  if (number == 1 && is_someone_waiting()) atomic_fetch_add(&s.wrong, 1);
  if (number == 1 && atomic_load(&s.wrong) == 0) {
    await(&s.has_written);
    atomic_store(&s.may_ask, true);
    await(&s.has_asked);
  }
  return test_build_scorer(user, rows, program);
}

static void capture(void *user) {
  const size_t sizes[SIZES] = {16, 8, 4};
  (void)user;
  atomic_store(&s.is_capturing, true);
  if (rondo_session_capture_begin(s.session, "captured") != RONDO_OK) atomic_fetch_add(&s.wrong, 1);
  for (size_t i = 0; i < SIZES; i++) {
    static test_request r;
    test_request_fill(&r, sizes[i], 1);
    if (rondo_session_run(s.session, "captured", &r.request, NULL) != RONDO_OK) atomic_fetch_add(&s.wrong, 1);
  }
  atomic_store(&s.is_capturing, false);
  if (rondo_session_capture_end(s.session) != RONDO_OK) atomic_fetch_add(&s.wrong, 1);
  atomic_store(&s.may_write, true); /* even if `build` was not called */
  atomic_store(&s.may_ask, true);
}

static void write_state(void *user) {
  rondo_weight w;
  (void)user;
  await(&s.may_write);
  if (rondo_weights_find(s.weights, "w", &w) != RONDO_OK ||
      rondo_session_write(s.session, "served", "w", w.data, w.bytes) != RONDO_OK)
    atomic_fetch_add(&s.wrong, 1);
  atomic_store(&s.has_written, true);
}

static void ask(void *user) {
  (void)user;
  await(&s.may_ask);
  test_request_fill(&s.request, 7, 3);
  if (rondo_session_run(s.session, "served", &s.request.request, NULL) != RONDO_OK ||
      !test_request_is_right(&s.request))
    atomic_fetch_add(&s.wrong, 1);
  atomic_store(&s.has_asked, true);
}

TEST(test_se6_a_write_is_done_before_a_capture_s_next_recording) {
  const test_thread threads[] = {{capture, NULL}, {write_state, NULL}, {ask, NULL}};
  const size_t size = 8;
  s = (scene){.session = test_session_open(t->device, (rondo_session_options){.streams = STREAMS}),
              .weights = test_scorer_weights()};
  test_scorer_add(s.session, "captured", (rondo_model_options){.build = build});
  test_scorer_add(s.session, "served", (rondo_model_options){0});
  test_scorer_capture(s.session, "served", &size, 1);
  test_on_threads(threads, 3);
  assert_int_equal(atomic_load(&s.wrong), 0);
  assert_int_equal(atomic_load(&s.builds), STREAMS * SIZES);
  assert_int_equal(test_model_info(s.session, "captured").graphs, SIZES);
  assert_ok(rondo_session_destroy(s.session));
  rondo_weights_destroy(s.weights);
}
