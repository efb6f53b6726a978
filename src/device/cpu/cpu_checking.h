/* SPDX-License-Identifier: MIT
 * What a checking device ("cpu:check") does differently, as far as device/cpu has to call it: device/check implements
 * the table, and device/cpu knows it by its name alone. The functions that a checking device replaces as a whole are in
 * its tables of driver functions instead (rondo_device_tables). Threads: see the headers of device/check.
 */
#ifndef RONDO_DEVICE_CPU_CPU_CHECKING_H
#define RONDO_DEVICE_CPU_CPU_CHECKING_H

#include "device/cpu/cpu.h"

typedef struct cpu_checking_ops {
  /* Makes a new device a checking one. Errors: UNAVAILABLE if the process's signal handlers cannot be set. */
  rondo_status (*open)(cpu_device *device, const rondo_device_options *options);
  /* Why `open` would fail in this process; "" if it would not. */
  const char *(*unavailable)(void);

  size_t node_bytes; /* room that wrap_node needs after a node's arguments and data */
  /* Wraps a node, so that its function runs under supervision. Errors: OUT_OF_MEMORY. */
  rondo_status (*wrap_node)(cpu_executable *executable, cpu_node_detail *detail, const rondo_node_params *params);
  /* The name of wrapped work, for traces; NULL if this is no wrapped work. */
  const char *(*name_of)(rondo_cpu_function function, void *const *args);
  /* Runs a launch in several orders; false if it is to run as on other devices. */
  bool (*explore)(cpu_executable *executable, cpu_queue *queue);
} cpu_checking_ops;

extern const cpu_checking_ops cpu_checking; /* check_device.c */

#endif
