/* SPDX-License-Identifier: MIT
 * Items are sorted by where they begin, so those that overlap one are found in a tree of where they end.
 */
#include "plan/stream_pack.h"

#include <string.h>

#include "base/error.h"

typedef struct span {
  uint32_t begin, end;
} span;

rondo_status rondo_stream_packer_make(const rondo_allocator *allocator, uint32_t room, uint64_t most_work,
                                      rondo_stream_packer *out) {
  *out = (rondo_stream_packer){.room = room, .most_work = most_work};
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *out->items, &out->items));
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *out->sequence, &out->sequence));
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *out->scratch, &out->scratch));
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *out->pieces, &out->pieces));
  return rondo_allocate_items(allocator, room, 4 * sizeof *out->ends, &out->ends);
}

void rondo_stream_packer_free(const rondo_allocator *allocator, rondo_stream_packer *packer) {
  rondo_release(allocator, packer->items, packer->room, sizeof *packer->items);
  rondo_release(allocator, packer->sequence, packer->room, sizeof *packer->sequence);
  rondo_release(allocator, packer->scratch, packer->room, sizeof *packer->scratch);
  rondo_release(allocator, packer->pieces, packer->room, sizeof *packer->pieces);
  rondo_release(allocator, packer->ends, packer->room, 4 * sizeof *packer->ends);
  *packer = (rondo_stream_packer){0};
}

static void note_placed(rondo_stream_packer *p, uint32_t node, span own, uint32_t index) {
  const uint32_t middle = own.begin + (own.end - own.begin) / 2;
  if (p->ends[node] < p->items[index].end) p->ends[node] = p->items[index].end;
  if (own.end - own.begin == 1) return;
  if (index < middle) {
    note_placed(p, 2 * node, (span){own.begin, middle}, index);
  } else {
    note_placed(p, 2 * node + 1, (span){middle, own.end}, index);
  }
}

static size_t list_placed(rondo_stream_packer *p, uint32_t node, span own, const rondo_packed *item, size_t count) {
  if (p->ends[node] <= item->begin || p->items[own.begin].begin >= item->end) return count;
  if (own.end - own.begin == 1) {
    p->pieces[count] = (rondo_sort_entry){p->items[own.begin].offset, own.begin};
    return count + 1;
  }
  const uint32_t middle = own.begin + (own.end - own.begin) / 2;
  count = list_placed(p, 2 * node, (span){own.begin, middle}, item, count);
  return list_placed(p, 2 * node + 1, (span){middle, own.end}, item, count);
}

/* The lowest offset in a gap that the pieces leave free; SIZE_MAX: none. */
static size_t fit(const rondo_stream_packer *p, const rondo_packed *item, const rondo_packed_gap *gap, size_t count) {
  size_t offset = gap->low;
  for (size_t i = 0; i < count; i++) {
    const rondo_packed *other = &p->items[p->pieces[i].value];
    if (other->offset >= offset && other->offset - offset >= item->bytes) break;
    const size_t end = other->offset + other->bytes;
    if (end > offset && !rondo_checked_align(end, item->alignment, &offset)) return SIZE_MAX;
  }
  return offset <= gap->high && gap->high - offset >= item->bytes ? offset : SIZE_MAX;
}

/* Puts the item into its lowest gap; false when its top is above the limit. */
static bool place(rondo_stream_packer *p, rondo_packed *item, size_t limit, size_t *out_top) {
  const size_t count = list_placed(p, 1, (span){0, p->count}, item, 0);
  size_t offset = SIZE_MAX;
  size_t top = 0;
  p->work += count;
  rondo_sort_entries(p->pieces, p->scratch, count);
  for (uint32_t i = 0; i < item->gap_count && offset == SIZE_MAX; i++) offset = fit(p, item, &item->gaps[i], count);
  if (!rondo_checked_add(offset, item->bytes, &top) || !rondo_checked_add(top, item->demand, &top)) return false;
  item->offset = offset;
  *out_top = top;
  return top <= limit && p->work <= p->most_work;
}

size_t rondo_stream_packer_run(rondo_stream_packer *packer, size_t limit) {
  size_t most = 0;
  if (packer->count == 0) return 0;
  memset(packer->ends, 0, (size_t)packer->count * 4 * sizeof *packer->ends);
  rondo_sort_entries(packer->sequence, packer->scratch, packer->count);
  for (uint32_t i = 0; i < packer->count; i++) {
    const uint32_t index = packer->sequence[i].value;
    size_t top = 0;
    if (!place(packer, &packer->items[index], limit, &top)) return SIZE_MAX;
    if (top > most) most = top;
    note_placed(packer, 1, (span){0, packer->count}, index);
  }
  return most;
}
