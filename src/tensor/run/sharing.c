/* SPDX-License-Identifier: MIT
 * What compiled programs that share have in common.
 */
#include "tensor/run/sharing.h"

#include <assert.h>
#include <string.h>

#include <rondo/capture.h>

#include "exec/stream/stream_internal.h"

rondo_status rondo_sharing_check_stream(const char *call, const char *who, const rondo_device *device,
                                        const rondo_sharing *joined, rondo_stream *stream) {
  rondo_capture_info info = {.struct_size = sizeof info};
  if (stream == NULL) return RONDO_OK;
  if (stream->device != device)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                      "%s: %s is to run on %s, which is a stream of device '%s', not of '%s': give one of this device",
                      call, who, stream->label, stream->device->name, device->name);
  if (joined != NULL && stream != joined->stream)
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
        "%s: %s is to run on %s, and shares an arena with a program on %s: programs that share run on one "
        "stream: set share_states_only, or leave the stream NULL",
        call, who, stream->label, joined->stream->label);
  RONDO_TRY(rondo_capture_get_info(stream, &info));
  if (info.state == RONDO_CAPTURE_NONE) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: %s is to run on %s, which captures: end the capture first", call, who, stream->label);
}

static rondo_status take_stream(rondo_sharing *sharing, rondo_stream *stream, const char *name) {
  const rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .name = name};
  sharing->is_lent = stream != NULL;
  if (stream == NULL) return rondo_stream_create(sharing->device, &options, &sharing->stream);
  rondo_stream_lend(stream);
  sharing->stream = stream;
  return RONDO_OK;
}

static rondo_status leave_stream(const rondo_sharing *sharing) {
  if (!sharing->is_lent) return rondo_stream_destroy(sharing->stream);
  rondo_stream_return(sharing->stream);
  return RONDO_OK;
}

rondo_status rondo_sharing_create(const rondo_allocator *allocator, rondo_device *device, rondo_stream *stream,
                                  const char *name, rondo_sharing **out) {
  *out = NULL;
  rondo_sharing *sharing;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *sharing, &sharing));
  *sharing = (rondo_sharing){.allocator = *allocator,
                             .device = device,
                             .users = 1,
                             .kernels = {.allocator = *allocator},
                             .maker = {.device = device, .allocator = *allocator},
                             .plans = {.allocator = *allocator}};
  const rondo_status status = take_stream(sharing, stream, name);
  if (status != RONDO_OK) {
    rondo_release(allocator, sharing, 1, sizeof *sharing);
    return status;
  }
  rondo_cudnn_maker_init(&sharing->cudnn_maker, device, allocator);
  *out = sharing;
  return RONDO_OK;
}

static rondo_status drop_values(rondo_sharing *sharing, size_t count) {
  rondo_status status = RONDO_OK;
  while (sharing->values.count > count) {
    const rondo_shared_value *value = &sharing->values.items[--sharing->values.count];
    rondo_status_keep_first(&status, rondo_packed_state_release(value->packed));
    rondo_release_text(&sharing->allocator, value->name);
  }
  return status;
}

/* The caller has a reference to those that are packed. */
static void take_back(rondo_sharing *sharing, size_t count) {
  rondo_status_ignore(drop_values(sharing, count), "nothing is freed");
}

rondo_status rondo_sharing_release(rondo_sharing *sharing) {
  if (sharing == NULL || --sharing->users > 0) return RONDO_OK;
  assert(sharing->arenas.count == 0); /* each program has left its own */
  const rondo_allocator allocator = sharing->allocator;
  rondo_status status = leave_stream(sharing);
  for (size_t i = 0; i < sharing->blocks.count; i++)
    rondo_status_keep_first(&status, rondo_free(sharing->device, sharing->blocks.items[i]));
  rondo_status_keep_first(&status, drop_values(sharing, 0));
  rondo_kernel_set_free(&sharing->kernels);
  rondo_product_maker_deinit(&sharing->maker);
  rondo_cudnn_maker_deinit(&sharing->cudnn_maker);
  rondo_earlier_plans_free(&sharing->plans);
  rondo_array_free(&allocator, &sharing->blocks);
  rondo_array_free(&allocator, &sharing->values);
  rondo_array_free(&allocator, &sharing->arenas);
  rondo_status_keep_first(&status, rondo_sharing_release(sharing->lender));
  rondo_release(&allocator, sharing, 1, sizeof *sharing);
  return status;
}

/* States ----------------------------------------------------------------------------------------------------------- */

uint32_t rondo_sharing_find(const rondo_sharing *sharing, const char *name) {
  for (size_t i = 0; sharing != NULL && i < sharing->values.count; i++)
    if (strcmp(sharing->values.items[i].name, name) == 0) return (uint32_t)i;
  return RONDO_NO_VALUE;
}

static rondo_status add_value(rondo_sharing *sharing, const rondo_shared_value *value) {
  rondo_shared_value mine = *value;
  RONDO_TRY(rondo_allocate_text(&sharing->allocator, value->name, &mine.name));
  const rondo_status status = rondo_array_push(&sharing->allocator, &sharing->values, &mine);
  if (status != RONDO_OK) rondo_release_text(&sharing->allocator, mine.name);
  if (status == RONDO_OK && mine.packed != NULL) (void)rondo_packed_state_retain(mine.packed);
  return status;
}

rondo_status rondo_sharing_borrow(rondo_sharing *lender, rondo_stream *stream, const char *name, rondo_sharing **out) {
  RONDO_TRY(rondo_sharing_create(&lender->allocator, lender->device, stream, name, out));
  (*out)->lender = lender;
  lender->users++;
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < lender->values.count && status == RONDO_OK; i++)
    status = add_value(*out, &lender->values.items[i]);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status_ignore(rondo_sharing_release(*out), "the first failure is returned");
  *out = NULL;
  return rondo_error_raise(&error);
}

rondo_status rondo_sharing_adopt(rondo_sharing *sharing, void *block, const rondo_shared_value *values, size_t count) {
  const size_t before = sharing->values.count;
  rondo_status status = RONDO_OK;
  for (size_t i = 0; i < count && status == RONDO_OK; i++) status = add_value(sharing, &values[i]);
  if (status == RONDO_OK) status = rondo_array_push(&sharing->allocator, &sharing->blocks, &block);
  if (status != RONDO_OK) take_back(sharing, before);
  return status;
}

void *rondo_sharing_give_back(rondo_sharing *sharing, size_t count) {
  assert(count <= sharing->values.count && sharing->blocks.count > 0);
  take_back(sharing, count);
  return sharing->blocks.items[--sharing->blocks.count];
}

/* Arenas ----------------------------------------------------------------------------------------------------------- */

static rondo_status make_arena(rondo_sharing *sharing, size_t bytes, rondo_arena **out) {
  rondo_arena *arena;
  void *memory = NULL;
  RONDO_TRY(rondo_array_reserve(&sharing->allocator, &sharing->arenas, sharing->arenas.count + 1));
  RONDO_TRY(rondo_allocate_items(&sharing->allocator, 1, sizeof *arena, &arena));
  const rondo_status status = rondo_malloc(sharing->device, bytes, "arena", &memory);
  if (status != RONDO_OK) {
    rondo_release(&sharing->allocator, arena, 1, sizeof *arena);
    return status;
  }
  *arena = (rondo_arena){.memory = memory, .bytes = bytes};
  sharing->arenas.items[sharing->arenas.count++] = arena;
  *out = arena;
  return RONDO_OK;
}

rondo_status rondo_sharing_take_arena(rondo_sharing *sharing, size_t bytes, rondo_arena **out) {
  rondo_arena *largest = NULL;
  for (size_t i = 0; i < sharing->arenas.count; i++)
    if (largest == NULL || sharing->arenas.items[i]->bytes > largest->bytes) largest = sharing->arenas.items[i];
  if (largest == NULL || largest->bytes < bytes) RONDO_TRY(make_arena(sharing, bytes, &largest));
  largest->users++;
  *out = largest;
  return RONDO_OK;
}

rondo_status rondo_sharing_leave_arena(rondo_sharing *sharing, rondo_arena *arena, const rondo_compiled *user) {
  if (arena == NULL) return RONDO_OK;
  assert(arena->users > 0);
  if (arena->holder == user) arena->holder = NULL;
  if (--arena->users > 0) return RONDO_OK;
  size_t at = 0;
  while (sharing->arenas.items[at] != arena) at++;
  sharing->arenas.items[at] = sharing->arenas.items[--sharing->arenas.count];
  const rondo_status status = rondo_free(sharing->device, arena->memory);
  rondo_release(&sharing->allocator, arena, 1, sizeof *arena);
  return status;
}
