/* SPDX-License-Identifier: MIT
 * Shared libraries found at run time.
 */

#include <string.h>

#include "base/error.h"
#include "base/shared_library.h"
#include "support/rondo_test.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

UNIT_TEST(test_the_first_that_opens) {
  const char *const candidates[] = {NULL, "", "librondo-none.so.1", "libm.so.6", "libc.so.6"};
  rondo_dylib library;
  assert_ok(rondo_dylib_open(candidates, COUNT(candidates), &library));
  assert_string_equal(library.path, "libm.so.6");
  void *symbol = rondo_dylib_symbol(&library, "floor");
  double (*function)(double);
  assert_non_null(symbol);
  memcpy(&function, &symbol, sizeof function);
  assert_true(function(1.5) == 1.0);
  assert_null(rondo_dylib_symbol(&library, "rondo_no_such_symbol"));
  rondo_dylib_close(&library);
  assert_null(library.handle);
  assert_null(rondo_dylib_symbol(&library, "floor"));
  rondo_dylib_close(&library);
}

UNIT_TEST(test_each_candidate_is_named) {
  const char *const candidates[] = {"librondo-one.so", "/nowhere/librondo-two.so.2", "", "/dev/null",
                                    "librondo-four.so"};
  rondo_dylib library;
  assert_int_equal(rondo_dylib_open(candidates, COUNT(candidates), &library), RONDO_UNAVAILABLE);
  assert_null(library.handle);
  const char *message = rondo_last_error()->message;
  assert_non_null(strstr(message, "librondo-one.so: cannot open shared object file: No such file"));
  for (size_t i = 0; i < COUNT(candidates); i++) assert_non_null(strstr(message, candidates[i]));
}

UNIT_TEST(test_nothing_to_try) {
  const char *const candidates[] = {NULL, ""};
  rondo_dylib library;
  assert_int_equal(rondo_dylib_open(candidates, COUNT(candidates), &library), RONDO_UNAVAILABLE);
  assert_message("no library was named");
  assert_int_equal(rondo_dylib_open(NULL, 0, &library), RONDO_UNAVAILABLE);
  assert_null(library.handle);
}

UNIT_TEST(test_names_that_are_too_long) {
  char name[2000];
  memset(name, 'l', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  const char *const candidates[] = {name, "librondo-after.so"};
  rondo_dylib library;
  assert_int_equal(rondo_dylib_open(candidates, COUNT(candidates), &library), RONDO_UNAVAILABLE);
  assert_message("a name of 1999 bytes is longer than 255");
  assert_message("librondo-after.so");
}

UNIT_TEST(test_many_candidates_are_cut) {
  const char *candidates[200];
  for (size_t i = 0; i < COUNT(candidates); i++) candidates[i] = "librondo-again-and-again.so";
  rondo_dylib library;
  assert_int_equal(rondo_dylib_open(candidates, COUNT(candidates), &library), RONDO_UNAVAILABLE);
  const char *message = rondo_last_error()->message;
  assert_true(strlen(message) < RONDO_ERROR_MESSAGE_BYTES);
  assert_string_equal(message + strlen(message) - 3, "...");
}
