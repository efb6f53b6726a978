/* SPDX-License-Identifier: MIT
 * The times of a model's graphs, and the dispatch tables made from them. Tables are made once the graphs are measured,
 * and renewed when samples of runs show that times have changed.
 *
 * A renewal copies what it needs, makes the tables without the lock, on the thread of an idle worker, and exchanges
 * them under the lock. A change of the model does not wait for a renewal; the new tables are then dropped. Dispatching
 * copies the entry under the lock, so tables may be replaced at any time. A session has one renewal at a time.
 *
 * A graph that dispatching never chooses would never get samples. So a trial occasionally runs a batch by that graph,
 * although several graphs, or an eager run, are estimated to be cheaper. The session must be otherwise idle. After the
 * first few trials of a graph, trials take at most 1 % of the time of the model's batches: the debt of a trial must be
 * paid off before the next one. The debt is the lower of the estimated and the actual time, because the estimate may be
 * wrong.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "session/serve/stream_worker.h"
#include "session/session_internal.h"
#include "session/sizing/model_times.h"

/* Several graphs, or an eager run, must be cheaper than one graph by this share, because measured times vary. */
#define DISPATCH_MARGIN 0.03
/* The pause after a renewal, relative to its duration: renewals take at most 1 % of a thread's time. */
enum { RENEWAL_PAUSE = 100 };

/* What tables are made from. */
typedef struct table_source {
  rondo_session_graph graphs[RONDO_SESSION_MAX_SIZES];
  size_t count;
  double eager_extra_us;
  bool is_whole; /* a failure of one of several graphs would leave the states that the others changed */
} table_source;

typedef struct table_set {
  rondo_dispatch_tables idle, loaded;
} table_set;

/* Making ----------------------------------------------------------------------------------------------------------- */

static rondo_dispatch_size table_size_of(const table_source *source, const rondo_session_graph *g, bool is_loaded,
                                         bool with_eager) {
  const double share_us = g->info.current_us * g->overlap;
  const double eager_us = g->info.current_eager_us * (is_loaded ? g->eager_overlap : 1);
  return (rondo_dispatch_size){.rows = g->info.rows,
                               .run_us = is_loaded ? share_us : g->info.current_us,
                               .share_us = share_us,
                               .eager_us = with_eager && eager_us > 0 ? eager_us + source->eager_extra_us : 0};
}

static rondo_status make_table(const rondo_allocator *allocator, const table_source *source, bool is_loaded,
                               bool with_eager, rondo_dispatch_table **out) {
  rondo_dispatch_size sizes[RONDO_SESSION_MAX_SIZES];
  for (size_t i = 0; i < source->count; i++)
    sizes[i] = table_size_of(source, &source->graphs[i], is_loaded, with_eager);
  const rondo_dispatch_input input = {
      .sizes = sizes, .count = source->count, .margin = DISPATCH_MARGIN, .is_whole = source->is_whole};
  return rondo_dispatch_table_make(allocator, &input, out);
}

static void free_tables(rondo_dispatch_tables *tables) {
  rondo_dispatch_table_free(tables->any);
  rondo_dispatch_table_free(tables->recorded);
  *tables = (rondo_dispatch_tables){.any = NULL};
}

static void free_table_set(table_set *tables) {
  free_tables(&tables->idle);
  free_tables(&tables->loaded);
}

static rondo_status make_table_pair(const rondo_allocator *allocator, const table_source *source, bool is_loaded,
                                    rondo_dispatch_tables *out) {
  RONDO_TRY(make_table(allocator, source, is_loaded, true, &out->any));
  return make_table(allocator, source, is_loaded, false, &out->recorded);
}

/* After a failure *out is empty. */
static rondo_status make_tables(const rondo_allocator *allocator, const table_source *source, table_set *out) {
  *out = (table_set){.idle = {.any = NULL}};
  rondo_status status = make_table_pair(allocator, source, false, &out->idle);
  if (status == RONDO_OK) status = make_table_pair(allocator, source, true, &out->loaded);
  if (status != RONDO_OK) free_table_set(out);
  return status;
}

static void read_source(const rondo_session_model *model, table_source *out) {
  assert(model->graphs.count <= RONDO_SESSION_MAX_SIZES);
  out->count = model->graphs.count;
  out->eager_extra_us = model->eager_extra_us;
  out->is_whole = model->changed.count > 0;
  memcpy(out->graphs, model->graphs.items, out->count * sizeof *out->graphs);
}

/* Under the lock. `tables` receives the old ones. */
static void exchange(rondo_session_model *model, table_set *tables) {
  const table_set old = {model->idle, model->loaded};
  model->idle = tables->idle;
  model->loaded = tables->loaded;
  *tables = old;
}

/* Takes the lock: other threads may read the tables. */
static void replace_tables(rondo_session_model *model, table_set tables) {
  pthread_mutex_lock(&model->session->lock);
  exchange(model, &tables);
  pthread_mutex_unlock(&model->session->lock);
  free_table_set(&tables);
}

void rondo_model_set_times(rondo_session_model *model, const double *recorded, const double *eager, bool are_given) {
  pthread_mutex_lock(&model->session->lock);
  model->has_given_times = are_given;
  for (size_t i = 0; i < model->graphs.count; i++) {
    rondo_session_graph *g = &model->graphs.items[i];
    g->info.run_us = g->info.current_us = recorded[i];
    g->info.eager_us = g->info.current_eager_us = eager == NULL ? 0 : eager[i];
    g->info.trials = 0;
    rondo_tracked_time_begin(&g->tracked, recorded[i]);
  }
  pthread_mutex_unlock(&model->session->lock);
}

rondo_status rondo_model_make_tables(rondo_session_model *model) {
  table_source source;
  table_set tables;
  read_source(model, &source);
  RONDO_TRY(make_tables(&model->session->allocator, &source, &tables));
  replace_tables(model, tables);
  return RONDO_OK;
}

void rondo_model_drop_tables(rondo_session_model *model) { replace_tables(model, (table_set){.idle = {.any = NULL}}); }

/* Renewing --------------------------------------------------------------------------------------------------------- */

void rondo_model_add_sample(rondo_session_model *model, size_t graph, uint64_t begin_ns, uint64_t end_ns) {
  assert(graph < model->graphs.count && begin_ns <= end_ns);
  if (model->has_given_times) return;
  rondo_tracked_time *kept = &model->graphs.items[graph].tracked;
  rondo_tracked_time_add(kept, (double)(end_ns - begin_ns) / 1e3);
  if (model->is_outdated || !rondo_tracked_time_has_changed(kept)) return;
  model->is_outdated = true;
  model->session->has_outdated = true;
}

void rondo_model_stop_renewal(rondo_session_model *model) {
  model->is_outdated = false;
  if (model->session->renewed == model) model->session->renewed = NULL;
}

/* Finds an outdated model whose pause is over. If there is none, lowers *inout_wait_ns to the time until a pause ends.
 */
static rondo_session_model *find_outdated(rondo_session *session, uint64_t *inout_wait_ns) {
  session->has_outdated = false;
  for (rondo_session_model *m = session->models; m != NULL; m = m->next) {
    if (!m->is_outdated) continue;
    const uint64_t now = rondo_clock_ns();
    if (now >= m->next_renewal_ns) return m;
    if (m->next_renewal_ns - now < *inout_wait_ns) *inout_wait_ns = m->next_renewal_ns - now;
  }
  return NULL;
}

/* Updates the source with the current estimates. */
static void update_source(table_source *source) {
  size_t rows[RONDO_SESSION_MAX_SIZES];
  double us[RONDO_SESSION_MAX_SIZES], eager_us[RONDO_SESSION_MAX_SIZES];
  rondo_tracked_time kept[RONDO_SESSION_MAX_SIZES];
  for (size_t i = 0; i < source->count; i++) {
    rows[i] = source->graphs[i].info.rows;
    eager_us[i] = source->graphs[i].info.eager_us;
    kept[i] = source->graphs[i].tracked;
  }
  rondo_tracked_times_find(rows, kept, source->count, us, eager_us);
  for (size_t i = 0; i < source->count; i++) {
    source->graphs[i].info.current_us = us[i];
    source->graphs[i].info.current_eager_us = eager_us[i];
  }
}

/* Under the lock. */
static void replace_renewed(rondo_session_model *model, const table_source *source, table_set *tables) {
  assert(source->count == model->graphs.count);
  exchange(model, tables);
  model->info.renewals++;
  for (size_t i = 0; i < source->count; i++) {
    rondo_session_graph *g = &model->graphs.items[i];
    g->info.current_us = source->graphs[i].info.current_us;
    g->info.current_eager_us = source->graphs[i].info.current_eager_us;
    g->tracked.dispatched_us = source->graphs[i].tracked.us;
  }
}

/* Called without the lock. The model may have changed when the new tables are made; then they are dropped. */
static void renew(rondo_session_model *model, rondo_session *session, table_source *source) {
  table_set tables;
  const uint64_t begin = rondo_clock_ns();
  update_source(source);
  const rondo_status status = make_tables(&session->allocator, source, &tables);
  const uint64_t end = rondo_clock_ns();
  rondo_status_ignore(status, "the old tables stay, and the renewal is tried again later");
  pthread_mutex_lock(&session->lock);
  if (session->renewed == model) {
    model->next_renewal_ns = end + (end - begin) * RENEWAL_PAUSE;
    if (status == RONDO_OK)
      replace_renewed(model, source, &tables);
    else
      model->is_outdated = true;
  }
  session->renewed = NULL;
  pthread_mutex_unlock(&session->lock);
  free_table_set(&tables);
}

bool rondo_session_renew(rondo_session *session, uint64_t *inout_wait_ns) {
  rondo_session_model *model = session->is_renewing ? NULL : find_outdated(session, inout_wait_ns);
  if (model == NULL) return false;
  table_source source;
  read_source(model, &source);
  model->is_outdated = false;
  session->is_renewing = true;
  session->renewed = model;
  pthread_mutex_unlock(&session->lock);
  renew(model, session, &source);
  pthread_mutex_lock(&session->lock);
  session->is_renewing = false;
  return true;
}

/* Trials ----------------------------------------------------------------------------------------------------------- */

#define TRIALS_SHARE 0.01
enum { FIRST_TRIALS = 3 };

void rondo_trial_account(const rondo_batch *batch, uint64_t run_ns) {
  const double us = (double)run_ns / 1e3;
  rondo_session_model *model = batch->model;
  if (batch->reason == RONDO_RUN_TRIAL)
    model->trial_debt_us = fmin(us, model->graphs.items[batch->entry.graphs[0]].tracked.us);
  else
    model->trial_debt_us = fmax(0, model->trial_debt_us - TRIALS_SHARE * us);
}

static bool has_alternative(const rondo_batch *batch) {
  if (batch->repeats > 0 || batch->model->has_given_times) return false;
  return batch->entry.mode == RONDO_RUN_SPLIT || batch->entry.mode == RONDO_RUN_EAGER;
}

/* The smallest graph that is large enough, which is also the fastest. NULL: there is none. */
static rondo_session_graph *find_graph(const rondo_session_model *model, size_t rows) {
  rondo_session_graph *found = NULL;
  for (size_t i = 0; i < model->graphs.count; i++) {
    rondo_session_graph *g = &model->graphs.items[i];
    if (g->info.rows >= rows && (found == NULL || g->info.rows < found->info.rows)) found = g;
  }
  return found;
}

static bool may_try(const rondo_session_model *model, const rondo_session_graph *g) {
  return g->info.trials < FIRST_TRIALS || model->trial_debt_us <= 0;
}

/* Charges the estimated time. The actual time replaces it later, unless the batch fails. */
static void begin_trial(rondo_batch *batch, rondo_session_graph *g) {
  rondo_session_model *model = batch->model;
  const uint8_t index = (uint8_t)(g - model->graphs.items);
  batch->entry = (rondo_dispatch_entry){
      .us = (float)g->info.current_us, .mode = RONDO_RUN_RECORDED, .count = 1, .graphs = {index}};
  batch->is_eager = false;
  batch->parts = 1;
  batch->reason = RONDO_RUN_TRIAL;
  model->trial_debt_us = g->tracked.us;
  model->info.trials++;
  g->info.trials++;
}

void rondo_batch_begin_trial(const rondo_stream_worker *worker, rondo_batch *batch) {
  if (!has_alternative(batch) || worker->session->waiting > 0 || !rondo_stream_worker_is_alone(worker)) return;
  rondo_session_graph *g = find_graph(batch->model, batch->rows);
  if (g != NULL && may_try(batch->model, g)) begin_trial(batch, g);
}
