/* SPDX-License-Identifier: MIT
 * The CUDA driver without Rondo as what launches: the same objects as launch_rondo.c, by the driver's own calls, in the
 * device's primary context.
 */
#include <stdlib.h>
#include <string.h>

#include "bare_driver.h"
#include "launch_target.h"
#include "tool.h"

typedef struct bare_target {
  launch_target base;
  bare_driver driver;
  int device;
  bare_context context;
  bare_module module;
  bare_function kernel;
  bare_stream streams[LAUNCH_STREAMS];
  bare_event fork, joins[LAUNCH_STREAMS];
  bare_event begin, end; /* with timing */
} bare_target;

static int check(int code, const char *what) {
  return code ? tool_fail("the CUDA driver without Rondo: %s: error %d", what, code) : TOOL_OK;
}

static bare_target *of(launch_target *target) { return (bare_target *)target; }

/* Handing over ---------------------------------------------------------------------------------------------------- */

static int launch(launch_target *target, size_t stream) {
  const bare_target *t = of(target);
  return check(t->driver.launch_kernel(t->kernel, 1, 1, 1, 1, 1, 1, 0, t->streams[stream], NULL, NULL),
               "launching a kernel");
}

static int fork_streams(launch_target *target) {
  const bare_target *t = of(target);
  return check(t->driver.event_record(t->fork, t->streams[0]), "forking");
}

static int follow(launch_target *target, size_t stream) {
  const bare_target *t = of(target);
  return check(t->driver.stream_wait_event(t->streams[stream], t->fork, 0), "forking");
}

static int join(launch_target *target, size_t stream) {
  const bare_target *t = of(target);
  const int code = t->driver.event_record(t->joins[stream], t->streams[stream]);
  return check(code ? code : t->driver.stream_wait_event(t->streams[0], t->joins[stream], 0), "joining");
}

static int replay(launch_target *target, void *exec) {
  const bare_target *t = of(target);
  return check(t->driver.graph_launch(exec, t->streams[0]), "launching a graph");
}

static int wait(launch_target *target) {
  const bare_target *t = of(target);
  return check(t->driver.stream_synchronize(t->streams[0]), "waiting for a stream");
}

static int mark(launch_target *target, bool is_end) {
  const bare_target *t = of(target);
  return check(t->driver.event_record(is_end ? t->end : t->begin, t->streams[0]), "recording an event");
}

static int elapsed(launch_target *target, double *out_us) {
  const bare_target *t = of(target);
  float ms = 0;
  const int code = t->driver.event_elapsed(&ms, t->begin, t->end);
  *out_us = (double)ms * 1e3;
  return check(code, "the time between two events");
}

/* Recording ------------------------------------------------------------------------------------------------------- */

static int begin_capture(launch_target *target) {
  const bare_target *t = of(target);
  return check(t->driver.begin_capture(t->streams[0], BARE_CAPTURE_THREAD), "beginning a capture");
}

static int end_capture(launch_target *target, void **out_exec) {
  const bare_target *t = of(target);
  bare_graph graph = NULL;
  bare_exec exec = NULL;
  bare_instantiate_params params = {.flags = BARE_UPLOAD, .upload_stream = t->streams[0]};
  if (check(t->driver.end_capture(t->streams[0], &graph), "ending a capture") != TOOL_OK) return TOOL_FAILURE;
  const int result = check(t->driver.instantiate(&exec, graph, &params), "instantiating");
  *out_exec = exec;
  const int destroyed = check(t->driver.graph_destroy(graph), "destroying a graph");
  return result == TOOL_OK ? destroyed : result;
}

static void discard(launch_target *target, void *exec) { (void)of(target)->driver.exec_destroy(exec); }

/* Beginning and end ----------------------------------------------------------------------------------------------- */

static void destroy_objects(const bare_target *t) {
  for (size_t i = 0; i < LAUNCH_STREAMS; i++) {
    if (t->streams[i]) (void)t->driver.stream_destroy(t->streams[i]);
    if (t->joins[i]) (void)t->driver.event_destroy(t->joins[i]);
  }
  if (t->fork) (void)t->driver.event_destroy(t->fork);
  if (t->begin) (void)t->driver.event_destroy(t->begin);
  if (t->end) (void)t->driver.event_destroy(t->end);
  if (t->module) (void)t->driver.module_unload(t->module);
}

static int destroy(launch_target *target) {
  bare_target *t = of(target);
  if (t->context) {
    destroy_objects(t);
    (void)t->driver.context_set_current(NULL);
    (void)t->driver.primary_release(t->device);
  }
  free(t);
  return TOOL_OK;
}

static int load_kernel(bare_target *t) {
  int major = 0, minor = 0;
  char *image;
  int code = t->driver.device_get_attribute(&major, BARE_CAPABILITY_MAJOR, t->device);
  if (!code) code = t->driver.device_get_attribute(&minor, BARE_CAPABILITY_MINOR, t->device);
  if (code) return check(code, "asking what a device is");
  if (bare_compile("extern \"C\" __global__ void empty(void) {}", major, minor, &image) != TOOL_OK) return TOOL_FAILURE;
  code = t->driver.module_load(&t->module, image, 0, NULL, NULL);
  if (!code) code = t->driver.module_get_function(&t->kernel, t->module, "empty");
  free(image);
  return check(code, "loading a kernel");
}

static int make_objects(bare_target *t) {
  int code = t->driver.event_create(&t->begin, 0);
  if (!code) code = t->driver.event_create(&t->end, 0);
  if (!code) code = t->driver.event_create(&t->fork, BARE_NO_TIMING);
  for (size_t i = 0; i < LAUNCH_STREAMS && !code; i++) {
    code = t->driver.stream_create(&t->streams[i], BARE_NON_BLOCKING);
    if (!code) code = t->driver.event_create(&t->joins[i], BARE_NO_TIMING);
  }
  return check(code, "making streams and events");
}

static int prepare(bare_target *t, int ordinal) {
  if (bare_driver_load(&t->driver) != TOOL_OK) return TOOL_FAILURE;
  int code = t->driver.device_get(&t->device, ordinal);
  if (!code) code = t->driver.primary_retain(&t->context, t->device);
  if (!code) code = t->driver.context_set_current(t->context);
  if (code) return check(code, "opening a device");
  return load_kernel(t) == TOOL_OK ? make_objects(t) : TOOL_FAILURE;
}

/* Of "cuda" and "cuda:N", which Rondo has opened; -1 for another name. */
static int ordinal_of(const char *name) {
  if (strncmp(name, "cuda", 4) != 0) return -1;
  return name[4] == ':' ? atoi(name + 5) : 0;
}

int launch_bare_create(const char *device_name, launch_target **out) {
  static const launch_calls calls = {launch, fork_streams, follow, join, begin_capture, end_capture,
                                     replay, discard,      wait,   mark, elapsed,       destroy};
  const int ordinal = ordinal_of(device_name);
  *out = NULL;
  if (ordinal < 0) return TOOL_OK;
  bare_target *t = calloc(1, sizeof *t);
  if (!t) return tool_fail("there is no memory for the benchmark");
  t->base.calls = &calls;
  if (prepare(t, ordinal) == TOOL_OK) {
    *out = &t->base;
    return TOOL_OK;
  }
  (void)destroy(&t->base);
  return TOOL_FAILURE;
}
