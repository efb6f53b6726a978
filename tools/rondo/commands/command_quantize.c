/* SPDX-License-Identifier: MIT
 * rondo quantize: writes a model of rondo train with weights of 8 or 4 bits, and says how much that changes its size
 * and its loss on a text.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "commands/commands.h"
#include "common/file.h"
#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"
#include "models/model_quantized.h"
#include "train/text_loss.h"

typedef struct quantize_settings {
  const char *type, *activations, *text, *save, *device;
  uint64_t group, workers;
  bool json;
} quantize_settings;

static const quantize_settings defaults = {.type = "int8", .activations = "float", .device = "cpu", .group = 64};

#define OFFSET(member) offsetof(quantize_settings, member)

static const option_row rows[] = {
    {"text", "FILE", OPTION_INPUT, OFFSET(text), 0, 0, "text to measure the loss on; required"},
    {"save", "FILE", OPTION_OUTPUT, OFFSET(save), 0, 0, "file to write the quantised model to"},
    {"type", "TYPE", OPTION_TEXT, OFFSET(type), 0, 0, "int8 or int4"},
    {"group", "N", OPTION_COUNT, OFFSET(group), 0, 65536,
     "weights of an output with one scale: a multiple of 32; 0: all of them"},
    {"activations", "TYPE", OPTION_TEXT, OFFSET(activations), 0, 0,
     "float, or int8: products round their input to 8 bits too"},
    {"device", "NAME", OPTION_TEXT, OFFSET(device), 0, 0, "device to measure the loss on"},
    {"workers", "N", OPTION_COUNT, OFFSET(workers), 0, 1024, "worker threads of a CPU device; 0: automatic"},
    {"json", NULL, OPTION_FLAG, OFFSET(json), 0, 0, "print one JSON object"},
};

static const option_table table = {
    .command = "rondo quantize",
    .operand = "MODEL",
    .reads_operand = true,
    .operand_help = "a model, as 'rondo train --save MODEL' writes it",
    .description =
        "Writes a model whose weights are integers of 8 or 4 bits with scales, for 'rondo generate'. Weights are\n"
        "the factors of products, and the embeddings of bytes; biases, norms and embeddings of positions stay F32.\n"
        "Prints the size, and the mean loss on a text, of both models. Choose a text like those that the model will\n"
        "continue, and not the one that it was trained on.",
    OPTION_ROWS(rows, defaults),
};

/* A model with its weights, and what is said about it. */
typedef struct measured_model {
  language_model model;
  rondo_weights *weights;
  uint64_t bytes; /* of all tensors */
  double loss;
} measured_model;

typedef struct quantizing {
  const quantize_settings *settings;
  const char *path;
  rondo_device *device;
  corpus text;
  measured_model before, after;
  size_t labels; /* that the losses are means over */
} quantizing;

/* Setup ----------------------------------------------------------------------------------------------------------- */

static int read_settings(const quantize_settings *s, model_quantization *out) {
  *out = (model_quantization){.bits = model_quantized_bits(s->type), .group = (size_t)s->group};
  if (out->bits == 0) return tool_fail_usage("--type is '%s': use int8 or int4", s->type);
  if (s->group % 32 != 0) return tool_fail_usage("--group is %" PRIu64 ": use a multiple of 32, or 0", s->group);
  if (!model_find_activations(s->activations, &out->activations))
    return tool_fail_usage("--activations is '%s': use float or int8", s->activations);
  if (!s->text) return tool_fail_usage("--text is required: the loss before and after is measured on it");
  return TOOL_OK;
}

static int load(quantizing *q, const model_quantization *quantization) {
  if (model_load(q->path, &q->before.model, &q->before.weights) != TOOL_OK) return TOOL_FAILURE;
  if (q->before.model.quantization.bits != 0)
    return tool_fail("%s: it is quantised already (%s): use the model that it was made from", q->path,
                     model_quantized_name(q->before.model.quantization.bits));
  q->after.model = q->before.model;
  q->after.model.quantization = *quantization;
  return text_loss_load(q->settings->text, &q->before.model, &q->text);
}

static int open_device(quantizing *q) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = (uint32_t)q->settings->workers};
  return rondo_device_open(q->settings->device, &options, &q->device) ? tool_fail_status("--device") : TOOL_OK;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static void count_bytes(measured_model *m) {
  rondo_weight weight;
  m->bytes = 0;
  for (size_t i = 0; rondo_weights_at(m->weights, i, &weight) == RONDO_OK; i++) m->bytes += weight.bytes;
}

static int measure(quantizing *q, measured_model *m, const char *name) {
  count_bytes(m);
  return text_loss_measure(&m->model, m->weights, name, q->device, &q->text, &m->loss, &q->labels);
}

static int save(const quantizing *q) {
  if (!q->settings->save) return TOOL_OK;
  return rondo_weights_save(q->after.weights, q->settings->save) ? tool_fail_status("--save") : TOOL_OK;
}

/* Output ---------------------------------------------------------------------------------------------------------- */

static double change_of(const quantizing *q) { return q->after.loss - q->before.loss; }

static int show_text(const quantizing *q) {
  const char *name = q->settings->type;
  printf("%-6s %12s %12s %9s\n", "", "f32", name, "");
  printf("%-6s %12" PRIu64 " %12" PRIu64 " %8.3f\n", "bytes", q->before.bytes, q->after.bytes,
         (double)q->after.bytes / (double)q->before.bytes);
  printf("%-6s %12.5f %12.5f %+9.5f\n", "loss", q->before.loss, q->after.loss, change_of(q));
  printf("over %zu bytes of %s\n", q->labels, file_display_name(q->settings->text));
  return tool_check_output();
}

static void pair_to_json(json *out, const char *name, const measured_model *m) {
  json_begin_object(out, name);
  json_integer(out, "bytes", m->bytes);
  json_real(out, "loss", m->loss);
  json_end(out);
}

static int show_json(const quantizing *q) {
  const quantize_settings *s = q->settings;
  json out;
  json_begin(&out);
  json_text(&out, "model", q->path);
  json_text(&out, "kind", q->before.model.kind->name);
  json_text(&out, "type", s->type);
  json_integer(&out, "group", s->group);
  json_text(&out, "activations", s->activations);
  json_text(&out, "device", s->device);
  json_integer(&out, "labels", q->labels);
  pair_to_json(&out, "before", &q->before);
  pair_to_json(&out, "after", &q->after);
  json_real(&out, "loss_change", change_of(q));
  return json_print(&out);
}

/* The whole ------------------------------------------------------------------------------------------------------- */

static int run(quantizing *q, const model_quantization *quantization) {
  int result = load(q, quantization);
  if (result == TOOL_OK) result = open_device(q);
  if (result == TOOL_OK) result = model_quantize(q->path, q->before.weights, &q->after.model, &q->after.weights);
  if (result == TOOL_OK) result = measure(q, &q->before, q->path);
  if (result == TOOL_OK) result = measure(q, &q->after, "the quantised model");
  if (result == TOOL_OK) result = save(q);
  if (result == TOOL_OK) result = q->settings->json ? show_json(q) : show_text(q);
  return result;
}

static int destroy_all(quantizing *q) {
  const int result = rondo_device_close(q->device) ? tool_fail_status("the device") : TOOL_OK;
  rondo_weights_destroy(q->before.weights);
  rondo_weights_destroy(q->after.weights);
  corpus_destroy(&q->text);
  return result;
}

int command_quantize(int argc, char **argv) {
  quantize_settings settings = defaults;
  quantizing q = {.settings = &settings};
  model_quantization quantization;
  const int parsed = options_parse(&table, argc, argv, &settings, &q.path);
  if (parsed != OPTIONS_RUN) return parsed;
  const int usage = read_settings(&settings, &quantization);
  if (usage != TOOL_OK) return usage;
  const int result = run(&q, &quantization);
  const int destroyed = destroy_all(&q);
  return result == TOOL_OK ? destroyed : result;
}
