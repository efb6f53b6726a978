/* SPDX-License-Identifier: MIT
 * The files of the cache. A file holds a header, the source, the code and the findings. Its name is a hash of
 * everything that the code depends on; if two sources have the same name, the later file replaces the earlier one.
 * Threads and processes: any.
 */
#define _GNU_SOURCE
#include "device/cuda/cuda_kernel_cache.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/error.h"
#include "base/files/file_limit.h"
#include "base/hash.h"
#include "base/log.h"

/* A file's first bytes. */
typedef struct file_header {
  char magic[8];
  uint64_t source_bytes;
  uint32_t compiler_version, major, minor;
  uint32_t finding_count;
  uint64_t code_bytes;
  uint64_t hash; /* of the code and the findings */
} file_header;

/* Another one for each change of this format, or of what ptx_examine finds. */
static const char magic[8] = "rondocu2";
static const char suffix[] = ".cubin";

enum { MAX_CODE_BYTES = 64 << 20, MAX_FINDINGS = 1 << 16 };

void cuda_compiled_free(const rondo_allocator *allocator, cuda_compiled *compiled) {
  rondo_release(allocator, compiled->code.bytes, compiled->code.count, 1);
  rondo_array_free(allocator, &compiled->findings);
  compiled->code = (cuda_code){0};
}

static void complain(const char *what, const char *path) {
  rondo_log(RONDO_LOG_WARNING, "cuda", "the cache of compiled kernels: %s %s: %s", path, what, strerror(errno));
}

/* Folders ---------------------------------------------------------------------------------------------------------- */

/* False if the cache is turned off, or if no folder is known, as in a program with raised privileges. */
static bool find_folder(char *out, size_t bytes) {
  const char *given = rondo_option_text(RONDO_OPTION_CUDA_CACHE), *base = secure_getenv("XDG_CACHE_HOME");
  const char *home = secure_getenv("HOME");
  int length = -1;
  if (strcmp(given, "none") == 0) return false;
  if (given[0] != '\0')
    length = snprintf(out, bytes, "%s", given);
  else if (base != NULL && base[0] == '/')
    length = snprintf(out, bytes, "%s/rondo", base);
  else if (home != NULL && home[0] == '/')
    length = snprintf(out, bytes, "%s/.cache/rondo", home);
  return length > 0 && (size_t)length < bytes;
}

/* Writes the name of the file with the code of `key`. */
static void name_file(const cuda_cache_key *key, char out[NAME_MAX + 1]) {
  uint64_t hash = rondo_hash_u64(RONDO_HASH_START, (uint64_t)key->compiler_version);
  hash = rondo_hash_u64(hash, (uint64_t)key->major * 1000 + (uint64_t)key->minor);
  hash = rondo_hash_text(hash, key->source);
  (void)snprintf(out, NAME_MAX + 1, "%016" PRIx64 "%s", hash, suffix);
}

/* Trust ------------------------------------------------------------------------------------------------------------ */

/* Warns, but does not repeat a warning for each kernel. */
static void distrust(const char *folder, const char *name, const char *reason) {
  static atomic_uint_least64_t last;
  const uint64_t path = rondo_hash_text(rondo_hash_text(RONDO_HASH_START, folder), name);
  const uint64_t hash = rondo_hash_text(path, reason);
  if (atomic_exchange(&last, hash) == hash) return;
  rondo_log(RONDO_LOG_WARNING, "cuda", "the cache of compiled kernels: %s%s%s is not used: %s", folder,
            name[0] != '\0' ? "/" : "", name, reason);
}

/* Code from the cache runs with the rights of this process, so only this user and root may have written it. `name` is
 * "" for the folder itself. */
static bool is_trusted(int descriptor, const char *folder, const char *name) {
  struct stat info;
  char reason[128];
  if (fstat(descriptor, &info) != 0) {
    complain("cannot be examined", folder);
    return false;
  }
  if (info.st_uid != 0 && info.st_uid != geteuid())
    (void)snprintf(reason, sizeof reason, "it belongs to user %ld, and this process runs as user %ld",
                   (long)info.st_uid, (long)geteuid());
  else if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    (void)snprintf(reason, sizeof reason, "other users may write to it (mode %04o); remove that right by chmod go-w",
                   (unsigned)info.st_mode & 07777);
  else
    return true;
  distrust(folder, name, reason);
  return false;
}

/* Opens the folder. -1 if it does not exist or is not trusted, which is logged. */
static int open_folder(const char *path) {
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || is_trusted(folder, path, "")) return folder;
  (void)close(folder); /* nothing was written to it */
  return -1;
}

/* What the file of the key begins with, up to finding_count. */
static file_header header_of(const cuda_cache_key *key) {
  static_assert(sizeof(file_header) == 48, "written as it is: no gaps");
  static_assert(sizeof(ptx_finding) == 104, "likewise");
  assert(key->compiler_version > 0 && key->source != NULL);
  file_header header = {.compiler_version = (uint32_t)key->compiler_version,
                        .major = (uint32_t)key->major,
                        .minor = (uint32_t)key->minor,
                        .source_bytes = strlen(key->source)};
  memcpy(header.magic, magic, sizeof magic);
  return header;
}

static uint64_t hash_of(const cuda_compiled *compiled) {
  const uint64_t hash = rondo_hash_bytes(RONDO_HASH_START, compiled->code.bytes, compiled->code.count);
  return rondo_hash_bytes(hash, compiled->findings.items, compiled->findings.count * sizeof(ptx_finding));
}

/* Reading ---------------------------------------------------------------------------------------------------------- */

static bool read_all(int file, void *bytes, size_t count) {
  for (size_t done = 0; done < count;) {
    const ssize_t got = read(file, (char *)bytes + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

/* Whether these bytes come next in the file. */
static bool holds(int file, const char *bytes, size_t count) {
  char piece[4096];
  for (size_t done = 0; done < count;) {
    const size_t next = count - done < sizeof piece ? count - done : sizeof piece;
    if (!read_all(file, piece, next) || memcmp(piece, bytes + done, next) != 0) return false;
    done += next;
  }
  return true;
}

/* Reads into memory of these sizes, which is zeroed. */
static bool read_compiled(int file, const file_header *header, cuda_compiled *out) {
  ptx_findings *findings = &out->findings;
  if (!read_all(file, out->code.bytes, out->code.count)) return false;
  if (!read_all(file, findings->items, header->finding_count * sizeof(ptx_finding))) return false;
  findings->count = header->finding_count;
  return hash_of(out) == header->hash;
}

static bool read_file(int file, const rondo_allocator *allocator, const cuda_cache_key *key, cuda_compiled *out) {
  file_header header;
  const file_header wanted = header_of(key);
  if (!read_all(file, &header, sizeof header)) return false;
  if (memcmp(&header, &wanted, offsetof(file_header, finding_count)) != 0) return false;
  if (header.code_bytes == 0 || header.code_bytes > MAX_CODE_BYTES || header.finding_count > MAX_FINDINGS) return false;
  if (!holds(file, key->source, header.source_bytes)) return false;
  if (rondo_allocate_items(allocator, header.code_bytes, 1, &out->code.bytes) != RONDO_OK) return false;
  out->code.count = header.code_bytes;
  const bool is_whole = rondo_array_reserve(allocator, &out->findings, header.finding_count) == RONDO_OK &&
                        read_compiled(file, &header, out);
  if (!is_whole) cuda_compiled_free(allocator, out);
  return is_whole;
}

/* Opens the file for reading. -1 if it does not exist or is not trusted. A FIFO must not make this wait. */
static int open_file(int folder, const char *path, const char *name) {
  const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 || is_trusted(file, path, name)) return file;
  (void)close(file); /* it was read only */
  return -1;
}

bool cuda_cache_find(const rondo_allocator *allocator, const cuda_cache_key *key, cuda_compiled *out) {
  char path[PATH_MAX], name[NAME_MAX + 1];
  *out = (cuda_compiled){0};
  const int folder = find_folder(path, sizeof path) ? open_folder(path) : -1;
  if (folder < 0) return false;
  name_file(key, name);
  const int file = open_file(folder, path, name);
  (void)close(folder); /* it was read only */
  if (file < 0) return false;
  const bool is_found = read_file(file, allocator, key, out);
  if (is_found && futimens(file, NULL) != 0) complain("keeps its time of use", path);
  (void)close(file); /* it was read only */
  return is_found;
}

/* Size ------------------------------------------------------------------------------------------------------------- */

/* The total size of the files, and the oldest file. */
typedef struct survey {
  uint64_t bytes;
  char oldest[NAME_MAX + 1]; /* "" when there is none */
  struct timespec oldest_time;
} survey;

static bool is_older(struct timespec a, struct timespec b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

static void count_file(int folder, const char *name, survey *out) {
  struct stat stat;
  if (strstr(name, suffix) == NULL) return; /* a file that was never renamed counts too */
  if (fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(stat.st_mode)) return;
  out->bytes += (uint64_t)stat.st_size;
  if (out->oldest[0] != '\0' && !is_older(stat.st_mtim, out->oldest_time)) return;
  (void)snprintf(out->oldest, sizeof out->oldest, "%s", name);
  out->oldest_time = stat.st_mtim;
}

static survey survey_folder(DIR *folder) {
  survey all = {0};
  rewinddir(folder);
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
    count_file(dirfd(folder), entry->d_name, &all);
  return all;
}

/* A file that another process removed is not counted. False if the file cannot be removed. */
static bool evict(int folder, const char *name, size_t *evicted) {
  const bool is_done = unlinkat(folder, name, 0) == 0;
  *evicted += is_done;
  return is_done || errno == ENOENT;
}

/* Removes the least recently used files until the others fit. Returns how many it removed. Closes `descriptor`. */
static size_t keep_to_bound(int descriptor, const char *path) {
  const uint64_t bound = rondo_option_number(RONDO_OPTION_CUDA_CACHE_BYTES);
  size_t evicted = 0;
  DIR *folder = fdopendir(descriptor);
  if (folder == NULL) {
    (void)close(descriptor); /* the file in it is whole */
    return 0;
  }
  survey all = survey_folder(folder);
  while (all.bytes > bound && all.oldest[0] != '\0') {
    if (!evict(dirfd(folder), all.oldest, &evicted)) {
      complain("cannot be made smaller", path);
      break;
    }
    all = survey_folder(folder);
  }
  (void)closedir(folder);
  if (evicted > 0)
    rondo_log(
        RONDO_LOG_INFO, "cuda",
        "the cache of compiled kernels: %zu files were removed from %s, which exceeded RONDO_CUDA_CACHE_BYTES (%" PRIu64
        ")",
        evicted, path, bound);
  return evicted;
}

/* Writing ---------------------------------------------------------------------------------------------------------- */

static bool write_all(int file, const void *bytes, size_t count) {
  for (size_t done = 0; done < count;) {
    const ssize_t wrote = write(file, (const char *)bytes + done, count - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    done += (size_t)wrote;
  }
  return true;
}

/* Makes the folder and those above it. Only their owner may enter the folders that this makes. */
static bool make_folders(const char *path) {
  char part[PATH_MAX];
  const size_t length = strlen(path);
  for (size_t i = 1; i <= length; i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    memcpy(part, path, i);
    part[i] = '\0';
    if (mkdir(part, 0700) != 0 && errno != EEXIST) return false;
  }
  return true;
}

static bool write_file(int folder, const char *name, const cuda_cache_key *key, const cuda_compiled *compiled) {
  const size_t findings_bytes = compiled->findings.count * sizeof(ptx_finding);
  file_header header = header_of(key);
  header.code_bytes = compiled->code.count;
  header.finding_count = (uint32_t)compiled->findings.count;
  header.hash = hash_of(compiled);
  if (rondo_file_limit_forbids(sizeof header + header.source_bytes + header.code_bytes + findings_bytes)) {
    errno = EFBIG; /* SIGXFSZ would end the process */
    return false;
  }
  const int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool is_written = write_all(file, &header, sizeof header) &&
                          write_all(file, key->source, header.source_bytes) &&
                          write_all(file, compiled->code.bytes, compiled->code.count) &&
                          write_all(file, compiled->findings.items, findings_bytes);
  return close(file) == 0 && is_written;
}

/* Writes the file under another name first, so that nobody reads an incomplete file. */
static bool replace_file(int folder, const cuda_cache_key *key, const cuda_compiled *compiled) {
  static atomic_uint serial;
  char name[NAME_MAX + 1], temporary[2 * NAME_MAX];
  name_file(key, name);
  (void)snprintf(temporary, sizeof temporary, "%s.%ld-%u", name, (long)getpid(), atomic_fetch_add(&serial, 1));
  if (write_file(folder, temporary, key, compiled) && renameat(folder, temporary, folder, name) == 0) return true;
  const int reason = errno;
  (void)unlinkat(folder, temporary, 0); /* it may not be there */
  errno = reason;
  return false;
}

size_t cuda_cache_put(const cuda_cache_key *key, const cuda_compiled *compiled) {
  char path[PATH_MAX];
  if (compiled->code.count > MAX_CODE_BYTES || compiled->findings.count > MAX_FINDINGS) return 0;
  if (!find_folder(path, sizeof path)) return 0;
  if (!make_folders(path)) {
    complain("cannot be made", path);
    return 0;
  }
  const int folder = open_folder(path);
  if (folder < 0) return 0;
  if (!replace_file(folder, key, compiled)) {
    complain("cannot be written to", path);
    (void)close(folder); /* the failure is logged */
    return 0;
  }
  return keep_to_bound(folder, path);
}
