// The softmax of one row in place, and its gradient.

#pragma once

#include "vectors.h"

namespace {

// Turn n scores into weights; there is room for whole vectors. -inf forbids, +inf shares
// equally, and a NaN makes all of them NaN; where all are forbidden, all weights are 0.
void softmax(float* x, int64_t n) {
  const float lowest = -INFINITY, finite = 3.402823466e38f;
  for (int64_t i = n; i % L; i++) x[i] = lowest;
  V most = all(lowest);
  for (int64_t i = 0; i < n; i += L) {
    const V y = at_most(load(x + i), all(finite));
    store(x + i, y);
    most = larger(y, most);
  }
  float part[L], largest = lowest;
  store(part, most);
  for (int i = 0; i < L; i++)
    if (part[i] > largest) largest = part[i];
  if (largest == lowest) largest = 0;
  V total = {};
  for (int64_t i = 0; i < n; i += L) {
    V below = load(x + i) - largest;
    V y = exponential(at_least(below, all(-87.0f)), V{}, 0);
    y = pick(below < -87.0f, V{}, y);
    store(x + i, y);
    total += y;
  }
  const float sum = sum_of(total);
  const V share = all(sum == 0 ? 0 : 1 / sum);
  for (int64_t i = 0; i < n; i += L) store(x + i, load(x + i) * share);
}

// Turn the gradient by n weights into that by their scores. A weight of 0 has none, so that what
// came of a forbidden key does not matter.
void softmax_gradient(const float* weights, float* grad, int64_t n) {
  V sums = {};
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    const V w = load(weights + i);
    sums += pick(w == 0.0f, V{}, w * load(grad + i));
  }
  float total = sum_of(sums);
  for (int64_t j = i; j < n; j++)
    if (weights[j] != 0) total += weights[j] * grad[j];
  for (i = 0; i + L <= n; i += L) {
    const V w = load(weights + i);
    store(grad + i, pick(w == 0.0f, V{}, w * (load(grad + i) - total)));
  }
  for (; i < n; i++) grad[i] = weights[i] != 0 ? weights[i] * (grad[i] - total) : 0;
}

}  // namespace
