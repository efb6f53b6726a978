/* SPDX-License-Identifier: MIT
 * Documents: the same fields as text and as JSON.
 */
#include "base/document/document.h"
#include "support/rondo_test.h"

static void describe(rondo_document *d) {
  rondo_document_line(d, "thing");
  rondo_document_string(d, "name", "a\n(%)", " '%'");
  rondo_document_count(d, "calls", 1234, ": % call(s)");
  rondo_document_number(d, "number", 1, "% time(s)");
  rondo_document_bytes(d, "bytes", 4096, " (%)");
  rondo_document_flag(d, "is_on", true, "on", "off");
  rondo_document_null(d, "nothing");
  rondo_document_label(d, "times");
  rondo_document_object_begin(d, "times");
  rondo_document_real(d, "us", 1.25, 2, "; % us");
  rondo_document_ratio(d, 3, 2, "% of 2");
  rondo_document_string(d, "json_only", NULL, "not in the text: %");
  rondo_document_list_begin(d, "shape");
  for (uint64_t i = 2; i < 4; i++) rondo_document_number_item(d, i, i == 2 ? " [%" : "%");
  rondo_document_string_item(d, "x", NULL);
  rondo_document_list_end(d);
  rondo_document_say(d, "]");
  rondo_document_object_end(d);
}

static void assert_rendered(bool is_json, const char *expected) {
  rondo_text text;
  rondo_document document;
  char *out = NULL;
  rondo_text_init(&text, NULL);
  rondo_document_begin(&document, &text, is_json);
  describe(&document);
  rondo_document_end(&document);
  assert_ok(rondo_text_hand_out(&text, &out));
  assert_string_equal(out, expected);
  rondo_text_free(out);
}

UNIT_TEST(test_both_formats_have_the_fields) {
  assert_rendered(false,
                  "thing 'a\\n(%)': 1,234 calls, 1 time (4.0 KiB), on\n"
                  "  times        1.25 us, 1.5000 of 2 [2, 3]\n");
  assert_rendered(true,
                  "{\"name\":\"a\\n(%)\",\"calls\":1234,\"number\":1,\"bytes\":4096,\"is_on\":true,\"nothing\":null,"
                  "\"times\":{\"us\":1.25,\"json_only\":null,\"shape\":[2,3,\"x\"]}}");
}
