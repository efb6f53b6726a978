/* SPDX-License-Identifier: MIT
 * Programs in tests: making, compiling and reading them. Each call must succeed.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_PROGRAM_H
#define RONDO_TESTS_SUPPORT_TEST_PROGRAM_H

#include "support/rondo_test.h"

/* A new program with the default options. The teardown destroys it, and what is compiled here. */
rondo_program *test_new_program(void);

/* Compiles the program, and then destroys or keeps it. options may be NULL. */
rondo_compiled *test_compile_kept(rondo_program *program, rondo_device *device, const rondo_compile_options *options);
rondo_compiled *test_compile(rondo_program *program, rondo_device *device, const rondo_compile_options *options);

/* The F32 value of this name, a scalar. */
float test_read_number(rondo_compiled *compiled, const char *name);

#endif
