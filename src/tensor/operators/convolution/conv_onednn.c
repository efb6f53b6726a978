/* SPDX-License-Identifier: MIT
 * Convolutions by oneDNN: the decision whether to use it, the preparation, and the kernels whose blocks call it.
 * Threads: as conv_onednn.h says.
 */
#include "tensor/operators/convolution/conv_onednn.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/environment.h"
#include "base/error.h"
#include "tensor/operators/common/kernel_support.h"
#include "tensor/operators/convolution/conv_blocked.h"
#include "tensor/operators/elementwise/unary_operators.h"
#include "tensor/vendor/onednn.h"

/* A convolution ---------------------------------------------------------------------------------------------------- */

enum { X, WEIGHT, Y, OPERANDS };
enum { CONVOLUTION = OPERANDS, PRIMITIVES }; /* a reorder for each operand, and the convolution */

/* The names of each operand in the library: of its layout and as an argument, for the operand and for its gradient. */
static const struct {
  int layout, gradient_layout, argument, gradient_argument;
} roles[OPERANDS] = {[X] = {ONEDNN_OF_SRC, ONEDNN_OF_DIFF_SRC, ONEDNN_SRC, ONEDNN_DIFF_SRC},
                     [WEIGHT] = {ONEDNN_OF_WEIGHTS, ONEDNN_OF_DIFF_WEIGHTS, ONEDNN_WEIGHTS, ONEDNN_DIFF_WEIGHTS},
                     [Y] = {ONEDNN_OF_DST, ONEDNN_OF_DIFF_DST, ONEDNN_DST, ONEDNN_DIFF_DST}};

typedef struct operand {
  onednn_layout plain, wanted; /* the layout of the value, plain or in blocks, and the one that the library requires */
  size_t bytes;                /* of the required layout; 0: both are the same */
  size_t at;                   /* its offset in a slot, or in the workspace if parts share it */
} operand;

typedef struct primitive {
  onednn_primitive made; /* NULL: nothing to do */
  onednn_layout scratch;
} primitive;

/* A memory object and its address. Setting the address takes time, so it is set only if it changes. */
typedef struct place {
  onednn_memory memory;
  void *bytes;
} place;

/* The library's objects for a part. One thread at a time uses them. */
typedef struct part {
  onednn_stream stream;
  place plain[OPERANDS], wanted[OPERANDS], bias, scratch[PRIMITIVES];
  bool is_ready; /* for a slice: its weights are copied */
} part;

struct rondo_onednn_convolution {
  rondo_allocator allocator;
  rondo_convolution_pass pass;
  rondo_conv_shape shape; /* of a slice */
  rondo_conv_blocks blocks;
  bool has_bias;
  bool packs, is_packed;      /* weights are to be packed; they are */
  rondo_packed_state *packed; /* then their order */
  size_t slices, image_parts; /* slices of the output channels; parts of the images in each slice */
  size_t part_images, batch;  /* images of a part except the last; images of a call */
  operand operands[OPERANDS];
  primitive primitives[PRIMITIVES];
  onednn_layout bias;
  part *parts;     /* slices * image_parts of them */
  part *arrangers; /* one for each slice, which copies shared weights, and one that copies shared images */
  size_t slot_bytes, scratch_at, slots_at, sums_at, sum_bytes, workspace_bytes;
};

static size_t part_count(const rondo_onednn_convolution *c) { return c->slices * c->image_parts; }

static bool makes_weights(const rondo_onednn_convolution *c) { return c->pass == RONDO_CONVOLUTION_WEIGHT_GRADIENT; }

/* Whether the weights are copied before the parts begin. */
static bool shares_weights(const rondo_onednn_convolution *c) {
  return !makes_weights(c) && c->primitives[WEIGHT].made != NULL;
}

/* Whether images are copied before the parts begin: the slices of an image read the same copy. A part has one image. */
static bool shares_images(const rondo_onednn_convolution *c) { return c->slices > 1 && c->primitives[X].made != NULL; }

static int result_of(rondo_convolution_pass pass) {
  return pass == RONDO_CONVOLUTION_FORWARD ? Y : pass == RONDO_CONVOLUTION_INPUT_GRADIENT ? X : WEIGHT;
}

/* Whether an operand of the pass is a gradient. */
static bool is_gradient(const rondo_onednn_convolution *c, int which) {
  return c->pass != RONDO_CONVOLUTION_FORWARD && (which == Y || which == result_of(c->pass));
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

#define ENOUGH_PARTS 8
#define MAX_PARTS 16 /* each has its own copies in the workspace */
#define MIN_PARTS 4
#define SLICE_CHANNELS 16 /* channels of a vector */
/* The largest divisor of `count` that is at most `limit`. */
static size_t divisor(size_t count, size_t limit) {
  size_t found = rondo_smaller(limit, count);
  assert(found > 0);
  while (count % found != 0) found--;
  return found;
}

static void cut_images(rondo_onednn_convolution *c) {
  const size_t images = c->shape.images;
  c->image_parts = makes_weights(c) ? divisor(images, ENOUGH_PARTS) : images < MAX_PARTS ? images : MAX_PARTS;
  c->part_images = rondo_divide_up(images, c->image_parts);
  c->image_parts = rondo_divide_up(images, c->part_images);
  c->batch = makes_weights(c) ? c->part_images : 1;
  assert(c->image_parts > 0 && c->image_parts <= MAX_PARTS);
}

/* Slices of fewer channels would take longer. */
#define CHANNELS_AT_ONCE 32

/* Larger weights of a slice do not stay in the second-level cache, and all images of a slice read them: 512 x 512 of 3
 * x 3 take 1.6 times as long as in slices. */
#define SLICE_BYTES ((size_t)1 << 20)

static size_t slices_of_blocks(const rondo_onednn_convolution *c) {
  const rondo_conv_shape *s = &c->shape;
  const size_t blocks = s->out_channels / c->blocks.y;
  const size_t bytes = s->out_channels * s->in_channels * rondo_conv_taps(s) * sizeof(float);
  const size_t for_parts = rondo_divide_up(ENOUGH_PARTS, c->image_parts);
  const size_t for_cache = c->part_images == 1 ? rondo_divide_up(bytes, SLICE_BYTES) : 1;
  const size_t most = rondo_smaller(rondo_larger(for_parts, for_cache), s->out_channels / CHANNELS_AT_ONCE);
  return most == 0 ? 1 : divisor(blocks, most);
}

static void cut_channels(rondo_onednn_convolution *c) {
  c->slices = 1;
  if (c->pass != RONDO_CONVOLUTION_FORWARD || c->shape.groups > 1) return;
  if (c->blocks.y > 1) {
    c->slices = slices_of_blocks(c);
    c->shape.out_channels /= c->slices;
    return;
  }
  while (part_count(c) < ENOUGH_PARTS && c->shape.out_channels % (2 * SLICE_CHANNELS) == 0) {
    c->shape.out_channels /= 2;
    c->slices *= 2;
  }
}

/* Describing ------------------------------------------------------------------------------------------------------- */

static int block_tag(size_t block) {
  assert(block == 8 || block == RONDO_CONV_MAX_BLOCK);
  return block == 8 ? ONEDNN_BLOCKED_8 : ONEDNN_BLOCKED_16;
}

static int describe_value(onednn_layout *out, int rank, const int64_t *dims, size_t block) {
  onednn_dims strides = {0};
  if (block > 1) return rondo_onednn.layout_by_tag(out, rank, dims, ONEDNN_F32, block_tag(block));
  strides[rank - 1] = 1;
  for (int i = rank - 1; i > 0; i--) strides[i - 1] = strides[i] * dims[i];
  return rondo_onednn.layout_by_strides(out, rank, dims, ONEDNN_F32, strides);
}

/* *out_asked: the layout that the library is asked for, which is its choice except for images in blocks. */
static int describe_operand(operand *o, onednn_layout *out_asked, int rank, const int64_t *dims, size_t block) {
  const int code = describe_value(&o->plain, rank, dims, block);
  *out_asked = o->plain;
  if (code != ONEDNN_OK || block > 1) return code;
  return rondo_onednn.layout_by_tag(out_asked, rank, dims, ONEDNN_F32, ONEDNN_ANY_LAYOUT);
}

/* The first axis that the library sees: flat images have no depth. */
static int first_axis(const rondo_window *w) {
  return rondo_window_is_trivial(w, RONDO_DEPTH) ? RONDO_HEIGHT : RONDO_DEPTH;
}

/* Appends the sizes along the axes; returns the number of dimensions. */
static int append_sizes(const rondo_window *w, const size_t *sizes, int64_t *dims, int rank) {
  for (int axis = first_axis(w); axis < RONDO_WINDOW_AXES; axis++) dims[rank++] = (int64_t)sizes[axis];
  return rank;
}

static int describe_images(operand *o, onednn_layout *asked, const rondo_window *w, size_t images, size_t channels,
                           const size_t *sizes, size_t block) {
  onednn_dims dims = {(int64_t)images, (int64_t)channels};
  return describe_operand(o, asked, append_sizes(w, sizes, dims, 2), dims, block);
}

static int describe_weights(operand *o, onednn_layout *asked, const rondo_conv_shape *s) {
  onednn_dims dims = {(int64_t)s->groups, (int64_t)s->out_channels, (int64_t)s->in_channels};
  const int rank = append_sizes(&s->window, s->window.kernel, dims, 3);
  return s->groups > 1 ? describe_operand(o, asked, rank, dims, 1) : describe_operand(o, asked, rank - 1, dims + 1, 1);
}

static int describe_operands(rondo_onednn_convolution *c, onednn_layout *asked) {
  const rondo_conv_shape *s = &c->shape;
  const int64_t channels = (int64_t)s->out_channels * (int64_t)s->groups, one = 1;
  const rondo_window *w = &s->window;
  int code = describe_images(&c->operands[X], &asked[X], w, c->batch, s->groups * s->in_channels, w->in, c->blocks.x);
  if (code == ONEDNN_OK) code = describe_weights(&c->operands[WEIGHT], &asked[WEIGHT], s);
  if (code == ONEDNN_OK)
    code = describe_images(&c->operands[Y], &asked[Y], w, c->batch, s->groups * s->out_channels, w->out, c->blocks.y);
  return code != ONEDNN_OK ? code : rondo_onednn.layout_by_strides(&c->bias, 1, &channels, ONEDNN_F32, &one);
}

typedef struct steps {
  int64_t stride[RONDO_WINDOW_AXES], dilation[RONDO_WINDOW_AXES], before[RONDO_WINDOW_AXES], after[RONDO_WINDOW_AXES];
} steps;

/* The library counts the elements that a dilation skips, and the padding at the end only as far as windows need it. */
static steps steps_of(const rondo_window *w) {
  steps made = {.stride = {0}};
  for (int axis = first_axis(w), i = 0; axis < RONDO_WINDOW_AXES; axis++, i++) {
    const int64_t extent = (int64_t)(w->dilation[axis] * (w->kernel[axis] - 1) + 1);
    made.stride[i] = (int64_t)w->stride[axis];
    made.dilation[i] = (int64_t)w->dilation[axis] - 1;
    made.before[i] = (int64_t)w->padding[axis];
    made.after[i] = ((int64_t)w->out[axis] - 1) * made.stride[i] + extent - (int64_t)w->in[axis] - made.before[i];
  }
  return made;
}

static int describe_pass(const rondo_onednn_convolution *c, rondo_convolution_pass pass, const onednn_layout *asked,
                         onednn_description *out) {
  const steps s = steps_of(&c->shape.window);
  switch (pass) {
    case RONDO_CONVOLUTION_FORWARD:
      return rondo_onednn.describe_forward(out, ONEDNN_FORWARD, ONEDNN_DIRECT, &asked[X], &asked[WEIGHT],
                                           c->has_bias ? &c->bias : NULL, &asked[Y], s.stride, s.dilation, s.before,
                                           s.after);
    case RONDO_CONVOLUTION_INPUT_GRADIENT:
      return rondo_onednn.describe_backward_data(out, ONEDNN_DIRECT, &asked[X], &asked[WEIGHT], &asked[Y], s.stride,
                                                 s.dilation, s.before, s.after);
    default:
      return rondo_onednn.describe_backward_weights(out, ONEDNN_DIRECT, &asked[X], &asked[WEIGHT], NULL, &asked[Y],
                                                    s.stride, s.dilation, s.before, s.after);
  }
}

/* Creates the primitive descriptor of the pass. That of a gradient needs one of the forward convolution as a hint. */
static int choose(const rondo_onednn_convolution *c, rondo_convolution_pass pass, const onednn_layout *asked,
                  onednn_attributes attributes, onednn_way *out) {
  onednn_description description;
  onednn_way forward = NULL;
  *out = NULL;
  int code =
      pass == RONDO_CONVOLUTION_FORWARD ? ONEDNN_OK : choose(c, RONDO_CONVOLUTION_FORWARD, asked, attributes, &forward);
  if (code == ONEDNN_OK) code = describe_pass(c, pass, asked, &description);
  if (code == ONEDNN_OK) code = rondo_onednn.way_create(out, &description, attributes, rondo_onednn.engine, forward);
  if (forward != NULL) (void)rondo_onednn.way_destroy(forward);
  return code;
}

/* The library's code for this processor is generated, and so are its names; its portable code is many times slower. */
#define GENERATED "jit"

static bool is_generated(onednn_way way) {
  const char *name = NULL;
  return rondo_onednn.way_query(way, ONEDNN_OF_NAME, 0, &name) == ONEDNN_OK && name != NULL &&
         strncmp(name, GENERATED, sizeof GENERATED - 1) == 0;
}

/* Asks for blocks in images whose channels they divide. False: the result is not such an image. */
static bool ask_for_blocks(const rondo_onednn_convolution *c, size_t block, onednn_layout *asked) {
  static const int images[] = {X, Y};
  for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
    const onednn_layout *plain = &c->operands[images[i]].plain;
    const bool fits = plain->rank == 4 && plain->dims[1] % (int64_t)block == 0;
    if (!fits && images[i] == X) continue;
    if (!fits ||
        rondo_onednn.layout_by_tag(&asked[images[i]], 4, plain->dims, ONEDNN_F32, block_tag(block)) != ONEDNN_OK)
      return false;
  }
  return true;
}

/* Chooses the way of a pass. With blocks, the layout of the weights does not depend on the number of output channels,
 * so packed states are the same for all slices and batch sizes; with AVX-512 the library's own choice depends on it. */
static int choose_layouts(const rondo_onednn_convolution *c, const onednn_layout *any, onednn_attributes attributes,
                          onednn_way *out) {
  onednn_layout asked[OPERANDS];
  const size_t block = c->pass == RONDO_CONVOLUTION_FORWARD && c->blocks.y == 1 ? rondo_onednn_image_block() : 1;
  memcpy(asked, any, sizeof asked);
  *out = NULL;
  if (block > 1 && ask_for_blocks(c, block, asked)) {
    if (choose(c, c->pass, asked, attributes, out) == ONEDNN_OK && is_generated(*out)) return ONEDNN_OK;
    if (*out != NULL) (void)rondo_onednn.way_destroy(*out);
  }
  return choose(c, c->pass, any, attributes, out);
}

/* Preparation ------------------------------------------------------------------------------------------------------ */

/* Creates the primitive of a descriptor and destroys the descriptor. */
static int make_primitive(onednn_way way, primitive *out) {
  const onednn_layout *scratch = rondo_onednn.way_layout(way, ONEDNN_OF_SCRATCH, 0);
  if (scratch != NULL) out->scratch = *scratch;
  const int code = rondo_onednn.primitive_create(&out->made, way);
  (void)rondo_onednn.way_destroy(way);
  return code;
}

/* Whether the layout has the elements of the value and nothing else. */
static bool is_permutation(const onednn_layout *layout) {
  size_t bytes = sizeof(float);
  if (layout->kind != ONEDNN_BLOCKED || layout->type != ONEDNN_F32 || layout->offset != 0 || layout->extra[0] != 0)
    return false;
  for (int i = 0; i < layout->rank; i++) {
    if (layout->padded_dims[i] != layout->dims[i] || layout->padded_offsets[i] != 0) return false;
    bytes *= (size_t)layout->dims[i];
  }
  return rondo_onednn.layout_bytes(layout) == bytes;
}

static int make_reorder(rondo_onednn_convolution *c, int which, onednn_attributes attributes) {
  operand *o = &c->operands[which];
  const bool is_result = which == result_of(c->pass);
  onednn_way way = NULL;
  if (rondo_onednn.layout_equal(&o->plain, &o->wanted)) return ONEDNN_OK;
  if (which == WEIGHT && c->packs && is_permutation(&o->wanted)) {
    o->plain = o->wanted;
    c->is_packed = true;
    return ONEDNN_OK;
  }
  o->bytes = rondo_onednn.layout_bytes(&o->wanted);
  const int code = rondo_onednn.way_create_reorder(&way, is_result ? &o->wanted : &o->plain, rondo_onednn.engine,
                                                   is_result ? &o->plain : &o->wanted, rondo_onednn.engine, attributes);
  return code != ONEDNN_OK ? code : make_primitive(way, &c->primitives[which]);
}

static int make_all(rondo_onednn_convolution *c, onednn_attributes attributes) {
  onednn_layout asked[OPERANDS];
  onednn_way way = NULL;
  int code = describe_operands(c, asked);
  if (code == ONEDNN_OK) code = choose_layouts(c, asked, attributes, &way);
  if (code != ONEDNN_OK) return code;
  for (int i = 0; i < OPERANDS; i++) {
    const int which = is_gradient(c, i) ? roles[i].gradient_layout : roles[i].layout;
    c->operands[i].wanted = *rondo_onednn.way_layout(way, which, 0);
  }
  code = make_primitive(way, &c->primitives[CONVOLUTION]);
  for (int i = 0; i < OPERANDS && code == ONEDNN_OK; i++) code = make_reorder(c, i, attributes);
  return code;
}

static int make_primitives(rondo_onednn_convolution *c) {
  onednn_attributes attributes = NULL;
  int code = rondo_onednn.attributes_create(&attributes);
  if (code != ONEDNN_OK) return code;
  code = rondo_onednn.attributes_set_scratch(attributes, ONEDNN_SCRATCH_OF_CALLER);
  if (code == ONEDNN_OK) code = make_all(c, attributes);
  (void)rondo_onednn.attributes_destroy(attributes);
  return code;
}

static int make_memory(const onednn_layout *layout, place *out) {
  return rondo_onednn.memory_create(&out->memory, layout, rondo_onednn.engine, NULL);
}

static int make_part(const rondo_onednn_convolution *c, part *p) {
  int code = rondo_onednn.stream_create(&p->stream, rondo_onednn.engine, ONEDNN_IN_ORDER);
  for (int i = 0; i < OPERANDS && code == ONEDNN_OK; i++) {
    code = make_memory(&c->operands[i].plain, &p->plain[i]);
    if (code == ONEDNN_OK) code = make_memory(&c->operands[i].wanted, &p->wanted[i]);
  }
  if (code == ONEDNN_OK && c->has_bias) code = make_memory(&c->bias, &p->bias);
  for (int i = 0; i < PRIMITIVES && code == ONEDNN_OK; i++) {
    const onednn_layout *scratch = &c->primitives[i].scratch;
    if (rondo_onednn.layout_bytes(scratch) > 0) code = make_memory(scratch, &p->scratch[i]);
  }
  return code;
}

static rondo_status allocate_parts(rondo_onednn_convolution *c) {
  RONDO_TRY(rondo_allocate_items(&c->allocator, part_count(c), sizeof *c->parts, &c->parts));
  RONDO_TRY(rondo_allocate_items(&c->allocator, c->slices + 1, sizeof *c->arrangers, &c->arrangers));
  return RONDO_OK;
}

static int make_parts(const rondo_onednn_convolution *c) {
  int code = ONEDNN_OK;
  for (size_t i = 0; i < part_count(c) && code == ONEDNN_OK; i++) code = make_part(c, &c->parts[i]);
  for (size_t i = 0; i <= c->slices && code == ONEDNN_OK; i++) code = make_part(c, &c->arrangers[i]);
  return code;
}

#define ALIGNMENT 256

static size_t take(size_t *end, size_t bytes) {
  const size_t at = *end;
  *end += rondo_divide_up(bytes, ALIGNMENT) * ALIGNMENT;
  return at;
}

static size_t weight_elements(const rondo_onednn_convolution *c) {
  return c->shape.groups * c->shape.out_channels * c->shape.in_channels * rondo_conv_taps(&c->shape);
}

/* Takes `count` copies of an operand from the workspace. */
static void take_shared(rondo_onednn_convolution *c, int which, size_t count) {
  operand *o = &c->operands[which];
  o->bytes = rondo_divide_up(o->bytes, ALIGNMENT) * ALIGNMENT;
  o->at = take(&c->workspace_bytes, count * o->bytes);
}

static bool is_shared(const rondo_onednn_convolution *c, int which) {
  return (which == WEIGHT && shares_weights(c)) || (which == X && shares_images(c));
}

/* The workspace: the weights of each slice, unless they are packed, and shared images, or a sum for each part; then a
 * slot for each part, and one for who copies shared images. */
static void lay_out(rondo_onednn_convolution *c) {
  size_t scratch = 0;
  for (int i = 0; i < OPERANDS; i++)
    if (!is_shared(c, i)) c->operands[i].at = take(&c->slot_bytes, c->operands[i].bytes);
  for (int i = 0; i < PRIMITIVES; i++) {
    const size_t bytes = rondo_onednn.layout_bytes(&c->primitives[i].scratch);
    if (bytes > scratch) scratch = bytes;
  }
  c->scratch_at = take(&c->slot_bytes, scratch);
  if (shares_weights(c)) take_shared(c, WEIGHT, c->slices);
  if (shares_images(c)) take_shared(c, X, c->shape.images);
  c->sum_bytes = makes_weights(c) && part_count(c) > 1 ? weight_elements(c) * sizeof(float) : 0;
  c->sums_at = take(&c->workspace_bytes, part_count(c) * c->sum_bytes);
  c->slots_at = take(&c->workspace_bytes, (part_count(c) + (shares_images(c) ? 1 : 0)) * c->slot_bytes);
  if (c->workspace_bytes == 0) c->workspace_bytes = ALIGNMENT; /* so that the workspace has an address */
}

/* Packed weights --------------------------------------------------------------------------------------------------- */

/* What index `index` along an axis adds to the index of an element. */
static size_t offset_along(const onednn_layout *layout, int axis, size_t index) {
  size_t offset = 0, inner = 1;
  for (int b = layout->blocks.count - 1; b >= 0; b--) {
    const size_t size = (size_t)layout->blocks.sizes[b];
    if (layout->blocks.axes[b] == axis) {
      offset += index % size * inner;
      index /= size;
    }
    inner *= size;
  }
  return offset + index * (size_t)layout->blocks.strides[axis];
}

/* The tables for a layout [groups,] output channels of a slice, input channels, window. */
static void fill_order(const rondo_onednn_convolution *c, const onednn_layout *layout, rondo_packed_state *to) {
  const rondo_conv_shape *s = &c->shape;
  const int first = s->groups > 1 ? 1 : 0;
  for (size_t r = 0; r < to->rows; r++) {
    const size_t outer = r / s->out_channels; /* the group or the slice */
    to->row[r] = offset_along(layout, first, r % s->out_channels) +
                 (first == 1 ? offset_along(layout, 0, outer) : outer * weight_elements(c));
  }
  for (size_t i = 0; i < to->columns; i++) to->column[i] = offset_along(layout, first + 1, i);
  for (size_t t = 0; t < to->taps; t++) {
    size_t rest = t;
    for (int axis = layout->rank - 1; axis > first + 1; axis--) {
      to->tap[t] += offset_along(layout, axis, rest % (size_t)layout->dims[axis]);
      rest /= (size_t)layout->dims[axis];
    }
  }
}

/* Describes the order of the weights, if they are packed. */
static rondo_status describe_order(rondo_onednn_convolution *c) {
  const rondo_conv_shape *s = &c->shape;
  if (!c->is_packed) return RONDO_OK;
  RONDO_TRY(rondo_packed_state_create(&c->allocator, sizeof(float), c->slices * s->groups * s->out_channels,
                                      s->in_channels, rondo_conv_taps(s), &c->packed));
  fill_order(c, &c->operands[WEIGHT].wanted, c->packed);
  return RONDO_OK;
}

/* Whether to use the library --------------------------------------------------------------------------------------- */

static double multiplications(const rondo_conv_shape *s) {
  return (double)s->images * (double)s->groups * (double)s->out_channels * (double)rondo_conv_out(s) *
         (double)s->in_channels * (double)rondo_conv_taps(s);
}

#define SHALLOW 16        /* multiplications of a result; with fewer, copying costs more */
#define SMALL_PLANE 256   /* elements; for larger planes the own depthwise kernels are faster */
#define SMALL_WINDOW 9    /* taps; for gradients of larger depthwise windows the library only has products */
#define FEWER_WEIGHTS 2.0 /* times the input: with more weights, adding the parts' gradients costs too much */

/* Which convolutions oneDNN 2.6.3 computes faster than the own kernels, 1.1 to 7 times, for up to eight images on one
 * processor with AVX-512. Not faster: windows of one element and stride 1, for which the own products gather nothing
 * (0.4 to 0.8); results of few multiplications (0.7 to 1.0); depthwise convolutions of large planes (0.2 to 1.4; of
 * small planes 1.0 to 5). */
static bool is_quicker(const rondo_onednn_convolution *c, const rondo_conv_shape *s) {
  const size_t *strides = s->window.stride, taps = rondo_conv_taps(s);
  const size_t stride = strides[RONDO_DEPTH] * strides[RONDO_HEIGHT] * strides[RONDO_WIDTH];
  if (rondo_conv_is_depthwise(s)) return rondo_conv_in(s) <= SMALL_PLANE && (!makes_weights(c) || taps <= SMALL_WINDOW);
  if (taps == 1 && stride == 1) return false;
  if (taps * s->in_channels < SHALLOW && c->pass != RONDO_CONVOLUTION_INPUT_GRADIENT) return false;
  return !makes_weights(c) ||
         (double)s->out_channels * (double)taps <= FEWER_WEIGHTS * (double)s->images * (double)rondo_conv_in(s);
}

/* The library computes with ints: for larger sizes, 2.6.3 divides by zero or does not return. */
#define MAX_EXTENT ((size_t)1 << 14)
#define MAX_ELEMENTS 0x1p29

static bool is_small(const rondo_window *w, int axis) {
  const size_t extents[] = {w->in[axis],     w->out[axis],     w->kernel[axis],
                            w->stride[axis], w->padding[axis], w->dilation[axis]};
  for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++)
    if (extents[i] > MAX_EXTENT) return false;
  return true;
}

/* Whether the library can compute a call. */
static bool fits_library(const rondo_onednn_convolution *c, const rondo_conv_shape *s) {
  const double groups = (double)s->groups, in = (double)s->in_channels, out = (double)s->out_channels;
  const double images = groups * (double)c->batch;
  return is_small(&s->window, RONDO_DEPTH) && is_small(&s->window, RONDO_HEIGHT) && is_small(&s->window, RONDO_WIDTH) &&
         images * in * (double)rondo_conv_in(s) < MAX_ELEMENTS &&
         images * out * (double)rondo_conv_out(s) < MAX_ELEMENTS &&
         groups * in * out * (double)rondo_conv_taps(s) < MAX_ELEMENTS;
}

static bool is_worth_while(const rondo_onednn_convolution *c, const rondo_conv_shape *shape) {
  const double least = (double)rondo_option_number(RONDO_OPTION_ONEDNN_LEAST);
  if (!fits_library(c, shape)) return false;
  if (least <= 1 || c->blocks.y > 1) return true;
  return multiplications(shape) >= least && part_count(c) >= MIN_PARTS && is_quicker(c, shape);
}

/* The memory limit: MAX_MEMORY times the bytes that are read and written, plus ANY_MEMORY bytes. For large windows the
 * library gathers the elements that they cover. */
#define MAX_MEMORY 3.0
#define ANY_MEMORY 0x1p24

static bool takes_little(const rondo_onednn_convolution *c, const rondo_conv_shape *s) {
  const double images = (double)s->images * (double)s->groups;
  const double elements =
      images * (double)s->in_channels * (double)rondo_conv_in(s) +
      images * (double)s->out_channels * (double)rondo_conv_out(s) +
      (double)s->groups * (double)s->in_channels * (double)s->out_channels * (double)rondo_conv_taps(s);
  return (double)c->workspace_bytes <= MAX_MEMORY * elements * sizeof(float) + ANY_MEMORY;
}

static rondo_status make_ready(rondo_onednn_convolution *c, int *out_code) {
  RONDO_TRY(allocate_parts(c));
  const rondo_onednn_use use = rondo_onednn_begin(); /* descriptors depend on the number of threads */
  *out_code = make_primitives(c);
  if (*out_code == ONEDNN_OK) *out_code = make_parts(c);
  rondo_onednn_end(use);
  if (*out_code == ONEDNN_NO_MEMORY)
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_NONE, "oneDNN has no memory for a convolution");
  return RONDO_OK;
}

/* Images in blocks ------------------------------------------------------------------------------------------------- */

/* Whether the library has a fast way for the convolution whose result has blocks. Which layout it would choose itself
 * does not matter: with AVX-512 it prefers channels last, which it computes no faster. */
static bool makes_blocks(const rondo_conv_shape *shape, rondo_conv_blocks blocks, bool has_bias) {
  rondo_onednn_convolution c = {
      .pass = RONDO_CONVOLUTION_FORWARD, .shape = *shape, .blocks = blocks, .has_bias = has_bias, .batch = 1};
  onednn_layout asked[OPERANDS];
  onednn_way way = NULL;
  const rondo_onednn_use use = rondo_onednn_begin();
  int code = describe_operands(&c, asked);
  if (code == ONEDNN_OK) code = choose(&c, c.pass, asked, NULL, &way);
  const bool is_fast = code == ONEDNN_OK && is_generated(way);
  if (way != NULL) (void)rondo_onednn.way_destroy(way);
  rondo_onednn_end(use);
  return is_fast;
}

size_t rondo_onednn_image_block(void) {
  const rondo_conv_shape usual = {.window = {.in = {1, 16, 16},
                                             .out = {1, 14, 14},
                                             .kernel = {1, 3, 3},
                                             .stride = {1, 1, 1},
                                             .dilation = {1, 1, 1}},
                                  .images = 1,
                                  .groups = 1,
                                  .in_channels = 64,
                                  .out_channels = 64};
  static _Atomic(size_t) known; /* the library and the processor stay; 0: not known yet */
  size_t found = atomic_load_explicit(&known, memory_order_relaxed);
  if (!rondo_library_find(&rondo_onednn_convolutions)) return 1;
  for (size_t block = RONDO_CONV_MAX_BLOCK; found == 0 && block >= 8; block /= 2)
    if (makes_blocks(&usual, (rondo_conv_blocks){block, block}, true)) found = block;
  atomic_store_explicit(&known, found, memory_order_relaxed);
  return found == 0 ? 1 : found;
}

bool rondo_onednn_makes_blocks(const rondo_conv_shape *shape, bool has_bias, size_t block) {
  const rondo_onednn_convolution c = {.batch = 1};
  const rondo_conv_blocks blocks = {shape->groups * shape->in_channels % block == 0 ? block : 1, block};
  return shape->groups * shape->out_channels % block == 0 && fits_library(&c, shape) &&
         multiplications(shape) >= (double)rondo_option_number(RONDO_OPTION_ONEDNN_LEAST) &&
         makes_blocks(shape, blocks, has_bias);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

/* Whether the convolution, which is made, can be used. */
static bool is_usable(const rondo_onednn_convolution *c, const rondo_conv_shape *shape) {
  return (c->blocks.y > 1 || takes_little(c, shape)) && c->packs == c->is_packed;
}

rondo_status rondo_onednn_convolution_create(const rondo_allocator *allocator, rondo_convolution_pass pass,
                                             const rondo_conv_shape *shape, rondo_conv_blocks blocks, bool has_bias,
                                             rondo_packed_state **out_packed, rondo_onednn_convolution **out) {
  int code = ONEDNN_OK;
  rondo_onednn_convolution *c;
  *out = NULL;
  if (out_packed != NULL) *out_packed = NULL;
  assert(out_packed == NULL || pass == RONDO_CONVOLUTION_FORWARD);
  if (!rondo_library_find(&rondo_onednn_convolutions)) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *c, &c));
  c->allocator = *allocator;
  c->pass = pass;
  c->shape = *shape;
  c->blocks = blocks;
  c->has_bias = has_bias;
  c->packs = out_packed != NULL;
  cut_images(c);
  cut_channels(c);
  const bool is_wanted = is_worth_while(c, shape);
  rondo_status status = is_wanted ? make_ready(c, &code) : RONDO_OK;
  const bool is_made = is_wanted && status == RONDO_OK && code == ONEDNN_OK;
  if (is_made) status = describe_order(c);
  if (is_made) lay_out(c);
  if (is_made && status == RONDO_OK && is_usable(c, shape)) {
    if (c->packs) *out_packed = rondo_packed_state_retain(c->packed);
    *out = c;
    return RONDO_OK;
  }
  if (code != ONEDNN_OK) rondo_onednn_log_no_pass((int)pass, code);
  rondo_onednn_convolution_destroy(c);
  return status;
}

static void free_place(const place *p) {
  if (p->memory != NULL) (void)rondo_onednn.memory_destroy(p->memory);
}

static void free_parts(const rondo_onednn_convolution *c, part *parts, size_t count) {
  for (size_t i = 0; parts != NULL && i < count; i++) {
    for (int k = 0; k < OPERANDS; k++) free_place(&parts[i].plain[k]), free_place(&parts[i].wanted[k]);
    for (int k = 0; k < PRIMITIVES; k++) free_place(&parts[i].scratch[k]);
    free_place(&parts[i].bias);
    if (parts[i].stream != NULL) (void)rondo_onednn.stream_destroy(parts[i].stream);
  }
  rondo_release(&c->allocator, parts, count, sizeof *parts);
}

void rondo_onednn_convolution_destroy(void *convolution) {
  rondo_onednn_convolution *c = convolution;
  if (c == NULL) return;
  free_parts(c, c->parts, part_count(c));
  free_parts(c, c->arrangers, c->slices + 1);
  for (int i = 0; i < PRIMITIVES; i++)
    if (c->primitives[i].made != NULL) (void)rondo_onednn.primitive_destroy(c->primitives[i].made);
  rondo_status_ignore(rondo_packed_state_release(c->packed), "this order has no rows");
  const rondo_allocator allocator = c->allocator;
  rondo_release(&allocator, c, 1, sizeof *c);
}

size_t rondo_onednn_convolution_workspace(const rondo_onednn_convolution *convolution) {
  return convolution->workspace_bytes;
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

static bool put(place *p, void *bytes) {
  assert(p->memory != NULL);
  if (p->bytes == bytes) return true;
  if (rondo_onednn.memory_set(p->memory, bytes) != ONEDNN_OK) return false;
  p->bytes = bytes;
  return true;
}

static bool execute(const rondo_onednn_convolution *c, part *p, int which, onednn_argument *arguments, int count,
                    unsigned char *scratch) {
  if (p->scratch[which].memory != NULL) {
    if (!put(&p->scratch[which], scratch)) return false;
    arguments[count++] = (onednn_argument){ONEDNN_SCRATCH, p->scratch[which].memory};
  }
  return rondo_onednn.primitive_execute(c->primitives[which].made, p->stream, count, arguments) == ONEDNN_OK;
}

/* Copies an operand between its two layouts, if they differ. */
static bool reorder(const rondo_onednn_convolution *c, part *p, int which, unsigned char *scratch) {
  const bool is_result = which == result_of(c->pass);
  onednn_argument arguments[3] = {{ONEDNN_SRC, is_result ? p->wanted[which].memory : p->plain[which].memory},
                                  {ONEDNN_DST, is_result ? p->plain[which].memory : p->wanted[which].memory}};
  return c->primitives[which].made == NULL || execute(c, p, which, arguments, 2, scratch);
}

static onednn_memory memory_of(const rondo_onednn_convolution *c, const part *p, int which) {
  return c->primitives[which].made == NULL ? p->plain[which].memory : p->wanted[which].memory;
}

/* When an address is set, the library may write zeros after the channels, so the addresses of a copy are set for all
 * parts before one of them reads it. */
static bool arrange_weights(rondo_onednn_convolution *c, size_t slice, float *weights, unsigned char *workspace) {
  part *arranger = &c->arrangers[slice], *first = &c->parts[slice * c->image_parts];
  unsigned char *to = workspace + c->operands[WEIGHT].at + slice * c->operands[WEIGHT].bytes;
  unsigned char *slot = workspace + c->slots_at + slice * c->image_parts * c->slot_bytes;
  bool is_ready = put(&arranger->plain[WEIGHT], weights + slice * weight_elements(c));
  for (size_t i = 0; i < c->image_parts && is_ready; i++) is_ready = put(&first[i].wanted[WEIGHT], to);
  return is_ready && put(&arranger->wanted[WEIGHT], to) && reorder(c, arranger, WEIGHT, slot + c->scratch_at);
}

static unsigned char *shared_image(const rondo_onednn_convolution *c, size_t image, unsigned char *workspace) {
  return workspace + c->operands[X].at + image * c->operands[X].bytes;
}

static float *plain_image(const rondo_onednn_convolution *c, size_t image, float *x) {
  return x + image * c->shape.groups * c->shape.in_channels * rondo_conv_in(&c->shape);
}

static bool arrange_images(rondo_onednn_convolution *c, float *x, unsigned char *workspace) {
  part *arranger = &c->arrangers[c->slices];
  unsigned char *slot = workspace + c->slots_at + part_count(c) * c->slot_bytes;
  bool is_ready = true;
  assert(c->part_images == 1);
  for (size_t i = 0; i < part_count(c) && is_ready; i++)
    is_ready = put(&c->parts[i].wanted[X], shared_image(c, i % c->image_parts, workspace));
  for (size_t image = 0; image < c->shape.images && is_ready; image++)
    is_ready = put(&arranger->plain[X], plain_image(c, image, x)) &&
               put(&arranger->wanted[X], shared_image(c, image, workspace)) &&
               reorder(c, arranger, X, slot + c->scratch_at);
  return is_ready;
}

/* args: the convolution, weights, x, workspace. A block is a slice, whose weights it copies; the one after them copies
 * the images. */
static void arrange(rondo_blocks blocks, void *const *args) {
  rondo_onednn_convolution *c = RONDO_ARG(rondo_onednn_convolution *, 0);
  float *weights = RONDO_ARG(float *, 1), *x = RONDO_ARG(float *, 2);
  unsigned char *workspace = RONDO_ARG(unsigned char *, 3);
  const rondo_onednn_use use = rondo_onednn_begin();
  for (size_t i = blocks.first; i < blocks.last; i++) {
    if (i == c->slices)
      c->arrangers[i].is_ready = arrange_images(c, x, workspace);
    else
      c->arrangers[i].is_ready = !shares_weights(c) || arrange_weights(c, i, weights, workspace);
  }
  rondo_onednn_end(use);
}

/* The addresses of a call's operands. */
typedef struct call {
  float *operands[OPERANDS];
  float *bias;
  unsigned char *slot;
  rondo_conv_shape shape; /* of the call */
} call;

static bool run_convolution(const rondo_onednn_convolution *c, part *p, unsigned char *slot) {
  onednn_argument arguments[OPERANDS + 2];
  int count = 0;
  for (int i = 0; i < OPERANDS; i++) {
    const int which = is_gradient(c, i) ? roles[i].gradient_argument : roles[i].argument;
    arguments[count++] = (onednn_argument){which, memory_of(c, p, i)};
  }
  if (c->has_bias) arguments[count++] = (onednn_argument){ONEDNN_BIAS, p->bias.memory};
  return execute(c, p, CONVOLUTION, arguments, count, slot + c->scratch_at);
}

static bool run_library(const rondo_onednn_convolution *c, part *p, const call *made) {
  const int result = result_of(c->pass);
  bool done = !c->has_bias || put(&p->bias, made->bias);
  for (int i = 0; i < OPERANDS && done; i++) {
    if (is_shared(c, i)) continue;
    done = put(&p->plain[i], made->operands[i]);
    if (done && c->primitives[i].made != NULL) done = put(&p->wanted[i], made->slot + c->operands[i].at);
    if (done && i != result) done = reorder(c, p, i, made->slot + c->scratch_at);
  }
  return done && run_convolution(c, p, made->slot) && reorder(c, p, result, made->slot + c->scratch_at);
}

static rondo_blocks all_blocks(size_t count) {
  assert(count > 0 && count <= UINT32_MAX);
  return (rondo_blocks){.first = 0, .last = count, .grid = {.x = (uint32_t)count, .y = 1, .z = 1}};
}

static void run_own_blocks(const rondo_onednn_convolution *c, call *made) {
  float **of = made->operands;
  rondo_conv_blocks blocks = c->blocks;
  rondo_conv_blocked_cpu(all_blocks(rondo_conv_blocked_rows(&made->shape, blocks)),
                         (void *[]){&made->shape, &blocks, &of[X], &of[WEIGHT], &made->bias, &of[Y]});
}

/* Computes the call by the own kernels, all tiles in this thread. */
static void run_own(const rondo_onednn_convolution *c, call *made) {
  rondo_conv_shape *s = &made->shape;
  float **of = made->operands;
  s->edge = RONDO_CONV_EDGE;
  if (c->blocks.y > 1) {
    run_own_blocks(c, made);
    return;
  }
  const rondo_conv_product product = c->pass == RONDO_CONVOLUTION_FORWARD          ? rondo_conv_forward(s)
                                     : c->pass == RONDO_CONVOLUTION_INPUT_GRADIENT ? rondo_conv_input_gradient(s)
                                                                                   : rondo_conv_weight_gradient(s);
  const rondo_blocks all = all_blocks(rondo_conv_tiles(s, product));
  if (c->pass == RONDO_CONVOLUTION_FORWARD)
    rondo_conv_cpu(RONDO_F32, all, (void *[]){s, &of[X], &of[WEIGHT], &made->bias, &of[Y]});
  if (c->pass == RONDO_CONVOLUTION_INPUT_GRADIENT)
    rondo_conv_input_gradient_cpu(RONDO_F32, all, (void *[]){s, &of[WEIGHT], &of[Y], &of[X]});
  if (makes_weights(c)) rondo_conv_weight_gradient_cpu(RONDO_F32, all, (void *[]){s, &of[X], &of[Y], &of[WEIGHT]});
}

/* One result, at a position. */
static float packed_result(const rondo_onednn_convolution *c, const call *made, size_t channel, const size_t *at) {
  const rondo_conv_shape *s = &made->shape;
  const rondo_window *w = &s->window;
  const rondo_packed_state *order = c->packed;
  const float *weights = made->operands[WEIGHT] + order->row[channel];
  const size_t first = channel / s->out_channels * s->in_channels; /* of the group */
  float sum = made->bias == NULL ? 0 : made->bias[channel];
  for (size_t t = 0; t < order->taps; t++) {
    size_t in[RONDO_WINDOW_AXES], tap = t;
    bool is_inside = true;
    for (int axis = RONDO_WINDOW_AXES - 1; axis >= 0; axis--) {
      is_inside = rondo_window_tap(w, axis, at[axis], tap % w->kernel[axis], &in[axis]) && is_inside;
      tap /= w->kernel[axis];
    }
    const size_t pixel =
        (in[RONDO_DEPTH] * w->in[RONDO_HEIGHT] + in[RONDO_HEIGHT]) * w->in[RONDO_WIDTH] + in[RONDO_WIDTH];
    for (size_t i = 0; is_inside && i < s->in_channels; i++)
      sum += made->operands[X][rondo_conv_element(first + i, pixel, rondo_conv_in(s), c->blocks.x)] *
             weights[order->column[i] + order->tap[t]];
  }
  return sum;
}

/* Computes the call, whose weights are packed, as its definition says: the own kernels read rows, for which there may
 * be no memory. */
static void run_packed(const rondo_onednn_convolution *c, const call *made) {
  const rondo_window *w = &made->shape.window;
  const size_t places = rondo_conv_out(&made->shape), plane = w->out[RONDO_HEIGHT] * w->out[RONDO_WIDTH];
  assert(made->shape.images == 1);
  for (size_t channel = 0; channel < made->shape.groups * made->shape.out_channels; channel++) {
    for (size_t i = 0; i < places; i++) {
      const size_t at[] = {[RONDO_DEPTH] = i / plane,
                           [RONDO_HEIGHT] = i % plane / w->out[RONDO_WIDTH],
                           [RONDO_WIDTH] = i % w->out[RONDO_WIDTH]};
      made->operands[Y][rondo_conv_element(channel, i, places, c->blocks.y)] = packed_result(c, made, channel, at);
    }
  }
}

/* The call for the images from `image` on, in part `index`. */
static call call_of(const rondo_onednn_convolution *c, size_t index, size_t image, void *const *args) {
  const rondo_conv_shape *s = &c->shape;
  const size_t slice = index / c->image_parts, out = s->groups * s->out_channels * rondo_conv_out(s);
  unsigned char *workspace = RONDO_ARG(unsigned char *, 5);
  assert(index < part_count(c) && image < s->images);
  call made = {.slot = workspace + c->slots_at + index * c->slot_bytes, .shape = c->shape};
  made.shape.images = c->batch;
  made.operands[X] = plain_image(c, image, RONDO_ARG(float *, 1));
  made.operands[WEIGHT] = c->sum_bytes > 0 ? (float *)(void *)(workspace + c->sums_at + index * c->sum_bytes)
                                           : RONDO_ARG(float *, 2) + slice * weight_elements(c);
  made.operands[Y] = RONDO_ARG(float *, 3) + (image * c->slices + slice) * out;
  if (c->has_bias) made.bias = RONDO_ARG(float *, 4) + slice * s->out_channels;
  return made;
}

/* Whether what the part shares with others is copied. */
static bool is_arranged(const rondo_onednn_convolution *c, size_t index) {
  return (!shares_weights(c) || c->arrangers[index / c->image_parts].is_ready) &&
         (!shares_images(c) || c->arrangers[c->slices].is_ready);
}

/* Of the images of a call. */
static size_t result_elements(const rondo_onednn_convolution *c) {
  return c->batch * c->shape.groups * c->shape.out_channels * rondo_conv_out(&c->shape);
}

/* args: the convolution, x, weight, y, bias, workspace. A block is a part. */
static void run_parts(rondo_blocks blocks, void *const *args) {
  rondo_onednn_convolution *c = RONDO_ARG(rondo_onednn_convolution *, 0);
  const rondo_onednn_use use = rondo_onednn_begin();
  for (size_t index = blocks.first; index < blocks.last; index++) {
    const size_t first = index % c->image_parts * c->part_images, last = first + c->part_images;
    const bool is_ready = is_arranged(c, index);
    for (size_t image = first; image < last && image < c->shape.images; image += c->batch) {
      call made = call_of(c, index, image, args);
      const bool is_done = is_ready && run_library(c, &c->parts[index], &made);
      if (!is_done && c->is_packed) run_packed(c, &made);
      if (is_done || c->is_packed)
        rondo_activate_in_place((rondo_activation)c->shape.activation, made.operands[Y], result_elements(c));
      else
        run_own(c, &made);
    }
  }
  rondo_onednn_end(use);
}

/* args: the convolution, workspace, dweight. */
static void add_parts(rondo_blocks blocks, void *const *args) {
  const rondo_onednn_convolution *c = RONDO_ARG(const rondo_onednn_convolution *, 0);
  const float *sums = (const float *)(const void *)(RONDO_ARG(const unsigned char *, 1) + c->sums_at);
  float *to = RONDO_ARG(float *, 2);
  const size_t count = weight_elements(c);
  const rondo_span span = rondo_blocks_span(blocks, count, RONDO_LANES);
  memcpy(to + span.first, sums + span.first, (span.last - span.first) * sizeof *to);
  for (size_t i = 1; i < part_count(c); i++) {
    const float *from = sums + i * count + span.first;
    float *at = to + span.first;
    RONDO_EACH_LANE(k, lane, span.last - span.first, at[k] += from[k]);
  }
}

/* The names differ from those of the own kernels. */
static const rondo_kernel_options arrange_code = {
    RONDO_KERNEL_OPTIONS_INIT, .name = "onednn_weights", .cpu = arrange,
    .params = {RONDO_SCALAR(void *), RONDO_READS, RONDO_READS, RONDO_WRITES}};
static const rondo_kernel_options part_code[] = {
    [RONDO_CONVOLUTION_FORWARD] = {RONDO_KERNEL_OPTIONS_INIT, .name = "onednn_conv", .cpu = run_parts,
                                   .params = {RONDO_SCALAR(void *), RONDO_READS, RONDO_READS, RONDO_WRITES, RONDO_READS,
                                              RONDO_UPDATES}},
    [RONDO_CONVOLUTION_INPUT_GRADIENT] = {RONDO_KERNEL_OPTIONS_INIT, .name = "onednn_conv_input_gradient",
                                          .cpu = run_parts,
                                          .params = {RONDO_SCALAR(void *), RONDO_WRITES, RONDO_READS, RONDO_READS,
                                                     RONDO_READS, RONDO_UPDATES}},
    [RONDO_CONVOLUTION_WEIGHT_GRADIENT] = {
        RONDO_KERNEL_OPTIONS_INIT, .name = "onednn_conv_weight_gradient", .cpu = run_parts,
        .params = {RONDO_SCALAR(void *), RONDO_READS, RONDO_WRITES, RONDO_READS, RONDO_READS, RONDO_UPDATES}}};
static const rondo_kernel_options sum_code = {RONDO_KERNEL_OPTIONS_INIT, .name = "onednn_conv_sum", .cpu = add_parts,
                                              .params = {RONDO_SCALAR(void *), RONDO_READS, RONDO_WRITES}};

rondo_status rondo_onednn_convolution_emit(rondo_emitter *emitter, rondo_onednn_convolution *convolution,
                                           const rondo_convolution_memory *memory, const void *bias) {
  const rondo_onednn_convolution *c = convolution;
  const rondo_grid copies = {.x = (uint32_t)c->slices + (shares_images(c) ? 1 : 0)};
  const rondo_grid parts = {.x = (uint32_t)part_count(c)};
  const bool adds = c->sum_bytes > 0;
  const void *weight = adds ? NULL : memory->weight;
  const void *x = shares_images(c) ? memory->x : NULL;
  if (shares_weights(c) || shares_images(c))
    RONDO_TRY(rondo_emit_kernel(emitter, &arrange_code, copies,
                                RONDO_ARGS(&convolution, &memory->weight, &x, &memory->workspace)));
  RONDO_TRY(rondo_emit_kernel(emitter, &part_code[c->pass], parts,
                              RONDO_ARGS(&convolution, &memory->x, &weight, &memory->y, &bias, &memory->workspace)));
  if (!adds) return RONDO_OK;
  return rondo_emit_kernel(emitter, &sum_code, rondo_emit_grid(emitter, weight_elements(c), RONDO_ELEMENTWISE_GRAIN),
                           RONDO_ARGS(&convolution, &memory->workspace, &memory->weight));
}
