/* SPDX-License-Identifier: MIT
 * The reader of results for `rondo report`: any bytes either fail with a message that names the file, or give a page
 * that is well-formed, and has the losses of the steps that the result states.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/training_result.h"
#include "common/tool.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/tool_messages.h"
#include "support/test_markup.h"

static void require_numbers(const result_values *of) {
  REQUIRE((of->values == NULL) == (of->count == 0));
  for (size_t i = 0; i < of->count; i++) REQUIRE(isfinite(of->values[i]));
}

static void require_page(const training_result *result) {
  const training_result twice[] = {*result, *result};
  char *text = training_results_compare(twice, 2, NULL);
  REQUIRE(text != NULL && strstr(text, "<h1>rondo train: 2 runs</h1>") != NULL);
  assert_well_formed(text);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  training_result result;
  unsigned char *bytes = malloc(size + 1);
  REQUIRE(bytes != NULL);
  memcpy(bytes, data, size);
  bytes[size] = '\0';
  tool_message[0] = '\0';
  const int status = training_result_read("in", &(file_bytes){bytes, size}, &result);
  REQUIRE((status == TOOL_OK) == (tool_message[0] == '\0'));
  REQUIRE(status == TOOL_OK || strncmp(tool_message, "in: ", 4) == 0);
  if (status == TOOL_OK) {
    REQUIRE(result.losses.count > 0);
    require_numbers(&result.losses);
    require_numbers(&result.validation);
    require_page(&result);
  }
  training_result_destroy(&result);
  free(bytes);
  return 0;
}
