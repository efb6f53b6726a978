/* SPDX-License-Identifier: MIT
 * Sets of weights and their files: what is written reads back, each kind of invalid file has its own error, a failing
 * allocator leaks nothing, and a save that fails leaves the old file complete.
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/weights.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/rondo_test.h"

/* Files ------------------------------------------------------------------------------------------------------------ */

typedef struct bytes {
  unsigned char *data;
  size_t count;
} bytes;

/* A safetensors file of a header and so many data bytes, all 7. The length field says `length`. */
static bytes make_file(const char *header, uint64_t length, size_t data_bytes) {
  const size_t header_bytes = strlen(header);
  bytes file = {.count = 8 + header_bytes + data_bytes};
  file.data = malloc(file.count);
  assert_non_null(file.data);
  for (size_t i = 0; i < 8; i++) file.data[i] = (unsigned char)(length >> (8 * i));
  memcpy(file.data + 8, header, header_bytes);
  memset(file.data + 8 + header_bytes, 7, data_bytes);
  return file;
}

static bytes make_right_file(const char *header, size_t data_bytes) {
  return make_file(header, strlen(header), data_bytes);
}

static char folder[] = "/tmp/rondo-weights-XXXXXX";

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) == NULL ? -1 : 0;
}

static const char *path_of(const char *name) {
  static char path[512];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static int remove_folder(void **state) {
  (void)state;
  DIR *open_folder = opendir(folder);
  if (open_folder == NULL) return -1;
  for (struct dirent *entry = readdir(open_folder); entry != NULL; entry = readdir(open_folder)) {
    if (entry->d_name[0] != '.') unlink(path_of(entry->d_name));
  }
  closedir(open_folder);
  return rmdir(folder);
}

static size_t count_files(void) {
  DIR *open_folder = opendir(folder);
  size_t count = 0;
  assert_non_null(open_folder);
  for (struct dirent *entry = readdir(open_folder); entry != NULL; entry = readdir(open_folder)) {
    if (entry->d_name[0] != '.') count++;
  }
  closedir(open_folder);
  return count;
}

static bytes read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  bytes content = {.data = malloc(65536)};
  assert_non_null(file);
  assert_non_null(content.data);
  content.count = fread(content.data, 1, 65536, file);
  fclose(file);
  return content;
}

static void write_file(const char *path, const void *data, size_t count) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, count, file), count);
  fclose(file);
}

/* Sets ------------------------------------------------------------------------------------------------------------- */

static const float matrix[6] = {1, -2, 3.5f, 1e-30f, 0, -0.0f};
static const int32_t numbers[3] = {INT32_MIN, 0, INT32_MAX};
static const float scalar = 0.1f;

static rondo_status fill_sample(rondo_weights *weights) {
  const rondo_weight b = {.name = "b", .type = RONDO_F32, .rank = 2, .shape = {2, 3}, .data = matrix, .bytes = 24};
  const rondo_weight a = {.name = "a.step", .type = RONDO_I32, .rank = 1, .shape = {3}, .data = numbers, .bytes = 12};
  const rondo_weight c = {.name = "c \"é\"", .type = RONDO_F32, .data = &scalar, .bytes = 4};
  rondo_status status = rondo_weights_add(weights, &b);
  if (status == RONDO_OK) status = rondo_weights_add(weights, &a);
  if (status == RONDO_OK) status = rondo_weights_add(weights, &c);
  if (status == RONDO_OK) status = rondo_weights_set_metadata(weights, "kind", "test");
  if (status == RONDO_OK) status = rondo_weights_set_metadata(weights, "another", "first");
  if (status == RONDO_OK) status = rondo_weights_set_metadata(weights, "another", "line\n\"quoted\"");
  return status;
}

static rondo_weights *make_sample(void) {
  rondo_weights *weights = NULL;
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(fill_sample(weights));
  return weights;
}

static void assert_sample(const rondo_weights *weights) {
  rondo_weight weight;
  assert_ok(rondo_weights_at(weights, 0, &weight));
  assert_string_equal(weight.name, "a.step");
  assert_int_equal(weight.type, RONDO_I32);
  assert_int_equal(weight.rank, 1);
  assert_int_equal(weight.shape[0], 3);
  assert_memory_equal(weight.data, numbers, sizeof numbers);
  assert_ok(rondo_weights_find(weights, "b", &weight));
  assert_int_equal(weight.type, RONDO_F32);
  assert_int_equal(weight.rank, 2);
  assert_int_equal(weight.shape[1], 3);
  assert_int_equal(weight.bytes, 24);
  assert_int_equal((uintptr_t)weight.data % 4, 0);
  assert_memory_equal(weight.data, matrix, sizeof matrix);
  assert_ok(rondo_weights_at(weights, 2, &weight));
  assert_string_equal(weight.name, "c \"é\"");
  assert_int_equal(weight.rank, 0);
  assert_memory_equal(weight.data, &scalar, sizeof scalar);
  assert_error(rondo_weights_at(weights, 3, &weight), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_weights_find(weights, "d", &weight), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_string_equal(rondo_weights_get_metadata(weights, "kind"), "test");
  assert_string_equal(rondo_weights_get_metadata(weights, "another"), "line\n\"quoted\"");
  assert_null(rondo_weights_get_metadata(weights, "none"));
}

UNIT_TEST(test_a_set_keeps_what_it_is_given) {
  rondo_weights *weights = make_sample();
  assert_sample(weights);
  rondo_weights_destroy(weights);
  rondo_weights_destroy(NULL);
}

UNIT_TEST(test_wrong_tensors_are_refused) {
  rondo_weights *weights = make_sample();
  rondo_weight weight = {.name = "b", .type = RONDO_F32, .data = &scalar, .bytes = 4};
  assert_invalid(rondo_weights_add(weights, &weight), RONDO_REASON_DUPLICATE_NAME);
  weight.name = "x";
  weight.bytes = 8;
  assert_invalid(rondo_weights_add(weights, &weight), RONDO_REASON_SHAPE);
  assert_message("'x' [] has 4 bytes, and 8 were given");
  weight.rank = 5;
  assert_invalid(rondo_weights_add(weights, &weight), RONDO_REASON_SHAPE);
  weight.rank = 2;
  weight.shape[0] = 2;
  assert_invalid(rondo_weights_add(weights, &weight), RONDO_REASON_SHAPE);
  weight.rank = 0;
  weight.type = (rondo_type)99;
  assert_invalid(rondo_weights_add(weights, &weight), RONDO_REASON_TYPE);
  weight = (rondo_weight){.name = "bad \xff", .type = RONDO_F32, .data = &scalar, .bytes = 4};
  assert_invalid(rondo_weights_add(weights, &weight), RONDO_REASON_MALFORMED);
  weight.name = "__metadata__";
  assert_invalid(rondo_weights_add(weights, &weight), RONDO_REASON_MALFORMED);
  assert_invalid(rondo_weights_set_metadata(weights, "\xc0\x80", ""), RONDO_REASON_MALFORMED);
  assert_invalid(rondo_weights_add(weights, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_message("rondo_weights_add: weight is NULL");
  weight.data = NULL;
  assert_invalid(rondo_weights_add(weights, &weight), RONDO_REASON_NULL_ARGUMENT);
  assert_message("the data of the weight is NULL");
  assert_sample(weights);
  rondo_weights_destroy(weights);
}

/* Round trips ------------------------------------------------------------------------------------------------------ */

UNIT_TEST(test_what_is_saved_reads_back) {
  rondo_weights *weights = make_sample();
  const char *path = path_of("sample.safetensors");
  assert_ok(rondo_weights_save(weights, path));
  rondo_weights *back = NULL;
  assert_ok(rondo_weights_load(path, NULL, &back));
  assert_sample(back);
  rondo_weights_destroy(back);
  bytes file = read_file(path);
  assert_int_equal(file.data[0] % 8, 0);
  assert_ok(rondo_weights_parse(file.data, file.count, NULL, &back));
  assert_sample(back);
  free(file.data);
  rondo_weights_destroy(back);
  rondo_weights_destroy(weights);
  assert_int_equal(count_files(), 1);
}

enum { MANY = 3000, STEP = 1237 }; /* without a common divisor */

static void assert_many(const rondo_weights *weights) {
  for (uint32_t i = 0; i < MANY; i++) {
    char name[16];
    rondo_weight weight;
    (void)snprintf(name, sizeof name, "%05u", i);
    assert_ok(rondo_weights_at(weights, i, &weight));
    assert_string_equal(weight.name, name);
    assert_memory_equal(weight.data, &i, sizeof i);
    assert_ok(rondo_weights_find(weights, name, &weight));
    assert_string_equal(rondo_weights_get_metadata(weights, name), name);
  }
  assert_null(rondo_weights_get_metadata(weights, ""));
  assert_null(rondo_weights_get_metadata(weights, "x"));
}

/* Tensors and keys of metadata in any order, and in the order of a file. */
UNIT_TEST(test_a_set_of_many) {
  rondo_weights *weights = NULL, *back = NULL;
  assert_ok(rondo_weights_create(NULL, &weights));
  for (uint32_t i = 0, number = 0; i < MANY; i++, number = (number + STEP) % MANY) {
    char name[16];
    (void)snprintf(name, sizeof name, "%05u", number);
    const rondo_weight weight = {.name = name, .type = RONDO_I32, .data = &number, .bytes = 4};
    assert_ok(rondo_weights_add(weights, &weight));
    assert_invalid(rondo_weights_add(weights, &weight), RONDO_REASON_DUPLICATE_NAME);
    assert_ok(rondo_weights_set_metadata(weights, name, ""));
    assert_ok(rondo_weights_set_metadata(weights, name, name));
  }
  assert_many(weights);
  assert_ok(rondo_weights_save(weights, path_of("many.safetensors")));
  assert_ok(rondo_weights_load(path_of("many.safetensors"), NULL, &back));
  assert_many(back);
  rondo_weights_destroy(weights);
  rondo_weights_destroy(back);
}

UNIT_TEST(test_an_empty_set_reads_back) {
  rondo_weights *weights = NULL;
  rondo_weights *back = NULL;
  rondo_weight weight;
  assert_ok(rondo_weights_create(NULL, &weights));
  assert_ok(rondo_weights_save(weights, path_of("empty.safetensors")));
  assert_ok(rondo_weights_load(path_of("empty.safetensors"), NULL, &back));
  assert_fails(rondo_weights_at(back, 0, &weight), RONDO_NOT_FOUND);
  rondo_weights_destroy(back);
  rondo_weights_destroy(weights);
}

/* What other programs write: any order of tensors in the data, spaces, a header of odd length. */
UNIT_TEST(test_files_of_others_are_read) {
  bytes file = make_right_file(
      "{\n \"z\": {\"data_offsets\": [0, 4], \"shape\": [1, 1], \"dtype\": \"I32\"},\n"
      " \"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [4, 12]} }  ",
      12);
  rondo_weights *weights = NULL;
  rondo_weight weight;
  assert_ok(rondo_weights_parse(file.data, file.count, NULL, &weights));
  assert_ok(rondo_weights_at(weights, 0, &weight));
  assert_string_equal(weight.name, "a");
  assert_int_equal(((const unsigned char *)weight.data)[7], 7);
  rondo_weights_destroy(weights);
  free(file.data);
}

/* Bad files -------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_a_file_cut_off_anywhere_is_refused) {
  rondo_weights *weights = make_sample();
  assert_ok(rondo_weights_save(weights, path_of("whole.safetensors")));
  rondo_weights_destroy(weights);
  bytes file = read_file(path_of("whole.safetensors"));
  for (size_t count = 0; count < file.count; count++) {
    unsigned char *cut = malloc(count > 0 ? count : 1);
    assert_non_null(cut);
    memcpy(cut, file.data, count);
    rondo_weights *back = (rondo_weights *)1;
    assert_error(rondo_weights_parse(cut, count, NULL, &back), RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED);
    assert_null(back);
    write_file(path_of("cut.safetensors"), cut, count);
    assert_error(rondo_weights_load(path_of("cut.safetensors"), NULL, &back), RONDO_INVALID_DATA,
                 RONDO_REASON_TRUNCATED);
    assert_message("cut.safetensors: ");
    free(cut);
  }
  free(file.data);
}

typedef struct bad_file {
  const char *header;
  size_t data_bytes;
  rondo_status status;
  rondo_reason reason;
  const char *message;
} bad_file;

#define MALFORMED RONDO_INVALID_DATA, RONDO_REASON_MALFORMED
#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const bad_file bad_files[] = {
    {"[]", 0, MALFORMED, "does not begin with '{'"},
    {" {}", 0, MALFORMED, "does not begin with '{'"},
    {"{\"a\":", 0, MALFORMED, "line 1, column"},
    {"{} {}", 0, MALFORMED, "line 1, column"},
    {"{}\xff", 0, MALFORMED, "header"},
    {"{\"a\":1}", 0, MALFORMED, "'a': it is not an object"},
    {"{\"a\":{}}", 0, MALFORMED, "'a': it has no dtype"},
    {"{\"a\":{\"dtype\":\"F32\"}}", 0, MALFORMED, "'a': it has no shape"},
    {"{\"a\":" T("F32", "[1]", "[0]") "}", 4, MALFORMED, "data_offsets are not two numbers"},
    {"{\"a\":" T("F32", "[1]", "[0,4,8]") "}", 4, MALFORMED, "data_offsets are not two numbers"},
    {"{\"a\":" T("F32", "[1]", "[4,0]") "}", 4, MALFORMED, "data_offsets are not two numbers"},
    {"{\"a\":" T("F32", "[1]", "[-4,0]") "}", 4, MALFORMED, "data_offsets are not two numbers"},
    {"{\"a\":" T("F32", "[1]", "[0,4.0]") "}", 4, MALFORMED, "data_offsets are not two numbers"},
    {"{\"a\":" T("F32", "[1]", "[0,99999999999999999999]") "}", 4, MALFORMED, "line 1, column"},
    {"{\"a\":" T("F32", "[2]", "[0,4]") "}", 4, MALFORMED, "[2] has 8 bytes, its data_offsets say 4"},
    {"{\"a\":" T("F32", "[-1]", "[0,4]") "}", 4, MALFORMED, "is not a size"},
    {"{\"a\":" T("F32", "[1.5]", "[0,4]") "}", 4, MALFORMED, "is not a size"},
    {"{\"a\":" T("F32", "[4294967296,4294967296]", "[0,4]") "}", 4, MALFORMED, "more bytes than any file"},
    {"{\"a\":" T("F32", "[9223372036854775807]", "[0,4]") "}", 4, MALFORMED, "more bytes than any file"},
    {"{\"a\":" T("F32", "[1]", "[4,8]") "}", 8, MALFORMED, "with a gap"},
    {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[2,6]") "}", 6, MALFORMED, "inside the one before"},
    {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[0,4]") "}", 4, MALFORMED, "inside the one before"},
    {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[8,12]") "}", 12, MALFORMED, "with a gap"},
    {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", 8, MALFORMED, "duplicate"},
    {"{\"a\":" T("F32", "[1]", "[0,4]") "}", 5, MALFORMED, "1 bytes after the last tensor"},
    {"{\"a\":" T("F32", "[1]", "[0,4]") "}", 3, RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED, "cut off"},
    {"{\"a\\u0000b\":" T("F32", "[1]", "[0,4]") "}", 4, MALFORMED, "line 1, column"},
    {"{\"__metadata__\":[]}", 0, MALFORMED, "__metadata__ is not an object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, MALFORMED, "'k' is not a string"},
    {"{\"__metadata__\":{\"rondo.checksum\":\"01\"}}", 0, MALFORMED, "have 2 digits, not 16 for each of 1 checksums"},
    {"{\"__metadata__\":{\"rondo.weights\":\"2\"}}", 0, RONDO_UNSUPPORTED, RONDO_REASON_NONE,
     "its weights are of version '2'; this library reads version 1"},
    {"{\"a\":" T("U16", "[-1]", "[0,2]") "}", 2, MALFORMED, "is not a size"},
    {"{\"a\":" T("U16", "[1]", "[0,2]") "}", 1, RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED, "cut off"},
    {"{\"a\":" T("U16", "[1]", "[1,3]") "}", 3, MALFORMED, "with a gap"},
};

UNIT_TEST(test_every_bad_file_has_its_error) {
  for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
    const bad_file *bad = &bad_files[i];
    bytes file = make_right_file(bad->header, bad->data_bytes);
    rondo_weights *weights = (rondo_weights *)1;
    assert_error(rondo_weights_parse(file.data, file.count, NULL, &weights), bad->status, bad->reason);
    assert_message(bad->message);
    assert_null(weights);
    free(file.data);
  }
}

UNIT_TEST(test_absurd_header_lengths_are_refused) {
  const struct {
    uint64_t length;
    rondo_reason reason;
  } cases[] = {{0, RONDO_REASON_MALFORMED},
               {1, RONDO_REASON_MALFORMED},
               {3, RONDO_REASON_TRUNCATED},
               {100000000, RONDO_REASON_TRUNCATED},
               {100000001, RONDO_REASON_MALFORMED},
               {UINT64_MAX, RONDO_REASON_MALFORMED},
               {UINT64_MAX - 7, RONDO_REASON_MALFORMED}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bytes file = make_file("{}", cases[i].length, 0);
    rondo_weights *weights = NULL;
    assert_error(rondo_weights_parse(file.data, file.count, NULL, &weights), RONDO_INVALID_DATA, cases[i].reason);
    free(file.data);
  }
}

UNIT_TEST(test_deep_nesting_is_refused) {
  const size_t depth = 100000;
  char *header = malloc(depth + 8);
  assert_non_null(header);
  memcpy(header, "{\"a\":", 5);
  memset(header + 5, '[', depth);
  header[5 + depth] = '\0';
  bytes file = make_right_file(header, 0);
  rondo_weights *weights = NULL;
  assert_error(rondo_weights_parse(file.data, file.count, NULL, &weights), RONDO_INVALID_DATA, RONDO_REASON_MALFORMED);
  free(file.data);
  free(header);
}

UNIT_TEST(test_files_that_are_none) {
  rondo_weights *weights = NULL;
  assert_fails(rondo_weights_load(path_of("absent"), NULL, &weights), RONDO_NOT_FOUND);
  assert_fails(rondo_weights_load("", NULL, &weights), RONDO_NOT_FOUND);
  assert_message("the name of the file is empty");
  assert_message("ENOENT");
  assert_fails(rondo_weights_load(folder, NULL, &weights), RONDO_IO_ERROR);
  assert_fails(rondo_weights_load("/dev/zero", NULL, &weights), RONDO_IO_ERROR);
  assert_invalid(rondo_weights_load(NULL, NULL, &weights), RONDO_REASON_NULL_ARGUMENT);
  assert_message("rondo_weights_load: path is NULL");
  assert_invalid(rondo_weights_parse(NULL, 8, NULL, &weights), RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_weights_parse(NULL, 0, NULL, &weights), RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED);
}

/* What is read is refused with a reason, or is the very same set: a space of the header that became another space. */
static void assert_refused_or_same(const bytes *file) {
  rondo_weights *weights = NULL;
  if (rondo_weights_parse(file->data, file->count, NULL, &weights) != RONDO_OK) {
    const rondo_status status = rondo_last_error()->status;
    assert_null(weights);
    assert_true(status == RONDO_INVALID_DATA || status == RONDO_UNSUPPORTED);
    assert_true(strlen(rondo_last_error()->message) > 20);
    return;
  }
  assert_ok(rondo_weights_save(weights, path_of("again.safetensors")));
  rondo_weights_destroy(weights);
  bytes whole = read_file(path_of("whole.safetensors")), again = read_file(path_of("again.safetensors"));
  assert_int_equal(again.count, whole.count);
  assert_memory_equal(again.data, whole.data, whole.count);
  free(whole.data);
  free(again.data);
}

/* Each byte of a file with other bits: each bit of it, and values that mean something in JSON. */
UNIT_TEST(test_no_damaged_byte_goes_unseen) {
  rondo_weights *sample = make_sample();
  assert_ok(rondo_weights_save(sample, path_of("whole.safetensors")));
  rondo_weights_destroy(sample);
  bytes file = read_file(path_of("whole.safetensors"));
  static const unsigned char values[] = {0, 1, ' ', '\n', '"', '{', '}', '[', ',', '0', '9', '-', '\\', 0x80, 0xff};
  for (size_t at = 0; at < file.count; at++) {
    const unsigned char kept = file.data[at];
    for (size_t i = 0; i < 8 + sizeof values; i++) {
      file.data[at] = i < 8 ? (unsigned char)(kept ^ 1u << i) : values[i - 8];
      assert_refused_or_same(&file);
    }
    file.data[at] = kept;
  }
  free(file.data);
}

UNIT_TEST(test_damage_is_named) {
  rondo_weights *sample = make_sample(), *back = NULL;
  assert_ok(rondo_weights_save(sample, path_of("named.safetensors")));
  rondo_weights_destroy(sample);
  bytes file = read_file(path_of("named.safetensors"));
  char *header = (char *)file.data + 8;
  file.data[file.count - 5] ^= 1; /* the last of the matrix; the scalar comes after it */
  assert_error(rondo_weights_parse(file.data, file.count, NULL, &back), RONDO_INVALID_DATA, RONDO_REASON_CHECKSUM);
  assert_message("it was damaged: tensor 'b' does not have its checksum");
  file.data[file.count - 5] ^= 1;
  char *kind = strstr(header, "\"test\"");
  assert_non_null(kind);
  kind[1] = 'r';
  assert_error(rondo_weights_parse(file.data, file.count, NULL, &back), RONDO_INVALID_DATA, RONDO_REASON_CHECKSUM);
  assert_message("it was damaged: its names, shapes or metadata do not have their checksum");
  kind[1] = 't';
  char *key = strstr(header, "rondo.checksum");
  assert_non_null(key);
  key[8] = 'k';
  assert_error(rondo_weights_parse(file.data, file.count, NULL, &back), RONDO_INVALID_DATA, RONDO_REASON_CHECKSUM);
  assert_message("it was damaged: its metadata have no 'rondo.checksum'");
  assert_null(back);
  free(file.data);
}

/* What a set was read with does not stand in the way of saving it changed. */
UNIT_TEST(test_checksums_are_of_what_is_saved) {
  rondo_weights *sample = make_sample(), *back = NULL;
  assert_ok(rondo_weights_save(sample, path_of("first.safetensors")));
  rondo_weights_destroy(sample);
  assert_ok(rondo_weights_load(path_of("first.safetensors"), NULL, &back));
  assert_ok(rondo_weights_add(back, &(rondo_weight){.name = "d", .type = RONDO_F32, .data = &scalar, .bytes = 4}));
  assert_ok(rondo_weights_set_metadata(back, "rondo.checksum", "0"));
  assert_ok(rondo_weights_save(back, path_of("second.safetensors")));
  rondo_weights_destroy(back);
  assert_ok(rondo_weights_load(path_of("second.safetensors"), NULL, &back));
  assert_int_equal(strlen(rondo_weights_get_metadata(back, "rondo.checksum")), 16 * 5);
  rondo_weights_destroy(back);
}

/* Saving ----------------------------------------------------------------------------------------------------------- */

UNIT_TEST(test_a_save_that_fails_leaves_the_old_file) {
  rondo_weights *weights = make_sample();
  const size_t before = count_files();
  assert_fails(rondo_weights_save(weights, path_of("no/such/folder")), RONDO_IO_ERROR);
  assert_ok(mkdir(path_of("taken"), 0777) == 0 ? RONDO_OK : RONDO_IO_ERROR);
  write_file(path_of("taken/inside"), "x", 1);
  assert_fails(rondo_weights_save(weights, path_of("taken")), RONDO_IO_ERROR);
  assert_int_equal(count_files(), before + 1);
  unlink(path_of("taken/inside"));
  rmdir(path_of("taken"));
  assert_ok(rondo_weights_save(weights, path_of("twice.safetensors")));
  assert_ok(rondo_weights_save(weights, path_of("twice.safetensors")));
  assert_int_equal(count_files(), before + 1);
  rondo_weights_destroy(weights);
}

/* What nobody else may read stays so; a link stays, and what it names is replaced. */
UNIT_TEST(test_a_save_keeps_permissions) {
  rondo_weights *weights = make_sample();
  struct stat info;
  assert_ok(rondo_weights_save(weights, path_of("private.safetensors")));
  assert_int_equal(chmod(path_of("private.safetensors"), 0640), 0);
  assert_ok(rondo_weights_save(weights, path_of("private.safetensors")));
  assert_int_equal(stat(path_of("private.safetensors"), &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640);
  assert_int_equal(chmod(path_of("private.safetensors"), 0), 0);
  assert_ok(rondo_weights_save(weights, path_of("private.safetensors")));
  assert_int_equal(stat(path_of("private.safetensors"), &info), 0);
  assert_int_equal(info.st_mode & 0777, 0);
  assert_int_equal(chmod(path_of("private.safetensors"), 0640), 0);
  assert_int_equal(symlink("private.safetensors", path_of("link")), 0);
  const ino_t named = info.st_ino;
  assert_ok(rondo_weights_save(weights, path_of("link")));
  assert_int_equal(lstat(path_of("link"), &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(stat(path_of("private.safetensors"), &info), 0);
  assert_true(info.st_ino != named);
  assert_int_equal(info.st_mode & 0777, 0640);
  unlink(path_of("link"));
  unlink(path_of("private.safetensors"));
  rondo_weights_destroy(weights);
}

/* Reads all of a pipe. */
static void *drain(void *pipe_path) {
  char block[512];
  size_t count = 0;
  const int file = open(pipe_path, O_RDONLY);
  for (ssize_t got = 1; file >= 0 && got > 0; count += (size_t)got) got = read(file, block, sizeof block);
  if (file >= 0) close(file);
  return (void *)count;
}

/* A pipe stands for all that is no regular file: renaming would take the place of a device as well. */
UNIT_TEST(test_a_save_writes_to_a_pipe_directly) {
  rondo_weights *weights = make_sample();
  struct stat info;
  char name[512];
  pthread_t reader;
  void *count = NULL;
  assert_int_equal(mkfifo(path_of("pipe"), 0666), 0);
  assert_int_equal(symlink("pipe", path_of("link")), 0);
  const size_t before = count_files();
  snprintf(name, sizeof name, "%s", path_of("link"));
  assert_int_equal(pthread_create(&reader, NULL, drain, name), 0);
  assert_ok(rondo_weights_save(weights, path_of("link")));
  assert_int_equal(pthread_join(reader, &count), 0);
  assert_ok(rondo_weights_save(weights, path_of("regular.safetensors")));
  assert_int_equal(stat(path_of("regular.safetensors"), &info), 0);
  assert_int_equal((uintptr_t)count, info.st_size);
  unlink(path_of("regular.safetensors"));
  assert_fails(rondo_weights_save(weights, ""), RONDO_IO_ERROR);
  assert_int_equal(stat(path_of("pipe"), &info), 0);
  assert_true(S_ISFIFO(info.st_mode));
  assert_int_equal(lstat(path_of("link"), &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(count_files(), before);
  unlink(path_of("link"));
  unlink(path_of("pipe"));
  rondo_weights_destroy(weights);
}

static rondo_status load_with(const rondo_allocator *allocator, rondo_weights **out_weights) {
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .allocator = allocator};
  return rondo_weights_load(path_of("swept.safetensors"), &options, out_weights);
}

static rondo_status build_save_and_read(const rondo_allocator *allocator) {
  rondo_weights *weights = NULL;
  rondo_weights *back = NULL;
  rondo_status status = rondo_weights_create(allocator, &weights);
  if (status == RONDO_OK) status = fill_sample(weights);
  if (status == RONDO_OK) status = rondo_weights_save(weights, path_of("swept.safetensors"));
  if (status == RONDO_OK) status = load_with(allocator, &back);
  if (status == RONDO_OK) assert_sample(back);
  rondo_weights_destroy(back);
  rondo_weights_destroy(weights);
  return status;
}

UNIT_TEST(test_failing_allocators_leak_nothing) {
  rondo_status status = RONDO_OUT_OF_MEMORY;
  for (size_t fail_at = 1; status != RONDO_OK; fail_at++) {
    test_allocator allocator;
    test_allocator_init(&allocator);
    atomic_store(&allocator.fail_at, fail_at);
    status = build_save_and_read(&allocator.table);
    assert_true(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
    assert_true(test_allocator_is_clean(&allocator));
    assert_true(fail_at < 1000);
  }
}

int main(void) { return test_run_registered_in(make_folder, remove_folder); }
