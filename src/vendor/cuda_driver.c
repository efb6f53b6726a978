/* SPDX-License-Identifier: MIT
 * Loading the driver: the library named by RONDO_CUDA_LIBRARY, else libcuda.so.1; its one exported entry that has to be
 * found by name, cuGetProcAddress; through that the table of cuda_driver_symbols.h. `once` orders the loading before
 * every use; after it all is constant.
 */
#include "vendor/cuda_driver.h"

#include <pthread.h>
#include <string.h>

#include "base/environment.h"
#include "base/error.h"
#include "base/shared_library.h"

/* One row of the table; `offset` is where its pointer lies in cuda_api. */
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

typedef cu_result (*get_address_fn)(const char *symbol, void **out, int version, uint64_t flags, int *found);

static struct {
  pthread_once_t once;
  rondo_dylib library;
  cuda_api api;
  rondo_saved_error failure; /* status RONDO_OK: there is a driver with a device */
} driver = {.once = PTHREAD_ONCE_INIT};

const char *cuda_code_name(const cuda_api *api, cu_result code) {
  const char *name = NULL;
  return api->get_error_name(code, &name) == CU_OK && name != NULL ? name : "CUDA_ERROR_UNKNOWN";
}

static rondo_status open_library(void) {
  const char *const candidates[] = {rondo_option_text(RONDO_OPTION_CUDA_LIBRARY), "libcuda.so.1"};
  const bool is_named = candidates[0][0] != '\0';
  if (rondo_dylib_open(candidates, is_named ? 1 : 2, &driver.library) == RONDO_OK) return RONDO_OK;
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER,
                    "no CUDA driver (install NVIDIA's of 12.4 (550) or newer, or name it by RONDO_CUDA_LIBRARY): %s",
                    rondo_last_error()->message);
}

static rondo_status find_symbols(void) {
  get_address_fn get_address = NULL;
  void *found = rondo_dylib_symbol(&driver.library, "cuGetProcAddress_v2");
  if (found == NULL)
    return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER,
                      "%s has no cuGetProcAddress_v2: a CUDA driver of 12.4 (550) or newer is needed",
                      driver.library.path);
  memcpy(&get_address, &found, sizeof get_address);
  for (size_t i = 0; i < ROW_COUNT; i++) {
    int state;
    void *address = NULL;
    const cu_result code = get_address(rows[i].name, &address, rows[i].version, CU_PROC_ADDRESS_DEFAULT, &state);
    if ((code != CU_OK || address == NULL) && rows[i].is_required)
      return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER,
                        "%s lacks %s of version %d.%d: a CUDA driver of 12.4 (550) or newer is needed",
                        driver.library.path, rows[i].name, rows[i].version / 1000, rows[i].version % 1000 / 10);
    if (code == CU_OK) memcpy((char *)&driver.api + rows[i].offset, &address, sizeof address);
  }
  return RONDO_OK;
}

static rondo_status initialize(void) {
  cuda_api *api = &driver.api;
  cu_result code = api->init(0);
  if (code != CU_OK)
    return rondo_fail_driver(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, (int32_t)code, cuda_code_name(api, code),
                             "the CUDA driver %s does not start", driver.library.path);
  code = api->driver_get_version(&api->version);
  if (code == CU_OK && api->version < CUDA_OLDEST_DRIVER)
    return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER,
                      "the CUDA driver %s is of version %d.%d: 12.4 (550) or newer is needed", driver.library.path,
                      api->version / 1000, api->version % 1000 / 10);
  if (code == CU_OK) code = api->device_get_count(&api->device_count);
  if (code == CU_OK && api->device_count == 0) code = CU_NO_DEVICE;
  if (code == CU_OK) return RONDO_OK;
  return rondo_fail_driver(RONDO_UNAVAILABLE, RONDO_REASON_NO_DRIVER, (int32_t)code, cuda_code_name(api, code),
                           "the CUDA driver %s shows no device", driver.library.path);
}

/* What goes wrong is told by those who ask. */
static void load(void) {
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status status = open_library();
  if (status == RONDO_OK) status = find_symbols();
  if (status == RONDO_OK) status = initialize();
  if (status != RONDO_OK) rondo_error_save(&driver.failure);
  rondo_error_restore(&before);
}

const char *cuda_library_why(const cuda_api **out) {
  (void)pthread_once(&driver.once, load);
  *out = driver.failure.status == RONDO_OK ? &driver.api : NULL;
  return driver.failure.message;
}

rondo_status cuda_library_get(const cuda_api **out) {
  (void)cuda_library_why(out);
  return rondo_error_raise(&driver.failure);
}
