/* SPDX-License-Identifier: MIT
 * The library reports the version of its headers, as numbers and as text.
 */

#include <stdio.h>

#include <rondo/version.h>

#include "support/rondo_test.h"

UNIT_TEST(test_version) {
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH);
  assert_string_equal(RONDO_VERSION_STRING, text);
  assert_string_equal(rondo_version(), RONDO_VERSION_STRING);
}
