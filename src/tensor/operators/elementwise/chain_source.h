/* SPDX-License-Identifier: MIT
 * CUDA sources of chains. A source depends on the operators, their types and which inputs are broadcast, but not on
 * shapes and numbers, so that many chains share a kernel. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_CHAIN_SOURCE_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_CHAIN_SOURCE_H

#include "base/text.h"
#include "tensor/compile/chain_plan.h"

/* The name of the kernel: "chain_add_gelu_mul", cut to this length. */
#define RONDO_CHAIN_KERNEL_NAME 128
void rondo_chain_kernel_name(const rondo_chain_form *form, char name[RONDO_CHAIN_KERNEL_NAME]);

/* Adds the kernel alone, which is the key of a chain; and what must precede it. The text keeps their errors. */
void rondo_chain_add_kernel(const rondo_chain_form *form, const char *name, rondo_text *text);
void rondo_chain_add_functions(const rondo_chain_form *form, rondo_text *text);

#endif
