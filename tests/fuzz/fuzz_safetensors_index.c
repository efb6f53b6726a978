/* SPDX-License-Identifier: MIT
 * Feeds bytes to the reader of indexes of safetensors files. No file of an index exists, so one that lists a requested
 * tensor is refused; without a requested tensor, an index that is accepted gives an empty set. A refusal must leave
 * nothing and give a reason.
 */
#include <rondo/weights.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_target.h"
#include "tensor/files/safetensors_index.h"

static void require(bool holds) {
  if (!holds) abort();
}

static bool is_wanted(const char *name, void *user) {
  (void)name;
  return *(const bool *)user;
}

static rondo_status load(unsigned char *bytes, size_t count, bool wants) {
  static const rondo_weight_rule rules[] = {{.from = "*.b*", .to = "*.*"}, {.from = "m.**", .to = "**.x"}};
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .wanted = is_wanted, .user = &wants,
                                         .rules = rules, .rule_count = 2};
  const rondo_file_mapping mapping = {.bytes = bytes, .count = count};
  rondo_weights *weights = NULL;
  rondo_weight weight;
  if (rondo_weights_create(NULL, &weights) != RONDO_OK) abort();
  const rondo_status status = rondo_safetensors_load_index("/dev/null/index", &mapping, &options, weights);
  require(status == RONDO_OK || rondo_last_error()->message[0] != '\0');
  require(rondo_weights_at(weights, 0, &weight) == RONDO_NOT_FOUND);
  rondo_weights_destroy(weights);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unsigned char *bytes = malloc(size + 1); /* a mapping is not const */
  if (bytes == NULL) abort();
  memcpy(bytes, data, size);
  if (rondo_safetensors_is_index(bytes, size)) {
    const rondo_status none = load(bytes, size, false), all = load(bytes, size, true);
    require(none == RONDO_OK || all == none);
  }
  free(bytes);
  return 0;
}
