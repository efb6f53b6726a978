/* SPDX-License-Identifier: MIT
 * The format of the images that the fake compiler makes and the fake driver loads: this line, then the names of
 * kernels, one per line, as text that ends with a NUL. The driver recognizes other PTX by its first word, and its
 * kernels by their entries.
 */
#ifndef RONDO_TESTS_FAKE_CUDA_IMAGE_H
#define RONDO_TESTS_FAKE_CUDA_IMAGE_H

#define FAKE_IMAGE_HEAD "// fake CUDA image 1\n"
#define FAKE_PTX_HEAD ".version"

/* Begins a comment of a source: the rest of it is what the fake compiler returns as PTX. */
#define FAKE_PTX_COMMENT "/* PTX:\n"

#endif
