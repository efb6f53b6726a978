/* SPDX-License-Identifier: MIT
 * Feeds bytes to the safetensors reader. A set that it accepts must be sorted, with unique names, and each tensor must
 * have the bytes of its shape, all readable. A refusal must leave nothing and give a reason.
 */
#include <rondo/weights.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_target.h"

static volatile uint8_t sink; /* every byte is read */

static void require(int holds) {
  if (!holds) abort();
}

static size_t elements(const rondo_weight *weight) {
  size_t count = 1;
  for (size_t i = 0; i < weight->rank; i++) count *= weight->shape[i];
  return count;
}

static void check_set(const rondo_weights *weights) {
  rondo_weight weight;
  rondo_weight found;
  const char *before = NULL;
  for (size_t i = 0; rondo_weights_at(weights, i, &weight) == RONDO_OK; i++) {
    require(before == NULL || strcmp(before, weight.name) < 0);
    require(weight.bytes == elements(&weight) * rondo_type_bytes(weight.type));
    for (size_t k = 0; k < weight.bytes; k++) sink = ((const uint8_t *)weight.data)[k];
    require(rondo_weights_find(weights, weight.name, &found) == RONDO_OK && found.data == weight.data);
    before = weight.name;
  }
}

/* About half of the names. */
static bool is_wanted(const char *name, void *user) {
  (void)user;
  return strlen(name) % 2 == 0;
}

/* A file that fails with fewer tensors fails with all; a file that is accepted has exactly the requested tensors. */
static void check_selection(const uint8_t *data, size_t size, bool whole_is_taken) {
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .wanted = is_wanted};
  rondo_weights *weights = NULL;
  rondo_weight weight;
  const rondo_status status = rondo_weights_parse(data, size, &options, &weights);
  require(status == RONDO_OK || !whole_is_taken);
  if (status == RONDO_OK) check_set(weights);
  for (size_t i = 0; status == RONDO_OK && rondo_weights_at(weights, i, &weight) == RONDO_OK; i++) {
    require(is_wanted(weight.name, NULL));
  }
  rondo_weights_destroy(weights);
}

/* Tensors that rules leave out may be damaged, so the file may be accepted with them alone. */
static void check_rules(const uint8_t *data, size_t size) {
  static const rondo_weight_rule rules[] = {
      {.from = "a*.b", .to = "*", .transpose = true}, {.from = "*.*.w"}, {.from = "m.**", .to = "**.x"}};
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .rules = rules, .rule_count = 3};
  rondo_weights *weights = NULL;
  if (rondo_weights_parse(data, size, &options, &weights) == RONDO_OK) check_set(weights);
  rondo_weights_destroy(weights);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rondo_weights *weights = NULL;
  const rondo_status status = rondo_weights_parse(data, size, NULL, &weights);
  if (status == RONDO_OK) {
    check_set(weights);
  } else {
    require(weights == NULL && rondo_last_error()->message[0] != '\0');
  }
  rondo_weights_destroy(weights);
  check_selection(data, size, status == RONDO_OK);
  check_rules(data, size);
  return 0;
}
