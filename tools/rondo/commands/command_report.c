/* SPDX-License-Identifier: MIT
 * rondo report: reads the JSON dump of a graph, or the results of trainings, and writes an HTML page about it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands/commands.h"
#include "commands/graph_file.h"
#include "commands/training_result.h"
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
    {"title", "TEXT", OPTION_TEXT, OFFSET(title), 0, 0, "title of the page, instead of a usual one"},
    {"no-addresses", NULL, OPTION_FLAG, OFFSET(no_addresses), 0, 0,
     "omit addresses, so that two runs give the same page"},
};

static const option_table table = {
    .command = "rondo report",
    .operand = "FILE",
    .repeats_operand = true,
    .reads_operand = true,
    .operand_help =
        "a dump, as rondo_graph_to_json or 'rondo train --dump-graph' writes it, or up to 8 results, as "
        "'rondo train --json' prints them; '-' is standard input",
    .description =
        "Writes one HTML page about a graph, which needs no other files: figures, mistakes, a drawing, the memory\n"
        "map (address against time), and the nodes with their parameters. 'rondo train --report' writes such a page\n"
        "for a training step, with the time of each node.\n\n"
        "Given results of trainings, the page compares them: curves of losses and validation losses, and a table\n"
        "of settings, figures and times.",
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

/* Trainings ------------------------------------------------------------------------------------------------------- */

static int compare(const training_result *results, size_t count, const report_settings *settings) {
  char *text = training_results_compare(results, count, settings->title);
  const int result = text ? write_page(settings->output, text) : tool_fail_memory("the page");
  free(text);
  return result;
}

static int read_and_compare(const char *const *paths, const file_bytes *files, size_t count,
                            const report_settings *settings) {
  training_result results[OPERANDS_MAX] = {0};
  int result = TOOL_OK;
  for (size_t i = 0; i < count && result == TOOL_OK; i++)
    result = training_result_read(paths[i], &files[i], &results[i]);
  if (result == TOOL_OK) result = compare(results, count, settings);
  for (size_t i = 0; i < count; i++) training_result_destroy(&results[i]);
  return result;
}

int command_report(int argc, char **argv) {
  report_settings settings = defaults;
  const char *paths[OPERANDS_MAX] = {NULL};
  file_bytes files[OPERANDS_MAX] = {0};
  size_t count = 0;
  int result = options_parse(&table, argc, argv, &settings, paths);
  if (result != OPTIONS_RUN) return result;
  do {
    result = file_read(paths[count], &files[count]);
  } while (result == TOOL_OK && ++count < OPERANDS_MAX && paths[count]);
  if (result == TOOL_OK)
    result = count > 1 || training_result_is(&files[0]) ? read_and_compare(paths, files, count, &settings)
                                                        : graph_file_use(paths[0], &files[0], &settings, report);
  for (size_t i = 0; i < count; i++) file_release(&files[i]);
  return result;
}
