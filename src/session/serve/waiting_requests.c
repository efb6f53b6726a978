/* SPDX-License-Identifier: MIT
 * A treap. A node's priority is its order, scattered: nobody who hands requests in can choose it.
 */
#include "session/serve/waiting_requests.h"

#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

static bool is_above(const rondo_waiting_node *a, const rondo_waiting_node *b) {
  return rondo_hash_u64(0, a->order) > rondo_hash_u64(0, b->order);
}

static void take_least(rondo_waiting_node *node, const rondo_waiting_node *below) {
  for (size_t i = 0; below != NULL && i < RONDO_WAITING_TIMES; i++)
    if (below->least[i] < node->least[i]) node->least[i] = below->least[i];
}

/* From the node up to the root. */
static void find_least(rondo_waiting_node *node) {
  for (; node != NULL; node = node->parent) {
    memcpy(node->least, node->times, sizeof node->least);
    take_least(node, node->before);
    take_least(node, node->behind);
  }
}

static void hang(rondo_waiting_node **link, rondo_waiting_node *parent, rondo_waiting_node *node) {
  *link = node;
  if (node != NULL) node->parent = parent;
}

void rondo_waiting_append(rondo_waiting *waiting, rondo_waiting_node *node) {
  rondo_waiting_node **link = &waiting->root, *parent = NULL;
  while (*link != NULL && is_above(*link, node)) {
    parent = *link;
    link = &parent->behind;
  }
  node->behind = NULL;
  hang(&node->before, node, *link);
  hang(link, parent, node);
  find_least(node);
}

/* What is below the node takes its place. */
void rondo_waiting_remove(rondo_waiting *waiting, const rondo_waiting_node *node) {
  rondo_waiting_node *parent = node->parent, *a = node->before, *b = node->behind;
  rondo_waiting_node **link = parent == NULL           ? &waiting->root
                              : parent->before == node ? &parent->before
                                                       : &parent->behind;
  while (a != NULL && b != NULL) {
    rondo_waiting_node *const next = is_above(a, b) ? a : b;
    hang(link, parent, next);
    parent = next;
    link = next == a ? &next->behind : &next->before;
    if (next == a)
      a = a->behind;
    else
      b = b->before;
  }
  hang(link, parent, a != NULL ? a : b);
  find_least(parent);
}

uint64_t rondo_waiting_least(const rondo_waiting *waiting, rondo_waiting_time time) {
  return waiting->root == NULL ? UINT64_MAX : waiting->root->least[time];
}

rondo_waiting_node *rondo_waiting_first(const rondo_waiting *waiting, rondo_waiting_time time, uint64_t until) {
  if (waiting->root == NULL || waiting->root->least[time] > until) return NULL;
  rondo_waiting_node *node = waiting->root;
  for (;;) {
    if (node->before != NULL && node->before->least[time] <= until)
      node = node->before;
    else if (node->times[time] <= until)
      return node;
    else
      node = node->behind;
  }
}
