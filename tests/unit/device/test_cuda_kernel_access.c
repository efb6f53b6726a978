/* SPDX-License-Identifier: MIT
 * Kernels whose declared accesses contradict their PTX (AD-4), on the fake driver: of an image that is PTX, of a
 * source, and of a source whose code comes from the cache on disk.
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "fake_cuda/fake_fixture.h"
#include "fake_cuda/image.h"

/* Copies a word from `a` to `b`. */
#define COPY_PTX                                              \
  ".version 8.0\n.target sm_52\n.address_size 64\n"           \
  ".visible .entry word_copy(.param .u64 a, .param .u64 b)\n" \
  "{\n.reg .b64 %rd<3>;\n.reg .b32 %r<2>;\n"                  \
  "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n"        \
  "ld.global.u32 %r1, [%rd1];\n"                              \
  "st.global.u32 [%rd2], %r1;\n"                              \
  "ret;\n}\n"

static const char source[] =
    "extern \"C\" __global__ void word_copy(const int *a, int *b) { *b = *a; }\n" FAKE_PTX_COMMENT COPY_PTX "*/\n";

static rondo_kernel_options options_for(rondo_access a, rondo_access b) {
  return (rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT, .name = "word_copy", .cpu = test_kernel_nothing,
                                .params = {{a, 8, 8}, {b, 8, 8}}};
}

/* NULL: the kernel is made. */
static void expect(rondo_device *device, const rondo_kernel_options *options, const char *message) {
  rondo_kernel *kernel = NULL;
  const rondo_status status = rondo_kernel_create(device, options, &kernel);
  if (message == NULL) {
    assert_ok(status);
  } else {
    assert_int_equal(status, RONDO_INVALID_ARGUMENT);
    assert_int_equal(rondo_last_error()->reason, RONDO_REASON_CONTRADICTED);
    assert_string_equal(rondo_last_error()->message, message);
    assert_null(kernel);
  }
  rondo_kernel_destroy(kernel);
}

static const char read_only[] =
    "kernel 'word_copy': parameter 1 is declared RONDO_ACCESS_READ, but its code writes the memory at that address "
    "(st.global.u32 in line 11 of the PTX): declare it RONDO_ACCESS_READ_WRITE, or RONDO_ACCESS_WRITE if it is written "
    "before it is read";
static const char write_only[] =
    "kernel 'word_copy': parameter 0 is declared RONDO_ACCESS_WRITE, but its code reads the memory at that address and "
    "never writes it (ld.global.u32 in line 10 of the PTX): declare it RONDO_ACCESS_READ";
static const char no_address[] =
    "kernel 'word_copy': parameter 1 is declared RONDO_ACCESS_SCALAR, but its code writes memory at that address "
    "(st.global.u32 in line 11 of the PTX): declare it RONDO_ACCESS_WRITE or RONDO_ACCESS_READ_WRITE";

/* Each declaration of the two parameters, and what is said about it. */
static const struct {
  rondo_access a, b;
  const char *message;
} declarations[] = {
    {RONDO_ACCESS_READ, RONDO_ACCESS_WRITE, NULL},        {RONDO_ACCESS_READ_WRITE, RONDO_ACCESS_READ_WRITE, NULL},
    {RONDO_ACCESS_SCALAR, RONDO_ACCESS_WRITE, NULL},      {RONDO_ACCESS_READ, RONDO_ACCESS_READ, read_only},
    {RONDO_ACCESS_WRITE, RONDO_ACCESS_WRITE, write_only}, {RONDO_ACCESS_READ, RONDO_ACCESS_SCALAR, no_address},
};

enum { DECLARATIONS = sizeof declarations / sizeof declarations[0] };

FAKE_TEST(ad4_images_of_ptx_are_compared) {
  for (size_t i = 0; i < DECLARATIONS; i++) {
    rondo_kernel_options options = options_for(declarations[i].a, declarations[i].b);
    options.cuda_image = COPY_PTX;
    expect(t->device, &options, declarations[i].message);
  }
}

FAKE_TEST(ad4_sources_are_compared) {
  for (size_t i = 0; i < DECLARATIONS; i++) {
    rondo_kernel_options options = options_for(declarations[i].a, declarations[i].b);
    options.cuda_source = source;
    expect(t->device, &options, declarations[i].message);
  }
}

/* The PTX is not kept, but what it said is: a later declaration is compared without compiling again. */
FAKE_TEST(ad4_code_from_the_cache_is_compared) {
  char folder[] = "/tmp/rondo-access-XXXXXX", command[64];
  rondo_device_statistics before = {.struct_size = sizeof before}, after = before;
  assert_ok(rondo_device_get_statistics(t->device, &before));
  assert_non_null(mkdtemp(folder));
  assert_int_equal(setenv("RONDO_CUDA_CACHE", folder, 1), 0);
  rondo_options_reload();
  for (size_t i = 0; i < DECLARATIONS; i++) {
    rondo_kernel_options options = options_for(declarations[i].a, declarations[i].b);
    options.cuda_source = source;
    expect(t->device, &options, declarations[i].message);
  }
  assert_ok(rondo_device_get_statistics(t->device, &after));
  assert_int_equal(after.kernels_compiled, before.kernels_compiled + 1);
  assert_int_equal(after.kernels_cached, before.kernels_cached + DECLARATIONS - 1);
  assert_int_equal(setenv("RONDO_CUDA_CACHE", "none", 1), 0);
  rondo_options_reload();
  (void)snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

/* Without PTX, with another kernel's, or where it cannot tell, the declaration counts. */
FAKE_TEST(ad4_what_is_not_known_is_not_refused) {
  rondo_kernel_options options = options_for(RONDO_ACCESS_WRITE, RONDO_ACCESS_READ);
  options.cuda_source = "extern \"C\" __global__ void word_copy(const int *a, int *b) { *b = *a; }\n";
  expect(t->device, &options, NULL);
  options.cuda_source = NULL;
  options.cuda_image = FAKE_IMAGE_HEAD "word_copy\n";
  expect(t->device, &options, NULL);
  options.cuda_image =
      ".version 8.0\n.visible .entry word_copy(.param .u64 a, .param .u64 b)\n"
      "{ ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; call (%r1), help, (%rd1, %rd2); ret; }\n"
      ".visible .entry other(.param .u64 a, .param .u64 b) { ld.param.u64 %rd1, [b]; st.u32 [%rd1], 0; ret; }\n";
  expect(t->device, &options, NULL);
}

/* Each allocation fails once, while a source with PTX and an image of PTX are compared: nothing is left of them. */
FAKE_TEST(ad4_out_of_memory_leaves_nothing) {
  test_allocator allocator;
  rondo_device *device = NULL;
  test_allocator_init(&allocator);
  const rondo_device_options memory = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table};
  assert_ok(rondo_device_open("cuda:0", &memory, &device));
  for (int is_image = 0; is_image < 2; is_image++) {
    rondo_kernel_options options = options_for(RONDO_ACCESS_READ, RONDO_ACCESS_READ);
    if (is_image)
      options.cuda_image = COPY_PTX;
    else
      options.cuda_source = source;
    rondo_status status = RONDO_OUT_OF_MEMORY;
    for (size_t i = 1; status == RONDO_OUT_OF_MEMORY; i++) {
      rondo_kernel *kernel = NULL;
      allocator.calls = 0;
      allocator.fail_at = i;
      status = rondo_kernel_create(device, &options, &kernel);
      assert_null(kernel);
    }
    assert_int_equal(status, RONDO_INVALID_ARGUMENT);
    assert_int_equal(rondo_last_error()->reason, RONDO_REASON_CONTRADICTED);
  }
  allocator.fail_at = 0;
  assert_ok(rondo_device_close(device));
  assert_true(test_allocator_is_clean(&allocator));
}
