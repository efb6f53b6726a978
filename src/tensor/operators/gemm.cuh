/* SPDX-License-Identifier: MIT
 * Matrix products, a tile by one block: the CUDA form of matmul_tile.c.
 *
 * Method (Volkov and Demmel, "Benchmarking GPUs to tune dense linear algebra", 2008): panels of a and b go through
 * shared memory, the next ones being read into registers while a thread multiplies, from registers, a small block of
 * the result. Small tiles, of which there are few, also share out the depth: each slice of the block's threads takes
 * every SLICES-th step, and the slices' sums are added in their order. Products are summed in single precision.
 */
#include "tensor/operators/activation.cuh"
#include "tensor/operators/element.cuh"

/* rondo_tiling and rondo_matmul_problem of matmul_problem.h. */
struct matmul_tiling {
  size_t rows, columns; /* of a tile */
  size_t down, across;  /* tiles */
};

#define BATCH_DIMENSIONS 4

struct matmul_problem {
  size_t m, n, k;
  matmul_tiling tiles;
  u64 transpose_a, transpose_b, activation;
  size_t batches;
  size_t batch[BATCH_DIMENSIONS], a_strides[BATCH_DIMENSIONS], b_strides[BATCH_DIMENSIONS];
};

struct matmul_memory {
  const element *a, *b, *bias; /* bias may be NULL */
  element *y, *unactivated;    /* the latter, what the activation was applied to, may be NULL */
};

#define SHARED_FLOATS 4608

/* EDGE x EDGE results, DEPTH products at a time. A thread of a slice has BLOCKS x BLOCKS blocks of 4 x 4 results, STEP
 * apart. */
template <unsigned edge, unsigned depth, unsigned slices>
struct tile {
  static const unsigned EDGE = edge, DEPTH = depth, SLICES = slices;
  static const unsigned SIDE = edge == 32 ? 8 : 16; /* threads along an edge, in a slice */
  static const unsigned STEP = 4 * SIDE;
  static const unsigned BLOCKS = edge / STEP;
  static const unsigned SUMS = 4 * BLOCKS;
  static const unsigned ROW = edge + 4;                       /* of a panel: begins at a multiple of 16 bytes */
  static const unsigned LOADS = edge * depth / BLOCK_THREADS; /* of a thread, for a panel */
  static const unsigned PARTS = slices > 1 ? slices *edge *edge : 0;
  static_assert(SIDE * SIDE * slices == BLOCK_THREADS, "every thread has a place");
  static_assert(depth % slices == 0 && edge % STEP == 0, "work is shared out evenly");
  static_assert(4 * depth * ROW <= SHARED_FLOATS && PARTS <= SHARED_FLOATS, "two pairs of panels, or parts, have room");
};

/* Panels ----------------------------------------------------------------------------------------------------------- */

/* A thread's share of a matrix's panels: LOADS elements of each, evenly spaced, so that neighbouring threads read
 * neighbours. An element stands at `x`, along the result's edge, and `depth`. */
struct panel_reader {
  const element *at;           /* its first element of the next panel */
  size_t jump, advance;        /* from one element to the next; from one panel to the next */
  unsigned x_left, depth_jump; /* of the matrix behind its first x; per jump */
  unsigned depth, x_jump;      /* of its first element, in the panel */
  unsigned place, place_jump;  /* where its elements go in shared memory */
};

/* `edge` is what is left of the matrix from the tile's corner on. */
template <class T>
__device__ inline panel_reader make_reader(const element *corner, size_t edge, size_t stride, bool along_depth) {
  const unsigned x = along_depth ? threadIdx.x / T::DEPTH : threadIdx.x % T::EDGE;
  const unsigned depth = along_depth ? threadIdx.x % T::DEPTH : threadIdx.x / T::EDGE;
  panel_reader reader;
  reader.at = along_depth ? corner + x * stride + depth : corner + depth * stride + x;
  reader.x_jump = along_depth ? BLOCK_THREADS / T::DEPTH : 0;
  reader.depth_jump = along_depth ? 0 : BLOCK_THREADS / T::EDGE;
  reader.jump = (reader.x_jump + reader.depth_jump) * stride;
  reader.advance = along_depth ? T::DEPTH : T::DEPTH * stride;
  reader.x_left = x >= edge ? 0 : edge - x < T::EDGE ? (unsigned)(edge - x) : T::EDGE;
  reader.depth = depth;
  reader.place = depth * T::ROW + x;
  reader.place_jump = reader.depth_jump * T::ROW + reader.x_jump;
  return reader;
}

/* Reads the next panel, of which `depth` is in the matrix; zeros past it. */
template <class T>
__device__ inline void read_panel(panel_reader &reader, unsigned depth, float *out) {
#pragma unroll
  for (unsigned i = 0; i < T::LOADS; i++) {
    const bool is_in = i * reader.x_jump < reader.x_left && reader.depth + i * reader.depth_jump < depth;
    out[i] = is_in ? to_float(reader.at[i * reader.jump]) : 0.0f;
  }
  reader.at += reader.advance;
}

template <class T>
__device__ inline void write_panel(const panel_reader &reader, const float *values, float *panel) {
#pragma unroll
  for (unsigned i = 0; i < T::LOADS; i++) panel[reader.place + i * reader.place_jump] = values[i];
}

/* Products --------------------------------------------------------------------------------------------------------- */

/* A thread's place in its slice. */
struct tile_place {
  unsigned slice, down, across;
};

template <class T>
__device__ inline void read_edge(const float *row, unsigned place, float *out) {
#pragma unroll
  for (unsigned block = 0; block < T::BLOCKS; block++) {
    const float4 four = *(const float4 *)&row[block * T::STEP + 4 * place];
    out[4 * block] = four.x;
    out[4 * block + 1] = four.y;
    out[4 * block + 2] = four.z;
    out[4 * block + 3] = four.w;
  }
}

template <class T>
__device__ inline void multiply_panels(const float *a, const float *b, tile_place place, float (*sums)[T::SUMS]) {
#pragma unroll
  for (unsigned depth = 0; depth < T::DEPTH; depth += T::SLICES) {
    float left[T::SUMS], right[T::SUMS];
    read_edge<T>(a + (depth + place.slice) * T::ROW, place.down, left);
    read_edge<T>(b + (depth + place.slice) * T::ROW, place.across, right);
#pragma unroll
    for (unsigned i = 0; i < T::SUMS; i++) {
#pragma unroll
      for (unsigned j = 0; j < T::SUMS; j++) sums[i][j] += left[i] * right[j];
    }
  }
}

template <class T>
__device__ inline unsigned panel_depth(size_t left) {
  return left < T::DEPTH ? (unsigned)left : T::DEPTH;
}

template <class T>
__device__ inline void multiply_all(panel_reader a, panel_reader b, size_t depth, tile_place place, float *memory,
                                    float (*sums)[T::SUMS]) {
  const unsigned panel = T::DEPTH * T::ROW;
  float next_a[T::LOADS], next_b[T::LOADS];
  float *turn = memory, *other = memory + 2 * panel;
  read_panel<T>(a, panel_depth<T>(depth), next_a);
  read_panel<T>(b, panel_depth<T>(depth), next_b);
  for (size_t from = 0; from < depth; from += T::DEPTH) {
    write_panel<T>(a, next_a, turn);
    write_panel<T>(b, next_b, turn + panel);
    __syncthreads();
    if (from + T::DEPTH < depth) {
      read_panel<T>(a, panel_depth<T>(depth - from - T::DEPTH), next_a);
      read_panel<T>(b, panel_depth<T>(depth - from - T::DEPTH), next_b);
    }
    multiply_panels<T>(turn, turn + panel, place, sums);
    float *const used = turn;
    turn = other;
    other = used;
  }
}

/* Results ---------------------------------------------------------------------------------------------------------- */

/* Where a tile's results go. */
struct tile_result {
  element *at, *unactivated;    /* the tile's corner; the latter may be NULL */
  const element *bias;          /* of the tile's first column, or NULL */
  size_t rows, columns, stride; /* in the matrix from the corner on */
  unsigned activation;
};

/* Four results side by side; `column` is a multiple of 4. */
__device__ inline void write_four(const tile_result &result, unsigned row, unsigned column, const float *sums) {
  if (row >= result.rows) return;
  const size_t to = row * result.stride + column;
#pragma unroll
  for (unsigned j = 0; j < 4; j++) {
    if (column + j >= result.columns) continue;
    const float sum = result.bias != NULL ? sums[j] + to_float(result.bias[column + j]) : sums[j];
    if (result.unactivated != NULL) result.unactivated[to + j] = to_element(sum);
    result.at[to + j] = to_element(activate(result.activation, sum));
  }
}

template <class T>
__device__ inline void write_sums(const tile_result &result, tile_place place, const float (*sums)[T::SUMS]) {
#pragma unroll
  for (unsigned i = 0; i < T::SUMS; i++) {
    const unsigned row = i / 4 * T::STEP + 4 * place.down + i % 4;
#pragma unroll
    for (unsigned block = 0; block < T::BLOCKS; block++)
      write_four(result, row, block * T::STEP + 4 * place.across, &sums[i][4 * block]);
  }
}

/* Adds the slices' sums in the slices' order. */
template <class T>
__device__ inline void join_slices(const tile_result &result, tile_place place, const float (*sums)[T::SUMS],
                                   float *parts) {
  __syncthreads(); /* the panels, which the parts take the place of, have been read */
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
#pragma unroll
    for (unsigned j = 0; j < 4; j++)
      parts[(place.slice * T::EDGE + 4 * place.down + i) * T::EDGE + 4 * place.across + j] = sums[i][j];
  }
  __syncthreads();
  for (unsigned e = 4 * threadIdx.x; e < T::EDGE * T::EDGE; e += 4 * BLOCK_THREADS) {
    float joined[4] = {0, 0, 0, 0};
    for (unsigned slice = 0; slice < T::SLICES; slice++) {
#pragma unroll
      for (unsigned j = 0; j < 4; j++) joined[j] += parts[slice * T::EDGE * T::EDGE + e + j];
    }
    write_four(result, e / T::EDGE, e % T::EDGE, joined);
  }
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* Where a tile's panels begin, and its results. */
struct tile_corner {
  matmul_memory memory; /* of the tile's product */
  size_t row, column;
};

template <class T>
__device__ inline tile_corner corner_of(const matmul_problem &problem, matmul_memory memory, size_t tile) {
  size_t product = tile / (problem.tiles.across * problem.tiles.down);
  const size_t c = product * problem.m * problem.n;
  tile_corner corner;
  tile %= problem.tiles.across * problem.tiles.down;
  corner.row = tile / problem.tiles.across * T::EDGE;
  corner.column = tile % problem.tiles.across * T::EDGE;
  for (int i = BATCH_DIMENSIONS - 1; i >= 0; i--) {
    memory.a += product % problem.batch[i] * problem.a_strides[i];
    memory.b += product % problem.batch[i] * problem.b_strides[i];
    product /= problem.batch[i];
  }
  memory.y += c;
  if (memory.unactivated != NULL) memory.unactivated += c;
  corner.memory = memory;
  return corner;
}

template <class T>
__device__ inline tile_result result_of(const matmul_problem &problem, const tile_corner &corner) {
  const size_t first = corner.row * problem.n + corner.column;
  tile_result result;
  result.at = corner.memory.y + first;
  result.unactivated = corner.memory.unactivated != NULL ? corner.memory.unactivated + first : NULL;
  result.bias = corner.memory.bias != NULL ? corner.memory.bias + corner.column : NULL;
  result.rows = problem.m - corner.row;
  result.columns = problem.n - corner.column;
  result.stride = problem.n;
  result.activation = (unsigned)problem.activation;
  return result;
}

template <class T>
__device__ inline void multiply_tile(const matmul_problem &problem, const matmul_memory &memory, size_t tile,
                                     float *panels) {
  const tile_corner corner = corner_of<T>(problem, memory, tile);
  const bool along_a = problem.transpose_a == 0, along_b = problem.transpose_b != 0;
  const element *a = corner.memory.a + (along_a ? corner.row * problem.k : corner.row);
  const element *b = corner.memory.b + (along_b ? corner.column * problem.k : corner.column);
  const panel_reader left = make_reader<T>(a, problem.m - corner.row, along_a ? problem.k : problem.m, along_a);
  const panel_reader right = make_reader<T>(b, problem.n - corner.column, along_b ? problem.k : problem.n, along_b);
  const tile_result result = result_of<T>(problem, corner);
  const unsigned thread = threadIdx.x % (T::SIDE * T::SIDE);
  const tile_place place = {threadIdx.x / (T::SIDE * T::SIDE), thread / T::SIDE, thread % T::SIDE};
  float sums[T::SUMS][T::SUMS] = {{0}};
  multiply_all<T>(left, right, problem.k, place, panels, sums);
  if (T::SLICES > 1)
    join_slices<T>(result, place, sums, panels);
  else
    write_sums<T>(result, place, sums);
}

template <class T>
__device__ inline void multiply_tiles(const matmul_problem &problem, const matmul_memory &memory, float *panels) {
  const size_t tiles = problem.batches * problem.tiles.down * problem.tiles.across;
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    multiply_tile<T>(problem, memory, tile, panels);
    __syncthreads(); /* the panels, or parts, have been read */
  }
}

/* Tiles of the size that rondo_matmul_cut chose. */
__device__ inline void multiply(const matmul_problem &problem, const matmul_memory &memory) {
  __shared__ __align__(16) float panels[SHARED_FLOATS];
  if (problem.tiles.rows == 128)
    multiply_tiles<tile<128, 8, 1>>(problem, memory, panels);
  else if (problem.tiles.rows == 64)
    multiply_tiles<tile<64, 16, 1>>(problem, memory, panels);
  else
    multiply_tiles<tile<32, 32, 4>>(problem, memory, panels);
}
