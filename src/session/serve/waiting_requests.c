/* SPDX-License-Identifier: MIT
 * A treap: a search tree by order whose nodes also form a heap by priority. The priority is a hash of the order, so
 * users of the session cannot choose it. Removing a node merges its two subtrees.
 */
#include "session/serve/waiting_requests.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

static bool is_above(const rondo_waiting_node *a, const rondo_waiting_node *b) {
  return rondo_hash_u64(0, a->order) > rondo_hash_u64(0, b->order);
}

static void take_earlier(rondo_waiting_node *node, const rondo_waiting_node *below) {
  for (size_t i = 0; below != NULL && i < RONDO_WAITING_TIMES; i++)
    if (below->earliest[i] < node->earliest[i]) node->earliest[i] = below->earliest[i];
}

/* Updates the earliest times from the node up to the root. */
static void update_earliest(rondo_waiting_node *node) {
  for (; node != NULL; node = node->parent) {
    memcpy(node->earliest, node->times, sizeof node->earliest);
    take_earlier(node, node->left);
    take_earlier(node, node->right);
  }
}

static void attach(rondo_waiting_node **link, rondo_waiting_node *parent, rondo_waiting_node *node) {
  *link = node;
  if (node != NULL) node->parent = parent;
}

void rondo_waiting_tree_append(rondo_waiting_tree *waiting, rondo_waiting_node *node) {
  rondo_waiting_node **link = &waiting->root, *parent = NULL;
  while (*link != NULL && is_above(*link, node)) {
    parent = *link;
    link = &parent->right;
  }
  node->right = NULL;
  attach(&node->left, node, *link);
  attach(link, parent, node);
  update_earliest(node);
}

/* Replaces the node by its merged subtrees. */
void rondo_waiting_tree_remove(rondo_waiting_tree *waiting, const rondo_waiting_node *node) {
  rondo_waiting_node *parent = node->parent, *a = node->left, *b = node->right;
  rondo_waiting_node **link = parent == NULL ? &waiting->root : parent->left == node ? &parent->left : &parent->right;
  while (a != NULL && b != NULL) {
    rondo_waiting_node *const next = is_above(a, b) ? a : b;
    attach(link, parent, next);
    parent = next;
    link = next == a ? &next->right : &next->left;
    if (next == a)
      a = a->right;
    else
      b = b->left;
  }
  attach(link, parent, a != NULL ? a : b);
  update_earliest(parent);
}

uint64_t rondo_waiting_tree_earliest(const rondo_waiting_tree *waiting, rondo_waiting_time time) {
  return waiting->root == NULL ? UINT64_MAX : waiting->root->earliest[time];
}

rondo_waiting_node *rondo_waiting_tree_first(const rondo_waiting_tree *waiting, rondo_waiting_time time,
                                             uint64_t until) {
  if (waiting->root == NULL || waiting->root->earliest[time] > until) return NULL;
  rondo_waiting_node *node = waiting->root;
  for (;;) {
    if (node->left != NULL && node->left->earliest[time] <= until)
      node = node->left;
    else if (node->times[time] <= until)
      return node;
    else
      node = node->right;
  }
}

/* Checks ----------------------------------------------------------------------------------------------------------- */

/* Checks the node and its subtree, whose orders are above `low` and below `high`. Returns the number of nodes. */
static size_t check_subtree(const rondo_waiting_node *node, const rondo_waiting_node *parent, uint64_t low,
                            uint64_t high) {
  if (node == NULL) return 0;
  assert(node->parent == parent);
  assert(parent == NULL || is_above(parent, node));
  assert(low < node->order && node->order < high);
  const rondo_waiting_node *const below[] = {node->left, node->right};
  for (size_t i = 0; i < RONDO_WAITING_TIMES; i++) {
    uint64_t earliest = node->times[i];
    for (size_t k = 0; k < 2; k++)
      if (below[k] != NULL && below[k]->earliest[i] < earliest) earliest = below[k]->earliest[i];
    assert(node->earliest[i] == earliest);
    (void)earliest;
  }
  (void)parent;
  return 1 + check_subtree(node->left, node, low, node->order) + check_subtree(node->right, node, node->order, high);
}

size_t rondo_waiting_tree_check(const rondo_waiting_tree *waiting) {
  return check_subtree(waiting->root, NULL, 0, UINT64_MAX);
}
