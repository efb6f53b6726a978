/* SPDX-License-Identifier: MIT
 * The fake NCCL, a library of its own, for ranks of one process: a foreign library as the real one is, which knows of
 * nothing but the driver. A collective is one kernel launched on the caller's stream, which waits for those of the
 * other ranks; what it computes is in the order of ranks. As with the real one, joining waits for all ranks, unless it
 * is done for several between ncclGroupStart and ncclGroupEnd; a communicator works in the context that it was made in;
 * and its kernels must not be run any more when it is destroyed, which unloads them. Aborting lets kernels that wait
 * end. Groups stay for good: the kernels of an aborted one may come to it late. Threads: any; one lock guards all.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_cuda/fake_cuda.h"
#include "fake_cuda/fake_nccl.h"
#include "fake_cuda/foreign_library.h"
#include "fake_cuda/image.h"
#include "vendor/nccl_abi.h"

enum { MOST_RANKS = 8, MOST_PENDING = 8, PATIENCE_SECONDS = 60 };
enum { CUDA_ERROR = 1, INTERNAL_ERROR = 3, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE_ERROR = 6 };

typedef enum operation { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER } operation;

/* Small all-reduces go along a tree, the rest round a ring. */
typedef enum algorithm { TREE, RING, ALGORITHMS } algorithm;
enum { TREE_BYTES = 1024 };

typedef struct group {
  struct group *next;
  nccl_unique_id id;
  int ranks, joined;
  bool aborted;
  uint64_t arrived[MOST_RANKS], computed[MOST_RANKS]; /* collectives, by rank */
  uint64_t connecting[ALGORITHMS][MOST_RANKS];        /* times that a rank has tried to */
  cu_context contexts[MOST_RANKS];
  const char *src[MOST_RANKS];
} group;

struct nccl_communicator {
  group *group;
  int rank;
  bool connected[ALGORITHMS];
  cu_context context;
  cu_module module;
  cu_function function;
};

/* What the kernel gets. */
typedef struct call_arguments {
  group *group;
  uint64_t rank, operation, element, type, reduction, root, count;
  const char *src;
  char *dst;
} call_arguments;

/* Functions: fake_<member>, under the library's names. */
#define ROW(result, member, symbol, arguments) EXPORT result fake_##member arguments __asm__(#symbol);
NCCL_FUNCTIONS(ROW)
#undef ROW

/* What tests ask -------------------------------------------------------------------------------------------------- */

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static group *groups;
static uint64_t calls, ids;
static int asynchronous;

static uint64_t count_calls(void) { return read_count(&calls); }

static void set_async_error(int code) {
  pthread_mutex_lock(&lock);
  asynchronous = code;
  pthread_mutex_unlock(&lock);
}

EXPORT const void *fake_control(void) __asm__(FAKE_NCCL_ENTRY);
const void *fake_control(void) {
  static const fake_nccl_control control = {count_live, count_calls, set_failure, set_async_error};
  return &control;
}

const char *fake_error_string(int result) {
  static const code_name names[] = {{NCCL_OK, "no error"},
                                    {CUDA_ERROR, "unhandled cuda error"},
                                    {INTERNAL_ERROR, "internal error"},
                                    {INVALID_ARGUMENT, "invalid argument"},
                                    {INVALID_USAGE, "invalid usage"},
                                    {REMOTE_ERROR, "remote process exited or there was a network error"}};
  return CODE_NAME(names, result, "unknown result code");
}

/* Kernels --------------------------------------------------------------------------------------------------------- */

#define DEFINE_COMBINE(name, type, sum_type)                                                 \
  static void combine_##name(char *dst, const char *src, size_t count, uint64_t reduction) { \
    type *const to = (type *)(void *)dst;                                                    \
    const type *const from = (const type *)(const void *)src;                                \
    for (size_t i = 0; i < count; i++) {                                                     \
      const bool is_better = reduction == NCCL_MAX ? from[i] > to[i] : from[i] < to[i];      \
      if (reduction == NCCL_SUM)                                                             \
        to[i] = (type)((sum_type)to[i] + (sum_type)from[i]);                                 \
      else if (is_better)                                                                    \
        to[i] = from[i];                                                                     \
    }                                                                                        \
  }
DEFINE_COMBINE(f32, float, float)
DEFINE_COMBINE(f64, double, double)
DEFINE_COMBINE(i32, int32_t, uint32_t)
DEFINE_COMBINE(i64, int64_t, uint64_t)

static void combine(const call_arguments *a, char *dst, const char *src) {
  switch ((int)a->type) {
    case NCCL_F32:
      combine_f32(dst, src, a->count, a->reduction);
      return;
    case NCCL_F64:
      combine_f64(dst, src, a->count, a->reduction);
      return;
    case NCCL_I32:
      combine_i32(dst, src, a->count, a->reduction);
      return;
    default:
      combine_i64(dst, src, a->count, a->reduction);
  }
}

static bool have_all(const group *g, const uint64_t *numbers, uint64_t number) {
  bool all = true;
  for (int rank = 0; rank < g->ranks; rank++) all = all && numbers[rank] >= number;
  return all;
}

/* With the lock. False when the group was aborted. */
static bool wait_for_all(group *g, uint64_t *numbers, uint64_t rank) {
  const uint64_t number = ++numbers[rank];
  pthread_cond_broadcast(&changed);
  while (!g->aborted && !have_all(g, numbers, number)) pthread_cond_wait(&changed, &lock);
  return !g->aborted;
}

static void compute(const call_arguments *a, char *out) {
  const group *g = a->group;
  const size_t part = a->count * a->element;
  const size_t offset = a->operation == REDUCE_SCATTER ? a->rank * part : 0;
  if (a->operation == BROADCAST) {
    memcpy(out, g->src[a->root], part);
    return;
  }
  for (int rank = 0; rank < g->ranks; rank++) {
    if (a->operation == ALL_GATHER || rank == 0)
      memcpy(out + (a->operation == ALL_GATHER ? (size_t)rank * part : 0), g->src[rank] + offset, part);
    else
      combine(a, out, g->src[rank] + offset);
  }
}

/* Sources are read by all before any destination is written, which may be one of them. */
static void collective_cpu(rondo_blocks blocks, void *const *args) {
  const call_arguments *a = args[0];
  const size_t bytes = a->count * a->element * (a->operation == ALL_GATHER ? (size_t)a->group->ranks : 1);
  char *out = malloc(bytes);
  (void)blocks;
  if (out == NULL) abort();
  pthread_mutex_lock(&lock);
  a->group->src[a->rank] = a->src;
  bool goes_on = wait_for_all(a->group, a->group->arrived, a->rank);
  pthread_mutex_unlock(&lock);
  if (goes_on) compute(a, out);
  pthread_mutex_lock(&lock);
  goes_on = goes_on && wait_for_all(a->group, a->group->computed, a->rank);
  pthread_mutex_unlock(&lock);
  if (goes_on) memcpy(a->dst, out, bytes);
  free(out);
}

/* cuCtxEnablePeerAccess, which is not in the driver's table. */
static cu_result enable_peer(cu_context peer, unsigned flags) {
  cu_result (*enable)(cu_context peer, unsigned flags);
  void *symbol;
  if (driver() == NULL || driver_entry("cuCtxEnablePeerAccess", &symbol, 4000, 0, NULL) != CU_OK) return CU_NOT_FOUND;
  memcpy(&enable, &symbol, sizeof symbol);
  return enable(peer, flags);
}

/* Communicators --------------------------------------------------------------------------------------------------- */

int fake_make_unique_id(nccl_unique_id *out) {
  const int code = begin("ncclGetUniqueId");
  if (code != NCCL_OK) return code;
  memset(out, 0, sizeof *out);
  pthread_mutex_lock(&lock);
  ids++;
  memcpy(out->internal, &ids, sizeof ids);
  pthread_mutex_unlock(&lock);
  return NCCL_OK;
}

/* With the lock. */
static group *find_group(const nccl_unique_id *id, int ranks) {
  group *g = groups;
  while (g != NULL && memcmp(&g->id, id, sizeof *id) != 0) g = g->next;
  if (g != NULL) return g;
  g = calloc(1, sizeof *g);
  if (g == NULL) abort();
  *g = (group){.next = groups, .id = *id, .ranks = ranks};
  groups = g;
  return g;
}

static int load(nccl_comm comm) {
  static const char image[] = FAKE_IMAGE_HEAD "fake_nccl_collective\n";
  const library_kernel kernel = {"fake_nccl_collective", collective_cpu, &comm->function};
  const rondo_parameter parameter = RONDO_SCALAR(call_arguments);
  return load_kernels(image, &kernel, 1, parameter, &comm->context, &comm->module) ? NCCL_OK : CUDA_ERROR;
}

static int join(nccl_comm *out, int ranks, const nccl_unique_id *id, int rank) {
  nccl_comm comm = calloc(1, sizeof *comm);
  if (comm == NULL) abort();
  const int code = load(comm);
  if (code != NCCL_OK) {
    free(comm);
    return code;
  }
  pthread_mutex_lock(&lock);
  comm->group = find_group(id, ranks);
  comm->rank = rank;
  comm->group->contexts[rank] = comm->context;
  comm->group->joined++;
  live++;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  *out = comm;
  return NCCL_OK;
}

/* Takes the communicator away again when the others do not come. */
static int await_others(nccl_comm *comm) {
  struct timespec deadline;
  int result = 0;
  (void)clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += PATIENCE_SECONDS;
  pthread_mutex_lock(&lock);
  while (result == 0 && (*comm)->group->joined < (*comm)->group->ranks)
    result = pthread_cond_timedwait(&changed, &lock, &deadline);
  pthread_mutex_unlock(&lock);
  return result == 0 ? NCCL_OK : REMOTE_ERROR;
}

static _Thread_local int depth, pending_count;
static _Thread_local nccl_comm *pending[MOST_PENDING];

int fake_init_rank(nccl_comm *out, int ranks, nccl_unique_id id, int rank) {
  *out = NULL;
  int code = begin("ncclCommInitRank");
  if (code != NCCL_OK) return code;
  if (ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks) return INVALID_ARGUMENT;
  code = join(out, ranks, &id, rank);
  if (code != NCCL_OK) return code;
  if (depth == 0) return await_others(out);
  if (pending_count == MOST_PENDING) return INVALID_USAGE;
  pending[pending_count++] = out;
  return NCCL_OK;
}

int fake_group_start(void) {
  const int code = begin("ncclGroupStart");
  if (code == NCCL_OK) depth++;
  return code;
}

/* What joined goes again when a call of the group has failed. */
int fake_group_end(void) {
  int code = begin("ncclGroupEnd");
  if (--depth > 0) return code;
  for (int i = 0; i < pending_count && code == NCCL_OK; i++) {
    pthread_mutex_lock(&lock);
    const bool all_here = (*pending[i])->group->joined >= pending_count;
    pthread_mutex_unlock(&lock);
    code = all_here ? await_others(pending[i]) : INVALID_USAGE;
  }
  for (int i = 0; i < pending_count && code != NCCL_OK; i++) {
    (void)fake_destroy(*pending[i]);
    *pending[i] = NULL;
  }
  pending_count = 0;
  return code;
}

static int end_communicator(nccl_comm comm) {
  if (comm == NULL) return INVALID_ARGUMENT;
  const bool unloaded = driver()->module_unload(comm->module) == CU_OK;
  pthread_mutex_lock(&lock);
  live--;
  pthread_mutex_unlock(&lock);
  free(comm);
  return unloaded ? NCCL_OK : CUDA_ERROR;
}

int fake_destroy(nccl_comm comm) {
  const int code = begin("ncclCommDestroy");
  const int ended = end_communicator(comm);
  return code != NCCL_OK ? code : ended;
}

/* Unloading waits for what runs. */
int fake_break_off(nccl_comm comm) {
  const int code = begin("ncclCommAbort");
  if (comm == NULL) return INVALID_ARGUMENT;
  pthread_mutex_lock(&lock);
  comm->group->aborted = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  const int ended = end_communicator(comm);
  return code != NCCL_OK ? code : ended;
}

int fake_async_error(nccl_comm comm, int *out) {
  const int code = begin("ncclCommGetAsyncError");
  pthread_mutex_lock(&lock);
  *out = asynchronous;
  pthread_mutex_unlock(&lock);
  return comm == NULL ? INVALID_ARGUMENT : code;
}

/* Collectives ----------------------------------------------------------------------------------------------------- */

static size_t bytes_of(int type) {
  switch (type) {
    case NCCL_F16:
    case NCCL_BF16:
      return 2;
    case NCCL_I32:
    case NCCL_F32:
      return 4;
    case NCCL_I64:
    case NCCL_F64:
      return 8;
    default:
      return 0;
  }
}

static int enable_peers(nccl_comm comm) {
  for (int rank = 0; rank < comm->group->ranks; rank++) {
    const cu_context peer = comm->group->contexts[rank];
    if (peer == comm->context) continue;
    const cu_result enabled = enable_peer(peer, 0);
    if (enabled != CU_OK && enabled != FAKE_CUDA_PEER_IS_ENABLED) return INTERNAL_ERROR;
  }
  return NCCL_OK;
}

/* A communicator is of one thread at a time. */
static int connect_ranks(nccl_comm comm, const call_arguments *arguments) {
  const bool is_small = arguments->count * arguments->element <= TREE_BYTES;
  const algorithm needed = arguments->operation == ALL_REDUCE && is_small ? TREE : RING;
  if (comm->connected[needed]) return NCCL_OK;
  pthread_mutex_lock(&lock);
  const bool goes_on = wait_for_all(comm->group, comm->group->connecting[needed], arguments->rank);
  pthread_mutex_unlock(&lock);
  const int code = goes_on ? enable_peers(comm) : REMOTE_ERROR;
  comm->connected[needed] = code == NCCL_OK;
  return code;
}

static int launch(const char *symbol, nccl_comm comm, call_arguments arguments, nccl_stream stream) {
  cu_context context = NULL;
  size_t bytes = sizeof arguments;
  void *extra[] = {(void *)(uintptr_t)1, &arguments, (void *)(uintptr_t)2, &bytes, NULL};
  const int code = begin(symbol);
  if (code != NCCL_OK) return code;
  arguments.element = bytes_of((int)arguments.type);
  arguments.group = comm->group;
  arguments.rank = (uint64_t)comm->rank;
  if (arguments.element == 0 || arguments.src == NULL || arguments.dst == NULL) return INVALID_ARGUMENT;
  if (driver()->context_get_current(&context) != CU_OK || context != comm->context) return INVALID_USAGE;
  const int connected = connect_ranks(comm, &arguments);
  if (connected != NCCL_OK) return connected;
  const cu_result launched =
      driver()->launch_kernel(comm->function, 1, 1, 1, 32, 1, 1, 0, (cu_stream)(void *)stream, NULL, extra);
  pthread_mutex_lock(&lock);
  calls += launched == CU_OK;
  pthread_mutex_unlock(&lock);
  return launched == CU_OK ? NCCL_OK : CUDA_ERROR;
}

int fake_all_reduce(const void *src, void *dst, size_t count, int type, int reduction, nccl_comm comm,
                    nccl_stream stream) {
  const call_arguments arguments = {.operation = ALL_REDUCE,
                                    .type = (uint64_t)type,
                                    .reduction = (uint64_t)reduction,
                                    .count = count,
                                    .src = src,
                                    .dst = dst};
  return launch("ncclAllReduce", comm, arguments, stream);
}

int fake_broadcast(const void *src, void *dst, size_t count, int type, int root, nccl_comm comm, nccl_stream stream) {
  const call_arguments arguments = {
      .operation = BROADCAST, .type = (uint64_t)type, .root = (uint64_t)root, .count = count, .src = src, .dst = dst};
  return launch("ncclBroadcast", comm, arguments, stream);
}

int fake_all_gather(const void *src, void *dst, size_t count, int type, nccl_comm comm, nccl_stream stream) {
  const call_arguments arguments = {
      .operation = ALL_GATHER, .type = (uint64_t)type, .count = count, .src = src, .dst = dst};
  return launch("ncclAllGather", comm, arguments, stream);
}

int fake_reduce_scatter(const void *src, void *dst, size_t count, int type, int reduction, nccl_comm comm,
                        nccl_stream stream) {
  const call_arguments arguments = {.operation = REDUCE_SCATTER,
                                    .type = (uint64_t)type,
                                    .reduction = (uint64_t)reduction,
                                    .count = count,
                                    .src = src,
                                    .dst = dst};
  return launch("ncclReduceScatter", comm, arguments, stream);
}
