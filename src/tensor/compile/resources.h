/* SPDX-License-Identifier: MIT
 * What a compiled program prepares once and uses in every run: kernels; matrix products and convolutions of libraries;
 * and objects of single operations, such as a oneDNN convolution. Programs that share have one set of kernels.
 * Products, convolutions and objects belong to the program, at most one of each kind for an operation; so do references
 * to the operators of the user, one for each operator. A kernel that is
 * first requested during the capture was missed by the warm-up: it is made, and its name noted, so that compiling can
 * fail (FW-2).
 *
 * Threads: one at a time, also for programs that share a set of kernels.
 */
#ifndef RONDO_TENSOR_COMPILE_RESOURCES_H
#define RONDO_TENSOR_COMPILE_RESOURCES_H

#include <rondo/program.h>

#include "base/array.h"
#include "tensor/program/operator.h"
#include "tensor/vendor/cublaslt.h"
#include "tensor/vendor/cudnn_convolution.h"

#define RONDO_LATE_TEXT 256

typedef struct rondo_ready_kernel {
  const rondo_kernel_options *code;
  rondo_kernel *kernel;
  bool has_run;
} rondo_ready_kernel;

/* A kernel whose code was generated for a program. The key is a text that determines the code. */
typedef struct rondo_made_kernel {
  char *key, *name;
  rondo_kernel *kernel;
  bool has_run;
} rondo_made_kernel;

/* The kernels made so far, one for each piece of code. A set with only an allocator is empty. */
typedef struct rondo_kernel_set {
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_ready_kernel) items;
  RONDO_ARRAY(rondo_made_kernel) made; /* at most one for each chain of the programs */
} rondo_kernel_set;

void rondo_kernel_set_free(rondo_kernel_set *set);

/* Whether a warm-up has run a kernel, for the caller to read and set. NULL: it is not of the set. */
bool *rondo_kernel_set_has_run(const rondo_kernel_set *set, const rondo_kernel *kernel);

/* An object that an operation's `prepare` made. */
typedef enum rondo_ready_kind { RONDO_READY_PRODUCT, RONDO_READY_CONVOLUTION, RONDO_READY_OBJECT } rondo_ready_kind;
typedef struct rondo_ready {
  uint32_t operation;
  rondo_ready_kind kind;
  void *object;
  rondo_status (*destroy)(void *object);
} rondo_ready;

struct rondo_resources {
  rondo_allocator allocator;
  rondo_device *device;
  rondo_kernel_set *kernels; /* not owned; set before the first kernel is requested */
  bool is_cuda;              /* the device runs kernels from their CUDA source */
  bool own_kernels;          /* no vendor library is used */
  bool capturing;
  bool is_guarded;                               /* the device guards allocations (rondo_device_info.guarded) */
  char late[RONDO_LATE_TEXT];                    /* names of what was prepared while capturing; "": nothing */
  RONDO_ARRAY(rondo_ready) made;                 /* at most one of a kind for an operation */
  RONDO_ARRAY(const rondo_operator *) operators; /* of the user, each once, with a reference */
  rondo_product_maker *maker;                    /* shared, like the next */
  rondo_cudnn_maker *cudnn_maker;
};

RONDO_MUST_USE rondo_status rondo_resources_init(rondo_resources *resources, const rondo_allocator *allocator,
                                                 rondo_device *device);
/* Also after init failed. Returns the first failure; all are destroyed nevertheless. */
RONDO_MUST_USE rondo_status rondo_resources_deinit(rondo_resources *resources);

/* Keeps an operator of the user until the resources are destroyed. out_is_new: it was not kept yet. */
RONDO_MUST_USE rondo_status rondo_resources_keep_operator(rondo_resources *resources, const rondo_operator *row,
                                                          bool *out_is_new);

/* The kernel of this code, which the first call makes. It belongs to the set. */
RONDO_MUST_USE rondo_status rondo_resources_kernel(rondo_resources *resources, const rondo_kernel_options *code,
                                                   rondo_kernel **out_kernel);

/* The same for generated code, found by its key. out_name: the set's copy, the name of steps. */
RONDO_MUST_USE rondo_status rondo_resources_made_kernel(rondo_resources *resources, const rondo_kernel_options *code,
                                                        const char *key, const char *name, rondo_kernel **out_kernel,
                                                        const char **out_name);

/* Whether generated code with the key was made. */
bool rondo_resources_have_made(const rondo_resources *resources, const char *key);

/* Prepares a matrix product of this shape for an operation, if a library is used for it. */
RONDO_MUST_USE rondo_status rondo_resources_add_product(rondo_resources *resources, uint32_t operation,
                                                        const rondo_product_shape *shape, size_t *out_workspace_bytes);
/* NULL: no library is used for it. */
rondo_product *rondo_resources_product(const rondo_resources *resources, uint32_t operation);

/* The same for convolutions. */
RONDO_MUST_USE rondo_status rondo_resources_add_convolution(rondo_resources *resources, uint32_t operation,
                                                            const rondo_convolution_shape *shape,
                                                            size_t *out_workspace_bytes);
rondo_convolution *rondo_resources_convolution(const rondo_resources *resources, uint32_t operation);

/* Keeps an object for an operation until the resources are destroyed. On failure it is destroyed at once. */
RONDO_MUST_USE rondo_status rondo_resources_add_object(rondo_resources *resources, uint32_t operation, void *object,
                                                       rondo_status (*destroy)(void *object));
void *rondo_resources_object(const rondo_resources *resources, uint32_t operation); /* NULL: none */
/* Destroys the object of an operation, if it has one. */
RONDO_MUST_USE rondo_status rondo_resources_drop_object(rondo_resources *resources, uint32_t operation);

#endif
