/* SPDX-License-Identifier: MIT
 * Pairing an exec's alloc and free nodes, and finding lifetime mistakes on the way.
 *
 * The nodes are walked in topological order, and for every byte the last alloc node that covers it is known. An alloc
 * node must find its bytes freed. What the order of the walk shows must be guaranteed by edges: a free after its alloc,
 * an alloc after the free of what had its bytes, a kernel, copy or fill after the alloc and before the free of what it
 * accesses (GM-5). Each is a pair of nodes, and the pairs are checked 64 at a time by carrying a mask from node to node
 * along the edges.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "memory/exec_memory_internal.h"

#define NOT_FREED UINT32_MAX
#define NO_USE UINT32_MAX

/* One alloc node. */
typedef struct instance {
  rondo_graph_allocation *allocation;
  const char *begin, *end;
  uint32_t index, number;
  uint32_t freed_index, freed_number; /* of the free node, NOT_FREED before it is met */
  uint32_t last_use;                  /* the latest of its uses, a list by `previous` */
} instance;

/* Bytes whose last alloc node is `instance`. */
typedef struct stretch {
  const char *begin, *end;
  uint32_t instance;
} stretch;

/* A node that accesses an instance. */
typedef struct use {
  const rondo_node_params *params;
  uint32_t index, number;
  uint32_t instance;
  uint32_t previous; /* use of the same instance */
  bool writes;
} use;

typedef enum pair_kind {
  PAIR_LIFE,  /* a free follows its alloc; `subject` is the instance */
  PAIR_REUSE, /* an alloc follows the free of what had its bytes; `subject` is that, `object` the new instance */
  PAIR_ALLOC, /* a use follows the alloc; `subject` is the use */
  PAIR_FREE   /* the free follows a use; `subject` is the use */
} pair_kind;

/* The edges must lead from `before` to `after`. */
typedef struct ordered_pair {
  uint32_t before, after; /* indices */
  pair_kind kind;
  uint32_t subject, object;
} ordered_pair;

typedef struct pair_finder {
  rondo_exec_memory *exec;
  const rondo_allocator *allocator;
  const rondo_flat_order *order;
  RONDO_ARRAY(instance) instances;
  RONDO_ARRAY(stretch) stretches; /* by address, apart */
  RONDO_ARRAY(use) uses;
  RONDO_ARRAY(use) early; /* accesses of what nothing has covered so far; `instance` is not set */
  RONDO_ARRAY(const char *) early_addresses;
  RONDO_ARRAY(ordered_pair) pairs;
} pair_finder;

/* Order ----------------------------------------------------------------------------------------------------------- */

#define PAIRS_AT_ONCE 64

/* Carries bit i from the node before of pair i along the edges. Returns the first pair that is not connected. */
static const ordered_pair *find_unordered(const ordered_pair *pairs, size_t count, const rondo_flat_order *order,
                                          uint64_t *masks) {
  uint32_t low = UINT32_MAX, high = 0;
  for (size_t i = 0; i < count; i++) {
    if (pairs[i].before < low) low = pairs[i].before;
    if (pairs[i].after > high) high = pairs[i].after;
  }
  memset(masks + low, 0, (high - low + 1) * sizeof *masks);
  for (size_t i = 0; i < count; i++) masks[pairs[i].before] |= UINT64_C(1) << i;
  for (uint32_t node = low; node < high; node++) {
    if (masks[node] == 0) continue;
    for (uint32_t i = order->successor_start[node]; i < order->successor_start[node + 1]; i++)
      if (order->successors[i] <= high) masks[order->successors[i]] |= masks[node];
  }
  for (size_t i = 0; i < count; i++)
    if ((masks[pairs[i].after] >> i & 1) == 0) return &pairs[i];
  return NULL;
}

/* The first of `count` pairs that the edges do not guarantee; NULL when they guarantee all. */
static rondo_status check_order(const pair_finder *finder, const ordered_pair *pairs, size_t count,
                                const ordered_pair **out) {
  const rondo_flat_order *order = finder->order;
  *out = NULL;
  if (count == 0) return RONDO_OK;
  void *masks;
  RONDO_TRY(rondo_allocate(finder->allocator, order->node_count, sizeof(uint64_t), &masks));
  for (size_t i = 0; i < count && *out == NULL; i += PAIRS_AT_ONCE)
    *out = find_unordered(pairs + i, count - i < PAIRS_AT_ONCE ? count - i : PAIRS_AT_ONCE, order, masks);
  rondo_release(finder->allocator, masks, order->node_count, sizeof(uint64_t));
  return RONDO_OK;
}

static rondo_status is_ordered(const pair_finder *finder, uint32_t before, uint32_t after, bool *out) {
  const ordered_pair pair = {.before = before, .after = after};
  const ordered_pair *unordered = &pair;
  *out = false;
  if (before >= after) return RONDO_OK;
  RONDO_TRY(check_order(finder, &pair, 1, &unordered));
  *out = unordered == NULL;
  return RONDO_OK;
}

static rondo_status add_pair(pair_finder *finder, pair_kind kind, uint32_t before, uint32_t after, uint32_t subject,
                             uint32_t object) {
  const ordered_pair pair = {.before = before, .after = after, .kind = kind, .subject = subject, .object = object};
  return rondo_array_push(finder->allocator, &finder->pairs, &pair);
}

/* Findings -------------------------------------------------------------------------------------------------------- */

static const char *label(char buffer[RONDO_ALLOCATION_LABEL], const instance *at) {
  return rondo_allocation_label(buffer, &at->allocation->base);
}

static rondo_status fail_overlap(const instance *earlier, const instance *later) {
  char first[RONDO_ALLOCATION_LABEL], second[RONDO_ALLOCATION_LABEL];
  return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED, later->number,
                         "allocation %s (node %" PRIu32 ") is given the bytes of %s (node %" PRIu32
                         ") while that may be alive: order it after the free. The same memory graph cannot stand twice "
                         "in branches that may run at once",
                         label(second, later), later->number, label(first, earlier), earlier->number);
}

static rondo_status fail_free_order(uint32_t free_number, const instance *at) {
  char name[RONDO_ALLOCATION_LABEL];
  return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED, free_number,
                         "free node %" PRIu32 " of allocation %s is not ordered after its alloc node %" PRIu32
                         ": add an edge %" PRIu32 " -> %" PRIu32,
                         free_number, label(name, at), at->number, at->number, free_number);
}

static rondo_status fail_reuse(const instance *earlier, const instance *later) {
  char name[RONDO_ALLOCATION_LABEL], other[RONDO_ALLOCATION_LABEL];
  return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED, later->number,
                         "allocation %s (node %" PRIu32
                         ") has bytes of %s but is not ordered after its free (node "
                         "%" PRIu32 "): add an edge %" PRIu32 " -> %" PRIu32,
                         label(name, later), later->number, label(other, earlier), earlier->freed_number,
                         earlier->freed_number, later->number);
}

static rondo_status fail_use(const use *at, const instance *of, rondo_reason reason, const char *what,
                             const char *remedy) {
  char node[RONDO_LABEL_BYTES], size[RONDO_SIZE_TEXT];
  return rondo_fail_node(
      RONDO_INVALID_LIFETIME, reason, at->number, "%s %s allocation '%.64s' (%s, node %" PRIu32 ") but %s. %s",
      rondo_node_label(node, at->params, at->number), at->writes ? "writes" : "reads", of->allocation->base.name,
      rondo_size_text(size, of->allocation->base.bytes), of->number, what, remedy);
}

static rondo_status fail_use_before(const use *at, const instance *of) {
  char what[96], remedy[96];
  snprintf(what, sizeof what, "is not ordered after its alloc (node %" PRIu32 ")", of->number);
  snprintf(remedy, sizeof remedy, "Add an edge %" PRIu32 " -> %" PRIu32, of->number, at->number);
  return fail_use(at, of, RONDO_REASON_NOT_ALLOCATED, what, remedy);
}

/* A use that is not before the free of what it accesses: by order, or because nothing orders the two. */
static rondo_status fail_use_after(const pair_finder *finder, const use *at, const instance *of) {
  char what[96], remedy[128];
  bool allocated, after;
  RONDO_TRY(is_ordered(finder, of->index, at->index, &allocated));
  if (!allocated) return fail_use_before(at, of);
  RONDO_TRY(is_ordered(finder, of->freed_index, at->index, &after));
  snprintf(what, sizeof what, "is %s its free (node %" PRIu32 ")", after ? "ordered after" : "not ordered before",
           of->freed_number);
  if (after)
    snprintf(remedy, sizeof remedy, "Remove the order %" PRIu32 " -> %" PRIu32 " or free after node %" PRIu32,
             of->freed_number, at->number, at->number);
  else
    snprintf(remedy, sizeof remedy, "Add an edge %" PRIu32 " -> %" PRIu32, at->number, of->freed_number);
  return fail_use(at, of, RONDO_REASON_USE_AFTER_FREE, what, remedy);
}

static rondo_status fail_pair(const pair_finder *finder, const ordered_pair *pair) {
  const instance *instances = finder->instances.items;
  const use *at = finder->uses.items + pair->subject;
  switch (pair->kind) {
    case PAIR_LIFE:
      return fail_free_order(instances[pair->subject].freed_number, &instances[pair->subject]);
    case PAIR_REUSE:
      return fail_reuse(&instances[pair->subject], &instances[pair->object]);
    case PAIR_ALLOC:
      return fail_use_before(at, &instances[at->instance]);
    case PAIR_FREE:
      return fail_use_after(finder, at, &instances[at->instance]);
  }
  return RONDO_OK;
}

/* Stretches ------------------------------------------------------------------------------------------------------- */

/* The first stretch that ends behind `address`. */
static size_t find_stretch(const pair_finder *finder, const char *address) {
  size_t low = 0, high = finder->stretches.count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (finder->stretches.items[middle].end <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The instance whose bytes the address is among, by its number; false when no alloc node has covered it. */
static bool find_cover(const pair_finder *finder, const char *address, uint32_t *out) {
  const size_t at = find_stretch(finder, address);
  if (at == finder->stretches.count || finder->stretches.items[at].begin > address) return false;
  *out = finder->stretches.items[at].instance;
  return true;
}

/* Replaces `count` stretches from `at` on by one for the new instance, and what it leaves of the outer two. */
static rondo_status replace_stretches(pair_finder *finder, size_t at, size_t count, const instance *new,
                                      uint32_t index) {
  stretch pieces[3];
  size_t piece_count = 0;
  if (count > 0 && finder->stretches.items[at].begin < new->begin) {
    pieces[piece_count] = finder->stretches.items[at];
    pieces[piece_count++].end = new->begin;
  }
  pieces[piece_count++] = (stretch){.begin = new->begin, .end = new->end, .instance = index};
  if (count > 0 && finder->stretches.items[at + count - 1].end > new->end) {
    pieces[piece_count] = finder->stretches.items[at + count - 1];
    pieces[piece_count++].begin = new->end;
  }
  const size_t behind = finder->stretches.count - at - count;
  RONDO_TRY(rondo_array_reserve(finder->allocator, &finder->stretches, at + piece_count + behind));
  stretch *items = finder->stretches.items;
  memmove(items + at + piece_count, items + at + count, behind * sizeof *items);
  memcpy(items + at, pieces, piece_count * sizeof *items);
  finder->stretches.count = at + piece_count + behind;
  return RONDO_OK;
}

/* Alloc nodes ----------------------------------------------------------------------------------------------------- */

static rondo_status hold_space(rondo_exec_memory *exec, rondo_address_space *space) {
  for (size_t i = 0; i < exec->spaces.count; i++)
    if (exec->spaces.items[i] == space) return RONDO_OK;
  RONDO_TRY(rondo_array_push(&exec->memory->allocator, &exec->spaces, &space));
  rondo_address_space_retain(space);
  return RONDO_OK;
}

static rondo_status hold_alloc(pair_finder *finder, const rondo_memory_node *node, rondo_graph_allocation **out) {
  rondo_exec_memory *exec = finder->exec;
  RONDO_TRY(hold_space(exec, node->space));
  RONDO_TRY(rondo_array_reserve(finder->allocator, &exec->held, exec->held.count + 1));
  pthread_mutex_lock(&exec->memory->lock);
  const rondo_status status = rondo_graph_allocation_of(node->space, &node->params->as.alloc, out);
  pthread_mutex_unlock(&exec->memory->lock);
  if (status == RONDO_OK) exec->held.items[exec->held.count++] = *out;
  return status;
}

/* What was freed or accessed here before the alloc node was met. */
static rondo_status refuse_early(const pair_finder *finder, const instance *new) {
  const rondo_exec_memory *exec = finder->exec;
  for (size_t i = 0; i < exec->frees.count; i++)
    if (exec->frees.items[i].allocation->base.address == new->begin)
      return fail_free_order(exec->frees.items[i].number, new);
  for (size_t i = 0; i < finder->early.count; i++) {
    const char *address = finder->early_addresses.items[i];
    if (address >= new->begin && address < new->end) return fail_use_before(&finder->early.items[i], new);
  }
  return RONDO_OK;
}

static rondo_status pair_alloc(pair_finder *finder, const rondo_memory_node *node) {
  instance new = {.index = node->index, .number = node->number, .freed_index = NOT_FREED, .last_use = NO_USE};
  RONDO_TRY(hold_alloc(finder, node, &new.allocation));
  new.begin = new.allocation->base.address;
  new.end = new.begin + new.allocation->base.bytes;
  RONDO_TRY(refuse_early(finder, &new));
  const uint32_t index = (uint32_t)finder->instances.count;
  const size_t first = find_stretch(finder, new.begin);
  size_t past = first;
  for (; past < finder->stretches.count && finder->stretches.items[past].begin < new.end; past++) {
    const uint32_t earlier = finder->stretches.items[past].instance;
    const instance *at = &finder->instances.items[earlier];
    if (at->freed_index == NOT_FREED) return fail_overlap(at, &new);
    RONDO_TRY(add_pair(finder, PAIR_REUSE, at->freed_index, new.index, earlier, index));
  }
  RONDO_TRY(rondo_array_push(finder->allocator, &finder->instances, &new));
  return replace_stretches(finder, first, past - first, &new, index);
}

/* Free nodes ------------------------------------------------------------------------------------------------------ */

static rondo_status refuse_second_free(const pair_finder *finder, const rondo_memory_node *node) {
  const void *address = node->params->as.free_address;
  uint32_t first = RONDO_NO_NODE;
  for (size_t i = 0; i < finder->instances.count; i++)
    if (finder->instances.items[i].begin == address) first = finder->instances.items[i].freed_number;
  for (size_t i = 0; i < finder->exec->frees.count; i++)
    if (finder->exec->frees.items[i].allocation->base.address == address) first = finder->exec->frees.items[i].number;
  if (first == RONDO_NO_NODE) return RONDO_OK;
  return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE, node->number,
                         "free nodes %" PRIu32 " and %" PRIu32 " both free the allocation at %p: remove one of them",
                         first, node->number, address);
}

/* A free of what another graph leaves alive. */
static rondo_status pair_outside_free(pair_finder *finder, const rondo_memory_node *node) {
  RONDO_TRY(refuse_second_free(finder, node));
  rondo_exec_memory *exec = finder->exec;
  rondo_device_memory *memory = exec->memory;
  RONDO_TRY(rondo_array_reserve(finder->allocator, &exec->held, exec->held.count + 1));
  RONDO_TRY(rondo_array_reserve(finder->allocator, &exec->frees, exec->frees.count + 1));
  RONDO_TRY(rondo_array_reserve(finder->allocator, &exec->spaces, exec->spaces.count + 1));
  pthread_mutex_lock(&memory->lock);
  rondo_graph_allocation *allocation = rondo_graph_allocation_at(memory, node->params->as.free_address);
  if (allocation != NULL) {
    allocation->references++;
    rondo_address_space_retain(allocation->space);
  }
  pthread_mutex_unlock(&memory->lock);
  if (allocation == NULL)
    return rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_FOREIGN_ADDRESS, node->number,
                           "free node %" PRIu32 ": no graph has an allocation at %p any more", node->number,
                           node->params->as.free_address);
  exec->held.items[exec->held.count++] = allocation;
  exec->spaces.items[exec->spaces.count++] = allocation->space;
  exec->frees.items[exec->frees.count++] = (rondo_outside){.allocation = allocation, .number = node->number};
  return rondo_graph_allocation_prepare_free(allocation);
}

static rondo_status pair_free(pair_finder *finder, const rondo_memory_node *node) {
  uint32_t index;
  const char *address = node->params->as.free_address;
  if (!find_cover(finder, address, &index)) return pair_outside_free(finder, node);
  instance *open = &finder->instances.items[index];
  if (open->begin != address || open->freed_index != NOT_FREED) return pair_outside_free(finder, node);
  open->freed_index = node->index;
  open->freed_number = node->number;
  for (uint32_t i = open->last_use; i != NO_USE; i = finder->uses.items[i].previous)
    RONDO_TRY(add_pair(finder, PAIR_FREE, finder->uses.items[i].index, node->index, i, 0));
  return add_pair(finder, PAIR_LIFE, open->index, node->index, index, 0);
}

/* Kernels, copies and fills --------------------------------------------------------------------------------------- */

static rondo_status add_use(pair_finder *finder, const rondo_memory_node *node, const void *address, bool writes) {
  use new = {.params = node->params, .index = node->index, .number = node->number, .writes = writes};
  if (!find_cover(finder, address, &new.instance)) {
    const char *early = address;
    RONDO_TRY(rondo_array_push(finder->allocator, &finder->early_addresses, &early));
    return rondo_array_push(finder->allocator, &finder->early, &new);
  }
  instance *of = &finder->instances.items[new.instance];
  if (of->freed_index != NOT_FREED) return fail_use_after(finder, &new, of);
  new.previous = of->last_use;
  of->last_use = (uint32_t)finder->uses.count;
  RONDO_TRY(add_pair(finder, PAIR_ALLOC, of->index, new.index, of->last_use, 0));
  return rondo_array_push(finder->allocator, &finder->uses, &new);
}

static rondo_status add_kernel_uses(pair_finder *finder, const rondo_memory_node *node) {
  const rondo_kernel_node *work = &node->params->as.kernel;
  for (uint32_t i = 0; i < work->kernel->parameter_count; i++) {
    const rondo_parameter *parameter = &work->kernel->parameters[i];
    if (parameter->access == RONDO_ACCESS_SCALAR || parameter->bytes != sizeof(void *)) continue;
    const void *address;
    memcpy(&address, work->args[i], sizeof address);
    RONDO_TRY(add_use(finder, node, address, parameter->access != RONDO_ACCESS_READ));
  }
  return RONDO_OK;
}

static rondo_status pair_use(pair_finder *finder, const rondo_memory_node *node) {
  const rondo_node_params *params = node->params;
  if (params->kind == RONDO_NODE_KERNEL) return add_kernel_uses(finder, node);
  if (params->kind == RONDO_NODE_FILL) return add_use(finder, node, params->as.fill.dst, true);
  RONDO_TRY(add_use(finder, node, params->as.copy.src, false));
  return add_use(finder, node, params->as.copy.dst, true);
}

/* Summing up ------------------------------------------------------------------------------------------------------- */

static rondo_status need_of(rondo_exec_memory *exec, rondo_address_space *space, rondo_space_need **out) {
  for (size_t i = 0; i < exec->needs.count; i++)
    if (exec->needs.items[i].space == space) {
      *out = &exec->needs.items[i];
      return RONDO_OK;
    }
  const rondo_space_need need = {.space = space};
  RONDO_TRY(rondo_array_push(&exec->memory->allocator, &exec->needs, &need));
  *out = &exec->needs.items[exec->needs.count - 1];
  return RONDO_OK;
}

static rondo_page_range pages_of(const rondo_address_space *space, const instance *at) {
  const size_t page = space->memory->page_bytes;
  const size_t begin = (size_t)(at->begin - space->base), end = (size_t)(at->end - space->base);
  return (rondo_page_range){.begin = begin / page * page, .end = (end + page - 1) / page * page};
}

static rondo_status sum_up_instance(rondo_exec_memory *exec, const instance *at) {
  rondo_space_need *need = NULL;
  RONDO_TRY(need_of(exec, at->allocation->space, &need));
  const rondo_page_range pages = pages_of(need->space, at);
  if (at->freed_index != NOT_FREED) {
    if (pages.end > need->bytes) need->bytes = pages.end;
    return RONDO_OK;
  }
  RONDO_TRY(rondo_array_push(&exec->memory->allocator, &need->privates, &pages));
  const rondo_outside left = {.allocation = at->allocation, .number = at->number};
  return rondo_array_push(&exec->memory->allocator, &exec->unfreed, &left);
}

static int compare_ranges(const void *a, const void *b) {
  const size_t left = ((const rondo_page_range *)a)->begin, right = ((const rondo_page_range *)b)->begin;
  return (left > right) - (left < right);
}

/* Bytes of the pages from the base on and of the private ones, which are sorted, each counted once. */
static size_t count_bytes(rondo_space_need *need) {
  size_t bytes = need->bytes, counted = need->bytes;
  if (need->privates.count > 0)
    qsort(need->privates.items, need->privates.count, sizeof *need->privates.items, compare_ranges);
  for (size_t i = 0; i < need->privates.count; i++) {
    const rondo_page_range range = need->privates.items[i];
    if (range.end <= counted) continue;
    bytes += range.end - (range.begin > counted ? range.begin : counted);
    counted = range.end;
  }
  return bytes;
}

static rondo_status sum_up(pair_finder *finder) {
  rondo_exec_memory *exec = finder->exec;
  for (size_t i = 0; i < finder->instances.count; i++) RONDO_TRY(sum_up_instance(exec, &finder->instances.items[i]));
  for (size_t i = 0; i < finder->stretches.count; i++) {
    const rondo_byte_range range = {.begin = finder->stretches.items[i].begin, .end = finder->stretches.items[i].end};
    RONDO_TRY(rondo_array_push(finder->allocator, &exec->extents, &range));
  }
  for (size_t i = 0; i < exec->needs.count; i++) exec->bytes += count_bytes(&exec->needs.items[i]);
  return RONDO_OK;
}

static rondo_status pair_node(pair_finder *finder, const rondo_memory_node *node, bool verify) {
  if (node->params->kind == RONDO_NODE_ALLOC) return pair_alloc(finder, node);
  if (node->params->kind == RONDO_NODE_FREE) return pair_free(finder, node);
  return verify ? pair_use(finder, node) : RONDO_OK;
}

static rondo_status pair_all(pair_finder *finder, const rondo_memory_node *nodes, size_t count, bool verify) {
  for (size_t i = 0; i < count; i++) RONDO_TRY(pair_node(finder, &nodes[i], verify));
  if (verify) {
    const ordered_pair *unordered;
    RONDO_TRY(check_order(finder, finder->pairs.items, finder->pairs.count, &unordered));
    if (unordered != NULL) return fail_pair(finder, unordered);
  }
  return sum_up(finder);
}

rondo_status rondo_exec_memory_pair(rondo_exec_memory *exec, const rondo_memory_node *nodes, size_t count,
                                    const rondo_flat_order *order, bool verify) {
  pair_finder finder = {.exec = exec, .allocator = &exec->memory->allocator, .order = order};
  const rondo_status status = pair_all(&finder, nodes, count, verify);
  rondo_array_free(finder.allocator, &finder.instances);
  rondo_array_free(finder.allocator, &finder.stretches);
  rondo_array_free(finder.allocator, &finder.uses);
  rondo_array_free(finder.allocator, &finder.early);
  rondo_array_free(finder.allocator, &finder.early_addresses);
  rondo_array_free(finder.allocator, &finder.pairs);
  return status;
}
