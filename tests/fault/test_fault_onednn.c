/* SPDX-License-Identifier: MIT
 * Lets every call of oneDNN and every allocation fail while a convolution and its gradients are compiled, recorded and
 * run on a CPU. If oneDNN runs out of memory during compilation, the error is OUT_OF_MEMORY. If it does not support an
 * operator, or fails to create a part of it at run time, Rondo's own kernels compute it. The numbers are right in each
 * case, and nothing is left in the library or in host memory. Without oneDNN 2 there is nothing to test.
 */
#define _GNU_SOURCE
#include <math.h>

#include "base/error.h"
#include "fault/fault_sweep.h"
#include "tensor/vendor/onednn.h"

enum { IMAGES = 4, X = IMAGES * 6 * 7 * 7, WEIGHT = 32 * 6 * 3 * 3, BIAS = 32, Y = IMAGES * 32 * 4 * 4 };

typedef struct results {
  float y[Y], dx[X], dweight[WEIGHT];
} results;

static struct {
  test_allocator allocator;
  rondo_device *device;
  rondo_program *program;
  rondo_compiled *compiled;
} work;
static results right; /* of own kernels */

/* The library ------------------------------------------------------------------------------------------------------ */

static onednn_api real;
static atomic_size_t calls, fail_at; /* 0: none */
static atomic_bool fail_on;          /* and all later ones too */
static atomic_int failure;           /* the code */
static atomic_long live;

static bool is_refused(void) {
  const size_t at = atomic_load(&fail_at), call = atomic_fetch_add(&calls, 1) + 1;
  return at > 0 && (call == at || (call > at && atomic_load(&fail_on)));
}

/* The code of a call that creates something, or fails to. */
#define MAKE(call)                                   \
  int code = atomic_load(&failure);                  \
  if (!is_refused()) code = (call);                  \
  if (code == ONEDNN_OK) atomic_fetch_add(&live, 1); \
  return code
#define FREE(call)            \
  atomic_fetch_sub(&live, 1); \
  return (call)

static int create_stream(onednn_stream *out, onednn_engine engine, unsigned flags) {
  MAKE(real.stream_create(out, engine, flags));
}
static int create_memory(onednn_memory *out, const onednn_layout *layout, onednn_engine engine, void *bytes) {
  MAKE(real.memory_create(out, layout, engine, bytes));
}
static int create_way(onednn_way *out, const onednn_description *description, onednn_attributes attributes,
                      onednn_engine engine, onednn_way forward) {
  MAKE(real.way_create(out, description, attributes, engine, forward));
}
static int create_reorder(onednn_way *out, const onednn_layout *from, onednn_engine from_engine,
                          const onednn_layout *to, onednn_engine to_engine, onednn_attributes attributes) {
  MAKE(real.way_create_reorder(out, from, from_engine, to, to_engine, attributes));
}
static int create_primitive(onednn_primitive *out, onednn_way way) { MAKE(real.primitive_create(out, way)); }
static int create_attributes(onednn_attributes *out) { MAKE(real.attributes_create(out)); }

static int destroy_stream(onednn_stream stream) { FREE(real.stream_destroy(stream)); }
static int destroy_memory(onednn_memory memory) { FREE(real.memory_destroy(memory)); }
static int destroy_way(onednn_way way) { FREE(real.way_destroy(way)); }
static int destroy_primitive(onednn_primitive primitive) { FREE(real.primitive_destroy(primitive)); }
static int destroy_attributes(onednn_attributes attributes) { FREE(real.attributes_destroy(attributes)); }

static int set_memory(onednn_memory memory, void *bytes) {
  return is_refused() ? atomic_load(&failure) : real.memory_set(memory, bytes);
}
static int execute(onednn_primitive primitive, onednn_stream stream, int count, const onednn_argument *arguments) {
  return is_refused() ? atomic_load(&failure) : real.primitive_execute(primitive, stream, count, arguments);
}

static void watch_library(void) {
  real = rondo_onednn;
  rondo_onednn.stream_create = create_stream;
  rondo_onednn.memory_create = create_memory;
  rondo_onednn.way_create = create_way;
  rondo_onednn.way_create_reorder = create_reorder;
  rondo_onednn.primitive_create = create_primitive;
  rondo_onednn.attributes_create = create_attributes;
  rondo_onednn.stream_destroy = destroy_stream;
  rondo_onednn.memory_destroy = destroy_memory;
  rondo_onednn.way_destroy = destroy_way;
  rondo_onednn.primitive_destroy = destroy_primitive;
  rondo_onednn.attributes_destroy = destroy_attributes;
  rondo_onednn.memory_set = set_memory;
  rondo_onednn.primitive_execute = execute;
}

/* The work --------------------------------------------------------------------------------------------------------- */

static rondo_status build(void) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "small",
                                         .allocator = &work.allocator.table};
  rondo_conv_options window = {RONDO_CONV_OPTIONS_INIT, .stride = {2, 2}, .padding = {1, 1}};
  rondo_value x, weight, y, loss, gradients[2];
  RONDO_TRY(rondo_program_create(&options, &work.program));
  RONDO_TRY(rondo_program_input(work.program, "x", RONDO_F32, (const size_t[]){IMAGES, 6, 7, 7}, 4, &x));
  RONDO_TRY(rondo_program_input(work.program, "weight", RONDO_F32, (const size_t[]){32, 6, 3, 3}, 4, &weight));
  RONDO_TRY(rondo_program_input(work.program, "bias", RONDO_F32, (const size_t[]){BIAS}, 1, &window.bias));
  RONDO_TRY(rondo_op_conv(work.program, x, weight, &window, &y));
  RONDO_TRY(rondo_op_square(work.program, y, &loss));
  RONDO_TRY(rondo_op_sum(work.program, loss, NULL, 0, false, &loss));
  RONDO_TRY(rondo_program_gradients(work.program, loss, (const rondo_value[]){x, weight}, 2, gradients));
  RONDO_TRY(rondo_program_output(work.program, "y", y));
  RONDO_TRY(rondo_program_output(work.program, "dx", gradients[0]));
  return rondo_program_output(work.program, "dweight", gradients[1]);
}

static rondo_status write_inputs(void) {
  float x[X], weight[WEIGHT], bias[BIAS];
  for (int i = 0; i < X; i++) x[i] = (float)(i % 17) / 8 - 1;
  for (int i = 0; i < WEIGHT; i++) weight[i] = (float)(i % 23) / 11 - 1;
  for (int i = 0; i < BIAS; i++) bias[i] = (float)i;
  RONDO_TRY(rondo_compiled_write(work.compiled, "x", x, sizeof x));
  RONDO_TRY(rondo_compiled_write(work.compiled, "weight", weight, sizeof weight));
  return rondo_compiled_write(work.compiled, "bias", bias, sizeof bias);
}

static rondo_status run_once(bool recorded, results *out) {
  RONDO_TRY(write_inputs());
  RONDO_TRY(recorded ? rondo_compiled_run(work.compiled) : rondo_compiled_run_eager(work.compiled));
  RONDO_TRY(rondo_compiled_read(work.compiled, "y", out->y, sizeof out->y));
  RONDO_TRY(rondo_compiled_read(work.compiled, "dx", out->dx, sizeof out->dx));
  return rondo_compiled_read(work.compiled, "dweight", out->dweight, sizeof out->dweight);
}

static rondo_status run_all(bool own_kernels, results of[2]) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &work.allocator.table};
  const rondo_compile_options how = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS,
                                     .own_kernels = own_kernels};
  RONDO_TRY(rondo_device_open("cpu", &options, &work.device));
  RONDO_TRY(build());
  RONDO_TRY(rondo_compile(work.program, work.device, &how, &work.compiled));
  RONDO_TRY(run_once(false, &of[0]));
  return run_once(true, &of[1]);
}

static void tear_down(void) {
  rondo_status status = rondo_compiled_destroy(work.compiled);
  (void)status; /* told before */
  rondo_program_destroy(work.program);
  status = rondo_device_close(work.device);
  (void)status;
  work.compiled = NULL;
  work.program = NULL;
  work.device = NULL;
}

/* The terms of a sum are about as large as the largest sum; small results are small by cancellation. */
static void assert_close(const float *a, const float *b, size_t count) {
  double largest = 0;
  for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)b[i]));
  for (size_t i = 0; i < count; i++)
    if (!(fabs((double)a[i] - (double)b[i]) <= 2e-6 * largest))
      fail_msg("element %zu: %.9g, not %.9g", i, (double)a[i], (double)b[i]);
}

static void assert_right(const results *of) {
  assert_close(of->y, right.y, Y);
  assert_close(of->dx, right.dx, X);
  assert_close(of->dweight, right.dweight, WEIGHT);
}

static rondo_status try_all(fault_point *point) {
  static results of[2];
  test_allocator_init(&work.allocator);
  atomic_store(&work.allocator.fail_at, point->allocation_at);
  atomic_store(&work.allocator.fail_on, point->rest);
  atomic_store(&calls, 0);
  atomic_store(&fail_at, point->driver_at);
  atomic_store(&fail_on, point->rest);
  const rondo_status status = run_all(false, of);
  atomic_store(&fail_at, 0);
  tear_down();
  if (status == RONDO_OK) assert_right(&of[0]);
  if (status == RONDO_OK) assert_right(&of[1]);
  if (status == RONDO_OK && point->driver_at == 0) assert_memory_equal(&of[0], &of[1], sizeof of[0]);
  assert_int_equal(atomic_load(&live), 0);
  assert_true(test_allocator_is_clean(&work.allocator));
  point->calls = atomic_load(&calls);
  point->allocations = atomic_load(&work.allocator.calls);
  return status;
}

/* Cases ------------------------------------------------------------------------------------------------------------ */

UNIT_TEST(test_memory_of_the_library_runs_out) {
  atomic_store(&failure, ONEDNN_NO_MEMORY);
  fault_sweep(try_all, true, false, 30);
  fault_sweep(try_all, true, true, 30);
}

/* 3: unimplemented, which causes no error. */
UNIT_TEST(test_what_has_no_way_is_made_by_own_kernels) {
  fault_point none = {0};
  atomic_store(&failure, 3);
  assert_ok(try_all(&none));
  for (size_t at = 1; at <= none.calls; at++) {
    fault_point point = {.driver_at = at}, rest = {.driver_at = at, .rest = true};
    assert_ok(try_all(&point));
    assert_ok(try_all(&rest));
  }
}

UNIT_TEST(test_each_allocation_fails) {
  fault_sweep(try_all, false, false, 20);
  fault_sweep(try_all, false, true, 20);
}

static int find_what_is_right(void **state) {
  static results of[2];
  (void)state;
  test_allocator_init(&work.allocator);
  assert_ok(run_all(true, of));
  tear_down();
  right = of[0];
  watch_library();
  return 0;
}

int main(void) {
  if (setenv("RONDO_ONEDNN_LEAST", "1", 1) != 0) return 1;
  if (!rondo_library_find(&rondo_onednn_convolutions)) return 77;
  return test_run_registered_in(find_what_is_right, NULL);
}
