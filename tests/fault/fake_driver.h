/* SPDX-License-Identifier: MIT
 * A driver for tests of the layers above it. It runs work immediately on the calling thread, counts the objects that
 * are alive, and fails on request. Header only, because every test is one source. Define _GNU_SOURCE before the first
 * include.
 *
 * The driver counts the calls that may fail. `fail_at` (1, 2, ...) makes that call fail, and with `fail_rest` all later
 * ones too. Calls that give memory back do not count; they fail while `fail_unmaps`.
 * While `stalled`, recorded events and launches do not complete before a caller synchronizes with them, so that a test
 * can see what waits for completion. Memory is real: physical memory is a file that can be mapped at several addresses.
 */
#ifndef RONDO_TESTS_FAULT_FAKE_DRIVER_H
#define RONDO_TESTS_FAULT_FAKE_DRIVER_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "device/device.h"
#include "device/retired_objects.h"

#define FAKE_PAGE ((size_t)4096)

typedef struct fake_device {
  rondo_device base;
  size_t calls, fail_at;
  bool fail_rest, stalled, fail_unmaps;
  bool no_graph_memory;  /* and no pools */
  size_t most_addresses; /* of one reservation; 0: any number */
  /* live now */
  int queues, events, executables, physicals, reservations, mappings, host_blocks;
  size_t physical_bytes, mapped_bytes;
  /* so far */
  size_t submitted, launched, waits, records, maps;
} fake_device;

typedef struct fake_queue {
  rondo_queue base;
} fake_queue;

typedef struct fake_event {
  rondo_device_event base;
  bool pending;
} fake_event;

typedef struct fake_executable {
  rondo_executable base;
  size_t node_count;
  rondo_node_kind *kinds;
  uint64_t *marks; /* from a node's parameters, for tests: a kernel's first argument word, a host's user */
  bool *enabled;
  bool timed;
} fake_executable;

typedef struct fake_physical {
  rondo_physical base;
  int file;
} fake_physical;

static inline fake_device *fake_of(rondo_device *device) { return (fake_device *)(void *)device; }

/* Counts the call. Returns OUT_OF_MEMORY when this call must fail. */
static inline rondo_status fake_call(rondo_device *base, const char *what) {
  fake_device *device = fake_of(base);
  device->calls++;
  const bool fails = device->fail_at != 0 &&
                     (device->calls == device->fail_at || (device->fail_rest && device->calls > device->fail_at));
  if (!fails) return RONDO_OK;
  return rondo_fail_driver(RONDO_OUT_OF_MEMORY, RONDO_REASON_NONE, 7, "FAKE_FAILURE", "the fake driver failed in %s",
                           what);
}

/* Queues ---------------------------------------------------------------------------------------------------------- */

static inline void fake_run(const rondo_node_params *work) {
  if (work->kind == RONDO_NODE_KERNEL) {
    const rondo_kernel_node *node = &work->as.kernel;
    void *args[RONDO_MAX_PARAMETERS] = {0};
    for (size_t i = 0; i < node->arg_count; i++) args[i] = (void *)(uintptr_t)node->args[i];
    const rondo_blocks blocks = {.last = (size_t)rondo_grid_blocks(node->grid), .grid = node->grid};
    node->kernel->cpu(blocks, args);
  } else if (work->kind == RONDO_NODE_COPY && work->as.copy.height == 1) {
    memcpy(work->as.copy.dst, work->as.copy.src, work->as.copy.width);
  } else if (work->kind == RONDO_NODE_HOST) {
    rondo_callback_enter();
    rondo_status_ignore(work->as.host.function(work->as.host.user), "these tests look at what ran");
    rondo_callback_leave();
  }
}

static inline rondo_status fake_submit(rondo_queue *queue, const rondo_node_params *work) {
  RONDO_TRY(fake_call(queue->device, "submit"));
  fake_of(queue->device)->submitted++;
  fake_run(work);
  return RONDO_OK;
}

static inline rondo_status fake_record(rondo_queue *queue, rondo_device_event *event) {
  RONDO_TRY(fake_call(queue->device, "record"));
  fake_of(queue->device)->records++;
  ((fake_event *)event)->pending = fake_of(queue->device)->stalled;
  return RONDO_OK;
}

static inline rondo_status fake_wait(rondo_queue *queue, rondo_device_event *event) {
  (void)event;
  RONDO_TRY(fake_call(queue->device, "wait"));
  fake_of(queue->device)->waits++;
  return RONDO_OK;
}

static inline rondo_status fake_launch(rondo_queue *queue, rondo_executable *executable) {
  (void)executable;
  RONDO_TRY(fake_call(queue->device, "launch"));
  fake_of(queue->device)->launched++;
  return RONDO_OK;
}

static inline rondo_status fake_launch_patched(rondo_queue *queue, rondo_executable *executable,
                                               const rondo_patch_change *changes, size_t count) {
  (void)changes;
  (void)count;
  return fake_launch(queue, executable);
}

static inline rondo_status fake_queue_synchronize(rondo_queue *queue) {
  return fake_call(queue->device, "synchronize");
}

static inline rondo_status fake_queue_query(rondo_queue *queue) {
  (void)queue;
  return RONDO_OK;
}

static inline rondo_status fake_queue_destroy(rondo_queue *queue) {
  fake_of(queue->device)->queues--;
  free(queue);
  return RONDO_OK;
}

static const rondo_queue_ops fake_queue_ops = {.destroy = fake_queue_destroy,
                                               .submit = fake_submit,
                                               .record = fake_record,
                                               .wait = fake_wait,
                                               .launch = fake_launch,
                                               .launch_patched = fake_launch_patched,
                                               .synchronize = fake_queue_synchronize,
                                               .await = fake_queue_synchronize,
                                               .query = fake_queue_query};

static inline rondo_status fake_queue_create(rondo_device *device, const char *label,
                                             const rondo_queue_options *options, rondo_queue **out) {
  (void)label;
  (void)options;
  RONDO_TRY(fake_call(device, "queue_create"));
  fake_queue *queue = malloc(sizeof *queue); /* often where the last one was */
  queue->base = (rondo_queue){.ops = &fake_queue_ops, .device = device};
  fake_of(device)->queues++;
  *out = &queue->base;
  return RONDO_OK;
}

/* Events ---------------------------------------------------------------------------------------------------------- */

static inline void fake_event_destroy(rondo_device_event *event) {
  fake_of(event->device)->events--;
  free(event);
}

static inline rondo_status fake_event_query(rondo_device_event *event) {
  const fake_event *self = (fake_event *)event;
  return self->pending && fake_of(event->device)->stalled ? RONDO_NOT_READY : RONDO_OK;
}

static inline rondo_status fake_event_synchronize(rondo_device_event *event) {
  RONDO_TRY(fake_call(event->device, "event synchronize"));
  ((fake_event *)event)->pending = false;
  return RONDO_OK;
}

static inline rondo_status fake_event_elapsed(const rondo_device_event *begin, const rondo_device_event *end,
                                              int64_t *out_ns) {
  (void)begin;
  (void)end;
  *out_ns = 0;
  return RONDO_OK;
}

static const rondo_event_ops fake_event_ops = {.destroy = fake_event_destroy,
                                               .query = fake_event_query,
                                               .synchronize = fake_event_synchronize,
                                               .elapsed = fake_event_elapsed};

static inline rondo_status fake_event_create(rondo_device *device, bool timing, rondo_device_event **out) {
  RONDO_TRY(fake_call(device, "event_create"));
  fake_event *event = calloc(1, sizeof *event);
  event->base = (rondo_device_event){.ops = &fake_event_ops, .device = device, .timing = timing};
  fake_of(device)->events++;
  *out = &event->base;
  return RONDO_OK;
}

/* Executables ----------------------------------------------------------------------------------------------------- */

static inline uint64_t fake_mark(const rondo_node_params *params) {
  uint64_t mark = 0;
  if (params->kind == RONDO_NODE_KERNEL && params->as.kernel.arg_count > 0)
    memcpy(&mark, params->as.kernel.args[0], params->as.kernel.kernel->parameters[0].bytes);
  if (params->kind == RONDO_NODE_HOST) mark = (uint64_t)(uintptr_t)params->as.host.user;
  if (params->kind == RONDO_NODE_COPY) mark = (uint64_t)(uintptr_t)params->as.copy.dst;
  return mark;
}

static inline void fake_executable_destroy(rondo_executable *base) {
  fake_executable *self = (fake_executable *)base;
  fake_of(base->device)->executables--;
  free(self->kinds);
  free(self->marks);
  free(self->enabled);
  free(self);
}

static inline rondo_status fake_set_params(rondo_executable *base, size_t index, const rondo_lowered_node *node) {
  fake_executable *self = (fake_executable *)base;
  RONDO_TRY(fake_call(base->device, "set_params"));
  self->marks[index] = fake_mark(node->params);
  return RONDO_OK;
}

static inline rondo_status fake_set_enabled(rondo_executable *base, size_t index, bool enabled) {
  RONDO_TRY(fake_call(base->device, "set_enabled"));
  ((fake_executable *)base)->enabled[index] = enabled;
  return RONDO_OK;
}

static inline rondo_status fake_executable_synchronize(rondo_executable *base) {
  return fake_call(base->device, "executable synchronize");
}

static inline rondo_status fake_executable_record(rondo_executable *base, rondo_device_event *event) {
  RONDO_TRY(fake_call(base->device, "executable record"));
  ((fake_event *)event)->pending = fake_of(base->device)->stalled;
  return RONDO_OK;
}

static inline uint64_t fake_executable_bytes(const rondo_executable *base) {
  return sizeof(fake_executable) + ((const fake_executable *)base)->node_count;
}

static inline rondo_status fake_set_timing(rondo_executable *base, bool on) {
  RONDO_TRY(on ? fake_call(base->device, "set_timing") : RONDO_OK);
  ((fake_executable *)base)->timed = on;
  return RONDO_OK;
}

/* Reports i + 1 microseconds for node i. */
static inline void fake_times(const rondo_executable *base, uint64_t *out_ns) {
  const fake_executable *self = (const fake_executable *)base;
  for (size_t i = 0; i < self->node_count; i++) out_ns[i] = 1000 * (i + 1);
}

static const rondo_executable_ops fake_executable_ops = {.destroy = fake_executable_destroy,
                                                         .set_params = fake_set_params,
                                                         .set_enabled = fake_set_enabled,
                                                         .synchronize = fake_executable_synchronize,
                                                         .record = fake_executable_record,
                                                         .host_bytes = fake_executable_bytes,
                                                         .device_bytes = fake_executable_bytes,
                                                         .set_timing = fake_set_timing,
                                                         .times = fake_times};

static inline rondo_status fake_executable_create(rondo_device *device, const rondo_lowered_graph *graph,
                                                  rondo_executable **out) {
  RONDO_TRY(fake_call(device, "executable_create"));
  fake_executable *self = calloc(1, sizeof *self);
  self->base = (rondo_executable){.ops = &fake_executable_ops, .device = device};
  self->node_count = graph->node_count;
  self->kinds = calloc(graph->node_count + 1, sizeof *self->kinds);
  self->marks = calloc(graph->node_count + 1, sizeof *self->marks);
  self->enabled = calloc(graph->node_count + 1, sizeof *self->enabled);
  for (size_t i = 0; i < graph->node_count; i++) {
    self->kinds[i] = graph->nodes[i].params->kind;
    self->marks[i] = fake_mark(graph->nodes[i].params);
    self->enabled[i] = true;
  }
  fake_of(device)->executables++;
  *out = &self->base;
  return RONDO_OK;
}

/* Memory ---------------------------------------------------------------------------------------------------------- */

static inline rondo_status fake_reserve(rondo_device *device, size_t bytes, size_t alignment, void **out_address) {
  (void)alignment;
  RONDO_TRY(fake_call(device, "reserve"));
  const size_t most = fake_of(device)->most_addresses;
  if (most != 0 && bytes > most)
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_NONE, "%zu bytes are too many", bytes);
  void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_NONE, "no addresses for %zu bytes", bytes);
  fake_of(device)->reservations++;
  *out_address = at;
  return RONDO_OK;
}

static inline rondo_status fake_unreserve(rondo_device *device, void *address, size_t bytes) {
  fake_of(device)->reservations--;
  munmap(address, bytes);
  return RONDO_OK;
}

static inline rondo_status fake_physical_create(rondo_device *device, size_t bytes, rondo_physical_use use,
                                                rondo_physical **out) {
  (void)use;
  RONDO_TRY(fake_call(device, "physical_create"));
  const int file = memfd_create("rondo-fake", MFD_CLOEXEC);
  if (file < 0 || bytes > ((size_t)1 << 40) || ftruncate(file, (off_t)bytes) != 0) {
    if (file >= 0) close(file);
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_NONE, "no physical memory for %zu bytes", bytes);
  }
  fake_physical *self = calloc(1, sizeof *self);
  self->base = (rondo_physical){.device = device, .bytes = bytes};
  self->file = file;
  fake_of(device)->physicals++;
  fake_of(device)->physical_bytes += bytes;
  *out = &self->base;
  return RONDO_OK;
}

static inline void fake_physical_destroy(rondo_physical *physical) {
  fake_of(physical->device)->physicals--;
  fake_of(physical->device)->physical_bytes -= physical->bytes;
  close(((fake_physical *)physical)->file);
  free(physical);
}

static inline rondo_status fake_map(rondo_device *device, void *address, rondo_physical *physical) {
  RONDO_TRY(fake_call(device, "map"));
  void *at = mmap(address, physical->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                  ((fake_physical *)physical)->file, 0);
  if (at == MAP_FAILED) return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_NONE, "mapping failed");
  fake_of(device)->mappings++;
  fake_of(device)->maps++;
  fake_of(device)->mapped_bytes += physical->bytes;
  return RONDO_OK;
}

static inline rondo_status fake_unmap(rondo_device *device, void *address, size_t bytes) {
  if (fake_of(device)->fail_unmaps) return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_NONE, "unmapping failed");
  void *at = mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (at == MAP_FAILED) return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_NONE, "unmapping failed");
  fake_of(device)->mappings--;
  fake_of(device)->mapped_bytes -= bytes;
  return RONDO_OK;
}

static inline rondo_status fake_protect(rondo_device *device, void *address, size_t bytes,
                                        rondo_protection protection) {
  (void)address;
  (void)bytes;
  (void)protection;
  return fake_call(device, "protect");
}

static inline rondo_status fake_host_allocate(rondo_device *device, size_t bytes, void **out_address) {
  RONDO_TRY(fake_call(device, "host_allocate"));
  fake_of(device)->host_blocks++;
  *out_address = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return RONDO_OK;
}

static inline void fake_host_release(rondo_device *device, void *address, size_t bytes) {
  (void)bytes;
  fake_of(device)->host_blocks--;
  free(address);
}

/* The device ------------------------------------------------------------------------------------------------------ */

static inline void fake_info(const rondo_device *device, rondo_device_info *out) {
  out->page_bytes = FAKE_PAGE;
  out->memory_bytes = UINT64_MAX;
  out->memory_pools = !((const fake_device *)(const void *)device)->no_graph_memory;
  out->graph_memory = !((const fake_device *)(const void *)device)->no_graph_memory;
}

static inline rondo_status fake_kernel_check(const rondo_device *device, const rondo_kernel_node *node) {
  const rondo_kernel *kernel = node->kernel;
  (void)device;
  if (kernel->cpu != NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_GRAPH, RONDO_REASON_NO_FUNCTION, "kernel '%s' has no code", kernel->name);
}

static inline rondo_status fake_device_synchronize(rondo_device *device) {
  return fake_call(device, "device synchronize");
}

static const rondo_device_ops fake_device_ops = {.info = fake_info,
                                                 .kernel_check = fake_kernel_check,
                                                 .config_check = rondo_device_check_limits,
                                                 .queue_create = fake_queue_create,
                                                 .event_create = fake_event_create,
                                                 .executable_create = fake_executable_create,
                                                 .synchronize = fake_device_synchronize,
                                                 .reserve = fake_reserve,
                                                 .unreserve = fake_unreserve,
                                                 .physical_create = fake_physical_create,
                                                 .physical_destroy = fake_physical_destroy,
                                                 .map = fake_map,
                                                 .unmap = fake_unmap,
                                                 .protect = fake_protect,
                                                 .host_allocate = fake_host_allocate,
                                                 .host_release = fake_host_release};

static inline rondo_device *fake_open(const rondo_allocator *allocator) {
  fake_device *device = calloc(1, sizeof *device);
  device->base.ops = &fake_device_ops;
  device->base.most_blocks = (rondo_grid){UINT32_MAX, UINT32_MAX, UINT32_MAX};
  device->base.limits.argument_bytes = RONDO_MAX_PARAMETER_BYTES;
  device->base.allocator = allocator == NULL ? rondo_allocator_default() : *allocator;
  strcpy(device->base.name, "fake");
  return &device->base;
}

/* Returns the number of objects of the device that are alive; 0 when it may be closed. */
static inline int fake_left(rondo_device *base) {
  const fake_device *device = fake_of(base);
  return device->queues + device->events + device->executables + device->physicals + device->reservations +
         device->mappings + device->host_blocks;
}

/* Closes the device as rondo_device_close does. Returns how many objects and other resources of the driver are left. */
static inline int fake_close(rondo_device *base) {
  fake_of(base)->fail_at = 0;
  int left = 0;
  for (size_t i = 0; i < RONDO_DEVICE_USES; i++) left += (int)base->uses.counts[i];
  if (left == 0) {
    rondo_launched_objects *retired = rondo_retired_objects_take(base);
    rondo_retired_objects_unmark(retired);
    rondo_retired_objects_free(&base->allocator, retired);
    if (base->random.state != NULL) base->random.release(base->random.state);
    if (base->events.state != NULL) base->events.release(base->events.state);
    if (base->memory.state != NULL) base->memory.release(base->memory.state);
    left = fake_left(base);
  }
  free(fake_of(base));
  return left;
}

#endif
