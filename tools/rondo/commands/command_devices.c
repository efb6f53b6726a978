/* SPDX-License-Identifier: MIT
 * rondo devices: lists the devices and the libraries for arithmetic, with the reason for each that is unavailable, and
 * the operators of programs.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "commands/commands.h"
#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"

typedef struct devices_settings {
  bool json, operators;
} devices_settings;

static const devices_settings defaults = {0};

static const option_row rows[] = {
    {"operators", NULL, OPTION_FLAG, offsetof(devices_settings, operators), 0, 0,
     "list the operators of programs instead, with their types"},
    OPTION_ROW_JSON(devices_settings),
};

static const option_table table = {
    .command = "rondo devices",
    .description =
        "Lists the devices that can be opened and, for each unavailable driver, the reason. Then lists the\n"
        "libraries for arithmetic in the same way.",
    OPTION_ROWS(rows, defaults),
};

/* One line of the list. `reason` is "" if the device can be opened. */
typedef struct device_entry {
  const char *name, *reason;
  rondo_device_info info;
} device_entry;

static rondo_status inspect(const char *name, rondo_device_info *out) {
  rondo_device *device = NULL;
  TOOL_TRY(rondo_device_open(name, NULL, &device));
  const rondo_status status = rondo_device_get_info(device, out);
  const rondo_status closed = rondo_device_close(device);
  return status ? status : closed;
}

static void write_entry(const device_entry *entry, json *out) {
  json_begin_object(out, NULL);
  json_text(out, "name", entry->name);
  json_boolean(out, "available", !entry->reason[0]);
  if (entry->reason[0]) {
    json_text(out, "reason", entry->reason);
  } else {
    json_text(out, "description", entry->info.description);
    json_integer(out, "workers", entry->info.workers);
    json_integer(out, "processors", entry->info.processors);
    json_integer(out, "memory_bytes", entry->info.memory_bytes);
    json_integer(out, "page_bytes", entry->info.page_bytes);
    json_boolean(out, "graph_memory", entry->info.graph_memory);
    json_boolean(out, "guarded", entry->info.guarded);
  }
  json_end(out);
}

static void print_processors(const rondo_device_info *info) {
  if (info->cuda)
    printf("%" PRIu32 " multiprocessors", info->processors);
  else
    printf("%" PRIu32 " processor%s, %" PRIu32 " worker%s", info->processors, info->processors == 1 ? "" : "s",
           info->workers, info->workers == 1 ? "" : "s");
}

static void print_entry(const device_entry *entry) {
  if (entry->reason[0]) {
    printf("%-10s not available: ", entry->name);
    tool_print_text(entry->reason);
    putchar('\n');
    return;
  }
  const rondo_device_info *info = &entry->info;
  printf("%-10s ", entry->name);
  tool_print_text(info->description);
  printf(": ");
  print_processors(info);
  printf(", %.1f GiB, pages of %" PRIu64 " KiB, %s%s\n", (double)info->memory_bytes / (1 << 30), info->page_bytes >> 10,
         info->graph_memory ? "graph memory" : "no graph memory", info->guarded ? ", finds mistakes" : "");
}

static rondo_status show_device(size_t index, json *out) {
  char name[64];
  device_entry entry = {.name = name};
  const char *found = NULL;
  TOOL_TRY(rondo_device_enumerate(index, &found, &entry.reason));
  snprintf(name, sizeof name, "%s", found); /* found is valid until the next call only */
  if (!entry.reason[0]) TOOL_TRY(inspect(name, &entry.info));
  if (out) {
    write_entry(&entry, out);
  } else {
    print_entry(&entry);
  }
  return RONDO_OK;
}

/* Libraries ------------------------------------------------------------------------------------------------------- */

static void write_library(const rondo_library_info *info, json *out) {
  json_begin_object(out, NULL);
  json_text(out, "name", info->name);
  json_text(out, "purpose", info->purpose);
  json_boolean(out, "available", info->path != NULL);
  if (info->path)
    json_text(out, "path", info->path);
  else
    json_text(out, "reason", info->reason);
  if (info->note[0] != '\0') json_text(out, "note", info->note);
  json_end(out);
}

static void print_library(const rondo_library_info *info) {
  printf("%-10s %s%s: ", info->name, info->path ? "" : "not available for ", info->purpose);
  tool_print_text(info->path ? info->path : info->reason);
  if (info->path && info->note[0]) printf(" (%s)", info->note);
  putchar('\n');
}

static rondo_status show_library(size_t index, json *out) {
  rondo_library_info info = {RONDO_LIBRARY_INFO_INIT};
  TOOL_TRY(rondo_library_enumerate(index, &info));
  if (out)
    write_library(&info, out);
  else
    print_library(&info);
  return RONDO_OK;
}

/* Operators ------------------------------------------------------------------------------------------------------- */

static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16, RONDO_I32,     RONDO_I64,
                                   RONDO_I8,  RONDO_U8,  RONDO_BOOL, RONDO_F8_E4M3, RONDO_F8_E5M2};
#define TYPE_COUNT (sizeof types / sizeof types[0])

static bool takes(const rondo_operator_info *info, size_t type) { return (info->types & 1u << types[type]) != 0; }

/* Every operator runs on all devices. */
static void write_operator(const rondo_operator_info *info, json *out) {
  json_begin_object(out, NULL);
  json_text(out, "name", info->name);
  json_begin_array(out, "types");
  for (size_t t = 0; t < TYPE_COUNT; t++) {
    if (takes(info, t)) json_text(out, NULL, rondo_type_name(types[t]));
  }
  json_end(out);
  json_begin_array(out, "devices");
  json_text(out, NULL, "cpu");
  json_text(out, NULL, "cuda");
  json_end(out);
  json_boolean(out, "gradient", info->has_gradient);
  json_end(out);
}

static void print_operator_heading(void) {
  printf("%-24s", "operator");
  for (size_t t = 0; t < TYPE_COUNT; t++) printf(" %-10s", rondo_type_name(types[t]));
  printf(" gradient\n");
}

static void print_operator(const rondo_operator_info *info) {
  printf("%-24s", info->name);
  for (size_t t = 0; t < TYPE_COUNT; t++) printf(" %-10s", takes(info, t) ? "cpu, cuda" : "-");
  printf(" %s\n", info->has_gradient ? "yes" : "no");
}

static rondo_status show_operator(size_t index, json *out) {
  rondo_operator_info info = {RONDO_OPERATOR_INFO_INIT};
  TOOL_TRY(rondo_operator_enumerate(index, &info));
  if (out)
    write_operator(&info, out);
  else
    print_operator(&info);
  return RONDO_OK;
}

/* Lists ----------------------------------------------------------------------------------------------------------- */

/* Prints the element at `index`, or writes it to `out` if that is not NULL. Returns RONDO_NOT_FOUND after the last one.
 */
typedef rondo_status (*show_element)(size_t index, json *out);

static int show_list(const char *name, show_element show, json *out) {
  rondo_status status = RONDO_OK;
  if (out) json_begin_array(out, name);
  for (size_t i = 0; !status; i++) status = show(i, out);
  if (out) json_end(out);
  return status == RONDO_NOT_FOUND ? TOOL_OK : tool_fail_status("the %s could not be listed", name);
}

static int show_lists(const devices_settings *settings, json *out) {
  if (settings->operators) return show_list("operators", show_operator, out);
  const int result = show_list("devices", show_device, out);
  return result == TOOL_OK ? show_list("libraries", show_library, out) : result;
}

static int show_json(const devices_settings *settings) {
  json out;
  json_begin(&out);
  json_text(&out, "version", rondo_version());
  const int result = show_lists(settings, &out);
  if (result == TOOL_OK) return json_print(&out);
  json_discard(&out);
  return result;
}

int command_devices(int argc, char **argv) {
  devices_settings settings = defaults;
  const int parsed = options_parse(&table, argc, argv, &settings, NULL);
  if (parsed != OPTIONS_RUN) return parsed;
  if (settings.json) return show_json(&settings);
  if (settings.operators) print_operator_heading();
  return show_lists(&settings, NULL);
}
