/* SPDX-License-Identifier: MIT
 * The CUDA kernel of attention_tile_gradient.c, after FlashAttention-2 (Dao 2023). For dq, a block computes a tile of
 * rows over the columns that are visible to them. For dk and dv, it computes a tile of columns over the rows, of all
 * heads of its group, to which they are visible. For the mask, it computes a tile of its elements, over all batches,
 * heads, rows and columns that share them. One thread computes a sum, in a fixed order.
 */
#include "tensor/operators/attention/attention.cuh"

/* Two tiles that stay, of q and dy or of k and v, and one that is replaced; and dy · y of each row. For large heads,
 * the two have the space of one, and each is loaded when it is needed. */
template <class T>
struct gradient_memory {
  static const unsigned FLOATS = T::TILE * T::ROW;
  float first[FLOATS], others[(T::KEEPS ? 2 : 1) * FLOATS], scores[T::TILE * T::SCORES];
  float shares[T::TILE];

  __device__ inline float *second() { return T::KEEPS ? others + (T::KEEPS ? FLOATS : 0) : first; }
};

/* The gradients; NULL for those that nothing reads. */
struct gradients {
  element *q, *k, *v;
  void *mask;
};

/* A head, with what its batch has. */
struct head_of {
  size_t head, group;
  batch_view view;
  score_terms terms;
};

__device__ inline head_of find_head(const attention_shape &shape, const attention_memory &memory, size_t head) {
  const head_of of = {head, group_of(shape, head), view_of(shape, memory.plan, head), terms_of(shape, memory, head)};
  return of;
}

/* Loads of the four values. */
template <class T>
__device__ inline void load_q(const attention_shape &shape, const attention_memory &memory, size_t head, size_t first,
                              float *to) {
  load<T>(shape, memory.q, q_rows(shape, head), first, shape.rows, to);
}
template <class T>
__device__ inline void load_dy(const attention_shape &shape, const attention_memory &memory, size_t head, size_t first,
                               float *to) {
  load<T>(shape, memory.dy, y_rows(shape, head), first, shape.rows, to);
}
template <class T>
__device__ inline void load_k(const attention_shape &shape, const attention_memory &memory, const batch_view &view,
                              size_t group, size_t first, float *to) {
  load<T>(shape, memory.k, k_rows(shape, group), first, view.columns, to);
}
template <class T>
__device__ inline void load_v(const attention_shape &shape, const attention_memory &memory, const batch_view &view,
                              size_t group, size_t first, float *to) {
  load<T>(shape, memory.v, k_rows(shape, group), first, view.columns, to);
}

/* A warp has every 8th row. */
template <class T>
__device__ inline void find_shares(const attention_shape &shape, const attention_memory &memory, size_t head,
                                   size_t first, float *shares) {
  const head_rows rows = y_rows(shape, head);
  const unsigned lane = threadIdx.x % WARP;
  for (unsigned row = threadIdx.x / WARP; row < T::TILE; row += WARPS) {
    float sum = 0;
    if (first + row < rows.count) {
      const size_t at = rows.begin + (first + row) * rows.stride;
      for (size_t i = lane; i < shape.size; i += WARP) sum += to_float(memory.y[at + i]) * to_float(memory.dy[at + i]);
    }
    for (unsigned distance = WARP / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    if (lane == 0) shares[row] = sum;
  }
}

/* Turns products into weights, exponentials of scores over the sums of their rows; 0 for hidden columns. */
template <class T>
__device__ inline void find_weights(const attention_shape &shape, const attention_memory &memory, const head_of &of,
                                    size_t first_row, size_t first_column, float (*products)[T::EACH]) {
  const unsigned down = threadIdx.x / SIDE, across = threadIdx.x % SIDE;
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
    const size_t row = first_row + down + SIDE * i;
    const bool is_row = row < shape.rows;
    const float sum = is_row ? memory.sums[of.head * shape.rows + row] : 0.0f;
    column_span visible = {0, 0};
    if (is_row) visible = visible_columns(shape, of.view, row);
#pragma unroll
    for (unsigned j = 0; j < T::EACH; j++) {
      const size_t column = first_column + across + SIDE * j;
      const float score = score_of(shape, of.view, of.terms, visible, row, column, products[i][j]);
      products[i][j] = score == minus_infinity() ? 0.0f : expf(score - sum);
    }
  }
}

/* Turns gradients of weights into gradients of scores. */
template <class T>
__device__ inline void find_slopes(const float *shares, const float (*weights)[T::EACH], float (*slopes)[T::EACH]) {
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
    const float share = shares[threadIdx.x / SIDE + SIDE * i];
#pragma unroll
    for (unsigned j = 0; j < T::EACH; j++) slopes[i][j] = weights[i][j] * (slopes[i][j] - share);
  }
}

template <class T>
__device__ inline void scale_sums(float scale, float (*sums)[T::PARTS]) {
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
#pragma unroll
    for (unsigned j = 0; j < T::PARTS; j++) sums[i][j] *= scale;
  }
}

/* Whether any column of a tile is visible to any row of a tile. */
__device__ inline bool see_each_other(const attention_shape &shape, const batch_view &view, size_t row, size_t column,
                                      unsigned tile) {
  const column_span visible = visible_to_tile(shape, view, row, tile);
  return visible.last > column && visible.first < column + tile && column < view.columns;
}

/* The gradients of the scores of a tile of rows and a tile of columns. With KEEPS, q and dy are in shared.first and
 * shared.second(). Ends with k in shared.others. */
template <class T>
__device__ inline void find_row_slopes(const attention_shape &shape, const attention_memory &memory, const head_of &of,
                                       size_t first, size_t column, gradient_memory<T> &shared,
                                       float (*slopes)[T::EACH]) {
  float weights[T::EACH][T::EACH];
  if (!T::KEEPS) load_dy<T>(shape, memory, of.head, first, shared.second());
  load_v<T>(shape, memory, of.view, of.group, column, shared.others);
  __syncthreads();
  multiply_rows<T>(shared.second(), shared.others, slopes);
  __syncthreads();
  if (!T::KEEPS) load_q<T>(shape, memory, of.head, first, shared.first);
  load_k<T>(shape, memory, of.view, of.group, column, shared.others);
  __syncthreads();
  multiply_rows<T>(shared.first, shared.others, weights);
  find_weights<T>(shape, memory, of, first, column, weights);
  find_slopes<T>(shared.shares, weights, slopes);
}

/* What find_row_slopes needs of a tile of rows. */
template <class T>
__device__ inline void begin_rows(const attention_shape &shape, const attention_memory &memory, size_t head,
                                  size_t first, gradient_memory<T> &shared) {
  if (T::KEEPS) {
    load_q<T>(shape, memory, head, first, shared.first);
    load_dy<T>(shape, memory, head, first, shared.second());
  }
  find_shares<T>(shape, memory, head, first, shared.shares);
}

template <class T>
__device__ inline void make_q_gradient(const attention_shape &shape, const attention_memory &memory, size_t head,
                                       size_t first, gradient_memory<T> &shared, element *dq) {
  float sums[T::EACH][T::PARTS], slopes[T::EACH][T::EACH];
  const head_of of = find_head(shape, memory, head);
  const column_span visible = visible_to_tile(shape, of.view, first, T::TILE);
  clear<T>(sums);
  begin_rows<T>(shape, memory, head, first, shared);
  for (size_t column = visible.first / T::TILE * T::TILE; column < visible.last; column += T::TILE) {
    find_row_slopes<T>(shape, memory, of, first, column, shared, slopes);
    write_scores<T>(slopes, shared.scores);
    __syncthreads();
    add_product<T>(shared.scores, false, shared.others, sums);
    __syncthreads(); /* all has been read */
  }
  scale_sums<T>(shape.scale, sums);
  store<T>(shape, dq, q_rows(shape, head), first, sums, NULL);
  __syncthreads();
}

/* Adds the gradients from a tile of rows. The transposed scores are read, so `scores` are written row by row. */
template <class T>
__device__ inline void add_rows(const attention_shape &shape, const attention_memory &memory, const head_of &of,
                                size_t first, size_t column, gradient_memory<T> &shared, float (*of_k)[T::PARTS],
                                float (*of_v)[T::PARTS]) {
  float weights[T::EACH][T::EACH], slopes[T::EACH][T::EACH];
  load_q<T>(shape, memory, of.head, first, shared.others);
  if (!T::KEEPS) load_k<T>(shape, memory, of.view, of.group, column, shared.first);
  find_shares<T>(shape, memory, of.head, first, shared.shares);
  __syncthreads();
  multiply_rows<T>(shared.others, shared.first, weights);
  find_weights<T>(shape, memory, of, first, column, weights);
  write_scores<T>(weights, shared.scores);
  __syncthreads();
  load_dy<T>(shape, memory, of.head, first, shared.others);
  if (!T::KEEPS) load_v<T>(shape, memory, of.view, of.group, column, shared.second());
  __syncthreads();
  multiply_rows<T>(shared.others, shared.second(), slopes);
  add_product<T>(shared.scores, true, shared.others, of_v);
  find_slopes<T>(shared.shares, weights, slopes);
  __syncthreads();
  write_scores<T>(slopes, shared.scores);
  load_q<T>(shape, memory, of.head, first, shared.others);
  __syncthreads();
  add_product<T>(shared.scores, true, shared.others, of_k);
  __syncthreads(); /* all has been read */
}

/* Columns that a batch does not have get zeros. */
template <class T>
__device__ inline void make_k_gradient(const attention_shape &shape, const attention_memory &memory, size_t group,
                                       size_t column, gradient_memory<T> &shared, const gradients &to) {
  const size_t of_group = shape.heads / shape.groups;
  const batch_view view = view_of(shape, memory.plan, group * of_group);
  const head_rows rows = k_rows(shape, group);
  float of_k[T::EACH][T::PARTS], of_v[T::EACH][T::PARTS];
  clear<T>(of_k);
  clear<T>(of_v);
  if (T::KEEPS) {
    load_k<T>(shape, memory, view, group, column, shared.first);
    load_v<T>(shape, memory, view, group, column, shared.second());
  }
  for (size_t i = 0; i < of_group; i++) {
    const head_of of = find_head(shape, memory, group * of_group + i);
    for (size_t first = 0; first < shape.rows; first += T::TILE) {
      if (see_each_other(shape, of.view, first, column, T::TILE))
        add_rows<T>(shape, memory, of, first, column, shared, of_k, of_v);
    }
  }
  scale_sums<T>(shape.scale, of_k);
  if (to.k != NULL) store<T>(shape, to.k, rows, column, of_k, NULL);
  if (to.v != NULL) store<T>(shape, to.v, rows, column, of_v, NULL);
  __syncthreads();
}

/* Masks ------------------------------------------------------------------------------------------------------------ */

/* Batches, heads, or tiles first <= i < last that share elements of the mask. */
struct shared_part {
  size_t first, last;
};

/* Takes the next digit of a tile's number: one of `count` if the mask has an element for each, else all of them. */
__device__ inline shared_part part_of(size_t &number, size_t stride, size_t count) {
  shared_part part = {0, count};
  if (stride == 0) return part;
  part.first = number % count;
  part.last = part.first + 1;
  number /= count;
  return part;
}

struct mask_tile {
  shared_part batches, heads, rows, columns; /* rows and columns: tiles of them */
};

__device__ inline mask_tile mask_tile_of(const attention_shape &shape, size_t number, size_t down, size_t across) {
  mask_tile tile;
  tile.columns = part_of(number, shape.mask.column, across);
  tile.rows = part_of(number, shape.mask.row, down);
  tile.heads = part_of(number, shape.mask.head, shape.heads);
  tile.batches = part_of(number, shape.mask.batch, shape.batches);
  return tile;
}

__device__ inline size_t mask_tiles(const attention_shape &shape, size_t down, size_t across) {
  const attention_plane &mask = shape.mask;
  return (mask.column == 0 ? 1 : across) * (mask.row == 0 ? 1 : down) * (mask.head == 0 ? 1 : shape.heads) *
         (mask.batch == 0 ? 1 : shape.batches);
}

/* Adds the gradients of scores to `sums`, a thread's own, from all that share the tile's elements. */
template <class T>
__device__ inline void add_to_mask(const attention_shape &shape, const attention_memory &memory, const mask_tile &tile,
                                   size_t head, gradient_memory<T> &shared, float (*sums)[T::EACH]) {
  float slopes[T::EACH][T::EACH];
  const head_of of = find_head(shape, memory, head);
  for (size_t row = tile.rows.first; row < tile.rows.last; row++) {
    __syncthreads();
    begin_rows<T>(shape, memory, head, row * T::TILE, shared);
    for (size_t column = tile.columns.first; column < tile.columns.last; column++) {
      if (!see_each_other(shape, of.view, row * T::TILE, column * T::TILE, T::TILE)) continue;
      find_row_slopes<T>(shape, memory, of, row * T::TILE, column * T::TILE, shared, slopes);
#pragma unroll
      for (unsigned i = 0; i < T::EACH; i++) {
#pragma unroll
        for (unsigned j = 0; j < T::EACH; j++) sums[i][j] += slopes[i][j];
      }
      __syncthreads(); /* all has been read */
    }
  }
}

__device__ inline void store_mask_element(const attention_shape &shape, void *dmask, size_t at, float x) {
  if (shape.mask_kind == MASK_F32)
    ((float *)dmask)[at] = x;
  else
    ((element *)dmask)[at] = to_element(x);
}

/* Stores a tile in shared memory. Rows, or columns, that share elements are summed first, by one thread each. */
template <class T>
__device__ inline void store_mask(const attention_shape &shape, const mask_tile &tile, const float *scores,
                                  void *dmask) {
  const attention_plane &mask = shape.mask;
  const unsigned rows = mask.row == 0 ? 1 : T::TILE, columns = mask.column == 0 ? 1 : T::TILE;
  const size_t first_row = tile.rows.first * T::TILE, first_column = tile.columns.first * T::TILE;
  const size_t begin = tile.batches.first * mask.batch + tile.heads.first * mask.head;
  for (unsigned i = threadIdx.x; i < rows * columns; i += BLOCK_THREADS) {
    const unsigned row = i / columns, column = i % columns;
    float sum = 0;
    for (unsigned r = row; r < (mask.row == 0 ? T::TILE : row + 1); r++)
      for (unsigned c = column; c < (mask.column == 0 ? T::TILE : column + 1); c++) sum += scores[r * T::SCORES + c];
    if (first_row + row < shape.rows && first_column + column < shape.columns)
      store_mask_element(shape, dmask, begin + (first_row + row) * mask.row + (first_column + column) * mask.column,
                         sum);
  }
}

template <class T>
__device__ inline void make_mask_gradient(const attention_shape &shape, const attention_memory &memory,
                                          const mask_tile &tile, gradient_memory<T> &shared, void *dmask) {
  float sums[T::EACH][T::EACH];
#pragma unroll
  for (unsigned i = 0; i < T::EACH; i++) {
#pragma unroll
    for (unsigned j = 0; j < T::EACH; j++) sums[i][j] = 0;
  }
  for (size_t batch = tile.batches.first; batch < tile.batches.last; batch++)
    for (size_t head = tile.heads.first; head < tile.heads.last; head++)
      add_to_mask<T>(shape, memory, tile, batch * shape.heads + head, shared, sums);
  __syncthreads();
  write_scores<T>(sums, shared.scores);
  __syncthreads();
  store_mask<T>(shape, tile, shared.scores, dmask);
  __syncthreads();
}

/* First the tiles of rows of all heads, for dq; then the tiles of columns of all groups, for dk and dv; then those of
 * the mask. The block after the one with the last tile of a kind gets the first of the next. */
template <class T>
__device__ inline void make_gradients(const attention_shape &shape, const attention_memory &memory, float *floats,
                                      const gradients &to) {
  static_assert(sizeof(gradient_memory<T>) <= SHARED_FLOATS * sizeof(float), "it has room");
  gradient_memory<T> &shared = *(gradient_memory<T> *)floats;
  const size_t down = (shape.rows + T::TILE - 1) / T::TILE, across = (shape.columns + T::TILE - 1) / T::TILE;
  const size_t of_q = to.q == NULL ? 0 : shape.batches * shape.heads * down;
  const size_t of_k = to.k == NULL && to.v == NULL ? 0 : shape.batches * shape.groups * across;
  const size_t of_mask = to.mask == NULL ? 0 : mask_tiles(shape, down, across);
  for (size_t tile = blockIdx.x; tile < of_q + of_k + of_mask; tile += gridDim.x) {
    const size_t left = tile - of_q;
    if (tile < of_q)
      make_q_gradient<T>(shape, memory, tile / down, tile % down * T::TILE, shared, to.q);
    else if (left < of_k)
      make_k_gradient<T>(shape, memory, left / across, left % across * T::TILE, shared, to);
    else
      make_mask_gradient<T>(shape, memory, mask_tile_of(shape, left - of_k, down, across), shared, to.mask);
  }
}

extern "C" __global__ void attention_gradient_TYPE(attention_shape shape, const element *__restrict__ q,
                                                   const element *__restrict__ k, const element *__restrict__ v,
                                                   const void *__restrict__ mask, const int *__restrict__ plan,
                                                   const element *__restrict__ y, const element *__restrict__ dy,
                                                   const float *__restrict__ sums, element *__restrict__ dq,
                                                   element *__restrict__ dk, element *__restrict__ dv,
                                                   void *__restrict__ dmask) {
  __shared__ __align__(16) float floats[SHARED_FLOATS];
  const attention_memory memory = {q, k, v, NULL, NULL, mask, plan, y, dy, sums};
  const gradients to = {dq, dk, dv, dmask};
#define MAKE(...) make_gradients<__VA_ARGS__>(shape, memory, floats, to)
  WITH_TILES(shape.size, MAKE);
}
