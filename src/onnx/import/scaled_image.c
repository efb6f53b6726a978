/* SPDX-License-Identifier: MIT
 * Scaled images.
 */
#include "onnx/import/scaled_image.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/folding.h"
#include "onnx/import/graph_import.h"
#include "tensor/program/program.h"

struct rondo_onnx_scaled_image {
  rondo_value x;
  rondo_onnx_constant *weight, *bias; /* of a convolution; no weight: the image is x. The bias may be NULL */
  rondo_conv_options options;
  rondo_onnx_shape shape;    /* of the image */
  const char *name;          /* of the value in the model */
  double *factors, *offsets; /* of the channels; NULL: it is not scaled */
  rondo_value result;        /* zero: it was not added yet */
};

/* Readers ---------------------------------------------------------------------------------------------------------- */

static rondo_status count_reader(rondo_onnx_importer *importer, const char *name) {
  uint32_t index = (uint32_t)importer->reader_counts.count;
  const uint32_t none = 0;
  bool is_new;
  if (name[0] == '\0') return RONDO_OK;
  RONDO_TRY(rondo_onnx_name_add(&importer->allocator, &importer->reader_names, name, index, &is_new));
  if (is_new) RONDO_TRY(rondo_array_push(&importer->allocator, &importer->reader_counts, &none));
  if (rondo_onnx_name_find(&importer->reader_names, name, &index)) importer->reader_counts.items[index]++;
  return RONDO_OK;
}

/* Names of inner graphs count together with those of the same text outside. */
static rondo_status count_graph(rondo_onnx_importer *importer, const RondoOnnx__Graph *graph);

static rondo_status count_attribute(rondo_onnx_importer *importer, const RondoOnnx__Attribute *attribute) {
  if (attribute->g != NULL) RONDO_TRY(count_graph(importer, attribute->g));
  for (size_t i = 0; i < attribute->n_graphs; i++) RONDO_TRY(count_graph(importer, attribute->graphs[i]));
  return RONDO_OK;
}

static rondo_status count_graph(rondo_onnx_importer *importer, const RondoOnnx__Graph *graph) {
  for (size_t i = 0; i < graph->n_node; i++) {
    const RondoOnnx__Node *node = graph->node[i];
    for (size_t k = 0; k < node->n_input; k++) RONDO_TRY(count_reader(importer, node->input[k]));
    for (size_t k = 0; k < node->n_attribute; k++) RONDO_TRY(count_attribute(importer, node->attribute[k]));
  }
  for (size_t i = 0; i < graph->n_output; i++) RONDO_TRY(count_reader(importer, graph->output[i]->name));
  return RONDO_OK;
}

rondo_status rondo_onnx_count_readers(rondo_onnx_importer *importer) {
  return count_graph(importer, importer->model->message->graph);
}

void rondo_onnx_free_readers(rondo_onnx_importer *importer) {
  rondo_onnx_name_table_free(&importer->allocator, &importer->reader_names);
  rondo_array_free(&importer->allocator, &importer->reader_counts);
}

static bool has_one_reader(const rondo_onnx_importer *importer, const char *name) {
  uint32_t index;
  return rondo_onnx_name_find(&importer->reader_names, name, &index) && importer->reader_counts.items[index] == 1;
}

/* Constants -------------------------------------------------------------------------------------------------------- */

/* Whether a node may make an image: it does not fold, and is not in a function, whose names are its own. */
static bool may_scale(const rondo_onnx_node *node) {
  return !node->folds && node->importer->scope->function == NULL && !node->importer->options->keeps_scaling &&
         rondo_onnx_wants_output(node, 0);
}

/* The input if it is a constant of floats that does not depend on what the caller gave, else NULL. */
static rondo_onnx_constant *float_constant(const rondo_onnx_node *node, size_t index) {
  if (!rondo_onnx_has_input(node, index)) return NULL;
  const rondo_onnx_import_value *value = &node->inputs[index];
  const bool is_known = value->kind == RONDO_ONNX_TENSOR_VALUE && value->constant != NULL &&
                        !rondo_onnx_has_result(value) && value->constant->given == 0;
  return is_known && value->shape.type == RONDO_ONNX_FLOAT && value->constant->count > 0 ? value->constant : NULL;
}

static rondo_status read_floats(rondo_onnx_importer *importer, rondo_onnx_constant *constant, const float **out) {
  RONDO_TRY(rondo_onnx_folding_compute(importer, constant));
  RONDO_TRY(rondo_onnx_constant_align(importer, constant));
  *out = constant->elements;
  return RONDO_OK;
}

/* Making ----------------------------------------------------------------------------------------------------------- */

static rondo_status make_image(rondo_onnx_node *node, const rondo_onnx_shape *shape, rondo_onnx_scaled_image **out) {
  RONDO_TRY(rondo_scratch_take(&node->importer->scratch, 1, sizeof **out, out));
  **out = (rondo_onnx_scaled_image){.shape = *shape, .name = node->message->output[0]};
  return RONDO_OK;
}

static void set_image(rondo_onnx_node *node, rondo_onnx_scaled_image *image) {
  const rondo_onnx_import_value value = {.kind = RONDO_ONNX_TENSOR_VALUE, .shape = image->shape, .scaled = image};
  rondo_onnx_set_value(node, 0, &value);
}

/* Many nodes may share the constants of a small file: numbers of so many channels count as a value of the model. */
#define CHANNELS_OF_A_VALUE 16

/* Factors and offsets of the image's own: those of `from`, or factors of 1 and offsets of 0. */
static rondo_status begin_scaling(rondo_onnx_importer *importer, rondo_onnx_scaled_image *image,
                                  const rondo_onnx_scaled_image *from) {
  const size_t channels = image->shape.dims[1];
  const bool is_scaled = from != NULL && from->factors != NULL;
  RONDO_TRY(rondo_onnx_count_values(importer, channels / CHANNELS_OF_A_VALUE));
  RONDO_TRY(rondo_scratch_take(&importer->scratch, channels, sizeof *image->factors, &image->factors));
  RONDO_TRY(rondo_scratch_take(&importer->scratch, channels, sizeof *image->offsets, &image->offsets));
  for (size_t i = 0; i < channels; i++) {
    image->factors[i] = is_scaled ? from->factors[i] : 1;
    image->offsets[i] = is_scaled ? from->offsets[i] : 0;
  }
  return RONDO_OK;
}

/* The image that a node alone reads: a copy of it for the node's result, with numbers of its own where the body of a
 * loop may read it each time. NULL if the input is no image, or must not be scaled. */
static rondo_status take_image(rondo_onnx_node *node, size_t input, rondo_onnx_scaled_image **out) {
  const rondo_onnx_scaled_image *from = node->inputs[input].scaled;
  *out = NULL;
  if (from == NULL || from->result.id != 0 || !has_one_reader(node->importer, node->message->input[input]))
    return RONDO_OK;
  RONDO_TRY(make_image(node, &from->shape, out));
  (*out)->x = from->x;
  (*out)->weight = from->weight;
  (*out)->bias = from->bias;
  (*out)->options = from->options;
  if (from->factors == NULL || node->importer->names.scope_begin > 0) /* in a loop, or not scaled yet */
    return begin_scaling(node->importer, *out, from);
  (*out)->factors = from->factors;
  (*out)->offsets = from->offsets;
  return RONDO_OK;
}

/* The sizes of a convolution's result; false: they do not fit, which the convolution will say. */
static bool find_conv_shape(const rondo_onnx_shape *x, const rondo_onnx_shape *weight,
                            const rondo_conv_options *options, rondo_onnx_shape *out) {
  const size_t groups = options->groups;
  if (x->rank != weight->rank || x->rank < 3 || x->rank > 2 + RONDO_MAX_SPATIAL) return false;
  if (rondo_onnx_shape_count(x) == 0 || rondo_onnx_shape_count(weight) == 0) return false;
  if (x->dims[1] / groups != weight->dims[1] || x->dims[1] % groups != 0 || weight->dims[0] % groups != 0) return false;
  *out = *x;
  out->dims[1] = weight->dims[0];
  for (size_t i = 0; i + 2 < x->rank; i++) {
    const size_t padded = x->dims[i + 2] + options->padding_before[i] + options->padding_after[i];
    if (options->stride[i] == 0 || options->dilation[i] == 0 || padded < x->dims[i + 2]) return false;
    if (weight->dims[i + 2] - 1 > (padded - 1) / options->dilation[i]) return false;
    out->dims[i + 2] = (padded - 1 - options->dilation[i] * (weight->dims[i + 2] - 1)) / options->stride[i] + 1;
  }
  return true;
}

rondo_status rondo_onnx_make_scaled_conv(rondo_onnx_node *node, const rondo_conv_options *options, rondo_value x,
                                         bool *out_is_made) {
  rondo_onnx_constant *weight = float_constant(node, 1), *bias = float_constant(node, 2);
  const rondo_onnx_shape *of_x = rondo_onnx_input_shape(node, 0);
  rondo_onnx_scaled_image *image;
  rondo_onnx_shape shape;
  *out_is_made = false;
  if (!may_scale(node) || weight == NULL || of_x->type != RONDO_ONNX_FLOAT) return RONDO_OK;
  if (!find_conv_shape(of_x, &weight->shape, options, &shape)) return RONDO_OK;
  if (rondo_onnx_has_input(node, 2) &&
      (bias == NULL || bias->shape.rank != 1 || bias->shape.dims[0] != weight->shape.dims[0]))
    return RONDO_OK;
  if (!has_one_reader(node->importer, node->message->output[0])) return RONDO_OK;
  RONDO_TRY(make_image(node, &shape, &image));
  image->x = x;
  image->weight = weight;
  image->bias = bias;
  image->options = *options;
  set_image(node, image);
  *out_is_made = true;
  return RONDO_OK;
}

static bool has_channels(const rondo_onnx_constant *constant, size_t channels) {
  return constant != NULL && constant->shape.rank == 1 && constant->shape.dims[0] == channels;
}

/* The image of an input, or input 0 itself as one. */
static rondo_status image_of_input(rondo_onnx_node *node, rondo_onnx_scaled_image **out) {
  RONDO_TRY(take_image(node, 0, out));
  if (*out != NULL) return RONDO_OK;
  RONDO_TRY(make_image(node, rondo_onnx_input_shape(node, 0), out));
  RONDO_TRY(rondo_onnx_operand(node, 0, &(*out)->x));
  return begin_scaling(node->importer, *out, NULL);
}

rondo_status rondo_onnx_make_scaled_norm(rondo_onnx_node *node, float epsilon, bool *out_is_made) {
  enum { SCALE = 1, SHIFT, MEAN, VARIANCE, COUNT };
  const rondo_onnx_shape *shape = rondo_onnx_input_shape(node, 0);
  const float *numbers[COUNT];
  rondo_onnx_scaled_image *image;
  *out_is_made = false;
  if (!may_scale(node) || shape->type != RONDO_ONNX_FLOAT || rondo_onnx_shape_count(shape) == 0) return RONDO_OK;
  if (shape->rank < 2 || shape->rank > RONDO_MAX_DIMENSIONS) return RONDO_OK;
  for (size_t i = SCALE; i < COUNT; i++)
    if (!has_channels(float_constant(node, i), shape->dims[1])) return RONDO_OK;
  for (size_t i = SCALE; i < COUNT; i++) RONDO_TRY(read_floats(node->importer, float_constant(node, i), &numbers[i]));
  RONDO_TRY(image_of_input(node, &image));
  for (size_t c = 0; c < shape->dims[1]; c++) {
    const double factor = (double)numbers[SCALE][c] / sqrt((double)numbers[VARIANCE][c] + (double)epsilon);
    image->factors[c] *= factor;
    image->offsets[c] = (image->offsets[c] - (double)numbers[MEAN][c]) * factor + (double)numbers[SHIFT][c];
  }
  set_image(node, image);
  *out_is_made = true;
  return RONDO_OK;
}

/* The numbers of a constant for the channels of an image: one for all, or one for each. */
static rondo_status channel_numbers(rondo_onnx_importer *importer, const rondo_onnx_scaled_image *image,
                                    rondo_onnx_constant *constant, const float **out, size_t *out_step) {
  const rondo_onnx_shape *have = &constant->shape;
  const size_t rank = image->shape.rank, channels = image->shape.dims[1];
  *out = NULL;
  *out_step = constant->count == 1 ? 0 : 1;
  if (have->rank > rank || (constant->count != 1 && constant->count != channels)) return RONDO_OK;
  if (constant->count != 1 && (have->rank + 1 < rank || have->dims[have->rank + 1 - rank] != channels)) return RONDO_OK;
  return read_floats(importer, constant, out);
}

/* The image that is one input, and the numbers of the constant that is the other; without an image, there are none. */
static rondo_status take_operands(rondo_onnx_node *node, rondo_onnx_scaled_image **out, const float **out_numbers,
                                  size_t *out_step) {
  *out = NULL;
  if (!may_scale(node)) return RONDO_OK;
  for (size_t i = 0; i < 2; i++) {
    rondo_onnx_constant *constant = float_constant(node, 1 - i);
    if (node->inputs[i].scaled == NULL || constant == NULL) continue;
    RONDO_TRY(channel_numbers(node->importer, node->inputs[i].scaled, constant, out_numbers, out_step));
    return *out_numbers != NULL ? take_image(node, i, out) : RONDO_OK;
  }
  return RONDO_OK;
}

static rondo_status make_scaled(rondo_onnx_node *node, bool is_product, bool *out_is_made) {
  rondo_onnx_scaled_image *image;
  const float *numbers = NULL;
  size_t step = 0;
  RONDO_TRY(take_operands(node, &image, &numbers, &step));
  *out_is_made = image != NULL;
  if (image == NULL) return RONDO_OK;
  for (size_t c = 0; c < image->shape.dims[1]; c++) {
    const double number = (double)numbers[c * step];
    if (is_product) image->factors[c] *= number;
    image->offsets[c] = is_product ? image->offsets[c] * number : image->offsets[c] + number;
  }
  set_image(node, image);
  return RONDO_OK;
}

rondo_status rondo_onnx_make_scaled_product(rondo_onnx_node *node, bool *out_is_made) {
  return make_scaled(node, true, out_is_made);
}

rondo_status rondo_onnx_make_scaled_sum(rondo_onnx_node *node, bool *out_is_made) {
  return make_scaled(node, false, out_is_made);
}

/* Adding ----------------------------------------------------------------------------------------------------------- */

/* A constant of the model's program, which is named after the image, so that programs of several sizes share it. */
static rondo_status make_constant(rondo_onnx_importer *importer, const rondo_onnx_scaled_image *image, const char *what,
                                  const rondo_onnx_shape *shape, rondo_onnx_constant **out, float **out_elements) {
  const size_t bytes = strlen(image->name) + strlen(what) + 1;
  void *elements;
  char *name;
  uint32_t unused;
  RONDO_TRY(rondo_onnx_constant_make(importer, shape, out, &elements));
  *out_elements = elements;
  RONDO_TRY(rondo_scratch_take(importer->kept, bytes, 1, &name));
  (void)snprintf(name, bytes, "%s%s", image->name, what);
  if (!rondo_onnx_name_find(&importer->names, name, &unused) && !rondo_program_has_name(importer->program, name))
    (*out)->name = name;
  return RONDO_OK;
}

/* The factors or offsets, [c, 1, ..]. */
static rondo_status add_numbers(rondo_onnx_importer *importer, const rondo_onnx_scaled_image *image, const char *what,
                                const double *numbers, rondo_value *out) {
  rondo_onnx_shape shape = {.type = RONDO_ONNX_FLOAT, .rank = image->shape.rank - 1, .dims = {image->shape.dims[1]}};
  rondo_onnx_constant *constant;
  float *elements;
  for (size_t i = 1; i < shape.rank; i++) shape.dims[i] = 1;
  RONDO_TRY(make_constant(importer, image, what, &shape, &constant, &elements));
  for (size_t c = 0; c < shape.dims[0]; c++) elements[c] = (float)numbers[c];
  return rondo_onnx_constant_value(importer, constant, out);
}

static rondo_status scale_value(rondo_onnx_importer *importer, const rondo_onnx_scaled_image *image,
                                rondo_value *inout) {
  rondo_value factors, offsets;
  if (image->factors == NULL) return RONDO_OK;
  RONDO_TRY(add_numbers(importer, image, ".factors", image->factors, &factors));
  RONDO_TRY(add_numbers(importer, image, ".offsets", image->offsets, &offsets));
  RONDO_TRY(rondo_op_mul(importer->program, *inout, factors, inout));
  return rondo_op_add(importer->program, *inout, offsets, inout);
}

static rondo_status add_conv(rondo_onnx_importer *importer, const rondo_onnx_scaled_image *image,
                             rondo_onnx_constant *weight, rondo_onnx_constant *bias, rondo_value *out) {
  rondo_conv_options options = image->options;
  rondo_value of_weight;
  RONDO_TRY(rondo_onnx_folding_compute(importer, weight));
  RONDO_TRY(rondo_onnx_constant_value(importer, weight, &of_weight));
  if (bias != NULL) {
    RONDO_TRY(rondo_onnx_folding_compute(importer, bias));
    RONDO_TRY(rondo_onnx_constant_value(importer, bias, &options.bias));
  }
  return rondo_op_conv(importer->program, image->x, of_weight, &options, out);
}

/* The weights of output channel c times its factor. */
static rondo_status scale_conv(rondo_onnx_importer *importer, const rondo_onnx_scaled_image *image,
                               rondo_onnx_constant **out_weight, rondo_onnx_constant **out_bias) {
  const size_t channels = image->shape.dims[1], each = image->weight->count / channels;
  const rondo_onnx_shape of_bias = {.type = RONDO_ONNX_FLOAT, .rank = 1, .dims = {channels}};
  const float *weight, *bias = NULL;
  float *scaled, *moved;
  RONDO_TRY(read_floats(importer, image->weight, &weight));
  if (image->bias != NULL) RONDO_TRY(read_floats(importer, image->bias, &bias));
  RONDO_TRY(make_constant(importer, image, ".weight", &image->weight->shape, out_weight, &scaled));
  RONDO_TRY(make_constant(importer, image, ".bias", &of_bias, out_bias, &moved));
  for (size_t c = 0; c < channels; c++) {
    const float factor = (float)image->factors[c];
    for (size_t k = c * each; k < (c + 1) * each; k++) scaled[k] = weight[k] * factor;
    moved[c] = (float)(image->offsets[c] + (bias != NULL ? (double)bias[c] * image->factors[c] : 0));
  }
  return RONDO_OK;
}

/* Above the limit of constants, the result is scaled in each run. */
static rondo_status add_image(rondo_onnx_importer *importer, const rondo_onnx_scaled_image *image, rondo_value *out) {
  rondo_onnx_constant *weight = image->weight, *bias = image->bias;
  *out = image->x;
  if (weight == NULL) return scale_value(importer, image, out);
  if (image->factors != NULL && rondo_onnx_constant_fits(importer, 2 * weight->bytes)) {
    RONDO_TRY(scale_conv(importer, image, &weight, &bias));
    return add_conv(importer, image, weight, bias, out);
  }
  RONDO_TRY(add_conv(importer, image, weight, bias, out));
  return scale_value(importer, image, out);
}

rondo_status rondo_onnx_add_scaled(rondo_onnx_importer *importer, rondo_onnx_scaled_image *image, rondo_value *out) {
  if (image->result.id == 0) RONDO_TRY(add_image(importer, image, &image->result));
  *out = image->result;
  return RONDO_OK;
}
