/* SPDX-License-Identifier: MIT
 * rondo_compiled_explain: its front door, what is found, and what would raise the gain. Nothing is run or measured.
 */
#include "tensor/explain/program_explain.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "tensor/program/shape.h"

#define MUCH 0.25 /* of a recorded run: what nodes cost beside their work */
#define LITTLE 0.1
#define FEW_WORKS 8          /* hardly worth a launch of their own */
#define MANY_BYTES (1 << 16) /* copies of which are worth a thought */

const char *rondo_advice_name(rondo_advice_kind kind) {
  static const char *const names[] = {[RONDO_ADVICE_MEASURE] = "MEASURE",
                                      [RONDO_ADVICE_RECORD] = "RECORD",
                                      [RONDO_ADVICE_LARGER_PIECE] = "LARGER_PIECE",
                                      [RONDO_ADVICE_JOIN_WORKS] = "JOIN_WORKS",
                                      [RONDO_ADVICE_WORK_BOUND] = "WORK_BOUND",
                                      [RONDO_ADVICE_BRANCHES] = "BRANCHES",
                                      [RONDO_ADVICE_INPUTS] = "INPUTS"};
  return names[kind];
}

const char *rondo_branch_state_name(rondo_branch_state state) {
  static const char *const names[] = {[RONDO_BRANCH_NONE] = "none",
                                      [RONDO_BRANCH_TAKEN] = "taken",
                                      [RONDO_BRANCH_REFUSED] = "refused",
                                      [RONDO_BRANCH_MEMORY] = "memory",
                                      [RONDO_BRANCH_BUDGET] = "budget"};
  return names[state];
}

const char *rondo_unrecorded_name(rondo_unrecorded reason) {
  static const char *const names[] = {[RONDO_UNRECORDED_ASKED] = "ASKED", [RONDO_UNRECORDED_NO_GAIN] = "NO_GAIN"};
  return names[reason];
}

const char *rondo_unexecuted_name(rondo_unexecuted reason) {
  static const char *const names[] = {[RONDO_UNEXECUTED_NOT_ASKED] = "NOT_ASKED",
                                      [RONDO_UNEXECUTED_SLOWER] = "SLOWER",
                                      [RONDO_UNEXECUTED_LINE] = "LINE",
                                      [RONDO_UNEXECUTED_BUSY] = "BUSY"};
  return names[reason];
}

/* Advice ----------------------------------------------------------------------------------------------------------- */

static void advise(rondo_explanation *e, rondo_advice_kind kind, const char *format, ...) RONDO_PRINTF(3, 4);
static void advise(rondo_explanation *e, rondo_advice_kind kind, const char *format, ...) {
  rondo_advice *advice = &e->advice[e->advice_count++];
  va_list arguments;
  advice->kind = kind;
  va_start(arguments, format);
  (void)rondo_format_cut(advice->message, sizeof advice->message, format, arguments);
  va_end(arguments);
}

static void advise_unrecorded(rondo_explanation *e) {
  const rondo_compiled *compiled = e->compiled;
  const rondo_gain *gain = &compiled->gain;
  if (compiled->exec != NULL) return;
  if (rondo_gain_pays(gain, compiled->bar.least, compiled->bar.runs))
    advise(e, RONDO_ADVICE_RECORD, "recording it would pay: compile it with RONDO_RECORD_ALWAYS");
  else if (gain->works < FEW_WORKS)
    advise(e, RONDO_ADVICE_LARGER_PIECE,
           "%" PRIu32
           " works are too few for a launch of their own: put more into one program, such as forward, "
           "backward and update of a step",
           gain->works);
}

/* What a recorded run is made of. */
static void advise_on_nodes(rondo_explanation *e) {
  const rondo_gain *gain = &e->compiled->gain;
  const rondo_costs *costs = &e->compiled->costs;
  if (gain->recorded_total_us <= 0) return;
  const double nodes_us = costs->launch_latency + gain->works * costs->launch_kernel;
  const double share = nodes_us / gain->recorded_total_us;
  if (share >= MUCH)
    advise(e, RONDO_ADVICE_JOIN_WORKS,
           "launching %" PRIu32
           " nodes takes about %.1f us of the %.1f us of a recorded run: fewer and larger kernels "
           "(operators that compute elements one after another join; larger batches) leave less of that",
           gain->works, nodes_us, gain->recorded_total_us);
  else if (share < LITTLE && gain->total_gain > 0 && gain->total_gain < 1 + LITTLE)
    advise(
        e, RONDO_ADVICE_WORK_BOUND,
        "the kernels themselves take about %.0f %% of a recorded run, which recording does not change; what it saves "
        "is %.1f us of the host's time",
        100 * (1 - share), gain->host_us - gain->recorded_host_us);
}

static void advise_on_branches(rondo_explanation *e) {
  const rondo_compiled_info *info = &e->compiled->info;
  char with[RONDO_SIZE_TEXT], without[RONDO_SIZE_TEXT];
  if (e->branches == RONDO_BRANCH_REFUSED)
    advise(e, RONDO_ADVICE_BRANCHES,
           "operators do not run side by side, as RONDO_BRANCHES_NEVER was asked for: RONDO_BRANCHES_AUTO lets them");
  if (e->branches == RONDO_BRANCH_MEMORY)
    advise(e, RONDO_ADVICE_BRANCHES,
           "operators that depend on nothing of each other could run side by side with an arena of %s or more instead "
           "of %s: RONDO_BRANCHES_ALWAYS takes it",
           rondo_size_text(with, info->branch_bytes), rondo_size_text(without, info->arena_bytes));
}

static void advise_on_inputs(rondo_explanation *e) {
  char size[RONDO_SIZE_TEXT];
  if (e->input_bytes < MANY_BYTES) return;
  advise(e, RONDO_ADVICE_INPUTS,
         "%s of inputs are copied in front of each run that they are written for: stage them "
         "(rondo_compile_options.staged), which puts the copy into the graph, or make what does not change a state",
         rondo_size_text(size, e->input_bytes));
}

/* Finding ---------------------------------------------------------------------------------------------------------- */

static void find_reason(rondo_explanation *e) {
  const rondo_compiled *compiled = e->compiled;
  if (compiled->info.unrecorded == RONDO_UNRECORDED_ASKED)
    (void)snprintf(e->reason, sizeof e->reason, "it was compiled with RONDO_RECORD_NEVER");
  if (compiled->info.unrecorded == RONDO_UNRECORDED_NO_GAIN)
    rondo_gain_explain(&compiled->gain, compiled->bar, e->reason, sizeof e->reason);
}

static void find_branches(rondo_explanation *e) {
  const rondo_compiled *compiled = e->compiled;
  if (compiled->info.has_branches)
    e->branches = RONDO_BRANCH_TAKEN;
  else if (compiled->branches == RONDO_BRANCHES_NEVER)
    e->branches = RONDO_BRANCH_REFUSED;
  else if (compiled->info.branches_ended_early)
    e->branches = RONDO_BRANCH_BUDGET;
  else if (compiled->info.branch_bytes > 0)
    e->branches = RONDO_BRANCH_MEMORY;
}

static void count_inputs(rondo_explanation *e) {
  for (size_t i = 0; i < e->compiled->values.count; i++) {
    const rondo_named_value *value = &e->compiled->values.items[i];
    if (value->kind != 'i') continue;
    e->staged_inputs += value->input != NULL;
    if (value->input != NULL) continue;
    e->inputs++;
    e->input_bytes += rondo_shape_bytes(&value->shape);
  }
}

static void find(const rondo_compiled *compiled, rondo_explanation *e) {
  *e = (rondo_explanation){.compiled = compiled};
  find_reason(e);
  find_branches(e);
  count_inputs(e);
  if (compiled->has_gain) {
    advise_unrecorded(e);
    advise_on_nodes(e);
  } else {
    advise(e, RONDO_ADVICE_MEASURE, "what recording gains is not known: call rondo_compiled_measure");
  }
  advise_on_branches(e);
  advise_on_inputs(e);
}

rondo_status rondo_compiled_explain(const rondo_compiled *compiled, rondo_explain_format format, char **out_text) {
  const char *const call = "rondo_compiled_explain";
  rondo_explanation explanation;
  rondo_text text;
  RONDO_TRY(rondo_require(call, "out_text", (const void *)out_text));
  *out_text = NULL;
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  if ((unsigned)format > RONDO_EXPLAIN_JSON)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "%s: no format is %u", call, (unsigned)format);
  find(compiled, &explanation);
  rondo_text_init(&text, &compiled->allocator);
  (format == RONDO_EXPLAIN_JSON ? rondo_explanation_to_json : rondo_explanation_to_text)(&explanation, &text);
  return rondo_text_hand_out(&text, out_text);
}
