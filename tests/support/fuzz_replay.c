/* SPDX-License-Identifier: MIT
 * A main() for fuzz targets that are built without libFuzzer. It passes the empty input and then every file of the
 * given folders, and every given file, to LLVMFuzzerTestOneInput, in the order of names. Each input has an allocation
 * of exactly its size, so that a sanitizer sees a read past its end. A folder without files is a failure: a missing
 * corpus must not look like a success.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool fail(const char *path, const char *what) {
  fprintf(stderr, "%s: %s\n", path, what);
  return false;
}

static bool read_whole(FILE *file, size_t size, uint8_t **out) {
  *out = malloc(size > 0 ? size : 1);
  return *out != NULL && fread(*out, 1, size, file) == size;
}

static bool replay_file(const char *path, size_t size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return fail(path, strerror(errno));
  uint8_t *data = NULL;
  const bool whole = read_whole(file, size, &data);
  fclose(file);
  if (whole) LLVMFuzzerTestOneInput(data, size);
  free(data);
  return whole || fail(path, "cannot be read whole");
}

static bool replay_path(const char *path, size_t *count);

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static bool replay_folder(const char *path, size_t *count) {
  struct dirent **entries = NULL;
  const int found = scandir(path, &entries, is_visible, alphasort);
  if (found < 0) return fail(path, strerror(errno));
  bool ok = found > 0 || fail(path, "holds no input");
  for (int i = 0; i < found; i++) {
    char child[4096];
    const int length = snprintf(child, sizeof child, "%s/%s", path, entries[i]->d_name);
    const bool fits = length > 0 && (size_t)length < sizeof child;
    ok = (fits ? replay_path(child, count) : fail(path, "has a path that is too long")) && ok;
    free(entries[i]);
  }
  free(entries);
  return ok;
}

static bool replay_path(const char *path, size_t *count) {
  struct stat info;
  if (stat(path, &info) != 0) return fail(path, strerror(errno));
  if (S_ISDIR(info.st_mode)) return replay_folder(path, count);
  *count += 1;
  return replay_file(path, (size_t)info.st_size);
}

int main(int argc, char **argv) {
  size_t count = 0;
  bool ok = argc > 1 || fail(argv[0], "names no folder or file to replay");
  LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
  for (int i = 1; i < argc; i++) ok = replay_path(argv[i], &count) && ok;
  printf("%zu inputs replayed\n", count + 1);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
