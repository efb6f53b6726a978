/* SPDX-License-Identifier: MIT
 * Checkpoints: training that is stopped and resumed in another compiled program gives the same bits as uninterrupted
 * training (FW-4, FW-5), including dropout's numbers, moments, accumulated gradients, the loss scale and cells. A
 * checkpoint of another program is refused by name and changes nothing. Every damage to a file is detected.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_program.h"

enum { ROWS = 8, WIDTH = 6, HIDDEN = 10, STEPS = 40 };

/* Files ------------------------------------------------------------------------------------------------------------ */

typedef struct file_bytes {
  unsigned char *data;
  size_t count;
} file_bytes;

/* A path in a folder of this process. */
static const char *path_of(const char *name) {
  static char folder[64], path[128];
  if (folder[0] == '\0') {
    (void)snprintf(folder, sizeof folder, "/tmp/rondo-checkpoint-XXXXXX");
    assert_non_null(mkdtemp(folder));
  }
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void remove_files(void) {
  static const char *const names[] = {"at_once", "half", "rest", "other", "."};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) (void)remove(path_of(names[i]));
}

static file_bytes read_file(const char *name) {
  file_bytes file = {.data = malloc(1 << 16)};
  FILE *stream = fopen(path_of(name), "rb");
  assert_non_null(stream);
  assert_non_null(file.data);
  file.count = fread(file.data, 1, 1 << 16, stream);
  assert_true(file.count < 1 << 16);
  fclose(stream);
  return file;
}

static void assert_same_files(const char *a, const char *b) {
  file_bytes x = read_file(a), y = read_file(b);
  assert_int_equal(x.count, y.count);
  assert_memory_equal(x.data, y.data, x.count);
  free(x.data);
  free(y.data);
}

/* A network with everything that carries over from run to run ------------------------------------------------------ */

/* How a program differs from the one that is checkpointed. */
typedef enum variant { SAME, WIDER, OTHER_TYPE, WITHOUT_MOMENTS, WITHOUT_CELL, WITH_STATE } variant;

static rondo_value add_layer(rondo_program *program, const char *name, rondo_value x, size_t inputs, size_t outputs) {
  rondo_value weight;
  assert_ok(rondo_program_state(program, name, RONDO_F32, (size_t[]){inputs, outputs}, 2, &weight));
  assert_ok(rondo_op_matmul(program, x, weight, (rondo_value){0}, &x));
  return x;
}

static void add_optimizer(rondo_program *program, rondo_value loss, rondo_value rate, variant how) {
  const rondo_gradient_options gradients = {RONDO_GRADIENT_OPTIONS_INIT, .accumulate = 3, .max_norm = 0.5f,
                                            .scale_loss = true, .growth_interval = 4};
  const rondo_adam_options adam = {RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate, .weight_decay = 0.01f,
                                   .gradients = &gradients};
  const rondo_sgd_options sgd = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate, .gradients = &gradients};
  assert_ok(how == WITHOUT_MOMENTS ? rondo_program_sgd(program, loss, &sgd) : rondo_program_adam(program, loss, &adam));
}

static void build(rondo_program *program, variant how) {
  const size_t shape[] = {ROWS, WIDTH}, hidden = how == WIDER ? HIDDEN + 1 : HIDDEN;
  rondo_value x, target, rate, chance, more;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_ok(rondo_program_input(program, "target", RONDO_F32, shape, 2, &target));
  assert_ok(rondo_program_cell(program, "rate", 0.01f, &rate));
  if (how == WITHOUT_CELL) {
    assert_ok(rondo_op_full(program, RONDO_F32, NULL, 0, 0.25, &chance));
  } else {
    assert_ok(rondo_program_cell(program, "chance", 0.25f, &chance));
  }
  x = add_layer(program, "first", x, WIDTH, hidden);
  assert_ok(rondo_op_dropout(program, x, chance, &x));
  x = add_layer(program, "second", x, hidden, WIDTH);
  assert_ok(rondo_op_mse(program, x, target, RONDO_COMBINE_MEAN, &x));
  assert_ok(rondo_program_output(program, "loss", x));
  if (how == WITH_STATE || how == OTHER_TYPE) {
    assert_ok(rondo_program_state(program, "more", how == WITH_STATE ? RONDO_F32 : RONDO_I32, shape, 1, &more));
    assert_ok(rondo_program_output(program, "more again", more));
  }
  add_optimizer(program, x, rate, how);
}

static rondo_compiled *compile(rondo_device *device, variant how) {
  rondo_program *program = test_named_program("checkpointed");
  build(program, how);
  return test_compile(program, device, NULL);
}

static rondo_weights *gather(rondo_compiled *compiled, uint32_t step) {
  rondo_weights *checkpoint = NULL;
  char text[16];
  (void)snprintf(text, sizeof text, "%u", step);
  assert_ok(rondo_weights_create(NULL, &checkpoint));
  assert_ok(rondo_checkpoint_gather(checkpoint, compiled));
  assert_ok(rondo_weights_set_metadata(checkpoint, "step", text));
  return checkpoint;
}

static void save(rondo_compiled *compiled, uint32_t step, const char *name) {
  rondo_weights *checkpoint = gather(compiled, step);
  assert_ok(rondo_checkpoint_save(checkpoint, path_of(name)));
  rondo_weights_destroy(checkpoint);
}

/* Going on --------------------------------------------------------------------------------------------------------- */

/* The first values of what is drawn and trained. */
static void initialize(rondo_compiled *compiled) {
  float values[WIDTH * HIDDEN];
  const int64_t random[2] = {77, 0};
  uint64_t seed = 1;
  for (size_t i = 0; i < WIDTH * HIDDEN; i++) values[i] = (float)(test_random(&seed) % 1000) / 1000 - 0.5f;
  assert_ok(rondo_compiled_write(compiled, "first", values, sizeof values));
  assert_ok(rondo_compiled_write(compiled, "second", values, sizeof values));
  assert_ok(rondo_compiled_write(compiled, "random", random, sizeof random));
}

/* Steps from `first` to before `last`. The rate and the chance change between steps. */
static void train(rondo_compiled *compiled, uint32_t first, uint32_t last, float losses[STEPS]) {
  for (uint32_t step = first; step < last; step++) {
    float x[ROWS * WIDTH], target[ROWS * WIDTH];
    const float rate = 0.02f / (1 + (float)step), chance = 0.3f;
    uint64_t seed = 100 + step;
    for (size_t i = 0; i < ROWS * WIDTH; i++) x[i] = (float)(test_random(&seed) % 1000) / 500 - 1;
    for (size_t i = 0; i < ROWS * WIDTH; i++) target[i] = x[i] * x[(i + 1) % WIDTH];
    assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
    assert_ok(rondo_compiled_write(compiled, "target", target, sizeof target));
    assert_ok(rondo_compiled_write(compiled, "rate", &rate, sizeof rate));
    if (step == 7) assert_ok(rondo_compiled_write(compiled, "chance", &chance, sizeof chance));
    assert_ok(step % 2 ? rondo_compiled_run_eager(compiled) : rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "loss", &losses[step], sizeof losses[step]));
  }
}

static uint32_t load(rondo_compiled *compiled, const char *name) {
  rondo_weights *checkpoint = NULL;
  assert_ok(rondo_checkpoint_load(path_of(name), NULL, &checkpoint));
  assert_ok(rondo_checkpoint_apply(checkpoint, compiled));
  const uint32_t step = (uint32_t)strtoul(rondo_weights_get_metadata(checkpoint, "step"), NULL, 10);
  rondo_weights_destroy(checkpoint);
  return step;
}

/* Stopped in the middle of a round of accumulated gradients, too. */
TEST(test_going_on_gives_the_bits_of_not_having_stopped) {
  static const uint32_t stops[] = {20, 1, 19, 39};
  float at_once[STEPS], in_parts[STEPS];
  rondo_compiled *compiled = compile(t->device, SAME);
  initialize(compiled);
  train(compiled, 0, STEPS, at_once);
  save(compiled, STEPS, "at_once");
  assert_ok(rondo_compiled_destroy(compiled));
  for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
    compiled = compile(t->device, SAME);
    initialize(compiled);
    train(compiled, 0, stops[i], in_parts);
    save(compiled, stops[i], "half");
    assert_ok(rondo_compiled_destroy(compiled));
    compiled = compile(t->device, SAME);
    train(compiled, load(compiled, "half"), STEPS, in_parts);
    save(compiled, STEPS, "rest");
    assert_ok(rondo_compiled_destroy(compiled));
    assert_memory_equal(at_once, in_parts, sizeof at_once);
    assert_same_files("at_once", "rest");
  }
}

/* After runs that are still queued, and over what they leave. */
TEST(test_a_program_can_go_back) {
  float first[STEPS], again[STEPS];
  rondo_compiled *compiled = compile(t->device, SAME);
  initialize(compiled);
  train(compiled, 0, 10, first);
  rondo_weights *checkpoint = gather(compiled, 10);
  train(compiled, 10, STEPS, first);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_checkpoint_apply(checkpoint, compiled));
  train(compiled, 10, STEPS, again);
  assert_memory_equal(first + 10, again + 10, (STEPS - 10) * sizeof *first);
  rondo_weights_destroy(checkpoint);
}

TEST(test_a_checkpoint_of_another_program_is_refused_by_name) {
  static const struct {
    variant how;
    rondo_reason reason;
    const char *message;
  } cases[] = {
      {WIDER, RONDO_REASON_SHAPE, "'first' as [6, 10], the program's state is [6, 11]"},
      {WITHOUT_MOMENTS, RONDO_REASON_UNKNOWN_NAME, "'adam.step', which is no state or cell of program 'checkpointed'"},
      {WITHOUT_CELL, RONDO_REASON_UNKNOWN_NAME, "'chance', which is no state or cell"},
      {WITH_STATE, RONDO_REASON_UNKNOWN_NAME, "no tensor for the state 'more'"},
  };
  rondo_compiled *compiled = compile(t->device, SAME);
  rondo_weights *checkpoint = gather(compiled, 0), *before = NULL, *after = NULL;
  assert_ok(rondo_compiled_destroy(compiled));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    compiled = compile(t->device, cases[i].how);
    assert_ok(rondo_weights_create(NULL, &before));
    assert_ok(rondo_weights_create(NULL, &after));
    assert_ok(rondo_checkpoint_gather(before, compiled));
    assert_error(rondo_checkpoint_apply(checkpoint, compiled), RONDO_INVALID_DATA, cases[i].reason);
    assert_message(cases[i].message);
    assert_ok(rondo_checkpoint_gather(after, compiled));
    assert_ok(rondo_checkpoint_save(before, path_of("half")));
    assert_ok(rondo_checkpoint_save(after, path_of("rest")));
    assert_same_files("half", "rest");
    rondo_weights_destroy(before);
    rondo_weights_destroy(after);
    assert_ok(rondo_compiled_destroy(compiled));
  }
  rondo_weights_destroy(checkpoint);
}

TEST(test_a_state_of_another_type_is_refused_by_name) {
  rondo_compiled *compiled = compile(t->device, WITH_STATE);
  rondo_weights *checkpoint = gather(compiled, 0);
  assert_ok(rondo_compiled_destroy(compiled));
  compiled = compile(t->device, OTHER_TYPE);
  assert_error(rondo_checkpoint_apply(checkpoint, compiled), RONDO_INVALID_DATA, RONDO_REASON_TYPE);
  assert_message("'more'");
  rondo_weights_destroy(checkpoint);
}

/* Damage ----------------------------------------------------------------------------------------------------------- */

/* A damaged file is refused with a reason, or gives the very same set: white space in the header that became other
 * white space. */
static void assert_refused_or_same(const unsigned char *bytes, const file_bytes *file) {
  rondo_weights *read = NULL;
  if (rondo_checkpoint_parse(bytes, file->count, NULL, &read) != RONDO_OK) {
    const rondo_status status = rondo_last_error()->status;
    assert_null(read);
    assert_true(status == RONDO_INVALID_DATA || status == RONDO_UNSUPPORTED);
    assert_true(strlen(rondo_last_error()->message) > 20);
    return;
  }
  assert_ok(rondo_checkpoint_save(read, path_of("other")));
  assert_same_files("half", "other");
  rondo_weights_destroy(read);
}

TEST(test_every_flipped_bit_is_found) {
  rondo_compiled *compiled = compile(t->device, SAME);
  initialize(compiled);
  save(compiled, 0, "half");
  assert_ok(rondo_compiled_destroy(compiled));
  file_bytes file = read_file("half");
  for (size_t bit = 0; bit < 8 * file.count; bit += test_failure_step()) {
    file.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    assert_refused_or_same(file.data, &file);
    file.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
  free(file.data);
}

/* Of any length. A flipped byte of a tensor's data names the tensor. */
TEST(test_a_cut_file_is_truncated_and_flipped_data_have_a_name) {
  rondo_compiled *compiled = compile(t->device, SAME);
  initialize(compiled);
  save(compiled, 0, "half");
  assert_ok(rondo_compiled_destroy(compiled));
  file_bytes file = read_file("half");
  rondo_weights *read = NULL;
  for (size_t count = 0; count < file.count; count++) {
    assert_error(rondo_checkpoint_parse(file.data, count, NULL, &read), RONDO_INVALID_DATA, RONDO_REASON_TRUNCATED);
    assert_null(read);
  }
  file.data[file.count - 1] ^= 1; /* names are in order: of the second layer's moments, the last */
  assert_error(rondo_checkpoint_parse(file.data, file.count, NULL, &read), RONDO_INVALID_DATA, RONDO_REASON_CHECKSUM);
  assert_message("it was damaged: tensor 'second.v' does not have its checksum");
  free(file.data);
}

TEST(test_what_is_no_checkpoint_is_reported) {
  rondo_weights *set = NULL, *read = NULL;
  const float one = 1;
  const rondo_weight weight = {.name = "w", .type = RONDO_F32, .data = &one, .bytes = sizeof one};
  assert_ok(rondo_weights_create(NULL, &set));
  assert_ok(rondo_weights_add(set, &weight));
  assert_ok(rondo_weights_save(set, path_of("other")));
  assert_error(rondo_checkpoint_load(path_of("other"), NULL, &read), RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME);
  assert_message("it is no checkpoint: its metadata have no 'rondo.checkpoint'");
  assert_ok(rondo_weights_set_metadata(set, "rondo.checkpoint", "2"));
  assert_ok(rondo_weights_save(set, path_of("other")));
  assert_error(rondo_checkpoint_load(path_of("other"), NULL, &read), RONDO_UNSUPPORTED, RONDO_REASON_NONE);
  assert_message("version '2'; this library reads version 1");
  static const char without[] = "\x29\0\0\0\0\0\0\0{\"__metadata__\":{\"rondo.checkpoint\":\"1\"}}";
  assert_error(rondo_checkpoint_parse(without, sizeof without - 1, NULL, &read), RONDO_INVALID_DATA,
               RONDO_REASON_MALFORMED);
  assert_message("its metadata have no 'rondo.checksum', which checkpoints have");
  assert_ok(rondo_checkpoint_save(set, path_of("other")));
  assert_ok(rondo_checkpoint_load(path_of("other"), NULL, &read));
  rondo_weights_destroy(read);
  assert_fails(rondo_checkpoint_load(path_of("nowhere"), NULL, &read), RONDO_NOT_FOUND);
  assert_null(read);
  rondo_weights_destroy(set);
}

/* Creates or removes the file that a process of the same number, killed while it wrote, may have left next to the file.
 * */
static void leave_files(const char *name, bool removes) {
  enum { LEFT = 200 };
  for (unsigned i = 0; i < LEFT; i++) {
    char left[64];
    (void)snprintf(left, sizeof left, "%s.%ld-%u.tmp", name, (long)getpid(), i);
    if (removes) {
      assert_int_equal(remove(path_of(left)), 0);
      continue;
    }
    FILE *stream = fopen(path_of(left), "wx");
    assert_non_null(stream);
    assert_int_equal(fclose(stream), 0);
  }
}

TEST(test_files_that_were_left_are_in_nobodys_way) {
  rondo_weights *set = NULL, *read = NULL;
  const float one = 1;
  const rondo_weight weight = {.name = "w", .type = RONDO_F32, .data = &one, .bytes = sizeof one};
  assert_ok(rondo_weights_create(NULL, &set));
  assert_ok(rondo_weights_add(set, &weight));
  leave_files("other", false);
  assert_ok(rondo_checkpoint_save(set, path_of("other")));
  leave_files("other", true);
  assert_ok(rondo_checkpoint_load(path_of("other"), NULL, &read));
  rondo_weights_destroy(read);
  rondo_weights_destroy(set);
}

/* Generators ------------------------------------------------------------------------------------------------------- */

TEST(test_generators_go_on_where_they_were) {
  rondo_generator *generator = NULL;
  rondo_weights *checkpoint = NULL;
  rondo_random first, again;
  const rondo_generator_options options = {RONDO_GENERATOR_OPTIONS_INIT, .seed = UINT64_MAX};
  assert_ok(rondo_generator_create(t->device, &options, &generator));
  assert_ok(rondo_weights_create(NULL, &checkpoint));
  assert_ok(rondo_generator_reserve(generator, t->stream, 24, &first));
  assert_ok(rondo_checkpoint_keep_generator(checkpoint, "noise", generator));
  assert_string_equal(rondo_weights_get_metadata(checkpoint, "rondo.generator.noise"),
                      "seed 18446744073709551615 offset 24");
  assert_ok(rondo_generator_reserve(generator, t->stream, 4, &first));
  assert_ok(rondo_generator_seed(generator, 3));
  assert_ok(rondo_checkpoint_restore_generator(checkpoint, "noise", generator));
  assert_ok(rondo_generator_reserve(generator, t->stream, 4, &again));
  assert_true(first.seed == again.seed && first.offset == again.offset);

  static const char *const wrong[] = {"", "seed 1", "seed 1 offset 2", "seed 1 offset 4 ", "seed -1 offset 4", "seed"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_ok(rondo_weights_set_metadata(checkpoint, "rondo.generator.noise", wrong[i]));
    assert_error(rondo_checkpoint_restore_generator(checkpoint, "noise", generator), RONDO_INVALID_DATA,
                 RONDO_REASON_MALFORMED);
    assert_message("for the generator 'noise', which is no seed and offset");
  }
  assert_error(rondo_checkpoint_restore_generator(checkpoint, "other", generator), RONDO_INVALID_DATA,
               RONDO_REASON_UNKNOWN_NAME);
  rondo_weights_destroy(checkpoint);
  rondo_generator_destroy(generator);
}

TEST(test_wrong_arguments_are_named) {
  rondo_compiled *compiled = compile(t->device, SAME);
  rondo_weights *checkpoint = gather(compiled, 0);
  assert_invalid(rondo_checkpoint_gather(checkpoint, compiled), RONDO_REASON_DUPLICATE_NAME);
  assert_invalid(rondo_checkpoint_gather(NULL, compiled), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_checkpoint_gather(checkpoint, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_checkpoint_apply(NULL, compiled), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_checkpoint_apply(checkpoint, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_checkpoint_save(NULL, "x"), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_checkpoint_save(checkpoint, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_checkpoint_load("x", NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_checkpoint_parse("x", 1, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_checkpoint_keep_generator(NULL, "x", NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_checkpoint_restore_generator(checkpoint, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  rondo_weights_destroy(checkpoint);
  save(compiled, 0, "half");
}

int main(void) {
  const int result = test_run_registered();
  remove_files();
  return result;
}
