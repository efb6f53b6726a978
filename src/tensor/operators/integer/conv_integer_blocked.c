/* SPDX-License-Identifier: MIT
 * conv_integer_blocked: a convolution of 8-bit integers whose result has its channels last, [n, 1, h, w, o]. x has them
 * last too, or first: [n, c, h, w]. Compiling makes it from conv_integer where neighbouring operators take such images
 * (pattern_blocked_images.c), so it has no CUDA kernel. It is a product of windows and panels of the weights
 * (integer_panels.h). A window is read where it is. A kernel before copies images that have padding or their channels
 * first, or whose elements become wider, with the image's zero around them, and weights that are no packed state.
 * Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/convolution/conv.h"
#include "tensor/operators/integer/integer_panels.h"

enum { X, WEIGHT };

/* A scalar argument of the kernels; without padding. */
typedef struct conv_shape {
  rondo_window window;
  size_t images, in_channels, out_channels;
  size_t is_plain, is_packed, is_wide; /* x has its channels first; the weights are a packed state; copies are wide */
  rondo_integer_ending ending;
} conv_shape;

/* The memory of the products. Sizes are in bytes. */
typedef struct conv_memory {
  bool is_copied;               /* the images, into the workspace */
  size_t sizes[2];              /* of an image in memory: lines, and elements of a line */
  size_t quads, element, pixel; /* of a place in it; element: of one channel */
  size_t line, panels, total;   /* total: of the workspace, in which panels come first */
  bool fits;                    /* the total fits a size_t */
} conv_memory;

enum { LINES, PLACES };

static size_t extent(const rondo_window *w, int axis) {
  return (w->out[axis] - 1) * w->stride[axis] + (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

static bool is_inside(const rondo_window *w, int axis) {
  return w->padding[axis] == 0 && extent(w, axis) <= w->in[axis];
}

static size_t width_of(const conv_shape *s) {
  return s->is_packed != 0 ? rondo_panel_packed_width(s->out_channels) : rondo_panel_padded_width(s->out_channels);
}
static size_t panels_of(const conv_shape *s) { return rondo_divide_up(s->out_channels, width_of(s)); }
static size_t panel_bytes(const conv_shape *s) {
  return width_of(s) * rondo_window_taps(&s->window) * rondo_divide_up(s->in_channels, RONDO_QUAD) * RONDO_QUAD;
}

static conv_memory memory_of(const conv_shape *s) {
  const rondo_window *w = &s->window;
  conv_memory m = {
      .is_copied = s->is_plain != 0 || s->is_wide != 0 || !is_inside(w, RONDO_HEIGHT) || !is_inside(w, RONDO_WIDTH),
      .quads = rondo_divide_up(s->in_channels, RONDO_QUAD),
      .element = rondo_panel_element(s->is_wide != 0)};
  m.sizes[LINES] = m.is_copied ? extent(w, RONDO_HEIGHT) : w->in[RONDO_HEIGHT];
  m.sizes[PLACES] = m.is_copied ? extent(w, RONDO_WIDTH) : w->in[RONDO_WIDTH];
  m.pixel = m.quads * RONDO_QUAD * m.element;
  m.fits = rondo_checked_multiply(m.sizes[PLACES], m.pixel, &m.line) &&
           rondo_checked_multiply(m.line, m.sizes[LINES], &m.total) &&
           rondo_checked_multiply(m.total, s->images, &m.total);
  if (!m.is_copied) m.total = 0;
  if (s->is_packed == 0) {
    m.fits = m.fits && rondo_checked_multiply(panel_bytes(s), panels_of(s), &m.panels) &&
             rondo_checked_align(m.panels, 64, &m.panels) && rondo_checked_add(m.total, m.panels, &m.total);
  }
  return m;
}

/* Copies ----------------------------------------------------------------------------------------------------------- */

/* An image's line, from place `first` of it on. */
static void copy_last(const conv_shape *s, const uint8_t *from, size_t count, int32_t zero, unsigned char *to) {
  rondo_panel_copy(from, count * s->in_channels, s->ending.a_unsigned != 0, zero, s->is_wide != 0, to);
}

/* The same of an image whose channels come first, `from` the first one. After the last channel there are zeros, for
 * which the weights have zeros too. */
static void copy_first(const conv_shape *s, const conv_memory *m, const uint8_t *from, size_t count, uint8_t zero_byte,
                       int32_t zero, unsigned char *to) {
  enum { SOME = 64 };
  const size_t in = rondo_window_in(&s->window);
  uint8_t none[SOME], quads[SOME * RONDO_QUAD];
  memset(none, zero_byte, sizeof none);
  for (size_t quad = 0; quad < m->quads; quad++) {
    for (size_t first = 0; first < count; first += SOME) {
      const size_t some = rondo_smaller(count - first, SOME);
      const uint8_t *channels[RONDO_QUAD];
      for (size_t q = 0; q < RONDO_QUAD; q++) {
        const size_t channel = quad * RONDO_QUAD + q;
        channels[q] = channel < s->in_channels ? from + channel * in + first : none;
      }
      rondo_integer_interleave(channels, some, 0, quads);
      const size_t together = m->quads == 1 ? some : 1; /* quads that are neighbours in memory */
      for (size_t i = 0; i < some; i += together)
        rondo_panel_copy(quads + RONDO_QUAD * i, RONDO_QUAD * together, s->ending.a_unsigned != 0, zero,
                         s->is_wide != 0, to + (first + i) * m->pixel + quad * RONDO_QUAD * m->element);
    }
  }
}

/* Places of the padding. Wide elements have no zero. */
static void fill(const conv_shape *s, const conv_memory *m, size_t count, uint8_t zero_byte, unsigned char *to) {
  memset(to, s->is_wide != 0 ? 0 : zero_byte, count * m->pixel);
}

static void copy_line(const conv_shape *s, const conv_memory *m, void *const *args, size_t number) {
  const rondo_window *w = &s->window;
  const size_t image = number / m->sizes[LINES], line = number % m->sizes[LINES];
  const size_t places = m->sizes[PLACES], width = w->in[RONDO_WIDTH], y = line - w->padding[RONDO_HEIGHT];
  const size_t before = rondo_smaller(w->padding[RONDO_WIDTH], places), count = rondo_smaller(places - before, width);
  const uint8_t *x = RONDO_ARG(const uint8_t *, 1) + image * s->in_channels * rondo_window_in(w);
  const uint8_t *zero = RONDO_ARG(const uint8_t *, 3);
  const uint8_t zero_byte = zero == NULL ? 0 : *zero;
  const int32_t number_zero = rondo_byte_at(&zero_byte, s->ending.a_unsigned, 0);
  unsigned char *to = RONDO_ARG(unsigned char *, 4) + m->panels + number * m->line;
  if (line < w->padding[RONDO_HEIGHT] || y >= w->in[RONDO_HEIGHT]) {
    fill(s, m, places, zero_byte, to);
    return;
  }
  fill(s, m, before, zero_byte, to);
  if (s->is_plain != 0)
    copy_first(s, m, x + y * width, count, zero_byte, number_zero, to + before * m->pixel);
  else
    copy_last(s, x + y * width * s->in_channels, count, number_zero, to + before * m->pixel);
  fill(s, m, places - before - count, zero_byte, to + (before + count) * m->pixel);
}

static size_t lines_of(const conv_shape *s, const conv_memory *m) {
  return m->is_copied ? s->images * m->sizes[LINES] : 0;
}

/* How many items the kernel below has: lines of images, then panels. */
static size_t items_of(const conv_shape *s, const conv_memory *m) {
  return lines_of(s, m) + (s->is_packed != 0 ? 0 : panels_of(s));
}

/* args: shape, x, weight, x's zero; workspace. */
static void conv_integer_copies(rondo_blocks blocks, void *const *args) {
  const conv_shape *s = args[0];
  const conv_memory m = memory_of(s);
  const size_t lines = lines_of(s, &m);
  RONDO_EACH_ITEM(number, blocks, items_of(s, &m)) {
    if (number < lines)
      copy_line(s, &m, args, number);
    else
      rondo_panel_write(RONDO_ARG(const uint8_t *, 2), s->ending.b_unsigned != 0, s->out_channels, s->in_channels,
                        rondo_window_taps(&s->window), number - lines,
                        RONDO_ARG(unsigned char *, 4) + (number - lines) * panel_bytes(s));
  }
}

static const rondo_kernel_options copies_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "conv_integer_copies", .cpu = conv_integer_copies,
    .params = {RONDO_SCALAR(conv_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES}};

/* Products --------------------------------------------------------------------------------------------------------- */

/* Where the windows of all images are. Taps beside each other are one part, unless they have a dilation. */
static rondo_panel_rows windows_of(const conv_shape *s, const conv_memory *m, const unsigned char *images) {
  const rondo_window *w = &s->window;
  const size_t taps = w->kernel[RONDO_WIDTH], dilation = w->dilation[RONDO_WIDTH], line = m->line;
  return (rondo_panel_rows){.first = images,
                            .width = w->out[RONDO_WIDTH],
                            .height = w->out[RONDO_HEIGHT],
                            .step = w->stride[RONDO_WIDTH] * m->pixel,
                            .line_step = w->stride[RONDO_HEIGHT] * line,
                            .image_step = m->sizes[LINES] * line,
                            .across = dilation == 1 ? 1 : taps,
                            .down = w->kernel[RONDO_HEIGHT],
                            .part_step = dilation * m->pixel,
                            .part_line_step = w->dilation[RONDO_HEIGHT] * line,
                            .quads = m->quads * (dilation == 1 ? taps : 1),
                            .are_wide = s->is_wide != 0};
}

/* Elements along an axis that a window reads, and no window beside it. */
static size_t own_taps(const rondo_window *w, int axis) { return rondo_smaller(w->stride[axis], w->kernel[axis]); }

static rondo_panel_tiling tiling_of(const conv_shape *s, const conv_memory *m) {
  const rondo_window *w = &s->window;
  return rondo_panel_tiles(s->images * rondo_window_out(w), panels_of(s),
                           m->pixel * own_taps(w, RONDO_HEIGHT) * own_taps(w, RONDO_WIDTH));
}

/* shape, x, weight, x's zero, weight's zeros, bias, scale, result_zero, workspace, result */
static void conv_integer_blocked_cpu(rondo_blocks blocks, void *const *args) {
  const conv_shape *s = args[0];
  const conv_memory m = memory_of(s);
  const rondo_panel_tiling t = tiling_of(s, &m);
  const unsigned char *workspace = RONDO_ARG(const unsigned char *, 8);
  const size_t rows = s->images * rondo_window_out(&s->window);
  const rondo_panel_product product = {
      .rows = windows_of(s, &m, m.is_copied ? workspace + m.panels : RONDO_ARG(const unsigned char *, 1)),
      .panels = s->is_packed != 0 ? RONDO_ARG(const int8_t *, 2) : (const int8_t *)workspace,
      .channels = s->out_channels,
      .width = width_of(s),
      .ending = &s->ending,
      .arrays = {.a_zero = RONDO_ARG(const void *, 3),
                 .b_zero = RONDO_ARG(const void *, 4),
                 .bias = RONDO_ARG(const void *, 5),
                 .scale = RONDO_ARG(const float *, 6),
                 .result_zero = RONDO_ARG(const void *, 7),
                 .result = RONDO_ARG(void *, 9)}};
  RONDO_EACH_TILE(number, blocks, t.down * t.across) {
    const size_t first = number / t.across * t.rows;
    rondo_panel_multiply(&product, number % t.across, first, rondo_smaller(rows - first, t.rows));
  }
}

static const rondo_kernel_options conv_integer_blocked_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "conv_integer_blocked", .cpu = conv_integer_blocked_cpu,
    .params = {RONDO_SCALAR(conv_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS, RONDO_READS,
               RONDO_READS, RONDO_READS, RONDO_WRITES}};

/* Row -------------------------------------------------------------------------------------------------------------- */

/* The shape that x has with its channels first. */
static rondo_shape plain_shape(const rondo_shape *x) {
  if (x->rank == 4) return *x;
  return (rondo_shape){.type = x->type, .rank = 4, .dims = {x->dims[0], x->dims[4], x->dims[2], x->dims[3]}};
}

static rondo_status infer_integer_blocked(const rondo_program *program, const rondo_operation *operation,
                                          rondo_shape *results) {
  const rondo_shape x = plain_shape(rondo_operation_input(program, operation, X));
  const size_t channels = rondo_operation_input(program, operation, WEIGHT)->dims[0];
  rondo_window w;
  rondo_type type;
  RONDO_TRY(rondo_window_make(program, operation, &x, &w));
  RONDO_TRY(rondo_integer_require(program, operation, channels, &type));
  results[0] =
      (rondo_shape){.type = type, .rank = 5, .dims = {x.dims[0], 1, w.out[RONDO_HEIGHT], w.out[RONDO_WIDTH], channels}};
  return RONDO_OK;
}

static conv_shape shape_of(const rondo_shape *x, const rondo_shape *weight, const rondo_attributes *attributes) {
  const rondo_shape plain = plain_shape(x);
  return (conv_shape){.window = rondo_window_of(&plain, attributes),
                      .images = plain.dims[0],
                      .in_channels = plain.dims[1],
                      .out_channels = weight->dims[0],
                      .is_plain = x->rank == 4,
                      .is_wide = rondo_panel_rows_are_wide(),
                      .ending = {.b_unsigned = weight->type == RONDO_U8}};
}

static conv_shape shape_in(const rondo_program *program, const rondo_operation *operation) {
  return shape_of(rondo_operation_input(program, operation, X), rondo_operation_input(program, operation, WEIGHT),
                  &operation->attributes);
}

bool rondo_conv_integer_takes_blocks(const rondo_shape *x, const rondo_shape *weight,
                                     const rondo_attributes *attributes) {
  if (attributes->sizes[RONDO_WINDOW_SIZES] != 1 || x->rank != 4) return false; /* groups */
  const conv_shape s = shape_of(x, weight, attributes);
  const size_t *kernel = s.window.kernel;
  const size_t parts = kernel[RONDO_HEIGHT] * (s.window.dilation[RONDO_WIDTH] == 1 ? 1 : kernel[RONDO_WIDTH]);
  return parts <= RONDO_PANEL_PARTS && memory_of(&s).fits;
}

static rondo_status pack_integer_blocked(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                         rondo_packed_state **out_packed) {
  const conv_shape s = shape_in(program, &program->operations.items[number]);
  *out_packed = NULL;
  if (s.in_channels % RONDO_QUAD != 0 || s.ending.b_unsigned != 0 || rondo_panel_packed_width(s.out_channels) == 0)
    return RONDO_OK;
  RONDO_TRY(rondo_panel_order(&program->allocator, s.out_channels, s.in_channels, rondo_window_taps(&s.window), true,
                              out_packed));
  return rondo_integer_keep_order(resources, number, out_packed);
}

static rondo_status prepare_integer_blocked(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                            size_t *out_workspace_bytes) {
  conv_shape s = shape_in(program, &program->operations.items[number]);
  s.is_packed = rondo_resources_object(resources, number) != NULL;
  const conv_memory m = memory_of(&s);
  assert(m.fits);
  *out_workspace_bytes = m.total;
  return RONDO_OK;
}

static rondo_status emit_integer_blocked(rondo_emitter *emitter, const rondo_operation *operation) {
  conv_shape shape = shape_in(rondo_emit_program(emitter), operation);
  shape.ending = rondo_integer_ending_of(emitter, operation, true);
  shape.is_packed = rondo_emit_object(emitter) != NULL;
  const conv_memory m = memory_of(&shape);
  const rondo_panel_tiling t = tiling_of(&shape, &m);
  const size_t items = items_of(&shape, &m);
  const rondo_grain grain = {rondo_divide_up(RONDO_ELEMENTWISE_GRAIN.cpu, m.line), 1};
  if (items > 0)
    RONDO_TRY(rondo_emit_operands(emitter, operation, &copies_code, rondo_emit_grid(emitter, items, grain),
                                  RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(X), RONDO_INPUT(WEIGHT),
                                                 RONDO_INPUT(RONDO_INTEGER_A_ZERO), RONDO_WORKSPACE)));
  const void *workspace = rondo_emit_workspace(emitter);
  return rondo_emit_operands(
      emitter, operation, &conv_integer_blocked_code, rondo_tile_grid(t.down * t.across),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(X), RONDO_INPUT(WEIGHT), RONDO_INPUT(RONDO_INTEGER_A_ZERO),
                     RONDO_INPUT(RONDO_INTEGER_B_ZERO), RONDO_INPUT(RONDO_INTEGER_BIAS),
                     RONDO_INPUT(RONDO_INTEGER_SCALE), RONDO_INPUT(RONDO_INTEGER_RESULT_ZERO), RONDO_OBJECT(workspace),
                     RONDO_RESULT(0)));
}

RONDO_OPERATOR(conv_integer_blocked, .inputs = {"x", "weight", "a_zero", "b_zero", "bias", "scale", "result_zero"},
               .required = 2, .result_count = 1, .infer = infer_integer_blocked, .prepare = prepare_integer_blocked,
               .packed_input = WEIGHT, .pack = pack_integer_blocked, .emit = emit_integer_blocked);
