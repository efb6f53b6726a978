/* SPDX-License-Identifier: MIT
 * Matrix products; a block computes a tile. The CUDA form of matmul_tile.c.
 *
 * Method (Volkov and Demmel, "Benchmarking GPUs to tune dense linear algebra", 2008): panels of a and b go through
 * shared memory. A thread computes a small block of the result from registers, while the next panels are read into
 * other registers. If a tile has fewer such blocks than threads, the depth is divided as well: each slice of threads
 * takes every SLICES-th step, and the slices' sums are added in order. Reads of shared memory limit a multiprocessor as
 * much as arithmetic, so a thread's block is 8 x 8, except in small tiles. Sums are in single precision.
 */
#include "tensor/operators/matmul/matmul_problem.cuh"

/* EDGE x EDGE results, DEPTH products at a time. A slice has SIDE x SIDE threads, each with BLOCKS x BLOCKS blocks of
 * 4 x 4 results, STEP apart. */
template <unsigned edge, unsigned depth, unsigned side>
struct tile {
  static const unsigned EDGE = edge, DEPTH = depth, SIDE = side;
  static const unsigned SLICES = BLOCK_THREADS / (side * side);
  static const unsigned STEP = 4 * SIDE;
  static const unsigned BLOCKS = edge / STEP;
  static const unsigned SUMS = 4 * BLOCKS;
  static const unsigned ROW = edge + 4;                       /* of a panel: begins at a multiple of 16 bytes */
  static const unsigned LOADS = edge * depth / BLOCK_THREADS; /* of a thread, for a panel */
  static const unsigned SPREAD = depth > 64 ? BLOCK_THREADS / depth : 4;
  static const unsigned PANELS = 4 * depth * ROW; /* floats: two pairs */
  static const unsigned PARTS = SLICES * STEP * ROW;
  static const unsigned FLOATS = PANELS > PARTS ? PANELS : PARTS;
  static_assert(SIDE * SIDE * SLICES == BLOCK_THREADS, "every thread has a place");
  static_assert(depth % SLICES == 0 && edge % STEP == 0, "work is shared out evenly");
  static_assert(edge * depth % BLOCK_THREADS == 0 && BLOCK_THREADS % depth == 0, "panels are shared out evenly");
  static_assert(FLOATS * sizeof(float) <= 48 << 10, "there is so much shared memory");
};

/* Panels ----------------------------------------------------------------------------------------------------------- */

/* For elements that no kernel writes at the same time. */
__device__ inline float load_constant(const float *at) { return __ldg(at); }
__device__ inline float load_constant(const f16 *at) { return to_float(f16{__ldg(&at->bits)}); }
__device__ inline float load_constant(const bf16 *at) { return to_float(bf16{__ldg(&at->bits)}); }

/* A thread's share of a matrix's panels: LOADS elements of each, evenly spaced, so that neighbouring threads read
 * neighbours. An element has a row or column of the result, called x here, and a depth. If memory is contiguous along
 * the depth, a warp takes SPREAD x at once, so that its writes to shared memory go to different banks. */
template <class T, bool along_depth>
struct panel_reader {
  static const unsigned X_JUMP = along_depth ? BLOCK_THREADS / T::DEPTH : 0; /* from one element to the next */
  static const unsigned DEPTH_JUMP = along_depth ? 0 : BLOCK_THREADS / T::EDGE;
  static const unsigned PLACE_JUMP = DEPTH_JUMP * T::ROW + X_JUMP;
  const element *at;    /* its first element of the next panel */
  size_t jump, advance; /* elements of memory from one to the next, and from one panel to the next */
  unsigned x_left;      /* of the matrix, after its first x */
  unsigned depth;       /* of its first element in the panel */
  unsigned place;       /* where that goes in shared memory */

  /* Reads a matrix from the tile's corner on, of which `edge` is left; `stride` elements from row to row of memory. */
  __device__ panel_reader(const element *corner, size_t edge, size_t stride) {
    const unsigned spread = threadIdx.x / (T::SPREAD * T::DEPTH) * T::SPREAD + threadIdx.x % T::SPREAD;
    const unsigned x = along_depth ? spread : threadIdx.x % T::EDGE;
    depth = along_depth ? threadIdx.x / T::SPREAD % T::DEPTH : threadIdx.x / T::EDGE;
    at = along_depth ? corner + x * stride + depth : corner + depth * stride + x;
    jump = (X_JUMP + DEPTH_JUMP) * stride;
    advance = along_depth ? T::DEPTH : T::DEPTH * stride;
    x_left = x >= edge ? 0 : edge - x < T::EDGE ? (unsigned)(edge - x) : T::EDGE;
    place = depth * T::ROW + x;
  }

  /* Reads the next panel, of which `left` steps are in the matrix; zeros past it. The asm hides from the compiler that
   * each address is the previous one plus a step; else it computes each separately and runs out of registers. */
  __device__ void read(unsigned left, float *out) {
    const element *next = at;
#pragma unroll
    for (unsigned i = 0; i < T::LOADS; i++) {
      const bool is_in = i * X_JUMP < x_left && depth + i * DEPTH_JUMP < left;
      out[i] = is_in ? load_constant(next) : 0.0f;
      next += jump;
      asm volatile("" : "+l"(next));
    }
    at += advance;
  }

  __device__ void write(const float *values, float *panel) const {
#pragma unroll
    for (unsigned i = 0; i < T::LOADS; i++) panel[place + i * PLACE_JUMP] = values[i];
  }
};

/* Products --------------------------------------------------------------------------------------------------------- */

/* A thread's place in its slice. */
struct tile_place {
  unsigned slice, down, across;
};

/* Slices of one warp are four steps of the depth apart, so that their panel rows are in different banks. */
template <class T>
__device__ inline tile_place own_place() {
  const unsigned team = threadIdx.x / (T::SIDE * T::SIDE), thread = threadIdx.x % (T::SIDE * T::SIDE);
  const unsigned slice = T::SIDE == 4 ? team / 8 * 8 + team % 2 * 4 + team / 2 % 4 : team;
  const tile_place place = {slice, thread / T::SIDE, thread % T::SIDE};
  return place;
}

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

template <class T, class A, class B>
__device__ inline void multiply_all(A a, B b, size_t depth, tile_place place, float *memory, float (*sums)[T::SUMS]) {
  const unsigned panel = T::DEPTH * T::ROW;
  float next_a[T::LOADS], next_b[T::LOADS];
  unsigned turn = 0;
  a.read(panel_depth<T>(depth), next_a);
  b.read(panel_depth<T>(depth), next_b);
  for (size_t from = 0; from < depth; from += T::DEPTH) {
    a.write(next_a, memory + turn);
    b.write(next_b, memory + turn + panel);
    __syncthreads();
    if (from + T::DEPTH < depth) {
      a.read(panel_depth<T>(depth - from - T::DEPTH), next_a);
      b.read(panel_depth<T>(depth - from - T::DEPTH), next_b);
    }
    multiply_panels<T>(memory + turn, memory + turn + panel, place, sums);
    turn = 2 * panel - turn;
  }
}

/* Results ---------------------------------------------------------------------------------------------------------- */

/* The memory of a tile's product, and its first row and column. */
struct tile_corner {
  matmul_memory memory; /* of the tile's product */
  size_t row, column;
};

/* Writes a thread's sums of STEP rows of the tile next to those of the other slices. */
template <class T>
__device__ inline void put_part(tile_place place, const float (*sums)[T::SUMS], float *parts) {
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    float *row = parts + (place.slice * T::STEP + 4 * place.down + i) * T::ROW + 4 * place.across;
#pragma unroll
    for (unsigned block = 0; block < T::BLOCKS; block++) {
      const float *four = &sums[i][4 * block];
      *(float4 *)&row[block * T::STEP] = make_float4(four[0], four[1], four[2], four[3]);
    }
  }
}

/* Adds the slices' sums in order, STEP rows of the tile at a time. A single slice is handled the same way, so that
 * neighbouring threads write neighbours. */
template <class T>
__device__ inline void write_sums(const matmul_problem &problem, const tile_corner &corner, tile_place place,
                                  const float (*sums)[T::SUMS], float *parts) {
#pragma unroll
  for (unsigned block = 0; block < T::BLOCKS; block++) {
    __syncthreads(); /* the panels or parts that are overwritten have been read */
    put_part<T>(place, &sums[4 * block], parts);
    __syncthreads();
    for (unsigned e = threadIdx.x; e < T::STEP * T::EDGE; e += BLOCK_THREADS) {
      const unsigned in_part = e / T::EDGE * T::ROW + e % T::EDGE;
      const size_t row = corner.row + block * T::STEP + e / T::EDGE, column = corner.column + e % T::EDGE;
      float joined = 0.0f;
#pragma unroll
      for (unsigned slice = 0; slice < T::SLICES; slice++) joined += parts[slice * T::STEP * T::ROW + in_part];
      if (row < problem.m && column < problem.n)
        write_result(problem, corner.memory, row * problem.n + column, column, joined);
    }
  }
}

/* The whole -------------------------------------------------------------------------------------------------------- */

template <class T>
__device__ inline tile_corner corner_of(const matmul_problem &problem, const matmul_memory &memory, size_t tile) {
  const size_t each = problem.tiles.across * problem.tiles.down, product = tile / each, in_product = tile % each;
  tile_corner corner;
  corner.memory = memory_of(problem, memory, product);
  corner.row = in_product / problem.tiles.across * T::EDGE;
  corner.column = in_product % problem.tiles.across * T::EDGE;
  return corner;
}

template <class T, bool along_a, bool along_b>
__device__ inline void sum_products(const matmul_problem &problem, const tile_corner &corner, tile_place place,
                                    float *panels, float (*sums)[T::SUMS]) {
  const size_t a_stride = along_a ? problem.k : problem.m, b_stride = along_b ? problem.k : problem.n;
  const element *a = corner.memory.a + corner.row * (along_a ? problem.k : 1);
  const element *b = corner.memory.b + corner.column * (along_b ? problem.k : 1);
  const panel_reader<T, along_a> left(a, problem.m - corner.row, a_stride);
  const panel_reader<T, along_b> right(b, problem.n - corner.column, b_stride);
  multiply_all<T>(left, right, problem.k, place, panels, sums);
}

template <class T>
__device__ inline void multiply_tile(const matmul_problem &problem, const matmul_memory &memory, size_t tile,
                                     float *panels) {
  const tile_corner corner = corner_of<T>(problem, memory, tile);
  const tile_place place = own_place<T>();
  float sums[T::SUMS][T::SUMS] = {{0}};
  if (problem.transpose_a == 0 && problem.transpose_b == 0)
    sum_products<T, true, false>(problem, corner, place, panels, sums);
  else if (problem.transpose_a == 0)
    sum_products<T, true, true>(problem, corner, place, panels, sums);
  else if (problem.transpose_b == 0)
    sum_products<T, false, false>(problem, corner, place, panels, sums);
  else
    sum_products<T, false, true>(problem, corner, place, panels, sums);
  write_sums<T>(problem, corner, place, sums, panels);
}

template <class T>
__device__ inline void multiply_tiles(const matmul_problem &problem, const matmul_memory &memory, float *panels) {
  const size_t tiles = problem.batches * problem.tiles.down * problem.tiles.across;
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    multiply_tile<T>(problem, memory, tile, panels);
    __syncthreads(); /* the panels, or parts, have been read */
  }
}
