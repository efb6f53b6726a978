/* SPDX-License-Identifier: MIT
 * rondo info: what a model in an ONNX file has, the memory that it needs for given sizes, and what is not supported.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "common/table.h"
#include "common/timed_runs.h"
#include "common/tool.h"
#include "onnx/onnx_program.h"

typedef struct info_settings {
  onnx_input_settings source;
  const char *device, *without_patterns;
  bool json;
} info_settings;

static const info_settings defaults = {.source = {.seed = 1}, .device = "cpu"};

static const option_row rows[] = {
    ONNX_INPUT_ROWS(info_settings),
    {"device", "NAME", OPTION_TEXT, offsetof(info_settings, device), 0, 0, "device to plan the memory for"},
    ONNX_PATTERNS_ROW(info_settings),
    OPTION_ROW_JSON(info_settings),
};

static const option_table table = {
    .command = "rondo info",
    .operand = "MODEL",
    .reads_operand = true,
    .operand_help = "a model in an ONNX file",
    .description =
        "Describes a model: its inputs and outputs with their types and dimensions, its operators and how many nodes\n"
        "use each, its parameters, the patterns of operators that one operator replaces, the memory that it takes\n"
        "for the given sizes, and all nodes that are not supported, with the reasons. A model in which shapes depend\n"
        "on data runs in parts: its cuts are the nodes before which the host reads values. Nothing is run.",
    OPTION_ROWS(rows, defaults),
};

/* Values ----------------------------------------------------------------------------------------------------------- */

static void write_value(json *out, const rondo_onnx_value *value) {
  char text[SHAPE_TEXT], type[ONNX_TYPE_TEXT];
  json_begin_object(out, NULL);
  json_text(out, "name", value->name);
  json_text(out, "type", onnx_write_type(value, type));
  json_text(out, "dimensions", onnx_write_dimensions(value, text));
  json_end(out);
}

static void write_values(const onnx_program *p, json *out) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  json_begin_array(out, "inputs");
  for (size_t i = 0; rondo_onnx_get_input(p->model, i, &value) == RONDO_OK; i++) write_value(out, &value);
  json_end(out);
  json_begin_array(out, "outputs");
  for (size_t i = 0; rondo_onnx_get_output(p->model, i, &value) == RONDO_OK; i++) write_value(out, &value);
  json_end(out);
}

/* The rest --------------------------------------------------------------------------------------------------------- */

static void write_operators(const onnx_program *p, json *out) {
  rondo_onnx_operator op = {.struct_size = sizeof op};
  json_begin_array(out, "operators");
  for (size_t i = 0; rondo_onnx_get_operator(p->model, i, &op) == RONDO_OK; i++) {
    char name[256];
    snprintf(name, sizeof name, "%s%s%s", op.domain, op.domain[0] != '\0' ? "." : "", op.name);
    json_begin_object(out, NULL);
    json_text(out, "operator", name);
    json_integer(out, "nodes", op.nodes);
    json_end(out);
  }
  json_end(out);
}

static void write_patterns(const onnx_program *p, json *out) {
  rondo_compiled_pattern pattern = {.struct_size = sizeof pattern};
  json_begin_array(out, "patterns");
  for (size_t i = 0; p->compiled && rondo_compiled_get_pattern(p->compiled, i, &pattern) == RONDO_OK; i++) {
    json_begin_object(out, NULL);
    json_text(out, "pattern", pattern.name);
    json_integer(out, "replaced", pattern.count);
    json_end(out);
  }
  json_end(out);
}

/* The nodes that only need data are where the model is cut. Others, after the cuts, may be found when it runs. */
static void write_refused(const onnx_program *p, json *out, const char *name, bool needs_data) {
  rondo_onnx_unsupported item = {.struct_size = sizeof item};
  json_begin_array(out, name);
  for (size_t i = 0; p->build && rondo_onnx_build_get_unsupported(p->build, i, &item) == RONDO_OK; i++) {
    if (item.needs_data != needs_data) continue;
    json_begin_object(out, NULL);
    json_text(out, "node", item.node);
    json_text(out, "reason", item.reason);
    json_end(out);
  }
  json_end(out);
}

/* Of a model that runs: for these shapes of its inputs. */
static void write_memory(const onnx_program *p, json *out) {
  char text[SHAPE_TEXT];
  if (!p->compiled) return;
  json_begin_array(out, "sizes");
  for (size_t i = 0; i < p->input_count; i++) {
    const host_tensor *tensor = &p->inputs[i].tensor;
    json_begin_object(out, NULL);
    json_text(out, "input", p->inputs[i].value.name);
    json_text(out, "shape", shape_write(tensor->shape, tensor->rank, text));
    json_integer(out, "bytes", tensor->bytes);
    json_end(out);
  }
  json_end(out);
  memory_to_json(&p->memory, out);
}

static int show(const info_settings *settings, const onnx_program *p) {
  json out;
  json_begin(&out);
  onnx_program_to_json(p, &out);
  json_integer(&out, "ir_version", p->info.ir_version);
  json_integer(&out, "opset", (uint64_t)p->info.opset);
  json_text(&out, "producer", p->info.producer_name);
  json_text(&out, "graph", p->info.graph_name);
  json_integer(&out, "weight_bytes", p->info.weight_bytes);
  json_boolean(&out, "supported", p->built.unsupported == 0 || p->needs_parts);
  json_boolean(&out, "in_parts", p->needs_parts);
  write_values(p, &out);
  write_operators(p, &out);
  write_patterns(p, &out);
  write_memory(p, &out);
  write_refused(p, &out, "cuts", true);
  write_refused(p, &out, "unsupported", false);
  tool_clear_progress();
  return settings->json ? json_print(&out) : table_print(&out);
}

static int describe(const info_settings *settings, const char *path, onnx_program *p) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = settings->without_patterns};
  rondo_device *device = NULL;
  int result = onnx_program_load(path, p);
  if (result == TOOL_OK) result = onnx_program_take_inputs(p, &settings->source, NULL);
  if (result == TOOL_OK && rondo_device_open(settings->device, NULL, &device)) result = tool_fail_status("--device");
  if (result == TOOL_OK) result = onnx_program_build(p, device, true);
  if (result == TOOL_OK && p->built.unsupported == 0) result = onnx_program_compile(p, device, &options);
  if (result == TOOL_OK) result = show(settings, p);
  const int destroyed = onnx_program_destroy(p);
  const int closed = rondo_device_close(device) ? tool_fail_status("the device") : TOOL_OK;
  return result != TOOL_OK ? result : destroyed != TOOL_OK ? destroyed : closed;
}

int command_info(int argc, char **argv) {
  info_settings settings = defaults;
  onnx_program program = {0};
  const char *path = NULL;
  const int parsed = options_parse(&table, argc, argv, &settings, &path);
  return parsed == OPTIONS_RUN ? describe(&settings, path, &program) : parsed;
}
