/* SPDX-License-Identifier: MIT
 * The numbers of rows of the requests that came, for each model by its name. The backend keeps them while models are
 * loaded again, so that their sizes are chosen for what really comes. Up to 256 rows are counted exactly; more are
 * rounded up to an eighth of a power of two. Old requests count less: all counts are halved once there are 65536.
 *
 * Thread-safe.
 */
#ifndef RONDO_TRITON_SIZE_HISTORY_H
#define RONDO_TRITON_SIZE_HISTORY_H

#include <pthread.h>
#include <rondo/sizes.h>

#include "base/array.h"

enum {
  RONDO_TRITON_MOST_HISTORIES = 256, /* models; then one that is not loaded is forgotten */
  RONDO_TRITON_EXACT_ROWS = 256,
  RONDO_TRITON_HISTORY_COUNTS = RONDO_TRITON_EXACT_ROWS + 1 + 8 * 16, /* up to 2^24 rows */
  RONDO_TRITON_MOST_COUNTED = 65536
};

typedef struct rondo_triton_history {
  char *model;
  uint32_t users; /* sessions; under the list's lock */
  uint64_t used;  /* when it was opened last, in order */
  pthread_mutex_t lock;
  uint32_t counts[RONDO_TRITON_HISTORY_COUNTS], total;
  uint64_t came; /* requests that were ever counted */
} rondo_triton_history;

typedef struct rondo_triton_histories {
  pthread_mutex_t lock;
  rondo_allocator allocator;
  uint64_t uses;
  RONDO_ARRAY(rondo_triton_history *) items;
} rondo_triton_histories;

void rondo_triton_histories_init(const rondo_allocator *allocator, rondo_triton_histories *out);
/* No history is open. */
void rondo_triton_histories_free(rondo_triton_histories *histories);

/* Finds or makes the history of a model. Errors: OUT_OF_MEMORY; LIMIT_EXCEEDED/NONE (too many models are loaded). */
RONDO_MUST_USE rondo_status rondo_triton_history_open(rondo_triton_histories *histories, const char *model,
                                                      rondo_triton_history **out);
/* NULL is fine. */
void rondo_triton_history_close(rondo_triton_histories *histories, rondo_triton_history *history);

void rondo_triton_history_count(rondo_triton_history *history, size_t rows);

/* How many requests were ever counted. */
uint64_t rondo_triton_history_came(rondo_triton_history *history);
/* Writes how many requests had each number of rows, for those that came; returns how many such numbers there are. */
size_t rondo_triton_history_demands(rondo_triton_history *history, rondo_size_demand out[RONDO_TRITON_HISTORY_COUNTS]);

/* Appends the rows of all requests that are counted. Errors: OUT_OF_MEMORY. */
typedef RONDO_ARRAY(size_t) rondo_triton_row_list;
RONDO_MUST_USE rondo_status rondo_triton_history_list(const rondo_allocator *allocator, rondo_triton_history *history,
                                                      rondo_triton_row_list *out);

#endif
