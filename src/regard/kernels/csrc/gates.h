// PyTorch's GRU, what is left of a step when its products are done: with the halves of the gates
// that come from the input (x) and from the state (y),
//
//     r = sigmoid(x_r + y_r), z = sigmoid(x_z + y_z), n = tanh(x_n + r y_n)
//     s' = n + z (s - n)

#pragma once

#include "vectors.h"

namespace {

// from_input (batch, 3 d_s), from_state (batch, 3 d_s; rows `stride` apart), state (batch, d_s);
// writes gates (batch, 3 d_s) r, z and n, and after (batch, d_s).
void gru_forward(const float* from_input, const float* from_state, int64_t stride,
                 const float* state, float* gates, float* after, int64_t batch, int64_t d_s) {
  for (int64_t b = 0; b < batch; b++) {
    const float *x = from_input + b * 3 * d_s, *y = from_state + b * stride;
    float* g = gates + b * 3 * d_s;
    for (int64_t c = 0; c < d_s; c += L) {
      const int64_t part = d_s - c, two = 2 * d_s;
      V r = sigmoid(load_part(x + c, part) + load_part(y + c, part));
      V z = sigmoid(load_part(x + d_s + c, part) + load_part(y + d_s + c, part));
      V n = tangent(load_part(x + two + c, part) + r * load_part(y + two + c, part));
      V s = load_part(state + b * d_s + c, part);
      store_part(g + c, r, part);
      store_part(g + d_s + c, z, part);
      store_part(g + two + c, n, part);
      store_part(after + b * d_s + c, n + z * (s - n), part);
    }
  }
}

// From d_after (batch, d_s): d_input (batch, 3 d_s), d_from_state (batch, 3 d_s; rows `stride`
// apart) and d_state (batch, d_s), which is only the part that passes the gates by.
void gru_backward(const float* d_after, const float* gates, const float* from_state,
                  int64_t stride, const float* state, float* d_input, float* d_from_state,
                  float* d_state, int64_t batch, int64_t d_s) {
  for (int64_t b = 0; b < batch; b++) {
    const float *g = gates + b * 3 * d_s, *y = from_state + b * stride;
    float *dx = d_input + b * 3 * d_s, *dy = d_from_state + b * stride;
    for (int64_t c = 0; c < d_s; c += L) {
      const int64_t part = d_s - c, two = 2 * d_s;
      V r = load_part(g + c, part), z = load_part(g + d_s + c, part);
      V n = load_part(g + two + c, part), s = load_part(state + b * d_s + c, part);
      V d = load_part(d_after + b * d_s + c, part);
      V by_n = d * (1.0f - z) * (1.0f - n * n);
      V by_z = d * (s - n) * z * (1.0f - z);
      V by_r = by_n * load_part(y + two + c, part) * r * (1.0f - r);
      store_part(dx + c, by_r, part);
      store_part(dx + d_s + c, by_z, part);
      store_part(dx + two + c, by_n, part);
      store_part(dy + c, by_r, part);
      store_part(dy + d_s + c, by_z, part);
      store_part(dy + two + c, by_n * r, part);
      store_part(d_state + b * d_s + c, d * z, part);
    }
  }
}

}  // namespace
