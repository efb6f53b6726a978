/* SPDX-License-Identifier: MIT
 * Draws curves. The first colours are CSS variables of the page, so that they follow its light or dark theme; the
 * others are visible on both. Series also differ in their dashes, for readers who cannot distinguish the colours.
 */
#define _POSIX_C_SOURCE 200809L
#include "train/training_curve.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In pixels. */
enum { WIDTH = 1160, HEIGHT = 340, LEFT = 84, RIGHT = 20, TOP = 34, BOTTOM = 44 };
enum { MAX_BINS = 480, MOST_ROWS = 40, TICKS = 6 };

/* A bin of consecutive steps, counted from 1: a point of the curve or a row of the table. */
typedef struct bin {
  uint64_t first, last;
  double least, lower, median, upper, most; /* lower and upper: quartiles */
} bin;

typedef struct bins {
  bin items[MAX_BINS];
  size_t count;
} bins;

/* The chart: its scales and its data. */
typedef struct drawing {
  FILE *out;
  const curve *drawn;
  uint64_t begin, end;   /* steps */
  double low, high, gap; /* values at the bottom and the top, and between ticks */
  bins of[CURVE_SERIES];
} drawing;

/* Bins ------------------------------------------------------------------------------------------------------------ */

static int compare(const void *left, const void *right) {
  const float a = *(const float *)left, b = *(const float *)right;
  return (a > b) - (a < b);
}

/* Sorts `sorted`, which must be a copy. */
static bin summarize(float *sorted, size_t count) {
  qsort(sorted, count, sizeof *sorted, compare);
  const double low = (double)sorted[(count - 1) / 2], high = (double)sorted[count / 2];
  return (bin){.least = (double)sorted[0],
               .lower = (double)sorted[count / 4],
               .median = (low + high) / 2,
               .upper = (double)sorted[count - 1 - count / 4],
               .most = (double)sorted[count - 1]};
}

/* Divides a series into at most `most` bins; all except the last have the same number of steps. */
static bool make_bins(const curve_series *series, size_t most, bins *out) {
  out->count = 0;
  if (series->count == 0) return true;
  float *copy = malloc(series->count * sizeof *copy);
  if (!copy) return false;
  memcpy(copy, series->values, series->count * sizeof *copy);
  const size_t each = (series->count + most - 1) / most;
  for (size_t at = 0; at < series->count; at += each) {
    const size_t count = series->count - at < each ? series->count - at : each;
    bin *made = &out->items[out->count++];
    *made = summarize(copy + at, count);
    made->first = series->first + at + 1;
    made->last = series->first + at + count;
  }
  free(copy);
  return true;
}

bool curve_summarize(const curve_series *series, double out[3]) {
  bins all;
  if (!make_bins(series, 1, &all)) return false;
  const bin *whole = &all.items[0];
  out[0] = whole->least, out[1] = whole->median, out[2] = whole->most;
  return true;
}

/* Scales ---------------------------------------------------------------------------------------------------------- */

/* 1, 2 or 5 times a power of ten, so that about TICKS of them make up the range. */
static double find_gap(double range) {
  const double rough = range / TICKS, power = pow(10, floor(log10(rough)));
  const double times = rough / power;
  return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

/* 1.25 times the 90th percentile of the bins' medians. */
static double find_usual_most(const bins *all) {
  float medians[MAX_BINS];
  for (size_t k = 0; k < all->count; k++) medians[k] = (float)all->items[k].median;
  qsort(medians, all->count, sizeof *medians, compare);
  return 1.25 * (double)medians[(all->count * 9 - 1) / 10];
}

static void find_values(drawing *d) {
  double low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < CURVE_SERIES; i++) {
    const bins *all = &d->of[i];
    if (all->count == 0) continue;
    for (size_t k = 0; k < all->count; k++) low = fmin(low, all->items[k].lower);
    for (size_t k = 0; k < all->count && !d->drawn->is_time; k++) high = fmax(high, all->items[k].upper);
    if (d->drawn->is_time) high = fmax(high, find_usual_most(all));
  }
  if (d->drawn->is_time) low = 0;
  if (!(high > low)) high = low + fmax(1e-6, fabs(low) / 10);
  d->gap = find_gap(high - low);
  d->low = floor(low / d->gap) * d->gap;
  d->high = ceil(high / d->gap) * d->gap;
}

static void find_steps(drawing *d) {
  d->begin = UINT64_MAX;
  for (size_t i = 0; i < CURVE_SERIES; i++) {
    const curve_series *series = &d->drawn->series[i];
    if (series->count == 0) continue;
    if (series->first < d->begin) d->begin = series->first;
    if (series->first + series->count > d->end) d->end = series->first + series->count;
  }
}

/* Steps are counted from 1. The point of a step is in the middle of its share of the width. */
static double x_of(const drawing *d, double step) {
  const double share = (step - 0.5 - (double)d->begin) / (double)(d->end - d->begin);
  return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double x_of_bin(const drawing *d, const bin *at) { return x_of(d, ((double)at->first + (double)at->last) / 2); }

static double y_of(const drawing *d, double value) {
  const double share = (fmin(value, d->high) - d->low) / (d->high - d->low);
  return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

/* Chart ----------------------------------------------------------------------------------------------------------- */

static const char *const colours[CURVE_SERIES] = {"var(--accent)", "var(--warn)", "#2e8b57", "#b5485d",
                                                  "#8f6fc0",       "#2a9aa5",     "#a0783c", "#888"};
static const char *const dashes[CURVE_SERIES] = {"none", "7 4", "2 3", "12 4", "7 3 2 3", "none", "4 4", "10 3 3 3"};

static void draw_value_ticks(const drawing *d) {
  const int count = (int)lround((d->high - d->low) / d->gap);
  for (int i = 0; i <= count; i++) {
    const double value = d->low + i * d->gap, y = y_of(d, value);
    fprintf(d->out, "<path d=\"M%d %.1fH%d\" style=\"stroke:var(--rule)\"/>", LEFT, y, WIDTH - RIGHT);
    fprintf(d->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n", LEFT - 8, y + 4,
            fabs(value) < d->gap / 2 ? 0 : value);
  }
}

static void draw_step_ticks(const drawing *d) {
  const uint64_t gap = (uint64_t)fmax(1, find_gap((double)(d->end - d->begin)));
  const int y = HEIGHT - BOTTOM;
  for (uint64_t step = (d->begin / gap + 1) * gap; step <= d->end; step += gap) {
    const double x = x_of(d, (double)step);
    fprintf(d->out, "<path d=\"M%.1f %dv5\" style=\"stroke:var(--line)\"/>", x, y);
    fprintf(d->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%" PRIu64 "</text>\n", x, y + 19, step);
  }
  fprintf(d->out, "<path d=\"M%d %dH%d\" style=\"stroke:var(--line)\"/>", LEFT, y, WIDTH - RIGHT);
  fprintf(d->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">step</text>\n", WIDTH - RIGHT, HEIGHT - 6);
}

static void draw_keys(const drawing *d) {
  int x = LEFT;
  fprintf(d->out, "<text x=\"8\" y=\"20\">%s</text>\n", d->drawn->unit);
  for (size_t i = 0; i < CURVE_SERIES; i++) {
    const curve_series *series = &d->drawn->series[i];
    if (series->count == 0) continue;
    x += i == 0 ? 60 : 125;
    fprintf(d->out, "<path d=\"M%d 16h28\" style=\"fill:none;stroke:%s;stroke-width:2;stroke-dasharray:%s\"/>", x,
            colours[i], dashes[i]);
    fprintf(d->out, "<text x=\"%d\" y=\"20\">%s</text>\n", x + 36, series->name);
  }
}

static void draw_band(const drawing *d, size_t series) {
  const bins *all = &d->of[series];
  const bin *last = &all->items[all->count - 1];
  if (last->last - all->items[0].first + 1 == all->count) return; /* each bin is one step */
  fprintf(d->out, "<path style=\"fill:%s;opacity:.18\" d=\"M", colours[series]);
  for (size_t k = 0; k < all->count; k++)
    fprintf(d->out, "%.1f %.1f ", x_of_bin(d, &all->items[k]), y_of(d, all->items[k].upper));
  for (size_t k = all->count; k > 0; k--)
    fprintf(d->out, "%.1f %.1f ", x_of_bin(d, &all->items[k - 1]), y_of(d, all->items[k - 1].lower));
  fputs("Z\"/>\n", d->out);
}

/* A line of zero length is drawn as a dot, because its ends are round. */
static void draw_line(const drawing *d, size_t series) {
  const bins *all = &d->of[series];
  fprintf(d->out,
          "<path style=\"fill:none;stroke:%s;stroke-width:%s;stroke-linecap:round;stroke-linejoin:round;"
          "stroke-dasharray:%s\" d=\"M",
          colours[series], all->count == 1 ? "6" : "1.6", dashes[series]);
  for (size_t k = 0; k < all->count; k++)
    fprintf(d->out, "%.1f %.1f ", x_of_bin(d, &all->items[k]), y_of(d, all->items[k].median));
  fputs("h0\"/>\n", d->out);
}

static void write_steps(FILE *out, const bin *at) {
  fprintf(out, at->first == at->last ? "%" PRIu64 : "%" PRIu64 " to %" PRIu64, at->first, at->last);
}

/* Tooltips of the first series. */
static void draw_titles(const drawing *d) {
  const bins *all = &d->of[0];
  fputs("<g style=\"fill:transparent\">\n", d->out);
  for (size_t k = 0; k < all->count; k++) {
    const bin *at = &all->items[k];
    const double x = x_of(d, (double)at->first - 0.5);
    fprintf(d->out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>step ", x, TOP,
            x_of(d, (double)at->last + 0.5) - x, HEIGHT - TOP - BOTTOM);
    write_steps(d->out, at);
    fprintf(d->out, ": %.6g", at->median);
    if (at->first < at->last) fprintf(d->out, " (%.6g to %.6g)", at->least, at->most);
    fputs("</title></rect>\n", d->out);
  }
  fputs("</g>\n", d->out);
}

static void draw(const drawing *d) {
  fprintf(d->out,
          "<div class=\"scroll view\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n"
          "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
          "aria-label=\"%s, %s over steps\" style=\"font-size:12px;fill:var(--faint)\">\n",
          d->drawn->title, WIDTH, HEIGHT, WIDTH, HEIGHT, d->drawn->title, d->drawn->unit);
  draw_value_ticks(d);
  draw_step_ticks(d);
  draw_keys(d);
  for (size_t i = CURVE_SERIES; i > 0; i--) {
    if (d->of[i - 1].count == 0) continue;
    draw_band(d, i - 1);
    draw_line(d, i - 1);
  }
  draw_titles(d);
  fputs("</svg></div>\n", d->out);
}

/* Table ----------------------------------------------------------------------------------------------------------- */

static void write_row(FILE *out, const char *name, const bin *at) {
  fprintf(out, "<tr><td>%s</td><td class=\"number\">", name);
  write_steps(out, at);
  fprintf(out, "</td><td class=\"number\">%.6g</td><td class=\"number\">%.6g</td><td class=\"number\">%.6g</td></tr>\n",
          at->median, at->least, at->most);
}

static bool write_table(FILE *out, const curve *drawn) {
  fprintf(out,
          "<details><summary>%s as a table</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
          "aria-label=\"%s as a table\"><table><thead><tr><th>Run</th><th class=\"number\">Steps</th>"
          "<th class=\"number\">Median</th><th class=\"number\">Least</th><th class=\"number\">Most</th></tr></thead>"
          "<tbody>\n",
          drawn->title, drawn->title);
  for (size_t i = 0; i < CURVE_SERIES; i++) {
    bins rows;
    if (!make_bins(&drawn->series[i], MOST_ROWS, &rows)) return false;
    for (size_t k = 0; k < rows.count; k++) write_row(out, drawn->series[i].name, &rows.items[k]);
  }
  fputs("</tbody></table></div></details>\n", out);
  return true;
}

bool curve_write(FILE *out, const curve *drawn) {
  drawing d = {.out = out, .drawn = drawn};
  for (size_t i = 0; i < CURVE_SERIES; i++) {
    if (!make_bins(&drawn->series[i], MAX_BINS, &d.of[i])) return false;
  }
  find_values(&d);
  find_steps(&d);
  draw(&d);
  return write_table(out, drawn);
}
