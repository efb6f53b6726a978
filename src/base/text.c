/* SPDX-License-Identifier: MIT
 * The text builder and the JSON writer. Invariant: once something was written, bytes[count] is NUL and capacity >
 * count. Once `failed` is set nothing more is written, so a text is returned complete or not at all.
 */
#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "base/array.h"
#include "base/counting_allocator.h"
#include "base/error.h"
#include "base/numbers/real.h"

#define DEEPEST 60
#define LONGEST_ESCAPE 6 /* one character of a JSON string: \u001f */

size_t rondo_format_cut(char *buffer, size_t room, const char *format, va_list arguments) {
  static const char mark[] = "...";
  assert(room >= 2 * sizeof mark);
  const int length = vsnprintf(buffer, room, format, arguments);
  if (length < 0) { /* a wide character that the locale does not have */
    buffer[0] = '\0';
    return 0;
  }
  if ((size_t)length < room) return (size_t)length;
  size_t end = room - sizeof mark;
  while (end > 0 && ((unsigned char)buffer[end] & 0xC0) == 0x80) end--; /* not inside a character */
  memcpy(buffer + end, mark, sizeof mark);
  return end + sizeof mark - 1;
}

void rondo_text_check(const rondo_text *text) {
  assert((text->bytes == NULL) == (text->capacity == 0));
  assert(text->bytes == NULL || (text->count < text->capacity && text->bytes[text->count] == '\0'));
  assert(text->depth <= DEEPEST);
  assert(!text->after_key || text->depth > 0); /* a key is inside an object */
  (void)text;
}

void rondo_text_init(rondo_text *text, const rondo_allocator *allocator) {
  *text = (rondo_text){.allocator = allocator == NULL ? rondo_allocator_default() : *allocator};
}

void rondo_text_deinit(rondo_text *text) {
  if (text->failed == RONDO_OK) rondo_text_check(text);
  rondo_release(&text->allocator, text->bytes, text->capacity, 1);
  const rondo_allocator allocator = text->allocator;
  *text = (rondo_text){.allocator = allocator};
}

/* Makes room for `more` bytes and the NUL; false if the text has failed. */
static bool reserve(rondo_text *text, size_t more) {
  if (text->failed != RONDO_OK) return false;
  size_t want;
  if (!rondo_checked_add(text->count, more, &want) || !rondo_checked_add(want, 1, &want))
    text->failed = rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED,
                              "a text of %zu bytes cannot grow by %zu", text->count, more);
  else
    text->failed = rondo_array_reserve_bytes(&text->allocator, &text->bytes, &text->capacity, want, 1);
  return text->failed == RONDO_OK;
}

void rondo_text_add_bytes(rondo_text *text, const char *bytes, size_t count) {
  assert(count == 0 || memchr(bytes, '\0', count) == NULL);
  if (!reserve(text, count)) return;
  if (count > 0) memcpy(text->bytes + text->count, bytes, count);
  text->count += count;
  text->bytes[text->count] = '\0';
}

void rondo_text_add_lines(rondo_text *text, const char *const *lines, size_t count) {
  for (size_t i = 0; i < count; i++) rondo_text_add_bytes(text, lines[i], strlen(lines[i]));
}

void rondo_text_add(rondo_text *text, const char *format, ...) {
  if (text->failed != RONDO_OK) return;
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int length = vsnprintf(NULL, 0, format, arguments);
  if (length < 0)
    text->failed =
        rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MALFORMED, "the format '%s' cannot be printed", format);
  else if (reserve(text, (size_t)length))
    text->count += (size_t)vsnprintf(text->bytes + text->count, (size_t)length + 1, format, again);
  va_end(again);
  va_end(arguments);
}

/* A text that the user owns. Its header holds the allocator and the size, so rondo_text_free needs only the text. It
 * may outlive the device, which counts the calls of its allocator: so its allocator is the one that the user gave. */
typedef struct owned_text {
  rondo_allocator allocator;
  size_t bytes; /* of the whole block */
  char text[];
} owned_text;

rondo_status rondo_text_hand_out(rondo_text *text, char **out) {
  *out = NULL;
  if (text->failed != RONDO_OK) return rondo_text_take(text, out);
  owned_text *owned;
  const size_t bytes = offsetof(owned_text, text) + text->count + 1;
  const rondo_allocator allocator = rondo_allocator_uncounted(&text->allocator);
  const rondo_status status = rondo_allocate_items(&allocator, bytes, 1, &owned);
  if (status == RONDO_OK) {
    owned->allocator = allocator;
    owned->bytes = bytes;
    if (text->count > 0) memcpy(owned->text, text->bytes, text->count);
    *out = owned->text;
  }
  rondo_text_deinit(text);
  return status;
}

void rondo_text_free(char *text) {
  if (text == NULL) return;
  owned_text *owned = (owned_text *)(void *)(text - offsetof(owned_text, text));
  const rondo_allocator allocator = owned->allocator;
  rondo_release(&allocator, owned, owned->bytes, 1);
}

rondo_status rondo_text_take(rondo_text *text, char **out) {
  *out = NULL;
  assert(text->failed != RONDO_OK || (text->depth == 0 && !text->after_key));
  const rondo_status status = text->failed == RONDO_OK
                                  ? rondo_allocate_text(&text->allocator, text->bytes, out)
                                  : rondo_fail_context(text->failed, "a text of %zu bytes so far", text->count);
  rondo_text_deinit(text);
  return status;
}

size_t rondo_utf8_length(const char *text, size_t room) {
  const unsigned char *at = (const unsigned char *)text;
  if (at[0] < 0x80) return 1;
  const size_t length = at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
  if (at[0] < 0xC2 || at[0] > 0xF4 || length > room) return 0;
  const unsigned char least = at[0] == 0xE0 ? 0xA0 : at[0] == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = at[0] == 0xED ? 0x9F : at[0] == 0xF4 ? 0x8F : 0xBF;
  if (at[1] < least || at[1] > most) return 0;
  for (size_t i = 2; i < length; i++)
    if ((at[i] & 0xC0) != 0x80) return 0;
  return length;
}

/* Writes the character at `at` as in a JSON string, and returns how many bytes it read. */
static size_t escape_one(const char *at, char out[LONGEST_ESCAPE + 1]) {
  static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
  const size_t length = rondo_utf8_length(at, SIZE_MAX);
  const char *short_form = strchr(plain, *at);
  if (length == 0)
    memcpy(out, "\xEF\xBF\xBD", 4);
  else if (short_form != NULL)
    snprintf(out, LONGEST_ESCAPE + 1, "\\%c", letters[short_form - plain]);
  else if ((unsigned char)*at < 0x20)
    snprintf(out, LONGEST_ESCAPE + 1, "\\u%04x", (unsigned)(unsigned char)*at);
  else
    snprintf(out, LONGEST_ESCAPE + 1, "%.*s", (int)length, at);
  return length == 0 ? 1 : length;
}

/* How many ASCII bytes from `at` on need no escape in a JSON string. */
static size_t plain_run(const char *at) {
  size_t length = 0;
  while (at[length] >= 0x20 && at[length] < 0x7F && at[length] != '"' && at[length] != '\\') length++;
  return length;
}

size_t rondo_json_escape(char *buffer, size_t room, const char *value) {
  size_t length = 0;
  char one[LONGEST_ESCAPE + 1];
  assert(room > 0);
  for (;;) {
    const size_t run = plain_run(value), left = room - 1 - length;
    memcpy(buffer + length, value, run < left ? run : left);
    length += run < left ? run : left;
    value += run;
    if (run > left || *value == '\0') break;
    value += escape_one(value, one);
    const size_t bytes = strlen(one);
    if (length + bytes >= room) break;
    memcpy(buffer + length, one, bytes);
    length += bytes;
  }
  buffer[length] = '\0';
  return length;
}

size_t rondo_json_double_text(char buffer[RONDO_JSON_DOUBLE_BYTES], double value) {
  if (!isfinite(value)) return (size_t)snprintf(buffer, RONDO_JSON_DOUBLE_BYTES, "null");
  char printed[RONDO_JSON_DOUBLE_BYTES];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(printed, sizeof printed, "%.*g", digits, value);
    if (strtod(printed, NULL) == value) break;
  }
  /* Anything that is not a digit, a sign or an exponent is the locale's decimal point, which may have several bytes. */
  size_t length = 0;
  bool whole = true;
  for (const char *at = printed; *at != '\0'; at++) {
    const bool point = strchr("0123456789+-e", *at) == NULL;
    if (!point)
      buffer[length++] = *at;
    else if (length > 0 && buffer[length - 1] != '.')
      buffer[length++] = '.';
    whole = whole && !point && *at != 'e';
  }
  buffer[length] = '\0';
  return whole ? length + (size_t)snprintf(buffer + length, RONDO_JSON_DOUBLE_BYTES - length, ".0") : length;
}

/* The character of `length` bytes at `at`, escaped for markup. XML 1.0, production 2, defines the allowed characters.
 */
static const char *markup_of(const char *at, size_t length, char out[8]) {
  static const char replacement[] = "\xEF\xBF\xBD";
  const unsigned char c = (unsigned char)*at;
  if (length == 0 || (c < 0x20 && c != '\t' && c != '\n') || c == 0x7F) return replacement;
  if (length == 3 && c == 0xEF && (unsigned char)at[1] == 0xBF && (unsigned char)at[2] >= 0xBE) return replacement;
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      memcpy(out, at, length);
      out[length] = '\0';
      return out;
  }
}

/* Returns the escaped next character and moves *at after it; "..." in place of the rest once `most` bytes were read.
 * NULL at the end. */
static const char *next_markup(const char **at, size_t *inout_most, char plain[8]) {
  const char *from = *at;
  if (*from == '\0') return NULL;
  const size_t length = rondo_utf8_length(from, SIZE_MAX), read = length == 0 ? 1 : length;
  *at += read > *inout_most ? strlen(from) : read;
  if (read > *inout_most) return "...";
  *inout_most -= read;
  return markup_of(from, length, plain);
}

void rondo_text_add_markup(rondo_text *text, const char *value, size_t most) {
  char plain[8];
  for (const char *shown; (shown = next_markup(&value, &most, plain)) != NULL;)
    rondo_text_add_bytes(text, shown, strlen(shown));
}

const char *rondo_markup_text(char *out, size_t room, const char *value, size_t most) {
  char plain[8];
  size_t count = 0;
  assert(room >= RONDO_MARKUP_TEXT(most));
  out[0] = '\0';
  for (const char *shown; (shown = next_markup(&value, &most, plain)) != NULL; count += strlen(shown))
    strcpy(out + count, shown);
  assert(count < room);
  (void)room;
  return out;
}

const char *rondo_grouped_text(char out[RONDO_NUMBER_TEXT], uint64_t value) {
  char digits[24];
  char *to = out;
  const int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = '\0';
  return out;
}

static uint64_t power_of_ten(int exponent) {
  uint64_t power = 1;
  for (int i = 0; i < exponent; i++) power *= 10;
  return power;
}

/* A whole number of units of 10^-decimals, with up to 6 decimals. */
static const char *scaled_text(char out[RONDO_NUMBER_TEXT], uint64_t scaled, int decimals) {
  const uint64_t scale = power_of_ten(decimals);
  const int length =
      snprintf(out, RONDO_NUMBER_TEXT, "%" PRIu64 ".%06" PRIu64, scaled / scale, scaled % scale * (1000000 / scale));
  out[length - 6 + (decimals > 0 ? decimals : -1)] = '\0';
  return out;
}

const char *rondo_fixed_text(char out[RONDO_NUMBER_TEXT], double value, int decimals) {
  assert(decimals >= 0 && decimals <= 6 && !(value < 0));
  if (!(value <= 1e12)) return strcpy(out, ">10^12");
  return scaled_text(out, (uint64_t)(value * (double)power_of_ten(decimals) + 0.5), decimals);
}

const char *rondo_ratio_text(char out[RONDO_NUMBER_TEXT], size_t peak, size_t bound) {
  assert(bound > 0);
  return scaled_text(out, rondo_ceil((double)peak / (double)bound * 10000), 4);
}

/* Writes the separator between the last value and the next one. */
static void separate(rondo_text *text) {
  const uint64_t bit = UINT64_C(1) << text->depth;
  if (text->after_key)
    text->after_key = false;
  else if ((text->has_items & bit) != 0)
    rondo_text_add_bytes(text, ",", 1);
  text->has_items |= bit;
}

static void open_level(rondo_text *text, const char *bracket) {
  if (text->failed != RONDO_OK) return;
  if (text->depth >= DEEPEST) {
    text->failed = rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                              "JSON is nested deeper than %d levels: write it flatter", DEEPEST);
    return;
  }
  separate(text);
  rondo_text_add_bytes(text, bracket, 1);
  text->depth++;
  text->has_items &= ~(UINT64_C(1) << text->depth);
}

static void close_level(rondo_text *text, const char *bracket) {
  if (text->failed != RONDO_OK) return;
  assert(text->depth > 0 && !text->after_key);
  text->depth--;
  rondo_text_add_bytes(text, bracket, 1);
}

void rondo_json_object_begin(rondo_text *text) { open_level(text, "{"); }
void rondo_json_object_end(rondo_text *text) { close_level(text, "}"); }
void rondo_json_array_begin(rondo_text *text) { open_level(text, "["); }
void rondo_json_array_end(rondo_text *text) { close_level(text, "]"); }

void rondo_text_add_escaped(rondo_text *text, const char *value) {
  char one[LONGEST_ESCAPE + 1];
  while (text->failed == RONDO_OK) {
    const size_t run = plain_run(value);
    rondo_text_add_bytes(text, value, run);
    value += run;
    if (*value == '\0') break;
    value += escape_one(value, one);
    rondo_text_add_bytes(text, one, strlen(one));
  }
}

static void add_quoted(rondo_text *text, const char *value) {
  rondo_text_add_bytes(text, "\"", 1);
  rondo_text_add_escaped(text, value);
  rondo_text_add_bytes(text, "\"", 1);
}

void rondo_json_key(rondo_text *text, const char *key) {
  if (text->failed != RONDO_OK) return;
  assert(!text->after_key);
  separate(text);
  add_quoted(text, key);
  rondo_text_add_bytes(text, ":", 1);
  text->after_key = true;
}

void rondo_json_string(rondo_text *text, const char *value) {
  separate(text);
  if (value == NULL)
    rondo_text_add_bytes(text, "null", 4);
  else
    add_quoted(text, value);
}

void rondo_json_hex(rondo_text *text, const void *bytes, size_t count) {
  static const char digits[] = "0123456789abcdef";
  const unsigned char *at = bytes;
  separate(text);
  rondo_text_add_bytes(text, "\"", 1);
  for (size_t i = 0; i < count; i++)
    rondo_text_add_bytes(text, (const char[]){digits[at[i] >> 4], digits[at[i] & 15]}, 2);
  rondo_text_add_bytes(text, "\"", 1);
}

void rondo_json_u64(rondo_text *text, uint64_t value) {
  separate(text);
  rondo_text_add(text, "%" PRIu64, value);
}

void rondo_json_i64(rondo_text *text, int64_t value) {
  separate(text);
  rondo_text_add(text, "%" PRId64, value);
}

void rondo_json_double(rondo_text *text, double value) {
  char printed[RONDO_JSON_DOUBLE_BYTES];
  const size_t length = rondo_json_double_text(printed, value);
  separate(text);
  rondo_text_add_bytes(text, printed, length);
}

void rondo_json_bool(rondo_text *text, bool value) {
  separate(text);
  rondo_text_add(text, "%s", value ? "true" : "false");
}
