/* SPDX-License-Identifier: MIT
 * The state of one verification, which the files of the verifier share, in the order in which it is filled.
 *
 * 1. verify_lifetimes.c collects what nodes access, allocate and free. Each address is a point, which is entered once.
 * Memory is divided into cells at the points where ranges of known extent and allocations begin or end. So an access
 * touches all of a cell or nothing of it.
 *
 * 2. Alloc and free nodes are paired, and the allocations around the graph are found. All of them are regions.
 *
 * 3. verifier.c visits the nodes in order. Each cell has the alloc node that covers it now, its last writer, and the
 * readers since then (verify_races.c). The next access must be ordered after these. Then it is ordered after all
 * accesses before them too.
 *
 * 4. What must be ordered is a list of pairs. Pairs that no edges order, and errors that are not pairs, are mistakes.
 * verify_messages.c turns them into findings.
 */
#ifndef RONDO_GRAPH_VERIFY_VERIFIER_INTERNAL_H
#define RONDO_GRAPH_VERIFY_VERIFIER_INTERNAL_H

#include "graph/byte_box.h"
#include "graph/verify/findings.h"
#include "graph/verify/verifier.h"

#define RONDO_NONE UINT32_MAX

/* An address where something begins or ends. */
typedef struct rondo_point {
  uintptr_t address;
  uint32_t cell;    /* the cell that contains the address */
  uint32_t region;  /* in memory that no alloc node of the graph allocates; NONE */
  bool is_boundary; /* a cell begins here */
  bool is_sought;   /* an access or free begins here: its region is looked up */
  bool is_freed;    /* a free node has the address: only a region that begins here counts */
} rondo_point;

/* The access of one node to one range of bytes. */
typedef struct rondo_access_use {
  uint32_t node;
  uint32_t begin, end; /* points; `end` is NONE if the extent is unknown */
  uint32_t box;        /* NONE for one row */
  uint32_t region;     /* set when the node is visited; NONE if the address is in no region */
  uint16_t part;       /* the parameter; for a copy 0 is the destination, 1 the source */
  uint16_t offset;     /* bytes into an undeclared parameter */
  bool writes;
  bool is_atomic;  /* a memory operation: no races are looked for */
  bool is_scanned; /* a word of an undeclared parameter that may be an address */
} rondo_access_use;

/* The last accesses in a region with accesses of unknown extent. */
typedef struct rondo_loose_state {
  uint32_t writer;  /* the last one, an access */
  uint32_t readers; /* since, a list */
} rondo_loose_state;

/* An allocation of an alloc node, or one from before the graph. */
typedef struct rondo_region {
  uintptr_t begin, end;
  uint32_t alloc;      /* the node; NONE if it is from before the graph */
  uint32_t freed;      /* the node that frees it; or NONE */
  uint32_t range;      /* index in `ranges`; NONE for an alloc node's */
  uint32_t next;       /* the next region that begins at the same point */
  uint32_t last_user;  /* the last node that was found to access it; NONE */
  uint32_t last_prior; /* the last region that was found to have had its bytes before */
  bool is_loose;       /* some access of it has an unknown extent */
  bool is_dead;        /* its range is */
  bool is_refused;     /* the graph's device may not access its range */
  rondo_loose_state loose;
} rondo_region;

typedef struct rondo_cell {
  uint32_t region;  /* of the alloc node that covers it, or covers it first; NONE */
  uint32_t writer;  /* the last one, an access; NONE */
  uint32_t readers; /* since, a list; NONE */
  uint32_t cluster; /* the cluster that contains it */
} rondo_cell;

typedef struct rondo_reader {
  uint32_t access;
  uint32_t next;
} rondo_reader;

/* Reads of the same range of many cells, which are kept once for all cells. `reader_predecessor` and
 * `writer_predecessor` are the only predecessor of a node. The condition that is known to hold for this node holds for
 * all nodes with the same only predecessor. MANY if none is known. */
typedef struct rondo_wide_read {
  uint32_t first, past;        /* cells */
  uint32_t readers;            /* the readers that still matter, a list */
  uint32_t last_in, last_out;  /* only predecessor and only successor of the last reader */
  uint32_t reader_predecessor; /* readers with this predecessor come after the writers of the cells */
  uint32_t writer_predecessor; /* writers with this predecessor come after all the readers; a write closes the list */
  uint32_t next;
} rondo_wide_read;

/* A set of cells that are connected by ranges over several of them. If some of the ranges are boxes of several rows,
 * cells do not say what is touched, and the accesses are kept in a list instead. */
typedef struct rondo_cluster {
  bool has_boxes;
  uint32_t boxed;                 /* the accesses that still matter, a list */
  uint32_t wide;                  /* wide reads, a list */
  uint32_t open;                  /* the wide read that readers are added to until something is written; NONE */
  uint32_t last_first, last_past; /* cells of the last read of many cells since then; NONE */
} rondo_cluster;

typedef enum rondo_mistake_kind {
  RONDO_MISTAKE_LIFE = 1, /* a free is not after its alloc; subject: region */
  /* an alloc is not after the free of what had its bytes; subject: that region, object: its own */
  RONDO_MISTAKE_REUSE,
  RONDO_MISTAKE_STILL_ALIVE, /* the same, and the earlier region is not freed */
  RONDO_MISTAKE_BEFORE,      /* an access is not after the alloc; subject: access, object: region */
  RONDO_MISTAKE_AFTER,       /* an access is not before the free; the same */
  RONDO_MISTAKE_RACE,        /* subject, object: accesses */
  RONDO_MISTAKE_MAYBE_RACE,  /* the same, where an extent is not known */
  RONDO_MISTAKE_DOUBLE_FREE, /* subject: region */
  RONDO_MISTAKE_FOREIGN,     /* a free of no allocation's address; subject: the region it is in, or NONE */
  RONDO_MISTAKE_BEYOND,      /* subject: access, object: region */
  RONDO_MISTAKE_NO_ACCESS,   /* the same */
  RONDO_MISTAKE_DEAD,        /* the same, for memory in which nothing is allocated */
  RONDO_MISTAKE_NO_ADDRESS   /* no node has an address */
} rondo_mistake_kind;

typedef struct rondo_mistake {
  rondo_mistake_kind kind;
  bool is_error;
  uint32_t node; /* the node that made it */
  uint32_t subject, object;
} rondo_mistake;

typedef struct rondo_verifier {
  const rondo_verify_input *input;
  const rondo_allocator *allocator;
  rondo_verify_order order;

  RONDO_ARRAY(rondo_point) points;
  uint32_t last_point;   /* the last result: what a node writes, the next one usually reads */
  uint32_t *point_table; /* a hash table of points, each plus 1 */
  size_t point_capacity;
  RONDO_ARRAY(uint32_t) sorted;           /* points by address */
  RONDO_ARRAY(rondo_access_use) accesses; /* by node */
  size_t exact_count, loose_count;        /* how many have a known or an unknown extent; the others are scanned */
  RONDO_ARRAY(rondo_byte_box) boxes;
  RONDO_ARRAY(uint32_t) frees; /* free nodes */
  RONDO_ARRAY(uint32_t) free_points;
  /* those of alloc nodes, in order; then `held` of the input; then those that were found */
  RONDO_ARRAY(rondo_region) regions;
  size_t alloc_count, covering_count;  /* how many of the first; of the first two */
  RONDO_ARRAY(uint32_t) region_points; /* two points, begin and end, for each of the first two */
  RONDO_ARRAY(rondo_known_range) ranges;

  RONDO_ARRAY(rondo_cell) cells;
  RONDO_ARRAY(rondo_cluster) clusters;
  RONDO_ARRAY(uint32_t) loose_before; /* by cell: how many accesses of unknown extent begin before it */
  RONDO_ARRAY(rondo_reader) readers;
  RONDO_ARRAY(rondo_wide_read) wide_reads;

  RONDO_ARRAY(rondo_order_pair) pairs;
  uint64_t unsure_count; /* how many requirements were not known at once to be met */
  RONDO_ARRAY(rondo_mistake) mistakes;
  uint64_t dropped_errors, dropped_warnings; /* mistakes that exceeded the limit */
} rondo_verifier;

static inline const rondo_node_params *rondo_verifier_params(const rondo_verifier *verifier, uint32_t node) {
  return verifier->input->nodes[node].params;
}

static inline uintptr_t rondo_verifier_address(const rondo_verifier *verifier, uint32_t point) {
  return verifier->points.items[point].address;
}

/* Whether the node of the first access is known to come before the node of the second. */
static inline bool rondo_verifier_knows_order(const rondo_verifier *verifier, uint32_t earlier, uint32_t later) {
  return rondo_verify_order_on_chain(&verifier->order, verifier->accesses.items[earlier].node,
                                     verifier->accesses.items[later].node);
}

/* Of verifier.c, for the files that find mistakes. */

/* Requires that `before` comes before `after`. If it does not, notes a mistake. */
RONDO_MUST_USE rondo_status rondo_verify_require(rondo_verifier *verifier, rondo_mistake_kind kind, uint32_t before,
                                                 uint32_t after, uint32_t subject, uint32_t object);
/* Notes a mistake of a node. Mistakes beyond the limit are only counted. */
RONDO_MUST_USE rondo_status rondo_verify_note(rondo_verifier *verifier, rondo_mistake_kind kind, bool is_error,
                                              uint32_t node, uint32_t subject, uint32_t object);

/* Of verify_lifetimes.c: steps 1 and 2. */
RONDO_MUST_USE rondo_status rondo_verify_collect(rondo_verifier *verifier);
RONDO_MUST_USE rondo_status rondo_verify_pair_frees(rondo_verifier *verifier);

/* Of verify_races.c: step 3. Finds races of an access that is not scanned and whose region is set. `forget` is called
 * when an alloc node covers the cells. */
RONDO_MUST_USE rondo_status rondo_verify_race(rondo_verifier *verifier, uint32_t access);
void rondo_verify_forget(rondo_verifier *verifier, uint32_t first, uint32_t past);

#endif
