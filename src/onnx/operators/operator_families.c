/* SPDX-License-Identifier: MIT
 * Finds the row of an operator.
 */
#include "onnx/operators/operator_families.h"

#include <string.h>

#include "base/error.h"

static const rondo_onnx_family *const families[] = {
    &rondo_onnx_attention,      &rondo_onnx_classical,      &rondo_onnx_constants,  &rondo_onnx_control_flow,
    &rondo_onnx_convolution,    &rondo_onnx_data_dependent, &rondo_onnx_dropout,    &rondo_onnx_elementwise,
    &rondo_onnx_flex_attention, &rondo_onnx_indexing,       &rondo_onnx_ngrams,     &rondo_onnx_losses,
    &rondo_onnx_normalization,  &rondo_onnx_pooling,        &rondo_onnx_products,   &rondo_onnx_quantization,
    &rondo_onnx_rearrangement,  &rondo_onnx_recurrent,      &rondo_onnx_reductions, &rondo_onnx_resize,
    &rondo_onnx_sampling,       &rondo_onnx_sequences,      &rondo_onnx_shapes,     &rondo_onnx_signal,
    &rondo_onnx_state_space,
};

static bool holds(const rondo_onnx_row *row, int64_t opset) {
  return row->first_opset <= opset && (row->last_opset == 0 || opset <= row->last_opset);
}

/* The row for the operator set; another row of the operator, if that is missing; or NULL. */
static const rondo_onnx_row *find(const char *domain, const char *name, int64_t opset) {
  const rondo_onnx_row *other = NULL;
  for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
    if (strcmp(families[f]->domain, domain) != 0) continue;
    for (size_t i = 0; i < families[f]->count; i++) {
      const rondo_onnx_row *row = &families[f]->rows[i];
      if (strcmp(row->name, name) != 0) continue;
      if (holds(row, opset)) return row;
      other = row;
    }
  }
  return other;
}

rondo_status rondo_onnx_find_row(const char *domain, const char *name, int64_t opset, const rondo_onnx_row **out) {
  *out = find(domain, name, opset);
  if (*out == NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NO_FUNCTION, "there is no operator '%s%s%s'", domain,
                      domain[0] != '\0' ? "." : "", name);
  if (holds(*out, opset)) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_OUT_OF_RANGE,
                    "the operator is not supported in operator set %lld: convert the model with onnx.version_converter",
                    (long long)opset);
}
