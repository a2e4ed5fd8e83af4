// The gradients of sum(grad * scores) by queries, keys and v. Tangents are computed again;
// nothing of the size of all pairs times features is ever held.

#pragma once

#include "scores.h"

namespace {

constexpr int KEYS = 64;  // keys a block

// For Q queries and up to KEYS keys: add sums of grad (1 - h^2) to d_q and d_k, and sums of
// grad h to d_v, where h is the tangent; its negative where FACTORED, 2 r - 1.
template <Kind kind, int Q>
INLINE void gradient_block(const float* E, const float* F, const float* grad, int64_t n,
                           int64_t stride, float* d_q, float* d_k, double* d_v) {
  const V one = all(SCALE), two = all(2 * SCALE);
  V e[Q], e2[Q], by_q[Q] = {}, by_q2[Q] = {}, by_v = {}, by_v2 = {};
#pragma GCC unroll 4
  for (int q = 0; q < Q; q++) e[q] = load(E + q * W), e2[q] = load(E + q * W + L);
  for (int64_t k = 0; k < n; k++) {
    V f = load(F + k * W), f2 = load(F + k * W + L);
    V by_k = load(d_k + k * W), by_k2 = load(d_k + k * W + L);
#pragma GCC unroll 4
    for (int q = 0; q < Q; q++) {
      V h, h2, s = all(grad[q * stride + k]);
      if (kind == FACTORED) {
        V a = e[q] * f + one, b = e2[q] * f2 + one;
        V inverse = quotient(two, a * b);
        h = inverse * b - 1.0f;
        h2 = inverse * a - 1.0f;
      } else {
        h = tangent_of<kind>(e[q] + f);
        h2 = tangent_of<kind>(e2[q] + f2);
      }
      V slope = 1.0f - h * h, slope2 = 1.0f - h2 * h2;
      by_q[q] += s * slope;
      by_q2[q] += s * slope2;
      by_k += s * slope;
      by_k2 += s * slope2;
      by_v += s * h;
      by_v2 += s * h2;
    }
    store(d_k + k * W, by_k);
    store(d_k + k * W + L, by_k2);
  }
#pragma GCC unroll 4
  for (int q = 0; q < Q; q++) {
    store(d_q + q * W, load(d_q + q * W) + by_q[q]);
    store(d_q + q * W + L, load(d_q + q * W + L) + by_q2[q]);
  }
  for (int i = 0; i < L; i++) d_v[i] += by_v[i], d_v[L + i] += by_v2[i];
}

template <Kind kind>
void gradient_chunk(int64_t T_dec, int64_t n, const float* E, const float* F,
                    const float* grad, float* d_q, float* d_k, double* d_v) {
  // Keys in blocks: they stay in the first cache, and no sum in float32 grows long.
  for (int64_t k = 0; k < n; k += KEYS) {
    constexpr int Q = REGARD_QUERIES;
    int64_t m = n - k < KEYS ? n - k : KEYS, q = 0;
    for (; q + Q <= T_dec; q += Q)
      gradient_block<kind, Q>(E + q * W, F + k * W, grad + q * n + k, m, n, d_q + q * W,
                              d_k + k * W, d_v);
    for (; q < T_dec; q++)
      gradient_block<kind, 1>(E + q * W, F + k * W, grad + q * n + k, m, n, d_q + q * W,
                              d_k + k * W, d_v);
  }
}

struct Gradients {
  const float* grad;
  float *query, *key;  // query may be null: then it is not wanted
  double* v;           // (batch, padded): summed over examples in the end, in their order
};

// Handle the chunks [from, to) of W features, the chunks of all examples in a row.
bool gradient_part(const Problem& g, bool many, int64_t most, int64_t from, int64_t to,
                   const Gradients& d) {
  const int64_t chunks = g.padded / W;
  Arena memory(sizeof(float) * (2 * W * (g.T_dec + most) + g.T_dec * most + 2 * g.padded) +
               sizeof(int64_t) * g.T_enc);
  if (!memory) return false;
  float *E = memory.take<float>(g.T_dec * W), *F = memory.take<float>(most * W);
  float *by_q = memory.take<float>(g.T_dec * W), *by_k = memory.take<float>(most * W);
  float* upstream = memory.take<float>(g.T_dec * most);
  float *shift = memory.take<float>(g.padded), *limit = memory.take<float>(g.padded);
  int64_t* rows = memory.take<int64_t>(g.T_enc);
  const int64_t* every = nullptr;
  for (int64_t b = from / chunks; b * chunks < to; b++) {
    const int64_t begin = from > b * chunks ? from - b * chunks : 0;
    const int64_t end = to < (b + 1) * chunks ? to - b * chunks : chunks;
    const int64_t n = permitted(g.key_mask ? g.key_mask + b * g.T_enc : nullptr, g.T_enc, rows);
    if (n == 0) continue;
    const float *q_b = g.query + b * g.T_dec * g.d, *k_b = g.key + b * g.T_enc * g.d;
    const Kind kind = kind_of_gradients(survey(g, b, rows, n, shift, limit), many);
    const float* grad = d.grad + b * g.T_dec * g.T_enc;
    if (n < g.T_enc) {
      for (int64_t t = 0; t < g.T_dec; t++)
        for (int64_t i = 0; i < n; i++) upstream[t * n + i] = grad[t * g.T_enc + rows[i]];
      grad = upstream;
    }
    const double turn = kind == FACTORED ? -1 : 1;  // see gradient_block
    for (int64_t c = begin * W; c < end * W; c += W) {
      double by_v[W] = {};
      fill(kind, q_b, every, g.T_dec, g.d, c, c + W, 1, shift, limit, {}, E, {W, 0});
      fill(kind, k_b, rows, n, g.d, c, c + W, -1, shift, limit, {}, F, {W, 0});
      clear(by_q, g.T_dec * W);
      clear(by_k, n * W);
      if (kind == FACTORED) gradient_chunk<FACTORED>(g.T_dec, n, E, F, grad, by_q, by_k, by_v);
      if (kind == SMALL) gradient_chunk<SMALL>(g.T_dec, n, E, F, grad, by_q, by_k, by_v);
      if (kind == DIRECT) gradient_chunk<DIRECT>(g.T_dec, n, E, F, grad, by_q, by_k, by_v);
      const int64_t part = g.d - c < W ? g.d - c : W;
      for (int64_t i = 0; i < part; i++) d.v[b * g.padded + c + i] = turn * by_v[i];
      if (d.query)
        for (int64_t t = 0; t < g.T_dec; t++)
          for (int64_t i = 0; i < part; i++)
            d.query[(b * g.T_dec + t) * g.d + c + i] = g.v[c + i] * by_q[t * W + i];
      for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < part; i++)
          d.key[(b * g.T_enc + rows[k]) * g.d + c + i] = g.v[c + i] * by_k[k * W + i];
    }
  }
  return true;
}

int backward(const float* query, const float* key, const float* v, const uint8_t* key_mask,
             const float* grad, float* d_query, float* d_key, float* d_v, int64_t batch,
             int64_t T_dec, int64_t T_enc, int64_t d, int threads) {
  const Problem g = {query, key, v, key_mask, batch, T_dec, T_enc, d, (d + W - 1) / W * W};
  if (d_query) clear(d_query, batch * T_dec * d);
  clear(d_key, batch * T_enc * d);
  clear(d_v, d);
  if (batch == 0 || T_dec == 0 || T_enc == 0 || d == 0) return 0;
  Arena memory(sizeof(double) * batch * g.padded);
  if (!memory) return 1;
  const Gradients found = {grad, d_query, d_key, memory.take<double>(batch * g.padded)};
  clear(found.v, batch * g.padded);
  const bool many = averages(v, d);
  const int64_t most = most_permitted(g);
  const bool done =
      in_parts(batch * (g.padded / W), threads, [&](int64_t from, int64_t to) {
        return gradient_part(g, many, most, from, to, found);
      });
  if (!done) return 1;
  for (int64_t i = 0; i < d; i++) {
    double total = 0;
    for (int64_t b = 0; b < batch; b++) total += found.v[b * g.padded + i];
    d_v[i] = (float)total;
  }
  return 0;
}

}  // namespace
