/* SPDX-License-Identifier: MIT
 * Products of rows and panels of bytes (ON-3): each form that the processor has gives the results that the definition
 * says, for random places of rows, zeros of both factors and all kinds of results.
 */
#include "tensor/operators/integer/integer_panels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "tensor/operators/common/vectors.h"

enum { MOST_CHANNELS = 150, ROUNDS = 60 };

static const rondo_vectors forms[] = {RONDO_VECTORS_PLAIN, RONDO_VECTORS_AVX2, RONDO_VECTORS_AVX512};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* Forms that the processor does not have are others that were tested before. */
static void use(rondo_vectors form) {
  const rondo_vectors widest = rondo_vectors_choose();
  atomic_store(&rondo_vectors_chosen, form < widest ? form : widest);
}

/* A product; the distances of its rows are elements. */
typedef struct panel_case {
  rondo_panel_rows rows;
  rondo_integer_ending ending;
  size_t channels, count, in, elements; /* count: of rows; in: elements of a part */
  uint8_t *a, *weights, zeros[MOST_CHANNELS], a_zero, result_zero;
  int32_t biases[MOST_CHANNELS];
  float scales[MOST_CHANNELS];
} panel_case;

static size_t draw_from(uint64_t *seed, size_t least, size_t most) {
  return least + test_random_below(seed, (uint32_t)(most - least + 1));
}

static uint8_t *draw(uint64_t *seed, size_t count) {
  const bool is_extreme = test_random_below(seed, 2) == 0;
  const uint8_t ends[] = {0x80, 0x7f, 0xff, 0, 0x40};
  uint8_t *bytes = malloc(count);
  assert_non_null(bytes);
  for (size_t i = 0; i < count; i++)
    bytes[i] = is_extreme ? ends[test_random_below(seed, sizeof ends)] : (uint8_t)test_random_below(seed, 256);
  return bytes;
}

static rondo_panel_rows draw_rows(uint64_t *seed) {
  rondo_panel_rows r = {.width = draw_from(seed, 1, 9),
                        .height = draw_from(seed, 1, 4),
                        .quads = draw_from(seed, 1, 20),
                        .across = draw_from(seed, 1, 3),
                        .down = draw_from(seed, 1, 3)};
  r.step = RONDO_QUAD * draw_from(seed, 0, 5);
  r.line_step = RONDO_QUAD * draw_from(seed, 0, 20);
  r.image_step = RONDO_QUAD * draw_from(seed, 0, 50);
  r.part_step = RONDO_QUAD * draw_from(seed, 0, 5);
  r.part_line_step = RONDO_QUAD * draw_from(seed, 0, 20);
  return r;
}

static rondo_integer_ending draw_ending(uint64_t *seed, size_t channels) {
  const uint32_t all = (uint32_t)channels;
  const bool is_float = test_random_below(seed, 3) == 0;
  return (rondo_integer_ending){.a_unsigned = (uint32_t)test_random_below(seed, 2),
                                .b_unsigned = (uint32_t)test_random_below(seed, 2),
                                .zeros_b = (const uint32_t[]){0, 1, all}[test_random_below(seed, 3)],
                                .scales = test_random_below(seed, 2) == 0 ? 1 : all,
                                .biases = (const uint32_t[]){0, 1, all}[test_random_below(seed, 3)],
                                .has_scale = test_random_below(seed, 4) != 0,
                                .result_unsigned = (uint32_t)test_random_below(seed, 2),
                                .result_float = is_float,
                                .relu = (uint32_t)test_random_below(seed, 2),
                                .a_scale = 0.5f,
                                .result_scale = is_float ? 1 : 3};
}

/* Rows may lie over each other. */
static panel_case draw_case(uint64_t *seed) {
  panel_case c = {
      .rows = draw_rows(seed), .channels = draw_from(seed, 1, MOST_CHANNELS), .count = draw_from(seed, 1, 40)};
  const rondo_panel_rows *r = &c.rows;
  c.in = RONDO_QUAD * r->quads - (r->across * r->down == 1 ? test_random_below(seed, RONDO_QUAD) : 0);
  c.ending = draw_ending(seed, c.channels);
  c.elements = r->width * r->step + r->height * r->line_step + c.count * r->image_step + r->across * r->part_step +
               r->down * r->part_line_step + RONDO_QUAD * r->quads;
  c.a = draw(seed, c.elements);
  c.weights = draw(seed, c.channels * c.in * r->across * r->down);
  c.a_zero = (uint8_t)test_random_below(seed, 256);
  c.result_zero = (uint8_t)test_random_below(seed, 256);
  for (size_t j = 0; j < c.channels; j++) {
    c.zeros[j] = (uint8_t)test_random_below(seed, 256);
    c.biases[j] = (int32_t)test_random_below(seed, 20000) - 10000;
    c.scales[j] = (float)(1 + test_random_below(seed, 50)) * 1e-4f;
  }
  return c;
}

static size_t element_of(const panel_case *c, size_t row, size_t part, size_t k) {
  const rondo_panel_rows *r = &c->rows;
  return row / r->width / r->height * r->image_step + row / r->width % r->height * r->line_step +
         row % r->width * r->step + part / r->across * r->part_line_step + part % r->across * r->part_step + k;
}

static int32_t sum_at(const panel_case *c, size_t row, size_t channel) {
  const size_t parts = c->rows.across * c->rows.down;
  const int32_t zero = rondo_byte_at(&c->a_zero, c->ending.a_unsigned, 0);
  const int32_t own =
      c->ending.zeros_b == 0 ? 0 : rondo_byte_at(c->zeros, c->ending.b_unsigned, c->ending.zeros_b == 1 ? 0 : channel);
  int32_t sum = 0;
  for (size_t part = 0; part < parts; part++)
    for (size_t k = 0; k < c->in; k++)
      sum += (rondo_byte_at(c->a, c->ending.a_unsigned, element_of(c, row, part, k)) - zero) *
             (rondo_byte_at(c->weights, c->ending.b_unsigned, (channel * c->in + k) * parts + part) - own);
  return sum;
}

static void check_result(const panel_case *c, const void *result, size_t row, size_t channel) {
  const rondo_integer_ending *e = &c->ending;
  const size_t at = row * c->channels + channel;
  const int32_t bias = e->biases == 0 ? 0 : c->biases[e->biases == 1 ? 0 : channel], sum = sum_at(c, row, channel);
  const float x = (float)(sum + bias) * (e->a_scale * c->scales[e->scales == 1 ? 0 : channel] / e->result_scale);
  const float y = e->relu != 0 && !(x > 0) ? 0 : x, low = e->result_unsigned != 0 ? 0 : -128;
  const float whole = rintf(y) + (float)rondo_byte_at(&c->result_zero, e->result_unsigned, 0);
  if (e->has_scale == 0)
    assert_int_equal(((const int32_t *)result)[at], sum);
  else if (e->result_float != 0)
    assert_true(((const float *)result)[at] == y);
  else
    assert_int_equal(rondo_byte_at(result, e->result_unsigned, at), (int)fminf(fmaxf(whole, low), low + 255));
}

/* The rows in the form of this processor, whose elements after those of `in` have no effect. */
static void *copy_rows(const panel_case *c, rondo_panel_rows *out) {
  const int32_t zero = rondo_byte_at(&c->a_zero, c->ending.a_unsigned, 0);
  *out = c->rows;
  out->are_wide = rondo_panel_rows_are_wide();
  const size_t element = rondo_panel_element(out->are_wide);
  size_t *const steps[] = {&out->step, &out->line_step, &out->image_step, &out->part_step, &out->part_line_step};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) *steps[i] *= element;
  unsigned char *rows = malloc(c->elements * element);
  assert_non_null(rows);
  rondo_panel_copy(c->a, c->elements, c->ending.a_unsigned != 0, zero, out->are_wide, rows);
  out->first = rows;
  return rows;
}

static void check_case(const panel_case *c) {
  const size_t taps = c->rows.across * c->rows.down, width = rondo_panel_padded_width(c->channels);
  const size_t panels = rondo_divide_up(c->channels, width), bytes = width * taps * c->rows.quads * RONDO_QUAD;
  rondo_panel_product p = {.channels = c->channels,
                           .width = width,
                           .ending = &c->ending,
                           .arrays = {.a_zero = &c->a_zero,
                                      .b_zero = c->ending.zeros_b == 0 ? NULL : c->zeros,
                                      .result_zero = &c->result_zero,
                                      .bias = c->ending.biases == 0 ? NULL : c->biases,
                                      .scale = c->scales}};
  uint8_t *weights = malloc(panels * bytes);
  void *rows = copy_rows(c, &p.rows), *result = calloc(c->count * c->channels, sizeof(int32_t));
  assert_non_null(weights);
  assert_non_null(result);
  p.panels = (const int8_t *)weights;
  p.arrays.result = result;
  const rondo_panel_tiling t =
      rondo_panel_tiles(c->count, panels, RONDO_QUAD * c->rows.quads * rondo_panel_element(p.rows.are_wide));
  for (size_t i = 0; i < panels; i++) {
    rondo_panel_write(c->weights, c->ending.b_unsigned != 0, c->channels, c->in, taps, i, weights + i * bytes);
    for (size_t row = 0; row < c->count; row += t.rows)
      rondo_panel_multiply(&p, i, row, rondo_smaller(t.rows, c->count - row));
  }
  for (size_t row = 0; row < c->count; row++)
    for (size_t channel = 0; channel < c->channels; channel++) check_result(c, result, row, channel);
  free(weights);
  free(rows);
  free(result);
}

/* Elements after those of `in` are read with weights of 0, and have to be the zero of a if weights have zeros. */
static void fill_padding(panel_case *c) {
  const size_t whole = RONDO_QUAD * c->rows.quads;
  if (c->in == whole) return;
  c->rows.step = whole;
  c->rows.line_step = c->rows.width * whole;
  c->rows.image_step = c->rows.height * c->rows.line_step;
  c->rows.part_step = c->rows.part_line_step = 0;
  free(c->a);
  c->elements = rondo_divide_up(c->count, c->rows.width * c->rows.height) * c->rows.image_step;
  uint64_t seed = c->count;
  c->a = draw(&seed, c->elements);
  for (size_t i = 0; i < c->elements; i++)
    if (i % whole >= c->in) c->a[i] = c->a_zero;
}

UNIT_TEST(test_on3_panels_are_exact) {
  uint64_t seed = 4;
  for (int i = 0; i < ROUNDS; i++) {
    panel_case c = draw_case(&seed);
    fill_padding(&c);
    for (size_t form = 0; form < FORMS; form++) {
      use(forms[form]);
      check_case(&c);
    }
    free(c.a);
    free(c.weights);
  }
}

/* A width divides the channels and wastes few lanes. */
UNIT_TEST(test_widths_of_packed_panels) {
  const size_t expected[][2] = {{64, 64}, {2048, 64}, {1000, 40}, {10, 10}, {48, 48},
                                {96, 48}, {8, 8},     {7, 0},     {131, 0}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    assert_int_equal(rondo_panel_packed_width(expected[i][0]), expected[i][1]);
}
