/* SPDX-License-Identifier: MIT
 * Results of rondo serve as a page: response times over the rate of requests, recorded and eager, and the figures of
 * the loads. The library's report on a recording of a medium size follows. Response times use a logarithmic scale,
 * because they grow without bounds near saturation.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/file.h"
#include "common/text_stream.h"
#include "common/tool.h"
#include "serve/serve.h"

/* In pixels. */
enum { WIDTH = 1160, HEIGHT = 380, LEFT = 84, RIGHT = 20, TOP = 34, BOTTOM = 44 };
enum { WAYS = 2, TICKS = 8 };

static const char *const way_names[WAYS] = {"recorded", "eager"};
static const char *const colours[WAYS] = {"var(--accent)", "var(--warn)"};
static const char *const dashes[WAYS] = {"none", "7 4"};

typedef struct drawing {
  FILE *out;
  const serving *s;
  double most_rate, gap; /* requests per second at the right edge, and between ticks */
  double low, high;      /* decimal logarithms of microseconds at the bottom and the top */
} drawing;

/* Scales ---------------------------------------------------------------------------------------------------------- */

static double find_gap(double range) {
  const double rough = range / TICKS, power = pow(10, floor(log10(rough))), times = rough / power;
  return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void find_scales(drawing *d) {
  double least = INFINITY, most = 0, rate = 0;
  for (size_t i = 0; i < (size_t)WAYS * SERVE_POINTS; i++) {
    const load_result *r = &d->s->curve[i / SERVE_POINTS][i % SERVE_POINTS];
    if (r->answered == 0) continue;
    least = fmin(least, r->median_us);
    most = fmax(most, r->p99_us);
    rate = fmax(rate, r->rate);
  }
  d->gap = find_gap(fmax(rate, 1));
  d->most_rate = ceil(fmax(rate, 1) / d->gap) * d->gap;
  d->low = isfinite(least) ? floor(log10(fmax(least, 1))) : 0;
  d->high = fmax(ceil(log10(fmax(most, 1))), d->low + 1);
}

static double x_of(const drawing *d, double rate) { return LEFT + rate / d->most_rate * (WIDTH - LEFT - RIGHT); }

static double y_of(const drawing *d, double us) {
  const double share = (log10(fmax(us, 1)) - d->low) / (d->high - d->low);
  return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

/* Chart ----------------------------------------------------------------------------------------------------------- */

static void draw_ticks(const drawing *d) {
  static const double steps[] = {1, 2, 5};
  const int y = HEIGHT - BOTTOM, last = (int)lround(d->most_rate / d->gap);
  for (int power = (int)d->low; power <= (int)d->high; power++) {
    for (size_t i = 0; i < 3 && (i == 0 || power < (int)d->high); i++) {
      const double us = steps[i] * pow(10, power), at = y_of(d, us);
      fprintf(d->out, "<path d=\"M%d %.1fH%d\" style=\"stroke:var(--rule)\"/>", LEFT, at, WIDTH - RIGHT);
      fprintf(d->out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n", LEFT - 8, at + 4, us);
    }
  }
  for (int i = 0; i <= last; i++) {
    const double rate = i * d->gap, x = x_of(d, rate);
    fprintf(d->out, "<path d=\"M%.1f %dv5\" style=\"stroke:var(--line)\"/>", x, y);
    fprintf(d->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n", x, y + 19, rate);
  }
  fprintf(d->out, "<path d=\"M%d %dH%d\" style=\"stroke:var(--line)\"/>", LEFT, y, WIDTH - RIGHT);
  fprintf(d->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">requests a second</text>\n", WIDTH - RIGHT, HEIGHT - 6);
}

static void draw_keys(const drawing *d) {
  fputs("<text x=\"8\" y=\"20\">&#181;s</text>\n", d->out);
  for (int i = 0; i < WAYS; i++) {
    const int x = LEFT + 60 + 340 * i;
    fprintf(d->out, "<path d=\"M%d 16h28\" style=\"fill:none;stroke:%s;stroke-width:2;stroke-dasharray:%s\"/>", x,
            colours[i], dashes[i]);
    fprintf(d->out, "<text x=\"%d\" y=\"20\">%s: median, and above it 99 %%</text>\n", x + 36, way_names[i]);
  }
}

static void draw_line(const drawing *d, int mode, bool is_tail) {
  bool is_first = true;
  fprintf(d->out,
          "<path style=\"fill:none;stroke:%s;stroke-width:%s;opacity:%s;stroke-linejoin:round;stroke-dasharray:%s\" "
          "d=\"",
          colours[mode], is_tail ? "1" : "2", is_tail ? ".6" : "1", dashes[mode]);
  for (size_t i = 0; i < SERVE_POINTS; i++) {
    const load_result *r = &d->s->curve[mode][i];
    if (r->answered == 0) continue;
    fprintf(d->out, "%c%.1f %.1f ", is_first ? 'M' : 'L', x_of(d, r->rate),
            y_of(d, is_tail ? r->p99_us : r->median_us));
    is_first = false;
  }
  fputs("\"/>\n", d->out);
}

static void draw_dots(const drawing *d, int mode) {
  for (size_t i = 0; i < SERVE_POINTS; i++) {
    const load_result *r = &d->s->curve[mode][i];
    if (r->answered == 0) continue;
    fprintf(d->out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" style=\"fill:%s\"><title>%s, %.6g requests a second: median %.1f "
            "&#181;s, 99 %% %.1f &#181;s</title></circle>\n",
            x_of(d, r->rate), y_of(d, r->median_us), colours[mode], way_names[mode], r->rate, r->median_us, r->p99_us);
  }
}

static void draw(const drawing *d) {
  fprintf(d->out,
          "<div class=\"scroll view\" tabindex=\"0\" role=\"region\" aria-label=\"Response times\">\n"
          "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
          "aria-label=\"Response times, microseconds over requests a second\" "
          "style=\"font-size:12px;fill:var(--faint)\">\n",
          WIDTH, HEIGHT, WIDTH, HEIGHT);
  draw_ticks(d);
  draw_keys(d);
  for (int mode = WAYS; mode-- > 0;) {
    draw_line(d, mode, true);
    draw_line(d, mode, false);
    draw_dots(d, mode);
  }
  fputs("</svg></div>\n", d->out);
}

/* Tables ---------------------------------------------------------------------------------------------------------- */

static void write_row(FILE *out, const char *name, const load_result *r) {
  fprintf(out,
          "<tr><td>%s</td><td class=\"number\">%.1f</td><td class=\"number\">%.1f</td><td class=\"number\">%.1f</td>"
          "<td class=\"number\">%.1f</td><td class=\"number\">%.1f</td><td class=\"number\">%.1f</td>"
          "<td class=\"number\">%.2f</td>"
          "<td class=\"number\">%.2f</td></tr>\n",
          name, r->rate, r->waited_us, r->median_us, r->p95_us, r->p99_us, r->p999_us, 100 * serve_padding(r), r->busy);
}

static void begin_table(FILE *out, const char *title) {
  fprintf(out,
          "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table><thead><tr><th>Load</th>"
          "<th class=\"number\">Requests/s</th><th class=\"number\">Waited &#181;s</th>"
          "<th class=\"number\">Median &#181;s</th><th class=\"number\">95 %%</th>"
          "<th class=\"number\">99 %%</th><th class=\"number\">99.9 %%</th><th class=\"number\">Padding %%</th>"
          "<th class=\"number\">Busy</th></tr></thead><tbody>\n",
          title);
}

static void end_table(FILE *out) { fputs("</tbody></table></div>\n", out); }

static void write_curve(const void *results, FILE *out) {
  const serving *s = results;
  drawing d = {.out = out, .s = s};
  find_scales(&d);
  draw(&d);
  fputs("<details><summary>The same as a table</summary>", out);
  begin_table(out, "Response times as a table");
  for (int mode = 0; mode < WAYS; mode++)
    for (size_t i = 0; i < SERVE_POINTS; i++) write_row(out, way_names[mode], &s->curve[mode][i]);
  end_table(out);
  fputs("</details>\n", out);
}

static void write_figure(FILE *out, const char *name, double value, int decimals, const char *note) {
  fprintf(out, "<div><dt>%s</dt><dd>%.*f<small>%s</small></dd></div>\n", name, decimals, value, note);
}

static void write_loads(const void *results, FILE *out) {
  const serving *s = results;
  fputs("<dl class=\"figures\">\n", out);
  write_figure(out, "Requests", serve_gain(s, CLOSED_RECORDED), 2, "times eager, closed loop");
  write_figure(out, "Median", serve_median_ratio(s, OPEN_RECORDED), 2, "times eager, same open loop");
  write_figure(out, "Sizes", (double)s->info.graphs, 0, "recorded on each stream");
  write_figure(out, "Decision", s->decide_ns, 0, "ns a request");
  fputs("</dl>\n", out);
  begin_table(out, "Loads");
  for (int i = 0; i < SERVE_LOADS; i++)
    if (serve_has_load(s, i)) write_row(out, serve_load_labels[i], &s->results[i]);
  end_table(out);
}

/* Page ------------------------------------------------------------------------------------------------------------ */

/* Compiles a separate program for the middle size. */
static rondo_status compile_middle(const serving *s, rondo_compiled **out) {
  rondo_program *program = NULL;
  TOOL_TRY(rondo_program_create(NULL, &program));
  rondo_status status = s->model.build(s->model.user, s->sizes[s->info.graphs / 2], program);
  if (!status) status = rondo_compile(program, s->device, NULL, out);
  rondo_program_destroy(program);
  return status;
}

static rondo_status make_page(const serving *s, char *const *texts, char **out_text) {
  rondo_compiled *compiled = NULL;
  char title[120];
  snprintf(title, sizeof title, "rondo serve: model %s on %s", s->name, s->device_info.name);
  const rondo_report_section sections[] = {{"Response times", texts[0]}, {"Loads", texts[1]}};
  const rondo_report_options options = {RONDO_REPORT_OPTIONS_INIT, .title = title, .sections = sections,
                                        .section_count = 2};
  TOOL_TRY(compile_middle(s, &compiled));
  const rondo_status status = rondo_compiled_report(compiled, &options, out_text);
  const rondo_status destroyed = rondo_compiled_destroy(compiled);
  return status ? status : destroyed;
}

int serve_write_page(const serving *s) {
  char *const texts[] = {text_stream_make(write_curve, s), text_stream_make(write_loads, s)};
  char *page = NULL;
  int result = texts[0] == NULL || texts[1] == NULL ? tool_fail_memory("the page") : TOOL_OK;
  if (result == TOOL_OK && make_page(s, texts, &page)) result = tool_fail_status("the page");
  if (result == TOOL_OK) result = file_write(s->settings.report, page);
  rondo_text_free(page);
  free(texts[0]);
  free(texts[1]);
  return result;
}
