/* SPDX-License-Identifier: MIT
 * Finding a mathematical library among several names: an unsuitable one is skipped; the reason why none is used is
 * reported once, without a lock. RONDO_ONEDNN_LIBRARY names a oneDNN that cannot create an engine
 * (fake_onednn/without_convolutions.c).
 */
#include <rondo/operators.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "tensor/vendor/compute_libraries.h"

typedef struct functions {
  void *first;
} functions;

static functions found;
static const char *const symbols[] = {"tgamma"}; /* of libm, not of libc */

static rondo_library library_of(const char *first, const char *second) {
  memset(&found, 0, sizeof found);
  return (rondo_library){.name = "test",
                         .purpose = "a test",
                         .needed = "the mathematical library",
                         .option = RONDO_OPTION_CUDNN_LIBRARY, /* not set here */
                         .usual = {NULL, first, second},
                         .symbols = symbols,
                         .symbol_count = 1,
                         .functions = &found,
                         .search = PTHREAD_MUTEX_INITIALIZER};
}

static const char *refuse(void) { return "it is not wanted"; }
static rondo_status dislike(const rondo_dylib *file) {
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, "%s: it is odd", file->path);
}

UNIT_TEST(test_the_first_that_does_is_taken) {
  rondo_library library = library_of("libc.so.6", "libm.so.6");
  assert_true(rondo_library_find(&library));
  assert_true(rondo_library_find(&library));
  assert_string_equal(library.file.path, "libm.so.6");
  assert_string_equal(library.failure.message, "");
  assert_non_null(found.first);
}

UNIT_TEST(test_the_first_finding_is_reported) {
  rondo_library lacking = library_of("libc.so.6", "libnothing.so.9"), none = library_of("libnothing.so.9", NULL);
  assert_false(rondo_library_find(&lacking));
  assert_string_equal(lacking.failure.message, "libc.so.6 has no tgamma: the mathematical library is needed");
  assert_string_equal(lacking.file.path, "");
  assert_false(rondo_library_find(&none));
  assert_non_null(strstr(none.failure.message, "libnothing.so.9"));
}

UNIT_TEST(test_what_is_not_wanted_is_not_looked_for) {
  rondo_library refused = library_of("libc.so.6", NULL), odd = library_of("libm.so.6", NULL);
  refused.why_not = refuse;
  odd.accept = dislike;
  assert_false(rondo_library_find(&refused));
  assert_string_equal(refused.failure.message, "it is not wanted");
  assert_null(found.first);
  assert_false(rondo_library_find(&odd));
  assert_string_equal(odd.failure.message, "libm.so.6: it is odd");
}

typedef struct said {
  int count;
  rondo_log_level level;
  char text[RONDO_ERROR_MESSAGE_BYTES];
  rondo_library *library;
  bool was_locked;
} said;

static void hear(void *user, rondo_log_level level, const char *area, const char *message) {
  said *heard = user;
  (void)area;
  heard->count++;
  heard->level = level;
  (void)snprintf(heard->text, sizeof heard->text, "%s", message);
  heard->was_locked = pthread_mutex_trylock(&heard->library->search) != 0;
  if (!heard->was_locked) pthread_mutex_unlock(&heard->library->search);
}

static bool find_and_hear(rondo_library *library, said *out) {
  *out = (said){.library = library};
  rondo_log_set_sink(hear, out, RONDO_LOG_DEBUG);
  const bool is_found = rondo_library_find(library);
  assert_int_equal(rondo_library_find(library), is_found);
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  assert_false(out->was_locked);
  return is_found;
}

UNIT_TEST(test_why_not_is_reported_once) {
  rondo_library none = library_of("libnothing.so.9", NULL);
  const rondo_status before = rondo_last_error()->status;
  said heard;
  assert_false(find_and_hear(&none, &heard));
  assert_int_equal(heard.count, 1);
  assert_int_equal(heard.level, RONDO_LOG_DEBUG);
  assert_non_null(strstr(heard.text, "no a test from test: "));
  assert_int_equal(rondo_last_error()->status, before);
}

UNIT_TEST(test_a_part_needs_the_whole) {
  rondo_library whole = library_of("libm.so.6", NULL), part = library_of(NULL, NULL);
  rondo_library used = library_of("libm.so.6", NULL), other = library_of(NULL, NULL);
  said heard;
  whole.why_not = refuse;
  part.base = &whole;
  assert_false(find_and_hear(&part, &heard));
  assert_int_equal(heard.count, 1); /* of the whole */
  assert_string_equal(part.failure.message, "it is not wanted");
  other.base = &used;
  assert_true(find_and_hear(&other, &heard));
  assert_string_equal(other.file.path, "libm.so.6");
}

/* Products are the library's all the same. */
UNIT_TEST(test_no_engine_is_reported) {
  rondo_library_info info = {RONDO_LIBRARY_INFO_INIT};
  said heard;
  if (getenv("RONDO_CBLAS_LIBRARY") != NULL) skip(); /* oneDNN is left out then, as ThreadSanitizer's build does */
  assert_false(find_and_hear(&rondo_onednn_convolutions, &heard));
  assert_int_equal(heard.count, 1);
  assert_int_equal(heard.level, RONDO_LOG_WARNING);
  assert_non_null(strstr(heard.text, "it cannot make an engine for the CPU (code 5)"));
  assert_true(rondo_library_find(&rondo_onednn_products));
  assert_ok(rondo_library_enumerate(3, &info));
  assert_string_equal(info.purpose, "convolutions on CPU devices");
  assert_null(info.path);
  assert_string_equal(info.reason, rondo_onednn_convolutions.failure.message);
}
