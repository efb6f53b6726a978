/* SPDX-License-Identifier: MIT
 * rondo generate: writes text with a model of rondo train. Replays the recorded model once for each byte
 * (text_generator.h).
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "common/file.h"
#include "common/json.h"
#include "common/options.h"
#include "common/timed_runs.h"
#include "common/tool.h"
#include "models/model.h"
#include "models/text_generator.h"

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
    {"prompt", "TEXT", OPTION_TEXT, OFFSET(prompt), 0, 0, "text to continue"},
    {"length", "N", OPTION_COUNT, OFFSET(length), 1, 10e6, "bytes to write"},
    {"temperature", "X", OPTION_REAL, OFFSET(temperature), 0, 100, "randomness; 0 always picks the most likely byte"},
    {"seed", "N", OPTION_COUNT, OFFSET(seed), 0, 0, "seed of the random choices"},
    {"workers", "N", OPTION_COUNT, OFFSET(workers), 0, 1024, "worker threads of a CPU device; 0: automatic"},
    {"json", NULL, OPTION_FLAG, OFFSET(json), 0, 0, "print one JSON object, with the time per byte"},
};

static const option_table table = {
    .command = "rondo generate",
    .operand = "MODEL",
    .reads_operand = true,
    .operand_help = "a model, as 'rondo train --save MODEL' writes it",
    .description =
        "Writes text with a trained model, byte by byte, by replaying the recorded model. A character model needs a\n"
        "prompt as long as its context: a shorter one is preceded, without showing it, by the beginning of the\n"
        "training text. A gpt continues the prompt; without one, it continues the first half of that beginning. It\n"
        "keeps keys and values in caches, and drops the first half of its context when the context is full.\n\n"
        "With --json, the same text is also written eagerly, and by a gpt also without caches, which recomputes the\n"
        "context for each byte. The results are compared.",
    OPTION_ROWS(rows, defaults),
};

/* How many bytes' scores are kept to be compared with the scores that are computed without caches. */
#define COMPARED 256

/* One way to write the text, with its result and its cost. */
typedef struct written {
  unsigned char *text; /* `length` bytes */
  run_times times;
  size_t prompt_runs, next_runs; /* runs of the models with caches */
} written;

enum { WAYS = WRITER_RECOMPUTED + 1 };

typedef struct generation {
  const generate_settings *settings;
  const char *path;
  language_model model;
  rondo_device *device;
  writer writer;
  float *scores, *kept; /* scores: of one byte; kept: of the first bytes, from the recorded run */
  double difference;    /* the largest one between kept and recomputed scores */
  written ways[WAYS];
} generation;

/* Setup ----------------------------------------------------------------------------------------------------------- */

/* Formats a byte for a message: 'a', or 0x0a. */
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

static bool has_caches(const generation *g) { return g->model.kind->build_prompt != NULL; }

static int create_buffers(generation *g) {
  const size_t length = g->settings->length, count = g->model.vocabulary.count;
  g->scores = calloc(count, sizeof *g->scores);
  g->kept = calloc(COMPARED * count, sizeof *g->kept);
  if (!g->scores || !g->kept) return tool_fail_memory("the scores");
  for (size_t way = 0; way < WAYS; way++) {
    g->ways[way].text = malloc(length);
    if (!g->ways[way].text) return tool_fail_memory("%zu bytes of text", length);
    if (costs_create(&g->ways[way].times.cost, 1, length) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
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
  if (result == TOOL_OK) result = writer_create(&g->model, weights, g->device, g->path, NULL, &g->writer);
  rondo_weights_destroy(weights);
  return result;
}

/* Writing --------------------------------------------------------------------------------------------------------- */

static int check_scores(const generation *g) {
  for (uint32_t i = 0; i < g->model.vocabulary.count; i++) {
    if (!isfinite(g->scores[i]))
      return tool_fail("%s: the scores of this model are NaN or infinite: train it again with a lower --learning-rate",
                       g->path);
  }
  return TOOL_OK;
}

/* Compares while the texts are equal. */
static void compare_scores(generation *g, writer_way way, size_t at) {
  const size_t count = g->model.vocabulary.count;
  if (at >= COMPARED) return;
  float *kept = g->kept + at * count;
  if (way == WRITER_RECORDED) memcpy(kept, g->scores, count * sizeof *kept);
  if (way != WRITER_RECOMPUTED || memcmp(g->ways[WRITER_RECORDED].text, g->ways[way].text, at) != 0) return;
  for (size_t i = 0; i < count; i++) g->difference = fmax(g->difference, fabs((double)kept[i] - (double)g->scores[i]));
}

/* Writes the whole text. Prints each byte at once if `is_shown`. */
static int write_text(generation *g, writer_way way, bool is_shown) {
  int32_t window[MODEL_MAX_CONTEXT];
  size_t count = writer_open(&g->model, g->settings->prompt, window);
  written *out = &g->ways[way];
  draw_source source = draw_create(g->settings->seed, DRAW_CHARACTERS);
  writer_begin(&g->writer);
  const uint64_t begin = clock_ns();
  for (size_t i = 0; i < g->settings->length; i++) {
    if (writer_run(&g->writer, way, window, count, &out->times.cost, g->scores))
      return tool_fail_status("the model could not be run");
    if (check_scores(g) != TOOL_OK) return TOOL_FAILURE;
    const uint32_t token = writer_draw(g->scores, g->model.vocabulary.count, g->settings->temperature, &source);
    out->text[i] = g->model.vocabulary.byte_of[token];
    compare_scores(g, way, i);
    writer_push(&g->writer, window, &count, (int32_t)token);
    if (is_shown) putchar(out->text[i]);
    if (tool_check_output() != TOOL_OK) return TOOL_FAILURE;
  }
  out->times.seconds = (double)(clock_ns() - begin) / 1e9;
  out->prompt_runs = g->writer.prompt_runs;
  out->next_runs = g->writer.next_runs;
  return TOOL_OK;
}

static int show_text(generation *g) {
  fputs(g->settings->prompt, stdout);
  const int result = write_text(g, WRITER_RECORDED, true);
  if (result == TOOL_OK && g->ways[WRITER_RECORDED].text[g->settings->length - 1] != '\n') putchar('\n');
  return result;
}

/* JSON ------------------------------------------------------------------------------------------------------------ */

static const char *const way_names[WAYS] = {
    [WRITER_RECORDED] = "recorded", [WRITER_EAGER] = "eager", [WRITER_RECOMPUTED] = "recomputed"};

static bool is_same(const generation *g, writer_way way) {
  return memcmp(g->ways[WRITER_RECORDED].text, g->ways[way].text, g->settings->length) == 0;
}

static void write_caches(const generation *g, json *out) {
  json_begin_object(out, "caches");
  json_boolean(out, "identical", is_same(g, WRITER_RECOMPUTED));
  json_real(out, "largest_difference", g->difference);
  json_integer(out, "prompt_runs", g->ways[WRITER_RECORDED].prompt_runs);
  json_integer(out, "next_runs", g->ways[WRITER_RECORDED].next_runs);
  json_begin_array(out, "prompt_lengths");
  for (size_t i = 0; i < g->writer.bucket_count; i++) json_integer(out, NULL, g->writer.lengths[i]);
  json_end(out);
  json_end(out);
}

static int write_result(generation *g, json *out) {
  const generate_settings *s = g->settings;
  rondo_compiled_info next, largest;
  if (writer_info(&g->writer, &next, &largest)) return tool_fail_status("the model");
  json_text(out, "device", s->device);
  json_text(out, "model", g->path);
  json_text(out, "kind", g->model.kind->name);
  json_text(out, "prompt", s->prompt);
  json_integer(out, "length", s->length);
  json_real(out, "temperature", s->temperature);
  json_integer(out, "seed", s->seed);
  json_bytes(out, "text", g->ways[WRITER_RECORDED].text, s->length);
  json_boolean(out, "identical", is_same(g, WRITER_EAGER));
  json_integer(out, "parameters", (uint64_t)model_parameter_elements(&g->model));
  json_integer(out, "kernels", next.kernels);
  const size_t ways = has_caches(g) ? WAYS : WRITER_RECOMPUTED;
  for (size_t way = 0; way < ways; way++) run_times_to_json(&g->ways[way].times, out, way_names[way]);
  json_begin_object(out, "bytes_per_second");
  for (size_t way = 0; way < ways; way++)
    json_real(out, way_names[way], (double)s->length / g->ways[way].times.seconds);
  json_end(out);
  if (has_caches(g)) write_caches(g, out);
  memory_to_json(&largest, out);
  return TOOL_OK;
}

static int show_json(generation *g) {
  int result = write_text(g, WRITER_EAGER, false);
  if (result == TOOL_OK) result = write_text(g, WRITER_RECORDED, false);
  if (result == TOOL_OK && has_caches(g)) result = write_text(g, WRITER_RECOMPUTED, false);
  if (result != TOOL_OK) return result;
  json out;
  json_begin(&out);
  result = write_result(g, &out);
  if (result != TOOL_OK) {
    json_discard(&out);
    return result;
  }
  result = json_print(&out);
  if (result != TOOL_OK || is_same(g, WRITER_EAGER)) return result;
  return tool_fail("the texts of the two runs differ");
}

static int destroy_all(generation *g) {
  int result = writer_destroy(&g->writer);
  if (rondo_device_close(g->device)) result = tool_fail_status("the device");
  for (size_t way = 0; way < WAYS; way++) {
    costs_destroy(&g->ways[way].times.cost, 1);
    free(g->ways[way].text);
  }
  free(g->scores);
  free(g->kept);
  return result;
}

int command_generate(int argc, char **argv) {
  generate_settings settings = defaults;
  generation g = {.settings = &settings};
  const int parsed = options_parse(&table, argc, argv, &settings, &g.path);
  if (parsed != OPTIONS_RUN) return parsed;
  int result = prepare(&g);
  if (result == TOOL_OK) result = settings.json ? show_json(&g) : show_text(&g);
  const int destroyed = destroy_all(&g);
  return result == TOOL_OK ? destroyed : result;
}
