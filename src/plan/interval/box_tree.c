/* SPDX-License-Identifier: MIT
 * The tree is complete and implicit: node 1 is the root, and nodes 2i and 2i + 1 are the children of node i. Points are
 * divided in halves by their lower ends, their upper ends and, if needed, their bytes in turn. A node's bounds cover
 * only unplaced points, so the tree gets sharper as boxes are placed.
 */
#include "plan/interval/box_tree.h"

#include <assert.h>

#include "base/error.h"

enum { POINTS_A_LEAF = 8, MOST_DEPTH = 32 };

/* The key by which points are divided. */
enum { BY_LOWER, BY_UPPER, BY_BYTES };

static const rondo_box_node empty_node = {RONDO_NO_BOX, UINT32_MAX, 0, UINT32_MAX, 0};

static uint32_t leaves_for(uint32_t count) {
  uint32_t leaves = 1;
  while ((uint64_t)leaves * POINTS_A_LEAF < count) leaves *= 2;
  return leaves;
}

rondo_status rondo_box_tree_make(rondo_scratch *scratch, uint32_t capacity, rondo_box_tree *out) {
  *out = (rondo_box_tree){.capacity = capacity, .leaf_capacity = leaves_for(capacity)};
  RONDO_TRY(rondo_scratch_take(scratch, capacity, sizeof *out->points, &out->points));
  RONDO_TRY(rondo_scratch_take(scratch, capacity, sizeof *out->index_of_box, &out->index_of_box));
  RONDO_TRY(rondo_scratch_take(scratch, 2 * (size_t)out->leaf_capacity, sizeof *out->nodes, &out->nodes));
  return rondo_scratch_take(scratch, 2 * (size_t)out->leaf_capacity, sizeof *out->least_bytes, &out->least_bytes);
}

/* Shape ------------------------------------------------------------------------------------------------------------ */

static uint64_t key_of(const rondo_box_tree *tree, const rondo_box_point *point, int by) {
  return by == BY_LOWER ? point->lower : by == BY_UPPER ? point->upper : tree->boxes[point->box].bytes;
}

/* Partially sorts the points: no key before `middle` is larger than a key from there on. */
static void divide(const rondo_box_tree *tree, rondo_box_point *points, size_t count, size_t middle, int by) {
  size_t low = 0;
  size_t high = count; /* `middle` is in [low, high) */
  while (high - low > 1) {
    const uint64_t pivot = key_of(tree, &points[low + (high - low) / 2], by);
    size_t i = low;
    size_t j = high;
    for (;;) {
      while (key_of(tree, &points[i], by) < pivot) i++;
      while (key_of(tree, &points[j - 1], by) > pivot) j--;
      if (i >= j) break;
      const rondo_box_point moved = points[i];
      points[i++] = points[j - 1];
      points[--j] = moved;
      if (i >= j) break;
    }
    if (middle < j) {
      high = j;
    } else if (middle >= i) {
      low = i;
    } else {
      return;
    }
  }
}

static size_t first_point(const rondo_box_tree *tree, uint32_t leaf) {
  return (size_t)((uint64_t)leaf * tree->count / tree->leaves);
}

static void shape_below(rondo_box_tree *tree, uint32_t first_leaf, uint32_t leaves, int by) {
  if (leaves == 1) return;
  const size_t start = first_point(tree, first_leaf);
  const size_t middle = first_point(tree, first_leaf + leaves / 2);
  const size_t end = first_point(tree, first_leaf + leaves);
  const int next = by == BY_LOWER ? BY_UPPER : by == BY_UPPER && tree->boxes != NULL ? BY_BYTES : BY_LOWER;
  divide(tree, tree->points + start, end - start, middle - start, by);
  shape_below(tree, first_leaf, leaves / 2, next);
  shape_below(tree, first_leaf + leaves / 2, leaves / 2, next);
}

void rondo_box_tree_shape(rondo_box_tree *tree, const rondo_box *boxes, uint32_t count, bool with_bytes) {
  tree->boxes = with_bytes ? boxes : NULL;
  tree->count = count;
  tree->leaves = leaves_for(count);
  for (uint32_t i = 0; i < count; i++) {
    tree->points[i] = (rondo_box_point){boxes[i].lower, boxes[i].upper, RONDO_NO_BOX, i};
  }
  shape_below(tree, 0, tree->leaves, BY_LOWER);
  for (uint32_t i = 0; i < count; i++) tree->index_of_box[tree->points[i].box] = i;
}

/* Bounds ----------------------------------------------------------------------------------------------------------- */

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static rondo_box_node joined(const rondo_box_node *a, const rondo_box_node *b) {
  return (rondo_box_node){smaller(a->first_rank, b->first_rank), smaller(a->least_lower, b->least_lower),
                          larger(a->most_lower, b->most_lower), smaller(a->least_upper, b->least_upper),
                          larger(a->most_upper, b->most_upper)};
}

static rondo_box_node bounds_of_leaf(const rondo_box_tree *tree, uint32_t leaf) {
  rondo_box_node node = empty_node;
  for (size_t i = first_point(tree, leaf), end = first_point(tree, leaf + 1); i < end; i++) {
    const rondo_box_point *point = &tree->points[i];
    if (point->rank == RONDO_NO_BOX) continue;
    const rondo_box_node one = {point->rank, point->lower, point->lower, point->upper, point->upper};
    node = joined(&node, &one);
  }
  return node;
}

static uint64_t least_bytes_of_leaf(const rondo_box_tree *tree, uint32_t leaf) {
  uint64_t least = UINT64_MAX;
  for (size_t i = first_point(tree, leaf), end = first_point(tree, leaf + 1); i < end; i++) {
    const rondo_box_point *point = &tree->points[i];
    if (point->rank != RONDO_NO_BOX && tree->boxes[point->box].bytes < least) least = tree->boxes[point->box].bytes;
  }
  return least;
}

static uint64_t joined_bytes(const rondo_box_tree *tree, uint32_t node) {
  const uint64_t a = tree->least_bytes[node & ~1U];
  const uint64_t b = tree->least_bytes[node | 1U];
  return a < b ? a : b;
}

static void fill_bytes(rondo_box_tree *tree) {
  for (uint32_t leaf = 0; leaf < tree->leaves; leaf++) {
    tree->least_bytes[tree->leaves + leaf] = least_bytes_of_leaf(tree, leaf);
  }
  for (uint32_t node = tree->leaves - 1; node > 0; node--) tree->least_bytes[node] = joined_bytes(tree, 2 * node);
}

void rondo_box_tree_fill(rondo_box_tree *tree, const uint32_t *order) {
  for (uint32_t rank = 0; rank < tree->count; rank++) {
    tree->points[tree->index_of_box[order == NULL ? rank : order[rank]]].rank = rank;
  }
  for (uint32_t leaf = 0; leaf < tree->leaves; leaf++) tree->nodes[tree->leaves + leaf] = bounds_of_leaf(tree, leaf);
  for (uint32_t node = tree->leaves - 1; node > 0; node--) {
    tree->nodes[node] = joined(&tree->nodes[2 * node], &tree->nodes[2 * node + 1]);
  }
  if (tree->boxes != NULL) fill_bytes(tree);
}

static bool is_same(const rondo_box_node *a, const rondo_box_node *b) {
  return a->first_rank == b->first_rank && a->least_lower == b->least_lower && a->most_lower == b->most_lower &&
         a->least_upper == b->least_upper && a->most_upper == b->most_upper;
}

static void remove_bytes(rondo_box_tree *tree, uint32_t leaf) {
  uint64_t least = least_bytes_of_leaf(tree, leaf);
  for (uint32_t node = tree->leaves + leaf; tree->least_bytes[node] != least; node /= 2) {
    tree->least_bytes[node] = least;
    if (node == 1) return;
    least = joined_bytes(tree, node);
  }
}

void rondo_box_tree_remove(rondo_box_tree *tree, uint32_t box) {
  const uint32_t index = tree->index_of_box[box];
  const uint32_t leaf = (uint32_t)((((uint64_t)index + 1) * tree->leaves - 1) / tree->count);
  tree->points[index].rank = RONDO_NO_BOX;
  if (tree->boxes != NULL) remove_bytes(tree, leaf);
  rondo_box_node bounds = bounds_of_leaf(tree, leaf);
  for (uint32_t node = tree->leaves + leaf; !is_same(&tree->nodes[node], &bounds); node /= 2) {
    tree->nodes[node] = bounds;
    if (node == 1) return;
    bounds = joined(&tree->nodes[node], &tree->nodes[node ^ 1]);
  }
}

/* Search ----------------------------------------------------------------------------------------------------------- */

typedef struct search {
  const rondo_box_tree *tree;
  const rondo_box_query *query;
  uint32_t best;
  uint32_t refusals;
} search;

static bool is_accepted(search *s, uint32_t box) {
  if (s->query->most_bytes != UINT64_MAX && s->tree->boxes[box].bytes > s->query->most_bytes) return false;
  if (s->query->accepts == NULL || s->query->accepts(s->query->self, box)) return true;
  s->refusals++;
  return false;
}

static void search_leaf(search *s, uint32_t leaf) {
  const rondo_box_tree *tree = s->tree;
  for (size_t i = first_point(tree, leaf), end = first_point(tree, leaf + 1); i < end; i++) {
    const rondo_box_point *point = &tree->points[i];
    if (point->rank >= s->best || point->lower < s->query->lower || point->upper > s->query->upper) continue;
    if (is_accepted(s, point->box)) s->best = point->rank;
  }
}

static bool is_out(const search *s, uint32_t index) {
  const rondo_box_node *node = &s->tree->nodes[index];
  if (node->first_rank >= s->best || node->most_lower < s->query->lower || node->least_upper > s->query->upper) {
    return true;
  }
  return s->query->most_bytes != UINT64_MAX && s->tree->least_bytes[index] > s->query->most_bytes;
}

uint32_t rondo_box_tree_first(const rondo_box_tree *tree, const rondo_box_query *query) {
  const bool by_life_alone = query->accepts == NULL && query->most_bytes == UINT64_MAX;
  search s = {.tree = tree, .query = query, .best = query->before};
  uint32_t stack[MOST_DEPTH + 1];
  uint32_t depth = 0;
  stack[depth++] = 1;
  while (depth > 0 && s.refusals <= query->most_refusals) {
    const uint32_t index = stack[--depth];
    const rondo_box_node *node = &tree->nodes[index];
    if (is_out(&s, index)) continue;
    if (by_life_alone && node->least_lower >= query->lower && node->most_upper <= query->upper) {
      s.best = node->first_rank;
    } else if (index >= tree->leaves) {
      search_leaf(&s, index - tree->leaves);
    } else {
      const bool left_first = tree->nodes[2 * index].first_rank < tree->nodes[2 * index + 1].first_rank;
      stack[depth++] = 2 * index + (left_first ? 1 : 0);
      stack[depth++] = 2 * index + (left_first ? 0 : 1);
    }
  }
  return s.best;
}

/* Check ------------------------------------------------------------------------------------------------------------ */

#ifndef NDEBUG
void rondo_box_tree_check(const rondo_box_tree *tree) {
  for (uint32_t i = 0; i < tree->count; i++) {
    assert(tree->points[i].box < tree->count && tree->index_of_box[tree->points[i].box] == i);
    assert(tree->points[i].rank == RONDO_NO_BOX || tree->points[i].rank < tree->count);
  }
  for (uint32_t leaf = 0; leaf < tree->leaves; leaf++) {
    const rondo_box_node bounds = bounds_of_leaf(tree, leaf);
    assert(is_same(&tree->nodes[tree->leaves + leaf], &bounds));
    assert(tree->boxes == NULL || tree->least_bytes[tree->leaves + leaf] == least_bytes_of_leaf(tree, leaf));
  }
  for (uint32_t node = 1; node < tree->leaves; node++) {
    const rondo_box_node bounds = joined(&tree->nodes[2 * node], &tree->nodes[2 * node + 1]);
    assert(is_same(&tree->nodes[node], &bounds));
    assert(tree->boxes == NULL || tree->least_bytes[node] == joined_bytes(tree, 2 * node));
  }
}
#endif
