/* SPDX-License-Identifier: MIT
 * A hash table with linear probing. Names are removed in the reverse order of their addition, so what remains is found
 * as before they were added. A larger table adds the entries in the same order again.
 */
#include "onnx/format/name_table.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

#define FIRST_SLOTS 64
#define MOST_ENTRIES ((size_t)1 << 31)

/* The slot that has the name, or the empty one where it belongs. */
static size_t slot_of(const rondo_onnx_name_table *table, const char *text, uint64_t hash) {
  const size_t mask = table->slot_count - 1;
  size_t slot = (size_t)hash & mask;
  while (table->slots[slot] != RONDO_ONNX_NO_ENTRY) {
    const rondo_onnx_name *entry = &table->entries.items[table->slots[slot]];
    if (entry->hash == hash && strcmp(entry->text, text) == 0) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

#ifndef NDEBUG
void rondo_onnx_name_table_check(const rondo_onnx_name_table *table) {
  rondo_array_check(&table->entries);
  assert((table->slot_count & (table->slot_count - 1)) == 0 && table->scope_begin <= table->entries.count);
  assert(table->slot_count >= 2 * table->entries.count);
  for (size_t i = 0; i < table->entries.count; i++) {
    const rondo_onnx_name *entry = &table->entries.items[i];
    const uint32_t latest = table->slots[slot_of(table, entry->text, entry->hash)];
    assert(latest != RONDO_ONNX_NO_ENTRY && latest >= i);
    assert(entry->hidden == RONDO_ONNX_NO_ENTRY || entry->hidden < i);
  }
}
#else
void rondo_onnx_name_table_check(const rondo_onnx_name_table *table) { (void)table; }
#endif

void rondo_onnx_name_table_free(const rondo_allocator *allocator, rondo_onnx_name_table *table) {
  rondo_release(allocator, table->slots, table->slot_count, sizeof *table->slots);
  rondo_array_free(allocator, &table->entries);
  *table = (rondo_onnx_name_table){0};
}

static rondo_status grow(const rondo_allocator *allocator, rondo_onnx_name_table *table) {
  const size_t larger = table->slot_count == 0 ? FIRST_SLOTS : 2 * table->slot_count;
  uint32_t *slots;
  RONDO_TRY(rondo_allocate_items(allocator, larger, sizeof *slots, &slots));
  rondo_release(allocator, table->slots, table->slot_count, sizeof *slots);
  memset(slots, 0xff, larger * sizeof *slots);
  table->slots = slots;
  table->slot_count = larger;
  for (size_t i = 0; i < table->entries.count; i++) {
    const rondo_onnx_name *entry = &table->entries.items[i];
    table->slots[slot_of(table, entry->text, entry->hash)] = (uint32_t)i;
  }
  return RONDO_OK;
}

static rondo_status make_room(const rondo_allocator *allocator, rondo_onnx_name_table *table) {
  const size_t wanted = table->entries.count + 1;
  if (wanted > MOST_ENTRIES)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE, "a model has at most 2^31 values");
  RONDO_TRY(rondo_array_reserve(allocator, &table->entries, wanted));
  return 2 * wanted <= table->slot_count ? RONDO_OK : grow(allocator, table);
}

rondo_status rondo_onnx_name_add(const rondo_allocator *allocator, rondo_onnx_name_table *table, const char *text,
                                 uint32_t value, bool *out_is_new) {
  RONDO_TRY(make_room(allocator, table));
  const rondo_onnx_name entry = {.text = text, .hash = rondo_hash_text(RONDO_HASH_START, text), .value = value};
  const size_t slot = slot_of(table, text, entry.hash);
  const uint32_t latest = table->slots[slot];
  *out_is_new = latest == RONDO_ONNX_NO_ENTRY || latest < table->scope_begin;
  if (!*out_is_new) return RONDO_OK;
  table->slots[slot] = (uint32_t)table->entries.count;
  RONDO_TRY(rondo_array_push(allocator, &table->entries, &entry));
  table->entries.items[table->entries.count - 1].hidden = latest;
  return RONDO_OK;
}

bool rondo_onnx_name_find(const rondo_onnx_name_table *table, const char *text, uint32_t *out_value) {
  if (table->slot_count == 0) return false;
  const uint32_t latest = table->slots[slot_of(table, text, rondo_hash_text(RONDO_HASH_START, text))];
  if (latest == RONDO_ONNX_NO_ENTRY) return false;
  *out_value = table->entries.items[latest].value;
  return true;
}

size_t rondo_onnx_scope_begin(rondo_onnx_name_table *table) {
  const size_t outer_begin = table->scope_begin;
  table->scope_begin = table->entries.count;
  return outer_begin;
}

void rondo_onnx_scope_end(rondo_onnx_name_table *table, size_t outer_begin) {
  assert(outer_begin <= table->scope_begin);
  while (table->entries.count > table->scope_begin) {
    const rondo_onnx_name *last = &table->entries.items[table->entries.count - 1];
    table->slots[slot_of(table, last->text, last->hash)] = last->hidden;
    table->entries.count--;
  }
  table->scope_begin = outer_begin;
}
