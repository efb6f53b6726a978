/* SPDX-License-Identifier: MIT
 * Reads the JSON of rondo train. Only what the curves need is checked; a table shows whatever else there is.
 */
#define _GNU_SOURCE
#include "commands/training_result.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

#define MARK "\"loss_history\""
#define MOST_STEPS 10000000 /* of a training */

bool training_result_is(const file_bytes *file) { return memmem(file->bytes, file->count, MARK, strlen(MARK)) != NULL; }

static int fail_member(const training_result *result, const char *what) {
  return tool_fail("%s: %s: use a file that rondo train --json wrote", result->name, what);
}

/* A step from `least` on. */
static bool get_step(const json_t *object, const char *name, uint64_t least, uint64_t *out) {
  const json_t *value = json_object_get(object, name);
  if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
  *out = (uint64_t)json_integer_value(value);
  return *out >= least && *out <= MOST_STEPS;
}

static bool get_loss(const json_t *value, float *out) {
  *out = (float)json_number_value(value);
  return json_is_number(value) && isfinite(*out);
}

static int create_values(result_values *out, uint64_t first, uint64_t end) {
  *out = (result_values){.values = calloc(end - first, sizeof *out->values), .first = first, .count = end - first};
  return out->values ? TOOL_OK : tool_fail_memory("the losses of %" PRIu64 " steps", end - first);
}

/* The first step of the losses: that of the run, if an earlier release wrote the file. */
static bool get_first(const training_result *result, uint64_t run_first, uint64_t *out) {
  *out = run_first;
  if (!json_object_get(result->root, "losses_from")) return true;
  return get_step(result->root, "losses_from", 0, out) && *out <= run_first;
}

static int read_losses(training_result *result) {
  const json_t *losses = json_object_get(result->root, "losses");
  uint64_t first, end;
  if (!get_step(result->root, "steps_before", 0, &first) || !get_step(result->root, "steps_done", first + 1, &end))
    return fail_member(result, "its 'steps_before' and 'steps_done' are no steps");
  if (!get_first(result, first, &first)) return fail_member(result, "its 'losses_from' is no step before the run");
  if (!json_is_array(losses) || json_array_size(losses) != end - first)
    return fail_member(result, "its 'losses' are not one for each step");
  if (create_values(&result->losses, first, end) != TOOL_OK) return TOOL_FAILURE;
  for (size_t i = 0; i < result->losses.count; i++) {
    if (!get_loss(json_array_get(losses, i), &result->losses.values[i]))
      return fail_member(result, "its 'losses' are not all numbers");
  }
  return TOOL_OK;
}

/* Holds each loss until the next validation. */
static int hold_losses(training_result *result, const json_t *losses) {
  const uint64_t end = result->losses.first + result->losses.count;
  uint64_t step, before = result->losses.first;
  float loss = 0;
  result_values *held = &result->validation;
  size_t at = 0;
  for (size_t i = 0; i < json_array_size(losses); i++, before = step) {
    const json_t *item = json_array_get(losses, i);
    const float previous = loss;
    if (!get_step(item, "step", before + 1, &step) || step > end || !get_loss(json_object_get(item, "loss"), &loss))
      return fail_member(result, "its 'validation' has something else than losses after its steps");
    if (i == 0 && create_values(held, step - 1, end) != TOOL_OK) return TOOL_FAILURE;
    for (; at < step - 1 - held->first; at++) held->values[at] = previous;
  }
  for (; at < held->count; at++) held->values[at] = loss;
  return TOOL_OK;
}

int training_result_read(const char *path, const file_bytes *file, training_result *out) {
  json_error_t error;
  *out = (training_result){.name = file_display_name(path)};
  out->root = json_loadb((const char *)file->bytes, file->count, 0, &error);
  if (!out->root) return tool_fail("%s: line %d is no JSON: %s", out->name, error.line, error.text);
  if (!json_is_string(json_object_get(out->root, "loss_history")))
    return fail_member(out, "it is not the result of a training");
  if (read_losses(out) != TOOL_OK) return TOOL_FAILURE;
  return hold_losses(out, json_object_get(json_object_get(out->root, "validation"), "losses"));
}

void training_result_destroy(training_result *result) {
  json_decref(result->root);
  free(result->losses.values);
  free(result->validation.values);
}
