/* SPDX-License-Identifier: MIT
 * The benchmark of patching: what launches a graph with an input elsewhere, Rondo or, on a CUDA device, the driver
 * without Rondo. The work is a line of kernels that each read a word of one of eight inputs; the first ones read the
 * first input, which moves.
 *
 * Functions return TOOL_OK, or TOOL_FAILURE having said why.
 */
#ifndef RONDO_TOOL_PATCH_TARGET_H
#define RONDO_TOOL_PATCH_TARGET_H

#include <rondo/rondo.h>

enum { PATCH_INPUTS = 8, PATCH_COUNTS = 5, PATCH_SIZES = 6, PATCH_MOST_READERS = 16 };

/* How many kernels read the input that moves, a graph each; and bytes that are copied instead. */
extern const uint32_t patch_readers[PATCH_COUNTS];
extern const size_t patch_sizes[PATCH_SIZES];

typedef struct patch_target patch_target;

struct patch_target {
  /* Launches graph `which`; with `moves` the first input is elsewhere than at the launch before. */
  int (*launch)(patch_target *target, size_t which, bool moves);
  /* Copies the first input, patch_sizes[size] of it, to where graph 0 has it, and launches that. */
  int (*copy)(patch_target *target, size_t size);
  int (*wait)(patch_target *target);
  int (*destroy)(patch_target *target);
};

/* Of `nodes` kernels, at least PATCH_MOST_READERS. The device is the caller's. *out is NULL after a failure. */
int patch_rondo_create(rondo_device *device, uint32_t nodes, patch_target **out);
/* *out is NULL, without a failure, for a device that no driver is under. */
int patch_bare_create(const char *device_name, uint32_t nodes, patch_target **out);
int patch_target_destroy(patch_target *target); /* NULL is fine */

#endif
