/* SPDX-License-Identifier: MIT
 * rondo check: finds ordering and lifetime mistakes in a dumped graph.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "commands/commands.h"
#include "commands/graph_file.h"
#include "common/file.h"
#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"

typedef struct check_settings {
  uint64_t most;
  bool no_warnings, json;
} check_settings;

static const check_settings defaults = {.most = 100};

static const option_row rows[] = {
    {"most", "N", OPTION_COUNT, offsetof(check_settings, most), 1, 1e6, "print at most N findings"},
    {"no-warnings", NULL, OPTION_FLAG, offsetof(check_settings, no_warnings), 0, 0, "report errors only"},
    OPTION_ROW_JSON(check_settings),
};

static const option_table table = {
    .command = "rondo check",
    GRAPH_FILE_OPERAND,
    .description =
        "Finds mistakes in a dumped graph: memory that is used before its alloc node, after its free node, or\n"
        "without an order to them; frees of memory that is not allocated; nodes that access the same bytes without\n"
        "an order, one of them writing; and accesses past the end of an allocation. Prints each mistake with the\n"
        "edge that would correct it. Errors are certain. Warnings depend on what the dump does not contain, such as\n"
        "how many bytes a kernel accesses. Fails if there are errors or warnings; see --no-warnings.",
    OPTION_ROWS(rows, defaults),
};

typedef struct check_result {
  const char *path;
  rondo_findings *findings;
  size_t shown;              /* how many findings are shown, errors first */
  uint64_t errors, warnings; /* findings that --no-warnings hides are not counted */
} check_result;

static void write_node(json *out, const char *name, rondo_node node) {
  if (rondo_node_number(node) != RONDO_NO_NODE) json_integer(out, name, rondo_node_number(node));
}

static void write_finding(const rondo_finding *finding, json *out) {
  json_begin_object(out, NULL);
  json_text(out, "severity", rondo_severity_name(finding->severity));
  json_text(out, "status", rondo_status_name(finding->status));
  json_text(out, "reason", rondo_reason_name(finding->reason));
  write_node(out, "node", finding->node);
  write_node(out, "other", finding->other);
  write_node(out, "from", finding->from);
  write_node(out, "to", finding->to);
  if (finding->allocation && finding->allocation[0]) json_text(out, "allocation", finding->allocation);
  json_text(out, "message", finding->message);
  json_end(out);
}

static int show_json(const check_result *r) {
  json out;
  json_begin(&out);
  json_text(&out, "file", r->path);
  json_integer(&out, "errors", r->errors);
  json_integer(&out, "warnings", r->warnings);
  json_begin_array(&out, "findings");
  for (size_t i = 0; i < r->shown; i++) {
    rondo_finding finding = {.struct_size = sizeof finding};
    if (rondo_findings_get(r->findings, i, &finding)) {
      json_discard(&out);
      return tool_fail_status("finding %zu", i);
    }
    write_finding(&finding, &out);
  }
  json_end(&out);
  return json_print(&out);
}

static int show_text(const check_result *r) {
  for (size_t i = 0; i < r->shown; i++) {
    rondo_finding finding = {.struct_size = sizeof finding};
    if (rondo_findings_get(r->findings, i, &finding)) return tool_fail_status("finding %zu", i);
    printf("%s: %s: ", rondo_severity_name(finding.severity), rondo_reason_name(finding.reason));
    tool_print_text(finding.message);
    putchar('\n');
  }
  if (r->errors + r->warnings > r->shown)
    printf("%" PRIu64 " more not shown; see --most\n", r->errors + r->warnings - r->shown);
  printf("%" PRIu64 " error%s, %" PRIu64 " warning%s\n", r->errors, r->errors == 1 ? "" : "s", r->warnings,
         r->warnings == 1 ? "" : "s");
  return TOOL_OK;
}

static void count_findings(check_result *r, bool no_warnings) {
  r->shown = rondo_findings_count(r->findings);
  rondo_findings_totals(r->findings, &r->errors, &r->warnings);
  if (!no_warnings) return;
  r->warnings = 0;
  if (r->shown > r->errors) r->shown = (size_t)r->errors;
}

static int check(const rondo_graph *graph, const char *path, const void *user) {
  const check_settings *settings = user;
  const rondo_verify_options options = {RONDO_VERIFY_OPTIONS_INIT, .max_findings = (uint32_t)settings->most};
  const char *name = file_display_name(path);
  check_result r = {.path = path};
  if (rondo_graph_verify(graph, &options, &r.findings)) return tool_fail_status("%s", name);
  count_findings(&r, settings->no_warnings);
  const int result = settings->json ? show_json(&r) : show_text(&r);
  const uint64_t total = r.errors + r.warnings;
  rondo_findings_destroy(r.findings);
  if (result != TOOL_OK || total == 0) return result;
  return tool_fail("%s: %" PRIu64 " mistake%s found", name, total, total == 1 ? " was" : "s were");
}

int command_check(int argc, char **argv) {
  check_settings settings = defaults;
  return graph_file_command(&table, argc, argv, &settings, NULL, check);
}
