/* SPDX-License-Identifier: MIT
 * What the two parts of patching share: patch.c launches with a set, patch_sites.c fills one in.
 */
#ifndef RONDO_EXEC_PATCH_PATCH_INTERNAL_H
#define RONDO_EXEC_PATCH_PATCH_INTERNAL_H

#include "exec/patch/patch.h"

#define RONDO_PATCH_MOST_FINDINGS 256 /* kept; all are counted */

typedef struct rondo_patch_slot {
  char *name;        /* "" when it has none */
  uint64_t recorded; /* that the nodes were made for: new addresses keep its alignment */
  size_t bytes;
  uint32_t first, count; /* its sites */
  uint32_t nodes;        /* that contain these */
  bool is_written, is_patchable;
  bool is_told; /* see rondo_patch_create */
} rondo_patch_slot;

struct rondo_patch_set {
  rondo_exec *exec; /* NULL when it is gone; what a launch reads comes first, in one line of the processor's cache */
  uint64_t *held;   /* by slot: the address that the exec has now */
  rondo_patch_slot *slots;
  rondo_patch_site *sites;     /* by slot, then node */
  rondo_patch_change *changes; /* working memory of a launch, one a slot: those that move, */
  uint32_t *moving;            /* ... and their numbers */
  uint32_t slot_count, site_count;
  uint64_t patched;
  bool is_settled;       /* the exec's clones hold what the exec does */
  bool is_unsure;        /* nodes of the exec may have other parameters than the set knows */
  rondo_patch_set *next; /* of the exec's */
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_patch_finding) findings; /* kept; messages are the set's */
  uint32_t finding_count, noise;
};

/* What messages call a slot, written into `buffer` and returned: "input 'x'", "input 3" when it has no name. */
#define RONDO_SLOT_LABEL 96
const char *rondo_patch_slot_label(char buffer[RONDO_SLOT_LABEL], const rondo_patch_set *set, uint32_t slot);

/* Fills in the sites and findings of a set whose slots are there; the exec is settled. Errors: UPDATE_REFUSED with
 * TOPOLOGY_CHANGED, NODE_KIND_CHANGED, FUNCTION_CHANGED or PARAMETERS_CHANGED (a recording is not of the same work),
 * CYCLE, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_patch_find_sites(const char *call, rondo_patch_set *set,
                                                   const rondo_patch_input *inputs, const rondo_patch_options *options);

#endif
