/* SPDX-License-Identifier: MIT
 * A stream that collects its output as one text in memory and reports a lack of memory. The C library's open_memstream
 * may return a truncated text, or none, without an error. Do not move the struct while the stream is open. One thread
 * at a time for each stream.
 */
#ifndef RONDO_TOOL_TEXT_STREAM_H
#define RONDO_TOOL_TEXT_STREAM_H

#include <stddef.h>
#include <stdio.h>

typedef struct text_stream {
  FILE *stream; /* NULL if out of memory */
  char *text;
  size_t count, capacity;
} text_stream;

/* Returns a stream for the functions of <stdio.h>; NULL if out of memory. */
FILE *text_stream_open(text_stream *out);

/* Closes the stream, which may be NULL. Returns the text, which the caller frees; NULL if memory ran out for any of it.
 */
char *text_stream_close(text_stream *s);

/* The text that `write` writes about the subject, which the caller frees; NULL if memory ran out for any of it. */
char *text_stream_make(void (*write)(const void *subject, FILE *out), const void *subject);

/* Writes a text into HTML, for elements and attributes: control characters become blanks. */
void markup_write_text(FILE *out, const char *text);

#endif
