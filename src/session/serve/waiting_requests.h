/* SPDX-License-Identifier: MIT
 * What waits, in the order in which it came, found by times: the first in that order that has a time up to a given one,
 * and the least time of all. A search tree by order in which each node knows the least times below it (a treap: random
 * priorities keep it flat), so that each call takes a number of steps that rises with the logarithm of how many wait.
 * Intrusive: nodes are the caller's, and nothing is allocated. Pure; thread-compatible.
 */
#ifndef RONDO_SESSION_SERVE_WAITING_REQUESTS_H
#define RONDO_SESSION_SERVE_WAITING_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

/* When a request is ripe: at once, when its delay is over, its hold, or both; and when it is too late. */
typedef enum rondo_waiting_time {
  RONDO_WAITING_NONE,
  RONDO_WAITING_DELAY,
  RONDO_WAITING_WORKER,
  RONDO_WAITING_BOTH,
  RONDO_WAITING_DEADLINE,
  RONDO_WAITING_TIMES
} rondo_waiting_time;

typedef struct rondo_waiting_node {
  struct rondo_waiting_node *parent, *left, *right;
  uint64_t order;                      /* rises from node to node */
  uint64_t times[RONDO_WAITING_TIMES]; /* the caller's; they stay while it waits */
  uint64_t least[RONDO_WAITING_TIMES]; /* of these and of all below */
} rondo_waiting_node;

/* Zero is empty. */
typedef struct rondo_waiting_tree {
  rondo_waiting_node *root;
} rondo_waiting_tree;

/* Behind all others: `order` is above theirs. */
void rondo_waiting_tree_append(rondo_waiting_tree *waiting, rondo_waiting_node *node);
void rondo_waiting_tree_remove(rondo_waiting_tree *waiting, const rondo_waiting_node *node);

/* The first whose time is `until` or before; NULL: there is none. */
rondo_waiting_node *rondo_waiting_tree_first(const rondo_waiting_tree *waiting, rondo_waiting_time time,
                                             uint64_t until);
/* UINT64_MAX: nothing waits. */
uint64_t rondo_waiting_tree_earliest(const rondo_waiting_tree *waiting, rondo_waiting_time time);

#endif
