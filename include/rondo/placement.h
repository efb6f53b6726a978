/* SPDX-License-Identifier: MIT
 * Placement: the operators of one program on several devices (SE-12). A *place* is a number: that of a device in the
 * list that the program is compiled for, 0 being the one where operators run of which nothing else is said. Compiling
 * divides the program into *parts*, each of one device, which is compiled as rondo_compile does and recorded on its own
 * device; what one part computes and another one reads is copied by Rondo, through host memory that both devices'
 * copies use without a detour.
 *
 *   TRY(rondo_program_state(program, "table", RONDO_F32, shape, 2, &table));
 *   TRY(rondo_program_place(program, table, 1));                       // look-ups in it run where it lies
 *   ...
 *   rondo_device *const devices[] = {gpu, cpu};
 *   TRY(rondo_compile_divided(program, devices, 2, NULL, &divided));
 *   TRY(rondo_divided_write(divided, "ids", ids, bytes));
 *   TRY(rondo_divided_run(divided));                                   // look-ups, a copy, the rest
 *   TRY(rondo_divided_read(divided, "score", scores, bytes));
 *
 * Where an operator runs is the first of these that says something; operators are looked at in the order in which they
 * were added, those that change states last:
 *   1. rondo_program_place of a result of it;
 *   2. of one that changes states: where they lie (below);
 *   3. rondo_program_place of a state that it reads;
 *   4. the first of rondo_divide_options.rules that it meets;
 *   5. of one that rondo_program_gradients or an optimizer added to pass gradients through another operator: where that
 *      one runs;
 *   6. of one that reads no state, or changes one: where all its inputs are computed, if that is one place;
 *   7. place 0.
 * A state lies where it was placed, else where the first operator runs that reads it without changing states, else
 * where the first one runs that changes it. Inputs and cells are wherever they are read. So a network whose tables were
 * placed, or whose look-ups meet a rule, has these and what is only made of them there, with their gradients and their
 * optimizer, and all else at place 0.
 *
 * Parts run one after the other, as few as the places allow (of two devices the fewest, of more as many as a greedy
 * choice finds: the next part is of the device with the operator that the longest row of changes of device waits for).
 * A run means what it means undivided (<rondo/program.h>): a state that another device reads is copied to it as it was
 * before the run. On devices of one kind the results have the same bits as undivided.
 */
#ifndef RONDO_PLACEMENT_H
#define RONDO_PLACEMENT_H

#include <rondo/program.h>
#include <rondo/weights.h>

RONDO_EXTERN_C_BEGIN

#define RONDO_MAX_PLACES 16 /* devices of a list */

/* Places the operator that computes `value`, with all its results; or a state, to lie there. The last call holds.
 * rondo_compile takes no notice of places. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, UNKNOWN_NAME (a value of
 * another program), BAD_OPTIONS (an input or cell, which are wherever they are read), OUT_OF_RANGE (place). */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_place(rondo_program *program, rondo_value value, uint32_t place);

/* Operators that meet all that a rule says run at its place; it says one thing at least. */
typedef struct rondo_placement_rule {
  const char *operator_name; /* as in messages: "embedding"; NULL: any */
  uint64_t least_bytes;      /* so many bytes of states are read at least; 0: any or none */
  uint32_t place;
  uint32_t reserved;
} rondo_placement_rule;

typedef struct rondo_divided rondo_divided;

typedef struct rondo_divide_options {
  uint32_t struct_size;
  bool share_states_only; /* as in rondo_compile_options */
  const rondo_placement_rule *rules;
  size_t rule_count;
  const rondo_compile_options *compile; /* for each part; without share and staged; may be NULL */
  rondo_divided *share; /* as in rondo_compile_options: one for the same devices, which divides into as many parts, of
                           the same devices */
} rondo_divide_options;
#define RONDO_DIVIDE_OPTIONS_INIT .struct_size = sizeof(rondo_divide_options)

/* Divides the program and compiles its parts. A device may stand in the list more than once. options may be NULL and
 * are read during the call, as the list is. Waits; disturbs no capture of another thread. Errors: INVALID_ARGUMENT with
 * NULL_ARGUMENT, OUT_OF_RANGE (no devices or more than RONDO_MAX_PLACES; a place past the list, with the operator),
 * BAD_OPTIONS (a rule that says nothing; share or staged in `compile`; an operator that was placed elsewhere than a
 * state that it changes, both named; a state placed where no operator runs), OTHER_DEVICE (share);
 * UNSUPPORTED/NO_FUNCTION (an operator without a kernel for its device: names both, and the devices of the list that
 * have one); UNSUPPORTED/NONE (a state that is read by another device between two changes of it in one run); those of
 * rondo_compile. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compile_divided(rondo_program *program, rondo_device *const *devices,
                                                            size_t device_count, const rondo_divide_options *options,
                                                            rondo_divided **out_divided);

/* Waits for its runs. Those that share with it live on. NULL is fine. Errors: as rondo_compiled_destroy; it is gone all
 * the same. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_destroy(rondo_divided *divided);

/* As rondo_compiled_write and rondo_compiled_read, by the program's names: an input or cell is written wherever it is
 * read. Errors as these; a failure that came up in any part comes out of read. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_write(rondo_divided *divided, const char *name, const void *data,
                                                          size_t bytes);
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_read(rondo_divided *divided, const char *name, void *data,
                                                         size_t bytes);

/* Runs the parts in order, recorded ones by a launch each. Waits for what one device hands over to the next, not for
 * the last part. _unrecorded: kernel by kernel, as rondo_compiled_run_unrecorded. A failure leaves the parts before it
 * run. A run that meets a wrong index changes no state on any device, as for rondo_compiled_run: before a part that
 * changes states, the parts before it that look indices up are waited for, and if one has failed, the rest of the run
 * is left out. rondo_divided_synchronize and rondo_divided_read tell it. Errors: those of rondo_compiled_run;
 * CAPTURE_REFUSED/UNSUPPORTED_CALL while a stream of it captures, with which the capture goes on: no graph is of
 * several devices. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_run(rondo_divided *divided);
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_run_unrecorded(rondo_divided *divided);

/* Waits for all of it. Errors: the first failure of a part, as rondo_compiled_synchronize. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_synchronize(rondo_divided *divided);

/* All states into the set and back, as rondo_weights_gather and rondo_weights_apply. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_gather_divided(rondo_weights *weights, rondo_divided *divided,
                                                                   bool (*only)(const char *name));
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_apply_divided(const rondo_weights *weights, rondo_divided *divided,
                                                                  bool (*only)(const char *name));

typedef struct rondo_divided_info {
  uint32_t struct_size;
  uint32_t parts;
  uint32_t copies;     /* of a run, from one part to another, */
  uint32_t crossings;  /* of them, those to another device, */
  uint64_t copy_bytes; /* ... and their bytes */
  uint64_t host_bytes; /* host memory for these; 0 before the first run */
} rondo_divided_info;

/* Thread-safe while nothing runs. Errors: INVALID_ARGUMENT. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_get_info(const rondo_divided *divided,
                                                             rondo_divided_info *out_info);

typedef struct rondo_divided_part {
  uint32_t struct_size;
  uint32_t place; /* the first of its device */
  rondo_device *device;
  rondo_compiled *compiled; /* to ask what is known of it; it goes with the whole */
  uint32_t operators;       /* of the program, views among them */
  uint32_t reserved;
} rondo_divided_part;

/* The parts, in the order in which they run. Thread-safe. Errors: INVALID_ARGUMENT; NOT_FOUND/OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_get_part(const rondo_divided *divided, size_t index,
                                                             rondo_divided_part *out_part);

/* What is handed over from one part to another. */
typedef struct rondo_divided_copy {
  uint32_t struct_size;
  uint32_t from, to; /* parts */
  bool at_beginning; /* a state, as it was before the run */
  rondo_type type;
  const char *what; /* the operator that computes it, or the state; valid as long as the divided program */
  uint64_t bytes;
} rondo_divided_copy;

/* Thread-safe. Errors: INVALID_ARGUMENT; NOT_FOUND/OUT_OF_RANGE. */
RONDO_API RONDO_MUST_USE rondo_status rondo_divided_get_copy(const rondo_divided *divided, size_t index,
                                                             rondo_divided_copy *out_copy);

RONDO_EXTERN_C_END

#endif
