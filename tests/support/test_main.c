/* SPDX-License-Identifier: MIT
 * The main of test programs without their own: runs the tests that their file defines (test_cases.h).
 */
#include "support/rondo_test.h"

int main(void) { return test_run_registered(); }
