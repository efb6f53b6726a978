/* SPDX-License-Identifier: MIT
 * The table of patterns, sets of them by their names, and the rules that all matches follow. Threads: any.
 */
#include "tensor/compile/rewrite/operator_patterns.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

#define RONDO_PATTERN_ROW(name) &rondo_pattern_##name,
static const rondo_pattern *const table[] = {RONDO_PATTERNS(RONDO_PATTERN_ROW)};

const rondo_pattern *rondo_pattern_at(size_t index) {
  assert(index < RONDO_PATTERN_COUNT);
  return table[index];
}

/* Names ------------------------------------------------------------------------------------------------------------ */

static rondo_status fail_name(const char *name, size_t length) {
  char known[256] = "";
  for (size_t i = 0; i < RONDO_PATTERN_COUNT; i++) {
    const size_t used = strlen(known);
    (void)snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ", table[i]->name);
  }
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                    "rondo_compile_options.without_patterns: there is no pattern '%.*s': use \"all\", or some of %s, "
                    "separated by commas without spaces",
                    length == 0 ? 7 : (int)(length < 64 ? length : 64), length == 0 ? "(empty)" : name, known);
}

static bool is_name(const char *name, size_t length, const char *known) {
  return strlen(known) == length && memcmp(name, known, length) == 0;
}

static rondo_status read_name(const char *name, size_t length, rondo_pattern_set *inout) {
  if (is_name(name, length, "all")) {
    *inout = RONDO_ALL_PATTERNS;
    return RONDO_OK;
  }
  for (size_t i = 0; i < RONDO_PATTERN_COUNT; i++) {
    if (!is_name(name, length, table[i]->name)) continue;
    *inout |= UINT32_C(1) << i;
    return RONDO_OK;
  }
  return fail_name(name, length);
}

rondo_status rondo_pattern_set_read(const char *names, rondo_pattern_set *out) {
  *out = 0;
  if (names == NULL) return RONDO_OK;
  while (*names != '\0') {
    const size_t length = strcspn(names, ",");
    RONDO_TRY(read_name(names, length, out));
    names += length + (names[length] == ',');
  }
  return RONDO_OK;
}

/* Rules ------------------------------------------------------------------------------------------------------------ */

static uint32_t readers_inside(const rondo_program *program, const rondo_pattern_match *match, uint32_t value) {
  uint32_t count = 0;
  for (uint32_t m = 0; m < match->member_count; m++) {
    const rondo_operation *member = &program->operations.items[match->members[m]];
    RONDO_EACH_INPUT(k, member) count += member->inputs[k] == value;
  }
  return count;
}

/* Whether the members alone read what the operation computes, except for the result of the root. */
static bool is_inside(const rondo_pattern_search *search, const rondo_pattern_match *match, uint32_t number) {
  const rondo_operation *member = &search->program->operations.items[number];
  const rondo_operation *root = &search->program->operations.items[match->root];
  if (member->row->updates != 0 || member->row->is_user || member->place != root->place) return false;
  for (uint32_t r = 0; r < member->row->result_count; r++) {
    const uint32_t value = member->results[r], inside = readers_inside(search->program, match, value);
    if (number == match->root && r == 0) continue;
    if (inside != search->readers[value]) return false;
  }
  return true;
}

/* Whether the replacement would read what it replaces, as for the sum of a product and itself. */
static bool reads_member(const rondo_program *program, const rondo_pattern_match *match) {
  for (size_t v = 0; v < RONDO_PATTERN_VALUES; v++) {
    if (match->values[v] == RONDO_NO_VALUE) continue;
    const rondo_program_value *of = &program->values.items[match->values[v]];
    for (uint32_t m = 0; m < match->member_count; m++)
      if (of->kind == RONDO_VALUE_RESULT && of->operation == match->members[m]) return true;
  }
  return false;
}

static void drop_repeated(rondo_pattern_match *match) {
  uint32_t kept = 0;
  for (uint32_t m = 0; m < match->member_count; m++) {
    uint32_t before = 0;
    while (before < kept && match->members[before] != match->members[m]) before++;
    if (before == kept) match->members[kept++] = match->members[m];
  }
  match->member_count = kept;
}

static bool is_allowed(const rondo_pattern_search *search, const bool *claimed, rondo_pattern_match *match) {
  if (match->is_full || reads_member(search->program, match)) return false;
  drop_repeated(match);
  for (uint32_t m = 0; m < match->member_count; m++)
    if (claimed[match->members[m]] || !is_inside(search, match, match->members[m])) return false;
  return true;
}

size_t rondo_pattern_find(const rondo_pattern_search *search, rondo_pattern_set set, const bool *claimed, uint32_t root,
                          rondo_pattern_match *out) {
  for (size_t i = 0; i < RONDO_PATTERN_COUNT; i++) {
    if ((set >> i & 1u) == 0 || table[i]->find == NULL) continue;
    *out = (rondo_pattern_match){.root = root, .members = {root}, .member_count = 1};
    for (size_t v = 0; v < RONDO_PATTERN_VALUES; v++) out->values[v] = RONDO_NO_VALUE;
    if (table[i]->find(search, out) && is_allowed(search, claimed, out)) return i;
  }
  return RONDO_PATTERN_COUNT;
}
