/* SPDX-License-Identifier: MIT
 * Feeds bytes to the reader of checkpoints. A set that it accepts must have the right format and checksum. A refusal
 * must leave nothing and give a reason. Sets that are not checkpoints are loaded into a program too, whose values must
 * be unchanged when that fails.
 */
#include <rondo/rondo.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_target.h"

static void require(int holds) {
  if (!holds) abort();
}

/* A program with a state "w" [2, 3] and a cell "rate". */
static rondo_compiled *compile(void) {
  rondo_device *device = NULL;
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value weight, rate, sum;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1};
  require(rondo_device_open("cpu", &options, &device) == RONDO_OK);
  require(rondo_program_create(NULL, &program) == RONDO_OK);
  require(rondo_program_state(program, "w", RONDO_F32, (size_t[]){2, 3}, 2, &weight) == RONDO_OK);
  require(rondo_program_cell(program, "rate", 1, &rate) == RONDO_OK);
  require(rondo_op_mul(program, weight, rate, &sum) == RONDO_OK);
  require(rondo_program_output(program, "product", sum) == RONDO_OK);
  require(rondo_compile(program, device, NULL, &compiled) == RONDO_OK);
  rondo_program_destroy(program);
  return compiled;
}

static void read_program(rondo_compiled *compiled, float out[7]) {
  require(rondo_compiled_read(compiled, "w", out, 6 * sizeof *out) == RONDO_OK);
  require(rondo_compiled_read(compiled, "rate", out + 6, sizeof *out) == RONDO_OK);
}

/* A tensor of the program's name, of a type or shape that sets pass over. */
static int has_other_form(const rondo_weights *set) {
  rondo_weight weight;
  return rondo_weights_find(set, "w", &weight) == RONDO_UNSUPPORTED ||
         rondo_weights_find(set, "rate", &weight) == RONDO_UNSUPPORTED;
}

static void try_apply(const rondo_weights *set) {
  static rondo_compiled *compiled; /* as long as the process */
  float before[7], after[7];
  rondo_weight weight, rate;
  if (compiled == NULL) compiled = compile();
  read_program(compiled, before);
  const rondo_status status = rondo_checkpoint_apply(set, compiled);
  read_program(compiled, after);
  if (status != RONDO_OK) {
    require(status == RONDO_INVALID_DATA || (status == RONDO_UNSUPPORTED && has_other_form(set)));
    require(memcmp(before, after, sizeof before) == 0);
    return;
  }
  require(rondo_weights_find(set, "w", &weight) == RONDO_OK && rondo_weights_find(set, "rate", &rate) == RONDO_OK);
  require(weight.bytes == 6 * sizeof *after && memcmp(weight.data, after, weight.bytes) == 0);
  require(rate.bytes == sizeof *after && memcmp(rate.data, after + 6, rate.bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rondo_weights *set = NULL;
  if (rondo_checkpoint_parse(data, size, NULL, &set) == RONDO_OK) {
    const char *form = rondo_weights_get_metadata(set, "rondo.checkpoint");
    require(form != NULL && strcmp(form, "1") == 0 && rondo_weights_get_metadata(set, "rondo.checksum") != NULL);
    try_apply(set);
  } else {
    require(set == NULL && rondo_last_error()->message[0] != '\0');
    if (rondo_weights_parse(data, size, NULL, &set) == RONDO_OK) try_apply(set);
  }
  rondo_weights_destroy(set);
  return 0;
}
