/* SPDX-License-Identifier: MIT
 * Making and destroying exchanges.
 */
#include "exec/collective/exchange.h"

static rondo_exchange *exchange_of(rondo_link *link) { return (rondo_exchange *)link; }

/* Life ------------------------------------------------------------------------------------------------------------ */

/* Runs after the last executable ended: no device work can use the exchange any more. */
static void end(void *user) {
  rondo_exchange *exchange = user;
  if (exchange->has_monitor) {
    atomic_store(&exchange->stop, true);
    rondo_group_ring(exchange->group, exchange->group->rank);
    rondo_thread_join(exchange->monitor);
  }
  rondo_group_leave(exchange->group);
  const rondo_allocator allocator = exchange->allocator;
  rondo_release_text(&allocator, exchange->name);
  rondo_release(&allocator, exchange, 1, sizeof *exchange);
}

/* The last reference is gone. */
static void end_event(rondo_event *event) { event->driver->ops->destroy(event->driver); }

/* Releases the user's references. */
static void release(rondo_exchange *exchange) {
  for (int i = 0; i < RONDO_EXCHANGE_KERNELS; i++) rondo_kernel_release(exchange->kernels[i]);
  rondo_event_release(&exchange->event);
}

static rondo_status start(rondo_exchange *exchange) {
  for (unsigned i = 0; i < RONDO_EXCHANGE_KERNELS; i++)
    RONDO_TRY(rondo_exchange_make_kernel(exchange, i, &exchange->kernels[i]));
  RONDO_TRY(rondo_thread_start(&exchange->monitor, "rondo-ranks", rondo_exchange_watch, exchange));
  exchange->has_monitor = true;
  return RONDO_OK;
}

/* Owns the group when it succeeds. */
static rondo_status create(const rondo_communicator_plan *plan, rondo_group *group, rondo_link **out) {
  rondo_device *device = plan->device;
  rondo_exchange *exchange;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *exchange, &exchange));
  *exchange = (rondo_exchange){.link = {&rondo_exchange_transport},
                               .allocator = device->allocator,
                               .device = device,
                               .timeout_ns = plan->timeout_ns};
  exchange->event = (rondo_event){.counted = {.retain = rondo_event_retain, .release = rondo_event_release},
                                  .device = device,
                                  .recorded = true,
                                  .ended = end_event};
  atomic_init(&exchange->event.references, 1);
  rondo_status status = rondo_allocate_text(&device->allocator, plan->name, &exchange->name);
  if (status == RONDO_OK) status = device->ops->semaphore->create(device, end, exchange, &exchange->event.driver);
  if (status != RONDO_OK) {
    rondo_release_text(&device->allocator, exchange->name);
    rondo_release(&device->allocator, exchange, 1, sizeof *exchange);
    return status;
  }
  exchange->group = group;
  status = start(exchange);
  if (status == RONDO_OK) {
    *out = &exchange->link;
    return RONDO_OK;
  }
  exchange->group = NULL;
  release(exchange);
  return status;
}

static rondo_status exchange_open(const rondo_communicator_plan *plans, rondo_group **groups, uint32_t count,
                                  rondo_link **out) {
  for (uint32_t i = 0; i < count; i++) {
    const rondo_status status = create(&plans[i], groups[i], &out[i]);
    if (status == RONDO_OK) continue;
    for (uint32_t k = 0; k < i; k++) {
      release(exchange_of(out[k]));
      groups[k] = NULL;
    }
    return status;
  }
  return RONDO_OK;
}

static rondo_status exchange_close(rondo_link *link) {
  rondo_exchange *exchange = exchange_of(link);
  for (;;) {
    const uint32_t signal = atomic_load(&exchange->done_signal);
    if (atomic_load(&exchange->done) == atomic_load(&exchange->queued)) break;
    rondo_futex_wait(&exchange->done_signal, signal);
  }
  release(exchange);
  return RONDO_OK;
}

static rondo_status exchange_break_off(rondo_link *link) {
  rondo_exchange_fail(exchange_of(link), RONDO_REASON_ABORTED, "rondo_communicator_abort was called");
  return RONDO_OK;
}

static void exchange_info(const rondo_link *link, rondo_communicator_info *out) {
  const rondo_exchange *exchange = (const rondo_exchange *)link;
  out->failed = rondo_exchange_has_failed(exchange);
  out->pieces = atomic_load(&exchange->settled);
  out->shared_bytes = 2 * atomic_load(&exchange->group->reserved_bytes);
}

const rondo_transport rondo_exchange_transport = {
    .kind = 1,
    .has_slots = true,
    .open = exchange_open,
    .check = rondo_exchange_check,
    .run = rondo_exchange_run,
    .break_off = exchange_break_off,
    .info = exchange_info,
    .close = exchange_close,
};
