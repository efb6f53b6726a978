/* SPDX-License-Identifier: MIT
 * The version of the library, and the macros of every public declaration. */
#ifndef RONDO_VERSION_H
#define RONDO_VERSION_H

#define RONDO_VERSION_MAJOR 0
#define RONDO_VERSION_MINOR 2
#define RONDO_VERSION_PATCH 0
#define RONDO_VERSION_STRING "0.2.0"

#ifdef __cplusplus
#define RONDO_EXTERN_C_BEGIN extern "C" {
#define RONDO_EXTERN_C_END }
#else
#define RONDO_EXTERN_C_BEGIN
#define RONDO_EXTERN_C_END
#endif

/* RONDO_API marks what the shared library exports; everything else is hidden. */
#if defined(__GNUC__)
#define RONDO_API __attribute__((visibility("default")))
#define RONDO_MUST_USE __attribute__((warn_unused_result))
#define RONDO_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#else
#define RONDO_API
#define RONDO_MUST_USE
#define RONDO_PRINTF(format_index, first_argument)
#endif

RONDO_EXTERN_C_BEGIN

/* The version of the library that is running, "0.2.0"; compare with RONDO_VERSION_STRING, the version of the headers.
 * The string lives as long as the library. Thread-safe. */
RONDO_API const char *rondo_version(void);

RONDO_EXTERN_C_END

#endif
