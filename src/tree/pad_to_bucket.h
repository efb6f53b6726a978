/* SPDX-License-Identifier: MIT
 * Padding to buckets (rondo_function_options.buckets, TR-7): inputs with fewer rows than the next bucket come to memory
 * of the function's own, before all that a call does with them, so that the call is one of the bucket; outputs
 * with rows are handed out as their first ones.
 */
#ifndef RONDO_TREE_PAD_TO_BUCKET_H
#define RONDO_TREE_PAD_TO_BUCKET_H

#include "tree/tree_internal.h"

/* An input whose rows are padded. */
typedef struct rondo_padded_input {
  char *memory; /* of the tree's pool; NULL before it is needed */
  size_t room;
  char *given; /* of the call in progress: where the caller has it, */
  size_t given_bytes;
  size_t shape[RONDO_TREE_MAX_RANK]; /* ... and its shape with the bucket's rows */
} rondo_padded_input;

typedef struct rondo_bucket {
  size_t rows;
  uint64_t calls, given_rows;
} rondo_bucket;

struct rondo_padding {
  rondo_bucket *buckets; /* ascending */
  size_t bucket_count;
  rondo_padded_input *inputs; /* by input */
  size_t input_count;
  uint32_t word;
  size_t rows, padded_rows; /* of the call in progress; both 0 when nothing is padded */
};

RONDO_MUST_USE rondo_status rondo_padding_check(const rondo_function_options *options);
RONDO_MUST_USE rondo_status rondo_padding_create(const rondo_tree *tree, const rondo_function_options *options,
                                                 rondo_padding **out);
void rondo_padding_free(rondo_tree *tree, rondo_padding *padding); /* NULL is fine */

/* The function's call in progress, with tree->inputs: begins; ends, with what was written given back. `call` is for
 * messages. A function without buckets is left alone. */
RONDO_MUST_USE rondo_status rondo_padding_begin(const char *call, rondo_function *function, rondo_stream *stream,
                                                bool counts);
RONDO_MUST_USE rondo_status rondo_padding_end(const rondo_function *function, rondo_stream *stream, bool writes_back);

/* What is handed out of an output with rows. */
void rondo_padding_cut(const rondo_function *function, rondo_buffer_layout *extent);

#endif
