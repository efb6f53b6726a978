/* SPDX-License-Identifier: MIT
 * What a mutated source is compiled with (tests/mutation/mutate.py puts these macros into it). A mutant is a number,
 * and changes one place of the sources: a condition is negated, or a statement is left out. All mutants are compiled at
 * once; RONDO_MUTANT in the environment says which one the process is, and with none it is the program as it was.
 *
 * With RONDO_MUTANT_REACHED, a folder, a process leaves a file there at its end with a byte for each mutant: 1 if the
 * place of the mutant was reached. A process that is killed leaves none.
 */
#ifndef RONDO_TESTS_MUTATION_MUTATION_POINTS_H
#define RONDO_TESTS_MUTATION_MUTATION_POINTS_H

extern int rondo_mutant;
extern unsigned char rondo_mutants_reached[];

/* Whether the process is this mutant, in its place. Threads write the same byte, with the same value. */
static inline _Bool rondo_is_mutant(int number) {
  __atomic_store_n(&rondo_mutants_reached[number], 1, __ATOMIC_RELAXED);
  return rondo_mutant == number;
}

/* A condition or a statement may have commas. */
#define RONDO_MUTATED_CONDITION(number, ...) (((__VA_ARGS__) ? 1 : 0) != rondo_is_mutant(number))
#define RONDO_MUTATED_STATEMENT(number, ...) \
  do {                                       \
    if (!rondo_is_mutant(number)) {          \
      __VA_ARGS__;                           \
    }                                        \
  } while (0)

#endif
