/* SPDX-License-Identifier: MIT
 * Virtual memory of a CPU device. Address space is reserved without access. Physical memory is an anonymous file
 * (memfd) that is mapped shared, so the same bytes can be at several addresses; or, if it is mapped once, private pages
 * of the mapping, which the system makes huge if they are many.
 */
#ifndef RONDO_DEVICE_CPU_CPU_MEMORY_H
#define RONDO_DEVICE_CPU_CPU_MEMORY_H

#include "device/cpu/cpu.h"

rondo_status cpu_reserve(rondo_device *device, size_t bytes, size_t alignment, void **out_address);
rondo_status cpu_unreserve(rondo_device *device, void *address, size_t bytes);
rondo_status cpu_physical_create(rondo_device *device, size_t bytes, rondo_physical_use use, rondo_physical **out);
void cpu_physical_destroy(rondo_physical *physical);
/* -1: it has none. */
int cpu_physical_file(const rondo_physical *physical);
rondo_status cpu_map(rondo_device *device, void *address, rondo_physical *physical);
rondo_status cpu_unmap(rondo_device *device, void *address, size_t bytes);
rondo_status cpu_protect(rondo_device *device, void *address, size_t bytes, rondo_protection protection);
rondo_status cpu_map_file(rondo_device *device, void *address, const void *from, size_t bytes, size_t *out_first,
                          size_t *out_bytes);
void *cpu_host_watch_begin(rondo_device *device, void *address, size_t bytes);
void *cpu_host_watch_end(rondo_device *device, void *watch, size_t bytes, size_t used, size_t *out_bytes);
rondo_status cpu_host_allocate(rondo_device *device, size_t bytes, void **out_address);
void cpu_host_release(rondo_device *device, void *address, size_t bytes);

/* The first resident page; NULL if there is none or the system does not say. */
char *cpu_find_resident(char *begin, size_t bytes, size_t page);

#endif
