/* SPDX-License-Identifier: MIT
 * The CUDA kernels of strided.c.
 */
#include "tensor/operators/common/units.cuh"
#include "tensor/operators/shape/strided.cuh"

#define TILE 32

struct copy_all {
  const strided &copy;
  const void *from;
  void *to;

  template <class unit, class number>
  __device__ void walk() const {
    for (size_t i = first_element(); i < copy.count; i += element_stride())
      ((unit *)to)[i] = ((const unit *)from)[place_of<DIMENSIONS>(copy, (number)i)];
  }

  template <class unit>
  __device__ void run() const {
    walk_by_count<unit>(copy.count, *this);
  }
};

extern "C" __global__ void strided_copy(strided copy, const void *__restrict__ from, void *__restrict__ to) {
  const copy_all work = {copy, from, to};
  run_by_unit(copy.unit_bytes, work);
}

/* Reads neighbours of the source, which are in one column of the result, and writes rows of the result. */
template <class unit>
__device__ inline void transpose(const strided &copy, const unit *from, unit *to, unit (*tile)[TILE + 1]) {
  const size_t rows = copy.dims[LAST - 1], columns = copy.dims[LAST];
  const size_t down = (rows + TILE - 1) / TILE, across = (columns + TILE - 1) / TILE;
  const size_t planes = copy.count / (rows * columns);
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (size_t i = blockIdx.x; i < planes * down * across; i += gridDim.x) {
    const size_t plane = i / (down * across), row = i / across % down * TILE, column = i % across * TILE;
    const unit *source = from + place_of<LAST - 1>(copy, plane);
    unit *target = to + plane * rows * columns;
    for (unsigned k = warp; k < TILE && column + k < columns; k += WARPS)
      if (row + lane < rows) tile[k][lane] = source[(column + k) * copy.strides[LAST] + row + lane];
    __syncthreads();
    for (unsigned k = warp; k < TILE && row + k < rows; k += WARPS)
      if (column + lane < columns) target[(row + k) * columns + column + lane] = tile[lane][k];
    __syncthreads(); /* the tile has been read */
  }
}

/* Units never have 16 bytes: neighbours of the source are not neighbours of the result. */
extern "C" __global__ void strided_transpose(strided copy, const void *__restrict__ from, void *__restrict__ to) {
  __shared__ u64 tile[TILE][TILE + 1];
  if (copy.unit_bytes == 1)
    transpose(copy, (const unsigned char *)from, (unsigned char *)to, (unsigned char(*)[TILE + 1]) tile);
  else if (copy.unit_bytes == 2)
    transpose(copy, (const unsigned short *)from, (unsigned short *)to, (unsigned short(*)[TILE + 1]) tile);
  else if (copy.unit_bytes == 4)
    transpose(copy, (const unsigned *)from, (unsigned *)to, (unsigned(*)[TILE + 1]) tile);
  else
    transpose(copy, (const u64 *)from, (u64 *)to, tile);
}
