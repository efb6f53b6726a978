/* SPDX-License-Identifier: MIT
 * Models whose weights are quantised (<rondo/quantized.h>): the factors of products, and tables of look-ups. A factor
 * is stored transposed, [outputs, inputs], so that a group has weights of one output. Its scales are a tensor of their
 * own, "<name>.scales". Other parameters stay F32. The metadata have "quantization" (int8 or int4), "group" (columns
 * with one scale; 0: the whole row) and "activations" (float or int8).
 */
#ifndef RONDO_TOOL_MODEL_QUANTIZED_H
#define RONDO_TOOL_MODEL_QUANTIZED_H

#include "models/model.h"

/* A parameter as files and states have it. */
typedef struct stored_parameter {
  rondo_type type;
  size_t rank, shape[2];
  size_t scales[2]; /* the shape of its scales; 0: it has none */
} stored_parameter;
rondo_status model_stored_parameter(const language_model *model, size_t index, const model_parameter *p,
                                    stored_parameter *out);

/* The name of a parameter's scales. */
#define MODEL_SCALES_NAME 48
void model_scales_name(const char *parameter, char out[MODEL_SCALES_NAME]);

/* Adds the states of a parameter: states[0], and if it is quantised, states[MODEL_SCALES]. */
rondo_status model_add_parameter(const language_model *model, rondo_program *program, size_t index,
                                 const model_parameter *p, rondo_value *states);

/* x times the weight, whose states `weight` points to, in the model's type; bias may be no value. */
rondo_status model_multiply(const language_model *model, rondo_program *program, rondo_value x,
                            const rondo_value *weight, rondo_value bias, rondo_activation activation, rondo_value *out);

/* Rows of a table, whose states `table` points to. F32. */
rondo_status model_look_up(const language_model *model, rondo_program *program, const rondo_value *table,
                           rondo_value indices, rondo_value *out);

/* Makes the weights of a model with this quantisation from those of an F32 model: all parameters and the metadata.
 * Returns TOOL_OK, or TOOL_FAILURE after a message; `path` is for messages. The caller destroys the weights. */
int model_quantize(const char *path, const rondo_weights *weights, const language_model *quantized,
                   rondo_weights **out);

/* Metadata: writes them, and reads them from a file. No "quantization": the model is F32. */
rondo_status model_describe_quantization(const language_model *model, rondo_weights *weights);
int model_read_quantization(const char *path, const rondo_weights *weights, language_model *out);

/* "int8" or "int4" to bits; 0: another text. "f32", "int8", "int4". "float" and "int8" likewise; false: another text.
 */
uint32_t model_quantized_bits(const char *name);
const char *model_quantized_name(uint32_t bits);
bool model_find_activations(const char *name, rondo_quantized_activations *out);
const char *model_activations_name(rondo_quantized_activations activations);

#endif
