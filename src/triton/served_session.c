/* SPDX-License-Identifier: MIT
 * Starts and stops what a model has on a device: the device, a recorded session, what is counted, and a thread that
 * watches.
 */
#define _POSIX_C_SOURCE 200809L
#include "triton/served_session.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "triton/execution.h"
#include "triton/recorded_session.h"
#include "triton/session_watch.h"
#include "triton/sizes/size_choice.h"

enum {
  DEFAULT_QUEUE = 256,
  MOST_QUEUE = 65536,
  MOST_DELAY_US = 10000000,
  DEFAULT_IDLE_MS = 600000,
  MOST_IDLE_MS = 1000000000
};

/* The session ------------------------------------------------------------------------------------------------------ */

/* Where no sequence is evicted, abandoned ones would keep their slots. */
static rondo_status read_max_idle(const rondo_triton_model_state *model, size_t *out_ms) {
  size_t evicts;
  RONDO_TRY(rondo_triton_config_number(&model->config, "evict_idle", 0, 1, model->source.options.evict_idle, &evicts));
  return rondo_triton_config_number(&model->config, "max_idle_ms", 0, MOST_IDLE_MS, evicts == 1 ? 0 : DEFAULT_IDLE_MS,
                                    out_ms);
}

static rondo_status name_source(rondo_triton_served *served) {
  static const char ending[] = ".source";
  const char *name = served->model->name;
  const size_t length = strlen(name);
  RONDO_TRY(rondo_allocate_items(&served->allocator, length + sizeof ending, 1, &served->source_name));
  memcpy(served->source_name, name, length);
  memcpy(served->source_name + length, ending, sizeof ending);
  return RONDO_OK;
}

/* A session may have fewer slots than the model asks for. */
static rondo_status make_sequences(rondo_triton_served *served) {
  const rondo_triton_model_state *model = served->model;
  rondo_model_info info = {.struct_size = sizeof info};
  size_t max_idle_ms;
  if (model->source.options.slots == 0) return RONDO_OK;
  RONDO_TRY(read_max_idle(model, &max_idle_ms));
  if (model->source.options.source != NULL) RONDO_TRY(name_source(served));
  RONDO_TRY(rondo_session_get_model_info(served->recorded->session, model->name, &info));
  return rondo_triton_sequences_reserve(&served->sequences, (size_t)info.slots, max_idle_ms);
}

static rondo_status start(rondo_triton_served *served) {
  rondo_triton_backend *backend = served->model->backend;
  size_t queue;
  RONDO_TRY(rondo_triton_devices_open(&backend->devices, served->device_name, &served->device));
  RONDO_TRY(rondo_triton_config_number(&served->model->config, "max_queue", 1, MOST_QUEUE, DEFAULT_QUEUE, &queue));
  served->most_in_flight = (uint32_t)queue;
  RONDO_TRY(
      rondo_triton_config_number(&served->model->config, "max_delay_us", 0, MOST_DELAY_US, 0, &served->max_delay_us));
  if (served->model->source.options.build_sized == NULL)
    RONDO_TRY(rondo_triton_history_open(&backend->histories, served->model->name, &served->history));
  RONDO_TRY(rondo_triton_sizes_init(served));
  RONDO_TRY(rondo_triton_recorded_make(served, &served->recorded));
  RONDO_TRY(make_sequences(served));
  rondo_triton_metrics_open(&backend->metrics, served->model->name, served->model->version, served->device_name,
                            &served->metrics);
  return rondo_triton_watch_start(served);
}

static void keep(rondo_status *kept, rondo_status status) { RONDO_THEN(*kept, status); }

static rondo_status stop(rondo_triton_served *served) {
  rondo_status status = RONDO_OK;
  rondo_triton_watch_stop(served);
  keep(&status, rondo_triton_sizes_stop(served));
  rondo_triton_metrics_close(&served->metrics);
  keep(&status, rondo_triton_recorded_free(served, served->recorded));
  if (served->device != NULL)
    keep(&status, rondo_triton_devices_close(&served->model->backend->devices, served->device));
  rondo_triton_history_close(&served->model->backend->histories, served->history);
  rondo_triton_free_flights(served);
  rondo_triton_sequences_free(&served->sequences);
  rondo_release_text(&served->allocator, served->source_name);
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
  served->kind = kind;
  (void)snprintf(served->device_name, sizeof served->device_name, "%s", device);
  pthread_mutex_init(&served->lock, NULL);
  rondo_triton_sequences_init(&allocator, &served->sequences);
  pthread_cond_init(&served->change, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&served->wake, &clock);
  pthread_condattr_destroy(&clock);
  *out = served;
  return RONDO_OK;
}

/* Instances -------------------------------------------------------------------------------------------------------- */

/* Under the model's lock. */
static void unlink_session(rondo_triton_model_state *model, const rondo_triton_served *served) {
  rondo_triton_served **at = &model->sessions;
  while (*at != served) at = &(*at)->next;
  *at = served->next;
}

/* Under the model's lock, which is released while the model is recorded. */
static rondo_status open_first(rondo_triton_model_state *model, const char *device, const char *kind,
                               rondo_triton_served **out) {
  rondo_triton_served *served;
  RONDO_TRY(make(model, device, kind, &served));
  served->is_opening = true;
  served->instances = 1;
  served->next = model->sessions;
  model->sessions = served;
  pthread_mutex_unlock(&model->lock);
  rondo_status status = start(served);
  pthread_mutex_lock(&model->lock);
  served->is_opening = false;
  pthread_cond_broadcast(&model->opened);
  if (status == RONDO_OK) {
    *out = served;
    return RONDO_OK;
  }
  unlink_session(model, served);
  pthread_mutex_unlock(&model->lock);
  RONDO_THEN(status, stop(served));
  pthread_mutex_lock(&model->lock);
  return status;
}

static rondo_triton_served *find_session(const rondo_triton_model_state *model, const char *device) {
  rondo_triton_served *at = model->sessions;
  while (at != NULL && strcmp(at->device_name, device) != 0) at = at->next;
  return at;
}

/* Under the model's lock, which is released meanwhile. If the first instance on the device fails, those that have
 * waited for it try it themselves. */
static rondo_status open_session(rondo_triton_model_state *model, const char *device, const char *kind,
                                 rondo_triton_served **out) {
  for (;;) {
    rondo_triton_served *served = find_session(model, device);
    if (served == NULL) return open_first(model, device, kind, out);
    if (!served->is_opening) {
      served->instances++;
      *out = served;
      return RONDO_OK;
    }
    pthread_cond_wait(&model->opened, &model->lock);
  }
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
  if (is_last) unlink_session(model, served);
  pthread_mutex_unlock(&model->lock);
  return is_last ? stop(served) : RONDO_OK;
}
