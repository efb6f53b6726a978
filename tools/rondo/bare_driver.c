/* SPDX-License-Identifier: MIT
 * Finding the driver's and the compiler's functions.
 */
#include "bare_driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* The first of the named libraries that opens, or of the usual ones when no name is given; NULL when none does. */
static void *open_library(const char *variable, const char *const *usual) {
  const char *given = getenv(variable);
  void *library = NULL;
  if (given && given[0]) return dlopen(given, RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; usual[i] && !library; i++) library = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

/* Driver ---------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *symbol;
  int version;
  size_t offset;
} rows[] = {
#define BARE_ROW(member, symbol, version, arguments) {symbol, version, offsetof(bare_driver, member)},
    BARE_FUNCTIONS(BARE_ROW)
#undef BARE_ROW
};

typedef int (*get_address_function)(const char *symbol, void **out, int version, uint64_t flags, int *found);

int bare_driver_load(bare_driver *out) {
  static const char *const usual[] = {"libcuda.so.1", NULL};
  void *library = open_library("RONDO_CUDA_LIBRARY", usual);
  void *found = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
  get_address_function get_address;
  if (!found) return tool_fail("the CUDA driver cannot be had without Rondo: %s", dlerror());
  memcpy(&get_address, &found, sizeof get_address);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    int state;
    void *address = NULL;
    if (get_address(rows[i].symbol, &address, rows[i].version, 0, &state) || !address)
      return tool_fail("the CUDA driver lacks %s", rows[i].symbol);
    memcpy((char *)out + rows[i].offset, &address, sizeof address);
  }
  return out->init(0) ? tool_fail("the CUDA driver does not start") : TOOL_OK;
}

/* Compiler -------------------------------------------------------------------------------------------------------- */

typedef struct nvrtc_program_ *nvrtc_program;

typedef struct nvrtc_functions {
  int (*create)(nvrtc_program *program, const char *source, const char *name, int header_count,
                const char *const *headers, const char *const *header_names);
  int (*compile)(nvrtc_program program, int count, const char *const *options);
  int (*code_bytes)(nvrtc_program program, size_t *bytes);
  int (*code)(nvrtc_program program, char *code);
  int (*destroy)(nvrtc_program *program);
} nvrtc_functions;

static bool find_function(void *library, const char *symbol, void *out) {
  void *found = dlsym(library, symbol);
  memcpy(out, &found, sizeof found);
  return found;
}

static bool load_compiler(nvrtc_functions *out) {
  static const char *const usual[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
  void *library = open_library("RONDO_NVRTC_LIBRARY", usual);
  return library && find_function(library, "nvrtcCreateProgram", &out->create) &&
         find_function(library, "nvrtcCompileProgram", &out->compile) &&
         find_function(library, "nvrtcGetCUBINSize", &out->code_bytes) &&
         find_function(library, "nvrtcGetCUBIN", &out->code) &&
         find_function(library, "nvrtcDestroyProgram", &out->destroy);
}

/* NULL when it does not compile. */
static char *compile(const nvrtc_functions *nvrtc, nvrtc_program program, int major, int minor) {
  char architecture[48];
  const char *const options[] = {architecture};
  size_t bytes = 0;
  snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", major, minor);
  if (nvrtc->compile(program, 1, options) || nvrtc->code_bytes(program, &bytes)) return NULL;
  char *image = malloc(bytes);
  if (!image || !nvrtc->code(program, image)) return image;
  free(image);
  return NULL;
}

int bare_compile(const char *source, int major, int minor, char **out_image) {
  nvrtc_functions nvrtc;
  nvrtc_program program;
  *out_image = NULL;
  if (!load_compiler(&nvrtc)) return tool_fail("there is no NVRTC to compile a kernel with");
  if (nvrtc.create(&program, source, NULL, 0, NULL, NULL)) return tool_fail("NVRTC takes no program");
  *out_image = compile(&nvrtc, program, major, minor);
  (void)nvrtc.destroy(&program);
  return *out_image ? TOOL_OK : tool_fail("NVRTC does not compile an empty kernel");
}
