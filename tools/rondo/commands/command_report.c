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
    {"output", "FILE", OPTION_OUTPUT, OFFSET(output), 0, 0, "write the page to FILE instead of standard output"},
    {"title", "TEXT", OPTION_TEXT, OFFSET(title), 0, 0, "title of the page, instead of the graph's name"},
    {"no-addresses", NULL, OPTION_FLAG, OFFSET(no_addresses), 0, 0,
     "omit addresses, so that two runs give the same page"},
};

static const option_table table = {
    .command = "rondo report",
    GRAPH_FILE_OPERAND,
    .description =
        "Writes one HTML page about a graph, which needs no other files: figures, mistakes, a drawing, the memory\n"
        "map (address against time), and the nodes with their parameters. 'rondo train --report' writes such a page\n"
        "for a training step, with the time of each node.",
    OPTION_ROWS(rows, defaults),
    .letters = "o",
};

static int write_page(const char *path, const char *text) {
  if (path) return file_write(path, text);
  fputs(text, stdout);
  return tool_check_output();
}

static int report(const rondo_graph *graph, const char *path, const void *user) {
  const report_settings *settings = user;
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .no_addresses = settings->no_addresses,
                                        .title = settings->title};
  char *text = NULL;
  (void)path;
  if (rondo_graph_report(graph, &options, &text)) return tool_fail_status("the page");
  const int result = write_page(settings->output, text);
  rondo_text_free(text);
  return result;
}

int command_report(int argc, char **argv) {
  report_settings settings = defaults;
  return graph_file_command(&table, argc, argv, &settings, NULL, report);
}
