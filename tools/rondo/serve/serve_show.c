/* SPDX-License-Identifier: MIT
 * Results of rondo serve, as lines and as JSON.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/json.h"
#include "common/tool.h"
#include "serve/serve.h"

static const char *const load_names[SERVE_LOADS] = {"closed_recorded",  "closed_eager",  "closed_chosen",
                                                    "closed_undivided", "open_recorded", "open_eager",
                                                    "open_chosen",      "open_undivided"};
const char *const serve_load_labels[SERVE_LOADS] = {"closed, recorded",  "closed, eager",  "closed, chosen",
                                                    "closed, undivided", "open, recorded", "open, eager",
                                                    "open, chosen",      "open, undivided"};

bool serve_has_load(const serving *s, int which) {
  return s->has_whole || (which != CLOSED_WHOLE && which != OPEN_WHOLE);
}

/* Ratios ---------------------------------------------------------------------------------------------------------- */

double serve_padding(const load_result *r) {
  const double all = (double)r->rows + (double)r->padding_rows;
  return all > 0 ? (double)r->padding_rows / all : 0;
}

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

double serve_gain(const serving *s, int closed) {
  return ratio(s->results[closed].rate, s->results[CLOSED_EAGER].rate);
}

double serve_median_ratio(const serving *s, int open) {
  return ratio(s->results[open].median_us, s->results[OPEN_EAGER].median_us);
}

/* The rate of a divided model over that of the undivided model. */
static double division_gain(const serving *s) {
  return ratio(s->results[CLOSED_RECORDED].rate, s->results[CLOSED_WHOLE].rate);
}

static double division_median_ratio(const serving *s) {
  return ratio(s->results[OPEN_RECORDED].median_us, s->results[OPEN_WHOLE].median_us);
}

/* JSON ------------------------------------------------------------------------------------------------------------ */

static void result_to_json(const load_result *r, const char *name, json *out) {
  json_begin_object(out, name);
  json_real(out, "seconds", r->seconds);
  json_real(out, "requests_per_second", r->rate);
  json_real(out, "waited_us", r->waited_us);
  json_real(out, "median_us", r->median_us);
  json_real(out, "p95_us", r->p95_us);
  json_real(out, "p99_us", r->p99_us);
  json_real(out, "p999_us", r->p999_us);
  json_real(out, "maximum_us", r->maximum_us);
  json_integer(out, "answered", r->answered);
  json_integer(out, "failed", r->failed);
  json_integer(out, "refused", r->refused);
  json_integer(out, "batched", r->batched);
  json_integer(out, "rows", r->rows);
  json_real(out, "padding", serve_padding(r));
  json_real(out, "batch_requests", r->batch_requests);
  json_real(out, "batching_us", r->batching_us);
  json_real(out, "enqueue_us", r->enqueue_us);
  json_real(out, "busy", r->busy);
  json_real(out, "processors", r->processors);
  json_end(out);
}

static void curve_to_json(const serving *s, json *out) {
  if (!s->settings.report) return;
  for (size_t mode = 0; mode < 2; mode++) {
    json_begin_array(out, mode == 0 ? "curve_recorded" : "curve_eager");
    for (size_t i = 0; i < SERVE_POINTS; i++) result_to_json(&s->curve[mode][i], NULL, out);
    json_end(out);
  }
}

static void choice_to_json(const serving *s, json *out) {
  if (!s->settings.regret) return;
  json_begin_object(out, "choice");
  json_integer(out, "tried", s->choice.tried);
  json_integer(out, "alone", s->choice.alone);
  json_real(out, "best_us", s->choice.best_us);
  json_real(out, "chosen_us", s->choice.chosen_us);
  json_real(out, "regret", s->choice.regret);
  json_end(out);
  ladders_to_json(s->ladders, out);
}

static void windows_to_json(const soak_result *r, json *out) {
  json_begin_array(out, "windows");
  for (size_t i = 0; i < r->window_count; i++) {
    json_begin_object(out, NULL);
    json_integer(out, "answered", r->windows[i].answered);
    json_real(out, "median_us", r->windows[i].median_us);
    json_real(out, "p99_us", r->windows[i].p99_us);
    json_end(out);
  }
  json_end(out);
}

static void division_to_json(const serving *s, json *out) {
  if (s->look_ups == NULL) return;
  json_begin_object(out, "division");
  json_text(out, "look_ups", s->look_ups_info.name);
  json_integer(out, "state_bytes", s->info.upstream_state_bytes);
  json_integer(out, "arena_bytes", s->info.upstream_arena_bytes);
  if (s->has_whole) json_real(out, "gain", division_gain(s));
  if (s->has_whole) json_real(out, "median_ratio", division_median_ratio(s));
  json_end(out);
}

static void soak_to_json(const serving *s, json *out) {
  const soak_result *r = &s->soaked;
  if (!(s->settings.soak > 0)) return;
  json_begin_object(out, "soak");
  json_real(out, "saturation", s->saturation);
  json_real(out, "seconds", r->seconds);
  json_integer(out, "answered", r->answered);
  json_integer(out, "cancelled", r->cancelled);
  json_integer(out, "timed_out", r->timed_out);
  json_integer(out, "refused_index", r->refused_index);
  json_integer(out, "refused_shape", r->refused_shape);
  json_integer(out, "not_numbers", r->not_numbers);
  json_integer(out, "full", r->full);
  json_integer(out, "wrong", r->wrong);
  json_integer(out, "stuck", r->stuck);
  json_real(out, "median_us", r->median_us);
  json_real(out, "p99_us", r->p99_us);
  json_real(out, "tail", ratio(r->p99_us, r->median_us));
  json_real(out, "drift", r->drift);
  json_real(out, "window_seconds", r->window_seconds);
  windows_to_json(r, out);
  json_integer(out, "resident_bytes_before", r->resident_bytes[0]);
  json_integer(out, "resident_bytes_after", r->resident_bytes[1]);
  json_integer(out, "mapped_bytes_before", r->mapped_bytes[0]);
  json_integer(out, "mapped_bytes_after", r->mapped_bytes[1]);
  json_end(out);
}

static void times_to_json(const serving *s, const char *name, const double *us, json *out) {
  json_begin_array(out, name);
  for (size_t i = 0; i < s->info.graphs; i++) json_real(out, NULL, us[i]);
  json_end(out);
}

static void model_to_json(const serving *s, json *out) {
  json_integer(out, "graphs", s->info.graphs);
  json_begin_array(out, "graph_rows");
  for (size_t i = 0; i < s->info.graphs; i++) json_integer(out, NULL, s->sizes[i]);
  json_end(out);
  if (s->settings.file.length) {
    json_begin_array(out, "graph_lengths");
    for (size_t i = 0; i < s->info.graphs; i++) json_integer(out, NULL, s->lengths[i]);
    json_end(out);
  }
  times_to_json(s, "run_us", s->run_us, out);
  times_to_json(s, "current_us", s->current_us, out);
  json_integer(out, "trials", s->info.trials);
  json_integer(out, "renewals", s->info.renewals);
  json_real(out, "start_seconds", s->start_seconds);
  answer_tally_to_json(&s->answers, out);
  json_real(out, "overlap", s->info.overlap);
  json_integer(out, "state_bytes", s->info.state_bytes);
  json_integer(out, "arena_bytes", s->info.arena_bytes);
  json_integer(out, "exec_bytes", s->info.exec_bytes);
  json_integer(out, "staging_bytes", s->info.staging_bytes);
}

int serve_show_json(const serving *s) {
  json out;
  json_begin(&out);
  json_text(&out, "model", s->name);
  json_text(&out, "device", s->device_info.name);
  json_text(&out, "description", s->device_info.description);
  json_integer(&out, "streams", s->settings.streams);
  json_integer(&out, "clients", s->settings.clients);
  json_integer(&out, "sizes", s->traffic.count);
  json_integer(&out, "table_rows", s->settings.table_rows);
  json_real(&out, "rate", s->rate);
  for (int i = 0; i < SERVE_LOADS; i++)
    if (serve_has_load(s, i)) result_to_json(&s->results[i], load_names[i], &out);
  division_to_json(s, &out);
  json_real(&out, "gain", serve_gain(s, CLOSED_RECORDED));
  json_real(&out, "gain_chosen", serve_gain(s, CLOSED_CHOSEN));
  json_real(&out, "median_ratio", serve_median_ratio(s, OPEN_RECORDED));
  json_real(&out, "median_ratio_chosen", serve_median_ratio(s, OPEN_CHOSEN));
  json_real(&out, "tail", ratio(s->results[OPEN_RECORDED].p99_us, s->results[OPEN_RECORDED].median_us));
  json_real(&out, "decide_ns", s->decide_ns);
  model_to_json(s, &out);
  choice_to_json(s, &out);
  curve_to_json(s, &out);
  soak_to_json(s, &out);
  return json_print(&out);
}

/* Lines ----------------------------------------------------------------------------------------------------------- */

static void print_sizes(const serving *s) {
  printf("rows             ");
  for (size_t i = 0; i < s->info.graphs; i++) {
    const bool is_first = i == 0 || s->lengths[i] != s->lengths[i - 1];
    printf("%s%zu", i == 0 ? "" : is_first ? "; " : ", ", s->sizes[i]);
    const bool is_last = i + 1 == s->info.graphs || s->lengths[i] != s->lengths[i + 1];
    if (is_last && s->lengths[i] > 0) printf(" of length %zu", s->lengths[i]);
  }
  printf("%s of the graphs\n", s->settings.file.length ? ":" : "");
}

static void print_loads(const serving *s) {
  printf("%-20s %10s %10s %10s %10s %10s %10s %9s %6s %10s\n", "", "requests/s", "waited us", "median us", "95 %",
         "99 %", "99.9 %", "padding %", "busy", "processors");
  for (int i = 0; i < SERVE_LOADS; i++) {
    const load_result *r = &s->results[i];
    if (!serve_has_load(s, i)) continue;
    printf("%-20s %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f %9.2f %6.2f %10.2f\n", serve_load_labels[i], r->rate,
           r->waited_us, r->median_us, r->p95_us, r->p99_us, r->p999_us, 100 * serve_padding(r), r->busy,
           r->processors);
  }
}

/* The host's cost for a batch before the device receives it. */
static void print_host(const load_result *r) {
  printf("batches          of %.2f requests, %.2f us each to form, and %.2f us to enqueue a graph (closed, recorded)\n",
         r->batch_requests, r->batching_us, r->enqueue_us);
}

static void print_division(const serving *s) {
  if (s->look_ups == NULL) return;
  printf("look-ups         on %s, %" PRIu64 " bytes of states and %" PRIu64 " of arenas there\n", s->look_ups_info.name,
         s->info.upstream_state_bytes, s->info.upstream_arena_bytes);
  if (s->has_whole)
    printf("divided          %.2f times the requests of undivided, %.2f times the median\n", division_gain(s),
           division_median_ratio(s));
  else
    printf("undivided        there is no memory for it on %s\n", s->device_info.name);
}

static void print_soak(const serving *s) {
  const soak_result *r = &s->soaked;
  if (!(s->settings.soak > 0)) return;
  printf("soak             %" PRIu64 " answered, %" PRIu64 " cancelled, %" PRIu64 " too late, %" PRIu64
         " refused, none wrong in %.0f s\n",
         r->answered, r->cancelled, r->timed_out, r->refused_index + r->refused_shape + r->full, r->seconds);
  printf(
      "soak times       %.1f us median, 99 %% %.1f us, %.2f times that; of the last of %zu windows %.2f times the "
      "second's\n",
      r->median_us, r->p99_us, ratio(r->p99_us, r->median_us), r->window_count, r->drift);
  printf("soak memory      %" PRIu64 " bytes resident after one window, %" PRIu64 " at the end; of the device %" PRIu64
         ", %" PRIu64 "\n",
         r->resident_bytes[0], r->resident_bytes[1], r->mapped_bytes[0], r->mapped_bytes[1]);
}

int serve_show_text(const serving *s) {
  tool_print_device("device           ", s->device_info.name, &s->device_info);
  printf("graphs           %" PRIu32 " size%s on %" PRIu64 " stream%s, in %.2f s\n", s->info.graphs,
         s->info.graphs == 1 ? "" : "s", s->settings.streams, s->settings.streams == 1 ? "" : "s", s->start_seconds);
  print_sizes(s);
  print_loads(s);
  printf("recorded         %.2f times the requests, %.2f times the median\n", serve_gain(s, CLOSED_RECORDED),
         serve_median_ratio(s, OPEN_RECORDED));
  printf("chosen           %.2f times the requests, %.2f times the median\n", serve_gain(s, CLOSED_CHOSEN),
         serve_median_ratio(s, OPEN_CHOSEN));
  print_division(s);
  answer_tally_print(&s->answers);
  printf("open loop        %.1f requests a second\n", s->rate);
  printf("decision         %.0f ns a request\n", s->decide_ns);
  print_host(&s->results[CLOSED_RECORDED]);
  printf("bytes            %" PRIu64 " of states, %" PRIu64 " of arenas, %" PRIu64 " of execs, %" PRIu64
         " of staging\n",
         s->info.state_bytes, s->info.arena_bytes, s->info.exec_bytes, s->info.staging_bytes);
  if (s->settings.regret)
    printf("sizes            %.2f %% above the best %zu of %zu tried, for requests alone\n", 100 * s->choice.regret,
           s->choice.alone, s->choice.tried);
  print_soak(s);
  if (s->settings.regret) {
    printf("\n");
    ladders_print(s->ladders);
  }
  return TOOL_OK;
}
