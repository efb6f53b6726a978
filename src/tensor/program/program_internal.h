/* SPDX-License-Identifier: MIT
 * The inside of a program: values and operations, append only. An operation comes after its inputs, so the order of
 * adding is an order of execution. A value's public tag has the program's serial number in its upper half and its index
 * plus one in the lower half, so that a tag of another program is detected.
 *
 * A public call that fails halfway rolls the program back to its state before the call (rondo_program_mark).
 * Thread-compatible; serial numbers come from a process-wide atomic counter.
 */
#ifndef RONDO_TENSOR_PROGRAM_PROGRAM_INTERNAL_H
#define RONDO_TENSOR_PROGRAM_PROGRAM_INTERNAL_H

#include <rondo/operators.h>

#include "base/array.h"
#include "base/error.h"
#include "tensor/program/operator.h"

typedef enum rondo_value_kind {
  RONDO_VALUE_INPUT,
  RONDO_VALUE_STATE,
  RONDO_VALUE_CELL,
  RONDO_VALUE_CONSTANT, /* never changes and has no name: a scalar F32, or a tensor with elements */
  RONDO_VALUE_RESULT
} rondo_value_kind;

/* The kind in rondo_compiled_value; 0: it has none. */
static inline char rondo_value_letter(rondo_value_kind kind) {
  static const char letters[] = {
      [RONDO_VALUE_INPUT] = 'i', [RONDO_VALUE_STATE] = 's', [RONDO_VALUE_CELL] = 'c', [RONDO_VALUE_RESULT] = '\0'};
  return letters[kind];
}

/* Of elements in files that may be mapped: at least a page of every system, and the bytes from which on it is worth the
 * gaps between states. */
#define RONDO_FILE_ALIGNMENT 65536
#define RONDO_LEAST_MAPPED ((size_t)1 << 20)

typedef struct rondo_program_value {
  rondo_value_kind kind;
  rondo_shape shape;
  char *name;            /* inputs, states and cells; else NULL */
  float initial;         /* of F32 states, cells and scalar constants: all elements; else 0 */
  void *elements;        /* of a constant that is a tensor; else NULL */
  bool is_borrowed;      /* they are the caller's, and do not change; else they are the program's own */
  bool trained;          /* a state that an optimizer updates, */
  uint32_t group;        /* and its group: 0 is that of the optimizer's own options */
  bool frozen;           /* a state that no optimizer may update */
  bool is_sparse;        /* a state whose optimizer updates the rows alone that look-ups read */
  size_t max_indices;    /* of a sparse state (rondo_state_options) */
  bool is_assigned;      /* a state that becomes a value at the end of a run; nothing else changes it */
  bool of_optimizer;     /* a state that an optimizer added for each trained one: moments, sums of gradients */
  bool is_sharded;       /* such a state that each rank has a part of */
  bool is_summed;        /* such a state that each rank has its own sums in */
  bool of_round;         /* such a state that has no meaning between two rounds of accumulated runs */
  size_t table_rows;     /* rows of all ranks of a table of which this state has a part, or a companion of one
                            (sharded_table.h); 0: it is whole */
  float capacity_factor; /* of such a table (rondo_state_options) */
  uint32_t operation;    /* results: the operation that computes it */
  uint32_t view_of;      /* the value whose bytes it views; RONDO_NO_VALUE: it has its own bytes */
  uint32_t readers;      /* how many inputs of operations, and outputs, refer to it */
  bool is_in_file;       /* a state whose elements are in a file, from which they may be mapped, */
  uint32_t file_offset;  /* at this offset there, modulo RONDO_FILE_ALIGNMENT */
  uint32_t place; /* states: index in the device list, plus one; 0: not placed (tensor/divide/operator_placement.h) */
} rondo_program_value;

typedef struct rondo_named_output {
  char *name;
  uint32_t value;
} rondo_named_output;

/* One of the states that a flat state of an optimizer stands for: "<name of the parameter><suffix>", of its shape,
 * whose elements are those from `offset` on of the flat states of all ranks, one after the other. */
typedef struct rondo_shard {
  uint32_t state, parameter;
  const char *suffix; /* static */
  size_t offset;
} rondo_shard;

/* What makes a program data-parallel (buckets.c). */
typedef struct rondo_program_ranks {
  struct rondo_communicator *communicator; /* the caller's; NULL: the program is not data-parallel, and the rest is 0 */
  uint32_t rank, count;
  bool shard_states;
  uint64_t bucket_bytes;
  char *loss_output;    /* NULL: none */
  uint64_t fingerprint; /* of what must be the same on all ranks, as far as the optimizer's last value and operation */
  size_t identified_values, identified_operations; /* how many that are; 0: there is no optimizer */
  uint32_t turn; /* the last collective's result that the next one reads; RONDO_NO_VALUE: none */
  uint32_t buckets;
  uint64_t reduced_bytes; /* of the collectives of a run */
  /* With accumulated gradients, operations first_last .. end_last - 1 are only in the last of `round` runs, and `runs`
   * is the state that counts what was accumulated. Otherwise there are none. */
  uint32_t round, runs;
  size_t first_last, end_last;
  RONDO_ARRAY(rondo_shard) shards;
} rondo_program_ranks;

struct rondo_program {
  rondo_allocator allocator;
  char *name;
  char *label; /* for messages: "program 'mlp'", "the program" without a name */
  uint32_t serial;
  const char *optimizer; /* the name of its updates' row; NULL: the program has none */
  bool has_gradients;    /* rondo_program_gradients added some */
  rondo_program_ranks ranks;
  RONDO_ARRAY(rondo_program_value) values;
  RONDO_ARRAY(rondo_operation) operations;
  RONDO_ARRAY(rondo_named_output) outputs;
};

/* The state that counts the accumulated runs of a round; 0 between two rounds. */
#define RONDO_ROUND_STATE "gradient.runs"

/* The size of a buffer for the description of a value or an operation. */
#define RONDO_CALL_TEXT 512

/* For rondo_require_input and similar functions: any rank is accepted. */
#define RONDO_ANY_RANK UINT32_MAX

/* The size of a program at some time. */
typedef struct rondo_program_mark {
  size_t values, operations, outputs, turn; /* the last is that of the ranks */
} rondo_program_mark;

#endif
