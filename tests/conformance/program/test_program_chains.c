/* SPDX-License-Identifier: MIT
 * Elementwise operators, fused into chains: the same bits as from separate ones, in fewer kernels and not more memory
 * (FW-1, FW-9), on random programs of all of them, of all types, with broadcasting and reshaping.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_program.h"

#define MOST_VALUES 64
#define MOST_BYTES 2048
#define OUTPUTS 3
#define RUNS 3

typedef struct pool {
  rondo_program *program;
  uint64_t *seed;
  rondo_value values[MOST_VALUES];
  uint32_t count;
  rondo_value probability;
} pool;

static uint32_t below(pool *p, uint32_t bound) { return test_random_below(p->seed, bound); }
static rondo_value pick(pool *p) { return p->values[below(p, p->count)]; }

static rondo_type type_of(const pool *p, rondo_value value) {
  rondo_type type;
  size_t shape[RONDO_MAX_DIMENSIONS], rank;
  assert_ok(rondo_value_shape(p->program, value, &type, shape, &rank));
  return type;
}

static bool is_float(rondo_type type) { return type == RONDO_F32 || type == RONDO_F16 || type == RONDO_BF16; }

static rondo_value pick_of_type(pool *p, rondo_type type) {
  rondo_value value = pick(p);
  if (type_of(p, value) != type) assert_ok(rondo_op_cast(p->program, value, type, &value));
  return value;
}

static rondo_value pick_float(pool *p) {
  const rondo_value value = pick(p);
  return is_float(type_of(p, value)) ? value : pick_of_type(p, RONDO_BF16);
}

/* Operators -------------------------------------------------------------------------------------------------------- */

typedef rondo_status (*unary_operator)(rondo_program *program, rondo_value value, rondo_value *out_value);
typedef rondo_status (*binary_operator)(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out_value);

static rondo_status add_unary(pool *p, rondo_value *out) {
  static const unary_operator operators[] = {
      rondo_op_tanh, rondo_op_relu,   rondo_op_sigmoid,     rondo_op_silu, rondo_op_exp,    rondo_op_log,
      rondo_op_sqrt, rondo_op_rsqrt,  rondo_op_abs,         rondo_op_neg,  rondo_op_square, rondo_op_sin,
      rondo_op_cos,  rondo_op_is_nan, rondo_op_logical_not, rondo_op_sign, rondo_op_floor};
  return operators[below(p, sizeof operators / sizeof operators[0])](p->program, pick_float(p), out);
}

static rondo_status add_binary(pool *p, rondo_value *out) {
  static const binary_operator operators[] = {
      rondo_op_add,       rondo_op_sub,         rondo_op_mul,        rondo_op_maximum,    rondo_op_minimum,
      rondo_op_less,      rondo_op_greater,     rondo_op_equal,      rondo_op_less_equal, rondo_op_greater_equal,
      rondo_op_not_equal, rondo_op_logical_and, rondo_op_logical_or, rondo_op_logical_xor};
  const rondo_value a = pick(p);
  return operators[below(p, sizeof operators / sizeof operators[0])](p->program, a, pick_of_type(p, type_of(p, a)),
                                                                     out);
}

static rondo_status add_of_integers(pool *p, rondo_value *out) {
  static const unary_operator unary[] = {rondo_op_abs, rondo_op_neg, rondo_op_square, rondo_op_relu,
                                         rondo_op_bitwise_not};
  static const binary_operator binary[] = {rondo_op_pow,         rondo_op_div,        rondo_op_remainder,
                                           rondo_op_fmod,        rondo_op_bitwise_or, rondo_op_bitwise_xor,
                                           rondo_op_bitwise_and, rondo_op_shift_left, rondo_op_shift_right};
  static const rondo_type types[] = {RONDO_I32, RONDO_I64, RONDO_I8, RONDO_U8};
  const rondo_value a = pick_of_type(p, types[below(p, 4)]);
  if (below(p, 4) == 0) return rondo_op_clamp(p->program, a, -20.5f, 90, out);
  if (below(p, 2) == 0) return unary[below(p, sizeof unary / sizeof unary[0])](p->program, a, out);
  return binary[below(p, sizeof binary / sizeof binary[0])](p->program, a, pick_of_type(p, type_of(p, a)), out);
}

static rondo_status add_of_floats(pool *p, rondo_value *out) {
  const rondo_value a = pick_float(p);
  switch (below(p, 7)) {
    case 5:
      return rondo_op_pow(p->program, a, pick_of_type(p, type_of(p, a)), out);
    case 6:
      return rondo_op_clamp(p->program, a, -0.5f, 0.75f, out);
    case 0:
      return rondo_op_div(p->program, a, pick_of_type(p, type_of(p, a)), out);
    case 1:
      return rondo_op_scale(p->program, a, -0.75f, out);
    case 2:
      return rondo_op_add_constant(p->program, a, 0.5f, out);
    case 3:
      return rondo_op_gelu(p->program, a, below(p, 2) ? RONDO_GELU_TANH : RONDO_GELU_ERF, out);
    default:
      return rondo_op_dropout(p->program, a, p->probability, out);
  }
}

static rondo_status add_other(pool *p, rondo_value *out) {
  static const rondo_type types[] = {RONDO_F32, RONDO_F16, RONDO_BF16, RONDO_I32,
                                     RONDO_I64, RONDO_I8,  RONDO_U8,   RONDO_BOOL};
  const rondo_value a = pick(p);
  switch (below(p, 5)) {
    case 0:
      return rondo_op_select(p->program, pick_of_type(p, below(p, 2) ? RONDO_BOOL : RONDO_I32), a,
                             pick_of_type(p, type_of(p, a)), out);
    case 1:
      return rondo_op_cast(p->program, a, types[below(p, 8)], out);
    case 2:
      return rondo_op_expand(p->program, a, (size_t[]){3, 5, 8}, 3, out);
    case 3:
      return rondo_op_reshape(p->program, a, (size_t[]){15, 8}, 2, out);
    default:
      return rondo_op_softmax(p->program, pick_of_type(p, RONDO_F32), out); /* joins with nothing */
  }
}

/* An operator whose shapes do not broadcast is left out; the program is then unchanged. */
static void grow(pool *p) {
  const uint32_t operators = 4 + below(p, 24);
  for (uint32_t i = 0; i < operators; i++) {
    const uint32_t kind = below(p, 9);
    rondo_value out;
    const rondo_status status = kind < 2   ? add_unary(p, &out)
                                : kind < 5 ? add_binary(p, &out)
                                : kind < 7 ? add_of_floats(p, &out)
                                : kind < 8 ? add_of_integers(p, &out)
                                           : add_other(p, &out);
    if (status == RONDO_OK) p->values[p->count++] = out;
  }
}

/* Programs --------------------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  rondo_type type;
  size_t shape[3], rank;
} inputs[] = {{"x", RONDO_F32, {3, 5, 8}, 3},      {"row", RONDO_F32, {8}, 1},     {"column", RONDO_F16, {5, 1}, 2},
              {"plane", RONDO_BF16, {3, 1, 8}, 3}, {"k", RONDO_I32, {3, 5, 8}, 3}, {"n", RONDO_I64, {1}, 1},
              {"odd", RONDO_F32, {3, 5, 1}, 3}};
#define INPUTS (sizeof inputs / sizeof inputs[0])

/* Of the sum of all that is finite or not, with respect to a state: gradients are chains too. Where something has none,
 * the program stays without. */
static void train(pool *p) {
  rondo_value loss = p->values[p->count - 1], rate;
  if (type_of(p, loss) != RONDO_F32) assert_ok(rondo_op_cast(p->program, loss, RONDO_F32, &loss));
  assert_ok(rondo_op_sum(p->program, loss, NULL, 0, false, &loss));
  assert_ok(rondo_program_cell(p->program, "rate", 0.01f, &rate));
  const rondo_sgd_options options = {RONDO_SGD_OPTIONS_INIT, .learning_rate = rate};
  const rondo_status status = rondo_program_sgd(p->program, loss, &options);
  (void)status;
}

static rondo_program *random_program(uint64_t *seed) {
  pool p = {.seed = seed};
  char name[16];
  assert_ok(rondo_program_create(NULL, &p.program));
  for (size_t i = 0; i < INPUTS; i++)
    assert_ok(rondo_program_input(p.program, inputs[i].name, inputs[i].type, inputs[i].shape, inputs[i].rank,
                                  &p.values[p.count++]));
  assert_ok(rondo_program_state(p.program, "w", RONDO_F32, (size_t[]){5, 8}, 2, &p.values[p.count++]));
  assert_ok(rondo_program_cell(p.program, "probability", 0.25f, &p.probability));
  grow(&p);
  for (uint32_t i = 0; i < OUTPUTS; i++) {
    (void)snprintf(name, sizeof name, "y%u", i);
    assert_ok(rondo_program_output(p.program, name, p.values[i == 0 ? p.count - 1 : below(&p, p.count)]));
  }
  train(&p);
  return p.program;
}

/* Forms ------------------------------------------------------------------------------------------------------------ */

typedef struct outcome {
  unsigned char outputs[RUNS][OUTPUTS][MOST_BYTES], state[MOST_BYTES];
  rondo_compiled_info info;
} outcome;

static void write_inputs(rondo_compiled *compiled) {
  union {
    float floats[120];
    uint16_t halves[120];
    int32_t words[120];
    int64_t wide[120];
  } data;
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t v = 0; rondo_compiled_get_value(compiled, v, &value) == RONDO_OK; v++) {
    if (value.kind != 'i' && strcmp(value.name, "w") != 0) continue;
    memset(&data, 0, sizeof data);
    for (int i = 0; i < 120; i++) {
      if (value.type == RONDO_F32) data.floats[i] = (float)((i * 7 + (int)v) % 23) / 7 - 1.3f;
      if (value.type == RONDO_F16) data.halves[i] = (uint16_t)(0x3400 + 97 * i);
      if (value.type == RONDO_BF16) data.halves[i] = (uint16_t)(0xbf00 + 13 * i);
      if (value.type == RONDO_I32) data.words[i] = i % 5 == 0 ? 0 : (int32_t)((uint32_t)i * 0x12345671u);
      if (value.type == RONDO_I64) data.wide[i] = 0x7fffffff0LL + i;
    }
    assert_ok(rondo_compiled_write(compiled, value.name, &data, value.bytes));
  }
}

static void read_value(rondo_compiled *compiled, const char *name, unsigned char *to) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t v = 0; rondo_compiled_get_value(compiled, v, &value) == RONDO_OK; v++) {
    if (strcmp(value.name, name) != 0) continue;
    assert_true(value.bytes <= MOST_BYTES);
    assert_ok(rondo_compiled_read(compiled, name, to, value.bytes));
  }
}

static void run_form(test_fixture *t, rondo_program *program, const rondo_compile_options *options, outcome *out) {
  char name[16];
  memset(out, 0, sizeof *out);
  out->info.struct_size = sizeof out->info;
  rondo_compiled *compiled = test_compile_kept(program, t->device, options);
  assert_ok(rondo_compiled_get_info(compiled, &out->info));
  write_inputs(compiled);
  for (int run = 0; run < RUNS; run++) {
    assert_ok(rondo_compiled_run(compiled));
    for (uint32_t i = 0; i < OUTPUTS; i++) {
      (void)snprintf(name, sizeof name, "y%u", i);
      read_value(compiled, name, out->outputs[run][i]);
    }
  }
  read_value(compiled, "w", out->state);
  assert_ok(rondo_compiled_destroy(compiled));
}

static void assert_same(const outcome *a, const outcome *b, uint64_t seed) {
  if (memcmp(a->outputs, b->outputs, sizeof a->outputs) != 0 || memcmp(a->state, b->state, sizeof a->state) != 0)
    fail_msg("program %llu: joined operators give other bits", (unsigned long long)seed);
}

TEST(test_chains_give_the_same_bits) {
  static outcome separate, joined;
  uint64_t operators = 0, in_chains = 0;
  const uint32_t programs = test_effort(test_device_is("cuda") ? 16 : 60); /* a GPU's kernels are compiled */
  for (uint64_t seed = 1; seed <= programs; seed++) {
    uint64_t draws = seed;
    rondo_program *program = random_program(&draws);
    rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .fusion = RONDO_FUSION_NEVER,
                                     .without_patterns = "all"};
    run_form(t, program, &options, &separate);
    assert_int_equal(separate.info.chains, 0);
    options.fusion = RONDO_FUSION_AUTO;
    run_form(t, program, &options, &joined);
    assert_same(&separate, &joined, seed);
    assert_true(joined.info.order_peak <= separate.info.order_peak);
    assert_int_equal(joined.info.operators + joined.info.joined - joined.info.chains, separate.info.operators);
    assert_true(joined.info.chain_kernels <= joined.info.chains);
    operators += separate.info.operators;
    in_chains += joined.info.joined;
    options.record = RONDO_RECORD_NEVER;
    run_form(t, program, &options, &joined);
    assert_same(&separate, &joined, seed);
    options.record = RONDO_RECORD_ALWAYS;
    options.branches = RONDO_BRANCHES_ALWAYS;
    run_form(t, program, &options, &joined);
    assert_same(&separate, &joined, seed);
    rondo_program_destroy(program);
  }
  assert_true(4 * in_chains > operators);
}

/* A known one ------------------------------------------------------------------------------------------------------ */

enum { KNOWN_ROWS = 6, KNOWN_WIDTH = 50, KNOWN_COUNT = KNOWN_ROWS * KNOWN_WIDTH };

/* z = silu(a x + b) y */
static rondo_compiled *compile_known(rondo_device *device) {
  const size_t shape[] = {KNOWN_ROWS, KNOWN_WIDTH}, *row = shape + 1;
  rondo_program *program = test_new_program();
  rondo_value x, a, b, y, z;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  assert_ok(rondo_program_input(program, "y", RONDO_F32, shape, 2, &y));
  assert_ok(rondo_program_state(program, "a", RONDO_F32, row, 1, &a));
  assert_ok(rondo_program_state(program, "b", RONDO_F32, row, 1, &b));
  assert_ok(rondo_op_mul(program, x, a, &z));
  assert_ok(rondo_op_add(program, z, b, &z));
  assert_ok(rondo_op_silu(program, z, &z));
  assert_ok(rondo_op_mul(program, z, y, &z));
  assert_ok(rondo_program_output(program, "z", z));
  return test_compile(program, device, NULL);
}

static void assert_is_one_kernel(const rondo_compiled *compiled, const char *name) {
  rondo_node_params params;
  rondo_node node;
  size_t nodes = 1;
  rondo_compiled_info info = test_compiled_info(compiled);
  assert_int_equal(info.kernels, 1);
  assert_int_equal(info.operators, 1);
  assert_int_equal(info.chains, 1);
  assert_int_equal(info.joined, 4);
  assert_int_equal(info.chain_kernels, 1);
  assert_ok(rondo_graph_nodes(rondo_compiled_graph(compiled), &node, &nodes));
  assert_int_equal(nodes, 1);
  assert_ok(rondo_graph_get_params(rondo_compiled_graph(compiled), node, &params));
  assert_string_equal(rondo_kernel_name(params.as.kernel.kernel), name);
}

/* Four operators, one kernel, whose name says which. */
TEST(test_a_chain_is_one_kernel) {
  float numbers[KNOWN_COUNT], result[KNOWN_COUNT], scale[KNOWN_WIDTH], shift[KNOWN_WIDTH];
  rondo_compiled *compiled = compile_known(t->device);
  assert_is_one_kernel(compiled, "chain_mul_add_silu_mul");
  for (int i = 0; i < KNOWN_COUNT; i++) numbers[i] = (float)(i % 17) / 5 - 1;
  for (int i = 0; i < KNOWN_WIDTH; i++) scale[i] = (float)i / 25 - 1, shift[i] = (float)i / 100;
  assert_ok(rondo_compiled_write(compiled, "x", numbers, sizeof numbers));
  assert_ok(rondo_compiled_write(compiled, "y", numbers, sizeof numbers));
  assert_ok(rondo_compiled_write(compiled, "a", scale, sizeof scale));
  assert_ok(rondo_compiled_write(compiled, "b", shift, sizeof shift));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "z", result, sizeof result));
  for (int i = 0; i < KNOWN_COUNT; i++) {
    const double v = (double)numbers[i] * scale[i % KNOWN_WIDTH] + shift[i % KNOWN_WIDTH];
    numbers[i] = (float)(v / (1 + exp(-v)) * numbers[i]);
  }
  assert_near(result, numbers, KNOWN_COUNT, 1e-5f);
}

/* Images that are scaled ------------------------------------------------------------------------------------------- */

enum { MOST_SCALED = 2 * 3 * 9 * 7 * 16 };

/* An image, and the shape of the numbers that it is scaled with. */
typedef struct scaled_case {
  size_t image[5], numbers[5], rank;
  bool rectifies, factor_first;
} scaled_case;

static size_t elements(const size_t *shape, size_t rank) {
  size_t count = 1;
  for (size_t i = 0; i < rank; i++) count *= shape[i];
  return count;
}

static rondo_program *scaling_program(const scaled_case *c) {
  rondo_program *program = test_new_program();
  rondo_value x, factor, offset, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, c->image, c->rank, &x));
  assert_ok(rondo_program_input(program, "factor", RONDO_F32, c->numbers, c->rank, &factor));
  assert_ok(rondo_program_input(program, "offset", RONDO_F32, c->numbers, c->rank, &offset));
  assert_ok(rondo_op_mul(program, c->factor_first ? factor : x, c->factor_first ? x : factor, &y));
  assert_ok(rondo_op_add(program, c->factor_first ? offset : y, c->factor_first ? y : offset, &y));
  if (c->rectifies) assert_ok(rondo_op_relu(program, y, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

static void scale(test_fixture *t, const scaled_case *c, rondo_fusion_policy fusion, float *out) {
  static float x[MOST_SCALED], factor[MOST_SCALED], offset[MOST_SCALED];
  const size_t count = elements(c->image, c->rank), numbers = elements(c->numbers, c->rank);
  rondo_program *program = scaling_program(c);
  rondo_compiled *compiled =
      test_compile(program, t->device, &(rondo_compile_options){RONDO_COMPILE_OPTIONS_INIT, .fusion = fusion});
  assert_int_equal(test_compiled_info(compiled).chains, fusion == RONDO_FUSION_NEVER ? 0 : 1);
  for (size_t i = 0; i < count; i++) x[i] = i % 29 == 0 ? NAN : (float)(i % 101) / 7 - 5;
  for (size_t i = 0; i < numbers; i++) factor[i] = (float)i / 9 - 2, offset[i] = i % 4 == 0 ? -0.0f : (float)i / 3 - 1;
  assert_ok(rondo_compiled_write(compiled, "x", x, count * sizeof *x));
  assert_ok(rondo_compiled_write(compiled, "factor", factor, numbers * sizeof *factor));
  assert_ok(rondo_compiled_write(compiled, "offset", offset, numbers * sizeof *offset));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", out, count * sizeof *out));
  assert_ok(rondo_compiled_destroy(compiled));
}

/* Plain images, blocks of channels of each size, odd blocks, and one number for all. */
TEST(test_scaled_images_have_the_same_bits) {
  static const scaled_case cases[] = {{{2, 3, 9, 7}, {1, 3, 1, 1}, 4, .rectifies = true},
                                      {{2, 3, 9, 7}, {1, 3, 1, 1}, 4, .rectifies = false, .factor_first = true},
                                      {{2, 3, 9, 7}, {2, 3, 1, 1}, 4, .rectifies = true},
                                      {{2, 3, 9, 7, 16}, {1, 3, 1, 1, 16}, 5, .rectifies = true, .factor_first = true},
                                      {{2, 3, 9, 7, 8}, {1, 3, 1, 1, 8}, 5, .rectifies = true},
                                      {{2, 3, 9, 7, 8}, {2, 3, 1, 1, 8}, 5, .rectifies = false},
                                      {{2, 3, 9, 7, 6}, {1, 3, 1, 1, 6}, 5, .rectifies = true},
                                      {{2, 3, 9, 7, 16}, {1, 1, 1, 1, 1}, 5, .rectifies = true},
                                      {{2, 3, 9, 7, 16}, {1, 3, 9, 1, 16}, 5, .rectifies = true}};
  static float separate[MOST_SCALED], joined[MOST_SCALED];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    scale(t, &cases[i], RONDO_FUSION_NEVER, separate);
    scale(t, &cases[i], RONDO_FUSION_AUTO, joined);
    if (memcmp(separate, joined, elements(cases[i].image, cases[i].rank) * sizeof *joined) != 0)
      fail_msg("case %zu has other bits", i);
  }
}
