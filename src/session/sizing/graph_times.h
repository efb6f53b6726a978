/* SPDX-License-Identifier: MIT
 * What samples of times say, of graphs that differ in their rows. Whatever else a machine does only adds to a time,
 * and most to long ones: of the samples of a graph the least two count, and what is known of the graphs beside it
 * bounds it. While graphs serve, their runs are samples too: so times that were measured beside load are corrected,
 * and a machine that gets slower or faster is followed. Pure, without allocations.
 */
#ifndef RONDO_SESSION_SIZING_GRAPH_TIMES_H
#define RONDO_SESSION_SIZING_GRAPH_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The least of the samples so far, and the one behind it. Zero: no sample yet. */
typedef struct rondo_least_samples {
  double us, second_us;
  size_t samples;
} rondo_least_samples;

void rondo_least_samples_add(rondo_least_samples *least, double us);
/* Whether both agree within 5 %: more samples would hardly find a smaller one. False with fewer than two. */
bool rondo_least_samples_agree(const rondo_least_samples *least);

/* Indices of graphs by their rows, ascending. */
void rondo_times_sort(const size_t *rows, size_t count, size_t *order);
/* Of `count` graphs, at most RONDO_SESSION_MAX_SIZES, in whatever order: none takes longer than one with more rows. */
void rondo_times_make_ascending(const size_t *rows, double *us, size_t count);
/* And a row of none costs more than one of a smaller graph: batches of that would do the same. Of rows that fall out of
 * a cache in the larger one it may be untrue; that is for choosing sizes alone, where several small graphs would stand
 * in place of a large one with each sample of it that is too long by more than a launch. So there is no tolerance:
 * with one, the small ones would still be ahead by it. Which of the chosen run a request goes by what they were read to
 * take. */
void rondo_times_limit_row_cost(const size_t *rows, double *us, size_t count);

/* What a graph takes, from the time that was measured and samples of its runs. A smaller sample is believed at once.
 * A larger one may be disturbed: the time rises when all samples of a window were larger, to the least of them. */
typedef struct rondo_tracked_time {
  double measured_us, us;
  double dispatched_us; /* that decisions go by */
  double window_us;     /* the least sample of the window under way */
  uint32_t in_window;   /* its samples */
  uint32_t windows;     /* that are complete */
  uint64_t samples;
} rondo_tracked_time;

enum { RONDO_SAMPLES_IN_WINDOW = 16 };

void rondo_tracked_time_begin(rondo_tracked_time *kept, double measured_us);
void rondo_tracked_time_add(rondo_tracked_time *kept, double us);
/* Whether decisions go by a time that is more than 5 % off. */
bool rondo_tracked_time_has_changed(const rondo_tracked_time *kept);
/* Of `count` graphs, at most RONDO_SESSION_MAX_SIZES: the times to go by. What made a graph slower that ran for a
 * window has made those slower too that did not: they take so many times what was measured as the one does whose rows
 * are next to theirs, and eager runs likewise. Both rise with the rows. `inout_unrecorded` are as measured. */
void rondo_tracked_times_find(const size_t *rows, const rondo_tracked_time *kept, size_t count, double *out_us,
                              double *inout_unrecorded);

#endif
