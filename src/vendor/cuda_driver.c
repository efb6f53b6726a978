/* SPDX-License-Identifier: MIT
 * Loads the driver. Only cuGetProcAddress is found by name. It returns the functions of cuda_driver_symbols.h, each at
 * a fixed version. After loading, everything is constant.
 */
#include "vendor/cuda_driver.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "vendor/library_loader.h"

/* One row of the table; `offset` is the offset of its pointer in cuda_api. */
typedef struct symbol_row {
  const char *name;
  int version;
  bool is_required;
  size_t offset;
} symbol_row;

static const symbol_row rows[] = {
#define required(member, symbol, version, arguments) {#symbol, version, true, offsetof(cuda_api, member)},
#define optional(member, symbol, version, arguments) {#symbol, version, false, offsetof(cuda_api, member)},
#include "vendor/cuda_driver_symbols.h"
#undef required
#undef optional
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static const char *const entry_symbols[] = {"cuGetProcAddress_v2"};

/* The only function that is found by name. */
static cu_result (*get_address)(const char *symbol, void **out, int version, uint64_t flags, int *found);
static cuda_api api;

const char *cuda_code_name(const cuda_api *of, cu_result code) {
  const char *name = NULL;
  return of->get_error_name(code, &name) == CU_OK && name != NULL ? name : "CUDA_ERROR_UNKNOWN";
}

static rondo_status find_symbols(const char *path) {
  for (size_t i = 0; i < ROW_COUNT; i++) {
    int state;
    void *address = NULL;
    const cu_result code = get_address(rows[i].name, &address, rows[i].version, CU_PROC_ADDRESS_DEFAULT, &state);
    if ((code != CU_OK || address == NULL) && rows[i].is_required)
      return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER,
                        "%s lacks %s of version %d.%d: a CUDA driver of 12.4 (550) or newer is needed", path,
                        rows[i].name, rows[i].version / 1000, rows[i].version % 1000 / 10);
    if (code == CU_OK) memcpy((char *)&api + rows[i].offset, &address, sizeof address);
  }
  return RONDO_OK;
}

static rondo_status fail_code(cu_result code, const char *path, const char *what) {
  return rondo_fail_driver(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, (int32_t)code, cuda_code_name(&api, code),
                           "the CUDA driver %s %s", path, what);
}

static rondo_status initialize(const rondo_dylib *file) {
  RONDO_TRY(find_symbols(file->path));
  cu_result code = api.init(0);
  if (code != CU_OK) return fail_code(code, file->path, "cannot be initialised");
  code = api.driver_get_version(&api.version);
  if (code == CU_OK && api.version < CUDA_OLDEST_DRIVER)
    return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER,
                      "the CUDA driver %s is of version %d.%d: 12.4 (550) or newer is needed", file->path,
                      api.version / 1000, api.version % 1000 / 10);
  if (code == CU_OK) code = api.device_get_count(&api.device_count);
  if (code == CU_OK && api.device_count == 0) code = CU_NO_DEVICE;
  return code == CU_OK ? RONDO_OK : fail_code(code, file->path, "has no device");
}

static rondo_library driver = {
    .name = "CUDA",
    .purpose = "CUDA devices",
    .needed = "a CUDA driver of 12.4 (550) or newer",
    .missing = "no CUDA driver (install NVIDIA's of 12.4 (550) or newer, or name it by RONDO_CUDA_LIBRARY)",
    .option = RONDO_OPTION_CUDA_LIBRARY,
    .usual = {"libcuda.so.1"},
    RONDO_LIBRARY_FUNCTIONS(entry_symbols, get_address),
    .accept = initialize,
    .stays_loaded = true,
    .search = PTHREAD_MUTEX_INITIALIZER};

rondo_status cuda_library_get(const cuda_api **out) {
  const rondo_status status = rondo_library_require(&driver);
  assert(status != RONDO_OK || (api.device_count > 0 && api.version >= CUDA_OLDEST_DRIVER));
  *out = status == RONDO_OK ? &api : NULL;
  return status;
}

const char *cuda_library_why(const cuda_api **out) {
  rondo_status_ignore(cuda_library_get(out), "the caller reports it");
  return driver.failure.message;
}
