/* SPDX-License-Identifier: MIT
 * The elements of a set's tensors in the order of their shape and in any float type: tensors that a rule transposes are
 * transposed, repeated elements copied, and floats converted, when they are read (<rondo/weights.h>). Any number of
 * threads may read.
 */
#ifndef RONDO_TENSOR_FILES_WEIGHT_ELEMENTS_H
#define RONDO_TENSOR_FILES_WEIGHT_ELEMENTS_H

#include "tensor/files/weights_internal.h"

/* Called with consecutive elements, `offset` bytes after the first. `data` is valid during the call, and need not be
 * aligned. */
typedef rondo_status rondo_take_elements(void *user, size_t offset, const void *data, size_t bytes);

/* Passes `count` elements from `first` on to `take`, as `type`, in pieces, and releases the pages of the file. So
 * little memory is needed in addition to the destination. Errors: OUT_OF_MEMORY; those of `take`, which is then not
 * called again. */
RONDO_MUST_USE rondo_status rondo_weights_read_elements(const rondo_weights *weights, const rondo_weights_entry *entry,
                                                        rondo_type type, size_t first, size_t count,
                                                        rondo_take_elements *take, void *user);

/* Whether elements of one type can be read as the other. */
bool rondo_weights_can_convert(const rondo_weights *weights, rondo_type from, rondo_type to);

/* Whether the data are all elements, in the order of the shape, and aligned. */
bool rondo_weights_is_plain(const rondo_weights_entry *entry);

/* Replaces data that are not plain by a copy that is. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_weights_make_plain(const rondo_weights *weights, rondo_weights_entry *entry);

#endif
