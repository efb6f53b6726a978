/* SPDX-License-Identifier: MIT
 * Documents in two formats. A field is a value with a unit. Only `add_json` and `add_text`, which render it, know the
 * format. Invariant: in the text, the next line or the end of the document ends a line.
 */
#include "base/document/document.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"

enum { LABEL = 13 }; /* columns of a label */

typedef enum unit {
  UNIT_NONE,
  UNIT_NUMBER,
  UNIT_COUNT,
  UNIT_BYTES,
  UNIT_REAL,
  UNIT_RATIO,
  UNIT_FLAG,
  UNIT_STRING
} unit;

typedef struct field {
  unit unit;
  uint64_t number, bound; /* bound: of a ratio */
  double real;
  int decimals;
  const char *string;
} field;

/* JSON ------------------------------------------------------------------------------------------------------------- */

static void add_json(rondo_text *text, const field *value) {
  switch (value->unit) {
    case UNIT_NUMBER:
    case UNIT_COUNT:
    case UNIT_BYTES:
      rondo_json_u64(text, value->number);
      return;
    case UNIT_REAL:
      rondo_json_double(text, value->real);
      return;
    case UNIT_FLAG:
      rondo_json_bool(text, value->number != 0);
      return;
    case UNIT_STRING:
      rondo_json_string(text, value->string);
      return;
    case UNIT_NONE:
    case UNIT_RATIO:
      assert(false && "this unit is only in the text");
  }
}

/* Text ------------------------------------------------------------------------------------------------------------- */

static void add_text(rondo_text *text, const field *value) {
  switch (value->unit) {
    case UNIT_NUMBER:
      rondo_text_add(text, "%" PRIu64, value->number);
      return;
    case UNIT_COUNT:
      rondo_text_add(text, "%s", RONDO_GROUPED(value->number));
      return;
    case UNIT_BYTES:
      rondo_text_add(text, "%s", RONDO_SIZE(value->number));
      return;
    case UNIT_REAL:
      rondo_text_add(text, "%s", RONDO_FIXED(value->real, value->decimals));
      return;
    case UNIT_RATIO:
      rondo_text_add(text, "%s", RONDO_RATIO((size_t)value->number, (size_t)value->bound));
      return;
    case UNIT_STRING:
      rondo_text_add_escaped(text, value->string);
      return;
    case UNIT_NONE:
    case UNIT_FLAG:
      assert(false && "the phrase of this unit takes no value");
  }
}

static void separate(rondo_document *document, const char **phrase) {
  if (document->has_phrase && strchr(",;:()] ", **phrase) == NULL) rondo_text_add_bytes(document->text, ", ", 2);
  if (!document->has_phrase && **phrase == ';') *phrase += strspn(*phrase, "; ");
  document->has_phrase = true;
}

static void add_phrase(rondo_document *document, const char *phrase, const field *value) {
  assert(document->has_line);
  separate(document, &phrase);
  while (*phrase != '\0') {
    const size_t run = strcspn(phrase, "%(");
    rondo_text_add_bytes(document->text, phrase, run);
    phrase += run;
    if (*phrase == '%') {
      add_text(document->text, value);
      phrase++;
    } else if (strncmp(phrase, "(s)", 3) == 0) {
      if (value->number != 1) rondo_text_add_bytes(document->text, "s", 1);
      phrase += 3;
    } else if (*phrase != '\0') {
      rondo_text_add_bytes(document->text, phrase++, 1);
    }
  }
}

static void add(rondo_document *document, const char *key, field value, const char *phrase) {
  if (document->is_json && key != NULL) {
    rondo_json_key(document->text, key);
    add_json(document->text, &value);
  }
  if (!document->is_json && phrase != NULL) add_phrase(document, phrase, &value);
}

static void add_item(rondo_document *document, field value, const char *phrase) {
  if (document->is_json)
    add_json(document->text, &value);
  else if (phrase != NULL)
    add_phrase(document, phrase, &value);
}

static void begin_line(rondo_document *document) {
  if (document->has_line) rondo_text_add_bytes(document->text, "\n", 1);
  document->has_line = true;
  document->has_phrase = false;
}

void rondo_document_line(rondo_document *document, const char *format, ...) {
  char line[128];
  va_list arguments;
  if (document->is_json) return;
  va_start(arguments, format);
  const size_t length = rondo_format_cut(line, sizeof line, format, arguments);
  va_end(arguments);
  begin_line(document);
  rondo_text_add_bytes(document->text, line, length);
}

void rondo_document_label(rondo_document *document, const char *label) {
  rondo_document_line(document, "  %-*s", LABEL, label);
}

/* Structure -------------------------------------------------------------------------------------------------------- */

void rondo_document_begin(rondo_document *document, rondo_text *text, bool is_json) {
  *document = (rondo_document){.text = text, .is_json = is_json};
  rondo_document_object_begin(document, NULL);
}

void rondo_document_end(rondo_document *document) {
  rondo_document_object_end(document);
  if (!document->is_json && document->has_line) rondo_text_add_bytes(document->text, "\n", 1);
}

void rondo_document_object_begin(rondo_document *document, const char *key) {
  if (!document->is_json) return;
  if (key != NULL) rondo_json_key(document->text, key);
  rondo_json_object_begin(document->text);
}

void rondo_document_object_end(rondo_document *document) {
  if (document->is_json) rondo_json_object_end(document->text);
}

void rondo_document_list_begin(rondo_document *document, const char *key) {
  if (!document->is_json) return;
  if (key != NULL) rondo_json_key(document->text, key);
  rondo_json_array_begin(document->text);
}

void rondo_document_list_end(rondo_document *document) {
  if (document->is_json) rondo_json_array_end(document->text);
}

/* Fields ----------------------------------------------------------------------------------------------------------- */

void rondo_document_number(rondo_document *document, const char *key, uint64_t value, const char *phrase) {
  add(document, key, (field){.unit = UNIT_NUMBER, .number = value}, phrase);
}

void rondo_document_count(rondo_document *document, const char *key, uint64_t value, const char *phrase) {
  add(document, key, (field){.unit = UNIT_COUNT, .number = value}, phrase);
}

void rondo_document_bytes(rondo_document *document, const char *key, uint64_t value, const char *phrase) {
  add(document, key, (field){.unit = UNIT_BYTES, .number = value}, phrase);
}

void rondo_document_real(rondo_document *document, const char *key, double value, int decimals, const char *phrase) {
  add(document, key, (field){.unit = UNIT_REAL, .real = value, .decimals = decimals}, phrase);
}

void rondo_document_flag(rondo_document *document, const char *key, bool value, const char *phrase_if_true,
                         const char *phrase_if_false) {
  add(document, key, (field){.unit = UNIT_FLAG, .number = value}, value ? phrase_if_true : phrase_if_false);
}

void rondo_document_string(rondo_document *document, const char *key, const char *value, const char *phrase) {
  add(document, key, (field){.unit = UNIT_STRING, .string = value}, value == NULL ? NULL : phrase);
}

void rondo_document_null(rondo_document *document, const char *key) {
  rondo_document_string(document, key, NULL, NULL);
}

void rondo_document_number_item(rondo_document *document, uint64_t value, const char *phrase) {
  add_item(document, (field){.unit = UNIT_NUMBER, .number = value}, phrase);
}

void rondo_document_string_item(rondo_document *document, const char *value, const char *phrase) {
  add_item(document, (field){.unit = UNIT_STRING, .string = value}, phrase);
}

void rondo_document_say(rondo_document *document, const char *phrase) {
  add(document, NULL, (field){.unit = UNIT_NONE}, phrase);
}

void rondo_document_ratio(rondo_document *document, uint64_t size, uint64_t bound, const char *phrase) {
  add(document, NULL, (field){.unit = UNIT_RATIO, .number = size, .bound = bound}, bound == 0 ? NULL : phrase);
}
