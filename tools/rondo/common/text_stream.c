/* SPDX-License-Identifier: MIT
 * Streams that collect text: a custom stream of the C library, whose write function reports a failed allocation as an
 * error of the stream, like a full disk.
 */
#define _GNU_SOURCE
#include "common/text_stream.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { SMALLEST_CAPACITY = 4096 };

/* Makes space for `more` bytes and a NUL. */
static bool grow(text_stream *s, size_t more) {
  size_t capacity = s->capacity > 0 ? s->capacity : SMALLEST_CAPACITY;
  while (capacity - s->count <= more) capacity *= 2;
  if (capacity == s->capacity) return true;
  char *text = realloc(s->text, capacity);
  if (!text) return false;
  s->text = text;
  s->capacity = capacity;
  return true;
}

/* Returns 0 after a failure, as fopencookie requires. */
static ssize_t take(void *cookie, const char *bytes, size_t count) {
  text_stream *s = cookie;
  assert(s->count < s->capacity || s->capacity == 0);
  if (!grow(s, count)) return 0;
  memcpy(s->text + s->count, bytes, count);
  s->count += count;
  return (ssize_t)count;
}

FILE *text_stream_open(text_stream *out) {
  *out = (text_stream){0};
  out->stream = fopencookie(out, "w", (cookie_io_functions_t){.write = take});
  return out->stream;
}

char *text_stream_close(text_stream *s) {
  const bool is_whole = s->stream && fflush(s->stream) == 0 && !ferror(s->stream) && grow(s, 0);
  const bool is_closed = s->stream && fclose(s->stream) == 0;
  char *text = s->text;
  assert(!is_whole || s->count < s->capacity);
  if (is_whole && is_closed)
    text[s->count] = '\0';
  else
    free(text);
  *s = (text_stream){0};
  return is_whole && is_closed ? text : NULL;
}

char *text_stream_make(void (*write)(const void *subject, FILE *out), const void *subject) {
  text_stream text;
  FILE *out = text_stream_open(&text);
  if (out != NULL) write(subject, out);
  return text_stream_close(&text);
}

void markup_write_text(FILE *out, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '&')
      fputs("&amp;", out);
    else if (*text == '<')
      fputs("&lt;", out);
    else if (*text == '>')
      fputs("&gt;", out);
    else if (*text == '"')
      fputs("&quot;", out);
    else if ((unsigned char)*text < ' ')
      fputc(' ', out);
    else
      fputc(*text, out);
  }
}
