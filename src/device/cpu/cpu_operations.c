/* SPDX-License-Identifier: MIT
 * See cpu_operations.h.
 */
#include "device/cpu/cpu_operations.h"

#include <assert.h>
#include <string.h>

#include "base/thread.h"
#include "device/cpu/cpu_timeline.h"

/* The watcher looks again at once, then after short naps, and after long ones where nothing happens for long. */
enum { TURNS_AWAKE = 64, TURNS_OF_SHORT_NAPS = 1000, SHORT_NAP_NS = 50 * 1000, LONG_NAP_NS = 500 * 1000 };

typedef struct batch {
  struct batch *next; /* that the watcher has */
  cpu_device *device;
  cpu_semaphore *semaphore;
  uint64_t value; /* of the wait that is going on, or was */
  bool once;
  size_t count, done;
  rondo_memory_operation operations[];
} batch;

struct cpu_watcher {
  rondo_thread thread;
  _Atomic(batch *) added;  /* a stack */
  _Atomic uint32_t signal; /* futex: changes when something is added */
  atomic_bool stop;
};

/* Running ---------------------------------------------------------------------------------------------------------- */

static uint64_t load(const rondo_memory_operation *operation) {
  if (rondo_operation_bytes(operation) == sizeof(uint64_t))
    return atomic_load_explicit((const _Atomic uint64_t *)operation->address, memory_order_acquire);
  return atomic_load_explicit((const _Atomic uint32_t *)operation->address, memory_order_acquire);
}

static void store(const rondo_memory_operation *operation) {
  if (rondo_operation_bytes(operation) == sizeof(uint64_t))
    atomic_store_explicit((_Atomic uint64_t *)operation->address, operation->value, memory_order_release);
  else
    atomic_store_explicit((_Atomic uint32_t *)operation->address, (uint32_t)operation->value, memory_order_release);
}

static bool is_fulfilled(const rondo_memory_operation *operation) {
  const bool is_long = rondo_operation_bytes(operation) == sizeof(uint64_t);
  const uint64_t word = load(operation), value = operation->value;
  switch (operation->condition) {
    case RONDO_WAIT_EQUAL:
      return word == value;
    case RONDO_WAIT_AND:
      return (word & value) != 0;
    case RONDO_WAIT_NOR:
      return is_long ? ~(word | value) != 0 : (uint32_t) ~(word | value) != 0;
    case RONDO_WAIT_GREATER_OR_EQUAL:
      break;
  }
  return is_long ? (int64_t)(word - value) >= 0 : (int32_t)(word - value) >= 0;
}

/* False at a condition that is not fulfilled. */
static bool run_operations(batch *self) {
  for (; self->done < self->count; self->done++) {
    const rondo_memory_operation *operation = &self->operations[self->done];
    if (rondo_operation_waits(operation) && !is_fulfilled(operation)) return false;
    if (!rondo_operation_waits(operation) && operation->kind != RONDO_OPERATION_FLUSH) store(operation);
  }
  return true;
}

/* A checking device finds words that are not allocated any more: then the wait ends with a failure. */
static bool run_watched(batch *self) {
  rondo_device *device = &self->device->base;
  const rondo_guard_ops *guard = device->ops->guard;
  void *watch = guard == NULL ? NULL : guard->host_begin(device);
  bool is_over = run_operations(self);
  if (watch == NULL || guard->host_end(device, watch, "a memory operation") == RONDO_OK) return is_over;
  rondo_error_save(&self->semaphore->failure);
  atomic_store(&self->semaphore->failed, true);
  return true;
}

/* Whoever waited may release the timeline before raising it has ended. */
static void end_wait(cpu_timeline *timeline, uint64_t value) {
  cpu_timeline_retain(timeline);
  cpu_timeline_raise(timeline, value);
  cpu_timeline_release(timeline);
}

/* True if the wait is over. Then the batch may be gone. */
static bool run(batch *self) {
  rondo_saved_error before;
  rondo_error_save(&before);
  const bool is_over = run_watched(self);
  rondo_error_restore(&before);
  if (is_over) end_wait(&self->semaphore->timeline, self->value);
  return is_over;
}

/* Watching --------------------------------------------------------------------------------------------------------- */

/* Runs what it has. Returns what still waits. */
static batch *run_list(batch *list, bool *out_progress) {
  batch *left = NULL;
  while (list != NULL) {
    batch *next = list->next;
    if (run(list)) {
      *out_progress = true;
    } else {
      list->next = left;
      left = list;
    }
    list = next;
  }
  return left;
}

static batch *take_added(struct cpu_watcher *watcher, batch *list) {
  batch *added = atomic_exchange(&watcher->added, NULL);
  while (added != NULL) {
    batch *next = added->next;
    added->next = list;
    list = added;
    added = next;
  }
  return list;
}

static void *watch(void *user) {
  struct cpu_watcher *watcher = user;
  batch *list = NULL;
  for (uint32_t turns = 0;; turns++) {
    const uint32_t signal = atomic_load(&watcher->signal);
    bool progress = false;
    list = run_list(take_added(watcher, list), &progress);
    if (progress || list == NULL) turns = 0;
    if (atomic_load(&watcher->stop)) return NULL;
    if (list == NULL)
      rondo_futex_wait(&watcher->signal, signal);
    else if (turns < TURNS_AWAKE)
      rondo_yield();
    else
      rondo_futex_wait_for(&watcher->signal, signal, turns < TURNS_OF_SHORT_NAPS ? SHORT_NAP_NS : LONG_NAP_NS);
  }
}

static void wake(struct cpu_watcher *watcher) {
  atomic_fetch_add(&watcher->signal, 1);
  rondo_futex_wake(&watcher->signal, 1);
}

static void add(struct cpu_watcher *watcher, batch *self) {
  self->next = atomic_load_explicit(&watcher->added, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(&watcher->added, &self->next, self)) {
  }
  wake(watcher);
}

static void stop(cpu_device *device, struct cpu_watcher *watcher) {
  atomic_store(&watcher->stop, true);
  wake(watcher);
  rondo_thread_join(watcher->thread);
  assert(atomic_load(&watcher->added) == NULL);
  rondo_release(&device->base.allocator, watcher, 1, sizeof *watcher);
}

/* Two threads may start one each. The second one stops. */
static rondo_status start(cpu_device *device) {
  struct cpu_watcher *watcher, *expected = NULL;
  if (atomic_load(&device->watcher) != NULL) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&device->base.allocator, 1, sizeof *watcher, &watcher));
  const rondo_status status = rondo_thread_start(&watcher->thread, "rondo watcher", watch, watcher);
  if (status != RONDO_OK) {
    rondo_release(&device->base.allocator, watcher, 1, sizeof *watcher);
    return status;
  }
  if (!atomic_compare_exchange_strong(&device->watcher, &expected, watcher)) stop(device, watcher);
  return RONDO_OK;
}

void cpu_operations_stop(cpu_device *device) {
  struct cpu_watcher *watcher = atomic_exchange(&device->watcher, NULL);
  if (watcher != NULL) stop(device, watcher);
}

/* Waits ------------------------------------------------------------------------------------------------------------ */

/* A queue that was set aside begins its wait again when it is resumed. */
static void begin_wait(void *user) {
  batch *self = user;
  if (self->once && self->value > 0) return;
  self->done = 0;
  self->value++;
  atomic_store(&self->semaphore->failed, false);
  atomic_store(&self->semaphore->asked, self->value);
  if (run(self)) return;
  add(atomic_load(&self->device->watcher), self);
}

static void end(void *user) {
  batch *self = user;
  rondo_release(&self->device->base.allocator, self, 1, sizeof *self + self->count * sizeof(rondo_memory_operation));
}

rondo_status cpu_operations_make(cpu_device *device, const rondo_memory_operations_node *node, bool once,
                                 rondo_device_event **out) {
  const size_t bytes = node->count * sizeof *node->operations;
  void *memory;
  *out = NULL;
  RONDO_TRY(start(device));
  RONDO_TRY(rondo_allocate(&device->base.allocator, 1, sizeof(batch) + bytes, &memory));
  batch *self = memory;
  *self = (batch){.device = device, .once = once, .count = node->count};
  memcpy(self->operations, node->operations, bytes);
  const rondo_status status = cpu_semaphore_ops.create(&device->base, end, NULL, self, out);
  if (status != RONDO_OK) {
    end(self);
    return status;
  }
  self->semaphore = (cpu_semaphore *)((cpu_event *)*out)->point.timeline;
  self->semaphore->begin = begin_wait;
  return RONDO_OK;
}
