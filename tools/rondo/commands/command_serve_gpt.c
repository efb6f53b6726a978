/* SPDX-License-Identifier: MIT
 * rondo serve gpt FILE --load: writes several texts at once with a model of rondo train, in one session, and compares
 * that with one text at a time: tokens a second, the time to the first token, and the time of each further one.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands/commands.h"
#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"
#include "serve/sequence_load.h"

typedef struct serve_gpt_settings {
  const char *device;
  uint64_t clients, tokens, prompt, sizes, lengths, workers, seed;
  double temperature, seconds;
  bool load, json;
} serve_gpt_settings;

static const serve_gpt_settings defaults = {.device = "cpu",
                                            .clients = 8,
                                            .tokens = 32,
                                            .prompt = 32,
                                            .sizes = 4,
                                            .lengths = 4,
                                            .seed = 1,
                                            .temperature = 0.8,
                                            .seconds = 3};

#define OFFSET(member) offsetof(serve_gpt_settings, member)

static const option_row rows[] = {
    {"load", NULL, OPTION_FLAG, OFFSET(load), 0, 0, "send requests from inside the process; required"},
    OPTION_ROW_DEVICE(serve_gpt_settings, device),
    {"clients", "N", OPTION_COUNT, OFFSET(clients), 1, RONDO_SESSION_MAX_BATCH, "texts that are written at once"},
    {"tokens", "N", OPTION_COUNT, OFFSET(tokens), 1, MODEL_MAX_CONTEXT, "tokens to write of each text"},
    {"prompt", "N", OPTION_COUNT, OFFSET(prompt), 1, MODEL_MAX_CONTEXT,
     "tokens of the longest prompt; the shortest has a quarter of them"},
    {"sizes", "N", OPTION_COUNT, OFFSET(sizes), 1, RONDO_SESSION_MAX_SIZES, "record at most N batch sizes of a length"},
    {"lengths", "N", OPTION_COUNT, OFFSET(lengths), 1, RONDO_SESSION_MAX_LENGTHS, "record at most N lengths"},
    {"temperature", "X", OPTION_REAL, OFFSET(temperature), 0, 100, "randomness; 0 always picks the most likely byte"},
    {"seconds", "X", OPTION_REAL, OFFSET(seconds), 0.05, 3600, "duration of the measurement; at least three rounds"},
    {"workers", "N", OPTION_COUNT, OFFSET(workers), 0, 1024, "worker threads of a CPU device; 0: automatic"},
    {"seed", "N", OPTION_COUNT, OFFSET(seed), 0, 0, "seed of the prompts and the random choices"},
    OPTION_ROW_JSON(serve_gpt_settings),
};

static const option_table table = {
    .command = "rondo serve gpt",
    .operand = "FILE",
    .reads_operand = true,
    .operand_help = "a model of the kind gpt, as 'rondo train --model gpt --save FILE' writes it",
    .description =
        "Writes several texts at once with a language model in a session. Each text is a sequence: its prompt runs\n"
        "with the length that fits, and then its tokens run one by one, in one batch with those of the other texts,\n"
        "which begin and end at any time. The same texts are written one at a time, in turn with that. Prints tokens\n"
        "a second, the time to the first token, the time of each further one, and whether the texts are the same.",
    OPTION_ROWS(rows, defaults),
};

enum { ALONE, TOGETHER, WAYS };
enum { LEAST_ROUNDS = 3, MOST_ROUNDS = 64 };
enum { HISTORY = 256 };
static const char model_name[] = "gpt";

/* A length of the model, and the rows of its graphs. */
typedef struct recorded_length {
  size_t length, rows[RONDO_SESSION_MAX_SIZES], count;
} recorded_length;

typedef struct gpt_serving {
  serve_gpt_settings settings;
  const char *path;
  language_model model;
  rondo_device *device;
  rondo_device_info device_info;
  rondo_session *session;
  rondo_model_info info;
  recorded_length lengths[RONDO_SESSION_MAX_LENGTHS];
  size_t length_count;
  double start_seconds;
  sequence_tally tallies[WAYS];
  size_t rounds;
  double rates[WAYS][MOST_ROUNDS]; /* tokens a second */
  summary rate[WAYS], gain, first_us[WAYS], each_us[WAYS];
  size_t same, compared; /* texts */
} gpt_serving;

/* Setup ------------------------------------------------------------------------------------------------------------ */

static sequence_load load_of(const gpt_serving *s, int way) {
  const serve_gpt_settings *o = &s->settings;
  return (sequence_load){.session = s->session,
                         .name = model_name,
                         .model = &s->model,
                         .clients = way == ALONE ? 1 : (uint32_t)o->clients,
                         .prompt = (size_t)o->prompt,
                         .tokens = (size_t)o->tokens,
                         .temperature = o->temperature,
                         .sequences = (uint32_t)o->clients,
                         .seed = o->seed};
}

static rondo_status add_model(gpt_serving *s, const rondo_weights *weights) {
  const sequence_load load = load_of(s, TOGETHER);
  size_t history[2 * HISTORY], lengths[2 * HISTORY];
  for (size_t i = 0; i < 2 * HISTORY; i++) {
    history[i] = 1;
    lengths[i] = i % 2 == 0 ? 1 : sequence_prompt_length(&load, i / 2);
  }
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT,
                                       .build_sized = model_build_steps,
                                       .user = &s->model,
                                       .weights = weights,
                                       .row_inputs = model_row_inputs,
                                       .slots = (size_t)s->settings.clients,
                                       .slot_positions = s->model.sizes[MODEL_CONTEXT],
                                       .history = history,
                                       .history_lengths = lengths,
                                       .history_count = 2 * HISTORY,
                                       .max_lengths = (uint32_t)s->settings.lengths,
                                       .max_sizes = (uint32_t)s->settings.sizes};
  return rondo_session_add_model(s->session, model_name, &options);
}

static rondo_status look_at_length(gpt_serving *s, const char *name, size_t length) {
  recorded_length *at = &s->lengths[s->length_count++];
  rondo_model_info info = {.struct_size = sizeof info};
  at->length = length;
  TOOL_TRY(rondo_session_get_model_info(s->session, name, &info));
  for (at->count = 0; at->count < info.graphs; at->count++) {
    rondo_model_graph graph = {.struct_size = sizeof graph};
    TOOL_TRY(rondo_session_get_graph(s->session, name, at->count, &graph));
    at->rows[at->count] = graph.rows;
  }
  return RONDO_OK;
}

static rondo_status look_at_model(gpt_serving *s) {
  s->info.struct_size = sizeof s->info;
  for (size_t i = 0; i < RONDO_SESSION_MAX_LENGTHS; i++) {
    rondo_model_length length = {.struct_size = sizeof length};
    const rondo_status status = rondo_session_get_length(s->session, model_name, i, &length);
    if (status == RONDO_NOT_FOUND) break;
    TOOL_TRY(status);
    TOOL_TRY(look_at_length(s, length.name, length.length));
  }
  return rondo_session_get_model_info(s->session, model_name, &s->info);
}

static rondo_status start(gpt_serving *s, const rondo_weights *weights) {
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 1};
  const uint64_t begin = clock_ns();
  TOOL_TRY(rondo_session_create(s->device, &options, &s->session));
  TOOL_TRY(add_model(s, weights));
  tool_show_progress("recording");
  TOOL_TRY(rondo_session_capture(s->session, model_name));
  s->start_seconds = (double)(clock_ns() - begin) / 1e9;
  return look_at_model(s);
}

static int check_model(const gpt_serving *s) {
  const serve_gpt_settings *o = &s->settings;
  const uint64_t context = s->model.sizes[MODEL_CONTEXT];
  if (s->model.kind->build_steps == NULL)
    return tool_fail("%s has a model of the kind %s, which has no caches: use a gpt", s->path, s->model.kind->name);
  if (o->prompt + o->tokens > context)
    return tool_fail("--prompt %" PRIu64 " and --tokens %" PRIu64 " are more than the %" PRIu64
                     " tokens of the model's context: give less",
                     o->prompt, o->tokens, context);
  return TOOL_OK;
}

static int open_device(gpt_serving *s) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = (uint32_t)s->settings.workers};
  s->device_info.struct_size = sizeof s->device_info;
  if (rondo_device_open(s->settings.device, &options, &s->device) || rondo_device_get_info(s->device, &s->device_info))
    return tool_fail_status("%s", s->settings.device);
  return TOOL_OK;
}

/* Loads ------------------------------------------------------------------------------------------------------------ */

/* Both ways write the same texts. */
static int run_round(gpt_serving *s) {
  for (int way = 0; way < WAYS; way++) {
    sequence_tally *tally = &s->tallies[way];
    const sequence_load load = load_of(s, way);
    const uint64_t before = tally->tokens;
    const double seconds = tally->seconds;
    if (sequence_load_run(&load, s->rounds * load.sequences, tally) != TOOL_OK) return TOOL_FAILURE;
    s->rates[way][s->rounds] = (double)(tally->tokens - before) / (tally->seconds - seconds);
  }
  s->rounds++;
  return TOOL_OK;
}

/* The ways alternate, so that a disturbance of the machine affects both. */
static int run_loads(gpt_serving *s) {
  const uint64_t end = clock_ns() + (uint64_t)(s->settings.seconds * 1e9);
  while (s->rounds < LEAST_ROUNDS || (s->rounds < MOST_ROUNDS && clock_ns() < end)) {
    tool_show_progress("round %zu", s->rounds + 1);
    if (run_round(s) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

static summary summarize(const double *values, size_t count) {
  double copy[MOST_ROUNDS];
  samples all = {.values = copy, .capacity = MOST_ROUNDS};
  for (size_t i = 0; i < count; i++) samples_add(&all, values[i]);
  return samples_summarize(&all);
}

static void judge(gpt_serving *s) {
  double gains[MOST_ROUNDS];
  for (size_t i = 0; i < s->rounds; i++) gains[i] = s->rates[TOGETHER][i] / s->rates[ALONE][i];
  s->gain = summarize(gains, s->rounds);
  for (int way = 0; way < WAYS; way++) {
    s->rate[way] = summarize(s->rates[way], s->rounds);
    s->first_us[way] = samples_summarize(&s->tallies[way].first_us);
    s->each_us[way] = samples_summarize(&s->tallies[way].each_us);
  }
  for (size_t i = 0; i < SEQUENCE_TEXTS; i++) {
    const uint64_t a = s->tallies[ALONE].texts[i], b = s->tallies[TOGETHER].texts[i];
    s->compared += a != 0 && b != 0;
    s->same += a != 0 && a == b;
  }
}

static int serve(gpt_serving *s) {
  rondo_weights *weights = NULL;
  int result = model_load(s->path, &s->model, &weights);
  if (result == TOOL_OK) result = check_model(s);
  if (result == TOOL_OK) result = open_device(s);
  if (result == TOOL_OK && start(s, weights)) result = tool_fail_status("%s on %s", s->path, s->settings.device);
  rondo_weights_destroy(weights);
  if (result == TOOL_OK) result = run_loads(s);
  if (result == TOOL_OK) judge(s);
  return result;
}

static int serve_and_close(gpt_serving *s) {
  int result = serve(s);
  if (rondo_session_destroy(s->session) && result == TOOL_OK) result = tool_fail_status("the session");
  if (rondo_device_close(s->device) && result == TOOL_OK) result = tool_fail_status("%s", s->settings.device);
  for (int way = 0; way < WAYS; way++) sequence_tally_destroy(&s->tallies[way]);
  tool_clear_progress();
  return result;
}

/* Results ---------------------------------------------------------------------------------------------------------- */

static const char *const way_names[WAYS] = {"alone", "together"};

static double batch_rows(const sequence_tally *t) {
  return t->tokens == 0 ? 0 : (double)t->batch_rows / (double)t->tokens;
}

static void way_to_json(const gpt_serving *s, int way, json *out) {
  const sequence_tally *t = &s->tallies[way];
  json_begin_object(out, way_names[way]);
  json_real(out, "tokens_per_second", s->rate[way].median);
  json_integer(out, "tokens", t->tokens);
  json_integer(out, "sequences", t->sequences);
  json_real(out, "batch_rows", batch_rows(t));
  json_summary(out, "first_token_us", s->first_us[way]);
  json_summary(out, "token_us", s->each_us[way]);
  json_end(out);
}

static void lengths_to_json(const gpt_serving *s, json *out) {
  json_begin_array(out, "lengths");
  for (size_t i = 0; i < s->length_count; i++) {
    json_begin_object(out, NULL);
    json_integer(out, "length", s->lengths[i].length);
    json_begin_array(out, "graph_rows");
    for (size_t j = 0; j < s->lengths[i].count; j++) json_integer(out, NULL, s->lengths[i].rows[j]);
    json_end(out);
    json_end(out);
  }
  json_end(out);
}

static int show_json(const gpt_serving *s) {
  json out;
  json_begin(&out);
  json_text(&out, "model", s->path);
  json_text(&out, "device", s->device_info.name);
  json_text(&out, "description", s->device_info.description);
  json_integer(&out, "parameters", (uint64_t)model_parameter_elements(&s->model));
  json_integer(&out, "clients", s->settings.clients);
  json_integer(&out, "slots", s->info.slots);
  json_integer(&out, "slot_bytes", s->info.slot_bytes);
  lengths_to_json(s, &out);
  json_real(&out, "start_seconds", s->start_seconds);
  for (int way = 0; way < WAYS; way++) way_to_json(s, way, &out);
  json_integer(&out, "rounds", s->rounds);
  json_summary(&out, "gain", s->gain);
  json_integer(&out, "texts", s->compared);
  json_integer(&out, "same_texts", s->same);
  json_integer(&out, "state_bytes", s->info.state_bytes);
  json_integer(&out, "arena_bytes", s->info.arena_bytes);
  return json_print(&out);
}

static void print_lengths(const gpt_serving *s) {
  printf("recorded         in %.2f s: ", s->start_seconds);
  for (size_t i = 0; i < s->length_count; i++) {
    printf("%slength %zu for ", i == 0 ? "" : "; ", s->lengths[i].length);
    for (size_t j = s->lengths[i].count; j-- > 0;) printf("%zu%s", s->lengths[i].rows[j], j == 0 ? "" : ", ");
    printf(" row%s", s->lengths[i].count == 1 && s->lengths[i].rows[0] == 1 ? "" : "s");
  }
  printf("\n");
}

static void print_way(const gpt_serving *s, int way) {
  const summary *first = &s->first_us[way], *each = &s->each_us[way];
  char label[32];
  (void)snprintf(label, sizeof label, way == ALONE ? "one at a time" : "%" PRIu64 " at once", s->settings.clients);
  printf("%-16s %10.1f %14.2f %10.2f %14.2f %10.2f %12.2f\n", label, s->rate[way].median, first->median / 1e3,
         first->p95 / 1e3, each->median / 1e3, each->p95 / 1e3, batch_rows(&s->tallies[way]));
}

static int show_text(const gpt_serving *s) {
  tool_print_device("device           ", s->device_info.name, &s->device_info);
  printf("model            gpt, %.1f million parameters, %" PRIu64 " slots of %" PRIu64 " bytes\n",
         model_parameter_elements(&s->model) / 1e6, s->info.slots, s->info.slot_bytes);
  print_lengths(s);
  printf("%-16s %10s %14s %10s %14s %10s %12s\n", "", "tokens/s", "first token ms", "95 %", "each token ms", "95 %",
         "rows a batch");
  for (int way = 0; way < WAYS; way++) print_way(s, way);
  printf("gain             %.2f times the tokens a second (median of %zu rounds, %.2f to %.2f)\n", s->gain.median,
         s->rounds, s->gain.minimum, s->gain.maximum);
  printf("texts            %zu of %zu are the same one at a time\n", s->same, s->compared);
  printf("bytes            %" PRIu64 " of states, %" PRIu64 " of arenas\n", s->info.state_bytes, s->info.arena_bytes);
  return TOOL_OK;
}

int command_serve_gpt(int argc, char **argv) {
  static gpt_serving s;
  s.settings = defaults;
  tool_set_command("rondo serve gpt");
  const int parsed = options_parse(&table, argc, argv, &s.settings, &s.path);
  if (parsed != OPTIONS_RUN) return parsed;
  if (!s.settings.load) return tool_fail_usage("--load is required: requests come from this process only");
  const int result = serve_and_close(&s);
  if (result != TOOL_OK) return result;
  return s.settings.json ? show_json(&s) : show_text(&s);
}
