/* SPDX-License-Identifier: MIT
 * Writes one JSON object (RFC 8259). It is kept in memory until it is complete, so that a command that fails prints
 * none of it. Pass NULL as the name of an array element. json_print reports a lack of memory.
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

/* Ends it, prints it and a newline to standard output, and frees it. Returns the command's exit status. */
int json_print(json *out);

/* Ends it and returns its text, which the caller frees; NULL if out of memory. */
char *json_take(json *out);

/* Frees it without printing. */
void json_discard(json *out);

void json_begin_object(json *out, const char *name);
void json_begin_array(json *out, const char *name);
void json_end(json *out);

void json_boolean(json *out, const char *name, bool value);
void json_integer(json *out, const char *name, uint64_t value);
/* Writes null if the value is not finite. */
void json_real(json *out, const char *name, double value);
/* Bytes that are not UTF-8 become U+FFFD. */
void json_text(json *out, const char *name, const char *text);
/* Writes a value that is already JSON. */
void json_verbatim(json *out, const char *name, const char *text);
void json_bytes(json *out, const char *name, const void *bytes, size_t count);
/* NAME (the median), NAME_min and NAME_max. */
void json_summary(json *out, const char *name, summary value);

#endif
