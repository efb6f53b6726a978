/* SPDX-License-Identifier: MIT
 * rondo run: runs a model in an ONNX file once eagerly and once recorded, shows its outputs, writes them to files, and
 * compares them with expected ones.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands/commands.h"
#include "common/table.h"
#include "common/tool.h"
#include "onnx/onnx_parts.h"
#include "onnx/onnx_program.h"
#include "onnx/tensor_read.h"

typedef struct run_settings {
  onnx_input_settings source;
  option_list checks;
  const char *device, *output, *without_patterns;
  uint64_t workers;
  double relative, absolute;
  bool json;
} run_settings;

static const run_settings defaults = {.source = {.seed = 1}, .device = "cpu", .relative = 1e-3, .absolute = 1e-5};

#define OFFSET(member) offsetof(run_settings, member)

static const option_row rows[] = {
    ONNX_INPUT_ROWS(run_settings),
    ONNX_PATTERNS_ROW(run_settings),
    {"output", "FOLDER", OPTION_TEXT, OFFSET(output), 0, 0, "write each output to FOLDER/NAME.npy"},
    {"check", "WHAT", OPTION_LIST, OFFSET(checks), 0, 0,
     "compare outputs with files: NAME=FILE, or a folder with output_0.pb and so on, or with NAME.npy. Inputs that "
     "are not given are in the same folder: input_0.pb or NAME.npy"},
    {"relative", "X", OPTION_REAL, OFFSET(relative), 0, 1e9,
     "how far outputs may be from expected ones, of their size"},
    {"absolute", "X", OPTION_REAL, OFFSET(absolute), 0, 1e9, "how far in addition"},
    {"device", "NAME", OPTION_TEXT, OFFSET(device), 0, 0, "device to run on"},
    {"workers", "N", OPTION_COUNT, OFFSET(workers), 0, 1024, "worker threads of a CPU device; 0: automatic"},
    OPTION_ROW_JSON(run_settings),
};

static const option_table table = {
    .command = "rondo run",
    .operand = "MODEL",
    .reads_operand = true,
    .operand_help = "a model in an ONNX file",
    .description =
        "Runs a model, eagerly and then recorded, and compares the bits of both. Shows the type, the shape and the\n"
        "first elements of each output, and the times of both runs; 'rondo bench model' measures them well.\n\n"
        "A model in which shapes depend on data runs in parts, between which the host reads values. Its eager run "
        "also\n"
        "compiles the parts.\n\n"
        "With --check, outputs are compared with files. If one is not as expected, the exit status is 1.",
    OPTION_ROWS(rows, defaults),
};

/* An output of both runs, and what is expected of it. */
typedef struct run_output {
  onnx_output value;
  bool is_identical; /* both runs gave the same bits */
  bool is_checked;
  tensor_difference difference;
} run_output;

typedef struct model_run {
  const run_settings *settings;
  const char *folder; /* of --check; NULL: none */
  rondo_device *device;
  onnx_program program;
  run_output *outputs;
  double eager_us, recorded_us;
} model_run;

/* Running ---------------------------------------------------------------------------------------------------------- */

static int open_device(model_run *r) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = (uint32_t)r->settings->workers};
  return rondo_device_open(r->settings->device, &options, &r->device) ? tool_fail_status("--device") : TOOL_OK;
}

static int timed_run(const onnx_program *p, bool eager, double *out_us) {
  const uint64_t begin = clock_ns();
  tool_show_progress(eager ? "running eagerly" : "running recorded");
  const int result = onnx_program_run(p, eager);
  *out_us = (double)(clock_ns() - begin) / 1e3;
  return result;
}

static int read_outputs(model_run *r) {
  int result = TOOL_OK;
  for (size_t i = 0; i < onnx_program_outputs(&r->program) && result == TOOL_OK; i++)
    result = onnx_program_read_output(&r->program, i, &r->outputs[i].value);
  return result;
}

/* Reads the outputs again, and compares their bits. */
static int compare_runs(model_run *r) {
  for (size_t i = 0; i < onnx_program_outputs(&r->program); i++) {
    run_output *output = &r->outputs[i];
    onnx_output again = {0};
    const int result = onnx_program_read_output(&r->program, i, &again);
    output->is_identical =
        result == TOOL_OK && again.tensor.bytes == output->value.tensor.bytes &&
        (again.tensor.bytes == 0 || memcmp(again.tensor.data, output->value.tensor.data, again.tensor.bytes) == 0);
    host_tensor_destroy(&again.tensor);
    if (result != TOOL_OK) return result;
    if (!output->is_identical)
      return tool_fail("output '%s' has other bits in a recorded run than in an eager one", output->value.name);
  }
  return TOOL_OK;
}

static int run_both(model_run *r) {
  r->outputs = calloc(onnx_program_outputs(&r->program) + 1, sizeof *r->outputs);
  if (!r->outputs) return tool_fail_memory("the outputs");
  int result = timed_run(&r->program, true, &r->eager_us);
  if (result == TOOL_OK) result = read_outputs(r);
  if (result == TOOL_OK) result = onnx_program_write_inputs(&r->program);
  if (result == TOOL_OK) result = timed_run(&r->program, false, &r->recorded_us);
  return result == TOOL_OK ? compare_runs(r) : result;
}

/* Files ------------------------------------------------------------------------------------------------------------ */

static int write_outputs(const model_run *r) {
  int result = TOOL_OK;
  for (size_t i = 0; r->settings->output && i < onnx_program_outputs(&r->program) && result == TOOL_OK; i++)
    result = onnx_program_write_output(&r->program, i, &r->outputs[i].value, r->settings->output);
  return result;
}

/* Checking --------------------------------------------------------------------------------------------------------- */

/* Whether it is "NAME=..." or, of an element, "NAME[...". */
static bool names_output(const model_run *r, const char *item) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_onnx_get_output(r->program.model, i, &value) == RONDO_OK; i++) {
    const size_t length = strlen(value.name);
    if (option_value_of(item, value.name)) return true;
    if (value.element && strncmp(item, value.name, length) == 0 && item[length] == '[') return true;
  }
  return false;
}

/* An item that names no output is a folder. */
static int find_folder(model_run *r) {
  const option_list *checks = &r->settings->checks;
  for (size_t i = 0; i < checks->count; i++) {
    struct stat found;
    if (names_output(r, checks->items[i])) continue;
    if (stat(checks->items[i], &found) != 0 || !S_ISDIR(found.st_mode))
      return tool_fail("--check '%s': it is neither a folder nor NAME=FILE with the name of an output",
                       checks->items[i]);
    if (r->folder) return tool_fail("--check: two folders, '%s' and '%s'", r->folder, checks->items[i]);
    r->folder = checks->items[i];
  }
  return TOOL_OK;
}

static bool find_expected(const model_run *r, const char *name, size_t value_index, char out[ONNX_PATH]) {
  const option_list *checks = &r->settings->checks;
  for (size_t i = 0; i < checks->count; i++) {
    const char *file = option_value_of(checks->items[i], name);
    if (!file) continue;
    snprintf(out, ONNX_PATH, "%s", file);
    return true;
  }
  return r->folder && onnx_find_file(r->folder, "output", name, value_index, out);
}

/* Reads what is expected of an output, from a file of its own or of the whole sequence. */
static int read_expected(const model_run *r, const onnx_output *output, host_tensor *out, bool *out_exists,
                         char path[ONNX_PATH]) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  bool is_whole = true;
  *out_exists = false;
  if (rondo_onnx_get_output(r->program.model, output->value_index, &value)) return tool_fail_status("the outputs");
  if (strcmp(output->name, value.name) != 0 && find_expected(r, output->name, SIZE_MAX, path)) is_whole = false;
  if (is_whole && !find_expected(r, value.name, output->value_index, path)) return TOOL_OK;
  if (!output->is_shown)
    return tool_fail("output '%s' has the type %s, which cannot be compared", output->name, output->type_name);
  if (!is_whole) {
    *out_exists = true;
    return tensor_read(path, out);
  }
  if (tensor_read_element(path, &value, output->element_index, out, out_exists) != TOOL_OK) return TOOL_FAILURE;
  return *out_exists ? TOOL_OK : tool_fail("output '%s': %s has no such element", output->name, path);
}

static int compare_output(const model_run *r, run_output *output, bool *out_is_checked) {
  host_tensor expected;
  char is[SHAPE_TEXT], should[SHAPE_TEXT], path[ONNX_PATH];
  const host_tensor *actual = &output->value.tensor;
  int result = read_expected(r, &output->value, &expected, out_is_checked, path);
  if (result != TOOL_OK || !*out_is_checked) return result;
  if (host_tensor_is_like(actual, &expected)) {
    output->is_checked = true;
    output->difference = host_tensor_compare(actual, &expected, r->settings->relative, r->settings->absolute);
  } else {
    result = tool_fail("output '%s' is %s %s; in %s it is %s %s", output->value.name, rondo_type_name(actual->type),
                       shape_write(actual->shape, actual->rank, is), path, rondo_type_name(expected.type),
                       shape_write(expected.shape, expected.rank, should));
  }
  if (result == TOOL_OK && output->difference.wrong > 0) {
    const size_t at = output->difference.first_wrong;
    result = tool_fail("output '%s': %zu of %zu elements differ from %s; element %zu is %.9g, not %.9g",
                       output->value.name, output->difference.wrong, actual->count, path, at,
                       host_tensor_at(actual, at), host_tensor_at(&expected, at));
  }
  host_tensor_destroy(&expected);
  return result;
}

/* A file of a sequence or an optional has no more elements than the output. */
static int check_length(const model_run *r, size_t value_index, const rondo_onnx_value *value, size_t *inout_checked) {
  char path[ONNX_PATH];
  host_tensor more;
  bool exists;
  size_t count = 0;
  if (!value->element || !find_expected(r, value->name, value_index, path)) return TOOL_OK;
  for (size_t i = 0; i < onnx_program_outputs(&r->program); i++)
    count += r->outputs[i].value.value_index == value_index;
  if (tensor_read_element(path, value, count, &more, &exists) != TOOL_OK) return TOOL_FAILURE;
  ++*inout_checked;
  if (!exists) return TOOL_OK;
  host_tensor_destroy(&more);
  return tool_fail("output '%s' has %zu elements, and %s has more", value->name, count, path);
}

/* Names of elements that the output does not have. */
static int check_names(const model_run *r) {
  const option_list *checks = &r->settings->checks;
  for (size_t i = 0; i < checks->count; i++) {
    rondo_onnx_value value = {.struct_size = sizeof value};
    bool is_found = checks->items[i] == r->folder;
    for (size_t k = 0; k < onnx_program_outputs(&r->program); k++)
      is_found |= option_value_of(checks->items[i], r->outputs[k].value.name) != NULL;
    for (size_t k = 0; rondo_onnx_get_output(r->program.model, k, &value) == RONDO_OK; k++)
      is_found |= option_value_of(checks->items[i], value.name) != NULL;
    if (!is_found) return tool_fail("--check '%s': the output has no such element", checks->items[i]);
  }
  return TOOL_OK;
}

static int check_outputs(const model_run *r) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  size_t checked = 0;
  if (check_names(r) != TOOL_OK) return TOOL_FAILURE;
  for (size_t i = 0; i < onnx_program_outputs(&r->program); i++) {
    bool is_checked;
    if (compare_output(r, &r->outputs[i], &is_checked) != TOOL_OK) return TOOL_FAILURE;
    checked += is_checked;
  }
  for (size_t i = 0; rondo_onnx_get_output(r->program.model, i, &value) == RONDO_OK; i++)
    if (check_length(r, i, &value, &checked) != TOOL_OK) return TOOL_FAILURE;
  if (r->folder && checked == 0)
    return tool_fail("--check: %s has no file for an output: neither output_0.pb nor NAME.npy", r->folder);
  return TOOL_OK;
}

/* Output ----------------------------------------------------------------------------------------------------------- */

static const char *write_first(const host_tensor *t, char *out, size_t bytes) {
  enum { FIRST = 4 };
  size_t at = 0;
  out[0] = '\0';
  for (size_t i = 0; i < t->count && i < FIRST; i++)
    at += (size_t)snprintf(out + at, bytes - at, "%s%.6g", i > 0 ? ", " : "", host_tensor_at(t, i));
  if (t->count > FIRST) snprintf(out + at, bytes - at, ", ...");
  return out;
}

static void write_range(json *out, const host_tensor *t) {
  double least = (double)INFINITY, most = -(double)INFINITY, sum = 0;
  for (size_t i = 0; i < t->count; i++) {
    const double at = host_tensor_at(t, i);
    least = fmin(least, at);
    most = fmax(most, at);
    sum += at;
  }
  json_real(out, "least", least);
  json_real(out, "most", most);
  json_real(out, "mean", sum / (double)t->count);
}

static void write_one(json *out, const run_output *output) {
  const host_tensor *t = &output->value.tensor;
  char text[SHAPE_TEXT];
  json_begin_object(out, NULL);
  json_text(out, "name", output->value.name);
  json_text(out, "type", output->value.is_shown ? rondo_type_name(t->type) : output->value.type_name);
  json_text(out, "shape", shape_write(t->shape, t->rank, text));
  write_range(out, t);
  json_text(out, "first", write_first(t, text, sizeof text));
  json_boolean(out, "checked", output->is_checked);
  json_real(out, "difference", output->is_checked ? output->difference.largest : (double)NAN);
  json_end(out);
}

static void write_inputs(const model_run *r, json *out) {
  char text[SHAPE_TEXT];
  json_begin_array(out, "inputs");
  for (size_t i = 0; i < r->program.input_count; i++) {
    const onnx_input *input = &r->program.inputs[i];
    json_begin_object(out, NULL);
    json_text(out, "input", input->value.name);
    json_text(out, "shape", shape_write(input->tensor.shape, input->tensor.rank, text));
    json_text(out, "value", input->source);
    json_end(out);
  }
  json_end(out);
}

static int show(const model_run *r) {
  json out;
  json_begin(&out);
  onnx_program_to_json(&r->program, &out);
  json_text(&out, "device", r->settings->device);
  if (r->program.parts && onnx_parts_to_json(&r->program, &out) != TOOL_OK) return TOOL_FAILURE;
  json_real(&out, "eager_us", r->eager_us);
  json_real(&out, "recorded_us", r->recorded_us);
  json_boolean(&out, "identical", true);
  write_inputs(r, &out);
  json_begin_array(&out, "outputs");
  for (size_t i = 0; i < onnx_program_outputs(&r->program); i++) write_one(&out, &r->outputs[i]);
  json_end(&out);
  tool_clear_progress();
  return r->settings->json ? json_print(&out) : table_print(&out);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static int run(model_run *r, const char *path) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = r->settings->without_patterns};
  int result = onnx_program_load(path, &r->program);
  if (result == TOOL_OK) result = find_folder(r);
  if (result == TOOL_OK) result = onnx_program_take_inputs(&r->program, &r->settings->source, r->folder);
  if (result == TOOL_OK) result = open_device(r);
  if (result == TOOL_OK) result = onnx_program_build(&r->program, r->device, false);
  if (result == TOOL_OK) result = onnx_program_compile(&r->program, r->device, &options);
  if (result == TOOL_OK) result = run_both(r);
  if (result == TOOL_OK) result = write_outputs(r);
  if (result == TOOL_OK) result = check_outputs(r);
  return result == TOOL_OK ? show(r) : result;
}

static int destroy_all(model_run *r) {
  for (size_t i = 0; r->outputs && i < onnx_program_outputs(&r->program); i++)
    host_tensor_destroy(&r->outputs[i].value.tensor);
  free(r->outputs);
  const int destroyed = onnx_program_destroy(&r->program);
  const int closed = rondo_device_close(r->device) ? tool_fail_status("the device") : TOOL_OK;
  return destroyed != TOOL_OK ? destroyed : closed;
}

int command_run(int argc, char **argv) {
  run_settings settings = defaults;
  model_run r = {.settings = &settings};
  const char *path = NULL;
  const int parsed = options_parse(&table, argc, argv, &settings, &path);
  if (parsed != OPTIONS_RUN) return parsed;
  const int result = run(&r, path);
  const int destroyed = destroy_all(&r);
  return result == TOOL_OK ? destroyed : result;
}
