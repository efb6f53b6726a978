/* SPDX-License-Identifier: MIT
 * OpenCL on the processor (PoCL), with the bodies written in OpenCL C. POCL_MAX_PTHREAD_COUNT sets its threads.
 *
 *   pocl-inorder   every node enqueued on one in-order queue; clFlush is part of the launch, clFinish waits
 *   pocl-ooo       the same on an out-of-order queue, with the edges as lists of events
 *   pocl-recorded  a cl_khr_command_buffer recorded once on an in-order queue, launched by one call; not
 *                  measured on the graph of 10,000 nodes, where a replay takes a tenth of a second
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 300
#define CL_ENABLE_BETA_EXTENSIONS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "measure.h"

static const char *const source =
    "kernel void empty(uint steps) {}\n"
    "kernel void busy(uint steps) {\n"
    "  ulong x = 88172645463325252UL + get_global_id(0);\n"
    "  for (uint i = 0; i < steps; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }\n"
    "  if (x == 0) printf(\"never\");\n"
    "}\n"
    "kernel void check(uint node, volatile global uint *order, global uint *ran_at, volatile global uint *count) {\n"
    "  uint now = atomic_inc(order) + 1;\n"
    "  if (get_global_id(0) == 0) ran_at[node] = now;\n"
    "  atomic_inc(&count[node]);\n"
    "}\n";

enum { IN_ORDER, OUT_OF_ORDER, RECORDED, VARIANTS };
static const char *const names[VARIANTS] = {"pocl-inorder", "pocl-ooo", "pocl-recorded"};

enum { EMPTY, BUSY, CHECK, KERNELS };
static const char *const kernel_names[KERNELS] = {"empty", "busy", "check"};

/* Memory that the check kernel shares with the host. */
typedef struct shared_words {
  cl_mem memory;
  uint32_t *words;
} shared_words;

typedef struct pocl {
  bench_graph *graph;
  int variant;
  cl_context context;
  cl_device_id device;
  cl_command_queue queue;
  cl_kernel kernels[KERNELS];
  cl_kernel *own_kernels; /* recorded: one for each node, because PoCL reads arguments at the replay */
  cl_event *events;       /* out of order */
  shared_words order, ran_at, count;
  cl_command_buffer_khr buffer;
  clCreateCommandBufferKHR_fn create_buffer;
  clCommandNDRangeKernelKHR_fn add_kernel;
  clFinalizeCommandBufferKHR_fn finalize;
  clEnqueueCommandBufferKHR_fn enqueue;
  clReleaseCommandBufferKHR_fn release;
} pocl;

static void check_call(cl_int error, int line) {
  if (error == CL_SUCCESS) return;
  fprintf(stderr, "OpenCL error %d in line %d\n", error, line);
  exit(EXIT_FAILURE);
}
#define CHECK_CALL(error) check_call((error), __LINE__)

/* Setting up ------------------------------------------------------------------------------------------------------ */

static shared_words share(cl_context context, size_t count) {
  const size_t bytes = (count * sizeof(uint32_t) + 4095) / 4096 * 4096;
  shared_words self = {.words = aligned_alloc(4096, bytes)};
  cl_int error = CL_OUT_OF_HOST_MEMORY;
  if (self.words == NULL) check_call(error, __LINE__);
  memset(self.words, 0, bytes);
  self.memory = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, self.words, &error);
  CHECK_CALL(error);
  return self;
}

static void create_kernels(pocl *self) {
  cl_int error;
  const char *text = source;
  cl_program program = clCreateProgramWithSource(self->context, 1, &text, NULL, &error);
  CHECK_CALL(error);
  CHECK_CALL(clBuildProgram(program, 1, &self->device, "", NULL, NULL));
  for (int i = 0; i < KERNELS; i++) {
    self->kernels[i] = clCreateKernel(program, kernel_names[i], &error);
    CHECK_CALL(error);
  }
  self->order = share(self->context, 1);
  self->ran_at = share(self->context, self->graph->count);
  self->count = share(self->context, self->graph->count);
  const cl_mem memories[3] = {self->order.memory, self->ran_at.memory, self->count.memory};
  for (cl_uint i = 0; i < 3; i++) CHECK_CALL(clSetKernelArg(self->kernels[CHECK], i + 1, sizeof(cl_mem), &memories[i]));
}

static void *extension(cl_platform_id platform, const char *name) {
  void *function = clGetExtensionFunctionAddressForPlatform(platform, name);
  if (function == NULL) {
    fprintf(stderr, "this OpenCL has no %s\n", name);
    exit(EXIT_FAILURE);
  }
  return function;
}

static void find_extensions(pocl *self, cl_platform_id platform) {
  *(void **)&self->create_buffer = extension(platform, "clCreateCommandBufferKHR");
  *(void **)&self->add_kernel = extension(platform, "clCommandNDRangeKernelKHR");
  *(void **)&self->finalize = extension(platform, "clFinalizeCommandBufferKHR");
  *(void **)&self->enqueue = extension(platform, "clEnqueueCommandBufferKHR");
  *(void **)&self->release = extension(platform, "clReleaseCommandBufferKHR");
}

static void open_device(pocl *self, int threads) {
  char count[16];
  cl_platform_id platform;
  cl_int error;
  snprintf(count, sizeof count, "%d", threads);
  setenv("POCL_MAX_PTHREAD_COUNT", count, 1);
  CHECK_CALL(clGetPlatformIDs(1, &platform, NULL));
  CHECK_CALL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &self->device, NULL));
  self->context = clCreateContext(NULL, 1, &self->device, NULL, NULL, &error);
  CHECK_CALL(error);
  const cl_queue_properties order = self->variant == OUT_OF_ORDER ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0;
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, order, 0};
  self->queue = clCreateCommandQueueWithProperties(self->context, self->device, properties, &error);
  CHECK_CALL(error);
  if (self->variant == RECORDED) find_extensions(self, platform);
}

/* Replaying ------------------------------------------------------------------------------------------------------- */

static cl_kernel kernel_of(pocl *self, uint32_t i) {
  const bench_body body = self->graph->nodes[i].body;
  cl_kernel kernel = self->kernels[body == bench_checking ? CHECK : body == bench_empty ? EMPTY : BUSY];
  const bench_steps *steps = bench_busy_steps();
  const cl_uint first = body == bench_checking ? i : body == bench_block ? steps->block : steps->microsecond;
  CHECK_CALL(clSetKernelArg(kernel, 0, sizeof first, &first));
  if (self->variant != RECORDED) return kernel;
  cl_int error;
  if (self->own_kernels[i] != NULL) CHECK_CALL(clReleaseKernel(self->own_kernels[i]));
  self->own_kernels[i] = clCloneKernel(kernel, &error);
  CHECK_CALL(error);
  return self->own_kernels[i];
}

static void prepare(void *argument) {
  pocl *self = argument;
  cl_int error;
  if (self->variant != RECORDED) return;
  if (self->buffer != NULL) CHECK_CALL(self->release(self->buffer));
  self->buffer = self->create_buffer(1, &self->queue, NULL, &error);
  CHECK_CALL(error);
  for (uint32_t i = 0; i < self->graph->count; i++) {
    const size_t blocks = self->graph->nodes[i].blocks, one = 1;
    CHECK_CALL(
        self->add_kernel(self->buffer, NULL, NULL, kernel_of(self, i), 1, NULL, &blocks, &one, 0, NULL, NULL, NULL));
  }
  CHECK_CALL(self->finalize(self->buffer));
}

static void enqueue_node(pocl *self, uint32_t i) {
  const bench_graph *graph = self->graph;
  const size_t blocks = graph->nodes[i].blocks, one = 1;
  cl_event before[32];
  cl_uint count = 0;
  if (self->variant == OUT_OF_ORDER) {
    for (uint32_t k = graph->predecessor_start[i]; k < graph->predecessor_start[i + 1]; k++) {
      before[count++] = self->events[graph->predecessors[k]];
    }
  }
  cl_event *event = self->variant == OUT_OF_ORDER ? &self->events[i] : NULL;
  CHECK_CALL(clEnqueueNDRangeKernel(self->queue, kernel_of(self, i), 1, NULL, &blocks, &one, count,
                                    count > 0 ? before : NULL, event));
}

static void launch(void *argument) {
  pocl *self = argument;
  if (self->variant == RECORDED) {
    CHECK_CALL(self->enqueue(0, NULL, self->buffer, 0, NULL, NULL));
  } else {
    for (uint32_t i = 0; i < self->graph->count; i++) enqueue_node(self, i);
  }
  CHECK_CALL(clFlush(self->queue));
}

/* Reports to the harness what the check kernels saw. */
static void pass_check_on(pocl *self) {
  const bench_graph *graph = self->graph;
  bench_check_state *check = bench_check();
  for (uint32_t i = 0; i < graph->count; i++) {
    int in_order = 1;
    for (uint32_t k = graph->predecessor_start[i]; k < graph->predecessor_start[i + 1]; k++) {
      in_order &= self->ran_at.words[graph->predecessors[k]] < self->ran_at.words[i];
    }
    check->counts[i] = self->count.words[i];
    check->stamps[i] = in_order ? check->replay : 0;
    self->count.words[i] = 0;
  }
}

static void wait_for_queue(void *argument) {
  pocl *self = argument;
  CHECK_CALL(clFinish(self->queue));
  if (self->variant == OUT_OF_ORDER) {
    for (uint32_t i = 0; i < self->graph->count; i++) CHECK_CALL(clReleaseEvent(self->events[i]));
  }
  if (self->graph->nodes[0].body == bench_checking) pass_check_on(self);
}

static void measure(int variant, int threads, int shape) {
  pocl self = {.graph = bench_graph_create(shape), .variant = variant};
  self.own_kernels = bench_zeroed(self.graph->count, sizeof(cl_kernel));
  self.events = bench_zeroed(self.graph->count, sizeof(cl_event));
  open_device(&self, threads);
  create_kernels(&self);
  const bench_engine engine = {.name = names[variant],
                               .threads = threads,
                               .batch = 1,
                               .no_span = 1,
                               .self = &self,
                               .prepare = prepare,
                               .launch = launch,
                               .wait = wait_for_queue};
  bench_measure(&engine, self.graph);
  bench_child_end();
}

/* "3.1" of "OpenCL 3.0 PoCL 3.1+debian ...", read in a child: the run time does not survive a fork. */
static void ask_version(int out) {
  cl_platform_id platform;
  char said[256] = "";
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS) return;
  if (clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof said, said, NULL) != CL_SUCCESS) return;
  const char *begin = strstr(said, "PoCL ");
  if (begin == NULL) return;
  begin += strlen("PoCL ");
  if (write(out, begin, strspn(begin, "0123456789.")) < 0) return;
}

static void read_version(char *version, size_t size) {
  int ends[2];
  version[0] = '\0';
  if (pipe(ends) != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    ask_version(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  const ssize_t length = read(ends[0], version, size - 1);
  version[length < 0 ? 0 : length] = '\0';
  close(ends[0]);
  if (child > 0) waitpid(child, NULL, 0);
}

int main(void) {
  char version[32];
  read_version(version, sizeof version);
  bench_begin("peer_pocl", version);
  for (int shape = 0; shape < BENCH_SHAPE_COUNT; shape++) {
    for (int variant = 0; variant < VARIANTS; variant++) {
      for (int threads = 1; threads <= 2; threads++) {
        if (variant == RECORDED && shape == BENCH_DAG10K) continue;
        if (bench_wants(shape, names[variant]) && bench_child()) measure(variant, threads, shape);
      }
    }
  }
  return bench_end();
}
