/* SPDX-License-Identifier: MIT
 * Convolutions of F32 on a CPU by oneDNN 2's primitives, where it is in use for products (vendor/onednn.h) and pays.
 *
 * A convolution is cut into parts by its shape alone: images, and slices of the channels that come out where images
 * are few. A part is one block of a kernel, made by one call on the thread that runs the block; oneDNN's own threads
 * are not used. Images and weights are copied into the layouts that the library asks for, in the operator's workspace:
 * weights once, by a kernel before, an image by the part that works on it. The gradient of the weights is summed within
 * a part by the library, then over the parts in their order. So results have the same bits for any number of workers,
 * recorded or not.
 *
 * Threads: a convolution is made and destroyed by one at a time. Each part has memory objects and a stream of its own,
 * so that its blocks may run at once; one run of it follows the other, as they share a workspace.
 */
#ifndef RONDO_TENSOR_OPERATORS_CONVOLUTION_CONV2D_ONEDNN_H
#define RONDO_TENSOR_OPERATORS_CONVOLUTION_CONV2D_ONEDNN_H

#include "base/allocation.h"
#include "tensor/compile/emit.h"
#include "tensor/operators/convolution/conv2d.h"

typedef struct rondo_onednn_convolution rondo_onednn_convolution;

/* Makes one ready. *out becomes NULL, with status OK, where convolutions are to be made otherwise: no oneDNN 2 is in
 * use, the convolution has fewer multiplications than RONDO_ONEDNN_LEAST or is of a kind that own kernels make as
 * quickly, or the library has no such way for it. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onednn_convolution_create(const rondo_allocator *allocator,
                                                            rondo_convolution_pass pass,
                                                            const rondo_conv2d_shape *shape, bool has_bias,
                                                            rondo_onednn_convolution **out);
void rondo_onednn_convolution_destroy(void *convolution); /* NULL is fine */

size_t rondo_onednn_convolution_workspace(const rondo_onednn_convolution *convolution);

/* Adds its kernels. x, weight and y, or what is their gradient; the one that the pass makes is written. A part for
 * which the library has no memory when it runs is made by the own kernels. */
RONDO_MUST_USE rondo_status rondo_onednn_convolution_emit(rondo_emitter *emitter, rondo_onednn_convolution *convolution,
                                                          const rondo_convolution_memory *memory, const void *bias);

#endif
