/* SPDX-License-Identifier: MIT
 * Without a CUDA device or a compiler: opening reports why, in one line, each time. The CPU device still works. The
 * driver is loaded once in a process, so each case runs in its own process; this one never loads it.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "fake_cuda/fake_cuda.h"
#include "support/rondo_test.h"
#include "vendor/cuda_driver.h"

enum { NO_DEVICE = 100, NOT_INITIALIZED = 3 };

/* How the case differs from the normal fake driver. */
typedef struct setting {
  const char *variable, *value; /* of the environment; or NULL */
  const char *hidden;           /* a function that the driver lacks; or NULL */
  const char *refused;          /* a function whose first call fails with `code`; or NULL */
  unsigned code;
} setting;

/* Results of a child process, in shared memory. */
typedef struct outcome {
  bool is_done;        /* it reached its end */
  bool is_said_again;  /* the second call said the same; or the kernel of an image ran */
  bool has_cpu;        /* the CPU device opened */
  rondo_status status; /* of the call */
  rondo_reason reason; /* with what the error said */
  int32_t driver_code;
  char message[RONDO_ERROR_MESSAGE_BYTES];
  char unavailable[RONDO_ERROR_MESSAGE_BYTES]; /* what enumerating says of the first CUDA device */
} outcome;

static outcome *found;

static setting with(const char *variable, const char *value) { return (setting){.variable = variable, .value = value}; }

static setting with_refused(const char *call, unsigned code) { return (setting){.refused = call, .code = code}; }

static void prepare(const setting *of) {
  if (of->variable != NULL) (void)setenv(of->variable, of->value, 1);
  const fake_cuda_control *fake = of->hidden != NULL || of->refused != NULL ? fake_cuda_get() : NULL;
  if (of->hidden != NULL) fake->hide(of->hidden);
  if (of->refused != NULL) fake->fail_call(of->refused, 1, of->code, false);
}

static void keep_error(rondo_status status) {
  found->status = status;
  if (status == RONDO_OK) return;
  const rondo_error *error = rondo_last_error();
  found->reason = error->reason;
  found->driver_code = error->driver_code;
  (void)snprintf(found->message, sizeof found->message, "%s", error->message);
}

static void keep_unavailable(void) {
  const char *name, *unavailable;
  for (size_t i = 0; rondo_device_enumerate(i, &name, &unavailable) == RONDO_OK; i++)
    if (strcmp(name, "cuda:0") == 0) (void)snprintf(found->unavailable, sizeof found->unavailable, "%s", unavailable);
}

static bool has_cpu(void) {
  rondo_device *device = NULL;
  return rondo_device_open("cpu", NULL, &device) == RONDO_OK && rondo_device_close(device) == RONDO_OK;
}

static void open_twice(void) {
  rondo_device *device = NULL;
  keep_error(rondo_device_open("cuda:0", NULL, &device));
  keep_unavailable();
  found->has_cpu = has_cpu();
  if (found->status == RONDO_OK)
    found->is_said_again = rondo_device_close(device) == RONDO_OK;
  else
    found->is_said_again = rondo_device_open("cuda:0", NULL, &device) == found->status &&
                           strcmp(rondo_last_error()->message, found->message) == 0 && device == NULL;
}

/* By the name without a number. */
static void open_first(void) {
  rondo_device *device = NULL;
  keep_error(rondo_device_open("cuda", NULL, &device));
  found->has_cpu = has_cpu();
}

static rondo_status run_kernel(rondo_device *device, rondo_kernel *kernel) {
  rondo_stream *stream;
  rondo_status status = rondo_stream_create(device, NULL, &stream);
  if (status != RONDO_OK) return status;
  status = rondo_launch(stream, kernel, (rondo_grid){.x = 1}, RONDO_NO_ARGS);
  const rondo_status ended = rondo_stream_destroy(stream);
  return status != RONDO_OK ? status : ended;
}

/* A kernel of a source; then one of an image, which needs no compiler and runs. */
static void make_kernels(void) {
  static const char image[] = ".version 6.3\n.target sm_52\n.address_size 64\n.visible .entry of_image()\n{ ret; }\n";
  const rondo_cpu_function function = test_kernel_options(TEST_KERNEL_EMPTY)->cpu;
  const rondo_kernel_options of_source = {RONDO_KERNEL_OPTIONS_INIT, .name = "of_source", .cpu = function,
                                          .cuda_source = "extern \"C\" __global__ void of_source() {}\n"};
  const rondo_kernel_options of_image = {RONDO_KERNEL_OPTIONS_INIT, .name = "of_image", .cpu = function,
                                         .cuda_image = image};
  rondo_device *device = NULL;
  rondo_kernel *kernel = NULL;
  if (rondo_device_open("cuda:0", NULL, &device) != RONDO_OK) return;
  keep_error(rondo_kernel_create(device, &of_source, &kernel));
  rondo_kernel_destroy(kernel);
  if (rondo_kernel_create(device, &of_image, &kernel) != RONDO_OK) return;
  found->is_said_again = run_kernel(device, kernel) == RONDO_OK;
  rondo_kernel_destroy(kernel);
  found->has_cpu = has_cpu();
  if (rondo_device_close(device) != RONDO_OK) found->is_said_again = false;
}

static const outcome *in_a_child(setting of, void (*work)(void)) {
  int code = -1;
  *found = (outcome){.is_done = false};
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    prepare(&of);
    work();
    found->is_done = true;
    _exit(0);
  }
  assert_int_equal(waitpid(child, &code, 0), child);
  assert_int_equal(code, 0);
  assert_true(found->is_done && found->has_cpu);
  return found;
}

/* UNAVAILABLE with these words, in one line, each time; `code` is the driver's, or 0. */
static void assert_unavailable(setting of, int32_t code, const char *const *words, size_t count) {
  const outcome *is = in_a_child(of, open_twice);
  if (is->status != RONDO_UNAVAILABLE || is->driver_code != code || !is->is_said_again)
    fail_msg("status %d, driver's code %d: %s", (int)is->status, (int)is->driver_code, is->message);
  for (size_t i = 0; i < count; i++) {
    if (strstr(is->message, words[i]) == NULL) fail_msg("no '%s' in: %s", words[i], is->message);
    if (strstr(is->unavailable, words[i]) == NULL) fail_msg("no '%s' in: %s", words[i], is->unavailable);
  }
  if (strchr(is->unavailable, '\n') != NULL) fail_msg("more than a line: %s", is->unavailable);
}
#define assert_says(of, code, ...) \
  assert_unavailable(of, code, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / 8)

UNIT_TEST(a_message_has_the_requested_device_name) {
  const outcome *is = in_a_child(with("RONDO_CUDA_LIBRARY", "/nowhere/libcuda.so.1"), open_first);
  assert_int_equal(is->status, RONDO_UNAVAILABLE);
  assert_non_null(strstr(is->message, "device 'cuda'"));
}

UNIT_TEST(without_a_driver_the_file_is_named) {
  assert_says(with("RONDO_CUDA_LIBRARY", "/nowhere/libcuda.so.1"), 0, "no CUDA driver (install",
              "/nowhere/libcuda.so.1");
}

UNIT_TEST(a_library_that_is_no_driver_is_refused) {
  assert_says(with("RONDO_CUDA_LIBRARY", getenv("RONDO_NVRTC_LIBRARY")), 0, "cuGetProcAddress_v2", "12.4 (550)");
}

UNIT_TEST(a_driver_that_is_too_old_is_refused) {
  assert_says(with("RONDO_TEST_FAKE_CUDA_VERSION", "12030"), 0, "version 12.3", "12.4 (550) or newer");
  assert_says(with("RONDO_TEST_FAKE_CUDA_VERSION", "11080"), 0, "of version 12.", "12.4 (550) or newer");
}

UNIT_TEST(a_driver_without_devices_is_refused) {
  assert_says(with("RONDO_TEST_FAKE_CUDA_DEVICES", "0"), NO_DEVICE, "CUDA_ERROR_NO_DEVICE");
}

UNIT_TEST(a_driver_that_does_not_start_is_refused) {
  assert_says(with_refused("cuInit", NO_DEVICE), NO_DEVICE, "cannot be initialised", "CUDA_ERROR_NO_DEVICE");
  assert_says(with_refused("cuDriverGetVersion", NOT_INITIALIZED), NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED");
  assert_says(with_refused("cuDeviceGetCount", NOT_INITIALIZED), NOT_INITIALIZED, "has no device",
              "CUDA_ERROR_NOT_INITIALIZED");
}

/* Without each function in turn. Without an optional one there is a device that runs kernels. */
UNIT_TEST(a_function_that_the_driver_lacks_is_named) {
  static const struct {
    const char *name;
    bool is_required;
  } rows[] = {
#define required(member, symbol, version, arguments) {#symbol, true},
#define optional(member, symbol, version, arguments) {#symbol, false},
#include "vendor/cuda_driver_symbols.h"
#undef required
#undef optional
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const setting without = {.hidden = rows[i].name};
    if (rows[i].is_required)
      assert_says(without, 0, rows[i].name, "12.4 (550) or newer");
    else if (strcmp(rows[i].name, "rondoTestKernel") != 0)
      assert_true(in_a_child(without, make_kernels)->status == RONDO_OK && found->is_said_again);
  }
}

/* A GPU that is newer than the compiler: the image still loads. */
UNIT_TEST(a_compiler_that_does_not_know_the_gpu_is_named) {
  const outcome *is = in_a_child(with("RONDO_TEST_FAKE_NVRTC_NEWEST", "89"), make_kernels);
  assert_int_equal(is->status, RONDO_UNAVAILABLE);
  assert_non_null(strstr(is->message, "version 12.4 does not support --gpu-architecture=sm_90"));
  assert_non_null(strstr(is->message, "NVRTC_ERROR_INVALID_OPTION"));
  assert_non_null(strstr(is->message, "RONDO_NVRTC_LIBRARY"));
  assert_true(is->is_said_again);
}

/* Kernels of images need none. */
UNIT_TEST(without_a_compiler_sources_are_refused) {
  static const char *const words[] = {"RONDO_NVRTC_LIBRARY", "nvrtcVersion"};
  const char *const libraries[] = {"/nowhere/libnvrtc.so", getenv("RONDO_CUDA_LIBRARY")};
  for (int i = 0; i < 2; i++) {
    const outcome *is = in_a_child(with("RONDO_NVRTC_LIBRARY", libraries[i]), make_kernels);
    assert_int_equal(is->status, RONDO_UNAVAILABLE);
    if (strstr(is->message, words[i]) == NULL) fail_msg("no '%s' in: %s", words[i], is->message);
    if (strstr(is->message, libraries[i]) == NULL) fail_msg("no '%s' in: %s", libraries[i], is->message);
    assert_true(is->is_said_again);
  }
}

int main(void) {
  found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return EXIT_FAILURE;
  return test_run_registered();
}
