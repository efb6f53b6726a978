/* SPDX-License-Identifier: MIT
 * The libraries that compute for operators, as `rondo devices` lists them.
 */
#include "tensor/vendor/compute_libraries.h"

#include <rondo/operators.h>

#include "base/versioned_struct.h"

/* A library that is part of another one has the note of that one. */
static const char *note_of(const rondo_library *library) {
  const char *note = library->base != NULL ? library->base->note : library->note;
  return note == NULL ? "" : note;
}

rondo_status rondo_library_enumerate(size_t index, rondo_library_info *out_info) {
  static rondo_library *const all[] = {&rondo_cublaslt, &rondo_cudnn, &rondo_onednn_products,
                                       &rondo_onednn_convolutions, &rondo_cblas};
  RONDO_TRY(rondo_require("rondo_library_enumerate", "out_info", out_info));
  if (index >= sizeof all / sizeof all[0])
    return rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE, "there are no more libraries");
  rondo_library *library = all[index];
  const bool found = rondo_library_find(library);
  const rondo_library_info info = {.name = library->name,
                                   .purpose = library->purpose,
                                   .path = found ? library->file.path : NULL,
                                   .reason = library->failure.message,
                                   .note = found ? note_of(library) : ""};
  return rondo_versioned_write("rondo_library_info", &info, out_info, sizeof info);
}
