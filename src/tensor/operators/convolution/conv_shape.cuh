/* SPDX-License-Identifier: MIT
 * The shape of a convolution, as in conv.h.
 */
#include "tensor/operators/convolution/window.cuh"

struct conv_shape {
  window w;
  size_t images, groups, in_channels, out_channels, edge, parts, part, activation;
};
