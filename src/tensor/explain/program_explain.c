/* SPDX-License-Identifier: MIT
 * rondo_compiled_explain (FW-7): what is recorded, what is not and why, what recording gains, and how to gain more. The
 * result is a document (base/document/document.h); <rondo/program.h> defines its keys and their order. Nothing is run
 * or measured.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/document/document.h"
#include "base/error.h"
#include "base/text.h"
#include "base/versioned_struct.h"
#include "device/device.h"
#include "tensor/program/shape.h"
#include "tensor/run/compiled.h"

enum { MAX_NAMED = 8 }; /* at most this many states of an optimizer are named in the text */

/* Recording -------------------------------------------------------------------------------------------------------- */

static void explain_decision(const rondo_compiled *compiled, rondo_document *out) {
  static const char *const policies[] = {
      [RONDO_RECORD_ALWAYS] = "always", [RONDO_RECORD_NEVER] = "never", [RONDO_RECORD_AUTO] = "auto"};
  const bool is_named = compiled->name[0] != '\0', is_recorded = compiled->exec != NULL;
  rondo_document_line(out, is_named ? "program" : "the program");
  rondo_document_string(out, "name", compiled->name, is_named ? " '%'" : NULL);
  rondo_document_string(out, "device", compiled->device->name, " on %:");
  rondo_document_flag(out, "recorded", is_recorded, " recorded, a run is one launch of",
                      " not recorded, runs are eager");
  rondo_document_count(out, NULL, compiled->info.nodes, is_recorded ? " % node(s)" : NULL);
  rondo_document_string(out, "policy", policies[compiled->policy], NULL);
}

static void explain_reason(const rondo_compiled *compiled, rondo_document *out) {
  static const char *const names[] = {[RONDO_EAGER_REQUESTED] = "REQUESTED", [RONDO_EAGER_NO_GAIN] = "NO_GAIN"};
  char message[RONDO_GAIN_MESSAGE] = "";
  const char *shown =
      compiled->info.eager_reason == RONDO_EAGER_REQUESTED ? "it was compiled with RONDO_RECORD_NEVER" : message;
  if (compiled->info.eager_reason == RONDO_EAGER_NO_GAIN)
    rondo_gain_explain(&compiled->gain, compiled->bar, message, sizeof message);
  if (shown[0] != '\0') rondo_document_label(out, "not recorded");
  rondo_document_string(out, "reason", names[compiled->info.eager_reason], "%");
  rondo_document_string(out, "message", shown, shown[0] != '\0' ? ": %" : NULL);
}

/* Work ------------------------------------------------------------------------------------------------------------- */

/* Why the recorded graph's nodes are parallel, or why they are not. */
typedef enum branch_state {
  BRANCH_NONE, /* each operator depends on the previous one */
  BRANCH_TAKEN,
  BRANCH_REFUSED, /* RONDO_BRANCHES_NEVER */
  BRANCH_MEMORY,  /* they would take too much memory */
  BRANCH_BUDGET   /* not all were tried: too many operators, or too much work */
} branch_state;

static branch_state find_branches(const rondo_compiled *compiled) {
  if (compiled->info.has_branches) return BRANCH_TAKEN;
  if (compiled->branches == RONDO_BRANCHES_NEVER) return BRANCH_REFUSED;
  if (compiled->info.branches_ended_early) return BRANCH_BUDGET;
  return compiled->info.branch_bytes > 0 ? BRANCH_MEMORY : BRANCH_NONE;
}

static void explain_branches(const rondo_compiled_info *info, branch_state state, rondo_document *out) {
  static const struct {
    const char *name, *phrase;
  } states[] = {
      [BRANCH_NONE] = {"none", "none: each operator depends on the one before it"},
      [BRANCH_TAKEN] = {"taken", "parallel"},
      [BRANCH_REFUSED] = {"refused", "none: RONDO_BRANCHES_NEVER"},
      [BRANCH_MEMORY] = {"memory", "none: they would need an arena of"},
      [BRANCH_BUDGET] = {"budget", "none: the search for memory used up its budget before all widths were tried"},
  };
  const char *const phrase = state == BRANCH_BUDGET && info->branch_bytes == 0
                                 ? "none: not planned, as there are more than 16,384 operators"
                                 : states[state].phrase;
  rondo_document_label(out, "branches");
  rondo_document_string(out, "branches", states[state].name, phrase);
  if (state == BRANCH_TAKEN)
    rondo_document_count(out, NULL, info->dependencies,
                         info->dependencies == 1 ? "by % dependency" : "by % dependencies");
  if (state == BRANCH_MEMORY) rondo_document_bytes(out, NULL, info->branch_bytes, " % or more");
}

/* Inputs that are not staged, with their bytes, and staged ones. */
typedef struct inputs {
  uint64_t count, bytes, staged;
} inputs;

static inputs count_inputs(const rondo_compiled *compiled) {
  inputs found = {.count = 0};
  for (size_t i = 0; i < compiled->values.count; i++) {
    const rondo_named_value *value = &compiled->values.items[i];
    if (value->kind != 'i') continue;
    if (value->input != NULL) {
      found.staged++;
    } else {
      found.count++;
      found.bytes += rondo_shape_bytes(&value->shape);
    }
  }
  return found;
}

static void explain_work(const rondo_compiled *compiled, branch_state branches, rondo_document *out) {
  const rondo_compiled_info *info = &compiled->info;
  rondo_document_label(out, compiled->exec != NULL ? "recorded" : "work");
  rondo_document_count(out, "kernels", info->kernels, "% kernel(s)");
  rondo_document_count(out, "operators", info->operators, " of % operator(s)");
  rondo_document_count(out, "nodes", info->nodes, NULL);
  rondo_document_count(out, "dependencies", info->dependencies, NULL);
  explain_branches(info, branches, out);
  rondo_document_label(out, "arena");
  rondo_document_bytes(out, "arena_bytes", info->arena_bytes, "%");
  rondo_document_bytes(out, "branch_bytes", info->branch_bytes, NULL);
  rondo_document_bytes(out, "state_bytes", info->state_bytes, "; states %");
}

static void explain_inputs(const inputs *found, rondo_document *out) {
  const bool has_staged = found->staged > 0;
  if (found->count > 0 || has_staged) rondo_document_label(out, "inputs");
  rondo_document_count(out, "inputs", found->count, found->count > 0 ? "not recorded: writing % input(s)" : NULL);
  rondo_document_bytes(out, "input_bytes", found->bytes,
                       found->count > 0 ? " (%), each at its fixed address, by copies before a run" : NULL);
  rondo_document_count(out, "staged_inputs", found->staged,
                       has_staged ? "; recorded: copies of % staged input(s)" : NULL);
}

/* Gain ------------------------------------------------------------------------------------------------------------- */

static void explain_gain(const rondo_compiled *compiled, rondo_document *out) {
  rondo_document_label(out, "gain");
  if (compiled->has_gain) {
    rondo_document_object_begin(out, "gain");
    rondo_gain_describe(&compiled->gain, out);
    rondo_document_object_end(out);
  } else {
    rondo_document_null(out, "gain");
    rondo_document_say(out, "not known");
  }
}

/* Advice ----------------------------------------------------------------------------------------------------------- */

#define MUCH 0.25 /* a share of a recorded run: the cost of nodes besides their work */
#define LITTLE 0.1
#define FEW_WORKS 8          /* too few for a launch of their own */
#define MANY_BYTES (1 << 16) /* copies of this size are worth mentioning */

/* The list of advice. Each piece is written when it is added. */
typedef struct advice {
  rondo_document *out;
  size_t count;
} advice;

static void advise(advice *list, const char *kind, const char *format, ...) RONDO_PRINTF(3, 4);
static void advise(advice *list, const char *kind, const char *format, ...) {
  char message[320];
  va_list arguments;
  va_start(arguments, format);
  (void)rondo_format_cut(message, sizeof message, format, arguments);
  va_end(arguments);
  rondo_document_label(list->out, list->count++ == 0 ? "to gain more" : "");
  rondo_document_object_begin(list->out, NULL);
  rondo_document_string(list->out, "kind", kind, "%");
  rondo_document_string(list->out, "message", message, ": %");
  rondo_document_object_end(list->out);
}

static void advise_eager(const rondo_compiled *compiled, advice *list) {
  const rondo_gain *gain = &compiled->gain;
  if (compiled->exec != NULL) return;
  if (rondo_gain_pays(gain, compiled->bar.least, compiled->bar.runs))
    advise(list, "RECORD", "recording it would pay: compile it with RONDO_RECORD_ALWAYS");
  else if (gain->works < FEW_WORKS)
    advise(list, "LARGER_PIECE",
           "%" PRIu32
           " works are too few for a launch of their own: put more into one program, such as forward, "
           "backward and update of a step",
           gain->works);
}

/* Advice on the nodes of a recorded run. */
static void advise_on_nodes(const rondo_compiled *compiled, advice *list) {
  const rondo_gain *gain = &compiled->gain;
  const rondo_costs *costs = &compiled->costs;
  if (gain->recorded_total_us <= 0) return;
  const double nodes_us = costs->launch_latency + gain->works * costs->launch_kernel;
  const double share = nodes_us / gain->recorded_total_us;
  if (share >= MUCH)
    advise(list, "JOIN_WORKS",
           "launching %" PRIu32
           " nodes takes about %.1f us of the %.1f us of a recorded run: fewer and larger kernels "
           "(operators that compute elements one after another join; larger batches) leave less of that",
           gain->works, nodes_us, gain->recorded_total_us);
  else if (share < LITTLE && gain->total_gain > 0 && gain->total_gain < 1 + LITTLE)
    advise(
        list, "WORK_BOUND",
        "the kernels themselves take about %.0f %% of a recorded run, which recording does not change; what it saves "
        "is %.1f us of the host's time",
        100 * (1 - share), gain->host_us - gain->recorded_host_us);
}

static void advise_on_branches(const rondo_compiled *compiled, branch_state branches, advice *list) {
  const rondo_compiled_info *info = &compiled->info;
  char with[RONDO_SIZE_TEXT], without[RONDO_SIZE_TEXT];
  if (branches == BRANCH_REFUSED)
    advise(list, "BRANCHES",
           "operators do not run in parallel, because of RONDO_BRANCHES_NEVER: use RONDO_BRANCHES_AUTO");
  if (branches == BRANCH_MEMORY)
    advise(list, "BRANCHES",
           "operators that depend on nothing of each other could run side by side with an arena of %s or more instead "
           "of %s: RONDO_BRANCHES_ALWAYS takes it",
           rondo_size_text(with, info->branch_bytes), rondo_size_text(without, info->arena_bytes));
}

static void advise_on_inputs(uint64_t input_bytes, advice *list) {
  char size[RONDO_SIZE_TEXT];
  if (input_bytes < MANY_BYTES) return;
  advise(list, "INPUTS",
         "%s of inputs are copied before each run that they are written for: stage them "
         "(rondo_compile_options.staged), which puts the copy into the graph, or make what does not change a state",
         rondo_size_text(size, input_bytes));
}

/* Advice on how to gain more from recording. `input_bytes`: bytes of inputs that are not staged. */
static void explain_advice(const rondo_compiled *compiled, branch_state branches, uint64_t input_bytes,
                           rondo_document *out) {
  advice list = {.out = out};
  rondo_document_list_begin(out, "advice");
  if (compiled->has_gain) {
    advise_eager(compiled, &list);
    advise_on_nodes(compiled, &list);
  } else if (compiled->ranks.communicator == NULL) { /* else it cannot be measured */
    advise(&list, "MEASURE", "what recording gains is not known: call rondo_compiled_measure");
  }
  advise_on_branches(compiled, branches, &list);
  advise_on_inputs(input_bytes, &list);
  rondo_document_list_end(out);
}

/* Executor --------------------------------------------------------------------------------------------------------- */

/* How eager runs are executed, where there is a choice. */
static void explain_executor(const rondo_compiled_info *info, rondo_document *out) {
  static const char *const reasons[] = {[RONDO_SEQUENTIAL_FASTER] = "SEQUENTIAL_FASTER",
                                        [RONDO_SEQUENTIAL_CHAIN] = "CHAIN",
                                        [RONDO_SEQUENTIAL_BUSY] = "EXECUTOR_BUSY"};
  const bool is_used = info->sequential_reason == RONDO_SEQUENTIAL_NONE, is_measured = info->executor_us > 0;
  if (info->sequential_reason == RONDO_SEQUENTIAL_NO_EXECUTOR) {
    rondo_document_null(out, "executor");
    return;
  }
  rondo_document_label(out, "executor");
  rondo_document_object_begin(out, "executor");
  rondo_document_flag(out, "used", is_used, "used for eager runs", "not used");
  rondo_document_string(out, "reason", is_used ? NULL : reasons[info->sequential_reason],
                        ", %: eager runs execute operators one after another");
  rondo_document_count(out, "expensive", info->expensive, is_used ? "% expensive operator(s)" : NULL);
  rondo_document_real(out, "sequential_us", info->sequential_us, 1, is_measured ? "; one after another % us" : NULL);
  rondo_document_real(out, "executor_us", info->executor_us, 1, is_measured ? "with the executor % us" : NULL);
  rondo_document_object_end(out);
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

/* Compares the planned memory with what the order needs, and the order with the program's own order. */
static void explain_memory(const rondo_compiled_info *info, rondo_document *out) {
  const bool is_known = info->lower_bound != 0;
  if (is_known) rondo_document_label(out, "memory");
  rondo_document_object_begin(out, "memory");
  rondo_document_ratio(out, info->arena_bytes, info->lower_bound, "% of its lower bound");
  rondo_document_bytes(out, "lower_bound", info->lower_bound, NULL);
  rondo_document_bytes(out, "straight_bytes", info->straight_bytes, NULL);
  rondo_document_bytes(out, "order_peak", info->order_peak, is_known ? "; results live at once %" : NULL);
  rondo_document_bytes(out, "program_peak", info->program_peak, is_known ? "in the program's order %" : NULL);
  rondo_document_bytes(out, "packed_bytes", info->packed_bytes,
                       is_known && info->packed_bytes > 0 ? "; packed states %" : NULL);
  rondo_document_object_end(out);
}

/* Updates ---------------------------------------------------------------------------------------------------------- */

/* Returns the first state from index `from` on that is updated as the state `like`, in its group. If `like` is the
 * number of values, any state that is updated will do. Returns the number of values if no state is left. */
static size_t find_trained(const rondo_compiled *compiled, size_t from, size_t like) {
  const size_t count = compiled->values.count;
  for (; from < count; from++) {
    const rondo_named_value *value = &compiled->values.items[from];
    if (value->trained_by == NULL) continue;
    const rondo_named_value *other = like == count ? value : &compiled->values.items[like];
    if (value->group == other->group && value->trained_by == other->trained_by) break;
  }
  return from;
}

static void explain_group(const rondo_named_value *state, rondo_document *out) {
  rondo_document_string(out, "optimizer", state->trained_by, state->group > 0 ? "%," : "%:");
  if (state->group > 0) rondo_document_count(out, NULL, state->group - 1, " group %:");
}

static void explain_states(const rondo_compiled *compiled, size_t first, rondo_document *out) {
  const rondo_named_value *state = &compiled->values.items[first];
  uint64_t count = 0, listed = 0;
  for (size_t i = first; i < compiled->values.count; i = find_trained(compiled, i + 1, first)) count++;
  rondo_document_label(out, "updates");
  rondo_document_object_begin(out, NULL);
  explain_group(state, out);
  rondo_document_count(out, NULL, count, " % state(s)");
  rondo_document_list_begin(out, "states");
  for (size_t i = first; i < compiled->values.count; i = find_trained(compiled, i + 1, first), listed++)
    rondo_document_string_item(out, compiled->values.items[i].name, listed < MAX_NAMED ? "'%'" : NULL);
  rondo_document_list_end(out);
  rondo_document_count(out, NULL, count - MAX_NAMED, count > MAX_NAMED ? " and % more" : NULL);
  if (state->group > 0)
    rondo_document_count(out, "group", state->group - 1, NULL);
  else
    rondo_document_null(out, "group");
  rondo_document_object_end(out);
}

static void explain_updates(const rondo_compiled *compiled, rondo_document *out) {
  const size_t end = compiled->values.count;
  rondo_document_list_begin(out, "updates");
  for (size_t i = 0; (i = find_trained(compiled, i, end)) < end; i++)
    if (find_trained(compiled, 0, i) == i) explain_states(compiled, i, out);
  rondo_document_list_end(out);
}

/* Ranks ------------------------------------------------------------------------------------------------------------ */

static void explain_ranks(const rondo_compiled_info *info, rondo_document *out) {
  if (info->ranks == 0) {
    rondo_document_null(out, "data_parallel");
    return;
  }
  rondo_document_label(out, "ranks");
  rondo_document_object_begin(out, "data_parallel");
  rondo_document_count(out, "ranks", info->ranks, "% rank(s)");
  rondo_document_count(out, "buckets", info->buckets, "% bucket(s) of gradients");
  rondo_document_bytes(out, "reduced_bytes", info->reduced_bytes, "; collectives of % in a run");
  rondo_document_bytes(out, "optimizer_bytes", info->optimizer_bytes, "the optimizer keeps % on this rank");
  rondo_document_object_end(out);
}

/* Patterns --------------------------------------------------------------------------------------------------------- */

/* The replaced pattern at this index. Returns false past the last. */
static bool find_pattern(const rondo_compiled *compiled, size_t index, rondo_compiled_pattern *out) {
  for (size_t i = 0; i < RONDO_PATTERN_COUNT; i++) {
    if (compiled->patterns.of[i] == 0 || index-- > 0) continue;
    *out = (rondo_compiled_pattern){.name = rondo_pattern_at(i)->name, .count = compiled->patterns.of[i]};
    return true;
  }
  return false;
}

rondo_status rondo_compiled_get_pattern(const rondo_compiled *compiled, size_t index,
                                        rondo_compiled_pattern *out_pattern) {
  static const char call[] = "rondo_compiled_get_pattern";
  rondo_compiled_pattern found;
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  RONDO_TRY(rondo_require(call, "out_pattern", out_pattern));
  if (!find_pattern(compiled, index, &found))
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "%s: there is no replaced pattern %zu", call, index);
  return rondo_versioned_write("rondo_compiled_pattern", &found, out_pattern, sizeof found);
}

static void explain_patterns(const rondo_compiled *compiled, rondo_document *out) {
  rondo_compiled_pattern found;
  rondo_document_list_begin(out, "patterns");
  for (size_t i = 0; find_pattern(compiled, i, &found); i++) {
    if (i == 0) rondo_document_label(out, "patterns");
    rondo_document_object_begin(out, NULL);
    rondo_document_string(out, "name", found.name, i == 0 ? "%" : ", %");
    rondo_document_count(out, "count", found.count, " %");
    rondo_document_object_end(out);
  }
  rondo_document_list_end(out);
}

/* The public call -------------------------------------------------------------------------------------------------- */

static void explain(const rondo_compiled *compiled, rondo_document *out) {
  const inputs found = count_inputs(compiled);
  const branch_state branches = find_branches(compiled);
  rondo_document_number(out, "rondo_compiled", 1, NULL);
  explain_decision(compiled, out);
  explain_reason(compiled, out);
  explain_work(compiled, branches, out);
  explain_inputs(&found, out);
  explain_gain(compiled, out);
  explain_advice(compiled, branches, found.bytes, out);
  explain_executor(&compiled->info, out);
  explain_memory(&compiled->info, out);
  explain_updates(compiled, out);
  explain_ranks(&compiled->info, out);
  explain_patterns(compiled, out);
}

rondo_status rondo_compiled_explain(const rondo_compiled *compiled, rondo_explain_format format, char **out_text) {
  const char *const call = "rondo_compiled_explain";
  rondo_document document;
  rondo_text text;
  RONDO_TRY(rondo_require(call, "out_text", (const void *)out_text));
  *out_text = NULL;
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  if ((unsigned)format > RONDO_EXPLAIN_JSON)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: %u is no format: use RONDO_EXPLAIN_TEXT or RONDO_EXPLAIN_JSON", call, (unsigned)format);
  rondo_text_init(&text, &compiled->allocator);
  rondo_document_begin(&document, &text, format == RONDO_EXPLAIN_JSON);
  explain(compiled, &document);
  rondo_document_end(&document);
  return rondo_text_hand_out(&text, out_text);
}
