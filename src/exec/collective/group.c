/* SPDX-License-Identifier: MIT
 * Ranks find each other at a file, by locks on its bytes. The byte after those of the ranks is locked while the head
 * is made and while ranks come and go, so that what is read there is complete. A rank that waits for that lock fails
 * when the time for joining has passed.
 */
#define _GNU_SOURCE
#include "exec/collective/group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_limit.h"

enum { PAGE = 4096, ENTRANCE = 1 << 20 /* the byte that is locked on the way in and out */ };
static const uint64_t MAGIC = UINT64_C(0x31307075446e6f52); /* grows with the layout of the head */
static const uint64_t TURN_NS = UINT64_C(1000000), LOOK_NS = UINT64_C(20000000);
static const uint64_t ENTRANCE_NS = UINT64_C(1000000000); /* waited for the entrance on the way out */

/* Locks ----------------------------------------------------------------------------------------------------------- */

static struct flock lock_of(short type, uint32_t byte) {
  return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
}

/* False when somebody else has it. */
static bool try_lock(int file, uint32_t byte) {
  struct flock lock = lock_of(F_WRLCK, byte);
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

static void unlock(int file, uint32_t byte) {
  struct flock lock = lock_of(F_UNLCK, byte);
  (void)fcntl(file, F_OFD_SETLK, &lock); /* of a file that is open */
}

/* Whether another open file has the lock. */
static bool is_locked(int file, uint32_t byte) {
  struct flock lock = lock_of(F_WRLCK, byte);
  return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static rondo_status lock_entrance(int file, const char *path, uint64_t deadline_ns) {
  while (!try_lock(file, ENTRANCE)) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR)
      return rondo_fail_errno(RONDO_IO_ERROR, errno, "rendezvous '%s': its file system has no locks of open files",
                              path);
    if (rondo_clock_ns() >= deadline_ns)
      return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_TIMED_OUT,
                        "rendezvous '%s': another rank holds the lock for joining, perhaps stopped by a debugger: let "
                        "it continue or end it, and join again",
                        path);
    const struct timespec turn = {.tv_nsec = (long)TURN_NS};
    (void)nanosleep(&turn, NULL);
  }
  return RONDO_OK;
}

/* The head -------------------------------------------------------------------------------------------------------- */

static size_t head_bytes(uint32_t world_size) {
  const size_t bytes = sizeof(rondo_group_header) + world_size * sizeof(rondo_group_member);
  return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t whole_bytes(const rondo_group *group) {
  return head_bytes(group->world_size) + 2 * (size_t)group->world_size * group->piece_bytes;
}

/* The contents of the file; all zero when there are none yet. */
static rondo_status read_head(const rondo_group *group, rondo_group_header *out) {
  memset(out, 0, sizeof *out);
  const ssize_t got = pread(group->file, out, sizeof *out, 0);
  if (got < 0) return rondo_fail_errno(RONDO_IO_ERROR, errno, "rendezvous '%s' cannot be read", group->path);
  static const rondo_group_header nothing;
  if (atomic_load(&out->magic) == MAGIC || memcmp(out, &nothing, sizeof nothing) == 0) return RONDO_OK;
  return rondo_fail(
      RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
      "rendezvous '%s' is not a rendezvous file of this version of Rondo: pass a path that does not exist",
      group->path);
}

/* A rank other than this one. */
static bool has_joined(const rondo_group *group, uint32_t rank) {
  return atomic_load(&group->header->members[rank].present) != 0 && is_locked(group->file, rank);
}

static bool has_any_rank(const rondo_group *group, uint32_t world_size) {
  for (uint32_t rank = 0; rank < world_size; rank++)
    if (is_locked(group->file, rank)) return true;
  return false;
}

static rondo_status compare(const rondo_group *group, const rondo_group_header *head, const rondo_group_options *own) {
  if (head->world_size != own->world_size)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                      "rendezvous '%s': rank %" PRIu32 " has world_size %" PRIu32
                      ", but the first rank that joined has %" PRIu32 ": pass the same world_size on all ranks",
                      group->path, own->rank, own->world_size, head->world_size);
  if (head->kind != own->kind)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                      "rendezvous '%s': rank %" PRIu32
                      " has another kind of device than the first rank that joined: use one kind of device in a group",
                      group->path, own->rank);
  if (head->piece_bytes != own->piece_bytes)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_MISMATCH,
                      "rendezvous '%s': rank %" PRIu32 " has piece_bytes %" PRIu32
                      ", but the first rank that joined has %" PRIu32 ": pass the same piece_bytes on all ranks",
                      group->path, own->rank, own->piece_bytes, head->piece_bytes);
  return RONDO_OK;
}

/* Entering -------------------------------------------------------------------------------------------------------- */

static rondo_status open_file(rondo_group *group) {
  group->file = open(group->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (group->file < 0) return rondo_fail_errno(RONDO_IO_ERROR, errno, "rendezvous '%s' cannot be opened", group->path);
  return RONDO_OK;
}

static void close_file(rondo_group *group) {
  if (group->file >= 0) (void)close(group->file); /* and with it what it has locked */
  group->file = -1;
}

/* Opens the file with the entrance locked; one that was removed meanwhile belongs to a group that is complete. */
static rondo_status enter_file(rondo_group *group) {
  for (;;) {
    struct stat about;
    RONDO_TRY(open_file(group));
    RONDO_TRY(lock_entrance(group->file, group->path, group->deadline_ns));
    if (fstat(group->file, &about) != 0)
      return rondo_fail_errno(RONDO_IO_ERROR, errno, "rendezvous '%s': fstat failed", group->path);
    if (!S_ISREG(about.st_mode))
      return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                        "rendezvous '%s' is not a regular file: pass a path that does not exist", group->path);
    if (about.st_nlink > 0) return RONDO_OK;
    close_file(group);
  }
}

/* Sets the file to zeros, with the size that the group needs. No other rank has it open. */
static rondo_status make_file(const rondo_group *group) {
  if (rondo_file_limit_forbids(whole_bytes(group))) /* SIGXFSZ would end the process */
    return rondo_fail_errno(RONDO_IO_ERROR, EFBIG,
                            "rendezvous '%s': its %zu bytes would pass the limit on the size of files: raise it "
                            "(ulimit -f)",
                            group->path, whole_bytes(group));
  if (ftruncate(group->file, 0) == 0 && ftruncate(group->file, (off_t)whole_bytes(group)) == 0) {
    const int failed = posix_fallocate(group->file, 0, (off_t)head_bytes(group->world_size));
    if (failed == 0) return RONDO_OK;
    errno = failed;
  }
  return rondo_fail_errno(errno == ENOSPC ? RONDO_OUT_OF_MEMORY : RONDO_IO_ERROR, errno,
                          "rendezvous '%s': no memory for the head of a group of %" PRIu32 " ranks", group->path,
                          group->world_size);
}

static rondo_status map_file(rondo_group *group) {
  group->mapped_bytes = whole_bytes(group);
  void *memory = mmap(NULL, group->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, group->file, 0);
  if (memory == MAP_FAILED)
    return rondo_fail_errno(RONDO_IO_ERROR, errno, "rendezvous '%s': its %zu bytes cannot be mapped", group->path,
                            group->mapped_bytes);
  (void)madvise(memory, group->mapped_bytes, MADV_DONTFORK); /* a child has no part in it */
  group->header = memory;
  group->slots = (unsigned char *)memory + head_bytes(group->world_size);
  return RONDO_OK;
}

static rondo_status take_rank(const rondo_group *group) {
  if (try_lock(group->file, group->rank)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_RANK_TAKEN,
                    "rendezvous '%s': rank %" PRIu32 " of %" PRIu32
                    " has joined already: give each communicator its own rank",
                    group->path, group->rank, group->world_size);
}

static void complete_if_all_joined(rondo_group *group) {
  for (uint32_t rank = 0; rank < group->world_size; rank++)
    if (rank != group->rank && !has_joined(group, rank)) return;
  (void)unlink(group->path); /* a process that has opened it meanwhile finds the group complete */
  atomic_store(&group->header->complete, 1);
  rondo_futex_wake_shared(&group->header->complete, UINT32_MAX);
}

static void describe_group(rondo_group *group, const rondo_group_options *options) {
  rondo_group_header *header = group->header;
  atomic_store(&header->magic, MAGIC); /* first: what a process leaves that ends here is known for what it is */
  header->world_size = options->world_size;
  header->piece_bytes = options->piece_bytes;
  header->kind = options->kind;
}

/* A rank that ended before all had joined can be replaced by another process. */
static void mark_present(rondo_group *group, const rondo_group_options *options) {
  rondo_group_member *self = rondo_group_self(group);
  atomic_store(&self->left, 0);
  atomic_store(&self->failed, 0);
  atomic_store(&self->arrived, 0);
  if (options->token != NULL) memcpy(group->header->token, options->token, RONDO_GROUP_TOKEN_BYTES);
  atomic_store(&self->present, 1);
  complete_if_all_joined(group);
}

/* With the entrance locked. */
static rondo_status join_file(rondo_group *group, const rondo_group_options *options) {
  rondo_group_header head;
  RONDO_TRY(read_head(group, &head));
  const bool is_new = atomic_load(&head.magic) == 0 || !has_any_rank(group, head.world_size);
  if (is_new)
    RONDO_TRY(make_file(group));
  else
    RONDO_TRY(compare(group, &head, options));
  RONDO_TRY(take_rank(group));
  RONDO_TRY(map_file(group));
  if (is_new) describe_group(group, options);
  mark_present(group, options);
  return RONDO_OK;
}

/* The entrance is locked. */
static void remove_if_unused(const rondo_group *group) {
  if (!has_any_rank(group, group->world_size)) (void)unlink(group->path);
}

static rondo_status enter(rondo_group *group, const rondo_group_options *options) {
  RONDO_TRY(enter_file(group));
  const rondo_status status = join_file(group, options);
  if (status != RONDO_OK && status != RONDO_INVALID_DATA) remove_if_unused(group);
  unlock(group->file, ENTRANCE);
  return status;
}

static void free_group(rondo_group *group) {
  if (group->header != NULL) (void)munmap(group->header, group->mapped_bytes);
  close_file(group);
  const rondo_allocator allocator = group->allocator;
  rondo_release(&allocator, group, 1, sizeof *group);
}

rondo_status rondo_group_enter(const rondo_allocator *allocator, const rondo_group_options *options,
                               rondo_group **out) {
  *out = NULL;
  if (strlen(options->path) >= RONDO_GROUP_PATH)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                      "rendezvous '%.40s...': the path has %zu bytes: use at most %d", options->path,
                      strlen(options->path), RONDO_GROUP_PATH - 1);
  rondo_group *group;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *group, &group));
  *group = (rondo_group){.allocator = *allocator,
                         .file = -1,
                         .rank = options->rank,
                         .world_size = options->world_size,
                         .piece_bytes = options->piece_bytes,
                         .deadline_ns = rondo_clock_ns() + options->timeout_ns};
  (void)snprintf(group->path, sizeof group->path, "%s", options->path);
  const rondo_status status = enter(group, options);
  if (status != RONDO_OK) {
    free_group(group);
    return status;
  }
  *out = group;
  return RONDO_OK;
}

/* Waiting for the others ------------------------------------------------------------------------------------------ */

/* Writes "1, 3 and others". */
static void list_missing(const rondo_group *group, char *text, size_t bytes) {
  size_t length = 0;
  text[0] = '\0';
  for (uint32_t rank = 0; rank < group->world_size; rank++) {
    if (rank == group->rank || has_joined(group, rank)) continue;
    if (length + 24 > bytes) {
      (void)snprintf(text + length, bytes - length, " and others");
      return;
    }
    length += (size_t)snprintf(text + length, bytes - length, "%s%" PRIu32, length == 0 ? "" : ", ", rank);
  }
}

/* The time has passed. A rank that comes now either finds this one gone, or has made the group complete. */
static rondo_status give_up(rondo_group *group) {
  char missing[128];
  RONDO_TRY(lock_entrance(group->file, group->path, rondo_clock_ns() + ENTRANCE_NS));
  const bool is_complete = atomic_load(&group->header->complete) != 0;
  if (!is_complete) atomic_store(&rondo_group_self(group)->present, 0);
  unlock(group->file, ENTRANCE);
  if (is_complete) return RONDO_OK;
  list_missing(group, missing, sizeof missing);
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_TIMED_OUT,
                    "rendezvous '%s': rank %" PRIu32 " of %" PRIu32
                    " timed out: these ranks have not joined: %s: start them, or raise join_timeout_ms",
                    group->path, group->rank, group->world_size, missing);
}

rondo_status rondo_group_await(rondo_group *group) {
  _Atomic uint32_t *complete = &group->header->complete;
  while (atomic_load(complete) == 0) {
    const uint64_t now = rondo_clock_ns();
    if (now >= group->deadline_ns) return give_up(group);
    const uint64_t left = group->deadline_ns - now;
    rondo_futex_wait_shared_for(complete, 0, left < LOOK_NS ? left : LOOK_NS);
  }
  return RONDO_OK;
}

void rondo_group_leave(rondo_group *group) {
  if (group == NULL) return;
  atomic_store(&rondo_group_self(group)->left, 1);
  for (uint32_t rank = 0; rank < group->world_size; rank++)
    if (rank != group->rank) rondo_group_ring(group, rank);
  if (atomic_load(&group->header->complete) == 0 &&
      lock_entrance(group->file, group->path, rondo_clock_ns() + ENTRANCE_NS) == RONDO_OK) {
    atomic_store(&rondo_group_self(group)->present, 0);
    if (atomic_load(&group->header->complete) == 0) remove_if_unused(group);
  }
  free_group(group);
}

/* Asking and ringing ---------------------------------------------------------------------------------------------- */

rondo_status rondo_group_reserve(rondo_group *group, size_t bytes) {
  const uint64_t before = atomic_load_explicit(&group->reserved_bytes, memory_order_relaxed);
  const size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
  if (pages <= before) return RONDO_OK;
  for (uint64_t piece = 0; piece < 2; piece++) {
    const off_t at = (off_t)(rondo_group_slot(group, group->rank, piece) - (unsigned char *)group->header);
    const int failed = posix_fallocate(group->file, at, (off_t)pages);
    if (failed != 0)
      return rondo_fail_errno(
          failed == ENOSPC ? RONDO_OUT_OF_MEMORY : RONDO_IO_ERROR, failed,
          "rendezvous '%s': no shared memory of %zu bytes: enlarge the file system, or reduce piece_bytes", group->path,
          pages);
  }
  atomic_store_explicit(&group->reserved_bytes, pages, memory_order_relaxed);
  return RONDO_OK;
}

bool rondo_group_is_alive(const rondo_group *group, uint32_t rank) {
  return rank == group->rank || is_locked(group->file, rank);
}

void rondo_group_ring(rondo_group *group, uint32_t rank) {
  rondo_group_member *member = &group->header->members[rank];
  atomic_fetch_add(&member->doorbell, 1);
  if (atomic_load(&member->sleeping) != 0) rondo_futex_wake_shared(&member->doorbell, UINT32_MAX);
}

void rondo_group_sleep(rondo_group *group, uint32_t seen, uint64_t timeout_ns) {
  rondo_group_member *self = rondo_group_self(group);
  atomic_store(&self->sleeping, 1);
  if (atomic_load(&self->doorbell) == seen) rondo_futex_wait_shared_for(&self->doorbell, seen, timeout_ns);
  atomic_store(&self->sleeping, 0);
}

rondo_status rondo_rendezvous_make(char out_rendezvous[RONDO_RENDEZVOUS_BYTES]) {
  unsigned char random[16];
  char digits[2 * sizeof random + 1];
  RONDO_TRY(rondo_require("rondo_rendezvous_make", "out_rendezvous", out_rendezvous));
  out_rendezvous[0] = '\0';
  if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
    return rondo_fail_errno(RONDO_IO_ERROR, errno, "rondo_rendezvous_make: getrandom failed");
  for (size_t i = 0; i < sizeof random; i++) (void)snprintf(digits + 2 * i, 3, "%02x", random[i]);
  const char *const folder = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
  (void)snprintf(out_rendezvous, RONDO_RENDEZVOUS_BYTES, "%s/rondo-%s", folder, digits);
  return RONDO_OK;
}
