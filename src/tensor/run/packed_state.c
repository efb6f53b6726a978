/* SPDX-License-Identifier: MIT
 * The order of packed elements, and copies between it and plain rows.
 */
#include "tensor/run/packed_state.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/numbers/always_inline.h"

/* Tables ----------------------------------------------------------------------------------------------------------- */

static size_t table_entries(const rondo_packed_state *state) { return state->rows + state->columns + state->taps; }

rondo_status rondo_packed_state_create(const rondo_allocator *allocator, size_t bytes, size_t rows, size_t columns,
                                       size_t taps, rondo_packed_state **out) {
  rondo_packed_state *state;
  *out = NULL;
  assert((bytes == 1 || bytes == 4) && rows > 0 && columns > 0 && taps > 0);
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *state, &state));
  *state = (rondo_packed_state){
      .allocator = *allocator, .users = 1, .bytes = bytes, .rows = rows, .columns = columns, .taps = taps};
  state->stored = rondo_packed_state_elements(state);
  const rondo_status status = rondo_allocate_items(allocator, table_entries(state), sizeof *state->row, &state->row);
  if (status != RONDO_OK) {
    rondo_release(allocator, state, 1, sizeof *state);
    return status;
  }
  state->column = state->row + rows;
  state->tap = state->column + columns;
  *out = state;
  return RONDO_OK;
}

rondo_packed_state *rondo_packed_state_retain(rondo_packed_state *state) {
  state->users++;
  return state;
}

rondo_status rondo_packed_state_release(rondo_packed_state *state) {
  if (state == NULL || --state->users > 0) return RONDO_OK;
  const rondo_allocator allocator = state->allocator;
  const rondo_status status = state->plain == NULL ? RONDO_OK : rondo_free(state->device, state->plain);
  rondo_release(&allocator, state->row, table_entries(state), sizeof *state->row);
  rondo_release(&allocator, state, 1, sizeof *state);
  return status;
}

bool rondo_packed_state_is_alike(const rondo_packed_state *a, const rondo_packed_state *b) {
  return a->bytes == b->bytes && a->rows == b->rows && a->columns == b->columns && a->taps == b->taps &&
         a->stored == b->stored && memcmp(a->row, b->row, table_entries(a) * sizeof *a->row) == 0;
}

/* Copies ----------------------------------------------------------------------------------------------------------- */

/* `bytes` is a constant where this is inlined. */
RONDO_INLINE void copy_element(size_t bytes, unsigned char *to, size_t at, const unsigned char *from, size_t index) {
  memcpy(to + at * bytes, from + index * bytes, bytes);
}

/* Packs `count` elements of a row, from element `first` of it on. */
RONDO_INLINE void pack_in_row(const rondo_packed_state *s, size_t bytes, size_t first, size_t count,
                              const unsigned char *from, unsigned char *to) {
  const size_t *const at = s->column + first / s->taps;
  size_t tap = first % s->taps;
  if (s->taps == 1) {
    for (size_t i = 0; i < count; i++) copy_element(bytes, to, at[i], from, i);
    return;
  }
  for (size_t column = 0; count > 0; column++, tap = 0) {
    const size_t taps = s->taps - tap < count ? s->taps - tap : count;
    for (size_t k = 0; k < taps; k++) copy_element(bytes, to, at[column] + s->tap[tap + k], from, k);
    from += taps * bytes;
    count -= taps;
  }
}

static void pack_elements(const rondo_packed_state *s, size_t first, size_t last, const unsigned char *from,
                          unsigned char *to) {
  const size_t row_elements = s->columns * s->taps;
  while (first < last) {
    const size_t at = first % row_elements, rest = row_elements - at;
    const size_t count = rest < last - first ? rest : last - first;
    unsigned char *const row = to + s->row[first / row_elements] * s->bytes;
    if (s->bytes == 4)
      pack_in_row(s, 4, at, count, from, row);
    else
      pack_in_row(s, 1, at, count, from, row);
    from += count * s->bytes;
    first += count;
  }
}

void rondo_packed_state_unpack(const rondo_packed_state *state, void *out_rows) {
  unsigned char *to = out_rows;
  for (size_t r = 0; r < state->rows; r++)
    for (size_t c = 0; c < state->columns; c++)
      for (size_t t = 0; t < state->taps; t++, to += state->bytes)
        memcpy(to, state->address + (state->row[r] + state->column[c] + state->tap[t]) * state->bytes, state->bytes);
}

rondo_status rondo_packed_state_need_rows(rondo_packed_state *state) {
  void *rows = NULL;
  assert(state->address != NULL);
  if (state->plain != NULL) return RONDO_OK;
  RONDO_TRY(rondo_malloc(state->device, rondo_packed_state_elements(state) * state->bytes, "plain rows", &rows));
  state->plain = rows;
  rondo_packed_state_unpack(state, state->plain);
  return RONDO_OK;
}

/* The kernel ------------------------------------------------------------------------------------------------------- */

#define BLOCK_ELEMENTS 16384
#define MAX_BLOCKS 4096

rondo_grid rondo_pack_grid(const rondo_pack_call *call) {
  const size_t blocks = (call->count + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
  assert(call->count > 0);
  return (rondo_grid){.x = blocks > MAX_BLOCKS ? MAX_BLOCKS : (uint32_t)blocks};
}

rondo_pack_call rondo_pack_all(const rondo_packed_state *state) {
  return (rondo_pack_call){
      .state = state, .count = rondo_packed_state_elements(state), .from = state->plain, .to = state->address};
}

/* args: the members of a rondo_pack_call. */
static void pack(rondo_blocks blocks, void *const *args) {
  const rondo_packed_state *state = *(const rondo_packed_state *const *)args[0];
  const size_t first = *(const size_t *)args[1], count = *(const size_t *)args[2];
  const unsigned char *from = *(const unsigned char *const *)args[3];
  const size_t share = (count + blocks.grid.x - 1) / blocks.grid.x;
  const size_t begin = blocks.first * share, end = blocks.last * share < count ? blocks.last * share : count;
  if (begin < end)
    pack_elements(state, first + begin, first + end, from + begin * state->bytes, *(unsigned char *const *)args[4]);
}

const rondo_kernel_options rondo_pack_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "pack_state", .cpu = pack,
    .params = {RONDO_SCALAR(void *), RONDO_SCALAR(size_t), RONDO_SCALAR(size_t), RONDO_READS, RONDO_UPDATES}};
