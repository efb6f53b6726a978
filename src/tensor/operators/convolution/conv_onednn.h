/* SPDX-License-Identifier: MIT
 * Convolutions of F32 on a CPU by oneDNN 2's primitives, if it is in use for products (tensor/vendor/onednn.h) and
 * faster.
 *
 * A convolution is split into parts by its shape alone: by images and, if there are few, by slices of the output
 * channels, or, where channels come last, by rows of the result. A part is one block of a kernel: one call of the
 * library on the thread that runs the block. oneDNN's own threads are not used. Images and weights are copied into the
 * layouts that the library requires, in the operator's workspace: by a kernel before, weights once, and images of which
 * there are slices; other images by the part that uses them. Weights of a packed state (tensor/run/packed_state.h) have
 * that layout already, slice after slice. The library sums the gradient of the weights within a part; then a kernel
 * sums the parts in order. So results have the same bits for any number of workers, recorded or not.
 *
 * Threads: one thread at a time creates or destroys a convolution. Each part has its own memory objects and stream, so
 * blocks can run at once. Runs of one convolution must not overlap, because they share a workspace.
 */
#ifndef RONDO_TENSOR_OPERATORS_CONVOLUTION_CONV_ONEDNN_H
#define RONDO_TENSOR_OPERATORS_CONVOLUTION_CONV_ONEDNN_H

#include "base/allocation.h"
#include "tensor/compile/emit.h"
#include "tensor/operators/convolution/conv.h"
#include "tensor/run/packed_state.h"

typedef struct rondo_onednn_convolution rondo_onednn_convolution;

/* The size of the blocks of channels (conv.h) in which the library computes flat images of many channels fastest on
 * this processor: at most RONDO_CONV_MAX_BLOCK, or RONDO_CONV_ALL_CHANNELS; 1: oneDNN 2 is not in use, or it prefers
 * plain images. */
size_t rondo_onednn_image_block(void);

/* Whether the library computes the forward convolution of flat images with these blocks without a copy, and the
 * convolution has as many multiplications as RONDO_ONEDNN_LEAST. */
bool rondo_onednn_makes_blocks(const rondo_conv_shape *shape, bool has_bias, rondo_conv_blocks blocks);

/* Prepares a convolution. *out becomes NULL, with status OK, if Rondo's own kernels are to compute it: oneDNN 2 is not
 * in use, or the library does not support it; without blocks of channels also if the convolution has fewer
 * multiplications than RONDO_ONEDNN_LEAST, or the own kernels are as fast. Only a forward convolution has blocks, or
 * `out_packed`. With the latter, it is to read weights of a packed state: *out_packed is their order, with a reference
 * for the caller. It becomes NULL, with *out, also if the library requires rows, or much padding. Errors:
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onednn_convolution_create(const rondo_allocator *allocator,
                                                            rondo_convolution_pass pass, const rondo_conv_shape *shape,
                                                            rondo_conv_blocks blocks, bool has_bias,
                                                            rondo_packed_state **out_packed,
                                                            rondo_onednn_convolution **out);
void rondo_onednn_convolution_destroy(void *convolution); /* NULL is fine */

size_t rondo_onednn_convolution_workspace(const rondo_onednn_convolution *convolution);

/* Adds its kernels. `memory`: x, weight and y, or their gradients; the pass writes one of them. If the library has no
 * memory for a part at run time, Rondo's own kernels compute it. */
RONDO_MUST_USE rondo_status rondo_onednn_convolution_emit(rondo_emitter *emitter, rondo_onednn_convolution *convolution,
                                                          const rondo_convolution_memory *memory, const void *bias);

#endif
