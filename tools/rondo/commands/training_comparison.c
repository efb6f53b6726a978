/* SPDX-License-Identifier: MIT
 * The page that compares trainings: curves of their losses, and a table of settings, figures and times. Like the
 * library's reports, it needs no other files, and follows the light or dark theme.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands/training_result.h"
#include "common/text_stream.h"
#include "train/training_curve.h"

#if CURVE_SERIES < OPERANDS_MAX
#error "each result has a series"
#endif

/* Names of members, with a point before that of a member's member. A title alone begins a group. */
typedef struct row {
  const char *title, *group, *member;
} row;

static const row rows[] = {
    {"Settings", NULL, NULL},
    {"Text", NULL, "text"},
    {"Bytes to train on", NULL, "text_bytes"},
    {"Different bytes", NULL, "vocabulary"},
    {"Device", NULL, "device"},
    {"Processor", NULL, "device_description"},
    {"Workers", NULL, "workers"},
    {"Ranks", NULL, "ranks"},
    {"Model", NULL, "model"},
    {"Context", NULL, "context"},
    {"Embedding", NULL, "embedding"},
    {"Hidden", NULL, "hidden"},
    {"Layers", NULL, "layers"},
    {"Width", NULL, "width"},
    {"Heads", NULL, "heads"},
    {"Parameters", NULL, "parameters"},
    {"Batch", NULL, "batch"},
    {"Seed", NULL, "seed"},
    {"Learning rate", NULL, "learning_rate"},
    {"Steps", NULL, "steps"},
    {"Validation, percent of the text", "validation", "percent"},
    {"Figures", NULL, NULL},
    {"Steps before, of the checkpoint", NULL, "steps_before"},
    {"Steps done", NULL, "steps_done"},
    {"Loss of the first step", NULL, "loss_first"},
    {"Loss of the last steps", NULL, "loss_last"},
    {"Least validation loss", "validation", "best_loss"},
    {"after step", "validation", "best_step"},
    {"Stopped early", "validation", "stopped_early"},
    {"Eager losses identical", NULL, "identical"},
    {"Times", NULL, NULL},
    {"Recorded step, \xC2\xB5s", "recorded", "step_us"},
    {"Recorded step on the host, \xC2\xB5s", "recorded", "host_us"},
    {"Eager step, \xC2\xB5s", "eager", "step_us"},
    {"Eager step on the host, \xC2\xB5s", "eager", "host_us"},
    {"All recorded steps, s", "recorded", "seconds"},
    {"Tokens a second, all ranks", NULL, "tokens_per_second"},
};

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<style>"
    ":root{color-scheme:light dark;--ink:#1b2733;--faint:#56636f;--line:#9aa5b1;--rule:#e1e6eb;--paper:#fff;"
    "--panel:#f7f9fb;--accent:#1d6fb8;--warn:#8a5a00}\n"
    "@media (prefers-color-scheme:dark){:root{--ink:#e4e9ee;--faint:#9aa7b4;--line:#66717c;--rule:#2a323a;"
    "--paper:#14191e;--panel:#1a2026;--accent:#6fb3ee;--warn:#e8b75a}}\n"
    "body{max-width:1240px;margin:0 auto;padding:24px;background:var(--paper);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif;font-variant-numeric:tabular-nums}h1{font-size:1.55rem}"
    "h2{font-size:1.1rem;margin:36px 0 12px}.note{color:var(--faint)}\n"
    ".scroll{overflow:auto;border:1px solid var(--rule)}.view{background:var(--panel)}"
    ".view svg{display:block;margin:0 auto}summary{cursor:pointer;margin:10px 0}\n"
    "table{border-collapse:collapse;width:100%;font-size:.86rem}th,td{text-align:left;padding:4px 12px;"
    "border-bottom:1px solid var(--rule);vertical-align:top;overflow-wrap:anywhere}.number{text-align:right}"
    "th{background:var(--panel)}.differs td:first-child{font-weight:600}</style>\n";

/* Values ---------------------------------------------------------------------------------------------------------- */

/* NULL if there is none. */
static const json_t *value_of(const training_result *result, const row *at) {
  const json_t *object = at->group ? json_object_get(result->root, at->group) : result->root;
  const json_t *value = json_object_get(object, at->member);
  return json_is_null(value) || json_is_object(value) ? NULL : value;
}

static void write_value(FILE *out, const json_t *value) {
  fputs("<td>", out);
  if (!value) fputs("\xE2\x80\x93", out);
  if (json_is_string(value)) markup_write_text(out, json_string_value(value));
  if (json_is_integer(value)) fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  if (json_is_real(value)) fprintf(out, "%.6g", json_real_value(value));
  if (json_is_boolean(value)) fputs(json_is_true(value) ? "yes" : "no", out);
  if (json_is_array(value)) fprintf(out, "%zu", json_array_size(value));
  fputs("</td>", out);
}

/* Table ----------------------------------------------------------------------------------------------------------- */

/* Of arrays, the table shows the size. */
static bool is_same(const json_t *a, const json_t *b) {
  if (!a || !b) return a == b;
  return json_is_array(a) && json_is_array(b) ? json_array_size(a) == json_array_size(b) : json_equal(a, b);
}

/* A row without values is omitted. */
static void write_row(FILE *out, const training_result *results, size_t count, const row *at) {
  bool has_value = false, differs = false;
  if (!at->member) {
    fprintf(out, "<tr><th colspan=\"%zu\">%s</th></tr>\n", count + 1, at->title);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    has_value = has_value || value_of(&results[i], at);
    differs = differs || !is_same(value_of(&results[0], at), value_of(&results[i], at));
  }
  if (!has_value) return;
  fprintf(out, "<tr%s><td>%s</td>", differs ? " class=\"differs\"" : "", at->title);
  for (size_t i = 0; i < count; i++) write_value(out, value_of(&results[i], at));
  fputs("</tr>\n", out);
}

static void write_table(FILE *out, const training_result *results, size_t count) {
  fputs(
      "<h2>Settings, figures and times</h2>\n<p class=\"note\">Losses are in nats a byte. What differs is bold.</p>\n"
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Settings, figures and times\"><table><thead>"
      "<tr><th></th>",
      out);
  for (size_t i = 0; i < count; i++) {
    fprintf(out, "<th>Run %zu: ", i + 1);
    markup_write_text(out, results[i].name);
    fputs("</th>", out);
  }
  fputs("</tr></thead><tbody>\n", out);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) write_row(out, results, count, &rows[i]);
  fputs("</tbody></table></div>\n", out);
}

/* Curves ---------------------------------------------------------------------------------------------------------- */

static bool write_curves(FILE *out, const training_result *results, size_t count, bool is_validation) {
  static const char *const names[CURVE_SERIES] = {"run 1", "run 2", "run 3", "run 4",
                                                  "run 5", "run 6", "run 7", "run 8"};
  curve drawn = {.title = is_validation ? "Validation losses" : "Losses", .unit = "nats a byte"};
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    const result_values *of = is_validation ? &results[i].validation : &results[i].losses;
    if (of->count > 0) used++;
    drawn.series[i] = (curve_series){.name = names[i], .values = of->values, .first = of->first, .count = of->count};
  }
  if (used == 0) return true;
  fprintf(out, "<h2>%s</h2>\n", drawn.title);
  return curve_write(out, &drawn);
}

static bool write_page(FILE *out, const training_result *results, size_t count, const char *title) {
  char usual[48];
  snprintf(usual, sizeof usual, "rondo train: %zu run%s", count, count > 1 ? "s" : "");
  fputs(head, out);
  fputs("<title>", out);
  markup_write_text(out, title ? title : usual);
  fputs("</title></head>\n<body><h1>", out);
  markup_write_text(out, title ? title : usual);
  fputs("</h1>\n", out);
  if (!write_curves(out, results, count, false) || !write_curves(out, results, count, true)) return false;
  write_table(out, results, count);
  fputs("</body>\n</html>\n", out);
  return true;
}

char *training_results_compare(const training_result *results, size_t count, const char *title) {
  text_stream s;
  FILE *out = text_stream_open(&s);
  const bool is_written = out && write_page(out, results, count, title);
  char *text = text_stream_close(&s);
  if (is_written) return text;
  free(text);
  return NULL;
}
