/* SPDX-License-Identifier: MIT
 * Convolutions as cuDNN graphs with one operation. The library's heuristics list engine configurations, the fastest
 * first. The first one that is acceptable and builds a plan is used. The descriptors that a plan was built from are
 * kept as long as the plan.
 */
#include "tensor/vendor/cudnn.h"

#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "device/device.h"
#include "tensor/vendor/compute_libraries.h"

/* Descriptors that are kept, in order of creation. */
enum { X, WEIGHT, Y, WINDOW, OPERATION, GRAPH, CONFIG, PLAN, PACK, DESCRIPTORS };

struct rondo_convolution {
  rondo_convolution_maker *maker;
  rondo_convolution_shape shape;
  cudnn_descriptor descriptors[DESCRIPTORS]; /* NULL: not created */
  bool is_lacking;                           /* the library does not support the last request */
  size_t workspace_bytes;
};

/* Copies the library's last error message as one line. */
static void read_message(char *message, size_t capacity) {
  message[0] = '\0';
  rondo_cudnn_api.last_words(message, capacity);
  message[capacity - 1] = '\0';
  for (char *c = message; *c != '\0'; c++)
    if (*c == '\n') *c = ' ';
}

static rondo_status check(int code, const char *what) {
  char message[256];
  if (code == CUDNN_OK) return RONDO_OK;
  const char *name = rondo_cudnn_api.status_name(code);
  const bool is_memory = code == CUDNN_NO_MEMORY || code == CUDNN_NO_HOST_MEMORY;
  read_message(message, sizeof message);
  return rondo_fail_driver(is_memory ? RONDO_OUT_OF_MEMORY : RONDO_EXECUTION_FAILED, RONDO_REASON_NONE, code, name,
                           "%s: cuDNN failed%s%s (RONDO_CUDNN_LIBRARY=none disables it)", what,
                           message[0] == '\0' ? "" : ": ", message);
}

/* The library does not support it. Other codes are failures. */
static bool is_lack(int code) {
  return code >= CUDNN_NO_SUCH && code < CUDNN_NOT_RUN && code != CUDNN_NO_MEMORY && code != CUDNN_NO_HOST_MEMORY;
}

/* Describing ------------------------------------------------------------------------------------------------------- */

static const char describing[] = "describing a convolution";

/* An attribute of a descriptor. */
typedef struct setting {
  cudnn_attribute attribute;
  cudnn_element_type type;
  int64_t count;
  const void *elements;
} setting;

static int set_all(cudnn_descriptor descriptor, const setting *settings, size_t count) {
  int code = CUDNN_OK;
  for (size_t i = 0; i < count && code == CUDNN_OK; i++)
    code = rondo_cudnn_api.descriptor_set(descriptor, settings[i].attribute, settings[i].type, settings[i].count,
                                          settings[i].elements);
  return code == CUDNN_OK ? rondo_cudnn_api.finalize(descriptor) : code;
}

#define SETTINGS(...) (const setting[]){__VA_ARGS__}, sizeof((const setting[]){__VA_ARGS__}) / sizeof(setting)

/* Creates a descriptor with these attributes. If the library does not support it, sets is_lacking. */
static rondo_status make(rondo_convolution *c, int which, cudnn_kind kind, const setting *settings, size_t count) {
  RONDO_TRY(check(rondo_cudnn_api.descriptor_create(kind, &c->descriptors[which]), describing));
  const int code = set_all(c->descriptors[which], settings, count);
  c->is_lacking = is_lack(code);
  return c->is_lacking ? RONDO_OK : check(code, describing);
}

static void drop(cudnn_descriptor *descriptor) {
  if (*descriptor != NULL) (void)rondo_cudnn_api.descriptor_destroy(*descriptor); /* it exists, so this cannot fail */
  *descriptor = NULL;
}

#define AXES RONDO_CONVOLUTION_AXES
#define RANK (2 + AXES)
#define ALIGNMENT 16 /* bytes; all engines accept it, and all values have it */

static int type_of(rondo_type type) {
  return type == RONDO_F16 ? CUDNN_F16 : type == RONDO_BF16 ? CUDNN_BF16 : CUDNN_F32;
}

/* The first axis that the library sees: flat images have no depth, for which it has more engines. */
static size_t first_axis(const rondo_convolution_shape *s) {
  return s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->padding[0] == 0 ? 1 : 0;
}

/* Copies the sizes along the axes that the library sees; returns how many. */
static int64_t copy_axes(const rondo_convolution_shape *s, const size_t *sizes, int64_t *to) {
  int64_t count = 0;
  for (size_t axis = first_axis(s); axis < AXES; axis++) to[count++] = (int64_t)sizes[axis];
  return count;
}

/* The plan identifies the tensor by its index among the descriptors. */
static rondo_status make_tensor(rondo_convolution *c, int which, size_t count, size_t channels, const size_t *image) {
  int64_t sizes[RANK] = {(int64_t)count, (int64_t)channels}, strides[RANK];
  const int64_t rank = 2 + copy_axes(&c->shape, image, sizes + 2);
  const int64_t number = which, alignment = ALIGNMENT;
  const int type = type_of(c->shape.type);
  strides[rank - 1] = 1;
  for (int64_t i = rank - 1; i > 0; i--) strides[i - 1] = strides[i] * sizes[i];
  return make(
      c, which, CUDNN_TENSOR,
      SETTINGS({CUDNN_TENSOR_NUMBER, CUDNN_OF_INT64, 1, &number}, {CUDNN_TENSOR_TYPE, CUDNN_OF_TYPE, 1, &type},
               {CUDNN_TENSOR_SIZES, CUDNN_OF_INT64, rank, sizes}, {CUDNN_TENSOR_STRIDES, CUDNN_OF_INT64, rank, strides},
               {CUDNN_TENSOR_ALIGNMENT, CUDNN_OF_INT64, 1, &alignment}));
}

static rondo_status make_x(rondo_convolution *c) {
  const rondo_convolution_shape *s = &c->shape;
  return make_tensor(c, X, s->images, s->groups * s->in_channels, s->in);
}
static rondo_status make_weight(rondo_convolution *c) {
  const rondo_convolution_shape *s = &c->shape;
  return make_tensor(c, WEIGHT, s->groups * s->out_channels, s->in_channels, s->kernel);
}
static rondo_status make_y(rondo_convolution *c) {
  const rondo_convolution_shape *s = &c->shape;
  return make_tensor(c, Y, s->images, s->groups * s->out_channels, s->out);
}

static rondo_status make_window(rondo_convolution *c) {
  const rondo_convolution_shape *s = &c->shape;
  int64_t stride[AXES], before[AXES], after[AXES], dilation[AXES];
  const int64_t axes = copy_axes(s, s->stride, stride);
  (void)copy_axes(s, s->padding, before);
  (void)copy_axes(s, s->after, after);
  (void)copy_axes(s, s->dilation, dilation);
  const int compute = CUDNN_F32, mode = CUDNN_CORRELATION;
  return make(
      c, WINDOW, CUDNN_WINDOW,
      SETTINGS({CUDNN_WINDOW_AXES, CUDNN_OF_INT64, 1, &axes}, {CUDNN_WINDOW_COMPUTE, CUDNN_OF_TYPE, 1, &compute},
               {CUDNN_WINDOW_MODE, CUDNN_OF_MODE, 1, &mode}, {CUDNN_WINDOW_BEFORE, CUDNN_OF_INT64, axes, before},
               {CUDNN_WINDOW_AFTER, CUDNN_OF_INT64, axes, after},
               {CUDNN_WINDOW_DILATION, CUDNN_OF_INT64, axes, dilation},
               {CUDNN_WINDOW_STRIDE, CUDNN_OF_INT64, axes, stride}));
}

static rondo_status make_operation(rondo_convolution *c) {
  static const struct {
    cudnn_kind kind;
    cudnn_attribute alpha;
  } passes[] = {[RONDO_CONVOLUTION_FORWARD] = {CUDNN_FORWARD, CUDNN_FORWARD_ALPHA},
                [RONDO_CONVOLUTION_INPUT_GRADIENT] = {CUDNN_INPUT_GRADIENT, CUDNN_INPUT_GRADIENT_ALPHA},
                [RONDO_CONVOLUTION_WEIGHT_GRADIENT] = {CUDNN_WEIGHT_GRADIENT, CUDNN_WEIGHT_GRADIENT_ALPHA}};
  const cudnn_attribute first = passes[c->shape.pass].alpha;
  const cudnn_descriptor *of = c->descriptors;
  const float one = 1, before = c->shape.adds ? 1 : 0;
  return make(c, OPERATION, passes[c->shape.pass].kind,
              SETTINGS({first, CUDNN_OF_FLOAT, 1, &one}, {first + CUDNN_AFTER_ALPHA_BETA, CUDNN_OF_FLOAT, 1, &before},
                       {first + CUDNN_AFTER_ALPHA_WINDOW, CUDNN_OF_DESCRIPTOR, 1, &of[WINDOW]},
                       {first + CUDNN_AFTER_ALPHA_WEIGHT, CUDNN_OF_DESCRIPTOR, 1, &of[WEIGHT]},
                       {first + CUDNN_AFTER_ALPHA_X, CUDNN_OF_DESCRIPTOR, 1, &of[X]},
                       {first + CUDNN_AFTER_ALPHA_Y, CUDNN_OF_DESCRIPTOR, 1, &of[Y]}));
}

static rondo_status make_graph(rondo_convolution *c) {
  return make(c, GRAPH, CUDNN_GRAPH,
              SETTINGS({CUDNN_GRAPH_OPERATIONS, CUDNN_OF_DESCRIPTOR, 1, &c->descriptors[OPERATION]},
                       {CUDNN_GRAPH_HANDLE, CUDNN_OF_HANDLE, 1, &c->maker->handle}));
}

static rondo_status describe(rondo_convolution *c) {
  static rondo_status (*const makers[])(rondo_convolution * c) = {make_x,      make_weight,    make_y,
                                                                  make_window, make_operation, make_graph};
  for (size_t i = 0; i < sizeof makers / sizeof makers[0] && !c->is_lacking; i++) RONDO_TRY(makers[i](c));
  return RONDO_OK;
}

/* Choosing --------------------------------------------------------------------------------------------------------- */

static const char choosing[] = "choosing the engine of a convolution";

#define MAX_CONFIGS 64

/* The workspace limit: one copy of all tensors, in another layout or as F32, and some partial results. No engine makes
 * good use of more. */
#define MIN_WORKSPACE ((double)(4 << 20))

static double product_of(const size_t *sizes) { return (double)sizes[0] * (double)sizes[1] * (double)sizes[2]; }

static double workspace_limit(const rondo_convolution_shape *s) {
  const double channels_in = (double)s->images * (double)s->groups * (double)s->in_channels;
  const double channels_out = (double)s->images * (double)s->groups * (double)s->out_channels;
  const double weights = (double)s->groups * (double)s->out_channels * (double)s->in_channels;
  const double elements =
      channels_in * product_of(s->in) + channels_out * product_of(s->out) + weights * product_of(s->kernel);
  return MIN_WORKSPACE + 2 * elements * (double)rondo_type_bytes(s->type);
}

/* Whether an engine with this numerical note may be used. F32 may be computed by transforms, whose rounding errors are
 * those of F32 as long as Winograd's tiles are small. Values of 16 bits may not, because they would be rounded after
 * the transform. All other notes are refused: results that differ from run to run, sums in less than F32, large tiles.
 */
static bool is_accepted(int note, bool is_f32, bool allow_tf32) {
  switch (note) {
    case CUDNN_NOTE_STRICT_NOT_NUMBER:
      return true;
    case CUDNN_NOTE_TENSOR_CORE:
      return !is_f32 || allow_tf32;
    case CUDNN_NOTE_ROUNDS_FACTORS:
      return is_f32 && allow_tf32;
    case CUDNN_NOTE_FOURIER:
    case CUDNN_NOTE_WINOGRAD:
    case CUDNN_NOTE_WINOGRAD_4:
    case CUDNN_NOTE_WINOGRAD_6:
      return is_f32;
    default:
      return false;
  }
}

static bool may_take(const rondo_convolution *c, const int *notes, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!is_accepted(notes[i], c->shape.type == RONDO_F32, c->maker->allow_tf32)) return false;
  return true;
}

static rondo_status check_engine(const rondo_convolution *c, cudnn_descriptor config, bool *out_may_take) {
  cudnn_descriptor engine = NULL;
  int notes[CUDNN_NOTES];
  int64_t count = 0;
  int code = rondo_cudnn_api.descriptor_create(CUDNN_ENGINE, &engine);
  if (code == CUDNN_OK)
    code = rondo_cudnn_api.descriptor_get(config, CUDNN_CONFIG_ENGINE, CUDNN_OF_DESCRIPTOR, 1, &count, &engine);
  if (code == CUDNN_OK)
    code = rondo_cudnn_api.descriptor_get(engine, CUDNN_ENGINE_NOTES, CUDNN_OF_NOTE, CUDNN_NOTES, &count, notes);
  const rondo_status status = check(code, choosing);
  drop(&engine);
  *out_may_take = status == RONDO_OK && may_take(c, notes, count);
  return status;
}

/* Uses the plan of this configuration, unless it cannot be built or needs too much memory. */
static rondo_status try_config(rondo_convolution *c, cudnn_descriptor config) {
  bool takes = false;
  int64_t bytes = 0, count = 0;
  RONDO_TRY(check_engine(c, config, &takes));
  if (!takes) return RONDO_OK;
  RONDO_TRY(make(c, PLAN, CUDNN_PLAN,
                 SETTINGS({CUDNN_PLAN_CONFIG, CUDNN_OF_DESCRIPTOR, 1, &config},
                          {CUDNN_PLAN_HANDLE, CUDNN_OF_HANDLE, 1, &c->maker->handle})));
  cudnn_descriptor *plan = &c->descriptors[PLAN];
  if (!c->is_lacking)
    RONDO_TRY(check(rondo_cudnn_api.descriptor_get(*plan, CUDNN_PLAN_WORKSPACE, CUDNN_OF_INT64, 1, &count, &bytes),
                    choosing));
  if (c->is_lacking || (double)bytes > workspace_limit(&c->shape)) drop(plan);
  c->workspace_bytes = (size_t)bytes;
  return RONDO_OK;
}

static rondo_status try_configs(rondo_convolution *c, cudnn_descriptor *configs, int64_t count) {
  for (int64_t i = 0; i < count && c->descriptors[PLAN] == NULL; i++) {
    RONDO_TRY(try_config(c, configs[i]));
    if (c->descriptors[PLAN] == NULL) continue;
    c->descriptors[CONFIG] = configs[i];
    configs[i] = NULL;
  }
  return RONDO_OK;
}

/* Lists at most MAX_CONFIGS configurations, the best first. The caller owns their descriptors, also after a failure. */
static rondo_status list_configs(cudnn_descriptor heuristic, cudnn_descriptor *configs, int64_t *count) {
  int64_t listed = 0;
  RONDO_TRY(
      check(rondo_cudnn_api.descriptor_get(heuristic, CUDNN_HEURISTIC_RESULTS, CUDNN_OF_DESCRIPTOR, 0, &listed, NULL),
            choosing));
  const int64_t capacity = listed < MAX_CONFIGS ? listed : MAX_CONFIGS;
  for (int64_t i = 0; i < capacity; i++)
    RONDO_TRY(check(rondo_cudnn_api.descriptor_create(CUDNN_CONFIG, &configs[i]), choosing));
  if (capacity == 0) return RONDO_OK;
  return check(
      rondo_cudnn_api.descriptor_get(heuristic, CUDNN_HEURISTIC_RESULTS, CUDNN_OF_DESCRIPTOR, capacity, count, configs),
      choosing);
}

/* Uses the first acceptable configuration that the heuristic lists, if there is one. */
static rondo_status choose_of(rondo_convolution *c, cudnn_descriptor heuristic) {
  cudnn_descriptor configs[MAX_CONFIGS] = {NULL};
  int64_t count = 0;
  rondo_status status = list_configs(heuristic, configs, &count);
  if (status == RONDO_OK) status = try_configs(c, configs, count < MAX_CONFIGS ? count : MAX_CONFIGS);
  for (size_t i = 0; i < MAX_CONFIGS; i++) drop(&configs[i]);
  return status;
}

static rondo_status choose(rondo_convolution *c, int mode) {
  cudnn_descriptor heuristic = NULL;
  RONDO_TRY(check(rondo_cudnn_api.descriptor_create(CUDNN_HEURISTIC, &heuristic), choosing));
  const int code = set_all(heuristic, SETTINGS({CUDNN_HEURISTIC_GRAPH, CUDNN_OF_DESCRIPTOR, 1, &c->descriptors[GRAPH]},
                                               {CUDNN_HEURISTIC_MODE, CUDNN_OF_HEURISTIC, 1, &mode}));
  rondo_status status = is_lack(code) ? RONDO_OK : check(code, choosing);
  if (code == CUDNN_OK) status = choose_of(c, heuristic);
  drop(&heuristic);
  return status;
}

/* Preparing -------------------------------------------------------------------------------------------------------- */

/* rondo_library_call. */
static rondo_status make_ready(void *user) {
  rondo_convolution *c = user;
  if (c->maker->handle == NULL) RONDO_TRY(check(rondo_cudnn_api.create(&c->maker->handle), "initializing cuDNN"));
  RONDO_TRY(describe(c));
  if (c->is_lacking) return RONDO_OK;
  RONDO_TRY(choose(c, CUDNN_HEURISTIC_LEARNED));
  return c->descriptors[PLAN] == NULL ? choose(c, CUDNN_HEURISTIC_SAFE) : RONDO_OK;
}

static void log_unsupported(const rondo_convolution_shape *s) {
  rondo_log(RONDO_LOG_DEBUG, "tensor",
            "cuDNN has no suitable engine for pass %d of a convolution of %zu images [%zu, %zu, %zu, %zu] by %zu "
            "windows [%zu, "
            "%zu, %zu, %zu] of each of %zu groups",
            (int)s->pass, s->images, s->groups * s->in_channels, s->in[0], s->in[1], s->in[2], s->out_channels,
            s->in_channels, s->kernel[0], s->kernel[1], s->kernel[2], s->groups);
}

static bool is_worth_while(const rondo_convolution_shape *s) {
  const double results = (double)s->images * (double)s->groups * (double)s->out_channels * product_of(s->out);
  const double each = (double)s->in_channels * product_of(s->kernel);
  return results * each >= (double)rondo_option_number(RONDO_OPTION_CUDNN_LEAST);
}

rondo_status rondo_convolution_create(rondo_convolution_maker *maker, const rondo_convolution_shape *shape,
                                      rondo_convolution **out) {
  *out = NULL;
  if (!rondo_device_takes_libraries(maker->device) || !is_worth_while(shape) || !rondo_library_find(&rondo_cudnn))
    return RONDO_OK;
  rondo_convolution *made;
  RONDO_TRY(rondo_allocate_items(&maker->allocator, 1, sizeof *made, &made));
  *made = (rondo_convolution){.maker = maker, .shape = *shape};
  const rondo_status status = rondo_device_call_library(maker->device, RONDO_LIBRARY_AT_ONCE, make_ready, made);
  if (status == RONDO_OK && made->descriptors[PLAN] != NULL) {
    *out = made;
    return RONDO_OK;
  }
  if (status == RONDO_OK) log_unsupported(shape);
  rondo_convolution_destroy(made);
  return status;
}

/* rondo_library_call. */
static rondo_status free_descriptors(void *user) {
  rondo_convolution *c = user;
  for (int i = DESCRIPTORS - 1; i >= 0; i--) drop(&c->descriptors[i]);
  return RONDO_OK;
}

void rondo_convolution_destroy(rondo_convolution *convolution) {
  if (convolution == NULL) return;
  rondo_status_ignore(
      rondo_device_call_library(convolution->maker->device, RONDO_LIBRARY_FREE, free_descriptors, convolution),
      "what cannot be entered has nothing left to free");
  const rondo_allocator allocator = convolution->maker->allocator;
  rondo_release(&allocator, convolution, 1, sizeof *convolution);
}

void rondo_convolution_maker_init(rondo_convolution_maker *maker, rondo_device *device,
                                  const rondo_allocator *allocator) {
  *maker = (rondo_convolution_maker){.device = device, .allocator = *allocator};
  pthread_mutex_init(&maker->use, NULL);
}

/* rondo_library_call. */
static rondo_status free_handle(void *user) {
  (void)rondo_cudnn_api.destroy(user); /* after the loss of a device, nothing of it remains */
  return RONDO_OK;
}

void rondo_convolution_maker_deinit(rondo_convolution_maker *maker) {
  if (maker->handle != NULL)
    rondo_status_ignore(rondo_device_call_library(maker->device, RONDO_LIBRARY_FREE, free_handle, maker->handle),
                        "what cannot be entered has nothing left to free");
  maker->handle = NULL;
  pthread_mutex_destroy(&maker->use);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

size_t rondo_convolution_workspace(const rondo_convolution *convolution) { return convolution->workspace_bytes; }

rondo_status rondo_convolution_bind(rondo_convolution *convolution, const rondo_convolution_memory *memory) {
  const int64_t numbers[] = {X, WEIGHT, Y};
  const void *const addresses[] = {memory->x, memory->weight, memory->y};
  const setting settings[] = {{CUDNN_PACK_NUMBERS, CUDNN_OF_INT64, 3, numbers},
                              {CUDNN_PACK_ADDRESSES, CUDNN_OF_ADDRESS, 3, addresses},
                              {CUDNN_PACK_WORKSPACE, CUDNN_OF_ADDRESS, 1, &memory->workspace}};
  const char *const what = "setting the memory of a convolution";
  cudnn_descriptor *pack = &convolution->descriptors[PACK];
  assert(convolution->descriptors[PLAN] != NULL && *pack == NULL);
  RONDO_TRY(check(rondo_cudnn_api.descriptor_create(CUDNN_PACK, pack), what));
  return check(set_all(*pack, settings, convolution->workspace_bytes > 0 ? 3 : 2), what);
}

typedef struct convolution_run {
  const rondo_convolution *convolution;
  cudnn_stream stream;
} convolution_run;

static rondo_status queue(const rondo_convolution *c, cudnn_stream stream) {
  const cudnn_handle handle = c->maker->handle;
  RONDO_TRY(check(rondo_cudnn_api.set_stream(handle, stream), "a convolution's stream"));
  return check(rondo_cudnn_api.execute(handle, c->descriptors[PLAN], c->descriptors[PACK]), "a convolution");
}

/* rondo_library_call. */
static rondo_status execute(void *user) {
  const convolution_run *run = user;
  pthread_mutex_t *use = &run->convolution->maker->use;
  pthread_mutex_lock(use);
  const rondo_status status = queue(run->convolution, run->stream);
  pthread_mutex_unlock(use);
  return status;
}

rondo_status rondo_convolution_run(const rondo_convolution *convolution, rondo_stream *stream) {
  assert(convolution->descriptors[PACK] != NULL);
  convolution_run run = {convolution, rondo_stream_native(stream)};
  return rondo_device_call_library(convolution->maker->device, RONDO_LIBRARY_WORK, execute, &run);
}
