/* SPDX-License-Identifier: MIT
 * Compares the sizes that a session has chosen with others. All compared sizes are recorded and measured in a session
 * that has no other work.
 */
#include "serve/size_comparison.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/tool.h"

enum { MOST_TRIED = RONDO_SESSION_MAX_SIZES, MOST_UNION = LADDERS * RONDO_SESSION_MAX_SIZES };

static int ascending(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

static int descending(const void *a, const void *b) { return ascending(b, a); }

static bool has_size(const size_t *sizes, size_t count, size_t rows) {
  for (size_t i = 0; i < count; i++)
    if (sizes[i] == rows) return true;
  return false;
}

/* Lists the chosen sizes that single requests use: up to the smallest size that has space for every request, or up to
 * the largest size. Returns their number. */
static size_t list_alone(const choice_question *q, size_t *out) {
  const size_t most = traffic_most_rows(q->history);
  size_t cover = 0, count = 0;
  for (size_t i = 0; i < q->chosen_count; i++) {
    const bool is_better = cover < most ? q->chosen[i] > cover : q->chosen[i] >= most && q->chosen[i] < cover;
    if (is_better) cover = q->chosen[i];
  }
  for (size_t i = 0; i < q->chosen_count; i++)
    if (q->chosen[i] <= cover) out[count++] = q->chosen[i];
  return count;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

typedef struct trial {
  rondo_device *device;
  const served_model *model;
  const size_t *sizes;
  size_t count; /* at most RONDO_SESSION_MAX_SIZES */
  rondo_size_candidate *out;
  rondo_session *session;
} trial;

static const char name[] = "tried";

/* Records in capture mode, the largest size first, so that its arena serves the others. The inputs are not read. */
static rondo_status record_sizes(const trial *t) {
  static const char unread;
  const void *inputs[RONDO_SESSION_MAX_VALUES];
  for (size_t i = 0; i < RONDO_SESSION_MAX_VALUES; i++) inputs[i] = &unread;
  TOOL_TRY(rondo_session_capture_begin(t->session, name));
  for (size_t i = 0; i < t->count; i++) {
    const rondo_request request = {RONDO_REQUEST_INIT, .rows = t->sizes[i], .inputs = inputs};
    tool_show_progress("trying size %zu of %zu", i + 1, t->count);
    TOOL_TRY(rondo_session_run(t->session, name, &request, NULL));
  }
  return rondo_session_capture_end(t->session);
}

static rondo_status measure_sizes(trial *t) {
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = t->model->build, .user = t->model->user};
  TOOL_TRY(rondo_session_create(t->device, NULL, &t->session));
  TOOL_TRY(rondo_session_add_model(t->session, name, &options));
  TOOL_TRY(record_sizes(t));
  for (size_t i = 0; i < t->count; i++) {
    rondo_model_graph graph = {.struct_size = sizeof graph};
    TOOL_TRY(rondo_session_get_graph(t->session, name, i, &graph));
    t->out[i] = (rondo_size_candidate){.rows = graph.rows,
                                       .run_us = graph.run_us,
                                       .bytes = graph.exec_bytes,
                                       .shared_bytes = graph.arena_bytes,
                                       .startup_us = graph.capture_us};
  }
  return RONDO_OK;
}

static int run(trial *t) {
  int result = measure_sizes(t) ? tool_fail_status("sizes other than the chosen ones") : TOOL_OK;
  if (rondo_session_destroy(t->session) && result == TOOL_OK) result = tool_fail_status("the session");
  t->session = NULL;
  return result;
}

/* Measures `count` different sizes, in descending order, on one stream each. A session has a limited number of sizes,
 * so several sessions may be needed. */
static int measure(const choice_question *q, const size_t *sizes, size_t count, rondo_size_candidate *out) {
  trial t = {.device = q->device, .model = q->model};
  int result = TOOL_OK;
  for (size_t i = 0; i < count && result == TOOL_OK; i += t.count) {
    t.sizes = sizes + i;
    t.out = out + i;
    t.count = count - i < RONDO_SESSION_MAX_SIZES ? count - i : RONDO_SESSION_MAX_SIZES;
    result = run(&t);
  }
  return result;
}

/* The best choice ------------------------------------------------------------------------------------------------- */

typedef struct judging {
  const choice_question *question;
  size_t sizes[MOST_TRIED]; /* descending */
  size_t size_count;
  rondo_size_demand *demands; /* by the rows of requests in the history, ascending */
  size_t demand_count;
  rondo_size_candidate tried[MOST_TRIED], chosen[MOST_TRIED];
  size_t chosen_count;
  uint32_t alone; /* how many of the chosen sizes single requests use */
} judging;

static int by_rows(const void *a, const void *b) {
  const size_t x = ((const rondo_size_demand *)a)->rows, y = ((const rondo_size_demand *)b)->rows;
  return (x > y) - (x < y);
}

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

/* Sizes that are larger than any single request needs serve batches only. */
static void list_sizes(judging *j) {
  j->size_count = list_alone(j->question, j->sizes);
  j->alone = (uint32_t)j->size_count;
  const size_t more = MOST_TRIED - j->size_count;
  for (size_t i = 1; i <= more; i++) {
    const size_t rows = j->demands[i * j->demand_count / more - 1].rows;
    if (i * j->demand_count >= more && !has_size(j->sizes, j->size_count, rows)) j->sizes[j->size_count++] = rows;
  }
  qsort(j->sizes, j->size_count, sizeof *j->sizes, descending);
}

static void list_chosen(judging *j) {
  for (size_t i = 0; i < j->size_count; i++)
    if (has_size(j->question->chosen, j->question->chosen_count, j->tried[i].rows))
      j->chosen[j->chosen_count++] = j->tried[i];
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
  int result = measure(question, j.sizes, j.size_count, j.tried);
  if (result == TOOL_OK && judge(&j, out)) result = tool_fail_status("sizes other than the chosen ones");
  free(j.demands);
  return result;
}

/* Ladders --------------------------------------------------------------------------------------------------------- */

static const char *const names[LADDERS] = {"chosen", "doubling", "halves", "triton", "four"};

typedef struct comparing {
  const traffic *history;
  size_t least, most;       /* rows of a request */
  size_t sizes[MOST_UNION]; /* of all ladders, descending */
  rondo_size_candidate measured[MOST_UNION];
  size_t count;
} comparing;

static void add_size(ladder *l, size_t rows) {
  if (l->count == 0 || l->sizes[l->count - 1] < rows) l->sizes[l->count++] = rows;
}

/* Skips sizes that have no space for the smallest request. */
static void make_doubling(const comparing *c, ladder *l) {
  for (size_t rows = 1; rows < c->most; rows *= 2)
    if (rows >= c->least) add_size(l, rows);
}

static void make_halves(const comparing *c, ladder *l) {
  for (size_t rows = 1; rows < c->most; rows *= 2) {
    const size_t half_more = rows + rows / 2;
    if (rows >= c->least) add_size(l, rows);
    if (half_more >= c->least && half_more < c->most) add_size(l, half_more);
  }
}

static void make_triton(const comparing *c, ladder *l) {
  static const size_t sizes[] = {1, 2, 3, 4, 6, 8, 12, 16};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    if (sizes[i] < c->most) add_size(l, sizes[i]);
}

static void make_four(const comparing *c, ladder *l) {
  add_size(l, (c->most + 3) / 4);
  add_size(l, (c->most + 2) / 3);
  add_size(l, (2 * c->most + 2) / 3);
}

static void make_ladders(const comparing *c, const choice_question *question, ladder *ladders) {
  ladder *chosen = &ladders[LADDER_CHOSEN];
  chosen->count = list_alone(question, chosen->sizes);
  qsort(chosen->sizes, chosen->count, sizeof *chosen->sizes, ascending);
  make_doubling(c, &ladders[LADDER_DOUBLING]);
  make_halves(c, &ladders[LADDER_HALVES]);
  make_triton(c, &ladders[LADDER_TRITON]);
  make_four(c, &ladders[LADDER_FOUR]);
  for (size_t i = LADDER_DOUBLING; i < LADDERS; i++) add_size(&ladders[i], c->most);
}

static void unite(comparing *c, const ladder *ladders) {
  size_t all = 0, kept = 0;
  for (size_t i = 0; i < LADDERS; i++)
    for (size_t k = 0; k < ladders[i].count; k++) c->sizes[all++] = ladders[i].sizes[k];
  qsort(c->sizes, all, sizeof *c->sizes, descending);
  for (size_t i = 0; i < all; i++)
    if (kept == 0 || c->sizes[kept - 1] != c->sizes[i]) c->sizes[kept++] = c->sizes[i];
  c->count = kept;
}

/* Costs ----------------------------------------------------------------------------------------------------------- */

static const rondo_size_candidate *find_measured(const comparing *c, size_t rows) {
  size_t i = 0;
  while (c->measured[i].rows != rows) i++;
  return &c->measured[i];
}

/* If no size has space, runs the largest one as often as necessary. */
static void run_history(const comparing *c, ladder *l) {
  double us = 0, rows = 0, run_rows = 0;
  for (size_t i = 0; i < c->history->count; i++) {
    const size_t request = c->history->rows[i];
    size_t at = 0;
    while (at + 1 < l->count && l->sizes[at] < request) at++;
    const size_t runs = (request - 1) / l->sizes[at] + 1;
    us += (double)runs * find_measured(c, l->sizes[at])->run_us;
    rows += (double)request;
    run_rows += (double)(runs * l->sizes[at]);
  }
  l->mean_us = us / (double)c->history->count;
  l->padding = 1 - rows / run_rows;
}

static void add_up(const comparing *c, ladder *l) {
  for (size_t i = 0; i < l->count; i++) {
    const rondo_size_candidate *m = find_measured(c, l->sizes[i]);
    l->capture_us += m->startup_us;
    l->exec_bytes += m->bytes;
    if (m->shared_bytes > l->arena_bytes) l->arena_bytes = m->shared_bytes;
  }
}

int ladders_compare(const choice_question *question, ladder out[LADDERS]) {
  comparing *c = calloc(1, sizeof *c);
  if (c == NULL) return tool_fail_memory("the ladders of sizes");
  for (size_t i = 0; i < LADDERS; i++) out[i] = (ladder){.count = 0};
  c->history = question->history;
  c->least = traffic_least_rows(question->history);
  c->most = traffic_most_rows(question->history);
  make_ladders(c, question, out);
  unite(c, out);
  const int result = measure(question, c->sizes, c->count, c->measured);
  for (size_t i = 0; i < LADDERS && result == TOOL_OK; i++) {
    run_history(c, &out[i]);
    add_up(c, &out[i]);
  }
  free(c);
  return result;
}

/* Results ---------------------------------------------------------------------------------------------------------- */

void ladders_to_json(const ladder ladders[LADDERS], json *out) {
  json_begin_array(out, "ladders");
  for (size_t i = 0; i < LADDERS; i++) {
    const ladder *l = &ladders[i];
    json_begin_object(out, NULL);
    json_text(out, "name", names[i]);
    json_begin_array(out, "rows");
    for (size_t k = 0; k < l->count; k++) json_integer(out, NULL, l->sizes[k]);
    json_end(out);
    json_real(out, "padding", l->padding);
    json_real(out, "mean_us", l->mean_us);
    json_real(out, "capture_us", l->capture_us);
    json_integer(out, "exec_bytes", l->exec_bytes);
    json_integer(out, "arena_bytes", l->arena_bytes);
    json_end(out);
  }
  json_end(out);
}

void ladders_print(const ladder ladders[LADDERS]) {
  printf("sizes     graphs  padding %%     mean us  capture ms  exec bytes  arena bytes\n");
  for (size_t i = 0; i < LADDERS; i++) {
    const ladder *l = &ladders[i];
    printf("%-8s %7zu %10.2f %11.1f %11.1f %11" PRIu64 " %12" PRIu64 "\n", names[i], l->count, 100 * l->padding,
           l->mean_us, l->capture_us / 1000, l->exec_bytes, l->arena_bytes);
  }
}
