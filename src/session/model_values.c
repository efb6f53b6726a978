/* SPDX-License-Identifier: MIT
 * Finds the inputs and outputs of a model, and the bytes of one row of each. For a program, builds it for two numbers
 * of rows and compares the two: the first dimension must be the rows times a constant, and states must be equal. A
 * third program has another length; values that differ in it have the length as their second dimension. Also finds the
 * states that runs change. For a function, the user declares inputs and outputs, because they are unknown until the
 * body runs. Called while the model is made. Uses no device, and takes no lock except in
 * rondo_model_make_sized_program.
 */
#include <string.h>

#include "exec/api_check.h"
#include "session/model_lengths.h"
#include "session/model_values.h"
#include "session/serve/cache_slots.h"
#include "session/session_model.h"
#include "tensor/program/program.h"
#include "tensor/program/program_internal.h"
#include "tensor/program/shape.h"

static const char call[] = "rondo_session_add_model";

/* Adds a value to the model's inputs or outputs, which own its name from then on. */
static rondo_status push_value(rondo_session_model *model, const char *name, rondo_session_value value, bool is_input) {
  const rondo_allocator *allocator = &model->session->allocator;
  RONDO_TRY(rondo_allocate_text(allocator, name, &value.name));
  const rondo_status status = is_input ? rondo_array_push(allocator, &model->inputs, &value)
                                       : rondo_array_push(allocator, &model->outputs, &value);
  if (status != RONDO_OK) rondo_release_text(allocator, value.name);
  return status;
}

rondo_status rondo_model_check_rows(const char *called, const rondo_session_model *model, size_t rows) {
  size_t bytes;
  for (size_t i = 0; i < model->inputs.count; i++)
    if (!rondo_checked_multiply(model->inputs.items[i].row_bytes, rows, &bytes))
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                        "%s: %zu rows of '%s' do not fit the address space: give fewer rows", called, rows,
                        model->inputs.items[i].name);
  return RONDO_OK;
}

/* Programs --------------------------------------------------------------------------------------------------------- */

enum { FEW_ROWS = 2, MORE_ROWS = 3 };

static rondo_status refuse_shape(const rondo_session_model *model, const char *what, const char *name,
                                 const rondo_shape *few, const rondo_shape *more, const char *rule) {
  char a[RONDO_SHAPE_TEXT], b[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "rondo_session_add_model: %s '%s' of model '%s' is %s for %d rows and %s for %d: %s", what, name,
                    model->name, rondo_shape_text(a, few), FEW_ROWS, rondo_shape_text(b, more), MORE_ROWS, rule);
}

static bool grows_by_rows(const rondo_shape *few, const rondo_shape *more) {
  if (few->type != more->type || few->rank != more->rank || few->rank == 0) return false;
  if (few->dims[0] % FEW_ROWS != 0 || more->dims[0] % MORE_ROWS != 0) return false;
  if (few->dims[0] / FEW_ROWS != more->dims[0] / MORE_ROWS) return false;
  return few->rank == 1 || memcmp(few->dims + 1, more->dims + 1, (few->rank - 1) * sizeof *few->dims) == 0;
}

/* The programs of a model that are compared. `longer` has FEW_ROWS rows, and `length` positions in each; NULL: the
 * model has no lengths. */
typedef struct probed_programs {
  rondo_program *few, *more, *longer;
  size_t length;
  const rondo_row_inputs *row_inputs;
} probed_programs;

/* The shapes of a value in these programs. */
typedef struct probed_shapes {
  const rondo_shape *few, *more, *longer;
} probed_shapes;

static rondo_status refuse_length(const rondo_session_model *model, const char *what, const char *name,
                                  const probed_programs *p, const probed_shapes *of) {
  char a[RONDO_SHAPE_TEXT], b[RONDO_SHAPE_TEXT];
  return rondo_fail(
      RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
      "rondo_session_add_model: %s '%s' of model '%s' is %s for length %zu and %s for length %zu: it must "
      "be [rows, length, ...], or not depend on the length",
      what, name, model->name, rondo_shape_text(a, of->few), model->length, rondo_shape_text(b, of->longer), p->length);
}

/* Finds the bytes of a position, or 0 if the value does not have the length. */
static rondo_status find_position_bytes(const rondo_session_model *model, const char *what, const char *name,
                                        const probed_programs *p, const probed_shapes *of, size_t *out) {
  const rondo_shape *a = of->few, *b = of->longer;
  *out = 0;
  if (b == NULL || (a->type == b->type && rondo_shape_same(a, b))) return RONDO_OK;
  const bool fits = a->type == b->type && a->rank == b->rank && a->rank >= 2 && a->dims[0] == FEW_ROWS &&
                    b->dims[0] == FEW_ROWS && a->dims[1] == model->length && b->dims[1] == p->length &&
                    memcmp(a->dims + 2, b->dims + 2, (a->rank - 2) * sizeof *a->dims) == 0;
  if (!fits) return refuse_length(model, what, name, p, of);
  *out = rondo_shape_bytes(a) / FEW_ROWS / model->length;
  return RONDO_OK;
}

static const char *name_of(const rondo_row_inputs *names, rondo_row_role role) {
  const char *const all[RONDO_ROW_ROLES] = {
      [RONDO_ROW_LENGTH] = names->length, [RONDO_ROW_SLOT] = names->slot,           [RONDO_ROW_START] = names->start,
      [RONDO_ROW_SOURCE] = names->source, [RONDO_ROW_POSITIONS] = names->positions, [RONDO_ROW_LAST] = names->last};
  return all[role];
}

static rondo_row_role role_of(const rondo_row_inputs *names, const char *name) {
  for (rondo_row_role role = RONDO_ROW_LENGTH; role < RONDO_ROW_ROLES; role++)
    if (name_of(names, role) != NULL && strcmp(name_of(names, role), name) == 0) return role;
  return RONDO_ROW_GIVEN;
}

static rondo_status check_role(const rondo_session_model *model, const char *name, const rondo_session_value *value) {
  const bool has_length = value->role == RONDO_ROW_POSITIONS;
  if (value->role == RONDO_ROW_GIVEN) return RONDO_OK;
  if (value->type != RONDO_I32)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_TYPE,
                      "rondo_session_add_model: the session writes input '%s' of model '%s' "
                      "(rondo_model_options.row_inputs), so it must be of type I32",
                      name, model->name);
  if ((value->position_bytes == sizeof(int32_t)) == has_length &&
      value->row_bytes == (has_length ? model->length : 1) * sizeof(int32_t))
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "rondo_session_add_model: the session writes input '%s' of model '%s' "
                    "(rondo_model_options.row_inputs), so it must be %s",
                    name, model->name, has_length ? "[rows, length]" : "[rows]");
}

static rondo_status add_value(rondo_session_model *model, const char *what, const char *name, const probed_programs *p,
                              const probed_shapes *of, bool is_input) {
  if (!grows_by_rows(of->few, of->more))
    return refuse_shape(model, what, name, of->few, of->more,
                        "the first dimension must be the rows times a constant, and all else the same");
  rondo_session_value value = {.type = of->few->type,
                               .role = is_input ? role_of(p->row_inputs, name) : RONDO_ROW_GIVEN,
                               .row_bytes = rondo_shape_bytes(of->few) / FEW_ROWS};
  RONDO_TRY(find_position_bytes(model, what, name, p, of, &value.position_bytes));
  RONDO_TRY(check_role(model, name, &value));
  return push_value(model, name, value, is_input);
}

static rondo_status refuse_other_values(const rondo_session_model *model, const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "rondo_session_add_model: model '%s' has other %s for other sizes: create the same for all",
                    model->name, what);
}

static rondo_status refuse_other_name(const rondo_session_model *model, const char *few, const char *more) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "rondo_session_add_model: '%s' of model '%s' for %d rows is '%s' for %d rows: create "
                    "the same values in the same order",
                    few, model->name, FEW_ROWS, more == NULL ? "" : more, MORE_ROWS);
}

/* The first value with a name from this index on, or NULL. */
static const rondo_program_value *next_named(const rondo_program *program, size_t *index) {
  while (*index < program->values.count && program->values.items[*index].name == NULL) ++*index;
  return *index < program->values.count ? &program->values.items[(*index)++] : NULL;
}

static rondo_status compare_named(const rondo_session_model *model, const rondo_program_value *a,
                                  const rondo_program_value *b) {
  if (b == NULL || strcmp(a->name, b->name) != 0) return refuse_other_name(model, a->name, b == NULL ? NULL : b->name);
  if (a->kind != b->kind) return refuse_other_values(model, "values");
  if (a->kind == RONDO_VALUE_STATE && !rondo_shape_same(&a->shape, &b->shape))
    return refuse_shape(model, "state", a->name, &a->shape, &b->shape, "states are shared by all numbers of rows");
  return RONDO_OK;
}

/* Results and constants may be others for other sizes: a size may need no operator where another needs one. */
static rondo_status compare_pair(const rondo_session_model *model, const rondo_program *few,
                                 const rondo_program *more) {
  const rondo_program_value *a, *b;
  size_t at_few = 0, at_more = 0;
  while ((a = next_named(few, &at_few)) != NULL) {
    b = next_named(more, &at_more);
    RONDO_TRY(compare_named(model, a, b));
  }
  if (next_named(more, &at_more) != NULL) return refuse_other_values(model, "values");
  if (few->outputs.count != more->outputs.count) return refuse_other_values(model, "outputs");
  for (size_t i = 0; i < few->outputs.count; i++)
    if (strcmp(few->outputs.items[i].name, more->outputs.items[i].name) != 0)
      return refuse_other_name(model, few->outputs.items[i].name, more->outputs.items[i].name);
  return RONDO_OK;
}

/* The value of this name, which the program has. */
static const rondo_shape *shape_of(const rondo_program *program, const char *name) {
  size_t at = 0;
  const rondo_program_value *value = next_named(program, &at);
  while (strcmp(value->name, name) != 0) value = next_named(program, &at);
  return &value->shape;
}

/* The inputs that requests give, or those that the session writes. */
static rondo_status add_inputs(rondo_session_model *model, const probed_programs *p, bool is_given) {
  for (uint32_t i = 0; i < p->few->values.count; i++) {
    const rondo_program_value *value = &p->few->values.items[i];
    if (value->kind != RONDO_VALUE_INPUT) continue;
    const probed_shapes of = {&value->shape, shape_of(p->more, value->name),
                              p->longer == NULL ? NULL : shape_of(p->longer, value->name)};
    if ((role_of(p->row_inputs, value->name) == RONDO_ROW_GIVEN) == is_given)
      RONDO_TRY(add_value(model, "input", value->name, p, &of, true));
  }
  if (is_given) model->given_inputs = model->inputs.count;
  return RONDO_OK;
}

static rondo_status add_outputs(rondo_session_model *model, const probed_programs *p) {
  for (size_t i = 0; i < p->few->outputs.count; i++) {
    const rondo_named_output *output = &p->few->outputs.items[i];
    const probed_shapes of = {
        rondo_program_shape(p->few, output->value), rondo_program_shape(p->more, p->more->outputs.items[i].value),
        p->longer == NULL ? NULL : rondo_program_shape(p->longer, p->longer->outputs.items[i].value)};
    RONDO_TRY(add_value(model, "output", output->name, p, &of, false));
  }
  return RONDO_OK;
}

static rondo_status check_row_inputs(const rondo_session_model *model, const rondo_row_inputs *names) {
  for (rondo_row_role role = RONDO_ROW_LENGTH; role < RONDO_ROW_ROLES; role++) {
    bool is_found = name_of(names, role) == NULL;
    for (size_t i = model->given_inputs; i < model->inputs.count; i++) is_found |= model->inputs.items[i].role == role;
    if (!is_found)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NAME,
                        "rondo_session_add_model: model '%s' has no input '%s', which the session is to write "
                        "(rondo_model_options.row_inputs)",
                        model->name, name_of(names, role));
  }
  return RONDO_OK;
}

static rondo_status check_counts(const rondo_session_model *model) {
  if (model->given_inputs == 0 || (model->outputs.count == 0 && !rondo_model_reads_source(model)))
    return rondo_fail(
        RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
        "rondo_session_add_model: model '%s' has %zu inputs and %zu outputs: it needs at least one of each",
        model->name, model->given_inputs, model->outputs.count);
  if (model->inputs.count <= RONDO_SESSION_MAX_VALUES && model->outputs.count <= RONDO_SESSION_MAX_VALUES)
    return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "rondo_session_add_model: model '%s' has %zu inputs and %zu outputs: use at most %d of each",
                    model->name, model->inputs.count, model->outputs.count, RONDO_SESSION_MAX_VALUES);
}

static rondo_status compare_all(rondo_session_model *model, const probed_programs *p) {
  RONDO_TRY(compare_pair(model, p->few, p->more));
  if (p->longer != NULL) RONDO_TRY(compare_pair(model, p->few, p->longer));
  RONDO_TRY(add_inputs(model, p, true));
  RONDO_TRY(add_inputs(model, p, false));
  RONDO_TRY(add_outputs(model, p));
  RONDO_TRY(check_row_inputs(model, p->row_inputs));
  return check_counts(model);
}

static bool is_cache(const rondo_cache_slots *slots, const char *name) {
  for (size_t i = 0; slots != NULL && i < slots->caches.count; i++)
    if (strcmp(slots->caches.items[i], name) == 0) return true;
  return false;
}

/* Refuses states that runs on several streams would change at the same time. In caches, each sequence has a slot. */
static rondo_status add_changed(rondo_session_model *model, const char *name, const rondo_operation *operation) {
  const rondo_allocator *allocator = &model->session->allocator;
  char *copy;
  if (model->session->options.streams > 1)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_RACE,
                      "rondo_session_add_model: model '%s' changes the state '%s' by %s, but the session runs it on %u "
                      "streams at once: use one stream (rondo_session_options.streams), or make it an output",
                      model->name, name, operation->row->name, (unsigned)model->session->options.streams);
  RONDO_TRY(rondo_allocate_text(allocator, name, &copy));
  const rondo_status status = rondo_array_push(allocator, &model->changed, &copy);
  if (status != RONDO_OK) rondo_release_text(allocator, copy);
  return status;
}

/* A state is changed by one operation, or by several, each of which changes a part of it. */
static bool is_changed(const rondo_session_model *model, const char *name) {
  for (size_t i = 0; i < model->changed.count; i++)
    if (strcmp(model->changed.items[i], name) == 0) return true;
  return false;
}

static rondo_status find_changed(rondo_session_model *model, const rondo_program *program) {
  for (size_t i = 0; i < program->operations.count; i++) {
    const rondo_operation *operation = &program->operations.items[i];
    RONDO_EACH_INPUT(k, operation) {
      const char *name = program->values.items[operation->inputs[k]].name;
      if (!rondo_operation_updates(operation, k) || is_cache(model->head->slots, name)) continue;
      if (!is_changed(model, name)) RONDO_TRY(add_changed(model, name, operation));
    }
  }
  return RONDO_OK;
}

rondo_status rondo_model_probe(rondo_session_model *model, const rondo_row_inputs *row_inputs) {
  probed_programs p = {.length = model->length > 1 ? model->length - 1 : 2, .row_inputs = row_inputs};
  const rondo_model_size other = {
      .rows = FEW_ROWS, .length = p.length, .slots = model->head->slots == NULL ? 0 : model->head->slots->count};
  rondo_status status = rondo_model_make_program(model, FEW_ROWS, model->length, &p.few);
  if (status == RONDO_OK) status = rondo_model_make_program(model, MORE_ROWS, model->length, &p.more);
  if (status == RONDO_OK && model->length > 0) status = rondo_model_make_sized_program(model, &other, &p.longer);
  if (status == RONDO_OK) status = compare_all(model, &p);
  if (status == RONDO_OK) status = find_changed(model, p.few);
  rondo_program_destroy(p.few);
  rondo_program_destroy(p.more);
  rondo_program_destroy(p.longer);
  return status;
}

/* Cache slots ------------------------------------------------------------------------------------------------------ */

static rondo_status refuse_caches(const rondo_session_model *model, const char *name, const rondo_shape *one,
                                  const rondo_shape *two) {
  char a[RONDO_SHAPE_TEXT], b[RONDO_SHAPE_TEXT];
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "rondo_session_add_model: state '%s' of model '%s' is %s for 1 slot and %s for 2: the first "
                    "dimension of a cache must be the number of slots, and other states must not depend on it",
                    name, model->name, rondo_shape_text(a, one), rondo_shape_text(b, two));
}

/* Finds the caches, which are the states that depend on the number of slots. */
static rondo_status find_caches(rondo_session_model *model, const rondo_program *one, const rondo_program *two) {
  if (one->values.count != two->values.count) return refuse_other_values(model, "values");
  for (uint32_t i = 0; i < one->values.count; i++) {
    const char *name = one->values.items[i].name;
    const rondo_shape *a = &one->values.items[i].shape, *b = &two->values.items[i].shape;
    if (one->values.items[i].kind != RONDO_VALUE_STATE || rondo_shape_same(a, b)) continue;
    if (a->rank == 0 || a->rank != b->rank || a->dims[0] != 1 || b->dims[0] != 2 ||
        memcmp(a->dims + 1, b->dims + 1, (a->rank - 1) * sizeof *a->dims) != 0)
      return refuse_caches(model, name, a, b);
    RONDO_TRY(rondo_cache_slots_add_cache(model->session, model->slots, name, rondo_shape_bytes(a)));
  }
  if (model->slots->caches.count > 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "rondo_session_add_model: no state of model '%s' depends on the number of slots: caches are states "
                    "whose first dimension is rondo_model_size.slots",
                    model->name);
}

/* What a source is written to must be among the caches of the model, which its steps read. */
static rondo_status find_source_caches(rondo_session_model *model, const rondo_program *one, const rondo_program *two) {
  size_t found = 0;
  if (one->values.count != two->values.count) return refuse_other_values(model, "values");
  for (uint32_t i = 0; i < one->values.count; i++) {
    const rondo_program_value *value = &one->values.items[i];
    if (value->kind != RONDO_VALUE_STATE || rondo_shape_same(&value->shape, &two->values.items[i].shape)) continue;
    if (!is_cache(model->head->slots, value->name))
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                        "rondo_session_add_model: state '%s' of model '%s' depends on the number of slots, and model "
                        "'%s' has no such cache to read",
                        value->name, model->name, model->head->name);
    found++;
  }
  if (found > 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "rondo_session_add_model: no state of model '%s' depends on the number of slots: it must write to "
                    "caches that model '%s' reads",
                    model->name, model->head->name);
}

static rondo_status compare_slots(rondo_session_model *model,
                                  rondo_status (*compare)(rondo_session_model *model, const rondo_program *one,
                                                          const rondo_program *two)) {
  rondo_program *one = NULL, *two = NULL;
  const rondo_model_size sizes[] = {{FEW_ROWS, model->length, 1}, {FEW_ROWS, model->length, 2}};
  rondo_status status = rondo_model_make_sized_program(model, &sizes[0], &one);
  if (status == RONDO_OK) status = rondo_model_make_sized_program(model, &sizes[1], &two);
  if (status == RONDO_OK) status = compare(model, one, two);
  rondo_program_destroy(one);
  rondo_program_destroy(two);
  return status;
}

rondo_status rondo_model_check_source(rondo_session_model *model) { return compare_slots(model, find_source_caches); }

rondo_status rondo_model_make_slots(rondo_session_model *model, const rondo_model_options *o) {
  RONDO_TRY(rondo_cache_slots_make(model->session, o, &model->slots));
  RONDO_TRY(compare_slots(model, find_caches));
  const uint64_t bytes = model->slots->slot_bytes;
  const uint64_t most = o->budget_slot_bytes == 0 ? o->slots : o->budget_slot_bytes / bytes;
  if (most == 0)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE,
                      "rondo_session_add_model: a cache slot of model '%s' takes %llu bytes, and the budget is %llu "
                      "(rondo_model_options.budget_slot_bytes): raise it, or make shorter caches (slot_positions)",
                      model->name, (unsigned long long)bytes, (unsigned long long)o->budget_slot_bytes);
  return rondo_cache_slots_reserve(model->session, model->slots, (uint32_t)(most < o->slots ? most : o->slots));
}

/* Functions -------------------------------------------------------------------------------------------------------- */

static rondo_status check_values(const char *what, const rondo_row_value *values, size_t count) {
  if (count == 0 || count > RONDO_SESSION_MAX_VALUES)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: a function of %zu %s: give 1 to %d (rondo_model_options.%s)", call, count, what,
                      RONDO_SESSION_MAX_VALUES, what);
  RONDO_TRY(rondo_require(call, what, values));
  for (size_t i = 0; i < count; i++) {
    RONDO_TRY(rondo_require(call, "a value's name", values[i].name));
    if (values[i].rank >= RONDO_TREE_MAX_RANK || rondo_type_bytes(values[i].type) == 0)
      return rondo_fail(
          RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
          "%s: '%s' of the %s has rows of rank %u and type %d: give a rank of at most %d and a type of rondo_type",
          call, values[i].name, what, values[i].rank, (int)values[i].type, RONDO_TREE_MAX_RANK - 1);
  }
  return RONDO_OK;
}

rondo_status rondo_function_model_check(const rondo_model_options *o) {
  if (o->build != NULL || o->weights != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: a model is a program, with `build` and `weights`, or a function, with `body`, not both",
                      call);
  RONDO_TRY(check_values("inputs", o->inputs, o->input_count));
  RONDO_TRY(check_values("outputs", o->outputs, o->output_count));
  if (o->constant_count > 0) RONDO_TRY(rondo_require(call, "constants", o->constants));
  for (size_t i = 0; i < o->constant_count; i++) {
    RONDO_TRY(rondo_require(call, "a constant's address", o->constants[i].address));
    if (o->constants[i].bytes == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                        "%s: constant %zu at %p has 0 bytes: give its size, or leave it out", call, i,
                        o->constants[i].address);
  }
  return RONDO_OK;
}

static rondo_status fail_size(const rondo_row_value *given) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                    "%s: a row of '%s' has no bytes, or more than fit the address space: give other sizes", call,
                    given->name);
}

static rondo_status write_value(const rondo_row_value *given, rondo_session_value *out) {
  out->type = given->type;
  out->rank = given->rank;
  out->row_bytes = rondo_type_bytes(given->type);
  for (uint32_t i = 0; i < given->rank; i++) {
    out->shape[i] = given->shape[i];
    if (!rondo_checked_multiply(out->row_bytes, given->shape[i], &out->row_bytes)) return fail_size(given);
  }
  return out->row_bytes == 0 ? fail_size(given) : RONDO_OK;
}

static rondo_status declare_value(rondo_session_model *model, const rondo_row_value *given, bool is_input) {
  rondo_session_value value = {.name = NULL};
  RONDO_TRY(write_value(given, &value));
  return push_value(model, given->name, value, is_input);
}

rondo_status rondo_function_model_fill(rondo_session_model *model, const rondo_model_options *o) {
  const rondo_allocator *allocator = &model->session->allocator;
  for (size_t i = 0; i < o->input_count; i++) RONDO_TRY(declare_value(model, &o->inputs[i], true));
  model->given_inputs = model->inputs.count;
  for (size_t i = 0; i < o->output_count; i++) RONDO_TRY(declare_value(model, &o->outputs[i], false));
  RONDO_TRY(rondo_array_reserve(allocator, &model->constants, o->constant_count));
  for (size_t i = 0; i < o->constant_count; i++) {
    model->constants.items[i] = o->constants[i];
    model->constants.items[i].name = NULL;
  }
  model->constants.count = o->constant_count;
  return RONDO_OK;
}
