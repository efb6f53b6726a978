/* SPDX-License-Identifier: MIT
 * Works and nodes of a checking device. They are wrapped: the function that runs is check_run_work, and the real
 * function is in the check_work that is its argument. check_run_work passes the gate, lets the faults of the thread be
 * noted, and then checks the canaries around everything that the work has pointers to. Alloc and free nodes, and
 * stream-ordered allocations and frees, are works too. Threads: those that run works; the owner of a queue enqueues.
 */
#define _DEFAULT_SOURCE
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "device/check/check.h"
#include "device/check/check_allocation.h"
#include "device/check/check_fault.h"
#include "device/check/check_findings.h"
#include "device/check/check_memory.h"
#include "device/check/check_orders.h"
#include "device/check/check_work.h"
#include "device/cpu/cpu_executable.h"
#include "device/cpu/cpu_memory.h"
#include "device/cpu/cpu_queue.h"
#include "device/cpu/cpu_shared_queue.h"
#include "device/cpu/cpu_work.h"

const char *check_work_name(rondo_cpu_function function, void *const *args) {
  if (function != check_run_work) return NULL;
  const check_work *work = args[0];
  return work->name[0] != '\0' ? work->name : rondo_node_kind_name(work->kind);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

/* Checks the area of the device that the address belongs to. */
static rondo_status inspect_around(const check_work *work, check_state *check, const void *address) {
  char label[RONDO_LABEL_BYTES];
  check_area *area = check_area_around(check, address);
  if (area == NULL || area->life != CHECK_LIVE || check_area_damage(area) == NULL) return RONDO_OK;
  return check_area_inspect(area, work->where.number, check_label(label, work));
}

/* Checks every word of the argument as if it were a pointer. */
static rondo_status inspect_argument(const check_work *work, check_state *check, uint32_t index) {
  const unsigned char *value = work->values[index];
  for (size_t at = 0; at + sizeof(void *) <= work->parameters[index].bytes; at += sizeof(void *)) {
    const void *address;
    memcpy(&address, value + at, sizeof address);
    RONDO_TRY(inspect_around(work, check, address));
  }
  return RONDO_OK;
}

static rondo_status inspect_arguments(const check_work *work, check_state *check) {
  if (work->kind == RONDO_NODE_COPY) return inspect_around(work, check, ((const rondo_copy *)work->args[0])->dst);
  if (work->kind == RONDO_NODE_FILL) return inspect_around(work, check, ((const rondo_fill *)work->args[0])->dst);
  for (uint32_t i = 0; i < work->parameter_count; i++) RONDO_TRY(inspect_argument(work, check, i));
  return RONDO_OK;
}

static void inspect_on(const check_work *work, check_state *check, const rondo_saved_error *before) {
  check_lock(check);
  const rondo_status status = inspect_arguments(work, check);
  check_unlock(check);
  if (status != RONDO_OK) check_fail(check, *work->queue, before);
}

static void inspect(const check_work *work, const rondo_saved_error *before) {
  inspect_on(work, work->check, before);
  if (work->other != NULL) inspect_on(work, work->other, before);
}

static void clear_scratch(check_state *check, const check_run *run) {
  check_lock(check);
  check_spin_lock(check);
  check_scratch_clear(check, run, NULL, NULL);
  check_spin_unlock(check);
  check_unlock(check);
}

static void end_run(check_run *run) {
  rondo_saved_error before;
  rondo_error_save(&before);
  check_run_end(run);
  if (run->count > 0) {
    for (uint32_t i = 0; i < run->count && i < CHECK_FAULTS; i++) clear_scratch(run->faults[i].check, run);
    check_report_faults(run, &before);
  }
  inspect(run->work, &before);
}

/* Watching the host ------------------------------------------------------------------------------------------------ */

/* A run without a work. */
typedef struct host_watch {
  check_run run;
  void *opened; /* addresses without memory that can be accessed meanwhile; or NULL */
} host_watch;

static void *guard_host_begin(rondo_device *device) {
  check_state *check = ((cpu_device *)device)->check;
  host_watch *watch;
  rondo_saved_error before;
  rondo_error_save(&before);
  if (rondo_allocate_items(&check->allocator, 1, sizeof *watch, &watch) != RONDO_OK) {
    rondo_error_restore(&before);
    return NULL;
  }
  check_handler_renew();
  check_run_begin(&watch->run, NULL);
  return watch;
}

static rondo_status guard_host_end(rondo_device *device, void *watch, const char *who) {
  check_state *check = ((cpu_device *)device)->check;
  host_watch *host = watch;
  assert(host->run.work == NULL);
  check_run_end(&host->run);
  if (host->run.count > 0) clear_scratch(check, &host->run);
  const rondo_status status = host->run.count == 0 ? RONDO_OK : check_fail_host(check, &host->run.faults[0], who);
  rondo_release(&check->allocator, host, 1, sizeof *host);
  return status;
}

/* A system call with an address that cannot be accessed fails without a signal. So memory is mapped there meanwhile,
 * and its pages show whether they were accessed. The signal handler notes accesses to all other addresses. */
void *check_host_watch_begin(rondo_device *device, void *address, size_t bytes) {
  host_watch *watch = guard_host_begin(device);
  if (watch != NULL && bytes > 0) watch->opened = cpu_host_watch_begin(device, address, bytes);
  return watch;
}

/* Maps scratch memory for one area, as long as half of all scratch memory is left. Other freed areas get none, so that
 * work that uses one after its free still faults. */
static void guard_host_cover(rondo_device *device, void *watch, const void *address) {
  check_state *check = ((cpu_device *)device)->check;
  const host_watch *host = watch;
  check_lock(check);
  check_spin_lock(check);
  const check_area *area = check_area_around(check, address);
  if (area != NULL && area->life != CHECK_LIVE && check->scratch_count < CHECK_SCRATCHES / 2 &&
      check_scratch_map(check, (check_scratch){area->pages, area->page_bytes, &host->run}))
    (void)madvise(area->pages, area->page_bytes, MADV_NOHUGEPAGE); /* else one access would make many pages resident */
  check_spin_unlock(check);
  check_unlock(check);
}

static uint32_t list_covered(check_state *check, const host_watch *watch, check_scratch out[CHECK_SCRATCHES]) {
  uint32_t count = 0;
  check_spin_lock(check);
  for (uint32_t i = 0; i < check->scratch_count; i++)
    if (check->scratches[i].run == &watch->run) out[count++] = check->scratches[i];
  check_spin_unlock(check);
  return count;
}

/* The first page of the watch's scratch memory that was accessed. */
static char *find_covered(check_state *check, const host_watch *watch) {
  check_scratch covered[CHECK_SCRATCHES];
  const uint32_t count = list_covered(check, watch, covered);
  char *found = NULL;
  for (uint32_t i = 0; i < count && found == NULL; i++)
    found = cpu_find_resident(covered[i].begin, covered[i].bytes, check->device->page_bytes);
  return found;
}

void *check_host_watch_end(rondo_device *device, void *watch, size_t bytes, size_t used, size_t *out_bytes) {
  check_state *check = ((cpu_device *)device)->check;
  host_watch *host = watch;
  void *found = find_covered(check, host), *opened = NULL;
  check_run_end(&host->run);
  clear_scratch(check, &host->run);
  *out_bytes = check->device->page_bytes;
  if (host->opened != NULL) opened = cpu_host_watch_end(device, host->opened, bytes, used, out_bytes);
  if (found == NULL) found = opened;
  if (host->run.count > 0) {
    found = (void *)(uintptr_t)host->run.faults[0].address;
    *out_bytes = 1;
  }
  rondo_release(&check->allocator, host, 1, sizeof *host);
  return found;
}

/* Works ------------------------------------------------------------------------------------------------------------ */

void check_run_work(rondo_blocks blocks, void *const *args) {
  const check_work *work = args[0];
  const bool gated = work->kind != RONDO_NODE_HOST && !check_gate_is_mine();
  check_run run;
  check_handler_renew();
  if (gated) check_gate_enter(work->check);
  check_run_begin(&run, work);
  work->function(blocks, work->args);
  end_run(&run);
  if (gated) check_gate_leave(work->check);
}

static void change_life(const check_work *work, rondo_status (*change)(check_state *check, char *address)) {
  rondo_saved_error before;
  rondo_error_save(&before);
  if (change(work->check, work->address) != RONDO_OK) check_fail(work->check, *work->queue, &before);
}

/* The only argument of these functions is the work itself. */
static void run_begin(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  change_life(args[0], check_area_begin);
}

static void run_end(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  change_life(args[0], check_area_end);
}

static void run_lock(rondo_blocks blocks, void *const *args) {
  const check_work *work = args[0];
  (void)blocks;
  check_area_set_read_only(work->check, work->address, true);
}

static void run_unlock(rondo_blocks blocks, void *const *args) {
  const check_work *work = args[0];
  (void)blocks;
  check_area_set_read_only(work->check, work->address, false);
}

/* Making ----------------------------------------------------------------------------------------------------------- */

static void describe_work(check_work *work, check_state *check, const rondo_node_params *params) {
  *work = (check_work){.self = work, .check = check, .kind = params->kind, .where = {.number = RONDO_NO_NODE}};
  (void)snprintf(work->name, sizeof work->name, "%s", params->name == NULL ? "" : params->name);
  if (params->kind != RONDO_NODE_KERNEL) return;
  const rondo_kernel *kernel = params->as.kernel.kernel;
  work->symbols = kernel->symbols;
  work->symbol_count = kernel->symbol_count;
  work->parameter_count = kernel->parameter_count;
  memcpy(work->parameters, kernel->parameters, kernel->parameter_count * sizeof *kernel->parameters);
}

/* For alloc and free nodes, which do nothing on other devices. */
static void describe_life(check_work *work, rondo_cpu_function function, char *address) {
  work->function = function;
  work->args = (void *const *)(void *)&work->self;
  work->address = address;
}

rondo_status check_wrap_node(cpu_executable *executable, cpu_node_detail *detail, const rondo_lowered_node *node) {
  check_state *check = executable->device->check;
  const rondo_node_params *params = node->params;
  const bool allocates = params->kind == RONDO_NODE_ALLOC, frees = params->kind == RONDO_NODE_FREE;
  if (params->kind == RONDO_NODE_EMPTY || params->kind == RONDO_NODE_EVENT_RECORD ||
      params->kind == RONDO_NODE_EVENT_WAIT || params->kind == RONDO_NODE_MEMORY_OPERATIONS)
    return RONDO_OK;
  if (allocates) {
    const rondo_alloc_node *alloc = &params->as.alloc;
    RONDO_TRY(check_area_note(check, alloc->address, alloc->bytes, alloc->name));
  }
  check_work *work =
      (check_work *)(void *)((unsigned char *)detail->storage + detail->storage_bytes - sizeof(check_work));
  describe_work(work, check, params);
  if (node->device != NULL && node->device != &executable->device->base)
    work->other = ((cpu_device *)node->device)->check;
  work->where = detail->where;
  work->queue = &executable->queue;
  work->function = detail->node.function;
  work->args = detail->node.args;
  work->values = detail->storage;
  if (allocates || frees)
    describe_life(work, allocates ? run_begin : run_end,
                  allocates ? params->as.alloc.address : params->as.free_address);
  detail->node.function = check_run_work;
  detail->node.args = (void *const *)(void *)&work->self;
  return RONDO_OK;
}

/* Queueing --------------------------------------------------------------------------------------------------------- */

/* An item with a check_work, followed by `addresses` argument addresses and `bytes` of data. */
typedef struct check_item {
  cpu_item item;
  check_work work;
  void *args[];
} check_item;

static check_item *begin_work(cpu_queue *queue, const rondo_node_params *params, size_t addresses, size_t bytes,
                              void **out_data, uint64_t *out_head) {
  const bool is_kernel = params->kind == RONDO_NODE_KERNEL;
  const size_t data_at = cpu_align(sizeof(check_item) + addresses * sizeof(void *), CPU_GRANULE);
  if (cpu_queue_is_behind(queue)) cpu_queue_catch_up(queue);
  check_item *item = (check_item *)cpu_queue_begin(queue, is_kernel ? CPU_KERNEL : CPU_WORK, data_at + bytes, out_head);
  describe_work(&item->work, queue->device->check, params);
  item->work.own_queue = queue;
  item->work.queue = &item->work.own_queue;
  item->work.args = item->work.values = item->args;
  if (item->work.name[0] == '\0')
    (void)snprintf(item->work.name, sizeof item->work.name, "%s", is_kernel ? params->as.kernel.kernel->name : "");
  item->item.as.work.function = check_run_work;
  item->item.as.work.args = (void *const *)(void *)&item->work.self;
  item->item.as.work.blocks = cpu_all_blocks(1);
  *out_data = (unsigned char *)item + data_at;
  return item;
}

static void submit_kernel(cpu_queue *queue, const rondo_node_params *params) {
  const rondo_kernel_node *work = &params->as.kernel;
  const rondo_kernel *kernel = work->kernel;
  uint64_t head;
  void *values;
  check_item *item = begin_work(queue, params, cpu_address_count(kernel), cpu_value_bytes(kernel), &values, &head);
  item->work.function = cpu_prepare_kernel(queue->device, work, item->args, values, &item->work.args);
  item->item.as.work.blocks = cpu_kernel_blocks(work);
  cpu_queue_publish(queue, head);
}

static void submit_described(cpu_queue *queue, const rondo_node_params *params) {
  const cpu_description described = cpu_describe(params);
  uint64_t head;
  void *data;
  check_item *item = begin_work(queue, params, 1, described.bytes, &data, &head);
  memcpy(data, described.data, described.bytes);
  item->args[0] = data;
  item->work.function = described.function;
  item->item.as.work.blocks = cpu_all_blocks(described.blocks);
  cpu_queue_publish(queue, head);
}

static void submit_host(cpu_queue *queue, const rondo_node_params *params) {
  uint64_t head;
  void *data;
  check_item *item = begin_work(queue, params, 1, sizeof(cpu_host_work), &data, &head);
  *(cpu_host_work *)data = (cpu_host_work){.host = params->as.host, .name = item->work.name, .queue = item->work.queue};
  item->args[0] = data;
  item->work.function = cpu_run_host;
  cpu_queue_publish(queue, head);
}

static void submit_life(cpu_queue *queue, rondo_node_kind kind, rondo_cpu_function function, char *address) {
  const rondo_node_params params = {.kind = kind};
  uint64_t head;
  void *data;
  check_item *item = begin_work(queue, &params, 0, 0, &data, &head);
  describe_life(&item->work, function, address);
  cpu_queue_publish(queue, head);
}

rondo_status check_submit(rondo_queue *base, const rondo_node_params *params) {
  cpu_queue *queue = (cpu_queue *)base;
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      submit_kernel(queue, params);
      return RONDO_OK;
    case RONDO_NODE_COPY:
    case RONDO_NODE_FILL:
      submit_described(queue, params);
      return RONDO_OK;
    case RONDO_NODE_MEMORY_OPERATIONS:
      if (cpu_queue_is_behind(queue)) cpu_queue_catch_up(queue);
      return cpu_queue_submit_operations(queue, &params->as.memory_operations);
    default:
      assert(params->kind == RONDO_NODE_HOST); /* no other kinds are enqueued */
      submit_host(queue, params);
      return RONDO_OK;
  }
}

/* Lifetimes of allocations ----------------------------------------------------------------------------------------- */

static rondo_status guard_allocate(rondo_device *device, rondo_queue *queue, size_t bytes, const char *name,
                                   void **out_address) {
  check_state *check = ((cpu_device *)device)->check;
  *out_address = NULL;
  RONDO_TRY(check_area_make(check, bytes, name, out_address));
  if (queue != NULL) {
    submit_life((cpu_queue *)queue, RONDO_NODE_ALLOC, run_begin, *out_address);
    return RONDO_OK;
  }
  check_gate_enter(check);
  const rondo_status status = check_area_begin(check, *out_address);
  if (status != RONDO_OK) rondo_status_ignore(check_area_end(check, *out_address), "the first failure is reported");
  check_gate_leave(check);
  if (status != RONDO_OK) *out_address = NULL;
  return status;
}

static void guard_release(rondo_device *device, rondo_queue *queue, void *address) {
  check_state *check = ((cpu_device *)device)->check;
  if (queue != NULL) {
    submit_life((cpu_queue *)queue, RONDO_NODE_FREE, run_end, address);
    return;
  }
  rondo_saved_error before;
  rondo_error_save(&before);
  check_gate_enter(check);
  if (check_area_end(check, address) != RONDO_OK) check_fail(check, NULL, &before);
  check_gate_leave(check);
}

static rondo_status guard_hold(rondo_device *device, void *address, size_t bytes, const char *name) {
  check_state *check = ((cpu_device *)device)->check;
  RONDO_TRY(check_area_note(check, address, bytes, name));
  check_gate_enter(check);
  const rondo_status status = check_area_begin(check, address);
  check_gate_leave(check);
  return status;
}

static void guard_forget(rondo_device *device, void *address, size_t bytes) {
  check_state *check = ((cpu_device *)device)->check;
  check_gate_enter(check);
  check_areas_forget(check, address, (char *)address + bytes);
  check_gate_leave(check);
}

static void guard_set_read_only(rondo_device *device, rondo_queue *queue, void *address, bool read_only) {
  check_state *check = ((cpu_device *)device)->check;
  if (queue != NULL) {
    submit_life((cpu_queue *)queue, RONDO_NODE_EMPTY, read_only ? run_lock : run_unlock, address);
    return;
  }
  check_gate_enter(check);
  check_area_set_read_only(check, address, read_only);
  check_gate_leave(check);
}

const rondo_guard_ops check_guard_ops = {.allocate = guard_allocate,
                                         .release = guard_release,
                                         .hold = guard_hold,
                                         .forget = guard_forget,
                                         .set_read_only = guard_set_read_only,
                                         .host_begin = guard_host_begin,
                                         .host_end = guard_host_end,
                                         .host_cover = guard_host_cover};
