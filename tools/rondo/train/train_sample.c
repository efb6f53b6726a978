/* SPDX-License-Identifier: MIT
 * Samples of text that the model writes now and then while it is trained. The programs that write share the states
 * and the arena of the training step, and change no state that it uses. Rank 0 writes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/tool.h"
#include "models/text_generator.h"
#include "train/train.h"

#define TEMPERATURE 0.8 /* that of rondo generate */

static bool is_wanted(const training *t) { return t->settings.sample_every > 0 && t->ranks.started.rank == 0; }

int train_samples_prepare(training *t) {
  train_samples *s = &t->samples;
  if (!is_wanted(t)) return TOOL_OK;
  s->items = calloc(t->settings.steps / t->settings.sample_every, sizeof *s->items);
  s->scores = calloc(t->model.vocabulary.count, sizeof *s->scores);
  if (!s->scores || (!s->items && t->settings.steps >= t->settings.sample_every))
    return tool_fail_memory("the samples of %" PRIu64 " steps", t->settings.steps);
  return writer_create(&t->model, NULL, t->device, NULL, t->compiled, &s->writer);
}

int train_samples_end(training *t) {
  free(t->samples.items);
  free(t->samples.scores);
  return writer_destroy(&t->samples.writer);
}

/* The same random numbers each time, so that samples differ by the model alone. */
static rondo_status write_sample(training *t, char *out) {
  train_samples *s = &t->samples;
  int32_t window[MODEL_MAX_CONTEXT];
  size_t count = writer_open(&t->model, "", window);
  draw_source source = draw_create(t->settings.seed, DRAW_CHARACTERS);
  writer_begin(&s->writer);
  for (size_t i = 0; i < TRAIN_SAMPLE_BYTES; i++) {
    TOOL_TRY(writer_run(&s->writer, WRITER_RECORDED, window, count, NULL, s->scores));
    const uint32_t token = writer_draw(s->scores, t->model.vocabulary.count, TEMPERATURE, &source);
    const unsigned char byte = t->model.vocabulary.byte_of[token];
    out[i] = byte == '\0' ? ' ' : (char)byte;
    writer_push(&s->writer, window, &count, (int32_t)token);
  }
  return RONDO_OK;
}

int train_sample_when_due(training *t) {
  train_samples *s = &t->samples;
  if (!is_wanted(t) || t->progress.step % t->settings.sample_every != 0) return TOOL_OK;
  train_sample *sample = &s->items[s->count];
  sample->step = t->progress.step;
  if (write_sample(t, sample->text)) return tool_fail_status("the sample after step %" PRIu64, sample->step);
  s->count++;
  if (t->settings.json) return TOOL_OK;
  tool_clear_progress();
  printf("sample   after step %" PRIu64 ":\n", sample->step);
  tool_print_text(sample->text);
  putchar('\n');
  return fflush(stdout) == 0 ? TOOL_OK : tool_check_output();
}
