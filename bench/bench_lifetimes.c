/* SPDX-License-Identifier: MIT
 * rondo_bench lifetimes: prints generated lifetimes as the CSV that `rondo bench memory` and `rondo plan` read.
 */
#define _GNU_SOURCE
#include "bench_check.h"
#include "plan_items.h"
#include "rondo_bench.h"

static void print(const input *in) {
  printf("id,lower,upper,size\n");
  for (size_t i = 0; i < in->count; i++) {
    const rondo_plan_item *item = &in->items[i];
    printf("%zu,%" PRIu32 ",%" PRIu32 ",%zu\n", i, item->lower, item->upper, item->bytes);
  }
}

static int run(int argc, char **argv) {
  const size_t items = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
  for (size_t i = 0; i < GENERATORS && argc > 1; i++) {
    if (strcmp(generators[i].name, argv[1]) != 0) continue;
    input in = {.name = argv[1]};
    generators[i].make(&in, items);
    print(&in);
    free(in.items);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  return tool_fail_usage("the kind is missing: random, training, inference or blocks");
}

const benchmark bench_lifetimes = {
    .name = "lifetimes",
    .summary = "prints generated lifetimes as CSV: KIND [ITEMS]",
    .description =
        "Prints generated lifetimes as the CSV that 'rondo bench memory' and 'rondo plan'\n"
        "read: rondo_bench lifetimes random|training|inference|blocks [ITEMS], by default\n"
        "1000.",
    .program = run,
};
