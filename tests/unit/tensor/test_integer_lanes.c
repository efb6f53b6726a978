/* SPDX-License-Identifier: MIT
 * Products of bytes (ON-3): each form that the processor has gives the sums that the definition says, for random shapes
 * and for bytes whose products would saturate sums of 16 bits.
 */
#include "tensor/operators/integer/integer_lanes.h"

#include <stdlib.h>
#include <string.h>

#include "support/rondo_test.h"
#include "tensor/operators/common/vectors.h"

enum { MOST_QUADS = 300, MOST_COLUMNS = 150, MOST_DEPTH = 200, MOST_B = 11, ROUNDS = 60 };

static const rondo_vectors forms[] = {RONDO_VECTORS_PLAIN, RONDO_VECTORS_AVX2, RONDO_VECTORS_AVX512};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* Forms that the processor does not have are others that were tested before. */
static void use(rondo_vectors form) {
  const rondo_vectors widest = rondo_vectors_choose();
  atomic_store(&rondo_vectors_chosen, form < widest ? form : widest);
}

/* Memory that ends where the bytes do. */
static uint8_t *draw(uint64_t *seed, size_t count) {
  uint8_t *bytes = malloc(count);
  assert_non_null(bytes);
  const bool is_extreme = test_random_below(seed, 2) == 0;
  const uint8_t ends[] = {0x80, 0x7f, 0xff, 0, 0x40};
  for (size_t i = 0; i < count; i++)
    bytes[i] = is_extreme ? ends[test_random_below(seed, sizeof ends)] : (uint8_t)test_random_below(seed, 256);
  return bytes;
}

/* Lanes ------------------------------------------------------------------------------------------------------------ */

typedef struct lanes {
  rondo_lane_rows rows;
  size_t quads, columns, pitch, image_quads;
  uint8_t *weights, *image;
  uint32_t offsets[MOST_QUADS];
} lanes;

static void draw_lanes(lanes *l, uint64_t *seed) {
  l->quads = 1 + test_random_below(seed, MOST_QUADS);
  l->columns = 1 + test_random_below(seed, MOST_COLUMNS);
  l->pitch = rondo_divide_up(l->columns, RONDO_LANE_COLUMNS) * RONDO_LANE_COLUMNS;
  l->image_quads = l->pitch + 40;
  l->rows.count = 1 + test_random_below(seed, RONDO_LANE_ROWS);
  l->rows.pitch = RONDO_QUAD * (l->quads + test_random_below(seed, 3));
  l->weights = draw(seed, l->rows.count * l->rows.pitch);
  l->rows.first = (const int8_t *)l->weights;
  l->image = draw(seed, RONDO_QUAD * l->image_quads);
  for (size_t k = 0; k < l->quads; k++) l->offsets[k] = (uint32_t)test_random_below(seed, 41);
}

static int32_t lane_at(const lanes *l, size_t i, size_t j) {
  int64_t sum = 7;
  for (size_t k = 0; k < l->quads; k++)
    for (size_t q = 0; q < RONDO_QUAD; q++)
      sum += l->rows.first[i * l->rows.pitch + RONDO_QUAD * k + q] * l->image[RONDO_QUAD * (l->offsets[k] + j) + q];
  return (int32_t)sum;
}

static void check_lanes(uint64_t *seed) {
  static int32_t sums[RONDO_LANE_ROWS * (MOST_COLUMNS + RONDO_LANE_COLUMNS)];
  lanes l;
  draw_lanes(&l, seed);
  for (size_t form = 0; form < FORMS; form++) {
    for (size_t i = 0; i < l.rows.count * l.pitch; i++) sums[i] = 7;
    use(forms[form]);
    rondo_integer_add_lanes(&l.rows, l.image, l.offsets, l.quads, l.columns, sums, l.pitch);
    for (size_t i = 0; i < l.rows.count; i++)
      for (size_t j = 0; j < l.columns; j++) assert_int_equal(sums[i * l.pitch + j], lane_at(&l, i, j));
  }
  free(l.weights);
  free(l.image);
}

UNIT_TEST(test_lanes_are_exact) {
  uint64_t seed = 1;
  for (int i = 0; i < ROUNDS; i++) check_lanes(&seed);
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static void check_dots(uint64_t *seed) {
  int32_t sums[RONDO_DOT_ROWS * MOST_B];
  const size_t depth = 1 + test_random_below(seed, MOST_DEPTH), pitch = rondo_integer_dot_bytes(depth);
  const size_t rows = 1 + test_random_below(seed, RONDO_DOT_ROWS), columns = 1 + test_random_below(seed, MOST_B);
  const uint8_t turned = test_random_below(seed, 2) == 0 ? 0 : 0x80;
  uint8_t *a = draw(seed, rows * depth), *b = draw(seed, columns * depth), *copy = malloc(rows * pitch);
  assert_non_null(copy);
  for (size_t form = 0; form < FORMS; form++) {
    use(forms[form]);
    for (size_t i = 0; i < rows; i++) rondo_integer_copy_dot_row(a + i * depth, depth, turned, copy + i * pitch);
    rondo_integer_find_dots(copy, rows, b, columns, turned, depth, sums, MOST_B);
    for (size_t i = 0; i < rows; i++) {
      for (size_t j = 0; j < columns; j++) {
        int64_t sum = 0;
        for (size_t k = 0; k < depth; k++) sum += (a[i * depth + k] ^ turned) * (int8_t)(b[j * depth + k] ^ turned);
        assert_int_equal(sums[i * MOST_B + j], sum);
      }
    }
  }
  free(a);
  free(b);
  free(copy);
}

UNIT_TEST(test_dots_are_exact) {
  uint64_t seed = 2;
  for (int i = 0; i < ROUNDS; i++) check_dots(&seed);
}

/* Copies and totals ------------------------------------------------------------------------------------------------ */

static void check_quads(uint64_t *seed, size_t count) {
  const size_t channels = 1 + test_random_below(seed, RONDO_QUAD);
  const uint8_t turned = test_random_below(seed, 2) == 0 ? 0 : 0x80;
  uint8_t *bytes = draw(seed, channels * count), *quads = malloc(RONDO_QUAD * count);
  const uint8_t *arrays[RONDO_QUAD] = {NULL};
  assert_non_null(quads);
  for (size_t q = 0; q < channels; q++) arrays[q] = bytes + q * count;
  for (size_t form = 0; form < FORMS; form++) {
    int64_t total = 0;
    use(forms[form]);
    rondo_integer_interleave(arrays, count, turned, quads);
    for (size_t i = 0; i < RONDO_QUAD * count; i++) {
      const size_t q = i % RONDO_QUAD;
      assert_int_equal(quads[i], q < channels ? arrays[q][i / RONDO_QUAD] ^ turned : 0);
      total += (int8_t)(quads[i] ^ turned);
    }
    assert_int_equal(rondo_integer_total(quads, RONDO_QUAD * count, turned), total);
    total = 0;
    for (size_t i = 0; i < RONDO_QUAD * count; i++) total += quads[i];
    assert_int_equal(rondo_unsigned_total(quads, RONDO_QUAD * count, 0), total);
  }
  free(bytes);
  free(quads);
}

UNIT_TEST(test_quads_and_totals) {
  uint64_t seed = 3;
  for (size_t count = 1; count < 170; count++) check_quads(&seed, count);
}
