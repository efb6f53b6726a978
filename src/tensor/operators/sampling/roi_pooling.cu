/* SPDX-License-Identifier: MIT
 * The CUDA kernels of roi_pooling.c: a block has the bins of a channel of a region.
 */
#include "tensor/operators/common/element.cuh"

struct roi_shape {
  size_t images, channels, in[2], regions, out[2], samples;
  float scale;
  unsigned takes_max, half_pixel, wide_indices;
};

struct region {
  float first, bin;
  size_t samples;
};

__device__ inline region region_of(const roi_shape &s, const float *roi, int axis) {
  const float offset = s.half_pixel != 0 ? 0.5f : 0.0f, bins = (float)s.out[axis];
  const float first = __fadd_rn(__fmul_rn(roi[1 - axis], s.scale), -offset);
  const float last = __fadd_rn(__fmul_rn(roi[3 - axis], s.scale), -offset);
  const float length = s.half_pixel != 0 || last - first > 1 ? last - first : 1.0f, most = 1048576.0f;
  const float own = ceilf(length / bins);
  region r = {first, length / bins, s.samples};
  if (s.samples == 0) r.samples = own >= 1 ? (size_t)(own < most ? own : most) : 0;
  return r;
}

struct between {
  size_t low, high;
  float share;
};

__device__ inline bool find_neighbours(float at, size_t size, between &out) {
  if (!(at >= -1 && at <= (float)size)) return false;
  const float inside = at <= 0 ? 0 : at;
  const size_t low = (size_t)inside;
  out.low = low >= size - 1 ? size - 1 : low;
  out.high = low >= size - 1 ? size - 1 : low + 1;
  out.share = low >= size - 1 ? 0 : inside - (float)low;
  return true;
}

__device__ inline float sample(const element *channel, size_t width, const between &y, const between &x,
                               bool takes_max) {
  const float a = (1 - y.share) * (1 - x.share) * to_float(channel[y.low * width + x.low]);
  const float b = (1 - y.share) * x.share * to_float(channel[y.low * width + x.high]);
  const float c = y.share * (1 - x.share) * to_float(channel[y.high * width + x.low]);
  const float d = y.share * x.share * to_float(channel[y.high * width + x.high]);
  return takes_max ? fmaxf(fmaxf(a, b), fmaxf(c, d)) : a + b + c + d;
}

__device__ inline float sample_at(const region &r, size_t bin, size_t i) {
  const float step = r.bin * ((float)i + 0.5f) / (float)r.samples;
  return __fadd_rn(__fadd_rn(r.first, __fmul_rn((float)bin, r.bin)), step);
}

struct sample_range {
  size_t first, last;
};

/* The first sample of a bin that is not below the limit, or, if `or_equal`, above it. */
__device__ inline size_t find_sample(const region &r, size_t bin, float limit, bool or_equal) {
  size_t low = 0, high = r.samples;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const float at = sample_at(r, bin, middle);
    if (at < limit || (or_equal && at == limit))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* As in roi_pooling.c. */
__device__ inline sample_range samples_inside(const region &r, size_t bin, size_t size) {
  const sample_range all = {0, r.samples};
  if (r.bin < 0) return all;
  const sample_range inside = {find_sample(r, bin, -1, false), find_sample(r, bin, (float)size, true)};
  return inside;
}

__device__ inline float bin_of(const roi_shape &s, const element *channel, const region &down, const region &across,
                               size_t row, size_t column) {
  const sample_range rows = samples_inside(down, row, s.in[0]), columns = samples_inside(across, column, s.in[1]);
  const size_t count = down.samples * across.samples;
  size_t inside = 0;
  float sum = 0, most = -__int_as_float(0x7f800000);
  between y, x;
  for (size_t i = rows.first; i < rows.last; i++) {
    if (!find_neighbours(sample_at(down, row, i), s.in[0], y)) continue;
    for (size_t k = columns.first; k < columns.last; k++) {
      if (!find_neighbours(sample_at(across, column, k), s.in[1], x)) continue;
      const float here = sample(channel, s.in[1], y, x, s.takes_max != 0);
      sum += here;
      most = fmaxf(most, here);
      inside++;
    }
  }
  if (count == 0) return 0;
  if (s.takes_max == 0) return sum / (float)count;
  return inside < count ? fmaxf(most, 0.0f) : most;
}

extern "C" __global__ void roi_align_TYPE(roi_shape s, const element *__restrict__ x, const float *__restrict__ rois,
                                          const void *__restrict__ images, element *__restrict__ y, CHECK) {
  const index_cell to = begin_check(TO_CHECK);
  const size_t bins = s.out[0] * s.out[1];
  for (size_t i = blockIdx.x; i < s.regions * s.channels; i += gridDim.x) {
    const size_t number = i / s.channels;
    const long long image = index_at(images, s.wide_indices, number);
    const size_t of = check_index(to, number, image, s.images) ? (size_t)image : 0;
    const element *channel = x + (of * s.channels + i % s.channels) * s.in[0] * s.in[1];
    const region down = region_of(s, rois + 4 * number, 0), across = region_of(s, rois + 4 * number, 1);
    for (size_t k = threadIdx.x; k < bins; k += BLOCK_THREADS)
      y[i * bins + k] = to_element(bin_of(s, channel, down, across, k / s.out[1], k % s.out[1]));
  }
}

__device__ inline long long whole(float x, long long most) {
  return x >= (float)most ? most : x <= -(float)most ? -most : x == x ? (long long)x : 0;
}

struct bin_range {
  size_t first, last;
};

__device__ inline bin_range bin_span(const roi_shape &s, const float *roi, int axis, size_t bin) {
  const long long most = 1ll << 40, size = (long long)s.in[axis];
  const long long first = whole(roundf(roi[2 - axis] * s.scale), most);
  const long long last = whole(roundf(roi[4 - axis] * s.scale), most);
  const float length = last >= first ? (float)(last - first + 1) : 1.0f, step = length / (float)s.out[axis];
  long long from = first + whole(floorf((float)bin * step), most);
  long long to = first + whole(ceilf((float)(bin + 1) * step), most);
  from = from < 0 ? 0 : from > size ? size : from;
  to = to < from ? from : to > size ? size : to;
  bin_range r = {(size_t)from, (size_t)to};
  return r;
}

extern "C" __global__ void max_roi_pool_TYPE(roi_shape s, const element *__restrict__ x, const float *__restrict__ rois,
                                             element *__restrict__ y, CHECK) {
  const index_cell to = begin_check(TO_CHECK);
  const size_t bins = s.out[0] * s.out[1];
  for (size_t i = blockIdx.x; i < s.regions * s.channels; i += gridDim.x) {
    const float *roi = rois + 5 * (i / s.channels);
    const long long image = roi[0] == roi[0] ? whole(roi[0], 0x7fffffffll) : -1; /* NaN names none */
    const size_t of = check_index(to, i / s.channels, image, s.images) ? (size_t)image : 0;
    const element *channel = x + (of * s.channels + i % s.channels) * s.in[0] * s.in[1];
    for (size_t k = threadIdx.x; k < bins; k += BLOCK_THREADS) {
      const bin_range rows = bin_span(s, roi, 0, k / s.out[1]), columns = bin_span(s, roi, 1, k % s.out[1]);
      const bool is_empty = rows.first >= rows.last || columns.first >= columns.last;
      float most = is_empty ? 0 : -__int_as_float(0x7f800000);
      for (size_t row = rows.first; row < rows.last; row++) {
        for (size_t column = columns.first; column < columns.last; column++) {
          const float here = to_float(channel[row * s.in[1] + column]);
          most = here > most || here != here ? here : most;
        }
      }
      y[i * bins + k] = to_element(most);
    }
  }
}
