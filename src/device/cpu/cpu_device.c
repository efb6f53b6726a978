/* SPDX-License-Identifier: MIT
 * The CPU driver: opens "cpu", "cpu:N", "cpu:check" and "cpu:check:N", describes devices, and closes them. Devices
 * share nothing: each has its own workers and memory. Threads: any may call any slot.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "device/cpu/cpu_checking.h"
#include "device/cpu/cpu_event.h"
#include "device/cpu/cpu_executable.h"
#include "device/cpu/cpu_memory.h"
#include "device/cpu/cpu_operations.h"
#include "device/cpu/cpu_pool.h"
#include "device/cpu/cpu_queue.h"
#include "device/cpu/cpu_shared_memory.h"
#include "device/cpu/cpu_wait.h"
#include "graph/launch_config.h"

enum { CPU_DEVICES = 16 };

static rondo_status device_synchronize(rondo_device *base) {
  cpu_device *device = (cpu_device *)base;
  rondo_status first = RONDO_OK;
  for (uint32_t slot = 0; slot < CPU_MAX_QUEUES; slot++) {
    pthread_mutex_lock(&device->lock);
    cpu_queue *queue = atomic_load_explicit(&device->queues[slot], memory_order_relaxed);
    if (queue != NULL) cpu_queue_retain(queue);
    pthread_mutex_unlock(&device->lock);
    if (queue == NULL) continue;
    cpu_queue_await(queue, atomic_load_explicit(&queue->submitted, memory_order_acquire));
    if (first == RONDO_OK) first = rondo_first_failure_take(&queue->failure);
    cpu_queue_release(queue);
  }
  cpu_executable_reap(device, false);
  return first;
}

static rondo_status device_close(rondo_device *base) {
  cpu_device *device = (cpu_device *)base;
  const rondo_status status = device_synchronize(base);
  cpu_executable_reap(device, true);
  cpu_shared_memory_free(device);
  cpu_operations_stop(device);
  cpu_pool_stop(device);
  pthread_mutex_destroy(&device->lock);
  const rondo_allocator allocator = base->allocator;
  rondo_release(&allocator, device, 1, sizeof *device);
  return status;
}

/* The "model name" of the first processor; "processor" if the system does not give one. It is read once in a process:
 * the system takes half a millisecond to write it, and a compilation asks what a device is for each product. */
static char processor_name[96] = "processor";
static pthread_once_t processor_once = PTHREAD_ONCE_INIT;

static void read_processor_name(void) {
  char line[256];
  FILE *file = fopen("/proc/cpuinfo", "re");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    const char *value = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || value == NULL) continue;
    (void)snprintf(processor_name, sizeof processor_name, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
    break;
  }
  (void)fclose(file);
}

static void device_info(const rondo_device *base, rondo_device_info *out) {
  const cpu_device *device = (const cpu_device *)base;
  out->index = base->index;
  (void)snprintf(out->name, sizeof out->name, "%s", base->name);
  if (pthread_once(&processor_once, read_processor_name) == 0)
    (void)snprintf(out->description, sizeof out->description, "%s", processor_name);
  out->workers = device->pool.worker_count;
  out->processors = rondo_processor_count();
  out->memory_bytes = device->memory_limit;
  out->page_bytes = device->page_bytes;
  out->graph_memory = device->has_nodes;
  out->memory_pools = device->has_pools;
}

static void device_statistics(const rondo_device *base, rondo_device_statistics *out) {
  cpu_device *device = (cpu_device *)base;
  const cpu_pool *pool = &device->pool;
  for (uint32_t i = 0; i < pool->participant_count; i++) {
    out->kernels += atomic_load_explicit(&pool->participants[i].kernels, memory_order_relaxed);
    out->parks += atomic_load_explicit(&pool->participants[i].parks, memory_order_relaxed);
  }
  out->wakes = atomic_load_explicit(&pool->wakes, memory_order_relaxed);
  out->mapped_bytes = atomic_load_explicit(&device->mapped_bytes, memory_order_relaxed);
  out->maps = atomic_load_explicit(&device->maps, memory_order_relaxed);
  pthread_mutex_lock(&device->lock);
  out->launches = device->launches_of_dead_queues;
  for (uint32_t slot = 0; slot < CPU_MAX_QUEUES; slot++) {
    const cpu_queue *queue = atomic_load_explicit(&device->queues[slot], memory_order_relaxed);
    if (queue != NULL) out->launches += atomic_load_explicit(&queue->launches, memory_order_relaxed);
  }
  pthread_mutex_unlock(&device->lock);
}

/* Any grid runs here. */
static rondo_status kernel_check(const rondo_device *device, const rondo_kernel_node *node) {
  const rondo_kernel *kernel = node->kernel;
  if (kernel->cpu != NULL || kernel->cpu_block != NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_GRAPH, RONDO_REASON_NO_FUNCTION,
                    "kernel '%s' has no CPU function and cannot run on device '%s': give one in "
                    "rondo_kernel_options.cpu or cpu_block",
                    kernel->name, device->name);
}

/* How many blocks an H100 runs at once: as many as its 132 multiprocessors have threads and shared memory for. */
static uint64_t resident_blocks(const rondo_launch_config *config) {
  enum { PROCESSORS = 132, THREADS = 2048, BLOCKS = 32, WARP = 32, SHARED = 228 * 1024, RESERVED = 1024 };
  const uint64_t threads = (rondo_dimensions_volume(config->block) + WARP - 1) / WARP * WARP;
  const uint64_t by_threads = THREADS / threads, by_memory = SHARED / ((uint64_t)config->shared_bytes + RESERVED);
  const uint64_t each = by_threads < by_memory ? by_threads : by_memory;
  return PROCESSORS * (each < BLOCKS ? each : BLOCKS);
}

static rondo_status config_check(const rondo_device *device, const rondo_kernel_node *node) {
  rondo_launch_config config;
  RONDO_TRY(rondo_device_check_limits(device, node));
  if (!node->config->cooperative) return RONDO_OK;
  (void)rondo_launch_config_resolve(node, &config);
  return rondo_device_check_cooperative(device, node, resident_blocks(&config));
}

/* A kernel whose function gets its block may be launched with shared memory. */
static rondo_status kernel_prepare(rondo_device *base, rondo_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->symbol_count; i++) kernel->symbols[i].address = kernel->symbols[i].cpu;
  return kernel->cpu_block == NULL ? RONDO_OK : cpu_shared_memory_make((cpu_device *)base);
}

/* All devices of a process use the same addresses. */
static uint64_t peers(const rondo_device *device) {
  (void)device;
  return (UINT64_C(1) << CPU_DEVICES) - 1;
}

static const rondo_device_ops device_ops = {
    .close = device_close,
    .info = device_info,
    .statistics = device_statistics,
    .kernel_prepare = kernel_prepare,
    .kernel_check = kernel_check,
    .config_check = config_check,
    .peers = peers,
    .queue_create = cpu_queue_create,
    .event_create = cpu_event_create,
    .semaphore = &cpu_semaphore_ops,
    .executable_create = cpu_executable_create,
    .synchronize = device_synchronize,
    .settle = cpu_executable_settle,
    .reserve = cpu_reserve,
    .unreserve = cpu_unreserve,
    .physical_create = cpu_physical_create,
    .physical_destroy = cpu_physical_destroy,
    .map = cpu_map,
    .unmap = cpu_unmap,
    .protect = cpu_protect,
    .map_file = cpu_map_file,
    .has_zero_pages = true,
    .host_watch_begin = cpu_host_watch_begin,
    .host_watch_end = cpu_host_watch_end,
    .host_allocate = cpu_host_allocate,
    .host_release = cpu_host_release,
};

/* At most the memory of the machine, if it is known. */
static uint64_t choose_memory_limit(const cpu_device *device, uint64_t asked) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const uint64_t there = pages > 0 ? (uint64_t)pages * device->page_bytes : UINT64_MAX;
  if (asked == 0) asked = rondo_option_number(RONDO_OPTION_CPU_MEMORY_LIMIT);
  return asked == 0 || asked > there ? there : asked;
}

static void set_up_memory(cpu_device *device, const rondo_device_options *options) {
  const char *lacks = rondo_option_text(RONDO_OPTION_CPU_LACKS);
  device->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  device->memory_limit = choose_memory_limit(device, options->memory_limit_bytes);
  device->has_pools = !options->no_memory_pools && strcmp(lacks, "memory_pools") != 0;
  device->has_nodes = device->has_pools && !options->no_memory_nodes && strcmp(lacks, "memory_nodes") != 0;
}

/* "check" and "check:N" request a checking device. *out_index is the rest. */
static bool parse_checking(const char *rest, const char **out_index) {
  static const char word[] = "check";
  const size_t length = sizeof word - 1;
  *out_index = rest;
  if (strncmp(rest, word, length) != 0) return false;
  if (rest[length] == '\0') *out_index = rest + length;
  if (rest[length] == ':' && rest[length + 1] != '\0') *out_index = rest + length + 1;
  return *out_index != rest;
}

/* "cpu:0", "cpu:check", "cpu:check:1". */
static void name_device(cpu_device *device, bool checking) {
  char *name = device->base.name;
  if (!checking)
    (void)snprintf(name, sizeof device->base.name, "cpu:%u", device->base.index);
  else if (device->base.index == 0)
    (void)snprintf(name, sizeof device->base.name, "cpu:check");
  else
    (void)snprintf(name, sizeof device->base.name, "cpu:check:%u", device->base.index);
}

static rondo_status cpu_open(const char *rest, const rondo_device_options *options, const rondo_allocator *allocator,
                             rondo_device **out) {
  uint32_t index;
  void *memory;
  const char *index_text;
  *out = NULL;
  const bool checking = parse_checking(rest, &index_text);
  if (!rondo_device_parse_index(index_text, &index) || index >= CPU_DEVICES) {
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_DEVICE,
                      "there is no device 'cpu:%s': CPU devices are 'cpu', 'cpu:0' to 'cpu:%d', and, with checks, "
                      "'cpu:check', 'cpu:check:0' to 'cpu:check:%d'",
                      rest, CPU_DEVICES - 1, CPU_DEVICES - 1);
  }
  RONDO_TRY(rondo_allocate_aligned(allocator, 1, sizeof(cpu_device), RONDO_CACHE_LINE, &memory));
  cpu_device *device = memory;
  device->base.tables = (rondo_device_tables){
      .device = device_ops, .queue = cpu_queue_ops, .event = cpu_event_ops, .executable = cpu_executable_ops};
  device->base.ops = &device->base.tables.device;
  device->base.most_blocks = (rondo_grid){UINT32_MAX, UINT32_MAX, UINT32_MAX};
  device->base.limits = (rondo_launch_limits){.argument_bytes = RONDO_MAX_PARAMETER_BYTES,
                                              .shared_bytes = CPU_SHARED_BYTES,
                                              .greatest_priority = -5,
                                              .clusters = true,
                                              .cooperative = true};
  device->base.allocator = *allocator;
  device->base.index = index;
  name_device(device, checking);
  set_up_memory(device, options);
  pthread_mutex_init(&device->lock, NULL);
  rondo_status status = cpu_pool_start(device, options->workers);
  if (status == RONDO_OK && checking) {
    status = cpu_checking.open(device, options);
    if (status != RONDO_OK) cpu_pool_stop(device);
  }
  if (status != RONDO_OK) {
    pthread_mutex_destroy(&device->lock);
    rondo_release(allocator, device, 1, sizeof *device);
    return status;
  }
  *out = &device->base;
  return RONDO_OK;
}

static bool cpu_enumerate(size_t index, const char **out_name, const char **out_unavailable) {
  static const char *const names[] = {"cpu", "cpu:check"};
  if (index > 1) return false;
  *out_name = names[index];
  *out_unavailable = index == 1 ? cpu_checking.unavailable() : "";
  return true;
}

const rondo_driver rondo_cpu_driver = {.name = "cpu", .open = cpu_open, .enumerate = cpu_enumerate};
