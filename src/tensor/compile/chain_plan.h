/* SPDX-License-Identifier: MIT
 * Chains: elementwise operators (rondo_element) that are fused into one step, so that their intermediate results need
 * no memory. Each element passes through the members in order, is rounded to its type after each, and only the last
 * result is stored. The bits are those of separate steps.
 *
 * Only members read the result of a member, except the last, and it is not an output; so nothing is computed twice. All
 * results have the same number of elements in the same order; shapes may differ by reshaping.
 *
 * Fusing an operator never raises the peak of the base order (tensor/compile/operator_order.c). It extends the live
 * range of the operator's inputs to the chain's place, and removes its result. This is allowed in two cases: the inputs
 * that would have died have no more bytes than the result; or everything else that the chain reads is computed before
 * the operator, and the last result has no more bytes than any removed one. Then the operator's place becomes the
 * chain's.
 */
#ifndef RONDO_TENSOR_COMPILE_CHAIN_H
#define RONDO_TENSOR_COMPILE_CHAIN_H

#include "tensor/program/program_internal.h"

#define RONDO_CHAIN_INPUTS RONDO_MAX_OPERANDS
#define RONDO_CHAIN_STEPS 12
#define RONDO_CHAIN_LAYOUTS 4 /* different ways in which inputs are broadcast */
#define RONDO_CHAIN_PACK 4    /* elements that a CUDA kernel takes together: PACK in floats.cuh */

/* The strides of a broadcast input along the elements of the result, in elements; 0 repeats. Dimensions that can be
 * merged are merged, no dimension is 1, and the last varies fastest. */
typedef struct rondo_chain_layout {
  size_t rank; /* at least 1 */
  size_t dims[RONDO_MAX_DIMENSIONS];
  size_t strides[RONDO_MAX_DIMENSIONS];
} rondo_chain_layout;

/* The parameters of a step: the first of its operation's attributes. */
typedef struct rondo_chain_numbers {
  float numbers[2];
  size_t size;
} rondo_chain_numbers;

typedef enum rondo_chain_reading {
  RONDO_CHAIN_EACH,  /* element i of element i */
  RONDO_CHAIN_WHOLE, /* by its address: not elements */
  RONDO_CHAIN_LAYOUT /* as layouts[reading - this] says */
} rondo_chain_reading;

typedef struct rondo_chain_input {
  uint8_t type, reading;
} rondo_chain_input;

typedef struct rondo_chain_step {
  uint16_t row;                   /* in the table of operators */
  uint8_t type;                   /* of the result */
  uint8_t terms[RONDO_MAX_TERMS]; /* an input, or RONDO_CHAIN_INPUTS and the number of a step before */
} rondo_chain_step;

/* The argument of a chain's kernel next to addresses: a scalar without padding, as in chain.cu. */
typedef struct rondo_chain_form {
  size_t count; /* elements */
  size_t packs; /* that are whole and have no seam of a broadcast in them */
  rondo_chain_layout layouts[RONDO_CHAIN_LAYOUTS];
  rondo_chain_numbers numbers[RONDO_CHAIN_STEPS];
  uint32_t zero; /* 0 */
  uint8_t input_count, step_count, layout_count, result_type;
  rondo_chain_input inputs[RONDO_CHAIN_INPUTS];
  rondo_chain_step steps[RONDO_CHAIN_STEPS];
} rondo_chain_form;

typedef struct rondo_chain {
  rondo_operation operation;           /* of the chain: its inputs, and the result of the last member */
  uint32_t members[RONDO_CHAIN_STEPS]; /* operations, rising; the last one's number is the chain's */
  uint32_t count;
  uint32_t place; /* the member whose position in the base order the chain takes */
  rondo_chain_form form;
} rondo_chain;

/* Sets operation and form from the members; false: they do not fit. */
bool rondo_chain_describe(const rondo_program *program, const uint32_t *owners, rondo_chain *chain);

/* A chain of one elementwise operation. */
rondo_chain rondo_chain_of_one(const rondo_program *program, const uint32_t *owners, uint32_t operation);

/* "add+gelu+mul", into `capacity` bytes, at least 8; what does not fit is "...". */
#define RONDO_CHAIN_NAME 96
void rondo_chain_name(const rondo_program *program, const rondo_chain *chain, char *buffer, size_t capacity);

/* The row of chains. It is not in the table, as programs have no chains. */
extern const rondo_operator rondo_operator_chain;

#endif
