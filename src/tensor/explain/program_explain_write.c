/* SPDX-License-Identifier: MIT
 * An explanation of a compiled program as lines for people, and as JSON, whose fields and their order are the header's
 * (<rondo/program.h>).
 */
#include <inttypes.h>
#include <string.h>

#include "device/device.h"
#include "tensor/explain/program_explain.h"

/* Text ------------------------------------------------------------------------------------------------------------- */

enum { LABEL = 13 };

static void put_label(rondo_text *out, const char *label) { rondo_text_add(out, "  %-*s", LABEL, label); }

/* "3 inputs", "1 input" */
static void put_count(rondo_text *out, uint64_t count, const char *one, const char *several) {
  rondo_text_add_grouped(out, count);
  rondo_text_add(out, " %s", count == 1 ? one : several);
}

static void put_size(rondo_text *out, uint64_t bytes) {
  char size[RONDO_SIZE_TEXT];
  rondo_text_add(out, "%s", rondo_size_text(size, bytes));
}

/* Escaped as in JSON, so that a line stays one. */
static void put_name(rondo_text *out, const char *name) {
  char escaped[256];
  const size_t length = rondo_json_escape(escaped, sizeof escaped, name);
  rondo_text_add(out, "'");
  rondo_text_add_bytes(out, escaped, length);
  rondo_text_add(out, "'");
}

static void put_heading(const rondo_explanation *e, rondo_text *out) {
  const rondo_compiled *compiled = e->compiled;
  rondo_text_add(out, compiled->name[0] == '\0' ? "the program" : "program ");
  if (compiled->name[0] != '\0') put_name(out, compiled->name);
  rondo_text_add(out, " on %s: ", compiled->device->name);
  if (compiled->exec == NULL) {
    rondo_text_add(out, "not recorded, runs go kernel by kernel\n");
    return;
  }
  rondo_text_add(out, "recorded, a run is one launch of ");
  put_count(out, compiled->info.nodes, "node\n", "nodes\n");
}

static void put_recorded(const rondo_explanation *e, rondo_text *out) {
  const rondo_compiled_info *info = &e->compiled->info;
  put_label(out, e->compiled->exec != NULL ? "recorded" : "work");
  put_count(out, info->kernels, "kernel of ", "kernels of ");
  put_count(out, info->operators, "operator", "operators");
  rondo_text_add(out, "; arena ");
  put_size(out, info->arena_bytes);
  rondo_text_add(out, ", states ");
  put_size(out, info->state_bytes);
  if (e->staged_inputs > 0) {
    rondo_text_add(out, "; copies of ");
    put_count(out, e->staged_inputs, "staged input", "staged inputs");
  }
  rondo_text_add(out, "\n");
}

/* How near the plan is to what the order asks for, and the order to the program's. */
static void put_memory(const rondo_explanation *e, rondo_text *out) {
  const rondo_compiled_info *info = &e->compiled->info;
  if (info->lower_bound == 0) return;
  put_label(out, "memory");
  rondo_text_add_ratio(out, info->arena_bytes, info->lower_bound);
  rondo_text_add(out, " of its lower bound; results live at once ");
  put_size(out, info->order_peak);
  rondo_text_add(out, ", in the program's order ");
  put_size(out, info->program_peak);
  rondo_text_add(out, "\n");
}

static void put_branches(const rondo_explanation *e, rondo_text *out) {
  const rondo_compiled_info *info = &e->compiled->info;
  put_label(out, "branches");
  switch (e->branches) {
    case RONDO_BRANCH_NONE:
      rondo_text_add(out, "none: its operators depend on each other in one line\n");
      return;
    case RONDO_BRANCH_TAKEN:
      rondo_text_add(out, "parallel, by ");
      put_count(out, info->dependencies, "dependency\n", "dependencies\n");
      return;
    case RONDO_BRANCH_REFUSED:
      rondo_text_add(out, "none: RONDO_BRANCHES_NEVER\n");
      return;
    case RONDO_BRANCH_MEMORY:
      rondo_text_add(out, "none: they would need an arena of ");
      put_size(out, info->branch_bytes);
      rondo_text_add(out, " or more\n");
      return;
    case RONDO_BRANCH_BUDGET:
      rondo_text_add(out, info->branch_bytes == 0
                              ? "none: not planned, as there are more than 16,384 operators\n"
                              : "none: the search for memory used up its budget before all widths were tried\n");
  }
}

static void put_unrecorded(const rondo_explanation *e, rondo_text *out) {
  if (e->reason[0] != '\0') {
    put_label(out, "not recorded");
    rondo_text_add(out, "%s: %s\n", rondo_unrecorded_name(e->compiled->info.unrecorded), e->reason);
  }
  if (e->inputs == 0) return;
  put_label(out, "not recorded");
  rondo_text_add(out, "writing ");
  put_count(out, e->inputs, "input", "inputs");
  rondo_text_add(out, " (");
  put_size(out, e->input_bytes);
  rondo_text_add(out, "), each at its fixed address: copies in front of a run\n");
}

static void put_us(rondo_text *out, double us) {
  rondo_text_add_fixed(out, us, 1);
  rondo_text_add(out, " us");
}

/* How un-recorded runs go, where there is a choice. */
static void put_executor(const rondo_explanation *e, rondo_text *out) {
  const rondo_compiled_info *info = &e->compiled->info;
  if (info->unexecuted == RONDO_UNEXECUTED_NOT_ASKED) return;
  put_label(out, "executor");
  if (info->unexecuted == RONDO_UNEXECUTED_NONE)
    rondo_text_add(out, "runs un-recorded, %u expensive operators", info->expensive);
  else
    rondo_text_add(out, "not used, %s: un-recorded runs go in a line", rondo_unexecuted_name(info->unexecuted));
  if (info->executor_us > 0) {
    rondo_text_add(out, "; measured ");
    put_us(out, info->executor_us);
    rondo_text_add(out, ", in a line ");
    put_us(out, info->line_us);
  }
  rondo_text_add(out, "\n");
}

/* Updates: a run of states in the list of values for each optimizer; states come first. The state at or behind `from`
 * that an optimizer trains, by this name or, for NULL, by any; the number of values: none. */
static size_t find_trained(const rondo_compiled *compiled, size_t from, const char *optimizer) {
  for (; from < compiled->values.count; from++) {
    const char *by = compiled->values.items[from].trained_by;
    if (by != NULL && (optimizer == NULL || strcmp(by, optimizer) == 0)) return from;
  }
  return from;
}

/* Whether no state before it is trained by the same. */
static bool is_first_trained(const rondo_compiled *compiled, size_t index) {
  return find_trained(compiled, 0, compiled->values.items[index].trained_by) == index;
}

enum { MOST_NAMED = 8 };

static void put_updates_of(const rondo_compiled *compiled, size_t first, rondo_text *out) {
  const char *optimizer = compiled->values.items[first].trained_by;
  size_t count = 0, named = 0;
  for (size_t i = first; i < compiled->values.count; i = find_trained(compiled, i + 1, optimizer)) count++;
  put_label(out, "updates");
  rondo_text_add(out, "%s: ", optimizer);
  put_count(out, count, "state", "states");
  for (size_t i = first; named < MOST_NAMED && i < compiled->values.count; named++) {
    rondo_text_add(out, ", ");
    put_name(out, compiled->values.items[i].name);
    i = find_trained(compiled, i + 1, optimizer);
  }
  if (count > named) rondo_text_add(out, " and %zu more", count - named);
  rondo_text_add(out, "\n");
}

static void put_updates(const rondo_compiled *compiled, rondo_text *out) {
  for (size_t i = 0; (i = find_trained(compiled, i, NULL)) < compiled->values.count; i++)
    if (is_first_trained(compiled, i)) put_updates_of(compiled, i, out);
}

void rondo_explanation_to_text(const rondo_explanation *e, rondo_text *out) {
  put_heading(e, out);
  put_recorded(e, out);
  put_memory(e, out);
  put_branches(e, out);
  put_updates(e->compiled, out);
  put_unrecorded(e, out);
  put_executor(e, out);
  put_label(out, "gain");
  if (e->compiled->has_gain)
    rondo_gain_to_text(&e->compiled->gain, out);
  else
    rondo_text_add(out, "not known");
  rondo_text_add(out, "\n");
  for (size_t i = 0; i < e->advice_count; i++) {
    put_label(out, i == 0 ? "to gain more" : "");
    rondo_text_add(out, "%s: %s\n", rondo_advice_name(e->advice[i].kind), e->advice[i].message);
  }
}

/* JSON ------------------------------------------------------------------------------------------------------------- */

static void put_number(rondo_text *out, const char *key, uint64_t value) {
  rondo_json_key(out, key);
  rondo_json_u64(out, value);
}

static void put_string(rondo_text *out, const char *key, const char *value) {
  rondo_json_key(out, key);
  rondo_json_string(out, value);
}

static const char *name_policy(rondo_record_policy policy) {
  static const char *const names[] = {
      [RONDO_RECORD_ALWAYS] = "always", [RONDO_RECORD_NEVER] = "never", [RONDO_RECORD_WHERE_IT_PAYS] = "where it pays"};
  return names[policy];
}

static void put_decision(const rondo_explanation *e, rondo_text *out) {
  const rondo_compiled *compiled = e->compiled;
  put_string(out, "name", compiled->name);
  put_string(out, "device", compiled->device->name);
  rondo_json_key(out, "recorded");
  rondo_json_bool(out, compiled->exec != NULL);
  put_string(out, "policy", name_policy(compiled->policy));
  put_string(out, "reason", rondo_unrecorded_name(compiled->info.unrecorded));
  put_string(out, "message", e->reason);
}

static void put_sizes(const rondo_explanation *e, rondo_text *out) {
  const rondo_compiled_info *info = &e->compiled->info;
  put_number(out, "kernels", info->kernels);
  put_number(out, "operators", info->operators);
  put_number(out, "nodes", info->nodes);
  put_number(out, "dependencies", info->dependencies);
  put_string(out, "branches", rondo_branch_state_name(e->branches));
  put_number(out, "arena_bytes", info->arena_bytes);
  put_number(out, "branch_bytes", info->branch_bytes);
  put_number(out, "state_bytes", info->state_bytes);
  put_number(out, "inputs", e->inputs);
  put_number(out, "input_bytes", e->input_bytes);
  put_number(out, "staged_inputs", e->staged_inputs);
}

static void put_gain(const rondo_explanation *e, rondo_text *out) {
  if (!e->compiled->has_gain) {
    put_string(out, "gain", NULL);
    return;
  }
  rondo_json_key(out, "gain");
  rondo_json_object_begin(out);
  rondo_gain_to_json(&e->compiled->gain, out);
  rondo_json_object_end(out);
}

static void put_execution(const rondo_explanation *e, rondo_text *out) {
  const rondo_compiled_info *info = &e->compiled->info;
  if (info->unexecuted == RONDO_UNEXECUTED_NOT_ASKED) {
    put_string(out, "executor", NULL);
    return;
  }
  rondo_json_key(out, "executor");
  rondo_json_object_begin(out);
  rondo_json_key(out, "used");
  rondo_json_bool(out, info->unexecuted == RONDO_UNEXECUTED_NONE);
  put_string(out, "reason", rondo_unexecuted_name(info->unexecuted));
  put_number(out, "expensive", info->expensive);
  rondo_json_key(out, "line_us");
  rondo_json_double(out, info->line_us);
  rondo_json_key(out, "executor_us");
  rondo_json_double(out, info->executor_us);
  rondo_json_object_end(out);
}

static void put_memory_fields(const rondo_explanation *e, rondo_text *out) {
  const rondo_compiled_info *info = &e->compiled->info;
  rondo_json_key(out, "memory");
  rondo_json_object_begin(out);
  put_number(out, "lower_bound", info->lower_bound);
  put_number(out, "straight_bytes", info->straight_bytes);
  put_number(out, "order_peak", info->order_peak);
  put_number(out, "program_peak", info->program_peak);
  rondo_json_object_end(out);
}

static void put_states(const rondo_compiled *compiled, size_t first, rondo_text *out) {
  const char *optimizer = compiled->values.items[first].trained_by;
  rondo_json_object_begin(out);
  put_string(out, "optimizer", optimizer);
  rondo_json_key(out, "states");
  rondo_json_array_begin(out);
  for (size_t i = first; i < compiled->values.count; i = find_trained(compiled, i + 1, optimizer))
    rondo_json_string(out, compiled->values.items[i].name);
  rondo_json_array_end(out);
  rondo_json_object_end(out);
}

static void put_update_fields(const rondo_compiled *compiled, rondo_text *out) {
  rondo_json_key(out, "updates");
  rondo_json_array_begin(out);
  for (size_t i = 0; (i = find_trained(compiled, i, NULL)) < compiled->values.count; i++)
    if (is_first_trained(compiled, i)) put_states(compiled, i, out);
  rondo_json_array_end(out);
}

void rondo_explanation_to_json(const rondo_explanation *e, rondo_text *out) {
  rondo_json_object_begin(out);
  put_number(out, "rondo_compiled", 1);
  put_decision(e, out);
  put_sizes(e, out);
  put_gain(e, out);
  rondo_json_key(out, "advice");
  rondo_json_array_begin(out);
  for (size_t i = 0; i < e->advice_count; i++) {
    rondo_json_object_begin(out);
    put_string(out, "kind", rondo_advice_name(e->advice[i].kind));
    put_string(out, "message", e->advice[i].message);
    rondo_json_object_end(out);
  }
  rondo_json_array_end(out);
  put_execution(e, out);
  put_memory_fields(e, out);
  put_update_fields(e->compiled, out);
  rondo_json_object_end(out);
}
