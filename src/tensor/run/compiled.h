/* SPDX-License-Identifier: MIT
 * The inside of a compiled program: its memory, the steps of a run with their arguments, the recorded graph and exec,
 * memory for writes, staged values, and the cells of index checks. It may share its stream, states, arena and kernels
 * with others (tensor/run/sharing.h). It does not use the program that it was compiled from. Addresses never change.
 */
#ifndef RONDO_TENSOR_RUN_COMPILED_H
#define RONDO_TENSOR_RUN_COMPILED_H

#include <rondo/capture.h>

#include "device/device.h"
#include "exec/cost/recording_gain.h"
#include "tensor/compile/emit.h"
#include "tensor/compile/operator_edges.h"
#include "tensor/compile/rewrite/rewritten_program.h"
#include "tensor/run/arena_values.h"
#include "tensor/run/eager_run.h"
#include "tensor/run/index_check.h"
#include "tensor/run/ranks.h"
#include "tensor/run/sharing.h"
#include "tensor/run/staged_values.h"

extern const rondo_device_use rondo_compiled_use;

/* One kernel or call of a run. */
typedef struct rondo_step {
  const char *operator_name; /* static */
  uint32_t operation;        /* its index in the program that was compiled */
  uint32_t number;           /* in the program that its user wrote, for messages */
  rondo_kernel *kernel;      /* NULL: a call */
  rondo_grid grid;
  const void **args;
  size_t *arg_bytes; /* that the kernel may access from each pointer argument, for verification */
  size_t arg_count;
  rondo_step_call call;
  void *memory; /* args, their bytes and the values, or the data of the call */
  size_t memory_bytes;
  uint32_t nodes_end; /* nodes of the recorded graph up to and with this step's */
} rondo_step;

typedef struct rondo_named_value {
  char kind; /* see rondo_compiled_value */
  char *name;
  rondo_shape shape;
  void *address;               /* NULL: the state is packed */
  rondo_packed_state *packed;  /* the sharing's; NULL: it is not */
  rondo_staged_input *input;   /* NULL: not staged; the address is the buffer's otherwise */
  rondo_staged_output *output; /* likewise */
  const char *trained_by; /* the operator that updates the state as an optimizer's, or assigns it; static; NULL: none */
  uint32_t group;         /* then, its group in the options; 0: that of the optimizer's own */
  bool is_sharded;        /* a state that each rank has a part of */
  bool is_summed;         /* a state that each rank has its own sums in */
  bool of_round;          /* a state that has no meaning between two rounds of accumulated runs */
  bool in_arena;
  bool is_lost; /* another program has used the arena since this value was written or computed */
  size_t first_mapped,
      mapped_bytes; /* of a state: bytes that are mapped from a file (tensor/files/weights_program.h) */
} rondo_named_value;

struct rondo_compiled {
  rondo_allocator allocator;
  rondo_device *device;
  char *name;  /* the program's */
  char *label; /* likewise */
  rondo_sharing *sharing;
  rondo_stream *stream; /* the sharing's */
  rondo_graph *graph;   /* NULL: not recorded */
  rondo_exec *exec;
  rondo_graph *short_graph; /* of runs that are not the last of a round (tensor/run/ranks.h); NULL: there are none, */
  rondo_exec *short_exec;   /* or the program is not recorded */
  unsigned char *states;    /* its states and cells, until they are the sharing's */
  unsigned char *own;       /* constants, and the gate */
  rondo_update_gate *gate;  /* in `own`; NULL without one */
  size_t gate_bytes;
  rondo_arena *arena; /* for inputs and results; NULL when there are none */
  bool has_lost;      /* a named value is lost */
  rondo_resources resources;
  RONDO_ARRAY(rondo_step) steps;
  uint32_t *order;    /* operations by position, and their dependencies: kept for a program that has branches but is */
  rondo_edges before; /* ... not recorded, for rondo_compiled_record_into; NULL and empty: runs are sequential */
  RONDO_ARRAY(rondo_named_value) values; /* states, cells, inputs, outputs */
  RONDO_ARRAY(rondo_held_value) held;    /* of the arena */
  rondo_index_checks checks;
  rondo_feeds feeds;
  rondo_executed executed;
  rondo_ranks ranks;
  rondo_bounce bounce;
  rondo_kernel *packer; /* of packed states; NULL: the program has none */
  rondo_compiled_info info;
  rondo_record_policy policy;
  rondo_gain_bar bar;
  rondo_gain gain;   /* what recording gains, as it was last measured or predicted */
  rondo_costs costs; /* of the device, that it was predicted with */
  bool has_gain;
  rondo_branch_policy branches; /* that it was compiled with, */
  rondo_fusion_policy fusion;   /* and these */
  char *pattern_names;          /* without_patterns of its options, */
  uint32_t without_patterns;    /* and as a rondo_pattern_set */
  rondo_pattern_counts patterns;
  bool allow_tf32, own_kernels, plain_states;
};

#ifdef NDEBUG
static inline void rondo_compiled_check(const rondo_compiled *compiled) { (void)compiled; }
#else
/* Asserts the invariant of a compiled program. Debug builds check each one after it is compiled. */
void rondo_compiled_check(const rondo_compiled *compiled);
#endif

/* The plain rows of a state, or the bytes of another value; NULL: the state is packed and has no rows. */
static inline void *rondo_named_rows(const rondo_named_value *value) {
  return value->packed == NULL ? value->address : value->packed->plain;
}

/* Enqueues one step; a failure names the operator. */
RONDO_MUST_USE rondo_status rondo_compiled_enqueue_step(rondo_compiled *compiled, const rondo_step *step,
                                                        rondo_stream *stream);

/* Enqueues a whole run, sequentially, with staged inputs and outputs. */
RONDO_MUST_USE rondo_status rondo_compiled_enqueue(rondo_compiled *compiled);

/* Adds `what`, the program and the bytes to the failure of an allocation. */
RONDO_MUST_USE rondo_status rondo_compiled_fail_memory(const rondo_compiled *compiled, rondo_status status,
                                                       const char *what, size_t bytes);

/* Waits for all runs, and fails if one of them found a wrong index. */
RONDO_MUST_USE rondo_status rondo_compiled_judge(rondo_compiled *compiled);

/* CAPTURE_REFUSED/UNSUPPORTED_CALL for a call that waits or acts at once, if the stream captures. The capture
 * continues.
 */
RONDO_MUST_USE rondo_status rondo_compiled_refuse_capturing(const rondo_compiled *compiled, const char *call);

#endif
