/* SPDX-License-Identifier: MIT
 * Compiling a divided program: one part after the other by rondo_compile, then the links between them.
 */
#include "tensor/divide/divided.h"

#include "device/device.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/versioned_struct.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"
#include "tensor/run/named_values.h"

static const char call[] = "rondo_compile_divided";

typedef struct builder {
  const rondo_program *program;
  rondo_device *const *devices;
  rondo_placement_list list;
  rondo_divide_options given;
  rondo_compile_options compile;
  rondo_division division;
  rondo_divided *divided;
} builder;

/* Options ---------------------------------------------------------------------------------------------------------- */

static rondo_status read_options(builder *b, const rondo_divide_options *options, size_t device_count) {
  RONDO_TRY(rondo_versioned_read("rondo_divide_options", options, &b->given, sizeof b->given));
  RONDO_TRY(rondo_versioned_read("rondo_compile_options", b->given.compile, &b->compile, sizeof b->compile));
  RONDO_TRY(rondo_placement_list_make(call, b->devices, device_count, b->given.rules, b->given.rule_count, &b->list));
  if (b->compile.share == NULL && !b->compile.share_states_only && b->compile.staged_count == 0 &&
      b->compile.stream == NULL)
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: share, staged and stream of rondo_compile_options cannot be used for parts: use "
                    "rondo_divide_options.share; each part runs on a stream of its own",
                    call);
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

static bool changes_states(const rondo_program *program) {
  for (size_t i = 0; i < program->operations.count; i++)
    if (program->operations.items[i].row->updates != 0) return true;
  return false;
}

static rondo_status check_share(const builder *b) {
  const rondo_divided *share = b->given.share;
  bool is_same = share == NULL || share->parts.count == b->division.parts.count;
  for (size_t i = 0; is_same && share != NULL && i < share->parts.count; i++)
    is_same = share->parts.items[i].device == b->devices[b->division.parts.items[i].place];
  if (is_same) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "%s: %s divides into %zu parts, but %s, which is to be shared, into %zu, or for other devices: "
                    "both must divide alike",
                    call, b->program->label, b->division.parts.count, share->label, share->parts.count);
}

/* The previous part on the same device, which has its states; NULL: none. */
static rondo_compiled *part_before(const builder *b, uint32_t part) {
  for (uint32_t i = part; i-- > 0;)
    if (b->divided->parts.items[i].place == b->division.parts.items[part].place)
      return b->divided->parts.items[i].compiled;
  return NULL;
}

/* Adds to the error about a missing kernel which other devices of the list have one. */
static rondo_status explain_lack(const builder *b, uint32_t part, rondo_status status) {
  rondo_saved_error error;
  rondo_error_save(&error);
  if (status != RONDO_UNSUPPORTED || error.reason != RONDO_REASON_NO_FUNCTION) return status;
  char names[RONDO_MAX_PLACES * 34] = "";
  size_t used = 0;
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER};
  const rondo_division_part *failed = &b->division.parts.items[part];
  for (uint32_t i = 0; i < b->list.count; i++) {
    rondo_compiled *made = NULL;
    if (i == failed->place || b->list.first[i] != i) continue;
    if (rondo_compile(failed->program, b->devices[i], &options, &made) != RONDO_OK) continue;
    rondo_status_ignore(rondo_compiled_destroy(made), "it was compiled only to see whether that works");
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used == 0 ? "" : ", ", b->list.names[i]);
  }
  if (used == 0) memcpy(names, "none", sizeof "none");
  return rondo_fail(status, error.reason, "%s; of the other devices of the list %s has one", error.message, names);
}

static rondo_status compile_part(builder *b, uint32_t part) {
  const rondo_division_part *from = &b->division.parts.items[part];
  rondo_divided_unit *unit = &b->divided->parts.items[part];
  rondo_compile_options options = b->compile;
  options.plain_states = true; /* links copy them */
  options.share = b->given.share != NULL ? b->given.share->parts.items[part].compiled : part_before(b, part);
  options.share_states_only = b->given.share != NULL ? b->given.share_states_only : options.share != NULL;
  unit->place = from->place;
  unit->operators = from->operators;
  unit->device = b->devices[from->place];
  unit->has_updates = changes_states(from->program);
  b->divided->parts.count = part + 1;
  const rondo_status status = rondo_compile(from->program, unit->device, &options, &unit->compiled);
  if (status != RONDO_OK) return explain_lack(b, part, status);
  return rondo_event_create(unit->device, NULL, &unit->done);
}

/* If parts of one device share with the parts of another divided program, that one must have the states that these
 * parts have in common. */
static rondo_status check_states(const builder *b, uint32_t part) {
  const rondo_compiled *compiled = b->divided->parts.items[part].compiled, *before = part_before(b, part);
  for (size_t i = 0; before != NULL && i < compiled->values.count; i++) {
    const rondo_named_value *value = &compiled->values.items[i];
    const rondo_named_value *there = rondo_values_look_up(before, value->name, (char[]){value->kind, '\0'});
    if (strchr("sc", value->kind) == NULL || there == NULL || there->address == value->address) continue;
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                      "%s: '%s' of %s is in several parts on one device, but not in %s, which is to be shared: add it "
                      "there",
                      call, value->name, b->program->label, b->given.share->label);
  }
  return RONDO_OK;
}

static rondo_status compile_parts(builder *b) {
  const size_t count = b->division.parts.count;
  RONDO_TRY(rondo_array_reserve(&b->divided->allocator, &b->divided->parts, count));
  memset(b->divided->parts.items, 0, count * sizeof *b->divided->parts.items);
  for (uint32_t p = 0; p < count; p++) {
    RONDO_TRY(compile_part(b, p));
    RONDO_TRY(check_states(b, p));
  }
  return RONDO_OK;
}

/* Links ------------------------------------------------------------------------------------------------------------ */

static rondo_status describe_link(const builder *b, const rondo_crossing *crossing, rondo_divided_link *link) {
  const rondo_program_value *value = &b->program->values.items[crossing->value];
  const char *what =
      value->kind == RONDO_VALUE_RESULT ? b->program->operations.items[value->operation].row->name : value->name;
  return rondo_allocate_text(&b->divided->allocator, what, &link->what);
}

static rondo_status is_cuda(const rondo_device *device, bool *out) {
  rondo_device_info info = {.struct_size = sizeof info};
  RONDO_TRY(rondo_device_get_info(device, &info));
  *out = info.cuda;
  return RONDO_OK;
}

static rondo_status fill_link(const builder *b, const rondo_crossing *crossing, rondo_divided_link *link) {
  const rondo_divided_unit *from = &b->divided->parts.items[crossing->from];
  const rondo_divided_unit *to = &b->divided->parts.items[crossing->to];
  const char *name = b->program->values.items[crossing->value].name;
  bool takes_locked = false;
  RONDO_TRY(is_cuda(to->device, &takes_locked));
  link->from = crossing->from;
  link->to = crossing->to;
  link->at_beginning = crossing->at_beginning;
  link->is_crossing = from->device != to->device;
  link->host_of = takes_locked ? to->device : from->device;
  const rondo_named_value *source = crossing->at_beginning ? rondo_values_look_up(from->compiled, name, "s")
                                                           : rondo_values_look_up(from->compiled, crossing->name, "o");
  link->input = rondo_values_look_up(to->compiled, crossing->name, "i");
  assert(source != NULL && link->input != NULL && source->address != NULL);
  link->source = source->address;
  link->bytes = rondo_shape_bytes(&link->input->shape);
  RONDO_TRY(describe_link(b, crossing, link));
  if (!link->is_crossing) return RONDO_OK;
  RONDO_TRY(rondo_event_create(from->device, NULL, &link->sent));
  return rondo_event_create(to->device, NULL, &link->taken);
}

static rondo_status make_links(builder *b) {
  for (size_t i = 0; i < b->division.crossings.count; i++) {
    rondo_divided_link link = {0};
    RONDO_TRY(rondo_array_push(&b->divided->allocator, &b->divided->links, &link));
    RONDO_TRY(fill_link(b, &b->division.crossings.items[i], &b->divided->links.items[i]));
  }
  return RONDO_OK;
}

static rondo_status name_values(builder *b) {
  for (size_t i = 0; i < b->division.values.count; i++) {
    const rondo_division_value *from = &b->division.values.items[i];
    rondo_divided_value value = {.kind = from->kind, .part = from->part};
    RONDO_TRY(rondo_allocate_text(&b->divided->allocator, from->name, &value.name));
    const rondo_status status = rondo_array_push(&b->divided->allocator, &b->divided->values, &value);
    if (status == RONDO_OK) continue;
    rondo_release_text(&b->divided->allocator, value.name);
    return status;
  }
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status build(builder *b) {
  const rondo_allocator *allocator = &b->program->allocator;
  RONDO_TRY(rondo_division_make(b->program, &b->list, &b->division));
  RONDO_TRY(check_share(b));
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *b->divided, &b->divided));
  b->divided->allocator = *allocator;
  RONDO_TRY(rondo_allocate_text(allocator, b->program->name, &b->divided->name));
  RONDO_TRY(rondo_program_make_label(allocator, b->program->name, &b->divided->label));
  RONDO_TRY(compile_parts(b));
  RONDO_TRY(make_links(b));
  return name_values(b);
}

rondo_status rondo_compile_divided(rondo_program *program, rondo_device *const *devices, size_t device_count,
                                   const rondo_divide_options *options, rondo_divided **out_divided) {
  builder b = {.program = program, .devices = devices};
  RONDO_TRY(rondo_require(call, "out_divided", out_divided));
  *out_divided = NULL;
  RONDO_TRY(rondo_require(call, "program", program));
  RONDO_TRY(rondo_require(call, "devices", devices));
  if (program->ranks.communicator != NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                      "%s: %s is data-parallel, and cannot be divided too: use rondo_compile", call, program->label);
  RONDO_TRY(read_options(&b, options, device_count));
  const rondo_status status = build(&b);
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_division_free(&b.division);
  if (status == RONDO_OK) {
    *out_divided = b.divided;
    return RONDO_OK;
  }
  rondo_status_ignore(rondo_divided_destroy(b.divided), "the first failure is the one to return");
  return rondo_error_raise(&error);
}

/* The end ---------------------------------------------------------------------------------------------------------- */

static void free_link(rondo_divided *divided, rondo_divided_link *link, rondo_status *kept) {
  rondo_event_destroy(link->sent);
  rondo_event_destroy(link->taken);
  if (link->buffer != NULL) rondo_status_keep_first(kept, rondo_host_free(link->host_of, link->buffer));
  rondo_release_text(&divided->allocator, link->what);
}

/* Destroying the parts waits for their streams, and so for all that uses the memory of links. */
static void settle(rondo_divided *divided, rondo_status *kept) {
  rondo_status_keep_first(kept, rondo_divided_take_failure(divided));
  for (size_t i = divided->parts.count; i-- > 0;)
    rondo_status_keep_first(kept, rondo_compiled_destroy(divided->parts.items[i].compiled));
  for (size_t i = 0; i < divided->parts.count; i++) rondo_event_destroy(divided->parts.items[i].done);
  for (size_t i = 0; i < divided->links.count; i++) free_link(divided, &divided->links.items[i], kept);
}

static bool is_inherited(const rondo_divided *divided) {
  return divided->parts.count > 0 && divided->parts.items[0].device->is_inherited;
}

rondo_status rondo_divided_destroy(rondo_divided *divided) {
  if (divided == NULL || is_inherited(divided)) return RONDO_OK;
  const rondo_allocator allocator = divided->allocator;
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED; /* freeing must not disturb captures of other threads */
  rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  settle(divided, &status);
  rondo_status_keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  for (size_t i = 0; i < divided->values.count; i++) rondo_release_text(&allocator, divided->values.items[i].name);
  rondo_array_free(&allocator, &divided->parts);
  rondo_array_free(&allocator, &divided->links);
  rondo_array_free(&allocator, &divided->values);
  rondo_release_text(&allocator, divided->name);
  rondo_release_text(&allocator, divided->label);
  rondo_release(&allocator, divided, 1, sizeof *divided);
  return status;
}
