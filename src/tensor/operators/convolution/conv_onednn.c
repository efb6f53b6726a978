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
  bool is_ready;               /* for a slice: its weights are copied */
  const struct row_form *form; /* NULL: it has whole images */
} part;

/* Parts whose rows of the result have windows of one form: the first ones, the last ones, and those between. */
#define MOST_FORMS 3
typedef struct row_form {
  rondo_window window;
  onednn_layout x, y;
  primitive convolution;
} row_form;

struct rondo_onednn_convolution {
  rondo_allocator allocator;
  rondo_convolution_pass pass;
  rondo_conv_shape shape; /* of a slice */
  rondo_conv_blocks blocks;
  bool has_bias;
  bool activates;              /* the library computes the activation */
  bool packs, is_packed;       /* weights are to be packed; they are */
  rondo_packed_state *packed;  /* then their order */
  size_t slices, image_parts;  /* slices of the output channels; parts of the images in each slice */
  size_t part_images, batch;   /* images of a part except the last; images of a call */
  size_t row_parts, part_rows; /* parts of the rows of an image's result, and the rows of each but the last */
  row_form forms[MOST_FORMS];  /* of parts of the rows */
  size_t form_count;           /* 0: there is one part, the whole image */
  operand operands[OPERANDS];
  primitive primitives[PRIMITIVES];
  onednn_layout bias;
  part *parts;     /* slices * image_parts of them */
  part *arrangers; /* one for each slice, which copies shared weights, and one that copies shared images */
  size_t slot_bytes, scratch_at, slots_at, sums_at, sum_bytes, workspace_bytes;
};

static size_t part_count(const rondo_onednn_convolution *c) { return c->slices * c->image_parts * c->row_parts; }

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
#define LAST_CHANNELS_AT_ONCE 64
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
  c->row_parts = 1;
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

static double multiplications(const rondo_conv_shape *s) {
  return (double)s->images * (double)s->groups * (double)s->out_channels * (double)rondo_conv_out(s) *
         (double)s->in_channels * (double)rondo_conv_taps(s);
}

/* The windows of part `number` of the rows. False: one has no element of the image. */
static bool window_of_rows(const rondo_onednn_convolution *c, size_t number, rondo_window *out) {
  const rondo_window *w = &c->shape.window;
  const size_t first = number * c->part_rows, last = rondo_smaller(first + c->part_rows, w->out[RONDO_HEIGHT]);
  const size_t stride = w->stride[RONDO_HEIGHT], padding = w->padding[RONDO_HEIGHT];
  const size_t extent = w->dilation[RONDO_HEIGHT] * (w->kernel[RONDO_HEIGHT] - 1) + 1;
  const size_t begin = first * stride, end = (last - 1) * stride + extent; /* in the padded image */
  const size_t all = padding + w->in[RONDO_HEIGHT], from = rondo_larger(begin, padding), to = rondo_smaller(end, all);
  if (from >= to) return false;
  *out = *w;
  out->out[RONDO_HEIGHT] = last - first;
  out->in[RONDO_HEIGHT] = to - from;
  out->padding[RONDO_HEIGHT] = from - begin;
  out->after[RONDO_HEIGHT] = end - to;
  return true;
}

/* The form with this window, which is added; MOST_FORMS: there are too many. */
static size_t form_of(rondo_onednn_convolution *c, const rondo_window *window) {
  for (size_t i = 0; i < c->form_count; i++)
    if (memcmp(&c->forms[i].window, window, sizeof *window) == 0) return i;
  if (c->form_count < MOST_FORMS) c->forms[c->form_count].window = *window;
  return c->form_count < MOST_FORMS ? c->form_count++ : MOST_FORMS;
}

/* False if the rows have too many forms; the images are then whole. */
static bool set_rows(rondo_onednn_convolution *c, size_t parts) {
  const size_t rows = c->shape.window.out[RONDO_HEIGHT];
  bool is_set = parts > 1;
  c->form_count = 0;
  c->part_rows = rondo_divide_up(rows, parts);
  c->row_parts = rondo_divide_up(rows, c->part_rows);
  for (size_t i = 0; i < c->row_parts && is_set; i++) {
    rondo_window window;
    is_set = window_of_rows(c, i, &window) && form_of(c, &window) < MOST_FORMS;
  }
  if (is_set) return true;
  c->row_parts = 1;
  c->form_count = 0;
  return false;
}

/* Where channels come last, the library chooses where to cut (cut_last). */
static void cut_channels(rondo_onednn_convolution *c) {
  c->slices = 1;
  if (c->blocks.are_last != 0 || c->pass != RONDO_CONVOLUTION_FORWARD || c->shape.groups > 1) return;
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

/* The same where channels come last, with `stride` elements from a place to the next. */
static int describe_last(onednn_layout *out, const int64_t *dims, size_t stride) {
  const int64_t across = (int64_t)stride, down = across * dims[3];
  const onednn_dims strides = {down * dims[2], 1, down, across};
  return rondo_onednn.layout_by_strides(out, 4, dims, ONEDNN_F32, strides);
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

/* The images of X or Y. Where channels come last, the library writes those of a slice side by side. A single channel,
 * which is first and last, is described so too: the library's choice for it is no layout for a part of its rows. */
static int describe_images(rondo_onednn_convolution *c, int which, onednn_layout *asked) {
  const rondo_conv_shape *s = &c->shape;
  const size_t channels = s->groups * (which == X ? s->in_channels : s->out_channels);
  const size_t block = which == X ? c->blocks.x : c->blocks.y;
  onednn_dims dims = {(int64_t)c->batch, (int64_t)channels};
  const int rank = append_sizes(&s->window, which == X ? s->window.in : s->window.out, dims, 2);
  operand *o = &c->operands[which];
  if (c->blocks.are_last == 0 || (block == 1 && channels > 1)) return describe_operand(o, asked, rank, dims, block);
  const int code = describe_last(&o->plain, dims, which == X ? channels : channels * c->slices);
  return code != ONEDNN_OK ? code : describe_last(asked, dims, channels);
}

static int describe_weights(operand *o, onednn_layout *asked, const rondo_conv_shape *s) {
  onednn_dims dims = {(int64_t)s->groups, (int64_t)s->out_channels, (int64_t)s->in_channels};
  const int rank = append_sizes(&s->window, s->window.kernel, dims, 3);
  return s->groups > 1 ? describe_operand(o, asked, rank, dims, 1) : describe_operand(o, asked, rank - 1, dims + 1, 1);
}

static int describe_operands(rondo_onednn_convolution *c, onednn_layout *asked) {
  const rondo_conv_shape *s = &c->shape;
  const int64_t channels = (int64_t)s->out_channels * (int64_t)s->groups, one = 1;
  int code = describe_images(c, X, &asked[X]);
  if (code == ONEDNN_OK) code = describe_weights(&c->operands[WEIGHT], &asked[WEIGHT], s);
  if (code == ONEDNN_OK) code = describe_images(c, Y, &asked[Y]);
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

static int describe_pass(const rondo_onednn_convolution *c, const rondo_window *window, rondo_convolution_pass pass,
                         const onednn_layout *asked, onednn_description *out) {
  const steps s = steps_of(window);
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
static int choose(const rondo_onednn_convolution *c, const rondo_window *window, rondo_convolution_pass pass,
                  const onednn_layout *asked, onednn_attributes attributes, onednn_way *out) {
  onednn_description description;
  onednn_way forward = NULL;
  *out = NULL;
  int code = pass == RONDO_CONVOLUTION_FORWARD
                 ? ONEDNN_OK
                 : choose(c, window, RONDO_CONVOLUTION_FORWARD, asked, attributes, &forward);
  if (code == ONEDNN_OK) code = describe_pass(c, window, pass, asked, &description);
  if (code == ONEDNN_OK) code = rondo_onednn.way_create(out, &description, attributes, rondo_onednn.engine, forward);
  if (forward != NULL) (void)rondo_onednn.way_destroy(forward);
  return code;
}

/* Whether the name of a way begins with one of these. */
static bool is_named(onednn_way way, const char *const *names, size_t count) {
  const char *name = NULL;
  if (rondo_onednn.way_query(way, ONEDNN_OF_NAME, 0, &name) != ONEDNN_OK || name == NULL) return false;
  for (size_t i = 0; i < count; i++)
    if (strncmp(name, names[i], strlen(names[i])) == 0) return true;
  return false;
}

/* The library's code for this processor is generated, and so are its names; its portable code is many times slower. The
 * last two are products of small matrices, which need channels last. */
static const char *const generated_names[] = {"jit", "brgconv", "brdgmm"};
enum { GENERATED_NAMES = sizeof generated_names / sizeof *generated_names };

static bool is_generated(onednn_way way) { return is_named(way, generated_names, GENERATED_NAMES); }
static bool has_small_products(onednn_way way) { return is_named(way, generated_names + 1, GENERATED_NAMES - 1); }

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

static size_t block_of_channels(void);

/* Chooses the way of a pass. With blocks, the layout of the weights does not depend on the number of output channels,
 * so packed states are the same for all slices and batch sizes; with AVX-512 the library's own choice depends on it. */
static int choose_layouts(const rondo_onednn_convolution *c, const onednn_layout *any, onednn_attributes attributes,
                          onednn_way *out) {
  onednn_layout asked[OPERANDS];
  const size_t block = c->pass == RONDO_CONVOLUTION_FORWARD && c->blocks.y == 1 ? block_of_channels() : 1;
  memcpy(asked, any, sizeof asked);
  *out = NULL;
  if (block > 1 && ask_for_blocks(c, block, asked)) {
    if (choose(c, &c->shape.window, c->pass, asked, attributes, out) == ONEDNN_OK && is_generated(*out))
      return ONEDNN_OK;
    if (*out != NULL) (void)rondo_onednn.way_destroy(*out);
  }
  return choose(c, &c->shape.window, c->pass, any, attributes, out);
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

/* Padding of packed weights, at most. */
#define MAX_PADDING 2
#define ANY_PADDING ((size_t)1 << 16)

/* Whether the layout has the elements of the value, each once, and little else. */
static bool is_packable(const onednn_layout *layout) {
  size_t bytes = sizeof(float);
  if (layout->kind != ONEDNN_BLOCKED || layout->type != ONEDNN_F32 || layout->offset != 0 || layout->extra[0] != 0)
    return false;
  for (int i = 0; i < layout->rank; i++) {
    if (layout->padded_offsets[i] != 0) return false;
    bytes *= (size_t)layout->dims[i];
  }
  return rondo_onednn.layout_bytes(layout) <= MAX_PADDING * bytes + ANY_PADDING;
}

/* Packed weights as one row, because the library would write zeros into padding when it gets their address. */
static int describe_packed(const onednn_layout *layout, onednn_layout *out) {
  const int64_t count = (int64_t)(rondo_onednn.layout_bytes(layout) / sizeof(float)), one = 1;
  return rondo_onednn.layout_by_strides(out, 1, &count, ONEDNN_F32, &one);
}

static int make_reorder(rondo_onednn_convolution *c, int which, onednn_attributes attributes) {
  operand *o = &c->operands[which];
  const bool is_result = which == result_of(c->pass);
  onednn_way way = NULL;
  if (rondo_onednn.layout_equal(&o->plain, &o->wanted)) return ONEDNN_OK;
  if (which == WEIGHT && c->packs && is_packable(&o->wanted)) {
    c->is_packed = true;
    return describe_packed(&o->wanted, &o->plain);
  }
  o->bytes = rondo_onednn.layout_bytes(&o->wanted);
  const int code = rondo_onednn.way_create_reorder(&way, is_result ? &o->wanted : &o->plain, rondo_onednn.engine,
                                                   is_result ? &o->plain : &o->wanted, rondo_onednn.engine, attributes);
  return code != ONEDNN_OK ? code : make_primitive(way, &c->primitives[which]);
}

/* The layouts of a convolution whose images have one of the forms. */
static int describe_form(const rondo_onednn_convolution *c, const row_form *form, onednn_layout *asked) {
  rondo_onednn_convolution of = *c;
  of.shape.window = form->window;
  return describe_operands(&of, asked);
}

/* The weights that the library wants for whole images. Parts of the rows have the same ones, so that programs of other
 * batch sizes, which are cut otherwise, share packed states. */
static int find_weights(const rondo_onednn_convolution *c, onednn_layout *out) {
  rondo_onednn_convolution whole = *c; /* whose operands are described */
  onednn_layout asked[OPERANDS];
  onednn_way way = NULL;
  assert(c->slices == 1);
  int code = describe_operands(&whole, asked);
  if (code == ONEDNN_OK) code = choose(&whole, &whole.shape.window, whole.pass, asked, NULL, &way);
  if (code != ONEDNN_OK) return code;
  *out = *rondo_onednn.way_layout(way, ONEDNN_OF_WEIGHTS, 0);
  (void)rondo_onednn.way_destroy(way);
  return ONEDNN_OK;
}

/* Whether slices with these weights, side by side, have no padding between them. */
static bool are_slices(const onednn_layout *weights) {
  size_t channels = 1; /* in a block */
  if (weights->kind != ONEDNN_BLOCKED) return false;
  for (int i = 0; i < weights->blocks.count; i++)
    if (weights->blocks.axes[i] == 0) channels *= (size_t)weights->blocks.sizes[i];
  return (size_t)weights->dims[0] % channels == 0;
}

/* Chooses the ways of all forms, and gives them to the caller in `out`. */
static int choose_forms(const rondo_onednn_convolution *c, onednn_attributes attributes, onednn_way *out) {
  onednn_layout weights;
  int code = find_weights(c, &weights);
  for (size_t i = 0; i < c->form_count && code == ONEDNN_OK; i++) {
    onednn_layout asked[OPERANDS];
    code = describe_form(c, &c->forms[i], asked);
    asked[WEIGHT] = weights;
    if (code == ONEDNN_OK) code = choose(c, &c->forms[i].window, c->pass, asked, attributes, &out[i]);
    if (code == ONEDNN_OK && !is_generated(out[i])) code = ONEDNN_UNIMPLEMENTED;
  }
  return code;
}

static void destroy_ways(onednn_way *ways) {
  for (size_t i = 0; i < MOST_FORMS; i++) {
    if (ways[i] != NULL) (void)rondo_onednn.way_destroy(ways[i]);
    ways[i] = NULL;
  }
}

static int make_forms(rondo_onednn_convolution *c, onednn_attributes attributes) {
  onednn_way ways[MOST_FORMS] = {NULL};
  int code = choose_forms(c, attributes, ways);
  if (code == ONEDNN_OK) c->operands[WEIGHT].wanted = *rondo_onednn.way_layout(ways[0], ONEDNN_OF_WEIGHTS, 0);
  for (size_t i = 0; i < c->form_count && code == ONEDNN_OK; i++) {
    row_form *form = &c->forms[i];
    form->x = *rondo_onednn.way_layout(ways[i], ONEDNN_OF_SRC, 0);
    form->y = *rondo_onednn.way_layout(ways[i], ONEDNN_OF_DST, 0);
    code = make_primitive(ways[i], &form->convolution);
    ways[i] = NULL;
  }
  destroy_ways(ways);
  return code;
}

static int make_whole(rondo_onednn_convolution *c, const onednn_layout *asked, onednn_attributes attributes) {
  onednn_way way = NULL;
  const int code = choose_layouts(c, asked, attributes, &way);
  if (code != ONEDNN_OK) return code;
  for (int i = 0; i < OPERANDS; i++) {
    const int which = is_gradient(c, i) ? roles[i].gradient_layout : roles[i].layout;
    c->operands[i].wanted = *rondo_onednn.way_layout(way, which, 0);
  }
  return make_primitive(way, &c->primitives[CONVOLUTION]);
}

/* `last`: attributes of the convolution itself. */
static int make_all(rondo_onednn_convolution *c, onednn_attributes attributes, onednn_attributes last) {
  onednn_layout asked[OPERANDS];
  int code = describe_operands(c, asked);
  if (code != ONEDNN_OK) return code;
  for (int i = 0; i < OPERANDS; i++) c->operands[i].wanted = asked[i];
  code = c->form_count > 0 ? make_forms(c, last) : make_whole(c, asked, last);
  for (int i = 0; i < OPERANDS && code == ONEDNN_OK; i++) code = make_reorder(c, i, attributes);
  return code;
}

static int make_attributes(onednn_attributes *out) {
  *out = NULL;
  const int code = rondo_onednn.attributes_create(out);
  return code != ONEDNN_OK ? code : rondo_onednn.attributes_set_scratch(*out, ONEDNN_SCRATCH_OF_CALLER);
}

/* Lets the library compute x / (1 + exp(-x)) before it stores a result. The own pass over the results keeps NaN in a
 * relu, and is more accurate in a gelu. */
static int add_activation(const rondo_onednn_convolution *c, onednn_attributes attributes) {
  onednn_post_ops post_ops = NULL;
  if (!c->activates) return ONEDNN_OK;
  int code = rondo_onednn.post_ops_create(&post_ops);
  if (code != ONEDNN_OK) return code;
  code = rondo_onednn.post_ops_append(post_ops, 1, ONEDNN_SWISH, 1, 0);
  if (code == ONEDNN_OK) code = rondo_onednn.attributes_set_post_ops(attributes, post_ops);
  (void)rondo_onednn.post_ops_destroy(post_ops);
  return code;
}

static int make_primitives(rondo_onednn_convolution *c) {
  onednn_attributes attributes, last = NULL;
  int code = make_attributes(&attributes);
  if (code == ONEDNN_OK) code = make_attributes(&last);
  if (code == ONEDNN_OK) code = add_activation(c, last);
  if (code == ONEDNN_OK) code = make_all(c, attributes, last);
  if (attributes != NULL) (void)rondo_onednn.attributes_destroy(attributes);
  if (last != NULL) (void)rondo_onednn.attributes_destroy(last);
  return code;
}

/* Cutting where channels come last -------------------------------------------------------------------------------- */

/* Leaves images whole if the library cannot make all forms with the same weights. */
static int check_forms(rondo_onednn_convolution *c) {
  onednn_way ways[MOST_FORMS] = {NULL};
  const int code = choose_forms(c, NULL, ways);
  destroy_ways(ways);
  if (code == ONEDNN_OK || code == ONEDNN_NO_MEMORY) return code;
  c->row_parts = 1;
  c->form_count = 0;
  return ONEDNN_OK;
}

/* The sum of what two, four and eight threads gain, of at most 1 each, if they compute parts of so many rows. */
static double gain_of_rows(size_t rows, size_t part_rows) {
  const size_t parts = rondo_divide_up(rows, part_rows);
  double gain = 0;
  for (size_t threads = 2; threads <= 8; threads *= 2)
    gain += (double)rows / (double)(threads * part_rows * rondo_divide_up(parts, threads));
  return gain;
}

/* How many parts, at most `most`, keep threads equally busy: 28 rows are better cut into 14 parts than into 7. */
static size_t even_parts(size_t rows, size_t most) {
  size_t best = 1;
  double best_gain = 0;
  for (size_t parts = 2; parts <= most; parts++) {
    const double gain = gain_of_rows(rows, rondo_divide_up(rows, parts));
    if (gain > best_gain) {
      best = parts;
      best_gain = gain;
    }
  }
  return best;
}

/* Into at most `most` parts, fewer if the library cannot make these. */
static int cut_rows(rondo_onednn_convolution *c, size_t most) {
  int code = ONEDNN_OK;
  (void)set_rows(c, 1);
  while (most > 1 && c->row_parts == 1 && code == ONEDNN_OK) {
    const size_t parts = even_parts(c->shape.window.out[RONDO_HEIGHT], most);
    if (set_rows(c, parts)) code = check_forms(c);
    most = parts - 1;
  }
  return code;
}

static void set_slices(rondo_onednn_convolution *c, size_t slices) {
  c->shape.out_channels = c->shape.out_channels * c->slices / slices;
  c->blocks.y = c->shape.out_channels;
  c->slices = slices;
}

/* Leaves the channels whole if the library cannot make slices of them. */
static int check_slices(rondo_onednn_convolution *c) {
  onednn_layout asked[OPERANDS];
  onednn_way way = NULL;
  int code = describe_operands(c, asked);
  if (code == ONEDNN_OK) code = choose(c, &c->shape.window, c->pass, asked, NULL, &way);
  const bool is_good =
      code == ONEDNN_OK && is_generated(way) && are_slices(rondo_onednn.way_layout(way, ONEDNN_OF_WEIGHTS, 0));
  if (way != NULL) (void)rondo_onednn.way_destroy(way);
  if (is_good || code == ONEDNN_NO_MEMORY) return code;
  set_slices(c, 1);
  return ONEDNN_OK;
}

/* Into as many slices as the library can make, at most `most`, of a multiple of a vector's channels each. Even numbers
 * come first, because they keep two threads equally busy. */
static int cut_slices(rondo_onednn_convolution *c, size_t most) {
  const size_t out = c->shape.out_channels, vectors = out / SLICE_CHANNELS;
  int code = ONEDNN_OK;
  assert(c->slices == 1);
  if (c->shape.groups > 1 || out % SLICE_CHANNELS != 0) return ONEDNN_OK;
  most = rondo_smaller(rondo_smaller(most, ENOUGH_PARTS), out / LAST_CHANNELS_AT_ONCE);
  for (size_t odd = 0; odd < 2; odd++) {
    for (size_t slices = most; slices > 1 && c->slices == 1 && code == ONEDNN_OK; slices--) {
      if (slices % 2 != odd || vectors % slices != 0) continue;
      set_slices(c, slices);
      code = check_slices(c);
    }
  }
  return code;
}

/* Parts of less work would take longer: some 20 microseconds, in multiplications. Reading or writing an element takes
 * as long as READING of them. More parts than ENOUGH_PARTS have twice as much. Rows of fewer places would also take
 * longer, because each part reads all weights: the channels of small images are cut instead. */
#define PART_WORK 0x1p21
#define READING 8.0
#define PART_PLACES 56
#define SMALL_IMAGE 192 /* places */

/* How many parts an image is worth. */
static size_t parts_of_image(const rondo_onednn_convolution *c) {
  const rondo_conv_shape *s = &c->shape;
  const double elements = (double)s->groups * ((double)s->in_channels * (double)rondo_conv_in(s) +
                                               (double)s->out_channels * (double)rondo_conv_out(s));
  const double parts = (multiplications(s) / (double)s->images + READING * elements) / PART_WORK;
  if (parts < (double)ENOUGH_PARTS) return (size_t)parts;
  return parts < 2.0 * MAX_PARTS ? rondo_larger((size_t)parts / 2, ENOUGH_PARTS) : MAX_PARTS;
}

/* Cuts rows or channels. What one image is worth decides which of them, and the number of slices, so that all batch
 * sizes have the same weights and share packed states. Of several images, fewer parts of the rows are enough. */
static int cut_last(rondo_onednn_convolution *c) {
  const size_t parts = parts_of_image(c), places = rondo_conv_out(&c->shape);
  const size_t rows = rondo_smaller(parts, rondo_smaller(places / PART_PLACES, c->shape.window.out[RONDO_HEIGHT]));
  int code = places < SMALL_IMAGE ? cut_slices(c, parts) : ONEDNN_OK;
  if (code != ONEDNN_OK || c->slices > 1) return code;
  code = cut_rows(c, rows);
  if (code == ONEDNN_OK && c->row_parts == 1 && places >= SMALL_IMAGE) code = cut_slices(c, parts);
  const size_t enough = rondo_divide_up(c->row_parts, c->image_parts);
  if (code == ONEDNN_OK && enough < c->row_parts) code = cut_rows(c, enough);
  return code;
}

/* A reorder, or the convolution of a part. */
static const primitive *primitive_of(const rondo_onednn_convolution *c, const row_form *form, int which) {
  return which == CONVOLUTION && form != NULL ? &form->convolution : &c->primitives[which];
}

static int make_memory(const onednn_layout *layout, place *out) {
  return rondo_onednn.memory_create(&out->memory, layout, rondo_onednn.engine, NULL);
}

/* The form of part `number`; NULL: images are whole. */
static const row_form *form_of_part(const rondo_onednn_convolution *c, size_t number) {
  rondo_window window;
  if (c->form_count == 0) return NULL;
  const bool is_there = window_of_rows(c, number % c->row_parts, &window);
  size_t i = 0;
  while (is_there && memcmp(&c->forms[i].window, &window, sizeof window) != 0) i++;
  assert(is_there && i < c->form_count);
  return &c->forms[i];
}

static int make_part(const rondo_onednn_convolution *c, const row_form *form, part *p) {
  const onednn_layout *plain[] = {[X] = form == NULL ? &c->operands[X].plain : &form->x,
                                  [WEIGHT] = &c->operands[WEIGHT].plain,
                                  [Y] = form == NULL ? &c->operands[Y].plain : &form->y};
  int code = rondo_onednn.stream_create(&p->stream, rondo_onednn.engine, ONEDNN_IN_ORDER);
  p->form = form;
  for (int i = 0; i < OPERANDS && code == ONEDNN_OK; i++) {
    code = make_memory(plain[i], &p->plain[i]);
    if (code == ONEDNN_OK && c->primitives[i].made != NULL) code = make_memory(&c->operands[i].wanted, &p->wanted[i]);
  }
  if (code == ONEDNN_OK && c->has_bias) code = make_memory(&c->bias, &p->bias);
  for (int i = 0; i < PRIMITIVES && code == ONEDNN_OK; i++) {
    const onednn_layout *scratch = &primitive_of(c, form, i)->scratch;
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
  for (size_t i = 0; i < part_count(c) && code == ONEDNN_OK; i++) code = make_part(c, form_of_part(c, i), &c->parts[i]);
  for (size_t i = 0; i <= c->slices && code == ONEDNN_OK; i++) code = make_part(c, NULL, &c->arrangers[i]);
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

/* Elements from the weights of a slice to the next. */
static size_t slice_elements(const rondo_onednn_convolution *c) {
  return c->is_packed ? rondo_onednn.layout_bytes(&c->operands[WEIGHT].wanted) / sizeof(float) : weight_elements(c);
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
  for (size_t i = 0; i < c->form_count; i++)
    scratch = rondo_larger(scratch, rondo_onednn.layout_bytes(&c->forms[i].convolution.scratch));
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
                 (first == 1 ? offset_along(layout, 0, outer) : outer * slice_elements(c));
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
  c->packed->stored = c->slices * slice_elements(c);
  fill_order(c, &c->operands[WEIGHT].wanted, c->packed);
  return RONDO_OK;
}

/* Whether to use the library --------------------------------------------------------------------------------------- */

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
  const rondo_onednn_use use = rondo_onednn_begin(); /* descriptors depend on the number of threads */
  *out_code = c->blocks.are_last != 0 ? cut_last(c) : ONEDNN_OK;
  const rondo_status status = allocate_parts(c);
  if (status == RONDO_OK && *out_code == ONEDNN_OK) *out_code = make_primitives(c);
  if (status == RONDO_OK && *out_code == ONEDNN_OK) *out_code = make_parts(c);
  rondo_onednn_end(use);
  RONDO_TRY(status);
  if (*out_code == ONEDNN_NO_MEMORY)
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_NONE, "oneDNN has no memory for a convolution");
  return RONDO_OK;
}

/* Images in blocks ------------------------------------------------------------------------------------------------- */

/* Whether the library has a fast way for the convolution whose result has blocks: one that `is_fast` accepts. Which
 * layout it would choose itself does not matter. */
static bool makes_blocks(const rondo_conv_shape *shape, rondo_conv_blocks blocks, bool has_bias,
                         bool (*is_fast)(onednn_way)) {
  rondo_onednn_convolution c = {.pass = RONDO_CONVOLUTION_FORWARD,
                                .shape = *shape,
                                .blocks = blocks,
                                .has_bias = has_bias,
                                .batch = 1,
                                .slices = 1};
  onednn_layout asked[OPERANDS];
  onednn_way way = NULL;
  const rondo_onednn_use use = rondo_onednn_begin();
  int code = describe_operands(&c, asked);
  if (code == ONEDNN_OK) code = choose(&c, &c.shape.window, c.pass, asked, NULL, &way);
  const bool is_made = code == ONEDNN_OK && is_fast(way);
  if (way != NULL) (void)rondo_onednn.way_destroy(way);
  rondo_onednn_end(use);
  return is_made;
}

static rondo_conv_shape usual_shape(size_t channels) {
  return (rondo_conv_shape){.window = {.in = {1, 16, 16},
                                       .out = {1, 14, 14},
                                       .kernel = {1, 3, 3},
                                       .stride = {1, 1, 1},
                                       .dilation = {1, 1, 1}},
                            .images = 1,
                            .groups = 1,
                            .in_channels = channels,
                            .out_channels = channels};
}

/* The largest blocks in which the library computes usual images; 1: none. */
static size_t block_of_channels(void) {
  const rondo_conv_shape usual = usual_shape(64);
  static _Atomic(size_t) known; /* the library and the processor stay; 0: not known yet */
  size_t found = atomic_load_explicit(&known, memory_order_relaxed);
  for (size_t block = RONDO_CONV_MAX_BLOCK; found == 0 && block >= 8; block /= 2)
    if (makes_blocks(&usual, (rondo_conv_blocks){block, block, 0}, true, is_generated)) found = block;
  if (found == 0) found = 1;
  atomic_store_explicit(&known, found, memory_order_relaxed);
  return found;
}

/* Products of small matrices take any number of channels, and 0.7 to 0.98 of the time that blocks of 16 take. */
size_t rondo_onednn_image_block(void) {
  const rondo_conv_shape usual = usual_shape(40);
  static _Atomic(size_t) known; /* as above */
  size_t found = atomic_load_explicit(&known, memory_order_relaxed);
  if (!rondo_library_find(&rondo_onednn_convolutions)) return 1;
  if (found == 0 && makes_blocks(&usual, (rondo_conv_blocks){40, 40, 1}, true, has_small_products))
    found = RONDO_CONV_ALL_CHANNELS;
  if (found == 0) found = block_of_channels();
  atomic_store_explicit(&known, found, memory_order_relaxed);
  return found;
}

bool rondo_onednn_makes_blocks(const rondo_conv_shape *shape, bool has_bias, rondo_conv_blocks blocks) {
  const rondo_onednn_convolution c = {.batch = 1};
  return shape->groups * shape->out_channels % blocks.y == 0 && fits_library(&c, shape) &&
         multiplications(shape) >= (double)rondo_option_number(RONDO_OPTION_ONEDNN_LEAST) &&
         makes_blocks(shape, blocks, has_bias, is_generated);
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
  c->activates = shape->activation == RONDO_ACTIVATION_SILU;
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
  for (size_t i = 0; i < MOST_FORMS; i++)
    if (c->forms[i].convolution.made != NULL) (void)rondo_onednn.primitive_destroy(c->forms[i].convolution.made);
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
  return rondo_onednn.primitive_execute(primitive_of(c, p->form, which)->made, p->stream, count, arguments) ==
         ONEDNN_OK;
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
  const size_t count = c->image_parts * c->row_parts; /* parts of a slice */
  part *arranger = &c->arrangers[slice], *first = &c->parts[slice * count];
  unsigned char *to = workspace + c->operands[WEIGHT].at + slice * c->operands[WEIGHT].bytes;
  unsigned char *slot = workspace + c->slots_at + slice * count * c->slot_bytes;
  bool is_ready = put(&arranger->plain[WEIGHT], weights + slice * weight_elements(c));
  for (size_t i = 0; i < count && is_ready; i++) is_ready = put(&first[i].wanted[WEIGHT], to);
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

/* Whether the channels of a slice are not all channels of a place. */
static bool is_strided(const rondo_onednn_convolution *c) { return c->blocks.are_last != 0 && c->slices > 1; }

/* Where the own kernels write their result: of such a slice, to where the library writes its own. */
static float *own_result(const rondo_onednn_convolution *c, const call *made) {
  return is_strided(c) ? (float *)(void *)(made->slot + c->operands[Y].at) : made->operands[Y];
}

/* Copies that result of a slice. */
static void spread_result(const rondo_onednn_convolution *c, const call *made) {
  const size_t channels = c->shape.out_channels;
  for (size_t i = 0; is_strided(c) && i < rondo_conv_out(&made->shape); i++)
    memcpy(made->operands[Y] + i * channels * c->slices, own_result(c, made) + i * channels, channels * sizeof(float));
}

static void run_own_blocks(const rondo_onednn_convolution *c, call *made) {
  float **of = made->operands, *y = own_result(c, made);
  rondo_conv_blocks blocks = c->blocks;
  rondo_conv_blocked_cpu(all_blocks(rondo_conv_blocked_rows(&made->shape, blocks)),
                         (void *[]){&made->shape, &blocks, &of[X], &of[WEIGHT], &made->bias, &y});
  spread_result(c, made);
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
      own_result(c, made)[rondo_conv_element(channel, i, places, c->blocks.y)] = packed_result(c, made, channel, at);
    }
  }
  spread_result(c, made);
}

/* The first element of x, and of the result, that a call has. */
static float *image_at(const rondo_onednn_convolution *c, const part *p, size_t index, size_t image, float *x) {
  const rondo_window *w = &c->shape.window;
  const size_t begin = index % c->row_parts * c->part_rows * w->stride[RONDO_HEIGHT];
  const size_t row = p->form == NULL ? 0 : begin + p->form->window.padding[RONDO_HEIGHT] - w->padding[RONDO_HEIGHT];
  return plain_image(c, image, x) + row * w->in[RONDO_WIDTH] * c->shape.groups * c->shape.in_channels;
}

static float *result_at(const rondo_onednn_convolution *c, size_t index, size_t image, float *y) {
  const rondo_conv_shape *s = &c->shape;
  const size_t slice = index / c->row_parts / c->image_parts, channels = s->groups * s->out_channels;
  const size_t row = c->row_parts == 1 ? 0 : index % c->row_parts * c->part_rows;
  y += image * c->slices * channels * rondo_conv_out(s) + row * s->window.out[RONDO_WIDTH] * channels;
  return y + slice * channels * (is_strided(c) ? 1 : rondo_conv_out(s));
}

/* The call for the images from `image` on, in part `index`. */
static call call_of(const rondo_onednn_convolution *c, size_t index, size_t image, void *const *args) {
  const rondo_conv_shape *s = &c->shape;
  const part *p = &c->parts[index];
  const size_t slice = index / c->row_parts / c->image_parts;
  unsigned char *workspace = RONDO_ARG(unsigned char *, 5);
  assert(index < part_count(c) && image < s->images);
  call made = {.slot = workspace + c->slots_at + index * c->slot_bytes, .shape = c->shape};
  made.shape.images = c->batch;
  if (p->form != NULL) made.shape.window = p->form->window;
  made.operands[X] = image_at(c, p, index, image, RONDO_ARG(float *, 1));
  made.operands[WEIGHT] = c->sum_bytes > 0 ? (float *)(void *)(workspace + c->sums_at + index * c->sum_bytes)
                                           : RONDO_ARG(float *, 2) + slice * slice_elements(c);
  made.operands[Y] = result_at(c, index, image, RONDO_ARG(float *, 3));
  if (c->has_bias) made.bias = RONDO_ARG(float *, 4) + slice * s->out_channels;
  return made;
}

/* Whether what the part shares with others is copied. */
static bool is_arranged(const rondo_onednn_convolution *c, size_t index) {
  return (!shares_weights(c) || c->arrangers[index / c->row_parts / c->image_parts].is_ready) &&
         (!shares_images(c) || c->arrangers[c->slices].is_ready);
}

/* The activation of a call's result. */
static void activate(const rondo_onednn_convolution *c, const call *made) {
  const rondo_activation activation = (rondo_activation)c->shape.activation;
  const size_t channels = c->shape.groups * c->shape.out_channels, places = c->batch * rondo_conv_out(&made->shape);
  const size_t runs = is_strided(c) ? places : 1;
  for (size_t i = 0; i < runs && activation != RONDO_ACTIVATION_NONE; i++)
    rondo_activate_in_place(activation, made->operands[Y] + i * channels * c->slices, places / runs * channels);
}

/* The images of a part, which it computes one call after the other. */
static void run_part(rondo_onednn_convolution *c, size_t index, void *const *args) {
  const size_t first = index / c->row_parts % c->image_parts * c->part_images, last = first + c->part_images;
  const bool is_ready = is_arranged(c, index);
  for (size_t image = first; image < last && image < c->shape.images; image += c->batch) {
    call made = call_of(c, index, image, args);
    const bool is_done = is_ready && run_library(c, &c->parts[index], &made);
    if (!is_done && c->is_packed) run_packed(c, &made);
    if (!is_done && !c->is_packed) run_own(c, &made);
    if (is_done ? !c->activates : c->is_packed) activate(c, &made);
  }
}

/* args: the convolution, x, weight, y, bias, workspace. A block is a part. */
static void run_parts(rondo_blocks blocks, void *const *args) {
  rondo_onednn_convolution *c = RONDO_ARG(rondo_onednn_convolution *, 0);
  const rondo_onednn_use use = rondo_onednn_begin();
  for (size_t index = blocks.first; index < blocks.last; index++) run_part(c, index, args);
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
