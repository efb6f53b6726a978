/* SPDX-License-Identifier: MIT
 * Delayed work of the fake driver. A device may start enqueued work at once or much later. With
 * RONDO_TEST_FAKE_CUDA_LATE, streams delay work that nobody waits for. Memory that is reused, freed or read without
 * waiting then gives wrong numbers. A wait for a stream or an event lets its stream run up to that point, and other
 * streams as far as it waits for them. All other work starts after a short time, because a program may poll instead of
 * waiting. Copies from pageable host memory read their source at random either when they are enqueued or later.
 * Everything here requires the lock.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_cuda/fake.h"

enum { LEAST_LATE_NS = 1000, LATE_STEPS = 16 }; /* each twice as long as the one before: 33 ms at most */

uint64_t fake_late;
const char *fake_hang;

static uint64_t random_state;

/* splitmix64 (Steele, Lea, Flood 2014), from the seed. */
static uint64_t draw(void) {
  if (random_state == 0) random_state = fake_late;
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static uint64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void fake_stream_want(fake_stream *stream, uint64_t number) {
  if (number <= stream->wanted) return;
  stream->wanted = number;
  fake_signal();
}

void fake_context_want(const fake_context *context) {
  for (fake_stream *stream = fake_streams_first(); stream != NULL; stream = stream->next)
    if (context == NULL || stream->object.context == context) fake_stream_want(stream, stream->submitted);
}

/* A stream lives until all markers of its tasks are reached. */
void fake_marker_want(const fake_marker *marker) {
  if (marker != NULL && !marker->is_reached && marker->stream != NULL) fake_stream_want(marker->stream, marker->number);
}

static void promise(fake_marker *marker, fake_stream *stream) {
  if (marker == NULL) return;
  marker->stream = stream;
  marker->number = stream->submitted;
}

void fake_task_promise(const fake_task *task, fake_stream *stream) {
  promise(task->reach, stream);
  for (size_t i = 0; task->program != NULL && i < task->program->count; i++)
    if (task->program->types[i] == CU_NODE_EVENT_RECORD) promise(task->program_markers[i], stream);
}

/* Half of the time not at all; else as often for long as for a moment. */
void fake_stream_hold_back(const fake_stream *stream) {
  if (fake_late == 0) return;
  const uint64_t drawn = draw(), begin = now_ns();
  const uint64_t timeout = drawn % 2 == 0 ? 0 : (uint64_t)LEAST_LATE_NS << (drawn >> 1) % LATE_STEPS;
  while (stream->completed >= stream->wanted && now_ns() - begin < timeout) fake_wait_short();
}

void fake_stream_hang(void) {
  while (fake_hang != NULL && access(fake_hang, F_OK) == 0) fake_wait_short();
}

void fake_late_take_source(fake_work *work) {
  cu_copy *copy = &work->of.copy;
  const cu_address from = copy->src_type == CU_MEMORY_HOST ? fake_handle(copy->src_host) : copy->src_device;
  if (fake_late == 0 || copy->height > 1 || copy->depth > 1 || draw() % 2 == 0) return;
  if (fake_memory_is_device(from) || fake_memory_is_page_locked(from)) return;
  work->source = fake_copy_of((const char *)(uintptr_t)from + copy->src_x, copy->width);
  copy->src_type = CU_MEMORY_HOST;
  copy->src_host = work->source;
  copy->src_x = copy->src_y = copy->src_z = 0;
}
