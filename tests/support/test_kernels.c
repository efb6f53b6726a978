/* SPDX-License-Identifier: MIT
 * The table of test kernels. A CPU function runs a range of blocks; its result does not depend on how the grid is
 * divided.
 */
#include "support/test_kernels.h"

#include <string.h>

void test_kernel_nothing(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

static void set_cpu(rondo_blocks blocks, void *const *args) {
  const uint32_t value = *(const uint32_t *)args[0];
  uint32_t *out = *(uint32_t **)args[1];
  for (size_t b = blocks.first; b < blocks.last; b++) out[b] = value;
}

static void affine_cpu(rondo_blocks blocks, void *const *args) {
  const uint32_t factor = *(const uint32_t *)args[0];
  const uint32_t term = *(const uint32_t *)args[1];
  uint32_t *out = *(uint32_t **)args[2];
  for (size_t b = blocks.first; b < blocks.last; b++) out[b] = out[b] * factor + term;
}

static void place_cpu(rondo_blocks blocks, void *const *args) {
  const rondo_grid grid = blocks.grid;
  uint32_t *out = *(uint32_t **)args[0];
  for (size_t b = blocks.first; b < blocks.last; b++) {
    const size_t x = b % grid.x;
    const size_t y = b / grid.x % grid.y;
    const size_t z = b / grid.x / grid.y;
    out[b] = (uint32_t)(x + 100 * y + 10000 * z + 1);
  }
}

static void count_blocks_cpu(rondo_blocks blocks, void *const *args) {
  const uint32_t weight = *(const uint32_t *)args[0];
  uint32_t *sum = *(uint32_t **)args[1];
  for (size_t b = blocks.first; b < blocks.last; b++) __atomic_fetch_add(sum, weight, __ATOMIC_RELAXED);
}

static void combine_cpu(rondo_blocks blocks, void *const *args) {
  const uint32_t *left = *(const uint32_t **)args[0];
  const uint32_t *right = *(const uint32_t **)args[1];
  uint32_t *out = *(uint32_t **)args[2];
  for (size_t b = blocks.first; b < blocks.last; b++) out[b] = left[b] * 31 + right[b];
}

static void saxpy_cpu(rondo_blocks blocks, void *const *args) {
  const float a = *(const float *)args[0];
  const float *x = *(const float **)args[1];
  float *y = *(float **)args[2];
  for (size_t b = blocks.first; b < blocks.last; b++) y[b] += a * x[b];
}

static void mixed_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  const uint64_t wide = *(const uint64_t *)args[1];
  const test_triple triple = *(const test_triple *)args[4];
  uint32_t *out = *(uint32_t **)args[6];
  out[0] = *(const uint8_t *)args[0];
  out[1] = (uint32_t)(wide >> 32) ^ (uint32_t)wide;
  out[2] = *(const uint16_t *)args[2];
  out[3] = (uint32_t)(*(const double *)args[3] * 8.0);
  for (int i = 0; i < 3; i++) out[4 + i] = triple.values[i];
  out[7] = *(const uint32_t *)args[5];
}

static void reverse_cpu(rondo_blocks blocks, const rondo_thread_block *block, void *const *args) {
  const uint32_t *in = *(const uint32_t **)args[0];
  uint32_t *out = *(uint32_t **)args[1], *shared = block->shared;
  const rondo_dimensions size = block->threads;
  const size_t count = (size_t)size.x * size.y * size.z;
  for (size_t b = blocks.first; b < blocks.last; b++) {
    const uint32_t shape[] = {size.x, size.y, size.z, block->shared_bytes};
    if (b == 0) memcpy(out, shape, sizeof shape);
    if (shared == NULL) continue;
    memcpy(shared, in + b * count, count * sizeof *in);
    for (size_t i = 0; i < count; i++) out[4 + b * count + i] = shared[count - 1 - i];
  }
}

/* One thread for each block, so that the grid is divided as on a CPU. */
#define CUDA_SOURCE(text) .block_threads = 1, .cuda_source = BLOCK_NUMBER text
#define BLOCK_NUMBER                                        \
  "typedef unsigned u32; typedef unsigned long long u64;\n" \
  "#define B ((u64)blockIdx.x + (u64)gridDim.x * (blockIdx.y + (u64)gridDim.y * blockIdx.z))\n"

static const rondo_kernel_options kernels[TEST_KERNEL_COUNT] = {
    [TEST_KERNEL_EMPTY] = {RONDO_KERNEL_OPTIONS_INIT, .name = "test_empty", .cpu = test_kernel_nothing,
                           CUDA_SOURCE("extern \"C\" __global__ void test_empty() {}\n")},
    [TEST_KERNEL_SET] = {RONDO_KERNEL_OPTIONS_INIT, .name = "test_set", .cpu = set_cpu,
                         CUDA_SOURCE(
                             "extern \"C\" __global__ void test_set(u32 value, u32 *out) { out[B] = value; }\n"),
                         .params = {RONDO_SCALAR(uint32_t), RONDO_WRITES}},
    [TEST_KERNEL_AFFINE] = {RONDO_KERNEL_OPTIONS_INIT, .name = "test_affine", .cpu = affine_cpu,
                            CUDA_SOURCE("extern \"C\" __global__ void test_affine(u32 factor, u32 term, u32 *out) { "
                                        "out[B] = out[B] * factor + term; }\n"),
                            .params = {RONDO_SCALAR(uint32_t), RONDO_SCALAR(uint32_t), RONDO_UPDATES}},
    [TEST_KERNEL_PLACE] = {RONDO_KERNEL_OPTIONS_INIT, .name = "test_place", .cpu = place_cpu,
                           CUDA_SOURCE("extern \"C\" __global__ void test_place(u32 *out) {\n"
                                       "  out[B] = blockIdx.x + 100 * blockIdx.y + 10000 * blockIdx.z + 1; }\n"),
                           .params = {RONDO_WRITES}},
    [TEST_KERNEL_COUNT_BLOCKS] =
        {RONDO_KERNEL_OPTIONS_INIT, .name = "test_count_blocks", .cpu = count_blocks_cpu,
         CUDA_SOURCE(
             "extern \"C\" __global__ void test_count_blocks(u32 weight, u32 *sum) { atomicAdd(sum, weight); }\n"),
         .params = {RONDO_SCALAR(uint32_t), RONDO_UPDATES}},
    [TEST_KERNEL_COMBINE] =
        {RONDO_KERNEL_OPTIONS_INIT, .name = "test_combine", .cpu = combine_cpu,
         CUDA_SOURCE("extern \"C\" __global__ void test_combine(const u32 *left, const u32 *right, u32 *out) {\n"
                     "  out[B] = left[B] * 31 + right[B]; }\n"),
         .params = {RONDO_READS, RONDO_READS, RONDO_WRITES}},
    [TEST_KERNEL_SAXPY] = {RONDO_KERNEL_OPTIONS_INIT, .name = "test_saxpy", .cpu = saxpy_cpu,
                           CUDA_SOURCE("extern \"C\" __global__ void test_saxpy(float a, const float *x, float *y) {\n"
                                       "  y[B] = __fadd_rn(y[B], __fmul_rn(a, x[B])); }\n"),
                           .params = {RONDO_SCALAR(float), RONDO_READS, RONDO_UPDATES}},
    [TEST_KERNEL_MIXED] =
        {RONDO_KERNEL_OPTIONS_INIT, .name = "test_mixed", .cpu = mixed_cpu,
         CUDA_SOURCE("struct triple { u32 values[3]; };\n"
                     "extern \"C\" __global__ void test_mixed(unsigned char a, u64 wide, unsigned short c, double d, "
                     "struct triple t, u32 f, u32 *out) {\n"
                     "  out[0] = a; out[1] = (u32)(wide >> 32) ^ (u32)wide; out[2] = c; out[3] = (u32)(d * 8.0);\n"
                     "  for (int i = 0; i < 3; i++) out[4 + i] = t.values[i];\n"
                     "  out[7] = f; }\n"),
         .params = {RONDO_SCALAR(uint8_t), RONDO_SCALAR(uint64_t), RONDO_SCALAR(uint16_t), RONDO_SCALAR(double),
                    RONDO_SCALAR(test_triple), RONDO_SCALAR(uint32_t), RONDO_WRITES}},
    [TEST_KERNEL_REVERSE] =
        {RONDO_KERNEL_OPTIONS_INIT, .name = "test_reverse", .cpu_block = reverse_cpu,
         CUDA_SOURCE("extern \"C\" __global__ void test_reverse(const u32 *in, u32 *out) {\n"
                     "  extern __shared__ u32 shared[];\n"
                     "#if __CUDA_ARCH__ >= 900\n"
                     "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
                     "#endif\n"
                     "  const u32 n = blockDim.x * blockDim.y * blockDim.z;\n"
                     "  const u32 t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);\n"
                     "  u32 bytes; asm(\"mov.u32 %0, %%dynamic_smem_size;\" : \"=r\"(bytes));\n"
                     "  if (B == 0 && t == 0) {\n"
                     "    out[0] = blockDim.x; out[1] = blockDim.y; out[2] = blockDim.z; out[3] = bytes; }\n"
                     "  if (bytes == 0) return;\n"
                     "  shared[t] = in[B * n + t]; __syncthreads(); out[4 + B * n + t] = shared[n - 1 - t]; }\n"),
         .params = {RONDO_READS, RONDO_WRITES}},
    [TEST_KERNEL_BARE] = {RONDO_KERNEL_OPTIONS_INIT, .name = "test_bare", .params = {RONDO_UPDATES}},
};

const rondo_kernel_options *test_kernel_options(test_kernel_id id) { return &kernels[id]; }
