/* SPDX-License-Identifier: MIT
 * The JSON parser: the contents of a document, the position of an error, and that it agrees with jansson about which
 * texts are JSON.
 */
#include "base/json_parse.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"

static rondo_json_document parse(const char *text) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_json_document document;
  assert_ok(rondo_json_parse(&allocator, text, strlen(text), &document));
  return document;
}

UNIT_TEST(test_a_document_holds_what_the_text_says) {
  rondo_json_document document =
      parse(" {\"a\" : [1, -2 ,3.5e+2, true, false, null, \"x\"], \"empty\":{}, \"none\":[], \"b\":\"last\"} ");
  const rondo_json_value *root = rondo_json_root(&document), *a = rondo_json_get(root, "a");
  assert_true(rondo_json_is(root, RONDO_JSON_OBJECT));
  assert_int_equal(root->count, 4);
  assert_int_equal(root->span, document.values.count);
  assert_true(rondo_json_is(a, RONDO_JSON_ARRAY));
  assert_int_equal(a->count, 7);
  assert_int_equal(rondo_json_item(a, 0)->as.integer, 1);
  assert_int_equal(rondo_json_item(a, 1)->as.integer, -2);
  assert_true(rondo_json_is(rondo_json_item(a, 2), RONDO_JSON_REAL));
  assert_true(rondo_json_item(a, 3)->as.boolean);
  assert_false(rondo_json_item(a, 4)->as.boolean);
  assert_true(rondo_json_is(rondo_json_item(a, 5), RONDO_JSON_NULL));
  assert_string_equal(rondo_json_text_of(rondo_json_item(a, 6)), "x");
  assert_int_equal(rondo_json_get(root, "empty")->count, 0);
  assert_int_equal(rondo_json_get(root, "none")->count, 0);
  assert_string_equal(rondo_json_text_of(rondo_json_get(root, "b")), "last");
  assert_null(rondo_json_get(root, "absent"));
  assert_null(rondo_json_get(a, "a"));
  assert_null(rondo_json_get(NULL, "a"));
  assert_null(rondo_json_text_of(a));
  rondo_json_document_free(&document);
}

UNIT_TEST(test_strings_are_decoded) {
  rondo_json_document document =
      parse("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\", \"é€😀\", \"\"]");
  const rondo_json_value *root = rondo_json_root(&document);
  assert_string_equal(rondo_json_text_of(rondo_json_item(root, 0)), "\"\\/\b\f\n\r\t");
  assert_string_equal(rondo_json_text_of(rondo_json_item(root, 1)), "Aé€😀");
  assert_string_equal(rondo_json_text_of(rondo_json_item(root, 2)), "é€😀");
  assert_string_equal(rondo_json_text_of(rondo_json_item(root, 3)), "");
  rondo_json_document_free(&document);
}

UNIT_TEST(test_integers_have_64_bits) {
  rondo_json_document document =
      parse("[9223372036854775807, -9223372036854775808, -0, 9223372036854775808, 18446744073709551615]");
  const rondo_json_value *root = rondo_json_root(&document);
  assert_true(rondo_json_item(root, 0)->as.integer == INT64_MAX);
  assert_true(rondo_json_item(root, 1)->as.integer == INT64_MIN);
  assert_int_equal(rondo_json_item(root, 2)->as.integer, 0);
  assert_false(rondo_json_is(rondo_json_item(root, 3), RONDO_JSON_INTEGER));
  assert_true(rondo_json_is(rondo_json_item(root, 3), RONDO_JSON_UNSIGNED));
  assert_true(rondo_json_item(root, 3)->as.unsigned_integer == (uint64_t)INT64_MAX + 1);
  assert_true(rondo_json_item(root, 4)->as.unsigned_integer == UINT64_MAX);
  rondo_json_document_free(&document);
}

typedef struct bad_text {
  const char *text, *message;
} bad_text;

static const bad_text bad_texts[] = {
    {"", "line 1, column 1: an object or an array is expected here"},
    {"7", "line 1, column 1: an object or an array is expected here"},
    {"[1,\n 2 3]", "line 2, column 4: ',' or ']' is expected here"},
    {"{\"a\":1 \"b\":2}", "',' or '}' is expected here"},
    {"{\"a\" 1}", "':' is expected after a key"},
    {"{a:1}", "a string is expected here"},
    {"[1,]", "a value is expected here"},
    {"[tru]", "a value is expected here"},
    {"[", "the text ends where a value is expected"},
    {"[]]", "there is text after the end of the document"},
    {"[01]", "',' or ']' is expected here"},
    {"[-]", "a digit is expected here"},
    {"[1.]", "a digit is expected after the point"},
    {"[1e]", "a digit is expected in the exponent"},
    {"[18446744073709551616]", "line 1, column 2: the integer does not fit 64 bits"},
    {"[-9223372036854775809]", "the integer does not fit 64 bits"},
    {"[\"a", "the text ends inside a string"},
    {"[\"a\n\"]", "a control character inside a string"},
    {"[\"\\x\"]", "an escape that JSON does not have"},
    {"[\"\\u00g0\"]", "four hexadecimal digits are expected"},
    {"[\"\\u0000\"]", "a string may not hold U+0000"},
    {"[\"\\ud800\"]", "a surrogate without its other half"},
    {"[\"\\ud800\\u0041\"]", "a surrogate without its other half"},
    {"[\"\\udc00\"]", "a surrogate without its other half"},
    {"[\"\xc0\x80\"]", "a byte that is not UTF-8"},
    {"[\"\xed\xa0\x80\"]", "a byte that is not UTF-8"},
    {"[\"\xf4\x90\x80\x80\"]", "a byte that is not UTF-8"},
    {"[\"\xe2\x82", "a byte that is not UTF-8"},
    {"{\"a\":1,\"b\":2,\"a\":3}", "duplicate object key"},
};

UNIT_TEST(test_bad_texts_are_refused_with_their_place) {
  const rondo_allocator allocator = rondo_allocator_default();
  for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++) {
    rondo_json_document document;
    assert_error(rondo_json_parse(&allocator, bad_texts[i].text, strlen(bad_texts[i].text), &document),
                 RONDO_INVALID_DATA, RONDO_REASON_MALFORMED);
    assert_message(bad_texts[i].message);
    rondo_json_document_free(&document);
  }
}

UNIT_TEST(test_many_keys_are_compared) {
  const rondo_allocator allocator = rondo_allocator_default();
  enum { KEYS = 50000 };
  char *text = malloc(KEYS * 16), *end = text;
  assert_non_null(text);
  for (int i = 0; i < KEYS; i++) end += sprintf(end, "%c\"k%d\":%d", i == 0 ? '{' : ',', i, i);
  rondo_json_document document;
  strcpy(end, "}");
  assert_ok(rondo_json_parse(&allocator, text, strlen(text), &document));
  assert_int_equal(rondo_json_root(&document)->count, KEYS);
  rondo_json_document_free(&document);
  strcpy(end, ",\"k7\":0}");
  assert_error(rondo_json_parse(&allocator, text, strlen(text), &document), RONDO_INVALID_DATA, RONDO_REASON_MALFORMED);
  free(text);
}

UNIT_TEST(test_nesting_has_a_limit) {
  const rondo_allocator allocator = rondo_allocator_default();
  char text[2 * (RONDO_JSON_MOST_DEPTH + 1)];
  rondo_json_document document;
  memset(text, '[', RONDO_JSON_MOST_DEPTH + 1);
  memset(text + RONDO_JSON_MOST_DEPTH + 1, ']', RONDO_JSON_MOST_DEPTH + 1);
  assert_ok(rondo_json_parse(&allocator, text + 1, sizeof text - 2, &document));
  rondo_json_document_free(&document);
  assert_error(rondo_json_parse(&allocator, text, sizeof text, &document), RONDO_INVALID_DATA, RONDO_REASON_MALFORMED);
  assert_message("nested too deeply");
}

/* Every prefix of a text, and the text with each byte changed, is JSON to both parsers or to neither. */
UNIT_TEST(test_jansson_agrees) {
  static const char text[] = "{\"a\":[1,-20,3.5e-2,true,null],\"é\":\"x\\n\\u00e9\\ud83d\\ude00\",\"c\":{\"d\":[]}}";
  static const char changes[] = "\"\\{}[],:0-e.utx \xc3\x1f";
  const rondo_allocator allocator = rondo_allocator_default();
  char changed[sizeof text];
  size_t taken = 0;
  for (size_t i = 0; i < sizeof text; i++) {
    for (size_t c = 0; c < sizeof changes; c++) {
      memcpy(changed, text, sizeof text);
      changed[i] = changes[c];
      const size_t length = changes[c] == '\0' ? i : sizeof text - 1;
      json_t *expected = json_loadb(changed, length, JSON_REJECT_DUPLICATES, NULL);
      rondo_json_document document;
      const rondo_status status = rondo_json_parse(&allocator, changed, length, &document);
      assert_int_equal(status == RONDO_OK, expected != NULL);
      taken += status == RONDO_OK;
      if (status == RONDO_OK) rondo_json_document_free(&document);
      json_decref(expected);
    }
  }
  assert_in_range(taken, 100, sizeof text * sizeof changes);
}

UNIT_TEST(test_failing_allocators_leak_nothing) {
  static const char text[] =
      "{\"a\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18],\"b\":0,\"c\":0,\"d\":0,\"e\":0,"
      "\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,\"k\":0,\"l\":0,\"m\":0,\"n\":0,\"o\":0,\"p\":0,"
      "\"q\":0,\"r\":\"text\"}";
  rondo_status status = RONDO_OUT_OF_MEMORY;
  size_t fail_at = 1;
  for (; status != RONDO_OK; fail_at++) {
    test_allocator allocator;
    rondo_json_document document;
    test_allocator_init(&allocator);
    atomic_store(&allocator.fail_at, fail_at);
    status = rondo_json_parse(&allocator.table, text, sizeof text - 1, &document);
    assert_true(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
    rondo_json_document_free(&document);
    assert_true(test_allocator_is_clean(&allocator));
    assert_true(fail_at < 100);
  }
  assert_true(fail_at > 4);
}
