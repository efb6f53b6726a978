/* SPDX-License-Identifier: MIT
 * Uses the component rondo-tensor as it is installed: a program squares numbers, in a recorded run.
 */
#include <rondo/operators.h>
#include <rondo/program.h>
#include <stdio.h>

enum { COUNT = 4 };

static rondo_status add_operators(rondo_program *program) {
  const size_t shape[] = {COUNT};
  rondo_value x, y;
  rondo_status status = rondo_program_input(program, "x", RONDO_F32, shape, 1, &x);
  if (status == RONDO_OK) status = rondo_op_mul(program, x, x, &y);
  return status == RONDO_OK ? rondo_program_output(program, "y", y) : status;
}

static rondo_status square(rondo_device *device, float values[COUNT]) {
  const size_t bytes = COUNT * sizeof *values;
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_status status = rondo_program_create(NULL, &program);
  if (status == RONDO_OK) status = add_operators(program);
  if (status == RONDO_OK) status = rondo_compile(program, device, NULL, &compiled);
  if (status == RONDO_OK) status = rondo_compiled_write(compiled, "x", values, bytes);
  if (status == RONDO_OK) status = rondo_compiled_run(compiled);
  if (status == RONDO_OK) status = rondo_compiled_read(compiled, "y", values, bytes);
  const rondo_status destroyed = rondo_compiled_destroy(compiled);
  rondo_program_destroy(program);
  return status != RONDO_OK ? status : destroyed;
}

int main(void) {
  float values[COUNT] = {1, 2, 3, 4};
  rondo_device *device = NULL;
  rondo_status status = rondo_device_open("cpu", NULL, &device);
  if (status == RONDO_OK) status = square(device, values);
  if (status != RONDO_OK) fprintf(stderr, "%s\n", rondo_last_error()->message);
  if (device != NULL && rondo_device_close(device) != RONDO_OK) return 1;
  const int right = status == RONDO_OK && values[1] == 4 && values[COUNT - 1] == 16;
  printf("%s %s\n", rondo_version(), right ? "ok" : "wrong");
  return right ? 0 : 1;
}
