/* SPDX-License-Identifier: MIT
 * Divides a model's programs by device, and refuses divisions that cannot be served. The devices and rules are copied
 * when the model is added, and do not change after that.
 */
#include <assert.h>
#include <string.h>

#include "exec/api_check.h"
#include "session/placement/upstream_parts.h"
#include "tensor/run/named_values.h"

static const char call[] = "rondo_session_add_model";

/* Devices ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_model_devices_check(const rondo_session *session, const rondo_model_options *o) {
  rondo_placement_list ignored;
  if (o->device_count == 0 && o->rule_count == 0) return RONDO_OK;
  if (o->body != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: a function is not divided, because its operators are not known: give no devices and rules, "
                      "or make the model a program (rondo_model_options.build)",
                      call);
  if (o->device_count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: rondo_model_options has %zu rule%s and no devices: give the devices on which operators are "
                      "placed, or no rules",
                      call, o->rule_count, o->rule_count == 1 ? "" : "s");
  RONDO_TRY(rondo_require(call, "devices", o->devices));
  RONDO_TRY(rondo_placement_list_make(call, o->devices, o->device_count, o->rules, o->rule_count, &ignored));
  if (o->devices[0] == session->device) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "%s: the first device is '%s', and the session runs on '%s': list the session's device first", call,
                    o->devices[0]->name, session->device->name);
}

static rondo_status copy_rules(const rondo_allocator *allocator, const rondo_model_options *o,
                               rondo_model_devices *devices) {
  RONDO_TRY(rondo_array_reserve(allocator, &devices->rules, o->rule_count));
  for (size_t i = 0; i < o->rule_count; i++) {
    rondo_placement_rule rule = o->rules[i];
    char *name = NULL;
    if (rule.operator_name != NULL) RONDO_TRY(rondo_allocate_text(allocator, rule.operator_name, &name));
    rule.operator_name = name;
    devices->rules.items[devices->rules.count++] = rule;
  }
  return RONDO_OK;
}

/* Prefers a device whose host memory is page-locked. */
static rondo_status choose_host(rondo_session_model *model, const rondo_model_options *o) {
  for (size_t i = 0; i < o->device_count; i++) {
    rondo_device_info info = {.struct_size = sizeof info};
    RONDO_TRY(rondo_device_get_info(o->devices[i], &info));
    if (!info.cuda) continue;
    model->staging_device = o->devices[i];
    break;
  }
  return RONDO_OK;
}

rondo_status rondo_model_devices_fill(rondo_session_model *model, const rondo_model_options *o) {
  const rondo_allocator *allocator = &model->session->allocator;
  model->staging_device = model->session->device;
  if (o->device_count == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *model->devices, &model->devices));
  rondo_model_devices *devices = model->devices;
  memcpy(devices->items, o->devices, o->device_count * sizeof *o->devices);
  RONDO_TRY(copy_rules(allocator, o, devices));
  RONDO_TRY(choose_host(model, o));
  return rondo_placement_list_make(call, devices->items, o->device_count, devices->rules.items, devices->rules.count,
                                   &devices->places);
}

void rondo_model_devices_free(rondo_session_model *model) {
  const rondo_allocator *allocator = &model->session->allocator;
  rondo_model_devices *devices = model->devices;
  if (devices == NULL) return;
  for (size_t i = 0; i < devices->rules.count; i++)
    rondo_release_text(allocator, (char *)(uintptr_t)devices->rules.items[i].operator_name);
  rondo_array_free(allocator, &devices->rules);
  rondo_release(allocator, devices, 1, sizeof *devices);
  model->devices = NULL;
}

/* Divisions that can be served ------------------------------------------------------------------------------------- */

static const char *device_of(const rondo_session_model *model, const rondo_division *division, size_t part) {
  return model->devices->items[division->parts.items[part].place]->name;
}

static const char *describe(const rondo_division *division, const rondo_crossing *crossing) {
  const rondo_program_value *value = &division->program->values.items[crossing->value];
  return value->kind == RONDO_VALUE_RESULT ? division->program->operations.items[value->operation].row->name
                                           : value->name;
}

/* Refuses results of one part that another upstream part reads, and states that two parts read. */
static rondo_status check_crossings(const rondo_session_model *model, const rondo_division *division) {
  for (size_t i = 0; i < division->crossings.count; i++) {
    const rondo_crossing *crossing = &division->crossings.items[i];
    const char *what = describe(division, crossing);
    if (crossing->at_beginning)
      return rondo_fail(
          RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE,
          "the state '%s' of model '%s' is placed on %s and is also read on %s: read a state only where it is placed",
          what, model->name, device_of(model, division, crossing->from), device_of(model, division, crossing->to));
    if (crossing->to + 1 < division->parts.count)
      return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE,
                        "'%s' of model '%s' is computed on %s and read on %s: upstream parts may read "
                        "inputs and their own states, but no results of another device",
                        what, model->name, device_of(model, division, crossing->from),
                        device_of(model, division, crossing->to));
  }
  return RONDO_OK;
}

static bool has_row(const rondo_division_part *part, bool (*is_wanted)(const rondo_operator *row)) {
  for (size_t i = 0; i < part->program->operations.count; i++)
    if (is_wanted(part->program->operations.items[i].row)) return true;
  return false;
}

static bool changes_states(const rondo_operator *row) { return row->updates != 0; }

static bool may_fail(const rondo_operator *row) { return row->checks_indices; }

/* Upstream parts run at the same time, so a part that changes a state cannot know in time that another part has failed.
 * */
static rondo_status check_updates(const rondo_session_model *model, const rondo_division *division) {
  for (size_t i = 0; i + 1 < division->parts.count; i++) {
    for (size_t k = 0; k + 1 < division->parts.count && has_row(&division->parts.items[i], changes_states); k++) {
      if (k == i || !has_row(&division->parts.items[k], may_fail)) continue;
      return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE,
                        "model '%s' changes a state on %s and looks up indices on %s, but a request with an index out "
                        "of range must not change a "
                        "state: place both on one device",
                        model->name, device_of(model, division, i), device_of(model, division, k));
    }
  }
  return RONDO_OK;
}

/* All parts but the last are upstream parts, on other devices than the session's. */
static rondo_status check_parts(const rondo_session_model *model, const rondo_division *division) {
  assert(division->parts.count > 0);
  const size_t last = division->parts.count - 1;
  RONDO_TRY(check_crossings(model, division));
  RONDO_TRY(check_updates(model, division));
  for (size_t i = 0; i < last; i++)
    if (division->parts.items[i].place == 0)
      return rondo_fail(
          RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE,
          "%s of model '%s' reads results of %s: parts on other devices must run before the part on that device",
          device_of(model, division, i + 1), model->name, model->session->device->name);
  if (division->parts.items[last].place == 0) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE,
                    "no operator of model '%s' runs on %s, the session's device: serve it with a session on %s",
                    model->name, model->session->device->name, device_of(model, division, last));
}

/* States must stay on the device of the anchor. A different division would create new states, filled with zeros. */
static rondo_status check_states(const rondo_session_model *model, const rondo_division_part *part,
                                 const rondo_compiled *anchor, size_t rows) {
  for (size_t i = 0; i < part->program->values.count; i++) {
    const rondo_program_value *value = &part->program->values.items[i];
    if (value->kind != RONDO_VALUE_STATE || rondo_values_look_up(anchor, value->name, "s") != NULL) continue;
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_SHAPE,
                      "the state '%s' of model '%s' is read on %s for %zu rows and on another device for 1 row: place "
                      "it on the same device for every number of rows (rondo_program_place)",
                      value->name, model->name, model->devices->items[part->place]->name, rows);
  }
  return RONDO_OK;
}

static rondo_status check_alike(const rondo_model_instance *instance, const rondo_division *division, size_t rows) {
  const rondo_session_model *model = instance->model;
  const rondo_instance_program *anchor = &model->instances[0].anchor;
  for (size_t i = 0; anchor->compiled != NULL && i < division->parts.count; i++) {
    const rondo_division_part *part = &division->parts.items[i];
    const rondo_upstream_part *upstream = rondo_upstream_find(anchor->upstream, model->devices->items[part->place]);
    if (part->place != 0 && upstream == NULL)
      return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_SHAPE,
                        "model '%s' has operators on %s for %zu rows and none for 1 row: divide it equally for every "
                        "number of rows",
                        model->name, model->devices->items[part->place]->name, rows);
    RONDO_TRY(check_states(model, part, part->place == 0 ? anchor->compiled : upstream->compiled, rows));
  }
  return RONDO_OK;
}

rondo_status rondo_model_divide(const rondo_model_instance *instance, const rondo_program *program, size_t rows,
                                rondo_division *out) {
  RONDO_TRY(rondo_division_make(program, &instance->model->devices->places, out));
  RONDO_TRY(check_parts(instance->model, out));
  return check_alike(instance, out, rows);
}
