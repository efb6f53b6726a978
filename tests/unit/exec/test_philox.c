/* SPDX-License-Identifier: MIT
 * TR-13: rondo_philox is Philox4x32-10. The test has a separate implementation, written from the paper (Salmon et al.
 * 2011, section 3.3), which passes the known answers of Random123 (kat_vectors, "philox4x32 10"). rondo_philox agrees
 * with it for any seed, subsequence and offset.
 */
#include "support/rondo_test.h"

typedef struct philox_block {
  uint32_t counter[4], key[2];
} philox_block;

static uint32_t high_half(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }

/* One round: two products, whose halves are crossed over and mixed with the other words and the key. */
static philox_block one_round(philox_block in) {
  const uint32_t m0 = UINT32_C(0xD2511F53), m1 = UINT32_C(0xCD9E8D57);
  const uint32_t *c = in.counter, *k = in.key;
  return (philox_block){
      .counter = {high_half(m1, c[2]) ^ c[1] ^ k[0], m1 * c[2], high_half(m0, c[0]) ^ c[3] ^ k[1], m0 * c[0]},
      .key = {k[0] + UINT32_C(0x9E3779B9), k[1] + UINT32_C(0xBB67AE85)}};
}

static philox_block ten_rounds(philox_block block) {
  for (int i = 0; i < 10; i++) block = one_round(block);
  return block;
}

UNIT_TEST(test_tr13_known_answers) {
  static const struct {
    philox_block in;
    uint32_t out[4];
  } known[] = {
      {{{0, 0, 0, 0}, {0, 0}}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const philox_block out = ten_rounds(known[i].in);
    assert_memory_equal(out.counter, known[i].out, sizeof out.counter);
  }
}

static void assert_agrees(uint64_t seed, uint64_t subsequence, uint64_t offset) {
  const philox_block expected =
      ten_rounds((philox_block){.counter = {(uint32_t)(offset / 4), (uint32_t)(offset / 4 >> 32), (uint32_t)subsequence,
                                            (uint32_t)(subsequence >> 32)},
                                .key = {(uint32_t)seed, (uint32_t)(seed >> 32)}});
  const rondo_random4 actual = rondo_philox(seed, subsequence, offset);
  assert_memory_equal(actual.x, expected.counter, sizeof actual.x);
}

UNIT_TEST(test_tr13_the_counter_of_seed_subsequence_and_offset) {
  const rondo_random4 first = rondo_philox(0, 0, 0);
  assert_int_equal(first.x[0], 0x6627e8d5);
  uint64_t random = 1;
  for (int i = 0; i < 100000; i++) {
    const unsigned narrow = test_random_below(&random, 64);
    const uint64_t seed = test_random(&random) >> narrow, subsequence = test_random(&random) >> (63 - narrow);
    assert_agrees(seed, subsequence, test_random(&random) >> test_random_below(&random, 64));
  }
  const uint64_t ends[] = {0, 1, 3, 4, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 34, UINT64_MAX - 3, UINT64_MAX};
  const size_t count = sizeof ends / sizeof *ends;
  for (size_t i = 0; i < count * count * count; i++)
    assert_agrees(ends[i % count], ends[i / count % count], ends[i / count / count]);
}
