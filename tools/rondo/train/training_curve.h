/* SPDX-License-Identifier: MIT
 * Curves over the steps of a training, as HTML for a report: an SVG element, and the same data as a table. If there are
 * more steps than bins, a bin stands for several steps: the line is their median, and the band contains their middle
 * half. Tooltips and the table show the minimum and the maximum.
 */
#ifndef RONDO_TOOL_TRAINING_CURVE_H
#define RONDO_TOOL_TRAINING_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CURVE_SERIES 8

typedef struct curve_series {
  const char *name;    /* this and other texts must not need an escape */
  const float *values; /* finite; from step `first` on */
  uint64_t first;
  size_t count;
} curve_series;

typedef struct curve {
  const char *title, *unit;
  curve_series series[CURVE_SERIES]; /* the first is the main one, with tooltips; one without values is omitted */
  bool is_time;                      /* the scale begins at 0, and values far above the usual ones are cut off */
} curve;

/* Writes the chart and the table. At least one series must have a value. Returns false if out of memory. */
bool curve_write(FILE *out, const curve *drawn);

/* The minimum, the median and the maximum of a series with values. Returns false if out of memory. */
bool curve_summarize(const curve_series *series, double out[3]);

#endif
