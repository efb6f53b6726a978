/* SPDX-License-Identifier: MIT
 * The CPU function of the kernel that Rondo includes as PTX (device/cuda/cuda_builtin_kernels.c).
 */
#include <string.h>

#include "fake_cuda/fake.h"

static void fill_row(unsigned char *row, uint64_t width, const unsigned char *element) {
  for (uint64_t i = 0; i < width; i++) row[i] = element[i % 4];
}

/* The first block does it all. */
static void fill(rondo_blocks blocks, void *const *args) {
  unsigned char *const dst = *(unsigned char *const *)args[0];
  const uint64_t pitch = *(const uint64_t *)args[1], width = *(const uint64_t *)args[2];
  const uint64_t height = *(const uint64_t *)args[3];
  if (blocks.first > 0) return;
  for (uint64_t y = 0; y < height; y++) fill_row(dst + y * pitch, width, args[4]);
}

__attribute__((constructor)) static void register_fill(void) {
  static const rondo_parameter parameters[] = {RONDO_WRITES, RONDO_SCALAR(uint64_t), RONDO_SCALAR(uint64_t),
                                               RONDO_SCALAR(uint64_t), RONDO_SCALAR(uint32_t)};
  (void)fake_test_kernel("rondo_fill", fill, NULL, 5, parameters);
}
