/* SPDX-License-Identifier: MIT
 * rondo train: trains the model twice from the same seed on the same batches, kernel by kernel and recorded, and
 * compares the losses bit for bit. Both runs use one compiled program, whose states are set back in between.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "corpus.h"
#include "file.h"
#include "json.h"
#include "model.h"
#include "options.h"
#include "runs.h"
#include "tool.h"

typedef struct train_settings {
  const char *model, *device, *save, *dump_graph, *trace, *report;
  uint64_t sizes[MODEL_SIZES], steps, seed, batch, workers; /* 0 in sizes, steps, batch: the model's own */
  double learning_rate;                                     /* 0: likewise */
  bool json;
} train_settings;

static const train_settings defaults = {.model = "character", .device = "cpu", .seed = 1};

#define OFFSET(member) offsetof(train_settings, member)

static const option_row rows[] = {
    {"model", "KIND", OPTION_TEXT, OFFSET(model), 0, 0, "character or gpt"},
    {"device", "NAME", OPTION_TEXT, OFFSET(device), 0, 0, "device to train on"},
    {"steps", "N", OPTION_COUNT, OFFSET(steps), 1, 10e6, "steps of each of the two runs"},
    {"seed", "N", OPTION_COUNT, OFFSET(seed), 0, 0, "seed of the first parameters and of the batches"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 1, 1 << 20, "places of the text in a step"},
    {"context", "N", OPTION_COUNT, OFFSET(sizes[MODEL_CONTEXT]), 1, 1024, "bytes that the model sees"},
    {"embedding", "N", OPTION_COUNT, OFFSET(sizes[MODEL_EMBEDDING]), 1, 1024, "numbers that stand for a byte"},
    {"hidden", "N", OPTION_COUNT, OFFSET(sizes[MODEL_HIDDEN]), 1, 16384, "width of the hidden layer"},
    {"layers", "N", OPTION_COUNT, OFFSET(sizes[MODEL_LAYERS]), 1, 64, "blocks of a gpt"},
    {"width", "N", OPTION_COUNT, OFFSET(sizes[MODEL_WIDTH]), 1, 4096, "numbers that stand for a byte in a gpt"},
    {"heads", "N", OPTION_COUNT, OFFSET(sizes[MODEL_HEADS]), 1, 64, "heads of attention in a block of a gpt"},
    {"learning-rate", "X", OPTION_REAL, OFFSET(learning_rate), 1e-9, 100, "the highest; it rises to it, then falls"},
    {"workers", "N", OPTION_COUNT, OFFSET(workers), 0, 1024, "worker threads of a CPU device; 0 chooses"},
    {"save", "FILE", OPTION_TEXT, OFFSET(save), 0, 0, "write the model to FILE (safetensors)"},
    {"dump-graph", "FILE", OPTION_TEXT, OFFSET(dump_graph), 0, 0, "write the recorded step to FILE (JSON)"},
    {"trace", "FILE", OPTION_TEXT, OFFSET(trace), 0, 0, "write what ran when to FILE (Chrome trace events)"},
    {"report", "FILE", OPTION_TEXT, OFFSET(report), 0, 0, "write a page of the recorded step to FILE (HTML)"},
    OPTION_ROW_JSON(train_settings),
};

/* Every Debian has it. */
#define DEFAULT_TEXT "/usr/share/common-licenses/GPL-3"

static const option_table table = {
    .command = "rondo train",
    .operand = "TEXT",
    .operand_help = "any file; '-' is standard input",
    .operand_default = DEFAULT_TEXT,
    .description =
        "Trains a language model on the bytes of a text, twice from the same seed: first kernel by kernel, then\n"
        "with the whole step (forward, loss, backward, optimizer) recorded as one graph. Says whether both gave\n"
        "the same losses bit for bit, and what a step costs in each. Losses are in nats a byte: the first\n"
        "is that of the first step, the last the mean of the last twentieth of the steps.\n\n"
        "Where nothing else is asked for, a character model has context 8, embedding 24 and hidden 256, and is\n"
        "trained in 10000 steps of batch 64 with learning rate 0.005; a gpt has context 64, layers 4, width 128\n"
        "and heads 4, and is trained in 1000 steps of batch 8 with learning rate 0.002.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

typedef struct training_run {
  float *losses; /* one a step */
  run_times times;
} training_run;

typedef struct training {
  train_settings settings;
  const char *path;
  corpus corpus;
  language_model model;
  corpus_batch batch;
  rondo_device *device;
  rondo_device_info device_info;
  rondo_compiled *compiled;
  rondo_compiled_info info;
  int32_t *tokens, *labels; /* a batch */
  training_run unrecorded, recorded;
  bool is_identical;
  double loss_first, loss_last;
} training;

/* Making ready ---------------------------------------------------------------------------------------------------- */

/* What the options leave open is the model's own. */
static int choose_model(training *t) {
  train_settings *s = &t->settings;
  const model_kind *kind = model_kind_named(s->model);
  if (!kind) return tool_fail_usage("--model takes %s, not '%s'", model_kind_names(), s->model);
  t->model.kind = kind;
  for (size_t i = 0; i < MODEL_SIZES; i++) {
    if (s->sizes[i] > 0 && kind->sizes[i] == 0)
      return tool_fail_usage("--%s is no size of the model %s", model_size_rows[i].name, kind->name);
    t->model.sizes[i] = s->sizes[i] > 0 ? (uint32_t)s->sizes[i] : kind->sizes[i];
  }
  const char *objection = kind->objection(&t->model);
  if (objection) return tool_fail_usage("%s", objection);
  if (s->batch == 0) s->batch = kind->batch;
  if (s->steps == 0) s->steps = kind->steps;
  if (s->learning_rate <= 0) s->learning_rate = kind->learning_rate;
  t->batch = (corpus_batch){(uint32_t)s->batch, t->model.sizes[MODEL_CONTEXT], (uint32_t)model_labels(&t->model)};
  return TOOL_OK;
}

static int load_text(training *t) {
  if (strcmp(t->path, DEFAULT_TEXT) == 0 && access(DEFAULT_TEXT, R_OK) != 0)
    return tool_fail("%s: %s; name another TEXT to learn", DEFAULT_TEXT, strerror(errno));
  if (corpus_load(t->path, t->batch.context, &t->corpus) != TOOL_OK) return TOOL_FAILURE;
  t->model.vocabulary = t->corpus.vocabulary;
  for (uint32_t i = 0; i < t->batch.context; i++)
    t->model.opening[i] = t->corpus.vocabulary.byte_of[t->corpus.tokens[i]];
  return TOOL_OK;
}

static int create_run(training_run *run, size_t steps) {
  run->losses = calloc(steps, sizeof *run->losses);
  if (!run->losses) return tool_fail("there is no memory for the losses of %zu steps", steps);
  return run_times_create(&run->times, steps);
}

static int create_buffers(training *t) {
  const train_settings *s = &t->settings;
  t->tokens = calloc((size_t)t->batch.places * t->batch.context, sizeof *t->tokens);
  t->labels = calloc((size_t)t->batch.places * t->batch.labels, sizeof *t->labels);
  if (!t->tokens || !t->labels) return tool_fail("there is no memory for a batch of %" PRIu64, s->batch);
  const int result = create_run(&t->unrecorded, s->steps);
  return result == TOOL_OK ? create_run(&t->recorded, s->steps) : result;
}

static int open_device(training *t) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = (uint32_t)t->settings.workers};
  if (rondo_device_open(t->settings.device, &options, &t->device)) return tool_fail_status("--device");
  return rondo_device_get_info(t->device, &t->device_info) ? tool_fail_status("the device") : TOOL_OK;
}

/* Refuses what the device cannot hold before memory for it is touched. Counts each activation twice, with its gradient,
 * and each parameter four times, with its gradient and Adam's two moments. */
static int check_size(const training *t) {
  const double activations = (double)t->batch.places * t->model.kind->activations(&t->model);
  const double needed = 4 * (2 * activations + 4 * model_parameter_elements(&t->model));
  const double gib = 1 << 30, held = (double)t->device_info.memory_bytes;
  if (needed <= held) return TOOL_OK;
  return tool_fail("the training step takes about %.1f GiB, of which '%s' has %.1f: lower --batch or the model's sizes",
                   needed / gib, t->settings.device, held / gib);
}

static rondo_status compile_step(training *t) {
  rondo_program *program = NULL;
  TOOL_TRY(rondo_program_create(&(rondo_program_options){RONDO_PROGRAM_OPTIONS_INIT, .name = "train"}, &program));
  rondo_status status = model_build_step(&t->model, program, t->batch.places);
  if (!status) status = rondo_compile(program, t->device, NULL, &t->compiled);
  rondo_program_destroy(program);
  return status ? status : rondo_compiled_get_info(t->compiled, &t->info);
}

static int dump_graph(const training *t) {
  char *text = NULL;
  if (rondo_graph_to_json(rondo_compiled_graph(t->compiled), true, &text)) return tool_fail_status("the graph");
  const int result = file_write(t->settings.dump_graph, text);
  rondo_text_free(text);
  return result;
}

static int prepare(training *t) {
  if (t->settings.save && file_check_replaceable(t->settings.save) != TOOL_OK) return TOOL_FAILURE;
  if (t->settings.report && file_check_replaceable(t->settings.report) != TOOL_OK) return TOOL_FAILURE;
  int result = load_text(t);
  if (result == TOOL_OK) result = open_device(t);
  if (result == TOOL_OK) result = check_size(t);
  if (result == TOOL_OK) result = create_buffers(t);
  if (result == TOOL_OK && compile_step(t)) result = tool_fail_status("the training step could not be compiled");
  if (result == TOOL_OK && t->settings.dump_graph) result = dump_graph(t);
  return result;
}

/* Training -------------------------------------------------------------------------------------------------------- */

/* Rises over the first twentieth of the steps, at most 100, then falls to zero as half a cosine (Loshchilov and Hutter,
 * ICLR 2017, equation 5). */
static float learning_rate_at(const train_settings *settings, uint64_t step) {
  const double pi = 3.14159265358979323846;
  const double rise = fmin(100, ceil((double)settings->steps / 20));
  const double fall = (1 + cos(pi * (double)step / (double)settings->steps)) / 2;
  return (float)(settings->learning_rate * fmin(1, (double)(step + 1) / rise) * fall);
}

static rondo_status train_step(training *t, uint64_t step, draw_source *batches, run_function run, training_run *out) {
  const float rate = learning_rate_at(&t->settings, step);
  const size_t places = t->batch.places;
  corpus_draw_batch(&t->corpus, batches, &t->batch, t->tokens, t->labels);
  TOOL_TRY(rondo_compiled_write(t->compiled, "tokens", t->tokens, places * t->batch.context * sizeof *t->tokens));
  TOOL_TRY(rondo_compiled_write(t->compiled, "labels", t->labels, places * t->batch.labels * sizeof *t->labels));
  TOOL_TRY(rondo_compiled_write(t->compiled, "learning_rate", &rate, sizeof rate));
  TOOL_TRY(run_timed(t->compiled, run, &out->times));
  return rondo_compiled_read(t->compiled, "loss", &out->losses[step], sizeof out->losses[step]);
}

/* One training from the first parameters on. */
static int train(training *t, const char *label, run_function run, training_run *out) {
  const uint64_t steps = t->settings.steps;
  if (model_initialize(&t->model, t->compiled, t->settings.seed) != TOOL_OK) return TOOL_FAILURE;
  draw_source batches = draw_create(t->settings.seed, DRAW_BATCHES);
  const uint64_t begin = clock_ns();
  for (uint64_t step = 0; step < steps; step++) {
    if (train_step(t, step, &batches, run, out)) return tool_fail_status("%s, step %" PRIu64, label, step);
    if (!isfinite(out->losses[step])) {
      return tool_fail("%s, step %" PRIu64 ": the loss is not a number any more; lower --learning-rate", label, step);
    }
    tool_show_progress("%s: %" PRIu64 " of %" PRIu64 " steps, loss %.3f", label, step + 1, steps,
                       (double)out->losses[step]);
  }
  out->times.seconds = (double)(clock_ns() - begin) / 1e9;
  return TOOL_OK;
}

static int train_both(training *t) {
  int result = train(t, "kernel by kernel", rondo_compiled_run_unrecorded, &t->unrecorded);
  if (result == TOOL_OK) result = train(t, "recorded", rondo_compiled_run, &t->recorded);
  tool_clear_progress();
  return result;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static uint64_t last_count(const training *t) { return t->settings.steps < 20 ? 1 : t->settings.steps / 20; }

static void evaluate(training *t) {
  const uint64_t steps = t->settings.steps, count = last_count(t);
  const float *losses = t->recorded.losses;
  double sum = 0;
  for (uint64_t i = steps - count; i < steps; i++) sum += (double)losses[i];
  t->loss_first = (double)losses[0];
  t->loss_last = sum / (double)count;
  t->is_identical = memcmp(losses, t->unrecorded.losses, steps * sizeof *losses) == 0;
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

static int show_json(training *t) {
  json out;
  json_begin(&out);
  write_description(t, &out);
  json_integer(&out, "steps", t->settings.steps);
  json_integer(&out, "parameters", t->info.parameters);
  json_real(&out, "loss_first", t->loss_first);
  json_real(&out, "loss_last", t->loss_last);
  json_boolean(&out, "identical", t->is_identical);
  json_integer(&out, "kernels", t->info.kernels);
  run_times_to_json(&t->unrecorded.times, &out, "unrecorded");
  run_times_to_json(&t->recorded.times, &out, "recorded");
  memory_to_json(&t->info, &out);
  if (t->settings.save) json_text(&out, "saved", t->settings.save);
  return json_print(&out);
}

static int show_text(training *t) {
  const train_settings *s = &t->settings;
  tool_print_device("device   ", s->device, &t->device_info);
  printf("text     %s: %zu bytes, %" PRIu32 " different\n", file_display_name(t->path), t->corpus.count,
         t->model.vocabulary.count);
  printf("model    %s, %" PRIu64 " parameters:", s->model, t->info.parameters);
  for (size_t i = 0, shown = 0; i < MODEL_SIZES; i++) {
    if (t->model.sizes[i] > 0) printf("%s %s %" PRIu32, shown++ ? "," : "", model_size_rows[i].name, t->model.sizes[i]);
  }
  putchar('\n');
  printf("steps    %" PRIu64 " of %" PRIu64 " places, %" PRIu32 " kernels each\n", s->steps, s->batch, t->info.kernels);
  printf("loss     %.4f -> %.4f nats a byte (first step -> mean of the last %" PRIu64 ")\n", t->loss_first,
         t->loss_last, last_count(t));
  printf("losses   %s\n", t->is_identical ? "identical: both runs gave the same, bit for bit" : "NOT identical");
  run_times_print_head("a step until done, us");
  run_times_print(&t->unrecorded.times, "kernel by kernel");
  run_times_print(&t->recorded.times, "recorded");
  memory_print(&t->info);
  if (s->save) printf("saved    %s\n", s->save);
  return TOOL_OK;
}

/* So often that it takes a second or two, but at least a few times. */
static uint32_t count_repeats(training *t) {
  const double step_us = samples_summarize(&t->recorded.times.step).median;
  return (uint32_t)fmax(3, fmin(100, 2e6 / fmax(1, step_us)));
}

static rondo_status make_page(training *t, rondo_node_time *times, size_t count, char **out_text) {
  rondo_exec *exec = rondo_compiled_exec(t->compiled);
  TOOL_TRY(rondo_exec_measure(exec, rondo_compiled_stream(t->compiled), count_repeats(t), times, &count));
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .title = "rondo train: the recorded step",
                                        .times = times, .time_count = count};
  return rondo_compiled_report(t->compiled, &options, out_text);
}

/* Measuring trains on: nothing is read or saved after it. */
static int write_page(training *t) {
  size_t count = 0;
  char *text = NULL;
  if (rondo_exec_measure(rondo_compiled_exec(t->compiled), NULL, 0, NULL, &count)) return tool_fail_status("the page");
  rondo_node_time *times = calloc(count, sizeof *times);
  if (!times) return tool_fail("there is no memory for the times of %zu nodes", count);
  int result = make_page(t, times, count, &text) ? tool_fail_status("the page") : TOOL_OK;
  if (result == TOOL_OK) result = file_write(t->settings.report, text);
  rondo_text_free(text);
  free(times);
  return result;
}

static int report(training *t) {
  evaluate(t);
  if (t->settings.save && model_save(&t->model, t->compiled, t->settings.save) != TOOL_OK) return TOOL_FAILURE;
  if (t->settings.report && write_page(t) != TOOL_OK) return TOOL_FAILURE;
  const int result = t->settings.json ? show_json(t) : show_text(t);
  if (result != TOOL_OK || t->is_identical) return result;
  return tool_fail("the losses of the two runs differ");
}

static void destroy_run(training_run *run) {
  free(run->losses);
  run_times_destroy(&run->times);
}

static int take_down(training *t) {
  int result = TOOL_OK;
  if (rondo_compiled_destroy(t->compiled)) result = tool_fail_status("the training step");
  if (rondo_device_close(t->device)) result = tool_fail_status("the device");
  destroy_run(&t->unrecorded);
  destroy_run(&t->recorded);
  free(t->tokens);
  free(t->labels);
  corpus_destroy(&t->corpus);
  return result;
}

int command_train(int argc, char **argv) {
  training t = {.settings = defaults, .model = {.type = RONDO_F32}};
  const option_result parsed = options_parse(&table, argc, argv, &t.settings, &t.path);
  if (parsed != OPTIONS_RUN) return parsed == OPTIONS_DONE ? TOOL_OK : TOOL_USAGE;
  if (choose_model(&t) != TOOL_OK) return TOOL_USAGE;
  if (t.settings.trace && rondo_trace_open_json(t.settings.trace)) return tool_fail_status("the trace");
  int result = prepare(&t);
  if (result == TOOL_OK) result = train_both(&t);
  if (result == TOOL_OK) result = report(&t);
  const int taken_down = take_down(&t);
  if (result == TOOL_OK) result = taken_down;
  if (rondo_trace_close_json() && result == TOOL_OK) result = tool_fail_status("the trace");
  return result;
}
