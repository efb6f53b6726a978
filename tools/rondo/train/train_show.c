/* SPDX-License-Identifier: MIT
 * Results of a training as text and as JSON.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/file.h"
#include "common/fingerprint.h"
#include "common/tool.h"
#include "train/train.h"

/* How many of the last twentieth of all steps belong to this run. */
static uint64_t last_count(const training *t) {
  const uint64_t wanted = t->settings.steps < 20 ? 1 : t->settings.steps / 20;
  const uint64_t made = t->recorded.end - t->recorded.first;
  return wanted < made ? wanted : made;
}

static uint64_t compared_count(const training *t) { return t->eager.end - t->eager.first; }

void train_evaluate(training *t) {
  const training_run *run = &t->recorded;
  const uint64_t count = last_count(t);
  double sum = 0;
  for (uint64_t i = run->end - count; i < run->end; i++) sum += (double)run->losses[i];
  t->loss_first = (double)t->progress.first_loss;
  t->loss_last = sum / (double)count;
  t->is_identical =
      memcmp(run->losses + run->first, t->eager.losses + run->first, compared_count(t) * sizeof *run->losses) == 0;
}

static void write_description(const training *t, json *out) {
  const train_settings *s = &t->settings;
  json_text(out, "device", s->device);
  json_text(out, "device_description", t->device_info.description);
  json_integer(out, "workers", t->device_info.workers);
  json_text(out, "text", t->path);
  json_integer(out, "text_bytes", t->corpus.count);
  json_integer(out, "vocabulary", t->model.vocabulary.count);
  json_text(out, "model", s->model);
  for (size_t i = 0; i < MODEL_SIZES; i++) {
    if (t->model.sizes[i] > 0) json_integer(out, model_size_rows[i].name, t->model.sizes[i]);
  }
  json_integer(out, "batch", s->batch);
  json_integer(out, "seed", s->seed);
  json_real(out, "learning_rate", s->learning_rate);
}

static void write_progress(const training *t, json *out) {
  char history[FINGERPRINT_TEXT];
  fingerprint_write(t->progress.loss_history, history);
  json_integer(out, "steps", t->settings.steps);
  json_integer(out, "steps_before", t->recorded.first);
  json_integer(out, "steps_done", t->recorded.end);
  json_integer(out, "steps_compared", compared_count(t));
  if (t->resumed) json_integer(out, "checkpoint_steps", t->resumed_steps);
  json_text(out, "loss_history", history);
}

/* Losses of the steps that this command ran. */
static void write_losses(const training *t, json *out) {
  json_begin_array(out, "losses");
  for (uint64_t i = t->recorded.first; i < t->recorded.end; i++) json_real(out, NULL, (double)t->recorded.losses[i]);
  json_end(out);
}

static int show_json(training *t) {
  json out;
  json_begin(&out);
  write_description(t, &out);
  write_progress(t, &out);
  json_integer(&out, "parameters", t->info.parameters);
  json_real(&out, "loss_first", t->loss_first);
  json_real(&out, "loss_last", t->loss_last);
  if (compared_count(t) > 0)
    json_boolean(&out, "identical", t->is_identical);
  else
    json_verbatim(&out, "identical", "null");
  write_losses(t, &out);
  json_integer(&out, "kernels", t->info.kernels);
  run_times_to_json(&t->eager.times, &out, "eager");
  run_times_to_json(&t->recorded.times, &out, "recorded");
  memory_to_json(&t->info, &out);
  if (t->is_saved) json_text(&out, "saved", t->settings.save);
  if (t->settings.checkpoint) json_text(&out, "checkpoint", t->settings.checkpoint);
  if (t->explanation) json_verbatim(&out, "explanation", t->explanation);
  return json_print(&out);
}

static void show_model(const training *t) {
  printf("model    %s, %" PRIu64 " parameters:", t->settings.model, t->info.parameters);
  for (size_t i = 0, shown = 0; i < MODEL_SIZES; i++) {
    if (t->model.sizes[i] > 0) printf("%s %s %" PRIu32, shown++ ? "," : "", model_size_rows[i].name, t->model.sizes[i]);
  }
  putchar('\n');
}

static void print_path(const char *path) {
  tool_print_text(path);
  putchar('\n');
}

static void show_steps(const training *t) {
  const train_settings *s = &t->settings;
  printf("steps    %" PRIu64 " with batch %" PRIu64 ", %" PRIu32 " kernels each\n", s->steps, s->batch,
         t->info.kernels);
  if (t->resumed) {
    printf("resumed  after step %" PRIu64 ", from ", t->recorded.first);
    print_path(s->resume);
    if (t->resumed_steps != s->steps)
      printf("         the checkpoint is for %" PRIu64
             " steps; from here on the learning rate follows the schedule of %" PRIu64 "\n",
             t->resumed_steps, s->steps);
  }
  if (train_is_cut_short(t)) printf("stopped  after step %" PRIu64 "\n", t->recorded.end);
}

static void show_losses(const training *t) {
  printf("loss     %.4f -> %.4f nats a byte (first step -> mean of the last %" PRIu64 ")\n", t->loss_first,
         t->loss_last, last_count(t));
  if (compared_count(t) == 0) {
    printf("losses   not compared with those of an eager run\n");
    return;
  }
  printf("losses   %s", t->is_identical ? "identical: both runs gave the same, bit for bit" : "NOT identical");
  if (compared_count(t) < t->recorded.end - t->recorded.first)
    printf(", in the first %" PRIu64 " steps", compared_count(t));
  putchar('\n');
}

static int show_text(training *t) {
  const train_settings *s = &t->settings;
  tool_print_device("device   ", s->device, &t->device_info);
  printf("text     ");
  tool_print_text(file_display_name(t->path));
  printf(": %zu bytes, %" PRIu32 " different\n", t->corpus.count, t->model.vocabulary.count);
  show_model(t);
  show_steps(t);
  show_losses(t);
  run_times_print_head("a step until done, us");
  if (compared_count(t) > 0) run_times_print(&t->eager.times, "eager");
  run_times_print(&t->recorded.times, "recorded");
  memory_print(&t->info);
  if (t->is_saved) {
    printf("saved    ");
    print_path(s->save);
  }
  if (s->checkpoint && t->kept_step > 0) {
    printf("checkpoint ");
    tool_print_text(s->checkpoint);
    printf(", after step %" PRIu64 "\n", t->kept_step);
  }
  if (t->explanation) {
    putchar('\n');
    tool_print_text(t->explanation);
  }
  return TOOL_OK;
}

int train_explain(training *t) {
  const rondo_explain_format format = t->settings.json ? RONDO_EXPLAIN_JSON : RONDO_EXPLAIN_TEXT;
  if (rondo_compiled_measure(t->compiled, 0, NULL))
    return tool_fail_status("--explain: measuring recorded and eager steps");
  return rondo_compiled_explain(t->compiled, format, &t->explanation) ? tool_fail_status("--explain") : TOOL_OK;
}

int train_show(training *t) { return t->settings.json ? show_json(t) : show_text(t); }
