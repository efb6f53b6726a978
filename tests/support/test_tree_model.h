/* SPDX-License-Identifier: MIT
 * Random calls on a tree and on a model of it. The model knows the contents of each buffer, which buffers may be read,
 * which outputs of the path live, which forms are warm, and for what each recording was made. So it predicts for each
 * call whether it is replayed, recorded or run eagerly, and why, and how much memory the tree uses. The device must
 * compute what the model computes.
 *
 * The calls are chosen by the bytes of the input. A mismatch is printed with the name of the run and the number of the
 * call, and ends the process.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_TREE_MODEL_H
#define RONDO_TESTS_SUPPORT_TEST_TREE_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Opens the device, makes calls until the bytes are used up or the maximum is reached, and destroys everything. */
void test_tree_model_run(const char *device, const char *name, const uint8_t *data, size_t size);

#endif
