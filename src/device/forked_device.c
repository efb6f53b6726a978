/* SPDX-License-Identifier: MIT
 * Devices in a forked child. The child has neither the threads nor the memory of such a device, so the device's tables
 * get the functions below instead of the driver's. They do not use the driver's state. Calls that work, wait or
 * allocate are refused. Calls that free do nothing: the child's copy of the memory lasts until it ends. Calls that only
 * describe the device stay. Threads: a new child has one thread, which fills the tables.
 */
#include <unistd.h>

#include "base/error.h"
#include "device/device.h"

/* The functions have the signatures of the tables and use few of their parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static rondo_status refuse(const rondo_device *device) {
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_OTHER_PROCESS,
                    "device '%s' was opened by process %d, before it forked this one (%d): open a device of this "
                    "process's own, or fork before the device is opened",
                    device->name, device->process, (int)getpid());
}

rondo_status rondo_device_refuse_inherited(const char *call, const rondo_device *device) {
  return rondo_fail_context(refuse(device), "%s", call);
}

/* Functions of the tables, one in each row: its name, what names the device, its parameters. `out` becomes NULL. */
/* clang-format off */
#define REFUSE(name, device, ...)           static rondo_status name(__VA_ARGS__) { return refuse(device); }
#define REFUSE_TO_MAKE(name, device, ...)   static rondo_status name(__VA_ARGS__) { *out = NULL; return refuse(device); }
#define DO_NOTHING(name, ...)               static void name(__VA_ARGS__) {}

/* Devices */
REFUSE(no_kernel, device, rondo_device *device, rondo_kernel *kernel)
REFUSE(no_config, device, const rondo_device *device, const rondo_kernel_node *node)
REFUSE(no_admission, device, rondo_device *device, uint64_t peers)
REFUSE(no_waiting_for_device, device, rondo_device *device)
REFUSE_TO_MAKE(no_queue, device, rondo_device *device, const char *label, const rondo_queue_options *options,
               rondo_queue **out)
REFUSE_TO_MAKE(no_event, device, rondo_device *device, bool timing, rondo_device_event **out)
REFUSE_TO_MAKE(no_executable, device, rondo_device *device, const rondo_lowered_graph *graph, rondo_executable **out)
DO_NOTHING(no_statistics, const rondo_device *device, rondo_device_statistics *out)

/* Memory */
REFUSE(no_mapping, device, rondo_device *device, void *address, rondo_physical *physical)
REFUSE(no_protection, device, rondo_device *device, void *address, size_t bytes, rondo_protection protection)
REFUSE_TO_MAKE(no_reservation, device, rondo_device *device, size_t bytes, size_t alignment, void **out)
REFUSE_TO_MAKE(no_physical, device, rondo_device *device, size_t bytes, rondo_physical_use use, rondo_physical **out)
REFUSE_TO_MAKE(no_host_memory, device, rondo_device *device, size_t bytes, void **out)
DO_NOTHING(leave_physical, rondo_physical *physical)
DO_NOTHING(leave_memory, rondo_device *device, void *address, size_t bytes)

/* Lifetimes */
REFUSE(no_hold, device, rondo_device *device, void *address, size_t bytes, const char *name)
REFUSE(leave_host, device, rondo_device *device, void *watch, const char *who)
REFUSE_TO_MAKE(no_allocation, device, rondo_device *device, rondo_queue *queue, size_t bytes, const char *name, void **out)
DO_NOTHING(leave_allocation, rondo_device *device, rondo_queue *queue, void *address)
DO_NOTHING(leave_read_only, rondo_device *device, rondo_queue *queue, void *address, bool read_only)

/* Queues */
REFUSE(no_work, queue->device, rondo_queue *queue, const rondo_node_params *work)
REFUSE(no_event_on, queue->device, rondo_queue *queue, rondo_device_event *event)
REFUSE(no_launch, queue->device, rondo_queue *queue, rondo_executable *executable)
REFUSE(no_patched_launch, queue->device, rondo_queue *queue, rondo_executable *executable,
       const rondo_patch_change *changes, size_t count)
REFUSE(no_waiting, queue->device, rondo_queue *queue)

/* Events and executables */
REFUSE(no_waiting_for_event, event->device, rondo_device_event *event)
DO_NOTHING(leave_event, rondo_device_event *event)
REFUSE(no_change, executable->device, rondo_executable *executable, size_t index, const rondo_lowered_node *node)
REFUSE(no_switch, executable->device, rondo_executable *executable, size_t index, bool enabled)
REFUSE(no_waiting_for_executable, executable->device, rondo_executable *executable)
REFUSE(no_event_of_executable, executable->device, rondo_executable *executable, rondo_device_event *event)
REFUSE(no_timing, executable->device, rondo_executable *executable, bool on)
DO_NOTHING(leave_executable, rondo_executable *executable)
/* clang-format on */

static rondo_status no_library(rondo_device *device, rondo_library_use use, rondo_library_call call, void *user) {
  return use == RONDO_LIBRARY_FREE ? RONDO_OK : refuse(device);
}

static rondo_status leave_range(rondo_device *device, void *address, size_t bytes) { return RONDO_OK; }

static void *no_watch(rondo_device *device, void *address, size_t bytes) { return NULL; }

static void *leave_watch(rondo_device *device, void *watch, size_t bytes, size_t used, size_t *out_bytes) {
  *out_bytes = 0;
  return NULL;
}

static bool knows_nothing(rondo_device *device, const void *address, bool *out_is_device) {
  *out_is_device = false;
  return false;
}

static bool has_nothing(rondo_device *device, const void *address) { return false; }

static void *no_host_begin(rondo_device *device) { return NULL; }

static rondo_status leave_queue(rondo_queue *queue) { return RONDO_OK; }

static rondo_status no_time(const rondo_device_event *begin, const rondo_device_event *end, int64_t *out_ns) {
  *out_ns = 0;
  return refuse(begin->device);
}

static rondo_status no_changes(rondo_executable *executable, const rondo_node_change *changes, size_t count,
                               size_t *out_done) {
  *out_done = 0;
  return refuse(executable->device);
}

/* The tables ------------------------------------------------------------------------------------------------------- */

static const rondo_guard_ops guard_ops = {.host_begin = no_host_begin,
                                          .host_end = leave_host,
                                          .allocate = no_allocation,
                                          .release = leave_allocation,
                                          .hold = no_hold,
                                          .forget = leave_memory,
                                          .set_read_only = leave_read_only};

/* Slots that are NULL stay NULL, because they say what the device is. */
static void inherit_device(rondo_device_ops *ops) {
  ops->statistics = no_statistics;
  if (ops->kernel_prepare != NULL) ops->kernel_prepare = no_kernel;
  ops->config_check = no_config;
  if (ops->admit != NULL) ops->admit = no_admission;
  if (ops->call_library != NULL) ops->call_library = no_library;
  ops->queue_create = no_queue;
  ops->event_create = no_event;
  ops->executable_create = no_executable;
  ops->capture = NULL;
  ops->semaphore = NULL;
  ops->import_semaphore = NULL;
  if (ops->guard != NULL) ops->guard = &guard_ops;
}

static void inherit_memory(rondo_device_ops *ops) {
  ops->reserve = no_reservation;
  ops->unreserve = leave_range;
  ops->physical_create = no_physical;
  ops->physical_destroy = leave_physical;
  ops->map = no_mapping;
  ops->unmap = leave_range;
  ops->protect = no_protection;
  if (ops->host_watch_begin != NULL) ops->host_watch_begin = no_watch;
  if (ops->host_watch_end != NULL) ops->host_watch_end = leave_watch;
  ops->host_allocate = no_host_memory;
  ops->host_release = leave_memory;
  if (ops->knows_address != NULL) ops->knows_address = knows_nothing;
  if (ops->has_address != NULL) ops->has_address = has_nothing;
}

static void inherit_queues(rondo_queue_ops *ops) {
  ops->destroy = leave_queue;
  ops->submit = no_work;
  ops->record = no_event_on;
  ops->wait = no_event_on;
  ops->launch = no_launch;
  ops->launch_patched = no_patched_launch;
  ops->upload = no_launch;
  ops->synchronize = no_waiting;
  ops->await = no_waiting;
  ops->query = no_waiting;
}

static void inherit_executables(rondo_executable_ops *ops) {
  ops->destroy = leave_executable;
  ops->set_params = no_change;
  if (ops->set_many != NULL) ops->set_many = no_changes;
  ops->set_enabled = no_switch;
  ops->synchronize = no_waiting_for_executable;
  ops->record = no_event_of_executable;
  ops->set_timing = no_timing;
}

void rondo_device_inherit(rondo_device *device) {
  device->is_inherited = true;
  inherit_device(&device->tables.device);
  device->tables.device.synchronize = no_waiting_for_device;
  inherit_memory(&device->tables.device);
  inherit_queues(&device->tables.queue);
  device->tables.event = (rondo_event_ops){
      .destroy = leave_event, .query = no_waiting_for_event, .synchronize = no_waiting_for_event, .elapsed = no_time};
  inherit_executables(&device->tables.executable);
}
