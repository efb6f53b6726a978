/* SPDX-License-Identifier: MIT
 * The length of the union of time spans: how long at least one stream was busy. Spans come from several streams, nearly
 * in the order of their ends.
 *
 * A union stores the latest RONDO_SPAN_UNION_CAPACITY disjoint spans, and the sum of the older ones. The part of a new
 * span before the end of the older ones is not counted. Pure; does not allocate; thread-compatible.
 */
#ifndef RONDO_SESSION_SERVE_SPAN_UNION_H
#define RONDO_SESSION_SERVE_SPAN_UNION_H

#include <stddef.h>

enum { RONDO_SPAN_UNION_CAPACITY = 64 };

typedef struct rondo_span_union {
  /* Ascending and disjoint. One more element is used while adding. */
  double begin[RONDO_SPAN_UNION_CAPACITY + 1], end[RONDO_SPAN_UNION_CAPACITY + 1];
  size_t count;
  double settled_us, settled_end; /* sum and end of the older spans */
} rondo_span_union;

/* A zeroed union is empty. */
void rondo_span_union_add(rondo_span_union *spans, double begin, double end);
double rondo_span_union_us(const rondo_span_union *spans);

/* Asserts that the spans are ascending, disjoint and not empty. */
void rondo_span_union_check(const rondo_span_union *spans);

#endif
