/* SPDX-License-Identifier: MIT
 * Which registers of a kernel can hold an address that comes from one of its parameters. The order of instructions
 * does not count: a register holds what any of its instructions writes. Each instruction becomes rules about values,
 * which only grow, so a few passes over the rules reach the end; where many do not, nothing is said.
 *
 * A register, a constant or a parameter has a slot. The slots begin with PTX_SLOT_*, then one for each parameter.
 * Threads: one at a time.
 */
#ifndef RONDO_DEVICE_CUDA_PTX_PTX_FLOW_H
#define RONDO_DEVICE_CUDA_PTX_PTX_FLOW_H

#include "device/cuda/ptx/ptx_text.h"

/* What a slot can hold; what is greater includes what is less. From PTX_POINTER on: the address in that parameter plus
 * numbers. */
typedef uint32_t ptx_value;
#define PTX_UNSET UINT32_C(0)
#define PTX_COUNT UINT32_C(1)  /* a number that no address is part of */
#define PTX_SCALED UINT32_C(2) /* a product with a constant, which can be an address only after a division */
#define PTX_POINTER UINT32_C(3)
#define PTX_MIXED (UINT32_MAX - 1) /* from memory, from several parameters, or of one but not its address */
#define PTX_OPAQUE UINT32_MAX      /* anything, also what is an address only after a multiplication */

enum {
  PTX_SLOT_OPAQUE, /* also whatever is not tracked: what is written there may be used anywhere */
  PTX_SLOT_COUNT,
  PTX_SLOT_MIXED,
  PTX_SLOT_PARAMETER /* the first one's; those of names follow the last one's */
};

typedef enum ptx_operation {
  PTX_COPY,     /* a */
  PTX_ADD,      /* a + b */
  PTX_SUBTRACT, /* a - b */
  PTX_SCALE,    /* a * b */
  PTX_DIVIDE,   /* a / b, rounded */
  PTX_REMAINDER,
  PTX_MASK /* bits of a and b */
} ptx_operation;

typedef struct ptx_rule {
  ptx_operation operation;
  uint32_t to, a, b;
} ptx_rule;

/* What instructions do with the memory at an address. */
#define PTX_READS 1U
#define PTX_WRITES 2U

typedef struct ptx_access {
  uint32_t slot, how, line;
  ptx_word opcode;
} ptx_access;

typedef struct ptx_name {
  ptx_word word;
  uint64_t hash;
  uint32_t slot;
  bool is_written; /* else it is a variable, or a register of the GPU */
} ptx_name;

typedef struct ptx_flow {
  const rondo_allocator *allocator;
  uint32_t parameter_count;
  bool is_lost; /* nothing can be said */
  RONDO_ARRAY(ptx_value) values;
  RONDO_ARRAY(ptx_rule) rules;
  RONDO_ARRAY(ptx_access) accesses;
  RONDO_ARRAY(uint32_t) sizes; /* bytes of each parameter */
  RONDO_ARRAY(bool) escaped;   /* of each parameter: its address may be used where this does not see it */
  RONDO_ARRAY(ptx_name) names;
  uint32_t *table; /* indices in `names`, plus 1; open addressing */
  size_t table_size;
} ptx_flow;

void ptx_flow_init(ptx_flow *flow, const rondo_allocator *allocator);
void ptx_flow_free(ptx_flow *flow);

/* All parameters come before all instructions. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status ptx_flow_add_parameter(ptx_flow *flow, ptx_word name, uint32_t bytes);

/* The slot of a name. Names that are not tracked have PTX_SLOT_OPAQUE. `is_written`: by this use of it. */
RONDO_MUST_USE rondo_status ptx_flow_slot(ptx_flow *flow, ptx_word name, bool is_written, uint32_t *out);

/* A slot for an intermediate result. */
RONDO_MUST_USE rondo_status ptx_flow_add_slot(ptx_flow *flow, ptx_value value, uint32_t *out);

static inline bool ptx_is_parameter(const ptx_flow *flow, uint32_t slot) {
  return slot >= PTX_SLOT_PARAMETER && slot - PTX_SLOT_PARAMETER < flow->parameter_count;
}

/* The rules and accesses of one instruction (ptx_rules.c). */
RONDO_MUST_USE rondo_status ptx_flow_add_statement(ptx_flow *flow, const ptx_statement *statement);

/* Applies the rules until nothing changes. */
void ptx_flow_solve(ptx_flow *flow);

#endif
