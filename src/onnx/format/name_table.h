/* SPDX-License-Identifier: MIT
 * Names of values, with the scopes of nested graphs: a name of an inner scope hides that of an outer one until the
 * scope ends. A look-up takes constant time. Threads: one at a time.
 */
#ifndef RONDO_ONNX_FORMAT_NAME_TABLE_H
#define RONDO_ONNX_FORMAT_NAME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/allocation.h"
#include "base/array.h"

#define RONDO_ONNX_NO_ENTRY UINT32_MAX

typedef struct rondo_onnx_name {
  const char *text; /* outlives the table */
  uint64_t hash;
  uint32_t value;  /* the user's */
  uint32_t hidden; /* the entry of an outer scope with this name, or NO_ENTRY */
} rondo_onnx_name;

typedef struct rondo_onnx_name_table {
  RONDO_ARRAY(rondo_onnx_name) entries; /* in the order in which they were added */
  uint32_t *slots;                      /* by hash; the latest entry of a name, or NO_ENTRY */
  size_t slot_count;                    /* a power of two, at least twice the number of entries; or 0 */
  size_t scope_begin;                   /* the first entry of the innermost scope */
} rondo_onnx_name_table;

/* Asserts that each slot leads to the latest entry of its name, and each entry is found. */
void rondo_onnx_name_table_check(const rondo_onnx_name_table *table);

void rondo_onnx_name_table_free(const rondo_allocator *allocator, rondo_onnx_name_table *table);

/* Adds a name to the innermost scope; *out_is_new is false, and nothing changes, if the scope has it. Errors:
 * OUT_OF_MEMORY; LIMIT_EXCEEDED (2^31 names). */
RONDO_MUST_USE rondo_status rondo_onnx_name_add(const rondo_allocator *allocator, rondo_onnx_name_table *table,
                                                const char *text, uint32_t value, bool *out_is_new);

/* Whether any open scope has the name; its value, if so. */
bool rondo_onnx_name_find(const rondo_onnx_name_table *table, const char *text, uint32_t *out_value);

/* Begins a scope inside the innermost one. Returns what ends it. */
size_t rondo_onnx_scope_begin(rondo_onnx_name_table *table);
void rondo_onnx_scope_end(rondo_onnx_name_table *table, size_t outer_begin);

#endif
