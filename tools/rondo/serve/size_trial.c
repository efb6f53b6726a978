/* SPDX-License-Identifier: MIT
 * Sizes are recorded in capture mode, the largest first, so that its arena serves the others; a session has room for
 * some, so that more of them take several.
 */
#include "serve/size_trial.h"

#include "common/tool.h"

typedef struct trial {
  rondo_device *device;
  const recommender *model;
  const size_t *sizes;
  size_t count; /* at most RONDO_SESSION_MAX_SIZES */
  rondo_size_candidate *out;
  rondo_session *session;
} trial;

static const char name[] = "tried";

/* Nothing is read from the inputs in capture mode. */
static rondo_status record_sizes(const trial *t) {
  static const char unread;
  const void *const inputs[] = {&unread, &unread};
  TOOL_TRY(rondo_session_capture_begin(t->session, name));
  for (size_t i = 0; i < t->count; i++) {
    const rondo_request request = {RONDO_REQUEST_INIT, .rows = t->sizes[i], .inputs = inputs};
    tool_show_progress("trying size %zu of %zu", i + 1, t->count);
    TOOL_TRY(rondo_session_run(t->session, name, &request, NULL));
  }
  return rondo_session_capture_end(t->session);
}

static rondo_status measure_sizes(trial *t) {
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = recommender_build,
                                       .user = (void *)(uintptr_t)t->model};
  TOOL_TRY(rondo_session_create(t->device, NULL, &t->session));
  TOOL_TRY(rondo_session_add_model(t->session, name, &options));
  TOOL_TRY(record_sizes(t));
  for (size_t i = 0; i < t->count; i++) {
    rondo_model_graph graph = {.struct_size = sizeof graph};
    TOOL_TRY(rondo_session_get_graph(t->session, name, i, &graph));
    t->out[i] = (rondo_size_candidate){.rows = graph.rows,
                                       .run_us = graph.run_us,
                                       .bytes = graph.exec_bytes,
                                       .shared_bytes = graph.arena_bytes,
                                       .startup_us = graph.capture_us};
  }
  return RONDO_OK;
}

static int run(trial *t) {
  int result = measure_sizes(t) ? tool_fail_status("sizes beside the chosen ones") : TOOL_OK;
  if (rondo_session_destroy(t->session) && result == TOOL_OK) result = tool_fail_status("the session");
  t->session = NULL;
  return result;
}

int trial_measure(rondo_device *device, const recommender *model, const size_t *sizes, size_t count,
                  rondo_size_candidate *out) {
  trial t = {.device = device, .model = model};
  int result = TOOL_OK;
  for (size_t i = 0; i < count && result == TOOL_OK; i += t.count) {
    t.sizes = sizes + i;
    t.out = out + i;
    t.count = count - i < RONDO_SESSION_MAX_SIZES ? count - i : RONDO_SESSION_MAX_SIZES;
    result = run(&t);
  }
  return result;
}
