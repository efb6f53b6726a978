/* SPDX-License-Identifier: MIT
 * The list of drivers. No other file names them. The name of a device is the name of its driver, optionally followed by
 * a colon and a text that the driver understands. The table is constant. Threads: any.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"

extern const rondo_driver rondo_cpu_driver, rondo_cuda_driver;

static const rondo_driver *const drivers[] = {&rondo_cpu_driver, &rondo_cuda_driver};
enum { DRIVER_COUNT = sizeof drivers / sizeof drivers[0] };

bool rondo_device_parse_index(const char *text, uint32_t *out) {
  const size_t length = strlen(text);
  *out = 0;
  if (length == 0) return true;
  if (length > 3 || strspn(text, "0123456789") != length || (text[0] == '0' && length > 1)) return false;
  *out = (uint32_t)strtoul(text, NULL, 10);
  return true;
}

rondo_status rondo_registry_open(const char *name, const rondo_device_options *options,
                                 const rondo_allocator *allocator, rondo_device **out) {
  *out = NULL;
  const size_t length = strcspn(name, ":");
  const bool ends_there = name[length] == ':' && name[length + 1] == '\0';
  for (size_t i = 0; i < DRIVER_COUNT; i++) {
    if (strlen(drivers[i]->name) != length || strncmp(name, drivers[i]->name, length) != 0) continue;
    if (ends_there) break;
    return drivers[i]->open(name + length + (name[length] == ':'), options, allocator, out);
  }
  const char *const quote = name[0] == '\0' ? "" : "'";
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_DEVICE,
                    "there is no device %s%.64s%s%s: the devices are 'cpu', 'cpu:0' to 'cpu:15', 'cpu:check' and "
                    "'cuda:0', 'cuda:1', ...",
                    quote, name[0] == '\0' ? "without a name" : name, quote,
                    ends_there ? ", whose name ends at its colon" : "");
}

rondo_status rondo_registry_enumerate(size_t index, const char **out_name, const char **out_unavailable) {
  for (size_t i = 0; i < DRIVER_COUNT; i++) {
    size_t count = 0;
    while (drivers[i]->enumerate(count, out_name, out_unavailable))
      if (count++ == index) return RONDO_OK;
    index -= count;
  }
  *out_name = NULL;
  *out_unavailable = "";
  return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "there are no more devices");
}
