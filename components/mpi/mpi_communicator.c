/* SPDX-License-Identifier: MIT
 * rondo_communicator_from_mpi, and the communicators of groups. All ranks take the same steps: three duplicates of the
 * communicator, an exchange of greetings, and on CPUs another of whether each has its engine, on CUDA a broadcast of
 * NCCL's id.
 */
#include "mpi/mpi_communicator.h"

#include <rondo/mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { JOIN_TIMEOUT_MS = 60 * 1000, TIMEOUT_MS = 10 * 60 * 1000, SLEEP_NS = 50 * 1000 };

typedef struct mpi_deadline {
  double at; /* MPI_Wtime */
  uint32_t timeout_ms;
  const char *call;
} mpi_deadline;

/* Waiting --------------------------------------------------------------------------------------------------------- */

static mpi_deadline deadline_in(uint32_t timeout_ms, const char *call) {
  return (mpi_deadline){.at = MPI_Wtime() + timeout_ms / 1e3, .timeout_ms = timeout_ms, .call = call};
}

/* A request that is late is abandoned: MPI may still complete it. */
static rondo_status await(MPI_Request *request, const mpi_deadline *deadline) {
  const struct timespec moment = {.tv_nsec = SLEEP_NS};
  for (;;) {
    int is_done = 0;
    RONDO_MPI_TRY(MPI_Test(request, &is_done, MPI_STATUS_IGNORE), "waiting for all ranks");
    if (is_done) return RONDO_OK;
    if (MPI_Wtime() > deadline->at) break;
    (void)nanosleep(&moment, NULL);
  }
  return rondo_mpi_fail(RONDO_UNAVAILABLE, RONDO_REASON_TIMED_OUT,
                        "not all ranks called %s within %u ms: call it on all ranks of the communicator",
                        deadline->call, deadline->timeout_ms);
}

/* Collects `bytes` of each rank, by rank. After UNAVAILABLE, MPI may still access the memory. */
static rondo_status gather(const rondo_mpi_group *group, const void *own, size_t bytes, void *all, const char *what,
                           const mpi_deadline *deadline) {
  MPI_Request request;
  RONDO_MPI_TRY(MPI_Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, group->control, &request), what);
  return await(&request, deadline);
}

/* Groups ---------------------------------------------------------------------------------------------------------- */

/* Where MPI writes the duplicate is not freed if the ranks are late: MPI may still write it. */
static rondo_status duplicate(MPI_Comm communicator, const mpi_deadline *deadline, MPI_Comm *out) {
  MPI_Request request;
  MPI_Comm *made = malloc(sizeof *made);
  if (made == NULL)
    return rondo_mpi_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory for a communicator");
  *made = MPI_COMM_NULL;
  rondo_status status = rondo_mpi_check(MPI_Comm_idup(communicator, made, &request), "duplicating the communicator");
  if (status == RONDO_OK) status = await(&request, deadline);
  if (status == RONDO_UNAVAILABLE) return status;
  if (status == RONDO_OK) *out = *made;
  free(made);
  if (status != RONDO_OK) return status;
  return rondo_mpi_check(MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN), "setting the error handler");
}

static rondo_status make_group(MPI_Comm communicator, const mpi_deadline *deadline, rondo_mpi_group *out) {
  rondo_status status = duplicate(communicator, deadline, &out->data);
  if (status == RONDO_OK) status = duplicate(out->data, deadline, &out->control);
  if (status == RONDO_OK) status = duplicate(out->data, deadline, &out->division);
  if (status != RONDO_OK) return status;
  RONDO_MPI_TRY(MPI_Comm_rank(out->data, &out->rank), "asking for the rank");
  return rondo_mpi_check(MPI_Comm_size(out->data, &out->size), "asking for the number of ranks");
}

rondo_status rondo_mpi_group_make(MPI_Comm communicator, uint32_t timeout_ms, const char *call, rondo_mpi_group *out) {
  const mpi_deadline deadline = deadline_in(timeout_ms, call);
  *out = (rondo_mpi_group){.data = MPI_COMM_NULL, .control = MPI_COMM_NULL, .division = MPI_COMM_NULL};
  const rondo_status status = make_group(communicator, &deadline, out);
  if (status != RONDO_OK) rondo_mpi_group_free(out);
  return status;
}

void rondo_mpi_group_free(rondo_mpi_group *group) {
  MPI_Comm *const all[] = {&group->data, &group->control, &group->division};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (*all[i] != MPI_COMM_NULL) (void)MPI_Comm_free(all[i]);
}

/* A rank's wish, and where it is in the old group. */
typedef struct wish {
  uint32_t color, key;
  int rank;
} wish;

static int compare_wishes(const void *left, const void *right) {
  const wish *a = left, *b = right;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return (a->rank > b->rank) - (a->rank < b->rank);
}

/* The ranks with this color, in the order of the new group. Returns their number. */
static int list_members(const wish *wishes, int ranks, uint32_t color, wish *members, int *out) {
  int count = 0;
  for (int i = 0; i < ranks; i++) {
    if (wishes[i].color != color) continue;
    members[count] = wishes[i];
    members[count++].rank = i;
  }
  qsort(members, (size_t)count, sizeof *members, compare_wishes);
  for (int i = 0; i < count; i++) out[i] = members[i].rank;
  return count;
}

/* All members have passed the barrier, so making their communicator does not wait for long. */
static rondo_status make_members(const rondo_mpi_group *group, const int *ranks, int count, MPI_Comm *out) {
  MPI_Group all, members;
  RONDO_MPI_TRY(MPI_Comm_group(group->division, &all), "dividing the group");
  const int code = MPI_Group_incl(all, count, ranks, &members);
  (void)MPI_Group_free(&all);
  RONDO_MPI_TRY(code, "dividing the group");
  const int made = MPI_Comm_create_group(group->division, members, 0, out);
  (void)MPI_Group_free(&members);
  return rondo_mpi_check(made, "dividing the group");
}

/* "rank 1, 3 did not call ..." in place of the error that does not name them. */
static rondo_status fail_missing(MPI_Request *wishes, int size, const mpi_deadline *deadline) {
  char missing[128] = "rank ";
  const size_t begin = strlen(missing), room = sizeof missing - sizeof ", 65535, ...";
  size_t used = begin;
  for (int i = 0; i < size; i++) {
    int is_done = 0;
    if (MPI_Test(&wishes[i], &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_done) continue;
    used += (size_t)snprintf(missing + used, sizeof missing - used, used > begin ? ", %d" : "%d", i);
    if (used <= room) continue;
    (void)snprintf(missing + used, sizeof missing - used, ", ...");
    break;
  }
  if (used == begin) return RONDO_UNAVAILABLE; /* the last one has just called it */
  return rondo_mpi_fail(RONDO_UNAVAILABLE, RONDO_REASON_TIMED_OUT,
                        "%s did not call %s within %u ms: call it on all ranks of the communicator", missing,
                        deadline->call, deadline->timeout_ms);
}

/* From rank to rank, because a collective would not tell who is late. `requests`: two for each rank. */
static rondo_status exchange_wishes(const rondo_mpi_group *group, const wish *own, wish *wishes, MPI_Request *requests,
                                    const mpi_deadline *deadline) {
  enum { TAG = 1, BYTES = sizeof *own };
  const int size = group->size;
  for (int i = 0; i < 2 * size; i++) requests[i] = MPI_REQUEST_NULL;
  for (int i = 0; i < size; i++)
    RONDO_MPI_TRY(MPI_Irecv(&wishes[i], BYTES, MPI_BYTE, i, TAG, group->division, &requests[i]), "dividing the group");
  for (int i = 0; i < size; i++)
    RONDO_MPI_TRY(MPI_Isend(own, BYTES, MPI_BYTE, i, TAG, group->division, &requests[size + i]), "dividing the group");
  rondo_status status = RONDO_OK;
  for (int i = 0; i < 2 * size && status == RONDO_OK; i++) status = await(&requests[i], deadline);
  return status == RONDO_UNAVAILABLE ? fail_missing(requests, size, deadline) : status;
}

static rondo_status divide(const rondo_mpi_group *group, const wish *own, wish *wishes, wish *members, int *ranks,
                           MPI_Request *requests, const mpi_deadline *deadline, rondo_mpi_group *out) {
  MPI_Request request;
  MPI_Comm divided = MPI_COMM_NULL;
  rondo_status status = exchange_wishes(group, own, wishes, requests, deadline);
  if (status != RONDO_OK) return status;
  /* A rank that timed out does not come, and MPI_Comm_create_group would wait for it for ever. */
  RONDO_MPI_TRY(MPI_Ibarrier(group->division, &request), "dividing the group");
  status = await(&request, deadline);
  if (status != RONDO_OK) return status;
  const int count = list_members(wishes, group->size, own->color, members, ranks);
  status = make_members(group, ranks, count, &divided);
  if (status == RONDO_OK) status = rondo_mpi_group_make(divided, deadline->timeout_ms, deadline->call, out);
  if (divided != MPI_COMM_NULL) (void)MPI_Comm_free(&divided);
  return status;
}

rondo_status rondo_mpi_group_divide(const rondo_mpi_group *group, uint32_t color, uint32_t key, uint32_t timeout_ms,
                                    rondo_mpi_group *out) {
  const mpi_deadline deadline = deadline_in(timeout_ms, "rondo_communicator_split");
  const size_t size = (size_t)group->size;
  wish *wishes = calloc(2 * size + 1, sizeof *wishes), *own = wishes == NULL ? NULL : wishes + 2 * size;
  int *ranks = calloc(size, sizeof *ranks);
  MPI_Request *requests = calloc(2 * size, sizeof *requests);
  rondo_status status;
  if (wishes == NULL || ranks == NULL || requests == NULL)
    status = rondo_mpi_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory to divide %d ranks",
                            group->size);
  else {
    *own = (wish){.color = color, .key = key, .rank = group->rank};
    status = divide(group, own, wishes, wishes + size, ranks, requests, &deadline, out);
  }
  if (status == RONDO_OK || status == RONDO_OUT_OF_MEMORY) free(wishes); /* else MPI may still access it */
  free(requests);
  free(ranks);
  return status;
}

/* Engines --------------------------------------------------------------------------------------------------------- */

/* Whether a rank has made its engine; and if not, why. */
typedef struct outcome {
  uint32_t status, reason;
  char failure[248];
} outcome;

static outcome outcome_of(rondo_status status) {
  outcome own = {.status = (uint32_t)status};
  if (status == RONDO_OK) return own;
  own.reason = (uint32_t)rondo_last_error()->reason;
  (void)snprintf(own.failure, sizeof own.failure, "%s", rondo_last_error()->message);
  return own;
}

static rondo_status require_success(const outcome *all, int size) {
  for (int i = 0; i < size; i++)
    if (all[i].status != RONDO_OK)
      return rondo_mpi_fail((rondo_status)all[i].status, (rondo_reason)all[i].reason, "rank %d: %s", i, all[i].failure);
  return RONDO_OK;
}

/* Fails on all ranks if one of them has failed. */
static rondo_status agree_on(const rondo_mpi_group *group, rondo_status made, const mpi_deadline *deadline) {
  outcome *all = calloc((size_t)group->size + 1, sizeof *all);
  if (all == NULL)
    return rondo_mpi_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory to ask %d ranks",
                          group->size);
  all[group->size] = outcome_of(made);
  rondo_status status =
      gather(group, &all[group->size], sizeof *all, all, "asking whether all ranks have joined", deadline);
  if (status == RONDO_OK) status = require_success(all, group->size);
  if (status != RONDO_UNAVAILABLE) free(all); /* else MPI may still access it */
  return status;
}

rondo_status rondo_mpi_group_make_engine(rondo_mpi_group *group, uint32_t timeout_ms, uint32_t join_timeout_ms,
                                         const char *call, rondo_collective_engine *out) {
  const mpi_deadline deadline = deadline_in(join_timeout_ms, call);
  const rondo_status made = rondo_mpi_engine_make(group, timeout_ms, out);
  const rondo_status status = agree_on(group, made, &deadline);
  if (status == RONDO_OK) return RONDO_OK;
  if (made == RONDO_OK)
    out->close(out->user);
  else
    rondo_mpi_group_free(group);
  return status;
}

/* Greetings ------------------------------------------------------------------------------------------------------- */

/* What must be equal on all ranks; and the rank and its GPU, which must not. The structure stays as it is, so that
 * versions of Rondo can tell that they differ. */
typedef struct greeting {
  char version[16];
  char kind[8];
  uint32_t timeout_ms, rank;
  uint8_t gpu[16];
} greeting;

static int compare_gpus(const void *left, const void *right) {
  const greeting *a = left, *b = right;
  const int order = memcmp(a->gpu, b->gpu, sizeof a->gpu);
  return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

/* Sorts them. */
static rondo_status require_own_gpus(greeting *all, int size) {
  qsort(all, (size_t)size, sizeof *all, compare_gpus);
  for (int i = 1; i < size; i++)
    if (memcmp(all[i].gpu, all[i - 1].gpu, sizeof all[i].gpu) == 0)
      return rondo_mpi_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                            "ranks %u and %u are on one GPU: give each rank its own", all[i - 1].rank, all[i].rank);
  return RONDO_OK;
}

static rondo_status fail_greeting(const greeting *all, int rank) {
  const greeting *first = &all[0], *other = &all[rank];
  if (strcmp(first->version, other->version) != 0)
    return rondo_mpi_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                          "rank 0 has version %s of Rondo, but rank %d has %s: install one version", first->version,
                          rank, other->version);
  if (strcmp(first->kind, other->kind) != 0)
    return rondo_mpi_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                          "rank 0 has a device of kind %s, but rank %d one of kind %s: use one kind", first->kind, rank,
                          other->kind);
  return rondo_mpi_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                        "rank 0 has a timeout of %u ms, but rank %d of %u ms: pass the same timeout_ms",
                        first->timeout_ms, rank, other->timeout_ms);
}

/* A rank that joins. */
typedef struct joining {
  rondo_device *device;
  rondo_device_info info; /* of the device */
  rondo_mpi_group group;
  const rondo_communicator_options *options; /* as the caller gave them */
  uint32_t timeout_ms;                       /* of collectives */
  uint32_t join_timeout_ms;
  mpi_deadline deadline;
} joining;

static rondo_status compare_greetings(const joining *j, greeting *all) {
  for (int i = 1; i < j->group.size; i++)
    if (memcmp(&all[i], &all[0], offsetof(greeting, rank)) != 0) return fail_greeting(all, i);
  return j->info.cuda ? require_own_gpus(all, j->group.size) : RONDO_OK;
}

static rondo_status greet(const joining *j) {
  const int size = j->group.size;
  greeting *all = calloc((size_t)size + 1, sizeof *all), *own = all == NULL ? NULL : all + size;
  if (all == NULL)
    return rondo_mpi_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory to greet %d ranks", size);
  *own = (greeting){.timeout_ms = j->timeout_ms, .rank = (uint32_t)j->group.rank};
  (void)snprintf(own->version, sizeof own->version, "%s", rondo_version());
  (void)snprintf(own->kind, sizeof own->kind, "%s", j->info.cuda ? "cuda" : "cpu");
  memcpy(own->gpu, j->info.uuid, sizeof own->gpu);
  rondo_status status = gather(&j->group, own, sizeof *own, all, "greeting the ranks", &j->deadline);
  if (status == RONDO_OK) status = compare_greetings(j, all);
  if (status != RONDO_UNAVAILABLE) free(all); /* else MPI may still access it */
  return status;
}

/* Joining --------------------------------------------------------------------------------------------------------- */

/* All ranks learn if rank 0 has no id, and return its failure as theirs. */
typedef struct id_message {
  rondo_communicator_id id;
  uint32_t status, reason;
  char message[256];
} id_message;

static void make_id(rondo_device *device, id_message *out) {
  out->status = (uint32_t)rondo_communicator_make_id(device, &out->id);
  if (out->status == RONDO_OK) return;
  out->reason = (uint32_t)rondo_last_error()->reason;
  (void)snprintf(out->message, sizeof out->message, "rank 0: %s", rondo_last_error()->message);
}

static rondo_status join_nccl(const joining *j, rondo_communicator **out) {
  MPI_Request request;
  const rondo_mpi_group *group = &j->group;
  id_message *message = calloc(1, sizeof *message);
  if (message == NULL)
    return rondo_mpi_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, "no memory for NCCL's id");
  if (group->rank == 0) make_id(j->device, message);
  rondo_status status = rondo_mpi_check(
      MPI_Ibcast(message, (int)sizeof *message, MPI_BYTE, 0, group->control, &request), "passing NCCL's id");
  if (status == RONDO_OK) status = await(&request, &j->deadline);
  if (status == RONDO_UNAVAILABLE) return status; /* MPI may still write into the message */
  if (status == RONDO_OK && message->status != RONDO_OK)
    status = rondo_mpi_fail((rondo_status)message->status, (rondo_reason)message->reason, "%s", message->message);
  if (status == RONDO_OK)
    status = rondo_communicator_from_id(j->device, &message->id, (uint32_t)group->rank, (uint32_t)group->size,
                                        j->options, out);
  free(message);
  return status;
}

static rondo_status join_on_cuda(joining *j, rondo_communicator **out) {
  const rondo_status status = join_nccl(j, out);
  rondo_mpi_group_free(&j->group);
  return status;
}

static rondo_status join_on_cpu(joining *j, rondo_communicator **out) {
  rondo_collective_engine engine;
  rondo_status status =
      rondo_mpi_group_make_engine(&j->group, j->timeout_ms, j->join_timeout_ms, j->deadline.call, &engine);
  if (status != RONDO_OK) return status;
  status = rondo_communicator_from_engine(j->device, &engine, j->options, out);
  if (status == RONDO_OK) return RONDO_OK;
  engine.notify(engine.user, rondo_last_error()->message); /* the other ranks have joined */
  engine.close(engine.user);
  return status;
}

static rondo_status join(joining *j, MPI_Comm communicator, rondo_communicator **out) {
  j->info.struct_size = sizeof j->info;
  rondo_status status = rondo_device_get_info(j->device, &j->info);
  if (status == RONDO_OK) status = rondo_mpi_group_make(communicator, j->join_timeout_ms, j->deadline.call, &j->group);
  if (status != RONDO_OK) return status;
  status = greet(j);
  if (status == RONDO_OK) return j->info.cuda ? join_on_cuda(j, out) : join_on_cpu(j, out);
  rondo_mpi_group_free(&j->group);
  return status;
}

static rondo_status check_communicator(MPI_Comm communicator) {
  int is_inter = 0;
  if (communicator == MPI_COMM_NULL)
    return rondo_mpi_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
        "rondo_communicator_from_mpi: the communicator is MPI_COMM_NULL: pass the communicator of the "
        "ranks");
  RONDO_MPI_TRY(MPI_Comm_test_inter(communicator, &is_inter), "looking at the communicator");
  if (!is_inter) return RONDO_OK;
  return rondo_mpi_fail(RONDO_INVALID_STATE, RONDO_REASON_NONE,
                        "rondo_communicator_from_mpi: the communicator joins two groups: merge them with "
                        "MPI_Intercomm_merge");
}

RONDO_API rondo_status rondo_communicator_from_mpi(rondo_device *device, MPI_Comm communicator,
                                                   const rondo_communicator_options *options,
                                                   rondo_communicator **out_communicator) {
  static const char *const call = "rondo_communicator_from_mpi";
  rondo_communicator_options read = {RONDO_COMMUNICATOR_OPTIONS_INIT};
  if (device == NULL || out_communicator == NULL)
    return rondo_mpi_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "%s: %s is NULL", call,
                          device == NULL ? "device" : "out_communicator");
  *out_communicator = NULL;
  if (options != NULL) {
    const size_t bytes = options->struct_size == 0 ? sizeof read : options->struct_size;
    memcpy(&read, options, bytes < sizeof read ? bytes : sizeof read);
  }
  rondo_status status = rondo_mpi_require_ready();
  if (status == RONDO_OK) status = check_communicator(communicator);
  if (status != RONDO_OK) return status;
  const uint32_t join_ms = read.join_timeout_ms == 0 ? JOIN_TIMEOUT_MS : read.join_timeout_ms;
  joining self = {.device = device,
                  .options = options,
                  .timeout_ms = read.timeout_ms == 0 ? TIMEOUT_MS : read.timeout_ms,
                  .join_timeout_ms = join_ms,
                  .deadline = deadline_in(join_ms, call)};
  return join(&self, communicator, out_communicator);
}
