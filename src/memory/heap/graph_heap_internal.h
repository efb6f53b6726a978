/* SPDX-License-Identifier: MIT
 * Functions that the three files of heaps share. "The heap is idle" means that its gate is entered and its last launch
 * is complete: nothing uses its mappings.
 */
#ifndef RONDO_MEMORY_HEAP_GRAPH_HEAP_INTERNAL_H
#define RONDO_MEMORY_HEAP_GRAPH_HEAP_INTERNAL_H

#include "memory/heap/graph_heap.h"

static inline rondo_heap_use rondo_heap_use_of(const rondo_heap *heap) {
  return (rondo_heap_use)atomic_load_explicit(&heap->use, memory_order_acquire);
}
/* Under the memory's lock. */
static inline void rondo_heap_set_use(rondo_heap *heap, rondo_heap_use use) {
  atomic_store_explicit(&heap->use, (uint32_t)use, memory_order_release);
}

/* The first of all heaps of the device; the others follow by `next`. */
rondo_heap *rondo_heap_first(rondo_device_memory *memory);

/* With the gate entered: waits until the heap is idle; returns whether it is. */
RONDO_MUST_USE static inline rondo_status rondo_heap_wait_idle(rondo_heap *heap) {
  return heap->last_queue == 0 ? RONDO_OK : heap->last->ops->synchronize(heap->last);
}
static inline bool rondo_heap_is_idle(const rondo_heap *heap) {
  return heap->last_queue == 0 || heap->last->ops->query(heap->last) == RONDO_OK;
}
/* With the gate entered: whether the heap is idle and its memory may be taken; memory of uploads only `with_uploads`.
 */
bool rondo_heap_is_dispensable(const rondo_heap *heap, bool with_uploads);

/* Chunks. A new one is inserted at `index`; the chunks from there on move up, and must not be mapped. */
RONDO_MUST_USE rondo_status rondo_heap_insert_chunk(rondo_heap *heap, size_t index, size_t bytes);
void rondo_heap_remove_chunk(rondo_heap *heap, size_t index);
void rondo_heap_remove_all_chunks(rondo_heap *heap);

/* Mappings, while the heap is idle. A mapping that cannot be unmapped stays in the list, and the next attempt begins
 * with it. note_unmapped removes the last mapping of the space from the list. */
RONDO_MUST_USE rondo_status rondo_heap_map_chunk(rondo_address_space *space, size_t offset, uint32_t index);
void rondo_heap_note_unmapped(rondo_address_space *space);
RONDO_MUST_USE rondo_status rondo_heap_unmap_space(rondo_address_space *space);
RONDO_MUST_USE rondo_status rondo_heap_unmap_all(rondo_heap *heap);

/* Private pages of a space, at `position` in its list. Pages that cannot be unmapped stay in the list. */
RONDO_MUST_USE rondo_status rondo_heap_add_private(rondo_address_space *space, size_t position, size_t offset,
                                                   size_t bytes);
RONDO_MUST_USE rondo_status rondo_heap_remove_private(rondo_address_space *space, size_t position);

/* With the gate entered: waits for the launches, and releases all memory that no live allocation needs. */
RONDO_MUST_USE rondo_status rondo_heap_trim(rondo_heap *heap);
#endif
