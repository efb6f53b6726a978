/* SPDX-License-Identifier: MIT
 * A search tree of waiting requests, in the order of their arrival. Each node stores the earliest times of its subtree,
 * so finding the first request that is ready at a given time, or the earliest time of all, takes O(log n) steps.
 *
 * The nodes belong to the caller, and nothing is allocated. Pure; thread-compatible.
 */
#ifndef RONDO_SESSION_SERVE_WAITING_REQUESTS_H
#define RONDO_SESSION_SERVE_WAITING_REQUESTS_H

#include <stddef.h>
#include <stdint.h>

/* When a request becomes ready: at once, after its delay, after its wait for a worker, or after the longer of both; and
 * when it expires. */
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
  uint64_t order;                         /* higher than that of every node added before */
  uint64_t times[RONDO_WAITING_TIMES];    /* set by the caller; constant while it waits */
  uint64_t earliest[RONDO_WAITING_TIMES]; /* the minimum over this node and its subtree */
} rondo_waiting_node;

/* A zeroed tree is empty. */
typedef struct rondo_waiting_tree {
  rondo_waiting_node *root;
} rondo_waiting_tree;

/* `order` must be higher than that of all other nodes. */
void rondo_waiting_tree_append(rondo_waiting_tree *waiting, rondo_waiting_node *node);
void rondo_waiting_tree_remove(rondo_waiting_tree *waiting, const rondo_waiting_node *node);

/* The first node whose time is at or before `until`; NULL: there is none. */
rondo_waiting_node *rondo_waiting_tree_first(const rondo_waiting_tree *waiting, rondo_waiting_time time,
                                             uint64_t until);
/* UINT64_MAX: the tree is empty. */
uint64_t rondo_waiting_tree_earliest(const rondo_waiting_tree *waiting, rondo_waiting_time time);

/* Walks the tree and asserts its invariant. Returns the number of nodes. */
size_t rondo_waiting_tree_check(const rondo_waiting_tree *waiting);

#endif
