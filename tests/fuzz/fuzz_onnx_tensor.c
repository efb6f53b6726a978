/* SPDX-License-Identifier: MIT
 * Files of tensors, sequences and optionals (ON-10): the first byte says what the file is read as, the others are the
 * file. Each element of it is read, up to the first that is refused or does not exist; a refusal gives a typed error.
 */
#define _GNU_SOURCE
#include <rondo/onnx.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz_target.h"

enum { MOST_ELEMENTS = 64 };

static volatile uint8_t sink; /* every byte is read */

static void read_tensor(const rondo_onnx_tensor_file *file) {
  rondo_onnx_tensor_info info = {.struct_size = sizeof info};
  size_t count = 1;
  REQUIRE(rondo_onnx_tensor_get_info(file, &info) == RONDO_OK);
  for (size_t i = 0; i < info.rank; i++) count *= info.shape[i];
  REQUIRE(count == info.count);
  for (const char *text = info.name; *text != '\0'; text++) sink = (uint8_t)*text;
  for (size_t i = 0; i < info.bytes; i++) sink = ((const uint8_t *)info.data)[i];
}

static void read_file(const char *path, const char *kind) {
  const rondo_onnx_value value = {.struct_size = sizeof value, .name = "x", .type_name = kind};
  for (size_t i = 0; i < MOST_ELEMENTS; i++) {
    rondo_onnx_tensor_file *file = NULL;
    const rondo_status status = rondo_onnx_tensor_load_element(path, &value, i, NULL, &file);
    REQUIRE((file != NULL) == (status == RONDO_OK));
    REQUIRE(status == RONDO_OK || rondo_last_error()->message[0] != '\0');
    if (status != RONDO_OK) return;
    read_tensor(file);
    rondo_onnx_tensor_destroy(file);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const kinds[] = {"float", "sequence", "optional"};
  char path[64];
  if (size == 0) return 0;
  const int file = memfd_create("tensor", MFD_CLOEXEC);
  REQUIRE(file >= 0 && write(file, data + 1, size - 1) == (ssize_t)(size - 1));
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  read_file(path, kinds[data[0] % 3]);
  REQUIRE(close(file) == 0);
  return 0;
}
