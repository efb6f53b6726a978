/* SPDX-License-Identifier: MIT
 * Creating a session for a model from the parameters of the configuration:
 *   streams        how many graphs run at the same time; default: the number of instances on the device
 *   max_delay_us   how long a request waits for others
 *   max_queue      how many requests the session has at once; others wait in the server
 *   max_sizes      how many sizes are recorded at most
 *   evict_idle     1: a new sequence takes the slot of the least recently used idle one, if all are taken
 *   history        rows of requests, as "1:100,8:20" (100 of 1 row, 20 of 8) or "1,8", for which sizes are chosen;
 *                  default: what came since the backend has known the model, and what the model says, else powers of
 * two up to the largest batch
 */
#define _POSIX_C_SOURCE 200809L
#include "triton/served_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "triton/execution.h"
#include "triton/session_watch.h"

enum { DEFAULT_QUEUE = 256, MOST_QUEUE = 65536, MOST_DELAY_US = 10000000, MOST_ROWS = 1 << 24, MOST_HISTORY = 65536 };
enum { SPARE = 256 };

/* The history ------------------------------------------------------------------------------------------------------ */

/* Rows of requests; in a model with lengths also the length of each. */
typedef struct request_history {
  rondo_triton_row_list rows, lengths;
} request_history;

static rondo_status add_rows(const rondo_allocator *allocator, rondo_triton_row_list *list, size_t rows, size_t count) {
  for (size_t i = 0; i < count; i++) RONDO_TRY(rondo_array_push(allocator, list, &rows));
  return RONDO_OK;
}

/* A number from 1 to `most` at *inout_text, which is moved behind it; 0: it is not one. */
static size_t read_number(const char **inout_text, size_t most) {
  char *end;
  errno = 0;
  if (**inout_text < '0' || **inout_text > '9') return 0;
  const unsigned long long number = strtoull(*inout_text, &end, 10);
  *inout_text = end;
  return errno == 0 && number <= most ? (size_t)number : 0;
}

static rondo_status refuse_history(const char *text) {
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
      "parameter 'history' of the configuration is '%s': give rows, or rows:requests, with commas between "
      "them, such as '1:100,8:20' (at most %d rows, and %d requests in all)",
      text, MOST_ROWS, MOST_HISTORY);
}

static rondo_status parse_history(const rondo_allocator *allocator, const char *text, rondo_triton_row_list *out) {
  for (const char *at = text;; at++) {
    const size_t rows = read_number(&at, MOST_ROWS);
    size_t count = 1;
    if (rows > 0 && *at == ':') {
      at++;
      count = read_number(&at, MOST_HISTORY);
    }
    if (rows == 0 || count == 0 || count > MOST_HISTORY - out->count || (*at != ',' && *at != '\0'))
      return refuse_history(text);
    RONDO_TRY(add_rows(allocator, out, rows, count));
    if (*at == '\0') return RONDO_OK;
  }
}

/* Powers of two up to the largest batch, and it. */
static rondo_status add_powers(const rondo_triton_served *served, rondo_triton_row_list *out) {
  const rondo_triton_model_state *model = served->model;
  const size_t batch = model->config.max_batch_size, most = batch > 0 ? batch : model->backend->default_batch_size;
  for (size_t rows = 1; rows < most; rows *= 2) RONDO_TRY(add_rows(&served->allocator, out, rows, 1));
  return add_rows(&served->allocator, out, most, 1);
}

/* What the model says of its requests, once, so that sizes fit before many have come. */
static rondo_status add_assumed(const rondo_triton_served *served, rondo_triton_row_list *out) {
  const rondo_model_options *options = &served->model->source.options;
  if (options->history_count == 0) return add_powers(served, out);
  for (size_t i = 0; i < options->history_count; i++)
    RONDO_TRY(rondo_array_push(&served->allocator, out, &options->history[i]));
  return RONDO_OK;
}

/* Of a model with lengths. Sizes for steps of sequences depend on the slots alone. */
static rondo_status make_sized_history(const rondo_triton_served *served, request_history *out) {
  const rondo_model_options *options = &served->model->source.options;
  if (rondo_triton_config_parameter(&served->model->config, "history") != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "the configuration has the parameter 'history', which is for models without lengths: the shared "
                      "object gives a history with lengths");
  if (options->history_count > 0) return RONDO_OK;
  for (size_t i = 0; i < options->length_count; i++) {
    const size_t before = out->rows.count;
    if (options->slots > 0)
      RONDO_TRY(add_rows(&served->allocator, &out->rows, 1, 1));
    else
      RONDO_TRY(add_powers(served, &out->rows));
    RONDO_TRY(add_rows(&served->allocator, &out->lengths, options->lengths[i], out->rows.count - before));
  }
  return RONDO_OK;
}

static rondo_status make_history(const rondo_triton_served *served, request_history *out) {
  const rondo_triton_model_state *model = served->model;
  const char *text = rondo_triton_config_parameter(&model->config, "history");
  if (model->source.options.build_sized != NULL) return make_sized_history(served, out);
  if (text != NULL) return parse_history(&served->allocator, text, &out->rows);
  RONDO_TRY(rondo_triton_history_list(&served->allocator, served->history, &out->rows));
  return add_assumed(served, &out->rows);
}

/* The session ------------------------------------------------------------------------------------------------------ */

/* A request leaves its place before its callback returns to the session, in a stream's thread, the watching thread, or
 * that of an instance. So the session has spare slots, one for each of these threads. How many instances the server
 * makes is up to it: the configuration may say nothing of them. */
static rondo_status create_session(rondo_triton_served *served, const char *kind) {
  const rondo_triton_config *config = &served->model->config;
  const size_t instances = rondo_triton_config_instances(config, kind);
  const size_t usual = instances > RONDO_SESSION_MAX_STREAMS ? RONDO_SESSION_MAX_STREAMS : instances;
  size_t streams, delay_us, queue;
  RONDO_TRY(rondo_triton_config_number(config, "streams", 1, RONDO_SESSION_MAX_STREAMS, usual, &streams));
  RONDO_TRY(rondo_triton_config_number(config, "max_delay_us", 0, MOST_DELAY_US, 0, &delay_us));
  RONDO_TRY(rondo_triton_config_number(config, "max_queue", 1, MOST_QUEUE, DEFAULT_QUEUE, &queue));
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = (uint32_t)streams,
                                         .max_delay_us = (uint32_t)delay_us, .max_queue = (uint32_t)(queue + SPARE),
                                         .name = served->model->name};
  served->most_in_flight = (uint32_t)queue;
  return rondo_session_create(served->device, &options, &served->session);
}

static rondo_status record_model(rondo_triton_served *served, const request_history *history) {
  const rondo_triton_model_state *model = served->model;
  rondo_model_options options = model->source.options;
  size_t max_sizes, evicts;
  RONDO_TRY(rondo_triton_config_number(&model->config, "max_sizes", 1, RONDO_SESSION_MAX_SIZES, options.max_sizes,
                                       &max_sizes));
  options.max_sizes = (uint32_t)max_sizes;
  RONDO_TRY(rondo_triton_config_number(&model->config, "evict_idle", 0, 1, options.evict_idle, &evicts));
  options.evict_idle = evicts == 1;
  if (history->rows.count > 0) {
    options.history = history->rows.items;
    options.history_count = history->rows.count;
    options.history_lengths = history->lengths.items; /* NULL without lengths */
  }
  RONDO_TRY(rondo_session_add_model(served->session, model->name, &options));
  return rondo_session_capture(served->session, model->name);
}

static rondo_status add_model(rondo_triton_served *served) {
  request_history history = {.rows = {.count = 0}};
  rondo_status status = make_history(served, &history);
  if (status == RONDO_OK) status = record_model(served, &history);
  rondo_array_free(&served->allocator, &history.rows);
  rondo_array_free(&served->allocator, &history.lengths);
  return status;
}

/* A session may have fewer slots than the model asks for. */
static rondo_status make_sequences(rondo_triton_served *served) {
  const rondo_triton_model_state *model = served->model;
  rondo_model_info info = {.struct_size = sizeof info};
  if (model->source.options.slots == 0) return RONDO_OK;
  RONDO_TRY(rondo_session_get_model_info(served->session, model->name, &info));
  return rondo_triton_sequences_reserve(&served->sequences, (size_t)info.slots);
}

static rondo_status start(rondo_triton_served *served, const char *kind) {
  rondo_triton_backend *backend = served->model->backend;
  RONDO_TRY(rondo_triton_devices_open(&backend->devices, served->device_name, &served->device));
  RONDO_TRY(create_session(served, kind));
  if (served->model->source.options.build_sized == NULL)
    RONDO_TRY(rondo_triton_history_open(&backend->histories, served->model->name, &served->history));
  RONDO_TRY(add_model(served));
  RONDO_TRY(make_sequences(served));
  rondo_triton_metrics_open(&backend->metrics, served->model->name, served->model->version, served->device_name,
                            &served->metrics);
  return rondo_triton_watch_start(served);
}

static void keep(rondo_status *kept, rondo_status status) { RONDO_THEN(*kept, status); }

static rondo_status stop(rondo_triton_served *served) {
  rondo_status status = RONDO_OK;
  rondo_triton_watch_stop(served);
  rondo_triton_metrics_close(&served->metrics);
  keep(&status, rondo_session_destroy(served->session));
  if (served->device != NULL)
    keep(&status, rondo_triton_devices_close(&served->model->backend->devices, served->device));
  rondo_triton_history_close(&served->model->backend->histories, served->history);
  rondo_triton_free_flights(served);
  rondo_triton_sequences_free(&served->sequences);
  pthread_cond_destroy(&served->wake);
  pthread_cond_destroy(&served->change);
  pthread_mutex_destroy(&served->lock);
  const rondo_allocator allocator = served->allocator;
  rondo_release(&allocator, served, 1, sizeof *served);
  return status;
}

static rondo_status make(rondo_triton_model_state *model, const char *device, const char *kind,
                         rondo_triton_served **out) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_triton_served *served;
  pthread_condattr_t clock;
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *served, &served));
  served->allocator = allocator;
  served->model = model;
  (void)snprintf(served->device_name, sizeof served->device_name, "%s", device);
  pthread_mutex_init(&served->lock, NULL);
  rondo_triton_sequences_init(&allocator, &served->sequences);
  pthread_cond_init(&served->change, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&served->wake, &clock);
  pthread_condattr_destroy(&clock);
  rondo_status status = start(served, kind);
  if (status == RONDO_OK)
    *out = served;
  else
    RONDO_THEN(status, stop(served));
  return status;
}

/* Instances -------------------------------------------------------------------------------------------------------- */

/* Under the model's lock, so that two instances do not record the same model. */
static rondo_status open_session(rondo_triton_model_state *model, const char *device, const char *kind,
                                 rondo_triton_served **out) {
  for (*out = model->sessions; *out != NULL; *out = (*out)->next)
    if (strcmp((*out)->device_name, device) == 0) break;
  if (*out == NULL) {
    RONDO_TRY(make(model, device, kind, out));
    (*out)->next = model->sessions;
    model->sessions = *out;
  }
  (*out)->instances++;
  return RONDO_OK;
}

rondo_status rondo_triton_served_open(rondo_triton_model_state *model, const char *device, const char *kind,
                                      rondo_triton_served **out_served) {
  *out_served = NULL;
  pthread_mutex_lock(&model->lock);
  const rondo_status status = open_session(model, device, kind, out_served);
  pthread_mutex_unlock(&model->lock);
  return status;
}

rondo_status rondo_triton_served_close(rondo_triton_served *served) {
  rondo_triton_model_state *model = served->model;
  pthread_mutex_lock(&model->lock);
  const bool is_last = --served->instances == 0;
  rondo_triton_served **at = &model->sessions;
  while (*at != served) at = &(*at)->next;
  if (is_last) *at = served->next;
  pthread_mutex_unlock(&model->lock);
  return is_last ? stop(served) : RONDO_OK;
}
