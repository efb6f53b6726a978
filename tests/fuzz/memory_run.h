/* SPDX-License-Identifier: MIT
 * Shared by the parts of the memory target. A run is one input's calls on a device (and perhaps a peer), with a model
 * of the live memory, its addresses and its contents.
 *
 *   memory_model.c   the model: asserts that live memory is disjoint, and that the figures add up
 *   memory_work.c    fills and checks blocks, eagerly and in graphs, and records graphs that do so
 *   fuzz_memory.c    the calls
 *
 * A block belongs to one stream at a time; events order it before the next stream that uses it. Each write fills it
 * with a different value. Before it is freed or written again, its bytes are checked, in stream order.
 */
#ifndef RONDO_TESTS_FUZZ_MEMORY_RUN_H
#define RONDO_TESTS_FUZZ_MEMORY_RUN_H

#include <rondo/rondo.h>
#include <stdbool.h>

#include "fuzz/fuzz_target.h"
#include "support/test_allocator.h"

enum {
  STREAMS = 3,
  POOLS = 3, /* the first is the default one */
  BLOCKS = 24,
  HOSTS = 3,
  FAMILIES = 4,
  ALLOCS = 5,
  EXECS = 5,
  KERNELS = 2,
  AT_ONCE = -1,
  OF_GRAPH = -2,
  LIMIT = 16 << 20
};

typedef enum kernel_id { LOOK, STAMP } kernel_id;

/* Live memory, or memory that a graph's alloc node stands for. */
typedef struct block {
  char *address; /* NULL: this entry is empty */
  size_t bytes;
  unsigned char value; /* 0: not written yet */
  unsigned char fresh; /* of a graph: the value left in the memory */
  int stream;          /* that used it last; -1: the host may use it at any time */
  int pool;            /* AT_ONCE, OF_GRAPH; POOLS: a destroyed one's */
  bool peer;           /* of a graph or a destroyed pool: the peer has access */
  bool kept;           /* of a graph: it stays allocated, not freed there */
  bool live;
} block;

/* A graph, its clone or a graph that it is a child of, and their allocations. */
typedef struct family {
  rondo_graph *graphs[2];
  bool cut[2]; /* edges were removed: it may be refused, but an accepted graph is right */
  bool moves;  /* it can be instantiated with relocate only */
  block allocs[ALLOCS];
  int execs;
} family;

typedef struct fuzz_exec {
  rondo_exec *exec;
  family *of;
  bool auto_free;
} fuzz_exec;

typedef struct fuzz_run {
  const uint8_t *data;
  size_t left;
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[STREAMS];
  rondo_kernel *kernels[KERNELS];
  rondo_event *event;
  rondo_device *peer; /* NULL: none */
  rondo_stream *peer_stream;
  rondo_kernel *peer_kernels[KERNELS];
  rondo_pool *pools[POOLS];
  bool pool_access[POOLS]; /* the peer's */
  bool access_at_once;
  block blocks[BLOCKS];
  void *hosts[HOSTS];
  family families[FAMILIES];
  fuzz_exec execs[EXECS];
  rondo_profile *profile; /* of a graph or run; NULL: none */
  int profiled;           /* the stream whose work is being profiled; -1: none */
  unsigned char last_value;
} fuzz_run;

uint8_t take(fuzz_run *run);
size_t take_size(fuzz_run *run);
int take_stream(fuzz_run *run);

/* A call that may only fail with out of memory. */
bool went_well(rondo_status status);
/* A call that must not fail, because the allocator fails only inside of calls that the input chose. */
void require_ok(rondo_status status);

/* memory_model.c -------------------------------------------------------------------------------------------------- */

/* Whether no object of a graph exists any more: then its addresses may be reused. */
bool is_gone(const family *of);
/* Asserts that a new allocation is disjoint from all live memory, and from memory that other graphs may allocate. */
void require_apart(const fuzz_run *run, const block *made);
/* Whether live memory begins at the address. */
bool begins_something(const fuzz_run *run, const char *address);
void require_figures(const fuzz_run *run);
void require_nothing_left(const fuzz_run *run);

/* memory_work.c --------------------------------------------------------------------------------------------------- */

const rondo_kernel_options *kernel_options(kernel_id id);

/* Takes some time and does nothing. */
rondo_status dawdle(void *user);

/* Orders all later work of `to` after the work of `from`. Returns false if out of memory. */
bool order(fuzz_run *run, int from, int to);
/* Moves the block's use to the stream. */
bool move(fuzz_run *run, block *of, int stream);
/* On the stream that uses the block. */
bool write_block(fuzz_run *run, block *of);
bool look_at(fuzz_run *run, const block *of);
/* On the peer, and waits for it; both return the status of the launch. */
rondo_status look_from_peer(fuzz_run *run, const block *of);
rondo_status write_from_peer(fuzz_run *run, block *of);

/* A graph that the input builds, node by node or captured, with its allocations in `into`, whose graph is not set yet.
 * `profile` may be NULL. */
rondo_status record_graph(fuzz_run *run, family *into, bool captured, rondo_profile *profile, rondo_graph **out);

#endif
