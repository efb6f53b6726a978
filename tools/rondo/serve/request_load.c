/* SPDX-License-Identifier: MIT
 * The closed loop has one thread for each client. The open loop has one thread that submits requests when they are due,
 * and one that waits for their tickets in order. Times come from the answers, not from when a thread looked at them.
 */
#define _POSIX_C_SOURCE 200809L
#include "serve/request_load.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/tool.h"

enum { MOST_SAMPLES = 1 << 20, MOST_OUT = 4096 };

static void count(load_tally *t, const rondo_answer *answer, size_t rows, double us) {
  t->answered++;
  t->rows += rows;
  t->batched += answer->batch_requests > 1;
  t->padding += (double)answer->padding_rows * (double)rows / (double)answer->batch_rows;
  samples_add(&t->times, us);
  samples_add(&t->waits, answer->queue_us);
}

static rondo_request request_of(const load *l, size_t index, void *const *outputs) {
  const size_t at = index % l->traffic->count;
  return (rondo_request){RONDO_REQUEST_INIT,           .mode = l->mode,
                         .rows = l->traffic->rows[at], .length = traffic_length(l->traffic, at),
                         .inputs = l->served->inputs,  .outputs = outputs};
}

/* Closed loop ----------------------------------------------------------------------------------------------------- */

typedef struct client {
  const load *load;
  pthread_t thread;
  size_t first; /* request */
  uint64_t end_ns;
  load_tally tally;
} client;

static void *run_client(void *user) {
  client *c = user;
  const load *l = c->load;
  void *outputs[RONDO_SESSION_MAX_VALUES];
  void *memory = served_model_make_outputs(l->served, l->most_rows, outputs);
  c->tally.has_no_memory = memory == NULL;
  for (size_t i = c->first; memory != NULL && clock_ns() < c->end_ns; i++) {
    const rondo_request request = request_of(l, i, outputs);
    rondo_answer answer = {.struct_size = sizeof answer};
    const uint64_t begin = clock_ns();
    const rondo_status status = rondo_session_run(l->session, l->model, &request, &answer);
    if (status == RONDO_OK)
      count(&c->tally, &answer, request.rows, (double)(clock_ns() - begin) / 1e3);
    else
      c->tally.failed++;
    if (status == RONDO_OK && l->check != NULL)
      answer_check_compare(l->check, request.rows, request.length, outputs, &c->tally.answers);
  }
  free(memory);
  return NULL;
}

static bool create_samples(load_tally *t, size_t capacity) {
  return samples_create(&t->times, capacity) && samples_create(&t->waits, capacity);
}

static void destroy_samples(load_tally *t) {
  samples_destroy(&t->times);
  samples_destroy(&t->waits);
}

/* Prints a message if not all clients could be started. */
static int start_clients(const load *l, client *clients, uint64_t end_ns, uint32_t *out_started) {
  for (uint32_t i = 0; i < l->clients; i++) {
    client *c = &clients[i];
    *out_started = i;
    *c = (client){.load = l, .first = l->first + i * l->traffic->count / l->clients, .end_ns = end_ns};
    if (!create_samples(&c->tally, MOST_SAMPLES / l->clients)) {
      destroy_samples(&c->tally);
      return tool_fail_memory("the times of %u clients", l->clients);
    }
    const int error = pthread_create(&c->thread, NULL, run_client, c);
    if (error) {
      destroy_samples(&c->tally);
      return tool_fail_thread(error);
    }
  }
  *out_started = l->clients;
  return TOOL_OK;
}

static void add_tally(load_tally *all, load_tally *one) {
  for (size_t i = 0; i < one->times.count; i++) samples_add(&all->times, one->times.values[i]);
  for (size_t i = 0; i < one->waits.count; i++) samples_add(&all->waits, one->waits.values[i]);
  all->answered += one->answered;
  all->failed += one->failed;
  all->refused += one->refused;
  all->rows += one->rows;
  all->batched += one->batched;
  all->padding += one->padding;
  all->has_no_memory |= one->has_no_memory;
  answer_tally_add(&all->answers, &one->answers);
  destroy_samples(one);
}

static int run_closed(const load *l, load_tally *all) {
  client *clients = calloc(l->clients, sizeof *clients);
  if (clients == NULL) return tool_fail_memory("%u clients", l->clients);
  uint32_t started = 0;
  const int result = start_clients(l, clients, clock_ns() + (uint64_t)(l->seconds * 1e9), &started);
  for (uint32_t i = 0; i < started; i++) {
    pthread_join(clients[i].thread, NULL);
    add_tally(all, &clients[i].tally);
  }
  free(clients);
  if (result != TOOL_OK) return result;
  return all->has_no_memory ? tool_fail_memory("the outputs of %u clients", l->clients) : TOOL_OK;
}

/* Open loop ------------------------------------------------------------------------------------------------------- */

/* A request in flight: passed from the thread that submits it to the thread that waits for it. */
typedef struct flight {
  rondo_ticket ticket;
  uint64_t due_ns, submitted_ns;
  size_t rows;
} flight;

typedef struct open_loop {
  const load *load;
  pthread_mutex_t lock;
  pthread_cond_t change;
  flight flights[MOST_OUT];
  size_t begun, ended; /* since the beginning of the load */
  bool is_over;
  load_tally tally;
} open_loop;

static void *collect(void *user) {
  open_loop *o = user;
  pthread_mutex_lock(&o->lock);
  while (!o->is_over || o->ended < o->begun) {
    if (o->ended == o->begun) {
      pthread_cond_wait(&o->change, &o->lock);
      continue;
    }
    const flight f = o->flights[o->ended % MOST_OUT];
    pthread_mutex_unlock(&o->lock);
    rondo_answer answer = {.struct_size = sizeof answer};
    const rondo_status status = rondo_ticket_wait(f.ticket, &answer);
    const double late_us = (double)(f.submitted_ns - f.due_ns) / 1e3;
    pthread_mutex_lock(&o->lock);
    if (status == RONDO_OK)
      count(&o->tally, &answer, f.rows, late_us + answer.queue_us + answer.run_us);
    else
      o->tally.failed++;
    o->ended++;
    pthread_cond_broadcast(&o->change);
  }
  pthread_mutex_unlock(&o->lock);
  return NULL;
}

static void submit(open_loop *o, size_t index, uint64_t due_ns) {
  void *const outputs[RONDO_SESSION_MAX_VALUES] = {NULL}; /* not needed; the closed loop measures their cost */
  const rondo_request request = request_of(o->load, index, outputs);
  rondo_ticket ticket = {0};
  const uint64_t submitted = clock_ns();
  const rondo_status status = rondo_session_submit(o->load->session, o->load->model, &request, &ticket);
  pthread_mutex_lock(&o->lock);
  if (status != RONDO_OK) {
    o->tally.refused += status == RONDO_LIMIT_EXCEEDED;
    o->tally.failed += status != RONDO_LIMIT_EXCEEDED;
  } else {
    while (o->begun - o->ended == MOST_OUT) pthread_cond_wait(&o->change, &o->lock);
    o->flights[o->begun++ % MOST_OUT] = (flight){ticket, due_ns, submitted, request.rows};
    pthread_cond_broadcast(&o->change);
  }
  pthread_mutex_unlock(&o->lock);
}

static void make_arrivals(open_loop *o) {
  const load *l = o->load;
  uint64_t random = l->seed + l->first;
  const uint64_t begin = clock_ns();
  double due = 0; /* seconds */
  for (size_t i = 0; (due += traffic_draw_gap(&random) / l->rate) < l->seconds; i++) {
    const uint64_t due_ns = begin + (uint64_t)(due * 1e9);
    clock_wait_until(due_ns);
    submit(o, l->first + i, due_ns);
  }
}

static int run_open(const load *l, load_tally *all) {
  open_loop *o = calloc(1, sizeof *o);
  pthread_t collector;
  if (o == NULL || !create_samples(&o->tally, MOST_SAMPLES)) {
    if (o != NULL) destroy_samples(&o->tally);
    free(o);
    return tool_fail_memory("the open loop");
  }
  o->load = l;
  pthread_mutex_init(&o->lock, NULL);
  pthread_cond_init(&o->change, NULL);
  const int error = pthread_create(&collector, NULL, collect, o);
  if (!error) {
    make_arrivals(o);
    pthread_mutex_lock(&o->lock);
    o->is_over = true;
    pthread_cond_broadcast(&o->change);
    pthread_mutex_unlock(&o->lock);
    pthread_join(collector, NULL);
  }
  add_tally(all, &o->tally);
  pthread_cond_destroy(&o->change);
  pthread_mutex_destroy(&o->lock);
  free(o);
  return error ? tool_fail_thread(error) : TOOL_OK;
}

/* Load ------------------------------------------------------------------------------------------------------------ */

/* What has run on the device and on the processors so far. */
typedef struct usage {
  rondo_session_usage session;
  double processor_seconds;
} usage;

static rondo_status get_usage(const load *l, usage *out) {
  struct timespec used = {0};
  out->session.struct_size = sizeof out->session;
  TOOL_TRY(rondo_session_get_usage(l->session, &out->session));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  out->processor_seconds = (double)used.tv_sec + (double)used.tv_nsec / 1e9;
  return RONDO_OK;
}

static void add_usage(load_tally *all, const usage *before, const usage *after) {
  const rondo_session_usage *a = &after->session, *b = &before->session;
  all->busy_us += a->busy_us - b->busy_us;
  all->processor_seconds += after->processor_seconds - before->processor_seconds;
  all->batches += a->batches - b->batches;
  all->batch_requests += a->requests - b->requests;
  all->graphs += a->graphs - b->graphs;
  all->batching_us += a->batching_us - b->batching_us;
  all->enqueue_us += a->enqueue_us - b->enqueue_us;
}

static double percentile(const samples *sorted, double part) {
  if (sorted->count == 0) return 0;
  const size_t index = (size_t)(part * (double)sorted->count);
  return sorted->values[index < sorted->count ? index : sorted->count - 1];
}

int load_run(const load *l, load_tally *inout) {
  usage before, after;
  if (inout->times.values == NULL && !create_samples(inout, MOST_SAMPLES))
    return tool_fail_memory("the times of requests");
  if (get_usage(l, &before)) return tool_fail_status("model '%s'", l->model);
  const uint64_t begin = clock_ns();
  const int result = l->rate > 0 ? run_open(l, inout) : run_closed(l, inout);
  inout->seconds += (double)(clock_ns() - begin) / 1e9;
  if (result != TOOL_OK) return result;
  if (get_usage(l, &after)) return tool_fail_status("model '%s'", l->model);
  add_usage(inout, &before, &after);
  return TOOL_OK;
}

static double mean_of(double sum, uint64_t count) { return count == 0 ? 0 : sum / (double)count; }

load_result load_summarize(load_tally *tally) {
  const summary s = samples_summarize(&tally->times), waits = samples_summarize(&tally->waits);
  const double seconds = tally->seconds > 0 ? tally->seconds : 1;
  const load_result out = {.seconds = tally->seconds,
                           .rate = (double)tally->answered / seconds,
                           .answered = tally->answered,
                           .failed = tally->failed,
                           .refused = tally->refused,
                           .waited_us = waits.median,
                           .median_us = s.median,
                           .p95_us = percentile(&tally->times, 0.95),
                           .p99_us = percentile(&tally->times, 0.99),
                           .p999_us = percentile(&tally->times, 0.999),
                           .maximum_us = s.maximum,
                           .rows = tally->rows,
                           .padding_rows = (uint64_t)(tally->padding + 0.5),
                           .batched = tally->batched,
                           .batch_requests = mean_of((double)tally->batch_requests, tally->batches),
                           .batching_us = mean_of(tally->batching_us, tally->batches),
                           .enqueue_us = mean_of(tally->enqueue_us, tally->graphs),
                           .busy = tally->busy_us / 1e6 / seconds,
                           .processors = tally->processor_seconds / seconds / (double)sysconf(_SC_NPROCESSORS_ONLN)};
  destroy_samples(tally);
  return out;
}
