/* SPDX-License-Identifier: MIT
 * Results of a training as text and as JSON, and how to resume it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/file.h"
#include "common/fingerprint.h"
#include "common/shell.h"
#include "common/tool.h"
#include "train/train.h"

/* How many of the last twentieth of all steps belong to this run. */
static uint64_t last_count(const training *t) {
  const uint64_t wanted = t->settings.steps < 20 ? 1 : t->settings.steps / 20;
  const uint64_t made = t->recorded.end - t->recorded.first;
  return wanted < made ? wanted : made;
}

uint64_t train_compared_count(const training *t) {
  const uint64_t eager = t->eager.end - t->eager.first, recorded = t->recorded.end - t->recorded.first;
  return eager < recorded ? eager : recorded;
}

void train_evaluate(training *t) {
  const training_run *run = &t->recorded;
  const uint64_t count = last_count(t);
  double sum = 0;
  for (uint64_t i = run->end - count; i < run->end; i++) sum += (double)run->losses[i];
  t->loss_first = (double)t->progress.first_loss;
  t->loss_last = sum / (double)count;
  t->is_identical = memcmp(run->losses + run->first, t->eager.losses + run->first,
                           train_compared_count(t) * sizeof *run->losses) == 0;
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
  json_integer(out, "steps_compared", train_compared_count(t));
  if (t->resumed) json_integer(out, "checkpoint_steps", t->resumed_steps);
  json_text(out, "loss_history", history);
}

/* Losses of all steps, also of those before the checkpoint. */
static void write_losses(const training *t, json *out) {
  json_integer(out, "losses_from", t->losses_from);
  json_begin_array(out, "losses");
  for (uint64_t i = t->losses_from; i < t->recorded.end; i++) json_real(out, NULL, (double)t->losses[i]);
  json_end(out);
}

static double tokens_per_second(const training *t) {
  const uint64_t steps = t->recorded.end - t->recorded.first;
  return (double)(steps * t->settings.batch * t->batch.context) / fmax(1e-9, t->recorded.times.seconds);
}

static double step_us_of(const training *t, const train_rank *rank) {
  return rank->us / fmax(1, (double)(t->recorded.end - t->recorded.first));
}

static void show_ranks(const training *t) {
  const train_ranks *r = &t->ranks;
  if (!r->communicator) return;
  printf("ranks    %" PRIu32 " of %s, with %" PRIu32 " of the batch each, on %s: %.0f tokens/s\n", r->started.size,
         r->started.name, t->batch.places, r->info.engine, tokens_per_second(t));
  printf("         each step reduces %" PRIu64 " B of gradients in %" PRIu32 " buckets\n", t->info.reduced_bytes,
         t->info.buckets);
  for (uint32_t i = 0; i < r->started.size; i++) {
    const train_rank *rank = &r->all[i];
    printf("rank %-3" PRIu32 " %s, %s: loss %.4f in the last step, %.1f us a step\n", i, rank->host, rank->device,
           (double)rank->loss, step_us_of(t, rank));
  }
}

static void write_validation(const training *t, json *out) {
  const train_validation *v = &t->validation;
  if (t->settings.validation == 0) return;
  json_begin_object(out, "validation");
  json_integer(out, "percent", t->settings.validation);
  json_integer(out, "text_bytes", v->text.count);
  json_begin_array(out, "losses");
  for (size_t i = 0; i < v->count; i++) {
    json_begin_object(out, NULL);
    json_integer(out, "step", v->steps[i]);
    json_real(out, "loss", (double)v->losses[i]);
    json_end(out);
  }
  json_end(out);
  if (t->progress.best.step > 0) {
    json_integer(out, "best_step", t->progress.best.step);
    json_real(out, "best_loss", (double)t->progress.best.loss);
  }
  json_boolean(out, "stopped_early", train_is_cut_short(t) && train_has_no_patience(t));
  json_end(out);
}

static void write_samples(const training *t, json *out) {
  if (t->settings.sample_every == 0) return;
  json_begin_array(out, "samples");
  for (size_t i = 0; i < t->samples.count; i++) {
    json_begin_object(out, NULL);
    json_integer(out, "step", t->samples.items[i].step);
    json_text(out, "text", t->samples.items[i].text);
    json_end(out);
  }
  json_end(out);
}

static void write_ranks(const training *t, json *out) {
  const train_ranks *r = &t->ranks;
  if (!r->communicator) return;
  json_text(out, "engine", r->info.engine);
  json_real(out, "tokens_per_second", tokens_per_second(t));
  json_integer(out, "buckets", t->info.buckets);
  json_integer(out, "reduced_bytes", t->info.reduced_bytes);
  json_begin_array(out, "ranks");
  for (uint32_t i = 0; i < r->started.size; i++) {
    const train_rank *rank = &r->all[i];
    json_begin_object(out, NULL);
    json_text(out, "host", rank->host);
    json_text(out, "device", rank->device);
    json_integer(out, "workers", rank->workers);
    json_real(out, "loss", (double)rank->loss);
    json_real(out, "step_us", step_us_of(t, rank));
    json_end(out);
  }
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
  if (train_compared_count(t) > 0)
    json_boolean(&out, "identical", t->is_identical);
  else
    json_verbatim(&out, "identical", "null");
  write_losses(t, &out);
  write_validation(t, &out);
  write_samples(t, &out);
  write_ranks(t, &out);
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
  if (!train_is_cut_short(t)) return;
  printf("stopped  after step %" PRIu64, t->recorded.end);
  if (train_has_no_patience(t))
    printf(": %" PRIu64 " validations gave no lower loss than before", t->progress.best.since);
  putchar('\n');
}

static void show_validation(const training *t) {
  const train_validation *v = &t->validation;
  const train_best *best = &t->progress.best;
  if (t->settings.validation == 0) return;
  printf("validation on the last %zu bytes of the text: ", v->text.count);
  if (best->step == 0) {
    printf("no step was validated\n");
    return;
  }
  printf("%.4f nats a byte after step %" PRIu64, (double)best->loss, best->step);
  if (best->step > t->recorded.first)
    printf(", the least of %zu%s\n", v->count, t->resumed ? " since it was resumed" : "");
  else
    printf(", before it was resumed; %zu since gave no lower loss\n", v->count);
}

static void show_losses(const training *t) {
  printf("loss     %.4f -> %.4f nats a byte (first step -> mean of the last %" PRIu64 ")\n", t->loss_first,
         t->loss_last, last_count(t));
  if (train_compared_count(t) == 0) {
    printf("losses   not compared with those of an eager run\n");
    return;
  }
  printf("losses   %s", t->is_identical ? "identical: both runs gave the same, bit for bit" : "NOT identical");
  if (train_compared_count(t) < t->recorded.end - t->recorded.first)
    printf(", in the first %" PRIu64 " steps", train_compared_count(t));
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
  show_ranks(t);
  show_losses(t);
  show_validation(t);
  run_times_print_head("a step until done, us");
  if (train_compared_count(t) > 0) run_times_print(&t->eager.times, "eager");
  run_times_print(&t->recorded.times, "recorded");
  memory_print(&t->info);
  if (t->is_saved) {
    printf("saved    ");
    tool_print_text(s->save);
    if (t->progress.best.step > 0) printf(", the model after step %" PRIu64, t->progress.best.step);
    putchar('\n');
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
  if (t->ranks.started.rank > 0) return TOOL_OK; /* rank 0 reports */
  const rondo_explain_format format = t->settings.json ? RONDO_EXPLAIN_JSON : RONDO_EXPLAIN_TEXT;
  rondo_status status = train_write_batch(t, t->compiled);
  if (!status && !t->ranks.communicator) status = rondo_compiled_measure(t->compiled, 0, NULL); /* which ranks cannot */
  if (status) return tool_fail_status("--explain: measuring recorded and eager steps");
  return rondo_compiled_explain(t->compiled, format, &t->explanation) ? tool_fail_status("--explain") : TOOL_OK;
}

int train_show(training *t) {
  if (t->ranks.started.rank > 0) return TOOL_OK;
  return t->settings.json ? show_json(t) : show_text(t);
}

/* Resume ---------------------------------------------------------------------------------------------------------- */

/* Whether the resuming command must not repeat the option. */
static bool is_left_out(const option_row *row) {
  return row && (strcmp(row->name, "resume") == 0 || strcmp(row->name, "stop-after") == 0);
}

void train_show_how_to_resume(const training *t) {
  const launcher *started = &t->ranks.started;
  const bool is_mpirun = started->mpi && started->mpi[0];
  fputs("  ", stderr);
  if (started->size > 1 && is_mpirun) fprintf(stderr, "mpirun -n %" PRIu32 " ", started->size);
  if (started->size > 1 && !is_mpirun) fprintf(stderr, "(by the same command of %s) ", started->name);
  fputs("rondo train --resume ", stderr);
  shell_print(stderr, t->settings.checkpoint);
  for (int i = 1; i < t->argument_count;) {
    const option_use use = options_look(t->table, t->argument_count - i, t->arguments + i);
    const int next = i + use.arguments;
    if (is_left_out(use.row)) i = next;
    for (; i < next; i++) {
      fputc(' ', stderr);
      shell_print(stderr, t->arguments[i]);
    }
  }
  fputc('\n', stderr);
}
