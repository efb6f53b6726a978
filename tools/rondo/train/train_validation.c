/* SPDX-License-Identifier: MIT
 * Validation: the end of the text is kept from training, and the mean loss over it is computed now and then. The model
 * with the least one is what --save keeps, and with --patience training ends when it no longer falls.
 *
 * Validation has a program of its own, which shares the states and the arena of the training step and changes no state.
 * Its samples are the same each time. Ranks divide each batch like those of training, and all get the same loss.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/tool.h"
#include "train/train.h"

enum { MOST_BATCHES = 16 };

/* The text -------------------------------------------------------------------------------------------------------- */

int train_validation_split(training *t) {
  const uint64_t percent = t->settings.validation;
  const uint32_t context = t->batch.context;
  if (percent == 0) return TOOL_OK;
  const size_t count = (size_t)((double)t->corpus.count * (double)percent / 100);
  if (count <= context || t->corpus.count - count <= context) {
    return tool_fail("--validation %" PRIu64
                     " leaves %zu bytes to train on and %zu to validate with; a context of %" PRIu32
                     " needs at least %" PRIu32 " of each: use a longer text or a shorter --context",
                     percent, t->corpus.count - count, count, context, context + 1);
  }
  t->corpus.count -= count;
  t->validation.text = (corpus){.tokens = t->corpus.tokens + t->corpus.count, .count = count};
  return TOOL_OK;
}

/* Every label of the text occurs once in the windows. Batches take them at even distances. */
static size_t window_count(const training *t) {
  return (t->validation.text.count - t->batch.context - 1) / t->batch.labels + 1;
}

static uint64_t batch_count(const training *t) {
  const uint64_t batches = window_count(t) / t->settings.batch;
  return batches < 1 ? 1 : batches > MOST_BATCHES ? MOST_BATCHES : batches;
}

/* This rank's part of a batch. */
static void take_batch(training *t, uint64_t number) {
  const corpus_batch *batch = &t->batch;
  const uint64_t all = batch_count(t) * t->settings.batch;
  const uint64_t first = number * t->settings.batch + (uint64_t)batch->places * t->ranks.started.rank;
  for (uint32_t row = 0; row < batch->places; row++) {
    const size_t window = (size_t)((double)(first + row) / (double)all * (double)window_count(t));
    corpus_take_sample(&t->validation.text, window * batch->labels, batch, row, t->tokens, t->labels);
  }
}

/* The program ----------------------------------------------------------------------------------------------------- */

static rondo_status compile(training *t) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = t->compiled};
  rondo_program *program = NULL;
  TOOL_TRY(rondo_program_create(&(rondo_program_options){RONDO_PROGRAM_OPTIONS_INIT, .name = "validate"}, &program));
  rondo_status status = model_build_loss(&t->model, program, t->batch.places, NULL);
  if (!status) status = rondo_compile(program, t->device, &options, &t->validation.compiled);
  rondo_program_destroy(program);
  return status;
}

/* The first validation has no loss to compare with, unless it was before a checkpoint. */
static void warn_of_patience(const train_settings *s) {
  if (s->patience == 0 || (s->patience + (s->resume ? 0 : 1)) * s->validate_every < s->steps) return;
  tool_warn("--patience %" PRIu64 " cannot end training early: there are too few validations in %" PRIu64
            " steps, one every %" PRIu64 "; use a lower --validate-every",
            s->patience, s->steps, s->validate_every);
}

int train_validation_prepare(training *t) {
  train_validation *v = &t->validation;
  const train_settings *s = &t->settings;
  if (s->validation == 0) return TOOL_OK;
  v->steps = calloc(s->steps / s->validate_every + 1, sizeof *v->steps);
  v->losses = calloc(s->steps / s->validate_every + 1, sizeof *v->losses);
  if (!v->steps || !v->losses) return tool_fail_memory("the validation losses of %" PRIu64 " steps", s->steps);
  if (compile(t)) return tool_fail_status("the validation could not be compiled");
  warn_of_patience(s);
  return TOOL_OK;
}

int train_validation_end(training *t) {
  free(t->validation.steps);
  free(t->validation.losses);
  rondo_weights_destroy(t->validation.best);
  return rondo_compiled_destroy(t->validation.compiled) ? tool_fail_status("the validation") : TOOL_OK;
}

/* Validating ------------------------------------------------------------------------------------------------------ */

static rondo_status run_batch(training *t, uint64_t number, float *out_loss) {
  rondo_compiled *compiled = t->validation.compiled;
  take_batch(t, number);
  TOOL_TRY(train_write_batch(t, compiled));
  TOOL_TRY(rondo_compiled_run(compiled));
  return rondo_compiled_read(compiled, "loss", out_loss, sizeof *out_loss);
}

static rondo_status find_loss(training *t, float *out_loss) {
  double sum = 0;
  for (uint64_t i = 0; i < batch_count(t); i++) {
    float loss;
    TOOL_TRY(run_batch(t, i, &loss));
    sum += (double)loss;
  }
  *out_loss = (float)(sum / (double)batch_count(t));
  return train_ranks_mean(t, out_loss);
}

/* A model that cannot be written does not end training: it is tried again at the end. */
static int keep_best(training *t) {
  const train_settings *s = &t->settings;
  char problem[TRAIN_PROBLEM_BYTES];
  rondo_weights_destroy(t->validation.best);
  t->validation.best = NULL;
  if (!s->save && !s->checkpoint) return TOOL_OK;
  if (model_gather(&t->model, t->compiled, &t->validation.best))
    return tool_fail_status("the model after step %" PRIu64, t->progress.step);
  if (!s->save || train_save_model(t, t->validation.best, problem)) return TOOL_OK;
  if (t->ranks.is_lost) return tool_fail("the model after step %" PRIu64 ": %s", t->progress.step, problem);
  tool_warn("step %" PRIu64 ": %s; training goes on", t->progress.step, problem);
  return TOOL_OK;
}

/* A training that is given more steps has validated after its earlier last step too, which --patience does not count.
 */
static int note_loss(training *t, float loss) {
  train_validation *v = &t->validation;
  train_best *best = &t->progress.best;
  v->steps[v->count] = t->progress.step;
  v->losses[v->count++] = loss;
  if (t->progress.step % t->settings.validate_every == 0) best->since++;
  if (best->step > 0 && !(loss < best->loss)) return TOOL_OK;
  *best = (train_best){.step = t->progress.step, .loss = loss};
  return keep_best(t);
}

int train_validate_when_due(training *t) {
  const train_settings *s = &t->settings;
  const uint64_t step = t->progress.step;
  float loss;
  if (s->validation == 0 || (step % s->validate_every != 0 && step != s->steps)) return TOOL_OK;
  assert(t->validation.count <= s->steps / s->validate_every);
  if (find_loss(t, &loss)) return tool_fail_status("the validation after step %" PRIu64, step);
  if (!isfinite(loss)) return train_fail_not_a_number(t, "validation");
  return note_loss(t, loss);
}

bool train_has_no_patience(const training *t) {
  return t->settings.patience > 0 && t->progress.best.since >= t->settings.patience;
}
