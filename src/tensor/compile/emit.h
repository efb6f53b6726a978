/* SPDX-License-Identifier: MIT
 * What an operator's `emit` works with: addresses and shapes of its values, and the steps it adds. Called once, when a
 * program is compiled; what it adds is played again for the warm-up, the capture and every run, in the same order and
 * with the same arguments.
 */
#ifndef RONDO_TENSOR_COMPILE_EMIT_H
#define RONDO_TENSOR_COMPILE_EMIT_H

#include "tensor/compile/chain_plan.h"
#include "tensor/compile/resources.h"
#include "tensor/program/operator.h"

/* The address and shape of an input or result of the operation; NULL for RONDO_NO_VALUE. */
void *rondo_emit_address(const rondo_emitter *emitter, uint32_t value);
const rondo_shape *rondo_emit_shape(const rondo_emitter *emitter, uint32_t value);

/* For what an emit needs while it runs. */
const rondo_allocator *rondo_emit_allocator(const rondo_emitter *emitter);

/* Whether the device runs kernels from their CUDA source, in blocks of threads. */
bool rondo_emit_is_cuda(const rondo_emitter *emitter);

/* How many things a block takes, at least 1: on a CPU, so many that they take some microseconds; on CUDA, where a block
 * has many threads, at least one for each thread or team of threads. */
typedef struct rondo_grain {
  size_t cpu, cuda;
} rondo_grain;

/* As many blocks as `count` things give at the device's grain, at most 4096. */
rondo_grid rondo_emit_grid(const rondo_emitter *emitter, size_t count, rondo_grain grain);

/* Adds a kernel. `code` is static; the arguments' values are copied (RONDO_ARGS). */
RONDO_MUST_USE rondo_status rondo_emit_kernel(rondo_emitter *emitter, const rondo_kernel_options *code, rondo_grid grid,
                                              const void *const *args, size_t arg_count);

/* The chain that is being emitted (rondo_operator_chain). */
const rondo_chain *rondo_emit_chain(const rondo_emitter *emitter);
void rondo_emit_chain_name(const rondo_emitter *emitter, char *buffer, size_t room);

/* Adds a kernel of code that was made for this program; kernels of the same key are one. `code`, key and name, which is
 * what the step is called, are copied. */
RONDO_MUST_USE rondo_status rondo_emit_made_kernel(rondo_emitter *emitter, const rondo_kernel_options *code,
                                                   const char *key, const char *name, rondo_grid grid,
                                                   const void *const *args, size_t arg_count);

/* Adds a call that queues its own work on the stream, as library work does. It must queue the same work each time and
 * take what it needs from `resources`, so that nothing is made ready while capturing (FW-2). user: `user_bytes` bytes,
 * copied. */
typedef rondo_status (*rondo_step_call)(rondo_resources *resources, rondo_stream *stream, const void *user);
RONDO_MUST_USE rondo_status rondo_emit_call(rondo_emitter *emitter, rondo_step_call call, const void *user,
                                            size_t user_bytes);

/* An argument of an operation's kernel, or those of its gate or index check. */
typedef enum rondo_operand_kind {
  RONDO_OPERAND_VALUE, /* the address of an input or result; NULL for one that is left out */
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

/* Adds a kernel of the operation with these arguments, at most RONDO_MOST_ARGUMENTS. */
#define RONDO_MOST_ARGUMENTS 16
RONDO_MUST_USE rondo_status rondo_emit_operands(rondo_emitter *emitter, const rondo_operation *operation,
                                                const rondo_kernel_options *code, rondo_grid grid,
                                                const rondo_operand *operands, size_t count);

/* The value of an operation with this number: an input, or RONDO_RESULT_NUMBER. */
static inline uint32_t rondo_operand_value(const rondo_operation *operation, uint32_t number) {
  return number < RONDO_MAX_OPERANDS ? operation->inputs[number] : operation->results[number - RONDO_MAX_OPERANDS];
}

/* What the operation's `prepare` asked for, at 256; NULL when that was nothing. */
void *rondo_emit_workspace(const rondo_emitter *emitter);

/* The product that `prepare` made ready for the operation; NULL when no library makes it. */
rondo_product *rondo_emit_product(const rondo_emitter *emitter);
rondo_convolution *rondo_emit_convolution(const rondo_emitter *emitter); /* likewise */
void *rondo_emit_object(const rondo_emitter *emitter);                   /* what it kept (rondo_resources_add_object) */

/* Where the operation's kernels say that an index is not in 0 .. bound - 1 (rondo_check_index): four arguments of the
 * kernel, RONDO_CHECK_ARGUMENTS, whose parameters are RONDO_CHECK_PARAMETERS. It makes the run fail: the host looks at
 * the cell when it waits, and updates look at the mark (tensor/run/index_check.h). `input` is the operation's input
 * that holds the indices. At most one an operation. */
typedef struct rondo_check_memory {
  void *cell;
  void *run, *mark; /* of the gate; NULL: there is none */
  void *begun;      /* where the number of the run goes; NULL: another kernel writes it */
} rondo_check_memory;
#define RONDO_CHECK_PARAMETERS RONDO_UPDATES, RONDO_READS, RONDO_UPDATES, RONDO_UPDATES
#define RONDO_CHECK_ARGUMENTS(memory) &(memory).cell, &(memory).run, &(memory).mark, &(memory).begun
RONDO_MUST_USE rondo_status rondo_emit_index_check(rondo_emitter *emitter, uint32_t input, size_t bound,
                                                   rondo_check_memory *out);

/* What an update's kernel looks at before it changes a state (rondo_may_update): its first three arguments, behind the
 * table of joined operations. Every kernel that changes a state has them. */
typedef struct rondo_gate_memory {
  uint32_t count; /* of marks; 0: nothing can fail */
  void *marks;
  void *next; /* where the number of the next run goes; NULL: another kernel writes it */
} rondo_gate_memory;
#define RONDO_GATE_PARAMETERS RONDO_SCALAR(uint32_t), RONDO_READS, RONDO_UPDATES
#define RONDO_GATE_ARGUMENTS(gate) &(gate).count, &(gate).marks, &(gate).next
#define RONDO_GATE_COUNT 3 /* so many arguments */
rondo_gate_memory rondo_emit_gate(rondo_emitter *emitter);

#endif
