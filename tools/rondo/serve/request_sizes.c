/* SPDX-License-Identifier: MIT
 * Sizes of requests: a parser that validates everything, and random sizes that are the same on every machine for a
 * seed.
 */
#include "serve/request_sizes.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/random_numbers.h"
#include "common/tool.h"

#define MAX_REQUESTS ((size_t)1 << 24)

/* Drawing --------------------------------------------------------------------------------------------------------- */

double traffic_draw_unit(uint64_t *state) { return ((double)(draw_next(state) >> 11) + 0.5) * 0x1p-53; }

double traffic_draw_gap(uint64_t *state) { return -log(traffic_draw_unit(state)); }

/* Box and Muller 1958. */
static double draw_normal(uint64_t *state) {
  const double radius = sqrt(2 * traffic_draw_gap(state));
  return radius * cos(6.283185307179586 * traffic_draw_unit(state));
}

static double normal_below(double x) { return erfc(-x / sqrt(2)) / 2; }

/* A quantile of the same distribution, computed without random numbers: the smallest size that is at least as large as
 * this share of the requests from `least` to `most`. */
static size_t find_quantile(size_t least, size_t most, double median, double spread, double part) {
  const double low = normal_below(log(((double)least - 0.5) / median) / spread);
  const double high = normal_below(log(((double)most + 0.5) / median) / spread);
  while (least < most) {
    const size_t middle = least + (most - least) / 2;
    if (normal_below(log(((double)middle + 0.5) / median) / spread) < low + part * (high - low))
      least = middle + 1;
    else
      most = middle;
  }
  return least;
}

/* Draws again if a size is outside the limits, but only a limited number of times: few sizes of a wide distribution may
 * be inside. */
static size_t draw_size(size_t least, size_t most, double median, double spread, uint64_t *state) {
  enum { MOST_DRAWS = 100 };
  for (int i = 0; i < MOST_DRAWS; i++) {
    const double rows = floor(median * exp(spread * draw_normal(state)) + 0.5);
    if (rows >= (double)least && rows <= (double)most) return (size_t)rows;
  }
  return find_quantile(least, most, median, spread, traffic_draw_unit(state));
}

int traffic_draw(size_t count, size_t least, size_t most, double median, double spread, uint64_t seed, traffic *out) {
  *out = (traffic){.rows = malloc((count == 0 ? 1 : count) * sizeof *out->rows)};
  if (out->rows == NULL) return tool_fail_memory("%zu requests", count);
  while (out->count < count) out->rows[out->count++] = draw_size(least, most, median, spread, &seed);
  return TOOL_OK;
}

int traffic_draw_lengths(traffic *inout, size_t longest, double spread, uint64_t seed) {
  traffic lengths;
  const double median = longest > 1 ? (double)longest / 2 : 1;
  const int result = traffic_draw(inout->count, 1, longest, median, spread, seed, &lengths);
  inout->lengths = lengths.rows;
  return result;
}

size_t traffic_length(const traffic *t, size_t index) { return t->lengths ? t->lengths[index] : 0; }

int traffic_copy(const traffic *t, traffic *out) {
  *out = (traffic){.rows = malloc((t->count == 0 ? 1 : t->count) * sizeof *out->rows), .count = t->count};
  if (out->rows == NULL) return tool_fail_memory("%zu requests", t->count);
  memcpy(out->rows, t->rows, t->count * sizeof *out->rows);
  return TOOL_OK;
}

void traffic_destroy(traffic *t) {
  free(t->rows);
  free(t->lengths);
  *t = (traffic){0};
}

size_t traffic_least_rows(const traffic *t) {
  size_t least = t->count > 0 ? t->rows[0] : 0;
  for (size_t i = 1; i < t->count; i++)
    if (t->rows[i] < least) least = t->rows[i];
  return least;
}

size_t traffic_most_rows(const traffic *t) {
  size_t most = 0;
  for (size_t i = 0; i < t->count; i++)
    if (t->rows[i] > most) most = t->rows[i];
  return most;
}

/* Reading --------------------------------------------------------------------------------------------------------- */

static int add(const char *path, size_t line, size_t rows, size_t requests, traffic *out) {
  if (requests > MAX_REQUESTS - out->count)
    return tool_fail("%s, line %zu: more than %zu requests: split the file", file_display_name(path), line,
                     MAX_REQUESTS);
  if (requests == 0) return TOOL_OK;
  size_t *grown = realloc(out->rows, (out->count + requests) * sizeof *grown);
  if (grown == NULL) return tool_fail_memory("%zu requests of %s", out->count + requests, file_display_name(path));
  out->rows = grown;
  for (size_t i = 0; i < requests; i++) out->rows[out->count++] = rows;
  return TOOL_OK;
}

/* Reads a whole number from `least` to `most` with blanks around it; NULL if there is none. */
static const char *read_number(const char *at, size_t least, size_t most, size_t *out) {
  char *end;
  while (isblank((unsigned char)*at)) at++;
  if (!isdigit((unsigned char)*at)) return NULL;
  errno = 0;
  const unsigned long long number = strtoull(at, &end, 10);
  if (errno != 0 || number < least || number > most) return NULL;
  *out = (size_t)number;
  while (isblank((unsigned char)*end)) end++;
  return end;
}

static int read_line(const char *path, size_t line, const char *at, traffic *out) {
  size_t rows, requests = 1;
  while (isblank((unsigned char)*at)) at++;
  if (*at == '\0' || *at == '#') return TOOL_OK;
  const char *end = read_number(at, 1, TRAFFIC_MAX_ROWS, &rows);
  if (end != NULL && *end == ',') end = read_number(end + 1, 0, MAX_REQUESTS, &requests);
  if (end == NULL || *end != '\0')
    return tool_fail(
        "%s, line %zu: '%.40s' is not ROWS or ROWS,REQUESTS with ROWS from 1 to %d; "
        "comments begin with #",
        file_display_name(path), line, at, TRAFFIC_MAX_ROWS);
  return add(path, line, rows, requests, out);
}

static int read_lines(const char *path, char *text, traffic *out) {
  int result = TOOL_OK;
  size_t line = 0;
  for (char *at = text; at != NULL && result == TOOL_OK;) {
    char *end = strchr(at, '\n');
    char *next = end == NULL ? NULL : end + 1;
    if (end != NULL) *end = '\0';
    const size_t length = strlen(at);
    if (length > 0 && at[length - 1] == '\r') at[length - 1] = '\0';
    result = read_line(path, ++line, at, out);
    at = next;
  }
  if (result == TOOL_OK && out->count == 0)
    return tool_fail("%s: the file contains no requests", file_display_name(path));
  return result;
}

int traffic_parse(const char *path, char *text, size_t bytes, traffic *out) {
  *out = (traffic){0};
  const int result = strlen(text) == bytes
                         ? read_lines(path, text, out)
                         : tool_fail("%s: a NUL byte: this is not a text file", file_display_name(path));
  if (result != TOOL_OK) traffic_destroy(out);
  return result;
}

int traffic_read(const char *path, traffic *out) {
  file_bytes file;
  *out = (traffic){0};
  if (file_read(path, &file) != TOOL_OK) return TOOL_FAILURE;
  const int result = traffic_parse(path, (char *)file.bytes, file.count, out);
  file_release(&file);
  return result;
}
