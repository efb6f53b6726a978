/* SPDX-License-Identifier: MIT
 * Estimates of graph times from samples.
 */
#include "session/sizing/graph_times.h"

#include <assert.h>
#include <math.h>

#include <rondo/session.h>

#define TIME_TOLERANCE 1.05

void rondo_least_samples_add(rondo_least_samples *least, double us) {
  if (least->samples == 0 || us < least->us) {
    least->second_us = least->us;
    least->us = us;
  } else if (least->samples == 1 || us < least->second_us) {
    least->second_us = us;
  }
  least->samples++;
}

bool rondo_least_samples_agree(const rondo_least_samples *least) {
  return least->samples > 1 && least->second_us <= least->us * TIME_TOLERANCE;
}

void rondo_times_sort(const size_t *rows, size_t count, size_t *order) {
  assert(count <= RONDO_SESSION_MAX_SIZES);
  for (size_t i = 0; i < count; i++) {
    size_t at = i;
    for (; at > 0 && rows[order[at - 1]] > rows[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
}

void rondo_times_make_ascending(const size_t *rows, double *us, size_t count) {
  size_t order[RONDO_SESSION_MAX_SIZES];
  rondo_times_sort(rows, count, order);
  for (size_t i = count; i-- > 1;)
    if (us[order[i - 1]] > us[order[i]]) us[order[i - 1]] = us[order[i]];
}

void rondo_times_limit_row_cost(const size_t *rows, double *us, size_t count) {
  size_t order[RONDO_SESSION_MAX_SIZES];
  rondo_times_sort(rows, count, order);
  for (size_t i = 0, cheapest = 0; i < count; i++) {
    const size_t at = order[i], least = order[cheapest];
    const double batches_us = us[least] * ((double)rows[at] / (double)rows[least]);
    if (us[at] <= batches_us)
      cheapest = i;
    else
      us[at] = batches_us;
  }
}

/* Samples of runs -------------------------------------------------------------------------------------------------- */

void rondo_tracked_time_begin(rondo_tracked_time *tracked, double measured_us) {
  *tracked = (rondo_tracked_time){.measured_us = measured_us, .us = measured_us, .dispatched_us = measured_us};
}

void rondo_tracked_time_add(rondo_tracked_time *tracked, double us) {
  assert(tracked->in_window < RONDO_SAMPLES_IN_WINDOW);
  tracked->samples++;
  tracked->window_us = tracked->in_window == 0 ? us : fmin(tracked->window_us, us);
  tracked->us = fmin(tracked->us, us);
  if (++tracked->in_window < RONDO_SAMPLES_IN_WINDOW) return;
  tracked->us = tracked->window_us;
  tracked->in_window = 0;
  tracked->windows++;
}

bool rondo_tracked_time_has_changed(const rondo_tracked_time *tracked) {
  return tracked->us > tracked->dispatched_us * TIME_TOLERANCE || tracked->us * TIME_TOLERANCE < tracked->dispatched_us;
}

/* The slowdown of the graph with a full window whose number of rows is nearest, relative to its measured time. */
static double slowdown_near(const size_t *rows, const rondo_tracked_time *tracked, size_t count, size_t at) {
  size_t nearest = SIZE_MAX;
  double slowdown = 1;
  for (size_t i = 0; i < count; i++) {
    const size_t distance = rows[i] > at ? rows[i] - at : at - rows[i];
    if (tracked[i].windows == 0 || distance >= nearest) continue;
    nearest = distance;
    slowdown = fmax(1, tracked[i].us / tracked[i].measured_us);
  }
  return slowdown;
}

/* Before a window is full, its lowest sample is an upper bound. */
static double time_of(const rondo_tracked_time *tracked, double slowdown) {
  if (tracked->windows > 0) return tracked->us;
  return tracked->in_window == 0 ? tracked->us * slowdown : fmin(tracked->measured_us * slowdown, tracked->window_us);
}

void rondo_tracked_times_find(const size_t *rows, const rondo_tracked_time *tracked, size_t count, double *out_us,
                              double *inout_eager) {
  for (size_t i = 0; i < count; i++) {
    const double slowdown = slowdown_near(rows, tracked, count, rows[i]);
    out_us[i] = time_of(&tracked[i], slowdown);
    inout_eager[i] *= slowdown;
  }
  rondo_times_make_ascending(rows, out_us, count);
  rondo_times_make_ascending(rows, inout_eager, count);
}
