/* SPDX-License-Identifier: MIT
 * What instructions do to addresses: opcodes to rules and accesses. An instruction that is not in the table may use the
 * registers that it names in any way. Only results of 64 bits can be addresses: a smaller one that is made of an
 * address lets the parameter escape, and two of them together give an opaque value. Threads: one at a time.
 */
#include "device/cuda/ptx/ptx_flow.h"

#include "base/error.h"

enum { MOST_PARTS = 24 };

/* The parts of an opcode between its dots. */
typedef struct opcode {
  ptx_word parts[MOST_PARTS];
  size_t count;
  uint32_t first_bits, last_bits; /* of the first and the last type; 0 without a type */
  char first_letter, last_letter;
} opcode;

/* One instruction while its rules are made. */
typedef struct translation {
  ptx_flow *flow;
  const ptx_statement *statement;
  opcode code;
} translation;

/* Opcodes ---------------------------------------------------------------------------------------------------------- */

static void add_part(opcode *code, ptx_word part) {
  const uint32_t bits = ptx_type_bits(part);
  if (code->count < MOST_PARTS) code->parts[code->count++] = part;
  if (bits == 0) return;
  if (code->first_bits == 0) {
    code->first_bits = bits;
    code->first_letter = part.at[0];
  }
  code->last_bits = bits;
  code->last_letter = part.at[0];
}

static opcode read_opcode(ptx_word word) {
  opcode code = {.count = 0};
  size_t start = 0;
  for (size_t i = 0; i <= word.count; i++) {
    if (i < word.count && word.at[i] != '.') continue;
    add_part(&code, (ptx_word){word.at + start, i - start});
    start = i + 1;
  }
  return code;
}

/* The first part after the name that begins with the text; 0 if no part does. */
static size_t find_part(const opcode *code, const char *text) {
  for (size_t i = 1; i < code->count; i++)
    if (ptx_word_begins(code->parts[i], text)) return i;
  return 0;
}

static bool has_part(const opcode *code, const char *text) { return find_part(code, text) > 0; }

/* Global memory, and generic addresses, which may be of global memory. */
static bool is_global(const opcode *code) {
  return !has_part(code, "shared") && !has_part(code, "local") && !has_part(code, "param");
}

/* Operands --------------------------------------------------------------------------------------------------------- */

static rondo_status add_rule(ptx_flow *flow, ptx_operation operation, uint32_t to, uint32_t a, uint32_t b) {
  const ptx_rule rule = {operation, to, a, b};
  return rondo_array_push(flow->allocator, &flow->rules, &rule);
}

static rondo_status let_escape(ptx_flow *flow, uint32_t slot) {
  return add_rule(flow, PTX_COPY, PTX_SLOT_OPAQUE, slot, slot);
}

static const ptx_atom *first_atom(const translation *t, uint32_t operand, size_t *out_count) {
  const ptx_atom *first = NULL;
  *out_count = 0;
  for (size_t i = 0; i < t->statement->atoms.count; i++) {
    const ptx_atom *atom = &t->statement->atoms.items[i];
    if (atom->operand != operand) continue;
    if (first == NULL) first = atom;
    (*out_count)++;
  }
  return first;
}

/* The slot of a name that is read. The address of a parameter itself may lead anywhere. */
static rondo_status read_name(ptx_flow *flow, ptx_word name, uint32_t *out) {
  RONDO_TRY(ptx_flow_slot(flow, name, false, out));
  if (!ptx_is_parameter(flow, *out)) return RONDO_OK;
  RONDO_TRY(let_escape(flow, *out));
  *out = PTX_SLOT_OPAQUE;
  return RONDO_OK;
}

static rondo_status name_escapes(ptx_flow *flow, ptx_word name) {
  uint32_t slot;
  RONDO_TRY(read_name(flow, name, &slot));
  return let_escape(flow, slot);
}

/* All names of an operand may be used in any way. */
static rondo_status let_operand_escape(const translation *t, uint32_t operand) {
  for (size_t i = 0; i < t->statement->atoms.count; i++) {
    const ptx_atom *atom = &t->statement->atoms.items[i];
    if (atom->operand == operand && atom->name.count > 0) RONDO_TRY(name_escapes(t->flow, atom->name));
  }
  return RONDO_OK;
}

/* The value of an operand: opaque if it has several parts. */
static rondo_status source(const translation *t, uint32_t operand, uint32_t *out) {
  size_t count;
  const ptx_atom *atom = first_atom(t, operand, &count);
  *out = PTX_SLOT_OPAQUE;
  if (count > 1) return let_operand_escape(t, operand);
  if (count == 0) return RONDO_OK;
  if (atom->name.count > 0) return read_name(t->flow, atom->name, out);
  *out = PTX_SLOT_COUNT;
  return RONDO_OK;
}

/* All names of an operand get the value of a slot. */
static rondo_status set_operand(const translation *t, uint32_t operand, uint32_t from) {
  for (size_t i = 0; i < t->statement->atoms.count; i++) {
    const ptx_atom *atom = &t->statement->atoms.items[i];
    uint32_t slot;
    if (atom->operand != operand || atom->name.count == 0) continue;
    RONDO_TRY(ptx_flow_slot(t->flow, atom->name, true, &slot));
    if (ptx_is_parameter(t->flow, slot)) slot = PTX_SLOT_OPAQUE;
    RONDO_TRY(add_rule(t->flow, PTX_COPY, slot, from, from));
  }
  return RONDO_OK;
}

/* The first operand gets the result of an operation on two others. */
static rondo_status set_result(const translation *t, ptx_operation operation, uint32_t a, uint32_t b) {
  uint32_t result;
  RONDO_TRY(ptx_flow_add_slot(t->flow, PTX_UNSET, &result));
  RONDO_TRY(add_rule(t->flow, operation, result, a, b));
  return set_operand(t, 0, result);
}

/* Anything may happen to the registers; those in brackets are not written. */
static rondo_status any(const translation *t) {
  for (size_t i = 0; i < t->statement->atoms.count; i++) {
    const ptx_atom *atom = &t->statement->atoms.items[i];
    uint32_t slot;
    if (atom->name.count == 0) continue;
    RONDO_TRY(ptx_flow_slot(t->flow, atom->name, atom->place != PTX_ADDRESS, &slot));
    RONDO_TRY(let_escape(t->flow, slot));
    if (atom->place == PTX_ADDRESS || ptx_is_parameter(t->flow, slot)) continue;
    RONDO_TRY(add_rule(t->flow, PTX_COPY, slot, PTX_SLOT_OPAQUE, PTX_SLOT_OPAQUE));
  }
  return RONDO_OK;
}

/* Only the addresses of parameters could matter. */
static rondo_status small(const translation *t) {
  for (size_t i = 0; i < t->statement->atoms.count; i++) {
    const ptx_atom *atom = &t->statement->atoms.items[i];
    uint32_t slot;
    if (atom->name.count == 0 || atom->name.at[0] == '%') continue;
    RONDO_TRY(read_name(t->flow, atom->name, &slot));
  }
  return RONDO_OK;
}

/* Arithmetic ------------------------------------------------------------------------------------------------------- */

/* Returns from the caller unless the type is a 64-bit integer: a smaller one is no address, and others may be one. */
#define ONLY_ADDRESSES(t)                                                                            \
  do {                                                                                               \
    const opcode *code_ = &(t)->code;                                                                \
    if (code_->last_bits != 0 && code_->last_bits < 64 && code_->first_bits < 64) return small(t);   \
    if (code_->last_bits != 64 || code_->last_letter == 'f' || has_part(code_, "cc")) return any(t); \
  } while (0)

static rondo_status two_sources(const translation *t, ptx_operation operation) {
  uint32_t a, b;
  RONDO_TRY(source(t, 1, &a));
  RONDO_TRY(source(t, 2, &b));
  return set_result(t, operation, a, b);
}

static rondo_status add(const translation *t) {
  ONLY_ADDRESSES(t);
  return two_sources(t, PTX_ADD);
}

static rondo_status subtract(const translation *t) {
  ONLY_ADDRESSES(t);
  return two_sources(t, PTX_SUBTRACT);
}

static rondo_status mask(const translation *t) {
  ONLY_ADDRESSES(t);
  return two_sources(t, PTX_MASK);
}

static rondo_status divide(const translation *t) {
  ONLY_ADDRESSES(t);
  return two_sources(t, PTX_DIVIDE);
}

static rondo_status take_remainder(const translation *t) {
  ONLY_ADDRESSES(t);
  return two_sources(t, PTX_REMAINDER);
}

static rondo_status mask_one(const translation *t) {
  uint32_t a;
  ONLY_ADDRESSES(t);
  RONDO_TRY(source(t, 1, &a));
  return set_result(t, PTX_MASK, a, PTX_SLOT_COUNT);
}

/* One of two: min, max, selp. */
static rondo_status choose(const translation *t) {
  uint32_t a, b;
  ONLY_ADDRESSES(t);
  RONDO_TRY(source(t, 1, &a));
  RONDO_TRY(source(t, 2, &b));
  RONDO_TRY(set_operand(t, 0, a));
  return set_operand(t, 0, b);
}

/* Whether an operand is a number by which a product can restore the upper half of an address. */
static bool is_large_factor(const translation *t, uint32_t operand) {
  size_t count;
  const ptx_atom *atom = first_atom(t, operand, &count);
  if (count != 1 || atom->name.count > 0) return false;
  return atom->number >= UINT64_C(1) << 32 && atom->number <= UINT64_MAX - (UINT64_C(1) << 32);
}

static rondo_status product(const translation *t, uint32_t *out) {
  uint32_t a, b;
  RONDO_TRY(source(t, 1, &a));
  RONDO_TRY(source(t, 2, &b));
  RONDO_TRY(ptx_flow_add_slot(t->flow, PTX_UNSET, out));
  RONDO_TRY(add_rule(t->flow, PTX_SCALE, *out, a, b));
  if (!is_large_factor(t, 1) && !is_large_factor(t, 2)) return RONDO_OK;
  return add_rule(t->flow, PTX_COPY, *out, PTX_SLOT_OPAQUE, PTX_SLOT_OPAQUE);
}

/* The upper half of a product of 64 bits is a quotient of either factor. */
static rondo_status multiply_high(const translation *t) {
  uint32_t a, b;
  RONDO_TRY(two_sources(t, PTX_DIVIDE));
  RONDO_TRY(source(t, 1, &a));
  RONDO_TRY(source(t, 2, &b));
  return set_result(t, PTX_DIVIDE, b, a);
}

static rondo_status multiply(const translation *t) {
  uint32_t result;
  if (has_part(&t->code, "wide") && t->code.last_bits <= 32) return set_operand(t, 0, PTX_SLOT_COUNT);
  ONLY_ADDRESSES(t);
  if (has_part(&t->code, "hi")) return multiply_high(t);
  RONDO_TRY(product(t, &result));
  return set_operand(t, 0, result);
}

static rondo_status multiply_add(const translation *t) {
  uint32_t result, c;
  const bool is_wide = has_part(&t->code, "wide") && t->code.last_bits <= 32;
  if (!is_wide) ONLY_ADDRESSES(t);
  if (has_part(&t->code, "hi")) return any(t);
  RONDO_TRY(source(t, 3, &c));
  if (is_wide) return set_operand(t, 0, c);
  RONDO_TRY(product(t, &result));
  return set_result(t, PTX_ADD, result, c);
}

static rondo_status shift_left(const translation *t) {
  uint32_t a;
  size_t count;
  ONLY_ADDRESSES(t);
  const ptx_atom *by = first_atom(t, 2, &count);
  RONDO_TRY(source(t, 1, &a));
  if (count == 1 && by->name.count == 0 && by->number < 32) return set_result(t, PTX_SCALE, a, PTX_SLOT_COUNT);
  RONDO_TRY(let_escape(t->flow, a));
  return set_operand(t, 0, PTX_SLOT_OPAQUE);
}

static rondo_status move(const translation *t) {
  uint32_t a;
  size_t parts;
  (void)first_atom(t, 0, &parts);
  if (t->code.last_bits != 64) ONLY_ADDRESSES(t);
  if (parts != 1) return any(t);
  RONDO_TRY(source(t, 1, &a));
  return set_operand(t, 0, a);
}

/* An address of another space as a generic one is no number. */
static rondo_status convert_address(const translation *t) {
  uint32_t a;
  if (t->code.last_bits != 64) return any(t);
  RONDO_TRY(source(t, 1, &a));
  if (has_part(&t->code, "to") || has_part(&t->code, "global")) return set_operand(t, 0, a);
  RONDO_TRY(let_escape(t->flow, a));
  return set_operand(t, 0, PTX_SLOT_OPAQUE);
}

static rondo_status convert(const translation *t) {
  const opcode *code = &t->code;
  uint32_t a;
  if (code->first_bits == 0 || code->last_bits == 0) return any(t);
  RONDO_TRY(source(t, 1, &a));
  const bool is_number = code->last_bits < 64, is_copy = code->first_letter != 'f' && code->last_letter != 'f';
  if (code->first_bits == 64 && is_number) return set_operand(t, 0, PTX_SLOT_COUNT);
  if (code->first_bits == 64 && is_copy) return set_operand(t, 0, a);
  if (code->first_bits != 64 && is_number) return RONDO_OK;
  RONDO_TRY(let_escape(t->flow, a));
  return code->first_bits == 64 ? set_operand(t, 0, PTX_SLOT_OPAQUE) : RONDO_OK;
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

static size_t count_names(const translation *t, uint32_t operand) {
  size_t count = 0;
  for (size_t i = 0; i < t->statement->atoms.count; i++)
    count += t->statement->atoms.items[i].operand == operand && t->statement->atoms.items[i].name.count > 0;
  return count;
}

/* The name in an operand in brackets; NULL if there is not exactly one. */
static const ptx_atom *base_of(const translation *t, uint32_t operand) {
  const ptx_atom *base = NULL;
  for (size_t i = 0; i < t->statement->atoms.count; i++) {
    const ptx_atom *atom = &t->statement->atoms.items[i];
    if (atom->operand == operand && atom->name.count > 0) base = atom;
  }
  return base != NULL && base->place == PTX_ADDRESS && count_names(t, operand) == 1 ? base : NULL;
}

/* The instruction reads or writes global memory at the address in an operand. */
static rondo_status access(const translation *t, uint32_t operand, uint32_t how) {
  const ptx_atom *base = base_of(t, operand);
  ptx_access made = {.how = how, .line = t->statement->line, .opcode = t->statement->opcode};
  if (base == NULL) return let_operand_escape(t, operand);
  RONDO_TRY(read_name(t->flow, base->name, &made.slot));
  return rondo_array_push(t->flow->allocator, &t->flow->accesses, &made);
}

/* Memory of other spaces belongs to no parameter. */
static rondo_status access_space(const translation *t, uint32_t operand, uint32_t how) {
  return is_global(&t->code) ? access(t, operand, how) : let_operand_escape(t, operand);
}

/* What part of a parameter or of memory is. */
static uint32_t part_slot(const opcode *code) {
  if (code->last_bits == 128) return PTX_SLOT_OPAQUE;
  return code->last_bits == 64 ? PTX_SLOT_MIXED : PTX_SLOT_COUNT;
}

/* What a load gives. What the kernel itself has stored may be anything. */
static uint32_t loaded_slot(const opcode *code) {
  const bool is_own = has_part(code, "local") || has_part(code, "param");
  return is_own && code->last_bits == 64 ? PTX_SLOT_OPAQUE : part_slot(code);
}

/* The sum of the numbers in an address. */
static uint64_t offset_of(const translation *t, uint32_t operand) {
  uint64_t offset = 0;
  for (size_t i = 0; i < t->statement->atoms.count; i++) {
    const ptx_atom *atom = &t->statement->atoms.items[i];
    if (atom->operand == operand && atom->name.count == 0) offset += atom->number;
  }
  return offset;
}

/* The whole of a parameter of 8 bytes is its address. Part of a larger one is an address that nobody follows. */
static rondo_status load_parameter(const translation *t, uint32_t slot) {
  const uint32_t size = t->flow->sizes.items[slot - PTX_SLOT_PARAMETER];
  const uint64_t offset = offset_of(t, 1), bytes = (uint64_t)count_names(t, 0) * (t->code.last_bits / 8);
  if (t->code.last_bits == 0 || offset > size || bytes > size - offset) { /* it may be another parameter's */
    t->flow->is_lost = true;
    return RONDO_OK;
  }
  if (size == 8 && bytes == 8 && t->code.last_bits == 64) return set_operand(t, 0, slot);
  if (size >= 8) RONDO_TRY(let_escape(t->flow, slot));
  return set_operand(t, 0, part_slot(&t->code));
}

static rondo_status load(const translation *t) {
  const ptx_atom *base = base_of(t, 1);
  uint32_t slot;
  if (has_part(&t->code, "param") && base != NULL) {
    RONDO_TRY(ptx_flow_slot(t->flow, base->name, false, &slot));
    if (ptx_is_parameter(t->flow, slot)) return load_parameter(t, slot);
    if (slot != PTX_SLOT_OPAQUE) return set_operand(t, 0, part_slot(&t->code)); /* an index into a parameter */
  }
  RONDO_TRY(access_space(t, 1, PTX_READS));
  return set_operand(t, 0, loaded_slot(&t->code));
}

/* All operands but two may be used in any way; none is written. */
static rondo_status let_others_escape(const translation *t, uint32_t but, uint32_t or_but) {
  for (size_t i = 0; i < t->statement->atoms.count; i++) {
    const ptx_atom *atom = &t->statement->atoms.items[i];
    if (atom->operand == but || atom->operand == or_but || atom->name.count == 0) continue;
    RONDO_TRY(name_escapes(t->flow, atom->name));
  }
  return RONDO_OK;
}

static rondo_status store(const translation *t) {
  RONDO_TRY(access_space(t, 0, PTX_WRITES));
  return let_others_escape(t, 0, 0);
}

static rondo_status reduce(const translation *t) {
  RONDO_TRY(access_space(t, 0, PTX_READS | PTX_WRITES));
  return let_others_escape(t, 0, 0);
}

static rondo_status exchange(const translation *t) {
  RONDO_TRY(access_space(t, 1, PTX_READS | PTX_WRITES));
  RONDO_TRY(let_others_escape(t, 0, 1));
  return set_operand(t, 0, loaded_slot(&t->code));
}

/* Copies between global and shared memory, and reductions; a tensor's address is in its descriptor. */
static rondo_status copy(const translation *t) {
  const size_t global = find_part(&t->code, "global"), shared = find_part(&t->code, "shared");
  if (global == 0 || shared == 0 || has_part(&t->code, "tensor") || has_part(&t->code, "prefetch")) return any(t);
  const uint32_t operand = global < shared ? 0 : 1;
  const uint32_t written = has_part(&t->code, "reduce") ? PTX_READS | PTX_WRITES : PTX_WRITES;
  RONDO_TRY(access(t, operand, operand == 0 ? written : PTX_READS));
  return let_others_escape(t, operand, operand);
}

static rondo_status matrix(const translation *t) {
  if (has_part(&t->code, "load")) {
    RONDO_TRY(let_others_escape(t, 0, 1));
    return load(t);
  }
  return has_part(&t->code, "store") ? store(t) : any(t);
}

/* Instructions ----------------------------------------------------------------------------------------------------- */

/* Floating point and bits: of less than 64 bits, they can make no address. */
static rondo_status arithmetic(const translation *t) {
  const bool is_small = t->code.first_bits > 0 && t->code.first_bits < 64 && t->code.last_bits < 64;
  return is_small ? small(t) : any(t);
}

typedef struct instruction {
  const char *name;
  rondo_status (*translate)(const translation *t);
} instruction;

/* In the order of their names. `small` is for those that write predicates, or nothing. */
static const instruction instructions[] = {
    {"abs", mask_one},        {"add", add},          {"and", mask},         {"atom", exchange},
    {"bar", small},           {"bfe", arithmetic},   {"bfi", arithmetic},   {"bra", small},
    {"copysign", arithmetic}, {"cp", copy},          {"cvt", convert},      {"cvta", convert_address},
    {"div", divide},          {"ex2", arithmetic},   {"exit", small},       {"fma", arithmetic},
    {"isspacep", small},      {"ld", load},          {"ldu", load},         {"lg2", arithmetic},
    {"lop3", arithmetic},     {"mad", multiply_add}, {"max", choose},       {"membar", small},
    {"min", choose},          {"mov", move},         {"mul", multiply},     {"neg", mask_one},
    {"not", mask_one},        {"or", add},           {"popc", arithmetic},  {"prefetch", small},
    {"prefetchu", small},     {"prmt", arithmetic},  {"rcp", arithmetic},   {"red", reduce},
    {"rem", take_remainder},  {"ret", small},        {"rsqrt", arithmetic}, {"selp", choose},
    {"setp", small},          {"shf", arithmetic},   {"shfl", arithmetic},  {"shl", shift_left},
    {"shr", divide},          {"sqrt", arithmetic},  {"st", store},         {"sub", subtract},
    {"wmma", matrix},         {"xor", mask},
};

static const instruction *find_instruction(ptx_word name) {
  size_t first = 0, end = sizeof instructions / sizeof instructions[0];
  while (first < end) {
    const size_t middle = (first + end) / 2;
    const char *wanted = instructions[middle].name;
    const int order = strncmp(wanted, name.at, name.count);
    if (order == 0 && wanted[name.count] == '\0') return &instructions[middle];
    if (order < 0)
      first = middle + 1;
    else
      end = middle;
  }
  return NULL;
}

rondo_status ptx_flow_add_statement(ptx_flow *flow, const ptx_statement *statement) {
  const translation t = {flow, statement, read_opcode(statement->opcode)};
  const instruction *known = find_instruction(t.code.parts[0]);
  return known != NULL && t.code.count < MOST_PARTS ? known->translate(&t) : any(&t);
}
