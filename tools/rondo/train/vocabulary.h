/* SPDX-License-Identifier: MIT
 * The bytes that a language model knows. Each has a token; tokens are numbered in ascending order of the bytes.
 */
#ifndef RONDO_TOOL_VOCABULARY_H
#define RONDO_TOOL_VOCABULARY_H

#include <stdint.h>

/* The bytes that have a token, in ascending order. */
typedef struct vocabulary {
  uint32_t count;
  unsigned char byte_of[256];
  int16_t token_of[256]; /* -1: the byte has none */
} vocabulary;

/* The vocabulary of the bytes marked in `occurs`. */
vocabulary vocabulary_create(const unsigned char occurs[256]);

#endif
