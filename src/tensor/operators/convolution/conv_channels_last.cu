/* SPDX-License-Identifier: MIT
 * The CUDA kernel of conv_channels_last.c: a thread computes a result. Threads of a warp have neighbouring channels of
 * one place, so they read the same elements of the image.
 */
#include "tensor/operators/convolution/conv_shape.cuh"
#include "tensor/operators/elementwise/activation.cuh"

extern "C" __global__ void conv_channels_last_TYPE(conv_shape s, const element *__restrict__ x,
                                                   const element *__restrict__ weight, const element *__restrict__ bias,
                                                   const element *__restrict__ addend, element *__restrict__ y) {
  const size_t height = s.w.out[HEIGHT], width = s.w.out[WIDTH], depth = s.in_channels;
  const size_t taps = s.w.kernel[HEIGHT] * s.w.kernel[WIDTH], count = s.images * height * width * s.out_channels;
  for (size_t i = first_element(); i < count; i += element_stride()) {
    const size_t place = quotient(i, s.out_channels), channel = i - place * s.out_channels;
    const size_t line = quotient(place, width), column = place - line * width;
    const size_t image = quotient(line, height), row = line - image * height;
    float sum = bias != NULL ? to_float(bias[channel]) : 0.0f;
    for (size_t tap = 0; tap < taps; tap++) {
      const size_t down = quotient(tap, s.w.kernel[WIDTH]), across = tap - down * s.w.kernel[WIDTH];
      size_t y_in, x_in;
      if (!window_tap(s.w, HEIGHT, row, down, y_in) || !window_tap(s.w, WIDTH, column, across, x_in)) continue;
      const element *const from = x + ((image * s.w.in[HEIGHT] + y_in) * s.w.in[WIDTH] + x_in) * depth;
      const element *const factors = weight + (channel * taps + tap) * depth;
      for (size_t c = 0; c < depth; c++) sum += to_float(from[c]) * to_float(factors[c]);
    }
    if (addend != NULL) sum += to_float(addend[i]);
    y[i] = to_element(activate((unsigned)s.activation, sum));
  }
}
