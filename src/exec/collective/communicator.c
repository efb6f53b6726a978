/* SPDX-License-Identifier: MIT
 * Making, dividing and destroying communicators. A communicator is made with its link to the other ranks, or not at
 * all.
 */
#include "exec/collective/communicator.h"

#include <inttypes.h>

#include "base/versioned_struct.h"
#include "exec/collective/launcher_environment.h"
#include "exec/collective/process_engine.h"

static const rondo_device_use communicator_use = {.rank = 12, .name = "communicator"};

enum { JOIN_TIMEOUT_MS = 60 * 1000, TIMEOUT_MS = 10 * 60 * 1000 };
static const uint64_t NS_A_MS = UINT64_C(1000000);

/* Checking -------------------------------------------------------------------------------------------------------- */

static rondo_status check_ranks(const char *call, uint32_t rank, uint32_t world_size) {
  if (world_size == 0 || world_size > RONDO_MAX_RANKS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: a group of %" PRIu32 " ranks: use 1 to %d", call, world_size, RONDO_MAX_RANKS);
  if (rank < world_size) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: rank %" PRIu32 " of %" PRIu32 " is out of range: ranks count from 0", call, rank, world_size);
}

static bool has_engines(const rondo_device *device) { return device->ops->semaphore != NULL; }

static rondo_status require_collectives(const char *call, const rondo_device *device) {
  if (has_engines(device) || rondo_device_takes_libraries(device)) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE,
                    "%s: device '%s' does not support collectives: use a device of kind cpu or cuda", call,
                    device->name);
}

static rondo_status require_nccl(const char *call, const rondo_device *device) {
  if (rondo_device_takes_libraries(device)) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE,
                    "%s: device '%s' is not a GPU, which NCCL needs: use rondo_communicator_from_mpi, or "
                    "rondo_communicator_create_all in one process",
                    call, device->name);
}

/* The plan of a rank. Its name is that of the options. */
static rondo_status make_plan(const char *call, rondo_device *device, uint32_t rank, uint32_t world_size,
                              const rondo_communicator_options *options, rondo_communicator_plan *out) {
  rondo_communicator_options read;
  RONDO_TRY(rondo_require(call, "a device", device));
  RONDO_TRY(rondo_device_require_own(call, device));
  RONDO_TRY(check_ranks(call, rank, world_size));
  RONDO_TRY(rondo_versioned_read("rondo_communicator_options", options, &read, sizeof read));
  if (read.reserved != 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: rondo_communicator_options.reserved is %" PRIu32 ": leave it 0", call, read.reserved);
  const uint32_t timeout_ms = read.timeout_ms == 0 ? TIMEOUT_MS : read.timeout_ms;
  *out =
      (rondo_communicator_plan){.device = device,
                                .name = read.name == NULL ? "" : read.name,
                                .rank = rank,
                                .world_size = world_size,
                                .join_timeout_ms = read.join_timeout_ms == 0 ? JOIN_TIMEOUT_MS : read.join_timeout_ms,
                                .timeout_ns = timeout_ms * NS_A_MS};
  return RONDO_OK;
}

/* Making ---------------------------------------------------------------------------------------------------------- */

/* Without a link. */
static rondo_status make_communicator(const rondo_communicator_plan *plan, rondo_communicator **out) {
  const rondo_allocator *allocator = &plan->device->allocator;
  rondo_communicator *made;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *made, &made));
  *made = (rondo_communicator){.device = plan->device, .plan = *plan};
  const rondo_status status = rondo_allocate_text(allocator, plan->name, &made->name);
  if (status != RONDO_OK) {
    rondo_release(allocator, made, 1, sizeof *made);
    return status;
  }
  made->plan.name = made->name;
  *out = made;
  return RONDO_OK;
}

/* NULL is fine. */
static void free_communicator(rondo_communicator *communicator) {
  if (communicator == NULL) return;
  const rondo_allocator *allocator = &communicator->device->allocator;
  rondo_release_text(allocator, communicator->name);
  rondo_release(allocator, communicator, 1, sizeof *communicator);
}

static void open_communicator(rondo_communicator *communicator, rondo_link *link) {
  communicator->link = link;
  rondo_device_begin_use(communicator->device, &communicator_use);
}

/* Ranks of one process that are made together. */
typedef struct making {
  rondo_communicator_plan *plans;
  rondo_link **links;
  rondo_collective_engine *engines;
  uint32_t count;
} making;

static rondo_status open_on_engines(const making *m) {
  const rondo_allocator allocator = rondo_allocator_default(); /* the group outlives any of the devices */
  RONDO_TRY(rondo_process_engine_make(&allocator, m->count, m->engines));
  rondo_status status = RONDO_OK;
  uint32_t opened = 0;
  for (; opened < m->count && status == RONDO_OK; opened++) {
    rondo_engine_link *link;
    status = rondo_engine_link_open(&m->plans[opened], &m->engines[opened], rondo_process_engine_attach, &link);
    if (status != RONDO_OK) break;
    m->links[opened] = &link->link;
  }
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error error;
  rondo_error_save(&error);
  for (uint32_t i = 0; i < opened; i++)
    rondo_status_ignore(m->links[i]->transport->close(m->links[i]), "nothing was enqueued");
  for (uint32_t i = opened; i < m->count; i++) m->engines[i].close(m->engines[i].user);
  return rondo_error_raise(&error);
}

static rondo_status open_on_nccl(const making *m) {
  rondo_communicator_id id;
  RONDO_TRY(rondo_nccl_make_id(m->plans[0].device, &id));
  return rondo_nccl_open(m->plans, m->count, &id, m->links);
}

static rondo_status make_all(const making *m, rondo_communicator **out) {
  for (uint32_t i = 0; i < m->count; i++) RONDO_TRY(make_communicator(&m->plans[i], &out[i]));
  RONDO_TRY(has_engines(m->plans[0].device) ? open_on_engines(m) : open_on_nccl(m));
  for (uint32_t i = 0; i < m->count; i++) open_communicator(out[i], m->links[i]);
  return RONDO_OK;
}

static rondo_status plan_all(const char *call, const making *m, rondo_device *const *devices,
                             const rondo_communicator_options *options) {
  for (uint32_t i = 0; i < m->count; i++) {
    RONDO_TRY(make_plan(call, devices[i], i, m->count, options, &m->plans[i]));
    RONDO_TRY(require_collectives(call, devices[i]));
    if (has_engines(devices[i]) != has_engines(devices[0]))
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                        "%s: devices '%s' and '%s' are of different kinds: use one kind of device in a group", call,
                        devices[0]->name, devices[i]->name);
    for (uint32_t k = 0; k < i && !has_engines(devices[i]); k++)
      if (devices[k]->index == devices[i]->index) /* perhaps opened twice */
        return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                          "%s: ranks %" PRIu32 " and %" PRIu32 " are on device '%s': give each rank its own GPU", call,
                          k, i, devices[i]->name);
  }
  return RONDO_OK;
}

rondo_status rondo_communicator_create_all(rondo_device *const *devices, uint32_t count,
                                           const rondo_communicator_options *options,
                                           rondo_communicator **out_communicators) {
  const char *const call = "rondo_communicator_create_all";
  RONDO_TRY(rondo_check_call(call, "out_communicators", out_communicators));
  RONDO_TRY(check_ranks(call, 0, count));
  for (uint32_t i = 0; i < count; i++) out_communicators[i] = NULL;
  RONDO_TRY(rondo_require(call, "devices", devices));
  RONDO_TRY(rondo_require(call, "a device", devices[0]));
  rondo_scratch scratch = {.allocator = &devices[0]->allocator};
  making m = {.count = count};
  rondo_status status = rondo_scratch_take(&scratch, count, sizeof *m.plans, &m.plans);
  if (status == RONDO_OK) status = rondo_scratch_take(&scratch, count, sizeof(rondo_link *), &m.links);
  if (status == RONDO_OK) status = rondo_scratch_take(&scratch, count, sizeof *m.engines, &m.engines);
  if (status == RONDO_OK) status = plan_all(call, &m, devices, options);
  if (status == RONDO_OK) status = make_all(&m, out_communicators);
  for (uint32_t i = 0; i < count && status != RONDO_OK; i++) {
    free_communicator(out_communicators[i]);
    out_communicators[i] = NULL;
  }
  rondo_scratch_free(&scratch);
  return rondo_fail_context(status, "%s", call);
}

/* Gives the communicator its link if that could be made, as `status` says; else frees the communicator. */
static rondo_status finish_one(rondo_communicator *communicator, rondo_link *link, rondo_status status,
                               const char *call, rondo_communicator **out) {
  if (status != RONDO_OK) {
    free_communicator(communicator);
    return rondo_fail_context(status, "%s", call);
  }
  open_communicator(communicator, link);
  *out = communicator;
  return RONDO_OK;
}

static rondo_status join_nccl(const char *call, const rondo_communicator_plan *plan, const rondo_communicator_id *id,
                              rondo_communicator **out) {
  rondo_communicator *made;
  rondo_link *link = NULL;
  RONDO_TRY(make_communicator(plan, &made));
  const rondo_status status = rondo_nccl_open(plan, 1, id, &link);
  return finish_one(made, link, status, call, out);
}

rondo_status rondo_communicator_make_id(rondo_device *device, rondo_communicator_id *out_id) {
  const char *const call = "rondo_communicator_make_id";
  RONDO_TRY(rondo_check_call(call, "out_id", out_id));
  RONDO_TRY(rondo_require(call, "device", device));
  RONDO_TRY(rondo_device_require_own(call, device));
  RONDO_TRY(require_nccl(call, device));
  return rondo_fail_context(rondo_nccl_make_id(device, out_id), "%s", call);
}

rondo_status rondo_communicator_from_id(rondo_device *device, const rondo_communicator_id *id, uint32_t rank,
                                        uint32_t world_size, const rondo_communicator_options *options,
                                        rondo_communicator **out_communicator) {
  const char *const call = "rondo_communicator_from_id";
  rondo_communicator_plan plan;
  RONDO_TRY(rondo_check_call(call, "out_communicator", out_communicator));
  *out_communicator = NULL;
  RONDO_TRY(rondo_require(call, "id", id));
  RONDO_TRY(make_plan(call, device, rank, world_size, options, &plan));
  RONDO_TRY(require_nccl(call, device));
  return join_nccl(call, &plan, id, out_communicator);
}

rondo_status rondo_communicator_from_environment(rondo_device *device, const rondo_communicator_options *options,
                                                 rondo_communicator **out_communicator) {
  const char *const call = "rondo_communicator_from_environment";
  rondo_communicator_plan plan;
  rondo_launcher launcher;
  RONDO_TRY(rondo_check_call(call, "out_communicator", out_communicator));
  *out_communicator = NULL;
  RONDO_TRY(make_plan(call, device, 0, 1, options, &plan));
  RONDO_TRY(require_nccl(call, device));
  RONDO_TRY(rondo_fail_context(rondo_launcher_read(&launcher), "%s", call));
  plan.rank = launcher.rank;
  plan.world_size = launcher.world_size;
  rondo_communicator *made;
  rondo_link *link = NULL;
  RONDO_TRY(make_communicator(&plan, &made));
  const rondo_status status = rondo_nccl_open_at(&plan, launcher.address, &link);
  return finish_one(made, link, status, call, out_communicator);
}

static rondo_status check_engine(const char *call, const rondo_collective_engine *engine) {
  if (engine->start != NULL && engine->test != NULL && engine->close != NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: the engine has no '%s': start, test and close are required", call,
                    engine->start == NULL  ? "start"
                    : engine->test == NULL ? "test"
                                           : "close");
}

rondo_status rondo_communicator_from_engine(rondo_device *device, const rondo_collective_engine *engine,
                                            const rondo_communicator_options *options,
                                            rondo_communicator **out_communicator) {
  const char *const call = "rondo_communicator_from_engine";
  rondo_communicator_plan plan;
  rondo_collective_engine read;
  RONDO_TRY(rondo_check_call(call, "out_communicator", out_communicator));
  *out_communicator = NULL;
  RONDO_TRY(rondo_require(call, "engine", engine));
  RONDO_TRY(rondo_versioned_read("rondo_collective_engine", engine, &read, sizeof read));
  if (read.name == NULL) read.name = "";
  RONDO_TRY(make_plan(call, device, read.rank, read.world_size, options, &plan));
  RONDO_TRY(check_engine(call, &read));
  if (!has_engines(device))
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE,
                      "%s: device '%s' does not run collective engines: use a CPU device", call, device->name);
  rondo_communicator *made;
  rondo_engine_link *link;
  RONDO_TRY(make_communicator(&plan, &made));
  const rondo_status status = rondo_engine_link_open(&plan, &read, NULL, &link);
  return finish_one(made, status == RONDO_OK ? &link->link : NULL, status, call, out_communicator);
}

/* Life ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_communicator_enter(rondo_communicator *communicator, const char *call) {
  if (!atomic_exchange_explicit(&communicator->in_call, true, memory_order_acquire)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_CONCURRENT_USE,
                    "%s: another thread is calling a function of this communicator: call them one after the other, or "
                    "make a communicator for each thread",
                    call);
}

void rondo_communicator_leave(rondo_communicator *communicator) {
  atomic_store_explicit(&communicator->in_call, false, memory_order_release);
}

rondo_status rondo_communicator_split(rondo_communicator *communicator, uint32_t color, uint32_t key,
                                      rondo_communicator **out_communicator) {
  const char *const call = "rondo_communicator_split";
  RONDO_TRY(rondo_check_call(call, "out_communicator", out_communicator));
  *out_communicator = NULL;
  RONDO_TRY(rondo_require(call, "the communicator", communicator));
  RONDO_TRY(rondo_device_require_own(call, communicator->device));
  RONDO_TRY(rondo_communicator_enter(communicator, call));
  rondo_communicator *made;
  rondo_link *link = NULL;
  rondo_status status = make_communicator(&communicator->plan, &made);
  if (status == RONDO_OK) {
    status = communicator->link->transport->split(communicator->link, color, key, &made->plan, &link);
    status = finish_one(made, link, status, call, out_communicator);
  }
  rondo_communicator_leave(communicator);
  return status;
}

rondo_status rondo_communicator_destroy(rondo_communicator *communicator) {
  if (communicator == NULL || communicator->device->is_inherited) return RONDO_OK;
  RONDO_TRY(rondo_refuse_in_callback("rondo_communicator_destroy"));
  rondo_device *device = communicator->device;
  const rondo_status status = communicator->link->transport->close(communicator->link);
  free_communicator(communicator);
  rondo_device_end_use(device, &communicator_use);
  return status;
}

rondo_status rondo_communicator_abort(rondo_communicator *communicator) {
  RONDO_TRY(rondo_check_call("rondo_communicator_abort", "the communicator", communicator));
  RONDO_TRY(rondo_device_require_own("rondo_communicator_abort", communicator->device));
  return communicator->link->transport->cancel(communicator->link);
}

rondo_status rondo_communicator_get_info(const rondo_communicator *communicator, rondo_communicator_info *out_info) {
  const char *const call = "rondo_communicator_get_info";
  RONDO_TRY(rondo_require(call, "the communicator", communicator));
  RONDO_TRY(rondo_require(call, "out_info", out_info));
  rondo_communicator_info info = {
      .struct_size = sizeof info, .rank = communicator->plan.rank, .world_size = communicator->plan.world_size};
  info.collectives = atomic_load_explicit(&communicator->collectives, memory_order_relaxed);
  communicator->link->transport->info(communicator->link, &info);
  return rondo_versioned_write("rondo_communicator_info", &info, out_info, sizeof info);
}
