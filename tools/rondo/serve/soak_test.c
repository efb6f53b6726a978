/* SPDX-License-Identifier: MIT
 * One thread submits requests when they are due and cancels some that wait. Another thread collects the answers in the
 * order of the requests. The requests are ranges of the same input rows, so that each row has one correct score. Ranges
 * begin anywhere, so that another request's answer is detected as wrong.
 *
 * On a CPU device the soak shares the processors with the session. The collecting thread sleeps until the session calls
 * it, as clients do: polling for an answer every 50 us cost two processors a sixth of their throughput. The submitting
 * thread watches the oldest request, because a stuck request blocks the collecting thread.
 */
#define _POSIX_C_SOURCE 200809L
#include "serve/soak_test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/timing.h"
#include "common/tool.h"

#define NOT_WRITTEN (-1.0f) /* initial value of outputs; scores are from 0 to 1 */
enum { MOST_OUT = 1024, BUCKETS = 2400, MAX_WARNINGS = 20 };

/* The intended outcome of a request. */
typedef enum fate { FATE_PLAIN, FATE_CANCELLED, FATE_DEADLINE, FATE_INDEX, FATE_SHAPE, FATE_NOT_A_NUMBER } fate;

/* Times in buckets that are 1 % wide. */
typedef struct histogram {
  uint64_t counts[BUCKETS], total;
} histogram;

typedef struct flight {
  rondo_ticket ticket;
  fate fate;
  uint64_t due_ns, submitted_ns;
  size_t first, rows; /* first row and number of rows of the inputs */
  float *scores;      /* space for the largest request */
} flight;

typedef struct soaking {
  const soak *soak;
  pthread_mutex_t lock;
  pthread_cond_t change;
  flight flights[MOST_OUT];
  size_t begun, ended;      /* since the beginning of the soak */
  bool is_over;             /* no more requests are submitted */
  uint64_t wrongly_refused; /* counted by the submitting thread; the collecting thread counts other wrong answers */
  uint64_t begin_ns, random;
  double fates;            /* from 0 to 1: what becomes of the next request */
  float *scores;           /* of all flights */
  size_t rows;             /* of the inputs: twice those of the largest request */
  float *right;            /* the correct score of each row */
  recommender_inputs good; /* inputs of most requests */
  recommender_inputs bad;  /* the same except for row 0, which has NaNs and an index outside every table */
  histogram all, window;
  soak_result result;
} soaking;

/* Times ----------------------------------------------------------------------------------------------------------- */

static void histogram_add(histogram *h, double us) {
  const double bucket = us > 1 ? log(us) / log(1.01) : 0;
  h->counts[bucket < BUCKETS - 1 ? (size_t)bucket : BUCKETS - 1]++;
  h->total++;
}

static double histogram_percentile(const histogram *h, double part) {
  uint64_t before = 0;
  for (size_t i = 0; i < BUCKETS; i++) {
    before += h->counts[i];
    if (h->total > 0 && (double)before > part * (double)h->total) return pow(1.01, (double)i + 0.5);
  }
  return 0;
}

static uint64_t read_resident(void) {
  unsigned long long all = 0, resident = 0;
  FILE *statm = fopen("/proc/self/statm", "r");
  if (statm == NULL) return 0;
  if (fscanf(statm, "%llu %llu", &all, &resident) != 2) resident = 0;
  fclose(statm);
  return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void read_memory(soaking *s, size_t at) {
  rondo_device_statistics statistics = {.struct_size = sizeof statistics};
  s->result.resident_bytes[at] = read_resident();
  if (!rondo_device_get_statistics(s->soak->device, &statistics)) s->result.mapped_bytes[at] = statistics.mapped_bytes;
}

static void end_window(soaking *s) {
  soak_result *r = &s->result;
  if (r->window_count == 0) read_memory(s, 0);
  r->windows[r->window_count++] = (soak_window){.answered = s->window.total,
                                                .median_us = histogram_percentile(&s->window, 0.5),
                                                .p99_us = histogram_percentile(&s->window, 0.99)};
  memset(&s->window, 0, sizeof s->window);
}

static void add_time(soaking *s, const flight *f, double us) {
  const double at = (double)(f->due_ns - s->begin_ns) / 1e9 / s->result.window_seconds;
  while (s->result.window_count + 1 < SOAK_MOST_WINDOWS && (size_t)at > s->result.window_count) end_window(s);
  histogram_add(&s->window, us);
  histogram_add(&s->all, us);
}

/* Answers --------------------------------------------------------------------------------------------------------- */

static float right_score(const soaking *s, const flight *f, size_t row) {
  return row == 0 && f->fate == FATE_NOT_A_NUMBER ? NAN : s->right[f->first + row];
}

static bool is_score(float score, float right) { return isnan(right) ? isnan(score) : fabsf(score - right) <= 1e-4f; }

/* The first row whose score is wrong; the number of rows if all are correct. */
static size_t find_wrong_row(const soaking *s, const flight *f) {
  size_t row = 0;
  while (row < f->rows && is_score(f->scores[row], right_score(s, f, row))) row++;
  return row;
}

/* Describes the likely cause of a wrong score: not written, or the score of another row. */
static void describe_score(const soaking *s, float score, char *text, size_t bytes) {
  size_t row = 0;
  while (row < s->rows && !is_score(score, s->right[row])) row++;
  if (score == NOT_WRITTEN)
    snprintf(text, bytes, "; it was not written");
  else if (!isnan(score) && row < s->rows)
    snprintf(text, bytes, "; it is the score of input row %zu", row);
  else
    text[0] = '\0';
}

static void report_wrong_scores(const soaking *s, const flight *f, const rondo_answer *answer) {
  const size_t row = find_wrong_row(s, f);
  size_t count = 0;
  char score[64];
  for (size_t i = 0; i < f->rows; i++) count += !is_score(f->scores[i], right_score(s, f, i));
  describe_score(s, f->scores[row], score, sizeof score);
  tool_warn(
      "a request of the %zu rows from %zu on: %zu scores are wrong, the first is %.7g, not %.7g, in row %zu%s; "
      "it ran among %zu rows of %u requests, in graphs for %zu (%u of them), on stream %u",
      f->rows, f->first, count, (double)f->scores[row], (double)right_score(s, f, row), row, score, answer->batch_rows,
      answer->batch_requests, answer->batch_rows + (size_t)answer->padding_rows, answer->graphs, answer->stream);
}

static void report_wrong_answer(const soaking *s, const flight *f, rondo_status status, const rondo_answer *answer) {
  if (s->result.wrong > MAX_WARNINGS) return;
  if (status) {
    tool_warn("a request of %zu rows: %s", f->rows, rondo_last_error()->message);
  } else if (f->fate == FATE_INDEX) {
    tool_warn("a request of %zu rows, whose first index is in no table, was answered", f->rows);
  } else {
    report_wrong_scores(s, f, answer);
  }
}

static void judge(soaking *s, const flight *f, rondo_status status, const rondo_answer *answer) {
  const double us = (double)(f->submitted_ns - f->due_ns) / 1e3 + answer->queue_us + answer->run_us;
  soak_result *r = &s->result;
  const rondo_reason reason = status ? rondo_last_error()->reason : RONDO_REASON_NONE;
  if (status == RONDO_OK && f->fate != FATE_INDEX && find_wrong_row(s, f) == f->rows) {
    r->answered++;
    r->not_numbers += f->fate == FATE_NOT_A_NUMBER;
    add_time(s, f, us);
  } else if (f->fate == FATE_CANCELLED && reason == RONDO_REASON_ABORTED) {
    r->cancelled++;
  } else if (f->fate == FATE_DEADLINE && reason == RONDO_REASON_TIMED_OUT) {
    r->timed_out++;
  } else if (f->fate == FATE_INDEX && status == RONDO_EXECUTION_FAILED && reason == RONDO_REASON_OUT_OF_RANGE) {
    r->refused_index++;
  } else {
    r->wrong++;
    report_wrong_answer(s, f, status, answer);
  }
}

/* The oldest request stays in `flights` until it is answered. */
static void collect_one(soaking *s, const flight *f) {
  rondo_answer answer = {.struct_size = sizeof answer};
  judge(s, f, rondo_ticket_wait(f->ticket, &answer), &answer);
}

static void *collect(void *user) {
  soaking *s = user;
  pthread_mutex_lock(&s->lock);
  while (!s->is_over || s->ended < s->begun) {
    if (s->ended == s->begun) {
      pthread_cond_wait(&s->change, &s->lock);
      continue;
    }
    const flight f = s->flights[s->ended % MOST_OUT];
    pthread_mutex_unlock(&s->lock);
    collect_one(s, &f);
    pthread_mutex_lock(&s->lock);
    s->ended++;
    pthread_cond_broadcast(&s->change);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

/* Call with the lock held. Whether the oldest request has waited for its answer longer than allowed. */
static bool is_stuck(const soaking *s) {
  if (s->ended == s->begun) return false;
  const uint64_t waited = clock_ns() - s->flights[s->ended % MOST_OUT].submitted_ns;
  return (double)waited > s->soak->answer_seconds * 1e9;
}

/* Call with the lock held. Waits until at most `most` requests are in flight; returns false if one is stuck. */
static bool wait_for_room(soaking *s, size_t most) {
  while (s->begun - s->ended > most && !is_stuck(s)) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&s->change, &s->lock, &until);
  }
  return !is_stuck(s);
}

/* Requests -------------------------------------------------------------------------------------------------------- */

/* Four of five requests are ordinary. Multiples of the golden ratio are spread evenly, so a short soak has bad requests
 * of most kinds, too. */
static fate choose_fate(soaking *s) {
  const double chosen = s->fates * 100;
  s->fates += 0.6180339887498949;
  s->fates -= s->fates >= 1 ? 1 : 0;
  if (chosen < 6) return FATE_CANCELLED;
  if (chosen < 12) return FATE_DEADLINE;
  if (chosen < 13) return s->soak->model->has_tables ? FATE_INDEX : FATE_PLAIN;
  if (chosen < 15) return FATE_SHAPE;
  return chosen < 20 ? FATE_NOT_A_NUMBER : FATE_PLAIN;
}

/* A request with a bad first row begins at row 0, where the bad row is. */
static size_t draw_first(soaking *s, const flight *f) {
  const double drawn = traffic_draw_unit(&s->random);
  if (f->fate == FATE_INDEX || f->fate == FATE_NOT_A_NUMBER) return 0;
  return (size_t)(drawn * (double)(s->rows - f->rows + 1));
}

static rondo_request request_of(const soaking *s, const flight *f, const void *inputs[2], void *outputs[1]) {
  recommender_inputs_from(s->soak->model, &s->good, f->first, inputs);
  if (f->fate == FATE_NOT_A_NUMBER) inputs[0] = s->bad.numbers;
  if (f->fate == FATE_INDEX) inputs[1] = s->bad.looked_up;
  outputs[0] = f->scores;
  return (rondo_request){RONDO_REQUEST_INIT, .mode = RONDO_RUN_RECORDED,
                         .rows = f->rows,    .inputs = inputs,
                         .outputs = outputs, .input_count = f->fate == FATE_SHAPE ? 1 : 2,
                         .output_count = 1,  .deadline_us = f->fate == FATE_DEADLINE ? 200 : 0};
}

static rondo_status submit(const soaking *s, flight *f) {
  const void *inputs[2];
  void *outputs[1];
  const rondo_request request = request_of(s, f, inputs, outputs);
  f->submitted_ns = clock_ns();
  return rondo_session_submit(s->soak->session, s->soak->name, &request, &f->ticket);
}

static void count_refusal(soaking *s, const flight *f, rondo_status status) {
  if (status == RONDO_LIMIT_EXCEEDED)
    s->result.full++;
  else if (f->fate == FATE_SHAPE && rondo_last_error()->reason == RONDO_REASON_ARGUMENT_COUNT)
    s->result.refused_shape++;
  else if (++s->wrongly_refused <= MAX_WARNINGS)
    tool_warn("a request of %zu rows was refused: %s", f->rows, rondo_last_error()->message);
}

/* The request may already be answered, or the collecting thread may be waiting for it: then cancelling has no effect.
 */
static void cancel_latest(const soaking *s) {
  if (s->begun == 0) return;
  const flight *f = &s->flights[(s->begun - 1) % MOST_OUT];
  if (f->fate == FATE_CANCELLED) rondo_ticket_cancel(f->ticket);
}

/* A free slot for one more request; NULL if a request is stuck. */
static flight *next_flight(soaking *s) {
  pthread_mutex_lock(&s->lock);
  flight *f = wait_for_room(s, MOST_OUT - 1) ? &s->flights[s->begun % MOST_OUT] : NULL;
  pthread_mutex_unlock(&s->lock);
  return f;
}

static bool submit_next(soaking *s, size_t index, uint64_t due_ns) {
  flight *f = next_flight(s);
  if (f == NULL) return false;
  const size_t place = (size_t)(f - s->flights);
  *f = (flight){.fate = choose_fate(s),
                .due_ns = due_ns,
                .rows = s->soak->traffic->rows[index % s->soak->traffic->count],
                .scores = s->scores + place * s->soak->most_rows};
  f->first = draw_first(s, f);
  for (size_t i = 0; i < f->rows; i++) f->scores[i] = NOT_WRITTEN;
  const rondo_status status = submit(s, f);
  pthread_mutex_lock(&s->lock);
  if (status)
    count_refusal(s, f, status);
  else
    s->begun++;
  pthread_cond_broadcast(&s->change);
  pthread_mutex_unlock(&s->lock);
  return true;
}

/* Returns false if a request is stuck. */
static bool make_arrivals(soaking *s) {
  double due = 0; /* seconds */
  for (size_t i = 0; (due += traffic_draw_gap(&s->random) / s->soak->rate) < s->soak->seconds; i++) {
    const uint64_t due_ns = s->begin_ns + (uint64_t)(due * 1e9);
    clock_wait_until(due_ns);
    cancel_latest(s);
    if (!submit_next(s, i, due_ns)) return false;
    if (i % 256 == 0) tool_show_progress("soaking, %.0f of %.0f seconds", due, s->soak->seconds);
  }
  return true;
}

/* Soak ------------------------------------------------------------------------------------------------------------ */

static rondo_status find_right_scores(soaking *s) {
  const soak *given = s->soak;
  for (size_t first = 0; first < s->rows; first += given->most_rows) {
    const void *inputs[2];
    void *outputs[1] = {s->right + first};
    recommender_inputs_from(given->model, &s->good, first, inputs);
    const rondo_request request = {RONDO_REQUEST_INIT, .mode = RONDO_RUN_EAGER, .rows = given->most_rows,
                                   .inputs = inputs, .outputs = outputs};
    TOOL_TRY(rondo_session_run(given->session, given->name, &request, NULL));
  }
  return RONDO_OK;
}

static int prepare(soaking *s) {
  const soak *given = s->soak;
  s->rows = 2 * given->most_rows;
  if (recommender_inputs_create(given->model, given->device, s->rows, given->seed, &s->good) != TOOL_OK ||
      recommender_inputs_create(given->model, given->device, s->rows, given->seed, &s->bad) != TOOL_OK)
    return TOOL_FAILURE;
  s->bad.numbers[0] = NAN;
  if (given->model->has_tables) *(int32_t *)s->bad.looked_up = INT32_MAX;
  s->scores = calloc(MOST_OUT * given->most_rows, sizeof *s->scores);
  s->right = calloc(s->rows, sizeof *s->right);
  if (s->scores == NULL || s->right == NULL) return tool_fail_memory("the soak");
  return find_right_scores(s) ? tool_fail_status("the soak") : TOOL_OK;
}

static int run(soaking *s) {
  pthread_t collector;
  s->begin_ns = clock_ns();
  const int error = pthread_create(&collector, NULL, collect, s);
  if (error) return tool_fail_thread(error);
  const bool are_all_in = make_arrivals(s);
  pthread_mutex_lock(&s->lock);
  s->is_over = true;
  pthread_cond_broadcast(&s->change);
  s->result.stuck = !wait_for_room(s, 0) || !are_all_in;
  pthread_mutex_unlock(&s->lock);
  if (s->result.stuck > 0) return tool_fail("a request was not answered in %g s", s->soak->answer_seconds);
  pthread_join(collector, NULL);
  s->result.seconds = (double)(clock_ns() - s->begin_ns) / 1e9;
  return TOOL_OK;
}

static int conclude(soaking *s) {
  soak_result *r = &s->result;
  r->wrong += s->wrongly_refused;
  if (s->window.total > 0 && r->window_count < SOAK_MOST_WINDOWS) end_window(s);
  read_memory(s, 1);
  r->median_us = histogram_percentile(&s->all, 0.5);
  r->p99_us = histogram_percentile(&s->all, 0.99);
  if (r->window_count > 2 && r->windows[1].p99_us > 0)
    r->drift = r->windows[r->window_count - 1].p99_us / r->windows[1].p99_us;
  return r->wrong > 0 ? tool_fail("%llu of the soak's answers are wrong", (unsigned long long)r->wrong) : TOOL_OK;
}

/* The length of a window: a fifth of a short soak, otherwise a minute or more. */
static double choose_window(double seconds) {
  if (seconds < 300) return seconds / 5;
  return seconds / 60 <= SOAK_MOST_WINDOWS ? 60 : seconds / SOAK_MOST_WINDOWS;
}

static soaking *create(const soak *given) {
  pthread_condattr_t monotonic;
  soaking *s = calloc(1, sizeof *s);
  if (s == NULL) return NULL;
  s->soak = given;
  s->random = given->seed + 17;
  s->result.window_seconds = choose_window(given->seconds);
  pthread_mutex_init(&s->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&s->change, &monotonic);
  pthread_condattr_destroy(&monotonic);
  return s;
}

static int destroy(soaking *s) {
  pthread_cond_destroy(&s->change);
  pthread_mutex_destroy(&s->lock);
  int result = recommender_inputs_destroy(&s->good);
  if (recommender_inputs_destroy(&s->bad) != TOOL_OK) result = TOOL_FAILURE;
  free(s->scores);
  free(s->right);
  free(s);
  return result;
}

/* The memory of a stuck request is not freed, because the session and the collecting thread still use it. */
int soak_run(const soak *given, soak_result *out) {
  soaking *s = create(given);
  if (s == NULL) return tool_fail_memory("the soak");
  int result = prepare(s);
  if (result == TOOL_OK) result = run(s);
  if (s->result.stuck > 0) {
    out->stuck = s->result.stuck;
    return result;
  }
  if (result == TOOL_OK) result = conclude(s);
  *out = s->result;
  return destroy(s) == TOOL_OK ? result : TOOL_FAILURE;
}
