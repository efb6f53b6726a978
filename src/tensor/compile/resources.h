/* SPDX-License-Identifier: MIT
 * What a compiled program makes ready once and uses at every run: kernels, in a set that those that share have in
 * common; products and convolutions of libraries; and objects of single operations, such as a convolution of oneDNN's.
 * Products, convolutions and objects are its own, one of each for an operation that has one, and are destroyed with it
 * in no order; kernels belong to the set. A kernel that is first asked for while the program is being captured was
 * missed by the warm-up; it is made, and noted by name, so that the compilation can refuse (FW-2).
 *
 * Threads: of one program's compilation at a time; those that share a set compile one after another.
 */
#ifndef RONDO_TENSOR_COMPILE_RESOURCES_H
#define RONDO_TENSOR_COMPILE_RESOURCES_H

#include <rondo/program.h>

#include "base/array.h"
#include "tensor/program/operator.h"
#include "tensor/vendor/cublaslt.h"
#include "tensor/vendor/cudnn.h"

#define RONDO_LATE_TEXT 256

typedef struct rondo_ready_kernel {
  const rondo_kernel_options *code;
  rondo_kernel *kernel;
} rondo_ready_kernel;

/* A kernel whose code was made for a program, found by a text that says all of it. */
typedef struct rondo_made_kernel {
  char *key, *name;
  rondo_kernel *kernel;
} rondo_made_kernel;

/* Kernels made so far, one for each piece of code. Empty where there is only an allocator. */
typedef struct rondo_kernel_set {
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_ready_kernel) items;
  RONDO_ARRAY(rondo_made_kernel) made; /* at most one a chain of the programs */
} rondo_kernel_set;

void rondo_kernel_set_free(rondo_kernel_set *set);

/* What an operation's `prepare` made for it. */
typedef enum rondo_ready_kind { RONDO_READY_PRODUCT, RONDO_READY_CONVOLUTION, RONDO_READY_OBJECT } rondo_ready_kind;
typedef struct rondo_ready {
  uint32_t operation;
  rondo_ready_kind kind;
  void *object;
  void (*destroy)(void *object);
} rondo_ready;

struct rondo_resources {
  rondo_allocator allocator;
  rondo_device *device;
  rondo_kernel_set *kernels; /* somebody else's; set before a kernel is asked for */
  bool own_kernels;          /* no library is to make anything */
  bool capturing;
  char late[RONDO_LATE_TEXT];    /* what was made while capturing, by name; "" when nothing */
  RONDO_ARRAY(rondo_ready) made; /* at most one of a kind for an operation */
  rondo_product_maker *maker;    /* of the programs that share, as is the next */
  rondo_convolution_maker *convolution_maker;
};

void rondo_resources_init(rondo_resources *resources, const rondo_allocator *allocator, rondo_device *device);
void rondo_resources_deinit(rondo_resources *resources);

/* The kernel of this code, made when first asked for. It belongs to the set. */
RONDO_MUST_USE rondo_status rondo_resources_kernel(rondo_resources *resources, const rondo_kernel_options *code,
                                                   rondo_kernel **out_kernel);

/* The same for code that is made for the program, by its key. out_name: the set's copy, what steps are called. */
RONDO_MUST_USE rondo_status rondo_resources_made_kernel(rondo_resources *resources, const rondo_kernel_options *code,
                                                        const char *key, const char *name, rondo_kernel **out_kernel,
                                                        const char **out_name);

/* Makes a product of this shape ready for an operation, if a library is to make it. */
RONDO_MUST_USE rondo_status rondo_resources_add_product(rondo_resources *resources, uint32_t operation,
                                                        const rondo_product_shape *shape, size_t *out_workspace_bytes);
/* NULL when no library makes it. */
rondo_product *rondo_resources_product(const rondo_resources *resources, uint32_t operation);

/* The same for convolutions. */
RONDO_MUST_USE rondo_status rondo_resources_add_convolution(rondo_resources *resources, uint32_t operation,
                                                            const rondo_convolution_shape *shape,
                                                            size_t *out_workspace_bytes);
rondo_convolution *rondo_resources_convolution(const rondo_resources *resources, uint32_t operation);

/* Keeps an object for an operation, as long as the resources. It is destroyed at once when that fails. */
RONDO_MUST_USE rondo_status rondo_resources_add_object(rondo_resources *resources, uint32_t operation, void *object,
                                                       void (*destroy)(void *object));
void *rondo_resources_object(const rondo_resources *resources, uint32_t operation); /* NULL: none */

#endif
