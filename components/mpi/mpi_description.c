/* SPDX-License-Identifier: MIT
 * See the header.
 */
#include "mpi/mpi_description.h"

#include <string.h>

rondo_mpi_description rondo_mpi_describe(const rondo_collective *work, uint64_t number) {
  /* Of a pair, a rank may only send, or only receive. */
  const bool is_pair = work->operation == RONDO_COLLECTIVE_SEND_RECEIVE;
  return (rondo_mpi_description){.number = number,
                                 .count = work->count,
                                 .operation = (uint32_t)work->operation,
                                 .type = (uint32_t)work->type,
                                 .reduction = (uint32_t)work->reduction,
                                 .root = work->root,
                                 .to = is_pair && work->src == NULL ? UINT32_MAX : work->to,
                                 .from = is_pair && work->dst == NULL ? UINT32_MAX : work->from,
                                 .is_average = work->is_average};
}

/* The finalizer of SplitMix64 (Vigna, https://prng.di.unimi.it/splitmix64.c). */
static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

uint64_t rondo_mpi_description_hash(const rondo_mpi_description *d) {
  uint64_t hash = mix(d->count + UINT64_C(0x9e3779b97f4a7c15));
  hash = mix(hash ^ ((uint64_t)d->operation << 32 | d->type));
  hash = mix(hash + ((uint64_t)(2 * d->reduction + d->is_average) << 32 | d->root));
  return mix(hash ^ ((uint64_t)d->to << 32 | d->from));
}

/* The text of a pair depends on which buffers exist. `to` and `from` are UINT32_MAX without one. */
void rondo_mpi_description_text(const rondo_mpi_description *d, char *text, size_t bytes) {
  static char buffer;
  const rondo_collective work = {.struct_size = sizeof work,
                                 .operation = (rondo_collective_operation)d->operation,
                                 .type = (rondo_type)d->type,
                                 .reduction = (rondo_reduction)d->reduction,
                                 .root = d->root,
                                 .to = d->to,
                                 .from = d->from,
                                 .is_average = d->is_average,
                                 .count = (size_t)d->count,
                                 .src = d->to != UINT32_MAX ? &buffer : NULL,
                                 .dst = d->from != UINT32_MAX ? &buffer : NULL};
  rondo_collective_describe(&work, text, bytes);
}
