/* SPDX-License-Identifier: MIT
 * The length of the union of time spans: how long at least one stream was at work. Spans come from several streams,
 * nearly in the order of their ends.
 *
 * It keeps the latest RONDO_SPAN_UNION_CAPACITY disjoint spans, and the sum of the older ones. If a new span begins
 * before the end of the older ones, the part before that end is not counted. Pure; does not allocate; thread-
 * compatible.
 */
#ifndef RONDO_SESSION_SERVE_SPAN_UNION_H
#define RONDO_SESSION_SERVE_SPAN_UNION_H

#include <stddef.h>

enum { RONDO_SPAN_UNION_CAPACITY = 64 };

typedef struct rondo_span_union {
  double begin[RONDO_SPAN_UNION_CAPACITY + 1],
      end[RONDO_SPAN_UNION_CAPACITY + 1]; /* ascending and disjoint; room for one more while adding */
  size_t count;
  double settled_us, settled_end; /* sum and end of the older spans */
} rondo_span_union;

/* A zeroed union is empty. */
void rondo_span_union_add(rondo_span_union *spans, double begin, double end);
double rondo_span_union_us(const rondo_span_union *spans);

/* Asserts that the spans are ascending, disjoint and not empty. */
void rondo_span_union_check(const rondo_span_union *spans);

#endif
