/* SPDX-License-Identifier: MIT
 * Checks of this layer's data structures: each walks one structure and asserts its invariant, in time proportional to
 * its size. Builds without assertions have no checks. Public calls check small structures, and those that they walk
 * anyway; tests check everywhere.
 *
 * Threads: the caller prevents changes of the structure by the lock or gate that each declaration names.
 */
#ifndef RONDO_MEMORY_MEMORY_CHECK_H
#define RONDO_MEMORY_MEMORY_CHECK_H

#include "memory/device_memory.h"
#include "memory/profile/memory_profile.h"

typedef struct rondo_exec_memory rondo_exec_memory;

/* Public calls check a structure at their end if it has at most this many live members. */
#define RONDO_CHECKED_MEMBERS 32

#ifdef NDEBUG
static inline void rondo_pool_check(const rondo_pool *pool) { (void)pool; }
static inline void rondo_allocation_table_check(const rondo_allocation_table *table) { (void)table; }
static inline void rondo_memory_check(const rondo_device_memory *memory) { (void)memory; }
static inline void rondo_heap_check(const rondo_heap *heap) { (void)heap; }
static inline void rondo_address_space_check(const rondo_address_space *space) { (void)space; }
static inline void rondo_exec_memory_check(const rondo_exec_memory *exec) { (void)exec; }
static inline void rondo_arena_check(const rondo_arena *arena) { (void)arena; }
static inline void rondo_noted_lifetimes_check(const rondo_noted_lifetimes *noted) { (void)noted; }
static inline void rondo_profile_check(const rondo_profile *profile) { (void)profile; }
#else
/* Under the lock of the device's memory, or before other threads can use the structure: a pool with its chunks, blocks,
 * bins and lists of pending blocks; a table of allocations with its index and its ring of freed ones; all pools, tables
 * and lists of a device; the ranges and records of an address space. */
void rondo_pool_check(const rondo_pool *pool);
void rondo_allocation_table_check(const rondo_allocation_table *table);
void rondo_memory_check(const rondo_device_memory *memory);
void rondo_address_space_check(const rondo_address_space *space);

/* With the gate of the heap entered: its chunks, and their mappings in the spaces bound to it. */
void rondo_heap_check(const rondo_heap *heap);

/* By the owner; an arena's check takes the lock of the device's memory. */
void rondo_exec_memory_check(const rondo_exec_memory *exec);
void rondo_arena_check(const rondo_arena *arena);

/* Immutable structures, from any thread. */
void rondo_noted_lifetimes_check(const rondo_noted_lifetimes *noted);
void rondo_profile_check(const rondo_profile *profile);
#endif

#endif
