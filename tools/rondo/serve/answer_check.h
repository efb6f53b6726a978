/* SPDX-License-Identifier: MIT
 * Whether the answers of a session are right: each is compared with that of an eager run of as many rows and positions,
 * without padding. Graphs with padding, and batches of several requests, may round differently; an answer of as many
 * rows as its graph has has the same bits.
 */
#ifndef RONDO_TOOL_ANSWER_CHECK_H
#define RONDO_TOOL_ANSWER_CHECK_H

#include "common/json.h"
#include "serve/request_sizes.h"
#include "serve/served_model.h"

typedef struct answer_size {
  size_t rows, length; /* 0: the model has no lengths */
} answer_size;

typedef struct answer_check {
  const served_model *model;
  answer_size *sizes;                          /* the different ones of requests, by lengths, then by rows */
  void **memory;                               /* by size: the outputs of an eager run, */
  void *(*expected)[RONDO_SESSION_MAX_VALUES]; /* which are here */
  size_t count;
} answer_check;

/* Counts of compared answers. Zero-initialize it. */
typedef struct answer_tally {
  uint64_t checked, identical; /* answers; those that have the bits of the eager run */
  double largest;              /* difference of an element */
  uint64_t wrong;
  char message[300]; /* about the first wrong one */
} answer_tally;

/* Runs the model eagerly for each size of the requests, and checks that a row does not depend on others. The session's
 * model has the name of the served one. If its lengths are padded, another one, which is not padded, runs instead, and
 * is removed again. Returns TOOL_OK, or TOOL_FAILURE after a message. Destroy it after any result.
 */
int answer_check_create(const served_model *model, rondo_session *session, const traffic *requests, answer_check *out);
void answer_check_destroy(answer_check *check);

/* Runs and compares a recorded request of each size. Returns TOOL_OK, or TOOL_FAILURE after a message. */
int answer_check_recorded(const answer_check *check, rondo_session *session, answer_tally *inout);

/* Compares the outputs of a request. Any thread, each with its tally. */
void answer_check_compare(const answer_check *check, size_t rows, size_t length, void *const *outputs,
                          answer_tally *inout);

void answer_tally_add(answer_tally *all, const answer_tally *one);

/* TOOL_FAILURE after a message if an answer was wrong. */
int answer_tally_judge(const answer_tally *tally, const char *model);

void answer_tally_to_json(const answer_tally *tally, json *out);
void answer_tally_print(const answer_tally *tally);

#endif
