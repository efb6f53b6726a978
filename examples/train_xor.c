/* SPDX-License-Identifier: MIT
 * Trains a network with the whole step (forward, loss, backward, optimizer) recorded as one graph. The network learns
 * the exclusive or of two bits.
 *
 *   train_xor [DEVICE]
 *
 * Prints: 0 1 1 0 after 500 replayed steps
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <rondo/rondo.h>

#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

enum { CASES = 4, BITS = 2, HIDDEN = 8, ANSWERS = 2, STEPS = 500 };

/* Initial values must differ: with zeros, all units would learn the same. */
static void spread(float *values, size_t count) {
  for (size_t i = 0; i < count; i++) values[i] = (float)((i * 37 + 11) % 16) / 8 - 0.9375f;
}

/* The network and its training. Building a program needs no device. */
static rondo_status write_program(rondo_program **out) {
  rondo_program *program;
  rondo_value bits, answers, w1, b1, w2, b2, value, logits, loss, rate;
  TRY(rondo_program_create(NULL, &program));
  TRY(rondo_program_input(program, "bits", RONDO_F32, (size_t[]){CASES, BITS}, 2, &bits));
  TRY(rondo_program_input(program, "answers", RONDO_I32, (size_t[]){CASES}, 1, &answers));
  TRY(rondo_program_state(program, "w1", RONDO_F32, (size_t[]){BITS, HIDDEN}, 2, &w1));
  TRY(rondo_program_state(program, "b1", RONDO_F32, (size_t[]){HIDDEN}, 1, &b1));
  TRY(rondo_program_state(program, "w2", RONDO_F32, (size_t[]){HIDDEN, ANSWERS}, 2, &w2));
  TRY(rondo_program_state(program, "b2", RONDO_F32, (size_t[]){ANSWERS}, 1, &b2));
  TRY(rondo_program_cell(program, "rate", 0, &rate));
  TRY(rondo_op_matmul(program, bits, w1, b1, &value));
  TRY(rondo_op_tanh(program, value, &value));
  TRY(rondo_op_matmul(program, value, w2, b2, &logits));
  TRY(rondo_op_cross_entropy(program, logits, answers, &loss));
  TRY(rondo_program_output(program, "logits", logits));
  TRY(rondo_program_output(program, "loss", loss));
  TRY(rondo_program_adam(program, loss, &(rondo_adam_options){RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate}));
  *out = program;
  return RONDO_OK;
}

static const float all_bits[CASES][BITS] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
static const int32_t all_answers[CASES] = {0, 1, 1, 0};

static rondo_status write_first_values(rondo_compiled *compiled) {
  float first1[BITS * HIDDEN], first2[HIDDEN * ANSWERS];
  spread(first1, BITS * HIDDEN);
  spread(first2, HIDDEN * ANSWERS);
  TRY(rondo_compiled_write(compiled, "bits", all_bits, sizeof all_bits));
  TRY(rondo_compiled_write(compiled, "answers", all_answers, sizeof all_answers));
  TRY(rondo_compiled_write(compiled, "w1", first1, sizeof first1));
  return rondo_compiled_write(compiled, "w2", first2, sizeof first2);
}

static rondo_status read_answers(rondo_compiled *compiled, bool *out_is_right) {
  float scores[CASES][ANSWERS], final_loss;
  TRY(rondo_compiled_read(compiled, "logits", scores, sizeof scores));
  TRY(rondo_compiled_read(compiled, "loss", &final_loss, sizeof final_loss));
  *out_is_right = final_loss < 0.1f;
  for (int i = 0; i < CASES; i++) {
    const int answer = scores[i][1] > scores[i][0];
    if (answer != all_answers[i]) *out_is_right = false;
    printf("%d ", answer);
  }
  printf("after %d replayed steps\n", STEPS);
  return RONDO_OK;
}

static rondo_status run(const char *name, bool *out_is_right) {
  rondo_program *program;
  rondo_device *device;
  rondo_compiled *compiled; /* every value has a fixed address, and the step is recorded */
  TRY(write_program(&program));
  TRY(rondo_device_open(name, NULL, &device));
  TRY(rondo_compile(program, device, NULL, &compiled));
  rondo_program_destroy(program);
  TRY(write_first_values(compiled));

  for (int step = 0; step < STEPS; step++) {
    const float now = 0.05f * (float)(STEPS - step) / STEPS; /* changes without a new recording */
    TRY(rondo_compiled_write(compiled, "rate", &now, sizeof now));
    TRY(rondo_compiled_run(compiled)); /* one launch */
  }

  TRY(read_answers(compiled, out_is_right));
  TRY(rondo_compiled_destroy(compiled));
  return rondo_device_close(device);
}

int main(int argc, char **argv) {
  bool is_right = false;
  if (run(argc > 1 ? argv[1] : "cpu", &is_right) == RONDO_OK) return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
  fprintf(stderr, "%s: %s\n", argv[0], rondo_last_error()->message);
  return EXIT_FAILURE;
}
