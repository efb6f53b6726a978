/* SPDX-License-Identifier: MIT
 * See cpu_shared_memory.h.
 */
#include "device/cpu/cpu_shared_memory.h"

static void free_memory(const rondo_allocator *allocator, cpu_shared_memory *memory) {
  if (memory == NULL) return;
  rondo_release(allocator, memory->bytes, memory->count, CPU_SHARED_BYTES);
  rondo_release(allocator, memory, 1, sizeof *memory + memory->count * sizeof *memory->pieces);
}

static rondo_status make_memory(cpu_device *device, cpu_shared_memory **out) {
  const rondo_allocator *allocator = &device->base.allocator;
  const uint32_t count = device->pool.participant_count;
  void *memory, *bytes;
  *out = NULL;
  RONDO_TRY(
      rondo_allocate_aligned(allocator, 1, sizeof **out + count * sizeof(cpu_shared_piece), RONDO_CACHE_LINE, &memory));
  *out = memory;
  (*out)->count = count;
  const rondo_status status =
      rondo_allocate_untouched(allocator, (size_t)count * CPU_SHARED_BYTES, CPU_SHARED_ALIGNMENT, &bytes);
  if (status == RONDO_OK) {
    (*out)->bytes = bytes;
    return RONDO_OK;
  }
  free_memory(allocator, *out);
  *out = NULL;
  return status;
}

rondo_status cpu_shared_memory_make(cpu_device *device) {
  cpu_shared_memory *made, *expected = NULL;
  if (atomic_load(&device->shared_memory) != NULL) return RONDO_OK;
  RONDO_TRY(make_memory(device, &made));
  if (!atomic_compare_exchange_strong(&device->shared_memory, &expected, made))
    free_memory(&device->base.allocator, made); /* another thread was first */
  return RONDO_OK;
}

void cpu_shared_memory_free(cpu_device *device) {
  free_memory(&device->base.allocator, atomic_exchange(&device->shared_memory, NULL));
}

static _Thread_local uint32_t taken_last;

static bool take_piece(cpu_shared_memory *memory, uint32_t number) {
  atomic_bool *is_taken = &memory->pieces[number].is_taken;
  return !atomic_load_explicit(is_taken, memory_order_relaxed) &&
         !atomic_exchange_explicit(is_taken, true, memory_order_acquire);
}

/* There is a piece for each participant. If more threads than these run functions, one waits for another's end. */
void *cpu_shared_memory_take(cpu_shared_memory *memory, uint32_t *out) {
  uint32_t number = taken_last < memory->count ? taken_last : 0;
  for (uint32_t tried = 0; !take_piece(memory, number); number = (number + 1) % memory->count)
    if (++tried % memory->count == 0) rondo_yield();
  *out = taken_last = number;
  return memory->bytes + (size_t)number * CPU_SHARED_BYTES;
}

void cpu_shared_memory_give(cpu_shared_memory *memory, uint32_t number) {
  atomic_store_explicit(&memory->pieces[number].is_taken, false, memory_order_release);
}
