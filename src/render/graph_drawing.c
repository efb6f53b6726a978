/* SPDX-License-Identifier: MIT
 * Draws graphs. Coordinates are whole pixels. The colour of a node shows its kind, which its tooltip also names.
 * Critical and faulty nodes have a different outline. In the form with edges, a node is a box with its name, kind and
 * time.
 */
#include "render/graph_drawing.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "render/graph_layers.h"

/* With edges. */
enum {
  BOX_HEIGHT = 40,
  LAYER_HEIGHT = 76,
  MARGIN = 16,
  GAP = 22,
  CHARACTER = 7, /* width of one, about */
  MIN_BOX = 96,
  MAX_BOX = 236,
  BOX_PADDING = 24,
  NAME_BYTES = (MAX_BOX - BOX_PADDING) / CHARACTER
};

/* As cells. */
enum {
  CELL = 10,
  CELL_GAP = 2,
  CELL_STEP = CELL + CELL_GAP,
  LAYER_GAP = 4,
  ROWS = 24,
  LINE_WIDTH = 1080,
  LINE_GAP = 14
};
enum { MAX_LISTED = 24 /* dependencies of a cell */ };

typedef struct painter {
  rondo_text *text;
  const rondo_drawing *drawing;
  uint32_t count;   /* nodes */
  uint32_t *vertex; /* of each slot in the order */
  uint32_t *start;  /* edges, by vertices in the order: see rondo_layers_input */
  uint32_t *to;
  uint32_t edge_count;
  uint32_t *widths;
} painter;

/* The graph as numbers --------------------------------------------------------------------------------------------- */

static const rondo_graph_node *node_at(const painter *p, uint32_t vertex) {
  return rondo_graph_at(p->drawing->graph, p->drawing->order[vertex]);
}

static const rondo_drawing_mark *mark_at(const painter *p, uint32_t vertex) {
  return &p->drawing->marks[p->drawing->order[vertex]];
}

static const char *name_at(const painter *p, uint32_t vertex) {
  const rondo_node_params *params = &node_at(p, vertex)->params;
  return params->name[0] != '\0' ? params->name : rondo_node_kind_name(params->kind);
}

static uint32_t box_width(const painter *p, uint32_t vertex) {
  const size_t wanted = strlen(name_at(p, vertex)) * CHARACTER + BOX_PADDING;
  return wanted < MIN_BOX ? MIN_BOX : wanted > MAX_BOX ? MAX_BOX : (uint32_t)wanted;
}

static void read_edges(painter *p) {
  uint32_t edges = 0;
  for (uint32_t i = 0; i < p->count; i++) p->vertex[p->drawing->order[i]] = i;
  for (uint32_t i = 0; i < p->count; i++) {
    const rondo_slots *dependents = &node_at(p, i)->dependents;
    p->start[i] = edges;
    p->widths[i] = box_width(p, i);
    for (size_t d = 0; d < dependents->count; d++) p->to[edges++] = p->vertex[dependents->items[d]];
  }
  p->start[p->count] = edges;
}

static rondo_status make_painter(painter *p) {
  const rondo_allocator *allocator = &p->text->allocator;
  const rondo_graph *graph = p->drawing->graph;
  for (uint32_t i = 0; i < p->count; i++) p->edge_count += (uint32_t)node_at(p, i)->dependents.count;
  RONDO_TRY(rondo_allocate_items(allocator, graph->nodes.count, sizeof *p->vertex, &p->vertex));
  RONDO_TRY(rondo_allocate_items(allocator, (size_t)p->count + 1, sizeof *p->start, &p->start));
  RONDO_TRY(rondo_allocate_items(allocator, p->count, sizeof *p->widths, &p->widths));
  RONDO_TRY(rondo_allocate_items(allocator, p->edge_count, sizeof *p->to, &p->to));
  read_edges(p);
  return RONDO_OK;
}

static void free_painter(const painter *p) {
  const rondo_allocator *allocator = &p->text->allocator;
  rondo_release(allocator, p->vertex, p->drawing->graph->nodes.count, sizeof *p->vertex);
  rondo_release(allocator, p->start, (size_t)p->count + 1, sizeof *p->start);
  rondo_release(allocator, p->widths, p->count, sizeof *p->widths);
  rondo_release(allocator, p->to, p->edge_count, sizeof *p->to);
}

static void open_element(painter *p, const char *class, int32_t width, int32_t height) {
  rondo_text_add(p->text,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"%s\" role=\"img\" width=\"%" PRId32
                 "\" height=\"%" PRId32 "\" viewBox=\"0 0 %" PRId32 " %" PRId32 "\" aria-label=\"",
                 class, width, height, width, height);
  rondo_text_add_markup(p->text, p->drawing->label, NAME_BYTES * 4);
  rondo_text_add(p->text, "\">\n");
}

static void add_class(painter *p, uint32_t vertex) {
  const rondo_drawing_mark *mark = mark_at(p, vertex);
  rondo_text_add(p->text, "class=\"node %s%s%s\"", rondo_node_kind_name(node_at(p, vertex)->params.kind),
                 mark->critical ? " critical" : "", mark->faulty ? " faulty" : "");
}

static void add_title(painter *p, uint32_t vertex) {
  rondo_text_add(p->text, "<title>");
  p->drawing->describe(p->text, p->drawing->user, p->drawing->graph, p->drawing->order[vertex]);
  rondo_text_add(p->text, "</title>");
}

/* With edges ------------------------------------------------------------------------------------------------------- */

static int32_t x_of(const rondo_layers *layers, uint32_t vertex) { return layers->x[vertex] + MARGIN; }

static int32_t top_of(const rondo_layers *layers, uint32_t vertex) {
  return (int32_t)layers->layer[vertex] * LAYER_HEIGHT + MARGIN;
}

/* Draws a line from below one vertex to above another, straight or curved. */
static void add_stretch(painter *p, const rondo_layers *layers, uint32_t from, uint32_t to) {
  const int32_t begin = top_of(layers, from) + BOX_HEIGHT, end = top_of(layers, to), middle = (begin + end) / 2;
  const int32_t x = x_of(layers, to);
  if (x == x_of(layers, from)) {
    rondo_text_add(p->text, "V%" PRId32, end);
    return;
  }
  rondo_text_add(p->text, "C%" PRId32 " %" PRId32 " %" PRId32 " %" PRId32 " %" PRId32 " %" PRId32, x_of(layers, from),
                 middle, x, middle, x, end);
}

static bool is_critical_edge(const painter *p, uint32_t from, uint32_t to) {
  const rondo_drawing_mark *a = mark_at(p, from), *b = mark_at(p, to);
  return a->critical && b->critical && a->next_critical == p->drawing->order[to];
}

static void add_edge(painter *p, const rondo_layers *layers, uint32_t from, uint32_t edge) {
  const uint32_t to = p->to[edge];
  uint32_t at = from;
  rondo_text_add(p->text,
                 "<path class=\"edge%s\" data-f=\"%" PRIu32 "\" data-t=\"%" PRIu32 "\" d=\"M%" PRId32 " %" PRId32,
                 is_critical_edge(p, from, to) ? " critical" : "", p->drawing->order[from], p->drawing->order[to],
                 x_of(layers, from), top_of(layers, from) + BOX_HEIGHT);
  for (uint32_t bend = layers->bend_start[edge]; bend < layers->bend_start[edge + 1]; bend++) {
    add_stretch(p, layers, at, bend);
    rondo_text_add(p->text, "v%d", BOX_HEIGHT);
    at = bend;
  }
  add_stretch(p, layers, at, to);
  rondo_text_add(p->text, "m-3 -6l3 6l3 -6\"/>\n");
}

static void add_box(painter *p, const rondo_layers *layers, uint32_t vertex) {
  const rondo_drawing *d = p->drawing;
  const rondo_drawing_mark *mark = mark_at(p, vertex);
  const rondo_node_kind kind = node_at(p, vertex)->params.kind;
  const uint32_t slot = d->order[vertex];
  const int32_t width = (int32_t)p->widths[vertex], x = x_of(layers, vertex), left = x - width / 2;
  const int32_t top = top_of(layers, vertex);
  rondo_text_add(p->text, d->links ? "<a href=\"#row-%s%" PRIu32 "\" " : "<g data-of=\"%s%" PRIu32 "\" ", d->prefix,
                 slot);
  add_class(p, vertex);
  rondo_text_add(p->text,
                 " id=\"%s%" PRIu32 "\" data-n=\"%" PRIu32 "\"><rect x=\"%" PRId32 "\" y=\"%" PRId32
                 "\" width=\"%" PRId32 "\" height=\"%d\" rx=\"3\"/>",
                 d->prefix, slot, slot, left, top, width, BOX_HEIGHT);
  if (mark->share > 0)
    rondo_text_add(p->text, "<rect class=\"time\" x=\"%" PRId32 "\" y=\"%" PRId32 "\" width=\"%d\" height=\"3\"/>",
                   left, top + BOX_HEIGHT - 3, 1 + (int)(mark->share * (width - 1)));
  rondo_text_add(p->text, "<text x=\"%" PRId32 "\" y=\"%" PRId32 "\">", x, top + 16);
  rondo_text_add_markup(p->text, name_at(p, vertex),
                        strlen(name_at(p, vertex)) > NAME_BYTES ? NAME_BYTES - 2 : NAME_BYTES);
  rondo_text_add(p->text, "</text><text class=\"more\" x=\"%" PRId32 "\" y=\"%" PRId32 "\">%" PRIu32 " %s%s%s</text>",
                 x, top + 31, slot, mark->time[0] == '\0' ? rondo_node_kind_name(kind) : "",
                 mark->time[0] == '\0' ? "" : "\xC2\xB7 ", mark->time);
  add_title(p, vertex);
  rondo_text_add(p->text, d->links ? "</a>\n" : "</g>\n");
}

static rondo_status add_layers(painter *p, const rondo_layers_input *input) {
  rondo_layers layers;
  const rondo_status status = rondo_layers_make(&p->text->allocator, input, &layers);
  if (status == RONDO_OK) {
    open_element(p, "rondo-graph", layers.width + 2 * MARGIN,
                 (int32_t)(layers.layer_count - 1) * LAYER_HEIGHT + BOX_HEIGHT + 2 * MARGIN);
    for (uint32_t i = 0; i < p->count; i++)
      for (uint32_t e = p->start[i]; e < p->start[i + 1]; e++) add_edge(p, &layers, i, e);
    for (uint32_t i = 0; i < p->count; i++) add_box(p, &layers, i);
    rondo_text_add(p->text, "</svg>\n");
  }
  rondo_layers_free(&layers);
  return status;
}

/* As cells --------------------------------------------------------------------------------------------------------- */

/* The layout of the form with cells: nodes in an order in which they can run, grouped by depth. */
typedef struct cell_grid {
  uint32_t *depth, *sorted; /* of each vertex; vertices by depth */
  uint32_t *depth_start;    /* one for each depth, and the end */
  uint32_t depths;
  int32_t x, y, lowest; /* where the next cell goes; the lowest of the line */
  size_t capacity;
} cell_grid;

static void sort_by_depth(const painter *p, cell_grid *grid) {
  for (uint32_t i = 0; i < p->count; i++)
    for (uint32_t e = p->start[i]; e < p->start[i + 1]; e++)
      if (grid->depth[p->to[e]] <= grid->depth[i]) grid->depth[p->to[e]] = grid->depth[i] + 1;
  for (uint32_t i = 0; i < p->count; i++) {
    grid->depth_start[grid->depth[i] + 1]++;
    if (grid->depth[i] >= grid->depths) grid->depths = grid->depth[i] + 1;
  }
  for (uint32_t i = 0; i < grid->depths; i++) grid->depth_start[i + 1] += grid->depth_start[i];
  for (uint32_t i = 0; i < p->count; i++) grid->sorted[grid->depth_start[grid->depth[i]]++] = i;
  memmove(grid->depth_start + 1, grid->depth_start, grid->depths * sizeof *grid->depth_start);
  grid->depth_start[0] = 0;
}

/* Begins a new line if the columns of a depth do not fit into this one, unless they fit into no line. */
static void begin_line_if_full(cell_grid *grid, uint32_t nodes) {
  const uint32_t columns = (nodes + ROWS - 1) / ROWS;
  if (grid->x == MARGIN || grid->x + (int32_t)(columns > 80 ? 1 : columns) * CELL_STEP <= LINE_WIDTH) return;
  grid->x = MARGIN;
  grid->y = grid->lowest + LINE_GAP;
}

static void add_cell(painter *p, uint32_t vertex, int32_t x, int32_t y) {
  const rondo_slots *dependencies = &node_at(p, vertex)->dependencies;
  const uint32_t slot = p->drawing->order[vertex];
  rondo_text_add(p->text, "<path ");
  add_class(p, vertex);
  rondo_text_add(p->text, " id=\"%s%" PRIu32 "\" data-n=\"%" PRIu32 "\"", p->drawing->prefix, slot, slot);
  for (size_t i = 0; i < dependencies->count && i < MAX_LISTED; i++)
    rondo_text_add(p->text, "%s%" PRIu32, i == 0 ? " data-d=\"" : " ", dependencies->items[i]);
  rondo_text_add(p->text, "%s d=\"M%" PRId32 " %" PRId32 "h%dv%dh-%dz\">", dependencies->count > 0 ? "\"" : "", x, y,
                 CELL, CELL, CELL);
  add_title(p, vertex);
  rondo_text_add(p->text, "</path>\n");
}

/* Lays out the next depth, and draws it if `draw`. */
static void add_depth(painter *p, cell_grid *grid, uint32_t depth, bool draw) {
  const uint32_t first = grid->depth_start[depth], nodes = grid->depth_start[depth + 1] - first;
  begin_line_if_full(grid, nodes);
  for (uint32_t i = 0; i < nodes && grid->capacity > 0; i++, grid->capacity--) {
    if (i > 0 && i % ROWS == 0) grid->x += CELL_STEP;
    if (grid->x + CELL > LINE_WIDTH + MARGIN) {
      grid->x = MARGIN;
      grid->y = grid->lowest + LINE_GAP;
    }
    const int32_t y = grid->y + (int32_t)(i % ROWS) * CELL_STEP;
    if (draw) add_cell(p, grid->sorted[first + i], grid->x, y);
    if (y + CELL > grid->lowest) grid->lowest = y + CELL;
  }
  grid->x += CELL_STEP + LAYER_GAP;
}

static void add_depths(painter *p, cell_grid *grid, bool draw) {
  grid->x = grid->y = MARGIN;
  grid->lowest = MARGIN;
  grid->capacity = p->drawing->max_cells;
  for (uint32_t i = 0; i < grid->depths && grid->capacity > 0; i++) add_depth(p, grid, i, draw);
}

static rondo_status add_cells(painter *p) {
  const rondo_allocator *allocator = &p->text->allocator;
  cell_grid grid = {0};
  rondo_status status = rondo_allocate_items(allocator, p->count, sizeof *grid.depth, &grid.depth);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, p->count, sizeof *grid.sorted, &grid.sorted);
  if (status == RONDO_OK)
    status = rondo_allocate_items(allocator, (size_t)p->count + 1, sizeof *grid.depth_start, &grid.depth_start);
  if (status == RONDO_OK) {
    sort_by_depth(p, &grid);
    add_depths(p, &grid, false);
    open_element(p, "rondo-cells", LINE_WIDTH + 2 * MARGIN, grid.lowest + MARGIN);
    add_depths(p, &grid, true);
    rondo_text_add(p->text, "</svg>\n");
  }
  rondo_release(allocator, grid.depth_start, (size_t)p->count + 1, sizeof *grid.depth_start);
  rondo_release(allocator, grid.sorted, p->count, sizeof *grid.sorted);
  rondo_release(allocator, grid.depth, p->count, sizeof *grid.depth);
  return status;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status add_drawing(painter *p, size_t *out_shown) {
  const rondo_layers_input input = {
      .node_count = p->count, .start = p->start, .to = p->to, .widths = p->widths, .gap = GAP};
  uint64_t vertices = 0;
  const bool is_small = p->count <= RONDO_DRAWING_MAX_NODES && p->edge_count <= RONDO_DRAWING_MAX_EDGES;
  if (is_small) RONDO_TRY(rondo_layers_count(&p->text->allocator, &input, &vertices));
  if (is_small && vertices <= RONDO_DRAWING_MAX_VERTICES) {
    *out_shown = p->count;
    return add_layers(p, &input);
  }
  *out_shown = p->count < p->drawing->max_cells ? p->count : p->drawing->max_cells;
  return add_cells(p);
}

rondo_status rondo_drawing_add(rondo_text *text, const rondo_drawing *drawing, size_t *out_shown) {
  painter p = {.text = text, .drawing = drawing, .count = drawing->graph->live_count};
  *out_shown = 0;
  if (text->failed != RONDO_OK || p.count == 0) return text->failed;
  rondo_status status = make_painter(&p);
  if (status == RONDO_OK) status = add_drawing(&p, out_shown);
  free_painter(&p);
  return status == RONDO_OK ? text->failed : status;
}

void rondo_drawing_add_style(rondo_text *text) {
  static const char *const rules[] = {
      ".kernel{--c:#d9e6f4;--e:#7fa3c8}.copy{--c:#d5ece8;--e:#6fada2}.fill{--c:#e4efd9;--e:#90b070}\n",
      ".host{--c:#fbe8cf;--e:#cf9d55}.alloc{--c:#e6e0f3;--e:#9484c1}.free{--c:#f2eef9;--e:#b4a8d4}\n",
      ".event_record,.event_wait{--c:#f6dfe6;--e:#c5839a}.child{--c:#fff;--e:#56636f}.empty{--c:#eef0f2;--e:#a4afb9}\n",
      ".rondo-graph rect,.rondo-cells path,.swatch{fill:var(--c);stroke:var(--e);background:var(--c);"
      "border-color:var(--e)}\n",
      ".rondo-graph text{font-size:12px;text-anchor:middle;fill:var(--ink)}.rondo-graph .more{font-size:11px;"
      "fill:var(--faint)}\n",
      ".rondo-graph .time{fill:var(--accent);stroke:none}.rondo-graph .edge{fill:none;stroke:var(--line)}\n",
      ".rondo-graph .edge.critical{stroke:var(--ink);stroke-width:1.6}\n",
      ".rondo-graph .critical rect:first-child,.rondo-cells .critical{stroke:var(--ink);stroke-width:1.6}\n",
      ".rondo-graph .faulty rect:first-child,.rondo-cells .faulty{stroke:var(--bad);stroke-width:2.4}\n",
      ".rondo-graph a:focus-visible{outline:none}.rondo-graph a:focus-visible rect:first-child,"
      ".rondo-graph .near rect:first-child,.rondo-cells .near{stroke:var(--accent);stroke-width:2.4}\n",
      ".rondo-graph .edge.near{stroke:var(--accent);stroke-width:2}\n",
      "@media (prefers-color-scheme:dark){.kernel{--c:#20364d;--e:#5d88b4}.copy{--c:#1c3d38;--e:#4f958a}"
      ".fill{--c:#2c3c1f;--e:#7d9b5e}\n",
      ".host{--c:#45341b;--e:#b8883f}.alloc{--c:#332b4b;--e:#8676b8}.free{--c:#262236;--e:#6d6390}\n",
      ".event_record,.event_wait{--c:#452833;--e:#b06e86}.child{--c:#14191e;--e:#9aa7b4}"
      ".empty{--c:#262c32;--e:#66717c}}\n",
  };
  rondo_text_add_lines(text, rules, sizeof rules / sizeof rules[0]);
}
