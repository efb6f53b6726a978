/* SPDX-License-Identifier: MIT
 * Which mutant a process is, and which places of mutants it reached (mutation_points.h). A library of its own, because
 * the libraries of a process share them. Thread-safe.
 */
#include "mutation_points.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int rondo_mutant = -1;
unsigned char rondo_mutants_reached[RONDO_MUTANTS];

__attribute__((constructor)) static void choose_mutant(void) {
  const char *number = getenv("RONDO_MUTANT");
  if (number != NULL) rondo_mutant = atoi(number);
}

__attribute__((destructor)) static void write_reached(void) {
  const char *folder = getenv("RONDO_MUTANT_REACHED");
  if (folder == NULL) return;
  char path[4096];
  snprintf(path, sizeof path, "%s/%ld", folder, (long)getpid());
  FILE *file = fopen(path, "wb");
  if (file == NULL) return;
  fwrite(rondo_mutants_reached, 1, RONDO_MUTANTS, file);
  fclose(file);
}
