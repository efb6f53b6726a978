/* SPDX-License-Identifier: MIT
 * Writes one JSON object (RFC 8259), held in memory until it is whole, so that a command that fails prints none of it.
 * Names are NULL for elements of an array. Running out of memory is found by json_print.
 */
#ifndef RONDO_TOOL_JSON_H
#define RONDO_TOOL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/text_stream.h"
#include "common/timing.h"

#define JSON_DEPTH 8

typedef struct json {
  text_stream text;
  bool needs_comma;
  unsigned depth;
  char closers[JSON_DEPTH];
} json;

/* Begins the outermost object. */
void json_begin(json *out);

/* Ends it, prints it with a line end to standard output and frees all. Returns the command's exit status. */
int json_print(json *out);

/* Ends it and returns its text, which the caller frees; NULL when there is no memory. */
char *json_take(json *out);

/* Frees all, printing nothing. */
void json_discard(json *out);

void json_begin_object(json *out, const char *name);
void json_begin_array(json *out, const char *name);
void json_end(json *out);

void json_boolean(json *out, const char *name, bool value);
void json_integer(json *out, const char *name, uint64_t value);
/* null for what is not a finite number. */
void json_real(json *out, const char *name, double value);
/* Bytes that are not UTF-8 become U+FFFD. */
void json_text(json *out, const char *name, const char *text);
/* A value that is JSON already. */
void json_verbatim(json *out, const char *name, const char *text);
void json_bytes(json *out, const char *name, const void *bytes, size_t count);
/* NAME (the median), NAME_min and NAME_max. */
void json_summary(json *out, const char *name, summary value);

#endif
