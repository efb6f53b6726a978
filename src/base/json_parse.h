/* SPDX-License-Identifier: MIT
 * Parses JSON (RFC 8259) from an untrusted source. A document is an array of values in the order of the text. An array
 * is followed by its items; an object is followed by key, value, key, value and so on; each with everything inside it.
 * So the whole document is two blocks of memory, and the length of the text bounds their size.
 *
 * It refuses more than RFC 8259 does: an object with a duplicate key, a top level that is not an object or an array,
 * nesting deeper than RONDO_JSON_MOST_DEPTH, a string with U+0000, an integer below -2^63 or from 2^64 on.
 *
 * A document never changes after parsing, so any number of threads may read it.
 */
#ifndef RONDO_BASE_JSON_PARSE_H
#define RONDO_BASE_JSON_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/component.h"

#define RONDO_JSON_MOST_DEPTH 512

typedef enum rondo_json_kind {
  RONDO_JSON_NULL = 1,
  RONDO_JSON_BOOLEAN,
  RONDO_JSON_INTEGER,
  RONDO_JSON_UNSIGNED, /* an integer that does not fit int64_t: 2^63 or more */
  RONDO_JSON_REAL,     /* its value is not kept */
  RONDO_JSON_STRING,
  RONDO_JSON_ARRAY,
  RONDO_JSON_OBJECT
} rondo_json_kind;

typedef struct rondo_json_value {
  rondo_json_kind kind;
  uint32_t count; /* the items of an array or the members of an object */
  size_t span;    /* how many values of the document this one spans: itself and everything inside it */
  union {
    int64_t integer;
    uint64_t unsigned_integer;
    bool boolean;
    const char *string; /* UTF-8; owned by the document */
  } as;
} rondo_json_value;

typedef struct rondo_json_document {
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_json_value) values;
  char *strings;
  size_t string_bytes;
} rondo_json_document;

/* Parses `count` bytes. The caller frees the document with rondo_json_document_free, which also accepts a zeroed
 * document and one whose parsing failed. Errors: INVALID_DATA with MALFORMED, which says line and column (both from 1;
 * columns count bytes); OUT_OF_MEMORY. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_json_parse(const rondo_allocator *allocator, const char *bytes,
                                                           size_t count, rondo_json_document *out);
RONDO_PRIVATE void rondo_json_document_free(rondo_json_document *document);

/* The outermost value. */
RONDO_PRIVATE const rondo_json_value *rondo_json_root(const rondo_json_document *document);

/* The items of an array, the keys and values of an object:
 *
 *   const rondo_json_value *item = rondo_json_first(array);
 *   for (size_t i = 0; i < array->count; i++, item = rondo_json_next(item)) ...
 *
 * Of an object, the value of a key is rondo_json_next(key), and the next key follows the value. */
RONDO_PRIVATE const rondo_json_value *rondo_json_first(const rondo_json_value *container);
RONDO_PRIVATE const rondo_json_value *rondo_json_next(const rondo_json_value *value);

/* The item at `index`, which is below `count`. Walks over the items before it. */
RONDO_PRIVATE const rondo_json_value *rondo_json_item(const rondo_json_value *array, size_t index);

/* The value of a member, or NULL, also if `object` is NULL or not an object. A linear search. */
RONDO_PRIVATE const rondo_json_value *rondo_json_get(const rondo_json_value *object, const char *key);

/* Whether a value has this kind; false for NULL. */
RONDO_PRIVATE bool rondo_json_is(const rondo_json_value *value, rondo_json_kind kind);
/* The text of a string; NULL for any other value and for NULL. */
RONDO_PRIVATE const char *rondo_json_text_of(const rondo_json_value *value);

#endif
