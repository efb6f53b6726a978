/* SPDX-License-Identifier: MIT
 * The functions of <rondo/random.h> for kernels, in CUDA C: the same bits.
 */
#ifndef RONDO_RANDOM_CUH
#define RONDO_RANDOM_CUH

struct rondo_random {
  const unsigned long long *cells;
  unsigned long long seed, offset;
};

struct rondo_random4 {
  unsigned x[4];
};

__device__ inline rondo_random rondo_random_begin(const unsigned long long *cells, unsigned long long seed,
                                                  unsigned long long offset) {
  rondo_random random = {cells, seed, offset};
  if (cells != 0) {
    random.seed = cells[0];
    random.offset += cells[1];
  }
  return random;
}

__device__ inline rondo_random4 rondo_philox(unsigned long long seed, unsigned long long subsequence,
                                             unsigned long long offset) {
  rondo_random4 c = {
      {(unsigned)(offset / 4), (unsigned)(offset >> 34), (unsigned)subsequence, (unsigned)(subsequence >> 32)}};
  unsigned key0 = (unsigned)seed, key1 = (unsigned)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const unsigned long long left = (unsigned long long)c.x[0] * 0xD2511F53u;
    const unsigned long long right = (unsigned long long)c.x[2] * 0xCD9E8D57u;
    c.x[0] = (unsigned)(right >> 32) ^ c.x[1] ^ key0;
    c.x[1] = (unsigned)right;
    c.x[2] = (unsigned)(left >> 32) ^ c.x[3] ^ key1;
    c.x[3] = (unsigned)left;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

#endif
