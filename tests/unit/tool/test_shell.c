/* SPDX-License-Identifier: MIT
 * Words that the tool prints as part of a command: bash reads the text as the same word.
 */
#define _POSIX_C_SOURCE 200809L
#include "common/shell.h"
#include "support/rondo_test.h"

#include <stdio.h>
#include <string.h>

static void print_word(const char *word, char *out, size_t room) {
  FILE *stream = fmemopen(out, room, "w");
  assert_non_null(stream);
  shell_print(stream, word);
  assert_int_equal(fclose(stream), 0);
}

static void assert_printed(const char *word, const char *expected) {
  char text[256] = {0};
  print_word(word, text, sizeof text);
  assert_string_equal(text, expected);
}

UNIT_TEST(test_words_without_special_characters_are_unchanged) {
  assert_printed("--device=cuda:0", "--device=cuda:0");
  assert_printed("a/b_c.d,e+f@g%h-1", "a/b_c.d,e+f@g%h-1");
}

UNIT_TEST(test_other_words_are_quoted) {
  assert_printed("", "''");
  assert_printed("two words", "'two words'");
  assert_printed("$HOME \"x\" `ls` *", "'$HOME \"x\" `ls` *'");
  assert_printed("it's", "'it'\\''s'");
}

UNIT_TEST(test_what_a_terminal_does_not_show_is_escaped) {
  assert_printed("a\nb", "$'a\\x0ab'");
  assert_printed("\033[1m'\\", "$'\\x1b[1m\\x27\\x5c'");
  assert_printed("\xc3\xa4", "$'\\xc3\\xa4'");
}
