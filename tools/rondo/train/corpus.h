/* SPDX-License-Identifier: MIT
 * A training text as tokens of the bytes that occur in it.
 */
#ifndef RONDO_TOOL_CORPUS_H
#define RONDO_TOOL_CORPUS_H

#include <stddef.h>
#include <stdint.h>

#include "common/random_numbers.h"
#include "train/vocabulary.h"

typedef struct corpus {
  vocabulary vocabulary;
  unsigned char *tokens; /* one byte for each token; the part that is kept from training follows them */
  size_t count;
} corpus;

/* Reads a text ("-" is standard input). It must have more than `context` bytes and at least two different ones.
 * Returns TOOL_OK, or TOOL_FAILURE after a message. */
int corpus_load(const char *path, uint32_t context, corpus *out);
void corpus_destroy(corpus *text);

/* A batch of samples. A sample is a position of the text: the `context` tokens before it, and as its labels the token
 * at that position and the `labels` - 1 before it. */
typedef struct corpus_batch {
  uint32_t places, context, labels;
} corpus_batch;
/* Sample number `row` of a batch is the one whose context begins at `first`. */
void corpus_take_sample(const corpus *text, size_t first, const corpus_batch *batch, uint32_t row, int32_t *tokens,
                        int32_t *labels);
void corpus_draw_batch(const corpus *text, draw_source *source, const corpus_batch *batch, int32_t *tokens,
                       int32_t *labels);

#endif
