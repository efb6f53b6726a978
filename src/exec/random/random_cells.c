/* SPDX-License-Identifier: MIT
 * Cells: their memory, their event, and the device's list of cells without an exec whose launches are not done. See
 * random_cells.h.
 */
#include "exec/random/random_cells.h"

#include <assert.h>

#include "exec/api_check.h"
#include "exec/random/random_internal.h"
#include "memory/device_memory.h"

/* Memory ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_random_allocate(rondo_device *device, size_t bytes, const char *name, void **out_address) {
  rondo_device_memory *memory;
  RONDO_TRY(rondo_device_memory_of(device, &memory));
  RONDO_TRY(rondo_memory_allocate(memory, NULL, NULL, bytes, name, out_address));
  rondo_device_end_use(device, &rondo_allocation_use);
  return RONDO_OK;
}

void rondo_random_free(rondo_device *device, void *address) {
  rondo_device_memory *memory = atomic_load_explicit(&device->memory.state, memory_order_acquire);
  rondo_device_begin_use(device, &rondo_allocation_use);
  rondo_status_ignore(rondo_memory_free(memory, "freeing cells", NULL, address), "memory of our own, nothing uses it");
}

/* The device's store ---------------------------------------------------------------------------------------------- */

static void free_cells(rondo_random_cells *cells) {
  rondo_device *device = cells->device;
  assert(cells->references <= 1); /* 1: no other user ever had it */
  if (cells->event != NULL) cells->event->ops->destroy(cells->event);
  if (cells->address != NULL) rondo_random_free(device, cells->address);
  rondo_release(&device->allocator, cells->written, cells->count, sizeof *cells->written);
  rondo_release(&device->allocator, cells, 1, sizeof *cells);
}

/* The device closes. */
static void free_store(void *state) {
  rondo_random_store *store = state;
  const rondo_allocator allocator = store->allocator;
  while (store->waiting != NULL) {
    rondo_random_cells *cells = store->waiting;
    store->waiting = cells->next;
    rondo_status_ignore(cells->event->ops->synchronize(cells->event), "a failure is that of the work, and told there");
    free_cells(cells);
  }
  pthread_mutex_destroy(&store->lock);
  rondo_release(&allocator, store, 1, sizeof *store);
}

static void init_store(void *state, const rondo_allocator *allocator) {
  rondo_random_store *store = state;
  store->allocator = *allocator;
  pthread_mutex_init(&store->lock, NULL);
  atomic_init(&store->first, UINTPTR_MAX);
}

rondo_status rondo_random_store_of(rondo_device *device, rondo_random_store **out) {
  static const rondo_state_kind kind = {sizeof(rondo_random_store), init_store, free_store};
  void *state;
  const rondo_status status = rondo_device_state(device, &device->random, &kind, &state);
  *out = state;
  return status;
}

static void put(rondo_random_store *store, rondo_random_cells *cells) {
  pthread_mutex_lock(&store->lock);
  cells->next = store->waiting;
  store->waiting = cells;
  pthread_mutex_unlock(&store->lock);
}

static bool is_done(const rondo_random_cells *cells) {
  return cells->queue == NULL || cells->event->ops->query(cells->event) == RONDO_OK;
}

/* Frees those whose launches are done. */
static void sweep(rondo_random_store *store) {
  pthread_mutex_lock(&store->lock);
  rondo_random_cells *cells = store->waiting;
  store->waiting = NULL;
  pthread_mutex_unlock(&store->lock);
  while (cells != NULL) {
    rondo_random_cells *next = cells->next;
    if (is_done(cells))
      free_cells(cells);
    else
      put(store, cells);
    cells = next;
  }
}

/* Life ------------------------------------------------------------------------------------------------------------ */

static rondo_status fill_cells(rondo_random_cells *cells) {
  rondo_device *device = cells->device;
  void *address;
  RONDO_TRY(rondo_allocate_items(&device->allocator, cells->count, sizeof *cells->written, &cells->written));
  RONDO_TRY(device->ops->event_create(device, false, &cells->event));
  RONDO_TRY(rondo_random_allocate(device, cells->count * RONDO_CELL_BYTES, "random cells of an exec", &address));
  cells->address = address;
  return RONDO_OK;
}

rondo_status rondo_random_cells_create(rondo_device *device, size_t count, rondo_random_cells **out) {
  rondo_random_store *store;
  rondo_random_cells *cells;
  RONDO_TRY(rondo_random_store_of(device, &store));
  sweep(store);
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *cells, &cells));
  *cells = (rondo_random_cells){.device = device, .references = 1, .count = count};
  const rondo_status status = fill_cells(cells);
  if (status != RONDO_OK) {
    free_cells(cells);
    return status;
  }
  *out = cells;
  return RONDO_OK;
}

rondo_random_cells *rondo_random_cells_retain(rondo_random_cells *cells) {
  cells->references++;
  return cells;
}

void rondo_random_cells_release(rondo_random_cells *cells) {
  rondo_random_store *store = rondo_random_store_made(cells->device);
  assert(cells->references > 0);
  if (--cells->references > 0) return;
  put(store, cells);
  sweep(store);
}

uint64_t rondo_random_cells_host_bytes(const rondo_random_cells *cells) {
  return sizeof *cells + cells->count * sizeof *cells->written;
}

/* Launches -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_random_cells_enter(rondo_random_cells *cells, rondo_queue *queue) {
  if (cells->queue == NULL || cells->queue == queue) return RONDO_OK;
  return queue->ops->wait(queue, cells->event);
}

static rondo_status write_word(const rondo_random_cells *cells, rondo_queue *queue, size_t index, uint32_t value) {
  const rondo_fill fill = {.dst = (uint32_t *)cells->address + index,
                           .value = value,
                           .element_bytes = sizeof value,
                           .width = 1,
                           .height = 1,
                           .pitch = sizeof value};
  const rondo_node_params work = {.kind = RONDO_NODE_FILL, .name = "random cells", .as.fill = fill};
  return queue->ops->submit(queue, &work);
}

rondo_status rondo_random_cells_write(rondo_random_cells *cells, rondo_queue *queue, size_t slot, uint64_t seed,
                                      uint64_t offset) {
  const uint32_t words[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)offset, (uint32_t)(offset >> 32)};
  rondo_random_words *written = &cells->written[slot];
  assert(slot < cells->count && offset % RONDO_RANDOM_STEP == 0);
  for (size_t i = 0; i < 4; i++) {
    if (written->known[i] && written->words[i] == words[i]) continue;
    written->known[i] = false;
    RONDO_TRY(write_word(cells, queue, 4 * slot + i, words[i]));
    written->words[i] = words[i];
    written->known[i] = true;
  }
  return RONDO_OK;
}

rondo_status rondo_random_cells_leave(rondo_random_cells *cells, rondo_queue *queue, rondo_status status) {
  rondo_saved_error first;
  cells->queue = queue;
  if (__builtin_expect(status == RONDO_OK, 1)) {
    if (__builtin_expect(queue->ops->record(queue, cells->event) == RONDO_OK, 1)) return RONDO_OK;
  } else {
    rondo_error_save(&first);
    if (queue->ops->record(queue, cells->event) == RONDO_OK) return rondo_error_raise(&first);
  }
  const rondo_status waited = queue->ops->await(queue); /* what cannot be marked is waited for */
  cells->queue = NULL;
  return status == RONDO_OK ? waited : rondo_error_raise(&first);
}
