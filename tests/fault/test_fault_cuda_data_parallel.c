/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, by Rondo or by NCCL, and every host allocation fail while a data-parallel program
 * is compiled and run, with sharded states, a divided table and accumulated gradients, and a checkpoint is gathered
 * (MM-3, MM-4). Either an error is returned or the weights are right. Nothing is left in the driver, in NCCL or in host
 * memory, and nothing is misused. The group has one rank, so nobody waits for a rank that failed.
 */
#include "fake_cuda/fake_nccl.h"
#include "fault/fault_cuda_sweep.h"

enum { ROWS = 4, WORDS = 6, WIDTH = 8, RUNS = 2 };

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_communicator *communicator;
  rondo_program *program;
  rondo_compiled *compiled;
  rondo_weights *checkpoint;
  float weights[WIDTH * WORDS];
} work;

static rondo_status add_model(rondo_value *loss) {
  const size_t rows = ROWS, table[] = {WORDS, WIDTH}, matrix[] = {WIDTH, WORDS};
  const rondo_state_options divided = {RONDO_STATE_OPTIONS_INIT, .shard_rows = true};
  rondo_value tokens, labels, weights, x;
  TRY(rondo_program_input(work.program, "tokens", RONDO_I32, &rows, 1, &tokens));
  TRY(rondo_program_input(work.program, "labels", RONDO_I32, &rows, 1, &labels));
  TRY(rondo_program_state_with(work.program, "table", RONDO_F32, table, 2, &divided, &x));
  TRY(rondo_program_state(work.program, "weights", RONDO_F32, matrix, 2, &weights));
  TRY(rondo_op_embedding(work.program, x, tokens, &x));
  TRY(rondo_op_matmul(work.program, x, weights, (rondo_value){0}, &x));
  TRY(rondo_op_cross_entropy(work.program, x, labels, loss));
  return rondo_program_output(work.program, "loss", *loss);
}

static rondo_status make_program(void) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &allocator.table};
  const rondo_data_parallel_options parallel = {RONDO_DATA_PARALLEL_OPTIONS_INIT, .shard_states = true};
  const rondo_gradient_options gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = RUNS};
  rondo_value loss, rate;
  TRY(rondo_communicator_create_all(&work.device, 1, NULL, &work.communicator));
  TRY(rondo_program_create(&options, &work.program));
  TRY(rondo_program_data_parallel(work.program, work.communicator, &parallel));
  TRY(add_model(&loss));
  TRY(rondo_program_cell(work.program, "rate", 0.1f, &rate));
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .gradients = &gradients};
  return rondo_program_adam(work.program, loss, &adam);
}

static rondo_status run(const char *device) {
  float start[WIDTH * WORDS];
  memset(&work, 0, sizeof work);
  for (int i = 0; i < WIDTH * WORDS; i++) start[i] = (float)(i % 7) / 8;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table};
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(make_program());
  TRY(rondo_compile(work.program, work.device, NULL, &work.compiled));
  TRY(rondo_compiled_write(work.compiled, "table", start, sizeof start));
  TRY(rondo_compiled_write(work.compiled, "weights", start, sizeof start));
  TRY(rondo_compiled_broadcast(work.compiled, 0));
  for (int i = 0; i < RUNS; i++) TRY(rondo_compiled_run(work.compiled));
  TRY(rondo_weights_create(&allocator.table, &work.checkpoint));
  TRY(rondo_checkpoint_gather(work.checkpoint, work.compiled));
  return rondo_compiled_read(work.compiled, "weights", work.weights, sizeof work.weights);
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_weights_destroy(work.checkpoint);
  rondo_status status = rondo_compiled_destroy(work.compiled);
  rondo_program_destroy(work.program);
  status = rondo_communicator_destroy(work.communicator);
  status = rondo_device_close(work.device);
  (void)status;
}

static void open_library(void) {
  assert_non_null(fake_nccl_get());
  tested.live = fake_nccl_get()->live;
}

static fault_work tested = {.open_library = open_library,
                            .run = run,
                            .tear_down = tear_down,
                            .results = work.weights,
                            .result_bytes = sizeof work.weights,
                            .library = "NCCL",
                            .least = 50,
                            .stride = 4, /* there are many calls */
                            .memory = &allocator};
