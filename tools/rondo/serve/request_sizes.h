/* SPDX-License-Identifier: MIT
 * Sizes of requests, read from a file or random.
 */
#ifndef RONDO_TOOL_REQUEST_SIZES_H
#define RONDO_TOOL_REQUEST_SIZES_H

#include <stddef.h>
#include <stdint.h>

#define TRAFFIC_MAX_ROWS 1000000 /* in one request */

/* The rows of each request, in the order of arrival. */
typedef struct traffic {
  size_t *rows;
  size_t *lengths; /* positions of its rows; NULL: the model has no lengths */
  size_t count;
} traffic;

/* Reads lines with a number of rows, or with a number of rows, a comma and the number of such requests; "-" is standard
 * input. Empty lines and lines that begin with # are ignored. Returns TOOL_OK, or TOOL_FAILURE after a message that
 * names file and line. */
int traffic_read(const char *path, traffic *out);

/* The same for a text of `bytes` bytes and a NUL. Modifies the text. */
int traffic_parse(const char *path, char *text, size_t bytes, traffic *out);

/* Draws `count` sizes from a log-normal distribution with this median and spread (of the logarithm), limited to `least`
 * to `most`: most requests are small and some are large. Each takes bounded time. Returns the same as traffic_read. */
int traffic_draw(size_t count, size_t least, size_t most, double median, double spread, uint64_t seed, traffic *out);

/* Draws a length for each request likewise, from 1 to `longest`, with a median of half of that. */
int traffic_draw_lengths(traffic *inout, size_t longest, double spread, uint64_t seed);

/* The length of a request; 0 without lengths. */
size_t traffic_length(const traffic *t, size_t index);

/* Of requests without lengths. Returns the same as traffic_read. */
int traffic_copy(const traffic *t, traffic *out);

void traffic_destroy(traffic *t);

/* Rows of the smallest and of the largest request; 0 without requests. */
size_t traffic_least_rows(const traffic *t);
size_t traffic_most_rows(const traffic *t);

/* A uniform number above 0 and below 1, and an exponentially distributed one with mean 1, for arrival times. */
double traffic_draw_unit(uint64_t *state);
double traffic_draw_gap(uint64_t *state);

#endif
