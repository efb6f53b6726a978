/* SPDX-License-Identifier: MIT
 * The tree of ranges. Node 0 means none. Recursion is as deep as the tree: a small multiple of the logarithm of the
 * count. Only one thread at a time changes the tree, so it reads with relaxed loads; its stores are releases.
 */
#include "memory/range_index.h"

#include <assert.h>

#include "base/hash.h"

enum { FIRST_NODES = 64, MAX_STEPS = 256 }; /* a reader of a changing tree must not loop forever */

typedef struct range_node {
  _Atomic uintptr_t begin, end;
  _Atomic uint32_t before, after;
  _Atomic uint32_t farthest; /* the node of its subtree with the highest end */
  _Atomic uint32_t tag;
  _Atomic(void *) owner;
} range_node;

struct rondo_range_nodes {
  struct rondo_range_nodes *older;
  size_t count;
  range_node items[];
};

static size_t bytes_of(size_t count) { return sizeof(rondo_range_nodes) + count * sizeof(range_node); }

void rondo_range_index_deinit(const rondo_allocator *allocator, rondo_range_index *index) {
  rondo_range_nodes *nodes = atomic_load_explicit(&index->nodes, memory_order_relaxed);
  while (nodes != NULL) {
    rondo_range_nodes *older = nodes->older;
    rondo_release(allocator, nodes, 1, bytes_of(nodes->count));
    nodes = older;
  }
}

/* Fields ---------------------------------------------------------------------------------------------------------- */

static range_node *at(const rondo_range_index *index, uint32_t number) {
  return &atomic_load_explicit(&index->nodes, memory_order_relaxed)->items[number];
}

#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_release)

static void copy_node(range_node *to, const range_node *from) {
  SET(to->begin, GET(from->begin));
  SET(to->end, GET(from->end));
  SET(to->farthest, GET(from->farthest));
  SET(to->before, GET(from->before));
  SET(to->after, GET(from->after));
  SET(to->tag, GET(from->tag));
  SET(to->owner, GET(from->owner));
}

/* Changing -------------------------------------------------------------------------------------------------------- */

/* Once before and once after a change. */
static void step_version(rondo_range_index *index) { SET(index->version, GET(index->version) + 1); }

/* Doubles the number of nodes; false without host memory. Readers may still use the old array. */
static bool grow(const rondo_allocator *allocator, rondo_range_index *index) {
  rondo_range_nodes *old = GET(index->nodes);
  const size_t old_count = old == NULL ? 0 : old->count, count = old == NULL ? FIRST_NODES : 2 * old_count;
  void *memory;
  if (count > UINT32_MAX || rondo_allocate(allocator, 1, bytes_of(count), &memory) != RONDO_OK) return false;
  rondo_range_nodes *nodes = memory;
  nodes->older = old;
  nodes->count = count;
  for (size_t i = 0; i < old_count; i++) copy_node(&nodes->items[i], &old->items[i]);
  for (size_t i = count; i-- > (old_count == 0 ? 1 : old_count);) {
    SET(nodes->items[i].after, index->unused);
    index->unused = (uint32_t)i;
  }
  SET(index->nodes, nodes);
  return true;
}

static uint64_t priority_of(uint32_t number) { return rondo_hash_u64(RONDO_HASH_START, number); }

/* Ranges that begin at one address are in the order of their numbers. */
static bool precedes(const rondo_range_index *index, uint32_t a, uint32_t b) {
  const uintptr_t begin_a = GET(at(index, a)->begin), begin_b = GET(at(index, b)->begin);
  return begin_a != begin_b ? begin_a < begin_b : a < b;
}

/* Either may be 0. */
static uint32_t farther(const rondo_range_index *index, uint32_t a, uint32_t b) {
  if (a == 0 || b == 0) return a == 0 ? b : a;
  return GET(at(index, a)->end) >= GET(at(index, b)->end) ? a : b;
}

static uint32_t farthest_in(const rondo_range_index *index, uint32_t tree) {
  return tree == 0 ? 0 : GET(at(index, tree)->farthest);
}

static void update_reach(const rondo_range_index *index, uint32_t tree) {
  range_node *node = at(index, tree);
  const uint32_t before = farthest_in(index, GET(node->before)), after = farthest_in(index, GET(node->after));
  SET(node->farthest, farther(index, tree, farther(index, before, after)));
}

static void split(const rondo_range_index *index, uint32_t tree, uint32_t by, _Atomic uint32_t *out_before,
                  _Atomic uint32_t *out_after) {
  if (tree == 0) {
    SET(*out_before, 0);
    SET(*out_after, 0);
    return;
  }
  range_node *node = at(index, tree);
  if (precedes(index, tree, by)) {
    SET(*out_before, tree);
    split(index, GET(node->after), by, &node->after, out_after);
  } else {
    SET(*out_after, tree);
    split(index, GET(node->before), by, out_before, &node->before);
  }
  update_reach(index, tree);
}

/* All of `before` must precede all of `after`. */
static uint32_t merge(const rondo_range_index *index, uint32_t before, uint32_t after) {
  if (before == 0 || after == 0) return before == 0 ? after : before;
  const bool first = priority_of(before) > priority_of(after);
  const uint32_t top = first ? before : after;
  if (first)
    SET(at(index, top)->after, merge(index, GET(at(index, top)->after), after));
  else
    SET(at(index, top)->before, merge(index, before, GET(at(index, top)->before)));
  update_reach(index, top);
  return top;
}

static void enter_tree(const rondo_range_index *index, _Atomic uint32_t *tree, uint32_t number) {
  const uint32_t top = GET(*tree);
  if (top == 0 || priority_of(number) > priority_of(top)) {
    split(index, top, number, &at(index, number)->before, &at(index, number)->after);
    SET(*tree, number);
  } else {
    enter_tree(index, precedes(index, number, top) ? &at(index, top)->before : &at(index, top)->after, number);
  }
  update_reach(index, GET(*tree));
}

static void leave_tree(const rondo_range_index *index, _Atomic uint32_t *tree, uint32_t number) {
  const uint32_t top = GET(*tree);
  assert(top != 0);
  range_node *node = at(index, top);
  if (top == number) {
    SET(*tree, merge(index, GET(node->before), GET(node->after)));
    return;
  }
  leave_tree(index, precedes(index, number, top) ? &node->before : &node->after, number);
  update_reach(index, top);
}

uint32_t rondo_range_enter(const rondo_allocator *allocator, rondo_range_index *index, const void *begin, size_t bytes,
                           uint32_t tag, void *owner) {
  if (index->unused == 0 && !grow(allocator, index)) {
    SET(index->missing, GET(index->missing) + 1);
    return 0;
  }
  const uint32_t number = index->unused;
  assert(number != 0);
  range_node *node = at(index, number);
  index->unused = GET(node->after);
  step_version(index);
  SET(node->begin, (uintptr_t)begin);
  SET(node->end, (uintptr_t)begin + bytes);
  SET(node->tag, tag);
  SET(node->owner, owner);
  enter_tree(index, &index->root, number);
  step_version(index);
  return number;
}

void rondo_range_leave(rondo_range_index *index, uint32_t number) {
  if (number == 0) {
    assert(GET(index->missing) > 0);
    SET(index->missing, GET(index->missing) - 1);
    return;
  }
  step_version(index);
  leave_tree(index, &index->root, number);
  SET(at(index, number)->after, index->unused);
  step_version(index);
  index->unused = number;
}

/* Looking --------------------------------------------------------------------------------------------------------- */

uint32_t rondo_range_find(const rondo_range_index *index, const void *address) {
  uint32_t best = 0, number = GET(index->root);
  while (number != 0) {
    const range_node *node = at(index, number);
    const bool is_after = GET(node->begin) > (uintptr_t)address;
    if (!is_after) best = farther(index, best, farther(index, number, farthest_in(index, GET(node->before))));
    number = is_after ? GET(node->before) : GET(node->after);
  }
  return best != 0 && GET(at(index, best)->end) > (uintptr_t)address ? best : 0;
}

void *rondo_range_around(const rondo_range_index *index, const void *address) {
  const uint32_t number = rondo_range_find(index, address);
  return number == 0 ? NULL : GET(at(index, number)->owner);
}

/* False when the visitor has seen enough. */
static bool visit_tree(const rondo_range_index *index, uint32_t tree, uintptr_t address, rondo_range_visitor *visit,
                       void *user) {
  if (tree == 0 || GET(at(index, farthest_in(index, tree))->end) <= address) return true;
  const range_node *node = at(index, tree);
  if (!visit_tree(index, GET(node->before), address, visit, user)) return false;
  if (GET(node->begin) > address) return true;
  const bool holds = GET(node->end) > address;
  return (!holds || visit(GET(node->owner), user)) && visit_tree(index, GET(node->after), address, visit, user);
}

void rondo_range_visit(const rondo_range_index *index, const void *address, rondo_range_visitor *visit, void *user) {
  (void)visit_tree(index, GET(index->root), (uintptr_t)address, visit, user);
}

/* Checking -------------------------------------------------------------------------------------------------------- */

/* Counts the ranges. Each is between its children in the order, has a lower priority than its parent, and knows the
 * highest end in its subtree. */
static size_t check_tree(const rondo_range_index *index, uint32_t tree) {
  if (tree == 0) return 0;
  const uint32_t sides[] = {GET(at(index, tree)->before), GET(at(index, tree)->after)};
  uint32_t farthest = tree;
  for (int i = 0; i < 2; i++) {
    assert(sides[i] == 0 || priority_of(sides[i]) <= priority_of(tree));
    assert(sides[i] == 0 || precedes(index, sides[i], tree) == (i == 0));
    farthest = farther(index, farthest, farthest_in(index, sides[i]));
  }
  assert(GET(at(index, tree)->begin) <= GET(at(index, tree)->end));
  assert(GET(at(index, farthest)->end) == GET(at(index, farthest_in(index, tree))->end));
  return 1 + check_tree(index, sides[0]) + check_tree(index, sides[1]);
}

size_t rondo_range_index_check(const rondo_range_index *index) {
  assert(GET(index->version) % 2 == 0);
  return check_tree(index, GET(index->root)) + GET(index->missing);
}

/* Without the lock ------------------------------------------------------------------------------------------------ */

#define READ(field) atomic_load_explicit(&(field), memory_order_acquire)

/* A node number that was read while the tree changed may be out of range. */
static const range_node *peek(const rondo_range_nodes *nodes, uint32_t number) {
  return number < nodes->count ? &nodes->items[number] : &nodes->items[0];
}

static void consider(const rondo_range_nodes *nodes, uint32_t number, rondo_range_found *best) {
  const range_node *node = peek(nodes, number);
  const uintptr_t end = READ(node->end);
  if (number != 0 && end > best->end)
    *best =
        (rondo_range_found){.begin = READ(node->begin), .end = end, .tag = READ(node->tag), .owner = READ(node->owner)};
}

/* Searches the tree, which may be inconsistent. */
static void look_through(const rondo_range_nodes *nodes, uint32_t number, uintptr_t address, rondo_range_found *best) {
  for (int steps = 0; number != 0 && steps < MAX_STEPS; steps++) {
    const range_node *node = peek(nodes, number);
    if (READ(node->begin) > address) {
      number = READ(node->before);
      continue;
    }
    consider(nodes, number, best);
    const uint32_t before = READ(node->before);
    if (before != 0) consider(nodes, READ(peek(nodes, before)->farthest), best);
    number = READ(node->after);
  }
  if (best->end <= address) *best = (rondo_range_found){0};
}

bool rondo_range_look(const rondo_range_index *index, const void *address, rondo_range_found *out) {
  const uint64_t version = READ(index->version);
  *out = (rondo_range_found){0};
  if (version % 2 != 0 || READ(index->missing) != 0) return false;
  const uint32_t root = READ(index->root);
  const rondo_range_nodes *nodes = READ(index->nodes);
  if (root != 0) look_through(nodes, root, (uintptr_t)address, out);
  return atomic_load_explicit(&index->version, memory_order_relaxed) == version;
}
