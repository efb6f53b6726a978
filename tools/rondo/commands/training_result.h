/* SPDX-License-Identifier: MIT
 * Results of trainings, as rondo train --json prints them, and a page that compares several.
 */
#ifndef RONDO_TOOL_TRAINING_RESULT_H
#define RONDO_TOOL_TRAINING_RESULT_H

#include <jansson.h>
#include <stdint.h>

#include "common/file.h"
#include "common/options.h"

/* Values of consecutive steps, from step `first` on. */
typedef struct result_values {
  float *values;
  uint64_t first;
  size_t count;
} result_values;

typedef struct training_result {
  const char *name; /* of the file */
  json_t *root;
  result_values losses, validation; /* of each step: that of the last validation; may have none */
} training_result;

/* Whether a file is such a result, and no dump of a graph. */
bool training_result_is(const file_bytes *file);
/* Reads a result and checks it. The caller destroys it, also after a failure. Returns TOOL_OK, or TOOL_FAILURE after a
 * message. */
int training_result_read(const char *path, const file_bytes *file, training_result *out);
void training_result_destroy(training_result *result);

/* Returns the page, which the caller frees; NULL if out of memory. `title` may be NULL. */
char *training_results_compare(const training_result *results, size_t count, const char *title);

#endif
