/* SPDX-License-Identifier: MIT
 * See the header.
 */
#include "mpi/mpi_operations.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/mpi_engine.h"
#include "mpi/mpi_reduce.h"

/* MPI 4 has persistent collectives; OpenMPI 4 has them as an extension. */
#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define PERSISTENT(name) MPIX_##name##_init
#endif
#endif

static MPI_Datatype type_of(rondo_type type) {
  switch (type) {
    case RONDO_F32:
      return MPI_FLOAT;
    case RONDO_F64:
      return MPI_DOUBLE;
    case RONDO_I32:
      return MPI_INT32_T;
    case RONDO_I64:
      return MPI_INT64_T;
    case RONDO_F16:
    case RONDO_BF16:
      return MPI_UINT16_T; /* as bits; the operation knows the type */
    case RONDO_I8:
      return MPI_INT8_T;
    case RONDO_U8:
      return MPI_UINT8_T;
    case RONDO_BOOL: /* these are refused by the core */
    case RONDO_F8_E4M3:
    case RONDO_F8_E5M2:
      break;
  }
  return MPI_BYTE;
}

/* Sizes ----------------------------------------------------------------------------------------------------------- */

typedef struct sizes {
  size_t part, src, dst; /* bytes */
} sizes;

static sizes measure(const rondo_collective *work, int ranks) {
  const size_t part = work->count * rondo_type_bytes(work->type);
  sizes s = {.part = part, .src = part, .dst = part};
  if (work->operation == RONDO_COLLECTIVE_REDUCE_SCATTER || work->operation == RONDO_COLLECTIVE_ALL_TO_ALL)
    s.src = part * (size_t)ranks;
  if (work->operation == RONDO_COLLECTIVE_ALL_GATHER || work->operation == RONDO_COLLECTIVE_ALL_TO_ALL)
    s.dst = part * (size_t)ranks;
  if (work->operation == RONDO_COLLECTIVE_BARRIER) s = (sizes){0};
  return s;
}

rondo_status rondo_mpi_operation_check(const rondo_collective *work, int ranks) {
  /* MPI counts a part, but a reduce-scatter's loops count all of them in an int (OpenMPI). */
  const size_t parts = work->operation == RONDO_COLLECTIVE_REDUCE_SCATTER ? (size_t)ranks : 1;
  if (work->count <= INT_MAX / parts) return RONDO_OK;
  return rondo_mpi_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                        "%zu elements are more than MPI counts (%d): split the collective into several",
                        work->count * parts, INT_MAX);
}

/* Calls of MPI ---------------------------------------------------------------------------------------------------- */

static int start_new(const rondo_mpi_group *g, const rondo_collective *w, const void *in, void *out,
                     MPI_Request *request) {
  const int count = (int)w->count;
  const MPI_Datatype type = type_of(w->type);
  const MPI_Op op = w->reduction == 0 ? MPI_OP_NULL : rondo_mpi_reduce_find(w->type, w->reduction);
  switch (w->operation) {
    case RONDO_COLLECTIVE_ALL_REDUCE:
      return MPI_Iallreduce(in, out, count, type, op, g->data, request);
    case RONDO_COLLECTIVE_BROADCAST:
      return MPI_Ibcast(out, count, type, (int)w->root, g->data, request);
    case RONDO_COLLECTIVE_ALL_GATHER:
      return MPI_Iallgather(in, count, type, out, count, type, g->data, request);
    case RONDO_COLLECTIVE_REDUCE_SCATTER:
      return MPI_Ireduce_scatter_block(in, out, count, type, op, g->data, request);
    case RONDO_COLLECTIVE_ALL_TO_ALL:
      return MPI_Ialltoall(in, count, type, out, count, type, g->data, request);
    case RONDO_COLLECTIVE_BARRIER:
      return MPI_Ibarrier(g->data, request);
    case RONDO_COLLECTIVE_SEND_RECEIVE:
      break;
  }
  return MPI_ERR_OTHER;
}

#ifdef PERSISTENT
/* With MPICH 4.0, the second start of a persistent all-gather of 2, 4, 8, ... ranks gathers the data of the first one.
 */
static bool has_persistent(rondo_collective_operation operation) {
#if defined(MPICH_VERSION)
  return operation != RONDO_COLLECTIVE_ALL_GATHER;
#else
  return operation != RONDO_COLLECTIVE_SEND_RECEIVE;
#endif
}

static int make_persistent(const rondo_mpi_group *g, const rondo_collective *w, const void *in, void *out,
                           MPI_Request *request) {
  const int count = (int)w->count;
  const MPI_Info info = MPI_INFO_NULL;
  const MPI_Datatype type = type_of(w->type);
  const MPI_Op op = w->reduction == 0 ? MPI_OP_NULL : rondo_mpi_reduce_find(w->type, w->reduction);
  switch (w->operation) {
    case RONDO_COLLECTIVE_ALL_REDUCE:
      return PERSISTENT(Allreduce)(in, out, count, type, op, g->data, info, request);
    case RONDO_COLLECTIVE_BROADCAST:
      return PERSISTENT(Bcast)(out, count, type, (int)w->root, g->data, info, request);
    case RONDO_COLLECTIVE_ALL_GATHER:
      return PERSISTENT(Allgather)(in, count, type, out, count, type, g->data, info, request);
    case RONDO_COLLECTIVE_REDUCE_SCATTER:
      return PERSISTENT(Reduce_scatter_block)(in, out, count, type, op, g->data, info, request);
    case RONDO_COLLECTIVE_ALL_TO_ALL:
      return PERSISTENT(Alltoall)(in, count, type, out, count, type, g->data, info, request);
    case RONDO_COLLECTIVE_BARRIER:
      return PERSISTENT(Barrier)(g->data, info, request);
    case RONDO_COLLECTIVE_SEND_RECEIVE:
      break;
  }
  return MPI_ERR_OTHER;
}
#endif

/* The cache ------------------------------------------------------------------------------------------------------- */

static bool is_same(const rondo_mpi_description *a, const rondo_mpi_description *b) {
  return a->operation == b->operation && a->type == b->type && a->reduction == b->reduction && a->root == b->root &&
         a->is_average == b->is_average && a->count == b->count;
}

/* The place of a description, or the free one where it would be. The table is never full. */
static rondo_mpi_known *place_of(rondo_mpi_cache *cache, const rondo_mpi_description *description, uint64_t hash) {
  size_t i = hash % RONDO_MPI_CACHE_PLACES;
  while (cache->known[i].description.operation != 0 &&
         (cache->known[i].hash != hash || !is_same(&cache->known[i].description, description)))
    i = (i + 1) % RONDO_MPI_CACHE_PLACES;
  return &cache->known[i];
}

rondo_mpi_known *rondo_mpi_cache_find(rondo_mpi_cache *cache, const rondo_mpi_description *description, uint64_t hash) {
  rondo_mpi_known *known = place_of(cache, description, hash);
  if (known->description.operation == 0) return NULL;
  cache->last = known;
  return known;
}

rondo_mpi_known *rondo_mpi_cache_find_again(const rondo_mpi_cache *cache, const rondo_mpi_description *description) {
  return cache->last != NULL && is_same(&cache->last->description, description) ? cache->last : NULL;
}

static rondo_status bind(rondo_mpi_cache *cache, rondo_mpi_known *known, const rondo_mpi_group *group,
                         const rondo_collective *work) {
#ifdef PERSISTENT
  const sizes s = measure(work, group->size);
  const bool has_one_buffer = work->operation == RONDO_COLLECTIVE_BROADCAST;
  if (rondo_mpi_pairs_fit(group, work)) return RONDO_OK;
  if (s.src > RONDO_MPI_PERSISTENT_BYTES || s.dst > RONDO_MPI_PERSISTENT_BYTES || !has_persistent(work->operation))
    return RONDO_OK;
  const size_t in_bytes = (s.src + 63) / 64 * 64;
  known->in = malloc(in_bytes + s.dst + 64);
  if (known->in == NULL)
    return rondo_mpi_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory for %zu bytes of buffers",
                          in_bytes + s.dst);
  known->out = has_one_buffer ? known->in : known->in + in_bytes;
  known->in_bytes = s.src;
  known->out_bytes = s.dst;
  cache->persistent++;
  return rondo_mpi_check(make_persistent(group, work, known->in, known->out, &known->request),
                         "making a persistent collective");
#else
  (void)cache, (void)known, (void)group, (void)work;
  return RONDO_OK;
#endif
}

rondo_status rondo_mpi_cache_add(rondo_mpi_cache *cache, const rondo_mpi_group *group, const rondo_collective *work,
                                 const rondo_mpi_description *description, uint64_t hash, rondo_mpi_known **out) {
  *out = NULL;
  if (cache->count == RONDO_MPI_CACHE_ENTRIES) return RONDO_OK;
  rondo_mpi_known *known = place_of(cache, description, hash);
  cache->count++;
  *known = (rondo_mpi_known){.description = *description, .hash = hash, .request = MPI_REQUEST_NULL};
  known->description.number = 0;
  *out = known;
  return cache->persistent < RONDO_MPI_CACHE_PERSISTENT ? bind(cache, known, group, work) : RONDO_OK;
}

void rondo_mpi_cache_free(rondo_mpi_cache *cache, bool has_mpi) {
  for (size_t i = 0; i < RONDO_MPI_CACHE_PLACES; i++) {
    rondo_mpi_known *known = &cache->known[i];
    if (known->in == NULL) continue;
    if (has_mpi && known->request != MPI_REQUEST_NULL) (void)MPI_Request_free(&known->request);
    free(known->in);
  }
  free(cache->temporary);
}

/* Starting -------------------------------------------------------------------------------------------------------- */

static rondo_status take_temporary(rondo_mpi_cache *cache, size_t bytes, void **out) {
  if (bytes > cache->temporary_bytes) {
    free(cache->temporary);
    cache->temporary = malloc(bytes);
    cache->temporary_bytes = cache->temporary == NULL ? 0 : bytes;
  }
  *out = cache->temporary;
  if (*out != NULL) return RONDO_OK;
  return rondo_mpi_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory for %zu bytes of buffers",
                        bytes);
}

static rondo_status start_persistent(rondo_mpi_operation *o, rondo_mpi_known *known, const rondo_collective *work) {
  if (work->src != NULL && known->in_bytes > 0) memcpy(known->in, work->src, known->in_bytes);
  o->known = known;
  o->requests[0] = known->request;
  o->copy_from = known->out;
  o->copy_to = work->dst;
  o->copy_bytes = known->out_bytes;
  return rondo_mpi_check(MPI_Start(&o->requests[0]), "starting a persistent collective");
}

/* On the user's buffers. MPI has other forms in place: the buffer of one part is this rank's part of the other one for
 * an all-gather, but not for a reduce-scatter; and the root of a broadcast has one buffer. */
static rondo_status start_data(rondo_mpi_operation *o, rondo_mpi_cache *cache, const rondo_mpi_group *group,
                               const rondo_collective *work) {
  const sizes s = measure(work, group->size);
  const void *in = work->src;
  void *out = work->dst;
  const char *src = work->src, *own = (const char *)work->dst + (size_t)group->rank * s.part;
  if (work->operation == RONDO_COLLECTIVE_ALL_REDUCE && work->src == work->dst) in = MPI_IN_PLACE;
  if (work->operation == RONDO_COLLECTIVE_ALL_GATHER && src == own) in = MPI_IN_PLACE;
  if (work->operation == RONDO_COLLECTIVE_REDUCE_SCATTER &&
      (const char *)work->dst == src + (size_t)group->rank * s.part) {
    const rondo_status status = take_temporary(cache, s.dst, &out);
    if (status != RONDO_OK) return status;
  }
  if (work->operation == RONDO_COLLECTIVE_BROADCAST && work->src != NULL) memcpy(&out, &work->src, sizeof out);
  if (out != work->dst) {
    o->copy_from = out;
    o->copy_to = work->dst;
    o->copy_bytes = s.dst;
  }
  return rondo_mpi_check(start_new(group, work, in, out, &o->requests[0]), "starting a collective");
}

static rondo_status start_pairs(rondo_mpi_operation *o, rondo_mpi_cache *cache, const rondo_mpi_group *group,
                                const rondo_collective *work, uint64_t hash) {
  void *temporary;
  const rondo_status status = take_temporary(cache, RONDO_MPI_PAIRS_TEMPORARY, &temporary);
  o->count = 2;
  if (status != RONDO_OK) return status;
  return rondo_mpi_pairs_start(&o->pairs, group, work, hash, o->type, temporary, o->requests);
}

/* The tag is the sender's type, which the receiver compares with its own. */
static rondo_status start_pair(rondo_mpi_operation *o, const rondo_mpi_group *group, const rondo_collective *work) {
  const int count = (int)work->count, tag = (int)work->type;
  o->count = 0;
  if (work->dst != NULL) {
    RONDO_MPI_TRY(
        MPI_Irecv(work->dst, count, o->type, (int)work->from, MPI_ANY_TAG, group->data, &o->requests[o->count]),
        "receiving");
    o->received = count;
    o->received_type = work->type;
    o->count++;
  }
  if (work->src != NULL) {
    MPI_Request *request = &o->requests[o->count++];
    const int to = (int)work->to;
    return rondo_mpi_check_peer(MPI_Isend(work->src, count, o->type, to, tag, group->data, request), to, "sending");
  }
  return RONDO_OK;
}

rondo_status rondo_mpi_operation_start(rondo_mpi_operation *operation, rondo_mpi_cache *cache,
                                       const rondo_mpi_group *group, rondo_mpi_known *known,
                                       const rondo_collective *work, uint64_t hash) {
  *operation = (rondo_mpi_operation){
      .requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, .count = 1, .received = -1, .type = type_of(work->type)};
  if (work->operation == RONDO_COLLECTIVE_SEND_RECEIVE) return start_pair(operation, group, work);
  if (rondo_mpi_pairs_fit(group, work)) return start_pairs(operation, cache, group, work, hash);
  if (known != NULL && known->request != MPI_REQUEST_NULL) return start_persistent(operation, known, work);
  return start_data(operation, cache, group, work);
}

static rondo_status check_received(const rondo_mpi_operation *o) {
  const MPI_Status *status = &o->status;
  int count = 0;
  if (o->received < 0) return RONDO_OK;
  if (status->MPI_TAG != (int)o->received_type)
    return rondo_mpi_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_MISMATCH,
                          "rank %d sent %s, but this rank receives %s: pass the same type on both", status->MPI_SOURCE,
                          rondo_type_name((rondo_type)status->MPI_TAG), rondo_type_name(o->received_type));
  RONDO_MPI_TRY(MPI_Get_count(status, o->type, &count), "counting what was received");
  if (count == o->received) return RONDO_OK;
  return rondo_mpi_fail(RONDO_EXECUTION_FAILED, RONDO_REASON_MISMATCH,
                        "rank %d sent %d elements, but this rank receives %d: pass the same count on both",
                        status->MPI_SOURCE, count, o->received);
}

/* The receive comes first, because it ends last. MPI_Testall would do the same for both, but that of OpenMPI 4.1
 * returns after it has moved data without looking at the requests again. */
static rondo_status test_requests(rondo_mpi_operation *o, bool *out_are_done) {
  *out_are_done = false;
  for (; o->tested < o->count; o->tested++) {
    MPI_Status *const status = o->tested == 0 && o->received >= 0 ? &o->status : MPI_STATUS_IGNORE;
    int is_done = 0;
    RONDO_MPI_TRY(MPI_Test(&o->requests[o->tested], &is_done, status), "moving the data of a collective");
    if (!is_done) return RONDO_OK;
  }
  o->tested = 0;
  *out_are_done = true;
  return RONDO_OK;
}

rondo_status rondo_mpi_operation_test(rondo_mpi_operation *o, bool *out_is_done) {
  const rondo_status status = test_requests(o, out_is_done);
  if (status != RONDO_OK || !*out_is_done) return status;
  if (o->pairs.group != NULL) return rondo_mpi_pairs_go_on(&o->pairs, o->requests, out_is_done);
  if (o->copy_to != NULL && o->copy_to != o->copy_from && o->copy_bytes > 0)
    memcpy(o->copy_to, o->copy_from, o->copy_bytes);
  return check_received(o);
}
