/* SPDX-License-Identifier: MIT
 * Kernels of chains in CUDA C, made of the form: a text depends on the members, their types and which inputs are
 * broadcast, not on shapes and numbers, so that many chains have one kernel.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_CHAIN_SOURCE_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_CHAIN_SOURCE_H

#include "base/text.h"
#include "tensor/compile/chain_plan.h"

/* What the kernel is called: "chain_add_gelu_mul", cut to the room. */
#define RONDO_CHAIN_KERNEL_NAME 128
void rondo_chain_kernel_name(const rondo_chain_form *form, char name[RONDO_CHAIN_KERNEL_NAME]);

/* Adds the kernel alone, which tells chains apart; and what it needs before it. The text keeps their errors. */
void rondo_chain_add_kernel(const rondo_chain_form *form, const char *name, rondo_text *text);
void rondo_chain_add_functions(const rondo_chain_form *form, rondo_text *text);

#endif
