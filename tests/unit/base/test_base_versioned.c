/* SPDX-License-Identifier: MIT
 * Structs of other versions: which are accepted, and how they are filled, by the rules of <rondo/rondo.h>.
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

UNIT_TEST(null_reads_as_zero) {
  options out = {1, 2, 3};
  assert_ok(rondo_versioned_read("options", NULL, &out, sizeof out));
  assert_int_equal(out.struct_size, 0);
  assert_int_equal(out.first, 0);
  assert_int_equal(out.second, 0);
}

UNIT_TEST(size_zero_is_this_version) {
  const options given = {0, 2, 3};
  options out;
  assert_ok(rondo_versioned_read("options", &given, &out, sizeof out));
  assert_int_equal(out.first, 2);
  assert_int_equal(out.second, 3);
}

/* A struct that ends inside one of its fields would be read by halves. */
UNIT_TEST(shorter_structs_are_refused) {
  for (uint32_t size = 1; size < sizeof(options); size++) {
    const options given = {size, 2, 3};
    options out;
    assert_invalid(rondo_versioned_read("options", &given, &out, sizeof out), RONDO_REASON_BAD_OPTIONS);
    assert_message("this version's struct has 16 bytes");
  }
}

typedef struct reserving_options {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t second;
} reserving_options;

UNIT_TEST(reserved_fields_must_be_zero) {
  reserving_options given = {sizeof given, 0, 3}, out = {0};
  assert_ok(RONDO_VERSIONED_READ("options", &given, &out));
  assert_int_equal(out.second, 3);
  assert_ok(RONDO_VERSIONED_READ("options", NULL, &out));
  given.reserved = 0x01000000;
  assert_invalid(RONDO_VERSIONED_READ("options", &given, &out), RONDO_REASON_BAD_OPTIONS);
  assert_message("options: 'reserved' is set");
}

UNIT_TEST(a_newer_struct_is_read_when_its_tail_is_zero) {
  newer_options given = {{sizeof given, 2, 3}, 0};
  options out;
  assert_ok(rondo_versioned_read("options", &given, &out, sizeof out));
  assert_int_equal(out.second, 3);
  assert_int_equal(out.struct_size, sizeof out); /* whoever gets the copy must not read past it */
  given.third = 1;
  assert_invalid(rondo_versioned_read("options", &given, &out, sizeof out), RONDO_REASON_BAD_OPTIONS);
  assert_message("options");
}

UNIT_TEST(sizes_that_cannot_be_are_refused) {
  static const uint32_t sizes[] = {1, 3, 4097, UINT32_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    options given = {sizes[i], 0, 0}, out = {0};
    assert_int_equal(rondo_versioned_read("options", &given, &out, sizeof out), RONDO_INVALID_ARGUMENT);
    assert_invalid(rondo_versioned_write("options", &out, &given, sizeof out), RONDO_REASON_BAD_OPTIONS);
  }
}

/* A struct that ends inside one of its fields would be filled by halves, which no program can use. */
UNIT_TEST(shorter_structs_are_not_filled) {
  const options value = {sizeof value, 7, 9};
  for (uint32_t size = 1; size < sizeof(options); size++) {
    options out = {size, 2, 3};
    assert_int_equal(rondo_versioned_check("options", &out, sizeof out), RONDO_INVALID_ARGUMENT);
    assert_invalid(rondo_versioned_write("options", &value, &out, sizeof value), RONDO_REASON_BAD_OPTIONS);
    assert_message("this version's struct has 16 bytes");
    assert_int_equal(out.struct_size, size);
    assert_int_equal(out.first, 2);
    assert_int_equal(out.second, 3);
  }
}

UNIT_TEST(a_newer_struct_is_filled_and_its_tail_stays) {
  const options value = {sizeof value, 7, 9};
  newer_options newer = {{sizeof newer, 0, 1}, 5};
  assert_ok(rondo_versioned_check("options", &newer, sizeof value));
  assert_ok(rondo_versioned_write("options", &value, &newer, sizeof value));
  assert_int_equal(newer.known.struct_size, sizeof newer);
  assert_int_equal(newer.known.second, 9);
  assert_int_equal(newer.third, 5);
}

UNIT_TEST(a_struct_of_size_zero_is_filled_whole) {
  const options value = {sizeof value, 7, 9};
  options out = {0, 0, 1};
  assert_ok(rondo_versioned_check("options", NULL, sizeof out));
  assert_ok(rondo_versioned_write("options", &value, &out, sizeof value));
  assert_int_equal(out.struct_size, sizeof value);
  assert_int_equal(out.second, 9);
}
