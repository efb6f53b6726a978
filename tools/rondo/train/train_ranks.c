/* SPDX-License-Identifier: MIT
 * Data-parallel training: this process is one rank of several, which a launcher started with the same command line. On
 * CPU devices the ranks are MPI's, on CUDA devices NCCL's; a launcher without MPI can start the latter.
 *
 * Every rank draws its own rows of the batch that one rank would draw, so the losses are those of one rank up to
 * rounding. After each step the ranks exchange a few numbers: the losses, whose mean is the loss of the whole batch,
 * and signals, so that all stop after the same step.
 *
 * Failures. A rank that fails says so and ends all others (tool_set_rank). What every rank has to say is thus said
 * once.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/interrupt.h"
#include "common/tool.h"
#include "train/train.h"

#define WAIT_TO_ABORT_NS UINT64_C(200000000) /* so that the launcher passes on what was said: MPICH's drops it */

/* Setup ----------------------------------------------------------------------------------------------------------- */

static bool is_parallel(const training *t) { return t->ranks.started.size > 1; }
static bool is_cuda(const training *t) { return strncmp(t->settings.device, "cuda", 4) == 0; }

/* Whether the ranks find each other by MPI. torchrun and srun also say where NCCL's rank 0 is. */
static bool uses_mpi(const training *t) {
  const char *mpi = t->ranks.started.mpi;
  return t->settings.mpi || (mpi && (mpi[0] || !is_cuda(t)));
}

static int divide_batch(training *t) {
  const uint64_t batch = t->settings.batch, size = t->ranks.started.size;
  if (batch % size != 0)
    return tool_fail_usage("a batch of %" PRIu64 " cannot be divided by %" PRIu64 " ranks: use --batch %" PRIu64, batch,
                           size, (batch / size + 1) * size);
  t->batch.places = (uint32_t)(batch / size);
  return TOOL_OK;
}

/* The ranks of a machine share its processors and have a GPU each. A launcher that binds ranks to processors has shared
 * them already. */
static void choose_device(training *t) {
  const launcher *started = &t->ranks.started;
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t allowed;
  if (strcmp(t->settings.device, "cuda") == 0) {
    snprintf(t->ranks.device, sizeof t->ranks.device, "cuda:%" PRIu32, started->local_rank);
    t->settings.device = t->ranks.device;
  }
  if (t->settings.workers > 0 || started->local_size < 2 || getenv("RONDO_CPU_WORKERS")) return;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < online) return;
  const uint64_t each = (uint64_t)online / started->local_size;
  t->settings.workers = each > 2 ? each - 1 : 1; /* the thread that waits works too */
}

int train_ranks_begin(training *t) {
  train_ranks *r = &t->ranks;
  if (!is_parallel(t)) return TOOL_OK;
  if (!uses_mpi(t) && !is_cuda(t))
    return tool_fail("%s starts no ranks of MPI, which CPU devices need: use mpirun, or --device cuda",
                     r->started.name);
  if (!uses_mpi(t)) return TOOL_OK;
  if (train_mpi_load(t->settings.mpi, &r->started, &r->mpi) != TOOL_OK) return TOOL_FAILURE;
  if (r->mpi.begin()) return tool_fail_status("%s", r->mpi.path);
  r->has_begun = true;
  return TOOL_OK;
}

/* A trace is of one process, so each rank has a file: that of rank 2 is FILE.2. */
static int name_trace(training *t) {
  train_ranks *r = &t->ranks;
  const char *file = t->settings.trace ? t->settings.trace : secure_getenv("RONDO_TRACE");
  if (!file || !file[0] || r->started.rank == 0) return TOOL_OK;
  const int length = snprintf(r->trace, sizeof r->trace, "%s.%" PRIu32, file, r->started.rank);
  if (length < 0 || (size_t)length >= sizeof r->trace)
    return tool_fail("the name of the trace is longer than %zu bytes: use a shorter one", sizeof r->trace);
  t->settings.trace = r->trace; /* the library opens no other */
  return TOOL_OK;
}

int train_ranks_choose(training *t) {
  train_settings *s = &t->settings;
  if (!s->data_parallel && s->mpi) return tool_fail_usage("--mpi needs --data-parallel");
  if (!s->data_parallel) return s->shard_states ? tool_fail_usage("--shard-states needs --data-parallel") : TOOL_OK;
  if (t->ranks.started.size == 0)
    return tool_fail_usage("--data-parallel needs a launcher that starts the ranks: mpirun -n N rondo train ...");
  if (!is_parallel(t)) return TOOL_OK;
  if (strcmp(t->path, "-") == 0)
    return tool_fail_usage("with --data-parallel, TEXT must be a file: not all ranks can read standard input");
  choose_device(t);
  if (t->ranks.started.rank > 0) s->dump_graph = NULL;
  const int result = divide_batch(t);
  return result == TOOL_OK ? name_trace(t) : result;
}

/* Exchange -------------------------------------------------------------------------------------------------------- */

/* What a rank is, and what must be the same on all. */
typedef struct rank_facts {
  char traits[TRAIN_MOST_TRAITS][TRAIN_TRAIT_BYTES];
  char host[64], device[96];
  uint32_t workers;
} rank_facts;

enum { MOST_BYTES = sizeof(rank_facts) };
_Static_assert(sizeof(rank_facts) % 4 == 0 && sizeof(train_rank_step) % 4 == 0, "they are sent as I32");

/* Collects `bytes` from each rank, through memory of the device. Waits. */
static rondo_status gather(train_ranks *r, const void *own, size_t bytes, void *all) {
  TOOL_TRY(rondo_copy_async(r->stream, r->sent, own, bytes));
  TOOL_TRY(rondo_all_gather(r->communicator, r->stream, r->sent, r->received, bytes / 4, RONDO_I32));
  TOOL_TRY(rondo_copy_async(r->stream, all, r->received, bytes * r->started.size));
  return rondo_stream_synchronize(r->stream);
}

static rondo_status connect(training *t) {
  train_ranks *r = &t->ranks;
  const double seconds = t->settings.timeout;
  const rondo_communicator_options options = {RONDO_COMMUNICATOR_OPTIONS_INIT,
                                              .join_timeout_ms = (uint32_t)(seconds * 1000),
                                              .timeout_ms = (uint32_t)(seconds * 1000), .name = "rondo train"};
  if (uses_mpi(t))
    TOOL_TRY(r->mpi.communicator(t->device, &options, &r->communicator));
  else
    TOOL_TRY(rondo_communicator_from_environment(t->device, &options, &r->communicator));
  TOOL_TRY(rondo_stream_create(t->device, NULL, &r->stream));
  TOOL_TRY(rondo_malloc(t->device, MOST_BYTES, "sent", &r->sent));
  TOOL_TRY(rondo_malloc(t->device, (size_t)MOST_BYTES * r->started.size, "received", &r->received));
  return rondo_communicator_get_info(r->communicator, &r->info);
}

static int check_size(const training *t) {
  const train_ranks *r = &t->ranks;
  if (r->info.world_size == r->started.size) return TOOL_OK;
  return tool_fail("%s started %" PRIu32 " ranks, but %s finds %" PRIu32
                   ": it is for another MPI; name the component for this one with --mpi",
                   r->started.name, r->started.size, uses_mpi(t) ? r->mpi.path : "NCCL", r->info.world_size);
}

static void add_presence(train_traits *all, const char *name, bool is_given) {
  snprintf(train_traits_add(all, name)->value, TRAIN_TRAIT_BYTES, "%s", is_given ? "given" : "not given");
}

/* In what ranks could differ beyond what a checkpoint must not: what decides how often they communicate. */
static train_traits traits_to_share(const training *t) {
  const train_settings *s = &t->settings;
  train_traits all = train_traits_of(t);
  train_traits_add_number(&all, "checkpoint-every", s->checkpoint_every);
  train_traits_add_number(&all, "stop-after", s->stop_after);
  train_traits_add_number(&all, "patience", s->patience);
  add_presence(&all, "checkpoint", s->checkpoint != NULL);
  add_presence(&all, "save", s->save != NULL);
  add_presence(&all, "report", s->report != NULL);
  add_presence(&all, "shard-states", s->shard_states);
  train_traits_add_number(&all, "compare", s->compare);
  const char *step = t->resumed ? rondo_weights_get_metadata(t->resumed, "step") : NULL;
  snprintf(train_traits_add(&all, "resume")->value, TRAIN_TRAIT_BYTES, step ? "of step %s" : "not given", step);
  return all;
}

static int compare_traits(const training *t, const train_traits *own, const rank_facts *all) {
  for (uint32_t rank = 1; rank < t->ranks.started.size; rank++) {
    for (size_t i = 0; i < own->count; i++) {
      const char *first = all[0].traits[i], *other = all[rank].traits[i], *name = own->items[i].name;
      if (strcmp(first, other) == 0) continue;
      if (strcmp(name, "text") == 0)
        return tool_fail("rank %" PRIu32 " has another text than rank 0: give all ranks the same", rank);
      return tool_fail("--%s is %s on rank %" PRIu32 ", but %s on rank 0: start all ranks with the same options", name,
                       other, rank, first);
    }
  }
  return TOOL_OK;
}

static int exchange_facts(training *t, rank_facts *all) {
  const train_traits own = traits_to_share(t);
  rank_facts facts = {.workers = t->device_info.workers};
  for (size_t i = 0; i < own.count; i++) memcpy(facts.traits[i], own.items[i].value, TRAIN_TRAIT_BYTES);
  (void)gethostname(facts.host, sizeof facts.host - 1);
  for (char *at = facts.host; *at != '\0'; at++) /* pages and messages need no escapes */
    if (!isalnum((unsigned char)*at) && *at != '-' && *at != '.') *at = '?';
  snprintf(facts.device, sizeof facts.device, "%s", t->settings.device);
  if (gather(&t->ranks, &facts, sizeof facts, all)) return tool_fail_status("the ranks");
  for (uint32_t i = 0; i < t->ranks.started.size; i++) {
    train_rank *rank = &t->ranks.all[i];
    snprintf(rank->host, sizeof rank->host, "%s", all[i].host);
    snprintf(rank->device, sizeof rank->device, "%s", all[i].device);
    rank->workers = all[i].workers;
  }
  return compare_traits(t, &own, all);
}

int train_ranks_join(training *t) {
  train_ranks *r = &t->ranks;
  if (!is_parallel(t)) return TOOL_OK;
  r->info = (rondo_communicator_info){.struct_size = sizeof r->info};
  if (connect(t)) return tool_fail_status("the ranks of %s", r->started.name);
  if (check_size(t) != TOOL_OK) return TOOL_FAILURE;
  r->all = calloc(r->started.size, sizeof *r->all);
  r->steps = calloc(r->started.size, sizeof *r->steps);
  rank_facts *all = calloc(r->started.size, sizeof *all);
  const int result =
      all && r->all && r->steps ? exchange_facts(t, all) : tool_fail_memory("%" PRIu32 " ranks", r->started.size);
  free(all);
  return result;
}

rondo_status train_ranks_apply(const training *t, rondo_program *program) {
  const rondo_data_parallel_options options = {RONDO_DATA_PARALLEL_OPTIONS_INIT,
                                               .shard_states = t->settings.shard_states};
  if (!t->ranks.communicator) return RONDO_OK;
  return rondo_program_data_parallel(program, t->ranks.communicator, &options);
}

/* Training -------------------------------------------------------------------------------------------------------- */

rondo_status train_ranks_restart(training *t) {
  for (uint32_t i = 0; is_parallel(t) && i < t->ranks.started.size; i++) t->ranks.all[i].us = 0;
  return is_parallel(t) ? rondo_compiled_broadcast(t->compiled, 0) : RONDO_OK;
}

rondo_status train_ranks_step(training *t, float *loss, float step_us) {
  train_ranks *r = &t->ranks;
  if (!is_parallel(t)) return RONDO_OK;
  const train_rank_step own = {.loss = *loss, .step_us = step_us, .signal = interrupt_signal()};
  TOOL_TRY(gather(r, &own, sizeof own, r->steps));
  double sum = 0;
  for (uint32_t i = 0; i < r->started.size; i++) {
    sum += (double)r->steps[i].loss;
    r->all[i].loss = r->steps[i].loss;
    r->all[i].us += (double)r->steps[i].step_us;
    if (r->steps[i].signal != 0) t->signal = r->steps[i].signal;
  }
  *loss = (float)(sum / r->started.size);
  return RONDO_OK;
}

rondo_status train_ranks_mean(training *t, float *number) {
  train_ranks *r = &t->ranks;
  if (!is_parallel(t)) return RONDO_OK;
  const train_rank_step own = {.loss = *number};
  TOOL_TRY(gather(r, &own, sizeof own, r->steps));
  double sum = 0;
  for (uint32_t i = 0; i < r->started.size; i++) sum += (double)r->steps[i].loss;
  *number = (float)(sum / r->started.size);
  return RONDO_OK;
}

bool train_ranks_agree(training *t, bool is_ok) {
  if (!is_parallel(t)) return is_ok;
  const train_rank_step own = {.signal = is_ok ? 0 : 1};
  if (t->ranks.is_lost || gather(&t->ranks, &own, sizeof own, t->ranks.steps)) {
    t->ranks.is_lost = true;
    return false;
  }
  for (uint32_t i = 0; i < t->ranks.started.size; i++) is_ok = is_ok && t->ranks.steps[i].signal == 0;
  return is_ok;
}

void train_ranks_abort(training *t, int result) {
  if (!t->ranks.has_begun) return;
  (void)fflush(stdout);
  clock_wait_until(clock_ns() + WAIT_TO_ABORT_NS);
  t->ranks.mpi.abort(result);
}

static void keep_first(rondo_status *kept, rondo_status status) {
  if (*kept == RONDO_OK) *kept = status;
}

rondo_status train_ranks_end(training *t) {
  train_ranks *r = &t->ranks;
  rondo_status status = RONDO_OK;
  free(r->all);
  free(r->steps);
  if (r->sent) keep_first(&status, rondo_free(t->device, r->sent));
  if (r->received) keep_first(&status, rondo_free(t->device, r->received));
  keep_first(&status, rondo_stream_destroy(r->stream));
  keep_first(&status, rondo_communicator_destroy(r->communicator));
  if (r->has_begun) keep_first(&status, r->mpi.end());
  return status;
}
