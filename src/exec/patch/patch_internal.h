/* SPDX-License-Identifier: MIT
 * The structure of patch sets. patch_sites.c finds the sites of a set, and patch.c launches with it.
 */
#ifndef RONDO_EXEC_PATCH_PATCH_INTERNAL_H
#define RONDO_EXEC_PATCH_PATCH_INTERNAL_H

#include "exec/patch/patch.h"

#define RONDO_PATCH_MOST_FINDINGS 256 /* that are kept; all are counted */

typedef struct rondo_patch_slot {
  char *name;        /* "": none */
  uint64_t recorded; /* the address in the recording: new addresses have the same alignment */
  size_t bytes;
  uint32_t first, count; /* its sites */
  uint32_t nodes;        /* that contain them */
  bool is_written, is_patchable;
  bool is_unknown; /* see rondo_patch_use */
  bool is_copied;  /* see rondo_patch_create */
} rondo_patch_slot;

struct rondo_patch_set {
  rondo_exec *exec;  /* NULL after it was destroyed. The fields that a launch reads come first, in one cache line */
  uint64_t *current; /* by slot: the address in the exec */
  rondo_patch_slot *slots;
  rondo_patch_site *sites;     /* by slot, then node */
  rondo_patch_change *changes; /* workspace of a launch, one for each slot: the slots that move, */
  uint32_t *moving;            /* and their numbers */
  uint32_t slot_count, site_count;
  uint64_t patched;
  bool is_settled;       /* the exec's clones have the addresses in `current` */
  bool is_unsure;        /* nodes of the exec may have other parameters than the set expects */
  rondo_patch_set *next; /* in the exec's list */
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_patch_finding) findings; /* their messages belong to the set */
  uint32_t finding_count, noise;
};

/* A slot in messages: "input 'x'", or "input 3" if it has no name. Returns buffer. */
#define RONDO_SLOT_LABEL 96
const char *rondo_patch_slot_label(char buffer[RONDO_SLOT_LABEL], const rondo_patch_set *set, uint32_t slot);

/* Finds the sites and findings of a set that has its slots. The exec is settled. Errors: UPDATE_REFUSED with
 * TOPOLOGY_CHANGED, NODE_KIND_CHANGED, FUNCTION_CHANGED or PARAMETERS_CHANGED (a recording is of other work), CYCLE,
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_patch_find_sites(const char *call, rondo_patch_set *set,
                                                   const rondo_patch_input *inputs, const rondo_patch_options *options);

#endif
