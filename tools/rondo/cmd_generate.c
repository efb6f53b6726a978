/* SPDX-License-Identifier: MIT
 * rondo generate: writes text with a model of rondo train, replaying the recorded model once a character.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "file.h"
#include "json.h"
#include "model.h"
#include "options.h"
#include "runs.h"
#include "tool.h"

typedef struct generate_settings {
  const char *device, *prompt;
  uint64_t length, seed, workers;
  double temperature;
  bool json;
} generate_settings;

static const generate_settings defaults = {
    .device = "cpu",
    .prompt = "",
    .length = 500,
    .seed = 1,
    .temperature = 0.8,
};

#define OFFSET(member) offsetof(generate_settings, member)

static const option_row rows[] = {
    {"device", "NAME", OPTION_TEXT, OFFSET(device), 0, 0, "device to run on"},
    {"prompt", "TEXT", OPTION_TEXT, OFFSET(prompt), 0, 0, "text to go on from"},
    {"length", "N", OPTION_COUNT, OFFSET(length), 1, 10e6, "bytes to write"},
    {"temperature", "X", OPTION_REAL, OFFSET(temperature), 0, 100, "0 takes the likeliest byte always"},
    {"seed", "N", OPTION_COUNT, OFFSET(seed), 0, 0, "seed of the choices"},
    {"workers", "N", OPTION_COUNT, OFFSET(workers), 0, 1024, "worker threads of a CPU device; 0 chooses"},
    {"json", NULL, OPTION_FLAG, OFFSET(json), 0, 0, "print one JSON object, with what a byte cost"},
};

static const option_table table = {
    .command = "rondo generate",
    .operand = "MODEL",
    .operand_help = "a model, as 'rondo train --save MODEL' writes it",
    .description =
        "Writes text with a trained model, byte by byte, by replaying the recorded model. A prompt that is\n"
        "shorter than what the model sees is preceded, unseen, by the beginning of the text that it was\n"
        "trained on. --json also writes the same text kernel by kernel, and says whether it is identical.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

typedef struct generation {
  const generate_settings *settings;
  const char *path;
  language_model model;
  rondo_device *device;
  rondo_compiled *compiled;
  rondo_compiled_info info;
  float *logits;
  unsigned char *text, *unrecorded_text; /* `length` bytes */
  run_times recorded, unrecorded;
} generation;

/* Making ready ---------------------------------------------------------------------------------------------------- */

/* The byte as messages show it: 'a', or 0x0a. */
static const char *byte_text(unsigned char byte, char buffer[8]) {
  snprintf(buffer, 8, byte > 0x20 && byte < 0x7f ? "'%c'" : "0x%02x", byte);
  return buffer;
}

static int check_prompt(const generation *g) {
  char buffer[8];
  const unsigned char *prompt = (const unsigned char *)g->settings->prompt;
  for (size_t i = 0; prompt[i]; i++) {
    if (g->model.vocabulary.token_of[prompt[i]] >= 0) continue;
    return tool_fail("byte %zu of the prompt, %s, does not occur in the text that %s was trained on; leave it out",
                     i + 1, byte_text(prompt[i], buffer), g->path);
  }
  return TOOL_OK;
}

static int create_buffers(generation *g) {
  const size_t length = g->settings->length;
  g->logits = calloc(g->model.vocabulary.count, sizeof *g->logits);
  g->text = malloc(length);
  g->unrecorded_text = malloc(length);
  if (!g->logits || !g->text || !g->unrecorded_text)
    return tool_fail("there is no memory for %zu bytes of text", length);
  const int result = run_times_create(&g->recorded, length);
  return result == TOOL_OK ? run_times_create(&g->unrecorded, length) : result;
}

/* Of a model that has scores behind each byte, those behind the last one. */
static rondo_status add_last_scores(const language_model *model, rondo_program *program, rondo_value logits) {
  const size_t labels = model_labels(model), count = model->vocabulary.count;
  if (labels > 1)
    TOOL_TRY(rondo_op_slice(program, logits, (size_t[]){0, labels - 1, 0}, (size_t[]){1, 1, count}, NULL, &logits));
  return rondo_program_output(program, "logits", logits);
}

static rondo_status compile_model(generation *g) {
  rondo_program *program = NULL;
  rondo_value logits;
  TOOL_TRY(rondo_program_create(&(rondo_program_options){RONDO_PROGRAM_OPTIONS_INIT, .name = "generate"}, &program));
  rondo_status status = model_build(&g->model, program, 1, &logits);
  if (!status) status = add_last_scores(&g->model, program, logits);
  if (!status) status = rondo_compile(program, g->device, NULL, &g->compiled);
  rondo_program_destroy(program);
  return status ? status : rondo_compiled_get_info(g->compiled, &g->info);
}

static int open_device(generation *g) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = (uint32_t)g->settings->workers};
  return rondo_device_open(g->settings->device, &options, &g->device) ? tool_fail_status("--device") : TOOL_OK;
}

static int prepare(generation *g) {
  rondo_weights *weights = NULL;
  int result = model_load(g->path, &g->model, &weights);
  if (result == TOOL_OK) result = check_prompt(g);
  if (result == TOOL_OK) result = create_buffers(g);
  if (result == TOOL_OK) result = open_device(g);
  if (result == TOOL_OK && compile_model(g)) result = tool_fail_status("the model could not be compiled");
  if (result == TOOL_OK && rondo_weights_apply(weights, g->compiled, NULL)) result = tool_fail_status("%s", g->path);
  rondo_weights_destroy(weights);
  return result;
}

/* Writing --------------------------------------------------------------------------------------------------------- */

static uint32_t likeliest(const float *logits, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++) {
    if (logits[i] > logits[best]) best = i;
  }
  return best;
}

/* Draws a token with the probabilities softmax(logits / temperature). */
static uint32_t draw_token(const float *logits, uint32_t count, double temperature, draw_source *source) {
  const uint32_t best = likeliest(logits, count);
  if (temperature == 0) return best;
  const double highest = (double)logits[best];
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += exp(((double)logits[i] - highest) / temperature);
  double left = draw_unit(source) * sum;
  for (uint32_t i = 0; i < count; i++) {
    left -= exp(((double)logits[i] - highest) / temperature);
    if (left < 0) return i;
  }
  return best; /* the rounding of the two sums differed */
}

/* The last bytes of the opening and the prompt together, as tokens. */
static void begin_window(const generation *g, int32_t *window) {
  const language_model *model = &g->model;
  const char *prompt = g->settings->prompt;
  const size_t length = strlen(prompt), context = model->sizes[MODEL_CONTEXT];
  const size_t taken = length < context ? length : context;
  for (size_t i = 0; i < context; i++) {
    const size_t from_end = context - i;
    const unsigned char byte = from_end <= taken ? (unsigned char)prompt[length - from_end] : model->opening[i + taken];
    window[i] = model->vocabulary.token_of[byte];
  }
}

/* One byte behind the window, which moves on. */
static int write_byte(generation *g, int32_t *window, draw_source *source, run_function run, run_times *times,
                      unsigned char *out) {
  const uint32_t context = g->model.sizes[MODEL_CONTEXT], count = g->model.vocabulary.count;
  rondo_status status = rondo_compiled_write(g->compiled, "tokens", window, context * sizeof *window);
  if (!status) status = run_timed(g->compiled, run, times);
  if (!status) status = rondo_compiled_read(g->compiled, "logits", g->logits, count * sizeof *g->logits);
  if (status) return tool_fail_status("the model could not be run");
  for (uint32_t i = 0; i < count; i++) {
    if (!isfinite(g->logits[i])) return tool_fail("%s: its weights are such that its results are no numbers", g->path);
  }
  const uint32_t token = draw_token(g->logits, count, g->settings->temperature, source);
  memmove(window, window + 1, (context - 1) * sizeof *window);
  window[context - 1] = (int32_t)token;
  *out = g->model.vocabulary.byte_of[token];
  return TOOL_OK;
}

/* The whole text; printed as it comes when `is_shown`. */
static int write_text(generation *g, run_function run, run_times *times, unsigned char *text, bool is_shown) {
  int32_t window[MODEL_MAX_CONTEXT];
  begin_window(g, window);
  draw_source source = draw_create(g->settings->seed, DRAW_CHARACTERS);
  const uint64_t begin = clock_ns();
  for (uint64_t i = 0; i < g->settings->length; i++) {
    if (write_byte(g, window, &source, run, times, &text[i]) != TOOL_OK) return TOOL_FAILURE;
    if (is_shown) putchar(text[i]);
    if (tool_check_output() != TOOL_OK) return TOOL_FAILURE;
  }
  times->seconds = (double)(clock_ns() - begin) / 1e9;
  return TOOL_OK;
}

static int show_text(generation *g) {
  fputs(g->settings->prompt, stdout);
  const int result = write_text(g, rondo_compiled_run, &g->recorded, g->text, true);
  if (result == TOOL_OK && g->text[g->settings->length - 1] != '\n') putchar('\n');
  return result;
}

static void write_result(generation *g, bool is_identical, json *out) {
  const generate_settings *s = g->settings;
  json_text(out, "device", s->device);
  json_text(out, "model", g->path);
  json_text(out, "prompt", s->prompt);
  json_integer(out, "length", s->length);
  json_real(out, "temperature", s->temperature);
  json_integer(out, "seed", s->seed);
  json_bytes(out, "text", g->text, s->length);
  json_boolean(out, "identical", is_identical);
  json_integer(out, "parameters", g->info.parameters);
  json_integer(out, "kernels", g->info.kernels);
  run_times_to_json(&g->unrecorded, out, "unrecorded");
  run_times_to_json(&g->recorded, out, "recorded");
  memory_to_json(&g->info, out);
}

static int show_json(generation *g) {
  int result = write_text(g, rondo_compiled_run_unrecorded, &g->unrecorded, g->unrecorded_text, false);
  if (result == TOOL_OK) result = write_text(g, rondo_compiled_run, &g->recorded, g->text, false);
  if (result != TOOL_OK) return result;
  const bool is_identical = memcmp(g->text, g->unrecorded_text, g->settings->length) == 0;
  json out;
  json_begin(&out);
  write_result(g, is_identical, &out);
  result = json_print(&out);
  if (result != TOOL_OK || is_identical) return result;
  return tool_fail("the texts of the two runs differ");
}

static int take_down(generation *g) {
  int result = TOOL_OK;
  if (rondo_compiled_destroy(g->compiled)) result = tool_fail_status("the model");
  if (rondo_device_close(g->device)) result = tool_fail_status("the device");
  run_times_destroy(&g->recorded);
  run_times_destroy(&g->unrecorded);
  free(g->logits);
  free(g->text);
  free(g->unrecorded_text);
  return result;
}

int command_generate(int argc, char **argv) {
  generate_settings settings = defaults;
  generation g = {.settings = &settings};
  const option_result parsed = options_parse(&table, argc, argv, &settings, &g.path);
  if (parsed != OPTIONS_RUN) return parsed == OPTIONS_DONE ? TOOL_OK : TOOL_USAGE;
  int result = prepare(&g);
  if (result == TOOL_OK) result = settings.json ? show_json(&g) : show_text(&g);
  const int taken_down = take_down(&g);
  return result == TOOL_OK ? taken_down : result;
}
