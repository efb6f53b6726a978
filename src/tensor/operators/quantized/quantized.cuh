/* SPDX-License-Identifier: MIT
 * Quantised matrices, as in quantized_scheme.h. Kernels read eight values of a row at a time: they have one scale, and
 * take one word with 4 bits, two with 8 bits. Columns have 32 bits, because 64-bit division is much slower.
 */

struct quantized_scheme {
  size_t rows, columns;
  size_t group, groups;
  size_t row_bytes;
  unsigned bits, has_zeros;
};

struct quantized_matrix {
  const unsigned char *values;
  const float *scales;
  const unsigned char *zeros; /* NULL: none */
};

#define EIGHT 8

/* The zero of a group; `at`: row * groups + group. */
template <unsigned bits>
__device__ inline int zero_of(const quantized_matrix &matrix, size_t at) {
  if (matrix.zeros == 0) return bits == 4 ? 8 : 0;
  return bits == 4 ? (int)matrix.zeros[at] : (int)(signed char)matrix.zeros[at];
}

/* Four bytes of a row of `end` bytes; 0 after its end. Rows of whole words are aligned. */
__device__ inline unsigned word_of(const unsigned char *row, unsigned at, unsigned end, bool is_aligned) {
  if (is_aligned) return at < end ? *(const unsigned *)(row + at) : 0;
  unsigned word = 0;
  for (unsigned k = 0; k < 4; k++)
    if (at + k < end) word |= (unsigned)row[at + k] << 8 * k;
  return word;
}

/* Eight values from a column on, a multiple of eight, in as many bytes as a value has bits. 2^29 columns have too many
 * bits to count. */
template <unsigned bits>
struct eight_values {
  unsigned words[bits / 4];

  __device__ eight_values(const unsigned char *row, unsigned column, unsigned row_bytes) {
#pragma unroll
    for (unsigned k = 0; k < bits / 4; k++)
      words[k] = word_of(row, column / EIGHT * bits + 4 * k, row_bytes, row_bytes % 4 == 0);
  }

  __device__ int at(unsigned k) const {
    return bits == 4 ? (int)(words[0] >> 4 * k & 15) : (int)(signed char)(words[k / 4 % (bits / 4)] >> 8 * (k % 4));
  }
};

/* Writes a row, or its share for one lane of several. */
template <unsigned bits, class T>
__device__ inline void write_elements(const quantized_scheme &scheme, const quantized_matrix &matrix, size_t row,
                                      unsigned lane, unsigned lanes, T *to) {
  const unsigned columns = (unsigned)scheme.columns, group = (unsigned)scheme.group;
  const unsigned char *const values = matrix.values + row * scheme.row_bytes;
  for (unsigned column = lane * EIGHT; column < columns; column += lanes * EIGHT) {
    const size_t number = row * scheme.groups + column / group;
    const eight_values<bits> eight(values, column, (unsigned)scheme.row_bytes);
    const float scale = matrix.scales[number];
    const int zero = zero_of<bits>(matrix, number);
#pragma unroll
    for (unsigned k = 0; k < EIGHT; k++)
      if (column + k < columns) to[column + k] = from_float<T>(scale * (float)(eight.at(k) - zero));
  }
}

template <class T>
__device__ inline void write_quantized_row(const quantized_scheme &scheme, const quantized_matrix &matrix, size_t row,
                                           unsigned lane, unsigned lanes, T *to) {
  if (scheme.bits == 4)
    write_elements<4>(scheme, matrix, row, lane, lanes, to);
  else
    write_elements<8>(scheme, matrix, row, lane, lanes, to);
}
