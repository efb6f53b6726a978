/* SPDX-License-Identifier: MIT
 * Relocating a flattened graph: resolving addresses to allocations, planning, and rewriting.
 *
 * The nodes are walked in topological order, and each address is first resolved to the last alloc node that covered it.
 * The nodes may run in other orders than that of the walk, so all results are then checked against the edges, together.
 * Where the edges do not guarantee a result, all alloc nodes that cover the address are considered.
 */
#include "memory/graph_memory/relocation.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "graph/node_name.h"
#include "graph/verify/happens_before.h"
#include "memory/graph_memory/address_map.h"
#include "memory/graph_memory/address_ranges.h"
#include "memory/graph_memory/alloc_node_address.h"
#include "memory/node_addresses.h"
#include "memory/pool/block_pool.h"

/* Addresses of a node --------------------------------------------------------------------------------------------- */

/* Nodes of other kinds have no address in their parameters. */
static void set_address(rondo_node_params *params, uint32_t field, void *address) {
  if (params->kind == RONDO_NODE_COPY && field == 1) {
    params->as.copy.src = address;
    return;
  }
  assert(field == 0);
  if (params->kind == RONDO_NODE_COPY)
    params->as.copy.dst = address;
  else if (params->kind == RONDO_NODE_FILL)
    params->as.fill.dst = address;
  else if (params->kind == RONDO_NODE_ALLOC)
    params->as.alloc.address = address;
  else if (params->kind == RONDO_NODE_FREE)
    params->as.free_address = address;
  else
    assert(false && "nodes of this kind have no address in their parameters");
}

void rondo_relocation_rewrite(rondo_graph_node *node, uint32_t field, void *address) {
  if (node->params.kind == RONDO_NODE_MEMORY_OPERATIONS) {
    ((rondo_memory_operation *)node->arguments)[field].address = address;
    return;
  }
  if (node->params.kind != RONDO_NODE_KERNEL) {
    set_address(&node->params, field, address);
    return;
  }
  char *values = node->arguments;
  memcpy(values + node->params.as.kernel.kernel->offsets[field], &address, sizeof address);
}

void rondo_relocation_forget_rewrites(rondo_relocation *relocation) {
  rondo_array_free(&relocation->memory->allocator, &relocation->rewrites);
}

/* Walking --------------------------------------------------------------------------------------------------------- */

typedef enum query_kind { QUERY_REUSE, QUERY_LIFETIME, QUERY_USE } query_kind;

typedef struct address_use {
  const rondo_relocated_node *node;
  uint32_t field, moved; /* the index of its allocation; NO_MOVED if unknown */
  const char *address;
} address_use;

#define NO_MOVED UINT32_MAX

typedef struct finder {
  rondo_relocation *relocation;
  const rondo_allocator *allocator;
  rondo_verify_order order;
  rondo_address_map covered;
  RONDO_ARRAY(address_use) uses; /* including those of free nodes */
  RONDO_ARRAY(rondo_order_pair) pairs;
} finder;

static rondo_status add_query(finder *self, query_kind kind, uint32_t before, uint32_t after, size_t subject,
                              size_t object) {
  const rondo_order_pair pair = {.before = before,
                                 .after = after,
                                 .subject = (uint32_t)subject,
                                 .object = (uint32_t)object,
                                 .kind = (uint16_t)kind};
  return rondo_array_push(self->allocator, &self->pairs, &pair);
}

static const char *alloc_label(char buffer[RONDO_LABEL_BYTES], const rondo_moved *of) {
  return rondo_kind_label(buffer, RONDO_NODE_ALLOC, NULL, &of->where);
}

static rondo_status fail_unordered(const rondo_relocated_node *node, const rondo_moved *of) {
  char label[RONDO_LABEL_BYTES], alloc[RONDO_LABEL_BYTES], edge[RONDO_EDGE_TEXT], size[RONDO_SIZE_TEXT];
  return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, node->where.number,
                         "%s has an address in the allocation (%s) of %s but is not ordered after it: add %s",
                         rondo_node_label_at(label, node->params, &node->where),
                         rondo_size_text(size, (uint64_t)(of->end - of->begin)), alloc_label(alloc, of),
                         rondo_node_edge_text(edge, &of->where, &node->where));
}

static rondo_status fail_ambiguous(const rondo_relocated_node *node, const char *address, const rondo_moved *a,
                                   const rondo_moved *b) {
  char label[RONDO_LABEL_BYTES], first[RONDO_LABEL_BYTES], second[RONDO_LABEL_BYTES];
  return rondo_fail_node(
      RONDO_INVALID_GRAPH, RONDO_REASON_NOT_RELOCATABLE, node->where.number,
      "%s has the address %p, which may refer to the allocation of %s or to that of %s: order one after the "
      "other's free, or create the graph with relocate",
      rondo_node_label_at(label, node->params, &node->where), (const void *)address, alloc_label(first, a),
      alloc_label(second, b));
}

static rondo_status add_alloc(finder *self, const rondo_relocated_node *node) {
  rondo_relocation *relocation = self->relocation;
  const rondo_alloc_node *alloc = &node->params->as.alloc;
  const char *begin = alloc->address;
  rondo_moved new = {.begin = begin,
                     .end = begin + alloc->bytes,
                     .to = alloc->address,
                     .index = node->index,
                     .freed_index = RONDO_NEVER_FREED,
                     .where = node->where};
  const size_t number = relocation->moved.count;
  const size_t first = rondo_address_map_find(&self->covered, begin);
  for (size_t i = first; i < self->covered.count && self->covered.items[i].begin < new.end; i++) {
    const uint32_t owner = self->covered.items[i].owner;
    const rondo_moved *earlier = &relocation->moved.items[owner];
    if (earlier->freed_index == RONDO_NEVER_FREED)
      new.is_ambiguous = true;
    else
      RONDO_TRY(add_query(self, QUERY_REUSE, earlier->freed_index, new.index, number, owner));
  }
  RONDO_TRY(rondo_array_push(self->allocator, &relocation->moved, &new));
  return rondo_address_map_cover(self->allocator, &self->covered, first, new.begin, new.end, (uint32_t)number);
}

/* The last allocation that begins at the address and is not freed so far. */
static uint32_t find_unfreed(const finder *self, const char *address) {
  const rondo_relocation *relocation = self->relocation;
  uint32_t owner;
  if (rondo_address_map_owner(&self->covered, address, &owner)) {
    const rondo_moved *at = &relocation->moved.items[owner];
    if (at->begin == address && at->freed_index == RONDO_NEVER_FREED) return owner;
  }
  for (size_t i = relocation->moved.count; i-- > 0;) {
    const rondo_moved *at = &relocation->moved.items[i];
    if (at->begin == address && at->freed_index == RONDO_NEVER_FREED) return (uint32_t)i;
  }
  return NO_MOVED;
}

/* A free of another graph's allocation keeps its address. */
static rondo_status add_free(finder *self, const rondo_relocated_node *node) {
  const char *address = node->params->as.free_address;
  const uint32_t number = find_unfreed(self, address);
  if (number == NO_MOVED) return RONDO_OK;
  rondo_moved *at = &self->relocation->moved.items[number];
  at->freed_index = node->index;
  const address_use use = {.node = node, .field = 0, .moved = number, .address = address};
  RONDO_TRY(add_query(self, QUERY_LIFETIME, at->index, node->index, self->uses.count, number));
  return rondo_array_push(self->allocator, &self->uses, &use);
}

static rondo_status add_uses(finder *self, const rondo_relocated_node *node) {
  rondo_node_address fields[RONDO_MAX_PARAMETERS];
  const size_t count = rondo_node_addresses(node->params, fields);
  for (size_t i = 0; i < count; i++) {
    address_use use = {.node = node, .field = fields[i].field, .moved = NO_MOVED, .address = fields[i].address};
    if (rondo_address_map_owner(&self->covered, use.address, &use.moved))
      RONDO_TRY(add_query(self, QUERY_USE, self->relocation->moved.items[use.moved].index, node->index,
                          self->uses.count, use.moved));
    RONDO_TRY(rondo_array_push(self->allocator, &self->uses, &use));
  }
  return RONDO_OK;
}

static rondo_status walk(finder *self, const rondo_relocated_node *nodes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const rondo_node_kind kind = nodes[i].params->kind;
    if (kind == RONDO_NODE_ALLOC)
      RONDO_TRY(add_alloc(self, &nodes[i]));
    else if (kind == RONDO_NODE_FREE)
      RONDO_TRY(add_free(self, &nodes[i]));
    else
      RONDO_TRY(add_uses(self, &nodes[i]));
  }
  return RONDO_OK;
}

/* Allocations by address ------------------------------------------------------------------------------------------ */

static int compare_begins(const void *a, const void *b) {
  const rondo_moved *x = *(const rondo_moved *const *)a, *y = *(const rondo_moved *const *)b;
  if (x->begin != y->begin) return (uintptr_t)x->begin < (uintptr_t)y->begin ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static rondo_status sort_by_begin(finder *self) {
  rondo_relocation *relocation = self->relocation;
  const size_t count = relocation->moved.count;
  const rondo_moved **sorted;
  RONDO_TRY(rondo_array_reserve(self->allocator, &relocation->by_begin, count));
  RONDO_TRY(rondo_array_reserve(self->allocator, &relocation->ends, count));
  RONDO_TRY(rondo_allocate_items(self->allocator, count, sizeof *sorted, &sorted));
  for (size_t i = 0; i < count; i++) sorted[i] = &relocation->moved.items[i];
  if (count > 0) qsort(sorted, count, sizeof *sorted, compare_begins);
  const char *farthest = NULL;
  for (size_t i = 0; i < count; i++) {
    if ((uintptr_t)sorted[i]->end > (uintptr_t)farthest) farthest = sorted[i]->end;
    relocation->by_begin.items[i] = (uint32_t)(sorted[i] - relocation->moved.items);
    relocation->ends.items[i] = farthest;
  }
  relocation->by_begin.count = relocation->ends.count = count;
  rondo_release(self->allocator, sorted, count, sizeof(rondo_moved *));
  return RONDO_OK;
}

/* The next allocation that covers the address; NO_MOVED after the last. *at is SIZE_MAX for the first call. */
static uint32_t next_cover(const rondo_relocation *relocation, const char *address, size_t *at) {
  if (*at == SIZE_MAX) {
    size_t low = 0, high = relocation->by_begin.count;
    RONDO_BINARY_SEARCH(low, high, middle, relocation->moved.items[relocation->by_begin.items[middle]].begin <= address)
    *at = low;
  }
  while (*at > 0 && relocation->ends.items[*at - 1] > address) {
    const uint32_t number = relocation->by_begin.items[--*at];
    if (relocation->moved.items[number].end > address) return number;
  }
  return NO_MOVED;
}

/* Resolving ambiguous addresses ----------------------------------------------------------------------------------- */

static rondo_status is_before(const rondo_verify_order *order, uint32_t before, uint32_t after, bool *out) {
  rondo_order_pair pair = {.before = before, .after = after};
  *out = false;
  if (before >= after) return RONDO_OK;
  RONDO_TRY(rondo_verify_order_check(order, &pair, 1));
  *out = pair.ordered;
  return RONDO_OK;
}

/* Whether `a` is freed before `b` is allocated. */
static rondo_status is_dead_before(const rondo_verify_order *order, const rondo_moved *a, const rondo_moved *b,
                                   bool *out) {
  *out = false;
  return a->freed_index == RONDO_NEVER_FREED ? RONDO_OK : is_before(order, a->freed_index, b->index, out);
}

/* Finds the allocation to which the address refers: of those that cover it and come before the node, the one before
 * which all others are freed. NO_MOVED when there is none. */
static rondo_status resolve_address(const rondo_relocation *relocation, const rondo_verify_order *order,
                                    const rondo_relocated_node *node, const char *address, uint32_t *out) {
  const rondo_moved *moved = relocation->moved.items, *unordered = NULL;
  *out = NO_MOVED;
  size_t at = SIZE_MAX;
  uint32_t number;
  while ((number = next_cover(relocation, address, &at)) != NO_MOVED) {
    bool made, dead = true;
    RONDO_TRY(is_before(order, moved[number].index, node->index, &made));
    if (!made) {
      unordered = &moved[number];
      continue;
    }
    if (*out == NO_MOVED) {
      *out = number;
      continue;
    }
    const bool later = moved[number].index > moved[*out].index;
    const uint32_t first = later ? *out : number, second = later ? number : *out;
    RONDO_TRY(is_dead_before(order, &moved[first], &moved[second], &dead));
    if (!dead) return fail_ambiguous(node, address, &moved[first], &moved[second]);
    *out = second;
  }
  return *out == NO_MOVED && unordered != NULL ? fail_unordered(node, unordered) : RONDO_OK;
}

static rondo_status settle_pairs(finder *self) {
  rondo_moved *moved = self->relocation->moved.items;
  RONDO_TRY(rondo_verify_order_check(&self->order, self->pairs.items, self->pairs.count));
  for (size_t i = 0; i < self->pairs.count; i++) {
    const rondo_order_pair *pair = &self->pairs.items[i];
    if (pair->kind == QUERY_REUSE && (!pair->ordered || moved[pair->object].is_ambiguous))
      moved[pair->subject].is_ambiguous = true;
    if (pair->ordered) continue;
    if (pair->kind == QUERY_LIFETIME) return fail_unordered(self->uses.items[pair->subject].node, &moved[pair->object]);
    if (pair->kind == QUERY_USE) self->uses.items[pair->subject].moved = NO_MOVED;
  }
  return RONDO_OK;
}

static rondo_status settle_use(finder *self, address_use *use) {
  const rondo_relocation *relocation = self->relocation;
  if (use->node->params->kind == RONDO_NODE_FREE) return RONDO_OK;
  if (use->moved != NO_MOVED && !relocation->moved.items[use->moved].is_ambiguous) return RONDO_OK;
  return resolve_address(relocation, &self->order, use->node, use->address, &use->moved);
}

/* Undeclared addresses -------------------------------------------------------------------------------------------- */

/* The first allocation that covers the address and moves; NULL when there is none. */
static const rondo_moved *find_moved(const rondo_relocation *relocation, const char *address) {
  size_t at = SIZE_MAX;
  uint32_t number;
  while ((number = next_cover(relocation, address, &at)) != NO_MOVED)
    if (relocation->moved.items[number].freed_index != RONDO_NEVER_FREED) return &relocation->moved.items[number];
  return NULL;
}

static rondo_status fail_undeclared(const rondo_relocated_node *node, const char *where, uint32_t parameter,
                                    const rondo_moved *of) {
  char label[RONDO_LABEL_BYTES], alloc[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_INVALID_GRAPH, RONDO_REASON_NOT_RELOCATABLE, node->where.number,
                         "%s: %s %" PRIu32
                         " has an address in the allocation of %s, which relocating cannot rewrite: declare it as a "
                         "pointer, or instantiate without relocate",
                         rondo_node_label_at(label, node->params, &node->where), where, parameter,
                         alloc_label(alloc, of));
}

/* Refuses words of scalar parameters that point into memory that moves. */
static rondo_status check_scalars(const rondo_relocation *relocation, const rondo_relocated_node *node) {
  const rondo_kernel_node *work = &node->params->as.kernel;
  for (uint32_t i = 0; i < work->kernel->parameter_count; i++) {
    const rondo_parameter *parameter = &work->kernel->parameters[i];
    if (rondo_parameter_is_pointer(parameter)) continue;
    for (size_t at = 0; at + sizeof(void *) <= parameter->bytes; at += sizeof(void *)) {
      const char *word;
      memcpy(&word, (const char *)work->args[i] + at, sizeof word);
      const rondo_moved *of = find_moved(relocation, word);
      if (of != NULL) return fail_undeclared(node, "scalar parameter", i, of);
    }
  }
  return RONDO_OK;
}

static rondo_status check_undeclared(const rondo_relocation *relocation, const rondo_relocated_node *node) {
  if (node->params->kind == RONDO_NODE_KERNEL) return check_scalars(relocation, node);
  if (node->params->kind != RONDO_NODE_HOST) return RONDO_OK;
  const rondo_moved *of = find_moved(relocation, node->params->as.host.user);
  return of == NULL ? RONDO_OK : fail_undeclared(node, "user pointer", 0, of);
}

/* Planning -------------------------------------------------------------------------------------------------------- */

static size_t rounded_bytes(const rondo_moved *moved) {
  return rondo_pool_rounded((size_t)(moved->end - moved->begin));
}

/* A guarded device checks the exact bounds of an allocation. */
static bool same_size(const rondo_relocation *relocation, const rondo_moved *x, const rondo_moved *y) {
  if (relocation->memory->device->ops->guard != NULL) return x->end - x->begin == y->end - y->begin;
  return rounded_bytes(x) == rounded_bytes(y);
}

/* Whether both have allocations of the same sizes at the same nodes, so that they can have the same plan. */
static bool is_alike(const rondo_relocation *a, const rondo_relocation *b) {
  if (a->moved.count != b->moved.count) return false;
  for (size_t i = 0; i < a->moved.count; i++) {
    const rondo_moved *x = &a->moved.items[i], *y = &b->moved.items[i];
    if (x->index != y->index || x->freed_index != y->freed_index || !same_size(a, x, y)) return false;
  }
  return true;
}

static void copy_plan(rondo_relocation *relocation, const rondo_relocation *like) {
  relocation->plan = like->plan;
  relocation->space = like->space;
  if (relocation->space != NULL) rondo_address_space_retain(relocation->space);
  for (size_t i = 0; i < relocation->moved.count; i++)
    if (relocation->moved.items[i].freed_index != RONDO_NEVER_FREED)
      relocation->moved.items[i].to = like->moved.items[i].to;
}

static rondo_status set_planned_addresses(rondo_relocation *relocation, const size_t *offsets) {
  size_t next = 0;
  RONDO_TRY(rondo_address_space_reserve(relocation->space, relocation->plan.peak));
  for (size_t i = 0; i < relocation->moved.count; i++) {
    rondo_moved *at = &relocation->moved.items[i];
    if (at->freed_index != RONDO_NEVER_FREED) at->to = relocation->space->first.base + offsets[next++];
  }
  return RONDO_OK;
}

/* On a guarded device each allocation gets its own pages. */
static rondo_status set_fresh_addresses(rondo_relocation *relocation) {
  const size_t page = relocation->memory->page_bytes;
  size_t bytes = 2 * page, more;
  for (size_t i = 0; i < relocation->moved.count; i++)
    if (!rondo_checked_add(rounded_bytes(&relocation->moved.items[i]), 2 * page, &more) ||
        !rondo_checked_add(bytes, more, &bytes))
      return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE,
                        "graph memory with separate pages for each allocation does not fit the address space");
  RONDO_TRY(rondo_address_space_reserve(relocation->space, bytes));
  for (size_t i = 0; i < relocation->moved.count; i++) {
    rondo_moved *at = &relocation->moved.items[i];
    if (at->freed_index == RONDO_NEVER_FREED) continue;
    at->to = rondo_address_space_take_fresh(relocation->space, rounded_bytes(at));
    assert(at->to != NULL); /* enough was reserved */
  }
  return RONDO_OK;
}

static rondo_status use_plan(rondo_relocation *relocation, const rondo_plan *plan) {
  relocation->plan.struct_size = sizeof relocation->plan;
  RONDO_TRY(rondo_plan_get_info(plan, &relocation->plan));
  RONDO_TRY(rondo_address_space_create(relocation->memory, &relocation->space));
  return relocation->memory->device->ops->guard != NULL ? set_fresh_addresses(relocation)
                                                        : set_planned_addresses(relocation, rondo_plan_offsets(plan));
}

static rondo_status plan_moved(rondo_relocation *relocation, const rondo_flat_edges *edges,
                               const rondo_plan_options *options) {
  const rondo_allocator *allocator = &relocation->memory->allocator;
  const size_t max_count = relocation->moved.count;
  rondo_lifetime *lifetimes;
  rondo_plan *plan = NULL;
  size_t count = 0;
  RONDO_TRY(rondo_allocate_items(allocator, max_count, sizeof *lifetimes, &lifetimes));
  for (size_t i = 0; i < max_count; i++) {
    const rondo_moved *at = &relocation->moved.items[i];
    if (at->freed_index == RONDO_NEVER_FREED) continue;
    lifetimes[count++] = (rondo_lifetime){.bytes = rounded_bytes(at), .alloc = at->index, .freed = at->freed_index};
  }
  rondo_status status =
      count == 0 ? RONDO_OK : rondo_lifetimes_plan(allocator, edges, lifetimes, count, options, &plan);
  if (status == RONDO_OK && plan != NULL) status = use_plan(relocation, plan);
  rondo_plan_destroy(plan);
  rondo_release(allocator, lifetimes, max_count, sizeof(rondo_lifetime));
  return status;
}

/* Rewriting ------------------------------------------------------------------------------------------------------- */

static void *new_address(const rondo_relocation *relocation, uint32_t number, const char *address) {
  const rondo_moved *of = &relocation->moved.items[number];
  assert(number < relocation->moved.count && address >= of->begin && address < of->end);
  return of->to + (address - of->begin);
}

static rondo_status note_rewrite(finder *self, uint32_t index, uint32_t field, const char *address, uint32_t number) {
  const rondo_relocation *relocation = self->relocation;
  if (number == NO_MOVED || relocation->moved.items[number].freed_index == RONDO_NEVER_FREED) return RONDO_OK;
  const rondo_rewrite rewrite = {.index = index, .field = field, .address = new_address(relocation, number, address)};
  return rondo_array_push(self->allocator, &self->relocation->rewrites, &rewrite);
}

static rondo_status note_rewrites(finder *self) {
  const rondo_relocation *relocation = self->relocation;
  for (size_t i = 0; i < relocation->moved.count; i++) {
    const rondo_moved *at = &relocation->moved.items[i];
    RONDO_TRY(note_rewrite(self, at->index, 0, at->begin, (uint32_t)i));
  }
  for (size_t i = 0; i < self->uses.count; i++) {
    const address_use *use = &self->uses.items[i];
    RONDO_TRY(note_rewrite(self, use->node->index, use->field, use->address, use->moved));
  }
  return RONDO_OK;
}

/* Creating -------------------------------------------------------------------------------------------------------- */

static rondo_status resolve_addresses(finder *self, const rondo_relocated_node *nodes, size_t count,
                                      const rondo_flat_edges *edges) {
  RONDO_TRY(rondo_verify_order_make(self->allocator, edges, RONDO_ORDER_WIDEST, &self->order));
  RONDO_TRY(walk(self, nodes, count));
  RONDO_TRY(sort_by_begin(self));
  RONDO_TRY(settle_pairs(self));
  for (size_t i = 0; i < self->uses.count; i++) RONDO_TRY(settle_use(self, &self->uses.items[i]));
  for (size_t i = 0; i < count; i++) RONDO_TRY(check_undeclared(self->relocation, &nodes[i]));
  return RONDO_OK;
}

static rondo_status fill(finder *self, const rondo_relocated_node *nodes, size_t count, const rondo_flat_edges *edges,
                         const rondo_plan_options *options, const rondo_relocation *like) {
  RONDO_TRY(resolve_addresses(self, nodes, count, edges));
  if (like != NULL && is_alike(self->relocation, like))
    copy_plan(self->relocation, like);
  else
    RONDO_TRY(plan_moved(self->relocation, edges, options));
  return note_rewrites(self);
}

rondo_status rondo_relocation_create(rondo_device_memory *memory, const rondo_relocated_node *nodes, size_t count,
                                     const rondo_flat_edges *edges, const rondo_plan_options *options,
                                     const rondo_relocation *like, rondo_relocation **out) {
  *out = NULL;
  rondo_relocation *relocation;
  RONDO_TRY(rondo_allocate_items(&memory->allocator, 1, sizeof *relocation, &relocation));
  relocation->memory = memory;
  finder self = {.relocation = relocation, .allocator = &memory->allocator};
  const rondo_status status = fill(&self, nodes, count, edges, options, like);
  rondo_verify_order_free(&self.order);
  rondo_array_free(self.allocator, &self.covered);
  rondo_array_free(self.allocator, &self.uses);
  rondo_array_free(self.allocator, &self.pairs);
  if (status != RONDO_OK) {
    rondo_relocation_destroy(relocation);
    return status;
  }
  *out = relocation;
  return RONDO_OK;
}

void rondo_relocation_destroy(rondo_relocation *relocation) {
  if (relocation == NULL) return;
  const rondo_allocator *allocator = &relocation->memory->allocator;
  if (relocation->space != NULL) rondo_address_space_release(relocation->space);
  rondo_array_free(allocator, &relocation->moved);
  rondo_array_free(allocator, &relocation->by_begin);
  rondo_array_free(allocator, &relocation->ends);
  rondo_array_free(allocator, &relocation->rewrites);
  rondo_release(allocator, relocation, 1, sizeof *relocation);
}

bool rondo_relocation_owns(const rondo_relocation *relocation, const void *address) {
  const rondo_address_space *space = relocation->space;
  return space != NULL && rondo_address_range_has(&space->first, address);
}

/* One node --------------------------------------------------------------------------------------------------------- */

/* If only one allocation covers the address, it is that one; otherwise the order decides. */
static rondo_status translate_address(const rondo_relocation *relocation, const rondo_flat_edges *edges,
                                      const rondo_relocated_node *node, const char *address, uint32_t *out) {
  const rondo_allocator *allocator = &relocation->memory->allocator;
  size_t at = SIZE_MAX;
  *out = next_cover(relocation, address, &at);
  if (*out == NO_MOVED || next_cover(relocation, address, &at) == NO_MOVED) return RONDO_OK;
  rondo_verify_order known;
  rondo_status status = rondo_verify_order_make(allocator, edges, RONDO_ORDER_WIDEST, &known);
  if (status == RONDO_OK) status = resolve_address(relocation, &known, node, address, out);
  rondo_verify_order_free(&known);
  return status;
}

static void put_address(rondo_relocated_params *out, uint32_t field, void *address) {
  if (out->params.kind == RONDO_NODE_MEMORY_OPERATIONS) {
    out->operations[field].address = address;
    return;
  }
  if (out->params.kind != RONDO_NODE_KERNEL) {
    set_address(&out->params, field, address);
    return;
  }
  out->addresses[field] = address;
  out->args[field] = &out->addresses[field];
}

rondo_status rondo_relocation_translate(const rondo_relocation *relocation, const rondo_flat_edges *edges,
                                        const rondo_relocated_node *at, rondo_relocated_params *out) {
  rondo_node_address fields[RONDO_MAX_PARAMETERS];
  RONDO_TRY(check_undeclared(relocation, at));
  out->params = *at->params;
  if (at->params->kind == RONDO_NODE_KERNEL) {
    for (size_t i = 0; i < at->params->as.kernel.arg_count; i++) out->args[i] = at->params->as.kernel.args[i];
    out->params.as.kernel.args = out->args;
  }
  rondo_memory_operations_node *work = &out->params.as.memory_operations;
  if (at->params->kind == RONDO_NODE_MEMORY_OPERATIONS) {
    memcpy(out->operations, work->operations, work->count * sizeof *work->operations);
    work->operations = out->operations;
  }
  const size_t count = rondo_node_addresses(at->params, fields);
  for (size_t i = 0; i < count; i++) {
    uint32_t number;
    RONDO_TRY(translate_address(relocation, edges, at, fields[i].address, &number));
    if (number == NO_MOVED || relocation->moved.items[number].freed_index == RONDO_NEVER_FREED) continue;
    put_address(out, fields[i].field, new_address(relocation, number, fields[i].address));
  }
  return RONDO_OK;
}

uint64_t rondo_relocation_host_bytes(const rondo_relocation *relocation) {
  return sizeof *relocation + relocation->moved.capacity * sizeof(rondo_moved) +
         relocation->by_begin.capacity * sizeof(uint32_t) + relocation->ends.capacity * sizeof(char *) +
         relocation->rewrites.capacity * sizeof(rondo_rewrite);
}
