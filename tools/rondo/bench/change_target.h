/* SPDX-License-Identifier: MIT
 * The benchmark of changing execs: what makes and changes them, Rondo or, on a CUDA device, the driver without Rondo.
 * The work is a line of kernels that each set a word.
 *
 * Functions return TOOL_OK, or TOOL_FAILURE having said why.
 */
#ifndef RONDO_TOOL_CHANGE_TARGET_H
#define RONDO_TOOL_CHANGE_TARGET_H

#include <rondo/rondo.h>

#include "common/timing.h"

/* Host time of the calls. */
typedef struct change_times {
  samples instantiate; /* of a new graph, whose nodes are made one by one: that counts too */
  samples update;      /* of an exec by a graph that differs in every node's arguments */
  samples patch;       /* of one node's arguments, and a launch */
  samples launch;      /* alone */
} change_times;

typedef struct change_target change_target;

/* One round of everything, added to the times; and the end. */
struct change_target {
  int (*round)(change_target *target, change_times *times);
  int (*destroy)(change_target *target);
};

enum { CHANGE_PATCHES = 64 }; /* a round */

/* Of `nodes` kernels. The device is the caller's. *out is NULL after a failure. */
int change_rondo_create(rondo_device *device, uint32_t nodes, change_target **out);
/* *out is NULL, without a failure, for a device that no driver is under. */
int change_bare_create(const char *device_name, uint32_t nodes, change_target **out);

#endif
