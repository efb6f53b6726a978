/* SPDX-License-Identifier: MIT
 * Converts the text's own bytes to tokens in place.
 */
#include "train/corpus.h"

#include "common/file.h"
#include "common/tool.h"

static int check(const char *name, const corpus *text, uint32_t context) {
  if (text->count == 0) return tool_fail("%s: the file is empty; there is nothing to learn", name);
  if (text->count <= context) {
    return tool_fail("%s: %zu byte%s too few; a context of %u needs at least %u (see --context)", name, text->count,
                     text->count == 1 ? " is" : "s are", context, context + 1);
  }
  if (text->vocabulary.count < 2) {
    return tool_fail("%s: all its bytes are the same; there is nothing to learn", name);
  }
  return TOOL_OK;
}

int corpus_load(const char *path, uint32_t context, corpus *out) {
  *out = (corpus){0};
  file_bytes file;
  const int result = file_read(path, &file);
  if (result != TOOL_OK) return result;
  unsigned char occurs[256] = {0};
  for (size_t i = 0; i < file.count; i++) occurs[file.bytes[i]] = 1;
  *out = (corpus){.vocabulary = vocabulary_create(occurs), .tokens = file.bytes, .count = file.count};
  for (size_t i = 0; i < out->count; i++) out->tokens[i] = (unsigned char)out->vocabulary.token_of[out->tokens[i]];
  return check(file_display_name(path), out, context);
}

void corpus_destroy(corpus *text) {
  file_release(&(file_bytes){.bytes = text->tokens});
  *text = (corpus){0};
}

void corpus_take_sample(const corpus *text, size_t first, const corpus_batch *batch, uint32_t row, int32_t *tokens,
                        int32_t *labels) {
  const uint32_t skipped = batch->context - batch->labels + 1; /* the first position that has a label */
  const unsigned char *window = text->tokens + first;
  for (uint32_t i = 0; i < batch->context; i++) tokens[(size_t)row * batch->context + i] = window[i];
  for (uint32_t i = 0; i < batch->labels; i++) labels[(size_t)row * batch->labels + i] = window[skipped + i];
}

void corpus_draw_batch(const corpus *text, draw_source *source, const corpus_batch *batch, int32_t *tokens,
                       int32_t *labels) {
  const uint32_t places = (uint32_t)(text->count - batch->context);
  for (uint32_t row = 0; row < batch->places; row++)
    corpus_take_sample(text, draw_below(source, places), batch, row, tokens, labels);
}
