/* SPDX-License-Identifier: MIT
 * Finding, writing, reading and listing the named values of a compiled program.
 */
#include "tensor/run/named_values.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/versioned_struct.h"
#include "device/device.h"
#include "tensor/program/shape.h"
#include "tensor/run/arena_use.h"

/* Finding ---------------------------------------------------------------------------------------------------------- */

rondo_named_value *rondo_values_look_up(const rondo_compiled *compiled, const char *name, const char *kinds) {
  for (size_t i = 0; i < compiled->values.count; i++) {
    rondo_named_value *value = &compiled->values.items[i];
    if (strcmp(value->name, name) == 0 && strchr(kinds, value->kind) != NULL) return value;
  }
  return NULL;
}

static const char *name_of_kind(char kind) {
  return kind == 's' ? "a state" : kind == 'c' ? "a cell" : kind == 'i' ? "an input" : "an output";
}

/* Explains why the call takes no value of this name: there is none, or it is of another kind. */
static rondo_status fail_unknown(const rondo_compiled *compiled, const char *call, const char *name,
                                 const char *kinds) {
  char list[512] = "";
  size_t used = 0;
  for (size_t i = 0; i < compiled->values.count && used + 8 < sizeof list; i++) {
    const rondo_named_value *value = &compiled->values.items[i];
    if (strchr(kinds, value->kind) == NULL) continue;
    const size_t bytes = strlen(value->name);
    if (used + bytes + 3 > sizeof list - 8) {
      memcpy(list + used, ", ...", sizeof ", ...");
      break;
    }
    if (used > 0) memcpy(list + used, ", ", 3), used += 2;
    memcpy(list + used, value->name, bytes + 1);
    used += bytes;
  }
  const rondo_named_value *other = rondo_values_look_up(compiled, name, "scio");
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME, "%s: '%s' of %s is %s; it takes: %s", call, name,
                    compiled->label, other == NULL ? "no value" : name_of_kind(other->kind), used == 0 ? "none" : list);
}

static rondo_status find_capture(const rondo_compiled *compiled, const char *call, bool *out_captures) {
  RONDO_TRY(rondo_device_require_own(call, compiled->device));
  rondo_capture_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_capture_get_info(compiled->stream, &info));
  *out_captures = info.state != RONDO_CAPTURE_NONE;
  return RONDO_OK;
}

rondo_status rondo_compiled_refuse_capturing(const rondo_compiled *compiled, const char *call) {
  bool captures;
  RONDO_TRY(find_capture(compiled, call, &captures));
  if (!captures) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: %s while its stream captures: end the capture first", call, compiled->label);
}

/* A captured copy would run at each replay, from memory that holds other data by then. */
static rondo_status refuse_while_capturing(const rondo_compiled *compiled, const char *call, const char *name) {
  bool captures;
  RONDO_TRY(find_capture(compiled, call, &captures));
  if (!captures) return RONDO_OK;
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s: '%s' of %s while its stream captures: '%s' stays at its address, so write it before "
                    "the capture or a replay, and read it after a replay",
                    call, name, compiled->label, name);
}

rondo_status rondo_values_find(rondo_compiled *compiled, const char *call, const char *name, const char *kinds,
                               rondo_named_value **out) {
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  RONDO_TRY(rondo_require(call, "name", name));
  *out = rondo_values_look_up(compiled, name, kinds);
  return *out == NULL ? fail_unknown(compiled, call, name, kinds) : refuse_while_capturing(compiled, call, name);
}

rondo_status rondo_values_find_sized(rondo_compiled *compiled, const char *call, const char *name, const char *kinds,
                                     const void *data, size_t bytes, rondo_named_value **out) {
  RONDO_TRY(rondo_require(call, "compiled", compiled));
  RONDO_TRY(rondo_require(call, "name", name));
  RONDO_TRY(rondo_require(call, "data", data));
  *out = rondo_values_look_up(compiled, name, kinds);
  if (*out == NULL) return fail_unknown(compiled, call, name, kinds);
  const size_t wanted = rondo_shape_bytes(&(*out)->shape);
  if (bytes == wanted) return refuse_while_capturing(compiled, call, name);
  char shape[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                    "%s: '%s' %s has %zu bytes, and the call gives %zu: give the bytes of all of it", call, name,
                    rondo_shape_text(shape, &(*out)->shape), wanted, bytes);
}

/* Copying ---------------------------------------------------------------------------------------------------------- */

static rondo_status launch_pack(const rondo_compiled *compiled, const rondo_pack_call *call) {
  return rondo_launch(compiled->stream, compiled->packer, rondo_pack_grid(call), RONDO_PACK_ARGUMENTS(*call));
}

rondo_status rondo_values_pack(const rondo_compiled *compiled, const rondo_named_value *value) {
  const rondo_pack_call all = rondo_pack_all(value->packed);
  assert(all.from != NULL);
  return launch_pack(compiled, &all);
}

/* Packs elements from the caller's memory. */
static rondo_status pack_given(rondo_compiled *compiled, const rondo_packed_state *state, size_t first,
                               const unsigned char *data, size_t count) {
  for (size_t done = 0; done < count;) {
    const void *at;
    size_t bytes;
    RONDO_TRY(rondo_bounce_put(&compiled->bounce, compiled->stream, data + done * state->bytes,
                               (count - done) * state->bytes, &at, &bytes));
    const rondo_pack_call call = {state, first + done, bytes / state->bytes, at, state->address};
    RONDO_TRY(launch_pack(compiled, &call));
    done += call.count;
  }
  return RONDO_OK;
}

static rondo_status write_packed(rondo_compiled *compiled, const rondo_packed_state *state, size_t offset,
                                 const void *data, size_t bytes) {
  const size_t first = offset / state->bytes, count = bytes / state->bytes;
  assert(offset % state->bytes == 0 && bytes % state->bytes == 0);
  if (state->plain == NULL) return pack_given(compiled, state, first, data, count);
  RONDO_TRY(rondo_bounce_write(&compiled->bounce, compiled->stream, state->plain + offset, data, bytes));
  return launch_pack(compiled, &(rondo_pack_call){state, first, count, state->plain + offset, state->address});
}

static rondo_status write_bytes(rondo_compiled *compiled, const rondo_named_value *value, size_t offset,
                                const void *data, size_t bytes) {
  if (value->packed != NULL) return write_packed(compiled, value->packed, offset, data, bytes);
  return rondo_bounce_write(&compiled->bounce, compiled->stream, (unsigned char *)value->address + offset, data, bytes);
}

rondo_status rondo_values_write_part(rondo_compiled *compiled, rondo_named_value *value, size_t offset,
                                     const void *data, size_t bytes) {
  if (value->in_arena) rondo_arena_claim(compiled);
  RONDO_TRY(write_bytes(compiled, value, offset, data, bytes));
  if (value->packed == NULL && value->address == compiled->ranks.runs) compiled->sharing->is_round_known = false;
  const bool is_last = offset + bytes == rondo_shape_bytes(&value->shape);
  if (value->is_lost && is_last) rondo_arena_note_written(compiled, value);
  return RONDO_OK;
}

rondo_status rondo_values_write(rondo_compiled *compiled, rondo_named_value *value, const void *data) {
  return rondo_values_write_part(compiled, value, 0, data, rondo_shape_bytes(&value->shape));
}

rondo_status rondo_compiled_write(rondo_compiled *compiled, const char *name, const void *data, size_t bytes) {
  static const char call[] = "rondo_compiled_write";
  rondo_named_value *value;
  RONDO_TRY(rondo_values_find_sized(compiled, call, name, "sci", data, bytes, &value));
  return value->input == NULL ? rondo_values_write(compiled, value, data)
                              : rondo_feeds_write(compiled, value, call, data);
}

rondo_status rondo_compiled_read(rondo_compiled *compiled, const char *name, void *data, size_t bytes) {
  static const char call[] = "rondo_compiled_read";
  rondo_named_value *value;
  RONDO_TRY(rondo_values_find_sized(compiled, call, name, "sco", data, bytes, &value));
  RONDO_TRY(rondo_arena_require(compiled, value, call));
  const void *rows = rondo_named_rows(value);
  if (rows != NULL) RONDO_TRY(rondo_copy_async(compiled->stream, data, rows, bytes));
  RONDO_TRY(rondo_compiled_judge(compiled));
  if (rows == NULL) rondo_packed_state_unpack(value->packed, data);
  return RONDO_OK;
}

/* Listing ---------------------------------------------------------------------------------------------------------- */

size_t rondo_compiled_count_values(const rondo_compiled *compiled) { return compiled->values.count; }

rondo_compiled_value rondo_compiled_value_at(const rondo_compiled *compiled, size_t index) {
  const rondo_named_value *value = &compiled->values.items[index];
  rondo_compiled_value out = {.struct_size = sizeof out,
                              .kind = value->kind,
                              .type = value->shape.type,
                              .name = value->name,
                              .rank = value->shape.rank,
                              .bytes = rondo_shape_bytes(&value->shape),
                              .address = value->address,
                              .staging = value->input != NULL    ? value->input->staging
                                         : value->output != NULL ? RONDO_STAGING_HOST
                                                                 : RONDO_STAGING_SLOT};
  memcpy(out.shape, value->shape.dims, sizeof out.shape);
  return out;
}

rondo_status rondo_compiled_get_value(const rondo_compiled *compiled, size_t index, rondo_compiled_value *out_value) {
  RONDO_TRY(rondo_require("rondo_compiled_get_value", "compiled", compiled));
  RONDO_TRY(rondo_require("rondo_compiled_get_value", "out_value", out_value));
  if (index >= compiled->values.count) {
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "%s has %zu named values, so none at %zu",
                      compiled->label, compiled->values.count, index);
  }
  const rondo_compiled_value out = rondo_compiled_value_at(compiled, index);
  return rondo_versioned_write("rondo_compiled_value", &out, out_value, sizeof out);
}
