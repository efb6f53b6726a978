/* SPDX-License-Identifier: MIT
 * Constants that are computed at import. Nodes whose inputs are constants add their operators to a program on a CPU
 * device, the folding program. It is compiled and run when the bytes of a result are needed, and then a new one begins.
 * A result is deferred until then: its constant names the program and the value in it. Small results come from the same
 * run as the one that was asked for.
 *
 * Invariant: a constant has elements, or a folding program that can still compute them.
 * Threads: an import belongs to one thread.
 */
#include "onnx/import/folding.h"

#include <stdio.h>
#include <string.h>

#include <rondo/operators.h>

#include "base/error.h"
#include "onnx/format/widened_elements.h"
#include "onnx/import/build_result.h"
#include "onnx/import/constant.h"
#include "tensor/program/program.h"

enum { SMALL, LARGE }; /* the current folding programs of an importer */

#define NAME_BYTES 32

/* Of constants, and of results, in a folding program. The time to add to a program and to compile it grows faster than
 * its size, and a loop may compute many constants. */
#define MOST_VALUES 1024

struct rondo_onnx_folding {
  rondo_program *program;
  RONDO_ARRAY(rondo_onnx_constant *) deferred; /* those that are still to be computed */
  RONDO_ARRAY(rondo_onnx_constant *) states;   /* the state "state.<index>" of the program is each of these */
  size_t borrowed;                             /* constants of the program, whose elements are read in place */
  rondo_onnx_folding *previous;
};

/* Programs --------------------------------------------------------------------------------------------------------- */

static bool is_full(const rondo_onnx_folding *folding) {
  return folding->states.count + folding->borrowed >= MOST_VALUES || folding->deferred.count >= MOST_VALUES;
}

/* Whether the program of large constants is for nodes with these inputs. What is deferred stays so. */
static bool is_of_large(const rondo_onnx_importer *importer, const rondo_onnx_import_value *inputs, size_t count) {
  bool is_large = false, is_of_small = false;
  for (size_t i = 0; i < count; i++) {
    const rondo_onnx_constant *constant = inputs[i].constant;
    if (inputs[i].kind == RONDO_ONNX_NOTHING || constant == NULL) continue;
    if (constant->folding != NULL && constant->folding == importer->foldings[LARGE]) return true;
    is_of_small |= constant->folding != NULL && constant->folding == importer->foldings[SMALL];
    is_large |= constant->bytes > RONDO_ONNX_SMALL_BYTES;
  }
  return is_large && !is_of_small;
}

rondo_status rondo_onnx_folding_open(rondo_onnx_importer *importer, const rondo_onnx_import_value *inputs, size_t count,
                                     rondo_onnx_folding **out) {
  rondo_onnx_folding **current = &importer->foldings[is_of_large(importer, inputs, count) ? LARGE : SMALL];
  const rondo_program_options options = {RONDO_PROGRAM_OPTIONS_INIT, .name = "constants of an ONNX model",
                                         .allocator = &importer->allocator};
  *out = *current;
  if (*out != NULL && !is_full(*out)) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof **out, out));
  RONDO_TRY(rondo_program_create(&options, &(*out)->program));
  (*out)->previous = importer->last_folding;
  importer->last_folding = *current = *out;
  return RONDO_OK;
}

rondo_program *rondo_onnx_folding_program(const rondo_onnx_folding *folding) { return folding->program; }

static rondo_status add_state(rondo_onnx_importer *importer, rondo_onnx_folding *folding, rondo_onnx_constant *constant,
                              rondo_type type) {
  char name[NAME_BYTES];
  RONDO_TRY(rondo_array_reserve(&importer->allocator, &folding->states, folding->states.count + 1));
  (void)snprintf(name, sizeof name, "state.%zu", folding->states.count);
  const rondo_onnx_shape held = rondo_onnx_program_shape(&constant->shape);
  RONDO_TRY(rondo_program_state(folding->program, name, type, held.dims, held.rank, &constant->folding_state));
  constant->last_folding = folding;
  return rondo_array_push(&importer->allocator, &folding->states, &constant);
}

/* Elements that are in the file at any offset, or in a type that programs lack, are copied. */
static rondo_status add_held(rondo_onnx_importer *importer, rondo_onnx_folding *folding,
                             rondo_onnx_constant *constant) {
  rondo_type type;
  RONDO_TRY(rondo_onnx_held_type(importer, constant->shape.type, &type));
  const bool is_plain = rondo_onnx_widened_type(constant->shape.type) == 0 && constant->elements != NULL;
  if (!is_plain || (uintptr_t)constant->elements % rondo_type_bytes(type) != 0)
    return add_state(importer, folding, constant, type);
  const rondo_onnx_shape held = rondo_onnx_program_shape(&constant->shape);
  RONDO_TRY(rondo_program_add_borrowed(folding->program, type, held.dims, held.rank, constant->elements,
                                       &constant->folding_state));
  constant->last_folding = folding;
  folding->borrowed++;
  return RONDO_OK;
}

/* Programs have a number where all elements are equal. */
static rondo_status add_number(rondo_onnx_folding *folding, rondo_onnx_constant *constant, rondo_type type,
                               float number) {
  rondo_program *program = folding->program;
  rondo_value *value = &constant->folding_state;
  RONDO_TRY(rondo_program_add_number(program, number, value));
  if (type != RONDO_F32) RONDO_TRY(rondo_op_cast(program, *value, type, value));
  const rondo_onnx_shape held = rondo_onnx_program_shape(&constant->shape);
  RONDO_TRY(rondo_op_expand(program, *value, held.dims, held.rank, value));
  constant->last_folding = folding;
  return RONDO_OK;
}

rondo_status rondo_onnx_folding_operand(rondo_onnx_importer *importer, rondo_onnx_folding *folding,
                                        rondo_onnx_constant *constant, rondo_value *out) {
  if (constant->folding == folding) {
    *out = constant->result;
    return RONDO_OK;
  }
  rondo_type type;
  float number;
  const bool is_number = rondo_onnx_constant_is_number(constant, &type, &number);
  if (!is_number) RONDO_TRY(rondo_onnx_folding_compute(importer, constant));
  if (constant->last_folding != folding)
    RONDO_TRY(is_number ? add_number(folding, constant, type, number) : add_held(importer, folding, constant));
  *out = constant->folding_state;
  return RONDO_OK;
}

rondo_status rondo_onnx_folding_defer(rondo_onnx_importer *importer, rondo_onnx_folding *folding,
                                      const rondo_onnx_shape *shape, rondo_value result, rondo_onnx_constant **out) {
  RONDO_TRY(rondo_scratch_take(&importer->scratch, 1, sizeof **out, out));
  const size_t count = rondo_onnx_shape_count(shape);
  **out = (rondo_onnx_constant){
      .shape = *shape, .count = count, .bytes = rondo_onnx_shape_bytes(shape), .folding = folding, .result = result};
  return rondo_array_push(&importer->allocator, &folding->deferred, out);
}

/* Computing -------------------------------------------------------------------------------------------------------- */

static bool is_computed_with(const rondo_onnx_constant *wanted, const rondo_onnx_constant *other) {
  return other == wanted || other->bytes <= RONDO_ONNX_SMALL_BYTES;
}

static const char *output_name(char name[NAME_BYTES], size_t index) {
  (void)snprintf(name, NAME_BYTES, "output.%zu", index);
  return name;
}

static rondo_status add_outputs(const rondo_onnx_folding *folding, const rondo_onnx_constant *wanted) {
  char name[NAME_BYTES];
  for (size_t i = 0; i < folding->deferred.count; i++)
    if (is_computed_with(wanted, folding->deferred.items[i]))
      RONDO_TRY(rondo_program_output(folding->program, output_name(name, i), folding->deferred.items[i]->result));
  return RONDO_OK;
}

static rondo_status write_states(rondo_onnx_importer *importer, const rondo_onnx_folding *folding,
                                 rondo_compiled *compiled) {
  char name[NAME_BYTES];
  for (size_t i = 0; i < folding->states.count; i++) {
    rondo_onnx_constant *constant = folding->states.items[i];
    const void *elements;
    rondo_type type;
    RONDO_TRY(rondo_onnx_held_type(importer, constant->shape.type, &type));
    RONDO_TRY(rondo_onnx_constant_elements(importer, constant, &elements));
    (void)snprintf(name, sizeof name, "state.%zu", i);
    RONDO_TRY(rondo_compiled_write(compiled, name, elements, constant->count * rondo_type_bytes(type)));
  }
  return RONDO_OK;
}

/* The elements of a type that programs lack are read as those of the wider type. */
static rondo_status read_widened(rondo_onnx_importer *importer, rondo_compiled *compiled, const char *name,
                                 const rondo_onnx_constant *held, void *elements) {
  void *wide;
  const size_t bytes_each = rondo_type_bytes(rondo_onnx_widened_type(held->shape.type));
  RONDO_TRY(rondo_allocate_items(&importer->allocator, held->count, bytes_each, &wide));
  const rondo_status status = rondo_compiled_read(compiled, name, wide, held->count * bytes_each);
  if (status == RONDO_OK) rondo_onnx_narrow(held->shape.type, wide, held->count, elements);
  rondo_release(&importer->allocator, wide, held->count, bytes_each);
  return status;
}

static rondo_status read_result(rondo_onnx_importer *importer, rondo_compiled *compiled, const char *name,
                                rondo_onnx_constant *constant) {
  void *elements;
  const bool is_widened = rondo_onnx_widened_type(constant->shape.type) != 0;
  RONDO_TRY(rondo_onnx_constant_make_elements(importer, constant, &elements));
  RONDO_TRY(is_widened ? read_widened(importer, compiled, name, constant, elements)
                       : rondo_compiled_read(compiled, name, elements, constant->bytes));
  constant->folding = NULL;
  importer->build->info.folded_bytes += constant->bytes;
  return RONDO_OK;
}

/* Those that were read leave the list, also if a later one fails. */
static rondo_status read_results(rondo_onnx_importer *importer, rondo_onnx_folding *folding, rondo_compiled *compiled,
                                 const rondo_onnx_constant *wanted) {
  char name[NAME_BYTES];
  rondo_status status = RONDO_OK;
  size_t kept = 0;
  for (size_t i = 0; i < folding->deferred.count; i++) {
    rondo_onnx_constant *constant = folding->deferred.items[i];
    if (status == RONDO_OK && is_computed_with(wanted, constant))
      status = read_result(importer, compiled, output_name(name, i), constant);
    if (constant->folding != NULL) folding->deferred.items[kept++] = constant;
  }
  folding->deferred.count = kept;
  return status;
}

static rondo_status count_folding(rondo_onnx_importer *importer) {
  if (importer->build->info.foldings++ < RONDO_ONNX_MOST_FOLDINGS) return RONDO_OK;
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "the model computes constants in more than %u programs, with those of its loops each time: export "
                    "it with fewer iterations of loops whose conditions or shapes are computed",
                    RONDO_ONNX_MOST_FOLDINGS);
}

/* A run writes its intermediate values and copies states that were computed. */
static rondo_status count_work(rondo_onnx_importer *importer, const rondo_onnx_folding *folding,
                               const rondo_compiled_info *info) {
  uint64_t bytes = info->sum_bytes;
  for (size_t i = 0; i < folding->states.count; i++)
    if (folding->states.items[i]->owner != NULL) bytes += folding->states.items[i]->bytes;
  return rondo_onnx_count_folded_work(importer, bytes);
}

/* States are copies of constants that exist, so they do not count. */
static rondo_status check_limits(rondo_onnx_importer *importer, const rondo_onnx_folding *folding,
                                 const rondo_compiled *compiled, const rondo_onnx_constant *wanted) {
  rondo_compiled_info info = {.struct_size = sizeof info};
  uint64_t results = 0;
  RONDO_TRY(rondo_compiled_get_info(compiled, &info));
  RONDO_TRY(count_work(importer, folding, &info));
  for (size_t i = 0; i < folding->deferred.count; i++)
    if (is_computed_with(wanted, folding->deferred.items[i])) results += folding->deferred.items[i]->bytes;
  return rondo_onnx_check_folding(importer, results, info.arena_bytes > results ? info.arena_bytes - results : 0);
}

static rondo_status run(rondo_onnx_importer *importer, rondo_onnx_folding *folding, const rondo_onnx_constant *wanted) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER,
                                         .branches = RONDO_BRANCHES_NEVER, .without_patterns = "all"};
  const rondo_device_options device = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &importer->allocator};
  rondo_compiled *compiled;
  RONDO_TRY(count_folding(importer));
  if (importer->device == NULL) RONDO_TRY(rondo_device_open("cpu", &device, &importer->device));
  RONDO_TRY(rondo_compile(folding->program, importer->device, &options, &compiled));
  rondo_status status = check_limits(importer, folding, compiled, wanted);
  if (status == RONDO_OK) status = write_states(importer, folding, compiled);
  if (status == RONDO_OK) status = rondo_compiled_run(compiled);
  if (status == RONDO_OK) status = read_results(importer, folding, compiled, wanted);
  RONDO_THEN(status, rondo_compiled_destroy(compiled));
  return status;
}

rondo_status rondo_onnx_folding_compute(rondo_onnx_importer *importer, rondo_onnx_constant *constant) {
  rondo_onnx_folding *folding = constant->folding;
  if (folding == NULL) return rondo_onnx_constant_hold(importer, constant);
  const rondo_program_mark mark = rondo_program_get_mark(folding->program);
  rondo_status status = add_outputs(folding, constant);
  if (status == RONDO_OK) status = run(importer, folding, constant);
  rondo_program_roll_back(folding->program, mark); /* the outputs: others may be computed later */
  for (size_t i = 0; i < 2; i++)
    if (importer->foldings[i] == folding) importer->foldings[i] = NULL;
  return rondo_fail_context(status, "a constant is computed at import");
}

/* The end ---------------------------------------------------------------------------------------------------------- */

void rondo_onnx_folding_leave(rondo_onnx_importer *importer) {
  importer->foldings[SMALL] = importer->foldings[LARGE] = NULL;
}

rondo_status rondo_onnx_folding_end(rondo_onnx_importer *importer) {
  for (rondo_onnx_folding *folding = importer->last_folding; folding != NULL; folding = folding->previous) {
    rondo_program_destroy(folding->program);
    rondo_array_free(&importer->allocator, &folding->deferred);
    rondo_array_free(&importer->allocator, &folding->states);
  }
  rondo_onnx_folding_leave(importer);
  importer->last_folding = NULL;
  return rondo_device_close(importer->device);
}
