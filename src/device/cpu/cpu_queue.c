/* SPDX-License-Identifier: MIT
 * Queues: a ring of items, which the user of the stream writes and one owner at a time runs.
 *
 * To enqueue an item, the producer writes it, stores `head` sequentially consistently, and reads whether a worker
 * watches the queue. Only if none does, it requests one. A host thread that waits takes the ownership itself if it is
 * free, so a launch followed by a wait needs no other thread. The ring is freed when everything is consumed and nobody
 * owns the queue. The struct is freed with the last reference to its timeline.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/trace.h"
#include "device/cpu/cpu_checking.h"
#include "device/cpu/cpu_event.h"
#include "device/cpu/cpu_executable.h"
#include "device/cpu/cpu_grid.h"
#include "device/cpu/cpu_operations.h"
#include "device/cpu/cpu_pool.h"
#include "device/cpu/cpu_queue.h"
#include "device/cpu/cpu_run.h"
#include "device/cpu/cpu_shared_queue.h"
#include "device/cpu/cpu_timeline.h"
#include "device/cpu/cpu_wait.h"
#include "device/cpu/cpu_work.h"

enum { PREFETCH_GRANULES = 16, NAME_BYTES = 64 /* of a name, which may be truncated */ };

static cpu_queue *queue_with(cpu_timeline *timeline) {
  return (cpu_queue *)(void *)((char *)timeline - offsetof(cpu_queue, timeline));
}

static void free_struct(cpu_timeline *timeline) {
  cpu_queue *queue = queue_with(timeline);
  rondo_release(&queue->device->base.allocator, queue, 1, sizeof *queue);
}

/* The consumer's side --------------------------------------------------------------------------------------------- */

static cpu_item *item_at(cpu_queue *queue, uint64_t granule) {
  return (cpu_item *)(void *)(queue->ring + granule % CPU_RING_GRANULES * CPU_GRANULE);
}

/* Removes the item at the tail, which is done. */
static void consume(cpu_queue *queue, const cpu_item *item) {
  const bool counts = item->operation != CPU_SKIP;
  const uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed) + item->granules;
  assert(item->granules > 0 && item->granules <= CPU_RING_GRANULES);
  assert(tail <= atomic_load_explicit(&queue->head, memory_order_relaxed));
  atomic_store_explicit(&queue->tail, tail, memory_order_release);
  if (counts) cpu_timeline_advance(&queue->timeline, ++queue->completed);
}

/* A timeline of another device needs that device. */
static void begin_use(const cpu_queue *queue, cpu_device *device, const rondo_device_use *use) {
  if (device != queue->device) rondo_device_begin_use(&device->base, use);
}
static void end_use(const cpu_queue *queue, cpu_device *device, const rondo_device_use *use) {
  if (device != queue->device) rondo_device_end_use(&device->base, use);
}

void cpu_queue_begin_wait(const cpu_queue *queue, cpu_item *item, cpu_point point) {
  begin_use(queue, point.timeline->device, &rondo_wait_use);
  cpu_timeline_retain(point.timeline);
  item->as.wait = point;
}

static void end_wait(const cpu_queue *queue, const cpu_item *item) {
  cpu_device *device = item->as.wait.timeline->device;
  cpu_timeline_release(item->as.wait.timeline);
  end_use(queue, device, &rondo_wait_use);
}

/* Waits for a point. False if the queue was set aside: then it must not be used any more. Another thread may have
 * resumed it and ended the wait, before this one has left the timeline. */
static bool pass(cpu_queue *queue, const cpu_item *item) {
  cpu_point_begin(item->as.wait);
  const cpu_point point = cpu_point_now(item->as.wait);
  if (cpu_point_reached(point)) return true;
  cpu_device *const device = point.timeline->device;
  queue->waiter = (cpu_waiter){.target = point.value, .queue = queue};
  begin_use(queue, device, &rondo_brief_use);
  atomic_fetch_add(&queue->visitors, 1);
  atomic_store(&queue->owner, CPU_BLOCKED);
  const bool is_passed = cpu_timeline_pass_or_wait(point.timeline, &queue->waiter);
  end_use(queue, device, &rondo_brief_use);
  if (is_passed) atomic_store(&queue->owner, CPU_OWNED);
  atomic_fetch_sub(&queue->visitors, 1);
  return is_passed;
}

static void count_kernels(cpu_participant *self, uint64_t kernels) {
  const uint64_t before = atomic_load_explicit(&self->kernels, memory_order_relaxed);
  atomic_store_explicit(&self->kernels, before + kernels, memory_order_relaxed);
}

static const char *name_of_work(const cpu_item *item) {
  const char *const wrapped = cpu_checking.name_of(item->as.work.function, item->as.work.args);
  if (wrapped != NULL) return wrapped;
  if (item->operation == CPU_KERNEL) return item->name_at != 0 ? (const char *)item + item->name_at : "kernel";
  if (item->as.work.function == cpu_run_copy) return "copy";
  if (item->as.work.function == cpu_run_fill) return "fill";
  const cpu_host_work *host = item->as.work.args[0];
  return host->name[0] != '\0' ? host->name : "host function";
}

static void run_work(cpu_queue *queue, cpu_participant *self, const cpu_item *item) {
  const bool traced = rondo_trace_on();
  if (__builtin_expect(traced, 0)) rondo_trace_here(RONDO_TRACE_BEGIN, "stream", name_of_work(item));
  cpu_grid_run(self, queue, item->as.work.function, item->as.work.args, item->as.work.blocks, NULL);
  if (__builtin_expect(traced, 0)) rondo_trace_here(RONDO_TRACE_END, "stream", name_of_work(item));
}

static void run_stores(const cpu_item *item, uint32_t count) {
  const cpu_store *stores = (const cpu_store *)(const void *)(item + 1);
  for (uint32_t i = 0; i < count; i++) memcpy(stores[i].site, &stores[i].value, sizeof stores[i].value);
}

static inline void begin_graph(cpu_participant *self, cpu_executable *executable, const cpu_item *item) {
  if (item->as.graph.changes != NULL) cpu_executable_apply(executable, item->as.graph.changes);
  if (item->as.graph.store_count > 0) run_stores(item, item->as.graph.store_count);
  count_kernels(self, executable->kernel_count);
}

static bool run_graph(cpu_queue *queue, cpu_participant *self, cpu_item *item) {
  cpu_executable *executable = item->as.graph.executable;
  begin_graph(self, executable, item);
  return cpu_executable_run(executable, queue, self, item);
}

static bool run_checked_graph(cpu_queue *queue, cpu_participant *self, cpu_item *item) {
  cpu_executable *executable = item->as.graph.executable;
  begin_graph(self, executable, item);
  return cpu_checking.explore(executable, queue) || cpu_executable_run(executable, queue, self, item);
}

/* False if the queue was set aside. */
static bool run_item(cpu_queue *queue, cpu_participant *self, cpu_item *item) {
  switch ((cpu_operation)item->operation) {
    case CPU_KERNEL:
      count_kernels(self, 1);
      run_work(queue, self, item);
      return true;
    case CPU_WORK:
      run_work(queue, self, item);
      return true;
    case CPU_WAIT:
      if (!pass(queue, item)) return false;
      cpu_point_settle(item->as.wait, queue);
      end_wait(queue, item);
      return true;
    case CPU_STAMP:
      cpu_event_stamp(item->as.stamp.event, item->as.stamp.serial);
      cpu_event_release(item->as.stamp.event);
      return true;
    case CPU_GRAPH:
      return run_graph(queue, self, item);
    case CPU_CHECKED_GRAPH:
      return run_checked_graph(queue, self, item);
    case CPU_STORES:
      run_stores(item, item->as.store_count);
      return true;
    case CPU_SKIP:
      return true;
  }
  return true;
}

/* Runs the items that are in the queue now. False if it was set aside. */
static bool run_batch(cpu_queue *queue, cpu_participant *self, uint64_t budget) {
  const uint64_t head = atomic_load(&queue->head);
  uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
  for (self->drained = 0; self->drained < budget && tail != head; self->drained++) {
    cpu_item *item = item_at(queue, tail);
    if (!run_item(queue, self, item)) return false;
    consume(queue, item);
    tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
  }
  return true;
}

/* Notes who runs the queue, as a hint for the next launch. */
static void note_runner(cpu_queue *queue, const cpu_participant *self) {
  const uint32_t before = atomic_load_explicit(&queue->hosted, memory_order_relaxed);
  const bool is_host = self->index >= queue->device->pool.worker_count;
  const uint32_t now = is_host ? before + (before < CPU_HABIT) : 0;
  if (now != before) atomic_store_explicit(&queue->hosted, now, memory_order_relaxed);
}

/* An attached worker runs what was published since then. If the worker detached while the queue was owned here, it left
 * this to the owner. */
bool cpu_queue_drain(cpu_queue *queue, cpu_participant *self, uint64_t budget) {
  uint32_t expected = CPU_FREE;
  if (!atomic_compare_exchange_strong(&queue->owner, &expected, CPU_OWNED)) return false;
  note_runner(queue, self);
  if (!run_batch(queue, self, budget)) return true;
  atomic_store(&queue->owner, CPU_FREE);
  if (self->watched != queue && atomic_load(&queue->attached) == CPU_DETACHED && cpu_queue_pending(queue))
    cpu_queue_schedule(queue);
  return true;
}

void cpu_queue_resume(cpu_queue *queue) {
  atomic_fetch_add(&queue->visitors, 1); /* after it is free, its user may wait for it, and destroy it and its device */
  atomic_store(&queue->owner, CPU_FREE);
  if (atomic_load(&queue->attached) == CPU_DETACHED) cpu_queue_schedule(queue);
  atomic_fetch_sub(&queue->visitors, 1);
}

void cpu_queue_finish_graph(cpu_queue *queue) {
  cpu_queue_retain(queue);
  consume(queue, item_at(queue, atomic_load_explicit(&queue->tail, memory_order_relaxed)));
  cpu_queue_resume(queue);
  cpu_queue_release(queue);
}

/* Whether its user has waited for the last launches, and is expected to do so again. */
static bool is_left_to_host(const cpu_queue *queue) {
  return atomic_load_explicit(&queue->hosted, memory_order_relaxed) == CPU_HABIT &&
         cpu_pool_leaves_to_host(&queue->device->pool);
}

void cpu_queue_schedule(cpu_queue *queue) {
  uint32_t expected = CPU_DETACHED;
  if (!atomic_compare_exchange_strong(&queue->attached, &expected, CPU_SCHEDULED)) return;
  cpu_pool *pool = &queue->device->pool;
  const uint32_t word = queue->slot / 64;
  atomic_fetch_or(&pool->ready[word], UINT64_C(1) << queue->slot % 64);
  atomic_fetch_or(&pool->ready_summary, UINT64_C(1) << word);
  if (rondo_sleepers_exist(&pool->sleepers) && !is_left_to_host(queue))
    cpu_pool_wake(pool);
  else
    (void)cpu_queue_wake_waiters(queue);
}

/* The producer's side --------------------------------------------------------------------------------------------- */

/* Whether the ring has capacity for `granules` after `head`. */
static bool has_room(cpu_queue *queue, uint64_t head, uint64_t granules) {
  queue->tail_seen = atomic_load_explicit(&queue->tail, memory_order_acquire);
  return head + granules - queue->tail_seen <= CPU_RING_GRANULES;
}

/* Waits until there is capacity, and meanwhile helps with the work. Sleeps only if an item will be consumed that is no
 * skip. */
static void make_room(cpu_queue *queue, uint64_t head, uint64_t granules, bool sleeps) {
  cpu_pool *pool = &queue->device->pool;
  cpu_backoff backoff = {0};
  cpu_participant *self = cpu_pool_join(pool);
  for (;;) {
    /* This is read before the tail, so an item that is consumed after the check of the tail ends the sleep. (A skip
     * does not, but the item after it does.) */
    const uint64_t completed = atomic_load_explicit(&queue->timeline.value, memory_order_acquire);
    if (has_room(queue, head, granules)) break;
    if (self != NULL && cpu_queue_pending(queue) && cpu_queue_drain(queue, self, CPU_BUDGET)) continue;
    const uint32_t signal = atomic_load(&queue->timeline.signal);
    if (cpu_backoff_step(&backoff, sleeps ? pool : NULL)) cpu_timeline_sleep(&queue->timeline, completed + 1, signal);
  }
  cpu_pool_leave(pool, self);
}

static inline cpu_item *put_item(cpu_queue *queue, cpu_operation operation, uint64_t head, uint64_t granules) {
  cpu_item *item = item_at(queue, head);
  item->operation = (uint16_t)operation;
  item->granules = (uint16_t)granules;
  item->name_at = 0;
  return item;
}

/* An item and the skip before it that together exceed the ring: all before the skip is consumed, then the skip. */
static __attribute__((noinline)) cpu_item *begin_large(cpu_queue *queue, cpu_operation operation, uint64_t head,
                                                       uint64_t skip, uint64_t granules, uint64_t *out_head) {
  make_room(queue, head, CPU_RING_GRANULES, true);
  (void)put_item(queue, CPU_SKIP, head, skip);
  head += skip;
  atomic_store(&queue->head, head);
  if (atomic_load(&queue->attached) == CPU_DETACHED) cpu_queue_schedule(queue);
  make_room(queue, head, granules, false);
  *out_head = head + granules;
  return put_item(queue, operation, head, granules);
}

/* Returns memory for an item of `bytes`, which publish enqueues. Items do not wrap around: a skip fills the end of the
 * ring. It is inline for launches, whose size is a constant. */
__attribute__((always_inline)) static inline cpu_item *begin_item(cpu_queue *queue, cpu_operation operation,
                                                                  size_t bytes, uint64_t *out_head) {
  uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
  const uint64_t granules = (bytes + CPU_GRANULE - 1) / CPU_GRANULE;
  const uint64_t to_end = CPU_RING_GRANULES - head % CPU_RING_GRANULES;
  const uint64_t skip = to_end < granules ? to_end : 0;
  if (head + skip + granules - queue->tail_seen > CPU_RING_GRANULES) {
    if (skip + granules > CPU_RING_GRANULES) return begin_large(queue, operation, head, skip, granules, out_head);
    make_room(queue, head, skip + granules, true);
  }
  if (skip > 0) {
    (void)put_item(queue, CPU_SKIP, head, skip);
    head += skip;
  }
  assert(granules > 0 && head + granules - queue->tail_seen <= CPU_RING_GRANULES);
  *out_head = head + granules;
  return put_item(queue, operation, head, granules);
}

static void publish(cpu_queue *queue, uint64_t head) {
  assert(head > atomic_load_explicit(&queue->head, memory_order_relaxed));
  const uint64_t submitted = atomic_load_explicit(&queue->submitted, memory_order_relaxed) + 1;
  atomic_store_explicit(&queue->submitted, submitted, memory_order_relaxed);
  atomic_store(&queue->head, head);
  /* The consumer read this cache line one lap ago. With the prefetch it is back when it is written. */
  rondo_prefetch_for_write(item_at(queue, head + PREFETCH_GRANULES));
  if (atomic_load(&queue->attached) == CPU_DETACHED) cpu_queue_schedule(queue);
}

cpu_item *cpu_queue_begin(cpu_queue *queue, cpu_operation operation, size_t bytes, uint64_t *out_head) {
  return begin_item(queue, operation, bytes, out_head);
}

void cpu_queue_publish(cpu_queue *queue, uint64_t head) { publish(queue, head); }

static void keep_name(cpu_item *item, size_t name_at, const char *name) {
  item->name_at = (uint32_t)name_at;
  (void)snprintf((char *)item + name_at, NAME_BYTES, "%s", name);
}

/* `gets_block` is a constant where this is inlined, so that other launches do not pay for it. */
__attribute__((always_inline)) static inline rondo_status submit_kernel_as(cpu_queue *queue,
                                                                           const rondo_node_params *params,
                                                                           bool gets_block) {
  const rondo_kernel_node *work = &params->as.kernel;
  const rondo_kernel *kernel = work->kernel;
  const size_t values_at =
      cpu_align(sizeof(cpu_item) + (kernel->parameter_count + gets_block) * sizeof(void *), CPU_GRANULE);
  const size_t name_at = values_at + (gets_block ? cpu_value_bytes(kernel) : kernel->argument_bytes);
  const bool traced = rondo_trace_on();
  uint64_t head;
  cpu_item *item = begin_item(queue, CPU_KERNEL, name_at + (traced ? NAME_BYTES : 0), &head);
  if (__builtin_expect(traced, 0)) keep_name(item, name_at, params->name != NULL ? params->name : kernel->name);
  void **args = (void **)(void *)(item + 1);
  cpu_copy_arguments(work, args, (unsigned char *)item + values_at);
  item->as.work.function = kernel->cpu;
  item->as.work.args = args;
  if (gets_block)
    item->as.work.function =
        cpu_prepare_block(queue->device, work, args, (unsigned char *)item + values_at, &item->as.work.args);
  item->as.work.blocks = cpu_kernel_blocks(work);
  publish(queue, head);
  return RONDO_OK;
}

static __attribute__((noinline)) rondo_status submit_block_kernel(cpu_queue *queue, const rondo_node_params *params) {
  return submit_kernel_as(queue, params, true);
}

static rondo_status submit_kernel(cpu_queue *queue, const rondo_node_params *params) {
  if (__builtin_expect(params->as.kernel.kernel->cpu == NULL, 0)) return submit_block_kernel(queue, params);
  return submit_kernel_as(queue, params, false);
}

/* An item with a copy of the description's data, which is its only argument and is returned. */
static void *begin_described(cpu_queue *queue, cpu_description described, uint64_t *out_head) {
  const size_t data_at = sizeof(cpu_item) + sizeof(void *);
  cpu_item *item = begin_item(queue, CPU_WORK, data_at + described.bytes, out_head);
  void **args = (void **)(void *)(item + 1);
  args[0] = memcpy((unsigned char *)item + data_at, described.data, described.bytes);
  item->as.work.function = described.function;
  item->as.work.args = args;
  item->as.work.blocks = cpu_all_blocks(described.blocks);
  return args[0];
}

static void submit_described(cpu_queue *queue, const rondo_node_params *params) {
  uint64_t head;
  (void)begin_described(queue, cpu_describe(params), &head);
  publish(queue, head);
}

typedef struct named_host_work {
  cpu_host_work work;
  cpu_queue *queue;
  char name[NAME_BYTES];
} named_host_work;

static void submit_host(cpu_queue *queue, const rondo_node_params *params) {
  named_host_work host = {.work = {.host = params->as.host}, .queue = queue};
  if (params->name != NULL) (void)snprintf(host.name, sizeof host.name, "%s", params->name);
  uint64_t head;
  named_host_work *kept = begin_described(queue, (cpu_description){cpu_run_host, 1, &host, sizeof host}, &head);
  kept->work.name = kept->name;
  kept->work.queue = &kept->queue;
  publish(queue, head);
}

static void submit_wait(cpu_queue *queue, cpu_point point) {
  uint64_t head;
  cpu_item *item = begin_item(queue, CPU_WAIT, sizeof *item, &head);
  cpu_queue_begin_wait(queue, item, point);
  publish(queue, head);
}

/* The wait keeps the batch. */
rondo_status cpu_queue_submit_operations(cpu_queue *queue, const rondo_memory_operations_node *work) {
  rondo_device_event *event;
  RONDO_TRY(cpu_operations_make(queue->device, work, true, &event));
  submit_wait(queue, ((cpu_event *)event)->point);
  event->ops->destroy(event);
  return RONDO_OK;
}

static rondo_status queue_submit(rondo_queue *base, const rondo_node_params *params) {
  cpu_queue *queue = (cpu_queue *)base;
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      return submit_kernel(queue, params);
    case RONDO_NODE_COPY:
    case RONDO_NODE_FILL:
      submit_described(queue, params);
      return RONDO_OK;
    case RONDO_NODE_MEMORY_OPERATIONS:
      return cpu_queue_submit_operations(queue, &params->as.memory_operations);
    default:
      assert(params->kind == RONDO_NODE_HOST); /* the public calls enqueue no other kinds */
      submit_host(queue, params);
      return RONDO_OK;
  }
}

static rondo_status queue_wait(rondo_queue *base, rondo_device_event *event) {
  cpu_queue *queue = (cpu_queue *)base;
  const cpu_point point = ((cpu_event *)event)->point;
  const bool is_over = point.value != CPU_AS_ASKED && cpu_point_reached(point);
  if (!is_over && point.timeline != &queue->timeline) submit_wait(queue, point);
  return RONDO_OK;
}

static rondo_status queue_record(rondo_queue *base, rondo_device_event *base_event) {
  cpu_queue *queue = (cpu_queue *)base;
  cpu_event *event = (cpu_event *)base_event;
  event->records++;
  if (event->base.timing) {
    uint64_t head;
    cpu_item *item = begin_item(queue, CPU_STAMP, sizeof *item, &head);
    cpu_event_retain(event);
    item->as.stamp.event = event;
    item->as.stamp.serial = event->records;
    publish(queue, head);
  }
  cpu_point_set(&event->point, &queue->timeline, atomic_load_explicit(&queue->submitted, memory_order_relaxed));
  return RONDO_OK;
}

/* Bindings of runs that are over. If no launch is running, nobody gives any back meanwhile. */
static cpu_bindings *take_spent(cpu_executable *executable) {
  if (!cpu_point_reached(executable->last)) return atomic_exchange(&executable->spent_bindings, NULL);
  cpu_bindings *const spent = atomic_load_explicit(&executable->spent_bindings, memory_order_relaxed);
  atomic_store_explicit(&executable->spent_bindings, NULL, memory_order_relaxed);
  return spent;
}

/* The points that event-wait nodes of this launch wait for: those that are recorded now. */
static rondo_status bind_waits(cpu_executable *executable, cpu_bindings **out) {
  *out = NULL;
  if (executable->wait_count == 0) return RONDO_OK;
  if (executable->free_bindings == NULL) executable->free_bindings = take_spent(executable);
  cpu_bindings *bindings = executable->free_bindings;
  if (bindings != NULL) {
    executable->free_bindings = bindings->next;
  } else {
    void *memory;
    RONDO_TRY(rondo_allocate(&executable->device->base.allocator, 1,
                             sizeof *bindings + executable->wait_count * sizeof(cpu_point), &memory));
    bindings = memory;
  }
  for (uint32_t i = 0; i < executable->wait_count; i++) {
    const cpu_point point = executable->details[executable->wait_nodes[i]].event->point;
    cpu_point_set(&bindings->points[i], point.timeline, point.value);
  }
  *out = bindings;
  return RONDO_OK;
}

/* The changes since the last launch. They are applied at once if no launch is running, else enqueued with this launch.
 */
static cpu_change_list *take_changes(cpu_executable *executable) {
  cpu_change_list *changes = executable->changes;
  executable->changes = NULL;
  if (changes == NULL || !cpu_point_reached(executable->last)) return changes;
  cpu_executable_apply(executable, changes);
  return NULL;
}

/* Changes of inputs that are turned into stores. */
typedef struct store_source {
  const cpu_executable *executable;
  const rondo_patch_change *change; /* the next one */
  size_t site;                      /* the next site of it */
  size_t left;                      /* how many stores are left */
} store_source;

static store_source stores_of(const cpu_executable *executable, const rondo_patch_change *changes, size_t count) {
  store_source source = {.executable = executable, .change = changes};
  for (size_t i = 0; i < count; i++) source.left += changes[i].count;
  return source;
}

/* The address of a site, as the caller's side last set its node. The storage of kernels, copies and fills begins with
 * the addresses of their values. */
static void *find_site(const cpu_executable *executable, const rondo_patch_site *site) {
  void *const *values = executable->details[site->node].storage;
  switch (executable->details[site->node].kind) {
    case RONDO_NODE_KERNEL:
      return (unsigned char *)values[site->parameter] + site->offset;
    case RONDO_NODE_COPY:
      return site->parameter == RONDO_SITE_DST ? (void *)&((rondo_copy *)values[0])->dst
                                               : (void *)&((rondo_copy *)values[0])->src;
    default:
      return &((rondo_fill *)values[0])->dst;
  }
}

/* Writes the next `count` stores after the item. */
static void put_stores(store_source *source, cpu_item *item, uint32_t count) {
  cpu_store *stores = (cpu_store *)(void *)(item + 1);
  source->left -= count;
  for (uint32_t i = 0; i < count; i++) {
    while (source->site == source->change->count) {
      source->change++;
      source->site = 0;
    }
    const rondo_patch_site *site = &source->change->sites[source->site++];
    stores[i] = (cpu_store){find_site(source->executable, site), source->change->address + site->addend};
  }
}

/* Enqueues items for the stores that do not fit into the item of the graph. */
static void submit_stores(cpu_queue *queue, store_source *source) {
  while (source->left > CPU_MOST_STORES) {
    uint64_t head;
    cpu_item *item = begin_item(queue, CPU_STORES, sizeof *item + CPU_MOST_STORES * sizeof(cpu_store), &head);
    item->as.store_count = CPU_MOST_STORES;
    put_stores(source, item, CPU_MOST_STORES);
    publish(queue, head);
  }
}

/* Enqueues a graph. `source` is NULL if no inputs move. It is inline so that most launches, which have neither waits
 * nor changes, do not pay for them. */
__attribute__((always_inline)) static inline void submit_graph(cpu_queue *queue, cpu_executable *executable,
                                                               cpu_operation operation, cpu_bindings *bindings,
                                                               store_source *source) {
  cpu_change_list *changes = take_changes(executable);
  if (executable->last.timeline != &queue->timeline && !cpu_point_reached(executable->last))
    submit_wait(queue, executable->last);
  executable->launches++;
  for (uint32_t i = 0; i < executable->record_count; i++) {
    const cpu_node_detail *detail = &executable->details[executable->record_nodes[i]];
    cpu_event_record_at(detail->event, detail->timeline, executable->launches);
  }
  if (source != NULL) submit_stores(queue, source);
  const size_t stores = source != NULL ? source->left : 0;
  uint64_t head;
  cpu_item *item = begin_item(queue, operation, sizeof *item + stores * sizeof(cpu_store), &head);
  item->as.graph.executable = executable;
  item->as.graph.changes = changes;
  item->as.graph.bindings = bindings;
  item->as.graph.store_count = (uint32_t)stores;
  if (source != NULL) put_stores(source, item, (uint32_t)stores);
  atomic_store_explicit(&queue->launches, atomic_load_explicit(&queue->launches, memory_order_relaxed) + 1,
                        memory_order_relaxed);
  cpu_point_set(&executable->last, &queue->timeline, atomic_load_explicit(&queue->submitted, memory_order_relaxed) + 1);
  publish(queue, head);
}

static rondo_status launch_as(rondo_queue *queue, rondo_executable *base, cpu_operation operation,
                              const rondo_patch_change *moved, size_t moved_count) {
  cpu_executable *executable = (cpu_executable *)base;
  cpu_bindings *bindings;
  RONDO_TRY(bind_waits(executable, &bindings));
  store_source source = stores_of(executable, moved, moved_count);
  submit_graph((cpu_queue *)queue, executable, operation, bindings, &source);
  return RONDO_OK;
}

static rondo_status queue_launch(rondo_queue *queue, rondo_executable *base) {
  cpu_executable *executable = (cpu_executable *)base;
  if (executable->wait_count > 0) return launch_as(queue, base, CPU_GRAPH, NULL, 0);
  submit_graph((cpu_queue *)queue, executable, CPU_GRAPH, NULL, NULL);
  return RONDO_OK;
}

rondo_status cpu_queue_launch_checked(rondo_queue *queue, rondo_executable *executable) {
  return launch_as(queue, executable, CPU_CHECKED_GRAPH, NULL, 0);
}

static rondo_status queue_launch_patched(rondo_queue *queue, rondo_executable *executable,
                                         const rondo_patch_change *changes, size_t count) {
  return launch_as(queue, executable, CPU_GRAPH, changes, count);
}

rondo_status cpu_queue_launch_patched_checked(rondo_queue *queue, rondo_executable *executable,
                                              const rondo_patch_change *changes, size_t count) {
  return launch_as(queue, executable, CPU_CHECKED_GRAPH, changes, count);
}

/* Waiting --------------------------------------------------------------------------------------------------------- */

static rondo_status queue_await(rondo_queue *base) {
  cpu_queue *queue = (cpu_queue *)base;
  cpu_queue_await(queue, atomic_load_explicit(&queue->submitted, memory_order_relaxed));
  return RONDO_OK;
}

static rondo_status queue_synchronize(rondo_queue *base) {
  cpu_queue *queue = (cpu_queue *)base;
  cpu_queue_await(queue, atomic_load_explicit(&queue->submitted, memory_order_relaxed));
  return rondo_first_failure_take(&queue->failure);
}

static rondo_status queue_query(rondo_queue *base) {
  cpu_queue *queue = (cpu_queue *)base;
  const uint64_t target = atomic_load_explicit(&queue->submitted, memory_order_relaxed);
  if (atomic_load_explicit(&queue->timeline.value, memory_order_acquire) < target) return RONDO_NOT_READY;
  return rondo_first_failure_take(&queue->failure);
}

/* Life ------------------------------------------------------------------------------------------------------------ */

cpu_queue *cpu_queue_with(cpu_timeline *timeline) {
  return timeline->release == free_struct ? queue_with(timeline) : NULL;
}

void cpu_queue_retain(cpu_queue *queue) { cpu_timeline_retain(&queue->timeline); }
void cpu_queue_release(cpu_queue *queue) { cpu_timeline_release(&queue->timeline); }

/* Takes a scheduled queue back from the pool. False if a worker has it, or if it is not there yet. */
static bool unschedule(cpu_queue *queue) {
  const uint64_t bit = UINT64_C(1) << queue->slot % 64;
  return (atomic_fetch_and(&queue->device->pool.ready[queue->slot / 64], ~bit) & bit) != 0;
}

void cpu_queue_await_visitors(cpu_queue *queue) {
  cpu_backoff backoff = {0};
  while (atomic_load(&queue->visitors) != 0) (void)cpu_backoff_step(&backoff, NULL);
}

/* Waits until no worker can come to the queue any more. Does not wait for a worker to be idle. */
static void retire(cpu_queue *queue) {
  cpu_backoff backoff = {0};
  atomic_store(&queue->detach, true);
  for (;;) {
    uint32_t expected = CPU_DETACHED;
    if (atomic_compare_exchange_strong(&queue->attached, &expected, CPU_DEAD)) break;
    if (expected == CPU_SCHEDULED && unschedule(queue)) {
      atomic_store(&queue->attached, CPU_DEAD);
      break;
    }
    (void)cpu_backoff_step(&backoff, NULL);
  }
  while (atomic_load(&queue->owner) != CPU_FREE) (void)cpu_backoff_step(&backoff, NULL);
  cpu_queue_await_visitors(queue);
}

void cpu_queue_check(const cpu_queue *queue) {
#ifdef NDEBUG
  (void)queue;
#else
  assert(queue->slot < CPU_MAX_QUEUES && queue->ring != NULL);
  assert(atomic_load(&queue->owner) == CPU_FREE);
  assert(atomic_load(&queue->head) == atomic_load(&queue->tail));
  assert(queue->tail_seen <= atomic_load(&queue->tail));
  assert(queue->completed == atomic_load(&queue->submitted));
  assert(queue->completed == atomic_load(&queue->timeline.value));
  assert(atomic_load(&queue->launches) <= queue->completed);
  assert(!atomic_load(&queue->runs));
  assert(atomic_load(&queue->hosted) <= CPU_HABIT);
#endif
}

static rondo_status queue_destroy(rondo_queue *base) {
  cpu_queue *queue = (cpu_queue *)base;
  cpu_device *device = queue->device;
  const rondo_status status = queue_synchronize(base);
  cpu_queue_leave_shared(queue);
  retire(queue);
  cpu_queue_check(queue);
  pthread_mutex_lock(&device->lock);
  atomic_store(&device->queues[queue->slot], NULL);
  device->launches_of_dead_queues += atomic_load_explicit(&queue->launches, memory_order_relaxed);
  pthread_mutex_unlock(&device->lock);
  rondo_release(&device->base.allocator, queue->ring, CPU_RING_GRANULES, CPU_GRANULE);
  queue->ring = NULL;
  cpu_queue_release(queue);
  return status;
}

static void *queue_native(rondo_queue *base) { return (void *)(uintptr_t)((const cpu_queue *)base)->number; }

const rondo_queue_ops cpu_queue_ops = {
    .destroy = queue_destroy,
    .submit = queue_submit,
    .record = queue_record,
    .wait = queue_wait,
    .launch = queue_launch,
    .launch_patched = queue_launch_patched,
    .synchronize = queue_synchronize,
    .await = queue_await,
    .query = queue_query,
    .native = queue_native,
};

static rondo_status enter_table(cpu_device *device, cpu_queue *queue) {
  uint32_t slot = 0;
  pthread_mutex_lock(&device->lock);
  while (slot < CPU_MAX_QUEUES && atomic_load_explicit(&device->queues[slot], memory_order_relaxed) != NULL) slot++;
  if (slot < CPU_MAX_QUEUES) {
    assert(atomic_load(&queue->attached) == CPU_DETACHED);
    queue->slot = slot;
    atomic_store(&device->queues[slot], queue);
  }
  pthread_mutex_unlock(&device->lock);
  if (slot < CPU_MAX_QUEUES) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "device '%s' has the maximum of %d streams: destroy one first", device->base.name, CPU_MAX_QUEUES);
}

/* Not among the handles that mean a default stream to other drivers. */
static uint64_t next_number(void) {
  static _Atomic uint64_t last = 0xffff;
  return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static rondo_status make_queue(cpu_device *device, const char *label, cpu_queue **out) {
  rondo_device *base = &device->base;
  void *memory, *ring;
  RONDO_TRY(rondo_allocate_aligned(&base->allocator, CPU_RING_GRANULES, CPU_GRANULE, CPU_GRANULE, &ring));
  rondo_status status = rondo_allocate_aligned(&base->allocator, 1, sizeof(cpu_queue), RONDO_CACHE_LINE, &memory);
  if (status == RONDO_OK) {
    cpu_queue *queue = memory;
    queue->base = (rondo_queue){.ops = &base->tables.queue, .device = base};
    queue->device = device;
    queue->number = next_number();
    queue->ring = ring;
    (void)snprintf(queue->label, sizeof queue->label, "%s", label);
    cpu_timeline_init(&queue->timeline, device, free_struct);
    status = enter_table(device, queue);
    if (status == RONDO_OK) {
      *out = queue;
      return RONDO_OK;
    }
    rondo_release(&base->allocator, queue, 1, sizeof *queue);
  }
  rondo_release(&base->allocator, ring, CPU_RING_GRANULES, CPU_GRANULE);
  return status;
}

rondo_status cpu_queue_create(rondo_device *device, const char *label, const rondo_queue_options *options,
                              rondo_queue **out) {
  static const rondo_queue_options defaults;
  cpu_queue *queue;
  *out = NULL;
  if (options == NULL) options = &defaults;
  if (options->priority != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s cannot have the priority %d: device '%s' has 0 alone", label, (int)options->priority,
                      device->name);
  RONDO_TRY(make_queue((cpu_device *)device, label, &queue));
  const rondo_status status = options->adopts ? cpu_queue_share(queue, options->native) : RONDO_OK;
  if (status == RONDO_OK)
    *out = &queue->base;
  else
    rondo_status_ignore(queue_destroy(&queue->base), "it has no work");
  return status;
}
