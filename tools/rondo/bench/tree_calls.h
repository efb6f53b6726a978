/* SPDX-License-Identifier: MIT
 * The benchmark of trees: calls of functions that are replayed. The work of each is the line of kernels of the
 * benchmark of patching (patch_target.h), which read words of eight inputs, with an output of its own.
 *
 * Functions return TOOL_OK, or TOOL_FAILURE having said why.
 */
#ifndef RONDO_TOOL_TREE_CALLS_H
#define RONDO_TOOL_TREE_CALLS_H

#include <rondo/rondo.h>

/* The first `moving` inputs are elsewhere at every call, and read by `readers` kernels each. */
typedef struct tree_case {
  const char *name;
  uint32_t moving, readers;
  rondo_binding binding;
} tree_case;

enum { TREE_CASES = 6, TREE_INPUTS = 8, TREE_MOST_MOVING = 4, TREE_FEWEST_NODES = 32, TREE_INPUT_BYTES = 64 << 10 };
extern const tree_case tree_cases[TREE_CASES];

typedef struct tree_calls tree_calls;

/* Of `nodes` kernels, at least TREE_FEWEST_NODES. The device is the caller's. *out is NULL after a failure. */
int tree_calls_create(rondo_device *device, uint32_t nodes, tree_calls **out);
int tree_calls_destroy(tree_calls *calls); /* NULL is fine */

/* Makes the inputs of case `which` ready for its next call, and gives its last output back. */
void tree_calls_turn(tree_calls *calls, size_t which);
/* The call; and waiting for all that was queued. */
int tree_calls_call(tree_calls *calls, size_t which);
int tree_calls_wait(tree_calls *calls);

/* Proves that calls were replays but for the first two, and that inputs came as the case says. */
int tree_calls_check(const tree_calls *calls);

#endif
