/* SPDX-License-Identifier: MIT
 * Defining operators of the user: checking a definition, copying it, and making its row. Threads: any.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "base/hash.h"
#include "base/versioned_struct.h"
#include "graph/kernel.h"
#include "tensor/operators/elementwise/broadcast.h"
#include "tensor/operators/user/user_operator.h"

#define MAX_NAME 48

static const char call[] = "rondo_operator_define";
static _Atomic uint64_t last_serial;

/* Inputs of float types, broadcast. */
static const rondo_broadcast_row element_family = {.code = NULL};

_Static_assert(RONDO_OPERATOR_INPUTS == RONDO_MAX_OPERANDS && RONDO_OPERATOR_RESULTS == RONDO_MAX_RESULTS,
               "an operation holds the values of an operator of the user");
_Static_assert(RONDO_OPERATOR_ELEMENTS == RONDO_MAX_TERMS, "a chain holds the inputs of an element-wise operator");

/* Checking --------------------------------------------------------------------------------------------------------- */

static rondo_status fail(const rondo_operator_definition *d, rondo_reason reason, const char *what) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, reason, "%s: operator '%.48s': %s", call, d->name, what);
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* In every locale. */
static bool is_identifier(const char *name) {
  size_t length = 0;
  for (; name[length] != '\0' && length <= MAX_NAME; length++) {
    const char c = name[length];
    if (!is_letter(c) && (length == 0 || !is_digit(c))) return false;
  }
  return length > 0 && length <= MAX_NAME;
}

/* Words that cannot be the name of a function in CUDA C++. */
static bool is_reserved(const char *name) {
  static const char words[] =
      " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class "
      "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype "
      "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline "
      "int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register "
      "reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template "
      "this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t "
      "while xor xor_eq threadIdx blockIdx blockDim gridDim warpSize ";
  char word[MAX_NAME + 3];
  if (name[0] == '_' && name[1] == '_') return true;
  (void)snprintf(word, sizeof word, " %s ", name);
  return strstr(words, word) != NULL;
}

static uint32_t input_count(const rondo_operator_definition *d) {
  uint32_t count = 0;
  while (count < RONDO_OPERATOR_INPUTS && d->inputs[count] != NULL) count++;
  return count;
}

static rondo_status check_values(const rondo_operator_definition *d) {
  const uint32_t inputs = input_count(d);
  if (inputs == 0) return fail(d, RONDO_REASON_OUT_OF_RANGE, "name at least one input");
  if (d->optional_inputs >= inputs)
    return fail(d, RONDO_REASON_OUT_OF_RANGE, "the first input cannot be optional: lower optional_inputs");
  if (d->result_count > RONDO_OPERATOR_RESULTS)
    return fail(d, RONDO_REASON_OUT_OF_RANGE, "it has more than 8 results: divide it");
  if ((d->types & ~RONDO_ALL_TYPES) != 0)
    return fail(d, RONDO_REASON_TYPE, "programs have no values of one of its types: see rondo_type");
  return RONDO_OK;
}

static bool is_in_word(char c) { return is_letter(c) || is_digit(c); }

/* Whether the source has the name as a word of its own. */
static bool has_name(const char *source, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = source; (at = strstr(at, name)) != NULL; at += length)
    if ((at == source || !is_in_word(at[-1])) && !is_in_word(at[length])) return true;
  return false;
}

static rondo_status check_element(const rondo_operator_definition *d) {
  const uint32_t floats = RONDO_FLOATS;
  if (d->kernels != NULL || d->kernel_count > 0 || d->shape_rule != NULL || d->launch_rule != NULL)
    return fail(d, RONDO_REASON_BAD_OPTIONS, "an element-wise operator has no kernels and no rules: leave them out");
  if (input_count(d) > RONDO_OPERATOR_ELEMENTS || d->optional_inputs > 0 || d->result_count > 1)
    return fail(d, RONDO_REASON_OUT_OF_RANGE, "an element-wise operator has 1 to 3 required inputs and one result");
  if ((d->types & ~floats) != 0)
    return fail(d, RONDO_REASON_TYPE, "an element-wise operator has float types only: F32, F16, BF16");
  if (d->element->numbers > 2)
    return fail(d, RONDO_REASON_OUT_OF_RANGE, "an element-wise operator has at most 2 numbers");
  if (d->element->cpu == NULL && d->element->cuda_source == NULL)
    return fail(d, RONDO_REASON_NULL_ARGUMENT, "there is no code: set element.cpu or element.cuda_source");
  return RONDO_OK;
}

/* The parameters of a kernel, from either of the two forms. */
static const rondo_parameter *parameters_of(const rondo_kernel_options *kernel, uint32_t *out_count) {
  *out_count = kernel->param_count;
  if (kernel->param_list != NULL) return kernel->param_list;
  *out_count = 0;
  while (*out_count < RONDO_MAX_INLINE_PARAMETERS && kernel->params[*out_count].bytes != 0) ++*out_count;
  return kernel->params;
}

static rondo_status fail_parameter(const rondo_operator_definition *d, uint32_t kernel, uint32_t parameter,
                                   const char *wanted) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                    "%s: operator '%s': kernel %u: parameter %u must be %s (first the inputs, then the results, then "
                    "scalars of at most %d bytes)",
                    call, d->name, kernel, parameter, wanted, RONDO_OPERATOR_SCALAR_BYTES);
}

/* As rondo_kernel_create checks them: a kernel without a device is made and released. The kernels are an array, so
 * each has the size that this version knows. */
static rondo_status check_options(const rondo_operator_definition *d, const rondo_kernel_options *kernel) {
  rondo_allocator allocator;
  rondo_kernel *made;
  if (kernel->struct_size != 0 && kernel->struct_size != sizeof *kernel)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "struct_size is %u, but in an array it must be %zu: set it by RONDO_KERNEL_OPTIONS_INIT or to 0",
                      kernel->struct_size, sizeof *kernel);
  RONDO_TRY(rondo_allocator_resolve(d->allocator, &allocator));
  RONDO_TRY(rondo_kernel_make(NULL, &allocator, kernel, &made));
  rondo_kernel_release(made);
  return RONDO_OK;
}

static rondo_status check_kernel(const rondo_operator_definition *d, uint32_t number) {
  const uint32_t inputs = input_count(d), results = d->result_count == 0 ? 1 : d->result_count;
  const rondo_kernel_options *kernel = &d->kernels[number];
  uint32_t count;
  RONDO_TRY(rondo_fail_context(check_options(d, kernel), "%s: operator '%s': kernel %u", call, d->name, number));
  const rondo_parameter *parameters = parameters_of(kernel, &count);
  for (uint32_t i = 0; i < inputs + results; i++) {
    const rondo_access access = i < inputs ? RONDO_ACCESS_READ : RONDO_ACCESS_WRITE;
    if (i >= count || parameters[i].access != access)
      return fail_parameter(d, number, i, i < inputs ? "RONDO_READS, an input" : "RONDO_WRITES, a result");
  }
  if (count > inputs + results + RONDO_OPERATOR_SCALARS)
    return fail(d, RONDO_REASON_OUT_OF_RANGE, "a kernel has more than 8 scalars: put them into a struct");
  for (uint32_t i = inputs + results; i < count; i++) {
    if (parameters[i].access != RONDO_ACCESS_SCALAR || parameters[i].bytes > RONDO_OPERATOR_SCALAR_BYTES)
      return fail_parameter(d, number, i, "a scalar");
  }
  return RONDO_OK;
}

static rondo_status check_kernels(const rondo_operator_definition *d) {
  if (d->kernel_count == 0 || d->kernels == NULL)
    return fail(d, RONDO_REASON_NULL_ARGUMENT, "there is no code: set element or kernels");
  if (d->kernel_count > RONDO_OPERATOR_KERNELS)
    return fail(d, RONDO_REASON_OUT_OF_RANGE, "it has more than 16 kernels: divide it");
  for (uint32_t k = 0; k < d->kernel_count; k++) RONDO_TRY(check_kernel(d, k));
  return RONDO_OK;
}

static rondo_status check_gradient(const rondo_operator_definition *d) {
  const rondo_operator *gradient = d->gradient_operator;
  const uint32_t results = d->result_count == 0 ? 1 : d->result_count;
  if (gradient == NULL) return RONDO_OK;
  if (d->gradient != NULL)
    return fail(d, RONDO_REASON_BAD_OPTIONS, "it has both gradient and gradient_operator: leave one out");
  if (d->optional_inputs > 0)
    return fail(d, RONDO_REASON_BAD_OPTIONS,
                "an operator with optional inputs has no gradient_operator, whose inputs are all there: set gradient");
  if (rondo_operator_input_count(gradient) != input_count(d) + 2 * results || gradient->result_count > input_count(d))
    return fail(d, RONDO_REASON_OUT_OF_RANGE,
                "its gradient_operator must take the inputs, the results and their gradients, and return at most one "
                "gradient an input");
  return RONDO_OK;
}

static rondo_status check(const rondo_operator_definition *d) {
  RONDO_TRY(rondo_require(call, "name", d->name));
  if (d->name[0] == '\0')
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: the name is empty: give an identifier of C", call);
  if (!is_identifier(d->name))
    return fail(d, RONDO_REASON_BAD_OPTIONS, "the name must be an identifier of C of at most 48 characters");
  if (is_reserved(d->name))
    return fail(d, RONDO_REASON_BAD_OPTIONS, "CUDA C++ reserves the name: use one that a function can have");
  RONDO_TRY(check_values(d));
  RONDO_TRY(d->element != NULL ? check_element(d) : check_kernels(d));
  RONDO_TRY(check_gradient(d));
  if (d->element != NULL && d->element->cuda_source != NULL && !has_name(d->element->cuda_source, d->name))
    return fail(d, RONDO_REASON_BAD_OPTIONS, "element.cuda_source defines no function with the operator's name");
  return RONDO_OK;
}

/* Copying ---------------------------------------------------------------------------------------------------------- */

static rondo_status copy_text(const rondo_allocator *allocator, const char *text, const char **out) {
  char *copy = NULL;
  *out = NULL;
  if (text != NULL) RONDO_TRY(rondo_allocate_text(allocator, text, &copy));
  *out = copy;
  return RONDO_OK;
}

static rondo_status copy_kernel(rondo_user_operator *user, const rondo_kernel_options *given,
                                rondo_kernel_options *out) {
  uint32_t count;
  const rondo_parameter *parameters = parameters_of(given, &count);
  void *list;
  *out = *given;
  memset(out->params, 0, sizeof out->params);
  out->param_list = NULL;
  out->param_count = 0;
  out->name = out->cuda_source = NULL;
  RONDO_TRY(copy_text(&user->allocator, given->name, &out->name));
  RONDO_TRY(copy_text(&user->allocator, given->cuda_source, &out->cuda_source));
  RONDO_TRY(rondo_allocate_copy(&user->allocator, parameters, count, sizeof *parameters, &list));
  out->param_list = list;
  out->param_count = count;
  return RONDO_OK;
}

/* The function in a namespace of its own, so that helpers of several operators do not collide. Its name comes from the
 * code, not from a counter, so that other processes find the compiled kernel in the cache on disk. */
static rondo_status copy_element(rondo_user_operator *user, const rondo_operator_element *given) {
  static const char format[] = "\nnamespace operator_%016llx {\n%s\n}\n";
  char function[MAX_NAME + 48];
  const unsigned long long hash = rondo_hash_text(rondo_hash_text(RONDO_HASH_START, user->name), given->cuda_source);
  user->element = *given;
  user->definition.element = &user->element;
  (void)snprintf(function, sizeof function, "operator_%016llx::%s", hash, user->name);
  RONDO_TRY(rondo_allocate_text(&user->allocator, function, &user->function));
  if (given->cuda_source == NULL) return RONDO_OK;
  const int length = snprintf(NULL, 0, format, hash, given->cuda_source);
  RONDO_TRY(rondo_allocate_items(&user->allocator, (size_t)length + 1, 1, &user->source));
  (void)snprintf(user->source, (size_t)length + 1, format, hash, given->cuda_source);
  user->element.cuda_source = user->source;
  return RONDO_OK;
}

static rondo_status copy(rondo_user_operator *user, const rondo_operator_definition *d) {
  user->definition = *d;
  user->definition.kernels = user->kernels;
  user->definition.element = NULL;
  if (d->gradient_operator != NULL) rondo_operator_retain(d->gradient_operator);
  RONDO_TRY(rondo_allocate_text(&user->allocator, d->name, &user->name));
  user->definition.name = user->name;
  for (uint32_t i = 0; i < input_count(d); i++)
    RONDO_TRY(rondo_allocate_text(&user->allocator, d->inputs[i], &user->inputs[i]));
  memcpy(user->definition.inputs, user->inputs, sizeof user->inputs);
  for (uint32_t k = 0; k < d->kernel_count; k++) RONDO_TRY(copy_kernel(user, &d->kernels[k], &user->kernels[k]));
  return d->element == NULL ? RONDO_OK : copy_element(user, d->element);
}

/* The row ---------------------------------------------------------------------------------------------------------- */

static void make_row(rondo_user_operator *user) {
  const rondo_operator_definition *d = &user->definition;
  const bool is_element = d->element != NULL;
  user->row = (rondo_operator){.name = user->name,
                               .required = input_count(d) - d->optional_inputs,
                               .result_count = d->result_count == 0 ? 1 : d->result_count,
                               .types = d->types != 0 ? d->types
                                        : is_element  ? RONDO_FLOATS
                                                      : RONDO_TYPE_BIT(RONDO_F32),
                               .is_user = true,
                               .infer = is_element ? rondo_infer_broadcast : rondo_infer_user_operator,
                               .prepare = rondo_prepare_user_operator,
                               .emit = rondo_emit_user_operator};
  memcpy(user->row.inputs, user->inputs, sizeof user->inputs);
  if (d->gradient != NULL || d->gradient_operator != NULL) user->row.differentiate = rondo_differentiate_user_operator;
  if (is_element) {
    user->row.family = &element_family;
    user->row.element = (rondo_element){.compute = rondo_compute_user_element,
                                        .function = user->function,
                                        .source = user->source,
                                        .numbers = user->element.numbers};
  }
}

static rondo_status make(rondo_user_operator *user, const rondo_operator_definition *d) {
  RONDO_TRY(copy(user, d));
  make_row(user);
  return rondo_operator_register(user);
}

rondo_status rondo_operator_define(const rondo_operator_definition *definition, rondo_operator **out_operator) {
  rondo_operator_definition given;
  rondo_allocator allocator;
  rondo_user_operator *user;
  RONDO_TRY(rondo_require(call, "out_operator", out_operator));
  *out_operator = NULL;
  RONDO_TRY(rondo_require(call, "definition", definition));
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_operator_definition", definition, &given));
  RONDO_TRY(check(&given));
  RONDO_TRY(rondo_allocator_resolve(given.allocator, &allocator));
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *user, &user));
  user->allocator = allocator;
  user->serial = atomic_fetch_add(&last_serial, 1) + 1;
  const rondo_status status = make(user, &given);
  if (status != RONDO_OK) {
    rondo_user_operator_free(user);
    return status;
  }
  *out_operator = &user->row;
  return RONDO_OK;
}
