/* SPDX-License-Identifier: MIT
 * The kernels that benchmarks share.
 */
#include "bench/bench_kernels.h"

static void empty_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

const rondo_kernel_options bench_empty = {RONDO_KERNEL_OPTIONS_INIT, .name = "empty", .cpu = empty_cpu,
                                          .block_threads = 1,
                                          .cuda_source = "extern \"C\" __global__ void empty(void) {}"};

static void touch_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(char **)args[0] = 1;
}

const rondo_kernel_options bench_touch = {RONDO_KERNEL_OPTIONS_INIT,
                                          .name = "touch",
                                          .cpu = touch_cpu,
                                          .block_threads = 1,
                                          .cuda_source = "extern \"C\" __global__ void touch(char *at) { *at = 1; }",
                                          .params = {RONDO_WRITES}};

static void set_word_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(uint32_t **)args[0] = *(const uint32_t *)args[1];
}

const rondo_kernel_options bench_set_word = {
    RONDO_KERNEL_OPTIONS_INIT,
    .name = "set_word",
    .cpu = set_word_cpu,
    .block_threads = 1,
    .cuda_source = "extern \"C\" __global__ void set_word(unsigned *word, unsigned value) { *word = value; }",
    .params = {RONDO_WRITES, RONDO_SCALAR(uint32_t)}};

static void read_word_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(uint32_t **)args[1] = **(const uint32_t *const *)args[0];
}

const rondo_kernel_options bench_read_word = {
    RONDO_KERNEL_OPTIONS_INIT,
    .name = "read_word",
    .cpu = read_word_cpu,
    .block_threads = 1,
    .cuda_source = "extern \"C\" __global__ void read_word(const unsigned *in, unsigned *out) { *out = *in; }",
    .params = {RONDO_READS, RONDO_WRITES}};

static void next_word_cpu(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  **(uint32_t **)args[1] = **(const uint32_t *const *)args[0] * 3 + 1;
}

const rondo_kernel_options bench_next_word = {
    RONDO_KERNEL_OPTIONS_INIT,
    .name = "next_word",
    .cpu = next_word_cpu,
    .block_threads = 1,
    .cuda_source = "extern \"C\" __global__ void next_word(const unsigned *in, unsigned *out) { *out = *in * 3 + 1; }",
    .params = {RONDO_READS, RONDO_WRITES}};
