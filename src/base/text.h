/* SPDX-License-Identifier: MIT
 * A growing text, and a JSON writer on top of it: it adds commas and escapes, writes numbers so that they read back bit
 * for bit, and replaces bytes that are not UTF-8 by U+FFFD. The first error is kept and returned at the end, so code
 * that writes a text does not check each call.
 */
#ifndef RONDO_BASE_TEXT_H
#define RONDO_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rondo/allocator.h>
#include <rondo/status.h>

#include "base/component.h"

/* vsnprintf into `room` bytes (at least 8). A longer text is truncated after a whole UTF-8 character and ends in "...".
 * Returns the length of the result. */
RONDO_PRIVATE size_t rondo_format_cut(char *buffer, size_t room, const char *format, va_list arguments)
    RONDO_PRINTF(3, 0);

/* The length of the UTF-8 character at `text` (Unicode 15, table 3-7), of which `room` bytes may be read; 0 if it is
 * not valid. A text that ends in NUL needs no limit. */
RONDO_PRIVATE size_t rondo_utf8_length(const char *text, size_t room);

typedef struct rondo_text {
  rondo_allocator allocator;
  char *bytes; /* NUL-terminated once something was written */
  size_t count;
  size_t capacity;
  rondo_status failed; /* first error; later calls do nothing */
  unsigned char depth; /* JSON nesting, at most 60 */
  uint64_t has_items;  /* bit d: something was written at depth d */
  bool after_key;
} rondo_text;

/* Asserts the invariant of a text: a NUL after the last byte, and JSON nesting within its limit. */
void rondo_text_check(const rondo_text *text);

/* The allocator is copied; NULL means the default. */
RONDO_PRIVATE void rondo_text_init(rondo_text *text, const rondo_allocator *allocator);
RONDO_PRIVATE void rondo_text_deinit(rondo_text *text); /* also after rondo_text_take */

/* No argument may point into the text itself. */
RONDO_PRIVATE void rondo_text_add(rondo_text *text, const char *format, ...) RONDO_PRINTF(2, 3);
RONDO_PRIVATE void rondo_text_add_bytes(rondo_text *text, const char *bytes, size_t count); /* must not contain NUL */
void rondo_text_add_lines(rondo_text *text, const char *const *lines, size_t count);

/* Text inside an element or a quoted attribute of HTML and XML: & < > " are escaped; what is not UTF-8, and characters
 * that XML does not allow, become U+FFFD. If there are more than `most` bytes, the rest is replaced by "...", at a
 * character boundary. */
void rondo_text_add_markup(rondo_text *text, const char *value, size_t most);

/* The same into a buffer of at least RONDO_MARKUP_TEXT(most) bytes. Returns the buffer. */
#define RONDO_MARKUP_TEXT(most) (6 * (most) + 4)
const char *rondo_markup_text(char *out, size_t room, const char *value, size_t most);

/* The inside of a JSON string, without quotes. */
void rondo_text_add_escaped(rondo_text *text, const char *value);

/* Numbers as text, for arguments of rondo_text_add. The buffers live as long as the enclosing block. The text does not
 * depend on the locale.
 *
 *   RONDO_GROUPED(1234567)     "1,234,567"
 *   RONDO_FIXED(1.26, 1)       "1.3": at least 0, with 0 to 6 decimals, rounded to nearest; ">10^12" for larger numbers
 *                              and those that are not finite
 *   RONDO_RATIO(peak, bound)   "1.0001": four decimals, rounded up, so that only 1 reads as 1; `bound` is not 0
 */
#define RONDO_NUMBER_TEXT 40
#define RONDO_GROUPED(value) rondo_grouped_text((char[RONDO_NUMBER_TEXT]){""}, (value))
#define RONDO_FIXED(value, decimals) rondo_fixed_text((char[RONDO_NUMBER_TEXT]){""}, (value), (decimals))
#define RONDO_RATIO(peak, bound) rondo_ratio_text((char[RONDO_NUMBER_TEXT]){""}, (peak), (bound))
const char *rondo_grouped_text(char out[RONDO_NUMBER_TEXT], uint64_t value);
const char *rondo_fixed_text(char out[RONDO_NUMBER_TEXT], double value, int decimals);
const char *rondo_ratio_text(char out[RONDO_NUMBER_TEXT], size_t peak, size_t bound);

/* The inside of a JSON string (no quotes) into `room` bytes (at least 1), without allocating. A longer text is
 * truncated at a character boundary. Returns the length of the result. */
size_t rondo_json_escape(char *buffer, size_t room, const char *value);

/* A finite number as JSON: the fewest digits of 15 to 17 that read back bit for bit, with ".0" after whole numbers so
 * that it is read as a real number; in any locale. "null" if it is not finite. Returns the length. */
#define RONDO_JSON_DOUBLE_BYTES 32
size_t rondo_json_double_text(char buffer[RONDO_JSON_DOUBLE_BYTES], double value);

RONDO_PRIVATE void rondo_json_object_begin(rondo_text *text);
RONDO_PRIVATE void rondo_json_object_end(rondo_text *text);
RONDO_PRIVATE void rondo_json_array_begin(rondo_text *text);
RONDO_PRIVATE void rondo_json_array_end(rondo_text *text);
RONDO_PRIVATE void rondo_json_key(rondo_text *text, const char *key);
RONDO_PRIVATE void rondo_json_string(rondo_text *text, const char *value); /* NULL becomes null */
void rondo_json_hex(rondo_text *text, const void *bytes, size_t count);    /* a string with two digits for each byte */
RONDO_PRIVATE void rondo_json_u64(rondo_text *text, uint64_t value);
RONDO_PRIVATE void rondo_json_i64(rondo_text *text, int64_t value);
void rondo_json_double(rondo_text *text, double value); /* not finite becomes null */
RONDO_PRIVATE void rondo_json_bool(rondo_text *text, bool value);

/* Returns the text, to be freed with rondo_release_text and the same allocator; or the first error, with *out NULL.
 * Leaves the builder empty. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_text_take(rondo_text *text, char **out);

/* Returns the text to the user, who frees it with rondo_text_free. It keeps its allocator. Leaves the builder empty.
 * Fails with the text's first error or OUT_OF_MEMORY. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_text_hand_out(rondo_text *text, char **out);

#endif
