/* SPDX-License-Identifier: MIT
 * Opening and closing checking devices. A checking device is a CPU device with other functions in some slots of its
 * tables, so that plain devices know nothing of checking. Threads: as driver.h says.
 */
#include <stdio.h>

#include "base/environment.h"
#include "device/check/check.h"
#include "device/check/check_allocation.h"
#include "device/check/check_fault.h"
#include "device/check/check_findings.h"
#include "device/check/check_memory.h"
#include "device/check/check_orders.h"
#include "device/check/check_work.h"
#include "device/cpu/cpu_checking.h"
#include "device/cpu/cpu_queue.h"

static check_state *check_of(const rondo_device *device) { return ((const cpu_device *)device)->check; }

/* Queues ----------------------------------------------------------------------------------------------------------- */

static const char *name_synchronisation(char buffer[RONDO_LABEL_BYTES], const cpu_queue *queue) {
  if (queue == NULL)
    (void)snprintf(buffer, RONDO_LABEL_BYTES, "found when the device was synchronised");
  else
    (void)snprintf(buffer, RONDO_LABEL_BYTES, "found when %s was synchronised", queue->label);
  return buffer;
}

/* Adds what is found at a synchronisation, unless the work itself failed. */
static rondo_status finish_synchronisation(check_state *check, const cpu_queue *queue, rondo_status status) {
  char who[RONDO_LABEL_BYTES];
  if (status != RONDO_OK) return status;
  RONDO_TRY(rondo_first_failure_take(&check->failure));
  return check_areas_inspect(check, name_synchronisation(who, queue));
}

static rondo_status queue_synchronize(rondo_queue *queue) {
  check_state *check = check_of(queue->device);
  return finish_synchronisation(check, (cpu_queue *)queue, cpu_queue_ops.synchronize(queue));
}

/* The device ------------------------------------------------------------------------------------------------------- */

static rondo_status device_synchronize(rondo_device *device) {
  check_state *check = check_of(device);
  return finish_synchronisation(check, NULL, check->plain.synchronize(device));
}

static void device_info(const rondo_device *device, rondo_device_info *out) {
  check_of(device)->plain.info(device, out);
  out->guarded = true;
}

static void device_statistics(const rondo_device *device, rondo_device_statistics *out) {
  check_state *check = check_of(device);
  check->plain.statistics(device, out);
  out->orders = atomic_load_explicit(&check->orders_run, memory_order_relaxed);
  out->findings = atomic_load_explicit(&check->findings, memory_order_relaxed);
}

/* The plain device's close frees the device. */
static rondo_status device_close(rondo_device *device) {
  check_state *check = check_of(device);
  const rondo_status status = device_synchronize(device);
  rondo_saved_error error;
  rondo_error_save(&error);
  check_handler_leave(check);
  rondo_status (*const close)(rondo_device *) = check->plain.close;
  check_memory_deinit(check);
  const rondo_allocator allocator = check->allocator;
  const rondo_status closed = close(device);
  rondo_release(&allocator, check, 1, sizeof *check);
  return status == RONDO_OK ? closed : rondo_error_raise(&error);
}

static void fill_tables(rondo_device_tables *tables) {
  tables->device.close = device_close;
  tables->device.info = device_info;
  tables->device.statistics = device_statistics;
  tables->device.synchronize = device_synchronize;
  tables->device.reserve = check_reserve;
  tables->device.unreserve = check_unreserve;
  tables->device.map = check_map;
  tables->device.unmap = check_unmap;
  tables->device.map_file = NULL; /* its memory is shared, so that it can be mapped again */
  tables->device.has_zero_pages = false;
  tables->device.host_watch_begin = check_host_watch_begin;
  tables->device.host_watch_end = check_host_watch_end;
  tables->device.host_allocate = check_host_allocate;
  tables->device.host_release = check_host_release;
  tables->device.guard = &check_guard_ops;
  tables->queue.submit = check_submit;
  tables->queue.launch = cpu_queue_launch_checked;
  tables->queue.launch_patched = cpu_queue_launch_patched_checked;
  tables->queue.synchronize = queue_synchronize;
}

static rondo_status check_open(cpu_device *device, const rondo_device_options *options) {
  void *memory;
  RONDO_TRY(rondo_allocate(&device->base.allocator, 1, sizeof(check_state), &memory));
  check_state *check = memory;
  check->device = device;
  check->allocator = device->base.allocator;
  check->orders =
      options->check_orders != 0 ? options->check_orders : (uint32_t)rondo_option_number(RONDO_OPTION_CHECK_ORDERS);
  check->seed = options->check_seed != 0 ? options->check_seed : rondo_option_number(RONDO_OPTION_CHECK_SEED);
  check->plain = device->base.tables.device;
  check_memory_init(check);
  const rondo_status status = check_handler_enter(check);
  if (status != RONDO_OK) {
    check_memory_deinit(check);
    rondo_release(&device->base.allocator, check, 1, sizeof *check);
    return status;
  }
  fill_tables(&device->base.tables);
  device->check = check;
  return RONDO_OK;
}

const cpu_checking_ops cpu_checking = {
    .open = check_open,
    .unavailable = check_handler_unavailable,
    .node_bytes = sizeof(check_work),
    .wrap_node = check_wrap_node,
    .name_of = check_work_name,
    .explore = check_explore,
};
