/* SPDX-License-Identifier: MIT
 * What the files of the verifier share: the state of one verification, in the order in which it is filled.
 *
 * 1. verify_lifetimes.c collects what nodes access, allocate and free. Each address is a point, entered once; the
 * points where exact ranges and allocations begin or end cut memory into cells, which are touched as a whole or not at
 * all.
 * 2. Alloc and free nodes are paired, and the allocations around the graph looked up: all of them are regions.
 * 3. verifier.c walks the nodes in order. Each cell knows the alloc node that covers it now, and its last writer and
 * the readers since (verify_races.c): the next access must be ordered after those, and is then ordered after all before
 * them.
 * 4. What must be ordered is a list of pairs; pairs that no edges order, and what is wrong without being a pair, are
 *    mistakes, which verify_messages.c turns into findings.
 */
#ifndef RONDO_GRAPH_VERIFY_VERIFIER_INTERNAL_H
#define RONDO_GRAPH_VERIFY_VERIFIER_INTERNAL_H

#include "graph/byte_box.h"
#include "graph/verify/findings.h"
#include "graph/verify/verifier.h"

#define RONDO_NONE UINT32_MAX

/* An address that something begins or ends at. */
typedef struct rondo_point {
  uintptr_t address;
  uint32_t cell;    /* that begins at or before it */
  uint32_t region;  /* of other memory than the graph's alloc nodes'; NONE */
  bool is_boundary; /* cells are cut here */
  bool is_sought;   /* something begins here: its region is looked up */
  bool is_freed;    /* ... a free node's address: the region that begins here, if there is one */
} rondo_point;

/* The access of one node to one range of bytes. */
typedef struct rondo_access_use {
  uint32_t node;
  uint32_t begin, end; /* points; end is NONE when the extent is not known */
  uint32_t box;        /* NONE for one row */
  uint32_t region;     /* found in the walk; NONE when the address is in none */
  uint16_t part;       /* the parameter; of a copy 0 for the destination, 1 for the source */
  uint16_t offset;     /* in an undeclared parameter */
  bool writes;
  bool is_scanned; /* a word of an undeclared parameter */
} rondo_access_use;

/* Accesses in a region, at least one of which has unknown extent. */
typedef struct rondo_loose_state {
  uint32_t writer;  /* the last one, an access */
  uint32_t readers; /* since, a list */
} rondo_loose_state;

/* An allocation: of an alloc node, or one that was there before. */
typedef struct rondo_region {
  uintptr_t begin, end;
  uint32_t alloc;      /* the node; NONE when it was there before */
  uint32_t freed;      /* the node that frees it; NONE */
  uint32_t range;      /* in `ranges`; NONE for an alloc node's */
  uint32_t next;       /* of those that begin at the same point, a list */
  uint32_t last_user;  /* the last node that was found to access it; NONE */
  uint32_t last_prior; /* the last region found to have had its bytes before */
  bool is_loose;       /* some access of it has no known extent */
  bool is_dead;        /* its range is */
  bool is_refused;     /* the graph's device may not access its range */
  rondo_loose_state loose;
} rondo_region;

typedef struct rondo_cell {
  uint32_t region;  /* of the alloc node that covers it, or will first; NONE */
  uint32_t writer;  /* the last one, an access; NONE */
  uint32_t readers; /* since, a list; NONE */
  uint32_t cluster; /* cells that are connected by ranges over both */
} rondo_cell;

typedef struct rondo_reader {
  uint32_t access;
  uint32_t next;
} rondo_reader;

/* Reads over the same many cells, kept once for all of these. An `..._way` is the only way in of a node: it and all
 * nodes that have the same are known to come after the one side; MANY when none is known. */
typedef struct rondo_wide_read {
  uint32_t first, past;       /* cells */
  uint32_t readers;           /* that matter, a list */
  uint32_t last_in, last_out; /* the ways of the last one */
  uint32_t reader_way;        /* readers come after the writers of the cells */
  uint32_t writer_way;        /* writers come after the readers, which are all: what is written closes the list */
  uint32_t next;
} rondo_wide_read;

/* A set of connected cells. Where boxes of several rows are among its ranges, cells do not tell what is touched, and
 * the accesses are kept in a list instead. */
typedef struct rondo_cluster {
  bool has_boxes;
  uint32_t boxed;                 /* those that still matter, a list */
  uint32_t wide;                  /* wide reads, a list */
  uint32_t open;                  /* the one that was added to since anything was written; NONE */
  uint32_t last_first, last_past; /* cells of the last read over many since then; NONE */
} rondo_cluster;

typedef enum rondo_mistake_kind {
  RONDO_MISTAKE_LIFE = 1,    /* a free is not after its alloc; subject: region */
  RONDO_MISTAKE_REUSE,       /* an alloc is not after the free of what had its bytes; subject: that, object: its own */
  RONDO_MISTAKE_STILL_ALIVE, /* ... which is not freed; the same */
  RONDO_MISTAKE_BEFORE,      /* an access is not after the alloc; subject: access, object: region */
  RONDO_MISTAKE_AFTER,       /* an access is not before the free; the same */
  RONDO_MISTAKE_RACE,        /* subject, object: accesses */
  RONDO_MISTAKE_MAYBE_RACE,  /* the same, where an extent is not known */
  RONDO_MISTAKE_DOUBLE_FREE, /* subject: region */
  RONDO_MISTAKE_FOREIGN,     /* a free of no allocation's address; subject: the region it is in, or NONE */
  RONDO_MISTAKE_BEYOND,      /* subject: access, object: region */
  RONDO_MISTAKE_NO_ACCESS,   /* the same */
  RONDO_MISTAKE_DEAD,        /* the same, of memory in which nothing lives */
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
  uint32_t last_point;   /* asked for: what one node writes the next mostly reads */
  uint32_t *point_table; /* a hash table of points, each plus 1 */
  size_t point_room;
  RONDO_ARRAY(uint32_t) sorted;           /* points by address */
  RONDO_ARRAY(rondo_access_use) accesses; /* by node */
  size_t exact_count, loose_count;        /* of them, those of known and of unknown extent; the others are scanned */
  RONDO_ARRAY(rondo_box) boxes;
  RONDO_ARRAY(uint32_t) frees; /* free nodes */
  RONDO_ARRAY(uint32_t) free_points;
  RONDO_ARRAY(rondo_region) regions;  /* first those of alloc nodes, in order, then those that the graph finds (held) */
  size_t alloc_count, covering_count; /* of the former; of both */
  RONDO_ARRAY(uint32_t) region_points; /* begin and end of each of both */
  RONDO_ARRAY(rondo_known_range) ranges;

  RONDO_ARRAY(rondo_cell) cells;
  RONDO_ARRAY(rondo_cluster) clusters;
  RONDO_ARRAY(uint32_t) loose_before; /* by cell: accesses of no known extent that begin before it */
  RONDO_ARRAY(rondo_reader) readers;
  RONDO_ARRAY(rondo_wide_read) wide_reads;

  RONDO_ARRAY(rondo_order_pair) pairs;
  uint64_t unsure_count; /* of requirements, those that were not at once known to be met */
  RONDO_ARRAY(rondo_mistake) mistakes;
  uint64_t dropped_errors, dropped_warnings; /* mistakes for which there was no room */
} rondo_verifier;

static inline const rondo_node_params *rondo_verifier_params(const rondo_verifier *verifier, uint32_t node) {
  return verifier->input->nodes[node].params;
}

static inline uintptr_t rondo_verifier_address(const rondo_verifier *verifier, uint32_t point) {
  return verifier->points.items[point].address;
}

/* Whether the accesses' nodes are two of which the first is known to come before the second. */
static inline bool rondo_verifier_knows_order(const rondo_verifier *verifier, uint32_t earlier, uint32_t later) {
  return rondo_verify_order_on_chain(&verifier->order, verifier->accesses.items[earlier].node,
                                     verifier->accesses.items[later].node);
}

/* Of verifier.c, for the files that find mistakes. */

/* Notes that `before` must come before `after`, or a mistake. */
RONDO_MUST_USE rondo_status rondo_verify_require(rondo_verifier *verifier, rondo_mistake_kind kind, uint32_t before,
                                                 uint32_t after, uint32_t subject, uint32_t object);
/* Notes the mistake of a node. Errors and warnings for which there is no room are counted. */
RONDO_MUST_USE rondo_status rondo_verify_note(rondo_verifier *verifier, rondo_mistake_kind kind, bool is_error,
                                              uint32_t node, uint32_t subject, uint32_t object);

/* Of verify_lifetimes.c: steps 1 and 2. */
RONDO_MUST_USE rondo_status rondo_verify_collect(rondo_verifier *verifier);
RONDO_MUST_USE rondo_status rondo_verify_pair_frees(rondo_verifier *verifier);

/* Of verify_races.c: step 3, for one exact or loose access, whose region is set; and an alloc node covers the cells
 * again. */
RONDO_MUST_USE rondo_status rondo_verify_race(rondo_verifier *verifier, uint32_t access);
void rondo_verify_forget(rondo_verifier *verifier, uint32_t first, uint32_t past);

#endif
