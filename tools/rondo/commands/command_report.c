/* SPDX-License-Identifier: MIT
 * rondo report: reads the JSON dump of a graph and writes it as an HTML page.
 */
#include <stdbool.h>
#include <stdio.h>

#include "commands/commands.h"
#include "commands/graph_file.h"
#include "common/file.h"
#include "common/options.h"
#include "common/tool.h"

typedef struct report_settings {
  const char *output, *title;
  bool no_addresses;
} report_settings;

static const report_settings defaults = {0};

#define OFFSET(member) offsetof(report_settings, member)

static const option_row rows[] = {
    {"output", "FILE", OPTION_OUTPUT, OFFSET(output), 0, 0, "write the page to FILE, not to standard output"},
    {"title", "TEXT", OPTION_TEXT, OFFSET(title), 0, 0, "title of the page, in place of the graph's name"},
    {"no-addresses", NULL, OPTION_FLAG, OFFSET(no_addresses), 0, 0,
     "leave pointers out, so that two runs give the same page"},
};

static const option_table table = {
    .command = "rondo report",
    .operand = "FILE",
    .reads_operand = true,
    .operand_help = "a dump, as rondo_graph_to_json or 'rondo train --dump-graph' writes it; '-' is standard input",
    .description =
        "Writes one HTML page of a graph, which any browser shows without a network: figures, mistakes, a drawing,\n"
        "the memory map (address against time), and the nodes with their parameters. 'rondo train --report' writes\n"
        "the page of a recorded training step with the time of each node.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
    .letters = "o",
};

static int write_page(const char *path, const char *text) {
  if (path) return file_write(path, text);
  fputs(text, stdout);
  return tool_check_output();
}

static int report(const rondo_graph *graph, const report_settings *settings) {
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .no_addresses = settings->no_addresses,
                                        .title = settings->title};
  char *text = NULL;
  if (rondo_graph_report(graph, &options, &text)) return tool_fail_status("the page");
  const int result = write_page(settings->output, text);
  rondo_text_free(text);
  return result;
}

int command_report(int argc, char **argv) {
  report_settings settings = defaults;
  const char *path = NULL;
  const int parsed = options_parse(&table, argc, argv, &settings, &path);
  if (parsed != OPTIONS_RUN) return parsed;
  rondo_graph *graph = NULL;
  int result = graph_read(path, &graph);
  if (result == TOOL_OK) result = report(graph, &settings);
  if (rondo_graph_destroy(graph) && result == TOOL_OK) result = tool_fail_status("the graph");
  return result;
}
