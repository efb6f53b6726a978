/* SPDX-License-Identifier: MIT
 * What readings of times say, of graphs that differ in their rows. Whatever else a machine does only adds to a time,
 * and most to long ones: of the readings of a graph the least two count, and what is known of the graphs beside it
 * bounds it. Pure, without allocations.
 */
#ifndef RONDO_SESSION_TIMES_H
#define RONDO_SESSION_TIMES_H

#include <stdbool.h>
#include <stddef.h>

/* The least of the readings so far, and the one behind it. Zero: no reading yet. */
typedef struct rondo_least {
  double us, second_us;
  size_t readings;
} rondo_least;

void rondo_least_add(rondo_least *least, double us);
/* Whether both agree within 5 %: more readings would hardly find a smaller one. False with fewer than two. */
bool rondo_least_is_settled(const rondo_least *least);

/* Indices of graphs by their rows, ascending. */
void rondo_times_sort(const size_t *rows, size_t count, size_t *order);
/* Of `count` graphs, at most RONDO_SESSION_MAX_SIZES, in whatever order: none takes longer than one with more rows. */
void rondo_times_make_rise(const size_t *rows, double *us, size_t count);
/* And a row of none costs more than one of a smaller graph: batches of that would do the same. Of rows that fall out of
 * a cache in the larger one it may be untrue; that is for choosing sizes alone, where several small graphs would stand
 * in place of a large one with each reading of it that is too long by more than a launch. So there is no tolerance:
 * with one, the small ones would still be ahead by it. Which of the chosen run a request goes by what they were read to
 * take. */
void rondo_times_bound(const size_t *rows, double *us, size_t count);

#endif
