/* SPDX-License-Identifier: MIT
 * Symbols of kernels on the fake driver (AD-8): of sources, images and functions of the program's own module; sizes
 * that the code does not have; when the code is unloaded.
 */
#include <rondo/rondo.h>

#include "fake_cuda/fake_fixture.h"
#include "fake_cuda/image.h"
#include "vendor/cuda_driver.h"

static uint32_t unit_table[4];

static rondo_symbol table(size_t bytes) {
  return (rondo_symbol){.name = "unit_table", .cpu = unit_table, .bytes = bytes};
}

static rondo_kernel_options options_of(const rondo_symbol *symbol) {
  return (rondo_kernel_options){RONDO_KERNEL_OPTIONS_INIT,  .name = "test_unit",
                                .cpu = test_kernel_nothing, .cuda_image = FAKE_IMAGE_HEAD "test_unit\n",
                                .symbols = symbol,          .symbol_count = 1};
}

static void expect_address(rondo_kernel *kernel) {
  void *address;
  size_t bytes;
  assert_ok(rondo_kernel_symbol(kernel, "unit_table", &address, &bytes));
  assert_ptr_equal(address, unit_table);
  assert_int_equal(bytes, sizeof unit_table);
}

FAKE_TEST(ad8_images_have_symbols) {
  const rondo_symbol right = table(sizeof unit_table), wrong = table(8);
  const rondo_symbol any = {.name = "unit_table"}, missing = {.name = "unit_missing"};
  const rondo_symbol *const known[] = {&right, &any};
  rondo_kernel *kernel;
  for (size_t i = 0; i < 2; i++) {
    const rondo_kernel_options options = options_of(known[i]);
    assert_ok(rondo_kernel_create(t->device, &options, &kernel));
    expect_address(kernel);
    rondo_kernel_destroy(kernel);
  }
  rondo_kernel_options options = options_of(&wrong);
  assert_invalid(rondo_kernel_create(t->device, &options, &kernel), RONDO_REASON_BAD_SIZE);
  assert_message("symbol 'unit_table' is declared with 8 bytes, its CUDA code has 16");
  options = options_of(&missing);
  assert_fails(rondo_kernel_create(t->device, &options, &kernel), RONDO_INVALID_DATA);
  assert_message("the code of kernel 'test_unit' has no variable 'unit_missing'");
}

/* Two kernels from functions of a module that the program loaded: the module's variable is that of both. */
FAKE_TEST(ad8_functions_of_the_program_have_symbols) {
  const rondo_symbol symbol = table(sizeof unit_table);
  const cuda_api *api;
  cu_context context;
  cu_module module;
  cu_function function;
  rondo_kernel *kernels[2];
  rondo_kernel_options options = options_of(&symbol);
  assert_ok(cuda_library_get(&api));
  assert_int_equal(api->primary_retain(&context, 0), CU_OK);
  assert_int_equal(api->context_set_current(context), CU_OK);
  assert_int_equal(api->module_load(&module, options.cuda_image, 0, NULL, NULL), CU_OK);
  assert_int_equal(api->module_get_function(&function, module, "test_unit"), CU_OK);
  options.cuda_image = NULL;
  options.cuda_function = function;
  for (size_t i = 0; i < 2; i++) {
    assert_ok(rondo_kernel_create(t->device, &options, &kernels[i]));
    expect_address(kernels[i]);
  }
  rondo_kernel_destroy(kernels[0]);
  assert_ok(rondo_fill_async(t->stream, &(rondo_fill){.dst = unit_table, .value = 7, .element_bytes = 4, .width = 4}));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(unit_table[3], 7);
  rondo_kernel_destroy(kernels[1]);
  assert_int_equal(api->context_set_current(context), CU_OK);
  assert_int_equal(api->module_unload(module), CU_OK);
  assert_int_equal(api->context_set_current(NULL), CU_OK);
  assert_int_equal(api->primary_release(0), CU_OK);
}
