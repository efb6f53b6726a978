/* SPDX-License-Identifier: MIT
 * The adder's program, and its expected results in plain C. All sums are exact.
 */
#include "support/test_sequences.h"

#include <rondo/operators.h>
#include <string.h>

#include "support/rondo_test.h"

/* Row inputs, and what is computed from them. */
typedef struct rows_of {
  rondo_value length, slot, start, positions, last;
  rondo_value is_active, is_first; /* F32 [rows, 1] */
} rows_of;

static rondo_status add_row_input(rondo_program *program, const char *name, const rondo_model_size *size, bool is_each,
                                  rondo_value *out) {
  const size_t shape[] = {size->rows, size->length};
  return rondo_program_input(program, name, RONDO_I32, shape, is_each ? 2 : 1, out);
}

static rondo_status as_factor(rondo_program *program, size_t rows, rondo_value condition, rondo_value *out) {
  TRY(rondo_op_cast(program, condition, RONDO_F32, out));
  return rondo_op_reshape(program, *out, (size_t[]){rows, 1}, 2, out);
}

static rondo_status add_rows(rondo_program *program, const rondo_model_size *size, rows_of *r) {
  rondo_value zero;
  TRY(add_row_input(program, "length", size, false, &r->length));
  TRY(add_row_input(program, "slot", size, false, &r->slot));
  TRY(add_row_input(program, "start", size, false, &r->start));
  TRY(add_row_input(program, "positions", size, true, &r->positions));
  TRY(add_row_input(program, "last", size, false, &r->last));
  TRY(rondo_op_full(program, RONDO_I32, &size->rows, 1, 0, &zero));
  TRY(rondo_op_greater(program, r->length, zero, &r->is_active));
  TRY(rondo_op_equal(program, r->start, zero, &r->is_first));
  TRY(as_factor(program, size->rows, r->is_active, &r->is_active));
  return as_factor(program, size->rows, r->is_first, &r->is_first);
}

static rondo_status spread(rondo_program *program, rondo_value hot, rondo_value rows, rondo_value *out) {
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .transpose_a = true};
  return rondo_op_matmul_with(program, hot, rows, &options, out);
}

/* sums [slots, 1]: those of slots that begin again are 0 first. Then the rows are added to their slots. */
static rondo_status add_total(rondo_program *program, const rondo_model_size *size, const rows_of *r, rondo_value x,
                              rondo_value *out) {
  const size_t columns[] = {1}, shape[] = {size->slots, 1};
  rondo_value sums, part, hot, added, cleared, next;
  TRY(rondo_program_state(program, "sums", RONDO_F32, shape, 2, &sums));
  TRY(rondo_op_sum(program, x, columns, 1, true, &part));
  TRY(rondo_op_one_hot(program, r->slot, size->slots, RONDO_F32, &hot));
  TRY(rondo_op_mul(program, hot, r->is_active, &hot));
  TRY(spread(program, hot, part, &added));
  TRY(spread(program, hot, r->is_first, &cleared));
  TRY(rondo_op_mul(program, sums, cleared, &cleared));
  TRY(rondo_op_sub(program, sums, cleared, &next));
  TRY(rondo_op_add(program, next, added, &next));
  TRY(rondo_program_assign(program, sums, next));
  return rondo_op_matmul(program, hot, next, (rondo_value){0}, out);
}

static rondo_status add_outputs(rondo_program *program, const rondo_model_size *size, const rows_of *r, rondo_value x) {
  const size_t all = size->rows * size->length;
  rondo_value echo, places, flat, final;
  TRY(rondo_op_scale(program, x, 2, &echo));
  TRY(rondo_program_output(program, "echo", echo));
  TRY(rondo_op_cast(program, r->positions, RONDO_F32, &places));
  TRY(rondo_program_output(program, "places", places));
  TRY(rondo_op_reshape(program, x, &all, 1, &flat));
  TRY(rondo_op_index_select(program, flat, r->last, 0, &final));
  return rondo_program_output(program, "final", final);
}

rondo_status test_build_adder(void *user, const rondo_model_size *size, rondo_program *program) {
  rondo_value x, id, table, offset, total;
  rows_of r;
  (void)user;
  TRY(rondo_program_input(program, "x", RONDO_F32, (size_t[]){size->rows, size->length}, 2, &x));
  TRY(add_rows(program, size, &r));
  TRY(rondo_program_input(program, "id", RONDO_I32, &size->rows, 1, &id));
  TRY(rondo_op_arange(program, RONDO_F32, TEST_ADDER_IDS, 0, 1, &table));
  TRY(rondo_op_reshape(program, table, (size_t[]){TEST_ADDER_IDS, 1}, 2, &table));
  TRY(rondo_op_embedding(program, table, id, &offset));
  TRY(add_total(program, size, &r, x, &total));
  TRY(rondo_op_add(program, total, offset, &total));
  TRY(rondo_program_output(program, "total", total));
  return add_outputs(program, size, &r, x);
}

void test_adder_add(rondo_session *session, const char *name, size_t slots, const size_t *lengths, size_t count,
                    rondo_model_options options) {
  options.struct_size = sizeof options;
  options.build_sized = test_build_adder;
  options.row_inputs = (rondo_row_inputs){
      .length = "length", .slot = "slot", .start = "start", .positions = "positions", .last = "last"};
  options.slots = slots;
  if (options.slot_positions == 0) options.slot_positions = TEST_MOST_POSITIONS;
  options.lengths = lengths;
  options.length_count = count;
  assert_ok(rondo_session_add_model(session, name, &options));
}

void test_adder_capture(rondo_session *session, const char *name, const size_t *rows, size_t row_count,
                        const size_t *lengths, size_t length_count) {
  static test_sequence s;
  test_sequence_fill(&s, 1, 1);
  assert_ok(rondo_session_capture_begin(session, name));
  for (size_t i = 0; i < length_count; i++) {
    for (size_t j = 0; j < row_count; j++) {
      rondo_answer answer = {.struct_size = sizeof answer};
      s.request.rows = rows[j];
      s.request.length = lengths[i];
      assert_ok(rondo_session_run(session, name, &s.request, &answer));
      assert_int_equal(answer.mode, RONDO_RUN_CAPTURED);
      assert_int_equal(answer.graph, j);
    }
  }
  assert_ok(rondo_session_capture_end(session));
}

/* Sequences ------------------------------------------------------------------------------------------------------- */

void test_sequence_open(rondo_session *session, const char *name, test_sequence *s) {
  *s = (test_sequence){.sum = 0};
  assert_ok(rondo_sequence_open(session, name, &s->sequence));
}

static void draw(test_sequence *s, size_t positions) {
  for (size_t i = 0; i < positions; i++) s->x[i] = (float)test_random_below(&s->seed, 64);
  s->id = (int32_t)test_random_below(&s->seed, TEST_ADDER_IDS);
}

void test_sequence_fill(test_sequence *s, size_t positions, uint64_t seed) {
  s->seed = seed + 1;
  s->total = s->final = -1;
  memset(s->echo, 0xff, sizeof s->echo);
  memset(s->places, 0xff, sizeof s->places);
  draw(s, positions);
  s->inputs[0] = s->x;
  s->inputs[1] = &s->id;
  void *const outputs[] = {&s->total, s->echo, s->places, &s->final};
  memcpy(s->outputs, outputs, sizeof outputs);
  s->request = (rondo_request){RONDO_REQUEST_INIT,    .rows = 1,
                               .length = positions,   .inputs = s->inputs,
                               .outputs = s->outputs, .sequence = s->sequence};
}

static bool is_right(test_sequence *s, size_t positions) {
  bool is_right = s->final == s->x[positions - 1];
  for (size_t i = 0; i < positions; i++) {
    is_right &= s->echo[i] == 2 * s->x[i] && s->places[i] == (float)(s->positions + i);
    s->sum += s->x[i];
  }
  s->positions += positions;
  return is_right && s->total == s->sum + (float)s->id;
}

bool test_sequence_is_right(test_sequence *s) { return is_right(s, s->request.length); }

rondo_answer test_sequence_run(rondo_session *session, const char *name, test_sequence *s, size_t positions) {
  rondo_answer answer = {.struct_size = sizeof answer};
  test_sequence_fill(s, positions, s->positions);
  assert_ok(rondo_session_run(session, name, &s->request, &answer));
  assert_true(test_sequence_is_right(s));
  return answer;
}

size_t test_sequence_next(void *user, const rondo_answer *answer) {
  test_sequence *s = user;
  s->wrong += !is_right(s, answer->steps == 1 ? s->request.length : 1);
  if (s->steps_left == 0) return 0;
  s->steps_left--;
  draw(s, 1);
  return 1;
}
