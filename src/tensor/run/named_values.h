/* SPDX-License-Identifier: MIT
 * Finding, writing and listing the named values of a compiled program.
 */
#ifndef RONDO_TENSOR_RUN_NAMED_VALUES_H
#define RONDO_TENSOR_RUN_NAMED_VALUES_H

#include "base/component.h"
#include "tensor/program/program_internal.h"

#include "tensor/run/compiled.h"

/* The value of this name among those of the given kinds ("sc": states and cells); NULL: none. */
RONDO_PRIVATE rondo_named_value *rondo_values_look_up(const rondo_compiled *compiled, const char *name,
                                                      const char *kinds);

/* The same for a call that copies it now. Errors: NULL_ARGUMENT,
 * NOT_FOUND/UNKNOWN_NAME; CAPTURE_REFUSED/UNSUPPORTED_CALL while the stream captures, which goes on. */
RONDO_MUST_USE rondo_status rondo_values_find(rondo_compiled *compiled, const char *call, const char *name,
                                              const char *kinds, rondo_named_value **out);

/* The same for `bytes` bytes between `data` and the value: NULL_ARGUMENT and BAD_SIZE too. */
RONDO_MUST_USE rondo_status rondo_values_find_sized(rondo_compiled *compiled, const char *call, const char *name,
                                                    const char *kinds, const void *data, size_t bytes,
                                                    rondo_named_value **out);

/* Writes the value in the order of the stream: all of it, or the bytes from `offset` on. Parts are written in order of
 * their offsets. */
RONDO_MUST_USE rondo_status rondo_values_write(rondo_compiled *compiled, rondo_named_value *value, const void *data);
RONDO_MUST_USE rondo_status rondo_values_write_part(rondo_compiled *compiled, rondo_named_value *value, size_t offset,
                                                    const void *data, size_t bytes);

/* Packs the rows of a packed state again, in the order of the stream. */
RONDO_MUST_USE rondo_status rondo_values_pack(const rondo_compiled *compiled, const rondo_named_value *value);

/* Named values, in the order of rondo_compiled_get_value. */
RONDO_PRIVATE size_t rondo_compiled_count_values(const rondo_compiled *compiled);
RONDO_PRIVATE rondo_compiled_value rondo_compiled_value_at(const rondo_compiled *compiled, size_t index);

#endif
