/* SPDX-License-Identifier: MIT
 * Overlap of boxes. A range and a box of any size need a few divisions only. So do two boxes of the same pitch, which
 * are rectangles in one matrix. All other pairs are compared row by row.
 */
#include "graph/byte_box.h"

#define MOST_ROWS 65536

/* Whether [low, high) overlaps one of `count` pieces of `width` bytes, `pitch` bytes apart. Offsets count from the
 * first piece; high > low >= 0. *out_first becomes the first piece that ends after `low`. */
static bool touches_pieces(size_t low, size_t high, size_t width, size_t pitch, size_t count, size_t *out_first) {
  *out_first = 0;
  if (count > 1 && low >= width) *out_first = (low - width) / pitch + 1;
  if (count == 1 && low >= width) return false;
  return *out_first < count && *out_first * pitch < high;
}

static bool range_touches_slice(size_t low, size_t high, const rondo_byte_box *box) {
  size_t row;
  return touches_pieces(low, high, box->width, box->pitch, box->height, &row);
}

/* Whether the range overlaps a row of the box. */
static bool range_touches_box(uintptr_t begin, uintptr_t end, const rondo_byte_box *box) {
  if (end <= box->begin || begin >= box->end) return false;
  const size_t low = begin > box->begin ? begin - box->begin : 0, high = end - box->begin;
  const size_t slice = (box->height - 1) * box->pitch + box->width;
  size_t first;
  if (!touches_pieces(low, high, slice, box->slice_pitch, box->depth, &first)) return false;
  for (size_t i = first; i < box->depth && i * box->slice_pitch < high; i++) {
    const size_t start = i * box->slice_pitch;
    if (range_touches_slice(low > start ? low - start : 0, high - start, box)) return true;
  }
  return false;
}

static bool same_matrix(const rondo_byte_box *a, const rondo_byte_box *b) {
  return a->depth == 1 && b->depth == 1 && a->height > 1 && b->height > 1 && a->pitch == b->pitch;
}

/* For two boxes of one pitch, of which `a` begins first: b's first row begins `rows` rows and `columns` bytes after
 * a's. The bytes after the end of a matrix row are at the beginning of the next row. */
static bool rectangles_overlap(const rondo_byte_box *a, const rondo_byte_box *b) {
  const size_t distance = b->begin - a->begin;
  const size_t rows = distance / a->pitch, columns = distance % a->pitch;
  if (columns < a->width && rows < a->height) return true;
  return columns + b->width > a->pitch && rows + 1 < a->height;
}

static size_t row_count(const rondo_byte_box *box) { return box->height * box->depth; }

static bool rows_touch(const rondo_byte_box *rows, const rondo_byte_box *box) {
  for (size_t slice = 0; slice < rows->depth; slice++)
    for (size_t row = 0; row < rows->height; row++) {
      const uintptr_t begin = rows->begin + slice * rows->slice_pitch + row * rows->pitch;
      if (range_touches_box(begin, begin + rows->width, box)) return true;
    }
  return false;
}

rondo_overlap rondo_byte_box_overlap(const rondo_byte_box *a, const rondo_byte_box *b) {
  if (a->end <= b->begin || b->end <= a->begin) return RONDO_OVERLAP_NO;
  bool overlap;
  if (rondo_byte_box_is_range(a))
    overlap = range_touches_box(a->begin, a->end, b);
  else if (rondo_byte_box_is_range(b))
    overlap = range_touches_box(b->begin, b->end, a);
  else if (same_matrix(a, b))
    overlap = a->begin <= b->begin ? rectangles_overlap(a, b) : rectangles_overlap(b, a);
  else if (row_count(a) <= MOST_ROWS || row_count(b) <= MOST_ROWS)
    overlap = row_count(a) <= row_count(b) ? rows_touch(a, b) : rows_touch(b, a);
  else
    return RONDO_OVERLAP_UNKNOWN;
  return overlap ? RONDO_OVERLAP_YES : RONDO_OVERLAP_NO;
}

bool rondo_byte_box_make(const void *address, size_t width, size_t height, size_t pitch, size_t depth,
                         size_t slice_pitch, rondo_byte_box *out) {
  if (address == NULL) return false;
  const uintptr_t begin = (uintptr_t)address;
  const size_t bytes = (depth - 1) * slice_pitch + (height - 1) * pitch + width;
  *out = (rondo_byte_box){.begin = begin,
                          .end = bytes <= UINTPTR_MAX - begin ? begin + bytes : UINTPTR_MAX,
                          .width = width,
                          .height = height,
                          .pitch = pitch,
                          .depth = depth,
                          .slice_pitch = slice_pitch};
  if (height * depth == 1 || (pitch == width && (depth == 1 || slice_pitch == pitch * height))) {
    out->width = out->end - begin;
    out->height = out->depth = 1;
    out->pitch = out->slice_pitch = out->width;
  }
  return true;
}

size_t rondo_byte_box_of_node(const rondo_node_params *params, rondo_byte_box out[RONDO_MOST_EXTENTS],
                              bool writes[RONDO_MOST_EXTENTS]) {
  size_t count = 0;
  if (params->kind == RONDO_NODE_COPY) {
    const rondo_copy *copy = &params->as.copy;
    writes[count] = true;
    count += rondo_byte_box_make(copy->dst, copy->width, copy->height, copy->dst_pitch, copy->depth,
                                 copy->dst_slice_pitch, &out[count]);
    if (count < RONDO_MOST_EXTENTS) writes[count] = false;
    return count + rondo_byte_box_make(copy->src, copy->width, copy->height, copy->src_pitch, copy->depth,
                                       copy->src_slice_pitch, &out[count]);
  }
  if (params->kind != RONDO_NODE_FILL) return 0;
  const rondo_fill *fill = &params->as.fill;
  writes[0] = true;
  return rondo_byte_box_make(fill->dst, fill->width * fill->element_bytes, fill->height, fill->pitch, 1, 0, &out[0]);
}
