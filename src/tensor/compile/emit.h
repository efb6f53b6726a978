/* SPDX-License-Identifier: MIT
 * The interface for an operator's `emit`: addresses and shapes of its values, and the steps that it adds. `emit` is
 * called once, when a program is compiled. The warm-up, the capture and every run execute its steps in the same order
 * and with the same arguments.
 */
#ifndef RONDO_TENSOR_COMPILE_EMIT_H
#define RONDO_TENSOR_COMPILE_EMIT_H

#include "tensor/compile/chain_plan.h"
#include "tensor/compile/resources.h"
#include "tensor/program/operator.h"

const rondo_program *rondo_emit_program(const rondo_emitter *emitter);

/* Of a data-parallel program. */
struct rondo_communicator *rondo_emit_communicator(const rondo_emitter *emitter);

/* The address and shape of an input or result of the operation; NULL for RONDO_NO_VALUE. */
void *rondo_emit_address(const rondo_emitter *emitter, uint32_t value);
const rondo_shape *rondo_emit_shape(const rondo_emitter *emitter, uint32_t value);

/* For temporary memory of an emit. */
const rondo_allocator *rondo_emit_allocator(const rondo_emitter *emitter);

/* Whether the device runs kernels from their CUDA source, in blocks of threads. */
bool rondo_emit_is_cuda(const rondo_emitter *emitter);

/* How many items a block processes, at least 1: on a CPU, enough for some microseconds of work; on CUDA, at least one
 * for each thread or group of threads of the block. */
typedef struct rondo_grain {
  size_t cpu, cuda;
} rondo_grain;

/* The blocks for `count` items at the device's grain, at most 4096. */
rondo_grid rondo_emit_grid(const rondo_emitter *emitter, size_t count, rondo_grain grain);

/* Adds a kernel. `code` is static. The values of the arguments are copied (RONDO_ARGS). */
RONDO_MUST_USE rondo_status rondo_emit_kernel(rondo_emitter *emitter, const rondo_kernel_options *code, rondo_grid grid,
                                              const void *const *args, size_t arg_count);

/* The chain that is being emitted (rondo_operator_chain), a chain of the elementwise operator that is being emitted
 * alone, and the name of a chain. */
const rondo_chain *rondo_emit_chain(const rondo_emitter *emitter);
rondo_chain rondo_emit_chain_of_one(const rondo_emitter *emitter);
void rondo_emit_chain_name(const rondo_emitter *emitter, const rondo_chain *chain, char *buffer, size_t capacity);

/* Adds a kernel of generated code. Code with the same key is compiled once. `code`, key and name, the name of the step,
 * are copied. */
RONDO_MUST_USE rondo_status rondo_emit_made_kernel(rondo_emitter *emitter, const rondo_kernel_options *code,
                                                   const char *key, const char *name, rondo_grid grid,
                                                   const void *const *args, size_t arg_count);

/* Whether the code with this key was made already, so that its source is not needed. */
bool rondo_emit_is_made(const rondo_emitter *emitter, const char *key);

/* Adds a call that enqueues its own work on the stream, such as a library call. It must enqueue the same work each
 * time, and take what it needs from `resources`, so that nothing is prepared while capturing (FW-2). Except in programs
 * of several ranks it must write to no state, because compiling may run it alone. user: `user_bytes` bytes, copied. */
typedef rondo_status (*rondo_step_call)(rondo_resources *resources, rondo_stream *stream, const void *user);
RONDO_MUST_USE rondo_status rondo_emit_call(rondo_emitter *emitter, rondo_step_call call, const void *user,
                                            size_t user_bytes);

/* An argument of a kernel, or the arguments of its gate or index check. */
typedef enum rondo_operand_kind {
  RONDO_OPERAND_VALUE, /* the address of an input or result; NULL: it is left out */
  RONDO_OPERAND_WORKSPACE,
  RONDO_OPERAND_OBJECT, /* a scalar, or an address that the emit computed */
  RONDO_OPERAND_GATE,   /* RONDO_GATE_PARAMETERS */
  RONDO_OPERAND_CHECK   /* RONDO_CHECK_PARAMETERS */
} rondo_operand_kind;

typedef struct rondo_operand {
  rondo_operand_kind kind;
  uint32_t number;    /* VALUE: an input, or RONDO_RESULT_NUMBER; CHECK: the input that holds the indices */
  size_t bound;       /* CHECK */
  const void *object; /* OBJECT: where it is; its value is copied */
} rondo_operand;

#define RONDO_RESULT_NUMBER(result) (RONDO_MAX_OPERANDS + (result))
#define RONDO_INPUT(input) \
  { .kind = RONDO_OPERAND_VALUE, .number = (input) }
#define RONDO_RESULT(result) \
  { .kind = RONDO_OPERAND_VALUE, .number = RONDO_RESULT_NUMBER(result) }
#define RONDO_WORKSPACE \
  { .kind = RONDO_OPERAND_WORKSPACE }
#define RONDO_OBJECT(thing) \
  { .kind = RONDO_OPERAND_OBJECT, .object = &(thing) }
#define RONDO_GATE \
  { .kind = RONDO_OPERAND_GATE }
#define RONDO_CHECK(input, limit) \
  { .kind = RONDO_OPERAND_CHECK, .number = (input), .bound = (limit) }
#define RONDO_OPERANDS(...) \
  (const rondo_operand[]){__VA_ARGS__}, sizeof((const rondo_operand[]){__VA_ARGS__}) / sizeof(rondo_operand)

/* Adds a kernel of the operation with these arguments, at most RONDO_MAX_PARAMETERS. */
RONDO_MUST_USE rondo_status rondo_emit_operands(rondo_emitter *emitter, const rondo_operation *operation,
                                                const rondo_kernel_options *code, rondo_grid grid,
                                                const rondo_operand *operands, size_t count);

/* The value of an operation with this number: an input, or RONDO_RESULT_NUMBER. */
static inline uint32_t rondo_operand_value(const rondo_operation *operation, uint32_t number) {
  return number < RONDO_MAX_OPERANDS ? operation->inputs[number] : operation->results[number - RONDO_MAX_OPERANDS];
}

/* The workspace that the operation's `prepare` requested, aligned to RONDO_PART_ALIGNMENT; NULL: none. */
void *rondo_emit_workspace(const rondo_emitter *emitter);

/* Parts of a workspace, which `prepare` places one after another. _place_part: *out is the offset of a part of rows *
 * columns elements, from which *end becomes that of the next; false: the sizes do not fit a size_t. _emit_part: the
 * address of the part at an offset. */
#define RONDO_PART_ALIGNMENT 256
bool rondo_place_part(size_t *end, size_t rows, size_t columns, size_t element_bytes, size_t *out);
void *rondo_emit_part(const rondo_emitter *emitter, size_t offset);

/* What `prepare` prepared for the operation; NULL: no library is used for it. */
rondo_product *rondo_emit_product(const rondo_emitter *emitter);
rondo_convolution *rondo_emit_convolution(const rondo_emitter *emitter); /* likewise */
void *rondo_emit_object(const rondo_emitter *emitter);                   /* rondo_resources_add_object */

/* Adds the call of that product, with its memory. */
RONDO_MUST_USE rondo_status rondo_emit_product_call(rondo_emitter *emitter, const rondo_product_memory *memory);

/* Memory in which the operation's kernels report an index outside of 0 .. bound - 1 (rondo_check_index): four arguments
 * of the kernel, RONDO_CHECK_ARGUMENTS, with the parameters RONDO_CHECK_PARAMETERS. The run then fails: the host reads
 * the cell when it waits, and updates read the mark (tensor/run/index_check.h). `input` is the operation's input with
 * the indices. At most RONDO_MAX_CHECKS for each operation. With a bound of 0, the index is that of a rank on which the
 * run failed. */
#define RONDO_MAX_CHECKS 3
typedef struct rondo_check_memory {
  void *cell;
  void *run, *mark; /* of the gate; NULL: there is none */
  void *begun;      /* receives the number of the run; NULL: another kernel writes it */
} rondo_check_memory;
#define RONDO_CHECK_PARAMETERS RONDO_UPDATES, RONDO_READS, RONDO_UPDATES, RONDO_UPDATES
#define RONDO_CHECK_ARGUMENTS(memory) &(memory).cell, &(memory).run, &(memory).mark, &(memory).begun
RONDO_MUST_USE rondo_status rondo_emit_index_check(rondo_emitter *emitter, uint32_t input, size_t bound,
                                                   rondo_check_memory *out);

/* For messages: the check that was emitted last is of rows of indices, and column i has bound i. */
void rondo_emit_index_bounds(rondo_emitter *emitter, const size_t *bounds, uint32_t columns);

/* What a kernel reads before it changes a state (rondo_may_update): its first three arguments, or those after the table
 * of joined operations. Every kernel that changes a state has them. An operation that changes none gets the marks of
 * the checks that were emitted before it. */
typedef struct rondo_gate_memory {
  uint32_t count; /* of marks; 0: nothing can fail */
  void *marks;
  void *next; /* receives the number of the next run; NULL: another kernel writes it */
} rondo_gate_memory;
#define RONDO_GATE_PARAMETERS RONDO_SCALAR(uint32_t), RONDO_READS, RONDO_UPDATES
#define RONDO_GATE_ARGUMENTS(gate) &(gate).count, &(gate).marks, &(gate).next
rondo_gate_memory rondo_emit_gate(rondo_emitter *emitter);

#endif
