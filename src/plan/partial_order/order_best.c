/* SPDX-License-Identifier: MIT
 * What changes is read and written under the lock, but for is_over, which is looked at often.
 */
#include "plan/partial_order/order_best.h"

#include <string.h>

void rondo_order_best_init(rondo_order_best *best, const rondo_plan_options *options, size_t *offsets, size_t count,
                           size_t bound) {
  *best = (rondo_order_best){.options = options, .offsets = offsets, .count = count, .peak = SIZE_MAX, .bound = bound};
  pthread_mutex_init(&best->lock, NULL); /* a default one cannot fail */
}

void rondo_order_best_destroy(rondo_order_best *best) { pthread_mutex_destroy(&best->lock); }

static void note_over(rondo_order_best *best) {
  const double enough = best->options->gap * (double)best->bound;
  if (best->peak == SIZE_MAX) return;
  const bool is_over =
      best->peak <= best->bound || best->peak <= best->options->capacity || (double)best->peak <= enough;
  if (is_over) atomic_store(&best->is_over, true);
}

void rondo_order_best_offer(rondo_order_best *best, const size_t *offsets, size_t peak, const char *method) {
  pthread_mutex_lock(&best->lock);
  if (peak < best->peak) {
    best->peak = peak;
    best->method = method;
    memcpy(best->offsets, offsets, best->count * sizeof *offsets);
    note_over(best);
  }
  pthread_mutex_unlock(&best->lock);
}

void rondo_order_best_raise_bound(rondo_order_best *best, size_t bound) {
  pthread_mutex_lock(&best->lock);
  if (bound > best->bound) best->bound = bound;
  best->bound_is_final = true;
  note_over(best);
  pthread_mutex_unlock(&best->lock);
}

void rondo_order_best_end(rondo_order_best *best) { atomic_store(&best->is_over, true); }

bool rondo_order_best_is_over(const rondo_order_best *best) {
  return atomic_load_explicit(&best->is_over, memory_order_relaxed);
}

rondo_order_standing rondo_order_best_read(rondo_order_best *best, size_t *offsets) {
  pthread_mutex_lock(&best->lock);
  const rondo_order_standing standing = {best->peak, best->bound, best->bound_is_final};
  if (best->peak != SIZE_MAX) memcpy(offsets, best->offsets, best->count * sizeof *offsets);
  pthread_mutex_unlock(&best->lock);
  return standing;
}
