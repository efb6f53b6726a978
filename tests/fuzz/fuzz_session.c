/* SPDX-License-Identifier: MIT
 * Sequences of a session compared with a model. The input is a stream of calls: sequences are opened, closed, shortened
 * and evicted; requests append values or go on step by step, while the stream is free or taken; they fail, are
 * cancelled, are late, or ask for graphs that some lengths do not have; graphs are recorded, and the model is removed
 * and added again; and misuse. The adder (support/test_sequences.h) shows what a sequence has. All counters are
 * compared at the end.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>
#include <stdbool.h>
#include <string.h>

#include "fuzz/fuzz_target.h"
#include "support/test_sequences.h"

enum { SLOTS = 3, SEQUENCES = 5, LENGTHS = 2, MOST_STEPS = 4, MAX_CALLS = 60 };

static const size_t lengths[LENGTHS] = {1, 4};
static const char own_name[] = "own", own_longer[] = "own[4]";

/* Which lengths of a model have graphs (bit i: lengths[i]), and of how many rows. */
typedef struct graph_choice {
  const char *name, *longer; /* of a model that has them */
  uint8_t recorded;
  size_t rows[2], row_count;
} graph_choice;

static const graph_choice choices[] = {{"none", "none[4]", 0, {0}, 0},
                                       {"steps", "steps[4]", 1, {SLOTS}, 1},
                                       {"prompts", "prompts[4]", 2, {2}, 1},
                                       {"by slot", "by slot[4]", 3, {SLOTS, 1}, 2},
                                       {"few", "few[4]", 3, {2, 1}, 2}};
enum { CHOICES = sizeof choices / sizeof choices[0] };

typedef enum step_fate { GOES_ON, HAS_BAD_ID, IS_TOO_LONG, HAS_NO_GRAPH } step_fate;

typedef struct fuzz_run fuzz_run;

/* A sequence, and its request if there is one. */
typedef struct fuzz_sequence {
  fuzz_run *run;
  test_sequence s;
  bool is_open, is_evicted; /* evicted: the handle is stale */
  rondo_ticket ticket;      /* zero: no request */
  bool is_cancelled;
  uint8_t plan[MOST_STEPS]; /* of the steps after the first */
  size_t planned, step_length;
  uint64_t parts; /* that have run */
  step_fate fate; /* of the step that runs, or that is next */
} fuzz_sequence;

struct fuzz_run {
  const uint8_t *data;
  size_t left;
  rondo_device *device; /* NULL: the session is shared by inputs, because recording takes time */
  rondo_session *session;
  const char *name, *longer; /* of the model, and of its longer length */
  rondo_model_info before;
  fuzz_sequence sequences[SEQUENCES];
  uint8_t recorded; /* bit i: lengths[i] has graphs */
  bool is_taken;    /* the stream */
  uint64_t answered, failed, cancelled, late, evicted, refused, steps;
};

static uint8_t take(fuzz_run *run) {
  if (run->left == 0) return 0;
  run->left--;
  return *run->data++;
}

static void require_ok(rondo_status status) { REQUIRE(status == RONDO_OK); }

static void require_error(rondo_status status, rondo_status expected, rondo_reason reason) {
  REQUIRE(status == expected && rondo_last_error()->reason == reason);
}

/* Sequences -------------------------------------------------------------------------------------------------------- */

static bool has_request(const fuzz_sequence *q) { return q->ticket.session != NULL; }

/* A cancelled request has ended, but still has its ticket. */
static bool is_busy(const fuzz_sequence *q) { return has_request(q) && !q->is_cancelled; }

static bool has_slot(const fuzz_sequence *q) { return q->is_open && !q->is_evicted; }

static size_t count_open(const fuzz_run *run) {
  size_t count = 0;
  for (size_t i = 0; i < SEQUENCES; i++) count += has_slot(&run->sequences[i]);
  return count;
}

static fuzz_sequence *take_sequence(fuzz_run *run) { return &run->sequences[take(run) % SEQUENCES]; }

/* A new sequence has a free slot, or that of an idle sequence. */
static void note_slot(fuzz_run *run, fuzz_sequence *q) {
  const uint32_t slot = q->s.sequence.slot;
  const bool was_full = count_open(run) == SLOTS;
  REQUIRE(slot < SLOTS);
  for (size_t i = 0; i < SEQUENCES; i++) {
    fuzz_sequence *other = &run->sequences[i];
    if (!has_slot(other) || other->s.sequence.slot != slot) continue;
    REQUIRE(was_full && !is_busy(other));
    other->is_evicted = true;
    run->evicted++;
  }
  REQUIRE(count_open(run) < SLOTS);
  q->is_open = true;
}

static bool is_any_idle(const fuzz_run *run) {
  for (size_t i = 0; i < SEQUENCES; i++)
    if (has_slot(&run->sequences[i]) && !is_busy(&run->sequences[i])) return true;
  return false;
}

static void wait_for(fuzz_sequence *q);
static void wait_for_all(fuzz_run *run);

static void call_open(fuzz_run *run) {
  fuzz_sequence *q = take_sequence(run);
  if (!run->is_taken) wait_for_all(run);
  if (q->is_open || has_request(q)) return;
  *q = (fuzz_sequence){.run = run};
  const bool has_space = count_open(run) < SLOTS || is_any_idle(run);
  const rondo_status status = rondo_sequence_open(run->session, run->name, &q->s.sequence);
  if (has_space) {
    require_ok(status);
    note_slot(run, q);
    return;
  }
  require_error(status, RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE);
  run->refused++;
}

/* What calls with the handle return, other than OK. */
static bool is_refused(const fuzz_sequence *q, rondo_status status) {
  if (q->s.sequence.session == NULL) {
    require_error(status, RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
    return true;
  }
  if (!has_slot(q)) {
    require_error(status, RONDO_INVALID_STATE, RONDO_REASON_STALE_SEQUENCE);
    return true;
  }
  if (is_busy(q)) {
    require_error(status, RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
    return true;
  }
  return false;
}

static void call_close(fuzz_run *run) {
  fuzz_sequence *q = take_sequence(run);
  if (!run->is_taken) wait_for(q);
  if (is_refused(q, rondo_sequence_close(q->s.sequence))) {
    if (!is_busy(q)) q->is_open = false;
    return;
  }
  q->is_open = false;
  require_error(rondo_sequence_close(q->s.sequence), RONDO_INVALID_STATE, RONDO_REASON_STALE_SEQUENCE);
}

/* The adder can only begin again. */
static void call_truncate(fuzz_run *run) {
  fuzz_sequence *q = take_sequence(run);
  if (!run->is_taken) wait_for(q);
  if (is_refused(q, rondo_sequence_truncate(q->s.sequence, 0))) return;
  q->s.positions = 0;
  q->s.sum = 0;
  require_error(rondo_sequence_truncate(q->s.sequence, 1), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE);
}

static void call_look(fuzz_run *run) {
  fuzz_sequence *q = take_sequence(run);
  rondo_sequence_info info = {.struct_size = sizeof info};
  if (!run->is_taken) wait_for(q);
  const rondo_status status = rondo_sequence_get_info(q->s.sequence, &info);
  if (status != RONDO_OK) {
    REQUIRE(is_refused(q, status));
    return;
  }
  REQUIRE(has_slot(q) && info.slot == q->s.sequence.slot && info.is_busy == is_busy(q));
  REQUIRE(info.positions == q->s.positions && info.max_positions == TEST_MOST_POSITIONS);
}

/* Requests --------------------------------------------------------------------------------------------------------- */

static size_t index_of(size_t length) { return length <= lengths[0] ? 0 : 1; }

/* Whether all parts of a step have graphs: of 4 positions each, and of those that are left. */
static bool has_graphs(const fuzz_run *run, size_t positions) {
  const size_t most = lengths[LENGTHS - 1], rest = positions % most;
  const bool has_long = (run->recorded >> (LENGTHS - 1) & 1) != 0;
  if (positions > most && !has_long) return false;
  return (run->recorded >> index_of(rest == 0 ? most : rest) & 1) != 0;
}

static step_fate fate_of(const fuzz_sequence *q, size_t positions) {
  if (q->s.positions + positions > TEST_MOST_POSITIONS) return IS_TOO_LONG;
  if (q->s.request.mode == RONDO_RUN_RECORDED && !has_graphs(q->run, positions)) return HAS_NO_GRAPH;
  return q->s.id == TEST_ADDER_IDS ? HAS_BAD_ID : GOES_ON;
}

static uint64_t parts_of(size_t positions) { return (positions + lengths[LENGTHS - 1] - 1) / lengths[LENGTHS - 1]; }

/* Draws the values of a step of so many positions. A high bit of the choice makes an id out of range. */
static void plan_step(fuzz_sequence *q, size_t positions, bool is_bad) {
  rondo_request request = q->s.request;
  test_sequence_fill(&q->s, positions, q->s.seed);
  request.length = positions;
  request.inputs = q->s.inputs;
  request.outputs = q->s.outputs;
  request.sequence = q->s.sequence;
  q->s.request = request;
  if (is_bad) q->s.id = TEST_ADDER_IDS;
  q->step_length = positions;
  q->fate = fate_of(q, positions);
}

static void note_step(fuzz_sequence *q) {
  REQUIRE(q->fate == GOES_ON);
  q->s.request.length = q->step_length;
  REQUIRE(test_sequence_is_right(&q->s));
  q->parts += parts_of(q->step_length);
}

static size_t next_step(void *user, const rondo_answer *answer) {
  fuzz_sequence *q = user;
  REQUIRE(answer->steps > 0);
  note_step(q);
  if (q->planned == 0) return 0;
  const uint8_t choice = q->plan[--q->planned];
  const size_t positions = choice % 8 < 5 ? 1 : choice % 11 + 1;
  plan_step(q, positions, choice >= 240);
  return positions;
}

static rondo_run_mode mode_of(uint8_t choice) {
  return choice % 4 < 2 ? RONDO_RUN_AUTO : choice % 4 == 2 ? RONDO_RUN_RECORDED : RONDO_RUN_EAGER;
}

/* What a request is refused with at once; false: it is accepted. Its steps may run already. */
static bool is_refused_at_once(const fuzz_sequence *q, step_fate fate, bool lacks_graphs, rondo_status status) {
  if (lacks_graphs) {
    require_error(status, RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
    return true;
  }
  if (is_refused(q, status)) return true;
  if (fate != IS_TOO_LONG) return false;
  require_error(status, RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE);
  return true;
}

/* A deadline of a microsecond passes while the stream is taken. */
static void call_submit(fuzz_run *run) {
  fuzz_sequence *q = take_sequence(run);
  const uint8_t choice = take(run), size = take(run);
  if (has_request(q)) {
    rondo_ticket none;
    if (!run->is_taken || !is_busy(q)) return; /* it may be done */
    REQUIRE(rondo_session_submit(run->session, run->name, &q->s.request, &none) != RONDO_OK && none.session == NULL);
    return;
  }
  q->s.request = (rondo_request){RONDO_REQUEST_INIT, .rows = 1, .mode = mode_of(choice), .user = q};
  q->is_cancelled = false;
  q->planned = choice / 4 % (MOST_STEPS + 1);
  for (size_t i = 0; i < q->planned; i++) q->plan[i] = take(run);
  if (q->planned > 0) q->s.request.next = next_step;
  if (run->is_taken && choice >= 220) q->s.request.deadline_us = 1;
  plan_step(q, size < 96 ? 1 : size < 250 ? size % 11 + 1 : TEST_MOST_POSITIONS, size % 16 == 15);
  const step_fate fate = q->fate;
  const bool lacks_graphs = q->s.request.mode == RONDO_RUN_RECORDED && !has_graphs(run, q->step_length);
  rondo_ticket ticket;
  const rondo_status status = rondo_session_submit(run->session, run->name, &q->s.request, &ticket);
  if (is_refused_at_once(q, fate, lacks_graphs, status)) {
    REQUIRE(ticket.session == NULL);
    return;
  }
  require_ok(status);
  q->ticket = ticket;
}

static void require_late_or_cancelled(const fuzz_sequence *q, rondo_status status) {
  fuzz_run *run = q->run;
  if (q->is_cancelled && status == RONDO_INVALID_STATE) {
    require_error(status, RONDO_INVALID_STATE, RONDO_REASON_ABORTED);
    run->cancelled++;
    return;
  }
  REQUIRE(q->s.request.deadline_us > 0);
  require_error(status, RONDO_LIMIT_EXCEEDED, RONDO_REASON_TIMED_OUT);
  run->late++;
}

/* The stream is free, or the request cannot wait for it. */
static void wait_for(fuzz_sequence *q) {
  static const rondo_status statuses[] = {RONDO_OK, RONDO_EXECUTION_FAILED, RONDO_LIMIT_EXCEEDED, RONDO_UNSUPPORTED};
  static const rondo_reason reasons[] = {RONDO_REASON_NONE, RONDO_REASON_OUT_OF_RANGE, RONDO_REASON_OUT_OF_RANGE,
                                         RONDO_REASON_NOT_RECORDED};
  rondo_answer answer = {.struct_size = sizeof answer};
  if (!has_request(q)) return;
  const rondo_status status = rondo_ticket_wait(q->ticket, &answer);
  if (q->s.request.next == NULL && status == RONDO_OK) note_step(q);
  q->ticket = (rondo_ticket){.session = NULL};
  q->run->steps += q->parts;
  q->parts = 0;
  if (q->is_cancelled || q->s.request.deadline_us > 0) {
    require_late_or_cancelled(q, status);
    q->is_cancelled = false;
    return;
  }
  REQUIRE(status == statuses[q->fate]);
  REQUIRE(status == RONDO_OK || rondo_last_error()->reason == reasons[q->fate]);
  if (status == RONDO_OK)
    q->run->answered++;
  else
    q->run->failed++;
}

static void wait_for_all(fuzz_run *run) {
  for (size_t i = 0; i < SEQUENCES; i++) wait_for(&run->sequences[i]);
}

static void call_wait(fuzz_run *run) {
  fuzz_sequence *q = take_sequence(run);
  if (!run->is_taken || q->is_cancelled || q->s.request.deadline_us > 0) wait_for(q);
}

/* While the stream is taken, no request runs. */
static void call_cancel(fuzz_run *run) {
  fuzz_sequence *q = take_sequence(run);
  if (!run->is_taken || !has_request(q) || q->s.request.deadline_us > 0) return;
  rondo_ticket_cancel(q->ticket);
  q->is_cancelled = true;
  require_ok(rondo_ticket_query(q->ticket));
}

/* The stream and the model ----------------------------------------------------------------------------------------- */

static void call_take_or_give(fuzz_run *run) {
  rondo_stream *stream;
  if (run->is_taken) {
    require_ok(rondo_session_release_stream(run->session, 0));
    run->is_taken = false;
    return;
  }
  wait_for_all(run); /* no request may be running */
  const rondo_status status =
      rondo_session_acquire_stream(run->session, run->recorded == 2 ? run->longer : run->name, 0, &stream);
  if (run->recorded == 0) {
    require_error(status, RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURED);
    return;
  }
  require_ok(status);
  run->is_taken = true;
}

/* The sums over all lengths. */
static rondo_model_info add_counters(const fuzz_run *run) {
  rondo_model_info sum = {0};
  for (size_t i = 0; i < LENGTHS; i++) {
    rondo_model_info info = {.struct_size = sizeof info};
    require_ok(rondo_session_get_model_info(run->session, i == 0 ? run->name : run->longer, &info));
    REQUIRE(info.requests == info.recorded + info.split + info.eager && info.slots == SLOTS);
    sum.requests += info.requests;
    sum.failed += info.failed;
    sum.cancelled += info.cancelled;
    sum.timed_out += info.timed_out;
    sum.steps += info.steps;
    sum.sequences = info.sequences;
    sum.evicted_sequences = info.evicted_sequences;
    sum.no_slot = info.no_slot;
  }
  return sum;
}

static void require_counters(const fuzz_run *run) {
  const rondo_model_info now = add_counters(run), *before = &run->before;
  REQUIRE(now.sequences == count_open(run));
  REQUIRE(now.evicted_sequences - before->evicted_sequences == run->evicted);
  REQUIRE(now.no_slot - before->no_slot == run->refused);
  REQUIRE(now.requests - before->requests == run->answered && now.failed - before->failed == run->failed);
  REQUIRE(now.cancelled - before->cancelled == run->cancelled && now.timed_out - before->timed_out == run->late);
  REQUIRE(now.steps - before->steps >= run->steps);
}

static void add_model(rondo_session *session, const char *name) {
  test_adder_add(session, name, SLOTS, lengths, LENGTHS, (rondo_model_options){.evict_idle = true});
}

static void record(rondo_session *session, const char *name, const graph_choice *choice) {
  if (choice->recorded == 0) return;
  test_adder_capture(session, name, choice->rows, choice->row_count, choice->recorded == 2 ? &lengths[1] : lengths,
                     choice->recorded == 3 ? 2 : 1);
}

static void record_own(fuzz_run *run) {
  const graph_choice *choice = &choices[take(run) % CHOICES];
  record(run->session, own_name, choice);
  run->recorded = choice->recorded;
}

/* What sequences have stays. */
static void call_record(fuzz_run *run) {
  if (run->device == NULL) return;
  if (!run->is_taken) wait_for_all(run);
  const rondo_status status = rondo_session_destroy_graphs(run->session, run->name);
  if (run->is_taken) {
    require_error(status, RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
    return;
  }
  require_ok(status);
  record_own(run);
}

/* Sequences of a model that was removed are stale. */
static void call_replace(fuzz_run *run) {
  if (run->device == NULL) return;
  if (run->is_taken) {
    require_error(rondo_session_remove_model(run->session, run->name), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
    return;
  }
  wait_for_all(run);
  require_counters(run);
  require_ok(rondo_session_remove_model(run->session, run->name));
  for (size_t i = 0; i < SEQUENCES; i++) run->sequences[i].is_evicted = run->sequences[i].is_open;
  run->answered = run->failed = run->cancelled = run->late = run->evicted = run->refused = run->steps = 0;
  add_model(run->session, own_name);
  record_own(run);
}

static void call_misuse(fuzz_run *run) {
  const fuzz_sequence *q = take_sequence(run);
  rondo_request bad = {RONDO_REQUEST_INIT, .rows = 1, .length = 1, .inputs = q->s.inputs};
  if (has_request(q) || q->s.inputs[0] == NULL) return;
  require_error(rondo_session_run(run->session, run->name, &bad, NULL), RONDO_INVALID_ARGUMENT,
                RONDO_REASON_NULL_ARGUMENT);
  bad.sequence = q->s.sequence;
  bad.rows = 2;
  require_error(rondo_session_run(run->session, run->name, &bad, NULL), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  bad.rows = 1;
  bad.length = 5;
  require_error(rondo_session_run(run->session, run->longer, &bad, NULL), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
  bad.length = 0;
  require_error(rondo_session_run(run->session, run->name, &bad, NULL), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE);
}

/* Runs ------------------------------------------------------------------------------------------------------------- */

static rondo_session *open_session(const char *device_name, uint8_t choice, rondo_device **out_device) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1};
  const rondo_session_options of_session = {RONDO_SESSION_OPTIONS_INIT, .max_delay_us = choice % 2 == 0 ? 0 : 100,
                                            .max_batch = choice % 4 < 2 ? 0 : 2};
  rondo_session *session;
  require_ok(rondo_device_open(device_name, &options, out_device));
  require_ok(rondo_session_create(*out_device, &of_session, &session));
  return session;
}

/* A session with a model for each choice of graphs, which stays open. */
static rondo_session *share_session(void) {
  static rondo_device *device;
  static rondo_session *session;
  if (session != NULL) return session;
  session = open_session("cpu", 0, &device);
  for (size_t i = 0; i < CHOICES; i++) {
    add_model(session, choices[i].name);
    record(session, choices[i].name, &choices[i]);
  }
  return session;
}

static void begin(fuzz_run *run, uint8_t choice) {
  for (size_t i = 0; i < SEQUENCES; i++) run->sequences[i].run = run;
  if (choice < 240) {
    const graph_choice *graphs = &choices[choice % CHOICES];
    run->session = share_session();
    run->recorded = graphs->recorded;
    run->name = graphs->name;
    run->longer = graphs->longer;
    run->before = add_counters(run);
    return;
  }
  run->session = open_session(choice < 248 ? "cpu" : "cpu:check", choice, &run->device);
  run->name = own_name;
  run->longer = own_longer;
  add_model(run->session, own_name);
  record_own(run);
}

/* All that was submitted is answered while an own session is drained. */
static void end(fuzz_run *run) {
  if (run->is_taken) call_take_or_give(run);
  if (run->device != NULL) require_ok(rondo_session_drain(run->session));
  wait_for_all(run);
  require_counters(run);
  for (size_t i = 0; i < SEQUENCES; i++)
    if (has_slot(&run->sequences[i])) require_ok(rondo_sequence_close(run->sequences[i].s.sequence));
  if (run->device == NULL) return;
  require_ok(rondo_session_destroy(run->session));
  require_ok(rondo_device_close(run->device));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static void (*const calls[])(fuzz_run *) = {
      call_open,   call_submit,   call_submit, call_submit, call_take_or_give, call_submit,  call_wait,   call_close,
      call_cancel, call_truncate, call_look,   call_open,   call_submit,       call_replace, call_misuse, call_record};
  static fuzz_run run;
  run = (fuzz_run){.data = data, .left = size};
  REQUIRE(setenv("RONDO_CPU_SPIN_US", "20", 0) == 0); /* spinning workers would take time from working ones */
  begin(&run, take(&run));
  for (int i = 0; i < MAX_CALLS && run.left > 0; i++) calls[take(&run) % (sizeof calls / sizeof calls[0])](&run);
  end(&run);
  return 0;
}
