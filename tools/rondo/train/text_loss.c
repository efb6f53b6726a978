/* SPDX-License-Identifier: MIT
 * Runs the program of a model's loss over windows of a text.
 */
#include "train/text_loss.h"

#include <math.h>
#include <stdlib.h>

#include "common/file.h"
#include "common/tool.h"

enum { MOST_BATCHES = 16 };

int text_loss_load(const char *path, const language_model *model, corpus *out) {
  int result = corpus_load(path, model->sizes[MODEL_CONTEXT], out);
  for (size_t i = 0; result == TOOL_OK && i < out->count; i++) {
    const unsigned char byte = out->vocabulary.byte_of[out->tokens[i]];
    const int16_t token = model->vocabulary.token_of[byte];
    if (token < 0)
      result = tool_fail("%s: byte %zu, 0x%02x, does not occur in the text that the model was trained on",
                         file_display_name(path), i + 1, byte);
    else
      out->tokens[i] = (unsigned char)token;
  }
  out->vocabulary = model->vocabulary;
  return result;
}

typedef struct measuring {
  const corpus *text;
  corpus_batch batch;
  size_t windows, batches;
  int32_t *tokens, *labels;
  rondo_compiled *compiled;
} measuring;

static rondo_status compile(const language_model *model, rondo_device *device, measuring *m) {
  rondo_program *program = NULL;
  TOOL_TRY(rondo_program_create(&(rondo_program_options){RONDO_PROGRAM_OPTIONS_INIT, .name = "loss"}, &program));
  rondo_status status = model_build_loss(model, program, m->batch.places, NULL);
  if (!status) status = rondo_compile(program, device, NULL, &m->compiled);
  rondo_program_destroy(program);
  return status;
}

static rondo_status run_batch(measuring *m, size_t number, float *out_loss) {
  const corpus_batch *batch = &m->batch;
  const size_t all = m->batches * batch->places, rows = batch->places;
  for (uint32_t row = 0; row < batch->places; row++) {
    const size_t window = (size_t)((double)(number * rows + row) / (double)all * (double)m->windows);
    corpus_take_sample(m->text, window * batch->labels, batch, row, m->tokens, m->labels);
  }
  TOOL_TRY(rondo_compiled_write(m->compiled, "tokens", m->tokens, rows * batch->context * sizeof *m->tokens));
  TOOL_TRY(rondo_compiled_write(m->compiled, "labels", m->labels, rows * batch->labels * sizeof *m->labels));
  TOOL_TRY(rondo_compiled_run(m->compiled));
  return rondo_compiled_read(m->compiled, "loss", out_loss, sizeof *out_loss);
}

static int run_all(measuring *m, const char *name, double *out_loss) {
  double sum = 0;
  for (size_t i = 0; i < m->batches; i++) {
    float loss;
    if (run_batch(m, i, &loss)) return tool_fail_status("the loss of %s", name);
    if (!isfinite(loss)) return tool_fail("%s: its loss is not a number", name);
    sum += (double)loss;
  }
  *out_loss = sum / (double)m->batches;
  return TOOL_OK;
}

static int measure(measuring *m, const language_model *model, const rondo_weights *weights, const char *name,
                   rondo_device *device, double *out_loss) {
  const size_t places = m->batch.places;
  m->tokens = calloc(places * m->batch.context, sizeof *m->tokens);
  m->labels = calloc(places * m->batch.labels, sizeof *m->labels);
  if (!m->tokens || !m->labels) return tool_fail_memory("%zu windows of the text", places);
  if (compile(model, device, m)) return tool_fail_status("the loss could not be compiled");
  if (rondo_weights_apply(weights, m->compiled, model_is_parameter, NULL)) return tool_fail_status("%s", name);
  return run_all(m, name, out_loss);
}

/* Every label of the text occurs in one window. */
int text_loss_measure(const language_model *model, const rondo_weights *weights, const char *name, rondo_device *device,
                      const corpus *text, double *out_loss, size_t *out_labels) {
  const uint32_t context = model->sizes[MODEL_CONTEXT], labels = (uint32_t)model_labels(model);
  measuring m = {.text = text, .windows = (text->count - context - 1) / labels + 1};
  const size_t places = m.windows < model->kind->batch ? m.windows : model->kind->batch;
  m.batch = (corpus_batch){.places = (uint32_t)places, .context = context, .labels = labels};
  m.batches = m.windows / places < MOST_BATCHES ? m.windows / places : MOST_BATCHES;
  int result = measure(&m, model, weights, name, device, out_loss);
  if (rondo_compiled_destroy(m.compiled)) result = tool_fail_status("the loss of %s", name);
  free(m.tokens);
  free(m.labels);
  *out_labels = m.batches * places * labels;
  return result;
}
