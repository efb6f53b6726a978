/* SPDX-License-Identifier: MIT
 * Computes a model's scores for the token after a window of tokens. A model without caches runs over the whole window
 * each time. A model with caches runs a prompt program over a new window, and a single next program for each further
 * token. There is one prompt program for each power of two of the length; the next program serves all lengths, because
 * the length is in device memory. All programs share the states, the arena and the stream.
 */
#ifndef RONDO_TOOL_TEXT_GENERATOR_H
#define RONDO_TOOL_TEXT_GENERATOR_H

#include <stdbool.h>

#include <rondo/rondo.h>

#include "common/timed_runs.h"
#include "models/model.h"

/* Lengths of prompt programs: 8 tokens, 16, ... up to the longest context. */
#define WRITER_SHORTEST 8
#define WRITER_MAX_BUCKETS 8

typedef struct writer {
  const language_model *model;
  rondo_compiled *whole, *next; /* whole: over the window, without caches; next: one more token */
  size_t bucket_count, lengths[WRITER_MAX_BUCKETS];
  rondo_compiled *prompts[WRITER_MAX_BUCKETS];
  size_t cached;                 /* how many tokens of the window are in the caches */
  size_t prompt_runs, next_runs; /* since writer_begin */
} writer;

typedef enum writer_way {
  WRITER_RECORDED,
  WRITER_EAGER,
  WRITER_RECOMPUTED /* recorded, over the whole window each time */
} writer_way;

/* Compiles what the model needs. The parameters and the arena are those of `share`, a program of the same model, whose
 * inputs must be written again after the writer ran; or, if that is NULL, the weights of the file at `path`. This and
 * writer_destroy return TOOL_OK, or TOOL_FAILURE after a message. */
int writer_create(const language_model *model, const rondo_weights *weights, rondo_device *device, const char *path,
                  rondo_compiled *share, writer *out);
int writer_destroy(writer *w);

/* Fills a window with the last `context` bytes of the prompt, whose bytes are in the vocabulary, and returns its number
 * of tokens. A window that must be full begins with the end of the opening. */
size_t writer_open(const language_model *model, const char *prompt, int32_t *window);

/* Samples a token with the probabilities softmax(scores / temperature); with 0, the most probable one. */
uint32_t writer_draw(const float *scores, uint32_t count, double temperature, draw_source *source);

/* Empties the caches. */
void writer_begin(writer *w);

/* Appends a token to the window, which has space for `context` tokens. */
void writer_push(writer *w, int32_t *window, size_t *count, int32_t token);

/* Computes the scores of all tokens of the vocabulary after the window, which has 1 to `context` tokens (without
 * caches: exactly `context`). */
rondo_status writer_run(writer *w, writer_way way, const int32_t *window, size_t count, cost *times, float *out_scores);

/* Describes the program for one more byte, and the largest program, whose arena the others share. */
rondo_status writer_info(const writer *w, rondo_compiled_info *out_next, rondo_compiled_info *out_largest);

#endif
