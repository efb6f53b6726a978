/* SPDX-License-Identifier: MIT
 * Shared by the tests of the fake CUDA driver: the driver's functions as the library loads them; a fixture with a
 * context and two non-blocking streams, whose teardown asserts that nothing was misused or left; device memory,
 * modules, and a gate that blocks a stream.
 */
#ifndef RONDO_TESTS_UNIT_FAKE_CUDA_FAKE_TEST_H
#define RONDO_TESTS_UNIT_FAKE_CUDA_FAKE_TEST_H

/* cmocka.h wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "fake_cuda/fake_cuda.h"
#include "fake_cuda/image.h"
#include "support/test_cases.h"
#include "vendor/cuda_driver.h"

#define assert_code(call, code) assert_int_equal((call), (code))
#define assert_cu_ok(call) assert_code((call), CU_OK)

#define GRANULE ((size_t)2 << 20)

/* Functions of the driver that the library does not load. */
typedef struct foreign_api {
#define required(member, symbol, version, arguments) cu_result(*member) arguments;
#include "fake_cuda/foreign_symbols.h"
#undef required
} foreign_api;

typedef struct fixture {
  const cuda_api *api;
  const foreign_api *foreign;
  const fake_cuda_control *fake;
  cu_context context;
  cu_stream stream, other;
} fixture;

/* A function of the driver by its exported name. */
static inline void *foreign_symbol(const char *name) {
  void *library = dlopen(getenv("RONDO_CUDA_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  void *symbol = library != NULL ? dlsym(library, name) : NULL;
  assert_non_null(symbol);
  return symbol;
}

static inline const foreign_api *find_foreign(void) {
  static foreign_api api;
  void *symbol;
#define required(member, name, version, arguments) \
  symbol = foreign_symbol(#name);                  \
  memcpy(&api.member, &symbol, sizeof symbol);
#include "fake_cuda/foreign_symbols.h"
#undef required
  return &api;
}

/* Every misuse that a test provokes on purpose is taken back by this. */
static inline void expect_violations(const fixture *f, size_t count) {
  char text[2048];
  f->fake->list_violations(text, sizeof text);
  if (f->fake->violations() != count) print_error("%s", text);
  assert_int_equal(f->fake->violations(), count);
  f->fake->forget();
}

static inline int set_up_fake(void **state) {
  static fixture f;
  f.fake = fake_cuda_get();
  assert_non_null(f.fake);
  f.foreign = find_foreign();
  assert_int_equal(cuda_library_get(&f.api), RONDO_OK);
  f.fake->reset();
  assert_cu_ok(f.api->primary_retain(&f.context, 0));
  assert_cu_ok(f.api->context_set_current(f.context));
  assert_cu_ok(f.api->stream_create(&f.stream, CU_STREAM_FLAG_NON_BLOCKING));
  assert_cu_ok(f.api->stream_create(&f.other, CU_STREAM_FLAG_NON_BLOCKING));
  *state = &f;
  return 0;
}

/* The test has given back what it made; the fixture gives back its own. */
static inline int tear_down_fake(void **state) {
  const fixture *f = *state;
  char text[2048];
  assert_cu_ok(f->api->stream_destroy(f->stream));
  assert_cu_ok(f->api->stream_destroy(f->other));
  assert_cu_ok(f->api->context_set_current(NULL));
  assert_cu_ok(f->api->primary_release(0));
  f->fake->list(text, sizeof text);
  assert_string_equal(text, "");
  f->fake->list_violations(text, sizeof text);
  assert_string_equal(text, "");
  f->fake->reset();
  return 0;
}

/* As tear_down_fake for tests that leave a lost context or other ruins. */
static inline int tear_down_ruins(void **state) {
  const fixture *f = *state;
  f->fake->reset();
  assert_int_equal(f->fake->live(FAKE_CUDA_ANY), 0);
  return 0;
}

#define FAKE_TEST(name) TEST_REGISTER(name, const fixture *f, set_up_fake, tear_down_fake, false)
#define RUINS_TEST(name) TEST_REGISTER(name, const fixture *f, set_up_fake, tear_down_ruins, false)

/* Device memory of one granule, which device 0 may access. */
static inline cu_address make_memory(const fixture *f) {
  const cu_allocation_properties properties = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
  const cu_access access = {{CU_LOCATION_DEVICE, 0}, CU_ACCESS_READ_WRITE};
  cu_address address;
  cu_physical physical;
  assert_cu_ok(f->api->mem_reserve(&address, GRANULE, 0, 0, 0));
  assert_cu_ok(f->api->mem_create(&physical, GRANULE, &properties, 0));
  assert_cu_ok(f->api->mem_map(address, GRANULE, 0, physical, 0));
  assert_cu_ok(f->api->mem_release(physical));
  assert_cu_ok(f->api->mem_set_access(address, GRANULE, &access, 1));
  return address;
}

static inline void free_memory(const fixture *f, cu_address address) {
  assert_cu_ok(f->api->mem_unmap(address, GRANULE));
  assert_cu_ok(f->api->mem_unreserve(address, GRANULE));
}

/* The first word of device memory, once the stream is through. */
static inline uint32_t read_word(const fixture *f, cu_stream stream, cu_address address) {
  uint32_t word = 0;
  assert_cu_ok(f->api->copy_async((cu_address)(uintptr_t)&word, address, sizeof word, stream));
  assert_cu_ok(f->api->stream_synchronize(stream));
  return word;
}

/* Adds args[0] to the word at args[1], once a block. */
static inline void add_word(rondo_blocks blocks, void *const *args) {
  uint32_t *const word = *(uint32_t **)args[1];
  for (size_t i = blocks.first; i < blocks.last; i++) *word += *(const uint32_t *)args[0];
}

/* A module with the kernel `name`, registered as add_word. */
static inline cu_module make_module(const fixture *f, const char *name, cu_function *function) {
  const rondo_parameter parameters[] = {RONDO_SCALAR(uint32_t), RONDO_UPDATES};
  char image[128];
  cu_module module;
  assert_cu_ok(f->api->test_kernel(name, add_word, NULL, 2, parameters));
  (void)snprintf(image, sizeof image, "%s%s\n", FAKE_IMAGE_HEAD, name);
  assert_cu_ok(f->api->module_load(&module, image, 0, NULL, NULL));
  assert_cu_ok(f->api->module_get_function(function, module, name));
  return module;
}

static inline cu_result launch_add(const fixture *f, cu_function function, cu_stream stream, uint32_t value,
                                   cu_address address) {
  void *params[] = {&value, &address};
  return f->api->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static inline cu_kernel_params add_params(cu_function function, uint32_t *value, cu_address *address, void **params) {
  params[0] = value;
  params[1] = address;
  return (cu_kernel_params){.function = function,
                            .grid_x = 1,
                            .grid_y = 1,
                            .grid_z = 1,
                            .block_x = 1,
                            .block_y = 1,
                            .block_z = 1,
                            .params = params};
}

static inline void wait_for_gate(void *user) {
  while (sem_wait(user) != 0) continue;
}

/* Holds the stream until sem_post(gate). */
static inline void close_gate(const fixture *f, cu_stream stream, sem_t *gate) {
  assert_int_equal(sem_init(gate, 0, 0), 0);
  assert_cu_ok(f->api->launch_host_function(stream, wait_for_gate, gate));
}

static inline cu_graph_exec instantiate(const fixture *f, cu_graph graph) {
  cu_instantiate_params params = {0};
  cu_graph_exec exec = NULL;
  assert_cu_ok(f->api->graph_instantiate(&exec, graph, &params));
  assert_int_equal(params.result, CU_INSTANTIATE_SUCCESS);
  return exec;
}

#endif
