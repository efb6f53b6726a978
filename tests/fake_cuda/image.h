/* SPDX-License-Identifier: MIT
 * What the fake compiler makes and the fake driver loads: this line, then the names of kernels, one a line, as text
 * with a zero at its end. Other PTX is known by its first word, and its kernels by their entries.
 */
#ifndef RONDO_TESTS_FAKE_CUDA_IMAGE_H
#define RONDO_TESTS_FAKE_CUDA_IMAGE_H

#define FAKE_IMAGE_HEAD "// fake CUDA image 1\n"
#define FAKE_PTX_HEAD ".version"

#endif
