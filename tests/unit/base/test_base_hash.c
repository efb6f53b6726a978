/* SPDX-License-Identifier: MIT
 * The hash: its published results, how well it mixes, and that the incremental functions agree.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "support/rondo_test.h"

/* The first results of SplitMix64 from seed 0, as its authors' programs print them. */
UNIT_TEST(test_published_results) {
  assert_int_equal(rondo_hash_u64(0, 0), UINT64_C(0xe220a8397b1dcdaf));
  assert_int_equal(rondo_hash_u64(RONDO_HASH_START, 0), UINT64_C(0x6e789e6aa1b965f4));
  assert_int_equal(rondo_hash_u64(2 * RONDO_HASH_START, 0), UINT64_C(0x06c45d188009454f));
}

UNIT_TEST(test_each_input_bit_flips_half_of_the_output) {
  enum { SAMPLES = 4096 };
  static unsigned flips[64][64];
  memset(flips, 0, sizeof flips);
  uint64_t seed = 1;
  for (int sample = 0; sample < SAMPLES; sample++) {
    const uint64_t value = seed = rondo_hash_u64(seed, 17);
    const uint64_t hash = rondo_hash_u64(RONDO_HASH_START, value);
    for (int in = 0; in < 64; in++) {
      const uint64_t changed = hash ^ rondo_hash_u64(RONDO_HASH_START, value ^ (UINT64_C(1) << in));
      for (int out = 0; out < 64; out++) flips[in][out] += (unsigned)(changed >> out & 1);
    }
  }
  for (int in = 0; in < 64; in++)
    for (int out = 0; out < 64; out++) assert_in_range(flips[in][out], SAMPLES * 45 / 100, SAMPLES * 55 / 100);
}

static int compare(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

UNIT_TEST(test_near_inputs_do_not_collide) {
  enum { COUNT = 100000 };
  static uint64_t hashes[2 * COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    char text[16];
    snprintf(text, sizeof text, "%zu", i);
    hashes[2 * i] = rondo_hash_text(RONDO_HASH_START, text);
    hashes[2 * i + 1] = rondo_hash_u64(RONDO_HASH_START, i);
  }
  qsort(hashes, 2 * COUNT, sizeof *hashes, compare);
  for (size_t i = 1; i < 2 * COUNT; i++) assert_int_not_equal(hashes[i - 1], hashes[i]);
}

UNIT_TEST(test_bytes_are_their_words_and_number) {
  const uint64_t words[] = {1, UINT64_C(0xfedcba9876543210), 3};
  uint64_t folded = RONDO_HASH_START;
  for (size_t i = 0; i < 3; i++) folded = rondo_hash_u64(folded, words[i]);
  folded = rondo_hash_u64(folded, sizeof words);
  assert_int_equal(rondo_hash_bytes(RONDO_HASH_START, words, sizeof words), folded);
}

UNIT_TEST(test_place_in_memory_does_not_matter) {
  unsigned char buffer[64 + 8];
  for (size_t count = 0; count <= 64; count++) {
    uint64_t first = 0;
    for (size_t shift = 0; shift < 8; shift++) {
      memset(buffer, 0xEE, sizeof buffer); /* what lies around does not matter either */
      for (size_t i = 0; i < count; i++) buffer[shift + i] = (unsigned char)(i * 7);
      const uint64_t hash = rondo_hash_bytes(5, buffer + shift, count);
      if (shift == 0) first = hash;
      assert_int_equal(hash, first);
    }
  }
}

UNIT_TEST(test_cuts_lengths_and_zeros_count) {
  const uint64_t ab_c = rondo_hash_text(rondo_hash_text(1, "ab"), "c");
  assert_int_not_equal(ab_c, rondo_hash_text(rondo_hash_text(1, "a"), "bc"));
  assert_int_not_equal(ab_c, rondo_hash_text(1, "abc"));
  assert_int_equal(rondo_hash_text(1, "abc"), rondo_hash_bytes(1, "abc", 3));
  assert_int_equal(rondo_hash_text(1, NULL), rondo_hash_text(1, ""));
  assert_int_equal(rondo_hash_bytes(1, NULL, 0), rondo_hash_text(1, ""));
  assert_int_not_equal(rondo_hash_text(1, ""), 1);
  const unsigned char zeros[32] = {0};
  for (size_t i = 0; i < 32; i++)
    for (size_t j = 0; j < i; j++) assert_int_not_equal(rondo_hash_bytes(0, zeros, i), rondo_hash_bytes(0, zeros, j));
}

UNIT_TEST(test_parts_give_the_hash_of_the_whole) {
  unsigned char bytes[40];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 37);
  for (size_t count = 0; count <= sizeof bytes; count++) {
    for (size_t cut = 0; cut <= count; cut += 8) {
      const uint64_t first = rondo_hash_part(5, bytes, cut), second = rondo_hash_part(first, bytes + cut, count - cut);
      assert_true(rondo_hash_u64(second, count) == rondo_hash_bytes(5, bytes, count));
    }
  }
}
