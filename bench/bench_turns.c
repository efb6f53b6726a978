/* SPDX-License-Identifier: MIT
 * Turns with another process, and the memory of this one.
 */
#include "bench_turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_take_turns(double (*step)(void *bench), void *bench, samples *times) {
  char line[32];
  printf("ready\n");
  while (fflush(stdout) == 0 && fgets(line, sizeof line, stdin)) {
    const unsigned long steps = strtoul(line, NULL, 10);
    for (unsigned long i = 0; i < steps; i++) {
      const double time = step(bench);
      samples_add(times, time);
      printf("%s%.3f", i > 0 ? " " : "", time);
    }
    printf("\n");
  }
}

uint64_t bench_read_status(const char *field) {
  char line[256];
  uint64_t kib = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, field, strlen(field)) == 0) kib = strtoull(line + strlen(field), NULL, 10);
  if (file) fclose(file);
  return kib * 1024;
}
