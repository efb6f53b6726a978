/* SPDX-License-Identifier: MIT
 * Lets every call of oneDNN and every allocation fail while a convolution and its gradients are compiled, recorded and
 * run on a CPU. If oneDNN runs out of memory during compilation, the error is OUT_OF_MEMORY. If it does not support an
 * operator, or fails to create a part of it at run time, Rondo's own kernels compute it. The numbers are right in each
 * case, and nothing is left in the library or in host memory. The same for a convolution whose weights are a packed
 * state, for two convolutions with images in blocks between them, and for both. Without oneDNN 2 there is nothing to
 * test.
 */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "fault/fault_sweep.h"
#include "tensor/vendor/onednn.h"

enum {
  IMAGES = 4,
  MOST = 16,
  X = IMAGES * MOST * 7 * 7,
  WEIGHT = 32 * MOST * 3 * 3,
  BIAS = 32,
  SECOND = 32 * 32 * 3 * 3,
  Y = IMAGES * 32 * 4 * 4
};

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
static bool packs;    /* the weights are a state, and there are no gradients: dx stays 0, and dweight is the state */
static bool
    has_blocks; /* there are two convolutions and no gradients: dx and, unless it is the state, dweight stay 0 */

/* Of 6 channels, oneDNN pads the weights that it copies. */
static size_t channels(void) { return packs ? MOST : 6; }
static size_t x_bytes(void) { return IMAGES * channels() * 7 * 7 * sizeof(float); }
static size_t weight_bytes(void) { return 32 * channels() * 3 * 3 * sizeof(float); }

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

static rondo_status add_gradients(rondo_value x, rondo_value weight, rondo_value y) {
  rondo_value loss, gradients[2];
  RONDO_TRY(rondo_op_square(work.program, y, &loss));
  RONDO_TRY(rondo_op_sum(work.program, loss, NULL, 0, false, &loss));
  RONDO_TRY(rondo_program_gradients(work.program, loss, (const rondo_value[]){x, weight}, 2, gradients));
  RONDO_TRY(rondo_program_output(work.program, "dx", gradients[0]));
  return rondo_program_output(work.program, "dweight", gradients[1]);
}

static rondo_status add_weight(const char *name, const size_t *shape, rondo_value *out) {
  return packs ? rondo_program_state(work.program, name, RONDO_F32, shape, 4, out)
               : rondo_program_input(work.program, name, RONDO_F32, shape, 4, out);
}

/* conv(relu(y)) */
static rondo_status add_second(rondo_value *inout_y) {
  const rondo_conv_options window = {RONDO_CONV_OPTIONS_INIT, .padding = {1, 1}};
  rondo_value weight;
  RONDO_TRY(rondo_op_relu(work.program, *inout_y, inout_y));
  RONDO_TRY(add_weight("second", (const size_t[]){32, 32, 3, 3}, &weight));
  return rondo_op_conv(work.program, *inout_y, weight, &window, inout_y);
}

static rondo_status build(void) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "small",
                                         .allocator = &work.allocator.table};
  rondo_conv_options window = {RONDO_CONV_OPTIONS_INIT, .stride = {2, 2}, .padding = {1, 1}};
  rondo_value x, weight, y;
  RONDO_TRY(rondo_program_create(&options, &work.program));
  RONDO_TRY(rondo_program_input(work.program, "x", RONDO_F32, (const size_t[]){IMAGES, channels(), 7, 7}, 4, &x));
  RONDO_TRY(add_weight("weight", (const size_t[]){32, channels(), 3, 3}, &weight));
  RONDO_TRY(rondo_program_input(work.program, "bias", RONDO_F32, (const size_t[]){BIAS}, 1, &window.bias));
  RONDO_TRY(rondo_op_conv(work.program, x, weight, &window, &y));
  if (has_blocks) RONDO_TRY(add_second(&y));
  RONDO_TRY(rondo_program_output(work.program, "y", y));
  return packs || has_blocks ? RONDO_OK : add_gradients(x, weight, y);
}

static rondo_status write_inputs(void) {
  float x[X], weight[WEIGHT], bias[BIAS], second[SECOND];
  for (int i = 0; i < X; i++) x[i] = (float)(i % 17) / 8 - 1;
  for (int i = 0; i < WEIGHT; i++) weight[i] = (float)(i % 23) / 11 - 1;
  for (int i = 0; i < BIAS; i++) bias[i] = (float)i;
  for (int i = 0; i < SECOND; i++) second[i] = (float)(i % 29) / 14 - 1;
  RONDO_TRY(rondo_compiled_write(work.compiled, "x", x, x_bytes()));
  RONDO_TRY(rondo_compiled_write(work.compiled, "weight", weight, weight_bytes()));
  RONDO_TRY(rondo_compiled_write(work.compiled, "bias", bias, sizeof bias));
  return has_blocks ? rondo_compiled_write(work.compiled, "second", second, sizeof second) : RONDO_OK;
}

static rondo_status run_once(bool recorded, results *out) {
  RONDO_TRY(write_inputs());
  RONDO_TRY(recorded ? rondo_compiled_run(work.compiled) : rondo_compiled_run_eager(work.compiled));
  RONDO_TRY(rondo_compiled_read(work.compiled, "y", out->y, sizeof out->y));
  if (packs) return rondo_compiled_read(work.compiled, "weight", out->dweight, weight_bytes());
  if (has_blocks) return RONDO_OK;
  RONDO_TRY(rondo_compiled_read(work.compiled, "dx", out->dx, x_bytes()));
  return rondo_compiled_read(work.compiled, "dweight", out->dweight, weight_bytes());
}

static rondo_status run_all(bool own_kernels, results of[2]) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &work.allocator.table};
  const rondo_compile_options how = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS,
                                     .own_kernels = own_kernels};
  memset(of, 0, 2 * sizeof *of);
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
  if (packs) assert_memory_equal(of->dweight, right.dweight, sizeof of->dweight);
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

/* Settings --------------------------------------------------------------------------------------------------------- */

static int find_what_is_right(void **state) {
  static results of[2];
  (void)state;
  test_allocator_init(&work.allocator);
  assert_ok(run_all(true, of));
  tear_down();
  right = of[0];
  return 0;
}

/* Checks that there is something to test. */
static int begin(void **state, bool is_packed, bool has_images) {
  static results of[2];
  packs = is_packed;
  has_blocks = has_images;
  test_allocator_init(&work.allocator);
  assert_ok(run_all(false, of));
  assert_int_equal(test_compiled_info(work.compiled).packed_bytes > 0, packs);
  assert_int_equal(test_compiled_info(work.compiled).patterns > 1, has_blocks); /* relu and blocked images */
  tear_down();
  return find_what_is_right(state);
}

static int begin_plain(void **state) { return begin(state, false, false); }
static int begin_packing(void **state) { return begin(state, true, false); }
static int begin_blocks(void **state) { return begin(state, false, true); }
static int begin_both(void **state) { return begin(state, true, true); }

#define PLAIN_TEST(name) TEST_REGISTER(name, void *no_fixture, begin_plain, NULL, false)
#define PACKING_TEST(name) TEST_REGISTER(name, void *no_fixture, begin_packing, NULL, false)
#define BLOCKS_TEST(name) TEST_REGISTER(name, void *no_fixture, begin_blocks, NULL, false)
#define BOTH_TEST(name) TEST_REGISTER(name, void *no_fixture, begin_both, NULL, false)

/* Cases ------------------------------------------------------------------------------------------------------------ */

static void run_out_of_memory_of_the_library(void) {
  atomic_store(&failure, ONEDNN_NO_MEMORY);
  fault_sweep(try_all, true, false, 30);
  fault_sweep(try_all, true, true, 30);
}

/* 3: unimplemented, which causes no error. */
static void find_no_way(void) {
  fault_point none = {0};
  atomic_store(&failure, 3);
  assert_ok(try_all(&none));
  for (size_t at = 1; at <= none.calls; at++) {
    fault_point point = {.driver_at = at}, rest = {.driver_at = at, .rest = true};
    assert_ok(try_all(&point));
    assert_ok(try_all(&rest));
  }
}

static void run_out_of_memory(void) {
  fault_sweep(try_all, false, false, 20);
  fault_sweep(try_all, false, true, 20);
}

PLAIN_TEST(test_memory_of_the_library_runs_out) { run_out_of_memory_of_the_library(); }
PLAIN_TEST(test_what_has_no_way_is_made_by_own_kernels) { find_no_way(); }
PLAIN_TEST(test_each_allocation_fails) { run_out_of_memory(); }

PACKING_TEST(test_memory_of_the_library_runs_out_with_packed_weights) { run_out_of_memory_of_the_library(); }
PACKING_TEST(test_packed_weights_without_a_way_are_read_by_own_kernels) { find_no_way(); }
PACKING_TEST(test_each_allocation_fails_with_packed_weights) { run_out_of_memory(); }

BLOCKS_TEST(test_on5_memory_of_the_library_runs_out_for_blocks) { run_out_of_memory_of_the_library(); }
BLOCKS_TEST(test_on5_blocks_without_a_way_are_made_by_own_kernels) { find_no_way(); }
BLOCKS_TEST(test_on5_each_allocation_fails_with_blocks) { run_out_of_memory(); }

BOTH_TEST(test_on5_memory_of_the_library_runs_out_for_packed_weights_and_blocks) { run_out_of_memory_of_the_library(); }
BOTH_TEST(test_on5_packed_weights_and_blocks_without_a_way_are_read_by_own_kernels) { find_no_way(); }
BOTH_TEST(test_on5_each_allocation_fails_with_packed_weights_and_blocks) { run_out_of_memory(); }

static int find_and_watch(void **state) {
  const int failed = find_what_is_right(state);
  watch_library();
  return failed;
}

int main(void) {
  if (setenv("RONDO_ONEDNN_LEAST", "1", 1) != 0) return 1;
  if (!rondo_library_find(&rondo_onednn_convolutions)) return 77;
  return test_run_registered_in(find_and_watch, NULL);
}
