/* SPDX-License-Identifier: MIT
 * A recursive descent parser with bounded depth. Strings are decoded one after another into one block. A decoded string
 * with its NUL is shorter than the string with its two quotes, so a block of the text's length holds them all.
 */
#include "base/json_parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

typedef struct parser {
  rondo_json_document *document;
  const unsigned char *start, *at, *end;
  size_t strings_used;
  unsigned depth;
} parser;

/* Errors ----------------------------------------------------------------------------------------------------------- */

static rondo_status fail(const parser *p, const char *what) {
  size_t line = 1, column = 1;
  for (const unsigned char *byte = p->start; byte < p->at; byte++, column++) {
    if (*byte == '\n') line++, column = 0;
  }
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "line %zu, column %zu: %s", line, column, what);
}

/* Tokens ----------------------------------------------------------------------------------------------------------- */

static void skip_space(parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')) p->at++;
}

/* The next byte, or -1 at the end of the text. */
static int peek(const parser *p) { return p->at < p->end ? *p->at : -1; }

static bool take(parser *p, char byte) {
  if (peek(p) != (unsigned char)byte) return false;
  p->at++;
  return true;
}

static bool is_digit(int byte) { return byte >= '0' && byte <= '9'; }

static bool take_digits(parser *p) {
  if (!is_digit(peek(p))) return false;
  while (is_digit(peek(p))) p->at++;
  return true;
}

/* Values ----------------------------------------------------------------------------------------------------------- */

static rondo_status add_value(parser *p, const rondo_json_value *value) {
  return rondo_array_push(&p->document->allocator, &p->document->values, value);
}

static rondo_status parse_word(parser *p, const char *word, const rondo_json_value *value) {
  const size_t length = strlen(word);
  if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return fail(p, "a value is expected here");
  p->at += length;
  return add_value(p, value);
}

/* Digits, with the sign before them. */
static bool read_integer(const unsigned char *at, const unsigned char *end, rondo_json_value *out) {
  const bool negative = *at == '-';
  uint64_t value = 0;
  for (at += negative; at < end; at++) {
    const uint64_t digit = (uint64_t)(*at - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  if (value <= (uint64_t)INT64_MAX + negative) {
    out->as.integer = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
  }
  out->kind = RONDO_JSON_UNSIGNED;
  out->as.unsigned_integer = value;
  return !negative;
}

static rondo_status parse_number(parser *p) {
  rondo_json_value value = {.kind = RONDO_JSON_INTEGER, .span = 1};
  const unsigned char *begin = p->at;
  (void)take(p, '-');
  if (!take(p, '0') && !take_digits(p)) return fail(p, "a digit is expected here");
  if (take(p, '.')) {
    value.kind = RONDO_JSON_REAL;
    if (!take_digits(p)) return fail(p, "a digit is expected after the point");
  }
  if (take(p, 'e') || take(p, 'E')) {
    value.kind = RONDO_JSON_REAL;
    if (!take(p, '+')) (void)take(p, '-');
    if (!take_digits(p)) return fail(p, "a digit is expected in the exponent");
  }
  if (value.kind == RONDO_JSON_INTEGER && !read_integer(begin, p->at, &value)) {
    p->at = begin;
    return fail(p, "the integer does not fit 64 bits");
  }
  return add_value(p, &value);
}

/* Strings ---------------------------------------------------------------------------------------------------------- */

static void add_byte(parser *p, uint32_t byte) {
  assert(p->strings_used < p->document->string_bytes);
  p->document->strings[p->strings_used++] = (char)byte;
}

static void add_utf8(parser *p, uint32_t code) {
  static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
  const unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; /* bytes after the first */
  add_byte(p, leads[more] | code >> (6 * more));
  for (unsigned i = more; i > 0; i--) add_byte(p, 0x80 | (code >> (6 * (i - 1)) & 0x3f));
}

/* Reads the four digits after \u. */
static bool read_unit(parser *p, uint32_t *out) {
  *out = 0;
  for (int i = 0; i < 4; i++, p->at++) {
    const int byte = peek(p), lower = byte | 0x20;
    if (is_digit(byte))
      *out = *out << 4 | (uint32_t)(byte - '0');
    else if (byte >= 0 && lower >= 'a' && lower <= 'f')
      *out = *out << 4 | (uint32_t)(lower - 'a' + 10);
    else
      return false;
  }
  return true;
}

/* Parses what follows \u: one UTF-16 unit, or two for a character beyond U+FFFF (RFC 8259, section 7). */
static rondo_status parse_unicode_escape(parser *p) {
  uint32_t code, low;
  if (!read_unit(p, &code)) return fail(p, "four hexadecimal digits are expected after \\u");
  if (code == 0) return fail(p, "a string may not hold U+0000");
  if (code >= 0xd800 && code < 0xe000) {
    const bool paired = code < 0xdc00 && take(p, '\\') && take(p, 'u') && read_unit(p, &low);
    if (!paired || low < 0xdc00 || low > 0xdfff) return fail(p, "a surrogate without its other half");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  add_utf8(p, code);
  return RONDO_OK;
}

static rondo_status parse_escape(parser *p) {
  static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  if (take(p, 'u')) return parse_unicode_escape(p);
  const char *escape = peek(p) <= 0 ? NULL : strchr(escapes, peek(p));
  if (escape == NULL) return fail(p, "an escape that JSON does not have");
  p->at++;
  add_byte(p, (unsigned char)meanings[escape - escapes]);
  return RONDO_OK;
}

/* Copies one character that is not ASCII. */
static rondo_status parse_utf8(parser *p) {
  const size_t length = rondo_utf8_length((const char *)p->at, (size_t)(p->end - p->at));
  if (length == 0) return fail(p, "a byte that is not UTF-8");
  for (size_t i = 0; i < length; i++) add_byte(p, *p->at++);
  return RONDO_OK;
}

/* Parses from the opening quote to the closing one. */
static rondo_status parse_string(parser *p) {
  rondo_json_value value = {.kind = RONDO_JSON_STRING, .span = 1};
  if (!take(p, '"')) return fail(p, "a string is expected here");
  value.as.string = p->document->strings + p->strings_used;
  while (!take(p, '"')) {
    const int byte = peek(p);
    if (byte < 0) return fail(p, "the text ends inside a string");
    if (byte < 0x20) return fail(p, "a control character inside a string");
    if (byte >= 0x80) {
      RONDO_TRY(parse_utf8(p));
    } else if (take(p, '\\')) {
      RONDO_TRY(parse_escape(p));
    } else {
      add_byte(p, *p->at++);
    }
  }
  add_byte(p, 0);
  return add_value(p, &value);
}

/* Arrays and objects ----------------------------------------------------------------------------------------------- */

static rondo_status parse_value(parser *p);

static rondo_status parse_member(parser *p) {
  RONDO_TRY(parse_string(p));
  skip_space(p);
  if (!take(p, ':')) return fail(p, "':' is expected after a key");
  return parse_value(p);
}

static int compare_keys(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns a key that the object has twice, or NULL. `keys` has room for all keys. */
static const char *find_repeated(const rondo_json_value *object, const char **keys) {
  const rondo_json_value *key = rondo_json_first(object);
  for (size_t i = 0; i < object->count; i++, key = rondo_json_next(rondo_json_next(key))) keys[i] = key->as.string;
  qsort(keys, object->count, sizeof *keys, compare_keys);
  for (size_t i = 1; i < object->count; i++) {
    if (strcmp(keys[i - 1], keys[i]) == 0) return keys[i];
  }
  return NULL;
}

static rondo_status check_keys_differ(parser *p, size_t index) {
  const rondo_allocator *allocator = &p->document->allocator;
  const rondo_json_value *object = &p->document->values.items[index];
  const char *few[16], **keys = few;
  if (object->count < 2) return RONDO_OK;
  if (object->count > 16) RONDO_TRY(rondo_allocate_items(allocator, object->count, sizeof *keys, &keys));
  const char *repeated = find_repeated(object, keys);
  if (keys != few) rondo_release(allocator, keys, object->count, sizeof *keys);
  return repeated == NULL ? RONDO_OK : fail(p, "duplicate object key in the object that ends here");
}

/* Parses from the opening bracket or brace to the closing one. Values move when the array grows, so code refers to them
 * by index. */
static rondo_status parse_container(parser *p, rondo_json_kind kind) {
  const bool is_object = kind == RONDO_JSON_OBJECT;
  const char close = is_object ? '}' : ']';
  const size_t index = p->document->values.count;
  uint32_t count = 0;
  if (p->depth == RONDO_JSON_MOST_DEPTH) return fail(p, "arrays and objects are nested too deeply");
  p->depth++;
  p->at++;
  RONDO_TRY(add_value(p, &(rondo_json_value){.kind = kind}));
  skip_space(p);
  while (!take(p, close)) {
    if (count == UINT32_MAX) return fail(p, "too many items");
    if (count > 0 && !take(p, ','))
      return fail(p, is_object ? "',' or '}' is expected here" : "',' or ']' is expected here");
    skip_space(p);
    RONDO_TRY(is_object ? parse_member(p) : parse_value(p));
    skip_space(p);
    count++;
  }
  p->depth--;
  rondo_json_value *container = &p->document->values.items[index];
  container->count = count;
  container->span = p->document->values.count - index;
  return is_object ? check_keys_differ(p, index) : RONDO_OK;
}

static rondo_status parse_value(parser *p) {
  skip_space(p);
  switch (peek(p)) {
    case '{':
      return parse_container(p, RONDO_JSON_OBJECT);
    case '[':
      return parse_container(p, RONDO_JSON_ARRAY);
    case '"':
      return parse_string(p);
    case 't':
      return parse_word(p, "true", &(rondo_json_value){.kind = RONDO_JSON_BOOLEAN, .span = 1, .as.boolean = true});
    case 'f':
      return parse_word(p, "false", &(rondo_json_value){.kind = RONDO_JSON_BOOLEAN, .span = 1});
    case 'n':
      return parse_word(p, "null", &(rondo_json_value){.kind = RONDO_JSON_NULL, .span = 1});
    default:
      break;
  }
  if (peek(p) == '-' || is_digit(peek(p))) return parse_number(p);
  return fail(p, peek(p) < 0 ? "the text ends where a value is expected" : "a value is expected here");
}

/* Documents -------------------------------------------------------------------------------------------------------- */

static rondo_status parse_document(parser *p) {
  skip_space(p);
  if (peek(p) != '{' && peek(p) != '[') return fail(p, "an object or an array is expected here");
  RONDO_TRY(parse_value(p));
  skip_space(p);
  return p->at == p->end ? RONDO_OK : fail(p, "there is text after the end of the document");
}

rondo_status rondo_json_parse(const rondo_allocator *allocator, const char *bytes, size_t count,
                              rondo_json_document *out) {
  const unsigned char *text = (const unsigned char *)bytes;
  parser p = {.document = out, .start = text, .at = text, .end = text + count};
  *out = (rondo_json_document){.allocator = *allocator, .string_bytes = count};
  rondo_status status = rondo_allocate_items(allocator, count, 1, &out->strings);
  if (status == RONDO_OK) status = parse_document(&p);
  if (status != RONDO_OK) rondo_json_document_free(out);
  return status;
}

void rondo_json_document_free(rondo_json_document *document) {
  rondo_array_free(&document->allocator, &document->values);
  rondo_release(&document->allocator, document->strings, document->string_bytes, 1);
  document->strings = NULL;
}

const rondo_json_value *rondo_json_root(const rondo_json_document *document) {
  assert(document->values.count > 0);
  return &document->values.items[0];
}

const rondo_json_value *rondo_json_first(const rondo_json_value *container) { return container + 1; }

const rondo_json_value *rondo_json_next(const rondo_json_value *value) { return value + value->span; }

const rondo_json_value *rondo_json_item(const rondo_json_value *array, size_t index) {
  assert(index < array->count);
  const rondo_json_value *item = rondo_json_first(array);
  while (index-- > 0) item = rondo_json_next(item);
  return item;
}

const rondo_json_value *rondo_json_get(const rondo_json_value *object, const char *key) {
  if (!rondo_json_is(object, RONDO_JSON_OBJECT)) return NULL;
  const rondo_json_value *member = rondo_json_first(object);
  for (size_t i = 0; i < object->count; i++) {
    const rondo_json_value *value = rondo_json_next(member);
    if (strcmp(member->as.string, key) == 0) return value;
    member = rondo_json_next(value);
  }
  return NULL;
}

bool rondo_json_is(const rondo_json_value *value, rondo_json_kind kind) { return value != NULL && value->kind == kind; }

const char *rondo_json_text_of(const rondo_json_value *value) {
  return rondo_json_is(value, RONDO_JSON_STRING) ? value->as.string : NULL;
}
