/* SPDX-License-Identifier: MIT
 * UTF-8 characters in bytes that may not be text.
 */
#ifndef RONDO_TOOL_UTF8_H
#define RONDO_TOOL_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the UTF-8 character (RFC 3629, section 4) at `text`, which has `count` > 0 bytes; 0 if the bytes are
 * invalid. */
static inline size_t utf8_length(const unsigned char *text, size_t count) {
  if (text[0] < 0x80) return 1;
  const size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
  if (text[0] < 0xc2 || text[0] > 0xf4 || length > count) return 0;
  const unsigned low = text[0] == 0xe0 ? 0xa0 : text[0] == 0xf0 ? 0x90 : 0x80;
  const unsigned high = text[0] == 0xed ? 0x9f : text[0] == 0xf4 ? 0x8f : 0xbf;
  if (text[1] < low || text[1] > high) return 0;
  for (size_t i = 2; i < length; i++) {
    if (text[i] < 0x80 || text[i] > 0xbf) return 0;
  }
  return length;
}

/* Whether this character of `length` bytes is a control character: those of ASCII, and U+0080 to U+009F. */
static inline bool utf8_is_control(const unsigned char *text, size_t length) {
  if (length == 1) return text[0] < ' ' || text[0] == 0x7f;
  return length == 2 && text[0] == 0xc2 && text[1] < 0xa0;
}

#endif
