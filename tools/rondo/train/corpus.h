/* SPDX-License-Identifier: MIT
 * A text to learn from, as tokens: each byte value that occurs in it is a token, numbered in the order of the values.
 */
#ifndef RONDO_TOOL_CORPUS_H
#define RONDO_TOOL_CORPUS_H

#include <stddef.h>
#include <stdint.h>

#include "common/random_numbers.h"

/* The bytes that have a token, in rising order. */
typedef struct vocabulary {
  uint32_t count;
  unsigned char byte_of[256];
  int16_t token_of[256]; /* -1: the byte has none */
} vocabulary;

/* The vocabulary of the bytes marked in `occurs`. */
vocabulary vocabulary_create(const unsigned char occurs[256]);

typedef struct corpus {
  vocabulary vocabulary;
  unsigned char *tokens; /* a token fits a byte */
  size_t count;
} corpus;

/* Reads a text ("-" is standard input). It must have more than `context` bytes and at least two different ones.
 * Returns TOOL_OK, or TOOL_FAILURE after a message. */
int corpus_load(const char *path, uint32_t context, corpus *out);
void corpus_destroy(corpus *text);

/* What a batch is made of: so many places of the text, for each the `context` tokens before it and, as its labels, the
 * token there and the `labels` - 1 before. */
typedef struct corpus_batch {
  uint32_t places, context, labels;
} corpus_batch;
void corpus_draw_batch(const corpus *text, draw_source *source, const corpus_batch *batch, int32_t *tokens,
                       int32_t *labels);

#endif
