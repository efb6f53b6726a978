/* SPDX-License-Identifier: MIT
 * The handler of SIGSEGV and SIGBUS. A fault that a work makes at an address of a checking device is noted in the run
 * of its thread; scratch memory is mapped at the place, and the work goes on with it. Every other fault, and signals
 * that were sent, go to the handler that was there before, or have the effect that they would have had.
 *
 * What runs in the handler uses atomics, system calls, the spin lock of the device and memory that is there: no
 * allocator, no mutex, no text. The handler is installed while a checking device is open. Handlers that others install
 * meanwhile come behind it again with the next work (check_handler_renew), the earlier ones staying behind those.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "device/cpu/check.h"

enum { DEVICES = 64, EARLIER = 16, MOST_RETRIES = 3 };

/* Scratch where there is no area: no more than this around the place. */
#define SCRATCH_BYTES ((size_t)1 << 20)

/* Not by way of a function that may allocate when a thread comes here first. */
#define SIGNAL_SAFE __attribute__((tls_model("initial-exec")))
static _Thread_local check_run *running SIGNAL_SAFE;
static _Thread_local uint32_t passing SIGNAL_SAFE; /* handlers that a signal was passed on to and that came back here */

static _Atomic(check_state *) devices[DEVICES];
static _Atomic uint32_t inside; /* handlers that look at the devices now */
static _Atomic int process;     /* that the handler was installed in: what fork made of it is not ours */

/* The handlers behind ours, by signal; the last is the one to pass on to. Written under `installing`. */
static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static uint32_t open_devices;
static struct earlier_handlers {
  struct sigaction actions[EARLIER];
  _Atomic uint32_t count;
} earlier[2];

static const int signals[2] = {SIGSEGV, SIGBUS};

/* Runs ------------------------------------------------------------------------------------------------------------- */

void check_run_begin(check_run *run, const check_work *work) {
  run->work = work;
  run->outer = running;
  run->count = run->retries = 0;
  run->retried = NULL;
  running = run;
  passing = 0; /* a handler may have left by a jump */
  atomic_signal_fence(memory_order_seq_cst);
}

void check_run_end(check_run *run) {
  atomic_signal_fence(memory_order_seq_cst);
  running = run->outer;
}

/* Faults ----------------------------------------------------------------------------------------------------------- */

/* Whether the instruction wrote; false when that cannot be told. */
static bool tell_access(const void *context, bool *out_writes) {
  const ucontext_t *at = context;
  *out_writes = false;
#if defined(__x86_64__)
  *out_writes = (at->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  return true;
#elif defined(__aarch64__)
  /* Records of {magic, bytes, ...}; that of the exception syndrome has it behind, whose bit 6 says "write". */
  const unsigned char *record = (const unsigned char *)at->uc_mcontext.__reserved;
  const unsigned char *end = record + sizeof at->uc_mcontext.__reserved;
  while (end - record >= 16) {
    uint32_t head[2];
    uint64_t syndrome;
    memcpy(head, record, sizeof head);
    if (head[0] == 0 || head[1] < 8) break;
    memcpy(&syndrome, record + 8, sizeof syndrome);
    *out_writes = (syndrome & 64) != 0;
    if (head[0] == UINT32_C(0x45535201)) return true;
    record += head[1];
  }
  *out_writes = false;
  return false;
#else
  (void)at;
  return false;
#endif
}

static void describe(check_fault *fault, const check_area *area, check_mistake mistake, size_t distance) {
  fault->mistake = mistake;
  fault->distance = distance;
  fault->bytes = area->bytes;
  memcpy(fault->name, area->name, sizeof fault->name);
}

/* Between areas: past the end of the one before, or before the beginning of the next, whatever is nearer. */
static void describe_gap(const check_state *check, check_fault *fault, const check_range *region) {
  const char *address = fault->address;
  const size_t at = check_index_seek(&check->areas, address);
  const check_area *next = at < check->areas.count ? check->areas.items[at].object : NULL;
  const check_area *last = at > 0 ? check->areas.items[at - 1].object : NULL;
  if (next != NULL && next->begin >= region->end) next = NULL;
  if (last != NULL && last->begin < region->begin) last = NULL;
  const size_t behind = last == NULL ? SIZE_MAX : (size_t)(address - last->begin) - last->bytes + 1;
  const size_t ahead = next == NULL ? SIZE_MAX : (size_t)(next->begin - address);
  fault->mistake = CHECK_MISTAKE_FOREIGN;
  if (last != NULL && behind <= ahead)
    describe(fault, last, CHECK_MISTAKE_BEHIND, behind);
  else if (next != NULL)
    describe(fault, next, CHECK_MISTAKE_AHEAD, ahead);
}

/* The place that scratch memory is for: the area's pages, or the gap around the address. */
static check_scratch place_of(const check_state *check, const check_fault *fault, const check_range *region,
                              const check_area *area) {
  if (area != NULL) return (check_scratch){area->pages, area->page_bytes, running};
  const uintptr_t page = check->device->page_bytes, address = (uintptr_t)fault->address;
  const size_t at = check_index_seek(&check->areas, fault->address);
  uintptr_t begin = (uintptr_t)region->begin, end = (uintptr_t)region->end;
  if (at > 0 && (uintptr_t)check->areas.items[at - 1].end > begin) begin = (uintptr_t)check->areas.items[at - 1].end;
  if (at < check->areas.count && (uintptr_t)check->areas.items[at].begin < end)
    end = (uintptr_t)check->areas.items[at].begin;
  if (address - begin > SCRATCH_BYTES) begin = (address - SCRATCH_BYTES) / page * page;
  if (end - address > SCRATCH_BYTES) end = (address + SCRATCH_BYTES) / page * page;
  char *first = region->begin + (begin - (uintptr_t)region->begin);
  return (check_scratch){first, end - begin, running};
}

static bool map_scratch(check_state *check, check_scratch scratch) {
  if (check->scratch_count == CHECK_SCRATCHES) return false;
  const long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  const long mapped = syscall(SYS_mmap, scratch.begin, scratch.bytes, (long)(PROT_READ | PROT_WRITE), flags, -1L, 0L);
  if (mapped == -1) return false;
  check->scratches[check->scratch_count++] = scratch;
  return true;
}

static void note_fault(const check_fault *fault) {
  if (running->count < CHECK_FAULTS) running->faults[running->count] = *fault;
  running->count++;
}

/* The area can be written from now on, as on other devices. */
static bool take_write(check_area *area, check_fault *fault) {
  if (syscall(SYS_mprotect, area->pages, area->page_bytes, (long)(PROT_READ | PROT_WRITE)) != 0) return false;
  area->read_only = false;
  describe(fault, area, CHECK_MISTAKE_READ_ONLY, (size_t)(fault->address - area->begin));
  return true;
}

/* With the spin lock held. What lives by now was made accessible between the fault and this look: then the access is
 * tried again, but not for ever. */
static bool take_fault(check_state *check, const check_range *region, check_fault *fault) {
  check_area *area = check_area_around(check, fault->address);
  if (area != NULL && area->life == CHECK_LIVE && area->read_only && (fault->writes || !fault->known)) {
    if (!take_write(area, fault)) return false;
    note_fault(fault);
    return true;
  }
  if (area != NULL && area->life == CHECK_LIVE) {
    running->retries = running->retried == fault->address ? running->retries + 1 : 1;
    running->retried = fault->address;
    return running->retries <= MOST_RETRIES;
  }
  if (area == NULL)
    describe_gap(check, fault, region);
  else if (fault->address < area->begin)
    describe(fault, area, CHECK_MISTAKE_AHEAD, (size_t)(area->begin - fault->address));
  else if (fault->address >= area->begin + area->bytes)
    describe(fault, area, CHECK_MISTAKE_BEHIND, (size_t)(fault->address - area->begin) - area->bytes + 1);
  else
    describe(fault, area, area->life == CHECK_EARLY ? CHECK_MISTAKE_EARLY : CHECK_MISTAKE_ENDED,
             (size_t)(fault->address - area->begin));
  if (!map_scratch(check, place_of(check, fault, region, area))) return false;
  note_fault(fault);
  return true;
}

/* True when the fault is dealt with. */
static bool take_signal(const siginfo_t *info, const void *context) {
  if (running == NULL || info->si_code <= 0 || atomic_load(&process) != (int)getpid()) return false;
  check_fault fault = {.address = info->si_addr};
  bool taken = false, found = false;
  fault.known = tell_access(context, &fault.writes);
  atomic_fetch_add(&inside, 1);
  for (int i = 0; i < DEVICES && !found; i++) {
    check_state *check = atomic_load(&devices[i]);
    if (check == NULL) continue;
    check_spin_lock(check);
    const check_range *region = check_index_find(&check->regions, fault.address);
    found = region != NULL;
    if (found) taken = take_fault(check, region, &fault);
    check_spin_unlock(check);
  }
  atomic_fetch_sub(&inside, 1);
  return taken;
}

/* The handler ------------------------------------------------------------------------------------------------------ */

static void fall_back(int number, const siginfo_t *info) {
  const struct sigaction standard = {.sa_handler = SIG_DFL};
  (void)sigaction(number, &standard, NULL);
  if (info->si_code <= 0) (void)raise(number); /* it was sent; a fault comes again by itself */
}

/* A handler that comes back here by itself gets what is behind it. */
static void pass_on(int number, siginfo_t *info, void *context) {
  struct earlier_handlers *handlers = &earlier[number == SIGBUS];
  const uint32_t count = atomic_load(&handlers->count);
  if (passing >= count) {
    fall_back(number, info);
    return;
  }
  const struct sigaction *next = &handlers->actions[count - 1 - passing];
  passing++;
  if ((next->sa_flags & SA_SIGINFO) != 0)
    next->sa_sigaction(number, info, context);
  else if (next->sa_handler == SIG_DFL || next->sa_handler == SIG_IGN)
    fall_back(number, info);
  else
    next->sa_handler(number);
  passing--;
}

static void on_signal(int number, siginfo_t *info, void *context) {
  const int before = errno;
  if (!take_signal(info, context)) pass_on(number, info, context);
  errno = before;
}

static bool is_ours(const struct sigaction *action) {
  return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == on_signal;
}

static bool is_same(const struct sigaction *a, const struct sigaction *b) {
  if (a->sa_flags != b->sa_flags) return false;
  return (a->sa_flags & SA_SIGINFO) != 0 ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler;
}

/* Under `installing`: ours in front, what was there behind it. */
static void put_in_front(int which) {
  struct earlier_handlers *handlers = &earlier[which];
  struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  struct sigaction now = {.sa_handler = SIG_DFL};
  sigemptyset(&ours.sa_mask);
  if (sigaction(signals[which], NULL, &now) != 0 || is_ours(&now)) return;
  const uint32_t count = atomic_load(&handlers->count);
  const bool known = count > 0 && is_same(&handlers->actions[count - 1], &now);
  const uint32_t at = known || count == EARLIER ? count - 1 : count;
  handlers->actions[at] = now;
  atomic_store(&handlers->count, at + 1);
  (void)sigaction(signals[which], &ours, NULL);
}

/* Under `installing`. Where another one stands in front, ours stays behind it and passes everything on. */
static void take_away(int which) {
  struct earlier_handlers *handlers = &earlier[which];
  struct sigaction now = {.sa_handler = SIG_DFL};
  const uint32_t count = atomic_load(&handlers->count);
  if (count == 0 || sigaction(signals[which], NULL, &now) != 0 || !is_ours(&now)) return;
  (void)sigaction(signals[which], &handlers->actions[count - 1], NULL);
  atomic_store(&handlers->count, 0);
}

static bool is_in_front(int which) {
  struct sigaction now = {.sa_handler = SIG_DFL};
  return sigaction(signals[which], NULL, &now) == 0 && is_ours(&now);
}

void check_handler_renew(void) {
  if (is_in_front(0) && is_in_front(1)) return;
  pthread_mutex_lock(&installing);
  for (int i = 0; i < 2; i++) put_in_front(i);
  pthread_mutex_unlock(&installing);
}

bool check_handler_can_be_set(void) {
  pthread_mutex_lock(&installing);
  for (int i = 0; i < 2; i++) put_in_front(i);
  const bool set = is_in_front(0) && is_in_front(1);
  for (int i = 0; i < 2 && open_devices == 0; i++) take_away(i);
  pthread_mutex_unlock(&installing);
  return set;
}

static rondo_status install(void) {
  for (int i = 0; i < 2; i++) put_in_front(i);
  if (is_in_front(0) && is_in_front(1)) return RONDO_OK;
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NOT_SUPPORTED, "%s", CHECK_UNAVAILABLE);
}

rondo_status check_handler_enter(check_state *check) {
  pthread_mutex_lock(&installing);
  atomic_store(&process, (int)getpid());
  rondo_status status = install();
  int slot = 0;
  while (slot < DEVICES && atomic_load(&devices[slot]) != NULL) slot++;
  if (status == RONDO_OK && slot == DEVICES)
    status = rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                        "%d checking devices are open, the most there can be: close one first", DEVICES);
  if (status == RONDO_OK) {
    atomic_store(&devices[slot], check);
    open_devices++;
  } else {
    for (int i = 0; i < 2 && open_devices == 0; i++) take_away(i);
  }
  pthread_mutex_unlock(&installing);
  return status;
}

void check_handler_leave(check_state *check) {
  pthread_mutex_lock(&installing);
  for (int i = 0; i < DEVICES; i++)
    if (atomic_load(&devices[i]) == check) atomic_store(&devices[i], NULL);
  while (atomic_load(&inside) != 0) rondo_yield(); /* handlers that may look at the device end soon */
  open_devices--;
  for (int i = 0; i < 2 && open_devices == 0; i++) take_away(i);
  pthread_mutex_unlock(&installing);
}
