/* SPDX-License-Identifier: MIT
 * Texts collected in memory: all of what was written, or nothing. Linked with --wrap=realloc, so that each allocation
 * fails in turn.
 */
#include "common/text_stream.h"
#include "support/rondo_test.h"

#include <stdlib.h>
#include <string.h>

static size_t calls, fail_at; /* of realloc; 0: none fails */

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes) { return ++calls == fail_at ? NULL : __real_realloc(memory, bytes); }

/* The text of so many numbers. */
static char *write_numbers(int count) {
  text_stream s;
  FILE *stream = text_stream_open(&s);
  assert_non_null(stream);
  for (int i = 0; i < count; i++) fprintf(stream, "%06d\n", i);
  return text_stream_close(&s);
}

UNIT_TEST(test_the_text_is_whole) {
  static const int counts[] = {0, 1, 585, 586, 1170, 1171, 100000};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    char *text = write_numbers(counts[i]);
    assert_non_null(text);
    assert_int_equal(strlen(text), 7 * (size_t)counts[i]);
    for (int k = 0; k < counts[i]; k++) assert_int_equal(atoi(text + 7 * k), k);
    free(text);
  }
}

UNIT_TEST(test_each_allocation_that_fails_is_found) {
  calls = 0;
  free(write_numbers(100000));
  const size_t count = calls;
  assert_true(count > 5);
  for (fail_at = 1; fail_at <= count; fail_at++) {
    calls = 0;
    assert_null(write_numbers(100000));
  }
  fail_at = calls = 0;
}

UNIT_TEST(test_a_stream_that_was_not_opened_gives_no_text) {
  text_stream s = {0};
  assert_null(text_stream_close(&s));
}
