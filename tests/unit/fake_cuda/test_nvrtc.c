/* SPDX-License-Identifier: MIT
 * The fake run-time compiler: which functions are kernels, which sources it refuses, and that the fake driver loads its
 * images.
 */
#include "fake_cuda/fake_nvrtc.h"
#include "unit/fake_cuda/fake_test.h"

enum { COMPILED = 0, INVALID_INPUT = 3, INVALID_OPTION = 5, COMPILATION = 6 };

static fake_nvrtc_api nvrtc;

static int load(void **state) {
  (void)state;
  assert_true(fake_nvrtc_load(getenv("RONDO_NVRTC_LIBRARY"), &nvrtc));
  return 0;
}

/* Compiles; the result goes into *image, at most `bytes`. */
static int compile(const char *source, char *image, char *log, size_t bytes) {
  const char *const options[] = {"--gpu-architecture=sm_90", "-std=c++17"};
  fake_nvrtc_program *program = NULL;
  size_t needed = 0;
  assert_int_equal(nvrtc.nvrtc_create(&program, source, "test.cu", 0, NULL, NULL), COMPILED);
  const int code = nvrtc.nvrtc_compile(program, 2, options);
  if (code == COMPILED) {
    assert_int_equal(nvrtc.nvrtc_cubin_bytes(program, &needed), COMPILED);
    assert_true(needed <= bytes);
    assert_int_equal(nvrtc.nvrtc_cubin(program, image), COMPILED);
    assert_int_equal(strlen(image) + 1, needed);
    assert_int_equal(nvrtc.nvrtc_image(program, image), COMPILED);
  } else {
    assert_int_equal(nvrtc.nvrtc_image_bytes(program, &needed), INVALID_INPUT);
  }
  assert_int_equal(nvrtc.nvrtc_log_bytes(program, &needed), COMPILED);
  assert_true(needed <= bytes);
  assert_int_equal(nvrtc.nvrtc_log(program, log), COMPILED);
  assert_int_equal(nvrtc.nvrtc_destroy(&program), COMPILED);
  assert_null(program);
  return code;
}

UNIT_TEST(kernels_are_found_by_name) {
  char image[256], log[256];
  assert_int_equal(compile("__device__ int help() { return 1; }\n"
                           "extern \"C\" __global__ void first(int *out) { *out = help(); }\n"
                           "extern \"C\" __global__ void __launch_bounds__(256, 2)\n  second (float a) {}\n",
                           image, log, sizeof image),
                   COMPILED);
  assert_string_equal(image, FAKE_IMAGE_HEAD "first\nsecond\n");
  assert_string_equal(log, "");
}

UNIT_TEST(what_does_not_compile_says_why) {
  char image[256], log[256];
  assert_int_equal(compile("extern \"C\" __global__ void k() {}\n  #error not today\n", image, log, sizeof image),
                   COMPILATION);
  assert_string_equal(log, "test.cu(): error: #error not today\n");
  assert_int_equal(compile("void k() {}\n", image, log, sizeof image), COMPILATION);
  assert_non_null(strstr(log, "no extern \"C\" __global__"));
  assert_int_equal(compile("__global__ void mangled() {}\n", image, log, sizeof image), COMPILATION);
  assert_string_equal(nvrtc.nvrtc_error_string(COMPILATION), "NVRTC_ERROR_COMPILATION");
}

UNIT_TEST(bad_calls_are_refused) {
  const char *const option = "no dash";
  fake_nvrtc_program *program = NULL;
  int major = 0, minor = 0;
  const size_t live = nvrtc.nvrtc_live(), compilations = nvrtc.nvrtc_compilations();
  assert_int_equal(nvrtc.nvrtc_version(&major, &minor), COMPILED);
  assert_int_equal(major, 12);
  assert_int_equal(nvrtc.nvrtc_create(&program, NULL, NULL, 0, NULL, NULL), INVALID_INPUT);
  assert_int_equal(nvrtc.nvrtc_create(&program, "", NULL, 0, NULL, NULL), COMPILED);
  assert_int_equal(nvrtc.nvrtc_live(), live + 1);
  assert_int_equal(nvrtc.nvrtc_compile(program, 1, &option), INVALID_OPTION);
  assert_int_equal(nvrtc.nvrtc_compile(program, 0, NULL), COMPILATION);
  assert_int_equal(nvrtc.nvrtc_compilations(), compilations + 1);
  assert_int_equal(nvrtc.nvrtc_destroy(&program), COMPILED);
  assert_int_equal(nvrtc.nvrtc_live(), live);
}

FAKE_TEST(the_driver_loads_what_was_compiled) {
  const cu_address memory = make_memory(f);
  const rondo_parameter parameters[] = {RONDO_SCALAR(uint32_t), RONDO_UPDATES};
  char image[256], log[256];
  cu_module module = NULL;
  cu_function function = NULL;
  assert_int_equal(compile("extern \"C\" __global__ void sum(unsigned a, unsigned *b) { *b += a; }", image, log, 256),
                   COMPILED);
  assert_cu_ok(f->api->test_kernel("sum", add_word, NULL, 2, parameters));
  assert_cu_ok(f->api->module_load(&module, image, 0, NULL, NULL));
  assert_cu_ok(f->api->module_get_function(&function, module, "sum"));
  assert_cu_ok(f->api->memset_32_async(memory, 1, 1, f->stream));
  assert_cu_ok(launch_add(f, function, f->stream, 41, memory));
  assert_int_equal(read_word(f, f->stream, memory), 42);
  assert_cu_ok(f->api->module_unload(module));
  free_memory(f, memory);
}

int main(void) { return test_run_registered_in(load, NULL); }
