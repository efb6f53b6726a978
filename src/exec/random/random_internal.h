/* SPDX-License-Identifier: MIT
 * Generators, what graphs need of them, and the cells that execs draw from.
 *
 * A graph has a list of needs: for each generator, how much a launch takes of it, including what child graphs take;
 * and, in a child graph, where its share begins in that of its parent. A graph and its clones share the list, which is
 * copied when one of them changes it. Kernels in a graph have the address of the generator's own cells, which nothing
 * reads or writes. An exec has one slot of cells for each need of each graph in it, and its lowered kernels have the
 * addresses of these slots. A launch fills the slots in the stream's order, and an event follows it. After that event a
 * launch on another stream may fill them again, and they may be freed when the exec is gone.
 *
 * Threads: a generator any; needs as the graph; an exec's cells as the exec.
 */
#ifndef RONDO_EXEC_RANDOM_RANDOM_INTERNAL_H
#define RONDO_EXEC_RANDOM_RANDOM_INTERNAL_H

#include <assert.h>

#include <rondo/random.h>

#include "base/array.h"
#include "device/device.h"
#include "exec/random/random_journal.h"
#include "graph/graph_internal.h"

struct rondo_capture;

#define RONDO_RANDOM_STEP 4                     /* numbers of one call of the function */
#define RONDO_RANDOM_MOST (UINT64_C(1) << 62)   /* that one graph or reservation may need */
#define RONDO_CELL_BYTES (2 * sizeof(uint64_t)) /* seed and offset */
#define RONDO_GENERATOR_LABEL 96
#define RONDO_UNIFORM_THREADS 256 /* of a CUDA block that fills */

struct rondo_generator {
  rondo_generator *next, *previous; /* of the device's */
  rondo_device *device;
  char *name;
  atomic_uint references; /* its user's, and those of graphs, execs and captures */
  atomic_uint captures;   /* going on that have drawn from it */
  _Atomic uint64_t seed, offset;
  uint64_t *cells;                 /* of the device's memory; an identity */
  uint32_t uniform_groups;         /* of four floats to a block of the kernel below */
  _Atomic(rondo_kernel *) uniform; /* made when it is first needed */
};

void rondo_generator_retain(rondo_generator *generator);
void rondo_generator_release(rondo_generator *generator);

/* "generator 'dropout'", "the generator" when it has no name. */
const char *rondo_generator_label(char buffer[RONDO_GENERATOR_LABEL], const rondo_generator *generator);

/* The device's generator whose cells have the address, for comparing alone, with its label; NULL when it is none's. */
const rondo_generator *rondo_generator_find(const rondo_device *device, const void *address,
                                            char label[RONDO_GENERATOR_LABEL]);

static inline bool rondo_generator_has_cell(const rondo_generator *generator, const void *address) {
  return (uintptr_t)address - (uintptr_t)generator->cells < RONDO_CELL_BYTES;
}

/* Moves the offset on, by a multiple of 4, and returns what it was. */
static inline uint64_t rondo_generator_take(rondo_generator *generator, uint64_t increment) {
  assert(increment % RONDO_RANDOM_STEP == 0);
  const uint64_t offset = atomic_fetch_add_explicit(&generator->offset, increment, memory_order_relaxed);
  if (rondo_random_is_noted()) rondo_random_note(generator, offset, increment);
  return offset;
}

/* Moves the offset back to where it was, unless it was moved on since. */
static inline void rondo_generator_move_back(rondo_generator *generator, uint64_t from, uint64_t to) {
  (void)atomic_compare_exchange_strong_explicit(&generator->offset, &from, to, memory_order_relaxed,
                                                memory_order_relaxed);
}

/* What was taken last is not drawn after all; where another thread took more since, the numbers are left out. */
static inline void rondo_generator_untake(rondo_generator *generator, uint64_t increment, uint64_t offset) {
  rondo_generator_move_back(generator, offset + increment, offset);
  if (rondo_random_is_noted()) rondo_random_note_untaken(generator, offset, increment);
}

/* The same for a reservation on the stream, captured or not. */
void rondo_generator_give_back(rondo_generator *generator, rondo_stream *stream, uint64_t increment,
                               const rondo_random *random);

/* The capture is over: it releases the generators that it drew from. */
void rondo_capture_release_generators(struct rondo_capture *capture);

/* Needs of graphs ------------------------------------------------------------------------------------------------- */

typedef struct rondo_random_need {
  rondo_generator *generator; /* a reference */
  uint64_t base;              /* in a child graph: before it, in the need of the graph around */
  uint64_t increment;
} rondo_random_need;

/* What rondo_graph.random holds. */
typedef struct rondo_random_needs {
  atomic_uint references;
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_random_need) list;
} rondo_random_needs;

static inline const rondo_random_needs *rondo_random_needs_of(const rondo_graph *graph) { return graph->random.object; }

/* The graph draws `increment`, a multiple of 4; *out_offset is where. Errors as rondo_generator_reserve_in_graph. */
RONDO_MUST_USE rondo_status rondo_random_draw(const char *call, rondo_graph *graph, rondo_generator *generator,
                                              uint64_t increment, uint64_t *out_offset);

/* The same for a graph: its last draw. */
void rondo_random_give_back(rondo_graph *graph, const rondo_generator *generator, uint64_t increment, uint64_t offset);

/* Refuses a node of the graph that is given cells of a generator of which the graph reserves nothing. */
RONDO_MUST_USE rondo_status rondo_random_check_node(const char *call, const rondo_graph *graph,
                                                    const rondo_node_params *params);

/* Embedding, in two steps, of which the second cannot fail: `child` is about to be cloned into a node of the graph; the
 * clone has become `embedded`, or, when it is NULL, has not. */
typedef struct rondo_random_embedding {
  rondo_random_needs *needs; /* of the clone; NULL when the child draws nothing */
} rondo_random_embedding;
RONDO_MUST_USE rondo_status rondo_random_embed_begin(const char *call, rondo_graph *graph, const rondo_graph *child,
                                                     rondo_random_embedding *out);
void rondo_random_embed_end(rondo_graph *graph, rondo_graph *embedded, rondo_random_embedding *embedding);

/* Whether the graph, with those in it, draws. */
static inline bool rondo_random_is_drawn(const rondo_graph *graph) { return graph->random.object != NULL; }

/* Cells of execs -------------------------------------------------------------------------------------------------- */

typedef struct rondo_exec_random rondo_exec_random;

/* Takes what a launch of the graph, a clone for an exec, draws; gives it slots, those of `like` when it has as many;
 * and puts their addresses into the clone's kernels. `like` may be NULL; *out is NULL when the graph draws nothing. */
RONDO_MUST_USE rondo_status rondo_exec_random_create(rondo_graph *graph, const rondo_exec_random *like,
                                                     rondo_exec_random **out);
void rondo_exec_random_destroy(rondo_exec_random *random); /* does not wait; NULL is fine */

/* Around a launch on the queue: draws and fills the slots; then marks where they may be filled again, and takes back
 * what was drawn when the launch failed. A failed begin has no end. */
RONDO_MUST_USE rondo_status rondo_exec_random_begin(rondo_exec_random *random, rondo_queue *queue);
RONDO_MUST_USE rondo_status rondo_exec_random_end(rondo_exec_random *random, rondo_queue *queue, rondo_status launched);

/* Other arguments for a kernel in `graph`, one of the clones: addresses of cells become those of the exec's slots, in
 * `addresses`, to which `args` then leads. UPDATE_REFUSED where the graph has no slot for them, or the address stands
 * in no declared pointer. */
RONDO_MUST_USE rondo_status rondo_exec_random_translate(const rondo_exec_random *random, const rondo_graph *graph,
                                                        const rondo_kernel_node *kernel, const void **args,
                                                        void **addresses);

uint64_t rondo_exec_random_host_bytes(const rondo_exec_random *random);
uint64_t rondo_exec_random_device_bytes(const rondo_exec_random *random);

#endif
