/* SPDX-License-Identifier: MIT
 * Random numbers that a replay draws as a plain run would (TR-13).
 *
 * A generator is a seed and an offset on the host. Numbers come from Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011,
 * "Parallel random numbers: as easy as 1, 2, 3"), a function of seed, subsequence and offset without a state to update:
 * rondo_philox below is that function. Who draws reserves a range of offsets and gives each of its elements, or groups
 * of them, a subsequence of its own. Ranges are multiples of 4, as PyTorch's are, because one call gives four numbers.
 *
 * - Un-recorded, a reservation takes the generator's offset and moves it on.
 * - While the stream captures, nothing is taken: the reservation is a place in the graph, counted from 0 up, and the
 *   graph keeps how much it needs of each generator in all. A kernel adds its place to what it finds in the cells, two
 *   words of device memory: seed and offset.
 * - A launch of an exec writes the generator's seed and offset, as they are at the call, to the cells, in the stream's
 *   order and behind earlier launches of the exec on any stream, and moves the generator on by what the graph needs.
 *   It neither waits for the host nor allocates nor locks.
 * So one seed followed by any mix of plain runs, recordings and launches gives the same numbers as plain runs alone;
 * recording draws nothing.
 *
 * Graphs and execs. Several generators may stand in a graph. The cells that a kernel is given while capturing stand for
 * the generator; each exec, and each child graph in it, has cells of its own in their place. So execs of one graph
 * and of its clones, and graphs embedded twice, draw different numbers and may run at once. Instantiating finds the
 * addresses of cells in pointers that kernels declare (RONDO_READS), and as words of their other parameters; not in
 * memory, where they must not be kept. A node that is given cells of a generator of which its graph reserves nothing is
 * refused when it is made or changed (INVALID_ARGUMENT/FOREIGN_ADDRESS; a library's when it is instantiated,
 * INVALID_GRAPH). So is instantiating a graph that is bound to what the driver captured (UNSUPPORTED/FOREIGN_WORK,
 * <rondo/capture.h>); and rondo_exec_set_params takes cells in declared pointers alone (UPDATE_REFUSED/
 * PARAMETERS_CHANGED). What was reserved while capturing means nothing to a launch that is not recorded. An exec that
 * is launched into a capture becomes a child graph and counts there. Removing a node leaves its place reserved. An
 * update takes the new graph's needs over. Captures that use one generator at once do not disturb each other.
 * Generators live as long as the graphs and execs that draw from them.
 *
 * Numbers are the same on every device, for every cut of a grid, recorded or not. PyTorch's CUDA generator has the same
 * function, key and counter, and moves on by the same rule in multiples of 4, but gives subsequences to threads of a
 * grid that depends on the GPU: its sequences of floats are not reproduced bit by bit.
 *
 * Threads: a generator is thread-safe, but for seeding and setting the state, which must not be done while another
 * thread draws from it. Of ranges that are drawn at once from several threads each is drawn once.
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
  uint64_t seed;    /* any; the offset begins at 0 */
} rondo_generator_options;
#define RONDO_GENERATOR_OPTIONS_INIT .struct_size = sizeof(rondo_generator_options)

/* Makes a generator of the device, with cells in its memory. options may be NULL. The caller destroys it. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, IN_CALLBACK. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_create(rondo_device *device,
                                                             const rondo_generator_options *options,
                                                             rondo_generator **out_generator);

/* Gives the caller's hold up; graphs and execs that draw from it keep it, and go on from where it is. NULL is fine. */
RONDO_API void rondo_generator_destroy(rondo_generator *generator);

/* What a generator is made of: the numbers drawn from here on depend on nothing else. */
typedef struct rondo_generator_state {
  uint32_t struct_size; /* RONDO_GENERATOR_STATE_INIT sets it; 0 means the library's own */
  uint32_t reserved;
  uint64_t seed;
  uint64_t offset; /* a multiple of 4 */
} rondo_generator_state;
#define RONDO_GENERATOR_STATE_INIT .struct_size = sizeof(rondo_generator_state)

/* Sets the seed, and the offset to 0, for what is drawn from now on; work and launches that are queued already keep
 * what they took. Refused while a capture goes on that has drawn from the generator, or that this thread began on the
 * generator's device and not RELAXED: a replay would not repeat it. That leaves the capture valid. In a body that is
 * being recorded (<rondo/tree.h>) it is refused for all generators, and the recording is given up. Errors:
 * CAPTURE_REFUSED/UNSUPPORTED_CALL, INVALID_ARGUMENT, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_seed(rondo_generator *generator, uint64_t seed);

/* The state now, to come back to, and coming back: numbers that were drawn from a state are drawn again from it, by the
 * same runs or launches. Refused as rondo_generator_seed, getting too: what a capture has drawn is in no state yet.
 * Errors as there; INVALID_ARGUMENT/OUT_OF_RANGE for an offset that is no multiple of 4. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_get_state(const rondo_generator *generator,
                                                                rondo_generator_state *out_state);
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_set_state(rondo_generator *generator,
                                                                const rondo_generator_state *state);

/* Filling --------------------------------------------------------------------------------------------------------- */

/* Queues or captures: fills `count` floats at dst with numbers evenly spread over low <= x < high. Element i has the
 * upper 24 bits of word i % 4 of rondo_philox(seed, i / 4, offset) as u, a multiple of 2^-24 below 1, and is u * (high
 * - low) + low with each step rounded to a float; what rounding brings to `high` is `low`. low = high fills with that.
 * Reserves 4, whatever the count. The first call for a generator makes its kernel, which on CUDA needs NVRTC and waits
 * for what the device runs. Errors: INVALID_ARGUMENT (NULL, OTHER_DEVICE; BAD_SIZE: no elements, or more than 2^48;
 * OUT_OF_RANGE: low over high, not finite, or further apart than a float can say), those of rondo_generator_reserve,
 * rondo_kernel_create and rondo_launch. */
RONDO_API RONDO_MUST_USE rondo_status rondo_random_uniform(rondo_generator *generator, rondo_stream *stream, float *dst,
                                                           size_t count, float low, float high);

/* Kernels that draw ------------------------------------------------------------------------------------------------
 * A kernel takes what it may draw as three parameters, RONDO_RANDOM_PARAMETERS, with the arguments
 * RONDO_RANDOM_ARGS(random) among its others, in this order:
 *
 *   RONDO_TRY(rondo_generator_reserve(generator, stream, 4, &random));
 *   RONDO_TRY(rondo_launch(stream, dropout, grid, RONDO_ARGS(&x, &y, RONDO_RANDOM_ARGS(random))));
 *
 * and begins with rondo_random_begin. One launch for one reservation. */

/* What a kernel draws from. Un-recorded, `cells` is NULL, and seed and offset are the generator's. Recorded, the cells
 * have them: {seed, offset}, to whose offset `offset` is added. */
typedef struct rondo_random {
  const uint64_t *cells;
  uint64_t seed, offset;
} rondo_random;

#define RONDO_RANDOM_PARAMETERS RONDO_READS, RONDO_SCALAR(uint64_t), RONDO_SCALAR(uint64_t)
#define RONDO_RANDOM_ARGS(random) &(random).cells, &(random).seed, &(random).offset

/* Reserves, for what is launched next on the stream, `increment` numbers of every subsequence, rounded up to a multiple
 * of 4: what one subsequence needs at most. Does not allocate or lock un-recorded. Errors: INVALID_ARGUMENT (NULL,
 * OTHER_DEVICE, BAD_SIZE: 0, or over 2^62); while the stream captures also CAPTURE_INVALID, OUT_OF_MEMORY,
 * LIMIT_EXCEEDED (the graph needs over 2^62), INVALID_STATE/STILL_IN_USE (the graph is a child node's, and is counted
 * in the one around); IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_reserve(rondo_generator *generator, rondo_stream *stream,
                                                              uint64_t increment, rondo_random *out_random);

/* The same for a node that is added to the graph by hand; as if captured. Thread-compatible with respect to the graph.
 * Errors as rondo_generator_reserve. */
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_reserve_in_graph(rondo_generator *generator, rondo_graph *graph,
                                                                       uint64_t increment, rondo_random *out_random);

/* How far one launch of an exec of the graph moves the generator on; 0 when the graph does not draw from it.
 * Thread-compatible with respect to the graph. Errors: INVALID_ARGUMENT, IN_CALLBACK. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_random_increment(const rondo_graph *graph,
                                                                       const rondo_generator *generator,
                                                                       uint64_t *out_increment);

/* In a kernel's CPU function: the seed and offset to draw from; args + i are those of RONDO_RANDOM_ARGS. */
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

/* Philox4x32-10 with the key `seed` and the counter {offset / 4, subsequence}, lower words first, 64 bits each: the
 * numbers offset - offset % 4 up to 3 more of that subsequence, as curand_init(seed, subsequence, offset) and
 * curand4 give them for a multiple of 4. A pure function; any thread, also in kernels. */
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

/* CUDA C with the same three: rondo_random_begin(cells, seed, offset), rondo_random4 and rondo_philox, as __device__
 * functions; to be put in front of a kernel's source. Static. */
RONDO_API const char *rondo_random_cuda_source(void);

RONDO_EXTERN_C_END

#endif
