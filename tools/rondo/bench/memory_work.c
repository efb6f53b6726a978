/* SPDX-License-Identifier: MIT
 * Builds the sequence of allocs and frees from the lifetimes of buffers, and measures it.
 */
#include "bench/memory_work.h"

#include <stdlib.h>

#include "common/tool.h"

/* A step and its time. At equal times, frees come before allocs. */
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

/* Measuring ------------------------------------------------------------------------------------------------------- */

static int launch(const memory_method *method, void *exec, size_t stream, samples *times) {
  const uint64_t begin = clock_ns();
  if (method->target->calls->launch(method->target, exec, stream) != TOOL_OK) return TOOL_FAILURE;
  samples_add(times, (double)(clock_ns() - begin) / 1e3);
  return method->target->calls->wait(method->target, stream);
}

/* Launches on the first `count` streams in alternation. Raises *most to the number of remaps if that is larger. */
static int launch_on(const memory_method *method, void *exec, size_t count, samples *times, uint64_t *most) {
  uint64_t bytes, before = 0, after = 0;
  int result = method->count(method->self, &bytes, &before);
  for (size_t i = 0; i < MEMORY_LAUNCHES && result == TOOL_OK; i++) result = launch(method, exec, i % count, times);
  if (result == TOOL_OK) result = method->count(method->self, &bytes, &after);
  if (after - before > *most) *most = after - before;
  return result;
}

static int measure_exec(const memory_method *method, void *exec, memory_times *out) {
  uint64_t remaps;
  int result = launch(method, exec, 0, &out->first);
  if (result == TOOL_OK) result = method->count(method->self, &out->bytes, &remaps);
  if (result == TOOL_OK) result = launch_on(method, exec, 1, &out->again, &out->remaps);
  return result == TOOL_OK ? launch_on(method, exec, 2, &out->alternating, &out->moves) : result;
}

int memory_measure(const memory_method *method, memory_times *out) {
  for (size_t i = 0; i < MEMORY_ROUNDS; i++) {
    void *exec = NULL;
    if (method->trim(method->self) != TOOL_OK) return TOOL_FAILURE;
    const uint64_t begin = clock_ns();
    if (method->instantiate(method->self, &exec) != TOOL_OK) return TOOL_FAILURE;
    samples_add(&out->instantiate, (double)(clock_ns() - begin) / 1e3);
    const int result = measure_exec(method, exec, out);
    (void)method->target->calls->discard_exec(method->target, exec);
    if (result != TOOL_OK) return result;
  }
  return TOOL_OK;
}
