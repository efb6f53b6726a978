/* SPDX-License-Identifier: MIT
 * Curves over the steps of a training, as markup for a report's page: an SVG element, and the same as a table. Where
 * there are more steps than places, a place stands for several: the line is their median, the band holds their middle
 * half; the pointer and the table say the least and the most.
 */
#ifndef RONDO_TOOL_TRAINING_CURVE_H
#define RONDO_TOOL_TRAINING_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CURVE_SERIES 2

typedef struct curve_series {
  const char *name;    /* here and below: words that need no escape */
  const float *values; /* finite; of step `first` on */
  uint64_t first;
  size_t count;
} curve_series;

typedef struct curve {
  const char *title, *unit;
  curve_series series[CURVE_SERIES]; /* the first is the one that matters; one without values is left out */
  bool is_time;                      /* begins at 0, and what lies far above the usual is cut off */
} curve;

/* Writes both. The first series has a value. False: there is no memory. */
bool curve_write(FILE *out, const curve *drawn);

/* The least, the median and the most of a series with values. False: there is no memory. */
bool curve_summarize(const curve_series *series, double out[3]);

#endif
