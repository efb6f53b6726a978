/* SPDX-License-Identifier: MIT
 * Plans that lay streams upon each other, each packed as intervals upon and between what is there; what lives on two
 * streams comes between half of them and the others, or last. That is good where streams seldom wait for each other:
 * what is live together is then hardly more than what each of them has live around that time.
 */
#ifndef RONDO_PLAN_ORDER_STACK_H
#define RONDO_PLAN_ORDER_STACK_H

#include "plan/order_search.h"
#include "plan/order_streams.h"

/* Room for laying stacks of one problem again and again. */
typedef struct rondo_order_stack {
  const rondo_allocator *allocator;
  rondo_order_search *search;
  rondo_streams streams;
  struct rondo_order_stack_room *room; /* NULL: such plans are not for the problem */
} rondo_order_stack;

/* Errors: OUT_OF_MEMORY; *out can be freed either way. */
RONDO_MUST_USE rondo_status rondo_order_stack_make(rondo_order_search *search, rondo_order_stack *out);
void rondo_order_stack_free(rondo_order_stack *stack);

/* Lays a stack, when there is room, and offers it to the search: each round is another one. Is
 * given up after the deadline. Counts no steps in round 0, which is part of the fast path. */
void rondo_order_stack_run(rondo_order_stack *stack, uint64_t round);

#endif
