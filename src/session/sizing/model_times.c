/* SPDX-License-Identifier: MIT
 * A model's times and the tables of decisions that follow from them: made when its graphs were measured, and anew when
 * samples of what ran say something else. Such a renewal copies what it needs, makes tables without the lock, on the
 * thread of a worker that has nothing to do, and exchanges them under it; a change of the model that begins meanwhile
 * does not wait, but has what is made thrown away. Whoever decides copies what a table says, under the lock, so that
 * tables may go at any time. There is one renewal at a time in a session.
 */
#include <string.h>

#include "base/clock.h"
#include "session/session_internal.h"
#include "session/sizing/model_times.h"

/* For so many times as long as a renewal took, the model has no other: renewals take 1 % of a thread's time at most. */
enum { RENEWAL_PAUSE = 100 };

/* What tables are made from. */
typedef struct table_source {
  rondo_session_graph graphs[RONDO_SESSION_MAX_SIZES];
  size_t count;
  double eager_extra_us;
} table_source;

typedef struct table_set {
  rondo_dispatch_tables idle, loaded;
} table_set;

/* Making ---------------------------------------------------------------------------------------------------------- */

static rondo_dispatch_size table_size_of(const table_source *source, const rondo_session_graph *g, bool is_loaded,
                                         bool with_eager) {
  const double share_us = g->current_us * g->overlap;
  const double unrecorded_us = g->current_unrecorded_us * (is_loaded ? g->eager_overlap : 1);
  return (rondo_dispatch_size){
      .rows = g->rows,
      .run_us = is_loaded ? share_us : g->current_us,
      .share_us = share_us,
      .unrecorded_us = with_eager && unrecorded_us > 0 ? unrecorded_us + source->eager_extra_us : 0};
}

static rondo_status make_table(const rondo_allocator *allocator, const table_source *source, bool is_loaded,
                               bool with_eager, rondo_dispatch_table **out) {
  rondo_dispatch_size sizes[RONDO_SESSION_MAX_SIZES];
  for (size_t i = 0; i < source->count; i++)
    sizes[i] = table_size_of(source, &source->graphs[i], is_loaded, with_eager);
  const rondo_dispatch_input input = {.sizes = sizes, .count = source->count, .margin = RONDO_DISPATCH_MARGIN};
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

/* Nothing is left after a failure. */
static rondo_status make_tables(const rondo_allocator *allocator, const table_source *source, table_set *out) {
  *out = (table_set){.idle = {.any = NULL}};
  rondo_status status = make_table_pair(allocator, source, false, &out->idle);
  if (status == RONDO_OK) status = make_table_pair(allocator, source, true, &out->loaded);
  if (status != RONDO_OK) free_table_set(out);
  return status;
}

static void read_source(const rondo_session_model *model, table_source *out) {
  out->count = model->graphs.count;
  out->eager_extra_us = model->eager_extra_us;
  memcpy(out->graphs, model->graphs.items, out->count * sizeof *out->graphs);
}

/* Under the lock; `pairs` is what the model had. */
static void exchange(rondo_session_model *model, table_set *tables) {
  const table_set old = {model->idle, model->loaded};
  model->idle = tables->idle;
  model->loaded = tables->loaded;
  *tables = old;
}

/* Others may ask meanwhile what they say. */
static void replace_tables(rondo_session_model *model, table_set tables) {
  pthread_mutex_lock(&model->session->lock);
  exchange(model, &tables);
  pthread_mutex_unlock(&model->session->lock);
  free_table_set(&tables);
}

void rondo_model_set_times(rondo_session_model *model, const double *recorded, const double *unrecorded,
                           bool are_given) {
  pthread_mutex_lock(&model->session->lock);
  model->has_given_times = are_given;
  for (size_t i = 0; i < model->graphs.count; i++) {
    rondo_session_graph *g = &model->graphs.items[i];
    g->run_us = g->current_us = recorded[i];
    g->unrecorded_us = g->current_unrecorded_us = unrecorded == NULL ? 0 : unrecorded[i];
    g->trials = 0;
    rondo_tracked_time_begin(&g->kept, recorded[i]);
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

/* Renewing -------------------------------------------------------------------------------------------------------- */

void rondo_model_add_sample(rondo_session_model *model, size_t graph, uint64_t begin_ns, uint64_t end_ns) {
  if (model->has_given_times) return;
  rondo_tracked_time *kept = &model->graphs.items[graph].kept;
  rondo_tracked_time_add(kept, (double)(end_ns - begin_ns) / 1e3);
  if (model->is_outdated || !rondo_tracked_time_has_changed(kept)) return;
  model->is_outdated = true;
  model->session->has_outdated = true;
}

void rondo_model_stop_renewal(rondo_session_model *model) {
  model->is_outdated = false;
  if (model->session->renewed == model) model->session->renewed = NULL;
}

/* One whose pause is over; NULL: *inout_wait_ns is no longer than until then. */
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

/* With the times to go by. */
static void update_source(table_source *source) {
  size_t rows[RONDO_SESSION_MAX_SIZES];
  double us[RONDO_SESSION_MAX_SIZES], unrecorded_us[RONDO_SESSION_MAX_SIZES];
  rondo_tracked_time kept[RONDO_SESSION_MAX_SIZES];
  for (size_t i = 0; i < source->count; i++) {
    rows[i] = source->graphs[i].rows;
    unrecorded_us[i] = source->graphs[i].unrecorded_us;
    kept[i] = source->graphs[i].kept;
  }
  rondo_tracked_times_find(rows, kept, source->count, us, unrecorded_us);
  for (size_t i = 0; i < source->count; i++) {
    source->graphs[i].current_us = us[i];
    source->graphs[i].current_unrecorded_us = unrecorded_us[i];
  }
}

/* Under the lock. */
static void replace_renewed(rondo_session_model *model, const table_source *source, table_set *tables) {
  exchange(model, tables);
  model->info.renewals++;
  for (size_t i = 0; i < source->count; i++) {
    rondo_session_graph *g = &model->graphs.items[i];
    g->current_us = source->graphs[i].current_us;
    g->current_unrecorded_us = source->graphs[i].current_unrecorded_us;
    g->kept.dispatched_us = source->graphs[i].kept.us;
  }
}

/* Without the lock, but at its end; the new tables may be wanted no more by then. */
static void renew(rondo_session_model *model, rondo_session *session, table_source *source) {
  table_set tables;
  const uint64_t begin = rondo_clock_ns();
  update_source(source);
  const rondo_status status = make_tables(&session->allocator, source, &tables);
  const uint64_t end = rondo_clock_ns();
  rondo_status_ignore(status, "the tables that there are stay, and are made anew later");
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
