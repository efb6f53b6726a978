/* SPDX-License-Identifier: MIT
 * Rules that name, transpose and leave out tensors of a file (PR-10): what stars stand for, the order of rules, tensors
 * that are skipped, saving what was transposed, and wrong rules, which leak nothing, also when memory runs out.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/weights.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numbers/half_float.h"
#include "support/rondo_test.h"
#include "tensor/files/weight_elements.h"

static char folder[] = "/tmp/rondo-weight-rules-XXXXXX";
static char path[sizeof folder + 32], other_path[sizeof folder + 32];

static int make_folder(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  (void)snprintf(path, sizeof path, "%s/file", folder);
  (void)snprintf(other_path, sizeof other_path, "%s/other", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  (void)unlink(path);
  (void)unlink(other_path);
  return rmdir(folder);
}

/* A file with tensors [2, 3] of these names, whose elements count up from 0. */
static void save_named(const char *const *names, size_t count) {
  const float numbers[] = {0, 1, 2, 3, 4, 5};
  rondo_weights *weights = NULL;
  assert_ok(rondo_weights_create(NULL, &weights));
  for (size_t i = 0; i < count; i++) {
    const rondo_weight weight = {
        .name = names[i], .type = RONDO_F32, .rank = 2, .shape = {2, 3}, .data = numbers, .bytes = sizeof numbers};
    assert_ok(rondo_weights_add(weights, &weight));
  }
  assert_ok(rondo_weights_save(weights, path));
  rondo_weights_destroy(weights);
}

static rondo_status load_with(const rondo_weight_rule *rules, size_t count, rondo_weights **out) {
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = count};
  return rondo_weights_load(path, &options, out);
}

static void assert_names(const rondo_weights *weights, const char *const *names, size_t count) {
  rondo_weight weight;
  for (size_t i = 0; i < count; i++) {
    assert_ok(rondo_weights_at(weights, i, &weight));
    assert_string_equal(weight.name, names[i]);
  }
  assert_error(rondo_weights_at(weights, count, &weight), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
}

/* PR-10 */
UNIT_TEST(test_rules_name_tensors) {
  static const char *const names[] = {
      "lm_head",    "model.h.0.mask", "model.h.0.up.weight", "model.h.12.up.weight", "model.norm.bias",
      "other.x2.w", "other.x.w"};
  static const rondo_weight_rule rules[] = {
      {.from = "model.h.*.mask"},         {.from = "model.h.*.*.weight", .to = "*.block*"},
      {.from = "other.x*.w", .to = "o*"}, {.from = "model.**", .to = "net.**"},
      {.from = "lm_head", .to = "head"},  {.from = "**", .to = "rest.**"}};
  static const char *const wanted[] = {"0.blockup", "12.blockup", "head", "net.norm.bias", "o2", "rest.other.x.w"};
  rondo_weights *weights = NULL;
  save_named(names, 7);
  assert_ok(load_with(rules, 6, &weights));
  assert_names(weights, wanted, 6);
  rondo_weights_destroy(weights);
}

static bool is_wanted(const char *name, void *user) {
  *(size_t *)user += 1;
  return strcmp(name, "b") == 0;
}

/* The caller is asked for the new names, not for what is left out. */
UNIT_TEST(test_new_names_are_requested) {
  static const char *const names[] = {"x.a", "x.b", "y.b"}, *const wanted[] = {"b"};
  static const rondo_weight_rule rules[] = {{.from = "y.*"}, {.from = "x.*", .to = "*"}};
  size_t asked = 0;
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .wanted = is_wanted, .user = &asked,
                                         .rules = rules, .rule_count = 2};
  rondo_weights *weights = NULL;
  save_named(names, 3);
  assert_ok(rondo_weights_load(path, &options, &weights));
  assert_names(weights, wanted, 1);
  assert_int_equal(asked, 2);
  rondo_weights_destroy(weights);
}

static void assert_transposed(const rondo_weights *weights) {
  static const float wanted[] = {0, 3, 1, 4, 2, 5};
  rondo_weight weight;
  assert_ok(rondo_weights_find(weights, "t", &weight));
  assert_true(weight.rank == 2 && weight.shape[0] == 3 && weight.shape[1] == 2);
  assert_memory_equal(weight.data, wanted, sizeof wanted);
}

/* From a mapping, from memory, and from the file that a set with a transposed tensor was saved to. */
UNIT_TEST(test_tensors_are_transposed) {
  static const char *const names[] = {"a", "b"};
  static const rondo_weight_rule rules[] = {{.from = "a", .to = "t", .transpose = true}};
  static unsigned char bytes[4096];
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = 1};
  rondo_weights *weights = NULL;
  save_named(names, 2);
  assert_ok(load_with(rules, 1, &weights));
  assert_transposed(weights);
  assert_transposed(weights);
  rondo_weights_destroy(weights);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t count = fread(bytes, 1, sizeof bytes, file);
  assert_int_equal(fclose(file), 0);
  assert_ok(rondo_weights_parse(bytes, count, &options, &weights));
  assert_transposed(weights);
  rondo_weights_destroy(weights);
  assert_ok(load_with(rules, 1, &weights));
  assert_ok(rondo_weights_save(weights, other_path));
  rondo_weights_destroy(weights);
  assert_ok(rondo_weights_load(other_path, NULL, &weights));
  assert_transposed(weights);
  rondo_weights_destroy(weights);
}

/* The last two of several dimensions, in each type. */
UNIT_TEST(test_stacks_of_matrices_are_transposed) {
  static const rondo_type types[] = {RONDO_F16, RONDO_BF16, RONDO_F32, RONDO_I32, RONDO_I64};
  static const rondo_weight_rule rules[] = {{.from = "**", .to = "**", .transpose = true}};
  enum { PLANES = 2, ROWS = 35, COLUMNS = 70, COUNT = PLANES * ROWS * COLUMNS };
  static unsigned char numbers[COUNT * 8];
  for (size_t t = 0; t < 5; t++) {
    const size_t width = rondo_type_bytes(types[t]);
    for (size_t i = 0; i < COUNT * width; i++) numbers[i] = (unsigned char)(i * 7 + i / 256);
    rondo_weight weight = {.name = "w",
                           .type = types[t],
                           .rank = 3,
                           .shape = {PLANES, ROWS, COLUMNS},
                           .data = numbers,
                           .bytes = COUNT * width};
    rondo_weights *weights = NULL;
    assert_ok(rondo_weights_create(NULL, &weights));
    assert_ok(rondo_weights_add(weights, &weight));
    assert_ok(rondo_weights_save(weights, path));
    rondo_weights_destroy(weights);
    assert_ok(load_with(rules, 1, &weights));
    assert_ok(rondo_weights_find(weights, "w", &weight));
    assert_true(weight.shape[0] == PLANES && weight.shape[1] == COLUMNS && weight.shape[2] == ROWS);
    for (size_t i = 0; i < COUNT; i++) {
      const size_t plane = i / (ROWS * COLUMNS), row = i / COLUMNS % ROWS, column = i % COLUMNS;
      const size_t to = plane * ROWS * COLUMNS + column * ROWS + row;
      assert_memory_equal((const unsigned char *)weight.data + to * width, numbers + i * width, width);
    }
    rondo_weights_destroy(weights);
  }
}

typedef struct elements {
  float *to;
  size_t count;
} elements;

static rondo_status keep_piece(void *user, size_t offset, const void *data, size_t bytes) {
  elements *of = user;
  memcpy((char *)of->to + offset, data, bytes);
  of->count += bytes / sizeof(float);
  return RONDO_OK;
}

/* More than a piece, and ranges that begin and end within rows, as ranks have them; converted to F32. */
UNIT_TEST(test_ranges_of_elements_are_read) {
  enum { ROWS = 500, COLUMNS = 700, COUNT = ROWS * COLUMNS };
  static const size_t ranges[][2] = {{0, COUNT}, {0, 1},           {COUNT - 1, 1},
                                     {3, 600},   {3, 2 * COLUMNS}, {699, COUNT - 800}};
  static const rondo_weight_rule rules[] = {{.from = "**", .to = "**", .transpose = true}};
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = 1,
                                         .convert_floats = true};
  static uint16_t numbers[COUNT];
  static float got[COUNT];
  rondo_weights *weights = NULL;
  for (size_t i = 0; i < COUNT; i++) numbers[i] = (uint16_t)(0x3f80 + i % 5000);
  const rondo_weight weight = {
      .name = "w", .type = RONDO_BF16, .rank = 2, .shape = {COLUMNS, ROWS}, .data = numbers, .bytes = sizeof numbers};
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(rondo_weights_add(weights, &weight));
  assert_ok(rondo_weights_save(weights, path));
  rondo_weights_destroy(weights);
  assert_ok(rondo_weights_load(path, &options, &weights));
  const rondo_weights_entry *entry = rondo_weights_look_up(weights, "w");
  for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
    elements of = {.to = got};
    assert_ok(rondo_weights_read_elements(weights, entry, RONDO_F32, ranges[r][0], ranges[r][1], keep_piece, &of));
    assert_int_equal(of.count, ranges[r][1]);
    for (size_t i = 0; i < of.count; i++) {
      const size_t at = ranges[r][0] + i, from = at % COLUMNS * ROWS + at / COLUMNS;
      assert_true(got[i] == rondo_from_bf16(numbers[from]));
    }
  }
  rondo_weights_destroy(weights);
}

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* What cannot be read has its new name, and the reason that of the file. */
UNIT_TEST(test_skipped_tensors_are_renamed) {
  static const char header[] = "{\"x.u\":" T("X9", "[1]", "[0,1]") ",\"y\":" T("X9", "[1]", "[1,2]") "}";
  static const rondo_weight_rule rules[] = {{.from = "x.*", .to = "*"}, {.from = "y"}};
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = 2};
  unsigned char bytes[8 + sizeof header + 2] = {sizeof header - 1};
  rondo_weights *weights = NULL;
  rondo_weight weight;
  memcpy(bytes + 8, header, sizeof header);
  assert_ok(rondo_weights_parse(bytes, 8 + sizeof header - 1 + 2, &options, &weights));
  assert_error(rondo_weights_find(weights, "u", &weight), RONDO_UNSUPPORTED, RONDO_REASON_TYPE);
  assert_message("tensor 'x.u' is X9");
  assert_error(rondo_weights_find(weights, "y", &weight), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  rondo_weights_destroy(weights);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_wrong_rules_are_refused) {
  static const char *const names[] = {"a.x", "b.x"};
  static const struct {
    rondo_weight_rule rule;
    rondo_reason reason;
    const char *message;
  } wrong[] = {
      {{.from = NULL, .to = "a"}, RONDO_REASON_BAD_OPTIONS, "rule 0 names no tensor of a file"},
      {{.from = "", .to = "a"}, RONDO_REASON_BAD_OPTIONS, "names no tensor"},
      {{.from = "a", .to = ""}, RONDO_REASON_BAD_OPTIONS, "an empty name"},
      {{.from = "*a*", .to = "b"}, RONDO_REASON_BAD_OPTIONS, "two stars"},
      {{.from = "**.a", .to = "b"}, RONDO_REASON_BAD_OPTIONS, "before its end"},
      {{.from = "***", .to = "b"}, RONDO_REASON_BAD_OPTIONS, "before its end"},
      {{.from = "a", .to = "b*"}, RONDO_REASON_BAD_OPTIONS, "'a', gives a name with stars"},
      {{.from = "a.*", .to = "b**"}, RONDO_REASON_BAD_OPTIONS, "stars that it does not have"},
      {{.from = "*.**", .to = "**"}, RONDO_REASON_BAD_OPTIONS, "in this order"},
      {{.from = "*.*.*.*.*.*.*.*.*", .to = "b"}, RONDO_REASON_BAD_OPTIONS, "more than 8"},
      {{.from = "*.x", .to = "x"}, RONDO_REASON_DUPLICATE_NAME, "rules name two tensors 'x'"},
      {{.from = "a.x", .to = "b.x"}, RONDO_REASON_DUPLICATE_NAME, "rules name two tensors 'b.x'"},
      {{.from = "a.x", .to = "\xff"}, RONDO_REASON_MALFORMED, "must be UTF-8"},
      {{.from = "a.x", .to = "__metadata__"}, RONDO_REASON_MALFORMED, "__metadata__"},
  };
  rondo_weights *weights = NULL;
  save_named(names, 2);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_invalid(load_with(&wrong[i].rule, 1, &weights), wrong[i].reason);
    assert_message(wrong[i].message);
    assert_null(weights);
  }
  assert_invalid(load_with(NULL, 1, &weights), RONDO_REASON_NULL_ARGUMENT);
}

UNIT_TEST(test_a_vector_is_not_transposed) {
  static const rondo_weight_rule rules[] = {{.from = "v", .to = "w", .transpose = true}};
  const float numbers[] = {1, 2};
  const rondo_weight weight = {
      .name = "v", .type = RONDO_F32, .rank = 1, .shape = {2}, .data = numbers, .bytes = sizeof numbers};
  rondo_weights *weights = NULL;
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(rondo_weights_add(weights, &weight));
  assert_ok(rondo_weights_save(weights, path));
  rondo_weights_destroy(weights);
  assert_invalid(load_with(rules, 1, &weights), RONDO_REASON_SHAPE);
  assert_message("a rule transposes 'v' [2]");
}

/* Each allocation of a load and of a first use fails once. */
UNIT_TEST(test_allocations_of_rules_fail) {
  static const char *const names[] = {"x.a", "x.b", "y"};
  static const rondo_weight_rule rules[] = {{.from = "x.*", .to = "*.long.name", .transpose = true},
                                            {.from = "y", .to = NULL}};
  save_named(names, 3);
  for (size_t fails_at = 1;; fails_at++) {
    test_allocator counting;
    test_allocator_init(&counting);
    atomic_store(&counting.fail_at, fails_at);
    const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .allocator = &counting.table, .rules = rules,
                                           .rule_count = 2};
    rondo_weights *weights = NULL;
    rondo_weight weight;
    rondo_status status = rondo_weights_load(path, &options, &weights);
    if (status == RONDO_OK) status = rondo_weights_find(weights, "b.long.name", &weight);
    rondo_weights_destroy(weights);
    assert_true(test_allocator_is_clean(&counting));
    if (status == RONDO_OK) break;
    assert_int_equal(status, RONDO_OUT_OF_MEMORY);
  }
}

int main(void) { return test_run_registered_in(make_folder, remove_folder); }
