/* SPDX-License-Identifier: MIT
 * Structs of other versions: which are read, and how they are filled, by the rules of <rondo/rondo.h>.
 */
#include "base/versioned_struct.h"
#include "support/rondo_test.h"

#include <string.h>

typedef struct options {
  uint32_t struct_size;
  uint32_t first;
  uint64_t second;
} options;

typedef struct newer_options {
  options known;
  uint64_t third;
} newer_options;

static void null_reads_as_zero(void **state) {
  (void)state;
  options out = {1, 2, 3};
  assert_ok(rondo_versioned_read("options", NULL, &out, sizeof out));
  assert_int_equal(out.struct_size, 0);
  assert_int_equal(out.first, 0);
  assert_int_equal(out.second, 0);
}

static void size_zero_is_this_version(void **state) {
  (void)state;
  const options given = {0, 2, 3};
  options out;
  assert_ok(rondo_versioned_read("options", &given, &out, sizeof out));
  assert_int_equal(out.first, 2);
  assert_int_equal(out.second, 3);
}

/* A struct that ends inside one of its fields would be read by halves. */
static void shorter_structs_are_refused(void **state) {
  (void)state;
  for (uint32_t size = 1; size < sizeof(options); size++) {
    const options given = {size, 2, 3};
    options out;
    assert_error(rondo_versioned_read("options", &given, &out, sizeof out), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_BAD_OPTIONS);
    assert_message("this version's struct has 16 bytes");
  }
}

typedef struct reserving_options {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t second;
} reserving_options;

static void reserved_fields_must_be_zero(void **state) {
  (void)state;
  reserving_options given = {sizeof given, 0, 3}, out = {0};
  assert_ok(RONDO_VERSIONED_READ("options", &given, &out));
  assert_int_equal(out.second, 3);
  assert_ok(RONDO_VERSIONED_READ("options", NULL, &out));
  given.reserved = 0x01000000;
  assert_error(RONDO_VERSIONED_READ("options", &given, &out), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  assert_message("options: 'reserved' is set");
}

static void a_newer_struct_is_read_when_its_tail_is_zero(void **state) {
  (void)state;
  newer_options given = {{sizeof given, 2, 3}, 0};
  options out;
  assert_ok(rondo_versioned_read("options", &given, &out, sizeof out));
  assert_int_equal(out.second, 3);
  given.third = 1;
  assert_error(rondo_versioned_read("options", &given, &out, sizeof out), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_BAD_OPTIONS);
  assert_message("options");
}

static void sizes_that_cannot_be_are_refused(void **state) {
  (void)state;
  static const uint32_t sizes[] = {1, 3, 4097, UINT32_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    options given = {sizes[i], 0, 0}, out = {0};
    assert_int_equal(rondo_versioned_read("options", &given, &out, sizeof out), RONDO_INVALID_ARGUMENT);
    assert_error(rondo_versioned_write("options", &out, &given, sizeof out), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_BAD_OPTIONS);
  }
}

/* A struct that ends inside one of its fields would be filled by halves, which no program can use. */
static void shorter_structs_are_not_filled(void **state) {
  (void)state;
  const options value = {sizeof value, 7, 9};
  for (uint32_t size = 1; size < sizeof(options); size++) {
    options out = {size, 2, 3};
    assert_int_equal(rondo_versioned_check("options", &out, sizeof out), RONDO_INVALID_ARGUMENT);
    assert_error(rondo_versioned_write("options", &value, &out, sizeof value), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_BAD_OPTIONS);
    assert_message("this version's struct has 16 bytes");
    assert_int_equal(out.struct_size, size);
    assert_int_equal(out.first, 2);
    assert_int_equal(out.second, 3);
  }
}

static void a_newer_struct_is_filled_and_its_tail_stays(void **state) {
  (void)state;
  const options value = {sizeof value, 7, 9};
  newer_options newer = {{sizeof newer, 0, 1}, 5};
  assert_ok(rondo_versioned_check("options", &newer, sizeof value));
  assert_ok(rondo_versioned_write("options", &value, &newer, sizeof value));
  assert_int_equal(newer.known.struct_size, sizeof newer);
  assert_int_equal(newer.known.second, 9);
  assert_int_equal(newer.third, 5);
}

static void a_struct_of_size_zero_is_filled_whole(void **state) {
  (void)state;
  const options value = {sizeof value, 7, 9};
  options out = {0, 0, 1};
  assert_ok(rondo_versioned_check("options", NULL, sizeof out));
  assert_ok(rondo_versioned_write("options", &value, &out, sizeof value));
  assert_int_equal(out.struct_size, sizeof value);
  assert_int_equal(out.second, 9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(null_reads_as_zero),
      cmocka_unit_test(size_zero_is_this_version),
      cmocka_unit_test(shorter_structs_are_refused),
      cmocka_unit_test(reserved_fields_must_be_zero),
      cmocka_unit_test(a_newer_struct_is_read_when_its_tail_is_zero),
      cmocka_unit_test(sizes_that_cannot_be_are_refused),
      cmocka_unit_test(shorter_structs_are_not_filled),
      cmocka_unit_test(a_newer_struct_is_filled_and_its_tail_stays),
      cmocka_unit_test(a_struct_of_size_zero_is_filled_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
