/* SPDX-License-Identifier: MIT
 * Declaring what the kernels of the program and its libraries do with their parameters. A declaration is a kernel
 * without code, so that the checks of kernels apply to it. The driver keeps it, and gives its parameters to the kernels
 * that it reads from captures. Threads: any.
 */
#include <rondo/access.h>

#include "base/versioned_struct.h"
#include "exec/api_check.h"

static const char *const call = "rondo_access_declare";

static rondo_status check_target(const rondo_access_declaration *declaration) {
  const char *const name = declaration->name;
  if (declaration->function == NULL && name == NULL) return rondo_refuse_null(call, "function, and so is name");
  if (declaration->function != NULL && name != NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: both a function and the name '%s' are given: set one of them", call, name);
  if (name != NULL && name[0] == '\0')
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: the name is empty: pass the name that cuFuncGetName returns", call);
  if (declaration->param_count == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT,
                      "%s: no parameter is declared: list all parameters of the kernel", call);
  return declaration->params == NULL ? rondo_refuse_null(call, "params") : RONDO_OK;
}

static rondo_status declare(rondo_device *device, const rondo_access_declaration *declaration) {
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT,
                                        .name = declaration->name != NULL ? declaration->name : "(a function)",
                                        .cuda_function = declaration->function, .param_list = declaration->params,
                                        .param_count = declaration->param_count};
  rondo_kernel *kernel;
  RONDO_TRY(rondo_kernel_make(NULL, &device->allocator, &options, &kernel));
  const rondo_status status = device->ops->capture->declare(device, kernel);
  rondo_kernel_release(kernel);
  return status;
}

rondo_status rondo_access_declare(rondo_device *device, const rondo_access_declaration *declaration) {
  rondo_access_declaration known;
  RONDO_TRY(rondo_check_call(call, "the device", device));
  RONDO_TRY(rondo_device_require_own(call, device));
  if (declaration == NULL) return rondo_refuse_null(call, "the declaration");
  RONDO_TRY(rondo_versioned_read("rondo_access_declaration", declaration, &known, sizeof known));
  RONDO_TRY(check_target(&known));
  if (device->ops->capture == NULL)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED,
                      "%s: device '%s' has no driver that captures kernels: use a CUDA device", call, device->name);
  return rondo_fail_context(declare(device, &known), "%s", call);
}
