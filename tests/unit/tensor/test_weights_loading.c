/* SPDX-License-Identifier: MIT
 * Which tensors of a file are loaded (PR-10): only the requested ones; tensors of unsupported types and shapes are
 * skipped. The file is mapped, and loading and applying it takes little more memory than the size of the file.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/checkpoint.h>
#include <rondo/weights.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_program.h"

/* Files ------------------------------------------------------------------------------------------------------------ */

static char folder[] = "/tmp/rondo-weights-loading-XXXXXX";
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

/* The header, padded with spaces, then so many data bytes, which count up from 0. */
static void write_file(const char *header, size_t padding, size_t data_bytes) {
  const uint64_t header_bytes = strlen(header) + padding;
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (size_t i = 0; i < 8; i++) (void)fputc((int)(header_bytes >> (8 * i) & 255), file);
  (void)fputs(header, file);
  for (size_t i = 0; i < padding; i++) (void)fputc(' ', file);
  for (size_t i = 0; i < data_bytes; i++) (void)fputc((int)(i & 255), file);
  assert_int_equal(fclose(file), 0);
}

static size_t padding_of(const char *header, size_t alignment) {
  return (alignment - strlen(header) % alignment) % alignment;
}

static rondo_weights *load(const rondo_weights_options *options) {
  rondo_weights *weights = NULL;
  assert_ok(rondo_weights_load(path, options, &weights));
  return weights;
}

/* Also from bytes in memory. */
static rondo_weights *parse(const rondo_weights_options *options) {
  static unsigned char bytes[4096];
  rondo_weights *weights = NULL;
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t count = fread(bytes, 1, sizeof bytes, file);
  assert_int_equal(fclose(file), 0);
  assert_ok(rondo_weights_parse(bytes, count, options, &weights));
  memset(bytes, 0xff, count);
  return weights;
}

/* Tensors that are passed over ------------------------------------------------------------------------------------- */

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const char foreign_header[] =
    "{\"u16\":" T("U16", "[2]", "[0,4]") ",\"w\":" T("F32", "[2]", "[4,12]") ",\"u32\":" T("U32", "[1]", "[12,16]")
    ",\"i16\":" T("I16", "[2]", "[16,20]") ",\"f8\":" T("F8_E8M0", "[4]", "[20,24]") ",\"f64\":" T("F64", "[1]", "[24,32]")
    ",\"empty\":" T("F32", "[3,0]", "[4,4]") ",\"deep\":" T("F32", "[1,1,1,1,1,1,1]", "[32,36]")
    ",\"new\":" T("X9", "[1]", "[36,37]") "}";

static void check_passed_over(const rondo_weights *weights) {
  static const struct {
    const char *name, *message;
    rondo_reason reason;
  } cases[] = {{"u16", "tensor 'u16' is U16; Rondo reads F32", RONDO_REASON_TYPE},
               {"u32", "'u32' is U32", RONDO_REASON_TYPE},
               {"i16", "'i16' is I16", RONDO_REASON_TYPE},
               {"f8", "'f8' is F8_E8M0", RONDO_REASON_TYPE},
               {"f64", "'f64' is F64", RONDO_REASON_TYPE},
               {"new", "'new' is X9", RONDO_REASON_TYPE},
               {"empty", "'empty' is empty: a dimension of it is 0", RONDO_REASON_SHAPE},
               {"deep", "'deep' has 7 dimensions; Rondo reads up to 6", RONDO_REASON_SHAPE}};
  rondo_weight weight;
  assert_ok(rondo_weights_at(weights, 0, &weight));
  assert_string_equal(weight.name, "w");
  assert_int_equal(((const unsigned char *)weight.data)[7], 11);
  assert_error(rondo_weights_at(weights, 1, &weight), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_error(rondo_weights_find(weights, cases[i].name, &weight), RONDO_UNSUPPORTED, cases[i].reason);
    assert_message(cases[i].message);
  }
  assert_error(rondo_weights_find(weights, "absent", &weight), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
}

/* PR-10 */
UNIT_TEST(test_tensors_that_no_value_can_hold_are_passed_over) {
  write_file(foreign_header, padding_of(foreign_header, 8), 37);
  rondo_weights *loaded = load(NULL), *parsed = parse(NULL);
  check_passed_over(loaded);
  check_passed_over(parsed);
  rondo_weights_destroy(loaded);
  rondo_weights_destroy(parsed);
}

static rondo_compiled *compile_state(rondo_device *device, const char *name, size_t count) {
  rondo_program *program = test_new_program();
  rondo_value value, cell;
  assert_ok(rondo_program_state(program, name, RONDO_F32, &count, 1, &value));
  assert_ok(rondo_program_cell(program, "cell", 1, &cell));
  assert_ok(rondo_program_output(program, "out", cell));
  rondo_compiled *compiled = test_compile(program, device, NULL);
  return compiled;
}

UNIT_TEST(test_a_program_that_needs_one_of_them_is_refused) {
  rondo_device *device = NULL;
  assert_ok(rondo_device_open("cpu", NULL, &device));
  rondo_compiled *compiled = compile_state(device, "f64", 1);
  write_file(foreign_header, padding_of(foreign_header, 8), 37);
  rondo_weights *weights = load(NULL);
  assert_error(rondo_weights_apply(weights, compiled, NULL, NULL), RONDO_UNSUPPORTED, RONDO_REASON_TYPE);
  assert_message("tensor 'f64' is F64");
  rondo_weights_destroy(weights);
  assert_ok(rondo_compiled_destroy(compiled));
  assert_ok(rondo_device_close(device));
}

/* Tensors that are wanted ------------------------------------------------------------------------------------------ */

static bool is_wanted(const char *name, void *user) { return strcmp(name, user) == 0; }

static void save_three(const char *where) {
  rondo_weights *weights = NULL;
  assert_ok(rondo_weights_create(NULL, &weights));
  for (size_t i = 0; i < 3; i++) {
    const float numbers[3] = {(float)i, 1, 2};
    const rondo_weight weight = {.name = (const char *const[]){"a", "b", "c"}[i],
                                 .type = RONDO_F32,
                                 .rank = 1,
                                 .shape = {3},
                                 .data = numbers,
                                 .bytes = sizeof numbers};
    assert_ok(rondo_weights_add(weights, &weight));
  }
  assert_ok(rondo_weights_save(weights, where));
  rondo_weights_destroy(weights);
}

static void flip_last_byte(void) {
  FILE *file = fopen(path, "rb+");
  assert_non_null(file);
  assert_int_equal(fseek(file, -1, SEEK_END), 0);
  const int byte = fgetc(file);
  assert_int_equal(fseek(file, -1, SEEK_END), 0);
  (void)fputc(byte ^ 1, file);
  assert_int_equal(fclose(file), 0);
}

/* PR-10. The checksum of a tensor that is not wanted is not compared; that of the header always is. */
UNIT_TEST(test_only_wanted_tensors_are_loaded) {
  rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .wanted = is_wanted, .user = (void *)(uintptr_t) "b"};
  rondo_weights *weights = NULL;
  rondo_weight weight;
  save_three(path);
  flip_last_byte();
  for (size_t i = 0; i < 2; i++) {
    weights = i == 0 ? load(&options) : parse(&options);
    assert_ok(rondo_weights_at(weights, 0, &weight));
    assert_string_equal(weight.name, "b");
    assert_true(((const float *)weight.data)[0] == 1);
    assert_error(rondo_weights_at(weights, 1, &weight), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
    assert_error(rondo_weights_find(weights, "a", &weight), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
    rondo_weights_destroy(weights);
  }
  options.user = (void *)(uintptr_t) "c";
  assert_error(rondo_weights_load(path, &options, &weights), RONDO_INVALID_DATA, RONDO_REASON_CHECKSUM);
  assert_message("tensor 'c' does not have its checksum");
}

UNIT_TEST(test_options_of_another_version_are_refused) {
  rondo_weights *weights = NULL;
  const rondo_weights_options options = {.struct_size = 1};
  save_three(path);
  assert_invalid(rondo_weights_load(path, &options, &weights), RONDO_REASON_BAD_OPTIONS);
  assert_invalid(rondo_weights_parse("", 0, &options, &weights), RONDO_REASON_BAD_OPTIONS);
}

/* The mapping ------------------------------------------------------------------------------------------------------ */

UNIT_TEST(test_a_set_outlives_its_file) {
  rondo_weight weight;
  save_three(path);
  rondo_weights *weights = load(NULL);
  write_file(foreign_header, 0, 0);
  save_three(other_path);
  assert_int_equal(rename(other_path, path), 0);
  rondo_weights_destroy(weights);
  weights = load(NULL);
  assert_ok(rondo_weights_save(weights, path));
  assert_int_equal(unlink(path), 0);
  assert_ok(rondo_weights_find(weights, "c", &weight));
  assert_true(((const float *)weight.data)[0] == 2);
  rondo_weights_destroy(weights);
}

/* Each tensor is aligned to its elements, where the file's writer did not see to it too. */
UNIT_TEST(test_tensors_are_aligned) {
  static const char header[] = "{\"a\":" T("F16", "[1]", "[0,2]") ",\"b\":" T("F32", "[2]", "[2,10]") "}";
  rondo_weight weight;
  for (size_t padding = 0; padding < 8; padding++) {
    write_file(header, padding, 10);
    rondo_weights *weights = load(NULL);
    assert_ok(rondo_weights_find(weights, "b", &weight));
    assert_int_equal((uintptr_t)weight.data % 4, 0);
    assert_int_equal(((const unsigned char *)weight.data)[7], 9);
    rondo_weights_destroy(weights);
  }
}

/* A set with types of all sizes, in which the names' order would leave tensors unaligned. */
UNIT_TEST(test_saved_tensors_are_aligned_in_the_file) {
  static const rondo_type types[] = {RONDO_BF16, RONDO_F32, RONDO_F16, RONDO_I64,
                                     RONDO_I32,  RONDO_I8,  RONDO_U8,  RONDO_BOOL};
  static const unsigned char data[24];
  rondo_weights *weights = NULL;
  assert_ok(rondo_weights_create(NULL, &weights));
  for (size_t i = 0; i < 8; i++) {
    const char name[2] = {(char)('a' + i), '\0'};
    const rondo_weight weight = {
        .name = name, .type = types[i], .rank = 1, .shape = {3}, .data = data, .bytes = 3 * rondo_type_bytes(types[i])};
    assert_ok(rondo_weights_add(weights, &weight));
  }
  assert_ok(rondo_weights_save(weights, path));
  rondo_weights_destroy(weights);
  weights = load(NULL);
  rondo_weight first, weight;
  assert_ok(rondo_weights_find(weights, "d", &first)); /* the largest elements come first */
  for (size_t i = 0; i < 8; i++) {
    assert_ok(rondo_weights_at(weights, i, &weight));
    assert_int_equal(weight.type, types[i]);
    assert_int_equal((uintptr_t)weight.data % rondo_type_bytes(weight.type), 0);
    const size_t offset = (size_t)((const char *)weight.data - (const char *)first.data);
    assert_true(offset < 3 * (8 + 4 + 4 + 2 + 2 + 1 + 1 + 1)); /* none was copied */
  }
  rondo_weights_destroy(weights);
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

/* Kilobytes that the process has in memory, now ("VmRSS:") or at most so far ("VmHWM:"). */
static size_t read_resident(const char *field) {
  char line[128];
  size_t kilobytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, field, strlen(field)) == 0) kilobytes = strtoul(line + strlen(field), NULL, 10);
  }
  (void)fclose(file);
  return kilobytes;
}

/* Makes the peak what is in memory now; false where the system does not let it. */
static bool reset_peak(void) {
  const int file = open("/proc/self/clear_refs", O_WRONLY);
  if (file < 0) return false;
  const bool is_reset = write(file, "5", 1) == 1;
  (void)close(file);
  return is_reset;
}

enum { MEGABYTES = 256 }; /* a compiled program has 16 more, to copy through */

static void save_large(void) {
  const size_t count = (size_t)MEGABYTES << 18;
  float *numbers = malloc(count * sizeof *numbers);
  rondo_weights *weights = NULL;
  assert_non_null(numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = (float)(i % 1000);
  const rondo_weight weight = {.name = "large",
                               .type = RONDO_F32,
                               .rank = 1,
                               .shape = {count},
                               .data = numbers,
                               .bytes = count * sizeof *numbers};
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(rondo_weights_add(weights, &weight));
  free(numbers);
  assert_ok(rondo_weights_save(weights, path));
  rondo_weights_destroy(weights);
}

/* PR-10: at most 1.1 of the file, with the program's own memory, also when one tensor is all of the file. */
UNIT_TEST(test_loading_and_applying_take_the_memory_of_the_file) {
  if (test_effort_divisor() > 1 || !reset_peak()) skip();
  rondo_device *device = NULL;
  save_large();
  assert_ok(rondo_device_open("cpu", NULL, &device));
  const size_t before = read_resident("VmRSS:");
  assert_true(reset_peak());
  rondo_compiled *compiled = compile_state(device, "large", (size_t)MEGABYTES << 18);
  rondo_weights *weights = load(NULL);
  assert_ok(rondo_weights_apply(weights, compiled, NULL, NULL));
  assert_ok(rondo_device_synchronize(device));
  const size_t peak = read_resident("VmHWM:") - before, file = (size_t)MEGABYTES << 10;
  if (peak > file + file / 10) fail_msg("%zu KiB for a file of %zu", peak, file);
  rondo_weights_destroy(weights);
  assert_ok(rondo_compiled_destroy(compiled));
  assert_ok(rondo_device_close(device));
}

int main(void) { return test_run_registered_in(make_folder, remove_folder); }
