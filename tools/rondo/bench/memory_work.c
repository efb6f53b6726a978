/* SPDX-License-Identifier: MIT
 * Buffers in the order of their lifetimes' ends.
 */
#include "bench/memory_work.h"

#include <stdlib.h>

#include "common/tool.h"

/* A step with its time. At one time what ends goes before what begins. */
typedef struct timed_step {
  uint32_t time;
  memory_step step;
} timed_step;

static int compare_steps(const void *a, const void *b) {
  const timed_step *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  if (x->step.is_alloc != y->step.is_alloc) return x->step.is_alloc ? 1 : -1;
  return (x->step.buffer > y->step.buffer) - (x->step.buffer < y->step.buffer);
}

static void order_steps(const buffer_list *list, timed_step *timed, memory_work *out) {
  for (size_t i = 0; i < list->count; i++) {
    if (list->items[i].bytes == 0) continue;
    timed[out->step_count++] = (timed_step){list->items[i].lower, {true, i}};
    timed[out->step_count++] = (timed_step){list->items[i].upper, {false, i}};
  }
  qsort(timed, out->step_count, sizeof *timed, compare_steps);
  for (size_t i = 0; i < out->step_count; i++) out->steps[i] = timed[i].step;
}

static uint64_t find_bound(const memory_work *work) {
  uint64_t live = 0, most = 0;
  for (size_t i = 0; i < work->step_count; i++) {
    const uint64_t bytes = (work->list->items[work->steps[i].buffer].bytes + 255) / 256 * 256;
    live = work->steps[i].is_alloc ? live + bytes : live - bytes;
    if (live > most) most = live;
  }
  return most;
}

int memory_work_create(const char *name, const buffer_list *list, memory_work *out) {
  *out = (memory_work){.name = name, .list = list};
  timed_step *timed = calloc(list->count + 1, 2 * sizeof *timed);
  out->steps = calloc(list->count + 1, 2 * sizeof *out->steps);
  if (!timed || !out->steps) {
    free(timed);
    return tool_fail_memory("%zu buffers", list->count);
  }
  order_steps(list, timed, out);
  free(timed);
  out->bound = find_bound(out);
  return TOOL_OK;
}

void memory_work_destroy(memory_work *work) { free(work->steps); }

int memory_times_create(memory_times *times) {
  *times = (memory_times){0};
  if (samples_create(&times->instantiate, MEMORY_ROUNDS) && samples_create(&times->first, MEMORY_ROUNDS) &&
      samples_create(&times->again, MEMORY_ROUNDS * MEMORY_LAUNCHES) &&
      samples_create(&times->alternating, MEMORY_ROUNDS * MEMORY_LAUNCHES)) {
    return TOOL_OK;
  }
  return tool_fail_memory("the times");
}

void memory_times_destroy(memory_times *times) {
  samples_destroy(&times->instantiate);
  samples_destroy(&times->first);
  samples_destroy(&times->again);
  samples_destroy(&times->alternating);
}
