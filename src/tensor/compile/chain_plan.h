/* SPDX-License-Identifier: MIT
 * Chains: operators that work element by element (rondo_element), joined into one step, which keeps what they hand to
 * each other out of memory. Each element goes through the members one after the other, is rounded to its type behind
 * each, and only the last one's result is stored: the same bits as from separate steps.
 *
 * A member but the last is read by other members alone and is no output, so nothing is computed twice. All members'
 * results have the same number of elements, in the same order; shapes may differ by reshaping.
 *
 * A join never raises the peak of the base order (tensor/compile/operator_order.c). It makes what the joined operator
 * reads live on to the chain's place, and spares its result meanwhile. So either what would have died with it has no
 * more bytes than its result; or all else that the chain reads is there before it, and the last result has no more
 * bytes than any that is spared: then the chain's place is where the joined operator stood.
 */
#ifndef RONDO_TENSOR_COMPILE_CHAIN_H
#define RONDO_TENSOR_COMPILE_CHAIN_H

#include "tensor/program/program_internal.h"

#define RONDO_CHAIN_INPUTS RONDO_MAX_OPERANDS
#define RONDO_CHAIN_STEPS 12
#define RONDO_CHAIN_LAYOUTS 4 /* inputs that are broadcast, each in its way */
#define RONDO_CHAIN_PACK 4    /* elements that a CUDA kernel takes together: PACK in floats.cuh */

/* How a broadcast input lies under the elements: dimensions that lie alike are one, none is 1, the last varies fastest;
 * strides in elements, 0 repeats. */
typedef struct rondo_chain_layout {
  size_t rank; /* at least 1 */
  size_t dims[RONDO_MAX_DIMENSIONS];
  size_t strides[RONDO_MAX_DIMENSIONS];
} rondo_chain_layout;

/* What a step is told: the first of its operation's attributes. */
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

/* All that a chain's kernel is told beside addresses: a scalar, without padding, as chain.cu has it. */
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
  rondo_operation operation;           /* in the place of the last member: its inputs are the chain's */
  uint32_t members[RONDO_CHAIN_STEPS]; /* operations, rising; the last one's number is the chain's */
  uint32_t count;
  uint32_t place; /* the member in whose place the chain stands in the base order */
  rondo_chain_form form;
} rondo_chain;

/* Fills in operation and form from the members; false when they do not fit in these. */
bool rondo_chain_describe(const rondo_program *program, const uint32_t *owners, rondo_chain *chain);

/* "add+gelu+mul", into `room` bytes, at least 8; what does not fit is "...". */
#define RONDO_CHAIN_NAME 96
void rondo_chain_name(const rondo_program *program, const rondo_chain *chain, char *buffer, size_t room);

/* What a chain's operation is. In no table: programs have none. */
extern const rondo_operator rondo_operator_chain;

#endif
