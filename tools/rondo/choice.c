/* SPDX-License-Identifier: MIT
 * Sizes beside those that were chosen lie at even distances among the requests that came; all are recorded in capture
 * mode, the largest first.
 */
#include "choice.h"

#include <stdlib.h>

#include "tool.h"

enum { MOST_TRIED = RONDO_SESSION_MAX_SIZES };

typedef struct judging {
  const choice_question *question;
  size_t sizes[MOST_TRIED]; /* descending */
  size_t size_count;
  rondo_session *session;
  rondo_size_demand *demands; /* by requests of the history, ascending */
  size_t demand_count;
  rondo_size_candidate tried[MOST_TRIED], chosen[MOST_TRIED];
  size_t tried_count, chosen_count;
  uint32_t alone; /* of the chosen: what requests by themselves run in */
} judging;

static int descending(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x < y) - (x > y);
}

static int by_rows(const void *a, const void *b) {
  const size_t x = ((const rondo_size_demand *)a)->rows, y = ((const rondo_size_demand *)b)->rows;
  return (x > y) - (x < y);
}

/* Sizes ----------------------------------------------------------------------------------------------------------- */

static bool list_demands(judging *j) {
  const traffic *history = j->question->history;
  j->demands = calloc(history->count, sizeof *j->demands);
  if (j->demands == NULL) return false;
  for (size_t i = 0; i < history->count; i++)
    j->demands[i] = (rondo_size_demand){.rows = history->rows[i], .requests = 1};
  j->demand_count = history->count;
  qsort(j->demands, j->demand_count, sizeof *j->demands, by_rows);
  return true;
}

static bool has_size(const judging *j, size_t rows) {
  for (size_t i = 0; i < j->size_count; i++)
    if (j->sizes[i] == rows) return true;
  return false;
}

/* Rows of the smallest chosen size that has room for each request, or of the largest there is. */
static size_t find_cover(const judging *j) {
  const choice_question *q = j->question;
  const size_t most = j->demands[j->demand_count - 1].rows;
  size_t cover = 0;
  for (size_t i = 0; i < q->chosen_count; i++) {
    const bool is_better = cover < most ? q->chosen[i] > cover : q->chosen[i] >= most && q->chosen[i] < cover;
    if (is_better) cover = q->chosen[i];
  }
  return cover;
}

/* Larger ones than requests need by themselves are for several together. */
static void list_sizes(judging *j) {
  const choice_question *q = j->question;
  const size_t cover = find_cover(j);
  for (size_t i = 0; i < q->chosen_count && j->size_count < MOST_TRIED; i++)
    if (q->chosen[i] <= cover) j->sizes[j->size_count++] = q->chosen[i];
  j->alone = (uint32_t)j->size_count;
  const size_t more = MOST_TRIED - j->size_count;
  for (size_t i = 1; i <= more; i++) {
    const size_t rows = j->demands[i * j->demand_count / more - 1].rows;
    if (i * j->demand_count >= more && !has_size(j, rows)) j->sizes[j->size_count++] = rows;
  }
  qsort(j->sizes, j->size_count, sizeof *j->sizes, descending);
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static rondo_status record_sizes(const judging *j) {
  TOOL_TRY(rondo_session_capture_begin(j->session, "tried"));
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < j->size_count && !status; i++) {
    const rondo_request request = {RONDO_REQUEST_INIT, .rows = j->sizes[i], .inputs = j->question->inputs};
    tool_show_progress("trying size %zu of %zu", i + 1, j->size_count);
    status = rondo_session_run(j->session, "tried", &request, NULL);
  }
  return status ? status : rondo_session_capture_end(j->session);
}

static bool is_chosen(const judging *j, size_t rows) {
  for (size_t i = 0; i < j->question->chosen_count; i++)
    if (j->question->chosen[i] == rows) return true;
  return false;
}

static rondo_status measure_sizes(judging *j) {
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = recommender_build,
                                       .user = (void *)(uintptr_t)j->question->model};
  TOOL_TRY(rondo_session_create(j->question->device, NULL, &j->session));
  TOOL_TRY(rondo_session_add_model(j->session, "tried", &options));
  TOOL_TRY(record_sizes(j));
  for (size_t i = 0; i < j->size_count; i++) {
    rondo_model_graph graph = {.struct_size = sizeof graph};
    TOOL_TRY(rondo_session_get_graph(j->session, "tried", i, &graph));
    const rondo_size_candidate candidate = {.rows = graph.rows, .run_us = graph.run_us};
    j->tried[j->tried_count++] = candidate;
    if (is_chosen(j, graph.rows)) j->chosen[j->chosen_count++] = candidate;
  }
  return RONDO_OK;
}

static rondo_status find_mean(const judging *j, const rondo_size_candidate *candidates, size_t count, double *out_us) {
  const rondo_sizes_problem problem = {RONDO_SIZES_PROBLEM_INIT, .max_sizes = j->alone,
                                       .candidates = candidates, .candidate_count = count,
                                       .demands = j->demands,    .demand_count = j->demand_count};
  size_t chosen[MOST_TRIED];
  rondo_sizes_choice choice = {.struct_size = sizeof choice};
  TOOL_TRY(rondo_sizes_choose(&problem, chosen, &choice));
  *out_us = choice.mean_us;
  return RONDO_OK;
}

static rondo_status judge(judging *j, choice_answer *out) {
  TOOL_TRY(measure_sizes(j));
  TOOL_TRY(find_mean(j, j->tried, j->tried_count, &out->best_us));
  TOOL_TRY(find_mean(j, j->chosen, j->chosen_count, &out->chosen_us));
  out->tried = j->tried_count;
  out->alone = j->alone;
  out->regret = out->chosen_us / out->best_us - 1;
  return RONDO_OK;
}

int choice_judge(const choice_question *question, choice_answer *out) {
  judging j = {.question = question};
  *out = (choice_answer){0};
  if (!list_demands(&j)) return tool_fail_memory("%zu requests", question->history->count);
  list_sizes(&j);
  int result = judge(&j, out) ? tool_fail_status("sizes beside the chosen ones") : TOOL_OK;
  if (rondo_session_destroy(j.session) && result == TOOL_OK) result = tool_fail_status("the session");
  free(j.demands);
  return result;
}
