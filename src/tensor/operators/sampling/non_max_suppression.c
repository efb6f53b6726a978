/* SPDX-License-Identifier: MIT
 * non_max_suppression: for each image and class, the best boxes that do not overlap better ones, as NonMaxSuppression
 * of ONNX. The first kernel selects the boxes of each image and class in a row of the workspace; the second one lists
 * all of them, the rows in their order. Of equal scores, the first box is better. Threads: as tensor/program/operator.h
 * says.
 */
#include <math.h>
#include <string.h>

#include "tensor/operators/common/operator_tools.h"

enum { BOXES, SCORES };           /* inputs */
enum { SELECTED, COUNT };         /* results */
enum { PER_CLASS, BOUND, SIZES }; /* sizes */
enum { IOU, LEAST };              /* numbers */
enum { CENTERS };                 /* flags */

/* A scalar argument of the kernels; without padding. A row is a class of an image. */
typedef struct nms_shape {
  size_t images, classes, boxes, per_class, bound;
  float iou, least;
  uint32_t centers, unused;
} nms_shape;

/* The workspace: the number of boxes of each row, the selected boxes of each row, and one byte for each box of each
 * row: whether it cannot be selected any more. */
static size_t rows_of(const nms_shape *s) { return s->images * s->classes; }
static int32_t *row_of(const nms_shape *s, int32_t *workspace, size_t row) {
  return workspace + rows_of(s) + row * s->per_class;
}
static unsigned char *out_of(const nms_shape *s, int32_t *workspace, size_t row) {
  return (unsigned char *)row_of(s, workspace, rows_of(s)) + row * s->boxes;
}
static size_t workspace_bytes(const nms_shape *s) {
  return rows_of(s) * ((s->per_class + 1) * sizeof(int32_t) + s->boxes);
}

typedef struct box {
  float top, left, bottom, right;
} box;

/* Corners come in any order. */
static box box_of(const nms_shape *s, const float *at) {
  if (s->centers != 0) return (box){at[1] - at[3] / 2, at[0] - at[2] / 2, at[1] + at[3] / 2, at[0] + at[2] / 2};
  return (box){fminf(at[0], at[2]), fminf(at[1], at[3]), fmaxf(at[0], at[2]), fmaxf(at[1], at[3])};
}

static float area_of(box b) { return (b.bottom - b.top) * (b.right - b.left); }

static bool overlaps(const nms_shape *s, box a, box b) {
  const float height = fminf(a.bottom, b.bottom) - fmaxf(a.top, b.top);
  const float width = fminf(a.right, b.right) - fmaxf(a.left, b.left);
  if (height <= 0 || width <= 0) return false;
  const float both = height * width, either = area_of(a) + area_of(b) - both;
  return either > 0 && both / either > s->iou;
}

/* The best box that is left; `boxes` if there is none. */
static size_t best_of(const nms_shape *s, const float *scores, const unsigned char *is_out) {
  size_t best = s->boxes;
  for (size_t i = 0; i < s->boxes; i++)
    if (!is_out[i] && (best == s->boxes || scores[i] > scores[best])) best = i;
  return best;
}

static void select_row(const nms_shape *s, const float *boxes, const float *scores, unsigned char *is_out, int32_t *to,
                       int32_t *count) {
  *count = 0;
  for (size_t i = 0; i < s->boxes; i++) is_out[i] = (unsigned char)!(scores[i] > s->least);
  while ((size_t)*count < s->per_class) {
    const size_t best = best_of(s, scores, is_out);
    if (best == s->boxes) return;
    to[(*count)++] = (int32_t)best;
    is_out[best] = 1;
    const box chosen = box_of(s, boxes + 4 * best);
    for (size_t i = 0; i < s->boxes; i++)
      if (!is_out[i] && overlaps(s, chosen, box_of(s, boxes + 4 * i))) is_out[i] = 1;
  }
}

/* shape, boxes, scores, workspace */
static void non_max_select_cpu(rondo_blocks blocks, void *const *args) {
  const nms_shape *s = args[0];
  int32_t *workspace = RONDO_ARG(int32_t *, 3);
  RONDO_EACH_ITEM(row, blocks, rows_of(s)) {
    const float *boxes = RONDO_ARG(const float *, 1) + row / s->classes * s->boxes * 4;
    select_row(s, boxes, RONDO_ARG(const float *, 2) + row * s->boxes, out_of(s, workspace, row),
               row_of(s, workspace, row), &workspace[row]);
  }
}

/* shape, workspace, selected, count. One block. */
static void non_max_list_cpu(rondo_blocks blocks, void *const *args) {
  const nms_shape *s = args[0];
  int32_t *workspace = RONDO_ARG(int32_t *, 1), *to = RONDO_ARG(int32_t *, 2), *count = RONDO_ARG(int32_t *, 3);
  size_t at = 0;
  (void)blocks;
  memset(to, 0xff, s->bound * 3 * sizeof *to);
  for (size_t row = 0; row < rows_of(s); row++) {
    for (int32_t i = 0; i < workspace[row] && at < s->bound; i++, at++) {
      to[at * 3] = (int32_t)(row / s->classes);
      to[at * 3 + 1] = (int32_t)(row % s->classes);
      to[at * 3 + 2] = row_of(s, workspace, row)[i];
    }
  }
  *count = (int32_t)at;
}

RONDO_UNTYPED_KERNEL(non_max_select, non_max_suppression, RONDO_SCALAR(nms_shape), RONDO_READS, RONDO_READS,
                     RONDO_UPDATES);
RONDO_UNTYPED_KERNEL(non_max_list, non_max_suppression, RONDO_SCALAR(nms_shape), RONDO_READS, RONDO_WRITES,
                     RONDO_WRITES);

/* Row -------------------------------------------------------------------------------------------------------------- */

static nms_shape shape_of(const rondo_shape *scores, const rondo_attributes *attributes) {
  return (nms_shape){.images = scores->dims[0],
                     .classes = scores->dims[1],
                     .boxes = scores->dims[2],
                     .per_class = attributes->sizes[PER_CLASS],
                     .bound = attributes->sizes[BOUND],
                     .iou = attributes->numbers[IOU],
                     .least = attributes->numbers[LEAST],
                     .centers = attributes->flags[CENTERS]};
}

static rondo_status infer_nms(const rondo_program *program, const rondo_operation *operation, rondo_shape *results) {
  const rondo_shape *boxes = rondo_operation_input(program, operation, BOXES);
  const rondo_shape *scores = rondo_operation_input(program, operation, SCORES);
  RONDO_TRY(rondo_require_input(program, operation, BOXES, RONDO_F32, 3));
  RONDO_TRY(rondo_require_input(program, operation, SCORES, RONDO_F32, 3));
  const size_t *sizes = operation->attributes.sizes;
  if (boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2] || boxes->dims[2] != 4)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "boxes must be [images, boxes, 4], and scores [images, classes, boxes]");
  if (sizes[BOUND] == 0 || sizes[BOUND] > INT32_MAX || scores->dims[2] > INT32_MAX)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "the result would have %zu rows; use from 1 to 2^31 - 1", sizes[BOUND]);
  results[SELECTED] = rondo_shape_matrix(RONDO_I32, sizes[BOUND], 3);
  results[COUNT] = rondo_shape_vector(RONDO_I32, 1);
  return RONDO_OK;
}

static rondo_status prepare_nms(rondo_resources *resources, const rondo_program *program, uint32_t number,
                                size_t *out_workspace_bytes) {
  const rondo_operation *operation = &program->operations.items[number];
  const nms_shape shape = shape_of(rondo_program_shape(program, operation->inputs[SCORES]), &operation->attributes);
  (void)resources;
  *out_workspace_bytes = workspace_bytes(&shape);
  return RONDO_OK;
}

static rondo_status emit_nms(rondo_emitter *emitter, const rondo_operation *operation) {
  const nms_shape shape = shape_of(rondo_emit_shape(emitter, operation->inputs[SCORES]), &operation->attributes);
  const rondo_grain grain = {1, 1};
  RONDO_TRY(rondo_emit_operands(
      emitter, operation, &non_max_select_code, rondo_emit_grid(emitter, rows_of(&shape), grain),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(BOXES), RONDO_INPUT(SCORES), RONDO_WORKSPACE)));
  return rondo_emit_operands(
      emitter, operation, &non_max_list_code, rondo_tile_grid(1),
      RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_WORKSPACE, RONDO_RESULT(SELECTED), RONDO_RESULT(COUNT)));
}

RONDO_OPERATOR(non_max_suppression, .types = RONDO_TYPE_BIT(RONDO_F32), .inputs = {"boxes", "scores"}, .required = 2,
               .result_count = 2, .constants = 1u << BOXES | 1u << SCORES, .infer = infer_nms, .prepare = prepare_nms,
               .emit = emit_nms);

static rondo_status check(const rondo_non_max_suppression_options *given) {
  if (isfinite(given->iou_threshold) && !isnan(given->score_threshold)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "non_max_suppression: the thresholds %g and %g must be numbers, the first one finite",
                    (double)given->iou_threshold, (double)given->score_threshold);
}

rondo_status rondo_op_non_max_suppression(rondo_program *program, rondo_value boxes, rondo_value scores,
                                          const rondo_non_max_suppression_options *options, rondo_value *out_selected,
                                          rondo_value *out_count) {
  rondo_non_max_suppression_options given;
  uint32_t index;
  if (out_selected != NULL) *out_selected = (rondo_value){0};
  RONDO_TRY(rondo_program_begin_of(program, "non_max_suppression", scores, "scores", out_count, &index));
  RONDO_TRY(rondo_versioned_read("rondo_non_max_suppression_options", options, &given, sizeof given));
  RONDO_TRY(check(&given));
  const rondo_shape *shape = rondo_program_shape(program, index);
  const size_t boxes_of_image = shape->rank == 3 ? shape->dims[2] : 1;
  size_t most = given.per_class == 0 || given.per_class > boxes_of_image ? boxes_of_image : given.per_class;
  const size_t rows = shape->rank == 3 ? shape->dims[0] * shape->dims[1] : 1;
  const rondo_attributes attributes = {
      .sizes = {most, given.bound == 0 ? rows * most : given.bound},
      .size_count = SIZES,
      .numbers = {[IOU] = given.iou_threshold, [LEAST] = given.has_score_threshold ? given.score_threshold : -INFINITY},
      .flags = {[CENTERS] = given.center_boxes}};
  RONDO_TRY(rondo_program_apply(program, &rondo_operator_non_max_suppression, (const rondo_value[]){boxes, scores}, 2,
                                &attributes, out_selected));
  *out_count = rondo_program_tag(program, program->operations.items[program->operations.count - 1].results[COUNT]);
  return RONDO_OK;
}
