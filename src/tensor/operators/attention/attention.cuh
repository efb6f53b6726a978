/* SPDX-License-Identifier: MIT
 * Tiles of attention, for its CUDA kernels. A block has a tile of rows and a tile of columns in shared memory, as
 * floats, padded with zeros. The threads form a square of 16; the thread at `down` and `across` computes the scores of
 * every 16th row and every 16th column.
 */
#include "tensor/operators/attention/attention_shape.cuh"

#define SIDE 16 /* of the square of threads */

/* The shared memory of a kernel; gradients of heads of 32 elements need the most. */
#define SHARED_FLOATS 11328

/* Heads of at most SIZE elements; tiles of TILE rows and columns, as in attention.c. */
template <unsigned size, unsigned tile>
struct tiles {
  static const unsigned SIZE = size, TILE = tile;
  static const unsigned ROW = size + 4; /* floats of a row in shared memory: 16 bytes, other banks than the last's */
  static const unsigned EACH = tile / SIDE;  /* rows, and columns, of a thread */
  static const unsigned PARTS = size / SIDE; /* elements of a thread in a row of a head */
  static const unsigned SCORES = tile + 4;   /* floats of a row of scores: 16 bytes, other banks than the last's */
  static const bool KEEPS = size <= 128;     /* there is space for two tiles that stay, and one that is replaced */
};

/* RUN(T) for the tiles that heads of `size` elements need. */
#define WITH_TILES(size, RUN) \
  if ((size) <= 32)           \
    RUN(tiles<32, 64>);       \
  else if ((size) <= 64)      \
    RUN(tiles<64, 32>);       \
  else if ((size) <= 128)     \
    RUN(tiles<128, 16>);      \
  else                        \
    RUN(tiles<256, 16>)

__device__ inline head_rows q_rows(const attention_shape &shape, size_t head) {
  return rows_in(shape.q, shape.heads, head, shape.rows);
}

__device__ inline head_rows y_rows(const attention_shape &shape, size_t head) {
  return rows_in(shape.y, shape.heads, head, shape.rows);
}

__device__ inline head_rows k_rows(const attention_shape &shape, size_t group) {
  return rows_in(shape.k, shape.groups, group, shape.columns);
}

/* Rows first .. first + TILE - 1, zeros from row `end` on and past the head's size. */
template <class T>
__device__ inline void load(const attention_shape &shape, const element *memory, const head_rows &rows, size_t first,
                            size_t end, float *to) {
  for (unsigned i = threadIdx.x; i < T::TILE * T::SIZE; i += BLOCK_THREADS) {
    const unsigned row = i / T::SIZE, column = i % T::SIZE;
    const bool is_in = first + row < end && column < shape.size;
    to[row * T::ROW + column] = is_in ? to_float(memory[rows.begin + (first + row) * rows.stride + column]) : 0.0f;
  }
}

/* The same for columns, in k and in its caches, or in v and in its caches. */
template <class T>
__device__ inline void load_columns(const attention_shape &shape, const batch_view &view, size_t group, size_t first,
                                    const element *own, const element *cache, float *to) {
  if (view.cached == 0) {
    load<T>(shape, own, k_rows(shape, group), first, view.columns, to);
    return;
  }
  for (unsigned i = threadIdx.x; i < T::TILE * T::SIZE; i += BLOCK_THREADS) {
    const unsigned row = i / T::SIZE, column = i % T::SIZE;
    const bool is_in = first + row < view.columns && column < shape.size;
    to[row * T::ROW + column] =
        is_in ? to_float(column_row(shape, view, group, first + row, own, cache)[column]) : 0.0f;
  }
}

/* out[i][j] = row `down + SIDE i` of a times row `across + SIDE j` of b, of which there are U::TILE. */
template <class T, class U = T>
__device__ inline void multiply_rows(const float *a, const float *b, float (*out)[U::EACH]) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
#pragma unroll
    for (unsigned j = 0; j < U::EACH; j++) out[i][j] = 0;
  }
#pragma unroll 4
  for (unsigned at = 0; at < T::SIZE; at += 4) {
    float4 left[T::EACH], right[U::EACH];
#pragma unroll
    for (unsigned i = 0; i < T::EACH; i++) left[i] = *(const float4 *)&a[(down + SIDE * i) * T::ROW + at];
#pragma unroll
    for (unsigned j = 0; j < U::EACH; j++) right[j] = *(const float4 *)&b[(across + SIDE * j) * T::ROW + at];
#pragma unroll
    for (unsigned i = 0; i < T::EACH; i++) {
#pragma unroll
      for (unsigned j = 0; j < U::EACH; j++)
        out[i][j] += left[i].x * right[j].x + left[i].y * right[j].y + left[i].z * right[j].z + left[i].w * right[j].w;
    }
  }
}

/* Element j of the `across`-th thread's in a row of a head: neighbours are read at once. */
template <class T>
__device__ inline unsigned element_of(unsigned across, unsigned j) {
  const unsigned each = T::PARTS < 4 ? T::PARTS : 4;
  return j / each * each * SIDE + across * each + j % each;
}

/* A thread's elements of a row of a head in shared memory. */
template <class T>
__device__ inline void read_parts(const float *row, unsigned across, float *to) {
#pragma unroll
  for (unsigned j = 0; j < T::PARTS; j++) {
    if (T::PARTS % 4 != 0)
      to[j] = row[element_of<T>(across, j)];
    else if (j % 4 == 0)
      *(float4 *)&to[j] = *(const float4 *)&row[element_of<T>(across, j)];
  }
}

/* sums[i][j] += the sum over `at` < U::TILE of factors[down + SIDE i][at] (transposed: [at][down + SIDE i]) times the
 * thread's element j of row `at` of b. */
template <class T, class U = T>
__device__ inline void add_product(const float *factors, bool transposed, const float *b, float (*sums)[T::PARTS]) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
  const unsigned row = transposed ? 1 : U::SCORES, step = transposed ? U::SCORES : 1;
#pragma unroll 4
  for (unsigned at = 0; at < U::TILE; at++) {
    __align__(16) float right[T::PARTS];
    read_parts<T>(b + at * T::ROW, across, right);
#pragma unroll
    for (unsigned i = 0; i < T::EACH; i++) {
      const float left = factors[(down + SIDE * i) * row + at * step];
#pragma unroll
      for (unsigned j = 0; j < T::PARTS; j++) sums[i][j] += left * right[j];
    }
  }
}

template <class T>
__device__ inline void clear(float (*sums)[T::PARTS]) {
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
#pragma unroll
    for (unsigned j = 0; j < T::PARTS; j++) sums[i][j] = 0;
  }
}

/* Writes a thread's elements, each row times its factor; factors of shared memory, or NULL. */
template <class T>
__device__ inline void store(const attention_shape &shape, element *memory, const head_rows &rows, size_t first,
                             const float (*sums)[T::PARTS], const float *factors) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
    const unsigned row = down + SIDE * i;
    const float factor = factors != NULL ? factors[row] : 1.0f;
#pragma unroll
    for (unsigned j = 0; j < T::PARTS; j++) {
      const unsigned column = element_of<T>(across, j);
      if (first + row < rows.count && column < shape.size)
        memory[rows.begin + (first + row) * rows.stride + column] = to_element(sums[i][j] * factor);
    }
  }
}

/* A thread's scores, to rows in shared memory. */
template <class T, class U = T>
__device__ inline void write_scores(const float (*values)[U::EACH], float *scores) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
#pragma unroll
    for (unsigned j = 0; j < U::EACH; j++) scores[(down + SIDE * i) * U::SCORES + across + SIDE * j] = values[i][j];
  }
}
