/* SPDX-License-Identifier: MIT
 * A ladder ends with the largest request, since whoever sets one up says how large requests are at most.
 */
#include "serve/size_ladders.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/tool.h"
#include "serve/size_trial.h"

enum { MOST_UNION = LADDERS * RONDO_SESSION_MAX_SIZES };

static const char *const names[LADDERS] = {"chosen", "doubling", "halves", "triton", "four"};

typedef struct comparing {
  const traffic *history;
  size_t least, most;       /* rows of a request */
  size_t sizes[MOST_UNION]; /* of all ladders, descending */
  rondo_size_candidate measured[MOST_UNION];
  size_t count;
} comparing;

/* Sizes ----------------------------------------------------------------------------------------------------------- */

static void add_size(ladder *l, size_t rows) {
  if (l->count == 0 || l->sizes[l->count - 1] < rows) l->sizes[l->count++] = rows;
}

/* None that has no room for the smallest request. */
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

static int ascending(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

static int descending(const void *a, const void *b) { return ascending(b, a); }

static void make_ladders(const comparing *c, const choice_question *question, ladder *ladders) {
  ladder *chosen = &ladders[LADDER_CHOSEN];
  chosen->count = choice_list_alone(question, chosen->sizes);
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

/* Where no size has room, the largest as often as it takes. */
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

static void find_range(comparing *c) {
  c->least = c->most = c->history->rows[0];
  for (size_t i = 0; i < c->history->count; i++) {
    const size_t rows = c->history->rows[i];
    if (rows < c->least) c->least = rows;
    if (rows > c->most) c->most = rows;
  }
}

int ladders_compare(const choice_question *question, ladder out[LADDERS]) {
  comparing *c = calloc(1, sizeof *c);
  if (c == NULL) return tool_fail_memory("the ladders of sizes");
  for (size_t i = 0; i < LADDERS; i++) out[i] = (ladder){.count = 0};
  c->history = question->history;
  find_range(c);
  make_ladders(c, question, out);
  unite(c, out);
  const int result = trial_measure(question->device, question->model, c->sizes, c->count, c->measured);
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
