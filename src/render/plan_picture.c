/* SPDX-License-Identifier: MIT
 * Draws a plan: address against time, with one shape for each item, and below it the live bytes. Coordinates are
 * integers in tenths of a pixel, so neither the locale nor the rounding of the C library affects the text. The colour
 * shows the size of an item. Small items have no gap, and the smallest ones have the size of a tenth of a pixel.
 */
#include "render/plan_picture.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "plan/plan_internal.h"

/* In tenths of a pixel. */
enum {
  UNIT = 10,
  LEFT = 92 * UNIT,
  RIGHT = 20 * UNIT,
  TOP = 58 * UNIT,
  BOTTOM = 46 * UNIT,
  STRIP = 72 * UNIT, /* height of the curve of live bytes */
  STRIP_GAP = 22 * UNIT,
  GAP = 3,             /* on each side of an item */
  GAP_FROM = 2 * UNIT, /* smaller items have no gap */
  CHARACTER = 63,      /* mean width */
  LINE = 14 * UNIT
};
enum { SIZE_CLASSES = 6, MAX_TICKS = 8, NAME_BYTES = 120, MIN_CUT = 10 };
enum { MIN_PIXELS = 320, MAX_PIXELS = 20000, DEFAULT_WIDTH = 1200, DEFAULT_HEIGHT = 640 };

/* When the live bytes change. */
typedef struct live_event {
  uint64_t time;
  size_t bytes;
  bool begins;
} live_event;

typedef struct painter {
  rondo_text *text;
  const rondo_picture *picture;
  uint64_t steps;           /* on the time axis */
  double top;               /* bytes on the address axis */
  size_t peak, bound;       /* the end of the last item; maximum bytes live at once */
  size_t smallest, largest; /* bytes of the smallest and the largest item, except for 0 bytes */
  int width, height;        /* of the plot, in tenths */
  size_t *columns;          /* by pixel: maximum live bytes */
  size_t column_count;
} painter;

/* Numbers ---------------------------------------------------------------------------------------------------------- */

static int x_of(const painter *p, uint64_t step) {
  const double share = step >= p->steps ? 1 : (double)step / (double)p->steps;
  return LEFT + (int)(share * p->width + 0.5);
}

static int y_of(const painter *p, double bytes) {
  const double share = bytes >= p->top ? 1 : bytes / p->top;
  return TOP + p->height - (int)(share * p->height + 0.5);
}

static uint64_t end_of(const painter *p, uint32_t upper) { return upper == RONDO_PLAN_FOREVER ? p->steps : upper; }

static uint64_t time_name(const painter *p, uint64_t step) {
  return p->picture->times == NULL ? step : p->picture->times[step];
}

/* Measuring -------------------------------------------------------------------------------------------------------- */

static void measure_items(painter *p) {
  const rondo_plan_problem *problem = p->picture->problem;
  p->steps = 1;
  p->smallest = SIZE_MAX;
  for (size_t i = 0; i < problem->count; i++) {
    const rondo_plan_item *item = &problem->items[i];
    const uint64_t end = item->upper == RONDO_PLAN_FOREVER ? (uint64_t)item->lower + 1 : item->upper;
    if (end > p->steps) p->steps = end;
    if (item->bytes == 0) continue;
    size_t last = 0;
    if (!rondo_checked_add(p->picture->offsets[i], item->bytes, &last)) last = SIZE_MAX;
    if (last > p->peak) p->peak = last;
    if (item->bytes > p->largest) p->largest = item->bytes;
    if (item->bytes < p->smallest) p->smallest = item->bytes;
  }
  if (problem->order != NULL && problem->order->node_count > p->steps) p->steps = problem->order->node_count;
  p->top = p->peak == 0 ? 1 : (double)p->peak;
  if (p->picture->capacity > p->peak && p->picture->capacity / 2 <= p->peak) p->top = (double)p->picture->capacity;
  p->top *= 1.02;
}

static int compare_events(const void *left, const void *right) {
  const live_event *a = left, *b = right;
  if (a->time != b->time) return a->time < b->time ? -1 : 1;
  return (int)a->begins - (int)b->begins; /* at the same time, items end before others begin */
}

static void raise_columns(painter *p, uint64_t from, uint64_t to, size_t live) {
  size_t column = (size_t)(x_of(p, from) - LEFT) / UNIT;
  const size_t end = ((size_t)(x_of(p, to) - LEFT) + UNIT - 1) / UNIT;
  for (; column < p->column_count && (column < end || column == 0); column++) {
    if (p->columns[column] < live) p->columns[column] = live;
    if (end == 0) break;
  }
}

static void sum_events(painter *p, live_event *events, size_t count) {
  size_t live = 0;
  if (count > 0) qsort(events, count, sizeof *events, compare_events);
  for (size_t i = 0; i < count; i++) {
    live = events[i].begins ? live + events[i].bytes : live - events[i].bytes;
    if (live > p->bound) p->bound = live;
    const uint64_t until = i + 1 < count ? events[i + 1].time : p->steps;
    if (until > events[i].time) raise_columns(p, events[i].time, until, live);
  }
}

static rondo_status measure_live(painter *p) {
  const rondo_plan_problem *problem = p->picture->problem;
  const rondo_allocator *allocator = &p->text->allocator;
  void *memory;
  size_t count = 0;
  RONDO_TRY(rondo_allocate(allocator, problem->count, 2 * sizeof(live_event), &memory));
  live_event *events = memory;
  for (size_t i = 0; i < problem->count; i++) {
    const rondo_plan_item *item = &problem->items[i];
    events[count++] = (live_event){item->lower, item->bytes, true};
    events[count++] = (live_event){end_of(p, item->upper), item->bytes, false};
  }
  p->column_count = (size_t)p->width / UNIT + 1;
  const rondo_status status = rondo_allocate_items(allocator, p->column_count, sizeof *p->columns, &p->columns);
  if (status == RONDO_OK) sum_events(p, events, count);
  rondo_release(allocator, memory, problem->count, 2 * sizeof(live_event));
  return status;
}

/* Axes ------------------------------------------------------------------------------------------------------------- */

/* The distance of ticks: a power of two of bytes. */
static double byte_tick(double top) {
  double tick = 1;
  while (top / tick > MAX_TICKS) tick *= 2;
  return tick;
}

static void add_byte_ticks(painter *p) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const double tick = byte_tick(p->top);
  double unit = 1;
  size_t name = 0;
  while (tick >= unit * 1024 && name + 1 < sizeof units / sizeof units[0]) {
    unit *= 1024;
    name++;
  }
  for (double at = 0; at <= p->top; at += tick) {
    const int y = y_of(p, at);
    rondo_text_add(p->text, "<path class=\"grid\" d=\"M%d %dh%d\"/>", LEFT, y, p->width);
    rondo_text_add(p->text, "<text class=\"tick end\" x=\"%d\" y=\"%d\">%" PRIu64 "%s%s</text>\n", LEFT - 8 * UNIT,
                   y + 4 * UNIT, (uint64_t)(at / unit), at > 0 ? " " : "", at > 0 ? units[name] : "");
  }
}

/* The distance of ticks: 1, 2 or 5 times a power of ten of steps. */
static uint64_t step_tick(uint64_t steps) {
  for (uint64_t power = 1;; power *= 10)
    for (uint64_t factor = 1; factor < 10; factor = factor == 1 ? 2 : factor + 3)
      if (steps / (power * factor) <= MAX_TICKS) return power * factor;
}

static void add_time_ticks(painter *p) {
  const uint64_t tick = step_tick(p->steps);
  const int bottom = TOP + p->height + STRIP_GAP + STRIP;
  for (uint64_t at = 0; at <= p->steps; at += tick) {
    const int x = x_of(p, at);
    rondo_text_add(p->text, "<path class=\"axis\" d=\"M%d %dv%d\"/>", x, bottom, 5 * UNIT);
    rondo_text_add(p->text, "<text class=\"tick middle\" x=\"%d\" y=\"%d\">%" PRIu64 "</text>\n", x, bottom + 18 * UNIT,
                   time_name(p, at));
  }
  rondo_text_add(p->text, "<path class=\"axis\" d=\"M%d %dh%d\"/>\n", LEFT, bottom, p->width);
  rondo_text_add(p->text, "<text class=\"tick middle\" x=\"%d\" y=\"%d\">", LEFT + p->width / 2, bottom + 36 * UNIT);
  rondo_text_add_markup(p->text, p->picture->time_name, NAME_BYTES);
  rondo_text_add(p->text, "</text>\n");
}

static void add_strip(painter *p) {
  const int bottom = TOP + p->height + STRIP_GAP + STRIP;
  const double scale = p->bound == 0 ? 0 : (double)STRIP / (double)p->bound;
  int before = 0;
  rondo_text_add(p->text, "<text class=\"tick end\" x=\"%d\" y=\"%d\">live bytes</text>\n", LEFT - 8 * UNIT,
                 bottom - STRIP / 2 + 4 * UNIT);
  rondo_text_add(p->text, "<path class=\"live\" d=\"M%d %d", LEFT, bottom);
  for (size_t i = 0; i < p->column_count; i++) {
    const int height = (int)((double)p->columns[i] * scale + 0.5);
    if (height != before) rondo_text_add(p->text, "H%dV%d", LEFT + (int)(i * UNIT), bottom - height);
    before = height;
  }
  rondo_text_add(p->text, "H%dV%dz\"><title>bytes live at each time; at most %s</title></path>\n", LEFT + p->width,
                 bottom, RONDO_GROUPED(p->bound));
}

static void add_line(painter *p, const char *class, size_t bytes) {
  const int y = y_of(p, (double)bytes);
  rondo_text_add(p->text, "<path class=\"%s\" d=\"M%d %dh%d\"/>\n", class, LEFT, y, p->width);
}

/* Adds an entry of the legend: a sample of the line, its name and its bytes. Returns the position of the next entry. */
static int add_key(painter *p, int x, const char *class, const char *name, size_t bytes) {
  const int y = 40 * UNIT;
  const char *printed = RONDO_SIZE(bytes);
  rondo_text_add(p->text, "<path class=\"%s\" d=\"M%d %dh%d\"/>", class, x, y - 4 * UNIT, 22 * UNIT);
  rondo_text_add(p->text, "<text class=\"key\" x=\"%d\" y=\"%d\">%s %s<title>%s bytes</title></text>\n", x + 28 * UNIT,
                 y, name, printed, RONDO_GROUPED(bytes));
  return x + 28 * UNIT + (int)(strlen(name) + strlen(printed) + 3) * CHARACTER + 10 * UNIT;
}

static void add_head(painter *p) {
  rondo_text_add(p->text, "<text class=\"head\" x=\"%d\" y=\"%d\">", LEFT, 20 * UNIT);
  rondo_text_add_markup(p->text, p->picture->title, NAME_BYTES);
  rondo_text_add(p->text, "</text>\n");
  int x = add_key(p, LEFT, "peak", "peak", p->peak);
  x = add_key(p, x, "bound", "most live at once", p->bound);
  if (p->picture->capacity > 0) x = add_key(p, x, "capacity", "capacity", p->picture->capacity);
  if (p->bound > 0)
    rondo_text_add(p->text, "<text class=\"key\" x=\"%d\" y=\"%d\">ratio %s</text>\n", x, 40 * UNIT,
                   RONDO_RATIO(p->peak, p->bound));
}

/* Items ------------------------------------------------------------------------------------------------------------ */

/* The colour of an item, by the logarithm of its size between the smallest and the largest. */
static int size_class(const painter *p, size_t bytes) {
  const int smallest = 63 - __builtin_clzll(p->smallest), largest = 63 - __builtin_clzll(p->largest);
  const int level = 63 - __builtin_clzll(bytes);
  return largest == smallest ? SIZE_CLASSES / 2 : (level - smallest) * (SIZE_CLASSES - 1) / (largest - smallest);
}

static void add_name(painter *p, size_t item, size_t max_bytes) {
  const char *const *names = p->picture->names;
  if (names != NULL && names[item] != NULL) {
    rondo_text_add_markup(p->text, names[item], max_bytes);
  } else {
    rondo_text_add(p->text, "%zu", item);
  }
}

static void add_description(painter *p, size_t item) {
  const rondo_plan_item *of = &p->picture->problem->items[item];
  if (p->picture->describe != NULL) {
    p->picture->describe(p->text, p->picture->user, item);
    return;
  }
  add_name(p, item, NAME_BYTES);
  rondo_text_add(p->text, ": %s bytes at %s, from %" PRIu64, RONDO_GROUPED(of->bytes),
                 RONDO_GROUPED(p->picture->offsets[item]), time_name(p, of->lower));
  if (of->upper == RONDO_PLAN_FOREVER)
    rondo_text_add(p->text, " on");
  else
    rondo_text_add(p->text, " to %" PRIu64, time_name(p, of->upper));
}

typedef struct box {
  int x, y, width, height;
} box;

static box box_of(const painter *p, uint32_t lower, uint32_t upper, size_t offset, size_t bytes) {
  box b = {.x = x_of(p, lower), .y = y_of(p, (double)offset + (double)bytes)};
  b.width = x_of(p, end_of(p, upper)) - b.x;
  b.height = y_of(p, (double)offset) - b.y;
  const int gap = b.width >= GAP_FROM && b.height >= GAP_FROM ? GAP : 0;
  b = (box){b.x + gap, b.y + gap, b.width - 2 * gap, b.height - 2 * gap};
  if (b.width < 1) b.width = 1;
  if (b.height < 1) b.height = 1;
  return b;
}

static void add_box(painter *p, box b) {
  rondo_text_add(p->text, "<path d=\"M%d %dh%dv%dh-%dz\">", b.x, b.y, b.width, b.height, b.width);
}

static box item_box(const painter *p, size_t item) {
  const rondo_plan_item *of = &p->picture->problem->items[item];
  return box_of(p, of->lower, of->upper, p->picture->offsets[item], of->bytes);
}

/* The length of the item's name, or of its number. */
static size_t name_length(const painter *p, size_t item) {
  const char *const *names = p->picture->names;
  return names != NULL && names[item] != NULL ? strlen(names[item]) : (size_t)snprintf(NULL, 0, "%zu", item);
}

/* Adds the name and below it the size, if they fit. A long name is cut if enough of it remains. */
static void add_label(painter *p, size_t item) {
  const box b = item_box(p, item);
  const int room = (b.width - 8 * UNIT) / CHARACTER;
  const bool fits = room > 0 && name_length(p, item) <= (size_t)room;
  if (b.height < LINE || (!fits && room < MIN_CUT)) return;
  const int y = b.y + b.height / 2 + 4 * UNIT - (b.height >= 2 * LINE && room >= 8 ? LINE / 2 : 0);
  rondo_text_add(p->text, "<text x=\"%d\" y=\"%d\">", b.x + b.width / 2, y);
  add_name(p, item, fits ? (size_t)room : (size_t)room - 3);
  rondo_text_add(p->text, "</text>");
  if (b.height >= 2 * LINE && room >= 8) {
    rondo_text_add(p->text, "<text x=\"%d\" y=\"%d\">%s</text>", b.x + b.width / 2, y + LINE,
                   RONDO_SIZE(p->picture->problem->items[item].bytes));
  }
  rondo_text_add(p->text, "\n");
}

static void add_class(painter *p, int class) {
  const rondo_plan_problem *problem = p->picture->problem;
  for (int labels = 0; labels < 2; labels++) {
    rondo_text_add(p->text, labels ? "<g class=\"label on%d\">\n" : "<g class=\"size%d\">\n", class);
    for (size_t i = 0; i < problem->count; i++) {
      if (problem->items[i].bytes == 0 || size_class(p, problem->items[i].bytes) != class) continue;
      if (labels) {
        add_label(p, i);
        continue;
      }
      add_box(p, item_box(p, i));
      rondo_text_add(p->text, "<title>");
      add_description(p, i);
      rondo_text_add(p->text, "</title></path>\n");
    }
    rondo_text_add(p->text, "</g>\n");
  }
}

static void add_obstacles(painter *p) {
  const rondo_plan_problem *problem = p->picture->problem;
  rondo_text_add(p->text, "<g class=\"held\">\n");
  for (size_t i = 0; i < problem->obstacle_count; i++) {
    const rondo_plan_obstacle *obstacle = &problem->obstacles[i];
    if ((double)obstacle->offset >= p->top) continue;
    add_box(p, box_of(p, obstacle->lower, obstacle->upper, obstacle->offset, obstacle->bytes));
    rondo_text_add(p->text, "<title>held by others: %s bytes at %s</title></path>\n", RONDO_GROUPED(obstacle->bytes),
                   RONDO_GROUPED(obstacle->offset));
  }
  rondo_text_add(p->text, "</g>\n");
}

/* The whole -------------------------------------------------------------------------------------------------------- */

void rondo_picture_add_style(rondo_text *text) {
  static const char *const rules[] = {
      ".rondo-map{font:110px system-ui,\"Segoe UI\",Roboto,\"DejaVu "
      "Sans\",sans-serif;font-variant-numeric:tabular-nums;"
      "fill:#1b2733}\n",
      ".rondo-map .head{font-size:140px;font-weight:600}\n",
      ".rondo-map .tick,.rondo-map .key{fill:#56636f}\n",
      ".rondo-map .end{text-anchor:end}.rondo-map .middle,.rondo-map .label{text-anchor:middle}\n",
      ".rondo-map .label{pointer-events:none}\n",
      ".rondo-map .grid,.rondo-map .axis,.rondo-map .peak,.rondo-map .bound,.rondo-map .capacity"
      "{fill:none;stroke-width:10}\n",
      ".rondo-map .grid{stroke:#e6eaee}.rondo-map .axis{stroke:#9aa5b1}\n",
      ".rondo-map .peak{stroke:#1b2733;stroke-width:12}\n",
      ".rondo-map .bound{stroke:#1b2733;stroke-dasharray:50 40}\n",
      ".rondo-map .capacity{stroke:#b3261e;stroke-width:14}\n",
      ".rondo-map .live{fill:#c3ccd5}.rondo-map .held{fill:#e1e1dc}\n",
      ".rondo-map .size0{fill:#dbe7f3}.rondo-map .size1{fill:#b9d1e8}.rondo-map .size2{fill:#90b8db}\n",
      ".rondo-map .size3{fill:#6a9fce}.rondo-map .size4{fill:#3f79b0}.rondo-map .size5{fill:#275d92}\n",
      ".rondo-map .on4,.rondo-map .on5{fill:#fff}\n",
      ".rondo-map g path:hover{filter:brightness(.88)}\n",
      "@media (prefers-color-scheme:dark){.rondo-map{fill:#e4e9ee}",
      ".rondo-map .tick,.rondo-map .key{fill:#9aa7b4}\n",
      ".rondo-map .grid{stroke:#2a323a}.rondo-map .axis{stroke:#5c6873}\n",
      ".rondo-map .peak,.rondo-map .bound{stroke:#e4e9ee}.rondo-map .capacity{stroke:#ff8a80}\n",
      ".rondo-map .live{fill:#46525e}.rondo-map .held{fill:#3a3a36}\n",
      ".rondo-map .size0{fill:#22384d}.rondo-map .size1{fill:#2b4d6c}.rondo-map .size2{fill:#35648f}\n",
      ".rondo-map .size3{fill:#4a82b5}.rondo-map .size4{fill:#77a8d3}.rondo-map .size5{fill:#b0d0ec}\n",
      ".rondo-map .on3,.rondo-map .on4,.rondo-map .on5{fill:#10161c}.rondo-map g "
      "path:hover{filter:brightness(1.18)}}\n",
  };
  rondo_text_add_lines(text, rules, sizeof rules / sizeof rules[0]);
}

static void open_element(painter *p, bool with_style) {
  const rondo_picture *picture = p->picture;
  rondo_text_add(p->text,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"rondo-map\" role=\"img\" width=\"%" PRIu32
                 "\" height=\"%" PRIu32 "\" viewBox=\"0 0 %" PRIu32 " %" PRIu32 "\" aria-label=\"",
                 picture->width, picture->height, picture->width * UNIT, picture->height * UNIT);
  rondo_text_add_markup(p->text, picture->title, NAME_BYTES);
  rondo_text_add(p->text, ": %s allocation%s, peak %s bytes, most live at once %s bytes\">\n",
                 RONDO_GROUPED(picture->problem->count), picture->problem->count == 1 ? "" : "s",
                 RONDO_GROUPED(p->peak), RONDO_GROUPED(p->bound));
  if (!with_style) return;
  rondo_text_add(p->text, "<style>svg{background:#fff}@media (prefers-color-scheme:dark){svg{background:#14191e}}\n");
  rondo_picture_add_style(p->text);
  rondo_text_add(p->text, "</style>\n");
}

void rondo_picture_add(rondo_text *text, const rondo_picture *picture, bool with_style) {
  if (text->failed != RONDO_OK) return;
  painter p = {.text = text, .picture = picture, .width = (int)picture->width * UNIT - LEFT - RIGHT};
  p.height = (int)picture->height * UNIT - TOP - STRIP_GAP - STRIP - BOTTOM;
  measure_items(&p);
  const rondo_status status = measure_live(&p);
  if (status != RONDO_OK) {
    text->failed = status;
    return;
  }
  open_element(&p, with_style);
  add_head(&p);
  add_byte_ticks(&p);
  add_obstacles(&p);
  for (int class = 0; class < SIZE_CLASSES; class ++) add_class(&p, class);
  add_line(&p, "bound", p.bound);
  add_line(&p, "peak", p.peak);
  if (picture->capacity > 0 && (double)picture->capacity < p.top) add_line(&p, "capacity", picture->capacity);
  add_strip(&p);
  add_time_ticks(&p);
  rondo_text_add(text, "</svg>\n");
  rondo_release(&text->allocator, p.columns, p.column_count, sizeof *p.columns);
}

static rondo_status check_pixels(const char *what, uint32_t pixels) {
  if (pixels == 0 || (pixels >= MIN_PIXELS && pixels <= MAX_PIXELS)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "rondo_plan_to_svg: %s is %u pixels: give %d to %d, or 0 for the default", what, pixels, MIN_PIXELS,
                    MAX_PIXELS);
}

static const char *name_of_time(const rondo_plan_problem *problem, const rondo_plan_picture_options *options) {
  if (options->times != NULL) return "time (events evenly spaced)";
  return problem->order == NULL ? "step" : "node";
}

rondo_status rondo_plan_to_svg(const rondo_plan_problem *problem, const size_t *offsets,
                               const rondo_plan_picture_options *options, char **out_text) {
  rondo_plan_problem read;
  rondo_plan_picture_options known;
  if (out_text == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "rondo_plan_to_svg: out_text is NULL");
  *out_text = NULL;
  RONDO_TRY(rondo_plan_problem_read(problem, &read));
  RONDO_TRY(rondo_versioned_read("rondo_plan_picture_options", options, &known, sizeof known));
  RONDO_TRY(check_pixels("width", known.width));
  RONDO_TRY(check_pixels("height", known.height));
  if (offsets == NULL && read.count > 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "rondo_plan_to_svg: offsets is NULL");
  rondo_allocator allocator;
  RONDO_TRY(rondo_allocator_resolve(known.allocator, &allocator));
  rondo_text text;
  rondo_text_init(&text, &allocator);
  const rondo_picture picture = {.problem = &read,
                                 .offsets = offsets,
                                 .width = known.width == 0 ? DEFAULT_WIDTH : known.width,
                                 .height = known.height == 0 ? DEFAULT_HEIGHT : known.height,
                                 .title = known.title == NULL ? "Memory map" : known.title,
                                 .time_name = name_of_time(&read, &known),
                                 .names = known.names,
                                 .times = known.times,
                                 .capacity = known.capacity};
  rondo_picture_add(&text, &picture, true);
  return rondo_text_hand_out(&text, out_text);
}
