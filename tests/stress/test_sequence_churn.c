/* SPDX-License-Identifier: MIT
 * Threads open, continue, cancel, shorten, evict and close sequences of one model, with fewer slots than
 * threads (PR-5). A sequence that a thread has is right until it is evicted, which is said; every other failure is one
 * that the thread caused.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_sequences.h"
#include "support/test_session.h"

enum { USERS = 6, SLOTS = 4, STEPS = 6 };

static const size_t lengths[] = {1, 4, 16}, rows[] = {4, 1};

typedef struct churn_user {
  rondo_session *session;
  uint64_t seed;
  uint32_t rounds, appended, evicted, cancelled, late, full, wrong; /* how often */
} churn_user;

/* Counts a failure. Returns whether the sequence can be used further. */
static bool count_failure(churn_user *u, rondo_status status, bool may_be_cancelled) {
  const rondo_reason reason = rondo_last_error()->reason;
  if (status == RONDO_INVALID_STATE && reason == RONDO_REASON_STALE_SEQUENCE) {
    u->evicted++;
    return false;
  }
  if (status == RONDO_INVALID_STATE && reason == RONDO_REASON_ABORTED && may_be_cancelled) {
    u->cancelled++;
    return false; /* how many steps were done before is not known */
  }
  if (status == RONDO_LIMIT_EXCEEDED && reason == RONDO_REASON_TIMED_OUT && may_be_cancelled)
    u->late++;
  else
    u->wrong++;
  return false;
}

static bool append(churn_user *u, test_sequence *s) {
  test_sequence_fill(s, 1 + test_random_below(&u->seed, 18), u->seed);
  if (test_random_below(&u->seed, 3) == 0) s->request.mode = RONDO_RUN_EAGER;
  const rondo_status status = rondo_session_run(u->session, "adder", &s->request, NULL);
  if (status != RONDO_OK) return count_failure(u, status, false);
  u->appended++;
  u->wrong += !test_sequence_is_right(s);
  return s->positions + 18 + STEPS <= TEST_MOST_POSITIONS;
}

/* Goes on for some steps; perhaps it is cancelled, or too late. */
static bool go_on(churn_user *u, test_sequence *s) {
  rondo_ticket ticket = {0};
  const uint32_t choice = test_random_below(&u->seed, 3);
  test_sequence_fill(s, 1, u->seed);
  s->request.next = test_sequence_next;
  s->request.user = s;
  s->steps_left = STEPS - 1;
  if (choice == 1) s->request.deadline_us = 1 + test_random_below(&u->seed, 300);
  rondo_status status = rondo_session_submit(u->session, "adder", &s->request, &ticket);
  if (status != RONDO_OK) return count_failure(u, status, false);
  if (choice == 2) rondo_ticket_cancel(ticket);
  status = rondo_ticket_wait(ticket, NULL);
  u->wrong += s->wrong > 0;
  if (status != RONDO_OK) return count_failure(u, status, choice != 0);
  u->appended++;
  return s->positions + 18 + STEPS <= TEST_MOST_POSITIONS;
}

static bool begin_again(churn_user *u, test_sequence *s) {
  const rondo_status status = rondo_sequence_truncate(s->sequence, 0);
  if (status != RONDO_OK) return count_failure(u, status, false);
  s->positions = 0;
  s->sum = 0;
  return true;
}

static void use_sequence(churn_user *u) {
  test_sequence s = {.sum = 0};
  rondo_status status = rondo_sequence_open(u->session, "adder", &s.sequence);
  if (status != RONDO_OK) {
    u->full += status == RONDO_LIMIT_EXCEEDED;
    u->wrong += status != RONDO_LIMIT_EXCEEDED;
    return;
  }
  for (bool goes_on = true; goes_on && test_random_below(&u->seed, 6) > 0;) {
    const uint32_t choice = test_random_below(&u->seed, 8);
    goes_on = choice == 0 ? begin_again(u, &s) : choice < 5 ? append(u, &s) : go_on(u, &s);
  }
  if (test_random_below(&u->seed, 3) == 0) return; /* left to be evicted */
  status = rondo_sequence_close(s.sequence);
  if (status != RONDO_OK) (void)count_failure(u, status, false);
}

static void churn(void *user) {
  churn_user *u = user;
  for (uint32_t i = 0; i < u->rounds; i++) use_sequence(u);
}

TEST(test_pr5_sequences_are_opened_evicted_and_closed_by_many) {
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 1});
  churn_user users[USERS];
  test_thread threads[USERS];
  uint32_t appended = 0;
  test_adder_add(session, "adder", SLOTS, lengths, 3, (rondo_model_options){.evict_idle = true});
  test_adder_capture(session, "adder", rows, 2, lengths, 3);
  for (size_t i = 0; i < USERS; i++) {
    users[i] = (churn_user){.session = session, .seed = i + 1, .rounds = (uint32_t)test_effort(600)};
    threads[i] = (test_thread){churn, &users[i]};
  }
  test_on_threads(threads, USERS);
  for (size_t i = 0; i < USERS; i++) {
    assert_int_equal(users[i].wrong, 0);
    appended += users[i].appended;
  }
  assert_true(appended > 0);
  const rondo_model_info info = test_model_info(session, "adder");
  assert_int_equal(info.slots, SLOTS);
  assert_true(info.evicted_sequences > 0);
  assert_ok(rondo_session_drain(session));
}
