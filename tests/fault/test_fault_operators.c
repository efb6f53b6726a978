/* SPDX-License-Identifier: MIT
 * Lets every host allocation fail while operators that are made of several operations are added to a program, which is
 * then differentiated, compiled and run (PR-8). The error is OUT_OF_MEMORY, nothing is left, and what was returned is
 * valid or no value.
 */
#include <string.h>

#include "fault/fault_allocations.h"

enum { STEPS = 3, BATCH = 2, STATES = 4 };

static struct {
  rondo_program *program;
  rondo_compiled *compiled;
} made;

/* A failed call leaves no value. */
#define ADD(call, value)                                 \
  do {                                                   \
    const rondo_status added = (call);                   \
    if (added != RONDO_OK) assert_true((value).id == 0); \
    TRY(added);                                          \
  } while (0)

static rondo_status add_network(rondo_value x, rondo_value *out_value) {
  rondo_recurrent_weights weights[2] = {{.input = {0}}, {.input = {0}}};
  const rondo_recurrent_options options = {RONDO_RECURRENT_OPTIONS_INIT, .bidirectional = true, .batch_first = true};
  const size_t shape[] = {3 * STATES, STATES};
  for (int i = 0; i < 2; i++) {
    TRY(rondo_program_state(made.program, i == 0 ? "w" : "w reverse", RONDO_F32, shape, 2, &weights[i].input));
    TRY(rondo_program_state(made.program, i == 0 ? "u" : "u reverse", RONDO_F32, shape, 2, &weights[i].hidden));
    TRY(rondo_program_state(made.program, i == 0 ? "b" : "b reverse", RONDO_F32, shape, 1, &weights[i].hidden_bias));
  }
  rondo_value last = {0};
  ADD(rondo_op_gru(made.program, x, weights, &options, out_value, &last), *out_value);
  return RONDO_OK;
}

static rondo_status add_image(rondo_value x, rondo_value *out_value) {
  const size_t image[] = {1, BATCH, STEPS, 2 * STATES}, kernel[] = {BATCH, BATCH, 2, 2};
  rondo_interpolate_options larger = {RONDO_INTERPOLATE_OPTIONS_INIT, .mode = RONDO_INTERPOLATE_LINEAR, .size = {5, 7}};
  rondo_conv_transpose_options wide = {RONDO_CONV_TRANSPOSE_OPTIONS_INIT, .stride = {2, 2}};
  rondo_value y, weight, scale;
  TRY(rondo_program_state(made.program, "kernel", RONDO_F32, kernel, 4, &weight));
  TRY(rondo_program_state(made.program, "scale", RONDO_F32, (const size_t[]){BATCH}, 1, &scale));
  TRY(rondo_op_reshape(made.program, x, image, 4, &y));
  wide.bias = scale;
  ADD(rondo_op_conv_transpose(made.program, y, weight, &wide, &y), y);
  ADD(rondo_op_group_norm(made.program, y, 1, scale, scale, 0, &y), y);
  ADD(rondo_op_interpolate(made.program, y, &larger, &y), y);
  ADD(rondo_op_pad(made.program, y, (const int64_t[]){0, 0, 1, 1}, (const int64_t[]){0, 0, 2, 2}, RONDO_PAD_REFLECT, 0,
                   out_value),
      *out_value);
  return RONDO_OK;
}

static rondo_status add_draw(rondo_value x, rondo_value *out_value) {
  const rondo_categorical_options options = {RONDO_CATEGORICAL_OPTIONS_INIT, .top_k = 2, .top_p = 0.5f};
  const size_t rows = BATCH * STEPS;
  rondo_value logits, seeds, counters;
  TRY(rondo_op_reshape(made.program, x, (size_t[]){rows, STATES}, 2, &logits));
  TRY(rondo_op_full(made.program, RONDO_I64, &rows, 1, 1, &seeds));
  TRY(rondo_op_full(made.program, RONDO_I32, &rows, 1, 2, &counters));
  ADD(rondo_op_categorical(made.program, logits, seeds, counters, &options, out_value), *out_value);
  return RONDO_OK;
}

static rondo_status start(fault_rig *rig) {
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &rig->allocator.table};
  return rondo_program_create(&options, &made.program);
}

static rondo_status finish(fault_rig *rig, size_t bytes) {
  const float zeros[BATCH * STEPS * STATES] = {0};
  float result;
  assert_true(bytes <= sizeof zeros);
  TRY(rondo_compile(made.program, rig->device, NULL, &made.compiled));
  TRY(rondo_compiled_write(made.compiled, "x", zeros, bytes));
  TRY(rondo_compiled_run(made.compiled));
  return rondo_compiled_read(made.compiled, "loss", &result, sizeof result);
}

static rondo_status do_all(fault_rig *rig) {
  const size_t shape[] = {BATCH, STEPS, STATES};
  rondo_value x, y, drawn, loss, gradient;
  TRY(start(rig));
  TRY(rondo_program_input(made.program, "x", RONDO_F32, shape, 3, &x));
  TRY(add_network(x, &y));
  TRY(add_draw(x, &drawn));
  TRY(rondo_program_output(made.program, "drawn", drawn));
  TRY(add_image(y, &y));
  TRY(rondo_op_sum(made.program, y, NULL, 0, false, &loss));
  TRY(rondo_program_gradients(made.program, loss, &x, 1, &gradient));
  TRY(rondo_program_output(made.program, "gradient", gradient));
  TRY(rondo_program_output(made.program, "loss", loss));
  return finish(rig, sizeof(float) * BATCH * STEPS * STATES);
}

/* Results that depend on data, and indices ------------------------------------------------------------------------- */

enum { ROWS = 4, COLUMNS = 6 };

static rondo_status keep(const char *name, rondo_value value) {
  return rondo_program_output(made.program, name, value);
}

static rondo_status add_counted(rondo_value x) {
  rondo_value all, y, count;
  rondo_unique unique;
  ADD(rondo_op_unique(made.program, x, ROWS, &unique), unique.values);
  TRY(keep("unique", unique.values));
  TRY(keep("counts", unique.counts));
  TRY(keep("inverse", unique.inverse));
  TRY(rondo_op_full(made.program, RONDO_BOOL, (const size_t[]){COLUMNS}, 1, 1, &all));
  ADD(rondo_op_compress(made.program, x, all, 1, 2, &y, &count), y);
  TRY(keep("compressed", y));
  return keep("count", count);
}

static rondo_status add_boxes(rondo_value x) {
  rondo_roi_align_options align = {RONDO_ROI_ALIGN_OPTIONS_INIT, .size = {2, 2}};
  const size_t image[] = {1, 1, ROWS, COLUMNS}, rois[] = {COLUMNS, ROWS}, boxes[] = {1, COLUMNS, ROWS};
  rondo_value y, of_boxes, scores, images, selected, count;
  TRY(rondo_op_reshape(made.program, x, boxes, 3, &of_boxes));
  TRY(rondo_op_full(made.program, RONDO_F32, (const size_t[]){1, 1, COLUMNS}, 3, 1, &scores));
  ADD(rondo_op_non_max_suppression(made.program, of_boxes, scores, NULL, &selected, &count), selected);
  TRY(keep("selected", selected));
  TRY(rondo_op_full(made.program, RONDO_I32, rois, 1, 0, &images));
  TRY(rondo_op_reshape(made.program, x, rois, 2, &of_boxes));
  TRY(rondo_op_reshape(made.program, x, image, 4, &y));
  ADD(rondo_op_roi_align(made.program, y, of_boxes, images, &align, &y), y);
  return keep("aligned", y);
}

static rondo_status add_indexed(rondo_value x, rondo_value *out_value) {
  const size_t one[] = {1, 1}, rows = ROWS;
  rondo_value index, row, lengths;
  TRY(rondo_op_full(made.program, RONDO_I64, one, 2, 1, &index));
  TRY(rondo_op_full(made.program, RONDO_F32, (const size_t[]){1, COLUMNS}, 2, 3, &row));
  ADD(rondo_op_scatter_nd(made.program, x, index, row, RONDO_SCATTER_ADD, out_value), *out_value);
  TRY(rondo_op_full(made.program, RONDO_I32, &rows, 1, 2, &lengths));
  ADD(rondo_op_reverse_sequence(made.program, *out_value, lengths, 1, 0, out_value), *out_value);
  ADD(rondo_op_roll(made.program, *out_value, (const int64_t[]){1}, (const size_t[]){1}, 1, out_value), *out_value);
  ADD(rondo_op_tril(made.program, *out_value, 0, out_value), *out_value);
  ADD(rondo_op_einsum(made.program, "ij,kj->ik", (rondo_value[]){*out_value, x}, 2, out_value), *out_value);
  return RONDO_OK;
}

/* The image [1, 1, ROWS, COLUMNS] by the coordinates of a matrix, and its largest elements where they were. */
static rondo_status add_sampled(rondo_value x, rondo_value *out_value) {
  const size_t image[] = {1, 1, ROWS, COLUMNS}, sizes[] = {ROWS, COLUMNS};
  const rondo_pooling_options halves = {RONDO_POOLING_OPTIONS_INIT, .kernel = {2, 2}};
  rondo_value theta, grid, places;
  TRY(rondo_op_full(made.program, RONDO_F32, (const size_t[]){1, 2, 3}, 3, 0.5, &theta));
  ADD(rondo_op_affine_grid(made.program, theta, sizes, false, &grid), grid);
  TRY(rondo_op_reshape(made.program, x, image, 4, out_value));
  ADD(rondo_op_grid_sample(made.program, *out_value, grid, NULL, out_value), *out_value);
  ADD(rondo_op_max_pool(made.program, *out_value, &halves, out_value, &places), *out_value);
  ADD(rondo_op_max_unpool(made.program, *out_value, places, sizes, out_value), *out_value);
  ADD(rondo_op_local_response_norm(made.program, *out_value, 3, 1e-4f, 0.75f, 1, out_value), *out_value);
  return RONDO_OK;
}

static rondo_status add_transformed(rondo_value x) {
  const rondo_dft_options along = {RONDO_DFT_OPTIONS_INIT, .dimension = 1, .onesided = true};
  rondo_value y, scale, zero;
  TRY(rondo_op_reshape(made.program, x, (const size_t[]){ROWS, COLUMNS, 1}, 3, &y));
  ADD(rondo_op_dft(made.program, y, &along, &y), y);
  TRY(keep("transformed", y));
  ADD(rondo_op_dynamic_quantize_linear(made.program, x, &y, &scale, &zero), y);
  return keep("quantized", y);
}

static rondo_status do_indices(fault_rig *rig) {
  rondo_value x, y, determinant, sampled, loss, gradient;
  TRY(start(rig));
  TRY(rondo_program_input(made.program, "x", RONDO_F32, (const size_t[]){ROWS, COLUMNS}, 2, &x));
  TRY(add_counted(x));
  TRY(add_boxes(x));
  TRY(add_transformed(x));
  TRY(add_indexed(x, &y));
  ADD(rondo_op_det(made.program, y, &determinant), determinant);
  TRY(keep("determinant", determinant));
  TRY(add_sampled(x, &sampled));
  TRY(rondo_op_sum(made.program, sampled, NULL, 0, false, &sampled));
  TRY(rondo_op_sum(made.program, y, NULL, 0, false, &loss));
  TRY(rondo_op_add(made.program, loss, sampled, &loss));
  TRY(rondo_program_gradients(made.program, loss, &x, 1, &gradient));
  TRY(keep("gradient", gradient));
  TRY(keep("loss", loss));
  return finish(rig, sizeof(float) * ROWS * COLUMNS);
}

static void destroy(void) {
  assert_ok(rondo_compiled_destroy(made.compiled));
  rondo_program_destroy(made.program);
  memset(&made, 0, sizeof made);
}

static const fault_work all = {.run = do_all, .destroy = destroy};
static const fault_work indices = {.run = do_indices, .destroy = destroy};

UNIT_TEST(test_pr8_an_allocation_fails) { fault_allocations(&all, false, 1); }

UNIT_TEST(test_pr8_all_allocations_fail_from_then_on) { fault_allocations(&all, true, 5); }

UNIT_TEST(test_pr8_an_allocation_for_indices_fails) { fault_allocations(&indices, false, 1); }
