/* SPDX-License-Identifier: MIT
 * Pairing an exec's alloc and free nodes: which allocations its launches leave allocated, which allocations of other
 * graphs they free, and which pages they need.
 *
 * The nodes are walked in topological order, while a map keeps the last alloc node that covers each byte. A free node
 * frees the open allocation at its address, or one that another graph left allocated. Verification decides whether
 * edges guarantee that order (graph/verify/verifier.h); this file refuses only what no launch could do.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/node_name.h"
#include "memory/graph_memory/address_ranges.h"
#include "memory/graph_memory/exec_memory_internal.h"
#include "memory/graph_memory/graph_allocation.h"

/* One alloc node. */
typedef struct instance {
  rondo_graph_allocation *allocation;
  const char *begin, *end;
  rondo_node_where where; /* the text belongs to the graph, as in freed_where */
  bool freed;
  rondo_node_where freed_where;
} instance;

typedef struct pair_finder {
  rondo_exec_memory *exec;
  const rondo_allocator *allocator;
  RONDO_ARRAY(instance) instances;
  rondo_address_map outside; /* the first bytes of what is freed and not allocated, by its index in `frees` */
} pair_finder;

/* Refusals -------------------------------------------------------------------------------------------------------- */

static const char *label(char buffer[RONDO_ALLOCATION_LABEL], const instance *at) {
  return rondo_allocation_label(buffer, &at->allocation->base);
}

static rondo_status fail_overlap(const instance *earlier, const instance *later) {
  char first[RONDO_ALLOCATION_LABEL], second[RONDO_ALLOCATION_LABEL];
  char from[RONDO_LABEL_BYTES], to[RONDO_LABEL_BYTES];
  return rondo_fail_node(
      RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED, later->where.number,
      "allocation %s (%s) uses the bytes of %s (%s), which may still be live: order it after the free. "
      "A graph with memory cannot be in two branches that may run at once",
      label(second, later), rondo_node_where_text(to, &later->where), label(first, earlier),
      rondo_node_where_text(from, &earlier->where));
}

static rondo_status fail_early_free(const rondo_node_where *freed, const instance *at) {
  char name[RONDO_ALLOCATION_LABEL], node[RONDO_LABEL_BYTES], alloc[RONDO_LABEL_BYTES], edge[RONDO_EDGE_TEXT];
  return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, freed->number,
                         "%s of allocation %s is not ordered after its alloc node (%s): add %s",
                         rondo_kind_label(node, RONDO_NODE_FREE, NULL, freed), label(name, at),
                         rondo_node_where_text(alloc, &at->where), rondo_node_edge_text(edge, &at->where, freed));
}

/* Alloc nodes ----------------------------------------------------------------------------------------------------- */

/* What the exec needs of the space; NULL when no instance belongs to it. */
static rondo_space_need *find_need(const rondo_exec_memory *exec, const rondo_address_space *space) {
  for (size_t i = 0; i < exec->needs.count; i++)
    if (exec->needs.items[i].space == space) return &exec->needs.items[i];
  return NULL;
}

static rondo_status retain_space(pair_finder *finder, rondo_address_space *space) {
  rondo_exec_memory *exec = finder->exec;
  const rondo_space_need need = {.space = space};
  if (find_need(exec, space) != NULL) return RONDO_OK;
  RONDO_TRY(rondo_array_push(finder->allocator, &exec->needs, &need));
  RONDO_TRY(rondo_array_push(finder->allocator, &exec->spaces, &space));
  rondo_address_space_retain(space);
  return RONDO_OK;
}

static rondo_status retain_alloc(pair_finder *finder, const rondo_memory_node *node, rondo_graph_allocation **out) {
  rondo_exec_memory *exec = finder->exec;
  RONDO_TRY(retain_space(finder, node->space));
  RONDO_TRY(rondo_array_reserve(finder->allocator, &exec->held, exec->held.count + 1));
  pthread_mutex_lock(&exec->memory->lock);
  const rondo_status status = rondo_graph_allocation_of(node->space, &node->params->as.alloc, out);
  pthread_mutex_unlock(&exec->memory->lock);
  if (status == RONDO_OK) exec->held.items[exec->held.count++] = *out;
  return status;
}

/* Refuses an alloc node whose free node comes earlier in this order. */
static rondo_status refuse_early(const pair_finder *finder, const instance *new) {
  uint32_t index;
  if (!rondo_address_map_owner(&finder->outside, new->begin, &index)) return RONDO_OK;
  return fail_early_free(&finder->exec->frees.items[index].where, new);
}

static rondo_status pair_alloc(pair_finder *finder, const rondo_memory_node *node) {
  instance new = {.where = node->where};
  RONDO_TRY(retain_alloc(finder, node, &new.allocation));
  new.begin = new.allocation->base.address;
  new.end = new.begin + new.allocation->base.bytes;
  RONDO_TRY(refuse_early(finder, &new));
  const uint32_t index = (uint32_t)finder->instances.count;
  rondo_address_map *covered = &finder->exec->covered;
  const size_t first = rondo_address_map_find(covered, new.begin);
  for (size_t i = first; i < covered->count && covered->items[i].begin < new.end; i++) {
    const instance *at = &finder->instances.items[covered->items[i].owner];
    if (!at->freed) return fail_overlap(at, &new);
  }
  RONDO_TRY(rondo_array_push(finder->allocator, &finder->instances, &new));
  return rondo_address_map_cover(finder->allocator, covered, first, new.begin, new.end, index);
}

/* Free nodes ------------------------------------------------------------------------------------------------------ */

static rondo_status fail_second_free(const rondo_node_where *first, const rondo_memory_node *node) {
  char one[RONDO_LABEL_BYTES], other[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE, node->where.number,
                         "%s and %s both free the allocation at %p: remove one of them",
                         rondo_kind_label(one, RONDO_NODE_FREE, NULL, first),
                         rondo_kind_label(other, RONDO_NODE_FREE, NULL, &node->where), node->params->as.free_address);
}

/* Refuses to free the last instance at the address again. */
static rondo_status refuse_freed_instance(const pair_finder *finder, const rondo_memory_node *node) {
  for (size_t i = finder->instances.count; i-- > 0;) {
    const instance *at = &finder->instances.items[i];
    if (at->begin == (const char *)node->params->as.free_address && at->freed)
      return fail_second_free(&at->freed_where, node);
  }
  return RONDO_OK;
}

/* Takes references to the allocation and its space. */
static rondo_status retain_outside(rondo_exec_memory *exec, const rondo_memory_node *node,
                                   rondo_graph_allocation **out) {
  rondo_device_memory *memory = exec->memory;
  const rondo_allocator *allocator = &memory->allocator;
  RONDO_TRY(rondo_array_reserve(allocator, &exec->held, exec->held.count + 1));
  RONDO_TRY(rondo_array_reserve(allocator, &exec->spaces, exec->spaces.count + 1));
  pthread_mutex_lock(&memory->lock);
  *out = rondo_graph_allocation_at(memory, node->params->as.free_address);
  if (*out != NULL && !rondo_address_space_retain_unless_retired((*out)->space)) *out = NULL;
  if (*out != NULL) (*out)->references++;
  pthread_mutex_unlock(&memory->lock);
  char label[RONDO_LABEL_BYTES];
  if (*out == NULL)
    return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_FOREIGN_ADDRESS, node->where.number,
                           "%s: no graph has an allocation at %p any more",
                           rondo_node_label_at(label, node->params, &node->where), node->params->as.free_address);
  exec->held.items[exec->held.count++] = *out;
  exec->spaces.items[exec->spaces.count++] = (*out)->space;
  return RONDO_OK;
}

/* A free of an allocation of another graph. */
static rondo_status pair_outside_free(pair_finder *finder, const rondo_memory_node *node) {
  rondo_exec_memory *exec = finder->exec;
  const char *address = node->params->as.free_address;
  uint32_t index;
  rondo_graph_allocation *allocation;
  if (rondo_address_map_owner(&finder->outside, address, &index))
    return fail_second_free(&exec->frees.items[index].where, node);
  RONDO_TRY(retain_outside(exec, node, &allocation));
  if (find_need(exec, allocation->space) != NULL) RONDO_TRY(refuse_freed_instance(finder, node));
  const size_t first = rondo_address_map_find(&finder->outside, address);
  RONDO_TRY(rondo_address_map_cover(finder->allocator, &finder->outside, first, address, address + 1,
                                    (uint32_t)exec->frees.count));
  RONDO_TRY(rondo_array_reserve(finder->allocator, &exec->frees, exec->frees.count + 1));
  rondo_outside *freed = &exec->frees.items[exec->frees.count];
  *freed = (rondo_outside){.allocation = allocation};
  RONDO_TRY(rondo_node_where_copy(finder->allocator, &node->where, &freed->where));
  exec->frees.count++;
  return rondo_graph_allocation_prepare_free(allocation);
}

static rondo_status pair_free(pair_finder *finder, const rondo_memory_node *node) {
  uint32_t index;
  const char *address = node->params->as.free_address;
  if (!rondo_address_map_owner(&finder->exec->covered, address, &index)) return pair_outside_free(finder, node);
  instance *open = &finder->instances.items[index];
  if (open->begin != address || open->freed) return pair_outside_free(finder, node);
  open->freed = true;
  open->freed_where = node->where;
  return RONDO_OK;
}

/* Adding up -------------------------------------------------------------------------------------------------------- */

static rondo_offset_range pages_of(const rondo_address_space *space, const instance *at) {
  const size_t page = space->memory->page_bytes;
  const size_t begin = rondo_address_space_offset(space, at->begin), end = begin + (size_t)(at->end - at->begin);
  return (rondo_offset_range){.begin = begin / page * page, .end = (end + page - 1) / page * page};
}

static rondo_status sum_up_instance(rondo_exec_memory *exec, const instance *at) {
  rondo_space_need *need = find_need(exec, at->allocation->space);
  assert(need != NULL);
  const rondo_offset_range pages = pages_of(need->space, at);
  if (at->freed) {
    if (pages.end > need->bytes) need->bytes = pages.end;
    return RONDO_OK;
  }
  RONDO_TRY(rondo_array_push(&exec->memory->allocator, &need->privates, &pages));
  const rondo_outside left = {.allocation = at->allocation};
  return rondo_array_push(&exec->memory->allocator, &exec->unfreed, &left);
}

/* Sorts the private pages. Returns the bytes of them and of the pages from the base on, each counted once. */
static size_t count_bytes(rondo_space_need *need) {
  size_t bytes = need->bytes, counted = need->bytes;
  if (need->privates.count > 0)
    qsort(need->privates.items, need->privates.count, sizeof *need->privates.items, rondo_offset_range_compare);
  for (size_t i = 0; i < need->privates.count; i++) {
    const rondo_offset_range range = need->privates.items[i];
    if (range.end <= counted) continue;
    bytes += range.end - (range.begin > counted ? range.begin : counted);
    counted = range.end;
  }
  return bytes;
}

/* Puts spaces with private pages first. Execs share them, so they decide to which heap the exec is bound
 * (graph_heap.h). A space that belongs to the exec follows. */
static void put_shared_first(rondo_exec_memory *exec) {
  size_t shared = 0;
  for (size_t i = 0; i < exec->needs.count; i++) {
    if (exec->needs.items[i].privates.count == 0) continue;
    const rondo_space_need need = exec->needs.items[i];
    exec->needs.items[i] = exec->needs.items[shared];
    exec->needs.items[shared++] = need;
  }
}

static rondo_status sum_up(pair_finder *finder) {
  rondo_exec_memory *exec = finder->exec;
  for (size_t i = 0; i < finder->instances.count; i++) RONDO_TRY(sum_up_instance(exec, &finder->instances.items[i]));
  for (size_t i = 0; i < exec->needs.count; i++) exec->bytes += count_bytes(&exec->needs.items[i]);
  put_shared_first(exec);
  return RONDO_OK;
}

static rondo_status pair_all(pair_finder *finder, const rondo_memory_node *nodes, size_t count) {
  for (size_t i = 0; i < count; i++)
    RONDO_TRY(nodes[i].params->kind == RONDO_NODE_ALLOC ? pair_alloc(finder, &nodes[i]) : pair_free(finder, &nodes[i]));
  return sum_up(finder);
}

rondo_status rondo_exec_memory_pair(rondo_exec_memory *exec, const rondo_memory_node *nodes, size_t count) {
  pair_finder finder = {.exec = exec, .allocator = &exec->memory->allocator};
  const rondo_status status = pair_all(&finder, nodes, count);
  rondo_array_free(finder.allocator, &finder.instances);
  rondo_array_free(finder.allocator, &finder.outside);
  return status;
}
