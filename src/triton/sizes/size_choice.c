/* SPDX-License-Identifier: MIT
 * Sizes are chosen again when their regret has grown by more than the bound since the last choice, whose own regret may
 * not be 0: a session has few sizes, some of them for several requests together. Before that, many requests must have
 * come, twice as many each time, so that choices become rare however the requests vary.
 */
#include "triton/sizes/size_choice.h"

#include <assert.h>

#include <rondo/memory.h>

#include "base/clock.h"
#include "base/error.h"
#include "triton/recorded_session.h"
#include "triton/server_functions.h"
#include "triton/sizes/size_regret.h"

enum { FIRST_NEEDED = 256, MOST_NEEDED = RONDO_TRITON_MOST_COUNTED, CHECK_MS = 1000 };
enum { MOST_REGRET = 1000, DEFAULT_SIZES = 16 };
_Static_assert((int)RONDO_TRITON_HISTORY_COUNTS <= (int)RONDO_TRITON_MOST_DEMANDS, "each count is a demand");

static const char *why_fixed(const rondo_triton_served *served) {
  if (served->history == NULL) return "its lengths";
  if (rondo_triton_config_parameter(&served->model->config, "history") != NULL)
    return "the parameter 'history' of its configuration";
  return served->model->source.changes_states ? "states that it changes, which would begin again" : NULL;
}

rondo_status rondo_triton_sizes_init(rondo_triton_served *served) {
  const rondo_triton_config *config = &served->model->config;
  const char *fixed_by = why_fixed(served);
  size_t percent, takes_requests;
  RONDO_TRY(rondo_triton_config_number(config, "max_regret", 0, MOST_REGRET, 0, &percent));
  RONDO_TRY(rondo_triton_config_number(config, "allow_choose_sizes", 0, 1, 0, &takes_requests));
  if (percent > 0 && fixed_by != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "parameter 'max_regret' of the configuration is '%zu', but the sizes of model '%s' are fixed, by "
                      "%s: leave it out",
                      percent, served->model->name, fixed_by);
  served->choice =
      (rondo_triton_size_choice){.fixed_by = fixed_by,
                                 .takes_requests = takes_requests == 1,
                                 .bound = (double)percent / 100,
                                 .came = served->history == NULL ? 0 : rondo_triton_history_came(served->history),
                                 .needed = FIRST_NEEDED};
  return RONDO_OK;
}

void rondo_triton_sizes_want(rondo_triton_served *served) {
  assert(served->choice.fixed_by == NULL);
  served->choice.is_wanted = true;
  pthread_cond_signal(&served->wake);
}

/* Regret ----------------------------------------------------------------------------------------------------------- */

static size_t list_times(const rondo_triton_served *served, const rondo_triton_recorded *recorded,
                         rondo_triton_size_time *out) {
  rondo_model_graph graph = {.struct_size = sizeof graph};
  size_t count = 0;
  while (count < RONDO_SESSION_MAX_SIZES &&
         rondo_session_get_graph(recorded->session, served->model->name, count, &graph) == RONDO_OK)
    out[count++] = (rondo_triton_size_time){.rows = graph.rows, .us = graph.current_us};
  return count;
}

/* What is not known counts as 0: the sizes stay. */
static double regret_of(const rondo_triton_served *served, const rondo_triton_recorded *recorded) {
  rondo_triton_size_time times[RONDO_SESSION_MAX_SIZES];
  rondo_size_demand demands[RONDO_TRITON_HISTORY_COUNTS];
  size_t most = served->model->source.options.max_sizes;
  double regret = 0;
  if (rondo_triton_config_number(&served->model->config, "max_sizes", 1, RONDO_SESSION_MAX_SIZES, most, &most) !=
          RONDO_OK ||
      most == 0)
    most = DEFAULT_SIZES;
  const size_t count = list_times(served, recorded, times);
  const size_t demand_count = rondo_triton_history_demands(served->history, demands);
  if (rondo_triton_size_regret(times, count, demands, demand_count, (uint32_t)most, &regret) != RONDO_OK) return 0;
  return regret;
}

/* The thread that records ------------------------------------------------------------------------------------------ */

static void *record(void *argument) {
  rondo_triton_served *served = argument;
  rondo_triton_recorded *made;
  const rondo_status status = rondo_triton_recorded_make(served, &made);
  if (status != RONDO_OK && !atomic_load(&served->choice.is_unwanted))
    rondo_triton_log(TRITON_LOG_WARN, "model '%s': new sizes were not recorded, so the old ones stay: %s",
                     served->model->name, rondo_last_error()->message);
  const double left = made == NULL ? 0 : regret_of(served, made);
  pthread_mutex_lock(&served->lock);
  served->choice.made = made;
  if (made != NULL) served->choice.regret_left = left;
  served->choice.is_done = true;
  pthread_cond_signal(&served->wake);
  pthread_mutex_unlock(&served->lock);
  return NULL;
}

/* The watching thread ---------------------------------------------------------------------------------------------- */

/* Under the lock, which is released meanwhile. */
static bool is_due(rondo_triton_served *served) {
  rondo_triton_size_choice *choice = &served->choice;
  const uint64_t now = rondo_clock_ns();
  if (choice->is_wanted) return true;
  if (choice->bound == 0 || now - choice->checked_ns < CHECK_MS * UINT64_C(1000000) ||
      rondo_triton_history_came(served->history) - choice->came < choice->needed)
    return false;
  choice->checked_ns = now;
  pthread_mutex_unlock(&served->lock);
  const bool is_exceeded = regret_of(served, served->recorded) > choice->regret_left + choice->bound;
  pthread_mutex_lock(&served->lock);
  return is_exceeded || choice->is_wanted;
}

/* Under the lock, which is released meanwhile. */
static void begin(rondo_triton_served *served) {
  rondo_triton_size_choice *choice = &served->choice;
  if (!choice->is_wanted && choice->needed < MOST_NEEDED) choice->needed *= 2;
  choice->is_wanted = choice->is_done = false;
  choice->came = rondo_triton_history_came(served->history);
  pthread_mutex_unlock(&served->lock);
  const rondo_status status = rondo_thread_start(&choice->thread, "rondo-sizes", record, served);
  if (status != RONDO_OK)
    rondo_triton_log(TRITON_LOG_WARN, "model '%s': sizes are not chosen again: %s", served->model->name,
                     rondo_last_error()->message);
  pthread_mutex_lock(&served->lock);
  choice->is_running = status == RONDO_OK;
}

/* Under the lock, which is released meanwhile. */
static void exchange(rondo_triton_served *served) {
  rondo_triton_size_choice *choice = &served->choice;
  pthread_mutex_unlock(&served->lock);
  rondo_thread_join(choice->thread);
  pthread_mutex_lock(&served->lock);
  choice->is_running = choice->is_done = false;
  if (choice->made == NULL) return;
  choice->made->is_new_choice = true;
  served->retired = served->recorded;
  served->recorded = choice->made;
  choice->made = NULL;
}

/* Returns the memory that the device keeps, too: it may never be needed again. */
static rondo_status free_recorded(const rondo_triton_served *served, rondo_triton_recorded *recorded) {
  rondo_status status = rondo_triton_recorded_free(served, recorded);
  RONDO_THEN(status, rondo_memory_trim(served->device));
  return status;
}

/* Under the lock, which is released meanwhile. */
static void free_retired(rondo_triton_served *served) {
  rondo_triton_recorded *retired = served->retired;
  served->retired = NULL;
  pthread_mutex_unlock(&served->lock);
  rondo_triton_recorded_report(served, retired);
  if (free_recorded(served, retired) != RONDO_OK)
    rondo_triton_log(TRITON_LOG_ERROR, "model '%s': %s", served->model->name, rondo_last_error()->message);
  pthread_mutex_lock(&served->lock);
}

static bool has_answered(const rondo_triton_recorded *retired) { return retired != NULL && retired->users == 0; }

void rondo_triton_sizes_renew(rondo_triton_served *served) {
  const rondo_triton_size_choice *choice = &served->choice;
  if (choice->fixed_by != NULL) return;
  if (choice->is_done) exchange(served);
  if (has_answered(served->retired)) free_retired(served);
  if (!choice->is_running && served->retired == NULL && is_due(served)) begin(served);
}

bool rondo_triton_sizes_has_work(const rondo_triton_served *served) {
  const rondo_triton_size_choice *choice = &served->choice;
  return choice->is_done || has_answered(served->retired) ||
         (choice->is_wanted && !choice->is_running && served->retired == NULL);
}

rondo_status rondo_triton_sizes_stop(rondo_triton_served *served) {
  rondo_triton_size_choice *choice = &served->choice;
  atomic_store(&choice->is_unwanted, true);
  if (choice->is_running) rondo_thread_join(choice->thread);
  choice->is_running = false;
  rondo_status status = rondo_triton_recorded_free(served, choice->made);
  RONDO_THEN(status, rondo_triton_recorded_free(served, served->retired));
  choice->made = served->retired = NULL;
  return status;
}
