/* SPDX-License-Identifier: MIT
 * Making, changing and freeing executables.
 *
 * An executable has two sides: the caller's (details, changes, last) and the side that runs it (nodes, names, the state
 * of a run). A change that is made while no launch is running takes effect at once. Otherwise it is enqueued with the
 * next launch, and earlier launches run unchanged (U1). After a change was applied, the caller's side frees what it
 * replaced. An executable that is destroyed while launches run goes to the device's zombies and is freed after its last
 * launch.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "device/cpu/cpu_checking.h"
#include "device/cpu/cpu_event.h"
#include "device/cpu/cpu_executable.h"
#include "device/cpu/cpu_operations.h"
#include "device/cpu/cpu_run.h"
#include "device/cpu/cpu_shared_memory.h"
#include "device/cpu/cpu_timeline.h"
#include "device/cpu/cpu_wait.h"
#include "device/cpu/cpu_work.h"
#include "graph/node_name.h"

static const rondo_allocator *allocator_of(const cpu_executable *executable) {
  return &executable->device->base.allocator;
}

/* Details --------------------------------------------------------------------------------------------------------- */

/* The storage of a node: `addresses` addresses of arguments, then `bytes` at *out_data, then its name. On a checking
 * device, cpu_checking.node_bytes follow. */
static rondo_status make_storage(cpu_executable *executable, cpu_node_detail *detail, size_t addresses, size_t bytes,
                                 void **out_data) {
  const size_t data_at = cpu_align(addresses * sizeof(void *), CPU_GRANULE), name_at = data_at + bytes;
  const size_t name_bytes = strlen(detail->name) + 1;
  const bool checked = executable->device->check != NULL;
  const size_t whole =
      checked ? cpu_align(name_at + name_bytes, CPU_GRANULE) + cpu_checking.node_bytes : name_at + name_bytes;
  void *memory;
  RONDO_TRY(rondo_allocate_aligned(allocator_of(executable), 1, whole, CPU_GRANULE, &memory));
  detail->storage = memory;
  detail->storage_bytes = whole;
  detail->node.args = memory;
  detail->name = memcpy((unsigned char *)memory + name_at, detail->name, name_bytes);
  *out_data = (unsigned char *)memory + data_at;
  return RONDO_OK;
}

/* Kernels of other devices made the shared memory of those. */
static rondo_status make_kernel(cpu_executable *executable, cpu_node_detail *detail, const rondo_kernel_node *work) {
  const rondo_kernel *kernel = work->kernel;
  void *values;
  if (kernel->cpu_block != NULL) RONDO_TRY(cpu_shared_memory_make(executable->device));
  RONDO_TRY(make_storage(executable, detail, cpu_address_count(kernel), cpu_value_bytes(kernel), &values));
  detail->node.function = cpu_prepare_kernel(executable->device, work, detail->storage, values, &detail->node.args);
  detail->node.blocks = cpu_kernel_blocks(work);
  return RONDO_OK;
}

static rondo_status make_described(cpu_executable *executable, cpu_node_detail *detail, cpu_description described) {
  void *data;
  RONDO_TRY(make_storage(executable, detail, 1, described.bytes, &data));
  memcpy(data, described.data, described.bytes);
  ((void **)detail->storage)[0] = data;
  detail->node.function = described.function;
  detail->node.blocks = cpu_all_blocks(described.blocks);
  return RONDO_OK;
}

static rondo_status make_record(cpu_executable *executable, cpu_node_detail *detail) {
  void *data;
  RONDO_TRY(make_storage(executable, detail, 2, 0, &data));
  RONDO_TRY(cpu_timeline_create(detail->event->device, &detail->timeline)); /* the event keeps it */
  detail->timeline->stamped = detail->event->base.timing;
  ((void **)detail->storage)[0] = detail->timeline;
  ((void **)detail->storage)[1] = executable;
  detail->node.function = cpu_run_record;
  return RONDO_OK;
}

static rondo_status make_host(cpu_executable *executable, cpu_node_detail *detail, const rondo_node_params *params) {
  const cpu_host_work work = {params->as.host, NULL, true, detail->where, &executable->queue};
  RONDO_TRY(make_described(executable, detail, (cpu_description){cpu_run_host, 1, &work, sizeof work}));
  cpu_host_work *kept = ((void **)detail->storage)[0];
  kept->name = detail->name;
  return RONDO_OK;
}

/* A wait, which runs the operations when it begins. */
static rondo_status make_operations(cpu_executable *executable, cpu_node_detail *detail,
                                    const rondo_memory_operations_node *node) {
  rondo_device_event *event;
  void *unused;
  RONDO_TRY(make_storage(executable, detail, 0, 0, &unused));
  RONDO_TRY(cpu_operations_make(executable->device, node, false, &event));
  detail->event = (cpu_event *)event;
  return RONDO_OK;
}

static bool is_wait_kind(rondo_node_kind kind) {
  return kind == RONDO_NODE_EVENT_WAIT || kind == RONDO_NODE_MEMORY_OPERATIONS;
}

static rondo_status make_node(cpu_executable *executable, cpu_node_detail *detail, const rondo_node_params *params) {
  void *unused;
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      return make_kernel(executable, detail, &params->as.kernel);
    case RONDO_NODE_COPY:
    case RONDO_NODE_FILL:
      return make_described(executable, detail, cpu_describe(params));
    case RONDO_NODE_HOST:
      return make_host(executable, detail, params);
    case RONDO_NODE_EVENT_RECORD:
      return make_record(executable, detail);
    case RONDO_NODE_MEMORY_OPERATIONS:
      return make_operations(executable, detail, &params->as.memory_operations);
    default: /* empty, alloc, free; an event wait is over before its task runs */
      return make_storage(executable, detail, 0, 0, &unused);
  }
}

static void free_detail(cpu_executable *executable, cpu_node_detail *detail) {
  rondo_node_where_free(allocator_of(executable), &detail->where);
  rondo_release(allocator_of(executable), detail->storage, 1, detail->storage_bytes);
  if (detail->event != NULL) cpu_event_release(detail->event);
  cpu_timeline_release(detail->timeline);
  *detail = (cpu_node_detail){0};
}

/* Nothing is left after a failure. */
static rondo_status make_detail(cpu_executable *executable, const rondo_lowered_node *node, cpu_node_detail *out) {
  *out = (cpu_node_detail){.kind = node->params->kind, .enabled = true, .node = {.function = cpu_run_nothing}};
  out->node.blocks = cpu_all_blocks(1);
  out->name = node->params->name == NULL ? "" : node->params->name; /* until its storage has a copy */
  rondo_status status = rondo_node_where_copy(allocator_of(executable), &node->where, &out->where);
  if (status == RONDO_OK && node->event != NULL) {
    out->event = (cpu_event *)node->event;
    cpu_event_retain(out->event);
  }
  if (status == RONDO_OK) status = make_node(executable, out, node->params);
  if (status == RONDO_OK && executable->device->check != NULL) status = cpu_checking.wrap_node(executable, out, node);
  if (status != RONDO_OK) free_detail(executable, out);
  return status;
}

static cpu_node running_form(const cpu_node_detail *detail) {
  cpu_node node = detail->node;
  if (!detail->enabled) {
    node.function = cpu_run_nothing;
    node.blocks = cpu_all_blocks(1);
  }
  return node;
}

/* Changes --------------------------------------------------------------------------------------------------------- */

void cpu_executable_apply(cpu_executable *executable, cpu_change_list *changes) {
  for (const cpu_change *change = changes->first; change != NULL; change = change->next) {
    assert(change->position < executable->node_count);
    executable->nodes[change->position] = change->node;
    executable->names[change->position] = change->name;
    executable->kernel_count += (size_t)change->more_kernels;
    if (change->node.blocks.last > 1) executable->parallel = true;
  }
  cpu_choice_open(&executable->choice); /* the other method may be better now */
  changes->next = atomic_load_explicit(&executable->spent_changes, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(&executable->spent_changes, &changes->next, changes)) {
  }
}

static void free_changes(cpu_executable *executable, cpu_change_list *list) {
  const rondo_allocator *allocator = allocator_of(executable);
  while (list != NULL) {
    cpu_change_list *next_list = list->next;
    for (cpu_change *change = list->first; change != NULL;) {
      cpu_change *next = change->next;
      rondo_node_where_free(allocator, &change->old_where);
      rondo_release(allocator, change->old_storage, 1, change->old_storage_bytes);
      cpu_timeline_release(change->old_timeline);
      rondo_release(allocator, change, 1, sizeof *change);
      change = next;
    }
    rondo_release(allocator, list, 1, sizeof *list);
    list = next_list;
  }
}

static rondo_status add_change(cpu_executable *executable, const cpu_change *change) {
  const rondo_allocator *allocator = allocator_of(executable);
  cpu_change *kept;
  if (executable->changes == NULL) {
    RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof(cpu_change_list), &executable->changes));
    executable->changes->last = &executable->changes->first;
  }
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *change, &kept));
  *kept = *change;
  kept->next = NULL;
  *executable->changes->last = kept;
  executable->changes->last = &kept->next;
  return RONDO_OK;
}

/* Applies the changes if no launch is running. */
static void settle(cpu_executable *executable) {
  if (executable->changes != NULL && cpu_point_reached(executable->last)) {
    cpu_executable_apply(executable, executable->changes);
    executable->changes = NULL;
  }
  free_changes(executable, atomic_exchange(&executable->spent_changes, NULL));
}

/* Event-wait nodes change only on the caller's side, where launches read them. The node gets the reference. */
static void change_wait(cpu_node_detail *detail, rondo_device_event *event) {
  cpu_event_release(detail->event);
  detail->event = (cpu_event *)event;
}

static rondo_status change_operations(cpu_executable *executable, cpu_node_detail *detail,
                                      const rondo_memory_operations_node *node) {
  rondo_device_event *event;
  RONDO_TRY(cpu_operations_make(executable->device, node, false, &event));
  change_wait(detail, event);
  return RONDO_OK;
}

static rondo_status executable_set_params(rondo_executable *base, size_t index, const rondo_lowered_node *node) {
  cpu_executable *executable = (cpu_executable *)base;
  cpu_node_detail *detail = &executable->details[index];
  if (detail->kind == RONDO_NODE_MEMORY_OPERATIONS)
    return change_operations(executable, detail, &node->params->as.memory_operations);
  if (detail->kind == RONDO_NODE_EVENT_WAIT) {
    cpu_event_retain((cpu_event *)node->event);
    change_wait(detail, node->event);
    return RONDO_OK;
  }
  cpu_node_detail changed;
  RONDO_TRY(make_detail(executable, node, &changed));
  changed.enabled = detail->enabled;
  const cpu_change change = {.position = executable->graph.position[index],
                             .node = running_form(&changed),
                             .name = changed.name,
                             .old_where = detail->where,
                             .old_storage = detail->storage,
                             .old_storage_bytes = detail->storage_bytes,
                             .old_timeline = detail->timeline};
  const rondo_status status = add_change(executable, &change);
  if (status != RONDO_OK) {
    free_detail(executable, &changed);
    return status;
  }
  if (detail->event != NULL) cpu_event_release(detail->event);
  *detail = changed;
  settle(executable);
  return RONDO_OK;
}

static rondo_status executable_set_enabled(rondo_executable *base, size_t index, bool enabled) {
  cpu_executable *executable = (cpu_executable *)base;
  cpu_node_detail *detail = &executable->details[index];
  if (detail->enabled == enabled) return RONDO_OK;
  detail->enabled = enabled;
  cpu_change change = {
      .position = executable->graph.position[index], .node = running_form(detail), .name = detail->name};
  if (detail->kind == RONDO_NODE_KERNEL) change.more_kernels = enabled ? 1 : -1;
  const rondo_status status = add_change(executable, &change);
  if (status != RONDO_OK) {
    detail->enabled = !enabled;
    return status;
  }
  settle(executable);
  return RONDO_OK;
}

/* Life ------------------------------------------------------------------------------------------------------------ */

static void free_bindings(cpu_executable *executable, cpu_bindings *bindings) {
  while (bindings != NULL) {
    cpu_bindings *next = bindings->next;
    for (uint32_t i = 0; i < executable->wait_count; i++) cpu_timeline_release(bindings->points[i].timeline);
    rondo_release(allocator_of(executable), bindings, 1, sizeof *bindings + executable->wait_count * sizeof(cpu_point));
    bindings = next;
  }
}

static void free_executable(cpu_executable *executable) {
  const rondo_allocator *allocator = allocator_of(executable);
  const size_t count = executable->node_count;
  if (executable->changes != NULL) {
    executable->changes->next = NULL;
    free_changes(executable, executable->changes);
  }
  free_changes(executable, atomic_exchange(&executable->spent_changes, NULL));
  free_bindings(executable, atomic_exchange(&executable->spent_bindings, NULL));
  free_bindings(executable, executable->free_bindings);
  if (executable->details != NULL) {
    for (size_t i = 0; i < count; i++) free_detail(executable, &executable->details[i]);
  }
  cpu_timeline_release(executable->last.timeline);
  rondo_task_graph_free(allocator, &executable->graph);
  rondo_release(allocator, executable->nodes, count, sizeof *executable->nodes);
  rondo_release(allocator, executable->names, count, sizeof *executable->names);
  rondo_release(allocator, executable->grid_costs, count, sizeof *executable->grid_costs);
  rondo_release(allocator, executable->times, count, sizeof *executable->times);
  rondo_release(allocator, executable->details, count, sizeof *executable->details);
  rondo_release(allocator, executable->wait_nodes, count, sizeof *executable->wait_nodes);
  rondo_release(allocator, executable->record_nodes, count, sizeof *executable->record_nodes);
  rondo_release(allocator, executable->waiters, executable->wait_count, sizeof *executable->waiters);
  rondo_devices_end_use(&executable->device->base, &executable->others);
  rondo_release(allocator, executable, 1, sizeof *executable);
}

static void reap(cpu_device *device, bool (*waits)(const cpu_executable *executable)) {
  pthread_mutex_lock(&device->lock);
  cpu_executable *list = device->zombies;
  device->zombies = NULL;
  pthread_mutex_unlock(&device->lock);
  cpu_executable *left = NULL;
  while (list != NULL) {
    cpu_executable *next = list->next_zombie;
    if (waits != NULL && waits(list)) cpu_point_await(device, list->last);
    if (cpu_point_reached(list->last)) {
      free_executable(list);
    } else {
      list->next_zombie = left;
      left = list;
    }
    list = next;
  }
  if (left == NULL) return;
  cpu_executable *last = left;
  while (last->next_zombie != NULL) last = last->next_zombie;
  pthread_mutex_lock(&device->lock);
  last->next_zombie = device->zombies;
  device->zombies = left;
  pthread_mutex_unlock(&device->lock);
}

static bool is_any(const cpu_executable *executable) { return executable != NULL; }
static bool is_shared(const cpu_executable *executable) { return executable->others.count > 0; }

void cpu_executable_reap(cpu_device *device, bool wait) { reap(device, wait ? is_any : NULL); }

void cpu_executable_settle(rondo_device *device) { reap((cpu_device *)device, is_shared); }

static void executable_destroy(rondo_executable *base) {
  cpu_executable *executable = (cpu_executable *)base;
  cpu_device *device = executable->device;
  pthread_mutex_lock(&device->lock);
  executable->next_zombie = device->zombies;
  device->zombies = executable;
  pthread_mutex_unlock(&device->lock);
  cpu_executable_reap(device, false);
}

static rondo_status executable_synchronize(rondo_executable *base) {
  cpu_executable *executable = (cpu_executable *)base;
  cpu_point_await(executable->device, executable->last);
  return RONDO_OK;
}

static rondo_status executable_record(rondo_executable *base, rondo_device_event *event) {
  const cpu_executable *executable = (cpu_executable *)base;
  cpu_event_record_at((cpu_event *)event, executable->last.timeline, executable->last.value);
  return RONDO_OK;
}

static uint64_t executable_host_bytes(const rondo_executable *base) {
  const cpu_executable *executable = (const cpu_executable *)base;
  const uint64_t a_node =
      sizeof(cpu_node) + sizeof(cpu_node_detail) + sizeof(char *) + sizeof(rondo_task) + 5 * sizeof(uint32_t);
  uint64_t bytes =
      sizeof *executable + executable->node_count * a_node + executable->graph.edge_count * sizeof(uint32_t);
  for (size_t i = 0; i < executable->node_count; i++) bytes += executable->details[i].storage_bytes;
  if (executable->times != NULL) bytes += executable->node_count * sizeof *executable->times;
  return bytes;
}

static uint64_t executable_device_bytes(const rondo_executable *executable) {
  (void)executable;
  return 0;
}

static rondo_status executable_set_timing(rondo_executable *base, bool on) {
  cpu_executable *executable = (cpu_executable *)base;
  const size_t count = executable->node_count;
  void *memory = NULL;
  if (on == (executable->times != NULL)) return RONDO_OK;
  if (on) RONDO_TRY(rondo_allocate(allocator_of(executable), count, sizeof *executable->times, &memory));
  rondo_release(allocator_of(executable), executable->times, count, sizeof *executable->times);
  executable->times = memory;
  return RONDO_OK;
}

static void executable_times(const rondo_executable *base, uint64_t *out_ns) {
  const cpu_executable *executable = (const cpu_executable *)base;
  for (size_t i = 0; i < executable->node_count; i++) out_ns[i] = executable->times[executable->graph.position[i]];
}

const rondo_executable_ops cpu_executable_ops = {
    .destroy = executable_destroy,
    .set_params = executable_set_params,
    .set_enabled = executable_set_enabled,
    .synchronize = executable_synchronize,
    .record = executable_record,
    .host_bytes = executable_host_bytes,
    .device_bytes = executable_device_bytes,
    .set_timing = executable_set_timing,
    .times = executable_times,
};

static rondo_status allocate_nodes(cpu_executable *executable) {
  const rondo_allocator *allocator = allocator_of(executable);
  const size_t count = executable->node_count;
  void *memory;
  RONDO_TRY(rondo_allocate_aligned(allocator, count, sizeof *executable->nodes, RONDO_CACHE_LINE, &memory));
  executable->nodes = memory;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *executable->names, &executable->names));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *executable->grid_costs, &executable->grid_costs));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *executable->wait_nodes, &executable->wait_nodes));
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *executable->record_nodes, &executable->record_nodes));
  return rondo_allocate_items(allocator, count, sizeof *executable->details, &executable->details);
}

static rondo_status make_nodes(cpu_executable *executable, const rondo_lowered_graph *graph) {
  RONDO_TRY(allocate_nodes(executable));
  for (size_t i = 0; i < graph->node_count; i++) {
    cpu_node_detail *detail = &executable->details[i];
    RONDO_TRY(make_detail(executable, &graph->nodes[i], detail));
    const uint32_t position = executable->graph.position[i];
    executable->nodes[position] = detail->node;
    executable->names[position] = detail->name;
    if (detail->kind == RONDO_NODE_KERNEL) executable->kernel_count++;
    if (detail->kind == RONDO_NODE_EVENT_RECORD) executable->record_nodes[executable->record_count++] = (uint32_t)i;
    if (is_wait_kind(detail->kind)) executable->wait_nodes[executable->wait_count++] = (uint32_t)i;
    if (detail->node.blocks.last > 1) executable->parallel = true;
  }
  return RONDO_OK;
}

/* Makes a waiter for each event-wait node, and sets the mark of its task. */
static rondo_status make_waiters(cpu_executable *executable) {
  rondo_task_graph *graph = &executable->graph;
  RONDO_TRY(rondo_allocate_items(allocator_of(executable), executable->wait_count, sizeof *executable->waiters,
                                 &executable->waiters));
  for (uint32_t i = 0; i < executable->wait_count; i++) {
    const uint32_t position = graph->position[executable->wait_nodes[i]];
    uint32_t task = 0, end = graph->task_count;
    RONDO_BINARY_SEARCH(task, end, middle, graph->tasks[middle].first < position)
    assert(graph->tasks[task].first == position && graph->tasks[task].count == 1);
    graph->tasks[task].mark = i;
  }
  return RONDO_OK;
}

/* How many tasks have to end before the next wait begins, in the upper half, and the number of the task. */
typedef uint64_t task_rank;

static int compare_ranks(const void *left, const void *right) {
  const task_rank a = *(const task_rank *)left, b = *(const task_rank *)right;
  return (a > b) - (a < b);
}

static uint32_t tasks_left(task_rank rank) { return (uint32_t)(rank >> 32); }

/* `sorted` is working memory for `count` ranks. */
static void sort_tasks(uint32_t *tasks, uint32_t count, const task_rank *ranks, task_rank *sorted) {
  if (count < 2) return;
  for (uint32_t k = 0; k < count; k++) sorted[k] = ranks[tasks[k]];
  qsort(sorted, count, sizeof *sorted, compare_ranks);
  for (uint32_t k = 0; k < count; k++) tasks[k] = (uint32_t)sorted[k];
}

/* Ranks the task, whose successors are ranked, and sorts these. */
static task_rank rank_task(const rondo_task_graph *graph, uint32_t number, const task_rank *ranks, task_rank *sorted) {
  const rondo_task *task = &graph->tasks[number];
  uint32_t *successors = &graph->successors[task->successors_first];
  const uint32_t count = task->successors_end - task->successors_first;
  sort_tasks(successors, count, ranks, sorted);
  uint32_t left = count == 0 ? UINT32_MAX : tasks_left(ranks[successors[0]]);
  if (left < UINT32_MAX) left++;
  return (task_rank)(task->mark == CPU_NO_WAIT ? left : 0) << 32 | number;
}

/* What is waited for, such as a collective, should begin early: of several tasks that become ready together, the one
 * after which a wait comes soonest is run first. */
static rondo_status put_waits_first(cpu_executable *executable) {
  const rondo_task_graph *graph = &executable->graph;
  const uint32_t count = graph->task_count;
  task_rank *ranks;
  if (executable->wait_count == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(allocator_of(executable), count, 2 * sizeof *ranks, &ranks));
  for (uint32_t i = count; i-- > 0;) ranks[i] = rank_task(graph, i, ranks, ranks + count);
  sort_tasks(&graph->successors[graph->sources_first], graph->source_count, ranks, ranks + count);
  rondo_release(allocator_of(executable), ranks, count, 2 * sizeof *ranks);
  return RONDO_OK;
}

void cpu_executable_check(const cpu_executable *executable) {
#ifdef NDEBUG
  (void)executable;
#else
  uint32_t waits = 0;
  rondo_task_graph_check(&executable->graph);
  assert(executable->graph.item_count == executable->node_count);
  assert(executable->kernel_count <= executable->node_count);
  assert(executable->wait_count + executable->record_count <= executable->node_count);
  for (uint32_t i = 0; i < executable->graph.task_count; i++) {
    const rondo_task *task = &executable->graph.tasks[i];
    if (task->mark == CPU_NO_WAIT) continue;
    assert(task->mark < executable->wait_count && task->count == 1);
    waits++;
  }
  assert(waits == executable->wait_count);
  for (size_t i = 0; i < executable->node_count; i++) assert(executable->nodes[i].function != NULL);
#endif
}

static bool is_wait(const void *user, uint32_t node) {
  const rondo_lowered_graph *graph = user;
  return is_wait_kind(graph->nodes[node].params->kind);
}

rondo_status cpu_executable_create(rondo_device *base, const rondo_lowered_graph *graph, rondo_executable **out) {
  cpu_device *device = (cpu_device *)base;
  void *memory;
  *out = NULL;
  cpu_executable_reap(device, false);
  RONDO_TRY(rondo_allocate_aligned(&base->allocator, 1, sizeof(cpu_executable), RONDO_CACHE_LINE, &memory));
  cpu_executable *executable = memory;
  executable->base = (rondo_executable){.ops = &base->tables.executable, .device = base};
  executable->device = device;
  executable->node_count = graph->node_count;
  rondo_status status = rondo_task_graph_make(&base->allocator, (uint32_t)graph->node_count, graph->successor_start,
                                              graph->successors, is_wait, graph, &executable->graph);
  if (status == RONDO_OK) status = rondo_devices_begin_use(base, graph, &executable->others);
  if (status == RONDO_OK) status = make_nodes(executable, graph);
  if (status == RONDO_OK) status = make_waiters(executable);
  if (status == RONDO_OK) status = put_waits_first(executable);
  if (status != RONDO_OK) {
    free_executable(executable);
    return status;
  }
  executable->parallel |= executable->graph.task_count > 1;
  executable->is_chain = executable->graph.longest_path == executable->node_count &&
                         executable->graph.successor_count + 1 == executable->graph.task_count;
  cpu_executable_check(executable);
  *out = &executable->base;
  return RONDO_OK;
}
