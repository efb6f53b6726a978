/* SPDX-License-Identifier: MIT
 * Loads NVRTC and compiles kernels with it.
 */
#include "vendor/nvrtc.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "vendor/library_loader.h"

typedef struct nvrtc_program_ *nvrtc_program;

/* ROW(result, member, symbol, (arguments)); an int is a result code, 0 on success. */
/* clang-format off */
#define NVRTC_FUNCTIONS(ROW)                                                                          \
  ROW(int, version, nvrtcVersion, (int *major, int *minor))                                         \
  ROW(const char *, error_name, nvrtcGetErrorString, (int code))                                    \
  ROW(int, create, nvrtcCreateProgram,                                                              \
      (nvrtc_program *program, const char *source, const char *name, int header_count,                \
       const char *const *headers, const char *const *header_names))                                  \
  ROW(int, compile, nvrtcCompileProgram, (nvrtc_program program, int count, const char *const *options)) \
  ROW(int, destroy, nvrtcDestroyProgram, (nvrtc_program *program))                                  \
  ROW(int, log_bytes, nvrtcGetProgramLogSize, (nvrtc_program program, size_t *bytes))               \
  ROW(int, log, nvrtcGetProgramLog, (nvrtc_program program, char *log))                             \
  ROW(int, code_bytes, nvrtcGetCUBINSize, (nvrtc_program program, size_t *bytes))                   \
  ROW(int, code, nvrtcGetCUBIN, (nvrtc_program program, char *code))                                \
  ROW(int, ptx_bytes, nvrtcGetPTXSize, (nvrtc_program program, size_t *bytes))                      \
  ROW(int, ptx, nvrtcGetPTX, (nvrtc_program program, char *ptx))
/* clang-format on */

/* nvrtcResult: the option is invalid. */
enum { NVRTC_INVALID_OPTION = 5 };

typedef struct nvrtc_api {
  NVRTC_FUNCTIONS(RONDO_LIBRARY_MEMBER)
} nvrtc_api;

static const char *const symbols[] = {NVRTC_FUNCTIONS(RONDO_LIBRARY_NAME)};
static nvrtc_api api;
static int compiler_version;

static rondo_status read_version(const rondo_dylib *file) {
  int major = 0, minor = 0;
  if (api.version(&major, &minor) != 0)
    return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, "%s does not report its version", file->path);
  compiler_version = major * 1000 + minor * 10;
  return RONDO_OK;
}

static rondo_library compiler = {
    .name = "NVRTC",
    .purpose = "compiling kernels for CUDA devices",
    .needed = "NVRTC of CUDA 12 or 13",
    .missing = "NVRTC, which compiles kernels, was not found (install it, or set RONDO_NVRTC_LIBRARY)",
    .option = RONDO_OPTION_NVRTC_LIBRARY,
    .usual = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
    RONDO_LIBRARY_FUNCTIONS(symbols, api),
    .accept = read_version,
    .search = PTHREAD_MUTEX_INITIALIZER};

rondo_status cuda_compiler_version(int *out) {
  RONDO_TRY(rondo_library_require(&compiler));
  assert(compiler_version > 0);
  *out = compiler_version;
  return RONDO_OK;
}

/* Copies as much of the compiler's log as fits. The first errors are at its beginning. */
static void read_log(const rondo_allocator *allocator, nvrtc_program program, char *out, size_t bytes) {
  size_t whole = 0;
  char *log = NULL;
  out[0] = '\0';
  if (api.log_bytes(program, &whole) != 0 || whole == 0) return;
  if (rondo_allocate_items(allocator, whole, 1, &log) != RONDO_OK)
    return; /* the compiler's error is reported, not this one */
  if (api.log(program, log) == 0) (void)snprintf(out, bytes, "%s", log);
  rondo_release(allocator, log, whole, 1);
}

/* An invalid option can only be the GPU's architecture: all releases know the other options. */
static rondo_status fail_compile(const rondo_allocator *allocator, nvrtc_program program, const char *name,
                                 const char *architecture, int code) {
  char log[RONDO_ERROR_MESSAGE_BYTES];
  const char *code_name = api.error_name(code);
  read_log(allocator, program, log, sizeof log);
  if (code == NVRTC_INVALID_OPTION)
    return rondo_fail_driver(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, code, code_name,
                             "kernel '%s': %s of version %d.%d does not support %s of this GPU: install a newer NVRTC, "
                             "or set RONDO_NVRTC_LIBRARY",
                             name, compiler.file.path, compiler_version / 1000, compiler_version % 1000 / 10,
                             architecture);
  return rondo_fail_driver(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, code, code_name,
                           "the CUDA source of kernel '%s' does not compile:\n%s", name, log);
}

static rondo_status take_code(const rondo_allocator *allocator, nvrtc_program program, const char *name,
                              cuda_code *out) {
  size_t bytes = 0;
  void *memory = NULL;
  int code = api.code_bytes(program, &bytes);
  if (code == 0 && bytes > 0) {
    RONDO_TRY(rondo_allocate(allocator, bytes, 1, &memory));
    code = api.code(program, memory);
    if (code == 0) {
      *out = (cuda_code){memory, bytes};
      return RONDO_OK;
    }
    rondo_release(allocator, memory, bytes, 1);
  }
  return rondo_fail_driver(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, code, api.error_name(code),
                           "NVRTC returned no code for kernel '%s'", name);
}

/* The code was made of it, so its absence is no failure. */
static rondo_status take_ptx(const rondo_allocator *allocator, nvrtc_program program, cuda_code *out) {
  size_t bytes = 0;
  char *text;
  if (api.ptx_bytes(program, &bytes) != 0 || bytes == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(allocator, bytes, 1, &text));
  if (api.ptx(program, text) == 0)
    *out = (cuda_code){text, bytes};
  else
    rondo_release(allocator, text, bytes, 1);
  return RONDO_OK;
}

static rondo_status take_all(const rondo_allocator *allocator, nvrtc_program program, const char *name, cuda_code *out,
                             cuda_code *out_ptx) {
  RONDO_TRY(take_code(allocator, program, name, out));
  const rondo_status status = take_ptx(allocator, program, out_ptx);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_release(allocator, out->bytes, out->count, 1);
  *out = (cuda_code){0};
  return status;
}

rondo_status cuda_compile(const rondo_allocator *allocator, const char *name, const char *source, int major, int minor,
                          cuda_code *out, cuda_code *out_ptx) {
  char architecture[48];
  nvrtc_program program = NULL;
  assert(name[0] != '\0' && source[0] != '\0');
  *out = *out_ptx = (cuda_code){0};
  RONDO_TRY(rondo_library_require(&compiler));
  (void)snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", major, minor);
  const char *const options[] = {architecture, "--std=c++17"};
  int code = api.create(&program, source, name, 0, NULL, NULL);
  if (code != 0)
    return rondo_fail_driver(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED, code, api.error_name(code),
                             "NVRTC could not make a program for kernel '%s'", name);
  code = api.compile(program, 2, options);
  const rondo_status status = code != 0 ? fail_compile(allocator, program, name, architecture, code)
                                        : take_all(allocator, program, name, out, out_ptx);
  (void)api.destroy(&program); /* it exists, so this cannot fail */
  return status;
}
