/* SPDX-License-Identifier: MIT
 * Names, slots, and the passes over the rules. Whenever the address in a parameter becomes part of something else, the
 * parameter has escaped: then nothing more is said about what is not done with its memory. Threads: one at a time.
 */
#include "device/cuda/ptx/ptx_flow.h"

#include "base/error.h"
#include "base/hash.h"

/* A register rises at most five times, but a pass may carry each change by one rule only. */
enum { MOST_PASSES = 64, MOST_PROBES = 64, MOST_PARAMETERS = 4096 };

/* Life and names --------------------------------------------------------------------------------------------------- */

void ptx_flow_init(ptx_flow *flow, const rondo_allocator *allocator) { *flow = (ptx_flow){.allocator = allocator}; }

void ptx_flow_free(ptx_flow *flow) {
  rondo_array_free(flow->allocator, &flow->values);
  rondo_array_free(flow->allocator, &flow->rules);
  rondo_array_free(flow->allocator, &flow->accesses);
  rondo_array_free(flow->allocator, &flow->sizes);
  rondo_array_free(flow->allocator, &flow->escaped);
  rondo_array_free(flow->allocator, &flow->names);
  rondo_release(flow->allocator, flow->table, flow->table_size, sizeof *flow->table);
}

rondo_status ptx_flow_add_slot(ptx_flow *flow, ptx_value value, uint32_t *out) {
  *out = (uint32_t)flow->values.count;
  return rondo_array_push(flow->allocator, &flow->values, &value);
}

/* The place of the name in the table, or a free one; table_size if names collide too often, as only made up ones do. */
static size_t find_place(const ptx_flow *flow, ptx_word word, uint64_t hash) {
  for (size_t probe = 0; probe < MOST_PROBES; probe++) {
    const size_t place = (hash + probe) & (flow->table_size - 1);
    if (flow->table[place] == 0) return place;
    const ptx_name *name = &flow->names.items[flow->table[place] - 1];
    const bool is_same = name->hash == hash && name->word.count == word.count;
    if (is_same && memcmp(name->word.at, word.at, word.count) == 0) return place;
  }
  return flow->table_size;
}

/* Keeps half of the table free. */
static rondo_status grow_table(ptx_flow *flow) {
  const size_t old = flow->table_size, size = old == 0 ? 64 : 2 * old;
  uint32_t *table;
  if (2 * flow->names.count < old) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(flow->allocator, size, sizeof *table, &table));
  rondo_release(flow->allocator, flow->table, old, sizeof *table);
  flow->table = table;
  flow->table_size = size;
  for (size_t i = 0; i < flow->names.count; i++) {
    const size_t place = find_place(flow, flow->names.items[i].word, flow->names.items[i].hash);
    if (place == size)
      flow->is_lost = true;
    else
      table[place] = (uint32_t)i + 1;
  }
  return RONDO_OK;
}

static rondo_status add_name(ptx_flow *flow, const ptx_name *name, size_t place) {
  RONDO_TRY(rondo_array_push(flow->allocator, &flow->names, name));
  flow->table[place] = (uint32_t)flow->names.count;
  return RONDO_OK;
}

/* A word that no register of a compiler has: a variable, a label, or a member of a vector. */
static bool is_tracked(ptx_word word) { return word.at[0] == '%' && memchr(word.at, '.', word.count) == NULL; }

rondo_status ptx_flow_slot(ptx_flow *flow, ptx_word word, bool is_written, uint32_t *out) {
  ptx_name name = {.word = word, .hash = rondo_hash_bytes(RONDO_HASH_START, word.at, word.count)};
  *out = PTX_SLOT_OPAQUE;
  RONDO_TRY(grow_table(flow));
  const size_t place = find_place(flow, word, name.hash);
  if (place == flow->table_size) {
    flow->is_lost = true;
    return RONDO_OK;
  }
  if (flow->table[place] == 0) {
    if (!is_tracked(word)) return RONDO_OK;
    RONDO_TRY(ptx_flow_add_slot(flow, PTX_UNSET, &name.slot));
    RONDO_TRY(add_name(flow, &name, place));
  }
  ptx_name *found = &flow->names.items[flow->table[place] - 1];
  found->is_written = found->is_written || is_written;
  *out = found->slot;
  return RONDO_OK;
}

rondo_status ptx_flow_add_parameter(ptx_flow *flow, ptx_word word, uint32_t bytes) {
  static const ptx_value first[] = {PTX_OPAQUE, PTX_COUNT, PTX_MIXED};
  const bool escaped = false;
  ptx_name name = {.word = word, .hash = rondo_hash_bytes(RONDO_HASH_START, word.at, word.count), .is_written = true};
  for (size_t i = flow->values.count; i < sizeof first / sizeof first[0]; i++)
    RONDO_TRY(ptx_flow_add_slot(flow, first[i], &name.slot));
  RONDO_TRY(ptx_flow_add_slot(flow, PTX_POINTER + flow->parameter_count, &name.slot));
  RONDO_TRY(rondo_array_push(flow->allocator, &flow->sizes, &bytes));
  RONDO_TRY(rondo_array_push(flow->allocator, &flow->escaped, &escaped));
  flow->parameter_count++;
  RONDO_TRY(grow_table(flow));
  const size_t place = find_place(flow, word, name.hash);
  const bool is_odd = word.at[0] == '%' || flow->parameter_count > MOST_PARAMETERS; /* no compiler names one so */
  if (is_odd || place == flow->table_size || flow->table[place] != 0) {
    flow->is_lost = true;
    return RONDO_OK;
  }
  return add_name(flow, &name, place);
}

/* Values ----------------------------------------------------------------------------------------------------------- */

static bool is_pointer(ptx_value value) { return value >= PTX_POINTER && value < PTX_MIXED; }

static void escape(ptx_flow *flow, ptx_value value) {
  if (is_pointer(value)) flow->escaped.items[value - PTX_POINTER] = true;
}

/* Neither of the two is what the result holds. */
static ptx_value mix(ptx_flow *flow, ptx_value a, ptx_value b) {
  escape(flow, a);
  escape(flow, b);
  return a == PTX_OPAQUE || b == PTX_OPAQUE ? PTX_OPAQUE : PTX_MIXED;
}

static ptx_value join(ptx_flow *flow, ptx_value a, ptx_value b) {
  const ptx_value greater = a > b ? a : b, less = a > b ? b : a;
  if (a == b || less <= PTX_SCALED) return greater;
  return mix(flow, a, b);
}

/* Only a product with a constant is ever divided by the same number, as where the upper bits of an address are cut. */
static ptx_value multiply(ptx_flow *flow, const ptx_rule *rule, ptx_value a, ptx_value b) {
  const bool is_by_constant = rule->a == PTX_SLOT_COUNT || rule->b == PTX_SLOT_COUNT;
  if (mix(flow, a, b) == PTX_OPAQUE) return PTX_OPAQUE;
  return is_by_constant && (a > PTX_COUNT || b > PTX_COUNT) ? PTX_SCALED : PTX_COUNT;
}

static ptx_value divide(ptx_flow *flow, ptx_value a, ptx_value b) {
  (void)mix(flow, a, b);
  return a == PTX_COUNT ? PTX_COUNT : PTX_OPAQUE;
}

static ptx_value result_of(ptx_flow *flow, const ptx_rule *rule) {
  const ptx_value a = flow->values.items[rule->a], b = flow->values.items[rule->b];
  if (a == PTX_UNSET || b == PTX_UNSET) return PTX_UNSET;
  switch (rule->operation) {
    case PTX_COPY:
      return a;
    case PTX_ADD:
      return a <= PTX_SCALED || b <= PTX_SCALED ? join(flow, a, b) : mix(flow, a, b);
    case PTX_SUBTRACT:
      return b <= PTX_SCALED ? join(flow, a, b) : mix(flow, a, b);
    case PTX_SCALE:
      return multiply(flow, rule, a, b);
    case PTX_DIVIDE:
      return divide(flow, a, b);
    case PTX_REMAINDER:
      return a <= PTX_SCALED ? a : mix(flow, a, b);
    case PTX_MASK:
      return a <= PTX_SCALED && b <= PTX_SCALED ? join(flow, a, b) : mix(flow, a, b);
  }
  return PTX_OPAQUE;
}

/* Whether anything changed. */
static bool apply_rules(ptx_flow *flow) {
  bool is_changed = false;
  for (size_t i = 0; i < flow->rules.count; i++) {
    const ptx_rule *rule = &flow->rules.items[i];
    const ptx_value before = flow->values.items[rule->to], after = join(flow, before, result_of(flow, rule));
    flow->values.items[rule->to] = after;
    is_changed = is_changed || after != before;
  }
  return is_changed;
}

void ptx_flow_solve(ptx_flow *flow) {
  for (size_t i = 0; i < flow->names.count; i++) {
    const ptx_name *name = &flow->names.items[i];
    if (!name->is_written) flow->values.items[name->slot] = PTX_OPAQUE;
  }
  for (uint32_t pass = 0; pass < MOST_PASSES && !flow->is_lost; pass++) {
    if (!apply_rules(flow)) return;
  }
  flow->is_lost = true;
}
