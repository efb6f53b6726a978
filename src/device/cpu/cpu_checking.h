/* SPDX-License-Identifier: MIT
 * The functions of a checking device ("cpu:check") that device/cpu calls. device/check implements this table, and
 * device/cpu knows only its name. Driver functions that a checking device replaces completely are in its tables instead
 * (rondo_device_tables). Threads: see the headers of device/check.
 */
#ifndef RONDO_DEVICE_CPU_CPU_CHECKING_H
#define RONDO_DEVICE_CPU_CPU_CHECKING_H

#include "device/cpu/cpu.h"

typedef struct cpu_checking_ops {
  /* Turns a new device into a checking device. Errors: UNAVAILABLE if the signal handlers of the process cannot be set.
   */
  rondo_status (*open)(cpu_device *device, const rondo_device_options *options);
  /* Returns why `open` would fail in this process, or "". */
  const char *(*unavailable)(void);

  size_t node_bytes; /* bytes that wrap_node needs after the arguments and data of a node */
  /* Wraps a node, so that its function runs supervised. Errors: OUT_OF_MEMORY. */
  rondo_status (*wrap_node)(cpu_executable *executable, cpu_node_detail *detail, const rondo_lowered_node *node);
  /* Returns the name of wrapped work, for traces. NULL if the work is not wrapped. */
  const char *(*name_of)(rondo_cpu_function function, void *const *args);
  /* Runs a launch in several orders. False if it must run as on other devices. */
  bool (*explore)(cpu_executable *executable, cpu_queue *queue);
} cpu_checking_ops;

extern const cpu_checking_ops cpu_checking; /* check_device.c */

#endif
