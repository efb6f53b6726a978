/* SPDX-License-Identifier: MIT
 * Making and destroying communicators: reading options, choosing a transport, and joining a group, as one rank or, in
 * one process, as all ranks. All ranks take the same three steps together: rank 0 puts a token into the group's head,
 * all become present, each opens its link.
 */
#include "exec/collective/communicator.h"

#include <inttypes.h>

#include "base/versioned_struct.h"

static const rondo_device_use communicator_use = {.rank = 12, .name = "communicator"};

enum {
  JOIN_TIMEOUT_MS = 60 * 1000,
  TIMEOUT_MS = 10 * 60 * 1000,
  PIECE_BYTES = 4 << 20,
  PIECE_UNIT = 4096,
  MOST_PIECE_BYTES = 1 << 30
};
static const uint64_t NS_A_MS = UINT64_C(1000000);

/* Options --------------------------------------------------------------------------------------------------------- */

static rondo_status read_options(const char *call, const rondo_communicator_options *given,
                                 rondo_communicator_options *out) {
  RONDO_TRY(rondo_versioned_read("rondo_communicator_options", given, out, sizeof *out));
  if (out->join_timeout_ms == 0) out->join_timeout_ms = JOIN_TIMEOUT_MS;
  if (out->timeout_ms == 0) out->timeout_ms = TIMEOUT_MS;
  if (out->piece_bytes == 0) out->piece_bytes = PIECE_BYTES;
  if (out->piece_bytes % PIECE_UNIT == 0 && out->piece_bytes <= MOST_PIECE_BYTES) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: piece_bytes is %" PRIu32 ": give a multiple of %d, at most %d", call, out->piece_bytes,
                    PIECE_UNIT, MOST_PIECE_BYTES);
}

static rondo_status check_ranks(const char *call, uint32_t rank, uint32_t world_size) {
  if (world_size == 0 || world_size > RONDO_MAX_RANKS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: a group of %" PRIu32 " ranks: use 1 to %d", call, world_size, RONDO_MAX_RANKS);
  if (rank < world_size) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: rank %" PRIu32 " of %" PRIu32 " is out of range: ranks count from 0", call, rank, world_size);
}

static rondo_status find_transport(const char *call, const rondo_device *device, const rondo_transport **out) {
  *out = NULL;
  if (rondo_device_takes_libraries(device)) *out = &rondo_nccl_transport;
  if (device->ops->semaphore != NULL) *out = &rondo_exchange_transport;
  if (*out != NULL) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE,
                    "%s: device '%s' does not support collectives: use a device of kind cpu or cuda", call,
                    device->name);
}

/* Joining --------------------------------------------------------------------------------------------------------- */

/* Ranks of one process that join one group, `count` of them. */
typedef struct joining {
  const char *call, *rendezvous;
  const rondo_transport *transport;
  const rondo_allocator *allocator;
  rondo_communicator_options options;
  rondo_communicator_plan *plans;
  uint32_t count;
  rondo_group **groups;
  rondo_link **links;
  rondo_communicator **out;
} joining;

static rondo_status allocate_joining(joining *j) {
  RONDO_TRY(rondo_allocate_items(j->allocator, j->count, sizeof *j->plans, &j->plans));
  RONDO_TRY(rondo_allocate_items(j->allocator, j->count, sizeof(rondo_group *), &j->groups));
  return rondo_allocate_items(j->allocator, j->count, sizeof(rondo_link *), &j->links);
}

static void free_joining(joining *j) {
  rondo_release(j->allocator, j->plans, j->count, sizeof *j->plans);
  rondo_release(j->allocator, j->groups, j->count, sizeof(rondo_group *));
  rondo_release(j->allocator, j->links, j->count, sizeof(rondo_link *));
}

static rondo_status enter_all(joining *j) {
  unsigned char token[RONDO_GROUP_TOKEN_BYTES] = {0};
  const bool is_first = j->plans[0].rank == 0;
  if (j->transport->prepare != NULL) RONDO_TRY(j->transport->prepare(j->plans[0].device, is_first, token));
  for (uint32_t i = 0; i < j->count; i++) {
    const rondo_communicator_plan *plan = &j->plans[i];
    const rondo_group_options options = {.path = j->rendezvous,
                                         .rank = plan->rank,
                                         .world_size = plan->world_size,
                                         .piece_bytes = j->transport->has_slots ? j->options.piece_bytes : 0,
                                         .kind = j->transport->kind,
                                         .token = is_first && i == 0 ? token : NULL,
                                         .timeout_ns = j->options.join_timeout_ms * NS_A_MS};
    RONDO_TRY(rondo_group_enter(&plan->device->allocator, &options, &j->groups[i]));
  }
  for (uint32_t i = 0; i < j->count; i++) RONDO_TRY(rondo_group_await(j->groups[i]));
  return RONDO_OK;
}

static rondo_status make_communicator(const joining *j, uint32_t i) {
  rondo_device *device = j->plans[i].device;
  rondo_communicator *made;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *made, &made));
  *made = (rondo_communicator){.device = device, .rank = j->plans[i].rank, .world_size = j->plans[i].world_size};
  j->out[i] = made;
  return RONDO_OK;
}

static void free_communicators(const joining *j) {
  for (uint32_t i = 0; i < j->count; i++) {
    rondo_release(&j->plans[i].device->allocator, j->out[i], 1, sizeof(rondo_communicator));
    j->out[i] = NULL;
  }
}

static rondo_status join_all(joining *j) {
  for (uint32_t i = 0; i < j->count; i++) RONDO_TRY(make_communicator(j, i));
  rondo_status status = enter_all(j);
  if (status == RONDO_OK) status = j->transport->open(j->plans, j->groups, j->count, j->links);
  if (status == RONDO_OK) return RONDO_OK;
  for (uint32_t i = 0; i < j->count; i++) rondo_group_leave(j->groups[i]);
  return rondo_fail_context(status, "%s", j->call);
}

static rondo_status join(joining *j) {
  const rondo_status status = join_all(j);
  if (status != RONDO_OK) {
    free_communicators(j);
    return status;
  }
  for (uint32_t i = 0; i < j->count; i++) {
    j->out[i]->link = j->links[i];
    rondo_device_begin_use(j->plans[i].device, &communicator_use);
  }
  return RONDO_OK;
}

static rondo_communicator_plan plan_of(const joining *j, rondo_device *device, uint32_t rank, uint32_t world_size) {
  return (rondo_communicator_plan){.device = device,
                                   .name = j->options.name == NULL ? "" : j->options.name,
                                   .rank = rank,
                                   .world_size = world_size,
                                   .timeout_ns = j->options.timeout_ms * NS_A_MS};
}

rondo_status rondo_communicator_create(rondo_device *device, const char *rendezvous, uint32_t rank, uint32_t world_size,
                                       const rondo_communicator_options *options,
                                       rondo_communicator **out_communicator) {
  const char *const call = "rondo_communicator_create";
  RONDO_TRY(rondo_check_call(call, "out_communicator", out_communicator));
  *out_communicator = NULL;
  RONDO_TRY(rondo_require(call, "device", device));
  RONDO_TRY(rondo_require(call, "rendezvous", rendezvous));
  RONDO_TRY(check_ranks(call, rank, world_size));
  rondo_communicator_plan plan;
  rondo_group *group = NULL;
  rondo_link *link = NULL;
  joining j = {.call = call,
               .rendezvous = rendezvous,
               .allocator = &device->allocator,
               .plans = &plan,
               .count = 1,
               .groups = &group,
               .links = &link,
               .out = out_communicator};
  RONDO_TRY(read_options(call, options, &j.options));
  RONDO_TRY(find_transport(call, device, &j.transport));
  plan = plan_of(&j, device, rank, world_size);
  return join(&j);
}

static rondo_status plan_all(joining *j, rondo_device *const *devices) {
  for (uint32_t i = 0; i < j->count; i++) {
    const rondo_transport *transport;
    RONDO_TRY(rondo_require(j->call, "a device", devices[i]));
    RONDO_TRY(find_transport(j->call, devices[i], &transport));
    if (i > 0 && transport != j->transport)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                        "%s: devices '%s' and '%s' are of different kinds: use one kind of device in a group", j->call,
                        devices[0]->name, devices[i]->name);
    j->transport = transport;
    j->plans[i] = plan_of(j, devices[i], i, j->count);
  }
  return RONDO_OK;
}

rondo_status rondo_communicator_create_all(rondo_device *const *devices, uint32_t count,
                                           const rondo_communicator_options *options,
                                           rondo_communicator **out_communicators) {
  const char *const call = "rondo_communicator_create_all";
  char rendezvous[RONDO_RENDEZVOUS_BYTES];
  RONDO_TRY(rondo_check_call(call, "out_communicators", out_communicators));
  RONDO_TRY(check_ranks(call, 0, count));
  for (uint32_t i = 0; i < count; i++) out_communicators[i] = NULL;
  RONDO_TRY(rondo_require(call, "devices", devices));
  RONDO_TRY(rondo_require(call, "a device", devices[0]));
  joining j = {.call = call,
               .rendezvous = rendezvous,
               .allocator = &devices[0]->allocator,
               .count = count,
               .out = out_communicators};
  RONDO_TRY(read_options(call, options, &j.options));
  RONDO_TRY(rondo_rendezvous_make(rendezvous));
  rondo_status status = allocate_joining(&j);
  if (status == RONDO_OK) status = plan_all(&j, devices);
  if (status == RONDO_OK) status = join(&j);
  free_joining(&j);
  return status;
}

/* Life ------------------------------------------------------------------------------------------------------------ */

rondo_status rondo_communicator_destroy(rondo_communicator *communicator) {
  if (communicator == NULL || communicator->device->is_inherited) return RONDO_OK;
  RONDO_TRY(rondo_refuse_in_callback("rondo_communicator_destroy"));
  rondo_device *device = communicator->device;
  const rondo_status status = communicator->link->transport->close(communicator->link);
  rondo_release(&device->allocator, communicator, 1, sizeof *communicator);
  rondo_device_end_use(device, &communicator_use);
  return status;
}

rondo_status rondo_communicator_abort(rondo_communicator *communicator) {
  RONDO_TRY(rondo_check_call("rondo_communicator_abort", "the communicator", communicator));
  RONDO_TRY(rondo_device_require_own("rondo_communicator_abort", communicator->device));
  return communicator->link->transport->break_off(communicator->link);
}

rondo_status rondo_communicator_get_info(const rondo_communicator *communicator, rondo_communicator_info *out_info) {
  const char *const call = "rondo_communicator_get_info";
  RONDO_TRY(rondo_require(call, "the communicator", communicator));
  RONDO_TRY(rondo_require(call, "out_info", out_info));
  rondo_communicator_info info = {
      .struct_size = sizeof info, .rank = communicator->rank, .world_size = communicator->world_size};
  info.collectives = atomic_load_explicit(&communicator->collectives, memory_order_relaxed);
  communicator->link->transport->info(communicator->link, &info);
  return rondo_versioned_write("rondo_communicator_info", &info, out_info, sizeof info);
}
