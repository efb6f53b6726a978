/* SPDX-License-Identifier: MIT
 * The runs of a training. First, some or all of the steps run eagerly from the current state, for comparison. Then all
 * steps run from the same state as the recorded graph; checkpoints are made in this run. An interrupt ends either run
 * after the current step, and the result is saved.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/fingerprint.h"
#include "common/interrupt.h"
#include "common/tool.h"
#include "train/train.h"

/* Steps ------------------------------------------------------------------------------------------------------------ */

rondo_status train_write_batch(const training *t, rondo_compiled *compiled) {
  const size_t places = t->batch.places;
  TOOL_TRY(rondo_compiled_write(compiled, "tokens", t->tokens, places * t->batch.context * sizeof *t->tokens));
  return rondo_compiled_write(compiled, "labels", t->labels, places * t->batch.labels * sizeof *t->labels);
}

static rondo_status write_inputs(training *t) {
  const uint64_t places = t->batch.places, skipped = places * t->ranks.started.rank;
  draw_skip(&t->progress.batches, skipped);
  corpus_draw_batch(&t->corpus, &t->progress.batches, &t->batch, t->tokens, t->labels);
  draw_skip(&t->progress.batches, t->settings.batch - skipped - places);
  return train_write_batch(t, t->compiled);
}

/* Runs the next step. */
static rondo_status train_step(training *t, run_function run, training_run *out) {
  train_progress *progress = &t->progress;
  float *loss = &out->losses[progress->step];
  TOOL_TRY(write_inputs(t));
  TOOL_TRY(run_timed(t->compiled, run, &out->times.cost));
  const samples *total = &out->times.cost.samples[COST_TOTAL];
  out->step_us[progress->step] = (float)total->values[total->count - 1];
  TOOL_TRY(rondo_compiled_read(t->compiled, "loss", loss, sizeof *loss));
  TOOL_TRY(train_ranks_step(t, loss, out->step_us[progress->step]));
  if (progress->step == 0) progress->first_loss = *loss;
  t->losses[progress->step] = *loss;
  progress->loss_history = fingerprint_add(progress->loss_history, loss, sizeof *loss);
  out->end = ++progress->step;
  return RONDO_OK;
}

static int initialize(training *t) {
  t->progress =
      (train_progress){.batches = draw_create(t->settings.seed, DRAW_BATCHES), .loss_history = FINGERPRINT_START};
  return model_initialize(&t->model, t->compiled, t->settings.seed);
}

/* Resets the states to the checkpoint, or to the initial parameters. */
static int put_back(training *t) {
  const int result = t->resumed ? train_checkpoint_apply(t) : initialize(t);
  if (result != TOOL_OK) return result;
  return train_ranks_restart(t) ? tool_fail_status("the states of rank 0") : TOOL_OK;
}

/* End of a run ---------------------------------------------------------------------------------------------------- */

static int fail_step(const training *t, const char *label) {
  char kept[TRAIN_PROBLEM_BYTES] = "";
  if (t->kept_step > 0)
    snprintf(kept, sizeof kept, " (the checkpoint %s is of step %" PRIu64 ")", t->settings.checkpoint, t->kept_step);
  return tool_fail_status("%s, step %" PRIu64 "%s", label, t->progress.step + 1, kept);
}

int train_fail_not_a_number(const training *t, const char *label) {
  char kept[TRAIN_PROBLEM_BYTES] = "";
  if (t->kept_step > 0) {
    snprintf(kept, sizeof kept, "; the last good checkpoint, %s, is of step %" PRIu64, t->settings.checkpoint,
             t->kept_step);
  }
  return tool_fail("%s, step %" PRIu64 ": the loss is no longer a number; train again with a lower --learning-rate%s",
                   label, t->progress.step, kept);
}

/* Writes a checkpoint after the last step of a run, unless that step already has one. */
static int keep_checkpoint(training *t) {
  char problem[TRAIN_PROBLEM_BYTES];
  if (!t->settings.checkpoint || t->kept_step == t->progress.step) return TOOL_OK;
  return train_checkpoint_write(t, problem) ? TOOL_OK : tool_fail("step %" PRIu64 ": %s", t->progress.step, problem);
}

bool train_save_model(training *t, const rondo_weights *model, char problem[TRAIN_PROBLEM_BYTES]) {
  const bool is_written = t->ranks.started.rank > 0 || rondo_weights_save(model, t->settings.save) == RONDO_OK;
  if (!is_written)
    snprintf(problem, TRAIN_PROBLEM_BYTES, "the model could not be saved: %s", rondo_last_error()->message);
  t->is_saved = train_ranks_agree(t, is_written);
  if (is_written && !t->is_saved)
    snprintf(problem, TRAIN_PROBLEM_BYTES, "%s",
             t->ranks.is_lost ? rondo_last_error()->message : "another rank could not save the model");
  return t->is_saved;
}

/* With validation, it is the model with the least loss, which was written when it was found, unless that was before the
 * training was resumed. */
static int keep_model(training *t) {
  char problem[TRAIN_PROBLEM_BYTES];
  rondo_weights *current = NULL;
  if (!t->settings.save || t->is_saved) return TOOL_OK;
  const bool has_best = t->progress.best.step > 0;
  if (!has_best && model_gather(&t->model, t->compiled, &current)) return tool_fail_status("the model to save");
  const bool is_saved = train_save_model(t, has_best ? t->validation.best : current, problem);
  rondo_weights_destroy(current);
  return is_saved ? TOOL_OK : tool_fail("%s", problem);
}

int train_keep(training *t) {
  const int kept = keep_checkpoint(t), saved = keep_model(t);
  return kept == TOOL_OK ? saved : kept;
}

/* After a failure, tries again at the next interval. Returns false if a rank was lost. */
static bool keep_when_due(training *t) {
  char problem[TRAIN_PROBLEM_BYTES];
  if (!t->settings.checkpoint || t->progress.step % t->settings.checkpoint_every != 0) return true;
  if (!train_checkpoint_write(t, problem) && !t->ranks.is_lost)
    tool_warn("step %" PRIu64 ": %s; training goes on", t->progress.step, problem);
  return !t->ranks.is_lost;
}

static void say_interrupted(const training *t) {
  if (t->ranks.started.rank > 0) return;
  const train_settings *s = &t->settings;
  char saved[TRAIN_PROBLEM_BYTES] = "";
  const uint64_t best = t->progress.best.step;
  if (t->is_saved && best == 0) snprintf(saved, sizeof saved, "; the model at this step is saved in %s", s->save);
  if (t->is_saved && best > 0)
    snprintf(saved, sizeof saved, "; the model of step %" PRIu64 ", with the least validation loss, is saved in %s",
             best, s->save);
  tool_warn("interrupted after step %" PRIu64 " of %" PRIu64 "%s; %s%s%s", t->progress.step, s->steps, saved,
            s->checkpoint ? "the checkpoint is " : "with --checkpoint FILE, training could be resumed",
            s->checkpoint ? s->checkpoint : "", s->checkpoint ? "; resume with:" : "");
  if (s->checkpoint) train_show_how_to_resume(t);
}

/* The model of either run may be saved: both are equally trained. */
static int end_interrupted(training *t, const training_run *run) {
  if (run->end == run->first) {
    tool_warn("interrupted before training: there is nothing to save");
    return interrupt_status(t->signal);
  }
  if (train_keep(t) != TOOL_OK) return TOOL_FAILURE;
  say_interrupted(t);
  return interrupt_status(t->signal);
}

/* Runs ------------------------------------------------------------------------------------------------------------ */

/* Estimates the remaining time from the mean time of a step so far. */
static void describe_time_left(uint64_t elapsed_ns, uint64_t done, uint64_t left, char out[32]) {
  const double seconds = (double)elapsed_ns / 1e9 / (double)done * (double)left;
  if (seconds < 100)
    snprintf(out, 32, "%.0f s", seconds);
  else if (seconds < 6000)
    snprintf(out, 32, "%.0f min", seconds / 60);
  else
    snprintf(out, 32, "%.1f h", seconds / 3600);
}

/* The least and the largest loss of the ranks' parts of the batch, and the rate of all. */
static void describe_ranks(const training *t, double tokens_per_second, char out[120]) {
  const train_ranks *r = &t->ranks;
  out[0] = '\0';
  if (!r->communicator) return;
  float low = r->all[0].loss, high = low;
  for (uint32_t i = 1; i < r->started.size; i++) {
    low = fminf(low, r->all[i].loss);
    high = fmaxf(high, r->all[i].loss);
  }
  snprintf(out, 120, " (%.3f to %.3f on %" PRIu32 " ranks), %.0f tokens/s", (double)low, (double)high, r->started.size,
           tokens_per_second);
}

static void describe_validation(const training *t, char out[48]) {
  const train_validation *v = &t->validation;
  out[0] = '\0';
  if (v->count > 0) snprintf(out, 48, ", validation %.3f", (double)v->losses[v->count - 1]);
}

static double seconds_of_steps(const training_run *run) {
  return (double)(clock_ns() - run->begin_ns - run->aside_ns) / 1e9;
}

static void show_progress(const training *t, const char *label, uint64_t end, const training_run *run) {
  char left[32], ranks[120], validation[48];
  const uint64_t step = t->progress.step, tokens = (step - run->first) * t->settings.batch * t->batch.context;
  describe_time_left(clock_ns() - run->begin_ns, step - run->first, end - step, left);
  describe_ranks(t, (double)tokens / seconds_of_steps(run), ranks);
  describe_validation(t, validation);
  tool_show_progress("%s: %" PRIu64 " of %" PRIu64 " steps, loss %.3f%s%s, %s left", label, step, end,
                     (double)run->losses[step - 1], ranks, validation, left);
}

/* Ranks hear of a signal after a step, so that they stop after the same one. */
static bool must_stop(training *t) {
  if (!t->ranks.communicator) t->signal = interrupt_signal();
  return t->signal != 0;
}

/* What the run that keeps checkpoints does after a step: validation comes before the checkpoint, which keeps its
 * result. */
static int follow_step(training *t, const char *label, training_run *run) {
  const uint64_t begin = clock_ns();
  if (train_validate_when_due(t) != TOOL_OK || train_sample_when_due(t) != TOOL_OK) return TOOL_FAILURE;
  if (!keep_when_due(t)) return fail_step(t, label);
  run->aside_ns += clock_ns() - begin;
  return TOOL_OK;
}

/* Runs the steps up to, but not including, `end`. Writes checkpoints on the way if `keeps` is set. An interrupt in the
 * last step has no effect in the run that keeps checkpoints. */
static int run_steps(training *t, const char *label, run_function run, uint64_t end, bool keeps, training_run *out) {
  out->begin_ns = clock_ns();
  out->first = out->end = t->progress.step;
  while (t->progress.step < end && !must_stop(t) && !train_has_no_patience(t)) {
    if (train_step(t, run, out)) return fail_step(t, label);
    const double loss = (double)out->losses[t->progress.step - 1];
    if (!isfinite(loss)) return train_fail_not_a_number(t, label);
    if (keeps && follow_step(t, label, out) != TOOL_OK) return TOOL_FAILURE;
    show_progress(t, label, end, out);
  }
  out->times.seconds = seconds_of_steps(out);
  tool_clear_progress();
  const bool is_done = keeps && (t->progress.step == t->settings.steps || train_has_no_patience(t));
  return must_stop(t) && !is_done ? end_interrupted(t, out) : TOOL_OK;
}

bool train_is_cut_short(const training *t) { return t->recorded.end < t->settings.steps; }

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

int train_both(training *t) {
  const train_settings *s = &t->settings;
  const uint64_t end = s->stop_after ? least(s->stop_after, s->steps) : s->steps;
  int result = put_back(t);
  if (result != TOOL_OK) return result;
  const uint64_t compared = least(end, t->progress.step + s->compare);
  result = run_steps(t, "eager", rondo_compiled_run_eager, compared, false, &t->eager);
  if (result == TOOL_OK) result = put_back(t);
  return result == TOOL_OK ? run_steps(t, "recorded", rondo_compiled_run, end, true, &t->recorded) : result;
}
