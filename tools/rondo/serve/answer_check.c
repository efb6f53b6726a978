/* SPDX-License-Identifier: MIT
 * Comparing the answers of a session. All requests have the same inputs, of which each uses the first bytes, so there
 * is one right answer for each number of rows and each length.
 */
#include "serve/answer_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

/* As of rondo run. */
#define RELATIVE 1e-3
#define ABSOLUTE 1e-5

static int ascending(const void *a, const void *b) {
  const answer_size *x = a, *y = b;
  if (x->length != y->length) return x->length > y->length ? 1 : -1;
  return (x->rows > y->rows) - (x->rows < y->rows);
}

/* "3 row(s)", "3 row(s) of length 7". */
#define SIZE_TEXT 64
static const char *size_text(char out[SIZE_TEXT], const answer_size *size) {
  if (size->length > 0)
    snprintf(out, SIZE_TEXT, "%zu row(s) of length %zu", size->rows, size->length);
  else
    snprintf(out, SIZE_TEXT, "%zu row(s)", size->rows);
  return out;
}

/* Expected answers ------------------------------------------------------------------------------------------------- */

static int list_sizes(answer_check *check, const traffic *requests) {
  check->sizes = malloc(requests->count * sizeof *check->sizes);
  if (!check->sizes) return tool_fail_memory("%zu requests", requests->count);
  for (size_t i = 0; i < requests->count; i++)
    check->sizes[i] = (answer_size){requests->rows[i], traffic_length(requests, i)};
  qsort(check->sizes, requests->count, sizeof *check->sizes, ascending);
  for (size_t i = 0; i < requests->count; i++)
    if (i == 0 || ascending(&check->sizes[check->count - 1], &check->sizes[i]) != 0)
      check->sizes[check->count++] = check->sizes[i];
  check->memory = calloc(check->count, sizeof *check->memory);
  check->expected = calloc(check->count, sizeof *check->expected);
  return check->memory && check->expected ? TOOL_OK : tool_fail_memory("%zu answers", check->count);
}

static int run(const answer_check *check, rondo_session *session, const char *model, rondo_run_mode mode,
               const answer_size *size, void *const *outputs) {
  char text[SIZE_TEXT];
  const rondo_request request = {
      RONDO_REQUEST_INIT, .mode = mode, .rows = size->rows, .length = size->length, .inputs = check->model->inputs,
      .outputs = outputs};
  if (rondo_session_run(session, model, &request, NULL) == RONDO_OK) return TOOL_OK;
  return tool_fail_status("%s", size_text(text, size));
}

static host_tensor view_of(const rondo_model_value *value, const answer_size *size, void *data) {
  const size_t bytes = served_model_bytes(value, size->rows, size->length);
  return (host_tensor){
      .type = value->type, .count = bytes / rondo_type_bytes(value->type), .bytes = bytes, .data = data};
}

static double largest_of(const host_tensor *tensor) {
  double largest = 0;
  for (size_t i = 0; i < tensor->count; i++) largest = fmax(largest, fabs(host_tensor_at(tensor, i)));
  return largest;
}

/* Whether the outputs are those of the same rows in a larger request. Rounding may differ, also that to integers of
 * eight bits; elements that are integers may then be others. */
static int compare_rows(const answer_check *check, const answer_size *size, void *const *few, size_t most,
                        void *const *more) {
  static const double far = 0.1; /* of the largest element */
  char text[SIZE_TEXT];
  for (size_t i = 0; i < check->model->counts[SERVED_OUTPUTS]; i++) {
    const rondo_model_value *value = &check->model->values[SERVED_OUTPUTS][i];
    const host_tensor is = view_of(value, size, few[i]), should = view_of(value, size, more[i]);
    if (value->type != RONDO_F32 || memcmp(is.data, should.data, is.bytes) == 0) continue;
    if (host_tensor_compare(&is, &should, 0, far * largest_of(&should)).wrong > 0)
      return tool_fail(
          "model '%s' mixes the rows of a batch, so it cannot be served: output '%s' of a request of %s is not that of "
          "the first rows of %zu",
          check->model->name, value->name, size_text(text, size), most);
  }
  return TOOL_OK;
}

/* The padding of a graph, and the other requests of a batch, are rows, too. Only requests of one length have the same
 * rows. */
static int check_rows(const answer_check *check) {
  int result = TOOL_OK;
  size_t last = check->count - 1;
  for (size_t i = check->count; i-- > 0 && result == TOOL_OK;) {
    if (check->sizes[i].length != check->sizes[last].length) last = i;
    result = compare_rows(check, &check->sizes[i], check->expected[i], check->sizes[last].rows, check->expected[last]);
  }
  return result;
}

static int run_eagerly(answer_check *check, rondo_session *session, const char *model) {
  int result = TOOL_OK;
  for (size_t i = 0; i < check->count && result == TOOL_OK; i++) {
    tool_show_progress("running size %zu of %zu eagerly", i + 1, check->count);
    check->memory[i] = served_model_make_outputs(check->model, check->sizes[i].rows, check->expected[i]);
    result = check->memory[i] ? run(check, session, model, RONDO_RUN_EAGER, &check->sizes[i], check->expected[i])
                              : tool_fail_memory("the outputs of %zu rows", check->sizes[i].rows);
  }
  return result;
}

/* Eager runs of a padded model are padded, too. */
static int run_unpadded(answer_check *check, rondo_session *session) {
  static const char name[] = "unpadded";
  const served_model *model = check->model;
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT,   .build_sized = model->build_sized,
                                       .user = model->user,        .weights = model->weights,
                                       .lengths = &model->longest, .length_count = 1,
                                       .exact_lengths = true};
  if (rondo_session_add_model(session, name, &options))
    return tool_fail_status("model '%s' without padding", model->name);
  const int result = run_eagerly(check, session, name);
  if (rondo_session_remove_model(session, name) && result == TOOL_OK) return tool_fail_status("model '%s'", name);
  return result;
}

int answer_check_create(const served_model *model, rondo_session *session, const traffic *requests, answer_check *out) {
  *out = (answer_check){.model = model};
  const bool is_padded = model->build_sized && !model->exact_lengths;
  int result = list_sizes(out, requests);
  if (result == TOOL_OK) result = is_padded ? run_unpadded(out, session) : run_eagerly(out, session, model->name);
  return result == TOOL_OK ? check_rows(out) : result;
}

void answer_check_destroy(answer_check *check) {
  for (size_t i = 0; check->memory && i < check->count; i++) free(check->memory[i]);
  free(check->memory);
  free(check->expected);
  free(check->sizes);
  *check = (answer_check){0};
}

/* Comparing -------------------------------------------------------------------------------------------------------- */

static void note_wrong(const rondo_model_value *value, const answer_size *size, const host_tensor *actual,
                       const host_tensor *expected, const tensor_difference *found, answer_tally *inout) {
  const size_t at = found->first_wrong;
  char text[SIZE_TEXT];
  if (inout->wrong++ > 0) return;
  snprintf(inout->message, sizeof inout->message,
           "of a request of %s, %zu of %zu elements of output '%.100s' differ from an eager run%s; element %zu is "
           "%.9g, not %.9g",
           size_text(text, size), found->wrong, actual->count, value->name,
           size->length > 0 ? " without padding of the length" : "", at, host_tensor_at(actual, at),
           host_tensor_at(expected, at));
}

void answer_check_compare(const answer_check *check, size_t rows, size_t length, void *const *outputs,
                          answer_tally *inout) {
  const answer_size key = {rows, length};
  const answer_size *size = bsearch(&key, check->sizes, check->count, sizeof key, ascending);
  void *const *expected = check->expected[size - check->sizes];
  bool is_identical = true;
  for (size_t i = 0; i < check->model->counts[SERVED_OUTPUTS]; i++) {
    const rondo_model_value *value = &check->model->values[SERVED_OUTPUTS][i];
    const host_tensor is = view_of(value, size, outputs[i]), should = view_of(value, size, expected[i]);
    if (memcmp(is.data, should.data, is.bytes) == 0) continue;
    const tensor_difference found = host_tensor_compare(&is, &should, RELATIVE, ABSOLUTE);
    if (found.wrong > 0) note_wrong(value, size, &is, &should, &found, inout);
    if (found.largest > inout->largest) inout->largest = found.largest;
    is_identical = false;
  }
  inout->checked++;
  inout->identical += is_identical;
}

/* No graph may have an exact length. */
int answer_check_recorded(const answer_check *check, rondo_session *session, answer_tally *inout) {
  const rondo_run_mode mode = check->model->exact_lengths ? RONDO_RUN_AUTO : RONDO_RUN_RECORDED;
  void *outputs[RONDO_SESSION_MAX_VALUES];
  int result = TOOL_OK;
  for (size_t i = 0; i < check->count && result == TOOL_OK; i++) {
    const answer_size *size = &check->sizes[i];
    void *memory = served_model_make_outputs(check->model, size->rows, outputs);
    tool_show_progress("checking size %zu of %zu", i + 1, check->count);
    result = memory ? run(check, session, check->model->name, mode, size, outputs) : tool_fail_memory("the outputs");
    if (result == TOOL_OK) answer_check_compare(check, size->rows, size->length, outputs, inout);
    free(memory);
  }
  return result;
}

/* Results ---------------------------------------------------------------------------------------------------------- */

void answer_tally_add(answer_tally *all, const answer_tally *one) {
  if (all->wrong == 0) memcpy(all->message, one->message, sizeof all->message);
  all->checked += one->checked;
  all->identical += one->identical;
  all->wrong += one->wrong;
  if (one->largest > all->largest) all->largest = one->largest;
}

int answer_tally_judge(const answer_tally *tally, const char *model) {
  if (tally->wrong == 0) return TOOL_OK;
  return tool_fail("model '%s': %" PRIu64 " of %" PRIu64 " answers are wrong: %s", model, tally->wrong, tally->checked,
                   tally->message);
}

void answer_tally_to_json(const answer_tally *tally, json *out) {
  json_begin_object(out, "answers");
  json_integer(out, "checked", tally->checked);
  json_integer(out, "identical", tally->identical);
  json_real(out, "largest_difference", tally->largest);
  json_end(out);
}

void answer_tally_print(const answer_tally *tally) {
  printf("answers          %" PRIu64 " compared with eager runs: ", tally->checked);
  if (tally->identical == tally->checked)
    printf("all have the same bits\n");
  else
    printf("%" PRIu64 " have the same bits, the others differ by at most %.2g\n", tally->identical, tally->largest);
}
