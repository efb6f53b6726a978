/* SPDX-License-Identifier: MIT
 * The operators' CUDA sources compile with the real run-time compiler, for the GPU that they are tuned for. Skipped
 * where there is none.
 */
#include <stdio.h>

#include "device/cuda/cuda_compiler.h"
#include "support/rondo_test.h"
#include "tensor/operators/cuda_sources.h"

static const struct {
  const char *name, *source;
} sources[] = {
#define SOURCE_ROW(name) {#name, rondo_cuda_##name},
#define TYPED_ROW(name) RONDO_EACH_FLOAT_SOURCE(SOURCE_ROW, name)
#define NUMBER_ROW(name) RONDO_EACH_NUMBER_SOURCE(SOURCE_ROW, name)
    RONDO_CUDA_SOURCES(SOURCE_ROW) RONDO_CUDA_TYPED_SOURCES(TYPED_ROW) RONDO_CUDA_NUMBER_SOURCES(NUMBER_ROW)
#undef NUMBER_ROW
#undef TYPED_ROW
#undef SOURCE_ROW
};

static void test_sources_compile(void **state) {
  const rondo_allocator allocator = rondo_allocator_default();
  (void)state;
  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
    cuda_code code;
    assert_ok(cuda_compile(&allocator, sources[i].name, sources[i].source, 9, 0, &code));
    assert_true(code.count > 0);
    rondo_release(&allocator, code.bytes, code.count, 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sources_compile)};
  int version;
  if (cuda_compiler_version(&version) != RONDO_OK) {
    printf("skipped: %s\n", rondo_last_error()->message);
    return 77;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
