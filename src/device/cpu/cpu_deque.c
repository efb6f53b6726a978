/* SPDX-License-Identifier: MIT
 * Work-stealing deques: D. Chase and Y. Lev, Dynamic circular work-stealing deque, SPAA 2005; memory orders after N. M.
 * Lê, A. Pop, A. Cohen, F. Zappa Nardelli, Correct and efficient work-stealing for weak memory models, PPoPP 2013, with
 * their fences folded into sequentially consistent accesses (ThreadSanitizer knows no fences).
 * The owner makes room before a run (cpu_deque_reserve), so a push never fails.
 */
#include "device/cpu/cpu.h"

static size_t buffer_bytes(size_t capacity) { return sizeof(cpu_deque_buffer) + capacity * sizeof(_Atomic uint64_t); }

bool cpu_deque_reserve(cpu_device *device, cpu_deque *deque, uint64_t need) {
  cpu_deque_buffer *old = atomic_load_explicit(&deque->buffer, memory_order_relaxed);
  if (old != NULL && old->capacity >= need) return true;
  size_t capacity = 256;
  while (capacity < need) capacity *= 2;
  void *memory;
  if (rondo_allocate(&device->base.allocator, 1, buffer_bytes(capacity), &memory) != RONDO_OK) return false;
  cpu_deque_buffer *buffer = memory;
  buffer->older = old;
  buffer->capacity = capacity;
  atomic_store_explicit(&deque->buffer, buffer, memory_order_release);
  return true;
}

void cpu_deque_free(cpu_device *device, cpu_deque *deque) {
  cpu_deque_buffer *buffer = atomic_load_explicit(&deque->buffer, memory_order_relaxed);
  while (buffer != NULL) {
    cpu_deque_buffer *older = buffer->older;
    rondo_release(&device->base.allocator, buffer, 1, buffer_bytes(buffer->capacity));
    buffer = older;
  }
}

static _Atomic uint64_t *entry_at(cpu_deque_buffer *buffer, int64_t index) {
  return &buffer->entries[(size_t)index & (buffer->capacity - 1)];
}

void cpu_deque_push(cpu_deque *deque, uint64_t entry) {
  const int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
  cpu_deque_buffer *buffer = atomic_load_explicit(&deque->buffer, memory_order_relaxed);
  atomic_store_explicit(entry_at(buffer, bottom), entry, memory_order_relaxed);
  atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_release);
}

uint64_t cpu_deque_pop(cpu_deque *deque) {
  const int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed) - 1;
  if (bottom < atomic_load_explicit(&deque->top, memory_order_relaxed)) return CPU_DEQUE_EMPTY;
  atomic_store(&deque->bottom, bottom);
  int64_t top = atomic_load(&deque->top);
  uint64_t entry = CPU_DEQUE_EMPTY;
  if (top <= bottom) {
    cpu_deque_buffer *buffer = atomic_load_explicit(&deque->buffer, memory_order_relaxed);
    entry = atomic_load_explicit(entry_at(buffer, bottom), memory_order_relaxed);
    if (top < bottom) return entry;
    if (!atomic_compare_exchange_strong(&deque->top, &top, top + 1)) entry = CPU_DEQUE_EMPTY;
  }
  atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_relaxed);
  return entry;
}

bool cpu_deque_look(cpu_deque *deque, cpu_loot *out) {
  int64_t top = atomic_load_explicit(&deque->top, memory_order_acquire);
  if (top >= atomic_load_explicit(&deque->bottom, memory_order_relaxed)) return false;
  top = atomic_load(&deque->top);
  if (top >= atomic_load(&deque->bottom)) return false;
  cpu_deque_buffer *buffer = atomic_load_explicit(&deque->buffer, memory_order_acquire);
  *out = (cpu_loot){top, atomic_load_explicit(entry_at(buffer, top), memory_order_relaxed)};
  return true;
}

bool cpu_deque_take(cpu_deque *deque, const cpu_loot *loot) {
  int64_t top = loot->top;
  return atomic_compare_exchange_strong(&deque->top, &top, top + 1);
}
