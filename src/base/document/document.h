/* SPDX-License-Identifier: MIT
 * A document that is written once and rendered as text for people or as JSON. The caller lists the fields; this file
 * renders them.
 *
 * A field has a key (JSON), a value with a unit, and a phrase (text). If the key is NULL, the field is only in the
 * text. If the phrase is NULL, it is only in the JSON. In a phrase, "%" stands for the value and "(s)" for a plural
 * "s". Phrases of a line are separated by ", ", unless a phrase begins with punctuation or a space.
 *
 * Objects and lists structure the JSON; lines and labels structure the text. Each format ignores the other's structure.
 *
 * Errors are kept in the rondo_text. One thread at a time.
 */
#ifndef RONDO_BASE_DOCUMENT_DOCUMENT_H
#define RONDO_BASE_DOCUMENT_DOCUMENT_H

#include "base/component.h"
#include "base/text.h"

typedef struct rondo_document {
  rondo_text *text;
  bool is_json;
  bool has_line;   /* text: a line has begun */
  bool has_phrase; /* text: the line has a phrase */
} rondo_document;

/* Begins the document, whose JSON is one object. */
RONDO_PRIVATE void rondo_document_begin(rondo_document *document, rondo_text *text, bool is_json);
RONDO_PRIVATE void rondo_document_end(rondo_document *document);

/* Ends the current line and begins a line with this text. */
RONDO_PRIVATE void rondo_document_line(rondo_document *document, const char *format, ...) RONDO_PRINTF(2, 3);
/* Begins a line with a label, padded so that the text after it is aligned. */
RONDO_PRIVATE void rondo_document_label(rondo_document *document, const char *label);

/* The key of an element of a list is NULL. */
RONDO_PRIVATE void rondo_document_object_begin(rondo_document *document, const char *key);
RONDO_PRIVATE void rondo_document_object_end(rondo_document *document);
RONDO_PRIVATE void rondo_document_list_begin(rondo_document *document, const char *key);
RONDO_PRIVATE void rondo_document_list_end(rondo_document *document);

RONDO_PRIVATE void rondo_document_number(rondo_document *document, const char *key, uint64_t value, const char *phrase);
/* The text groups its digits: 1,234. */
RONDO_PRIVATE void rondo_document_count(rondo_document *document, const char *key, uint64_t value, const char *phrase);
/* The text has a binary unit: 4.0 KiB. */
RONDO_PRIVATE void rondo_document_bytes(rondo_document *document, const char *key, uint64_t value, const char *phrase);
/* The text has this many decimals. */
RONDO_PRIVATE void rondo_document_real(rondo_document *document, const char *key, double value, int decimals,
                                       const char *phrase);
/* The text has the phrase for the value, if there is one. */
RONDO_PRIVATE void rondo_document_flag(rondo_document *document, const char *key, bool value,
                                       const char *phrase_if_true, const char *phrase_if_false);
/* NULL is null in JSON and nothing in text. The text escapes the value as JSON does, so that a line stays one line. */
RONDO_PRIVATE void rondo_document_string(rondo_document *document, const char *key, const char *value,
                                         const char *phrase);
/* A field that has no value: null in JSON. */
RONDO_PRIVATE void rondo_document_null(rondo_document *document, const char *key);

/* An element of a list of numbers or strings. */
void rondo_document_number_item(rondo_document *document, uint64_t value, const char *phrase);
RONDO_PRIVATE void rondo_document_string_item(rondo_document *document, const char *value, const char *phrase);

/* Only in the text: a phrase without a value; `size` relative to `bound`, which is not 0. */
RONDO_PRIVATE void rondo_document_say(rondo_document *document, const char *phrase);
RONDO_PRIVATE void rondo_document_ratio(rondo_document *document, uint64_t size, uint64_t bound, const char *phrase);

#endif
