/* SPDX-License-Identifier: MIT
 * Weights that are divided between several files by an index, as the transformers library saves them (PR-10): all
 * tensors, some of them, rules, metadata, checksums of the files; wrong indexes and files, and allocations that fail.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/checkpoint.h>
#include <rondo/weights.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/rondo_test.h"

/* Files ------------------------------------------------------------------------------------------------------------ */

enum { FILES = 3 };

static char folder[] = "/tmp/rondo-safetensors-index-XXXXXX";
static char index_path[sizeof folder + 32], paths[FILES][sizeof folder + 32];

static int make_folder(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  (void)snprintf(index_path, sizeof index_path, "%s/model.safetensors.index.json", folder);
  for (int i = 0; i < FILES; i++) (void)snprintf(paths[i], sizeof paths[i], "%s/%d.safetensors", folder, i);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  (void)unlink(index_path);
  for (int i = 0; i < FILES; i++) (void)unlink(paths[i]);
  return rmdir(folder);
}

static void write_index(const char *text) {
  FILE *file = fopen(index_path, "wb");
  assert_non_null(file);
  (void)fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* File i has the tensor [2] "<letter>.x" for each letter, with elements 10 i + 1 and so on. */
static void save_file(int i, const char *letters) {
  rondo_weights *weights = NULL;
  assert_ok(rondo_weights_create(NULL, &weights));
  for (int k = 0; letters[k] != '\0'; k++) {
    const float numbers[] = {(float)(10 * i + k + 1), 0};
    const char name[] = {letters[k], '.', 'x', '\0'};
    const rondo_weight weight = {
        .name = name, .type = RONDO_F32, .rank = 1, .shape = {2}, .data = numbers, .bytes = sizeof numbers};
    assert_ok(rondo_weights_add(weights, &weight));
  }
  assert_ok(rondo_weights_set_metadata(weights, "format", "pt"));
  assert_ok(rondo_weights_save(weights, paths[i]));
  rondo_weights_destroy(weights);
}

/* The order of names is not that of files; the second file has a tensor that the index does not list. */
static void save_all(void) {
  save_file(0, "ad");
  save_file(1, "bz");
  save_file(2, "c");
  write_index(
      "{\n  \"metadata\": {\"total_size\": 40, \"note\": \"text\", \"rondo.checksum\": \"0\", \"more\": [1]},\n"
      "  \"weight_map\": {\"d.x\": \"0.safetensors\", \"c.x\": \"2.safetensors\", \"a.x\": \"0.safetensors\",\n"
      "    \"b.x\": \"1.safetensors\"}\n}\n");
}

static void assert_tensors(const rondo_weights *weights, const char *letters, const float *numbers) {
  rondo_weight weight;
  for (size_t i = 0; letters[i] != '\0'; i++) {
    assert_ok(rondo_weights_at(weights, i, &weight));
    assert_int_equal(weight.name[0], letters[i]);
    assert_true(((const float *)weight.data)[0] == numbers[i]);
  }
  assert_error(rondo_weights_at(weights, strlen(letters), &weight), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
}

/* Loading ---------------------------------------------------------------------------------------------------------- */

/* PR-10. The set outlives its files. */
UNIT_TEST(test_all_files_of_an_index_are_loaded) {
  rondo_weights *weights = NULL;
  save_all();
  assert_ok(rondo_weights_load(index_path, NULL, &weights));
  for (int i = 0; i < FILES; i++) assert_int_equal(unlink(paths[i]), 0);
  assert_tensors(weights, "abcd", (const float[]){1, 11, 21, 2});
  assert_string_equal(rondo_weights_get_metadata(weights, "total_size"), "40");
  assert_string_equal(rondo_weights_get_metadata(weights, "note"), "text");
  assert_null(rondo_weights_get_metadata(weights, "more"));
  assert_null(rondo_weights_get_metadata(weights, "format"));
  assert_null(rondo_weights_get_metadata(weights, "rondo.checksum"));
  assert_ok(rondo_weights_save(weights, paths[0]));
  rondo_weights_destroy(weights);
  assert_ok(rondo_weights_load(paths[0], NULL, &weights));
  assert_tensors(weights, "abcd", (const float[]){1, 11, 21, 2});
  rondo_weights_destroy(weights);
}

static bool is_wanted(const char *name, void *user) { return strchr(user, name[0]) != NULL; }

/* Files without a requested tensor are not opened, and their checksums not compared. */
UNIT_TEST(test_some_tensors_of_an_index_are_loaded) {
  char letters[] = "ac";
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .wanted = is_wanted, .user = letters};
  rondo_weights *weights = NULL;
  save_all();
  assert_int_equal(unlink(paths[1]), 0);
  assert_ok(rondo_weights_load(index_path, &options, &weights));
  assert_tensors(weights, "ac", (const float[]){1, 21});
  rondo_weights_destroy(weights);
  letters[0] = '?', letters[1] = '\0';
  assert_ok(rondo_weights_load(index_path, &options, &weights));
  assert_tensors(weights, "", NULL);
  rondo_weights_destroy(weights);
}

UNIT_TEST(test_rules_are_for_all_files) {
  static const rondo_weight_rule rules[] = {{.from = "b.x"}, {.from = "a.x", .to = "z.x"}};
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = 2};
  static const rondo_weight_rule alike[] = {{.from = "*.x", .to = "x"}};
  const rondo_weights_options wrong = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = alike, .rule_count = 1};
  rondo_weights *weights = NULL;
  save_all();
  assert_ok(rondo_weights_load(index_path, &options, &weights));
  assert_tensors(weights, "cdz", (const float[]){21, 2, 1});
  rondo_weights_destroy(weights);
  assert_invalid(rondo_weights_load(index_path, &wrong, &weights), RONDO_REASON_DUPLICATE_NAME);
  save_file(0, "a");
  write_index("{\"weight_map\": {\"a.x\": \"0.safetensors\", \"b.x\": \"1.safetensors\"}}");
  assert_invalid(rondo_weights_load(index_path, &wrong, &weights), RONDO_REASON_DUPLICATE_NAME);
  assert_message("'x'");
}

/* A path without a folder is that of the working directory. */
UNIT_TEST(test_an_index_without_a_folder) {
  rondo_weights *weights = NULL;
  char before[4096];
  assert_non_null(getcwd(before, sizeof before));
  save_all();
  assert_int_equal(chdir(folder), 0);
  const rondo_status status = rondo_weights_load("model.safetensors.index.json", NULL, &weights);
  assert_int_equal(chdir(before), 0);
  assert_ok(status);
  assert_tensors(weights, "abcd", (const float[]){1, 11, 21, 2});
  rondo_weights_destroy(weights);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_wrong_indexes_are_refused) {
  static const struct {
    const char *text;
    rondo_status status;
    rondo_reason reason;
    const char *message;
  } wrong[] = {
      {"{", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "index: "},
      {"{}", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "no object 'weight_map'"},
      {"{\"weight_map\": []}", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "no object 'weight_map'"},
      {"{\"weight_map\": {}, \"metadata\": 1}", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "metadata"},
      {"{\"weight_map\": {\"a.x\": 1}}", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "no file for tensor 'a.x'"},
      {"{\"weight_map\": {\"a.x\": \"\"}}", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "no file for tensor 'a.x'"},
      {"{\"weight_map\": {\"a.x\": \"..\"}}", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "in '..'"},
      {"{\"weight_map\": {\"a.x\": \"../0.safetensors\"}}", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "its folder"},
      {"{\"weight_map\": {\"a.x\": \"/etc/passwd\"}}", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "its folder"},
      {"{\"weight_map\": {\"a.x\": \"absent\"}}", RONDO_NOT_FOUND, RONDO_REASON_NONE, "absent cannot be opened"},
      {"{\"weight_map\": {\"q.x\": \"0.safetensors\"}}", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
       "0.safetensors: it has no tensor 'q.x'"},
      {"{\"weight_map\": {\"a.x\": \"model.safetensors.index.json\"}}", RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
       "not a safetensors file"},
  };
  rondo_weights *weights = NULL;
  save_all();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    write_index(wrong[i].text);
    const rondo_status status = rondo_weights_load(index_path, NULL, &weights);
    assert_int_equal(status, wrong[i].status);
    assert_int_equal(rondo_last_error()->reason, wrong[i].reason);
    assert_message(wrong[i].message);
    assert_null(weights);
  }
}

UNIT_TEST(test_a_damaged_file_of_an_index_is_named) {
  rondo_weights *weights = NULL;
  save_all();
  FILE *file = fopen(paths[1], "rb+");
  assert_non_null(file);
  assert_int_equal(fseek(file, -5, SEEK_END), 0);
  (void)fputc('x', file); /* of z.x, or of b.x */
  assert_int_equal(fseek(file, -13, SEEK_END), 0);
  (void)fputc('x', file);
  assert_int_equal(fclose(file), 0);
  assert_error(rondo_weights_load(index_path, NULL, &weights), RONDO_INVALID_DATA, RONDO_REASON_CHECKSUM);
  assert_message("1.safetensors: it was damaged: tensor 'b.x'");
}

UNIT_TEST(test_an_index_is_no_checkpoint_and_no_bytes) {
  static const char text[] = "{\"weight_map\": {}}";
  rondo_weights *weights = NULL;
  save_all();
  assert_error(rondo_checkpoint_load(index_path, NULL, &weights), RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME);
  assert_error(rondo_weights_parse(text, sizeof text - 1, NULL, &weights), RONDO_INVALID_DATA, RONDO_REASON_MALFORMED);
  assert_message("rondo_weights_load");
}

UNIT_TEST(test_allocations_of_an_index_fail) {
  static const rondo_weight_rule rules[] = {{.from = "*.x", .to = "*"}};
  save_all();
  for (size_t fails_at = 1;; fails_at++) {
    test_allocator counting;
    test_allocator_init(&counting);
    atomic_store(&counting.fail_at, fails_at);
    const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .allocator = &counting.table, .rules = rules,
                                           .rule_count = 1};
    rondo_weights *weights = NULL;
    const rondo_status status = rondo_weights_load(index_path, &options, &weights);
    rondo_weights_destroy(weights);
    assert_true(test_allocator_is_clean(&counting));
    if (status == RONDO_OK) break;
    assert_int_equal(status, RONDO_OUT_OF_MEMORY);
  }
}

int main(void) { return test_run_registered_in(make_folder, remove_folder); }
