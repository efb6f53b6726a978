/* SPDX-License-Identifier: MIT
 * A JSON writer that collects the text in memory. Standard output receives it only when it is complete.
 */
#define _POSIX_C_SOURCE 200809L
#include "common/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"
#include "common/utf8.h"

void json_begin(json *out) {
  *out = (json){0};
  (void)text_stream_open(&out->text); /* json_print reports a lack of memory */
  json_begin_object(out, NULL);
}

char *json_take(json *out) {
  json_end(out);
  assert(out->depth == 0);
  return text_stream_close(&out->text);
}

int json_print(json *out) {
  char *text = json_take(out);
  if (!text) return tool_fail_memory("the output");
  puts(text);
  free(text);
  return tool_check_output();
}

void json_discard(json *out) { free(text_stream_close(&out->text)); }

static void write_character(FILE *stream, const unsigned char *text, size_t length) {
  if (length == 0) {
    fputs("\\ufffd", stream);
  } else if (text[0] == '"' || text[0] == '\\') {
    fprintf(stream, "\\%c", text[0]);
  } else if (utf8_is_control(text, length)) {
    /* U+0080 to U+009F: the second byte is the number of the character. */
    fprintf(stream, "\\u%04x", (unsigned)text[length - 1]);
  } else {
    fwrite(text, 1, length, stream);
  }
}

static void write_text(FILE *stream, const void *bytes, size_t count) {
  const unsigned char *text = bytes;
  putc('"', stream);
  while (count > 0) {
    const size_t length = utf8_length(text, count);
    write_character(stream, text, length);
    text += length ? length : 1;
    count -= length ? length : 1;
  }
  putc('"', stream);
}

/* Writes the separator and the name that precede a value. Returns false if there is no stream. */
static bool begin_value(json *out, const char *name) {
  assert((name == NULL) == (out->depth > 0 && out->closers[out->depth - 1] == ']') || out->depth == 0);
  if (!out->text.stream) return false;
  if (out->needs_comma) fputs(", ", out->text.stream);
  out->needs_comma = true;
  if (name) {
    write_text(out->text.stream, name, strlen(name));
    fputs(": ", out->text.stream);
  }
  return true;
}

static void begin_group(json *out, const char *name, char opener, char closer) {
  assert(out->depth < JSON_DEPTH);
  if (begin_value(out, name)) putc(opener, out->text.stream);
  out->closers[out->depth++] = closer;
  out->needs_comma = false;
}

void json_begin_object(json *out, const char *name) { begin_group(out, name, '{', '}'); }

void json_begin_array(json *out, const char *name) { begin_group(out, name, '[', ']'); }

void json_end(json *out) {
  assert(out->depth > 0);
  const char closer = out->closers[--out->depth];
  if (out->text.stream) putc(closer, out->text.stream);
  out->needs_comma = true;
}

void json_boolean(json *out, const char *name, bool value) {
  if (begin_value(out, name)) fputs(value ? "true" : "false", out->text.stream);
}

void json_integer(json *out, const char *name, uint64_t value) {
  if (begin_value(out, name)) fprintf(out->text.stream, "%" PRIu64, value);
}

void json_real(json *out, const char *name, double value) {
  if (!begin_value(out, name)) return;
  if (isfinite(value)) {
    fprintf(out->text.stream, "%.9g", value);
  } else {
    fputs("null", out->text.stream);
  }
}

void json_verbatim(json *out, const char *name, const char *text) {
  if (begin_value(out, name)) fputs(text, out->text.stream);
}

void json_text(json *out, const char *name, const char *text) { json_bytes(out, name, text, strlen(text)); }

void json_bytes(json *out, const char *name, const void *bytes, size_t count) {
  if (begin_value(out, name)) write_text(out->text.stream, bytes, count);
}

void json_summary(json *out, const char *name, summary value) {
  char longer[64];
  json_real(out, name, value.median);
  snprintf(longer, sizeof longer, "%s_min", name);
  json_real(out, longer, value.minimum);
  snprintf(longer, sizeof longer, "%s_max", name);
  json_real(out, longer, value.maximum);
}
