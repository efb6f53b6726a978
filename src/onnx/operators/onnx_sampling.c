/* SPDX-License-Identifier: MIT
 * Samples of images at given places: grids, regions and boxes; and blocks that become an image.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "onnx/import/constant.h"
#include "onnx/import/folding.h"
#include "onnx/import/node_attributes.h"
#include "onnx/operators/operator_families.h"
#include "onnx/operators/spatial_window.h"

/* GridSample, AffineGrid ------------------------------------------------------------------------------------------- */

typedef struct named_number {
  const char *name;
  int number;
} named_number;

static rondo_status read_name(rondo_onnx_node *node, const char *attribute, const named_number *names, size_t count,
                              int *out) {
  const char *name;
  RONDO_TRY(rondo_onnx_attribute_text(node, attribute, names[0].name, &name));
  for (size_t i = 0; i < count; i++) {
    *out = names[i].number;
    if (strcmp(name, names[i].name) == 0) return RONDO_OK;
  }
  return rondo_onnx_refuse_attribute(node, attribute, "it is '%s'", name);
}

/* Modes have other names since operator set 20. */
static const named_number modes[] = {{"bilinear", RONDO_INTERPOLATE_LINEAR},
                                     {"linear", RONDO_INTERPOLATE_LINEAR},
                                     {"nearest", RONDO_INTERPOLATE_NEAREST},
                                     {"bicubic", RONDO_INTERPOLATE_CUBIC},
                                     {"cubic", RONDO_INTERPOLATE_CUBIC}};
static const named_number paddings[] = {
    {"zeros", RONDO_GRID_ZEROS}, {"border", RONDO_GRID_BORDER}, {"reflection", RONDO_GRID_REFLECTION}};

static rondo_status add_grid_sample(rondo_onnx_node *node, const void *data) {
  rondo_grid_sample_options options = {RONDO_GRID_SAMPLE_OPTIONS_INIT};
  int64_t align_corners;
  int mode, padding;
  rondo_program *program;
  rondo_value value, grid;
  (void)data;
  RONDO_TRY(read_name(node, "mode", modes, sizeof modes / sizeof *modes, &mode));
  RONDO_TRY(read_name(node, "padding_mode", paddings, sizeof paddings / sizeof *paddings, &padding));
  RONDO_TRY(rondo_onnx_attribute_int(node, "align_corners", 0, &align_corners));
  options.mode = (rondo_interpolation)mode;
  options.padding = (rondo_grid_padding)padding;
  options.align_corners = align_corners != 0;
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_operand(node, 1, &grid));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_grid_sample(program, value, grid, &options, &value));
  return rondo_onnx_set_typed(node, 0, value, rondo_onnx_input_shape(node, 0)->type);
}

static rondo_status add_affine_grid(rondo_onnx_node *node, const void *data) {
  const int64_t *sizes;
  int64_t align_corners;
  size_t count, image[RONDO_MAX_SPATIAL] = {0};
  rondo_program *program;
  rondo_value theta;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_int(node, "align_corners", 0, &align_corners));
  RONDO_TRY(rondo_onnx_known_integers(node, 1, &sizes, &count));
  if (count < 4 || count > 2 + RONDO_MAX_SPATIAL) return rondo_onnx_refuse(node, "it has %zu sizes, not 4 or 5", count);
  for (size_t i = 2; i < count; i++) {
    if (sizes[i] < 1) return rondo_onnx_refuse(node, "the size %lld", (long long)sizes[i]);
    image[i - 2] = (size_t)sizes[i];
  }
  RONDO_TRY(rondo_onnx_operand(node, 0, &theta));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_affine_grid(program, theta, image, align_corners != 0, &theta));
  return rondo_onnx_set_typed(node, 0, theta, rondo_onnx_input_shape(node, 0)->type);
}

/* RoiAlign, MaxRoiPool --------------------------------------------------------------------------------------------- */

static rondo_status read_size(rondo_onnx_node *node, const char *name, size_t *out) {
  int64_t size;
  RONDO_TRY(rondo_onnx_attribute_int(node, name, 1, &size));
  if (size < 1) return rondo_onnx_refuse_attribute(node, name, "it is %lld", (long long)size);
  *out = (size_t)size;
  return RONDO_OK;
}

static rondo_status read_roi_align(rondo_onnx_node *node, rondo_roi_align_options *out) {
  static const named_number pools[] = {{"avg", false}, {"max", true}};
  static const named_number corners[] = {{"half_pixel", true}, {"output_half_pixel", false}};
  int takes_max, half_pixel;
  int64_t ratio;
  RONDO_TRY(read_name(node, "mode", pools, 2, &takes_max));
  RONDO_TRY(read_name(node, "coordinate_transformation_mode", corners, 2, &half_pixel));
  RONDO_TRY(read_size(node, "output_height", &out->size[0]));
  RONDO_TRY(read_size(node, "output_width", &out->size[1]));
  RONDO_TRY(rondo_onnx_attribute_int(node, "sampling_ratio", 0, &ratio));
  RONDO_TRY(rondo_onnx_attribute_float(node, "spatial_scale", 1, &out->spatial_scale));
  if (ratio < 0) return rondo_onnx_refuse_attribute(node, "sampling_ratio", "it is negative");
  out->sampling_ratio = (size_t)ratio;
  out->takes_max = takes_max != 0;
  out->half_pixel = half_pixel != 0 && node->opset >= 16;
  return RONDO_OK;
}

static rondo_status add_roi_align(rondo_onnx_node *node, const void *data) {
  rondo_roi_align_options options = {RONDO_ROI_ALIGN_OPTIONS_INIT};
  rondo_program *program;
  rondo_value value, rois, images;
  (void)data;
  RONDO_TRY(read_roi_align(node, &options));
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_operand(node, 1, &rois));
  RONDO_TRY(rondo_onnx_operand(node, 2, &images));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_cast(program, rois, RONDO_F32, &rois));
  RONDO_TRY(rondo_op_roi_align(program, value, rois, images, &options, &value));
  return rondo_onnx_set_typed(node, 0, value, rondo_onnx_input_shape(node, 0)->type);
}

static rondo_status add_max_roi_pool(rondo_onnx_node *node, const void *data) {
  const int64_t *given;
  size_t count, size[2];
  float spatial_scale;
  rondo_program *program;
  rondo_value value, rois;
  (void)data;
  RONDO_TRY(rondo_onnx_attribute_ints(node, "pooled_shape", &given, &count));
  RONDO_TRY(rondo_onnx_attribute_float(node, "spatial_scale", 1, &spatial_scale));
  if (count != 2 || given[0] < 1 || given[1] < 1)
    return rondo_onnx_refuse_attribute(node, "pooled_shape", "it is not two sizes");
  for (size_t i = 0; i < 2; i++) size[i] = (size_t)given[i];
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_operand(node, 1, &rois));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_cast(program, rois, RONDO_F32, &rois));
  RONDO_TRY(rondo_op_max_roi_pool(program, value, rois, size, spatial_scale, &value));
  return rondo_onnx_set_typed(node, 0, value, rondo_onnx_input_shape(node, 0)->type);
}

/* NonMaxSuppression ------------------------------------------------------------------------------------------------ */

/* A known number, or `otherwise` where it is left out. */
static rondo_status known_number(rondo_onnx_node *node, size_t index, double otherwise, double *out) {
  const double *known;
  size_t count;
  *out = otherwise;
  if (!rondo_onnx_has_input(node, index)) return RONDO_OK;
  RONDO_TRY(rondo_onnx_known_numbers(node, index, &known, &count));
  if (count != 1) return rondo_onnx_refuse(node, "input %zu has %zu elements, not one", index, count);
  *out = known[0];
  return RONDO_OK;
}

/* Selects boxes in the program of the inner node, whose inputs are boxes and scores. */
static rondo_status select_boxes(rondo_onnx_node *inner, const rondo_non_max_suppression_options *options) {
  rondo_program *program;
  rondo_value boxes, scores, selected, count;
  RONDO_TRY(rondo_onnx_operand(inner, 0, &boxes));
  RONDO_TRY(rondo_onnx_operand(inner, 1, &scores));
  RONDO_TRY(rondo_onnx_node_program(inner, &program));
  RONDO_TRY(rondo_op_non_max_suppression(program, boxes, scores, options, &selected, &count));
  RONDO_TRY(rondo_op_cast(program, selected, RONDO_I64, &selected));
  return rondo_onnx_set_typed(inner, 0, selected, RONDO_ONNX_INT64);
}

/* The first rows, of those that name a box. */
static rondo_status set_selected(rondo_onnx_node *node, rondo_onnx_constant *all) {
  rondo_onnx_shape shape = {.type = RONDO_ONNX_INT64, .rank = 2, .dims = {0, 3}};
  rondo_onnx_constant *selected;
  void *elements;
  RONDO_TRY(rondo_onnx_folding_compute(node->importer, all));
  const int64_t *rows = all->elements;
  while (shape.dims[0] < all->shape.dims[0] && rows[3 * shape.dims[0]] >= 0) shape.dims[0]++;
  RONDO_TRY(rondo_onnx_constant_make(node->importer, &shape, &selected, &elements));
  if (selected->bytes > 0) memcpy(elements, rows, selected->bytes);
  rondo_onnx_set_constant(node, 0, selected);
  return RONDO_OK;
}

static rondo_status read_suppression(rondo_onnx_node *node, rondo_non_max_suppression_options *out) {
  int64_t center_boxes;
  double most, overlap, score;
  RONDO_TRY(rondo_onnx_attribute_int(node, "center_point_box", 0, &center_boxes));
  RONDO_TRY(known_number(node, 2, 0, &most));
  RONDO_TRY(known_number(node, 3, 0, &overlap));
  RONDO_TRY(known_number(node, 4, 0, &score));
  *out = (rondo_non_max_suppression_options){RONDO_NON_MAX_SUPPRESSION_OPTIONS_INIT};
  out->center_boxes = center_boxes != 0;
  out->iou_threshold = (float)overlap;
  out->score_threshold = (float)score;
  out->has_score_threshold = rondo_onnx_has_input(node, 4);
  out->per_class = most >= 1 ? (size_t)fmin(most, 0x1p53) : 0;
  return RONDO_OK;
}

/* Selects in each run, with a count. There is memory for all that can be selected of the images' classes. */
static rondo_status select_in_run(rondo_onnx_node *node, rondo_non_max_suppression_options *options) {
  rondo_onnx_shape selectable = *rondo_onnx_input_shape(node, 1);
  rondo_program *program;
  rondo_value boxes, scores, selected, count;
  if (selectable.rank != 3) return rondo_onnx_refuse(node, "input 1 has %zu dimensions, not 3", selectable.rank);
  if (options->per_class < selectable.dims[2]) selectable.dims[2] = options->per_class;
  const size_t most = rondo_onnx_shape_count(&selectable);
  options->bound = rondo_onnx_bound_of(node, most) < most ? rondo_onnx_bound_of(node, most) : 0;
  RONDO_TRY(rondo_onnx_operand(node, 0, &boxes));
  RONDO_TRY(rondo_onnx_operand(node, 1, &scores));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_non_max_suppression(program, boxes, scores, options, &selected, &count));
  RONDO_TRY(rondo_op_cast(program, selected, RONDO_I64, &selected));
  RONDO_TRY(rondo_op_cast(program, count, RONDO_I64, &count));
  RONDO_TRY(rondo_onnx_reshape(node, count, NULL, 0, &count));
  return rondo_onnx_set_counted(node, 0, selected, RONDO_ONNX_INT64, 0, count);
}

/* How many boxes are selected decides the shape, which is known if boxes and scores are. */
static rondo_status add_non_max_suppression(rondo_onnx_node *node, const void *data) {
  const rondo_onnx_shape none = {.type = RONDO_ONNX_INT64, .rank = 2, .dims = {0, 3}};
  rondo_onnx_import_value inputs[2];
  const rondo_onnx_constant *known;
  rondo_onnx_inner_node inner;
  rondo_non_max_suppression_options options;
  (void)data;
  RONDO_TRY(read_suppression(node, &options));
  if (options.per_class == 0 || rondo_onnx_shape_count(rondo_onnx_input_shape(node, 0)) == 0)
    return rondo_onnx_set_empty(node, 0, &none);
  if (!rondo_onnx_is_constant(node, 0) || !rondo_onnx_is_constant(node, 1)) return select_in_run(node, &options);
  for (size_t i = 0; i < 2; i++) {
    RONDO_TRY(rondo_onnx_known_input(node, i, &known));
    inputs[i] = (rondo_onnx_import_value){
        .kind = RONDO_ONNX_TENSOR_VALUE, .shape = node->inputs[i].shape, .constant = node->inputs[i].constant};
  }
  RONDO_TRY(rondo_onnx_inner_begin(node, inputs, 2, &inner));
  RONDO_TRY(select_boxes(&inner.node, &options));
  return set_selected(node, inner.output.constant);
}

/* Col2Im ----------------------------------------------------------------------------------------------------------- */

static rondo_status known_sizes(rondo_onnx_node *node, size_t index, size_t *out, size_t *out_count) {
  const int64_t *sizes;
  RONDO_TRY(rondo_onnx_known_integers(node, index, &sizes, out_count));
  if (*out_count < 1 || *out_count > RONDO_MAX_SPATIAL)
    return rondo_onnx_refuse(node, "input %zu has %zu sizes, and 1 to %d are supported", index, *out_count,
                             RONDO_MAX_SPATIAL);
  for (size_t i = 0; i < *out_count; i++) {
    if (sizes[i] < 1) return rondo_onnx_refuse(node, "the size %lld", (long long)sizes[i]);
    out[i] = (size_t)sizes[i];
  }
  return RONDO_OK;
}

static rondo_status read_list(rondo_onnx_node *node, const char *name, size_t count, size_t *out) {
  const int64_t *given;
  size_t have;
  RONDO_TRY(rondo_onnx_attribute_ints(node, name, &given, &have));
  if (given != NULL && have != count)
    return rondo_onnx_refuse_attribute(node, name, "it has %zu numbers, not %zu", have, count);
  for (size_t i = 0; given != NULL && i < count; i++) {
    if (given[i] < 0) return rondo_onnx_refuse_attribute(node, name, "a number is negative");
    out[i] = (size_t)given[i];
  }
  return RONDO_OK;
}

static rondo_status add_col2im(rondo_onnx_node *node, const void *data) {
  rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT};
  size_t image[RONDO_MAX_SPATIAL], block[RONDO_MAX_SPATIAL], pads[2 * RONDO_MAX_SPATIAL] = {0}, rank, block_rank;
  rondo_program *program;
  rondo_value value;
  (void)data;
  RONDO_TRY(known_sizes(node, 1, image, &rank));
  RONDO_TRY(known_sizes(node, 2, block, &block_rank));
  if (block_rank != rank) return rondo_onnx_refuse(node, "blocks of %zu dimensions for %zu", block_rank, rank);
  RONDO_TRY(read_list(node, "dilations", rank, options.dilation));
  RONDO_TRY(read_list(node, "strides", rank, options.stride));
  RONDO_TRY(read_list(node, "pads", 2 * rank, pads));
  memcpy(options.padding_before, pads, rank * sizeof *pads);
  memcpy(options.padding_after, pads + rank, rank * sizeof *pads);
  RONDO_TRY(rondo_onnx_operand(node, 0, &value));
  RONDO_TRY(rondo_onnx_node_program(node, &program));
  RONDO_TRY(rondo_op_fold(program, value, image, block, &options, rank, &value));
  return rondo_onnx_set_typed(node, 0, value, rondo_onnx_input_shape(node, 0)->type);
}

/* The table -------------------------------------------------------------------------------------------------------- */

static const rondo_onnx_row rows[] = {
    {"AffineGrid", 20, 0, 2, 2, 0, add_affine_grid, NULL},
    {"Col2Im", 18, 0, 3, 3, 0, add_col2im, NULL},
    {"GridSample", 16, 0, 2, 2, 0, add_grid_sample, NULL},
    {"MaxRoiPool", 1, 0, 2, 2, 0, add_max_roi_pool, NULL},
    {"NonMaxSuppression", 10, 0, 2, 5, 0, add_non_max_suppression, NULL},
    {"RoiAlign", 10, 0, 3, 3, 0, add_roi_align, NULL},
};

RONDO_ONNX_FAMILY(rondo_onnx_sampling, rows);
