/* SPDX-License-Identifier: MIT
 * rondo plan: reads buffers with lifetimes, plans their offsets, and reports the quality of the plan.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "commands/commands.h"
#include "common/buffer_csv.h"
#include "common/file.h"
#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"

typedef struct plan_settings {
  const char *svg, *output;
  uint64_t budget_ms, steps, capacity, threads, seed;
  double gap;
  bool fast, offsets, json;
} plan_settings;

static const plan_settings defaults = {.budget_ms = 5000, .threads = 2, .gap = 1};

#define OFFSET(member) offsetof(plan_settings, member)

static const option_row rows[] = {
    {"budget-ms", "N", OPTION_COUNT, OFFSET(budget_ms), 1, 86400e3, "search for at most N milliseconds"},
    {"steps", "N", OPTION_COUNT, OFFSET(steps), 0, 0,
     "search N steps instead of a time, with the same result on every machine; 0: by time"},
    {"gap", "X", OPTION_REAL, OFFSET(gap), 1, 1000, "stop when the peak is at most X times the lower bound"},
    {"capacity", "BYTES", OPTION_COUNT, OFFSET(capacity), 0, 0,
     "stop when a plan fits into BYTES, fail if none does; 0: no limit"},
    {"fast", NULL, OPTION_FLAG, OFFSET(fast), 0, 0, "place greedily, without a search and its options"},
    {"threads", "N", OPTION_COUNT, OFFSET(threads), 1, 256, "threads of the search"},
    {"seed", "N", OPTION_COUNT, OFFSET(seed), 0, 0, "seed of the search"},
    {"output", "FILE", OPTION_OUTPUT, OFFSET(output), 0, 0, "write the buffers with their offsets to FILE (CSV)"},
    {"svg", "FILE", OPTION_OUTPUT, OFFSET(svg), 0, 0, "draw address against time to FILE (SVG)"},
    {"offsets", NULL, OPTION_FLAG, OFFSET(offsets), 0, 0,
     "with --json, also print the offsets, in the order of the lines"},
    OPTION_ROW_JSON(plan_settings),
};

static const option_table table = {
    .command = "rondo plan",
    .operand = "FILE",
    .reads_operand = true,
    .operand_help = "CSV whose first line names the columns id,lower,upper,size; '-' is standard input",
    .description =
        "Finds offsets for buffers in as little memory as possible, such that buffers that live at the same time do\n"
        "not overlap. A buffer of 'size' bytes lives from time 'lower' up to, but not including, time 'upper'.\n"
        "Prints the lower bound (the most bytes that live at once), the peak of the plan and their ratio. If the\n"
        "file also has a column 'offset', those offsets are checked and compared with the plan.",
    OPTION_ROWS(rows, defaults),
};

typedef struct planning {
  plan_settings settings;
  const char *path;
  buffer_list list;
  rondo_plan *plan;
  rondo_plan_info info;
  size_t given_peak; /* with the offsets in the file */
} planning;

static bool fits(const planning *p) { return p->settings.capacity == 0 || p->info.peak <= p->settings.capacity; }

static double ratio_of(const planning *p, size_t peak) {
  return p->info.lower_bound == 0 ? 1 : (double)peak / (double)p->info.lower_bound;
}

/* Planning --------------------------------------------------------------------------------------------------------- */

static int compare_given(planning *p) {
  if (!p->list.has_offsets) return TOOL_OK;
  if (buffer_list_check_offsets(p->path, &p->list) != TOOL_OK) return TOOL_FAILURE;
  for (size_t i = 0; i < p->list.count; i++) {
    const size_t end = p->list.offsets[i] + p->list.items[i].bytes;
    if (p->list.items[i].bytes > 0 && end > p->given_peak) p->given_peak = end;
  }
  return TOOL_OK;
}

static rondo_plan_problem problem_of(const planning *p) {
  return (rondo_plan_problem){RONDO_PLAN_PROBLEM_INIT, .items = p->list.items, .count = p->list.count};
}

static int make_plan(planning *p) {
  const plan_settings *s = &p->settings;
  const rondo_plan_problem problem = problem_of(p);
  const rondo_plan_options options = {
      RONDO_PLAN_OPTIONS_INIT,         .budget_ms = s->steps > 0 ? 0 : (uint32_t)s->budget_ms,
      .budget_steps = s->steps,        .gap = s->gap,
      .capacity = (size_t)s->capacity, .seed = s->seed,
      .threads = (uint32_t)s->threads, .fast_only = s->fast};
  if (rondo_plan_make(&problem, &options, &p->plan) || rondo_plan_get_info(p->plan, &p->info))
    return tool_fail_status("%s", file_display_name(p->path));
  return TOOL_OK;
}

/* Results ---------------------------------------------------------------------------------------------------------- */

static int draw(const planning *p) {
  const rondo_plan_problem problem = problem_of(p);
  const rondo_plan_picture_options options = {RONDO_PLAN_PICTURE_OPTIONS_INIT, .title = file_display_name(p->path),
                                              .names = p->list.ids, .times = p->list.times,
                                              .capacity = (size_t)p->settings.capacity};
  char *text = NULL;
  if (rondo_plan_to_svg(&problem, rondo_plan_offsets(p->plan), &options, &text)) return tool_fail_status("the picture");
  const int result = file_write(p->settings.svg, text);
  rondo_text_free(text);
  return result;
}

static int write_files(const planning *p) {
  const plan_settings *s = &p->settings;
  if (s->svg && draw(p) != TOOL_OK) return TOOL_FAILURE;
  return s->output ? buffer_list_write(s->output, &p->list, rondo_plan_offsets(p->plan)) : TOOL_OK;
}

static int show_json(const planning *p) {
  json out;
  json_begin(&out);
  json_text(&out, "file", p->path);
  json_integer(&out, "buffers", p->info.count);
  json_integer(&out, "lower_bound", p->info.lower_bound);
  json_integer(&out, "peak", p->info.peak);
  json_real(&out, "ratio", ratio_of(p, p->info.peak));
  json_real(&out, "seconds", (double)p->info.nanoseconds / 1e9);
  json_boolean(&out, "optimal", p->info.optimal);
  json_integer(&out, "sum", p->info.sum);
  json_integer(&out, "steps", p->info.steps);
  json_text(&out, "method", p->info.method);
  if (p->settings.capacity > 0) json_integer(&out, "capacity", p->settings.capacity);
  if (p->settings.capacity > 0) json_boolean(&out, "fits", fits(p));
  if (p->list.has_offsets) json_integer(&out, "given_peak", p->given_peak);
  if (p->list.has_offsets) json_real(&out, "given_ratio", ratio_of(p, p->given_peak));
  if (p->settings.offsets) {
    json_begin_array(&out, "offsets");
    for (size_t i = 0; i < p->list.count; i++) json_integer(&out, NULL, rondo_plan_offsets(p->plan)[i]);
    json_end(&out);
  }
  return json_print(&out);
}

static void print_bytes(const char *name, size_t bytes) { printf("%-16s %zu bytes", name, bytes); }

static int show_text(const planning *p) {
  const rondo_plan_info *info = &p->info;
  printf("buffers          %zu\n", info->count);
  print_bytes("lower bound", info->lower_bound);
  putchar('\n');
  print_bytes("peak", info->peak);
  printf("\nratio            %.6f%s\n", ratio_of(p, info->peak), info->optimal ? ", proven optimal" : "");
  if (p->list.has_offsets) {
    print_bytes("given offsets", p->given_peak);
    printf(", ratio %.6f\n", ratio_of(p, p->given_peak));
  }
  print_bytes("without sharing", info->sum);
  if (p->settings.capacity > 0) {
    putchar('\n');
    print_bytes("capacity", (size_t)p->settings.capacity);
    printf(", %s", fits(p) ? "it fits" : "it does not fit");
  }
  printf("\ntime             %.6f s, %" PRIu64 " step%s, found by %s\n", (double)info->nanoseconds / 1e9, info->steps,
         info->steps == 1 ? "" : "s", info->method);
  return TOOL_OK;
}

static int fail_capacity(const planning *p) {
  const char *name = file_display_name(p->path);
  if (p->info.lower_bound > p->settings.capacity)
    return tool_fail("%s: %zu bytes live at once, more than the capacity of %" PRIu64 ": raise --capacity", name,
                     p->info.lower_bound, p->settings.capacity);
  if (p->info.optimal)
    return tool_fail("%s: the least possible peak is %zu bytes, more than the capacity of %" PRIu64
                     ": raise --capacity",
                     name, p->info.peak, p->settings.capacity);
  return tool_fail("%s: no plan within the capacity of %" PRIu64
                   " bytes was found; the best takes %zu: raise --budget-ms, --threads or --capacity",
                   name, p->settings.capacity, p->info.peak);
}

static int report(const planning *p) {
  if (write_files(p) != TOOL_OK) return TOOL_FAILURE;
  const int result = p->settings.json ? show_json(p) : show_text(p);
  return result != TOOL_OK || fits(p) ? result : fail_capacity(p);
}

/* Options with their default value are not refused. */
static int check_fast(const plan_settings *s) {
  const char *option = s->steps != defaults.steps           ? "--steps"
                       : s->budget_ms != defaults.budget_ms ? "--budget-ms"
                       : s->threads != defaults.threads     ? "--threads"
                       : s->seed != defaults.seed           ? "--seed"
                                                            : NULL;
  if (!s->fast || option == NULL) return TOOL_OK;
  return tool_fail_usage("%s is for the search, which --fast skips: use one of them", option);
}

int command_plan(int argc, char **argv) {
  planning p = {.settings = defaults};
  const int parsed = options_parse(&table, argc, argv, &p.settings, &p.path);
  if (parsed != OPTIONS_RUN) return parsed;
  if (p.settings.offsets && !p.settings.json) return tool_fail_usage("--offsets requires --json; see also --output");
  if (check_fast(&p.settings) != TOOL_OK) return TOOL_USAGE;
  int result = buffer_list_read(p.path, &p.list);
  if (result == TOOL_OK) result = compare_given(&p);
  if (result == TOOL_OK) result = make_plan(&p);
  if (result == TOOL_OK) result = report(&p);
  rondo_plan_destroy(p.plan);
  buffer_list_release(&p.list);
  return result;
}
