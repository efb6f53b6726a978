/* SPDX-License-Identifier: MIT
 * The fake NCCL, a separate library, for ranks of one process. Like the real one, it knows only the driver, not Rondo.
 * A collective is one kernel launched on the caller's stream, which waits for those of the other ranks and computes in
 * the order of ranks. The sends and receives of a group of calls are one kernel. As with the real one, joining waits
 * for all ranks, unless several join between ncclGroupStart and ncclGroupEnd; a communicator works in the context in
 * which it was created; and its kernels must not run after it was destroyed, which unloads them. An abort ends kernels
 * that wait. With NCCL_COMM_ID, an id is an address, and rank 0 listens there when it joins; otherwise the maker of an
 * id listens. Nothing is sent: ranks of one address find each other by its text. Groups are never freed, because
 * kernels of an aborted one may still access it. Threads: any; one lock guards everything. WITHOUT_OPTIONAL: an old
 * NCCL.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/numbers/half_float.h"
#include "fake_cuda/fake_cuda.h"
#include "fake_cuda/fake_nccl.h"
#include "fake_cuda/foreign_library.h"
#include "fake_cuda/image.h"
#include "vendor/nccl_abi.h"

#ifdef WITHOUT_OPTIONAL
enum { VERSION = 2604 }; /* 2.6.4 */
#else
enum { VERSION = 22304 };
#endif
enum { MOST_RANKS = 8, MOST_PENDING = 8, MOST_TRANSFERS = 2 * MOST_RANKS, TIMEOUT_SECONDS = 60 };
enum {
  CUDA_ERROR = 1,
  SYSTEM_ERROR = 2,
  INTERNAL_ERROR = 3,
  INVALID_ARGUMENT = 4,
  INVALID_USAGE = 5,
  REMOTE_ERROR = 6
};

typedef enum operation { ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, TRANSFERS } operation;

/* Small all-reduces go along a tree, the rest round a ring. */
typedef enum algorithm { TREE, RING, ALGORITHMS } algorithm;
enum { TREE_BYTES = 1024 };

/* What one rank sends to another: there from when the sender comes until it sees that the receiver has taken it. */
typedef struct message {
  const char *data;
  size_t bytes;
  bool is_taken;
} message;

/* What a rank wants of a split. */
typedef struct wish {
  int color, key;
} wish;

typedef struct group {
  struct group *next;
  nccl_unique_id id;
  int ranks, joined;
  bool aborted;
  uint64_t arrived[MOST_RANKS], computed[MOST_RANKS]; /* collectives, by rank */
  uint64_t connecting[ALGORITHMS][MOST_RANKS];        /* times that a rank has tried to */
  cu_context contexts[MOST_RANKS];
  const char *src[MOST_RANKS];
  bool meets[MOST_RANKS][MOST_RANKS];       /* whether a rank has sent to or received from another */
  message messages[MOST_RANKS][MOST_RANKS]; /* by sender and receiver */
  uint64_t splitting[MOST_RANKS];
  wish wishes[2][MOST_RANKS]; /* by the split's number, as one rank may come to the next while another still reads */
} group;

typedef enum transfer_state { BEGUN, OFFERED, DONE } transfer_state;

typedef struct transfer {
  bool is_send;
  int peer;
  char *data; /* only read if it is sent */
  size_t bytes;
} transfer;

/* The sends and receives of a group of calls. The communicator's, because graphs may launch them again. */
typedef struct batch {
  struct batch *next;         /* of the group of calls */
  struct batch *next_of_comm; /* earlier */
  nccl_comm comm;
  nccl_stream stream;
  size_t count;
  transfer transfers[MOST_TRANSFERS];
} batch;

struct nccl_communicator {
  group *group;
  int rank;
  bool connected[ALGORITHMS];
  cu_context context;
  cu_module module;
  cu_function function;
  batch *batches;
};

/* What the kernel gets. */
typedef struct call_arguments {
  group *group;
  uint64_t rank, operation, element, type, reduction, root, count;
  const char *src;
  char *dst;
  const batch *batch; /* TRANSFERS */
} call_arguments;

/* Functions: fake_<member>, under the library's names. */
#define ROW(result, member, symbol, arguments) EXPORT result fake_##member arguments __asm__(#symbol);
NCCL_FUNCTIONS(ROW)
#ifndef WITHOUT_OPTIONAL
NCCL_OPTIONAL_FUNCTIONS(ROW)
#endif
#undef ROW

/* What tests ask -------------------------------------------------------------------------------------------------- */

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static group *groups;
static uint64_t calls, ids;
static int asynchronous, version = VERSION;
static size_t waiting;
static char listening[sizeof(nccl_unique_id)];

static uint64_t count_calls(void) { return read_count(&calls); }

static void set_async_error(int code) {
  pthread_mutex_lock(&lock);
  asynchronous = code;
  pthread_mutex_unlock(&lock);
}

static void set_version(int code) {
  pthread_mutex_lock(&lock);
  version = code == 0 ? VERSION : code;
  pthread_mutex_unlock(&lock);
}

static size_t count_waiting(void) {
  pthread_mutex_lock(&lock);
  const size_t count = waiting;
  pthread_mutex_unlock(&lock);
  return count;
}

static void get_address(char *out, size_t bytes) {
  pthread_mutex_lock(&lock);
  (void)snprintf(out, bytes, "%s", listening);
  pthread_mutex_unlock(&lock);
}

EXPORT const void *fake_control(void) __asm__(FAKE_NCCL_ENTRY);
const void *fake_control(void) {
  static const fake_nccl_control control = {count_live,  count_calls,   set_failure, set_async_error,
                                            set_version, count_waiting, get_address};
  return &control;
}

int fake_get_version(int *out) {
  pthread_mutex_lock(&lock);
  *out = version;
  pthread_mutex_unlock(&lock);
  return NCCL_OK;
}

const char *fake_error_string(int result) {
  static const code_name names[] = {{NCCL_OK, "no error"},
                                    {CUDA_ERROR, "unhandled cuda error"},
                                    {SYSTEM_ERROR, "unhandled system error"},
                                    {INTERNAL_ERROR, "internal error"},
                                    {INVALID_ARGUMENT, "invalid argument"},
                                    {INVALID_USAGE, "invalid usage"},
                                    {REMOTE_ERROR, "remote process exited or there was a network error"}};
  return CODE_NAME(names, result, "unknown result code");
}

/* Kernels --------------------------------------------------------------------------------------------------------- */

/* FROM and TO convert a stored value to one that is computed with, and back. */
#define DEFINE_COMBINE(name, type, sum_type, FROM, TO)                                                          \
  static void combine_##name(char *dst, const char *src, size_t count, uint64_t reduction) {                    \
    type *const to = (type *)(void *)dst;                                                                       \
    const type *const from = (const type *)(const void *)src;                                                   \
    for (size_t i = 0; i < count; i++) {                                                                        \
      const bool is_better = reduction == NCCL_MAX ? FROM(from[i]) > FROM(to[i]) : FROM(from[i]) < FROM(to[i]); \
      if (reduction == NCCL_SUM || reduction == NCCL_AVG)                                                       \
        to[i] = (type)TO((sum_type)FROM(to[i]) + (sum_type)FROM(from[i]));                                      \
      else if (is_better)                                                                                       \
        to[i] = from[i];                                                                                        \
    }                                                                                                           \
  }                                                                                                             \
  static void divide_##name(char *dst, size_t count, int ranks) {                                               \
    type *const to = (type *)(void *)dst;                                                                       \
    for (size_t i = 0; i < count; i++) to[i] = (type)TO((sum_type)FROM(to[i]) / (sum_type)ranks);               \
  }
DEFINE_COMBINE(f32, float, float, , )
DEFINE_COMBINE(f64, double, double, , )
DEFINE_COMBINE(i32, int32_t, uint32_t, , )
DEFINE_COMBINE(i64, int64_t, uint64_t, , )
DEFINE_COMBINE(i8, int8_t, uint8_t, , )
DEFINE_COMBINE(u8, uint8_t, uint8_t, , )
DEFINE_COMBINE(f16, uint16_t, float, rondo_from_f16, rondo_to_f16)
DEFINE_COMBINE(bf16, uint16_t, float, rondo_from_bf16, rondo_to_bf16)

typedef struct arithmetic {
  size_t bytes;
  void (*combine)(char *dst, const char *src, size_t count, uint64_t reduction);
  void (*divide)(char *dst, size_t count, int ranks);
} arithmetic;

/* Without bytes: not a type. */
static arithmetic arithmetic_of(uint64_t type) {
  static const arithmetic types[] = {
      [NCCL_I8] = {1, combine_i8, divide_i8},    [NCCL_U8] = {1, combine_u8, divide_u8},
      [NCCL_I32] = {4, combine_i32, divide_i32}, [NCCL_I64] = {8, combine_i64, divide_i64},
      [NCCL_F16] = {2, combine_f16, divide_f16}, [NCCL_F32] = {4, combine_f32, divide_f32},
      [NCCL_F64] = {8, combine_f64, divide_f64}, [NCCL_BF16] = {2, combine_bf16, divide_bf16},
  };
  return type < sizeof types / sizeof *types ? types[type] : (arithmetic){0};
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
      arithmetic_of(a->type).combine(out, g->src[rank] + offset, a->count, a->reduction);
  }
  if (a->operation != ALL_GATHER && a->reduction == NCCL_AVG) arithmetic_of(a->type).divide(out, a->count, g->ranks);
}

/* With the lock. Does what of a transfer can be done now. */
static bool advance(group *g, int rank, const transfer *t, transfer_state *state) {
  message *const m = t->is_send ? &g->messages[rank][t->peer] : &g->messages[t->peer][rank];
  const transfer_state before = *state;
  if (t->is_send && before == BEGUN && m->data == NULL) {
    *m = (message){.data = t->data, .bytes = t->bytes};
    *state = OFFERED;
  } else if (t->is_send && before == OFFERED && m->is_taken) {
    *m = (message){0};
    *state = DONE;
  } else if (!t->is_send && before == BEGUN && m->data != NULL && !m->is_taken) {
    memcpy(t->data, m->data, t->bytes < m->bytes ? t->bytes : m->bytes);
    m->is_taken = true;
    *state = DONE;
  }
  return *state != before;
}

/* Each goes on as soon as the other rank is there, whatever their order. */
static void transfer_all(group *g, int rank, const batch *b) {
  transfer_state states[MOST_TRANSFERS] = {BEGUN};
  pthread_mutex_lock(&lock);
  while (!g->aborted) {
    bool has_advanced = false, is_done = true;
    for (size_t i = 0; i < b->count; i++) {
      has_advanced = advance(g, rank, &b->transfers[i], &states[i]) || has_advanced;
      is_done = is_done && states[i] == DONE;
    }
    if (has_advanced) pthread_cond_broadcast(&changed);
    if (is_done) break;
    if (!has_advanced) pthread_cond_wait(&changed, &lock);
  }
  pthread_mutex_unlock(&lock);
}

/* Sources are read by all before any destination is written, which may be one of them. */
static void collective(const call_arguments *a) {
  const size_t bytes = a->count * a->element * (a->operation == ALL_GATHER ? (size_t)a->group->ranks : 1);
  char *out = malloc(bytes);
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

static void collective_cpu(rondo_blocks blocks, void *const *args) {
  const call_arguments *a = args[0];
  (void)blocks;
  if (a->operation == TRANSFERS)
    transfer_all(a->group, (int)a->rank, a->batch);
  else
    collective(a);
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

/* An id is a number or an address, which stands after it. */
static char *address_of(nccl_unique_id *id) { return id->internal + sizeof ids; }

static void set_number(nccl_unique_id *id, uint64_t number) { memcpy(id->internal, &number, sizeof number); }

int fake_make_unique_id(nccl_unique_id *out) {
  const char *address = getenv("NCCL_COMM_ID");
  const int code = begin("ncclGetUniqueId");
  if (code != NCCL_OK) return code;
  memset(out, 0, sizeof *out);
  if (address != NULL) {
    strncat(address_of(out), address, sizeof *out - sizeof ids - 1);
    return NCCL_OK;
  }
  pthread_mutex_lock(&lock);
  set_number(out, ++ids);
  pthread_mutex_unlock(&lock);
  return NCCL_OK;
}

/* Rank 0 listens at an address, if NCCL_COMM_ID is set now. Whoever made an id that is no address already listens. */
static int begin_listening(nccl_unique_id *id) {
  const bool is_asked = getenv("NCCL_COMM_ID") != NULL, has_address = *address_of(id) != '\0';
  if (is_asked != has_address) return is_asked ? SYSTEM_ERROR : REMOTE_ERROR;
  if (!has_address) return NCCL_OK;
  pthread_mutex_lock(&lock);
  strcpy(listening, address_of(id));
  pthread_mutex_unlock(&lock);
  return NCCL_OK;
}

/* With the lock. A complete group has no room, so that the next one may have its address. */
static group *find_group(const nccl_unique_id *id, int ranks) {
  group *g = groups;
  while (g != NULL && (memcmp(&g->id, id, sizeof *id) != 0 || g->joined == g->ranks)) g = g->next;
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

static int await_others(nccl_comm *comm) {
  struct timespec deadline;
  int result = 0;
  (void)clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += TIMEOUT_SECONDS;
  pthread_mutex_lock(&lock);
  waiting++;
  while (result == 0 && (*comm)->group->joined < (*comm)->group->ranks)
    result = pthread_cond_timedwait(&changed, &lock, &deadline);
  waiting--;
  pthread_mutex_unlock(&lock);
  return result == 0 ? NCCL_OK : REMOTE_ERROR;
}

/* A group of calls of this thread, and the code of the first call in it that failed. */
static _Thread_local int depth, pending_count, group_code;
static _Thread_local nccl_comm *pending[MOST_PENDING];
static _Thread_local batch *batches;

/* What a call in a group returns, the group's end returns too. */
static int end_call(int code) {
  if (depth > 0 && group_code == NCCL_OK) group_code = code;
  return code;
}

static int init_rank(nccl_comm *out, int ranks, nccl_unique_id *id, int rank) {
  int code = begin("ncclCommInitRank");
  if (code != NCCL_OK) return code;
  if (ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks) return INVALID_ARGUMENT;
  if (rank == 0) code = begin_listening(id);
  if (code == NCCL_OK) code = join(out, ranks, id, rank);
  if (code != NCCL_OK) return code;
  if (depth == 0) return await_others(out);
  if (pending_count == MOST_PENDING) return INVALID_USAGE;
  pending[pending_count++] = out;
  return NCCL_OK;
}

int fake_init_rank(nccl_comm *out, int ranks, nccl_unique_id id, int rank) {
  *out = NULL;
  return end_call(init_rank(out, ranks, &id, rank));
}

int fake_group_start(void) {
  const int code = begin("ncclGroupStart");
  if (code == NCCL_OK) depth++;
  return code;
}

/* What joined goes again when a call of the group has failed. */
static int end_joining(int code) {
  for (int i = 0; i < pending_count && code == NCCL_OK; i++) code = await_others(pending[i]);
  for (int i = 0; i < pending_count && code != NCCL_OK; i++) {
    (void)fake_destroy(*pending[i]);
    *pending[i] = NULL;
  }
  pending_count = 0;
  return code;
}

static int launch_batch(batch *b);

/* The communicators own the batches. */
static int end_transfers(int code) {
  for (; batches != NULL; batches = batches->next)
    if (code == NCCL_OK) code = launch_batch(batches);
  return code;
}

int fake_group_end(void) {
  int code = begin("ncclGroupEnd");
  if (--depth > 0) return end_call(code);
  if (code == NCCL_OK) code = group_code;
  group_code = NCCL_OK;
  return end_transfers(end_joining(code));
}

static int end_communicator(nccl_comm comm) {
  if (comm == NULL) return INVALID_ARGUMENT;
  const bool unloaded = driver()->module_unload(comm->module) == CU_OK;
  while (comm->batches != NULL) {
    batch *const last = comm->batches;
    comm->batches = last->next_of_comm;
    free(last);
  }
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

int fake_count_ranks(nccl_comm comm, int *out) {
  *out = comm->group->ranks;
  return begin("ncclCommCount");
}

int fake_get_rank(nccl_comm comm, int *out) {
  *out = comm->rank;
  return begin("ncclCommUserRank");
}

int fake_async_error(nccl_comm comm, int *out) {
  const int code = begin("ncclCommGetAsyncError");
  pthread_mutex_lock(&lock);
  *out = asynchronous;
  pthread_mutex_unlock(&lock);
  return comm == NULL ? INVALID_ARGUMENT : code;
}

/* Collectives ----------------------------------------------------------------------------------------------------- */

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

static int launch_kernel(nccl_comm comm, call_arguments *arguments, nccl_stream stream) {
  size_t bytes = sizeof *arguments;
  void *extra[] = {(void *)(uintptr_t)1, arguments, (void *)(uintptr_t)2, &bytes, NULL};
  const cu_result launched =
      driver()->launch_kernel(comm->function, 1, 1, 1, 32, 1, 1, 0, (cu_stream)(void *)stream, NULL, extra);
  pthread_mutex_lock(&lock);
  calls += launched == CU_OK;
  pthread_mutex_unlock(&lock);
  return launched == CU_OK ? NCCL_OK : CUDA_ERROR;
}

static bool is_current(nccl_comm comm) {
  cu_context context = NULL;
  return driver()->context_get_current(&context) == CU_OK && context == comm->context;
}

static int launch(const char *symbol, nccl_comm comm, call_arguments arguments, nccl_stream stream) {
  const int code = begin(symbol);
  if (code != NCCL_OK) return code;
  arguments.element = arithmetic_of(arguments.type).bytes;
  arguments.group = comm->group;
  arguments.rank = (uint64_t)comm->rank;
  if (arguments.element == 0 || arguments.src == NULL || arguments.dst == NULL) return INVALID_ARGUMENT;
  if (depth > 0 || !is_current(comm)) return INVALID_USAGE;
  const int connected = connect_ranks(comm, &arguments);
  return connected == NCCL_OK ? launch_kernel(comm, &arguments, stream) : connected;
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

/* Sends and receives ---------------------------------------------------------------------------------------------- */

#ifdef WITHOUT_OPTIONAL
static int launch_batch(batch *b) {
  (void)b;
  return INTERNAL_ERROR;
}
#else

/* With the lock. */
static bool have_all_met(const group *g, int rank, const batch *b) {
  bool have = true;
  for (size_t i = 0; i < b->count; i++) have = have && g->meets[b->transfers[i].peer][rank];
  return have;
}

/* Two ranks connect when both send or receive for the first time. */
static int connect_peers(const batch *b) {
  const nccl_comm comm = b->comm;
  group *const g = comm->group;
  pthread_mutex_lock(&lock);
  bool is_first = false;
  for (size_t i = 0; i < b->count; i++) {
    bool *const meets = &g->meets[comm->rank][b->transfers[i].peer];
    is_first = is_first || !*meets;
    *meets = true;
  }
  pthread_cond_broadcast(&changed);
  while (!g->aborted && !have_all_met(g, comm->rank, b)) pthread_cond_wait(&changed, &lock);
  const bool goes_on = !g->aborted;
  pthread_mutex_unlock(&lock);
  if (!goes_on) return REMOTE_ERROR;
  return is_first ? enable_peers(comm) : NCCL_OK;
}

static int launch_batch(batch *b) {
  call_arguments arguments = {
      .group = b->comm->group, .rank = (uint64_t)b->comm->rank, .operation = TRANSFERS, .batch = b};
  if (!is_current(b->comm)) return INVALID_USAGE;
  const int connected = connect_peers(b);
  return connected == NCCL_OK ? launch_kernel(b->comm, &arguments, b->stream) : connected;
}

/* The batch of the thread's group of calls for that stream. */
static batch *find_batch(nccl_comm comm, nccl_stream stream) {
  for (batch *b = batches; b != NULL; b = b->next)
    if (b->comm == comm && b->stream == stream) return b;
  batch *made = calloc(1, sizeof *made);
  if (made == NULL) abort();
  *made = (batch){.next = batches, .next_of_comm = comm->batches, .comm = comm, .stream = stream};
  comm->batches = made;
  batches = made;
  return made;
}

static int add_transfer(const char *symbol, nccl_comm comm, transfer added, int type, nccl_stream stream) {
  const int code = begin(symbol);
  added.bytes *= arithmetic_of((uint64_t)type).bytes;
  if (code != NCCL_OK) return code;
  if (added.data == NULL || added.bytes == 0 || added.peer < 0 || added.peer >= comm->group->ranks)
    return INVALID_ARGUMENT;
  if (depth == 0 || !is_current(comm)) return INVALID_USAGE; /* Rondo always makes a group */
  batch *b = find_batch(comm, stream);
  if (b->count == MOST_TRANSFERS) return INVALID_USAGE;
  b->transfers[b->count++] = added;
  return NCCL_OK;
}

int fake_send(const void *src, size_t count, int type, int peer, nccl_comm comm, nccl_stream stream) {
  const transfer added = {.is_send = true, .peer = peer, .data = (char *)(uintptr_t)src, .bytes = count};
  return end_call(add_transfer("ncclSend", comm, added, type, stream));
}

int fake_receive(void *dst, size_t count, int type, int peer, nccl_comm comm, nccl_stream stream) {
  const transfer added = {.peer = peer, .data = dst, .bytes = count};
  return end_call(add_transfer("ncclRecv", comm, added, type, stream));
}

/* Splits ---------------------------------------------------------------------------------------------------------- */

/* Where a rank is in its part of the group, and how many are there. */
typedef struct part {
  nccl_unique_id id;
  int rank, ranks;
} part;

/* With the lock. */
static part find_part(const group *g, const wish *wishes, int rank, uint64_t number) {
  part found = {.ranks = 0};
  const wish own = wishes[rank];
  for (int other = 0; other < g->ranks; other++) {
    if (wishes[other].color != own.color) continue;
    found.ranks++;
    found.rank += wishes[other].key < own.key || (wishes[other].key == own.key && other < rank);
  }
  set_number(&found.id, (uintptr_t)g);
  const uint64_t rest[] = {number + 1, (uint64_t)own.color};
  memcpy(found.id.internal + sizeof found.id - sizeof rest, rest, sizeof rest);
  return found;
}

int fake_split(nccl_comm comm, int color, int key, nccl_comm *out, nccl_config *config) {
  group *const g = comm->group;
  int code = begin("ncclCommSplit");
  *out = NULL;
  if (code != NCCL_OK) return code;
  if (color < 0 || config != NULL || depth > 0) return INVALID_ARGUMENT;
  pthread_mutex_lock(&lock);
  const uint64_t number = g->splitting[comm->rank];
  wish *const wishes = g->wishes[number % 2];
  wishes[comm->rank] = (wish){color, key};
  const bool goes_on = wait_for_all(g, g->splitting, (uint64_t)comm->rank);
  const part found = find_part(g, wishes, comm->rank, number);
  pthread_mutex_unlock(&lock);
  if (!goes_on) return REMOTE_ERROR;
  code = join(out, found.ranks, &found.id, found.rank);
  return code == NCCL_OK ? await_others(out) : code;
}
#endif
