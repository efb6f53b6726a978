/* SPDX-License-Identifier: MIT
 * NumPy's files of one array, .npy (numpy.org: "numpy.lib.format"), of the versions 1 to 3. A file has a header, which
 * is the literal of a Python dictionary with the type, the order and the shape, and the elements.
 *
 * Little-endian numbers of the types that programs have, and of F64, are read; integers of other types become I32 or
 * I64. Arrays in Fortran order are transposed.
 * Everything else is refused with a message that says how NumPy converts it. Files are written in version 1 and C
 * order; NumPy has no BF16, which is written as F32, and no floats of 8 bits, which are written as bytes ('|V1').
 */
#ifndef RONDO_TOOL_NPY_FILE_H
#define RONDO_TOOL_NPY_FILE_H

#include "common/host_tensor.h"

/* Read a file, or its bytes, which messages call `name`. Return TOOL_OK, or TOOL_FAILURE after a message. */
int npy_read(const char *path, host_tensor *out);
int npy_parse(const char *name, const unsigned char *bytes, size_t count, host_tensor *out);

/* Writes a file with rondo_file_write. Returns the same as npy_read. */
int npy_write(const char *path, const host_tensor *tensor);

#endif
