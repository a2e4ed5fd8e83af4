// PyTorch's GRU, what is left of a step when its products are done. With the halves of the gates
// that come from the inputs (x) and from the state before (y),
//
//     r = sigmoid(x_r + y_r), z = sigmoid(x_z + y_z), n = tanh(x_n + r y_n)
//     s' = n + z (s - n)
//
// where x is the sum of the input's and the context's part, and y that of a product and a bias.

#pragma once

#include "interface.h"
#include "vectors.h"

namespace {

INLINE V sum_part(const float* x, const float* y, int64_t n) {
  return load_part(x, n) + load_part(y, n);
}

void gru_forward(const Gru* gru, const float* from_input, const float* from_context,
                 const float* from_state, const float* state, float* gates, float* after) {
  const int64_t d_s = gru->d_s, two = 2 * d_s;
  for (int64_t b = 0; b < gru->batch; b++) {
    const float *x = from_input + b * gru->input_stride, *x2 = from_context + b * 3 * d_s;
    const float *y = from_state + b * gru->state_stride, *y2 = gru->bias;
    float* g = gates + b * 3 * d_s;
    for (int64_t c = 0; c < d_s; c += L) {
      const int64_t n = d_s - c;
      V r = sigmoid(sum_part(x + c, x2 + c, n) + sum_part(y + c, y2 + c, n));
      V z = sigmoid(sum_part(x + d_s + c, x2 + d_s + c, n) +
                    sum_part(y + d_s + c, y2 + d_s + c, n));
      V new_state = tangent(sum_part(x + two + c, x2 + two + c, n) +
                            r * sum_part(y + two + c, y2 + two + c, n));
      V s = load_part(state + b * d_s + c, n);
      store_part(g + c, r, n);
      store_part(g + d_s + c, z, n);
      store_part(g + two + c, new_state, n);
      store_part(after + b * d_s + c, new_state + z * (s - new_state), n);
    }
  }
}

void gru_backward(const Gru* gru, const float* d_output, int64_t d_output_stride,
                  const float* gates, const float* from_state, const float* state,
                  float* d_input, float* d_from_state, float* d_state) {
  const int64_t d_s = gru->d_s, two = 2 * d_s;
  for (int64_t b = 0; b < gru->batch; b++) {
    const float *g = gates + b * 3 * d_s, *y = from_state + b * gru->state_stride;
    float *dx = d_input + b * 3 * d_s, *dy = d_from_state + b * gru->state_stride;
    for (int64_t c = 0; c < d_s; c += L) {
      const int64_t n = d_s - c;
      V r = load_part(g + c, n), z = load_part(g + d_s + c, n);
      V new_state = load_part(g + two + c, n), s = load_part(state + b * d_s + c, n);
      V d = load_part(d_state + b * d_s + c, n);
      if (d_output) d += load_part(d_output + b * d_output_stride + c, n);
      V by_n = d * (1.0f - z) * (1.0f - new_state * new_state);
      V by_z = d * (s - new_state) * z * (1.0f - z);
      V by_r = by_n * sum_part(y + two + c, gru->bias + two + c, n) * r * (1.0f - r);
      store_part(dx + c, by_r, n);
      store_part(dx + d_s + c, by_z, n);
      store_part(dx + two + c, by_n, n);
      store_part(dy + c, by_r, n);
      store_part(dy + d_s + c, by_z, n);
      store_part(dy + two + c, by_n * r, n);
      store_part(d_state + b * d_s + c, d * z, n);
    }
  }
}

}  // namespace
