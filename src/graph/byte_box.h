/* SPDX-License-Identifier: MIT
 * The bytes that a node accesses: rows of one width at equal distances, as in copies and fills. So the verifier can
 * tell that two columns of one matrix do not overlap. One row is a plain range.
 */
#ifndef RONDO_GRAPH_BYTE_BOX_H
#define RONDO_GRAPH_BYTE_BOX_H

#include <stdint.h>

#include "graph/graph_internal.h"

typedef struct rondo_byte_box {
  uintptr_t begin, end; /* from the first byte to one past the last */
  size_t width;         /* of a row */
  size_t height;        /* rows of a slice */
  size_t pitch;         /* the distance of rows; not used if the height is 1 */
  size_t depth, slice_pitch;
} rondo_byte_box;

typedef enum rondo_overlap { RONDO_OVERLAP_NO = 0, RONDO_OVERLAP_YES = 1, RONDO_OVERLAP_UNKNOWN = 2 } rondo_overlap;

/* Whether two boxes share a byte. UNKNOWN if both have too many rows to compare, unless both are rectangles of one
 * pitch. */
rondo_overlap rondo_byte_box_overlap(const rondo_byte_box *a, const rondo_byte_box *b);

/* Makes a box; width, height and depth are at least 1. Returns false if the address is NULL. */
bool rondo_byte_box_make(const void *address, size_t width, size_t height, size_t pitch, size_t depth,
                         size_t slice_pitch, rondo_byte_box *out);

/* The boxes that a resolved copy or fill accesses, the destination first. Returns their number, 0 for other kinds.
 * Omits an address of NULL. */
size_t rondo_byte_box_of_node(const rondo_node_params *params, rondo_byte_box out[RONDO_MOST_EXTENTS],
                              bool writes[RONDO_MOST_EXTENTS]);

/* The bytes from the first to one past the last that a resolved copy or fill accesses, on one side. */
static inline size_t rondo_copy_src_bytes(const rondo_copy *copy) {
  return (copy->depth - 1) * copy->src_slice_pitch + (copy->height - 1) * copy->src_pitch + copy->width;
}
static inline size_t rondo_copy_dst_bytes(const rondo_copy *copy) {
  return (copy->depth - 1) * copy->dst_slice_pitch + (copy->height - 1) * copy->dst_pitch + copy->width;
}
static inline size_t rondo_fill_bytes(const rondo_fill *fill) {
  return (fill->height - 1) * fill->pitch + fill->width * fill->element_bytes;
}

static inline bool rondo_byte_box_is_range(const rondo_byte_box *box) { return box->end - box->begin == box->width; }

#endif
