/* SPDX-License-Identifier: MIT
 * Buffers that own memory of the tree's pool. Functions that free memory do so after the work of the stream. Without a
 * stream (NULL) they free it at once, and no work may be using it. Exception: rondo_owned_free without a stream leaves
 * the memory to rondo_owned_free_late.
 */
#ifndef RONDO_TREE_PATH_OWNED_BUFFER_H
#define RONDO_TREE_PATH_OWNED_BUFFER_H

#include "tree/tree_internal.h"

/* *out is NULL for 0 bytes. */
RONDO_MUST_USE rondo_status rondo_owned_allocate(const rondo_tree *tree, rondo_stream *stream, size_t bytes,
                                                 const char *name, void **out);

/* Frees memory that belongs to no buffer. If that fails, rondo_owned_free_late retries; in a capture, the capture
 * becomes invalid instead. Keeps the thread's last error. */
void rondo_owned_free_address(rondo_tree *tree, rondo_stream *stream, void *address);

/* Makes a buffer of such memory, with one reference. It belongs to the step of this generation, or to no step. */
RONDO_MUST_USE rondo_status rondo_owned_adopt(rondo_tree *tree, void *address, const rondo_buffer_layout *extent,
                                              rondo_origin *origin, uint64_t generation, rondo_buffer **out);

/* Frees a buffer without references. */
void rondo_owned_free(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer);
static inline bool rondo_owned_has_late(const rondo_tree *tree) {
  return tree->unfreed != NULL || tree->unfreed_addresses.count > 0;
}
/* Frees what could not be freed before, as far as possible. */
void rondo_owned_free_late(rondo_tree *tree, rondo_stream *stream);
/* Frees the memory of a buffer whose step is over, even if the buffer is still retained. */
void rondo_owned_expire(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer);
/* The buffer belongs to no step from now on. */
void rondo_owned_keep(rondo_tree *tree, rondo_buffer *buffer);
/* Moves a buffer of the arena, with its contents, to owned memory. It then belongs to no step. */
RONDO_MUST_USE rondo_status rondo_owned_clone(rondo_tree *tree, rondo_stream *stream, rondo_buffer *buffer);
/* Called when the tree is destroyed. */
void rondo_owned_free_all(rondo_tree *tree);

#endif
