/* SPDX-License-Identifier: MIT
 * Products of rows of 8-bit integers and panels of weights, on a CPU. A panel has the weights of some result channels,
 * four of one channel side by side: [quads][width][4], all signed. Vectors of results are neighbouring channels, so a
 * row is a window of an image with its channels last, or a row of a matrix, and results have the same order.
 *
 * With VNNI, rows stay bytes. Without, they are wide: 16-bit integers without their zero, of which one instruction of
 * AVX2 multiplies sixteen. The caller makes those. Sums are exact, modulo 2^32, and the same in all forms. Threads:
 * any; the functions write the results of the given rows and channels alone.
 */
#ifndef RONDO_TENSOR_OPERATORS_INTEGER_INTEGER_PANELS_H
#define RONDO_TENSOR_OPERATORS_INTEGER_INTEGER_PANELS_H

#include "tensor/operators/integer/integer_lanes.h"
#include "tensor/operators/integer/integer_product.h"
#include "tensor/run/packed_state.h"

#define RONDO_PANEL_WIDTH RONDO_INTEGER_COLUMNS /* at most */
#define RONDO_PANEL_PARTS 64                    /* likewise */

/* Rows in memory. Rows lie beside each other in lines, and lines in images: for a matrix, one line. Each consists of
 * `across` parts beside each other, `down` times, of `quads` quads each. Distances are in bytes. */
typedef struct rondo_panel_rows {
  const unsigned char *first;
  size_t width, height; /* of an image */
  size_t step, line_step, image_step;
  size_t across, down, part_step, part_line_step;
  size_t quads;
  bool are_wide;
} rondo_panel_rows;

/* A product, and what becomes of its sums. */
typedef struct rondo_panel_product {
  rondo_panel_rows rows;
  const int8_t *panels;
  size_t channels, width; /* of all panels; of a panel */
  const rondo_integer_ending *ending;
  rondo_integer_arrays arrays;
} rondo_panel_product;

/* Whether rows are wide on this processor, and the bytes of an element. */
static inline bool rondo_panel_rows_are_wide(void) {
#ifdef RONDO_HAS_X86
  return !rondo_uses_vnni();
#else
  return true;
#endif
}
static inline size_t rondo_panel_element(bool is_wide) { return is_wide ? sizeof(int16_t) : 1; }

/* Elements of a row as products read them: wide ones are 16-bit integers less `zero`. `from` has I8 or U8. */
void rondo_panel_copy(const uint8_t *from, size_t count, bool is_unsigned, int32_t zero, bool is_wide, void *to);

/* Panels of [channels, depth] weights, in which each row has `taps` times `in` elements of neighbouring inputs. The
 * width of packed panels divides the channels; 0: no width is good. Others have zeros after the last channel and after
 * the inputs of a tap. */
size_t rondo_panel_packed_width(size_t channels);
static inline size_t rondo_panel_padded_width(size_t channels) {
  return rondo_smaller(rondo_divide_up(channels, 16) * 16, RONDO_PANEL_WIDTH);
}
/* The order of a state [channels, in, taps], or of [in, channels] if it is not transposed. `in` is whole quads. */
RONDO_MUST_USE rondo_status rondo_panel_order(const rondo_allocator *allocator, size_t channels, size_t in, size_t taps,
                                              bool is_transposed, rondo_packed_state **out);
/* Writes panel `number` of padded width, of weights [channels, in, taps]. */
void rondo_panel_write(const uint8_t *weights, bool is_unsigned, size_t channels, size_t in, size_t taps, size_t number,
                       uint8_t *to);

/* Computes `count` rows, from row `row` on, of the channels of a panel. The result has all channels of a row side by
 * side. */
void rondo_panel_multiply(const rondo_panel_product *product, size_t panel, size_t row, size_t count);

/* How a product of `rows` rows is divided into tiles, each of some rows and a panel. A tile reads at most about
 * `row_bytes` bytes of memory for each row. */
typedef struct rondo_panel_tiling {
  size_t rows, down, across; /* of a tile; tiles below each other, and beside each other */
} rondo_panel_tiling;
rondo_panel_tiling rondo_panel_tiles(size_t rows, size_t panels, size_t row_bytes);

#endif
