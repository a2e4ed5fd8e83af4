// Scores, masked softmax and context in one pass: nothing of size T_dec T_enc is written, unless
// weights are wanted.

#pragma once

#include "interface.h"
#include "scores.h"
#include "softmax.h"

namespace {

// Columns that Q rows of sums leave registers for.
constexpr int COLUMNS = L == 16 ? 3 : 2;

// Add up n weighted rows for Q queries, N vectors of columns; `part` of the last one exist.
template <int Q, int N>
INLINE void context_tile(const float* weights, int64_t stride, const float* value,
                         const int64_t* rows, int64_t n, int64_t d_v, int64_t part,
                         float* context) {
  V total[Q * N] = {};
  for (int64_t k = 0; k < n; k++) {
    const float* row = value + rows[k] * d_v;
    V x[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; j++) x[j] = N == 1 ? load_part(row, part) : load(row + j * L);
#pragma GCC unroll 8
    for (int q = 0; q < Q; q++) {
      const V weight = all(weights[q * stride + k]);
#pragma GCC unroll 4
      for (int j = 0; j < N; j++) total[q * N + j] += weight * x[j];
    }
  }
#pragma GCC unroll 8
  for (int q = 0; q < Q; q++)
#pragma GCC unroll 4
    for (int j = 0; j < N; j++) {
      float* out = context + q * d_v + j * L;
      if (N == 1)
        store_part(out, total[q], part);
      else
        store(out, total[q * N + j]);
    }
}

template <int Q>
void contexts(const float* weights, int64_t stride, const float* value, const int64_t* rows,
              int64_t n, int64_t d_v, float* context) {
  int64_t c = 0;
  for (; c + COLUMNS * L <= d_v; c += COLUMNS * L)
    context_tile<Q, COLUMNS>(weights, stride, value + c, rows, n, d_v, L, context + c);
  for (; c < d_v; c += L)
    context_tile<Q, 1>(weights, stride, value + c, rows, n, d_v, d_v - c, context + c);
}

// Takes the scores of a few queries at a time, each query's side by side.
struct Reader {
  const Problem& g;
  const Attention& a;
  int64_t stride;
  float* scores;    // (MOST_QUERIES, stride)
  int64_t* places;  // 0, 1, 2, ...
  const int64_t* rows = nullptr;
  int64_t at = 0, n = 0;  // the example's first query; its permitted keys

  void example(int64_t b, int64_t begin, int64_t end, const int64_t* permitted, int64_t count) {
    at = b * g.T_dec;
    rows = permitted;
    n = count;
    const int64_t queries = end - begin;
    if (a.weights && n < g.T_enc)
      clear(a.weights + (at + begin) * g.T_enc, queries * g.T_enc);
    if (n == 0) clear(a.context + (at + begin) * a.d_v, queries * a.d_v);
  }

  Target target(int64_t) const { return {scores, stride, places}; }

  void scored(int64_t t, int64_t m) const {
    for (int64_t q = 0; q < m; q++) {
      float* row = scores + q * stride;
      if (a.mask) {
        const uint8_t* may = a.mask + (at + t + q) * g.T_enc;
        for (int64_t k = 0; k < n; k++) row[k] = may[rows[k]] ? row[k] : -INFINITY;
      }
      softmax(row, n);
      if (!a.weights) continue;
      float* out = a.weights + (at + t + q) * g.T_enc;
      if (n == g.T_enc)
        memcpy(out, row, sizeof(float) * n);
      else
        for (int64_t k = 0; k < n; k++) out[rows[k]] = row[k];
    }
    const float* value = a.value + at / g.T_dec * g.T_enc * a.d_v;
    float* context = a.context + (at + t) * a.d_v;
    if (m == MOST_QUERIES)
      return contexts<MOST_QUERIES>(scores, stride, value, rows, n, a.d_v, context);
    if (m == MOST_QUERIES / 2)
      return contexts<MOST_QUERIES / 2>(scores, stride, value, rows, n, a.d_v, context);
    for (int64_t q = 0; q < m; q++)
      contexts<1>(scores + q * stride, stride, value, rows, n, a.d_v, context + q * a.d_v);
  }
};

int attend(const float* query, const float* key, const float* v, const uint8_t* key_mask,
           const Attention* asked, int64_t batch, int64_t T_dec, int64_t T_enc, int64_t d,
           int threads) {
  const Problem g = {query, key, v, key_mask, batch, T_dec, T_enc, d, (d + W - 1) / W * W};
  if (batch == 0 || T_dec == 0) return 0;
  if (T_enc == 0) {
    clear(asked->context, batch * T_dec * asked->d_v);
    return 0;
  }
  Arena memory(weights_size(g));
  Weights w;
  if (!weigh_all(g, memory, w)) return 1;
  const int64_t most = most_permitted(g), stride = (most + L - 1) / L * L;
  return in_parts(batch * T_dec, threads, [&](int64_t from, int64_t to) {
    Arena own(sizeof(float) * MOST_QUERIES * stride + sizeof(int64_t) * most);
    if (!own) return false;
    Reader sink = {g, *asked, stride, own.take<float>(MOST_QUERIES * stride),
                   own.take<int64_t>(most)};
    for (int64_t k = 0; k < most; k++) sink.places[k] = k;
    return score_part(g, w, most, from, to, sink);
  }) ? 0 : 1;
}

void softmax_backward(const float* weights, float* grad, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; i++) softmax_gradient(weights + i * n, grad + i * n, n);
}

}  // namespace
