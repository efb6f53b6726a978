/* SPDX-License-Identifier: MIT
 * A small XML parser that only decides whether a text is well-formed.
 */
#include "support/test_markup.h"

#include <stdbool.h>
#include <string.h>

#include "support/rondo_test.h"

enum { DEEPEST = 64, MOST_ATTRIBUTES = 32 };

/* A part of the text. */
typedef struct name {
  const char *begin;
  size_t length;
} name;

typedef struct markup_reader {
  const char *at;
  const char *fault; /* the error; NULL: none so far */
  name open[DEEPEST];
  size_t depth, roots;
} markup_reader;

static bool refuse(markup_reader *r, const char *fault) {
  if (r->fault == NULL) r->fault = fault;
  return false;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool starts(const markup_reader *r, const char *with) { return strncmp(r->at, with, strlen(with)) == 0; }

static bool same(name a, name b) { return a.length == b.length && memcmp(a.begin, b.begin, a.length) == 0; }

static void skip_blanks(markup_reader *r) { r->at += strspn(r->at, " \t\r\n"); }

static bool skip_to(markup_reader *r, const char *end) {
  const char *found = strstr(r->at, end);
  if (found == NULL) return refuse(r, "something has no end");
  r->at = found + strlen(end);
  return true;
}

static bool take_name(markup_reader *r, name *out) {
  const char *begin = r->at;
  if (!is_letter(*begin)) return refuse(r, "a name is missing");
  while (is_letter(*r->at) || (*r->at >= '0' && *r->at <= '9') || (*r->at != '\0' && strchr("-:.", *r->at))) r->at++;
  *out = (name){begin, (size_t)(r->at - begin)};
  return true;
}

static bool take_entity(markup_reader *r) {
  static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (!starts(r, known[i])) continue;
    r->at += strlen(known[i]);
    return true;
  }
  return refuse(r, "an & that is no entity");
}

/* The length in bytes of the UTF-8 character at `c`; 0 if it is invalid (Unicode 15, table 3-7). */
static size_t character_length(const unsigned char *c) {
  if (*c < 0x80) return 1;
  const size_t length = *c >= 0xF0 ? 4 : *c >= 0xE0 ? 3 : 2;
  if (*c < 0xC2 || *c > 0xF4) return 0;
  if ((*c == 0xE0 && c[1] < 0xA0) || (*c == 0xED && c[1] > 0x9F)) return 0;
  if ((*c == 0xF0 && c[1] < 0x90) || (*c == 0xF4 && c[1] > 0x8F)) return 0;
  for (size_t i = 1; i < length; i++)
    if ((c[i] & 0xC0) != 0x80) return 0;
  return length;
}

/* One character of text or of an attribute value (XML 1.0, production 2). */
static bool take_character(markup_reader *r) {
  const unsigned char *c = (const unsigned char *)r->at;
  if (*c == '&') return take_entity(r);
  if (*c < 0x20 && *c != '\t' && *c != '\n' && *c != '\r') return refuse(r, "a control character");
  const size_t length = character_length(c);
  if (length == 0) return refuse(r, "not UTF-8");
  if (c[0] == 0xEF && c[1] == 0xBF && c[2] >= 0xBE) return refuse(r, "U+FFFE or U+FFFF");
  r->at += length;
  return true;
}

static bool take_value(markup_reader *r) {
  if (*r->at != '=') return refuse(r, "an attribute has no value");
  r->at++;
  if (*r->at != '"') return refuse(r, "a value without quotes");
  r->at++;
  while (*r->at != '"') {
    if (*r->at == '<' || *r->at == '\0') return refuse(r, "a value has no end");
    if (!take_character(r)) return false;
  }
  r->at++;
  return true;
}

static bool take_attributes(markup_reader *r) {
  name seen[MOST_ATTRIBUTES];
  for (size_t count = 0;; count++) {
    const char *before = r->at;
    skip_blanks(r);
    if (*r->at == '>' || *r->at == '/') return true;
    if (r->at == before) return refuse(r, "attributes run together");
    if (count == MOST_ATTRIBUTES) return refuse(r, "too many attributes");
    if (!take_name(r, &seen[count]) || !take_value(r)) return false;
    for (size_t i = 0; i < count; i++)
      if (same(seen[i], seen[count])) return refuse(r, "an attribute is there twice");
  }
}

static bool open_element(markup_reader *r) {
  name element;
  r->at++;
  if (!take_name(r, &element) || !take_attributes(r)) return false;
  if (r->depth == 0 && r->roots++ > 0) return refuse(r, "a second root");
  if (*r->at == '/') {
    r->at++;
    if (*r->at != '>') return refuse(r, "a / inside a tag");
  } else {
    if (r->depth == DEEPEST) return refuse(r, "too deep");
    r->open[r->depth++] = element;
  }
  r->at++;
  return true;
}

static bool close_element(markup_reader *r) {
  name element;
  r->at += 2;
  if (!take_name(r, &element)) return false;
  if (r->depth == 0 || !same(r->open[r->depth - 1], element)) return refuse(r, "an end tag that closes nothing");
  r->depth--;
  if (*r->at != '>') return refuse(r, "an end tag has no end");
  r->at++;
  return true;
}

static bool take_piece(markup_reader *r) {
  if (starts(r, "<!--")) return skip_to(r, "-->");
  if (starts(r, "<?") && r->roots == 0) return skip_to(r, "?>");
  if (starts(r, "<!DOCTYPE ") && r->roots == 0) return skip_to(r, ">");
  if (starts(r, "</")) return close_element(r);
  if (*r->at == '<') return open_element(r);
  if (r->depth == 0 && strchr(" \t\r\n", *r->at) == NULL) return refuse(r, "text outside the root");
  return take_character(r);
}

void test_assert_well_formed(const char *text, const char *file, int line) {
  markup_reader r = {.at = text};
  while (*r.at != '\0' && take_piece(&r)) {
  }
  if (r.fault == NULL && r.depth > 0) refuse(&r, "an element is not closed");
  if (r.fault == NULL && r.roots != 1) refuse(&r, "no element");
  if (r.fault == NULL) return;
  const size_t before = (size_t)(r.at - text) < 60 ? (size_t)(r.at - text) : 60;
  print_error("not well-formed, byte %zu: %s: ...%.*s[here]%.60s...\n", (size_t)(r.at - text), r.fault, (int)before,
              r.at - before, r.at);
  _fail(file, line);
}

void test_assert_self_contained(const char *text, const char *file, int line) {
  static const char *const outside[] = {" src=", "url(", "@import", "import(", "fetch(", "<link", "<iframe", "<object"};
  size_t inside = test_count(text, " href=\"#");
  for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
    if (strstr(text, outside[i]) == NULL) continue;
    print_error("not self-contained: %s\n", outside[i]);
    _fail(file, line);
  }
  if (test_count(text, " href=") == inside) return;
  print_error("not self-contained: a link leads outside\n");
  _fail(file, line);
}

/* Not strstr: the address sanitizer's version reads the whole text in each call. */
size_t test_count(const char *text, const char *part) {
  const size_t length = strlen(part);
  size_t count = 0;
  for (const char *at = text; *at != '\0'; at++) count += *at == *part && strncmp(at, part, length) == 0;
  return count;
}
