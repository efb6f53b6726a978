/* SPDX-License-Identifier: MIT
 * What a model predicts after the tokens of a window: its scores for the next one. A model without caches runs over
 * the whole window each time. One with caches runs over a window that is new to it by a program for prompts, of which
 * there is one for each doubling of lengths, and over one token more by another, which is the same for every length,
 * since the length lies on the device. All programs have the states, the arena and the stream in common.
 */
#ifndef RONDO_TOOL_TEXT_GENERATOR_H
#define RONDO_TOOL_TEXT_GENERATOR_H

#include <stdbool.h>

#include <rondo/rondo.h>

#include "common/timed_runs.h"
#include "models/model.h"

/* Prompts of 8 tokens, 16, .. up to the longest context. */
#define WRITER_SHORTEST 8
#define WRITER_MAX_BUCKETS 8

typedef struct writer {
  const language_model *model;
  rondo_compiled *whole, *next; /* one over the window, without caches; one more token */
  size_t bucket_count, lengths[WRITER_MAX_BUCKETS];
  rondo_compiled *prompts[WRITER_MAX_BUCKETS];
  size_t cached;                 /* tokens of the window whose rows are in the caches */
  size_t prompt_runs, next_runs; /* since it began */
} writer;

typedef enum writer_way {
  WRITER_RECORDED,
  WRITER_EAGER,
  WRITER_RECOMPUTED /* recorded, and over the whole window each time */
} writer_way;

/* Compiles what the model needs. This and writer_destroy return TOOL_OK, or TOOL_FAILURE after a message. */
int writer_create(const language_model *model, const rondo_weights *weights, rondo_device *device, const char *path,
                  writer *out);
int writer_destroy(writer *w);

/* The caches hold nothing of the window any more. */
void writer_begin(writer *w);

/* Moves the window on by a token; it has room for `context` of them. */
void writer_push(writer *w, int32_t *window, size_t *count, int32_t token);

/* Scores of all tokens of the vocabulary after the window, of 1 to `context` tokens (without caches: of `context`). */
rondo_status writer_run(writer *w, writer_way way, const int32_t *window, size_t count, cost *times, float *out_scores);

/* Of the program that makes a byte from the last one, and of the largest, whose arena the others use, too. */
rondo_status writer_info(const writer *w, rondo_compiled_info *out_next, rondo_compiled_info *out_largest);

#endif
