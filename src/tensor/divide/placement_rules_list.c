/* SPDX-License-Identifier: MIT
 * A list of devices that places are numbers of, and rules for it, checked.
 */
#include <string.h>

#include "tensor/divide/operator_placement.h"

static rondo_status list_devices(const char *caller, rondo_device *const *devices, size_t count,
                                 rondo_place_list *out) {
  if (count == 0 || count > RONDO_MAX_PLACES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %zu devices, and 1 to %d are possible",
                      caller, count, RONDO_MAX_PLACES);
  out->count = count;
  for (uint32_t i = 0; i < count; i++) {
    rondo_device_info info = {.struct_size = sizeof info};
    RONDO_TRY(rondo_require(caller, "a device of the list", devices[i]));
    RONDO_TRY(rondo_device_get_info(devices[i], &info));
    memcpy(out->names[i], info.name, sizeof out->names[i]);
    out->first[i] = i;
    for (uint32_t k = i; k-- > 0;)
      if (devices[k] == devices[i]) out->first[i] = k;
  }
  return RONDO_OK;
}

static rondo_status check_rules(const char *caller, const rondo_place_list *list) {
  if (list->rule_count > 0) RONDO_TRY(rondo_require(caller, "rules", list->rules));
  for (size_t i = 0; i < list->rule_count; i++) {
    const rondo_placement_rule *rule = &list->rules[i];
    if (rule->operator_name == NULL && rule->least_bytes == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                        "%s: rule %zu names no operator and no bytes of states, so it says nothing", caller, i);
    if (rule->reserved != 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "%s: rule %zu: 'reserved' is set: leave it 0",
                        caller, i);
    if (rule->place >= list->count)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "%s: rule %zu places operators at %u, and there are %zu devices", caller, i, rule->place,
                        list->count);
  }
  return RONDO_OK;
}

rondo_status rondo_place_list_make(const char *caller, rondo_device *const *devices, size_t device_count,
                                   const rondo_placement_rule *rules, size_t rule_count, rondo_place_list *out) {
  *out = (rondo_place_list){.rules = rules, .rule_count = rule_count};
  RONDO_TRY(list_devices(caller, devices, device_count, out));
  return check_rules(caller, out);
}
