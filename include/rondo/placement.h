/* SPDX-License-Identifier: MIT
 * Placement: the operators of one program on several devices (SE-12). A *place* is the index of a device in the list
 * that the program is compiled for. Place 0 is the default. Compiling divides the program into *parts*, each for one
 * device. Each part is compiled as rondo_compile does, and recorded on its own device. If one part reads what another
 * part computes, Rondo copies it, through host memory that the copies of both devices can use directly.
 *
 *   TRY(rondo_program_state(program, "table", RONDO_F32, shape, 2, &table));
 *   TRY(rondo_program_place(program, table, 1));                       // its look-ups run on the CPU
 *   ...
 *   rondo_device *const devices[] = {gpu, cpu};
 *   TRY(rondo_compile_divided(program, devices, 2, NULL, &divided));
 *   TRY(rondo_divided_write(divided, "ids", ids, bytes));
 *   TRY(rondo_divided_run(divided));                                   // look-ups, a copy, the rest
 *   TRY(rondo_divided_read(divided, "score", scores, bytes));
 *
 * The place of an operator is given by the first of these rules that applies. Operators are placed in the order in
 * which they were added; operators that change states come last:
 *   1. rondo_program_place of one of its results;
 *   2. for an operator that changes states: where these states are stored (below);
 *   3. rondo_program_place of a state that it reads;
 *   4. the first rule of rondo_divide_options.rules that matches it;
 *   5. for an operator that rondo_program_gradients or an optimizer added to pass gradients through another operator:
 *      the place of that operator;
 *   6. for an operator that reads no state, or changes one: the place where all its inputs are computed, if it is one
 *      place;
 *   7. place 0.
 * A state is stored where it was placed; otherwise at the place of the first operator that reads it without changing
 * states; otherwise at the place of the first operator that changes it. Inputs and cells are copied to every place
 * where they are read. So if tables were placed, or their look-ups match a rule, then the tables, the look-ups,
 * everything that is computed only from them, their gradients and their optimizer are there, and everything else is at
 * place 0.
 *
 * Parts run one after the other. There are as few as the places allow (for two devices the minimum; for more, as many
 * as a greedy choice finds: the next part is for the device whose operator has the longest chain of device changes
 * after it). A run has the same meaning as without division (<rondo/program.h>): a state that another device reads is
 * copied as it was before the run. On devices of one kind, the results have the same bits as without division.
 *
 * Component: rondo-tensor.
 */
#ifndef RONDO_PLACEMENT_H
#define RONDO_PLACEMENT_H

#include <rondo/program.h>
#include <rondo/weights.h>

RONDO_EXTERN_C_BEGIN

#define RONDO_MAX_PLACES 16 /* maximum number of devices in a list */

/* Places the operator that computes `value`, with all its results, or stores a state at a place. The last call counts.
 * rondo_compile ignores places. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, UNKNOWN_NAME (a value of another program),
 * BAD_OPTIONS (an input or cell, which are wherever they are read), OUT_OF_RANGE (place). */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_place(rondo_program *program, rondo_value value, uint32_t place);

/* Operators that match all conditions of a rule run at its place. A rule has at least one condition. */
typedef struct rondo_placement_rule {
  const char *operator_name; /* as in messages: "embedding"; NULL: any */
  uint64_t least_bytes;      /* minimum number of bytes of states that the operator reads; 0: no condition */
  uint32_t place;
  uint32_t reserved;
} rondo_placement_rule;

typedef struct rondo_divided rondo_divided;

typedef struct rondo_divide_options {
  uint32_t struct_size;
  bool share_states_only; /* as in rondo_compile_options */
  const rondo_placement_rule *rules;
  size_t rule_count;
  const rondo_compile_options *compile; /* for each part; without share, staged and stream; may be NULL */
  rondo_divided *share; /* as in rondo_compile_options: a program for the same devices, divided into as many parts, of
                           the same devices */
} rondo_divide_options;
#define RONDO_DIVIDE_OPTIONS_INIT .struct_size = sizeof(rondo_divide_options)

/* Divides the program and compiles its parts. A device may be in the list more than once. options may be NULL; options
 * and list are read during the call. Waits; does not disturb captures of other threads. Errors: INVALID_ARGUMENT with
 * NULL_ARGUMENT, OUT_OF_RANGE (no devices or more than RONDO_MAX_PLACES; a place that is not in the list, with the
 * operator), BAD_OPTIONS (a rule without a condition; share or staged in `compile`; an operator that was placed away
 * from a state that it changes, both named; a state that is placed where no operator runs), OTHER_DEVICE (share);
 * UNSUPPORTED/NO_FUNCTION (an operator without a kernel for its device; names both, and the devices of the list that
 * have one); UNSUPPORTED/NONE (an operator on another device reads a state between two changes of it in one run); those
 * of rondo_compile. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compile_divided(rondo_program *program, rondo_device *const *devices,
                                                            size_t device_count, const rondo_divide_options *options,
                                                            rondo_divided **out_divided);

/* Waits for the runs and frees the divided program. Programs that share memory with it live on. NULL is fine. Errors:
 * as rondo_compiled_destroy; it is freed nevertheless. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_destroy(rondo_divided *divided);

/* Like rondo_compiled_write and rondo_compiled_read, by the program's names. An input or cell is written at every place
 * where it is read. Errors as these; read returns a failure of any part. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_write(rondo_divided *divided, const char *name, const void *data,
                                                          size_t bytes);
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_read(rondo_divided *divided, const char *name, void *data,
                                                         size_t bytes);

/* Runs the parts in order; each recorded part is one launch. Waits for the data that one device passes to the next, not
 * for the last part. _eager runs eagerly, as rondo_compiled_run_eager. If a part fails, the parts before it have run. A
 * run that finds an index out of range changes no state on any device, as for rondo_compiled_run: before a part that
 * changes states, the run waits for the earlier parts that look up indices, and stops if one of them has failed.
 * rondo_divided_synchronize and rondo_divided_read return that failure. Errors: those of rondo_compiled_run;
 * CAPTURE_REFUSED/UNSUPPORTED_CALL while one of its streams captures, because a run waits on the host; the capture
 * continues. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_run(rondo_divided *divided);
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_run_eager(rondo_divided *divided);

/* Waits for all parts. Errors: the first failure of a part, as rondo_compiled_synchronize. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_synchronize(rondo_divided *divided);

/* Copies all states to the set and back, as rondo_weights_gather and rondo_weights_apply. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_gather_divided(rondo_weights *weights, rondo_divided *divided,
                                                                   rondo_weight_filter only, void *user);
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_apply_divided(const rondo_weights *weights, rondo_divided *divided,
                                                                  rondo_weight_filter only, void *user);

typedef struct rondo_divided_info {
  uint32_t struct_size;
  uint32_t parts;
  uint32_t copies;     /* of a run, from one part to another */
  uint32_t crossings;  /* ... of these, those to another device */
  uint64_t copy_bytes; /* bytes of these crossings */
  uint64_t host_bytes; /* host memory for the crossings; 0 before the first run */
} rondo_divided_info;

/* Thread-safe while nothing runs. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_get_info(const rondo_divided *divided,
                                                             rondo_divided_info *out_info);

typedef struct rondo_divided_part {
  uint32_t struct_size;
  uint32_t place; /* the first of its device */
  rondo_device *device;
  rondo_compiled *compiled; /* for queries; destroyed with the divided program */
  uint32_t operators;       /* of the program, including views */
  uint32_t reserved;
} rondo_divided_part;

/* The parts, in the order in which they run. Thread-safe. Errors: INVALID_ARGUMENT; NOT_FOUND/OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_get_part(const rondo_divided *divided, size_t index,
                                                             rondo_divided_part *out_part);

/* A copy from one part to another. */
typedef struct rondo_divided_copy {
  uint32_t struct_size;
  uint32_t from, to; /* parts */
  bool at_beginning; /* a state with its value before the run */
  rondo_type type;
  const char *what; /* the operator that computes it, or the state; valid as long as the divided program */
  uint64_t bytes;
} rondo_divided_copy;

/* Thread-safe. Errors: INVALID_ARGUMENT; NOT_FOUND/OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_get_copy(const rondo_divided *divided, size_t index,
                                                             rondo_divided_copy *out_copy);

RONDO_EXTERN_C_END

#endif
