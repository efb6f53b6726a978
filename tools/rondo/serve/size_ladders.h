/* SPDX-License-Identifier: MIT
 * The sizes that a session has chosen beside ladders: sizes that are picked by a rule, whatever the requests are and
 * whatever they cost. Graphs for all of them are recorded and measured together, and each request of the history is
 * padded to the next size that there is, as servers do that have ladders: what differs is the sizes alone. Requests
 * count by themselves.
 */
#ifndef RONDO_TOOL_SIZE_LADDERS_H
#define RONDO_TOOL_SIZE_LADDERS_H

#include "common/json.h"
#include "serve/size_choice.h"

typedef enum ladder_rule {
  LADDER_CHOSEN,
  LADDER_DOUBLING, /* powers of two, and the largest request */
  LADDER_HALVES,   /* 1, 2, 3, 4, 6, 8, 12, ...: powers of two, and once and a half them; and the largest request */
  LADDER_TRITON,   /* what Triton's TensorRT backend records when it is told nothing: 1, 2, 3, 4, 6, 8, 12, 16 and the
                      largest request */
  LADDER_FOUR,     /* 1/4, 1/3, 2/3 of the largest request and all of it: 300, 400, 800 and 1200 where that is 1200 */
  LADDERS
} ladder_rule;

typedef struct ladder {
  size_t sizes[RONDO_SESSION_MAX_SIZES]; /* rows, ascending; those of a rule that goes on from the first that there is
                                            a request for */
  size_t count;
  double padding; /* share of padding in all rows that graphs run */
  double mean_us; /* of a request of the history, by measured times */
  double capture_us;
  uint64_t exec_bytes, arena_bytes; /* of its graphs, on one stream */
} ladder;

/* Fills out, by rule. Returns TOOL_OK, or TOOL_FAILURE after a message. */
int ladders_compare(const choice_question *question, ladder out[LADDERS]);

/* As the array "ladders", and as a table. */
void ladders_to_json(const ladder ladders[LADDERS], json *out);
void ladders_print(const ladder ladders[LADDERS]);

#endif
