/* SPDX-License-Identifier: MIT
 * All fields but the first three are read and written under the lock.
 */
#include "plan/order_best.h"

#include <string.h>

void rondo_order_best_init(rondo_order_best *best, const rondo_plan_options *options, size_t *offsets, size_t count,
                           size_t bound) {
  *best = (rondo_order_best){.options = options, .offsets = offsets, .count = count, .peak = SIZE_MAX, .bound = bound};
  pthread_mutex_init(&best->lock, NULL); /* a default one cannot fail */
}

void rondo_order_best_destroy(rondo_order_best *best) { pthread_mutex_destroy(&best->lock); }

void rondo_order_best_offer(rondo_order_best *best, const size_t *offsets, size_t peak, const char *method) {
  pthread_mutex_lock(&best->lock);
  if (peak < best->peak) {
    best->peak = peak;
    best->method = method;
    memcpy(best->offsets, offsets, best->count * sizeof *offsets);
  }
  pthread_mutex_unlock(&best->lock);
}

void rondo_order_best_raise_bound(rondo_order_best *best, size_t bound) {
  pthread_mutex_lock(&best->lock);
  if (bound > best->bound) best->bound = bound;
  pthread_mutex_unlock(&best->lock);
}

static bool is_good_enough(const rondo_order_best *best) {
  if (best->peak == SIZE_MAX) return false;
  if (best->peak <= best->bound || best->peak <= best->options->capacity) return true;
  return (double)best->peak <= best->options->gap * (double)best->bound;
}

bool rondo_order_best_read(rondo_order_best *best, size_t *offsets, size_t *out_peak, size_t *out_bound) {
  pthread_mutex_lock(&best->lock);
  const bool good = is_good_enough(best);
  *out_peak = best->peak;
  *out_bound = best->bound;
  if (offsets != NULL && best->peak != SIZE_MAX) memcpy(offsets, best->offsets, best->count * sizeof *offsets);
  pthread_mutex_unlock(&best->lock);
  return good;
}
