/* SPDX-License-Identifier: MIT
 * Sequences (PR-5): slots, steps and their batches, prompts by length and in parts, requests that go on, eviction and
 * limits, failures, and refusals. A test holds requests back by acquiring a stream.
 */
#include <stdatomic.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_sequences.h"
#include "support/test_session.h"

static const size_t lengths[] = {1, 4, 16};
static const size_t rows[] = {8};

/* A session with the adder of `slots` slots, and one graph of 8 rows for each length. */
static rondo_session *open_with(test_fixture *t, size_t slots, rondo_model_options options) {
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 1});
  test_adder_add(session, "adder", slots, lengths, 3, options);
  test_adder_capture(session, "adder", rows, 1, lengths, 3);
  return session;
}

static rondo_session *open_session(test_fixture *t, size_t slots) {
  return open_with(t, slots, (rondo_model_options){0});
}

static rondo_sequence_info info_of(const test_sequence *s) {
  rondo_sequence_info info = {.struct_size = sizeof info};
  assert_ok(rondo_sequence_get_info(s->sequence, &info));
  return info;
}

static rondo_status run(rondo_session *session, const test_sequence *s) {
  return rondo_session_run(session, "adder", &s->request, NULL);
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

TEST(test_pr5_each_sequence_has_its_slot) {
  rondo_session *session = open_session(t, 5);
  test_sequence s[3];
  for (size_t i = 0; i < 3; i++) test_sequence_open(session, "adder", &s[i]);
  for (size_t round = 0; round < 4; round++)
    for (size_t i = 0; i < 3; i++) test_sequence_run(session, "adder", &s[i], 1 + (round + i) % 3);
  for (size_t i = 0; i < 3; i++) {
    const rondo_sequence_info info = info_of(&s[i]);
    assert_int_equal(info.slot, i);
    assert_int_equal(info.positions, s[i].positions);
    assert_int_equal(info.max_positions, TEST_MOST_POSITIONS);
    assert_false(info.is_busy);
  }
  const rondo_model_info info = test_model_info(session, "adder");
  assert_int_equal(info.slots, 5);
  assert_int_equal(info.slot_bytes, sizeof(float));
  assert_int_equal(info.sequences, 3);
}

TEST(test_pr5_eager_steps_continue_recorded_ones) {
  rondo_session *session = open_session(t, 2);
  test_sequence s;
  test_sequence_open(session, "adder", &s);
  for (size_t i = 0; i < 6; i++) {
    test_sequence_fill(&s, 1 + i, i);
    s.request.mode = i % 2 == 0 ? RONDO_RUN_RECORDED : RONDO_RUN_EAGER;
    assert_ok(run(session, &s));
    assert_true(test_sequence_is_right(&s));
  }
}

TEST(test_pr5_steps_of_several_sequences_are_one_batch) {
  rondo_session *session = open_session(t, 8);
  test_sequence s[6];
  rondo_ticket tickets[6];
  rondo_stream *stream;
  for (size_t i = 0; i < 6; i++) {
    test_sequence_open(session, "adder", &s[i]);
    test_sequence_run(session, "adder", &s[i], 1 + i);
  }
  for (size_t round = 0; round < 3; round++) {
    assert_ok(rondo_session_acquire_stream(session, "adder", 0, &stream));
    for (size_t i = round; i < 6; i++) { /* sequence `round` leaves */
      test_sequence_fill(&s[i], 1, 10 * round + i);
      s[i].request.mode = RONDO_RUN_RECORDED;
      assert_ok(rondo_session_submit(session, "adder", &s[i].request, &tickets[i]));
      assert_true(info_of(&s[i]).is_busy);
    }
    assert_ok(rondo_session_release_stream(session, 0));
    for (size_t i = round; i < 6; i++) {
      rondo_answer answer = {.struct_size = sizeof answer};
      assert_ok(rondo_ticket_wait(tickets[i], &answer));
      assert_true(test_sequence_is_right(&s[i]));
      assert_int_equal(answer.batch_requests, 6 - round);
      assert_int_equal(answer.padding_rows, 2 + round);
      assert_int_equal(answer.graphs, 1);
      assert_int_equal(answer.length, 1);
      assert_int_equal(answer.steps, 1);
    }
  }
}

/* Six steps take 10 us together, and eagerly 9 us or 1 us each. */
TEST(test_pr5_steps_run_together_if_that_is_cheaper_than_each_alone) {
  static const double recorded = 10, eager[] = {9, 1};
  rondo_session *session = open_session(t, 8);
  test_sequence s[6];
  rondo_ticket tickets[6];
  rondo_stream *stream;
  for (size_t i = 0; i < 6; i++) test_sequence_open(session, "adder", &s[i]);
  for (size_t round = 0; round < 2; round++) {
    assert_ok(rondo_session_set_times(session, "adder[1]", &recorded, &eager[round], 1, 1));
    assert_ok(rondo_session_acquire_stream(session, "adder", 0, &stream));
    for (size_t i = 0; i < 6; i++) {
      test_sequence_fill(&s[i], 1, i);
      assert_ok(rondo_session_submit(session, "adder", &s[i].request, &tickets[i]));
    }
    assert_ok(rondo_session_release_stream(session, 0));
    for (size_t i = 0; i < 6; i++) {
      rondo_answer answer = {.struct_size = sizeof answer};
      assert_ok(rondo_ticket_wait(tickets[i], &answer));
      assert_true(test_sequence_is_right(&s[i]));
      assert_int_equal(answer.batch_requests, round == 0 ? 6 : 1);
      assert_int_equal(answer.mode, round == 0 ? RONDO_RUN_RECORDED : RONDO_RUN_EAGER);
    }
  }
}

TEST(test_pr5_prompts_run_with_the_shortest_length_that_fits) {
  static const size_t fits[][2] = {{1, 1}, {2, 4}, {4, 4}, {5, 16}, {16, 16}};
  rondo_session *session = open_session(t, 2);
  for (size_t i = 0; i < 5; i++) {
    test_sequence s;
    test_sequence_open(session, "adder", &s);
    assert_int_equal(test_sequence_run(session, "adder", &s, fits[i][0]).length, fits[i][1]);
    assert_ok(rondo_sequence_close(s.sequence));
  }
  rondo_model_length length = {.struct_size = sizeof length};
  assert_ok(rondo_session_get_length(session, "adder", 1, &length));
  assert_int_equal(length.length, 4);
  assert_string_equal(length.name, "adder[4]");
  assert_int_equal(test_model_info(session, "adder[4]").steps, 2);
  assert_int_equal(test_model_info(session, "adder[4]").state_bytes, test_model_info(session, "adder").state_bytes);
  assert_int_equal(test_model_info(session, "adder[4]").arena_bytes, test_model_info(session, "adder").arena_bytes);
  assert_error(rondo_session_get_length(session, "adder", 3, &length), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
}

/* 41 = 16 + 16 + 9 positions, the last in 16. */
TEST(test_pr5_longer_prompts_run_in_parts) {
  rondo_session *session = open_session(t, 2);
  test_sequence s;
  test_sequence_open(session, "adder", &s);
  const rondo_answer answer = test_sequence_run(session, "adder", &s, 41);
  assert_int_equal(answer.length, 16);
  assert_int_equal(answer.steps, 1);
  assert_int_equal(test_model_info(session, "adder[16]").steps, 3);
  test_sequence_run(session, "adder", &s, 19); /* 16 + 3 */
  assert_int_equal(test_model_info(session, "adder[4]").steps, 1);
  assert_int_equal(info_of(&s).positions, 60);
}

TEST(test_pr5_positions_are_taken_back) {
  rondo_session *session = open_session(t, 2);
  test_sequence s;
  test_sequence_open(session, "adder", &s);
  test_sequence_run(session, "adder", &s, 7);
  assert_invalid(rondo_sequence_truncate(s.sequence, 8), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_sequence_truncate(s.sequence, 0)); /* the adder can only begin again */
  s.positions = 0;
  s.sum = 0;
  test_sequence_run(session, "adder", &s, 3);
  assert_int_equal(info_of(&s).positions, 3);
}

/* The delay is a minute, but there are only three sequences to wait for. */
TEST(test_pr5_steps_wait_until_all_sequences_do) {
  rondo_session *session =
      test_session_open(t->device, (rondo_session_options){.streams = 1, .max_delay_us = 60000000});
  test_sequence s[3];
  rondo_ticket tickets[3];
  test_adder_add(session, "adder", 8, lengths, 3, (rondo_model_options){0});
  test_adder_capture(session, "adder", rows, 1, lengths, 3);
  for (size_t i = 0; i < 3; i++) test_sequence_open(session, "adder", &s[i]);
  for (size_t i = 0; i < 3; i++) {
    test_sequence_fill(&s[i], 1, i);
    s[i].request.mode = RONDO_RUN_RECORDED;
    assert_ok(rondo_session_submit(session, "adder", &s[i].request, &tickets[i]));
  }
  for (size_t i = 0; i < 3; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    assert_ok(rondo_ticket_wait(tickets[i], &answer));
    assert_true(test_sequence_is_right(&s[i]));
    assert_int_equal(answer.batch_requests, 3);
    assert_true(answer.queue_us < 30e6);
  }
}

/* Requests that go on ---------------------------------------------------------------------------------------------- */

static void submit_generation(rondo_session *session, test_sequence *s, size_t prompt, size_t steps,
                              rondo_ticket *out) {
  test_sequence_fill(s, prompt, prompt + steps);
  s->request.next = test_sequence_next;
  s->request.user = s;
  s->steps_left = steps;
  assert_ok(rondo_session_submit(session, "adder", &s->request, out));
}

TEST(test_pr5_requests_go_on_and_sequences_join_and_leave) {
  rondo_session *session = open_session(t, 8);
  test_sequence s[8];
  rondo_ticket tickets[8];
  rondo_stream *stream;
  assert_ok(rondo_session_acquire_stream(session, "adder", 0, &stream));
  for (size_t i = 0; i < 8; i++) {
    test_sequence_open(session, "adder", &s[i]);
    submit_generation(session, &s[i], 1 + 3 * i, 5 + i, &tickets[i]);
  }
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i < 8; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    assert_ok(rondo_ticket_wait(tickets[i], &answer));
    assert_int_equal(s[i].wrong, 0);
    assert_int_equal(answer.steps, 6 + i);
    assert_int_equal(info_of(&s[i]).positions, 1 + 3 * i + 5 + i);
    assert_false(info_of(&s[i]).is_busy);
  }
  assert_true(test_model_info(session, "adder[1]").batches > 0);
}

static void append_and_go_on(rondo_session *session, test_sequence *s, uint64_t seed) {
  test_sequence_fill(s, 18, seed);
  s->request.mode = RONDO_RUN_RECORDED;
  s->request.next = test_sequence_next;
  s->request.user = s;
  s->steps_left = 4;
  assert_ok(run(session, s));
  assert_int_equal(s->wrong, 0);
}

/* Once warm, appending and going on allocate nothing, also when the length changes. A device that is late has more
 * events in use at once, for which it allocates until there are enough. */
TEST(test_pr5_steps_allocate_nothing) {
  if (test_device_is("cpu:check")) skip(); /* its checks allocate */
  rondo_session *session = open_session(t, 2);
  test_sequence s;
  test_sequence_open(session, "adder", &s);
  append_and_go_on(session, &s, 0);
  bool is_quiet = false;
  for (size_t round = 1; round < 16 && !is_quiet; round++) {
    const size_t calls = atomic_load(&t->allocator.calls);
    assert_ok(rondo_sequence_truncate(s.sequence, 0));
    s.positions = 0;
    s.sum = 0;
    append_and_go_on(session, &s, round);
    is_quiet = atomic_load(&t->allocator.calls) == calls;
  }
  assert_true(is_quiet);
}

static size_t go_on_for_ever(void *user, const rondo_answer *answer) {
  (void)user, (void)answer;
  return 1;
}

TEST(test_pr5_a_full_slot_ends_a_request) {
  rondo_session *session = open_session(t, 1);
  test_sequence s;
  test_sequence_open(session, "adder", &s);
  test_sequence_fill(&s, 5, 1);
  s.request.next = go_on_for_ever;
  assert_error(run(session, &s), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  assert_message("slot_positions");
  assert_int_equal(info_of(&s).positions, TEST_MOST_POSITIONS);
  assert_ok(rondo_sequence_close(s.sequence));
}

TEST(test_pr5_a_request_that_goes_on_is_cancelled_or_late) {
  rondo_session *session = open_with(t, 1, (rondo_model_options){.slot_positions = 100000000});
  test_sequence s;
  rondo_ticket ticket;
  test_sequence_open(session, "adder", &s);
  test_sequence_fill(&s, 1, 1);
  s.request.next = go_on_for_ever;
  assert_ok(rondo_session_submit(session, "adder", &s.request, &ticket));
  while (info_of(&s).positions < 3) test_sleep_ms(1);
  rondo_ticket_cancel(ticket);
  assert_error(rondo_ticket_wait(ticket, NULL), RONDO_INVALID_STATE, RONDO_REASON_ABORTED);
  s.request.deadline_us = 20000;
  assert_error(run(session, &s), RONDO_LIMIT_EXCEEDED, RONDO_REASON_TIMED_OUT);
  assert_message("steps before its deadline");
  assert_false(info_of(&s).is_busy);
  const rondo_model_info info = test_model_info(session, "adder");
  assert_int_equal(info.cancelled, 1);
  assert_int_equal(info.timed_out, 1);
  assert_int_equal(info.failed, 0);
  s.request.next = NULL;
  s.request.deadline_us = 0;
  assert_ok(run(session, &s));
}

typedef struct slow_step {
  rondo_ticket ticket;
  atomic_bool has_begun, is_answered;
  bool was_in_time; /* it was answered while the stream was taken */
  rondo_status status;
  rondo_reason reason;
} slow_step;

/* Longer than the deadline. */
static size_t sleep_and_go_on(void *user, const rondo_answer *answer) {
  slow_step *step = user;
  (void)answer;
  atomic_store(&step->has_begun, true);
  test_sleep_ms(400);
  return 1;
}

static void wait_for_slow_step(void *user) {
  slow_step *step = user;
  step->status = rondo_ticket_wait(step->ticket, NULL);
  step->reason = rondo_last_error()->reason;
  atomic_store(&step->is_answered, true);
}

static void take_stream_until_answered(void *user) {
  slow_step *step = user;
  rondo_session *session = step->ticket.session;
  rondo_stream *stream;
  while (!atomic_load(&step->has_begun)) test_sleep_ms(1);
  if (rondo_session_acquire_stream(session, "adder", 0, &stream) != RONDO_OK) return;
  for (int i = 0; i < 5000 && !atomic_load(&step->is_answered); i++) test_sleep_ms(1);
  step->was_in_time = atomic_load(&step->is_answered);
  step->was_in_time &= rondo_session_release_stream(session, 0) == RONDO_OK;
}

/* The deadline passes while a step runs, and then no stream is free. */
TEST(test_pr5_a_late_request_does_not_wait_for_a_stream) {
  rondo_session *session = open_session(t, 1);
  test_sequence s;
  slow_step step = {.status = RONDO_OK};
  const test_thread threads[] = {{wait_for_slow_step, &step}, {take_stream_until_answered, &step}};
  test_sequence_open(session, "adder", &s);
  test_sequence_fill(&s, 1, 1);
  s.request.next = sleep_and_go_on;
  s.request.user = &step;
  s.request.deadline_us = 200000;
  assert_ok(rondo_session_submit(session, "adder", &s.request, &step.ticket));
  test_on_threads(threads, 2);
  assert_true(step.was_in_time);
  assert_int_equal(step.status, RONDO_LIMIT_EXCEEDED);
  assert_int_equal(step.reason, RONDO_REASON_TIMED_OUT);
}

static size_t call_session(void *user, const rondo_answer *answer) {
  test_sequence *s = user;
  (void)answer;
  s->wrong = rondo_sequence_close(s->sequence) == RONDO_INVALID_STATE ? 0 : 1;
  return 0;
}

TEST(test_pr5_a_next_step_must_not_call_the_session) {
  rondo_session *session = open_session(t, 1);
  test_sequence s;
  test_sequence_open(session, "adder", &s);
  test_sequence_fill(&s, 1, 1);
  s.wrong = 1;
  s.request.next = call_session;
  s.request.user = &s;
  assert_status(run(session, &s), RONDO_OK);
  assert_int_equal(s.wrong, 0);
}

/* Threads ---------------------------------------------------------------------------------------------------------- */

typedef struct client {
  rondo_session *session;
  uint32_t rounds, failed, wrong;
  uint64_t seed;
} client;

static rondo_status serve_one(client *c, test_sequence *s) {
  TRY(rondo_sequence_open(c->session, "adder", &s->sequence));
  for (size_t i = 0; i < 4; i++) {
    test_sequence_fill(s, 1 + test_random_below(&c->seed, 9), c->seed);
    const size_t steps = test_random_below(&c->seed, 3);
    s->steps_left = steps;
    s->request.user = s;
    if (i % 2 == 1) s->request.next = test_sequence_next;
    TRY(rondo_session_run(c->session, "adder", &s->request, NULL));
    if (i % 2 == 0) c->wrong += !test_sequence_is_right(s);
  }
  c->wrong += s->wrong > 0;
  return rondo_sequence_close(s->sequence);
}

static void serve(void *user) {
  client *c = user;
  for (uint32_t i = 0; i < c->rounds; i++) {
    test_sequence s = {.sum = 0};
    c->failed += serve_one(c, &s) != RONDO_OK;
  }
}

TEST(test_pr5_sequences_of_many_threads) {
  enum { CLIENTS = 6 };
  rondo_session *session = open_session(t, CLIENTS);
  client clients[CLIENTS];
  test_thread threads[CLIENTS];
  for (size_t i = 0; i < CLIENTS; i++) {
    clients[i] = (client){.session = session, .rounds = (uint32_t)test_effort(40), .seed = i + 1};
    threads[i] = (test_thread){serve, &clients[i]};
  }
  test_on_threads(threads, CLIENTS);
  for (size_t i = 0; i < CLIENTS; i++) {
    assert_int_equal(clients[i].failed, 0);
    assert_int_equal(clients[i].wrong, 0);
  }
  assert_int_equal(test_model_info(session, "adder").sequences, 0);
}

/* Slots ------------------------------------------------------------------------------------------------------------ */

TEST(test_pr5_without_eviction_taken_slots_are_refused) {
  rondo_session *session = open_session(t, 2);
  test_sequence s[2];
  rondo_sequence refused = {.session = session};
  for (size_t i = 0; i < 2; i++) test_sequence_open(session, "adder", &s[i]);
  assert_error(rondo_sequence_open(session, "adder", &refused), RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE);
  assert_message("the 2 slots");
  assert_null(refused.session);
  assert_int_equal(test_model_info(session, "adder").no_slot, 1);
  assert_ok(rondo_sequence_close(s[0].sequence));
  test_sequence_open(session, "adder", &s[0]);
  test_sequence_run(session, "adder", &s[0], 3); /* nothing is left of the sequence before */
}

TEST(test_pr5_the_least_recently_used_idle_sequence_is_evicted) {
  rondo_session *session = open_with(t, 3, (rondo_model_options){.evict_idle = true});
  test_sequence s[3], other;
  rondo_ticket ticket;
  rondo_stream *stream;
  for (size_t i = 0; i < 3; i++) test_sequence_open(session, "adder", &s[i]);
  test_sequence_run(session, "adder", &s[1], 2);
  test_sequence_run(session, "adder", &s[0], 2); /* now 2 is the least recently used one, then 1 */
  assert_ok(rondo_session_acquire_stream(session, "adder", 0, &stream));
  test_sequence_fill(&s[2], 1, 1);
  assert_ok(rondo_session_submit(session, "adder", &s[2].request, &ticket)); /* ... but it is busy */
  test_sequence_open(session, "adder", &other);
  assert_int_equal(info_of(&other).slot, 1);
  assert_ok(rondo_session_release_stream(session, 0));
  assert_ok(rondo_ticket_wait(ticket, NULL));
  test_sequence_fill(&s[1], 1, 1);
  assert_error(run(session, &s[1]), RONDO_INVALID_STATE, RONDO_REASON_STALE_SEQUENCE);
  assert_message("evict_idle");
  assert_error(rondo_sequence_close(s[1].sequence), RONDO_INVALID_STATE, RONDO_REASON_STALE_SEQUENCE);
  test_sequence_run(session, "adder", &other, 2);
  test_sequence_run(session, "adder", &s[0], 1);
  assert_int_equal(test_model_info(session, "adder").evicted_sequences, 1);
}

TEST(test_pr5_if_all_sequences_are_busy_none_is_evicted) {
  rondo_session *session = open_with(t, 1, (rondo_model_options){.evict_idle = true});
  test_sequence s;
  rondo_ticket ticket;
  rondo_sequence other;
  rondo_stream *stream;
  test_sequence_open(session, "adder", &s);
  assert_ok(rondo_session_acquire_stream(session, "adder", 0, &stream));
  test_sequence_fill(&s, 1, 1);
  assert_ok(rondo_session_submit(session, "adder", &s.request, &ticket));
  assert_error(rondo_sequence_open(session, "adder", &other), RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE);
  assert_ok(rondo_session_release_stream(session, 0));
  assert_ok(rondo_ticket_wait(ticket, NULL));
}

TEST(test_pr5_a_budget_limits_the_slots) {
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 1});
  test_adder_add(session, "adder", 100, lengths, 1, (rondo_model_options){.budget_slot_bytes = 7 * sizeof(float) + 2});
  assert_int_equal(test_model_info(session, "adder").slots, 7);
  rondo_model_options options = {
      RONDO_MODEL_OPTIONS_INIT,
      .build_sized = test_build_adder,
      .slots = 4,
      .slot_positions = 8,
      .budget_slot_bytes = 3,
      .row_inputs = {.length = "length", .slot = "slot", .start = "start", .positions = "positions", .last = "last"}};
  assert_error(rondo_session_add_model(session, "other", &options), RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE);
  assert_message("budget_slot_bytes");
}

/* Failures and refusals -------------------------------------------------------------------------------------------- */

TEST(test_pr5_a_failed_step_appends_nothing) {
  rondo_session *session = open_session(t, 4);
  test_sequence s[3];
  rondo_ticket tickets[3];
  rondo_stream *stream;
  for (size_t i = 0; i < 3; i++) {
    test_sequence_open(session, "adder", &s[i]);
    test_sequence_run(session, "adder", &s[i], 2);
  }
  assert_ok(rondo_session_acquire_stream(session, "adder", 0, &stream));
  for (size_t i = 0; i < 3; i++) {
    test_sequence_fill(&s[i], 1, i);
    if (i == 1) s[i].id = TEST_ADDER_IDS;
    assert_ok(rondo_session_submit(session, "adder", &s[i].request, &tickets[i]));
  }
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i < 3; i++) {
    if (i == 1) {
      assert_error(rondo_ticket_wait(tickets[i], NULL), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
      assert_int_equal(info_of(&s[i]).positions, 2);
    } else {
      assert_ok(rondo_ticket_wait(tickets[i], NULL));
      assert_true(test_sequence_is_right(&s[i]));
    }
  }
  for (size_t i = 0; i < 3; i++) test_sequence_run(session, "adder", &s[i], 1);
}

/* The failure is in the last of three parts. */
TEST(test_pr5_a_prompt_that_fails_in_parts_appends_nothing) {
  rondo_session *session = open_session(t, 1);
  test_sequence s;
  test_sequence_open(session, "adder", &s);
  test_sequence_fill(&s, 40, 1);
  s.id = TEST_ADDER_IDS;
  assert_error(run(session, &s), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_int_equal(info_of(&s).positions, 0);
  test_sequence_run(session, "adder", &s, 40);
}

TEST(test_pr5_a_sequence_is_used_by_one_request) {
  rondo_session *session = open_session(t, 2);
  test_sequence s;
  rondo_ticket ticket, none;
  rondo_stream *stream;
  test_sequence_open(session, "adder", &s);
  assert_ok(rondo_session_acquire_stream(session, "adder", 0, &stream));
  test_sequence_fill(&s, 1, 1);
  assert_ok(rondo_session_submit(session, "adder", &s.request, &ticket));
  assert_error(rondo_session_submit(session, "adder", &s.request, &none), RONDO_INVALID_STATE,
               RONDO_REASON_STILL_IN_USE);
  assert_error(rondo_sequence_close(s.sequence), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_error(rondo_sequence_truncate(s.sequence, 0), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  rondo_ticket_cancel(ticket);
  assert_error(rondo_ticket_wait(ticket, NULL), RONDO_INVALID_STATE, RONDO_REASON_ABORTED);
  assert_ok(rondo_session_release_stream(session, 0));
  assert_ok(rondo_sequence_close(s.sequence));
  assert_error(rondo_sequence_close(s.sequence), RONDO_INVALID_STATE, RONDO_REASON_STALE_SEQUENCE);
}

TEST(test_pr5_requests_that_do_not_fit_the_model) {
  rondo_session *session = open_session(t, 2);
  test_sequence s;
  static test_request plain;
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_adder_add(session, "other", 2, lengths, 1, (rondo_model_options){0});
  test_sequence_open(session, "adder", &s);
  test_sequence_fill(&s, TEST_MOST_POSITIONS, 1);
  s.request.length++;
  assert_error(run(session, &s), RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  s.request.length = 0;
  assert_invalid(run(session, &s), RONDO_REASON_SHAPE);
  assert_message("rondo_request.length");
  s.request.length = 5; /* named by its length, it runs in one part */
  assert_invalid(rondo_session_run(session, "adder[4]", &s.request, NULL), RONDO_REASON_SHAPE);
  s.request.rows = 2;
  assert_invalid(run(session, &s), RONDO_REASON_SHAPE);
  assert_message("give one row");
  s.request.rows = 1;
  s.request.lengths = &s.id;
  assert_invalid(run(session, &s), RONDO_REASON_BAD_OPTIONS);
  s.request.lengths = NULL;
  assert_invalid(rondo_session_run(session, "other", &s.request, NULL), RONDO_REASON_OTHER_DEVICE);
  s.request.sequence = (rondo_sequence){.session = NULL};
  assert_invalid(run(session, &s), RONDO_REASON_NULL_ARGUMENT);
  assert_message("rondo_sequence_open");
  test_request_fill(&plain, 3, 1);
  plain.request.sequence = s.sequence;
  assert_invalid(rondo_session_run(session, "scorer", &plain.request, NULL), RONDO_REASON_BAD_OPTIONS);
  assert_invalid(rondo_sequence_open(session, "scorer", &s.sequence), RONDO_REASON_BAD_OPTIONS);
  assert_invalid(rondo_sequence_close(s.sequence), RONDO_REASON_NULL_ARGUMENT);
  rondo_model_run *model_run;
  assert_invalid(rondo_model_run_create(session, "adder", &model_run), RONDO_REASON_BAD_OPTIONS);
}

/* Lengths 1 and 16 have no graphs; lengths 1 and 4 have none. */
TEST(test_pr5_each_part_and_step_needs_a_graph_if_the_request_does) {
  for (size_t i = 0; i < 2; i++) {
    rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 1, .strict = i == 1});
    test_sequence s;
    test_adder_add(session, "adder", 8, lengths, 3, (rondo_model_options){0});
    test_adder_capture(session, "adder", rows, 1, &lengths[1 + i], 1);
    test_sequence_open(session, "adder", &s);
    test_sequence_fill(&s, 18, 1); /* 16 + 2 */
    s.request.mode = i == 0 ? RONDO_RUN_RECORDED : RONDO_RUN_AUTO;
    assert_error(run(session, &s), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
    assert_message(i == 0 ? "'adder[16]'" : "'adder[4]'");
    assert_int_equal(info_of(&s).positions, 0);
    test_sequence_fill(&s, i == 0 ? 4 : 32, 1);
    s.request.mode = i == 0 ? RONDO_RUN_RECORDED : RONDO_RUN_AUTO;
    s.request.next = test_sequence_next; /* a step of one position */
    s.request.user = &s;
    s.steps_left = 1;
    assert_error(run(session, &s), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
    assert_message("'adder[1]'");
    assert_int_equal(info_of(&s).positions, i == 0 ? 4 : 32);
    assert_int_equal(test_model_info(session, "adder[1]").eager, 0);
    assert_ok(rondo_session_destroy(session));
  }
}

TEST(test_pr5_the_whole_model_is_removed) {
  rondo_session *session = open_session(t, 2);
  test_sequence s;
  test_sequence_open(session, "adder", &s);
  assert_error(rondo_session_remove_model(session, "adder[4]"), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_message("'adder'");
  assert_ok(rondo_session_remove_model(session, "adder"));
  assert_error(rondo_sequence_close(s.sequence), RONDO_INVALID_STATE, RONDO_REASON_STALE_SEQUENCE);
  test_adder_add(session, "adder", 2, lengths, 2, (rondo_model_options){0});
  assert_error(rondo_sequence_close(s.sequence), RONDO_INVALID_STATE, RONDO_REASON_STALE_SEQUENCE);
  test_sequence_fill(&s, 1, 1);
  assert_error(run(session, &s), RONDO_INVALID_STATE, RONDO_REASON_STALE_SEQUENCE);
  assert_invalid(rondo_session_add_model(session, "adder[1]",
                                         &(rondo_model_options){RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer}),
                 RONDO_REASON_DUPLICATE_NAME);
}

TEST(test_pr5_graphs_are_captured_and_destroyed_for_all_lengths) {
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 1});
  test_sequence s;
  test_adder_add(session, "adder", 4, lengths, 3, (rondo_model_options){.max_sizes = 2});
  assert_ok(rondo_session_capture(session, "adder"));
  assert_error(rondo_session_capture(session, "adder"), RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURED);
  assert_true(test_model_info(session, "adder[16]").graphs > 0);
  test_sequence_open(session, "adder", &s);
  for (size_t i = 1; i < 7; i++) test_sequence_run(session, "adder", &s, i);
  assert_ok(rondo_session_destroy_graphs(session, "adder[4]"));
  assert_int_equal(test_model_info(session, "adder[4]").graphs, 0);
  assert_true(test_model_info(session, "adder[1]").graphs > 0);
  assert_ok(rondo_session_destroy_graphs(session, "adder"));
  assert_int_equal(test_model_info(session, "adder[1]").graphs, 0);
  test_sequence_run(session, "adder", &s, 3);
}

typedef struct faulty {
  const char *what;
} faulty;

static rondo_status build_faulty(void *user, const rondo_model_size *size, rondo_program *program) {
  const char *what = user;
  rondo_value x, length, slot, cache;
  const size_t tail = strcmp(what, "cache") == 0 ? size->slots + 1 : strcmp(what, "no cache") == 0 ? 2 : size->slots;
  const size_t shape[] = {size->rows, strcmp(what, "length") == 0 ? size->length + 1 : size->length};
  TRY(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  TRY(rondo_program_input(program, "length", strcmp(what, "type") == 0 ? RONDO_F32 : RONDO_I32, shape,
                          strcmp(what, "rank") == 0 ? 2 : 1, &length));
  TRY(rondo_program_input(program, "slot", RONDO_I32, shape, 1, &slot));
  TRY(rondo_program_state(program, "cache", RONDO_F32, (size_t[]){tail, 2}, 2, &cache));
  return rondo_program_output(program, "y", x);
}

TEST(test_pr5_models_that_are_none) {
  static const size_t twice[] = {4, 2, 4}, zero[] = {0}, longer[] = {9};
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 1});
  rondo_model_options o = {RONDO_MODEL_OPTIONS_INIT, .build_sized = build_faulty,
                           .user = "none",           .slots = 2,
                           .slot_positions = 8,      .row_inputs = {.length = "length", .slot = "slot"}};
  static const struct {
    const char *what, *message;
    rondo_reason reason;
  } faults[] = {{"cache", "cache", RONDO_REASON_SHAPE},
                {"no cache", "depends on the number of slots", RONDO_REASON_SHAPE},
                {"length", "[rows, length, ...]", RONDO_REASON_SHAPE},
                {"type", "of type I32", RONDO_REASON_TYPE},
                {"rank", "must be [rows]", RONDO_REASON_SHAPE}};
  for (size_t i = 0; i < 5; i++) {
    o.user = (void *)(uintptr_t)faults[i].what;
    assert_invalid(rondo_session_add_model(session, "m", &o), faults[i].reason);
    assert_message(faults[i].message);
  }
  o.user = "none";
  o.row_inputs.last = "last";
  assert_invalid(rondo_session_add_model(session, "m", &o), RONDO_REASON_UNKNOWN_NAME);
  o.row_inputs.last = NULL;
  o.lengths = twice;
  o.length_count = 3;
  assert_invalid(rondo_session_add_model(session, "m", &o), RONDO_REASON_DUPLICATE_NAME);
  o.lengths = zero;
  o.length_count = 1;
  assert_invalid(rondo_session_add_model(session, "m", &o), RONDO_REASON_OUT_OF_RANGE);
  o.lengths = longer;
  assert_invalid(rondo_session_add_model(session, "m", &o), RONDO_REASON_OUT_OF_RANGE);
  o.length_count = 0;
  o.slot_positions = 0;
  assert_invalid(rondo_session_add_model(session, "m", &o), RONDO_REASON_BAD_OPTIONS);
  o.slot_positions = 8;
  o.row_inputs.slot = NULL;
  assert_invalid(rondo_session_add_model(session, "m", &o), RONDO_REASON_BAD_OPTIONS);
  o.row_inputs.slot = "slot";
  o.device_count = 1;
  o.devices = &t->device;
  assert_invalid(rondo_session_add_model(session, "m", &o), RONDO_REASON_BAD_OPTIONS);
  o.device_count = 0;
  assert_ok(rondo_session_add_model(session, "m", &o));
}
