/* SPDX-License-Identifier: MIT
 * Virtual memory of a CPU device. Address space is reserved without access. Physical memory is an anonymous file
 * (memfd) that is mapped shared, so the same bytes can be at several addresses. Memory that is mapped once needs no
 * file: it consists of private pages of the mapping. Many of them are to be huge, because a table of a million rows has
 * more pages of 4 KiB than a processor keeps addresses of; the system decides (transparent_hugepage/enabled). Files of
 * shared memory have huge pages only where an administrator has allowed that. Pages of such memory can be replaced by
 * those of a file that the host has mapped, so that what is only read is never copied.
 *
 * Unmapping maps the reservation over the range again, and the mapping of a file is made elsewhere and then moved over
 * the memory, so there is never a hole that another thread's mapping could get. Files do not survive exec, and forked
 * children do not inherit the mappings. Threads: any.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/files/file_limit.h"
#include "device/cpu/cpu.h"
#include "device/cpu/cpu_memory.h"

typedef struct cpu_physical {
  rondo_physical base;
  rondo_physical_use use;
  int file; /* -1: it is mapped once, as private pages, or has been mapped that once */
} cpu_physical;

enum { RESERVATION = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define HUGE_FROM_BYTES ((size_t)16 << 20) /* smaller mappings may be used in part only */

/* So that huge pages fit in. */
static size_t least_alignment(const cpu_device *device, size_t bytes) {
  return bytes >= HUGE_FROM_BYTES ? HUGE_PAGE_BYTES : device->page_bytes;
}

static bool has_address_limit(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

static bool has_data_limit(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* Describes the limit that was reached, and how to raise it. */
static const char *describe_limit(int error) {
  if (error == EFBIG)
    return "the process has a limit on the size of files, which applies to the memory of CPU devices too: raise it "
           "(ulimit -f)";
  if (error == EMFILE) return "the process has the maximum number of open files: raise the limit (ulimit -n)";
  if (error == ENFILE) return "the system has the maximum number of open files: raise fs.file-max";
  if (has_address_limit()) return "the process has a limit on its address space: raise it (ulimit -v)";
  if (has_data_limit()) return "the process has a limit on its data: raise it (ulimit -d)";
  return "the process has the maximum number of mappings (raise vm.max_map_count), or the system has no more memory: "
         "free some";
}

static rondo_status fail_mapping(int error, const char *what, size_t bytes) {
  char size[RONDO_SIZE_TEXT];
  return rondo_fail_errno(RONDO_OUT_OF_MEMORY, error, "%s of %s failed: %s", what, rondo_size_text(size, bytes),
                          describe_limit(error));
}

/* Finds out which limit was reached by reserving a single page. */
static rondo_status fail_reserving(int error, size_t bytes, size_t page) {
  char size[RONDO_SIZE_TEXT];
  const char *what =
      "the process has no free range of addresses of this size: destroy graphs with memory nodes or trees";
  (void)rondo_size_text(size, bytes);
  if (has_address_limit()) what = describe_limit(error);
  void *one = mmap(NULL, page, PROT_NONE, RESERVATION, -1, 0);
  if (one == MAP_FAILED && error == ENOMEM)
    what = "the process has the maximum number of mappings: raise vm.max_map_count, or ulimit -v if it is set";
  if (one != MAP_FAILED) (void)munmap(one, page);
  return rondo_fail_errno(RONDO_OUT_OF_MEMORY, error, "reserving %s of addresses failed: %s", size, what);
}

/* A process with the maximum number of mappings cannot even replace a mapping by a reservation. So the first device
 * that reserves addresses makes a spare mapping, which is unmapped for that moment. It is shared, so that the system
 * does not merge it with another one. */
static _Atomic(void *) spare_mapping;
/* so that each thread at the limit can use the spare mapping */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

static void make_spare_locked(size_t page) {
  if (atomic_load_explicit(&spare_mapping, memory_order_relaxed) != NULL) return;
  void *made = mmap(NULL, page, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (made != MAP_FAILED) atomic_store_explicit(&spare_mapping, made, memory_order_relaxed);
}

static void make_spare(size_t page) {
  if (atomic_load_explicit(&spare_mapping, memory_order_relaxed) != NULL) return;
  pthread_mutex_lock(&spare_lock);
  make_spare_locked(page);
  pthread_mutex_unlock(&spare_lock);
}

static bool replace(void *address, size_t bytes) {
  return mmap(address, bytes, PROT_NONE, RESERVATION | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static bool replace_with_spare_locked(void *address, size_t bytes, size_t page) {
  void *spare = atomic_exchange(&spare_mapping, NULL);
  if (spare != NULL) (void)munmap(spare, page);
  const bool replaced = replace(address, bytes);
  const int error = errno;
  make_spare_locked(page);
  errno = error;
  return replaced;
}

/* Replaces a range by a reservation. False, with errno, on failure. */
static bool map_reservation(void *address, size_t bytes, size_t page) {
  if (replace(address, bytes)) return true;
  if (errno != ENOMEM) return false;
  pthread_mutex_lock(&spare_lock);
  const bool replaced = replace_with_spare_locked(address, bytes, page);
  const int error = errno;
  pthread_mutex_unlock(&spare_lock);
  errno = error;
  return replaced;
}

rondo_status cpu_reserve(rondo_device *base, size_t bytes, size_t alignment, void **out_address) {
  const size_t page = ((cpu_device *)base)->page_bytes, least = least_alignment((cpu_device *)base, bytes);
  size_t padded;
  *out_address = NULL;
  make_spare(page);
  if (alignment < least) alignment = least;
  if (!rondo_checked_add(bytes, alignment - page, &padded)) return fail_reserving(ENOMEM, bytes, page);
  char *start = mmap(NULL, padded, PROT_NONE, RESERVATION, -1, 0);
  if (start == MAP_FAILED) return fail_reserving(errno, bytes, page);
  char *aligned = (char *)(((uintptr_t)start + alignment - 1) & ~(uintptr_t)(alignment - 1));
  if (aligned > start) (void)munmap(start, (size_t)(aligned - start));
  const size_t after = padded - bytes - (size_t)(aligned - start);
  if (after > 0) (void)munmap(aligned + bytes, after);
  *out_address = aligned;
  return RONDO_OK;
}

rondo_status cpu_unreserve(rondo_device *device, void *address, size_t bytes) {
  (void)device;
  if (munmap(address, bytes) != 0) return fail_mapping(errno, "releasing address space", bytes);
  return RONDO_OK;
}

/* Pages are allocated when they are first accessed, so the memory of the machine is counted here. */
static rondo_status count_physical(cpu_device *device, size_t bytes) {
  uint64_t held = atomic_load_explicit(&device->physical_bytes, memory_order_relaxed);
  do {
    if (bytes <= device->memory_limit && held <= device->memory_limit - bytes) continue;
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED,
                      "%zu bytes in addition to the %" PRIu64 " of device '%s' would exceed its limit of %" PRIu64
                      " bytes: free or trim memory, or open the device with another memory_limit_bytes "
                      "(RONDO_CPU_MEMORY_LIMIT)",
                      bytes, held, device->base.name, device->memory_limit);
  } while (!atomic_compare_exchange_weak_explicit(&device->physical_bytes, &held, held + bytes, memory_order_relaxed,
                                                  memory_order_relaxed));
  return RONDO_OK;
}

static void uncount_physical(rondo_device *device, size_t bytes) {
  atomic_fetch_sub_explicit(&((cpu_device *)device)->physical_bytes, bytes, memory_order_relaxed);
}

/* The system ends a process by SIGXFSZ if it makes a file larger than its limit. */
static int resize(int file, size_t bytes) {
  if (bytes > INT64_MAX) return ENOMEM;
  if (rondo_file_limit_forbids(bytes)) return EFBIG;
  return ftruncate(file, (off_t)bytes) == 0 ? 0 : errno;
}

static rondo_status create_file(size_t bytes, int *out) {
  *out = memfd_create("rondo", MFD_CLOEXEC);
  const int error = *out < 0 ? errno : resize(*out, bytes);
  if (error == 0) return RONDO_OK;
  if (*out >= 0) (void)close(*out);
  return fail_mapping(error, "making physical memory", bytes);
}

/* The checker maps all memory again. */
static rondo_status create_physical(rondo_device *device, size_t bytes, rondo_physical_use use, rondo_physical **out) {
  const bool is_private = use == RONDO_PHYSICAL_ONCE && ((cpu_device *)device)->check == NULL;
  void *memory;
  RONDO_TRY(rondo_allocate(&device->allocator, 1, sizeof(cpu_physical), &memory));
  cpu_physical *physical = memory;
  *physical = (cpu_physical){.base = {device, bytes}, .use = use, .file = -1};
  const rondo_status status = is_private ? RONDO_OK : create_file(bytes, &physical->file);
  if (status == RONDO_OK)
    *out = &physical->base;
  else
    rondo_release(&device->allocator, physical, 1, sizeof *physical);
  return status;
}

rondo_status cpu_physical_create(rondo_device *device, size_t bytes, rondo_physical_use use, rondo_physical **out) {
  *out = NULL;
  RONDO_TRY(count_physical((cpu_device *)device, bytes));
  const rondo_status status = create_physical(device, bytes, use, out);
  if (status != RONDO_OK) uncount_physical(device, bytes);
  return status;
}

/* A process has few open files. */
static void close_file(cpu_physical *physical) {
  if (physical->file >= 0) (void)close(physical->file);
  physical->file = -1;
}

void cpu_physical_destroy(rondo_physical *base) {
  cpu_physical *physical = (cpu_physical *)base;
  close_file(physical);
  uncount_physical(base->device, base->bytes);
  rondo_release(&base->device->allocator, physical, 1, sizeof *physical);
}

int cpu_physical_file(const rondo_physical *base) { return ((const cpu_physical *)base)->file; }

/* About memory that was mapped. */
static void advise(void *address, size_t bytes) {
  (void)madvise(address, bytes, MADV_DONTFORK);
  if (bytes >= HUGE_FROM_BYTES) (void)madvise(address, bytes, MADV_HUGEPAGE);
}

rondo_status cpu_map(rondo_device *base, void *address, rondo_physical *physical) {
  cpu_device *device = (cpu_device *)base;
  cpu_physical *own = (cpu_physical *)physical;
  const int file = own->file;
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void *mapped = mmap(address, physical->bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file, 0);
  if (mapped == MAP_FAILED) return fail_mapping(errno, "mapping", physical->bytes);
  advise(address, physical->bytes);
  if (own->use == RONDO_PHYSICAL_ONCE) close_file(own);
  atomic_fetch_add_explicit(&device->mapped_bytes, physical->bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&device->maps, 1, memory_order_relaxed);
  return RONDO_OK;
}

rondo_status cpu_unmap(rondo_device *base, void *address, size_t bytes) {
  cpu_device *device = (cpu_device *)base;
  if (!map_reservation(address, bytes, device->page_bytes)) return fail_mapping(errno, "unmapping", bytes);
  atomic_fetch_sub_explicit(&device->mapped_bytes, bytes, memory_order_relaxed);
  return RONDO_OK;
}

rondo_status cpu_protect(rondo_device *device, void *address, size_t bytes, rondo_protection protection) {
  (void)device;
  int access = PROT_NONE;
  if (protection != RONDO_PROTECT_NONE) access = PROT_READ;
  if (protection == RONDO_PROTECT_READ_WRITE) access = PROT_READ | PROT_WRITE;
  if (mprotect(address, bytes, access) != 0) return fail_mapping(errno, "changing the protection", bytes);
  return RONDO_OK;
}

/* Files ------------------------------------------------------------------------------------------------------------ */

/* Maps the pages of `from` at another place of the system's choice as well, and keeps the mapping at `from`. NULL: the
 * system cannot. */
static void *map_copy(void *from, size_t bytes) {
  void *made = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
  if (made == MAP_FAILED) return NULL;
  if (mprotect(made, bytes, PROT_READ | PROT_WRITE) == 0) return made;
  (void)munmap(made, bytes);
  return NULL;
}

/* The copy of the mapping is made elsewhere, because a system that cannot make it may unmap the place where it is to
 * be. Moving the copy to `to` hardly ever fails; if it does, `to` may have no mapping, so memory is mapped there. */
static rondo_status map_again(void *from, char *to, size_t bytes, size_t *out_bytes) {
  void *made = map_copy(from, bytes);
  if (made == NULL) return RONDO_OK;
  if (mremap(made, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) {
    (void)madvise(to, bytes, MADV_DONTFORK);
    *out_bytes = bytes;
    return RONDO_OK;
  }
  (void)munmap(made, bytes);
  void *memory = mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (memory == MAP_FAILED) return fail_mapping(errno, "mapping", bytes);
  advise(to, bytes);
  return RONDO_OK;
}

rondo_status cpu_map_file(rondo_device *base, void *address, const void *from, size_t bytes, size_t *out_first,
                          size_t *out_bytes) {
  const size_t page = ((cpu_device *)base)->page_bytes;
  const size_t first = (page - (uintptr_t)address % page) % page;
  *out_first = *out_bytes = 0;
  if ((uintptr_t)address % page != (uintptr_t)from % page || bytes < first + page) return RONDO_OK;
  void *source;
  memcpy(&source, &from, sizeof source); /* the system does not write to it */
  *out_first = first;
  return map_again((char *)source + first, (char *)address + first, (bytes - first) / page * page, out_bytes);
}

/* Watching the host ------------------------------------------------------------------------------------------------ */

/* Makes the reservation accessible. A page that is accessed becomes resident. */
void *cpu_host_watch_begin(rondo_device *device, void *address, size_t bytes) {
  (void)device;
  if (bytes == 0 || mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0) return NULL;
  (void)madvise(address, bytes, MADV_NOHUGEPAGE); /* else one access would make many pages resident */
  return address;
}

char *cpu_find_resident(char *begin, size_t bytes, size_t page) {
  unsigned char resident[1024];
  for (size_t at = 0; at < bytes; at += sizeof resident * page) {
    const size_t left = (bytes - at + page - 1) / page, count = left < sizeof resident ? left : sizeof resident;
    if (mincore(begin + at, count * page, resident) != 0) return NULL;
    for (size_t i = 0; i < count; i++)
      if ((resident[i] & 1) != 0) return begin + at + i * page;
  }
  return NULL;
}

void *cpu_host_watch_end(rondo_device *device, void *watch, size_t bytes, size_t used, size_t *out_bytes) {
  *out_bytes = ((cpu_device *)device)->page_bytes;
  char *found = cpu_find_resident(watch, used < bytes ? used : bytes, *out_bytes);
  (void)madvise(watch, bytes, MADV_DONTNEED);
  (void)mprotect(watch, bytes, PROT_NONE);
  return found;
}

rondo_status cpu_host_allocate(rondo_device *device, size_t bytes, void **out_address) {
  return rondo_allocate_untouched(&device->allocator, bytes, 256, out_address);
}

void cpu_host_release(rondo_device *device, void *address, size_t bytes) {
  rondo_release(&device->allocator, address, 1, bytes);
}
