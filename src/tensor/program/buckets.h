/* SPDX-License-Identifier: MIT
 * The buckets of a data-parallel program: which gradients are reduced together, and the operators that do it
 * (operators/optimizer/data_parallel.c). Made by an optimizer (optimizer.c), and not kept.
 *
 * A bucket is a flat F32 value. It is divided into a piece for each rank, all of one length, and padded at the end.
 * With sharded states a rank has only its own piece of the reduced bucket. All ranks make the same buckets.
 */
#ifndef RONDO_TENSOR_PROGRAM_BUCKETS_H
#define RONDO_TENSOR_PROGRAM_BUCKETS_H

#include "tensor/program/optimizer_parts.h"
#include "tensor/program/program_internal.h"

typedef struct rondo_bucket_member {
  uint32_t state, gradient, bucket;
  size_t offset, count; /* elements */
} rondo_bucket_member;

typedef struct rondo_bucket {
  size_t used, piece; /* elements of the members with the gaps between them, and of a piece */
  uint32_t value;     /* the reduced bucket, or the own piece of it */
} rondo_bucket;

typedef struct rondo_buckets {
  RONDO_ARRAY(rondo_bucket_member) members; /* in the order in which their gradients are computed */
  RONDO_ARRAY(rondo_bucket) items;
} rondo_buckets;

/* Adds the check for all ranks, the first of the optimizer's collectives, and the mean loss. */
RONDO_MUST_USE rondo_status rondo_buckets_begin(rondo_program *program, uint32_t loss);

/* Adds the operators that collect the gradients of whole states and reduce them. by: for each state, the value in whose
 * order they are collected. *out is zeroed before; freed also after a failure. */
RONDO_MUST_USE rondo_status rondo_buckets_make(rondo_program *program, const rondo_update_part *states,
                                               const uint32_t *by, size_t count, rondo_buckets *out);
void rondo_buckets_free(const rondo_program *program, rondo_buckets *buckets);

/* Fills in what this rank updates: at most one part for each member. */
void rondo_buckets_list_parts(const rondo_program *program, const rondo_buckets *buckets, rondo_update_part *out,
                              size_t *out_count);

/* Declares the flat states "bucket.<number><suffix>" of all buckets, and finds one of them. `suffix` is static. */
RONDO_MUST_USE rondo_status rondo_buckets_declare(rondo_program *program, const rondo_buckets *buckets,
                                                  const char *suffix, float initial);
uint32_t rondo_buckets_state(const rondo_program *program, uint32_t bucket, const char *suffix);

/* Adds the sum of the ranks' parts of the norm. */
RONDO_MUST_USE rondo_status rondo_buckets_join_norm(rondo_program *program, uint32_t *inout_parts);

/* With sharded states: adds the operators that pass updated parameters on to all ranks. `parts` are those of the list.
 */
RONDO_MUST_USE rondo_status rondo_buckets_gather(rondo_program *program, const rondo_buckets *buckets,
                                                 const rondo_update_part *parts, size_t count);

/* Sets the fingerprint: of everything up to the mark, of what the optimizer added that is alike on all ranks, and of
 * its options, whose hash is given. The trained states are marked before. */
void rondo_buckets_identify(rondo_program *program, rondo_program_mark mark, uint64_t options);

/* The fingerprint of the whole program, which may have no optimizer, or more after it. */
uint64_t rondo_buckets_fingerprint(const rondo_program *program);

#endif
