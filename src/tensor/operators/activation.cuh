/* SPDX-License-Identifier: MIT
 * Activations that products apply to their results, as their operators have them.
 */
#define ACTIVATION_RELU 1u /* RONDO_ACTIVATION_RELU and so on */
#define ACTIVATION_GELU 2u
#define ACTIVATION_GELU_TANH 3u
#define ACTIVATION_SILU 4u

__device__ inline float activate(unsigned activation, float x) {
  switch (activation) {
    case ACTIVATION_RELU:
      return x < 0.0f ? 0.0f : x; /* passes NaN on */
    case ACTIVATION_GELU:
      return x * (0.5f + 0.5f * erff(x * 0.707106781f));
    case ACTIVATION_GELU_TANH:
      return x / (1.0f + expf(-1.59576912f * x * (1.0f + 0.044715f * x * x)));
    case ACTIVATION_SILU:
      return x / (1.0f + expf(-x));
    default:
      return x;
  }
}
