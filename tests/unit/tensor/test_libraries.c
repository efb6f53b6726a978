/* SPDX-License-Identifier: MIT
 * Finding a library for arithmetic among several names: one that will not do is passed over.
 */
#include "tensor/libraries.h"

#include <string.h>

#include "support/rondo_test.h"

typedef struct functions {
  void *first;
} functions;

static functions found;
static const rondo_library_symbol symbols[] = {{"tgamma", offsetof(functions, first)}}; /* of libm, not of libc */

static rondo_library library_of(const char *first, const char *second) {
  memset(&found, 0, sizeof found);
  return (rondo_library){.name = "test",
                         .purpose = "a test",
                         .needed = "the mathematical library",
                         .option = RONDO_OPTION_ONEDNN_LIBRARY, /* not set here */
                         .usual = {NULL, first, second},
                         .symbols = symbols,
                         .symbol_count = 1,
                         .functions = &found,
                         .search = PTHREAD_MUTEX_INITIALIZER};
}

static const char *refuse(void) { return "it is not wanted"; }
static const char *dislike(const rondo_dylib *file) { return file->path[0] != '\0' ? "it is odd" : NULL; }

static void test_the_first_that_does_is_taken(void **state) {
  rondo_library library = library_of("libc.so.6", "libm.so.6");
  (void)state;
  assert_true(rondo_library_find(&library));
  assert_true(rondo_library_find(&library));
  assert_string_equal(library.file.path, "libm.so.6");
  assert_string_equal(library.reason, "");
  assert_non_null(found.first);
}

static void test_the_first_trouble_is_told(void **state) {
  rondo_library lacking = library_of("libc.so.6", "libnothing.so.9"), none = library_of("libnothing.so.9", NULL);
  (void)state;
  assert_false(rondo_library_find(&lacking));
  assert_string_equal(lacking.reason, "libc.so.6 has no tgamma: the mathematical library is needed");
  assert_string_equal(lacking.file.path, "");
  assert_false(rondo_library_find(&none));
  assert_non_null(strstr(none.reason, "libnothing.so.9"));
}

static void test_what_is_not_wanted_is_not_looked_for(void **state) {
  rondo_library refused = library_of("libc.so.6", NULL), odd = library_of("libm.so.6", NULL);
  (void)state;
  refused.why_not = refuse;
  odd.accept = dislike;
  assert_false(rondo_library_find(&refused));
  assert_string_equal(refused.reason, "it is not wanted");
  assert_null(found.first);
  assert_false(rondo_library_find(&odd));
  assert_string_equal(odd.reason, "libm.so.6: it is odd");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_first_that_does_is_taken),
      cmocka_unit_test(test_the_first_trouble_is_told),
      cmocka_unit_test(test_what_is_not_wanted_is_not_looked_for),
  };
  return cmocka_run_group_tests_name("tensor/libraries", tests, NULL, NULL);
}
