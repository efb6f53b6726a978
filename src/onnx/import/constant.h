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

/* The type with which programs compute values of this type: double becomes F32. Errors: UNSUPPORTED/TYPE, naming it. */
RONDO_MUST_USE rondo_status rondo_onnx_program_type(const rondo_onnx_importer *importer, rondo_onnx_type type,
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

/* A constant of this shape, whose elements the caller writes to *out_elements (NULL for none). Errors: LIMIT_EXCEEDED
 * (the limit of the options); OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_make(rondo_onnx_importer *importer, const rondo_onnx_shape *shape,
                                                     rondo_onnx_constant **out, void **out_elements);

/* A copy of the constant in another shape of as many elements; a held one shares its elements. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_reshaped(rondo_onnx_importer *importer,
                                                         const rondo_onnx_constant *constant,
                                                         const rondo_onnx_shape *shape, rondo_onnx_constant **out);

/* Copies the elements of a held constant if they are not aligned to their size. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_align(rondo_onnx_importer *importer, rondo_onnx_constant *constant);

/* The elements of a held constant as programs have them: double becomes F32. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_elements(rondo_onnx_importer *importer, rondo_onnx_constant *constant,
                                                         const void **out);

/* The state of a held constant in the model's program. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_state(rondo_onnx_importer *importer, rondo_onnx_constant *constant,
                                                      rondo_value *out);

/* Puts all states into a set of weights, which refers to their elements. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_collect_weights(rondo_onnx_importer *importer, rondo_weights *weights);

#endif
