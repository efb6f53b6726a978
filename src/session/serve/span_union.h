/* SPDX-License-Identifier: MIT
 * The time in which something is under way, of spans that come nearly in order of their ends, from several streams: the
 * length of their union. Pure, bounded, without allocations.
 *
 * Spans that are apart are kept, the latest RONDO_SPAN_UNION_CAPACITY of them. Of one that begins before the end of
 * those that are kept no more, which lasted longer than so many others apart, the part before is left out.
 */
#ifndef RONDO_SESSION_SERVE_SPAN_UNION_H
#define RONDO_SESSION_SERVE_SPAN_UNION_H

#include <stddef.h>

enum { RONDO_SPAN_UNION_CAPACITY = 64 };

typedef struct rondo_span_union {
  double begin[RONDO_SPAN_UNION_CAPACITY + 1],
      end[RONDO_SPAN_UNION_CAPACITY + 1]; /* ascending, apart; one more while adding */
  size_t count;
  double settled_us, settled_end; /* of spans that are kept no more */
} rondo_span_union;

/* Zero is a set without spans. */
void rondo_span_union_add(rondo_span_union *utilised, double begin, double end);
double rondo_span_union_us(const rondo_span_union *utilised);

#endif
