/* SPDX-License-Identifier: MIT
 * Reading one safetensors file, which may be one of an index.
 */
#ifndef RONDO_TENSOR_FILES_SAFETENSORS_READ_H
#define RONDO_TENSOR_FILES_SAFETENSORS_READ_H

#include "tensor/files/safetensors_index.h"

/* Reads the requested tensors of a mapped file into an empty set, which then owns the mapping, and names them by the
 * rules of the options. With an index, the file is called `name` in it, and the index says what is requested. Errors:
 * as rondo_weights_load. */
RONDO_MUST_USE rondo_status rondo_safetensors_read_file(rondo_file_mapping *mapping,
                                                        const rondo_safetensors_index *index, const char *name,
                                                        const rondo_weights_options *options, rondo_weights *weights);

#endif
