/* SPDX-License-Identifier: MIT
 * The kernel of a chain: a function that computes one element from the inputs at its position, and two loops that call
 * it, for packs and for the remaining elements. Each intermediate value has the type of its elements, as if it were
 * stored between the steps.
 */
#include "tensor/operators/elementwise/chain_source.h"

#include <assert.h>
#include <string.h>

#include "tensor/operators/common/operator_cuda_sources.h"
#include "tensor/program/operator_registry.h"

static const rondo_operator *row_at(const rondo_chain_form *form, uint32_t step) {
  assert(step < form->step_count);
  return rondo_operator_at(form->steps[step].row);
}

static const char *type_name(uint32_t type) {
  switch ((rondo_type)type) {
    case RONDO_F16:
      return "f16";
    case RONDO_BF16:
      return "bf16";
    case RONDO_F8_E4M3:
      return "f8_e4m3";
    case RONDO_F8_E5M2:
      return "f8_e5m2";
    case RONDO_I32:
      return "int";
    case RONDO_I64:
      return "i64";
    case RONDO_I8:
      return "i8";
    case RONDO_U8:
      return "u8";
    case RONDO_BOOL:
      return "boolean";
    default:
      return "float";
  }
}

void rondo_chain_kernel_name(const rondo_chain_form *form, char name[RONDO_CHAIN_KERNEL_NAME]) {
  size_t used = strlen(strcpy(name, "chain"));
  for (uint32_t s = 0; s < form->step_count; s++) {
    const char *row = row_at(form, s)->name;
    const size_t bytes = strlen(row);
    if (used + bytes + 2 > RONDO_CHAIN_KERNEL_NAME) return;
    name[used++] = '_';
    memcpy(name + used, row, bytes + 1);
    used += bytes;
  }
}

/* One element ------------------------------------------------------------------------------------------------------ */

static void add_term(uint8_t term, rondo_text *text) {
  if (term >= RONDO_CHAIN_INPUTS)
    rondo_text_add(text, "to_number(v%u)", (unsigned)(term - RONDO_CHAIN_INPUTS));
  else
    rondo_text_add(text, "to_number(e%u)", (unsigned)term);
}

/* The arguments of a function after the elements. */
static void add_more_arguments(const rondo_chain_form *form, uint32_t s, rondo_text *text) {
  const rondo_operator *row = row_at(form, s);
  for (uint32_t n = 0; n < row->element.numbers; n++) rondo_text_add(text, ", form.steps[%u].numbers[%u]", s, n);
  if (row->element.others > 0) rondo_text_add(text, ", position, form.steps[%u].size", s);
  for (uint32_t t = row->required - row->element.others; t < row->required; t++)
    rondo_text_add(text, ", x%u", (unsigned)form->steps[s].terms[t]);
}

static void add_step(const rondo_chain_form *form, uint32_t s, rondo_text *text) {
  const rondo_operator *row = row_at(form, s);
  const char *type = type_name(form->steps[s].type);
  rondo_text_add(text, "    const %s v%u = settled(rounded<%s>::of(%s(", type, s, type, row->element.function);
  for (uint32_t t = 0; t < row->required - row->element.others; t++) {
    if (t > 0) rondo_text_add(text, ", ");
    add_term(form->steps[s].terms[t], text);
  }
  add_more_arguments(form, s, text);
  rondo_text_add(text, ")), form.zero);\n");
}

static void add_function(const rondo_chain_form *form, rondo_text *text) {
  rondo_text_add(text, "  const auto of = [&](size_t position");
  for (uint32_t i = 0; i < form->input_count; i++) {
    if (form->inputs[i].reading != RONDO_CHAIN_WHOLE)
      rondo_text_add(text, ", %s e%u", type_name(form->inputs[i].type), i);
  }
  rondo_text_add(text, ") {\n    (void)position;\n");
  for (uint32_t s = 0; s < form->step_count; s++) add_step(form, s, text);
  rondo_text_add(text, "    return v%u;\n  };\n", (unsigned)form->step_count - 1);
}

/* Loops ------------------------------------------------------------------------------------------------------------ */

static void add_packs(const rondo_chain_form *form, rondo_text *text) {
  const char *result = type_name(form->result_type);
  rondo_text_add(text, "  for (size_t i = first_element(); i < form.packs; i += element_stride()) {\n");
  for (uint32_t i = 0; i < form->input_count; i++) {
    const uint32_t reading = form->inputs[i].reading;
    if (reading == RONDO_CHAIN_EACH)
      rondo_text_add(text, "    const pack<%s> p%u = pack_at(x%u, i);\n", type_name(form->inputs[i].type), i, i);
    if (reading >= RONDO_CHAIN_LAYOUT)
      rondo_text_add(text, "    const pack<%s> p%u = pack_at(form.layouts[%u], x%u, i);\n",
                     type_name(form->inputs[i].type), i, reading - RONDO_CHAIN_LAYOUT, i);
  }
  rondo_text_add(text, "    pack<%s> out;\n#pragma unroll\n", result);
  rondo_text_add(text, "    for (unsigned k = 0; k < PACK; k++) out.at[k] = of(i * PACK + k");
  for (uint32_t i = 0; i < form->input_count; i++)
    if (form->inputs[i].reading != RONDO_CHAIN_WHOLE) rondo_text_add(text, ", p%u.at[k]", i);
  rondo_text_add(text, ");\n    ((pack<%s> *)y)[i] = out;\n  }\n", result);
}

static void add_rest(const rondo_chain_form *form, rondo_text *text) {
  rondo_text_add(text,
                 "  for (size_t i = form.packs * PACK + first_element(); i < form.count; i += element_stride())\n"
                 "    y[i] = of(i");
  for (uint32_t i = 0; i < form->input_count; i++) {
    const uint32_t reading = form->inputs[i].reading;
    if (reading == RONDO_CHAIN_EACH) rondo_text_add(text, ", x%u[i]", i);
    if (reading >= RONDO_CHAIN_LAYOUT)
      rondo_text_add(text, ", x%u[offset_at(form.layouts[%u], i)]", i, reading - RONDO_CHAIN_LAYOUT);
  }
  rondo_text_add(text, ");\n");
}

/* The kernel ------------------------------------------------------------------------------------------------------- */

void rondo_chain_add_kernel(const rondo_chain_form *form, const char *name, rondo_text *text) {
  rondo_text_add(text, "\nextern \"C\" __global__ void %s(chain_form form", name);
  for (uint32_t i = 0; i < form->input_count; i++)
    rondo_text_add(text, ", const %s *__restrict__ x%u", type_name(form->inputs[i].type), i);
  rondo_text_add(text, ", %s *__restrict__ y) {\n", type_name(form->result_type));
  add_function(form, text);
  add_packs(form, text);
  add_rest(form, text);
  rondo_text_add(text, "}\n");
}

void rondo_chain_add_functions(const rondo_chain_form *form, rondo_text *text) {
  rondo_text_add(text, "%s", rondo_cuda_chain);
  for (uint32_t s = 0; s < form->step_count; s++) {
    const char *source = row_at(form, s)->element.source;
    bool is_there = false;
    for (uint32_t before = 0; before < s; before++)
      is_there = is_there || row_at(form, before)->element.source == source;
    if (!is_there) rondo_text_add(text, "%s", source);
  }
}
