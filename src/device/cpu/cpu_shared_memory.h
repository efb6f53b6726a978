/* SPDX-License-Identifier: MIT
 * The shared memory of blocks on a CPU device: one piece for each participant, as large as a GPU's. A call of a block
 * function takes a piece and gives it back, so as many are taken as functions run. All are allocated when the first
 * kernel is made that may use them, and have no pages before they are used: launches allocate nothing.
 *
 * Threads: any. A thread takes the piece that it had last, if it can, which is still in its cache.
 */
#ifndef RONDO_DEVICE_CPU_CPU_SHARED_MEMORY_H
#define RONDO_DEVICE_CPU_CPU_SHARED_MEMORY_H

#include "device/cpu/cpu.h"

enum { CPU_SHARED_BYTES = 227 * 1024 /* of an H100 */, CPU_SHARED_ALIGNMENT = 128 };

typedef struct cpu_shared_piece {
  alignas(RONDO_CACHE_LINE) atomic_bool is_taken;
} cpu_shared_piece;

struct cpu_shared_memory {
  unsigned char *bytes;
  uint32_t count;
  cpu_shared_piece pieces[];
};

/* Makes device->shared_memory, unless it exists. */
RONDO_MUST_USE rondo_status cpu_shared_memory_make(cpu_device *device);
void cpu_shared_memory_free(cpu_device *device);

/* Returns a piece, and its number in *out. */
void *cpu_shared_memory_take(cpu_shared_memory *memory, uint32_t *out);
void cpu_shared_memory_give(cpu_shared_memory *memory, uint32_t number);

#endif
