/* SPDX-License-Identifier: MIT
 * Calls that are replayed: each case is a function in a tree of its own, so that none disturbs another.
 */
#include "bench/tree_calls.h"

#include <inttypes.h>
#include <stdlib.h>

#include "bench/bench_kernels.h"
#include "common/tool.h"

const tree_case tree_cases[TREE_CASES] = {
    {"no input moves", 0, 1, RONDO_BINDING_AUTOMATIC},      {"one patched, 1 reader", 1, 1, RONDO_BINDING_PATCH},
    {"one patched, 4 readers", 1, 4, RONDO_BINDING_PATCH},  {"four patched, 1 reader", 4, 1, RONDO_BINDING_PATCH},
    {"four patched, 4 readers", 4, 4, RONDO_BINDING_PATCH}, {"one copied, 64 KiB", 1, 1, RONDO_BINDING_COPY},
};

typedef struct case_state {
  const tree_calls *calls;
  const tree_case *is;
  rondo_tree *tree;
  rondo_function *function;
  rondo_input inputs[TREE_INPUTS];
  rondo_buffer *output;
  bool is_moved;
} case_state;

struct tree_calls {
  rondo_device *device;
  uint32_t nodes;
  rondo_kernel *kernel;
  rondo_stream *stream;
  void *inputs[TREE_INPUTS], *others[TREE_MOST_MOVING]; /* `others`: where moving inputs are at every second call */
  case_state cases[TREE_CASES];
};

/* Which input kernel `i` reads. */
static size_t input_of(const tree_case *of, uint32_t i) {
  return i < of->moving * of->readers ? i / of->readers : of->moving + i % (TREE_INPUTS - of->moving);
}

static rondo_status read_inputs(rondo_call *call, void *user) {
  const case_state *state = user;
  rondo_stream *stream = rondo_call_stream(call);
  void *out;
  TOOL_TRY(rondo_call_output(call, 0, sizeof(uint32_t), NULL, &out));
  for (uint32_t i = 0; i < state->calls->nodes; i++) {
    const void *in = rondo_call_input(call, input_of(state->is, i));
    TOOL_TRY(rondo_launch(stream, state->calls->kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&in, &out)));
  }
  return RONDO_OK;
}

/* Calling --------------------------------------------------------------------------------------------------------- */

void tree_calls_turn(tree_calls *calls, size_t which) {
  case_state *state = &calls->cases[which];
  rondo_buffer_release(state->output);
  state->output = NULL;
  state->is_moved = !state->is_moved;
  for (size_t i = 0; i < state->is->moving; i++)
    state->inputs[i].address = state->is_moved ? calls->others[i] : calls->inputs[i];
}

int tree_calls_call(tree_calls *calls, size_t which) {
  case_state *state = &calls->cases[which];
  return rondo_function_call(state->function, calls->stream, state->inputs, TREE_INPUTS, &state->output, 1)
             ? tool_fail_status("a call")
             : TOOL_OK;
}

int tree_calls_wait(tree_calls *calls) {
  return rondo_stream_synchronize(calls->stream) ? tool_fail_status("waiting for calls") : TOOL_OK;
}

int tree_calls_check(const tree_calls *calls) {
  for (size_t i = 0; i < TREE_CASES; i++) {
    const tree_case *of = &tree_cases[i];
    rondo_tree_info info = {.struct_size = sizeof info};
    if (rondo_tree_get_info(calls->cases[i].tree, &info)) return tool_fail_status("a tree");
    if (info.replayed + 2 != info.calls || info.recorded != 1)
      return tool_fail("of %" PRIu64 " calls (%s) %" PRIu64 " were replayed", info.calls, of->name, info.replayed);
    if (of->binding == RONDO_BINDING_PATCH ? info.copied_inputs != 0 : of->moving > 0 && info.patched_inputs != 0)
      return tool_fail("inputs (%s) came in another way", of->name);
  }
  return TOOL_OK;
}

/* Making ready ---------------------------------------------------------------------------------------------------- */

static rondo_status make_case(tree_calls *calls, size_t which) {
  case_state *state = &calls->cases[which];
  static const uint32_t kinds[TREE_INPUTS] = {RONDO_INPUT_MOVING, RONDO_INPUT_MOVING, RONDO_INPUT_MOVING,
                                              RONDO_INPUT_MOVING, RONDO_INPUT_MOVING, RONDO_INPUT_MOVING,
                                              RONDO_INPUT_MOVING, RONDO_INPUT_MOVING};
  *state = (case_state){.calls = calls, .is = &tree_cases[which]};
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = state->is->name,      .body = read_inputs, .user = state, .inputs = kinds,
      .input_count = TREE_INPUTS,  .binding = state->is->binding};
  for (size_t i = 0; i < TREE_INPUTS; i++)
    state->inputs[i] = (rondo_input){.address = calls->inputs[i], .bytes = TREE_INPUT_BYTES};
  TOOL_TRY(rondo_tree_create(calls->device, NULL, &state->tree));
  return rondo_function_create(state->tree, &options, &state->function);
}

static rondo_status make_objects(tree_calls *calls) {
  TOOL_TRY(rondo_kernel_create(calls->device, &bench_read_word, &calls->kernel));
  TOOL_TRY(rondo_stream_create(calls->device, NULL, &calls->stream));
  for (size_t i = 0; i < TREE_INPUTS; i++)
    TOOL_TRY(rondo_malloc(calls->device, TREE_INPUT_BYTES, "input", &calls->inputs[i]));
  for (size_t i = 0; i < TREE_MOST_MOVING; i++)
    TOOL_TRY(rondo_malloc(calls->device, TREE_INPUT_BYTES, "other", &calls->others[i]));
  for (size_t i = 0; i < TREE_CASES; i++) TOOL_TRY(make_case(calls, i));
  return RONDO_OK;
}

int tree_calls_create(rondo_device *device, uint32_t nodes, tree_calls **out) {
  tree_calls *calls = calloc(1, sizeof *calls);
  *out = NULL;
  if (!calls) return tool_fail_memory("the benchmark");
  calls->device = device;
  calls->nodes = nodes;
  if (!make_objects(calls)) {
    *out = calls;
    return TOOL_OK;
  }
  const int result = tool_fail_status("the benchmark's trees");
  (void)tree_calls_destroy(calls); /* the first failure is the one that is said */
  return result;
}

static int free_inputs(const tree_calls *calls, void *const *inputs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (rondo_free(calls->device, inputs[i])) return tool_fail_status("an input");
  }
  return TOOL_OK;
}

int tree_calls_destroy(tree_calls *calls) {
  int result = TOOL_OK;
  if (!calls) return TOOL_OK;
  for (size_t i = 0; i < TREE_CASES; i++) {
    rondo_buffer_release(calls->cases[i].output);
    if (rondo_tree_destroy(calls->cases[i].tree)) result = tool_fail_status("a tree");
  }
  if (rondo_stream_destroy(calls->stream)) result = tool_fail_status("a stream");
  if (free_inputs(calls, calls->inputs, TREE_INPUTS) != TOOL_OK) result = TOOL_FAILURE;
  if (free_inputs(calls, calls->others, TREE_MOST_MOVING) != TOOL_OK) result = TOOL_FAILURE;
  rondo_kernel_destroy(calls->kernel);
  free(calls);
  return result;
}
