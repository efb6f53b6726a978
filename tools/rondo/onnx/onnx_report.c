/* SPDX-License-Identifier: MIT
 * Pages of models: the library's report of the recorded graph, after sections about the model.
 */
#include "onnx/onnx_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/text_stream.h"
#include "common/tool.h"
#include "onnx/onnx_program.h"

enum { SECTIONS = 3 };

/* Sections --------------------------------------------------------------------------------------------------------- */

static void begin_table(FILE *out, const char *title, const char *const *headings) {
  fprintf(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table><thead><tr>", title);
  for (; *headings; headings++) fprintf(out, "<th>%s</th>", *headings);
  fputs("</tr></thead><tbody>\n", out);
}

static void end_table(FILE *out) { fputs("</tbody></table></div>\n", out); }

static void write_cell(FILE *out, const char *text) {
  fputs("<td>", out);
  markup_write_text(out, text);
  fputs("</td>", out);
}

/* `built` has the shape for the sizes of the page. */
static void write_value(FILE *out, const char *kind, const rondo_onnx_value *value,
                        const rondo_onnx_built_value *built) {
  char text[SHAPE_TEXT], type[ONNX_TYPE_TEXT];
  fputs("<tr>", out);
  write_cell(out, kind);
  write_cell(out, built->name);
  write_cell(out, onnx_write_type(value, type));
  write_cell(out, onnx_write_dimensions(value, text));
  write_cell(out, shape_write(built->shape, built->rank, text));
  fputs("</tr>\n", out);
}

static void write_values(const void *program, FILE *out) {
  const onnx_program *p = program;
  static const char *const headings[] = {"", "Name", "Type", "Dimensions", "Shape on this page", NULL};
  rondo_onnx_value value = {.struct_size = sizeof value};
  rondo_onnx_built_value built = {.struct_size = sizeof built};
  begin_table(out, "Inputs and outputs", headings);
  for (size_t i = 0; rondo_onnx_build_get_input(p->build, i, &built) == RONDO_OK; i++)
    write_value(out, "input", &p->inputs[i].value, &built);
  for (size_t i = 0; rondo_onnx_build_get_output(p->build, i, &built) == RONDO_OK; i++)
    if (rondo_onnx_get_output(p->model, built.value_index, &value) == RONDO_OK)
      write_value(out, "output", &value, &built);
  end_table(out);
}

static void write_operators(const void *program, FILE *out) {
  const onnx_program *p = program;
  static const char *const headings[] = {"Operator", "Nodes", NULL};
  rondo_onnx_operator op = {.struct_size = sizeof op};
  fprintf(out,
          "<p>%zu nodes of operator set %" PRId64 ", %" PRIu64 " parameters (%" PRIu64
          " bytes); %u operators of the program, in %u kernels.</p>\n",
          p->info.nodes, p->info.opset, p->info.parameters, p->info.weight_bytes, p->memory.operators,
          p->memory.kernels);
  begin_table(out, "Operators", headings);
  for (size_t i = 0; rondo_onnx_get_operator(p->model, i, &op) == RONDO_OK; i++) {
    fputs("<tr><td>", out);
    markup_write_text(out, op.domain);
    if (op.domain[0] != '\0') fputc('.', out);
    markup_write_text(out, op.name);
    fprintf(out, "</td><td>%zu</td></tr>\n", op.nodes);
  }
  end_table(out);
}

static void write_patterns(const void *program, FILE *out) {
  const onnx_program *p = program;
  static const char *const headings[] = {"Pattern", "Replaced", NULL};
  rondo_compiled_pattern pattern = {.struct_size = sizeof pattern};
  fputs("<p>Operators of the model that one operator of the program replaces.</p>\n", out);
  begin_table(out, "Patterns", headings);
  for (size_t i = 0; rondo_compiled_get_pattern(p->compiled, i, &pattern) == RONDO_OK; i++) {
    fputs("<tr>", out);
    write_cell(out, pattern.name);
    fprintf(out, "<td>%" PRIu32 "</td></tr>\n", pattern.count);
  }
  end_table(out);
}

/* Pages ------------------------------------------------------------------------------------------------------------ */

static int make_page(const onnx_program *p, const onnx_report_settings *settings, char *const *texts, char **out_text) {
  const rondo_report_section sections[SECTIONS] = {
      {"Inputs and outputs", texts[0]}, {"Operators", texts[1]}, {"Patterns", texts[2]}};
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .title = settings->title ? settings->title : p->path,
                                        .no_addresses = settings->no_addresses, .sections = sections,
                                        .section_count = SECTIONS};
  if (!texts[0] || !texts[1] || !texts[2]) return tool_fail_memory("the page");
  tool_show_progress("writing the page");
  return rondo_compiled_report(p->compiled, &options, out_text) ? tool_fail_status("the page") : TOOL_OK;
}

static int write_page(const onnx_program *p, const onnx_report_settings *settings, char **out_text) {
  if (!p->compiled) return tool_fail("%s: its outputs are the same in each run, so there is no graph", p->path);
  char *const texts[SECTIONS] = {text_stream_make(write_values, p), text_stream_make(write_operators, p),
                                 text_stream_make(write_patterns, p)};
  const int result = make_page(p, settings, texts, out_text);
  for (size_t i = 0; i < SECTIONS; i++) free(texts[i]);
  return result;
}

int onnx_report_make(const char *path, const onnx_report_settings *settings, char **out_text) {
  const onnx_input_settings source = {.inputs = settings->inputs, .sizes = settings->sizes, .seed = 1};
  onnx_program program;
  rondo_device *device = NULL;
  *out_text = NULL;
  int result = onnx_program_load(path, &program);
  if (result == TOOL_OK) result = onnx_program_take_inputs(&program, &source, NULL);
  if (result == TOOL_OK && rondo_device_open(settings->device, NULL, &device)) result = tool_fail_status("--device");
  if (result == TOOL_OK) result = onnx_program_build(&program, device, false);
  if (result == TOOL_OK) result = onnx_program_compile(&program, device, NULL);
  if (result == TOOL_OK) result = write_page(&program, settings, out_text);
  if (onnx_program_destroy(&program) != TOOL_OK) result = TOOL_FAILURE;
  if (rondo_device_close(device) && result == TOOL_OK) result = tool_fail_status("the device");
  tool_clear_progress();
  return result;
}
