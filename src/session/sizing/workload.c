/* SPDX-License-Identifier: MIT
 * The workload is sampled. A sampled batch takes random requests from the history one after the other. After each
 * request, what it has so far is a batch that may run. A batch of k requests has 1 / k^2.5 of the weight of a single
 * request: under load more requests run together, but the rows of large batches vary so much that no size fits them;
 * and most sizes should serve single requests, which run while the session is idle.
 */
#include "session/sizing/workload.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"

enum { SAMPLED_BATCHES = 1024 };
#define UNIT 1024 /* keeps the smallest weight above 0 */

static int by_rows(const void *a, const void *b) {
  const size_t x = ((const rondo_size_demand *)a)->rows, y = ((const rondo_size_demand *)b)->rows;
  return (x > y) - (x < y);
}

size_t rondo_workload_merge(rondo_size_demand *items, size_t count) {
  size_t merged = 0;
  if (count > 0) qsort(items, count, sizeof *items, by_rows);
  for (size_t i = 0; i < count; i++) {
    if (merged > 0 && items[merged - 1].rows == items[i].rows)
      items[merged - 1].requests += items[i].requests;
    else
      items[merged++] = items[i];
  }
  return merged;
}

/* The weight of k requests in a sampled batch. All sampled batches together have the weight of the single requests. */
static uint64_t weight_of(const rondo_workload_input *in, size_t requests) {
  return (uint64_t)ceil(UNIT * (double)in->count * pow((double)requests, -2.5));
}

/* Random enough for sampling, and the same on every machine. */
static size_t draw_rows(const rondo_workload_input *in, size_t batch, size_t request) {
  const uint64_t drawn = rondo_hash_u64(rondo_hash_u64(RONDO_HASH_START, batch), request);
  return in->history[drawn % in->count];
}

static void add_sampled_batch(rondo_workload *workload, const rondo_workload_input *in, size_t batch) {
  size_t rows = 0;
  for (size_t k = 1; k <= in->max_requests; k++) {
    const size_t more = draw_rows(in, batch, k);
    if (more > in->max_rows || rows > in->max_rows - more) return;
    rows += more;
    if (k > 1) workload->items[workload->count++] = (rondo_size_demand){.rows = rows, .requests = weight_of(in, k)};
  }
}

static size_t max_batch_requests(const rondo_workload_input *in) {
  const size_t fit = in->max_rows / in->history[0];
  return fit < in->max_requests ? fit : in->max_requests;
}

rondo_status rondo_workload_make(const rondo_allocator *allocator, const rondo_workload_input *in,
                                 rondo_workload *out) {
  assert(in->count > 0 && in->history[0] > 0);
  const size_t together = max_batch_requests(in);
  *out = (rondo_workload){.allocator = *allocator,
                          .capacity = in->count + (together > 1 ? together * SAMPLED_BATCHES : 0)};
  RONDO_TRY(rondo_allocate_items(allocator, out->capacity, sizeof *out->items, &out->items));
  for (size_t i = 0; i < in->count; i++)
    out->items[out->count++] = (rondo_size_demand){.rows = in->history[i], .requests = UNIT * SAMPLED_BATCHES};
  for (size_t i = 0; together > 1 && i < SAMPLED_BATCHES; i++) add_sampled_batch(out, in, i);
  out->count = rondo_workload_merge(out->items, out->count);
  assert(out->count <= out->capacity);
  while (out->alone < out->count && out->items[out->alone].rows <= in->history[in->count - 1]) out->alone++;
  return RONDO_OK;
}

void rondo_workload_free(rondo_workload *workload) {
  rondo_release(&workload->allocator, workload->items, workload->capacity, sizeof *workload->items);
  *workload = (rondo_workload){.items = NULL};
}
