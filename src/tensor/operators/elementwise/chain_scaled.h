/* SPDX-License-Identifier: MIT
 * Chains that scale images by numbers of each channel: x a + b, or max(0, x a + b), such as a batch normalization in
 * inference. A loop of their own reads and writes each element once; other chains pass chunks from step to step. The
 * bits are the same. Images are plain, or have blocks of 8, 16 or all channels. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_CHAIN_SCALED_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_CHAIN_SCALED_H

#include "tensor/compile/chain_plan.h"
#include "tensor/operators/common/kernel_support.h"

bool rondo_chain_is_scaled(const rondo_chain_form *form);

/* Computes the elements of the span, whose first is a multiple of RONDO_LANES, of such a chain. args: as of its
 * kernel. */
void rondo_chain_scaled_cpu(const rondo_chain_form *form, rondo_span span, void *const *args);

#endif
