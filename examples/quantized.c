/* SPDX-License-Identifier: MIT
 * A weight of 4 bits: quantised on the host, multiplied in a program, and compared with the product of the weight as it
 * was.
 *
 *   quantized [DEVICE]
 * Prints: 18432 bytes instead of 131072, and the result is off by less than 10 %
 */
#include <math.h>
#include <rondo/rondo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 128, COLUMNS = 256, GROUP = 64, BYTES = COLUMNS / 2, GROUPS = COLUMNS / GROUP };

static float weight[ROWS][COLUMNS], scales[ROWS][GROUPS], x[COLUMNS], y[ROWS];
static uint8_t values[ROWS][BYTES];

static void check(rondo_status status) {
  if (status != RONDO_OK) fprintf(stderr, "%s\n", rondo_last_error()->message);
  if (status != RONDO_OK) exit(1);
}

/* Of all results together, relative to their size. */
static double difference(void) {
  double off = 0, all = 0;
  for (size_t i = 0; i < ROWS; i++) {
    double right = 0;
    for (size_t k = 0; k < COLUMNS; k++) right += (double)weight[i][k] * (double)x[k];
    off += pow((double)y[i] - right, 2);
    all += right * right;
  }
  return sqrt(off / all);
}

static rondo_compiled *compile(rondo_device *device, const rondo_quantized_options *options) {
  const rondo_state_options frozen = {RONDO_STATE_OPTIONS_INIT, .frozen = true};
  rondo_program *program;
  rondo_compiled *compiled;
  rondo_value in, in_values, in_scales, out;
  check(rondo_program_create(NULL, &program));
  check(rondo_program_input(program, "x", RONDO_F32, (size_t[]){1, COLUMNS}, 2, &in));
  check(rondo_program_state(program, "weight", RONDO_U8, (size_t[]){ROWS, BYTES}, 2, &in_values));
  check(rondo_program_state_with(program, "scales", RONDO_F32, (size_t[]){ROWS, GROUPS}, 2, &frozen, &in_scales));
  check(rondo_op_matmul_quantized(program, in, in_values, in_scales, (rondo_value){0}, options, &out));
  check(rondo_program_output(program, "y", out));
  check(rondo_compile(program, device, NULL, &compiled));
  rondo_program_destroy(program);
  return compiled;
}

int main(int argc, char **argv) {
  const rondo_quantized_options options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = 4, .group = GROUP};
  rondo_device *device;
  check(rondo_device_open(argc > 1 ? argv[1] : "cpu", NULL, &device));
  for (size_t i = 0; i < ROWS * COLUMNS; i++) weight[i / COLUMNS][i % COLUMNS] = sinf((float)(i * i % 1013));
  for (size_t k = 0; k < COLUMNS; k++) x[k] = cosf((float)(k * k % 509));
  check(rondo_quantize(weight[0], ROWS, COLUMNS, &options, values, scales[0], NULL));

  rondo_compiled *compiled = compile(device, &options);
  check(rondo_compiled_write(compiled, "weight", values, sizeof values));
  check(rondo_compiled_write(compiled, "scales", scales, sizeof scales));
  check(rondo_compiled_write(compiled, "x", x, sizeof x));
  check(rondo_compiled_run(compiled));
  check(rondo_compiled_read(compiled, "y", y, sizeof y));
  printf("%zu bytes instead of %zu, and the result is off by %s than 10 %%\n", sizeof values + sizeof scales,
         sizeof weight, difference() < 0.1 ? "less" : "more");
  check(rondo_compiled_destroy(compiled));
  check(rondo_device_close(device));
}
