/* SPDX-License-Identifier: MIT
 * Data-parallel programs. All collectives are in one order: each has a second result, its turn, which the next one
 * reads. The check for all ranks is the first of the optimizer's.
 */
#include "tensor/program/buckets.h"

#include <rondo/data_parallel.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/versioned_struct.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

#define BUCKET_BYTES ((uint64_t)25 << 20)
#define ALIGNMENT 16 /* elements: a cache line */

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }
static size_t round_up(size_t count) { return (count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* The call --------------------------------------------------------------------------------------------------------- */

static rondo_status check_program(const char *call, const rondo_program *program) {
  if (program->ranks.communicator != NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE, "%s: %s is data-parallel already", call, program->label);
  if (program->optimizer == NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE,
                    "%s: %s has an optimizer already, which does not reduce its gradients: call this before "
                    "rondo_program_adam or rondo_program_sgd",
                    call, program->label);
}

rondo_status rondo_program_data_parallel(rondo_program *program, rondo_communicator *communicator,
                                         const rondo_data_parallel_options *options) {
  static const char call[] = "rondo_program_data_parallel";
  rondo_data_parallel_options given;
  rondo_communicator_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_require(call, "communicator", communicator));
  RONDO_TRY(rondo_versioned_read("rondo_data_parallel_options", options, &given, sizeof given));
  RONDO_TRY(check_program(call, program));
  RONDO_TRY(rondo_communicator_get_info(communicator, &info));
  if (info.failed)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE,
                      "%s: the communicator has failed: destroy it and make another group", call);
  if (given.bucket_bytes == 0) given.bucket_bytes = BUCKET_BYTES;
  if (given.bucket_bytes < sizeof(float))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: bucket_bytes is %u: give at least 4, or 0 for 25 MiB", call, (unsigned)given.bucket_bytes);
  char *loss_output = NULL;
  if (given.loss_output != NULL) RONDO_TRY(rondo_allocate_text(&program->allocator, given.loss_output, &loss_output));
  program->ranks = (rondo_program_ranks){.communicator = communicator,
                                         .rank = info.rank,
                                         .count = info.world_size,
                                         .shard_states = given.shard_states,
                                         .bucket_bytes = given.bucket_bytes,
                                         .loss_output = loss_output,
                                         .turn = RONDO_NO_VALUE};
  return RONDO_OK;
}

/* Collectives ------------------------------------------------------------------------------------------------------ */

/* Without checks, no run can fail. */
static rondo_status add_agreement(rondo_program *program) {
  const rondo_attributes attributes = {.sizes = {program->ranks.rank}, .size_count = 1};
  uint32_t results[RONDO_MAX_RESULTS];
  bool any = false;
  for (size_t i = 0; i < program->operations.count; i++) any = any || program->operations.items[i].row->checks_indices;
  if (!any) return RONDO_OK;
  RONDO_TRY(rondo_program_add(program, &rondo_operator_agree, &program->ranks.turn, 1, &attributes, results));
  program->ranks.turn = results[1];
  return RONDO_OK;
}

/* Buckets ---------------------------------------------------------------------------------------------------------- */

static uint32_t computed_at(const rondo_program *program, uint32_t value) {
  const rondo_program_value *of = &program->values.items[value];
  return of->kind == RONDO_VALUE_RESULT ? of->operation : 0;
}

/* by: what the members are ordered by. */
static rondo_status list_members(const rondo_program *program, const rondo_update_part *states, const uint32_t *by,
                                 size_t count, rondo_scratch *scratch, rondo_buckets *out) {
  uint32_t *places;
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *places, &places));
  RONDO_TRY(rondo_array_reserve(&program->allocator, &out->members, count));
  for (size_t i = 0; i < count; i++) {
    const size_t elements = rondo_shape_elements(rondo_program_shape(program, states[i].state));
    const rondo_bucket_member member = {.state = states[i].state, .gradient = states[i].gradient, .count = elements};
    const uint32_t place = computed_at(program, by[i]);
    size_t at = out->members.count;
    for (; at > 0 && places[at - 1] > place; at--) places[at] = places[at - 1];
    places[at] = place;
    rondo_array_insert(&out->members, at, member);
  }
  return RONDO_OK;
}

static rondo_status divide(const rondo_program *program, rondo_buckets *out) {
  const uint64_t most = program->ranks.bucket_bytes / sizeof(float);
  for (size_t i = 0; i < out->members.count; i++) {
    rondo_bucket_member *member = &out->members.items[i];
    rondo_bucket *last = out->items.count == 0 ? NULL : &out->items.items[out->items.count - 1];
    const rondo_bucket empty = {.value = RONDO_NO_VALUE};
    if (last == NULL || (last->used > 0 && round_up(last->used) + member->count > most)) {
      RONDO_TRY(rondo_array_push(&program->allocator, &out->items, &empty));
      last = &out->items.items[out->items.count - 1];
    }
    member->bucket = (uint32_t)out->items.count - 1;
    member->offset = round_up(last->used);
    last->used = member->offset + member->count;
    last->piece = round_up((last->used + program->ranks.count - 1) / program->ranks.count);
  }
  return RONDO_OK;
}

/* Copies elements of a value to `to` of a flat value of `length`, which is made if *inout_flat is no value. */
static rondo_status add_put(rondo_program *program, uint32_t value, const size_t *sizes, size_t length,
                            uint32_t *inout_flat) {
  const uint32_t inputs[] = {*inout_flat, value};
  rondo_attributes attributes = {.size_count = RONDO_PART_SIZES + 1};
  memcpy(attributes.sizes, sizes, RONDO_PART_SIZES * sizeof *sizes);
  attributes.sizes[RONDO_PART_SIZES] = length;
  return rondo_program_add(program, &rondo_operator_bucket_put, inputs, 2, &attributes, inout_flat);
}

static rondo_status reduce_bucket(rondo_program *program, rondo_buckets *buckets, uint32_t number) {
  rondo_bucket *bucket = &buckets->items.items[number];
  const size_t length = bucket->piece * program->ranks.count;
  for (size_t i = 0; i < buckets->members.count; i++) {
    const rondo_bucket_member *member = &buckets->members.items[i];
    const size_t sizes[RONDO_PART_SIZES] = {[RONDO_PART_ALL] = member->count, [RONDO_PART_COMPANION] = member->offset};
    if (member->bucket != number) continue;
    RONDO_TRY(add_put(program, member->gradient, sizes, length, &bucket->value));
  }
  program->ranks.reduced_bytes += length * sizeof(float);
  const bool shards = program->ranks.shard_states;
  return rondo_program_add_collective(program, shards ? &rondo_operator_bucket_scatter : &rondo_operator_bucket_reduce,
                                      bucket->value, &bucket->value);
}

static rondo_status add_mean_loss(rondo_program *program, uint32_t loss) {
  if (program->ranks.loss_output == NULL) return RONDO_OK;
  RONDO_TRY(rondo_program_add_shaped(program, &rondo_operator_reshape, loss, rondo_shape_vector(RONDO_F32, 1), &loss));
  RONDO_TRY(rondo_program_add_collective(program, &rondo_operator_bucket_reduce, loss, &loss));
  RONDO_TRY(rondo_program_add_shaped(program, &rondo_operator_reshape, loss, rondo_shape_scalar(RONDO_F32), &loss));
  return rondo_program_output(program, program->ranks.loss_output, rondo_program_tag(program, loss));
}

rondo_status rondo_buckets_begin(rondo_program *program, uint32_t loss) {
  RONDO_TRY(add_agreement(program));
  return add_mean_loss(program, loss);
}

rondo_status rondo_buckets_make(rondo_program *program, const rondo_update_part *states, const uint32_t *by,
                                size_t count, rondo_buckets *out) {
  rondo_scratch scratch = {.allocator = &program->allocator};
  const rondo_status status = list_members(program, states, by, count, &scratch, out);
  rondo_scratch_free(&scratch);
  RONDO_TRY(status);
  RONDO_TRY(divide(program, out));
  program->ranks.buckets = (uint32_t)out->items.count;
  for (uint32_t b = 0; b < out->items.count; b++) RONDO_TRY(reduce_bucket(program, out, b));
  return RONDO_OK;
}

void rondo_buckets_free(const rondo_program *program, rondo_buckets *buckets) {
  rondo_array_free(&program->allocator, &buckets->members);
  rondo_array_free(&program->allocator, &buckets->items);
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

/* The elements of a member that are in this rank's piece: first .. end - 1, counted in the bucket. */
static void find_own(const rondo_program *program, const rondo_bucket_member *member, const rondo_bucket *bucket,
                     size_t *first, size_t *end) {
  const size_t begin = bucket->piece * program->ranks.rank;
  *first = larger(begin, member->offset);
  *end = smaller(begin + bucket->piece, member->offset + member->count);
  if (*end < *first) *end = *first;
}

void rondo_buckets_list_parts(const rondo_program *program, const rondo_buckets *buckets, rondo_update_part *out,
                              size_t *out_count) {
  const bool shards = program->ranks.shard_states;
  *out_count = 0;
  for (size_t i = 0; i < buckets->members.count; i++) {
    const rondo_bucket_member *member = &buckets->members.items[i];
    const rondo_bucket *bucket = &buckets->items.items[member->bucket];
    rondo_update_part part = {.state = member->state, .gradient = bucket->value, .bucket = RONDO_NO_VALUE};
    size_t first, end;
    find_own(program, member, bucket, &first, &end);
    part.own_first = shards ? 0 : first - member->offset;
    part.own_count = end - first;
    part.sizes[RONDO_PART_ALL] = member->count;
    part.sizes[RONDO_PART_GRADIENT] = member->offset;
    if (shards) {
      part.bucket = member->bucket;
      part.sizes[RONDO_PART_ALL] = end - first;
      part.sizes[RONDO_PART_PARAMETER] = first - member->offset;
      part.sizes[RONDO_PART_COMPANION] = first - bucket->piece * program->ranks.rank;
      part.sizes[RONDO_PART_GRADIENT] = part.sizes[RONDO_PART_COMPANION];
    }
    if (part.sizes[RONDO_PART_ALL] > 0) out[(*out_count)++] = part;
  }
}

/* Flat states ------------------------------------------------------------------------------------------------------ */

#define FLAT_NAME 64

static void name_flat(char name[FLAT_NAME], uint32_t bucket, const char *suffix) {
  (void)snprintf(name, FLAT_NAME, "bucket.%u%s", bucket, suffix);
}

static rondo_status declare_flat(rondo_program *program, const rondo_buckets *buckets, uint32_t number,
                                 const char *suffix, float initial) {
  char name[FLAT_NAME];
  rondo_shard shard = {.suffix = suffix};
  const rondo_shape shape = rondo_shape_vector(RONDO_F32, buckets->items.items[number].piece);
  name_flat(name, number, suffix);
  RONDO_TRY(rondo_program_declare(program, RONDO_VALUE_STATE, name, &shape, initial, &shard.state));
  program->values.items[shard.state].of_optimizer = true;
  program->values.items[shard.state].is_sharded = true;
  for (size_t i = 0; i < buckets->members.count; i++) {
    const rondo_bucket_member *member = &buckets->members.items[i];
    if (member->bucket != number) continue;
    shard.parameter = member->state;
    shard.offset = member->offset;
    RONDO_TRY(rondo_array_push(&program->allocator, &program->ranks.shards, &shard));
  }
  return RONDO_OK;
}

rondo_status rondo_buckets_declare(rondo_program *program, const rondo_buckets *buckets, const char *suffix,
                                   float initial) {
  for (uint32_t b = 0; b < buckets->items.count; b++) RONDO_TRY(declare_flat(program, buckets, b, suffix, initial));
  return RONDO_OK;
}

uint32_t rondo_buckets_state(const rondo_program *program, uint32_t bucket, const char *suffix) {
  char name[FLAT_NAME];
  name_flat(name, bucket, suffix);
  for (size_t i = 0; i < program->ranks.shards.count; i++) {
    const uint32_t state = program->ranks.shards.items[i].state;
    if (strcmp(program->values.items[state].name, name) == 0) return state;
  }
  assert(false && "declared");
  return RONDO_NO_VALUE;
}

/* After the updates ------------------------------------------------------------------------------------------------ */

rondo_status rondo_buckets_join_norm(rondo_program *program, uint32_t *inout_parts) {
  return rondo_program_add_collective(program, &rondo_operator_norm_reduce, *inout_parts, inout_parts);
}

static rondo_status put_parameters(rondo_program *program, const rondo_bucket *bucket, uint32_t number,
                                   const rondo_update_part *parts, size_t count, uint32_t *out_piece) {
  *out_piece = RONDO_NO_VALUE;
  for (size_t i = 0; i < count; i++) {
    size_t sizes[RONDO_PART_SIZES];
    if (parts[i].bucket != number) continue;
    memcpy(sizes, parts[i].sizes, sizeof sizes);
    sizes[RONDO_PART_GRADIENT] = sizes[RONDO_PART_PARAMETER]; /* what is copied */
    RONDO_TRY(add_put(program, parts[i].state, sizes, bucket->piece, out_piece));
  }
  if (*out_piece == RONDO_NO_VALUE) *out_piece = bucket->value; /* padding alone */
  return RONDO_OK;
}

rondo_status rondo_buckets_gather(rondo_program *program, const rondo_buckets *buckets, const rondo_update_part *parts,
                                  size_t count) {
  for (uint32_t b = 0; b < buckets->items.count; b++) {
    uint32_t flat;
    RONDO_TRY(put_parameters(program, &buckets->items.items[b], b, parts, count, &flat));
    RONDO_TRY(rondo_program_add_collective(program, &rondo_operator_bucket_gather, flat, &flat));
    program->ranks.reduced_bytes += buckets->items.items[b].piece * program->ranks.count * sizeof(float);
    for (size_t i = 0; i < buckets->members.count; i++) {
      const rondo_bucket_member *member = &buckets->members.items[i];
      const uint32_t inputs[] = {member->state, flat};
      const rondo_attributes attributes = {
          .sizes = {[RONDO_PART_ALL] = member->count, [RONDO_PART_GRADIENT] = member->offset},
          .size_count = RONDO_PART_SIZES};
      if (member->bucket != b) continue;
      RONDO_TRY(rondo_program_add(program, &rondo_operator_parameter_take, inputs, 2, &attributes, NULL));
    }
  }
  return RONDO_OK;
}

/* Comparing -------------------------------------------------------------------------------------------------------- */

static uint64_t hash_values(const rondo_program *program, size_t first, size_t end, uint64_t hash) {
  for (size_t i = first; i < end; i++) {
    const rondo_program_value *value = &program->values.items[i];
    hash = rondo_hash_text(rondo_hash_u64(hash, value->kind), value->name);
    hash = rondo_hash_u64(rondo_hash_u64(hash, value->shape.type), value->shape.rank);
    hash = rondo_hash_bytes(hash, value->shape.dims, sizeof value->shape.dims);
    hash = rondo_hash_u64(rondo_hash_u64(hash, value->frozen + 2u * value->is_sparse),
                          value->trained ? value->group + 1 : 0);
    hash = rondo_hash_bytes(hash, &value->initial, sizeof value->initial);
    if (value->elements != NULL) hash = rondo_hash_bytes(hash, value->elements, rondo_shape_bytes(&value->shape));
  }
  return hash;
}

static uint64_t hash_operation(const rondo_operation *operation, uint64_t hash) {
  const rondo_attributes *attributes = &operation->attributes;
  hash = rondo_hash_text(hash, operation->row->name);
  hash = rondo_hash_bytes(hash, attributes->sizes, sizeof attributes->sizes);
  hash = rondo_hash_bytes(hash, attributes->numbers, sizeof attributes->numbers);
  return rondo_hash_bytes(hash, attributes->flags, sizeof attributes->flags);
}

/* Those that have a part of a value, and the check that has the rank, differ. */
static bool is_alike(const rondo_operator *row) { return !row->checks_indices && row->join == NULL; }

void rondo_buckets_identify(rondo_program *program, rondo_program_mark mark, uint64_t options) {
  rondo_program_ranks *ranks = &program->ranks;
  uint64_t hash = hash_values(program, 0, mark.values, rondo_hash_u64(RONDO_HASH_START, options));
  for (size_t i = 0; i < program->operations.count; i++) {
    const rondo_operation *operation = &program->operations.items[i];
    const bool is_before = i < mark.operations;
    if (!is_before && !is_alike(operation->row)) continue;
    hash = hash_operation(operation, hash);
    if (is_before) hash = rondo_hash_bytes(hash, operation->inputs, sizeof operation->inputs);
  }
  hash = rondo_hash_u64(rondo_hash_u64(hash, ranks->shard_states), ranks->bucket_bytes);
  ranks->fingerprint = rondo_hash_u64(hash, ranks->round);
  ranks->identified_values = program->values.count;
  ranks->identified_operations = program->operations.count;
}

/* After an optimizer, ranks may count values differently, so inputs say nothing. An operation may run only if an output
 * needs it. */
uint64_t rondo_buckets_fingerprint(const rondo_program *program) {
  const rondo_program_ranks *ranks = &program->ranks;
  uint64_t hash = rondo_hash_text(rondo_hash_u64(ranks->fingerprint, ranks->count), RONDO_VERSION_STRING);
  hash = hash_values(program, ranks->identified_values, program->values.count, hash);
  for (size_t i = ranks->identified_operations; i < program->operations.count; i++) {
    const rondo_operation *operation = &program->operations.items[i];
    hash = hash_operation(operation, hash);
    if (program->optimizer == NULL) hash = rondo_hash_bytes(hash, operation->inputs, sizeof operation->inputs);
  }
  for (size_t i = 0; i < program->outputs.count; i++) hash = rondo_hash_text(hash, program->outputs.items[i].name);
  return hash;
}
