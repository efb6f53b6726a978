/* SPDX-License-Identifier: MIT
 * Results of a training as a page: the losses and the times of its steps, followed by the library's report on the
 * recorded step.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/file.h"
#include "common/text_stream.h"
#include "common/tool.h"
#include "train/train.h"
#include "train/training_curve.h"

/* Sections that the tool adds. */
enum { LOSSES, TIMES, RANKS, SECTIONS };

static curve_series series_of(const training_run *run, const float *values, const char *name) {
  return (curve_series){
      .name = name, .values = values + run->first, .first = run->first, .count = (size_t)(run->end - run->first)};
}

static void write_figure(FILE *out, const char *name, double value, int decimals, const char *note) {
  fprintf(out, "<div><dt>%s</dt><dd>%.*f<small>%s</small></dd></div>\n", name, decimals, value, note);
}

/* Losses ---------------------------------------------------------------------------------------------------------- */

/* The validation losses as a series with a value for each step: that of the last validation. NULL: out of memory. */
static float *hold_validation(const training *t, curve_series *out) {
  const train_validation *v = &t->validation;
  const uint64_t first = v->steps[0] - 1, count = t->recorded.end - first;
  float *values = calloc(count, sizeof *values);
  if (!values) return NULL;
  for (size_t i = 0, at = 0; i < count; i++) {
    if (at + 1 < v->count && v->steps[at + 1] - 1 <= first + i) at++;
    values[i] = v->losses[at];
  }
  *out = (curve_series){.name = "validation", .values = values, .first = first, .count = (size_t)count};
  return values;
}

static bool draw_losses(const training *t, FILE *out) {
  curve drawn = {
      .title = "Losses", .unit = "nats a byte", .series = {series_of(&t->recorded, t->recorded.losses, "recorded")}};
  if (t->validation.count == 0) return curve_write(out, &drawn);
  float *held = hold_validation(t, &drawn.series[1]);
  const bool is_written = held && curve_write(out, &drawn);
  free(held);
  return is_written;
}

static bool write_losses(const training *t, FILE *out) {
  const curve_series recorded = series_of(&t->recorded, t->recorded.losses, "recorded");
  const train_best *best = &t->progress.best;
  double found[3];
  char note[64];
  if (!curve_summarize(&recorded, found)) return false;
  fputs("<dl class=\"figures\">\n", out);
  write_figure(out, "First step", t->loss_first, 4, "nats a byte");
  write_figure(out, "Last steps", t->loss_last, 4, "mean of the last twentieth");
  write_figure(out, "Least", found[0], 4, "of a step");
  write_figure(out, "Median", found[1], 4, "of the steps");
  write_figure(out, "Most", found[2], 4, "of a step");
  snprintf(note, sizeof note, "the least, after step %" PRIu64, best->step);
  if (best->step > 0) write_figure(out, "Validation", (double)best->loss, 4, note);
  fputs("</dl>\n", out);
  const uint64_t compared = train_compared_count(t);
  fprintf(out, "<p class=\"note\">Steps also run eagerly: %" PRIu64, compared);
  if (compared > 0) fprintf(out, "; their losses are %s", t->is_identical ? "identical, bit for bit" : "different");
  fputs(".</p>\n", out);
  return draw_losses(t, out);
}

/* Times ----------------------------------------------------------------------------------------------------------- */

static void write_summary(FILE *out, const char *name, summary found) {
  char note[80];
  snprintf(note, sizeof note, "\xC2\xB5s, median; %.1f to %.1f", found.minimum, found.maximum);
  write_figure(out, name, found.median, 1, note);
}

static bool write_times(training *t, FILE *out) {
  cost *recorded = &t->recorded.times.cost, *eager = &t->eager.times.cost;
  const curve drawn = {.title = "Times of steps",
                       .unit = "\xC2\xB5s",
                       .is_time = true,
                       .series = {series_of(&t->recorded, t->recorded.step_us, "recorded"),
                                  series_of(&t->eager, t->eager.step_us, "eager")}};
  costs_summarize(recorded, 1);
  costs_summarize(eager, 1);
  const double step = recorded->result[COST_TOTAL].median;
  const bool has_eager = eager->samples[COST_TOTAL].count > 0;
  fputs("<dl class=\"figures\">\n", out);
  write_summary(out, "Recorded", recorded->result[COST_TOTAL]);
  if (has_eager) write_summary(out, "Eager", eager->result[COST_TOTAL]);
  if (has_eager && step > 0)
    write_figure(out, "Ratio", eager->result[COST_TOTAL].median / step, 2, "eager over recorded");
  write_summary(out, "Host, recorded", recorded->result[COST_HOST]);
  if (has_eager) write_summary(out, "Host, eager", eager->result[COST_HOST]);
  fputs(
      "</dl>\n<p class=\"note\">Times are from the call that enqueues a step until the step is complete; times of the "
      "host are of that call alone. The picture cuts off times far above the median.</p>\n",
      out);
  return curve_write(out, &drawn);
}

/* Ranks ----------------------------------------------------------------------------------------------------------- */

static bool write_ranks(const training *t, FILE *out) {
  const train_ranks *r = &t->ranks;
  if (!r->communicator) return true;
  const double steps = (double)(t->recorded.end - t->recorded.first);
  fprintf(out,
          "<p class=\"note\">%" PRIu32 " ranks of %s train together, each on %" PRIu32 " of a batch of %" PRIu64
          ", connected by %s. A step reduces %" PRIu64 " B of gradients in %" PRIu32 " buckets.</p>\n",
          r->started.size, r->started.name, t->batch.places, t->settings.batch, r->info.engine, t->info.reduced_bytes,
          t->info.buckets);
  fputs(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Ranks\"><table><thead><tr>"
      "<th class=\"number\">Rank</th><th>Machine</th><th>Device</th><th class=\"number\">Workers</th>"
      "<th class=\"number\">Loss of the last step</th><th class=\"number\">Mean step, "
      "\xC2\xB5s</th></tr></thead><tbody>\n",
      out);
  for (uint32_t i = 0; i < r->started.size; i++) {
    const train_rank *rank = &r->all[i];
    fprintf(out,
            "<tr><td class=\"number\">%" PRIu32 "</td><td>%s</td><td>%s</td><td class=\"number\">%" PRIu32
            "</td><td class=\"number\">%.6g</td><td class=\"number\">%.1f</td></tr>\n",
            i, rank->host, rank->device, rank->workers, (double)rank->loss, rank->us / fmax(1, steps));
  }
  fputs("</tbody></table></div>\n", out);
  return true;
}

/* Page ------------------------------------------------------------------------------------------------------------ */

/* Returns the text of a section, which the caller frees; NULL if out of memory. */
static char *make_section(training *t, int section) {
  text_stream s;
  FILE *out = text_stream_open(&s);
  const bool is_written = out && (section == LOSSES  ? write_losses(t, out)
                                  : section == TIMES ? write_times(t, out)
                                                     : write_ranks(t, out));
  char *text = text_stream_close(&s);
  if (is_written) return text;
  free(text);
  return NULL;
}

/* As many repetitions as take a second or two, but at least a few. All ranks make as many. */
static uint32_t count_repeats(training *t) {
  if (t->ranks.communicator) return 10;
  const double step_us = samples_summarize(&t->recorded.times.cost.samples[COST_TOTAL]).median;
  return (uint32_t)fmax(3, fmin(100, 2e6 / fmax(1, step_us)));
}

static rondo_status make_page(training *t, char *const *sections, rondo_node_time *times, size_t count,
                              char **out_text) {
  rondo_exec *exec = rondo_compiled_exec(t->compiled);
  char title[160];
  snprintf(title, sizeof title, "rondo train: a %s model of %s", t->settings.model, file_display_name(t->path));
  const rondo_report_section own[SECTIONS] = {[LOSSES] = {"Losses", sections[LOSSES]},
                                              [TIMES] = {"Times of steps", sections[TIMES]},
                                              [RANKS] = {"Ranks", sections[RANKS]}};
  const size_t own_count = t->ranks.communicator ? SECTIONS : RANKS;
  TOOL_TRY(train_write_batch(t, t->compiled));
  TOOL_TRY(rondo_exec_measure(exec, rondo_compiled_stream(t->compiled), count_repeats(t), times, &count));
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .title = title,  .times = times,
                                        .time_count = count,       .sections = own, .section_count = own_count};
  return rondo_compiled_report(t->compiled, &options, out_text);
}

static int write_page(training *t, char *const *sections, rondo_node_time *times, size_t count) {
  char *text = NULL;
  int result = make_page(t, sections, times, count, &text) ? tool_fail_status("the page") : TOOL_OK;
  if (result == TOOL_OK && t->ranks.started.rank == 0) result = file_write(t->settings.report, text);
  rondo_text_free(text);
  return result;
}

int train_write_page(training *t) {
  size_t count = 0;
  if (rondo_exec_measure(rondo_compiled_exec(t->compiled), NULL, 0, NULL, &count)) return tool_fail_status("the page");
  rondo_node_time *times = calloc(count, sizeof *times);
  char *sections[SECTIONS];
  bool has_memory = times != NULL;
  for (int i = 0; i < SECTIONS; i++) {
    sections[i] = make_section(t, i);
    has_memory = has_memory && sections[i];
  }
  const int result = has_memory ? write_page(t, sections, times, count) : tool_fail_memory("the page");
  for (size_t i = 0; i < SECTIONS; i++) free(sections[i]);
  free(times);
  return result;
}
