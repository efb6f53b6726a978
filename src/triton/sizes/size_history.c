/* SPDX-License-Identifier: MIT
 * Counting of rows, in the manner of a histogram with logarithmic steps.
 */
#include "triton/sizes/size_history.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

enum { EXACT_BITS = 8, STEPS = 8 };
_Static_assert(1 << EXACT_BITS == RONDO_TRITON_EXACT_ROWS, "the steps begin after the exact rows");

/* Histories -------------------------------------------------------------------------------------------------------- */

void rondo_triton_histories_init(const rondo_allocator *allocator, rondo_triton_histories *out) {
  *out = (rondo_triton_histories){.allocator = *allocator};
  pthread_mutex_init(&out->lock, NULL);
}

static void free_history(const rondo_allocator *allocator, rondo_triton_history *history) {
  assert(history->users == 0);
  rondo_release_text(allocator, history->model);
  pthread_mutex_destroy(&history->lock);
  rondo_release(allocator, history, 1, sizeof *history);
}

void rondo_triton_histories_free(rondo_triton_histories *histories) {
  for (size_t i = 0; i < histories->items.count; i++) free_history(&histories->allocator, histories->items.items[i]);
  rondo_array_free(&histories->allocator, &histories->items);
  pthread_mutex_destroy(&histories->lock);
}

/* Forgets the history that was not used for the longest time. */
static rondo_status forget_one(rondo_triton_histories *histories) {
  size_t oldest = histories->items.count;
  for (size_t i = 0; i < histories->items.count; i++) {
    const rondo_triton_history *history = histories->items.items[i];
    if (history->users == 0 &&
        (oldest == histories->items.count || history->used < histories->items.items[oldest]->used))
      oldest = i;
  }
  if (oldest == histories->items.count)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE, "%d models are loaded, which is the limit: unload one",
                      RONDO_TRITON_MOST_HISTORIES);
  free_history(&histories->allocator, histories->items.items[oldest]);
  rondo_array_remove(&histories->items, oldest);
  return RONDO_OK;
}

static rondo_status make(rondo_triton_histories *histories, const char *model, rondo_triton_history **out) {
  rondo_triton_history *history;
  if (histories->items.count >= RONDO_TRITON_MOST_HISTORIES) RONDO_TRY(forget_one(histories));
  RONDO_TRY(rondo_array_reserve(&histories->allocator, &histories->items, histories->items.count + 1));
  RONDO_TRY(rondo_allocate_items(&histories->allocator, 1, sizeof *history, &history));
  pthread_mutex_init(&history->lock, NULL);
  const rondo_status status = rondo_allocate_text(&histories->allocator, model, &history->model);
  if (status != RONDO_OK) {
    free_history(&histories->allocator, history);
    return status;
  }
  *out = history;
  return rondo_array_push(&histories->allocator, &histories->items, out);
}

static rondo_status find_or_make(rondo_triton_histories *histories, const char *model, rondo_triton_history **out) {
  for (size_t i = 0; i < histories->items.count; i++) {
    *out = histories->items.items[i];
    if (strcmp((*out)->model, model) == 0) return RONDO_OK;
  }
  *out = NULL;
  return make(histories, model, out);
}

rondo_status rondo_triton_history_open(rondo_triton_histories *histories, const char *model,
                                       rondo_triton_history **out) {
  pthread_mutex_lock(&histories->lock);
  const rondo_status status = find_or_make(histories, model, out);
  if (status == RONDO_OK) {
    (*out)->users++;
    (*out)->used = ++histories->uses;
  }
  pthread_mutex_unlock(&histories->lock);
  return status;
}

void rondo_triton_history_close(rondo_triton_histories *histories, rondo_triton_history *history) {
  if (history == NULL) return;
  pthread_mutex_lock(&histories->lock);
  assert(history->users > 0);
  history->users--;
  pthread_mutex_unlock(&histories->lock);
}

/* Counts ----------------------------------------------------------------------------------------------------------- */

/* Of rows from 2^k + 1 to 2^(k+1), each eighth has a count. */
static size_t index_of(size_t rows) {
  size_t octave = EXACT_BITS;
  if (rows <= RONDO_TRITON_EXACT_ROWS) return rows;
  while (octave < EXACT_BITS + 15 && rows - 1 >= (size_t)2 << octave) octave++;
  const size_t first = (size_t)1 << octave, step = (rows - 1 - first) / (first / STEPS);
  return RONDO_TRITON_EXACT_ROWS + 1 + (octave - EXACT_BITS) * STEPS + (step < STEPS ? step : STEPS - 1);
}

static size_t rows_of(size_t index) {
  if (index <= RONDO_TRITON_EXACT_ROWS) return index;
  const size_t above = index - RONDO_TRITON_EXACT_ROWS - 1, first = (size_t)1 << (EXACT_BITS + above / STEPS);
  return first + (above % STEPS + 1) * (first / STEPS);
}

static void halve(rondo_triton_history *history) {
  history->total = 0;
  for (size_t i = 0; i < RONDO_TRITON_HISTORY_COUNTS; i++) history->total += history->counts[i] /= 2;
}

void rondo_triton_history_count(rondo_triton_history *history, size_t rows) {
  pthread_mutex_lock(&history->lock);
  history->came++;
  history->counts[index_of(rows)]++;
  if (++history->total == RONDO_TRITON_MOST_COUNTED) halve(history);
  pthread_mutex_unlock(&history->lock);
}

uint64_t rondo_triton_history_came(rondo_triton_history *history) {
  pthread_mutex_lock(&history->lock);
  const uint64_t came = history->came;
  pthread_mutex_unlock(&history->lock);
  return came;
}

size_t rondo_triton_history_demands(rondo_triton_history *history, rondo_size_demand out[RONDO_TRITON_HISTORY_COUNTS]) {
  size_t count = 0;
  pthread_mutex_lock(&history->lock);
  for (size_t i = 0; i < RONDO_TRITON_HISTORY_COUNTS; i++)
    if (history->counts[i] > 0) out[count++] = (rondo_size_demand){.rows = rows_of(i), .requests = history->counts[i]};
  pthread_mutex_unlock(&history->lock);
  return count;
}

static rondo_status list(const rondo_allocator *allocator, const rondo_triton_history *history,
                         rondo_triton_row_list *out) {
  RONDO_TRY(rondo_array_reserve(allocator, out, out->count + history->total));
  for (size_t i = 0; i < RONDO_TRITON_HISTORY_COUNTS; i++) {
    const size_t rows = rows_of(i);
    for (uint32_t k = 0; k < history->counts[i]; k++) RONDO_TRY(rondo_array_push(allocator, out, &rows));
  }
  return RONDO_OK;
}

rondo_status rondo_triton_history_list(const rondo_allocator *allocator, rondo_triton_history *history,
                                       rondo_triton_row_list *out) {
  pthread_mutex_lock(&history->lock);
  const rondo_status status = list(allocator, history, out);
  pthread_mutex_unlock(&history->lock);
  return status;
}
