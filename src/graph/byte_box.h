/* SPDX-License-Identifier: MIT
 * The bytes that a node touches: rows of one width at equal distances, as copies and fills have them, so that two
 * columns of one matrix are known not to overlap. One row is a plain range.
 */
#ifndef RONDO_GRAPH_VERIFY_BYTE_BOX_H
#define RONDO_GRAPH_VERIFY_BYTE_BOX_H

#include <stdint.h>

#include "graph/graph_internal.h"

typedef struct rondo_box {
  uintptr_t begin, end; /* from the first byte to past the last */
  size_t width;         /* of a row */
  size_t height, pitch; /* rows of a slice, and their distance; at most 1 and any */
  size_t depth, slice_pitch;
} rondo_box;

typedef enum rondo_overlap { RONDO_OVERLAP_NO = 0, RONDO_OVERLAP_YES = 1, RONDO_OVERLAP_UNKNOWN = 2 } rondo_overlap;

/* Whether the two have a byte in common. UNKNOWN for two boxes of different pitches with more rows than are worth
 * looking at. */
rondo_overlap rondo_box_overlap(const rondo_box *a, const rondo_box *b);

/* False for an address of NULL. Nothing is 0. */
bool rondo_box_make(const void *address, size_t width, size_t height, size_t pitch, size_t depth, size_t slice_pitch,
                    rondo_box *out);

/* What a copy or fill, resolved, touches, the destination first; returns how many, 0 for other kinds. An address of
 * NULL is left out. */
size_t rondo_box_of_node(const rondo_node_params *params, rondo_box out[RONDO_MOST_EXTENTS],
                         bool writes[RONDO_MOST_EXTENTS]);

static inline bool rondo_box_is_range(const rondo_box *box) { return box->end - box->begin == box->width; }

#endif
