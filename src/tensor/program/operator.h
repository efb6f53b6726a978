/* SPDX-License-Identifier: MIT
 * What an operator is: one row of the table. tensor/operators/README.md says how to add one. Gradient and update
 * operators are rows like all others; they only have no public function.
 *
 * Rows are constant. The functions of a row are called by one thread at a time for one program.
 */
#ifndef RONDO_TENSOR_PROGRAM_OPERATOR_H
#define RONDO_TENSOR_PROGRAM_OPERATOR_H

#include <rondo/program.h>

#define RONDO_MAX_OPERANDS 8
#define RONDO_MAX_RESULTS 8
#define RONDO_MAX_SIZES 18
#define RONDO_NO_VALUE UINT32_MAX
#define RONDO_MAX_TERMS 3 /* inputs of an operator that works element by element */

#define RONDO_TYPE_BIT(type) (1u << (type))
#define RONDO_FLOATS (RONDO_TYPE_BIT(RONDO_F32) | RONDO_TYPE_BIT(RONDO_F16) | RONDO_TYPE_BIT(RONDO_BF16))
#define RONDO_NUMBERS (RONDO_FLOATS | RONDO_TYPE_BIT(RONDO_I32) | RONDO_TYPE_BIT(RONDO_I64))

typedef struct rondo_operator rondo_operator;
typedef struct rondo_emitter rondo_emitter;
typedef struct rondo_resources rondo_resources;

/* Type and shape of a value. Dimensions past the rank are 0. */
typedef struct rondo_shape {
  rondo_type type;
  uint32_t rank;
  size_t dims[RONDO_MAX_DIMENSIONS];
} rondo_shape;

/* What an operator is told beside its inputs; each operator gives the fields its own meaning, in its file. */
typedef struct rondo_attributes {
  size_t sizes[RONDO_MAX_SIZES];
  uint32_t size_count;
  float numbers[4];
  bool flags[4];
} rondo_attributes;

/* An operator applied in a program. Inputs and results are indices of the program's values. */
typedef struct rondo_operation {
  const rondo_operator *row;
  uint32_t inputs[RONDO_MAX_OPERANDS]; /* RONDO_NO_VALUE where an optional one is left out, and past the last */
  uint32_t results[RONDO_MAX_RESULTS];
  rondo_attributes attributes;
  uint32_t place;       /* where it was placed, plus one; 0: nowhere (tensor/divide/operator_placement.h) */
  uint32_t gradient_of; /* the operation that it passes gradients through, plus one; 0: none */
} rondo_operation;

/* The loop over the inputs that an operation has. */
#define RONDO_EACH_INPUT(k, operation)              \
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) \
    if ((operation)->inputs[k] == RONDO_NO_VALUE)   \
      continue;                                     \
    else

/* Some elements that follow each other, for an operator that works element by element, on a CPU. Memory holds numbers:
 * floats, or int64_t where the type is an integer. */
typedef struct rondo_chunk_call {
  const rondo_operator *row;
  const void *terms[RONDO_MAX_TERMS]; /* numbers, so many as the result has; of an input that is not elements its
                                         address */
  rondo_type types[RONDO_MAX_TERMS], result_type;
  void *result; /* numbers, not rounded to the type; overlaps no term */
  size_t first; /* the place of the first in the result, a multiple of 16 */
  size_t count;
  float numbers[2]; /* the first of the attributes' */
  size_t size;      /* the first of the attributes' */
} rondo_chunk_call;

/* How an operator computes each element of its only result, from the elements at the same place of its inputs, which
 * are broadcast: what it takes to join it with others (tensor/compile/chain_plan.h). The function in CUDA C gets
 * numbers, and returns one; behind them come the first `numbers` of the attributes', or, where there are `others`, the
 * element's place, the first of the attributes' sizes, and the addresses of the others. */
typedef struct rondo_element {
  void (*compute)(const rondo_chunk_call *call); /* NULL: the operator is none of these */
  const char *function;                          /* its name in CUDA C */
  const char *source;                            /* text with that function */
  uint32_t numbers;
  uint32_t others; /* so many inputs, the last ones, are not elements */
} rondo_element;

/* Whether they tell an operator the same. */
bool rondo_attributes_same(const rondo_attributes *a, const rondo_attributes *b);

/* How operations of one row run as one kernel, where the schedule has them do so (tensor/compile/join_updates.h). They
 * are emitted as the first of them would be; none of them takes a workspace. */
#define RONDO_MOST_JOINED 30
typedef struct rondo_join {
  uint32_t most;          /* operations of one kernel, at most RONDO_MOST_JOINED */
  uint32_t shared;        /* bit i: input i is the same one for all of them */
  bool is_typed;          /* input 0 has one type in all of them */
  bool in_order;          /* one may read results of the one before it, whose memory is not written then */
  bool is_early;          /* they are brought forward, if they read nothing but what lasts, and not put off */
  bool of_any_attributes; /* theirs may differ */

  /* Whether the operation can be joined with others. NULL: all of the row can. */
  bool (*takes)(const rondo_program *program, const rondo_operation *operation);

  /* Says what runs for `count` operations, at least two, in their order. */
  rondo_status (*emit)(rondo_emitter *emitter, const rondo_operation *const *operations, uint32_t count);
} rondo_join;

struct rondo_operator {
  const char *name;
  const char *inputs[RONDO_MAX_OPERANDS]; /* what messages call them, up to the first NULL */
  uint32_t required;                      /* so many of the inputs; the rest may be left out */
  uint32_t result_count;
  uint32_t spare_results; /* bit i: result i is computed where something reads it, and else has no address */
  uint32_t updates;       /* bit i: input i, a state, is changed in place. Such operators run behind all others, and
                             do nothing in a run that failed (rondo_emit_gate) */
  bool is_view;           /* the result shows the bytes of the first input; nothing runs */
  bool is_in_place;    /* the result may have the bytes of input 0, where nothing else reads those: its emit finds one
                          address in both, and copies input 0 where there are two */
  bool checks_indices; /* its emit calls rondo_emit_index_check, once. Updates come behind it */
  bool always_runs;    /* also where nothing reads its results: an update relies on its index check */
  const char *index_rule; /* what is told of a wrong index beside its range; NULL: that row 0 was used instead */
  bool adds_gradients;    /* its differentiate adds to the gradient of input 0 that there is (below) */
  bool is_late;           /* one of the updates, though it changes no state: sees states as earlier updates left them */
  bool stops_gradients;   /* what its result is computed from does not count for gradients */
  uint32_t types;         /* RONDO_TYPE_BITs of input `typed_input` of a public operator; 0: only others add it */
  uint32_t typed_input;   /* where there is no input, types of the result */
  rondo_element element;
  const void *family; /* what the functions below, when several rows share them, want to know of this one; or NULL */

  /* Checks types and shapes of the inputs and gives those of the results. Errors: rondo_fail_operation. */
  rondo_status (*infer)(const rondo_program *program, const rondo_operation *operation, rondo_shape *results);

  /* Adds the operators that compute the gradients of the inputs, from those of the results; RONDO_NO_VALUE stands for a
   * gradient of zeros, in both. `operation` is the caller's copy. NULL: the operator has no gradient.
   * input_gradients holds RONDO_NO_VALUE when it is called. Only where the row says adds_gradients, entry 0 holds the
   * sum of what other readers of input 0 gave so far; the function replaces it by the sum with its own part. Operators
   * that read a part of a large value do so, because a whole tensor for each of them would cost the square of their
   * number. */
  rondo_status (*differentiate)(rondo_program *program, const rondo_operation *operation,
                                const uint32_t *result_gradients, uint32_t *input_gradients);

  /* Makes ready what `operation` (its number) wants beside kernels, into the resources, and says how many bytes of
   * scratch memory its steps need (rondo_emit_workspace). NULL: nothing, none. */
  rondo_status (*prepare)(rondo_resources *resources, const rondo_program *program, uint32_t operation,
                          size_t *out_workspace_bytes);

  /* Says what runs: kernels and calls (tensor/compile/emit.h). NULL for views. */
  rondo_status (*emit)(rondo_emitter *emitter, const rondo_operation *operation);

  const rondo_join *join; /* NULL: each runs by itself */
};

/* Defines a row of the table: its name, and then fields as in an initialiser. */
#define RONDO_OPERATOR(operator, ...) \
  const rondo_operator rondo_operator_##operator= { .name = #operator, __VA_ARGS__ }

/* The table; *out_count rows. */
const rondo_operator *const *rondo_operator_table(size_t *out_count);

/* Whether it belongs to the updates, which come behind all that computes. */
static inline bool rondo_operator_is_update(const rondo_operator *row) { return row->updates != 0 || row->is_late; }

/* Whether the operation changes its input `input`, a state. */
static inline bool rondo_operation_updates(const rondo_operation *operation, uint32_t input) {
  return (operation->row->updates >> input & 1u) != 0;
}

/* Inputs of a row, required and optional. */
uint32_t rondo_operator_input_count(const rondo_operator *row);

#endif
