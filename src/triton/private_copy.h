/* SPDX-License-Identifier: MIT
 * Shared objects loaded from copies of their files. The loader gives a path, or a file, that is loaded already the code
 * that it has; and a file that is written while its code runs takes the process down. With a copy of its own, each load
 * gets what the file has now.
 */
#ifndef RONDO_TRITON_PRIVATE_COPY_H
#define RONDO_TRITON_PRIVATE_COPY_H

#include "base/error.h"

/* Copies the file into the folder TMPDIR (or /tmp), loads the copy, and removes it. The caller closes *out with
 * dlclose. Errors: IO_ERROR (with errno); UNAVAILABLE/NONE (it does not load). */
RONDO_MUST_USE rondo_status rondo_triton_load_copy(const char *path, void **out);

#endif
