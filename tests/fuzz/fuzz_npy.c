/* SPDX-License-Identifier: MIT
 * The reader of NumPy's files for `rondo run` (ON-6): any bytes either fail with a message that names the file, or give
 * a tensor with all of its elements.
 */
#include <stdint.h>
#include <string.h>

#include "common/tool.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/tool_messages.h"
#include "onnx/npy_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  host_tensor tensor;
  tool_message[0] = '\0';
  const int result = npy_parse("in", data, size, &tensor);
  REQUIRE((result == TOOL_OK) == (tool_message[0] == '\0'));
  if (result == TOOL_OK) {
    size_t count = 1;
    for (size_t i = 0; i < tensor.rank; i++) count *= tensor.shape[i];
    REQUIRE(tensor.data != NULL && tensor.count == count && tensor.bytes == count * rondo_type_bytes(tensor.type));
    REQUIRE(host_tensor_is_like(&tensor, &tensor));
    REQUIRE(host_tensor_compare(&tensor, &tensor, 0, 0).wrong == 0);
  } else {
    REQUIRE(strncmp(tool_message, "in: ", 4) == 0);
    REQUIRE(tensor.data == NULL);
  }
  host_tensor_destroy(&tensor);
  return 0;
}
