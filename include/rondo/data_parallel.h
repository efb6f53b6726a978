/* SPDX-License-Identifier: MIT
 * Data-parallel training (MM-4): the ranks of a communicator train one program together. Each rank writes its own part
 * of a batch, computes gradients of it, and updates its states with the mean gradients of all ranks.
 *
 *   TRY(rondo_op_cross_entropy(program, logits, labels, &loss));
 *   TRY(rondo_program_data_parallel(program, communicator, NULL));   // before the optimizer
 *   TRY(rondo_program_adam(program, loss, &adam));
 *   TRY(rondo_compile(program, device, NULL, &compiled));            // on all ranks at the same time
 *   ... write the initial states on rank 0 ...
 *   TRY(rondo_compiled_broadcast(compiled, 0));
 *   for (...) {
 *     TRY(rondo_compiled_write(compiled, "tokens", part_of_this_rank, bytes));
 *     TRY(rondo_compiled_run(compiled));
 *   }
 *
 * Buckets. Gradients are collected in buckets, in the order in which the backward computes them. When a bucket is
 * complete, it is reduced while the backward goes on: in the recorded graph, the collective is a branch of its own,
 * also if the rest of the program has no branches (unless it is compiled with RONDO_BRANCHES_NEVER). Collectives
 * execute in the same order on all ranks. With a divided table that is trained, buckets wait until its gradients were
 * sent. Eager runs execute one operator after the other, and overlap nothing, without an executor.
 *
 * Losses and other outputs are those of the rank's own part, except loss_output, which costs a collective. With equal
 * parts, the mean of the losses of all ranks is the loss of the whole batch, and training proceeds as on one rank with
 * the whole batch, up to rounding: sums are grouped differently. With the same number of ranks, options and engine,
 * every run has the same bits. What depends on more than one row of a batch, such as batch_norm, sees the rank's part
 * only.
 *
 * Calls. All ranks make the same calls in the same order: rondo_compile, rondo_compiled_recompile, runs,
 * rondo_compiled_broadcast, rondo_checkpoint_gather and rondo_weights_gather. These wait for the other ranks, so ranks
 * of one process need a thread each. Other calls concern one rank. The communicator must outlive the compiled programs,
 * and execute no other collectives while one of them runs.
 *
 * Tables. The ranks divide the rows of an embedding table that is declared with shard_rows (<rondo/program.h>) after
 * rondo_program_data_parallel, with the shape of the whole table (MM-3):
 *
 *   const rondo_state_options divided = {RONDO_STATE_OPTIONS_INIT, .shard_rows = true};
 *   TRY(rondo_program_state_with(program, "table", RONDO_F32, (size_t[]){ROWS, WIDTH}, 2, &divided, &table));
 *   TRY(rondo_op_embedding(program, table, tokens, &vectors));       // tokens of this rank, rows of all
 *
 * Rank r has the rows from r * part on, where part is ROWS / N, rounded up. The state of a rank has part rows, of which
 * the last ranks may not use some: rondo_compiled_write and _read are of these. rondo_op_embedding and
 * rondo_op_embedding_bag look rows up on all ranks, and no other operator takes the table. An all-to-all sends a rank's
 * indices to the owners of their rows, another brings the rows back, and a third, in the backward, sends the gradients
 * to the owners, which add them in one order: with the same number of ranks, every run has the same bits. An optimizer
 * updates the rows of its rank only, with the gradient of the mean loss, so tables are in no bucket. Checkpoints and
 * sets of weights have the whole table; rondo_checkpoint_gather and rondo_weights_gather collect it, and applying takes
 * this rank's rows. rondo_compiled_broadcast leaves tables as they are.
 *
 * Messages have one size, whatever the indices are: of n indices of a look-up, up to `slots` may belong to one owner,
 * and N * slots rows are sent and received. slots is n, or capacity_factor * n / N, rounded up, if that is less. If an
 * owner has no slot left, the run fails on all ranks, as by a wrong index. Sorted or frequent indices need more slots
 * than random ones, for which a factor of 2 is ample if n / N is large. A program that is data-parallel, has such a
 * table and no optimizer can be compiled too; there, a wrong index makes the run fail on its own rank only.
 *
 * A wrong index on any rank makes the run fail on all ranks: no state changes anywhere, and the other ranks' calls
 * return EXECUTION_FAILED/OUT_OF_RANGE and name the rank. An update that is skipped because a gradient is not finite is
 * skipped on all ranks.
 *
 * Accumulation. With rondo_gradient_options.accumulate, each rank sums its own gradients, and only the last run of a
 * round reduces the sums. The other runs are shorter: they have no collectives but the check of all ranks, loss_output
 * and look-ups in tables, for which they have a recording of their own. Ranks count their calls of rondo_compiled_run
 * and _run_eager, so a run that fails is one of its round, and the update takes the mean of the runs that did not fail.
 * If the last run fails, there is no update, and the sums go on into the next round. The outputs of norm_output and of
 * a schedule have a value after the last run of a round only. The sums are not sharded; checkpoints have the mean of
 * all ranks. Launches of rondo_compiled_exec are last runs, and are not counted.
 *
 * Of sparse tables whose rows are divided, each rank keeps the rows that were read and their gradients, in slots for
 * 2 * accumulate - 1 runs: those of a round and of one before it whose last run failed. If the last run of the next
 * round fails, too, the sums begin again after that number of runs. Checkpoints have the slots only within a round;
 * they then resume with the same number of ranks.
 *
 * Component: rondo-tensor.
 */
#ifndef RONDO_DATA_PARALLEL_H
#define RONDO_DATA_PARALLEL_H

#include <rondo/collective.h>
#include <rondo/program.h>

RONDO_EXTERN_C_BEGIN

/* shard_states: each rank keeps and updates 1/N of the optimizer's states (Rajbhandari et al. 2020, ZeRO stage 1).
 * Gradients are then reduced by a reduce-scatter, and the updated parameters are gathered by an all-gather at the end
 * of the run. Where both reductions of an engine have the same bits, as between ranks of one process, training has the
 * same bits as without. The states "<name>.m", "<name>.v" and "<name>.momentum" are in flat states
 * "bucket.<number>.m", ... of this rank's part. Checkpoints have them under their own names, of full shape, as without:
 * rondo_checkpoint_gather collects them from all ranks, and rondo_checkpoint_apply takes this rank's part. So a
 * checkpoint resumes with another number of ranks, with or without shard_states. */
typedef struct rondo_data_parallel_options {
  uint32_t struct_size;
  bool shard_states;
  uint64_t bucket_bytes;   /* of gradients in F32; a larger one has a bucket of its own; 0 = 25 MiB, as in PyTorch */
  const char *loss_output; /* the name of an output with the mean loss of all ranks; copied; NULL: none */
} rondo_data_parallel_options;
#define RONDO_DATA_PARALLEL_OPTIONS_INIT .struct_size = sizeof(rondo_data_parallel_options)

/* Makes the program data-parallel: its optimizer, which is added afterwards, reduces gradients over the ranks.
 * Operators that check indices must be added before the optimizer. options may be NULL. Gradients are reduced in F32.
 *
 * rondo_compile first compares what all ranks compile: MISMATCH names a rank with another program, other types, shapes,
 * optimizer or options, or another version of Rondo. It also returns INVALID_ARGUMENT/OTHER_DEVICE (the communicator is
 * of another device), INVALID_STATE (no optimizer and no look-up in a divided table), and the failures of collectives.
 * UNSUPPORTED, because the number of runs would depend on time: RONDO_RECORD_AUTO, RONDO_EXECUTOR_AUTO with an
 * executor, and rondo_compiled_measure; also rondo_compile_divided.
 *
 * Errors: INVALID_ARGUMENT with NULL_ARGUMENT, BAD_OPTIONS (bucket_bytes below 4); INVALID_STATE (it has an optimizer,
 * or is data-parallel already; the communicator has failed); OUT_OF_MEMORY. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_program_data_parallel(rondo_program *program,
                                                                  rondo_communicator *communicator,
                                                                  const rondo_data_parallel_options *options);

/* Sets the states and cells of all ranks to those of rank `root`, after the runs enqueued so far. The parts of sharded
 * states and tables are not sent: after rondo_checkpoint_apply on one rank alone, the others would lack theirs, so
 * apply a checkpoint on all ranks. All ranks call it; waits. Errors: INVALID_ARGUMENT with NULL_ARGUMENT, OUT_OF_RANGE
 * (root is not a rank), NONE (the program is not data-parallel); those of rondo_broadcast and
 * rondo_compiled_synchronize. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_broadcast(rondo_compiled *compiled, uint32_t root);

RONDO_EXTERN_C_END

#endif
