/* SPDX-License-Identifier: MIT
 * See foreign_library.h. Functions are found through cuGetProcAddress, at versions that fix their meaning.
 */
#include "support/foreign_library.h"

#include <dlfcn.h>
#include <rondo/kernel.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;

static const char ptx[] =
    ".version 6.3\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry foreign_affine(.param .u32 p_factor, .param .u32 p_term, .param .u64 p_word)\n"
    "{\n"
    "  .reg .b32 %factor, %term, %value;\n"
    "  .reg .b64 %word;\n"
    "  ld.param.u32 %factor, [p_factor];\n"
    "  ld.param.u32 %term, [p_term];\n"
    "  ld.param.u64 %word, [p_word];\n"
    "  ld.global.u32 %value, [%word];\n"
    "  mad.lo.u32 %value, %value, %factor, %term;\n"
    "  st.global.u32 [%word], %value;\n"
    "  ret;\n"
    "}\n";

/* CUDA_MEMCPY3D; CUlaunchAttribute; CUlaunchConfig; CUDA_GRAPH_INSTANTIATE_PARAMS */
typedef struct copy_3d {
  size_t src_x, src_y, src_z, src_lod;
  int src_type;
  const void *src_host;
  address src_device;
  void *src_array, *src_reserved;
  size_t src_pitch, src_height;
  size_t dst_x, dst_y, dst_z, dst_lod;
  int dst_type;
  void *dst_host;
  address dst_device;
  void *dst_array, *dst_reserved;
  size_t dst_pitch, dst_height;
  size_t width, height, depth;
} copy_3d;

typedef struct launch_attribute {
  int id;
  char padding[4];
  int value, more[2];
  char rest[52];
} launch_attribute;

typedef struct launch_config {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void *stream;
  const launch_attribute *attributes;
  unsigned attribute_count;
} launch_config;

typedef struct instantiate_params {
  uint64_t flags;
  void *upload_stream, *error_node;
  int result;
} instantiate_params;

/* clang-format off */
#define FUNCTIONS(row)                                                                                          \
  row(init, "cuInit", 2000, (unsigned flags))                                                                   \
  row(device_get, "cuDeviceGet", 2000, (int *device, int ordinal))                                              \
  row(retain, "cuDevicePrimaryCtxRetain", 7000, (void **context, int device))                                   \
  row(release, "cuDevicePrimaryCtxRelease", 11000, (int device))                                                \
  row(get_current, "cuCtxGetCurrent", 4000, (void **context))                                                   \
  row(set_current, "cuCtxSetCurrent", 4000, (void *context))                                                    \
  row(load, "cuModuleLoadDataEx", 2010,                                                                         \
      (void **module, const void *image, unsigned count, int *options, void **values))                          \
  row(unload, "cuModuleUnload", 2000, (void *module))                                                           \
  row(find, "cuModuleGetFunction", 2000, (void **function, void *module, const char *name))                     \
  row(launch, "cuLaunchKernel", 4000,                                                                           \
      (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,            \
       unsigned shared, void *stream, void **params, void **extra))                                             \
  row(launch_ex, "cuLaunchKernelEx", 11060,                                                                     \
      (const launch_config *config, void *function, void **params, void **extra))                               \
  row(copy, "cuMemcpyAsync", 4000, (address dst, address src, size_t bytes, void *stream))                      \
  row(copy_3d, "cuMemcpy3DAsync", 3020, (const copy_3d *params, void *stream))                                  \
  row(fill, "cuMemsetD32Async", 3020, (address dst, unsigned value, size_t count, void *stream))                \
  row(host, "cuLaunchHostFunc", 10000, (void *stream, void (*function)(void *), void *user))                    \
  row(wait_value, "cuStreamWaitValue32", 11070, (void *stream, address at, uint32_t value, unsigned flags))     \
  row(allocate, "cuMemAllocAsync", 11020, (address *memory, size_t bytes, void *stream))                        \
  row(free, "cuMemFreeAsync", 11020, (address memory, void *stream))                                            \
  row(stream_create, "cuStreamCreate", 2000, (void **stream, unsigned flags))                                   \
  row(stream_destroy, "cuStreamDestroy", 4000, (void *stream))                                                  \
  row(event_create, "cuEventCreate", 2000, (void **event, unsigned flags))                                      \
  row(event_destroy, "cuEventDestroy", 4000, (void *event))                                                     \
  row(record, "cuEventRecord", 2000, (void *event, void *stream))                                               \
  row(record_with, "cuEventRecordWithFlags", 11010, (void *event, void *stream, unsigned flags))                \
  row(wait, "cuStreamWaitEvent", 3020, (void *stream, void *event, unsigned flags))                             \
  row(synchronize, "cuStreamSynchronize", 2000, (void *stream))                                                 \
  row(begin_capture, "cuStreamBeginCapture", 10010, (void *stream, unsigned mode))                              \
  row(end_capture, "cuStreamEndCapture", 10000, (void *stream, void **graph))                                   \
  row(destroy_graph, "cuGraphDestroy", 10000, (void *graph))                                                    \
  row(add_child, "cuGraphAddChildGraphNode", 10000,                                                             \
      (void **node, void *graph, void *const *before, size_t count, void *child))                               \
  row(graph_nodes, "cuGraphGetNodes", 10000, (void *graph, void **nodes, size_t *count))                        \
  row(instantiate, "cuGraphInstantiateWithParams", 12000, (void **exec, void *graph, instantiate_params *params)) \
  row(exec_launch, "cuGraphLaunch", 10000, (void *exec, void *stream))                                          \
  row(exec_destroy, "cuGraphExecDestroy", 10000, (void *exec))
/* clang-format on */

struct foreign_library {
  void *library;
#define member(name, symbol, version, arguments) int(*name) arguments;
  FUNCTIONS(member)
#undef member
  int device;
  void *context, *module, *affine, *stream, *event;
};

static const struct {
  const char *symbol;
  int version;
  size_t offset;
} functions[] = {
#define place(name, symbol, version, arguments) {symbol, version, offsetof(foreign_library, name)},
    FUNCTIONS(place)
#undef place
};

typedef int (*get_address_fn)(const char *symbol, void **out, int version, uint64_t flags, int *found);
typedef int (*test_kernel_fn)(const char *name, rondo_cpu_function function, rondo_cpu_block_function block,
                              size_t count, const rondo_parameter *parameters);

static void affine_cpu(rondo_blocks blocks, void *const *args) {
  uint32_t *const word = *(uint32_t *const *)args[2];
  for (size_t i = blocks.first; i < blocks.last; i++)
    *word = *word * *(const uint32_t *)args[0] + *(const uint32_t *)args[1];
}

/* The fake driver runs kernels as CPU functions. */
static void tell_fake(void *library) {
  static const rondo_parameter parameters[] = {RONDO_SCALAR(uint32_t), RONDO_SCALAR(uint32_t), RONDO_UPDATES};
  void *symbol = dlsym(library, "rondoTestKernel");
  test_kernel_fn tell;
  if (symbol == NULL) return;
  memcpy(&tell, &symbol, sizeof tell);
  (void)tell("foreign_affine", affine_cpu, NULL, 3, parameters);
}

static int find_functions(foreign_library *f) {
  get_address_fn get;
  void *symbol = dlsym(f->library, "cuGetProcAddress_v2");
  if (symbol == NULL) return 1;
  memcpy(&get, &symbol, sizeof get);
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    int state;
    void *found = NULL;
    if (get(functions[i].symbol, &found, functions[i].version, 0, &state) != 0 || found == NULL) return 1;
    memcpy((char *)f + functions[i].offset, &found, sizeof found);
  }
  return 0;
}

/* The device's context for the length of a call. */
static void *enter(const foreign_library *f) {
  void *before = NULL;
  (void)f->get_current(&before);
  (void)f->set_current(f->context);
  return before;
}

static int leave(const foreign_library *f, void *before, int code) {
  (void)f->set_current(before);
  return code;
}

static int prepare(foreign_library *f) {
  int code = f->init(0);
  if (code == 0) code = f->device_get(&f->device, 0);
  if (code == 0) code = f->retain(&f->context, f->device);
  if (code != 0) return code;
  tell_fake(f->library);
  void *before = enter(f);
  code = f->load(&f->module, ptx, 0, NULL, NULL);
  if (code == 0) code = f->find(&f->affine, f->module, "foreign_affine");
  if (code == 0) code = f->stream_create(&f->stream, 1);
  if (code == 0) code = f->event_create(&f->event, 2);
  return leave(f, before, code);
}

foreign_library *foreign_open(void) {
  const char *named = getenv("RONDO_CUDA_LIBRARY");
  foreign_library *f = calloc(1, sizeof *f);
  if (f == NULL) return NULL;
  f->library = dlopen(named != NULL ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (f->library != NULL && find_functions(f) == 0 && prepare(f) == 0) return f;
  free(f);
  return NULL;
}

void foreign_close(foreign_library *f) {
  void *before = enter(f);
  (void)f->event_destroy(f->event);
  (void)f->stream_destroy(f->stream);
  (void)f->unload(f->module);
  (void)leave(f, before, 0);
  (void)f->release(f->device);
  free(f);
}

void *foreign_affine_function(const foreign_library *f) { return f->affine; }

/* Kernels --------------------------------------------------------------------------------------------------------- */

int foreign_affine(foreign_library *f, void *stream, uint32_t factor, uint32_t term, uint32_t *word) {
  void *params[] = {&factor, &term, &word};
  void *before = enter(f);
  return leave(f, before, f->launch(f->affine, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

int foreign_affine_by_buffer(foreign_library *f, void *stream, uint32_t factor, uint32_t term, uint32_t *word) {
  struct {
    uint32_t factor, term;
    uint32_t *word;
  } arguments = {factor, term, word};
  size_t bytes = sizeof arguments;
  void *extra[] = {(void *)(uintptr_t)1, &arguments, (void *)(uintptr_t)2, &bytes, NULL};
  void *before = enter(f);
  return leave(f, before, f->launch(f->affine, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
}

int foreign_affine_early(foreign_library *f, void *stream, uint32_t factor, uint32_t term, uint32_t *word) {
  enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6, PRIORITY = 8 };
  const launch_attribute attributes[] = {{.id = PROGRAMMATIC_STREAM_SERIALIZATION, .value = 1},
                                         {.id = PRIORITY, .value = -1}};
  const launch_config config = {.grid_x = 1,
                                .grid_y = 1,
                                .grid_z = 1,
                                .block_x = 1,
                                .block_y = 1,
                                .block_z = 1,
                                .stream = stream,
                                .attributes = attributes,
                                .attribute_count = 2};
  void *params[] = {&factor, &term, &word};
  void *before = enter(f);
  return leave(f, before, f->launch_ex(&config, f->affine, params, NULL));
}

int foreign_affine_with(foreign_library *f, void *stream, uint32_t factor, uint32_t term, uint32_t *word,
                        const foreign_launch *how) {
  enum { COOPERATIVE = 2, CLUSTER = 4, PRIORITY = 8, MEMORY_DOMAIN = 10, SHARED_PERCENT = 14 };
  const launch_attribute attributes[] = {
      {.id = COOPERATIVE, .value = how->cooperative},
      {.id = PRIORITY, .value = how->priority},
      {.id = MEMORY_DOMAIN, .value = how->memory_domain},
      {.id = SHARED_PERCENT, .value = how->shared_percent},
      {.id = CLUSTER, .value = (int)how->cluster[0], .more = {(int)how->cluster[1], (int)how->cluster[2]}}};
  const launch_config config = {.grid_x = 1,
                                .grid_y = 1,
                                .grid_z = 1,
                                .block_x = how->block[0],
                                .block_y = how->block[1],
                                .block_z = how->block[2],
                                .shared_bytes = how->shared_bytes,
                                .stream = stream,
                                .attributes = attributes,
                                .attribute_count = 5};
  void *params[] = {&factor, &term, &word};
  void *before = enter(f);
  return leave(f, before, f->launch_ex(&config, f->affine, params, NULL));
}

int foreign_stream_create(foreign_library *f, unsigned flags, void **out_stream) {
  void *before = enter(f);
  return leave(f, before, f->stream_create(out_stream, flags));
}

int foreign_stream_destroy(foreign_library *f, void *stream) {
  void *before = enter(f);
  return leave(f, before, f->stream_destroy(stream));
}

/* Other work ------------------------------------------------------------------------------------------------------ */

int foreign_copy(foreign_library *f, void *stream, void *dst, const void *src, size_t bytes) {
  void *before = enter(f);
  return leave(f, before, f->copy((uintptr_t)dst, (uintptr_t)src, bytes, stream));
}

int foreign_copy_rows(foreign_library *f, void *stream, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                      size_t width, size_t height) {
  enum { DEVICE = 2 };
  const copy_3d params = {.src_type = DEVICE,
                          .src_device = (uintptr_t)src,
                          .src_pitch = src_pitch,
                          .src_height = height,
                          .dst_type = DEVICE,
                          .dst_device = (uintptr_t)dst,
                          .dst_pitch = dst_pitch,
                          .dst_height = height,
                          .width = width,
                          .height = height,
                          .depth = 1};
  void *before = enter(f);
  return leave(f, before, f->copy_3d(&params, stream));
}

int foreign_fill(foreign_library *f, void *stream, uint32_t *words, uint32_t value, size_t count) {
  void *before = enter(f);
  return leave(f, before, f->fill((uintptr_t)words, value, count, stream));
}

int foreign_host(foreign_library *f, void *stream, void (*function)(void *), void *user) {
  void *before = enter(f);
  return leave(f, before, f->host(stream, function, user));
}

int foreign_wait_value(foreign_library *f, void *stream, uint32_t *word, uint32_t value) {
  enum { EQUAL = 1 };
  void *before = enter(f);
  return leave(f, before, f->wait_value(stream, (uintptr_t)word, value, EQUAL));
}

int foreign_allocate(foreign_library *f, void *stream, size_t bytes, void **out) {
  address memory = 0;
  void *before = enter(f);
  const int code = leave(f, before, f->allocate(&memory, bytes, stream));
  *out = (void *)(uintptr_t)memory;
  return code;
}

int foreign_free(foreign_library *f, void *stream, void *memory) {
  void *before = enter(f);
  return leave(f, before, f->free((uintptr_t)memory, stream));
}

/* Streams --------------------------------------------------------------------------------------------------------- */

int foreign_order(foreign_library *f, void *from, void *to) {
  void *before = enter(f);
  int code = f->record(f->event, from);
  if (code == 0) code = f->wait(to, f->event, 0);
  return leave(f, before, code);
}

int foreign_fork(foreign_library *f, void *stream, void **out_own_stream) {
  *out_own_stream = f->stream;
  return foreign_order(f, stream, f->stream);
}

int foreign_join(foreign_library *f, void *stream) { return foreign_order(f, f->stream, stream); }

int foreign_record_external(foreign_library *f, void *stream) {
  enum { EXTERNAL = 1 };
  void *before = enter(f);
  return leave(f, before, f->record_with(f->event, stream, EXTERNAL));
}

int foreign_synchronize(foreign_library *f, void *stream) {
  void *before = enter(f);
  return leave(f, before, f->synchronize(stream));
}

int foreign_begin_capture(foreign_library *f, void *stream) {
  enum { THREAD_LOCAL = 1 };
  void *before = enter(f);
  return leave(f, before, f->begin_capture(stream, THREAD_LOCAL));
}

int foreign_end_capture(foreign_library *f, void *stream) {
  void *graph = NULL;
  void *before = enter(f);
  const int code = f->end_capture(stream, &graph);
  if (graph != NULL) (void)f->destroy_graph(graph);
  return leave(f, before, code);
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

int foreign_graph_end(foreign_library *f, void *stream, void **out_graph) {
  void *before = enter(f);
  return leave(f, before, f->end_capture(stream, out_graph));
}

int foreign_graph_destroy(foreign_library *f, void *graph) {
  void *before = enter(f);
  return leave(f, before, f->destroy_graph(graph));
}

int foreign_graph_add_child(foreign_library *f, void *graph, void *child) {
  void *node, *before = enter(f);
  return leave(f, before, f->add_child(&node, graph, NULL, 0, child));
}

int foreign_graph_count(foreign_library *f, void *graph, size_t *out_count) {
  void *before = enter(f);
  return leave(f, before, f->graph_nodes(graph, NULL, out_count));
}

int foreign_exec_enqueue(foreign_library *f, void *exec, void *stream) {
  void *before = enter(f);
  return leave(f, before, f->exec_launch(exec, stream));
}

int foreign_exec_launch(foreign_library *f, void *exec, void *stream) {
  void *before = enter(f);
  int code = f->exec_launch(exec, stream);
  if (code == 0) code = f->synchronize(stream);
  return leave(f, before, code);
}

int foreign_graph_run(foreign_library *f, void *graph, void *stream) {
  instantiate_params params = {0};
  void *exec, *before = enter(f);
  int code = f->instantiate(&exec, graph, &params);
  if (code == 0) {
    code = foreign_exec_launch(f, exec, stream);
    (void)f->exec_destroy(exec);
  }
  return leave(f, before, code);
}
