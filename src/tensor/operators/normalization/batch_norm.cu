/* SPDX-License-Identifier: MIT
 * The CUDA kernels of batch_norm.c (batch_norm.h describes tiles, runs and parts). A block computes a part of a tile.
 * Each of its warps reads a run; the lanes read the elements of the run or, if the tile has several channels, a channel
 * each. The sum of a channel is over all threads, or over the threads with its lane, in a fixed order.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/common/operator_rows.cuh"

struct norm_shape {
  size_t images, channels, inner, width, run, cuts, parts, share;
  float epsilon;
  unsigned is_fixed;
};

/* A thread's elements: for (run = first; run < last; run += WARPS) for (i = lane; i < elements; i += step) */
struct norm_walk {
  size_t channel, part, first, last, lane, step;
  bool is_column, is_in, is_writer; /* is_writer: writes the numbers of the channel */
};

__device__ inline size_t tiles_of(const norm_shape &s) { return (s.channels + s.width - 1) / s.width; }

__device__ inline norm_walk walk_of(const norm_shape &s, size_t unit) {
  norm_walk w;
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const size_t tile = unit / s.parts, runs = s.images * s.cuts;
  w.is_column = s.width > 1;
  w.part = unit - tile * s.parts;
  w.channel = w.is_column ? tile * WARP + lane : tile;
  w.is_in = w.channel < s.channels;
  w.first = w.part * s.share + warp;
  w.last = runs - w.part * s.share < s.share ? runs : (w.part + 1) * s.share;
  w.lane = w.is_column ? 0 : lane;
  w.step = WARP;
  w.is_writer = w.is_in && (w.is_column ? warp == 0 : threadIdx.x == 0);
  if (!w.is_in) w.channel = 0;
  return w;
}

/* Elements of a run that are read before the first is used, so that several reads are in flight. */
#define BATCH 4

/* Calls use(i, read(i)) for each element of the thread. */
template <class reader, class user>
__device__ inline void each_element(const norm_shape &s, const norm_walk &w, const reader &read, const user &use) {
  for (size_t run = w.first; w.is_in && run < w.last; run += WARPS) {
    const size_t image = s.cuts == 1 ? run : run <= 0xffffffffu ? (unsigned)run / (unsigned)s.cuts : run / s.cuts;
    const size_t begin = (run - image * s.cuts) * s.run, left = s.inner - begin;
    const size_t from = (image * s.channels + w.channel) * s.inner + begin, count = left < s.run ? left : s.run;
    for (size_t i = w.lane; i < count; i += BATCH * w.step) {
      decltype(read(from)) batch[BATCH];
#pragma unroll
      for (unsigned k = 0; k < BATCH; k++)
        if (i + k * w.step < count) batch[k] = read(from + i + k * w.step);
#pragma unroll
      for (unsigned k = 0; k < BATCH; k++)
        if (i + k * w.step < count) use(from + i + k * w.step, batch[k]);
    }
  }
}

/* The sum over the channel. All threads must call it. */
__device__ inline float channel_sum(const norm_walk &w, float value) {
  __shared__ float values[WARPS][WARP];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  if (!w.is_column) return team_join<join_sum>({threadIdx.x, BLOCK_THREADS, 0, 0}, value);
  __syncthreads(); /* the previous values have been read */
  values[warp][lane] = value;
  __syncthreads();
  value = values[0][lane];
  for (unsigned other = 1; other < WARPS; other++) value += values[other][lane];
  return value;
}

/* The elements of a channel before a run. */
__device__ inline size_t elements_before(const norm_shape &s, size_t run) {
  const size_t image = s.cuts == 1 ? run : run / s.cuts, begin = (run - image * s.cuts) * s.run;
  return image * s.inner + (begin < s.inner ? begin : s.inner);
}

/* The elements of a part of a channel. */
__device__ inline float part_elements(const norm_shape &s, size_t part) {
  const size_t runs = s.images * s.cuts, first = part * s.share, left = runs - first;
  return (float)(elements_before(s, first + (left < s.share ? left : s.share)) - elements_before(s, first));
}

extern "C" __global__ void batch_norm_statistics_TYPE(norm_shape s, const element *__restrict__ x,
                                                      float *__restrict__ sums) {
  const auto read = [&](size_t i) { return to_float(x[i]); };
  for (size_t unit = blockIdx.x; unit < tiles_of(s) * s.parts; unit += gridDim.x) {
    const norm_walk w = walk_of(s, unit);
    float sum = 0, squares = 0;
    each_element(s, w, read, [&](size_t, float value) { sum += value; });
    const float mean = channel_sum(w, sum) / part_elements(s, w.part);
    each_element(s, w, read, [&](size_t, float value) { squares += (value - mean) * (value - mean); });
    squares = channel_sum(w, squares);
    if (w.is_writer) {
      sums[(w.channel * s.parts + w.part) * 2] = mean;
      sums[(w.channel * s.parts + w.part) * 2 + 1] = squares;
    }
  }
}

/* The sum of value(part) for all parts of a channel. If the block has one channel, the lanes of each warp share the
 * parts, and all of them must call it. */
template <class function>
__device__ inline float sum_of_parts(const norm_shape &s, const norm_walk &w, const function &value) {
  const unsigned first = w.is_column ? 0 : threadIdx.x % WARP, step = w.is_column ? 1 : WARP;
  float sum = 0;
  for (size_t part = first; part < s.parts; part += step) sum += value(part);
  return w.is_column ? sum : team_join<join_sum>({first, WARP, 0, 0}, sum);
}

/* The mean and variance of a channel, from those of its parts. */
__device__ inline void join_statistics(const norm_shape &s, const norm_walk &w, const float *sums, float *mean,
                                       float *variance) {
  const float *pairs = sums + w.channel * s.parts * 2, count = (float)(s.images * s.inner);
  const float middle =
      sum_of_parts(s, w, [&](size_t part) { return part_elements(s, part) * pairs[part * 2]; }) / count;
  const float squares = sum_of_parts(s, w, [&](size_t part) {
    const float off = pairs[part * 2] - middle;
    return pairs[part * 2 + 1] + part_elements(s, part) * off * off;
  });
  *mean = middle;
  *variance = squares / count;
}

extern "C" __global__ void batch_norm_TYPE(norm_shape s, const element *__restrict__ x, const float *__restrict__ sums,
                                           const float *__restrict__ scale, const float *__restrict__ shift,
                                           const float *__restrict__ given_mean,
                                           const float *__restrict__ given_variance, element *__restrict__ y,
                                           float *__restrict__ of_mean, float *__restrict__ of_variance) {
  for (size_t unit = blockIdx.x; unit < tiles_of(s) * s.parts; unit += gridDim.x) {
    const norm_walk w = walk_of(s, unit);
    float mean, variance;
    if (s.is_fixed) {
      mean = given_mean[w.channel];
      variance = given_variance[w.channel];
    } else {
      join_statistics(s, w, sums, &mean, &variance);
    }
    if (w.is_writer && w.part == 0) {
      if (of_mean != 0) of_mean[w.channel] = mean;
      if (of_variance != 0) of_variance[w.channel] = variance;
    }
    const float factor = (scale != 0 ? scale[w.channel] : 1.0f) / sqrtf(variance + s.epsilon);
    const float offset = shift != 0 ? shift[w.channel] : 0.0f;
    each_element(
        s, w, [&](size_t i) { return to_float(x[i]); },
        [&](size_t i, float value) { y[i] = to_element((value - mean) * factor + offset); });
  }
}

struct norm_pair {
  float x, dy;
};

extern "C" __global__ void batch_norm_gradient_sums_TYPE(norm_shape s, const element *__restrict__ x,
                                                         const element *__restrict__ dy,
                                                         const float *__restrict__ means,
                                                         const float *__restrict__ variances,
                                                         float *__restrict__ sums) {
  for (size_t unit = blockIdx.x; unit < tiles_of(s) * s.parts; unit += gridDim.x) {
    const norm_walk w = walk_of(s, unit);
    const float mean = means[w.channel], deviation = 1.0f / sqrtf(variances[w.channel] + s.epsilon);
    float g = 0, gh = 0;
    each_element(
        s, w,
        [&](size_t i) {
          return norm_pair{to_float(x[i]), to_float(dy[i])};
        },
        [&](size_t, const norm_pair &at) {
          g += at.dy;
          gh += at.dy * ((at.x - mean) * deviation);
        });
    g = channel_sum(w, g);
    gh = channel_sum(w, gh);
    if (w.is_writer) {
      sums[(w.channel * s.parts + w.part) * 2] = g;
      sums[(w.channel * s.parts + w.part) * 2 + 1] = gh;
    }
  }
}

extern "C" __global__ void batch_norm_gradient_TYPE(norm_shape s, const element *__restrict__ x,
                                                    const element *__restrict__ dy, const float *__restrict__ means,
                                                    const float *__restrict__ variances, const float *__restrict__ sums,
                                                    const float *__restrict__ scale, element *__restrict__ dx,
                                                    float *__restrict__ dscale, float *__restrict__ dshift) {
  for (size_t unit = blockIdx.x; unit < tiles_of(s) * s.parts; unit += gridDim.x) {
    const norm_walk w = walk_of(s, unit);
    const float mean = means[w.channel], deviation = 1.0f / sqrtf(variances[w.channel] + s.epsilon);
    const float factor = (scale != 0 ? scale[w.channel] : 1.0f) * deviation;
    const float count = (float)(s.images * s.inner);
    const float *pairs = sums + w.channel * s.parts * 2;
    const float g = sum_of_parts(s, w, [&](size_t part) { return pairs[part * 2]; });
    const float gh = sum_of_parts(s, w, [&](size_t part) { return pairs[part * 2 + 1]; });
    if (w.is_writer && w.part == 0) {
      if (dscale != 0) dscale[w.channel] = gh;
      if (dshift != 0) dshift[w.channel] = g;
    }
    const float of_g = s.is_fixed ? 0.0f : g / count, of_gh = s.is_fixed ? 0.0f : gh / count;
    each_element(
        s, w,
        [&](size_t i) {
          return norm_pair{to_float(x[i]), to_float(dy[i])};
        },
        [&](size_t i, const norm_pair &at) {
          const float h = (at.x - mean) * deviation;
          dx[i] = to_element(factor * (at.dy - of_g - h * of_gh));
        });
  }
}
