/* SPDX-License-Identifier: MIT
 * Matches names of tensors with rules, and renames the tensors of a set.
 */
#include "tensor/files/weight_rules.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

#define MAX_STARS 8

/* What the stars of a rule stand for in a name. */
typedef struct rule_match {
  size_t count;
  struct {
    const char *text;
    size_t length;
  } stars[MAX_STARS];
} rule_match;

/* Checking --------------------------------------------------------------------------------------------------------- */

static bool is_rest(const char *pattern) { return pattern[0] == '*' && pattern[1] == '*'; }

/* One star between two dots, and "**" at the end alone. */
static bool has_one_reading(const char *from) {
  bool has_star = false;
  for (const char *at = from; *at != '\0'; at++) {
    if (*at == '.') has_star = false;
    if (*at != '*') continue;
    if (has_star) return false;
    if (is_rest(at)) return at[2] == '\0';
    has_star = true;
  }
  return true;
}

/* The next star of a pattern, NULL at the end, and what follows it. */
static const char *next_star(const char **inout_at) {
  const char *const star = strchr(*inout_at, '*');
  if (star != NULL) *inout_at = star + (is_rest(star) ? 2 : 1);
  return star;
}

/* Whether each star of `to` is one of `from`, in their order. */
static bool has_its_stars(const char *from, const char *to) {
  const char *wanted, *given;
  while ((wanted = next_star(&to)) != NULL) {
    given = next_star(&from);
    if (given == NULL || is_rest(given) != is_rest(wanted)) return false;
  }
  return true;
}

static size_t count_stars(const char *pattern) {
  size_t count = 0;
  while (next_star(&pattern) != NULL) count++;
  return count;
}

static const char *find_fault(const rondo_weight_rule *rule) {
  if (!has_one_reading(rule->from)) return "has two stars between two dots, or ** before its end";
  if (count_stars(rule->from) > MAX_STARS) return "has more than 8 stars";
  if (rule->to == NULL) return NULL;
  if (rule->to[0] == '\0') return "gives an empty name: give NULL to leave the tensor out";
  return has_its_stars(rule->from, rule->to) ? NULL : "gives a name with stars that it does not have in this order";
}

static rondo_status check_rule(const char *call, size_t number, const rondo_weight_rule *rule) {
  if (rule->from == NULL || rule->from[0] == '\0')
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "%s: rule %zu names no tensor of a file", call,
                      number);
  const char *why = find_fault(rule);
  if (why == NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "%s: rule %zu, from '%s', %s", call, number,
                    rule->from, why);
}

rondo_status rondo_weight_rules_check(const char *call, const rondo_weights_options *options) {
  if (options->rule_count > 0) RONDO_TRY(rondo_require(call, "rules", options->rules));
  for (size_t i = 0; i < options->rule_count; i++) RONDO_TRY(check_rule(call, i, &options->rules[i]));
  return RONDO_OK;
}

/* Matching --------------------------------------------------------------------------------------------------------- */

/* The texts between two dots, of which the one of the pattern has at most one star. Advances both over them. */
static bool match_part(const char **inout_pattern, const char **inout_name, rule_match *out) {
  const char *pattern = *inout_pattern, *name = *inout_name;
  const size_t length = strcspn(pattern, "."), name_length = strcspn(name, ".");
  const char *star = memchr(pattern, '*', length);
  *inout_pattern += length;
  *inout_name += name_length;
  if (star == NULL) return length == name_length && memcmp(pattern, name, length) == 0;
  const size_t before = (size_t)(star - pattern), after = length - before - 1;
  if (name_length <= before + after) return false;
  out->stars[out->count].text = name + before;
  out->stars[out->count++].length = name_length - before - after;
  return memcmp(pattern, name, before) == 0 && memcmp(star + 1, name + name_length - after, after) == 0;
}

static bool match_rest(const char *pattern, const char *name, rule_match *out) {
  const size_t before = strlen(pattern) - 2;
  if (strncmp(pattern, name, before) != 0 || name[before] == '\0') return false;
  out->stars[out->count].text = name + before;
  out->stars[out->count++].length = strlen(name + before);
  return true;
}

static bool matches(const char *pattern, const char *name, rule_match *out) {
  *out = (rule_match){.count = 0};
  for (;;) {
    const char *const dot = strchr(pattern, '.');
    if (dot == NULL && strstr(pattern, "**") != NULL) return match_rest(pattern, name, out);
    if (!match_part(&pattern, &name, out)) return false;
    if (*pattern == '\0' || *name == '\0') return *pattern == *name;
    pattern++;
    name++;
  }
}

/* Names ------------------------------------------------------------------------------------------------------------ */

static void write_name(const char *to, const rule_match *match, rondo_text *text) {
  size_t star = 0;
  while (*to != '\0') {
    const size_t plain = strcspn(to, "*");
    rondo_text_add_bytes(text, to, plain);
    to += plain;
    if (*to == '\0') break;
    assert(star < match->count);
    rondo_text_add_bytes(text, match->stars[star].text, match->stars[star].length);
    star++;
    to += is_rest(to) ? 2 : 1;
  }
}

static const rondo_weight_rule *find_rule(const rondo_weights_options *options, const char *name, rule_match *out) {
  for (size_t i = 0; i < options->rule_count; i++)
    if (matches(options->rules[i].from, name, out)) return &options->rules[i];
  return NULL;
}

rondo_status rondo_weight_rules_name(const rondo_weights_options *options, const rondo_allocator *allocator,
                                     const char *name, char **out_name, const rondo_weight_rule **out_rule) {
  rule_match match;
  rondo_text text;
  *out_name = NULL;
  *out_rule = find_rule(options, name, &match);
  if (*out_rule == NULL) return rondo_allocate_text(allocator, name, out_name);
  if ((*out_rule)->to == NULL) return RONDO_OK;
  rondo_text_init(&text, allocator);
  write_name((*out_rule)->to, &match, &text);
  const rondo_status status = rondo_text_take(&text, out_name);
  rondo_text_deinit(&text);
  return status;
}

rondo_status rondo_weight_rules_choose(const rondo_weights_options *options, const rondo_allocator *allocator,
                                       const char *name, bool *out_is_wanted) {
  const rondo_weight_rule *rule;
  char *new_name;
  *out_is_wanted = false;
  RONDO_TRY(rondo_weight_rules_name(options, allocator, name, &new_name, &rule));
  if (new_name == NULL) return RONDO_OK;
  *out_is_wanted = options->wanted == NULL || options->wanted(new_name, options->user);
  rondo_release_text(allocator, new_name);
  return RONDO_OK;
}

/* Sets ------------------------------------------------------------------------------------------------------------- */

static rondo_status exchange_dimensions(rondo_weights_entry *entry) {
  size_t *const dims = entry->shape.dims;
  const size_t rank = entry->shape.rank;
  char shape[RONDO_SHAPE_TEXT];
  if (rank < 2)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
        "a rule transposes '%s' %s, which has no two dimensions: give it a rule without transpose, before "
        "that one",
        entry->name, rondo_shape_text(shape, &entry->shape));
  const size_t rows = dims[rank - 2], columns = dims[rank - 1];
  dims[rank - 2] = columns;
  dims[rank - 1] = rows;
  entry->is_transposed = rows > 1 && columns > 1;
  return RONDO_OK;
}

static rondo_status apply_to(const rondo_weights_options *options, rondo_weights *weights, rondo_weights_entry *entry) {
  const rondo_weight_rule *rule;
  char *name;
  RONDO_TRY(rondo_weight_rules_name(options, &weights->allocator, entry->name, &name, &rule));
  assert(name != NULL); /* what is left out is not wanted */
  rondo_status status = RONDO_OK;
  if (rule != NULL && rule->transpose) status = exchange_dimensions(entry);
  if (rule != NULL && status == RONDO_OK) status = rondo_weights_rename(weights, entry, name);
  rondo_release_text(&weights->allocator, name);
  return status;
}

/* The reasons keep the names of the file. The array is whole at each failure. */
static rondo_status rename_skipped(const rondo_weights_options *options, rondo_weights *weights) {
  size_t kept = 0;
  for (size_t i = 0; i < weights->skipped.count; i++) {
    rondo_weights_skipped *skipped = &weights->skipped.items[i];
    const rondo_weight_rule *rule;
    char *name;
    RONDO_TRY(rondo_weight_rules_name(options, &weights->allocator, skipped->name, &name, &rule));
    rondo_release_text(&weights->allocator, skipped->name);
    skipped->name = name;
  }
  for (size_t i = 0; i < weights->skipped.count; i++) {
    const rondo_weights_skipped skipped = weights->skipped.items[i];
    if (skipped.name == NULL)
      rondo_release_text(&weights->allocator, skipped.why);
    else
      weights->skipped.items[kept++] = skipped;
  }
  weights->skipped.count = kept;
  return RONDO_OK;
}

static rondo_status refuse_duplicates(const rondo_weights *weights) {
  for (size_t i = 1; i < weights->entries.count; i++) {
    const char *name = weights->entries.items[i].name;
    if (strcmp(name, weights->entries.items[i - 1].name) == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME, "rules name two tensors '%s'", name);
  }
  return RONDO_OK;
}

rondo_status rondo_weight_rules_apply(const rondo_weights_options *options, rondo_weights *weights) {
  if (options->rule_count == 0) return RONDO_OK;
  for (size_t i = 0; i < weights->entries.count; i++) RONDO_TRY(apply_to(options, weights, &weights->entries.items[i]));
  RONDO_TRY(rename_skipped(options, weights));
  rondo_weights_sort(weights);
  return refuse_duplicates(weights);
}
