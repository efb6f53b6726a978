/* SPDX-License-Identifier: MIT
 * Operators of the user: numbers and references. A slot of `slots` is written under the lock and read without one. A
 * reader holds a reference to the operator in it, directly or by a compiled program, so the slot cannot change.
 */
#include "tensor/program/operator_registry.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/allocation.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(rondo_user_operator *) slots[RONDO_MAX_USER_OPERATORS];

static size_t table_count(void) {
  size_t count;
  (void)rondo_operator_table(&count);
  return count;
}

/* Numbers ---------------------------------------------------------------------------------------------------------- */

uint16_t rondo_operator_number(const rondo_operator *row) {
  const rondo_user_operator *user = rondo_user_operator_of(row);
  size_t count, number = 0;
  const rondo_operator *const *table = rondo_operator_table(&count);
  if (user != NULL) return (uint16_t)user->number;
  while (table[number] != row) number++;
  assert(number < count);
  return (uint16_t)number;
}

const rondo_operator *rondo_operator_at(uint16_t number) {
  size_t count;
  const rondo_operator *const *table = rondo_operator_table(&count);
  if (number < count) return table[number];
  assert(number - count < RONDO_MAX_USER_OPERATORS);
  const rondo_user_operator *user = atomic_load_explicit(&slots[number - count], memory_order_acquire);
  assert(user != NULL && user->number == number);
  return &user->row;
}

/* Registering ------------------------------------------------------------------------------------------------------ */

/* The lock is held. */
static rondo_status take_slot(rondo_user_operator *user) {
  size_t free_slot = RONDO_MAX_USER_OPERATORS;
  for (size_t i = RONDO_MAX_USER_OPERATORS; i > 0; i--) {
    const rondo_user_operator *other = atomic_load_explicit(&slots[i - 1], memory_order_relaxed);
    if (other == NULL)
      free_slot = i - 1;
    else if (strcmp(other->name, user->name) == 0)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME,
                        "rondo_operator_define: an operator that exists has the name '%s': use another name, or "
                        "destroy that operator and what uses it first",
                        user->name);
  }
  if (free_slot == RONDO_MAX_USER_OPERATORS) {
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_NONE,
                      "rondo_operator_define: '%s': %d operators exist, the maximum: destroy some", user->name,
                      RONDO_MAX_USER_OPERATORS);
  }
  user->number = (uint32_t)(table_count() + free_slot);
  atomic_store_explicit(&slots[free_slot], user, memory_order_release);
  return RONDO_OK;
}

rondo_status rondo_operator_register(rondo_user_operator *user) {
  atomic_init(&user->references, 1);
  pthread_mutex_lock(&lock);
  const rondo_status status = take_slot(user);
  pthread_mutex_unlock(&lock);
  return status;
}

/* References ------------------------------------------------------------------------------------------------------- */

void rondo_user_operator_free(rondo_user_operator *user) {
  if (user == NULL) return;
  const rondo_allocator allocator = user->allocator;
  for (uint32_t k = 0; k < RONDO_OPERATOR_KERNELS; k++) {
    rondo_kernel_options *kernel = &user->kernels[k];
    rondo_release(&allocator, (void *)(uintptr_t)kernel->param_list, kernel->param_count, sizeof *kernel->param_list);
    rondo_release_text(&allocator, (char *)(uintptr_t)kernel->cuda_source);
    rondo_release_text(&allocator, (char *)(uintptr_t)kernel->name);
  }
  for (uint32_t i = 0; i < RONDO_MAX_OPERANDS; i++) rondo_release_text(&allocator, user->inputs[i]);
  rondo_release_text(&allocator, user->source);
  rondo_release_text(&allocator, user->function);
  rondo_release_text(&allocator, user->name);
  if (user->definition.gradient_operator != NULL) rondo_operator_release(user->definition.gradient_operator);
  rondo_release(&allocator, user, 1, sizeof *user);
}

/* Rows of the user are not constant: they came from rondo_operator_define. */
static rondo_user_operator *user_of(const rondo_operator *row) {
  return row->is_user ? (rondo_user_operator *)(uintptr_t)row : NULL;
}

void rondo_operator_retain(const rondo_operator *row) {
  rondo_user_operator *user = user_of(row);
  if (user != NULL) atomic_fetch_add_explicit(&user->references, 1, memory_order_relaxed);
}

void rondo_operator_release(const rondo_operator *row) {
  rondo_user_operator *user = user_of(row);
  if (user == NULL || atomic_fetch_sub_explicit(&user->references, 1, memory_order_acq_rel) > 1) return;
  pthread_mutex_lock(&lock);
  atomic_store_explicit(&slots[user->number - table_count()], NULL, memory_order_release);
  pthread_mutex_unlock(&lock);
  rondo_user_operator_free(user);
}

void rondo_operator_destroy(rondo_operator *operation) {
  if (operation != NULL) rondo_operator_release(operation);
}

/* The list --------------------------------------------------------------------------------------------------------- */

bool rondo_user_operator_info(size_t index, rondo_operator_info *out) {
  const rondo_user_operator *found = NULL;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < RONDO_MAX_USER_OPERATORS && found == NULL; i++) {
    const rondo_user_operator *user = atomic_load_explicit(&slots[i], memory_order_relaxed);
    if (user != NULL && index-- == 0) found = user;
  }
  if (found != NULL) {
    *out = (rondo_operator_info){
        .name = found->name, .types = found->row.types, .has_gradient = found->row.differentiate != NULL};
  }
  pthread_mutex_unlock(&lock);
  return found != NULL;
}
