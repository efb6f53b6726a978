/* SPDX-License-Identifier: MIT
 * How good the sizes are that a session has chosen, for requests that run by themselves. There are two answers:
 *
 * - The regret: the chosen sizes and others between them are recorded and measured, and the best choice of as many
 *   sizes, which is exact (<rondo/sizes.h>), is compared with theirs.
 * - Ladders: sizes that follow from a rule, whatever the requests are and whatever they cost. Each request of the
 * history is padded to the next size, as servers do, so that only the sizes differ. A ladder ends with the largest
 * request, because whoever configures one states how large requests can be.
 *
 * Functions return TOOL_OK, or TOOL_FAILURE after a message.
 */
#ifndef RONDO_TOOL_SIZE_COMPARISON_H
#define RONDO_TOOL_SIZE_COMPARISON_H

#include "common/json.h"
#include "serve/request_sizes.h"
#include "serve/served_model.h"

typedef struct choice_question {
  rondo_device *device;
  const served_model *model;
  const traffic *history;
  const size_t *chosen; /* rows */
  size_t chosen_count;
} choice_question;

typedef struct choice_answer {
  size_t tried;   /* number of sizes, including the chosen ones */
  size_t alone;   /* how many of the chosen sizes single requests use */
  double best_us; /* mean time of a request of the history */
  double chosen_us;
  double regret; /* chosen_us / best_us - 1 */
} choice_answer;

int choice_judge(const choice_question *question, choice_answer *out);

typedef enum ladder_rule {
  LADDER_CHOSEN,
  LADDER_DOUBLING, /* powers of two, and the largest request */
  LADDER_HALVES,   /* 1, 2, 3, 4, 6, 8, 12, ...: powers of two and 1.5 times powers of two; and the largest request */
  LADDER_TRITON,   /* the default of Triton's TensorRT backend: 1, 2, 3, 4, 6, 8, 12, 16, and the largest request */
  LADDER_FOUR,     /* 1/4, 1/3 and 2/3 of the largest request, and all of it: 300, 400, 800, 1200 for 1200 rows */
  LADDERS
} ladder_rule;

typedef struct ladder {
  size_t sizes[RONDO_SESSION_MAX_SIZES]; /* rows, ascending; a rule of powers of two begins with the first size that
                                            has space for the smallest request */
  size_t count;
  double padding; /* share of padding in all rows that graphs run */
  double mean_us; /* mean time of a request of the history, from measured times */
  double capture_us;
  uint64_t exec_bytes, arena_bytes; /* of its graphs, on one stream */
} ladder;

/* Fills `out`, indexed by rule. */
int ladders_compare(const choice_question *question, ladder out[LADDERS]);

/* Writes the array "ladders"; prints the same as a table. */
void ladders_to_json(const ladder ladders[LADDERS], json *out);
void ladders_print(const ladder ladders[LADDERS]);

#endif
