/* SPDX-License-Identifier: MIT
 * Signals: Fourier transforms, windows and mel filters.
 */
#include <math.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

#define PI 3.14159265358979323846

static rondo_status known_scalar(rondo_onnx_node *node, size_t index, double *out) {
  const double *known;
  size_t count;
  RONDO_TRY(rondo_onnx_known_numbers(node, index, &known, &count));
  if (count != 1) return rondo_onnx_refuse(node, "input %zu has %zu elements, not one", index, count);
  *out = known[0];
  return RONDO_OK;
}

/* A size that is known at import, at least 1. */
static rondo_status known_size(rondo_onnx_node *node, size_t index, size_t *out) {
  double number = 0;
  RONDO_TRY(known_scalar(node, index, &number));
  if (!(number >= 1 && number < 1e9)) return rondo_onnx_refuse(node, "input %zu is %g, no size", index, number);
  *out = (size_t)number;
  return RONDO_OK;
}

/* Sets the result, F32, as a value of the type of input 0. */
static rondo_status set_as_input(rondo_onnx_node *node, rondo_value value) {
  const rondo_onnx_type type = rondo_onnx_input_shape(node, 0)->type;
  rondo_program *program;
  rondo_type program_type;
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_program_type(node->importer, type, &program_type));
  RONDO_TRY(rondo_op_cast(program, value, program_type, &value));
  return rondo_onnx_set_typed(node, 0, value, type);
}

/* DFT, STFT -------------------------------------------------------------------------------------------------------- */

/* The axis is an attribute up to operator set 19. */
static rondo_status read_axis(rondo_onnx_node *node, size_t *out) {
  const int64_t *known;
  int64_t axis;
  size_t count;
  RONDO_TRY(rondo_onnx_attribute_int(node, "axis", node->opset < 20 ? 1 : -2, &axis));
  if (rondo_onnx_has_input(node, 2)) {
    RONDO_TRY(rondo_onnx_known_integers(node, 2, &known, &count));
    if (count != 1) return rondo_onnx_refuse(node, "input 2 has %zu elements, not one", count);
    axis = known[0];
  }
  return rondo_onnx_axis(axis, rondo_onnx_input_shape(node, 0)->rank, out);
}

static rondo_status add_dft(rondo_onnx_node *node, const void *data) {
  rondo_dft_options options = {RONDO_DFT_OPTIONS_INIT};
  int64_t inverse, onesided;
  rondo_program *program;
  rondo_value value;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "inverse", 0, &inverse));
  RONDO_TRY(rondo_onnx_attribute_int(node, "onesided", 0, &onesided));
  RONDO_TRY(read_axis(node, &options.dimension));
  if (rondo_onnx_has_input(node, 1)) RONDO_TRY(known_size(node, 1, &options.length));
  options.inverse = inverse != 0;
  options.onesided = onesided != 0;
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_dft(program, value, &options, &value));
  return set_as_input(node, value);
}

static rondo_status add_stft(rondo_onnx_node *node, const void *data) {
  int64_t onesided;
  size_t step, length;
  rondo_program *program;
  rondo_value signal, window = {0};
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "onesided", 1, &onesided));
  RONDO_TRY(known_size(node, 1, &step));
  if (rondo_onnx_has_input(node, 3))
    RONDO_TRY(known_size(node, 3, &length));
  else if (rondo_onnx_has_input(node, 2))
    length = rondo_onnx_shape_count(rondo_onnx_input_shape(node, 2));
  else
    return rondo_onnx_refuse(node, "it has neither a window nor a length of frames");
  RONDO_TRY(rondo_onnx_operand(node, 0, &signal));
  if (rondo_onnx_has_input(node, 2)) RONDO_TRY(rondo_onnx_operand(node, 2, &window));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_stft(program, signal, window, step, length, onesided != 0, &signal));
  return set_as_input(node, signal);
}

/* Windows ---------------------------------------------------------------------------------------------------------- */

/* The weights of cos(0), cos(angle) and cos(2 angle). */
typedef struct window_form {
  double weights[3];
} window_form;

static rondo_status make_floats(rondo_onnx_node *node, const rondo_onnx_shape *shape, rondo_onnx_constant **out,
                                float **out_elements) {
  rondo_onnx_shape floats = *shape;
  void *elements;
  floats.type = RONDO_ONNX_FLOAT;
  RONDO_TRY(rondo_onnx_constant_make(node->importer, &floats, out, &elements));
  *out_elements = elements;
  return RONDO_OK;
}

/* Sets the result to floats of an own constant, with another type if the node has one. */
static rondo_status set_floats(rondo_onnx_node *node, rondo_onnx_constant *constant, int64_t to) {
  rondo_program *program;
  rondo_type type;
  rondo_value value;
  if (to == RONDO_ONNX_FLOAT) {
    rondo_onnx_set_constant(node, 0, constant);
    return RONDO_OK;
  }
  RONDO_TRY(rondo_onnx_program_type(node->importer, (rondo_onnx_type)to, &type));
  RONDO_TRY(rondo_onnx_constant_operand(node, constant, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_cast(program, value, type, &value));
  return rondo_onnx_set_typed(node, 0, value, (rondo_onnx_type)to);
}

/* A periodic window has the period of its size, a symmetric one ends as it begins. */
static rondo_status add_window(rondo_onnx_node *node, const void *data) {
  const window_form *form = data;
  rondo_onnx_shape shape = {.rank = 1};
  rondo_onnx_constant *constant;
  float *elements;
  int64_t to, periodic;
  RONDO_TRY(rondo_onnx_attribute_int(node, "output_datatype", RONDO_ONNX_FLOAT, &to));
  RONDO_TRY(rondo_onnx_attribute_int(node, "periodic", 1, &periodic));
  RONDO_TRY(known_size(node, 0, &shape.dims[0]));
  RONDO_TRY(make_floats(node, &shape, &constant, &elements));
  const size_t period = shape.dims[0] > 1 && periodic == 0 ? shape.dims[0] - 1 : shape.dims[0];
  for (size_t i = 0; i < shape.dims[0]; i++) {
    const double angle = 2 * PI * (double)i / (double)period;
    elements[i] = (float)(form->weights[0] + form->weights[1] * cos(angle) + form->weights[2] * cos(2 * angle));
  }
  return set_floats(node, constant, to);
}

/* MelWeightMatrix -------------------------------------------------------------------------------------------------- */

typedef struct mel_filters {
  size_t filters, length; /* length of the transform */
  double rate, lowest, highest;
} mel_filters;

/* The bin of the transform at which filter `index` begins. */
static size_t bin_of(const mel_filters *of, size_t index) {
  const double first = 2595 * log10(1 + of->lowest / 700), last = 2595 * log10(1 + of->highest / 700);
  const double mel = first + (double)index * (last - first) / (double)(of->filters + 2);
  const double bin = floor((double)(of->length + 1) * 700 * (pow(10, mel / 2595) - 1) / of->rate);
  const double bins = (double)(of->length / 2);
  return bin <= 0 ? 0 : bin >= bins ? (size_t)bins : (size_t)bin;
}

/* Triangles that rise from the begin of a filter to that of the next one, and fall to the one after it. */
static void fill_filters(const mel_filters *of, float *elements) {
  for (size_t filter = 0; filter < of->filters; filter++) {
    const size_t begin = bin_of(of, filter), centre = bin_of(of, filter + 1), end = bin_of(of, filter + 2);
    elements[centre * of->filters + filter] = 1;
    for (size_t bin = begin; bin < centre; bin++)
      elements[bin * of->filters + filter] = (float)(bin - begin) / (float)(centre - begin);
    for (size_t bin = centre; bin < end; bin++)
      elements[bin * of->filters + filter] = (float)(end - bin) / (float)(end - centre);
  }
}

static rondo_status add_mel_weights(rondo_onnx_node *node, const void *data) {
  mel_filters of;
  rondo_onnx_constant *constant;
  float *elements;
  int64_t to;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "output_datatype", RONDO_ONNX_FLOAT, &to));
  RONDO_TRY(known_size(node, 0, &of.filters));
  RONDO_TRY(known_size(node, 1, &of.length));
  RONDO_TRY(known_scalar(node, 2, &of.rate));
  RONDO_TRY(known_scalar(node, 3, &of.lowest));
  RONDO_TRY(known_scalar(node, 4, &of.highest));
  if (!(of.rate > 0 && of.rate < INFINITY && of.lowest >= 0 && of.highest >= of.lowest && of.highest < INFINITY))
    return rondo_onnx_refuse(node, "a rate of %g, and frequencies from %g to %g", of.rate, of.lowest, of.highest);
  const rondo_onnx_shape shape = {.rank = 2, .dims = {of.length / 2 + 1, of.filters}};
  RONDO_TRY(make_floats(node, &shape, &constant, &elements));
  fill_filters(&of, elements);
  return set_floats(node, constant, to);
}

/* The table -------------------------------------------------------------------------------------------------------- */

static const rondo_onnx_row rows[] = {
    {"BlackmanWindow", 17, 0, 1, 1, 0, add_window, &(const window_form){{0.42, -0.5, 0.08}}},
    {"DFT", 17, 0, 1, 3, 0, add_dft, NULL},
    {"HammingWindow", 17, 0, 1, 1, 0, add_window, &(const window_form){{25.0 / 46, -21.0 / 46, 0}}},
    {"HannWindow", 17, 0, 1, 1, 0, add_window, &(const window_form){{0.5, -0.5, 0}}},
    {"MelWeightMatrix", 17, 0, 5, 5, 0, add_mel_weights, NULL},
    {"STFT", 17, 0, 2, 4, 0, add_stft, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_signal, rows);
