/* SPDX-License-Identifier: MIT
 * Resize, and Upsample, which came before it.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"

#define MOST_RESIZED 4 /* dimensions of rondo_op_interpolate */
#define MOST_SIZE 1e9  /* of a size that is computed */

/* What becomes of each dimension of the input. */
typedef struct resizing {
  rondo_interpolate_options options; /* without sizes, scales and crops */
  size_t size[RONDO_ONNX_MOST_DIMENSIONS];
  double scale[RONDO_ONNX_MOST_DIMENSIONS];
  double first[RONDO_ONNX_MOST_DIMENSIONS], last[RONDO_ONNX_MOST_DIMENSIONS]; /* of a crop */
} resizing;

/* Modes ------------------------------------------------------------------------------------------------------------ */

static rondo_status choose(rondo_onnx_node *node, const char *attribute, const char *name, const char *const *names,
                           size_t count, size_t *out) {
  for (*out = 0; *out < count; ++*out)
    if (strcmp(name, names[*out]) == 0) return RONDO_OK;
  return rondo_onnx_refuse_attribute(node, attribute, "it is '%s'", name);
}

static rondo_status read_mode(rondo_onnx_node *node, rondo_interpolate_options *out) {
  static const char *const names[] = {"nearest", "linear", "cubic"}; /* in the order of rondo_interpolation */
  const char *name;
  size_t index;
  RONDO_TRY(rondo_onnx_attribute_text(node, "mode", "nearest", &name));
  RONDO_TRY(choose(node, "mode", strcmp(name, "bilinear") == 0 ? "linear" : name, names, 3, &index));
  out->mode = (rondo_interpolation)index;
  return RONDO_OK;
}

/* In the orders of rondo_coordinates and rondo_nearest. */
static const char *const coordinate_names[] = {"half_pixel",         "align_corners",        "asymmetric",
                                               "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize"};
static const char *const nearest_names[] = {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"};

/* tf_half_pixel_for_nn: coordinates that are more by a half than those of half_pixel. */
static rondo_status use_corners(rondo_onnx_node *node, rondo_interpolate_options *out) {
  const bool is_floor = out->nearest == RONDO_NEAREST_FLOOR;
  if (out->mode != RONDO_INTERPOLATE_NEAREST || (!is_floor && out->nearest != RONDO_NEAREST_ROUND_PREFER_FLOOR))
    return rondo_onnx_refuse_attribute(node, "coordinate_transformation_mode",
                                       "tf_half_pixel_for_nn is supported with nearest, rounded down");
  out->coordinates = RONDO_COORDINATES_HALF_PIXEL;
  out->nearest = is_floor ? RONDO_NEAREST_ROUND_PREFER_CEIL : RONDO_NEAREST_CEIL;
  return RONDO_OK;
}

static rondo_status read_coordinates(rondo_onnx_node *node, rondo_interpolate_options *out) {
  const char *coordinates, *nearest;
  size_t index;
  RONDO_TRY(rondo_onnx_attribute_text(node, "coordinate_transformation_mode", "half_pixel", &coordinates));
  RONDO_TRY(rondo_onnx_attribute_text(node, "nearest_mode", "round_prefer_floor", &nearest));
  RONDO_TRY(choose(node, "nearest_mode", nearest, nearest_names, 4, &index));
  out->nearest = (rondo_nearest)index;
  if (strcmp(coordinates, "tf_half_pixel_for_nn") == 0) return use_corners(node, out);
  RONDO_TRY(choose(node, "coordinate_transformation_mode", coordinates, coordinate_names, 6, &index));
  out->coordinates = (rondo_coordinates)index;
  return RONDO_OK;
}

static rondo_status read_options(rondo_onnx_node *node, rondo_interpolate_options *out) {
  int64_t antialias, exclude_outside;
  RONDO_TRY(read_mode(node, out));
  out->coordinates = RONDO_COORDINATES_ASYMMETRIC; /* of Upsample, and of Resize in operator set 10 */
  if (node->opset < 11) return RONDO_OK;
  RONDO_TRY(read_coordinates(node, out));
  RONDO_TRY(rondo_onnx_attribute_int(node, "antialias", 0, &antialias));
  RONDO_TRY(rondo_onnx_attribute_int(node, "exclude_outside", 0, &exclude_outside));
  RONDO_TRY(rondo_onnx_attribute_float(node, "cubic_coeff_a", -0.75f, &out->cubic));
  RONDO_TRY(rondo_onnx_attribute_float(node, "extrapolation_value", 0, &out->outside));
  out->antialias = antialias != 0 && out->mode != RONDO_INTERPOLATE_NEAREST;
  out->exclude_outside = exclude_outside != 0 && out->mode != RONDO_INTERPOLATE_NEAREST;
  return RONDO_OK;
}

/* Sizes ------------------------------------------------------------------------------------------------------------ */

/* Which axis each given number is about: the attribute axes, or all in their order. */
static rondo_status find_axes(rondo_onnx_node *node, size_t *axes, size_t *out_count) {
  const size_t rank = rondo_onnx_input_shape(node, 0)->rank;
  const int64_t *given;
  RONDO_TRY(rondo_onnx_attribute_ints(node, "axes", &given, out_count));
  if (given == NULL) *out_count = rank;
  if (*out_count > rank) return rondo_onnx_refuse_attribute(node, "axes", "%zu for %zu dimensions", *out_count, rank);
  for (size_t i = 0; i < *out_count; i++)
    RONDO_TRY(rondo_onnx_axis(given != NULL ? given[i] : (int64_t)i, rank, &axes[i]));
  return RONDO_OK;
}

/* Sizes are rounded down, as products of floats. */
static rondo_status use_scales(rondo_onnx_node *node, const double *scales, const size_t *axes, size_t count,
                               resizing *out) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  for (size_t i = 0; i < count; i++) {
    const float size = floorf((float)scales[i] * (float)have->dims[axes[i]]);
    if (!(size >= 1 && size < (float)MOST_SIZE))
      return rondo_onnx_refuse(node, "a scale of %g for the size %zu", scales[i], have->dims[axes[i]]);
    out->size[axes[i]] = (size_t)size;
    out->scale[axes[i]] = scales[i];
  }
  return RONDO_OK;
}

/* One scale for all axes, so that no size is above, or below, what is wanted. */
static rondo_status keep_ratio(rondo_onnx_node *node, bool not_larger, const size_t *axes, size_t count,
                               resizing *inout) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  double scale = not_larger ? (double)INFINITY : 0;
  for (size_t i = 0; i < count; i++) {
    const double ratio = (double)inout->size[axes[i]] / (double)have->dims[axes[i]];
    scale = not_larger ? fmin(scale, ratio) : fmax(scale, ratio);
  }
  for (size_t i = 0; i < count; i++) {
    const double size = floor((double)have->dims[axes[i]] * scale + 0.5);
    if (!(size < MOST_SIZE))
      return rondo_onnx_refuse(node, "a scale of %g for the size %zu", scale, have->dims[axes[i]]);
    inout->size[axes[i]] = size >= 1 ? (size_t)size : 1;
    inout->scale[axes[i]] = scale;
  }
  return RONDO_OK;
}

static rondo_status use_sizes(rondo_onnx_node *node, const size_t *axes, size_t count, resizing *out) {
  static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
  const int64_t *sizes;
  const char *name;
  size_t given, policy;
  RONDO_TRY(rondo_onnx_attribute_text(node, "keep_aspect_ratio_policy", "stretch", &name));
  RONDO_TRY(choose(node, "keep_aspect_ratio_policy", name, policies, 3, &policy));
  RONDO_TRY(rondo_onnx_known_integers(node, 3, &sizes, &given));
  if (given != count) return rondo_onnx_refuse(node, "%zu sizes for %zu axes", given, count);
  for (size_t i = 0; i < count; i++) {
    if (sizes[i] < 1) return rondo_onnx_refuse(node, "the size %lld", (long long)sizes[i]);
    out->size[axes[i]] = (size_t)sizes[i];
    out->scale[axes[i]] = 0; /* the ratio of the sizes */
  }
  return policy == 0 ? RONDO_OK : keep_ratio(node, policy == 1, axes, count, out);
}

static rondo_status read_crop(rondo_onnx_node *node, const size_t *axes, size_t count, resizing *out) {
  const double *region;
  size_t given;
  if (out->options.coordinates != RONDO_COORDINATES_CROP) return RONDO_OK;
  if (!rondo_onnx_has_input(node, 1)) return rondo_onnx_refuse(node, "it has no region to crop");
  RONDO_TRY(rondo_onnx_known_numbers(node, 1, &region, &given));
  if (given != 2 * count) return rondo_onnx_refuse(node, "a region of %zu numbers for %zu axes", given, count);
  for (size_t i = 0; i < count; i++) {
    out->first[axes[i]] = region[i];
    out->last[axes[i]] = region[count + i];
  }
  return RONDO_OK;
}

static bool has_elements(const rondo_onnx_node *node, size_t index) {
  return rondo_onnx_has_input(node, index) && rondo_onnx_shape_count(rondo_onnx_input_shape(node, index)) > 0;
}

/* `scales` is the input that has them. */
static rondo_status read_sizes(rondo_onnx_node *node, size_t scales_input, resizing *out) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  size_t axes[RONDO_ONNX_MOST_DIMENSIONS], count, given;
  const double *scales;
  for (size_t i = 0; i < have->rank; i++) {
    out->size[i] = have->dims[i];
    out->scale[i] = out->last[i] = 1;
  }
  RONDO_TRY(find_axes(node, axes, &count));
  RONDO_TRY(read_crop(node, axes, count, out));
  if (has_elements(node, 3)) return use_sizes(node, axes, count, out);
  if (!has_elements(node, scales_input)) return rondo_onnx_refuse(node, "it has no scales or sizes");
  RONDO_TRY(rondo_onnx_known_numbers(node, scales_input, &scales, &given));
  if (given != count) return rondo_onnx_refuse(node, "%zu scales for %zu axes", given, count);
  return use_scales(node, scales, axes, count, out);
}

/* The operator ----------------------------------------------------------------------------------------------------- */

static bool is_changed(const resizing *of, const rondo_onnx_shape *have, size_t i) {
  return of->size[i] != have->dims[i] || (of->scale[i] != 1 && of->scale[i] != 0) || of->first[i] != 0 ||
         of->last[i] != 1;
}

/* Interpolates the dimensions from the first that changes on, with those before it as one. */
static rondo_status interpolate(rondo_onnx_node *node, resizing *of, rondo_value *inout) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  size_t first = 0, dims[2 + MOST_RESIZED] = {1, 1};
  rondo_program *program;
  while (first < have->rank && !is_changed(of, have, first)) dims[0] *= have->dims[first++];
  if (first == have->rank) return RONDO_OK;
  const size_t resized = have->rank - first;
  if (resized > MOST_RESIZED)
    return rondo_onnx_refuse(node, "it resizes %zu dimensions, and %d are supported", resized, MOST_RESIZED);
  for (size_t i = 0; i < resized; i++) {
    dims[2 + i] = have->dims[first + i];
    of->options.size[i] = of->size[first + i];
    of->options.scale[i] = of->scale[first + i];
    of->options.crop_first[i] = of->first[first + i];
    of->options.crop_last[i] = of->last[first + i];
  }
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_onnx_reshape(node, *inout, dims, 2 + resized, inout));
  RONDO_TRY(rondo_op_interpolate(program, *inout, &of->options, inout));
  return rondo_onnx_reshape(node, *inout, of->size, have->rank, inout);
}

/* Integers are computed as floats, and rounded. */
static rondo_status add_interpolation(rondo_onnx_node *node, resizing *of) {
  const rondo_onnx_shape *have = rondo_onnx_input_shape(node, 0);
  rondo_program *program;
  rondo_type type;
  rondo_value value;
  RONDO_TRY(rondo_onnx_program_type(node->importer, have->type, &type));
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  const bool is_float = type == RONDO_F32 || type == RONDO_F16 || type == RONDO_BF16;
  if (!is_float) RONDO_TRY(rondo_op_cast(program, value, RONDO_F32, &value));
  RONDO_TRY(interpolate(node, of, &value));
  if (!is_float && of->options.mode != RONDO_INTERPOLATE_NEAREST) RONDO_TRY(rondo_op_round(program, value, &value));
  RONDO_TRY(rondo_op_cast(program, value, type, &value));
  return rondo_onnx_set_typed(node, 0, value, have->type);
}

static rondo_status add_resize(rondo_onnx_node *node, const void *data) {
  resizing of = {.options = {RONDO_INTERPOLATE_OPTIONS_INIT}};
  (void)data;
  RONDO_TRY(read_options(node, &of.options));
  RONDO_TRY(read_sizes(node, node->opset < 11 ? 1 : 2, &of));
  return add_interpolation(node, &of);
}

/* Operator sets 7 and 8: the scales are an attribute. */
static rondo_status add_upsample(rondo_onnx_node *node, const void *data) {
  const size_t rank = rondo_onnx_input_shape(node, 0)->rank;
  resizing of = {.options = {RONDO_INTERPOLATE_OPTIONS_INIT}};
  size_t axes[RONDO_ONNX_MOST_DIMENSIONS], count;
  double scales[RONDO_ONNX_MOST_DIMENSIONS];
  const float *given;
  (void)data;
  RONDO_TRY(read_options(node, &of.options));
  RONDO_TRY(rondo_onnx_attribute_floats(node, "scales", &given, &count));
  if (count != rank) return rondo_onnx_refuse_attribute(node, "scales", "%zu for %zu dimensions", count, rank);
  for (size_t i = 0; i < rank; i++) {
    axes[i] = i;
    scales[i] = (double)given[i];
    of.last[i] = 1;
  }
  RONDO_TRY(use_scales(node, scales, axes, rank, &of));
  return add_interpolation(node, &of);
}

static const rondo_onnx_row rows[] = {
    {"Resize", 10, 10, 2, 2, 0, add_resize, NULL},
    {"Resize", 11, 0, 1, 4, 0, add_resize, NULL},
    {"Upsample", 7, 8, 1, 1, 0, add_upsample, NULL},
    {"Upsample", 9, 9, 2, 2, 0, add_resize, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_resize, rows);
