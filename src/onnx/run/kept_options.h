/* SPDX-License-Identifier: MIT
 * Options of builds that an object keeps: a copy with the names, shapes and values that they refer to.
 */
#ifndef RONDO_ONNX_RUN_KEPT_OPTIONS_H
#define RONDO_ONNX_RUN_KEPT_OPTIONS_H

#include <rondo/onnx.h>

#include "base/allocation.h"
#include "onnx/import/input_list.h"

/* The copy is memory of the scratch, and has its allocator. `given` may be NULL. Errors: INVALID_ARGUMENT with
 * BAD_OPTIONS, NULL_ARGUMENT; OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_keep_options(rondo_scratch *scratch, const rondo_onnx_build_options *given,
                                                    rondo_onnx_build_options *out);

/* Options for one build, which the caller changes: the kept ones, with an entry in `inputs` for each input of the
 * list, and space for `more` dimensions before the kept ones, which are still without names. */
typedef struct rondo_onnx_varied_options {
  rondo_onnx_build_options options;
  rondo_onnx_dimension_size *dimensions;
  rondo_onnx_given_input *inputs;
} rondo_onnx_varied_options;
RONDO_MUST_USE rondo_status rondo_onnx_vary_options(rondo_scratch *scratch, const rondo_onnx_build_options *kept,
                                                    const rondo_onnx_input_list *listed, size_t more,
                                                    rondo_onnx_varied_options *out);

/* The entry of an input of the list. */
rondo_onnx_given_input *rondo_onnx_varied_input(const rondo_onnx_varied_options *varied, const char *name);

/* Whether the kept options have a value for an input. */
bool rondo_onnx_has_given_value(const rondo_onnx_build_options *kept, const char *name);

#endif
