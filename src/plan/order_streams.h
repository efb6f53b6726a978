/* SPDX-License-Identifier: MIT
 * An order cut into streams: of each stage one chain, one after another, so that a stream is a chain of the whole
 * order. A node has a position on its stream, and what may be live together with a lifetime is one range of positions
 * on each stream. Immutable once made.
 */
#ifndef RONDO_PLAN_ORDER_STREAMS_H
#define RONDO_PLAN_ORDER_STREAMS_H

#include "plan/order_lives.h"

#define RONDO_STREAMS_MOST 16

typedef struct rondo_streams {
  const rondo_lives *lives;
  uint32_t count;            /* 0: a stage has more than RONDO_STREAMS_MOST chains; then nothing else is there */
  uint32_t *slot_position;   /* on its stream; loose slots have none */
  uint32_t *chain_stream;    /* one a chain */
  uint32_t *stage_positions; /* of stream q from stage s on: entry s * count + q; one stage more, for the ends */
  uint32_t stage_count;
} rondo_streams;

/* Positions begin..end - 1 of a stream. */
typedef struct rondo_range {
  uint32_t begin, end;
} rondo_range;

/* Errors: OUT_OF_MEMORY; *out can be freed either way. */
RONDO_MUST_USE rondo_status rondo_streams_make(const rondo_allocator *allocator, const rondo_lives *lives,
                                               rondo_streams *out);
void rondo_streams_free(const rondo_allocator *allocator, rondo_streams *streams);

uint32_t rondo_streams_length(const rondo_streams *streams, uint32_t stream);

/* The positions that come neither before slot `alloc` nor behind slot `free`; neither slot is loose. */
rondo_range rondo_streams_range(const rondo_streams *streams, uint32_t stream, uint32_t alloc, uint32_t free);

#endif
