/* SPDX-License-Identifier: MIT
 * Uses the component rondo-onnx as it is installed: it reads a model without nodes, and refuses what is none.
 */
#include <rondo/onnx.h>
#include <stdio.h>

int main(void) {
  /* IR version 8; a graph with the name "g"; operator set 17 */
  static const unsigned char bytes[] = {0x08, 8, 0x3a, 3, 0x12, 1, 'g', 0x42, 2, 0x10, 17};
  rondo_onnx_model *model = NULL, *none = NULL;
  rondo_onnx_info info = {.struct_size = sizeof info};
  rondo_status status = rondo_onnx_parse(bytes, sizeof bytes, NULL, &model);
  if (status == RONDO_OK) status = rondo_onnx_get_info(model, &info);
  if (status != RONDO_OK) fprintf(stderr, "%s\n", rondo_last_error()->message);
  const int refused = rondo_onnx_parse(bytes, 5, NULL, &none) == RONDO_INVALID_DATA && none == NULL;
  rondo_onnx_destroy(model);
  const int right = status == RONDO_OK && info.opset == 17 && refused;
  printf("%s %s\n", rondo_version(), right ? "ok" : "wrong");
  return right ? 0 : 1;
}
