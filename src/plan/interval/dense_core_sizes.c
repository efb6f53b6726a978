/* SPDX-License-Identifier: MIT
 * Threads take sizes in their order, and each repairs a copy of the plan. A core that reached the limit counts before
 * all that did not, then the lowest peak, then the first: whichever thread is fast.
 */
#include "plan/interval/dense_core_sizes.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

/* Boxes of a core; how much larger than the largest of them a part has to be. */
static const uint32_t sizes[] = {512, 2048, 1024};
enum { SIZES = sizeof sizes / sizeof sizes[0], TIMES_LARGER = 3 };

typedef struct contest {
  const rondo_allocator *allocator;
  const rondo_cores *of;
  const rondo_part *part;
  const uint64_t *offsets; /* of the plan that there is, and its peak */
  uint64_t peak;
  _Atomic uint32_t next;
  _Atomic uint32_t first_hit; /* the first core that reached the limit; UINT32_MAX: none */
} contest;

typedef struct contestant {
  contest *all;
  uint64_t *offsets, *best; /* what is worked on, and the best so far */
  uint64_t peak;            /* of the best */
  uint32_t core;            /* that it is around; SIZES: none */
  rondo_status status;
  rondo_saved_error error;
  rondo_thread thread;
  bool started;
} contestant;

/* Cores ------------------------------------------------------------------------------------------------------------ */

static bool is_over(const contest *all, uint32_t core) {
  return core >= SIZES || core > atomic_load(&all->first_hit) ||
         (all->of->deadline_ns != 0 && rondo_clock_ns() >= all->of->deadline_ns);
}

static void note_hit(contest *all, uint32_t core) {
  uint32_t first = atomic_load(&all->first_hit);
  while (core < first && !atomic_compare_exchange_weak(&all->first_hit, &first, core)) continue;
}

static bool is_better(const contest *all, uint32_t core, uint64_t peak, const contestant *than) {
  if (than->core == SIZES) return true;
  const bool hit = peak <= all->of->limit;
  const bool other_hit = than->peak <= all->of->limit;
  if (hit != other_hit) return hit;
  if (!hit && peak != than->peak) return peak < than->peak;
  return core < than->core;
}

static rondo_status try_core(contestant *c, uint32_t number) {
  contest *all = c->all;
  const rondo_core core = {.boxes = sizes[number], .limit = all->of->limit, .deadline_ns = all->of->deadline_ns};
  uint64_t peak = all->peak;
  if (sizes[number] > all->part->boxes.count / TIMES_LARGER) return RONDO_OK;
  memcpy(c->offsets, all->offsets, all->part->boxes.count * sizeof *c->offsets);
  RONDO_TRY(rondo_core_improve(all->allocator, &core, all->part, all->of->order, c->offsets, &peak));
  if (peak == all->peak || !is_better(all, number, peak, c)) return RONDO_OK;
  if (peak <= all->of->limit) note_hit(all, number);
  uint64_t *const spare = c->best;
  c->best = c->offsets;
  c->offsets = spare;
  c->peak = peak;
  c->core = number;
  return RONDO_OK;
}

static void *try_cores(void *argument) {
  contestant *c = argument;
  while (c->status == RONDO_OK) {
    const uint32_t core = atomic_fetch_add(&c->all->next, 1);
    if (is_over(c->all, core)) return NULL;
    c->status = try_core(c, core);
    if (c->status != RONDO_OK) rondo_error_save(&c->error);
  }
  return NULL;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status make_contestants(contest *all, uint32_t count, contestant *out) {
  const uint32_t boxes = all->part->boxes.count;
  for (uint32_t i = 0; i < count; i++) {
    out[i].all = all;
    out[i].core = SIZES;
    RONDO_TRY(rondo_allocate_items(all->allocator, boxes, sizeof *out[i].offsets, &out[i].offsets));
    RONDO_TRY(rondo_allocate_items(all->allocator, boxes, sizeof *out[i].best, &out[i].best));
  }
  return RONDO_OK;
}

static void free_contestants(const contest *all, uint32_t count, contestant *contestants) {
  const uint32_t boxes = all->part->boxes.count;
  for (uint32_t i = 0; i < count; i++) {
    rondo_release(all->allocator, contestants[i].offsets, boxes, sizeof *contestants[i].offsets);
    rondo_release(all->allocator, contestants[i].best, boxes, sizeof *contestants[i].best);
  }
  rondo_release(all->allocator, contestants, count, sizeof *contestants);
}

static rondo_status run_threads(contestant *contestants, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    contestant *c = &contestants[i];
    c->started = rondo_thread_start(&c->thread, "rondo-plan", try_cores, c) == RONDO_OK;
  }
  try_cores(&contestants[0]);
  for (uint32_t i = 1; i < count; i++) {
    if (contestants[i].started) rondo_thread_join(contestants[i].thread);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (contestants[i].status != RONDO_OK) return rondo_error_raise(&contestants[i].error);
  }
  return RONDO_OK;
}

static void take_best(const contest *all, const contestant *contestants, uint32_t count, uint64_t *offsets,
                      uint64_t *peak) {
  const contestant *best = &contestants[0];
  for (uint32_t i = 1; i < count; i++) {
    if (contestants[i].core != SIZES && is_better(all, contestants[i].core, contestants[i].peak, best)) {
      best = &contestants[i];
    }
  }
  if (best->core == SIZES) return;
  *peak = best->peak;
  memcpy(offsets, best->best, all->part->boxes.count * sizeof *offsets);
}

rondo_status rondo_cores_improve(const rondo_allocator *allocator, const rondo_cores *cores, const rondo_part *part,
                                 uint64_t *inout_offsets, uint64_t *inout_peak) {
  contest all = {.allocator = allocator, .of = cores, .part = part, .offsets = inout_offsets, .peak = *inout_peak};
  const uint32_t count = cores->threads < SIZES ? cores->threads : SIZES;
  contestant *contestants = NULL;
  if (sizes[0] > part->boxes.count / TIMES_LARGER || cores->limit >= *inout_peak) return RONDO_OK;
  atomic_init(&all.next, 0);
  atomic_init(&all.first_hit, UINT32_MAX);
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *contestants, &contestants));
  rondo_status status = make_contestants(&all, count, contestants);
  if (status == RONDO_OK) status = run_threads(contestants, count);
  if (status == RONDO_OK) take_best(&all, contestants, count, inout_offsets, inout_peak);
  free_contestants(&all, count, contestants);
  return status;
}
