/* SPDX-License-Identifier: MIT
 * Random calls on a tree and on a model of it. The model knows what is in each buffer, which buffers may be read, what
 * lives of the path, which forms are warm, and which recordings there are with what they were made for: so it foretells
 * of each call whether it is replayed, recorded or run as it is, and why; and the figures of the tree's memory. What
 * the device computes must be what the model did. Calls come from the bytes; a finding is said, with the name of the
 * run and the number of the call, and ends the process.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_TREE_MODEL_H
#define RONDO_TESTS_SUPPORT_TEST_TREE_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Opens the device, makes calls until the bytes are used up or there were many, and takes all down again. */
void test_tree_model_run(const char *device, const char *name, const uint8_t *data, size_t size);

#endif
