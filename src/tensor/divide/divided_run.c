/* SPDX-License-Identifier: MIT
 * Running a divided program, and writing, reading and listing its values. No call disturbs a capture of another thread:
 * calls that wait do so in the thread mode RELAXED.
 */
#include <assert.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "exec/capture/stray_work.h"
#include "tensor/divide/divided.h"
#include "tensor/files/weight_elements.h"
#include "tensor/files/weights_program.h"
#include "tensor/program/shape.h"
#include "tensor/run/arena_use.h"
#include "tensor/run/named_values.h"

/* Order ------------------------------------------------------------------------------------------------------------ */

/* Orders the part after everything that was enqueued on its device so far. */
static rondo_status enter(rondo_divided *divided, uint32_t part) {
  assert(part < divided->parts.count);
  const rondo_divided_unit *unit = &divided->parts.items[part];
  const uint32_t last = divided->last[unit->place];
  if (last == 0 || last - 1 == part) return RONDO_OK;
  return rondo_stream_wait_event(unit->compiled->stream, divided->parts.items[last - 1].done);
}

/* Orders everything that is enqueued on the part's device later after what is on the part's stream. */
static rondo_status leave(rondo_divided *divided, uint32_t part) {
  const rondo_divided_unit *unit = &divided->parts.items[part];
  RONDO_TRY(rondo_event_record(unit->done, unit->compiled->stream));
  divided->last[unit->place] = part + 1;
  return RONDO_OK;
}

/* Links ------------------------------------------------------------------------------------------------------------ */

static rondo_status reserve(rondo_divided *divided, rondo_divided_link *link) {
  if (link->buffer != NULL) return RONDO_OK;
  const rondo_status status = rondo_host_malloc(link->host_of, link->bytes, &link->buffer);
  if (status != RONDO_OK) {
    char text[RONDO_SIZE_TEXT];
    return rondo_fail_context(status, "host memory of %s for '%s', from part %u to part %u (%s)", divided->label,
                              link->what, link->from, link->to, rondo_size_text(text, link->bytes));
  }
  divided->host_bytes += link->bytes;
  return RONDO_OK;
}

/* Copies into host memory after the value is computed, and after the previous copy was taken. */
static rondo_status send(rondo_divided *divided, rondo_divided_link *link) {
  assert(link->is_crossing && link->source != NULL);
  rondo_stream *stream = divided->parts.items[link->from].compiled->stream;
  RONDO_TRY(reserve(divided, link));
  RONDO_TRY(rondo_event_synchronize(link->taken));
  RONDO_TRY(rondo_copy_async(stream, link->buffer, link->source, link->bytes));
  return rondo_event_record(link->sent, stream);
}

static rondo_status take(rondo_divided *divided, rondo_divided_link *link) {
  rondo_compiled *to = divided->parts.items[link->to].compiled;
  if (link->is_crossing) RONDO_TRY(rondo_event_synchronize(link->sent));
  if (link->input->in_arena) rondo_arena_claim(to);
  const void *source = link->is_crossing ? link->buffer : link->source;
  RONDO_TRY(rondo_copy_async(to->stream, link->input->address, source, link->bytes));
  if (link->input->is_lost) rondo_arena_note_written(to, link->input);
  return link->is_crossing ? rondo_event_record(link->taken, to->stream) : RONDO_OK;
}

static rondo_status send_states(rondo_divided *divided) {
  for (size_t i = 0; i < divided->links.count; i++) {
    rondo_divided_link *link = &divided->links.items[i];
    if (!link->at_beginning) continue;
    RONDO_TRY(enter(divided, link->from));
    RONDO_TRY(send(divided, link));
    RONDO_TRY(leave(divided, link->from));
  }
  return RONDO_OK;
}

/* Failures --------------------------------------------------------------------------------------------------------- */

/* Looks for wrong indices of a part that this run has enqueued. The first failure is kept until it is returned. */
static rondo_status check_part(rondo_divided *divided, uint32_t part, bool *inout_failed) {
  rondo_compiled *compiled = divided->parts.items[part].compiled;
  if (compiled->checks.items.count == 0) return RONDO_OK;
  RONDO_TRY(rondo_stream_synchronize(compiled->stream));
  if (rondo_compiled_judge(compiled) == RONDO_OK) return RONDO_OK;
  *inout_failed = true;
  if (divided->failure.status == RONDO_OK) rondo_error_save(&divided->failure);
  return RONDO_OK;
}

/* Whether the run has failed before a part that would change states. */
static rondo_status check_parts_before(rondo_divided *divided, uint32_t part, bool *out_failed) {
  rondo_saved_error before;
  *out_failed = false;
  if (!divided->parts.items[part].has_updates) return RONDO_OK;
  rondo_error_save(&before);
  for (uint32_t p = 0; p < part; p++) RONDO_TRY(check_part(divided, p, out_failed));
  if (*out_failed) rondo_error_restore(&before);
  return RONDO_OK;
}

rondo_status rondo_divided_take_failure(rondo_divided *divided) {
  const rondo_saved_error failure = divided->failure;
  divided->failure.status = RONDO_OK;
  return rondo_error_raise(&failure);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static rondo_status run_part(rondo_divided *divided, uint32_t part, bool is_recorded) {
  rondo_compiled *compiled = divided->parts.items[part].compiled;
  RONDO_TRY(enter(divided, part));
  for (size_t i = 0; i < divided->links.count; i++)
    if (divided->links.items[i].to == part) RONDO_TRY(take(divided, &divided->links.items[i]));
  RONDO_TRY(is_recorded ? rondo_compiled_run(compiled) : rondo_compiled_run_eager(compiled));
  for (size_t i = 0; i < divided->links.count; i++) {
    rondo_divided_link *link = &divided->links.items[i];
    if (link->from == part && link->is_crossing && !link->at_beginning) RONDO_TRY(send(divided, link));
  }
  return leave(divided, part);
}

/* A run that has failed stops. */
static rondo_status run_all(rondo_divided *divided, bool is_recorded) {
  bool has_failed = false;
  RONDO_TRY(send_states(divided));
  for (uint32_t p = 0; p < divided->parts.count && !has_failed; p++) {
    RONDO_TRY(check_parts_before(divided, p, &has_failed));
    if (!has_failed) RONDO_TRY(run_part(divided, p, is_recorded));
  }
  return RONDO_OK;
}

static rondo_status refuse_capturing(const rondo_divided *divided, const char *call) {
  for (size_t i = 0; i < divided->parts.count; i++) {
    RONDO_TRY(rondo_capture_watch_refuse(divided->parts.items[i].compiled->stream, call));
    RONDO_TRY(rondo_compiled_refuse_capturing(divided->parts.items[i].compiled, call));
  }
  return RONDO_OK;
}

static rondo_status run(rondo_divided *divided, const char *call, bool is_recorded) {
  RONDO_TRY(rondo_require(call, "divided", divided));
  RONDO_TRY(refuse_capturing(divided, call));
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  RONDO_TRY(rondo_capture_exchange_thread_mode(&mode));
  const rondo_status status = run_all(divided, is_recorded);
  const rondo_status back = rondo_capture_exchange_thread_mode(&mode);
  return status == RONDO_OK ? back : status;
}

rondo_status rondo_divided_run(rondo_divided *divided) { return run(divided, "rondo_divided_run", true); }

rondo_status rondo_divided_run_eager(rondo_divided *divided) { return run(divided, "rondo_divided_run_eager", false); }

/* Waits for all parts, and returns the first failure. */
rondo_status rondo_divided_synchronize(rondo_divided *divided) {
  RONDO_TRY(rondo_require("rondo_divided_synchronize", "divided", divided));
  rondo_saved_error error = {.status = RONDO_OK};
  if (rondo_divided_take_failure(divided) != RONDO_OK) rondo_error_save(&error);
  for (size_t i = 0; i < divided->parts.count; i++) {
    const rondo_status status = rondo_compiled_synchronize(divided->parts.items[i].compiled);
    if (status != RONDO_OK && error.status == RONDO_OK) rondo_error_save(&error);
  }
  return rondo_error_raise(&error);
}

/* Values ----------------------------------------------------------------------------------------------------------- */

/* NULL when there is none of these kinds. */
static const rondo_divided_value *look_up(const rondo_divided *divided, const char *name, const char *kinds) {
  for (size_t i = 0; i < divided->values.count; i++) {
    const rondo_divided_value *value = &divided->values.items[i];
    if (strcmp(value->name, name) == 0 && strchr(kinds, value->kind) != NULL) return value;
  }
  return NULL;
}

static rondo_status find(const rondo_divided *divided, const char *call, const char *name, const char *kinds,
                         const rondo_divided_value **out) {
  RONDO_TRY(rondo_require(call, "divided", divided));
  RONDO_TRY(rondo_require(call, "name", name));
  *out = look_up(divided, name, kinds);
  if (*out != NULL) return RONDO_OK;
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME, "%s: %s has no value '%s' that this call takes", call,
                    divided->label, name);
}

static bool has_value(const rondo_compiled *compiled, const rondo_divided_value *value) {
  return rondo_values_look_up(compiled, value->name, (char[]){value->kind, '\0'}) != NULL;
}

/* All parts of a device share a state or cell, so only the first part that has it writes it. */
static bool is_written_before(const rondo_divided *divided, uint32_t part, const rondo_divided_value *value) {
  for (uint32_t i = 0; value->kind != 'i' && i < part; i++) {
    const rondo_divided_unit *unit = &divided->parts.items[i];
    if (unit->place == divided->parts.items[part].place && has_value(unit->compiled, value)) return true;
  }
  return false;
}

rondo_status rondo_divided_write(rondo_divided *divided, const char *name, const void *data, size_t bytes) {
  static const char call[] = "rondo_divided_write";
  const rondo_divided_value *value;
  RONDO_TRY(find(divided, call, name, "sci", &value));
  for (uint32_t p = 0; p < divided->parts.count; p++) {
    rondo_compiled *compiled = divided->parts.items[p].compiled;
    if (!has_value(compiled, value) || is_written_before(divided, p, value)) continue;
    RONDO_TRY(rondo_compiled_refuse_capturing(compiled, call));
    RONDO_TRY(enter(divided, p));
    RONDO_TRY(rondo_compiled_write(compiled, name, data, bytes));
    RONDO_TRY(leave(divided, p));
  }
  return RONDO_OK;
}

rondo_status rondo_divided_read(rondo_divided *divided, const char *name, void *data, size_t bytes) {
  const rondo_divided_value *value;
  RONDO_TRY(find(divided, "rondo_divided_read", name, "sco", &value));
  RONDO_TRY(rondo_divided_synchronize(divided));
  return rondo_compiled_read(divided->parts.items[value->part].compiled, name, data, bytes);
}

/* Weights ---------------------------------------------------------------------------------------------------------- */

static rondo_status gather(rondo_weights *into, rondo_divided *divided, const rondo_kept_values *kept) {
  for (size_t i = 0; i < divided->values.count; i++) {
    const rondo_divided_value *value = &divided->values.items[i];
    if (value->kind != 's' || !rondo_chosen(kept, value->name)) continue;
    const rondo_compiled *compiled = divided->parts.items[value->part].compiled;
    const rondo_named_value *named = rondo_values_look_up(compiled, value->name, "s");
    void *data = NULL;
    RONDO_TRY(rondo_weights_append(into, value->name, &named->shape, &data));
    RONDO_TRY(rondo_divided_read(divided, value->name, data, rondo_shape_bytes(&named->shape)));
  }
  return RONDO_OK;
}

rondo_status rondo_weights_gather_divided(rondo_weights *weights, rondo_divided *divided, rondo_weight_filter only,
                                          void *user) {
  static const char call[] = "rondo_weights_gather_divided";
  const rondo_kept_values kept = {.only = only, .user = user};
  rondo_weights *gathered = NULL;
  RONDO_TRY(rondo_require(call, "weights", weights));
  RONDO_TRY(rondo_require(call, "divided", divided));
  RONDO_TRY(rondo_weights_create(&weights->allocator, &gathered));
  rondo_status status = gather(gathered, divided, &kept);
  if (status == RONDO_OK) status = rondo_weights_move(weights, gathered);
  rondo_weights_destroy(gathered);
  return status;
}

static rondo_status keep_piece(void *user, size_t offset, const void *data, size_t bytes) {
  memcpy((unsigned char *)user + offset, data, bytes);
  return RONDO_OK;
}

/* Of another type or form than in the set, so the whole is needed, which several parts may have. */
static rondo_status write_converted(const rondo_weights *weights, const rondo_weights_entry *entry, rondo_type type,
                                    rondo_divided *divided) {
  const size_t elements = rondo_shape_elements(&entry->shape), width = rondo_type_bytes(type);
  void *data;
  RONDO_TRY(rondo_allocate_items(&weights->allocator, elements, width, &data));
  rondo_status status = rondo_weights_read_elements(weights, entry, type, 0, elements, keep_piece, data);
  if (status == RONDO_OK) status = rondo_divided_write(divided, entry->name, data, elements * width);
  rondo_release(&weights->allocator, data, elements, width);
  return status;
}

static rondo_status write_state(const rondo_weights *weights, const rondo_divided_value *value,
                                rondo_divided *divided) {
  const rondo_weights_entry *entry = rondo_weights_look_up(weights, value->name);
  const rondo_compiled *compiled = divided->parts.items[value->part].compiled;
  const rondo_type type = rondo_values_look_up(compiled, value->name, "s")->shape.type;
  if (!rondo_weights_is_plain(entry) || entry->shape.type != type)
    return write_converted(weights, entry, type, divided);
  return rondo_divided_write(divided, value->name, entry->data, rondo_shape_bytes(&entry->shape));
}

rondo_status rondo_weights_apply_divided(const rondo_weights *weights, rondo_divided *divided, rondo_weight_filter only,
                                         void *user) {
  static const char call[] = "rondo_weights_apply_divided";
  const rondo_kept_values kept = {.only = only, .user = user};
  RONDO_TRY(rondo_require(call, "weights", weights));
  RONDO_TRY(rondo_require(call, "divided", divided));
  for (size_t i = 0; i < divided->parts.count; i++)
    RONDO_TRY(rondo_weights_check_kept(weights, divided->parts.items[i].compiled, &kept));
  for (size_t i = 0; i < divided->values.count; i++) {
    const rondo_divided_value *value = &divided->values.items[i];
    if (value->kind != 's' || !rondo_chosen(&kept, value->name)) continue;
    RONDO_TRY(write_state(weights, value, divided));
  }
  return RONDO_OK;
}

/* What is known ---------------------------------------------------------------------------------------------------- */

rondo_status rondo_divided_get_info(const rondo_divided *divided, rondo_divided_info *out_info) {
  RONDO_TRY(rondo_require("rondo_divided_get_info", "divided", divided));
  RONDO_TRY(rondo_require("rondo_divided_get_info", "out_info", out_info));
  rondo_divided_info info = {.parts = (uint32_t)divided->parts.count,
                             .copies = (uint32_t)divided->links.count,
                             .host_bytes = divided->host_bytes};
  for (size_t i = 0; i < divided->links.count; i++) {
    if (!divided->links.items[i].is_crossing) continue;
    info.crossings++;
    info.copy_bytes += divided->links.items[i].bytes;
  }
  return rondo_versioned_write("rondo_divided_info", &info, out_info, sizeof info);
}

static rondo_status check_index(const char *call, const rondo_divided *divided, const char *what, size_t index,
                                size_t count) {
  if (index < count) return RONDO_OK;
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "%s: %s has %zu %s, so none at %zu", call,
                    divided->label, count, what, index);
}

rondo_status rondo_divided_get_part(const rondo_divided *divided, size_t index, rondo_divided_part *out_part) {
  static const char call[] = "rondo_divided_get_part";
  RONDO_TRY(rondo_require(call, "divided", divided));
  RONDO_TRY(rondo_require(call, "out_part", out_part));
  RONDO_TRY(check_index(call, divided, "parts", index, divided->parts.count));
  const rondo_divided_unit *unit = &divided->parts.items[index];
  const rondo_divided_part part = {
      .place = unit->place, .device = unit->device, .compiled = unit->compiled, .operators = unit->operators};
  return rondo_versioned_write("rondo_divided_part", &part, out_part, sizeof part);
}

rondo_status rondo_divided_get_copy(const rondo_divided *divided, size_t index, rondo_divided_copy *out_copy) {
  static const char call[] = "rondo_divided_get_copy";
  RONDO_TRY(rondo_require(call, "divided", divided));
  RONDO_TRY(rondo_require(call, "out_copy", out_copy));
  RONDO_TRY(check_index(call, divided, "copies", index, divided->links.count));
  const rondo_divided_link *link = &divided->links.items[index];
  const rondo_divided_copy copy = {.from = link->from,
                                   .to = link->to,
                                   .at_beginning = link->at_beginning,
                                   .type = link->input->shape.type,
                                   .what = link->what,
                                   .bytes = link->bytes};
  return rondo_versioned_write("rondo_divided_copy", &copy, out_copy, sizeof copy);
}
