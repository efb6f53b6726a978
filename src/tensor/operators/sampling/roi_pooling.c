/* SPDX-License-Identifier: MIT
 * roi_align and max_roi_pool: a grid of bins over each region of interest of a feature map. roi_align takes the mean or
 * the maximum of samples between elements (He et al., "Mask R-CNN", 2017); max_roi_pool the maximum of the elements
 * (Girshick, "Fast R-CNN", 2015). Both compute in F32 and have no gradient. A wrong index of an image fails the run,
 * and the region is taken from image 0. Threads: as tensor/program/operator.h says.
 */
#include <math.h>

#include "base/binary_search.h"
#include "tensor/operators/common/operator_tools.h"

enum { VALUE, ROIS, IMAGES };           /* inputs; max_roi_pool has no IMAGES */
enum { HEIGHT, WIDTH, SAMPLES, SIZES }; /* sizes; SAMPLES: of a bin along each axis; 0: as many as it has elements */
enum { SCALE };                         /* numbers */
enum { TAKES_MAX, HALF_PIXEL };         /* flags */

/* A scalar argument of the kernels; without padding. */
typedef struct roi_shape {
  size_t images, channels, in[2], regions, out[2], samples;
  float scale;
  uint32_t takes_max, half_pixel, wide_indices;
} roi_shape;

/* roi_align -------------------------------------------------------------------------------------------------------- */

#define MOST_SAMPLES 1024 /* that a caller can ask for */

/* A region along an axis: its beginning, the size of a bin, and the samples of one. */
typedef struct region {
  float first, bin;
  size_t samples;
} region;

static region region_of(const roi_shape *s, const float *roi, int axis) {
  const float offset = s->half_pixel != 0 ? 0.5f : 0.0f, bins = (float)s->out[axis];
  const float first = roi[1 - axis] * s->scale - offset, last = roi[3 - axis] * s->scale - offset;
  const float length = s->half_pixel != 0 || last - first > 1 ? last - first : 1.0f, most = (float)(1 << 20);
  const float own = ceilf(length / bins);
  region r = {first, length / bins, s->samples};
  if (s->samples == 0) r.samples = own >= 1 ? (size_t)(own < most ? own : most) : 0;
  return r;
}

/* The two neighbours of a sample along an axis, and the share of the second one; false: the sample is outside. */
typedef struct between {
  size_t low, high;
  float share;
} between;

static bool find_neighbours(float at, size_t size, between *out) {
  if (!(at >= -1 && at <= (float)size)) return false;
  const float inside = at <= 0 ? 0 : at;
  const size_t low = (size_t)inside;
  *out = low >= size - 1 ? (between){size - 1, size - 1, 0} : (between){low, low + 1, inside - (float)low};
  return true;
}

/* The four products of a sample. */
static float sample(rondo_type type, const void *x, size_t first, size_t width, between y, between column,
                    bool takes_max) {
  const float a = (1 - y.share) * (1 - column.share) * rondo_load_one(type, x, first + y.low * width + column.low);
  const float b = (1 - y.share) * column.share * rondo_load_one(type, x, first + y.low * width + column.high);
  const float c = y.share * (1 - column.share) * rondo_load_one(type, x, first + y.high * width + column.low);
  const float d = y.share * column.share * rondo_load_one(type, x, first + y.high * width + column.high);
  return takes_max ? fmaxf(fmaxf(a, b), fmaxf(c, d)) : a + b + c + d;
}

/* Where sample `i` of a bin is along an axis. */
static float sample_at(const region *r, size_t bin, size_t i) {
  return r->first + (float)bin * r->bin + r->bin * ((float)i + 0.5f) / (float)r->samples;
}

/* The samples of a bin that may be inside along an axis, of which a region that is much larger than the image has few.
 * Places ascend, unless the region ends before it begins. */
static rondo_span samples_inside(const region *r, size_t bin, size_t size) {
  size_t first = 0, last = r->samples, all = r->samples, end = 0;
  if (r->bin < 0) return (rondo_span){0, r->samples};
  RONDO_BINARY_SEARCH(first, last, i, sample_at(r, bin, i) < -1)
  RONDO_BINARY_SEARCH(end, all, i, sample_at(r, bin, i) <= (float)size)
  return (rondo_span){first, end};
}

/* A sample outside counts as 0. */
static float bin_of(rondo_type type, const roi_shape *s, const void *x, size_t first, const region *down,
                    const region *across, size_t row, size_t column) {
  const rondo_span rows = samples_inside(down, row, s->in[0]), columns = samples_inside(across, column, s->in[1]);
  const size_t count = down->samples * across->samples;
  size_t inside = 0;
  float sum = 0, most = -INFINITY;
  between y, z;
  for (size_t i = rows.first; i < rows.last; i++) {
    if (!find_neighbours(sample_at(down, row, i), s->in[0], &y)) continue;
    for (size_t k = columns.first; k < columns.last; k++) {
      if (!find_neighbours(sample_at(across, column, k), s->in[1], &z)) continue;
      const float here = sample(type, x, first, s->in[1], y, z, s->takes_max != 0);
      sum += here;
      most = fmaxf(most, here);
      inside++;
    }
  }
  if (count == 0) return 0;
  if (s->takes_max == 0) return sum / (float)count;
  return inside < count ? fmaxf(most, 0) : most;
}

/* shape, x, rois, images, y, check. An item is a channel of a region. */
static void roi_align_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const roi_shape *s = args[0];
  const float *rois = RONDO_ARG(const float *, 2);
  const void *images = RONDO_ARG(const void *, 3);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 5);
  RONDO_EACH_ITEM(i, blocks, s->regions * s->channels) {
    const size_t number = i / s->channels, bins = s->out[0] * s->out[1];
    const int64_t image = rondo_index_at(images, s->wide_indices, number);
    const size_t of = rondo_check_index(cell, number, image, s->images) ? (size_t)image : 0;
    const size_t first = (of * s->channels + i % s->channels) * s->in[0] * s->in[1];
    const region down = region_of(s, rois + 4 * number, 0), across = region_of(s, rois + 4 * number, 1);
    for (size_t k = 0; k < bins; k++)
      rondo_store_one(type, RONDO_ARG(void *, 4), i * bins + k,
                      bin_of(type, s, RONDO_ARG(const void *, 1), first, &down, &across, k / s->out[1], k % s->out[1]));
  }
}

RONDO_TYPED_KERNEL(roi_align, roi_pooling, RONDO_SCALAR(roi_shape), RONDO_READS, RONDO_READS, RONDO_READS, RONDO_WRITES,
                   RONDO_CHECK_PARAMETERS);

/* max_roi_pool ----------------------------------------------------------------------------------------------------- */

/* A float as a whole number within `most` of zero. */
static int64_t whole(float x, int64_t most) {
  return x >= (float)most ? most : x <= -(float)most ? -most : x == x ? (int64_t)x : 0;
}

/* The elements of a bin along an axis. */
static rondo_span bin_span(const roi_shape *s, const float *roi, int axis, size_t bin) {
  const int64_t most = (int64_t)1 << 40, size = (int64_t)s->in[axis];
  const int64_t first = whole(roundf(roi[2 - axis] * s->scale), most),
                last = whole(roundf(roi[4 - axis] * s->scale), most);
  const float length = last >= first ? (float)(last - first + 1) : 1.0f, step = length / (float)s->out[axis];
  int64_t from = first + whole(floorf((float)bin * step), most),
          to = first + whole(ceilf((float)(bin + 1) * step), most);
  from = from < 0 ? 0 : from > size ? size : from;
  to = to < from ? from : to > size ? size : to;
  return (rondo_span){(size_t)from, (size_t)to};
}

/* shape, x, rois, y, check. A region's first number is its image. */
static void max_roi_pool_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const roi_shape *s = args[0];
  const void *x = RONDO_ARG(const void *, 1);
  const float *rois = RONDO_ARG(const float *, 2);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 4);
  RONDO_EACH_ITEM(i, blocks, s->regions * s->channels) {
    const float *roi = rois + 5 * (i / s->channels);
    const int64_t image = roi[0] == roi[0] ? whole(roi[0], INT32_MAX) : -1; /* NaN names none */
    const size_t of = rondo_check_index(cell, i / s->channels, image, s->images) ? (size_t)image : 0;
    const size_t first = (of * s->channels + i % s->channels) * s->in[0] * s->in[1], bins = s->out[0] * s->out[1];
    for (size_t k = 0; k < bins; k++) {
      const rondo_span rows = bin_span(s, roi, 0, k / s->out[1]), columns = bin_span(s, roi, 1, k % s->out[1]);
      const bool is_empty = rows.first >= rows.last || columns.first >= columns.last;
      float most = is_empty ? 0 : -INFINITY;
      for (size_t row = rows.first; row < rows.last; row++) {
        for (size_t column = columns.first; column < columns.last; column++) {
          const float here = rondo_load_one(type, x, first + row * s->in[1] + column);
          most = here > most || here != here ? here : most;
        }
      }
      rondo_store_one(type, RONDO_ARG(void *, 3), i * bins + k, most);
    }
  }
}

RONDO_TYPED_KERNEL(max_roi_pool, roi_pooling, RONDO_SCALAR(roi_shape), RONDO_READS, RONDO_READS, RONDO_WRITES,
                   RONDO_CHECK_PARAMETERS);

/* Rows ------------------------------------------------------------------------------------------------------------- */

static rondo_status infer_pool(const rondo_program *program, const rondo_operation *operation, size_t columns,
                               rondo_shape *results) {
  const rondo_shape *value = rondo_operation_input(program, operation, VALUE);
  const rondo_shape *rois = rondo_operation_input(program, operation, ROIS);
  const size_t *sizes = operation->attributes.sizes;
  RONDO_TRY(rondo_require_float(program, operation, VALUE, 4));
  RONDO_TRY(rondo_require_input(program, operation, ROIS, RONDO_F32, 2));
  if (rois->dims[1] != columns || sizes[HEIGHT] == 0 || sizes[WIDTH] == 0)
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE,
                                "rois must be [regions, %zu], and the size of the result at least 1 x 1; it is %zu x "
                                "%zu",
                                columns, sizes[HEIGHT], sizes[WIDTH]);
  const size_t dims[] = {rois->dims[0], value->dims[1], sizes[HEIGHT], sizes[WIDTH]};
  return rondo_shape_make(operation->row->name, value->type, dims, 4, &results[0]);
}

static rondo_status infer_roi_align(const rondo_program *program, const rondo_operation *operation,
                                    rondo_shape *results) {
  RONDO_TRY(infer_pool(program, operation, 4, results));
  RONDO_TRY(rondo_require_indices(program, operation, IMAGES, 1));
  if (rondo_operation_input(program, operation, IMAGES)->dims[0] == results[0].dims[0]) return RONDO_OK;
  return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "there must be an image for each of %zu regions",
                              results[0].dims[0]);
}

static rondo_status infer_max_roi_pool(const rondo_program *program, const rondo_operation *operation,
                                       rondo_shape *results) {
  return infer_pool(program, operation, 5, results);
}

static roi_shape shape_of(const rondo_shape *value, const rondo_shape *rois, const rondo_attributes *attributes,
                          bool wide_indices) {
  return (roi_shape){.images = value->dims[0],
                     .channels = value->dims[1],
                     .in = {value->dims[2], value->dims[3]},
                     .regions = rois->dims[0],
                     .out = {attributes->sizes[HEIGHT], attributes->sizes[WIDTH]},
                     .samples = attributes->sizes[SAMPLES],
                     .scale = attributes->numbers[SCALE],
                     .takes_max = attributes->flags[TAKES_MAX],
                     .half_pixel = attributes->flags[HALF_PIXEL],
                     .wide_indices = wide_indices};
}

#define GRAIN ((rondo_grain){8, 1})

/* A block of CUDA threads shares the bins of a channel. */
static rondo_status emit_roi_align(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[VALUE]);
  const bool is_wide = rondo_emit_shape(emitter, operation->inputs[IMAGES])->type == RONDO_I64;
  const roi_shape shape =
      shape_of(value, rondo_emit_shape(emitter, operation->inputs[ROIS]), &operation->attributes, is_wide);
  return rondo_emit_operands(emitter, operation, &roi_align_code[value->type],
                             rondo_emit_grid(emitter, shape.regions * shape.channels, GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(VALUE), RONDO_INPUT(ROIS),
                                            RONDO_INPUT(IMAGES), RONDO_RESULT(0), RONDO_CHECK(IMAGES, shape.images)));
}

static rondo_status emit_max_roi_pool(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *value = rondo_emit_shape(emitter, operation->inputs[VALUE]);
  const roi_shape shape =
      shape_of(value, rondo_emit_shape(emitter, operation->inputs[ROIS]), &operation->attributes, false);
  return rondo_emit_operands(emitter, operation, &max_roi_pool_code[value->type],
                             rondo_emit_grid(emitter, shape.regions * shape.channels, GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(VALUE), RONDO_INPUT(ROIS), RONDO_RESULT(0),
                                            RONDO_CHECK(ROIS, shape.images)));
}

#define ROI_ROW                                                                                                  \
  .types = RONDO_FLOATS, .result_count = 1, .checks_indices = 1, .index_rule = "the region of image 0 was used", \
  .constants = 1u << VALUE | 1u << ROIS

RONDO_OPERATOR(roi_align, ROI_ROW, .inputs = {"value", "rois", "images"}, .required = 3, .infer = infer_roi_align,
               .emit = emit_roi_align);
RONDO_OPERATOR(max_roi_pool, ROI_ROW, .inputs = {"value", "rois"}, .required = 2, .infer = infer_max_roi_pool,
               .emit = emit_max_roi_pool);

/* Public ----------------------------------------------------------------------------------------------------------- */

static rondo_status set_scale(const char *call, float scale, rondo_attributes *attributes) {
  attributes->numbers[SCALE] = scale == 0 ? 1 : scale;
  if (isfinite(scale) && scale >= 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: spatial_scale is %g; it must be finite and above 0, or 0 for 1", call, (double)scale);
}

rondo_status rondo_op_roi_align(rondo_program *program, rondo_value value, rondo_value rois, rondo_value images,
                                const rondo_roi_align_options *options, rondo_value *out_value) {
  rondo_roi_align_options given;
  RONDO_TRY(rondo_program_begin(program, "roi_align", out_value));
  RONDO_TRY(rondo_require("roi_align", "options", options));
  RONDO_TRY(rondo_versioned_read("rondo_roi_align_options", options, &given, sizeof given));
  rondo_attributes attributes = {.sizes = {given.size[0], given.size[1], given.sampling_ratio},
                                 .size_count = SIZES,
                                 .flags = {[TAKES_MAX] = given.takes_max, [HALF_PIXEL] = given.half_pixel}};
  RONDO_TRY(set_scale("roi_align", given.spatial_scale, &attributes));
  if (given.sampling_ratio > MOST_SAMPLES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "roi_align: sampling_ratio is %zu; use at most %d samples along each axis, or 0 for as many as a "
                      "bin has elements",
                      given.sampling_ratio, MOST_SAMPLES);
  return rondo_program_apply(program, &rondo_operator_roi_align, (const rondo_value[]){value, rois, images}, 3,
                             &attributes, out_value);
}

rondo_status rondo_op_max_roi_pool(rondo_program *program, rondo_value value, rondo_value rois, const size_t size[2],
                                   float spatial_scale, rondo_value *out_value) {
  RONDO_TRY(rondo_program_begin(program, "max_roi_pool", out_value));
  RONDO_TRY(rondo_require("max_roi_pool", "size", size));
  rondo_attributes attributes = {.sizes = {size[0], size[1]}, .size_count = SIZES};
  RONDO_TRY(set_scale("max_roi_pool", spatial_scale, &attributes));
  return rondo_program_apply(program, &rondo_operator_max_roi_pool, (const rondo_value[]){value, rois}, 2, &attributes,
                             out_value);
}
