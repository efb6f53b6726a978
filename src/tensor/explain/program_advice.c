/* SPDX-License-Identifier: MIT
 * What would raise the gain of recording a compiled program, by its costs, its sizes and what it was compiled with.
 */
#include "tensor/explain/program_advice.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>

#include "base/error.h"
#include "base/text.h"

#define MUCH 0.25 /* of a recorded run: what nodes cost besides their work */
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

static void advise(rondo_advice_list *list, rondo_advice_kind kind, const char *format, ...) RONDO_PRINTF(3, 4);
static void advise(rondo_advice_list *list, rondo_advice_kind kind, const char *format, ...) {
  assert(list->count < RONDO_MOST_ADVICE);
  rondo_advice *advice = &list->items[list->count++];
  va_list arguments;
  advice->kind = kind;
  va_start(arguments, format);
  (void)rondo_format_cut(advice->message, sizeof advice->message, format, arguments);
  va_end(arguments);
}

static void advise_unrecorded(const rondo_compiled *compiled, rondo_advice_list *list) {
  const rondo_gain *gain = &compiled->gain;
  if (compiled->exec != NULL) return;
  if (rondo_gain_pays(gain, compiled->bar.least, compiled->bar.runs))
    advise(list, RONDO_ADVICE_RECORD, "recording it would pay: compile it with RONDO_RECORD_ALWAYS");
  else if (gain->works < FEW_WORKS)
    advise(list, RONDO_ADVICE_LARGER_PIECE,
           "%" PRIu32
           " works are too few for a launch of their own: put more into one program, such as forward, "
           "backward and update of a step",
           gain->works);
}

/* What a recorded run is made of. */
static void advise_on_nodes(const rondo_compiled *compiled, rondo_advice_list *list) {
  const rondo_gain *gain = &compiled->gain;
  const rondo_costs *costs = &compiled->costs;
  if (gain->recorded_total_us <= 0) return;
  const double nodes_us = costs->launch_latency + gain->works * costs->launch_kernel;
  const double share = nodes_us / gain->recorded_total_us;
  if (share >= MUCH)
    advise(list, RONDO_ADVICE_JOIN_WORKS,
           "launching %" PRIu32
           " nodes takes about %.1f us of the %.1f us of a recorded run: fewer and larger kernels "
           "(operators that compute elements one after another join; larger batches) leave less of that",
           gain->works, nodes_us, gain->recorded_total_us);
  else if (share < LITTLE && gain->total_gain > 0 && gain->total_gain < 1 + LITTLE)
    advise(
        list, RONDO_ADVICE_WORK_BOUND,
        "the kernels themselves take about %.0f %% of a recorded run, which recording does not change; what it saves "
        "is %.1f us of the host's time",
        100 * (1 - share), gain->host_us - gain->recorded_host_us);
}

static void advise_on_branches(const rondo_compiled *compiled, rondo_branch_state branches, rondo_advice_list *list) {
  const rondo_compiled_info *info = &compiled->info;
  char with[RONDO_SIZE_TEXT], without[RONDO_SIZE_TEXT];
  if (branches == RONDO_BRANCH_REFUSED)
    advise(list, RONDO_ADVICE_BRANCHES,
           "operators do not run in parallel, because of RONDO_BRANCHES_NEVER: use RONDO_BRANCHES_AUTO");
  if (branches == RONDO_BRANCH_MEMORY)
    advise(list, RONDO_ADVICE_BRANCHES,
           "operators that depend on nothing of each other could run side by side with an arena of %s or more instead "
           "of %s: RONDO_BRANCHES_ALWAYS takes it",
           rondo_size_text(with, info->branch_bytes), rondo_size_text(without, info->arena_bytes));
}

static void advise_on_inputs(uint64_t input_bytes, rondo_advice_list *list) {
  char size[RONDO_SIZE_TEXT];
  if (input_bytes < MANY_BYTES) return;
  advise(list, RONDO_ADVICE_INPUTS,
         "%s of inputs are copied before each run that they are written for: stage them "
         "(rondo_compile_options.staged), which puts the copy into the graph, or make what does not change a state",
         rondo_size_text(size, input_bytes));
}

void rondo_advise(const rondo_compiled *compiled, rondo_branch_state branches, uint64_t input_bytes,
                  rondo_advice_list *out) {
  out->count = 0;
  if (compiled->has_gain) {
    advise_unrecorded(compiled, out);
    advise_on_nodes(compiled, out);
  } else {
    advise(out, RONDO_ADVICE_MEASURE, "what recording gains is not known: call rondo_compiled_measure");
  }
  advise_on_branches(compiled, branches, out);
  advise_on_inputs(input_bytes, out);
}
