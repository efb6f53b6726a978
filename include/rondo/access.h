/* SPDX-License-Identifier: MIT
 * What kernels that the program or its libraries launch themselves (with <<<>>>, cuLaunchKernel) do with their
 * parameters.
 *
 * The driver does not say which parameters of a kernel are addresses. So a captured or imported kernel has one scalar
 * parameter for all arguments (<rondo/capture.h>, Foreign work): verification finds addresses of graph memory in it and
 * only warns, and its addresses cannot be patched by declaration or relocated. Once the kernel is declared, kernels
 * that are captured or imported have the declared parameters. They are then verified, patched, relocated and planned
 * like kernels of rondo_kernel_create.
 */
#ifndef RONDO_ACCESS_H
#define RONDO_ACCESS_H

#include <rondo/kernel.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_access_declaration {
  uint32_t struct_size;          /* RONDO_ACCESS_DECLARATION_INIT sets it; 0 means the library's own */
  uint32_t param_count;          /* 1 to RONDO_MAX_PARAMETERS: all parameters of the kernel */
  const rondo_parameter *params; /* RONDO_READS, RONDO_SCALAR(int), ...; copied */
  void *function;                /* the kernel: a CUfunction, as from cudaGetFuncBySymbol. It must stay loaded while the
                                    device is open. Or NULL */
  const char *name;              /* in place of `function`: the name that the driver knows, in C++ the mangled one, such
                                    as "_Z4axpyfPKfPf" (cuFuncGetName); copied. All functions of that name are meant,
                                    also those that are loaded later. NULL if there is a function */
} rondo_access_declaration;
#define RONDO_ACCESS_DECLARATION_INIT .struct_size = sizeof(rondo_access_declaration)

/* Declares how a kernel uses its parameters, for kernels that are read from captures and imported graphs from now on:
 * declare before capturing. A later declaration of the same function or name replaces an earlier one; a function's own
 * is preferred to that of its name. The number, sizes and offsets of the parameters are compared with those of the
 * function, as far as the driver reports them: in this call, or, for a name, when the kernel is first captured or
 * imported, which then fails. Whether the
 * kernel really reads and writes what is declared is not checked. Thread-safe. Errors: INVALID_ARGUMENT with
 * NULL_ARGUMENT (NULL; neither function nor name), BAD_OPTIONS (both; an empty name; a bad struct_size), ARGUMENT_COUNT
 * (no parameter), BAD_SIZE (a parameter of a bad size or alignment, too many, or others than the function has);
 * UNSUPPORTED/NOT_SUPPORTED (the device's driver captures no kernels); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_access_declare(rondo_device *device,
                                                           const rondo_access_declaration *declaration);

RONDO_EXTERN_C_END

#endif
