/* SPDX-License-Identifier: MIT
 * How long a request waits: for other requests (max_delay_us), or until a running worker finishes, but never longer
 * than half the time to its deadline.
 *
 * The possible ready times of a request are known when it arrives, so they are computed once and stored in a search
 * tree. Which of them applies depends on the other requests and the workers. It is the same for all requests of a model
 * in the same mode, and is determined at each search.
 */
#include <assert.h>

#include "session/serve/batch_delay.h"
#include "session/serve/cache_slots.h"

#define WORTH_WAITING 1.5 /* relative to the lowest cost of a row in any graph */
enum { MIN_RUNNING_WORKERS = 3 };

static rondo_slot *slot_of(rondo_waiting_node *node) {
  return node == NULL ? NULL : (rondo_slot *)(void *)((char *)node - offsetof(rondo_slot, waiting));
}

const rondo_dispatch_table *rondo_model_dispatch_table(const rondo_session_model *model, rondo_run_mode mode,
                                                       bool is_loaded) {
  const rondo_dispatch_tables *tables = is_loaded ? &model->loaded : &model->idle;
  if (mode == RONDO_RUN_EAGER) return NULL;
  return mode == RONDO_RUN_RECORDED || model->session->options.strict ? tables->recorded : tables->any;
}

size_t rondo_session_count_running(const rondo_session *session) {
  size_t count = 0;
  for (uint32_t i = 0; i < session->options.streams; i++) count += session->workers[i].is_running;
  return count;
}

/* Whether requests wait for others. They do not once they fill a graph, or once all open sequences wait. */
static bool is_delayed(const rondo_session_model *model, rondo_run_mode mode) {
  const rondo_dispatch_table *table = rondo_model_dispatch_table(model, mode, false);
  const rondo_cache_slots *slots = model->head->slots;
  if (slots != NULL && model->waiting_rows >= slots->open) return false;
  return !model->session->is_draining && table != NULL && model->waiting_rows < table->largest_rows;
}

/* Whether a few rows wait until a worker finishes. With three running workers, the device is busy while one of them
 * copies, so one more worker gains nothing. The rows that arrive until a worker finishes then run together. */
static bool waits_for_worker(const rondo_session_model *model, rondo_run_mode mode) {
  const rondo_dispatch_table *loaded = rondo_model_dispatch_table(model, mode, true);
  if (loaded == NULL || rondo_session_count_running(model->session) < MIN_RUNNING_WORKERS) return false;
  const size_t waiting = model->waiting_rows;
  const size_t rows = waiting < loaded->largest_rows ? waiting : loaded->largest_rows;
  if (loaded->entries[rows].mode == RONDO_RUN_EAGER) return false;
  return rondo_dispatch_table_row_us(loaded, rows) > loaded->least_row_us * WORTH_WAITING;
}

/* A request that runs alone does not wait. */
static rondo_waiting_time waiting_time_of(const rondo_session_model *model, rondo_run_mode mode) {
  if (model->session->options.max_batch == 1) return RONDO_WAITING_NONE;
  if (waits_for_worker(model, mode)) return is_delayed(model, mode) ? RONDO_WAITING_BOTH : RONDO_WAITING_WORKER;
  return is_delayed(model, mode) ? RONDO_WAITING_DELAY : RONDO_WAITING_NONE;
}

/* A request waits for a worker at most as long as it would run. */
static uint64_t worker_wait_of(const rondo_slot *slot) {
  const rondo_dispatch_table *idle = rondo_model_dispatch_table(slot->model, slot->mode, false);
  const rondo_dispatch_table *loaded = rondo_model_dispatch_table(slot->model, slot->mode, true);
  if (loaded == NULL || slot->rows > loaded->largest_rows) return 0;
  return (uint64_t)((double)idle->entries[slot->rows].us * 1e3);
}

static uint64_t min_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

void rondo_batch_delay_add(rondo_slot *slot) {
  const uint64_t half = (slot->deadline_ns - slot->accepted_ns) / 2;
  const uint64_t delay = min_of((uint64_t)slot->session->options.max_delay_us * 1000, half);
  const uint64_t worker_wait = min_of(worker_wait_of(slot), half);
  assert(slot->mode < RONDO_RUN_CAPTURED && slot->rows > 0);
  uint64_t *times = slot->waiting.times;
  times[RONDO_WAITING_NONE] = 0;
  times[RONDO_WAITING_DELAY] = slot->accepted_ns + delay;
  times[RONDO_WAITING_WORKER] = slot->accepted_ns + worker_wait;
  times[RONDO_WAITING_BOTH] = slot->accepted_ns + (delay > worker_wait ? delay : worker_wait);
  times[RONDO_WAITING_DEADLINE] = slot->deadline_ns;
  slot->waiting.order = ++slot->session->appended;
  rondo_waiting_tree_append(&slot->model->waiting_by_mode[slot->mode], &slot->waiting);
}

void rondo_batch_delay_remove(rondo_slot *slot) {
  rondo_waiting_tree_remove(&slot->model->waiting_by_mode[slot->mode], &slot->waiting);
}

/* Modes that a request can have. */
static const rondo_run_mode modes[] = {RONDO_RUN_AUTO, RONDO_RUN_RECORDED, RONDO_RUN_EAGER};
enum { MODES = sizeof modes / sizeof modes[0] };

static void add_model_times(const rondo_session_model *model, rondo_run_mode mode, uint64_t now, rondo_slot **oldest,
                            uint64_t *next) {
  const rondo_waiting_tree *waiting = &model->waiting_by_mode[mode];
  if (waiting->root == NULL) return;
  const rondo_waiting_time time = waiting_time_of(model, mode);
  rondo_slot *first = slot_of(rondo_waiting_tree_first(waiting, time, now));
  if (first != NULL && (*oldest == NULL || first->waiting.order < (*oldest)->waiting.order)) *oldest = first;
  *next = min_of(*next, rondo_waiting_tree_earliest(waiting, time));
}

rondo_slot *rondo_batch_delay_find_ready(const rondo_session *session, uint64_t now, uint64_t *out_wait_ns) {
  rondo_slot *oldest = NULL;
  uint64_t next = UINT64_MAX;
  for (const rondo_session_model *m = session->models; m != NULL; m = m->next)
    for (size_t i = 0; i < MODES && m->waiting.head != NULL; i++) add_model_times(m, modes[i], now, &oldest, &next);
  *out_wait_ns = next == UINT64_MAX ? UINT64_MAX : next > now ? next - now : 0;
  return oldest;
}

rondo_slot *rondo_batch_delay_find_expired(const rondo_session_model *model, uint64_t now) {
  rondo_waiting_node *late = NULL;
  for (size_t i = 0; i < MODES && late == NULL; i++)
    late = rondo_waiting_tree_first(&model->waiting_by_mode[modes[i]], RONDO_WAITING_DEADLINE, now);
  return slot_of(late);
}

uint64_t rondo_batch_delay_next_deadline(const rondo_session *session) {
  uint64_t next = UINT64_MAX;
  for (const rondo_session_model *m = session->models; m != NULL; m = m->next)
    for (size_t i = 0; i < MODES; i++)
      next = min_of(next, rondo_waiting_tree_earliest(&m->waiting_by_mode[modes[i]], RONDO_WAITING_DEADLINE));
  return next;
}
