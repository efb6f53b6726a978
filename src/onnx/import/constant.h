/* SPDX-License-Identifier: MIT
 * Constants: made from tensors and bytes, and turned into states of the model's program. Constants of equal type, shape
 * and bytes share a state. Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_CONSTANT_H
#define RONDO_ONNX_IMPORT_CONSTANT_H

#include "onnx/import/importer.h"

/* The number of elements of a shape; SIZE_MAX if it does not fit. */
size_t rondo_onnx_shape_count(const rondo_onnx_shape *shape);

/* "float [2, 3]" into buffer; returns it. */
#define RONDO_ONNX_SHAPE_TEXT 200
const char *rondo_onnx_shape_text(char buffer[RONDO_ONNX_SHAPE_TEXT], const rondo_onnx_shape *shape);

/* Bytes of an element; 0 for strings and types that share bytes. */
size_t rondo_onnx_type_bytes(rondo_onnx_type type);

/* Bytes of a tensor, also of elements that share bytes; SIZE_MAX if they do not fit, 0 for strings. */
size_t rondo_onnx_shape_bytes(const rondo_onnx_shape *shape);

/* The type with which programs compute values of this type: double becomes F32. Errors: UNSUPPORTED/TYPE, naming it. */
RONDO_MUST_USE rondo_status rondo_onnx_program_type(const rondo_onnx_importer *importer, rondo_onnx_type type,
                                                    rondo_type *out);

/* The same, and all types that are held in wider ones (onnx/format/widened_elements.h). */
RONDO_MUST_USE rondo_status rondo_onnx_held_type(const rondo_onnx_importer *importer, rondo_onnx_type type,
                                                 rondo_type *out);

/* The shape of a tensor of the file. Errors: UNSUPPORTED/SHAPE (too many dimensions). */
RONDO_MUST_USE rondo_status rondo_onnx_tensor_shape(const rondo_onnx_tensor *tensor, rondo_onnx_shape *out);

/* A constant of a tensor, whose elements stay where they are. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_of(rondo_onnx_importer *importer, const rondo_onnx_tensor *tensor,
                                                   rondo_onnx_constant **out);

/* A dense constant of a sparse tensor. Errors: as rondo_onnx_constant_make; INVALID_DATA/OUT_OF_RANGE (an index). */
RONDO_MUST_USE rondo_status rondo_onnx_constant_of_sparse(rondo_onnx_importer *importer,
                                                          const RondoOnnx__SparseTensor *sparse,
                                                          rondo_onnx_constant **out);

/* A constant of this shape, whose elements are zero until the caller writes them to *out_elements (NULL for none).
 * Errors: LIMIT_EXCEEDED (the limit of the options); OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_make(rondo_onnx_importer *importer, const rondo_onnx_shape *shape,
                                                     rondo_onnx_constant **out, void **out_elements);

/* Gives a deferred constant memory for its elements, which the caller writes to *out_elements (NULL for none). Errors:
 * as rondo_onnx_constant_make. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_make_elements(rondo_onnx_importer *importer,
                                                              rondo_onnx_constant *constant, void **out_elements);

/* A constant of this shape, all of whose elements are equal to this one, which is copied. A large one is filled; the
 * others are held. Errors: as rondo_onnx_constant_make. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_fill(rondo_onnx_importer *importer, const rondo_onnx_shape *shape,
                                                     const void *element, rondo_onnx_constant **out);

/* Makes a filled constant a held one. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_hold(rondo_onnx_importer *importer, rondo_onnx_constant *constant);

/* Whether so many more bytes are within the limit of the options. */
bool rondo_onnx_constant_fits(const rondo_onnx_importer *importer, size_t bytes);

/* Counts bytes that a program computes or copies, with what it does not keep. Errors: LIMIT_EXCEEDED/BAD_SIZE. */
RONDO_MUST_USE rondo_status rondo_onnx_count_folded_work(rondo_onnx_importer *importer, uint64_t bytes);

/* Whether a program may run that computes so many bytes of constants, and needs `more` bytes while it runs. Errors:
 * LIMIT_EXCEEDED/BAD_SIZE. */
RONDO_MUST_USE rondo_status rondo_onnx_check_folding(const rondo_onnx_importer *importer, uint64_t bytes,
                                                     uint64_t more);

/* A copy of the constant in another shape of as many elements; a held one shares its elements. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_reshaped(rondo_onnx_importer *importer,
                                                         const rondo_onnx_constant *constant,
                                                         const rondo_onnx_shape *shape, rondo_onnx_constant **out);

/* Copies the elements of a held constant if they are not aligned to their size. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_align(rondo_onnx_importer *importer, rondo_onnx_constant *constant);

/* The elements of a held constant as programs have them: those of types that they lack in the wider type. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_elements(rondo_onnx_importer *importer, rondo_onnx_constant *constant,
                                                         const void **out);

/* A held or filled constant in the model's program: a state. A single float is a constant of the program instead, so
 * that it is known when the program is compiled. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_value(rondo_onnx_importer *importer, rondo_onnx_constant *constant,
                                                      rondo_value *out);

/* Whether it is filled with floats that programs have. Then its element is *out. */
bool rondo_onnx_constant_is_number(const rondo_onnx_constant *constant, rondo_type *out_type, float *out);

/* Puts all states into a set of weights, which refers to their elements or takes them. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_collect_weights(rondo_onnx_importer *importer, rondo_weights *weights);

/* Frees the elements that no weight has taken. */
void rondo_onnx_constants_end(rondo_onnx_importer *importer);

#endif
