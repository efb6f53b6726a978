/* SPDX-License-Identifier: MIT
 * An operator is one row of the table. tensor/operators/README.md says how to add one. Gradient and update operators
 * are rows without a public function.
 *
 * Rows are constant. The functions of a row are called by one thread at a time for each program.
 */
#ifndef RONDO_TENSOR_PROGRAM_OPERATOR_H
#define RONDO_TENSOR_PROGRAM_OPERATOR_H

#include <rondo/user_operator.h>

#define RONDO_MAX_OPERANDS 8
#define RONDO_MAX_RESULTS 8
#define RONDO_MAX_SIZES 20
#define RONDO_NO_VALUE UINT32_MAX
#define RONDO_MAX_TERMS 3 /* inputs of an elementwise operator */

#define RONDO_TYPE_BIT(type) (1u << (type))
#define RONDO_FLOATS (RONDO_TYPE_BIT(RONDO_F32) | RONDO_TYPE_BIT(RONDO_F16) | RONDO_TYPE_BIT(RONDO_BF16))
#define RONDO_INDICES (RONDO_TYPE_BIT(RONDO_I32) | RONDO_TYPE_BIT(RONDO_I64))
#define RONDO_INTEGERS (RONDO_INDICES | RONDO_TYPE_BIT(RONDO_I8) | RONDO_TYPE_BIT(RONDO_U8))
#define RONDO_NUMBERS (RONDO_FLOATS | RONDO_INTEGERS)
#define RONDO_ALL_TYPES (RONDO_NUMBERS | RONDO_TYPE_BIT(RONDO_BOOL))
#define RONDO_STORED_TYPES (RONDO_ALL_TYPES | RONDO_TYPE_BIT(RONDO_F8_E4M3) | RONDO_TYPE_BIT(RONDO_F8_E5M2))

/* Whether arithmetic on the type uses int64_t; a BOOL counts as 0 or 1. */
static inline bool rondo_is_integer(rondo_type type) {
  return ((RONDO_INTEGERS | RONDO_TYPE_BIT(RONDO_BOOL)) & RONDO_TYPE_BIT(type)) != 0;
}

typedef struct rondo_emitter rondo_emitter;
typedef struct rondo_resources rondo_resources;
typedef struct rondo_packed_state rondo_packed_state;

/* Parameters of an operator, next to its inputs. Each operator defines in its file what the fields mean. */
typedef struct rondo_attributes {
  size_t sizes[RONDO_MAX_SIZES];
  uint32_t size_count;
  float numbers[4];
  bool flags[4];
} rondo_attributes;

/* An operator applied in a program. Inputs and results are indices of the program's values. */
typedef struct rondo_operation {
  const rondo_operator *row;
  uint32_t inputs[RONDO_MAX_OPERANDS]; /* RONDO_NO_VALUE for an omitted optional input, and after the last input */
  uint32_t results[RONDO_MAX_RESULTS];
  rondo_attributes attributes;
  uint32_t place;       /* index in the device list, plus one; 0: not placed (tensor/divide/operator_placement.h) */
  uint32_t gradient_of; /* the operation that it passes gradients through, plus one; 0: none, and in programs that
                           dividing and rewriting make */
  uint32_t number; /* in the program that its user wrote, for messages (tensor/compile/rewrite/rewritten_program.h) */
} rondo_operation;

/* A loop over the inputs that an operation has. */
#define RONDO_EACH_INPUT(k, operation)              \
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) \
    if ((operation)->inputs[k] == RONDO_NO_VALUE)   \
      continue;                                     \
    else

/* Consecutive elements for an elementwise operator on a CPU. Memory holds numbers: floats, or int64_t for integer
 * types. */
typedef struct rondo_chunk_call {
  const rondo_operator *row;
  const void *terms[RONDO_MAX_TERMS]; /* `count` numbers each; for an input that is not elementwise, its address */
  rondo_type types[RONDO_MAX_TERMS], result_type;
  void *result; /* numbers, not rounded to the type; overlaps no term */
  size_t first; /* index of the first element in the result, a multiple of 16 */
  size_t count;
  float numbers[2]; /* the first numbers of the attributes */
  size_t size;      /* the first size of the attributes */
} rondo_chunk_call;

/* How an elementwise operator computes each element of its only result from the elements of its inputs at the same
 * index, after broadcasting. This is what fusing needs (tensor/compile/chain_plan.h). The function in CUDA C gets
 * numbers and returns one. Its further arguments are the first `numbers` of the attributes; or, if there are `others`,
 * the index of the element, the first of the attributes' sizes, and the addresses of the others. */
typedef struct rondo_element {
  void (*compute)(const rondo_chunk_call *call); /* NULL: the operator is not elementwise */
  const char *function;                          /* its name in CUDA C */
  const char *source;                            /* text with that function */
  uint32_t numbers;
  uint32_t others; /* how many inputs, the last ones, are not elementwise */
} rondo_element;

bool rondo_attributes_same(const rondo_attributes *a, const rondo_attributes *b);

/* How operations of one row run as one kernel, if the schedule joins them (tensor/compile/join_updates.h). The kernel
 * is emitted at the position of the first. None of them has a workspace. */
#define RONDO_MAX_JOINED 30
typedef struct rondo_join {
  uint32_t max;           /* operations in one kernel, at most RONDO_MAX_JOINED */
  uint32_t shared;        /* bit i: input i is the same value for all of them */
  bool is_typed;          /* input 0 has the same type in all of them */
  bool in_order;          /* one may read results of the one before it, which then need no memory */
  bool is_early;          /* they are moved earlier, not later, if they read only permanent values */
  bool of_any_attributes; /* attributes may differ */
  bool of_parts; /* each works on its own part of its values (tensor/program/optimizer_parts.h): sizes of attributes may
                    differ, and one may change another part of a value than the one before it */

  /* Whether the operation can be joined. NULL: all of the row can. */
  bool (*takes)(const rondo_program *program, const rondo_operation *operation);

  /* Emits the kernel of `count` operations in their order: at least two, or one if the row has no `emit`. */
  rondo_status (*emit)(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count);
} rondo_join;

struct rondo_operator {
  const char *name;
  const char *inputs[RONDO_MAX_OPERANDS]; /* their names in messages, up to the first NULL */
  uint32_t required;                      /* how many inputs; the rest are optional */
  uint32_t result_count;
  uint32_t spare_results; /* bit i: result i has an address, and is computed, only if something reads it */
  uint32_t updates;       /* bit i: input i, a state, is changed in place. Such operators run after all others, and
                             do nothing in a run that failed (rondo_emit_gate) */
  bool is_view;           /* the result is a view of the bytes of the first input; nothing runs */
  bool is_in_place; /* the result may take over the bytes of input 0 if nothing else reads them: its emit finds the
                       same address for both, and otherwise copies input 0 first */
  uint32_t checks_indices; /* how often its emit calls rondo_emit_index_check. Updates come after it */
  bool always_runs;        /* also if nothing reads its results: an update relies on its index check */
  const char *index_rule;  /* the end of the message about a wrong index; NULL: "row 0 was used instead" */
  const char *repeat_rule; /* likewise about an index that is in range, but must not be there twice; NULL: there is no
                              such rule */
  uint32_t repeat_input;   /* the input that repeat_rule is about */
  bool adds_gradients;     /* its differentiate adds to the sum of gradients of input 0 (below) */
  bool is_late;            /* runs with the updates, but changes no state: it reads states after earlier updates */
  bool is_urgent;          /* runs as soon as its inputs are there, whatever memory that takes */
  bool is_collective;      /* its emit enqueues a collective, which waits for other ranks. If it checks indices, it does
                              so for all ranks, after all checks before it */
  uint32_t constants;      /* bit i: input i can have no gradient. One that is asked of it is refused */
  bool stops_gradients;    /* no gradient passes from its result to its inputs */
  bool is_user;            /* it is the first member of a rondo_user_operator (tensor/program/operator_registry.h) */
  uint32_t types;          /* RONDO_TYPE_BITs of input `typed_input`; 0: not a public operator */
  uint32_t typed_input;    /* without inputs, `types` are those of the result */
  uint32_t packed_input;   /* the input that `pack` is about */
  rondo_element element;
  const void *family; /* data of this row for functions below that several rows share; or NULL */

  /* Checks types and shapes of the inputs and returns those of the results. Errors: rondo_fail_operation. */
  rondo_status (*infer)(const rondo_program *program, const rondo_operation *operation, rondo_shape *results);

  /* Adds the operators that compute the gradients of the inputs from those of the results. In both, RONDO_NO_VALUE is a
   * gradient of zeros. `operation` is the caller's copy. NULL: the operator has no gradient.
   * On entry, input_gradients holds RONDO_NO_VALUE. Only if the row has adds_gradients, entry 0 holds the sum of the
   * gradients of other readers of input 0 so far; the function replaces it by the sum with its own. Operators that read
   * a part of a large value do this, because a whole tensor for each of them would take quadratic time and memory. */
  rondo_status (*differentiate)(rondo_program *program, const rondo_operation *operation,
                                const uint32_t *result_gradients, uint32_t *input_gradients);

  /* Prepares the resources that operation number `operation` needs in addition to kernels, and returns the size of its
   * workspace in bytes (rondo_emit_workspace). NULL: it needs neither. */
  rondo_status (*prepare)(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                          size_t *out_workspace_bytes);

  /* Prepares the same, but for an input `packed_input` that is a packed state (tensor/run/packed_state.h). Called
   * before `prepare`, which then finds the object; it is destroyed if the state cannot be packed. out_packed: the order
   * that the operation reads, with a reference. If that is NULL, nothing was prepared. NULL: it reads plain rows. */
  rondo_status (*pack)(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                       rondo_packed_state **out_packed);

  /* Emits kernels and calls (tensor/compile/emit.h). NULL for views, and if `join` emits also single operations. */
  rondo_status (*emit)(rondo_emitter *emitter, const rondo_operation *operation);

  const rondo_join *join; /* NULL: operations of the row are never joined */
};

/* Defines a row of the table: its name, then fields as in an initializer. */
#define RONDO_OPERATOR(operator, ...) \
  const rondo_operator rondo_operator_##operator= { .name = #operator, __VA_ARGS__ }

/* The table; *out_count rows. */
const rondo_operator *const *rondo_operator_table(size_t *out_count);

/* Whether it runs with the updates, after all other operators. */
static inline bool rondo_operator_is_update(const rondo_operator *row) { return row->updates != 0 || row->is_late; }

/* Whether the operation changes its input `input`, a state. */
static inline bool rondo_operation_updates(const rondo_operation *operation, uint32_t input) {
  return (operation->row->updates >> input & 1u) != 0;
}

/* Whether the flag of any result is set. `flags` is indexed by value. */
static inline bool rondo_operation_makes_any(const rondo_operation *operation, const bool *flags) {
  for (uint32_t r = 0; r < operation->row->result_count; r++)
    if (flags[operation->results[r]]) return true;
  return false;
}

/* The number of inputs of a row, required and optional. */
uint32_t rondo_operator_input_count(const rondo_operator *row);

#endif
