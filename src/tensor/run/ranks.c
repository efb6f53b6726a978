/* SPDX-License-Identifier: MIT
 * Collectives of a compiled program outside of its runs: comparing fingerprints, broadcasting states, gathering those
 * that are sharded. All run on the program's stream, so they have their place between its runs.
 */
#include "tensor/run/ranks.h"

#include <rondo/data_parallel.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "tensor/program/buckets.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"
#include "tensor/run/compiled.h"
#include "tensor/run/named_values.h"

/* Keeping ---------------------------------------------------------------------------------------------------------- */

static rondo_status keep_shard(const rondo_program *program, const rondo_shard *shard, rondo_compiled *compiled) {
  const rondo_program_value *parameter = &program->values.items[shard->parameter];
  const char *flat = program->values.items[shard->state].name;
  const size_t bytes = strlen(parameter->name) + strlen(shard->suffix) + 1;
  rondo_rank_shard kept = {.shape = parameter->shape, .offset = shard->offset};
  kept.value = (size_t)(rondo_values_look_up(compiled, flat, "s") - compiled->values.items);
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, bytes, 1, &kept.name));
  (void)snprintf(kept.name, bytes, "%s%s", parameter->name, shard->suffix);
  const rondo_status status = rondo_array_push(&compiled->allocator, &compiled->ranks.shards, &kept);
  if (status != RONDO_OK) rondo_release_text(&compiled->allocator, kept.name);
  return status;
}

/* Tables whose rows are divided, and the optimizer's states of them: each is flat, and its own shard. */
static rondo_status keep_table(const rondo_program_value *table, rondo_compiled *compiled) {
  rondo_rank_shard kept = {.shape = table->shape};
  kept.shape.dims[0] = table->table_rows;
  kept.value = (size_t)(rondo_values_look_up(compiled, table->name, "s") - compiled->values.items);
  RONDO_TRY(rondo_allocate_text(&compiled->allocator, table->name, &kept.name));
  const rondo_status status = rondo_array_push(&compiled->allocator, &compiled->ranks.shards, &kept);
  if (status != RONDO_OK) rondo_release_text(&compiled->allocator, kept.name);
  return status;
}

static void keep_round(const rondo_program *program, rondo_compiled *compiled) {
  rondo_ranks *ranks = &compiled->ranks;
  if (program->ranks.first_last == 0) return;
  ranks->round = program->ranks.round;
  ranks->first_last = program->ranks.first_last;
  ranks->end_last = program->ranks.end_last;
  ranks->runs = rondo_values_look_up(compiled, program->values.items[program->ranks.runs].name, "s")->address;
  compiled->sharing->is_round_known = false;
}

rondo_status rondo_ranks_keep(const rondo_program *program, rondo_compiled *compiled) {
  compiled->ranks.communicator = program->ranks.communicator;
  compiled->ranks.rank = program->ranks.rank;
  compiled->ranks.count = program->ranks.count;
  if (program->ranks.communicator == NULL) return RONDO_OK;
  keep_round(program, compiled);
  for (size_t i = 0; i < program->ranks.shards.count; i++)
    RONDO_TRY(keep_shard(program, &program->ranks.shards.items[i], compiled));
  for (size_t i = 0; i < program->values.count; i++)
    if (program->values.items[i].table_rows > 0) RONDO_TRY(keep_table(&program->values.items[i], compiled));
  return RONDO_OK;
}

void rondo_ranks_free(rondo_compiled *compiled) {
  for (size_t i = 0; i < compiled->ranks.shards.count; i++)
    rondo_release_text(&compiled->allocator, compiled->ranks.shards.items[i].name);
  rondo_array_free(&compiled->allocator, &compiled->ranks.shards);
}

/* Rounds ----------------------------------------------------------------------------------------------------------- */

static rondo_status read_round(rondo_compiled *compiled) {
  int32_t runs;
  RONDO_TRY(rondo_copy_async(compiled->stream, &runs, compiled->ranks.runs, sizeof runs));
  RONDO_TRY(rondo_stream_synchronize(compiled->stream));
  compiled->sharing->round_runs = runs < 0 ? 0 : (uint32_t)runs;
  compiled->sharing->is_round_known = true;
  return RONDO_OK;
}

rondo_status rondo_ranks_begin_run(rondo_compiled *compiled) {
  if (!compiled->sharing->is_round_known) RONDO_TRY(read_round(compiled));
  compiled->ranks.is_short = compiled->sharing->round_runs + 1 < compiled->ranks.round;
  return RONDO_OK;
}

void rondo_ranks_end_run(rondo_compiled *compiled, bool is_enqueued) {
  rondo_sharing *sharing = compiled->sharing;
  if (is_enqueued) sharing->round_runs = compiled->ranks.is_short ? sharing->round_runs + 1 : 0;
  compiled->ranks.is_short = false;
}

/* Gathering -------------------------------------------------------------------------------------------------------- */

/* What is collected from all ranks, in device memory for the time being. */
typedef struct collecting {
  const void *src;
  size_t count; /* elements of this rank */
  rondo_type type;
  bool averages; /* else the elements of all ranks, one after the other */
} collecting;

static rondo_status collect_through(const rondo_compiled *compiled, const collecting *c, void *all, size_t bytes,
                                    void *out) {
  rondo_communicator *communicator = compiled->ranks.communicator;
  RONDO_TRY(c->averages
                ? rondo_all_reduce(communicator, compiled->stream, c->src, all, c->count, c->type, RONDO_REDUCE_AVERAGE)
                : rondo_all_gather(communicator, compiled->stream, c->src, all, c->count, c->type));
  RONDO_TRY(rondo_copy_async(compiled->stream, out, all, bytes));
  return rondo_stream_synchronize(compiled->stream);
}

static rondo_status collect(const rondo_compiled *compiled, const collecting *c, void *out) {
  const size_t bytes = c->count * rondo_type_bytes(c->type) * (c->averages ? 1 : compiled->ranks.count);
  void *all = NULL;
  const rondo_status had = rondo_malloc(compiled->device, bytes, "states of all ranks", &all);
  RONDO_TRY(rondo_compiled_fail_memory(compiled, had, "states of all ranks", bytes));
  rondo_status status = collect_through(compiled, c, all, bytes, out);
  if (status != RONDO_OK) RONDO_THEN(status, rondo_stream_synchronize(compiled->stream)); /* `all` may be in use */
  rondo_status_keep_first(&status, rondo_free(compiled->device, all));
  return status;
}

static rondo_status collect_value(rondo_compiled *compiled, const rondo_named_value *value, bool averages, void *out) {
  const collecting all = {rondo_named_rows(value), rondo_shape_elements(&value->shape), value->shape.type, averages};
  RONDO_TRY(collect(compiled, &all, out));
  return rondo_compiled_judge(compiled);
}

rondo_status rondo_ranks_gather(rondo_compiled *compiled, size_t value, void *out) {
  return collect_value(compiled, &compiled->values.items[value], false, out);
}

rondo_status rondo_ranks_average(rondo_compiled *compiled, const char *name, float *out) {
  return collect_value(compiled, rondo_values_look_up(compiled, name, "s"), true, out);
}

/* Comparing -------------------------------------------------------------------------------------------------------- */

static rondo_status check_alike(const rondo_compiled *compiled, const uint64_t *prints) {
  const uint64_t own = prints[compiled->ranks.rank];
  for (uint32_t r = 0; r < compiled->ranks.count; r++) {
    if (prints[r] == own) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                      "rondo_compile: rank %" PRIu32 " compiles another program than %s on rank %" PRIu32
                      ": all ranks need the same operators, names, types, shapes, optimizer, options and version of "
                      "Rondo",
                      r, compiled->label, compiled->ranks.rank);
  }
  return RONDO_OK;
}

/* `own`: a number in device memory. */
static rondo_status compare(const rondo_compiled *compiled, const uint64_t *fingerprint, void *own) {
  uint64_t *prints;
  RONDO_TRY(rondo_allocate_items(&compiled->allocator, compiled->ranks.count, sizeof *prints, &prints));
  rondo_status status = rondo_copy_async(compiled->stream, own, fingerprint, sizeof *fingerprint);
  if (status == RONDO_OK) status = collect(compiled, &(collecting){own, 1, RONDO_I64, false}, prints);
  if (status == RONDO_OK) status = check_alike(compiled, prints);
  rondo_release(&compiled->allocator, prints, compiled->ranks.count, sizeof *prints);
  return status;
}

rondo_status rondo_ranks_compare(const rondo_program *program, const rondo_compiled *compiled) {
  void *own = NULL;
  if (compiled->ranks.communicator == NULL) return RONDO_OK;
  RONDO_TRY(rondo_malloc(compiled->device, sizeof(uint64_t), "a program's fingerprint", &own));
  /* Compiling runs a program that has an executor once more. */
  const uint64_t print = rondo_hash_u64(rondo_buckets_fingerprint(program), compiled->executed.executor != NULL);
  rondo_status status = compare(compiled, &print, own);
  if (status != RONDO_OK) RONDO_THEN(status, rondo_stream_synchronize(compiled->stream)); /* `own` may be in use */
  rondo_status_keep_first(&status, rondo_free(compiled->device, own));
  return status;
}

/* Broadcasting ----------------------------------------------------------------------------------------------------- */

static rondo_status broadcast(rondo_compiled *compiled, uint32_t root) {
  for (size_t i = 0; i < compiled->values.count; i++) {
    const rondo_named_value *value = &compiled->values.items[i];
    if ((value->kind != 's' && value->kind != 'c') || value->is_sharded) continue;
    void *rows = rondo_named_rows(value);
    RONDO_TRY(rondo_broadcast(compiled->ranks.communicator, compiled->stream, rows, rows,
                              rondo_shape_elements(&value->shape), value->shape.type, root));
    if (value->packed != NULL) RONDO_TRY(rondo_values_pack(compiled, value));
  }
  return RONDO_OK;
}

rondo_status rondo_compiled_broadcast(rondo_compiled *compiled, uint32_t root) {
  static const char call[] = "rondo_compiled_broadcast";
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  if (compiled->ranks.communicator == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NONE,
                      "%s: %s is not data-parallel: call rondo_program_data_parallel before it is compiled", call,
                      compiled->label);
  RONDO_TRY(rondo_compiled_refuse_capturing(compiled, call));
  compiled->sharing->is_round_known = false;
  RONDO_TRY(rondo_fail_context(broadcast(compiled, root), "%s", call));
  return rondo_compiled_synchronize(compiled);
}
