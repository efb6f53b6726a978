/* SPDX-License-Identifier: MIT
 * A treap: a search tree by order whose nodes also form a heap by priority. The priority is a hash of the order, which
 * users of the session cannot choose. Removing a node merges its two subtrees.
 */
#include "session/serve/waiting_requests.h"

#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

static bool is_above(const rondo_waiting_node *a, const rondo_waiting_node *b) {
  return rondo_hash_u64(0, a->order) > rondo_hash_u64(0, b->order);
}

static void take_earlier(rondo_waiting_node *node, const rondo_waiting_node *below) {
  for (size_t i = 0; below != NULL && i < RONDO_WAITING_TIMES; i++)
    if (below->least[i] < node->least[i]) node->least[i] = below->least[i];
}

/* Updates the earliest times from the node up to the root. */
static void update_earliest(rondo_waiting_node *node) {
  for (; node != NULL; node = node->parent) {
    memcpy(node->least, node->times, sizeof node->least);
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

/* Merges the node's subtrees into its place. */
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
  return waiting->root == NULL ? UINT64_MAX : waiting->root->least[time];
}

rondo_waiting_node *rondo_waiting_tree_first(const rondo_waiting_tree *waiting, rondo_waiting_time time,
                                             uint64_t until) {
  if (waiting->root == NULL || waiting->root->least[time] > until) return NULL;
  rondo_waiting_node *node = waiting->root;
  for (;;) {
    if (node->left != NULL && node->left->least[time] <= until)
      node = node->left;
    else if (node->times[time] <= until)
      return node;
    else
      node = node->right;
  }
}
