/* SPDX-License-Identifier: MIT
 * The CUDA driver's library: found and initialised once in the life of the process, at the first question for it, and
 * never unloaded (the driver does not survive that). What went wrong is kept and said each time. Threads: any.
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

/* Errors: UNAVAILABLE with NO_DRIVER: no library (each candidate's own error in the message), one that is too old or
 * lacks a function, or no device; the driver's own code where it has one. */
RONDO_MUST_USE rondo_status cuda_library_get(const cuda_api **out);

/* The same in words, which stay, for who asks whether there is one: "" where there is; *out is NULL where not. */
const char *cuda_library_why(const cuda_api **out);

/* The driver's name of a code, "CUDA_ERROR_..."; "CUDA_ERROR_UNKNOWN" when it does not know it. */
const char *cuda_code_name(const cuda_api *api, cu_result code);

#endif
