/* SPDX-License-Identifier: MIT
 * The CUDA kernels of non_max_suppression.c: a block selects the boxes of a class of an image; one thread lists them.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct nms_shape {
  size_t images, classes, boxes, per_class, bound;
  float iou, least;
  unsigned centers, unused;
};

__device__ inline size_t rows_of(const nms_shape &s) { return s.images * s.classes; }
__device__ inline int *row_of(const nms_shape &s, int *workspace, size_t row) {
  return workspace + rows_of(s) + row * s.per_class;
}

struct box {
  float top, left, bottom, right;
};

__device__ inline box box_of(const nms_shape &s, const float *at) {
  box b;
  if (s.centers != 0) {
    b.top = at[1] - at[3] / 2;
    b.left = at[0] - at[2] / 2;
    b.bottom = at[1] + at[3] / 2;
    b.right = at[0] + at[2] / 2;
  } else {
    b.top = fminf(at[0], at[2]);
    b.left = fminf(at[1], at[3]);
    b.bottom = fmaxf(at[0], at[2]);
    b.right = fmaxf(at[1], at[3]);
  }
  return b;
}

__device__ inline float area_of(const box &b) { return __fmul_rn(b.bottom - b.top, b.right - b.left); }

__device__ inline bool overlaps(const nms_shape &s, const box &a, const box &b) {
  const float height = fminf(a.bottom, b.bottom) - fmaxf(a.top, b.top);
  const float width = fminf(a.right, b.right) - fmaxf(a.left, b.left);
  if (height <= 0 || width <= 0) return false;
  const float both = __fmul_rn(height, width), either = __fadd_rn(__fadd_rn(area_of(a), area_of(b)), -both);
  return either > 0 && both / either > s.iou;
}

/* A box and its score; of equal scores, the first box is better. Boxes beyond the last are none. */
struct candidate {
  float score;
  size_t box;
};

__device__ inline void keep_better(candidate &best, const candidate &other, size_t boxes) {
  if (other.box >= boxes) return;
  if (best.box >= boxes || other.score > best.score || (other.score == best.score && other.box < best.box))
    best = other;
}

/* The best box that is left, the same for all threads. */
__device__ inline size_t best_of(const nms_shape &s, const float *scores, const unsigned char *is_out,
                                 candidate *shared) {
  candidate best = {0, s.boxes};
  for (size_t i = threadIdx.x; i < s.boxes; i += BLOCK_THREADS) {
    const candidate here = {scores[i], i};
    if (!is_out[i]) keep_better(best, here, s.boxes);
  }
  shared[threadIdx.x] = best;
  __syncthreads();
  for (unsigned half = BLOCK_THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) keep_better(shared[threadIdx.x], shared[threadIdx.x + half], s.boxes);
    __syncthreads();
  }
  const size_t found = shared[0].box;
  __syncthreads(); /* it has been read */
  return found;
}

extern "C" __global__ void non_max_select(nms_shape s, const float *__restrict__ all_boxes,
                                          const float *__restrict__ all_scores, int *workspace) {
  __shared__ candidate shared[BLOCK_THREADS];
  for (size_t row = blockIdx.x; row < rows_of(s); row += gridDim.x) {
    const float *boxes = all_boxes + row / s.classes * s.boxes * 4, *scores = all_scores + row * s.boxes;
    unsigned char *is_out = (unsigned char *)row_of(s, workspace, rows_of(s)) + row * s.boxes;
    size_t count = 0;
    for (size_t i = threadIdx.x; i < s.boxes; i += BLOCK_THREADS) is_out[i] = !(scores[i] > s.least);
    while (count < s.per_class) {
      const size_t best = best_of(s, scores, is_out, shared); /* each thread reads what it wrote itself */
      if (best >= s.boxes) break;
      if (threadIdx.x == 0) row_of(s, workspace, row)[count] = (int)best;
      count++;
      const box chosen = box_of(s, boxes + 4 * best);
      for (size_t i = threadIdx.x; i < s.boxes; i += BLOCK_THREADS)
        if (!is_out[i]) is_out[i] = i == best || overlaps(s, chosen, box_of(s, boxes + 4 * i));
    }
    if (threadIdx.x == 0) workspace[row] = (int)count;
  }
}

extern "C" __global__ void non_max_list(nms_shape s, int *workspace, int *__restrict__ to, int *__restrict__ count) {
  size_t at = 0;
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  for (size_t row = 0; row < rows_of(s); row++) {
    for (int i = 0; i < workspace[row] && at < s.bound; i++, at++) {
      to[at * 3] = (int)(row / s.classes);
      to[at * 3 + 1] = (int)(row % s.classes);
      to[at * 3 + 2] = row_of(s, workspace, row)[i];
    }
  }
  for (size_t i = at * 3; i < s.bound * 3; i++) to[i] = -1;
  *count = (int)at;
}
