/* SPDX-License-Identifier: MIT
 * The handler of SIGSEGV and SIGBUS. If a work faults at an address of a checking device, the fault is noted in the run
 * of its thread, scratch memory is mapped there, and the work continues. All other faults, and signals that were sent,
 * go to the handler from before, or have their default effect. Outside of works, this handler restores the other one
 * and lets the signal come again: then the system honours the other handler's flags and mask, and siglongjmp out of it
 * is harmless.
 *
 * Code that runs in the handler uses atomics, system calls, the spin lock of the device and existing memory only: no
 * allocator, no mutex, no text. The handler is installed while a checking device is open. If other handlers are
 * installed meanwhile, the next work installs this one again, before them (check_handler_renew).
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "device/check/check.h"
#include "device/check/check_allocation.h"
#include "device/check/check_fault.h"
#include "device/check/check_memory.h"

enum { DEVICES = 64, EARLIER = 16, MOST_RETRIES = 3 };

/* The maximum size of scratch memory around an address without an area, on each side. */
#define SCRATCH_BYTES ((size_t)1 << 20)

/* The innermost run of the thread, and the alternate stack that it got here. These are keys because pthread_getspecific
 * never allocates. Thread-local variables of a library that is loaded later do so at the first use in a thread. */
static pthread_once_t keys_once = PTHREAD_ONCE_INIT;
static pthread_key_t run_key, stack_key;
static int keys_error;

static _Atomic(check_state *) devices[DEVICES];
static _Atomic uint32_t inside; /* handlers that read the devices now */
static _Atomic int process;     /* in which the handler was installed: not in its forked children */

/* The handlers from before ours, by signal. Signals are passed on to the last. Written under `installing`. */
static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static uint32_t open_devices;
static struct earlier_handlers {
  struct sigaction actions[EARLIER];
  _Atomic uint32_t count;
} earlier[2];

static const int signals[2] = {SIGSEGV, SIGBUS};

/* Runs ------------------------------------------------------------------------------------------------------------- */

enum { STACK_BYTES = 1 << 16 };

static check_run *find_running(void) { return pthread_getspecific(run_key); }

static void free_stack(void *stack) {
  stack_t now = {.ss_flags = SS_DISABLE};
  const stack_t none = {.ss_flags = SS_DISABLE};
  if (sigaltstack(NULL, &now) == 0 && now.ss_sp == stack) (void)sigaltstack(&none, NULL);
  (void)munmap(stack, STACK_BYTES);
}

static void make_keys(void) {
  keys_error = pthread_key_create(&run_key, NULL);
  if (keys_error == 0) keys_error = pthread_key_create(&stack_key, free_stack);
}

/* A fault may come while the code of a library uses the stack pointer for other data (as oneDNN does), so the handler
 * needs a stack of its own. A thread that has one keeps it. Without one, only such code is unsafe. */
static void give_stack(void) {
  stack_t now;
  if (pthread_getspecific(stack_key) != NULL || sigaltstack(NULL, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0)
    return;
  void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return;
  const stack_t ours = {.ss_sp = stack, .ss_size = STACK_BYTES};
  if (pthread_setspecific(stack_key, stack) != 0 || sigaltstack(&ours, NULL) != 0) {
    (void)pthread_setspecific(stack_key, NULL);
    (void)munmap(stack, STACK_BYTES);
  }
}

void check_run_begin(check_run *run, const check_work *work) {
  run->work = work;
  run->outer = find_running();
  run->count = run->retries = run->passing = 0;
  run->retried = NULL;
  give_stack();
  (void)pthread_setspecific(run_key, run); /* check_handler_enter made the keys */
  atomic_signal_fence(memory_order_seq_cst);
}

void check_run_end(check_run *run) {
  atomic_signal_fence(memory_order_seq_cst);
  assert(find_running() == run); /* runs are nested */
  (void)pthread_setspecific(run_key, run->outer);
}

/* Faults ----------------------------------------------------------------------------------------------------------- */

/* *out_writes: whether the instruction wrote. False if this is not known. */
static bool tell_access(const void *context, bool *out_writes) {
  const ucontext_t *at = context;
  *out_writes = false;
#if defined(__x86_64__)
  *out_writes = (at->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  return true;
#elif defined(__aarch64__)
  /* Records of {magic, bytes, ...}. Bit 6 of the exception syndrome, in its own record, says "write". */
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

/* Between two areas, the nearer one is named: past its end, or before its beginning. */
static void describe_gap(const check_state *check, check_fault *fault, const check_range *region) {
  const char *address = fault->address;
  const size_t at = check_index_seek(&check->areas, address);
  const check_area *next = at < check->areas.count ? check->areas.items[at].object : NULL;
  const check_area *last = at > 0 ? check->areas.items[at - 1].object : NULL;
  if (next != NULL && next->begin >= region->end) next = NULL;
  if (last != NULL && last->begin < region->begin) last = NULL;
  const size_t after = last == NULL ? SIZE_MAX : (size_t)(address - last->begin) - last->bytes + 1;
  const size_t ahead = next == NULL ? SIZE_MAX : (size_t)(next->begin - address);
  fault->mistake = CHECK_MISTAKE_FOREIGN;
  if (last != NULL && after <= ahead)
    describe(fault, last, CHECK_MISTAKE_AFTER_END, after);
  else if (next != NULL)
    describe(fault, next, CHECK_MISTAKE_BEFORE_BEGIN, ahead);
}

/* Where to map scratch memory: the area's pages, or the gap around the address. */
static check_scratch place_of(const check_state *check, const check_fault *fault, const check_range *region,
                              const check_area *area) {
  if (area != NULL) return (check_scratch){area->pages, area->page_bytes, find_running()};
  const uintptr_t page = check->device->page_bytes, address = (uintptr_t)fault->address;
  const size_t at = check_index_seek(&check->areas, fault->address);
  uintptr_t begin = (uintptr_t)region->begin, end = (uintptr_t)region->end;
  if (at > 0 && (uintptr_t)check->areas.items[at - 1].end > begin) begin = (uintptr_t)check->areas.items[at - 1].end;
  if (at < check->areas.count && (uintptr_t)check->areas.items[at].begin < end)
    end = (uintptr_t)check->areas.items[at].begin;
  if (address - begin > SCRATCH_BYTES) begin = (address - SCRATCH_BYTES) / page * page;
  if (end - address > SCRATCH_BYTES) end = (address + SCRATCH_BYTES) / page * page;
  char *first = region->begin + (begin - (uintptr_t)region->begin);
  return (check_scratch){first, end - begin, find_running()};
}

bool check_scratch_map(check_state *check, check_scratch scratch) {
  if (check->scratch_count == CHECK_SCRATCHES) return false;
  const long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  const long mapped = syscall(SYS_mmap, scratch.begin, scratch.bytes, (long)(PROT_READ | PROT_WRITE), flags, -1L, 0L);
  if (mapped == -1) return false;
  assert(check->scratch_count < CHECK_SCRATCHES);
  check->scratches[check->scratch_count++] = scratch;
  return true;
}

static void note_fault(const check_fault *fault) {
  check_run *running = find_running();
  if (running->count < CHECK_FAULTS) running->faults[running->count] = *fault;
  running->count++;
}

/* Lets the area be written from now on, as on other devices. */
static bool take_write(check_area *area, check_fault *fault) {
  if (syscall(SYS_mprotect, area->pages, area->page_bytes, (long)(PROT_READ | PROT_WRITE)) != 0) return false;
  area->read_only = false;
  describe(fault, area, CHECK_MISTAKE_READ_ONLY, (size_t)(fault->address - area->begin));
  return true;
}

/* With the spin lock held. An area that is live now became accessible after the fault: the access is tried again, but
 * not for ever. */
static bool take_fault(check_state *check, const check_range *region, check_fault *fault) {
  check_area *area = check_area_around(check, fault->address);
  check_run *running = find_running();
  fault->check = check;
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
    describe(fault, area, CHECK_MISTAKE_BEFORE_BEGIN, (size_t)(area->begin - fault->address));
  else if (fault->address >= area->begin + area->bytes)
    describe(fault, area, CHECK_MISTAKE_AFTER_END, (size_t)(fault->address - area->begin) - area->bytes + 1);
  else
    describe(fault, area, area->life == CHECK_EARLY ? CHECK_MISTAKE_EARLY : CHECK_MISTAKE_ENDED,
             (size_t)(fault->address - area->begin));
  if (!check_scratch_map(check, place_of(check, fault, region, area))) return false;
  note_fault(fault);
  return true;
}

/* True if the work can continue. */
static bool take_signal(const siginfo_t *info, const void *context) {
  if (find_running() == NULL || info->si_code <= 0 || atomic_load(&process) != (int)getpid()) return false;
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

/* Whether the signal does not come again when the handler returns: it was sent, or reports memory that failed
 * elsewhere. */
static bool was_sent(const siginfo_t *info) { return info->si_code <= 0 || info->si_code == BUS_MCEERR_AO; }

static bool is_same(const struct sigaction *a, const struct sigaction *b) {
  if (a->sa_flags != b->sa_flags) return false;
  return (a->sa_flags & SA_SIGINFO) != 0 ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler;
}

static bool is_function(const struct sigaction *action) {
  return (action->sa_flags & SA_SIGINFO) != 0 || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* Calls a handler as the system would, except for the stack. */
static void call_handler(const struct sigaction *action, int number, siginfo_t *info, void *context) {
  const struct sigaction standard = {.sa_handler = SIG_DFL};
  sigset_t blocked = action->sa_mask, before;
  if ((action->sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, number);
  if ((action->sa_flags & (int)SA_RESETHAND) != 0) (void)sigaction(number, &standard, NULL);
  (void)pthread_sigmask(SIG_BLOCK, &blocked, &before);
  if ((action->sa_flags & SA_SIGINFO) != 0)
    action->sa_sigaction(number, info, context);
  else
    action->sa_handler(number);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool is_ours(const struct sigaction *action);

/* Installs the next handler, so that the system calls it with its flags and mask after this handler has returned: the
 * instruction faults again, and a signal that was sent is sent again. The next work installs this handler again. */
static void step_aside(int number, siginfo_t *info, const struct sigaction *next) {
  if (was_sent(info) && next->sa_handler == SIG_IGN) return;
  (void)sigaction(number, next, NULL);
  if (was_sent(info)) (void)syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), number, info);
}

/* Outside of works. If another handler is installed, it has called this one, or another thread has just stepped aside.
 * Then the signal comes again, to that handler. If that handler calls this one, the one from before it is called. */
static void pass_outside(int number, siginfo_t *info, void *context) {
  static _Atomic long aside; /* the thread that stepped aside last */
  const struct earlier_handlers *handlers = &earlier[number == SIGBUS];
  const struct sigaction standard = {.sa_handler = SIG_DFL};
  const uint32_t count = atomic_load(&handlers->count);
  const long thread = syscall(SYS_gettid);
  struct sigaction now = standard;
  (void)sigaction(number, NULL, &now);
  const bool was_called = !is_ours(&now) && atomic_load(&aside) == thread;
  atomic_store(&aside, thread);
  if (!was_called) {
    step_aside(number, info, !is_ours(&now) ? &now : count > 0 ? &handlers->actions[count - 1] : &standard);
    return;
  }
  uint32_t at = count; /* the one from before the installed handler, which may be unknown */
  while (at > 0 && !is_same(&handlers->actions[at - 1], &now)) at--;
  at = at > 0 ? at - 1 : count;
  const struct sigaction next = at > 0 ? handlers->actions[at - 1] : standard;
  if (is_function(&next))
    call_handler(&next, number, info, context);
  else
    step_aside(number, info, &next);
}

/* Watched host code counts as outside of works. Within a work this handler must stay installed, so it calls the next
 * one itself. If that one calls back, the one from before it is called. */
static void pass_on(int number, siginfo_t *info, void *context) {
  const struct earlier_handlers *handlers = &earlier[number == SIGBUS];
  const struct sigaction standard = {.sa_handler = SIG_DFL};
  const uint32_t count = atomic_load(&handlers->count);
  check_run *run = find_running();
  if (run == NULL || run->work == NULL) {
    pass_outside(number, info, context);
    return;
  }
  const struct sigaction next = run->passing < count ? handlers->actions[count - 1 - run->passing] : standard;
  if (!is_function(&next)) {
    step_aside(number, info, &next);
    return;
  }
  run->passing++;
  call_handler(&next, number, info, context);
  run->passing--;
}

static void on_signal(int number, siginfo_t *info, void *context) {
  const int before = errno;
  if (!take_signal(info, context)) pass_on(number, info, context);
  errno = before;
}

static bool is_ours(const struct sigaction *action) {
  return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == on_signal;
}

/* Under `installing`: installs ours, and keeps the handler from before. */
static void put_in_front(int which) {
  struct earlier_handlers *handlers = &earlier[which];
  struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  struct sigaction now = {.sa_handler = SIG_DFL};
  sigemptyset(&ours.sa_mask);
  if (sigaction(signals[which], NULL, &now) != 0 || is_ours(&now)) return;
  const uint32_t count = atomic_load(&handlers->count);
  const bool known = count > 0 && is_same(&handlers->actions[count - 1], &now);
  const uint32_t at = known || count == EARLIER ? count - 1 : count;
  assert(at < EARLIER);
  handlers->actions[at] = now;
  atomic_store(&handlers->count, at + 1);
  (void)sigaction(signals[which], &ours, NULL);
}

/* Under `installing`. If another handler is installed over ours, ours stays and passes every signal on. */
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

static const char cannot_be_set[] =
    "the handlers of SIGSEGV and SIGBUS cannot be set in this process: with AddressSanitizer, set ASAN_OPTIONS to hold "
    "handle_segv=1:handle_sigbus=1";

const char *check_handler_unavailable(void) {
  if (pthread_once(&keys_once, make_keys) != 0 || keys_error != 0) return cannot_be_set;
  pthread_mutex_lock(&installing);
  for (int i = 0; i < 2; i++) put_in_front(i);
  const bool set = is_in_front(0) && is_in_front(1);
  for (int i = 0; i < 2 && open_devices == 0; i++) take_away(i);
  pthread_mutex_unlock(&installing);
  return set ? "" : cannot_be_set;
}

static rondo_status install(void) {
  for (int i = 0; i < 2; i++) put_in_front(i);
  if (is_in_front(0) && is_in_front(1)) return RONDO_OK;
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NOT_SUPPORTED, "%s", cannot_be_set);
}

/* Makes the keys, without which no run can be noted. */
static rondo_status prepare_keys(void) {
  const int failed = pthread_once(&keys_once, make_keys);
  const int error = failed != 0 ? failed : keys_error;
  if (error == 0) return RONDO_OK;
  return rondo_fail_errno(RONDO_LIMIT_EXCEEDED, error,
                          "a checking device needs two keys of thread-specific data: free some "
                          "(pthread_key_delete)");
}

rondo_status check_handler_enter(check_state *check) {
  RONDO_TRY(prepare_keys());
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
  assert(open_devices > 0);
  while (atomic_load(&inside) != 0) rondo_yield(); /* handlers that may read the device end soon */
  open_devices--;
  for (int i = 0; i < 2 && open_devices == 0; i++) take_away(i);
  pthread_mutex_unlock(&installing);
}
