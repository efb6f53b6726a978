# SPDX-License-Identifier: MIT
# A mistake in examples/cuda_samples/memory_nodes_rondo.cu: an array is freed before the last kernel that reads it.
s/^ *add_neighbour<<<.*\(squares, sums\);/  const float *freed = squares;\n  squares.reset();\n&/
s/\(squares, sums\)/(freed, sums)/
