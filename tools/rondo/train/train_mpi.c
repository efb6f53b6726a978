/* SPDX-License-Identifier: MIT
 * The component stays loaded: MPI does not survive being unloaded. Its functions are visible to libraries that are
 * loaded later, because plugins of OpenMPI look for MPI's that way.
 */
#include "train/train_mpi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/tool.h"

static int find_functions(void *library, train_mpi *out) {
  const struct {
    const char *name;
    void *to;
  } all[] = {{"rondo_mpi_begin", &out->begin},
             {"rondo_communicator_from_mpi_world", &out->communicator},
             {"rondo_mpi_end", &out->end},
             {"rondo_mpi_abort", &out->abort}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    void *const found = dlsym(library, all[i].name);
    if (!found) return tool_fail("%s: it has no %s: name a component rondo-mpi with --mpi", out->path, all[i].name);
    memcpy(all[i].to, &found, sizeof found);
  }
  return TOOL_OK;
}

/* Returns NULL and adds the reason to `why`. */
static void *open_library(const char *path, char *why, size_t bytes, train_mpi *out) {
  const size_t length = strlen(why);
  snprintf(out->path, sizeof out->path, "%s", path);
  void *const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!library) snprintf(why + length, bytes - length, "%s%s", length > 0 ? "; " : "", dlerror());
  return library;
}

int train_mpi_load(const char *path, const launcher *started, train_mpi *out) {
  char own[64], why[400] = "";
  void *library = NULL;
  if (path) {
    library = open_library(path, why, sizeof why, out);
  } else {
    snprintf(own, sizeof own, "librondo_mpi_%s.so", started->mpi);
    if (started->mpi[0]) library = open_library(own, why, sizeof why, out);
    if (!library) library = open_library("librondo_mpi.so." RONDO_TOOL_ABI, why, sizeof why, out);
  }
  if (library) return find_functions(library, out);
  return tool_fail("no component rondo-mpi for %s: %s: install it, or name it with --mpi FILE", started->name, why);
}
