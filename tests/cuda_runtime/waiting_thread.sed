# SPDX-License-Identifier: MIT
# Of examples/cuda_samples/decoder_loop_rondo.cu: the other thread waits for the device, which ends captures.
s/^ *CHECK\(cudaFree\(device_array.*/&\n      (void)cudaDeviceSynchronize();/
