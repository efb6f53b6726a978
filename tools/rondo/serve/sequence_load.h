/* SPDX-License-Identifier: MIT
 * A load of sequences for a language model in a session: clients that each open a sequence, run a request that goes on
 * token by token, and close it, until a number of sequences was written. Sequence number i has the same prompt and
 * random choices in each load.
 */
#ifndef RONDO_TOOL_SEQUENCE_LOAD_H
#define RONDO_TOOL_SEQUENCE_LOAD_H

#include <rondo/session.h>

#include "common/timing.h"
#include "models/model.h"

enum { SEQUENCE_TEXTS = 4096 };

typedef struct sequence_load {
  rondo_session *session;
  const char *name;
  const language_model *model;
  uint32_t clients, sequences;
  size_t prompt; /* tokens of the longest prompt; the shortest has a quarter of them */
  size_t tokens; /* that each sequence writes */
  double temperature;
  uint64_t seed;
} sequence_load;

/* What loads of one kind did. Zeros are valid. */
typedef struct sequence_tally {
  samples first_us; /* from the request until the first token was chosen */
  samples each_us;  /* from one token to the next */
  uint64_t tokens, sequences, batch_rows;
  double seconds;                 /* of all loads */
  uint64_t texts[SEQUENCE_TEXTS]; /* a hash of the text of each of the first sequences; 0: it was not written */
  rondo_status status;            /* of the first failure */
  char message[256];
} sequence_tally;

/* The number of tokens of a prompt. */
size_t sequence_prompt_length(const sequence_load *l, uint64_t number);

/* Writes the sequences from number `first` on, and adds to the tally. TOOL_OK, or TOOL_FAILURE after a message. */
int sequence_load_run(const sequence_load *l, uint64_t first, sequence_tally *inout);
void sequence_tally_destroy(sequence_tally *tally);

#endif
