/* SPDX-License-Identifier: MIT
 * Padding to buckets (rondo_function_options.buckets and lengths; TR-7, PR-5). Before a call does anything else, inputs
 * with fewer rows or a shorter length than the next bucket are copied to memory of the function, and padded. The call
 * then has the bucket's rows and length. Outputs with rows are cut to the rows that the caller passed.
 */
#ifndef RONDO_TREE_PAD_TO_BUCKET_H
#define RONDO_TREE_PAD_TO_BUCKET_H

#include "tree/tree_internal.h"

/* The dimensions of an input that are padded. */
enum { RONDO_PADDED_ROWS, RONDO_PADDED_LENGTH, RONDO_PADDED_DIMS };

/* An input as lines that are contiguous: rows, if its length is padded, or all of it. */
typedef struct rondo_padded_lines {
  size_t count, bytes;  /* as the caller passed them */
  size_t bytes_of_line; /* in the padded block */
} rondo_padded_lines;

/* An input that is padded. */
typedef struct rondo_padded_input {
  char *memory; /* from the tree's pool; NULL until needed */
  size_t capacity;
  char *given; /* of the current call: the caller's address, */
  rondo_padded_lines lines;
  size_t shape[RONDO_TREE_MAX_RANK]; /* ... and its shape with the bucket's rows and length */
} rondo_padded_input;

/* Sizes that one dimension is padded to, ascending; none: it is not padded. */
typedef struct rondo_padded_sizes {
  size_t *items;
  size_t count;
} rondo_padded_sizes;

typedef struct rondo_bucket {
  uint64_t calls, given[RONDO_PADDED_DIMS];
} rondo_bucket;

struct rondo_padding {
  rondo_padded_sizes sizes[RONDO_PADDED_DIMS];
  rondo_bucket *buckets; /* of each number of rows, one for each length */
  size_t bucket_count;
  rondo_padded_input *inputs; /* one for each input */
  size_t input_count;
  uint32_t word;
  bool is_padding;                                        /* the current call's inputs; then: */
  size_t given[RONDO_PADDED_DIMS], to[RONDO_PADDED_DIMS]; /* 0 for a dimension that is not padded */
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
