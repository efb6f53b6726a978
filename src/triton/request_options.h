/* SPDX-License-Identifier: MIT
 * What a request says besides its tensors: the sequence that it belongs to, how many tokens it wants, and whether sizes
 * are chosen again after it.
 */
#ifndef RONDO_TRITON_REQUEST_OPTIONS_H
#define RONDO_TRITON_REQUEST_OPTIONS_H

#include "base/error.h"
#include "triton/server_abi.h"

enum { RONDO_TRITON_CORRELATION_BYTES = 160 }; /* the server takes texts of at most 128 */

/* A number or a text. Zeros: none. */
typedef struct rondo_triton_correlation {
  uint64_t number;
  char text[RONDO_TRITON_CORRELATION_BYTES];
} rondo_triton_correlation;

typedef struct rondo_triton_request_options {
  rondo_triton_correlation correlation;
  bool starts, ends;   /* its sequence; both if there is no correlation id */
  uint32_t max_tokens; /* 0: it is one step */
  bool has_end_token;
  int64_t end_token; /* after which no more tokens are wanted */
  bool chooses_sizes;
} rondo_triton_request_options;

/* Reads the parameter choose_sizes; of a model with sequences also the flags, the correlation id, and the parameters
 * max_tokens and end_token. Errors: those of the server;
 * INVALID_ARGUMENT with OUT_OF_RANGE (a parameter, or a correlation id that is too long). */
RONDO_MUST_USE rondo_status rondo_triton_read_options(triton_request *request, bool has_sequences,
                                                      rondo_triton_request_options *out);

bool rondo_triton_has_correlation(const rondo_triton_correlation *correlation);
bool rondo_triton_is_same_correlation(const rondo_triton_correlation *a, const rondo_triton_correlation *b);

/* "sequence 7" or "sequence 'user'", for messages; returns buffer. */
#define RONDO_TRITON_SEQUENCE_TEXT 192
const char *rondo_triton_sequence_text(const rondo_triton_correlation *correlation,
                                       char buffer[RONDO_TRITON_SEQUENCE_TEXT]);

#endif
