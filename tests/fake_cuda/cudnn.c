/* SPDX-License-Identifier: MIT
 * The fake cuDNN, a separate library. Like the real one, it knows only the driver, not Rondo. Graphs of several
 * operations are computed as cudnn_graph.h says. A convolution is a kernel
 * that the driver of RONDO_CUDA_LIBRARY launches on the handle's stream, with its arguments in one buffer (`extra`).
 * F32 convolutions are computed in the workspace, from which a second kernel rounds. The heuristics list unusable
 * engine configurations first, so that a caller must choose. Descriptors follow the manual strictly: each accepts only
 * its attributes, none after it is finalized, and may outlive the descriptors that it was made from. The library works
 * in the current context. Threads: any.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda/cudnn_graph.h"
#include "fake_cuda/fake_cudnn.h"
#include "fake_cuda/foreign_library.h"
#include "fake_cuda/image.h"
#include "tensor/operators/common/element.h"
#include "tensor/vendor/cudnn_abi.h"

#define AXES 3 /* depth, height, width; flat images have a depth of 1 */
#define RANK (2 + AXES)
#define MOST_ATTRIBUTES 8
#define NONDETERMINISTIC 4 /* CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC */
#define LARGE_TILES 8      /* CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 */
#define NOT_FINAL 2004     /* CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED */

struct cudnn_context {
  cu_context context;
  cu_module module;
  cu_function convolve, round;
  cu_module graph_module;
  cu_function evaluate;
  cudnn_stream stream;
};

/* A convolution; what both kernels get. */
typedef struct problem {
  size_t pass, type, images, in_channels, out_channels, group_in, group_out;
  size_t in[AXES], out[AXES], kernel[AXES], stride[AXES], padding[AXES], after[AXES], dilation[AXES];
  size_t adds, in_tf32;
  void *x, *weight, *y;
  float *workspace;
} problem;

/* Functions: fake_<member>, under the library's names. */
#define ROW(result, member, symbol, arguments) EXPORT result fake_##member arguments __asm__(#symbol);
CUDNN_FUNCTIONS(ROW)
#undef ROW

/* What tests ask -------------------------------------------------------------------------------------------------- */

static uint64_t convolutions, graphs, workspaces, in_tf32, inexact, violations;
static uint64_t refused_in; /* calls; 0: none is refused */
static int refused_code;
static size_t version = 91900;

static uint64_t count_convolutions(void) { return read_count(&convolutions); }
static uint64_t count_graphs(void) { return read_count(&graphs); }
static uint64_t count_workspaces(void) { return read_count(&workspaces); }
static uint64_t count_in_tf32(void) { return read_count(&in_tf32); }
static uint64_t count_inexact(void) { return read_count(&inexact); }
static uint64_t count_violations(void) { return read_count(&violations); }

static bool refuse_call(uint64_t number, int code) {
  pthread_mutex_lock(&lock);
  const bool came = refused_in == 0;
  refused_in = number;
  refused_code = code;
  pthread_mutex_unlock(&lock);
  return came;
}

static void set_version(size_t number) {
  pthread_mutex_lock(&lock);
  version = number;
  pthread_mutex_unlock(&lock);
}

EXPORT const void *fake_control(void) __asm__(FAKE_CUDNN_ENTRY);
const void *fake_control(void) {
  static const fake_cudnn_control control = {count_live,    count_convolutions, count_workspaces, count_in_tf32,
                                             count_inexact, count_violations,   set_failure,      refuse_call,
                                             count_graphs,  set_version};
  return &control;
}

static _Thread_local char words[128];

/* What this call is to fail with. */
static int enter(const char *symbol) {
  int code = begin(symbol);
  pthread_mutex_lock(&lock);
  if (refused_in > 0 && --refused_in == 0) code = refused_code;
  pthread_mutex_unlock(&lock);
  if (code != CUDNN_OK) (void)snprintf(words, sizeof words, "%s was told\nto fail", symbol);
  return code;
}

/* What the manual forbids. */
static int misuse(int code, const char *what) {
  pthread_mutex_lock(&lock);
  violations++;
  pthread_mutex_unlock(&lock);
  (void)snprintf(words, sizeof words, "misuse: %s", what);
  return code;
}

size_t fake_version(void) {
  pthread_mutex_lock(&lock);
  const size_t number = version;
  pthread_mutex_unlock(&lock);
  return number;
}

const char *fake_status_name(int status) {
  static const code_name names[] = {{CUDNN_OK, "CUDNN_STATUS_SUCCESS"},
                                    {CUDNN_BAD_VALUE, "CUDNN_STATUS_BAD_PARAM"},
                                    {CUDNN_NO_SUCH, "CUDNN_STATUS_NOT_SUPPORTED"},
                                    {CUDNN_NO_MEMORY, "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"},
                                    {CUDNN_NOT_RUN, "CUDNN_STATUS_EXECUTION_FAILED"}};
  return CODE_NAME(names, status, "CUDNN_STATUS_OF_ANOTHER_KIND");
}

void fake_last_words(char *message, size_t room) {
  (void)snprintf(message, room, "%s", words);
  words[0] = '\0';
}

/* Kernels ---------------------------------------------------------------------------------------------------------- */

static float load(const problem *p, const void *memory, size_t at) {
  float room;
  const float x = *rondo_load_chunk((rondo_type)p->type, memory, at, 1, &room);
  return p->in_tf32 ? rondo_float_of(rondo_float_bits(x) & ~0x1fffu) : x;
}

/* Rounded once, with what was there before where that is added to. */
static void store(const problem *p, void *memory, size_t at, float x) {
  float room;
  if (p->adds) x += *rondo_load_chunk((rondo_type)p->type, memory, at, 1, &room);
  *rondo_chunk_of((rondo_type)p->type, memory, at, &x) = x;
  rondo_store_chunk((rondo_type)p->type, memory, at, 1, &x);
}

/* A plane as floats: where it lies, or in the room. */
static const float *read_plane_of(const problem *p, const void *memory, size_t plane, size_t size, float *room) {
  if (p->type == RONDO_F32 && !p->in_tf32) return (const float *)memory + plane * size;
  for (size_t i = 0; i < size; i++) room[i] = load(p, memory, plane * size + i);
  return room;
}

/* The outputs along an axis whose window has this tap in the image, and where it lies for output 0, modulo 2^64. */
static rondo_span inside(const problem *p, int axis, size_t tap, size_t *out_offset) {
  rondo_span span = {0, 0};
  *out_offset = tap * p->dilation[axis] - p->padding[axis];
  while (span.first < p->out[axis] && span.first * p->stride[axis] + *out_offset >= p->in[axis]) span.first++;
  span.last = span.first;
  while (span.last < p->out[axis] && span.last * p->stride[axis] + *out_offset < p->in[axis]) span.last++;
  return span;
}

/* What is multiplied, and the sums of one plane of the result. */
typedef struct planes {
  const float *x, *window, *y;
  float *sums;
} planes;

/* The products of one tap and a row of outputs are added where the pass wants them. */
static void add_row(const problem *p, const planes *of, size_t tap, const float *x, size_t row, rondo_span columns) {
  const size_t stride = p->stride[2];
  if (p->pass == CUDNN_FORWARD)
    for (size_t i = columns.first; i < columns.last; i++) of->sums[row + i] += x[i * stride] * of->window[tap];
  if (p->pass == CUDNN_INPUT_GRADIENT)
    for (size_t i = columns.first; i < columns.last; i++)
      of->sums[(size_t)(x - of->x) + i * stride] += of->y[row + i] * of->window[tap];
  if (p->pass == CUDNN_WEIGHT_GRADIENT)
    for (size_t i = columns.first; i < columns.last; i++) of->sums[tap] += of->y[row + i] * x[i * stride];
}

static void add_tap(const problem *p, const planes *of, size_t tap) {
  const size_t *kernel = p->kernel, *stride = p->stride;
  size_t deep, down, across;
  const rondo_span deeps = inside(p, 0, tap / kernel[2] / kernel[1], &deep);
  const rondo_span rows = inside(p, 1, tap / kernel[2] % kernel[1], &down);
  const rondo_span columns = inside(p, 2, tap % kernel[2], &across), all = {0, columns.last - columns.first};
  for (size_t z = deeps.first; z < deeps.last; z++) {
    for (size_t row = rows.first; row < rows.last && columns.first < columns.last; row++) {
      const size_t line = (z * stride[0] + deep) * p->in[1] + row * stride[1] + down;
      const size_t first = line * p->in[2] + across + columns.first * stride[2];
      add_row(p, of, tap, of->x + first, (z * p->out[1] + row) * p->out[2] + columns.first, all);
    }
  }
}

static size_t product_of(const size_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/* The products of a plane of x, a window and a plane of y. The room is for a copy of each. */
static void add_products(const problem *p, size_t x_plane, size_t window, size_t y_plane, float *room, float *sums) {
  const size_t in = product_of(p->in), taps = product_of(p->kernel), out = product_of(p->out);
  const planes of = {.x = read_plane_of(p, p->x, x_plane, in, room),
                     .window = read_plane_of(p, p->weight, window, taps, room + in),
                     .y = read_plane_of(p, p->y, y_plane, out, room + in + taps),
                     .sums = sums};
  for (size_t tap = 0; tap < taps; tap++) add_tap(p, &of, tap);
}

/* A block makes one plane: of y, of dx, or the taps of one window. */
static size_t planes_of(const problem *p) {
  if (p->pass == CUDNN_FORWARD) return p->images * p->out_channels;
  return p->pass == CUDNN_INPUT_GRADIENT ? p->images * p->in_channels : p->out_channels * p->group_in;
}

static size_t plane_size(const problem *p) {
  const size_t *sizes = p->pass == CUDNN_FORWARD ? p->out : p->pass == CUDNN_INPUT_GRADIENT ? p->in : p->kernel;
  return product_of(sizes);
}

static void *result_of(const problem *p) {
  return p->pass == CUDNN_FORWARD ? p->y : p->pass == CUDNN_INPUT_GRADIENT ? p->x : p->weight;
}

static void convolve_plane(const problem *p, size_t plane, float *room, float *sums) {
  if (p->pass == CUDNN_FORWARD) {
    const size_t image = plane / p->out_channels, o = plane % p->out_channels, group = o / p->group_out;
    for (size_t c = 0; c < p->group_in; c++)
      add_products(p, image * p->in_channels + group * p->group_in + c, o * p->group_in + c, plane, room, sums);
  } else if (p->pass == CUDNN_INPUT_GRADIENT) {
    const size_t image = plane / p->in_channels, c = plane % p->in_channels, first = c / p->group_in * p->group_out;
    for (size_t o = first; o < first + p->group_out; o++)
      add_products(p, plane, o * p->group_in + c % p->group_in, image * p->out_channels + o, room, sums);
  } else {
    const size_t o = plane / p->group_in, c = o / p->group_out * p->group_in + plane % p->group_in;
    for (size_t image = 0; image < p->images; image++)
      add_products(p, image * p->in_channels + c, plane, image * p->out_channels + o, room, sums);
  }
}

static void convolve_cpu(rondo_blocks blocks, void *const *args) {
  const problem *p = args[0];
  const size_t size = plane_size(p);
  const size_t room = product_of(p->in) + product_of(p->kernel) + product_of(p->out);
  float *sums = malloc((size + room) * sizeof *sums);
  if (sums == NULL) abort();
  for (size_t plane = blocks.first; plane < blocks.last; plane++) {
    memset(sums, 0, size * sizeof *sums);
    convolve_plane(p, plane, sums + size, sums);
    for (size_t i = 0; i < size && p->workspace == NULL; i++) store(p, result_of(p), plane * size + i, sums[i]);
    if (p->workspace != NULL) memcpy(p->workspace + plane * size, sums, size * sizeof *sums);
  }
  free(sums);
}

static void round_cpu(rondo_blocks blocks, void *const *args) {
  const problem *p = args[0];
  const size_t size = plane_size(p);
  for (size_t i = blocks.first * size; i < blocks.last * size; i++) store(p, result_of(p), i, p->workspace[i]);
}

static void evaluate_cpu(rondo_blocks blocks, void *const *args) {
  if (blocks.first == 0 && blocks.last > 0) graph_evaluate(args[0]);
}

/* Handles ---------------------------------------------------------------------------------------------------------- */

int fake_create(cudnn_handle *out) {
  static const char image[] = FAKE_IMAGE_HEAD "fake_cudnn_convolve\nfake_cudnn_round\n";
  const int code = enter("cudnnCreate");
  if (code != CUDNN_OK) return code;
  cudnn_handle handle = make_object(sizeof *handle);
  const library_kernel kernels[] = {{"fake_cudnn_convolve", convolve_cpu, &handle->convolve},
                                    {"fake_cudnn_round", round_cpu, &handle->round}};
  if (!load_kernels(image, kernels, 2, (rondo_parameter)RONDO_SCALAR(problem), &handle->context, &handle->module)) {
    free_object(handle);
    return 1001; /* CUDNN_STATUS_NOT_INITIALIZED */
  }
  static const char graph_image[] = FAKE_IMAGE_HEAD "fake_cudnn_evaluate\n";
  const library_kernel evaluate = {"fake_cudnn_evaluate", evaluate_cpu, &handle->evaluate};
  if (!load_kernels(graph_image, &evaluate, 1, (rondo_parameter)RONDO_SCALAR(graph_run), &handle->context,
                    &handle->graph_module)) {
    (void)driver()->module_unload(handle->module);
    free_object(handle);
    return 1001;
  }
  *out = handle;
  return CUDNN_OK;
}

int fake_destroy(cudnn_handle handle) {
  if (handle == NULL) return misuse(CUDNN_BAD_VALUE, "destroying no handle");
  (void)driver()->module_unload(handle->graph_module);
  (void)driver()->module_unload(handle->module);
  free_object(handle);
  return CUDNN_OK;
}

int fake_set_stream(cudnn_handle handle, cudnn_stream stream) {
  const int code = enter("cudnnSetStream");
  if (code == CUDNN_OK) handle->stream = stream;
  return code;
}

/* Descriptors ------------------------------------------------------------------------------------------------------ */

typedef enum workspace_need { NO_WORKSPACE, OF_THE_RESULT, MORE_THAN_THERE_IS } workspace_need;

/* A way of making a convolution. */
typedef struct way {
  int notes[2];
  int note_count;
  bool of_f32, of_half; /* for which types it is listed */
  bool is_safe;         /* in which list */
  bool cannot_be_made;
  workspace_need workspace;
} way;

static const way ways[] = {
    {.notes = {NONDETERMINISTIC}, .note_count = 1, .of_f32 = true, .of_half = true},
    {.notes = {CUDNN_NOTE_TENSOR_CORE, CUDNN_NOTE_ROUNDS_FACTORS}, .note_count = 2, .of_f32 = true},
    {.notes = {CUDNN_NOTE_WINOGRAD}, .note_count = 1, .of_half = true},
    {.notes = {CUDNN_NOTE_WINOGRAD, LARGE_TILES}, .note_count = 2, .of_f32 = true},
    {.of_f32 = true, .of_half = true, .workspace = MORE_THAN_THERE_IS},
    {.of_f32 = true, .of_half = true, .cannot_be_made = true},
    {.notes = {CUDNN_NOTE_WINOGRAD, CUDNN_NOTE_WINOGRAD_4},
     .note_count = 2,
     .of_f32 = true,
     .workspace = OF_THE_RESULT},
    {.notes = {CUDNN_NOTE_TENSOR_CORE}, .note_count = 1, .of_half = true},
    {.notes = {CUDNN_NOTE_STRICT_NOT_NUMBER}, .note_count = 1, .of_f32 = true, .of_half = true, .is_safe = true},
};
#define WAYS (sizeof ways / sizeof ways[0])

typedef struct attribute {
  int name;
  int64_t count;
  union {
    int64_t numbers[GRAPH_OPERATIONS];
    float factor;
    int word;
    bool is_so;
    void *addresses[GRAPH_OPERATIONS];
  } of;
} attribute;

typedef struct descriptor {
  int kind;
  bool is_final;
  attribute attributes[MOST_ATTRIBUTES];
  size_t count;
  problem made;           /* from an operation on: what it is about */
  operation_graph *graph; /* of several operations; NULL: of a convolution */
  cudnn_handle handle;
  int mode;
  const way *chosen;
} descriptor;

static size_t element_bytes(int type) {
  switch (type) {
    case CUDNN_OF_TYPE:
    case CUDNN_OF_MODE:
    case CUDNN_OF_HEURISTIC:
    case CUDNN_OF_NOTE:
    case CUDNN_OF_POINTWISE:
    case CUDNN_OF_NOT_NUMBER:
    case CUDNN_OF_REDUCTION:
      return sizeof(int);
    case CUDNN_OF_BOOLEAN:
      return sizeof(bool);
    case CUDNN_OF_FLOAT:
      return sizeof(float);
    default:
      return sizeof(int64_t);
  }
}

/* What a kind of descriptor is given, with how many elements; all of it but a workspace, before it is final. */
static const struct {
  int kind, attribute, type;
  int64_t count;
} rows[] = {
    {CUDNN_TENSOR, CUDNN_TENSOR_ALIGNMENT, CUDNN_OF_INT64, 1},
    {CUDNN_TENSOR, CUDNN_TENSOR_TYPE, CUDNN_OF_TYPE, 1},
    {CUDNN_TENSOR, CUDNN_TENSOR_SIZES, CUDNN_OF_INT64, RANK},
    {CUDNN_TENSOR, CUDNN_TENSOR_STRIDES, CUDNN_OF_INT64, RANK},
    {CUDNN_TENSOR, CUDNN_TENSOR_NUMBER, CUDNN_OF_INT64, 1},
    {CUDNN_TENSOR, CUDNN_TENSOR_IS_VIRTUAL, CUDNN_OF_BOOLEAN, 1},
    {CUDNN_TENSOR, CUDNN_TENSOR_IS_BY_VALUE, CUDNN_OF_BOOLEAN, 1},
    {CUDNN_POINTWISE, CUDNN_POINTWISE_MODE, CUDNN_OF_POINTWISE, 1},
    {CUDNN_POINTWISE, CUDNN_POINTWISE_COMPUTE, CUDNN_OF_TYPE, 1},
    {CUDNN_POINTWISE, CUDNN_POINTWISE_AXIS, CUDNN_OF_INT64, 1},
    {CUDNN_POINTWISE, CUDNN_POINTWISE_NOT_NUMBER, CUDNN_OF_NOT_NUMBER, 1},
    {CUDNN_POINTWISE_OPERATION, CUDNN_POINTWISE_OF, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_POINTWISE_OPERATION, CUDNN_POINTWISE_X, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_POINTWISE_OPERATION, CUDNN_POINTWISE_B, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_POINTWISE_OPERATION, CUDNN_POINTWISE_T, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_POINTWISE_OPERATION, CUDNN_POINTWISE_Y, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_MATMUL, CUDNN_MATMUL_COMPUTE, CUDNN_OF_TYPE, 1},
    {CUDNN_MATMUL_OPERATION, CUDNN_MATMUL_OF, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_MATMUL_OPERATION, CUDNN_MATMUL_A, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_MATMUL_OPERATION, CUDNN_MATMUL_B, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_MATMUL_OPERATION, CUDNN_MATMUL_C, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_REDUCTION, CUDNN_REDUCTION_OPERATOR, CUDNN_OF_REDUCTION, 1},
    {CUDNN_REDUCTION, CUDNN_REDUCTION_COMPUTE, CUDNN_OF_TYPE, 1},
    {CUDNN_REDUCTION_OPERATION, CUDNN_REDUCTION_OF, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_REDUCTION_OPERATION, CUDNN_REDUCTION_X, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_REDUCTION_OPERATION, CUDNN_REDUCTION_Y, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_RESHAPE_OPERATION, CUDNN_RESHAPE_X, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_RESHAPE_OPERATION, CUDNN_RESHAPE_Y, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_WINDOW, CUDNN_WINDOW_COMPUTE, CUDNN_OF_TYPE, 1},
    {CUDNN_WINDOW, CUDNN_WINDOW_MODE, CUDNN_OF_MODE, 1},
    {CUDNN_WINDOW, CUDNN_WINDOW_DILATION, CUDNN_OF_INT64, AXES},
    {CUDNN_WINDOW, CUDNN_WINDOW_STRIDE, CUDNN_OF_INT64, AXES},
    {CUDNN_WINDOW, CUDNN_WINDOW_AFTER, CUDNN_OF_INT64, AXES},
    {CUDNN_WINDOW, CUDNN_WINDOW_BEFORE, CUDNN_OF_INT64, AXES},
    {CUDNN_WINDOW, CUDNN_WINDOW_AXES, CUDNN_OF_INT64, 1},
#define OPERATION(kind, first)                                                                 \
  {kind, first, CUDNN_OF_FLOAT, 1}, {kind, first + CUDNN_AFTER_ALPHA_BETA, CUDNN_OF_FLOAT, 1}, \
      {kind, first + CUDNN_AFTER_ALPHA_WINDOW, CUDNN_OF_DESCRIPTOR, 1},                        \
      {kind, first + CUDNN_AFTER_ALPHA_WEIGHT, CUDNN_OF_DESCRIPTOR, 1},                        \
      {kind, first + CUDNN_AFTER_ALPHA_X, CUDNN_OF_DESCRIPTOR, 1}, {                           \
    kind, first + CUDNN_AFTER_ALPHA_Y, CUDNN_OF_DESCRIPTOR, 1                                  \
  }
    OPERATION(CUDNN_FORWARD, CUDNN_FORWARD_ALPHA),
    OPERATION(CUDNN_INPUT_GRADIENT, CUDNN_INPUT_GRADIENT_ALPHA),
    OPERATION(CUDNN_WEIGHT_GRADIENT, CUDNN_WEIGHT_GRADIENT_ALPHA),
#undef OPERATION
    {CUDNN_GRAPH, CUDNN_GRAPH_HANDLE, CUDNN_OF_HANDLE, 1},
    {CUDNN_GRAPH, CUDNN_GRAPH_OPERATIONS, CUDNN_OF_DESCRIPTOR, GRAPH_OPERATIONS},
    {CUDNN_HEURISTIC, CUDNN_HEURISTIC_MODE, CUDNN_OF_HEURISTIC, 1},
    {CUDNN_HEURISTIC, CUDNN_HEURISTIC_GRAPH, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_PLAN, CUDNN_PLAN_HANDLE, CUDNN_OF_HANDLE, 1},
    {CUDNN_PLAN, CUDNN_PLAN_CONFIG, CUDNN_OF_DESCRIPTOR, 1},
    {CUDNN_PACK, CUDNN_PACK_NUMBERS, CUDNN_OF_INT64, GRAPH_PACKED},
    {CUDNN_PACK, CUDNN_PACK_ADDRESSES, CUDNN_OF_ADDRESS, GRAPH_PACKED},
    {CUDNN_PACK, CUDNN_PACK_WORKSPACE, CUDNN_OF_ADDRESS, 1},
};

static bool is_optional(int name) {
  return name == CUDNN_PACK_WORKSPACE || name == CUDNN_TENSOR_IS_VIRTUAL || name == CUDNN_TENSOR_IS_BY_VALUE ||
         name == CUDNN_POINTWISE_AXIS || name == CUDNN_POINTWISE_NOT_NUMBER || name == CUDNN_POINTWISE_B ||
         name == CUDNN_POINTWISE_T;
}

/* Lists of any length up to that of the row. */
static bool may_be_less(int name) {
  return name == CUDNN_GRAPH_OPERATIONS || name == CUDNN_PACK_NUMBERS || name == CUDNN_PACK_ADDRESSES;
}

static attribute *find(descriptor *d, int name) {
  for (size_t i = 0; i < d->count; i++)
    if (d->attributes[i].name == name) return &d->attributes[i];
  return NULL;
}

/* The descriptor that an attribute names. */
static descriptor *named(descriptor *d, int name) { return find(d, name)->of.addresses[0]; }

/* Kernels read the graph of a plan, so it lives as long as a descriptor that has it. */
static operation_graph *retain_graph(operation_graph *graph) {
  if (graph != NULL) graph->uses++;
  return graph;
}

static void release_graph(operation_graph *graph) {
  if (graph != NULL && --graph->uses == 0) free(graph);
}

int fake_descriptor_create(int kind, cudnn_descriptor *out) {
  const int code = enter("cudnnBackendCreateDescriptor");
  if (code != CUDNN_OK) return code;
  descriptor *d = make_object(sizeof *d);
  d->kind = kind;
  *out = d;
  return CUDNN_OK;
}

int fake_descriptor_destroy(cudnn_descriptor d) {
  if (d == NULL) return misuse(CUDNN_BAD_VALUE, "destroying no descriptor");
  release_graph(((descriptor *)d)->graph);
  free(d);
  note_live((size_t)-1);
  return CUDNN_OK;
}

int fake_descriptor_set(cudnn_descriptor of, int name, int type, int64_t count, const void *elements) {
  descriptor *d = of;
  const int code = enter("cudnnBackendSetAttribute");
  if (code != CUDNN_OK) return code;
  if (d->is_final || find(d, name) != NULL) return misuse(CUDNN_BAD_VALUE, "an attribute is set twice or late");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (rows[i].kind != d->kind || rows[i].attribute != name) continue;
    const bool is_flat = rows[i].count > 1 && count == rows[i].count - 1; /* without a depth */
    const bool is_less = may_be_less(name) && count > 0 && count < rows[i].count;
    if (rows[i].type != type || (rows[i].count != count && !is_flat && !is_less)) break;
    attribute *to = &d->attributes[d->count++];
    *to = (attribute){.name = name, .count = count};
    memcpy(&to->of, elements, (size_t)count * element_bytes(type));
    for (int64_t k = 0; type == CUDNN_OF_DESCRIPTOR && k < count; k++)
      if (!((descriptor *)to->of.addresses[k])->is_final) return misuse(NOT_FINAL, "a part is not final");
    return CUDNN_OK;
  }
  return misuse(CUDNN_BAD_VALUE, "no such attribute, of another type or count");
}

/* Making final ----------------------------------------------------------------------------------------------------- */

static bool has_all(descriptor *d) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].kind == d->kind && !is_optional(rows[i].attribute) && find(d, rows[i].attribute) == NULL) return false;
  return true;
}

/* Tensors of graphs say whether they are virtual, and have any strides. */
static int finalize_tensor(descriptor *d) {
  const int64_t *sizes = find(d, CUDNN_TENSOR_SIZES)->of.numbers, *strides = find(d, CUDNN_TENSOR_STRIDES)->of.numbers;
  int64_t stride = 1;
  if (find(d, CUDNN_TENSOR_IS_VIRTUAL) != NULL) return CUDNN_OK;
  for (int64_t i = find(d, CUDNN_TENSOR_SIZES)->count - 1; i >= 0; stride *= sizes[i--])
    if (sizes[i] < 1 || strides[i] != stride) return misuse(CUDNN_BAD_VALUE, "no packed tensor");
  return CUDNN_OK;
}

/* The last numbers of an attribute, for each axis; `none` for the depth of flat images. */
static void read_axes(descriptor *of, int name, size_t none, size_t *out) {
  const attribute *numbers = find(of, name);
  const int64_t axes = name == CUDNN_TENSOR_SIZES ? numbers->count - 2 : numbers->count;
  out[0] = none;
  for (int64_t i = 1; i <= axes; i++) out[AXES - i] = (size_t)numbers->of.numbers[numbers->count - i];
}

static size_t size_at(descriptor *tensor, int dimension) {
  return (size_t)find(tensor, CUDNN_TENSOR_SIZES)->of.numbers[dimension];
}

/* Whether the sizes belong together; as the window moves. */
static bool fits(const problem *p, size_t y_images) {
  for (int axis = 0; axis < AXES; axis++) {
    const size_t extent = p->dilation[axis] * (p->kernel[axis] - 1) + 1;
    const size_t padded = p->in[axis] + p->padding[axis] + p->after[axis];
    if (padded < extent || (padded - extent) / p->stride[axis] + 1 != p->out[axis]) return false;
  }
  return y_images == p->images && p->in_channels % p->group_in == 0 && p->out_channels % p->group_out == 0;
}

static bool is_so(descriptor *tensor, int name) {
  const attribute *of = find(tensor, name);
  return of != NULL && of->of.is_so;
}

static int read_problem(descriptor *d, int first, problem *p) {
  descriptor *x = named(d, first + CUDNN_AFTER_ALPHA_X), *y = named(d, first + CUDNN_AFTER_ALPHA_Y);
  descriptor *weight = named(d, first + CUDNN_AFTER_ALPHA_WEIGHT), *w = named(d, first + CUDNN_AFTER_ALPHA_WINDOW);
  const int type = find(x, CUDNN_TENSOR_TYPE)->of.word;
  *p = (problem){.pass = (size_t)d->kind, .images = size_at(x, 0), .in_channels = size_at(x, 1)};
  p->type = type == CUDNN_F16 ? RONDO_F16 : type == CUDNN_BF16 ? RONDO_BF16 : RONDO_F32;
  p->adds = find(d, first + CUDNN_AFTER_ALPHA_BETA)->of.factor == 1;
  p->out_channels = size_at(weight, 0);
  p->group_in = size_at(weight, 1);
  p->group_out = p->out_channels / (p->in_channels / p->group_in);
  read_axes(x, CUDNN_TENSOR_SIZES, 1, p->in);
  read_axes(y, CUDNN_TENSOR_SIZES, 1, p->out);
  read_axes(weight, CUDNN_TENSOR_SIZES, 1, p->kernel);
  read_axes(w, CUDNN_WINDOW_STRIDE, 1, p->stride);
  read_axes(w, CUDNN_WINDOW_BEFORE, 0, p->padding);
  read_axes(w, CUDNN_WINDOW_AFTER, 0, p->after);
  read_axes(w, CUDNN_WINDOW_DILATION, 1, p->dilation);
  if (!fits(p, size_at(y, 0)) || size_at(y, 1) != p->out_channels ||
      (!is_so(y, CUDNN_TENSOR_IS_VIRTUAL) && find(y, CUDNN_TENSOR_TYPE)->of.word != type) ||
      find(w, CUDNN_WINDOW_MODE)->of.word != CUDNN_CORRELATION || find(d, first)->of.factor != 1)
    return misuse(CUDNN_BAD_VALUE, "no convolution");
  /* As of some engines of the real one: a window may not lie in the padding alone. */
  for (int axis = 0; axis < AXES; axis++)
    if (p->padding[axis] > p->dilation[axis] * (p->kernel[axis] - 1)) return CUDNN_NO_SUCH;
  return CUDNN_OK;
}

/* The index of a tensor in the graph; -1: the operation has none. */
static int add_to_graph(operation_graph *graph, descriptor *operation, int name) {
  if (find(operation, name) == NULL) return -1;
  descriptor *d = named(operation, name);
  const int64_t number = find(d, CUDNN_TENSOR_NUMBER)->of.numbers[0];
  for (int i = 0; i < graph->tensor_count; i++)
    if (graph->tensors[i].number == number) return i;
  if (graph->tensor_count == GRAPH_TENSORS) abort();
  graph_tensor *t = &graph->tensors[graph->tensor_count];
  *t = (graph_tensor){.number = number,
                      .type = find(d, CUDNN_TENSOR_TYPE)->of.word,
                      .is_virtual = is_so(d, CUDNN_TENSOR_IS_VIRTUAL),
                      .is_value = is_so(d, CUDNN_TENSOR_IS_BY_VALUE)};
  memcpy(t->sizes, find(d, CUDNN_TENSOR_SIZES)->of.numbers, sizeof t->sizes);
  memcpy(t->strides, find(d, CUDNN_TENSOR_STRIDES)->of.numbers, sizeof t->strides);
  return graph->tensor_count++;
}

static int mode_of(descriptor *operation, int of, int mode) {
  return of == 0 ? 0 : find(named(operation, of), mode)->of.word;
}

static void set_window(graph_operation *to, descriptor *window) {
  memcpy(to->stride, find(window, CUDNN_WINDOW_STRIDE)->of.numbers, sizeof to->stride);
  memcpy(to->before, find(window, CUDNN_WINDOW_BEFORE)->of.numbers, sizeof to->before);
  memcpy(to->dilation, find(window, CUDNN_WINDOW_DILATION)->of.numbers, sizeof to->dilation);
}

static void add_operation(operation_graph *graph, descriptor *d) {
  static const struct {
    int kind, of, mode, x, b, t, y;
  } forms[] = {{CUDNN_POINTWISE_OPERATION, CUDNN_POINTWISE_OF, CUDNN_POINTWISE_MODE, CUDNN_POINTWISE_X,
                CUDNN_POINTWISE_B, CUDNN_POINTWISE_T, CUDNN_POINTWISE_Y},
               {CUDNN_MATMUL_OPERATION, 0, 0, CUDNN_MATMUL_A, CUDNN_MATMUL_B, 0, CUDNN_MATMUL_C},
               {CUDNN_REDUCTION_OPERATION, CUDNN_REDUCTION_OF, CUDNN_REDUCTION_OPERATOR, CUDNN_REDUCTION_X, 0, 0,
                CUDNN_REDUCTION_Y},
               {CUDNN_RESHAPE_OPERATION, 0, 0, CUDNN_RESHAPE_X, 0, 0, CUDNN_RESHAPE_Y},
               {CUDNN_FORWARD, 0, 0, CUDNN_FORWARD_ALPHA + CUDNN_AFTER_ALPHA_X,
                CUDNN_FORWARD_ALPHA + CUDNN_AFTER_ALPHA_WEIGHT, 0, CUDNN_FORWARD_ALPHA + CUDNN_AFTER_ALPHA_Y}};
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    if (forms[i].kind != d->kind) continue;
    graph_operation *to = &graph->operations[graph->operation_count++];
    *to = (graph_operation){.kind = d->kind, .mode = mode_of(d, forms[i].of, forms[i].mode)};
    if (to->kind == CUDNN_POINTWISE_OPERATION && to->mode == CUDNN_INDICES)
      to->axis = find(named(d, CUDNN_POINTWISE_OF), CUDNN_POINTWISE_AXIS)->of.numbers[0];
    if (to->kind == CUDNN_FORWARD) set_window(to, named(d, CUDNN_FORWARD_ALPHA + CUDNN_AFTER_ALPHA_WINDOW));
    to->x = add_to_graph(graph, d, forms[i].x);
    to->b = add_to_graph(graph, d, forms[i].b);
    to->t = add_to_graph(graph, d, forms[i].t);
    to->y = add_to_graph(graph, d, forms[i].y);
  }
}

/* A convolution alone, of packed tensors with the channels first. */
static bool is_plain_convolution(const attribute *operations) {
  descriptor *first = operations->of.addresses[0];
  return operations->count == 1 &&
         (first->kind != CUDNN_FORWARD ||
          find(named(first, CUDNN_FORWARD_ALPHA + CUDNN_AFTER_ALPHA_X), CUDNN_TENSOR_IS_VIRTUAL) == NULL);
}

static int finalize_graph(descriptor *d) {
  const attribute *operations = find(d, CUDNN_GRAPH_OPERATIONS);
  descriptor *first = operations->of.addresses[0];
  d->made = first->made;
  if (is_plain_convolution(operations)) return CUDNN_OK;
  d->graph = calloc(1, sizeof *d->graph);
  if (d->graph == NULL) abort();
  d->graph->uses = 1;
  for (int64_t i = 0; i < operations->count; i++) add_operation(d->graph, operations->of.addresses[i]);
  return CUDNN_OK;
}

static int finalize_plan(descriptor *d) {
  const descriptor *config = named(d, CUDNN_PLAN_CONFIG);
  d->made = config->made;
  d->graph = retain_graph(config->graph);
  d->chosen = config->chosen;
  d->handle = find(d, CUDNN_PLAN_HANDLE)->of.addresses[0];
  return d->chosen->cannot_be_made ? CUDNN_NO_SUCH : CUDNN_OK;
}

/* As of some engines of the real one: relu after windows with gaps. */
static bool is_refused(const operation_graph *graph) {
  bool has_gaps = false, has_relu = false;
  for (int i = 0; graph != NULL && i < graph->operation_count; i++) {
    has_gaps |= graph->operations[i].kind == CUDNN_FORWARD && graph->operations[i].dilation[0] > 1;
    has_relu |= graph->operations[i].kind == CUDNN_POINTWISE_OPERATION && graph->operations[i].mode == CUDNN_RELU;
  }
  return has_gaps && has_relu;
}

static int finalize_heuristic(descriptor *d) {
  d->made = named(d, CUDNN_HEURISTIC_GRAPH)->made;
  d->graph = retain_graph(named(d, CUDNN_HEURISTIC_GRAPH)->graph);
  d->mode = find(d, CUDNN_HEURISTIC_MODE)->of.word;
  if (is_refused(d->graph)) return CUDNN_NO_SUCH;
  return d->mode == CUDNN_HEURISTIC_LEARNED && d->graph == NULL && d->made.group_in == 1 ? CUDNN_NO_SUCH : CUDNN_OK;
}

static int finalize(descriptor *d) {
  switch (d->kind) {
    case CUDNN_TENSOR:
      return finalize_tensor(d);
    case CUDNN_FORWARD:
      return read_problem(d, CUDNN_FORWARD_ALPHA, &d->made);
    case CUDNN_INPUT_GRADIENT:
      return read_problem(d, CUDNN_INPUT_GRADIENT_ALPHA, &d->made);
    case CUDNN_WEIGHT_GRADIENT:
      return read_problem(d, CUDNN_WEIGHT_GRADIENT_ALPHA, &d->made);
    case CUDNN_GRAPH:
      return finalize_graph(d);
    case CUDNN_HEURISTIC:
      return finalize_heuristic(d);
    case CUDNN_PLAN:
      return finalize_plan(d);
    default:
      return CUDNN_OK;
  }
}

int fake_finalize(cudnn_descriptor of) {
  descriptor *d = of;
  int code = enter("cudnnBackendFinalize");
  if (code != CUDNN_OK) return code;
  if (d->is_final || !has_all(d)) return misuse(CUDNN_BAD_VALUE, "made final twice, or before all is said");
  code = finalize(d);
  d->is_final = code == CUDNN_OK;
  return code;
}

/* What is asked of descriptors ------------------------------------------------------------------------------------- */

static size_t workspace_of(const descriptor *plan) {
  const problem *p = &plan->made;
  if (plan->chosen->workspace == MORE_THAN_THERE_IS) return (size_t)1 << 50;
  if (plan->graph != NULL) return 0;
  return plan->chosen->workspace == NO_WORKSPACE ? 0 : planes_of(p) * plane_size(p) * sizeof(float);
}

static bool is_listed(const descriptor *heuristic, const way *w) {
  return w->is_safe == (heuristic->mode == CUDNN_HEURISTIC_SAFE) &&
         (heuristic->graph == NULL && heuristic->made.type == RONDO_F32 ? w->of_f32 : w->of_half);
}

/* Fills as many configurations as there is room for; all are counted where there is none. */
static int64_t list_ways(const descriptor *heuristic, int64_t room, cudnn_descriptor *configs) {
  int64_t count = 0;
  for (size_t i = 0; i < WAYS && (room == 0 || count < room); i++) {
    if (!is_listed(heuristic, &ways[i])) continue;
    if (room > 0) {
      descriptor *config = configs[count];
      config->made = heuristic->made;
      config->graph = retain_graph(heuristic->graph);
      config->chosen = &ways[i];
      config->is_final = true;
    }
    count++;
  }
  return count;
}

int fake_descriptor_get(const cudnn_descriptor of, int name, int type, int64_t room, int64_t *count, void *elements) {
  const descriptor *d = of;
  const int code = enter("cudnnBackendGetAttribute");
  if (code != CUDNN_OK) return code;
  if (!d->is_final) return misuse(NOT_FINAL, "asked before it is final");
  if (d->kind == CUDNN_HEURISTIC && name == CUDNN_HEURISTIC_RESULTS && type == CUDNN_OF_DESCRIPTOR) {
    *count = list_ways(d, room, elements);
  } else if (d->kind == CUDNN_CONFIG && name == CUDNN_CONFIG_ENGINE && type == CUDNN_OF_DESCRIPTOR && room == 1) {
    descriptor *engine = *(cudnn_descriptor *)elements;
    engine->chosen = d->chosen;
    engine->is_final = true;
    *count = 1;
  } else if (d->kind == CUDNN_ENGINE && name == CUDNN_ENGINE_NOTES && type == CUDNN_OF_NOTE && room == CUDNN_NOTES) {
    *count = d->chosen->note_count;
    memcpy(elements, d->chosen->notes, (size_t)*count * sizeof(int));
  } else if (d->kind == CUDNN_PLAN && name == CUDNN_PLAN_WORKSPACE && type == CUDNN_OF_INT64 && room == 1) {
    *(int64_t *)elements = (int64_t)workspace_of(d);
    *count = 1;
  } else {
    return misuse(CUDNN_BAD_VALUE, "no such question");
  }
  return CUDNN_OK;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static int launch(cudnn_handle handle, cu_function function, problem *p) {
  size_t bytes = sizeof *p;
  void *extra[] = {(void *)(uintptr_t)1, p, (void *)(uintptr_t)2, &bytes, NULL};
  const cu_result code = driver()->launch_kernel(function, (unsigned)planes_of(p), 1, 1, 32, 1, 1, 0,
                                                 (cu_stream)(void *)handle->stream, NULL, extra);
  return code == CU_OK ? CUDNN_OK : CUDNN_NOT_RUN;
}

/* The memory that the pack names; false where it does not do for the plan. */
static bool read_pack(const descriptor *plan, descriptor *pack, problem *p) {
  const attribute *numbers = find(pack, CUDNN_PACK_NUMBERS), *addresses = find(pack, CUDNN_PACK_ADDRESSES);
  const attribute *workspace = find(pack, CUDNN_PACK_WORKSPACE);
  void **const to[] = {&p->x, &p->weight, &p->y};
  for (int i = 0; i < 3; i++) {
    if (numbers->of.numbers[i] != i || addresses->of.addresses[i] == NULL) return false;
    if ((uintptr_t)addresses->of.addresses[i] % 16 != 0) return false;
    *to[i] = addresses->of.addresses[i];
  }
  p->workspace = workspace_of(plan) > 0 && workspace != NULL ? workspace->of.addresses[0] : NULL;
  return workspace_of(plan) == 0 || p->workspace != NULL;
}

static bool has_note(const way *w, int note) {
  return (w->note_count > 0 && w->notes[0] == note) || (w->note_count > 1 && w->notes[1] == note);
}

static void count_run(const way *w) {
  pthread_mutex_lock(&lock);
  convolutions++;
  workspaces += w->workspace != NO_WORKSPACE;
  in_tf32 += has_note(w, CUDNN_NOTE_ROUNDS_FACTORS);
  inexact +=
      has_note(w, NONDETERMINISTIC) || has_note(w, LARGE_TILES) || (has_note(w, CUDNN_NOTE_WINOGRAD) && w->of_half);
  pthread_mutex_unlock(&lock);
}

static int execute_graph(cudnn_handle handle, const descriptor *plan, descriptor *pack) {
  const attribute *numbers = find(pack, CUDNN_PACK_NUMBERS), *addresses = find(pack, CUDNN_PACK_ADDRESSES);
  graph_run run = {.graph = plan->graph};
  size_t bytes = sizeof run;
  if (numbers == NULL || addresses == NULL || numbers->count != addresses->count)
    return misuse(CUDNN_BAD_VALUE, "numbers and addresses do not match");
  run.count = numbers->count;
  for (int64_t i = 0; i < run.count; i++) {
    run.numbers[i] = numbers->of.numbers[i];
    run.addresses[i] = addresses->of.addresses[i];
  }
  if (!graph_has_memory(&run)) return misuse(CUDNN_BAD_VALUE, "the memory is not the plan's");
  void *extra[] = {(void *)(uintptr_t)1, &run, (void *)(uintptr_t)2, &bytes, NULL};
  const cu_result code =
      driver()->launch_kernel(handle->evaluate, 1, 1, 1, 32, 1, 1, 0, (cu_stream)(void *)handle->stream, NULL, extra);
  pthread_mutex_lock(&lock);
  graphs++;
  inexact += plan->chosen->note_count > 0 && plan->chosen->notes[0] == NONDETERMINISTIC;
  pthread_mutex_unlock(&lock);
  return code == CU_OK ? CUDNN_OK : CUDNN_NOT_RUN;
}

int fake_execute(cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor pack) {
  const descriptor *d = plan;
  cu_context context = NULL;
  int code = enter("cudnnBackendExecute");
  if (code != CUDNN_OK) return code;
  problem p = d->made;
  if (driver()->context_get_current(&context) != CU_OK) return CUDNN_NOT_RUN;
  if (context != handle->context || d->handle != handle)
    return misuse(CUDNN_BAD_VALUE, "another handle's plan, or context");
  if (((descriptor *)pack)->is_final && d->graph != NULL) return execute_graph(handle, plan, pack);
  if (!((descriptor *)pack)->is_final || !read_pack(plan, pack, &p))
    return misuse(CUDNN_BAD_VALUE, "the memory is not the plan's");
  p.in_tf32 = has_note(d->chosen, CUDNN_NOTE_ROUNDS_FACTORS);
  code = launch(handle, handle->convolve, &p);
  if (code == CUDNN_OK && p.workspace != NULL) code = launch(handle, handle->round, &p);
  if (code == CUDNN_OK) count_run(d->chosen);
  return code;
}
