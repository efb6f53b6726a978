/* SPDX-License-Identifier: MIT
 * Padding to buckets (rondo_function_options.buckets, TR-7). Before a call does anything else, inputs with fewer rows
 * than the next bucket are copied to memory of the function, and padded. The call then has the bucket's rows. Outputs
 * with rows are cut to the rows that the caller passed.
 */
#ifndef RONDO_TREE_PAD_TO_BUCKET_H
#define RONDO_TREE_PAD_TO_BUCKET_H

#include "tree/tree_internal.h"

/* An input whose rows are padded. */
typedef struct rondo_padded_input {
  char *memory; /* from the tree's pool; NULL until needed */
  size_t capacity;
  char *given; /* of the current call: the caller's address, */
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
  rondo_padded_input *inputs; /* one for each input */
  size_t input_count;
  uint32_t word;
  size_t rows, padded_rows; /* of the current call; both 0 if nothing is padded */
};

RONDO_MUST_USE rondo_status rondo_padding_check(const rondo_function_options *options);
RONDO_MUST_USE rondo_status rondo_padding_create(const rondo_tree *tree, const rondo_function_options *options,
                                                 rondo_padding **out);
void rondo_padding_free(rondo_tree *tree, rondo_padding *padding); /* NULL is fine */

/* Pads the inputs of the current call, which are in tree->inputs. Does nothing for a function without buckets.
 * `counts`: the statistics of the bucket include the call. Messages name `call`. */
RONDO_MUST_USE rondo_status rondo_padding_begin(const char *call, rondo_function *function, rondo_stream *stream,
                                                bool counts);
/* Ends the padding. `writes_back`: mutated inputs are copied back. */
RONDO_MUST_USE rondo_status rondo_padding_end(const rondo_function *function, rondo_stream *stream, bool writes_back);

/* Cuts an output with rows to the rows that the caller passed. */
void rondo_padding_cut(const rondo_function *function, rondo_buffer_layout *extent);

#endif
