/* SPDX-License-Identifier: MIT
 * The text builder and the JSON writer, read back with jansson.
 */
#define _GNU_SOURCE

#include <float.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "support/rondo_test.h"

#define REPLACEMENT "\xEF\xBF\xBD"

/* Takes the text and parses it. */
static json_t *parse(rondo_text *text) {
  const rondo_allocator allocator = text->allocator;
  char *taken;
  rondo_text_check(text);
  assert_ok(rondo_text_take(text, &taken));
  json_error_t error;
  json_t *root = json_loads(taken, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
  if (root == NULL) fail_msg("%s at %d: %s", error.text, error.position, taken);
  rondo_release_text(&allocator, taken);
  return root;
}

ALLOCATOR_TEST(test_text_grows) {
  rondo_text text;
  char *taken;
  rondo_text_init(&text, &counting->table);
  for (int i = 0; i < 1000; i++) rondo_text_add(&text, "%03d", i);
  rondo_text_add_bytes(&text, "endless", 3);
  rondo_text_add_bytes(&text, NULL, 0);
  assert_int_equal(strlen(text.bytes), 3003);
  assert_ok(rondo_text_take(&text, &taken));
  assert_int_equal(strlen(taken), 3003);
  assert_memory_equal(taken, "000001002", 9);
  assert_string_equal(taken + 2997, "999end");
  rondo_release_text(&counting->table, taken);
  rondo_text_deinit(&text);
}

UNIT_TEST(test_an_empty_text_is_a_text) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_text text;
  char *taken;
  rondo_text_init(&text, NULL);
  assert_ok(rondo_text_take(&text, &taken));
  assert_string_equal(taken, "");
  rondo_release_text(&allocator, taken);
  rondo_text_add(&text, "used again");
  assert_ok(rondo_text_take(&text, &taken));
  assert_string_equal(taken, "used again");
  rondo_release_text(&allocator, taken);
}

ALLOCATOR_TEST(test_the_first_error_comes_out_at_the_end) {
  atomic_store(&counting->fail_at, 2);
  rondo_text text;
  char *taken = (char *)&text;
  rondo_text_init(&text, &counting->table);
  rondo_text_add(&text, "fits");
  rondo_text_add(&text, "%500s", "does not");
  rondo_text_add(&text, "would fit again");
  assert_int_equal(counting->calls, 2);
  assert_int_equal(rondo_text_take(&text, &taken), RONDO_OUT_OF_MEMORY);
  assert_null(taken);
  assert_int_equal(rondo_last_error()->status, RONDO_OUT_OF_MEMORY);
  assert_memory_equal(rondo_last_error()->message, "a text of 4 bytes so far: ", 26);
}

UNIT_TEST(test_commas_and_keys) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_text text;
  char *taken;
  rondo_text_init(&text, &allocator);
  rondo_json_object_begin(&text);
  rondo_json_key(&text, "a");
  rondo_json_array_begin(&text);
  rondo_json_u64(&text, UINT64_MAX);
  rondo_json_object_begin(&text);
  rondo_json_object_end(&text);
  rondo_json_array_begin(&text);
  rondo_json_array_end(&text);
  for (uint64_t i = 0; i < 2; i++) { /* what stood in the first one puts no comma into the second */
    rondo_json_array_begin(&text);
    rondo_json_u64(&text, i);
    rondo_json_array_end(&text);
  }
  rondo_json_bool(&text, true);
  rondo_json_array_end(&text);
  rondo_json_key(&text, "b");
  rondo_json_string(&text, NULL);
  rondo_json_key(&text, "c");
  rondo_json_bool(&text, false);
  rondo_json_key(&text, "d");
  rondo_json_double(&text, 0.5);
  rondo_json_object_end(&text);
  assert_ok(rondo_text_take(&text, &taken));
  assert_string_equal(taken,
                      "{\"a\":[18446744073709551615,{},[],[0],[1],true],"
                      "\"b\":null,\"c\":false,\"d\":0.5}");
  rondo_release_text(&allocator, taken);
}

UNIT_TEST(test_nesting_has_an_end) {
  rondo_text text;
  char *taken;
  rondo_text_init(&text, NULL);
  for (int i = 0; i < 60; i++) {
    rondo_json_array_begin(&text);
    rondo_json_u64(&text, 1);
  }
  for (int i = 0; i < 60; i++) rondo_json_array_end(&text);
  json_decref(parse(&text));

  for (int i = 0; i < 61; i++) rondo_json_array_begin(&text);
  for (int i = 0; i < 61; i++) rondo_json_array_end(&text);
  assert_int_equal(rondo_text_take(&text, &taken), RONDO_LIMIT_EXCEEDED);
  assert_null(taken);
}

static double from_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void assert_doubles_come_back(const double *values, size_t count) {
  rondo_text text;
  rondo_text_init(&text, NULL);
  rondo_json_array_begin(&text);
  for (size_t i = 0; i < count; i++) rondo_json_double(&text, values[i]);
  rondo_json_array_end(&text);
  json_t *root = parse(&text);
  assert_int_equal(json_array_size(root), count);
  for (size_t i = 0; i < count; i++) {
    const json_t *item = json_array_get(root, i);
    if (!isfinite(values[i])) {
      assert_true(json_is_null(item));
      continue;
    }
    assert_true(json_is_real(item)); /* also whole numbers */
    const double back = json_real_value(item);
    assert_memory_equal(&back, &values[i], sizeof back);
  }
  json_decref(root);
}

UNIT_TEST(test_doubles_come_back_bit_for_bit) {
  enum { COUNT = 20000 };
  static double values[COUNT];
  const double special[] = {0.0,
                            -0.0,
                            1,
                            -1,
                            0.1,
                            1.0 / 3,
                            1e15,
                            1e16,
                            1e22,
                            1e23,
                            DBL_MAX,
                            DBL_MIN,
                            -DBL_MAX,
                            5e-324,
                            2.2250738585072011e-308,
                            123456,
                            9007199254740993.0,
                            0x1.fffffffffffffp-3,
                            NAN,
                            INFINITY,
                            -INFINITY};
  const size_t count = sizeof special / sizeof *special;
  memcpy(values, special, sizeof special);
  uint64_t bits = 3;
  for (size_t i = count; i < COUNT; i++) values[i] = from_bits(bits = rondo_hash_u64(bits, i));
  assert_doubles_come_back(values, COUNT);
}

UNIT_TEST(test_doubles_are_short) {
  static const struct {
    double value;
    const char *text;
  } cases[] = {
      {0.1, "0.1"},      {3, "3.0"},          {-0.0, "-0.0"},
      {1e100, "1e+100"}, {2.5e-9, "2.5e-09"}, {0.1 + 0.2, "0.30000000000000004"},
      {1e15, "1e+15"},   {NAN, "null"},
  };
  char buffer[RONDO_JSON_DOUBLE_BYTES];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(rondo_json_double_text(buffer, cases[i].value), strlen(cases[i].text));
    assert_string_equal(buffer, cases[i].text);
  }
}

UNIT_TEST(test_the_locale_does_not_matter) {
  static const char *const with_comma[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "ps_AF.UTF-8"};
  const double values[] = {0.5, 1.25e-300, 3, 1.0 / 3};
  bool any = false;
  for (size_t i = 0; i < sizeof with_comma / sizeof *with_comma; i++) {
    if (setlocale(LC_NUMERIC, with_comma[i]) == NULL) continue;
    any = true;
    assert_doubles_come_back(values, sizeof values / sizeof *values);
  }
  setlocale(LC_NUMERIC, "C");
  if (!any) skip();
}

static void assert_string_becomes(const char *value, const char *expected) {
  rondo_text text;
  rondo_text_init(&text, NULL);
  rondo_json_string(&text, value);
  json_t *root = parse(&text);
  assert_string_equal(json_string_value(root), expected);
  json_decref(root);
}

UNIT_TEST(test_hostile_strings) {
  static const char *const kept[] = {"",
                                     "plain",
                                     "\"quoted\" \\ / \b\f\n\r\t \x01\x1f\x7f",
                                     "\xC3\xA9\xE2\x82\xAC",
                                     "\xF0\x9F\x8E\xB5",
                                     "\xEF\xBF\xBF",
                                     "\xED\x9F\xBF",
                                     "\xF4\x8F\xBF\xBF",
                                     "]}\",",
                                     "</script>"};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) assert_string_becomes(kept[i], kept[i]);
  static const struct {
    const char *value, *expected;
  } mended[] = {
      {"a\xFF"
       "b",
       "a" REPLACEMENT "b"},
      {"\x80", REPLACEMENT},
      {"\xC0\xAF", REPLACEMENT REPLACEMENT}, /* too long a form of '/' */
      {"\xE0\x80\xAF", REPLACEMENT REPLACEMENT REPLACEMENT},
      {"\xED\xA0\x80", REPLACEMENT REPLACEMENT REPLACEMENT},                 /* half of a surrogate pair */
      {"\xF4\x90\x80\x80", REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT}, /* past U+10FFFF */
      {"\xE2\x82", REPLACEMENT REPLACEMENT},                                 /* ends too early */
      {"\xF0\x9F\x8E", REPLACEMENT REPLACEMENT REPLACEMENT},
      {"\xE2\x82\"", REPLACEMENT REPLACEMENT "\""},
  };
  for (size_t i = 0; i < sizeof mended / sizeof *mended; i++)
    assert_string_becomes(mended[i].value, mended[i].expected);
}

/* jansson refuses what is not UTF-8 and any control character, so parsing is the test. */
UNIT_TEST(test_any_bytes_give_valid_json) {
  rondo_text text;
  rondo_text_init(&text, NULL);
  rondo_json_array_begin(&text);
  for (unsigned first = 1; first < 256; first++)
    for (unsigned second = 1; second < 256; second++) {
      const char value[] = {(char)first, (char)second, 'x', (char)second, (char)first, '\0'};
      rondo_json_string(&text, value);
    }
  rondo_json_array_end(&text);
  json_t *root = parse(&text);
  assert_int_equal(json_array_size(root), 255 * 255);
  json_decref(root);
}

UNIT_TEST(test_keys_are_escaped) {
  rondo_text text;
  rondo_text_init(&text, NULL);
  rondo_json_object_begin(&text);
  rondo_json_key(&text, "a\"\n\xFF");
  rondo_json_u64(&text, 1);
  rondo_json_object_end(&text);
  json_t *root = parse(&text);
  assert_int_equal(json_integer_value(json_object_get(root, "a\"\n" REPLACEMENT)), 1);
  json_decref(root);
}

UNIT_TEST(test_escape_cuts_whole_characters) {
  static const char value[] = "ab\n\x01\xE2\x82\xAC\"cd";
  static const char whole[] = "ab\\n\\u0001\xE2\x82\xAC\\\"cd";
  static const size_t ends[] = {0, 1, 2, 4, 10, 13, 15, 16, 17}; /* where a cut may fall */
  char buffer[32];
  for (size_t room = 1; room <= sizeof buffer; room++) {
    memset(buffer, '#', sizeof buffer);
    const size_t length = rondo_json_escape(buffer, room, value);
    size_t expected = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
      if (ends[i] < room) expected = ends[i];
    assert_int_equal(length, expected);
    assert_int_equal(strlen(buffer), expected);
    assert_memory_equal(buffer, whole, expected);
    for (size_t i = room; i < sizeof buffer; i++) assert_int_equal(buffer[i], '#');
  }
}

static void assert_markup(const char *value, size_t most, const char *expected) {
  rondo_text text;
  rondo_text_init(&text, NULL);
  rondo_text_add_markup(&text, value, most);
  rondo_text_add(&text, "|");
  char *taken = NULL;
  assert_ok(rondo_text_hand_out(&text, &taken));
  assert_int_equal(taken[strlen(taken) - 1], '|');
  taken[strlen(taken) - 1] = '\0';
  assert_string_equal(taken, expected);
  rondo_text_free(taken);
  char buffer[RONDO_MARKUP_TEXT(100)];
  assert_string_equal(rondo_markup_text(buffer, sizeof buffer, value, most), expected);
}

UNIT_TEST(test_markup_is_escaped) {
  assert_markup("", 10, "");
  assert_markup("a<b> & \"c\" 'd'", 100, "a&lt;b&gt; &amp; &quot;c&quot; 'd'");
  assert_markup("tab\tline\nbell\a\x1b\x7f", 100, "tab\tline\nbell" REPLACEMENT REPLACEMENT REPLACEMENT);
  assert_markup("\xE2\x82\xAC\xF0\x9F\x98\x80", 100, "\xE2\x82\xAC\xF0\x9F\x98\x80");
  assert_markup("\xC0\x80\xED\xA0\x80", 100, REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT);
  assert_markup("\xEF\xBF\xBD\xEF\xBF\xBE\xEF\xBF\xBF", 100, REPLACEMENT REPLACEMENT REPLACEMENT);
}

UNIT_TEST(test_markup_is_cut_at_whole_characters) {
  assert_markup("abc", 3, "abc");
  assert_markup("abcd", 3, "abc...");
  assert_markup("ab\xE2\x82\xAC", 5, "ab\xE2\x82\xAC");
  assert_markup("ab\xE2\x82\xAC", 4, "ab...");
  assert_markup("<<<", 2, "&lt;&lt;...");
  assert_markup("a", 0, "...");
}

UNIT_TEST(test_numbers_for_people) {
  const struct {
    const char *shown, *expected;
  } cases[] = {{RONDO_GROUPED(0), "0"},
               {RONDO_GROUPED(999), "999"},
               {RONDO_GROUPED(1000), "1,000"},
               {RONDO_GROUPED(1234567), "1,234,567"},
               {RONDO_GROUPED(UINT64_MAX), "18,446,744,073,709,551,615"},
               {RONDO_FIXED(0, 0), "0"},
               {RONDO_FIXED(2.0049, 2), "2.00"},
               {RONDO_FIXED(9.96, 1), "10.0"},
               {RONDO_FIXED(1e12, 6), "1000000000000.000000"},
               {RONDO_FIXED((double)INFINITY, 1), ">10^12"},
               {RONDO_RATIO(4096, 4096), "1.0000"},
               {RONDO_RATIO(1000001, 1000000), "1.0001"},
               {RONDO_RATIO(30, 20), "1.5000"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_string_equal(cases[i].shown, cases[i].expected);
}
