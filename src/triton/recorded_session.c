/* SPDX-License-Identifier: MIT
 * Creating a session for a model from the parameters of the configuration:
 *   streams        how many graphs run at the same time; default: the number of instances on the device
 *   max_delay_us   how long a request waits for others
 *   max_queue      how many requests the session has at once; others wait in the server
 *   max_sizes      how many sizes are recorded at most
 *   evict_idle     1: a new sequence takes the slot of the least recently used idle one, if all are taken
 *   history        rows of requests, as "1:100,8:20" (100 of 1 row, 20 of 8) or "1,8", for which sizes are chosen;
 *                  default: what came since the backend has known the model, and what the model says, else powers of
 *                  two up to the largest batch
 */
#include "triton/recorded_session.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

enum { MOST_ROWS = 1 << 24, MOST_HISTORY = 65536 };
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
                      "the configuration has the parameter 'history', which is for models without lengths: leave it "
                      "out; a shared object gives a history with lengths itself");
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
static rondo_status create_session(const rondo_triton_served *served, rondo_session **out) {
  const rondo_triton_config *config = &served->model->config;
  const size_t instances = rondo_triton_config_instances(config, served->kind);
  const size_t usual = instances > RONDO_SESSION_MAX_STREAMS ? RONDO_SESSION_MAX_STREAMS : instances;
  size_t streams;
  RONDO_TRY(rondo_triton_config_number(config, "streams", 1, RONDO_SESSION_MAX_STREAMS, usual, &streams));
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = (uint32_t)streams,
                                         .max_delay_us = (uint32_t)served->max_delay_us,
                                         .max_queue = served->most_in_flight + SPARE, .name = served->model->name};
  return rondo_session_create(served->device, &options, out);
}

/* The model's callbacks, which are called before each recording. So a recording ends early if nobody wants it. */
static rondo_status check_wanted(const rondo_triton_served *served) {
  if (!atomic_load(&served->choice.is_unwanted)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ABORTED, "model '%s' is not recorded, because it is unloaded",
                    served->model->name);
}

static rondo_status build(void *user, size_t rows, rondo_program *program) {
  const rondo_triton_served *served = user;
  const rondo_model_options *options = &served->model->source.options;
  RONDO_TRY(check_wanted(served));
  return options->build(options->user, rows, program);
}

static rondo_status build_sized(void *user, const rondo_model_size *size, rondo_program *program) {
  const rondo_triton_served *served = user;
  const rondo_model_options *options = &served->model->source.options;
  RONDO_TRY(check_wanted(served));
  return options->build_sized(options->user, size, program);
}

static rondo_status run_body(rondo_call *call, void *user) {
  const rondo_triton_served *served = user;
  const rondo_model_options *options = &served->model->source.options;
  RONDO_TRY(check_wanted(served));
  return options->body(call, options->user);
}

static void set_callbacks(const rondo_triton_served *served, rondo_model_options *options) {
  if (options->build != NULL) options->build = build;
  if (options->build_sized != NULL) options->build_sized = build_sized;
  if (options->body != NULL) options->body = run_body;
  options->user = (void *)(uintptr_t)served; /* which is only read */
}

static rondo_status record_model(const rondo_triton_served *served, const request_history *history,
                                 rondo_session *session) {
  const rondo_triton_model_state *model = served->model;
  rondo_model_options options = model->source.options;
  size_t max_sizes, evicts;
  RONDO_TRY(rondo_triton_config_number(&model->config, "max_sizes", 1, RONDO_SESSION_MAX_SIZES, options.max_sizes,
                                       &max_sizes));
  options.max_sizes = (uint32_t)max_sizes;
  RONDO_TRY(rondo_triton_config_number(&model->config, "evict_idle", 0, 1, options.evict_idle, &evicts));
  options.evict_idle = evicts == 1;
  set_callbacks(served, &options);
  if (history->rows.count > 0) {
    options.history = history->rows.items;
    options.history_count = history->rows.count;
    options.history_lengths = history->lengths.items; /* NULL without lengths */
  }
  RONDO_TRY(rondo_session_add_model(session, model->name, &options));
  return rondo_session_capture(session, model->name);
}

static rondo_status add_model(const rondo_triton_served *served, rondo_session *session) {
  request_history history = {.rows = {.count = 0}};
  rondo_status status = make_history(served, &history);
  if (status == RONDO_OK) status = record_model(served, &history, session);
  rondo_array_free(&served->allocator, &history.rows);
  rondo_array_free(&served->allocator, &history.lengths);
  return status;
}

rondo_status rondo_triton_recorded_make(const rondo_triton_served *served, rondo_triton_recorded **out) {
  rondo_triton_recorded *recorded;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(&served->allocator, 1, sizeof *recorded, &recorded));
  rondo_status status = create_session(served, &recorded->session);
  if (status == RONDO_OK) status = add_model(served, recorded->session);
  if (status == RONDO_OK)
    *out = recorded;
  else
    RONDO_THEN(status, rondo_triton_recorded_free(served, recorded));
  return status;
}

rondo_status rondo_triton_recorded_free(const rondo_triton_served *served, rondo_triton_recorded *recorded) {
  if (recorded == NULL) return RONDO_OK;
  const rondo_status status = rondo_session_destroy(recorded->session);
  rondo_release(&served->allocator, recorded, 1, sizeof *recorded);
  return status;
}

void rondo_triton_recorded_report(rondo_triton_served *served, rondo_triton_recorded *recorded) {
  rondo_triton_counts counts = {.info = {.struct_size = sizeof counts.info}, .size_choices = recorded->is_new_choice};
  pthread_mutex_lock(&served->lock);
  counts.padded = recorded->padded;
  pthread_mutex_unlock(&served->lock);
  if (rondo_session_get_model_info(recorded->session, served->model->name, &counts.info) == RONDO_OK)
    rondo_triton_metrics_report(&served->metrics, &counts, recorded == served->recorded, recorded->reported);
}
