/* SPDX-License-Identifier: MIT
 * The memory of trees: a path whose parts allocate like a list of buffers, and one function of many shapes.
 */
#include "tree_memory.h"

#include <inttypes.h>
#include <stdlib.h>

#include "bench/bench_kernels.h"
#include "bench_check.h"

/* Calls of one shape: the first warms up, the second is recorded, the third is replayed. */
enum { STEPS = 3 };

typedef struct scene {
  rondo_device *device;
  rondo_kernel *kernel;
  rondo_stream *stream;
  rondo_tree *tree;
} scene;

static scene open_scene(rondo_device *device, uint32_t per_place) {
  const rondo_tree_options options = {RONDO_TREE_OPTIONS_INIT, .max_recordings_per_parent = per_place,
                                      .no_plan_again = true};
  scene s = {.device = device};
  check(rondo_kernel_create(device, &bench_touch, &s.kernel));
  check(rondo_stream_create(device, NULL, &s.stream));
  check(rondo_tree_create(device, &options, &s.tree));
  return s;
}

/* The next measurement starts without allocated device memory. */
static void close_scene(const scene *s) {
  check(rondo_tree_destroy(s->tree));
  check(rondo_stream_destroy(s->stream));
  rondo_kernel_destroy(s->kernel);
  check(rondo_memory_trim(s->device));
}

/* Fails unless the tree has this many recordings, and at least this many replays. */
static void read_memory(const scene *s, uint32_t recordings, uint64_t replayed, tree_memory *out) {
  rondo_tree_info info = {.struct_size = sizeof info};
  check(rondo_tree_get_info(s->tree, &info));
  *out = (tree_memory){.recordings = info.recordings,
                       .used = info.arena_used,
                       .backed = info.arena_bytes,
                       .least = info.arena_minimum,
                       .exec_host = info.exec_host_bytes,
                       .exec_device = info.exec_device_bytes};
  if (info.recordings == recordings && info.replayed >= replayed) return;
  check_tool(tool_fail("there are %" PRIu32 " recordings and %" PRIu64 " replayed calls, instead of %" PRIu32
                       " and at least %" PRIu64,
                       info.recordings, info.replayed, recordings, replayed));
}

/* Paths ----------------------------------------------------------------------------------------------------------- */

struct path;

/* A function that does steps `first` to `end`. */
typedef struct part {
  struct path *path;
  size_t first, end;
  rondo_function *function;
  size_t *inputs, *outputs; /* the buffers of earlier parts that it frees, and the buffers that it leaves */
  size_t input_count, output_count;
} part;

typedef struct path {
  scene scene;
  const memory_work *work;
  part *parts;
  size_t part_count;
  size_t *begins, *ends; /* by buffer: the parts that allocate and free it */
  size_t *places;        /* by buffer: its index among the inputs or outputs of the part that runs */
  void **addresses;      /* by buffer, in the run of a body */
  rondo_buffer **held;   /* by buffer: those that outlive their part */
  rondo_input *inputs;   /* of the current call, as are the next two */
  rondo_buffer **results;
  uint32_t *kinds;
} path;

static rondo_status do_alloc(const part *p, rondo_call *call, size_t buffer) {
  path *of = p->path;
  const size_t bytes = of->work->list->items[buffer].bytes;
  void **address = &of->addresses[buffer];
  if (of->begins[buffer] == of->ends[buffer])
    TOOL_TRY(rondo_malloc_async(rondo_call_stream(call), bytes, NULL, address));
  else
    TOOL_TRY(rondo_call_output(call, of->places[buffer], bytes, NULL, address));
  return rondo_launch(rondo_call_stream(call), of->scene.kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(address));
}

static rondo_status do_free(const part *p, rondo_call *call, size_t buffer) {
  const path *of = p->path;
  return of->begins[buffer] == of->ends[buffer] ? rondo_free_async(rondo_call_stream(call), of->addresses[buffer])
                                                : rondo_call_drop_input(call, of->places[buffer]);
}

static rondo_status run_part(rondo_call *call, void *user) {
  const part *p = user;
  const path *of = p->path;
  for (size_t i = 0; i < p->output_count; i++) of->places[p->outputs[i]] = i;
  for (size_t i = 0; i < p->input_count; i++) of->places[p->inputs[i]] = i;
  for (size_t i = p->first; i < p->end; i++) {
    const memory_step step = of->work->steps[i];
    TOOL_TRY(step.is_alloc ? do_alloc(p, call, step.buffer) : do_free(p, call, step.buffer));
  }
  return RONDO_OK;
}

static void call_part(const part *p) {
  const path *of = p->path;
  for (size_t i = 0; i < p->input_count; i++) {
    of->inputs[i] = (rondo_input){.buffer = of->held[p->inputs[i]], .give = true};
    of->held[p->inputs[i]] = NULL;
  }
  check(rondo_function_call(p->function, of->scene.stream, of->inputs, p->input_count, of->results, p->output_count));
  for (size_t i = 0; i < p->output_count; i++) of->held[p->outputs[i]] = of->results[i];
}

/* Returns its duration in microseconds. */
static double run_step(const path *of) {
  const uint64_t begin = clock_ns();
  check(rondo_tree_mark_step(of->scene.tree));
  for (size_t i = 0; i < of->part_count; i++) call_part(&of->parts[i]);
  check(rondo_stream_synchronize(of->scene.stream));
  return (double)(clock_ns() - begin) / 1e3;
}

static void list_buffers(path *of, part *p, size_t index) {
  p->path = of;
  p->first = of->work->step_count * index / of->part_count;
  p->end = of->work->step_count * (index + 1) / of->part_count;
  for (size_t i = p->first; i < p->end; i++) {
    const memory_step step = of->work->steps[i];
    *(step.is_alloc ? &of->begins[step.buffer] : &of->ends[step.buffer]) = index;
  }
}

static void make_part(path *of, part *p) {
  for (size_t i = p->first; i < p->end; i++) {
    const memory_step step = of->work->steps[i];
    if (of->begins[step.buffer] == of->ends[step.buffer]) continue;
    if (step.is_alloc)
      p->outputs[p->output_count++] = step.buffer;
    else
      p->inputs[p->input_count++] = step.buffer;
  }
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT,  .name = "part", .body = run_part, .user = p, .inputs = of->kinds,
      .input_count = p->input_count};
  check(rondo_function_create(of->scene.tree, &options, &p->function));
}

static void make_parts(path *of) {
  const size_t count = of->work->list->count + 1;
  of->parts = bench_allocate(of->part_count, sizeof *of->parts);
  for (size_t i = 0; i < of->part_count; i++) {
    of->parts[i].inputs = bench_allocate(count, sizeof(size_t));
    of->parts[i].outputs = bench_allocate(count, sizeof(size_t));
    list_buffers(of, &of->parts[i], i);
  }
  for (size_t i = 0; i < of->part_count; i++) make_part(of, &of->parts[i]);
}

static path make_path(rondo_device *device, const memory_work *work, size_t parts) {
  const size_t count = work->list->count + 1;
  path of = {.work = work, .part_count = parts, .scene = open_scene(device, 0)};
  of.begins = bench_allocate(count, sizeof(size_t));
  of.ends = bench_allocate(count, sizeof(size_t));
  of.places = bench_allocate(count, sizeof(size_t));
  of.addresses = bench_allocate(count, sizeof(void *));
  of.held = bench_allocate(count, sizeof(rondo_buffer *));
  of.results = bench_allocate(count, sizeof(rondo_buffer *));
  of.inputs = bench_allocate(count, sizeof(rondo_input));
  of.kinds = bench_allocate(count, sizeof(uint32_t));
  for (size_t i = 0; i < count; i++) of.kinds[i] = RONDO_INPUT_MOVING;
  return of;
}

/* All functions are warmed up. */
static void measure_recorded(const path *of, tree_memory *out) {
  const uint32_t parts = (uint32_t)of->part_count;
  const double record_us = run_step(of), replay_us = run_step(of);
  read_memory(&of->scene, parts, parts, out);
  out->record_us = record_us;
  out->replay_us = replay_us;
}

void tree_memory_of_path(rondo_device *device, const memory_work *work, size_t parts, tree_path_memory *out) {
  path of = make_path(device, work, parts);
  make_parts(&of);
  (void)run_step(&of); /* the warm-up */
  measure_recorded(&of, &out->first);
  check(rondo_tree_reset(of.scene.tree));
  measure_recorded(&of, &out->singly);
  check(rondo_tree_plan_again(of.scene.tree));
  measure_recorded(&of, &out->planned);
}

/* Shapes ---------------------------------------------------------------------------------------------------------- */

/* Each layer has a result and scratch memory of half its size; the result of the last one is the output. */
static rondo_status run_layers(rondo_call *call, void *user) {
  rondo_kernel *kernel = *(rondo_kernel **)user;
  rondo_stream *stream = rondo_call_stream(call);
  rondo_input input;
  void *before = NULL, *scratch, *result;
  TOOL_TRY(rondo_call_get_input(call, 0, &input));
  for (int i = 0; i < TREE_SHAPE_LAYERS; i++) {
    const bool is_last = i + 1 == TREE_SHAPE_LAYERS;
    TOOL_TRY(rondo_malloc_async(stream, input.bytes / 2, NULL, &scratch));
    TOOL_TRY(is_last ? rondo_call_output(call, 0, input.bytes, NULL, &result)
                     : rondo_malloc_async(stream, input.bytes, NULL, &result));
    TOOL_TRY(rondo_launch(stream, kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&scratch)));
    TOOL_TRY(rondo_launch(stream, kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&result)));
    TOOL_TRY(rondo_free_async(stream, scratch));
    if (before) TOOL_TRY(rondo_free_async(stream, before));
    before = result;
  }
  return RONDO_OK;
}

void tree_memory_of_shapes(rondo_device *device, uint32_t shapes, tree_memory *out) {
  static const uint32_t moving = RONDO_INPUT_MOVING;
  scene s = open_scene(device, shapes);
  rondo_function *function;
  void *memory;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "layers",  .body = run_layers,
                                          .user = &s.kernel,           .inputs = &moving, .input_count = 1,
                                          .max_shapes = shapes};
  check(rondo_function_create(s.tree, &options, &function));
  check(rondo_malloc(device, TREE_LARGEST_SHAPE, "input", &memory));
  for (uint32_t i = 0; i < shapes * STEPS; i++) {
    const size_t bytes = (size_t)TREE_LARGEST_SHAPE / shapes * (i / STEPS + 1) / 256 * 256;
    rondo_buffer *result;
    check(rondo_function_call(function, s.stream, &(rondo_input){.address = memory, .bytes = bytes}, 1, &result, 1));
    rondo_buffer_release(result);
  }
  check(rondo_stream_synchronize(s.stream));
  read_memory(&s, shapes, shapes, out);
  check(rondo_free(device, memory));
  close_scene(&s);
}
