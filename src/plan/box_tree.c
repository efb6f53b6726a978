/* SPDX-License-Identifier: MIT
 * The tree is complete and implicit: node 1 is the root, 2i and 2i + 1 are below i. Points are cut in halves by their
 * beginnings and by their ends in turn. Nodes bound what is unplaced, so the tree gets sharper as boxes are placed.
 */
#include "plan/box_tree.h"

#include "base/error.h"

enum { POINTS_A_LEAF = 8, MOST_DEPTH = 32 };

static const rondo_box_node empty_node = {RONDO_NO_BOX, UINT32_MAX, 0, UINT32_MAX, 0};

static uint32_t leaves_for(uint32_t count) {
  uint32_t leaves = 1;
  while ((uint64_t)leaves * POINTS_A_LEAF < count) leaves *= 2;
  return leaves;
}

rondo_status rondo_box_tree_make(const rondo_allocator *allocator, uint32_t room, rondo_box_tree *out) {
  *out = (rondo_box_tree){.room = room, .room_leaves = leaves_for(room)};
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *out->points, &out->points));
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *out->places, &out->places));
  return rondo_allocate_items(allocator, 2 * (size_t)out->room_leaves, sizeof *out->nodes, &out->nodes);
}

void rondo_box_tree_free(const rondo_allocator *allocator, rondo_box_tree *tree) {
  rondo_release(allocator, tree->points, tree->room, sizeof *tree->points);
  rondo_release(allocator, tree->places, tree->room, sizeof *tree->places);
  rondo_release(allocator, tree->nodes, 2 * (size_t)tree->room_leaves, sizeof *tree->nodes);
  *tree = (rondo_box_tree){0};
}

/* Shape ------------------------------------------------------------------------------------------------------------ */

static uint32_t key_of(const rondo_box_point *point, bool by_upper) { return by_upper ? point->upper : point->lower; }

/* Puts the points in such an order that none before `middle` has a larger key than one from there on. */
static void divide(rondo_box_point *points, size_t count, size_t middle, bool by_upper) {
  size_t low = 0;
  size_t high = count; /* `middle` is in [low, high) */
  while (high - low > 1) {
    const uint32_t pivot = key_of(&points[low + (high - low) / 2], by_upper);
    size_t i = low;
    size_t j = high;
    for (;;) {
      while (key_of(&points[i], by_upper) < pivot) i++;
      while (key_of(&points[j - 1], by_upper) > pivot) j--;
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

static void shape_below(rondo_box_tree *tree, uint32_t first_leaf, uint32_t leaves, bool by_upper) {
  if (leaves == 1) return;
  const size_t start = first_point(tree, first_leaf);
  const size_t middle = first_point(tree, first_leaf + leaves / 2);
  const size_t end = first_point(tree, first_leaf + leaves);
  divide(tree->points + start, end - start, middle - start, by_upper);
  shape_below(tree, first_leaf, leaves / 2, !by_upper);
  shape_below(tree, first_leaf + leaves / 2, leaves / 2, !by_upper);
}

void rondo_box_tree_shape(rondo_box_tree *tree, const rondo_boxes *boxes) {
  tree->count = boxes->count;
  tree->leaves = leaves_for(boxes->count);
  for (uint32_t i = 0; i < boxes->count; i++) {
    tree->points[i] = (rondo_box_point){boxes->boxes[i].lower, boxes->boxes[i].upper, RONDO_NO_BOX, i};
  }
  shape_below(tree, 0, tree->leaves, false);
  for (uint32_t i = 0; i < boxes->count; i++) tree->places[tree->points[i].box] = i;
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

void rondo_box_tree_fill(rondo_box_tree *tree, const uint32_t *order) {
  for (uint32_t rank = 0; rank < tree->count; rank++) tree->points[tree->places[order[rank]]].rank = rank;
  for (uint32_t leaf = 0; leaf < tree->leaves; leaf++) tree->nodes[tree->leaves + leaf] = bounds_of_leaf(tree, leaf);
  for (uint32_t node = tree->leaves - 1; node > 0; node--) {
    tree->nodes[node] = joined(&tree->nodes[2 * node], &tree->nodes[2 * node + 1]);
  }
}

static bool is_same(const rondo_box_node *a, const rondo_box_node *b) {
  return a->first_rank == b->first_rank && a->least_lower == b->least_lower && a->most_lower == b->most_lower &&
         a->least_upper == b->least_upper && a->most_upper == b->most_upper;
}

void rondo_box_tree_remove(rondo_box_tree *tree, uint32_t box) {
  const uint32_t place = tree->places[box];
  const uint32_t leaf = (uint32_t)((((uint64_t)place + 1) * tree->leaves - 1) / tree->count);
  tree->points[place].rank = RONDO_NO_BOX;
  rondo_box_node bounds = bounds_of_leaf(tree, leaf);
  for (uint32_t node = tree->leaves + leaf; !is_same(&tree->nodes[node], &bounds); node /= 2) {
    tree->nodes[node] = bounds;
    if (node == 1) return;
    bounds = joined(&tree->nodes[node], &tree->nodes[node ^ 1]);
  }
}

/* Search ----------------------------------------------------------------------------------------------------------- */

static uint32_t first_of_leaf(const rondo_box_tree *tree, uint32_t leaf, uint32_t lower, uint32_t upper,
                              const rondo_box_filter *filter, uint32_t best) {
  for (size_t i = first_point(tree, leaf), end = first_point(tree, leaf + 1); i < end; i++) {
    const rondo_box_point *point = &tree->points[i];
    if (point->rank >= best || point->lower < lower || point->upper > upper) continue;
    if (filter == NULL || filter->accepts(filter->self, point->box)) best = point->rank;
  }
  return best;
}

uint32_t rondo_box_tree_first(const rondo_box_tree *tree, uint32_t lower, uint32_t upper,
                              const rondo_box_filter *filter) {
  uint32_t stack[MOST_DEPTH + 1];
  uint32_t depth = 0;
  uint32_t best = RONDO_NO_BOX;
  stack[depth++] = 1;
  while (depth > 0) {
    const uint32_t index = stack[--depth];
    const rondo_box_node *node = &tree->nodes[index];
    if (node->first_rank >= best || node->most_lower < lower || node->least_upper > upper) continue;
    if (filter == NULL && node->least_lower >= lower && node->most_upper <= upper) {
      best = node->first_rank;
    } else if (index >= tree->leaves) {
      best = first_of_leaf(tree, index - tree->leaves, lower, upper, filter, best);
    } else {
      const bool left_first = tree->nodes[2 * index].first_rank < tree->nodes[2 * index + 1].first_rank;
      stack[depth++] = 2 * index + (left_first ? 1 : 0);
      stack[depth++] = 2 * index + (left_first ? 0 : 1);
    }
  }
  return best;
}
