/* SPDX-License-Identifier: MIT
 * Work-stealing deques: D. Chase and Y. Lev, Dynamic circular work-stealing deque, SPAA 2005; memory orders after N. M.
 * Lê, A. Pop, A. Cohen, F. Zappa Nardelli, Correct and efficient work-stealing for weak memory models, PPoPP 2013, with
 * their fences folded into sequentially consistent accesses (ThreadSanitizer knows no fences).
 * The owner takes up a large enough buffer before a run (cpu_deque_grow), so a push never fails.
 */
#include <assert.h>

#include "device/cpu/cpu.h"
#include "device/cpu/cpu_deque.h"

static size_t buffer_bytes(size_t capacity) { return sizeof(cpu_deque_buffer) + capacity * sizeof(_Atomic uint64_t); }

rondo_status cpu_deque_prepare(cpu_device *device, cpu_deque *deque, size_t capacity) {
  cpu_deque_buffer *largest = atomic_load_explicit(&deque->largest, memory_order_acquire);
  if (largest != NULL && largest->capacity >= capacity) return RONDO_OK;
  void *memory;
  RONDO_TRY(rondo_allocate(&device->base.allocator, 1, buffer_bytes(capacity), &memory));
  cpu_deque_buffer *buffer = memory;
  buffer->capacity = capacity;
  buffer->next = atomic_load_explicit(&deque->all, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(&deque->all, &buffer->next, buffer)) {
  }
  while ((largest == NULL || largest->capacity < capacity) &&
         !atomic_compare_exchange_weak(&deque->largest, &largest, buffer)) {
  }
  return RONDO_OK;
}

void cpu_deque_grow(cpu_deque *deque, size_t capacity) {
  cpu_deque_buffer *buffer = atomic_load_explicit(&deque->buffer, memory_order_relaxed);
  if (buffer != NULL && buffer->capacity >= capacity) return;
  buffer = atomic_load_explicit(&deque->largest, memory_order_acquire);
  assert(buffer != NULL && buffer->capacity >= capacity);
  atomic_store_explicit(&deque->buffer, buffer, memory_order_release);
  cpu_deque_check(deque);
}

void cpu_deque_check(const cpu_deque *deque) {
#ifdef NDEBUG
  (void)deque;
#else
  const cpu_deque_buffer *used = atomic_load(&deque->buffer), *largest = atomic_load(&deque->largest);
  const int64_t bottom = atomic_load(&deque->bottom), top = atomic_load(&deque->top);
  assert(top >= 0 && top <= bottom + 1);
  assert(used != NULL || top == bottom);
  assert(used == NULL || bottom - top <= (int64_t)used->capacity);
  bool has_used = used == NULL, has_largest = largest == NULL;
  for (const cpu_deque_buffer *buffer = atomic_load(&deque->all); buffer != NULL; buffer = buffer->next) {
    assert(buffer->capacity > 0 && (buffer->capacity & (buffer->capacity - 1)) == 0);
    has_used |= buffer == used;
    has_largest |= buffer == largest;
  }
  assert(has_used && has_largest);
#endif
}

void cpu_deque_free(cpu_device *device, cpu_deque *deque) {
  cpu_deque_buffer *buffer = atomic_load_explicit(&deque->all, memory_order_relaxed);
  while (buffer != NULL) {
    cpu_deque_buffer *next = buffer->next;
    rondo_release(&device->base.allocator, buffer, 1, buffer_bytes(buffer->capacity));
    buffer = next;
  }
}

static _Atomic uint64_t *entry_at(cpu_deque_buffer *buffer, int64_t index) {
  return &buffer->entries[(size_t)index & (buffer->capacity - 1)];
}

void cpu_deque_push(cpu_deque *deque, uint64_t entry, bool loudly) {
  const int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
  cpu_deque_buffer *buffer = atomic_load_explicit(&deque->buffer, memory_order_relaxed);
  assert(entry != CPU_DEQUE_EMPTY);
  assert(bottom - atomic_load_explicit(&deque->top, memory_order_relaxed) < (int64_t)buffer->capacity);
  atomic_store_explicit(entry_at(buffer, bottom), entry, memory_order_relaxed);
  if (loudly)
    atomic_store(&deque->bottom, bottom + 1);
  else
    atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_release);
}

bool cpu_deque_is_empty(cpu_deque *deque) {
  const int64_t top = atomic_load(&deque->top);
  return top >= atomic_load(&deque->bottom);
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

bool cpu_deque_peek(cpu_deque *deque, cpu_steal *out) {
  int64_t top = atomic_load_explicit(&deque->top, memory_order_acquire);
  if (top >= atomic_load_explicit(&deque->bottom, memory_order_relaxed)) return false;
  top = atomic_load(&deque->top);
  if (top >= atomic_load(&deque->bottom)) return false;
  cpu_deque_buffer *buffer = atomic_load_explicit(&deque->buffer, memory_order_acquire);
  *out = (cpu_steal){top, atomic_load_explicit(entry_at(buffer, top), memory_order_relaxed)};
  return true;
}

bool cpu_deque_take(cpu_deque *deque, const cpu_steal *steal) {
  int64_t top = steal->top;
  return atomic_compare_exchange_strong(&deque->top, &top, top + 1);
}
