/* SPDX-License-Identifier: MIT
 * Sizes of requests: read from a file, or drawn.
 */
#ifndef RONDO_TOOL_REQUEST_SIZES_H
#define RONDO_TOOL_REQUEST_SIZES_H

#include <stddef.h>
#include <stdint.h>

#define TRAFFIC_MAX_ROWS 1000000 /* of a request */

/* Rows of requests, in the order in which they came. */
typedef struct traffic {
  size_t *rows;
  size_t count;
} traffic;

/* Reads lines of a number of rows, or of such a number, a comma and how many requests had it; "-" is standard input.
 * Empty lines and those that begin with # are passed over. Returns TOOL_OK, or TOOL_FAILURE after a message, with file
 * and line. */
int traffic_read(const char *path, traffic *out);

/* Likewise, of a text of so many bytes before its NUL, which is changed. */
int traffic_parse(const char *path, char *text, size_t bytes, traffic *out);

/* Draws `count` sizes from a log-normal distribution of the given median and spread (of the logarithm), limited to
 * those from `least` to `most`: most requests are small and some are large. Takes a bounded time for each. Returns as
 * traffic_read. */
int traffic_draw(size_t count, size_t least, size_t most, double median, double spread, uint64_t seed, traffic *out);

/* Likewise. */
int traffic_copy(const traffic *t, traffic *out);

void traffic_destroy(traffic *t);

/* Rows of the smallest and the largest request; 0 when there is none. */
size_t traffic_least_rows(const traffic *t);
size_t traffic_most_rows(const traffic *t);

/* A number above 0 and below 1, and one that is exponentially distributed with mean 1, for arrivals. */
double traffic_draw_unit(uint64_t *state);
double traffic_draw_gap(uint64_t *state);

#endif
