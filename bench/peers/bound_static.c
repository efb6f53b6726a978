/* SPDX-License-Identifier: MIT
 * A lower bound: graphs replayed by hand-written code without queues, streams or errors.
 *
 *   bound-loop    the caller runs all nodes in one loop
 *   bound-async   one worker thread runs that loop: 64 pauses, then up to 2000 times yield and 8 pauses, then sleep
 *   bound-park    the same, but both sides sleep immediately
 *   bound-pair    two threads, of which the caller is one, with a fixed schedule: a chain stays on one thread, and the
 *                 other nodes are halved; a node that the other thread waits for sets a flag
 *
 * `bound_static steps` prints the calibration of the busy loops as environment variables for all programs.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "measure.h"
#include "park.h"

/* Two threads with a fixed schedule: wait for some flags, run some blocks of a node, perhaps set its flag. */
typedef struct pair_step {
  uint32_t node, first_block, last_block, first_wait, last_wait;
  int raises;
} pair_step;

typedef struct pair_flag {
  _Alignas(64) atomic_uint replay;
} pair_flag;

typedef struct bound {
  const bench_graph *graph;
  park_policy policy;
  park_word go, done;
  uint32_t replay;
  pair_step *steps[2];
  uint32_t step_count[2];
  uint32_t *waits;
  pair_flag *flags;
} bound;

static void run_blocks(const bench_node *node, uint32_t first, uint32_t last) {
  for (uint32_t block = first; block < last; block++) node->body(node->argument, block);
}

static void run_all(const bench_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) run_blocks(&graph->nodes[i], 0, graph->nodes[i].blocks);
}

/* The caller alone ------------------------------------------------------------------------------------------------ */

static void loop_launch(void *self) { run_all(((const bound *)self)->graph); }
static void loop_wait(void *self) { (void)self; }

/* One worker ------------------------------------------------------------------------------------------------------ */

static void *async_worker(void *argument) {
  bound *self = argument;
  for (uint32_t replay = 1;; replay++) {
    park_await(&self->go, replay, self->policy);
    run_all(self->graph);
    park_post(&self->done, replay);
  }
  return NULL;
}

static void async_launch(void *argument) {
  bound *self = argument;
  park_post(&self->go, ++self->replay);
}

static void async_wait(void *argument) {
  bound *self = argument;
  park_await(&self->done, self->replay, self->policy);
}

/* Two threads ----------------------------------------------------------------------------------------------------- */

/* Returns whether node i continues a chain: it has one predecessor, which has no other successor. */
static int continues_line(const bench_graph *graph, uint32_t i) {
  const uint32_t start = graph->predecessor_start[i];
  if (graph->predecessor_start[i + 1] - start != 1) return 0;
  const uint32_t before = graph->predecessors[start];
  return graph->successor_start[before + 1] - graph->successor_start[before] == 1;
}

static uint8_t choose_thread(const bench_graph *graph, uint32_t i, const uint8_t *owner, const uint32_t load[2]) {
  uint32_t before[2] = {0, 0};
  for (uint32_t k = graph->predecessor_start[i]; k < graph->predecessor_start[i + 1]; k++) {
    before[owner[graph->predecessors[k]]]++;
  }
  if (continues_line(graph, i)) return before[1] == 1;
  if (load[0] > load[1] + 2) return 1;
  if (load[1] > load[0] + 2) return 0;
  return before[0] != before[1] ? before[1] > before[0] : load[1] < load[0];
}

/* The thread that runs each node, and the nodes that the other thread waits for. */
static void split_nodes(const bench_graph *graph, uint8_t *owner, uint8_t *crosses) {
  uint32_t load[2] = {0, 0};
  for (uint32_t i = 0; i < graph->count; i++) {
    owner[i] = choose_thread(graph, i, owner, load);
    load[owner[i]]++;
    for (uint32_t k = graph->predecessor_start[i]; k < graph->predecessor_start[i + 1]; k++) {
      if (owner[graph->predecessors[k]] != owner[i]) crosses[graph->predecessors[k]] = 1;
    }
  }
}

static void plan_step(bound *self, uint32_t i, uint32_t thread, const uint8_t *owner, int raises, uint32_t *waits) {
  const bench_graph *graph = self->graph;
  const uint32_t blocks = graph->nodes[i].blocks;
  pair_step *step = &self->steps[thread][self->step_count[thread]++];
  *step = (pair_step){.node = i, .last_block = 1, .first_wait = *waits, .raises = raises};
  if (blocks > 1) {
    step->first_block = blocks * thread / 2;
    step->last_block = blocks * (thread + 1) / 2;
  }
  for (uint32_t k = graph->predecessor_start[i]; k < graph->predecessor_start[i + 1]; k++) {
    if (owner[graph->predecessors[k]] != thread) self->waits[(*waits)++] = graph->predecessors[k];
  }
  step->last_wait = *waits;
}

static void plan_pair(bound *self) {
  const bench_graph *graph = self->graph;
  uint8_t *owner = bench_zeroed(graph->count, 1), *crosses = bench_zeroed(graph->count, 1);
  uint32_t waits = 0;
  split_nodes(graph, owner, crosses);
  self->waits = bench_zeroed(graph->edge_count + 1, sizeof *self->waits);
  self->flags = aligned_alloc(_Alignof(pair_flag), graph->count * sizeof *self->flags);
  if (self->flags == NULL) exit(EXIT_FAILURE);
  memset(self->flags, 0, graph->count * sizeof *self->flags);
  for (uint32_t thread = 0; thread < 2; thread++) self->steps[thread] = bench_zeroed(graph->count, sizeof(pair_step));
  for (uint32_t i = 0; i < graph->count; i++) {
    for (uint32_t thread = 0; thread < 2; thread++) {
      if (graph->nodes[i].blocks > 1 || owner[i] == thread) plan_step(self, i, thread, owner, crosses[i], &waits);
    }
  }
  free(owner);
  free(crosses);
}

static void run_steps(bound *self, int thread, uint32_t replay) {
  for (uint32_t s = 0; s < self->step_count[thread]; s++) {
    const pair_step *step = &self->steps[thread][s];
    for (uint32_t k = step->first_wait; k < step->last_wait; k++) {
      const pair_flag *flag = &self->flags[self->waits[k]];
      while (atomic_load_explicit(&flag->replay, memory_order_acquire) != replay) park_relax();
    }
    run_blocks(&self->graph->nodes[step->node], step->first_block, step->last_block);
    if (step->raises) atomic_store_explicit(&self->flags[step->node].replay, replay, memory_order_release);
  }
}

static void *pair_worker(void *argument) {
  bound *self = argument;
  for (uint32_t replay = 1;; replay++) {
    park_await(&self->go, replay, self->policy);
    run_steps(self, 1, replay);
    park_post(&self->done, replay);
  }
  return NULL;
}

static void pair_wait(void *argument) {
  bound *self = argument;
  run_steps(self, 0, self->replay);
  park_await(&self->done, self->replay, self->policy);
}

/* ----------------------------------------------------------------------------------------------------------------- */

enum { LOOP, ASYNC, PARK, PAIR, VARIANTS };
static const char *const names[VARIANTS] = {"bound-loop", "bound-async", "bound-park", "bound-pair"};
static const park_policy policies[VARIANTS] = {{0, 0}, {64, 2000}, {0, 0}, {PARK_NEVER, 0}};

static void measure(int variant, int shape) {
  bench_graph *graph = bench_graph_create(shape);
  bound *self = aligned_alloc(_Alignof(bound), sizeof *self);
  if (self == NULL) exit(EXIT_FAILURE);
  memset(self, 0, sizeof *self);
  self->graph = graph;
  self->policy = policies[variant];
  if (variant == PAIR) plan_pair(self);
  bench_engine engine = {.name = names[variant], .threads = variant == PAIR ? 2 : 1, .batch = 1, .self = self};
  engine.launch = variant == LOOP ? loop_launch : async_launch;
  engine.wait = variant == LOOP ? loop_wait : variant == PAIR ? pair_wait : async_wait;
  if (variant == LOOP && graph->count <= 32 && bench_setting("BENCH_GAP_US", 0) == 0) engine.batch = 50;
  pthread_t thread;
  if (variant != LOOP && pthread_create(&thread, NULL, variant == PAIR ? pair_worker : async_worker, self) != 0) {
    exit(EXIT_FAILURE);
  }
  bench_measure(&engine, graph);
  bench_child_end();
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "steps") == 0) {
    bench_calibrate();
    printf("BENCH_STEPS_MICROSECOND=%u BENCH_STEPS_BLOCK=%u\n", bench_busy_steps()->microsecond,
           bench_busy_steps()->block);
    return EXIT_SUCCESS;
  }
  bench_begin("bound_static", "");
  for (int shape = 0; shape < BENCH_SHAPE_COUNT; shape++) {
    for (int variant = 0; variant < VARIANTS; variant++) {
      const int spins = variant == PAIR && strcmp(bench_place(), "one") == 0; /* would wait for time slices */
      if (!spins && bench_wants(shape, names[variant]) && bench_child()) measure(variant, shape);
    }
  }
  return bench_end();
}
