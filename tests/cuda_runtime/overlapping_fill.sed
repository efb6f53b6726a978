# SPDX-License-Identifier: MIT
# A mistake in examples/cuda_samples/reduce_graph_rondo.cu: the fill begins in what the copy writes.
s/Memset(.*)\(a->x \+ count,/Memset\1(a->x + count - 1,/
