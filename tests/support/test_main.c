/* SPDX-License-Identifier: MIT
 * The main of test programs that have none: it runs the tests that their file defines (test_cases.h).
 */
#include "support/rondo_test.h"

int main(void) { return test_run_registered(); }
