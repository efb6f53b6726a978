/* SPDX-License-Identifier: MIT
 * Buffers with memory of the tree's pool (owned_buffer.c). A stream of NULL means at once, with no work of it under
 * way, but for rondo_owned_free, which then leaves the memory to rondo_owned_free_late.
 */
#ifndef RONDO_TREE_PATH_OWNED_BUFFER_H
#define RONDO_TREE_PATH_OWNED_BUFFER_H

#include "tree/tree_internal.h"

/* *out is NULL for 0 bytes. */
RONDO_MUST_USE rondo_status rondo_owned_allocate(const rondo_tree *tree, rondo_stream *stream, size_t bytes,
                                                 const char *name, void **out);

/* Frees memory that no buffer represents, after the stream's work. What cannot be freed so is left to
 * rondo_owned_free_late, but in a capture, which its failure ends. The thread's last error stays. */
void rondo_owned_free_address(rondo_tree *tree, rondo_stream *stream, void *address);

/* Such memory becomes a buffer that one holds: of the step (the generation's), or of none. */
RONDO_MUST_USE rondo_status rondo_owned_adopt(rondo_tree *tree, void *address, const rondo_buffer_layout *extent,
                                              rondo_origin *origin, uint64_t generation, rondo_buffer **out);

/* Nobody holds it any more. */
void rondo_owned_free(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer);
static inline bool rondo_owned_has_late(const rondo_tree *tree) {
  return tree->unfreed != NULL || tree->unfreed_addresses.count > 0;
}
/* Frees what could not be, as far as that can be done now. */
void rondo_owned_free_late(rondo_tree *tree, rondo_stream *stream);
/* Its step is over: the memory goes, whoever holds it. */
void rondo_owned_expire(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer);
/* It belongs to no step from now on. */
void rondo_owned_keep(rondo_tree *tree, rondo_buffer *buffer);
/* A buffer of the arena gets memory of its own, with its contents, and belongs to no step. */
RONDO_MUST_USE rondo_status rondo_owned_clone(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer);
/* The tree ends. */
void rondo_owned_free_all(rondo_tree *tree);

#endif
