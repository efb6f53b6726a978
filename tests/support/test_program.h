/* SPDX-License-Identifier: MIT
 * Support for tests of programs: creating, compiling and reading them. Each call must succeed.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_PROGRAM_H
#define RONDO_TESTS_SUPPORT_TEST_PROGRAM_H

#include "support/rondo_test.h"

/* A new program, which may have a name. The teardown destroys programs, and what is compiled here. */
rondo_program *test_new_program(void);
rondo_program *test_named_program(const char *name);

/* Adds an F32 matrix of m x n: a state (kind 's') or an input (kind 'i'). */
rondo_value test_value(rondo_program *program, char kind, const char *name, size_t m, size_t n);

/* The compiled value of this kind and name, which must exist; kind 0: of any kind. */
rondo_compiled_value test_compiled_value(const rondo_compiled *compiled, char kind, const char *name);

/* Compiles the program, and then destroys or keeps it. options may be NULL. With RONDO_TEST_ADOPTED, it runs on an
 * adopted stream. */
rondo_compiled *test_compile_kept(rondo_program *program, rondo_device *device, const rondo_compile_options *options);
rondo_compiled *test_compile(rondo_program *program, rondo_device *device, const rondo_compile_options *options);

/* Makes the teardown destroy what was compiled without these functions. */
void test_leave_compiled(rondo_compiled *compiled);

/* Compiles and keeps the program. */
rondo_divided *test_compile_divided(rondo_program *program, rondo_device *const *devices, size_t count,
                                    const rondo_divide_options *options);

/* The F32 value of this name, a scalar. */
float test_read_number(rondo_compiled *compiled, const char *name);

#endif
