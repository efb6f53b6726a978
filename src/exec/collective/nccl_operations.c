/* SPDX-License-Identifier: MIT
 * See nccl_operations.h. NCCL has no all-to-all in the versions that count (ncclAlltoAll came with 2.28), but sends and
 * receives in one group of calls are one kernel, which does not wait for one of them before it begins another.
 */
#define _GNU_SOURCE
#include "exec/collective/nccl_operations.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "base/error.h"

rondo_status rondo_nccl_check(nccl_result result, const char *what) {
  if (result == NCCL_OK || result == NCCL_IN_PROGRESS) return RONDO_OK;
  return rondo_fail_driver(RONDO_EXECUTION_FAILED, RONDO_REASON_NONE, result, rondo_nccl_api.error_string(result),
                           "%s: NCCL refused it (NCCL_DEBUG=WARN says more)", what);
}

/* Versions -------------------------------------------------------------------------------------------------------- */

/* 218 for 2.18; the form of NCCL's number changed with 2.9. */
static int get_version(void) {
  int code = 0;
  if (rondo_nccl_api.get_version(&code) != NCCL_OK) return 0;
  return code < 10000 ? code / 1000 * 100 + code % 1000 / 100 : code / 10000 * 100 + code % 10000 / 100;
}

static bool has_functions(rondo_nccl_feature feature) {
  switch (feature) {
    case RONDO_NCCL_SEND:
      return rondo_nccl_api.send != NULL && rondo_nccl_api.receive != NULL;
    case RONDO_NCCL_SPLIT:
      return rondo_nccl_api.split != NULL;
    case RONDO_NCCL_AVERAGE:
    case RONDO_NCCL_ADDRESS:
      break;
  }
  return true;
}

rondo_status rondo_nccl_require(rondo_nccl_feature feature) {
  static const struct {
    int version;
    const char *what;
  } needs[] = {[RONDO_NCCL_SEND] = {207, "to send and receive"},
               [RONDO_NCCL_AVERAGE] = {210, "for averages and BF16"},
               [RONDO_NCCL_ADDRESS] = {213, "to find ranks by the environment"},
               [RONDO_NCCL_SPLIT] = {218, "to divide groups"}};
  const int version = get_version(), needed = needs[feature].version;
  if (version >= needed && has_functions(feature)) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE, "NCCL %d.%d is needed %s, but this is NCCL %d.%d: install it",
                    needed / 100, needed % 100, needs[feature].what, version / 100, version % 100);
}

rondo_status rondo_nccl_require_operation(const rondo_collective *work) {
  const bool sends = work->operation == RONDO_COLLECTIVE_ALL_TO_ALL || work->operation == RONDO_COLLECTIVE_SEND_RECEIVE;
  if (sends) RONDO_TRY(rondo_nccl_require(RONDO_NCCL_SEND));
  if (work->reduction == RONDO_REDUCE_AVERAGE || work->type == RONDO_BF16)
    return rondo_nccl_require(RONDO_NCCL_AVERAGE);
  return RONDO_OK;
}

/* Operations ------------------------------------------------------------------------------------------------------ */

static nccl_type type_of(rondo_type type) {
  static const nccl_type types[] = {
      [RONDO_F32] = NCCL_F32, [RONDO_I32] = NCCL_I32,   [RONDO_F64] = NCCL_F64, [RONDO_I64] = NCCL_I64,
      [RONDO_F16] = NCCL_F16, [RONDO_BF16] = NCCL_BF16, [RONDO_I8] = NCCL_I8,   [RONDO_U8] = NCCL_U8,
  };
  return types[type];
}

static nccl_reduction reduction_of(rondo_reduction reduction) {
  static const nccl_reduction reductions[] = {[RONDO_REDUCE_SUM] = NCCL_SUM,
                                              [RONDO_REDUCE_MAX] = NCCL_MAX,
                                              [RONDO_REDUCE_MIN] = NCCL_MIN,
                                              [RONDO_REDUCE_AVERAGE] = NCCL_AVG};
  return reductions[reduction];
}

/* A group has to be ended also after a failure. */
static nccl_result end_group(nccl_result first) {
  const nccl_result ended = rondo_nccl_api.group_end();
  return first == NCCL_OK ? ended : first;
}

static nccl_result all_to_all(const rondo_nccl_rank *rank, const rondo_collective *w, nccl_stream stream) {
  const size_t part = w->count * rondo_type_bytes(w->type);
  nccl_result result = rondo_nccl_api.group_start();
  if (result != NCCL_OK) return result;
  for (uint32_t peer = 0; peer < rank->world_size && result == NCCL_OK; peer++) {
    const char *const src = (const char *)w->src + peer * part;
    result = rondo_nccl_api.send(src, w->count, type_of(w->type), (int)peer, rank->comm, stream);
    if (result != NCCL_OK) break;
    result =
        rondo_nccl_api.receive((char *)w->dst + peer * part, w->count, type_of(w->type), (int)peer, rank->comm, stream);
  }
  return end_group(result);
}

static nccl_result send_receive(const rondo_nccl_rank *rank, const rondo_collective *w, nccl_stream stream) {
  nccl_result result = rondo_nccl_api.group_start();
  if (result != NCCL_OK) return result;
  if (w->src != NULL) result = rondo_nccl_api.send(w->src, w->count, type_of(w->type), (int)w->to, rank->comm, stream);
  if (w->dst != NULL && result == NCCL_OK)
    result = rondo_nccl_api.receive(w->dst, w->count, type_of(w->type), (int)w->from, rank->comm, stream);
  return end_group(result);
}

nccl_result rondo_nccl_enqueue(const rondo_nccl_rank *rank, const rondo_collective *w, nccl_stream stream) {
  const nccl_comm comm = rank->comm;
  switch (w->operation) {
    case RONDO_COLLECTIVE_ALL_REDUCE:
      return rondo_nccl_api.all_reduce(w->src, w->dst, w->count, type_of(w->type), reduction_of(w->reduction), comm,
                                       stream);
    case RONDO_COLLECTIVE_BROADCAST: /* which only reads the source of the root */
      return rondo_nccl_api.broadcast(w->src != NULL ? w->src : w->dst, w->dst, w->count, type_of(w->type),
                                      (int)w->root, comm, stream);
    case RONDO_COLLECTIVE_ALL_GATHER:
      return rondo_nccl_api.all_gather(w->src, w->dst, w->count, type_of(w->type), comm, stream);
    case RONDO_COLLECTIVE_REDUCE_SCATTER:
      return rondo_nccl_api.reduce_scatter(w->src, w->dst, w->count, type_of(w->type), reduction_of(w->reduction), comm,
                                           stream);
    case RONDO_COLLECTIVE_ALL_TO_ALL:
      return all_to_all(rank, w, stream);
    case RONDO_COLLECTIVE_SEND_RECEIVE:
      return send_receive(rank, w, stream);
    case RONDO_COLLECTIVE_BARRIER:
      break;
  }
  return rondo_nccl_api.all_reduce(rank->scratch, rank->scratch, 1, NCCL_I32, NCCL_SUM, comm, stream);
}

/* Addresses ------------------------------------------------------------------------------------------------------- */

static const char comm_id[] = "NCCL_COMM_ID";

static rondo_status set_address(const char *address) {
  const int failed = address == NULL ? unsetenv(comm_id) : setenv(comm_id, address, 1);
  if (failed == 0) return RONDO_OK;
  return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED,
                    "the environment variable %s could not be set to '%.120s'", comm_id, address);
}

static rondo_status call_with_address(const rondo_allocator *allocator, const char *address,
                                      rondo_nccl_address_call call, void *user) {
  const char *const current = secure_getenv(comm_id);
  char *before = NULL;
  if (current == NULL && address == NULL) return call(user);
  if (current != NULL) RONDO_TRY(rondo_allocate_text(allocator, current, &before));
  rondo_status status = set_address(address);
  if (status == RONDO_OK) {
    status = call(user);
    RONDO_THEN(status, set_address(before));
  }
  rondo_release_text(allocator, before);
  return status;
}

/* NCCL may ask a name server for the host's address during the call. */
rondo_status rondo_nccl_with_address(const rondo_allocator *allocator, const char *address,
                                     rondo_nccl_address_call call, void *user) {
  static pthread_mutex_t addressing = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&addressing);
  const rondo_status status = call_with_address(allocator, address, call, user);
  pthread_mutex_unlock(&addressing);
  return status;
}
