/* SPDX-License-Identifier: MIT
 * The tool's curves: well-formed for any values, bounded in bytes for any number of steps, with every value in the
 * picture except times that are cut off, and with the right median, minimum and maximum.
 */
#define _POSIX_C_SOURCE 200809L
#include "train/training_curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_markup.h"

/* In an element of its own, for a curve is two. */
static char *draw(const curve *drawn) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  fputs("<!DOCTYPE html>\n<html><body>", out);
  assert_true(curve_write(out, drawn));
  fputs("</body></html>\n", out);
  assert_int_equal(fclose(out), 0);
  assert_well_formed(text);
  assert_self_contained(text);
  assert_null(strstr(text, "nan"));
  assert_null(strstr(text, "inf"));
  return text;
}

/* Every y of a line or band lies in the picture. */
static void assert_inside(const char *text) {
  size_t points = 0;
  for (const char *at = strstr(text, "d=\"M"); at; at = strstr(at, "d=\"M")) {
    char *next = NULL;
    at += 4;
    for (double x = strtod(at, &next); next != at; x = strtod(at, &next)) {
      at = next;
      const double y = strtod(at, &next);
      if (next == at) break;
      at = next;
      assert_true(x >= 0 && x <= 1160 && y >= 0 && y <= 340);
      points++;
    }
  }
  assert_true(points > 0);
}

static float values[100000], others[100000];

static curve losses_of(size_t count) {
  return (curve){.title = "Losses", .unit = "nats a byte", .series = {{"recorded", values, 0, count}}};
}

UNIT_TEST(test_any_number_of_steps) {
  for (size_t i = 0; i < 100000; i++) values[i] = 4.0f / (1 + (float)i / 100) + (float)(i * 7919 % 1000) / 2000;
  static const size_t counts[] = {1, 2, 3, 20, 479, 480, 481, 1000, 99999, 100000};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    const curve drawn = losses_of(counts[i]);
    char *text = draw(&drawn);
    assert_inside(text);
    assert_true(test_count(text, "<rect ") <= 480 && test_count(text, "<rect ") >= (counts[i] < 240 ? counts[i] : 240));
    assert_true(test_count(text, "<tr>") <= 41);
    assert_true(strlen(text) < 120000);
    free(text);
  }
}

/* All the same, none, huge, tiny, of both signs. */
UNIT_TEST(test_any_values) {
  static const float cases[][3] = {{0, 0, 0},          {1, 1, 1},           {-1, -1, -1},
                                   {3e38f, -3e38f, 0}, {1e-30f, 2e-30f, 0}, {1e30f, 1, 1},
                                   {-5, 5, 0.1f},      {1e-45f, 0, 0},      {1e7f, 1e7f + 1, 1e7f}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    for (size_t k = 0; k < 3; k++) values[k] = cases[i][k];
    curve drawn = losses_of(3);
    char *text = draw(&drawn);
    assert_inside(text);
    free(text);
    for (size_t k = 0; k < 3; k++) values[k] = fabsf(values[k]);
    drawn.is_time = true;
    text = draw(&drawn);
    assert_inside(text);
    free(text);
  }
}

/* Two runs that begin late and have different ends; a few steps take a thousand times as long. */
UNIT_TEST(test_times_of_two_runs) {
  for (size_t i = 0; i < 3000; i++) {
    values[i] = i % 50 == 7 ? 200000.0f : 200.0f;
    others[i] = 300.0f;
  }
  const curve drawn = {.title = "Times of steps",
                       .unit = "\xC2\xB5s",
                       .is_time = true,
                       .series = {{"recorded", values, 20, 3000}, {"eager", others, 20, 40}}};
  char *text = draw(&drawn);
  assert_inside(text);
  assert_non_null(strstr(text, "\"end\">400</text>"));
  assert_null(strstr(text, "\"end\">500</text>"));
  assert_non_null(strstr(text, "<title>step 21 to 27: 200 (200 to 200)</title>"));
  assert_non_null(strstr(text, "<title>step 28 to 34: 200 (200 to 200000)</title>"));
  assert_non_null(strstr(text, "eager</text>"));
  assert_non_null(strstr(text, "<tr><td>eager</td><td class=\"number\">60</td>"));
  free(text);
}

UNIT_TEST(test_figures_are_right) {
  double found[3];
  for (size_t i = 0; i < 1001; i++) values[i] = (float)(i * 7919 % 1001);
  assert_true(curve_summarize(&losses_of(1001).series[0], found));
  assert_true(found[0] == 0 && found[1] == 500 && found[2] == 1000);
  values[0] = 3, values[1] = 1;
  assert_true(curve_summarize(&losses_of(2).series[0], found));
  assert_true(found[0] == 1 && found[1] == 2 && found[2] == 3);
}
