/* SPDX-License-Identifier: MIT
 * Sharded states of compiled programs in sets of weights, which have them in full (<rondo/data_parallel.h>).
 */
#ifndef RONDO_TENSOR_FILES_SHARDS_H
#define RONDO_TENSOR_FILES_SHARDS_H

#include "tensor/files/weights_program.h"

/* Gathers them from all ranks and appends them. */
RONDO_MUST_USE rondo_status rondo_shards_gather(rondo_weights *into, rondo_compiled *compiled,
                                                const rondo_kept_values *kept);

/* Writes this rank's parts. The weights have them all. */
RONDO_MUST_USE rondo_status rondo_shards_apply(const rondo_weights *weights, rondo_compiled *compiled,
                                               const rondo_kept_values *kept);

bool rondo_shards_have(const rondo_compiled *compiled, const char *name);

#endif
