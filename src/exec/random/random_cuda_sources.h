/* SPDX-License-Identifier: MIT
 * This layer's CUDA sources as texts, which the build makes of its .cu files (cmake/EmbedCuda.cmake). Constant.
 */
#ifndef RONDO_EXEC_RANDOM_CUDA_SOURCES_H
#define RONDO_EXEC_RANDOM_CUDA_SOURCES_H

extern const char rondo_cuda_random_device[];
extern const char rondo_cuda_random_uniform[];

#endif
