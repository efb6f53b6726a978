/* SPDX-License-Identifier: MIT
 * The curves of `rondo train --report`: whatever numbers a training gives, the markup is well-formed, of a bounded
 * size, and contains only finite numbers. The input: flags, the length of the second series, the first step of the
 * series, the values.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_target.h"
#include "support/test_markup.h"
#include "train/training_curve.h"

enum { MOST_BYTES = 1 << 20, MOST_VALUES = 4096, HEAD = 8 };

/* As a training stores them: a value that is not finite ends it. */
static size_t take_values(const uint8_t *data, size_t size, float *out) {
  size_t count = 0;
  for (size_t at = 0; at + sizeof *out <= size && count < MOST_VALUES; at += sizeof *out) {
    memcpy(&out[count], data + at, sizeof *out);
    count += isfinite(out[count]) != 0;
  }
  return count;
}

static void require_markup(const char *text, size_t bytes) {
  REQUIRE(bytes < MOST_BYTES);
  REQUIRE(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL);
  assert_well_formed(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static float values[MOST_VALUES];
  if (size < HEAD) return 0;
  const size_t count = take_values(data + HEAD, size - HEAD, values);
  if (count == 0) return 0;
  const size_t second = data[1] * count / 256;
  uint32_t first;
  memcpy(&first, data + 4, sizeof first);
  const curve drawn = {
      .title = "Losses",
      .unit = "nats",
      .is_time = (data[0] & 1) != 0,
      .series = {{"recorded", values + second, first, count - second}, {"eager", values, data[2], second}}};
  char *text = NULL;
  size_t bytes = 0;
  FILE *stream = open_memstream(&text, &bytes);
  REQUIRE(stream != NULL);
  fputs("<div>", stream);
  REQUIRE(curve_write(stream, &drawn));
  fputs("</div>", stream);
  REQUIRE(fclose(stream) == 0);
  require_markup(text, bytes);
  free(text);
  return 0;
}
