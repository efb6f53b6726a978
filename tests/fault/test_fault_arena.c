/* SPDX-License-Identifier: MIT
 * Lets every driver call and every allocation fail, once or from then on, while an arena is created and trimmed, and
 * recordings in it are planned, captured, backed, instantiated, updated and launched. A failure changes nothing that
 * exists: backed memory stays backed, everything works afterwards, and nothing is left at the end.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "exec/capture/arena_capture.h"
#include "fault/fault_fake.h"
#include "memory/arena/arena_recording.h"
#include "memory/arena/arena_recording_plan.h"
#include "support/rondo_test.h"

#define PAGE FAKE_PAGE

typedef struct recording {
  rondo_graph *graph;
  rondo_exec *exec;
  rondo_arena_recording read;
  rondo_noted_lifetimes *noted;
} recording;

typedef struct rig {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *stream;
  rondo_arena *arena;
  recording recordings[2];
  void *left[3]; /* by a body that runs */
} rig;

/* What the body allocates: scratch, an output, more scratch. An input is dropped in between. What is not freed stays
 * in `r`. */
static rondo_status body(rig *r, void *input, bool recorded) {
  void **const left = r->left;
  RONDO_TRY(rondo_malloc_async(r->stream, 3 * PAGE, NULL, &left[0]));
  RONDO_TRY(rondo_malloc_async(r->stream, PAGE, NULL, &left[1]));
  RONDO_TRY(rondo_free_async(r->stream, left[0]));
  left[0] = NULL;
  if (input != NULL && recorded) RONDO_TRY(rondo_free_async(r->stream, input));
  if (input != NULL && !recorded) rondo_profile_note_end(r->stream, 1);
  RONDO_TRY(rondo_malloc_async(r->stream, 4 * PAGE, NULL, &left[2]));
  RONDO_TRY(rondo_free_async(r->stream, left[2]));
  left[2] = NULL;
  return RONDO_OK;
}

/* Runs the body on its own. */
static rondo_status warm_up(rig *r, int which) {
  RONDO_TRY(rondo_profile_begin(r->stream));
  const rondo_status status = body(r, which == 0 ? NULL : r, false);
  const rondo_status noted = rondo_profile_end_noted(r->stream, &r->recordings[which].noted);
  for (int i = 0; i < 3; i++) assert_ok(rondo_free(r->device, r->left[i]));
  memset(r->left, 0, sizeof r->left);
  return status == RONDO_OK ? noted : status;
}

static rondo_status record(rig *r, int which, rondo_profile *profile) {
  recording *self = &r->recordings[which];
  rondo_arena_block block = {.bytes = PAGE, .name = "input", .key = 1};
  rondo_arena_slot slot = {.bytes = 2 * PAGE, .name = "slot"};
  rondo_arena_setting setting = {.arena = r->arena,
                                 .blocks = &block,
                                 .block_count = which == 0 ? 0 : 1,
                                 .slots = &slot,
                                 .slot_count = 1,
                                 .lifetimes = profile == NULL ? self->noted : NULL,
                                 .profile = profile};
  if (which == 1) block.address = r->recordings[0].read.outputs[0].address;
  RONDO_TRY(rondo_capture_begin_in_arena(r->stream, RONDO_CAPTURE_RELAXED, &setting));
  rondo_status status = body(r, block.address, true);
  memset(r->left, 0, sizeof r->left);
  if (status != RONDO_OK) {
    rondo_graph *graph = NULL;
    if (rondo_capture_end(r->stream, &graph) == RONDO_OK) assert_ok(rondo_graph_destroy(graph));
    return status;
  }
  RONDO_TRY(rondo_capture_end(r->stream, &self->graph));
  RONDO_TRY(rondo_arena_recording_read(self->graph, &self->read));
  assert_int_equal(self->read.output_count, 1);
  rondo_arena_info before, after;
  rondo_arena_get_info(r->arena, &before);
  status = rondo_arena_back(r->arena, self->read.need);
  rondo_arena_get_info(r->arena, &after);
  assert_true(status == RONDO_OK ? after.backed >= self->read.need : after.backed == before.backed);
  RONDO_TRY(status);
  return rondo_instantiate(self->graph, NULL, &self->exec);
}

static void forget(recording *self, bool with_notes) {
  rondo_exec_destroy(self->exec);
  self->exec = NULL;
  rondo_arena_recording_free(&self->read);
  if (self->graph != NULL) assert_ok(rondo_graph_destroy(self->graph));
  self->graph = NULL;
  if (with_notes) rondo_noted_lifetimes_release(self->noted);
  if (with_notes) self->noted = NULL;
}

/* Both recordings, planned when they begin. */
static rondo_status record_both(rig *r) {
  for (int i = 0; i < 2; i++) {
    RONDO_TRY(warm_up(r, i));
    RONDO_TRY(record(r, i, NULL));
    RONDO_TRY(rondo_exec_launch(r->recordings[i].exec, r->stream));
  }
  return RONDO_OK;
}

/* Both again, planned as one path. */
static rondo_status record_path(rig *r, rondo_path_part parts[2]) {
  const size_t slot = 2 * PAGE;
  const rondo_path_end end = {.allocation = 1, .part = 1, .key = 1};
  for (int i = 0; i < 2; i++)
    parts[i] = (rondo_path_part){.lifetimes = r->recordings[i].noted, .slots = &slot, .slot_count = 1};
  parts[0].ends = &end;
  parts[0].end_count = 1;
  RONDO_TRY(rondo_arena_plan_path(r->arena, NULL, 0, parts, 2, NULL, NULL));
  for (int i = 0; i < 2; i++) {
    forget(&r->recordings[i], false);
    RONDO_TRY(record(r, i, parts[i].profile));
    assert_false(r->recordings[i].read.departed);
    RONDO_TRY(rondo_exec_launch(r->recordings[i].exec, r->stream));
  }
  return RONDO_OK;
}

static rondo_status work(rig *r) {
  rondo_device_memory *memory = NULL;
  rondo_path_part parts[2] = {{0}};
  RONDO_TRY(rondo_device_memory_of(r->device, &memory));
  RONDO_TRY(rondo_arena_create(memory, &(rondo_arena_options){.name = "tree"}, &r->arena));
  RONDO_TRY(record_both(r));
  const rondo_status status = record_path(r, parts);
  for (int i = 0; i < 2; i++) rondo_profile_destroy(parts[i].profile);
  RONDO_TRY(status);
  RONDO_TRY(rondo_exec_update(r->recordings[0].exec, r->recordings[0].graph, NULL));
  RONDO_TRY(rondo_stream_synchronize(r->stream));
  return rondo_arena_trim(r->arena, r->recordings[0].read.need);
}

static void undo(rig *r) {
  for (int i = 0; i < 2; i++) forget(&r->recordings[i], true);
  rondo_arena_destroy(r->arena);
  r->arena = NULL;
}

static rondo_status run(fault_point *point) {
  rig r = {.arena = NULL};
  test_allocator_init(&r.allocator);
  r.device = fake_open(&r.allocator.table);
  assert_ok(rondo_stream_create(r.device, NULL, &r.stream));
  fault_fake_begin(point, r.device, &r.allocator);
  const rondo_status status = work(&r);
  fault_fake_end(point, r.device, &r.allocator, status);
  undo(&r);
  assert_ok(work(&r));
  undo(&r);
  rondo_memory_statistics now = {.struct_size = sizeof now};
  assert_ok(rondo_memory_get_statistics(r.device, &now));
  assert_int_equal(now.arena_backed + now.graph_reserved, 0);
  assert_ok(rondo_stream_destroy(r.stream));
  fault_fake_close(r.device, &r.allocator);
  return status;
}

UNIT_TEST(test_each_driver_call_fails_once) { fault_sweep(run, true, false, 8); }
UNIT_TEST(test_the_driver_fails_from_some_call_on) { fault_sweep(run, true, true, 10); }
UNIT_TEST(test_each_allocation_fails_once) { fault_sweep(run, false, false, 100); }
UNIT_TEST(test_memory_ends_at_some_allocation) { fault_sweep(run, false, true, 100); }
