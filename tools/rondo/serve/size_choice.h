/* SPDX-License-Identifier: MIT
 * How good the sizes are that a session has chosen, for requests by themselves: those that such requests run in are
 * recorded once more, with others between them, all are measured, and the best choice of as many, which is exact
 * (<rondo/sizes.h>), is held beside theirs.
 */
#ifndef RONDO_TOOL_SIZE_CHOICE_H
#define RONDO_TOOL_SIZE_CHOICE_H

#include "models/recommender.h"
#include "serve/request_sizes.h"

typedef struct choice_question {
  rondo_device *device;
  const recommender *model;
  const traffic *history;
  const size_t *chosen; /* rows */
  size_t chosen_count;
} choice_question;

typedef struct choice_answer {
  size_t tried;   /* sizes, the chosen ones among them */
  size_t alone;   /* of the chosen: what requests by themselves run in */
  double best_us; /* of a request of the history, at the mean */
  double chosen_us;
  double regret; /* chosen_us / best_us - 1 */
} choice_answer;

/* Those of the chosen that requests of the history by themselves run in, as they stand there: up to the smallest that
 * has room for each request, or the largest there is. How many. */
size_t choice_list_alone(const choice_question *question, size_t *out);

/* Returns TOOL_OK, or TOOL_FAILURE after a message. */
int choice_judge(const choice_question *question, choice_answer *out);

#endif
