/* SPDX-License-Identifier: MIT
 * Readings of times. What bounds a graph is the smaller one whose rows are cheapest.
 */
#include "session/times.h"

#include <assert.h>

#include <rondo/session.h>

#define ALIKE 1.05

void rondo_least_add(rondo_least *least, double us) {
  if (least->readings == 0 || us < least->us) {
    least->second_us = least->us;
    least->us = us;
  } else if (least->readings == 1 || us < least->second_us) {
    least->second_us = us;
  }
  least->readings++;
}

bool rondo_least_is_settled(const rondo_least *least) {
  return least->readings > 1 && least->second_us <= least->us * ALIKE;
}

void rondo_times_sort(const size_t *rows, size_t count, size_t *order) {
  assert(count <= RONDO_SESSION_MAX_SIZES);
  for (size_t i = 0; i < count; i++) {
    size_t at = i;
    for (; at > 0 && rows[order[at - 1]] > rows[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
}

void rondo_times_make_rise(const size_t *rows, double *us, size_t count) {
  size_t order[RONDO_SESSION_MAX_SIZES];
  rondo_times_sort(rows, count, order);
  for (size_t i = count; i-- > 1;)
    if (us[order[i - 1]] > us[order[i]]) us[order[i - 1]] = us[order[i]];
}

void rondo_times_bound(const size_t *rows, double *us, size_t count) {
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
