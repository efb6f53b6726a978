/* SPDX-License-Identifier: MIT
 * The operators' CUDA sources, and chains of all elementwise operators, compile with the real run-time compiler for the
 * GPU that they are tuned for. Skipped without the compiler.
 */
#include <stdio.h>
#include <string.h>

#include "device/cuda/ptx/ptx_access.h"
#include "support/rondo_test.h"
#include "tensor/operators/common/operator_cuda_sources.h"
#include "tensor/operators/elementwise/chain_source.h"
#include "vendor/nvrtc.h"

/* AD-4: every kernel writes something; of most, the analysis says what. The tests of operators with -ptx in their names
 * compare it with the declarations. */
static size_t examined, understood;

static void examine(const rondo_allocator *allocator, const char *name, const cuda_code *ptx) {
  ptx_findings findings = {0};
  assert_true(ptx->count > 0 && ptx_is_text(ptx->bytes));
  assert_ok(ptx_examine(allocator, ptx->bytes, ptx->count - 1, NULL, &findings));
  for (size_t first = 0, end; first < findings.count; first = end) {
    bool may_write = false, is_written = false;
    for (end = first; end < findings.count && findings.items[end].entry == findings.items[first].entry; end++) {
      may_write = may_write || findings.items[end].is_written != PTX_NO;
      is_written = is_written || findings.items[end].is_written == PTX_YES;
    }
    if (!may_write) print_error("%s: a kernel that writes nothing\n", name);
    assert_true(may_write);
    examined++;
    understood += is_written;
  }
  rondo_array_free(allocator, &findings);
}

/* Of a text with several types: those that the chains below have. The others differ in conversions alone, and the tests
 * with -ptx in their names compile what they run. */
static bool has_type_of_chains(const char *name) {
  static const char *const others[] = {"_f16", "_i32", "_i8", "_bool"};
  const size_t length = strlen(name);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const size_t end = strlen(others[i]);
    if (length > end && strcmp(name + length - end, others[i]) == 0) return false;
  }
  return true;
}

UNIT_TEST(test_sources_compile) {
  const rondo_allocator allocator = rondo_allocator_default();
  size_t compiled = 0;
  for (const rondo_cuda_text *source = rondo_operator_cuda_texts; source->name != NULL; source++) {
    cuda_code code, ptx;
    if (!has_type_of_chains(source->name)) continue;
    assert_ok(cuda_compile(&allocator, source->name, source->text, 9, 0, &code, &ptx));
    assert_true(code.count > 0);
    examine(&allocator, source->name, &ptx);
    rondo_release(&allocator, code.bytes, code.count, 1);
    rondo_release(&allocator, ptx.bytes, ptx.count, 1);
    compiled++;
  }
  assert_true(compiled > 150);
  assert_true(examined > 250 && 2 * understood > examined);
}

/* Chains ----------------------------------------------------------------------------------------------------------- */

/* What all chains of the test read: elements of the type as they lie and broadcast, a condition, what dropout reads. */
enum { EACH, REPEATED, CONDITION, PROBABILITY, RANDOM, INPUTS };

static rondo_chain_form new_form(rondo_type type) {
  rondo_chain_form form = {.input_count = INPUTS, .layout_count = 1, .result_type = (uint8_t)type};
  const rondo_chain_input inputs[INPUTS] = {[EACH] = {(uint8_t)type, RONDO_CHAIN_EACH},
                                            [REPEATED] = {(uint8_t)type, RONDO_CHAIN_LAYOUT},
                                            [CONDITION] = {RONDO_BOOL, RONDO_CHAIN_EACH},
                                            [PROBABILITY] = {RONDO_F32, RONDO_CHAIN_WHOLE},
                                            [RANDOM] = {RONDO_I64, RONDO_CHAIN_WHOLE}};
  memcpy(form.inputs, inputs, sizeof inputs);
  return form;
}

static void compile_form(const rondo_chain_form *form) {
  const rondo_allocator allocator = rondo_allocator_default();
  char name[RONDO_CHAIN_KERNEL_NAME];
  rondo_text text;
  cuda_code code, ptx;
  rondo_text_init(&text, NULL);
  rondo_chain_kernel_name(form, name);
  rondo_chain_add_functions(form, &text);
  rondo_chain_add_kernel(form, name, &text);
  assert_ok(text.failed);
  assert_ok(cuda_compile(&allocator, name, text.bytes, 9, 0, &code, &ptx));
  examine(&allocator, name, &ptx);
  rondo_release(&allocator, code.bytes, code.count, 1);
  rondo_release(&allocator, ptx.bytes, ptx.count, 1);
  rondo_text_deinit(&text);
}

/* The first term is the step before. */
static void add_step(rondo_chain_form *form, uint16_t number, const rondo_operator *row, rondo_type type) {
  rondo_chain_step *step = &form->steps[form->step_count];
  const bool has_condition = strcmp(row->inputs[0], "condition") == 0;
  const uint8_t before = (uint8_t)(form->step_count == 0 ? EACH : RONDO_CHAIN_INPUTS + form->step_count - 1);
  *step = (rondo_chain_step){.row = number, .type = (uint8_t)type, .terms = {before, REPEATED, EACH}};
  if (has_condition) memcpy(step->terms, (uint8_t[]){CONDITION, before, REPEATED}, sizeof step->terms);
  if (row->element.others > 0) memcpy(step->terms, (uint8_t[]){before, PROBABILITY, RANDOM}, sizeof step->terms);
  form->step_count++;
}

static uint16_t row_called(const char *name) {
  size_t count;
  const rondo_operator *const *table = rondo_operator_table(&count);
  uint16_t number = 0;
  while (strcmp(table[number]->name, name) != 0) number++;
  return number;
}

static size_t compile_chains(rondo_type type) {
  size_t rows, seen = 0;
  const rondo_operator *const *table = rondo_operator_table(&rows);
  const uint16_t cast = row_called("cast"), first_comparison = row_called("less"), end = row_called("select");
  rondo_chain_form form = new_form(type);
  for (uint16_t i = 0; i < rows; i++) {
    const bool fits = table[i]->element.compute != NULL &&
                      (type == RONDO_BF16 || type == RONDO_F32 || (table[i]->types & RONDO_TYPE_BIT(RONDO_I64)) != 0);
    const bool gives_flags = i >= first_comparison && i < end;
    if (!fits) continue;
    add_step(&form, i, table[i], gives_flags ? RONDO_BOOL : type);
    if (gives_flags) add_step(&form, cast, table[cast], type);
    seen++;
    if (form.step_count + 2 <= RONDO_CHAIN_STEPS) continue;
    compile_form(&form);
    form = new_form(type);
  }
  if (form.step_count > 0) compile_form(&form);
  return seen;
}

UNIT_TEST(test_chains_compile) {
  assert_true(compile_chains(RONDO_F32) > 40);
  assert_true(compile_chains(RONDO_BF16) > 40);
  assert_true(compile_chains(RONDO_I64) > 10);
  assert_true(compile_chains(RONDO_U8) > 10);
}

int main(void) {
  int version;
  if (cuda_compiler_version(&version) != RONDO_OK) {
    printf("skipped: %s\n", rondo_last_error()->message);
    return 77;
  }
  return test_run_registered();
}
