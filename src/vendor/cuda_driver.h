/* SPDX-License-Identifier: MIT
 * The CUDA driver library. It is found and initialised once for each process, at the first request. It is never
 * unloaded, because the driver does not survive that. A failure is kept and reported each time. Threads: any.
 */
#ifndef RONDO_VENDOR_CUDA_DRIVER_H
#define RONDO_VENDOR_CUDA_DRIVER_H

#include <rondo/kernel.h>

#include "vendor/cuda_driver_abi.h"

/* The driver's functions, by the names of cuda_driver_symbols.h. An optional one may be NULL. */
typedef struct cuda_api {
#define required(member, symbol, version, arguments) cu_result(*member) arguments;
#define optional(member, symbol, version, arguments) cu_result(*member) arguments;
#include "vendor/cuda_driver_symbols.h"
#undef required
#undef optional
  int version;      /* of the driver: 12040 is 12.4 */
  int device_count; /* at least 1 */
} cuda_api;

enum { CUDA_OLDEST_DRIVER = 12040 };

/* Errors: UNAVAILABLE with NO_DRIVER if there is no library (the message has the error of each candidate), it is too
 * old or lacks a function, or there is no device. The message has the driver's own code if there is one. */
RONDO_MUST_USE rondo_status cuda_library_get(const cuda_api **out);

/* The same as text, which stays valid: why there is no driver. "" if there is one; *out is NULL if there is none. */
const char *cuda_library_why(const cuda_api **out);

/* The driver's name of a code, "CUDA_ERROR_..."; "CUDA_ERROR_UNKNOWN" when it does not know it. */
const char *cuda_code_name(const cuda_api *api, cu_result code);

#endif
