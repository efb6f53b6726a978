/* SPDX-License-Identifier: MIT
 * Changes summed up over the sections, and a bottom-up segment tree of maxima over the sums.
 */
#include "plan/interval/live_bytes.h"

#include <assert.h>

#include "base/error.h"

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Leaves first take the change at their section, modulo the word, then the sum of the changes so far. */
static void fill_tree(const rondo_boxes *boxes, rondo_profile *profile) {
  uint64_t *leaves = profile->tree + profile->count;
  for (uint32_t i = 0; i < boxes->count; i++) {
    const rondo_box *box = &boxes->boxes[i];
    leaves[box->lower] += box->bytes;
    if (box->upper < profile->count) leaves[box->upper] -= box->bytes;
  }
  for (size_t i = 1; i < profile->count; i++) leaves[i] += leaves[i - 1];
  for (size_t i = profile->count - 1; i > 0; i--) {
    profile->tree[i] = larger(profile->tree[2 * i], profile->tree[2 * i + 1]);
  }
}

rondo_status rondo_profile_make(rondo_scratch *scratch, const rondo_boxes *boxes, rondo_profile *out) {
  *out = (rondo_profile){.count = boxes->section_count};
  if (out->count == 0) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(scratch, 2 * out->count, sizeof *out->tree, &out->tree));
  fill_tree(boxes, out);
  return RONDO_OK;
}

uint64_t rondo_profile_most(const rondo_profile *profile, uint32_t lower, uint32_t upper) {
  assert(lower < upper && upper <= profile->count);
  uint64_t most = 0;
  size_t low = lower + profile->count;
  size_t high = upper + profile->count; /* not of the stretch */
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) most = larger(most, profile->tree[low++]);
    if (high % 2 == 1) most = larger(most, profile->tree[--high]);
  }
  return most;
}

const uint64_t *rondo_profile_lives(const rondo_profile *profile) { return profile->tree + profile->count; }

uint64_t rondo_profile_peak(const rondo_profile *profile) { return profile->count == 0 ? 0 : profile->tree[1]; }
