/* SPDX-License-Identifier: MIT
 * Each client is a thread that waits in rondo_session_run. Its tokens are drawn by the program, with a seed for each
 * text, and the threads of the session pass them on between two steps (rondo_request.next).
 */
#include "serve/sequence_load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

enum { MOST_SAMPLES = 1 << 18 };

typedef struct client {
  const sequence_load *load;
  _Atomic uint64_t *next_number;
  uint64_t end; /* number after the last sequence */
  pthread_t thread;
  int32_t tokens[MODEL_MAX_CONTEXT]; /* the prompt, then the last token */
  int32_t token;                     /* that a step has drawn */
  int64_t text_seed;
  float temperature;
  uint64_t hash, last_ns;
  size_t written;
  sequence_tally *tally; /* of all clients */
  pthread_mutex_t *lock; /* guards the tally */
} client;

static draw_source source_of(const sequence_load *l, uint64_t number) {
  uint64_t mixed = l->seed;
  const uint64_t begin = draw_next(&mixed) + number;
  return draw_create(begin, DRAW_CHARACTERS);
}

static size_t draw_length(const sequence_load *l, draw_source *source) {
  const size_t least = (l->prompt + 3) / 4;
  return least + draw_below(source, (uint32_t)(l->prompt - least + 1));
}

size_t sequence_prompt_length(const sequence_load *l, uint64_t number) {
  draw_source source = source_of(l, number);
  return draw_length(l, &source);
}

/* A part of the model's opening. Returns its length. */
static size_t begin_text(client *c, uint64_t number) {
  const language_model *model = c->load->model;
  draw_source source = source_of(c->load, number);
  const size_t length = draw_length(c->load, &source);
  const size_t from = draw_below(&source, (uint32_t)(model->sizes[MODEL_CONTEXT] - length + 1));
  c->text_seed = (int64_t)(draw_next(&source.state) >> 1);
  c->temperature = (float)c->load->temperature;
  for (size_t i = 0; i < length; i++) c->tokens[i] = model->vocabulary.token_of[model->opening[from + i]];
  c->written = 0;
  c->hash = 0;
  return length;
}

static void add_token(client *c, const rondo_answer *answer, uint64_t now) {
  sequence_tally *t = c->tally;
  pthread_mutex_lock(c->lock);
  samples_add(answer->steps == 1 ? &t->first_us : &t->each_us, (double)(now - c->last_ns) / 1e3);
  t->tokens++;
  t->batch_rows += answer->batch_rows;
  pthread_mutex_unlock(c->lock);
  c->last_ns = now;
}

/* Gives the token of a step to the next one. */
static size_t pass_token(void *user, const rondo_answer *answer) {
  client *c = user;
  add_token(c, answer, clock_ns());
  c->hash = (c->hash ^ ((uint32_t)c->token + 1)) * UINT64_C(0x100000001b3);
  c->tokens[0] = c->token;
  return ++c->written < c->load->tokens ? 1 : 0;
}

static rondo_status run_sequence(client *c, uint64_t number) {
  const void *inputs[] = {c->tokens, &c->text_seed, &c->temperature};
  void *outputs[] = {&c->token};
  rondo_request request = {RONDO_REQUEST_INIT, .rows = 1,          .inputs = inputs,
                           .outputs = outputs, .next = pass_token, .user = c};
  request.length = begin_text(c, number);
  TOOL_TRY(rondo_sequence_open(c->load->session, c->load->name, &request.sequence));
  c->last_ns = clock_ns();
  const rondo_status status = rondo_session_run(c->load->session, c->load->name, &request, NULL);
  const rondo_status closed = rondo_sequence_close(request.sequence);
  return status ? status : closed;
}

static void count_sequence(client *c, uint64_t number, rondo_status status) {
  sequence_tally *t = c->tally;
  pthread_mutex_lock(c->lock);
  if (status && !t->status) {
    t->status = status;
    (void)snprintf(t->message, sizeof t->message, "%s", rondo_last_error()->message);
  }
  t->sequences += status == RONDO_OK;
  if (status == RONDO_OK && number < SEQUENCE_TEXTS) t->texts[number] = c->hash | 1;
  pthread_mutex_unlock(c->lock);
}

static void *run_client(void *user) {
  client *c = user;
  rondo_status status = RONDO_OK;
  for (uint64_t number; !status && (number = atomic_fetch_add(c->next_number, 1)) < c->end;) {
    status = run_sequence(c, number);
    count_sequence(c, number, status);
  }
  return NULL;
}

/* Prints a message if not all clients could be started. */
static int start_clients(client *clients, const client *like, uint32_t *out_started) {
  for (*out_started = 0; *out_started < like->load->clients; ++*out_started) {
    client *c = &clients[*out_started];
    *c = *like;
    const int error = pthread_create(&c->thread, NULL, run_client, c);
    if (error) return tool_fail_thread(error);
  }
  return TOOL_OK;
}

static int run_clients(client *clients, const client *like) {
  uint32_t started = 0;
  const int result = start_clients(clients, like, &started);
  for (uint32_t i = 0; i < started; i++) pthread_join(clients[i].thread, NULL);
  return result;
}

static bool create_samples(sequence_tally *t) {
  if (t->first_us.values == NULL && !samples_create(&t->first_us, MOST_SAMPLES)) return false;
  return t->each_us.values != NULL || samples_create(&t->each_us, MOST_SAMPLES);
}

int sequence_load_run(const sequence_load *l, uint64_t first, sequence_tally *inout) {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  _Atomic uint64_t number = first;
  const client like = {.load = l, .next_number = &number, .end = first + l->sequences, .tally = inout, .lock = &lock};
  client *clients = calloc(l->clients, sizeof *clients);
  const bool has_memory = clients != NULL && create_samples(inout);
  const uint64_t begin = clock_ns();
  const int result = has_memory ? run_clients(clients, &like) : tool_fail_memory("the times of %u clients", l->clients);
  free(clients);
  pthread_mutex_destroy(&lock);
  inout->seconds += (double)(clock_ns() - begin) / 1e9;
  if (result == TOOL_OK && inout->status) return tool_fail("a sequence of %s: %s", l->name, inout->message);
  return result;
}

void sequence_tally_destroy(sequence_tally *tally) {
  samples_destroy(&tally->first_us);
  samples_destroy(&tally->each_us);
}
