/* SPDX-License-Identifier: MIT
 * Loads the functions of the driver and the compiler. It calls dlopen itself because the loader in src/vendor is
 * internal, and because a baseline must not depend on what it is compared with.
 */
#define _GNU_SOURCE
#include "bench/bare_driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

/* Opens the first library that loads: the one that the variable names or, without a name, the usual ones. NULL if none
 * loads. */
static void *open_library(const char *variable, const char *const *usual) {
  const char *given = secure_getenv(variable);
  void *library = NULL;
  if (given && given[0]) return dlopen(given, RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; usual[i] && !library; i++) library = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

/* Driver ---------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *symbol;
  int version;
  bool is_required;
  size_t offset;
} rows[] = {
#define REQUIRED(member, symbol, version, arguments) {symbol, version, true, offsetof(bare_driver, member)},
#define OPTIONAL(member, symbol, version, arguments) {symbol, version, false, offsetof(bare_driver, member)},
    BARE_FUNCTIONS(REQUIRED) BARE_OPTIONAL_FUNCTIONS(OPTIONAL)
#undef REQUIRED
#undef OPTIONAL
};

typedef int (*get_address_function)(const char *symbol, void **out, int version, uint64_t flags, int *found);

static int load_driver(bare_driver *out) {
  static const char *const usual[] = {"libcuda.so.1", NULL};
  void *library = open_library("RONDO_CUDA_LIBRARY", usual);
  void *found = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
  get_address_function get_address;
  if (!found) return tool_fail("the CUDA driver cannot be loaded: %s", dlerror());
  memcpy(&get_address, &found, sizeof get_address);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    int state;
    void *address = NULL;
    if (get_address(rows[i].symbol, &address, rows[i].version, 0, &state)) address = NULL;
    if (!address && rows[i].is_required) return tool_fail("the CUDA driver lacks %s", rows[i].symbol);
    memcpy((char *)out + rows[i].offset, &address, sizeof address);
  }
  const int code = out->init(0);
  return code ? tool_fail("the CUDA driver failed to initialize: cuInit: error %d", code) : TOOL_OK;
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

static int fail_compiler(const char *function, int code) {
  return tool_fail("NVRTC failed to compile the kernel of the benchmark: %s: error %d", function, code);
}

static int compile(const nvrtc_functions *nvrtc, nvrtc_program program, const char *architecture, char **out_image) {
  const char *const options[] = {architecture};
  size_t bytes = 0;
  int code = nvrtc->compile(program, 1, options);
  if (code) return fail_compiler("nvrtcCompileProgram", code);
  code = nvrtc->code_bytes(program, &bytes);
  if (code) return fail_compiler("nvrtcGetCUBINSize", code);
  char *image = malloc(bytes);
  if (!image) return tool_fail_memory("%zu bytes of machine code", bytes);
  code = nvrtc->code(program, image);
  if (code) {
    free(image);
    return fail_compiler("nvrtcGetCUBIN", code);
  }
  *out_image = image;
  return TOOL_OK;
}

/* The machine code for compute capability major.minor; the caller frees it. */
static int compile_for(const char *source, int major, int minor, char **out_image) {
  nvrtc_functions nvrtc;
  nvrtc_program program;
  char architecture[48];
  *out_image = NULL;
  snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", major, minor);
  if (!load_compiler(&nvrtc))
    return tool_fail("NVRTC, which compiles the kernel, was not found; set RONDO_NVRTC_LIBRARY to its path");
  const int code = nvrtc.create(&program, source, NULL, 0, NULL, NULL);
  if (code) return fail_compiler("nvrtcCreateProgram", code);
  const int result = compile(&nvrtc, program, architecture, out_image);
  (void)nvrtc.destroy(&program);
  return result;
}

/* Device ---------------------------------------------------------------------------------------------------------- */

int bare_check(int code, const char *what) {
  return code ? tool_fail("the CUDA driver without Rondo: %s: error %d", what, code) : TOOL_OK;
}

bool bare_is_cuda(const char *name) {
  return strncmp(name, "cuda", strlen("cuda")) == 0 && (name[4] == ':' || name[4] == '\0');
}

static int load_kernel(bare_device *d, const rondo_kernel_options *kernel) {
  int major = 0, minor = 0;
  char *image;
  int code = d->driver.device_get_attribute(&major, BARE_CAPABILITY_MAJOR, d->device);
  if (!code) code = d->driver.device_get_attribute(&minor, BARE_CAPABILITY_MINOR, d->device);
  if (code) return bare_check(code, "querying the device");
  if (compile_for(kernel->cuda_source, major, minor, &image) != TOOL_OK) return TOOL_FAILURE;
  code = d->driver.module_load(&d->module, image, 0, NULL, NULL);
  if (!code) code = d->driver.module_get_function(&d->kernel, d->module, kernel->name);
  free(image);
  return bare_check(code, "loading a kernel");
}

int bare_device_open(const char *name, const rondo_kernel_options *kernel, bare_device *out) {
  *out = (bare_device){0};
  if (load_driver(&out->driver) != TOOL_OK) return TOOL_FAILURE;
  int code = out->driver.device_get(&out->device, name[4] == ':' ? atoi(name + 5) : 0);
  if (!code) code = out->driver.primary_retain(&out->context, out->device);
  if (!code) code = out->driver.context_set_current(out->context);
  return code ? bare_check(code, "opening a device") : load_kernel(out, kernel);
}

void bare_device_close(bare_device *device) {
  if (!device->context) return;
  if (device->module) (void)device->driver.module_unload(device->module);
  (void)device->driver.context_set_current(NULL);
  (void)device->driver.primary_release(device->device);
  *device = (bare_device){0};
}
