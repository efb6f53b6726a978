/* SPDX-License-Identifier: MIT
 * Generators, what graphs reserve of them, and the cells from which the kernels of an exec draw.
 *
 * A graph has a list of reservations: for each generator, how many numbers a launch draws, including those of child
 * graphs, and, in a child graph, where its numbers begin among those of its parent. A graph and its clones share the
 * list until one of them changes it.
 *
 * Cells are a seed and an offset in device memory. Kernels in a graph have the address of the generator's own cells,
 * which nothing reads or writes. An exec has one slot of cells for each reservation of each graph in it, and its
 * lowered kernels have the addresses of these slots. A launch fills the slots in stream order, and an event follows it.
 * After that event a launch on another stream may fill them again, and they may be freed if the exec is destroyed.
 *
 * Threads: any may use a generator; reservations belong to their graph, and cells to their exec.
 */
#ifndef RONDO_EXEC_RANDOM_RANDOM_INTERNAL_H
#define RONDO_EXEC_RANDOM_RANDOM_INTERNAL_H

#include <assert.h>
#include <pthread.h>

#include <rondo/random.h>

#include "base/array.h"
#include "device/device.h"
#include "exec/random/random_rollback.h"
#include "graph/graph_internal.h"

struct rondo_capture;

#define RONDO_RANDOM_STEP 4                     /* numbers of one call of rondo_philox */
#define RONDO_RANDOM_MOST (UINT64_C(1) << 62)   /* numbers of each subsequence that a launch can draw */
#define RONDO_CELL_BYTES (2 * sizeof(uint64_t)) /* seed and offset */
#define RONDO_GENERATOR_LABEL 96
#define RONDO_UNIFORM_THREADS 256 /* of a CUDA block of rondo_random_uniform */

struct rondo_generator {
  rondo_generator *next, **link; /* in the device's list */
  rondo_device *device;
  char *name;
  atomic_uint references; /* its user's, and those of graphs, execs and captures */
  atomic_uint captures;   /* in progress, that have drawn from it */
  _Atomic uint64_t seed, offset;
  uint64_t *cells;                 /* device memory; only the address is used */
  uint32_t uniform_groups;         /* of four floats for a block of the kernel `uniform` */
  _Atomic(rondo_kernel *) uniform; /* the first rondo_random_uniform creates it */
};

void rondo_generator_retain(rondo_generator *generator);
void rondo_generator_release(rondo_generator *generator);

/* "generator 'dropout'", "the generator" when it has no name. */
const char *rondo_generator_label(char buffer[RONDO_GENERATOR_LABEL], const rondo_generator *generator);

/* The device's generator whose cells have the address, and its label; NULL if there is none. Only compare the result:
 * another thread may destroy the generator. */
const rondo_generator *rondo_generator_find(const rondo_device *device, const void *address,
                                            char label[RONDO_GENERATOR_LABEL]);

static inline bool rondo_generator_has_cell(const rondo_generator *generator, const void *address) {
  return (uintptr_t)address - (uintptr_t)generator->cells < RONDO_CELL_BYTES;
}

/* Advances the offset by a multiple of 4. Returns the offset before that. */
static inline uint64_t rondo_generator_take(rondo_generator *generator, uint64_t increment) {
  assert(increment % RONDO_RANDOM_STEP == 0);
  const uint64_t offset = atomic_fetch_add_explicit(&generator->offset, increment, memory_order_relaxed);
  if (rondo_random_is_noted()) rondo_random_note(generator, offset, increment);
  return offset;
}

/* Moves the offset back, unless it was advanced since. */
static inline void rondo_generator_move_back(rondo_generator *generator, uint64_t from, uint64_t to) {
  (void)atomic_compare_exchange_strong_explicit(&generator->offset, &from, to, memory_order_relaxed,
                                                memory_order_relaxed);
}

/* Takes back the last rondo_generator_take. If another thread took more since, the numbers are skipped. */
static inline void rondo_generator_untake(rondo_generator *generator, uint64_t increment, uint64_t offset) {
  rondo_generator_move_back(generator, offset + increment, offset);
  if (rondo_random_is_noted()) rondo_random_note_untaken(generator, offset, increment);
}

/* Takes back a reservation on the stream, eager or captured. */
void rondo_generator_give_back(rondo_generator *generator, rondo_stream *stream, uint64_t increment,
                               const rondo_random *random);

/* Releases the generators from which the capture, which has ended, drew. */
void rondo_capture_release_generators(struct rondo_capture *capture);

/* Reservations of graphs ------------------------------------------------------------------------------------------ */

typedef struct rondo_random_reservation {
  rondo_generator *generator; /* a reference */
  uint64_t base;              /* in a child graph: where its numbers begin among those of the graph around */
  uint64_t increment;
} rondo_random_reservation;

/* The object of rondo_graph.random. */
typedef struct rondo_random_reservations {
  atomic_uint references;
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_random_reservation) list;
} rondo_random_reservations;

static inline const rondo_random_reservations *rondo_random_reservations_of(const rondo_graph *graph) {
  return graph->random.object;
}

/* Reserves `increment` numbers, a multiple of 4, in the graph. *out_offset: where they begin among those of a launch.
 * Errors: as rondo_generator_reserve_in_graph. */
RONDO_MUST_USE rondo_status rondo_random_draw(const char *call, rondo_graph *graph, rondo_generator *generator,
                                              uint64_t increment, uint64_t *out_offset);

/* Takes back the graph's last rondo_random_draw. */
void rondo_random_give_back(rondo_graph *graph, const rondo_generator *generator, uint64_t increment, uint64_t offset);

/* INVALID_ARGUMENT/FOREIGN_ADDRESS if an argument of the node is cells of a generator of which the graph reserves
 * nothing. */
RONDO_MUST_USE rondo_status rondo_random_check_node(const char *call, const rondo_graph *graph,
                                                    const rondo_node_params *params);

/* Embedding has two steps, and the second cannot fail. The first is called before `child` is cloned into a node of the
 * graph; *out is NULL if the child draws nothing. The second is called after that; `embedded` is the clone, or NULL if
 * cloning failed. */
RONDO_MUST_USE rondo_status rondo_random_embed_begin(const char *call, rondo_graph *graph, const rondo_graph *child,
                                                     rondo_random_reservations **out);
void rondo_random_embed_end(rondo_graph *graph, rondo_graph *embedded, rondo_random_reservations *reservations);

/* Whether the graph or a graph inside it draws. */
static inline bool rondo_random_is_drawn(const rondo_graph *graph) { return graph->random.object != NULL; }

/* The state of a device for random numbers. The first generator creates it; it is freed when the device closes. */
typedef struct rondo_random_store {
  rondo_allocator allocator;
  pthread_mutex_t lock;
  struct rondo_random_cells *waiting; /* cells that no exec uses, and whose launches may be in progress */
  rondo_generator *generators;        /* all, by `next` */
  _Atomic uintptr_t first, last; /* bounds of all addresses that cells of generators ever had: read without the lock */
} rondo_random_store;
RONDO_MUST_USE rondo_status rondo_random_store_of(rondo_device *device, rondo_random_store **out);
static inline rondo_random_store *rondo_random_store_made(const rondo_device *device) {
  return atomic_load_explicit(&device->random.state, memory_order_acquire); /* NULL if it was never created */
}

/* Device memory that does not count as the user's allocations, which keep the device open. */
RONDO_MUST_USE rondo_status rondo_random_allocate(rondo_device *device, size_t bytes, const char *name,
                                                  void **out_address);
void rondo_random_free(rondo_device *device, void *address);

/* Cells of execs -------------------------------------------------------------------------------------------------- */

typedef struct rondo_exec_random rondo_exec_random;

/* Assigns slots to all reservations of the graph, a clone for an exec, and writes their addresses into the clone's
 * kernels. Uses the slots of `like`, which may be NULL, if there are as many. *out: NULL if it draws nothing. */
RONDO_MUST_USE rondo_status rondo_exec_random_create(rondo_graph *graph, const rondo_exec_random *like,
                                                     rondo_exec_random **out);
void rondo_exec_random_destroy(rondo_exec_random *random); /* does not wait; NULL is allowed */

/* Called before and after a launch on the queue. `begin` draws and fills the slots. `end` records the event after which
 * they may be filled again. If the launch failed, it takes back what was drawn and returns that failure; else it
 * returns its own, if the event cannot be recorded. After a failed `begin`, do not call `end`. Neither locks, and they
 * allocate only to note draws while a rollback is open. */
RONDO_MUST_USE rondo_status rondo_exec_random_begin(rondo_exec_random *random, rondo_queue *queue);
RONDO_MUST_USE rondo_status rondo_exec_random_end(rondo_exec_random *random, rondo_queue *queue, rondo_status launched);

/* Translates new arguments of a kernel in `graph`, one of the clones: where an argument is an address of cells, `args`
 * then points to the address of the exec's slot, in `addresses`. UPDATE_REFUSED if the graph has no slot for it, or the
 * address is not in a parameter declared as a pointer. */
RONDO_MUST_USE rondo_status rondo_exec_random_translate(const rondo_exec_random *random, const rondo_graph *graph,
                                                        const rondo_kernel_node *kernel, const void **args,
                                                        void **addresses);

uint64_t rondo_exec_random_host_bytes(const rondo_exec_random *random);
uint64_t rondo_exec_random_device_bytes(const rondo_exec_random *random);

#endif
