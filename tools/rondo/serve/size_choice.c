/* SPDX-License-Identifier: MIT
 * Sizes beside those that were chosen lie at even distances among the requests that came.
 */
#include "serve/size_choice.h"

#include <stdlib.h>

#include "common/tool.h"
#include "serve/size_trial.h"

enum { MOST_TRIED = RONDO_SESSION_MAX_SIZES };

typedef struct judging {
  const choice_question *question;
  size_t sizes[MOST_TRIED]; /* descending */
  size_t size_count;
  rondo_size_demand *demands; /* by requests of the history, ascending */
  size_t demand_count;
  rondo_size_candidate tried[MOST_TRIED], chosen[MOST_TRIED];
  size_t chosen_count;
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

static size_t find_most(const traffic *history) {
  size_t most = 0;
  for (size_t i = 0; i < history->count; i++)
    if (history->rows[i] > most) most = history->rows[i];
  return most;
}

size_t choice_list_alone(const choice_question *q, size_t *out) {
  const size_t most = find_most(q->history);
  size_t cover = 0, count = 0;
  for (size_t i = 0; i < q->chosen_count; i++) {
    const bool is_better = cover < most ? q->chosen[i] > cover : q->chosen[i] >= most && q->chosen[i] < cover;
    if (is_better) cover = q->chosen[i];
  }
  for (size_t i = 0; i < q->chosen_count; i++)
    if (q->chosen[i] <= cover) out[count++] = q->chosen[i];
  return count;
}

/* Larger ones than requests need by themselves are for several together. */
static void list_sizes(judging *j) {
  j->size_count = choice_list_alone(j->question, j->sizes);
  j->alone = (uint32_t)j->size_count;
  const size_t more = MOST_TRIED - j->size_count;
  for (size_t i = 1; i <= more; i++) {
    const size_t rows = j->demands[i * j->demand_count / more - 1].rows;
    if (i * j->demand_count >= more && !has_size(j, rows)) j->sizes[j->size_count++] = rows;
  }
  qsort(j->sizes, j->size_count, sizeof *j->sizes, descending);
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static bool is_chosen(const judging *j, size_t rows) {
  for (size_t i = 0; i < j->question->chosen_count; i++)
    if (j->question->chosen[i] == rows) return true;
  return false;
}

static void list_chosen(judging *j) {
  for (size_t i = 0; i < j->size_count; i++)
    if (is_chosen(j, j->tried[i].rows)) j->chosen[j->chosen_count++] = j->tried[i];
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
  list_chosen(j);
  TOOL_TRY(find_mean(j, j->tried, j->size_count, &out->best_us));
  TOOL_TRY(find_mean(j, j->chosen, j->chosen_count, &out->chosen_us));
  out->tried = j->size_count;
  out->alone = j->alone;
  out->regret = out->chosen_us / out->best_us - 1;
  return RONDO_OK;
}

int choice_judge(const choice_question *question, choice_answer *out) {
  judging j = {.question = question};
  *out = (choice_answer){0};
  if (!list_demands(&j)) return tool_fail_memory("%zu requests", question->history->count);
  list_sizes(&j);
  int result = trial_measure(question->device, question->model, j.sizes, j.size_count, j.tried);
  if (result == TOOL_OK && judge(&j, out)) result = tool_fail_status("sizes beside the chosen ones");
  free(j.demands);
  return result;
}
