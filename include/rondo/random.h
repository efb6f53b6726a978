/* SPDX-License-Identifier: MIT
 * Random numbers: a replay draws the same numbers as an eager run would (TR-13).
 *
 * A generator is a seed and an offset on the host. Numbers come from Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011,
 * "Parallel random numbers: as easy as 1, 2, 3"), a function of seed, subsequence and offset that has no state
 * (rondo_philox below). To draw, a kernel reserves a range of offsets, and gives each of its elements, or each group of
 * them, its own subsequence. Ranges are multiples of 4, as in PyTorch, because one call gives four numbers.
 *
 * - In eager work, a reservation takes the generator's offset and advances it.
 * - While the stream captures, the offset does not advance. The reservation is an offset in the graph, counted from 0,
 *   and the graph stores how many numbers it needs of each generator. A kernel adds its offset to the contents of the
 *   generator's cells: two words of device memory, seed and offset.
 * - The launch of an exec writes the generator's current seed and offset to the cells, in stream order and after
 *   earlier launches of the exec on any stream. Then it advances the generator by what the graph needs. It does not
 *   wait for the host, allocate or lock.
 *
 * So a seed followed by any mix of eager runs, recordings and launches gives the same numbers as eager runs only.
 * Recording draws nothing.
 *
 * Graphs and execs. A graph may use several generators. The cells that a kernel receives during the capture represent
 * the generator. Each exec, and each child graph in it, has its own cells instead. So execs of one graph and of
 * its clones, and graphs that are embedded twice, draw different numbers and may run at the same time. Instantiating
 * finds the addresses of cells in pointers that kernels declare (RONDO_READS), and as words of their other parameters.
 * It does not find them in memory, so they must not be stored there. The following are refused:
 * - a node that is given cells of a generator of which its graph reserves nothing, when it is created or changed
 *   (INVALID_ARGUMENT/FOREIGN_ADDRESS; for a library's node INVALID_GRAPH when it is instantiated);
 * - instantiating a graph that draws random numbers and is bound to what the driver captured
 *   (UNSUPPORTED/FOREIGN_WORK, <rondo/capture.h>);
 * - cells in rondo_exec_set_params, except in declared pointers (UPDATE_REFUSED/PARAMETERS_CHANGED).
 *
 * A reservation that was made during a capture has no meaning for an eager launch. An exec that is launched into a
 * capture becomes a child graph, and its reservations count there. Removing a node keeps its reservation. After an
 * update, launches advance the generators by what the new graph needs. Captures that use one generator at the same time
 * do not disturb each other. A generator lives as long as the graphs and execs that draw from it.
 *
 * The numbers are the same on every device and for every division of a grid, recorded or eager. PyTorch's CUDA
 * generator uses the same function, key and counter, and also advances in multiples of 4. But it assigns subsequences
 * to the threads of a grid that depends on the GPU, so its sequences of floats are not reproduced bit for bit.
 *
 * Threads: a generator is thread-safe, except for seeding and setting the state, which must not be done while another
 * thread draws from it. Threads that draw at the same time get different ranges.
 */
#ifndef RONDO_RANDOM_H
#define RONDO_RANDOM_H

#include <rondo/graph.h>
#include <rondo/stream.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_generator rondo_generator;

typedef struct rondo_generator_options {
  uint32_t struct_size; /* RONDO_GENERATOR_OPTIONS_INIT sets it; 0 means the library's own */
  uint32_t reserved;
  const char *name; /* for messages; copied; may be NULL */
  uint64_t seed;    /* any value; the offset starts at 0 */
} rondo_generator_options;
#define RONDO_GENERATOR_OPTIONS_INIT .struct_size = sizeof(rondo_generator_options)

/* Creates a generator with cells in the device's memory. options may be NULL. The caller destroys it. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, IN_CALLBACK. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_create(rondo_device *device,
                                                             const rondo_generator_options *options,
                                                             rondo_generator **out_generator);

/* Releases the caller's reference. Graphs and execs that draw from the generator keep it, and continue from its state.
 * NULL is fine. */
RONDO_API void rondo_generator_destroy(rondo_generator *generator);

/* The state of a generator. Later numbers depend on nothing else. */
typedef struct rondo_generator_state {
  uint32_t struct_size; /* RONDO_GENERATOR_STATE_INIT sets it; 0 means the library's own */
  uint32_t reserved;
  uint64_t seed;
  uint64_t offset; /* a multiple of 4 */
} rondo_generator_state;
#define RONDO_GENERATOR_STATE_INIT .struct_size = sizeof(rondo_generator_state)

/* Sets the seed, and the offset to 0. Work and launches that are already enqueued keep their numbers. Refused during a
 * capture that has drawn from the generator, and during a capture of this thread on the generator's device that is not
 * RELAXED, because a replay would not repeat the call; the capture stays valid. In a body that is being recorded
 * (<rondo/tree.h>) it is refused for all generators, and the body is not recorded. Errors:
 * CAPTURE_REFUSED/UNSUPPORTED_CALL, INVALID_ARGUMENT, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_seed(rondo_generator *generator, uint64_t seed);

/* Get and restore the state. After restoring a state, the same runs or launches draw the same numbers again. Both are
 * refused like rondo_generator_seed, because the numbers that a capture has drawn are not part of the state yet. Errors
 * as there; INVALID_ARGUMENT/OUT_OF_RANGE for an offset that is not a multiple of 4. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_get_state(const rondo_generator *generator,
                                                                rondo_generator_state *out_state);
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_set_state(rondo_generator *generator,
                                                                const rondo_generator_state *state);

/* Filling --------------------------------------------------------------------------------------------------------- */

/* Fills `count` floats at dst with uniformly distributed numbers low <= x < high; enqueued or captured. For element i,
 * u is the upper 24 bits of word i % 4 of rondo_philox(seed, i / 4, offset), as a multiple of 2^-24 below 1. The
 * element is u * (high - low) + low, with each step rounded to a float; a result that is rounded to `high` becomes
 * `low`. With low = high, every element is low. Reserves 4 numbers, whatever the count. The first call for a generator
 * creates its kernel, which on CUDA needs NVRTC and waits for the device's work. Errors: INVALID_ARGUMENT (NULL,
 * OTHER_DEVICE; BAD_SIZE: no elements, or more than 2^48; OUT_OF_RANGE: low is above high, not finite, or high - low is
 * not a finite float), those of rondo_generator_reserve, rondo_kernel_create and rondo_launch. */
RONDO_API RONDO_MUST_USE rondo_status rondo_random_uniform(rondo_generator *generator, rondo_stream *stream, float *dst,
                                                           size_t count, float low, float high);

/* Kernels that draw ------------------------------------------------------------------------------------------------
 * A kernel receives its reservation as three parameters, RONDO_RANDOM_PARAMETERS, with the arguments
 * RONDO_RANDOM_ARGS(random):
 *
 *   RONDO_TRY(rondo_generator_reserve(generator, stream, 4, &random));
 *   RONDO_TRY(rondo_launch(stream, dropout, grid, RONDO_ARGS(&x, &y, RONDO_RANDOM_ARGS(random))));
 *
 * The kernel begins with rondo_random_begin. Use each reservation for one launch. */

/* A reservation. In eager work, `cells` is NULL, and seed and offset are the generator's. In a recording, the cells
 * contain {seed, offset}, and `offset` is added to that offset. */
typedef struct rondo_random {
  const uint64_t *cells;
  uint64_t seed, offset;
} rondo_random;

#define RONDO_RANDOM_PARAMETERS RONDO_READS, RONDO_SCALAR(uint64_t), RONDO_SCALAR(uint64_t)
#define RONDO_RANDOM_ARGS(random) &(random).cells, &(random).seed, &(random).offset

/* Reserves `increment` numbers of every subsequence, rounded up to a multiple of 4, for the next launch on the stream.
 * `increment` is the maximum that one subsequence needs. In eager work it does not allocate or lock. Errors:
 * INVALID_ARGUMENT (NULL, OTHER_DEVICE, BAD_SIZE: 0, or over 2^62); while the stream captures also CAPTURE_INVALID,
 * OUT_OF_MEMORY, LIMIT_EXCEEDED (the graph needs over 2^62), INVALID_STATE/STILL_IN_USE (the graph belongs to a child
 * node, and counts in the parent graph); IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_reserve(rondo_generator *generator, rondo_stream *stream,
                                                              uint64_t increment, rondo_random *out_random);

/* The same for a node that is added to the graph explicitly. Thread-compatible with respect to the graph. Errors as
 * rondo_generator_reserve. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_reserve_in_graph(rondo_generator *generator, rondo_graph *graph,
                                                                       uint64_t increment, rondo_random *out_random);

/* By how much one launch of an exec of the graph advances the generator; 0 if the graph does not draw from it.
 * Thread-compatible with respect to the graph. Errors: INVALID_ARGUMENT, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_random_increment(const rondo_graph *graph,
                                                                       const rondo_generator *generator,
                                                                       uint64_t *out_increment);

/* For CPU functions of kernels: returns the seed and offset to draw from. `args` points to the arguments of
 * RONDO_RANDOM_ARGS in the kernel's args. */
static inline rondo_random rondo_random_begin(void *const *args) {
  rondo_random random;
  random.cells = *(const uint64_t *const *)args[0];
  random.seed = *(const uint64_t *)args[1];
  random.offset = *(const uint64_t *)args[2];
  if (random.cells != NULL) {
    random.seed = random.cells[0];
    random.offset += random.cells[1];
  }
  return random;
}

/* Four numbers of 32 bits. */
typedef struct rondo_random4 {
  uint32_t x[4];
} rondo_random4;

/* Philox4x32-10 with the key `seed` and the counter {offset / 4, subsequence}, 64 bits each, lower words first. Returns
 * the four numbers of the subsequence that begin at offset - offset % 4. For a multiple of 4 these are the numbers that
 * curand_init(seed, subsequence, offset) and curand4 give. A pure function: any thread and kernels may call it. */
static inline rondo_random4 rondo_philox(uint64_t seed, uint64_t subsequence, uint64_t offset) {
  rondo_random4 c = {
      {(uint32_t)(offset / 4), (uint32_t)(offset >> 34), (uint32_t)subsequence, (uint32_t)(subsequence >> 32)}};
  uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t left = (uint64_t)c.x[0] * 0xD2511F53u, right = (uint64_t)c.x[2] * 0xCD9E8D57u;
    c.x[0] = (uint32_t)(right >> 32) ^ c.x[1] ^ key0;
    c.x[1] = (uint32_t)right;
    c.x[2] = (uint32_t)(left >> 32) ^ c.x[3] ^ key1;
    c.x[3] = (uint32_t)left;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

/* CUDA C source of the same three as __device__ functions: rondo_random_begin(cells, seed, offset), rondo_random4 and
 * rondo_philox. Prepend it to the source of a kernel. A static string. */
RONDO_API const char *rondo_random_cuda_source(void);

RONDO_EXTERN_C_END

#endif
