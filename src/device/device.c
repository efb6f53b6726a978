/* SPDX-License-Identifier: MIT
 * The public calls of devices: they check arguments and states, then call the driver. The allocator of a device is
 * wrapped to count its calls, and the wrapper is freed after the driver's struct. Threads: any. The layers above change
 * the counts of live objects, which are atomics.
 */
#include "device/device.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/counting_allocator.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/linked_list.h"
#include "base/log.h"
#include "base/trace.h"
#include "base/versioned_struct.h"
#include "device/retired_objects.h"
#include "graph/launch_config.h"
#include "graph/user_object.h"

/* RONDO_TRACE: the file begins with the first device and ends with the last one, so it is complete. One lock is held
 * while devices are counted and the file begins or ends. The log is written without it. */
static pthread_mutex_t trace_file_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned open_devices;
static bool trace_file_is_ours;

static rondo_status begin_trace_file(void) {
  const char *path = rondo_option_text(RONDO_OPTION_TRACE);
  if (path[0] == '\0' || rondo_trace_on()) return RONDO_OK;
  const rondo_status status = rondo_trace_open_json(path);
  trace_file_is_ours = status == RONDO_OK;
  return status;
}

static rondo_status end_trace_file(void) {
  if (!trace_file_is_ours) return RONDO_OK;
  trace_file_is_ours = false;
  return rondo_trace_close_json();
}

/* The call that opens or closes the device succeeds nevertheless, so the thread's last error is as before. */
static void log_trace_failure(rondo_status status, const rondo_saved_error *before) {
  if (status == RONDO_OK) return;
  rondo_log(RONDO_LOG_ERROR, "device", "RONDO_TRACE: %s", rondo_last_error()->message);
  rondo_error_restore(before);
}

static void count_opened(void) {
  rondo_saved_error before;
  rondo_error_save(&before);
  pthread_mutex_lock(&trace_file_lock);
  const rondo_status status = open_devices++ == 0 ? begin_trace_file() : RONDO_OK;
  pthread_mutex_unlock(&trace_file_lock);
  log_trace_failure(status, &before);
}

static void count_closed(void) {
  rondo_saved_error before;
  rondo_error_save(&before);
  pthread_mutex_lock(&trace_file_lock);
  const rondo_status status = --open_devices == 0 ? end_trace_file() : RONDO_OK;
  pthread_mutex_unlock(&trace_file_lock);
  log_trace_failure(status, &before);
}

/* Processes -------------------------------------------------------------------------------------------------------- */

/* The devices that this process and its parents opened. The list is complete when the process forks. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static rondo_device *open_list;

_Atomic(void (*)(void)) rondo_device_forget_parent;

static void before_fork(void) { pthread_mutex_lock(&list_lock); }
static void after_fork(void) { pthread_mutex_unlock(&list_lock); }
static void after_fork_in_child(void) {
  for (rondo_device *device = open_list; device != NULL; device = device->next_open) rondo_device_inherit(device);
  void (*forget)(void) = atomic_load(&rondo_device_forget_parent);
  if (forget != NULL) forget();
  pthread_mutex_unlock(&list_lock);
}

/* The C library removes the handlers when it unloads this library. */
static int handlers_error;
static void set_handlers(void) { handlers_error = pthread_atfork(before_fork, after_fork, after_fork_in_child); }

static rondo_status watch_forks(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const int failed = pthread_once(&once, set_handlers);
  if (failed == 0 && handlers_error == 0) return RONDO_OK;
  return rondo_fail_errno(RONDO_OUT_OF_MEMORY, failed != 0 ? failed : handlers_error,
                          "rondo_device_open: watching for forks of the process failed");
}

static void enter_list(rondo_device *device) {
  device->process = (int)getpid();
  pthread_mutex_lock(&list_lock);
  RONDO_LIST_INSERT(open_list, device, next_open, open_link);
  pthread_mutex_unlock(&list_lock);
}

static rondo_status refuse_while_in_use(rondo_device *device);

/* What finds a device in the list may begin to use it. */
static rondo_status leave_list(rondo_device *device) {
  pthread_mutex_lock(&list_lock);
  const rondo_status status = refuse_while_in_use(device);
  if (status == RONDO_OK) RONDO_LIST_REMOVE(device, next_open, open_link);
  pthread_mutex_unlock(&list_lock);
  return status;
}

bool rondo_device_find(bool (*visit)(rondo_device *device, void *user), void *user) {
  bool is_found = false;
  pthread_mutex_lock(&list_lock);
  for (rondo_device *device = open_list; device != NULL && !is_found; device = device->next_open)
    is_found = visit(device, user);
  pthread_mutex_unlock(&list_lock);
  return is_found;
}

/* Asserts that the driver has set everything that each device has. Slots that may be NULL are not checked. */
static void check_device(const rondo_device *device) {
  const rondo_device_ops *ops = &device->tables.device;
  const rondo_queue_ops *queue = &device->tables.queue;
  const rondo_executable_ops *executable = &device->tables.executable;
  assert(device->ops == ops && device->name[0] != '\0' && device->allocator.allocate != NULL);
  assert(ops->close != NULL && ops->info != NULL && ops->statistics != NULL && ops->synchronize != NULL);
  assert(ops->queue_create != NULL && ops->event_create != NULL && ops->executable_create != NULL);
  assert(ops->reserve != NULL && ops->unreserve != NULL && ops->map != NULL && ops->unmap != NULL);
  assert(ops->host_watch_begin == NULL || ops->host_watch_end != NULL);
  assert(queue->destroy != NULL && queue->submit != NULL && queue->launch != NULL && queue->synchronize != NULL);
  assert(device->tables.event.destroy != NULL && device->tables.event.query != NULL);
  assert(executable->destroy != NULL && executable->set_params != NULL && executable->set_timing != NULL);
  assert(executable->record != NULL);
  (void)ops, (void)queue, (void)executable;
}

rondo_status rondo_device_open(const char *name, const rondo_device_options *options, rondo_device **out_device) {
  rondo_device_options known;
  rondo_allocator allocator;
  RONDO_TRY(rondo_require("rondo_device_open", "out_device", out_device));
  *out_device = NULL;
  RONDO_TRY(rondo_require("rondo_device_open", "name", name));
  RONDO_TRY(rondo_refuse_in_callback("rondo_device_open"));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_device_options", options, &known));
  RONDO_TRY(watch_forks());
  RONDO_TRY(rondo_counting_allocator_make(known.allocator, &allocator));
  count_opened();
  rondo_device *device;
  const rondo_status status = rondo_registry_open(name, &known, &allocator, &device);
  if (status != RONDO_OK) {
    rondo_counting_allocator_free(&allocator);
    count_closed();
    return status;
  }
  check_device(device);
  device->synchronous = known.synchronous || rondo_option_flag(RONDO_OPTION_SYNC);
  enter_list(device);
  *out_device = device;
  return RONDO_OK;
}

/* Uses ------------------------------------------------------------------------------------------------------------- */

static const rondo_device_use kernel_use = {.rank = 5, .name = "kernel"};

void rondo_device_begin_use(rondo_device *device, const rondo_device_use *use) {
  assert(use->rank < RONDO_DEVICE_USES);
  const char *const known = atomic_load_explicit(&device->uses.names[use->rank], memory_order_relaxed);
  assert(known == NULL || strcmp(known, use->name) == 0);
  if (known == NULL) atomic_store_explicit(&device->uses.names[use->rank], use->name, memory_order_release);
  atomic_fetch_add_explicit(&device->uses.counts[use->rank], 1, memory_order_release);
}

void rondo_device_end_use(rondo_device *device, const rondo_device_use *use) {
  const unsigned before = atomic_fetch_sub_explicit(&device->uses.counts[use->rank], 1, memory_order_release);
  assert(before > 0);
  (void)before;
}

const rondo_device_use rondo_wait_use = {.rank = 15, .name = "cross-device wait"};
const rondo_device_use rondo_brief_use = {.rank = 16, .name = "thread of another device"};

static bool has_device(const rondo_device_list *list, const rondo_device *device) {
  size_t i = 0;
  while (i < list->count && list->items[i] != device) i++;
  return i < list->count;
}

static const rondo_device_use shared_use = {.rank = 14, .name = "multi-device exec"};

rondo_status rondo_devices_begin_use(rondo_device *own, const rondo_lowered_graph *graph, rondo_device_list *out) {
  for (size_t i = 0; i < graph->node_count; i++) {
    rondo_device *device = graph->nodes[i].device;
    if (device == own || device == NULL) continue;
    RONDO_TRY(rondo_array_reserve(&own->allocator, out, out->count + 1));
    rondo_devices_use(out, device);
  }
  return RONDO_OK;
}

void rondo_devices_use(rondo_device_list *list, rondo_device *device) {
  if (has_device(list, device)) return;
  assert(list->count < list->capacity);
  list->items[list->count++] = device;
  rondo_device_begin_use(device, &shared_use);
}

void rondo_devices_end_use(rondo_device *own, rondo_device_list *list) {
  for (size_t i = 0; i < list->count; i++) rondo_device_end_use(list->items[i], &shared_use);
  rondo_array_free(&own->allocator, list);
}

/* "2 streams, 1 graph": the live objects; "" if there are none. */
static const char *list_users(rondo_device *device, char *text, size_t bytes) {
  size_t length = 0;
  text[0] = '\0';
  for (size_t i = 0; i < RONDO_DEVICE_USES; i++) {
    const unsigned count = atomic_load_explicit(&device->uses.counts[i], memory_order_acquire);
    if (count == 0 || length >= bytes) continue;
    length +=
        (size_t)snprintf(text + length, bytes - length, "%s%u %s%s", length > 0 ? ", " : "", count,
                         atomic_load_explicit(&device->uses.names[i], memory_order_acquire), count == 1 ? "" : "s");
  }
  return text;
}

static rondo_status refuse_while_in_use(rondo_device *device) {
  char users[384];
  if (list_users(device, users, sizeof users)[0] == '\0') return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                    "rondo_device_close: device '%s' is still in use by %s: destroy and free them first", device->name,
                    users);
}

static void release_slot(rondo_device_slot *slot) {
  void *state = atomic_load(&slot->state);
  if (state != NULL) slot->release(state);
  atomic_store(&slot->state, NULL);
}

/* Launches on other devices may still use a device that is closing. */
enum { MOST_OTHERS = 64 };

typedef struct other_devices {
  rondo_device *closing;
  size_t count;
  rondo_device *items[MOST_OTHERS];
} other_devices;

/* None of them is closed before its use ends. */
static bool add_other(rondo_device *device, void *user) {
  other_devices *others = user;
  if (device == others->closing || device->is_inherited || device->ops->settle == NULL) return false;
  if (!rondo_device_shares_driver(device, others->closing)) return false;
  rondo_device_begin_use(device, &rondo_brief_use);
  others->items[others->count++] = device;
  return others->count == MOST_OTHERS;
}

static unsigned count_uses(const rondo_device *device, const rondo_device_use *use) {
  return atomic_load_explicit(&device->uses.counts[use->rank], memory_order_acquire);
}

/* Whether executables of other devices, which may have been destroyed, are all that uses it. */
static bool is_left_to_shared(const rondo_device *device) {
  const unsigned shared = count_uses(device, &shared_use), brief = count_uses(device, &rondo_brief_use);
  unsigned uses = 0;
  for (size_t i = 0; i < RONDO_DEVICE_USES; i++)
    uses += atomic_load_explicit(&device->uses.counts[i], memory_order_acquire);
  return shared > 0 && uses <= shared + brief;
}

/* Destroyed executables of other devices end here, after their launches. */
static void settle_others(rondo_device *device) {
  other_devices others = {.closing = device};
  if (is_left_to_shared(device)) (void)rondo_device_find(add_other, &others);
  for (size_t i = 0; i < others.count; i++) {
    others.items[i]->ops->settle(others.items[i]);
    rondo_device_end_use(others.items[i], &rondo_brief_use);
  }
  while (count_uses(device, &rondo_brief_use) > 0) rondo_yield();
}

rondo_status rondo_device_close(rondo_device *device) {
  if (device == NULL || device->is_inherited) return RONDO_OK;
  RONDO_TRY(rondo_refuse_in_callback("rondo_device_close"));
  rondo_retired_objects_look(device, RONDO_QUEUE_NONE); /* they may use the device */
  settle_others(device);
  RONDO_TRY(leave_list(device));
  release_slot(&device->costs);
  release_slot(&device->random);
  release_slot(&device->events);
  release_slot(&device->memory);
  rondo_launched_objects *left = rondo_retired_objects_take(device);
  rondo_retired_objects_unmark(left);
  const rondo_allocator allocator = device->allocator;
  const rondo_status status = device->ops->close(device);
  rondo_retired_objects_free(&allocator, left);
  rondo_counting_allocator_free(&allocator);
  count_closed();
  return status;
}

static rondo_status refuse_null(const char *call, const void *device, const void *out) {
  RONDO_TRY(rondo_require(call, "device", device));
  return rondo_require(call, "the struct to fill", out);
}

rondo_status rondo_device_get_info(const rondo_device *device, rondo_device_info *out_info) {
  rondo_device_info info = {.struct_size = sizeof info};
  RONDO_TRY(refuse_null("rondo_device_get_info", device, out_info));
  device->ops->info(device, &info);
  return rondo_versioned_write("rondo_device_info", &info, out_info, sizeof info);
}

/* Peers ------------------------------------------------------------------------------------------------------------ */

uint64_t rondo_device_peer_bit(const rondo_device *device) {
  return device == NULL || device->index >= 64 ? 0 : UINT64_C(1) << device->index;
}

/* A checking device has functions of its own. */
bool rondo_device_shares_driver(const rondo_device *a, const rondo_device *b) { return a->ops->close == b->ops->close; }

/* Devices of one driver have the same function. */
bool rondo_device_reaches(const rondo_device *device, const rondo_device *owner) {
  if (device == owner) return true;
  if (device->ops->peers == NULL || device->ops->peers != owner->ops->peers) return false;
  return (owner->ops->peers(owner) & rondo_device_peer_bit(device)) != 0;
}

rondo_status rondo_device_can_access_peer(const rondo_device *device, const rondo_device *peer, bool *out_can) {
  const char *const call = "rondo_device_can_access_peer";
  RONDO_TRY(refuse_null(call, device, out_can));
  *out_can = false;
  RONDO_TRY(rondo_require(call, "peer", peer));
  *out_can = rondo_device_reaches(device, peer);
  return RONDO_OK;
}

/* Figures ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_device_get_statistics(const rondo_device *device, rondo_device_statistics *out_statistics) {
  rondo_device_statistics statistics = {.struct_size = sizeof statistics};
  RONDO_TRY(refuse_null("rondo_device_get_statistics", device, out_statistics));
  device->ops->statistics(device, &statistics);
  statistics.host_allocations = rondo_counting_allocator_calls(&device->allocator);
  statistics.events_created = atomic_load_explicit(&device->events_created, memory_order_relaxed);
  statistics.events_reused = atomic_load_explicit(&device->events_reused, memory_order_relaxed);
  return rondo_versioned_write("rondo_device_statistics", &statistics, out_statistics, sizeof statistics);
}

rondo_status rondo_device_enumerate(size_t index, const char **out_name, const char **out_unavailable) {
  RONDO_TRY(rondo_require("rondo_device_enumerate", "out_name", out_name));
  RONDO_TRY(rondo_require("rondo_device_enumerate", "out_unavailable", out_unavailable));
  return rondo_registry_enumerate(index, out_name, out_unavailable);
}

static rondo_status check_argument_bytes(const rondo_device *device, const rondo_kernel *kernel) {
  if (kernel->argument_bytes <= device->limits.argument_bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': its parameters take %" PRIu32 " bytes, but device '%s' takes at most %" PRIu32
                    ": pass a pointer to some of them",
                    kernel->name, kernel->argument_bytes, device->name, device->limits.argument_bytes);
}

rondo_status rondo_device_make_kernel(rondo_device *device, const rondo_kernel_options *options, rondo_kernel **out) {
  RONDO_TRY(rondo_kernel_make(device, &device->allocator, options, out));
  rondo_status status = check_argument_bytes(device, *out);
  if (status == RONDO_OK && device->ops->kernel_prepare != NULL) status = device->ops->kernel_prepare(device, *out);
  (*out)->cuda_image = NULL; /* the caller's, and no longer needed */
  if (status == RONDO_OK) return RONDO_OK;
  rondo_kernel_release(*out);
  *out = NULL;
  return status;
}

rondo_status rondo_kernel_create(rondo_device *device, const rondo_kernel_options *options, rondo_kernel **out_kernel) {
  const char *const call = "rondo_kernel_create";
  RONDO_TRY(rondo_require(call, "out_kernel", out_kernel));
  *out_kernel = NULL;
  RONDO_TRY(rondo_require(call, "device", device));
  RONDO_TRY(rondo_require(call, "options", options));
  RONDO_TRY(rondo_refuse_in_callback(call));
  RONDO_TRY(rondo_device_require_own(call, device));
  RONDO_TRY(rondo_device_make_kernel(device, options, out_kernel));
  rondo_device_begin_use(device, &kernel_use);
  return RONDO_OK;
}

rondo_status rondo_device_refuse_grid(const rondo_device *device, const rondo_kernel_node *node) {
  const rondo_grid asked = rondo_grid_resolve(node->grid), most = device->most_blocks;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': a grid of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                    " blocks, but device '%s' runs at most %" PRIu32 " x %" PRIu32 " x %" PRIu32
                    ": use x for the longest dimension, or give each block more work",
                    node->kernel->name, asked.x, asked.y, asked.z, device->name, most.x, most.y, most.z);
}

/* Every GPU with clusters has these. A library may have allowed more for its kernels. */
enum { PORTABLE_CLUSTER = 8 };

static rondo_status refuse_unsupported(const rondo_device *device, const rondo_kernel_node *node, const char *what,
                                       const char *remedy) {
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED, "kernel '%s': device '%s' has no %s: %s",
                    node->kernel->name, device->name, what, remedy);
}

rondo_status rondo_device_check_cooperative(const rondo_device *device, const rondo_kernel_node *node, uint64_t most) {
  const rondo_grid grid = rondo_grid_resolve(node->grid);
  if (rondo_grid_blocks(grid) <= most) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': a cooperative grid of %" PRIu64 " blocks, but device '%s' runs at most %" PRIu64
                    " of them at once: give each block more work, or use smaller blocks or less shared memory",
                    node->kernel->name, rondo_grid_blocks(grid), device->name, most);
}

rondo_status rondo_device_check_limits(const rondo_device *device, const rondo_kernel_node *node) {
  const rondo_launch_config *config = node->config;
  const rondo_launch_limits *limits = &device->limits;
  const uint32_t most_cluster = node->kernel->is_launched_elsewhere ? UINT32_MAX : PORTABLE_CLUSTER;
  rondo_launch_config resolved;
  (void)rondo_launch_config_resolve(node, &resolved);
  if (config->cluster.x != 0 && !limits->clusters)
    return refuse_unsupported(device, node, "clusters of blocks",
                              "launch it without, or on a GPU of compute capability "
                              "9.0 or newer");
  if (config->cluster.x != 0 && rondo_dimensions_volume(resolved.cluster) > most_cluster)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "kernel '%s': a cluster of %" PRIu64 " blocks, at most %" PRIu32
                      " run on device '%s': use smaller "
                      "clusters",
                      node->kernel->name, rondo_dimensions_volume(resolved.cluster), most_cluster, device->name);
  if (config->cooperative && !limits->cooperative)
    return refuse_unsupported(device, node, "cooperative launches", "divide the kernel where its blocks wait");
  if (config->priority > limits->least_priority || config->priority < limits->greatest_priority)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "kernel '%s' cannot have the priority %d: device '%s' has %d (last) to %d (first)",
                      node->kernel->name, (int)config->priority, device->name, (int)limits->least_priority,
                      (int)limits->greatest_priority);
  if (config->shared_bytes <= limits->shared_bytes) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "kernel '%s': %" PRIu32
                    " bytes of dynamic shared memory for a block, but device '%s' has at most "
                    "%" PRIu32 ": give each block less work, or keep part of it in device memory",
                    node->kernel->name, config->shared_bytes, device->name, device->limits.shared_bytes);
}

static const char *missing_operation(const rondo_operation_limits *limits, const rondo_memory_operation *operation) {
  if (limits->lacks_64 && rondo_operation_bytes(operation) == sizeof(uint64_t)) return "operations on words of 64 bits";
  if (limits->lacks_nor && operation->condition == RONDO_WAIT_NOR) return "waits with RONDO_WAIT_NOR";
  return limits->lacks_flush && operation->kind == RONDO_OPERATION_FLUSH ? "flushes of remote writes" : NULL;
}

rondo_status rondo_device_check_operations(const rondo_device *device, const rondo_memory_operations_node *node) {
  for (size_t i = 0; i < node->count; i++) {
    const char *missing = missing_operation(&device->operations, &node->operations[i]);
    if (missing != NULL)
      return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED,
                        "memory operation %zu: device '%s' has no %s: leave it out, or use another kind or condition",
                        i, device->name, missing);
  }
  return RONDO_OK;
}

void rondo_kernel_destroy(rondo_kernel *kernel) {
  if (kernel == NULL || kernel->device->is_inherited) return;
  rondo_device *device = kernel->device;
  rondo_kernel_release(kernel);
  rondo_device_end_use(device, &kernel_use);
}

/* Failures --------------------------------------------------------------------------------------------------------- */

/* Waits while another failure is written or read. After a read, this failure is the first. */
void rondo_first_failure_keep(rondo_first_failure *first, const rondo_saved_error *failure) {
  for (uint32_t expected = 0; !atomic_compare_exchange_strong(&first->state, &expected, 1); expected = 0) {
    if (expected == 2) return;
    rondo_yield();
  }
  first->error = *failure;
  atomic_store_explicit(&first->state, 2, memory_order_release);
}

rondo_status rondo_first_failure_take(rondo_first_failure *first) {
  uint32_t expected = 2;
  if (atomic_load_explicit(&first->state, memory_order_relaxed) != 2) return RONDO_OK;
  /* State 1 keeps other threads away while it is read. */
  if (!atomic_compare_exchange_strong(&first->state, &expected, 1)) return RONDO_OK;
  const rondo_status status = rondo_error_raise(&first->error);
  atomic_store_explicit(&first->state, 0, memory_order_release);
  return status;
}

/* Callbacks -------------------------------------------------------------------------------------------------------- */

_Thread_local rondo_thread_state rondo_this_thread;
atomic_uint rondo_threads_watched;

void rondo_thread_note_own(void) { rondo_this_thread.is_own = true; }

void rondo_callback_enter(void) {
  rondo_thread_watch();
  rondo_this_thread.callback_depth++;
}

void rondo_callback_leave(void) {
  rondo_this_thread.callback_depth--;
  rondo_thread_unwatch();
}

rondo_status rondo_device_call_library(rondo_device *device, rondo_library_use use, rondo_library_call call,
                                       void *user) {
  if (use == RONDO_LIBRARY_WORK) rondo_thread_count_work();
  return device->ops->call_library(device, use, call, user);
}

rondo_status rondo_refuse_in_callback(const char *call) {
  if (!rondo_in_callback()) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_IN_CALLBACK,
                    "%s was called inside a host function: host functions must not call Rondo", call);
}

/* Captures of drivers ---------------------------------------------------------------------------------------------- */

void rondo_captured_retain(void *captured) {
  atomic_fetch_add_explicit(&((rondo_captured *)captured)->references, 1, memory_order_relaxed);
}

void rondo_captured_release(void *object) {
  rondo_captured *captured = object;
  while (captured != NULL && atomic_fetch_sub_explicit(&captured->references, 1, memory_order_acq_rel) == 1) {
    rondo_captured *earlier = captured->earlier;
    captured->ops->release(captured);
    captured = earlier;
  }
}

void rondo_captured_attach(rondo_captured *captured, rondo_graph_attachment *attachment) {
  if (attachment->object != NULL) captured->earlier = attachment->object;
  rondo_captured_retain(captured);
  *attachment =
      (rondo_graph_attachment){.object = captured, .retain = rondo_captured_retain, .release = rondo_captured_release};
}

rondo_status rondo_captured_keep(rondo_captured *captured, void *object, void (*release)(void *object)) {
  const char *const call = "a capture";
  const rondo_allocator *allocator = &captured->device->allocator;
  rondo_user_object *made;
  RONDO_TRY(rondo_array_reserve(allocator, &captured->objects, captured->objects.count + 1));
  RONDO_TRY(rondo_user_object_make(call, allocator, object, release, 1, &made));
  return rondo_object_list_add(call, allocator, &captured->objects, made, 1, true); /* which has room */
}
