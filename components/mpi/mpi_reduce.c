/* SPDX-License-Identifier: MIT
 * See the header. An MPI_User_function has no argument of its own, so each pair of a type and a reduction has a
 * function.
 */
#include "mpi/mpi_reduce.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define EACH_OPERATION(X) \
  X(F32, MAX)             \
  X(F32, MIN) X(F64, MAX) X(F64, MIN) X(F16, SUM) X(F16, MAX) X(F16, MIN) X(BF16, SUM) X(BF16, MAX) X(BF16, MIN)

#define DEFINE(type, reduction)                                                               \
  static void type##_##reduction(void *in, void *inout, int *count, MPI_Datatype *datatype) { \
    (void)datatype;                                                                           \
    rondo_combine_find(RONDO_##type, RONDO_REDUCE_##reduction)(inout, in, (size_t)*count);    \
  }
EACH_OPERATION(DEFINE)

static const struct {
  rondo_type type;
  rondo_reduction reduction;
  MPI_User_function *function;
} rows[] = {
#define ROW(type, reduction) {RONDO_##type, RONDO_REDUCE_##reduction, type##_##reduction},
    EACH_OPERATION(ROW)};

enum { ROWS = sizeof rows / sizeof rows[0] };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Op made[ROWS];
static atomic_bool is_made[ROWS]; /* then no lock is needed, as each start asks */

static MPI_Op make(size_t row) {
  if (atomic_load_explicit(&is_made[row], memory_order_acquire)) return made[row];
  pthread_mutex_lock(&lock);
  if (!atomic_load_explicit(&is_made[row], memory_order_relaxed)) {
    made[row] = MPI_OP_NULL;
    const bool is_new = MPI_Op_create(rows[row].function, 1, &made[row]) == MPI_SUCCESS;
    atomic_store_explicit(&is_made[row], is_new, memory_order_release);
  }
  const MPI_Op op = made[row];
  pthread_mutex_unlock(&lock);
  return op;
}

MPI_Op rondo_mpi_reduce_find(rondo_type type, rondo_reduction reduction) {
  for (size_t i = 0; i < ROWS; i++)
    if (rows[i].type == type && rows[i].reduction == reduction) return make(i);
  return reduction == RONDO_REDUCE_SUM ? MPI_SUM : reduction == RONDO_REDUCE_MAX ? MPI_MAX : MPI_MIN;
}
