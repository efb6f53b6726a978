/* SPDX-License-Identifier: MIT
 * The inputs and outputs of a model become those of the program, by the same names; elements of sequences by theirs
 * (input_list.h). Sizes of dynamic dimensions, and shapes and values of inputs, come from the caller. Threads: one at a
 * time.
 */
#ifndef RONDO_ONNX_IMPORT_MODEL_INTERFACE_H
#define RONDO_ONNX_IMPORT_MODEL_INTERFACE_H

#include "onnx/import/importer.h"

/* Errors: INVALID_ARGUMENT with UNKNOWN_NAME (a name that the model lacks), SHAPE (sizes that are missing, or do not
 * fit), BAD_SIZE (bytes of a value), DUPLICATE_NAME, BAD_OPTIONS (too many values); those of rondo_onnx_list_inputs.
 * An input that is neither a tensor nor a list of tensors is reported, and is no error. */
RONDO_MUST_USE rondo_status rondo_onnx_import_inputs(rondo_onnx_importer *importer);

/* Adds inputs that no node read to the program, except frozen ones, and describes all in the result. */
RONDO_MUST_USE rondo_status rondo_onnx_finish_inputs(rondo_onnx_importer *importer);

RONDO_MUST_USE rondo_status rondo_onnx_import_outputs(rondo_onnx_importer *importer);

/* A value that is not only a constant, or is one that programs have, in the model's program. */
RONDO_MUST_USE rondo_status rondo_onnx_output_value(rondo_onnx_importer *importer, const rondo_onnx_import_value *value,
                                                    rondo_value *out);

/* The value of an input in the model's program. */
RONDO_MUST_USE rondo_status rondo_onnx_add_input(rondo_onnx_importer *importer, rondo_onnx_import_input *input,
                                                 rondo_value *out);

/* Programs merge the dimensions of values that have more than RONDO_MAX_DIMENSIONS, so none of them can be moved: then
 * UNSUPPORTED/SHAPE, unless the rows and the length are the first ones already. */
RONDO_MUST_USE rondo_status rondo_onnx_check_moves(const rondo_onnx_row_dimensions *first, size_t rank);

#endif
