/* SPDX-License-Identifier: MIT
 * rondo train: trains the model twice from the same seed on the same batches, eager and recorded, and compares the
 * losses bit for bit. Both runs use one compiled program, whose states are reset in between. This file has the command
 * line, setup and cleanup; train.h lists the other files.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/commands.h"
#include "common/file.h"
#include "common/fingerprint.h"
#include "common/interrupt.h"
#include "common/options.h"
#include "common/tool.h"
#include "train/train.h"

static const train_settings defaults = {
    .model = "character", .device = "cpu", .seed = 1, .compare = TRAIN_COMPARE_UNSET, .timeout = 600};

#define OFFSET(member) offsetof(train_settings, member)

static const option_row rows[] = {
    {"model", "KIND", OPTION_TEXT, OFFSET(model), 0, 0, "character or gpt"},
    {"device", "NAME", OPTION_TEXT, OFFSET(device), 0, 0, "device to train on"},
    {"steps", "N", OPTION_COUNT, OFFSET(steps), 1, TRAIN_MOST_STEPS, "number of training steps"},
    {"compare", "N", OPTION_COUNT, OFFSET(compare), 0, TRAIN_MOST_STEPS, "steps that are also run eagerly; 0: none"},
    {"seed", "N", OPTION_COUNT, OFFSET(seed), 0, 0, "seed of the initial parameters and of the batches"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 1, 1 << 20, "samples of the text in a step"},
    {"context", "N", OPTION_COUNT, OFFSET(sizes[MODEL_CONTEXT]), 1, 1024, "context length in bytes"},
    {"embedding", "N", OPTION_COUNT, OFFSET(sizes[MODEL_EMBEDDING]), 1, 1024, "size of the embedding of a byte"},
    {"hidden", "N", OPTION_COUNT, OFFSET(sizes[MODEL_HIDDEN]), 1, 16384, "width of the hidden layer"},
    {"layers", "N", OPTION_COUNT, OFFSET(sizes[MODEL_LAYERS]), 1, 64, "transformer blocks of a gpt"},
    {"width", "N", OPTION_COUNT, OFFSET(sizes[MODEL_WIDTH]), 1, 4096, "size of the embedding of a byte in a gpt"},
    {"heads", "N", OPTION_COUNT, OFFSET(sizes[MODEL_HEADS]), 1, 64, "attention heads in each block of a gpt"},
    {"learning-rate", "X", OPTION_REAL, OFFSET(learning_rate), 1e-9, 1e38,
     "highest rate of the schedule, which rises, then falls"},
    {"workers", "N", OPTION_COUNT, OFFSET(workers), 0, 1024, "worker threads of a CPU device; 0: automatic"},
    {"data-parallel", NULL, OPTION_FLAG, OFFSET(data_parallel), 0, 0,
     "divide each batch among the processes that mpirun, srun or torchrun started"},
    {"shard-states", NULL, OPTION_FLAG, OFFSET(shard_states), 0, 0,
     "with N ranks, each keeps 1/N of the optimizer's states"},
    {"mpi", "FILE", OPTION_INPUT, OFFSET(mpi), 0, 0, "component rondo-mpi to load; unless given, the launcher's"},
    {"timeout", "X", OPTION_REAL, OFFSET(timeout), 1, 4e6, "seconds that a rank waits for the others"},
    {"save", "FILE", OPTION_OUTPUT, OFFSET(save), 0, 0, "write the model to FILE (safetensors)"},
    {"checkpoint", "FILE", OPTION_UPDATED, OFFSET(checkpoint), 0, 0, "write checkpoints to FILE"},
    {"checkpoint-every", "N", OPTION_COUNT, OFFSET(checkpoint_every), 1, 10e6, "steps between checkpoints"},
    {"resume", "FILE", OPTION_INPUT, OFFSET(resume), 0, 0, "resume from the checkpoint FILE"},
    {"stop-after", "N", OPTION_COUNT, OFFSET(stop_after), 1, 10e6, "stop after step N, with a checkpoint"},
    {"validation", "N", OPTION_COUNT, OFFSET(validation), 1, 50,
     "percent of the text, its end, that is kept for validation"},
    {"validate-every", "N", OPTION_COUNT, OFFSET(validate_every), 1, 10e6, "steps between validations"},
    {"patience", "N", OPTION_COUNT, OFFSET(patience), 1, 10e6,
     "stop after N validations without a lower loss than before"},
    {"sample-every", "N", OPTION_COUNT, OFFSET(sample_every), 1, 10e6, "steps between samples of text"},
    {"dump-graph", "FILE", OPTION_OUTPUT, OFFSET(dump_graph), 0, 0, "write the recorded step to FILE (JSON)"},
    {"trace", "FILE", OPTION_OUTPUT, OFFSET(trace), 0, 0, "write a trace to FILE (Chrome trace events)"},
    {"explain", NULL, OPTION_FLAG, OFFSET(explain), 0, 0,
     "explain what was recorded, what was not and why, and the gain"},
    {"report", "FILE", OPTION_OUTPUT, OFFSET(report), 0, 0, "write a page about the recorded step to FILE (HTML)"},
    OPTION_ROW_JSON(train_settings),
};

/* A file that every Debian installation has. */
#define DEFAULT_TEXT "/usr/share/common-licenses/GPL-3"

static const option_table table = {
    .command = "rondo train",
    .operand = "TEXT",
    .reads_operand = true,
    .operand_help = "any file; '-' is standard input",
    .operand_default = DEFAULT_TEXT,
    .description =
        "Trains a language model on the bytes of a text, twice from the same seed: first eagerly, then\n"
        "with the whole step (forward, loss, backward, optimizer) recorded as one graph. Says whether the losses\n"
        "of both runs agree bit for bit, and what a step costs in each. Losses are in nats per byte: the first is\n"
        "that of the first step, the last is the mean over the last twentieth of the steps.\n\n"
        "Unless other sizes are given, a character model has context 8, embedding 24 and hidden 256, and is\n"
        "trained in 10000 steps of batch 64 with learning rate 0.005; a gpt has context 64, layers 4, width 128\n"
        "and heads 4, and is trained in 1000 steps of batch 8 with learning rate 0.002.\n\n"
        "With --checkpoint, --resume or --patience, only the first 20 steps are also run eagerly, unless\n"
        "--compare says otherwise. Checkpoints are written every 1000 steps and at the end. Training that is resumed\n"
        "with the same options gives the same numbers as if it had never stopped. It may be given more --steps:\n"
        "the learning rate then follows the schedule of that many steps from there on.\n\n"
        "With --validation, the loss over a part of the text that is not trained on is computed after every\n"
        "twentieth of the usual number of steps, and --save keeps the model for which it was least.\n\n"
        "Ctrl-C ends training after the current step, and writes the checkpoint and the model.\n\n"
        "With --data-parallel, processes train together: mpirun -n 4 rondo train TEXT --data-parallel. Each has a\n"
        "device and its part of every batch; losses and checkpoints are those of one process, up to rounding. A\n"
        "checkpoint resumes with another number of processes.",
    OPTION_ROWS(rows, defaults),
};

/* Setup ----------------------------------------------------------------------------------------------------------- */

/* Fills in the model's own values for options that were not given. */
static int choose_model(training *t) {
  train_settings *s = &t->settings;
  const model_kind *kind = model_kind_named(s->model);
  if (!kind) return tool_fail_usage("--model takes %s, not '%s'", model_kind_names(), s->model);
  t->model.kind = kind;
  for (size_t i = 0; i < MODEL_SIZES; i++) {
    if (s->sizes[i] > 0 && kind->sizes[i] == 0)
      return tool_fail_usage("the model %s has no --%s", kind->name, model_size_rows[i].name);
    t->model.sizes[i] = s->sizes[i] > 0 ? (uint32_t)s->sizes[i] : kind->sizes[i];
  }
  char why[MODEL_WHY_BYTES];
  if (!model_sizes_fit(&t->model, why)) return tool_fail_usage("%s", why);
  if (s->batch == 0) s->batch = kind->batch;
  if (s->steps == 0 && !s->resume) s->steps = kind->steps;
  if (s->learning_rate <= 0) s->learning_rate = kind->learning_rate;
  if (s->validation > 0 && s->validate_every == 0) s->validate_every = kind->steps / 20;
  t->batch = (corpus_batch){(uint32_t)s->batch, t->model.sizes[MODEL_CONTEXT], (uint32_t)model_labels(&t->model)};
  return TOOL_OK;
}

/* With checkpoints or an early stop, the user wants the training and not the comparison: fewer steps run eagerly. */
static int choose_stops(train_settings *s) {
  if (!s->checkpoint && s->checkpoint_every) return tool_fail_usage("--checkpoint-every needs --checkpoint");
  if (!s->checkpoint && s->stop_after) return tool_fail_usage("--stop-after needs --checkpoint");
  if (s->compare == TRAIN_COMPARE_UNSET) s->compare = s->checkpoint || s->resume || s->patience ? 20 : s->steps;
  if (s->checkpoint_every == 0) s->checkpoint_every = 1000;
  if (s->validation == 0 && s->validate_every) return tool_fail_usage("--validate-every needs --validation");
  if (s->validation == 0 && s->patience) return tool_fail_usage("--patience needs --validation");
  return TOOL_OK;
}

static int load_text(training *t) {
  if (strcmp(t->path, DEFAULT_TEXT) == 0 && access(DEFAULT_TEXT, R_OK) != 0)
    return tool_fail("%s: %s; name another TEXT to learn", DEFAULT_TEXT, strerror(errno));
  if (corpus_load(t->path, t->batch.context, &t->corpus) != TOOL_OK) return TOOL_FAILURE;
  t->model.vocabulary = t->corpus.vocabulary;
  for (uint32_t i = 0; i < t->batch.context; i++)
    t->model.opening[i] = t->corpus.vocabulary.byte_of[t->corpus.tokens[i]];
  t->text_fingerprint = fingerprint_add(FINGERPRINT_START, t->corpus.tokens, t->corpus.count);
  t->text_fingerprint = fingerprint_add(t->text_fingerprint, t->corpus.vocabulary.byte_of, t->corpus.vocabulary.count);
  return train_validation_split(t);
}

static int create_run(training_run *run, size_t steps) {
  run->losses = calloc(steps, sizeof *run->losses);
  run->step_us = calloc(steps, sizeof *run->step_us);
  if (!run->losses || !run->step_us) return tool_fail_memory("the losses and times of %zu steps", steps);
  return costs_create(&run->times.cost, 1, steps);
}

static int create_buffers(training *t) {
  const train_settings *s = &t->settings;
  t->tokens = calloc((size_t)t->batch.places * t->batch.context, sizeof *t->tokens);
  t->labels = calloc((size_t)t->batch.places * t->batch.labels, sizeof *t->labels);
  if (!t->tokens || !t->labels) return tool_fail_memory("a batch of %" PRIu64, s->batch);
  t->losses = calloc(s->steps, sizeof *t->losses);
  if (s->checkpoint) t->loss_text = malloc(train_loss_text_bytes(s->steps));
  if (!t->losses || (s->checkpoint && !t->loss_text))
    return tool_fail_memory("the losses of %" PRIu64 " steps", s->steps);
  const int result = create_run(&t->eager, s->steps);
  return result == TOOL_OK ? create_run(&t->recorded, s->steps) : result;
}

static int open_device(training *t) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = (uint32_t)t->settings.workers};
  if (rondo_device_open(t->settings.device, &options, &t->device)) return tool_fail_status("--device");
  return rondo_device_get_info(t->device, &t->device_info) ? tool_fail_status("the device") : TOOL_OK;
}

/* Fails before allocating if the step does not fit on the device. Counts each activation twice (value and gradient) and
 * each parameter four times (value, gradient and Adam's two moments). */
static int check_size(const training *t) {
  const double activations = (double)t->batch.places * t->model.kind->activations(&t->model);
  const double needed = 4 * (2 * activations + 4 * model_parameter_elements(&t->model));
  const double gib = 1 << 30, held = (double)t->device_info.memory_bytes;
  if (needed <= held) return TOOL_OK;
  return tool_fail("the training step needs about %.1f GiB, but '%s' has %.1f: lower --batch or the sizes of the model",
                   needed / gib, t->settings.device, held / gib);
}

/* Rises over the first twentieth of the steps, at most 100, then follows half a cosine down to zero. */
static rondo_rate_options schedule_of(const train_settings *settings) {
  const uint64_t twentieth = (settings->steps + 19) / 20, rise = twentieth < 100 ? twentieth : 100;
  const uint64_t fall = settings->steps > rise ? settings->steps - rise : 1;
  return (rondo_rate_options){RONDO_RATE_OPTIONS_INIT, .kind = RONDO_RATE_COSINE,
                              .rate = (float)settings->learning_rate, .warm_up = (uint32_t)rise,
                              .period = fall < UINT32_MAX ? (uint32_t)fall : UINT32_MAX};
}

static rondo_status compile_step(training *t) {
  const rondo_rate_options schedule = schedule_of(&t->settings);
  rondo_program *program = NULL;
  TOOL_TRY(rondo_program_create(&(rondo_program_options){RONDO_PROGRAM_OPTIONS_INIT, .name = "train"}, &program));
  rondo_status status = train_ranks_apply(t, program);
  if (!status) status = model_build_step(&t->model, program, t->batch.places, &schedule);
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
  int result = load_text(t);
  if (result == TOOL_OK && t->settings.resume) result = train_checkpoint_load(t);
  if (result == TOOL_OK) result = open_device(t);
  if (result == TOOL_OK) result = train_ranks_join(t);
  if (result == TOOL_OK) result = check_size(t);
  if (result == TOOL_OK) result = create_buffers(t);
  if (result == TOOL_OK && compile_step(t)) result = tool_fail_status("the training step could not be compiled");
  if (result == TOOL_OK) result = train_validation_prepare(t);
  if (result == TOOL_OK) result = train_samples_prepare(t);
  if (result == TOOL_OK && t->settings.dump_graph) result = dump_graph(t);
  return result;
}

/* Train and report ------------------------------------------------------------------------------------------------ */

static int report(training *t) {
  train_evaluate(t);
  if (t->settings.explain && train_explain(t) != TOOL_OK) return TOOL_FAILURE;
  if (t->settings.report && train_write_page(t) != TOOL_OK) return TOOL_FAILURE;
  const int result = train_show(t);
  if (result != TOOL_OK || t->is_identical) return result;
  return tool_fail("the losses of the two runs differ");
}

/* Saves the result before an interrupt can end the process, and reports even if saving failed. */
static int train_and_report(training *t) {
  interrupt_begin();
  const int trained = train_both(t);
  const int kept = trained == TOOL_OK ? train_keep(t) : trained;
  interrupt_end();
  const int reported = trained == TOOL_OK ? report(t) : trained;
  return kept == TOOL_OK ? reported : kept;
}

static void destroy_run(training_run *run) {
  free(run->losses);
  free(run->step_us);
  costs_destroy(&run->times.cost, 1);
}

static int destroy_all(training *t) {
  int result = train_validation_end(t);
  if (train_samples_end(t) != TOOL_OK) result = TOOL_FAILURE;
  if (rondo_compiled_destroy(t->compiled)) result = tool_fail_status("the training step");
  if (train_ranks_end(t)) result = tool_fail_status("the ranks");
  if (rondo_device_close(t->device)) result = tool_fail_status("the device");
  destroy_run(&t->eager);
  destroy_run(&t->recorded);
  rondo_text_free(t->explanation);
  free(t->tokens);
  free(t->labels);
  free(t->losses);
  free(t->loss_text);
  rondo_weights_destroy(t->resumed);
  corpus_destroy(&t->corpus);
  return result;
}

/* The value of an option, that of the last one; "" for a flag; NULL if it is not given. */
static const char *find_option(const training *t, const char *name) {
  const char *found = NULL;
  for (int i = 1; i < t->argument_count && strcmp(t->arguments[i], "--") != 0;) {
    const option_use use = options_look(t->table, t->argument_count - i, t->arguments + i);
    if (use.row && strcmp(use.row->name, name) == 0) found = use.value ? use.value : "";
    i += use.arguments;
  }
  return found;
}

/* Before the options are parsed, so that one rank says what is wrong with them, and ends the others. */
static int find_ranks(training *t) {
  const char *device = find_option(t, "device");
  if (!find_option(t, "data-parallel") || find_option(t, "help") || !launcher_find(&t->ranks.started)) return TOOL_OK;
  if (t->ranks.started.size > 1) tool_set_rank(t->ranks.started.rank);
  t->settings.mpi = find_option(t, "mpi");
  if (device) t->settings.device = device;
  return train_ranks_begin(t);
}

static int choose_and_train(training *t) {
  int result = choose_model(t);
  if (result == TOOL_OK) result = choose_stops(&t->settings);
  if (result == TOOL_OK) result = train_ranks_choose(t);
  if (result != TOOL_OK) return result;
  if (t->settings.trace && rondo_trace_open_json(t->settings.trace)) return tool_fail_status("the trace");
  result = prepare(t);
  return result == TOOL_OK ? train_and_report(t) : result;
}

int command_train(int argc, char **argv) {
  training t = {
      .settings = defaults, .table = &table, .arguments = argv, .argument_count = argc, .model = {.type = RONDO_F32}};
  int result = find_ranks(&t);
  if (result == TOOL_OK) result = options_parse(&table, argc, argv, &t.settings, &t.path);
  if (result == OPTIONS_RUN) result = choose_and_train(&t);
  if (result == TOOL_FAILURE || result == TOOL_USAGE) train_ranks_abort(&t, result);
  const int destroyed = destroy_all(&t);
  if (result == TOOL_OK) result = destroyed;
  if (rondo_trace_close_json() && result == TOOL_OK) result = tool_fail_status("the trace");
  return result;
}
