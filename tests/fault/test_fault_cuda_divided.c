/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, and every host allocation, fail while a program is divided between a GPU and a
 * CPU device, compiled, written, run and read, and another program shares with it (SE-12). Either an error is returned
 * or the numbers are right. Nothing is left in the driver or in host memory, and nothing is misused.
 */
#include "fault/fault_cuda_sweep.h"

enum { ROWS = 4, WIDTH = 8, IDS = 6, CLASSES = 3, STEPS = 3, SCORES = ROWS * CLASSES };

static test_allocator allocator;
static float scores[STEPS][SCORES]; /* without a failure */

static struct {
  rondo_device *devices[2];
  rondo_program *program;
  rondo_divided *divided, *sharer;
  float scores[STEPS][SCORES];
} work;

static rondo_status build(void) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "small", .allocator = &allocator.table};
  rondo_value ids, table, weight, y;
  TRY(rondo_program_create(&options, &work.program));
  TRY(rondo_program_input(work.program, "ids", RONDO_I32, (const size_t[]){ROWS}, 1, &ids));
  TRY(rondo_program_state(work.program, "table", RONDO_F32, (const size_t[]){IDS, WIDTH}, 2, &table));
  TRY(rondo_program_state(work.program, "weight", RONDO_F32, (const size_t[]){WIDTH, CLASSES}, 2, &weight));
  TRY(rondo_op_embedding(work.program, table, ids, &y));
  TRY(rondo_op_matmul(work.program, y, weight, (rondo_value){0}, &y));
  TRY(rondo_program_output(work.program, "scores", y));
  return rondo_program_place(work.program, table, 1);
}

static rondo_status fill(rondo_divided *divided) {
  float table[IDS * WIDTH], weight[WIDTH * CLASSES];
  for (int i = 0; i < IDS * WIDTH; i++) table[i] = (float)(i % 7) - 3;
  for (int i = 0; i < WIDTH * CLASSES; i++) weight[i] = (float)(i % 5) - 2;
  TRY(rondo_divided_write(divided, "table", table, sizeof table));
  return rondo_divided_write(divided, "weight", weight, sizeof weight);
}

static rondo_status step(rondo_divided *divided, int number) {
  const int32_t ids[ROWS] = {1, 5, 3, number};
  TRY(rondo_divided_write(divided, "ids", ids, sizeof ids));
  TRY(number == 1 ? rondo_divided_run_eager(divided) : rondo_divided_run(divided));
  return rondo_divided_read(divided, "scores", work.scores[number], sizeof work.scores[number]);
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table, .workers = 1};
  rondo_divide_options how = {RONDO_DIVIDE_OPTIONS_INIT};
  TRY(rondo_device_open(device, &options, &work.devices[0]));
  TRY(rondo_device_open("cpu:1", &options, &work.devices[1]));
  TRY(build());
  TRY(rondo_compile_divided(work.program, work.devices, 2, &how, &work.divided));
  TRY(fill(work.divided));
  for (int i = 0; i < 2; i++) TRY(step(work.divided, i));
  how.share = work.divided;
  TRY(rondo_compile_divided(work.program, work.devices, 2, &how, &work.sharer));
  return step(work.sharer, 2);
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status = rondo_divided_destroy(work.divided);
  status = rondo_divided_destroy(work.sharer);
  rondo_program_destroy(work.program);
  for (int i = 0; i < 2; i++) status = rondo_device_close(work.devices[i]);
  (void)status;
}

static void assert_whole(void) { memcpy(scores, work.scores, sizeof scores); }

/* A GPU rounds a product differently. */
static void check(const fault_failure *of, rondo_status status) {
  fault_work_assert_clean(of);
  for (int i = 0; status == RONDO_OK && i < STEPS; i++) assert_near(work.scores[i], scores[i], SCORES, 1e-5f);
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .check = check,
                            .least = 100,
                            .other = "cpu",
                            .memory = &allocator};
