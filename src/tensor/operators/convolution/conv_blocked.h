/* SPDX-License-Identifier: MIT
 * The own kernel of convolutions whose images have blocks of channels: simple loops, for what a library has no memory
 * for. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_CONVOLUTION_CONV_BLOCKED_H
#define RONDO_TENSOR_OPERATORS_CONVOLUTION_CONV_BLOCKED_H

#include "tensor/operators/convolution/conv.h"

/* args: shape, blocks, x, weight, bias, y, of F32; bias may be NULL. A block of the kernel has some of the rows. */
void rondo_conv_blocked_cpu(rondo_blocks all, void *const *args);
size_t rondo_conv_blocked_rows(const rondo_conv_shape *s, rondo_conv_blocks blocks);

#endif
