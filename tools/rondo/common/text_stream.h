/* SPDX-License-Identifier: MIT
 * A stream that collects what is written to it as one text in memory, where a lack of memory is found: the C library's
 * open_memstream gives a cut text, or none, without an error. The struct stays where it is while the stream is open.
 * Threads: one at a time per stream.
 */
#ifndef RONDO_TOOL_TEXT_STREAM_H
#define RONDO_TOOL_TEXT_STREAM_H

#include <stddef.h>
#include <stdio.h>

typedef struct text_stream {
  FILE *stream; /* NULL: there was no memory for it */
  char *text;
  size_t count, capacity;
} text_stream;

/* Returns the stream, which is written to by the functions of <stdio.h>; NULL: there is no memory. */
FILE *text_stream_open(text_stream *out);

/* Closes the stream, which may be NULL. Returns the text, which the caller frees; NULL: there was no memory for all. */
char *text_stream_close(text_stream *s);

#endif
