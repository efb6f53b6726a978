/* SPDX-License-Identifier: MIT
 * Filling memory with uniformly distributed floats. Four floats are one call of the generator's function, with their
 * number as subsequence, so that a float depends on its index alone and not on the grid.
 *
 * A generator keeps its kernel, which the first call makes. Threads: any; if several make kernels at once, one is kept.
 */
#include <assert.h>
#include <math.h>

#include "exec/random/random_cuda_sources.h"
#include "exec/random/random_internal.h"
#include "exec/stream/stream_internal.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define MOST_BLOCKS 4096
#define MOST_ELEMENTS (UINT64_C(1) << 48)

const char *rondo_random_cuda_source(void) { return rondo_cuda_random_device; }

/* The kernel ------------------------------------------------------------------------------------------------------ */

enum { DESTINATION, CELLS, SEED, OFFSET, COUNT, LOW, HIGH };

static inline float spread(uint32_t word, float low, float high, float range) {
  const float u = (float)(word >> 8) * 0x1p-24f;
  const float scaled = u * range;
  const float value = scaled + low;
  return value < high ? value : low;
}

static void fill_groups(float *dst, size_t first, size_t last, size_t count, const rondo_random *random, float low,
                        float high) {
  const float range = high - low;
  assert(first <= last && last <= count / 4 + (count % 4 != 0));
  for (size_t group = first; group < last; group++) {
    const rondo_random4 drawn = rondo_philox(random->seed, group, random->offset);
    const size_t begin = 4 * group, words = count - begin < 4 ? count - begin : 4;
    for (size_t word = 0; word < words; word++) dst[begin + word] = spread(drawn.x[word], low, high, range);
  }
}

/* Each block fills an equal share of the groups, and the last one the rest. */
static void uniform_cpu(rondo_blocks blocks, void *const *args) {
  float *dst = *(float *const *)args[DESTINATION];
  const rondo_random random = rondo_random_begin(args + CELLS);
  const size_t count = *(const size_t *)args[COUNT];
  const float low = *(const float *)args[LOW], high = *(const float *)args[HIGH];
  const size_t groups = count / 4 + (count % 4 != 0);
  const size_t share = groups / blocks.grid.x + (groups % blocks.grid.x != 0);
  const size_t first = blocks.first * share, end = blocks.last * share;
  if (first < groups) fill_groups(dst, first, end < groups ? end : groups, count, &random, low, high);
}

static const rondo_kernel_options uniform_code = {
    RONDO_KERNEL_OPTIONS_INIT,
    .name = "rondo_uniform",
    .block_threads = RONDO_UNIFORM_THREADS,
    .cpu = uniform_cpu,
    .cuda_source = rondo_cuda_random_uniform,
    .params = {RONDO_WRITES, RONDO_RANDOM_PARAMETERS, RONDO_SCALAR(size_t), RONDO_SCALAR(float), RONDO_SCALAR(float)}};

static rondo_status kernel_of(rondo_generator *generator, rondo_kernel **out) {
  *out = atomic_load_explicit(&generator->uniform, memory_order_acquire);
  if (*out != NULL) return RONDO_OK;
  rondo_kernel *made, *first = NULL;
  RONDO_TRY(rondo_device_make_kernel(generator->device, &uniform_code, &made));
  const bool is_first = atomic_compare_exchange_strong_explicit(&generator->uniform, &first, made, memory_order_acq_rel,
                                                                memory_order_acquire);
  *out = is_first ? made : first;
  if (!is_first) rondo_kernel_release(made);
  return RONDO_OK;
}

/* Filling --------------------------------------------------------------------------------------------------------- */

static rondo_status check_fill(const char *call, const float *dst, size_t count, float low, float high) {
  if (dst == NULL) return rondo_refuse_null(call, "dst");
  if (count == 0 || count > MOST_ELEMENTS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: %zu elements: fill 1 to 2^48", call, count);
  if (isfinite(low) && isfinite(high) && low <= high && isfinite(high - low)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: numbers from %g to %g: pass finite bounds, the lower one first, whose difference is finite",
                    call, (double)low, (double)high);
}

static rondo_grid grid_for(const rondo_generator *generator, size_t count) {
  const size_t groups = count / 4 + (count % 4 != 0), grain = generator->uniform_groups;
  const size_t blocks = groups / grain + (groups % grain != 0);
  return (rondo_grid){.x = blocks > MOST_BLOCKS ? MOST_BLOCKS : (uint32_t)blocks};
}

rondo_status rondo_random_uniform(rondo_generator *generator, rondo_stream *stream, float *dst, size_t count, float low,
                                  float high) {
  const char *const call = "rondo_random_uniform";
  rondo_random random;
  rondo_kernel *kernel;
  RONDO_TRY(rondo_check_call(call, "the generator", generator));
  RONDO_TRY(rondo_require(call, "the stream", stream));
  RONDO_TRY(rondo_require_device(call, "the stream", generator->device, stream->device));
  RONDO_TRY(check_fill(call, dst, count, low, high));
  RONDO_TRY(rondo_fail_context(kernel_of(generator, &kernel), "%s", call));
  RONDO_TRY(rondo_generator_reserve(generator, stream, RONDO_RANDOM_STEP, &random));
  const rondo_status status = rondo_launch(stream, kernel, grid_for(generator, count),
                                           RONDO_ARGS(&dst, RONDO_RANDOM_ARGS(random), &count, &low, &high));
  if (status == RONDO_OK) return RONDO_OK;
  rondo_generator_give_back(generator, stream, RONDO_RANDOM_STEP, &random);
  return rondo_fail_context(status, "%s", call);
}
