# SPDX-License-Identifier: MIT
# Makes C++ of a CUDA source: kernel<<<grid, block>>>(x) becomes what cuda_runtime.h has.
s/([A-Za-z_0-9]+)<<<(.*)>>>\(/CUDA_LAUNCH(\1, \2)(/
