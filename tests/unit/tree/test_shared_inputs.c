/* SPDX-License-Identifier: MIT
 * Inputs that share bytes, one of which is written (TR-6): random inputs, compared with a check of each pair.
 */
#include "support/rondo_test.h"
#include "tree/call_inputs.h"
#include "tree/tree_internal.h"

enum { MOST = 12, ROUNDS = 20000, SPAN = 64 };

static uint32_t draw(uint32_t *seed, uint32_t below) {
  *seed = *seed * 1664525 + 1013904223;
  return (*seed >> 8) % below;
}

static bool overlaps(const rondo_resolved_input *a, const rondo_resolved_input *b) {
  return a->bytes > 0 && b->bytes > 0 && a->address < b->address + b->bytes && b->address < a->address + a->bytes;
}

static bool are_written_shared(const rondo_resolved_input *inputs, size_t count) {
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < count; k++) {
      const rondo_resolved_input *a = &inputs[i], *b = &inputs[k];
      if (i != k && a->role == RONDO_ROLE_MOVING && b->role <= RONDO_ROLE_MANAGED && (a->is_mutated || b->is_mutated) &&
          overlaps(a, b))
        return true;
    }
  return false;
}

DEVICE_TEST(test_tr6_as_by_comparing_each_with_each) {
  static char memory[SPAN + 16];
  uint32_t seed = 5, order[MOST] = {0}, found = 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    rondo_resolved_input inputs[MOST] = {{0}};
    const uint32_t count = 1 + draw(&seed, MOST);
    const rondo_function function = {.has_written = true, .options = {.input_count = count}, .by_address = order};
    for (uint32_t i = 0; i < count; i++) {
      order[i] = i;
      inputs[i] = (rondo_resolved_input){.role = (rondo_input_role)(RONDO_ROLE_MOVING + draw(&seed, 5)),
                                         .is_mutated = draw(&seed, 3) == 0,
                                         .address = memory + draw(&seed, SPAN),
                                         .bytes = draw(&seed, 7)};
    }
    const bool wanted = are_written_shared(inputs, count);
    for (int again = 0; again < 2; again++)
      assert_int_equal(rondo_inputs_are_written_shared(&function, inputs), wanted);
    found += wanted;
  }
  assert_true(found > ROUNDS / 10 && found < ROUNDS - ROUNDS / 10);
}
