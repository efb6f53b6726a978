/* SPDX-License-Identifier: MIT
 * What graphs cost, measured: all graphs of a place in turn, recorded and not, round after round, so that what disturbs
 * the machine for a while disturbs all alike; the medians, made to rise with the rows. By who has claimed the lane.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "session/session_internal.h"

enum { MOST_ROUNDS = 9, LEAST_ROUNDS = 3 };
#define ENOUGH_NS UINT64_C(400000000) /* of rounds */

/* Microseconds, by graph and round. */
typedef struct samples {
  double recorded[RONDO_SESSION_MAX_SIZES][MOST_ROUNDS], unrecorded[RONDO_SESSION_MAX_SIZES][MOST_ROUNDS];
} samples;

/* Rising with the rows ----------------------------------------------------------------------------------------------
 */

/* Pools adjacent violators (Ayer, Brunk, Ewing, Reid, Silverman 1955): the rising row that is nearest by squares. */
void rondo_measure_smooth(double *us, size_t count) {
  double mean[RONDO_SESSION_MAX_SIZES];
  size_t length[RONDO_SESSION_MAX_SIZES], blocks = 0;
  for (size_t i = 0; i < count; i++) {
    mean[blocks] = us[i];
    length[blocks++] = 1;
    for (; blocks > 1 && mean[blocks - 2] > mean[blocks - 1]; blocks--) {
      const size_t both = length[blocks - 2] + length[blocks - 1];
      mean[blocks - 2] =
          (mean[blocks - 2] * (double)length[blocks - 2] + mean[blocks - 1] * (double)length[blocks - 1]) /
          (double)both;
      length[blocks - 2] = both;
    }
  }
  for (size_t b = 0, i = 0; b < blocks; b++)
    for (size_t k = 0; k < length[b]; k++) us[i++] = mean[b];
}

static void sort_by_rows(const rondo_place *place, size_t *order) {
  for (size_t i = 0; i < place->graphs.count; i++) {
    size_t at = i;
    for (; at > 0 && place->graphs.items[order[at - 1]].rows > place->graphs.items[i].rows; at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
}

static void smooth(const rondo_place *place, double *us) {
  size_t order[RONDO_SESSION_MAX_SIZES];
  double sorted[RONDO_SESSION_MAX_SIZES];
  const size_t count = place->graphs.count;
  sort_by_rows(place, order);
  for (size_t i = 0; i < count; i++) sorted[i] = us[order[i]];
  rondo_measure_smooth(sorted, count);
  for (size_t i = 0; i < count; i++) us[order[i]] = sorted[i];
}

/* Samples -----------------------------------------------------------------------------------------------------------
 */

static rondo_status time_run(rondo_place *place, const rondo_place_graph *g, bool is_recorded, double *out_us) {
  RONDO_TRY(rondo_place_synchronize(place));
  const uint64_t begin = rondo_clock_ns();
  RONDO_TRY(rondo_place_launch(place, g, is_recorded));
  RONDO_TRY(rondo_place_synchronize(place));
  *out_us = (double)(rondo_clock_ns() - begin) / 1e3;
  return RONDO_OK;
}

static rondo_status take_round(rondo_place *place, samples *s, size_t round) {
  for (size_t i = 0; i < place->graphs.count; i++) {
    RONDO_TRY(rondo_place_write_zeros(place, i));
    RONDO_TRY(time_run(place, &place->graphs.items[i], true, &s->recorded[i][round]));
    RONDO_TRY(time_run(place, &place->graphs.items[i], false, &s->unrecorded[i][round]));
  }
  return RONDO_OK;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *us, size_t count) {
  qsort(us, count, sizeof *us, compare);
  return count % 2 == 1 ? us[count / 2] : (us[count / 2 - 1] + us[count / 2]) / 2;
}

/* The first round warms up, and counts no more when there is another. */
static rondo_status take_all(rondo_place *place, samples *s, size_t *out_rounds) {
  RONDO_TRY(take_round(place, s, 0));
  const uint64_t begin = rondo_clock_ns();
  size_t round = 0;
  while (round < LEAST_ROUNDS || (round < MOST_ROUNDS && rondo_clock_ns() - begin < ENOUGH_NS))
    RONDO_TRY(take_round(place, s, round++));
  *out_rounds = round;
  return RONDO_OK;
}

rondo_status rondo_place_measure(rondo_place *place, double *out_run, double *out_unrecorded) {
  const rondo_allocator *allocator = &place->model->session->allocator;
  samples *s = NULL;
  size_t rounds = 0;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *s, &s));
  const rondo_status status = take_all(place, s, &rounds);
  for (size_t i = 0; i < place->graphs.count && status == RONDO_OK; i++) {
    out_run[i] = median(s->recorded[i], rounds);
    out_unrecorded[i] = median(s->unrecorded[i], rounds);
  }
  rondo_release(allocator, s, 1, sizeof *s);
  if (status != RONDO_OK) return status;
  smooth(place, out_run);
  smooth(place, out_unrecorded);
  return RONDO_OK;
}
