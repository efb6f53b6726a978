/* SPDX-License-Identifier: MIT
 * Estimates of graph times. Other work on the machine only lengthens a measurement, so the lowest samples count. Times
 * of graphs with different rows limit each other. Runs of requests are samples too: they correct times that were
 * measured under load, and follow a machine that becomes slower or faster. Pure; does not allocate.
 */
#ifndef RONDO_SESSION_SIZING_GRAPH_TIMES_H
#define RONDO_SESSION_SIZING_GRAPH_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The two lowest samples so far. A zeroed one has no samples. */
typedef struct rondo_least_samples {
  double us, second_us;
  size_t samples;
} rondo_least_samples;

void rondo_least_samples_add(rondo_least_samples *least, double us);
/* Whether the two differ by at most 5 %, so that more samples would hardly be lower. False with fewer than two samples.
 */
bool rondo_least_samples_agree(const rondo_least_samples *least);

/* Sorts the indices of graphs by rows, ascending. */
void rondo_times_sort(const size_t *rows, size_t count, size_t *order);
/* Lowers times so that no graph takes longer than one with more rows. `count` is at most RONDO_SESSION_MAX_SIZES. */
void rondo_times_make_ascending(const size_t *rows, double *us, size_t count);
/* Lowers times so that no row costs more than in a smaller graph, because several launches of the smaller graph would
 * do the same work. That is wrong if the rows of the larger graph do not fit a cache, so it is used only to choose
 * sizes. There, a sample that is too long by more than one launch would replace a large graph by several small ones.
 * With a tolerance, the small graphs would still win by it, so there is none. */
void rondo_times_limit_row_cost(const size_t *rows, double *us, size_t count);

/* The time of a graph, from its measurement and samples of its runs. A lower sample replaces the time at once. A higher
 * sample may be disturbed, so the time rises only after a full window of higher samples, to the lowest of them. */
typedef struct rondo_tracked_time {
  double measured_us, us;
  double dispatched_us; /* the time that the dispatch tables use */
  double window_us;     /* the lowest sample of the current window */
  uint32_t in_window;   /* samples in it */
  uint32_t windows;     /* full windows so far */
  uint64_t samples;
} rondo_tracked_time;

enum { RONDO_SAMPLES_IN_WINDOW = 16 };

void rondo_tracked_time_begin(rondo_tracked_time *tracked, double measured_us);
void rondo_tracked_time_add(rondo_tracked_time *tracked, double us);
/* Whether the time that the dispatch tables use is wrong by more than 5 %. */
bool rondo_tracked_time_has_changed(const rondo_tracked_time *tracked);
/* Estimates the times of `count` graphs, at most RONDO_SESSION_MAX_SIZES, for dispatching. A graph without a full
 * window, and all eager runs, get the slowdown of the graph with the nearest number of rows that has a full window. All
 * times rise with the rows. `inout_eager` has the measured times of eager runs. */
void rondo_tracked_times_find(const size_t *rows, const rondo_tracked_time *tracked, size_t count, double *out_us,
                              double *inout_eager);

#endif
